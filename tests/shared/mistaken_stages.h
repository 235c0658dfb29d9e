// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The stages of an engine with mistakes (mistaken.h): the reference with some of it wrong. Nothing
// here is shared with audit/diagnose/, which must find the mistakes from the trace: there a mistake
// is a change of honest sets, here it is code that computes something else.
#ifndef SINKPROOF_TESTS_MISTAKEN_STAGES_H
#define SINKPROOF_TESTS_MISTAKEN_STAGES_H

#include "audit/trace/trace_write.h"
#include "model/slots.h"
#include "ref/stages.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

// The mistake of a stage.
typedef enum wrong {
    RIGHT,
    MASK_OFF,
    SINK_IN_MAX_ONLY,
    SINK_RENORMALISED,
    SINK_PER_PART,
    SINK_UNSHIFTED,
    SINK_VALUE,
    SCORE_TIMES,
    MODULUS,
    CONCENTRATION, // by: its power; slots: 1 queries, 2 keys
    NEIGHBOURS,
    BACKWARDS,
    UNTURNED,
    POSITIONS,
    SELECT_SMALLEST,
    SELECT_SHIFTED,
    SELECT_RUNNER_UP,
    SHARE_BEFORE,
    SHARE_SIGMOID,
    SHARE_SIGMOIDS,
    SHARE_EVEN,
    SHARE_ONE,
    SHARE_LOGIT,
    SHARE_BACKWARDS,
    ACT_SWAPPED,
    ACT_HALVES,
    ACT_GATE_BOTH,
    ACT_GATE_FREE,
    ACT_UP_ABOVE,
    ACT_UP_FREE,
    ACT_PLUS,
    MIX_TIMES,
    MIX_EVEN,
    MIX_ONES,
    MIX_BACKWARDS,
    MIX_LAST_MISSING,
    EPS_OUTSIDE,
    CENTRED,
    RESIDUAL, // x times `by`, the addend times `slots`, at A13 or M12
    NOISE     // not a known mistake: some values of a point are off
} wrong;

// The change of a weight.
typedef enum spoil {
    KEPT,
    TIMES,      // by
    CONSTANT,   // by
    PLUS,       // by
    TIMES_BF16, // by, rounded to bfloat16; by is taken back then
    HEAD_SHIFT, // elements of a vector, or rows, moved by `by` places
    REVERSED,
    BY_GROUP,
    FIRST_OF_GROUP,
    NEXT_LAYER,
    NEXT_EXPERT,
    PAIRS,        // rows of a matrix and elements of a vector: neighbours are swapped
    COLUMN_PAIRS, // columns
    SPLIT,        // even ones first in each block of `by`
    MERGED,       // the inverse of SPLIT
    COLUMN_SPLIT,
    COLUMN_HEADS, // columns d-major
} spoil;

typedef struct planted {
    const char *id, *at; // the expected diagnosis, and the point where it shows first
    const char *runs;    // overrides of the policy
    void (*config)(sinkproof_config *config, double by);
    double by;
    wrong wrong;
    unsigned slots;
    spoil spoil;
} planted;

// The mistakes of the running engine, and its data about the model.
static struct {
    const planted *list[2];
    size_t n, calls; // calls of `scores` and `values`: one per head
    const sinkproof_config *c;
    double *x, *added; // the residual and the last shown values
} now;

static const planted *is(wrong w) {
    for (size_t i = 0; i < now.n; i++)
        if (now.list[i]->wrong == w) return now.list[i];
    return NULL;
}

static void *fresh(size_t count, size_t size) {
    void *p = calloc(count, size);
    must(p != NULL);
    return p;
}

#define R(point, x) round_at(p, AT_##point, (x))

// ---- attention

static void bad_scores(const sinkproof_policy *p, const sinkproof_block *b, const double *q,
                       const double *k, double *s) {
    size_t d = b->head_dim, h = now.calls++ % now.c->n_heads;
    size_t group = now.c->n_heads / now.c->n_kv_heads;
    if (is(MODULUS)) k = k - h / group * d + h % now.c->n_kv_heads * d;
    sinkproof_scores(p, b, q, k, s);
    for (size_t i = 0; is(SCORE_TIMES) && i < b->rows * b->keys; i++)
        s[i] = R(A6, s[i] * pow((double)d, is(SCORE_TIMES)->by));
}

