// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The softmax of known logits, computed again from the formulas of its bounds
// (tests/shared/softmax_stated.h), in cases that show terms which are small elsewhere: errors of
// exp that grow with its argument, exponentials that are flushed, and the evaluation's own errors.
#include "tests/shared/softmax_stated.h"

static const uint64_t SEED = 20260412;

// ---- errors that grow, exponentials that are flushed --------------------------------------------

static row draw_row(uint64_t *state, int form, double reach) {
    row r = {.n = 1 + draw_below(state, 8), .u = 0x1p-24L, .odds = 30};
    r.base_2 = form == 1 || form == 5, r.running = form == 2 || form == 5;
    r.subtracted = form == 3, r.gated = form == 4;
    for (size_t j = 0; j < r.n; j++)
        r.z[j] = sinkproof_exact_set(-reach * (double)draw_below(state, 1024) / 1024);
    r.z[r.n] = sinkproof_exact_set(3 * reach);
    r.b = sinkproof_exact_set(-reach * (double)draw_below(state, 1024) / 2048);
    return r;
}

static void growing(void) {
    static const char *const ids[] = {"bound.exp-growing bound.form-base2 bound.exp",
                                      "bound.exp-growing bound.form-base2",
                                      "bound.exp-growing bound.exp bound.form-running-max",
                                      "bound.exp-growing bound.form-lse",
                                      "bound.exp-growing bound.form-lse",
                                      "bound.exp-growing bound.form-base2 bound.form-running-max"};
    for (int form = 0; form < 6; form++) {
        uint64_t state = SEED + (uint64_t)form;
        distance d = {0};
        for (int i = 0; i < 300; i++) {
            row r = draw_row(&state, form, i % 3 == 0 ? 4 : 100);
            r.narrow = i % 2;
            r.declared = i % 5 == 0 ? 0x1p-6L : 0x1p-20L, r.of_log = 0x1p-21L;
            const real grows[] = {0, 0x1p-30L, 0x1p-12L, 0x1p-11L};
            r.grows = grows[i % 4];
            r.odds = i % 7 ? 30 : 0.2;
            compare(&d, &d, &r, 60);
        }
        char what[80];
        snprintf(what, sizeof what, "every end, form %d", form);
        report(&d, ids[form], what, SEED);
    }
}

// ---- the edges ----------------------------------------------------------------------------------

// Arguments beyond 800, and errors about 1 of a gate, of LSE and of a rescaling.
static void limits(void) {
    distance gates = {0}, whole = {0}, scales = {0}, factors = {0};
    for (int i = 0; i < 40; i++) {
        row r = {.n = 1 + (size_t)(i % 3), .u = 0x1p-24L, .odds = 30, .gated = true};
        r.z[r.n] = sinkproof_exact_set(3);
        // 800 g below 1 and 900 g above it; then a gate that errs by 1 to 2, and by more.
        r.grows = i % 2 ? 0x1.36p-11L : 0x1p-10L * (1 + (real)(i / 8) / 32);
        r.b = sinkproof_exact_set(i % 2 ? -900 : -2);
        r.declared = 0x1p-20L;
        compare(&gates, &gates, &r, 120);
        r.gated = false, r.running = true, r.b = sinkproof_exact_set(-0.5);
        r.z[0] = sinkproof_exact_set(-400 - i);
        compare(&scales, &scales, &r, 4000); // a growth of up to 1/30: what is left of 1 - 800 b
        r.running = false, r.subtracted = true, r.b = sinkproof_exact_set(-1);
        r.z[0] = sinkproof_exact_set(0);
        compare(&whole, &whole, &r, 120);
        row error = {.n = 2, .u = 0x1p-24L, .odds = 30, .subtracted = i % 2, .gated = i % 2 == 0};
        error.b = sinkproof_exact_set(-1);
        error.declared = 0x1p-20L, error.of_log = (real)(1 + i) / 16; // LSE errs by 1/8 and more
        compare(&whole, &whole, &error, 120);
    }
    report(&gates, "bound.exp-growing bound.form-lse", "a gate's arguments beyond 800", SEED);
    report(&whole, "bound.form-lse", "errors of LSE about 1", SEED);
    report(&scales, "bound.exp bound.exp-growing bound.form-running-max", "errors above 1", SEED);
    // Without a roundoff an exponential far below errs by what grows alone, e^(argument growth).
    for (int i = 0; i < 64; i++) {
        row r = {.n = 1, .odds = 30, .u = 0x1p-80L};
        r.z[0] = sinkproof_exact_set(-700 + i), r.z[1] = sinkproof_exact_set(5);
        r.grows = 1270 * 0x1p-20L; // 1 - 800 b = 2^-5, exactly to a few units
        real before = fabsl(700 - (real)i);
        compare(&factors, &factors, &r, 16 + 5 * before * 0.039L);
    }
    report(&factors, "bound.exp-growing", "the growth, to its last factor", SEED);
}

// Rows without a roundoff: what the evaluation here adds is all there is.
static void evaluations(void) {
    distance d = {0}, rescaled = {0}, flushed = {0}, lifted = {0};
    for (size_t n = 0; n < MOST; n++)
        for (int form = 0; form < 4; form++) {
            row r = {.n = n, .u = 0, .odds = 30};
            r.running = form == 1, r.subtracted = form == 2, r.gated = form == 3;
            if (n == 0 && r.gated) continue;
            compare(&d, &d, &r,
                    (form == 3 ? 6 : 4) + (n > 4 ? (real)n : 0)); // sums of few are exact
        }
    report(&d, "bound.softmax-sink bound.form-lse bound.exp", "the evaluation's own errors", SEED);
    for (int i = 1; i < 16; i++) { // one rescaling whose error is i / 16
        row r = {.n = 1, .u = 0x1p-80L, .odds = 30, .running = true, .apart = true};
        r.declared = (real)i / 16;
        compare(&rescaled, &rescaled, &r, 8 + 4 * r.declared / (1 - r.declared));
    }
    row alone = {.n = 0, .u = 0x1p-24L, .odds = 30, .running = true, .declared = 0x1p-8L};
    compare(&rescaled, &rescaled, &alone, 12);
    report(&rescaled, "bound.form-running-max", "one rescaling, none", SEED);
    for (int i = 0; i < 64; i++) { // far below: what is flushed is all that is left
        row r = {.n = 2, .u = 0, .odds = 30, .narrow = true, .base_2 = true};
        r.z[1] = sinkproof_exact_set(-3000), r.z[2] = sinkproof_exact_set(9);
        r.b = sinkproof_exact_set(-1 - i);
        compare(&flushed, &flushed, &r, 6);
        row far = {.n = 2, .u = 0x1p-10L, .odds = 30, .narrow = true, .base_2 = true};
        far.z[0] = sinkproof_exact_set(40 + i), far.z[1] = r.z[1], far.z[2] = r.z[2];
        far.b = sinkproof_exact_set(30);
        compare(&lifted, &lifted, &far, 60);
    }
    report(&flushed, "bound.form-base2", "what is flushed", SEED);
    report(&lifted, "bound.form-base2", "what is flushed under a large maximum", SEED);
}

int main(void) {
    growing();
    limits();
    evaluations();
    return tap_done();
}
