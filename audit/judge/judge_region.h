// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A part of a point, and a point whose elements stand in other places than they should: where a
// supposed mistake acts, and what it moves.
#ifndef SINKPROOF_JUDGE_REGION_H
#define SINKPROOF_JUDGE_REGION_H

#include "audit/judge/judge_change.h"
#include "audit/judge/judge_layout.h"
#include "audit/trace/trace.h"
#include "model/safetensors.h"
#include "ref/points.h"

// The indices first, first + step, ... below `end`; of these, those that are marked in `some_i`,
// unless it is NULL. end 0: all. step 0 is 1.
typedef struct sinkproof_indices {
    size_t first, end, step;
    const uint8_t *some_i;
} sinkproof_indices;

typedef enum sinkproof_dimension {
    ALONG_ROWS, // tokens
    ALONG_HEADS,
    ALONG_GROUPS, // of heads: those that share keys and values
    ALONG_SLOTS,
    ALONG_EXPERTS, // of slots, and of the router's logits
    ALONG_COORDINATES,
    ALONG_KEYS,
    SINKPROOF_DIMENSIONS
} sinkproof_dimension;

// The elements that are in every range. A point without a dimension that is not whole has none.
typedef struct sinkproof_region {
    sinkproof_indices along[SINKPROOF_DIMENSIONS];
} sinkproof_region;

// The index of an element in each dimension; SIZE_MAX in those that the point lacks.
typedef struct sinkproof_place {
    size_t along[SINKPROOF_DIMENSIONS];
} sinkproof_place;

// chosen_nk: the experts in the slots of the point's layer; NULL: unknown.
sinkproof_place sinkproof_place_of(const sinkproof_config *config, sinkproof_trace_point point,
                                   size_t n, const int32_t *chosen_nk, size_t at);
// The size of a dimension of the point; 0: it lacks it.
size_t sinkproof_region_size(const sinkproof_config *config, sinkproof_trace_point point, size_t n,
                             sinkproof_dimension along);

bool sinkproof_region_is_whole(const sinkproof_region *region);
bool sinkproof_region_holds(const sinkproof_region *region, const sinkproof_place *place);

// What stands in the place of an element.
typedef enum sinkproof_source {
    SINKPROOF_FROM_OWN,      // itself
    SINKPROOF_FROM_SHIFTED,  // the element `by` places on
    SINKPROOF_FROM_ROLLED,   // the same in a circle
    SINKPROOF_FROM_FIXED,    // that at `by`
    SINKPROOF_FROM_MIRRORED, // that at by - i
    SINKPROOF_FROM_NOWHERE,  // 0
    SINKPROOF_FROM_RULE,     // that at rule(i, size, by)
    SINKPROOF_FROM_LAYOUT,   // of a point of three axes: that of layout number `by`
    // of slots: that of the token `by` places on among those of the same expert, in a circle
    SINKPROOF_FROM_BATCH,
    SINKPROOF_FROM_BATCH_BY_SLOT // the same; all first choices come before all second ones
} sinkproof_source;

// Which slots of a region are changed, by the experts in them.
typedef enum sinkproof_pick {
    SINKPROOF_PICK_ALL,
    SINKPROOF_PICK_NOT_HIGHEST, // all but the token's expert with the highest number
    SINKPROOF_PICK_NOT_LOWEST,
    SINKPROOF_PICK_BEYOND, // of each expert's tokens those after the first `picked`
    SINKPROOF_PICK_BEFORE  // those before the last `picked`
} sinkproof_pick;

typedef struct sinkproof_from {
    sinkproof_source source;
    long by;
    size_t (*rule)(size_t i, size_t size, size_t by);
    size_t first, size; // of a circle: the places [first, first + size); size 0: all
} sinkproof_from;
// The index of `size` that stands at i; SIZE_MAX: none.
size_t sinkproof_from_index(const sinkproof_from *from, size_t i, size_t size);

bool sinkproof_indices_hold(const sinkproof_indices *in, size_t i);

// The numbers of a tensor as a mistake makes them, from those that it should have and from the
// trace. `width` is what is known of the distance between them and the engine's, without roundings
// of the result; it is 0 at the beginning.
enum { SINKPROOF_MAKING_NUMBERS = 6 };
typedef struct sinkproof_making {
    const sinkproof_config *config;
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    sinkproof_trace_point point;
    size_t layer, n, all;
    const int32_t *chosen_nk; // NULL: unknown
    const double *x;
    const double *radius; // of the sets of x; NULL: x is exact
    const double *numbers;
    const double *table; // as many as the maker needs, or NULL
} sinkproof_making;
// Returns false where it cannot be made.
typedef bool sinkproof_make(const sinkproof_making *of, double *y, double *width);

// Elements of a point in a region: each is `factor` times another of the same point, along one
// dimension, plus `addend`, plus `plus_times` another tensor of the trace, and then changed. `on`
// false: nothing is moved.
typedef struct sinkproof_moving {
    bool on;
    sinkproof_trace_point point;
    sinkproof_region region;
    sinkproof_dimension along;
    sinkproof_from from;
    double factor, addend;
    double plus_times; // 0: no other tensor
    sinkproof_trace_point plus;
    int plus_layer_by;
    bool by_shares; // of slots: each is multiplied by its expert's share, M4 of the trace
    sinkproof_change change;
    sinkproof_change then; // of whole rows, after that
    sinkproof_pick pick;
    size_t picked;
    sinkproof_make *make; // or NULL; what it makes is moved in the place of the point's numbers
    bool adds;            // it makes what is added to them
    double numbers[SINKPROOF_MAKING_NUMBERS];
    const double *table;
} sinkproof_moving;

// The element whose value stands at `at`; SIZE_MAX: none.
size_t moved_from(const sinkproof_moving *moving, const sinkproof_config *config, size_t n,
                  const int32_t *chosen_nk, size_t at);

// Whether the moving picks the slot.
bool moving_picks(const sinkproof_moving *moving, const sinkproof_config *config, size_t n,
                  const int32_t *chosen_nk, const sinkproof_place *place);

// The numbers of a point in n tokens: chosen_nk as above, the tensor that is added (NULL: none),
// and the largest size among them.
typedef struct sinkproof_tensor_numbers {
    const sinkproof_config *config;
    size_t n;
    const int32_t *chosen_nk;
    const sinkproof_tensor *plus, *shares; // NULL: none
    double largest;
    const double *x;
} sinkproof_tensor_numbers;

// y: those of [first, end), whole tokens, as they stand. Returns false if memory runs out.
bool sinkproof_moved_numbers(const sinkproof_moving *moving, const sinkproof_tensor_numbers *of,
                             size_t first, size_t end, double *y);

#endif
