// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The policies that `judge --policy auto` tries on a trace, from what its numbers fit.
#ifndef SINKPROOF_JUDGE_CANDIDATES_H
#define SINKPROOF_JUDGE_CANDIDATES_H

#include "audit/trace/trace.h"

// Names, NULL-terminated, narrowest first. *narrower: a format narrower than the stored ones that
// holds every value, or NULL.
const char *const *sinkproof_candidates_for(const sinkproof_trace *trace,
                                            const sinkproof_config *config, const char **narrower);

// What auto tries where none of those names fits: they are kept only when they fit.
const char *const *sinkproof_candidates_at_last(const char *const *names);

#endif
