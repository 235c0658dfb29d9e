// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof run`: tokens to logits, by the reference, by the scalar emulation of the fast path, or
// by the fast path. Standard output holds only the result; time and memory go to standard error. A
// failed run leaves no trace behind.
#include "audit/command/backward.h"
#include "audit/command/command.h"
#include "audit/command/engine_options.h"
#include "audit/command/text.h"
#include "audit/trace/trace_write.h"
#include "base/words.h"
#include "fast/engine/engine.h"
#include "model/json_number.h"
#include "ref/backward/backward.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TOP = 5, PIECE = 512, MAX_CHUNK = 1 << 24 };

typedef struct options {
    engine_choice how;
    text_words words;
    const char *model, *trace, *points, *json, *gradient;
    bool backward;
    size_t chunk, generate; // 0: not given
    double temperature;
    uint64_t seed;
} options;

enum { KEY_CHUNK = 256, KEY_GENERATE, KEY_TEMPERATURE, KEY_SEED };

static const struct argp_option argp_options[] = {
    {"tokens", KEPT(options, words.tokens), "IDS", 0,
     "Ids separated by commas, @FILE, random:N[,seed=S], or repeat:N[,seed=S]; or text, as "
     "text:TEXT, prompt:TEXT or chat:FILE; any of them also behind a beginning: bos+repeat:64, or "
     "5,3+random:64",
     0},
    {"text", KEPT(options, words.text), "TEXT|-", 0, "A text as it stands; - is standard input", 0},
    {"prompt", KEPT(options, words.prompt), "TEXT|-", 0,
     "A user's message in the harmony format, or by the chat template of SmolLM2, after the usual "
     "system message",
     0},
    {"chat", KEPT(options, words.chat), "FILE|-", 0,
     "A conversation in that format (sinkproof tokens --help)", 0},
    {"tokenizer", KEPT(options, words.tokenizer), "PATH", 0,
     "Of the text; the one beside MODEL unless named", 0},
    {"trace", KEPT(options, trace), "OUT.safetensors", 0, "Write every named point", 0},
    {"points", KEPT(options, points), "LIST", 0, "Only these points in the trace: A9, 03.M8, A4",
     0},
    {"chunk", KEY_CHUNK, "N", 0, "Feed the prompt N tokens at a time: the same bits", 0},
    {"generate", KEY_GENERATE, "N", 0,
     "Append N tokens, each the largest logit (the lower id in a tie)", 0},
    {"temperature", KEY_TEMPERATURE, "T", 0,
     "Draw generated tokens from the softmax of the logits over T instead; 0: the largest", 0},
    {"seed", KEY_SEED, "S", 0, "Of the draws (0 unless given): the same seed, the same text", 0},
    {"backward", KEPT(options, backward), 0, 0,
     "Also the gradients of the next tokens' cross-entropy, all of them in the trace: 03.dA11, "
     "03.dA4.q, 03.dsink, 03.dW.q. For engine ref; a policy rounds the gradient of a point as it "
     "rounds the point",
     0},
    {"gradient", KEPT(options, gradient), "FILE", 0,
     "In place of that loss: safetensors of what your loss has at the logits (dF2), at attention's "
     "output (03.dA11), at a head's log-sum-exp with the sink (03.dA9.lse) or without it "
     "(03.dA9.lse-keys)",
     0},
    {"json", KEPT(options, json), "FILE", 0, "The result as JSON; - is standard output", 0},
    {0},
};

static uint64_t parse_seed(struct argp_state *state, const char *text) {
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || seed >> 63 != 0)
        argp_error(state, "--seed %s: expected a whole number below 2^63", text);
    return seed;
}

static double parse_temperature(struct argp_state *state, const char *text) {
    char *end;
    double t = strtod(text, &end);
    if (end == text || *end != '\0' || !(t >= 0 && t <= 1e6))
        argp_error(state, "--temperature %s: expected a number from 0 to 1000000", text);
    return t;
}

