// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of the router and of the sum over the experts that no catalogue lists, planted in
// complete engines: shares that are lost or in steps, choices by other numbers or by none, experts
// and tokens that are left out; and what is added to a residual. Mistakes that look like one are
// not called by its name.
#include "tests/shared/routed.h"

// ---- shares

// What is left of a token's shares where `kept` says so, divided by its sum if `over`.
typedef bool keeps(const double *share_k, size_t slot, double by);
static void leave(const shown *s, double *share_q, keeps *kept, double by, bool over) {
    size_t k = s->c->n_chosen;
    double old[8];
    must(k <= 8);
    for (size_t i = 0; i < s->n; i++) {
        double sum = 0;
        memcpy(old, &share_q[i * k], k * sizeof *old);
        for (size_t slot = 0; slot < k; slot++)
            if (kept(old, slot, by)) sum = rounded(s, sum + old[slot]);
        for (size_t slot = 0; slot < k; slot++)
            share_q[i * k + slot] =
                kept(old, slot, by) ? rounded(s, over ? old[slot] / sum : old[slot]) : 0;
    }
}
static bool up_to_sum(const double *share_k, size_t slot, double by) {
    double before = 0;
    for (size_t o = 0; o < slot; o++) before += share_k[o];
    return before < by;
}
static bool not_small(const double *share_k, size_t slot, double by) {
    return share_k[slot] >= by;
}
static bool of_the_first(const double *share_k, size_t slot, double by) {
    (void)share_k;
    return (double)slot < by;
}
static void nucleus(shown *s, double by) {
    leave(s, s->v, up_to_sum, by, true);
}
static void not_below_limit(shown *s, double by) {
    leave(s, s->v, not_small, by, true);
}
static void in_steps(shown *s, double by) {
    for (size_t q = 0; q < s->count; q++) s->v[q] = rounded(s, nearbyint(s->v[q] * by) / by);
}
static void over_five(shown *s, double by) { // the exponentials over those of the `by` best
    size_t experts = s->c->n_experts;
    for (size_t q = 0; q < s->count; q++) {
        double sum = 0;
        size_t i = q / s->c->n_chosen;
        for (size_t e = 0; e < experts; e++) {
            double above = 0;
            for (size_t o = 0; o < experts; o++) above += logit_of(s, i, o) > logit_of(s, i, e);
            if (above < by) sum += exp(logit_of(s, i, e));
        }
        s->v[q] = rounded(s, exp(logit_at(s, q)) / sum);
    }
}
static void sigmoids_in_steps(shown *s, double by) { // each step is rounded
    size_t k = s->c->n_chosen;
    (void)by;
    for (size_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (size_t q = i * k; q < (i + 1) * k; q++)
            s->v[q] = rounded(s, 1 / (1 + exp(-logit_at(s, q)))), sum = rounded(s, sum + s->v[q]);
        for (size_t q = i * k; q < (i + 1) * k; q++) s->v[q] = rounded(s, s->v[q] / sum);
    }
}

// The sum over the experts with shares of its own.
static void mix_with(shown *s, const double *share_q) {
    size_t d = s->c->hidden, k = s->c->n_chosen;
    for (size_t at = 0; at < s->count; at++) {
        double sum = 0;
        for (size_t q = at / d * k; q < at / d * k + k; q++)
            sum += share_q[q] * of(s, TRACE_M10)[q * d + at % d];
        s->v[at] = rounded(s, sum);
    }
}
static double *shares_of(const shown *s) {
    size_t all = s->n * s->c->n_chosen;
    double *share_q = malloc(all * sizeof *share_q);
    must(share_q != NULL);
    memcpy(share_q, of(s, TRACE_M4), all * sizeof *share_q);
    return share_q;
}
static void mixed_of_two(shown *s, double by) {
    double *share_q = shares_of(s);
    leave(s, share_q, of_the_first, by, true);
    mix_with(s, share_q);
    free(share_q);
}
static void mixed_of_squares(shown *s, double by) {
    double *share_q = shares_of(s);
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++) share_q[q] = pow(share_q[q], by);
    leave(s, share_q, of_the_first, 8, true);
    mix_with(s, share_q);
    free(share_q);
}
static void mixed_to_capacity(shown *s, double by) { // all first choices before the second ones
    size_t k = s->c->n_chosen, all = s->n * k;
    double *share_q = shares_of(s);
    for (size_t q = 0; q < all; q++) {
        double before = 0;
        for (size_t o = 0; o < all; o++)
            before +=
                expert_at(s, o) == expert_at(s, q) && (o % k != q % k ? o % k < q % k : o < q);
        if (before >= by) share_q[q] = 0;
    }
    mix_with(s, share_q);
    free(share_q);
}
static void without_late_ranks(shown *s, double by) { // experts from `by` on, from row 16 on
    double *share_q = shares_of(s);
    for (size_t q = 16 * s->c->n_chosen; q < s->n * s->c->n_chosen; q++)
        if ((double)expert_at(s, q) >= by) share_q[q] = 0;
    mix_with(s, share_q);
    free(share_q);
}
static void partial_block(shown *s, double by) {
    size_t k = s->c->n_chosen, all = s->n * k, each = s->count / all, block = (size_t)by;
    for (size_t q = 0; q < all; q++) {
        size_t before = 0, same = 0;
        for (size_t o = 0; o < all; o++) {
            bool here = expert_at(s, o) == expert_at(s, q);
            before += here && (o % k != q % k ? o % k < q % k : o < q), same += here;
        }
        if (before >= same / block * block) memset(&s->v[q * each], 0, each * sizeof *s->v);
    }
}

