// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the files of the judge share: the walk through the layers, and settling a point.
#ifndef SINKPROOF_JUDGE_INTERNAL_H
#define SINKPROOF_JUDGE_INTERNAL_H

#include "audit/judge.h"

typedef struct sinkproof_walk {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    double rate;
    bool end_to_end; // the truth from the tokens: nothing is replaced by the trace's values
    size_t n;        // tokens
    sinkproof_judgement *judgement;
    int *report_of;                // [layers + 1][points]: index into reports, or -1
    int32_t *chosen;               // [layers][n][k]: the engine's selection, replayed end to end
    sinkproof_honest *c_ip, *s_ip; // rotation tables [n, head_dim / 2]
} sinkproof_walk;

// The setting for a tensor of so many elements.
sinkproof_setting sinkproof_walk_setting(const sinkproof_walk *walk, size_t elements);

// Compares x[count], elements [offset, offset + count) of a point, with the trace, and replaces
// them by the engine's values. common: relative variance shared by these elements; where: their
// place in the tensor, in [0, 1). False when the trace lacks the point: x goes on as it is.
bool sinkproof_settle(sinkproof_walk *walk, sinkproof_trace_point point, size_t layer,
                      size_t offset, size_t count, sinkproof_honest *x, double common,
                      double where);

// The first key that row i of layer l may see (mask.causal, mask.window); the last is i.
size_t sinkproof_first_key(const sinkproof_config *config, size_t layer, size_t i);

double *sinkproof_decoded(const sinkproof_matrix *matrix); // a whole vector [1, cols]
void *sinkproof_grab(size_t count, size_t size);           // malloc or abort

// One layer: x_nd is the residual stream, in and out.
void sinkproof_walk_attention(sinkproof_walk *walk, size_t l, sinkproof_honest *x_nd);
void sinkproof_walk_experts(sinkproof_walk *walk, size_t l, sinkproof_honest *x_nd);

// Chooses the experts of every token: replays the trace's, or finds those that fit.
void sinkproof_walk_routing(sinkproof_walk *walk, size_t l, const sinkproof_honest *logits_ne,
                            const sinkproof_honest *t_nd);

// Fills worst_inputs of a report from the trace.
void sinkproof_describe_inputs(const sinkproof_walk *walk, sinkproof_point_report *report);

#endif
