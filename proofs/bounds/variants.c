// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of one row of any design of attention. A weight is sim_j / Z with sim monotone in
// its score: sim maps the ends of a score's set, and the errors of the evaluation widen the result
// (bound.similarity):
//   e^s             e_x                          e_x the exponential's declared error
//   sigmoid(s)      e_x / (1 - e_x) and 2 u      as in the SwiGLU (bound.swiglu)
//   elu(s) + 1      e_x below 0; above, u; and where an engine forms e^s - 1 + 1, 2 u absolutely
//   sum, any order  gamma_(n-1) sum_j |sim_j|
//   x^p             the power's declared error, p times the error of x
//   quotient        2 u, or as declared (bound.quotient)
#include "proofs/bounds/variants.h"

#include <stdlib.h>

static const double libm = 0x1p-49; // binary64 exp, pow here: a few ulp

static sinkproof_honest set_between(double lo, double hi, double mid) {
    if (!(lo <= hi)) lo = -INFINITY, hi = INFINITY;
    return (sinkproof_honest){lo, hi, lo, hi, mid, 0, 0, 0, 0};
}

// Moves both ends of x outward by a relative and an absolute error.
static sinkproof_honest set_widened(sinkproof_honest x, double relative, double absolute) {
    double size = fmax(fabs(x.lo), fabs(x.hi)), by = (relative * size + absolute) * (1 + libm);
    return set_between(add_down(x.lo, -by), sinkproof_add_up(x.hi, by), x.mid);
}

static double exp_error(const sinkproof_setting *s, const sinkproof_honest *x) {
    double size = fmin(fmax(fabs(x->lo), fabs(x->hi)), 800);
    return (s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * size) * 2 * s->u;
}

static double flush_threshold(const sinkproof_setting *s) { // largest loss by a flush to zero
    return s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
}

// The formulas of the designs, written independently of the reference: each finds mistakes of the
// other.
static double similarity_at(sinkproof_similarity kind, double score) {
    double e = exp(kind == SINKPROOF_SIMILARITY_SIGMOID ? -score : score);
    if (kind == SINKPROOF_SIMILARITY_EXP) return e;
    if (kind == SINKPROOF_SIMILARITY_SIGMOID) return 1 / (1 + e);
    return score < 0 ? e : 1 + score; // elu + 1
}

// The bucket of a distance: bucket 16 + k begins at 16 2^(3k/16), rounded up.
static size_t distance_bucket(size_t distance) {
    static const unsigned char from[] = {16, 19, 21, 24, 27, 31, 35, 40,
                                         46, 52, 59, 67, 77, 87, 99, 113};
    size_t bucket = SINKPROOF_BUCKETS / 2;
    if (distance < bucket) return distance;
    for (size_t k = 1; k < sizeof from && distance >= from[k]; k++) bucket++;
    return bucket;
}
static double place_bias(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                         size_t distance) {
    if (variant->places == SINKPROOF_PLACES_ALIBI) return (double)distance * -head->slope;
    size_t bucket = distance_bucket(distance);
    return variant->places == SINKPROOF_PLACES_RELATIVE ? head->bucket_b[bucket] : (double)bucket;
}

static double star_value(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                         size_t d) {
    bool first = variant->star_value == SINKPROOF_STAR_VALUE_FIRST;
    if (variant->star_value == SINKPROOF_STAR_VALUE_LEARNED) return head->value_d[d];
    if (variant->star_value == SINKPROOF_STAR_VALUE_EVEN)
        return variant->star_times / sqrt((double)head->dim);
    return first && d == 0 ? variant->star_times : 0;
}

// Whether a common factor of all exponentials cancels in the weights, since the divisor has it too.
static bool is_homogeneous(const sinkproof_variant *variant) {
    return variant->divisor == SINKPROOF_DIVISOR_SUM ||
           variant->divisor == SINKPROOF_DIVISOR_SCALED ||
           variant->divisor == SINKPROOF_DIVISOR_POWER;
}

