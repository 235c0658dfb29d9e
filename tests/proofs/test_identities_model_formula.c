// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sides of the identities of stages, of repeated tokens, of mixed rows and of a score's four
// terms, each against its own statement, computed again in long double; and MPFR's side of a stage
// against a ball of many more bits.
#include "tests/shared/sides.h"

static const uint64_t SEED = 20261124;
enum { INSTANCES = 63, DIM = SINKPROOF_BALL_DIM };

// ---- rotations and the choice of experts --------------------------------------------------------

static real real_of(const arb_t x) { // the midpoint, to 64 bits
    double high = arf_get_d(arb_midref(x), ARF_RND_DOWN);
    arb_t low;
    arb_init(low);
    arb_set_d(low, high);
    arf_sub(arb_midref(low), arb_midref(x), arb_midref(low), ARF_PREC_EXACT, ARF_RND_DOWN);
    real sum = (real)high + arf_get_d(arb_midref(low), ARF_RND_DOWN);
    arb_clear(low);
    return sum;
}

static int32_t position_of(instance m) {
    return (int32_t[]){0, 1, 127, 4095, 4096, 131071}[m->number % 6];
}

// c R^position of the head of 64 that repeats x.
static void turned(real *y, instance m, const double *x, int32_t position) {
    sinkproof_config config = {.head_dim = 64,
                               .rotation.theta = 150000,
                               .rotation.factor = 32,
                               .rotation.beta_fast = 32,
                               .rotation.beta_slow = 1,
                               .rotation.original_context = 4096,
                               .rotation.truncate = m->number % 2 == 1};
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, &config, 128);
    real c = real_of(yarn.concentration);
    for (size_t d = 0; d < 32; d++) {
        real angle = position * real_of(yarn.inv_freq_d + d);
        y[d] = c * (x[d % DIM] * cosl(angle) - x[d % DIM] * sinl(angle));
        y[d + 32] = c * (x[d % DIM] * cosl(angle) + x[d % DIM] * sinl(angle));
    }
    sinkproof_truth_yarn_clear(&yarn);
}
static real product(instance m, const double *x, int32_t i, const double *y, int32_t j) {
    real a[64], b[64], sum = 0;
    turned(a, m, x, i);
    turned(b, m, y, j);
    for (size_t d = 0; d < 64; d++) sum += a[d] * b[d];
    return sum / (65536.0L * (position_of(m) + 4));
}
static void rotated_products(real *out, instance m) {
    int32_t distance = position_of(m);
    out[0] = product(m, m->q_d, distance + 3, m->k_star_d, 3);
    out[1] = product(m, m->q_d, distance, m->q_d, distance);
    out[2] = out[3] = 0;
}
static void relative_products(real *out, instance m) {
    out[0] = product(m, m->q_d, position_of(m), m->k_star_d, 0);
    out[1] = product(m, m->q_d, 0, m->q_d, 0);
    out[2] = out[3] = 0;
}

// The rank-th largest (from 0) of the scores and -1000.
static real ranked(instance m, size_t rank) {
    for (size_t e = 0; e <= m->n; e++) {
        real x = e < m->n ? m->s_hj[e] : -1000;
        size_t above = x == -1000 ? 0 : -1000 > x;
        for (size_t j = 0; j < m->n; j++) above += m->s_hj[j] > x;
        if (above == rank) return x;
    }
    return NAN;
}
static void least_chosen(real *out, instance m) {
    *out = ranked(m, (m->n < 4 ? m->n : 4) - 1);
}
static void largest_rejected(real *out, instance m) {
    *out = ranked(m, m->n < 4 ? m->n : 4);
}

// ---- one token repeated -------------------------------------------------------------------------

static real mass_of_equal(instance m, size_t n) {
    return n / (n + expl((real)m->b_h[0] - m->s_hj[0]));
}
static void mass_of_row(real *out, instance m) {
    *out = mass_of_equal(m, m->n);
}
static void mass_of_next(real *out, instance m) {
    *out = mass_of_equal(m, m->n + 1);
}
static void even(real *out, instance m) {
    for (size_t j = 0; j < m->n; j++) out[j] = 1.0L / m->n;
    out[m->n] = 0;
}
static void backwards(real *out, instance m) {
    real sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += expl(m->s_hj[j]);
    for (size_t j = 0; j < m->n; j++) out[j] = expl(m->s_hj[m->n - 1 - j]) / sum;
    out[m->n] = 0;
}
static real alibi(instance m, size_t n) { // e^(-m (n - 1)) over the sum of e^(-m d)
    real slope = ldexpl(1, -1 - (int)(m->number % 8)), sum = 0;
    for (size_t d = 0; d < n; d++) sum += expl(-slope * d);
    return expl(-slope * (n - 1)) / sum;
}
static void alibi_row(real *out, instance m) {
    *out = alibi(m, m->n);
}
static void alibi_next(real *out, instance m) {
    *out = alibi(m, m->n + 1);
}
static void next_even(real *out, instance m) {
    *out = 1.0L / (m->n + 1);
}

