// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sides of the identities of a row, of a head and of a layer's output, each against its own
// statement, computed again in long double. A mistake that both sides share, or for which an
// inequality leaves room, is found by this test alone.
#include "tests/shared/sides.h"

#include "model/round.h"

static const uint64_t SEED = 20261123;
enum { INSTANCES = 63 };

// ---- the keys' mass, the value bias and the layer's output --------------------------------------

static void below_one_left(real *out, instance m) {
    real w[MOST_KEYS + 1] = {0};
    shares_of_head(w, m, 0, m->b_h[0]);
    out[0] = out[2] = 0;
    out[1] = w[m->n], out[3] = sum_of(w, m->n);
}
static void below_one_right(real *out, instance m) {
    below_one_left(out, m);
    out[0] = out[1], out[2] = out[3], out[1] = out[3] = 1;
}

// The layer's output, the sinks as they are or none.
static void layer(real *out, instance m, bool sinks) {
    for (size_t c = 0; c < m->hidden; c++) out[c] = m->bo_c[c];
    for (size_t h = 0; h < m->heads; h++) {
        real w[MOST_KEYS + 1] = {0};
        size_t g = h * m->kv_heads / m->heads;
        shares_of_head(w, m, h, sinks ? m->b_h[h] : -INFINITY);
        for (size_t d = 0; d < m->dim; d++) {
            real o = weighted(m, g, w, d) + sum_of(w, m->n) * m->bv_gd[g * m->dim + d];
            for (size_t c = 0; c < m->hidden; c++)
                out[c] += o * m->wo_hdc[(h * m->dim + d) * m->hidden + c];
        }
    }
}
static void output_of_layer(real *out, instance m) {
    layer(out, m, true);
}

// e^b / sum_j e^s_j
static real sink_over_keys(instance m, size_t h) {
    real sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += expl(m->s_hj[h * m->n + j] - (real)m->b_h[h]);
    return 1 / sum;
}

static const real STEP = 0x1p-16L; // 2^(-bits/4)

static real bias_term(instance m, size_t c) { // b^V W^O of head 0
    real sum = 0;
    for (size_t d = 0; d < m->dim; d++) sum += (real)m->bv_gd[d] * m->wo_hdc[d * m->hidden + c];
    return sum;
}
static void intensity_quotient(real *out, instance m) {
    real r = sink_over_keys(m, 0);
    real slope = -r * (expm1l(STEP) / STEP) / ((1 + r) * (1 + r * expl(STEP)));
    for (size_t c = 0; c < m->hidden; c++) out[c] = slope * bias_term(m, c);
}
static void intensity_derivative(real *out, instance m) {
    real r = sink_over_keys(m, 0) * expl(STEP / 2);
    for (size_t c = 0; c < m->hidden; c++) out[c] = -r / ((1 + r) * (1 + r)) * bias_term(m, c);
}

static void to_b_output(real *out, instance m) {
    layer(out, m, true);
    for (size_t c = 0; c < m->hidden; c++) out[c] = fabsl(out[c] - m->bo_c[c]);
}
static void to_full_bias(real *out, instance m) {
    real with[SINKPROOF_BALL_DIM] = {0};
    layer(with, m, true);
    layer(out, m, false);
    for (size_t c = 0; c < m->hidden; c++) out[c] = fabsl(out[c] - with[c]);
}
static void speed(real *out, instance m, int sign) {
    real most = 0;
    double a = identity_allowance_unit(identity_of("sink.bias-limits", 0), m);
    for (size_t h = 0; h < m->heads; h++) most = fmaxl(most, powl(sink_over_keys(m, h), sign));
    for (size_t c = 0; c < m->hidden; c++) out[c] = most * a;
}
static void speed_to_b_output(real *out, instance m) {
    speed(out, m, -1);
}
static void speed_to_full_bias(real *out, instance m) {
    speed(out, m, 1);
}

// ---- the first token, windows and evicted keys --------------------------------------------------

static void window(real *out, instance m) {
    size_t first = m->n / 2;
    sinkproof_ball_instance part = *m;
    part.s_hj += first, part.n -= first;
    for (size_t j = 0; j < first; j++) out[j] = 0;
    shares_of_head(out + first, &part, 0, m->b_h[0]);
}

