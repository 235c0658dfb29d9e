// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights sim_j / Z of a row of any design (bound.similarity), computed again in long double:
// both ends and the middle, for every similarity and divisor except the softmax. At u = 0 only the
// few roundings of the sets' own arithmetic are left, so that the margins of exp and pow, 2^-49,
// are visible; at u = 2^-10 the squares of errors are visible too.
#include "proofs/bounds/variants.h"
#include "proofs/truth/repeat.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261126;
enum { MOST = 6, DRAWS = 500 };

static const real margin = 0x1p-49L; // of exp and pow in binary64, as the code declares it

typedef struct ends {
    real lo, hi, mid;
} ends;

static const ends anything = {-INFINITY, INFINITY, 0};

// What a row's formulas need of its setting.
typedef struct row {
    real u, exp_ulp, exp_growth, pow_error, divided, lost; // lost: where a result is flushed
    sinkproof_similarity kind;
    sinkproof_divisor divisor;
    real by;
} row;

static real far_of(ends x) {
    return fmaxl(fabsl(x.lo), fabsl(x.hi));
}

static ends widened(ends x, real relative, real absolute) {
    real by = (relative * far_of(x) + absolute) * (1 + margin);
    return (ends){x.lo - by, x.hi + by, x.mid};
}

static ends not_negative(ends x) {
    return (ends){fmaxl(x.lo, 0), fmaxl(x.hi, 0), x.mid};
}

static real sim(sinkproof_similarity kind, real s) {
    if (kind == SINKPROOF_SIMILARITY_EXP) return expl(s);
    if (kind == SINKPROOF_SIMILARITY_SIGMOID) return 1 / (1 + expl(-s));
    return s < 0 ? expl(s) : s + 1; // elu(s) + 1
}

// farther: how much larger the argument may be of which an engine takes the exponential; above: how
// much larger its maximum may be, beside which it flushes.
static ends similar(const row *r, ends x, real farther, real above) {
    if (r->kind == SINKPROOF_SIMILARITY_SCORE) return x;
    real grown = r->exp_growth * farther * 2 * r->u,
         e_x = (r->exp_ulp + r->exp_growth * fminl(far_of(x), 800)) * 2 * r->u;
    real relative = e_x + r->u, absolute = r->lost;
    if (r->kind == SINKPROOF_SIMILARITY_SIGMOID)
        relative = (1 + e_x / (1 - e_x) + 3 * r->u) * (1 + r->divided) - 1;
    if (r->kind == SINKPROOF_SIMILARITY_ELU_PLUS_ONE && x.lo < 0) absolute += e_x + 2 * r->u;
    ends y = {sim(r->kind, x.lo) * (1 - margin), sim(r->kind, x.hi) * (1 + margin),
              sim(r->kind, x.mid)};
    real flushed = r->lost * (expl(above * (1 + margin)) - 1);
    return not_negative(widened(not_negative(widened(y, relative, absolute)), grown, flushed));
}

// x^p at the ends, and 0 between them where an even power folds. Nothing is known of other powers
// below 0.
static ends powered(const row *r, ends x, real p) {
    bool even = p == 2;
    if (x.lo < 0 && p != floorl(p)) return (ends){anything.lo, anything.hi, powl(x.mid, p)};
    real lo = powl(x.lo, p), hi = powl(x.hi, p);
    ends y = {fminl(lo, hi), fmaxl(lo, hi), powl(x.mid, p)};
    if (even && x.lo < 0 && x.hi > 0) y.lo = 0;
    y.lo -= fabsl(y.lo) * margin, y.hi += fabsl(y.hi) * margin;
    y = widened(y, r->pow_error + r->u, r->lost);
    return x.lo >= 0 || even ? not_negative(y) : y;
}

// Z: sums in any order, gamma_n of the sizes' sum.
static ends divisor_of(const row *r, size_t n, const bool *seen, const ends *sim_j) {
    ends z = {0, 0, 0};
    real sizes = 0, terms = 0;
    if (r->divisor == SINKPROOF_DIVISOR_ONE) return (ends){1, 1, 1};
    for (size_t j = 0; j < n; j++) {
        ends x = r->divisor == SINKPROOF_DIVISOR_POWER ? powered(r, sim_j[j], r->by) : sim_j[j];
        if (seen[j]) z.lo += x.lo, z.hi += x.hi, z.mid += x.mid, sizes += far_of(x), terms++;
    }
    z = widened(z, 0, gamma_of(terms, r->u) * sizes);
    if (r->divisor == SINKPROOF_DIVISOR_SCALED)
        return widened((ends){z.lo / r->by, z.hi / r->by, z.mid / r->by}, 4 * r->u, r->lost);
    if (r->divisor == SINKPROOF_DIVISOR_POWER)
        return powered(r, z, 1 / (double)r->by); // a number of binary64
    if (r->divisor != SINKPROOF_DIVISOR_AT_LEAST_1) return z;
    bool crosses = z.lo < 0 && z.hi > 0;
    real near_end = crosses ? 0 : fminl(fabsl(z.lo), fabsl(z.hi));
    return (ends){fmaxl(near_end, 1), fmaxl(far_of(z), 1), fmaxl(fabsl(z.mid), 1)};
}