// g(d) of q and k over 2^halvings: their first coordinates turn by d, the second by d / 100.
static real rotary(instance m, size_t distance, int halvings) {
    real sum = 0;
    for (size_t p = 0; p < 2; p++) {
        real angle = p == 0 ? distance : distance / 100.0L;
        real q = m->q_d[p], q_2 = m->q_d[p + 2], k = m->k_star_d[p], k_2 = m->k_star_d[p + 2];
        sum += (q * cosl(angle) - q_2 * sinl(angle)) * k;
        sum += (q_2 * cosl(angle) + q * sinl(angle)) * k_2;
    }
    return ldexpl(sum / 2, -2 * halvings);
}
static void turned_scores(real *out, instance m) {
    out[0] = rotary(m, m->n, 4), out[1] = rotary(m, m->n - 1, 4);
    out[2] = rotary(m, 1, 4), out[3] = rotary(m, 0, 4);
}
static void rotary_first(real *out, instance m) {
    real sum = 0;
    for (size_t d = 0; d <= m->n; d++) sum += expl(rotary(m, d, 2));
    *out = expl(rotary(m, m->n, 2)) / sum;
}
static real rotary_bound(instance m, int sign) {
    real q = 0, k = 0;
    for (size_t c = 0; c < DIM; c++) {
        q += (real)m->q_d[c] * m->q_d[c];
        k += (real)m->k_star_d[c] * m->k_star_d[c];
    }
    real e = expl(sign * sqrtl(q * k) / 16); // 2 |q| |k| / 16 / sqrt(4)
    return e / (e + m->n);
}
static void at_most(real *out, instance m) {
    *out = rotary_bound(m, 1);
}
static void at_least(real *out, instance m) {
    *out = rotary_bound(m, -1);
}

static void power_weights(real *out, instance m) {
    real p = (real[]){0.5, 1, 2, 3}[m->number % 4], sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += expl(p * m->s_hj[j] / 4);
    for (size_t j = 0; j < m->n; j++) out[j] = expl(m->s_hj[j] / 4.0L) / powl(sum, 1 / p);
    out[m->n] = 0;
}
static void one(real *out, instance m) {
    (void)m;
    *out = 1;
}

// The weights of the others behind a first key of the score q_0.
static real others(real *w, instance m) {
    real sum = expl(m->b_h[0]) + expl(m->q_d[0]);
    for (size_t j = 0; j < m->n; j++) sum += w[j] = expl(m->s_hj[j]);
    for (size_t j = 0; j < m->n; j++) w[j] /= sum;
    return sum_of(w, m->n);
}
static void second_term(real *out, instance m) {
    real w[MOST_KEYS] = {0};
    others(w, m);
    for (size_t d = 0; d < m->dim; d++) out[d] = fabsl(weighted(m, 0, w, d));
}
static void mass_times_largest(real *out, instance m) {
    real w[MOST_KEYS] = {0}, mass = others(w, m);
    for (size_t d = 0; d < m->dim; d++) {
        real most = 0;
        for (size_t j = 0; j < m->n; j++) most = fmaxl(most, fabsl(m->x_gjd[j * m->dim + d]));
        out[d] = mass * most * (1 + 0x1p-20L);
    }
}
static void mass_of_others(real *out, instance m) {
    real w[MOST_KEYS] = {0};
    *out = others(w, m);
}
static void share_of_margin(real *out, instance m) {
    real most = -INFINITY;
    for (size_t j = 0; j < m->n; j++) most = fmaxl(most, m->s_hj[j]);
    *out = m->n / (m->n + expl(m->q_d[0] - most - 0x1p-10L));
}

// ---- a norm that few coordinates dominate -------------------------------------------------------

typedef struct spikes {
    real spikes, rest; // the sums of squares; the rest's with d eps
} spikes;
static spikes spikes_of(instance m) {
    spikes s = {0, 2 * (real)m->dim * 1e-5L};
    for (size_t c = 0; c < m->dim; c++) {
        s.spikes += 0x1p20L * m->x_gjd[c] * m->x_gjd[c];
        s.rest += (real)m->star_d[c] * m->star_d[c];
    }
    return s;
}
static void spikes_moved(real *out,
                         instance m) { // |h w| (1 / sqrt(S) - 1 / sqrt(S + rest)) sqrt(d)
    spikes s = spikes_of(m);
    real all = s.spikes + s.rest, a = sqrtl(s.spikes), b = sqrtl(all);
    real less = s.rest / (a * b * (a + b)) * sqrtl(2 * m->dim);
    for (size_t c = 0; c < m->dim; c++) out[c] = fabsl(0x1p10L * m->x_gjd[c] * m->bv_gd[c]) * less;
}
static void spikes_may_move(real *out, instance m) {
    spikes s = spikes_of(m);
    real most = s.rest / s.spikes / 2 * sqrtl(2 * m->dim / s.spikes);
    for (size_t c = 0; c < m->dim; c++) out[c] = fabsl(0x1p10L * m->x_gjd[c] * m->bv_gd[c]) * most;
}
static void rest_over(real *out, instance m, real squares) {
    for (size_t c = 0; c < m->dim; c++)
        out[c] = fabsl((real)m->star_d[c] * m->bv_gd[m->dim + c]) * sqrtl(2 * m->dim / squares);
}
static void rest_left(real *out, instance m) {
    spikes s = spikes_of(m);
    rest_over(out, m, s.spikes + s.rest);
}
static void rest_may_be(real *out, instance m) {
    rest_over(out, m, spikes_of(m).spikes);
}

