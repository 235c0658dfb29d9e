// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Metamorphic laws: how an engine's output must change when its input changes in a known way.
#include "proofs/exact/attention.h"

#include <stdlib.h>

static row weights(const instance *m) { // alpha_j over J(i), then alpha_s
    row w = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        w = row_join(w, row_one(alpha(m, j, 0)));
    return row_join(w, row_one(alpha_sink(m, 0)));
}

static row output(const instance *m) { // sum_j alpha_j u_j, head 0
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(m, j, 0), value_of(m, j)));
    return sum;
}

// The same two written out, for the other side of a law: e_j / (B + sum e) of head 0, the sink's
// last; and sum_j e_j u_j / (B + sum e), coordinate by coordinate.
static rational sum_with_sink(const instance *m) {
    rational all = m->e_sink.at[0];
    for (size_t j = 0; j < m->tokens; j++)
        if (m->sees[j]) all = q_add(all, m->e.at[j]);
    return all;
}
static row weights_by_hand(const instance *m) {
    row e = row_zero(0);
    for (size_t j = 0; j < m->tokens; j++)
        if (m->sees[j]) e = row_join(e, row_one(m->e.at[j]));
    return row_scale(q_div(q_int(1), sum_with_sink(m)), row_join(e, row_one(m->e_sink.at[0])));
}
static row output_by_hand(const instance *m) {
    row o = row_zero(m->head_dim);
    for (size_t k = 0; k < m->tokens * m->head_dim; k++) {
        size_t j = k / m->head_dim, d = k % m->head_dim;
        if (m->sees[j]) o.at[d] = q_add(o.at[d], q_mul(m->e.at[j], m->u.at[k]));
    }
    return row_scale(q_div(q_int(1), sum_with_sink(m)), o);
}

static instance shifted(const instance *m, bool sink_too) { // e^(s + t) = e^s e^t
    instance other = *m;
    row e = {m->e.rows * m->e.cols, m->e.at};
    other.e.at = row_scale(m->shift, e).at;
    if (sink_too) other.e_sink = row_scale(m->shift, m->e_sink);
    return other;
}

//> law.shift
static row weights_of_shifted(const instance *m) { // alpha(s + t, b + t)
    instance other = shifted(m, true);
    return weights(&other);
}
//< law.shift

//> law.permute
// Keys, values and mask reordered together.
static row output_permuted(const instance *m) {
    instance other = *m;
    other.e = matrix_zero(m->e.rows, m->e.cols);
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        other.sees[j] = m->sees[m->order[j]];
        other.e.at[j] = e_score(m, m->order[j], 0);
        for (size_t d = 0; d < m->head_dim; d++)
            other.u.at[j * m->head_dim + d] = value_of(m, m->order[j]).at[d];
    }
    return output(&other);
}
//< law.permute

//> law.constant-value
// Every value row is v: the output is that row times the mass, not the row.
static row output_of_constant(const instance *m) {
    instance other = *m;
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t k = 0; k < m->tokens * m->head_dim; k++)
        other.u.at[k] = m->u_star.at[k % m->head_dim];
    return output(&other);
}
static row constant_times_mass(const instance *m) {
    return row_scale(q_sub(q_int(1), alpha_sink(m, 0)), m->u_star);
}
//< law.constant-value

static row layer_output(const instance *m) { // [head_1 ... head_H] W^O + b^O
    row heads = row_zero(0);
    for (size_t h = 0; h < m->heads; h++) {
        row sum = row_zero(m->head_dim);
        for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
            row v = row_add(row_times(x_of(m, j), w_value(m, h)), b_value(m, h));
            sum = row_add(sum, row_scale(alpha(m, j, h), v));
        }
        heads = row_join(heads, sum);
    }
    return row_add(row_times(heads, m->wo), m->bo);
}

//> law.gqa-repeat
// Each key/value head written out H / G times: one per query head.
static row output_repeated(const instance *m) {
    instance other = *m;
    other.kv_heads = m->heads;
    for (size_t h = 0; h < m->heads; h++) {
        other.wv[h] = m->wv[kv_head(m, h)];
        other.bv[h] = m->bv[kv_head(m, h)];
    }
    return layer_output(&other);
}
//< law.gqa-repeat

