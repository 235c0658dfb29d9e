// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk: tokens to logits, every point settled in the order of the forward pass.
#include "audit/judge_internal.h"

#include "audit/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool embed(sinkproof_walk *walk, sinkproof_honest *x_nd, sinkproof_error *error) {
    const sinkproof_config *c = walk->config;
    sinkproof_matrix table = sinkproof_model_embedding(walk->model);
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->hidden);
    double *row = sinkproof_grab(c->hidden, sizeof *row);
    const int32_t *tokens = sinkproof_trace_tokens(walk->trace);
    for (size_t i = 0; i < walk->n; i++) {
        if (tokens[i] < 0 || (size_t)tokens[i] >= c->vocab) {
            free(row);
            return sinkproof_fail(error,
                                  "token %d at position %zu is outside the vocabulary of %zu",
                                  tokens[i], i, c->vocab);
        }
        sinkproof_matrix_row(&table, (size_t)tokens[i], row);
        for (size_t k = 0; k < c->hidden; k++)
            x_nd[i * c->hidden + k] =
                sinkproof_honest_at(&s, SINKPROOF_AT_T0, sinkproof_known(row[k]));
        sinkproof_settle(walk, SINKPROOF_TRACE_T0, 0, i * c->hidden, c->hidden,
                         &x_nd[i * c->hidden], 0, (double)i / (double)walk->n);
    }
    free(row);
    return true;
}

static void rotation_tables(sinkproof_walk *walk) {
    size_t half = walk->config->head_dim / 2;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * half);
    walk->c_ip = sinkproof_grab(walk->n * half, sizeof *walk->c_ip);
    walk->s_ip = sinkproof_grab(walk->n * half, sizeof *walk->s_ip);
    const int32_t *positions = sinkproof_trace_positions(walk->trace);
    for (size_t i = 0; i < walk->n; i++)
        sinkproof_honest_rope_table(&s, walk->config, positions[i], &walk->c_ip[i * half],
                                    &walk->s_ip[i * half]);
}

// F1 and F2, in slices of the vocabulary so that the full-size head stays bounded.
static void unembed(sinkproof_walk *walk, const sinkproof_honest *x_nd) {
    const sinkproof_config *c = walk->config;
    sinkproof_matrix norm = sinkproof_model_final_norm(walk->model);
    sinkproof_matrix w = sinkproof_model_unembedding(walk->model);
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->hidden);
    sinkproof_honest *t = sinkproof_grab(walk->n * c->hidden, sizeof *t);
    double *scale = sinkproof_decoded(&norm), common;
    for (size_t i = 0; i < walk->n; i++) {
        sinkproof_honest_rmsnorm(&s, SINKPROOF_AT_F1, c->hidden, &x_nd[i * c->hidden], scale,
                                 c->rms_eps, &t[i * c->hidden], &common);
        sinkproof_settle(walk, SINKPROOF_TRACE_F1, 0, i * c->hidden, c->hidden, &t[i * c->hidden],
                         common, (double)i / (double)walk->n);
    }
    free(scale);
    enum { SLICE = 4096 };
    bool traced = sinkproof_trace_find(walk->trace, SINKPROOF_TRACE_F2, 0) != NULL;
    sinkproof_planes planes = sinkproof_planes_of(t, walk->n, c->hidden, c->hidden, s.mid_only);
    s = sinkproof_walk_setting(walk, walk->n * c->vocab);
    sinkproof_honest *y = sinkproof_grab(walk->n * SLICE, sizeof *y);
    for (size_t v = 0; traced && v < c->vocab; v += SLICE) {
        size_t count = c->vocab - v < SLICE ? c->vocab - v : SLICE;
        sinkproof_honest_linear(&s, &planes, &w, v, count, NULL, y, SLICE);
        for (size_t i = 0; i < walk->n; i++) {
            sinkproof_honest *row = &y[i * SLICE];
            for (size_t k = 0; k < count; k++)
                row[k] =
                    sinkproof_honest_at(&s, SINKPROOF_AT_F2, sinkproof_honest_inside(&s, row[k]));
            sinkproof_settle(walk, SINKPROOF_TRACE_F2, 0, i * c->vocab + v, count, row, 0,
                             (double)i / (double)walk->n);
        }
    }
    sinkproof_planes_free(&planes);
    free(y), free(t);
}