// alpha of one row over keys [first, end) with the sink's weight last.
static void bad_row(const sinkproof_policy *p, size_t first, size_t end, size_t keys,
                    const double *s_j, double b, double *a_j) {
    double m = b, sink, sum, all = 0;
    for (size_t j = first; j < end; j++) m = fmax(m, s_j[j]);
    sink = exp(R(A9_MAX, b - m));
    memset(a_j, 0, (keys + 1) * sizeof *a_j);
    for (size_t j = first; j < end; j++) a_j[j] = exp(R(A9_MAX, s_j[j] - m)), all += a_j[j];
    sum = all + sink;
    if (is(SINK_IN_MAX_ONLY)) sum = all, sink = 0;
    if (is(SINK_RENORMALISED)) sum = all, sink = sink / (all + sink) * all;
    if (is(SINK_UNSHIFTED)) sink = exp(b), sum = all + sink;
    if (is(SINK_PER_PART)) {
        size_t tile = (size_t)is(SINK_PER_PART)->by, parts = 0;
        for (size_t t = first / tile; t * tile < end; t++) parts++;
        sink *= (double)parts, sum = all + sink;
    }
    if (p->at[AT_A9_LSE].format != SINKPROOF_REAL) { // the softmax of the keys times a gate
        double lse = R(A9_LSE, m + log(all)), gate = 1 / (1 + exp(b - lse));
        if (p->at[AT_A9_GATE].format != SINKPROOF_REAL) {
            double low = fmin(lse, b), high = fmax(lse, b),
                   e = R(A9_GATE, exp(R(A9_GATE, low - high)));
            double joined = R(A9_GATE, R(A9_GATE, log(R(A9_GATE, 1 + e))) + high);
            gate = R(A9_GATE, exp(R(A9_GATE, lse - joined)));
        }
        sum = all / gate, sink = sum - all;
    }
    for (size_t j = first; j < end; j++) a_j[j] = R(A9, a_j[j] / sum);
    a_j[keys] = R(A9, sink / sum);
}

static void bad_softmax(const sinkproof_policy *p, const sinkproof_block *block, const double *b_i,
                        const double *s, double *a) {
    for (size_t i = 0; i < block->rows; i++) {
        size_t at = block->first + i, first = sinkproof_mask_first(block->window, at);
        bad_row(p, first, is(MASK_OFF) ? block->keys : at + 1, block->keys, s + i * block->keys,
                R(A8, b_i[i]), a + i * (block->keys + 1));
    }
}

static void bad_values(const sinkproof_policy *p, const sinkproof_block *b, const double *a,
                       const double *v, double *o) {
    size_t h = (now.calls - 1) % now.c->n_heads, group = now.c->n_heads / now.c->n_kv_heads;
    if (is(MODULUS)) v = v - h / group * b->head_dim + h % now.c->n_kv_heads * b->head_dim;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t d = 0; d < b->head_dim; d++) {
            const double *a_j = a + i * (b->keys + 1);
            double sum = is(SINK_VALUE) ? a_j[b->keys] * v[d] : 0;
            for (size_t j = 0; j < b->keys; j++) sum += a_j[j] * v[j * b->kv_stride + d];
            o[i * b->q_stride + d] = R(A11, sum);
        }
}

static bool concerns(const planted *w, bool keys) {
    return w != NULL && (w->slots >> keys & 1) != 0;
}

// The table of the wrong positions, without the concentration if that is the mistake.
static void bad_table(const sinkproof_policy *p, size_t n, bool keys, const double *c,
                      const double *s, double *bad_c, double *bad_s) {
    size_t half = now.c->head_dim / 2;
    double conc = sinkproof_yarn_concentration(now.c), freq[512];
    double by = concerns(is(POSITIONS), keys) ? is(POSITIONS)->by : 0;
    double power = concerns(is(CONCENTRATION), keys) ? is(CONCENTRATION)->by : 0;
    memcpy(bad_c, c, n * half * sizeof *c), memcpy(bad_s, s, n * half * sizeof *s);
    if (by == 0 && power == 0) return;
    sinkproof_yarn_frequencies(p, now.c, freq);
    for (size_t t = 0; t < n; t++)
        for (size_t d = 0; d < half; d++) {
            double angle = R(A4_ANGLE, ((double)t + by) * freq[d]), times = pow(conc, 1 + power);
            bad_c[t * half + d] = R(A4_COS, cos(angle) * times);
            bad_s[t * half + d] = R(A4_COS, sin(angle) * times);
        }
}

