// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where nothing overflows (bound.overflow). A float32 engine whose sizes, times their growth, are
// below the largest float meets no infinity in any order of its sums. If they are not, it may meet
// one, and its set is unbounded. The same for norms, the softmax and the activation at numbers of
// this size.
#include "tests/shared/bounds_engine.h"

#include <float.h>
#include <stdlib.h>

static const uint64_t SEED = 20261122;
enum { TERMS = 64, ROWS = 600, SHUFFLES = 8 };

static sinkproof_honest sum_set(const sinkproof_setting *s, size_t n, const float *a,
                                const float *b) {
    sinkproof_honest a_k[TERMS], b_k[TERMS], y;
    for (size_t k = 0; k < n; k++)
        a_k[k] = sinkproof_exact_set((double)a[k]), b_k[k] = sinkproof_exact_set((double)b[k]);
    sinkproof_planes p = sinkproof_planes_new(a_k, 1, n, n), q = sinkproof_planes_new(b_k, 1, n, n);
    must(sinkproof_honest_products(s, &p, &q, NULL, NULL, &y, 1));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    return y;
}

static void shuffle(size_t n, float *a, float *b, uint64_t *state) {
    for (size_t k = n; k > 1; k--) {
        size_t j = draw_below(state, k);
        float x = a[k - 1], y = b[k - 1];
        a[k - 1] = a[j], b[k - 1] = b[j], a[j] = x, b[j] = y;
    }
}

// The sum in this order, fused or not; *most is the largest size of any result on the way.
static float summed(size_t n, const float *a, const float *b, bool fused, float *most) {
    float sum = 0;
    for (size_t k = 0; k < n; k++) {
        float product = a[k] * b[k];
        sum = fused ? fmaf(a[k], b[k], sum) : sum + product;
        *most = fmaxf(*most, fmaxf(fused ? 0 : fabsf(product), fabsf(sum)));
    }
    return sum;
}

// Terms whose sizes add up to about `share` of the largest float: positive, or the positive ones
// first.
static size_t draw_terms(double share, float *a, float *b, uint64_t *state) {
    size_t n = 4 + draw_below(state, TERMS - 3); // so that no product overflows
    bool positive = draw_below(state, 2) == 0;
    for (size_t k = 0; k < n; k++) {
        b[k] = 64 * (float)(1 + draw_unit(state));
        double size = share * (double)FLT_MAX / (double)n * (0.5 + draw_unit(state)) / (double)b[k];
        a[k] = (float)(2 * k < n || positive ? size : -size);
    }
    return n;
}

static void sums(const sinkproof_setting *s) {
    uint64_t state = SEED;
    size_t bounded = 0, open = 0, infinite = 0, outside = 0, missed = 0, closed = 0;
    double worst = 0;
    for (size_t r = 0; r < ROWS; r++) {
        float a[TERMS], b[TERMS];
        size_t n = draw_terms(0.5 + 1.5 * draw_unit(&state), a, b, &state);
        double sizes = 0;
        for (size_t k = 0; k < n; k++) sizes += fabs((double)a[k] * (double)b[k]);
        sinkproof_honest y = sum_set(s, n, a, b);
        bool has_bounds = y.lo > -INFINITY && y.hi < INFINITY;
        closed += has_bounds && !(sizes <= (double)FLT_MAX);
        missed += !has_bounds && sizes < (double)FLT_MAX * (1 - 4 * TERMS * 0x1p-24);
        bounded += has_bounds, open += !has_bounds;
        for (size_t o = 0; o < SHUFFLES; o++) {
            float most = 0, sum = summed(n, a, b, o % 2, &most);
            infinite += !(most <= FLT_MAX);
            outside += !((double)sum >= y.lo && (double)sum <= y.hi);
            if (has_bounds) worst = sinkproof_keep_worst(worst, (double)most / (double)FLT_MAX);
            shuffle(n, a, b, &state);
        }
    }
    ok(worst <= 1 && bounded > 0,
       "bound.overflow sums below the largest float worst=%.4g bound=1 of %zu", worst, bounded);
    ok(open > 0 && infinite > 0 && outside == 0,
       "bound.overflow %zu sums that may overflow, %zu results that did, %zu outside", open,
       infinite, outside);
    ok(closed == 0 && missed == 0,
       "bound.overflow bounds where sizes are below, none where they are not: %zu and %zu wrong",
       closed, missed);
}

