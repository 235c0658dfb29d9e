// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An honest engine as a plug-in, of any policy and in many ways, for
// tests/audit/test_drawn_plugins.py: what it rounds and how it computes stands in the environment.
//   ROUNDED="A1=bf16 A2.product=f16"  what it rounds, and no more; POLICY: what it declares
//   WAYS="lanes=8 reversed online"    how it computes; a word is 1, where no number is given
#include "audit/sinkproof.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 512, LONGEST = 8192 };

// clang-format off
#define POINTS(P) \
    P(A1_NORM, "A1.norm") P(A1, "A1") P(A2_PRODUCT, "A2.product") P(A2, "A2") P(A4_COS, "A4.cos") \
    P(A4_SCALED, "A4.scaled") P(A4_PROD, "A4.prod") P(A4, "A4") P(A5_Q, "A5.q") P(A5_K, "A5.k") \
    P(A5, "A5") P(A6, "A6") P(A8, "A8") P(A9_MAX, "A9.max") P(A9_UNNORM, "A9.unnorm") P(A9, "A9") \
    P(A11_WEIGHTS, "A11.weights") P(A11_V, "A11.v") P(A11, "A11") P(A12_PRODUCT, "A12.product") \
    P(A12, "A12") P(M2_PRODUCT, "M2.product") P(M2, "M2") P(M4, "M4") P(M5, "M5") P(M6, "M6") \
    P(M8_SCALED, "M8.scaled") P(M8_EXP, "M8.exp") P(M8_SIGMOID, "M8.sigmoid") \
    P(M8_SWISH, "M8.swish") P(M8_UP, "M8.up") P(M8, "M8") P(M9, "M9") P(M10, "M10") \
    P(M11_PROD, "M11.prod") P(M11_SUM, "M11.sum") P(M11, "M11") P(F2, "F2")
#define WAYS(P) \
    P(LANES, "lanes") P(PAIRWISE, "pairwise") P(REVERSED, "reversed") P(FUSED, "fused") \
    P(DOUBLE, "double") P(BIAS_FIRST, "bias-first") P(RECIPROCAL, "reciprocal") P(ROOT, "root") \
    P(SCALED_QUERY, "scaled-query") P(SCALED_FIRST, "scaled-first") P(TRUNCATE, "truncate") \
    P(BASE_2, "base-2") P(ONLINE, "online") P(BLOCK, "block") P(PARTS, "parts") \
    P(SINK_LAST, "sink-last") P(FUSED_ATTENTION, "fused-attention") P(TANH, "tanh") \
    P(SOFTMAX_ALL, "softmax-all") P(ONCE, "once")
// clang-format on

#define ID(id, name)   id,
#define NAME(id, name) name,
typedef enum point { POINTS(ID) N_POINTS } point;
typedef enum way { WAYS(ID) N_WAYS } way;
static const char *const point_names[] = {POINTS(NAME)}, *const way_names[] = {WAYS(NAME)};

static char rounded_to[N_POINTS]; // 'b': bfloat16, 'h': binary16, 's': float32; 0: not rounded
static int ways[N_WAYS];

static float to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits += 0x7fff + (bits >> 16 & 1); // ties to even
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 11 bits, in steps of 2^-24 or more.
static float to_binary16(float x) {
    int exponent;
    frexpf(x, &exponent);
    float step = ldexpf(1, exponent - 11 > -24 ? exponent - 11 : -24);
    float y = nearbyintf(x / step) * step;
    return fabsf(y) > 65504 ? copysignf(INFINITY, x) : y;
}

static float at(point p, float x) {
    if (rounded_to[p] == 'b') return to_bfloat16(x);
    return rounded_to[p] == 'h' && isfinite(x) ? to_binary16(x) : x;
}

// ---- sums ------------------------------------------------------------------------------------