static void bad_rope(const sinkproof_policy *p, size_t n, size_t heads, size_t d, const double *c,
                     const double *s, double *x) {
    bool keys = heads == now.c->n_kv_heads;
    size_t half = d / 2;
    double *bad_c = fresh(n * half, sizeof *bad_c), *bad_s = fresh(n * half, sizeof *bad_s);
    bad_table(p, n, keys, c, s, bad_c, bad_s);
    size_t next = concerns(is(NEIGHBOURS), keys) ? 1 : half;
    for (size_t t = 0; t < n && !concerns(is(UNTURNED), keys); t++)
        for (size_t h = 0; h < heads; h++)
            for (size_t i = 0; i < half; i++) {
                double *a = x + (t * heads + h) * d + (next == 1 ? 2 * i : i), *b = a + next;
                double u = bad_c[t * half + i], v = bad_s[t * half + i];
                if (concerns(is(BACKWARDS), keys)) v = -v;
                double first = R(A4_PROD, *a * u) - R(A4_PROD, *b * v);
                double second = R(A4_PROD, *b * u) + R(A4_PROD, *a * v);
                *a = R(A4, first), *b = R(A4, second);
            }
    free(bad_c);
    free(bad_s);
}

static void bad_norm(const sinkproof_policy *p, sinkproof_point point,
                     const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                     double *out, double *work) {
    size_t width = scale->cols;
    if (!is(EPS_OUTSIDE) && !is(CENTRED)) {
        sinkproof_rmsnorm(p, point, scale, eps, n, x, out, work);
        return;
    }
    sinkproof_matrix_row(scale, 0, work);
    for (size_t i = 0; i < n; i++) {
        double mean = 0, square = 0;
        for (size_t c = 0; is(CENTRED) && c < width; c++) mean += x[i * width + c] / (double)width;
        for (size_t c = 0; c < width; c++)
            square += pow(x[i * width + c] - mean, 2) / (double)width;
        double r = is(EPS_OUTSIDE) ? sqrt(square) + eps : sqrt(square + eps);
        for (size_t c = 0; c < width; c++)
            out[i * width + c] = round_at(p, point, (x[i * width + c] - mean) / r * work[c]);
    }
}

// ---- experts

static void bad_choice(size_t experts, size_t k, const double *g, int32_t *chosen) {
    int32_t order[64];
    double *flipped = fresh(experts, sizeof *flipped);
    for (size_t e = 0; e < experts; e++) flipped[e] = is(SELECT_SMALLEST) ? -g[e] : g[e];
    sinkproof_router_choose(experts, k + 1, flipped, order);
    for (size_t s = 0; s < k; s++) chosen[s] = order[s + (is(SELECT_SHIFTED) != NULL)];
    if (is(SELECT_RUNNER_UP)) chosen[k - 1] = order[k];
    free(flipped);
}

static void bad_shares(const sinkproof_policy *p, size_t experts, size_t k, const double *g,
                       const int32_t *chosen, double *w) {
    double all = 0, some = 0, m = -INFINITY;
    for (size_t e = 0; e < experts; e++) m = fmax(m, g[e]);
    for (size_t e = 0; e < experts; e++) all += exp(g[e] - m);
    for (size_t s = 0; s < k; s++) {
        double z = g[chosen[s]];
        w[s] = exp(z - m);
        if (is(SHARE_SIGMOID) || is(SHARE_SIGMOIDS)) w[s] = 1 / (1 + exp(-z));
        some += w[s];
    }
    for (size_t s = 0; s < k; s++) {
        if (is(SHARE_BEFORE)) w[s] /= all;
        if (!is(SHARE_BEFORE) && !is(SHARE_SIGMOID)) w[s] /= some;
        if (is(SHARE_EVEN)) w[s] = 1 / (double)k;
        if (is(SHARE_ONE)) w[s] = 1;
        if (is(SHARE_LOGIT)) w[s] = g[chosen[s]];
        w[s] = R(M4, w[s]);
    }
    for (size_t s = 0; is(SHARE_BACKWARDS) && 2 * s + 1 < k; s++) {
        double kept = w[s];
        w[s] = w[k - 1 - s], w[k - 1 - s] = kept;
    }
}

