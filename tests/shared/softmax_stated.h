// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of a softmax with a sink as its bounds state them (bound.softmax-sink, bound.exp and
// the forms of both), written out a second time in long double: of logits that are known or sets,
// every end, variance and bias of every weight, by any of the forms.
#ifndef SINKPROOF_TESTS_SOFTMAX_STATED_H
#define SINKPROOF_TESTS_SOFTMAX_STATED_H

#include "tests/shared/formulas.h"

enum { MOST = 40, WORST = 0, LIKELY = 1 };

typedef struct row {
    size_t n;
    sinkproof_honest z[MOST + 1], b; // z [n] is another number than b: nothing reads it
    bool definition, base_2, running, subtracted, gated; // none: the definition
    real u, declared, of_log, grows, kept; // kept: of exponentials that meet the values, relative
    real divided, inverse; // declared errors of a quotient, of a reciprocal; 0: as rounded
    double odds;
    bool narrow; // binary32 inside
    bool apart;  // low ends are compared on their own scale
    bool steep;  // high ends err by roundings of what is left of 1
} row;

typedef struct ends {
    real lo, hi;
} ends;

// What the row's weights are made of; [2]: in the worst case, and likely.
typedef struct parts {
    real m, m_lo, m_hi, top, keys_lo, keys_hi, keys_top, log_sum, log_keys, growth, flush, total;
    real mid[MOST + 1], own[MOST + 1];
    ends e[MOST + 1][2], keys[2], sink[2];
} parts;

static inline sinkproof_policy policy_of(const row *r) {
    sinkproof_policy policy = real_policy("definition");
    unsigned forms = (unsigned)r->base_2 << SINKPROOF_A9_BASE_2 |
                     (unsigned)r->running << SINKPROOF_A9_RUNNING_MAX |
                     (unsigned)r->subtracted << SINKPROOF_A9_LSE_SUBTRACTED |
                     (unsigned)r->gated << SINKPROOF_A9_LSE_GATED;
    policy.forms[SINKPROOF_FORM_OF_A9] = forms | (r->definition || forms == 0);
    policy.inside = r->narrow ? SINKPROOF_F32 : SINKPROOF_F64;
    real step = r->u > 0 ? 2 * r->u : 1; // nothing is declared where nothing rounds
    policy.ulp[SINKPROOF_EXP] = (double)(r->declared / step);
    policy.ulp[SINKPROOF_LOG] = (double)(r->of_log / step);
    policy.exp_growth = (double)(r->grows / step);
    if (r->divided > 0) policy.ulp[SINKPROOF_DIV] = (double)(r->divided / step);
    if (r->inverse > 0) policy.ulp[SINKPROOF_RCP] = (double)(r->inverse / step);
    if (r->kept > 0) policy.at[AT_A9_UNNORM].format = SINKPROOF_BF16;
    return policy;
}

static const sinkproof_honest *logit(const row *r, size_t j) {
    return j < r->n ? &r->z[j] : &r->b;
}

static real grown(const parts *p, real argument) {
    return p->growth * fminl(argument, 800);
}

static real exponent(const row *r, const parts *p, size_t j) {
    const sinkproof_honest *z = logit(r, j);
    real far = fmaxl(fabsl(z->lo - p->m_hi), fabsl(z->hi - p->m_lo)), v = r->u + 0x1p-52L;
    if (j == r->n && j > 0 && r->running) far = fmaxl(far, fabsl(z->hi - p->keys_lo));
    if (!r->base_2) return far * v + grown(p, far + far * v);
    real g = gamma_of(2, r->u), size = fmaxl(fabsl((real)z->lo), fabsl((real)z->hi));
    real error = g * far + (1 + g) * g * size + v * (1 + g) * (far + g * (size + p->top));
    if (r->running) error += (1 + g) * r->u * (2 * fmaxl(size, p->top) + far);
    return error + grown(p, far + error);
}

static ends exponential(const parts *p, double lo, double hi, real eta) {
    return (ends){fmaxl(expl(lo - p->m) * (1 - eta) - p->flush, 0),
                  expl(hi - p->m) * (1 + eta) + p->flush};
}

