// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers of a single point of a study.
#include "audit/studies/precision/precision.h"

#include "audit/trace/trace_points.h"

#include <math.h>

double precision_error(const precision_point *point) {
    if (!isfinite(point->error)) return INFINITY;
    return point->truth > 0 ? sqrt(point->error / point->truth) : NAN;
}

const char *precision_name(const precision_point *point, char name[PRECISION_NAME]) {
    sinkproof_trace_name(point->point, point->layer, name);
    return name;
}

double precision_headroom(const sinkproof_policy *policy, const precision_point *point) {
    sinkproof_point at;
    if (!sinkproof_trace_rounding(point->point, &at)) return INFINITY;
    sinkproof_format format = policy->at[at].format;
    return format == SINKPROOF_REAL ? INFINITY
                                    : log2(sinkproof_format_largest(format) / point->largest);
}
