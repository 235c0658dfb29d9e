// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL TRACE...`: prints the verdict on an engine's trace.
#include "audit/command/bisect.h"
#include "audit/command/command.h"
#include "audit/command/text.h"
#include "audit/face/ruling.h"
#include "audit/plugin/plugin.h"
#include "audit/report/report.h"

#include <argp.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *policy, *json, *html, *bisect, *tokens;
    char **traces;
    size_t n_traces;
    double rate;
    bool strict, all, local_only, no_hint, forms, no_diagnosis, any_model;
    sinkproof_plugin_options plugin; // stages in a shared object, instead of traces
} options;

enum { RATE = 256, SECONDS, SEED };

static const struct argp_option argp_options[] = {
    {"policy", 'p', "POLICY", 0,
     "what the engine declares: auto (default: the narrowest known policy that the trace fits), "
     "POLICIES, with overrides "
     "(f32,exp=4ulp,div=2ulp; openai-bf16,M8.alpha=bf16)",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the report)", 0},
    {"html", KEPT(options, html), "FILE", 0,
     "write a page to attach to a bug report too: one file, no script, nothing to fetch", 0},
    {"strict", KEPT(options, strict), 0, 0,
     "a suspicious trace exits 1, not 4; one with points undecided exits 4, not 0", 0},
    {"all", KEPT(options, all), 0, 0, "one line per layer and point, not one per point", 0},
    {"rate", RATE, "P", 0,
     "false alarms per tensor of the likely set, drift and spread, and of the drift of a point's "
     "layers together (default 1e-9)",
     0},
    {"local", KEPT(options, local_only), 0, 0, "leave out the comparison with the truth end to end",
     0},
    {"no-hint", KEPT(options, no_hint), 0, 0, "do not look for overrides that would explain a bug",
     0},
    {"no-diagnosis", KEPT(options, no_diagnosis), 0, 0,
     "do not look for the known mistakes, one or two together, that explain a bug", 0},
    {"bisect", KEPT(options, bisect), "CMD", 0,
     "no TRACE, but a shell command that writes one of {tokens} (ids) to {out}: run on ever fewer "
     "of "
     "the first tokens, until n of them fail and n - 1 do not; without {out} its exit code says "
     "it, "
     "0 or 1; {n} is how many",
     0},
    {"tokens", KEPT(options, tokens), "IDS", 0,
     "of --bisect: ids separated by commas, @FILE, random:N[,seed=S], repeat:N[,seed=S], "
     "text:TEXT, prompt:TEXT or chat:FILE",
     0},
    HELP_ANY_MODEL(KEPT(options, any_model)),
    {"forms", KEPT(options, forms), 0, 0,
     "name the form that the trace fits, where the policy admits several and only one fits: one "
     "more judgement per form (up to nine); --all names several too",
     0},
    {"plugin", KEPT(options, plugin.path), "ENGINE.so", 0,
     "judge the stages of a shared object in place of traces (or of builtin:fast): called over "
     "lengths, windows, heads and sinks, each call by its honest set; a MODEL's sizes, or small "
     "ones",
     1},
    {"stages", KEPT(options, plugin.stages), "LIST", 0, "these stages alone: attention,swiglu", 1},
    {"case", KEPT(options, plugin.only), "CALL", 0, "one call, as a report prints it", 1},
    {"first", KEPT(options, plugin.first), 0, 0, "leave a stage at the first calls that fail", 1},
    {"seed", SEED, "S", 0, "of the inputs (default 1)", 1},
    {"seconds", SECONDS, "S", 0, "that one call may take before it counts as hung (default 30)", 1},
    {"emit", KEPT(options, plugin.emit), "DIR", 0,
     "write the inputs of all calls and a manifest there, for an engine in any language", 1},
    {"collect", KEPT(options, plugin.collect), "DIR", 0,
     "judge the outputs that it wrote beside them", 1},
    {0}};

static double parse_rate(struct argp_state *state, const char *text) {
    char *end;
    double rate = strtod(text, &end);
    if (*end != '\0' || !(rate > 0 && rate < 1))
        argp_error(state, "--rate is a probability between 0 and 1, not '%s'", text);
    return rate;
}

static bool is_plugin(const options *o) {
    return o->plugin.path != NULL || o->plugin.emit != NULL || o->plugin.collect != NULL;
}

static void parse_number(struct argp_state *state, options *o, int key, const char *text) {
    char *end;
    if (key == SEED)
        o->plugin.seed = strtoull(text, &end, 10);
    else
        o->plugin.seconds = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(o->plugin.seconds > 0 && o->plugin.seconds < 1e6))
        argp_error(state, "--%s is a number, not '%s'", key == SEED ? "seed" : "seconds", text);
}

