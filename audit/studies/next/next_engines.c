// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Engines that a policy admits: the reference's loop, in which each sum of a projection, of the
// values, of the router, of a down-projection and of the unembedding is computed anew in the
// policy's inner format, in lanes, from either end, with products rounded or not; and in which each
// optional rounding is made or not. A seed draws all of it. An engine that is steered computes each
// of those numbers in several orders and keeps the one that lowers a margin most, by its
// derivative: each number is still one that an honest order gives.
#include "audit/studies/next/next_internal.h"

#include "audit/trace/trace_points.h"
#include "base/splitmix.h"
#include "base/words.h"
#include "ref/operands.h"
#include "ref/stages.h"
#include "ref/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- a sum in some order

enum { MOST_LANES = 32, STEERED_WAYS = 4 };

typedef struct way {
    size_t lanes;    // partial sums
    bool blocks;     // each of neighbours, or of every lanes-th term
    bool descending; // from the last term on
    bool wide;       // a product joins its sum without a rounding of its own
    bool pairs;      // the partial sums are added in pairs, or one after the other
} way;

static way way_drawn(uint64_t seed) {
    uint64_t bits = sinkproof_mix(seed);
    return (way){.lanes = (size_t)1 << bits % 6,
                 .blocks = bits >> 8 & 1,
                 .descending = bits >> 9 & 1,
                 .wide = bits >> 10 & 1,
                 .pairs = bits >> 11 & 1};
}

static double to_inside(sinkproof_format inside, double x) {
    return inside == SINKPROOF_F32 ? (double)(float)x : x;
}

// A product of two float32 numbers is exact in binary64; in binary64 it is rounded.
static double add_term(sinkproof_format inside, bool wide, double sum, double w, double x) {
    if (inside != SINKPROOF_F32) return wide ? fma(w, x, sum) : sum + w * x;
    return (double)(float)(sum + (wide ? w * x : (double)(float)(w * x)));
}

static double sum_products(way a, sinkproof_format inside, size_t n, const double *w_k,
                           const double *x_k, size_t x_stride) {
    double lane[MOST_LANES] = {0};
    size_t block = (n + a.lanes - 1) / a.lanes;
    for (size_t step = 0; step < n; step++) {
        size_t k = a.descending ? n - 1 - step : step;
        double *sum = &lane[a.blocks ? k / block : k % a.lanes];
        *sum = add_term(inside, a.wide, *sum, w_k[k], x_k[k * x_stride]);
    }
    if (!a.pairs)
        for (size_t l = 1; l < a.lanes; l++) lane[0] = to_inside(inside, lane[0] + lane[l]);
    for (size_t half = a.lanes / 2; a.pairs && half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) lane[l] = to_inside(inside, lane[l] + lane[l + half]);
    return lane[0];
}

// ---- the engine

bool next_engine_draws(sinkproof_trace_point point) {
    switch (point) {
    case TRACE_A2_Q:
    case TRACE_A2_K:
    case TRACE_A2_V:
    case TRACE_A11:
    case TRACE_A12:
    case TRACE_M2:
    case TRACE_M10:
    case TRACE_F2:
        return true;
    default:
        return false;
    }
}

static bool is_plain(sinkproof_rounding r) {
    bool plain =
        r.format == SINKPROOF_F32 || r.format == SINKPROOF_F16 || r.format == SINKPROOF_BF16;
    return plain && r.scale == SINKPROOF_SCALE_NONE;
}

// Where a traced point is not rounded, the number still leaves its sum or its quotient in the inner
// format. Roundings inside of attention that exclude each other (A9.unnorm, A11.part) are not made.
sinkproof_policy next_engine_policy(const sinkproof_policy *policy, uint64_t seed) {
    sinkproof_policy out = *policy;
    bool traced[AT_POINTS] = {false};
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_point at;
        if (sinkproof_trace_rounding((sinkproof_trace_point)p, &at)) traced[at] = true;
    }
    for (int p = 0; p < AT_POINTS; p++) {
        sinkproof_rounding *at = &out.at[p];
        if (!at->optional) continue;
        bool never = p == AT_A9_UNNORM || p == AT_A11_PART || !is_plain(*at);
        bool made = !never && sinkproof_draw_nth(seed, (uint64_t)p) >> 63 != 0;
        sinkproof_format stays =
            traced[p] && policy->inside == SINKPROOF_F32 ? SINKPROOF_F32 : SINKPROOF_REAL;
        *at = (sinkproof_rounding){.format = made ? at->format : stays};
    }
    return out;
}

