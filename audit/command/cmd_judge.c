// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL TRACE...`: the verdict on an engine's trace.
#include "audit/command/command.h"
#include "audit/judge/ruling.h"
#include "audit/report/report.h"

#include <argp.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *policy, *json, *html;
    char **traces;
    size_t n_traces;
    double rate;
    bool strict, all, local_only, no_hint, forms;
} options;

enum { RATE = 1000, STRICT, ALL_LAYERS, LOCAL, NO_HINT, FORMS, HTML };

static const struct argp_option argp_options[] = {
    {"policy", 'p', "POLICY", 0,
     "what the engine declares: auto (default: the narrowest known policy that the trace fits), "
     "real-f64, f32, bf16-operands, openai-bf16, hf-bf16, llama-cpp, llama-cpp-flash, mlx, "
     "vllm-bf16, bf16, f16, with overrides "
     "(f32,exp=4ulp; openai-bf16,M8.alpha=bf16)",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the report)", 0},
    {"html", HTML, "FILE", 0,
     "write a page to attach to a bug report too: one file, no script, nothing to fetch", 0},
    {"strict", STRICT, 0, 0,
     "a suspicious trace exits 1, not 4; one with points undecided exits 4, not 0", 0},
    {"all", ALL_LAYERS, 0, 0, "one line per layer and point, not one per point", 0},
    {"rate", RATE, "P", 0, "false alarms per tensor of the likely set and of drift (default 1e-9)",
     0},
    {"local", LOCAL, 0, 0, "leave out the comparison with the truth end to end", 0},
    {"no-hint", NO_HINT, 0, 0, "do not look for one override that would explain a bug", 0},
    {"forms", FORMS, 0, 0,
     "name the form that the trace fits, where the policy admits several and only one fits: one "
     "more judgement per form (up to nine); --all names several too",
     0},
    {0}};

// The flag that an option raises, or NULL.
static bool *flag_of(options *o, int key) {
    switch (key) {
    case STRICT:
        return &o->strict;
    case ALL_LAYERS:
        return &o->all;
    case LOCAL:
        return &o->local_only;
    case NO_HINT:
        return &o->no_hint;
    case FORMS:
        return &o->forms;
    default:
        return NULL;
    }
}

static double parse_rate(struct argp_state *state, const char *text) {
    char *end;
    double rate = strtod(text, &end);
    if (*end != '\0' || !(rate > 0 && rate < 1))
        argp_error(state, "--rate is a probability between 0 and 1, not '%s'", text);
    return rate;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    bool *flag = flag_of(o, key);
    if (flag != NULL)
        *flag = true;
    else if (key == 'p')
        o->policy = argument;
    else if (key == 'j')
        o->json = argument;
    else if (key == HTML)
        o->html = argument;
    else if (key == RATE)
        o->rate = parse_rate(state, argument);
    else if (key == ARGP_KEY_ARG && o->model == NULL)
        o->model = argument;
    else if (key == ARGP_KEY_ARG)
        o->traces[o->n_traces++] = argument;
    else if (key == ARGP_KEY_END && o->n_traces == 0)
        argp_error(state, "a MODEL and at least one TRACE are needed");
    else if (key != ARGP_KEY_END)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {
    argp_options,
    parse,
    "MODEL TRACE...",
    "Judge an engine's traces: is every tensor, computed from the engine's own inputs to that "
    "operation, "
    "inside what honest rounding can do?\v"
    "MODEL is a directory (Hugging Face or OpenAI layout) or synthetic:NAME. A TRACE is a "
    "safetensors file in the format sinkproof-trace-1.\n\n"
    "Exit: 0 within bounds, 1 a bug, 2 usage, 3 bad input, 4 suspicious, or nothing decided.",
    NULL,
    NULL,
    NULL};

// ---- judging

// One judgement after the other, each with a line of its own.
static void show_progress(void *context, const char *what, double share) {
    sinkproof_stopwatch *watch = context;
    if (watch->what == NULL) *watch = (sinkproof_stopwatch){.command = "judge", .what = what};
    sinkproof_progress_share(watch, share);
    if (share >= 1) watch->what = NULL;
}

// Every trace of the command line, judged: what the page and the JSON are made from.
typedef struct judged {
    sinkproof_page_trial *trials; // [n_traces], those that are judged first
    size_t n;
    json_t *results;
} judged;

// One trace: prints its report unless `silent`, and returns its exit code. A refused trace prints
// nothing.
static int judge_one(const sinkproof_model *model, const char *path, const options *o, bool silent,
                     judged *all) {
    sinkproof_error error;
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
    sinkproof_stopwatch watch = {.what = NULL};
    sinkproof_trial_options how = {.size = sizeof how,
                                   .policy = o->policy,
                                   .name = path,
                                   .rate = o->rate,
                                   .strict = o->strict,
                                   .all = o->all,
                                   .local = o->local_only,
                                   .no_hint = o->no_hint,
                                   .forms = o->forms,
                                   .progress = show_progress,
                                   .context = &watch};
    if (!sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error))
        return sinkproof_bad_input("judge", &error);
    if (!sinkproof_judge_trace(model, trace, &how, &ruling, &error)) {
        sinkproof_trace_close(trace);
        return sinkproof_bad_input("judge", &error);
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
        return sinkproof_bad_input("judge", &error);
    if (o->json != NULL &&
        !sinkproof_write_json(o->json, "judge", worst, json_incref(all->results), &error))
        return sinkproof_bad_input("judge", &error);
    return worst;
}

static int judge_traces(const options *o, const sinkproof_model *model, judged *all) {
    bool silent = o->json != NULL && strcmp(o->json, "-") == 0;
    int worst = SINKPROOF_HOLDS;
    for (size_t t = 0; t < o->n_traces; t++) {
        int code = judge_one(model, o->traces[t], o, silent, all);
        if (!silent && code != SINKPROOF_BAD_INPUT && t + 1 < o->n_traces) printf("\n");
        static const int weight[] = {0, 2, 4, 3, 1}; // 0 holds < 4 suspicious < 1 bug < 3 bad input
        if (weight[code] > weight[worst]) worst = code;
    }
    // refused: nothing is written
    return worst == SINKPROOF_BAD_INPUT ? worst : write_files(o, model, all, worst);
}

// The worst of the exit codes of every trace on the command line.
static int judge_all(const options *o) {
    sinkproof_error error;
    sinkproof_policy policy;
    sinkproof_model *model;
    if (strcmp(o->policy, "auto") != 0 && !sinkproof_policy_parse(o->policy, &policy, &error)) {
        fprintf(stderr, "sinkproof judge: %s\n", error.text);
        return SINKPROOF_USAGE;
    }
    if (!sinkproof_model_open(o->model, &model, &error))
        return sinkproof_bad_input("judge", &error);
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

// The judge takes and gives back the same large pieces for each part of each layer: kept by the
// process, they need not be cleared by the system every time.
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int sinkproof_cmd_judge(int argc, char **argv) {
    options o = {.policy = "auto", .rate = 1e-9};
    o.traces = calloc((size_t)argc, sizeof *o.traces);
    if (o.traces == NULL) abort();
    argp_err_exit_status = SINKPROOF_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    keep_memory();
    int code = judge_all(&o);
    free(o.traces);
    return code;
}
