// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of attention as they are meant: how often the sink counts, and the keys in parts that
// are merged.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// x times a factor that was fitted: any number within its error.
sinkproof_honest set_times(const sinkproof_attending *m, sinkproof_honest x, double times) {
    x = sinkproof_honest_mul(x, sinkproof_exact_set(times));
    return m->times_error > 0 ? sinkproof_honest_declared(x, m->times_error, 0) : x;
}

// A number that may be stored like the scores before it goes on.
static sinkproof_honest set_stored(const sinkproof_setting *s, sinkproof_honest z) {
    sinkproof_format as = s->policy->at[AT_A6].format;
    if (as >= SINKPROOF_FORMATS || as == SINKPROOF_REAL) return z;
    return set_hull(z, sinkproof_honest_declared(z, sinkproof_unit_roundoff(as), 0));
}

// limit tanh(z / limit), which grows with z.
static sinkproof_honest set_capped(const sinkproof_setting *s, const sinkproof_attending *m,
                                   sinkproof_honest z) {
    double limit = m->score_limit, error = fmax(m->times_error, 0x1p-50);
    double worst = fmax(limit * tanh(z.hi / limit) - limit * tanh(z.mid / limit),
                        limit * tanh(z.mid / limit) - limit * tanh(z.lo / limit));
    double likely = fmax(limit * tanh(z.likely_hi / limit) - limit * tanh(z.mid / limit),
                         limit * tanh(z.mid / limit) - limit * tanh(z.likely_lo / limit));
    // the derivative with respect to the limit is at most that with respect to z times z / limit
    z = sinkproof_set_around(limit * tanh(z.mid / limit), worst, likely, z.var, z.bias);
    z = sinkproof_honest_declared(z, error, 0);
    return sinkproof_honest_declared(sinkproof_honest_roundings(s, z, 3), 4 * s->u, 0);
}

sinkproof_honest meant_score(const judge_pass *pass, const sinkproof_setting *s,
                             const sinkproof_attending *m, const score_place *at,
                             sinkproof_honest product) {
    const sinkproof_rule_place place = {at->layer, at->head, pass->config->n_heads, at->row};
    double times = m->score_times * sinkproof_rule_factor(m->score_rule, m->rule_number, &place);
    double limit = m->score_limit;
    double plus = m->score_plus -
                  sinkproof_attending_slope(m, pass->config->n_heads, at->head, at->row, at->key);
    if (times == 1 && limit == 0 && m->score_plus == 0 && m->score_slope == 0)
        return sinkproof_honest_score(s, pass->config->head_dim, product);
    open_setting open;
    open_rounding(&open, s, AT_A6);
    sinkproof_honest z = sinkproof_honest_score(&open.s, pass->config->head_dim, product);
    z = set_times(m, z, times);
    if (m->score_rule != SINKPROOF_RULE_NONE) z = sinkproof_honest_declared(z, 4 * s->u, 0);
    if (frexp(times, &(int){0}) != 0.5) z = sinkproof_honest_roundings(s, z, 2);
    // a score that is stored before more is done to it is rounded more often: before its factor, a
    // sum or a cap, and a cap's quotient and hyperbolic tangent too
    if (times != 1 || plus != 0 || limit > 0) z = set_hull(z, sinkproof_honest_at(s, AT_A6, z));
    if (limit > 0 && m->limit_soft)
        z = set_stored(s, set_capped(s, m, set_stored(s, z)));
    else if (limit > 0)
        z = sinkproof_honest_clamp(z, -limit, limit);
    if (plus != 0) {
        double error = (m->times_error + 4 * s->u) * fabs(plus);
        sinkproof_honest by = sinkproof_set_around(plus, error, error, 0, error);
        by = set_stored(s, by);
        z = sinkproof_honest_inside(s, sinkproof_honest_add(z, by));
    }
    return sinkproof_honest_at(s, AT_A6, sinkproof_honest_inside(s, z));
}

sinkproof_honest score_counted(const sinkproof_setting *s, const sinkproof_attending *m,
                               double times, sinkproof_honest z) {
    double by = log(times), error = 0x1p-50 * (fabs(by) + 1);
    if (m->logits_times != 1)
        z = set_stored(s, sinkproof_honest_roundings(s, set_times(m, z, m->logits_times), 2));
    if (times == 1) return z;
    z = sinkproof_honest_add(z, sinkproof_set_around(by, error, error, 0, 0));
    return sinkproof_honest_declared(z, 0, 2 * s->u * (fabs(by) + 1));
}

