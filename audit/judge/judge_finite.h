// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Infinities and NaN of a trace: where they begin, and what is computed from them. Behind them
// nothing bounds a set (bound.overflow), so that NaN is undecided there; it is never honest.
#ifndef SINKPROOF_JUDGE_FINITE_H
#define SINKPROOF_JUDGE_FINITE_H

#include "audit/judge/judge.h"

enum { SINKPROOF_NOT_FINITE_TEXT = 512 };
// The first point with an infinity and the first with NaN, a sentence each; "" where all is finite.
void sinkproof_not_finite_text(const sinkproof_judgement *j, char text[SINKPROOF_NOT_FINITE_TEXT]);

// Whether an input of the point has an element that is no finite number; where it is not traced,
// what that is computed from.
bool sinkproof_is_behind_not_finite(const sinkproof_config *config, const sinkproof_judgement *j,
                                    sinkproof_trace_point point, size_t layer);

#endif
