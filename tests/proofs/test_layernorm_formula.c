// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The set of LayerNorm (bound.layernorm), computed again in long double from the book's formula:
// every end, variance and bias of a row's set must be the stated one, up to the K roundings of its
// evaluation in binary64, gamma_K. Rows around zero show the mean's error alone; rows with exact
// sums show the terms for the evaluation's own roundings.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260123;
enum { MOST = 1404, DRAWS = 600 };
static const real UNIT = 0x1p-53L, SMALLEST = 0x1p-1021L; // below it numbers have no 53 bits

typedef struct row {
    size_t n;
    double eps, scale[MOST], shift[MOST];
    sinkproof_honest x[MOST];
} row;

// ---- the statement

typedef struct moments {
    real mean, off, gamma, under, tiny, lo, hi, root; // of 1 / sqrt(M / d + eps)
    real strained; // how many times larger what meets in the root's argument is than itself
    bool known;
} moments;

static real stated_gamma(size_t n, real u) {
    unsigned levels = 0; // the depth of a balanced tree of n leaves
    while ((size_t)1 << levels < n) levels++;
    size_t roundings = n + 4 * levels * levels + 160;
    return roundings * u > 1 / 256.0L ? INFINITY : roundings * u / (1 - roundings * u);
}

static void root_of(const sinkproof_setting *s, const row *r, real least, real most, real squares,
                    real sizes, real apart, moments *m) {
    real n = r->n, u = s->u, lost = 8 * n * n * m->under, fine = 0x1p-50L;
    real more = 2 * m->gamma * sqrtl(squares) + sqrtl(lost), low = fmaxl(sqrtl(least) - more, 0);
    real cross =
        m->gamma * (1 + m->gamma) * (squares + 3 * sizes * (fabsl(m->mean) + apart)) + lost;
    real down = fminl(low * low * (1 - m->gamma), least - cross) * (1 - fine);
    real high = sqrtl(most) + more;
    real up = fmaxl(high * high * (1 + m->gamma), most + cross) * (1 + fine);
    real four = gamma_of(4, u) + 4 * fine;
    real below = (down - fabsl(down) * four) / n + r->eps * (1 - four);
    real above = (up / n + r->eps) * (1 + four);
    // A deviation is rounded as its number and the mean are.
    real met = least + sqrtl(least * squares) + cross;
    m->strained = (met / n + r->eps) / below;
    m->known = below > 0 && most + squares <= sinkproof_format_largest(s->policy->inside);
    real declared = s->policy->ulp[SINKPROOF_RSQRT] * 2 * u, hi = (1 + fine) / sqrtl(below);
    m->lo = (1 - fine) / sqrtl(above) - declared * hi, m->hi = hi * (1 + declared);
}

static moments stated_moments(const sinkproof_setting *s, const row *r) {
    real n = r->n, here = gamma_of(2 * n + 8, UNIT), radii = 0, sizes = 0, squares = 0, sum = 0;
    moments m = {.gamma = stated_gamma(r->n, s->u)};
    m.tiny = s->policy->ftz ? 0x1p-126L : 0;
    m.under = fmaxl(sinkproof_format_underflow(s->policy->inside), m.tiny);
    for (size_t i = 0; i < r->n; i++) {
        real lo = r->x[i].lo, hi = r->x[i].hi, mid = r->x[i].mid, big = fmaxl(-lo, hi);
        sum += mid, radii += fmaxl(hi - mid, mid - lo), sizes += big, squares += big * big;
    }
    sizes += here * sizes, squares += here * squares;
    m.mean = sum / n;
    real apart = radii / n + here * radii / n + here * sizes / n, least = 0, most = 0, all = 0;
    m.off = apart + m.gamma * sizes / n + 4 * n * m.under;
    for (size_t i = 0; i < r->n; i++) {
        real lo = r->x[i].lo - m.mean - apart, hi = r->x[i].hi - m.mean + apart;
        real small = fmaxl(0, fmaxl(lo, -hi)), big = fmaxl(-lo, hi), mid = r->x[i].mid - m.mean;
        least += small * small, most += big * big, all += mid * mid;
    }
    m.root = 1 / sqrtl(all / n + r->eps);
    root_of(s, r, least * (1 - here), most * (1 + here), squares, sizes, apart, &m);
    return m;
}