// init + sum a_k b_k, b from one number to the next `step`.
static float dot(const float *a, const float *b, size_t n, size_t step, float init) {
    size_t lanes = (size_t)ways[LANES];
    float sum[16] = {init};
    double wide = (double)init;
    for (size_t i = 0; i < n; i++) {
        size_t k = ways[REVERSED] ? n - 1 - i : i;
        float x = a[k], y = b[k * step], *s = &sum[i % lanes];
        wide += (double)x * (double)y;
        *s = ways[FUSED] ? fmaf(x, y, *s) : *s + x * y;
    }
    if (ways[DOUBLE]) return (float)wide;
    for (size_t half = 1; half < lanes && ways[PAIRWISE]; half *= 2)
        for (size_t l = 0; l + half < lanes; l += 2 * half)
            sum[l] += sum[l + half], sum[l + half] = 0;
    for (size_t l = 1; l < lanes; l++) sum[0] += sum[l];
    return sum[0];
}

static float total(const float *x, size_t n) {
    const float one = 1;
    return dot(x, &one, n, 0, 0);
}

static float over(float x, float y) {
    return ways[RECIPROCAL] ? x * (1 / y) : x / y;
}

// A row of a projection, its bias in the sum or behind it; what is rounded before it has none.
static float projected(point product, const float *w_c, const float *x_c, size_t cols, float bias) {
    if (rounded_to[product] != 0) return at(product, dot(w_c, x_c, cols, 1, 0)) + bias;
    return ways[BIAS_FIRST] ? dot(w_c, x_c, cols, 1, bias) : dot(w_c, x_c, cols, 1, 0) + bias;
}

static float *row(const sinkproof_array *a, size_t i) {
    size_t width = 1;
    for (size_t d = 1; d < a->rank; d++) width *= a->shape[d];
    return a->values + i * width;
}

// outputs[to] = inputs[w] x + inputs[w + 1], row by row.
static void project(const sinkproof_drill *d, size_t w, size_t to, point product, point result) {
    const sinkproof_array *weight = &d->inputs[w], *y = &d->outputs[to];
    size_t rows = weight->shape[0], cols = weight->shape[1];
    const float *bias = w + 1 < d->n_inputs ? d->inputs[w + 1].values : NULL;
    for (size_t i = 0; i < d->n; i++)
        for (size_t r = 0; r < rows; r++)
            row(y, i)[r] = at(result, projected(product, row(weight, r), row(&d->inputs[0], i),
                                                cols, bias != NULL ? bias[r] : 0));
}

static void qkv(const sinkproof_drill *d) {
    for (size_t m = 0; m < 3; m++) project(d, 1 + 2 * m, m, A2_PRODUCT, A2);
}

static void output(const sinkproof_drill *d) {
    project(d, 1, 0, A12_PRODUCT, A12);
}

static void unembed(const sinkproof_drill *d) {
    project(d, 1, 0, F2, F2);
}

static void rmsnorm(const sinkproof_drill *d) {
    for (size_t i = 0; i < d->n; i++) {
        const float *x = row(&d->inputs[0], i), *w = d->inputs[1].values;
        float sum = dot(x, x, d->hidden, 1, 0), n = (float)d->hidden;
        float mean = over(sum, n) + (float)d->rms_eps;
        float r = ways[ROOT] == 1 ? sqrtf(1 / mean) : 1 / sqrtf(mean);
        for (size_t c = 0; c < d->hidden; c++) {
            float normed = ways[ROOT] == 2 ? x[c] / sqrtf(mean) : x[c] * r;
            row(&d->outputs[0], i)[c] = at(A1, at(A1_NORM, normed) * w[c]);
        }
    }
}

static double pair_of(const sinkproof_drill *d, double rotations) {
    double turns = (double)d->yarn_original_context / (rotations * 6.283185307179586);
    return (double)d->head_dim * log(turns) / (2 * log(d->rope_theta));
}

static float frequency(const sinkproof_drill *d, size_t pair) {
    double low = pair_of(d, d->yarn_beta_fast), high = pair_of(d, d->yarn_beta_slow);
    if (d->yarn_truncate || ways[TRUNCATE]) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, (double)d->head_dim - 1);
    if (low == high) high += 0.001;
    float period = powf((float)d->rope_theta, 2 * (float)pair / (float)d->head_dim);
    float slow = 1 / ((float)d->yarn_factor * period), fast = 1 / period;
    float ramp = fminf(fmaxf(((float)pair - (float)low) / (float)(high - low), 0), 1);
    float keep = 1 - ramp;
    return slow * (1 - keep) + fast * keep;
}

