// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Enclosures against what is known without them: special cases in closed form, laws that hold over
// the reals, the published table of YaRN. Two balls for one number must overlap, and both must be
// narrow, because a stage that returned the whole line would overlap everything.
#include "proofs/bounds/worst.h"
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

enum { BITS = 256 };

// Relative radius that n + 1 exponentials, their sum and one quotient may have, as a power of two:
// with exact logits at most `spread` apart, e^(z-m) is off by (spread + 1) 2^-BITS relative at
// most (rounding of z - m, then of exp), the sum of n + 1 by n 2^-BITS more, the quotient by the
// sum of both and 2^-BITS; a factor 4 for radii that are rounded up to 30 bits and
// for the final sums that the laws take over at most n + 1 of these.
static double softmax_bound(size_t n, double spread) {
    return log2(2 * (spread + 1) + (double)n + 2) + log2((double)n + 2) + 2 - (double)BITS;
}

typedef struct law {
    size_t instances;
    bool overlap, thin;
    double worst, bound; // log2 of relative radii; the pair with the least room
} law;

static law start(void) {
    return (law){0, true, true, -INFINITY, 0};
}

static void take(law *l, const arb_t a, const arb_t b, double bound) {
    double worst = fmax(sinkproof_truth_relative_log2(a), sinkproof_truth_relative_log2(b));
    l->instances++;
    l->overlap = l->overlap && arb_overlaps(a, b);
    l->thin = l->thin && worst <= bound;
    if (l->instances == 1 || worst - bound > l->worst - l->bound) {
        l->worst = worst;
        l->bound = bound;
    }
}

static void report(const char *what, law l, uint64_t seed) {
    ok(l.instances > 0 && l.overlap && l.thin,
       "%s instances=%zu overlap=%d worst=2^%.1f bound=2^%.1f seed=%llu", what, l.instances,
       l.overlap, l.worst, l.bound, (unsigned long long)seed);
}

static void sum(arb_t out, arb_srcptr x_j, size_t n) {
    arb_zero(out);
    for (size_t j = 0; j < n; j++) arb_add(out, out, x_j + j, BITS);
}

// Equal scores c: alpha = 1 / (n + e^(b-c)), and one key is the case n = 1.
static void equal_scores(void) {
    law l = start(), repeat = start();
    const double scores[] = {-30, 0, 2.5}, sinks[] = {-10, 0, 0.3, 10, 100};
    for (size_t n = 1; n <= 128; n = n < 4 ? n + 1 : 2 * n - 1)
        for (size_t c = 0; c < 3; c++)
            for (size_t b = 0; b < 5; b++) {
                arb_ptr z = _arb_vec_init((slong)n), alpha = _arb_vec_init((slong)n);
                arb_t sink, rest, closed, mass;
                balls_init(sink, rest, closed, mass);
                for (size_t j = 0; j < n; j++) arb_set_d(z + j, scores[c]);
                arb_set_d(sink, sinks[b]);
                sinkproof_truth_softmax_sink(alpha, rest, z, n, sink, BITS);
                arb_sub(closed, sink, z, BITS);
                arb_exp(closed, closed, BITS);
                arb_add_ui(closed, closed, n, BITS);
                arb_inv(closed, closed, BITS);
                double bound = softmax_bound(n, fabs(sinks[b] - scores[c]));
                for (size_t j = 0; j < n; j++) take(&l, alpha + j, closed, bound);
                arb_mul_ui(closed, closed, n, BITS); // n / (n + e^(b-c))
                sum(mass, alpha, n);
                take(&repeat, mass, closed, bound);
                balls_clear(sink, rest, closed, mass);
                _arb_vec_clear(z, (slong)n);
                _arb_vec_clear(alpha, (slong)n);
            }
    report("sink.alpha equal scores: 1/(n + e^(b-c))", l, 0);
    report("repeat.sink mass of equal scores: n/(n + e^(b-c))", repeat, 0);
}

