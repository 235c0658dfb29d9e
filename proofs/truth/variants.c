// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row of any design of attention, over the reals.
#include "proofs/truth/variants.h"

void sinkproof_truth_variant_seen(const sinkproof_variant *variant,
                                  const sinkproof_variant_head *head, size_t i, size_t keys,
                                  bool *seen_j) {
    size_t before = variant->star == SINKPROOF_STAR_TOKEN ? 1 : 0; // rows before the text
    for (size_t j = 0; j < keys; j++) {
        bool future = j > i, hidden = future;
        if (j >= before && i >= before) {
            size_t row = i - before, key = j - before;
            bool near = variant->window > 0 && key + variant->window > row;
            bool first = key < variant->prefix;
            if (variant->seen == SINKPROOF_SEEN_WINDOW) hidden = future || !near;
            if (variant->seen == SINKPROOF_SEEN_PREFIX) hidden = future && !first;
            if (variant->seen == SINKPROOF_SEEN_FIRST_RECENT) hidden = future || !(near || first);
            if (variant->seen == SINKPROOF_SEEN_PACKED)
                hidden = future || head->document_n[row] != head->document_n[key];
        }
        seen_j[j] = !hidden;
    }
    seen_j[keys] = variant->star > SINKPROOF_STAR_TOKEN;
}

// elu(x) + 1 of a ball: e^x if all of it is below 0. Otherwise x + 1, which also contains e^x of
// its negative part, since x + 1 <= e^x <= 1 there.
static void elu_plus_one(arb_t out, const arb_t x, slong bits) {
    if (arb_is_negative(x))
        arb_exp(out, x, bits);
    else
        arb_add_ui(out, x, 1, bits);
}

// y_r = sum_d W_rd x_d, W exact.
static void matrix_times_vector(arb_ptr y_d, const double *w_dd, arb_srcptr x_d, size_t dim,
                                slong bits) {
    arb_t w;
    arb_init(w);
    for (size_t r = 0; r < dim; r++) {
        arb_zero(y_d + r);
        for (size_t d = 0; d < dim; d++) {
            arb_set_d(w, w_dd[r * dim + d]);
            arb_addmul(y_d + r, w, x_d + d, bits);
        }
    }
    arb_clear(w);
}

void truth_variant_feature(arb_ptr out_d, const sinkproof_variant *variant,
                           const sinkproof_variant_head *head, arb_srcptr x_d, slong bits) {
    size_t dim = head->dim;
    //> kernel.elu-linear kernel.elu-linear-raw
    if (variant->feature == SINKPROOF_FEATURE_ELU_PLUS_ONE)
        for (size_t d = 0; d < dim; d++) elu_plus_one(out_d + d, x_d + d, bits);
    //< kernel.elu-linear kernel.elu-linear-raw
    if (variant->feature == SINKPROOF_FEATURE_SELF) _arb_vec_set(out_d, x_d, (slong)dim);
    if (variant->feature != SINKPROOF_FEATURE_MLP) return;
    //> kernel.mlp kernel.mlp-max
    arb_ptr inner_d = _arb_vec_init((slong)dim);
    matrix_times_vector(inner_d, head->mlp_1_dd, x_d, dim, bits);
    for (size_t d = 0; d < dim; d++) arb_nonnegative_part(inner_d + d, inner_d + d);
    matrix_times_vector(out_d, head->mlp_2_dd, inner_d, dim, bits);
    _arb_vec_clear(inner_d, (slong)dim);
    //< kernel.mlp kernel.mlp-max
}

// The position's term in the score of a key at that distance.
static void place_bias(arb_t out, const sinkproof_variant *variant,
                       const sinkproof_variant_head *head, size_t distance, slong bits) {
    arb_zero(out);
    if (variant->places == SINKPROOF_PLACES_ALIBI) {
        arb_set_d(out, head->slope);
        arb_mul_ui(out, out, distance, bits);
        arb_neg(out, out);
    }
    if (variant->places != SINKPROOF_PLACES_RELATIVE && variant->places != SINKPROOF_PLACES_BUCKET)
        return;
    // Bucket 16 + k begins where (distance / 16)^16 is 8^k.
    size_t bucket = distance < 16 ? distance : 16;
    fmpz_t power, edge;
    fmpz_init(power);
    fmpz_init(edge);
    fmpz_set_ui(power, distance);
    fmpz_pow_ui(power, power, 16);
    for (size_t k = 1; distance >= 16 && k < 16; k++) {
        fmpz_one(edge);
        fmpz_mul_2exp(edge, edge, 64 + 3 * k);
        if (fmpz_cmp(power, edge) >= 0) bucket = 16 + k;
    }
    fmpz_clear(power);
    fmpz_clear(edge);
    if (variant->places == SINKPROOF_PLACES_BUCKET)
        arb_set_ui(out, bucket);
    else
        arb_set_d(out, head->bucket_b[bucket]);
}

