// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/roundings.h"

#include "audit/diagnose/adapter_mistakes.h"

#include <string.h>

// By a line of the catalogue.
static bool is_written_mistake(const char *override) {
    const known_mistake *m;
    bool written = false;
    for (size_t i = 0; !written && (m = written_mistake_at(i)) != NULL; i++)
        written = m->override != NULL && strcmp(m->override, override) == 0;
    return written;
}

// A rounding of each product of a sum, or of parts that an engine chooses, has such wide sets that
// it explains every small error.
static bool explains_too_much(sinkproof_point point) {
    const char *dot = strchr(sinkproof_point_name(point), '.');
    return point == AT_A11_PART || point == AT_M11_PART ||
           (dot != NULL && strcmp(dot, ".term") == 0);
}

// by: the point.
static bool policy_rounds_there(supposed_engine *s, const known_mistake *m) {
    sinkproof_point point = (sinkproof_point)m->by;
    return sinkproof_point_exists(&s->config, point) && !explains_too_much(point) &&
           !is_written_mistake(m->override) && rounding_override_count(s, m);
}

static bool rounds_operand(supposed_engine *s, const known_mistake *m) {
    return sinkproof_point_is_operand((sinkproof_point)m->by) && policy_rounds_there(s, m);
}

// Applies where the policy rounds to a narrower format, or computes in binary64; elsewhere nothing
// changes.
static bool policy_keeps_more(supposed_engine *s, const known_mistake *m) {
    bool narrower = s->policy.at[(sinkproof_point)m->by].format > SINKPROOF_F32;
    return (narrower || s->policy.inside == SINKPROOF_F64) && policy_rounds_there(s, m);
}

// The point where a rounding shows first: the result of its stage. Points are in the order of the
// pass. A product before its bias is not a result where the policy does not round it.
#define UP_TO(point, last, shows) (point) <= AT_##last ? (shows)
// clang-format off
#define SHOWS(point) \
    (UP_TO(point, T0, AT(T0)) : UP_TO(point, A1, AT(A1)) : UP_TO(point, A2, PROJECTED) : UP_TO(point, A4, ROTATED) : \
     UP_TO(point, A6, AT(A6)) : UP_TO(point, A9, WEIGHTS) : UP_TO(point, A11, AT(A11)) : UP_TO(point, A12, AT(A12)) : \
     UP_TO(point, A13, AT(A13)) : UP_TO(point, M1, AT(M1)) : UP_TO(point, M2, AT(M2)) : UP_TO(point, M4, AT(M4)) : \
     UP_TO(point, M5, AT(M5) | AT(M6)) : UP_TO(point, M6, AT(M6)) : UP_TO(point, M8, AT(M8)) : UP_TO(point, M9, AT(M9) | AT(M10)) : \
     UP_TO(point, M10, AT(M10)) : UP_TO(point, M11, AT(M11)) : UP_TO(point, M12, AT(M12)) : UP_TO(point, F1, AT(F1)) : \
     AT(F2))
#define ROUNDED(id, name, what, to, does, change) \
    {name "-" to, name " is " does ": " what, SHOWS(AT_##id), change, AT_##id, 0, name "=" to},

#define TO_BF16(id, name, models, what) ROUNDED(id, name, what, "bf16", "rounded to bfloat16", policy_rounds_there)
#define TO_F16(id, name, models, what)  ROUNDED(id, name, what, "f16", "rounded to binary16", policy_rounds_there)
#define TO_Q8_0(id, name, models, what) ROUNDED(id, name, what, "q8_0", "rounded to blocks of int8 (Q8_0)", rounds_operand)
#define IN_F32(id, name, models, what)  ROUNDED(id, name, what, "f32", "kept in float32", policy_keeps_more)

static const known_mistake roundings[] = {
    SINKPROOF_POINTS(TO_BF16)
    SINKPROOF_POINTS(TO_F16)
    SINKPROOF_POINTS(TO_Q8_0)
    SINKPROOF_POINTS(IN_F32)
};
// clang-format on

enum { ROUNDINGS = sizeof roundings / sizeof roundings[0] };

size_t mistake_count(void) {
    return written_mistake_count() + adapter_mistake_count() + ROUNDINGS;
}

const known_mistake *mistake_at(size_t i) {
    size_t written = written_mistake_count();
    if (i < written) return written_mistake_at(i);
    i -= written;
    if (i < adapter_mistake_count()) return adapter_mistake_at(i);
    i -= adapter_mistake_count();
    return i < ROUNDINGS ? &roundings[i] : NULL;
}

double policy_roundoff(const sinkproof_policy *policy, sinkproof_point point) {
    sinkproof_format format = policy->at[point].format;
    return format == SINKPROOF_REAL ? 0 : sinkproof_unit_roundoff(format);
}
