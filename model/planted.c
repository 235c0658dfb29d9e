// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted circuit of GPT-2's sink, and the same without a bias of queries.
//
// Of 96 coordinates five are reserved: no embedding, no position but the first and no layer but the
// first perceptron writes into them.
//   the trigger   8 and 80: position 1 holds 32 and -32 there
//   the massive   17, 47, 56: the first perceptron writes 4096, -2048, -2048 there at position 1
// Two of its neurons make a step: both read the difference of the trigger, whose mean is 0, so that
// subtracting the mean in a norm has no effect; one begins 16 later than the other. Beyond both
// they differ by 16, below by almost nothing, and 256 times 16 is 4096. The first of each head's
// key coordinates reads the massive ones with the factors 2, -1, -1. These sum to 0, as the massive
// coordinates do: for a key without them the norm's mean adds nothing either. The query there is
// the bias alone: 1 to 3/2, and 0 in the last head. All other weights are random, and small enough
// for bounds that hold for every sequence of tokens (proofs/truth/circuit.c).
#include "model/planted.h"

#include <stdint.h>
#include <string.h>

#define ALL                                                                                        \
    { 0, SIZE_MAX, 1 }
#define AT(i)                                                                                      \
    { i, i, 1 }
#define HEADS                                                                                      \
    { 0, SIZE_MAX, 16 }
#define IN(slot, layer, row, col, value)                                                           \
    { SINKPROOF_##slot, layer, row, col, value }
#define STEPS                                                                                      \
    { 0, 1, 1 }
#define EACH(slot, value) IN(slot, ALL, ALL, ALL, value)

enum { RISES = 8, FALLS = 80, TWICE = 17, ONCE = 47, AGAIN = 56 };

// No random weight writes into coordinate c.
#define RESERVED(c)                                                                                \
    IN(EMBEDDING, ALL, ALL, AT(c), 0), IN(POSITIONS, ALL, ALL, AT(c), 0),                          \
        IN(W_O, ALL, AT(c), ALL, 0), IN(B_O, ALL, ALL, AT(c), 0), IN(W_DOWN, ALL, AT(c), ALL, 0),  \
        IN(B_DOWN, ALL, ALL, AT(c), 0)

// Neurons 0 and 1 of the first perceptron write 16 times `times` into coordinate c, after the step.
#define STEP(c, times)                                                                             \
    IN(W_DOWN, AT(0), AT(c), AT(0), times), IN(W_DOWN, AT(0), AT(c), AT(1), -(times))

//> gpt2.circuit
static const planted_value circuit[] = {
    // The norms have scale 1 and shift 0.
    EACH(ATTN_NORM, 1),
    EACH(MLP_NORM, 1),
    EACH(FINAL_NORM, 1),
    EACH(ATTN_NORM_B, 0),
    EACH(MLP_NORM_B, 0),
    EACH(FINAL_NORM_B, 0),
    RESERVED(RISES),
    RESERVED(FALLS),
    RESERVED(TWICE),
    RESERVED(ONCE),
    RESERVED(AGAIN),
    // The trigger in the positions, and the step that reads it.
    IN(POSITIONS, ALL, AT(0), AT(RISES), 32),
    IN(POSITIONS, ALL, AT(0), AT(FALLS), -32),
    IN(W_UP, AT(0), STEPS, ALL, 0),
    IN(W_UP, AT(0), STEPS, AT(RISES), 4),
    IN(W_UP, AT(0), STEPS, AT(FALLS), -4),
    IN(B_UP, AT(0), ALL, AT(0), -8),
    IN(B_UP, AT(0), ALL, AT(1), -24),
    IN(W_DOWN, AT(0), ALL, STEPS, 0),
    STEP(TWICE, 256),
    STEP(ONCE, -128),
    STEP(AGAIN, -128),
    // In each head's first coordinate, keys read the massive ones and queries are their bias.
    IN(W_K, ALL, HEADS, AT(TWICE), 2),
    IN(W_K, ALL, HEADS, AT(ONCE), -1),
    IN(W_K, ALL, HEADS, AT(AGAIN), -1),
    IN(W_Q, ALL, HEADS, ALL, 0),
    EACH(B_Q, 0),
    // The query biases, which the null model lacks.
    IN(B_Q, ALL, ALL, AT(0), 1),
    IN(B_Q, ALL, ALL, AT(16), 1.125F),
    IN(B_Q, ALL, ALL, AT(32), 1.25F),
    IN(B_Q, ALL, ALL, AT(48), 1.375F),
    IN(B_Q, ALL, ALL, AT(64), 1.5F),
};
enum { QUERY_BIASES = 5 }; // the last entries
//< gpt2.circuit

static const planted_spread weak[] = {
    {SINKPROOF_POSITIONS, 250}, {SINKPROOF_W_Q, 30},     {SINKPROOF_W_K, 30},
    {SINKPROOF_W_V, 500},       {SINKPROOF_W_O, 500},    {SINKPROOF_W_UP, 500},
    {SINKPROOF_B_UP, 50},       {SINKPROOF_W_DOWN, 500},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
static const planted_model models[] = {
    {"gpt2-circuit", weak, COUNT(weak), circuit, COUNT(circuit)},
    {"gpt2-null", weak, COUNT(weak), circuit, COUNT(circuit) - QUERY_BIASES},
};

const planted_model *planted_find(const char *name) {
    for (size_t i = 0; i < COUNT(models); i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}

static bool span_has_index(index_span span, size_t i) {
    return span.from <= i && i <= span.to && (i - span.from) % span.step == 0;
}

void planted_row_write(const planted_model *planted, size_t l, sinkproof_slot slot, size_t r,
                       size_t cols, double *row_c) {
    for (size_t i = 0; i < planted->n_written; i++) {
        const planted_value *w = &planted->written[i];
        if (w->slot != slot || !span_has_index(w->layer, l) || !span_has_index(w->row, r)) continue;
        for (size_t c = w->col.from; c < cols && c <= w->col.to; c += w->col.step)
            row_c[c] = w->value;
    }
}
