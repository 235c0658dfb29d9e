// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof truth` gathers while the walk over the reals passes each point: the worst
// radii, the distances of an engine's trace, and what goes into a trace of its own.
#ifndef SINKPROOF_TRUTH_STUDY_H
#define SINKPROOF_TRUTH_STUDY_H

#include "audit/trace/trace_points.h"
#include "proofs/truth/forward.h"
#include "model/round.h"

// One point of the trace format over all layers. Logarithms are of upper bounds: -INFINITY is
// exact, INFINITY is unbounded. Positions `at` are flat indices in the point's tensor.
typedef struct truth_summary {
    size_t elements, infinite;
    double radius_log2, relative_log2;
    size_t relative_layer, relative_at;
    size_t compared;         // elements that the trace holds; hidden scores (A6) are left out
    sinkproof_format format; // of the trace's tensor
    double distance, ulp;    // upper bounds of |engine - truth|; ulp: of the truth, in `format`
    size_t ulp_layer, ulp_at;
    size_t rank, shape[3]; // [n, ...] or [heads, n, keys]
} truth_summary;

// What is left at the end of a layer (M12): how many of its elements are known to their sign, that
// is, their ball is finite and holds no 0, or is exact; and the largest radius.
typedef struct truth_depth {
    size_t elements, known;
    double radius_log2;
} truth_depth;

// A point kept for the trace that is written.
typedef struct truth_kept {
    char name[64];
    size_t rank, shape[3], elements;
    double *midpoint, *radius; // radius NULL: whole numbers (M3)
} truth_kept;

typedef struct truth_study {
    const sinkproof_config *config;
    const sinkproof_trace *trace; // NULL: none
    size_t n;
    bool local, keep; // local: replay the trace at every point; else its experts alone
    void (*progress)(size_t done, size_t total); // layers; or NULL
    truth_summary points[SINKPROOF_TRACE_POINTS];
    truth_depth *layers; // [n_layers]
    truth_kept *kept;
    size_t n_kept;
} truth_study;

void sinkproof_study_init(truth_study *study, const sinkproof_config *config,
                          const sinkproof_trace *trace, size_t n, bool local, bool keep);
void sinkproof_study_clear(truth_study *study);
sinkproof_truth_hooks sinkproof_study_hooks(truth_study *study);

// The first layer at whose end no sign is known; the number of layers when every layer has one.
size_t sinkproof_study_unknown_layer(const truth_study *study);
// Of a walk with `bits` bits, how many would leave TRUTH_BITS_LEFT of a logit: what the estimate
// says, or what the layers before that one lost, carried on to the last (estimated).
long sinkproof_study_bits_wanted(const truth_study *study, long bits);

// "03.A4.q[7, 2, 15]"
enum { TRUTH_PLACE = SINKPROOF_TRACE_NAME + sizeof(sinkproof_index_text) + 2 };
void sinkproof_study_where(const truth_study *study, size_t point, size_t layer, size_t at,
                           char text[TRUTH_PLACE]);

// Midpoints rounded to F64 under the names of the trace format, and NAME.radius: an upper bound of
// |truth - written midpoint|. Nothing is left under `path` when it fails.
bool sinkproof_study_write(const truth_study *study, const char *path, const int32_t *tokens_n,
                           const sinkproof_model *model, long bits, sinkproof_error *error);

#endif
