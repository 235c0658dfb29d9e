// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a point of a study says.
#include "audit/precision/precision.h"

#include "audit/trace/trace_points.h"

#include <math.h>

double sinkproof_precision_error(const sinkproof_precision_point *point) {
    return point->truth > 0 ? sqrt(point->error / point->truth) : NAN;
}

bool sinkproof_precision_overflows(const sinkproof_precision_point *point) {
    return !isfinite(point->error);
}

const char *sinkproof_precision_name(const sinkproof_precision_point *point,
                                     char name[SINKPROOF_PRECISION_NAME]) {
    sinkproof_trace_name(point->point, point->layer, name);
    return name;
}

double sinkproof_precision_headroom(const sinkproof_policy *policy,
                                    const sinkproof_precision_point *point) {
    static const double largest[SINKPROOF_FORMATS] = {[SINKPROOF_F64] = 0x1.fffffffffffffp1023,
                                                      [SINKPROOF_F32] = 0x1.fffffep127,
                                                      [SINKPROOF_F16] = 0x1.ffcp15,
                                                      [SINKPROOF_BF16] = 0x1.fep127};
    sinkproof_point at;
    if (!sinkproof_trace_rounding(point->point, &at)) return INFINITY;
    sinkproof_format format = policy->at[at].format;
    return format == SINKPROOF_REAL ? INFINITY : log2(largest[format] / point->largest);
}
