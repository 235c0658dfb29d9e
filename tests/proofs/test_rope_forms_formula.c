// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation's bounds, computed again from the book's formulas (test_bound_formulas.c says how):
// the angle by a running product with its ramp, the rotation, and the concentration that is
// multiplied into the vector first.
#include "proofs/bounds/rope.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260411;
static const real TWO_PI = 6.283185307179586476925287L;

static real f32(real x) {
    return (real)(float)x;
}

static sinkproof_config shape(size_t head_dim, double factor, bool truncate) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    config.head_dim = head_dim, config.rotation.factor = factor,
    config.rotation.truncate = truncate;
    return config;
}

// ---- bound.form-running-angle -------------------------------------------------------------------

typedef struct span {
    real lo, mid, hi;
} span;

static real clamped(real x, real lo, real hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

// The share of the angle of pair i that stays, each step rounded to binary32.
static real stays(const sinkproof_config *c, size_t i) {
    real pairs = (real)c->head_dim / 2, base = logl(c->rotation.theta), last = 2 * pairs - 1;
    real low = pairs / base * logl(c->rotation.original_context / (c->rotation.beta_fast * TWO_PI));
    real high =
        pairs / base * logl(c->rotation.original_context / (c->rotation.beta_slow * TWO_PI));
    if (c->rotation.truncate) low = floorl(low), high = ceill(high);
    if (low < 0) low = 0;
    if (high > last) high = last;
    if (low == high) high = low + 0.001;
    return f32(1 - clamped(f32(f32(i - f32(low)) / f32(high - low)), 0, 1));
}

// x, rounded to binary32 or not.
static span hull(span x) {
    return (span){fminl(x.lo, f32(x.lo)), x.mid, fmaxl(x.hi, f32(x.hi))};
}

static span scaled(span x, real by) {
    return (span){x.lo * by, x.mid * by, x.hi * by};
}

static span running(const sinkproof_config *c, double ulp, double position, size_t i) {
    real s = expl(-f32(2.0L / (real)c->head_dim) * logl(c->rotation.theta));
    real declared = ulp * 0x1p-23L + 0x1p-50L;
    span a = {position, position, position};
    for (size_t k = i; k > 0; k--) {
        a.lo = f32(a.lo * f32(s - s * declared));
        a.mid = f32(a.mid * f32(s));
        a.hi = f32(a.hi * f32(s + s * declared));
    }
    real keep = stays(c, i);
    span slow = hull(scaled(hull(scaled(a, f32(1 / (real)c->rotation.factor))), f32(1 - keep)));
    span fast = hull(scaled(a, keep));
    return (span){slow.lo + fast.lo, slow.mid + fast.mid, slow.hi + fast.hi};
}

static sinkproof_policy running_policy(sinkproof_format inside) {
    sinkproof_policy policy = real_policy("definition");
    policy.forms[SINKPROOF_FORM_OF_A4_FREQ] = 1u << SINKPROOF_A4_FREQ_RUNNING;
    policy.inside = inside;
    return policy;
}

// The angle's point: none, bfloat16, or bfloat16 as an engine likes.
static span finished(span x, int point) {
    if (point == 0) return x;
    span r = {sinkproof_round(SINKPROOF_BF16, (double)x.lo),
              sinkproof_round(SINKPROOF_BF16, (double)x.mid),
              sinkproof_round(SINKPROOF_BF16, (double)x.hi)};
    return point == 1 ? r : (span){fminl(r.lo, x.lo), x.mid, fmaxl(r.hi, x.hi)};
}

static void angles(void) {
    distance d = {0};
    const double positions[] = {0, 1, 7, 4095, 131071};
    const sinkproof_config shapes[] = {shape(64, 32, false), shape(64, 32, true),
                                       shape(96, 5, false), shape(80, 40, false),
                                       shape(96, 1, true)};
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes; c++)
        for (int point = 0; point < 3; point++) {
            sinkproof_policy policy = running_policy(SINKPROOF_F32);
            policy.ulp[SINKPROOF_POW] = 1 + 3 * (double)c;
            policy.at[AT_A4_ANGLE] = (sinkproof_rounding){
                .format = point > 0 ? SINKPROOF_BF16 : SINKPROOF_REAL, .optional = point == 2};
            sinkproof_setting s = setting(&policy);
            for (size_t i = 0; i < shapes[c].head_dim / 2; i++)
                for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
                    sinkproof_honest a = honest_angle(&s, &shapes[c], positions[p], i);
                    span x = running(&shapes[c], policy.ulp[SINKPROOF_POW], positions[p], i);
                    x = finished(x, point);
                    near(&d, a.lo, x.lo, x.lo, 6), near(&d, a.hi, x.hi, x.hi, 6);
                    near(&d, a.likely_lo, x.lo, x.lo, 6), near(&d, a.likely_hi, x.hi, x.hi, 6);
                    near(&d, a.mid, x.mid, x.mid, 6);
                }
        }
    report(&d, "bound.form-running-angle", "every end in binary32", SEED);
}

