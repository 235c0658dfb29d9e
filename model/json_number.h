// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers as JSON.
#ifndef SINKPROOF_JSON_NUMBER_H
#define SINKPROOF_JSON_NUMBER_H

#include <jansson.h>
#include <math.h>
#include <stddef.h>

// null where x is not finite: JSON has no such number.
static inline json_t *sinkproof_number_json(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static inline json_t *sinkproof_count_json(size_t n) {
    return json_integer((json_int_t)n);
}

#endif
