// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router and the mixture of experts. e_e stands for e^(g_e); e^g orders as g does.
#include "proofs/exact/attention.h"

//> router.topk
// The K largest in descending order, the lower index first among equals; returns their number.
static size_t top_k(const instance *m, size_t chosen_k[EXACT_EXPERTS]) {
    bool taken[EXACT_EXPERTS] = {false};
    size_t n = 0;
    for (; n < m->chosen; n++) {
        size_t best = m->experts;
        for (size_t e = 0; e < m->experts; e++)
            if (!taken[e] &&
                (best == m->experts || mpq_cmp(m->e_router.at[e], m->e_router.at[best]) > 0))
                best = e;
        taken[best] = true;
        chosen_k[n] = best;
    }
    return n;
}
//< router.topk

// The definition of the choice: for each k, the number of experts that precede it (larger, or equal
// with a lower index). The choice is right when these counts are 0 ... K - 1.
static row experts_before(const instance *m) {
    size_t chosen_k[EXACT_EXPERTS];
    row counts = row_zero(top_k(m, chosen_k));
    for (size_t k = 0; k < counts.n; k++) {
        long before = 0;
        for (size_t e = 0; e < m->experts; e++) {
            int order = mpq_cmp(m->e_router.at[e], m->e_router.at[chosen_k[k]]);
            before += order > 0 || (order == 0 && e < chosen_k[k]);
        }
        counts.at[k] = q_int(before);
    }
    return counts;
}
static row numbers_from_zero(const instance *m) {
    row counts = row_zero(m->chosen);
    for (size_t k = 0; k < m->chosen; k++) counts.at[k] = q_int((long)k);
    return counts;
}

//> router.softmax-after
// Softmax over the chosen logits alone.
static row softmax_after(const instance *m) {
    size_t chosen_k[EXACT_EXPERTS];
    top_k(m, chosen_k);
    row w = row_zero(m->chosen);
    for (size_t k = 0; k < m->chosen; k++) w.at[k] = m->e_router.at[chosen_k[k]];
    return row_scale(q_div(q_int(1), row_sum(w)), w);
}
// Softmax over all experts, then the chosen ones.
static row softmax_before(const instance *m) {
    size_t chosen_k[EXACT_EXPERTS];
    top_k(m, chosen_k);
    row all = row_scale(q_div(q_int(1), row_sum(m->e_router)), m->e_router),
        w = row_zero(m->chosen);
    for (size_t k = 0; k < m->chosen; k++) w.at[k] = all.at[chosen_k[k]];
    return w;
}
// The same, renormalised: divided by the chosen experts' share of the whole.
static row softmax_before_renormalised(const instance *m) {
    row w = softmax_before(m);
    return row_scale(q_div(q_int(1), row_sum(w)), w);
}
// The softmax over the chosen logits, scaled by the chosen experts' share of the whole.
static row softmax_after_shrunk(const instance *m) {
    size_t chosen_k[EXACT_EXPERTS];
    rational share = q_int(0);
    for (size_t k = 0, n = top_k(m, chosen_k); k < n; k++)
        share = q_add(share, q_div(m->e_router.at[chosen_k[k]], row_sum(m->e_router)));
    return row_scale(share, softmax_after(m));
}
//< router.softmax-after

static matrix chosen_w2(const instance *m, size_t k) { // W2 of the k-th chosen expert [f, c]
    size_t inter = m->down_x.cols;
    return matrix_block(m->w2, k * inter, inter);
}
static row down_projection(const instance *m, size_t k) { // z_k W2_k
    return row_times(matrix_row(m->down_x, k), chosen_w2(m, k));
}

//> moe.sum
// sum_k w_k (z_k W2_k + b2_k), the experts in descending order of weight
static row mixture(const instance *m) {
    row w = softmax_after(m), sum = row_zero(m->hidden);
    for (size_t k = 0; k < m->chosen; k++)
        sum =
            row_add(sum, row_scale(w.at[k], row_add(down_projection(m, k), matrix_row(m->b2, k))));
    return sum;
}
// The same in another order, entry by entry, with each b2 added once and weighted.
static row mixture_reordered(const instance *m) {
    row w = softmax_after(m), sum = row_zero(m->hidden), bias = row_zero(m->hidden);
    size_t inter = m->down_x.cols;
    for (size_t k = 0; k < m->chosen; k++) {
        size_t e = m->expert_order[k];
        for (size_t c = 0; c < m->hidden; c++)
            for (size_t f = e * inter; f < (e + 1) * inter; f++) {
                rational one = q_mul(m->down_x.at[f], m->w2.at[f * m->hidden + c]);
                sum.at[c] = q_add(sum.at[c], q_mul(w.at[e], one));
            }
        bias = row_add(bias, row_scale(w.at[e], matrix_row(m->b2, e)));
    }
    return row_add(sum, bias);
}
//< moe.sum

const sinkproof_exact_statement exact_router[] = {
    {"router.topk", SINKPROOF_EXACT_ROUTER, "experts that come before the k-th chosen one",
     "0 ... K - 1", experts_before, numbers_from_zero, 0},
    {"router.softmax-after", SINKPROOF_EXACT_ROUTER, "softmax over the chosen logits",
     "softmax over all, the chosen ones renormalised", softmax_after, softmax_before_renormalised,
     0},
    {"router.softmax-after", SINKPROOF_EXACT_ROUTER, "softmax over all, the chosen ones",
     "softmax over the chosen logits times their share", softmax_before, softmax_after_shrunk, 0},
    {"moe.sum", SINKPROOF_EXACT_ROUTER, "sum_e w_e (z_e W2_e + b2_e)",
     "in another order, sum_e w_e z_e W2_e + sum_e w_e b2_e", mixture, mixture_reordered, 0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row bias_unweighted(const instance *m) {
    row w = softmax_after(m), sum = row_zero(m->hidden);
    for (size_t k = 0; k < m->chosen; k++)
        sum =
            row_add(sum, row_add(row_scale(w.at[k], down_projection(m, k)), matrix_row(m->b2, k)));
    return sum;
}
// Two shards of a tensor-parallel down projection that both add b2 before they are summed.
static row bias_per_shard(const instance *m) {
    row w = softmax_after(m), sum = row_zero(m->hidden);
    for (size_t k = 0; k < m->chosen; k++) {
        row d = row_add(down_projection(m, k), row_scale(q_int(2), matrix_row(m->b2, k)));
        sum = row_add(sum, row_scale(w.at[k], d));
    }
    return sum;
}

const sinkproof_exact_statement exact_router_wrong[] = {
    {"router.softmax-after", SINKPROOF_EXACT_ROUTER,
     "softmax over all experts, not renormalised over the chosen", "softmax over the chosen logits",
     softmax_before, softmax_after, 0},
    {"moe.sum", SINKPROOF_EXACT_ROUTER, "b2 not weighted by w_e", "sum_e w_e (z_e W2_e + b2_e)",
     bias_unweighted, mixture, 0},
    {"moe.sum", SINKPROOF_EXACT_ROUTER, "b2 added on each of two shards",
     "sum_e w_e (z_e W2_e + b2_e)", bias_per_shard, mixture, 0},
    {0},
};
