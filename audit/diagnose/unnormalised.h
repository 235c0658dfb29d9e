// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whether a trace follows a rounding of exponentials before their division (A9.unnorm).
#ifndef SINKPROOF_UNNORMALISED_H
#define SINKPROOF_UNNORMALISED_H

#include "audit/judge/judge_region.h"
#include "model/round.h"

// False where no engine with this rounding is nearer to A11 of the trace than the definition at
// most of the elements outside, which are marked; true where it is not known.
bool unnormalised_follows(const sinkproof_making *of, sinkproof_format format,
                          const uint8_t *marks);

#endif