static void check_words(struct argp_state *state, const options *o) {
    sinkproof_error error;
    if (is_plugin(o) && o->n_traces > 0) argp_error(state, "a plug-in takes a MODEL and no TRACE");
    if (!is_plugin(o) && (o->plugin.stages != NULL || o->plugin.only != NULL))
        argp_error(state, "--stages and --case ask for a --plugin");
    if ((o->plugin.emit != NULL) + (o->plugin.collect != NULL) + (o->plugin.path != NULL) > 1)
        argp_error(state, "one of --plugin, --emit and --collect");
    if (o->bisect != NULL &&
        (o->model == NULL || o->tokens == NULL || o->n_traces > 0 || is_plugin(o)))
        argp_error(state, "--bisect needs a MODEL, --tokens and no TRACE");
    if (!is_plugin(o) && o->bisect == NULL && o->n_traces == 0)
        argp_error(state, "a MODEL and at least one TRACE are needed");
    sinkproof_plugin_options plugin = o->plugin;
    plugin.policy = strcmp(o->policy, "auto") == 0 ? NULL : o->policy;
    if (is_plugin(o) && !sinkproof_plugin_check(&plugin, &error))
        argp_error(state, "%s", error.text);
}

static error_t parse_judge_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == 'p')
        o->policy = argument;
    else if (key == 'j')
        o->json = argument;
    else if (key == SECONDS || key == SEED)
        parse_number(state, o, key, argument);
    else if (key == RATE)
        o->rate = parse_rate(state, argument);
    else if (key == ARGP_KEY_ARG && o->model == NULL)
        o->model = argument;
    else if (key == ARGP_KEY_ARG)
        o->traces[o->n_traces++] = argument;
    else if (key == ARGP_KEY_END)
        check_words(state, o);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {
    argp_options,
    parse_judge_option,
    "MODEL TRACE...\n--bisect=CMD --tokens=IDS MODEL\n--plugin=ENGINE.so [MODEL]\n--emit=DIR "
    "[MODEL]\n--collect=DIR [MODEL]",
    "Judge an engine's traces: is every tensor, computed from the engine's own inputs to that "
    "operation, "
    "inside what honest rounding can do?\v" HELP_MODEL_IS ". A TRACE is a "
    "safetensors file in the format sinkproof-trace-1.\n\n"
    "Exit: 0 within bounds, 1 a bug, 2 usage, 3 bad input or a trace of another model, 4 "
    "suspicious, "
    "nothing decided,"
    " or NaN that nothing bounds.",
    NULL,
    help_list_policies,
    NULL};

// ---- judging

// Shows judgements one after the other, each on a line of its own.
static void show_progress(void *context, const char *what, double share) {
    progress_watch *watch = context;
    if (watch->what == NULL) *watch = (progress_watch){.command = "judge", .what = what};
    progress_show_share(watch, share);
    if (share >= 1) watch->what = NULL;
}

// Every judged trace of the command line: the data of the page and the JSON.
typedef struct judged {
    sinkproof_page_trial *trials; // [n_traces]; the judged ones come first
    size_t n;
    json_t *results;
} judged;

// Judges one trace, prints its report unless `silent`, and returns its exit code. A refused trace
// has no report.
static int judge_one(const sinkproof_model *model, const char *path, const options *o, bool silent,
                     judged *all) {
    sinkproof_error error;
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
    progress_watch watch = {.what = NULL};
    sinkproof_trial_options how = {.size = sizeof how,
                                   .policy = o->policy,
                                   .name = path,
                                   .rate = o->rate,
                                   .strict = o->strict,
                                   .all = o->all,
                                   .local = o->local_only,
                                   .no_hint = o->no_hint,
                                   .forms = o->forms,
                                   .no_diagnosis = o->no_diagnosis,
                                   .any_model = o->any_model,
                                   .progress = show_progress,
                                   .context = &watch};
    if (!sinkproof_trace_open_of(path, model, o->any_model, &trace, &error))
        return exit_bad_input("judge", &error);
    if (!sinkproof_judge_trace(model, trace, &how, &ruling, &error)) {
        sinkproof_trace_close(trace);
        return exit_bad_input("judge", &error);
    }
    if (!silent) fputs(sinkproof_ruling_text(ruling), stdout);
    size_t i;
    json_t *result;
    json_array_foreach(sinkproof_ruling_results(ruling), i, result)
        json_array_append(all->results, result);
    all->trials[all->n++] = (sinkproof_page_trial){path, trace, ruling};
    return sinkproof_ruling_exit(ruling);
}

