// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Spread, computed again in long double from the book's formulas: what a row adds (the squares that
// remain after its best multiple is removed), the threshold (its equation solved by Newton's
// method), and the verdicts on the whole and on its quarters, up to the roundings of binary64.
// Cases: elements just at the largest square that is allowed, rows that hold nothing, parts that
// are equal.
#include "tests/shared/stated.h"

static const uint64_t SEED = 20261123;
enum { MOST = 12, DRAWS = 400, PARTS = SPREAD_QUARTERS };

// ---- a row -------------------------------------------------------------------------------------

typedef struct row {
    real squares, mean, bias, steps, most;
    real scale; // of the squares, before the multiple is taken out
} row;

static real reach_of(const sinkproof_honest *x) {
    return fmaxl((real)x->likely_hi - x->mid, (real)x->mid - x->likely_lo);
}

// The largest square that is asked is 1024 variances.
static bool asked(const sinkproof_honest *x, double v, bool shares) {
    real var = (real)x->spread + x->order, far = shares ? (real)x->bias : reach_of(x);
    return isfinite((double)var) && var > 0 && isfinite(v) && far * far <= 1024 * var;
}

static row row_of(size_t n, const double *v, const sinkproof_honest *x, bool shares) {
    row r = {0};
    real along = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        if (!asked(&x[i], v[i], shares)) continue;
        real var = (real)x[i].spread + x[i].order, c = x[i].mid;
        along += (v[i] - c) * c / var, size += c * c / var;
    }
    real multiple = shares && size > 0 ? along / size : 0;
    for (size_t i = 0; i < n; i++) {
        if (!asked(&x[i], v[i], shares)) continue;
        real var = (real)x[i].spread + x[i].order, d = (real)v[i] - x[i].mid;
        real ulp = sinkproof_ulp(SINKPROOF_F32, x[i].mid);
        r.squares += powl(d - multiple * x[i].mid, 2) / var, r.scale += d * d / var;
        r.mean++, r.bias += (real)x[i].bias * x[i].bias / var, r.steps += ulp * ulp / var;
        r.most = fmaxl(r.most, fminl(powl(reach_of(&x[i]), 2) / var, 1024));
    }
    return r;
}

// An element with an error of some deviations e; what is special in it is drawn.
static void draw_element(uint64_t *state, sinkproof_honest *x, double *v) {
    double e = ldexp(1 + draw_unit(state), 2 - (int)draw_below(state, 22)), c = draw_gauss(state);
    x[0] = sinkproof_set_around(c, 99 * e, (1.5 + (double)draw_below(state, 40)) * e, e * e, e / 4);
    x->order = draw_below(state, 3) == 0 ? e * e * draw_unit(state) : 0;
    *v = c + 3 * e * draw_gauss(state);
    switch (draw_below(state, 24)) {
    case 0:
        x->order = INFINITY;
        break; // a coarse format's steps
    case 1:
        *x = sinkproof_exact_set(c);
        *v = c;
        break; // nothing is free
    case 2:
        *v = INFINITY;
        break; // the sets see that
    case 3:
        *v = NAN;
        break;
    case 4:
        x->bias = 40 * e;
        break;
    case 5:
        *x = sinkproof_set_around(0, 9, 1, 1, 0);
        *v = draw_gauss(state);
        break;
    default:
        break;
    }
}

static void rows(void) {
    uint64_t state = SEED;
    distance d = {0};
    size_t below = 0, single = 0;
    for (int i = 0; i < 4 * DRAWS; i++) {
        bool shares = i % 2;
        size_t n = i % 5 == 0 ? 1 : draw_below(&state, MOST + 1);
        sinkproof_honest x[MOST + 1];
        double v[MOST + 1];
        for (size_t k = 0; k <= n; k++) draw_element(&state, &x[k], &v[k]);
        x[n] = sinkproof_set_around(1, 9, 2, 1, 0.5), v[n] = 3; // beyond the row
        const quarter_spread before = {3, 2, 0.25, 0.5, i % 3 ? 0 : 7};
        quarter_spread found = before, alone = {0};
        spread_add_row(&found, n, v, x, shares);
        spread_add_row(&alone, n, v, x, shares);
        row r = row_of(n, v, x, shares);
        real k = 4 * (real)n + 48;
        near(&d, found.sum, before.sum + r.squares, before.sum + r.scale, k);
        near(&d, alone.sum, r.squares, r.scale, k);
        near(&d, found.mean, before.mean + r.mean, 1, 0);
        near(&d, found.bias, before.bias + r.bias, before.bias + r.bias, k);
        near(&d, found.steps, before.steps + r.steps, before.steps + r.steps, k);
        near(&d, found.most, fmaxl(before.most, r.most), fmaxl(before.most, r.most), k);
        below += alone.sum < 0, single += shares && n == 1 && r.mean == 1;
    }
    report(&d, "stat.spread", "what a row adds", SEED);
    ok(below == 0 && single > DRAWS / 4,
       "stat.spread beside its best multiple one element leaves no square below 0 worst=%zu "
       "bound=0 "
       "of=%zu",
       below, single);
}

