// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every point of the forward pass by its formula, in long double, from the values at the earlier
// points: an element's value, the size of the terms of its sum, and the roundings that a binary64
// computation of it may have. For GPT-OSS and GPT-2.
#ifndef SINKPROOF_TESTS_POINT_FORMULAS_H
#define SINKPROOF_TESTS_POINT_FORMULAS_H

#include "model/slots.h"
#include "proofs/truth/forward.h"
#include "tests/shared/stated.h"

enum { N = 5, MOST = 4096 }; // tokens; most elements of a point

typedef enum which {
    T0,
    A1,
    A2_Q,
    A4_Q,
    A2_K,
    A4_K,
    A2_V,
    A6,
    A9,
    A10,
    A11,
    A12,
    A13,
    M1,
    M2,
    M3,
    M4,
    M5,
    M6,
    M8,
    M9,
    M10,
    M11,
    M12,
    F1,
    F2,
    POINTS
} which;

static const char *const names[POINTS] = {
    "T0", "A1", "A2.q", "A4.q", "A2.k", "A4.k", "A2.v", "A6", "A9",  "A10", "A11", "A12", "A13",
    "M1", "M2", "M3",   "M4",   "M5",   "M6",   "M8",   "M9", "M10", "M11", "M12", "F1",  "F2"};

typedef struct walk {
    const sinkproof_model *model;
    const sinkproof_config *c;
    const int32_t *tokens_n;
    sinkproof_layer layer;
    size_t l, rows; // rows of F1 and F2
    bool gpt2;
    uint64_t state;
    double at[POINTS][MOST]; // the values at each point, after replay
    double before[MOST];     // the residual before the current point
    size_t chosen_nk[N * 8];
    distance d[POINTS];
    double widest; // radius over scale
    size_t expected, misplaced, misshapen;
    // the account of routing, by hand
    size_t choices, ties, contested, thin_layer, thin_token, done;
    real thinnest;
} walk;

// ---- a number by its formula, with the size of the terms of its sum

typedef struct stated {
    real value, scale;
    int roundings;
} stated;

static stated known(real value) {
    return (stated){value, fabsl(value), 1};
}

static void row_of(const sinkproof_matrix *w, size_t e, size_t r, double *row_c) {
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(one.cols <= 512);
    sinkproof_matrix_row(&one, r, row_c);
}

// W_er x + b_er; either may be absent.
static stated affine(const sinkproof_matrix *w, const sinkproof_matrix *b, size_t e, size_t r,
                     const double *x_c) {
    double row_c[512];
    stated y = {0, 0, 2};
    row_of(w, e, r, row_c);
    for (size_t c = 0; c < w->cols; c++) {
        y.value += (real)row_c[c] * x_c[c];
        y.scale += fabsl((real)row_c[c] * x_c[c]);
    }
    if (b == NULL) return y;
    row_of(b, e, 0, row_c);
    return (stated){y.value + row_c[r], y.scale + fabsl((real)row_c[r]), 2};
}

static stated normed(const walk *w, const double *x_c, const sinkproof_matrix *scale,
                     const sinkproof_matrix *shift, size_t c) {
    size_t n = w->c->hidden;
    double scale_c[512], shift_c[512] = {0};
    real mean = 0, squares = 0, size = 0;
    row_of(scale, 0, 0, scale_c);
    if (w->gpt2) row_of(shift, 0, 0, shift_c);
    for (size_t k = 0; w->gpt2 && k < n; k++) mean += (real)x_c[k] / (real)n;
    for (size_t k = 0; k < n; k++) squares += (x_c[k] - mean) * (x_c[k] - mean);
    real root = sqrtl(squares / (real)n + 1e-5L), y = (x_c[c] - mean) / root * scale_c[c];
    size = (fabsl((real)x_c[c]) + fabsl(mean)) / root * fabsl((real)scale_c[c]);
    return (stated){y + shift_c[c], size + fabsl((real)shift_c[c]), 4};
}

