// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of numbers that a product reads in eight bits or four (bound.scaled): a scale, a
// code, and the code times the scale. The scale and the quotient x / scale have a few roundings of
// float32, so that a quotient beside a midpoint may go to either code; and the number of a code may
// be exact, in float32, or in the format that held x. There is no other freedom. A power of two as
// a scale loses nothing: the code is that of x itself.
#include "proofs/bounds/scaled.h"

#include "proofs/bounds/bounds.h"

#include <stdlib.h>

// Roundings of float32, or errors as large as so many. Of a dynamic scale: amax times a rounded
// 1 / L has two, a quotient on a GPU is as wrong as four [chapter 33]; two more if the sum is
// multiplied by its scales afterwards. Of the code's quotient x / scale: those of the scale and of
// its reciprocal, and a product, or again a quotient.
enum { SCALE_ROUNDINGS = 6, CODE_ROUNDINGS = 8, LATE_ROUNDINGS = 2, MOST_SCALES = 8 };

static double float_error(int roundings) {
    return sinkproof_gamma(roundings, 0x1p-24) + 0x1p-50;
}

// x (1 ± off), of numbers of one sign.
static ends widened(ends x, double off) {
    return (ends){x.lo - fabs(x.lo) * off, x.hi + fabs(x.hi) * off};
}

ends row_largest_ends(size_t n, const sinkproof_honest *x_c) {
    ends largest = {0, 0};
    for (size_t c = 0; c < n; c++) {
        double least = x_c[c].lo > 0 ? x_c[c].lo : x_c[c].hi < 0 ? -x_c[c].hi : 0;
        largest.lo = fmax(largest.lo, least);
        largest.hi = fmax(largest.hi, set_largest_size(x_c[c]));
    }
    return largest;
}

static ends largest_of_group(const scale_groups *of, const sinkproof_honest *x) {
    ends largest = {0, 0};
    for (size_t r = 0; r < of->runs; r++) {
        ends run = row_largest_ends(of->run, x + r * of->stride);
        largest = (ends){fmax(largest.lo, run.lo), fmax(largest.hi, run.hi)};
    }
    return largest;
}

// A scale: the real one, with which the quotient's error is counted, the one that multiplies the
// code, and that error, relative. A power of two: no error at all.
typedef struct scaling {
    ends real, stored;
    double off;
} scaling;

static scaling scaling_by_power(double power) {
    return (scaling){{power, power}, {power, power}, 0};
}

// A scale is a float32 number: what rounds to 0 or near it has an absolute error too.
static scaling scaling_between(ends real, int roundings) {
    ends stored = widened(real, float_error(roundings));
    stored = (ends){fmax(stored.lo - 0x1p-148, 0), stored.hi + 0x1p-148};
    return (scaling){real, stored, float_error(CODE_ROUNDINGS)};
}

static scaling scaling_stated(double stated) {
    if (is_power_of_two(stated)) return scaling_by_power(stated);
    return scaling_between((ends){stated, stated}, LATE_ROUNDINGS);
}

//> bound.scaled
// The codes that may stand for x. A tie of an exact quotient is even, of whole numbers either way.
static ends codes_of(sinkproof_format format, ends x, const scaling *by) {
    double off = by->off > 0 ? by->off : format == SINKPROOF_INT8 ? 0x1p-50 : 0;
    ends t = widened((ends){x.lo / (x.lo < 0 ? by->real.lo : by->real.hi),
                            x.hi / (x.hi < 0 ? by->real.hi : by->real.lo)},
                     off);
    if (x.lo == 0) t.lo = 0;
    if (x.hi == 0) t.hi = 0;
    return (ends){sinkproof_scaled_code(format, t.lo), sinkproof_scaled_code(format, t.hi)};
}

// Their numbers: the end of the scale that is further from 0 makes a code's number larger.
static ends numbers_of(ends code, ends scale) {
    return (ends){sinkproof_mul_down(code.lo, code.lo < 0 ? scale.hi : scale.lo),
                  sinkproof_mul_up(code.hi, code.hi < 0 ? scale.lo : scale.hi)};
}
//< bound.scaled

// Without a scale that is known: no number of a code is larger than the largest code's.
static ends numbers_at_most(ends x, double largest) {
    return (ends){x.lo < 0 ? -largest : 0, x.hi > 0 ? largest : 0};
}

