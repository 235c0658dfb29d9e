// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every rounding point of the stages rounds where it says, and nowhere else. Each stage runs under
// policies that round at one point alone, for every point there is, and once at all of them; its
// formula, written out below with the same order of operations, must give the same bits.
#include "tests/shared/points.h"

enum {
    N = 5,
    HEADS = 3,
    DIM = 8,
    HALF = DIM / 2,
    HIDDEN = 12,
    WIDE = HEADS * DIM,
    KV = 2 * DIM,
    EXPERTS = 6,
    CHOSEN = 3,
};

// sum + a b, as a running sum rounds it.
static double run(sinkproof_point term, sinkproof_point acc, double sum, double a, double b) {
    return at(acc, sum + at(term, a * b));
}

// The points of a linear layer, written out: what it reads, its products, their sum, the sum before
// the bias, the result.
typedef struct affine_points {
    sinkproof_point in, term, acc, product, out;
} affine_points;
#define AFFINE(id)                                                                                 \
    (affine_points) {                                                                              \
        AT_##id##_IN, AT_##id##_TERM, AT_##id##_ACC, AT_##id##_PRODUCT, AT_##id                    \
    }

// x W^T + b; W is [rows, HIDDEN or what cols says].
static void affine(affine_points p, size_t n, size_t rows, size_t cols, const double *w_rc,
                   const double *b_r, const double *x_nc, double *y_nr) {
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++) {
            double y = 0;
            for (size_t c = 0; c < cols; c++)
                y = run(p.term, p.acc, y, w_rc[r * cols + c], at(p.in, x_nc[t * cols + c]));
            y_nr[t * rows + r] = at(p.out, at(p.product, y) + b_r[r]);
        }
}

static double work[1 << 12];

static void qkv(double *out, double *formula) {
    static double w[(WIDE + 2 * KV) * HIDDEN], b[WIDE + 2 * KV], t[N * HIDDEN];
    fill_reals(&state, 1, sizeof w / sizeof *w, w);
    fill_reals(&state, 1, sizeof b / sizeof *b, b);
    fill_reals(&state, 1, N * HIDDEN, t);
    const double *w_k = w + WIDE * HIDDEN, *w_v = w_k + KV * HIDDEN;
    const double *b_k = b + WIDE, *b_v = b_k + KV;
    sinkproof_layer layer = {.w_q = matrix_of(w, 1, WIDE, HIDDEN),
                             .b_q = matrix_of(b, 1, 1, WIDE),
                             .w_k = matrix_of(w_k, 1, KV, HIDDEN),
                             .b_k = matrix_of(b_k, 1, 1, KV),
                             .w_v = matrix_of(w_v, 1, KV, HIDDEN),
                             .b_v = matrix_of(b_v, 1, 1, KV)};
    stage_qkv(&policy, &layer, N, t, out, out + N * WIDE, out + N * (WIDE + KV), work);
    affine(AFFINE(A2), N, WIDE, HIDDEN, w, b, t, formula);
    affine(AFFINE(A2), N, KV, HIDDEN, w_k, b_k, t, formula + N * WIDE);
    affine(AFFINE(A2), N, KV, HIDDEN, w_v, b_v, t, formula + N * (WIDE + KV));
}

static void output(double *out, double *formula) {
    static double w[HIDDEN * WIDE], b[HIDDEN], o[N * WIDE];
    fill_reals(&state, 1, HIDDEN * WIDE, w);
    fill_reals(&state, 1, HIDDEN, b);
    fill_reals(&state, 1, N * WIDE, o);
    sinkproof_layer layer = {.w_o = matrix_of(w, 1, HIDDEN, WIDE),
                             .b_o = matrix_of(b, 1, 1, HIDDEN)};
    stage_output(&policy, &layer, N, o, out, work);
    affine(AFFINE(A12), N, HIDDEN, WIDE, w, b, o, formula);
}