// Products of q with rows of keys, over sqrt(d) or unscaled.
static void query_key_products(arb_ptr s_j, const sinkproof_variant *variant, arb_srcptr q_d,
                               arb_srcptr k_jd, size_t keys, size_t dim, slong bits) {
    sinkproof_truth_scores(s_j, q_d, k_jd, keys, dim, dim, bits);
    if (!variant->unscaled) return;
    for (size_t j = 0; j < keys; j++)
        arb_dot(s_j + j, NULL, 0, q_d, 1, k_jd + j * dim, 1, (slong)dim, bits);
}

// The star's score with q: its key's, b, or 0.
static void star_score(arb_t out, const sinkproof_variant *variant,
                       const sinkproof_variant_head *head, arb_srcptr q_d, slong bits) {
    size_t dim = head->dim;
    arb_zero(out);
    if (variant->star == SINKPROOF_STAR_SCORE) arb_set_d(out, head->logit);
    if (variant->star != SINKPROOF_STAR_KEY) return;
    arb_ptr k_d = _arb_vec_init((slong)dim), f_d = _arb_vec_init((slong)dim);
    for (size_t d = 0; d < dim; d++)
        if (variant->star_dims == 0 || d < variant->star_dims) arb_set_d(k_d + d, head->key_d[d]);
    truth_variant_feature(f_d, variant, head, k_d, bits);
    query_key_products(out, variant, q_d, f_d, 1, dim, bits);
    _arb_vec_clear(k_d, (slong)dim);
    _arb_vec_clear(f_d, (slong)dim);
}

void truth_variant_scores(arb_ptr s_j, const sinkproof_variant *variant,
                          const sinkproof_variant_head *head, size_t i, size_t keys,
                          const bool *seen_j, arb_srcptr q_d, arb_srcptr k_jd, slong bits) {
    arb_t bias;
    arb_init(bias);
    query_key_products(s_j, variant, q_d, k_jd, keys, head->dim, bits);
    for (size_t j = 0; j < keys; j++) {
        place_bias(bias, variant, head, i > j ? i - j : 0, bits);
        arb_add(s_j + j, s_j + j, bias, bits);
        if (!seen_j[j]) arb_zero(s_j + j);
    }
    star_score(s_j + keys, variant, head, q_d, bits);
    arb_clear(bias);
}

// sim of a score.
static void score_similarity(arb_t out, const sinkproof_variant *variant, const arb_t s,
                             slong bits) {
    switch (variant->similarity) {
    case SINKPROOF_SIMILARITY_EXP:
        arb_exp(out, s, bits);
        return;
    //> kernel.sigmoid kernel.sigmoid-norm
    case SINKPROOF_SIMILARITY_SIGMOID:
        arb_neg(out, s);
        arb_exp(out, out, bits);
        arb_add_ui(out, out, 1, bits);
        arb_inv(out, out, bits);
        return;
    //< kernel.sigmoid kernel.sigmoid-norm
    //> kernel.elu kernel.elu-norm
    case SINKPROOF_SIMILARITY_ELU_PLUS_ONE:
        elu_plus_one(out, s, bits);
        return;
    //< kernel.elu kernel.elu-norm
    //> kernel.identity kernel.identity-max
    case SINKPROOF_SIMILARITY_SCORE:
        arb_set(out, s);
        return;
        //< kernel.identity kernel.identity-max
    }
}

static void similarity_divisor(arb_t z, const sinkproof_variant *variant, size_t count,
                               const bool *seen_j, arb_srcptr sim_j, slong bits) {
    arb_t term, p;
    balls_init(term, p);
    arb_set_d(p, variant->divisor_by);
    arb_zero(z);
    for (size_t j = 0; j < count; j++) {
        if (!seen_j[j]) continue;
        arb_set(term, sim_j + j);
        if (variant->divisor == SINKPROOF_DIVISOR_POWER) arb_pow(term, term, p, bits);
        arb_add(z, z, term, bits);
    }
    if (variant->divisor == SINKPROOF_DIVISOR_ONE) arb_one(z);
    if (variant->divisor == SINKPROOF_DIVISOR_SCALED) arb_div(z, z, p, bits);
    if (variant->divisor == SINKPROOF_DIVISOR_POWER) {
        arb_inv(p, p, bits);
        arb_pow(z, z, p, bits);
    }
    //> norm.max-one kernel.identity-max kernel.mlp-max
    if (variant->divisor == SINKPROOF_DIVISOR_AT_LEAST_1) {
        arb_abs(z, z);
        arb_one(term);
        arb_max(z, z, term, bits);
    }
    //< norm.max-one kernel.identity-max kernel.mlp-max
    balls_clear(term, p);
}

