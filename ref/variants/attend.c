// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One head of any design (doc/24-variants.md), one step of the mathematics at a time.
#include "ref/variants/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The input of row i: a star that is a token comes first, at the first position.
static void placed_input(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                         size_t i, double *x_c) {
    bool first = variant->star == SINKPROOF_STAR_TOKEN;
    const double *x = first && i == 0 ? head->star_c : head->x_nc + (i - first) * head->hidden;
    memcpy(x_c, x, head->hidden * sizeof *x_c);
    variant_place_input(variant, head, i, x_c);
}

// y_d = sum_c x_c W_cd
static void project_row(const sinkproof_policy *policy, const sinkproof_variant_head *head,
                        const double *x_c, const double *w_cd, double *y_d) {
    for (size_t d = 0; d < head->dim; d++) {
        double sum = 0;
        for (size_t c = 0; c < head->hidden; c++) sum += x_c[c] * w_cd[c * head->dim + d];
        y_d[d] = round_at(policy, AT_A2, sum);
    }
}

// Queries, keys and values, and the gates; queries and keys are rotated first, then their features
// are computed.
static void compute_inputs(const sinkproof_policy *policy, const sinkproof_variant *variant,
                           const sinkproof_variant_head *head, sinkproof_variant_result *out,
                           double *work) {
    size_t dim = head->dim;
    double *x_c = work, *rest = work + head->hidden;
    for (size_t i = 0; i < out->rows; i++) {
        double *q_d = out->q_id + i * dim, *k_d = out->k_jd + i * dim;
        placed_input(variant, head, i, x_c);
        project_row(policy, head, x_c, head->wq_cd, q_d);
        project_row(policy, head, x_c, head->wk_cd, k_d);
        project_row(policy, head, x_c, head->wv_cd, out->v_jd + i * dim);
        variant_place_turn(policy, variant, head, i, q_d);
        variant_place_turn(policy, variant, head, i, k_d);
        memcpy(out->turned_q_id + i * dim, q_d, dim * sizeof *q_d);
        memcpy(out->turned_k_jd + i * dim, k_d, dim * sizeof *k_d);
        sinkproof_variant_feature(policy, variant, head, q_d, rest);
        sinkproof_variant_feature(policy, variant, head, k_d, rest);
        variant_gate(policy, variant, head, x_c, out->gate_id + i * dim);
    }
}

// The keys that row i sees, the star's column last.
static void mark_seen_keys(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                           size_t i, size_t keys, bool *seen_j) {
    bool token = variant->star == SINKPROOF_STAR_TOKEN;
    for (size_t j = 0; j < keys; j++) {
        if (token && (i == 0 || j == 0))
            seen_j[j] = j == 0; // the star sees itself, all see it
        else
            seen_j[j] = sinkproof_variant_sees(variant, head->document_n, i - token, j - token);
    }
    seen_j[keys] = sinkproof_variant_has_column(variant);
}

static void compute_scores(const sinkproof_policy *policy, const sinkproof_variant *variant,
                           const sinkproof_variant_head *head, const sinkproof_variant_result *out,
                           size_t i, const bool *seen_j, double *s_j, double *work) {
    size_t dim = head->dim;
    const double *q_d = out->q_id + i * dim, scale = variant->unscaled ? 1 : 1 / sqrt((double)dim);
    for (size_t j = 0; j < out->keys; j++) {
        double dot = 0;
        s_j[j] = 0;
        if (!seen_j[j]) continue;
        //> attn.softmax kernel.identity kernel.identity-max
        for (size_t d = 0; d < dim; d++) dot += q_d[d] * out->k_jd[j * dim + d];
        dot = round_at(policy, AT_A5, dot) * scale;
        s_j[j] = round_at(policy, AT_A6, dot);
        //< attn.softmax kernel.identity kernel.identity-max
        s_j[j] += sinkproof_variant_place_bias(variant, head, i > j ? i - j : 0);
        s_j[j] = round_at(policy, AT_A6, s_j[j]);
    }
    s_j[out->keys] = seen_j[out->keys] ? variant_star_score(policy, variant, head, q_d, work) : 0;
}

static void compute_values(const sinkproof_policy *policy, const sinkproof_variant *variant,
                           const sinkproof_variant_head *head, const sinkproof_variant_result *out,
                           size_t i, double *work) {
    size_t dim = head->dim;
    const double *alpha_j = out->alpha_ij + i * (out->keys + 1), *gate_d = out->gate_id + i * dim;
    double *star_d = work, *o_d = out->o_id + i * dim;
    variant_star_value(variant, head, star_d);
    for (size_t d = 0; d < dim; d++) {
        double sum = 0;
        //> attn.softmax
        for (size_t j = 0; j < out->keys; j++) sum += alpha_j[j] * out->v_jd[j * dim + d];
        //< attn.softmax
        sum += alpha_j[out->keys] * star_d[d];
        if (variant->value_bias) sum += head->value_d[d];
        o_d[d] = round_at(policy, AT_A11, sum);
        out->gated_id[i * dim + d] = round_at(policy, AT_A11, gate_d[d] * o_d[d]);
    }
}

static bool allocate_result(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                            sinkproof_variant_result *out) {
    size_t rows = head->n + (variant->star == SINKPROOF_STAR_TOKEN);
    size_t by_dim = rows * head->dim, by_key = rows * (rows + 1);
    double *at = calloc(8 * by_dim + 3 * by_key + rows, sizeof *at);
    *out = (sinkproof_variant_result){.rows = rows, .keys = rows, .memory = at};
    if (at == NULL) return false;
    double **each[] = {&out->turned_q_id, &out->turned_k_jd, &out->q_id,    &out->k_jd,
                       &out->v_jd,        &out->o_id,        &out->gate_id, &out->gated_id,
                       &out->s_ij,        &out->sim_ij,      &out->alpha_ij};
    for (size_t a = 0; a < sizeof each / sizeof each[0]; a++) {
        *each[a] = at;
        at += a < 8 ? by_dim : by_key;
    }
    out->z_i = at;
    return true;
}

bool sinkproof_variant_attend(const sinkproof_policy *policy, const sinkproof_variant *variant,
                              const sinkproof_variant_head *head, sinkproof_variant_result *out,
                              sinkproof_error *error) {
    if (!allocate_result(variant, head, out))
        return sinkproof_fail(error, "no memory for one head");
    size_t columns = out->keys + 1;
    double *work = malloc((head->hidden + 3 * head->dim) * sizeof *work);
    bool *seen_j = malloc(columns * sizeof *seen_j);
    if (work == NULL || seen_j == NULL) {
        free(work);
        free(seen_j);
        sinkproof_variant_result_free(out);
        return sinkproof_fail(error, "no memory for one head");
    }
    compute_inputs(policy, variant, head, out, work);
    for (size_t i = 0; i < out->rows; i++) {
        double *s_j = out->s_ij + i * columns;
        mark_seen_keys(variant, head, i, out->keys, seen_j);
        compute_scores(policy, variant, head, out, i, seen_j, s_j, work);
        variant_divide(policy, variant, columns, seen_j, s_j, out->sim_ij + i * columns,
                       out->z_i + i, out->alpha_ij + i * columns);
        compute_values(policy, variant, head, out, i, work);
    }
    free(work);
    free(seen_j);
    return true;
}

void sinkproof_variant_result_free(sinkproof_variant_result *out) {
    free(out->memory);
    out->memory = NULL;
}