static void rope(double *out, double *formula) {
    static double cosine[N * HALF], sine[N * HALF], x[N * WIDE];
    fill_reals(&state, 1, N * HALF, cosine);
    fill_reals(&state, 1, N * HALF, sine);
    fill_reals(&state, 1, N * WIDE, x);
    memcpy(out, x, sizeof x);
    sinkproof_rope(&policy, N, HEADS, DIM, cosine, sine, out);
    const sinkproof_point prod = AT_A4_PROD;
    for (size_t i = 0; i < N * WIDE; i++) {
        size_t t = i / WIDE, d = i % DIM, pair = t * HALF + d % HALF;
        double c = cosine[pair], s = sine[pair];
        double o = d < HALF ? at(prod, x[i] * c) - at(prod, x[i + HALF] * s)
                            : at(prod, x[i] * c) + at(prod, x[i - HALF] * s);
        formula[i] = at(AT_A4, o);
    }
}

// Three queries after two cached keys; a window of three keys.
static sinkproof_block the_block(size_t q_stride, size_t kv_stride) {
    return (sinkproof_block){.rows = 3,
                             .keys = N,
                             .first = 2,
                             .window = 3,
                             .head_dim = DIM,
                             .q_stride = q_stride,
                             .kv_stride = kv_stride};
}

static void scores(double *out, double *formula) {
    static double q[3 * WIDE], k[N * KV];
    fill_reals(&state, 1, 3 * WIDE, q);
    fill_reals(&state, 1, N * KV, k);
    sinkproof_block block = the_block(WIDE, KV);
    sinkproof_scores(&policy, &block, q, k, out);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < N; j++) {
            double dot = 0;
            for (size_t d = 0; d < DIM; d++)
                dot = run(AT_A5_TERM, AT_A5_ACC, dot, q[i * WIDE + d], k[j * KV + d]);
            dot = at(AT_A5, dot);
            formula[i * N + j] = at(AT_A6, dot * (1.0 / sqrt(DIM)));
        }
}

static void softmax(double *out, double *formula) {
    static double s[3 * N];
    fill_reals(&state, 4, 3 * N, s);
    double sink = next_real(&state, 4), b = at(AT_A8, sink);
    const double b_i[3] = {sink, sink, sink};
    sinkproof_block block = the_block(DIM, DIM);
    sinkproof_softmax_sink(&policy, &block, b_i, s, out);
    for (size_t i = 0; i < 3; i++) { // query i sees the keys i, i + 1, i + 2
        const double *s_j = s + i * N + i;
        double m = fmax(fmax(b, s_j[0]), fmax(s_j[1], s_j[2]));
        double e_b = exp(at(AT_A9_MAX, b - m)), e_j[3], z = e_b;
        for (size_t j = 0; j < 3; j++) e_j[j] = exp(at(AT_A9_MAX, s_j[j] - m));
        for (size_t j = 0; j < 3; j++) z += e_j[j];
        double keys = e_j[0] + e_j[1] + e_j[2], lse = m + log(keys), read = at(AT_A9_LSE, lse);
        if (policy.at[AT_A9_LSE].format != SINKPROOF_REAL) e_b *= exp(lse - read), z = keys + e_b;
        if (policy.at[AT_A9_GATE].format != SINKPROOF_REAL) {
            double most = fmax(read, b), e_keys = at(AT_A9_GATE, exp(at(AT_A9_GATE, read - most)));
            double both = at(AT_A9_GATE, e_keys + at(AT_A9_GATE, exp(at(AT_A9_GATE, b - most))));
            double all = at(AT_A9_GATE, at(AT_A9_GATE, log(both)) + most);
            z = keys / at(AT_A9_GATE, exp(at(AT_A9_GATE, read - all)));
            e_b = z - keys;
        }
        for (size_t j = 0; j < 3; j++)
            formula[i * (N + 1) + i + j] = at(AT_A9, at(AT_A9_UNNORM, e_j[j]) / z);
        formula[i * (N + 1) + N] = at(AT_A9, e_b / z);
    }
}

