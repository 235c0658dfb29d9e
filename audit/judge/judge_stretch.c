// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A stretch of the model: some points judged alone. Each is computed from what the trace holds of
// its inputs, and where it lacks one from that one's inputs; all else is left out of the pass.
#include "audit/judge/judge_internal.h"

static uint8_t *doing_at(sinkproof_stretch *stretch, const sinkproof_config *config,
                         sinkproof_trace_point point, size_t layer) {
    size_t at = sinkproof_trace_point_is_layered(point) ? layer : config->n_layers;
    return &stretch->doing[at][point];
}

// What an input of a judged point needs.
static void need(sinkproof_stretch *stretch, const sinkproof_config *config,
                 const sinkproof_trace *trace, sinkproof_trace_point point, size_t layer) {
    uint8_t *doing = doing_at(stretch, config, point, layer);
    if (*doing != SINKPROOF_LEFT_OUT) return;
    if (sinkproof_trace_find(trace, point, layer) != NULL)
        *doing = SINKPROOF_GIVEN;
    else
        sinkproof_stretch_to(stretch, config, trace, point, layer, false);
}

void sinkproof_stretch_to(sinkproof_stretch *stretch, const sinkproof_config *config,
                          const sinkproof_trace *trace, sinkproof_trace_point point, size_t layer,
                          bool fresh) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    for (size_t l = 0; fresh && l <= config->n_layers; l++)
        for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) stretch->doing[l][p] = SINKPROOF_LEFT_OUT;
    *doing_at(stretch, config, point, layer) = SINKPROOF_JUDGED;
    size_t n = sinkproof_trace_inputs(config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) need(stretch, config, trace, inputs[i].point, inputs[i].layer);
    // What the slots hold tells which experts they are, where the selection is not traced; and that
    // is asked for wherever an expert's own numbers come in.
    if (point == SINKPROOF_TRACE_M3) need(stretch, config, trace, SINKPROOF_TRACE_M1, layer);
    bool of_expert =
        point == SINKPROOF_TRACE_M6 || point == SINKPROOF_TRACE_M8 || point == SINKPROOF_TRACE_M10;
    if (of_expert && sinkproof_trace_point_exists(config, SINKPROOF_TRACE_M3, layer))
        need(stretch, config, trace, SINKPROOF_TRACE_M3, layer);
    // The weights without the sink are inputs too.
    if (point == SINKPROOF_TRACE_A11 &&
        sinkproof_trace_find(trace, SINKPROOF_TRACE_A10, layer) != NULL)
        need(stretch, config, trace, SINKPROOF_TRACE_A10, layer);
}

sinkproof_doing sinkproof_doing_of(const sinkproof_judge_pass *pass, sinkproof_trace_point point,
                                   size_t layer) {
    const sinkproof_stretch *stretch = pass->options->stretch;
    bool layered = sinkproof_trace_point_is_layered(point);
    if (stretch == NULL) return SINKPROOF_JUDGED;
    return (sinkproof_doing)stretch->doing[layered ? layer : pass->config->n_layers][point];
}

bool sinkproof_any_judged(const sinkproof_judge_pass *pass, size_t layer,
                          sinkproof_trace_point first, sinkproof_trace_point last) {
    bool any = false;
    for (int p = first; p <= (int)last; p++)
        any = any || sinkproof_doing_of(pass, (sinkproof_trace_point)p, layer) == SINKPROOF_JUDGED;
    return any;
}

bool sinkproof_any_judged_at_all(const sinkproof_judge_pass *pass, sinkproof_trace_point first,
                                 sinkproof_trace_point last) {
    bool any = false;
    for (size_t l = 0; l < pass->config->n_layers; l++)
        any = any || sinkproof_any_judged(pass, l, first, last);
    return any;
}

bool sinkproof_part_leaves_out(const sinkproof_part *part, sinkproof_trace_point point) {
    return sinkproof_doing_of(part->pass, point, part->layer) == SINKPROOF_LEFT_OUT;
}

bool sinkproof_need_not(const sinkproof_judge_pass *pass, sinkproof_trace_point point, size_t layer,
                        sinkproof_honest *x) {
    sinkproof_doing doing = sinkproof_doing_of(pass, point, layer);
    if (sinkproof_refused(pass)) return true;
    if (doing == SINKPROOF_JUDGED) return false;
    const sinkproof_tensor *tensor =
        doing == SINKPROOF_GIVEN ? sinkproof_trace_find(pass->trace, point, layer) : NULL;
    size_t shape[3], count = 1;
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    if (x != NULL) sinkproof_read_given(pass, point, tensor, 0, count, x);
    return true;
}