// Refuses options that need another option.
static void check_options(const options *o, struct argp_state *state) {
    const text_words *w = &o->words;
    if (o->model == NULL) argp_error(state, "expected a MODEL");
    if ((w->tokens != NULL) + (w->text != NULL) + (w->prompt != NULL) + (w->chat != NULL) != 1)
        argp_error(state, "expected --tokens, or one of --text, --prompt and --chat");
    if (o->points != NULL && o->trace == NULL) argp_error(state, "--points needs --trace");
    if (o->gradient != NULL && !o->backward) argp_error(state, "--gradient needs --backward");
    if (o->backward && (o->chunk > 0 || o->generate > 0))
        argp_error(state, "--backward goes with neither --chunk nor --generate");
    if (o->temperature > 0 && o->generate == 0) argp_error(state, "--temperature needs --generate");
}

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &o->how;
    else if (key == KEY_CHUNK)
        o->chunk = option_count(state, "chunk", argument, MAX_CHUNK);
    else if (key == KEY_GENERATE)
        o->generate = option_count(state, "generate", argument, MAX_CHUNK);
    else if (key == KEY_TEMPERATURE)
        o->temperature = parse_temperature(state, argument);
    else if (key == KEY_SEED)
        o->seed = parse_seed(state, argument);
    else if (key == ARGP_KEY_ARG && o->model != NULL)
        argp_error(state, "one MODEL, not also '%s'", argument);
    else if (key == ARGP_KEY_ARG)
        o->model = argument;
    else if (key == ARGP_KEY_END)
        check_options(o, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp parser = {
    .options = argp_options,
    .parser = parse_option,
    .children = (const struct argp_child[]){{&engine_parser, 0, NULL, 0}, {0}},
    .args_doc = "MODEL --tokens IDS\nMODEL --prompt TEXT",
    .doc = "Runs the model on the tokens and prints the largest logits after the last one."
           "\v" HELP_MODEL_IS ". Its weights "
           "are looked at first, once, all but MXFP4's codes: an infinity or a NaN is refused, but "
           "for sinks of -infinity. Engine fast takes a head_dim up to 1024 and sinks of one logit "
           "a head.",
};

// The state of a run.
typedef struct run {
    const options *o;
    sinkproof_model *model;
    sinkproof_policy policy;
    sinkproof_runner *runner;
    sinkproof_trace_writer *writer; // NULL without --trace
    sinkproof_tokenizer *tokenizer; // NULL if there is none
    int32_t *tokens_n;              // [n_prompt + generate]
    size_t n_prompt, n;             // n: tokens so far
    double *logits_v;               // after the last processed token
    float *narrow_v;                // the same in float32, for sampling
    double prompt_seconds, decode_seconds;
    sinkproof_activations *activations; // NULL without --backward
    backward_loss loss;
} run;

static size_t run_vocab(const run *r) {
    return sinkproof_model_config(r->model)->vocab;
}

// Progress with speed, on a terminal: "run: token 513 of 4096, 81.2 tokens/s".
static void show_progress(const char *what, size_t done, size_t total, double seconds) {
    if (done == 0 || done >= total || !isatty(STDERR_FILENO)) {
        progress_show("run", what, done, total);
        return;
    }
    fprintf(stderr, "\r\033[Krun: %s %zu of %zu, %.3g tokens/s", what, done + 1, total,
            (double)done / seconds);
    fflush(stderr);
}

// Opens the tokenizer to show ids as text too; a missing tokenizer is no failure.
static void open_for_output(run *r) {
    sinkproof_error ignored;
    const char *path = r->o->words.tokenizer;
    if (r->tokenizer == NULL) words_open_tokenizer(path, r->o->model, &r->tokenizer, &ignored);
}

static bool open_run(run *r, sinkproof_error *error) {
    const options *o = r->o;
    char engine[32];
    if (!sinkproof_model_open(o->model, &r->model, error)) return false;
    if (!words_parse_tokens(&o->words, o->model, run_vocab(r), &r->tokenizer, &r->tokens_n,
                            &r->n_prompt, error))
        return false;
    if (o->generate > 0) open_for_output(r);
    size_t context = sinkproof_model_config(r->model)->max_context;
    size_t total = r->n_prompt + o->generate;
    // The last generated token is printed but not fed back: it has no activations.
    size_t fed = o->generate > 0 ? total - 1 : total;
    if (fed > context)
        return sinkproof_fail(error, "%s exceed the model's context of %zu",
                              sinkproof_counted(fed, "token").text, context);
    r->n = r->n_prompt;
    int32_t *longer = realloc(r->tokens_n, total * sizeof *longer);
    if (longer == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(total, "token").text);
    r->tokens_n = longer;
    r->logits_v = calloc(run_vocab(r), sizeof *r->logits_v);
    r->narrow_v = calloc(run_vocab(r), sizeof *r->narrow_v);
    if (r->logits_v == NULL || r->narrow_v == NULL)
        return sinkproof_fail(error, "no memory for the logits");
    snprintf(engine, sizeof engine, "sinkproof %s", o->how.engine);
    if (o->trace != NULL && !sinkproof_trace_writer_new(o->trace, r->model, &r->policy, engine,
                                                        o->points, fed, &r->writer, error))
        return false;
    if (o->backward && (!sinkproof_backward_serves(sinkproof_model_config(r->model), error) ||
                        !sinkproof_activations_new(sinkproof_model_config(r->model), r->n_prompt,
                                                   r->tokens_n, &r->activations, error)))
        return false;
    return engine_runner_start("run", &o->how, r->model, &r->policy, fed, &r->runner, error);
}

static void close_run(run *r) {
    sinkproof_trace_writer_free(r->writer);
    sinkproof_activations_free(r->activations);
    sinkproof_runner_free(r->runner);
    sinkproof_tokenizer_free(r->tokenizer);
    sinkproof_model_close(r->model);
    free(r->tokens_n);
    free(r->logits_v);
    free(r->narrow_v);
}

static const sinkproof_observer *run_observer(const run *r) {
    const sinkproof_observer *writer =
        r->writer != NULL ? sinkproof_trace_writer_observer(r->writer) : NULL;
    if (r->activations == NULL) return writer;
    r->activations->next = writer;
    return &r->activations->observer;
}

// The number of tokens to feed at a time: as requested; all of a traced prompt or a session's;
// otherwise few enough to show progress.
static size_t tokens_per_pass(const run *r) {
    if (r->o->chunk > 0) return r->o->chunk;
    if (r->activations != NULL) return r->n_prompt;
    return sinkproof_runner_is_tuned(r->o->how.engine) && r->writer == NULL && !r->o->how.streamed
               ? PIECE
               : r->n_prompt;
}

static bool run_prompt(run *r, sinkproof_error *error) {
    size_t piece = tokens_per_pass(r), m;
    double start = clock_seconds();
    for (size_t done = 0; done < r->n_prompt; done += m) {
        m = r->n_prompt - done < piece ? r->n_prompt - done : piece;
        show_progress("token", done, r->n_prompt, clock_seconds() - start);
        double *logits_v = done + m == r->n_prompt ? r->logits_v : NULL;
        if (!sinkproof_runner_forward(r->runner, m, r->tokens_n + done, logits_v, run_observer(r),
                                      error))
            return false;
    }
    show_progress("token", r->n_prompt, r->n_prompt, 1);
    r->prompt_seconds = clock_seconds() - start;
    return true;
}

// The next largest logit's id after those already taken; ties go to the lower id.
static size_t next_largest_logit(size_t vocab, const double *logits_v, const size_t *taken,
                                 size_t count) {
    size_t best = vocab;
    for (size_t v = 0; v < vocab; v++) {
        bool used = false;
        for (size_t i = 0; i < count; i++) used = used || taken[i] == v;
        if (!used && (best == vocab || logits_v[v] > logits_v[best])) best = v;
    }
    return best;
}

static int32_t next_token(run *r) {
    size_t vocab = run_vocab(r);
    if (!(r->o->temperature > 0)) return (int32_t)next_largest_logit(vocab, r->logits_v, NULL, 0);
    for (size_t v = 0; v < vocab; v++) r->narrow_v[v] = (float)r->logits_v[v];
    return sinkproof_sample_token(vocab, r->narrow_v, r->o->temperature, r->o->seed, r->n);
}

static bool generate_tokens(run *r, sinkproof_error *error) {
    double start = clock_seconds();
    for (size_t g = 0; g < r->o->generate; g++) {
        if (g > 0 && !sinkproof_runner_forward(r->runner, 1, &r->tokens_n[r->n - 1], r->logits_v,
                                               run_observer(r), error))
            return false;
        r->tokens_n[r->n++] = next_token(r);
        show_progress("generated token", g, r->o->generate, clock_seconds() - start);
    }
    show_progress("generated token", 1, 1, 1);
    r->decode_seconds = clock_seconds() - start;
    return true;
}

static json_t *generated_json(const run *r) {
    json_t *ids = json_array();
    for (size_t t = r->n_prompt; t < r->n; t++)
        json_array_append_new(ids, json_integer(r->tokens_n[t]));
    return ids;
}

// The generated text as a quoted JSON string, which the caller frees; NULL without a tokenizer, or
// if an id is not a token (a model's vocabulary may be padded).
static char *generated_text(const run *r) {
    sinkproof_error ignored;
    return r->tokenizer == NULL ? NULL
                                : words_quote_ids(r->tokenizer, r->n - r->n_prompt,
                                                  r->tokens_n + r->n_prompt, &ignored);
}

static void print_generated(const run *r) {
    printf("generated (policy %s", r->policy.name);
    if (r->o->temperature > 0)
        printf(", temperature %g, seed %llu", r->o->temperature, (unsigned long long)r->o->seed);
    printf("):");
    for (size_t t = r->n_prompt; t < r->n; t++) printf(" %d", (int)r->tokens_n[t]);
    printf("\n");
    char *text = generated_text(r);
    if (text != NULL) printf("generated text: %s\n", text);
    free(text);
}

// Describes the engine and its settings.
static void describe_run(const run *r, json_t *result) {
    json_object_set_new(result, "policy", json_string(r->policy.name));
    json_object_set_new(result, "engine", json_string(r->o->how.engine));
    if (sinkproof_runner_isa(r->runner) != NULL) {
        json_object_set_new(result, "isa", json_string(sinkproof_runner_isa(r->runner)));
        json_object_set_new(result, "threads", json_integer(sinkproof_runner_threads(r->runner)));
    }
    json_object_set_new(result, "tokens", json_integer((json_int_t)r->n_prompt));
    if (r->o->generate == 0) return;
    json_object_set_new(result, "generated", generated_json(r));
    char *text = generated_text(r);
    if (text != NULL) json_object_set_new(result, "text", json_loads(text, JSON_DECODE_ANY, NULL));
    free(text);
    if (!(r->o->temperature > 0)) return;
    json_object_set_new(result, "temperature", json_real(r->o->temperature));
    json_object_set_new(result, "seed", json_integer((json_int_t)r->o->seed));
}

// The largest logits after the last token fed, as text and as JSON.
static json_t *report_last_logits(const run *r, bool text) {
    size_t vocab = run_vocab(r), taken[TOP], top = vocab < TOP ? vocab : TOP;
    json_t *ids = json_array(), *values = json_array();
    if (text)
        printf("largest logits after token %zu (policy %s)\n",
               sinkproof_runner_length(r->runner) - 1, r->policy.name);
    for (size_t i = 0; i < top; i++) {
        taken[i] = next_largest_logit(vocab, r->logits_v, taken, i);
        if (text) printf("%8zu  %.17g\n", taken[i], r->logits_v[taken[i]]);
        json_array_append_new(ids, json_integer((json_int_t)taken[i]));
        json_array_append_new(values, sinkproof_number_json(r->logits_v[taken[i]]));
    }
    if (text && r->o->generate > 0) print_generated(r);
    bool has_loss = r->activations != NULL && r->loss.tokens > 0;
    if (text && has_loss)
        printf("loss, the mean cross-entropy of %s: %.17g\n",
               sinkproof_counted(r->loss.tokens, "next token").text, r->loss.value);
    json_t *result = json_object();
    json_object_set_new(result, "id", json_string("model.forward"));
    json_object_set_new(result, "label", json_string("rounded"));
    describe_run(r, result);
    if (has_loss) json_object_set_new(result, "loss", sinkproof_number_json(r->loss.value));
    json_object_set_new(result, "ids", ids);
    json_object_set_new(result, "logits", values);
    return result;
}

// Prints wall-clock time, speed, and the largest resident set. The first generated token needs no
// pass of its own.
static void report_cost(const run *r, double seconds, json_t *result) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double peak = (double)usage.ru_maxrss / 1024; // Linux counts KiB
    double prompt = (double)r->n_prompt / r->prompt_seconds;
    fprintf(stderr, "sinkproof run: %.2f s, peak memory %.0f MiB, prompt %.4g tokens/s", seconds,
            peak, prompt);
    json_object_set_new(result, "seconds", json_real(seconds));
    json_object_set_new(result, "peak_mib", json_real(peak));
    json_object_set_new(result, "prompt_tokens_per_second", sinkproof_number_json(prompt));
    if (r->o->generate > 1) {
        double decode = (double)(r->o->generate - 1) / r->decode_seconds;
        fprintf(stderr, ", generation %.4g tokens/s", decode);
        json_object_set_new(result, "generated_tokens_per_second", sinkproof_number_json(decode));
    }
    fprintf(stderr, "\n");
}