// x a + y b
static float turned(float x, float a, float y, float b) {
    if (rounded_to[A4_PROD] == 0 && ways[FUSED]) return at(A4, fmaf(x, a, y * b));
    return at(A4, at(A4_PROD, x * a) + at(A4_PROD, y * b));
}

static void rope(const sinkproof_drill *d) {
    size_t half = d->head_dim / 2, heads[] = {d->heads, d->kv_heads};
    float concentration = d->yarn_factor > 1 ? (float)(0.1 * log(d->yarn_factor) + 1) : 1;
    float before = ways[SCALED_FIRST] ? concentration : 1;
    float within = ways[SCALED_FIRST] ? 1 : concentration;
    for (size_t i = 0; i < d->n; i++)
        for (size_t p = 0; p < half; p++) {
            float angle = (float)(d->first + i) * frequency(d, p);
            float cosine = at(A4_COS, cosf(angle) * within);
            float sine = at(A4_COS, sinf(angle) * within);
            for (size_t m = 0; m < 2; m++)
                for (size_t h = 0; h < heads[m]; h++) {
                    const float *in = row(&d->inputs[m], i) + h * d->head_dim + p;
                    float *out = row(&d->outputs[m], i) + h * d->head_dim + p;
                    float x = at(A4_SCALED, in[0] * before), y = at(A4_SCALED, in[half] * before);
                    out[0] = turned(x, cosine, y, -sine);
                    out[half] = turned(y, cosine, x, sine);
                }
        }
}

// ---- attention -------------------------------------------------------------------------------

// One query of one head: n keys and values from one to the next `step`.
typedef struct query {
    size_t n, first, step, dim;
    const float *q, *k, *v;
} query;

static float score(const query *a, size_t j) {
    float q[WIDEST], k[WIDEST], scale = 1 / sqrtf((float)a->dim);
    bool before = ways[SCALED_QUERY] && rounded_to[A5] == 0;
    for (size_t d = 0; d < a->dim; d++) {
        q[d] = at(A5_Q, a->q[d]) * (before ? scale : 1);
        k[d] = at(A5_K, a->k[j * a->step + d]);
    }
    float qk = dot(q, k, a->dim, 1, 0);
    return at(A6, before ? qk : at(A5, qk) * scale);
}

// exp(x - m), or 2^((x - m) log2 e).
static float power(float x, float m) {
    const float log2_e = 1.44269504f;
    if (rounded_to[A9_MAX] != 0)
        return ways[BASE_2] ? exp2f(at(A9_MAX, x - m) * log2_e) : expf(at(A9_MAX, x - m));
    return ways[BASE_2] ? exp2f(fmaf(x, log2_e, -(m * log2_e))) : expf(x - m);
}

static float largest(const float *x, size_t n, float of) {
    for (size_t j = 0; j < n; j++) of = fmaxf(of, x[j]);
    return of;
}

// The weights of n scores and of the sink behind them. Online: block after block, what was summed
// rescaled at each new maximum, the sink first or last. ONCE: what is divided is not rounded first.
static void softmax(const float *s, size_t n, float sink, float *w) {
    bool online = ways[ONLINE] && rounded_to[A9_MAX] == 0, last = online && ways[SINK_LAST];
    float b = at(A8, sink), m = last ? -INFINITY : b, sum = last ? 0 : 1;
    size_t block = online ? (size_t)ways[BLOCK] : n;
    for (size_t from = 0; from < n; from += block) {
        size_t count = n - from < block ? n - from : block;
        float next = largest(s + from, count, m), kept = power(m, next);
        for (size_t j = 0; j < from; j++) w[j] *= kept;
        for (size_t j = from; j < from + count; j++) w[j] = power(s[j], next);
        sum = sum * kept + total(w + from, count);
        m = next;
    }
    float top = fmaxf(m, b), kept = last ? power(m, top) : 1, own = power(b, top);
    if (last) sum = sum * kept + own;
    for (size_t j = 0; j < n; j++)
        w[j] = over(ways[ONCE] ? w[j] * kept : at(A9_UNNORM, w[j] * kept), sum);
    w[n] = over(own, sum);
}

