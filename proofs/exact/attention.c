// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation, line by line: each function is the right-hand side of one line, and the check
// is that consecutive lines are equal. Rows are row vectors, as there: v_h(x) = x W^V_h + b^V_h.
// J(i) is any set of keys, W^V_h and b^V_h are those of the head's key/value group.
#include "proofs/exact/attention.h"

rational sum_exp(const instance *m, size_t h) {
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = q_add(sum, e_score(m, j, h));
    return sum;
}

//> sink.alpha
// alpha_ijh = e^(s_ijh) / (e^(b_h) + sum_j' e^(s_ij'h))
rational alpha(const instance *m, size_t j, size_t h) {
    return q_div(e_score(m, j, h), q_add(m->e_sink.at[h], sum_exp(m, h)));
}
//< sink.alpha

//> sink.alpha-sink
// alpha_s,ih = e^(b_h) / (e^(b_h) + sum_j' e^(s_ij'h))
rational alpha_sink(const instance *m, size_t h) {
    return q_div(m->e_sink.at[h], q_add(m->e_sink.at[h], sum_exp(m, h)));
}
//< sink.alpha-sink

// The definitions cross-multiplied: alpha_j (e^b + sum e^s) is e^(s_j), and e^b for the sink.
static row weights_times_all(const instance *m) {
    row r = row_zero(m->tokens + 1);
    rational all = q_add(sum_exp(m, 0), m->e_sink.at[0]);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        r.at[j] = q_mul(alpha(m, j, 0), all);
    r.at[m->tokens] = q_mul(alpha_sink(m, 0), all);
    return r;
}
static row numerators(const instance *m) {
    row r = row_zero(m->tokens + 1);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        r.at[j] = e_score(m, j, 0);
    r.at[m->tokens] = m->e_sink.at[0];
    return r;
}
static row weights_times_all_sink(const instance *m) {
    return row_slice(weights_times_all(m), m->tokens, 1);
}
static row numerator_sink(const instance *m) {
    return row_slice(numerators(m), m->tokens, 1);
}

static rational key_mass(const instance *m, size_t h) {
    rational sum = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = q_add(sum, alpha(m, j, h));
    return sum;
}

//> sink.mass
// sum_j alpha_ijh = 1 - alpha_s,ih, one entry per head
static row sink_mass_left(const instance *m) {
    row r = row_zero(m->heads);
    for (size_t h = 0; h < m->heads; h++) r.at[h] = key_mass(m, h);
    return r;
}
static row sink_mass_right(const instance *m) {
    row r = row_zero(m->heads);
    for (size_t h = 0; h < m->heads; h++) r.at[h] = q_sub(q_int(1), alpha_sink(m, h));
    return r;
}
//< sink.mass

//> sink.mass-below-one
// alpha_s, 1 - alpha_s, sum_j alpha and 1 - sum_j alpha, each times e^b + sum e^s: the results are
// e^b or sum e^s, and positive.
static row distances_from_ends(const instance *m) {
    rational one = q_int(1), all = q_add(m->e_sink.at[0], sum_exp(m, 0));
    row gaps = row_zero(4);
    gaps.at[0] = alpha_sink(m, 0);
    gaps.at[1] = q_sub(one, alpha_sink(m, 0));
    gaps.at[2] = key_mass(m, 0);
    gaps.at[3] = q_sub(one, key_mass(m, 0));
    return row_scale(all, gaps);
}
//< sink.mass-below-one
static row positive_sums(const instance *m) {
    row keys = row_one(sum_exp(m, 0)), sink = row_one(m->e_sink.at[0]);
    row sums = row_join(row_join(sink, keys), row_join(keys, sink));
    for (size_t k = 0; k < 4; k++) // 0, which equals nothing, if one is not positive
        if (mpq_sgn(sums.at[k]) <= 0) return row_zero(4);
    return sums;
}

static row head(const instance *m, size_t h) { // head_h(i, X) = sum_j alpha_ijh v_h(x_j)
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        row v = row_add(row_times(x_of(m, j), w_value(m, h)), b_value(m, h));
        sum = row_add(sum, row_scale(alpha(m, j, h), v));
    }
    return sum;
}

