// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds of the forms as the book states them, written out a second time in long double
// (test_bound_formulas.c says how): base 2, a running maximum, weights from the log-sum-exp, the
// gate, experts' weights renormalised, a sigmoid by tanh, and small numbers read as zero.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260214;
enum { MOST = 12, DRAWS = 400 };

// ---- the attention weights ----------------------------------------------------------------------

typedef struct forms {
    bool definition, base_2, running, subtracted, gated;
    const char *id, *text;
} forms;

static const forms cases[] = {
    {.base_2 = true, .id = "bound.form-base2", .text = "base-2"},
    {.running = true, .id = "bound.form-running-max", .text = "running-max"},
    {.base_2 = true,
     .running = true,
     .id = "bound.form-base2 bound.form-running-max",
     .text = "base-2|running-max"},
    {.subtracted = true, .id = "bound.form-lse", .text = "lse-subtracted"},
    {.subtracted = true, .base_2 = true, .id = "bound.form-lse", .text = "lse-subtracted|base-2"},
    {.gated = true, .id = "bound.form-lse", .text = "lse-gated"},
    {true, true, true, true, true, "bound.form-lse", "any"},
};

typedef struct ends {
    real lo, hi, likely_lo, likely_hi, mid;
} ends;

// One row, written out: what the sets' formulas need.
typedef struct row {
    size_t n;
    forms f;
    real u, declared, log_error;
    const sinkproof_honest *z; // [n + 1], the sink last
    real m, m_lo, m_hi, keys_lo, keys_hi, top, keys_top, log_sum, log_keys;
    ends e[MOST + 1], keys, sink;
    real own[MOST + 1];
} row;

static real size(const sinkproof_honest *x) {
    return fmaxl(fabsl((real)x->lo), fabsl((real)x->hi));
}

static real exponent(const row *r, size_t j) {
    const sinkproof_honest *z = &r->z[j];
    real far = fmaxl(fabsl(z->lo - r->m_hi), fabsl(z->hi - r->m_lo)), v = r->u + 0x1p-52L;
    if (j == r->n && r->n > 0 && r->f.running) far = fmaxl(far, fabsl(z->hi - r->keys_lo));
    if (!r->f.base_2) return far * v;
    real g = gamma_of(2, r->u), most = fmaxl(size(z), r->top);
    real error = g * far + (1 + g) * g * size(z) + v * (1 + g) * (far + g * (size(z) + r->top));
    return error + (r->f.running ? (1 + g) * (2 * r->u * most + r->u * far) : 0);
}

static void add(ends *sum, const ends *e) {
    sum->lo += e->lo, sum->hi += e->hi, sum->mid += e->mid;
    sum->likely_lo += e->likely_lo, sum->likely_hi += e->likely_hi;
}

static row row_of(const sinkproof_policy *policy, const forms *f, size_t n,
                  const sinkproof_honest *z) {
    real none = -INFINITY;
    row r = {.n = n, .f = *f, .u = 0x1p-24L, .z = z, .m = none, .m_lo = none, .m_hi = none};
    r.declared = policy->ulp[SINKPROOF_EXP] * 2 * r.u;
    r.log_error = policy->ulp[SINKPROOF_LOG] * 2 * r.u;
    for (size_t j = 0; j <= n; j++) {
        if (j == n)
            r.keys_lo = r.m_lo, r.keys_hi = r.m_hi,
            r.keys_top = fmaxl(fabsl(r.m_lo), fabsl(r.m_hi));
        r.m = fmaxl(r.m, z[j].mid), r.m_lo = fmaxl(r.m_lo, z[j].lo);
        r.m_hi = fmaxl(r.m_hi, z[j].hi);
    }
    r.top = fmaxl(fabsl(r.m_lo), fabsl(r.m_hi));
    for (size_t j = 0; j <= n; j++) {
        real eta = expm1l(exponent(&r, j)) * (1 + r.declared) + r.declared + 0x1p-50L;
        r.own[j] = (1 + eta) / (1 - eta);
        if (z[j].hi == -INFINITY) eta = 0, r.own[j] = 1;
        r.e[j] = (ends){expl(z[j].lo - r.m) * (1 - eta), expl(z[j].hi - r.m) * (1 + eta),
                        expl(z[j].likely_lo - r.m) * (1 - eta),
                        expl(z[j].likely_hi - r.m) * (1 + eta), expl(z[j].mid - r.m)};
        add(j < n ? &r.keys : &r.sink, &r.e[j]);
    }
    r.log_sum = logl(fmaxl(r.keys.hi + r.sink.hi, 1)) + r.m_hi - r.m_lo + 0x1p-40L;
    r.log_keys = fmaxl(logl(r.keys.hi) + r.m - r.keys_lo, 0) + 0x1p-40L;
    return r;
}

