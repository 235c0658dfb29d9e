// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks MODEL --tokens IDS` and `sinkproof sinks MODEL TRACE`: runs the model on each
// input, or reads the trace, and passes it to every requested part. The list of parts is below;
// audit/studies/sinks/part.h defines a part.
#include "audit/command/cmd_sinks.h"
#include "audit/command/text.h"
#include "audit/studies/sinks/sinks_page.h"
#include "audit/studies/sinks/trace_shapes.h"
#include "audit/trace/trace_alone.h"
#include "audit/trace/trace_model.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sinkproof_sinks_part *const parts[] = {
    &sinkproof_part_census,  &sinkproof_part_maps,       &sinkproof_part_decompose,
    &sinkproof_part_perturb, &sinkproof_part_strategies, &sinkproof_part_quantise,
    &sinkproof_part_window};
enum { PARTS = sizeof parts / sizeof *parts, KEY_TOKENS = 256, KEY_EPSILON, KEY_HIDE, KEY_PART };
_Static_assert((int)PARTS <= (int)SINKS_PARTS, "the options have room for every part");

// ---- the command line --------------------------------------------------------------------------

static void add_input(sinks_options *o, struct argp_state *state, const char *text) {
    if (o->n_inputs == SINKS_INPUTS)
        argp_error(state, "expected --tokens at most %d times", SINKS_INPUTS);
    o->tokens[o->n_inputs++] = text;
}

static void set_trace_argument(sinks_options *o, struct argp_state *state, const char *text) {
    if (o->trace != NULL) argp_error(state, "expected MODEL and one TRACE, found \"%s\" too", text);
    *(o->model == NULL ? &o->model : &o->trace) = text;
}

static void set_hidden(sinks_options *o, struct argp_state *state, const char *text) {
    char *end, *last = NULL;
    o->hidden.first = strtoull(text, &end, 10);
    bool good = *text >= '0' && *text <= '9' && *end == '@' && end[1] >= '0' && end[1] <= '9';
    if (good) o->hidden.from = strtoull(end + 1, &last, 10);
    if (!good || *last != '\0' || o->hidden.first == 0 || o->hidden.from < o->hidden.first)
        argp_error(state,
                   "--hide: expected K@R: the first K keys hidden from row R on, K from 1 to R, "
                   "found \"%s\"",
                   text);
}

// Maps go to a page or to files; some requests imply them.
static void check_maps(sinks_options *o, struct argp_state *state) {
    bool shown = o->html != NULL || o->svg != NULL;
    for (size_t p = 0; p < PARTS; p++) {
        if (parts[p] != &sinkproof_part_maps) continue;
        if (o->asked[p] && !shown) argp_error(state, "--maps: expected --html or --svg too");
        o->asked[p] = shown;
    }
}

