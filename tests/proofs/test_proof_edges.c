// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Edge cases of the proofs' code: the range in which products are certified as exact; a norm that
// is rounded before its weight, which keeps its lean, and whose ends may be rounded once more; a
// choice of experts that writes no more than was asked for; a divisor that is never below one. 0.1
// CPU seconds.
#include "proofs/truth/exact_dot.h"
#include "proofs/truth/variants.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261123;

// ---- products at the ends of binary64's range ---------------------------------------------------

static void certified(void) {
    const struct {
        double a[2], b[2];
        bool exact;
        double value;
    } all[] = {
        {{0x1p-1074}, {1}, true, 0x1p-1074}, // the last bit is the last there is
        {{0x1p-1074}, {0.5}, false, 0},
        {{0x1p-537}, {0x1p-537}, true, 0x1p-1074},
        {{0x1p-537}, {0x1p-538}, false, 0},
        {{0x1p970}, {1}, true, 0x1p970}, // 2^53 of these are 2^1023
        {{0x1p971}, {1}, false, 0},
        {{0x1p485}, {0x1p485}, true, 0x1p970},
        {{0x1p486}, {0x1p485}, false, 0},
        {{3, INFINITY}, {1, 1}, false, 0},
        {{3, 1}, {1, -INFINITY}, false, 0},
        {{NAN, 3}, {0, 1}, false, 0},
        {{3, 5}, {7, NAN}, false, 0},
        {{0, 0x1p-1074}, {0x1p-1074, 0}, true, 0},
        {{0x1p52, 1}, {1, 1}, true, 0x1p52 + 1},
        {{0x1p53 - 1, 1}, {1, 1}, false, 0x1p53}, // 2^53 itself: not below
    };
    size_t wrong = 0, cases = sizeof all / sizeof *all;
    for (size_t k = 0; k < cases; k++) {
        double value = 77;
        bool exact = sinkproof_dot_certified(2, all[k].a, all[k].b, &value);
        if (exact == all[k].exact && value == all[k].value) continue;
        wrong++;
        note("case %zu: %d, %a", k, exact, value);
    }
    ok(wrong == 0, "bound.dot-exact %zu products at the ends of the range: worst=%zu bound=0",
       cases, wrong);
}

// ---- a norm that is rounded before its weight ---------------------------------------------------

enum { MOST = 256 };

static void leaning_rows(void) {
    uint64_t state = SEED;
    distance d = {0};
    size_t lean = 0;
    for (int i = 0; i < 40; i++) {
        double scale_c[MOST], common;
        sinkproof_honest x_c[MOST], once_c[MOST], twice_c[MOST];
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        size_t n = 150 + draw_below(&state, 100);
        for (size_t c = 0; c < n; c++) { // squares a quarter of a spacing above a multiple of it
            x_c[c] =
                sinkproof_exact_set((draw(&state) % 2 ? -1 : 1) * (1 + 0x1p-19 * (c % 3 != 0)));
            scale_c[c] = draw_dyadic(&state);
        }
        sinkproof_norm norm = {n, scale_c, 0.5};
        sinkproof_honest_rmsnorm(&s, AT_A1, &norm, x_c, once_c, &common);
        policy.at[AT_A1_NORM].format = SINKPROOF_F64;
        sinkproof_honest_rmsnorm(&s, AT_A1, &norm, x_c, twice_c, &common);
        for (size_t c = 0; c < n; c++) {
            lean += once_c[c].bias > 0;
            near(&d, twice_c[c].bias, once_c[c].bias, once_c[c].bias, 40);
        }
    }
    report(&d, "bound.norm-rounded", "what leans before the weight leans after it", SEED);
    ok(lean == d.compared, "bound.norm-rounded rows that lean: %zu of %zu", lean, d.compared);
}

static bool holds_rounded(const sinkproof_honest *x) {
    return x->lo <= (double)(float)x->lo && (double)(float)x->hi <= x->hi;
}

