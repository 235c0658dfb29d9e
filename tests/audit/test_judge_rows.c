// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row of a stretch judged alone: its sets are bit by bit those that it has among all rows, at
// every point, from inputs that the trace holds or lacks. And a refusal that asks one row first is
// that of all rows, for mistakes of every place.
#include "audit/judge/judge.h"
#include "audit/trace/trace_points.h"
#include "tests/shared/judged.h"
#include "tests/shared/mistaken.h"
#include "tests/shared/mistakes_planted.h"
#include "tests/shared/opened.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 20, ROW = 13, LAYER = 1, MOST = 1 << 15 };

typedef struct element {
    double lo, hi, mid, likely_lo, likely_hi;
} element;

typedef struct seen {
    element of[MOST];
    size_t n, met[MOST];
} seen;

static seen all, alone;

static void see(void *to, sinkproof_trace_point point, size_t layer, size_t at, double v,
                const sinkproof_honest *set) {
    seen *s = to;
    (void)point, (void)layer, (void)v;
    if (at >= MOST) return;
    s->of[at] = (element){set->lo, set->hi, set->mid, set->likely_lo, set->likely_hi};
    s->met[at]++, s->n++;
}

static void judge_stretch(const sinkproof_model *model, const sinkproof_trace *trace,
                          const sinkproof_policy *policy, const sinkproof_stretch *stretch,
                          const sinkproof_rows *rows, seen *to) {
    sinkproof_error error = {{0}};
    sinkproof_judgement j;
    memset(to, 0, sizeof *to);
    const sinkproof_judge_options how = {
        .rate = 1e-9, .stretch = stretch, .rows = rows, .witness = see, .witnessing = to};
    need(sinkproof_judge(model, trace, policy, &how, &j, &error), &error);
    sinkproof_judgement_free(&j);
}

// The points of a trace, each judged alone.
static void try_points(const sinkproof_model *model, const char *name, const char *points) {
    const sinkproof_config *c = sinkproof_model_config(model);
    const sinkproof_rows rows = {ROW, ROW + 1};
    sinkproof_error error = {{0}};
    sinkproof_policy policy;
    sinkproof_stretch stretch;
    int32_t tokens[TOKENS];
    size_t tried = 0, rows_seen = 0, same = 0, compared = 0;
    some_tokens(TOKENS, c->vocab, 7, tokens);
    need(sinkproof_policy_parse(name, &policy, &error), &error);
    sinkproof_trace *trace = mistaken_trace(model, 0, NULL, name, points, TOKENS, tokens);
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        size_t layer = sinkproof_trace_point_is_layered(point) ? LAYER : 0;
        const sinkproof_tensor *tensor = sinkproof_trace_find(trace, point, layer);
        if (tensor == NULL) continue;
        sinkproof_stretch_to(&stretch, c, &policy, trace, point, layer, true);
        judge_stretch(model, trace, &policy, &stretch, NULL, &all);
        judge_stretch(model, trace, &policy, &stretch, &rows, &alone);
        tried++, rows_seen += alone.n > 0 && alone.n * TOKENS <= 2 * all.n + TOKENS;
        for (size_t at = 0; at < MOST; at++) {
            compared += alone.met[at];
            same += alone.met[at] == 1 && all.met[at] == 1 &&
                    memcmp(&all.of[at], &alone.of[at], sizeof all.of[at]) == 0;
        }
    }
    ok(tried > 3 && rows_seen == tried && same == compared,
       "%s, %s: %zu of %zu sets of a row judged alone are those among all rows, at %zu points",
       name, points, same, compared, tried);
    sinkproof_trace_close(trace);
}

// Whether the definition is refused at the points of a layer; first: rows that are asked first.
static bool refuses(const sinkproof_model *model, const sinkproof_trace *trace,
                    const sinkproof_policy *policy, const sinkproof_stretch *stretch,
                    sinkproof_rows first) {
    sinkproof_error error = {{0}};
    sinkproof_judgement j;
    sinkproof_refusal refusal = {.points = ~0u, .first = first};
    const sinkproof_judge_options how = {.rate = 1e-9, .stretch = stretch, .refusal = &refusal};
    need(sinkproof_judge(model, trace, policy, &how, &j, &error), &error);
    sinkproof_judgement_free(&j);
    return refusal.refused;
}

static void try_refusals(const sinkproof_model *model, const char *points) {
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_error error = {{0}};
    sinkproof_policy policy;
    sinkproof_stretch stretch;
    int32_t tokens[TOKENS];
    size_t asked = 0, refused = 0, alike = 0;
    some_tokens(TOKENS, c->vocab, 7, tokens);
    need(sinkproof_policy_parse("f32", &policy, &error), &error);
    for (size_t i = 0; i < MISTAKES; i += 40) {
        const planted *one = &mistakes[i];
        sinkproof_trace *trace = mistaken_trace(model, 1, &one, "f32", points, TOKENS, tokens);
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            size_t layer = sinkproof_trace_point_is_layered(point) ? LAYER : 0;
            if (sinkproof_trace_find(trace, point, layer) == NULL) continue;
            sinkproof_stretch_to(&stretch, c, &policy, trace, point, layer, true);
            bool plain = refuses(model, trace, &policy, &stretch, (sinkproof_rows){0, 0});
            bool first = refuses(model, trace, &policy, &stretch, (sinkproof_rows){ROW, ROW + 1});
            asked++, refused += plain, alike += plain == first;
        }
        sinkproof_trace_close(trace);
    }
    ok(refused > 0 && refused < asked && alike == asked,
       "%s: %zu of %zu points are refused, %zu alike if one row is asked first", points, refused,
       asked, alike);
}

int main(void) {
    omp_set_num_threads(1); // there is little to do in each of very many judgements
    sinkproof_model *model = open_model("synthetic:tiny");
    static const char *const of[] = {
        "T0,A1,A2,A4,A6,A9,A10,A11,A12,A13,M1,M2,M3,M4,M5,M6,M8,M9,M10,M11,M12,F1,F2",
        "A4.q,A4.k,A2.v,A11", "T0,A13,M3,M12,F2"};
    for (size_t i = 0; i < 2; i++) try_points(model, "f32", of[i]);
    try_points(model, "hf-bf16", of[0]);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) try_refusals(model, of[i]);
    sinkproof_model_close(model);
    return tap_done();
}