// ATTN unchanged, entry by entry: head h reads the key/value head of which it is a copy.
static row layer_entries(const instance *m) {
    row out = row_zero(m->hidden);
    for (size_t c = 0; c < m->hidden; c++) out.at[c] = m->bo.at[c];
    for (size_t h = 0; h < m->heads; h++)
        for (size_t j = 0; j < m->tokens; j++)
            for (size_t d = 0; d < m->head_dim && m->sees[j]; d++) {
                size_t g = h * m->kv_heads / m->heads;
                rational v = m->bv[g].at[d];
                for (size_t c = 0; c < m->hidden; c++)
                    v = q_add(v,
                              q_mul(m->x.at[j * m->hidden + c], m->wv[g].at[c * m->head_dim + d]));
                v = q_mul(alpha(m, j, h), v);
                for (size_t c = 0; c < m->hidden; c++)
                    out.at[c] =
                        q_add(out.at[c], q_mul(v, m->wo.at[(h * m->head_dim + d) * m->hidden + c]));
            }
    return out;
}

//> law.linear-value
// o(a U + b V) = a o(U) + b o(V), V the rows x_j W^V_0
static row output_of_combination(const instance *m) {
    instance other = *m;
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        row v = row_times(x_of(m, j), m->wv[0]);
        row both = row_add(row_scale(m->a, value_of(m, j)), row_scale(m->b, v));
        for (size_t d = 0; d < m->head_dim; d++) other.u.at[j * m->head_dim + d] = both.at[d];
    }
    return output(&other);
}
static row combination_of_outputs(const instance *m) {
    row o_v = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        o_v = row_add(o_v, row_scale(e_score(m, j, 0), row_times(x_of(m, j), m->wv[0])));
    o_v = row_scale(q_div(m->b, sum_with_sink(m)), o_v);
    return row_add(row_scale(m->a, output_by_hand(m)), o_v);
}
//< law.linear-value

//> rope.orthogonal
// Rotation by halves: pair (d, d + half) turns by i theta_d. A rational point of the circle,
// ((1 - t^2) / (1 + t^2), 2t / (1 + t^2)), stands for (cos theta_d, sin theta_d); e^t stands for
// the concentration that multiplies both.
static row rotated(const instance *m, const long *x, long position, rational concentration) {
    size_t half = 2;
    row y = row_zero(2 * half);
    for (size_t d = 0; d < half; d++) {
        rational t = d == 0 ? m->base : q_neg(m->shift), tt = q_mul(t, t);
        rational c = q_div(q_sub(q_int(1), tt), q_add(q_int(1), tt));
        rational s = q_div(q_mul(q_int(2), t), q_add(q_int(1), tt));
        rational a = q_int(x[d]), b = q_int(x[d + half]);
        if (position < 0) s = q_neg(s);
        for (long i = 0; i != position; i += position < 0 ? -1 : 1) {
            rational turned = q_sub(q_mul(a, c), q_mul(b, s));
            b = q_add(q_mul(b, c), q_mul(a, s));
            a = turned;
        }
        y.at[d] = q_mul(concentration, a);
        y.at[d + half] = q_mul(concentration, b);
    }
    return y;
}
// q at position i, k at position j: their product, and the squared length of q.
static row rotated_products(const instance *m) {
    long i = (long)m->query, j = (long)m->order[0];
    row q = rotated(m, m->q, i, m->shift), k = rotated(m, m->k[0], j, m->shift);
    return row_join(row_one(row_dot(q, k)), row_one(row_dot(q, q)));
}
// (cos + i sin)^n by squaring: the rotation of a distance n.
static void rotation_of_distance(rational t, long n, rational *cosine, rational *sine) {
    rational size = q_add(q_int(1), q_mul(t, t)), c = q_sub(q_div(q_int(2), size), q_int(1));
    rational s = q_div(q_add(t, t), size);
    if (n < 0) s = q_neg(s);
    *cosine = q_int(1), *sine = q_int(0);
    for (long left = labs(n); left > 0; left /= 2) {
        if (left % 2 == 1) {
            rational held = q_sub(q_mul(c, *cosine), q_mul(s, *sine));
            *sine = q_add(q_mul(c, *sine), q_mul(s, *cosine));
            *cosine = held;
        }
        rational twice = q_mul(q_int(2), q_mul(c, s));
        c = q_sub(q_mul(c, c), q_mul(s, s));
        s = twice;
    }
}
// Only i - j counts, and the concentration squared: (q_d k_d + q_e k_e) cos + (q_d k_e - q_e k_d)
// sin of the rotation by i - j, e = d + 2; and the squared length of q itself.
static row relative_products(const instance *m) {
    rational product = q_int(0), length = q_int(0), cosine, sine;
    for (size_t d = 0; d < 2; d++) {
        const long *q = m->q, *k = m->k[0];
        rotation_of_distance(d == 0 ? m->base : q_neg(m->shift), (long)m->query - (long)m->order[0],
                             &cosine, &sine);
        rational along = q_mul(q_int(q[d] * k[d] + q[d + 2] * k[d + 2]), cosine);
        rational across = q_mul(q_int(q[d] * k[d + 2] - q[d + 2] * k[d]), sine);
        product = q_add(product, q_add(along, across));
        length = q_add(length, q_int(q[d] * q[d] + q[d + 2] * q[d + 2]));
    }
    return row_scale(q_mul(m->shift, m->shift), row_join(row_one(product), row_one(length)));
}
//< rope.orthogonal

