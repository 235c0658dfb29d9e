// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The known mistakes of a backward pass.
#ifndef SINKPROOF_BACKWARD_CAUSES_H
#define SINKPROOF_BACKWARD_CAUSES_H

#include "audit/judge/judge_backward.h"

// Fills `cause` of each gradient with a bug: every known mistake whose honest sets accept all of
// its elements. Where none does, or memory runs out, it stays empty.
void sinkproof_backward_explain(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_policy *policy,
                                sinkproof_gradient_judgement *judgement);

#endif
