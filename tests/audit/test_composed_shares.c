// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of the experts' weights and of their products that no catalogue lists, planted in
// complete engines: other scores and sums, capacities, weights on an input, batches in another
// order, scales at another stride. Mistakes that look like one are not called by its name.
#include "tests/shared/routed.h"

// ---- the choice

static double sigmoid_and_bias(const shown *s, size_t i, size_t e, double by) {
    double bias[64];
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_ROUTER);
    must(b.cols <= 64);
    sinkproof_matrix_row(&b, 0, bias);
    return by / (1 + exp(bias[e] - logit_of(s, i, e))) + bias[e];
}
static double masked_by_zero(const shown *s, size_t i, size_t e, double by) {
    return (double)e >= by ? 0 : logit_of(s, i, e);
}
static double not_negative(const shown *s, size_t i, size_t e, double by) {
    return fmax(logit_of(s, i, e), by);
}
static double masked_in_some(const shown *s, size_t i, size_t e, double by) { // in no order
    return i * i % 11 < 5 ? masked_by_zero(s, i, e, by) : logit_of(s, i, e);
}
static double one_of_the_first(const shown *s, size_t i, size_t e, double by) {
    double above = 0, own = logit_of(s, i, e);
    for (size_t o = 0; o < s->c->n_experts; o++)
        above += ((double)o < by) == ((double)e < by) && logit_of(s, i, o) > own;
    // one of the experts below `by`, and the others from on there
    double kept = (double)e < by ? 1 : (double)s->c->n_chosen - 1;
    return above < kept ? own : -1e9;
}
static double any_logit(const shown *s, size_t i, size_t e, double by) { // of no rule
    (void)s;
    return (double)((i * 7 + e * 5 + i * e * (size_t)by) % 11);
}
static void chosen_by_sigmoid(shown *s, double by) {
    choose(s, sigmoid_and_bias, by);
}
static void chosen_with_zeros(shown *s, double by) {
    choose(s, masked_by_zero, by);
}
static void chosen_with_some_zeros(shown *s, double by) {
    choose(s, masked_in_some, by);
}
static void chosen_from_zero(shown *s, double by) {
    choose(s, not_negative, by);
}
static void chosen_per_rank(shown *s, double by) {
    choose(s, one_of_the_first, by);
}
static void chosen_anyhow(shown *s, double by) {
    choose(s, any_logit, by);
}

// ---- the weights