static void bad_router(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n, size_t k,
                       const double *t, double *g, int32_t *chosen, double *w, double *work) {
    size_t experts = layer->w_router.rows;
    sinkproof_router(p, layer, n, k, t, g, chosen, w, work);
    for (size_t i = 0; i < n; i++) {
        bad_choice(experts, k, g + i * experts, chosen + i * k);
        bad_shares(p, experts, k, g + i * experts, chosen + i * k, w + i * k);
    }
}

static double bad_activation(const sinkproof_policy *p, const sinkproof_config *c, double g,
                             double u) {
    double limit = c->swiglu.limit;
    if (!is(ACT_GATE_FREE)) g = fmin(g, limit);
    if (is(ACT_GATE_BOTH)) g = fmax(g, -limit);
    if (!is(ACT_UP_FREE)) u = fmin(u, limit);
    if (!is(ACT_UP_FREE) && !is(ACT_UP_ABOVE)) u = fmax(u, -limit);
    double alpha = R(M8_ALPHA, c->swiglu.alpha);
    double sigmoid = R(M8_SIGMOID, 1 / (1 + exp(-R(M8_SCALED, alpha * g))));
    double up = R(M8_UP, u + (is(ACT_PLUS) ? is(ACT_PLUS)->by : 1));
    return R(M8, R(M8_SWISH, g * sigmoid) * up);
}

static void bad_experts(const sinkproof_policy *p, const sinkproof_config *c,
                        const sinkproof_layer *layer, size_t n, const double *t,
                        const int32_t *chosen, const sinkproof_expert_outputs *out, double *work) {
    stage_experts(p, c, layer, n, t, chosen, out, work);
    for (size_t q = 0; q < n * c->n_chosen; q++) {
        double *z = out->act + q * c->inter;
        const double *row = out->up + q * 2 * c->inter;
        for (size_t f = 0; f < c->inter; f++) {
            double g = is(ACT_HALVES) ? row[f] : row[2 * f];
            double u = is(ACT_HALVES) ? row[c->inter + f] : row[2 * f + 1];
            z[f] = is(ACT_SWAPPED) ? bad_activation(p, c, u, g) : bad_activation(p, c, g, u);
        }
        sinkproof_matrix w = sinkproof_matrix_at(&layer->w_down, (size_t)chosen[q]);
        sinkproof_matrix b = sinkproof_matrix_at(&layer->b_down, (size_t)chosen[q]);
        double *raw = out->down_raw + q * c->hidden, *down = out->down + q * c->hidden;
        sinkproof_linear(p, AT_M9, 1, &w, NULL, z, raw, work);
        sinkproof_matrix_row(&b, 0, work);
        for (size_t h = 0; h < c->hidden; h++) down[h] = R(M10, raw[h] + work[h]);
    }
}

static void bad_mixture(const sinkproof_policy *p, size_t n, size_t k, size_t hidden,
                        const int32_t *chosen, const double *w, const double *down, double *out) {
    double *by = fresh(n * k, sizeof *by);
    for (size_t i = 0; i < n * k; i++) {
        by[i] = is(MIX_BACKWARDS) ? w[i / k * k + k - 1 - i % k] : w[i];
        if (is(MIX_EVEN)) by[i] = 1 / (double)k;
        if (is(MIX_ONES)) by[i] = 1;
        if (is(MIX_LAST_MISSING) && i % k == k - 1) by[i] = 0;
    }
    sinkproof_mixture(p, n, k, hidden, chosen, by, down, out);
    double times = is(MIX_TIMES) ? (is(MIX_TIMES)->by > 0 ? is(MIX_TIMES)->by : 1 / (double)k) : 1;
    for (size_t i = 0; i < n * hidden; i++) out[i] = R(M11, out[i] * times);
    free(by);
}

#undef R

#endif
