// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the tests that write the sides of the identities a second time in long double:
// instances whose arrays continue with numbers that no side may read, outputs filled with a number
// that no side may leave, and the distance of a side's entries from the stated ones. A ball of 64
// bits and long double both round to 64 bits, so each has at most the error that the precision
// allows (identities.h), relative to A or to the stated entry: the bound is the sum of both.
#ifndef SINKPROOF_TESTS_SIDES_H
#define SINKPROOF_TESTS_SIDES_H

#include "proofs/bounds/worst.h"
#include "proofs/truth/identities.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;
typedef const sinkproof_ball_instance *instance;
typedef void (*formula)(real *out, instance m);

enum { SIDE_BITS = 64, MOST_KEYS = 12, MOST_ENTRIES = MOST_KEYS + 4, LEFT_OVER = 77 };

// For identity `which` (from 0) of an id, the formulas of its sides; NULL: not stated here.
typedef struct stated_sides {
    const char *id;
    int which;
    formula left, right;
} stated_sides;

static inline const sinkproof_identity *identity_of(const char *id, int which) {
    const sinkproof_identity *identity;
    for (size_t k = 0; (identity = sinkproof_identity_at(k)) != NULL; k++)
        if (strcmp(identity->id, id) == 0 && which-- == 0) return identity;
    return NULL;
}

static inline size_t entries_of(const sinkproof_identity *identity, instance m) {
    switch (identity->size) {
    case BALL_FOUR:
        return 4;
    case BALL_KEYS:
        return m->n + 1;
    case BALL_HEAD:
        return m->dim;
    case BALL_HIDDEN:
        return m->hidden;
    default:
        return 1;
    }
}

// ---- instances ----------------------------------------------------------------------------------

static double *longer(double *x, size_t n, size_t more, double guard) {
    x = realloc(x, (n + more) * sizeof *x);
    must(x != NULL);
    for (size_t k = n; k < n + more; k++) x[k] = guard;
    return x;
}

// Instance `number`: 1 ... 9 keys, heads of the shared draw, and its own sinks; large numbers
// follow the last head and key. Every third instance has small values, below one.
static inline sinkproof_ball_instance drawn(uint64_t seed, uint64_t number) {
    static const double sinks[] = {0.5, -1, 0, -INFINITY, 2, 3, 1.5};
    sinkproof_ball_ranges ranges = {1 + number % 9, 0, 6, 9};
    sinkproof_ball_instance m = sinkproof_ball_draw(ranges, seed, number);
    for (size_t h = 0; h < m.heads; h++) m.b_h[h] = sinks[(number + h) % 7];
    for (size_t h = m.heads; h < SINKPROOF_BALL_HEADS; h++) m.b_h[h] = 9;
    size_t values = m.kv_heads * m.n * m.dim;
    for (size_t k = 0; number % 3 == 2 && k < values; k++) m.x_gjd[k] /= 16;
    for (size_t d = 0; number % 3 == 2 && d < m.dim; d++) m.star_d[d] /= 16;
    m.s_hj = longer(m.s_hj, m.heads * m.n, m.n + 1, 40);
    m.x_gjd = longer(m.x_gjd, values, m.n * m.dim + 1, 0x1p20);
    m.k_jd = longer(m.k_jd, m.n * m.dim, m.dim, 0x1p20);
    return m;
}

static inline bool all_sinks_finite(instance m) {
    bool finite = true;
    for (size_t h = 0; h < m->heads; h++) finite = finite && isfinite(m->b_h[h]);
    return finite;
}

// ---- a row of attention -----------------------------------------------------------------------

// The shares w_j [n], and w_n of the sink, for scores z.
static inline void shares(real *w, const real *z, size_t n, real b) {
    real sum = expl(b);
    for (size_t j = 0; j < n; j++) sum += w[j] = expl(z[j]);
    for (size_t j = 0; j < n; j++) w[j] /= sum;
    w[n] = expl(b) / sum;
}

static inline void shares_of_head(real *w, instance m, size_t h, real b) {
    real z[MOST_KEYS + 1] = {0};
    for (size_t j = 0; j < m->n; j++) z[j] = m->s_hj[h * m->n + j];
    shares(w, z, m->n, b);
}

