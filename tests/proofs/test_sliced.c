// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Products by exact slices against GMP integers: midpoints equal, radii enclose every choice inside
// the inputs' balls and are narrow, for every format and for weights that no slice was made for.
// Neither the processor's vectors nor threads nor the other tokens change a bit.
#include "model/ggml_blocks.h"
#include "proofs/truth/sliced_internal.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

enum { WIDE = 20000 }; // bits that round no product of these tests

// sum_c w_c x_c in integers, x_c = (sign of the weight times `side` at the edge of its ball).
static void gmp_product(arf_t out, const double *w_c, arb_srcptr x_c, size_t cols, int side) {
    mpz_t sum, term, man;
    fmpz_t m, e;
    slong least = 0;
    mpz_inits(sum, term, man, NULL);
    fmpz_init(m);
    fmpz_init(e);
    for (int pass = 0; pass < 2; pass++) // the least exponent; then the sum
        for (size_t c = 0; c < cols; c++) {
            arf_t x, radius;
            int e_w;
            arf_init(x);
            arf_init(radius);
            arf_set_mag(radius, arb_radref(x_c + c));
            if ((side > 0) == (w_c[c] < 0)) arf_neg(radius, radius);
            arf_set(x, arb_midref(x_c + c));
            if (side != 0) arf_add(x, x, radius, ARF_PREC_EXACT, ARF_RND_DOWN);
            if (w_c[c] != 0 && !arf_is_zero(x)) {
                arf_get_fmpz_2exp(m, e, x);
                fmpz_get_mpz(man, m);
                mpz_set_d(term, ldexp(frexp(w_c[c], &e_w), 53));
                slong exponent = fmpz_get_si(e) + e_w - 53;
                if (pass == 0 && exponent < least) least = exponent;
                if (pass == 1) {
                    mpz_mul(term, term, man);
                    mpz_mul_2exp(term, term, (mp_bitcnt_t)(exponent - least));
                    mpz_add(sum, sum, term);
                }
            }
            arf_clear(x);
            arf_clear(radius);
        }
    arf_set_mpz(out, sum);
    arf_mul_2exp_si(out, out, least);
    mpz_clears(sum, term, man, NULL);
    fmpz_clear(m);
    fmpz_clear(e);
}

// A ball with a midpoint of up to `bits` bits and, in one of two tokens, a radius.
static void draw_ball(uint64_t *state, arb_t x, int bits, int spread, int radius) {
    fmpz_t m;
    fmpz_init(m);
    arb_zero(x);
    int limbs = 1 + (int)draw_below(state, (size_t)(bits + 63) / 64), top = 0;
    for (int k = 0; k < limbs; k++, top += 64) {
        fmpz_mul_2exp(m, m, 64);
        fmpz_add_ui(m, m, draw(state));
    }
    if (draw_below(state, 16) > 0) arf_set_fmpz(arb_midref(x), m);
    arf_mul_2exp_si(arb_midref(x), arb_midref(x),
                    (slong)draw_below(state, 2 * spread + 1) - spread - top);
    if (draw(state) % 2) arb_neg(x, x);
    if (radius != 0 && draw_below(state, 8) > 0) {
        mag_set_ui_2exp_si(arb_radref(x), 1 + draw_below(state, 1 << 20),
                           radius - 20 - (slong)draw_below(state, 4));
    }
    fmpz_clear(m);
}

typedef struct tally {
    size_t products, apart, outside, wide, plain_rows, slices, of_lanes;
} tally;

// Balls that the plain vectors and OpenBLAS, or AVX2, compute to other bits than y_nr.
static size_t other_lanes(arb_srcptr y_nr, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w) {
    const slice_lanes *of[SLICE_LANES_MOST];
    size_t apart = 0, lanes = slice_lanes_all(of);
    arb_ptr other = ball_vector(n * w->rows);
    for (size_t k = 0; k + 1 < lanes; k++) {
        sliced_linear_by(of[k], other, x_nc, n, w, NULL, WIDE, 1, NULL);
        for (size_t e = 0; e < n * w->rows; e++) apart += !arb_equal(y_nr + e, other + e);
    }
    ball_vector_release(other, n * w->rows);
    return apart;
}

