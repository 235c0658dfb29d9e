// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients in rationals. A dual number has a value and a derivative along one direction, and the
// derivative of e^s along sigma is sigma e^s: so every derivative of a softmax is rational, and is
// compared with the formula. The letters of a row: values u_j, dO = v*, the direction of the scores
// sigma_j and of the values are those of the keys in opposite order, that of the sink is b.
#include "proofs/exact/attention.h"

typedef struct dual {
    rational v, d;
} dual;

static dual dual_add(dual x, dual y) {
    return (dual){q_add(x.v, y.v), q_add(x.d, y.d)};
}
static dual dual_div(dual x, dual y) { // (x / y)' = (x' y - x y') / y^2
    rational top = q_sub(q_mul(x.d, y.v), q_mul(x.v, y.d));
    return (dual){q_div(x.v, y.v), q_div(top, q_mul(y.v, y.v))};
}
static dual dual_zero(void) {
    return (dual){q_int(0), q_int(0)};
}

static rational score_step(const instance *m, size_t j) { // sigma_j
    return matrix_row(m->u, m->tokens - 1 - j).at[0];
}
static dual dual_exp_score(const instance *m, size_t j) { // e^(s_j + t sigma_j)
    return (dual){e_score(m, j, 0), q_mul(score_step(m, j), e_score(m, j, 0))};
}
static dual dual_exp_sink(const instance *m, rational step) { // e^(b + t step)
    return (dual){m->e_sink.at[0], q_mul(step, m->e_sink.at[0])};
}
static dual dual_sum_keys(const instance *m) {
    dual sum = dual_zero();
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = dual_add(sum, dual_exp_score(m, j));
    return sum;
}
static rational dalpha(const instance *m, size_t j) { // <dO, v_j>
    return row_dot(m->u_star, value_of(m, j));
}

//> grad.softmax
// The derivatives of all weights along the direction, the sink's last.
static row weights_moved(const instance *m) {
    dual all = dual_add(dual_sum_keys(m), dual_exp_sink(m, m->b));
    row out = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        out = row_join(out, row_one(dual_div(dual_exp_score(m, j), all).d));
    return row_join(out, row_one(dual_div(dual_exp_sink(m, m->b), all).d));
}
// alpha_j (sigma_j - mean), alpha_s (b - mean)
static row weights_by_mean(const instance *m) {
    rational mean = q_mul(alpha_sink(m, 0), m->b);
    row out = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        mean = q_add(mean, q_mul(alpha(m, j, 0), score_step(m, j)));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        out = row_join(out, row_one(q_mul(alpha(m, j, 0), q_sub(score_step(m, j), mean))));
    return row_join(out, row_one(q_mul(alpha_sink(m, 0), q_sub(m->b, mean))));
}
// The derivative of sum_j dalpha_j alpha_j + a alpha_s.
static row loss_moved(const instance *m) {
    row moved = weights_moved(m);
    rational sum = q_mul(m->a, moved.at[moved.n - 1]);
    size_t k = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = q_add(sum, q_mul(dalpha(m, j), moved.at[k++]));
    return row_one(sum);
}
// sum_j ds_j sigma_j + db b, ds_j = alpha_j (dalpha_j - D), db = alpha_s (a - D)
static row loss_by_gradient(const instance *m) {
    rational delta = q_mul(alpha_sink(m, 0), m->a);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        delta = q_add(delta, q_mul(alpha(m, j, 0), dalpha(m, j)));
    rational sum = q_mul(q_mul(alpha_sink(m, 0), q_sub(m->a, delta)), m->b);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational ds = q_mul(alpha(m, j, 0), q_sub(dalpha(m, j), delta));
        sum = q_add(sum, q_mul(ds, score_step(m, j)));
    }
    return row_one(sum);
}
//< grad.softmax

static row output_of(const instance *m) { // O = sum_j alpha_j u_j
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(m, j, 0), value_of(m, j)));
    return sum;
}