// The angle of pair d at position i, and the concentration.
static real concentration(const sinkproof_config *c) {
    return c->rotation.factor > 1 ? logl((real)c->rotation.factor) / 10 + 1 : 1;
}
static real turns_at(const sinkproof_config *c, real beta) {
    real context = (real)c->rotation.original_context, pi = acosl(-1);
    return (real)c->head_dim / 2 * logl(context / (beta * 2 * pi)) / logl((real)c->rotation.theta);
}
static real angle(const sinkproof_config *c, size_t i, size_t d) {
    real low = turns_at(c, (real)c->rotation.beta_fast),
         high = turns_at(c, (real)c->rotation.beta_slow);
    if (c->rotation.truncate) low = floorl(low), high = ceill(high);
    low = fmaxl(low, 0), high = fminl(high, (real)c->head_dim - 1);
    real slow = fminl(fmaxl(((real)d - low) / (high - low), 0), 1);
    real frequency = powl((real)c->rotation.theta, -2 * (real)d / (real)c->head_dim);
    return (real)i * frequency * (slow / (real)c->rotation.factor + 1 - slow);
}
static stated turned(const sinkproof_config *c, const double *x_d, size_t i, size_t d) {
    size_t half = c->head_dim / 2, pair = d % half;
    real a = angle(c, i, pair), by = concentration(c), x = x_d[pair], y = x_d[pair + half];
    real value = d < half ? x * cosl(a) - y * sinl(a) : y * cosl(a) + x * sinl(a);
    return (stated){by * value, by * (fabsl(x) + fabsl(y)), 4};
}

static stated score(const double *q_d, const double *k_d, size_t dim) {
    stated s = {0, 0, 3};
    for (size_t d = 0; d < dim; d++) {
        s.value += (real)q_d[d] * k_d[d] / sqrtl((real)dim);
        s.scale += fabsl((real)q_d[d] * k_d[d]) / sqrtl((real)dim);
    }
    return s;
}

static bool sees(const walk *w, size_t i, size_t j) {
    return j <= i && (!w->c->sliding[w->l] || j + w->c->window > i);
}

static real sink_of(const walk *w, size_t h, size_t i) {
    const sinkproof_config *c = w->c;
    double row_c[512];
    if (w->gpt2) return -INFINITY;
    if (strcmp(sinkproof_sinks_name(c->sink), "key") != 0) {
        row_of(&w->layer.sinks, 0, 0, row_c);
        return row_c[h];
    }
    row_of(&w->layer.sinks, 0, h, row_c);
    return score(w->at[A4_Q] + (i * c->n_heads + h) * c->head_dim, row_c, c->head_dim).value;
}

// Weight j of row i; the sink's is at j = N.
static stated weight(const walk *w, size_t h, size_t i, size_t j) {
    const double *z_j = w->at[A6] + (h * N + i) * N;
    real b = sink_of(w, h, i), all = expl(b), largest = isinf(b) ? 0 : fabsl(b);
    for (size_t k = 0; k < N; k++)
        if (sees(w, i, k)) all += expl((real)z_j[k]), largest = fmaxl(largest, fabsl((real)z_j[k]));
    real own = j == N ? expl(b) : sees(w, i, j) ? expl((real)z_j[j]) : 0;
    return (stated){own / all, own / all * (1 + largest), 4};
}

static stated gelu(real x) {
    real t = tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x));
    return (stated){x / 2 * (1 + t), fabsl(x), 4};
}

static stated swiglu(real gate, real up) {
    real g = fminl(gate, 7), u = fmaxl(fminl(up, 7), -7);
    real value = g / (1 + expl(-1.702L * g)) * (u + 1);
    return (stated){value, fabsl(value) * (1 + fabsl(g)), 6};
}

static size_t rank_of(const double *logit_e, size_t n, size_t e) { // how many stand before it
    size_t before = 0;
    for (size_t o = 0; o < n; o++)
        before += logit_e[o] > logit_e[e] || (logit_e[o] == logit_e[e] && o < e);
    return before;
}