// Query i of head h, where q, k and v of all begin; NULL: not at hand.
static query query_of(const sinkproof_drill *d, size_t i, size_t h, const sinkproof_array *q,
                      const float *k, const float *v) {
    size_t last = d->first + i, step = d->kv_heads * d->head_dim;
    size_t first = d->window > 0 && last >= d->window ? last + 1 - d->window : 0;
    size_t key = first * step + h / (d->heads / d->kv_heads) * d->head_dim;
    return (query){.n = last + 1 - first,
                   .first = first,
                   .step = step,
                   .dim = d->head_dim,
                   .q = q != NULL ? row(q, i) + h * d->head_dim : NULL,
                   .k = k != NULL ? k + key : NULL,
                   .v = v != NULL ? v + key : NULL};
}

// Row i of head h of an array [heads, n, width].
static float *by_head(const sinkproof_drill *d, const sinkproof_array *a, size_t h, size_t i) {
    return a->values + (h * d->n + i) * a->shape[2];
}

static void scores(const sinkproof_drill *d) {
    for (size_t h = 0; h < d->heads; h++)
        for (size_t i = 0; i < d->n; i++) {
            query a = query_of(d, i, h, &d->inputs[0], d->inputs[1].values, NULL);
            for (size_t j = 0; j < a.n; j++)
                by_head(d, &d->outputs[0], h, i)[a.first + j] = score(&a, j);
        }
}

static void softmax_sink(const sinkproof_drill *d) {
    static float w[LONGEST];
    size_t keys = d->first + d->n;
    for (size_t h = 0; h < d->heads; h++)
        for (size_t i = 0; i < d->n; i++) {
            query a = query_of(d, i, h, NULL, NULL, NULL);
            float *out = by_head(d, &d->outputs[0], h, i);
            softmax(by_head(d, &d->inputs[0], h, i) + a.first, a.n, d->inputs[1].values[h], w);
            memset(out, 0, keys * sizeof *out);
            for (size_t j = 0; j < a.n; j++) out[a.first + j] = at(A9, w[j]);
            out[keys] = at(A9, w[a.n]);
        }
}

// sum_j w_j v_j of one coordinate, as the sum reads both.
static float weighted(const query *a, const float *w, size_t from, size_t n, size_t c) {
    static float narrow[LONGEST], value[LONGEST];
    for (size_t j = 0; j < n; j++) {
        narrow[j] = at(A11_WEIGHTS, w[j]);
        value[j] = at(A11_V, a->v[(from + j) * a->step + c]);
    }
    return dot(narrow, value, n, 1, 0);
}

static void values(const sinkproof_drill *d) {
    for (size_t h = 0; h < d->heads; h++)
        for (size_t i = 0; i < d->n; i++) {
            query a = query_of(d, i, h, NULL, NULL, d->inputs[1].values);
            const float *w = by_head(d, &d->inputs[0], h, i) + a.first;
            for (size_t c = 0; c < a.dim; c++)
                row(&d->outputs[0], i)[h * a.dim + c] = at(A11, weighted(&a, w, 0, a.n, c));
        }
}

// What some keys make of a query: a maximum, the sum of exp(score - maximum), that of the values.
typedef struct part {
    float top, sum, o[WIDEST];
} part;

static void join(part *a, const part *b, size_t dim) {
    float top = fmaxf(a->top, b->top), of_a = power(a->top, top), of_b = power(b->top, top);
    a->sum = a->sum * of_a + b->sum * of_b;
    for (size_t c = 0; c < dim; c++) a->o[c] = a->o[c] * of_a + b->o[c] * of_b;
    a->top = top;
}

static part part_of(const query *a, const float *s, size_t from, size_t n) {
    static float e[LONGEST];
    part p = {.top = largest(s + from, n, -INFINITY)};
    for (size_t j = 0; j < n; j++) e[j] = power(s[from + j], p.top);
    p.sum = total(e, n);
    for (size_t j = 0; j < n; j++) e[j] = at(A9_UNNORM, e[j]);
    for (size_t c = 0; c < a->dim; c++) p.o[c] = weighted(a, e, from, n, c);
    return p;
}

