// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue of known mistakes of engines, each with a change that makes the judge's honest sets
// those of an engine with that mistake. It is data: an entry is a line of catalogue.inc.
#ifndef SINKPROOF_MISTAKES_H
#define SINKPROOF_MISTAKES_H

#include "audit/diagnose/block_readings.h"
#include "audit/judge/judge_meaning.h"
#include "audit/judge/judge_region.h"
#include "model/model.h"
#include "ref/policy.h"

enum { WEIGHT_EDITS = 16 };

// Weights that are read differently than stored, in every layer. The rows of queries, keys and
// values are stored one kind after another and split group by group (the heads of a group's
// queries, its key, its value), or stored by group and split by kind.
typedef struct mistake_weight_edit {
    unsigned slots;            // bits
    sinkproof_reading reading; // for a vector the column may be any function
    enum { NOT_FUSED, FUSED_BY_GROUP, FUSED_BY_KIND } fused; // queries, keys and values, see below
    bool borrowed; // replaced by the weights of another slot or another layer
    sinkproof_slot from;
    int layer_by;
    // The numbers in `experts`, `rows` and `columns` (of a vector all is one row): read from other
    // places, with the scales of MXFP4 from other places, and changed; all of it is rounded to
    // `kept`.
    bool rewritten;
    sinkproof_indices experts, rows, columns;
    sinkproof_from expert_from, row_from, column_from;
    size_t averaged; // 0; or rows (of a vector: numbers) of a unit: the mean over all units
    bool other_scales;
    sinkproof_from scale_expert_from, scale_row_from, scale_block_from;
    sinkproof_from scale_from;       // over all scales of a matrix, row by row; or own
    sinkproof_from scale_stack_from; // over those of all experts
    const double *scale_factors;     // for scales 2^-127 .. 2^127: what multiplies them; or NULL
    sinkproof_change change;
    bool of_codes;        // of MXFP4: the codes are changed, not their products with the scales
    block_reading blocks; // of ggml's blocks
    sinkproof_format kept;
} mistake_weight_edit;

// Another tensor of the trace, which `point` reads in the place of one of its inputs, or rows of
// the same in other places.
typedef struct mistake_input {
    bool on;
    sinkproof_trace_point point, input, from; // `from` of the layer that is `layer_by` away
    int layer_by;
    bool residual;           // from the residual that enters the layer, in the place of `from`
    sinkproof_moving moving; // of `from`
    sinkproof_make *make;    // or NULL: what is made of `from` is moved
    double numbers[SINKPROOF_MAKING_NUMBERS];
    const double *table;
    sinkproof_format kept; // to which moved numbers are rounded
    double
        less; // before that, less so many times a bias, whose elements belong to the last dimension
    sinkproof_slot bias;
} mistake_input;

// An engine with some mistakes: its configuration, weights, meaning and policy.
typedef struct supposed_engine {
    const sinkproof_model *model;
    sinkproof_config config;
    sinkproof_meaning meaning;
    sinkproof_policy policy;
    mistake_weight_edit edits[WEIGHT_EDITS];
    size_t n_edits;
    sinkproof_region region; // where the mistakes are; elsewhere nothing is compared
    sinkproof_moving moving;
    mistake_input input;
    size_t rows; // of the trace
    bool call;   // of a kernel, with nothing of the model around it
    // of a call: rows that came in each pass over a cache, and the row that begins a second piece;
    // 0: unknown
    size_t pass, piece;
} supposed_engine;

typedef struct known_mistake known_mistake;
// Returns false if the mistake cannot occur in this model or policy.
typedef bool mistake_suppose(supposed_engine *s, const known_mistake *mistake);

struct known_mistake {
    const char *id;   // "window-wide"
    const char *text; // "the window is one key too wide": what the engine does
    unsigned points;  // where it acts first, a bit for each sinkproof_trace_point
    mistake_suppose *suppose;
    double by;            // size of the mistake, if it has one
    unsigned slots;       // weights, as bits
    const char *override; // of the policy; or NULL
};

// The next of the edits of weights, as they are stored so far; NULL: there is no room.
mistake_weight_edit *add_weight_edit(supposed_engine *s, unsigned slots);

// All of them (roundings.c): those that have a line, then the roundings. NULL: there are fewer.
size_t mistake_count(void);
const known_mistake *mistake_at(size_t i);
// Those that have a line.
size_t written_mistake_count(void);
const known_mistake *written_mistake_at(size_t i);

// The policy with the mistake's override; false where it says that already.
mistake_suppose rounding_override_count;

// Whether the mistake may make infinities or NaN from finite numbers: a narrower range, 1/0, or an
// exponential without the maximum.
bool mistake_may_overflow(const known_mistake *mistake);

// A running sum in a narrower format, whose sets grow by a step for each term. It is tried only
// where no other mistake explains the points, and neither in pairs nor as the next best.
bool mistake_stands_alone(const known_mistake *mistake);

#endif