static const stated_sides cases[] = {
    {"rope.orthogonal", 0, rotated_products, relative_products},
    {"router.topk", 0, largest_rejected, least_chosen},
    {"repeat.lemma", 1, mass_of_row, mass_of_next},
    {"repeat.nope", 0, even, even},
    {"repeat.relative", 0, backwards, backwards},
    {"repeat.alibi", 0, alibi_row, alibi_row},
    {"repeat.alibi", 1, alibi_next, next_even},
    {"repeat.rope", 0, turned_scores, turned_scores},
    {"repeat.rope", 1, rotary_first, at_most},
    {"repeat.rope", 2, at_least, rotary_first},
    {"norm.power", 0, power_weights, power_weights},
    {"norm.power", 1, one, one},
    {"noop.split", 0, second_term, mass_times_largest},
    {"noop.split", 1, mass_of_others, share_of_margin},
    {"rmsnorm.spike", 0, spikes_moved, spikes_may_move},
    {"rmsnorm.spike", 1, rest_left, rest_may_be},
};

// ---- what no value tells ------------------------------------------------------------------------

// MPFR's side at 64 bits: numbers of 128, within their radius of the ball of 512 bits; entries that
// a stage does not have are exactly 0 on both sides. The sides take turns over other instances.
static void stage(const char *id, size_t has) {
    const sinkproof_identity *identity = identity_of(id, 0);
    size_t inside = 0, entries = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        size_t n = entries_of(identity, &m), own = has < n ? has : has > n ? n - 1 : n;
        arb_ptr left = filled(n + 1), right = filled(n + 1);
        identity->right(right, &m, SIDE_BITS);
        identity->left(left, &m, 8 * SIDE_BITS);
        for (size_t k = 0; k < own; k++)
            inside += arb_bits(right + k) <= 2 * SIDE_BITS && arb_contains(right + k, left + k);
        for (size_t k = own; k < n; k++) inside += arb_is_zero(left + k) && arb_is_zero(right + k);
        slong untouched = LEFT_OVER + (slong)n;
        inside += arb_equal_si(left + n, untouched) && arb_equal_si(right + n, untouched);
        entries += n + 1;
        _arb_vec_clear(left, (slong)n + 1);
        _arb_vec_clear(right, (slong)n + 1);
        sinkproof_ball_clear(&m);
    }
    ok(inside == entries, "%s MPFR at 64 bits around the ball of 512: %zu of %zu", id, inside,
       entries);
}

// Three experts, one of them worse than the one that nobody chooses.
static void choice_below_all(void) {
    compared c = {0};
    stated_sides both = {"router.topk", 0, largest_rejected, least_chosen};
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        m.s_hj[number % m.n] = -2000;
        compare(&c, &both, &m);
        sinkproof_ball_clear(&m);
    }
    ok(c.entries == 2 * INSTANCES && c.off == 0,
       "router.topk one expert below all entries=%zu off=%zu", c.entries, c.off);
}

// The content goes out, but it is there: where it is not a number, nothing is.
static void lost_content(void) {
    const sinkproof_identity *identity = identity_of("repeat.relative", 0);
    size_t lost = 0, keys = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr out = filled(m.n + 1);
        m.q_d[0] = NAN;
        identity->left(out, &m, SIDE_BITS);
        for (size_t j = 0; j < m.n; j++) lost += !arb_is_finite(out + j);
        keys += m.n;
        _arb_vec_clear(out, (slong)m.n + 1);
        sinkproof_ball_clear(&m);
    }
    ok(lost == keys, "repeat.relative of content that is not a number: %zu of %zu lost", lost,
       keys);
}

int main(void) {
    report(cases, sizeof cases / sizeof *cases, SEED, INSTANCES);
    stage("rmsnorm.forward", MOST_ENTRIES);
    stage("swiglu.clamped", 2);
    stage("yarn.ramp", 4);
    stage("yarn.concentration", 4);
    stage("yarn.truncate", 4);
    stage("rope.rotate", 4);
    choice_below_all();
    lost_content();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
