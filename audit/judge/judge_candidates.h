// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Chooses the policies that `judge --policy auto` tries, from the formats that hold the numbers of
// a trace.
#ifndef SINKPROOF_JUDGE_CANDIDATES_H
#define SINKPROOF_JUDGE_CANDIDATES_H

#include "audit/trace/trace.h"

// Policy names, NULL-terminated, narrowest first. *narrower: a format narrower than the stored ones
// that holds every value, or NULL.
const char *const *sinkproof_candidates_for(const sinkproof_trace *trace,
                                            const sinkproof_config *config, const char **narrower);

// The policies that auto tries where none of `names` fits; the judge keeps one only if it fits.
const char *const *sinkproof_candidates_at_last(const char *const *names,
                                                const sinkproof_config *config);

#endif