//> sink.attn-concat
// ATTN(i, X) = [head_1 ... head_H] W^O + b^O
static row attn_concat(const instance *m) {
    row heads = row_zero(0);
    for (size_t h = 0; h < m->heads; h++) heads = row_join(heads, head(m, h));
    return row_add(row_times(heads, m->wo), m->bo);
}
//< sink.attn-concat

//> sink.attn-headsum
// = sum_h head_h W^O_h + b^O
static row attn_headsum(const instance *m) {
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) sum = row_add(sum, row_times(head(m, h), w_output(m, h)));
    return row_add(sum, m->bo);
}
//< sink.attn-headsum

// The same entry by entry: b^O_c + sum_h sum_d head_hd W^O_(h d' + d)c, head_hd entry by entry too.
static rational head_entry(const instance *m, size_t h, size_t d) {
    size_t g = h * m->kv_heads / m->heads;
    rational sum = q_int(0);
    for (size_t j = 0; j < m->tokens; j++) {
        rational v = m->bv[g].at[d];
        for (size_t c = 0; c < m->hidden; c++)
            v = q_add(v, q_mul(m->x.at[j * m->hidden + c], m->wv[g].at[c * m->head_dim + d]));
        if (m->sees[j]) sum = q_add(sum, q_mul(alpha(m, j, h), v));
    }
    return sum;
}
static row attn_entries(const instance *m) {
    row out = row_zero(m->hidden);
    for (size_t c = 0; c < m->hidden; c++) {
        out.at[c] = m->bo.at[c];
        for (size_t k = 0; k < m->heads * m->head_dim; k++) {
            rational entry = head_entry(m, k / m->head_dim, k % m->head_dim);
            out.at[c] = q_add(out.at[c], q_mul(entry, m->wo.at[k * m->hidden + c]));
        }
    }
    return out;
}

static row head_value(const instance *m, size_t j, size_t h) { // v_h(x_j)
    return row_add(row_times(x_of(m, j), w_value(m, h)), b_value(m, h));
}

//> sink.attn-values
// = sum_h (sum_j alpha_ijh v_h(x_j)) W^O_h + b^O
static row attn_values(const instance *m) {
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        row inner = row_zero(m->head_dim);
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
            inner = row_add(inner, row_scale(alpha(m, j, h), head_value(m, j, h)));
        sum = row_add(sum, row_times(inner, w_output(m, h)));
    }
    return row_add(sum, m->bo);
}
//< sink.attn-values

//> sink.attn-expand
// = sum_h (sum_j alpha_ijh (x_j W^V_h + b^V_h)) W^O_h + b^O
static row attn_expand(const instance *m) {
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        row inner = row_zero(m->head_dim);
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row xw = row_times(x_of(m, j), w_value(m, h));
            inner = row_add(inner, row_scale(alpha(m, j, h), row_add(xw, b_value(m, h))));
        }
        sum = row_add(sum, row_times(inner, w_output(m, h)));
    }
    return row_add(sum, m->bo);
}
//< sink.attn-expand

//> sink.attn-inside
// = sum_h (sum_j alpha_ijh (x_j W^V_h + b^V_h) W^O_h) + b^O
static row attn_inside(const instance *m) {
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row v = row_add(row_times(x_of(m, j), w_value(m, h)), b_value(m, h));
            sum = row_add(sum, row_scale(alpha(m, j, h), row_times(v, w_output(m, h))));
        }
    }
    return row_add(sum, m->bo);
}
//< sink.attn-inside

static row x_wv_wo(const instance *m, size_t j, size_t h) { // x_j W^V_h W^O_h
    return row_times(row_times(x_of(m, j), w_value(m, h)), w_output(m, h));
}
static row bv_wo(const instance *m, size_t h) { // b^V_h W^O_h
    return row_times(b_value(m, h), w_output(m, h));
}

//> sink.attn-distribute
// = sum_h (sum_j alpha_ijh (x_j W^V_h W^O_h + b^V_h W^O_h)) + b^O
static row attn_distribute(const instance *m) {
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row both = row_add(x_wv_wo(m, j, h), bv_wo(m, h));
            sum = row_add(sum, row_scale(alpha(m, j, h), both));
        }
    }
    return row_add(sum, m->bo);
}
//< sink.attn-distribute