//> bound.similarity
// 1 / (1 + e^-x): its exponential, the sum and the quotient.
static double sigmoid_error(const sinkproof_setting *s, double e_x) {
    double rounded = e_x / (1 - e_x) + 3 * s->u, declared = declared_quotient(s);
    return rounded + declared + rounded * declared;
}

static sinkproof_honest similarity_set(const sinkproof_setting *s, const sinkproof_variant *variant,
                                       sinkproof_honest x) {
    sinkproof_similarity kind = variant->similarity;
    if (kind == SINKPROOF_SIMILARITY_SCORE) return x;
    sinkproof_honest y =
        set_between(similarity_at(kind, x.lo) * (1 - libm), similarity_at(kind, x.hi) * (1 + libm),
                    similarity_at(kind, x.mid));
    double e_x = exp_error(s, &x), relative = e_x + s->u, absolute = flush_threshold(s);
    if (kind == SINKPROOF_SIMILARITY_SIGMOID) relative = sigmoid_error(s, e_x);
    // e^s - 1, then + 1: for s < 0, two roundings of numbers of size at most 1; otherwise one
    // rounding of s + 1.
    if (kind == SINKPROOF_SIMILARITY_ELU_PLUS_ONE) absolute += x.lo < 0 ? (e_x + 2 * s->u) : 0;
    y = set_widened(y, relative, absolute);
    return set_between(fmax(y.lo, 0), y.hi, y.mid); // none of these is negative
}

// x^p. Numbers below 0 have only integer powers, and even powers are not negative.
static sinkproof_honest set_powered(const sinkproof_setting *s, sinkproof_honest x, double p) {
    double e_p = s->policy->ulp[SINKPROOF_POW] * 2 * s->u, mid = pow(x.mid, p);
    bool even = fmod(p, 2) == 0, folds = even && x.lo < 0 && x.hi > 0;
    if (x.lo < 0 && p != floor(p)) return set_between(-INFINITY, INFINITY, mid);
    double at_lo = pow(x.lo, p), at_hi = pow(x.hi, p);
    double lo = folds ? 0 : fmin(at_lo, at_hi), hi = fmax(at_lo, at_hi);
    sinkproof_honest y = set_between(lo - fabs(lo) * libm, hi + fabs(hi) * libm, mid);
    y = set_widened(y, e_p + s->u, flush_threshold(s));
    return set_between(x.lo >= 0 || even ? fmax(y.lo, 0) : y.lo, y.hi, mid);
}

static sinkproof_honest divisor_set(const sinkproof_setting *s, const sinkproof_variant *variant,
                                    size_t count, const bool *seen_j,
                                    const sinkproof_honest *sim_j) {
    double lo = 0, hi = 0, mid = 0, sizes = 0, terms = 0;
    bool power = variant->divisor == SINKPROOF_DIVISOR_POWER;
    if (variant->divisor == SINKPROOF_DIVISOR_ONE) return sinkproof_exact_set(1);
    for (size_t j = 0; j < count; j++) {
        if (!seen_j[j]) continue;
        sinkproof_honest x = power ? set_powered(s, sim_j[j], variant->divisor_by) : sim_j[j];
        lo = add_down(lo, x.lo);
        hi = sinkproof_add_up(hi, x.hi);
        mid += x.mid;
        sizes = sinkproof_add_up(sizes, fmax(fabs(x.lo), fabs(x.hi)));
        terms++;
    }
    sinkproof_honest z = set_widened(set_between(lo, hi, mid), 0,
                                     sinkproof_mul_up(sinkproof_gamma(terms, s->u), sizes));
    if (variant->divisor == SINKPROOF_DIVISOR_SCALED) {
        z = sinkproof_honest_mul(z, sinkproof_exact_set(1 / variant->divisor_by));
        return set_widened(z, 4 * s->u,
                           flush_threshold(s)); // 1 / a or a quotient, each possibly approximated
    }
    if (power) return set_powered(s, z, 1 / variant->divisor_by);
    if (variant->divisor != SINKPROOF_DIVISOR_AT_LEAST_1) return z;
    double far = fmax(fabs(z.lo), fabs(z.hi)),
           near = z.lo <= 0 && z.hi >= 0 ? 0 : fmin(fabs(z.lo), fabs(z.hi));
    return set_between(fmax(near, 1), fmax(far, 1), fmax(fabs(z.mid), 1));
}