static double with_next_bias(const shown *s, size_t i, size_t e, double by) {
    double own[64], other[64];
    size_t layer = s->layer + 1 < s->c->n_layers ? s->layer + 1 : s->layer - 1;
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_ROUTER);
    sinkproof_matrix next = sinkproof_model_slot(s->model, layer, SINKPROOF_B_ROUTER);
    must(b.cols <= 64);
    sinkproof_matrix_row(&b, 0, own);
    sinkproof_matrix_row(&next, 0, other);
    // in one layer: in others the two biases choose nearly the same
    return logit_of(s, i, e) + (s->layer == 0 ? by * (other[e] - own[e]) : 0);
}
static double with_numbers(const shown *s, size_t i, size_t e, double by) {
    // in one layer: numbers that are fitted there need not do in another
    return logit_of(s, i, e) + (s->layer == 0 ? by * (double)(e * 3 % 7) : 0);
}
static double of_tokens(const shown *s, size_t i, size_t e, double by) {
    size_t experts = s->c->n_experts;
    return by - (double)((e + experts - (size_t)s->tokens[i] % experts) % experts);
}
static double of_scattered(const shown *s, size_t i, size_t e, double by) { // no rule
    return by * (double)((i * i * 7 + e * (i + 3)) % 11) + 1e-3 * (double)e + 0 * logit_of(s, i, e);
}
static void chosen_by_next_bias(shown *s, double by) {
    choose(s, with_next_bias, by);
}
static void chosen_with_numbers(shown *s, double by) {
    choose(s, with_numbers, by);
}
static void chosen_by_token(shown *s, double by) {
    choose(s, of_tokens, by);
}
static void chosen_by_chance(shown *s, double by) {
    choose(s, of_scattered, by);
}

static void capped(shown *s, double by) { // each step is rounded
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, by * rounded(s, tanh(rounded(s, s->v[at] / by))));
}
static void plus_embedding(shown *s, double by) {
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, s->v[at] + rounded(s, by * s->embedding[at]));
}

static const plant plants[] = {
    {AT("M4"), .change = nucleus, .by = 0.6, .f32 = true,
     .says = "as 0 where the larger ones of the token add up to a limit (about 0."},
    {AT("M4"), .change = not_below_limit, .by = 0.25,
     .says = "as 0 where they are below a limit (about 0."},
    {AT("M4"), .change = in_steps, .by = 127, .f32 = true, .says = "rounded to multiples of 1/127"},
    {AT("M4"), .change = sigmoids_in_steps,
     .says = "the sigmoids of the router's logits, divided by their sum over the chosen"},
    {AT("M4"), .change = over_five, .by = 5, .f32 = true,
     .says = "divided by their sum over the best 5 experts"},
    {AT("M11"), .change = mixed_of_two, .by = 2,
     .says = "(M4) as 0 for all but the 2 largest of the token, and renormalised"},
    {AT("M11"), .change = mixed_of_squares, .by = 2, .f32 = true,
     .says = "squared and renormalised: a softmax of twice the logits"},
    {AT("M11"), .change = mixed_to_capacity, .by = 5,
     .says = "beyond its first 5, all first choices before the second ones (a capacity of 5)"},
    {AT("M11"), .change = without_late_ranks, .by = 4, .n = 24, .f32 = true,
     .says = "experts 4-6 is left out of the sum over the experts, in positions "},
    {AT("M10"), .change = partial_block, .by = 4,
     .says = "zero for the last, partial block of 4 of an expert's tokens, in the order of the "
             "slots"},
    {AT("M3"), .change = chosen_by_next_bias, .by = 1, .f32 = true, .alone = true,
     .says = "with the router's bias of the layer 1 "},
    {AT("M3"), .change = chosen_with_numbers, .by = 0.8, .f32 = true, .alone = true,
     .says = "plus a number of each expert's, as a correction bias: about"},
    {AT("M3"), .change = chosen_by_token, .by = 0, .f32 = true, .alone = true,
     .says = "the first is the number of the token modulo 7, each next one is 1 on"},
    {AT("M3"), .change = chosen_by_chance, .by = 1, .f32 = true, .not = "experts are chosen"},
    {AT("M12"), .change = plus_embedding, .by = (double)0.1f, .f32 = true, .alone = true,
     .says = "(T0) times 1/10 (0.1) is added to M12"},

    {AT("F2"), .change = capped, .by = 20, .says = "is capped: 20 tanh(x/20)"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
