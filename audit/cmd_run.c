// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// sinkproof run: tokens to logits, by the reference. Standard output holds the result and nothing
// else; time and memory go to standard error; a failed run leaves no trace behind.
#include "audit/command.h"
#include "audit/trace_write.h"
#include "ref/forward.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { TOP = 5, TAIL = 16, MAX_CHUNK = 1 << 24 };

typedef struct options {
    const char *model, *tokens, *engine, *policy, *trace, *points, *json;
    size_t chunk, generate; // 0: not given
} options;

enum {
    KEY_TOKENS = 256,
    KEY_ENGINE,
    KEY_POLICY,
    KEY_TRACE,
    KEY_POINTS,
    KEY_CHUNK,
    KEY_GENERATE,
    KEY_JSON
};

static const struct argp_option argp_options[] = {
    {"tokens", KEY_TOKENS, "IDS", 0, "Ids separated by commas, @FILE, or random:N[,seed=S]", 0},
    {"engine", KEY_ENGINE, "NAME", 0, "ref (the default)", 0},
    {"policy", KEY_POLICY, "P", 0,
     "What rounds where: real-f64 (the default), f32, bf16-operands, openai-bf16, hf-bf16, bf16, "
     "f16, each with overrides",
     0},
    {"trace", KEY_TRACE, "OUT.safetensors", 0, "Write every named point", 0},
    {"points", KEY_POINTS, "LIST", 0, "Only these points in the trace: A9, 03.M8, A4", 0},
    {"chunk", KEY_CHUNK, "N", 0, "Feed the prompt N tokens at a time: the same bits", 0},
    {"generate", KEY_GENERATE, "N", 0,
     "Append N tokens, each the largest logit (the lower id in a tie)", 0},
    {"json", KEY_JSON, "FILE", 0, "The result as JSON; - is standard output", 0},
    {0},
};

static size_t parse_count(struct argp_state *state, const char *name, const char *text) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n == 0 || n > MAX_CHUNK)
        argp_error(state, "--%s %s: expected a number from 1 to %d", name, text, MAX_CHUNK);
    return (size_t)n;
}

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case KEY_TOKENS:
        o->tokens = argument;
        break;
    case KEY_ENGINE:
        o->engine = argument;
        break;
    case KEY_POLICY:
        o->policy = argument;
        break;
    case KEY_TRACE:
        o->trace = argument;
        break;
    case KEY_POINTS:
        o->points = argument;
        break;
    case KEY_JSON:
        o->json = argument;
        break;
    case KEY_CHUNK:
        o->chunk = parse_count(state, "chunk", argument);
        break;
    case KEY_GENERATE:
        o->generate = parse_count(state, "generate", argument);
        break;
    case ARGP_KEY_ARG:
        if (o->model != NULL) argp_error(state, "one MODEL, not also '%s'", argument);
        o->model = argument;
        break;
    case ARGP_KEY_END:
        if (o->model == NULL) argp_error(state, "expected a MODEL");
        if (o->tokens == NULL) argp_error(state, "expected --tokens");
        if (o->points != NULL && o->trace == NULL) argp_error(state, "--points needs --trace");
        if (strcmp(o->engine, "fast") == 0) argp_error(state, "--engine fast is not built yet");
        if (strcmp(o->engine, "ref") != 0)
            argp_error(state, "unknown engine '%s': known is ref", o->engine);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp parser = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "MODEL --tokens IDS",
    .doc = "Runs the model on the tokens and prints the largest logits after the last one."
           "\vMODEL is a directory or synthetic:NAME[,seed=N][,layers=N].",
};

// Everything that a run holds.
typedef struct run {
    const options *o;
    sinkproof_model *model;
    sinkproof_policy policy;
    sinkproof_session *session;
    sinkproof_trace_writer *writer; // NULL without --trace
    int32_t *tokens_n;              // [n_prompt + generate]
    size_t n_prompt, n;             // n: tokens so far
    size_t rows;                    // in logits_nv
    double *logits_nv;              // the last row is the last token's
} run;