static inline real sum_of(const real *x, size_t n) {
    real sum = 0;
    for (size_t k = 0; k < n; k++) sum += x[k];
    return sum;
}

// sum_j w_j x_gjd
static inline real weighted(instance m, size_t g, const real *w, size_t d) {
    real sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += w[j] * m->x_gjd[(g * m->n + j) * m->dim + d];
    return sum;
}

// ---- the comparison -----------------------------------------------------------------------------

static void set_real(arb_t out, real x) { // two doubles: the first 106 bits
    arb_t low;
    arb_init(low);
    arb_set_d(out, (double)x);
    arb_set_d(low, (double)(x - (real)(double)x));
    arb_add(out, out, low, ARF_PREC_EXACT);
    arb_clear(low);
}

static double distance_of(const arb_t ball, real stated) {
    arb_t x;
    arb_init(x);
    set_real(x, stated);
    arf_sub(arb_midref(x), arb_midref(x), arb_midref(ball), ARF_PREC_EXACT, ARF_RND_DOWN);
    double far = fabs(arf_get_d(arb_midref(x), ARF_RND_UP));
    arb_clear(x);
    return far;
}

// The outputs, each filled with a number that no side may leave: LEFT_OVER + its index.
static arb_ptr filled(size_t n) {
    arb_ptr out = _arb_vec_init((slong)n);
    for (size_t k = 0; k < n; k++) arb_set_ui(out + k, LEFT_OVER + k);
    return out;
}

typedef struct compared {
    size_t entries, off; // off: farther than the bound
    double share;        // the largest distance / bound
} compared;

static void compare_side(compared *c, const sinkproof_identity *identity, ball_side_fn side,
                         formula stated, instance m) {
    size_t n = entries_of(identity, m);
    real own[MOST_ENTRIES] = {0};
    arb_ptr out = filled(n + 1);
    double size = identity_allowance_unit(identity, m);
    double allowed = exp2(identity_allowed_log2(identity, m, SIDE_BITS));
    stated(own, m);
    side(out, m, SIDE_BITS);
    for (size_t k = 0; k < n; k++) {
        double bound = 2 * allowed * fmax(size, fabs((double)own[k]));
        double share = distance_of(out + k, own[k]) / bound;
        bool in = share <= 1 && arb_is_finite(out + k);
        if (!in && c->off == 0)
            note("%s %s: instance %llu, entry %zu of %zu: %.17g for %.17Lg", identity->id,
                 side == identity->left ? "left" : "right", (unsigned long long)m->number, k, n,
                 arf_get_d(arb_midref(out + k), ARF_RND_NEAR), own[k]);
        c->off += !in;
        c->share = sinkproof_keep_worst(c->share, share);
        c->entries++;
    }
    c->off += arb_equal_si(out + n, LEFT_OVER + (slong)n) == 0;
    _arb_vec_clear(out, (slong)n + 1);
}

static inline void compare(compared *c, const stated_sides *s, instance m) {
    const sinkproof_identity *identity = identity_of(s->id, s->which);
    if (identity == NULL) {
        c->off++;
        return;
    }
    if ((identity->traits & FINITE) && !all_sinks_finite(m)) return;
    if (s->left != NULL) compare_side(c, identity, identity->left, s->left, m);
    if (s->right != NULL) compare_side(c, identity, identity->right, s->right, m);
}

// Every stated side on the first `count` instances of a seed.
static inline void report(const stated_sides *s, size_t cases, uint64_t seed, size_t count) {
    for (size_t k = 0; k < cases; k++) {
        compared c = {0};
        for (uint64_t number = 0; number < count; number++) {
            sinkproof_ball_instance m = drawn(seed, number);
            compare(&c, &s[k], &m);
            sinkproof_ball_clear(&m);
        }
        ok(c.entries > 0 && c.off == 0,
           "%s %d: both sides as stated entries=%zu off=%zu worst=%.3g bound=1 seed=%llu", s[k].id,
           s[k].which, c.entries, c.off, c.share, (unsigned long long)seed);
    }
}

#endif
