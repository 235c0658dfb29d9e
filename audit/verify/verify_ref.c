// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks the stages of ref/ in binary64 (the policy real-f64: no rounding points) on random inputs,
// against the enclosed real value, within the derived bound: the honest set of binary64.
#include "audit/verify/verify_draw.h"

#include "proofs/bounds/bounds.h"
#include "ref/stages.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 12 };

static double *draw_doubles(uint64_t *state, size_t n, double size) {
    double *x = malloc((n + 1) * sizeof *x);
    if (x == NULL) abort();
    for (size_t k = 0; k < n; k++) x[k] = between(state, -size, size);
    return x;
}
static sinkproof_honest *known_sets(const double *x, size_t n) {
    sinkproof_honest *h = malloc((n + 1) * sizeof *h);
    if (h == NULL) abort();
    for (size_t k = 0; k < n; k++) h[k] = sinkproof_exact_set(x[k]);
    return h;
}
static sinkproof_policy policy_binary64(void) {
    return policy_named("real-f64");
}

void verify_add_comparison(verify_measure *result, double error, double bound) {
    double share = !(error >= 0 && bound >= 0) ? NAN : error == 0 ? 0 : error / fabs(bound);
    result->values++;
    result->wrong += !(share <= 1);
    result->worst = sinkproof_keep_worst(result->worst, share);
}

void verify_add_exact(verify_measure *result, double error, double bound) {
    verify_add_comparison(result, error, bound);
    result->exact++;
}

void verify_add_enclosed(verify_measure *result, double error, double bound) {
    verify_add_comparison(result, error, bound);
    result->enclosed++;
}

static bool set_reaches(const sinkproof_honest *set, const arb_t truth) {
    arb_t span, end;
    balls_init(span, end);
    arb_set_d(span, set->lo);
    arb_set_d(end, set->hi);
    arb_union(span, span, end, ARF_PREC_EXACT);
    bool result = arb_overlaps(span, truth);
    balls_clear(span, end);
    return result;
}

void verify_add_set_values(verify_measure *result, arb_srcptr truth, const sinkproof_honest *set,
                           const double *value, size_t n) {
    for (size_t k = 0; k < n; k++) {
        bool inside =
            set[k].lo <= value[k] && value[k] <= set[k].hi && set_reaches(&set[k], truth + k);
        int above = arf_cmp_d(arb_midref(truth + k), value[k]); // the truth relative to the value
        double error = sinkproof_truth_distance(truth + k, value[k]);
        double room = sinkproof_truth_distance(truth + k, above > 0 ? set[k].lo : set[k].hi);
        if (arb_is_exact(truth + k) && above == 0) error = 0;
        *(arb_is_exact(truth + k) ? &result->exact : &result->enclosed) += 1;
        verify_add_comparison(result, inside ? error : INFINITY, inside ? room : 0);
    }
}

// y = W x + b: attn.qkv, sink.attn-concat, bound.linear
void verify_linear(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 3), rows = sinkproof_draw_from_to(&seed, 1, 9),
               cols = sinkproof_draw_from_to(&seed, 1, 200);
        double *w = draw_doubles(&seed, rows * cols, 2), *b = draw_doubles(&seed, rows, 1);
        double *x = draw_doubles(&seed, n * cols, 8), *y = draw_doubles(&seed, n * rows, 1);
        double *work = draw_doubles(&seed, sinkproof_linear_work(n, rows, cols), 1);
        sinkproof_matrix w_rc = doubles_matrix(w, rows, cols), b_r = doubles_matrix(b, 1, rows);
        sinkproof_linear(&policy, AT_A2, n, &w_rc, &b_r, x, y, work);
        arb_ptr in = balls_from_doubles(x, n * cols), truth = _arb_vec_init((slong)(n * rows));
        sinkproof_truth_linear(truth, in, n, &w_rc, &b_r, VERIFY_BITS);
        sinkproof_honest *known = known_sets(x, n * cols), *set = known_sets(y, n * rows);
        sinkproof_setting s = sinkproof_setting_for(&policy, n * rows, 1e-9);
        sinkproof_planes planes = sinkproof_planes_new(known, n, cols, cols);
        must(sinkproof_honest_linear(&s, &planes, &(sinkproof_weight_rows){&w_rc, 0, rows, b}, set,
                                     rows));
        verify_add_set_values(result, truth, set, y, n * rows);
        sinkproof_planes_free(&planes);
        _arb_vec_clear(in, (slong)(n * cols));
        _arb_vec_clear(truth, (slong)(n * rows));
        free(w);
        free(b);
        free(x);
        free(y);
        free(work);
        free(known);
        free(set);
    }
}