// lambda, G and xi of the statements.
static real lse_error(const row *r, real top, real log_sum) {
    return gamma_of(r->f.base_2 ? 7 : 2, r->u) * (top + log_sum + 1) +
           r->log_error * (log_sum + 1) + r->declared;
}
static real subtraction(const row *r) {
    return lse_error(r, r->top, r->log_sum) * (1 + r->u) +
           gamma_of(r->f.base_2 ? 3 : 1, r->u) * (r->log_sum + 1);
}
static real gate(const row *r) {
    const sinkproof_honest *b = &r->z[r->n];
    if (b->hi == -INFINITY) return 0;
    real argument = fmaxl(fabsl(r->keys_hi + r->log_keys - b->lo), fabsl(b->hi - r->keys_lo)) + 1;
    return lse_error(r, r->keys_top, r->log_keys) * (1 + r->u) + gamma_of(1, r->u) * argument -
           log1pl(-r->declared);
}

typedef struct pair {
    real lo, hi;
} pair;

static pair widest(pair x, pair y) {
    return (pair){fminl(x.lo, y.lo), fmaxl(x.hi, y.hi)};
}

// One weight's ends, from ends of the terms, the sum's error g, rescalings rho.
static pair weight(const row *r, size_t j, bool likely, real g, real rho, real here) {
    const ends *v = &r->e[j];
    real lo = likely ? v->likely_lo : v->lo, hi = likely ? v->likely_hi : v->hi;
    real k_lo = likely ? r->keys.likely_lo : r->keys.lo,
         k_hi = likely ? r->keys.likely_hi : r->keys.hi;
    real s_lo = likely ? r->sink.likely_lo : r->sink.lo,
         s_hi = likely ? r->sink.likely_hi : r->sink.hi;
    real all_lo = k_lo + s_lo, all_hi = k_hi + s_hi, sum_lo = (1 - rho) / ((1 + g) * (1 + rho));
    real sum_hi = (1 + rho) / ((1 - g) * (1 - rho)), two = gamma_of(2, r->u),
         five = gamma_of(5, r->u);
    real rest_lo = all_lo * (1 - here) - lo, rest_hi = all_hi * (1 + here) - hi;
    pair a = {INFINITY, 0};
    if (v->hi == 0) return (pair){0, 0};
    if (r->f.definition || r->f.base_2 || r->f.running) {
        real own = r->f.running ? r->own[j] : 1;
        a.lo = lo / (lo * own + rest_hi) * (1 - two) * sum_lo;
        a.hi = fminl(hi / (hi / own + rest_lo) * (1 + two) * sum_hi, 1 + 2 * r->u);
    }
    if (r->f.subtracted) {
        real x = subtraction(r), own = r->own[j];
        a = widest(a, (pair){lo / (lo * own + rest_hi) * sum_lo * (1 - x),
                             hi / (hi / own + rest_lo) * sum_hi / (1 - x)});
    }
    if (r->f.gated) {
        real xi = gate(r), b_lo = s_lo * (1 - xi) * sum_lo, b_hi = s_hi / (1 - xi) * sum_hi;
        real c_lo = k_lo * (1 - here), c_hi = k_hi * (1 + here), own = r->own[j];
        pair of_sink = {b_lo / (b_lo + c_hi) * (1 - five), b_hi / (b_hi + c_lo) * (1 + five)};
        real q_lo = lo / (lo * own + c_hi - hi);
        real q_hi = hi / (hi / own + fmaxl(c_lo - lo, 0));
        pair of_key = {q_lo * (c_lo / (c_lo + b_hi)) * (1 - five) * sum_lo,
                       q_hi * (c_hi / (c_hi + b_lo)) * (1 + five) * sum_hi};
        a = widest(a, j == r->n ? of_sink : of_key);
    }
    return a;
}