// Element e of point p.
static stated state_of(const walk *w, which p, size_t e) {
    const sinkproof_config *c = w->c;
    const sinkproof_layer *of = &w->layer;
    size_t n = c->hidden, d = c->head_dim, q = c->n_heads * d, kv = c->n_kv_heads * d;
    size_t k = c->n_chosen, group = c->n_heads / c->n_kv_heads, two = 2 * c->inter;
    const sinkproof_matrix final = sinkproof_model_final_norm(w->model);
    const sinkproof_matrix shift = sinkproof_model_slot(w->model, 0, SINKPROOF_FINAL_NORM_B);
    const sinkproof_matrix embedding = sinkproof_model_embedding(w->model);
    const sinkproof_matrix out = sinkproof_model_unembedding(w->model);
    double row_c[512];
    size_t skip = (N - w->rows) * n;
    switch (p) {
    case T0:
        row_of(&embedding, 0, (size_t)w->tokens_n[e / n], row_c);
        if (!w->gpt2) return known(row_c[e % n]);
        real token = row_c[e % n];
        const sinkproof_matrix places = sinkproof_model_slot(w->model, 0, SINKPROOF_POSITIONS);
        row_of(&places, 0, e / n, row_c);
        return (stated){token + row_c[e % n], fabsl(token) + fabsl((real)row_c[e % n]), 2};
    case A1:
        return normed(w, w->before + e / n * n, &of->attn_norm, &of->attn_norm_b, e % n);
    case A2_Q:
        return affine(&of->w_q, &of->b_q, 0, e % q, w->at[A1] + e / q * n);
    case A2_K:
        return affine(&of->w_k, &of->b_k, 0, e % kv, w->at[A1] + e / kv * n);
    case A2_V:
        return affine(&of->w_v, &of->b_v, 0, e % kv, w->at[A1] + e / kv * n);
    case A4_Q:
        return turned(c, w->at[A2_Q] + e / d * d, e / q, e % d);
    case A4_K:
        return turned(c, w->at[A2_K] + e / d * d, e / kv, e % d);
    case A6: {
        size_t h = e / (N * N), i = e / N % N, j = e % N;
        return score(w->at[w->gpt2 ? A2_Q : A4_Q] + (i * c->n_heads + h) * d,
                     w->at[w->gpt2 ? A2_K : A4_K] + (j * c->n_kv_heads + h / group) * d, d);
    }
    case A9:
        return weight(w, e / (N * (N + 1)), e / (N + 1) % N, e % (N + 1));
    case A10:
        return known(w->at[A9][e / N * (N + 1) + e % N]);
    case A11: {
        size_t i = e / q, h = e / d % c->n_heads;
        stated o = {0, 0, 2};
        for (size_t j = 0; j < N; j++) {
            real a = w->at[A10][(h * N + i) * N + j];
            real v = w->at[A2_V][(j * c->n_kv_heads + h / group) * d + e % d];
            if (sees(w, i, j)) o.value += a * v, o.scale += fabsl(a * v);
        }
        return o;
    }
    case A12:
        return affine(&of->w_o, &of->b_o, 0, e % n, w->at[A11] + e / n * q);
    case A13:
        return (stated){(real)w->before[e] + w->at[A12][e],
                        fabsl((real)w->before[e]) + fabsl((real)w->at[A12][e]), 2};
    case M1:
        return normed(w, w->before + e / n * n, &of->mlp_norm, &of->mlp_norm_b, e % n);
    case M2:
        return affine(&of->w_router, &of->b_router, 0, e % c->n_experts,
                      w->at[M1] + e / c->n_experts * n);
    case M3: {
        const double *logit_e = w->at[M2] + e / k * c->n_experts;
        for (size_t x = 0; x < c->n_experts; x++)
            if (rank_of(logit_e, c->n_experts, x) == e % k) return known((real)x);
        break;
    }
    case M4: {
        const double *logit_e = w->at[M2] + e / k * c->n_experts;
        real all = 0, own = expl((real)logit_e[w->chosen_nk[e]]);
        for (size_t o = 0; o < k; o++) all += expl((real)logit_e[w->chosen_nk[e / k * k + o]]);
        return (stated){own / all, 8 * own / all, 4};
    }
    case M5:
        return affine(&of->w_up, NULL, w->chosen_nk[e / two], e % two, w->at[M1] + e / two / k * n);
    case M6:
        if (w->gpt2)
            return affine(&of->w_up, &of->b_up, 0, e % c->inter, w->at[M1] + e / c->inter * n);
        row_of(&of->b_up, w->chosen_nk[e / two], 0, row_c);
        return (stated){(real)w->at[M5][e] + row_c[e % two],
                        fabsl((real)w->at[M5][e]) + fabsl((real)row_c[e % two]), 2};
    case M8:
        return w->gpt2 ? gelu(w->at[M6][e]) : swiglu(w->at[M6][2 * e], w->at[M6][2 * e + 1]);
    case M9:
        return affine(&of->w_down, NULL, w->chosen_nk[e / n], e % n, w->at[M8] + e / n * c->inter);
    case M10:
        if (w->gpt2)
            return affine(&of->w_down, &of->b_down, 0, e % n, w->at[M8] + e / n * c->inter);
        row_of(&of->b_down, w->chosen_nk[e / n], 0, row_c);
        return (stated){(real)w->at[M9][e] + row_c[e % n],
                        fabsl((real)w->at[M9][e]) + fabsl((real)row_c[e % n]), 2};
    case M11: {
        stated y = {0, 0, 2};
        for (size_t s = e / n * k; s < (e / n + 1) * k; s++) {
            real term = (real)w->at[M4][s] * w->at[M10][s * n + e % n];
            y.value += term, y.scale += fabsl(term);
        }
        return y;
    }
    case M12: {
        real t = w->at[w->gpt2 ? M10 : M11][e];
        return (stated){w->before[e] + t, fabsl((real)w->before[e]) + fabsl(t), 2};
    }
    case F1:
        return normed(w, w->before + skip + e / n * n, &final, &shift, e % n);
    case F2:
        return affine(&out, NULL, 0, e % c->vocab, w->at[F1] + e / c->vocab * n);
    case POINTS:
        break;
    }
    return (stated){NAN, 0, 0};
}