static sinkproof_honest quotient_set(const sinkproof_setting *s, sinkproof_honest x,
                                     sinkproof_honest z) {
    if (!(z.lo > 0)) return set_between(-INFINITY, INFINITY, x.mid / z.mid);
    double by_lo = x.lo < 0 ? z.lo : z.hi, by_hi = x.hi < 0 ? z.hi : z.lo;
    sinkproof_honest y = set_between(x.lo / by_lo, x.hi / by_hi, x.mid / z.mid);
    double error = fmax(2 * s->u, declared_quotient(s)); // x / z, or x times 1 / z
    return set_widened(y, error + libm, flush_threshold(s));
}
//< bound.similarity

// Exponentials over their sum: GPT-OSS's own row (bound.softmax-sink), with the star as its sink.
static bool softmax_row_sets(const sinkproof_setting *s, sinkproof_point point, size_t count,
                             const bool *seen_j, const sinkproof_honest *s_j,
                             sinkproof_honest *alpha_j) {
    sinkproof_honest *packed = calloc(2 * count, sizeof *packed), *out = packed + count;
    sinkproof_honest b = seen_j[count - 1] ? s_j[count - 1] : sinkproof_exact_set(-INFINITY);
    double common;
    size_t n = 0;
    if (packed == NULL) return false;
    for (size_t j = 0; j + 1 < count; j++)
        if (seen_j[j]) packed[n++] = s_j[j];
    bool fine = sinkproof_honest_softmax(s, point, n, packed, b, out, &common);
    size_t from = 0;
    for (size_t j = 0; fine && j + 1 < count; j++)
        alpha_j[j] = seen_j[j] ? out[from++] : sinkproof_exact_set(0);
    if (fine) alpha_j[count - 1] = seen_j[count - 1] ? out[n] : sinkproof_exact_set(0);
    free(packed);
    return fine;
}

// The row's maximum.
static sinkproof_honest row_maximum(size_t count, const bool *seen_j, const sinkproof_honest *s_j) {
    double lo = -INFINITY, hi = -INFINITY, mid = -INFINITY;
    for (size_t j = 0; j < count; j++)
        if (seen_j[j]) {
            lo = fmax(lo, s_j[j].lo);
            hi = fmax(hi, s_j[j].hi);
            mid = fmax(mid, s_j[j].mid);
        }
    return set_between(lo, hi, mid);
}

// How an engine's own maximum may differ from the middle of its set.
typedef struct other_maximum {
    double farther; // possible increase of the exponential's argument
    double above;   // possible increase of the maximum itself
} other_maximum;

// x - m. If the policy rounds it, m is the engine's maximum. Otherwise any subtracted number gives
// the same weights, and m is the middle of its set; but an engine rounds another difference in its
// registers.
static sinkproof_honest subtract_shift(const sinkproof_setting *s, sinkproof_honest x,
                                       sinkproof_honest m, other_maximum *other) {
    const bool rounded = s->policy->at[AT_A9_MAX].format != SINKPROOF_REAL;
    sinkproof_honest any = sinkproof_honest_sub(x, m),
                     one = sinkproof_honest_sub(x, sinkproof_exact_set(m.mid)),
                     y = sinkproof_honest_inside(s, rounded ? any : one);
    *other = (other_maximum){0, 0};
    if (!rounded && m.lo < m.hi) {
        *other = (other_maximum){set_largest_size(any) - set_largest_size(one), m.hi - m.mid};
        double by = s->u * set_largest_size(any) * (1 + libm);
        y = set_between(add_down(one.lo, -by), sinkproof_add_up(one.hi, by), y.mid);
    }
    return sinkproof_honest_at(s, AT_A9_MAX, y);
}

