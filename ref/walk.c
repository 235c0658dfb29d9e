// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk by the table of points.
#include "ref/walk.h"

// All points that read a value are in the layer of the first that does: one layer is searched.
static bool is_read_later(const sinkproof_config *config, const sinkproof_walk_step *step,
                          sinkproof_input input) {
    bool read = false;
    for (int p = (int)step->point + 1; p < TRACE_POINTS; p++) {
        sinkproof_trace_point later = (sinkproof_trace_point)p;
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        if (!sinkproof_trace_point_exists(config, later, step->layer)) continue;
        size_t n = sinkproof_trace_inputs(config, later, step->layer, inputs);
        for (size_t i = 0; i < n; i++)
            read = read || (inputs[i].point == input.point && inputs[i].layer == input.layer);
    }
    return read;
}

sinkproof_walk_step sinkproof_walk_step_at(const sinkproof_model *model,
                                           sinkproof_trace_point point, size_t layer) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    sinkproof_walk_step step = {point, layer, sinkproof_trace_operation(config, point),
                                .n_inputs = 0};
    step.n_inputs = sinkproof_trace_inputs(config, point, layer, step.inputs);
    for (size_t i = 0; i < step.n_inputs; i++)
        step.last[i] = !is_read_later(config, &step, step.inputs[i]);
    size_t n_weights = sinkproof_trace_weights(config, point, slots);
    for (size_t i = 0; i < n_weights; i++)
        step.weights[i] = sinkproof_model_slot(model, layer, slots[i]);
    return step;
}

static bool walk_to(const sinkproof_model *model, sinkproof_trace_point point, size_t layer,
                    sinkproof_walk_work *work, void *context) {
    if (!sinkproof_trace_point_exists(sinkproof_model_config(model), point, layer)) return true;
    sinkproof_walk_step step = sinkproof_walk_step_at(model, point, layer);
    return work(context, &step);
}

bool sinkproof_walk(const sinkproof_model *model, sinkproof_walk_work *work, void *context) {
    size_t layers = sinkproof_model_config(model)->n_layers;
    bool fine = walk_to(model, TRACE_T0, 0, work, context);
    for (size_t l = 0; l < layers; l++)
        for (int p = TRACE_A1; fine && p <= TRACE_M12; p++)
            fine = walk_to(model, (sinkproof_trace_point)p, l, work, context);
    return fine && walk_to(model, TRACE_F1, 0, work, context) &&
           walk_to(model, TRACE_F2, 0, work, context);
}