static size_t vocab_of(const run *r) {
    return sinkproof_model_config(r->model)->vocab;
}

static bool open_run(run *r, sinkproof_error *error) {
    const options *o = r->o;
    if (!sinkproof_model_open(o->model, &r->model, error)) return false;
    if (!sinkproof_parse_tokens(o->tokens, vocab_of(r), &r->tokens_n, &r->n_prompt, error))
        return false;
    r->n = r->n_prompt;
    size_t total = r->n_prompt + o->generate;
    int32_t *longer = realloc(r->tokens_n, total * sizeof *longer);
    if (longer == NULL) return sinkproof_fail(error, "no memory for %zu tokens", total);
    r->tokens_n = longer;
    r->session = sinkproof_session_new(r->model, &r->policy);
    r->rows = r->n_prompt < TAIL ? r->n_prompt : TAIL;
    r->logits_nv = calloc(r->rows * vocab_of(r), sizeof *r->logits_nv);
    if (r->session == NULL || r->logits_nv == NULL)
        return sinkproof_fail(error, "no memory for a session");
    if (o->trace == NULL) return true;
    // The last generated token is printed, not fed back: it has no activations.
    size_t traced = o->generate > 0 ? total - 1 : total;
    return sinkproof_trace_writer_new(o->trace, r->model, &r->policy, "sinkproof ref", o->points,
                                      traced, &r->writer, error);
}

static void close_run(run *r) {
    sinkproof_trace_writer_free(r->writer);
    sinkproof_session_free(r->session);
    sinkproof_model_close(r->model);
    free(r->tokens_n);
    free(r->logits_nv);
}

static const sinkproof_observer *observer_of(const run *r) {
    return r->writer != NULL ? sinkproof_trace_writer_observer(r->writer) : NULL;
}

// The prompt, in chunks. Logits are kept for the last chunk's last rows only.
static bool run_prompt(run *r, sinkproof_error *error) {
    size_t chunk = r->o->chunk > 0 ? r->o->chunk : r->n_prompt;
    size_t body = r->n_prompt - r->rows; // tokens whose logits nobody asked for
    if (r->writer != NULL || r->o->chunk > 0) body = r->n_prompt;
    size_t done = 0;
    while (done < body) {
        size_t m = body - done < chunk ? body - done : chunk;
        bool last = done + m == r->n_prompt;
        double *logits = NULL;
        if (last) { // chunks given, or a trace: this one's logits are the result
            free(r->logits_nv);
            r->rows = m;
            r->logits_nv = logits = calloc(m * vocab_of(r), sizeof *logits);
            if (logits == NULL) return sinkproof_fail(error, "no memory for the logits");
        }
        sinkproof_progress("run", "token", done, r->n_prompt);
        if (!sinkproof_forward(r->session, m, r->tokens_n + done, logits, observer_of(r), error))
            return false;
        done += m;
    }
    sinkproof_progress("run", "token", r->n_prompt, r->n_prompt);
    return done == r->n_prompt ||
           sinkproof_forward(r->session, r->rows, r->tokens_n + done, r->logits_nv, NULL, error);
}

// The largest logit's id below the one at `rank`; ties in ascending id.
static size_t next_best(size_t vocab, const double *logits_v, const size_t *taken, size_t count) {
    size_t best = vocab;
    for (size_t v = 0; v < vocab; v++) {
        bool used = false;
        for (size_t i = 0; i < count; i++) used = used || taken[i] == v;
        if (!used && (best == vocab || logits_v[v] > logits_v[best])) best = v;
    }
    return best;
}

static bool generate(run *r, sinkproof_error *error) {
    for (size_t g = 0; g < r->o->generate; g++) {
        if (g > 0) {
            int32_t token = r->tokens_n[r->n - 1];
            r->rows = 1;
            if (!sinkproof_forward(r->session, 1, &token, r->logits_nv, observer_of(r), error))
                return false;
        }
        const double *logits_v = r->logits_nv + (r->rows - 1) * vocab_of(r);
        r->tokens_n[r->n++] = (int32_t)next_best(vocab_of(r), logits_v, NULL, 0);
        sinkproof_progress("run", "generated token", g, r->o->generate);
    }
    sinkproof_progress("run", "generated token", 1, 1);
    return true;
}