// The similarity under that maximum: the error of its exponential grows with the argument, and a
// loss by flushing under the engine's larger maximum is larger under the middle one. For the
// divisor, a sum that contains the largest exponential, the roundings exceed what its terms may
// lose this way; and where an argument is no farther, it belongs to the largest exponential.
static sinkproof_honest shifted_similarity(const sinkproof_setting *s,
                                           const sinkproof_variant *variant, sinkproof_honest x,
                                           const other_maximum *other) {
    sinkproof_honest y = similarity_set(s, variant, x);
    if (!(other->farther > 0) || y.hi == INFINITY) return y;
    double grown = s->policy->exp_growth * fmin(other->farther, 800) * 2 * s->u;
    y = set_widened(y, grown, flush_threshold(s) * expm1(other->above * (1 + libm)));
    return set_between(fmax(y.lo, 0), y.hi, y.mid);
}

bool sinkproof_honest_variant_weights(const sinkproof_setting *s, const sinkproof_variant *variant,
                                      size_t count, const bool *seen_j, const sinkproof_honest *s_j,
                                      sinkproof_honest *alpha_j) {
    if (variant->similarity == SINKPROOF_SIMILARITY_EXP &&
        variant->divisor == SINKPROOF_DIVISOR_SUM)
        return softmax_row_sets(s, AT_A9, count, seen_j, s_j, alpha_j);
    bool shifted = variant->similarity == SINKPROOF_SIMILARITY_EXP && is_homogeneous(variant);
    sinkproof_honest m = shifted ? row_maximum(count, seen_j, s_j) : sinkproof_exact_set(0);
    for (size_t j = 0; j < count; j++) {
        alpha_j[j] = sinkproof_exact_set(0);
        if (!seen_j[j]) continue;
        other_maximum other = {0, 0};
        sinkproof_honest x = shifted ? subtract_shift(s, s_j[j], m, &other) : s_j[j];
        alpha_j[j] = shifted_similarity(s, variant, x, &other);
    }
    sinkproof_honest z = divisor_set(s, variant, count, seen_j, alpha_j);
    for (size_t j = 0; j < count; j++)
        if (seen_j[j]) alpha_j[j] = sinkproof_honest_at(s, AT_A9, quotient_set(s, alpha_j[j], z));
    return true;
}

static sinkproof_honest *sets_of_numbers(const double *x, size_t n) {
    sinkproof_honest *out = malloc((n > 0 ? n : 1) * sizeof *out);
    for (size_t i = 0; out != NULL && i < n; i++) out[i] = sinkproof_exact_set(x[i]);
    return out;
}

// One row times others, before any rounding point; each sum counts as `terms` terms.
static bool row_times(const sinkproof_setting *s, size_t rows, size_t cols, double terms,
                      const double *x_c, const double *y_rc, sinkproof_honest *out_r) {
    sinkproof_honest *x = sets_of_numbers(x_c, cols), *y = sets_of_numbers(y_rc, rows * cols);
    bool fine = x != NULL && y != NULL;
    if (fine) {
        sinkproof_planes one = sinkproof_planes_new(x, 1, cols, cols);
        sinkproof_planes many = sinkproof_planes_new(y, rows, cols, cols);
        fine = sinkproof_honest_products(s, &one, &many, &terms, NULL, out_r, rows);
        sinkproof_planes_free(&one);
        sinkproof_planes_free(&many);
    }
    free(x);
    free(y);
    return fine;
}

// The width whose root divides the scores.
static size_t score_width(const sinkproof_variant *variant, const sinkproof_variant_head *head) {
    return variant->unscaled ? 1 : head->dim;
}

