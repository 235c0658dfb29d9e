// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Causes that no catalogue lists: an operation, with numbers that are fitted to the trace, at a
// place of a point. A file that knows of operations looks at what is outside and offers candidates;
// each is tried like a mistake of the catalogue, and kept if it explains the point.
#ifndef SINKPROOF_COMPOSED_H
#define SINKPROOF_COMPOSED_H

#include "audit/diagnose/search.h"

// A larger point is not composed: its numbers and their sets would take more than half a GiB.
enum { COMPOSED_ELEMENTS = 1 << 24 };

enum { COMPOSED_NUMBERS = 6, COMPOSED_ID = 96, COMPOSED_TEXT = 384 };

// An activation of other parts (composed_activations.c), in the words of the meaning but for the
// clamps, which are the numbers themselves.
typedef struct activation_choice {
    sinkproof_pair_rule *pair_at;
    size_t pair_by;
    sinkproof_gating gating;
    double sigmoid_by, swish_plus, gate_low, gate_high, up_low, up_high, up_times, up_plus;
    bool up_size, up_plus_first;
} activation_choice;

// A composed mistake. `operate` changes the supposed engine, and may read the numbers: its second
// argument is the first member of this struct.
typedef struct composed_mistake {
    known_mistake mistake; // its `suppose` is suppose_composed
    char id[COMPOSED_ID], text[COMPOSED_TEXT];
    mistake_suppose *operate;            // or NULL
    const known_mistake *what;           // a mistake of the catalogue that is made here; or NULL
    sinkproof_region region;             // where: elsewhere the point is as defined
    sinkproof_moving moving;             // what stands in other places
    mistake_input input;                 // what is read in the place of an input
    sinkproof_attending attending;       // of attention: what `operate` makes of it
    mistake_weight_edit edit;            // of weights; or of no slots
    sinkproof_from from;                 // of the rotation: the pair whose frequency a pair has
    const double *frequency_p;           // or the frequencies of the pairs
    const double *table;                 // or a number for each row
    const double *position_plus;         // or what is added to each position
    const sinkproof_turn_entry *entry_k; // or the entries of the table
    double numbers[COMPOSED_NUMBERS];
    activation_choice activation;  // which `operate` may read
    double *by;                    // the factor above that is said of one layer alone; NULL: none
    double *fitted;                // the number above whose range is said; NULL: none
    struct composed_mistake *next; // of the diagnosis
} composed_mistake;

// Whether it is a guess of attention, which knows of sequences: attention_causes.c.
bool composed_is_of_attention(const composed_mistake *m);

// Marks of indices, which regions of composed mistakes read.
typedef struct composed_marks {
    struct composed_marks *next;
    uint8_t of[];
} composed_marks;

// One failing point, which nothing else explains.
typedef struct composing {
    search *s;
    size_t place, n; // n: tokens
    unsigned left;   // the failing points of the place that nothing explains yet
    sinkproof_trace_point point;
    const sinkproof_point_report *report;
    size_t elements;
    const uint8_t *marks;            // of the elements outside
    const double *v, *lo, *hi, *mid; // the engine's values, and their sets by the definition
    double least;                    // width of a set, for numbers that are fitted
    double step;                     // of the traced format, relative to a value
    const int32_t *chosen_nk;        // the layer's experts; NULL: the point is of no layer
    size_t n_regions;                // parts of the point that hold every element outside
    size_t n_ranges;                 // of those, the ranges, which come first
    sinkproof_region regions[16];
    diagnosed_finding *found; // NULL: nothing explains it yet
    size_t tried, fitted;     // trials, and engines whose numbers were asked for
} composing;

// Adds a composed mistake to the diagnosis. It acts first at the point in question, its region is
// whole, and nothing is moved; the caller sets `operate`, `what`, `moving` or `input`, the numbers,
// and both texts. NULL if memory runs out.
composed_mistake *composing_new(composing *c);
void SINKPROOF_PRINTF(2, 3) composed_name(composed_mistake *m, const char *format, ...);
void SINKPROOF_PRINTF(2, 3) composed_say(composed_mistake *m, const char *format, ...);
// Writes ", in head 3 alone" or "" behind the text, and the same in short behind the id.
void composed_say_region(const composing *c, composed_mistake *m);

