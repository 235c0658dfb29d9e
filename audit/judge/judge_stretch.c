// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A stretch of the model: some points judged alone. Each is computed from the traced values of its
// inputs; an input that the trace lacks is computed from its own inputs, and everything else is
// left out of the pass. An input that the next operation may have read before its rounding is
// computed too, but not compared, if the trace holds all of its inputs: its stored value alone
// leaves more open.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

bool pass_has_ended(const judge_pass *pass) {
    const sinkproof_refusal *r = pass->options->refusal;
    return r != NULL && __atomic_load_n(&r->refused, __ATOMIC_RELAXED);
}

static uint8_t *stretch_entry(sinkproof_stretch *stretch, const sinkproof_config *config,
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
static bool is_available(const reaching *to, sinkproof_trace_point point, size_t layer) {
    return point == TRACE_T0 || is_traced(to, point, layer);
}

static bool is_read_unrounded(const reaching *to, sinkproof_trace_point point, size_t layer) {
    sinkproof_point at;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    bool open =
        to->policy != NULL && sinkproof_trace_rounding(point, &at) && to->policy->unrounded[at];
    size_t n = open ? sinkproof_trace_inputs(to->config, point, layer, inputs) : 0;
    for (size_t i = 0; i < n; i++)
        open = open && is_available(to, inputs[i].point, inputs[i].layer);
    return open;
}

static void reach_point(const reaching *to, sinkproof_trace_point point, size_t layer,
                        point_doing_kind doing);

// Marks an input of a computed point, and the inputs that it needs.
static void need_point(const reaching *to, sinkproof_trace_point point, size_t layer) {
    uint8_t *doing = stretch_entry(to->stretch, to->config, point, layer);
    if (*doing != DOING_LEFT_OUT) return;
    if (!is_traced(to, point, layer))
        reach_point(to, point, layer, DOING_JUDGED);
    else if (is_read_unrounded(to, point, layer))
        reach_point(to, point, layer, DOING_COMPUTED);
    else
        *doing = DOING_GIVEN;
}

static void reach_point(const reaching *to, sinkproof_trace_point point, size_t layer,
                        point_doing_kind doing) {
    const sinkproof_config *config = to->config;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    *stretch_entry(to->stretch, config, point, layer) = (uint8_t)doing;
    size_t n = sinkproof_trace_inputs(config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) need_point(to, inputs[i].point, inputs[i].layer);
    // Where the selection is not traced, the values of the slots tell which experts they are; every
    // operation on an expert's own numbers asks for them.
    if (point == TRACE_M3) need_point(to, TRACE_M1, layer);
    bool of_expert = point == TRACE_M6 || point == TRACE_M8 || point == TRACE_M10;
    if (of_expert && sinkproof_trace_point_exists(config, TRACE_M3, layer))
        need_point(to, TRACE_M3, layer);
    // Ranks that mix slices of the experts have no whole M10 (judge_mixture.c).
    if (point == TRACE_M11 && to->policy != NULL && is_traced(to, TRACE_M8, layer) &&
        to->policy->at[AT_M11_PART].format != SINKPROOF_REAL)
        need_point(to, TRACE_M8, layer);
    // The weights without the sink are inputs too.
    if (point == TRACE_A11 && is_traced(to, TRACE_A10, layer)) need_point(to, TRACE_A10, layer);
    // The values may meet others than these (sinkproof_attending, apart).
    if (point == TRACE_A11 &&
        (is_traced(to, TRACE_A6, layer) ||
         (is_traced(to, TRACE_A4_Q, layer) && is_traced(to, TRACE_A4_K, layer))))
        need_point(to, TRACE_A6, layer);
}

void sinkproof_stretch_to(sinkproof_stretch *stretch, const sinkproof_config *config,
                          const sinkproof_policy *policy, const sinkproof_trace *trace,
                          sinkproof_trace_point point, size_t layer, bool fresh) {
    const reaching to = {stretch, config, policy, trace};
    for (size_t l = 0; fresh && l <= config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) stretch->doing[l][p] = DOING_LEFT_OUT;
    reach_point(&to, point, layer, DOING_JUDGED);
}

static held_kind held_by(const sinkproof_tensor *tensor) {
    bool index = tensor != NULL &&
                 (tensor->dtype == SINKPROOF_DTYPE_I32 || tensor->dtype == SINKPROOF_DTYPE_I64);
    size_t count = tensor != NULL && !index ? sinkproof_tensor_elements(tensor) : 0;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(sinkproof_tensor_value(tensor, i))) return HELD_NOT_FINITE;
    return tensor != NULL ? HELD : HELD_NOT;
}

