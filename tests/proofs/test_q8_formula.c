// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Blocks of integers (bound.q8), computed again in long double from the book's formula: radius and
// width of every element, in blocks whose elements have freedom, in rows that end within a block
// (bound.operands), and where an integer or the scale is as near to a tie as the stated errors
// reach: gamma_3 and gamma_2 of float32, and 2^-50; and the sums of blocks (bound.q8-minima).
#include "tests/shared/formulas.h"

#include "model/q8_0.h"

static const uint64_t SEED = 20261127;
enum { BLOCK = SINKPROOF_Q8_0_BLOCK, MOST = 3 * BLOCK, DRAWS = 400, LONG = 512 };

typedef struct ends {
    real lo, hi;
} ends;

// The largest size in a block: at least the least size of each element, at most the largest.
static ends largest_of(size_t n, const sinkproof_honest *x_c) {
    ends largest = {0, 0};
    for (size_t c = 0; c < n; c++) {
        real a = fabsl((real)x_c[c].lo), b = fabsl((real)x_c[c].hi);
        bool crosses = x_c[c].lo <= 0 && x_c[c].hi >= 0;
        if (!crosses) largest.lo = fmaxl(largest.lo, fminl(a, b));
        largest.hi = fmaxl(largest.hi, fmaxl(a, b));
    }
    return largest;
}

static real reach(int roundings) {
    return gamma_of(roundings, 0x1p-24L) + 0x1p-50L;
}

static ends scale_of(ends largest) {
    real lo = largest.lo / 127 * (1 - reach(2)), hi = largest.hi / 127 * (1 + reach(2));
    return (ends){sinkproof_round(SINKPROOF_F16, (double)lo),
                  sinkproof_round(SINKPROOF_F16, (double)hi)};
}

// All whole numbers that are nearest to some 127 x / amax.
static ends wholes_of(const sinkproof_honest *x, ends largest) {
    real least = INFINITY, most = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        real at = corner & 1 ? x->hi : x->lo, over = corner & 2 ? largest.hi : largest.lo;
        real t = at == 0 ? 0 : fminl(fmaxl(127 * at / over, -127), 127);
        least = fminl(least, t), most = fmaxl(most, t);
    }
    return (ends){ceill(least - fabsl(least) * reach(3) - 0.5L),
                  floorl(most + fabsl(most) * reach(3) + 0.5L)};
}

// What a product reads of x, at all corners.
static ends read_of(const sinkproof_honest *x, ends largest) {
    ends d = scale_of(largest), q = wholes_of(x, largest);
    return (ends){fminl(q.lo * d.lo, q.lo * d.hi), fmaxl(q.hi * d.lo, q.hi * d.hi)};
}

typedef struct outcome {
    distance d;
    size_t other;
} outcome;

// One row through the planes: radius and width of each element.
static void compare(outcome *o, size_t n, const sinkproof_honest *x_c) {
    static uint8_t codes[MOST / 2], scales[MOST / 32];
    sinkproof_policy policy = policy_named("f32,M5.in=q8_0");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_MXFP4,
                          .count = 1,
                          .rows = 1,
                          .cols = n,
                          .data = codes,
                          .scales = scales,
                          .stack_stride = n,
                          .row_stride = n,
                          .col_stride = 1,
                          .name = "w"};
    sinkproof_planes p = sinkproof_operand_planes(&s, AT_M5_IN, &w, x_c, 1);
    must(p.mid != NULL);
    for (size_t c = 0; c < n; c++) {
        size_t first = c / BLOCK * BLOCK, left = n - first;
        ends x = read_of(&x_c[c], largest_of(left < BLOCK ? left : BLOCK, &x_c[first]));
        real radius = fmaxl(x.hi - p.mid[c], p.mid[c] - x.lo), width = x.hi - x.lo;
        o->other += p.known && width != 0;
        if (p.known) continue;
        near(&o->d, p.worst[c], radius, radius, 4);
        near(&o->d, p.bias[c], width, width, 4);
    }
    sinkproof_planes_free(&p);
}

static void told(const outcome *o, const char *id, const char *what) {
    report(&o->d, id, what, SEED);
    ok(o->other == 0, "%s %s, sets of one number worst=%zu bound=0", id, what, o->other);
}

// Elements of any freedom: of either sign, with an end at 0, known, and zeros.
static void free_blocks(void) {
    uint64_t state = SEED;
    outcome o = {0};
    for (int i = 0; i < DRAWS; i++) {
        static sinkproof_honest x[MOST];
        size_t n = i % 3 ? BLOCK : 1 + draw_below(&state, MOST);
        int narrow = 2 + (int)draw_below(&state, 20);
        for (size_t c = 0; c < n; c++) {
            double mid = draw_gauss(&state), off = ldexp(draw_unit(&state), -narrow);
            x[c] = sinkproof_exact_set(mid);
            uint64_t kind = draw_below(&state, 6);
            if (kind == 0) x[c] = sinkproof_exact_set(i % 2);
            if (kind > 1) x[c].lo = mid - off, x[c].hi = mid + off;
            if (kind == 4) x[c].lo = 0, x[c].hi = off, x[c].mid = off / 2;
            if (kind == 5) x[c].lo = -off, x[c].hi = 0, x[c].mid = -off / 2;
            if (i % 16 == 1) x[c].lo = -fabs(mid), x[c].hi = fabs(off), x[c].mid = 0;
            x[c].likely_lo = x[c].lo, x[c].likely_hi = x[c].hi;
        }
        compare(&o, n, x);
    }
    told(&o, "bound.q8 bound.operands", "blocks of any freedom");
}