//> first.token
// The first query sees only itself, J = {i}, whatever the other tokens and their scores are.
static row layer_of_first(const instance *m) {
    instance first = *m;
    first.x = matrix_zero(m->x.rows, m->x.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        first.sees[j] = j == m->query;
        row x = j == m->query ? x_of(m, j) : m->x_star;
        for (size_t c = 0; c < m->hidden; c++) first.x.at[j * m->hidden + c] = x.at[c];
    }
    return layer_output(&first);
}
// = sum_h (1 - alpha_s,h) (x W^V_h + b^V_h) W^O_h + b^O: a function of x alone.
static row function_of_first(const instance *m) {
    row sum = m->bo;
    for (size_t h = 0; h < m->heads; h++) {
        rational e_b = m->e_sink.at[h], e = e_score(m, m->query, h);
        rational faded = q_sub(q_int(1), q_div(e_b, q_add(e_b, e)));
        row v = row_add(row_times(x_of(m, m->query), w_value(m, h)), b_value(m, h));
        sum = row_add(sum, row_scale(faded, row_times(v, w_output(m, h))));
    }
    return sum;
}
//< first.token

//> sink.absolute
// The query sees the last two keys; all keys outside the window get arbitrary scores and values.
// Returns every weight (0 for a hidden key), the sink's share, and the output.
static bool in_window(const instance *m, size_t j) {
    return j <= m->query && j + 2 > m->query;
}
static row windowed_row(const instance *m) {
    instance other = *m;
    row w = row_zero(m->tokens);
    other.u = matrix_zero(m->u.rows, m->u.cols);
    other.e = matrix_zero(m->e.rows, m->e.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        bool sees = other.sees[j] = in_window(m, j);
        other.e.at[j] = sees ? e_score(m, j, 0) : m->shift;
        row u = sees ? value_of(m, j) : m->u_star;
        for (size_t d = 0; d < m->head_dim; d++) other.u.at[j * m->head_dim + d] = u.at[d];
    }
    for (size_t j = next_seen(&other, 0); j < m->tokens; j = next_seen(&other, j + 1))
        w.at[j] = alpha(&other, j, 0);
    return row_join(w, row_join(row_one(alpha_sink(&other, 0)), output(&other)));
}
// The same from the query's own score and its neighbour's only.
static row row_of_two(const instance *m) {
    size_t i = m->query;
    rational e = e_score(m, i, 0), before = i > 0 ? e_score(m, i - 1, 0) : q_int(0);
    rational all = q_add(m->e_sink.at[0], q_add(e, before));
    row two = row_zero(m->tokens), o = row_scale(q_div(e, all), value_of(m, i));
    two.at[i] = q_div(e, all);
    if (i > 0) {
        two.at[i - 1] = q_div(before, all);
        o = row_add(o, row_scale(q_div(before, all), value_of(m, i - 1)));
    }
    return row_join(two, row_join(row_one(q_div(m->e_sink.at[0], all)), o));
}
//< sink.absolute

//> mask.first-recent
// Of the keys that a query sees, keeps the first of the sequence and the last two, and evicts the
// others.
static instance first_recent(const instance *m) {
    instance kept = *m;
    for (size_t j = 0; j < m->tokens; j++) kept.sees[j] = m->sees[j] && (j < 1 || in_window(m, j));
    return kept;
}
// All weights, the output, the sum of the changes of all weights, and the number of kept keys. From
// the exponentials: the evicted keys are those strictly between the first key and the last two.
static row full_row(const instance *m) {
    rational evicted = q_int(0);
    for (size_t j = 1; j + 1 < m->query; j++)
        if (m->sees[j]) evicted = q_add(evicted, m->e.at[j]);
    for (size_t j = m->query + 1; j < m->tokens; j++)
        if (m->sees[j]) evicted = q_add(evicted, m->e.at[j]);
    rational twice = q_div(q_mul(q_int(2), evicted), sum_with_sink(m));
    long kept = m->sees[0] + (m->query > 0) + (m->query > 1 && m->sees[m->query - 1]);
    return row_join(row_join(weights_by_hand(m), output_by_hand(m)),
                    row_join(row_one(twice), row_one(q_int(kept))));
}
// The same from the row of the kept keys and the mass mu of the evicted ones.
static row row_from_kept(const instance *m) {
    instance kept = first_recent(m);
    rational mass = q_int(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        if (!kept.sees[j]) mass = q_add(mass, alpha(m, j, 0));
    rational share = q_sub(q_int(1), mass), moved = mass;
    row w = row_zero(0), o = row_scale(share, output(&kept));
    long count = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational a = q_mul(share, alpha(&kept, j, 0));
        w = row_join(w, row_one(a));
        count += kept.sees[j];
        if (kept.sees[j]) moved = q_add(moved, q_sub(alpha(&kept, j, 0), a));
        if (!kept.sees[j]) o = row_add(o, row_scale(a, value_of(m, j)));
    }
    rational sink = q_mul(share, alpha_sink(&kept, 0));
    moved = q_add(moved, q_sub(alpha_sink(&kept, 0), sink));
    row rest = row_join(row_one(moved), row_one(q_int(count)));
    return row_join(row_join(w, row_one(sink)), row_join(o, rest));
}
//< mask.first-recent

