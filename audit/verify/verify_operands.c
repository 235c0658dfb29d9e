// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks operands rounded when they are read (bound.operands), activations in blocks of whole
// numbers (bound.q8) or as codes with a scale (bound.scaled), sums in a narrow format
// (bound.accumulator), and those of matrix units (bound.tensor-core): kernels against their sets,
// with the enclosed sum of the operands as read.
#include "audit/verify/verify_near.h"
#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"
#include "ref/operands.h"

#include <string.h>

enum { ROUNDS = 100, MOST = 512, SCALED = 32 };
static const double RATE = 1e-9;

// A weight of one row in blocks with a scale each; codes are multiples of one half.
typedef struct scaled_row {
    size_t n;
    uint8_t codes[MOST / 2], scales[MOST / SCALED];
    double w[MOST];
    sinkproof_matrix matrix;
} scaled_row;

static void draw_scaled(uint64_t *seed, size_t n, scaled_row *w) {
    w->n = n;
    for (size_t k = 0; k < n / 2; k++) w->codes[k] = (uint8_t)sinkproof_draw(seed);
    for (size_t k = 0; k < n / SCALED; k++)
        w->scales[k] = (uint8_t)sinkproof_draw_from_to(seed, 118, 124);
    w->matrix = (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_MXFP4,
                                   .count = 1,
                                   .rows = 1,
                                   .cols = n,
                                   .data = w->codes,
                                   .scales = w->scales,
                                   .stack_stride = n,
                                   .row_stride = n,
                                   .col_stride = 1};
    sinkproof_matrix_row(&w->matrix, 0, w->w);
}

sinkproof_honest operand_row_set(const sinkproof_policy *policy, const sinkproof_matrix *w,
                                 const double *x) {
    sinkproof_setting s = sinkproof_setting_for(policy, 1, RATE);
    sinkproof_accumulator a = sinkproof_accumulator_at(policy, AT_M5_TERM, AT_M5_ACC);
    sinkproof_honest x_k[MOST], set;
    for (size_t k = 0; k < w->cols; k++) x_k[k] = sinkproof_exact_set(x[k]);
    sinkproof_planes p = sinkproof_operand_planes(&s, AT_M5_IN, w, x_k, 1);
    sinkproof_linear_sums *sums =
        sinkproof_linear_sums_with(&s, &a, &p, &(sinkproof_weight_rows){w, 0, 1, NULL});
    must(p.mid != NULL && sums != NULL);
    sinkproof_linear_sums_row(sums, 0, &set);
    sinkproof_linear_sums_free(sums);
    sinkproof_planes_free(&p);
    return set;
}

// The set of a sum over x as `policy` reads it, and its truth: sum_k read_k w_k.
static sinkproof_honest set_and_truth(const sinkproof_policy *policy, const scaled_row *w,
                                      const double *x, double *read, arb_ptr truth) {
    sinkproof_honest set = operand_row_set(policy, &w->matrix, x);
    sinkproof_operand_row(sinkproof_operand_rounding(policy, AT_M5_IN, &w->matrix), w->n, x, read);
    arb_ptr a_k = balls_from_doubles(read, w->n), b_k = balls_from_doubles(w->w, w->n);
    sinkproof_truth_values(truth, a_k, b_k, w->n, 1, 1, VERIFY_BITS);
    _arb_vec_clear(a_k, (slong)w->n);
    _arb_vec_clear(b_k, (slong)w->n);
    return set;
}

// y = the sum of `part` neighbours exactly, then in `acc` or by the policy's unit, with operands as
// they are read.
typedef struct kernel {
    const char *policy;
    size_t part;
    sinkproof_format acc;
} kernel;

static double run_kernel_sum(const kernel *k, const scaled_row *w, const double *read) {
    const sinkproof_policy policy = policy_named(k->policy);
    const sinkproof_rounding acc = policy.at[AT_M5_ACC];
    bool core = k->acc == SINKPROOF_TENSOR_CORE, parts = sinkproof_sum_is_in_parts(acc);
    size_t each = core ? acc.block : parts ? sinkproof_sum_part_products(acc, w->n) : k->part;
    double sum = 0;
    for (size_t c = 0; c < w->n; c += each) {
        size_t n = w->n - c < each ? w->n - c : each;
        double part = 0;
        for (size_t i = c; !core && i < c + n; i++) {
            part += read[i] * w->w[i];
            if (parts) part = (double)(float)part;
        }
        if (core)
            sum = sinkproof_core_add(acc, sum, n, read + c, w->w + c, 1);
        else if (parts)
            sum = (double)(float)(sum + sinkproof_round(acc.part, part));
        else
            sum = sinkproof_round(k->acc, (double)(float)(sum + (double)(float)part));
    }
    return sum;
}