// Row [key 0, an added one, keys 1 ... n - 1]; the first stays, and of the n others the last n / 2.
typedef struct evicted {
    size_t n;
    bool kept[MOST_KEYS];
    real z[MOST_KEYS], v[MOST_KEYS][SINKPROOF_BALL_DIM], w[MOST_KEYS + 1], w_kept[MOST_KEYS + 1];
} evicted;

static evicted eviction_of(instance m) {
    evicted e = {.n = m->n + 1};
    real z[MOST_KEYS] = {0}, w[MOST_KEYS + 1] = {0};
    size_t n_kept = 0, k = 0;
    for (size_t j = 0; j < e.n; j++) {
        size_t from = j == 0 ? 0 : j - 1;
        e.z[j] = j == 1 ? m->q_d[0] : m->s_hj[from];
        e.kept[j] = j == 0 || j >= e.n - m->n / 2;
        for (size_t d = 0; d < m->dim; d++)
            e.v[j][d] = j == 1 ? m->star_d[d] : m->x_gjd[from * m->dim + d];
        if (e.kept[j]) z[n_kept++] = e.z[j];
    }
    shares(e.w, e.z, e.n, m->b_h[0]);
    shares(w, z, n_kept, m->b_h[0]);
    for (size_t j = 0; j < e.n; j++) e.w_kept[j] = e.kept[j] ? w[k++] : 0;
    e.w_kept[e.n] = w[n_kept];
    return e;
}
static evicted opposite(instance m) {
    evicted e = eviction_of(m);
    for (size_t j = 0; j < e.n; j++)
        for (size_t d = 0; d < m->dim; d++) e.v[j][d] = e.kept[j] ? -1 : 1;
    return e;
}
static void error_of(real *out, instance m, const evicted *e) {
    for (size_t d = 0; d < m->dim; d++) {
        real moved = 0;
        for (size_t j = 0; j < e->n; j++) moved += (e->w_kept[j] - e->w[j]) * e->v[j][d];
        out[d] = fabsl(moved);
    }
}
static void bound_of(real *out, instance m, const evicted *e, real above) {
    real mu = 0;
    for (size_t j = 0; j < e->n; j++) mu += e->kept[j] ? 0 : e->w[j];
    for (size_t d = 0; d < m->dim; d++) {
        real most = 0;
        for (size_t j = 0; j < e->n; j++) most = fmaxl(most, fabsl(e->v[j][d]));
        out[d] = mu * (2 - e->w_kept[e->n]) * most * above;
    }
}
static void eviction_error(real *out, instance m) {
    evicted e = eviction_of(m);
    error_of(out, m, &e);
}
static void eviction_bound(real *out, instance m) {
    evicted e = eviction_of(m);
    bound_of(out, m, &e, 1 + 0x1p-20L);
}
static void largest_error(real *out, instance m) {
    evicted e = opposite(m);
    error_of(out, m, &e);
}
static void bound_reached(real *out, instance m) {
    evicted e = opposite(m);
    bound_of(out, m, &e, 1);
}

static void inside_the_scale(real *out, instance m) {
    real z[MOST_KEYS] = {0};
    for (size_t j = 0; j < m->n; j++) {
        z[j] = 0;
        for (size_t d = 0; d < m->dim; d++) z[j] += (real)m->q_d[d] * m->k_jd[j * m->dim + d];
        z[j] /= sqrtl(m->dim);
    }
    shares(out, z, m->n, (real)m->q_d[0] * m->k_star_d[0] / sqrtl(m->dim));
}

// (clamp(u) + 1) g' sigmoid(alpha g'), g' = min(g, 7), in units of 64
static real activation(real u, real g) {
    g = fminl(g, 7), u = fmaxl(-7, fminl(u, 7));
    return (u + 1) * g / (1 + expl(-1.702L * g)) / 64;
}
static void around_zero(real *out, instance m) {
    real g = m->q_d[0] / 2, u = m->k_star_d[0] / 4, step = m->star_d[0] / 4;
    out[0] = activation(0, g);
    out[1] = (activation(u + step, g) - activation(u, g)) / step;
    out[2] = (activation(0, g) - activation(0, -g)) / (2 * g);
    out[3] = 0;
}
static void swish_and_half(real *out, instance m) {
    real g = m->q_d[0] / 2;
    out[0] = out[1] = g / (1 + expl(-1.702L * g)) / 64;
    out[2] = 0.5L / 64, out[3] = 0;
}