static sinkproof_block row_block(size_t keys, size_t head_dim) {
    return (sinkproof_block){.rows = 1,
                             .keys = keys,
                             .first = keys - 1,
                             .head_dim = head_dim,
                             .q_stride = head_dim,
                             .kv_stride = head_dim};
}

// s_j = q k_j / sqrt(d'): attn.score
void verify_scores(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    for (int round = 0; round < ROUNDS; round++) {
        size_t keys = sinkproof_draw_from_to(&seed, 1, 40),
               dim = sinkproof_draw_from_to(&seed, 1, 64);
        double *q = draw_doubles(&seed, dim, 4), *k = draw_doubles(&seed, keys * dim, 4);
        double *s_j = draw_doubles(&seed, keys, 1);
        sinkproof_block block = row_block(keys, dim);
        sinkproof_scores(&policy, &block, q, k, s_j);
        arb_ptr q_b = balls_from_doubles(q, dim), k_b = balls_from_doubles(k, keys * dim);
        arb_ptr truth = _arb_vec_init((slong)keys);
        sinkproof_truth_scores(truth, q_b, k_b, keys, dim, dim, VERIFY_BITS);
        sinkproof_honest *q_h = known_sets(q, dim), *k_h = known_sets(k, keys * dim);
        sinkproof_honest *set = known_sets(s_j, keys);
        sinkproof_setting s = sinkproof_setting_for(&policy, keys, 1e-9);
        sinkproof_planes x = sinkproof_planes_new(q_h, 1, dim, dim);
        sinkproof_planes y = sinkproof_planes_new(k_h, keys, dim, dim);
        double terms = sinkproof_score_terms(&s, dim, dim);
        must(sinkproof_honest_products(&s, &x, &y, &terms, NULL, set, keys));
        for (size_t j = 0; j < keys; j++) set[j] = sinkproof_honest_score(&s, dim, set[j]);
        verify_add_set_values(result, truth, set, s_j, keys);
        sinkproof_planes_free(&x);
        sinkproof_planes_free(&y);
        _arb_vec_clear(q_b, (slong)dim);
        _arb_vec_clear(k_b, (slong)(keys * dim));
        _arb_vec_clear(truth, (slong)keys);
        free(q);
        free(k);
        free(s_j);
        free(q_h);
        free(k_h);
        free(set);
    }
}

// One row of weights with its sink: those of ref, the enclosure, and the honest set; [keys + 1]
// each.
typedef struct weights {
    size_t keys;
    double *s_j, *alpha_j, sink;
    arb_ptr truth;
    sinkproof_honest *set;
} weights;

static weights draw_weights(uint64_t *seed, int round) {
    static const double sinks[] = {0, -INFINITY, 30, -30, 3.25, 1, -1, 100};
    sinkproof_policy policy = policy_binary64();
    weights w = {.keys = sinkproof_draw_from_to(seed, 1, 200), .sink = sinks[round % 8]};
    w.s_j = draw_doubles(seed, w.keys, round % 3 == 0 ? 150 : 4);
    w.alpha_j = draw_doubles(seed, w.keys + 1, 1);
    sinkproof_block block = row_block(w.keys, 1);
    sinkproof_softmax_sink(&policy, &block, &w.sink, w.s_j, w.alpha_j);
    arb_ptr z = balls_from_doubles(w.s_j, w.keys);
    arb_t b;
    arb_init(b);
    arb_set_d(b, w.sink);
    w.truth = _arb_vec_init((slong)w.keys + 1);
    sinkproof_truth_softmax_sink(w.truth, w.truth + w.keys, z, w.keys, b, VERIFY_BITS);
    sinkproof_honest *known = known_sets(w.s_j, w.keys);
    w.set = known_sets(w.alpha_j, w.keys + 1);
    sinkproof_setting s = sinkproof_setting_for(&policy, w.keys + 1, 1e-9);
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, w.keys, known, sinkproof_exact_set(w.sink), w.set,
                                  &common));
    free(known);
    arb_clear(b);
    _arb_vec_clear(z, (slong)w.keys);
    return w;
}

