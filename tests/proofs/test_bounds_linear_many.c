// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// bound.linear where many long sums are computed at once: two of the three matrix products behind a
// set are then bounded in binary32.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

#include <math.h>

static const uint64_t SEED = 20251104;

// Many long sums at once: A and Q are made in binary32, from above. Each set must hold the one that
// is made by itself, in binary64, and be wider by no more than that arithmetic errs, also where
// rows and terms differ by a hundred octaves, where a factor is zero, and beside what is not
// finite.
static void many_sums_at_once(void) {
    enum { K = 300, ROWS = 65 };
    static double x[ROWS * K], w[ROWS * K];
    static sinkproof_honest x_set[ROWS * K], w_set[ROWS * K], out[ROWS * ROWS];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * ROWS, STANDARD_RATE);
    uint64_t state = SEED + 77;
    double worst = 0, most = 1 + 4 * sinkproof_gamma(K + 4, 0x1p-24) + K * 0x1p-25;
    size_t smaller = 0, wider = 0;
    for (size_t r = 0; r < ROWS; r++) {
        int octaves = (int)draw_below(&state, 50) - 25, apart = r % 3 == 0 ? 60 : 3;
        for (size_t k = 0; k < K; k++) {
            int here = (int)draw_below(&state, (uint64_t)apart);
            x[r * K + k] = ldexp(draw_from(&state, SINKPROOF_F32, 1), octaves - here);
            w[r * K + k] = ldexp(draw_from(&state, SINKPROOF_BF16, 1), here - octaves);
            if (r % 5 == 1 && k % 2 == 0) x[r * K + k] = 0;
            if (r % 5 == 2 && k % 2 == 1) w[r * K + k] = 0;
        }
    }
    for (size_t i = 0; i < ROWS * K; i++)
        x_set[i] = sinkproof_exact_set(x[i]), w_set[i] = sinkproof_exact_set(w[i]);
    sinkproof_planes many_x = sinkproof_planes_new(x_set, ROWS, K, K);
    sinkproof_planes many_w = sinkproof_planes_new(w_set, ROWS, K, K);
    must(sinkproof_honest_products(&s, &many_x, &many_w, NULL, NULL, out, ROWS));
    for (size_t i = 0; i < ROWS; i++) {
        sinkproof_planes one_x = sinkproof_planes_new(&x_set[i * K], 1, K, K);
        sinkproof_honest alone[ROWS];
        one_x.bits = many_x.bits; // the products are as long as among the others
        must(sinkproof_honest_products(&s, &one_x, &many_w, NULL, NULL, alone, ROWS));
        for (size_t j = 0; j < ROWS; j++) {
            const sinkproof_honest *a = &alone[j], *m = &out[i * ROWS + j];
            double slack = 0x1p-40 * sinkproof_radius(a); // the centres' own order of summation
            bool holds = m->lo <= a->lo + slack && m->hi >= a->hi - slack &&
                         m->likely_lo <= a->likely_lo + slack &&
                         m->likely_hi >= a->likely_hi - slack;
            double grown = sinkproof_radius(a) > 0 ? sinkproof_radius(m) / sinkproof_radius(a) : 1;
            smaller += !holds, wider += !(grown <= most + 0x1p-40);
            worst = sinkproof_keep_worst(worst, (grown - 1) / (most - 1));
        }
        sinkproof_planes_free(&one_x);
    }
    sinkproof_planes_free(&many_x), sinkproof_planes_free(&many_w);
    ok(smaller == 0 && wider == 0,
       "bound.linear many sums in binary32 from above: %d sets, %zu too small, %zu wider than that "
       "explains worst=%.3g bound=1 seed=%llu",
       ROWS * ROWS, smaller, wider, worst, (unsigned long long)(SEED + 77));
    x_set[3 * K] = sinkproof_exact_set(NAN);
    many_x = sinkproof_planes_new(x_set, ROWS, K, K);
    many_w = sinkproof_planes_new(w_set, ROWS, K, K);
    must(sinkproof_honest_products(&s, &many_x, &many_w, NULL, NULL, out, ROWS));
    sinkproof_planes_free(&many_x), sinkproof_planes_free(&many_w);
    size_t known = 0, finite = 0;
    for (size_t j = 0; j < ROWS; j++) {
        known += isfinite(out[3 * ROWS + j].lo) && isfinite(out[3 * ROWS + j].hi);
        finite += isfinite(out[4 * ROWS + j].lo) && isfinite(out[4 * ROWS + j].hi);
    }
    ok(known == 0 && finite == ROWS, "bound.linear a row that holds a NaN has no finite set, "
                                     "the others do");
}

int main(void) {
    many_sums_at_once();
    return tap_done();
}