// A number of a code may be rounded to float32, and then to the format that held x.
static ends maybe_rounded(sinkproof_format stored, ends x) {
    x = (ends){fmin(x.lo, sinkproof_round(SINKPROOF_F32, x.lo)),
               fmax(x.hi, sinkproof_round(SINKPROOF_F32, x.hi))};
    return (ends){fmin(x.lo, sinkproof_round(stored, x.lo)),
                  fmax(x.hi, sinkproof_round(stored, x.hi))};
}

// The scales that a block may have, `count` of them; none: unknown, and its numbers are at most
// `largest`.
typedef struct scalings {
    scaling by[MOST_SCALES];
    size_t count;
    double largest;
} scalings;

static scalings one_scaling(sinkproof_format format, ends real, int roundings) {
    scalings all = {.by[0] = scaling_between(real, roundings)};
    all.count = real.lo > 0x1p-100 && real.hi < INFINITY;
    all.largest = sinkproof_scaled_largest(format) * all.by[0].stored.hi;
    return all;
}

// Powers of two between those of the ends of amax.
static scalings powers(sinkproof_format format, ends amax) {
    scalings all = {.largest = amax.hi < INFINITY ? 448 * 2 * amax.hi / 256 : INFINITY};
    if (!(amax.lo > 0) || !(amax.hi < INFINITY)) return all;
    double up = format == SINKPROOF_MXFP8_UP ? float_error(CODE_ROUNDINGS) : 0;
    double power = sinkproof_scaled_power(format, amax.lo * (1 - up));
    double last = sinkproof_scaled_power(format, amax.hi * (1 + up));
    for (; power <= last && all.count < MOST_SCALES; power *= 2)
        all.by[all.count++] = scaling_by_power(power);
    if (power <= last) all.count = 0;
    return all;
}

// Eight-bit scales of a block, each times the scale of its group.
static scalings scales_of_blocks(const scaling *outer, ends amax) {
    double code = sinkproof_scaled_largest(SINKPROOF_NVFP4), off = float_error(CODE_ROUNDINGS);
    double lo = sinkproof_round(SINKPROOF_E4M3, amax.lo / code / outer->real.hi * (1 - off));
    double hi = sinkproof_round(SINKPROOF_E4M3, amax.hi / code / outer->real.lo * (1 + off));
    scalings all = {.largest = code * hi * outer->stored.hi};
    if (!(lo > 0) || !(hi <= 448)) return all;
    for (; lo <= hi && all.count < MOST_SCALES; lo += sinkproof_ulp(SINKPROOF_E4M3, lo)) {
        ends real = {lo * outer->real.lo, lo * outer->real.hi};
        bool exact = outer->off == 0 && is_power_of_two(lo);
        scaling by = scaling_between(real, SCALE_ROUNDINGS);
        all.by[all.count++] = exact ? scaling_by_power(real.lo) : by;
    }
    if (lo <= hi) all.count = 0;
    return all;
}

static ends read_number(sinkproof_format format, const scalings *all, ends x) {
    ends read = {INFINITY, -INFINITY};
    for (size_t k = 0; k < all->count; k++) {
        ends one = numbers_of(codes_of(format, x, &all->by[k]), all->by[k].stored);
        if (one.lo != one.lo || one.hi != one.hi) return (ends){-INFINITY, INFINITY};
        read = (ends){fmin(read.lo, one.lo), fmax(read.hi, one.hi)};
    }
    return all->count > 0 ? read : numbers_at_most(x, all->largest);
}

sinkproof_honest set_between_codes(ends x, double mid) {
    double width = x.hi - x.lo, var = width * width / 4;
    return (sinkproof_honest){x.lo, x.hi, x.lo, x.hi, mid, var, var, width, 0};
}

typedef struct reading {
    sinkproof_rounding how;
    sinkproof_format stored;
    const double *mid; // as the reference reads the middles
} reading;

static void read_block(const reading *r, const scalings *all, size_t n, const double *mid_k,
                       sinkproof_honest *x_k) {
    for (size_t k = 0; k < n; k++) {
        ends x = {x_k[k].lo, x_k[k].hi};
        if (sinkproof_is_unknown(&x_k[k])) continue;
        bool zero = x.lo == 0 && x.hi == 0;
        ends read = maybe_rounded(r->stored, read_number(r->how.format, all, x));
        bool known = read.lo > -INFINITY && read.hi < INFINITY;
        x_k[k] = zero    ? sinkproof_exact_set(0)
                 : known ? set_between_codes(read, mid_k[k])
                         : sinkproof_unknown_set(mid_k[k]);
    }
}