// The layer that a point belongs to.
static bool is_in_range(sinkproof_layer_range range, const sinkproof_config *config,
                        sinkproof_trace_point point, size_t layer) {
    if (!sinkproof_trace_point_is_layered(point))
        layer = point == TRACE_T0 ? 0 : config->n_layers - 1;
    return range.first <= layer && layer < range.end;
}

sinkproof_stretch *judge_stretch_over(const sinkproof_config *config,
                                      const sinkproof_policy *policy, const sinkproof_trace *trace,
                                      sinkproof_layer_range layers, sinkproof_judgement *j,
                                      sinkproof_error *error) {
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    bool fresh = true;
    j->held = calloc((config->n_layers + 1) * TRACE_POINTS, sizeof *j->held);
    j->layers = layers;
    for (size_t at = 0; stretch != NULL && j->held != NULL && at <= config->n_layers; at++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            size_t layer = at < config->n_layers ? at : 0;
            bool here = sinkproof_trace_point_is_layered(point) == (at < config->n_layers);
            if (!here || sinkproof_trace_find(trace, point, layer) == NULL ||
                !is_in_range(layers, config, point, layer))
                continue;
            sinkproof_stretch_to(stretch, config, policy, trace, point, layer, fresh);
            fresh = false;
        }
    for (size_t at = 0; !fresh && at <= config->n_layers; at++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            bool here = sinkproof_trace_point_is_layered(point) == (at < config->n_layers);
            const sinkproof_tensor *tensor =
                here ? sinkproof_trace_find(trace, point, at < config->n_layers ? at : 0) : NULL;
            bool given = stretch->doing[at][p] == DOING_GIVEN;
            j->held[at * TRACE_POINTS + (size_t)p] = (uint8_t)(given            ? held_by(tensor)
                                                               : tensor != NULL ? HELD
                                                                                : HELD_NOT);
        }
    if (!fresh) return stretch;
    bool memory = stretch != NULL && j->held != NULL;
    free(stretch);
    if (!memory)
        sinkproof_fail(error, "no memory for a judgement of some layers");
    else
        sinkproof_fail(error, "%.300s: the trace holds no point of layers %zu to %zu",
                       sinkproof_trace_path(trace), layers.first, layers.end - 1);
    return NULL;
}

bool layer_is_left_out(const judge_pass *pass, size_t layer) {
    for (int p = 0; p < TRACE_POINTS; p++)
        if (point_doing(pass, (sinkproof_trace_point)p, layer) != DOING_LEFT_OUT) return false;
    return true;
}

point_doing_kind point_doing(const judge_pass *pass, sinkproof_trace_point point, size_t layer) {
    const sinkproof_stretch *stretch = pass->options->stretch;
    bool layered = sinkproof_trace_point_is_layered(point);
    if (stretch == NULL) return DOING_JUDGED;
    return (point_doing_kind)stretch->doing[layered ? layer : pass->config->n_layers][point];
}

static bool is_computed(point_doing_kind doing) {
    return doing == DOING_JUDGED || doing == DOING_COMPUTED;
}

bool any_point_judged(const judge_pass *pass, size_t layer, sinkproof_trace_point first,
                      sinkproof_trace_point last) {
    bool any = false;
    for (int p = first; p <= (int)last; p++)
        any = any || is_computed(point_doing(pass, (sinkproof_trace_point)p, layer));
    return any;
}

// ---- rows that are computed alone

bool judge_attention_is_last(const judge_pass *pass, size_t layer) {
    return point_doing(pass, TRACE_A12, layer) == DOING_LEFT_OUT;
}

// Whether attention is computed in a layer from queries, keys or values that are computed too: then
// a row may read those of all rows.
static bool attends_to_computed(const judge_pass *pass, size_t layer) {
    static const sinkproof_trace_point read[] = {TRACE_A2_Q, TRACE_A2_K, TRACE_A2_V, TRACE_A4_Q,
                                                 TRACE_A4_K};
    bool any = false;
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        any = any || any_point_judged(pass, layer, read[i], read[i]);
    return any && any_point_judged(pass, layer, TRACE_A6, TRACE_A11);
}