// The laws on drawn scores: mass, gate, constant value, shift; the sink absent.
static void laws(uint64_t seed) {
    uint64_t state = seed;
    law mass = start(), gate = start(), constant = start(), shift = start(), none = start();
    bool exact_none = true, below_one = true;
    const double sinks[] = {-10, -1, 0, 4, 10};
    for (size_t round = 0; round < 30; round++) {
        size_t n = 1 + draw_below(&state, 50);
        arb_ptr z = _arb_vec_init((slong)n), a = _arb_vec_init((slong)n);
        arb_ptr moved = _arb_vec_init((slong)n), v = _arb_vec_init((slong)n);
        arb_ptr t = _arb_vec_init(8); // sink, rest, left, right, other rest, ...
        mpfr_ptr unused = truth_mpfr_vector(n, 53);
        draw_vector(&state, n, 20, 3, z, unused, NULL);
        double b = sinks[round % 5], value = draw_number(&state, 24, 5) + 1, spread = 18;
        double bound = softmax_bound(n, spread);
        arb_set_d(t, b);
        sinkproof_truth_softmax_sink(a, t + 1, z, n, t, BITS);
        sum(t + 2, a, n); // sum alpha = 1 - alpha_s
        arb_sub_ui(t + 3, t + 1, 1, BITS);
        arb_neg(t + 3, t + 3);
        // 1 - alpha_s as a difference loses log2(1 / (1 - alpha_s)) bits (bound.one-minus)
        double lost = -log2(arf_get_d(arb_midref(t + 2), ARF_RND_DOWN));
        take(&mass, t + 2, t + 3, bound + fmax(lost, 0));
        below_one =
            below_one && arb_is_positive(t + 1) && arb_is_positive(t + 3) && arb_is_positive(t + 2);
        arb_zero(t + 4); // sigmoid(LSE - b) = 1 / (1 + e^b / sum e^z)
        for (size_t j = 0; j < n; j++) {
            arb_exp(t + 5, z + j, BITS);
            arb_add(t + 4, t + 4, t + 5, BITS);
        }
        arb_log(t + 4, t + 4, BITS);
        arb_sub(t + 4, t, t + 4, BITS); // b - LSE
        arb_exp(t + 4, t + 4, BITS);
        arb_add_ui(t + 4, t + 4, 1, BITS);
        arb_inv(t + 4, t + 4, BITS);
        take(&gate, t + 2, t + 4, bound + 2); // the logarithm and its exponential again
        for (size_t j = 0; j < n; j++) arb_set_d(v + j, value);
        sinkproof_truth_values(t + 5, a, v, n, 1, 1, BITS);
        arb_mul(t + 6, t + 2, v, BITS);
        take(&constant, t + 5, t + 6, bound + 1);
        arb_set_d(t + 7, 1234.5); // scores and sink together
        for (size_t j = 0; j < n; j++) arb_add(moved + j, z + j, t + 7, BITS);
        arb_add(t, t, t + 7, BITS);
        sinkproof_truth_softmax_sink(moved, t + 5, moved, n, t, BITS);
        for (size_t j = 0; j < n; j++) take(&shift, a + j, moved + j, bound);
        take(&shift, t + 1, t + 5, bound);
        arb_neg_inf(t); // b = -infinity: ordinary softmax
        sinkproof_truth_softmax_sink(a, t + 1, z, n, t, BITS);
        exact_none = exact_none && arb_is_zero(t + 1);
        sum(t + 2, a, n);
        arb_one(t + 3);
        take(&none, t + 2, t + 3, bound);
        _arb_vec_clear(z, (slong)n);
        _arb_vec_clear(a, (slong)n);
        _arb_vec_clear(moved, (slong)n);
        _arb_vec_clear(v, (slong)n);
        _arb_vec_clear(t, 8);
        truth_mpfr_vector_free(unused, n);
    }
    report("sink.mass sum alpha = 1 - alpha_s", mass, seed);
    ok(below_one, "sink.mass-below-one 0 < alpha_s < 1, 0 < sum alpha, certified seed=%llu",
       (unsigned long long)seed);
    report("sink.gate sum alpha = sigmoid(LSE - b)", gate, seed);
    report("law.constant-value o = (1 - alpha_s) v", constant, seed);
    report("law.shift scores and sink together", shift, seed);
    report("sink.limit b = -infinity, weights sum to 1", none, seed);
    ok(exact_none, "sink.limit b = -infinity: the sink's weight is exactly 0");
}