// The state of a run: the latest values of each point.
typedef struct machine {
    next_engine *engine;
    const sinkproof_model *model; // with its weights as the policy stores them
    const sinkproof_config *config;
    sinkproof_policy policy;
    size_t n;
    double *at[TRACE_POINTS];
    double *w_c, *b_r;
    bool failed;
} machine;

static bool all_in_format(sinkproof_format inside, size_t n, const double *x) {
    for (size_t i = 0; i < n; i++)
        if (to_inside(inside, x[i]) != x[i]) return false;
    return true;
}

// Whether the policy leaves the sum of a product to the engine.
static bool leaves_sum_open(const sinkproof_policy *policy, sinkproof_point in,
                            sinkproof_point term, sinkproof_point acc) {
    return policy->at[in].format == SINKPROOF_REAL && policy->at[term].format == SINKPROOF_REAL &&
           policy->at[acc].format == SINKPROOF_REAL;
}

// One result: the sum, what follows it up to the stored number.
typedef struct result_of {
    sinkproof_point product, stored;
    bool biased;
    double bias;
} result_of;

static double finish_sum(const machine *m, const result_of *what, double sum) {
    if (what->biased)
        sum = to_inside(m->policy.inside, round_at(&m->policy, what->product, sum) + what->bias);
    return round_at(&m->policy, what->stored, sum);
}

// slope: the derivative of the margin with respect to the result, or NULL.
static double draw_result(const machine *m, uint64_t seed, const result_of *what, size_t n,
                          const double *w_k, const double *x_k, size_t stride,
                          const double *slope) {
    sinkproof_format inside = m->policy.inside;
    double best = finish_sum(m, what, sum_products(way_drawn(seed), inside, n, w_k, x_k, stride));
    for (uint64_t more = 1; slope != NULL && *slope != 0 && more < STEERED_WAYS; more++) {
        double y =
            finish_sum(m, what, sum_products(way_drawn(seed + more), inside, n, w_k, x_k, stride));
        if (y * *slope < best * *slope) best = y;
    }
    return best;
}

static const double *slopes_at(const machine *m, sinkproof_trace_point point, size_t layer) {
    return m->engine->against == NULL ? NULL : *next_map_at(m->engine->against, point, layer);
}

static uint64_t place_seed(const machine *m, sinkproof_trace_point point, size_t layer) {
    return sinkproof_draw_nth(m->engine->seed, AT_POINTS + layer * TRACE_POINTS + (size_t)point);
}

// y_nr = sum_c W_rc x_nc + b_r of `slots` rows of x, those that slot_s names (NULL: all in turn).
static void draw_linear(machine *m, const sinkproof_walk_step *step, const sinkproof_matrix *w,
                        const sinkproof_matrix *b, const sinkproof_product_points *at,
                        sinkproof_point stored, const double *x_nc, size_t slots,
                        const size_t *slot_s, double *y_nr) {
    bool biased = b != NULL && b->count > 0;
    const double *slope_nr = slopes_at(m, step->point, step->layer);
    uint64_t seed = place_seed(m, step->point, step->layer);
    if (biased) sinkproof_matrix_row(b, 0, m->b_r);
    for (size_t r = 0; r < w->rows; r++) {
        sinkproof_matrix_row(w, r, m->w_c);
        if (!all_in_format(m->policy.inside, w->cols, m->w_c)) continue; // the reference's sum
        for (size_t s = 0; s < slots; s++) {
            size_t slot = slot_s != NULL ? slot_s[s] : s, y = slot * w->rows + r;
            result_of what = {at->product, stored, biased, biased ? m->b_r[r] : 0};
            y_nr[y] = draw_result(m, seed, &what, w->cols, m->w_c, x_nc + slot * w->cols, 1,
                                  slope_nr != NULL ? slope_nr + y : NULL);
        }
    }
}

static void draw_projection(machine *m, const sinkproof_walk_step *step, double *y) {
    sinkproof_point stored;
    const sinkproof_matrix *w = &step->weights[0];
    const double *x = m->at[step->inputs[0].point];
    if (!sinkproof_trace_rounding(step->point, &stored)) return;
    sinkproof_product_points at = sinkproof_product_points_at(stored);
    if (!leaves_sum_open(&m->policy, at.in, at.term, at.acc)) return;
    if (!all_in_format(m->policy.inside, m->n * w->cols, x)) return;
    draw_linear(m, step, w, &step->weights[1], &at, stored, x, m->n, NULL, y);
}