// Seven additions to four steps below the largest float, each a hair over half a step: the sum of
// sizes is below it, and the engine is beyond.
static void rounded_up(const sinkproof_setting *s) {
    float a[8] = {FLT_MAX - 0x1p106f}, b[8] = {1}, most = 0;
    double sizes = (double)a[0];
    for (size_t k = 1; k < 8; k++)
        a[k] = 0x1p103f * (1 + 0x1p-20f), b[k] = 1, sizes += (double)a[k];
    float sum = summed(8, a, b, false, &most);
    sinkproof_honest y = sum_set(s, 8, a, b);
    ok(sizes < (double)FLT_MAX && sum == INFINITY && y.hi == INFINITY && y.lo == -INFINITY,
       "bound.overflow by roundings alone: the set is [%g, %g]", y.lo, y.hi);
}

// In binary64 the end is another.
static void in_binary64(void) {
    sinkproof_policy policy = policy_named("f32,inside=f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    const float a[2] = {FLT_MAX, FLT_MAX}, b[2] = {1, FLT_MAX};
    sinkproof_honest y = sum_set(&s, 2, a, b);
    ok(y.lo > (double)FLT_MAX && y.hi < 1.01 * (double)FLT_MAX * (double)FLT_MAX,
       "bound.overflow products beyond the largest float, in binary64: [%g, %g]", y.lo, y.hi);
    sinkproof_honest w_k[2] = {sinkproof_exact_set(DBL_MAX), sinkproof_exact_set(-DBL_MAX)}, out;
    const sinkproof_honest v_k[2] = {sinkproof_exact_set(1), sinkproof_exact_set(1)};
    sinkproof_planes p = sinkproof_planes_new(w_k, 1, 2, 2), q = sinkproof_planes_new(v_k, 1, 2, 2);
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &out, 1));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    ok(out.lo == -INFINITY && out.hi == INFINITY,
       "bound.overflow sizes beyond the largest double: [%g, %g]", out.lo, out.hi);
}

static void norms(const sinkproof_setting *s) {
    uint64_t state = SEED + 1;
    size_t zeros = 0, numbers = 0, outside = 0;
    for (size_t r = 0; r < ROWS; r++) {
        sinkproof_honest x_d[TERMS], y_d[TERMS];
        double scale_d[TERMS], common, size = exp2(58 + 10 * draw_unit(&state));
        float x[TERMS], sum = 0;
        for (size_t i = 0; i < TERMS; i++) {
            x[i] = (float)(size * draw_gauss(&state)), scale_d[i] = 0x1p-20;
            x_d[i] = sinkproof_exact_set((double)x[i]), sum += x[i] * x[i];
        }
        float root = 1 / sqrtf(sum / TERMS + 1e-5f);
        sinkproof_honest_rmsnorm(s, AT_A1, &(sinkproof_norm){TERMS, scale_d, 1e-5}, x_d, y_d,
                                 &common);
        zeros += root == 0, numbers += root > 0;
        for (size_t i = 0; i < TERMS; i++) {
            double y = (double)(x[i] * 0x1p-20f * root);
            outside += !(y >= y_d[i].lo && y <= y_d[i].hi);
        }
    }
    ok(zeros > 0 && numbers > 0 && outside == 0,
       "bound.overflow norms: %zu infinite sums of squares, %zu finite, %zu elements outside",
       zeros, numbers, outside);
}

// Scores of any size: neither a numerator nor their sum is large.
static void softmax(const sinkproof_setting *s) {
    uint64_t state = SEED + 2;
    double worst = 0, declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    for (size_t r = 0; r < ROWS; r++) {
        float z[TERMS], m = -INFINITY, sum = 0;
        size_t n = 1 + draw_below(&state, TERMS);
        for (size_t k = 0; k < n; k++) {
            z[k] = (float)(draw_gauss(&state) * exp2(20 * draw_unit(&state)));
            m = fmaxf(m, z[k]);
        }
        for (size_t k = 0; k < n; k++) sum += expf(z[k] - m);
        double bound = (1 + sinkproof_gamma((double)n, s->u)) * (double)n * (1 + declared);
        worst = sinkproof_keep_worst(worst, (double)sum / bound);
    }
    ok(worst <= 1, "bound.overflow sums of exponentials worst=%.9g bound=1", worst);
}