static void values(double *out, double *formula) {
    static double alpha[3 * (N + 1)], v[N * KV];
    fill_reals(&state, 1, 3 * (N + 1), alpha);
    fill_reals(&state, 1, N * KV, v);
    sinkproof_block block = the_block(WIDE, KV);
    for (size_t i = 0; i < SIZE; i++) out[i] = formula[i] = 7; // what other heads have written
    sinkproof_values(&policy, &block, alpha, v, out);
    for (size_t i = 0; i < 3; i++)
        for (size_t d = 0; d < DIM; d++) {
            double o = 0;
            for (size_t j = i; j < i + 3; j++)
                o = run(AT_A11_TERM, AT_A11_ACC, o, at(AT_A11_WEIGHTS, alpha[i * (N + 1) + j]),
                        v[j * KV + d]);
            formula[i * WIDE + d] = at(AT_A11, at(AT_A11_PART, o));
        }
}

static void rmsnorm(double *out, double *formula) {
    static double x[N * HIDDEN], scale[HIDDEN];
    fill_reals(&state, 1, N * HIDDEN, x);
    fill_reals(&state, 1, HIDDEN, scale);
    sinkproof_matrix m = matrix_of(scale, 1, 1, HIDDEN);
    sinkproof_rmsnorm(&policy, AT_M1, &m, 1e-5, N, x, out, work);
    for (size_t t = 0; t < N; t++) {
        double sum = 0;
        for (size_t c = 0; c < HIDDEN; c++) sum += x[t * HIDDEN + c] * x[t * HIDDEN + c];
        double inverse = 1 / sqrt(sum / (double)HIDDEN + 1e-5);
        for (size_t c = 0; c < HIDDEN; c++)
            formula[t * HIDDEN + c] =
                at(AT_M1, at(AT_M1_NORM, x[t * HIDDEN + c] * inverse) * scale[c]);
    }
}

// The frequencies, as every published step rounds them; gpt-oss-20b's ramp is fractional.
static void frequencies(double *out, double *formula) {
    const sinkproof_point f = AT_A4_FREQ;
    sinkproof_config config;
    double low, high;
    sinkproof_config_named("gpt-oss-20b", &config);
    sinkproof_yarn_frequencies(&policy, &config, out);
    sinkproof_yarn_range(&config, false, &low, &high);
    for (size_t d = 0; d < config.head_dim / 2; d++) {
        double exponent = at(f, (double)(2 * d) / (double)config.head_dim);
        double period = at(f, pow(at(f, config.rotation.theta), exponent));
        double between = at(f, 1 / at(f, at(f, config.rotation.factor) * period));
        double ramp = at(f, at(f, (double)d - at(f, low)) / at(f, high - low));
        double keep = at(f, 1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp));
        double a = at(f, between * at(f, 1 - keep)), b = at(f, at(f, 1 / period) * keep);
        formula[d] = at(f, a + b);
    }
}

// The weights of the chosen, behind the logits; the largest logit first.
static void router(double *out, double *formula) {
    static double w[EXPERTS * HIDDEN], b[EXPERTS], t[N * HIDDEN];
    int32_t chosen[N * CHOSEN + 1];
    chosen[N * CHOSEN] = -7; // belongs to somebody else
    fill_reals(&state, 1, EXPERTS * HIDDEN, w);
    fill_reals(&state, 1, EXPERTS, b);
    fill_reals(&state, 1, N * HIDDEN, t);
    sinkproof_layer layer = {.w_router = matrix_of(w, 1, EXPERTS, HIDDEN),
                             .b_router = matrix_of(b, 1, 1, EXPERTS)};
    sinkproof_router(&policy, &layer, N, CHOSEN, t, out, chosen, out + N * EXPERTS, work);
    out[SIZE - 1] = chosen[N * CHOSEN], formula[SIZE - 1] = -7;
    affine(AFFINE(M2), N, EXPERTS, HIDDEN, w, b, t, formula);
    for (size_t i = 0; i < N; i++) {
        double left[EXPERTS], e_k[CHOSEN], z = 0, first = 0;
        memcpy(left, formula + i * EXPERTS, sizeof left);
        for (size_t k = 0; k < CHOSEN; k++) {
            size_t best = 0;
            for (size_t e = 1; e < EXPERTS; e++)
                if (left[e] > left[best]) best = e;
            if (k == 0) first = left[best];
            e_k[k] = exp(left[best] - first);
            z += e_k[k];
            left[best] = -INFINITY;
        }
        for (size_t k = 0; k < CHOSEN; k++)
            formula[N * EXPERTS + i * CHOSEN + k] = at(AT_M4, e_k[k] / z);
    }
}

