// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds of the softmax and its forms, computed again in long double from the book's formulas
// (tests/shared/softmax_stated.h; test_bound_formulas.c says how), for logits that are sets: base
// 2, a running maximum, weights from the log-sum-exp, and the gate. Also the renormalised weights
// of experts.
#include "tests/shared/softmax_stated.h"

static const uint64_t SEED = 20260214;
enum { SOME = 12, DRAWS = 400 };

// ---- the attention weights ----------------------------------------------------------------------

static const struct {
    row forms;
    const char *id, *text;
} cases[] = {
    {{.definition = true}, "bound.softmax-sink bound.exp", "definition"},
    {{.definition = true, .running = true}, "bound.softmax-sink bound.exp", "definition|running"},
    {{.base_2 = true}, "bound.form-base2", "base-2"},
    {{.running = true}, "bound.form-running-max", "running-max"},
    {{.base_2 = true, .running = true}, "bound.form-base2 bound.form-running-max", "both"},
    {{.subtracted = true}, "bound.form-lse", "lse-subtracted"},
    {{.subtracted = true, .base_2 = true}, "bound.form-lse", "lse-subtracted|base-2"},
    {{.gated = true}, "bound.form-lse", "lse-gated"},
    {{.definition = true, .base_2 = true, .running = true, .subtracted = true, .gated = true},
     "bound.form-lse",
     "any"},
};

static void weights(size_t c) {
    uint64_t state = SEED;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        row r = cases[c].forms;
        r.u = 0x1p-24L, r.declared = 4 * r.u, r.of_log = 6 * r.u, r.odds = i % 2 ? 30 : 0.2;
        r.n = draw_below(&state, SOME) + (!r.definition || r.gated), r.apart = true;
        double scale = i % 3 == 0 ? 40 : 2;
        for (size_t j = 0; j <= r.n; j++) r.z[j] = draw_set(&state, scale * draw_dyadic(&state));
        if (i % 4 == 0)
            for (size_t j = 0; j <= r.n; j++) r.z[j] = sinkproof_exact_set(r.z[j].mid);
        if (i % 5 == 0 && r.n > 0) r.z[r.n] = sinkproof_exact_set(-INFINITY);
        r.b = r.z[r.n];
        compare(&d, &d, &r, 12 * (real)r.n + 212);
    }
    char what[80];
    snprintf(what, sizeof what, "every end, %s", cases[c].text);
    report(&d, cases[c].id, what, SEED);
}

// The same where a quotient or a reciprocal has an error of its own, below two roundings and above.
static void divided_weights(void) {
    static const struct {
        double div, rcp;
    } ulps[] = {{2, 0}, {0, 1}, {2, 1}, {64, 1}, {0.75, 0}, {1, 4096}};
    uint64_t state = SEED + 2;
    distance d = {0};
    for (int i = 0; i < 3 * DRAWS; i++) {
        row r = cases[draw_below(&state, sizeof cases / sizeof *cases)].forms;
        r.u = 0x1p-24L, r.declared = 4 * r.u, r.of_log = 6 * r.u, r.odds = 30;
        r.divided = ulps[i % 6].div * 2 * r.u, r.inverse = ulps[i % 6].rcp * 2 * r.u;
        r.n = draw_below(&state, SOME) + (!r.definition || r.gated), r.apart = true;
        for (size_t j = 0; j <= r.n; j++) r.z[j] = draw_set(&state, 2 * draw_dyadic(&state));
        if (i % 4 == 0)
            for (size_t j = 0; j <= r.n; j++) r.z[j] = sinkproof_exact_set(r.z[j].mid);
        r.b = i % 5 == 0 && r.n > 0 ? sinkproof_exact_set(-INFINITY) : r.z[r.n];
        compare(&d, &d, &r, 12 * (real)r.n + 212);
    }
    report(&d, "bound.quotient bound.softmax-sink bound.form-lse", "every end, quotients declared",
           SEED);
}

// ---- experts' weights ---------------------------------------------------------------------------