// x / Z at all four corners, a quotient or a product with the reciprocal. Nothing is known where Z
// may be 0.
static ends over(const row *r, ends x, ends z) {
    if (!(z.lo > 0)) return (ends){anything.lo, anything.hi, x.mid / z.mid};
    ends y = {fminl(x.lo / z.lo, x.lo / z.hi), fmaxl(x.hi / z.lo, x.hi / z.hi), x.mid / z.mid};
    return widened(y, fmaxl(2 * r->u, r->divided) + margin, r->lost);
}

// ---- rows ---------------------------------------------------------------------------------------

typedef struct numerics {
    sinkproof_format inside;
    double u, growth;
    const char *text;
    double div; // declared ulp of a quotient
} numerics;

static const numerics all[] = {{SINKPROOF_F64, 0, 0, "u = 0", 0.5},
                               {SINKPROOF_F32, 0, 0, "u = 0 in f32", 0.5},
                               {SINKPROOF_F64, 0x1p-24, 0.25, "u = 2^-24", 0.5},
                               {SINKPROOF_F64, 0x1p-24, 0, "div = 3ulp", 3},
                               {SINKPROOF_F64, 0x1p-10, 0, "u = 2^-10", 0.5}};

static sinkproof_policy policy_of(const numerics *c) {
    sinkproof_policy policy = real_policy("definition");
    policy.inside = c->inside, policy.exp_growth = c->growth, policy.ulp[SINKPROOF_DIV] = c->div;
    return policy;
}

static row row_of(const numerics *c, const sinkproof_policy *p, sinkproof_similarity kind) {
    row r = {.u = c->u, .exp_ulp = p->ulp[SINKPROOF_EXP], .exp_growth = c->growth, .kind = kind};
    r.pow_error = p->ulp[SINKPROOF_POW] * 2 * r.u, r.divided = quotient_of(p, r.u);
    r.lost = c->inside == SINKPROOF_F32 ? 0x1p-126L : 0x1p-1022L;
    return r;
}

// A score: around it a set of any width, some with an end at 0, some of either sign.
static sinkproof_honest draw_score(uint64_t *state, const row *r, bool *seen) {
    double mid = draw_dyadic(state), lo = ldexp(1 + draw_unit(state), -12),
           hi = ldexp(1 + draw_unit(state), -12);
    int kind = (int)draw_below(state, 8);
    bool power = r->divisor == SINKPROOF_DIVISOR_POWER && r->kind == SINKPROOF_SIMILARITY_SCORE;
    if (power && r->by != 2) mid = fabs(mid); // the sum may be below 0, and its root no number
    if (kind == 0) lo = 0.75 + fabs(mid);     // of both signs
    if (kind == 1) hi = 0.75 + fabs(mid);
    if (kind == 2) mid = fabs(mid), lo = mid;
    if (kind == 3) mid = -fabs(mid), hi = -mid;
    if (kind == 4 && r->kind == SINKPROOF_SIMILARITY_ELU_PLUS_ONE) mid = 10 * mid - 45;
    if (kind == 6 && r->kind == SINKPROOF_SIMILARITY_EXP) mid -= r->lost > 0x1p-200L ? 88 : 708;
    sinkproof_honest x = {mid - lo, mid + hi, mid - lo, mid + hi, mid, 0, 0, 0, 0};
    *seen = draw_below(state, 4) > 0;
    if (kind == 5) return sinkproof_exact_set(mid);
    return x;
}

// Twice the similarities, twice the divisor: the weights stay.
static bool homogeneous(sinkproof_divisor divisor) {
    return divisor == SINKPROOF_DIVISOR_SUM || divisor == SINKPROOF_DIVISOR_SCALED ||
           divisor == SINKPROOF_DIVISOR_POWER;
}

