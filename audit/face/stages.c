// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Walks the table of points from a replaced point back to its inputs.
#include "audit/face/stages.h"

#include <string.h>

static point_set face_point_bit(int point) {
    return (point_set)1 << point;
}

bool point_set_parse(const char *text, point_set *set, sinkproof_error *error) {
    *set = 0;
    for (const char *word = text; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");
        int found = length == 8 && strncmp(word, "RESIDUAL", 8) == 0 ? POINT_RESIDUAL : -1;
        for (int p = 0; p < TRACE_POINTS; p++) {
            const char *name = sinkproof_trace_point_name((sinkproof_trace_point)p);
            if (strlen(name) == length && strncmp(word, name, length) == 0) found = p;
        }
        if (found < 0)
            return sinkproof_fail(error,
                                  "expected points without a layer, or RESIDUAL: found '%.*s'",
                                  (int)(length < 64 ? length : 64), word);
        *set |= face_point_bit(found);
        word += length + (word[length] == ',');
    }
    return true;
}

// An input as its bit: a point of the same layer, or the residual stream.
static int input_bit(sinkproof_trace_point point, size_t layer, const sinkproof_input *in) {
    bool before = sinkproof_trace_point_is_layered(in->point)
                      ? in->layer != layer || !sinkproof_trace_point_is_layered(point)
                      : sinkproof_trace_point_is_layered(point);
    return before ? POINT_RESIDUAL : (int)in->point;
}

// The points that the walk visits.
typedef struct walk {
    const sinkproof_config *config;
    size_t layer;
    point_set from, used, between;
} walk;

// Visits the inputs of a point, and in turn the inputs of those that are not in `from`. Returns the
// first input of `point` itself that is unavailable, or -1.
static int visit_inputs(walk *w, sinkproof_trace_point point) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(w->config, point, w->layer, inputs);
    for (size_t i = 0; i < n; i++) {
        int in = input_bit(point, w->layer, &inputs[i]);
        if ((w->from & face_point_bit(in)) != 0) {
            w->used |= face_point_bit(in);
            continue;
        }
        if (in == POINT_RESIDUAL) return in;
        w->between |= face_point_bit(in);
        if (visit_inputs(w, (sinkproof_trace_point)in) >= 0) return in;
    }
    return -1;
}

static const char *face_point_name(int point) {
    return point == POINT_RESIDUAL ? "RESIDUAL"
                                   : sinkproof_trace_point_name((sinkproof_trace_point)point);
}

// Adds points that repeat elements of a left-out point: A10 repeats A9.
static void add_repeating_points(walk *w, sinkproof_trace_point point) {
    point_set after = face_point_bit((int)point); // the point and all that is computed from it
    for (int p = (int)point + 1; p < TRACE_POINTS; p++) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        size_t n = sinkproof_trace_inputs(w->config, (sinkproof_trace_point)p, w->layer, inputs);
        for (size_t i = 0; i < n; i++)
            if ((after &
                 face_point_bit(input_bit((sinkproof_trace_point)p, w->layer, &inputs[i]))) != 0)
                after |= face_point_bit(p);
    }
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        size_t n = sinkproof_trace_inputs(w->config, (sinkproof_trace_point)p, w->layer, inputs);
        if (((after | w->from) & face_point_bit(p)) != 0) continue;
        for (size_t i = 0; i < n; i++)
            if (inputs[i].kind == SINKPROOF_INPUT_EACH &&
                (w->between &
                 face_point_bit(input_bit((sinkproof_trace_point)p, w->layer, &inputs[i]))) != 0)
                w->between |= face_point_bit(p);
    }
}

bool points_left_out(const sinkproof_config *config, sinkproof_trace_point point, size_t layer,
                     point_set from, point_set *left_out, sinkproof_error *error) {
    walk w = {.config = config, .layer = layer, .from = from};
    const char *name = sinkproof_trace_point_name(point);
    int missing = visit_inputs(&w, point);
    if (missing >= 0)
        return sinkproof_fail(error,
                              "%s cannot be computed from these points: it needs %s too, or "
                              "what that is computed from",
                              name, face_point_name(missing));
    for (int p = 0; p < FACE_MOST_INPUTS; p++)
        if ((from & ~w.used & face_point_bit(p)) != 0)
            return sinkproof_fail(error, "%s is not computed from %s beside the others", name,
                                  face_point_name(p));
    add_repeating_points(&w, point);
    *left_out = w.between;
    return true;
}

bool replaced_points_agree(const replaced_point replaced_p[TRACE_POINTS], size_t layer,
                           sinkproof_error *error) {
    bool m2 = replaced_p[TRACE_M2].stage != NULL;
    bool m3 = replaced_p[TRACE_M3].stage != NULL;
    bool m4 = replaced_p[TRACE_M4].stage != NULL;
    if ((!m2 || m3) && (!m3 || m4)) return true;
    return sinkproof_fail(
        error,
        "layer %zu: %s is replaced and %s is not: the engine has computed that one "
        "before it shows %s",
        layer, m2 && !m3 ? "M2" : "M3", m2 && !m3 ? "M3" : "M4", m2 && !m3 ? "M2" : "M3");
}