typedef double score(double x);
static double exponential(double x) {
    return exp(x);
}
static double softplus(double x) {
    return log1p(exp(x));
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
typedef bool beside(const shown *s, size_t q, size_t other);
static bool of_token(const shown *s, size_t q, size_t other) {
    return q / s->c->n_chosen == other / s->c->n_chosen;
}
static bool of_rank(const shown *s, size_t q, size_t other) {
    return of_token(s, q, other) && expert_at(s, q) / 2 == expert_at(s, other) / 2;
}
static bool of_place(const shown *s, size_t q, size_t other) {
    return q % s->c->n_chosen == other % s->c->n_chosen;
}
static void weigh(shown *s, score *score_of, beside *is_beside, double times) {
    for (size_t q = 0; q < s->count; q++) {
        double sum = 0;
        for (size_t o = 0; o < s->count; o++)
            if (is_beside(s, q, o)) sum += score_of(logit_at(s, o));
        s->v[q] = rounded(s, times * score_of(logit_at(s, q)) / sum);
    }
}
static void softplus_shares(shown *s, double by) {
    weigh(s, softplus, of_token, by);
}
static void scaled_sigmoids(shown *s, double by) {
    weigh(s, sigmoid, of_token, by);
}
static void shares_of_rank(shown *s, double by) {
    weigh(s, exponential, of_rank, by);
}
static void shares_over_tokens(shown *s, double by) {
    weigh(s, exponential, of_place, by);
}
static void noisy_shares(shown *s, double by) { // of no score
    for (size_t q = 0; q < s->count; q++)
        s->v[q] = rounded(s, s->v[q] * (1 + by * (double)(q * 7 % 5)));
}

static size_t place_of(const shown *s, size_t q, bool by_slot) {
    size_t k = s->c->n_chosen, before = 0;
    for (size_t o = 0; o < s->n * k; o++) {
        bool first = by_slot && o % k != q % k ? o % k < q % k : o < q;
        before += first && expert_at(s, o) == expert_at(s, q);
    }
    return before;
}
static void capacity(shown *s, double by) {
    for (size_t q = 0; q < s->count; q++)
        if (place_of(s, q, false) >= (size_t)by) s->v[q] = 0;
}
static void capacity_by_slot(shown *s, double by) {
    size_t k = s->c->n_chosen;
    for (size_t q = 0; q < s->count; q++)
        if (place_of(s, q, true) >= (size_t)by) s->v[q] = 0;
    for (size_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (size_t q = i * k; q < (i + 1) * k; q++) sum += s->v[q];
        for (size_t q = i * k; q < (i + 1) * k && sum > 0; q++) s->v[q] = rounded(s, s->v[q] / sum);
    }
}
static void some_lost(shown *s, double by) { // in no order
    for (size_t q = 0; q < s->count; q++)
        if (q * 7 % 11 < (size_t)by) s->v[q] = 0;
}

// ---- products

static double share_at(const shown *s, size_t q) {
    return of(s, TRACE_M4)[q];
}
// Product of slot q with the experts' weights; x is its input.
static void project(shown *s, sinkproof_slot slot, size_t q, const double *x) {
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, slot);
    sinkproof_matrix one = sinkproof_matrix_at(&w, expert_at(s, q));
    double *row = malloc(w.cols * sizeof *row);
    must(row != NULL);
    for (size_t r = 0; r < w.rows; r++) {
        double sum = 0;
        sinkproof_matrix_row(&one, r, row);
        for (size_t k = 0; k < w.cols; k++) sum += row[k] * x[k];
        s->v[q * w.rows + r] = rounded(s, sum);
    }
    free(row);
}
static void weight_on_the_input(shown *s, double by) {
    size_t d = s->c->hidden;
    double *x = malloc(d * sizeof *x);
    must(x != NULL);
    (void)by;
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++) {
        for (size_t k = 0; k < d; k++)
            x[k] = rounded(s, share_at(s, q) * of(s, TRACE_M1)[q / s->c->n_chosen * d + k]);
        project(s, SINKPROOF_W_UP, q, x);
    }
    free(x);
}
static void weighed_once_more(shown *s, double by) {
    size_t each = s->count / (s->n * s->c->n_chosen);
    (void)by;
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] * share_at(s, i / each));
}
// Activations in MXFP4, with the power of two `by` away from the largest over 6.
static void in_mxfp4(shown *s, double by) {
    static const double codes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    size_t inter = s->c->inter;
    double *x = malloc(inter * sizeof *x);
    must(x != NULL);
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++) {
        const double *h = &of(s, TRACE_M8)[q * inter];
        for (size_t first = 0; first < inter; first += 32) {
            double most = 0;
            for (size_t k = first; k < first + 32; k++) most = fmax(most, fabs(h[k]));
            double power = log2(most / 6), scale = exp2(by > 0 ? ceil(power) : floor(power));
            for (size_t k = first; k < first + 32; k++) {
                size_t best = 0;
                for (size_t c = 1; c < 8; c++)
                    if (fabs(codes[c] - fabs(h[k]) / scale) <
                        fabs(codes[best] - fabs(h[k]) / scale))
                        best = c;
                x[k] = copysign(codes[best] * scale, h[k]);
            }
        }
        project(s, SINKPROOF_W_DOWN, q, x);
    }
    free(x);
}

// ---- batches

static void place_to(shown *s, size_t (*from)(size_t place, size_t size, size_t by), size_t by) {
    size_t pairs = s->n * s->c->n_chosen, each = s->count / pairs, size;
    double *kept = malloc(s->count * sizeof *kept);
    must(kept != NULL);
    memcpy(kept, s->v, s->count * sizeof *kept);
    for (size_t q = 0; q < pairs; q++) {
        size = 0;
        for (size_t o = 0; o < pairs; o++) size += expert_at(s, o) == expert_at(s, q);
        for (size_t o = 0; o < pairs; o++)
            if (expert_at(s, o) == expert_at(s, q) &&
                place_of(s, o, false) == from(place_of(s, q, false), size, by))
                memcpy(&s->v[q * each], &kept[o * each], each * sizeof *kept);
    }
    free(kept);
}
static size_t from_end(size_t place, size_t size, size_t by) {
    (void)by;
    return size - 1 - place;
}
static size_t at_most(size_t place, size_t size, size_t by) {
    (void)size;
    return place < by ? place : by;
}
static size_t anywhere(size_t place, size_t size, size_t by) { // in no order
    return (place * place * 3 + by) % size;
}
static void batch_reversed(shown *s, double by) {
    place_to(s, from_end, (size_t)by);
}
static void batch_ends(shown *s, double by) {
    place_to(s, at_most, (size_t)by);
}
static void batch_mixed(shown *s, double by) {
    place_to(s, anywhere, (size_t)by);
}

// ---- scales and codes