//> grad.delta
static row delta_over_keys(const instance *m) { // sum_j alpha_j <dO, v_j>
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = q_add(sum, q_mul(alpha(m, j, 0), dalpha(m, j)));
    return row_one(sum);
}
static row delta_of_output(const instance *m) { // <dO, O>
    return row_one(row_dot(m->u_star, output_of(m)));
}
//< grad.delta

//> grad.sink
// The derivative of <dO, O> in b: only the denominator moves.
static row sink_moved(const instance *m) {
    dual all = dual_exp_sink(m, q_int(1));
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        all = dual_add(all, (dual){e_score(m, j, 0), q_int(0)});
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = q_add(sum, q_mul(dual_div((dual){e_score(m, j, 0), q_int(0)}, all).d, dalpha(m, j)));
    return row_one(sum);
}
static row sink_gradient(const instance *m) { // -alpha_s <dO, O>
    return row_one(q_neg(q_mul(alpha_sink(m, 0), row_dot(m->u_star, output_of(m)))));
}
//< grad.sink

//> grad.lse
// The derivatives of log(e^b + sum e) and of log(sum e): (log z)' = z' / z.
static row lse_moved(const instance *m) {
    dual keys = dual_sum_keys(m), all = dual_add(keys, dual_exp_sink(m, m->b));
    return row_join(row_one(q_div(all.d, all.v)), row_one(q_div(keys.d, keys.v)));
}
// sum_j alpha_j sigma_j + alpha_s b, and sum_j softmax_j sigma_j
static row lse_by_weights(const instance *m) {
    rational with = q_mul(alpha_sink(m, 0), m->b), without = q_int(0);
    rational whole = q_sub(q_int(1), alpha_sink(m, 0));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational part = q_mul(alpha(m, j, 0), score_step(m, j));
        with = q_add(with, part), without = q_add(without, q_div(part, whole));
    }
    return row_join(row_one(with), row_one(without));
}
//< grad.lse

// ---- the layer: dO_h = W^O_h dy, dy = b^O ----------------------------------------------------

static row output_gradient(const instance *m, size_t h) {
    row out = row_zero(m->head_dim);
    for (size_t d = 0; d < m->head_dim; d++)
        out.at[d] = row_dot(matrix_row(w_output(m, h), d), m->bo);
    return out;
}

//> grad.group
// The derivative of <dy, ATTN> as the values x_j W^V_g move, head by head.
static row values_by_head(const instance *m) {
    rational sum = q_int(0);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row moved = row_times(x_of(m, j), w_value(m, h));
            sum = q_add(sum, q_mul(alpha(m, j, h), row_dot(output_gradient(m, h), moved)));
        }
    return row_one(sum);
}
// dV_gj = sum of alpha_jh dO_h over the heads of the group, times the same.
static row values_by_group(const instance *m) {
    rational sum = q_int(0);
    for (size_t g = 0; g < m->kv_heads; g++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row dv = row_zero(m->head_dim);
            for (size_t h = 0; h < m->heads; h++)
                if (kv_head(m, h) == g)
                    dv = row_add(dv, row_scale(alpha(m, j, h), output_gradient(m, h)));
            sum = q_add(sum, row_dot(dv, row_times(x_of(m, j), m->wv[g])));
        }
    return row_one(sum);
}
//< grad.group

//> grad.value-bias
// <dy, ATTN> with the bias less that without it: it is linear, so this is its derivative.
static row value_bias_moved(const instance *m) {
    rational sum = q_int(0);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row without = row_times(x_of(m, j), w_value(m, h));
            row with = row_add(without, b_value(m, h));
            sum = q_add(sum, q_mul(alpha(m, j, h), row_dot(output_gradient(m, h), with)));
            sum = q_sub(sum, q_mul(alpha(m, j, h), row_dot(output_gradient(m, h), without)));
        }
    return row_one(sum);
}
static row value_bias_gradient(const instance *m) { // sum_h (1 - alpha_s,h) <dO_h, b^V_h>
    rational sum = q_int(0);
    for (size_t h = 0; h < m->heads; h++) {
        rational left = q_sub(q_int(1), alpha_sink(m, h));
        sum = q_add(sum, q_mul(left, row_dot(output_gradient(m, h), b_value(m, h))));
    }
    return row_one(sum);
}
//< grad.value-bias

