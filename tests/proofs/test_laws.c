// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The laws of attention with a sink, on the reference itself. One side of each law is the
// reference; the other is the law's formula, written out for the other side's inputs. Both round
// where the policy says, point by point. They must agree bit for bit where the law involves no
// rounding of its own, else within a derived bound.
#include "tests/shared/points.h"

enum { KEYS = 6, DIM = 6, STRIDE = 10 };

static double kept(double e) { // as it meets a value
    return at(AT_A9_UNNORM, e);
}

// The row's sum where the sink is a gate that reads the keys' LSE rounded, or rounds each step: z
// where nothing is rounded.
static double gated(double m, double b, size_t n, const double *e_j, double *e_sink, double z) {
    double keys = 0;
    for (size_t j = 0; j < n; j++) keys += e_j[j];
    double lse = m + log(keys), read = at(AT_A9_LSE, lse), most = read > b ? read : b;
    bool steps = policy.at[AT_A9_GATE].format != SINKPROOF_REAL;
    if ((policy.at[AT_A9_LSE].format == SINKPROOF_REAL && !steps) || !(keys > 0) || b == -INFINITY)
        return z;
    if (!steps) return keys + (*e_sink *= exp(lse - read));
    double e_keys = at(AT_A9_GATE, exp(at(AT_A9_GATE, read - most)));
    double both = at(AT_A9_GATE, e_keys + at(AT_A9_GATE, exp(at(AT_A9_GATE, b - most))));
    double all = at(AT_A9_GATE, at(AT_A9_GATE, log(both)) + most);
    double gate = fmax(at(AT_A9_GATE, exp(at(AT_A9_GATE, read - all))), 0x1p-1000);
    *e_sink = keys / gate - keys;
    return keys / gate;
}

// alpha_j of n keys and alpha_sink by the definition, each operation rounded where it is named.
static void plain_row(size_t n, const double *s_j, double sink, double *alpha_j) {
    double b = at(AT_A8, sink), m = b, e_j[KEYS], z;
    for (size_t j = 0; j < n; j++) m = s_j[j] > m ? s_j[j] : m;
    double e_sink = z = exp(at(AT_A9_MAX, b - m));
    for (size_t j = 0; j < n; j++) z += e_j[j] = exp(at(AT_A9_MAX, s_j[j] - m));
    z = gated(m, b, n, e_j, &e_sink, z);
    for (size_t j = 0; j < n; j++) alpha_j[j] = at(AT_A9, kept(e_j[j]) / z);
    alpha_j[n] = at(AT_A9, e_sink / z);
}

static void reference_row(size_t n, const double *s_j, double sink, double *alpha_j) {
    sinkproof_block block = {.rows = 1, .keys = n, .first = n - 1, .head_dim = 1};
    sinkproof_softmax_sink(&policy, &block, &sink, s_j, alpha_j);
}

// Scores that bfloat16 holds, also after a shift; far enough apart that the shift must be right.
static void draw_scores(double *s_j) {
    for (size_t j = 0; j < KEYS; j++) s_j[j] = next_integer(&state, 60) / (j % 2 ? 1 : 16);
}

// law.shift, sink.stable: alpha(s + t, b + t) = alpha(s, b), for any t that adds exactly. Spread
// 2000: any shift but the row's largest overflows or divides zero by zero.
static void shift(double *out, double *formula) {
    double s[KEYS], shifted[KEYS];
    for (int t = 0; t < 8; t++, out += KEYS + 1, formula += KEYS + 1) {
        double by = t % 2 ? 64 : -32, sink = next_integer(&state, 50);
        draw_scores(s);
        if (t >= 4) s[t % KEYS] = 1024 + 128, s[(t + 1) % KEYS] = -1024, by = t % 2 ? 128 : -128;
        for (size_t j = 0; j < KEYS; j++) shifted[j] = s[j] + by;
        reference_row(KEYS, shifted, sink + by, out);
        plain_row(KEYS, s, sink, formula);
    }
}