static void compare(distance *d, const row *r, double odds, const sinkproof_honest *alpha,
                    double common) {
    real total = r->keys.mid + r->sink.mid, k = (real)r->n + 1, u = r->u;
    real fourth = 0, in_var = 0, in_bias = 0, away = 0, kappa = r->f.base_2 ? gamma_of(2, u) : 0;
    double terms[MOST + 1];
    real own_var[MOST + 1];
    for (size_t j = 0; j <= r->n; j++) {
        real a = r->e[j].mid / total, t = a > 0 ? r->z[j].mid - r->m : 0,
             s = a > 0 && r->f.base_2 ? r->z[j].mid : 0;
        own_var[j] = r->z[j].var + (t * t + 4 * s * s) * u * u / 3;
        terms[j] = exp(r->z[j].mid - (double)r->m);
        fourth += a * a, in_var += a * a * own_var[j];
        in_bias += a * r->z[j].bias, away += a * fabsl(t);
    }
    real lean = lean_of(r->n + 1, terms, (double)total) / total;
    real here = gamma_of(2 * k + 8, 0x1p-53L), each = log1pl(r->declared) + u, rounds = 1;
    real partial = u * u * (k / 3 + k * fourth / 6), g = gamma_of(k - 1, u) + 2 * here;
    real g_likely = fminl(g, sqrtl(2 * (real)odds * partial) + lean + 2 * here);
    while (rounds < k - 1 && rounds * (logl(rounds) - 1) + 1 < odds) rounds++;
    real rho = r->f.running ? expm1l((k - 1) * each) : 0;
    real rho_likely = r->f.running ? expm1l(fminl(rounds, k - 1) * each) : 0, noise = 12 * k + 200;
    near(d, common, partial / 3 + in_var, partial / 3 + in_var, noise);
    for (size_t j = 0; j <= r->n; j++) {
        pair worst = weight(r, j, false, g, rho, here);
        pair likely = weight(r, j, true, g_likely, rho_likely, here);
        near(d, alpha[j].lo, worst.lo, worst.lo, noise),
            near(d, alpha[j].hi, worst.hi, worst.hi, noise);
        near(d, alpha[j].likely_lo, likely.lo, likely.lo, noise);
        near(d, alpha[j].likely_hi, likely.hi, likely.hi, noise);
        real a = r->e[j].mid / total, t = a > 0 ? fabsl(r->z[j].mid - r->m) : 0;
        if (!(a > 0)) continue;
        real var = a * a * (own_var[j] + 2 * u * u / 3);
        real step = sinkproof_ulp(SINKPROOF_F64, alpha[j].mid);
        near(d, alpha[j].var, var + step * step / 12, var, noise);
        real bias = (r->f.running ? 4 : 2) * r->declared + lean + r->z[j].bias + in_bias;
        bias += kappa * (t + away) + (r->f.subtracted ? subtraction(r) : 0);
        if (r->f.gated) bias += gate(r) * (j < r->n ? r->sink.mid / total : 1 - a);
        near(d, alpha[j].bias, a * bias, a * bias, noise);
    }
}

static void weights(const forms *f) {
    uint64_t state = SEED;
    distance d = {0};
    sinkproof_policy policy = real_policy(f->text);
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_setting s = setting(&policy);
        sinkproof_honest z[MOST + 1], alpha[MOST + 1];
        size_t n = 1 + draw_below(&state, MOST);
        double common, scale = i % 3 == 0 ? 40 : 2;
        s.odds = i % 2 ? 30 : 0.2;
        for (size_t j = 0; j <= n; j++) z[j] = draw_set(&state, scale * draw_dyadic(&state));
        if (i % 4 == 0)
            for (size_t j = 0; j <= n; j++) z[j] = sinkproof_known(z[j].mid);
        if (i % 5 == 0) z[n] = sinkproof_known(-INFINITY);
        must(sinkproof_honest_softmax(&s, SINKPROOF_AT_A9, n, z, z[n], alpha, &common));
        row r = row_of(&policy, f, n, z);
        compare(&d, &r, s.odds, alpha, common);
    }
    char what[80];
    snprintf(what, sizeof what, "every end, %s", f->text);
    report(&d, f->id, what, SEED);
}

