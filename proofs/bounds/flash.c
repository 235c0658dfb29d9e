// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Values weighted under a running maximum, with a sum that rounds to a format of its own in a known
// order (bound.accumulator, bound.form-running-max). Keys ascend. At each score above all earlier
// ones the sum is multiplied by e^(m - m') and rounded; then the value times e^(s - m') is added,
// and the sum is rounded again. The sink is added only to the sum of the weights, at the end, and
// the first sum is divided by the second. As in accumulators.c, the ends of the set follow the same
// steps as the sum.
#include "proofs/bounds/running.h"

#include <stdlib.h>

// The effect of a key on the sum: it is multiplied by `scale` (certainly, possibly, in the
// emulation), and the key's value times `weight` is added.
typedef struct key_step {
    number_span scale, weight;
    bool rescales, may_rescale, mid_rescales;
} key_step;

// e^x in an engine, for x within [lo, hi]: the difference is rounded, and in base 2 so are the
// products with log2(e); the exponential has the policy's declared error.
static number_span span_exponential(const sinkproof_setting *s, number_span x, double size) {
    double far = fmax(fabs(x.lo), fabs(x.hi)), u = s->u, off = far * (u + 0x1p-50);
    if (sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_A9, SINKPROOF_A9_BASE_2))
        off += sinkproof_gamma(4, u) * (far + size);
    double ulps = s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * far;
    double relative = 2 * ulps * u + 0x1p-50;
    double lo = exp(x.lo - off) * (1 - relative), hi = exp(x.hi + off) * (1 + relative);
    lo -= lo < flushed_below(s) ? lo : 0x1p-149;
    return (number_span){fmax(lo, 0), hi + 0x1p-148, exp(x.mid)};
}

static number_span span_minus(number_span x, number_span y) {
    return (number_span){add_down(x.lo, -y.hi), sinkproof_add_up(x.hi, -y.lo), x.mid - y.mid};
}

static const number_span one = {1, 1, 1};

// The step of key z after the maximum m, which it may raise.
static key_step key_step_after(const sinkproof_setting *s, number_span z, number_span *m) {
    double size = fmax(fmax(fabs(z.lo), fabs(z.hi)), isfinite(m->lo) ? fabs(m->lo) : 0);
    bool first = m->hi == -INFINITY, above = first || z.lo > m->hi;
    bool may = above || z.hi > m->lo;
    key_step step = {one, one, above, may, z.mid > m->mid};
    if (first) step.scale = (number_span){0, 0, 0};
    if (may && !first) step.scale = span_exponential(s, span_minus(*m, z), size);
    if (!above) step.weight = span_exponential(s, span_minus(z, *m), size);
    if (may && !above) // nearly equal: one of the factors is 1
        step.scale.hi = fmax(step.scale.hi, 1), step.weight.hi = fmax(step.weight.hi, 1);
    if (step.mid_rescales) step.weight.mid = 1;
    *m = (number_span){fmax(m->lo, z.lo), fmax(m->hi, z.hi), fmax(m->mid, z.mid)};
    return step;
}

// The sum of the weights in the inner format: each step rounds.
static number_span add_weight(const sinkproof_setting *s, number_span z, const key_step *k) {
    double off = sinkproof_gamma(3, s->u);
    double lo = z.lo * (k->may_rescale ? fmin(k->scale.lo, k->rescales ? INFINITY : 1) : 1);
    double hi = z.hi * (k->rescales ? k->scale.hi : k->may_rescale ? fmax(k->scale.hi, 1) : 1);
    return (number_span){(lo + k->weight.lo) * (1 - off), (hi + k->weight.hi) * (1 + off),
                         z.mid * (k->mid_rescales ? k->scale.mid : 1) + k->weight.mid};
}

// One coordinate over all keys.
static number_span run_coordinate(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                  size_t n, const key_step *step_j, const number_span *v_j) {
    number_span sum = {0, 0, 0};
    for (size_t j = 0; j < n; j++) {
        const key_step *k = &step_j[j];
        if (k->may_rescale) {
            number_span scaled = running_scaled(s, a, sum, k->scale);
            if (!k->rescales)
                scaled.lo = fmin(scaled.lo, sum.lo), scaled.hi = fmax(scaled.hi, sum.hi);
            if (!k->mid_rescales) scaled.mid = sum.mid;
            sum = scaled;
        }
        sum = running_plus(s, a, sum, running_span_product(s, a, k->weight, v_j[j]));
    }
    return sum;
}

// The effect of the sink on both sums at the end: it may exceed the maximum.
static void join_sink(const sinkproof_setting *s, number_span b, number_span m, number_span *z,
                      number_span *sum_scale) {
    *sum_scale = one;
    if (b.hi == -INFINITY) return;
    key_step step = key_step_after(s, b, &m);
    *z = add_weight(s, *z, &step);
    if (step.may_rescale) *sum_scale = step.scale;
    if (!step.mid_rescales) sum_scale->mid = 1;
}

// sum scale / z, with three roundings if an engine multiplies by the reciprocal, or with the error
// that the policy declares.
static sinkproof_honest span_quotient(const sinkproof_setting *s, number_span sum,
                                      number_span scale, number_span z) {
    double off = quotients_error(s, 4, 2, 1), least = scale.lo / z.hi, most = scale.hi / z.lo;
    double lo = sum.lo * (sum.lo < 0 ? most * (1 + off) : least * (1 - off));
    double hi = sum.hi * (sum.hi < 0 ? least * (1 - off) : most * (1 + off));
    double mid = sum.mid * scale.mid / z.mid;
    return running_sum_set((number_span){lo, hi, isfinite(mid) ? mid : 0});
}

static number_span set_span(const sinkproof_honest *x) {
    return (number_span){x->lo, x->hi, x->mid};
}

bool sinkproof_honest_flash(const sinkproof_setting *s, const sinkproof_accumulator *a,
                            const sinkproof_flash *f, sinkproof_honest *o_d) {
    key_step *step_j = malloc((f->n + 1) * sizeof *step_j);
    number_span *v_j = malloc((f->n + 1) * sizeof *v_j), z = {0, 0, 0}, scale;
    number_span m = {-INFINITY, -INFINITY, -INFINITY};
    bool fine = step_j != NULL && v_j != NULL;
    for (size_t j = 0; fine && j < f->n; j++) {
        step_j[j] = key_step_after(s, set_span(&f->z_j[j]), &m);
        z = add_weight(s, z, &step_j[j]);
    }
    join_sink(s, set_span(&f->b), m, &z, &scale);
    for (size_t d = 0; fine && d < f->dim; d++) {
        for (size_t j = 0; j < f->n; j++) v_j[j] = set_span(&f->v_jd[j * f->v_stride + d]);
        o_d[d] = span_quotient(s, run_coordinate(s, a, f->n, step_j, v_j), scale, z);
    }
    free(step_j);
    free(v_j);
    return fine;
}