static void weights_free(weights *w) {
    _arb_vec_clear(w->truth, (slong)w->keys + 1);
    free(w->s_j);
    free(w->alpha_j);
    free(w->set);
}

// sink.alpha, sink.alpha-sink, sink.stable, sink.limit, bound.softmax-sink
void verify_softmax(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 2 * ROUNDS; round++) {
        weights w = draw_weights(&seed, round);
        verify_add_set_values(result, w.truth, w.set, w.alpha_j, w.keys + 1);
        weights_free(&w);
    }
}

// sink.mass: the weights of ref and its sink's weight add up to 1 within the bounds of all of them.
void verify_mass(verify_measure *result, uint64_t seed) {
    arb_t sum, t;
    balls_init(sum, t);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        weights w = draw_weights(&seed, round);
        double below = 0, above = 0; // the range of the sum of honest weights around 1
        arb_zero(sum);
        for (size_t j = 0; j <= w.keys; j++) {
            arb_set_d(t, w.alpha_j[j]);
            arb_add(sum, sum, t, ARF_PREC_EXACT);
            below += sinkproof_truth_distance(w.truth + j, w.set[j].lo);
            above += sinkproof_truth_distance(w.truth + j, w.set[j].hi);
        }
        int side = arf_cmp_si(arb_midref(sum), 1);
        verify_add_comparison(result, side == 0 ? 0 : sinkproof_truth_distance(sum, 1),
                              side < 0 ? below : above);
        weights_free(&w);
    }
    balls_clear(sum, t);
}

// sink.attn-values, bound.value: values weighted by given weights
void verify_values(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    for (int round = 0; round < ROUNDS; round++) {
        weights w = draw_weights(&seed, round);
        size_t dim = sinkproof_draw_from_to(&seed, 1, 8), keys = w.keys;
        double *v = draw_doubles(&seed, keys * dim, 8), *o = draw_doubles(&seed, dim, 1);
        double *across = draw_doubles(&seed, keys * dim, 1); // [dim, keys]
        for (size_t k = 0; k < keys * dim; k++) across[k % dim * keys + k / dim] = v[k];
        sinkproof_block block = row_block(keys, dim);
        sinkproof_values(&policy, &block, w.alpha_j, v, o);
        arb_ptr a = balls_from_doubles(w.alpha_j, keys), v_b = balls_from_doubles(v, keys * dim);
        arb_ptr truth = _arb_vec_init((slong)dim);
        sinkproof_truth_values(truth, a, v_b, keys, dim, dim, VERIFY_BITS);
        sinkproof_honest *a_h = known_sets(w.alpha_j, keys), *v_h = known_sets(across, keys * dim);
        sinkproof_honest *set = known_sets(o, dim);
        sinkproof_setting s = sinkproof_setting_for(&policy, dim, 1e-9);
        sinkproof_planes x = sinkproof_planes_new(a_h, 1, keys, keys);
        sinkproof_planes y = sinkproof_planes_new(v_h, dim, keys, keys);
        must(sinkproof_honest_products(&s, &x, &y, NULL, NULL, set, dim));
        verify_add_set_values(result, truth, set, o, dim);
        sinkproof_planes_free(&x);
        sinkproof_planes_free(&y);
        _arb_vec_clear(a, (slong)keys);
        _arb_vec_clear(v_b, (slong)(keys * dim));
        _arb_vec_clear(truth, (slong)dim);
        free(v);
        free(o);
        free(across);
        free(a_h);
        free(v_h);
        free(set);
        weights_free(&w);
    }
}

