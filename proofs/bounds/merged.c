// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Outputs of parts of the keys that are merged (bound.parts-merged), as in a split cache, a cascade
// of a shared prefix and the rest, several ranks, and a gate by the sink, which is a part without a
// value. Each part p has an output o_p and its log-sum-exp in the format inside; a merge returns
// sum_p e^(LSE_p - LSE) o_p and the LSE of all. One output on a key's way is rounded to the format
// of A11.part, or as many as its levels. The parts are unknown: the bound holds for every split of
// the keys.
//
// Over the reals the merge weights times the weights in the parts are the row's own. So the set
// without parts needs two more errors: that of the rounding, u |o_p|, and that of the merge
// weights. Both are relative to the terms, whose sizes add up to S = sum_j alpha_j |v_j|.
#include "proofs/bounds/bounds.h"

#include <stdlib.h>

bool sinkproof_honest_merges_parts(const sinkproof_policy *policy) {
    return policy->at[AT_A11_PART].format != SINKPROOF_REAL;
}

//> bound.parts-merged
// Outputs that are rounded on a key's way at most.
static double rounded_levels(const sinkproof_setting *s) {
    return fmax(s->policy->at[AT_A11_PART].parts, 1);
}

// Merges on a key's way at most: one at each level, of a split, of ranks, and with the sink.
static double merges_of(const sinkproof_setting *s) {
    return rounded_levels(s) + 3;
}

// Scores of a row, its sink's among them: their largest size, and the distance between any two.
typedef struct score_ends {
    double size, apart;
} score_ends;

static score_ends ends_of_scores(size_t n, const sinkproof_honest *z_j, sinkproof_honest b) {
    double lo = z_j[0].lo, hi = z_j[0].hi;
    for (size_t j = 1; j < n; j++) lo = fmin(lo, z_j[j].lo), hi = fmax(hi, z_j[j].hi);
    if (b.hi > -INFINITY) lo = fmin(lo, b.lo), hi = fmax(hi, b.hi);
    return (score_ends){fmax(fabs(lo), fabs(hi)), hi - lo};
}

// The errors of exponents, and three roundings of each merge: two of a quotient, one of a product.
// The LSE of a part errs by its logarithm and the roundings of numbers of the LSE's size, in base 2
// also by the constants. e^(LSE_p - LSE) errs by its difference and by exp. The LSE after a merge
// has the errors of these exponentials, and then those of a part again. Additions: those inside the
// parts and of all merges are fewer than the row's terms. What lies between two merges cancels on a
// key's way except for the error of the second LSE from the first ones' real sum.
double sinkproof_honest_merge_error(const sinkproof_setting *s, size_t n,
                                    const sinkproof_honest *z_j, sinkproof_honest b) {
    double merges = merges_of(s), u = s->u, log_n = log((double)n + 1) + 0x1p-40;
    score_ends z = ends_of_scores(n, z_j, b);
    bool base_2 = sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_A9, SINKPROOF_A9_BASE_2);
    double apart = z.apart + log_n + 1, relative = 2 * u * (1 + 0x1p-50);
    double ulps = s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * fmin(apart, 800);
    double exponential = ulps * relative, lse = sinkproof_gamma(base_2 ? 7 : 2, u);
    if (!(exponential < 0.5) || !(apart < INFINITY)) return INFINITY;
    lse = lse * (z.size + log_n + 1) + s->policy->ulp[SINKPROOF_LOG] * relative * (log_n + 1);
    double weight = sinkproof_gamma(base_2 ? 3 : 1, u) * apart - log1p(-exponential);
    double sums = sinkproof_gamma(2 * (double)n + 2, u);
    double x = 2 * lse + 2 * (merges - 1) * (weight + lse) + 2 * merges * weight + 2 * sums;
    return expm1(x) + quotients_error(s, 3 * merges, merges, merges) * exp(x) * (1 + 0x1p-40);
}

// The largest size of each element.
static double *reach_of(const sinkproof_planes *x) {
    size_t n = x->rows * x->cols;
    double *y = x->mid != NULL ? malloc((n + 1) * sizeof *y) : NULL;
    for (size_t i = 0; y != NULL && i < n; i++)
        y[i] = sinkproof_add_up(fabs(x->mid[i]), x->known ? 0 : x->worst[i]);
    return y;
}

// A row: the largest error of a weight in the merges; its visible keys.
typedef struct merged_row {
    double error, terms;
} merged_row;

// What underflow takes from a part's output counts in full: a part that holds the sink has its mass
// too, and all masses add up to 1. total: sum_j alpha_j |v_j| of the element; largest: the largest
// |v_j|, which no part's output exceeds but for its errors.
static sinkproof_honest merged_element(const sinkproof_setting *s, const merged_row *row,
                                       double total, double largest, sinkproof_honest o) {
    sinkproof_format format = s->policy->at[AT_A11_PART].format;
    double k = rounded_levels(s), merges = merges_of(s);
    double kept_all = pow(1 + sinkproof_unit_roundoff(format), k) * (1 + 0x1p-50);
    double here = sinkproof_gamma(2 * row->terms + 8, 0x1p-53);
    double size = total * (1 + here) + sinkproof_radius(&o); // with the errors of the parts' sums
    bool counted = s->policy->at[AT_A11_ACC].format == SINKPROOF_REAL; // a merge's additions
    double adds = counted ? 0 : sinkproof_gamma(row->terms, s->u);
    double grown = (1 + row->error) * (1 + adds);
    double lost =
        k * sinkproof_format_underflow(format) + underflow_bound(s, merges * (row->terms + 1), 0);
    double merging = (grown - 1) * size + lost * grown * kept_all;
    double rounding = (kept_all - 1) * grown * size;
    double worst = (merging + rounding) * (1 + 0x1p-40);
    double kept = 1 + sinkproof_unit_roundoff(s->policy->at[AT_A9_UNNORM].format);
    bool fits = largest * (1 + row->error) * kept_all * kept <= sinkproof_format_largest(format);
    if (!fits || !(worst < INFINITY)) return sinkproof_unknown_set(o.mid);
    double var = rounding * rounding / 3 + merging * merging;
    return sinkproof_honest_add(o, sinkproof_set_around(0, worst, worst, var, worst));
}
//< bound.parts-merged

static double row_largest(const double *x, size_t n) {
    double largest = 0;
    for (size_t k = 0; k < n; k++) largest = fmax(largest, x[k]);
    return largest;
}

bool sinkproof_honest_merged(const sinkproof_setting *s, const sinkproof_planes *weights,
                             const sinkproof_planes *values, const double *terms_i,
                             const double *error_i, sinkproof_honest *out, size_t out_stride) {
    size_t keys = weights->cols, dim = values->rows;
    double *w = reach_of(weights), *v = reach_of(values);
    double *total = malloc((weights->rows * dim + 1) * sizeof *total);
    double *largest_d = malloc((dim + 1) * sizeof *largest_d);
    bool fine = w != NULL && v != NULL && total != NULL && largest_d != NULL;
    if (fine) sinkproof_matrix_times(weights->rows, dim, keys, w, v, total, dim);
    for (size_t d = 0; fine && d < dim; d++) largest_d[d] = row_largest(&v[d * keys], keys);
    for (size_t i = 0; fine && i < weights->rows; i++) {
        const merged_row row = {error_i[i], terms_i[i]};
        for (size_t d = 0; d < dim; d++)
            out[i * out_stride + d] =
                merged_element(s, &row, total[i * dim + d], largest_d[d], out[i * out_stride + d]);
    }
    free(w), free(v), free(total), free(largest_d);
    return fine;
}