// The down-projections of the chosen experts, with their biases.
static void draw_experts(machine *m, const sinkproof_walk_step *step, double *y) {
    sinkproof_walk_step product = sinkproof_walk_step_at(m->model, TRACE_M9, step->layer);
    const sinkproof_matrix *stack = &product.weights[0];
    sinkproof_product_points at = sinkproof_product_points_at(AT_M9);
    size_t slots = m->n * m->config->n_chosen;
    const double *x = m->at[TRACE_M8], *chosen = m->at[TRACE_M3];
    size_t *slot_s = malloc(slots * sizeof *slot_s);
    m->failed = m->failed || slot_s == NULL;
    at.product = AT_M9; // the point between the product and its bias
    bool open = leaves_sum_open(&m->policy, at.in, at.term, at.acc) &&
                all_in_format(m->policy.inside, slots * stack->cols, x);
    for (size_t e = 0; open && slot_s != NULL && e < stack->count; e++) {
        size_t found = 0;
        for (size_t s = 0; s < slots; s++)
            if (chosen[s] == (double)e) slot_s[found++] = s;
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        sinkproof_matrix b = sinkproof_matrix_at(&step->weights[0], e);
        if (found > 0) draw_linear(m, step, &w, &b, &at, AT_M10, x, found, slot_s, y);
    }
    free(slot_s);
}

static void draw_values(machine *m, const sinkproof_walk_step *step, double *y) {
    const sinkproof_config *c = m->config;
    size_t n = m->n, d = c->head_dim, heads = c->n_heads, kv = c->n_kv_heads;
    const double *weights = m->at[TRACE_A10], *v = m->at[TRACE_A2_V];
    const double *slope = slopes_at(m, TRACE_A11, step->layer);
    uint64_t seed = place_seed(m, TRACE_A11, step->layer);
    result_of what = {.stored = AT_A11};
    if (!leaves_sum_open(&m->policy, AT_A11_WEIGHTS, AT_A11_TERM, AT_A11_ACC)) return;
    if (m->policy.at[AT_A11_V].format != SINKPROOF_REAL) return;
    if (m->policy.at[AT_A9_UNNORM].format != SINKPROOF_REAL) return; // no weights meet the values
    if (!all_in_format(m->policy.inside, heads * n * n, weights)) return;
    if (!all_in_format(m->policy.inside, n * kv * d, v)) return;
    for (size_t i = 0; i < n; i++)
        for (size_t h = 0; h < heads; h++) {
            size_t first = sinkproof_mask_first(c->sliding[step->layer] ? c->window : 0, i);
            const double *row = weights + (h * n + i) * n + first;
            for (size_t e = 0; e < d; e++) {
                size_t at = (i * heads + h) * d + e;
                y[at] = draw_result(m, seed, &what, i + 1 - first, row,
                                    v + (first * kv + h / (heads / kv)) * d + e, kv * d,
                                    slope != NULL ? slope + at : NULL);
            }
        }
}

// The choice of experts by the router's logits of this engine, and their weights.
static void choose_again(machine *m, double *chosen_nk) {
    size_t k = m->config->n_chosen, experts = m->config->n_experts;
    int32_t *one = malloc(k * sizeof *one);
    m->failed = m->failed || one == NULL;
    for (size_t i = 0; one != NULL && i < m->n; i++) {
        sinkproof_router_choose(experts, k, m->at[TRACE_M2] + i * experts, one);
        for (size_t j = 0; j < k; j++) chosen_nk[i * k + j] = one[j];
    }
    free(one);
}

static void weigh_again(const machine *m, double *weight_nk) {
    size_t k = m->config->n_chosen;
    for (size_t i = 0; i < m->n; i++) {
        const double *logit_e = m->at[TRACE_M2] + i * m->config->n_experts;
        const double *chosen_k = m->at[TRACE_M3] + i * k;
        double *weight_k = weight_nk + i * k, sum = 0;
        for (size_t j = 0; j < k; j++)
            sum += weight_k[j] = exp(logit_e[(size_t)chosen_k[j]] - logit_e[(size_t)chosen_k[0]]);
        for (size_t j = 0; j < k; j++) weight_k[j] = round_at(&m->policy, AT_M4, weight_k[j] / sum);
    }
}

