// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Planes of honest sets, computed again: each entry is that of its own element, at every shape and
// stride and between neighbours that are not asked for. Sets of one number have the first plane
// alone, and the most significant bits of any element. 8 rows or more of 256 such sets have
// factors, unless a number is too large for them. Freed planes are empty. No sum rounds here. 0.03
// CPU seconds.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261201;
static const char IDS[] = "sink.key-bias bound.linear";
enum { MOST = 5, GAP = 2, BESIDE = 40, ALL = 2 * BESIDE + MOST * (MOST + GAP) };
enum { LONG = 256, MANY = 8, ROOM = (MANY + 1) * (LONG + 1) };

// mid - a ... mid + b, all multiples of 2^-32 below 8: nothing is rounded.
static sinkproof_honest open_set(uint64_t *state) {
    double mid = draw_dyadic(state), lo = ldexp((double)(1 + draw_below(state, 1 << 20)), -30),
           hi = ldexp((double)(1 + draw_below(state, 1 << 20)), -30);
    sinkproof_honest x = {mid - lo, mid + hi, mid - lo / 4, mid + hi / 2, mid, 0, 0, 0, 0};
    x.var = lo * lo / 8, x.bias = hi / 64;
    return x;
}

static real farther(real a, real b) {
    return a > b ? a : b;
}

typedef struct wrongs {
    size_t asked, shape, mid, freedom, bits, factors;
} wrongs;

static void told(const wrongs *w, const char *what) {
    ok(w->asked > 0 && w->shape == 0 && w->mid == 0, "%s %s: centres worst=%zu bound=0 of=%zu", IDS,
       what, w->shape + w->mid, w->asked);
    ok(w->freedom == 0, "%s %s: what is open worst=%zu bound=0", IDS, what, w->freedom);
    ok(w->bits == 0, "%s %s: significant bits worst=%zu bound=0", IDS, what, w->bits);
    ok(w->factors == 0, "%s %s: factors worst=%zu bound=0", IDS, what, w->factors);
}

// From the first to the last one of a normal number.
static int bits_of(double x) {
    int exponent, bits = 1;
    for (double m = 2 * fabs(frexp(x, &exponent)); m != floor(m); m *= 2) bits++;
    return bits;
}

static bool has_freedom(const sinkproof_planes *p) {
    return p->worst != NULL && p->likely != NULL && p->var != NULL && p->bias != NULL;
}

static size_t freedom_of(const sinkproof_planes *p, size_t at, const sinkproof_honest *e) {
    real worst = farther((real)e->hi - e->mid, (real)e->mid - e->lo);
    real likely = farther((real)e->likely_hi - e->mid, (real)e->mid - e->likely_lo);
    size_t wrong = (real)p->worst[at] != worst;
    wrong += (real)p->likely[at] != likely;
    return wrong + !(p->var[at] == e->var) + !(p->bias[at] == e->bias);
}

// Powers of two above the largest size of each row, and the least size that is not 0: every part
// is exact in binary32, and grows by 2^-22.
static size_t factors_of(const sinkproof_planes *p, const sinkproof_honest *x, size_t stride) {
    size_t wrong = p->f.rows != p->rows || p->f.cols != p->cols;
    double least = INFINITY;
    for (size_t r = 0; r < p->rows; r++) {
        double scale = 0x1p-20;
        for (size_t k = 0; k < p->cols; k++) {
            double size = fabs(x[r * stride + k].lo);
            while (scale <= size) scale *= 2;
            if (size > 0 && size < least) least = size;
        }
        wrong += !(p->f.scale[r] == scale);
        for (size_t k = 0; k < p->cols; k++) {
            float part = (float)(fabs(x[r * stride + k].lo) / scale), up = 1 + 0x1p-22f;
            wrong += !(p->f.size[r * p->cols + k] == part * up);
            wrong += !(p->f.square[r * p->cols + k] == part * part * up);
        }
    }
    return wrong + !(p->f.least == least);
}

static void meet_planes(wrongs *w, const sinkproof_honest *x, size_t rows, size_t cols,
                        size_t stride) {
    bool known = true, small = true;
    int bits = 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < cols; k++) {
            const sinkproof_honest *e = &x[r * stride + k];
            known = known && e->lo == e->hi;
            small = small && fabs(e->mid) < 0x1p400;
            bits = bits_of(e->mid) > bits ? bits_of(e->mid) : bits;
        }
    sinkproof_planes p = sinkproof_planes_new(x, rows, cols, stride);
    w->asked++;
    bool shaped = p.mid != NULL && p.rows == rows && p.cols == cols && p.known == known;
    w->shape += !shaped || p.whole != 0;
    if (!shaped) {
        sinkproof_planes_free(&p);
        return;
    }
    w->bits += p.bits != (known ? bits : 53);
    bool none = p.worst == NULL && p.likely == NULL && p.var == NULL && p.bias == NULL;
    w->freedom += known ? !none : !has_freedom(&p);
    bool factored = known && small && rows >= MANY && cols >= LONG;
    w->factors += factored != (p.f.size != NULL) || factored != (p.f.square != NULL) ||
                  factored != (p.f.scale != NULL);
    if (factored && p.f.size != NULL) w->factors += factors_of(&p, x, stride) != 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < cols; k++) {
            const sinkproof_honest *e = &x[r * stride + k];
            w->mid += !(p.mid[r * cols + k] == e->mid);
            if (!known && has_freedom(&p)) w->freedom += freedom_of(&p, r * cols + k, e);
        }
    sinkproof_planes_free(&p);
}

