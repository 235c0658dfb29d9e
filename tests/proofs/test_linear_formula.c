// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds of sums of products, computed again from their formulas (test_bound_formulas.c says
// how): of numbers and of sets; products that cancel, so that only the radius remains; integers
// times a scale; coarse accumulators; operands that are read as zero; sums that may overflow.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260413;
enum { ROWS = 2, OUT = 3, MOST = 32 };

typedef struct sum {
    size_t n;
    const sinkproof_honest *x, *y; // [n]
    real b, u, odds, tiny, under;  // tiny: read as zero below; under: what a rounding may lose
    bool biased, exact;
    real whole; // products in one term: 0 or 1, or more
    real said;  // as many terms as the caller says; 0: n
} sum;

static real away(const sinkproof_honest *x, bool likely) {
    return likely ? fmaxl((real)x->likely_hi - x->mid, (real)x->mid - x->likely_lo)
                  : fmaxl((real)x->hi - x->mid, (real)x->mid - x->lo);
}

static real lost(const sinkproof_honest *x, real tiny) {
    real nearest = fabsl((real)x->mid) - away(x, false);
    return nearest < tiny ? fminl(fabsl((real)x->mid) + away(x, false), tiny) : 0;
}

static void compare(distance *d, const sum *t, const sinkproof_honest *out, real k) {
    real mid = t->b, sizes = fabsl(t->b), square = t->b * t->b, worst = 0, likely = 0, var = 0;
    real bias = 0, gone = 0, terms = t->said > 0 ? t->said : t->n;
    real whole = t->whole > 1 ? t->whole : 1;
    for (size_t i = 0; i < t->n; i++) {
        const sinkproof_honest *x = &t->x[i], *y = &t->y[i];
        real a = fabsl((real)x->mid), c = fabsl((real)y->mid), dx = away(x, false),
             dy = away(y, false), lx = away(x, true), ly = away(y, true);
        mid += (real)x->mid * y->mid, sizes += a * c, square += whole * (a * c) * (a * c);
        worst += a * dy + dx * (c + dy), likely += a * ly + lx * (c + ly);
        var += a * a * y->var + x->var * (c * c + y->var);
        bias += a * y->bias + x->bias * (c + y->bias);
        gone += lost(x, t->tiny) * (c + dy) + (a + dx) * lost(y, t->tiny);
        if (t->tiny > 0) gone += lost(x, t->tiny) * lost(y, t->tiny);
    }
    worst += gone, likely += gone, sizes += worst;
    real n = ceill(terms / whole), rounds = t->whole > 1 ? 2 : t->exact ? 0 : 1;
    real g = gamma_of((n > 1 ? n - 1 : 0) + t->biased + rounds, t->u);
    real here = gamma_of(2 * terms + 8, 0x1p-53L);
    real steps = t->tiny > 0 || t->whole > 1 ? 2 + 2 * terms : terms + t->biased;
    real slack = (worst + sizes) * here + (sizes > 0 ? steps * t->under * (1 + g) : 0);
    real wide = g * sizes + 2 * here * g * sizes + worst + slack;
    real paths = (n + 1) * (2 * mid * mid + square) / 6 + rounds * square;
    if (t->biased) paths += mid * mid;
    real narrow = fminl(wide, t->u * sqrtl(2 * t->odds * paths) + likely + slack);
    bool leans = t->u > 0x1p-24L;
    if (sizes + wide > FLT_MAX) wide = narrow = INFINITY;
    if (leans) narrow = wide;
    real scale = fabsl(mid) > 0 ? fabsl(mid) * 4 + wide : wide; // a radius about 0 stands alone
    near(d, out->hi, mid + wide, scale, k), near(d, out->lo, mid - wide, scale, k);
    near(d, out->likely_hi, mid + narrow, scale, k);
    near(d, out->likely_lo, mid - narrow, scale, k);
    real v = t->u * t->u * paths / 3 + var + gone * gone;
    near(d, out->var, v, v, 4 * k);
    near(d, out->bias, leans ? wide : bias + gone, leans ? wide : bias + gone, k);
    real order = t->u * t->u / 3 * (n + 1) * (2 * mid * mid / 3 + 5 * square / 6) + 5 * var;
    if (t->whole <= 1 && !leans) near(d, out->order, order, order, 4 * k);
}

// Two rows of x against three of y. Products come in pairs that cancel, but for the last.
typedef struct draws {
    sinkproof_honest x[ROWS * MOST], y[OUT * MOST];
    double b[OUT];
} draws;