// Full softmax, then the chosen, renormalised = softmax over the chosen.
static void router(uint64_t seed) {
    uint64_t state = seed;
    law l = start();
    bool wrong_form = true;
    for (size_t round = 0; round < 12; round++) {
        size_t experts = 3 + draw_below(&state, 30), chosen = 1 + draw_below(&state, experts - 1);
        size_t ids[32];
        arb_ptr g = _arb_vec_init((slong)experts), full = _arb_vec_init((slong)experts);
        arb_ptr w = _arb_vec_init((slong)chosen), t = _arb_vec_init(3);
        mpfr_ptr unused = truth_mpfr_vector(experts, 53);
        draw_vector(&state, experts, 20, 3, g, unused, NULL);
        sinkproof_truth_topk(ids, t, g, experts, chosen, BITS);
        sinkproof_truth_router_weights(w, ids, g, chosen, BITS);
        arb_neg_inf(t);
        sinkproof_truth_softmax_sink(full, t + 1, g, experts, t, BITS);
        arb_zero(t + 1);
        for (size_t k = 0; k < chosen; k++) arb_add(t + 1, t + 1, full + ids[k], BITS);
        for (size_t k = 0; k < chosen; k++) {
            wrong_form = wrong_form && !arb_overlaps(full + ids[k], w + k);
            arb_div(t + 2, full + ids[k], t + 1, BITS);
            take(&l, w + k, t + 2, softmax_bound(experts, 16) + 1);
        }
        _arb_vec_clear(g, (slong)experts);
        _arb_vec_clear(full, (slong)experts);
        _arb_vec_clear(w, (slong)chosen);
        _arb_vec_clear(t, 3);
        truth_mpfr_vector_free(unused, experts);
    }
    report("router.softmax-after = full softmax, chosen, renormalised", l, seed);
    ok(wrong_form, "router.softmax-after without renormalising: balls apart at every weight");
}

// Certified, tied, ambiguous: what the balls allow to be said.
static void choices(void) {
    arb_ptr g = _arb_vec_init(4);
    arb_t margin;
    size_t ids[4];
    arb_init(margin);
    const double logits[] = {1, 3, 2, -5};
    for (int e = 0; e < 4; e++) arb_set_d(g + e, logits[e]);
    truth_choice choice = sinkproof_truth_topk(ids, margin, g, 4, 2, BITS);
    ok(choice == CHOICE_CERTIFIED && ids[0] == 1 && ids[1] == 2 && arb_equal_si(margin, 1),
       "router.topk chooses 1, 2 with margin 1, certified");
    arb_set_d(g + 0, 2);
    choice = sinkproof_truth_topk(ids, margin, g, 4, 2, BITS);
    ok(choice == CHOICE_TIE && ids[1] == 0 && arb_is_zero(margin),
       "router.topk gives an exact tie to the lower index");
    mag_set_d(arb_radref(g + 0), 0x1p-200);
    choice = sinkproof_truth_topk(ids, margin, g, 4, 2, BITS);
    ok(choice == CHOICE_AMBIGUOUS && arb_contains_zero(margin),
       "router.topk calls overlapping balls ambiguous");
    choice = sinkproof_truth_topk(ids, margin, g, 4, 4, BITS);
    ok(choice == CHOICE_CERTIFIED, "router.topk of all experts needs no margin");
    arb_indeterminate(g + 3);
    choice = sinkproof_truth_topk(ids, margin, g, 4, 2, BITS);
    ok(choice == CHOICE_AMBIGUOUS, "router.topk certifies nothing beside a NaN");
    arb_clear(margin);
    _arb_vec_clear(g, 4);
}

