// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks products of weights whose blocks have a minimum with activations in blocks of whole
// numbers (bound.q8-minima): kernels against their sets, with the enclosed sum of what was read,
// and a sum of a block that is a tie of float16.
#include "audit/verify/verify_near.h"
#include "model/ggml_blocks.h"
#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"
#include "ref/operands.h"

#include <string.h>

enum { ROUNDS = 60, MOST = 512, BLOCK = 32, BYTES = 24 * MOST / BLOCK, ALL = MOST + MOST / BLOCK };

// A weight of one row; `split`: its numbers without the minima, and these.
typedef struct minima_row {
    size_t n, all;
    uint8_t bytes[BYTES];
    double split[ALL];
    sinkproof_matrix matrix;
} minima_row;

static void minima_row_finish(minima_row *w, sinkproof_dtype dtype, size_t n) {
    w->n = n;
    w->matrix = (sinkproof_matrix){.dtype = dtype,
                                   .count = 1,
                                   .rows = 1,
                                   .cols = n,
                                   .data = w->bytes,
                                   .stack_stride = n,
                                   .row_stride = n,
                                   .col_stride = 1};
    w->all = n + sinkproof_matrix_minima(&w->matrix);
    sinkproof_matrix_split_row(&w->matrix, 0, w->split);
}

// Scales and minima from 2^-7 to 2^-5, of either sign.
static void draw_minima_row(uint64_t *seed, sinkproof_dtype dtype, size_t n, minima_row *w) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    for (size_t i = 0; i < sinkproof_dtype_bytes_for(dtype, n); i++)
        w->bytes[i] = (uint8_t)sinkproof_draw(seed);
    for (size_t b = 0; b < n / format->elements; b++)
        for (size_t k = 0; k < format->n_scales; k++) {
            uint8_t *top = w->bytes + b * format->bytes + format->scale_at[k] + 1;
            *top = (uint8_t)((*top & 0x83) | sinkproof_draw_from_to(seed, 8, 9) << 2);
        }
    minima_row_finish(w, dtype, n);
}

// The set of a sum over x, and the truth of what is read, read[all].
static sinkproof_honest minima_set_and_truth(const sinkproof_policy *policy, const minima_row *w,
                                             const double *x, double *read, arb_ptr truth) {
    sinkproof_honest set = operand_row_set(policy, &w->matrix, x);
    sinkproof_operand_row_and_sums(sinkproof_operand_rounding(policy, AT_M5_IN, &w->matrix), w->n,
                                   w->all - w->n, x, read);
    arb_ptr a_k = balls_from_doubles(read, w->all), b_k = balls_from_doubles(w->split, w->all);
    sinkproof_truth_values(truth, a_k, b_k, w->all, 1, 1, VERIFY_BITS);
    _arb_vec_clear(a_k, (slong)w->all);
    _arb_vec_clear(b_k, (slong)w->all);
    return set;
}

// Neighbours exactly, then float32; each minimum is a term of its own.
static double run_minima_sum(size_t each, const minima_row *w, const double *read) {
    float sum = 0;
    for (size_t c = 0; c < w->n; c += each) {
        double part = 0;
        for (size_t i = c; i < c + each; i++) part += read[i] * w->split[i];
        sum += (float)part;
    }
    for (size_t i = w->n; i < w->all; i++) sum += (float)read[i] * (float)w->split[i];
    return (double)sum;
}

static void measure_minima(verify_measure *result, const minima_row *w, const double *x,
                           double (*engine)(const minima_row *w, const double *read)) {
    sinkproof_policy policy = policy_named("f32,M5.in=weight");
    double read[ALL];
    arb_ptr truth = _arb_vec_init(1);
    sinkproof_honest set = minima_set_and_truth(&policy, w, x, read, truth);
    double y = engine(w, read);
    verify_add_set_values(result, truth, &set, &y, 1);
    _arb_vec_clear(truth, 1);
}

static double engine_by_fours(const minima_row *w, const double *read) {
    return run_minima_sum(4, w, read);
}
static double engine_by_blocks(const minima_row *w, const double *read) {
    return run_minima_sum(BLOCK, w, read);
}

void verify_q8_minima(verify_measure *result, uint64_t seed) {
    static const sinkproof_dtype dtypes[] = {SINKPROOF_DTYPE_Q4_1, SINKPROOF_DTYPE_Q5_1,
                                             SINKPROOF_DTYPE_Q4_K, SINKPROOF_DTYPE_Q5_K};
    for (size_t round = 0; round < ROUNDS; round++) {
        minima_row w;
        double x[MOST];
        sinkproof_dtype dtype = dtypes[round % 4];
        size_t block = sinkproof_dtype_block(dtype);
        draw_minima_row(&seed, dtype, block * sinkproof_draw_from_to(&seed, 1, MOST / block), &w);
        for (size_t c = 0; c < w.n; c++) x[c] = (double)(float)between(&seed, -3, 3);
        measure_minima(result, &w, x, round / 4 % 2 ? engine_by_fours : engine_by_blocks);
    }
}

// The sum that a minimum of 1 meets, which is a tie of float16, as the neighbour that the reference
// does not take. Whole numbers are multiplied by 0.
static double engine_of_the_other_tie(const minima_row *w, const double *read) {
    double steps = read[w->n] * 0x1p7, other = fmod(steps, 4) == 0 ? 2 : -2;
    (void)w;
    return (steps + other) * 0x1p-7;
}

// An odd sum above 2^11 of whole numbers whose scale is 2^-7. Of two even neighbours the reference
// takes the multiple of 4; the tie lies between them.
void verify_near_q8_minima(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 8; round++) {
        minima_row w = {.bytes = {0}};
        double x[MOST] = {127 * 0x1p-7};
        int left = 2048 + 4 * (int)sinkproof_draw_from_to(&seed, 0, 100) + 1 - 127;
        w.bytes[3] = 0x3c; // the scale is 0, the minimum 1
        minima_row_finish(&w, SINKPROOF_DTYPE_Q4_1, BLOCK);
        for (size_t c = 1; c < BLOCK; c++) {
            int q = left < 127 ? left : 127;
            x[c] = q * 0x1p-7, left -= q;
        }
        measure_minima(result, &w, x, engine_of_the_other_tie);
    }
}