static void swiglu(double *out, double *formula) {
    for (size_t i = 0; i < SIZE; i++) {
        double gate = next_real(&state, 9), up = next_real(&state, 9);
        out[i] = sinkproof_swiglu_one(&policy, (sinkproof_swiglu_numbers){1.702, 7, 1}, gate, up);
        double g = fmin(gate, 7), u = fmax(fmin(up, 7), -7);
        double scaled = at(AT_M8_SCALED, at(AT_M8_ALPHA, 1.702) * g);
        double part = 1 / (1 + at(AT_M8_EXP, exp(fabs(scaled))));
        bool of_size = policy.at[AT_M8_EXP].format == SINKPROOF_BF16;
        double made = of_size ? (scaled < 0 ? part : 1 - part) : 1 / (1 + exp(-scaled));
        double sigmoid = at(AT_M8_SIGMOID, made);
        double swish = at(AT_M8_SWISH, g * sigmoid);
        formula[i] = at(AT_M8, swish * at(AT_M8_UP, u + 1));
    }
}

// Experts 4, 1, 3 were chosen, in this order; the running sum goes 1, 3, 4.
static void mixture(double *out, double *formula) {
    static double w[N * CHOSEN], down[N * CHOSEN * HIDDEN];
    int32_t chosen[N * CHOSEN];
    for (size_t i = 0; i < N * CHOSEN; i++) chosen[i] = (int32_t[]){4, 1, 3}[i % 3];
    fill_reals(&state, 1, N * CHOSEN, w);
    fill_reals(&state, 1, N * CHOSEN * HIDDEN, down);
    sinkproof_mixture(&policy, N, CHOSEN, HIDDEN, chosen, w, down, out);
    for (size_t t = 0; t < N; t++)
        for (size_t c = 0; c < HIDDEN; c++) {
            double sum = 0;
            for (size_t step = 0; step < CHOSEN; step++) {
                size_t slot = t * CHOSEN + (size_t[]){1, 2, 0}[step];
                double product = at(AT_M11_PROD, w[slot] * down[slot * HIDDEN + c]);
                sum = at(AT_M11_SUM, sum + product);
            }
            formula[t * HIDDEN + c] = at(AT_M11, at(AT_M11_PART, sum));
        }
}

int main(void) {
    check("rmsnorm.forward", rmsnorm, 2);
    check("attn.qkv bound.operands bound.accumulator", qkv, 5);
    check("rope.rotate", rope, 2);
    check("yarn.ramp", frequencies, 1);
    check("attn.score bound.accumulator", scores, 4);
    check("sink.alpha sink.alpha-sink sink.mass sink.stable bound.lse-rounded", softmax, 6);
    check("sink.attn-values bound.operands bound.accumulator bound.parts-merged", values, 5);
    check("sink.attn-concat bound.operands bound.accumulator", output, 5);
    check("router.softmax-after router.topk bound.operands", router, 6);
    check("swiglu.clamped", swiglu, 7);
    check("moe.sum bound.parts-mixed", mixture, 4);
    return tap_done();
}