// ---- the sink's gradient in other forms ------------------------------------------------------

// ds_j = alpha_j (<dO, v_j> - <dO, O>) over J(i), then db.
static row score_gradients(const instance *m) {
    rational delta = row_dot(m->u_star, output_of(m));
    row out = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        out = row_join(out, row_one(q_mul(alpha(m, j, 0), q_sub(dalpha(m, j), delta))));
    return row_join(out, row_one(q_neg(q_mul(alpha_sink(m, 0), delta))));
}

static rational part_sum(const instance *m, size_t part) { // sum of e_j over a part
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        if (m->part[j] == part) sum = q_add(sum, e_score(m, j, 0));
    return sum;
}
static rational part_delta(const instance *m, size_t part) { // <dO, o_part>
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        if (m->part[j] == part)
            sum = q_add(sum, q_mul(q_div(e_score(m, j, 0), part_sum(m, part)), dalpha(m, j)));
    return sum;
}

//> grad.split
// Back through the merge, in which a part has the share w, then through the part's own softmax.
static row split_gradients(const instance *m) {
    rational all = m->e_sink.at[0], delta = q_int(0);
    row out = row_zero(0);
    for (size_t p = 0; p < 3; p++) all = q_add(all, part_sum(m, p));
    for (size_t p = 0; p < 3; p++)
        delta = q_add(delta, q_mul(q_div(part_sum(m, p), all), part_delta(m, p)));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        size_t p = m->part[j];
        rational softmax = q_div(e_score(m, j, 0), part_sum(m, p)), own = part_delta(m, p);
        rational w = q_div(part_sum(m, p), all);
        rational inside = q_mul(w, q_sub(dalpha(m, j), own)); // at the part's output
        rational outside = q_mul(w, q_sub(own, delta));       // at its log-sum-exp
        out = row_join(out, row_one(q_mul(softmax, q_add(inside, outside))));
    }
    return row_join(out, row_one(q_neg(q_mul(q_div(m->e_sink.at[0], all), delta))));
}
//< grad.split

//> grad.forms
// A gate sigmoid(LSE - b) on the softmax: through the softmax, and through the gate.
static row gate_gradients(const instance *m) {
    rational keys = q_int(0), mean = q_int(0);
    row out = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        keys = q_add(keys, e_score(m, j, 0));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        mean = q_add(mean, q_mul(q_div(e_score(m, j, 0), keys), dalpha(m, j)));
    rational gate = q_div(q_int(1), q_add(q_int(1), q_div(m->e_sink.at[0], keys)));
    rational slope = q_mul(q_mul(gate, q_sub(q_int(1), gate)), mean);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational p = q_div(e_score(m, j, 0), keys);
        rational through = q_mul(gate, q_sub(dalpha(m, j), mean));
        out = row_join(out, row_one(q_mul(p, q_add(through, slope))));
    }
    return row_join(out, row_one(q_neg(slope)));
}
// One more score in an ordinary softmax, whose weight is cut off and has the gradient 0.
static row column_gradients(const instance *m) {
    rational all = m->e_sink.at[0], mean = q_int(0);
    row out = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        all = q_add(all, e_score(m, j, 0));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        mean = q_add(mean, q_mul(q_div(e_score(m, j, 0), all), dalpha(m, j)));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational p = q_div(e_score(m, j, 0), all);
        out = row_join(out, row_one(q_mul(p, q_sub(dalpha(m, j), mean))));
    }
    rational p = q_div(m->e_sink.at[0], all);
    return row_join(out, row_one(q_mul(p, q_sub(q_int(0), mean))));
}
//< grad.forms

#define ROW(id, left_text, right_text, left, right)                                                \
    { "grad." id, SINKPROOF_EXACT_ROW, left_text, right_text, left, right, 0 }
