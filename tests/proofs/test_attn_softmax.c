// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The matrix form of softmax attention, softmax(Q K^T / sqrt(d) + M) V with -inf in the mask M,
// against the reference, which sums only over the keys that a row sees. Both must give the same
// bits for every mask.
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = SINKPROOF_EDGE_N, DIM = SINKPROOF_EDGE_DIM };

// Row i of the formula; what M hides is added to the score as -inf, and no key is left out.
static void row_of(const sinkproof_variant *variant, const sinkproof_variant_result *r,
                   const int *document_n, size_t i, double *a_j, double *o_d) {
    double m = -INFINITY, z = 0;
    for (size_t j = 0; j < N; j++) {
        double dot = 0, mask = sinkproof_variant_sees(variant, document_n, i, j) ? 0 : -INFINITY;
        for (size_t d = 0; d < DIM; d++) dot += r->q_id[i * DIM + d] * r->k_jd[j * DIM + d];
        a_j[j] = dot * (1 / sqrt(DIM)) + mask;
        m = fmax(m, a_j[j]);
    }
    for (size_t j = 0; j < N; j++) z += a_j[j] = exp(a_j[j] - m);
    for (size_t j = 0; j < N; j++) a_j[j] /= z;
    for (size_t d = 0; d < DIM; d++) {
        o_d[d] = 0;
        for (size_t j = 0; j < N; j++) o_d[d] += a_j[j] * r->v_jd[j * DIM + d];
    }
}

static void whole_matrices(const sinkproof_policy *policy, const char *name, size_t window) {
    static sinkproof_drawn_head drawn;
    sinkproof_variant variant = *sinkproof_variant_find(name);
    sinkproof_variant_result r;
    sinkproof_error error = {{0}};
    size_t other = 0, hidden = 0;
    if (window > 0) variant.window = window;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sinkproof_head_draw(&drawn, seed);
        sinkproof_variant_head head = sinkproof_edge_head_view(&drawn);
        must(sinkproof_variant_attend(policy, &variant, &head, &r, &error));
        for (size_t i = 0; i < N; i++) {
            double a_j[N], o_d[DIM];
            row_of(&variant, &r, head.document_n, i, a_j, o_d);
            for (size_t j = 0; j < N; j++) {
                other += !(a_j[j] == r.alpha_ij[i * (N + 1) + j]);
                hidden += a_j[j] == 0;
            }
            for (size_t d = 0; d < DIM; d++) other += !(o_d[d] == r.o_id[i * DIM + d]);
        }
        sinkproof_variant_result_free(&r);
    }
    ok(other == 0 && hidden > 0, "attn.softmax with M added, %s: other bits=%zu, hidden=%zu", name,
       other, hidden);
}

// The first row of a causal mask is its own value, whatever the scores.
static void first_row(const sinkproof_policy *policy) {
    static sinkproof_drawn_head drawn;
    sinkproof_variant_result r;
    sinkproof_error error = {{0}};
    sinkproof_head_draw(&drawn, 3);
    sinkproof_variant_head head = sinkproof_edge_head_view(&drawn);
    must(sinkproof_variant_attend(policy, sinkproof_variant_find("softmax"), &head, &r, &error));
    bool same = r.alpha_ij[0] == 1 && memcmp(r.o_id, r.v_jd, DIM * sizeof *r.o_id) == 0;
    ok(same, "attn.softmax row 0 weighs itself %.17g and is its value", r.alpha_ij[0]);
    sinkproof_variant_result_free(&r);
}

int main(void) {
    sinkproof_policy policy;
    must(sinkproof_policy_known("real-f64", &policy));
    whole_matrices(&policy, "softmax", 0);
    whole_matrices(&policy, "nope", 0);
    whole_matrices(&policy, "window", 5);
    whole_matrices(&policy, "prefix-5", 0);
    whole_matrices(&policy, "packed", 0);
    whole_matrices(&policy, "first-recent", 3);
    first_row(&policy);
    return tap_done();
}
