// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the families of guesses share with the screen that keeps the nearest.
#ifndef SINKPROOF_ATTENTION_HUNT_H
#define SINKPROOF_ATTENTION_HUNT_H

#include "audit/diagnose/attention_screen.h"

enum { KEPT = 12 }; // of a family
typedef struct hunt {
    attention_view *view;
    attention_guesses *out;
    bool apart;        // the values meet other weights than those that the trace shows
    double definition; // misfit of the definition to the failing queries
    unsigned family;
    size_t n_kept;
    attention_guess kept[KEPT];
    double spent; // multiplications, as of emulations
    bool joining; // what is offered are two causes
    size_t n_best;
    // the nearest of each family, to the failing queries
    attention_guess best[ATTENTION_FAMILIES];
    attention_guess alone;    // the nearest of one cause, to the failing queries
    attention_memory *memory; // of layers of this kind
} hunt;

// Offers a guess of the current family.
void hunt_offer(hunt *h, const sinkproof_attending *how);
// Fits *number, a member of *how, from some starts, and offers the nearest; `positive`: no other. A
// number larger than `most`, or smaller than its inverse, is none: then the sink is left out.
void hunt_offer_fitted(hunt *h, sinkproof_attending *how, double *number, bool positive,
                       double most);
// Fits *number and offers nothing; returns the misfit of the guess.
double hunt_fit(hunt *h, sinkproof_attending *how, double *number);
// Fits *number from one start, which is near, and offers it if its misfit is below the other.
void hunt_offer_fitted_from(hunt *h, sinkproof_attending *how, double *number, double start,
                            double below);
// The same of two numbers together, from some starts or from where they are.
void hunt_offer_fitted_two(hunt *h, sinkproof_attending *how, double *one, double *other,
                           bool from_there);
// Offers what is read otherwise of cached keys, which are those before the query's own, or those of
// the passes before its own (attention_pass_families.c).
void hunt_offer_cached(hunt *h, const sinkproof_attending *how);
// Fits *number, a member of *how, for what is read otherwise of them.
void hunt_offer_cached_fitted(hunt *h, sinkproof_attending *how, double *number);
// Fits two causes together where none alone is near: attention_pairs.c.
void hunt_pairs(hunt *h);
// How many numbers a guess supposes, of a trace with so many rows: attention_simple.c.
unsigned attention_cost(const sinkproof_attending *how, size_t rows);
// The sizes that are tried one after another: each up to 64 or so, of many keys fewer.
size_t hunt_next_size(size_t size);

// A family is one kind of mistake, with all of its numbers; what differs between families of one
// function are the arguments.
typedef struct family_arguments {
    sinkproof_cache_kind kind;
    double times;
    unsigned moved;
    bool zeros, spared, unsummed;
    sinkproof_parting parting;
    size_t least, most;
} family_arguments;
typedef void guess_family(hunt *h, const family_arguments *of);
// Of queries, sinks and weights; of keys: attention_key_families.c.
guess_family guess_window, guess_later, guess_first_key, guess_keys_counted, guess_pages,
    guess_key_for_another, guess_keys_shifted, guess_groups, guess_blocks, guess_tiles,
    guess_prefix, guess_first_keys_kept, guess_stripes, guess_across, guess_sources,
    guess_other_scales, guess_reads;
// Of the tiles in which a kernel reads keys: attention_tile_families.c.
guess_family guess_last_tiles, guess_keys_again, guess_keys_late, guess_columns, guess_tile_orders,
    guess_half_windows, guess_keys_favoured;
// Of the sum and the exponential: attention_sum_families.c.
guess_family guess_empty_slots, guess_sink_tops, guess_rounded_sums, guess_exponentials;
// Of a range of keys: attention_range_families.c.
guess_family guess_range_sources, guess_range_reads;
// Of another softmax, and of masks: attention_softmax_families.c.
guess_family guess_weighing, guess_sum, guess_scores_kept, guess_rules, guess_leaks,
    guess_row_tiles, guess_trees, guess_parts_kept;
// Of a cache that is filled pass by pass: attention_pass_families.c.
guess_family guess_passes;
// Of what is made of queries, keys and values: attention_map_families.c.
guess_family guess_orders, guess_layouts, guess_turns, guess_changes;

typedef struct attention_family {
    guess_family *guess;
    family_arguments of;
} attention_family;
const attention_family *attention_family_at(size_t i); // NULL: there are fewer

#endif