bool sinkproof_honest_variant_star(const sinkproof_setting *s, const sinkproof_variant *variant,
                                   const sinkproof_variant_head *head, const double *q_d,
                                   sinkproof_honest *out) {
    double b = variant->star == SINKPROOF_STAR_SCORE ? head->logit : 0;
    *out = sinkproof_honest_at(s, AT_A8, sinkproof_exact_set(b));
    if (variant->star != SINKPROOF_STAR_KEY) return true;
    double *k_d = calloc(3 * head->dim, sizeof *k_d);
    if (k_d == NULL) return false;
    for (size_t d = 0; d < head->dim; d++)
        if (variant->star_dims == 0 || d < variant->star_dims) k_d[d] = head->key_d[d];
    // Every policy uses the reference's feature of k*: it is a constant.
    sinkproof_variant_feature(s->policy, variant, head, k_d, k_d + head->dim);
    double terms = sinkproof_score_terms(s, head->dim, score_width(variant, head));
    bool fine = row_times(s, 1, head->dim, terms, q_d, k_d, out);
    if (fine)
        *out = sinkproof_honest_at(s, AT_A8,
                                   sinkproof_honest_score(s, score_width(variant, head), *out));
    free(k_d);
    return fine;
}

sinkproof_honest sinkproof_honest_variant_biased(const sinkproof_setting *s, size_t dim,
                                                 sinkproof_honest score, double bias) {
    // The bias may be the first term of the sum of products, and then passes each of its roundings.
    double error = sinkproof_gamma((double)dim + 3, s->u) * fabs(bias);
    sinkproof_honest x = sinkproof_honest_add(score, sinkproof_exact_set(bias));
    return sinkproof_honest_at(s, AT_A6, set_widened(x, s->u, error + flush_threshold(s)));
}

bool sinkproof_honest_variant_scores(const sinkproof_setting *s, const sinkproof_variant *variant,
                                     const sinkproof_variant_head *head, size_t i, size_t keys,
                                     const bool *seen_j, const double *q_d, const double *k_jd,
                                     sinkproof_honest *s_j) {
    bool biased = variant->places == SINKPROOF_PLACES_RELATIVE ||
                  variant->places == SINKPROOF_PLACES_BUCKET ||
                  variant->places == SINKPROOF_PLACES_ALIBI;
    double terms = sinkproof_score_terms(s, head->dim, score_width(variant, head));
    if (!row_times(s, keys, head->dim, terms, q_d, k_jd, s_j)) return false;
    for (size_t j = 0; j < keys; j++) {
        s_j[j] = sinkproof_honest_score(s, score_width(variant, head), s_j[j]);
        if (biased) { // the bias, its rounding, and the sum's
            double bias = place_bias(variant, head, i > j ? i - j : 0);
            s_j[j] = sinkproof_honest_add(s_j[j], sinkproof_exact_set(bias));
            s_j[j] = set_widened(s_j[j], s->u, s->u * fabs(bias) + flush_threshold(s));
            s_j[j] = sinkproof_honest_at(s, AT_A6, s_j[j]);
        }
        if (!seen_j[j]) s_j[j] = sinkproof_exact_set(0);
    }
    s_j[keys] = sinkproof_exact_set(0);
    return !seen_j[keys] || sinkproof_honest_variant_star(s, variant, head, q_d, &s_j[keys]);
}