// rmsnorm.forward, bound.rmsnorm
void verify_rmsnorm(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 300);
        double *scale = draw_doubles(&seed, n, 2),
               *x = draw_doubles(&seed, n, round % 2 == 0 ? 30 : 1e-3);
        double *y = draw_doubles(&seed, n, 1), *work = draw_doubles(&seed, n, 1), common;
        sinkproof_matrix w = doubles_matrix(scale, 1, n);
        sinkproof_rmsnorm(&policy, AT_A1, &w, 1e-5, 1, x, y, work);
        arb_ptr in = balls_from_doubles(x, n), truth = _arb_vec_init((slong)n);
        sinkproof_truth_rmsnorm(truth, in, 1, &w, 1e-5, VERIFY_BITS);
        sinkproof_honest *known = known_sets(x, n), *set = known_sets(y, n);
        sinkproof_setting s = sinkproof_setting_for(&policy, n, 1e-9);
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){n, scale, 1e-5}, known, set, &common);
        verify_add_set_values(result, truth, set, y, n);
        _arb_vec_clear(in, (slong)n);
        _arb_vec_clear(truth, (slong)n);
        free(scale);
        free(x);
        free(y);
        free(work);
        free(known);
        free(set);
    }
}

// layernorm.forward, bound.layernorm
void verify_layernorm(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 300);
        double *scale = draw_doubles(&seed, n, 2),
               *x = draw_doubles(&seed, n, round % 2 == 0 ? 30 : 1e-3);
        double *shift = draw_doubles(&seed, n, 1), *y = draw_doubles(&seed, n, 1),
               *work = draw_doubles(&seed, 2 * n, 1);
        sinkproof_matrix w = doubles_matrix(scale, 1, n), b = doubles_matrix(shift, 1, n);
        sinkproof_layernorm(&policy, AT_A1, &w, &b, 1e-5, 1, x, y, work);
        arb_ptr in = balls_from_doubles(x, n), truth = _arb_vec_init((slong)n);
        sinkproof_truth_layernorm(truth, in, 1, &w, &b, 1e-5, VERIFY_BITS);
        sinkproof_honest *known = known_sets(x, n), *set = known_sets(y, n);
        sinkproof_setting s = sinkproof_setting_for(&policy, n, 1e-9);
        sinkproof_honest_layernorm(&s, AT_A1, &(sinkproof_norm){n, scale, 1e-5}, shift, known, set);
        verify_add_set_values(result, truth, set, y, n);
        _arb_vec_clear(in, (slong)n);
        _arb_vec_clear(truth, (slong)n);
        free(scale);
        free(shift);
        free(x);
        free(y);
        free(work);
        free(known);
        free(set);
    }
}

// gelu.tanh, bound.gelu
void verify_gelu(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
    for (int k = 0; k < 20 * ROUNDS; k++) {
        double x = between(&seed, -12, 12), y = sinkproof_gelu_one(&policy, x);
        arb_ptr in = balls_from_doubles(&x, 1), truth = _arb_vec_init(1);
        sinkproof_truth_gelu_tanh(truth, in, 1, VERIFY_BITS);
        sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(x));
        verify_add_set_values(result, truth, &set, &y, 1);
        _arb_vec_clear(in, 1);
        _arb_vec_clear(truth, 1);
    }
}

static sinkproof_config rope_config(bool truncate) {
    return (sinkproof_config){.head_dim = 64,
                              .rotation.theta = 150000,
                              .rotation.factor = 32,
                              .rotation.beta_fast = 32,
                              .rotation.beta_slow = 1,
                              .rotation.original_context = 4096,
                              .rotation.truncate = truncate};
}
static const int32_t positions[] = {0, 1, 2, 127, 4095, 4096, 131071};