typedef struct ends {
    real lo, hi, mid, bias, scale; // `scale`: of what its evaluation rounds
} ends;

// A number below the smallest normal one may be read as zero.
static void flush(real tiny, ends *x) {
    if (!(x->lo < tiny && x->hi > -tiny) || (x->lo == 0 && x->hi == 0)) return;
    x->lo = fminl(x->lo, 0), x->hi = fmaxl(x->hi, 0);
    x->bias += fabsl(x->mid) < tiny ? fabsl(x->mid) : 0;
}

static ends times(ends x, real a, real b) {
    real p[4] = {x.lo * a, x.lo * b, x.hi * a, x.hi * b};
    x.lo = fminl(fminl(p[0], p[1]), fminl(p[2], p[3]));
    x.hi = fmaxl(fmaxl(p[0], p[1]), fmaxl(p[2], p[3]));
    return x;
}

static ends wider(ends x, real by) {
    x.lo -= by, x.hi += by, x.bias += by;
    return x;
}

// (x - m) r, and six roundings of each of the two parts that may be written apart.
static ends stated_normed(const sinkproof_setting *s, const moments *m, const sinkproof_honest *x) {
    ends y = {x->lo, x->hi, x->mid, 0, 0};
    if (m->tiny > 0) flush(m->tiny, &y);
    real parts = fmaxl(-y.lo, y.hi) + fabsl(m->mean) + m->off;
    real lost = gamma_of(6, s->u) * parts + 6 * m->under;
    y.lo -= m->mean + m->off, y.hi -= m->mean - m->off;
    y = wider(times(y, m->lo, m->hi), lost * m->hi * (1 + 0x1p-50L));
    y.mid = (y.mid - m->mean) * m->root, y.bias = fmaxl(y.hi - y.mid, y.mid - y.lo);
    y.scale = (parts + lost) * m->hi * fmaxl(1, m->strained) + SMALLEST;
    return y;
}

// Times the scale, plus the shift; *lost what the two may lose.
static ends stated_shifted(const sinkproof_setting *s, const moments *m, ends y, real w, real b,
                           real *lost) {
    ends z = times(y, w, w);
    z.mid *= w, z.bias *= fabsl(w), z.scale = z.scale * fabsl(w) + fabsl(b);
    *lost = gamma_of(4, s->u) * (fmaxl(fabsl(z.lo), fabsl(z.hi)) + fabsl(b)) + 4 * m->under;
    if (m->tiny > 0) flush(m->tiny, &z);
    z.lo += b, z.hi += b, z.mid += b, z.scale += *lost;
    return wider(z, *lost);
}

// ---- rows

typedef struct told {
    distance d;
    size_t known, unknown, wrong;
} told;

// Every element of the row's set, to within k roundings.
static void compare(const sinkproof_setting *s, const row *r, real k, told *t) {
    static sinkproof_honest out[MOST];
    sinkproof_honest_layernorm(s, AT_A1, &(sinkproof_norm){r->n, r->scale, r->eps}, r->shift, r->x,
                               out);
    moments m = stated_moments(s, r);
    for (size_t i = 0; i < r->n; i++) {
        const sinkproof_honest *y = &out[i];
        if (!m.known || !isfinite((double)m.gamma)) {
            t->unknown++, t->wrong += !(y->lo == -INFINITY && y->hi == INFINITY);
            continue;
        }
        real lost;
        ends z = stated_normed(s, &m, &r->x[i]);
        z = stated_shifted(s, &m, z, r->scale[i], r->shift[i], &lost);
        near(&t->d, y->lo, z.lo, z.scale, k), near(&t->d, y->hi, z.hi, z.scale, k);
        near(&t->d, y->mid, z.mid, z.scale, k), near(&t->d, y->bias, z.bias, z.scale, k);
        real share = gamma_of(4, s->u) * z.scale + lost;
        near(&t->d, y->var, lost * lost, 2 * lost * share + SMALLEST, k);
        t->known++, t->wrong += y->likely_lo != y->lo || y->likely_hi != y->hi;
        t->wrong += y->spread != y->var || y->order != 0;
    }
}

