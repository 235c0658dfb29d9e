// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The softmax of known logits as its bounds state it, written out a second time
// (test_bound_formulas.c says how), where the parts show that are small beside the others: errors
// of exp that grow with its argument, exponentials that are flushed, the evaluation's own errors,
// and exponentials that are rounded before they meet the values.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260412;
enum { MOST = 40 };

typedef struct row {
    size_t n;
    double z[MOST + 1], b; // z [n] is another number than b: nothing reads it
    real u, declared, of_log, grows;
    bool base_2, running, subtracted, gated, narrow;
    bool apart; // low ends are compared on their own scale
    double odds;
} row;

typedef struct ends {
    real lo, hi;
} ends;

// What the row's weights are made of.
typedef struct parts {
    real m, keys_m, log_sum, log_keys, growth, flush, mid[MOST + 1], own[MOST + 1];
    ends e[MOST + 1], keys, sink;
    real keys_mid, total;
} parts;

static double logit(const row *r, size_t j) {
    return j < r->n ? r->z[j] : r->b;
}

static real grown(const parts *p, real argument) {
    return p->growth * fminl(argument, 800);
}

static real exponent(const row *r, const parts *p, real far, real size) {
    real v = r->u + 0x1p-52L, g = gamma_of(2, r->u), top = fabsl(p->m);
    if (!r->base_2) return far * v + grown(p, far + far * v);
    real error = g * far + (1 + g) * g * size + v * (1 + g) * (far + g * (size + top));
    if (r->running) error += (1 + g) * r->u * (2 * fmaxl(size, top) + far);
    return error + grown(p, far + error);
}

static parts parts_of(const row *r) {
    parts p = {.m = -INFINITY, .keys_m = -INFINITY};
    for (size_t j = 0; j < r->n; j++) p.keys_m = fmaxl(p.keys_m, r->z[j]);
    p.m = fmaxl(p.keys_m, r->b);
    p.growth = r->grows * (1 + 0x1p-50L) / (1 - (r->declared + 800 * r->grows));
    real g = gamma_of(2, r->u), shared = r->base_2 ? (g + g * g) * fabsl(p.m) : 0;
    p.flush = r->narrow ? 0x1p-126L : 0x1p-1022L;
    if (shared > 0) p.flush *= expl(shared * (1 + 0x1p-50L)) * (1 + 0x1p-50L);
    for (size_t j = 0; j <= r->n; j++) {
        real z = logit(r, j), far = p.m - z;
        if (j == r->n && r->running && r->n > 0) far = fmaxl(far, z - p.keys_m);
        real x = exponent(r, &p, far, fabsl(z)), eta = expm1l(x);
        eta += eta * r->declared + r->declared + 0x1p-50L;
        p.own[j] = eta < 1 ? (1 + eta) / (1 - eta) : INFINITY;
        p.mid[j] = expl(z - p.m), p.total += p.mid[j];
        p.e[j].lo = fmaxl(p.mid[j] - p.mid[j] * eta - p.flush, 0);
        p.e[j].hi = p.mid[j] + p.mid[j] * eta + p.flush;
        ends *sum = j < r->n ? &p.keys : &p.sink;
        sum->lo += p.e[j].lo, sum->hi += p.e[j].hi;
    }
    p.keys_mid = p.total - p.mid[r->n];
    p.log_sum = fmaxl(logl(p.keys.hi + p.sink.hi), 0) + 0x1p-40L;
    p.log_keys = fmaxl(logl(p.keys.hi) + p.m - p.keys_m, 0) + 0x1p-40L;
    return p;
}