// Every row of the matrix times n tokens of exact numbers, then of balls.
static void compare(tally *t, uint64_t *state, const sinkproof_matrix *w, size_t n, int bits,
                    int spread) {
    size_t rows = w->rows, cols = w->cols;
    arb_ptr x = ball_vector(n * cols), y = ball_vector(n * rows);
    double *w_c = malloc(cols * sizeof *w_c);
    must(w_c != NULL);
    arf_t exact, low, high, radius, most;
    arf_init(exact), arf_init(low), arf_init(high), arf_init(radius), arf_init(most);
    for (int balls = 0; balls < 2; balls++) {
        sliced_account account;
        for (size_t k = 0; k < n * cols; k++)
            draw_ball(state, x + k, bits, spread, balls * (k / cols % 2 == 0 ? -bits / 2 : -20));
        sinkproof_sliced_linear(y, x, n, w, NULL, WIDE, 1, &account);
        t->plain_rows += account.plain_rows;
        t->of_lanes += other_lanes(y, x, n, w);
        t->slices = account.slices > t->slices ? account.slices : t->slices;
        for (size_t r = 0; r < rows; r++) {
            sinkproof_matrix_row(w, r, w_c);
            for (size_t i = 0; i < n; i++) {
                arb_srcptr out = y + i * rows + r;
                t->products++;
                if (!balls) {
                    gmp_product(exact, w_c, x + i * cols, cols, 0);
                    t->apart += !arf_equal(exact, arb_midref(out)) || !mag_is_zero(arb_radref(out));
                    continue;
                }
                gmp_product(low, w_c, x + i * cols, cols, -1);
                gmp_product(high, w_c, x + i * cols, cols, 1);
                t->outside += !arb_contains_arf(out, low) || !arb_contains_arf(out, high);
                arf_set_mag(radius, arb_radref(out));
                arf_sub(most, high, low, 64, ARF_RND_UP); // twice the least radius
                arf_mul_ui(most, most, 33, 64, ARF_RND_UP);
                arf_mul_2exp_si(most, most, -6);
                t->wide += arf_cmp(radius, most) > 0;
            }
        }
    }
    arf_clear(exact), arf_clear(low), arf_clear(high), arf_clear(radius), arf_clear(most);
    free(w_c);
    ball_vector_release(x, n * cols);
    ball_vector_release(y, n * rows);
}

static void report(const char *what, const tally *t, bool sliced, uint64_t seed) {
    ok(t->apart == 0 && t->outside == 0 && t->of_lanes == 0 && t->wide == 0 && t->products > 0 &&
           (t->plain_rows == 0) == sliced,
       "slices.exact %s products=%zu not-gmp=%zu outside=%zu wider-than-33/32=%zu "
       "of-other-lanes=%zu "
       "slices=%zu plain-rows=%zu bound=0 seed=%llu",
       what, t->products, t->apart, t->outside, t->wide, t->of_lanes, t->slices, t->plain_rows,
       (unsigned long long)seed);
}

static void drawn(const char *what, sinkproof_dtype dtype, int spread, bool sliced, uint64_t seed) {
    tally t = {0};
    uint64_t state = seed;
    for (int round = 0; round < 12; round++) {
        size_t cols = 32 * (1 + draw_below(&state, 9)), rows = 1 + draw_below(&state, 5);
        sinkproof_matrix w;
        uint8_t *bytes = draw_matrix(&state, dtype, rows, cols, spread, &w);
        compare(&t, &state, &w, 1 + draw_below(&state, 3), 20 + (int)draw_below(&state, 700), 12);
        free(bytes);
    }
    report(what, &t, sliced, seed);
}

// ggml's blocks of random bytes with finite scales.
static void drawn_blocks(sinkproof_dtype dtype, uint64_t seed) {
    tally t = {0};
    uint64_t state = seed;
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(dtype);
    enum { ROWS = 3, BLOCKS = 2 };
    for (int round = 0; round < 6; round++) {
        size_t cols = BLOCKS * blocks->elements, bytes = ROWS * BLOCKS * blocks->bytes;
        uint8_t *data = malloc(bytes);
        must(data != NULL);
        for (size_t k = 0; k < bytes; k++) data[k] = (uint8_t)draw(&state);
        for (size_t b = 0; b < ROWS * BLOCKS; b++)
            for (size_t k = 0; k < blocks->n_scales; k++)
                data[b * blocks->bytes + blocks->scale_at[k] + 1] &= 0xbf; // an exponent below 16
        sinkproof_matrix w = {.dtype = dtype,
                              .count = 1,
                              .rows = ROWS,
                              .cols = cols,
                              .data = data,
                              .stack_stride = ROWS * cols,
                              .row_stride = cols,
                              .col_stride = 1,
                              .name = "drawn"};
        compare(&t, &state, &w, 2, 300, 6);
        free(data);
    }
    report(sinkproof_dtype_name(dtype), &t, true, seed);
}