// The same for a mistake that moves or changes the point: in its place; elsewhere the point is
// compared too.
void composed_say_moved(const composing *c, composed_mistake *m);
// Tries the point moved or changed so in each of its regions. id and text follow the point's name.
bool composing_try_moving(composing *c, const sinkproof_moving *how, const char *id,
                          const char *text);
// fitted: which of its numbers was, whose range is said; 0: none.
bool composing_try_fitted(composing *c, const sinkproof_moving *how, size_t fitted, const char *id,
                          const char *text);
// Writes the part of an input behind some words: "heads 3-4"; or nothing.
void composed_say_part(const composing *c, composed_mistake *m, sinkproof_trace_point point,
                       const sinkproof_region *part, const char *before);
// What a point is called as an input; NULL: it is none.
const char *composed_input_words(sinkproof_trace_point point);
const char *composed_slot_words(sinkproof_slot slot); // what a weight is called; NULL: not listed

// Whether no more is tried at the point, nor fitted.
bool composing_is_spent(const composing *c);
// Tries it, and adds it to what explains the point if it does. Does nothing once the budget is
// spent. Returns false on error.
bool composing_try(composing *c, composed_mistake *m);

// Offers candidates for the point. Returns false on error.
typedef bool compose_candidates(composing *c);
compose_candidates compose_attention_everywhere; // attention_causes.c: A6 to A11
compose_candidates compose_attention;            // at some place
compose_candidates compose_attention_joined;     // two causes at once
compose_candidates compose_places;  // composed_places.c: the catalogue, in a part of the point
compose_candidates compose_zeros;   // composed_moved.c: an output of attention that is 0
compose_candidates compose_factors; // the point, but for a factor
compose_candidates compose_moved;   // its parts in other places
compose_candidates compose_stale;   // composed_stale.c: values of another layer
compose_candidates compose_weight_factors; // composed_weights.c: a weight times a number
compose_candidates compose_borrowed;       // weights of another layer or expert
compose_candidates compose_inputs;         // composed_inputs.c: another tensor is read
compose_candidates compose_residuals;      // the terms of a residual
compose_candidates compose_norms;          // composed_norms.c: norms of another kind
compose_candidates compose_statistics;     // composed_statistics.c: norms over another number
compose_candidates compose_norm_scales;    // composed_norm_scales.c
compose_candidates compose_divisors;       // composed_divisors.c
compose_candidates compose_row_divisors;
compose_candidates compose_columns;          // composed_columns.c: a number for each coordinate
compose_candidates compose_projection;       // composed_projection.c: scales, zero points
compose_candidates compose_weight_orders;    // composed_weight_orders.c: in which order
compose_candidates compose_rotated;          // composed_rotated.c: other cosines and sines
compose_candidates compose_online;           // composed_online.c: A11 of a fused kernel
compose_candidates compose_score_tables;     // composed_score_tables.c: A6
compose_candidates compose_weight_maps;      // composed_weight_maps.c: whose weights are read
compose_candidates compose_coded;            // composed_coded.c: sums and inputs in codes
compose_candidates compose_parameters;       // composed_parameters.c: constants
compose_candidates compose_shares;           // of experts, by another function
compose_candidates compose_mixtures;         // experts in the sum
compose_candidates compose_turns;            // composed_turns.c: pairs of the rotation
compose_candidates compose_positions;        // composed_positions.c: positions of the rotation
compose_candidates compose_frequencies;      // composed_frequencies.c: its frequencies
compose_candidates compose_told_frequencies; // the same, where no rule holds
compose_candidates compose_ramps;            // composed_ramps.c: formulas of YaRN with a slip
compose_candidates compose_ramp_ends;        // the ends of its ramp, fitted
compose_candidates compose_entries;          // composed_entries.c: the entries of its table
compose_candidates compose_sums;             // a part of the columns left out or repeated
compose_candidates compose_altered_outputs;  // composed_altered.c: numbers changed or reordered
compose_candidates compose_altered_inputs;
compose_candidates compose_blocks;           // composed_blocks.c: weights in ggml's blocks, misread
compose_candidates compose_rewritten;        // composed_rewritten.c: weights changed or reordered
compose_candidates compose_scales;           // composed_scales.c: of MXFP4, by other strides
compose_candidates compose_weighed_inputs;   // composed_weighed.c: M5 and M9
compose_candidates compose_batches;          // composed_batches.c: rows of an expert's tokens
compose_candidates compose_partial_sums;     // composed_partial_sums.c: of columns
compose_candidates compose_gathers;          // composed_gathers.c: rows that experts read
compose_candidates compose_beside;           // elements beside those that belong there
compose_candidates compose_experts;          // composed_experts.c: M5 to M10
compose_candidates compose_emptied;          // the same, where it is zero
compose_candidates compose_batch_rows;       // of an expert
compose_candidates compose_rows;             // composed_rows.c: an input of other positions
compose_candidates compose_averages;         // composed_averages.c: means and sums of parts
compose_candidates compose_contributions;    // composed_contributions.c: M11
compose_candidates compose_other_shares;     // M4
compose_candidates compose_vectors;          // composed_vectors.c: a bias is added
compose_candidates compose_tables;           // composed_tables.c: codes and scales of MXFP4
compose_candidates compose_embedding;        // composed_embedding.c: T0
compose_candidates compose_readings;         // composed_read.c: A6 and A11, other keys or values
compose_candidates compose_weighings;        // composed_weighing_words.c: A11, tables of numbers
compose_candidates compose_stored;           // composed_stored.c: A6 and A11, codes of a cache
compose_candidates compose_elements;         // composed_elements.c: rows mixed, small numbers
compose_candidates compose_terms;            // composed_terms.c: two numbers at once
compose_candidates compose_foreign;          // composed_foreign.c: keys that are not in the trace
compose_candidates compose_low_rank;         // composed_low_rank.c: products
compose_candidates compose_hadamard;         // composed_hadamard.c: rotated blocks
compose_candidates compose_clipped;          // composed_clipped.c: clipped, zero points
compose_candidates compose_static;           // composed_static.c: inputs in codes
compose_candidates compose_domains;          // composed_domains.c: what shares a scale
compose_candidates compose_maps;             // composed_maps.c: whose weights a slot reads
compose_candidates compose_sorted;           // composed_sorted.c: slots and tokens in order
compose_candidates compose_mixing;           // M11
compose_candidates compose_added;            // composed_added.c: another tensor is added
compose_candidates compose_tokens;           // the embedding of some tokens
compose_candidates compose_subsets;          // composed_subsets.c: some heads or experts of a sum
compose_candidates compose_gates;            // composed_gates.c: the activation by another function
compose_candidates compose_activations;      // composed_activations.c: by two functions
compose_candidates compose_shares_of_logits; // composed_routing.c: M4
compose_candidates compose_choices;          // composed_choices.c: M3
compose_candidates compose_biased;           // composed_biased.c: the same
compose_candidates compose_slots;            // M11
compose_candidates compose_scores;           // composed_scores.c: M4
compose_candidates compose_logits;           // composed_logits.c: F2
compose_candidates compose_lookups;          // composed_lookups.c: T0
compose_candidates compose_dropped;          // composed_dropped.c: M4
compose_candidates compose_streams;          // composed_streams.c: states of the residual stream

bool composing_find_regions(composing *c); // composed_regions.c
// A copy of the marks of n indices, for as long as the diagnosis. NULL if memory runs out.
const uint8_t *composing_keep_marks(composing *c, size_t n, const uint8_t *marks);

// composed_layers.c: where factors that are found layer by layer follow rules of the layer's
// number, the rules are said too. A rule's factors must explain each of the layers. Returns false
// on error.
bool composed_say_layers(search *s);

void attention_forget_guesses(search *s);

mistake_suppose suppose_composed;
void composed_free(sinkproof_diagnosis *diagnosis);

// composed_search.c: the points of `left` that a composed mistake explains leave it.
bool explain_by_composing(search *s, size_t place, unsigned *left);
// The same by what holds everywhere in attention, which is simpler than a mistake in some rows.
bool explain_attention(search *s, size_t place, unsigned *left);
// The same by two causes in attention, in the place of the last finding, which explains nothing.
bool explain_attention_joined(search *s, size_t place);

#endif
