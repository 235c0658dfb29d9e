// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rungs of the truth ladder agree, stage by stage, on drawn shapes and numbers. Linear stages:
// the exact dot product, the ball, and MPFR at a precision that rounds nothing. Every other stage:
// the balls at 128 and at 256 bits contain MPFR at 1024, and the radius shrinks with the precision;
// it would not shrink if a constant or a step were held in binary64.
#include "proofs/bounds/worst.h"
#include "proofs/truth/exact_dot.h"
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

enum { LOW = 128, HIGH = 256, MPFR_BITS = 1024 };

// What a stage showed over all its draws.
typedef struct rungs {
    size_t elements;
    bool contained;
    double low, high; // log2 of the worst radius at LOW and HIGH bits
} rungs;

static rungs start(void) {
    return (rungs){0, true, -INFINITY, -INFINITY};
}

static void take(rungs *r, arb_srcptr low, arb_srcptr high, mpfr_srcptr numbers, size_t n) {
    r->contained = r->contained && all_contain(low, numbers, n) && all_contain(high, numbers, n);
    r->low = sinkproof_keep_worst(r->low, worst_radius_log2(low, n));
    r->high = sinkproof_keep_worst(r->high, worst_radius_log2(high, n));
    r->elements += n;
}

// The radius shrank by more than half of the added bits.
static void report(const char *id, rungs r, uint64_t seed) {
    double gained = r.low - r.high;
    ok(r.elements > 0 && r.contained && gained > (HIGH - LOW) / 2.0,
       "%s ball contains mpfr, elements=%zu radius=2^%.1f at %d bits, 2^%.1f at %d, gained=%.1f "
       "bound=%.0f seed=%llu",
       id, r.elements, r.low, LOW, r.high, HIGH, gained, (HIGH - LOW) / 2.0,
       (unsigned long long)seed);
}

// y_r = W x + b: three rungs. W, b and x are drawn with the given spread of exponents.
static void linear(sinkproof_dtype dtype, int spread, int x_bits, uint64_t seed) {
    uint64_t state = seed;
    rungs r = start();
    size_t wrong = 0, certified = 0;
    for (int round = 0; round < 6; round++) {
        size_t rows = 1 + draw_below(&state, 7), cols = 32 * (1 + draw_below(&state, 5));
        sinkproof_matrix w, b;
        uint8_t *w_bytes = draw_matrix(&state, dtype, rows, cols, spread, &w);
        uint8_t *b_bytes = draw_matrix(&state, SINKPROOF_DTYPE_BF16, 1, rows, spread, &b);
        arb_ptr x = _arb_vec_init((slong)cols), low = _arb_vec_init((slong)rows);
        arb_ptr high = _arb_vec_init((slong)rows);
        mpfr_ptr x_m = truth_mpfr_vector(cols, 53), y_m = truth_mpfr_vector(rows, 6000);
        double *a_k = malloc((cols + 1) * sizeof *a_k), *x_k = malloc((cols + 1) * sizeof *x_k);
        double *bias = malloc(rows * sizeof *bias);
        if (a_k == NULL || x_k == NULL || bias == NULL) abort();
        draw_vector(&state, cols, x_bits, spread, x, x_m, x_k);
        sinkproof_truth_linear(low, x, 1, &w, &b, LOW);
        sinkproof_truth_linear(high, x, 1, &w, &b, HIGH);
        truth_mpfr_linear(y_m, x_m, &w, &b, 6000); // no rounding at this precision
        take(&r, low, high, y_m, rows);
        sinkproof_matrix_row(&b, 0, bias);
        arf_t exact, wide;
        arf_init(exact);
        arf_init(wide);
        for (size_t row = 0; row < rows; row++) {
            sinkproof_matrix_row(&w, row, a_k);
            a_k[cols] = bias[row]; // the bias is one more term
            x_k[cols] = 1;
            certified += sinkproof_exact_dot(exact, cols + 1, a_k, x_k);
            arf_set_mpfr(wide, y_m + row);
            wrong += !(arf_equal(exact, wide) && arb_contains_arf(high + row, exact));
        }
        arf_clear(exact);
        arf_clear(wide);
        _arb_vec_clear(x, (slong)cols);
        _arb_vec_clear(low, (slong)rows);
        _arb_vec_clear(high, (slong)rows);
        truth_mpfr_vector_free(x_m, cols);
        truth_mpfr_vector_free(y_m, rows);
        free(a_k);
        free(x_k);
        free(bias);
        free(w_bytes);
        free(b_bytes);
    }
    ok(wrong == 0 && r.contained,
       "attn.qkv bound.dot-exact linear %s spread=%d exact = mpfr, both in the ball, rows=%zu "
       "certified=%zu radius=2^%.1f at %d bits worst=%zu bound=0 seed=%llu",
       sinkproof_dtype_name(dtype), spread, r.elements, certified, r.high, HIGH, wrong,
       (unsigned long long)seed);
}