// As the softmax over the chosen logits with exponentials that err by one quotient more.
static void renormalised(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    sinkproof_policy policy = real_policy("definition"), coarse = policy;
    policy.forms[SINKPROOF_FORM_OF_M4] = 1u << SINKPROOF_M4_ALL_RENORMALISED;
    coarse.forms[SINKPROOF_FORM_OF_M4] = 1;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_setting s = setting(&policy), t = setting(&coarse);
        sinkproof_honest g[SOME], z[4], w[4], stated[5];
        int32_t chosen[4];
        double common, other;
        real top = -INFINITY, best = -INFINITY, u = 0x1p-24L,
             declared = policy.ulp[SINKPROOF_EXP] * 2 * u;
        for (size_t e = 0; e < SOME; e++)
            g[e] = draw_set(&state, draw_dyadic(&state)), top = fmaxl(top, g[e].hi);
        for (size_t k = 0; k < 4; k++) {
            chosen[k] = (int32_t)(3 * k + draw_below(&state, 3)), z[k] = g[chosen[k]];
            best = fmaxl(best, z[k].lo);
        }
        policy.ulp[SINKPROOF_DIV] = coarse.ulp[SINKPROOF_DIV] = i % 2 ? 9 : 0.5;
        real more = u * (i % 2 ? 18 : 1) + u * fmaxl(top - best, 0);
        coarse.ulp[SINKPROOF_EXP] =
            (double)(policy.ulp[SINKPROOF_EXP] + more * (1 + declared) * (1 + more) / (2 * u));
        must(sinkproof_honest_expert_weights(&s, SOME, g, 4, chosen, w, &common));
        must(sinkproof_honest_softmax(&t, AT_M4, 4, z, sinkproof_exact_set(-INFINITY), stated,
                                      &other));
        for (size_t k = 0; k < 4; k++) {
            near(&d, w[k].lo, stated[k].lo, stated[k].lo, 8),
                near(&d, w[k].hi, stated[k].hi, stated[k].hi, 8);
            near(&d, w[k].likely_lo, stated[k].likely_lo, stated[k].likely_lo, 8);
            near(&d, w[k].likely_hi, stated[k].likely_hi, stated[k].likely_hi, 8);
            near(&d, w[k].mid, stated[k].mid, stated[k].mid, 8),
                near(&d, w[k].bias, stated[k].bias, stated[k].bias, 8);
        }
    }
    policy.ulp[SINKPROOF_DIV] = 0.5;
    report(&d, "bound.form-router bound.quotient", "every end", SEED);
    // Zero weights may be what a processor left of E times the smallest normal number.
    sinkproof_setting s = setting(&policy);
    sinkproof_honest g[3] = {sinkproof_exact_set(0), sinkproof_exact_set(-2000),
                             sinkproof_exact_set(-3000)},
                     w[2];
    double common;
    must(sinkproof_honest_expert_weights(&s, 3, g, 2, (const int32_t[]){0, 1}, w, &common));
    ok(w[1].mid == 0 && w[1].hi >= 3 * 0x1p-1022 && w[1].hi <= 5 * 0x1p-1022,
       "bound.form-router a probability that underflows: at most %g of 2^-1022, E = 3 worst=%g "
       "bound=5",
       w[1].hi / 0x1p-1022, w[1].hi / 0x1p-1022);
    policy.forms[SINKPROOF_FORM_OF_M4] = 3;
    distance both = {0};
    sinkproof_honest after[2], all[2], hull[2],
        h[3] = {draw_set(&state, 1), draw_set(&state, -1), draw_set(&state, 2)};
    const unsigned sets[3] = {1, 2, 3};
    sinkproof_honest *out[3] = {after, all, hull};
    for (int k = 0; k < 3; k++) {
        policy.forms[SINKPROOF_FORM_OF_M4] = sets[k];
        must(
            sinkproof_honest_expert_weights(&s, 3, h, 2, (const int32_t[]){2, 0}, out[k], &common));
    }
    for (int k = 0; k < 2; k++) {
        near(&both, hull[k].lo, fminl(after[k].lo, all[k].lo), 1, 1);
        near(&both, hull[k].hi, fmaxl(after[k].hi, all[k].hi), 1, 1);
    }
    report(&both, "bound.form-router", "the hull of both forms", SEED);
}

int main(void) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) weights(c);
    divided_weights();
    renormalised();
    return tap_done();
}