// ---- weights that are hostile to slices

enum { HARD_ROWS = 3, HARD_COLS = 300 };

static void hostile(const char *what, void (*fill)(uint64_t *state, size_t k, double *w),
                    bool sliced, uint64_t seed) {
    double w_rc[HARD_ROWS * HARD_COLS];
    uint64_t state = seed;
    tally t = {0};
    for (size_t k = 0; k < HARD_ROWS * HARD_COLS; k++) fill(&state, k, &w_rc[k]);
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64,
                          .count = 1,
                          .rows = HARD_ROWS,
                          .cols = HARD_COLS,
                          .data = (const uint8_t *)w_rc,
                          .stack_stride = HARD_ROWS * HARD_COLS,
                          .row_stride = HARD_COLS,
                          .col_stride = 1,
                          .name = "hostile"};
    compare(&t, &state, &w, 2, 200, 30);
    report(what, &t, sliced, seed);
}

static void fill_range(uint64_t *state, size_t k, double *w) { // every exponent of bfloat16
    *w = ldexp(128 + (double)draw_below(state, 128), (int)(k % 254) - 133) *
         (draw(state) % 2 ? 1 : -1);
}
static void fill_tiny(uint64_t *state, size_t k, double *w) { // bfloat16's subnormal numbers
    (void)k;
    *w = ldexp((double)draw_below(state, 128), -133);
}
static void fill_equal(uint64_t *state, size_t k, double *w) {
    (void)state, (void)k;
    *w = -0x1.86p-7;
}
static void fill_outlier(uint64_t *state, size_t k, double *w) {
    *w = k % HARD_COLS == 17 ? 0x1.02p120 : draw_number(state, 8, 3);
}
static void fill_none(uint64_t *state, size_t k, double *w) {
    (void)state;
    *w = k == HARD_COLS ? 3 : 0; // rows of zeros, and one number
}
static void fill_subnormal(uint64_t *state, size_t k, double *w) { // of binary64
    *w = k < HARD_COLS ? ldexp((double)draw_below(state, 1 << 20), -1074)
                       : draw_number(state, 53, 1000);
}

// ---- threads, other tokens

enum { SHARED_ROWS = 300, SHARED_COLS = 96, TOKENS = 5 };

static void same_bits(void) {
    uint64_t state = 77;
    sinkproof_matrix w;
    uint8_t *bytes = draw_matrix(&state, SINKPROOF_DTYPE_F32, SHARED_ROWS, SHARED_COLS, 20, &w);
    arb_ptr x = ball_vector(TOKENS * SHARED_COLS), one = ball_vector(TOKENS * SHARED_ROWS),
            other = ball_vector(TOKENS * SHARED_ROWS);
    size_t threaded = 0, alone = 0, outside = 0;
    for (size_t k = 0; k < TOKENS * SHARED_COLS; k++)
        draw_ball(&state, x + k, 40 << k / SHARED_COLS, 9, k / SHARED_COLS == 2 ? 0 : -30);
    sinkproof_sliced_linear(one, x, TOKENS, &w, NULL, 200, 1, NULL);
    sinkproof_sliced_linear(other, x, TOKENS, &w, NULL, 200, 3, NULL);
    for (size_t k = 0; k < TOKENS * SHARED_ROWS; k++) threaded += !arb_equal(one + k, other + k);
    for (size_t i = 0; i < TOKENS; i++)
        sinkproof_sliced_linear(other + i * SHARED_ROWS, x + i * SHARED_COLS, 1, &w, NULL, 200, 2,
                                NULL);
    for (size_t k = 0; k < TOKENS * SHARED_ROWS; k++) alone += !arb_equal(one + k, other + k);
    truth_plain_linear(other, x, TOKENS, &w, NULL, 400);
    for (size_t k = 0; k < TOKENS * SHARED_ROWS; k++)
        outside += !arb_contains_arf(one + k, arb_midref(other + k));
    ok(threaded == 0 && alone == 0,
       "slices.exact of %d tokens: three threads change %zu balls, tokens alone %zu, bound=0 "
       "seed=77",
       TOKENS, threaded, alone);
    ok(outside == 0, "slices.exact: %zu midpoints of ball dot products outside, bound=0 seed=77",
       outside);
    ball_vector_release(x, TOKENS * SHARED_COLS);
    ball_vector_release(one, TOKENS * SHARED_ROWS);
    ball_vector_release(other, TOKENS * SHARED_ROWS);
    free(bytes);
}

// ---- what no fixed point holds