// ---- experts' weights, a sigmoid, small numbers -------------------------------------------------

// As the softmax over the chosen logits with exponentials that err by one rounding more.
static void renormalised(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    sinkproof_policy policy = real_policy("definition"), coarse = policy;
    policy.forms[SINKPROOF_FORM_OF_M4] = 1u << SINKPROOF_M4_ALL_RENORMALISED;
    coarse.forms[SINKPROOF_FORM_OF_M4] = 1;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_setting s = setting(&policy), t = setting(&coarse);
        sinkproof_honest g[MOST], z[4], w[4], stated[5];
        int32_t chosen[4];
        double common, other;
        real top = -INFINITY, best = -INFINITY, u = 0x1p-24L,
             declared = policy.ulp[SINKPROOF_EXP] * 2 * u;
        for (size_t e = 0; e < MOST; e++)
            g[e] = draw_set(&state, draw_dyadic(&state)), top = fmaxl(top, g[e].hi);
        for (size_t k = 0; k < 4; k++) {
            chosen[k] = (int32_t)(3 * k + draw_below(&state, 3)), z[k] = g[chosen[k]];
            best = fmaxl(best, z[k].lo);
        }
        real more = u * (1 + fmaxl(top - best, 0));
        coarse.ulp[SINKPROOF_EXP] =
            (double)(policy.ulp[SINKPROOF_EXP] + more * (1 + declared) * (1 + more) / (2 * u));
        must(sinkproof_honest_expert_weights(&s, MOST, g, 4, chosen, w, &common));
        must(sinkproof_honest_softmax(&t, SINKPROOF_AT_M4, 4, z, sinkproof_known(-INFINITY), stated,
                                      &other));
        for (size_t k = 0; k < 4; k++) {
            near(&d, w[k].lo, stated[k].lo, stated[k].lo, 8),
                near(&d, w[k].hi, stated[k].hi, stated[k].hi, 8);
            near(&d, w[k].likely_lo, stated[k].likely_lo, stated[k].likely_lo, 8);
            near(&d, w[k].likely_hi, stated[k].likely_hi, stated[k].likely_hi, 8);
            near(&d, w[k].mid, stated[k].mid, stated[k].mid, 8),
                near(&d, w[k].bias, stated[k].bias, stated[k].bias, 8);
        }
    }
    report(&d, "bound.form-router", "every end", SEED);
    // Zero weights may be what a processor left of E times the smallest normal number.
    sinkproof_setting s = setting(&policy);
    sinkproof_honest g[3] = {sinkproof_known(0), sinkproof_known(-2000), sinkproof_known(-3000)},
                     w[2];
    double common;
    must(sinkproof_honest_expert_weights(&s, 3, g, 2, (const int32_t[]){0, 1}, w, &common));
    ok(w[1].mid == 0 && w[1].hi >= 3 * 0x1p-1022 && w[1].hi <= 5 * 0x1p-1022,
       "bound.form-router a probability that underflows: at most %g of 2^-1022, E = 3 worst=%g "
       "bound=5",
       w[1].hi / 0x1p-1022, w[1].hi / 0x1p-1022);
    policy.forms[SINKPROOF_FORM_OF_M4] = 3;
    distance both = {0};
    sinkproof_honest after[2], all[2], hull[2],
        h[3] = {draw_set(&state, 1), draw_set(&state, -1), draw_set(&state, 2)};
    const unsigned sets[3] = {1, 2, 3};
    sinkproof_honest *out[3] = {after, all, hull};
    for (int k = 0; k < 3; k++) {
        policy.forms[SINKPROOF_FORM_OF_M4] = sets[k];
        must(
            sinkproof_honest_expert_weights(&s, 3, h, 2, (const int32_t[]){2, 0}, out[k], &common));
    }
    for (int k = 0; k < 2; k++) {
        near(&both, hull[k].lo, fminl(after[k].lo, all[k].lo), 1, 1);
        near(&both, hull[k].hi, fmaxl(after[k].hi, all[k].hi), 1, 1);
    }
    report(&both, "bound.form-router", "the hull of both forms", SEED);
}