// lambda, and the errors of z - LSE and of LSE - b.
static real lambda(const row *r, const parts *p, real top, real log_sum) {
    return gamma_of(r->base_2 ? 7 : 2, r->u) * (top + 1 + log_sum) + r->of_log * (1 + log_sum) +
           r->declared + p->growth;
}
static real subtraction(const row *r, const parts *p) {
    real error = lambda(r, p, fabsl(p->m), p->log_sum);
    error += r->u * error + gamma_of(r->base_2 ? 3 : 1, r->u) * (p->log_sum + 1);
    return error + grown(p, error + p->log_sum);
}
static real gate(const row *r, const parts *p) {
    real argument = 1 + fmaxl(fabsl(p->keys_m + p->log_keys - r->b), fabsl(r->b - p->keys_m));
    real error = lambda(r, p, fabsl(p->keys_m), p->log_keys);
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

// Weight j, of a sum that errs by g, and rescalings by rho.
static ends weight(const row *r, const parts *p, size_t j, real g, real rho) {
    real here = gamma_of(2 * (real)r->n + 10, 0x1p-53L), five = gamma_of(5, r->u);
    real two = gamma_of(2, r->u), tiny = r->narrow ? 0x1p-126L : 0x1p-1022L;
    bool bounded = g < 1 && rho < 1;
    ends sums = {fmaxl(1 - rho, 0) / ((1 + rho) * (1 + g)),
                 bounded ? (1 + rho) / ((1 - rho) * (1 - g)) : INFINITY};
    ends all = {p->keys.lo + p->sink.lo, p->keys.hi + p->sink.hi}, e = p->e[j], a;
    ends rest = {fmaxl(all.lo * (1 - here) - e.lo, 0), all.hi * (1 + here) - e.hi};
    if (!r->subtracted && !r->gated) {
        a = product(share(e, rest, r->running ? p->own[j] : 1), sums);
        return (ends){a.lo * (1 - two), fminl(a.hi * (1 + two), 1 + 2 * r->u)};
    }
    if (r->subtracted) {
        a = product(product(share(e, rest, p->own[j]), sums), shifted(subtraction(r, p)));
    } else {
        ends keys = {p->keys.lo * (1 - here), p->keys.hi * (1 + here)};
        ends sink = product(product(p->sink, shifted(gate(r, p))), sums);
        ends others = {fmaxl(p->keys.lo * (1 - here) - e.lo, 0), p->keys.hi * (1 + here) - e.hi};
        a = j == r->n ? share(sink, keys, 1)
                      : product(product(share(e, others, p->own[j]), share(keys, sink, 1)), sums);
        a = product(a, (ends){1 - five, 1 + five});
    }
    return (ends){fmaxl(a.lo - tiny, 0), a.hi + tiny};
}

static sinkproof_policy policy_of(const row *r) {
    sinkproof_policy policy = real_policy(r->base_2       ? "base-2"
                                          : r->running    ? "running-max"
                                          : r->subtracted ? "lse-subtracted"
                                          : r->gated      ? "lse-gated"
                                                          : "definition");
    if (r->base_2 && r->running)
        policy.forms[SINKPROOF_FORM_OF_A9] |= 1u << SINKPROOF_A9_RUNNING_MAX;
    policy.inside = r->narrow ? SINKPROOF_F32 : SINKPROOF_F64;
    real step = r->u > 0 ? 2 * r->u : 1; // nothing is declared where nothing rounds
    policy.ulp[SINKPROOF_EXP] = (double)(r->declared / step);
    policy.ulp[SINKPROOF_LOG] = (double)(r->of_log / step);
    policy.exp_growth = (double)(r->grows / step);
    return policy;
}

// Rounded inside or not.
static ends inside(const row *r, ends a) {
    if (!r->narrow) return a;
    return (ends){fminl(a.lo, (real)(float)a.lo), fmaxl(a.hi, (real)(float)a.hi)};
}

// Of each weight the ends, worst and likely, and what may lean.
static void compare(distance *d, const row *r, real k) {
    sinkproof_policy policy = policy_of(r);
    sinkproof_setting s = {&policy, (double)r->u, r->odds};
    sinkproof_honest z[MOST + 1], alpha[MOST + 1];
    for (size_t j = 0; j <= r->n; j++) z[j] = sinkproof_known(r->z[j]);
    double common = 7, terms[MOST + 1];
    must(sinkproof_honest_softmax(&s, SINKPROOF_AT_A9, r->n, z, sinkproof_known(r->b), alpha,
                                  &common));
    parts p = parts_of(r);
    real count = (real)r->n + 1, here = gamma_of(2 * count + 8, 0x1p-53L), fourth = 0, away = 0;
    for (size_t j = 0; j <= r->n; j++) {
        real a = p.mid[j] / p.total;
        fourth += a * a, away += a > 0 ? a * (p.m - logit(r, j)) : 0, terms[j] = (double)p.mid[j];
    }
    real lean = lean_of(r->n + 1, terms, (double)p.total) / p.total;
    if (r->u == 0 || r->u != 0x1p-24L) lean = 0;
    real g = gamma_of(count - 1, r->u) + 2 * here, once = log1pl(r->declared) + r->u, rounds = 1;
    real order = r->u * sqrtl(2 * (real)r->odds * (count / 3 + count * fourth / 6));
    real g_likely = fminl(g, order + lean + 2 * here);
    while (rounds < count - 1 && rounds * logl(rounds) - rounds + 1 < r->odds) rounds++;
    real rho = r->running ? expm1l((count - 1) * once) * (1 + 0x1p-50L) : 0;
    real rho_likely = r->running ? expm1l(fminl(rounds, count - 1) * once) : 0;
    for (size_t j = 0; j <= r->n; j++) {
        ends worst = inside(r, weight(r, &p, j, g, rho));
        ends likely = inside(r, weight(r, &p, j, g_likely, rho_likely));
        // What is left of a difference errs by roundings of what was there before.
        real share_of = r->apart ? 0 : p.mid[j] / p.total;
        near(d, alpha[j].lo, worst.lo, fmaxl(worst.lo, share_of), k);
        near(d, alpha[j].likely_lo, likely.lo, fmaxl(likely.lo, share_of), k);
        near(d, alpha[j].hi, worst.hi, worst.hi, k);
        near(d, alpha[j].likely_hi, likely.hi, likely.hi, k);
        real a = p.mid[j] / p.total, t = p.m - logit(r, j);
        if (r->u != 0x1p-24L || !(alpha[j].mid > 0)) continue;
        real bias = (r->running ? 4 : 2) * r->declared + lean + grown(&p, t) + p.growth * away;
        if (r->base_2) bias += gamma_of(2, r->u) * (t + away);
        if (r->subtracted) bias += subtraction(r, &p);
        real most = r->gated ? gate(r, &p) : 0, less = j < r->n ? p.mid[r->n] / p.total : 1 - a;
        bias += most * less;
        near(d, alpha[j].bias, a * bias, a * (bias + most), k + 40);
    }
}

// ---- errors that grow, exponentials that are flushed --------------------------------------------

static row draw_row(uint64_t *state, int form, double reach) {
    row r = {.n = 1 + draw_below(state, 8), .u = 0x1p-24L, .odds = 30};
    r.base_2 = form == 1 || form == 5, r.running = form == 2 || form == 5;
    r.subtracted = form == 3, r.gated = form == 4;
    for (size_t j = 0; j < r.n; j++) r.z[j] = -reach * (double)draw_below(state, 1024) / 1024;
    r.z[r.n] = 3 * reach, r.b = -reach * (double)draw_below(state, 1024) / 2048;
    return r;
}

static void growing(void) {
    static const char *const ids[] = {"bound.exp-growing bound.form-base2 bound.exp",
                                      "bound.exp-growing bound.form-base2",
                                      "bound.exp-growing bound.exp bound.form-running-max",
                                      "bound.exp-growing bound.form-lse",
                                      "bound.exp-growing bound.form-lse",
                                      "bound.exp-growing bound.form-base2 bound.form-running-max"};
    for (int form = 0; form < 6; form++) {
        uint64_t state = SEED + (uint64_t)form;
        distance d = {0};
        for (int i = 0; i < 300; i++) {
            row r = draw_row(&state, form, i % 3 == 0 ? 4 : 100);
            r.narrow = i % 2;
            r.declared = i % 5 == 0 ? 0x1p-6L : 0x1p-20L, r.of_log = 0x1p-21L;
            const real grows[] = {0, 0x1p-30L, 0x1p-12L, 0x1p-11L};
            r.grows = grows[i % 4];
            r.odds = i % 7 ? 30 : 0.2;
            compare(&d, &r, 60);
        }
        char what[80];
        snprintf(what, sizeof what, "every end, form %d", form);
        report(&d, ids[form], what, SEED);
    }
}

// ---- the edges ----------------------------------------------------------------------------------

// Arguments beyond 800, and errors about 1 of a gate, of LSE and of a rescaling.
static void limits(void) {
    distance gates = {0}, whole = {0}, scales = {0}, factors = {0};
    for (int i = 0; i < 40; i++) {
        row r = {.n = 1 + (size_t)(i % 3), .u = 0x1p-24L, .odds = 30, .gated = true};
        r.z[r.n] = 3;
        // 800 g below 1 and 900 g above it; then a gate that errs by 1 to 2, and by more.
        r.grows = i % 2 ? 0x1.36p-11L : 0x1p-10L * (1 + (real)(i / 8) / 32),
        r.b = i % 2 ? -900 : -2;
        r.declared = 0x1p-20L;
        compare(&gates, &r, 120);
        r.gated = false, r.running = true, r.b = -0.5, r.z[0] = -400 - i;
        compare(&scales, &r, 4000); // a growth of up to 1/30: what is left of 1 - 800 b
        r.running = false, r.subtracted = true, r.b = -1, r.z[0] = 0;
        compare(&whole, &r, 120);
        row error = {
            .n = 2, .u = 0x1p-24L, .odds = 30, .b = -1, .subtracted = i % 2, .gated = i % 2 == 0};
        error.declared = 0x1p-20L, error.of_log = (real)(1 + i) / 16; // LSE errs by 1/8 and more
        compare(&whole, &error, 120);
    }
    report(&gates, "bound.exp-growing bound.form-lse", "a gate's arguments beyond 800", SEED);
    report(&whole, "bound.form-lse", "errors of LSE about 1", SEED);
    report(&scales, "bound.exp bound.exp-growing bound.form-running-max", "errors above 1", SEED);
    // Without a roundoff an exponential far below errs by what grows alone, e^(argument growth).
    for (int i = 0; i < 64; i++) {
        row r = {.n = 1, .odds = 30, .u = 0x1p-80L, .z = {-700 + i, 5}, .b = 0};
        r.grows = 1270 * 0x1p-20L; // 1 - 800 b = 2^-5, exactly to a few units
        real before = fabsl(700 - (real)i);
        compare(&factors, &r, 16 + 5 * before * 0.039L);
    }
    report(&factors, "bound.exp-growing", "the growth, to its last factor", SEED);
}

// Rows without a roundoff: what the evaluation here adds is all there is.
static void evaluations(void) {
    distance d = {0}, rescaled = {0}, flushed = {0}, lifted = {0};
    for (size_t n = 0; n < MOST; n++)
        for (int form = 0; form < 4; form++) {
            row r = {.n = n, .u = 0, .odds = 30, .z = {0}, .b = 0};
            r.running = form == 1, r.subtracted = form == 2, r.gated = form == 3;
            if (n == 0 && r.gated) continue;
            compare(&d, &r, (form == 3 ? 6 : 4) + (n > 4 ? (real)n : 0)); // sums of few are exact
        }
    report(&d, "bound.softmax-sink bound.form-lse bound.exp", "the evaluation's own errors", SEED);
    for (int i = 1; i < 16; i++) { // one rescaling whose error is i / 16
        row r = {.n = 1, .u = 0x1p-80L, .odds = 30, .running = true, .apart = true};
        r.declared = (real)i / 16;
        compare(&rescaled, &r, 8 + 4 * r.declared / (1 - r.declared));
    }
    row alone = {.n = 0, .u = 0x1p-24L, .odds = 30, .running = true, .declared = 0x1p-8L};
    compare(&rescaled, &alone, 12);
    report(&rescaled, "bound.form-running-max", "one rescaling, none", SEED);
    for (int i = 0; i < 64; i++) { // far below: what is flushed is all that is left
        row r = {.n = 2, .u = 0, .odds = 30, .narrow = true, .base_2 = true};
        r.z[0] = 0, r.z[1] = -3000, r.b = -1 - i, r.z[2] = 9;
        compare(&flushed, &r, 6);
        row far = {.n = 2, .u = 0x1p-10L, .odds = 30, .narrow = true, .base_2 = true};
        far.z[0] = 40 + i, far.z[1] = -3000, far.b = 30, far.z[2] = 9;
        compare(&lifted, &far, 60);
    }
    report(&flushed, "bound.form-base2", "what is flushed", SEED);
    report(&lifted, "bound.form-base2", "what is flushed under a large maximum", SEED);
}

int main(void) {
    growing();
    limits();
    evaluations();
    return tap_done();
}