// 32 deviations are 1024 variances: an element there is asked, the next beyond it is not.
static void thresholds(void) {
    size_t wrong = 0;
    for (int i = 0; i < 8; i++) {
        bool shares = i & 1, beyond = i >> 1 & 1;
        double e = i >> 2 & 1 ? 0x1p-5 : 4, far = beyond ? 32 + 0x1p-30 : 32;
        sinkproof_honest x = sinkproof_set_around(1, 99 * e, shares ? 2 * e : far * e, e * e, 0);
        if (shares) x.bias = far * e;
        double v = 1 + e;
        quarter_spread s = {0};
        spread_add_row(&s, 1, &v, &x, shares);
        wrong += s.mean != !beyond;
        wrong += s.most != (beyond ? 0 : shares ? 4 : 1024);
        wrong += s.bias != (beyond || !shares ? 0 : 1024);
        wrong += s.sum != (beyond || shares ? 0 : 1);
    }
    // Where the row shares a factor, an element may be further away; its square counts as 1024.
    sinkproof_honest wide = sinkproof_set_around(1, 99, 64, 1, 0);
    quarter_spread s = {0};
    spread_add_row(&s, 1, &(double){2}, &wide, true);
    wrong += !(s.mean == 1 && s.most == 1024);
    // A row that is zero throughout has no multiple: its squares stay.
    sinkproof_honest zero[2] = {sinkproof_set_around(0, 9, 1, 1, 0),
                                sinkproof_set_around(0, 9, 1, 1, 0)};
    spread_add_row(&s, 2, (double[]){0.5, 1}, zero, true);
    wrong += !(s.sum == 1.25 && s.mean == 3);
    ok(wrong == 0, "stat.spread just at 1024 variances, and beyond worst=%zu bound=0", wrong);
}

// ---- the threshold -----------------------------------------------------------------------------

// r with r ln r - r + 1 = room: convex, so that each step but the first comes from above.
static real ratio_of(real room) {
    real r = 1 + sqrtl(2 * room) + room;
    for (int i = 0; i < 40 && room > 0; i++) r -= (r * logl(r) - r + 1 - room) / logl(r);
    return r;
}

// K roundings of the equation's terms, as r sees them through its slope.
static real seen_through(real r, real room) {
    return room > 0 ? r + (r * logl(r) + r + 1 + room) / logl(r) : r;
}

static void reaches(void) {
    distance d = {0};
    size_t below = 0;
    for (double room = 0x1p-16; room <= 0x1p20; room *= 1.7) {
        for (double mu = 0.5; mu <= 0x1p20; mu *= 32) {
            double most = 1 + mu / 64, odds = room * mu / most;
            double a = spread_reach(mu, most, odds);
            real asks = (real)most * odds / mu, r = ratio_of(asks);
            near(&d, a, r * mu, seen_through(r, asks) * mu, 10);
            below += a < mu;
        }
    }
    ok(below == 0 && spread_reach(3, 5, 0) == 3 && spread_reach(3, 0, 9) == 3,
       "stat.spread where nothing is asked of the odds the sum's mean is the threshold worst=%zu "
       "bound=0",
       below);
    report(&d, "stat.spread", "the threshold", SEED);
}

// ---- the whole and its quarters ----------------------------------------------------------------

typedef struct said {
    real mean, limit, noise, blur; // blur: roundings' scale of the limit, over it
    int part;
} said;

static said judged(const quarter_spread *quarter, real largest, real rate) {
    said s = {.limit = INFINITY, .noise = INFINITY, .part = -1};
    real worst = -1;
    for (int p = 0; p <= PARTS; p++) {
        real sum = 0, mean = 0, bias = 0, steps = 0, most = 0;
        for (int q = 0; q < PARTS; q++) {
            if (p > 0 && p != q + 1) continue;
            sum += quarter[q].sum, mean += quarter[q].mean, bias += quarter[q].bias;
            steps += quarter[q].steps, most = fmaxl(most, quarter[q].most);
        }
        if (mean == 0) continue;
        real room = most * largest * (logl(5) - logl(rate)) / mean, r = ratio_of(room);
        real limit = powl(sqrtl(r * mean) + sqrtl(bias), 2);
        if (p == 0 && steps > 0) s.noise = sqrtl(limit / steps);
        if (!(sum / limit > worst)) continue;
        worst = sum / limit, s.mean = sum / mean, s.limit = limit / mean, s.part = p;
        s.blur = fmaxl(s.blur, seen_through(r, room) / r);
    }
    return s;
}