// All elements open; none, between neighbours that are; one in each place.
static void shapes(void) {
    uint64_t state = SEED;
    wrongs open = {0}, none = {0}, one = {0};
    static sinkproof_honest all[ALL];
    sinkproof_honest *x = &all[BESIDE];
    for (size_t rows = 0; rows <= MOST; rows++)
        for (size_t cols = rows > 0; cols <= MOST; cols++)
            for (size_t stride = cols; stride <= cols + GAP; stride++) {
                for (size_t i = 0; i < ALL; i++) all[i] = open_set(&state);
                meet_planes(&open, x, rows, cols, stride);
                for (size_t r = 0; r < rows; r++)
                    for (size_t k = 0; k < cols; k++)
                        x[r * stride + k] = sinkproof_exact_set(draw_dyadic(&state));
                meet_planes(&none, x, rows, cols, stride);
                for (size_t r = 0; r < rows; r++)
                    for (size_t k = 0; k < cols; k++) {
                        sinkproof_honest *e = &x[r * stride + k], before = *e;
                        *e = open_set(&state);
                        meet_planes(&one, x, rows, cols, stride);
                        *e = before;
                    }
            }
    told(&open, "open sets");
    told(&none, "sets of one number");
    told(&one, "sets of one number but one");
}

static double number_of(uint64_t *state, int bits) { // bits: from its first to its last one
    uint64_t first = UINT64_C(1) << (bits - 1), m = first | (draw(state) & (first - 1)) | 1;
    double x = ldexp((double)m, (int)draw_below(state, 200) - 100);
    return draw(state) % 2 ? -x : x;
}

// One number of each length in each place, among powers of two, zeros and shorter numbers.
static void significands(void) {
    uint64_t state = SEED + 1;
    wrongs w = {0};
    sinkproof_honest x[MOST * MOST];
    for (int bits = 1; bits <= 53; bits++)
        for (size_t rows = 1; rows <= MOST; rows += 2)
            for (size_t cols = 1; cols <= MOST; cols++)
                for (size_t at = 0; at < rows * cols; at++) {
                    for (size_t i = 0; i < rows * cols; i++) {
                        int shorter = at % 2 ? 1 : 1 + (int)draw_below(&state, (size_t)bits);
                        bool zero = draw(&state) % 8 == 0;
                        x[i] = sinkproof_exact_set(zero ? 0 : number_of(&state, shorter));
                    }
                    x[at] = sinkproof_exact_set(number_of(&state, bits));
                    meet_planes(&w, x, rows, cols, cols);
                }
    told(&w, "numbers of any length");
}

// About the shape from which on rows have factors; one number that has none, in each row.
static void long_rows(void) {
    uint64_t state = SEED + 2;
    wrongs known = {0}, open = {0}, none = {0};
    static sinkproof_honest x[ROOM];
    for (size_t rows = MANY - 1; rows <= MANY + 1; rows++)
        for (size_t cols = LONG - 1; cols <= LONG + 1; cols++) {
            for (size_t i = 0; i < ROOM; i++) x[i] = sinkproof_exact_set(draw_dyadic(&state));
            for (size_t r = 0; r < rows; r++) // rows of other scales
                for (size_t k = 0; k < cols; k++)
                    x[r * cols + k] =
                        sinkproof_exact_set(ldexp(draw_dyadic(&state), (int)(r * 5 % 7)));
            x[draw_below(&state, rows) * cols + 3] = sinkproof_exact_set(0x1p-9); // the least
            x[cols + 4] = sinkproof_exact_set(0);
            meet_planes(&known, x, rows, cols, cols);
            for (size_t r = 0; r < rows; r++) {
                sinkproof_honest *e = &x[r * cols + draw_below(&state, cols)], before = *e;
                *e = sinkproof_exact_set(r % 2 ? 0x1p400 : -0x1p400);
                meet_planes(&none, x, rows, cols, cols);
                *e = before;
            }
            x[draw_below(&state, rows * cols)] = open_set(&state);
            meet_planes(&open, x, rows, cols, cols);
        }
    told(&known, "long rows");
    told(&open, "long rows with one open set");
    told(&none, "long rows with a number that has no factor");
}

static size_t held_by(const sinkproof_planes *p) {
    size_t planes = (p->mid != NULL) + (p->worst != NULL) + (p->likely != NULL) + (p->var != NULL) +
                    (p->bias != NULL);
    size_t factors = (p->f.size != NULL) + (p->f.square != NULL) + (p->f.scale != NULL);
    return planes + factors + p->rows + p->cols + p->whole + (p->bits != 0) + p->known;
}

// What is freed holds nothing, and may be freed again.
static void freed(void) {
    uint64_t state = SEED + 3;
    static sinkproof_honest x[MANY * LONG];
    size_t held = 0, asked = 0;
    for (int open = 0; open < 2; open++, asked++) {
        for (size_t i = 0; i < MANY * LONG; i++)
            x[i] = open ? open_set(&state) : sinkproof_exact_set(draw_dyadic(&state));
        sinkproof_planes p = sinkproof_planes_new(x, MANY, LONG, LONG);
        must(p.mid != NULL);
        sinkproof_planes_free(&p);
        held += held_by(&p);
        if (held == 0) sinkproof_planes_free(&p);
    }
    ok(asked == 2 && held == 0, "%s what freed planes hold worst=%zu bound=0", IDS, held);
}

int main(void) {
    shapes();
    significands();
    long_rows();
    freed();
    return tap_done();
}
