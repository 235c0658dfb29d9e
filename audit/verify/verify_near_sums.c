// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums near their bounds (verify_near.h). The large term comes first; each later one is half an ulp
// of it, a tie that goes to the even neighbour, or a little less. The sum does not move, and n
// terms of size u are lost: gamma_n except its second order.
#include "audit/verify/verify_near.h"

#include "proofs/bounds/gradients.h"
#include "proofs/truth/exact_dot.h"
#include "proofs/truth/truth.h"

#include <float.h>

enum { TERMS = 1000, DRAWS = 6 };
static const double RATE = 1e-9;

// A sign and a power of two: exact sums stay exact.
static double drawn_scale(uint64_t *seed) {
    double power = ldexp(1, (int)sinkproof_draw_from_to(seed, 0, 40) - 20);
    return sinkproof_draw_from_to(seed, 0, 1) ? power : -power;
}

static sinkproof_matrix row_matrix(const double *x, size_t n) {
    return (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = 1,
                              .cols = n,
                              .data = (const uint8_t *)x,
                              .stack_stride = n,
                              .row_stride = n,
                              .col_stride = 1,
                              .name = "built"};
}

// bound.dot: with FMA and without, 1 and then ties.
void verify_near_dot(verify_measure *result, uint64_t seed) {
    arf_t exact;
    arb_t ball;
    arf_init(exact);
    arb_init(ball);
    for (int round = 0; round < DRAWS; round++) {
        double a[TERMS], b[TERMS], scale = drawn_scale(&seed), size = 0;
        float sum = 0;
        for (size_t k = 0; k < TERMS; k++) {
            a[k] = k == 0 ? scale : scale * 0x1p-12, b[k] = k == 0 ? 1 : 0x1p-12;
            size += fabs(a[k] * b[k]); // exact: 10 bits above 2^-24
            sum = round % 2 ? fmaf((float)a[k], (float)b[k], sum) : sum + (float)a[k] * (float)b[k];
        }
        sinkproof_exact_dot(exact, TERMS, a, b);
        arb_set_arf(ball, exact);
        verify_add_exact(result, sinkproof_truth_distance(ball, (double)sum),
                         sinkproof_mul_down(sinkproof_gamma(TERMS, 0x1p-24), size));
    }
    arf_clear(exact);
    arb_clear(ball);
}

// grad.rounded: the same over the queries of a sink, whose weights are 2^-12 but for the first's.
void verify_near_gradient(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < DRAWS; round++) {
        sinkproof_honest alpha_s[TERMS], delta[TERMS];
        double scale = drawn_scale(&seed);
        float sum = 0;
        for (size_t i = 0; i < TERMS; i++) {
            alpha_s[i] = sinkproof_exact_set(i == 0 ? 1 : 0x1p-12);
            delta[i] = sinkproof_exact_set(i == 0 ? scale : scale * 0x1p-12);
            float a = (float)alpha_s[i].mid, d = (float)delta[i].mid;
            sum = round % 2 ? fmaf(a, d, sum) : sum + a * d;
        }
        sinkproof_honest set = sinkproof_honest_gradient_sum(TERMS, alpha_s, 1, delta, 1, 0x1p-24);
        verify_add_enclosed(result, fabs((double)sum - set.mid), sinkproof_radius(&set));
    }
}

static sinkproof_honest products_set(const sinkproof_setting *s, size_t n,
                                     const sinkproof_honest *a_k, const sinkproof_honest *b_k) {
    sinkproof_honest set;
    sinkproof_planes p = sinkproof_planes_new(a_k, 1, n, n), q = sinkproof_planes_new(b_k, 1, n, n);
    must(sinkproof_honest_products(s, &p, &q, NULL, NULL, &set, 1));
    sinkproof_planes_free(&p);
    sinkproof_planes_free(&q);
    return set;
}

// Compares a sum with its set and with the sum over the middles of its operands.
static void compare_products(verify_measure *result, const sinkproof_honest *set, size_t n,
                             const sinkproof_honest *a_k, const sinkproof_honest *b_k,
                             double value) {
    arb_ptr a = _arb_vec_init((slong)n), b = _arb_vec_init((slong)n), truth = _arb_vec_init(1);
    for (size_t k = 0; k < n; k++) arb_set_d(a + k, a_k[k].mid), arb_set_d(b + k, b_k[k].mid);
    sinkproof_truth_values(truth, a, b, n, 1, 1, VERIFY_BITS);
    verify_add_set_values(result, truth, set, &value, 1);
    _arb_vec_clear(a, (slong)n);
    _arb_vec_clear(b, (slong)n);
    _arb_vec_clear(truth, 1);
}

