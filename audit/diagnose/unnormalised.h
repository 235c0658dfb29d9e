// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whether a trace follows a rounding of exponentials before their division (A9.unnorm).
#ifndef SINKPROOF_UNNORMALISED_H
#define SINKPROOF_UNNORMALISED_H

#include "audit/diagnose/trial.h"

// *follows is set to false where A11 fails and no engine with this rounding is nearer to it than
// the definition at most of the elements outside; else it stays. Returns false on error.
bool unnormalised_follows(place_trials *s, size_t place, sinkproof_format format, bool *follows);

#endif