static void shape_of(const walk *w, which p, size_t *shape) {
    const sinkproof_config *c = w->c;
    size_t n = c->hidden, d = c->head_dim, h = c->n_heads, g = c->n_kv_heads, k = c->n_chosen;
    size_t up = 2 * c->inter, f = c->inter;
    size_t of[POINTS][3] = {[T0] = {N, n},
                            [A1] = {N, n},
                            [A2_Q] = {N, h, d},
                            [A4_Q] = {N, h, d},
                            [A2_K] = {N, g, d},
                            [A4_K] = {N, g, d},
                            [A2_V] = {N, g, d},
                            [A6] = {h, N, N},
                            [A9] = {h, N, N + 1},
                            [A10] = {h, N, N},
                            [A11] = {N, h, d},
                            [A12] = {N, n},
                            [A13] = {N, n},
                            [M1] = {N, n},
                            [M2] = {N, c->n_experts},
                            [M3] = {N, k},
                            [M4] = {N, k},
                            [M5] = {N, k, up},
                            [M6] = {N, k, up},
                            [M8] = {N, k, f},
                            [M9] = {N, k, n},
                            [M10] = {N, k, n},
                            [M11] = {N, n},
                            [M12] = {N, n},
                            [F1] = {w->rows, n},
                            [F2] = {w->rows, c->vocab}};
    size_t mlp[POINTS][3] = {[M6] = {N, f}, [M8] = {N, f}, [M10] = {N, n}};
    memcpy(shape, w->gpt2 && mlp[p][0] > 0 ? mlp[p] : of[p], 3 * sizeof *shape);
}

#endif
