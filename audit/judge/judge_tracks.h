// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tracks of judge_truth.c, and what is measured of them at a point.
#ifndef SINKPROOF_JUDGE_TRACKS_H
#define SINKPROOF_JUDGE_TRACKS_H

#include "audit/judge/judge_internal.h"

// Arrays are [count][n][width]: the truth's rows, the local ones, those of the stages.
typedef struct tracks {
    judge_pass *pass;
    sinkproof_policy real;
    size_t n, count, rows;   // rows: count * n
    const truth_file *truth; // NULL: two tracks
    bool *other_n;           // the file has other experts
    double *cos_nd, *sin_nd;
    double *at[TRACE_POINTS]; // the latest values of every point
    int32_t *chosen;          // [count][n][k]
    bool *open_n;             // the engine's choice of experts is unknown
    double work;              // of a layer, for the progress display
} tracks;

// Numbers of a point that belong to a token.
size_t tracks_width(const tracks *t, sinkproof_trace_point point);

void tracks_add(sinkproof_errors *sum, const sinkproof_errors *more);
// Measures one run of elements and replaces the local track's values by the engine's.
sinkproof_errors tracks_measure(const sinkproof_tensor *tensor, size_t offset, size_t count,
                                const double *truth, double *local);
// The errors of a point's report; NULL: it has none.
sinkproof_errors *tracks_errors(const tracks *t, sinkproof_trace_point point, size_t layer);
// Compares a whole point, x[count][n][width]. of_slots: its rows are comparable where the experts
// are known. False: no memory.
bool tracks_compare(const tracks *t, sinkproof_trace_point point, size_t layer, size_t width,
                    bool of_slots, double *x);

// ---- against certified truth (judge_certified.h)

bool tracks_balls(const tracks *t, sinkproof_trace_point point, size_t layer, truth_balls *balls);
// x NULL: of M5 and M9, which are not on the tracks, the error is measured alone.
bool tracks_certify(const tracks *t, sinkproof_trace_point point, size_t layer, size_t width,
                    bool of_slots, double *x);
// Appends a point that was measured, with its m rows; `other` more were left out.
void tracks_conclude(const tracks *t, const sinkproof_tensor *tensor, sinkproof_trace_point point,
                     size_t layer, const certified_row *rows, size_t m, size_t other);
// Compares the choice of experts of token i with the truth's, slot by slot and as sets.
void tracks_compare_choice(tracks *t, size_t layer, size_t i, const int32_t *chosen_k);

#endif
