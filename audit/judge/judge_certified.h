// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace against certified truth (truth_file.h). At each point that both have, the engine's error
// is enclosed. A stage is what lies between two such points. With the stage computed in binary64
// from the engine's own values at the points before it,
//   engine - truth = (engine - stage(engine's inputs)) + (stage(engine's inputs) - truth),
// the error is what arose in the stage and what came in with its inputs (both estimated). No
// verdict follows from any of these numbers.
#ifndef SINKPROOF_JUDGE_CERTIFIED_H
#define SINKPROOF_JUDGE_CERTIFIED_H

#include "audit/trace/truth_file.h"
#include "model/round.h"
#include "ref/policy.h"

// Bounds of a number; hi may be infinite.
typedef struct certified_span {
    double lo, hi;
} certified_span;

// A point of one layer. Each error is divided by the root mean square of the truth of its row: of
// the values of a token, or of a head's keys (A6, A9, A10).
typedef struct certified_point {
    sinkproof_trace_point point;
    size_t layer;
    char name[40];           // "03.M12"
    sinkproof_format format; // in which the policy, or else the trace, has the point
    size_t rows;             // compared
    size_t other;            // left out: tokens with other experts, or in another order, or unknown
    size_t zero;             // left out: rows whose truth is 0
    size_t not_finite;       // elements that are no finite number: their error is infinite
    certified_span rms, worst; // root of the rows' mean square, and the largest of all elements
    size_t worst_at, rank, shape[SINKPROOF_MAX_RANK];
    double local_rms, local_worst, inherited_rms, inherited_worst; // estimated
} certified_point;

// The argmax of tokens. Certified ones: the engine's largest logit is that token's alone, that
// token's among several, another's; or it has NaN. Open ones: two logits of the truth are nearer
// than their radii.
typedef struct certified_argmax {
    size_t tokens, agrees, ties, differs, nans, open;
    size_t first_differs; // valid if one differs
} certified_argmax;

typedef struct certified_comparison {
    bool encloses; // sinkproof_truth_file_encloses
    bool staged;   // the model was run too: what arose and came in is known
    size_t n_points;
    certified_point *points;   // in the order of the forward pass
    size_t choices, otherwise; // choices of experts that both say; those with another expert
    certified_argmax argmax;   // tokens 0: not asked, one of the two has no F2
} certified_comparison;

certified_comparison *certified_new(const truth_file *truth, size_t points); // NULL: no memory
void certified_free(certified_comparison *comparison);                       // NULL is allowed

// Compares the file alone, without the model: no stage, so that nothing arose or came in (NaN). The
// policy says the formats. NULL: no memory.
certified_comparison *sinkproof_certified_alone(const sinkproof_config *config,
                                                const sinkproof_trace *trace,
                                                const truth_file *truth,
                                                const sinkproof_policy *policy);

// ---- measuring

// What is measured of some elements of a row, so that the parts of a row can be put together.
typedef struct certified_row {
    size_t elements, not_finite, worst_at;
    certified_span size, error,
        worst; // squares of the truth and of the error, added; largest error
    double middle, local, inherited, local_worst, inherited_worst;
} certified_row;

// Measures `count` elements from `offset` on; stage_i: the stage's values, which the engine's then
// replace. NULL: there is no stage, and only the error is measured.
void certified_measure(certified_row *row, const sinkproof_tensor *engine, const truth_balls *truth,
                       size_t offset, size_t count, double *stage_i);
void certified_add(certified_row *into, const certified_row *more);

// Appends a point that was measured, with its rows in order; `other` more were left out.
void certified_append(certified_comparison *comparison, const sinkproof_policy *policy,
                      const sinkproof_tensor *tensor, sinkproof_trace_point point, size_t layer,
                      const certified_row *rows, size_t n, size_t other);

// Counts token i's choice of experts, chosen_k, beside that of the truth's M3. Whether they differ,
// slot by slot, or one is not known: m3 NULL, an expert below 0.
bool certified_choice(certified_comparison *comparison, const sinkproof_tensor *m3, size_t i,
                      size_t k, const int32_t *chosen_k);

// f2 and the balls are [n, vocab].
certified_argmax certified_argmaxes(const sinkproof_tensor *f2, const truth_balls *truth, size_t n,
                                    size_t vocab);

#endif