static bool walk_all(sinkproof_walk *walk, bool progress, sinkproof_error *error) {
    const sinkproof_config *c = walk->config;
    sinkproof_honest *x = sinkproof_grab(walk->n * c->hidden, sizeof *x);
    rotation_tables(walk);
    bool fine = embed(walk, x, error);
    for (size_t l = 0; fine && l < c->n_layers; l++) {
        if (progress)
            sinkproof_progress("judge", walk->end_to_end ? "truth, layer" : "layer", l,
                               c->n_layers);
        sinkproof_walk_attention(walk, l, x);
        sinkproof_walk_experts(walk, l, x);
    }
    if (fine) unembed(walk, x);
    if (progress)
        sinkproof_progress("judge", walk->end_to_end ? "truth, layer" : "layer", c->n_layers,
                           c->n_layers);
    free(x), free(walk->c_ip), free(walk->s_ip);
    return fine;
}

// A point is bridged when the one that it is computed from is not in the trace.
static bool is_bridged(const sinkproof_walk *walk, const sinkproof_point_report *report) {
    static const sinkproof_trace_point before[SINKPROOF_TRACE_POINTS] = {
        [SINKPROOF_TRACE_A2_Q] = SINKPROOF_TRACE_A1,
        [SINKPROOF_TRACE_A2_K] = SINKPROOF_TRACE_A1,
        [SINKPROOF_TRACE_A2_V] = SINKPROOF_TRACE_A1,
        [SINKPROOF_TRACE_A4_Q] = SINKPROOF_TRACE_A2_Q,
        [SINKPROOF_TRACE_A4_K] = SINKPROOF_TRACE_A2_K,
        [SINKPROOF_TRACE_A6] = SINKPROOF_TRACE_A4_Q,
        [SINKPROOF_TRACE_A9] = SINKPROOF_TRACE_A6,
        [SINKPROOF_TRACE_A10] = SINKPROOF_TRACE_A9,
        [SINKPROOF_TRACE_A11] = SINKPROOF_TRACE_A9,
        [SINKPROOF_TRACE_A12] = SINKPROOF_TRACE_A11,
        [SINKPROOF_TRACE_A13] = SINKPROOF_TRACE_A12,
        [SINKPROOF_TRACE_M1] = SINKPROOF_TRACE_A13,
        [SINKPROOF_TRACE_M2] = SINKPROOF_TRACE_M1,
        [SINKPROOF_TRACE_M3] = SINKPROOF_TRACE_M2,
        [SINKPROOF_TRACE_M4] = SINKPROOF_TRACE_M2,
        [SINKPROOF_TRACE_M5] = SINKPROOF_TRACE_M1,
        [SINKPROOF_TRACE_M6] = SINKPROOF_TRACE_M1,
        [SINKPROOF_TRACE_M8] = SINKPROOF_TRACE_M6,
        [SINKPROOF_TRACE_M9] = SINKPROOF_TRACE_M8,
        [SINKPROOF_TRACE_M10] = SINKPROOF_TRACE_M8,
        [SINKPROOF_TRACE_M11] = SINKPROOF_TRACE_M10,
        [SINKPROOF_TRACE_M12] = SINKPROOF_TRACE_M11,
        [SINKPROOF_TRACE_F2] = SINKPROOF_TRACE_F1};
    size_t l = report->layer;
    sinkproof_trace_point from = before[report->point];
    if (report->point == SINKPROOF_TRACE_T0) return false;
    if (report->point == SINKPROOF_TRACE_A1) {
        from = l > 0 ? SINKPROOF_TRACE_M12 : SINKPROOF_TRACE_T0;
        l = l > 0 ? l - 1 : 0;
    }
    if (report->point == SINKPROOF_TRACE_F1)
        from = SINKPROOF_TRACE_M12, l = walk->config->n_layers - 1;
    if (sinkproof_trace_find(walk->trace, from, l) != NULL) return false;
    bool keys = report->point == SINKPROOF_TRACE_A11 &&
                sinkproof_trace_find(walk->trace, SINKPROOF_TRACE_A10, l) != NULL;
    return !keys;
}

