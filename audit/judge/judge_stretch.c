// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A stretch of the model: some points judged alone. Each is computed from the traced values of its
// inputs; an input that the trace lacks is computed from its own inputs, and everything else is
// left out of the pass. An input that the next operation may have read before its rounding is
// computed too, but not compared, if the trace holds all of its inputs: its stored value alone
// leaves more open.
#include "audit/judge/judge_internal.h"

static uint8_t *doing_at(sinkproof_stretch *stretch, const sinkproof_config *config,
                         sinkproof_trace_point point, size_t layer) {
    size_t at = sinkproof_trace_point_is_layered(point) ? layer : config->n_layers;
    return &stretch->doing[at][point];
}

typedef struct reaching {
    sinkproof_stretch *stretch;
    const sinkproof_config *config;
    const sinkproof_policy *policy;
    const sinkproof_trace *trace;
} reaching;

// A product before its bias is not a value of its own where the policy does not round it: the bias
// is then one more term of the sum.
static bool is_traced(const reaching *to, sinkproof_trace_point point, size_t layer) {
    sinkproof_point at;
    bool passed = to->policy != NULL && sinkproof_trace_point_held(point) == SINKPROOF_UNBIASED &&
                  sinkproof_trace_rounding(point, &at) &&
                  to->policy->at[at].format == SINKPROOF_REAL;
    return !passed && sinkproof_trace_find(to->trace, point, layer) != NULL;
}

// The embedding needs only the tokens.
static bool is_at_hand(const reaching *to, sinkproof_trace_point point, size_t layer) {
    return point == SINKPROOF_TRACE_T0 || is_traced(to, point, layer);
}

static bool is_read_unrounded(const reaching *to, sinkproof_trace_point point, size_t layer) {
    sinkproof_point at;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    bool open =
        to->policy != NULL && sinkproof_trace_rounding(point, &at) && to->policy->unrounded[at];
    size_t n = open ? sinkproof_trace_inputs(to->config, point, layer, inputs) : 0;
    for (size_t i = 0; i < n; i++) open = open && is_at_hand(to, inputs[i].point, inputs[i].layer);
    return open;
}

static void reach(const reaching *to, sinkproof_trace_point point, size_t layer,
                  sinkproof_doing doing);

// Marks an input of a computed point, and the inputs that it needs.
static void need(const reaching *to, sinkproof_trace_point point, size_t layer) {
    uint8_t *doing = doing_at(to->stretch, to->config, point, layer);
    if (*doing != SINKPROOF_LEFT_OUT) return;
    if (!is_traced(to, point, layer))
        reach(to, point, layer, SINKPROOF_JUDGED);
    else if (is_read_unrounded(to, point, layer))
        reach(to, point, layer, SINKPROOF_COMPUTED);
    else
        *doing = SINKPROOF_GIVEN;
}

static void reach(const reaching *to, sinkproof_trace_point point, size_t layer,
                  sinkproof_doing doing) {
    const sinkproof_config *config = to->config;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    *doing_at(to->stretch, config, point, layer) = (uint8_t)doing;
    size_t n = sinkproof_trace_inputs(config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) need(to, inputs[i].point, inputs[i].layer);
    // Where the selection is not traced, the values of the slots tell which experts they are; every
    // operation on an expert's own numbers asks for them.
    if (point == SINKPROOF_TRACE_M3) need(to, SINKPROOF_TRACE_M1, layer);
    bool of_expert =
        point == SINKPROOF_TRACE_M6 || point == SINKPROOF_TRACE_M8 || point == SINKPROOF_TRACE_M10;
    if (of_expert && sinkproof_trace_point_exists(config, SINKPROOF_TRACE_M3, layer))
        need(to, SINKPROOF_TRACE_M3, layer);
    // The weights without the sink are inputs too.
    if (point == SINKPROOF_TRACE_A11 && is_traced(to, SINKPROOF_TRACE_A10, layer))
        need(to, SINKPROOF_TRACE_A10, layer);
}

void sinkproof_stretch_to(sinkproof_stretch *stretch, const sinkproof_config *config,
                          const sinkproof_policy *policy, const sinkproof_trace *trace,
                          sinkproof_trace_point point, size_t layer, bool fresh) {
    const reaching to = {stretch, config, policy, trace};
    for (size_t l = 0; fresh && l <= config->n_layers; l++)
        for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) stretch->doing[l][p] = SINKPROOF_LEFT_OUT;
    reach(&to, point, layer, SINKPROOF_JUDGED);
}

sinkproof_doing sinkproof_doing_of(const sinkproof_judge_pass *pass, sinkproof_trace_point point,
                                   size_t layer) {
    const sinkproof_stretch *stretch = pass->options->stretch;
    bool layered = sinkproof_trace_point_is_layered(point);
    if (stretch == NULL) return SINKPROOF_JUDGED;
    return (sinkproof_doing)stretch->doing[layered ? layer : pass->config->n_layers][point];
}

static bool is_computed(sinkproof_doing doing) {
    return doing == SINKPROOF_JUDGED || doing == SINKPROOF_COMPUTED;
}

bool sinkproof_any_judged(const sinkproof_judge_pass *pass, size_t layer,
                          sinkproof_trace_point first, sinkproof_trace_point last) {
    bool any = false;
    for (int p = first; p <= (int)last; p++)
        any = any || is_computed(sinkproof_doing_of(pass, (sinkproof_trace_point)p, layer));
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
    if (is_computed(doing)) return false;
    const sinkproof_tensor *tensor =
        doing == SINKPROOF_GIVEN ? sinkproof_trace_find(pass->trace, point, layer) : NULL;
    size_t shape[3], count = 1;
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    if (x != NULL) sinkproof_read_given(pass, point, tensor, 0, count, x);
    return true;
}