void sinkproof_truth_variant_weights(arb_ptr alpha_j, const sinkproof_variant *variant,
                                     size_t count, const bool *seen_j, arb_srcptr s_j, slong bits) {
    arb_t z;
    arb_init(z);
    //> attn.softmax
    for (size_t j = 0; j < count; j++) {
        score_similarity(alpha_j + j, variant, s_j + j, bits);
        if (!seen_j[j]) arb_zero(alpha_j + j);
    }
    similarity_divisor(z, variant, count, seen_j, alpha_j, bits);
    for (size_t j = 0; j < count; j++) arb_div(alpha_j + j, alpha_j + j, z, bits);
    //< attn.softmax
    arb_clear(z);
}

// Coordinate d of the star's value.
static void star_value(arb_t out, const sinkproof_variant *variant,
                       const sinkproof_variant_head *head, size_t d, slong bits) {
    arb_zero(out);
    if (variant->star_value == SINKPROOF_STAR_VALUE_LEARNED) arb_set_d(out, head->value_d[d]);
    if (variant->star_value == SINKPROOF_STAR_VALUE_FIRST && d == 0)
        arb_set_d(out, variant->star_times);
    if (variant->star_value != SINKPROOF_STAR_VALUE_EVEN) return;
    arb_t root;
    arb_init(root);
    arb_sqrt_ui(root, head->dim, bits);
    arb_set_d(out, variant->star_times);
    arb_div(out, out, root, bits);
    arb_clear(root);
}

void sinkproof_truth_variant_values(arb_ptr o_d, const sinkproof_variant *variant,
                                    const sinkproof_variant_head *head, size_t keys,
                                    arb_srcptr alpha_j, arb_srcptr v_jd, slong bits) {
    arb_t more;
    arb_init(more);
    sinkproof_truth_values(o_d, alpha_j, v_jd, keys, head->dim, head->dim, bits);
    for (size_t d = 0; d < head->dim; d++) {
        star_value(more, variant, head, d, bits);
        arb_addmul(o_d + d, alpha_j + keys, more, bits);
        if (!variant->value_bias) continue;
        arb_set_d(more, head->value_d[d]);
        arb_add(o_d + d, o_d + d, more, bits);
    }
    arb_clear(more);
}

// ---- a whole head

// x_c of row i, including its position.
static void placed_input(arb_ptr x_c, const sinkproof_variant *variant,
                         const sinkproof_variant_head *head, size_t i, slong bits) {
    bool star = variant->star == SINKPROOF_STAR_TOKEN;
    arb_t p, place;
    balls_init(p, place);
    for (size_t c = 0; c < head->hidden; c++) {
        arb_set_d(x_c + c, star && i == 0 ? head->star_c[c]
                                          : head->x_nc[(star ? i - 1 : i) * head->hidden + c]);
        if (variant->places == SINKPROOF_PLACES_LEARNED) {
            arb_set_d(place, head->place_nc[i * head->hidden + c]);
            arb_add(x_c + c, x_c + c, place, bits);
        }
        if (variant->places != SINKPROOF_PLACES_ABSOLUTE) continue;
        arb_set_si(p, -2 * (slong)(c / 2));
        arb_div_ui(p, p, head->hidden, bits);
        arb_set_ui(place, 10000);
        arb_pow(place, place, p, bits);
        arb_mul_ui(place, place, i, bits);
        if (c % 2 == 0)
            arb_sin(place, place, bits);
        else
            arb_cos(place, place, bits);
        arb_add(x_c + c, x_c + c, place, bits);
    }
    balls_clear(p, place);
}

// y_d = sum_c x_c W_cd, W exact [hidden, width].
static void project_input(arb_ptr y_d, const sinkproof_variant_head *head, arb_srcptr x_c,
                          const double *w_cd, size_t width, slong bits) {
    arb_t w;
    arb_init(w);
    for (size_t d = 0; d < width; d++) {
        arb_zero(y_d + d);
        for (size_t c = 0; c < head->hidden; c++) {
            arb_set_d(w, w_cd[c * width + d]);
            arb_addmul(y_d + d, x_c + c, w, bits);
        }
    }
    arb_clear(w);
}