// Llama 3's, of 64 coordinates.
static sinkproof_config llama3_config(void) {
    return (sinkproof_config){.head_dim = 64,
                              .rotation.kind = SINKPROOF_LLAMA3_ROTATION,
                              .rotation.theta = 500000,
                              .rotation.factor = 8,
                              .rotation.beta_fast = 4,
                              .rotation.beta_slow = 1,
                              .rotation.original_context = 8192};
}

// Rotates x at one position (unit vectors e_p give cos and sin): by ref, enclosed, and the honest
// set.
static void rotate_once(verify_measure *result, uint64_t *seed, sinkproof_config config,
                        int32_t position, bool table) {
    enum { DIM = 64, HALF = 32 };
    sinkproof_policy policy = policy_binary64();
    double freq[HALF], cosine[HALF], sine[HALF], *x = draw_doubles(seed, DIM, 4), y[DIM];
    if (table) // (1, 0) in every pair becomes (c cos, c sin)
        for (size_t d = 0; d < DIM; d++) x[d] = d < HALF;
    memcpy(y, x, sizeof y);
    sinkproof_yarn_frequencies(&policy, &config, freq);
    sinkproof_rope_table(&policy, &config, freq, (size_t)position, 1, cosine, sine);
    sinkproof_rope(&policy, 1, 1, DIM, cosine, sine, y);
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, &config, VERIFY_BITS);
    arb_ptr in = balls_from_doubles(x, DIM), truth = _arb_vec_init(DIM);
    sinkproof_truth_rope(truth, in, 1, 1, &position, &yarn, VERIFY_BITS);
    sinkproof_honest c_p[HALF], s_p[HALF], set[DIM], *known = known_sets(x, DIM);
    sinkproof_setting s = sinkproof_setting_for(&policy, DIM, 1e-9);
    sinkproof_honest_rope_table(&s, &config, position, c_p, s_p);
    sinkproof_honest_rotate(&s, DIM, known, c_p, s_p, set);
    verify_add_set_values(result, truth, set, y, DIM);
    _arb_vec_clear(in, DIM);
    _arb_vec_clear(truth, DIM);
    sinkproof_truth_yarn_clear(&yarn);
    free(x);
    free(known);
}

// yarn.ramp, yarn.concentration, yarn.truncate: the table of cosines and sines, both modes
void verify_yarn(verify_measure *result, uint64_t seed) {
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        for (int mode = 0; mode < 2; mode++)
            rotate_once(result, &seed, rope_config(mode == 1), positions[p], true);
}

// rope.llama3: its table
void verify_llama3(verify_measure *result, uint64_t seed) {
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        rotate_once(result, &seed, llama3_config(), positions[p], true);
}

// rope.rotate, rope.orthogonal, bound.rope
void verify_rotate(verify_measure *result, uint64_t seed) {
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        for (int mode = 0; mode < 2; mode++)
            rotate_once(result, &seed, rope_config(mode == 1), positions[p], false);
}

// router.softmax-after: the weights of the chosen experts are a softmax without a sink.
void verify_router(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    enum { HIDDEN = 8, EXPERTS = 16, CHOSEN = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        double *w = draw_doubles(&seed, EXPERTS * HIDDEN, 2), *b = draw_doubles(&seed, EXPERTS, 1);
        double *t = draw_doubles(&seed, HIDDEN, 4), logits[EXPERTS], weights_k[CHOSEN];
        double *work = draw_doubles(&seed, sinkproof_linear_work(1, EXPERTS, HIDDEN) + EXPERTS, 1);
        sinkproof_layer layer = {.w_router = doubles_matrix(w, EXPERTS, HIDDEN),
                                 .b_router = doubles_matrix(b, 1, EXPERTS)};
        int32_t chosen[CHOSEN];
        sinkproof_router(&policy, &layer, 1, CHOSEN, t, logits, chosen, weights_k, work);
        size_t chosen_k[CHOSEN];
        double logit_k[CHOSEN + 1] = {0}, common;
        for (size_t k = 0; k < CHOSEN; k++)
            chosen_k[k] = (size_t)chosen[k], logit_k[k] = logits[chosen[k]];
        arb_ptr g = balls_from_doubles(logits, EXPERTS), truth = _arb_vec_init(CHOSEN);
        sinkproof_truth_router_weights(truth, chosen_k, g, CHOSEN, VERIFY_BITS);
        sinkproof_honest *known = known_sets(logit_k, CHOSEN), set[CHOSEN + 1];
        sinkproof_setting s = sinkproof_setting_for(&policy, CHOSEN, 1e-9);
        must(sinkproof_honest_softmax(&s, AT_M4, CHOSEN, known, sinkproof_exact_set(-INFINITY), set,
                                      &common));
        verify_add_set_values(result, truth, set, weights_k, CHOSEN);
        _arb_vec_clear(g, EXPERTS);
        _arb_vec_clear(truth, CHOSEN);
        free(w);
        free(b);
        free(t);
        free(work);
        free(known);
    }
}