// Where arithmetic is float32 the last operation may round: an end, rounded, is inside.
static void ends_inside(void) {
    uint64_t state = SEED + 1;
    size_t norms = 0, mixtures = 0, compared = 0;
    for (int i = 0; i < 100; i++) {
        double scale_c[8], common;
        sinkproof_honest x_c[8], y_c[8], w_e[4], d_e[4];
        sinkproof_policy policy = real_policy("definition");
        policy.inside = SINKPROOF_F32;
        policy.at[AT_A1_NORM].format = SINKPROOF_F32;
        sinkproof_setting s = setting(&policy);
        for (size_t c = 0; c < 8; c++) {
            x_c[c] = draw_set(&state, draw_dyadic(&state));
            scale_c[c] = draw_dyadic(&state) * (1 + 0x1p-20);
        }
        sinkproof_norm norm = {8, scale_c, 0.5};
        sinkproof_honest_rmsnorm(&s, AT_A1, &norm, x_c, y_c, &common);
        for (size_t c = 0; c < 8; c++, compared++) norms += !holds_rounded(&y_c[c]);
        for (size_t e = 0; e < 4; e++) {
            w_e[e] = draw_set(&state, draw_unit(&state));
            d_e[e] = draw_set(&state, draw_dyadic(&state));
        }
        sinkproof_honest m = sinkproof_honest_mixture(&s, 4, w_e, d_e);
        mixtures += !holds_rounded(&m);
    }
    ok(norms == 0,
       "bound.norm-rounded sets without their ends rounded to float32 worst=%zu bound=0 of=%zu",
       norms, compared);
    ok(mixtures == 0, "moe.sum sets without their ends rounded to float32 worst=%zu bound=0 of=100",
       mixtures);
}

// ---- choices and divisors -----------------------------------------------------------------------

static void chosen(void) {
    enum { EXPERTS = 6 };
    uint64_t state = SEED + 2;
    size_t wrong = 0;
    arb_ptr logit_e = _arb_vec_init(EXPERTS);
    arb_t margin;
    arb_init(margin);
    for (int i = 0; i < 200; i++) {
        double x_e[EXPERTS];
        size_t chosen_k[EXPERTS + 1], k = 1 + draw_below(&state, EXPERTS);
        for (size_t e = 0; e < EXPERTS; e++) {
            x_e[e] = draw_dyadic(&state);
            arb_set_d(logit_e + e, x_e[e]);
        }
        for (size_t s = 0; s <= EXPERTS; s++) chosen_k[s] = 77;
        sinkproof_truth_topk(chosen_k, margin, logit_e, EXPERTS, k, 64);
        for (size_t s = 0; s <= EXPERTS; s++) {
            size_t before = 0, e = chosen_k[s];
            if (s >= k || e >= EXPERTS) {
                wrong += s < k || e != 77;
                continue;
            }
            for (size_t o = 0; o < EXPERTS; o++)
                before += x_e[o] > x_e[e] || (x_e[o] == x_e[e] && o < e);
            wrong += before != s;
        }
    }
    ok(wrong == 0,
       "router.topk the largest few, and nothing behind them: worst=%zu bound=0 seed=%llu", wrong,
       (unsigned long long)SEED);
    arb_clear(margin);
    _arb_vec_clear(logit_e, EXPERTS);
}

static void divided(void) {
    enum { KEYS = 5 };
    uint64_t state = SEED + 3;
    sinkproof_variant at_least = {.similarity = SINKPROOF_SIMILARITY_SCORE,
                                  .divisor = SINKPROOF_DIVISOR_AT_LEAST_1};
    arb_ptr s_j = _arb_vec_init(KEYS), alpha_j = _arb_vec_init(KEYS);
    distance d = {0};
    size_t below = 0;
    for (int i = 0; i < 200; i++) {
        real sum = 0;
        bool seen_j[KEYS];
        double x_j[KEYS];
        for (size_t j = 0; j < KEYS; j++) {
            seen_j[j] = j == 0 || draw(&state) % 3 > 0;
            x_j[j] = draw_dyadic(&state) / (i % 2 ? 1 : 32);
            arb_set_d(s_j + j, x_j[j]);
            if (seen_j[j]) sum += x_j[j];
        }
        sinkproof_truth_variant_weights(alpha_j, &at_least, KEYS, seen_j, s_j, 128);
        real z = fmaxl(fabsl(sum), 1);
        below += fabsl(sum) < 1;
        for (size_t j = 0; j < KEYS; j++)
            near(&d, arf_get_d(arb_midref(alpha_j + j), ARF_RND_NEAR), seen_j[j] ? x_j[j] / z : 0,
                 fabsl((real)x_j[j]) / z, 2);
    }
    report(&d, "norm.max-one kernel.identity-max kernel.mlp-max", "weights over max(|sum|, 1)",
           SEED);
    ok(below > 50 && below < 200, "norm.max-one kernel.mlp-max sums below one: %zu of 200", below);
    _arb_vec_clear(s_j, KEYS);
    _arb_vec_clear(alpha_j, KEYS);
}

int main(void) {
    certified();
    leaning_rows();
    ends_inside();
    chosen();
    divided();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
