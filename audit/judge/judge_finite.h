// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Infinities and NaN in a trace: where they begin, and which points are computed from them. Nothing
// bounds the set of such a point (bound.overflow), so a NaN there is undecided; it is never honest.
#ifndef SINKPROOF_JUDGE_FINITE_H
#define SINKPROOF_JUDGE_FINITE_H

#include "audit/judge/judge.h"

enum { SINKPROOF_NOT_FINITE_TEXT = 512 };
// Writes one sentence each about the first point with an infinity and the first with NaN; "" if all
// values are finite.
void sinkproof_not_finite_text(const sinkproof_judgement *j, char text[SINKPROOF_NOT_FINITE_TEXT]);

// Whether an input of the point has an infinity or NaN; for an input that is not traced, whether
// one of its own inputs has.
bool input_is_not_finite(const sinkproof_config *config, const sinkproof_judgement *j,
                         sinkproof_trace_point point, size_t layer);

#endif