static void rmsnorm(uint64_t seed) {
    uint64_t state = seed;
    rungs r = start();
    for (int round = 0; round < 5; round++) {
        size_t n = 1 + draw_below(&state, 90);
        sinkproof_matrix w;
        uint8_t *bytes = draw_matrix(&state, SINKPROOF_DTYPE_BF16, 1, n, 2, &w);
        arb_ptr x = _arb_vec_init((slong)n), low = _arb_vec_init((slong)n);
        arb_ptr high = _arb_vec_init((slong)n);
        mpfr_ptr x_m = truth_mpfr_vector(n, 53), y_m = truth_mpfr_vector(n, MPFR_BITS);
        // all zeros in the first round: 0 / sqrt(eps)
        if (round > 0) draw_vector(&state, n, 24, 4 * round, x, x_m, NULL);
        sinkproof_truth_rmsnorm(low, x, 1, &w, 1e-5, LOW);
        sinkproof_truth_rmsnorm(high, x, 1, &w, 1e-5, HIGH);
        truth_mpfr_rmsnorm(y_m, x_m, &w, 1e-5, MPFR_BITS);
        take(&r, low, high, y_m, n);
        _arb_vec_clear(x, (slong)n);
        _arb_vec_clear(low, (slong)n);
        _arb_vec_clear(high, (slong)n);
        truth_mpfr_vector_free(x_m, n);
        truth_mpfr_vector_free(y_m, n);
        free(bytes);
    }
    report("rmsnorm.forward", r, seed);
}

static void rope(bool truncate, uint64_t seed) {
    uint64_t state = seed;
    rungs table = start(), turned = start();
    const int32_t positions[] = {0, 1, 127, 4095, 4096, 131071};
    for (size_t half = 4; half <= 32; half *= 2) {
        sinkproof_config config = {.head_dim = 2 * half,
                                   .rotation.theta = 150000,
                                   .rotation.factor = 32,
                                   .rotation.beta_fast = 32,
                                   .rotation.beta_slow = 1,
                                   .rotation.original_context = 4096,
                                   .rotation.truncate = truncate};
        sinkproof_truth_yarn low, high;
        sinkproof_truth_yarn_init(&low, &config, LOW);
        sinkproof_truth_yarn_init(&high, &config, HIGH);
        mpfr_ptr freq = truth_mpfr_vector(half, MPFR_BITS);
        mpfr_ptr c = truth_mpfr_vector(1, MPFR_BITS);
        truth_mpfr_yarn(freq, c, &config, MPFR_BITS);
        take(&table, low.inv_freq_d, high.inv_freq_d, freq, half);
        take(&table, low.concentration, high.concentration, c, 1);
        arb_ptr x = _arb_vec_init((slong)(2 * half)), y_low = _arb_vec_init((slong)(2 * half));
        arb_ptr y_high = _arb_vec_init((slong)(2 * half));
        mpfr_ptr x_m = truth_mpfr_vector(2 * half, 53);
        mpfr_ptr y_m = truth_mpfr_vector(2 * half, MPFR_BITS);
        for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
            draw_vector(&state, 2 * half, 24, 4, x, x_m, NULL);
            sinkproof_truth_rope(y_low, x, 1, 1, positions + i, &low, LOW);
            sinkproof_truth_rope(y_high, x, 1, 1, positions + i, &high, HIGH);
            truth_mpfr_rope(y_m, x_m, half, positions[i], freq, c, MPFR_BITS);
            take(&turned, y_low, y_high, y_m, 2 * half);
        }
        _arb_vec_clear(x, (slong)(2 * half));
        _arb_vec_clear(y_low, (slong)(2 * half));
        _arb_vec_clear(y_high, (slong)(2 * half));
        truth_mpfr_vector_free(x_m, 2 * half);
        truth_mpfr_vector_free(y_m, 2 * half);
        truth_mpfr_vector_free(freq, half);
        truth_mpfr_vector_free(c, 1);
        sinkproof_truth_yarn_clear(&low);
        sinkproof_truth_yarn_clear(&high);
    }
    report(truncate ? "yarn.ramp yarn.concentration yarn.truncate truncated"
                    : "yarn.ramp yarn.concentration yarn.truncate fractional",
           table, seed);
    report(truncate ? "rope.rotate truncated" : "rope.rotate fractional", turned, seed);
}