static void maxima(const row *r, parts *p) {
    p->m = p->m_lo = p->m_hi = -INFINITY;
    for (size_t j = 0; j <= r->n; j++) {
        if (j == r->n) p->keys_lo = p->m_lo, p->keys_hi = p->m_hi;
        p->m = fmaxl(p->m, logit(r, j)->mid), p->m_lo = fmaxl(p->m_lo, logit(r, j)->lo);
        p->m_hi = fmaxl(p->m_hi, logit(r, j)->hi);
    }
    p->top = fmaxl(fabsl(p->m_lo), fabsl(p->m_hi));
    p->keys_top = fmaxl(fabsl(p->keys_lo), fabsl(p->keys_hi));
}

static parts parts_of(const row *r) {
    parts p = {0};
    maxima(r, &p);
    p.growth = r->grows * (1 + 0x1p-50L) / (1 - (r->declared + 800 * r->grows));
    real g = gamma_of(2, r->u), above = p.m_hi - p.m + (r->base_2 ? (g + g * g) * p.top : 0);
    p.flush = r->narrow ? 0x1p-126L : 0x1p-1022L;
    if (above > 0) p.flush *= expl(above * (1 + 0x1p-50L)) * (1 + 0x1p-50L);
    for (size_t j = 0; j <= r->n; j++) {
        const sinkproof_honest *z = logit(r, j);
        p.mid[j] = expl(z->mid - p.m), p.own[j] = 1;
        if (z->hi == -INFINITY) continue;
        real eta = expm1l(exponent(r, &p, j));
        eta += eta * r->declared + r->declared + 0x1p-50L;
        p.own[j] = eta < 1 ? (1 + eta) / (1 - eta) : INFINITY;
        p.total += p.mid[j];
        p.e[j][WORST] = exponential(&p, z->lo, z->hi, eta);
        p.e[j][LIKELY] = exponential(&p, z->likely_lo, z->likely_hi, eta);
        for (int l = 0; l < 2; l++) {
            ends *sum = j < r->n ? &p.keys[l] : &p.sink[l];
            sum->lo += p.e[j][l].lo, sum->hi += p.e[j][l].hi;
        }
    }
    real most = p.keys[WORST].hi + p.sink[WORST].hi;
    p.log_sum = logl(fmaxl(most, 1)) + p.m_hi - p.m_lo + 0x1p-40L;
    p.log_keys = fmaxl(logl(p.keys[WORST].hi) + p.m - p.keys_lo, 0) + 0x1p-40L;
    return p;
}

// lambda, and the errors of z - LSE and of LSE - b.
static real lambda(const row *r, const parts *p, real top, real log_sum) {
    return gamma_of(r->base_2 ? 7 : 2, r->u) * (top + 1 + log_sum) + r->of_log * (1 + log_sum) +
           r->declared + p->growth;
}
static real subtraction(const row *r, const parts *p) {
    real error = lambda(r, p, p->top, p->log_sum);
    error += r->u * error + gamma_of(r->base_2 ? 3 : 1, r->u) * (p->log_sum + 1);
    return error + grown(p, error + p->log_sum);
}
static real gate(const row *r, const parts *p) {
    if (r->b.hi == -INFINITY) return 0;
    real lse = p->keys_hi + p->log_keys, error = lambda(r, p, p->keys_top, p->log_keys);
    real argument = 1 + fmaxl(fabsl(lse - r->b.lo), fabsl(r->b.hi - p->keys_lo));
    return error + r->u * error + gamma_of(1, r->u) * argument + grown(p, argument) -
           log1pl(-r->declared);
}

