// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted part: the coordinates into which no random weight writes, and the step of the first
// perceptron. Their places are found in the weights.
#include "proofs/truth/circuit_internal.h"

static bool is_zero(arb_srcptr a, size_t n, size_t stride) {
    for (size_t i = 0; i < n; i++)
        if (!arb_is_zero(a + i * stride)) return false;
    return true;
}

//> gpt2.circuit
// ---- the reserved coordinates

static bool norms_are_plain(const circuit_derivation *d, size_t l) {
    static const sinkproof_slot ones[] = {SINKPROOF_ATTN_NORM, SINKPROOF_MLP_NORM};
    static const sinkproof_slot zeros[] = {SINKPROOF_ATTN_NORM_B, SINKPROOF_MLP_NORM_B};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        size_t rows, cols;
        arb_ptr one = circuit_weight_as_balls(d, l, ones[i], &rows, &cols);
        arb_ptr zero = circuit_weight_as_balls(d, l, zeros[i], &rows, &cols);
        for (size_t c = 0; c < cols; c++)
            good = good && arb_is_one(one + c) && arb_is_zero(zero + c);
        ball_vector_release(one, cols);
        ball_vector_release(zero, cols);
    }
    return good;
}

//> gpt2.bos-zero
// Coordinates whose column of the embedding is 0, and the rest of the longest embedding.
static void find_reserved_coordinates(circuit_derivation *d, arb_t longest) {
    size_t rows, cols;
    arb_t size;
    arb_init(size);
    arb_ptr embedding = circuit_weight_as_balls(d, 0, SINKPROOF_EMBEDDING, &rows, &cols);
    for (size_t c = 0; c < cols; c++) {
        d->reserved_c[c] = is_zero(embedding + c, rows, cols);
        d->n_reserved += d->reserved_c[c];
    }
    arb_zero(longest);
    for (size_t r = 0; r < rows; r++) {
        circuit_norm(size, embedding + r * cols, d->reserved_c, cols, d->bits);
        arb_max(longest, longest, size, d->bits);
    }
    ball_vector_release(embedding, rows * cols);
    arb_clear(size);
}
//< gpt2.bos-zero

// Whether layer l writes nothing into a reserved coordinate, except by the first perceptron.
static bool layer_leaves_reserved(const circuit_derivation *d, size_t l) {
    static const sinkproof_slot by_rows[] = {SINKPROOF_W_O, SINKPROOF_W_DOWN};
    static const sinkproof_slot biases[] = {SINKPROOF_B_O, SINKPROOF_B_DOWN};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        size_t rows, cols, one, wide;
        arb_ptr a = circuit_weight_as_balls(d, l, by_rows[i], &rows, &cols);
        arb_ptr b = circuit_weight_as_balls(d, l, biases[i], &one, &wide);
        for (size_t c = 0; c < rows; c++) {
            if (!d->reserved_c[c]) continue;
            bool first = by_rows[i] == SINKPROOF_W_DOWN && l == 0;
            good = good && arb_is_zero(b + c) && (first || is_zero(a + c * cols, cols, 1));
        }
        ball_vector_release(a, rows * cols);
        ball_vector_release(b, wide);
    }
    return good;
}

// ---- the step: the first perceptron's output in reserved coordinates

// The neurons that write there must read only reserved coordinates, without their mean, and write
// nowhere else.
static bool find_step(circuit_derivation *d, arb_srcptr up, arb_srcptr down, size_t inter) {
    size_t hidden = d->hidden;
    bool good = true;
    arb_t sum;
    arb_init(sum);
    for (size_t f = 0; f < inter; f++) {
        for (size_t c = 0; c < hidden; c++)
            if (d->reserved_c[c] && !arb_is_zero(down + c * inter + f))
                d->step_f[f] = d->massive_c[c] = true;
        arb_zero(sum);
        for (size_t c = 0; c < hidden && d->step_f[f]; c++) {
            arb_add(sum, sum, up + f * hidden + c, d->bits);
            good = good && (d->reserved_c[c] || (arb_is_zero(up + f * hidden + c) &&
                                                 arb_is_zero(down + c * inter + f)));
        }
        good = good && arb_is_zero(sum);
    }
    arb_clear(sum);
    return good;
}

// gelu(y) = y (1 - tau), tau(y) = (1 - tanh(..)) / 2 falls: 0 <= y - gelu(y) <= most tau(least)
// for 0 < least <= y <= most.
static void gelu_deficit(arb_t out, const arb_t least, const arb_t most, slong bits) {
    arb_t gelu;
    arb_init(gelu);
    sinkproof_truth_gelu_tanh(gelu, least, 1, bits);
    arb_div(gelu, gelu, least, bits);
    arb_sub_ui(gelu, gelu, 1, bits);
    arb_neg(gelu, gelu);
    arb_mul(gelu, gelu, most, bits);
    arb_zero(out);
    arb_union(out, out, gelu, bits);
    arb_clear(gelu);
}

