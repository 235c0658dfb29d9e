// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a shorter cache costs a long context: keys evicted, with the first ones kept or not; keys
// and values of 8 or 4 bits, with those of the first tokens kept as they are or not. Each strategy
// computes every row from the same queries, keys and values as the full row: the error is its own,
// and the bound (bound.evict, bound.quantized-cache) stands beside it. With the model's sink
// logits, and without them.
#ifndef SINKPROOF_STRATEGIES_H
#define SINKPROOF_STRATEGIES_H

#include "audit/engine/runner.h"

typedef struct sinkproof_strategy {
    const char *name, *what;
    int bits;    // of keys and values; 0: as the run has them
    bool evicts; // only the last ones are there,
    bool first;  // and the first ones; or, of few bits, all but the first ones
} sinkproof_strategy;
enum { SINKPROOF_STRATEGIES = 6 };
extern const sinkproof_strategy sinkproof_strategies[SINKPROOF_STRATEGIES];

// `first` tokens are kept as they are; a row that evicts keeps `recent` more, itself among them.
// Without the first ones it keeps first + recent of the last: as many.
typedef struct sinkproof_strategy_plan {
    size_t first, recent;
} sinkproof_strategy_plan;
// "FIRST,RECENT", RECENT at least 1.
bool sinkproof_strategy_parse(const char *text, sinkproof_strategy_plan *plan,
                              sinkproof_error *error);

// Sums over a layer's rows, heads and coordinates, of one strategy, with sinks or without.
typedef struct sinkproof_strategy_error {
    double error, truth, bound; // squares: of o' - o, of o, of the bound
    double worst;               // the largest |o' - o| over its bound; at most 1
    double largest;             // the largest |o' - o|
    size_t rows, vacuous; // rows of heads; those whose bound two averages of values never exceed
} sinkproof_strategy_error;
double sinkproof_strategy_relative(const sinkproof_strategy_error *e); // root of error / truth
double sinkproof_strategy_bounded(const sinkproof_strategy_error *e);  // root of bound / truth
double sinkproof_strategy_vacuous(const sinkproof_strategy_error *e);  // share of the rows

// A whole run whose attention is the strategy's from layer to layer, against the run over the full
// cache: the final normed state, and the last token's logits.
typedef struct sinkproof_strategy_end {
    double state, logits; // relative, root of sums of squares
    bool same_token;      // the largest logit of the last token
} sinkproof_strategy_end;

typedef struct sinkproof_strategy_study {
    sinkproof_strategy_plan plan;
    size_t n_layers, n;
    // [layers][strategies][2]: [0] with the model's sinks, [1] without.
    sinkproof_strategy_error *errors;
    bool whole; // `end` is measured: the engine goes on from A11
    sinkproof_strategy_end end[SINKPROOF_STRATEGIES][2];
} sinkproof_strategy_study;

const sinkproof_strategy_error *sinkproof_strategy_at(const sinkproof_strategy_study *study,
                                                      size_t layer, size_t strategy, bool sinks);
sinkproof_strategy_error sinkproof_strategy_total(const sinkproof_strategy_study *study,
                                                  size_t strategy, bool sinks);

bool sinkproof_strategy_run(const sinkproof_model *model, sinkproof_runner *runner,
                            const sinkproof_strategy_plan *plan, bool whole, size_t n,
                            const int32_t *tokens_n, void (*progress)(void *context, double share),
                            void *progress_context, sinkproof_strategy_study *study,
                            sinkproof_error *error);
void sinkproof_strategy_free(sinkproof_strategy_study *study);

#endif
