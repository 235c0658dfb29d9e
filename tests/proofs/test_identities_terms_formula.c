// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sides of the identities of a stack of layers, of a cache of few bits and of a score's four
// terms, each against its own statement, computed again in long double.
#include "tests/shared/sides.h"

static const uint64_t SEED = 20261125;
enum { INSTANCES = 63, DIM = SINKPROOF_BALL_DIM, TOKENS = 4, LAYERS = 3, STATES = TOKENS * DIM };

// ---- paths through three layers -----------------------------------------------------------------

// From state (k, d) to state (i, c) of a layer: I + sum_h A^h_ik W^h_dc, four tokens of four.
typedef struct map {
    real from_to[STATES][STATES];
} map;

static real weight(instance m, size_t h, size_t d, size_t c, bool scalar) {
    if (scalar) return d == c ? 0.25L : 0;
    return d < m->dim && c < m->dim ? m->wo_hdc[(h * DIM + d) * DIM + c] / 8.0L : 0;
}
static real norm(instance m, size_t h, bool scalar) { // the largest sum of a row's sizes
    real most = 0;
    for (size_t d = 0; d < DIM; d++) {
        real sum = 0;
        for (size_t c = 0; c < DIM; c++) sum += fabsl(weight(m, h, d, c, scalar));
        most = fmaxl(most, sum);
    }
    return most;
}

// Row i of a layer's head: i + 1 keys and the sink.
static void attention(real *w, instance m, size_t l, size_t h, size_t i) {
    real z[TOKENS] = {0};
    for (size_t j = 0; j <= i; j++) z[j] = m->s_hj[(7 * l + 5 * i + 3 * j + h) % (m->heads * m->n)];
    shares(w, z, i + 1, m->b_h[h]);
}

// A layer; as a sum over paths every block is w_h I.
static map layer(instance m, size_t l, bool scalar, bool paths) {
    map t = {0};
    for (size_t s = 0; s < STATES; s++) t.from_to[s][s] = 1;
    for (size_t h = 0; h < m->heads; h++)
        for (size_t i = 0; i < TOKENS; i++) {
            real w[TOKENS + 1] = {0}, size = norm(m, h, scalar);
            attention(w, m, l, h, i);
            for (size_t e = 0; e < (i + 1) * DIM * DIM; e++) {
                size_t k = e / (DIM * DIM), d = e / DIM % DIM, c = e % DIM;
                real block = paths ? (d == c ? size : 0) : weight(m, h, d, c, scalar);
                t.from_to[k * DIM + d][i * DIM + c] += w[k] * block;
            }
        }
    return t;
}
static map after(const map *a, const map *b) {
    map t = {0};
    for (size_t i = 0; i < STATES; i++)
        for (size_t k = 0; k < STATES; k++)
            for (size_t j = 0; j < STATES; j++)
                t.from_to[i][j] += a->from_to[i][k] * b->from_to[k][j];
    return t;
}

// Of the last token's state by each token's.
static void last_row(real *out, instance m, bool scalar, bool paths) {
    map all = layer(m, 0, scalar, paths);
    for (size_t l = 1; l < LAYERS; l++) {
        map next = layer(m, l, scalar, paths);
        all = after(&all, &next);
    }
    for (size_t j = 0; j < TOKENS; j++) {
        out[j] = 0;
        for (size_t d = 0; d < DIM; d++) {
            real sum = 0;
            for (size_t c = 0; c < DIM; c++)
                sum += fabsl(all.from_to[j * DIM + d][(TOKENS - 1) * DIM + c]);
            out[j] = fmaxl(out[j], sum);
        }
    }
}
static const real ABOVE = 1 + 0x1p-20L;

static void jacobian_norms(real *out, instance m) {
    last_row(out, m, false, false);
}
static void path_sums(real *out, instance m) {
    last_row(out, m, false, true);
    for (size_t j = 0; j < TOKENS; j++) out[j] *= ABOVE;
}
static void scalar_norms(real *out, instance m) {
    last_row(out, m, true, false);
}
static void arriving(real *out, instance m) {
    real each[TOKENS] = {0};
    last_row(each, m, false, true);
    *out = sum_of(each, TOKENS);
}
static void row_bound(real *out, instance m) {
    real least = 1, size = 0;
    for (size_t h = 0; h < m->heads; h++) {
        size += norm(m, h, false);
        for (size_t e = 0; e < LAYERS * TOKENS; e++) {
            real w[TOKENS + 1] = {0};
            attention(w, m, e / TOKENS, h, e % TOKENS);
            least = fminl(least, w[e % TOKENS + 1]);
        }
    }
    *out = powl(1 + (1 - least) * size, LAYERS) * ABOVE;
}

// ---- keys and values in few bits ----------------------------------------------------------------