// Scores, softmax with the sink, values: one query over drawn keys.
static void attention(uint64_t seed) {
    uint64_t state = seed;
    rungs s = start(), a = start(), o = start();
    const double sinks[] = {-10, -0.5, 0, 3.25, 10, 20, 100, -INFINITY};
    for (size_t round = 0; round < 16; round++) {
        size_t keys = round == 0 ? 1 : 1 + draw_below(&state, 40), d = 2 + draw_below(&state, 63);
        size_t stride = 2 * d;
        arb_ptr q = _arb_vec_init((slong)d), k = _arb_vec_init((slong)(keys * stride));
        arb_ptr z[2], w[2], out[2];
        arb_t sink, none;
        mpfr_ptr q_m = truth_mpfr_vector(d, 53), k_m = truth_mpfr_vector(keys * stride, 53);
        mpfr_ptr z_m = truth_mpfr_vector(keys, MPFR_BITS);
        mpfr_ptr w_m = truth_mpfr_vector(keys + 1, MPFR_BITS);
        mpfr_ptr out_m = truth_mpfr_vector(d, MPFR_BITS), b_m = truth_mpfr_vector(1, 53);
        balls_init(sink, none);
        draw_vector(&state, d, 24, 2, q, q_m, NULL);
        draw_vector(&state, keys * stride, 24, 2, k, k_m, NULL);
        arb_set_d(sink, sinks[round % 8]);
        mpfr_set_d(b_m, sinks[round % 8], MPFR_RNDN);
        for (int precision = 0; precision < 2; precision++) {
            slong bits = precision == 0 ? LOW : HIGH;
            z[precision] = _arb_vec_init((slong)keys);
            w[precision] = _arb_vec_init((slong)(keys + 1));
            out[precision] = _arb_vec_init((slong)d);
            sinkproof_truth_scores(z[precision], q, k, keys, stride, d, bits);
            sinkproof_truth_softmax_sink(w[precision], w[precision] + keys, z[precision], keys,
                                         sink, bits);
            sinkproof_truth_values(out[precision], w[precision], k + d, keys, stride, d, bits);
        }
        truth_mpfr_scores(z_m, q_m, k_m, keys, stride, d, MPFR_BITS);
        truth_mpfr_softmax_sink(w_m, w_m + keys, z_m, keys, b_m, MPFR_BITS);
        truth_mpfr_values(out_m, w_m, k_m + d, keys, stride, d, MPFR_BITS);
        take(&s, z[0], z[1], z_m, keys);
        take(&a, w[0], w[1], w_m, keys + 1);
        take(&o, out[0], out[1], out_m, d);
        for (int precision = 0; precision < 2; precision++) {
            _arb_vec_clear(z[precision], (slong)keys);
            _arb_vec_clear(w[precision], (slong)(keys + 1));
            _arb_vec_clear(out[precision], (slong)d);
        }
        _arb_vec_clear(q, (slong)d);
        _arb_vec_clear(k, (slong)(keys * stride));
        balls_clear(sink, none);
        truth_mpfr_vector_free(q_m, d);
        truth_mpfr_vector_free(k_m, keys * stride);
        truth_mpfr_vector_free(z_m, keys);
        truth_mpfr_vector_free(w_m, keys + 1);
        truth_mpfr_vector_free(out_m, d);
        truth_mpfr_vector_free(b_m, 1);
    }
    report("attn.score", s, seed);
    report("sink.alpha sink.alpha-sink", a, seed);
    report("sink.attn-values", o, seed);
}

static void router(uint64_t seed) {
    uint64_t state = seed;
    rungs r = start();
    bool same = true;
    for (int round = 0; round < 8; round++) {
        size_t experts = 2 + draw_below(&state, 31), chosen = 1 + draw_below(&state, experts);
        size_t ids[32], ids_m[32];
        arb_ptr g = _arb_vec_init((slong)experts), low = _arb_vec_init((slong)chosen);
        arb_ptr high = _arb_vec_init((slong)chosen);
        mpfr_ptr g_m = truth_mpfr_vector(experts, 53);
        mpfr_ptr w_m = truth_mpfr_vector(chosen, MPFR_BITS);
        arb_t margin;
        arb_init(margin);
        draw_vector(&state, experts, 24, 3, g, g_m, NULL); // has equal logits: zeros
        truth_choice choice = sinkproof_truth_topk(ids, margin, g, experts, chosen, HIGH);
        truth_mpfr_router(ids_m, w_m, g_m, experts, chosen, MPFR_BITS);
        same = same && choice != CHOICE_AMBIGUOUS && memcmp(ids, ids_m, chosen * sizeof *ids) == 0;
        sinkproof_truth_router_weights(low, ids, g, chosen, LOW);
        sinkproof_truth_router_weights(high, ids, g, chosen, HIGH);
        take(&r, low, high, w_m, chosen);
        arb_clear(margin);
        _arb_vec_clear(g, (slong)experts);
        _arb_vec_clear(low, (slong)chosen);
        _arb_vec_clear(high, (slong)chosen);
        truth_mpfr_vector_free(g_m, experts);
        truth_mpfr_vector_free(w_m, chosen);
    }
    ok(same, "router.topk ball and mpfr choose alike, ties to the lower index seed=%llu",
       (unsigned long long)seed);
    report("router.softmax-after", r, seed);
}

