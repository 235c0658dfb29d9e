// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums that round to a format of their own (bound.accumulator), in one of two ways.
//
// Fixed: the order is known, ascending, and a block that shares a scale is summed separately first.
// Each step is monotone in the sum so far and in the term, so it is applied to the ends of both,
// and the set stays a few numbers wide for a sum of any length. Only the arithmetic inside one step
// is open: FMA or a separately rounded product, and a first rounding to the inner format.
//
// Optional: the order is unknown, and so is the number of operations that round. The set is that of
// a sum in the narrow format, n u wide; where n u reaches 1 nothing is known. The roundings are not
// centred (a term below half a step of the running sum is lost every time), so no odds are claimed:
// the likely set is the worst case.
#include "proofs/bounds/running.h"

#include "ref/operands.h"

#include <stdlib.h>
#include <string.h>

sinkproof_accumulator sinkproof_accumulator_at(const sinkproof_policy *policy, sinkproof_point term,
                                               sinkproof_point acc) {
    return (sinkproof_accumulator){.term = policy->at[term], .acc = policy->at[acc]};
}

bool sinkproof_is_running(const sinkproof_accumulator *a) {
    return a->acc.format != SINKPROOF_REAL && a->acc.format < SINKPROOF_OPERAND_FORMATS &&
           !a->acc.optional;
}

//> bound.accumulator
// The setting of a sum in which each addition rounds twice in succession: to the format inside and
// to the accumulator's format.
sinkproof_setting setting_narrowed(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                   sinkproof_policy *narrow) {
    if (a->acc.format == SINKPROOF_TENSOR_CORE) {
        sinkproof_setting unit = *s;
        unit.core = a->acc;
        return unit;
    }
    double u =
        fmax(sinkproof_unit_roundoff(a->acc.format), sinkproof_unit_roundoff(a->term.format));
    if (sinkproof_is_running(a) || u <= s->u) return *s;
    bool acc = sinkproof_unit_roundoff(a->acc.format) == u;
    *narrow = *s->policy;
    narrow->inside = acc ? a->acc.format : a->term.format;
    return (sinkproof_setting){.policy = narrow,
                               .u = sinkproof_add_up(sinkproof_mul_up(u, 1 + s->u), s->u),
                               .odds = s->odds};
}
//< bound.accumulator

// ---- a known order

//> bound.accumulator
// The format inside may or may not round: returns the hull of both.
static number_span span_maybe_rounded(const sinkproof_setting *s, number_span x) {
    sinkproof_format format = s->policy->inside;
    return (number_span){smaller_double(x.lo, honest_round_number(format, x.lo)),
                         larger_double(x.hi, honest_round_number(format, x.hi)), x.mid};
}

static number_span span_rounded(sinkproof_rounding at, number_span x) {
    number_span y = {honest_round_number(at.format, x.lo), honest_round_number(at.format, x.hi),
                     honest_round_number(at.format, x.mid)};
    return at.optional ? (number_span){smaller_double(x.lo, y.lo), larger_double(x.hi, y.hi), y.mid}
                       : y;
}

// A result below the smallest normal number may be flushed to zero.
static number_span span_flushed(double tiny, number_span x) {
    bool may = x.lo < tiny && x.hi > -tiny;
    return may ? (number_span){fmin(x.lo, 0), fmax(x.hi, 0), x.mid} : x;
}

number_span running_plus(const sinkproof_setting *s, const sinkproof_accumulator *a,
                         number_span sum, number_span term) {
    number_span exact = {add_down(sum.lo, term.lo), sinkproof_add_up(sum.hi, term.hi),
                         sum.mid + term.mid};
    return span_flushed(flushed_below(s), span_rounded(a->acc, span_maybe_rounded(s, exact)));
}
//< bound.accumulator