static bool scales_span_rows(const sinkproof_policy *policy) {
    bool any = false;
    for (int p = 0; p < AT_POINTS; p++)
        any = any || policy->at[p].scale == SINKPROOF_SCALE_OF_TENSOR ||
              policy->at[p].scale == SINKPROOF_SCALE_OF_HEAD;
    return any;
}

static size_t points_computed(const judge_pass *pass) {
    size_t n = 0;
    for (size_t l = 0; l <= pass->config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            bool here = sinkproof_trace_point_is_layered((sinkproof_trace_point)p) ==
                        (l < pass->config->n_layers);
            n += here &&
                 any_point_judged(pass, l, (sinkproof_trace_point)p, (sinkproof_trace_point)p);
        }
    return n;
}

const sinkproof_rows *judge_rows_alone(const judge_pass *pass) {
    const sinkproof_judge_options *o = pass->options;
    bool moved = o->moving != NULL && o->moving->on;
    if (o->rows == NULL || o->stretch == NULL || o->end_to_end || moved) return NULL;
    if (pass->prefix != NULL || pass->kept_prefix != NULL || scales_span_rows(pass->policy))
        return NULL;
    for (size_t l = 0; l < pass->config->n_layers; l++)
        if (attends_to_computed(pass, l)) return NULL;
    // a mean square that is meant otherwise may be made of several rows
    bool squares = pass->meaning->norm_squares != NULL && points_computed(pass) > 1;
    return squares ? NULL : o->rows;
}

bool judge_stretch_is_small(const judge_pass *pass) {
    const sinkproof_config *c = pass->config;
    double rows = (double)(pass->alone != NULL ? pass->alone->end - pass->alone->first : pass->n);
    double heads = (double)(c->n_heads + c->n_kv_heads) * (double)c->head_dim, work = 0;
    if (pass->options->stretch == NULL) return false;
    for (size_t l = 0; l < c->n_layers; l++) {
        if (any_point_judged(pass, l, TRACE_A1, TRACE_A4_K) ||
            any_point_judged(pass, l, TRACE_A12, TRACE_A12))
            work += 2 * rows * heads * (double)c->hidden;
        if (any_point_judged(pass, l, TRACE_A6, TRACE_A11))
            work += 2 * rows * (double)pass->keys * (double)c->n_heads * (double)c->head_dim;
        if (any_point_judged(pass, l, TRACE_M5, TRACE_M11))
            work += 3 * rows * (double)(c->n_chosen * c->inter) * (double)c->hidden;
    }
    if (any_point_judged(pass, c->n_layers, TRACE_F2, TRACE_F2))
        work += rows * (double)c->hidden * (double)c->vocab;
    return work < 0x1p23; // multiply-adds, of some nanoseconds each
}

// Of attention that is computed from computed keys, the rows that are compared are few if nothing
// behind it is judged.
bool judge_rows_are_few(const judge_pass *pass) {
    const sinkproof_judge_options *o = pass->options;
    bool attends = false, behind = any_layer_judged(pass, TRACE_A12, TRACE_M12);
    if (judge_rows_alone(pass) != NULL) return true;
    for (size_t l = 0; l < pass->config->n_layers; l++)
        attends = attends || any_point_judged(pass, l, TRACE_A6, TRACE_A11);
    behind = behind || any_point_judged(pass, pass->config->n_layers, TRACE_F1, TRACE_F2);
    return o->rows != NULL && o->stretch != NULL && o->moving == NULL && attends && !behind;
}

bool any_layer_judged(const judge_pass *pass, sinkproof_trace_point first,
                      sinkproof_trace_point last) {
    bool any = false;
    for (size_t l = 0; l < pass->config->n_layers; l++)
        any = any || any_point_judged(pass, l, first, last);
    return any;
}

bool part_leaves_out_point(const judge_part *part, sinkproof_trace_point point) {
    return point_doing(part->pass, point, part->layer) == DOING_LEFT_OUT;
}

bool judge_skips_or_reads(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                          sinkproof_honest *x) {
    point_doing_kind doing = point_doing(pass, point, layer);
    if (pass_has_ended(pass)) return true;
    if (is_computed(doing)) return false;
    const sinkproof_tensor *tensor =
        doing == DOING_GIVEN ? sinkproof_trace_find(pass->trace, point, layer) : NULL;
    size_t count = sinkproof_trace_elements(pass->config, point, pass->n);
    if (x != NULL) set_read_given(pass, point, tensor, 0, count, x);
    return true;
}