static void activations(const sinkproof_setting *s) {
    const sinkproof_config config = {.swiglu = {1.702, 7, 1}};
    uint64_t state = SEED + 3;
    size_t infinite = 0, outside = 0;
    double worst = 0, declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    for (size_t r = 0; r < ROWS; r++) {
        float g = (float)(-40 - 60 * draw_unit(&state)), u = (float)draw_gauss(&state);
        float t = 1.702f * g, e = expf(-t), sigmoid = 1 / (1 + e);
        infinite += !(e <= FLT_MAX);
        // What is lost of the sigmoid where the exponential has overflowed.
        double lost = 1 / (1 + exp(-(double)t)), bound = (1 + declared) / (double)FLT_MAX;
        if (!(e <= FLT_MAX)) worst = sinkproof_keep_worst(worst, lost / bound);
        double y = (double)(g * sigmoid * (u + 1));
        sinkproof_honest set = sinkproof_honest_swiglu(
            s, config.swiglu, sinkproof_exact_set((double)g), sinkproof_exact_set((double)u));
        outside += !(y >= set.lo && y <= set.hi);
    }
    ok(worst <= 1 && infinite > 0 && outside == 0,
       "bound.overflow sigmoids of %zu infinite exponentials worst=%.4g bound=1 outside=%zu",
       infinite, worst, outside);
}

// Two infinities that meet in a set leave nothing known; NaN stays NaN.
static void infinities(void) {
    const sinkproof_honest beyond = sinkproof_exact_set(INFINITY), nan = sinkproof_exact_set(NAN);
    sinkproof_honest d = sinkproof_honest_sub(beyond, beyond);
    ok(d.lo == -INFINITY && d.hi == INFINITY, "bound.overflow infinity less infinity is anything");
    d = sinkproof_honest_sub(nan, beyond);
    ok(d.lo != d.lo && d.hi != d.hi, "bound.overflow NaN less infinity is NaN");
}

// Wherever float32 arithmetic holds NaN the set says nothing, and where it is finite or infinite
// the set holds it.
typedef struct seen {
    size_t nans, open, outside;
} seen;

static void look(seen *n, float y, const sinkproof_honest *set) {
    n->nans += isnan(y) != 0, n->open += sinkproof_is_unknown(set);
    n->outside +=
        isnan(y) ? !sinkproof_is_unknown(set) : !((double)y >= set->lo && (double)y <= set->hi);
}

// x with up to two of its numbers infinite or NaN.
static void draw_row(size_t n, float *x, sinkproof_honest *x_k, uint64_t *state) {
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < n; k++) x[k] = (float)draw_gauss(state);
    for (size_t i = draw_below(state, 3); i > 0; i--)
        x[draw_below(state, n)] = odd[draw_below(state, 3)];
    for (size_t k = 0; k < n; k++)
        x_k[k] =
            isnan(x[k]) ? sinkproof_unknown_set((double)x[k]) : sinkproof_exact_set((double)x[k]);
}

static float weights_of(size_t n, const float *z, float b, float *e) {
    float m = b, sum = 0;
    bool nan = false;
    for (size_t j = 0; j < n; j++) m = fmaxf(m, z[j]), nan = nan || isnan(z[j]);
    if (nan) m = NAN;
    for (size_t j = 0; j < n; j++) sum += e[j] = expf(z[j] - m);
    return sum + expf(b - m);
}

// NaN as a middle, or an error without a bound; how far it is from an honest number is no random
// error.
static void set_of_nothing(void) {
    const sinkproof_honest sets[] = {
        sinkproof_set_around(NAN, 1, 1, 1, 1), sinkproof_set_around(1, INFINITY, 1, 1, 1),
        sinkproof_set_around(1, NAN, 1, 1, 1), sinkproof_unknown_set(3)};
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        wrong += !sinkproof_is_unknown(&sets[i]) || sets[i].bias != INFINITY ||
                 sets[i].likely_lo != -INFINITY || sets[i].likely_hi != INFINITY;
    const sinkproof_honest bounded = sinkproof_set_around(1, 1, 0.5, 1, 1);
    wrong += sinkproof_is_unknown(&bounded) || bounded.bias != 1;
    ok(wrong == 0, "bound.overflow what nothing is known of worst=%zu bound=0", wrong);
}