// sink.limit: b = -infinity gives the ordinary softmax and a sink without weight.
static void limit(double *out, double *formula) {
    double s[KEYS], e_j[KEYS];
    for (int t = 0; t < 8; t++, out += KEYS + 1, formula += KEYS + 1) {
        draw_scores(s);
        double m = s[0], z = 0;
        for (size_t j = 1; j < KEYS; j++) m = s[j] > m ? s[j] : m;
        for (size_t j = 0; j < KEYS; j++) z += e_j[j] = exp(at(AT_A9_MAX, s[j] - m));
        for (size_t j = 0; j < KEYS; j++) formula[j] = at(AT_A9, kept(e_j[j]) / z);
        reference_row(KEYS, s, -INFINITY, out);
    }
}

// repeat.sink: t keys of one score c weigh e^c / (t e^c + e^b) each. c = b + k log 2 would round;
// c = b makes 1 / (t + 1), and c = b + 800, b - 800 the two ends, all without an error but the
// last.
static void repeated(double *out, double *formula) {
    for (size_t t = 1; t <= KEYS; t++)
        for (int far = -1; far <= 1; far++, out += KEYS + 1, formula += KEYS + 1) {
            double s[KEYS], sink = 8;
            for (size_t j = 0; j < t; j++) s[j] = sink + 800 * far;
            reference_row(t, s, sink, out);
            double keys = far < 0 ? 0 : 1, rest = far > 0 ? 0 : 1, z = keys * (double)t + rest;
            double e_j[KEYS], m = far > 0 ? s[0] : sink;
            for (size_t j = 0; j < t; j++) e_j[j] = keys;
            z = gated(m, sink, t, e_j, &rest, z);
            for (size_t j = 0; j < t; j++) formula[j] = at(AT_A9, keys / z);
            formula[t] = at(AT_A9, rest / z);
        }
}

// The sink's weight alone, for the laws about it.
static void sink_weight(double *out, double *formula) {
    double s[KEYS], alpha[KEYS + 1];
    for (int t = 0; t < 64; t++) {
        double sink = next_integer(&state, 40);
        draw_scores(s);
        reference_row(KEYS, s, sink, alpha), out[t] = alpha[KEYS];
        plain_row(KEYS, s, sink, alpha), formula[t] = alpha[KEYS];
    }
}

// sink.gate: 1 - alpha_sink = sigmoid(LSE - b), and the output of a head is that times the ordinary
// one; sink.mass-below-one: 0 < alpha_sink < 1 and 0 < sum_j alpha_j < 1 while binary64 can tell.
// Each weight errs by at most (|t| + n + 4) roundings relatively, |t| <= 16 here, the sum by n
// more.
static void gate(void) {
    double worst = 0, s[KEYS], alpha[KEYS + 1], plain[KEYS + 1];
    size_t outside = 0;
    set_policy(AT_POINTS);
    state = 43;
    for (int t = 0; t < 2000; t++) {
        for (size_t j = 0; j < KEYS; j++) s[j] = next_real(&state, 8);
        double b = next_real(&state, 8), mass = 0;
        reference_row(KEYS, s, b, alpha), reference_row(KEYS, s, -INFINITY, plain);
        long double lse = 0, bound = gamma53(16 + KEYS + 4 + KEYS);
        for (size_t j = 0; j < KEYS; j++) lse += expl(s[j]), mass += alpha[j];
        long double sigmoid = 1 / (1 + expl(b - logl(lse))), left = 1 / (1 + expl(logl(lse) - b));
        keep_worst(&worst, (double)(fabsl(mass - sigmoid) / sigmoid / bound));
        keep_worst(&worst, (double)(fabsl(alpha[KEYS] - left) / left / bound));
        for (size_t j = 0; j < KEYS; j++)
            keep_worst(&worst, (double)(fabsl(alpha[j] / (sigmoid * plain[j]) - 1) / (3 * bound)));
        outside += !(alpha[KEYS] > 0 && alpha[KEYS] < 1 && mass > 0 && mass < 1);
    }
    ok(worst <= 1,
       "sink.gate sink.alpha-sink mass, sink and gated weights worst=%.3g bound=1 seed=43", worst);
    ok(outside == 0, "sink.mass-below-one sink and mass inside (0, 1) worst=%zu bound=0 seed=43",
       outside);
}

