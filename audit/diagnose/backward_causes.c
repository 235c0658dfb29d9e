// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue of backward mistakes. Each alters one part of the computation; its honest sets are
// asked whether they accept every element of a gradient that is outside. A mistake is named only if
// they do; where several do, all are named.
#include "audit/diagnose/backward_causes.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The gradients that a mistake may be seen in.
enum {
    IN_SINKS = 1 << 0,
    IN_SCORES = 1 << 1, // and in dq and dk, which come from them
    IN_KEYS = 1 << 2,   // dk
    IN_VALUES = 1 << 3, // dv
    IN_VALUE_BIAS = 1 << 4,
    IN_ROW = IN_SINKS | IN_SCORES | IN_KEYS,
    IN_WEIGHTS = IN_ROW | IN_VALUES, // those that read the weights of attention
};

typedef struct mistake {
    const char *words;
    unsigned in;
    sinkproof_backward_meaning meaning;
} mistake;

#define MEANT(...) .meaning = {.times = 1, __VA_ARGS__}
static const mistake catalogue[] = {
    {"D is of the renormalised weights, those of the keys over their sum", IN_ROW,
     MEANT(.renormalised_delta = true)},
    {"the gradient of the log-sum-exp is ignored", IN_ROW, MEANT(.no_dlse = true)},
    {"the window is lost going back: all earlier keys are read", IN_WEIGHTS,
     MEANT(.no_window = true)},
    {"the causal mask is lost going back: later keys are read", IN_WEIGHTS, MEANT(.no_mask = true)},
    {"the weights are recomputed without the sink", IN_WEIGHTS,
     MEANT(.lse = SINKPROOF_LSE_WITHOUT_SINK)},
    {"a stale log-sum-exp: the weights are recomputed from that of the row before", IN_WEIGHTS,
     MEANT(.lse = SINKPROOF_LSE_OF_ROW)},
    {"a stale log-sum-exp: the weights are recomputed from that of the next head", IN_WEIGHTS,
     MEANT(.lse = SINKPROOF_LSE_OF_HEAD)},
    {"the sink's logit is held in base 2, and rounded there", IN_WEIGHTS,
     MEANT(.sink_in_base_2 = true)},
    {"it is added up over the query heads of each group", IN_SINKS,
     MEANT(.added = SINKPROOF_SINK_GROUP)},
    {"1 stands in the place of 1 - alpha_s", IN_VALUE_BIAS, MEANT(.bias_of_ones = true)},
};

static unsigned place_of(const sinkproof_config *c, const sinkproof_gradient *g) {
    if (g->of_weight)
        return g->slot == SINKPROOF_SINKS ? IN_SINKS : g->slot == SINKPROOF_B_V ? IN_VALUE_BIAS : 0;
    if (g->point == TRACE_A6 || g->point == TRACE_A4_Q) return IN_SCORES;
    if (g->point == sinkproof_trace_keys(c)) return IN_SCORES | IN_KEYS;
    return g->point == TRACE_A2_V ? IN_VALUES : 0;
}

// One gradient while it is explained.
typedef struct asked {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    const sinkproof_config *config;
    sinkproof_gradient_report *report;
    size_t found;
} asked;

static void name_cause(asked *a, const char *words) {
    char *cause = a->report->cause;
    size_t used = strlen(cause), room = sizeof a->report->cause;
    const char *between = a->found++ > 0 ? "; or " : "";
    if (used + strlen(between) + strlen(words) + 8 < room)
        snprintf(cause + used, room - used, "%s%s", between, words);
    else if (used + 8 < room && strcmp(cause + used - 4, " ...") != 0)
        snprintf(cause + used, room - used, "; ...");
}

// With altered weights D is a sum over the keys, or <dO, O>.
static bool explains_either(const asked *a, sinkproof_backward_meaning meaning) {
    for (int output = 0; output < 2; output++) {
        meaning.delta_of_output = output;
        if (sinkproof_gradient_explained(a->model, a->trace, a->policy, &meaning, a->report))
            return true;
    }
    return false;
}

static bool explains(const asked *a, const sinkproof_backward_meaning *meaning) {
    bool altered = meaning->no_window || meaning->no_mask || meaning->sink_in_base_2 ||
                   meaning->lse != SINKPROOF_LSE_OWN;
    if (altered) return explains_either(a, *meaning);
    return sinkproof_gradient_explained(a->model, a->trace, a->policy, meaning, a->report);
}

// ---- numbers alone ---------------------------------------------------------------------------

static const sinkproof_tensor *tensor_of(const asked *a, const char *name) {
    return sinkproof_safetensors_find(sinkproof_trace_file(a->trace), name);
}

static bool all_zero(const asked *a) {
    const sinkproof_tensor *t = tensor_of(a, a->report->name);
    for (size_t i = 0; i < sinkproof_tensor_elements(t); i++)
        if (sinkproof_tensor_value(t, i) != 0) return false;
    return true;
}