static row attended(const instance *m) { // sum_h sum_j alpha_ijh x_j W^V_h W^O_h
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
            sum = row_add(sum, row_scale(alpha(m, j, h), x_wv_wo(m, j, h)));
    return sum;
}

//> sink.attn-split
// = sum_h sum_j alpha_ijh x_j W^V_h W^O_h + sum_h (sum_j alpha_ijh b^V_h W^O_h) + b^O
static row attn_split(const instance *m) {
    row bias = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
            bias = row_add(bias, row_scale(alpha(m, j, h), bv_wo(m, h)));
    return row_add(row_add(attended(m), bias), m->bo);
}
//< sink.attn-split

//> sink.attn-factor
// = sum_h sum_j alpha_ijh x_j W^V_h W^O_h + sum_h (sum_j alpha_ijh) b^V_h W^O_h + b^O
static row attn_factor(const instance *m) {
    row bias = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++)
        bias = row_add(bias, row_scale(key_mass(m, h), bv_wo(m, h)));
    return row_add(row_add(attended(m), bias), m->bo);
}
//< sink.attn-factor

//> sink.attn-mass
// = sum_h sum_j alpha_ijh x_j W^V_h W^O_h + sum_h (1 - alpha_s,ih) b^V_h W^O_h + b^O
static row attn_mass(const instance *m) {
    row bias = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++)
        bias = row_add(bias, row_scale(q_sub(q_int(1), alpha_sink(m, h)), bv_wo(m, h)));
    return row_add(row_add(attended(m), bias), m->bo);
}
//< sink.attn-mass

//> sink.attn-one-minus
// = sum_h sum_j alpha x_j W^V_h W^O_h + sum_h b^V_h W^O_h - sum_h alpha_s,ih b^V_h W^O_h + b^O
static row attn_one_minus(const instance *m) {
    row full = row_zero(m->hidden), lost = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        full = row_add(full, bv_wo(m, h));
        lost = row_add(lost, row_scale(alpha_sink(m, h), bv_wo(m, h)));
    }
    return row_add(row_sub(row_add(attended(m), full), lost), m->bo);
}
//< sink.attn-one-minus

static row sink_part(const instance *m) { // sum_h alpha_s,ih (-b^V_h W^O_h)
    row sum = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++)
        sum = row_add(sum, row_scale(alpha_sink(m, h), row_scale(q_int(-1), bv_wo(m, h))));
    return sum;
}

//> sink.attn-reorder
// = sum_h sum_j alpha x_j W^V_h W^O_h + sum_h alpha_s,ih (-b^V_h W^O_h) + sum_h b^V_h W^O_h + b^O
static row attn_reorder(const instance *m) {
    row full = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) full = row_add(full, bv_wo(m, h));
    return row_add(row_add(row_add(attended(m), sink_part(m)), full), m->bo);
}
//< sink.attn-reorder

//> sink.attn-final
// = sum_h sum_j alpha x_j W^V_h W^O_h + sum_h alpha_s,ih (-b^V_h W^O_h) + b^V W^O + b^O
static row attn_final(const instance *m) {
    row b_v = row_zero(0); // b^V = [b^V_1 ... b^V_H]
    for (size_t h = 0; h < m->heads; h++) b_v = row_join(b_v, b_value(m, h));
    row full = row_times(b_v, m->wo);
    return row_add(row_add(row_add(attended(m), sink_part(m)), full), m->bo);
}
//< sink.attn-final

//> sink.attn-gate
// = sum_h (1 - alpha_s,ih) [sum_j softmax_ijh x_j W^V_h + b^V_h] W^O_h + b^O
static row attn_gate(const instance *m) {
    row sum = m->bo;
    for (size_t h = 0; h < m->heads; h++) {
        rational left = q_sub(q_int(1), alpha_sink(m, h));
        row o = b_value(m, h); // the output of an ordinary softmax
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            rational softmax = q_div(e_score(m, j, h), sum_exp(m, h));
            o = row_add(o, row_scale(softmax, row_times(x_of(m, j), w_value(m, h))));
        }
        sum = row_add(sum, row_scale(left, row_times(o, w_output(m, h))));
    }
    return sum;
}
//< sink.attn-gate

