// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums in parts that are rounded (bound.parts): what each of several ranks computes is rounded to
// the format in which it is sent, and a split product may round its partial sums. The sets of the
// parts are rounded, then added. Ranks add in any order, and each addition may round to the same
// format, where the last counts as a rounding of the result. The partial sums of a split product
// are added in the format inside.
//
// Ranks that have slices of the experts mix what their slices give before they round it
// (bound.parts-mixed): their parts are mixtures.
#include "proofs/bounds/bounds.h"

#include "ref/operands.h"

#include <stdlib.h>
#include <string.h>

bool honest_is_in_parts(const sinkproof_accumulator *a) {
    return sinkproof_sum_is_in_parts(a->acc);
}

//> bound.parts
// A sum of n sets whose sizes add up to `total`, with what its additions may do.
static sinkproof_honest widened(const sinkproof_setting *s, size_t n, double total,
                                sinkproof_honest sum) {
    double k = (double)n - 1;
    double worst = sinkproof_gamma(k + 1, s->u) * total + k * flushed_below(s);
    return sinkproof_honest_add(
        sum, sinkproof_set_around(0, worst, worst, k * s->u * s->u * total * total / 9, 0));
}

static sinkproof_honest rounded_part(const sinkproof_setting *s, sinkproof_rounding acc,
                                     sinkproof_honest part) {
    part = sinkproof_honest_inside(s, part);
    sinkproof_honest_store(acc.part, 1, &part);
    return part;
}

// The sum of n rounded parts, after the additions between ranks: those before the last may round,
// and what the last returns may be stored.
static sinkproof_honest sum_of_rounded(const sinkproof_setting *s, sinkproof_rounding acc, size_t n,
                                       double total, sinkproof_honest sum) {
    sum = widened(s, n, total, sum);
    if (acc.format != SINKPROOF_RANKS) return sum;
    double k = fmax((double)n - 2, 0), u = sinkproof_unit_roundoff(acc.part);
    double grown = 1 + sinkproof_gamma((double)n, s->u); // an addition may round inside first
    double more = sinkproof_gamma(k, u) * total * grown * grown +
                  k * sinkproof_format_underflow(acc.part) * grown;
    if (k > 0)
        sum = sinkproof_honest_add(
            sum, sinkproof_set_around(0, more, more, k * u * u * total * total / 3, more));
    sinkproof_honest_round_at(s, (sinkproof_rounding){.format = acc.part, .optional = true}, &sum);
    return sum;
}

sinkproof_honest honest_sum_in_any_order(const sinkproof_setting *s, size_t n,
                                         const sinkproof_honest *p_e) {
    sinkproof_honest sum = p_e[0];
    double total = set_largest_size(sum);
    for (size_t e = 1; e < n; e++) {
        sum = sinkproof_honest_add(sum, p_e[e]);
        total += set_largest_size(p_e[e]);
    }
    return widened(s, n, total, sum);
}

sinkproof_honest honest_sum_of_parts(const sinkproof_setting *s, sinkproof_rounding acc, size_t n,
                                     sinkproof_honest *part_p) {
    sinkproof_honest sum = part_p[0] = rounded_part(s, acc, part_p[0]);
    double total = set_largest_size(sum);
    for (size_t p = 1; p < n; p++) {
        part_p[p] = rounded_part(s, acc, part_p[p]);
        sum = sinkproof_honest_add(sum, part_p[p]);
        total += set_largest_size(part_p[p]);
    }
    return sum_of_rounded(s, acc, n, total, sum);
}
//< bound.parts

static double *columns_of(const double *plane, size_t rows, size_t cols, size_t first, size_t n) {
    double *slice = malloc((rows * n + 1) * sizeof *slice);
    for (size_t i = 0; slice != NULL && i < rows; i++)
        memcpy(slice + i * n, plane + i * cols + first, n * sizeof *slice);
    return slice;
}