// How often the sink's exponential is counted where the maximum is not subtracted from it.
static sinkproof_honest sink_unshifted(const sinkproof_meaning *m, size_t n,
                                       const sinkproof_honest *z_j, const sinkproof_honest *b) {
    sinkproof_honest top = m->sink_share == SINKPROOF_SINK_UNSHIFTED ? *b : z_j[0];
    for (size_t j = 0; j < n; j++) {
        top.lo = fmax(top.lo, z_j[j].lo), top.hi = fmax(top.hi, z_j[j].hi);
        top.likely_lo = fmax(top.likely_lo, z_j[j].likely_lo);
        top.likely_hi = fmax(top.likely_hi, z_j[j].likely_hi);
        top.mid = fmax(top.mid, z_j[j].mid);
    }
    const double libm = 0x1p-50; // error of this machine's exp
    return (sinkproof_honest){.lo = exp(top.lo) * (1 - libm),
                              .hi = exp(top.hi) * (1 + libm),
                              .likely_lo = exp(top.likely_lo) * (1 - libm),
                              .likely_hi = exp(top.likely_hi) * (1 + libm),
                              .mid = exp(top.mid)};
}

// How often it is counted where its maximum is another one: the exponential of what the maximum of
// all is larger. What is the maximum of both is exactly that.
static sinkproof_honest sink_under_other_top(const sinkproof_summing *summing,
                                             const keys_read *keys, sinkproof_honest b) {
    sinkproof_honest all = b, own = b;
    size_t from, to;
    sinkproof_top_keys(summing, keys->first, keys->n, &from, &to);
    bool keys_alone = summing->top_of_keys && keys->n > 0;
    bool of_keys = to > from;
    if (keys_alone) all = keys->z_j[0];
    if (keys_alone && of_keys) own = keys->z_j[from];
    for (size_t j = 0; j < keys->n; j++) {
        const sinkproof_honest *z = &keys->z_j[j];
        if (z->mid > all.mid) all = *z;
        if (of_keys && j >= from && j < to && z->mid > own.mid) own = *z;
    }
    if (all.mid == own.mid) return sinkproof_exact_set(1);
    sinkproof_honest x = sinkproof_honest_sub(all, own);
    double mid = exp(x.mid), error = fmax(exp(x.hi) - mid, mid - exp(x.lo));
    sinkproof_honest y = sinkproof_set_around(mid, error, error, x.var * mid * mid, error);
    return sinkproof_honest_declared(y, 0x1p-50 * (fabs(x.mid) + 1), 0);
}

// The weights where the sink counts as much as the largest of all: alpha / (1 + alpha_top), of the
// keys alone. A sink that is the largest itself is as defined.
static bool weights_with_one_more(const sinkproof_summing *summing, const sinkproof_setting *s,
                                  const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                                  double *common) {
    size_t n = keys->n, top = 0;
    for (size_t j = 0; j < n; j++)
        if (keys->z_j[j].mid > keys->z_j[top].mid) top = j;
    if (!summing->top_of_keys && b.mid >= keys->z_j[top].mid)
        return sinkproof_honest_softmax(s, AT_A9, n, keys->z_j, b, a_j, common);
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, n, keys->z_j, sinkproof_exact_set(-INFINITY), a_j,
                                  common))
        return false;
    sinkproof_honest more = a_j[top];
    sinkproof_honest by = set_inverse(sinkproof_honest_add(sinkproof_exact_set(1), more));
    a_j[n] = more;
    for (size_t j = 0; j <= n; j++) {
        sinkproof_honest a = sinkproof_honest_mul(a_j[j], by);
        a_j[j] = sinkproof_honest_at(s, AT_A9, sinkproof_honest_roundings(s, a, 3));
    }
    return true;
}

// The weights without a sink in the sum. The subtracted maximum may still be the sink's logit; the
// amount by which it exceeds the scores adds to the error of each exponent.
static bool weights_without_sink(const sinkproof_setting *s, size_t n, const sinkproof_honest *z_j,
                                 sinkproof_honest b, bool own, sinkproof_honest *a_j,
                                 double *common) {
    sinkproof_honest sink = sinkproof_exact_set(0);
    double top = -INFINITY;
    for (size_t j = 0; j < n; j++) top = fmax(top, z_j[j].lo);
    if (own && !sinkproof_honest_softmax(s, AT_A9, n, z_j, b, a_j, common)) return false;
    if (own) sink = a_j[n];
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, n, z_j, sinkproof_exact_set(-INFINITY), a_j,
                                  common))
        return false;
    double more = b.hi > top ? 2 * s->u * (b.hi - top + 1) : 0;
    for (size_t j = 0; j < n; j++)
        a_j[j] = sinkproof_honest_at(s, AT_A9, sinkproof_honest_declared(a_j[j], more, 0));
    a_j[n] = sink;
    return true;
}

// alpha / (1 + (count - 1) alpha_sink): the weights when the sink's exponential counts `count`
// times.
static bool weights_with_sinks(const sinkproof_setting *s, size_t n, const sinkproof_honest *z_j,
                               sinkproof_honest b, sinkproof_honest count, sinkproof_honest *a_j,
                               double *common) {
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, n, z_j, b, a_j, common)) return false;
    sinkproof_honest sink = a_j[n];
    sinkproof_honest more = sinkproof_honest_sub(count, sinkproof_exact_set(1));
    sinkproof_honest sum =
        sinkproof_honest_add(sinkproof_exact_set(1), sinkproof_honest_mul(more, sink));
    sinkproof_honest by = set_inverse(sum);
    for (size_t j = 0; j <= n; j++) {
        sinkproof_honest a = sinkproof_honest_mul(a_j[j], by);
        if (j == n) a = sinkproof_honest_mul(a, count);
        a_j[j] = sinkproof_honest_at(s, AT_A9, sinkproof_honest_roundings(s, a, 3));
    }
    return true;
}