static json_t *generated_json(const run *r) {
    json_t *ids = json_array();
    for (size_t t = r->n_prompt; t < r->n; t++)
        json_array_append_new(ids, json_integer(r->tokens_n[t]));
    return ids;
}

// JSON has no NaN: what is not a number is null there.
static json_t *number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static void print_generated(const run *r) {
    printf("generated (policy %s):", r->policy.name);
    for (size_t t = r->n_prompt; t < r->n; t++) printf(" %d", (int)r->tokens_n[t]);
    printf("\n");
}

// The largest logits after the last token that was fed, as text and as JSON.
static json_t *report(const run *r, bool text) {
    size_t vocab = vocab_of(r), taken[TOP], top = vocab < TOP ? vocab : TOP;
    const double *logits_v = r->logits_nv + (r->rows - 1) * vocab;
    json_t *ids = json_array(), *values = json_array();
    if (text)
        printf("largest logits after token %zu (policy %s)\n",
               sinkproof_session_length(r->session) - 1, r->policy.name);
    for (size_t i = 0; i < top; i++) {
        taken[i] = next_best(vocab, logits_v, taken, i);
        if (text) printf("%8zu  %.17g\n", taken[i], logits_v[taken[i]]);
        json_array_append_new(ids, json_integer((json_int_t)taken[i]));
        json_array_append_new(values, number(logits_v[taken[i]]));
    }
    if (text && r->o->generate > 0) print_generated(r);
    json_t *result = json_object();
    json_object_set_new(result, "id", json_string("model.forward"));
    json_object_set_new(result, "label", json_string("rounded"));
    json_object_set_new(result, "policy", json_string(r->policy.name));
    json_object_set_new(result, "tokens", json_integer((json_int_t)r->n_prompt));
    json_object_set_new(result, "ids", ids);
    json_object_set_new(result, "logits", values);
    if (r->o->generate > 0) json_object_set_new(result, "generated", generated_json(r));
    return result;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Wall-clock time and the process's largest resident set.
static void report_cost(double seconds, json_t *result) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double peak = (double)usage.ru_maxrss / 1024; // Linux counts KiB
    fprintf(stderr, "sinkproof run: %.2f s, peak memory %.0f MiB\n", seconds, peak);
    json_object_set_new(result, "seconds", json_real(seconds));
    json_object_set_new(result, "peak_mib", json_real(peak));
}

static bool execute(run *r, sinkproof_error *error) {
    double start = seconds_now();
    if (!open_run(r, error) || !run_prompt(r, error) || !generate(r, error)) return false;
    if (r->writer != NULL && !sinkproof_trace_writer_finish(r->writer, r->tokens_n, error))
        return false;
    const char *json = r->o->json;
    json_t *result = report(r, json == NULL || strcmp(json, "-") != 0);
    report_cost(seconds_now() - start, result);
    json_t *results = json_pack("[o]", result);
    if (json != NULL) return sinkproof_write_json(json, "run", SINKPROOF_HOLDS, results, error);
    json_decref(results);
    return true;
}

int sinkproof_cmd_run(int argc, char **argv) {
    options o = {.engine = "ref", .policy = "real-f64"};
    argp_err_exit_status = SINKPROOF_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0) return SINKPROOF_USAGE;
    sinkproof_error error = {{0}};
    run r = {.o = &o};
    if (!sinkproof_policy_parse(o.policy, &r.policy, &error)) {
        fprintf(stderr, "sinkproof run: %s\n", error.text);
        return SINKPROOF_USAGE;
    }
    bool good = execute(&r, &error);
    close_run(&r);
    return good ? SINKPROOF_HOLDS : sinkproof_bad_input("run", &error);
}