// The row of one draw; exponentials that are divided by what grows with them are of the distance
// to the largest middle. An engine subtracts its own largest, between the largest ends: where these
// differ, it rounds another distance, and takes the exponential of one.
static size_t draw_row(uint64_t *state, const sinkproof_setting *s, const row *r,
                       sinkproof_honest *s_j, bool *seen, ends *x_j, real *farther_j, real *above) {
    size_t n = 1 + draw_below(state, MOST);
    double most = -INFINITY, most_lo = -INFINITY, most_hi = -INFINITY, scale = 1;
    bool power = r->divisor == SINKPROOF_DIVISOR_POWER && r->kind == SINKPROOF_SIMILARITY_SCORE;
    if (power && draw_below(state, 3) == 0) scale = r->lost > 0x1p-200L ? 0x1p-58 : 0x1p-338;
    for (size_t j = 0; j < n; j++) {
        s_j[j] = draw_score(state, r, &seen[j]);
        if (j == 0) seen[j] = true;
        s_j[j].lo *= scale, s_j[j].hi *= scale, s_j[j].mid *= scale;
        if (scale < 1 && j % 2) s_j[j] = sinkproof_exact_set(0);
        if (!seen[j]) continue;
        most = fmax(most, s_j[j].mid);
        most_lo = fmax(most_lo, s_j[j].lo), most_hi = fmax(most_hi, s_j[j].hi);
    }
    *above = 0;
    for (size_t j = 0; j < n; j++) {
        sinkproof_honest x = s_j[j], other = x;
        bool shifts = r->kind == SINKPROOF_SIMILARITY_EXP && homogeneous(r->divisor);
        if (shifts)
            x = sinkproof_honest_inside(s, sinkproof_honest_sub(x, sinkproof_exact_set(most)));
        x_j[j] = (ends){x.lo, x.hi, x.mid}, farther_j[j] = 0;
        if (!shifts || most_lo == most_hi) continue;
        *above = (real)most_hi - most;
        ends near = {(real)other.lo - most, (real)other.hi - most, x.mid};
        real far = fmaxl(fabsl((real)other.lo - most_hi), fabsl((real)other.hi - most_lo));
        farther_j[j] = far - far_of(near);
        x_j[j] = (ends){near.lo - r->u * far, near.hi + r->u * far, x.mid};
    }
    return n;
}

static void compare(distance *d, const sinkproof_honest *found, ends stated, real least, real k) {
    real size = isfinite((double)far_of(stated)) ? far_of(stated) : 1;
    size = fmaxl(size, least);
    near(d, found->lo, stated.lo, size, k), near(d, found->hi, stated.hi, size, k);
    near(d, found->likely_lo, stated.lo, size, k), near(d, found->likely_hi, stated.hi, size, k);
    near(d, found->mid, stated.mid, fmaxl(fabsl(stated.mid), least), k);
    near(d, found->var + found->spread + found->bias + found->order, 0, 1, 1);
}

// How much larger a rounding of the sum is beside what is left of it; infinite where its sign is
// the roundings' choice.
static real condition(const row *r, ends z, real sizes) {
    bool power = r->divisor == SINKPROOF_DIVISOR_POWER;
    if (power && z.lo > 0) return 1 + powl(z.hi / z.lo, fmaxl(r->by, 1));
    bool plain = r->divisor == SINKPROOF_DIVISOR_SUM || r->divisor == SINKPROOF_DIVISOR_SCALED;
    if (!plain || (z.lo < 0 && z.hi > 0 && -z.lo > sizes * 0x1p-30L)) return 1 + sizes;
    return 1 + sizes / fminl(fabsl(z.lo), fabsl(z.hi));
}

static void rows_of(distance *d, const numerics *c, sinkproof_similarity kind,
                    sinkproof_divisor divisor, uint64_t *state) {
    const double by_of[] = {2, 3, 0.5, 1.5};
    sinkproof_policy policy = policy_of(c);
    sinkproof_setting s = {.policy = &policy, .u = c->u, .odds = 30};
    row r = row_of(c, &policy, kind);
    r.divisor = divisor;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest s_j[MOST], found[MOST];
        ends x_j[MOST], sim_j[MOST];
        real farther_j[MOST], above;
        bool seen[MOST];
        r.by = by_of[i % 4];
        sinkproof_variant variant = {.similarity = kind, .divisor = divisor};
        variant.divisor_by = (double)r.by;
        size_t n = draw_row(state, &s, &r, s_j, seen, x_j, farther_j, &above);
        must(sinkproof_honest_variant_weights(&s, &variant, n, seen, s_j, found));
        real sizes = 0;
        for (size_t j = 0; j < n; j++)
            sim_j[j] = similar(&r, x_j[j], farther_j[j], above),
            sizes += seen[j] ? far_of(sim_j[j]) : 0;
        ends z = divisor_of(&r, n, seen, sim_j);
        real own = divisor == SINKPROOF_DIVISOR_ONE ? 0 : 4 * (real)n * condition(&r, z, sizes);
        real k = 14 + (c->u > 0 ? 40 : 0) + own;
        for (size_t j = 0; j < n && k < 0x1p30L; j++) {
            ends stated = seen[j] ? over(&r, sim_j[j], z) : (ends){0, 0, 0};
            if (stated.mid != stated.mid) continue; // nothing over nothing
            // A difference is rounded to 2^-52 of itself: so much of its exponential.
            real far = kind == SINKPROOF_SIMILARITY_EXP ? far_of(x_j[j]) + above : 0;
            compare(d, &found[j], stated, 8 * r.lost, k + 2 * far);
        }
    }
}