// 1 + sum_k (sums_k - 1) alpha_k, or the same as alpha_sink + sum_k sums_k alpha_k where little is
// left of the 1. *more: its roundings.
static sinkproof_honest counted_sum(const keys_read *keys, const sinkproof_honest *a_e,
                                    double *more) {
    sinkproof_honest over = sinkproof_exact_set(1), of = a_e[keys->n];
    double changed = 0;
    for (size_t e = 0; e < keys->n; e++) {
        double sums = keys->sums_e[e];
        of = sinkproof_honest_add(of, sinkproof_honest_mul(a_e[e], sinkproof_exact_set(sums)));
        if (sums == 1) continue;
        over =
            sinkproof_honest_add(over, sinkproof_honest_mul(a_e[e], sinkproof_exact_set(sums - 1)));
        changed++;
    }
    bool little = over.mid < 0.5;
    *more = little ? (double)keys->n : changed;
    return little ? of : over;
}

// alpha_e times_e over that sum: the weights where a key counts more than once in the sum, or is
// not in it. Each exponential is the same, whatever rounds it.
static bool weights_of_counted_keys(const sinkproof_setting *s, const keys_read *keys,
                                    sinkproof_honest b, sinkproof_honest *a_e, double *common,
                                    double error) {
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, keys->n, keys->z_j, b, a_e, common)) return false;
    double more; // roundings: of the sum's terms, and of the quotient
    sinkproof_honest sum = counted_sum(keys, a_e, &more);
    more += 3;
    if (!(sum.lo > 0)) return true; // nothing divides: as defined
    sinkproof_honest by = set_inverse(sum);
    for (size_t e = 0; e <= keys->n; e++) {
        sinkproof_honest a = sinkproof_honest_mul(a_e[e], by);
        if (e < keys->n) a = sinkproof_honest_mul(a, sinkproof_exact_set(keys->times_e[e]));
        if (error > 0) a = sinkproof_honest_declared(a, error, 0); // of a number that was fitted
        a_e[e] = sinkproof_honest_at(s, AT_A9, sinkproof_honest_roundings(s, a, more));
    }
    return true;
}

bool meant_weights(const judge_pass *pass, const sinkproof_attending *m, const sinkproof_setting *s,
                   const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                   double *common) {
    const sinkproof_meaning *of = pass->meaning;
    double count = m->sink_count * (m->sink_per_part ? (double)keys->parts : 1);
    bool unshifted = of->sink_share == SINKPROOF_SINK_UNSHIFTED ||
                     of->sink_share == SINKPROOF_SINK_UNSHIFTED_KEYS;
    size_t n = keys->n;
    if (m->merging.on) return weights_merged(m, s, keys, b, a_j, common);
    if (m->summing.sink_top == SINKPROOF_TOP_OWN)
        return weights_with_one_more(&m->summing, s, keys, b, a_j, common);
    if (m->summing.sink_top != SINKPROOF_TOP_ALL)
        return weights_with_sinks(s, n, keys->z_j, b, sink_under_other_top(&m->summing, keys, b),
                                  a_j, common);
    if (m->weighing != SINKPROOF_WEIGH_SOFTMAX || m->sum_plus != 0 || m->zero_keys != 0 ||
        m->summing.format != SINKPROOF_REAL)
        return weights_otherwise(m, s, keys, b, a_j, common);
    if (m->renormalised || (!unshifted && of->sink_share != SINKPROOF_SINK_ONCE))
        return weights_without_sink(s, n, keys->z_j, b,
                                    of->sink_share == SINKPROOF_SINK_RENORMALISED, a_j, common);
    if (unshifted)
        return weights_with_sinks(s, n, keys->z_j, b, sink_unshifted(of, n, keys->z_j, &b), a_j,
                                  common);
    if (count == 0) b = sinkproof_exact_set(-INFINITY);
    if (keys->times_e != NULL)
        return weights_of_counted_keys(s, keys, b, a_j, common, m->times_error);
    if (count == 0 || count == 1)
        return sinkproof_honest_softmax(s, AT_A9, n, keys->z_j, b, a_j, common);
    return weights_with_sinks(s, n, keys->z_j, b, sinkproof_exact_set(count), a_j, common);
}

void gate_once_more(const sinkproof_setting *s, size_t n, sinkproof_honest *a_j) {
    sinkproof_honest gate = sinkproof_honest_sub(sinkproof_exact_set(1), a_j[n]);
    for (size_t j = 0; j < n; j++)
        a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], gate), 4);
}
