// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Walks the table of points from a replaced point back to its inputs.
#include "audit/face/stages.h"

#include <string.h>

static sinkproof_point_set bit(int point) {
    return (sinkproof_point_set)1 << point;
}

bool sinkproof_point_set_parse(const char *text, sinkproof_point_set *set, sinkproof_error *error) {
    *set = 0;
    for (const char *word = text; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");
        int found = length == 8 && strncmp(word, "RESIDUAL", 8) == 0 ? SINKPROOF_RESIDUAL : -1;
        for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) {
            const char *name = sinkproof_trace_point_name((sinkproof_trace_point)p);
            if (strlen(name) == length && strncmp(word, name, length) == 0) found = p;
        }
        if (found < 0)
            return sinkproof_fail(error,
                                  "expected points without a layer, or RESIDUAL: found '%.*s'",
                                  (int)(length < 64 ? length : 64), word);
        *set |= bit(found);
        word += length + (word[length] == ',');
    }
    return true;
}

// An input as its bit: a point of the same layer, or the residual stream.
static int input_of(sinkproof_trace_point point, size_t layer, const sinkproof_input *in) {
    bool before = sinkproof_trace_point_is_layered(in->point)
                      ? in->layer != layer || !sinkproof_trace_point_is_layered(point)
                      : sinkproof_trace_point_is_layered(point);
    return before ? SINKPROOF_RESIDUAL : (int)in->point;
}

// The points that the walk visits.
typedef struct walk {
    const sinkproof_config *config;
    size_t layer;
    sinkproof_point_set from, used, between;
} walk;

// Visits the inputs of a point, and in turn the inputs of those that are not in `from`. Returns the
// first input of `point` itself that is unavailable, or -1.
static int walk_back(walk *w, sinkproof_trace_point point) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(w->config, point, w->layer, inputs);
    for (size_t i = 0; i < n; i++) {
        int in = input_of(point, w->layer, &inputs[i]);
        if ((w->from & bit(in)) != 0) {
            w->used |= bit(in);
            continue;
        }
        if (in == SINKPROOF_RESIDUAL) return in;
        w->between |= bit(in);
        if (walk_back(w, (sinkproof_trace_point)in) >= 0) return in;
    }
    return -1;
}

static const char *name_of(int point) {
    return point == SINKPROOF_RESIDUAL ? "RESIDUAL"
                                       : sinkproof_trace_point_name((sinkproof_trace_point)point);
}

// Adds points that repeat elements of a left-out point: A10 repeats A9.
static void add_repeating(walk *w, sinkproof_trace_point point) {
    sinkproof_point_set after = bit((int)point); // the point and all that is computed from it
    for (int p = (int)point + 1; p < SINKPROOF_TRACE_POINTS; p++) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        size_t n = sinkproof_trace_inputs(w->config, (sinkproof_trace_point)p, w->layer, inputs);
        for (size_t i = 0; i < n; i++)
            if ((after & bit(input_of((sinkproof_trace_point)p, w->layer, &inputs[i]))) != 0)
                after |= bit(p);
    }
    for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        size_t n = sinkproof_trace_inputs(w->config, (sinkproof_trace_point)p, w->layer, inputs);
        if (((after | w->from) & bit(p)) != 0) continue;
        for (size_t i = 0; i < n; i++)
            if (inputs[i].kind == SINKPROOF_INPUT_EACH &&
                (w->between & bit(input_of((sinkproof_trace_point)p, w->layer, &inputs[i]))) != 0)
                w->between |= bit(p);
    }
}

bool sinkproof_left_out(const sinkproof_config *config, sinkproof_trace_point point, size_t layer,
                        sinkproof_point_set from, sinkproof_point_set *left_out,
                        sinkproof_error *error) {
    walk w = {.config = config, .layer = layer, .from = from};
    const char *name = sinkproof_trace_point_name(point);
    int missing = walk_back(&w, point);
    if (missing >= 0)
        return sinkproof_fail(error,
                              "%s cannot be computed from these points: it needs %s too, or "
                              "what that is computed from",
                              name, name_of(missing));
    for (int p = 0; p < SINKPROOF_INPUTS; p++)
        if ((from & ~w.used & bit(p)) != 0)
            return sinkproof_fail(error, "%s is not computed from %s beside the others", name,
                                  name_of(p));
    add_repeating(&w, point);
    *left_out = w.between;
    return true;
}

bool sinkproof_replaced_agree(const sinkproof_replaced replaced_p[SINKPROOF_TRACE_POINTS],
                              size_t layer, sinkproof_error *error) {
    bool m2 = replaced_p[SINKPROOF_TRACE_M2].stage != NULL;
    bool m3 = replaced_p[SINKPROOF_TRACE_M3].stage != NULL;
    bool m4 = replaced_p[SINKPROOF_TRACE_M4].stage != NULL;
    if ((!m2 || m3) && (!m3 || m4)) return true;
    return sinkproof_fail(
        error,
        "layer %zu: %s is replaced and %s is not: the engine has computed that one "
        "before it shows %s",
        layer, m2 && !m3 ? "M2" : "M3", m2 && !m3 ? "M3" : "M4", m2 && !m3 ? "M2" : "M3");
}
