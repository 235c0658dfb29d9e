// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Subnormal operands read as zero, and results flushed to zero (bound.ftz): the instruction for
// pairs of bf16 numbers that matrix libraries use, where the processor has it, and an emulation of
// it; and a float32 engine that flushes in every stage. They are inside with ftz=allowed and
// outside with ftz=none. Where nothing is small, the sets are no wider.
#include "tests/shared/bounds_engine.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_PAIRS 1
#else
#define HAS_PAIRS 0
#endif

static const uint64_t SEED = 20260212;
static const float TINY = 0x1p-126f;

static float flushed(float x) {
    return fabsf(x) < TINY ? copysignf(0, x) : x;
}

// ---- sums of products of bf16 numbers -----------------------------------------------------------

// What vdpbf16ps states: operands read as zero, two products and two additions a lane, each result
// rounded to nearest even and flushed.
static float pairs_emulated(size_t n, const float *a, const float *b) {
    float lane[16] = {0}, sum = 0;
    for (size_t k = 0; k < n; k += 32)
        for (size_t l = 0; l < 32; l++) {
            size_t at = k + (l % 2 == 0 ? l + 1 : l - 1); // the odd element of a pair first
            if (at >= n) continue;
            float p = fmaf(flushed(a[at]), flushed(b[at]), lane[l / 2]);
            lane[l / 2] = flushed(p);
        }
    for (size_t l = 0; l < 16; l++) sum = flushed(sum + lane[l]);
    return sum;
}

#if HAS_PAIRS
static bool has_pairs(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f");
}

static uint16_t bf16_bits(float x) { // of a number that is one
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

__attribute__((target("avx512f,avx512bf16"))) static float pairs_machine(size_t n, const float *a,
                                                                         const float *b) {
    __m512 sum = _mm512_setzero_ps();
    for (size_t k = 0; k < n; k += 32) {
        uint16_t x[32] = {0}, y[32] = {0};
        for (size_t l = 0; l < 32 && k + l < n; l++)
            x[l] = bf16_bits(a[k + l]), y[l] = bf16_bits(b[k + l]);
        __m512i p = _mm512_loadu_si512(x), q = _mm512_loadu_si512(y);
        sum = _mm512_dpbf16_ps(sum, (__m512bh)p, (__m512bh)q);
    }
    float lane[16], total = 0;
    _mm512_storeu_ps(lane, sum);
    for (size_t l = 0; l < 16; l++) total += lane[l];
    return total;
}
#else
static bool has_pairs(void) {
    return false;
}
static float pairs_machine(size_t n, const float *a, const float *b) {
    return pairs_emulated(n, a, b);
}
#endif

enum { KEYS = 96, DIM = 4, ROWS = 400 };

// A11 of one row under `policy`: weights whose sink has taken nearly all, e^-b of what they were.
static void values_set(const char *policy_name, size_t n, const double *w, const double *v,
                       sinkproof_honest *out) {
    sinkproof_honest w_k[KEYS], v_k[DIM * KEYS];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * DIM, STANDARD_RATE);
    for (size_t k = 0; k < n; k++) w_k[k] = sinkproof_exact_set(w[k]);
    for (size_t k = 0; k < DIM * n; k++) v_k[k] = sinkproof_exact_set(v[k]);
    sinkproof_planes p = sinkproof_planes_new(w_k, 1, n, n);
    sinkproof_planes q = sinkproof_planes_new(v_k, DIM, n, n);
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, out, DIM));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    for (size_t d = 0; d < DIM; d++)
        out[d] = sinkproof_honest_at(&s, AT_A11, sinkproof_honest_inside(&s, out[d]));
}

typedef float (*product)(size_t n, const float *a, const float *b);

static void values(const char *what, const char *policy, product dot) {
    char without[80];
    snprintf(without, sizeof without, "%s,ftz=none", policy);
    uint64_t state = SEED;
    tally allowed = {.floor = 0x1p-140}, none = {0};
    size_t compared = 0, wider = 0;
    for (size_t r = 0; r < ROWS; r++) {
        // From weights of one down to some that are no bf16 number but 0.
        double w[KEYS], v[DIM * KEYS], shift = r % 2 ? 95 : 120 * draw_unit(&state);
        float a[KEYS], b[KEYS];
        sinkproof_honest with[DIM], plain[DIM];
        size_t n = 1 + draw_below(&state, KEYS);
        for (size_t k = 0; k < n; k++) {
            w[k] = sinkproof_round(SINKPROOF_BF16, exp(draw_gauss(&state) - shift));
            a[k] = (float)w[k];
        }
        for (size_t k = 0; k < DIM * n; k++) {
            // A large value: what its weight loses when it is read as zero is no result's loss.
            double scale = k % 7 == 0 ? 0x1p-130 : k % 11 == 3 ? 0x1p20 : 2;
            v[k] = draw_from(&state, SINKPROOF_BF16, scale);
        }
        values_set(policy, n, w, v, with), values_set(without, n, w, v, plain);
        for (size_t d = 0; d < DIM; d++) {
            for (size_t k = 0; k < n; k++) b[k] = (float)v[d * n + k];
            double o = flushed((float)sinkproof_round(SINKPROOF_BF16, dot(n, a, b)));
            meet(&allowed, &with[d], o), meet(&none, &plain[d], o);
            if (!(fabs(plain[d].mid) > 0x1p-90)) continue;
            compared++;
            wider += with[d].lo != plain[d].lo || with[d].hi != plain[d].hi;
        }
    }
    ok(allowed.outside == 0 && none.outside > 0 && wider == 0 && compared > 0,
       "bound.ftz bound.linear %s, %s worst=%.3g bound=1 outside=%zu of=%zu, with ftz=none "
       "outside=%zu; of %zu "
       "sets above 2^-90 %zu are wider than with ftz=none",
       what, policy, allowed.worst, allowed.outside, allowed.checked, none.outside, compared,
       wider);
}

