// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whole sums that round to a format of their own (bound.accumulator). A product's ends are those of
// all results that it can have. A row is summed step by step and block by block. A sum in any order
// counts each rescaling; where it may leave the format, its set is unbounded.
#include "proofs/bounds/running.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261125;
enum { ROWS = 3, COLS = 7, OTHERS = 2, STRIDE = 4, BESIDE = -77 };

// ---- one step

typedef struct results {
    size_t n;
    double x[16];
} results;

static void add_result(results *all, double x) {
    must(all->n < 16);
    all->x[all->n++] = x;
}

// Some number of the set is below the smallest normal one.
static bool reaches(double lo, double hi, double tiny) {
    return lo < tiny && -tiny < hi;
}

// The four products of ends, as they are or rounded inside, and then as the term is; and 0, where
// a factor or the product may be read as zero.
static number_span told_product(const sinkproof_policy *policy, sinkproof_rounding at,
                                number_span x, number_span y) {
    const double from[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
    double tiny = policy->ftz ? 0x1p-126 : 0;
    results all = {0};
    for (size_t k = 0; k < 8; k++) {
        double p = k < 4 ? from[k] : sinkproof_round(policy->inside, from[k - 4]);
        add_result(&all, sinkproof_round(at.format, p));
        if (at.optional) add_result(&all, p);
    }
    number_span told = {all.x[0], all.x[0], sinkproof_round(at.format, x.mid * y.mid)};
    for (size_t k = 0; k < all.n; k++) {
        told.lo = fmin(told.lo, all.x[k]);
        told.hi = fmax(told.hi, all.x[k]);
    }
    if (reaches(x.lo, x.hi, tiny) || reaches(y.lo, y.hi, tiny) || reaches(told.lo, told.hi, tiny))
        told.lo = fmin(told.lo, 0), told.hi = fmax(told.hi, 0);
    return told;
}

static bool same_span(number_span a, number_span b) {
    return a.lo == b.lo && a.hi == b.hi && a.mid == b.mid;
}

// Around the smallest normal number, on both sides of it and of zero, beside sets far from it.
static void products(const char *text, sinkproof_rounding at) {
    static const double tiny = 0x1p-126;
    static const double ends[][2] = {
        {0.5, 2},   {1, 1},    {0.5, 0.75}, {1, 2},   {0.25, 1},  {-2, -0.5},
        {-1, -0.5}, {-2, -1},  {-0.5, 0.5}, {-1, 2},  {0, 1},     {-0.75, -0.25},
        {-2, 0},    {-1, 0.5}, {1.25, 3},   {-3, -1}, {-0.75, 1},
    };
    enum { ENDS = sizeof ends / sizeof ends[0] };
    size_t off = 0, steps = 0;
    for (size_t k = 0; k < ENDS; k++)
        for (size_t o = 0; o < ENDS; o++)
            for (int sides = 0; sides < 3; sides++) { // x near zero, y, or neither
                double x_unit = sides == 0 ? tiny : 0x1.234p20;
                double y_unit = sides == 1 ? tiny : 0x1.456p20;
                number_span x = {ends[k][0] * x_unit, ends[k][1] * x_unit, 0},
                            y = {ends[o][0] * y_unit, ends[o][1] * y_unit, 0};
                x.mid = (x.lo + x.hi) / 2, y.mid = (y.lo + y.hi) / 2;
                for (int ftz = 0; ftz < 2; ftz++) {
                    sinkproof_policy policy = policy_named("f32");
                    policy.ftz = ftz == 1;
                    sinkproof_setting s = setting(&policy);
                    sinkproof_accumulator a = {.term = at, .acc = {.format = SINKPROOF_F16}};
                    number_span told = told_product(&policy, at, x, y);
                    off += !same_span(told, running_span_product(&s, &a, x, y));
                    a = (sinkproof_accumulator){.term = {.format = SINKPROOF_F16}, .acc = at};
                    off += !same_span(told, running_scaled(&s, &a, x, y));
                    steps += 2;
                }
            }
    ok(off == 0 && steps > 0, "bound.accumulator products, %s: worst=%zu bound=0 of %zu", text, off,
       steps);
}

// A finished sum: any of its numbers, none likelier; half its width is what it may deviate by, the
// whole what may lean one way. An infinite end leaves nothing.
static void finished(void) {
    size_t off = 0;
    for (int k = 0; k < 12; k++) {
        number_span sum = {ldexp(k - 9, -k), ldexp(2 * k + 1, k), k};
        sinkproof_honest set = running_sum_set(sum);
        double half = sum.hi / 2 - sum.lo / 2;
        off += !(set.lo == sum.lo && set.hi == sum.hi && set.mid == sum.mid);
        off += !(set.likely_lo == sum.lo && set.likely_hi == sum.hi);
        off += !(set.var == half * half && set.spread == half * half);
        off += !(set.bias == 2 * half && set.order == 0);
        for (int side = 0; side < 2; side++) {
            number_span open = sum;
            *(side == 0 ? &open.lo : &open.hi) = side == 0 ? -INFINITY : INFINITY;
            set = running_sum_set(open);
            off += !(set.lo == -INFINITY && set.hi == INFINITY);
        }
    }
    ok(off == 0, "bound.accumulator the set of a finished sum: worst=%zu bound=0", off);
}

// ---- a row in its order

// Rows of sets and one row more, which is not theirs: numbers so large that each would show.
static sinkproof_planes drawn_planes(uint64_t *state, size_t rows) {
    sinkproof_honest x[(ROWS + 1) * COLS];
    for (size_t k = 0; k < (rows + 1) * COLS; k++) {
        double mid = ldexp((double)draw_below(state, 1 << 12) - (1 << 11), -10);
        x[k] = draw_set(state, k < rows * COLS ? mid : 0x1p30);
    }
    sinkproof_planes p = sinkproof_planes_new(x, rows + 1, COLS, COLS);
    must(p.mid != NULL);
    return p;
}

static number_span around(const double *mid, const double *off, size_t k) {
    return (number_span){mid[k] - off[k], mid[k] + off[k], mid[k]};
}

static sinkproof_honest told_row(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                 const sinkproof_planes *x, size_t i, const sinkproof_planes *y,
                                 size_t r) {
    size_t block = a->together == 0 ? COLS : a->together;
    number_span sum = {0, 0, 0}, part = sum;
    for (size_t k = 0; k < COLS; k++) {
        number_span x_k = around(x->mid + i * COLS, x->worst + i * COLS, k),
                    y_k = around(y->mid + r * COLS, y->worst + r * COLS, k);
        if (k % block == 0) part = (number_span){0, 0, 0};
        part = running_plus(s, a, part, running_span_product(s, a, x_k, y_k));
        if (block >= COLS)
            sum = part;
        else if (k + 1 == COLS || (k + 1) % block == 0)
            sum = running_plus(s, a, sum, part);
    }
    return running_sum_set(sum);
}

static bool same_set(sinkproof_honest a, sinkproof_honest b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static const sinkproof_honest beside = {BESIDE, BESIDE, BESIDE, BESIDE, BESIDE, 0, 0, 0, 0};

// How many of out's entries are not as told; those beside the sums are as they were.
static size_t off_of(const sinkproof_honest *out, const sinkproof_honest *told) {
    size_t off = 0;
    for (size_t k = 0; k < (ROWS + 1) * STRIDE; k++) off += !same_set(out[k], told[k]);
    return off;
}

static void in_order(const char *text, sinkproof_format format, sinkproof_rounding acc,
                     sinkproof_rounding term) {
    uint64_t state = SEED;
    size_t off = 0, sums = 0;
    for (size_t together = 0; together <= COLS + 1; together++) {
        sinkproof_policy policy = policy_named("f32");
        policy.inside = format;
        sinkproof_setting s = setting(&policy);
        sinkproof_accumulator a = {.term = term, .acc = acc, .together = together};
        sinkproof_planes x = drawn_planes(&state, ROWS), y = drawn_planes(&state, OTHERS);
        sinkproof_planes x_i = sinkproof_planes_rows(&x, 0, ROWS),
                         y_r = sinkproof_planes_rows(&y, 0, OTHERS);
        sinkproof_honest out[(ROWS + 1) * STRIDE], told[(ROWS + 1) * STRIDE];
        for (size_t k = 0; k < (ROWS + 1) * STRIDE; k++) out[k] = told[k] = beside;
        for (size_t i = 0; i < ROWS; i++)
            for (size_t r = 0; r < OTHERS; r++)
                told[i * STRIDE + r] = told_row(&s, &a, &x, i, &y, r);
        must(sinkproof_honest_accumulated(&s, &a, &x_i, &y_r, NULL, true, out, STRIDE));
        off += off_of(out, told), sums += ROWS * OTHERS;
        sinkproof_planes_free(&x), sinkproof_planes_free(&y);
    }
    ok(off == 0, "bound.accumulator %s, blocks of 1 to %d: worst=%zu bound=0 of %zu sums", text,
       COLS + 1, off, sums);
}

// ---- any order, with rescalings

// The largest |y_rk| of the rows, with their freedom.
static double most_of(const sinkproof_planes *y) {
    double most = 0;
    for (size_t r = 0; r < y->rows; r++)
        for (size_t k = 0; k < y->cols; k++) {
            double size = y->mid[r * y->cols + k];
            size = (size < 0 ? -size : size) + (y->worst == NULL ? 0 : y->worst[r * y->cols + k]);
            if (size > most) most = size;
        }
    return most;
}

// A product's sum of n terms rounds at most 2 n times if it is rescaled, and passes through at most
// 2 n times the largest number. Else it is that of the narrower format, or nothing is narrower.
static size_t open_order(const sinkproof_setting *s, const sinkproof_accumulator *a,
                         const sinkproof_planes *x, const sinkproof_planes *y,
                         const double *terms_i, bool rescaled, size_t *unknown) {
    double u = a->acc.optional ? 0x1p-11 : 0; // float16
    bool narrower = u > s->u;
    sinkproof_policy policy = *s->policy;
    if (narrower) policy.inside = SINKPROOF_F16;
    sinkproof_setting own = {.policy = &policy, .u = s->u, .odds = s->odds};
    if (narrower) own.u = sinkproof_add_up(sinkproof_mul_up(u, 1 + s->u), s->u);
    bool twice = narrower && rescaled;
    double n_i[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        n_i[i] = terms_i == NULL ? COLS : terms_i[i];
        if (twice) n_i[i] += n_i[i];
    }
    sinkproof_honest out[(ROWS + 1) * STRIDE], told[(ROWS + 1) * STRIDE];
    for (size_t k = 0; k < (ROWS + 1) * STRIDE; k++) out[k] = told[k] = beside;
    must(sinkproof_honest_products(&own, x, y, n_i, NULL, told, STRIDE));
    for (size_t i = 0; twice && i < ROWS; i++) {
        if (n_i[i] * most_of(y) <= 65504) continue;
        for (size_t r = 0; r < y->rows; r++) {
            told[i * STRIDE + r] = (sinkproof_honest){.lo = -INFINITY, .hi = INFINITY};
            told[i * STRIDE + r].likely_lo = -INFINITY, told[i * STRIDE + r].likely_hi = INFINITY;
            told[i * STRIDE + r].bias = INFINITY;
            ++*unknown;
        }
    }
    must(sinkproof_honest_accumulated(s, a, x, y, terms_i, rescaled, out, STRIDE));
    return off_of(out, told);
}

// Planes whose largest number is at one place, of either sign, and is what it is to: 65504 / (2 n)
// of some row, or a little less or more, with or without freedom.
static void any_order(void) {
    static const double terms[ROWS] = {5, 2, 4};
    uint64_t state = SEED;
    size_t off = 0, sums = 0, unknown = 0;
    for (size_t place = 0; place < OTHERS * COLS; place++)
        for (int kind = 0; kind < 24; kind++) {
            int row = kind % 4, nudge = kind / 4 % 3 - 1;
            bool known = kind >= 12;
            sinkproof_planes x = drawn_planes(&state, ROWS);
            sinkproof_honest y_rk[(OTHERS + 1) * COLS];
            double n = row < ROWS ? terms[row] : COLS;
            double most = 65504 / (2 * n) + nudge * 0.125, radius = 0.25;
            for (size_t k = 0; k < (OTHERS + 1) * COLS; k++) {
                double size = k == place          ? most - (known ? 0 : radius)
                              : k < OTHERS * COLS ? 0.125
                                                  : 0x1p30;
                double mid = (k + (size_t)kind) % 2 == 0 ? size : -size;
                y_rk[k] = sinkproof_exact_set(mid);
                if (known) continue;
                y_rk[k].lo = mid - radius, y_rk[k].hi = mid + radius;
                y_rk[k].likely_lo = mid - radius / 8, y_rk[k].likely_hi = mid + radius / 8;
                y_rk[k].var = 0x1p-12;
            }
            sinkproof_planes y =
                sinkproof_planes_new(y_rk, known ? OTHERS : OTHERS + 1, COLS, COLS);
            must(y.mid != NULL);
            sinkproof_planes x_i = sinkproof_planes_rows(&x, 0, ROWS),
                             y_r = sinkproof_planes_rows(&y, 0, OTHERS);
            sinkproof_policy policy = policy_named("f32");
            sinkproof_setting s = setting(&policy);
            for (int narrow = 0; narrow < 2; narrow++)
                for (int rescaled = 0; rescaled < 2; rescaled++) {
                    sinkproof_accumulator a = {.acc = {.format = SINKPROOF_REAL}};
                    if (narrow == 1)
                        a.acc = (sinkproof_rounding){.format = SINKPROOF_F16, .optional = true};
                    off += open_order(&s, &a, &x_i, &y_r, row < ROWS ? terms : NULL, rescaled == 1,
                                      &unknown);
                    sums += ROWS * OTHERS;
                }
            sinkproof_planes_free(&x), sinkproof_planes_free(&y);
        }
    ok(off == 0 && unknown > 0 && unknown < sums,
       "bound.accumulator in any order, rescaled or not: worst=%zu bound=0 of %zu sums, %zu "
       "unknown",
       off, sums, unknown);
}

// Planes that there was no memory for.
static void no_memory(void) {
    uint64_t state = SEED;
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = setting(&policy);
    sinkproof_accumulator a = {.acc = {.format = SINKPROOF_BF16}};
    sinkproof_planes x = drawn_planes(&state, ROWS), none = x;
    sinkproof_honest out[(ROWS + 1) * STRIDE];
    none.mid = NULL;
    ok(!sinkproof_honest_accumulated(&s, &a, &none, &x, NULL, false, out, STRIDE) &&
           !sinkproof_honest_accumulated(&s, &a, &x, &none, NULL, false, out, STRIDE),
       "bound.accumulator planes without memory on either side are no sums");
    sinkproof_planes_free(&x);
}

int main(void) {
    products("not rounded", (sinkproof_rounding){.format = SINKPROOF_REAL, .optional = false});
    products("to float32", (sinkproof_rounding){.format = SINKPROOF_F32, .optional = false});
    products("to bfloat16", (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false});
    products("to bfloat16 or not",
             (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = true});
    finished();
    in_order("bfloat16", SINKPROOF_F32,
             (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false},
             (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false});
    in_order("bfloat16 of whole products", SINKPROOF_F32,
             (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false},
             (sinkproof_rounding){.format = SINKPROOF_REAL, .optional = false});
    in_order("float32 over bfloat16 inside", SINKPROOF_BF16,
             (sinkproof_rounding){.format = SINKPROOF_F32, .optional = false},
             (sinkproof_rounding){.format = SINKPROOF_F32, .optional = false});
    any_order();
    no_memory();
    return tap_done();
}
