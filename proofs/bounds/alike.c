// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Alike rows (stat.equal-rows): one prompt may repeat the same token many times.
//
// Equal inputs have equal roundings, so the errors of equal rows are one random draw, not many; and
// rows that are equal except for a few honest steps share most of their errors. Rows are alike when
// their emulations are: 32 sums of up to 64 of a row's elements, with signs drawn by column, have
// the same signs and coarse sizes. A sum uses each element's place in its octave, so that a few
// large channels do not make all rows look the same, and rows that differ by a power of two, whose
// roundings are the same, are alike. Rows that differ by a few per cent are not alike, and their
// roundings are unrelated.
//
// The errors of one class are treated as one unit, whatever their correlation: the standard
// deviation of a sum is at most the sum of the standard deviations.
#include "proofs/bounds/bounds.h"

#include <stdlib.h>
#include <string.h>

enum { SUMS = 32, ELEMENTS = 64 };

static uint64_t mix_bits(uint64_t x) { // every bit of x affects every bit of the result
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

// The place of x in its octave: 1 at the ends and in the middle, 0 between, continuous; with x's
// sign.
static double octave_phase(double x) {
    int exponent;
    uint64_t pattern, half = 0x3fe0000000000000;
    memcpy(&pattern, &x, sizeof pattern);
    double place = x; // frexp without a call, but for subnormal numbers
    pattern = (pattern & 0xfffffffffffff) | half;
    memcpy(&place, &pattern, sizeof place);
    if (fabs(x) < 0x1p-1022) place = fabs(frexp(x, &exponent));
    return copysign(8 * fabs(place - 0.75) - 1, x);
}

static bool is_counted_element(const sinkproof_honest *x) {
    return x->mid != 0 && isfinite(x->mid);
}

//> stat.equal-rows
// Equal for rows that are alike. Two different rows have equal keys with probability 2^-32 at most.
uint64_t alike_row_key(size_t n, const sinkproof_honest *x_i) {
    size_t elements = 0, every = 1, used = 0;
    double sums[SUMS] = {0};
    for (size_t i = 0; i < n; i++) elements += is_counted_element(&x_i[i]);
    while (every * ELEMENTS < elements) every *= 2;
    for (size_t i = 0; i < n; i++) {
        uint64_t signs = mix_bits(i + 1);
        if (!is_counted_element(&x_i[i]) || (signs >> SUMS) % every != 0) continue;
        const double t = octave_phase(x_i[i].mid), signed_t[2] = {-t, t};
        for (int q = 0; q < SUMS; q++) sums[q] += signed_t[signs >> q & 1];
        used++;
    }
    // A phase has variance 1/3. A cell of two standard deviations gives about one bit per sum, and
    // 32 bits distinguish rows. If there are few elements, few sums are independent, so finer cells
    // provide the bits.
    size_t few = used < 1 ? 1 : used < SUMS ? used : SUMS;
    double cell = sqrt((double)used / 3) * ldexp(4, -(int)((SUMS + few - 1) / few));
    uint64_t key = few;
    for (int q = 0; used > 0 && q < SUMS; q++)
        key = mix_bits(key ^ (uint64_t)(int64_t)floor(sums[q] / cell));
    return key;
}

static int compare_keys(const void *p, const void *q) {
    uint64_t a = ((const sinkproof_row *)p)->key, b = ((const sinkproof_row *)q)->key;
    return a < b ? -1 : a > b;
}

// The sum over classes of (sum of a norm over the rows of the class)^2, divided by the sum of the
// squared norms.
static double alike_share(double classes, double rows) {
    return rows > 0 ? fmax(classes / rows, 1) : 1;
}

bool sinkproof_rows_alike(size_t n, const sinkproof_row *rows, sinkproof_alike *a) {
    *a = (sinkproof_alike){1, 1, 1, 1};
    sinkproof_row *sorted = malloc((n > 0 ? n : 1) * sizeof *sorted);
    if (sorted == NULL) return false;
    for (size_t i = 0; i < n; i++) sorted[i] = rows[i];
    qsort(sorted, n, sizeof *sorted, compare_keys);
    double model[2] = {0}, seen[2] = {0}, weight[2] = {0};
    for (size_t i = 0, next; i < n; i = next) {
        double sum_m = 0, sum_s = 0, sum_w = 0;
        for (next = i; next < n && sorted[next].key == sorted[i].key; next++) {
            double m = sorted[next].model, s = sorted[next].seen, w = sorted[next].weight;
            sum_m += m, sum_s += s, sum_w += w;
            model[1] += m * m, seen[1] += s * s, weight[1] += w * w;
        }
        model[0] += sum_m * sum_m, seen[0] += sum_s * sum_s, weight[0] += sum_w * sum_w;
        a->largest = fmax(a->largest, (double)(next - i));
    }
    free(sorted);
    if (a->largest == 1) return true;
    a->model = alike_share(model[0], model[1]);
    a->seen = alike_share(seen[0], seen[1]);
    a->weight = alike_share(weight[0], weight[1]);
    return true;
}
//< stat.equal-rows