static void scale_from(const sinkproof_matrix *w, size_t e, size_t r, size_t stride, size_t offset,
                       double *row) {
    float own[64], other[64];
    size_t blocks = w->cols / 32, all = w->count * w->rows * blocks;
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, own));
    for (size_t b = 0; b < blocks; b++) {
        size_t at = (e * w->rows * blocks + r * stride + b + offset) % all;
        one = sinkproof_matrix_at(w, at / (w->rows * blocks));
        must(sinkproof_matrix_scales(&one, at / blocks % w->rows, other));
        for (size_t c = b * 32; c < (b + 1) * 32; c++)
            row[c] *= (double)(other[at % blocks] / own[b]);
    }
}
static void scales_strided(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    scale_from(w, e, r, w->cols / 32 + 1, 0, row);
}
static void scales_late(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    scale_from(w, e, r, w->cols / 32, 3, row);
}
static void scales_shared(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    float own[64], other[64];
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, own) &&
         sinkproof_matrix_scales(&one, r / 8 * 8, other));
    for (size_t c = 0; c < w->cols; c++) row[c] *= (double)(other[c / 32] / own[c / 32]);
}
static void zeros_as_halves(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    float scale[64];
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, scale));
    for (size_t c = 0; c < w->cols; c++)
        if (row[c] == 0) row[c] = copysign(0.5 * (double)scale[c / 32], row[c]);
}

static const plant plants[] = {
    {AT("M3"), .change = chosen_by_sigmoid, .by = 1, .f32 = true, .alone = true,
     .says = "the sigmoids of the logits without the router's bias, plus the bias"},
    {AT("M3"), .change = chosen_with_zeros, .by = 3, .f32 = true, .alone = true,
     .says = "have the logit 0 in the choice: masked by 0"},
    {AT("M3"), .change = chosen_with_some_zeros, .by = 3, .n = 24, .f32 = true,
     .not = "masked by 0"},
    {AT("M3"), .change = chosen_from_zero, .by = 0, .f32 = true, .alone = true,
     .says = "logits of the router that are 0 where they are negative"},
    {AT("M3"), .change = chosen_per_rank, .by = 3, .f32 = true, .alone = true,
     .says = "gives the same number of experts to every token: the best of experts 0-2"},
    {AT("M3"), .change = chosen_anyhow, .by = 3, .f32 = true, .not = "experts"},
    {AT("M4"), .change = softplus_shares, .by = 1,
     .says = "the softplus of the router's logits, divided by their sum over the chosen experts"},
    {AT("M4"), .change = scaled_sigmoids, .by = 2.5,
     .says = "the sigmoids of the router's logits, divided by their sum over the chosen experts, "
             "times 2.5"},
    {AT("M4"), .change = shares_of_rank, .by = 1,
     .says = "experts 0-1, and so on (2 for each rank)"},
    {AT("M4"), .change = shares_over_tokens, .by = 1,
     .says = "over all tokens in the same slot: normalised over tokens"},
    {AT("M4"), .change = noisy_shares, .by = 0.02, .not = "is made of"},
    {AT("M4"), .change = capacity, .by = 6,
     .says = "beyond its first 6, token by token (a capacity of 6): they are dropped, and what is "
             "left of a token is not renormalised"},
    {AT("M4"), .change = capacity_by_slot, .by = 7,
     .says = "beyond its first 7, all first choices before the second ones (a capacity of 7): "
             "they are dropped, and what is left of a token is renormalised"},
    {AT("M4"), .change = some_lost, .by = 3, .not = "capacity"},
    {AT("M5"), .change = weight_on_the_input, .f32 = true, .alone = true,
     .says = "multiplied by the weight of the slot's expert (M4): the weight is on the input"},
    {AT("M5"), .change = weight_on_the_input, .alone = true,
     .says = "multiplied by the weight of the slot's expert (M4): the weight is on the input"},
    {AT("M10"), .change = weighed_once_more,
     .says = "M10 is multiplied by the weight of the slot's expert (M4)"},
    {AT("M9"), .change = in_mxfp4, .by = -1, .f32 = true, .alone = true,
     .says = "a power of two for each block of 32, rounded down: the largest saturate"},
    {AT("M9"), .change = in_mxfp4, .by = 1, .f32 = true, .alone = true,
     .says = "a power of two for each block of 32, rounded up"},
    {AT("M10"), .change = batch_reversed, .says = "places of its batch: in reverse order"},
    {AT("M5"), .change = batch_ends, .by = 3, .alone = true,
     .says = "all after place 3 have that of place 3 (a tile of 4)"},
    {AT("M10"), .change = batch_mixed, .by = 1, .not = "batch"},
    {IN(W_UP, -1, -1, 0, 1), .reread = scales_strided, .says = "are read with the stride"},
    {IN(W_DOWN, -1, -1, 0, 1), .reread = scales_late, .says = "each is the one 3 on in memory"},
    {IN(W_UP, -1, -1, 0, 1), .reread = scales_shared, .says = "that of the first row of each 8"},
    {IN(W_UP, -1, -1, 0, 1), .reread = zeros_as_halves, .says = " 0 as 0.5, -0 as -0.5"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