static double off_by(instance m, size_t j) {
    return j == 1 ? 0 : m->part_j[j] > 0 ? 0.25 : -0.25;
}
static void kept_shares(real *w, instance m) {
    real z[MOST_KEYS] = {0};
    for (size_t j = 0; j < m->n; j++) z[j] = m->s_hj[j] + off_by(m, j);
    shares(w, z, m->n, m->b_h[0]);
}
static void cache_error(real *out, instance m) {
    real w[MOST_KEYS + 1] = {0}, kept[MOST_KEYS + 1] = {0};
    shares_of_head(w, m, 0, m->b_h[0]);
    kept_shares(kept, m);
    for (size_t d = 0; d < m->dim; d++) {
        real moved = weighted(m, 0, kept, d) - weighted(m, 0, w, d);
        for (size_t j = 0; j < m->n; j++)
            moved += kept[j] * off_by(m, j) * (d % 2 == 0 ? 0.5L : -0.5L);
        out[d] = fabsl(moved);
    }
}
static void cache_bound(real *out, instance m) {
    real w[MOST_KEYS + 1] = {0}, kept[MOST_KEYS + 1] = {0}, off = 0;
    shares_of_head(w, m, 0, m->b_h[0]);
    kept_shares(kept, m);
    for (size_t j = 0; j < m->n; j++) off += j == 1 ? 0 : kept[j];
    for (size_t d = 0; d < m->dim; d++) {
        real most = 0;
        for (size_t j = 0; j < m->n; j++) most = fmaxl(most, fabsl(m->x_gjd[j * m->dim + d]));
        out[d] = (off / 8 + (2 - w[m->n]) * most * off * (expl(0.25L) - 1)) * ABOVE;
    }
}

// ---- the four terms of a score ------------------------------------------------------------------

static real query_bias(instance m, size_t h, size_t r) {
    return (h + 1) * (real)m->star_d[r] / 32;
}
static real key_of(instance m, size_t h, size_t j, size_t r) { // (x_j W_K)_r
    real sum = 0;
    for (size_t c = 0; c < m->hidden; c++)
        sum += (real)m->k_jd[j * m->dim + c % m->dim] / 24 *
               m->wo_hdc[(h * m->dim + r) * m->hidden + c] / 16;
    return sum;
}
static void delta_and_constant(real *out, instance m) {
    for (size_t e = 0; e < m->hidden; e++) {
        out[e] = 0;
        for (size_t r = 0; r < m->dim; r++)
            out[e] += query_bias(m, 0, r) * (key_of(m, 0, e % m->n, r) + m->bv_gd[r] / 8.0L);
    }
}
static void deltas(real *out, instance m, size_t heads) {
    for (size_t e = 0; e < m->hidden; e++) {
        out[e] = 0;
        for (size_t h = 0; h < heads; h++)
            for (size_t r = 0; r < m->dim; r++)
                out[e] += query_bias(m, h, r) * key_of(m, h, e % m->n, r);
    }
}
static void delta_of_head(real *out, instance m) {
    deltas(out, m, 1);
}
static void delta_of_heads(real *out, instance m) {
    deltas(out, m, m->heads);
}

static real sink_of_shifted(instance m, real c) { // of scores all raised by c: its logit less c
    real w[MOST_KEYS + 1] = {0};
    shares_of_head(w, m, 0, m->b_h[0] - c);
    return w[m->n];
}
static void sink_of_raised(real *out, instance m) {
    *out = sink_of_shifted(m, fabsl(m->star_d[0] / 8.0L));
}
static void sink_as_it_is(real *out, instance m) {
    *out = sink_of_shifted(m, 0);
}

// 1.25^2 of (a + b_Q) turned by n with (c + b_K) turned by the key's position.
static void rotated(real *out, instance m) {
    real at[4] = {0, 1, (real)m->n - 1, m->n};
    for (size_t e = 0; e < 4; e++) {
        out[e] = 0;
        for (size_t p = 0; p < 2; p++) {
            real angle = (m->n - at[e]) / (p == 0 ? 1 : 100);
            real q = (real)m->q_d[p] + m->star_d[p], q_2 = (real)m->q_d[p + 2] + m->star_d[p + 2];
            real k = (real)m->k_star_d[p] + m->bv_gd[p];
            real k_2 = (real)m->k_star_d[p + 2] + m->bv_gd[p + 2];
            out[e] += (q * k + q_2 * k_2) * cosl(angle) + (q * k_2 - q_2 * k) * sinl(angle);
        }
        out[e] *= 1.5625L / 4096;
    }
}

static const stated_sides cases[] = {
    {"mix.paths", 0, jacobian_norms, path_sums},
    {"mix.paths", 1, scalar_norms, NULL},
    {"mix.paths", 2, arriving, row_bound},
    {"bound.quantized-cache", 0, cache_error, cache_bound},
    {"gpt2.delta", 0, delta_and_constant, delta_and_constant},
    {"gpt2.gamma", 0, delta_of_head, delta_of_head},
    {"gpt2.unsplit", 0, delta_of_heads, delta_of_heads},
    {"terms.sink", 1, sink_of_raised, sink_as_it_is},
    {"terms.rotated", 0, rotated, rotated},
};

// What the query bias adds is the same for every query, yet a query is there on the left alone:
// where the second key's token is not a number, entry 0, whose query it is, is none.
static void lost_query(void) {
    const sinkproof_identity *identity = identity_of("gpt2.delta", 0);
    size_t lost = 0, finite = 0, count = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr left = filled(m.hidden), right = filled(m.hidden);
        for (size_t d = 0; m.n > 2 && d < m.dim; d++) m.k_jd[m.dim + d] = NAN;
        if (m.n > 2) {
            identity->left(left, &m, SIDE_BITS);
            identity->right(right, &m, SIDE_BITS);
            lost += !arb_is_finite(left), finite += arb_is_finite(right) != 0, count++;
        }
        _arb_vec_clear(left, (slong)m.hidden);
        _arb_vec_clear(right, (slong)m.hidden);
        sinkproof_ball_clear(&m);
    }
    ok(count > 0 && lost == count && finite == count,
       "gpt2.delta with the query on the left alone: %zu and %zu of %zu", lost, finite, count);
}

int main(void) {
    report(cases, sizeof cases / sizeof *cases, SEED, INSTANCES);
    lost_query();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