static void tell(const told *t, const char *what) {
    report(&t->d, "bound.layernorm", what, SEED);
    ok(t->wrong == 0,
       "bound.layernorm %s: likely ends, and nothing known, worst=%zu bound=0 of=%zu", what,
       t->wrong, t->known + t->unknown);
}

// Of any size around any mean, known or sets; one set holds zero, some weights are zero.
static void draw_row(uint64_t *state, int i, row *r) {
    double mean = i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : -64, size = i % 4 == 3 ? 0x1p-70 : 1;
    r->n = 1 + draw_below(state, i % 5 == 0 ? 40 : 12);
    r->eps = (i % 7 ? 0.5 : i % 2 ? 0x1p-10 : 0) * size * size;
    for (size_t c = 0; c < r->n; c++) {
        double x = draw_dyadic(state) + mean;
        r->x[c] =
            i % 2 ? draw_set(state, c == 0 && i % 8 == 1 ? 0x1p-12 : x) : sinkproof_exact_set(x);
        sinkproof_honest *e = &r->x[c];
        e->lo *= size, e->hi *= size, e->mid *= size;
        e->likely_lo *= size, e->likely_hi *= size, e->bias *= size, e->var *= size * size;
        r->scale[c] = draw(state) % 8 ? draw_dyadic(state) : 0;
        r->shift[c] = draw(state) % 4 ? draw_dyadic(state) : 0;
        if (i % 16 == 15) r->scale[c] *= 0x1p-126;
        if (i % 8 == 7) r->shift[c] = 0;
    }
}

static void draws(void) {
    static row r;
    uint64_t state = SEED;
    told plain = {0}, flushed = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        draw_row(&state, i, &r);
        if (i % 4 == 3) policy.inside = SINKPROOF_F32;
        sinkproof_setting s = setting(&policy);
        compare(&s, &r, 4 * r.n + 60, &plain);
        policy.inside = SINKPROOF_F32, policy.ftz = true;
        compare(&s, &r, 4 * r.n + 60, &flushed);
    }
    tell(&plain, "rows of every kind"), tell(&flushed, "rows of every kind, flushed");
}

static void fill(row *r, size_t n, double even, double odd, double eps) {
    r->n = n, r->eps = eps;
    for (size_t c = 0; c < n; c++) {
        r->x[c] = sinkproof_exact_set(c % 2 ? odd : even);
        r->scale[c] = 1, r->shift[c] = 0;
    }
}

// Sums that are exact: pairs of +-a, and zeros, whose set is the mean's error. K does not grow
// with the row, and what the evaluation's own roundings are given grows with it.
static void exact_sums(void) {
    static row r;
    uint64_t state = SEED + 1;
    told t = {0};
    for (int i = 0; i < 200; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        if (i % 2) s.u = 0;
        r.n = (size_t)1 << (2 + i % 7), r.eps = i % 3 ? 1 : 0x1p-8;
        double wide = i % 5 == 0 ? 0 : i % 5 == 1 ? 2 : ldexp(1, -8 - i % 11);
        for (size_t c = 0; c < r.n; c++) {
            double a = c < 2 ? 0 : c % 2 ? -r.x[c - 1].mid : draw_dyadic(&state);
            r.x[c] = sinkproof_set_around(a, wide, wide, 0, 0);
            r.scale[c] = c % 4 == 0 ? 1 : draw_dyadic(&state), r.shift[c] = 0;
        }
        compare(&s, &r, 30, &t);
    }
    // Nothing but a mean: Q and S |m| are all that the root's argument may lack.
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    fill(&r, 1024, 1, 1, 0x1p-10), compare(&s, &r, 30, &t);
    for (size_t c = 0; c < r.n; c++) r.x[c] = sinkproof_set_around(0, 1, 1, 0, 0);
    compare(&s, &r, 30, &t);
    // Nothing at all, but what underflows.
    policy.inside = SINKPROOF_F32;
    for (size_t n = 1; n <= 64; n *= 2) {
        fill(&r, n, 0, 0, 1), compare(&s, &r, 30, &t);
        fill(&r, n, 0x1p-127, -0x1p-127, 1), compare(&s, &r, 30, &t);
        policy.ftz = !policy.ftz;
    }
    tell(&t, "exact sums");
}

// ---- single values