static bool execute_run(run *r, sinkproof_error *error) {
    double start = clock_seconds();
    if (!open_run(r, error) || !run_prompt(r, error) || !generate_tokens(r, error)) return false;
    if (r->activations != NULL && !backward_run(r->model, &r->policy, r->activations,
                                                r->o->gradient, r->writer, &r->loss, error))
        return false;
    if (r->writer != NULL && !sinkproof_trace_writer_finish(r->writer, r->tokens_n, error))
        return false;
    const char *json = r->o->json;
    json_t *result = report_last_logits(r, json == NULL || strcmp(json, "-") != 0);
    report_cost(r, clock_seconds() - start, result);
    json_t *results = json_pack("[o]", result);
    if (json != NULL) return envelope_write_json(json, "run", EXIT_HOLDS, results, error);
    json_decref(results);
    return true;
}

int cmd_run(int argc, char **argv) {
    options o = {.model = NULL};
    sinkproof_runner_list whole;
    command_parse_line(&parser, argc, argv, &o);
    sinkproof_error error = {{0}};
    run r = {.o = &o};
    if (o.points == NULL) o.points = sinkproof_runner_points(o.how.engine, &whole);
    if ((o.points != NULL && !sinkproof_runner_shows(o.how.engine, o.points, &error)) ||
        !engine_settle_policy(&o.how, &r.policy, &error) ||
        (o.backward && !backward_allows(o.how.engine, &error))) {
        fprintf(stderr, "sinkproof run: %s\n", error.text);
        return EXIT_USAGE;
    }
    bool good = execute_run(&r, &error);
    close_run(&r);
    return good ? EXIT_HOLDS : exit_bad_input("run", &error);
}