// As vector libraries clamp: NaN passes.
static float clamp_to(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

static void behind(const sinkproof_setting *s) {
    enum { N = 6 };
    uint64_t state = SEED + 5;
    seen of_sums = {0}, of_norms = {0}, of_weights = {0}, of_activations = {0};
    size_t wrong = 0;
    const sinkproof_config config = {.swiglu = {1.702, 7, 1}};
    const double ones[N] = {1, 1, 1, 1, 1, 1};
    for (size_t r = 0; r < ROWS; r++) {
        float x[N], y[N], e[N], square = 0, most = 0;
        sinkproof_honest x_k[N + 1], y_k[N], set_k[N + 1], set;
        double common;
        draw_row(N, x, x_k, &state);
        x_k[N] = sinkproof_unknown_set(0); // of no row
        for (size_t k = 0; k < N; k++)
            y[k] = (float)draw_gauss(&state), y_k[k] = sinkproof_exact_set((double)y[k]);
        sinkproof_planes p = sinkproof_planes_new(x_k, 1, N, N);
        sinkproof_planes q = sinkproof_planes_new(y_k, 1, N, N);
        must(sinkproof_honest_products(s, &p, &q, NULL, NULL, &set, 1));
        sinkproof_planes_free(&p), sinkproof_planes_free(&q);
        look(&of_sums, summed(N, x, y, r % 2 != 0, &most), &set);

        for (size_t k = 0; k < N; k++) square += x[k] * x[k];
        set_k[N] = sinkproof_exact_set(9), common = 7;
        sinkproof_honest_rmsnorm(s, AT_A1, &(sinkproof_norm){N, ones, 1e-5}, x_k, set_k, &common);
        for (size_t k = 0; k < N && isnan(square); k++) wrong += set_k[k].mid != 0 || common != 0;
        wrong += set_k[N].mid != 9;
        for (size_t k = 0; k < N; k++)
            look(&of_norms, x[k] * (1 / sqrtf(square / N + 1e-5f)), &set_k[k]);

        float g = clamp_to(x[0], -INFINITY, 7), u = clamp_to(x[1], -7, 7);
        set = sinkproof_honest_swiglu(s, config.swiglu, x_k[0], x_k[1]);
        look(&of_activations, g * (1 / (1 + expf(-1.702f * g))) * (u + 1), &set);

        size_t n = 1 + draw_below(&state, N);
        float b = r % 3 == 0 ? -INFINITY : y[0], sum = weights_of(n, x, b, e);
        must(sinkproof_honest_softmax(s, AT_A9, n, x_k, sinkproof_exact_set((double)b), set_k,
                                      &common));
        for (size_t j = 0; j < n; j++) look(&of_weights, e[j] / sum, &set_k[j]);
    }
    const seen *all[] = {&of_sums, &of_norms, &of_weights, &of_activations};
    const char *const names[] = {"bound.linear sums", "bound.rmsnorm norms",
                                 "bound.softmax-sink weights", "bound.swiglu activations"};
    for (size_t i = 0; i < 4; i++) { // one infinity in a sum may be no NaN
        bool all_nan = i == 0 || all[i]->open == all[i]->nans;
        ok(all[i]->nans > 50 && all[i]->open > 50 && all[i]->outside == 0 && all_nan,
           "bound.overflow %s of infinities and NaN: %zu NaN, %zu sets without a bound, "
           "outside=%zu",
           names[i], all[i]->nans, all[i]->open, all[i]->outside);
    }
    ok(wrong == 0, "bound.overflow bound.rmsnorm rows of nothing known worst=%zu bound=0", wrong);
    set_of_nothing();
}

int main(void) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    sums(&s), rounded_up(&s), norms(&s), softmax(&s), activations(&s);
    in_binary64(), infinities(), behind(&s);
    return tap_done();
}