// bound.dot-likely: a term a little above 1 at a random place among terms of random sign, each a
// little less than half a step of it. After it every addition errs by nearly u, either way with
// equal odds; before it additions are exact. Averaged over its place, the squared errors add up to
// the set's average over all orders. Of 400 such errors the largest is at least 1.5 standard
// deviations, a fifth of the likely set, except with odds below 1e-20.
void verify_near_dot_likely(verify_measure *result, uint64_t seed) {
    enum { N = 64, SUMS = 400 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, SUMS, RATE);
    for (int round = 0; round < SUMS; round++) {
        sinkproof_honest a_k[N], b_k[N];
        double scale = drawn_scale(&seed);
        size_t place = sinkproof_draw_from_to(&seed, 0, N - 1);
        float sum = 0;
        for (size_t k = 0; k < N; k++) {
            double lost = sinkproof_draw_from_to(&seed, 0, 1) ? 0x1.fep-25 : -0x1.fep-25;
            a_k[k] = sinkproof_exact_set(scale * (k == place ? 1 + 0x1p-10 : lost));
            b_k[k] = sinkproof_exact_set(1);
            sum += (float)a_k[k].mid;
        }
        sinkproof_honest set = products_set(&s, N, a_k, b_k);
        set.lo = set.likely_lo, set.hi = set.likely_hi;
        compare_products(result, &set, N, a_k, b_k, (double)sum);
    }
}

// bound.dot-exact: two products of 52 bits each, whose sum is within 2^-25 of the certificate's
// limit. The certificate must hold, and the sum is exact. With a third product the sum is an odd
// number of 54 bits, and a certificate would be wrong.
void verify_near_dot_exact(verify_measure *result, uint64_t seed) {
    arf_t exact;
    arf_init(exact);
    for (int round = 0; round < DRAWS; round++) {
        double a[3], b[3], scale = drawn_scale(&seed), value;
        for (size_t k = 0; k < 3; k++) a[k] = scale * 0x1.ffffff8p25, b[k] = 0x1.ffffff8p25;
        bool given = sinkproof_dot_certified(2, a, b, &value);
        sinkproof_exact_dot_gmp(exact, 2, a, b);
        bool right = given && arf_cmp_d(exact, value) == 0;
        double units = 2 * b[0] * b[0]; // in units of the last bit of a product
        verify_add_exact(result, !given ? 0 : right ? units : INFINITY, 0x1p53);
        b[2] = 0x1.8p25 + 1; // odd, like the others
        given = sinkproof_dot_certified(3, a, b, &value);
        sinkproof_exact_dot_gmp(exact, 3, a, b);
        verify_add_exact(result, given && arf_cmp_d(exact, value) != 0 ? INFINITY : 0, 0x1p53);
    }
    arf_clear(exact);
}

// bound.linear: the bias is 1, and each product is a tie with respect to it.
void verify_near_linear(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int round = 0; round < DRAWS; round++) {
        double x[TERMS], w[TERMS], bias = drawn_scale(&seed);
        sinkproof_honest known[TERMS], set;
        float sum = (float)bias;
        for (size_t k = 0; k < TERMS; k++) {
            x[k] = bias * 0x1p-12, w[k] = 0x1p-12, known[k] = sinkproof_exact_set(x[k]);
            sum += (float)x[k] * (float)w[k];
        }
        sinkproof_matrix w_rc = row_matrix(w, TERMS), b_r = row_matrix(&bias, 1);
        arb_ptr in = balls_from_doubles(x, TERMS), truth = _arb_vec_init(1);
        sinkproof_truth_linear(truth, in, 1, &w_rc, &b_r, VERIFY_BITS);
        sinkproof_planes planes = sinkproof_planes_new(known, 1, TERMS, TERMS);
        must(sinkproof_honest_linear(&s, &planes, &(sinkproof_weight_rows){&w_rc, 0, 1, &bias},
                                     &set, 1));
        double value = (double)sum;
        verify_add_set_values(result, truth, &set, &value, 1);
        sinkproof_planes_free(&planes);
        _arb_vec_clear(in, TERMS);
        _arb_vec_clear(truth, 1);
    }
}

// A number known to 2^-18 of itself, of which an engine holds the lower end.
static sinkproof_honest blurred_set(double mid) {
    double radius = fabs(mid) * 0x1p-18;
    return sinkproof_set_around(mid, radius, radius, 0, 0);
}
static float lower_end(double mid) {
    return (float)(mid - mid * 0x1p-18);
}

// bound.value: every weight and every value is at the lower end of its set, and the terms after the
// first are less than half a step of the sum.
void verify_near_value(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int round = 0; round < DRAWS; round++) {
        sinkproof_honest a_k[TERMS], v_k[TERMS];
        double scale = drawn_scale(&seed);
        float sum = 0;
        for (size_t k = 0; k < TERMS; k++) {
            double a = k == 0 ? 1 + 0x1p-8 : 0x1p-12, v = scale * (k == 0 ? 1 + 0x1p-8 : 0x1p-12);
            a_k[k] = blurred_set(a), v_k[k] = blurred_set(v);
            sum += lower_end(a) * lower_end(v);
        }
        sinkproof_honest set = products_set(&s, TERMS, a_k, v_k);
        compare_products(result, &set, TERMS, a_k, v_k, (double)sum);
    }
}