//> sink.general
// The last line for the model as built: each key/value head g serves H / G consecutive query heads,
// so that b^V is repeated, [b^V_1 ... b^V_1 b^V_2 ...], and H d' need not equal d.
static row attn_final_by_groups(const instance *m) {
    size_t group = m->heads / m->kv_heads;
    row b_v = row_zero(0), sum = row_zero(m->hidden);
    for (size_t g = 0; g < m->kv_heads; g++)
        for (size_t r = 0; r < group; r++) {
            size_t h = g * group + r;
            b_v = row_join(b_v, m->bv[g]);
            for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
                sum = row_add(
                    sum, row_scale(alpha(m, j, h),
                                   row_times(row_times(x_of(m, j), m->wv[g]), w_output(m, h))));
            row bias = row_times(m->bv[g], w_output(m, h));
            sum = row_sub(sum, row_scale(alpha_sink(m, h), bias));
        }
    return row_add(row_add(sum, row_times(b_v, m->wo)), m->bo);
}
//< sink.general

//> sink.bias-intensity
// d/d alpha_s of (1 - alpha_s) b^V_h W^O_h: an affine function's slope is its difference quotient.
static row slope_in_alpha(const instance *m) {
    rational here = alpha_sink(m, 0), there = q_add(here, m->shift);
    row rise = row_sub(row_scale(q_sub(q_int(1), there), bv_wo(m, 0)),
                       row_scale(q_sub(q_int(1), here), bv_wo(m, 0)));
    return row_scale(q_div(q_int(1), m->shift), rise);
}
static row minus_bias(const instance *m) {
    return row_scale(q_int(-1), bv_wo(m, 0));
}
// d/db: with B = e^b, dB = B db, the quotient rule on B / (B + S).
static row slope_in_b(const instance *m) {
    rational b = m->e_sink.at[0], all = q_add(b, sum_exp(m, 0));
    rational d_alpha = q_div(q_sub(q_mul(b, all), q_mul(b, b)), q_mul(all, all));
    return row_scale(q_neg(d_alpha), bv_wo(m, 0));
}
static row minus_variance_bias(const instance *m) { // -alpha_s (1 - alpha_s) b^V_h W^O_h
    rational a = alpha_sink(m, 0);
    return row_scale(q_neg(q_mul(a, q_sub(q_int(1), a))), bv_wo(m, 0));
}
//< sink.bias-intensity

//> sink.bias-limits
// b -> -inf: e^b = 0 in every head. The bias enters whole.
static row output_without_sink(const instance *m) {
    instance limit = *m;
    limit.e_sink = row_zero(m->heads);
    return attn_concat(&limit);
}
static row output_with_full_bias(const instance *m) {
    instance limit = *m;
    limit.e_sink = row_zero(m->heads);
    row full = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) full = row_add(full, bv_wo(m, h));
    return row_add(row_add(attended(&limit), full), m->bo);
}
// b -> +inf: e^(s - b) = 0 for every key, the weights' ratios. Only b^O is left.
static row output_at_infinite_sink(const instance *m) {
    instance limit = *m;
    limit.e = matrix_zero(m->heads, m->tokens);
    return attn_concat(&limit);
}
static row output_bias(const instance *m) {
    return m->bo;
}
//< sink.bias-limits