#define LAYER(id, left_text, right_text, left, right)                                              \
    { "grad." id, SINKPROOF_EXACT_LAYER, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement exact_gradients[] = {
    ROW("softmax", "the derivatives of alpha, alpha_s", "alpha (sigma - mean), alpha_s (b - mean)",
        weights_moved, weights_by_mean),
    ROW("softmax", "the derivative of a loss of alpha, alpha_s", "sum_j ds_j sigma_j + db b",
        loss_moved, loss_by_gradient),
    ROW("delta", "sum_j alpha_j <dO, v_j>", "<dO, O>", delta_over_keys, delta_of_output),
    ROW("sink", "the derivative of <dO, O> in b", "-alpha_s <dO, O>", sink_moved, sink_gradient),
    ROW("lse", "the derivatives of LSE with the sink, without",
        "sum_j alpha_j sigma_j + alpha_s b, sum_j softmax_j sigma_j", lse_moved, lse_by_weights),
    LAYER("group", "the derivative of <dy, ATTN> in the values, by heads",
          "sum_g <sum_h alpha_h dO_h, dv_g>", values_by_head, values_by_group),
    LAYER("value-bias", "the derivative of <dy, ATTN> in b^V",
          "sum_h (1 - alpha_s,h) <dO_h, b^V_h>", value_bias_moved, value_bias_gradient),
    ROW("split", "ds, db through a merge of three parts", "alpha (<dO, v> - <dO, O>), ...",
        split_gradients, score_gradients),
    ROW("forms", "ds, db through a gate", "alpha (<dO, v> - <dO, O>), ...", gate_gradients,
        score_gradients),
    ROW("forms", "ds, db of a softmax with a column cut off", "alpha (<dO, v> - <dO, O>), ...",
        column_gradients, score_gradients),
    {0},
};

// ---- wrong forms -----------------------------------------------------------------------------

static row sink_of_renormalised(const instance *m) { // D over weights that sum to 1
    rational left = q_sub(q_int(1), alpha_sink(m, 0));
    rational delta = q_div(row_dot(m->u_star, output_of(m)), left);
    return row_one(q_neg(q_mul(alpha_sink(m, 0), delta)));
}
static row value_bias_whole(const instance *m) { // 1 in place of 1 - alpha_s
    rational sum = q_int(0);
    for (size_t h = 0; h < m->heads; h++)
        sum = q_add(sum, row_dot(output_gradient(m, h), b_value(m, h)));
    return row_one(sum);
}
static row values_of_last_head(const instance *m) { // the last head of a group overwrites
    rational sum = q_int(0);
    for (size_t g = 0; g < m->kv_heads; g++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row dv = row_zero(m->head_dim);
            for (size_t h = 0; h < m->heads; h++)
                if (kv_head(m, h) == g) dv = row_scale(alpha(m, j, h), output_gradient(m, h));
            sum = q_add(sum, row_dot(dv, row_times(x_of(m, j), m->wv[g])));
        }
    return row_one(sum);
}
// The sink's gradient from each part's own softmax with the sink, added up.
static row sink_once_per_part(const instance *m) {
    rational sum = q_int(0);
    for (size_t p = 0; p < 3; p++) {
        rational all = q_add(m->e_sink.at[0], part_sum(m, p));
        if (mpq_sgn(part_sum(m, p)) == 0) continue;
        rational share = q_div(part_sum(m, p), all);
        rational delta = q_mul(share, part_delta(m, p));
        sum = q_sub(sum, q_mul(q_div(m->e_sink.at[0], all), delta));
    }
    return row_one(sum);
}

const sinkproof_exact_statement exact_gradients_wrong[] = {
    ROW("sink", "-alpha_s <dO, O / (1 - alpha_s)>", "-alpha_s <dO, O>", sink_of_renormalised,
        sink_gradient),
    LAYER("value-bias", "sum_h <dO_h, b^V_h>", "sum_h (1 - alpha_s,h) <dO_h, b^V_h>",
          value_bias_whole, value_bias_gradient),
    LAYER("group", "the last head of each group alone", "all heads of the group",
          values_of_last_head, values_by_head),
    ROW("split", "db with the sink in every part", "-alpha_s <dO, O>", sink_once_per_part,
        sink_gradient),
    {0},
};