static void turn_by_position(arb_ptr x_d, const sinkproof_variant *variant,
                             const sinkproof_variant_head *head, size_t i, slong bits) {
    size_t half = head->dim / 2;
    if (variant->places != SINKPROOF_PLACES_ROTARY) return;
    arb_t a, sin, cos, x, y;
    arb_ptr each[] = {a, sin, cos, x, y};
    for (int k = 0; k < 5; k++) arb_init(each[k]);
    for (size_t k = 0; k < half; k++) {
        arb_set_si(x, -2 * (slong)k);
        arb_div_ui(x, x, head->dim, bits);
        arb_set_d(a, head->rotary_base);
        arb_pow(a, a, x, bits);
        arb_mul_ui(a, a, i, bits);
        arb_sin_cos(sin, cos, a, bits);
        arb_mul(x, x_d + k, cos, bits);
        arb_submul(x, x_d + k + half, sin, bits);
        arb_mul(y, x_d + k + half, cos, bits);
        arb_addmul(y, x_d + k, sin, bits);
        arb_set(x_d + k, x);
        arb_set(x_d + k + half, y);
    }
    for (int k = 0; k < 5; k++) arb_clear(each[k]);
}

// gate_d o o_d
static void gate_output(arb_ptr o_d, const sinkproof_variant *variant,
                        const sinkproof_variant_head *head, arb_srcptr x_c, slong bits) {
    size_t width = variant->gate == SINKPROOF_GATE_ELEMENT ? head->dim : 1;
    if (variant->gate == SINKPROOF_GATE_NONE) return;
    arb_ptr g_d = _arb_vec_init((slong)width);
    project_input(g_d, head, x_c, head->gate_cd, width, bits);
    for (size_t d = 0; d < width; d++) {
        arb_neg(g_d + d, g_d + d);
        arb_exp(g_d + d, g_d + d, bits);
        arb_add_ui(g_d + d, g_d + d, 1, bits);
    }
    for (size_t d = 0; d < head->dim; d++)
        arb_div(o_d + d, o_d + d, g_d + (width > 1 ? d : 0), bits);
    _arb_vec_clear(g_d, (slong)width);
}

void truth_variant_head(arb_ptr alpha_ij, arb_ptr gated_id, const sinkproof_variant *variant,
                        const sinkproof_variant_head *head, slong bits) {
    size_t rows = head->n + (variant->star == SINKPROOF_STAR_TOKEN), dim = head->dim;
    size_t hidden = head->hidden, numbers = rows * (3 * dim + hidden + 1) + 1 + dim;
    arb_ptr memory = _arb_vec_init((slong)numbers), q_id = memory, k_jd = q_id + rows * dim;
    arb_ptr v_jd = k_jd + rows * dim, x_ic = v_jd + rows * dim, s_j = x_ic + rows * hidden;
    arb_ptr plain_d = s_j + rows + 1;
    bool *seen_j = flint_malloc((rows + 1) * sizeof *seen_j);
    for (size_t i = 0; i < rows; i++) {
        arb_ptr x_c = x_ic + i * hidden;
        placed_input(x_c, variant, head, i, bits);
        project_input(v_jd + i * dim, head, x_c, head->wv_cd, dim, bits);
        project_input(plain_d, head, x_c, head->wq_cd, dim, bits);
        turn_by_position(plain_d, variant, head, i, bits);
        truth_variant_feature(q_id + i * dim, variant, head, plain_d, bits);
        project_input(plain_d, head, x_c, head->wk_cd, dim, bits);
        turn_by_position(plain_d, variant, head, i, bits);
        truth_variant_feature(k_jd + i * dim, variant, head, plain_d, bits);
    }
    for (size_t i = 0; i < rows; i++) {
        arb_ptr alpha_j = alpha_ij + i * (rows + 1), o_d = gated_id + i * dim;
        sinkproof_truth_variant_seen(variant, head, i, rows, seen_j);
        truth_variant_scores(s_j, variant, head, i, rows, seen_j, q_id + i * dim, k_jd, bits);
        sinkproof_truth_variant_weights(alpha_j, variant, rows + 1, seen_j, s_j, bits);
        sinkproof_truth_variant_values(o_d, variant, head, rows, alpha_j, v_jd, bits);
        gate_output(o_d, variant, head, x_ic + i * hidden, bits);
    }
    _arb_vec_clear(memory, (slong)numbers);
    flint_free(seen_j);
}