#define LINE(id, left, right)                                                                      \
    { "sink." id, SINKPROOF_EXACT_LAYER, #left, #right, left, right, 0 }

const sinkproof_exact_statement exact_attention[] = {
    {"sink.alpha", SINKPROOF_EXACT_LAYER, "alpha_j (e^b + sum e^s)", "e^(s_j)", weights_times_all,
     numerators, 0},
    {"sink.alpha-sink", SINKPROOF_EXACT_LAYER, "alpha_s (e^b + sum e^s)", "e^b",
     weights_times_all_sink, numerator_sink, 0},
    LINE("attn-concat", attn_concat, attn_entries),
    {"sink.mass", SINKPROOF_EXACT_LAYER, "sum_j alpha_ijh", "1 - alpha_s,ih", sink_mass_left,
     sink_mass_right, 0},
    {"sink.mass-below-one", SINKPROOF_EXACT_LAYER,
     "alpha_s, 1 - alpha_s, sum_j alpha, 1 - sum_j alpha, times e^b + sum e^s",
     "e^b, sum e^s, sum e^s, e^b, all positive", distances_from_ends, positive_sums, 0},
    LINE("attn-headsum", attn_concat, attn_headsum),
    LINE("attn-values", attn_headsum, attn_values),
    LINE("attn-expand", attn_values, attn_expand),
    LINE("attn-inside", attn_expand, attn_inside),
    LINE("attn-distribute", attn_inside, attn_distribute),
    LINE("attn-split", attn_distribute, attn_split),
    LINE("attn-factor", attn_split, attn_factor),
    LINE("attn-mass", attn_factor, attn_mass),
    LINE("attn-one-minus", attn_mass, attn_one_minus),
    LINE("attn-reorder", attn_one_minus, attn_reorder),
    LINE("attn-final", attn_reorder, attn_final),
    {"sink.attn-final", SINKPROOF_EXACT_SEED, "ATTN(i, X), the first line", "the last line",
     attn_concat, attn_final, 0},
    {"sink.attn-gate", SINKPROOF_EXACT_SEED, "ATTN(i, X), the first line",
     "the heads' ordinary outputs and biases times 1 - alpha_s", attn_concat, attn_gate, 0},
    {"sink.general", SINKPROOF_EXACT_LAYER, "[head_1 ... head_H] W^O + b^O, heads grouped",
     "the last line with b^V read through g(h)", attn_concat, attn_final_by_groups, 0},
    {"sink.bias-intensity", SINKPROOF_EXACT_LAYER, "d/d alpha_s (1 - alpha_s) b^V W^O", "-b^V W^O",
     slope_in_alpha, minus_bias, 0},
    {"sink.bias-intensity", SINKPROOF_EXACT_LAYER, "d/db (1 - alpha_s) b^V W^O",
     "-alpha_s (1 - alpha_s) b^V W^O", slope_in_b, minus_variance_bias, 0},
    {"sink.bias-limits", SINKPROOF_EXACT_LAYER, "ATTN(i, X) at e^b = 0",
     "sum_h sum_j alpha x_j W^V W^O + sum_h b^V W^O + b^O", output_without_sink,
     output_with_full_bias, 0},
    {"sink.bias-limits", SINKPROOF_EXACT_LAYER, "ATTN(i, X) at e^(s - b) = 0", "b^O",
     output_at_infinite_sink, output_bias, 0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

// Weights renormalised after the sink's column is dropped: they sum to 1.
static row renormalised_mass(const instance *m) {
    row r = row_zero(m->heads);
    for (size_t h = 0; h < m->heads; h++) r.at[h] = q_div(key_mass(m, h), key_mass(m, h));
    return r;
}
// The value bias with the factor 1, as if every row summed to 1.
static row attn_with_unscaled_bias(const instance *m) {
    row full = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) full = row_add(full, bv_wo(m, h));
    return row_add(row_add(attended(m), full), m->bo);
}
// Query head h reads key/value head h mod G: equal only when H = G or G = 1.
static row attn_of_interleaved_groups(const instance *m) {
    row heads = row_zero(0);
    for (size_t h = 0; h < m->heads; h++) {
        size_t g = h % m->kv_heads;
        row sum = row_zero(m->head_dim);
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row v = row_add(row_times(x_of(m, j), m->wv[g]), m->bv[g]);
            sum = row_add(sum, row_scale(alpha(m, j, h), v));
        }
        heads = row_join(heads, sum);
    }
    return row_add(row_times(heads, m->wo), m->bo);
}

const sinkproof_exact_statement exact_attention_wrong[] = {
    {"sink.mass", SINKPROOF_EXACT_LAYER, "weights renormalised after the sink was dropped",
     "1 - alpha_s,ih", renormalised_mass, sink_mass_right, 0},
    {"sink.attn-mass", SINKPROOF_EXACT_LAYER, "the value bias at full intensity", "attn_mass",
     attn_with_unscaled_bias, attn_mass, 0},
    {"sink.general", SINKPROOF_EXACT_LAYER, "query head h reads key/value head h mod G",
     "query head h reads key/value head h / (H / G)", attn_of_interleaved_groups, attn_concat, 0},
    {0},
};
