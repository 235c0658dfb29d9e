// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL TRACE...`: the verdict on an engine's trace.
#include "audit/command/command.h"
#include "audit/judge/judge_candidates.h"
#include "audit/judge/judge_report.h"
#include "audit/trace/trace_points.h"

#include <argp.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *policy, *json;
    char **traces;
    size_t n_traces;
    double rate;
    bool strict, all, local_only, no_hint, forms;
} options;

enum { RATE = 1000, STRICT, ALL_LAYERS, LOCAL, NO_HINT, FORMS };

static const struct argp_option argp_options[] = {
    {"policy", 'p', "POLICY", 0,
     "what the engine declares: auto (default: the narrowest known policy that the trace fits), "
     "real-f64, f32, bf16-operands, openai-bf16, hf-bf16, bf16, f16, with overrides "
     "(f32,exp=4ulp; openai-bf16,M8.alpha=bf16)",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the report)", 0},
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

static error_t parse(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    char *end;
    switch (key) {
    case 'p':
        o->policy = argument;
        return 0;
    case 'j':
        o->json = argument;
        return 0;
    case STRICT:
        o->strict = true;
        return 0;
    case ALL_LAYERS:
        o->all = true;
        return 0;
    case LOCAL:
        o->local_only = true;
        return 0;
    case NO_HINT:
        o->no_hint = true;
        return 0;
    case FORMS:
        o->forms = true;
        return 0;
    case RATE:
        o->rate = strtod(argument, &end);
        if (*end != '\0' || !(o->rate > 0 && o->rate < 1))
            argp_error(state, "--rate is a probability between 0 and 1, not '%s'", argument);
        return 0;
    case ARGP_KEY_ARG:
        if (o->model == NULL)
            o->model = argument;
        else
            o->traces[o->n_traces++] = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->n_traces == 0) argp_error(state, "a MODEL and at least one TRACE are needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
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

static const char *first_of(const sinkproof_judgement *j) {
    return j->first != NULL              ? j->first->name
           : j->first_suspicious != NULL ? j->first_suspicious->name
                                         : "";
}

// ---- judging

static void show_progress(void *context, double share) {
    sinkproof_progress_share(context, share);
}

static bool judge_under(const sinkproof_model *model, const sinkproof_trace *trace,
                        const char *text, const options *o, bool end_to_end, sinkproof_judgement *j,
                        sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_stopwatch watch = {.command = "judge", .what = text};
    sinkproof_judge_options how = {o->rate, end_to_end, show_progress, &watch};
    return sinkproof_policy_parse(text, &policy, error) &&
           sinkproof_judge(model, trace, &policy, &how, j, error);
}

static bool find_forms(const sinkproof_model *model, const sinkproof_trace *trace, const options *o,
                       sinkproof_judgement *j, sinkproof_error *error) {
    sinkproof_stopwatch watch = {.command = "judge", .what = "forms"};
    sinkproof_judge_options how = {o->rate, false, show_progress, &watch};
    return sinkproof_judge_forms(model, trace, &how, j, error);
}

static bool is_honest(const sinkproof_judgement *j) {
    return j->verdict <= SINKPROOF_VERDICT_UNDECIDED;
}

// Judges under the known policies until one fits; else keeps the nearest.
static bool judge_auto(const sinkproof_model *model, const sinkproof_trace *trace, const options *o,
                       FILE *out, sinkproof_judgement *best, sinkproof_error *error) {
    const char *narrower;
    size_t layers = sinkproof_model_config(model)->n_layers;
    const char *const *names = sinkproof_candidates_for(trace, layers, &narrower);
    if (narrower != NULL)
        fprintf(out, "every value is a %s number, though stored wider\n", narrower);
    bool any = false;
    for (size_t c = 0; names[c] != NULL; c++) {
        sinkproof_judgement j;
        if (!judge_under(model, trace, names[c], o, false, &j, error)) {
            if (any) sinkproof_judgement_free(best);
            return false;
        }
        bool honest = is_honest(&j);
        if (names[1] != NULL)
            fprintf(out, "auto: %s %s%s\n", names[c],
                    honest ? "fits" : "does not fit: ", honest ? "" : first_of(&j));
        if (!any || sinkproof_judgement_misfit(&j) < sinkproof_judgement_misfit(best)) {
            if (any) sinkproof_judgement_free(best);
            *best = j;
        } else {
            sinkproof_judgement_free(&j);
        }
        any = true;
        if (honest) break;
    }
    return true;
}

// Known mistakes and known freedoms that one override states, and the points that each touches.
static const struct single_override {
    const char *text, *meaning;
    sinkproof_trace_point points[3];
    size_t n_points;
} overrides[] = {
    {"M8.alpha=bf16",
     "the constant 1.702 is rounded to bfloat16 (1.703125)",
     {SINKPROOF_TRACE_M8},
     1},
    {"yarn=truncate",
     "the ends of the YaRN ramp are rounded to whole dimensions",
     {SINKPROOF_TRACE_A4_Q, SINKPROOF_TRACE_A4_K},
     2},
    {"A9.max=bf16",
     "the row's maximum is subtracted in bfloat16",
     {SINKPROOF_TRACE_A9, SINKPROOF_TRACE_A10},
     2},
    {"A9.max=real",
     "the row's maximum is subtracted without a rounding to bfloat16",
     {SINKPROOF_TRACE_A9, SINKPROOF_TRACE_A10},
     2},
    {"M11.sum=bf16?",
     "the sum over experts is kept in bfloat16",
     {SINKPROOF_TRACE_M11, SINKPROOF_TRACE_M12},
     2},
};

// Does what is computed at `from` reach a point of the trace with nothing traced in between?
static bool reaches(const sinkproof_model *model, const sinkproof_trace *trace,
                    sinkproof_trace_point from, sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (point == from) return true;
    size_t n = sinkproof_trace_inputs(sinkproof_model_config(model), point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(trace, inputs[i].point, inputs[i].layer) == NULL &&
            reaches(model, trace, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

// An override can explain what fails only if it reaches each of those points.
static bool reaches_failures(const sinkproof_model *model, const sinkproof_trace *trace,
                             const struct single_override *s, const sinkproof_judgement *j) {
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool touched = r->verdict < SINKPROOF_VERDICT_SUSPICIOUS;
        for (size_t p = 0; p < s->n_points; p++)
            touched = touched || reaches(model, trace, s->points[p], r->point, r->layer);
        if (!touched) return false;
    }
    return true;
}

// An override that repeats what a policy says changes nothing.
static bool same_policy(const sinkproof_policy *a, const sinkproof_policy *b) {
    sinkproof_policy renamed = *a;
    memcpy(renamed.name, b->name, sizeof renamed.name);
    return memcmp(&renamed, b, sizeof renamed) == 0; // a parsed policy has no stray bytes
}

// Would a policy explain everything that fails under j's? Then the exit code would be 0.
static bool explains(const sinkproof_model *model, const sinkproof_trace *trace, const options *o,
                     const sinkproof_judgement *j, const char *text) {
    sinkproof_policy policy;
    sinkproof_judgement k;
    if (!sinkproof_policy_parse(text, &policy, NULL) || same_policy(&policy, &j->policy))
        return false;
    if (!judge_under(model, trace, text, o, false, &k, NULL)) return false;
    bool honest = k.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&k);
    return honest;
}

// What one change explains: an override of the policy, or another policy.
typedef struct cause {
    char policy[320];     // the whole policy under which the trace is honest
    const char *override; // of the one that was asked for; NULL: another policy
    const char *meaning;
} cause;

static bool find_cause(const sinkproof_model *model, const sinkproof_trace *trace, const options *o,
                       const sinkproof_judgement *j, cause *found) {
    if (is_honest(j)) return false; // nothing to explain
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        if (!reaches_failures(model, trace, &overrides[c], j)) continue;
        *found = (cause){.override = overrides[c].text, .meaning = overrides[c].meaning};
        snprintf(found->policy, sizeof found->policy, "%s,%s", j->policy.name, overrides[c].text);
        if (explains(model, trace, o, j, found->policy)) return true;
    }
    *found = (cause){.policy = "bf16-operands",
                     .meaning = "the operands of every matrix product are rounded to bfloat16"};
    bool wide = j->policy.at[SINKPROOF_AT_A13].format == SINKPROOF_F32;
    return wide && explains(model, trace, o, j, found->policy);
}

static int exit_code_of(const sinkproof_judgement *j, bool strict) {
    if (j->verdict == SINKPROOF_VERDICT_BUG) return SINKPROOF_BUG;
    if (j->verdict == SINKPROOF_VERDICT_SUSPICIOUS)
        return strict ? SINKPROOF_BUG : SINKPROOF_INCONCLUSIVE;
    bool open = j->verdict == SINKPROOF_VERDICT_UNDECIDED || (strict && j->undecided > 0);
    return open ? SINKPROOF_INCONCLUSIVE : SINKPROOF_HOLDS;
}

static void print_cause(FILE *out, const sinkproof_judgement *j, const cause *found) {
    size_t failing = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        failing += j->reports[i].verdict >= SINKPROOF_VERDICT_SUSPICIOUS;
    fprintf(out,
            "One %s explains all of it (%zu %s): ", found->override != NULL ? "override" : "cause",
            failing, failing == 1 ? "point" : "points");
    if (found->override != NULL)
        fprintf(out, "--policy %s\n(%s).\n\n", found->policy, found->meaning);
    else
        fprintf(out, "fits %s\n(%s).\n\n", found->policy, found->meaning);
}

static void print_conclusion(FILE *out, const sinkproof_judgement *j, int code) {
    fprintf(out, "\nVerdict under %s: ", j->policy.name);
    if (j->verdict == SINKPROOF_VERDICT_UNDECIDED) {
        fprintf(out, "undecided (exit %d).\nThis trace decides nothing; add A13, M3 and M12.\n",
                code);
        return;
    }
    fprintf(out, "%s",
            j->verdict == SINKPROOF_VERDICT_BUG          ? "a bug"
            : j->verdict == SINKPROOF_VERDICT_SUSPICIOUS ? "suspicious"
                                                         : "within what honest rounding can do");
    if (j->undecided > 0) fprintf(out, ", %zu of %zu points undecided", j->undecided, j->n_reports);
    fprintf(out, " (exit %d).\n", code);
}

// One trace: returns its exit code.
static int judge_one(const sinkproof_model *model, const char *path, const options *o, FILE *out,
                     json_t *results) {
    sinkproof_error error;
    sinkproof_trace *trace;
    sinkproof_judgement j;
    const sinkproof_config *config = sinkproof_model_config(model);
    if (!sinkproof_trace_open(path, config, &trace, &error))
        return sinkproof_bad_input("judge", &error);
    const char *named = sinkproof_trace_metadata(trace, "engine");
    char engine[128], text[sizeof j.policy.name];
    snprintf(engine, sizeof engine, "%s", named != NULL ? named : "not named");
    sinkproof_make_printable(engine);
    fprintf(out, "%s\n%zu tokens, engine %s\n", path, sinkproof_trace_length(trace), engine);
    bool automatic = strcmp(o->policy, "auto") == 0, fine = true;
    snprintf(text, sizeof text, "%s", o->policy);
    if (automatic) {
        fine = judge_auto(model, trace, o, out, &j, &error);
        if (fine) memcpy(text, j.policy.name, sizeof text);
    }
    if (fine && (!automatic || !o->local_only)) {
        if (automatic) sinkproof_judgement_free(&j);
        fine = judge_under(model, trace, text, o, !o->local_only, &j, &error);
    }
    if (fine && o->forms && !find_forms(model, trace, o, &j, &error)) {
        sinkproof_judgement_free(&j);
        fine = false;
    }
    if (!fine) {
        sinkproof_trace_close(trace);
        return sinkproof_bad_input("judge", &error);
    }
    int code = exit_code_of(&j, o->strict);
    cause found = {.override = NULL};
    bool explained = !o->no_hint && find_cause(model, trace, o, &j, &found);
    if (explained) print_cause(out, &j, &found);
    sinkproof_judgement_print(out, config, &j, o->all);
    print_conclusion(out, &j, code);
    sinkproof_judgement_json(results, path, config, &j,
                             !explained               ? NULL
                             : found.override != NULL ? found.override
                                                      : found.policy,
                             code);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    return code;
}

// One trace, its report held back until it is whole: a refused trace prints nothing.
static int judge_and_print(const sinkproof_model *model, const char *path, const options *o,
                           bool silent, bool more, json_t *results) {
    char *report = NULL;
    size_t length = 0;
    FILE *held = open_memstream(&report, &length);
    if (held == NULL) abort();
    int code = judge_one(model, path, o, held, results);
    if (more) fprintf(held, "\n");
    fclose(held);
    if (!silent && code != SINKPROOF_BAD_INPUT) fputs(report, stdout);
    free(report);
    return code;
}

// Every trace of the command line, and the worst of their exit codes.
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
    bool silent = o->json != NULL && strcmp(o->json, "-") == 0;
    json_t *results = json_array();
    int worst = SINKPROOF_HOLDS;
    for (size_t t = 0; t < o->n_traces; t++) {
        int code = judge_and_print(model, o->traces[t], o, silent, t + 1 < o->n_traces, results);
        static const int weight[] = {0, 2, 4, 3, 1}; // 0 holds < 4 suspicious < 1 bug < 3 bad input
        if (weight[code] > weight[worst]) worst = code;
    }
    sinkproof_model_close(model);
    if (o->json == NULL || worst == SINKPROOF_BAD_INPUT) { // refused: nothing is written
        json_decref(results);
        return worst;
    }
    if (!sinkproof_write_json(o->json, "judge", worst, results, &error))
        return sinkproof_bad_input("judge", &error);
    return worst;
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
