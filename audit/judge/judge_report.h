// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints a judgement as a table of at most 100 columns with a paragraph on the first divergence,
// and as JSON.
#ifndef SINKPROOF_JUDGE_REPORT_H
#define SINKPROOF_JUDGE_REPORT_H

#include "audit/judge/judge.h"

#include <jansson.h>
#include <stdio.h>

// all: one line per layer and point; else one line per point, over all layers.
void sinkproof_judgement_print(FILE *out, const sinkproof_config *config,
                               const sinkproof_judgement *judgement, bool all);

// Prints what the trace could not decide, and the points to add to it (judge_remedy.c): a line for
// each group of points, such as "F1, F2 undecided: layers 2-3 are not traced; add M12 of layer 3".
// A trace that holds the named points decides every point of the line.
void judgement_print_undecided(FILE *out, const sinkproof_config *config,
                               const sinkproof_judgement *judgement);
// The points to add, such as "02.M3", as an array of strings.
json_t *judgement_remedies_json(const sinkproof_config *config,
                                const sinkproof_judgement *judgement);

// An element outside its set, or the farthest inside, and the set.
void judgement_add_worst(json_t *o, size_t rank, const size_t *shape, size_t at, double excess_ulp,
                         double engine, const sinkproof_honest *set);

// The report of a point; `layer` is ignored for points outside the layers. NULL: not in the trace.
const sinkproof_point_report *judgement_report(const sinkproof_judgement *judgement,
                                               sinkproof_trace_point point, size_t layer);
// What the trace holds of a point, where only some layers were judged; else HELD_NOT.
held_kind held_outside(const sinkproof_judgement *j, sinkproof_trace_point point, size_t layer);

// Appends to `results`: first {"id": "judgement", "trace": ..., "verdict": ...,
// "first_divergence": ..., "explained_by": override or null, "forms": ...}, then one object per
// point and layer.
void sinkproof_judgement_json(json_t *results, const char *trace_path,
                              const sinkproof_config *config, const sinkproof_judgement *judgement,
                              const char *override, int exit_code);

#endif