static void parts(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    size_t other = 0, named[PARTS + 1] = {0};
    for (int i = 0; i < DRAWS; i++) {
        // One before the first and one behind the last: not theirs to read.
        quarter_spread held[PARTS + 2] = {{0}}, *quarter = held + 1;
        held[0] = held[PARTS + 1] = (quarter_spread){1e9, 3, 5, 7, 900};
        for (int q = 0; q < PARTS; q++) {
            if (draw_below(&state, 4) == 0) continue; // no row
            double mean = 1 + (double)draw_below(&state, 200);
            quarter[q] = (quarter_spread){ldexp((double)draw_below(&state, 4000), -3), mean,
                                          ldexp((double)draw_below(&state, 9), -i % 9),
                                          ldexp((double)draw_below(&state, 9), -i % 9),
                                          ldexp((double)draw_below(&state, 99), -4)};
        }
        double largest = 1 + (double)draw_below(&state, 5), rate = i % 2 ? 1e-9 : 0.25;
        sinkproof_spread_result r;
        spread_judge(quarter, largest, rate, &r);
        said s = judged(quarter, largest, rate);
        other += r.part != s.part;
        if (r.part != s.part || s.part < 0) continue;
        named[r.part]++;
        near(&d, r.mean, s.mean, s.mean, 1), near(&d, r.limit, s.limit, s.limit * s.blur, 32);
        near(&d, r.noise, s.noise, s.noise * s.blur, 32);
        other += isinf(r.noise) != isinf((double)s.noise);
    }
    report(&d, "stat.spread", "mean, limit and noise", SEED + 1);
    bool all = true;
    for (int p = 0; p <= PARTS; p++) all = all && named[p] > 0;
    ok(other == 0 && all, "stat.spread the worst part is named worst=%zu bound=0 of=%d", other,
       DRAWS);
}

static void edges(void) {
    quarter_spread none[PARTS] = {{0}};
    sinkproof_spread_result r;
    spread_judge(none, 1, 1e-9, &r);
    ok(r.mean == 0 && r.limit == INFINITY && r.part == -1 && r.noise == INFINITY,
       "stat.spread of nothing, nothing is said");
    // No error at all: the whole is named, with a mean of 0.
    none[2] = (quarter_spread){.mean = 4, .most = 2};
    spread_judge(none, 1, 1e-9, &r);
    ok(r.part == 0 && r.mean == 0 && isfinite(r.limit) && r.noise == INFINITY,
       "stat.spread without an error the whole is named");
    // One quarter holds all that the whole holds: the whole is named.
    none[2] = (quarter_spread){.sum = 64, .mean = 4, .most = 2, .steps = 0.5};
    spread_judge(none, 1, 1e-9, &r);
    ok(r.part == 0 && r.mean == 16 && isfinite(r.noise),
       "stat.spread of equal parts the first is named");
}

// ---- what drift hands over ---------------------------------------------------------------------

static bool same(const quarter_spread *a, const quarter_spread *b) {
    return a->sum == b->sum && a->mean == b->mean && a->bias == b->bias && a->steps == b->steps &&
           a->most == b->most;
}

static void handed_over(void) {
    uint64_t state = SEED + 2;
    size_t other = 0, free_rows = 0, rows = 0;
    sinkproof_drift drift = {0};
    quarter_spread by_hand[PARTS] = {{0}};
    for (int i = 0; i < 48; i++) {
        const double commons[] = {0, 0x1p-16, 1};
        double common = commons[i % 3], v[MOST];
        sinkproof_honest x[MOST];
        if (i >= 45) state = SEED + 3; // three rows that are alike
        for (size_t k = 0; k < MOST; k++) draw_element(&state, &x[k], &v[k]);
        sinkproof_drift_row(&drift, MOST, v, x, common, i / 48.0);
        spread_add_row(&by_hand[i / 12], MOST, v, x, common != 0);
    }
    for (int q = 0; q < PARTS; q++) {
        other += !same(&drift.spread[q], &by_hand[q]), rows++;
        free_rows += by_hand[q].mean > 0;
    }
    sinkproof_drift_result r;
    sinkproof_spread_result s;
    must(sinkproof_drift_judge(&drift, 1e-3, &r));
    spread_judge(by_hand, 3, 1e-3, &s);
    other += r.alike != 3 || r.spread.part != s.part || r.spread.mean != s.mean;
    other += r.spread.limit != s.limit || r.spread.noise != s.noise;
    sinkproof_drift_free(&drift);
    ok(other == 0 && free_rows == rows,
       "stat.drift stat.spread each row reaches its quarter's squares worst=%zu bound=0", other);
}

int main(void) {
    rows();
    thresholds();
    reaches();
    parts();
    edges();
    handed_over();
    return tap_done();
}