static ends share(ends e, ends others, real own) {
    return (ends){e.lo > 0 ? e.lo / (e.lo * own + others.hi) : 0,
                  isfinite(e.hi) ? e.hi / (e.hi / own + others.lo) : own};
}
static ends product(ends x, ends y) {
    return (ends){x.lo * y.lo, x.hi * y.hi};
}
static ends shifted(real x) { // e^-x and e^x
    return (ends){fmaxl(1 - x, 0), x < 1 ? 1 / (1 - x) : INFINITY};
}
static ends without(ends sum, ends e, real here) {
    return (ends){fmaxl(sum.lo * (1 - here) - e.lo, 0), sum.hi * (1 + here) - e.hi};
}
static ends widest(ends x, ends y) {
    return (ends){fminl(x.lo, y.lo), fmaxl(x.hi, y.hi)};
}

// A quotient as declared: by a division, or by a reciprocal and a product.
static real declared_of(const row *r) {
    real inverse = fmaxl(r->inverse, r->u); // rounded, where nothing is said of it
    if (r->divided <= r->u && r->inverse <= r->u) return 0;
    return fmaxl(r->divided, inverse + r->u * (1 + inverse));
}

static ends by_quotient(const row *r, const parts *p, size_t j, int l, ends rest, ends sums) {
    real two = declared_of(r) > 0 ? declared_of(r) : gamma_of(2, r->u);
    ends e = p->e[j][l], a = product(share(e, rest, r->running ? p->own[j] : 1), sums);
    bool kept = r->kept > 0 && j < r->n;
    if (kept)
        a = product((ends){e.lo * (1 - r->kept) / (e.hi + rest.hi),
                           e.hi * (1 + r->kept) / (e.lo + rest.lo)},
                    sums);
    return (ends){a.lo * (1 - two),
                  kept ? a.hi * (1 + two)
                       : fminl(a.hi * (1 + two), 1 + fmaxl(2 * r->u, declared_of(r)))};
}

static ends by_gate(const row *r, const parts *p, size_t j, int l, ends sums, real here) {
    real five = gamma_of(5, r->u), two = gamma_of(2, r->u), each = declared_of(r);
    if (each > 0) five = two + (1 + two) * each * (2 + each);
    ends keys = {p->keys[l].lo * (1 - here), p->keys[l].hi * (1 + here)}, e = p->e[j][l];
    ends sink = product(product(p->sink[l], shifted(gate(r, p))), sums);
    ends of_keys = product(share(e, without(p->keys[l], e, here), p->own[j]), share(keys, sink, 1));
    ends a = j == r->n ? share(sink, keys, 1) : product(of_keys, sums);
    return product(a, (ends){1 - five, 1 + five});
}

// Weight j, of a sum that errs by g, and rescalings by rho; rounded inside.
static ends weight(const row *r, const parts *p, size_t j, int l, real g, real rho) {
    real here = gamma_of(2 * (real)r->n + 10, 0x1p-53L), tiny = r->narrow ? 0x1p-126L : 0x1p-1022L;
    ends sums = {fmaxl(1 - rho, 0) / ((1 + rho) * (1 + g)),
                 g < 1 && rho < 1 ? (1 + rho) / ((1 - rho) * (1 - g)) : INFINITY};
    ends all = {p->keys[l].lo + p->sink[l].lo, p->keys[l].hi + p->sink[l].hi};
    ends rest = without(all, p->e[j][l], here), a = {INFINITY, 0};
    if (p->e[j][WORST].hi == 0) return (ends){0, 0};
    if (r->definition || r->base_2 || r->running || !(r->subtracted || r->gated))
        a = by_quotient(r, p, j, l, rest, sums);
    if (r->subtracted)
        a = widest(a, product(product(share(p->e[j][l], rest, p->own[j]), sums),
                              shifted(subtraction(r, p))));
    if (r->gated) a = widest(a, by_gate(r, p, j, l, sums, here));
    if (r->subtracted || r->gated) a = (ends){fmaxl(a.lo - tiny, 0), a.hi + tiny};
    return r->narrow ? widest(a, (ends){(float)a.lo, (float)a.hi}) : a;
}