static void conclude(sinkproof_walk *walk) {
    sinkproof_judgement *j = walk->judgement;
    for (size_t i = 0; i < j->n_reports; i++) {
        sinkproof_point_report *r = &j->reports[i];
        r->drift = sinkproof_drift_judge(&r->drift_sums, walk->rate);
        r->share_median = sinkproof_histogram_median(&r->shares);
        r->power_single = sinkproof_histogram_median(&r->widths);
        r->bridged = is_bridged(walk, r);
        bool leans = r->drift.bin >= 0 && !(fabs(r->drift.gain) <= r->drift.limit);
        r->verdict = r->outside > 0             ? SINKPROOF_VERDICT_BUG
                     : r->unlikely > 0 || leans ? SINKPROOF_VERDICT_SUSPICIOUS
                     : r->several == 0          ? SINKPROOF_VERDICT_EXACT
                                                : SINKPROOF_VERDICT_WITHIN;
        sinkproof_describe_inputs(walk, r);
        if (r->verdict > j->verdict) j->verdict = r->verdict;
        if (r->verdict == SINKPROOF_VERDICT_BUG && j->first == NULL) j->first = r;
        if (r->verdict == SINKPROOF_VERDICT_SUSPICIOUS && j->first_suspicious == NULL)
            j->first_suspicious = r;
    }
}

bool sinkproof_judge(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_policy *policy, double rate, bool end_to_end, bool progress,
                     sinkproof_judgement *judgement, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t slots = (c->n_layers + 1) * SINKPROOF_TRACE_POINTS, n = sinkproof_trace_length(trace);
    *judgement = (sinkproof_judgement){.policy = *policy, .thinnest_margin = INFINITY};
    if (c->n_chosen > SINKPROOF_MAX_CHOSEN)
        return sinkproof_fail(error, "%zu experts per token: the judge takes at most %d",
                              c->n_chosen, SINKPROOF_MAX_CHOSEN);
    judgement->reports = sinkproof_grab(slots, sizeof *judgement->reports);
    sinkproof_walk walk = {.model = model,
                           .config = c,
                           .trace = trace,
                           .policy = policy,
                           .rate = rate,
                           .n = n,
                           .judgement = judgement};
    walk.report_of = sinkproof_grab(slots, sizeof *walk.report_of);
    walk.chosen = sinkproof_grab(c->n_layers * n * c->n_chosen, sizeof *walk.chosen);
    memset(walk.report_of, -1, slots * sizeof *walk.report_of);
    bool fine = walk_all(&walk, progress, error);
    if (fine && judgement->n_reports == 0)
        fine = sinkproof_fail(error, "the trace holds none of the points that can be judged");
    if (fine) conclude(&walk);
    sinkproof_policy real;
    if (fine && end_to_end) {
        fine = sinkproof_policy_parse("real-f64", &real, error);
        walk.policy = &real;
        walk.end_to_end = true;
        fine = fine && walk_all(&walk, progress, error);
    }
    free(walk.report_of), free(walk.chosen);
    if (!fine) sinkproof_judgement_free(judgement);
    return fine;
}

void sinkproof_judgement_free(sinkproof_judgement *judgement) {
    free(judgement->reports);
    *judgement = (sinkproof_judgement){0};
}

double sinkproof_judgement_misfit(const sinkproof_judgement *j) {
    double misfit = 0;
    for (size_t i = 0; i < j->n_reports; i++) {
        misfit += j->reports[i].verdict == SINKPROOF_VERDICT_BUG ? 1e6 : 0;
        misfit += j->reports[i].verdict == SINKPROOF_VERDICT_SUSPICIOUS ? 1 : 0;
    }
    return misfit;
}