// Parts of the keys, each in blocks, joined at the end; the sink joins first or last.
static void attend_fused(const query *a, const float *s, float sink, float *out) {
    const part nothing = {.top = -INFINITY}, last = {.top = at(A8, sink), .sum = 1};
    size_t each = (a->n + (size_t)ways[PARTS] - 1) / (size_t)ways[PARTS];
    size_t block = (size_t)ways[BLOCK];
    part all = ways[SINK_LAST] ? nothing : last;
    for (size_t from = 0; from < a->n; from += each) {
        size_t end = a->n - from < each ? a->n : from + each;
        part mine = nothing;
        for (size_t first = from; first < end; first += block) {
            part some = part_of(a, s, first, end - first < block ? end - first : block);
            join(&mine, &some, a->dim);
        }
        join(&all, &mine, a->dim);
    }
    if (ways[SINK_LAST]) join(&all, &last, a->dim);
    for (size_t c = 0; c < a->dim; c++) out[c] = at(A11, over(all.o[c], all.sum));
}

static void attend(const query *a, const float *s, float sink, float *out) {
    static float w[LONGEST];
    softmax(s, a->n, sink, w);
    for (size_t j = 0; j < a->n; j++) w[j] = at(A9, w[j]);
    for (size_t c = 0; c < a->dim; c++) out[c] = at(A11, weighted(a, w, 0, a->n, c));
}

static void attention(const sinkproof_drill *d) {
    static float s[LONGEST];
    for (size_t i = 0; i < d->n; i++)
        for (size_t h = 0; h < d->heads; h++) {
            query a = query_of(d, i, h, &d->inputs[0], d->inputs[1].values, d->inputs[2].values);
            for (size_t j = 0; j < a.n; j++) s[j] = score(&a, j);
            (ways[FUSED_ATTENTION] ? attend_fused : attend)(&a, s, d->inputs[3].values[h],
                                                            row(&d->outputs[0], i) + h * a.dim);
        }
}

// ---- experts ---------------------------------------------------------------------------------

static void route(const sinkproof_drill *d, const float *z, float *chosen, float *weight) {
    bool taken[WIDEST] = {false};
    float top = largest(z, d->experts, -INFINITY), sum = 0, all = 0;
    for (size_t e = 0; e < d->experts; e++) all += expf(z[e] - top);
    for (size_t k = 0; k < d->chosen; k++) {
        size_t best = d->experts;
        for (size_t e = 0; e < d->experts; e++)
            if (!taken[e] && (best == d->experts || z[e] > z[best])) best = e;
        taken[best] = true;
        chosen[k] = (float)best;
        weight[k] = ways[SOFTMAX_ALL] ? over(expf(z[best] - top), all) : expf(z[best] - top);
        sum += weight[k];
    }
    for (size_t k = 0; k < d->chosen; k++) weight[k] = at(M4, over(weight[k], sum));
}

static void router(const sinkproof_drill *d) {
    project(d, 1, 0, M2_PRODUCT, M2);
    for (size_t i = 0; i < d->n; i++)
        route(d, row(&d->outputs[0], i), row(&d->outputs[1], i), row(&d->outputs[2], i));
}

static float sigmoid(float t) {
    if (ways[TANH]) return 0.5f + 0.5f * tanhf(t / 2);
    if (rounded_to[M8_EXP] == 0) return 1 / (1 + expf(-t));
    float y = 1 / (1 + at(M8_EXP, expf(fabsf(t))));
    return t < 0 ? y : 1 - y;
}

static float activated(const sinkproof_drill *d, float gate, float up) {
    float limit = (float)d->swiglu_limit, g = fminf(gate, limit);
    float u = fmaxf(fminf(up, limit), -limit);
    float s = at(M8_SIGMOID, sigmoid(at(M8_SCALED, (float)d->swiglu_alpha * g)));
    float swish = at(M8_SWISH, g * s);
    bool fused = ways[FUSED] && rounded_to[M8_SWISH] == 0 && rounded_to[M8_UP] == 0;
    return at(M8, fused ? fmaf(swish, u, swish) : swish * at(M8_UP, u + 1));
}

static void swiglu(const sinkproof_drill *d) {
    const float *x = d->inputs[0].values;
    for (size_t i = 0; i < d->n * d->chosen * d->inter; i++)
        d->outputs[0].values[i] = activated(d, x[2 * i], x[2 * i + 1]);
}