static sinkproof_honest freed(uint64_t *state, sinkproof_honest x, int freedom, double unit) {
    if (freedom == 0) return x;
    double wide = unit * (double)(1 + draw_below(state, 8)) / 16;
    sinkproof_honest set =
        sinkproof_set_around(x.mid, wide, wide / 4, wide * wide / 32, wide / 128);
    return set;
}

static void draw_rows(uint64_t *state, size_t n, int freedom, double unit, draws *w) {
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < n; i++) {
            double v = i % 2 ? -w->x[r * n + i - 1].mid : unit * draw_dyadic(state);
            w->x[r * n + i] = freed(state, sinkproof_exact_set(v), freedom & 1, unit);
        }
    for (size_t r = 0; r < OUT; r++) {
        w->b[r] = unit * draw_dyadic(state);
        for (size_t i = 0; i < n; i++) {
            double v = i % 2 ? w->y[r * n + i - 1].mid : draw_dyadic(state);
            w->y[r * n + i] = freed(state, sinkproof_exact_set(v), freedom >> 1, 1);
        }
    }
}

static void ask(distance *d, const sinkproof_policy *policy, sum t, const draws *w, real k) {
    sinkproof_setting s = {.policy = policy, .u = (double)t.u, .odds = (double)t.odds};
    sinkproof_honest out[ROWS * OUT];
    sinkproof_planes x = sinkproof_planes_new(w->x, ROWS, t.n, t.n),
                     y = sinkproof_planes_new(w->y, OUT, t.n, t.n);
    x.whole = (size_t)t.whole, x.scalings = 2;
    t.exact = x.bits + y.bits <= 24;
    const double said[ROWS] = {(double)t.said, (double)t.said};
    must(sinkproof_honest_products(&s, &x, &y, t.said > 0 ? said : NULL, t.biased ? w->b : NULL,
                                   out, OUT));
    sinkproof_planes_free(&x), sinkproof_planes_free(&y);
    for (size_t i = 0; i < ROWS * OUT; i++) {
        t.x = &w->x[i / OUT * t.n], t.y = &w->y[i % OUT * t.n];
        t.b = t.biased ? w->b[i % OUT] : 0;
        compare(d, &t, &out[i], k);
    }
}

static sinkproof_policy narrow_policy(bool ftz) {
    return policy_named(ftz ? "f32" : "f32,ftz=none");
}

// Numbers, long ones too, so small ones that exact products underflow, and sets, in any mixture.
static void any_products(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    for (int i = 0; i < 400; i++) {
        draws w;
        sinkproof_policy policy = narrow_policy(false);
        double size = i % 32 == 8 ? 0 : i % 16 == 0 ? 0x1p-140 : 1, fine = i % 8 == 4 ? 0x1p-30 : 0;
        sum t = {.n = 1 + draw_below(&state, 12), .u = 0x1p-24L, .odds = 30, .under = 0x1p-150L};
        t.said = (real)t.n + i % 3, t.biased = draw(&state) % 2;
        for (size_t k = 0; k < OUT * t.n; k++) {
            double a = size * (fabs(draw_dyadic(&state)) + fine), b = draw_dyadic(&state);
            w.y[k] = i % 4 >= 2 ? draw_set(&state, b) : sinkproof_exact_set(fabs(b) + fine);
            if (k < ROWS * t.n) w.x[k] = i % 2 ? draw_set(&state, a) : sinkproof_exact_set(a);
        }
        for (size_t r = 0; r < OUT; r++) w.b[r] = fabs(draw_dyadic(&state));
        ask(&d, &policy, t, &w, 4 * (real)t.n + 40);
    }
    report(&d, "bound.linear bound.value", "numbers and sets in any mixture", SEED + 1);
}

static void sums(void) {
    uint64_t state = SEED;
    distance alone = {0}, small = {0}, coarse = {0};
    for (int i = 0; i < 600; i++) {
        draws w;
        sinkproof_policy policy = narrow_policy(false), flushes = narrow_policy(true);
        size_t n = 1 + draw_below(&state, MOST);
        sum t = {.n = n, .u = 0x1p-24L, .odds = i % 4 ? 30 : 1, .under = 0x1p-150L};
        t.whole = i / 2 % 5, t.biased = i % 2;
        draw_rows(&state, n, i / 3 % 4, 1, &w);
        ask(&alone, &policy, t, &w, 14);
        sum c = t;
        c.u = 0x1p-9L;
        ask(&coarse, &policy, c, &w, 14);
        draw_rows(&state, n, i / 3 % 4, 0x1p-128, &w);
        ask(&small, &policy, t, &w, 14);
        t.tiny = t.under = 0x1p-126L;
        ask(&small, &flushes, t, &w, 14);
    }
    report(&alone, "bound.linear bound.value", "products that cancel", SEED);
    report(&coarse, "bound.linear", "coarse accumulators", SEED);
    report(&small, "bound.linear bound.ftz", "sums of small numbers", SEED);
}