// ---- elements -----------------------------------------------------------------------------------

// A float32 engine that reads and leaves zero for what is subnormal, on a stage's arithmetic of two
// operands: a rotation's pair, a product of the mixture, a residual.
static void elements(void) {
    enum { DRAWS = 40000 };
    static const char *const policies[] = {"f32", "f32,ftz=none"};
    uint64_t state = SEED + 1;
    tally t[2];
    memset(t, 0, sizeof t);
    sinkproof_drift drift = {0};
    for (int i = 0; i < DRAWS; i++) {
        double scale = ldexp(1, -130 + (int)draw_below(&state, 30));
        float x = (float)draw_from(&state, SINKPROOF_F32, scale), y;
        y = (float)draw_from(&state, SINKPROOF_F32, i % 3 == 0 ? 1 : scale);
        float z = i % 3 == 0 ? flushed(flushed(x) * flushed(y)) : flushed(flushed(x) + flushed(y));
        for (int p = 0; p < 2; p++) {
            sinkproof_policy policy = policy_named(policies[p]);
            sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
            sinkproof_honest a = honest_flushed(&s, sinkproof_exact_set(x));
            sinkproof_honest b = honest_flushed(&s, sinkproof_exact_set(y)), c;
            c = i % 3 == 0 ? sinkproof_honest_mul(a, b)
                           : sinkproof_honest_add(sinkproof_exact_set(x), sinkproof_exact_set(y));
            c = sinkproof_honest_at(&s, AT_A13, sinkproof_honest_inside(&s, c));
            meet(&t[p], &c, z);
            double v = z;
            if (p == 0) sinkproof_drift_row(&drift, 1, &v, &c, 0, 0);
        }
    }
    sinkproof_drift_result r;
    must(sinkproof_drift_judge(&drift, STANDARD_RATE, &r));
    sinkproof_drift_free(&drift);
    ok(t[0].outside == 0 && t[0].unlikely == 0 && fabs(r.gain) <= r.limit && t[1].outside > 0,
       "bound.ftz products and sums of two worst=%.3g bound=1 outside=%zu unlikely=%zu of=%zu, "
       "with "
       "ftz=none outside=%zu; drift %.3g of %.3g",
       t[0].worst, t[0].outside, t[0].unlikely, t[0].checked, t[1].outside, fabs(r.gain), r.limit);
}

// RMSNorm of a row with subnormal entries, and all of it subnormal.
static void norms(void) {
    enum { WIDTH = 64 };
    static const char *const policies[] = {"f32", "f32,ftz=none"};
    uint64_t state = SEED + 2;
    tally t[2];
    memset(t, 0, sizeof t);
    for (int i = 0; i < 600; i++) {
        float x[WIDTH], y[WIDTH], sum = 0, scale[WIDTH];
        for (size_t k = 0; k < WIDTH; k++) {
            x[k] = (float)draw_from(&state, SINKPROOF_F32, k % 2 ? 0x1p-128 : i % 2 ? 1 : 0x1p-127);
            scale[k] = (float)draw_from(&state, SINKPROOF_F32, k % 5 == 0 ? 0x1p-127 : 1);
            sum = flushed(sum + flushed(flushed(x[k]) * flushed(x[k])));
        }
        float root = 1 / sqrtf(flushed(sum / WIDTH) + 1e-5f);
        for (size_t k = 0; k < WIDTH; k++)
            y[k] = flushed(flushed(flushed(x[k]) * root) * flushed(scale[k]));
        for (int p = 0; p < 2; p++) {
            sinkproof_policy policy = policy_named(policies[p]);
            sinkproof_setting s = sinkproof_setting_for(&policy, 600 * WIDTH, STANDARD_RATE);
            sinkproof_honest in[WIDTH], out[WIDTH];
            double scales[WIDTH], common;
            for (size_t k = 0; k < WIDTH; k++)
                in[k] = sinkproof_exact_set(x[k]), scales[k] = scale[k];
            sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){WIDTH, scales, (double)1e-5f}, in,
                                     out, &common);
            for (size_t k = 0; k < WIDTH; k++) meet(&t[p], &out[k], y[k]);
        }
    }
    ok(t[0].outside == 0 && t[1].outside > 0,
       "bound.ftz a norm of subnormal numbers worst=%.3g bound=1 outside=%zu of=%zu, with ftz=none "
       "outside=%zu",
       t[0].worst, t[0].outside, t[0].checked, t[1].outside);
}

int main(void) {
    static const char *const policies[] = {"hf-bf16", "bf16", "openai-bf16"};
    for (size_t p = 0; p < 3; p++) values("values, emulated pairs", policies[p], pairs_emulated);
    if (has_pairs()) {
        for (size_t p = 0; p < 3; p++) values("values, pairs", policies[p], pairs_machine);
    } else {
        note("this processor has no instruction for pairs of bf16: the emulation stands for it");
    }
    elements();
    norms();
    return tap_done();
}
