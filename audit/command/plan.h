// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge --plan`: what judging a trace reads, keeps and takes, before it is judged.
#ifndef SINKPROOF_COMMAND_PLAN_H
#define SINKPROOF_COMMAND_PLAN_H

#include "audit/command/batch.h"
#include "audit/judge/judge.h"

// The result of a unit of a batch. The time and the memory are estimated, from two judgements of
// the first tokens of one layer, under the policy; "auto" is taken as f32, or bf16 where the trace
// has bfloat16.
json_t *plan_trace(const sinkproof_model *model, const sinkproof_trace *trace, const char *name,
                   sinkproof_layer_range layers, const char *policy, sinkproof_error *error);

#endif