static void refusals(void) {
    double w_rc[] = {1, 2, INFINITY, 1, 3, 4, NAN, 0};
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64,
                          .count = 1,
                          .rows = 4,
                          .cols = 2,
                          .data = (const uint8_t *)w_rc,
                          .stack_stride = 8,
                          .row_stride = 2,
                          .col_stride = 1,
                          .name = "refused"};
    arb_ptr x = ball_vector(8), y = ball_vector(16);
    arb_set_d(x, 5), arb_set_d(x + 1, 7);        // token 0: plain
    arb_set_d(x + 2, 1), arb_zero_pm_inf(x + 3); // 1: not finite
    arb_set_d(x + 4, 1), arb_mul_2exp_si(x + 4, x + 4, WORD_MAX / 4),
        arb_set_d(x + 5, 1); // 2: huge
    arb_set_d(x + 6, 1), arb_mul_2exp_si(x + 6, x + 6, -(WORD_MAX / 4)),
        arb_set_d(x + 7, 1); // 3: a tiny number
    sliced_account account;
    sinkproof_sliced_linear(y, x, 4, &w, NULL, 100, 1, &account);
    ok(account.plain_rows == 2 && account.plain_tokens == 2,
       "slices.exact: infinite weights and inputs are refused: %zu rows, %zu tokens",
       account.plain_rows, account.plain_tokens);
    ok(arb_equal_si(y, 19) && arb_equal_si(y + 2, 43) && !arb_is_finite(y + 1) &&
           !arb_is_finite(y + 3),
       "slices.exact: an infinite row leaves the others exact");
    ok(!arb_is_finite(y + 4) && !arb_is_finite(y + 6),
       "slices.exact: an infinite input gives infinite balls");
    arf_t exact;
    arf_init(exact);
    arf_add(exact, arb_midref(x + 4), arb_midref(y), 64, ARF_RND_DOWN);
    ok(arb_is_finite(y + 8) && arf_cmp_si(arb_midref(y + 8), 0) > 0,
       "slices.exact: a huge exponent is enclosed");
    arb_t t;
    arb_init(t);
    arb_set_arf(t, arb_midref(x + 6));
    arb_add_ui(t, t, 2, ARF_PREC_EXACT < 1000 ? ARF_PREC_EXACT : 1000);
    ok(arb_is_finite(y + 12) && arb_overlaps(y + 12, t) && arb_contains_si(y + 12, 2),
       "slices.exact: a tiny number is enclosed");
    arb_clear(t);
    arf_clear(exact);
    ball_vector_release(x, 8);
    ball_vector_release(y, 16);
}

// x - y for two exact numbers that are equal in all bits that are kept: what was cut off is the
// result, and lies in its radius.
static void cancelled(void) {
    double w_rc[] = {1, -1};
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64,
                          .count = 1,
                          .rows = 1,
                          .cols = 2,
                          .data = (const uint8_t *)w_rc,
                          .stack_stride = 2,
                          .row_stride = 2,
                          .col_stride = 1,
                          .name = "cancelled"};
    arb_ptr x = ball_vector(2), y = ball_vector(1);
    arf_t difference;
    arf_init(difference);
    arf_set_si_2exp_si(arb_midref(x), 1, -100);
    arf_set_si_2exp_si(arb_midref(x + 1), 3, -100);
    arf_sub(difference, arb_midref(x), arb_midref(x + 1), ARF_PREC_EXACT, ARF_RND_DOWN);
    for (size_t c = 0; c < 2; c++)
        arf_add_ui(arb_midref(x + c), arb_midref(x + c), 1, ARF_PREC_EXACT, ARF_RND_DOWN);
    sinkproof_sliced_linear(y, x, 1, &w, NULL, 53, 1, NULL);
    ok(arb_contains_arf(y, difference) && mag_cmp_2exp_si(arb_radref(y), -80) < 0,
       "slices.exact bits that were cut off are in the radius");
    sinkproof_sliced_linear(y, x, 1, &w, NULL, 80, 1, NULL);
    ok(arb_is_exact(y) && arf_equal(arb_midref(y), difference),
       "slices.exact bits that were kept are exact");
    arf_clear(difference);
    ball_vector_release(x, 2);
    ball_vector_release(y, 1);
}

