// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The log-sum-exp as a point of a trace (A9.lse): with the sink or without it, said or found, in
// both layouts; in base 2 and off by a little it is convicted.
#include "audit/judge/judge_report.h"
#include "tests/shared/cut.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = 21 };

static judged_stages reference = {&sinkproof_reference_stages, 0};

typedef struct lse_case {
    const char *policy, *points; // points: of the trace beside it
    bool with_sink, by_token;
    const char *said;
    double times, plus; // of the LSE that is written
    bool base_2;        // the engine's exponentials and its sum, rounded in that base
} lse_case;

// An engine's LSE from its own scores, in float32: the maximum, then the sum in ascending order.
static float engine_lse(const sinkproof_tensor *a6, const lse_case *c, size_t row, size_t first,
                        size_t end, size_t n, double sink) {
    float scale = c->base_2 ? 1.44269504f : 1, top = c->with_sink ? (float)sink * scale : -INFINITY;
    for (size_t j = first; j < end; j++)
        top = fmaxf(top, (float)sinkproof_tensor_value(a6, row * n + j) * scale);
    float sum = 0;
    for (size_t j = first; j < end + c->with_sink; j++) {
        float z = j < end ? (float)sinkproof_tensor_value(a6, row * n + j) : (float)sink;
        sum += c->base_2 ? exp2f(z * scale - top) : expf(z - top);
    }
    float lse = c->base_2 ? (top + log2f(sum)) * 0.693147181f : top + logf(sum);
    return (float)((double)lse * c->times + c->plus);
}

// The sinks of a layer of the generated model.
static double *sinks_of(const sinkproof_model *model, size_t layer) {
    sinkproof_layer l = sinkproof_model_layer(model, layer);
    double *b = malloc(l.sinks.cols * sizeof *b);
    must(b != NULL);
    sinkproof_matrix_row(&l.sinks, 0, b);
    return b;
}

static sinkproof_judgement judged_lse(const sinkproof_model *model, const lse_case *c) {
    const sinkproof_config *config = sinkproof_model_config(model);
    int32_t tokens[N];
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *b = NULL;
    sinkproof_trace *trace;
    some_tokens(N, config->vocab, 5, tokens);
    sinkproof_trace *full = whole_trace(model, run_stages, &reference, c->policy, NULL, N, tokens);
    sinkproof_trace *shown =
        whole_trace(model, run_stages, &reference, c->policy, c->points, N, tokens);
    need(sinkproof_trace_builder_new(model, "lse", NULL, N, tokens, &b, &error) &&
             sinkproof_trace_builder_lse(b, c->said, NULL, &error),
         &error);
    const cut all = {0};
    for (size_t l = 0; l < config->n_layers; l++) {
        const sinkproof_tensor *a6 = sinkproof_trace_find(full, TRACE_A6, l);
        double *sinks = sinks_of(model, l);
        size_t heads = config->n_heads, window = config->sliding[l] ? config->window : N;
        size_t shape[2] = {c->by_token ? N : heads, c->by_token ? heads : N};
        float lse[64 * N];
        for (size_t h = 0; h < heads; h++)
            for (size_t i = 0; i < N; i++) {
                size_t first = i + 1 > window ? i + 1 - window : 0;
                lse[c->by_token ? i * heads + h : h * N + i] =
                    engine_lse(a6, c, h * N + i, first, i + 1, N, sinks[h]);
            }
        char name[32];
        snprintf(name, sizeof name, "%02zu.A9.lse", l);
        need(sinkproof_trace_builder_add(b, name, "F32", 2, shape, lse, &error), &error);
        for (int p = 0; p < TRACE_POINTS; p++)
            if (l == 0 || sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                add_cut_point(b, config, shown, (sinkproof_trace_point)p, l, &all);
        free(sinks);
    }
    need(sinkproof_trace_builder_finish(b, &trace, &error), &error);
    sinkproof_judgement j = judged_trace(model, trace, c->policy);
    sinkproof_trace_builder_free(b);
    sinkproof_trace_close(trace), sinkproof_trace_close(full), sinkproof_trace_close(shown);
    return j;
}

static size_t counted_lse(const sinkproof_judgement *j, size_t *outside, size_t *undecided) {
    size_t points = 0;
    *outside = *undecided = 0;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (r->point != TRACE_LSE && r->point != TRACE_LSE_KEYS) continue;
        points++, *outside += r->outside, *undecided += r->undecided;
    }
    return points;
}

static void honest(const char *what, lse_case c, sinkproof_lse found, bool tried) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    sinkproof_judgement j = judged_lse(model, &c);
    size_t outside, undecided, points = counted_lse(&j, &outside, &undecided);
    static char text[REPORT_ROOM];
    report_as_text(sinkproof_model_config(model), &j, text);
    const char *words = found == SINKPROOF_LSE_KEYS
                            ? "\nA9.lse fits without the sink, and not with"
                            : "\nA9.lse fits with the sink, and not without";
    ok((strstr(text, words) != NULL) == tried && j.verdict <= SINKPROOF_VERDICT_WITHIN &&
           points == 2 && outside == 0 && undecided == 0 && j.lse == found && j.lse_tried == tried,
       "bound.lse-rounded %s, %s: an honest log-sum-exp of two layers is %s", what, c.policy,
       sinkproof_verdict_name(j.verdict));
    sinkproof_judgement_free(&j), sinkproof_model_close(model);
}

static void convicted(const char *what, lse_case c, const char *words) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    sinkproof_judgement j = judged_lse(model, &c);
    size_t outside, undecided, points = counted_lse(&j, &outside, &undecided);
    static char text[REPORT_ROOM];
    report_as_text(sinkproof_model_config(model), &j, text);
    ok(j.verdict == SINKPROOF_VERDICT_BUG && points == 2 && outside > 0 &&
           strcmp(j.first->name, "00.A9.lse") == 0 && strstr(text, words) != NULL,
       "bound.lse-rounded %s: %zu of %d elements are outside", what, outside, 2 * 10 * N);
    sinkproof_judgement_free(&j), sinkproof_model_close(model);
}

int main(void) {
    const char *no_weights = "T0,A2,A4,A6,A11,A12,A13", *bridged = "A4,A2.v,A11";
    const lse_case keys = {"f32", no_weights, false, false, NULL, 1, 0, false};
    lse_case c = keys;
    honest("of the keys alone, found", c, SINKPROOF_LSE_KEYS, true);
    c.with_sink = true;
    honest("with the sink, found", c, SINKPROOF_LSE_WITH_SINK, true);
    c.said = "with-sink", c.points = NULL, c.policy = "bf16";
    honest("with the sink, said", c, SINKPROOF_LSE_WITH_SINK, false);
    c.by_token = true, c.said = NULL, c.points = bridged, c.policy = "f32";
    honest("[n, heads], without scores", c, SINKPROOF_LSE_WITH_SINK, true);
    c.base_2 = true, c.with_sink = false, c.points = no_weights;
    honest("of exponentials in base 2, in natural units", c, SINKPROOF_LSE_KEYS, true);
    c = keys, c.times = 1 / log(2);
    convicted("in base 2", c, "the same in base 2: ");
    c = keys, c.plus = 0x1p-12;
    convicted("off by 2^-12", c, "A9.lse fits neither with the sink (");
    c = keys, c.said = "with-sink";
    convicted("without the sink, said to be with it", c, "First divergence: 00.A9.lse");
    return tap_done();
}