// The columns [first, first + n) of x; `mid` is NULL if memory runs out.
sinkproof_planes planes_columns(const sinkproof_planes *x, size_t first, size_t n) {
    sinkproof_planes y = {.rows = x->rows,
                          .cols = n,
                          .bits = x->bits,
                          .known = x->known,
                          .whole = x->whole,
                          .scalings = x->scalings};
    const double *const from[] = {x->mid, x->worst, x->likely, x->var, x->bias};
    double **const to[] = {&y.mid, &y.worst, &y.likely, &y.var, &y.bias};
    bool fine = true;
    for (size_t p = 0; p < sizeof from / sizeof from[0]; p++) {
        if (from[p] == NULL) continue;
        *to[p] = columns_of(from[p], x->rows, x->cols, first, n);
        fine = fine && *to[p] != NULL;
    }
    if (!fine) sinkproof_planes_free(&y), y.mid = NULL;
    return y;
}

// A sum of parts so far, and that of their sizes.
static void add_to(sinkproof_honest *sum, double *total, bool first, sinkproof_honest part) {
    *sum = first ? part : sinkproof_honest_add(*sum, part);
    *total = (first ? 0 : *total) + set_largest_size(part);
}

// Sums [rows of x, rows of w], without a bias or with that of the first part.
typedef struct part_sums {
    sinkproof_honest *out;
    double *total;
    const double *b_r; // or NULL
} part_sums;

// Adds part_r [rows of x, rows of w], in place; `first`: it is the first part.
static void add_part(const sinkproof_setting *s, sinkproof_rounding acc, size_t all, size_t rows,
                     bool first, const sinkproof_honest *part_r, const part_sums *to) {
    for (size_t at = 0; at < all; at++) {
        sinkproof_honest part = part_r[at];
        if (first && to->b_r != NULL)
            part = sinkproof_honest_add(part, sinkproof_exact_set(to->b_r[at % rows]));
        add_to(&to->out[at], &to->total[at], first, rounded_part(s, acc, part));
    }
}

bool honest_parts(const sinkproof_setting *s, const sinkproof_accumulator *a,
                  const sinkproof_planes *x, const sinkproof_weight_rows *w, sums_of_columns *sum,
                  sinkproof_honest *out, sinkproof_honest *biased) {
    const sinkproof_accumulator plain = {.together = 0};
    size_t n = x->cols, each = sinkproof_sum_part_products(a->acc, n), all = x->rows * w->rows;
    size_t kinds = biased != NULL ? 2 : 1, parts = 0;
    double *total = calloc(2 * all + 1, sizeof *total);
    sinkproof_honest *part_r = malloc((all + 1) * sizeof *part_r);
    const part_sums to[] = {{out, total, NULL}, {biased, total + all, a->b_r}};
    bool fine = total != NULL && part_r != NULL && x->mid != NULL;
    for (size_t first = 0; fine && first < n; first += each, parts++) {
        sinkproof_planes slice = planes_columns(x, first, n - first < each ? n - first : each);
        fine = slice.mid != NULL && sum(s, &plain, &slice, w, first, part_r);
        for (size_t kind = 0; fine && kind < kinds; kind++)
            add_part(s, a->acc, all, w->rows, first == 0, part_r, &to[kind]);
        sinkproof_planes_free(&slice);
    }
    for (size_t at = 0; fine && at < kinds * all; at++) {
        sinkproof_honest *y = &to[at / all].out[at % all];
        *y = parts > 0 ? sum_of_rounded(s, a->acc, parts, total[at], *y) : sinkproof_exact_set(0);
    }
    bool whole = a->acc.optional; // the sum may be in one part, too
    fine = fine && (!whole || sum(s, &plain, x, w, 0, part_r));
    for (size_t at = 0; fine && whole && at < all; at++)
        out[at] = sinkproof_honest_hull(part_r[at], out[at]);
    free(part_r);
    free(total);
    return fine;
}