// Without a MODEL these options mean nothing; the error names what is missing.
static void check_sinks_options(sinks_options *o, struct argp_state *state) {
    const engine_choice *how = &o->how;
    bool chosen = how->threads > 0 || how->streamed || how->packed != NULL ||
                  how->engine != sinkproof_runner_names()[0];
    bool ran = chosen || (how->policy != NULL && o->judged == NULL);
    bool measures = o->epsilon_given || o->heads || o->html != NULL || o->svg != NULL;
    if (o->model == NULL && o->alone == NULL && (o->n_inputs > 0 || ran || measures))
        argp_error(state, "expected a MODEL to measure");
    for (size_t p = 0; p < PARTS; p++)
        if (o->alone != NULL && o->asked[p] && parts[p] != &sinkproof_part_maps)
            argp_error(state, "--%s needs a MODEL, not --trace alone", parts[p]->name);
    if (o->alone != NULL && (o->n_inputs > 0 || ran || o->any_model || o->hidden.first > 0))
        argp_error(state, "--trace is measured as it is: expected no --tokens, --engine, --policy, "
                          "--threads, --streamed, --packed, --hide and --any-model");
    if (o->alone != NULL) check_maps(o, state);
    if (o->model == NULL) return;
    check_maps(o, state);
    if (o->any_model && o->trace == NULL) argp_error(state, "--any-model needs a TRACE");
    if (o->trace == NULL && o->n_inputs == 0)
        argp_error(state, "expected --tokens, or a TRACE after MODEL");
    if (o->trace != NULL && (o->n_inputs > 0 || ran))
        argp_error(state, "a TRACE has its tokens, and its engine ran: expected no --tokens, "
                          "--engine, --policy, --threads, --streamed and --packed");
    if (o->hidden.first > 0 && o->trace != NULL)
        argp_error(state, "--hide runs the model: expected --tokens, not a TRACE");
    for (size_t p = 0; p < PARTS; p++)
        if (o->hidden.first > 0 && o->asked[p] && parts[p] != &sinkproof_part_maps)
            argp_error(state, "--hide is of the census alone: expected no --%s", parts[p]->name);
    for (size_t p = 0; p < PARTS; p++)
        if (o->asked[p] && o->trace != NULL && parts[p]->needs_run)
            argp_error(state, "--%s runs the model: expected --tokens, not a TRACE",
                       parts[p]->name);
}

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    sinks_options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &o->how;
        o->epsilon = 0.3;
    } else if (key == KEY_TOKENS)
        add_input(o, state, argument);
    else if (key == KEY_EPSILON) {
        o->epsilon = option_epsilon(state, argument);
        o->epsilon_given = true;
    } else if (key == KEY_HIDE)
        set_hidden(o, state, argument);
    else if (key == ARGP_KEY_ARG)
        set_trace_argument(o, state, argument);
    else if (key == ARGP_KEY_END)
        check_sinks_options(o, state);
    else if (key >= KEY_PART && key < KEY_PART + PARTS) {
        o->asked[key - KEY_PART] = true;
        o->words[key - KEY_PART] = argument;
    } else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option base[] = {
    {"tokens", KEY_TOKENS, "IDS", 0,
     "Ids separated by commas, @FILE, random:N[,seed=S], repeat:N[,seed=S] (one token N times), "
     "text:TEXT, prompt:TEXT or chat:FILE, also behind a beginning (bos+repeat:64, 5,3+random:64); "
     "given several times, each is an input of its own",
     0},
    {"trace", KEPT(sinks_options, alone), "FILE", 0,
     "Measure a trace without its model, of any architecture: maps of A9, or of A10 without the "
     "sink's column, states of T0, A13, M12, values of A2.v, queries and keys of A4; a measure "
     "whose points are missing is a dash",
     0},
    {"epsilon", KEY_EPSILON, "E", 0, "A head has a sink at a key with a mean weight above E (0.3)",
     0},
    {"hide", KEY_HIDE, "K@R", 0,
     "Measure runs whose rows from R on do not see the first K keys, as where padding is masked "
     "(8@8), or a sink on the first token is taken away (1@2)",
     0},
    {"judge", KEPT(sinks_options, judged), "FILE", 0,
     "Judge what an engine of a design computed, step by step (chapter 24), by --policy: what FILE "
     "says, or f32, bf16 or f16, by its tensors",
     0},
    {"heads", KEPT(sinks_options, heads), 0, 0,
     "Every head in the table, not each layer's summary alone", 0},
    HELP_ANY_MODEL(KEPT(sinks_options, any_model)),
    {"html", KEPT(sinks_options, html), "FILE", 0, "write a page with figures: one file, no script",
     0},
    {"svg", KEPT(sinks_options, svg), "DIR", 0, "write each figure as a file of its own", 0}};
enum { BASE = sizeof base / sizeof *base };

// The options of this file, and one for each part but the census.
const struct argp *cmd_sinks_parser(void) {
    static struct argp_option options[BASE + PARTS + 1];
    static const struct argp_child children[] = {{&engine_parser, 0, NULL, 0}, {0}};
    static struct argp parser = {.options = options, .parser = parse_option, .children = children};
    size_t n = 0;
    for (size_t i = 0; i < BASE; i++) options[n++] = base[i];
    for (size_t p = 0; p < PARTS; p++)
        if (parts[p] != &sinkproof_part_census)
            options[n++] = (struct argp_option){
                parts[p]->name, KEY_PART + (int)p, parts[p]->takes, 0, parts[p]->help, 0};
    options[n] = (struct argp_option){0};
    return &parser;
}

// ---- inputs ------------------------------------------------------------------------------------

typedef struct work {
    const sinks_options *o;
    sinkproof_sinks_job job;
    sinkproof_model *model;
    sinkproof_trace *trace;
    sinkproof_trace *sequences[SINKS_INPUTS]; // of several; NULL: the trace is one
    char *names[SINKS_INPUTS];                // of these
    sinkproof_config shapes;                  // of a trace alone
    sinkproof_note note;                      // a note about it
    sinkproof_policy policy;
    engine_choice how;
    sinkproof_sinks_input inputs[SINKS_INPUTS];
    void *states[PARTS];
    progress_watch watch;
    size_t done; // inputs measured so far
} work;

