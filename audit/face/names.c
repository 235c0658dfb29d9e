// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Names and numbers of the public interface: points, policies, the configuration, weights.
#include "audit/engine/runner.h"
#include "audit/sinkproof.h"
#include "audit/trace/gradients.h"
#include "audit/trace/trace_points.h"
#include "audit/version.h"
#include "base/words.h"
#include "model/fields.h"
#include "model/slots.h"

#include <stdio.h>
#include <string.h>

const char *sinkproof_version(void) {
    return SINKPROOF_VERSION;
}

const char *const *sinkproof_engine_names(void) {
    return sinkproof_runner_names();
}

const char *const *sinkproof_point_names(void) {
    static const char *const names[] = {
#define FACE_NAME(id, name, ...) name,
        SINKPROOF_TRACED_POINTS(FACE_NAME)
#undef FACE_NAME
            NULL};
    return names;
}

bool sinkproof_policy_check(const char *text, sinkproof_error *error) {
    sinkproof_policy policy;
    if (text == NULL) return sinkproof_fail(error, "expected a policy, found NULL");
    return sinkproof_policy_parse(text, &policy, error);
}

// Finds "A9", or "03.A9" with its layer.
static bool find_point(const char *name, sinkproof_trace_point *point, size_t *layer) {
    if (sinkproof_trace_name_parse(name, point, layer)) return true;
    *layer = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        *point = (sinkproof_trace_point)p;
        if (strcmp(name, sinkproof_trace_point_name(*point)) == 0) return true;
    }
    return false;
}

const char *sinkproof_point_meaning(const char *name) {
    sinkproof_trace_point point;
    sinkproof_point rounding;
    size_t layer;
    if (name == NULL || !find_point(name, &point, &layer)) return NULL;
    if (!sinkproof_trace_rounding(point, &rounding)) return "chosen experts"; // indices
    return sinkproof_point_what(rounding);
}

bool sinkproof_point_shape(const sinkproof_config *config, const char *name, size_t n, size_t *rank,
                           size_t shape[SINKPROOF_RANK], sinkproof_error *error) {
    sinkproof_trace_point point;
    size_t layer;
    if (config == NULL || name == NULL || rank == NULL || shape == NULL)
        return sinkproof_fail(error, "expected a configuration, a name and places, found NULL");
    sinkproof_gradient gradient;
    if (sinkproof_gradient_parse(name, &gradient)) {
        *rank = sinkproof_gradient_shape_in(config, &gradient, 0, n, shape);
        return *rank > 0 ||
               sinkproof_fail(error, "%.100s: the model has no such point or weight", name);
    }
    bool found = find_point(name, &point, &layer) &&
                 (sinkproof_trace_point_exists(config, point, layer) ||
                  (sinkproof_trace_point_is_offered(point) && layer < config->n_layers));
    char nearest[SINKPROOF_TRACE_NAME];
    if (found) *rank = sinkproof_trace_shape(config, point, n, shape);
    if (found) return true;
    sinkproof_trace_nearest(name, config->n_layers, nearest);
    return sinkproof_fail(error, "unknown point '%.100s': the nearest known name is %s", name,
                          nearest);
}

// ---- the configuration -----------------------------------------------------------------------

bool sinkproof_config_number(const sinkproof_config *config, const char *name, double *value,
                             sinkproof_error *error) {
    if (config == NULL || name == NULL || value == NULL)
        return sinkproof_fail(error, "expected a configuration, a name and a place, found NULL");
    char list[512] = "";
    size_t used = 0;
    const sinkproof_field *field;
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++) {
        *value = sinkproof_field_value(field, config);
        if (strcmp(name, field->name) == 0) return true;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 field->name);
    }
    return sinkproof_fail(error, "the configuration has no number '%.64s': %sknown are %s", name,
                          sinkproof_guess_in_list(name, list).text, list);
}

bool sinkproof_config_slides(const sinkproof_config *config, size_t layer) {
    return config != NULL && layer < config->n_layers && config->sliding[layer];
}

// ---- weights ---------------------------------------------------------------------------------

static bool find_weight(const sinkproof_model *model, const char *name, size_t layer,
                        sinkproof_matrix *matrix, sinkproof_error *error) {
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < SINKPROOF_SLOTS; i++) {
        sinkproof_slot slot = (sinkproof_slot)i;
        *matrix = sinkproof_model_slot(model, layer, slot);
        if (matrix->count == 0) continue; // belongs to another architecture
        if (strcmp(name, sinkproof_slot_name(slot)) == 0) return true;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                                     sinkproof_slot_name(slot));
    }
    return sinkproof_fail(error, "the model has no weight '%.64s': it has %s", name, list);
}

bool sinkproof_model_weight(const sinkproof_model *model, const char *name, size_t layer,
                            size_t expert, size_t shape[2], double *values,
                            sinkproof_error *error) {
    sinkproof_matrix matrix;
    if (model == NULL || name == NULL || shape == NULL)
        return sinkproof_fail(error, "expected a model, a name and a place, found NULL");
    size_t layers = sinkproof_model_config(model)->n_layers;
    if (layer >= layers)
        return sinkproof_fail(error, "expected a layer below %zu, found %zu", layers, layer);
    if (!find_weight(model, name, layer, &matrix, error)) return false;
    if (expert >= matrix.count)
        return sinkproof_fail(error, "%s: expected an expert below %zu, found %zu", name,
                              matrix.count, expert);
    shape[0] = matrix.rows;
    shape[1] = matrix.cols;
    sinkproof_matrix one = sinkproof_matrix_at(&matrix, expert);
    for (size_t r = 0; values != NULL && r < one.rows; r++)
        sinkproof_matrix_row(&one, r, values + r * one.cols);
    return true;
}
