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

sinkproof_honest meant_score(const judge_pass *pass, const sinkproof_setting *s,
                             const sinkproof_attending *m, sinkproof_honest product) {
    double times = m->score_times, limit = m->score_limit;
    if (times == 1 && limit == 0) return sinkproof_honest_score(s, pass->config->head_dim, product);
    open_setting open;
    open_rounding(&open, s, AT_A6);
    sinkproof_honest z = sinkproof_honest_score(&open.s, pass->config->head_dim, product);
    z = set_times(m, z, times);
    if (frexp(times, &(int){0}) != 0.5) z = sinkproof_honest_roundings(s, z, 2);
    if (limit > 0) z = sinkproof_honest_clamp(z, -limit, limit);
    return sinkproof_honest_at(s, AT_A6, sinkproof_honest_inside(s, z));
}

sinkproof_honest score_counted(const sinkproof_setting *s, const sinkproof_attending *m,
                               double times, sinkproof_honest z) {
    double by = log(times), error = 0x1p-50 * (fabs(by) + 1);
    if (m->logits_times != 1)
        z = sinkproof_honest_roundings(s, set_times(m, z, m->logits_times), 2);
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

// alpha_e times_e / (1 + sum_k (times_k - 1) alpha_k): the weights where a key counts more than
// once in the sum. Each exponential is the same, whatever rounds it.
static bool weights_of_counted_keys(const sinkproof_setting *s, const keys_read *keys,
                                    sinkproof_honest b, sinkproof_honest *a_e, double *common) {
    sinkproof_honest sum = sinkproof_exact_set(1);
    double more = 3; // roundings: of the sum's further terms, and of the quotient
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, keys->n, keys->z_j, b, a_e, common)) return false;
    for (size_t e = 0; e < keys->n; e++) {
        if (keys->times_e[e] == 1) continue;
        sum = sinkproof_honest_add(
            sum, sinkproof_honest_mul(a_e[e], sinkproof_exact_set(keys->times_e[e] - 1)));
        more++;
    }
    sinkproof_honest by = set_inverse(sum);
    for (size_t e = 0; e <= keys->n; e++) {
        sinkproof_honest a = sinkproof_honest_mul(a_e[e], by);
        if (e < keys->n) a = sinkproof_honest_mul(a, sinkproof_exact_set(keys->times_e[e]));
        a_e[e] = sinkproof_honest_at(s, AT_A9, sinkproof_honest_roundings(s, a, more));
    }
    return true;
}

// ---- merged parts

// A part of the keys, [first, first + n) of those that are read.
typedef struct keys_part {
    size_t first, n;
    bool sink_divides, sink_in_lse;
} keys_part;

static keys_part part_of_keys(const sinkproof_attending *m, const keys_read *keys, size_t part) {
    keys_part p = {.sink_divides = sinkproof_in_part(m->merging.sink_divides, part, keys->parts),
                   .sink_in_lse = sinkproof_in_part(m->merging.sink_in_lse, part, keys->parts)};
    while (p.first < keys->n && keys->part_j[p.first] < part) p.first++;
    while (p.first + p.n < keys->n && keys->part_j[p.first + p.n] == part) p.n++;
    return p;
}

// The natural logarithm of a set of positive numbers, and this machine's error of it.
static sinkproof_honest set_logarithm(sinkproof_honest x) {
    double worst = fmax(log(x.hi) - log(x.mid), log(x.mid) - (x.lo > 0 ? log(x.lo) : -INFINITY));
    double likely = fmax(log(x.likely_hi) - log(x.mid),
                         log(x.mid) - (x.likely_lo > 0 ? log(x.likely_lo) : -INFINITY));
    double libm = 0x1p-50 * (fabs(log(x.mid)) + 1);
    return sinkproof_set_around(log(x.mid), worst + libm, likely + libm, x.var / (x.mid * x.mid),
                                0);
}

// The log-sum-exp of a part, with its sink or without: the largest score less the logarithm of its
// own weight. a_j: room for the weights of the part.
static bool part_log_sum(const sinkproof_setting *s, const keys_read *keys, const keys_part *p,
                         sinkproof_honest b, sinkproof_honest *a_j, sinkproof_honest *lse) {
    const sinkproof_honest *z_j = keys->z_j + p->first;
    double unused;
    size_t top = 0;
    if (!p->sink_in_lse) b = sinkproof_exact_set(-INFINITY);
    if (!sinkproof_honest_softmax(s, AT_A9, p->n, z_j, b, a_j, &unused)) return false;
    for (size_t j = 0; j < p->n; j++)
        if (z_j[j].mid > z_j[top].mid) top = j;
    *lse = sinkproof_honest_sub(z_j[top], set_logarithm(a_j[top]));
    *lse = sinkproof_honest_declared(*lse, 4 * s->u, 4 * s->u);
    *lse = sinkproof_honest_at(s, AT_A9_LSE, *lse);
    return true;
}