// The input of neuron f at position i: y = b_f + g / sigma, g = sum_c up_fc p_ic. It lies between
// b_f + g over the largest deviation, and b_f + |up_f| sqrt(hidden).
typedef struct seen {
    arb_t g, least, most;
} seen;

static void neuron_input(const circuit_derivation *d, seen *s, arb_srcptr up_c, arb_srcptr place_c,
                         const arb_t bias, const arb_t deviation) {
    arb_dot(s->g, NULL, 0, up_c, 1, place_c, 1, (slong)d->hidden, d->bits);
    arb_div(s->least, s->g, deviation, d->bits);
    arb_add(s->least, s->least, bias, d->bits);
    arb_dot(s->most, NULL, 0, up_c, 1, up_c, 1, (slong)d->hidden, d->bits);
    arb_mul_ui(s->most, s->most, d->hidden, d->bits);
    arb_sqrt(s->most, s->most, d->bits);
    arb_add(s->most, s->most, bias, d->bits);
}

// The output of neuron f without the slope g of 1 / sigma: b_f minus gelu_deficit if its input is
// positive, gelu(b_f) if it reads nothing.
static bool neuron_output(const circuit_derivation *d, seen *s, arb_t y, const arb_t bias) {
    if (arb_is_zero(s->g)) {
        sinkproof_truth_gelu_tanh(y, bias, 1, d->bits);
        return true;
    }
    gelu_deficit(y, s->least, s->most, d->bits);
    arb_sub(y, bias, y, d->bits);
    return arb_is_positive(s->least);
}

// held_c += sum_f down_cf gelu(y_f). The terms with 1 / sigma must cancel over the neurons.
bool circuit_add_step(circuit_derivation *d, size_t i, const arb_t deviation) {
    size_t hidden = d->hidden, inter, cols, one;
    arb_ptr up = circuit_weight_as_balls(d, 0, SINKPROOF_W_UP, &inter, &cols);
    arb_ptr bias_f = circuit_weight_as_balls(d, 0, SINKPROOF_B_UP, &one, &cols);
    arb_ptr down = circuit_weight_as_balls(d, 0, SINKPROOF_W_DOWN, &one, &cols);
    arb_ptr slope_c = ball_vector(hidden), held_c = d->held_ic + i * hidden;
    bool good = true;
    seen s;
    arb_t y;
    balls_init(s.g, s.least, s.most, y);
    for (size_t f = 0; f < inter; f++) {
        if (!d->step_f[f]) continue;
        neuron_input(d, &s, up + f * hidden, d->place_ic + i * hidden, bias_f + f, deviation);
        good = neuron_output(d, &s, y, bias_f + f) && good;
        for (size_t c = 0; c < hidden; c++) {
            arb_addmul(held_c + c, down + c * inter + f, y, d->bits);
            arb_addmul(slope_c + c, down + c * inter + f, s.g, d->bits);
        }
    }
    good = good && is_zero(slope_c, hidden, 1);
    balls_clear(s.g, s.least, s.most, y);
    ball_vector_release(slope_c, hidden);
    ball_vector_release(up, inter * hidden);
    ball_vector_release(bias_f, inter);
    ball_vector_release(down, inter * hidden);
    return circuit_premise(d, good, 0, "a step of the perceptron is not beyond its ends");
}

bool circuit_find_planted(circuit_derivation *d, arb_t longest) {
    size_t inter, cols, rows;
    bool good = true;
    find_reserved_coordinates(d, longest);
    for (size_t l = 0; l < d->config->n_layers && good; l++)
        good = circuit_premise(d, norms_are_plain(d, l), l,
                               "a norm has another scale than 1 or a shift") &&
               circuit_premise(d, layer_leaves_reserved(d, l), l,
                               "something writes into a reserved coordinate");
    arb_ptr up = circuit_weight_as_balls(d, 0, SINKPROOF_W_UP, &inter, &cols);
    arb_ptr down = circuit_weight_as_balls(d, 0, SINKPROOF_W_DOWN, &rows, &inter);
    good = good && circuit_premise(d, find_step(d, up, down, inter), 0,
                                   "a neuron of the step sees or writes what is drawn");
    ball_vector_release(up, inter * cols);
    ball_vector_release(down, rows * inter);
    return good;
}
//< gpt2.circuit
