// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks mixtures of experts whose slices lie on ranks (bound.parts-mixed): float32 ranks that mix
// what their slices give, round it to bfloat16 and are added, against the enclosed mixture, within
// the set of a policy that admits it or one rank that has all.
#include "audit/verify/verify_near.h"
#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"

enum { ROUNDS = 60, CHOSEN = 4, COLS = 64, RANKS = 4 };
static const double RATE = 1e-9;

// One element of the output: each expert's activations and weights, their last the bias.
typedef struct sliced_experts {
    size_t ranks;
    double w[CHOSEN], z[CHOSEN][COLS + 1], d[CHOSEN][COLS + 1];
} sliced_experts;

// The biases are the first rank's.
static double mix_on_ranks(const sliced_experts *x) {
    size_t each = COLS / x->ranks;
    float sum = 0;
    for (size_t r = 0; r < x->ranks; r++) {
        float mixed = 0;
        for (size_t e = 0; e < CHOSEN; e++) {
            float one = 0;
            for (size_t c = r * each; c < (r + 1) * each; c++)
                one += (float)(x->z[e][c] * x->d[e][c]);
            if (r == 0) one += (float)x->d[e][COLS];
            mixed += (float)x->w[e] * one;
        }
        sum += (float)sinkproof_round(SINKPROOF_BF16, (double)mixed);
    }
    return (double)sum;
}

// What the columns [first, first + n) of expert e give.
static sinkproof_honest slice_of(const sinkproof_setting *s, const sliced_experts *x, size_t e,
                                 size_t first, size_t n) {
    sinkproof_honest z_c[COLS], sum;
    sinkproof_matrix down = {.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = COLS};
    down.data = (const uint8_t *)x->d[e], down.col_stride = 1;
    down.row_stride = down.stack_stride = COLS;
    for (size_t c = 0; c < COLS; c++) z_c[c] = sinkproof_exact_set(x->z[e][c]);
    sinkproof_planes planes = sinkproof_planes_new(z_c, 1, COLS, COLS);
    const sinkproof_accumulator plain = {.together = 0};
    must(sinkproof_honest_slice(s, &plain, &planes, &(sinkproof_weight_rows){&down, 0, 1, NULL},
                                first, n, &sum));
    sinkproof_planes_free(&planes);
    return sum;
}

static sinkproof_honest set_of_mixture(const sliced_experts *x) {
    char text[64];
    snprintf(text, sizeof text, "f32,M10=real,M11=real,M11.part=ranks(%zu,bf16)?", x->ranks);
    sinkproof_policy policy = policy_named(text);
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    sinkproof_honest w[CHOSEN], whole[CHOSEN], d[RANKS * CHOSEN];
    size_t each = COLS / x->ranks;
    for (size_t e = 0; e < CHOSEN; e++) {
        double b = x->d[e][COLS];
        w[e] = sinkproof_exact_set(x->w[e]);
        whole[e] = sinkproof_honest_slice_output(&s, COLS, slice_of(&s, x, e, 0, COLS), b);
        for (size_t r = 0; r < x->ranks; r++)
            d[r * CHOSEN + e] = sinkproof_honest_slice_output(
                &s, each, slice_of(&s, x, e, r * each, each), r == 0 ? b : 0);
    }
    return sinkproof_honest_mixed_parts(&s, x->ranks, CHOSEN, w, d,
                                        sinkproof_honest_mixture(&s, CHOSEN, w, whole));
}

static void compare_mixture(verify_measure *result, const sliced_experts *x) {
    sinkproof_honest set = set_of_mixture(x);
    double y = mix_on_ranks(x);
    arb_ptr w = balls_from_doubles(x->w, CHOSEN), d = _arb_vec_init(CHOSEN);
    arb_ptr truth = _arb_vec_init(1);
    for (size_t e = 0; e < CHOSEN; e++) {
        arb_ptr a = balls_from_doubles(x->z[e], COLS + 1),
                b = balls_from_doubles(x->d[e], COLS + 1);
        sinkproof_truth_values(d + e, a, b, COLS + 1, 1, 1, VERIFY_BITS);
        _arb_vec_clear(a, COLS + 1), _arb_vec_clear(b, COLS + 1);
    }
    sinkproof_truth_mixture(truth, w, d, CHOSEN, 1, VERIFY_BITS);
    verify_add_set_values(result, truth, &set, &y, 1);
    _arb_vec_clear(w, CHOSEN), _arb_vec_clear(d, CHOSEN), _arb_vec_clear(truth, 1);
}

void verify_parts_mixed(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        sliced_experts x = {.ranks = round % 2 == 0 ? 2 : RANKS};
        for (size_t e = 0; e < CHOSEN; e++) {
            x.w[e] = (float)between(&seed, 0, 1);
            for (size_t c = 0; c < COLS; c++) {
                x.z[e][c] = (float)between(&seed, -1, 1), x.d[e][c] = (float)between(&seed, -1, 1);
            }
            x.z[e][COLS] = 1, x.d[e][COLS] = (float)between(&seed, -1, 1);
        }
        compare_mixture(result, &x);
    }
}

// Two ranks whose mixtures are just above ties of bfloat16.
void verify_near_parts_mixed(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        sliced_experts x = {.ranks = 2};
        double more = ldexp((double)sinkproof_draw_from_to(&seed, 1, 8), -16);
        for (size_t e = 0; e < CHOSEN; e++) {
            x.w[e] = 0.25, x.z[e][COLS] = 1;
            x.z[e][0] = x.z[e][COLS / 2] = 1 + 0x1p-8 + more;
            x.d[e][0] = x.d[e][COLS / 2] = 1;
        }
        compare_mixture(result, &x);
    }
}