// Of each weight the ends, worst and likely, what varies and what may lean; k: how many roundings
// the evaluation has.
static inline void compare(distance *d, distance *vars, const row *r, real k) {
    sinkproof_policy policy = policy_of(r);
    sinkproof_setting s = {.policy = &policy, .u = (double)r->u, .odds = r->odds};
    sinkproof_honest alpha[MOST + 1];
    double common = 7, terms[MOST + 1];
    must(sinkproof_honest_softmax(&s, AT_A9, r->n, r->z, r->b, alpha, &common));
    parts p = parts_of(r);
    real count = (real)r->n + 1, here = gamma_of(2 * count + 8, 0x1p-53L), fourth = 0, away = 0;
    real u = r->u, kappa = r->base_2 ? gamma_of(2, u) : 0, in_var = 0, in_bias = 0;
    real own_var[MOST + 1];
    for (size_t j = 0; j <= r->n; j++) {
        const sinkproof_honest *z = logit(r, j);
        real a = p.mid[j] / p.total, t = a > 0 ? z->mid - p.m : 0;
        real size = a > 0 && r->base_2 ? z->mid : 0;
        own_var[j] = z->var + (t * t + 4 * size * size) * u * u / 3;
        fourth += a * a, away -= a * t, terms[j] = (double)p.mid[j];
        in_var += a * a * own_var[j], in_bias += a * z->bias;
    }
    real lean = u == 0x1p-24L ? lean_of(r->n + 1, terms, (double)p.total) / p.total : 0;
    real g = gamma_of(count - 1, u) + 2 * here, once = log1pl(r->declared) + u, rounds = 1;
    real partial = u * u * (count / 3 + count * fourth / 6);
    real g_likely = fminl(g, sqrtl(2 * (real)r->odds * partial) + lean + 2 * here);
    while (rounds < count - 1 && rounds * (logl(rounds) - 1) + 1 < r->odds) rounds++;
    real rho = r->running ? expm1l((count - 1) * once) * (1 + 0x1p-50L) : 0;
    real rho_likely = r->running ? expm1l(fminl(rounds, count - 1) * once) : 0;
    bool rounded = u == 0x1p-24L; // else what binary64 rounds stands beside it
    if (rounded) near(vars, common, partial / 3 + in_var, partial / 3 + in_var, k);
    for (size_t j = 0; j <= r->n; j++) {
        const sinkproof_honest *found = &alpha[j];
        real a = p.mid[j] / p.total, t = a > 0 ? p.m - logit(r, j)->mid : 0;
        ends worst = weight(r, &p, j, WORST, g, rho);
        ends likely = weight(r, &p, j, LIKELY, g_likely, rho_likely);
        // What is left of a difference errs by roundings of what was there before.
        real low = r->apart ? 0 : a;
        near(d, found->lo, worst.lo, fmaxl(worst.lo, low), k);
        near(d, found->likely_lo, likely.lo, fmaxl(likely.lo, low), k);
        near(d, found->hi, worst.hi, r->steep ? worst.hi * worst.hi / a : worst.hi, k);
        near(d, found->likely_hi, likely.hi, r->steep ? likely.hi * likely.hi / a : likely.hi, k);
        if (!rounded || !(found->mid > 0)) continue;
        real gated = r->gated ? gate(r, &p) : 0, step = sinkproof_ulp(SINKPROOF_F64, found->mid);
        real kept = j < r->n ? r->kept * r->kept / 3 : 0;
        real var = a * a * (own_var[j] + kept + 2 * u * u / 3) + step * step / 12;
        if (!r->narrow)
            near(d, found->mid, a, a, k), near(vars, found->var, var, fmaxl(var, 0x1p-1022L), k);
        if (r->kept > 0) continue;
        real bias = (r->running ? 4 : 2) * r->declared + lean + grown(&p, t) + p.growth * away;
        bias += logit(r, j)->bias + in_bias + kappa * (t + away);
        if (r->subtracted) bias += subtraction(r, &p);
        bool divides = r->definition || r->base_2 || r->running || !r->subtracted;
        bias += (r->gated ? 2 : divides) * declared_of(r);
        bias += gated * (j < r->n ? p.mid[r->n] / p.total : 1 - a);
        near(d, found->bias, a * bias, a * (bias + gated), k + 40);
    }
}

#endif