// Rotation keeps lengths up to the concentration: |R x|^2 = c^2 |x|^2, and q.k of equally
// shifted positions: (R_s q).(R_t k) depends on s - t only.
static void rotation(uint64_t seed) {
    uint64_t state = seed;
    law norm = start(), relative = start();
    sinkproof_config config = {.head_dim = 64,
                               .rotation.theta = 150000,
                               .rotation.factor = 32,
                               .rotation.beta_fast = 32,
                               .rotation.beta_slow = 1,
                               .rotation.original_context = 4096};
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, &config, BITS);
    // An angle of up to 2^17 loses 17 bits of its radius; 64 products and their sum, rotated
    // elements of up to 2 |x|: 2^(17 + 6 + 2) over a result that |x|^2 bounds from below.
    double bound = 17 + 6 + 2 + 4 - BITS;
    arb_ptr x = _arb_vec_init(64), y = _arb_vec_init(64), q = _arb_vec_init(64);
    arb_ptr k = _arb_vec_init(64), t = _arb_vec_init(3);
    mpfr_ptr unused = truth_mpfr_vector(64, 53);
    const int32_t positions[] = {0, 1, 127, 4095, 4096, 131071};
    for (size_t i = 0; i < 6; i++) {
        draw_vector(&state, 64, 24, 0, x, unused, NULL);
        sinkproof_truth_rope(y, x, 1, 1, positions + i, &yarn, BITS);
        arb_dot(t, NULL, 0, y, 1, y, 1, 64, BITS);
        arb_dot(t + 1, NULL, 0, x, 1, x, 1, 64, BITS);
        arb_mul(t + 1, t + 1, yarn.concentration, BITS);
        arb_mul(t + 1, t + 1, yarn.concentration, BITS);
        take(&norm, t, t + 1, bound);
        int32_t near[2] = {17, 5}, far[2] = {positions[i] + 12, positions[i]};
        // a query equal to its key, so that the score is not near zero
        sinkproof_truth_rope(q, x, 1, 1, near, &yarn, BITS);
        sinkproof_truth_rope(k, x, 1, 1, near + 1, &yarn, BITS);
        arb_dot(t, NULL, 0, q, 1, k, 1, 64, BITS);
        sinkproof_truth_rope(q, x, 1, 1, far, &yarn, BITS);
        sinkproof_truth_rope(k, x, 1, 1, far + 1, &yarn, BITS);
        arb_dot(t + 1, NULL, 0, q, 1, k, 1, 64, BITS);
        take(&relative, t, t + 1, bound);
    }
    report("rope.orthogonal |Rx| = c |x|", norm, seed);
    report("rope.orthogonal q.k depends on the distance of the positions", relative, seed);
    _arb_vec_clear(x, 64);
    _arb_vec_clear(y, 64);
    _arb_vec_clear(q, 64);
    _arb_vec_clear(k, 64);
    _arb_vec_clear(t, 3);
    truth_mpfr_vector_free(unused, 64);
    sinkproof_truth_yarn_clear(&yarn);
}

