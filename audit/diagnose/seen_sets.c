// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/seen_sets.h"

void see_sets(void *context, sinkproof_trace_point point, size_t layer, size_t at, double v,
              const sinkproof_honest *set) {
    seen_sets *seen = context;
    (void)layer;
    if (point != seen->point || at >= seen->elements) return;
    if (seen->v != NULL) seen->v[at] = v;
    if (seen->lo != NULL) seen->lo[at] = set->lo;
    if (seen->hi != NULL) seen->hi[at] = set->hi;
    if (seen->mid != NULL) seen->mid[at] = set->mid;
}