// ---- the row's other forms ----------------------------------------------------------------------

static void row(real *out, instance m) {
    shares_of_head(out, m, 0, m->b_h[0]);
}
static void row_without_sink(real *out, instance m) {
    shares_of_head(out, m, 0, -INFINITY);
}
static void output(real *out, instance m, real b) {
    real w[MOST_KEYS + 1] = {0};
    shares_of_head(w, m, 0, b);
    for (size_t d = 0; d < m->dim; d++) out[d] = weighted(m, 0, w, d);
}
static void output_of_row(real *out, instance m) {
    output(out, m, m->b_h[0]);
}
static void output_beside_zero(real *out, instance m) {
    output(out, m, 0);
}
static void masses(real *out, instance m) { // all keys without a sink, then the last three with it
    real w[MOST_KEYS + 1] = {0};
    sinkproof_ball_instance last = *m;
    last.n = m->n > 3 ? 3 : m->n;
    last.s_hj += m->n - last.n;
    shares_of_head(w, &last, 0, m->b_h[0]);
    out[0] = out[1] = 1;
    out[2] = out[3] = sum_of(w, last.n);
}

static const stated_sides cases[] = {
    {"sink.mass-below-one", 0, below_one_left, below_one_right},
    {"sink.attn-gate", 0, output_of_layer, output_of_layer},
    {"sink.bias-intensity", 0, intensity_quotient, intensity_derivative},
    {"sink.bias-limits", 0, to_b_output, speed_to_b_output},
    {"sink.bias-limits", 1, to_full_bias, speed_to_full_bias},
    {"sink.absolute", 0, window, window},
    {"bound.evict", 0, eviction_error, eviction_bound},
    {"bound.evict", 1, largest_error, bound_reached},
    {"sink.scale-inside", 0, inside_the_scale, inside_the_scale},
    {"swiglu.plus-one", 0, around_zero, swish_and_half},
    {"form.base2", 0, row, row},
    {"form.lse-subtract", 0, row, row},
    {"form.lse-gate", 0, row, row},
    {"form.running-max", 0, row, row},
    {"sink.zero-pad", 0, output_beside_zero, output_beside_zero},
    {"sink.limit", 0, row_without_sink, row_without_sink},
    {"sink.online", 0, output_of_row, output_of_row},
    {"sink.online", 1, output_of_row, output_of_row},
    {"sink.split-kv", 0, output_of_row, output_of_row},
    {"sink.split-tree", 0, output_of_row, output_of_row},
    {"law.shift", 0, row, row},
    {"sink.hybrid", 0, masses, masses},
};

// ---- what no value tells ------------------------------------------------------------------------

// 2^-8 + (n + 1) 2^-134, exactly: 128 bits hold it.
static void bound_of_bf16(void) {
    const sinkproof_identity *identity = identity_of("sink.bf16-mass", 0);
    size_t exact = 0, count = 9;
    for (uint64_t number = 0; number < count; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr out = filled(2);
        identity->right(out, &m, 192);
        arb_set_d(out + 1, 0x1p126);
        arb_add_ui(out + 1, out + 1, m.n + 1, ARF_PREC_EXACT);
        arb_mul_2exp_si(out + 1, out + 1, -134);
        exact += arb_equal(out, out + 1) != 0;
        _arb_vec_clear(out, 2);
        sinkproof_ball_clear(&m);
    }
    ok(exact == count, "sink.bf16-mass bound is 2^-8 + (n + 1) 2^-134: %zu of %zu", exact, count);
}