// a_j: the weights of keys in parts that are merged by wrong log-sum-exps. The sink's own weight is
// shown by no such engine.
static bool weights_merged(const sinkproof_attending *m, const sinkproof_setting *s,
                           const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                           double *common) {
    const sinkproof_merging *how = &m->merging;
    const sinkproof_honest none = sinkproof_exact_set(-INFINITY);
    sinkproof_honest *l_p = calloc(2 * keys->parts + 1, sizeof *l_p), *w_p = l_p + keys->parts;
    open_setting open;
    bool fine = l_p != NULL;
    open_rounding(&open, s, AT_A9);
    for (size_t p = 0; fine && p < keys->parts; p++) {
        keys_part part = part_of_keys(m, keys, p);
        fine = part_log_sum(&open.s, keys, &part, b, a_j, &l_p[p]);
        l_p[p] = sinkproof_honest_mul(l_p[p], sinkproof_exact_set(how->exponent));
        l_p[p] = sinkproof_honest_declared(l_p[p], 2 * s->u, 0);
    }
    fine = fine && sinkproof_honest_softmax(&open.s, AT_A9, keys->parts, l_p,
                                            how->sink_beside ? b : none, w_p, common);
    for (size_t p = 0; fine && p < keys->parts; p++) {
        keys_part part = part_of_keys(m, keys, p);
        fine = sinkproof_honest_softmax(&open.s, AT_A9, part.n, keys->z_j + part.first,
                                        part.sink_divides ? b : none, a_j + part.first, common);
        for (size_t j = part.first; j < part.first + part.n; j++) {
            a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], w_p[p]), 3);
            a_j[j] = sinkproof_honest_at(s, AT_A9, a_j[j]);
        }
    }
    if (fine) a_j[keys->n] = how->sink_beside ? w_p[keys->parts] : sinkproof_exact_set(0);
    *common = 0;
    free(l_p);
    return fine;
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
    if (m->renormalised || (!unshifted && of->sink_share != SINKPROOF_SINK_ONCE))
        return weights_without_sink(s, n, keys->z_j, b,
                                    of->sink_share == SINKPROOF_SINK_RENORMALISED, a_j, common);
    if (unshifted)
        return weights_with_sinks(s, n, keys->z_j, b, sink_unshifted(of, n, keys->z_j, &b), a_j,
                                  common);
    if (count == 0) b = sinkproof_exact_set(-INFINITY);
    if (keys->times_e != NULL) return weights_of_counted_keys(s, keys, b, a_j, common);
    if (count == 0 || count == 1)
        return sinkproof_honest_softmax(s, AT_A9, n, keys->z_j, b, a_j, common);
    return weights_with_sinks(s, n, keys->z_j, b, sinkproof_exact_set(count), a_j, common);
}

void gate_once_more(const sinkproof_setting *s, size_t n, sinkproof_honest *a_j) {
    sinkproof_honest gate = sinkproof_honest_sub(sinkproof_exact_set(1), a_j[n]);
    for (size_t j = 0; j < n; j++)
        a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], gate), 4);
}

sinkproof_honest meant_sink(const sinkproof_attending *m, const sinkproof_setting *s,
                            sinkproof_honest b) {
    double times = m->sink_times * m->logits_times;
    if (m->sink_made == SINKPROOF_SINK_ABSOLUTE && b.mid < 0)
        b = sinkproof_honest_mul(b, sinkproof_exact_set(-1));
    if (m->sink_made == SINKPROOF_SINK_E4M3) b = sinkproof_honest_rounded(SINKPROOF_E4M3, b);
    if (m->sink_made == SINKPROOF_SINK_E5M2) b = sinkproof_honest_rounded(SINKPROOF_E5M2, b);
    if (times != 1) {
        // a sink that is stored in a narrow format may be rounded to it again
        sinkproof_format as = s->policy->at[AT_A9].format;
        b = sinkproof_honest_inside(s, set_times(m, b, times));
        if (as != SINKPROOF_REAL) b = sinkproof_honest_hull(b, sinkproof_honest_rounded(as, b));
    }
    return b;
}
