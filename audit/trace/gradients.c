// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of gradients in a trace.
#include "audit/trace/gradients.h"

#include "audit/trace/trace_points.h"
#include "ref/backward/backward.h"

#include <stdio.h>
#include <string.h>

// "03.dA11" without its d: "03.A11".
static bool drop_d(const char *name, char *rest, size_t size) {
    const char *dot = strchr(name, '.');
    size_t digits = strspn(name, "0123456789");
    size_t at = digits > 0 && dot == name + digits ? digits + 1 : 0;
    if (name[at] != 'd' || strlen(name) > size - 1) return false;
    snprintf(rest, size, "%.*s%s", (int)at, name, name + at + 1);
    return true;
}

// The weight whose gradient is called `name`, in a layer or outside.
static bool slot_named(const char *name, bool layered, sinkproof_slot *slot) {
    int first = layered ? 0 : SINKPROOF_LAYER_SLOTS;
    int end = layered ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS;
    for (int s = first; s < end; s++) {
        char own[32];
        if (s == SINKPROOF_LAYER_SLOTS && layered) continue;
        sinkproof_gradient_name((sinkproof_slot)s, own);
        if (strcmp(own, name) != 0) continue;
        *slot = (sinkproof_slot)s;
        return true;
    }
    return false;
}

bool sinkproof_gradient_parse(const char *name, sinkproof_gradient *gradient) {
    char rest[SINKPROOF_TRACE_NAME], probe[SINKPROOF_TRACE_NAME];
    *gradient = (sinkproof_gradient){.of_weight = false};
    if (!drop_d(name, rest, sizeof rest)) return false;
    if (sinkproof_trace_name_parse(rest, &gradient->point, &gradient->layer))
        return !sinkproof_trace_point_is_index(gradient->point);
    // The layer of a weight is written like that of a point.
    size_t digits = strspn(name, "0123456789");
    gradient->of_weight = true;
    if (digits == 0) return slot_named(name, false, &gradient->slot);
    sinkproof_trace_point any;
    snprintf(probe, sizeof probe, "%.*s.A1", (int)(digits < 9 ? digits : 9), name);
    return sinkproof_trace_name_parse(probe, &any, &gradient->layer) &&
           slot_named(name + digits + 1, true, &gradient->slot);
}

size_t sinkproof_gradient_shape_in(const sinkproof_config *config,
                                   const sinkproof_gradient *gradient, size_t first, size_t n,
                                   size_t *shape) {
    if (!gradient->of_weight)
        return trace_may_hold(config, gradient->point, gradient->layer)
                   ? trace_shape_from(config, gradient->point, first, n, shape)
                   : 0;
    bool layered = gradient->slot < SINKPROOF_LAYER_SLOTS;
    return gradient->layer < (layered ? config->n_layers : 1)
               ? sinkproof_gradient_shape(config, gradient->slot, shape)
               : 0;
}