// Factors in binary32 are bounded to 20 roundings of 2^-24.
// One product, of sets that reach below the smallest normal number or just not.
static void one_product(distance *d, sinkproof_honest x, sinkproof_honest y, bool factored) {
    sinkproof_policy policy = narrow_policy(true);
    sinkproof_setting s = {.policy = &policy, .u = 0x1p-24, .odds = 30};
    sinkproof_honest out;
    sinkproof_planes p = sinkproof_planes_new(&x, 1, 1, 1), q = sinkproof_planes_new(&y, 1, 1, 1);
    if (factored) {
        must(factors_allocate(1, 1, &p.f) && factors_fill_row(&p.f, 0, p.mid));
        must(factors_allocate(1, 1, &q.f) && factors_fill_row(&q.f, 0, q.mid));
    }
    sum t = {.n = 1, .x = &x, .y = &y, .u = 0x1p-24L, .odds = 30};
    t.tiny = t.under = 0x1p-126L, t.exact = p.bits + q.bits <= 24;
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &out, 1));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    compare(d, &t, &out, factored ? 0x1p34L : 16);
}

static void read_as_zero(void) {
    distance d = {0};
    const double tiny = 0x1p-126, mids[] = {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3};
    const double wide[] = {0, 0.25, 0.5, 1, 2};
    for (size_t m = 0; m < sizeof mids / sizeof *mids; m++)
        for (size_t w = 0; w < sizeof wide / sizeof *wide; w++) {
            double free = tiny * wide[w];
            sinkproof_honest x = sinkproof_set_around(tiny * mids[m], free, free / 16, 0, 0);
            one_product(&d, x, sinkproof_exact_set(2), false);
            one_product(&d, sinkproof_exact_set(-3), x, false);
            if (w == 0) one_product(&d, x, sinkproof_exact_set(2), true);
            if (w == 0) one_product(&d, sinkproof_exact_set(2), x, true);
        }
    report(&d, "bound.ftz bound.linear", "what is read as zero", SEED);
}

// A sum with its freedom beyond the format, which would be inside it with the likely one; no terms.
static void edges(void) {
    sinkproof_policy policy = narrow_policy(false);
    sinkproof_setting s = {.policy = &policy, .u = 0x1p-24, .odds = 30};
    sinkproof_honest one = sinkproof_exact_set(1), zero = sinkproof_exact_set(0), out;
    sinkproof_honest large = sinkproof_set_around(0x1p127, 0x1.3p126, 0x1p125, 0, 0);
    sinkproof_planes x = sinkproof_planes_new(&large, 1, 1, 1),
                     z = sinkproof_planes_new(&zero, 1, 1, 1);
    sinkproof_planes y = sinkproof_planes_new(&one, 1, 1, 1);
    must(sinkproof_honest_products(&s, &x, &y, NULL, NULL, &out, 1));
    ok(out.hi == INFINITY && out.lo == -INFINITY && out.likely_hi == INFINITY &&
           out.likely_lo == -INFINITY,
       "bound.linear bound.overflow a sum that may overflow has no ends");
    distance d = {0};
    real here = gamma_of(8, 0x1p-53L), once = gamma_of(1, 0x1p-24L);
    real radius = once * (1 + 2 * here) + here + 0x1p-150L * (1 + once); // of b alone
    must(sinkproof_honest_products(&s, &z, &y, (const double[]){0}, (const double[]){1}, &out, 1));
    near(&d, out.hi, 1 + radius, 1, 3), near(&d, out.lo, 1 - radius, 1, 3);
    report(&d, "bound.linear", "no terms but a constant", SEED);
    sinkproof_planes_free(&x), sinkproof_planes_free(&y), sinkproof_planes_free(&z);
}

int main(void) {
    any_products();
    sums();
    read_as_zero();
    edges();
    return tap_done();
}