static void measure_kernels(verify_measure *result, uint64_t seed, const kernel *kernels,
                            size_t count) {
    for (size_t round = 0; round < ROUNDS; round++) {
        const kernel *k = &kernels[round % count];
        sinkproof_policy policy = policy_named(k->policy);
        scaled_row w;
        double x[MOST], read[MOST];
        draw_scaled(&seed, SCALED * sinkproof_draw_from_to(&seed, 1, MOST / SCALED), &w);
        if (k->acc == SINKPROOF_BF16) w.n = w.matrix.cols = SCALED; // n u below 1
        for (size_t c = 0; c < w.n; c++) x[c] = (double)(float)between(&seed, -3, 3);
        arb_ptr truth = _arb_vec_init(1);
        sinkproof_honest set = set_and_truth(&policy, &w, x, read, truth);
        double y = run_kernel_sum(k, &w, read);
        sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_M5_TERM, AT_M5_ACC);
        if (sinkproof_is_running(&a)) // the set of one order: it need not contain the truth
            verify_add_comparison(result, y >= set.lo && y <= set.hi ? 0 : INFINITY, 1);
        else
            verify_add_set_values(result, truth, &set, &y, 1);
        _arb_vec_clear(truth, 1);
    }
}

void verify_operands(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.in=bf16", 1, SINKPROOF_F32},
                                     {"f32,M5.in=f16", 1, SINKPROOF_F32}};
    measure_kernels(result, seed, kernels, 2);
}

void verify_q8(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.in=q8_0", 4, SINKPROOF_F32},
                                     {"f32,M5.in=weight", 32, SINKPROOF_F32}};
    measure_kernels(result, seed, kernels, 2);
}

void verify_scaled(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.in=e4m3(token)", 1, SINKPROOF_F32},
                                     {"f32,M5.in=int8(token)", 1, SINKPROOF_F32},
                                     {"bf16,M5.in=mxfp8", 1, SINKPROOF_F32},
                                     {"bf16,M5.in=nvfp4(token)", 1, SINKPROOF_F32}};
    measure_kernels(result, seed, kernels, 4);
}

void verify_accumulator(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.acc=f16?", 1, SINKPROOF_F16},
                                     {"f32,M5.acc=bf16?", 1, SINKPROOF_BF16},
                                     {"f32,M5.acc=bf16", 1, SINKPROOF_BF16}};
    measure_kernels(result, seed, kernels, 3);
}

void verify_tensor_core(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"bf16,M5.in=bf16,M5.acc=hopper", 0, SINKPROOF_TENSOR_CORE},
                                     {"bf16,M5.in=bf16,M5.acc=ampere", 0, SINKPROOF_TENSOR_CORE},
                                     {"f16,M5.in=f16,M5.acc=volta", 0, SINKPROOF_TENSOR_CORE}};
    measure_kernels(result, seed, kernels, 3);
}

void verify_parts(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.acc=ranks(2,bf16)?", 0, SINKPROOF_RANKS},
                                     {"f32,M5.acc=ranks(4,f16)?", 0, SINKPROOF_RANKS},
                                     {"f32,M5.acc=blocks(64,bf16)?", 0, SINKPROOF_BLOCKS}};
    measure_kernels(result, seed, kernels, 3);
}

// ---- near the bounds (verify_near.h)

// A weight of ones; its first block is scaled by 2^`first`, all others by 2^`rest`.
static void ones_scaled(size_t n, int first, int rest, scaled_row *w) {
    uint64_t seed = 0;
    draw_scaled(&seed, n, w);
    memset(w->codes, 0x22, n / 2); // 1 twice, four bits each
    for (size_t k = 0; k < n / SCALED; k++) w->scales[k] = (uint8_t)(127 + (k == 0 ? first : rest));
    sinkproof_matrix_row(&w->matrix, 0, w->w);
}

static void measure_near(verify_measure *result, const kernel *k, const scaled_row *w,
                         const double *x) {
    sinkproof_policy policy = policy_named(k->policy);
    double read[MOST];
    arb_ptr truth = _arb_vec_init(1);
    sinkproof_honest set = set_and_truth(&policy, w, x, read, truth);
    double y = run_kernel_sum(k, w, read);
    verify_add_set_values(result, truth, &set, &y, 1);
    _arb_vec_clear(truth, 1);
}

// bound.operands: 1, and in the later blocks ties of the format in which operands are read; their
// even neighbour is a power of two and half a step of the sum.
void verify_near_operands(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.in=bf16", 1, SINKPROOF_F32},
                                     {"f32,M5.in=f16", 1, SINKPROOF_F32}};
    static const double ties[] = {0x1.01p-14, 0x1.002p-14};
    for (int round = 0; round < 4; round++) {
        double x[MOST] = {1};
        scaled_row w;
        ones_scaled(SCALED * sinkproof_draw_from_to(&seed, MOST / SCALED - 4, MOST / SCALED), 0,
                    -10, &w);
        for (size_t c = SCALED; c < w.n; c++) x[c] = ties[round % 2];
        measure_near(result, &kernels[round % 2], &w, x);
    }
}