static void show_share(void *context, double share) {
    work *w = context;
    double all = ((double)w->done + share) / (double)w->job.n_inputs;
    progress_show_share(&w->watch, all);
}

static void show_part(void *context, double share) {
    progress_show_share(context, share);
}

// A sequence of a trace, or a trace of one, as an input.
static bool set_sequence(sinkproof_sinks_input *input, const char *name,
                         const sinkproof_trace *trace, sinkproof_error *error) {
    if (!sinkproof_trace_from_start(trace, error)) return false;
    input->text = name;
    input->n = sinkproof_trace_length(trace);
    input->tokens_n = malloc(input->n * sizeof(int32_t));
    if (input->tokens_n == NULL) return sinkproof_fail(error, "no memory for the tokens");
    memcpy(input->tokens_n, sinkproof_trace_tokens(trace), input->n * sizeof(int32_t));
    return true;
}

// Each sequence of a trace of several is an input of its own.
static bool open_sequences(work *w, const char *path, sinkproof_error *error) {
    const sinkproof_config *config =
        w->model != NULL ? sinkproof_model_config(w->model) : &w->shapes;
    size_t n = sinkproof_trace_sequences(w->trace);
    w->job.n_inputs = n;
    if (n == 1) return set_sequence(&w->inputs[0], path, w->trace, error);
    if (n > SINKS_INPUTS) {
        w->job.n_inputs = 0;
        return sinkproof_fail(error, "%.300s: expected at most %s, found %zu", path,
                              sinkproof_counted(SINKS_INPUTS, "sequence").text, n);
    }
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(path) + 40; // the number first: a table shows the begin of a name
        w->names[i] = malloc(size);
        if (w->names[i] == NULL) return sinkproof_fail(error, "no memory for a name");
        snprintf(w->names[i], size, "sequence %zu of %s", i, path);
        if (!sinkproof_trace_alone(w->trace, config, i, &w->sequences[i], error) ||
            !set_sequence(&w->inputs[i], w->names[i], w->sequences[i], error))
            return false;
    }
    return true;
}

static bool open_trace(work *w, sinkproof_error *error) {
    const char *path = w->o->alone != NULL ? w->o->alone : w->o->trace;
    if (w->o->alone != NULL
            ? !sinkproof_trace_shapes(path, &w->shapes, error) ||
                  !sinkproof_trace_open(path, &w->shapes, &w->trace, error)
            : !sinkproof_trace_open_of(path, w->model, w->o->any_model, &w->trace, error) ||
                  !sinkproof_trace_model_note(w->trace, w->model, &w->note, error))
        return false;
    w->job.note = w->note.text;
    w->job.trace = w->trace;
    return open_sequences(w, path, error);
}

// The text of one token, its line ends spelt out.
static char *word_of(const sinkproof_tokenizer *t, int32_t id, sinkproof_error *error) {
    char *text, *word;
    size_t length, at = 0;
    if (!sinkproof_text_printable(t, 1, &id, &text, &length, error)) return NULL;
    word = malloc(2 * length + 1);
    for (size_t i = 0; word != NULL && i < length; i++) {
        bool line = text[i] == '\n';
        if (line) word[at++] = '\\';
        word[at++] = line ? 'n' : text[i];
    }
    if (word != NULL) word[at] = '\0';
    if (word == NULL) sinkproof_fail(error, "no memory for a word");
    free(text);
    return word;
}

// The words of every input, for the page's maps; without a tokenizer beside the model there are
// none, and the maps have positions.
static bool read_words(work *w, sinkproof_error *error) {
    sinkproof_tokenizer *tokenizer;
    sinkproof_error none;
    bool good = true;
    if (!words_open_tokenizer(NULL, w->o->model, &tokenizer, &none)) return true;
    size_t ids = sinkproof_tokenizer_about(tokenizer).ids;
    for (size_t i = 0; good && i < w->job.n_inputs; i++) {
        sinkproof_sinks_input *input = &w->inputs[i];
        bool inside = true;
        for (size_t k = 0; k < input->n; k++) inside &= (size_t)input->tokens_n[k] < ids;
        if (!inside) continue; // another model's tokenizer
        input->word_n = calloc(input->n, sizeof *input->word_n);
        good = input->word_n != NULL || sinkproof_fail(error, "no memory for the words");
        for (size_t k = 0; good && k < input->n; k++)
            good = (input->word_n[k] = word_of(tokenizer, input->tokens_n[k], error)) != NULL;
    }
    sinkproof_tokenizer_free(tokenizer);
    return good;
}

