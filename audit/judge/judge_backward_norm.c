// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients through RMSNorm, the rotation and the cross-entropy.
#include "audit/judge/judge_backward_internal.h"
#include "proofs/bounds/bounds.h"

#include <stdlib.h>

// x y, over the reals.
static near_set near_product(near_set x, near_set y) {
    double mid = x.mid * y.mid;
    double off = x.off * sinkproof_near_size(y) + fabs(x.mid) * y.off + 0x1p-52 * fabs(mid);
    return (near_set){mid, off * (1 + 0x1p-48)};
}

// 1 / sqrt(mean(x^2) + eps), as an engine may have it.
static near_set inverse_root(const backward_pass *pass, size_t width, const near_set *x_c) {
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    near_set square = sinkproof_gradient_dot(a, width, x_c, 1, x_c, 1, 2, 0);
    double eps = pass->config->rms_eps, mean = square.mid / (double)width + eps;
    double relative = (square.off / (double)width + 4 * a->u * mean) / mean;
    double r = 1 / sqrt(mean);
    if (!(relative < 0.5)) return (near_set){r, INFINITY};
    return (near_set){r, r * (relative + (4 * a->rsqrt_ulp + 4) * a->u + 0x1p-48)};
}

near_set *backward_norm_inputs(backward_pass *pass, const sinkproof_matrix *scale, size_t rows,
                               const near_set *x, const near_set *dy, const near_set *passed) {
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    size_t width = scale->cols;
    near_set *w_c = x != NULL && dy != NULL ? backward_read_weight(pass, scale, 0) : NULL;
    near_set *dx = w_c != NULL ? backward_allocate(pass, rows * width, sizeof *dx) : NULL;
#pragma omp parallel for schedule(dynamic, 4) if (rows * width > 1u << 16)
    for (size_t t = 0; t < (dx != NULL ? rows : 0); t++) {
        const near_set *x_c = x + t * width, *dy_c = dy + t * width, one = {1, 0};
        near_set r = inverse_root(pass, width, x_c);
        gradient_terms along = {0, 0, 0};
        for (size_t c = 0; c < width; c++)
            sinkproof_gradient_add(&along, x_c[c], near_product(w_c[c], dy_c[c]));
        near_set whole = sinkproof_gradient_sum(a, &along, (double)width, 4, 3);
        whole = near_product(sinkproof_near_scaled(whole, 1 / (double)width), near_product(r, r));
        for (size_t c = 0; c < width; c++) {
            gradient_terms sum = {0, 0, 0};
            near_set minus_x = {-x_c[c].mid, x_c[c].off};
            sinkproof_gradient_add(&sum, r, near_product(w_c[c], dy_c[c]));
            sinkproof_gradient_add(&sum, near_product(r, minus_x), whole);
            if (passed != NULL) sinkproof_gradient_add(&sum, passed[t * width + c], one);
            dx[t * width + c] = sinkproof_gradient_sum(a, &sum, 3, 10, 5);
        }
    }
    free(w_c);
    return dx;
}

near_set *backward_norm_scale(backward_pass *pass, size_t width, size_t rows, const near_set *x,
                              const near_set *dy) {
    backward_sums sums;
    if (x == NULL || dy == NULL || !backward_sums_new(pass, width, &sums)) return NULL;
    for (size_t t = 0; t < rows; t++) {
        near_set r = inverse_root(pass, width, x + t * width);
        for (size_t c = 0; c < width; c++)
            sinkproof_gradient_add(&sums.terms[c], dy[t * width + c],
                                   near_product(x[t * width + c], r));
    }
    return backward_sums_finish(pass, &sums, (double)rows, 4, 4);
}

near_set *backward_rotated(backward_pass *pass, size_t heads, const near_set *dy_nhd) {
    const sinkproof_config *c = pass->config;
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    size_t dim = c->head_dim, half = dim / 2;
    sinkproof_setting s = sinkproof_setting_for(pass->policy, pass->n * heads * dim, 1e-9);
    sinkproof_honest *table = backward_allocate(pass, dim, sizeof *table);
    near_set *dx = table != NULL && dy_nhd != NULL
                       ? backward_allocate(pass, pass->n * heads * dim, sizeof *dx)
                       : NULL;
    for (size_t t = 0; dx != NULL && t < pass->n; t++) {
        double position = (double)sinkproof_trace_positions(pass->trace)[t];
        sinkproof_honest_rope_table(&s, c, position, table, table + half);
        for (size_t h = 0; h < heads; h++)
            for (size_t d = 0; d < half; d++) {
                size_t at = (t * heads + h) * dim + d;
                near_set cosine = sinkproof_near_of(table[d]);
                near_set sine = sinkproof_near_of(table[half + d]), opposite = sine;
                opposite.mid = -opposite.mid;
                gradient_terms first = {0, 0, 0}, second = {0, 0, 0};
                sinkproof_gradient_add(&first, dy_nhd[at], cosine);
                sinkproof_gradient_add(&first, dy_nhd[at + half], sine);
                sinkproof_gradient_add(&second, dy_nhd[at + half], cosine);
                sinkproof_gradient_add(&second, dy_nhd[at], opposite);
                // Products, and the concentration where it comes first, may be stored.
                dx[at] = sinkproof_gradient_sum(a, &first, 2, 3, 3);
                dx[at + half] = sinkproof_gradient_sum(a, &second, 2, 3, 3);
            }
    }
    free(table);
    return dx;
}

// ---- the loss --------------------------------------------------------------------------------

// The next token of a row's sequence; -1: it has none.
static int32_t target(const backward_pass *pass, size_t t) {
    sinkproof_sequence s = sinkproof_trace_sequence_of(pass->trace, t);
    return t + 1 < s.row + s.rows ? sinkproof_trace_tokens(pass->trace)[t + 1] : -1;
}

static near_set logit_gradient(const backward_pass *pass, near_set z, near_set lse, bool is_target,
                               double count) {
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    near_set p = sinkproof_near_weight(a, z, lse), one = {1, 0}, minus_one = {-1, 0};
    gradient_terms sum = {0, 0, 0};
    // The logarithm of the probability may be stored before its exponential is taken.
    if (a->narrow != SINKPROOF_REAL)
        p.off += p.mid * expm1(2 * a->narrow_u * fabs(z.mid - lse.mid)) * 1.01;
    sinkproof_gradient_add(&sum, p, one);
    if (is_target) sinkproof_gradient_add(&sum, minus_one, one);
    near_set all = sinkproof_gradient_sum(a, &sum, 2, 6 + a->quotient_ulp, 3);
    return sinkproof_near_scaled(all, 1 / count);
}

near_set *backward_cross_entropy(backward_pass *pass) {
    size_t vocab = pass->config->vocab, n = pass->n, sequences;
    if (!backward_loss_is_cross_entropy(pass))
        return backward_lacks(pass, "metadata that say \"loss\": \"cross-entropy\"", "");
    near_set *z = backward_read_point(pass, TRACE_F2, 0);
    near_set *dz = z != NULL ? backward_allocate(pass, n * vocab, sizeof *dz) : NULL;
    sequences = sinkproof_trace_sequences(pass->trace);
    for (size_t t = 0; dz != NULL && t < n; t++) {
        int32_t y = target(pass, t);
        if (y < 0) continue;
        near_set lse = sinkproof_near_lse(&pass->arithmetic, vocab, z + t * vocab, -INFINITY);
        for (size_t v = 0; v < vocab; v++)
            dz[t * vocab + v] = logit_gradient(pass, z[t * vocab + v], lse, v == (size_t)y,
                                               (double)(n - sequences));
    }
    free(z);
    return dz;
}