// The derivative's ball spans what one step of 2^(-bits/4) can change: its factors (1 - alpha_s)
// and -alpha_s each move by at most a (1 - a) h, and their sizes sum to 1.
static void width_of_intensity(void) {
    const sinkproof_identity *identity = identity_of("sink.bias-intensity", 0);
    size_t in = 0, count = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr out = filled(m.hidden);
        real r = sink_over_keys(&m, 0);
        if (isfinite(m.b_h[0])) identity->right(out, &m, SIDE_BITS);
        for (size_t c = 0; isfinite(m.b_h[0]) && c < m.hidden; c++) {
            real most = 0;
            for (size_t d = 0; d < m.dim; d++)
                most += fabsl((real)m.bv_gd[d] * m.wo_hdc[d * m.hidden + c]);
            most *= r / ((1 + r) * (1 + r)) * STEP;
            in += mag_get_d(arb_radref(out + c)) <= most;
            count++;
        }
        _arb_vec_clear(out, (slong)m.hidden);
        sinkproof_ball_clear(&m);
    }
    ok(count > 0 && in == count, "sink.bias-intensity no wider than one step allows: %zu of %zu",
       in, count);
}

// The activation where its clamps are met: g = 15 / 2 and u = 27 / 4 or 29 / 4 of a limit of 7.
static void met_clamps(void) {
    compared c = {0};
    stated_sides left = {"swiglu.plus-one", 0, around_zero, NULL};
    for (uint64_t number = 0; number < 8; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        m.q_d[0] = number % 2 == 0 ? 15 : 13;
        m.k_star_d[0] = number % 4 < 2 ? 27 : 29;
        m.star_d[0] = number < 4 ? 3 : -3;
        compare(&c, &left, &m);
        sinkproof_ball_clear(&m);
    }
    ok(c.entries == 32 && c.off == 0,
       "swiglu.plus-one at its clamps entries=%zu off=%zu worst=%.3g", c.entries, c.off, c.share);
}

// A shift is added: by one that is not a number nothing is left. And where all is certain, the full
// layer's masses are exactly 1, those of the sliding one a share of exponentials.
static void shifts_and_layers(void) {
    const sinkproof_identity *shift = identity_of("law.shift", 0);
    const sinkproof_identity *hybrid = identity_of("sink.hybrid", 0);
    size_t lost = 0, keys = 0, exact = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr out = filled(m.n + 1), left = filled(4), right = filled(4);
        hybrid->left(left, &m, SIDE_BITS);
        hybrid->right(right, &m, SIDE_BITS);
        exact += arb_is_one(right) && arb_is_one(right + 1) && arb_equal(right + 2, right + 3) &&
                 arb_overlaps(right + 2, left + 2) && arb_overlaps(right + 3, left + 3);
        m.star_d[0] = NAN;
        shift->left(out, &m, SIDE_BITS);
        for (size_t j = 0; j < m.n; j++) lost += !arb_is_finite(out + j);
        keys += m.n;
        _arb_vec_clear(out, (slong)m.n + 1);
        _arb_vec_clear(left, 4);
        _arb_vec_clear(right, 4);
        sinkproof_ball_clear(&m);
    }
    ok(lost == keys, "law.shift shifted by what is not a number: %zu of %zu lost", lost, keys);
    ok(exact == INSTANCES, "sink.hybrid expects 1, 1 and a share twice: %zu of %d", exact,
       INSTANCES);
}

// A score whose exponential no ball can hold, wherever it stands: less the largest, it is 0.
static void shifted_by_the_largest(void) {
    size_t inside = 0, entries = 0;
    arb_ptr z = _arb_vec_init(4), w = filled(4);
    for (size_t top = 0; top < 4; top++) { // 3: the sink
        for (size_t k = 0; k < 4; k++) arb_set_d(z + k, k == top ? 0x1p1000 : (double)k - 1);
        sinkproof_truth_softmax_sink(w, w + 3, z, 3, z + 3, SIDE_BITS);
        for (size_t k = 0; k < 4; k++) {
            arb_sub_si(w + k, w + k, k == top, SIDE_BITS);
            inside +=
                sinkproof_truth_radius_log2(w + k) < 2 - SIDE_BITS && arb_contains_zero(w + k);
            entries++;
        }
    }
    ok(inside == entries,
       "sink.alpha sink.mass sink.mass-below-one sink.stable sink.limit sink.gate repeat.sink "
       "law.shift: one score of 2^1000 has all: %zu of %zu",
       inside, entries);
    _arb_vec_clear(z, 4);
    _arb_vec_clear(w, 4);
}

int main(void) {
    shifted_by_the_largest();
    report(cases, sizeof cases / sizeof *cases, SEED, INSTANCES);
    bound_of_bf16();
    width_of_intensity();
    met_clamps();
    shifts_and_layers();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