// The table of tests/ref/test_rope.c, computed in binary64. Its own error: low and high by 8 u
// relative, hence the ramp by 8 u (8.1 + 2 x 17.4) / 9.3 < 40 u; the frequency keeps at least 1/32
// of theta^-.., so 32 times that, and a power and three quotients of 2 u each: below 1300 u, u =
// 2^-53.
static void golden(void) {
    static const struct {
        size_t d;
        double inv_freq, truncation_error;
    } table[] = {{0, 1.0, 0},
                 {1, 0.6890443058881633, 0},
                 {7, 0.07374456821026082, 0},
                 {8, 0.050813274815461475, 0},
                 {9, 0.03170569618466377, -0.268},
                 {10, 0.019335001126540362, 0.600},
                 {11, 0.011592049256286924, 1.727},
                 {12, 0.006794959489732219, 3.249},
                 {13, 0.0038603593171920685, 5.419},
                 {14, 0.0020937923789696887, 8.763},
                 {15, 0.0010526021013863359, 14.586},
                 {16, 0.00045648391922324086, 27.266},
                 {17, 0.00012931870124506317, 76.268},
                 {18, 3.8308812373753384e-05, 0},
                 {24, 4.0999784818029795e-06, 0},
                 {31, 3.0235114281192144e-07, 0}};
    sinkproof_config config = {.head_dim = 64,
                               .rotation.theta = 150000,
                               .rotation.factor = 32,
                               .rotation.beta_fast = 32,
                               .rotation.beta_slow = 1,
                               .rotation.original_context = 4096};
    sinkproof_truth_yarn whole, fractional;
    sinkproof_truth_yarn_init(&fractional, &config, BITS);
    config.rotation.truncate = true;
    sinkproof_truth_yarn_init(&whole, &config, BITS);
    double worst = 0, bound = 1300 * 0x1p-53, worst_percent = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        arb_srcptr f = fractional.inv_freq_d + table[i].d;
        worst = sinkproof_keep_worst(worst, sinkproof_truth_distance(f, table[i].inv_freq) /
                                                table[i].inv_freq);
        double exact = arf_get_d(arb_midref(f), ARF_RND_NEAR);
        double other = arf_get_d(arb_midref(whole.inv_freq_d + table[i].d), ARF_RND_NEAR);
        double percent = 100 * (other - exact) / exact;
        worst_percent =
            sinkproof_keep_worst(worst_percent, fabs(percent - table[i].truncation_error));
    }
    ok(worst <= bound, "yarn.ramp the published table worst=%.3g bound=%.3g", worst, bound);
    // the table prints three decimals
    ok(worst_percent <= 0.0005, "yarn.truncate errors of truncation worst=%.5f %% bound=%.5f %%",
       worst_percent, 0.0005);
    double c = sinkproof_truth_distance(fractional.concentration, 1.3465735902799727);
    ok(c <= 0x1p-52, "yarn.concentration worst=%.3g bound=%.3g", c, 0x1p-52);
    ok(arb_equal_si(whole.low, 8) && arb_equal_si(whole.high, 18),
       "yarn.truncate the ramp's ends are exactly 8 and 18");
    sinkproof_truth_yarn_clear(&whole);
    sinkproof_truth_yarn_clear(&fractional);
}

static void decimals(void) {
    static const struct {
        double value;
        const char *text;
        unsigned long numerator, denominator;
    } table[] = {{1e-5, "1e-05", 1, 100000},
                 {1.702, "1.702", 1702, 1000},
                 {7, "7", 7, 1},
                 {150000, "150000", 150000, 1},
                 {1.703125, "1.703125", 1703125, 1000000}};
    bool all = true;
    arb_t ball, product;
    balls_init(ball, product);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[40];
        truth_decimal_text(table[i].value, text);
        sinkproof_truth_decimal(ball, table[i].value, BITS);
        arb_mul_ui(product, ball, table[i].denominator, BITS);
        all = all && strcmp(text, table[i].text) == 0 &&
              arb_contains_si(product, (slong)table[i].numerator) &&
              sinkproof_truth_relative_log2(ball) <= 2 - BITS;
    }
    ok(all, "model.config constants are their decimals, not binary64's neighbours");
    balls_clear(ball, product);
}

// A weight behind a huge score gap is e^-(2^100): its distance from 1 must not need 2^100 bits.
static void far_apart(void) {
    arb_t ball;
    arb_init(ball);
    arb_set_si(ball, 1);
    arb_mul_2exp_si(ball, ball, 100);
    arb_neg(ball, ball);
    arb_exp(ball, ball, BITS);
    double one = sinkproof_truth_distance(ball, 1), zero = sinkproof_truth_distance(ball, 0);
    ok(one >= 1 && one <= 1 + 0x1p-52 && zero > 0 && zero <= 0x1p-1074,
       "the distance of e^-(2^100) from 1 and 0: %.17g, %.3g", one, zero);
    arb_set_d(ball, 0.75);
    ok(sinkproof_truth_distance(ball, 0x1p-1000) == 0.75 &&
           sinkproof_truth_distance(ball, 0.5) == 0.25 && sinkproof_truth_distance(ball, 0.75) == 0,
       "distances from an exact number, rounded up: 0.75 - 2^-1000 is 0.75");
    arb_clear(ball);
}

int main(void) {
    decimals();
    far_apart();
    equal_scores();
    laws(31);
    router(32);
    choices();
    rotation(33);
    golden();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
