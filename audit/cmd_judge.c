// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL TRACE...`: the verdict on an engine's trace.
#include "audit/command.h"
#include "audit/judge_report.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *policy, *json;
    char **traces;
    size_t n_traces;
    double rate;
    bool strict, all, local_only, no_hint;
} options;

enum { RATE = 1000, STRICT, ALL_LAYERS, LOCAL, NO_HINT };

static const struct argp_option argp_options[] = {
    {"policy", 'p', "POLICY", 0,
     "what the engine declares: auto (default: the narrowest known policy that the trace fits), "
     "real-f64, f32, bf16-operands, openai-bf16, hf-bf16, bf16, f16, with overrides "
     "(f32,exp=4ulp; openai-bf16,M8.alpha=bf16)",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the report)", 0},
    {"strict", STRICT, 0, 0, "a suspicious trace exits 1, not 4", 0},
    {"all", ALL_LAYERS, 0, 0, "one line per layer and point, not one per point", 0},
    {"rate", RATE, "P", 0, "false alarms per tensor of the likely set and of drift (default 1e-9)",
     0},
    {"local", LOCAL, 0, 0, "leave out the comparison with the truth end to end", 0},
    {"no-hint", NO_HINT, 0, 0, "do not look for one override that would explain a bug", 0},
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
    "Exit: 0 within bounds, 1 a bug, 2 usage, 3 bad input, 4 suspicious or inconclusive.",
    NULL,
    NULL,
    NULL};

// Does the trace keep the residual stream in float32?
static bool residual_in_f32(const sinkproof_trace *trace, size_t layers) {
    static const sinkproof_trace_point stream[] = {SINKPROOF_TRACE_T0, SINKPROOF_TRACE_A13,
                                                   SINKPROOF_TRACE_M12};
    for (size_t p = 0; p < sizeof stream / sizeof stream[0]; p++)
        for (size_t l = 0; l < layers; l++) {
            const sinkproof_tensor *t = sinkproof_trace_find(trace, stream[p], l);
            if (t != NULL && t->dtype == SINKPROOF_DTYPE_F32) return true;
        }
    return false;
}

// The policies that auto tries: those that hold what the trace is stored in, narrowest first.
// Bf16 beside a residual in float32 is what bf16-operands describes.
static const char *const *candidates_for(const sinkproof_trace *trace, size_t layers) {
    static const char *const in_f64[] = {"real-f64", NULL}, *const in_f32[] = {"f32", NULL};
    static const char *const in_f16[] = {"f16", NULL};
    static const char *const in_both[] = {"bf16-operands", "openai-bf16", "hf-bf16", "bf16", NULL};
    const char *const *in_bf16 = in_both + (residual_in_f32(trace, layers) ? 0 : 1);
    for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) {
        for (size_t l = 0; l < layers; l++) {
            const sinkproof_tensor *t = sinkproof_trace_find(trace, (sinkproof_trace_point)p, l);
            if (t == NULL || p == SINKPROOF_TRACE_M3) continue;
            if (t->dtype == SINKPROOF_DTYPE_BF16) return in_bf16;
            if (t->dtype == SINKPROOF_DTYPE_F16) return in_f16;
            if (t->dtype == SINKPROOF_DTYPE_F64) return in_f64;
            break;
        }
    }
    return in_f32;
}

static const char *first_of(const sinkproof_judgement *j) {
    return j->first != NULL              ? j->first->name
           : j->first_suspicious != NULL ? j->first_suspicious->name
                                         : "";
}

