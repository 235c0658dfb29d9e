// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Softmax with a sink in one pass and in parts. A state (M, l, acc) represents the keys seen so
// far: M = e^m with the running maximum m, l = sum e_j / M, acc = sum (e_j / M) u_j. M = 0 is the
// state without a key (m = -inf).
#include "proofs/exact/attention.h"

typedef struct state {
    rational top, l; // M, l
    row acc;
} state;

static state empty_state(const instance *m) {
    return (state){q_int(0), q_int(0), row_zero(m->head_dim)};
}

//> sink.online
// One more key: m' = max(m, s_j), old sums scaled by e^(m - m').
static state state_after_key(state old, rational e, row value) {
    rational top = q_max(old.top, e), keep = q_div(old.top, top), weight = q_div(e, top);
    return (state){top, q_add(q_mul(old.l, keep), weight),
                   row_add(row_scale(keep, old.acc), row_scale(weight, value))};
}
// Started at (m, l, acc) = (b, 1, 0): the sink is the first key, and its value is 0.
static row online_from_sink(const instance *m) {
    state s = {m->e_sink.at[0], q_int(1), row_zero(m->head_dim)};
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        s = state_after_key(s, e_score(m, j, 0), value_of(m, j));
    return row_scale(q_div(q_int(1), s.l), s.acc);
}
// Started empty; at the end the sink joins the denominator: l + e^(b - m).
static row online_sink_last(const instance *m) {
    state s = empty_state(m);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        s = state_after_key(s, e_score(m, j, 0), value_of(m, j));
    rational l = q_add(s.l, q_div(m->e_sink.at[0], s.top));
    return row_scale(q_div(q_int(1), l), s.acc);
}
//< sink.online

static row attention_output(const instance *m) { // sum_j alpha_j u_j
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(m, j, 0), value_of(m, j)));
    return sum;
}

//> sink.split-kv
static state part_state(const instance *m, size_t part) {
    state s = empty_state(m);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        if (m->part[j] == part) s = state_after_key(s, e_score(m, j, 0), value_of(m, j));
    return s;
}
// Two disjoint sets of keys: the larger maximum, both sums scaled to it.
static state merge_states(state a, state b) {
    rational top = q_max(a.top, b.top);
    if (mpq_sgn(top) == 0) return a; // neither has a key
    rational keep_a = q_div(a.top, top), keep_b = q_div(b.top, top);
    return (state){top, q_add(q_mul(a.l, keep_a), q_mul(b.l, keep_b)),
                   row_add(row_scale(keep_a, a.acc), row_scale(keep_b, b.acc))};
}
// The sink enters once, after the last merge, with the joint maximum.
static row split_sink_once(const instance *m) {
    state s = merge_states(merge_states(part_state(m, 0), part_state(m, 1)), part_state(m, 2));
    rational top = q_max(s.top, m->e_sink.at[0]), keep = q_div(s.top, top);
    rational l = q_add(q_mul(s.l, keep), q_div(m->e_sink.at[0], top));
    return row_scale(q_div(q_int(1), l), row_scale(keep, s.acc));
}
//< sink.split-kv

//> sink.split-tree
// Another tree: the last part is begun at the sink and merged with the first, both with the middle.
static row begun_at_sink(const instance *m) {
    state s = {m->e_sink.at[0], q_int(1), row_zero(m->head_dim)};
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        if (m->part[j] == 2) s = state_after_key(s, e_score(m, j, 0), value_of(m, j));
    s = merge_states(part_state(m, 1), merge_states(s, part_state(m, 0)));
    return row_scale(q_div(q_int(1), s.l), s.acc);
}
// Each part counts the sink in the sum of its own denominator, so the sink enters three times.
static row sink_per_part(const instance *m) {
    state s = empty_state(m);
    for (size_t part = 0; part < 3; part++)
        s = merge_states(
            s, state_after_key(part_state(m, part), m->e_sink.at[0], row_zero(m->head_dim)));
    return row_scale(q_div(q_int(1), s.l), s.acc);
}
// A sink of logit b + ln 3, once.
static row output_of_stronger(const instance *m) {
    instance stronger = *m;
    stronger.e_sink = row_one(q_mul(q_int(3), m->e_sink.at[0]));
    return attention_output(&stronger);
}
//< sink.split-tree

#define ROW(id, left_text, right_text, left, right)                                                \
    { "sink." id, SINKPROOF_EXACT_ROW, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement exact_merges[] = {
    ROW("online", "the recurrence started at (b, 1, 0)", "sum_j alpha_j v_j", online_from_sink,
        attention_output),
    ROW("online", "the recurrence started empty, the sink added at the end", "sum_j alpha_j v_j",
        online_sink_last, attention_output),
    ROW("split-kv", "three parts merged, the sink once", "sum_j alpha_j v_j", split_sink_once,
        attention_output),
    ROW("split-tree", "parts merged along another tree, one begun at the sink", "sum_j alpha_j v_j",
        begun_at_sink, attention_output),
    ROW("split-tree", "three parts merged, the sink in each", "sum_j alpha_j v_j at b + ln 3",
        sink_per_part, output_of_stronger),
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

// Started at (b, 1, 0), and the sink is added again at the end.
static row sink_first_and_last(const instance *m) {
    state s = {m->e_sink.at[0], q_int(1), row_zero(m->head_dim)};
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        s = state_after_key(s, e_score(m, j, 0), value_of(m, j));
    rational l = q_add(s.l, q_div(m->e_sink.at[0], s.top));
    return row_scale(q_div(q_int(1), l), s.acc);
}

const sinkproof_exact_statement exact_merges_wrong[] = {
    ROW("split-kv", "three parts merged, the sink once per part", "sum_j alpha_j v_j",
        sink_per_part, attention_output),
    ROW("online", "started at (b, 1, 0) and the sink added at the end too", "sum_j alpha_j v_j",
        sink_first_and_last, attention_output),
    {0},
};
