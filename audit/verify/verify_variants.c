// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks the designs of attention: the weights and results of ref/variants/ in binary64 against the
// truth of the same step and its honest set, and both sides of every edge of the lattice.
#include "audit/verify/verify.h"
#include "audit/verify/verify_draw.h"
#include "proofs/bounds/variants.h"
#include "proofs/truth/lattice.h"

#include <math.h>

enum { HEADS = 4, DIM = SINKPROOF_EDGE_DIM, MOST = SINKPROOF_EDGE_N + 2, BITS = 128 };

static void exact_balls(arb_ptr out, const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) arb_set_d(out + i, x[i]);
}

static void measure_head(verify_measure *result, const sinkproof_variant *variant,
                         const sinkproof_variant_head *head) {
    sinkproof_policy policy;
    sinkproof_variant_result r;
    sinkproof_error error = {{0}};
    sinkproof_honest set[MOST], known[MOST];
    bool seen[MOST], fine = sinkproof_policy_known("real-f64", &policy) &&
                            sinkproof_variant_attend(&policy, variant, head, &r, &error);
    if (!fine) {
        verify_add_comparison(result, INFINITY, 0);
        return;
    }
    sinkproof_setting s = sinkproof_setting_for(&policy, r.rows * r.keys, 1e-9);
    arb_ptr truth = _arb_vec_init(MOST), in = _arb_vec_init(MOST), v = _arb_vec_init(MOST * DIM);
    size_t columns = r.keys + 1;
    exact_balls(v, r.v_jd, r.keys * DIM);
    for (size_t i = 0; fine && i < r.rows; i++) {
        const double *s_j = r.s_ij + i * columns, *alpha_j = r.alpha_ij + i * columns;
        sinkproof_truth_variant_seen(variant, head, i, r.keys, seen);
        for (size_t j = 0; j < columns; j++) known[j] = sinkproof_exact_set(s_j[j]);
        exact_balls(in, s_j, columns);
        fine = sinkproof_honest_variant_weights(&s, variant, columns, seen, known, set);
        sinkproof_truth_variant_weights(truth, variant, columns, seen, in, BITS);
        if (fine) verify_add_set_values(result, truth, set, alpha_j, columns);
        exact_balls(in, alpha_j, columns);
        fine = fine &&
               sinkproof_honest_variant_values(&s, variant, head, r.keys, alpha_j, r.v_jd, set);
        sinkproof_truth_variant_values(truth, variant, head, r.keys, in, v, BITS);
        if (fine) verify_add_set_values(result, truth, set, r.o_id + i * DIM, DIM);
    }
    if (!fine) verify_add_comparison(result, INFINITY, 0);
    _arb_vec_clear(truth, MOST);
    _arb_vec_clear(in, MOST);
    _arb_vec_clear(v, MOST * DIM);
    sinkproof_variant_result_free(&r);
}

static void measure_variant(verify_measure *result, const char *name, uint64_t seed) {
    sinkproof_drawn_head drawn;
    for (int k = 0; k < HEADS; k++) {
        sinkproof_head_draw(&drawn, seed + (uint64_t)k);
        sinkproof_variant_head head = sinkproof_edge_head_view(&drawn);
        measure_head(result, sinkproof_variant_find(name), &head);
    }
}

#define DESIGN(function, name)                                                                     \
    void verify_##function(verify_measure *result, uint64_t seed) {                                \
        measure_variant(result, name, seed);                                                       \
    }
DESIGN(plain, "softmax")
DESIGN(sigmoid, "sigmoid")
DESIGN(sigmoid_norm, "sigmoid-norm")
DESIGN(elu, "elu")
DESIGN(elu_norm, "elu-norm")
DESIGN(elu_linear, "elu-linear")
DESIGN(elu_linear_raw, "elu-linear-raw")
DESIGN(identity, "identity")
DESIGN(identity_max, "identity-max")
DESIGN(mlp, "mlp")
DESIGN(mlp_max, "mlp-max")

void verify_similarities(verify_measure *result, uint64_t seed) {
    for (size_t k = 0; sinkproof_variant_at(k) != NULL; k++)
        measure_variant(result, sinkproof_variant_at(k)->name, seed + k);
}

// Where an edge holds, disjoint balls count as infinitely wrong; where it is false, there must be
// some.
void verify_edges(verify_measure *result, uint64_t seed) {
    sinkproof_edge_outcome o;
    for (size_t k = 0; sinkproof_edge_at(k) != NULL; k++) {
        const sinkproof_edge *edge = sinkproof_edge_at(k);
        bool fine = sinkproof_edge_check(edge, seed, true, 256, &o) &&
                    (edge->holds ? o.apart == 0 : o.apart > 0);
        verify_add_comparison(result, fine ? 0 : INFINITY, 0);
    }
}