static sinkproof_honest first_of(const sinkproof_setting *s, const row *r) {
    static sinkproof_honest out[MOST];
    sinkproof_honest_layernorm(s, AT_A1, &(sinkproof_norm){r->n, r->scale, r->eps}, r->shift, r->x,
                               out);
    return out[0];
}

// Of 1404 numbers N is 2048: the last u with a bound is 2^-19.
static void thresholds(void) {
    static row r;
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    fill(&r, 1404, 1, -1, 1);
    s.u = 0x1p-19;
    bool last = isfinite(first_of(&s, &r).hi);
    s.u = 0x1.0000000000001p-19;
    bool next = first_of(&s, &r).hi == INFINITY;
    s.u = 0x1p-18;
    ok(last && next && first_of(&s, &r).hi == INFINITY, "bound.layernorm N u at 2^-8 and above it");
    // M + Q = 4 x^2, the largest number 2^128 (1 - 2^-24): x = 2^63 (1 - 2^-24), and 1 - 2^-26.
    policy.inside = SINKPROOF_F32, s.u = 0x1p-24;
    fill(&r, 2, 0x1.fffffep62, -0x1.fffffep62, 1);
    bool inside = isfinite(first_of(&s, &r).hi);
    fill(&r, 2, 0x1.ffffff8p62, -0x1.ffffff8p62, 1);
    ok(inside && first_of(&s, &r).hi == INFINITY, "bound.layernorm sums at the largest number");
    // A set without an end, and one that is no number.
    fill(&r, 4, 1, -1, 1);
    r.x[1].hi = r.x[1].likely_hi = INFINITY;
    sinkproof_honest open = first_of(&s, &r);
    ok(open.lo == -INFINITY && open.hi == INFINITY, "bound.layernorm an input without bounds");
}

// Rounded before the weight: two bfloat16 numbers, and four roundings of them.
static void rounded_before(void) {
    static row r;
    sinkproof_policy policy = real_policy("definition");
    policy.at[AT_A1_NORM] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false};
    sinkproof_setting s = setting(&policy);
    fill(&r, 4, 3, 1, 0.5); // (x - 2) / sqrt(1.5)
    sinkproof_honest y = first_of(&s, &r);
    double stated = sinkproof_round(SINKPROOF_BF16, 1 / sqrt(1.5));
    real lost = gamma_of(4, 0x1p-24L) * stated;
    distance d = {0};
    near(&d, y.mid, stated, stated, 1);
    near(&d, y.lo, stated - lost, stated, 4), near(&d, y.hi, stated + lost, stated, 4);
    report(&d, "bound.layernorm", "rounded before the weight", SEED);
}

// With u = 0 all that is left are a binary64 evaluation's own terms, whole units v = 2^-53 whose
// squares vanish: what the ends are can be told to the last unit.
static void whole_units(void) {
    static row r;
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    s.u = 0;
    // here = 16, mean off by 16; M / d to 1 + 48, + 8, + 32, r to 1 - 44, - 8. (1 - 16)(1 - 52),
    // and a unit outward at the mean and twice where next to nothing is lost.
    fill(&r, 4, 1, -1, 0);
    sinkproof_honest low = first_of(&s, &r);
    // epsilon is 8192, so that the end is below 1: M / d from 1 - 48, - 8, - 32, r to 1 - 4096
    // + 44, + 8. 1 + 16 becomes 1 + 18 at the mean, and a unit twice more.
    fill(&r, 4, 1, -1, 0x1p-40);
    sinkproof_honest high = first_of(&s, &r);
    // One zero: r to 1 + 16, + 8. 4 (1 + 24) of the mean, 6 (1 + 24 + 8) of the parts, 4 of the
    // sum.
    policy.inside = SINKPROOF_F32;
    fill(&r, 1, 0, 0, 1);
    sinkproof_honest zero = first_of(&s, &r);
    double v = 0x1p-53, scale = 0x1p150;
    ok(low.lo == 1 - 71 * v && high.hi == 1 - 4024 * v && zero.hi * scale == 14 + 288 * v,
       "bound.layernorm ends in whole units: %g of -71, %g of -4024, %g of 288", (low.lo - 1) / v,
       (high.hi - 1) / v, (zero.hi * scale - 14) / v);
}

int main(void) {
    whole_units();
    draws();
    exact_sums();
    thresholds();
    rounded_before();
    return tap_done();
}