// bound.q8: the whole numbers 127 and 1 in each four that are added exactly, 2^7 steps of the
// scale; each four is a tie of the sum.
void verify_near_q8(verify_measure *result, uint64_t seed) {
    static const kernel k = {"f32,M5.in=q8_0", 4, SINKPROOF_F32};
    for (int round = 0; round < 4; round++) {
        double x[MOST] = {127 * 0x1p-7, 0x1p-7};
        scaled_row w;
        ones_scaled(SCALED * sinkproof_draw_from_to(&seed, MOST / SCALED - 4, MOST / SCALED), 0,
                    -24, &w);
        for (size_t c = SCALED; c < w.n; c += 4) x[c] = 127 * 0x1p-7, x[c + 1] = 0x1p-7;
        measure_near(result, &k, &w, x);
    }
}

// A number half way between two whole numbers of its block, read as the one that the reference does
// not read.
void verify_near_q8_ties(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,M5.in=q8_0");
    for (int round = 0; round < 8; round++) {
        double x[MOST] = {127 * 0x1p-7}, read[MOST], below;
        scaled_row w;
        ones_scaled(SCALED, 0, 0, &w);
        below = 0x1p-7 * (double)sinkproof_draw_from_to(&seed, 0, 125), x[1] = below + 0x1p-8;
        arb_ptr truth = _arb_vec_init(1);
        sinkproof_honest set = set_and_truth(&policy, &w, x, read, truth);
        double y = read[0] + (read[1] > x[1] ? below : below + 0x1p-7);
        verify_add_set_values(result, truth, &set, &y, 1);
        _arb_vec_clear(truth, 1);
    }
}

// bound.scaled: a number half way between two codes, read as the one that the reference does not
// read.
void verify_near_scaled(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,M5.in=e4m3(token)");
    for (int round = 0; round < 8; round++) {
        double x[MOST] = {448 * 0x1.8p-9}, read[MOST], below, step; // a scale of 0.75 2^-8
        scaled_row w;
        ones_scaled(SCALED, 0, 0, &w);
        below = (double)sinkproof_draw_from_to(&seed, 8, 15) * 16, step = 16; // codes from 128 on
        x[1] = (below + step / 2) * 0x1.8p-9;
        arb_ptr truth = _arb_vec_init(1);
        sinkproof_honest set = set_and_truth(&policy, &w, x, read, truth);
        double other = read[1] > x[1] ? below : below + step, y = read[0] + other * 0x1.8p-9;
        verify_add_set_values(result, truth, &set, &y, 1);
        _arb_vec_clear(truth, 1);
    }
}

// bound.accumulator: ties of the accumulator.
void verify_near_accumulator(verify_measure *result, uint64_t seed) {
    static const kernel kernels[] = {{"f32,M5.acc=f16?", 1, SINKPROOF_F16},
                                     {"f32,M5.acc=bf16?", 1, SINKPROOF_BF16}};
    static const double halves[] = {0x1p-11, 0x1p-8};
    static const size_t most[] = {4 * SCALED, SCALED};
    for (int round = 0; round < 4; round++) {
        double x[MOST];
        scaled_row w;
        int scale = (int)sinkproof_draw_from_to(&seed, 0, 4);
        ones_scaled(most[round % 2], -scale, -scale, &w);
        for (size_t c = 0; c < w.n; c++) x[c] = c == 0 ? 1 : halves[round % 2];
        measure_near(result, &kernels[round % 2], &w, x);
    }
}

// bound.tensor-core: 1, and numbers just below the last bit that a unit keeps beside 1. It cuts all
// of these numbers away.
void verify_near_tensor_core(verify_measure *result, uint64_t seed) {
    static const kernel k = {"f32,M5.acc=hopper", 0, SINKPROOF_TENSOR_CORE};
    for (int round = 0; round < 4; round++) {
        double x[MOST], lost = ldexp((double)sinkproof_draw_from_to(&seed, 120, 127), -32);
        scaled_row w;
        ones_scaled(SCALED, 0, 0, &w);
        for (size_t c = 0; c < w.n; c++) x[c] = c == 0 ? 1 : lost;
        measure_near(result, &k, &w, x);
    }
}

// bound.parts: two ranks whose parts are ties of bfloat16.
void verify_near_parts(verify_measure *result, uint64_t seed) {
    static const kernel k = {"f32,M5.acc=ranks(2,bf16)?", 0, SINKPROOF_RANKS};
    for (int round = 0; round < 4; round++) {
        double x[MOST] = {0}, more = ldexp((double)sinkproof_draw_from_to(&seed, 1, 8), -16);
        scaled_row w;
        ones_scaled(2 * SCALED, 0, 0, &w);
        for (size_t c = 0; c < w.n; c++)
            x[c] = c % SCALED == 0 ? 1 : c % SCALED == 1 ? 0x1p-8 + more : 0;
        measure_near(result, &k, &w, x);
    }
}