// The join against a sum of powers: sums at both ends of their range, every digit size.
static void joined(void) {
    uint64_t state = 5;
    size_t wrong = 0, joins = 0;
    double sum_j[40];
    mp_limb_t limb_k[64];
    arf_t out, sum, term;
    arf_init(out), arf_init(sum), arf_init(term);
    for (int s = DIGIT_BITS_LEAST; s <= DIGIT_BITS_MOST; s++)
        for (int round = 0; round < 60; round++, joins++) {
            size_t digits = 1 + draw_below(&state, 40);
            arf_zero(sum);
            for (size_t j = 0; j < digits; j++) {
                double size = round % 3 == 0
                                  ? 0x1p53 - 1
                                  : (double)(draw(&state) >> (11 + draw_below(&state, 53)));
                sum_j[j] = round % 3 == 1 || draw(&state) % 2 ? -size : size;
                arf_set_d(term, sum_j[j]);
                arf_mul_2exp_si(term, term, s * (slong)j);
                arf_add(sum, sum, term, ARF_PREC_EXACT, ARF_RND_DOWN);
            }
            slice_join(out, sum_j, digits, s, limb_k);
            wrong += !arf_equal(out, sum);
        }
    arf_clear(out), arf_clear(sum), arf_clear(term);
    ok(wrong == 0, "slices.exact joins=%zu wrong=%zu bound=0 seed=5", joins, wrong);
}

// A slice at the certificate's edge: the sum of its sizes is below 2^room, and nothing is lost.
static void certificates(void) {
    uint64_t state = 6;
    size_t broken = 0, lost = 0, taken = 0;
    double w_c[64], rest_c[64], h_c[64];
    for (int round = 0; round < 500; round++) {
        int room = 10 + (int)draw_below(&state, 40), e;
        size_t cols = 1 + draw_below(&state, 64);
        slice_found found = {.left_at = NULL};
        if (cols + 2 > (size_t)1 << room) continue;
        for (size_t c = 0; c < cols; c++) rest_c[c] = w_c[c] = draw_number(&state, 53, 40);
        double sizes = slice_sum_of_sizes(w_c, cols);
        slice_outcome outcome = slice_take(rest_c, &sizes, cols, room, h_c, &e, &found);
        if (outcome != SLICE_TAKEN) continue;
        double sum = 0;
        taken++;
        for (size_t c = 0; c < cols; c++) {
            sum += fabs(h_c[c]);
            mpf_t a, b; // sums of binary64 numbers, exact at this precision
            mpf_init2(a, 400), mpf_init2(b, 400);
            mpf_set_d(a, ldexp(h_c[c], e));
            mpf_set_d(b, rest_c[c]);
            mpf_add(a, a, b);
            mpf_set_d(b, w_c[c]);
            lost += mpf_cmp(a, b) != 0 || fabs(rest_c[c]) > ldexp(0.5, e);
            mpf_clear(a), mpf_clear(b);
        }
        broken += !(sum < ldexp(1, room)) || (cols > 8 && sum < ldexp(0.2, room) && room > 12);
    }
    ok(taken > 300 && broken == 0 && lost == 0,
       "slices.exact slices=%zu above-or-far-below-their-room=%zu lost=%zu bound=0 seed=6", taken,
       broken, lost);
}

int main(void) {
    joined();
    certificates();
    drawn("bf16", SINKPROOF_DTYPE_BF16, 4, true, 1);
    drawn("bf16, all exponents", SINKPROOF_DTYPE_BF16, 130, true, 2);
    drawn("f32", SINKPROOF_DTYPE_F32, 6, true, 3);
    drawn("f32 with subnormals", SINKPROOF_DTYPE_F32, 140, true, 4);
    drawn("f64", SINKPROOF_DTYPE_F64, 30, true, 5);
    drawn("mxfp4", SINKPROOF_DTYPE_MXFP4, 4, true, 6);
    drawn("mxfp4, all scales", SINKPROOF_DTYPE_MXFP4, 126, true, 7);
    const sinkproof_dtype blocks[] = {
        SINKPROOF_DTYPE_Q8_0, SINKPROOF_DTYPE_Q4_0, SINKPROOF_DTYPE_Q4_1, SINKPROOF_DTYPE_Q5_0,
        SINKPROOF_DTYPE_Q5_1, SINKPROOF_DTYPE_Q4_K, SINKPROOF_DTYPE_Q5_K, SINKPROOF_DTYPE_Q6_K};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) drawn_blocks(blocks[k], 20 + k);
    hostile("every exponent of bf16 in a row", fill_range, true, 31);
    hostile("subnormal numbers of bf16", fill_tiny, true, 32);
    hostile("equal weights", fill_equal, true, 33);
    hostile("one outlier of 2^120", fill_outlier, true, 34);
    hostile("zeros", fill_none, true, 35);
    hostile("all exponents of binary64", fill_subnormal, false, 36);
    same_bits();
    refusals();
    cancelled();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