// The divisors, and the ends of a similarity by itself: exp (2), its margin, what is flushed (4),
// the quotient's margin (2).
// What a distance adds to a score: the middle of the set, the reference, and the truth's whole
// numbers, which take no logarithm. Queries are 0, so that nothing else is in the score.
static void places(void) {
    enum { KEYS = 300, DIM = 2 };
    static double q_d[DIM], k_jd[KEYS * DIM], bucket_b[SINKPROOF_BUCKETS];
    static sinkproof_honest s_j[KEYS + 1];
    static bool seen[KEYS + 1];
    static const char *const names[] = {"relative", "relative-bucket", "alibi"};
    sinkproof_policy policy;
    size_t off = 0, asked = 0;
    if (!sinkproof_policy_known("real-f64", &policy)) abort();
    sinkproof_setting s = sinkproof_setting_for(&policy, KEYS, 1e-9);
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) bucket_b[b] = 3 - 0.25 * (double)b;
    for (size_t j = 0; j < KEYS; j++) seen[j] = true;
    sinkproof_variant_head head = {.n = KEYS, .dim = DIM, .bucket_b = bucket_b, .slope = 0.375};
    for (size_t v = 0; v < sizeof names / sizeof *names; v++) {
        const sinkproof_variant *variant = sinkproof_variant_find(names[v]);
        if (!sinkproof_honest_variant_scores(&s, variant, &head, KEYS - 1, KEYS, seen, q_d, k_jd,
                                             s_j))
            abort();
        for (size_t j = 0; j < KEYS; j++, asked++) {
            size_t away = KEYS - 1 - j, bucket = repeat_t5_bucket(away, SINKPROOF_BUCKETS, 128);
            double truth = v == 0   ? bucket_b[bucket]
                           : v == 1 ? (double)bucket
                                    : -0.375 * (double)away;
            off += !(s_j[j].mid == truth &&
                     sinkproof_variant_place_bias(variant, &head, away) == truth);
        }
    }
    ok(off == 0 && asked == 3 * KEYS,
       "bound.similarity places=%zu of which bounds or reference differ=%zu bound=0", asked, off);
}

// What k* brings: the set of a row that gives it all weight holds the reference's own value.
static void star_values(void) {
    enum { DIM = 5 };
    static const char *const names[] = {"k-bias", "kv-bias", "value-first-5", "value-even-5"};
    static double v_jd[DIM], value_d[DIM] = {0.5, -1, 2, -4, 8}, alpha_j[2] = {0, 1};
    sinkproof_policy policy;
    size_t off = 0;
    if (!sinkproof_policy_known("real-f64", &policy)) abort();
    sinkproof_setting s = sinkproof_setting_for(&policy, DIM, 1e-9);
    sinkproof_variant_head head = {.n = 1, .dim = DIM, .value_d = value_d};
    for (size_t v = 0; v < sizeof names / sizeof *names; v++) {
        sinkproof_honest o_d[DIM];
        double star_d[DIM];
        const sinkproof_variant *variant = sinkproof_variant_find(names[v]);
        variant_star_value(variant, &head, star_d);
        if (!sinkproof_honest_variant_values(&s, variant, &head, 1, alpha_j, v_jd, o_d)) abort();
        for (size_t d = 0; d < DIM; d++) off += !(o_d[d].mid == star_d[d]);
    }
    ok(off == 0, "bound.similarity values of k* of which bounds and reference differ=%zu bound=0",
       off);
}

int main(void) {
    const sinkproof_similarity kinds[] = {SINKPROOF_SIMILARITY_EXP, SINKPROOF_SIMILARITY_SIGMOID,
                                          SINKPROOF_SIMILARITY_ELU_PLUS_ONE,
                                          SINKPROOF_SIMILARITY_SCORE};
    const char *names[] = {"e^s", "sigmoid", "elu + 1", "score"};
    uint64_t state = SEED;
    for (size_t c = 0; c < sizeof all / sizeof *all; c++)
        for (int kind = 0; kind < 4; kind++) {
            distance d = {0};
            for (int z = SINKPROOF_DIVISOR_SUM; z <= SINKPROOF_DIVISOR_AT_LEAST_1; z++)
                if (kind > 0 || z != SINKPROOF_DIVISOR_SUM)
                    rows_of(&d, &all[c], kinds[kind], (sinkproof_divisor)z, &state);
            char what[64];
            snprintf(what, sizeof what, "%s, %s, every divisor", names[kind], all[c].text);
            report(&d, "bound.similarity", what, SEED);
        }
    places();
    star_values();
    return tap_done();
}