// Whether the trace has the same numbers as the same gradient of another layer.
static void ask_frozen(asked *a) {
    const sinkproof_tensor *own = tensor_of(a, a->report->name), *t;
    for (size_t l = 0; l < a->config->n_layers; l++) {
        char name[SINKPROOF_TRACE_NAME], words[96];
        if (l == a->report->of.layer) continue;
        snprintf(name, sizeof name, "%02zu.dsink", l);
        snprintf(words, sizeof words, "frozen: the numbers are those of %s", name);
        sinkproof_backward_meaning meaning = {
            .times = 1, .added = SINKPROOF_SINK_OF_LAYER, .layer = l};
        t = tensor_of(a, name);
        bool same = t != NULL && t->bytes == own->bytes && t->dtype == own->dtype &&
                    memcmp(t->data, own->data, own->bytes) == 0;
        if (same || explains(a, &meaning)) name_cause(a, words);
    }
}

// ---- factors ---------------------------------------------------------------------------------

static bool ask_times(asked *a, double times, const char *words) {
    sinkproof_backward_meaning meaning = {.times = times};
    bool fits = times != 1 && explains(a, &meaning);
    if (fits) name_cause(a, words);
    return fits;
}

// A gradient that is counted several times.
static bool ask_counted(asked *a) {
    size_t each = a->config->n_heads / a->config->n_kv_heads;
    for (size_t times = 2; times <= 64; times = times < 16 ? times + 1 : 2 * times) {
        char words[240];
        snprintf(words, sizeof words, "it is counted %s: once per split of the keys%s",
                 sinkproof_counted(times, "time").text,
                 times == each ? ", or per query head of the group" : "");
        if (ask_times(a, (double)times, words)) return true;
    }
    return false;
}

static void ask_factors(asked *a) {
    double root = sqrt((double)a->config->head_dim), factor;
    char words[96];
    size_t before = a->found;
    ask_times(a, -1, "the sign is wrong");
    ask_times(a, 1 / root, "a factor 1/sqrt(head_dim) too many");
    ask_times(a, root, "a factor 1/sqrt(head_dim) is missing");
    ask_times(a, 1.4426950408889634, "a factor ln 2 is missing");
    ask_times(a, 0.6931471805599453, "a factor ln 2 too many");
    if (a->report->of.of_weight && a->report->of.slot == SINKPROOF_SINKS && a->found == before)
        ask_counted(a);
    if (a->found > before ||
        !sinkproof_gradient_factor(a->model, a->trace, a->policy, a->report, &factor))
        return;
    snprintf(words, sizeof words, "it is scaled by %.6g, which was fitted", factor);
    ask_times(a, factor, words);
}

// ---- attention -------------------------------------------------------------------------------

// A sink's gradient of the last block of queries alone.
static void ask_last_rows(asked *a) {
    size_t n = sinkproof_trace_length(a->trace), last = n;
    for (size_t rows = 8; rows < n; rows *= 2) {
        char words[96];
        size_t first = (n - 1) / rows * rows;
        sinkproof_backward_meaning meaning = {
            .times = 1, .added = SINKPROOF_SINK_LAST_ROWS, .rows = rows};
        if (first == last) continue; // the same rows as those of a smaller block
        last = first;
        snprintf(words, sizeof words,
                 "it is that of the last block of queries alone, from row %zu on", first);
        if (explains(a, &meaning)) name_cause(a, words);
    }
}

static void ask_heads(asked *a) {
    size_t each = a->config->n_heads / a->config->n_kv_heads;
    for (size_t m = 0; each > 1 && m < each; m++) {
        char words[96];
        sinkproof_backward_meaning meaning = {.times = 1, .head_of_group = 1 + m};
        snprintf(words, sizeof words,
                 "the sum over the group is missing: query head %zu of each alone", m);
        if (explains(a, &meaning)) name_cause(a, words);
    }
}

// Whether a mistake alters anything here: the layer has a window, the loss reads a log-sum-exp.
static bool applies(const asked *a, const mistake *m, unsigned place) {
    char with[SINKPROOF_TRACE_NAME], keys[SINKPROOF_TRACE_NAME];
    size_t layer = a->report->of.layer;
    snprintf(with, sizeof with, "%02zu.dA9.lse", layer);
    snprintf(keys, sizeof keys, "%02zu.dA9.lse-keys", layer);
    if ((m->in & place) == 0) return false;
    if (m->meaning.no_window) return a->config->sliding[layer];
    if (m->meaning.no_dlse) return tensor_of(a, with) != NULL || tensor_of(a, keys) != NULL;
    return true;
}

static void explain_one(asked *a) {
    unsigned place = place_of(a->config, &a->report->of);
    bool sinks = place == IN_SINKS;
    a->report->cause[0] = '\0';
    if (all_zero(a)) {
        name_cause(a, sinks ? "the sink's gradient is missing: it is zero"
                            : "the gradient is missing: it is zero");
        return;
    }
    for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++)
        if (applies(a, &catalogue[i], place) && explains(a, &catalogue[i].meaning))
            name_cause(a, catalogue[i].words);
    if (sinks) ask_frozen(a);
    if (sinks) ask_last_rows(a);
    if ((place & (IN_KEYS | IN_VALUES)) != 0) ask_heads(a);
    if (a->found == 0) ask_factors(a);
}

void sinkproof_backward_explain(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_policy *policy,
                                sinkproof_gradient_judgement *judgement) {
    for (size_t i = 0; i < judgement->n_reports; i++) {
        asked a = {.model = model,
                   .trace = trace,
                   .policy = policy,
                   .config = sinkproof_model_config(model),
                   .report = &judgement->reports[i]};
        if (a.report->verdict == SINKPROOF_VERDICT_BUG) explain_one(&a);
    }
}