// In binary64 the product's own error is added, i + 1 roundings of 2^-52: theta = 2^8 has the ratio
// 1/4 at d = 8, and an error of 1/8 + 2^-50 leaves a first product that nothing rounds. The ramp
// begins behind the pair, so that the angle stays whole.
static void first_angles(void) {
    size_t wrong = 0, compared = 0;
    sinkproof_policy policy = running_policy(SINKPROOF_F64);
    policy.ulp[SINKPROOF_POW] = 0x1p49;
    sinkproof_setting s = {.policy = &policy, .u = 0x1p-53, .odds = 30};
    sinkproof_config config = shape(8, 32, false);
    config.rotation.theta = 256, config.rotation.original_context = 4096;
    config.rotation.beta_fast = 4, config.rotation.beta_slow = 1;
    for (double position = 1; position < 1e6; position *= 2)
        for (size_t i = 0; i < 2; i++) {
            double lo = i == 0 ? position : position * (0.21875 - 0x1p-52);
            double hi = i == 0 ? position : position * (0.28125 + 0x1p-52);
            double here = hi * (i == 0 ? 0x1p-52 : 0x1p-51), mid = i == 0 ? position : position / 4;
            sinkproof_honest a = honest_angle(&s, &config, position, i);
            wrong += !(a.lo == lo - here && a.hi == hi + here && a.mid == mid);
            wrong += !(a.likely_lo == a.lo && a.likely_hi == a.hi);
            compared += 5;
        }
    ok(wrong == 0, "bound.form-running-angle exact angles in binary64 worst=%zu bound=0 of=%zu",
       wrong, compared);
}

// ---- bound.rope ---------------------------------------------------------------------------------

// What a rotation by nothing leaves of a number: its roundings' variance, and what is flushed.
static void rotations(void) {
    sinkproof_policy policy = policy_named("f32"), none = policy_named("f32,ftz=none");
    policy.at[AT_A4_PROD].format = policy.at[AT_A4].format = SINKPROOF_REAL;
    none.at[AT_A4_PROD].format = none.at[AT_A4].format = SINKPROOF_REAL;
    sinkproof_setting flushes = {.policy = &policy, .u = 0x1p-24, .odds = 30},
                      plain = {.policy = &none, .u = 0x1p-24, .odds = 30};
    sinkproof_honest zero = sinkproof_exact_set(0), one = sinkproof_exact_set(1), y[2];
    size_t wrong = 0;
    const double small = 0x1p-127;
    for (size_t d = 0; d < 2; d++) { // lost when it is read, and in two sums of two small numbers
        sinkproof_honest x[2] = {zero, zero};
        x[d] = sinkproof_exact_set(small);
        sinkproof_honest_rotate(&flushes, 2, x, &one, &zero, y);
        wrong += !(y[d].mid == small && y[d].bias == small + 4 * 0x1p-126);
        sinkproof_honest_rotate(&plain, 2, x, &one, &zero, y);
        wrong += !(y[d].mid == small && y[d].lo == small && y[d].hi == small && y[d].bias == 0);
    }
    const double odd = 1 + 0x1p-23, square = odd * odd, step = 0x1p-23 * 0x1p-23 / 12;
    sinkproof_honest w = sinkproof_exact_set(odd);
    for (size_t d = 0; d < 2; d++) {
        sinkproof_honest x[2] = {zero, zero};
        x[d] = w;
        sinkproof_honest_rotate(&plain, 2, x, &w, &zero, y);
        wrong += !(y[d].mid == square && y[d].hi == square && y[d].lo == (double)(float)square);
        wrong += !(y[d].var == 2 * step && y[1 - d].var == 0); // the product, then the sum
    }
    ok(wrong == 0, "bound.rope a rotation by nothing worst=%zu bound=0 of=%d", wrong, 20);
}

// ---- bound.form-scaled-first --------------------------------------------------------------------

enum { HEAD = 4 };

// x c with two roundings, then the point; c is a known number or a hull of two.
static void compare_scaled(distance *d, const sinkproof_honest *y, const sinkproof_honest *x,
                           real c_lo, real c_hi, bool whole, bool coarse) {
    real g = gamma_of(2, 0x1p-24L), likely = fminl(g, sqrtl(2 * 30.0L * 2) * 0x1p-24L * (1 + g));
    real ends[4] = {fminl(x->lo * c_lo, x->lo * c_hi), fmaxl(x->hi * c_lo, x->hi * c_hi),
                    fminl(x->likely_lo * c_lo, x->likely_lo * c_hi),
                    fmaxl(x->likely_hi * c_lo, x->likely_hi * c_hi)};
    real reach = fmaxl(fabsl(ends[0]), fabsl(ends[1])),
         near_by = fmaxl(fabsl(ends[2]), fabsl(ends[3]));
    if (!whole) ends[0] -= g * reach, ends[1] += g * reach;
    if (!whole) ends[2] -= likely * near_by, ends[3] += likely * near_by;
    for (int e = 0; coarse && e < 4; e++)
        ends[e] = sinkproof_round(SINKPROOF_BF16, (double)ends[e]);
    near(d, y->lo, ends[0], reach, 12), near(d, y->hi, ends[1], reach, 12);
    near(d, y->likely_lo, ends[2], reach, 12), near(d, y->likely_hi, ends[3], reach, 12);
}