// sigma by tanh where alpha = 1, up = 0 and the gate is t: y = t sigma.
static void sigmoid_by_tanh(void) {
    uint64_t state = SEED + 2;
    distance d = {0};
    sinkproof_policy policy = real_policy("definition");
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    policy.forms[SINKPROOF_FORM_OF_M8] = 1u << SINKPROOF_M8_TANH;
    policy.at[SINKPROOF_AT_M8_SWISH].format = SINKPROOF_F64; // no other order of the products
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_setting s = setting(&policy);
        double t = 3 * draw_dyadic(&state);
        config.swiglu.alpha = 1, config.swiglu.limit = 1e9;
        sinkproof_honest y =
            sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_known(t), sinkproof_known(0));
        real u = 0x1p-24L, e = policy.ulp[SINKPROOF_TANH] * 2 * u, sigma = 1 / (1 + expl(-(real)t));
        real part = ((e * (1 + u) + u) / 2) * (1 + u) * fabsl(tanhl((real)t / 2));
        real radius = fabsl((real)t) * (u * sigma + part), middle = t * sigma;
        near(&d, y.hi, middle + radius, radius + fabsl(middle), 90);
        near(&d, y.lo, middle - radius, radius + fabsl(middle), 90);
        near(&d, y.likely_hi, middle + radius, radius + fabsl(middle), 90);
        near(&d, y.bias, fabsl((real)t) * (u * sigma + part), fabsl((real)t) * (u * sigma + part),
             0x1p26L);
        near(&d, y.var, t * (real)t * part * part, t * (real)t * part * part, 0x1p27L);
    }
    // tanh is largest at the end that is further from 0.
    for (int side = -1; side <= 1; side += 2) {
        sinkproof_setting s = setting(&policy);
        double near_end = 2 * side, far_end = 8 * side;
        sinkproof_honest gate = sinkproof_around(5 * side, 3, 3, 0, 0), y;
        y = sinkproof_honest_swiglu(&s, config.swiglu, gate, sinkproof_known(0));
        real u = 0x1p-24L, e = policy.ulp[SINKPROOF_TANH] * 2 * u;
        real part = ((e * (1 + u) + u) / 2) * (1 + u) * tanhl(4);
        real sigma = 1 / (1 + expl(-(real)(side < 0 ? near_end : far_end)));
        real largest = 8 * (sigma + u * sigma + part);
        near(&d, side * (side < 0 ? y.lo : y.hi), largest, largest, 90);
    }
    report(&d, "bound.form-tanh", "every end", SEED);
}