static void replace_point(void *context, const char *name, size_t rank, const size_t *shape,
                          double *values) {
    machine *m = context;
    sinkproof_trace_point point;
    size_t layer;
    (void)rank, (void)shape;
    if (m->failed || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    if (point == TRACE_M3) choose_again(m, values);
    if (point == TRACE_M4) weigh_again(m, values);
    if (!next_engine_draws(point)) return;
    sinkproof_walk_step step = sinkproof_walk_step_at(m->model, point, layer);
    if (point == TRACE_A11)
        draw_values(m, &step, values);
    else if (step.operation == SINKPROOF_ADD_BIAS)
        draw_experts(m, &step, values);
    else
        draw_projection(m, &step, values);
}

static void count_flips(machine *m, size_t layer) {
    size_t k = m->config->n_chosen;
    if (m->engine->chosen_l == NULL) return;
    for (size_t i = 0; i < m->n; i++) {
        const double *mine = m->at[TRACE_M3] + i * k, *real = m->engine->chosen_l[layer] + i * k;
        bool same = true;
        for (size_t j = 0; j < k; j++) {
            bool there = false;
            for (size_t other = 0; other < k; other++) there = there || mine[j] == real[other];
            same = same && there;
        }
        m->engine->flips += !same;
    }
}

// The token that the engine says, the lower of two equal logits; NaN is never the largest.
static void read_logits(machine *m, const double *logit_nv) {
    size_t vocab = m->config->vocab;
    for (size_t i = 0; i < m->n; i++) {
        const double *logit_v = logit_nv + i * vocab;
        size_t truth = m->engine->position_n[i].argmax, best = vocab;
        double other = -INFINITY;
        for (size_t v = 0; v < vocab; v++) {
            if (best == vocab ? logit_v[v] == logit_v[v] : logit_v[v] > logit_v[best]) best = v;
            if (v != truth && logit_v[v] > other) other = logit_v[v];
        }
        m->engine->said_n[i] = (next_said){best, logit_v[truth] - other};
    }
}

static void see_point(void *context, const char *name, size_t rank, const size_t *shape,
                      const double *values) {
    machine *m = context;
    sinkproof_trace_point point;
    size_t layer, count = 1;
    const sinkproof_observer *next = m->engine->shown;
    if (next != NULL && next->see != NULL) next->see(next->context, name, rank, shape, values);
    if (m->failed || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    if (point == TRACE_F2) {
        read_logits(m, values);
        return;
    }
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    if (m->at[point] == NULL) m->at[point] = malloc(count * sizeof(double));
    m->failed = m->at[point] == NULL;
    if (!m->failed) memcpy(m->at[point], values, count * sizeof(double));
    if (!m->failed && point == TRACE_M3) count_flips(m, layer);
}

static size_t widest_row(const sinkproof_config *c) {
    size_t widest = c->hidden, heads = c->n_heads * c->head_dim;
    if (heads > widest) widest = heads;
    if (2 * c->inter > widest) widest = 2 * c->inter;
    if (c->n_experts > widest) widest = c->n_experts;
    return c->vocab > widest ? c->vocab : widest;
}

bool next_engine_run(next_engine *engine, sinkproof_error *error) {
    const next_prompt *p = engine->prompt;
    machine m = {.engine = engine,
                 .config = p->config,
                 .policy = next_engine_policy(p->policy, engine->seed),
                 .n = p->n};
    sinkproof_model *kept = sinkproof_model_kept(p->model, p->policy->weights);
    m.model = kept;
    m.w_c = malloc(widest_row(p->config) * sizeof *m.w_c);
    m.b_r = malloc(widest_row(p->config) * sizeof *m.b_r);
    m.failed = kept == NULL || m.w_c == NULL || m.b_r == NULL;
    sinkproof_session *session = m.failed ? NULL : sinkproof_session_new(kept, &m.policy);
    sinkproof_observer observer = {.see = see_point, .replace = replace_point, .context = &m};
    bool good =
        session != NULL && sinkproof_forward(session, p->n, p->tokens_n, NULL, &observer, error);
    if (session == NULL || m.failed)
        good = sinkproof_fail(error, "no memory for an engine on %s",
                              sinkproof_counted(p->n, "token").text);
    for (int point = 0; point < TRACE_POINTS; point++) free(m.at[point]);
    sinkproof_session_free(session);
    sinkproof_model_close(kept);
    free(m.w_c);
    free(m.b_r);
    return good;
}
