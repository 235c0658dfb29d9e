// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cost of a shorter cache in a long context: keys are evicted, with the first ones kept or not,
// or the first ones alone; or keys and values have 8 or 4 bits, with those of the first tokens left
// unchanged or not. Each strategy computes every row from the same queries, keys and values as the
// full row: the error is its own, and is compared with its bound (bound.evict,
// bound.quantized-cache). With the model's sink logits, and without them if there are any.
#ifndef SINKPROOF_STRATEGIES_H
#define SINKPROOF_STRATEGIES_H

#include "audit/engine/runner.h"

typedef struct cache_strategy {
    const char *name, *what;
    int bits;    // of keys and values; 0: the run's own format
    bool evicts; // keeps only the last keys,
    bool first;  // and the first ones; with few bits: leaves the first ones unchanged
    bool others; // evicts the first ones alone, from row first + recent on
} cache_strategy;
enum { STRATEGY_COUNT = 7 };
extern const cache_strategy cache_strategies[STRATEGY_COUNT];

// `first` tokens are kept unchanged; an evicting row keeps `recent` more, its own included. Without
// the first ones it keeps the last first + recent: the same number.
typedef struct strategy_plan {
    size_t first, recent;
} strategy_plan;
// Parses "FIRST,RECENT", with RECENT at least 1.
bool strategy_parse(const char *text, strategy_plan *plan, sinkproof_error *error);

// Sums over a layer's rows, heads and coordinates, for one strategy, with or without sinks.
typedef struct strategy_error {
    // sums of squares: of o' - o, of o, of the bound, and of the lesser of the bound and the
    // row-wise one (an evicting cache has one bound)
    double error, truth, bound, row_bound;
    double worst;         // the largest |o' - o| over the lesser bound; at most 1
    double largest;       // the largest |o' - o|
    size_t rows, vacuous; // rows of heads; those whose bound any two averages of values satisfy
} strategy_error;
double strategy_relative_error(const strategy_error *e); // root of error / truth
double strategy_relative_bound(const strategy_error *e); // root of bound / truth
double strategy_relative_row_bound(const strategy_error *e);
double strategy_vacuous_share(const strategy_error *e); // share of vacuous rows

// A whole run with the strategy's attention in every layer, compared with the run over the full
// cache: the final normed state, and the last token's logits; and the mean of -ln p(next token)
// over the rows from first + recent on, whose caches differ.
typedef struct strategy_end {
    double state, logits; // relative, roots of sums of squares
    bool same_token;      // the last token's largest logit is the same
    double loss;          // NAN: no such row has a next token
} strategy_end;

typedef struct strategy_study {
    strategy_plan plan;
    size_t n_layers, n;
    size_t runs; // 2: with the model's sinks, and without; 1: the model has none
    // [layers][strategies][2]
    strategy_error *errors;
    bool whole; // `end` is valid: the engine continues from A11
    strategy_end end[STRATEGY_COUNT][2];
    double full_loss[2];
} strategy_study;

// run: 0 as the model is, 1 without its sinks.
const strategy_error *strategy_at(const strategy_study *study, size_t layer, size_t strategy,
                                  size_t run);
strategy_error strategy_total_error(const strategy_study *study, size_t strategy, size_t run);

bool strategy_run(const sinkproof_model *model, sinkproof_runner *runner, const strategy_plan *plan,
                  bool whole, size_t n, const int32_t *tokens_n,
                  void (*progress)(void *context, double share), void *progress_context,
                  strategy_study *study, sinkproof_error *error);
void strategy_free(strategy_study *study);

#endif