static void experts(uint64_t seed) {
    uint64_t state = seed;
    rungs act = start(), mix = start();
    const double gates[] = {-100, -7, 0, 7, 7.000000476837158, 100, -1e8, 1e8};
    for (int round = 0; round < 4; round++) {
        size_t inter = 8, chosen = 1 + draw_below(&state, 4);
        arb_ptr u = _arb_vec_init(16), w = _arb_vec_init((slong)chosen);
        arb_ptr y = _arb_vec_init((slong)(chosen * inter));
        arb_ptr low = _arb_vec_init(8), high = _arb_vec_init(8);
        mpfr_ptr u_m = truth_mpfr_vector(16, 53), w_m = truth_mpfr_vector(chosen, 53);
        mpfr_ptr y_m = truth_mpfr_vector(chosen * inter, 53);
        mpfr_ptr out_m = truth_mpfr_vector(8, MPFR_BITS);
        draw_vector(&state, 16, 24, 4, u, u_m, NULL);
        for (size_t i = 0; round == 0 && i < 8; i++) {
            arb_set_d(u + 2 * i, gates[i]);
            mpfr_set_d(u_m + 2 * i, gates[i], MPFR_RNDN);
            arb_set_d(u + 2 * i + 1, gates[7 - i]);
            mpfr_set_d(u_m + 2 * i + 1, gates[7 - i], MPFR_RNDN);
        }
        sinkproof_truth_swiglu(low, u, inter, (sinkproof_swiglu_numbers){1.702, 7, 1}, LOW);
        sinkproof_truth_swiglu(high, u, inter, (sinkproof_swiglu_numbers){1.702, 7, 1}, HIGH);
        truth_mpfr_swiglu(out_m, u_m, inter, (sinkproof_swiglu_numbers){1.702, 7, 1}, MPFR_BITS);
        take(&act, low, high, out_m, 8);
        draw_vector(&state, chosen, 53, 1, w, w_m, NULL);
        draw_vector(&state, chosen * inter, 53, 40, y, y_m, NULL);
        sinkproof_truth_mixture(low, w, y, chosen, inter, LOW);
        sinkproof_truth_mixture(high, w, y, chosen, inter, HIGH);
        truth_mpfr_mixture(out_m, w_m, y_m, chosen, inter, MPFR_BITS);
        take(&mix, low, high, out_m, 8);
        _arb_vec_clear(u, 16);
        _arb_vec_clear(w, (slong)chosen);
        _arb_vec_clear(y, (slong)(chosen * inter));
        _arb_vec_clear(low, 8);
        _arb_vec_clear(high, 8);
        truth_mpfr_vector_free(u_m, 16);
        truth_mpfr_vector_free(w_m, chosen);
        truth_mpfr_vector_free(y_m, chosen * inter);
        truth_mpfr_vector_free(out_m, 8);
    }
    report("swiglu.clamped", act, seed);
    ok(mix.contained, "moe.sum ball contains mpfr, elements=%zu radius=2^%.1f at %d bits seed=%llu",
       mix.elements, mix.high, HIGH, (unsigned long long)seed);
}

int main(void) {
    linear(SINKPROOF_DTYPE_BF16, 3, 8, 11);
    linear(SINKPROOF_DTYPE_F32, 3, 24, 12);
    linear(SINKPROOF_DTYPE_MXFP4, 5, 24, 13);
    linear(SINKPROOF_DTYPE_MXFP4, 126, 53, 14);
    linear(SINKPROOF_DTYPE_F32, 140, 53, 15);
    linear(SINKPROOF_DTYPE_F64, 1022, 53, 16);
    rmsnorm(21);
    rope(false, 22);
    rope(true, 23);
    attention(24);
    router(25);
    experts(26);
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