// law.constant-value: where every visible value is v*, o = (1 - alpha_sink) v*. Weights are
// multiples of 2^-10 and v* of 2^-3, so the real sum is exact. What the query must not see, keys
// outside the window and the columns of other heads, holds something else.
static void constant_value(double *out, double *formula) {
    static double alpha[3 * (KEYS + 1)], v[KEYS * STRIDE];
    sinkproof_block block = {.rows = 3,
                             .keys = KEYS,
                             .first = 3,
                             .window = 3,
                             .head_dim = DIM,
                             .q_stride = STRIDE,
                             .kv_stride = STRIDE};
    for (size_t i = 0; i < 3 * (KEYS + 1); i++)
        alpha[i] = (1 + next_integer(&state, 100) / 256) / 4;
    for (size_t i = 0; i < 3; i++) { // query i is at 3 + i and sees the keys 1 + i to 3 + i
        double values[DIM], one[SIZE] = {0};
        fill_reals(&state, 1e30, KEYS * STRIDE, v);
        for (size_t d = 0; d < DIM; d++) values[d] = next_integer(&state, 40) / 8 + 0.0625;
        for (size_t j = 1 + i; j <= 3 + i; j++) memcpy(v + j * STRIDE, values, sizeof values);
        sinkproof_values(&policy, &block, alpha, v, one);
        memcpy(out + i * STRIDE, one + i * STRIDE, DIM * sizeof *out);
        for (size_t d = 0; d < DIM; d++) {
            double sum =
                0; // over the reals the mass times v*; where a policy rounds, key after key
            for (size_t j = 1 + i; j <= 3 + i; j++) {
                double weight = at(AT_A11_WEIGHTS, alpha[i * (KEYS + 1) + j]);
                sum = at(AT_A11_ACC, sum + at(AT_A11_TERM, weight * values[d]));
            }
            formula[i * STRIDE + d] = at(AT_A11, at(AT_A11_PART, sum));
        }
    }
}

// rope.orthogonal: with c^2 + s^2 = k^2 every pair keeps its length times k. (3, 4, 5) / 4 and
// small whole numbers: all of it exact, so that the rotated pair times its conjugate gives back k^2
// times the pair, which is what is compared (rounded as the rotation is).
static void orthogonal(double *out, double *formula) {
    enum { HALF = DIM / 2, TOKENS = 4 };
    double cosine[TOKENS * HALF], sine[TOKENS * HALF], x[TOKENS * DIM];
    for (size_t p = 0; p < TOKENS * HALF; p++) {
        bool swap = next_bits(&state) % 2, minus = next_bits(&state) % 2;
        cosine[p] = swap ? 0.75 : 1, sine[p] = (swap ? 1 : 0.75) * (minus ? -1 : 1);
    }
    for (size_t i = 0; i < TOKENS * DIM; i++) x[i] = next_integer(&state, 200) + 0.25;
    double turned[TOKENS * DIM];
    memcpy(turned, x, sizeof x);
    sinkproof_rope(&policy, TOKENS, 1, DIM, cosine, sine, turned);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t d = 0; d < HALF; d++) {
            const double *o = turned + t * DIM + d, *a = x + t * DIM + d;
            double c = cosine[t * HALF + d], s = sine[t * HALF + d];
            double *got = out + t * DIM + d, *stated = formula + t * DIM + d;
            // (o1 + i o2)(c - i s) = k^2 (x1 + i x2), k = 5/4
            got[0] = o[0] * c + o[HALF] * s, got[HALF] = o[HALF] * c - o[0] * s;
            double r[2] = {at(AT_A4_PROD, a[0] * c) - at(AT_A4_PROD, a[HALF] * s),
                           at(AT_A4_PROD, a[HALF] * c) + at(AT_A4_PROD, a[0] * s)};
            double l[2] = {at(AT_A4, r[0]) - (a[0] * c - a[HALF] * s),
                           at(AT_A4, r[1]) - (a[HALF] * c + a[0] * s)}; // what was lost
            stated[0] = 1.5625 * a[0] + (l[0] * c + l[1] * s);
            stated[HALF] = 1.5625 * a[HALF] + (l[1] * c - l[0] * s);
        }
}

int main(void) {
    check("law.shift sink.stable", shift, 5);
    check("sink.limit", limit, 3);
    check("repeat.sink", repeated, 3);
    check("sink.gate sink.alpha-sink sink.mass-below-one", sink_weight, 4);
    gate();
    check("law.constant-value", constant_value, 5);
    check("rope.orthogonal", orthogonal, 2);
    return tap_done();
}