#define LAW(id, left_text, right_text, left, right)                                                \
    { "law." id, SINKPROOF_EXACT_ROW, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement exact_laws[] = {
    LAW("shift", "alpha(s + t, b + t)", "alpha(s, b)", weights_of_shifted, weights_by_hand),
    LAW("permute", "o with keys reordered", "o", output_permuted, output_by_hand),
    LAW("constant-value", "o with v_j = v", "(1 - alpha_s) v", output_of_constant,
        constant_times_mass),
    {"law.gqa-repeat", SINKPROOF_EXACT_LAYER, "ATTN with repeated key/value heads",
     "ATTN with g(h) = h / (H / G)", output_repeated, layer_entries, 0},
    {"law.linear-value", SINKPROOF_EXACT_LAYER, "o(a U + b V)", "a o(U) + b o(V)",
     output_of_combination, combination_of_outputs, 0},
    {"rope.orthogonal", SINKPROOF_EXACT_QK, "R^i q . R^j k and |R^i q|^2",
     "c^2 R^(i-j) q . k and c^2 |q|^2", rotated_products, relative_products, 0},
    {"first.token", SINKPROOF_EXACT_LAYER, "ATTN of a query that sees only itself",
     "sum_h (1 - alpha_s,h) (x W^V_h + b^V_h) W^O_h + b^O", layer_of_first, function_of_first, 0},
    {"sink.absolute", SINKPROOF_EXACT_ROW, "a window of two keys, anything before it",
     "the row from two scores", windowed_row, row_of_two, 0},
    {"mask.first-recent", SINKPROOF_EXACT_ROW, "alpha, o and 2 mu of the full row, and |K|",
     "(1 - mu) alpha', (1 - mu) o' + sum_E alpha v, what moved, and |K|", full_row, row_from_kept,
     0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row scores_shifted_alone(const instance *m) {
    instance other = shifted(m, false);
    return weights(&other);
}
// The first visible key with the first key's additional weight.
static row first_visible(const instance *m) {
    instance window = *m;
    for (size_t j = 0; j < m->tokens; j++) window.sees[j] = in_window(m, j);
    return row_one(alpha(&window, next_seen(&window, 0), 0));
}
static row first_and_own(const instance *m) {
    instance all = *m;
    for (size_t j = 0; j < m->tokens; j++) all.sees[j] = j <= m->query;
    size_t own = m->query > 0 ? m->query - 1 : 0;
    rational sum = alpha(&all, own, 0);
    return row_one(own > 0 ? q_add(sum, alpha(&all, 0, 0)) : sum);
}
static row sink_of_kept(const instance *m) {
    instance kept = first_recent(m);
    return row_one(alpha_sink(&kept, 0));
}
static row sink_of_full(const instance *m) {
    return row_one(alpha_sink(m, 0));
}
static row constant_value(const instance *m) {
    return m->u_star;
}

const sinkproof_exact_statement exact_laws_wrong[] = {
    LAW("shift", "alpha(s + t, b): the scores shifted alone", "alpha(s, b)", scores_shifted_alone,
        weights),
    LAW("constant-value", "o with v_j = v", "v", output_of_constant, constant_value),
    {"sink.absolute", SINKPROOF_EXACT_ROW, "the first visible key's weight",
     "its own in the full row and the first key's", first_visible, first_and_own, 0},
    {"mask.first-recent", SINKPROOF_EXACT_ROW, "alpha_s of the kept keys", "alpha_s of all",
     sink_of_kept, sink_of_full, 0},
    {0},
};