static void experts(const sinkproof_drill *d) {
    static float z[LONGEST];
    const float *w_up = d->inputs[2].values, *b_up = d->inputs[3].values;
    const float *w_down = d->inputs[4].values, *b_down = d->inputs[5].values;
    size_t hidden = d->hidden, inter = d->inter;
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->chosen; k++) {
            const float *x = row(&d->inputs[0], i);
            size_t e = (size_t)row(&d->inputs[1], i)[k];
            for (size_t f = 0; f < inter; f++) {
                size_t r = e * 2 * inter + 2 * f;
                float gate = at(M6, projected(M5, w_up + r * hidden, x, hidden, b_up[r]));
                float up = at(M6, projected(M5, w_up + (r + 1) * hidden, x, hidden, b_up[r + 1]));
                z[f] = activated(d, gate, up);
            }
            for (size_t c = 0; c < hidden; c++) {
                size_t r = e * hidden + c;
                row(&d->outputs[0], i)[k * hidden + c] =
                    at(M10, projected(M9, w_down + r * inter, z, inter, b_down[r]));
            }
        }
}

// In ascending order of the experts where a sum or its terms are rounded.
static float mixed(const sinkproof_drill *d, const float *m_k, const float *e_k, const float *w_k) {
    float sum = 0;
    if (rounded_to[M11_SUM] == 0 && rounded_to[M11_PROD] == 0)
        return dot(w_k, m_k, d->chosen, d->hidden, 0);
    for (size_t e = 0; e < d->experts; e++)
        for (size_t k = 0; k < d->chosen; k++)
            if ((size_t)e_k[k] == e)
                sum = at(M11_SUM, sum + at(M11_PROD, w_k[k] * m_k[k * d->hidden]));
    return sum;
}

static void mixture(const sinkproof_drill *d) {
    for (size_t i = 0; i < d->n; i++)
        for (size_t c = 0; c < d->hidden; c++)
            row(&d->outputs[0], i)[c] =
                at(M11, mixed(d, row(&d->inputs[0], i) + c, row(&d->inputs[1], i),
                              row(&d->inputs[2], i)));
}

// ---- the plug-in -----------------------------------------------------------------------------

// clang-format off
#define STAGES(S) \
    S(rmsnorm) S(qkv) S(rope) S(scores) S(softmax_sink) S(values) S(attention) S(output) S(router) \
    S(experts) S(swiglu) S(mixture) S(unembed)
// clang-format on

static int run(void *context, const sinkproof_drill *d) {
    (void)context;
    if (d->first + d->n >= LONGEST || d->head_dim > WIDEST || d->experts > WIDEST ||
        d->inter > LONGEST)
        return 1;
#define CALL(name)                                                                                 \
    if (strcmp(d->stage, #name) == 0) name(d);
    STAGES(CALL)
    return 0;
}

// What stands behind "name=", or NULL; "" behind a name alone.
static const char *word_of(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *w = words; w != NULL && *w != '\0'; w += strcspn(w, " "), w += *w == ' ')
        if (strncmp(w, name, length) == 0 && strchr("= ", w[length]) != NULL)
            return w + length + (w[length] == '=');
    return NULL;
}

const sinkproof_plugin *sinkproof_plugin_get(void) {
#define ENTRY(name) {#name, run},
    static const sinkproof_plugin_entry entries[] = {STAGES(ENTRY)};
    static sinkproof_plugin plugin = {.size = sizeof plugin,
                                      .name = "drawn",
                                      .stages = entries,
                                      .n_stages = sizeof entries / sizeof *entries};
    for (int p = 0; p < N_POINTS; p++) {
        const char *format = word_of(getenv("ROUNDED"), point_names[p]);
        if (format != NULL)
            rounded_to[p] = *format == 'b' ? 'b' : strncmp(format, "f16", 3) == 0 ? 'h' : 's';
    }
    for (int w = 0; w < N_WAYS; w++) {
        const char *number = word_of(getenv("WAYS"), way_names[w]);
        ways[w] = number == NULL ? 0 : *number >= '0' && *number <= '9' ? atoi(number) : 1;
    }
    plugin.policy = getenv("POLICY");
    return &plugin;
}
