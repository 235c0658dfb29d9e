// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The data that `sinkproof truth` collects as the walk over the reals passes each point: the
// largest radii, the distances of an engine's trace, and the contents of a trace of its own.
#ifndef SINKPROOF_TRUTH_STUDY_H
#define SINKPROOF_TRUTH_STUDY_H

#include "audit/trace/trace_points.h"
#include "model/round.h"
#include "proofs/truth/forward.h"

#include <stdio.h>

// One point of the trace format over all layers. Logarithms are of upper bounds: -INFINITY is
// exact, INFINITY is unbounded. Positions `at` are flat indices into the point's tensor.
typedef struct truth_summary {
    size_t elements, infinite;
    double radius_log2, relative_log2;
    size_t relative_layer, relative_at;
    size_t compared;         // elements of the trace; hidden scores (A6) are left out
    sinkproof_format format; // of the trace's tensor
    double distance, ulp;    // upper bounds of |engine - truth|; ulp: ulps of the truth in `format`
    size_t ulp_layer, ulp_at;
    size_t rank, shape[3]; // [n, ...] or [heads, n, keys]
} truth_summary;

// The state at the end of a layer (M12): how many of its elements have a known sign, which means
// that their ball is finite and excludes 0, or is exact; and the largest radius.
typedef struct truth_depth {
    size_t elements, known;
    double radius_log2;
} truth_depth;

// A point that is kept for the output trace. Its numbers are in a file, those of a point behind
// those of the point before: midpoints and radii in binary64, or whole numbers in 32 bits (M3).
typedef struct truth_kept {
    char name[64];
    size_t rank, shape[3], elements;
    bool whole;
} truth_kept;

typedef struct truth_study {
    const sinkproof_config *config;
    const sinkproof_trace *trace; // NULL: none
    size_t n;
    bool local, keep;        // local: replay the trace at every point; else only its experts
    const char *points_kept; // where `keep` is set: a list of points; NULL: all
    FILE *kept_file;         // of the numbers; it is not closed here
    // The hook of a layer, after what this study has seen of it; or NULL.
    bool (*layer)(void *context, const sinkproof_truth_state *state, sinkproof_error *error);
    void *context;
    truth_summary points[TRACE_POINTS];
    truth_depth *layers; // [n_layers]
    truth_kept *kept;
    size_t n_kept;
} truth_study;

void sinkproof_study_init(truth_study *study, const sinkproof_config *config,
                          const sinkproof_trace *trace, size_t n, bool local, bool keep);
void sinkproof_study_clear(truth_study *study);
sinkproof_truth_hooks sinkproof_study_hooks(truth_study *study);

size_t sinkproof_study_bytes(const truth_study *study); // of the points that are kept

// The first layer at whose end no sign is known; the number of layers if every layer has one.
size_t sinkproof_study_unknown_layer(const truth_study *study);
// The number of bits that would leave TRUTH_BITS_LEFT of a logit, after a walk with `bits` bits:
// the estimate, or the loss of the layers before that one, extrapolated to the last (estimated).
long sinkproof_study_bits_wanted(const truth_study *study, long bits);

// "03.A4.q[7, 2, 15]"
enum { TRUTH_PLACE = SINKPROOF_TRACE_NAME + sizeof(sinkproof_index_text) + 2 };
void sinkproof_study_where(const truth_study *study, size_t point, size_t layer, size_t at,
                           char text[TRUTH_PLACE]);

// What the balls follow from: the tokens; the tokens and the experts that a trace chose; a trace's
// own inputs to each operation.
#define TRUTH_FROM_TOKENS  "end to end"
#define TRUTH_FROM_CHOICES "end to end, with the experts of a trace"
#define TRUTH_FROM_TRACE   "operation by operation"

// What a run certified, as its trace says it.
typedef struct truth_certificate {
    const char *from; // one of the three below
    long bits;
    size_t tokens, argmaxes;      // of so many tokens the argmax is certified
    size_t choices, open_choices; // of experts; open: not certified
    double relative_log2;         // the largest relative radius of a logit
    sinkproof_truth_checks checks;
} truth_certificate;

// Lists the points that were kept in so many layers before this walk began; their numbers are in
// the file.
void sinkproof_study_keep_done(truth_study *study, size_t layers);

// Writes midpoints rounded to F64 under the names of the trace format, and NAME.radius: an upper
// bound of |truth - written midpoint|. The certificate is in the metadata. After a failure nothing
// is left at `path`.
bool sinkproof_study_write(const truth_study *study, const char *path, const int32_t *tokens_n,
                           const sinkproof_model *model, const truth_certificate *certificate,
                           sinkproof_error *error);

#endif