// Sets with small numbers: what is read as zero, and what a sum loses.
static void small_numbers(void) {
    uint64_t state = SEED + 3;
    sinkproof_policy policy = policy_named("f32"), none = policy_named("f32,ftz=none");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9), plain = s;
    plain.policy = &none;
    const double tiny = 0x1p-126;
    ok(sinkproof_flushed_below(&s) == tiny && sinkproof_flushed_below(&plain) == 0 &&
           sinkproof_setting_underflow(&s) == tiny &&
           sinkproof_setting_underflow(&plain) == 0x1p-150,
       "bound.ftz the smallest normal number of float32");
    sinkproof_policy wide = policy_named("real-f64");
    sinkproof_setting w = sinkproof_setting_for(&wide, 1, 1e-9);
    ok(sinkproof_flushed_below(&w) == 0x1p-1022, "bound.ftz and of binary64");
    size_t wrong = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = ldexp(draw_dyadic(&state), -128 + (int)draw_below(&state, 6)), size = fabs(x);
        sinkproof_honest in = sinkproof_known(x), read = sinkproof_honest_flushed(&s, in);
        double lost = size < tiny ? size : 0;
        wrong += read.lo != (lost > 0 ? fmin(x, 0) : x) || read.hi != (lost > 0 ? fmax(x, 0) : x);
        wrong += read.likely_lo != read.lo || read.likely_hi != read.hi || read.mid != x;
        wrong += read.bias != lost || read.var != lost * lost || read.spread != read.var;
        sinkproof_honest same = sinkproof_honest_flushed(&plain, in);
        wrong += memcmp(&same, &in, sizeof same) != 0;
        sinkproof_honest sum = sinkproof_honest_inside(&s, in),
                         as_is = sinkproof_honest_inside(&plain, in);
        wrong += sum.hi != as_is.hi + 2 * tiny || sum.lo != as_is.lo - 2 * tiny;
        wrong += sum.likely_hi != sum.hi || sum.likely_lo != sum.lo;
        wrong +=
            sum.bias != 2 * tiny || sum.var != as_is.var + 4 * tiny * tiny || sum.spread != sum.var;
    }
    sinkproof_honest zero = sinkproof_honest_inside(&s, sinkproof_known(0));
    sinkproof_honest large = sinkproof_honest_inside(&s, sinkproof_known(0x1p-100));
    sinkproof_honest edge = sinkproof_honest_inside(&s, sinkproof_known(0x1.fp-101));
    wrong += zero.lo != 0 || zero.hi != 0 || large.lo != large.hi || edge.lo == edge.hi;
    sinkproof_honest around = sinkproof_honest_flushed(&s, sinkproof_around(1, 2, 1, 0, 0));
    wrong += around.lo != -1 || around.hi != 3 || around.bias != 0;
    ok(wrong == 0, "bound.ftz sets of small numbers as stated worst=%zu bound=0 of=%d", wrong,
       DRAWS);
}

// sum lost(a) |b| + |a| lost(b), and one flush for each of the 2 n + 2 steps.
static void small_products(void) {
    uint64_t state = SEED + 4;
    distance d = {0};
    sinkproof_policy policy = policy_named("f32"), none = policy_named("f32,ftz=none");
    const double tiny = 0x1p-126;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9), plain = s;
        plain.policy = &none;
        sinkproof_honest x[MOST], y[MOST], out, before;
        size_t n = 1 + draw_below(&state, MOST);
        real lost = 0, size_of = 0;
        for (size_t k = 0; k < n; k++) {
            double a = ldexp(draw_dyadic(&state), -130 + (int)draw_below(&state, 8)),
                   w = i % 2 ? fabs(a) / 4 : 0;
            double b = draw_dyadic(&state);
            x[k] = sinkproof_around(a, w, w / 2, 0, 0), y[k] = sinkproof_known(b);
            real reach = fabsl((real)a) + w;
            lost += (fabs(a) - w < tiny ? fminl(reach, tiny) : 0) * fabsl((real)b);
            size_of += fabsl((real)a * b);
        }
        sinkproof_planes p = sinkproof_planes_of(x, 1, n, n), q = sinkproof_planes_of(y, 1, n, n);
        must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &out, 1));
        must(sinkproof_honest_products(&plain, &p, &q, NULL, NULL, &before, 1));
        sinkproof_planes_free(&p), sinkproof_planes_free(&q);
        real m = (real)n, rounds = m - 1 + (i % 2 ? 1 : 0);
        real grown = 1 + gamma_of(rounds, 0x1p-24L),
             flushes = (2 * m + 2) * grown * tiny - m * 0x1p-150L;
        real more = lost + flushes, noise = more + fabsl((real)out.mid) + size_of;
        // What is lost counts among the sizes that the sum's roundings see, too.
        real seen = lost * gamma_of(m, 0x1p-24L) * 2;
        near(&d, out.hi - before.hi, more, noise + seen * 0x1p53L / 40, 40);
        near(&d, before.lo - out.lo, more, noise + seen * 0x1p53L / 40, 40);
        near(&d, out.bias - before.bias, lost, lost, 40);
        near(&d, out.var - before.var, lost * lost, lost * lost + before.var, 40);
    }
    report(&d, "bound.ftz", "sums of products of small numbers", SEED);
}

int main(void) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) weights(&cases[c]);
    renormalised();
    sigmoid_by_tanh();
    small_numbers();
    small_products();
    return tap_done();
}
