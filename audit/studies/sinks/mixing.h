// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How far the change of one token reaches (mix.perturb, mix.paths): two runs that differ in one
// token, compared row by row and layer by layer, with the model's sinks, without them, and with
// raised ones; and the share of attention's paths that begin at that token.
#ifndef SINKPROOF_MIXING_H
#define SINKPROOF_MIXING_H

#include "audit/engine/runner.h"
#include "audit/studies/sinks/heads.h"

enum { MIX_LENGTHS = 16 };

// How a pair of runs attends.
typedef enum mix_mode {
    MIX_AS_IT_IS, // the engine's own attention
    MIX_WITHOUT,  // b = -infinity
    MIX_RAISED,
    MIX_HIDDEN, // the first keys hidden from some row on
    MIX_MODES
} mix_mode;
const char *mix_mode_name(mix_mode mode);

// The token to change, its replacement, and the context lengths.
typedef struct mix_plan {
    size_t position;
    int32_t token;
    size_t n_lengths, lengths[MIX_LENGTHS];
    double raised; // raise of the sinks
    heads_hidden hidden;
    size_t n_modes;
    mix_mode modes[MIX_MODES];
} mix_plan;

// Parses words separated by commas: "POS:ID" or "drawn"; "lengths=16+32+64" (the whole input
// without it); "raise=X"; "hide=K@R": the first K keys hidden from row R on; "seed=S" for random
// choices (1). A model without sinks is not run without them: there the first key is hidden, from
// the changed token's row on or from row 2 on if that is later, unless hide= says otherwise.
bool mix_parse(const char *text, size_t n, const int32_t *tokens_n, const sinkproof_config *config,
               mix_plan *plan, sinkproof_error *error);

// One mode at one length. Row l of the arrays holds the states before layer l; the last row holds
// the final states.
typedef struct mixing_study {
    mix_mode mode;
    size_t n, rows;             // tokens; layers + 1
    double *off_ln, *size_ln;   // |x' - x| and |x| of every token's state
    double *paths_ln, *from_ln; // path sums from the changed token, and from all tokens
    size_t earlier;             // states before the changed token that changed: 0 in a causal model
} mixing_study;

// mixes [plan->n_lengths x plan->n_modes], ordered by length; free them one by one.
bool mix_perturb_run(const sinkproof_model *model, sinkproof_runner *runner, const mix_plan *plan,
                     const int32_t *tokens_n, void (*progress)(void *context, double share),
                     void *progress_context, mixing_study *mixes, sinkproof_error *error);
void mix_free(mixing_study *mix);

// For row l: |x' - x| / |x| at the changed token, its mean over the later tokens (NAN if there is
// none), and at the last token; and the share of the last token's paths.
typedef struct mix_reach {
    double at, later, last, share;
} mix_reach;
mix_reach mix_reach_at(const mixing_study *mix, size_t position, size_t l);

#endif