// The scale of a group: amax / L, of NVFP4 amax / (448 L); the stated one; or 1.
static scalings group_scalings(sinkproof_rounding how, ends amax) {
    double largest = sinkproof_scaled_largest(how.format);
    if (how.format == SINKPROOF_NVFP4) largest *= 448;
    if (how.scale > SINKPROOF_SCALE_STATED)
        return one_scaling(how.format, (ends){amax.lo / largest, amax.hi / largest},
                           SCALE_ROUNDINGS);
    double stated = how.scale == SINKPROOF_SCALE_STATED ? how.stated : 1;
    return (scalings){.by[0] = scaling_stated(stated), .count = 1};
}

static void read_row(const reading *r, const scalings *group, size_t dim, const double *mid,
                     sinkproof_honest *x) {
    sinkproof_format format = r->how.format;
    size_t length = sinkproof_scaled_block(format, dim);
    for (size_t first = 0; first < dim; first += length) {
        size_t n = dim - first < length ? dim - first : length;
        scalings own = *group;
        if (format == SINKPROOF_NVFP4 && group->count == 0)
            own.largest *= 448;
        else if (format == SINKPROOF_NVFP4)
            own = scales_of_blocks(&group->by[0], row_largest_ends(n, x + first));
        else if (sinkproof_scaled_by_power(format))
            own = powers(format, row_largest_ends(n, x + first));
        read_block(r, &own, n, mid + first, x + first);
    }
}

static void read_groups(const reading *r, const scale_groups *of, size_t dim, sinkproof_honest *x) {
    for (size_t g = 0; g < of->count; g++) {
        size_t at = g * of->step;
        scalings group = group_scalings(r->how, largest_of_group(of, x + at));
        for (size_t run = 0; run < of->runs; run++)
            for (size_t k = 0; k < of->run; k += dim) {
                size_t row = at + run * of->stride + k;
                read_row(r, &group, dim, r->mid + row, x + row);
            }
    }
}

// Each number is rounded on its own.
static void read_each(const sinkproof_setting *s, sinkproof_rounding how, size_t count,
                      sinkproof_honest *x) {
    for (size_t i = 0; i < count; i++)
        if (how.format != SINKPROOF_REAL) sinkproof_honest_round_at(s, how, &x[i]);
}

// The point whose result is read at `in`.
static sinkproof_point point_read_at(sinkproof_point in) {
    switch (in) {
    case AT_A2_IN:
        return AT_A1;
    case AT_A5_Q:
    case AT_A5_K:
        return AT_A4;
    case AT_A11_WEIGHTS:
        return AT_A9;
    case AT_A11_V:
        return AT_A2;
    case AT_A12_IN:
        return AT_A11;
    case AT_M9_IN:
        return AT_M8;
    case AT_F2_IN:
        return AT_F1;
    default:
        return AT_M1;
    }
}

bool sinkproof_honest_scaled(const sinkproof_setting *s, sinkproof_point in, sinkproof_rounding how,
                             size_t tokens, size_t heads, size_t dim, sinkproof_honest *x) {
    size_t count = tokens * heads * dim;
    if (!sinkproof_is_scaled(how)) {
        read_each(s, how, count, x);
        return true;
    }
    double *mid = malloc((count + 1) * sizeof *mid);
    sinkproof_honest *kept = how.optional ? malloc((count + 1) * sizeof *kept) : NULL;
    bool fine = mid != NULL && (!how.optional || kept != NULL);
    for (size_t i = 0; fine && i < count; i++) mid[i] = x[i].mid;
    if (fine && how.optional) memcpy(kept, x, count * sizeof *kept);
    if (fine) {
        sinkproof_scaled_read(how, tokens, heads, dim, mid);
        scale_groups of = sinkproof_scale_groups(how.scale, tokens, heads, dim);
        sinkproof_format stored = s->policy->at[point_read_at(in)].format;
        read_groups(&(reading){how, stored, mid}, &of, dim, x);
    }
    for (size_t i = 0; fine && how.optional && i < count; i++)
        x[i] = sinkproof_honest_choice(x[i], kept[i]);
    free(mid);
    free(kept);
    return fine;
}