static bool open_inputs(work *w, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(w->model);
    size_t most = 0;
    w->job.n_inputs = w->o->n_inputs;
    for (size_t i = 0; i < w->o->n_inputs; i++) {
        sinkproof_sinks_input *input = &w->inputs[i];
        input->text = w->o->tokens[i];
        if (!command_tokens_from_text(input->text, w->o->model, config->vocab, &input->tokens_n,
                                      &input->n, error))
            return false;
        if (input->n > config->max_context)
            return sinkproof_fail(error, "%s exceed the model's context of %zu",
                                  sinkproof_counted(input->n, "token").text, config->max_context);
        most = input->n > most ? input->n : most;
    }
    engine_choose_suited(&w->how, config, most);
    w->job.hidden = w->o->hidden;
    if (!engine_settle_policy(&w->how, &w->policy, error)) return false;
    w->job.policy = &w->policy;
    w->job.how = engine_runner_options(&w->how, most);
    if ((w->o->html != NULL || w->o->svg != NULL) && !read_words(w, error)) return false;
    if (w->o->hidden.first > 0 && !sinkproof_runner_replaces(w->how.engine, &w->policy, TRACE_A11))
        return sinkproof_fail(error,
                              "--hide: %s does not go on from A11 under this policy, expected one "
                              "of --engine ref or --policy f32",
                              w->how.engine);
    return engine_runner_start("sinks", &w->how, w->model, &w->policy, most, &w->job.runner, error);
}

static bool part_is_wanted(const work *w, size_t p) {
    return parts[p] == &sinkproof_part_census || w->o->asked[p];
}

static void show_map(void *context, const sinkproof_map_rows *rows) {
    work *w = context;
    for (size_t p = 0; p < PARTS; p++)
        if (part_is_wanted(w, p) && parts[p]->map != NULL)
            parts[p]->map(w->states[p], w->done, rows);
}

static bool part_takes_point(const work *w, size_t p, sinkproof_trace_point point) {
    bool named = false;
    for (size_t k = 0; k < parts[p]->n_points; k++) named = named || parts[p]->points[k] == point;
    return part_is_wanted(w, p) && named;
}

static bool show_point(void *context, sinkproof_trace_point point, size_t layer, size_t head,
                       const double *values, sinkproof_error *error) {
    work *w = context;
    bool good = true;
    for (size_t p = 0; p < PARTS; p++)
        if (part_takes_point(w, p, point))
            good =
                good && parts[p]->point(w->states[p], w->done, point, layer, head, values, error);
    return good;
}

static bool show_end(void *context, size_t layer, sinkproof_error *error) {
    work *w = context;
    bool good = true;
    for (size_t p = 0; p < PARTS; p++)
        if (part_is_wanted(w, p) && parts[p]->layer_end != NULL)
            good = good && parts[p]->layer_end(w->states[p], w->done, layer, error);
    return good;
}

static bool measure_sinks(work *w, sinkproof_error *error) {
    sinkproof_census_options options = {.epsilon = w->o->epsilon,
                                        .hidden = w->o->hidden,
                                        .point = show_point,
                                        .layer_end = show_end,
                                        .also_context = w,
                                        .progress = show_share,
                                        .progress_context = w};
    for (size_t p = 0; p < PARTS; p++) {
        if (!part_is_wanted(w, p)) continue;
        if (parts[p]->prepare != NULL &&
            !parts[p]->prepare(&w->job, w->o->words[p], &w->states[p], error))
            return false;
        if (parts[p]->map != NULL) options.map = show_map;
        for (int point = 0; point < TRACE_POINTS; point++)
            options.also[point] |= part_takes_point(w, p, (sinkproof_trace_point)point);
    }
    options.map_context = w;
    w->watch = (progress_watch){.command = "sinks", .what = "layers"};
    double began = clock_seconds();
    for (w->done = 0; w->done < w->job.n_inputs; w->done++) {
        sinkproof_sinks_input *input = &w->inputs[w->done];
        if (w->trace != NULL) {
            const sinkproof_trace *of = w->sequences[w->done];
            if (!sinkproof_census_trace(w->model, w->job.config, of != NULL ? of : w->trace,
                                        &options, &input->census, error))
                return false;
            continue;
        }
        sinkproof_runner_reset(w->job.runner);
        if (!sinkproof_census_run(w->model, w->job.runner, input->n, input->tokens_n, &options,
                                  &input->census, error))
            return false;
    }
    w->job.seconds = clock_seconds() - began;
    return true;
}