// swiglu.clamped, bound.swiglu: every clamp and its edges
void verify_swiglu(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    sinkproof_config config = {.swiglu = {1.702, 7, 1}};
    static const double edges[] = {-100, -7, -0.5, 0, 0.25, 7, 7.0000005, 100};
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
    for (int k = 0; k < 64 + 20 * ROUNDS; k++) {
        double u[2] = {k < 64 ? edges[k / 8] : between(&seed, -12, 12),
                       k < 64 ? edges[k % 8] : between(&seed, -12, 12)};
        double y =
            sinkproof_swiglu_one(&policy, (sinkproof_swiglu_numbers){1.702, 7, 1}, u[0], u[1]);
        arb_ptr in = balls_from_doubles(u, 2), truth = _arb_vec_init(1);
        sinkproof_truth_swiglu(truth, in, 1, (sinkproof_swiglu_numbers){1.702, 7, 1}, VERIFY_BITS);
        sinkproof_honest set = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(u[0]),
                                                       sinkproof_exact_set(u[1]));
        verify_add_set_values(result, truth, &set, &y, 1);
        _arb_vec_clear(in, 2);
        _arb_vec_clear(truth, 1);
    }
}

// moe.sum
void verify_mixture(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_binary64();
    enum { CHOSEN = 4, HIDDEN = 16 };
    sinkproof_setting s = sinkproof_setting_for(&policy, HIDDEN, 1e-9);
    for (int round = 0; round < ROUNDS; round++) {
        double *w = draw_doubles(&seed, CHOSEN, 1), *d = draw_doubles(&seed, CHOSEN * HIDDEN, 20),
               y[HIDDEN];
        const int32_t chosen[CHOSEN] = {7, 2, 5, 0};
        sinkproof_mixture(&policy, 1, CHOSEN, HIDDEN, chosen, w, d, y);
        arb_ptr w_b = balls_from_doubles(w, CHOSEN), d_b = balls_from_doubles(d, CHOSEN * HIDDEN);
        arb_ptr truth = _arb_vec_init(HIDDEN);
        sinkproof_truth_mixture(truth, w_b, d_b, CHOSEN, HIDDEN, VERIFY_BITS);
        sinkproof_honest set[HIDDEN];
        for (size_t c = 0; c < HIDDEN; c++) {
            sinkproof_honest w_k[CHOSEN], d_k[CHOSEN];
            for (size_t k = 0; k < CHOSEN; k++)
                w_k[k] = sinkproof_exact_set(w[k]), d_k[k] = sinkproof_exact_set(d[k * HIDDEN + c]);
            set[c] = sinkproof_honest_mixture(&s, CHOSEN, w_k, d_k);
        }
        verify_add_set_values(result, truth, set, y, HIDDEN);
        _arb_vec_clear(w_b, CHOSEN);
        _arb_vec_clear(d_b, CHOSEN * HIDDEN);
        _arb_vec_clear(truth, HIDDEN);
        free(w);
        free(d);
    }
}