// bound.ftz: weights just below the smallest normal number, which are read as zero; large values.
void verify_near_ftz(verify_measure *result, uint64_t seed) {
    enum { N = 100 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int round = 0; round < DRAWS; round++) {
        sinkproof_honest w_k[N], v_k[N];
        double scale = drawn_scale(&seed);
        for (size_t k = 0; k < N; k++) {
            w_k[k] = sinkproof_exact_set(0x1p-126 - 0x1p-149);
            v_k[k] = sinkproof_exact_set(0x1p40 * scale);
        }
        sinkproof_honest set = products_set(&s, N, w_k, v_k);
        compare_products(result, &set, N, w_k, v_k, 0); // a sum of products with 0
    }
}

// bound.overflow: sizes that add up to 1 - 2^-10 times the largest number. The set is bounded, and
// the sum comes that near to the largest number.
void verify_near_overflow(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int round = 0; round < DRAWS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 8, TERMS);
        static sinkproof_honest w_k[TERMS], v_k[TERMS];
        float sum = 0;
        for (size_t k = 0; k < n; k++) {
            float a = (float)((1 - 0x1p-10) * (double)FLT_MAX / (double)n);
            w_k[k] = sinkproof_exact_set((double)a), v_k[k] = sinkproof_exact_set(1);
            sum += a;
        }
        sinkproof_honest set = products_set(&s, n, w_k, v_k);
        bool bounded = set.lo > -INFINITY && set.hi < INFINITY;
        bool inside = set.lo <= (double)sum && (double)sum <= set.hi;
        verify_add_exact(result, !inside ? INFINITY : bounded ? (double)sum : 0, (double)FLT_MAX);
    }
}

// 1 / sqrt(x) with its whole declared error, upward.
static float root_at_limit(float x) {
    return farthest_float(1 / sqrt((double)x), DECLARED, 1);
}

// Squares that are ties with respect to the first; the weight multiplies last.
static void measure_norm(verify_measure *result, uint64_t seed, const char *name) {
    sinkproof_policy policy = policy_named(name);
    sinkproof_setting s = sinkproof_setting_for(&policy, TERMS, RATE);
    for (int round = 0; round < DRAWS; round++) {
        double x[TERMS], scale[TERMS], value[TERMS], common, size = fabs(drawn_scale(&seed));
        sinkproof_honest known[TERMS], set[TERMS];
        float sum = 0;
        for (size_t i = 0; i < TERMS; i++) {
            x[i] = i == 0 ? size : size * 0x1p-12, scale[i] = (double)(float)between(&seed, 1, 2);
            known[i] = sinkproof_exact_set(x[i]), sum += (float)x[i] * (float)x[i];
        }
        double eps = size * size * 0x1p-30;
        float root = root_at_limit(sum / (float)TERMS + (float)eps);
        for (size_t i = 0; i < TERMS; i++)
            value[i] = (double)((float)x[i] * root * (float)scale[i]);
        sinkproof_matrix w = row_matrix(scale, TERMS);
        arb_ptr in = balls_from_doubles(x, TERMS), truth = _arb_vec_init(TERMS);
        sinkproof_truth_rmsnorm(truth, in, 1, &w, eps, VERIFY_BITS);
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){TERMS, scale, eps}, known, set,
                                 &common);
        verify_add_set_values(result, truth, set, value, 8); // they share the root
        _arb_vec_clear(in, TERMS);
        _arb_vec_clear(truth, TERMS);
    }
}

void verify_near_rmsnorm(verify_measure *result, uint64_t seed) {
    measure_norm(result, seed, "f32");
}
void verify_near_norm_rounded(verify_measure *result, uint64_t seed) {
    measure_norm(result, seed, "f32,A1.norm=f32?");
}

// bound.layernorm: 1, ties, and last a number equal to the mean as it was summed: its deviation is
// 0 in the engine, and over the reals it equals the loss of the mean.
void verify_near_layernorm(verify_measure *result, uint64_t seed) {
    enum { D = 2048 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, D, RATE);
    static double x[D], one[D], zero[D];
    static sinkproof_honest known[D], set[D];
    for (int round = 0; round < 2; round++) {
        double size = drawn_scale(&seed);
        float sum = 0;
        for (size_t i = 0; i < D; i++) {
            x[i] = i == 0 ? size : i < D - 1 ? size * 0x1p-24 : size / D;
            one[i] = 1, zero[i] = 0, known[i] = sinkproof_exact_set(x[i]);
            sum += (float)x[i];
        }
        double eps = size * size * 0x1p-30;
        float mean = sum / (float)D, squares = 0;
        for (size_t i = 0; i < D; i++) squares += ((float)x[i] - mean) * ((float)x[i] - mean);
        float root = root_at_limit(squares / (float)D + (float)eps);
        double value = (double)(((float)x[D - 1] - mean) * root);
        sinkproof_matrix w = row_matrix(one, D), b = row_matrix(zero, D);
        arb_ptr in = balls_from_doubles(x, D), truth = _arb_vec_init(D);
        sinkproof_truth_layernorm(truth, in, 1, &w, &b, eps, VERIFY_BITS);
        sinkproof_honest_layernorm(&s, AT_A1, &(sinkproof_norm){D, one, eps}, zero, known, set);
        verify_add_set_values(result, truth + D - 1, set + D - 1, &value, 1);
        _arb_vec_clear(in, D);
        _arb_vec_clear(truth, D);
    }
}