bool sinkproof_honest_variant_values(const sinkproof_setting *s, const sinkproof_variant *variant,
                                     const sinkproof_variant_head *head, size_t keys,
                                     const double *alpha_j, const double *v_jd,
                                     sinkproof_honest *o_d) {
    // Two more terms: the star's value, and the bias of all rows.
    size_t dim = head->dim, cols = keys + 2;
    double *v_dj = malloc((dim * cols + cols) * sizeof *v_dj);
    if (v_dj == NULL) return false;
    double *weight_j = v_dj + dim * cols;
    memcpy(weight_j, alpha_j, (keys + 1) * sizeof *weight_j);
    weight_j[keys + 1] = 1;
    for (size_t d = 0; d < dim; d++) {
        for (size_t j = 0; j < keys; j++) v_dj[d * cols + j] = v_jd[j * dim + d];
        v_dj[d * cols + keys] = star_value(variant, head, d);
        v_dj[d * cols + keys + 1] = variant->value_bias ? head->value_d[d] : 0;
    }
    bool fine = row_times(s, dim, cols, (double)cols, weight_j, v_dj, o_d);
    for (size_t d = 0; fine && d < dim; d++)
        o_d[d] = sinkproof_honest_at(s, AT_A11, sinkproof_honest_inside(s, o_d[d]));
    free(v_dj);
    return fine;
}

// f(x) = W2 max(W1 x, 0), each product a sum in any order.
static bool learned_feature(const sinkproof_setting *s, const sinkproof_variant_head *head,
                            const double *x_d, sinkproof_honest *f_d) {
    size_t dim = head->dim;
    sinkproof_honest *inner_d = malloc(dim * sizeof *inner_d),
                     *w = sets_of_numbers(head->mlp_2_dd, dim * dim);
    bool fine = inner_d != NULL && w != NULL &&
                row_times(s, dim, dim, (double)dim, x_d, head->mlp_1_dd, inner_d);
    for (size_t d = 0; fine && d < dim; d++) {
        inner_d[d] = sinkproof_honest_clamp(sinkproof_honest_inside(s, inner_d[d]), 0, INFINITY);
        inner_d[d] = sinkproof_honest_at(s, AT_A4, inner_d[d]);
    }
    if (fine) {
        sinkproof_planes one = sinkproof_planes_new(inner_d, 1, dim, dim);
        sinkproof_planes many = sinkproof_planes_new(w, dim, dim, dim);
        fine = sinkproof_honest_products(s, &one, &many, NULL, NULL, f_d, dim);
        sinkproof_planes_free(&one);
        sinkproof_planes_free(&many);
    }
    for (size_t d = 0; fine && d < dim; d++)
        f_d[d] = sinkproof_honest_at(s, AT_A4, sinkproof_honest_inside(s, f_d[d]));
    free(inner_d);
    free(w);
    return fine;
}

bool sinkproof_honest_variant_feature(const sinkproof_setting *s, const sinkproof_variant *variant,
                                      const sinkproof_variant_head *head, const double *x_d,
                                      sinkproof_honest *f_d) {
    const sinkproof_variant elu = {.similarity = SINKPROOF_SIMILARITY_ELU_PLUS_ONE};
    if (variant->feature == SINKPROOF_FEATURE_MLP) return learned_feature(s, head, x_d, f_d);
    for (size_t d = 0; d < head->dim; d++) {
        f_d[d] = sinkproof_exact_set(x_d[d]);
        if (variant->feature == SINKPROOF_FEATURE_ELU_PLUS_ONE)
            f_d[d] = sinkproof_honest_at(s, AT_A4, similarity_set(s, &elu, f_d[d]));
    }
    return true;
}

// An engine may store a gate like its results, or keep it as computed.
static sinkproof_honest maybe_rounded(const sinkproof_setting *s, sinkproof_honest x) {
    return sinkproof_honest_hull(x, sinkproof_honest_at(s, AT_A11, x));
}

sinkproof_honest sinkproof_honest_variant_gate(const sinkproof_setting *s, double g) {
    const sinkproof_variant sigmoid = {.similarity = SINKPROOF_SIMILARITY_SIGMOID};
    return maybe_rounded(s, similarity_set(s, &sigmoid, sinkproof_exact_set(g)));
}

sinkproof_honest sinkproof_honest_variant_gated(const sinkproof_setting *s, double o,
                                                sinkproof_honest gate) {
    sinkproof_honest x = sinkproof_honest_mul(sinkproof_exact_set(o), gate);
    return maybe_rounded(s, set_widened(x, s->u, flush_threshold(s)));
}