// ---- parts -------------------------------------------------------------------------------------

static bool run_parts(work *w, sinkproof_error *error) {
    bool good = true;
    for (size_t p = 0; good && p < PARTS; p++) {
        if (!part_is_wanted(w, p) || parts[p]->run == NULL) continue;
        w->watch = (progress_watch){.command = "sinks", .what = parts[p]->name};
        w->job.progress = show_part;
        w->job.progress_context = &w->watch;
        good = parts[p]->run(&w->job, w->o->words[p], &w->states[p], error);
        progress_show_share(&w->watch, 1);
    }
    return good;
}

static bool write_pages(work *w, sinkproof_error *error) {
    const sinkproof_sinks_part *shown[PARTS];
    void *states[PARTS];
    size_t n = 0;
    for (size_t p = 0; p < PARTS; p++) {
        if (!part_is_wanted(w, p)) continue;
        shown[n] = parts[p];
        states[n++] = w->states[p];
    }
    if (w->o->html != NULL && !sinkproof_sinks_page(w->o->html, &w->job, n, shown, states, error))
        return false;
    return w->o->svg == NULL || sinkproof_sinks_svg(w->o->svg, &w->job, n, shown, states, error);
}

static bool write_out(const work *w, const char *json, sinkproof_error *error) {
    bool print = json == NULL || strcmp(json, "-") != 0;
    note_tell(w->note.text, print);
    json_t *results = json_array();
    for (size_t p = 0; p < PARTS; p++) {
        if (!part_is_wanted(w, p)) continue;
        if (print && parts[p]->print != NULL) parts[p]->print(w->states[p], &w->job, stdout);
        if (parts[p]->json != NULL) parts[p]->json(w->states[p], &w->job, results);
    }
    if (json != NULL) return envelope_write_json(json, "sinks", EXIT_HOLDS, results, error);
    json_decref(results);
    return true;
}

static void close_work(work *w) {
    for (size_t p = 0; p < PARTS; p++)
        if (parts[p]->free != NULL) parts[p]->free(w->states[p]);
    for (size_t i = 0; i < SINKS_INPUTS; i++) {
        sinkproof_census_free(&w->inputs[i].census);
        for (size_t k = 0; w->inputs[i].word_n != NULL && k < w->inputs[i].n; k++)
            free(w->inputs[i].word_n[k]);
        free(w->inputs[i].word_n);
        free(w->inputs[i].tokens_n);
        sinkproof_trace_close(w->sequences[i]);
        free(w->names[i]);
    }
    sinkproof_runner_free(w->job.runner);
    sinkproof_trace_close(w->trace);
    sinkproof_model_close(w->model);
}

int cmd_sinks_model(const sinks_options *o, const char *json) {
    sinkproof_error error = {{0}};
    work w = {.o = o, .how = o->how};
    engine_choice said = o->how; // an invalid policy is a usage error
    bool traced = o->trace != NULL || o->alone != NULL;
    if (!traced && !engine_settle_policy(&said, &w.policy, &error)) {
        fprintf(stderr, "sinkproof sinks: %s\n", error.text);
        return EXIT_USAGE;
    }
    bool good = o->alone != NULL || sinkproof_model_open(o->model, &w.model, &error);
    w.job = (sinkproof_sinks_job){.model_name = o->alone != NULL ? o->alone : o->model,
                                  .model = w.model,
                                  .config =
                                      w.model != NULL ? sinkproof_model_config(w.model) : &w.shapes,
                                  .inputs = w.inputs,
                                  .epsilon = o->epsilon,
                                  .every_head = o->heads};
    good = good && (traced ? open_trace(&w, &error) : open_inputs(&w, &error));
    good = good && measure_sinks(&w, &error) && run_parts(&w, &error) && write_pages(&w, &error) &&
           write_out(&w, json, &error);
    close_work(&w);
    return good ? EXIT_HOLDS : exit_bad_input("sinks", &error);
}
