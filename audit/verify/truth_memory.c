// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/verify/truth_memory.h"

#include "proofs/truth/sliced.h"
#include "ref/walk.h"

typedef struct account {
    const sinkproof_config *config;
    size_t n, threads;
    long bits;
    double ball, held; // bytes: of a ball, of the points that are held
    double at[TRACE_POINTS];
    truth_memory most;
} account;

// Two words of a midpoint are within a ball. More are a piece of memory of their own, before which
// the library has a word, in multiples of two.
static double ball_bytes(long bits) {
    double words = (double)((bits + 63) / 64), pair = 2 * sizeof(mp_limb_t);
    if (words <= 2) return sizeof(arb_struct);
    return sizeof(arb_struct) + pair * (double)((size_t)(words + 2) / 2);
}

// The work space of a product. An expert's inputs are gathered, its outputs are new; all tokens may
// choose the same one.
static double product_bytes(const account *a, const sinkproof_walk_step *step, double inputs) {
    size_t rows = step->weights[0].rows, cols = step->weights[0].cols, n = a->n;
    double more = 0;
    if (step->operation != SINKPROOF_LINEAR && step->operation != SINKPROOF_MULTIPLY) return 0;
    if (step->operation == SINKPROOF_MULTIPLY) {
        double slots = (double)n * (double)a->config->n_chosen;
        n = inputs > (double)n * (double)cols ? (size_t)(inputs / (double)cols) : n;
        more = slots * (double)cols * sizeof(arb_struct) + (double)n * (double)rows * a->ball;
    }
    return more + sinkproof_sliced_bytes(rows, cols, n, a->bits, a->threads);
}

static bool account_step(void *context, const sinkproof_walk_step *step) {
    account *a = context;
    double own = a->ball * (double)sinkproof_trace_elements(a->config, step->point, a->n);
    double inputs = step->n_inputs > 0 ? a->at[step->inputs[0].point] / a->ball : 0;
    double now = a->held + own + product_bytes(a, step, inputs);
    if (now > a->most.bytes) a->most = (truth_memory){now, step->point};
    for (size_t i = 0; i < step->n_inputs; i++) {
        if (!step->last[i]) continue;
        a->held -= a->at[step->inputs[i].point];
        a->at[step->inputs[i].point] = 0;
    }
    a->held += own - a->at[step->point];
    a->at[step->point] = own;
    return true;
}

truth_memory sinkproof_truth_memory(const sinkproof_model *model, size_t n, long bits,
                                    size_t threads) {
    account a = {.config = sinkproof_model_config(model),
                 .n = n,
                 .threads = threads > 0 ? threads : 1,
                 .bits = bits,
                 .ball = ball_bytes(bits)};
    sinkproof_walk(model, account_step, &a);
    return a.most;
}