static int write_files(const options *o, const sinkproof_model *model, judged *all, int worst) {
    sinkproof_error error;
    if (o->html != NULL &&
        !sinkproof_report_write(o->html, model, o->model, all->n, all->trials, &error))
        return exit_bad_input("judge", &error);
    return exit_with_results(o->json, "judge", worst, json_incref(all->results));
}

static int judge_traces(const options *o, const sinkproof_model *model, judged *all) {
    bool silent = o->json != NULL && strcmp(o->json, "-") == 0;
    int worst = EXIT_HOLDS;
    for (size_t t = 0; t < o->n_traces; t++) {
        int code = judge_one(model, o->traces[t], o, silent, all);
        if (!silent && code != EXIT_BAD_INPUT && t + 1 < o->n_traces) printf("\n");
        // order: 0 holds < 4 suspicious < 1 bug < 3 bad input
        static const int weight[] = {0, 2, 4, 3, 1};
        if (weight[code] > weight[worst]) worst = code;
    }
    // after a refused trace nothing is written
    return worst == EXIT_BAD_INPUT ? worst : write_files(o, model, all, worst);
}

static int bisect_prompt_length(const options *o, const sinkproof_model *model) {
    sinkproof_error error;
    int32_t *tokens;
    size_t n;
    if (!command_tokens_from_text(o->tokens, o->model, sinkproof_model_config(model)->vocab,
                                  &tokens, &n, &error))
        return exit_bad_input("judge", &error);
    int code = bisect_prompt(&(bisect_request){.model = model,
                                               .command = o->bisect,
                                               .policy = o->policy,
                                               .n = n,
                                               .tokens_n = tokens,
                                               .rate = o->rate,
                                               .any_model = o->any_model});
    free(tokens);
    return code;
}

// Judges every trace on the command line and returns the worst exit code.
static int judge_all(const options *o) {
    sinkproof_error error;
    sinkproof_policy policy;
    sinkproof_model *model;
    if (strcmp(o->policy, "auto") != 0 && !sinkproof_policy_parse(o->policy, &policy, &error)) {
        fprintf(stderr, "sinkproof judge: %s\n", error.text);
        return EXIT_USAGE;
    }
    if (!sinkproof_model_open(o->model, &model, &error)) return exit_bad_input("judge", &error);
    if (o->bisect != NULL) {
        int found = bisect_prompt_length(o, model);
        sinkproof_model_close(model);
        return found;
    }
    judged all = {calloc(o->n_traces, sizeof *all.trials), 0, json_array()};
    if (all.trials == NULL || all.results == NULL) abort();
    int code = judge_traces(o, model, &all);
    for (size_t t = 0; t < all.n; t++) {
        sinkproof_ruling_free(all.trials[t].ruling);
        sinkproof_trace_close(all.trials[t].trace);
    }
    free(all.trials);
    json_decref(all.results);
    sinkproof_model_close(model);
    return code;
}

// ---- a plug-in

static void show_stage(void *context, const char *stage, double share) {
    show_progress(context, stage, share);
}

static int judge_plugin(const options *o) {
    sinkproof_error error;
    sinkproof_plugin_ruling ruling;
    progress_watch watch = {.what = NULL};
    sinkproof_plugin_options how = o->plugin;
    how.policy = strcmp(o->policy, "auto") == 0 ? NULL : o->policy;
    how.model = o->model;
    how.rate = o->rate;
    how.strict = o->strict;
    how.any_model = o->any_model;
    how.no_cause = o->no_diagnosis;
    how.progress = show_stage;
    how.context = &watch;
    if (!sinkproof_judge_plugin(&how, &ruling, &error)) return exit_bad_input("judge", &error);
    if (o->json == NULL || strcmp(o->json, "-") != 0) fputs(ruling.text, stdout);
    free(ruling.text);
    return exit_with_results(o->json, "judge", ruling.exit, ruling.results);
}

// The judge allocates and frees the same large pieces for each part of each layer: if the process
// keeps them, the system need not clear them every time.
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int cmd_judge(int argc, char **argv) {
    options o = {.policy = "auto", .rate = 1e-9, .plugin = {.seconds = 30, .seed = 1}};
    o.traces = calloc((size_t)argc, sizeof *o.traces);
    if (o.traces == NULL) abort();
    command_parse_line(&argp, argc, argv, &o);
    keep_memory();
    int code = is_plugin(&o) ? judge_plugin(&o) : judge_all(&o);
    free(o.traces);
    return code;
}