static number_span span_times(const sinkproof_setting *s, sinkproof_rounding at, number_span x,
                              number_span y) {
    double tiny = flushed_below(s);
    number_span p = {0, 0, x.mid * y.mid};
    product_ends(x.lo, x.hi, y.lo, y.hi, &p.lo, &p.hi);
    bool read_as_zero = (x.lo < tiny && x.hi > -tiny) || (y.lo < tiny && y.hi > -tiny);
    return span_flushed(read_as_zero ? INFINITY : tiny, span_rounded(at, span_maybe_rounded(s, p)));
}

number_span running_span_product(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                 number_span x, number_span y) {
    return span_times(s, a->term, x, y);
}

number_span running_scaled(const sinkproof_setting *s, const sinkproof_accumulator *a,
                           number_span sum, number_span x) {
    return span_times(s, a->acc, sum, x);
}

sinkproof_honest running_sum_set(number_span sum) {
    if (!isfinite(sum.lo) || !isfinite(sum.hi)) return sinkproof_unknown_set(0);
    double width = sum.hi - sum.lo, var = width * width / 4;
    return (sinkproof_honest){sum.lo, sum.hi, sum.lo, sum.hi, sum.mid, var, var, width, 0};
}

// The factors of a sum: x_k and y_k, each with its radius (NULL: known exactly); scale_b multiplies
// the sums of the blocks (NULL: the y_k include it).
typedef struct factors {
    const double *x, *x_off, *y, *y_off;
    const float *scale_b;
    size_t n;
} factors;

static number_span span_around(const double *x, const double *off, size_t k) {
    double r = off != NULL ? off[k] : 0;
    return (number_span){add_down(x[k], -r), sinkproof_add_up(x[k], r), x[k]};
}

static sinkproof_honest accumulate_terms(const sinkproof_accumulator *a, const sinkproof_setting *s,
                                         const factors *f) {
    size_t together = a->together > 0 ? a->together : f->n;
    number_span sum = {0, 0, 0};
    for (size_t first = 0; first < f->n; first += together) {
        number_span part = {0, 0, 0};
        for (size_t k = first; k < f->n && k < first + together; k++) {
            number_span x = span_around(f->x, f->x_off, k), y = span_around(f->y, f->y_off, k);
            part = running_plus(s, a, part, running_span_product(s, a, x, y));
        }
        if (f->scale_b != NULL) {
            double scale = (double)f->scale_b[first / together];
            part = running_scaled(s, a, part, (number_span){scale, scale, scale});
        }
        sum = together < f->n ? running_plus(s, a, sum, part) : part;
    }
    return running_sum_set(sum);
}

static const double *plane_row(const double *plane, size_t row, size_t cols) {
    return plane != NULL ? plane + row * cols : NULL;
}

// A scale is a power of two: it matters whether a product includes it or the block's sum is
// multiplied by it only near the end of the format's range, in float16.
static bool scale_affects_sums(const sinkproof_accumulator *a) {
    return sinkproof_format_underflow(a->acc.format) > sinkproof_format_underflow(SINKPROOF_F32) ||
           sinkproof_format_underflow(a->term.format) > sinkproof_format_underflow(SINKPROOF_F32);
}

// The hull over both orders, for the rows of x and one row of a weight.
static void accumulate_row(const sinkproof_setting *s, const sinkproof_accumulator *a,
                           const sinkproof_planes *x, const float *scale_b, double *w_c,
                           sinkproof_honest *out, size_t out_stride) {
    size_t cols = x->cols;
    for (size_t i = 0; i < x->rows; i++) {
        factors f = {
            plane_row(x->mid, i, cols), plane_row(x->worst, i, cols), w_c, NULL, NULL, cols};
        out[i * out_stride] = accumulate_terms(a, s, &f);
    }
    if (scale_b == NULL) return;
    for (size_t c = 0; c < cols; c++) w_c[c] /= (double)scale_b[c / a->together];
    for (size_t i = 0; i < x->rows; i++) {
        factors f = {
            plane_row(x->mid, i, cols), plane_row(x->worst, i, cols), w_c, NULL, scale_b, cols};
        out[i * out_stride] =
            sinkproof_honest_hull(out[i * out_stride], accumulate_terms(a, s, &f));
    }
}