// Is a set as it was before?
static bool untouched(const sinkproof_honest *x, double mark) {
    return x->lo == mark && x->hi == mark && x->mid == mark;
}

// factor: 1 for no concentration; a little more for one that bfloat16 rounds to 1.
static size_t scaled_first(distance *d, uint64_t *state, double factor, int conc, bool coarse) {
    sinkproof_policy policy = real_policy("definition");
    sinkproof_rounding none = {.format = SINKPROOF_REAL};
    policy.at[AT_A4_CONC] = (sinkproof_rounding){
        .format = conc > 0 ? SINKPROOF_BF16 : SINKPROOF_REAL, .optional = conc == 2};
    policy.at[AT_A4_SCALED] =
        (sinkproof_rounding){.format = coarse ? SINKPROOF_BF16 : SINKPROOF_REAL, .optional = false};
    policy.at[AT_A4_COS] = policy.at[AT_A4_PROD] = none;
    policy.at[AT_A4] = none;
    sinkproof_setting s = setting(&policy);
    sinkproof_config config = shape(HEAD, factor, false);
    real c = factor > 1 ? 1 + logl(factor) / 10 : 1;
    real r = sinkproof_round(SINKPROOF_BF16, (double)c);
    real lo = conc == 0 ? c : conc == 1 ? r : fminl(c, r), hi = conc == 2 ? fmaxl(c, r) : lo;
    const double mark = 17;
    sinkproof_honest ones[HEAD / 2], zeros[HEAD / 2], x[HEAD], work[3 * HEAD], y[HEAD + 1];
    sinkproof_honest all[HEAD + 1], table[HEAD];
    for (size_t k = 0; k < HEAD / 2; k++)
        ones[k] = sinkproof_exact_set(1), zeros[k] = sinkproof_exact_set(0);
    for (size_t k = 0; k < HEAD; k++) x[k] = draw_set(state, draw_dyadic(state));
    for (size_t k = 0; k < 3 * HEAD; k++) work[k] = sinkproof_exact_set(mark);
    y[HEAD] = all[HEAD] = sinkproof_exact_set(-mark);
    sinkproof_turns turns = {NULL, NULL, ones, zeros}, both = {zeros, ones, ones, zeros};
    sinkproof_honest_turn(&s, &config, &turns, x, work + HEAD / 2, y);
    bool whole = lo == 1 && hi == 1;
    for (size_t k = 0; k < HEAD; k++) compare_scaled(d, &y[k], &x[k], lo, hi, whole, coarse);
    // Two forms: the hull of what each of them leaves, and their distance as a bias.
    sinkproof_honest_rotate(&s, HEAD, x, zeros, ones, table);
    sinkproof_honest_turn(&s, &config, &both, x, work + HEAD / 2, all);
    for (size_t k = 0; k < HEAD; k++) {
        real size = fabs(table[k].mid) + fabs(y[k].mid) + 1;
        near(d, all[k].lo, fminl(table[k].lo, y[k].lo), size, 1);
        near(d, all[k].hi, fmaxl(table[k].hi, y[k].hi), size, 1);
        near(d, all[k].mid, table[k].mid, size, 1);
        near(d, all[k].bias, fmaxl(table[k].bias, y[k].bias) + fabsl((real)table[k].mid - y[k].mid),
             size, 2);
    }
    size_t wrong = !untouched(&y[HEAD], -mark) + !untouched(&all[HEAD], -mark);
    for (size_t k = 0; k < HEAD / 2; k++)
        wrong += !untouched(&work[k], mark) + !untouched(&work[3 * HEAD - 1 - k], mark);
    return wrong;
}

static void concentrations(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    size_t wrong = 0;
    const double factors[] = {0.5, 1, 1 + 0x1p-8, 1.0625, 32};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
        for (int i = 0; i < 6 * 20; i++)
            wrong += scaled_first(&d, &state, factors[f], i % 3, i / 3 % 2);
    report(&d, "bound.form-scaled-first", "every end", SEED);
    ok(wrong == 0, "bound.form-scaled-first sets written beside the result worst=%zu bound=0",
       wrong);
}

int main(void) {
    angles();
    first_angles();
    rotations();
    concentrations();
    return tap_done();
}