// Judges under the known policies until one fits; else keeps the nearest.
static bool judge_auto(const sinkproof_model *model, const sinkproof_trace *trace, const options *o,
                       FILE *out, sinkproof_judgement *best, sinkproof_error *error) {
    const char *const *names = candidates_for(trace, sinkproof_model_config(model)->n_layers);
    bool any = false;
    for (size_t c = 0; names[c] != NULL; c++) {
        sinkproof_policy policy;
        sinkproof_judgement j;
        if (!sinkproof_policy_parse(names[c], &policy, error)) return false;
        if (!sinkproof_judge(model, trace, &policy, o->rate, false, true, &j, error)) return false;
        bool fits = j.verdict <= SINKPROOF_VERDICT_WITHIN;
        if (names[1] != NULL)
            fprintf(out, "auto: %s %s%s\n", names[c],
                    fits ? "fits" : "does not fit: ", fits ? "" : first_of(&j));
        if (!any || sinkproof_judgement_misfit(&j) < sinkproof_judgement_misfit(best)) {
            if (any) sinkproof_judgement_free(best);
            *best = j;
        } else {
            sinkproof_judgement_free(&j);
        }
        any = true;
        if (fits) break;
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

static bool touches_all(const struct single_override *s, const sinkproof_judgement *j) {
    for (size_t i = 0; i < j->n_reports; i++) {
        bool touched = j->reports[i].verdict <= SINKPROOF_VERDICT_WITHIN;
        for (size_t p = 0; p < s->n_points; p++)
            touched = touched || j->reports[i].point == s->points[p];
        if (!touched) return false;
    }
    return true;
}

// Would one override of one point explain everything? Returns its text, or NULL.
static const struct single_override *explain(const sinkproof_model *model,
                                             const sinkproof_trace *trace, const options *o,
                                             const sinkproof_judgement *j) {
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        char text[sizeof j->policy.name + 32];
        sinkproof_policy policy;
        sinkproof_judgement k;
        if (!touches_all(&overrides[c], j)) continue;
        snprintf(text, sizeof text, "%s,%s", j->policy.name, overrides[c].text);
        if (!sinkproof_policy_parse(text, &policy, NULL)) continue;
        if (!sinkproof_judge(model, trace, &policy, o->rate, false, true, &k, NULL)) continue;
        bool fits = k.verdict <= SINKPROOF_VERDICT_WITHIN;
        sinkproof_judgement_free(&k);
        if (fits) return &overrides[c];
    }
    return NULL;
}

static int exit_code_of(const sinkproof_judgement *j, bool strict) {
    if (j->verdict == SINKPROOF_VERDICT_BUG) return SINKPROOF_BUG;
    if (j->verdict == SINKPROOF_VERDICT_SUSPICIOUS)
        return strict ? SINKPROOF_BUG : SINKPROOF_INCONCLUSIVE;
    return j->ambiguous > 0 ? SINKPROOF_INCONCLUSIVE : SINKPROOF_HOLDS;
}

static void print_conclusion(FILE *out, const sinkproof_judgement *j,
                             const struct single_override *hint, int code) {
    static const char *const words[] = {"within what honest rounding can do", "a bug", "", "",
                                        "suspicious or inconclusive"};
    fprintf(out, "\nVerdict under %s: %s (exit %d).\n", j->policy.name, words[code], code);
    if (hint != NULL)
        fprintf(out, "One override explains all of it: --policy %s,%s\n(%s).\n", j->policy.name,
                hint->text, hint->meaning);
}

// One trace: returns its exit code.
static int judge_one(const sinkproof_model *model, const char *path, const options *o, FILE *out,
                     json_t *results) {
    sinkproof_error error;
    sinkproof_trace *trace;
    sinkproof_judgement j;
    if (!sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error))
        return sinkproof_bad_input("judge", &error);
    const char *named = sinkproof_trace_metadata(trace, "engine");
    char engine[128];
    snprintf(engine, sizeof engine, "%s", named != NULL ? named : "not named");
    sinkproof_make_printable(engine);
    fprintf(out, "%s\n%zu tokens, engine %s\n", path, sinkproof_trace_length(trace), engine);
    bool automatic = strcmp(o->policy, "auto") == 0, fine;
    sinkproof_policy policy;
    if (automatic) {
        fine = judge_auto(model, trace, o, out, &j, &error);
        policy = j.policy;
    } else {
        fine = sinkproof_policy_parse(o->policy, &policy, &error);
    }
    if (fine && (!automatic || !o->local_only)) {
        if (automatic) sinkproof_judgement_free(&j);
        fine = sinkproof_judge(model, trace, &policy, o->rate, !o->local_only, true, &j, &error);
    }
    if (!fine) {
        sinkproof_trace_close(trace);
        return sinkproof_bad_input("judge", &error);
    }
    int code = exit_code_of(&j, o->strict);
    const struct single_override *hint = NULL;
    if (code != 0 && !o->no_hint) hint = explain(model, trace, o, &j);
    sinkproof_judgement_print(out, &j, o->all);
    print_conclusion(out, &j, hint, code);
    sinkproof_judgement_json(results, path, &j, hint != NULL ? hint->text : NULL, code);
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

int sinkproof_cmd_judge(int argc, char **argv) {
    options o = {.policy = "auto", .rate = 1e-9};
    o.traces = calloc((size_t)argc, sizeof *o.traces);
    if (o.traces == NULL) abort();
    argp_err_exit_status = SINKPROOF_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    int code = judge_all(&o);
    free(o.traces);
    return code;
}