// 127 x / amax = q + 1/2, less or more than the errors reach by as little as binary64 tells; and
// the scale amax / 127 as near to a tie of float16. x is not known where it is zero, so that
// nothing is.
static void ties(void) {
    const real beside[] = {-0x1p-26L, -1.5L * 0x1p-50L, 1.5L * 0x1p-50L, 0x1p-26L};
    outcome o = {0};
    for (int sign = -1; sign <= 1; sign += 2)
        for (int q = -126; q < 127; q += 9)
            for (size_t b = 0; b < sizeof beside / sizeof *beside; b++)
                for (int k = 0; k < 4; k++) {
                    sinkproof_honest x[BLOCK];
                    real off = sign * (gamma_of(k % 2 ? 2 : 3, 0x1p-24L) + beside[b] + 0x1p-50L);
                    double most = k < 2 ? 127 : (double)(127 * (1 + 0x1p-11L) / (1 + off));
                    for (int c = 0; c < BLOCK; c++)
                        x[c] = sinkproof_set_around(0, 0x1p-9, 0x1p-9, 0, 0);
                    x[0] = sinkproof_exact_set(most);
                    x[1] = sinkproof_exact_set((double)((q + 0.5L) / (1 + off)));
                    x[2] = sinkproof_exact_set(-(double)((q + 0.5L) / (1 - off)));
                    compare(&o, BLOCK, x);
                }
    told(&o, "bound.q8", "what is as near to a tie as errors reach");
}

// ---- bound.q8-minima: the sum of a block, after a scale in float16 or in float32

// All that a sum of whole numbers between q.lo and q.hi times the scale may be.
static ends sum_of(ends q, ends largest, bool k) {
    ends d = {largest.lo / 127 * (1 - reach(k ? 2 : 3)), largest.hi / 127 * (1 + reach(k ? 2 : 3))};
    ends s = {fminl(q.lo * d.lo, q.lo * d.hi), fmaxl(q.hi * d.lo, q.hi * d.hi)};
    if (k) return s;
    return (ends){sinkproof_round(SINKPROOF_F16, (double)s.lo),
                  sinkproof_round(SINKPROOF_F16, (double)s.hi)};
}

// The numbers and the sums of a row of n numbers, in blocks of 32 or of 256.
static void compare_sums(outcome *o, bool k, size_t n, const sinkproof_honest *x_c) {
    static uint8_t bytes[LONG];
    sinkproof_policy policy = policy_named(k ? "f32,M5.in=q8_k" : "f32,M5.in=q8_1");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_Q4_1,
                          .count = 1,
                          .rows = 1,
                          .cols = n,
                          .data = bytes,
                          .row_stride = n,
                          .col_stride = 1,
                          .name = "w"};
    sinkproof_planes p = sinkproof_operand_planes(&s, AT_M5_IN, &w, x_c, 1);
    must(p.mid != NULL && p.cols == n + n / BLOCK && p.sums == n / BLOCK);
    size_t block = k ? 256 : BLOCK;
    for (size_t b = 0; b < n / BLOCK && !p.known; b++) {
        size_t first = b * BLOCK / block * block, left = n - first;
        ends largest = largest_of(left < block ? left : block, &x_c[first]), q = {0, 0};
        for (size_t c = b * BLOCK; c < (b + 1) * BLOCK; c++) {
            ends one = wholes_of(&x_c[c], largest);
            q.lo += one.lo, q.hi += one.hi;
        }
        ends sum = sum_of(q, largest, k);
        real mid = p.mid[n + b], radius = fmaxl(sum.hi - mid, mid - sum.lo);
        real size = fabsl(sum.lo) + fabsl(sum.hi); // both are differences of such numbers
        near(&o->d, p.worst[n + b], radius, size, 8);
        near(&o->d, p.bias[n + b], sum.hi - sum.lo, size, 8);
        o->other += !(sum.lo <= mid && mid <= sum.hi);
    }
    sinkproof_planes_free(&p);
}

static void sums(void) {
    uint64_t state = SEED + 1;
    for (int k = 0; k < 2; k++) {
        outcome o = {0};
        for (int i = 0; i < DRAWS; i++) {
            static sinkproof_honest x[LONG];
            size_t n = BLOCK * (1 + draw_below(&state, LONG / BLOCK));
            int narrow = 2 + (int)draw_below(&state, 20);
            for (size_t c = 0; c < n; c++) {
                double mid = draw_gauss(&state), off = ldexp(draw_unit(&state), -narrow);
                x[c] = sinkproof_set_around(mid, off, off, 0, 0);
            }
            compare_sums(&o, k == 1, n, x);
        }
        told(&o, "bound.q8-minima", k ? "sums of blocks of 256" : "sums in float16");
    }
}

int main(void) {
    free_blocks();
    ties();
    sums();
    return tap_done();
}