bool honest_running(const sinkproof_setting *s, const sinkproof_accumulator *a,
                    const sinkproof_planes *x, const sinkproof_weight_rows *w,
                    sinkproof_honest *out) {
    size_t cols = x->cols;
    sinkproof_accumulator stored = *a;
    stored.together = sinkproof_terms_together(w->w);
    bool apart = stored.together < cols && scale_affects_sums(a);
    double *w_c = malloc((cols + 1) * sizeof *w_c);
    float *scale_b = malloc((cols + 1) * sizeof *scale_b);
    bool fine = x->mid != NULL && w_c != NULL && scale_b != NULL;
    for (size_t r = 0; fine && r < w->rows; r++) {
        sinkproof_matrix_row(w->w, w->first + r, w_c);
        bool scaled = apart && sinkproof_matrix_scales(w->w, w->first + r, scale_b);
        accumulate_row(s, &stored, x, scaled ? scale_b : NULL, w_c, out + r, w->rows);
    }
    free(w_c), free(scale_b);
    return fine;
}

// ---- products of two rows of planes

static void accumulate_products(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                const sinkproof_planes *x, const sinkproof_planes *y,
                                sinkproof_honest *out, size_t out_stride) {
    size_t cols = x->cols;
    for (size_t i = 0; i < x->rows; i++)
        for (size_t r = 0; r < y->rows; r++) {
            factors f = {plane_row(x->mid, i, cols),
                         plane_row(x->worst, i, cols),
                         plane_row(y->mid, r, cols),
                         plane_row(y->worst, r, cols),
                         NULL,
                         cols};
            out[i * out_stride + r] = accumulate_terms(a, s, &f);
        }
}

// A sum of n weighted values that is not yet divided by the sum of the weights may be n times the
// largest value. Beyond the accumulator's largest number nothing is known.
static void unbound_where_overflowing(const sinkproof_setting *own, const sinkproof_planes *y,
                                      size_t rows, const double *twice_i, sinkproof_honest *out,
                                      size_t out_stride) {
    double most = 0;
    for (size_t k = 0; k < y->rows * y->cols; k++)
        most = fmax(most, fabs(y->mid[k]) + (y->worst != NULL ? y->worst[k] : 0));
    for (size_t i = 0; i < rows; i++)
        for (size_t r = 0; !(twice_i[i] * most <= setting_largest(own)) && r < y->rows; r++)
            out[i * out_stride + r] = sinkproof_unknown_set(0);
}

// Each of n terms may be followed by a rescaling: 2 n roundings, of which the last is the division.
static bool rescaled_products(const sinkproof_setting *own, const sinkproof_planes *x,
                              const sinkproof_planes *y, const double *terms_i,
                              sinkproof_honest *out, size_t out_stride) {
    double *twice_i = malloc((x->rows + 1) * sizeof *twice_i);
    for (size_t i = 0; twice_i != NULL && i < x->rows; i++)
        twice_i[i] = 2 * (terms_i != NULL ? terms_i[i] : (double)x->cols);
    bool fine =
        twice_i != NULL && sinkproof_honest_products(own, x, y, twice_i, NULL, out, out_stride);
    if (fine) unbound_where_overflowing(own, y, x->rows, twice_i, out, out_stride);
    free(twice_i);
    return fine;
}

bool sinkproof_honest_accumulated(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                  const sinkproof_planes *x, const sinkproof_planes *y,
                                  const double *terms_i, bool rescaled, sinkproof_honest *out,
                                  size_t out_stride) {
    sinkproof_policy narrow;
    sinkproof_setting own = setting_narrowed(s, a, &narrow);
    if (x->mid == NULL || y->mid == NULL) return false;
    if (sinkproof_is_running(a)) {
        accumulate_products(s, a, x, y, out, out_stride);
        return true;
    }
    return own.u > s->u && rescaled
               ? rescaled_products(&own, x, y, terms_i, out, out_stride)
               : sinkproof_honest_products(&own, x, y, terms_i, NULL, out, out_stride);
}
