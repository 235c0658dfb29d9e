// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a supposition: a view of the model with another configuration and other readings of its
// weights, another meaning, and another policy.
#include "audit/diagnose/supposition.h"
#include "audit/diagnose/weight_edits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what is read in the place of an input

// The layer that a stretch judges.
static size_t judged_place(const sinkproof_stretch *stretch, const sinkproof_config *c) {
    for (size_t l = 0; stretch != NULL && l <= c->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            if (stretch->doing[l][p] == DOING_JUDGED) return l;
    return 0;
}

// The layer of an input of the point; SIZE_MAX: it has no such input.
static size_t input_layer(const sinkproof_config *c, const mistake_input *in, size_t place) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t layer = sinkproof_trace_point_is_layered(in->point) ? place : 0;
    size_t n = sinkproof_trace_inputs(c, in->point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (inputs[i].point == in->input) return inputs[i].layer;
    // a bias of experts is that of those in the slots
    return in->input == TRACE_M3 && sinkproof_trace_point_is_layered(in->point) ? place : SIZE_MAX;
}

// The experts that the trace shows in the slots of a layer; NULL: it does not, or no memory.
static int32_t *shown_choices(const suspect_engine *suspect, size_t layer) {
    const sinkproof_tensor *m3 = sinkproof_trace_find(suspect->trace, TRACE_M3, layer);
    size_t n = m3 != NULL ? sinkproof_tensor_elements(m3) : 0;
    int32_t *chosen = m3 != NULL ? malloc((n + 1) * sizeof *chosen) : NULL;
    for (size_t i = 0; chosen != NULL && i < n; i++)
        chosen[i] = (int32_t)sinkproof_tensor_value(m3, i);
    return chosen;
}

// Takes the elements of a bias from rows of as many numbers.
static bool take_bias(const supposed_engine *s, size_t layer, size_t n, double *x) {
    sinkproof_matrix bias = sinkproof_model_slot(s->model, layer, s->input.bias);
    double *row = calloc(bias.cols + 1, sizeof *row);
    if (row != NULL && bias.count > 0) sinkproof_matrix_row(&bias, 0, row);
    for (size_t at = 0; row != NULL && bias.cols > 0 && at < n; at++)
        x[at] -= s->input.less * row[at % bias.cols];
    free(row);
    return row != NULL;
}

// Makes the numbers of x[n] anew.
static bool make_numbers(const suspect_engine *suspect, const supposed_engine *s, size_t layer,
                         const int32_t *chosen, size_t n, double *x) {
    double *made = calloc(2 * n + 1, sizeof *made);
    const sinkproof_making how = {.config = &s->config,
                                  .model = s->model,
                                  .trace = suspect->trace,
                                  .point = s->input.from,
                                  .layer = layer,
                                  .n = s->rows,
                                  .all = n,
                                  .chosen_nk = chosen,
                                  .x = x,
                                  .numbers = s->input.numbers,
                                  .table = s->input.table};
    if (made == NULL) return false;
    memcpy(made, x, n * sizeof *x);
    bool fine = s->input.make(&how, made, made + n);
    for (size_t at = 0; s->input.from == TRACE_M3 && at < n; at++)
        fine = fine && made[at] >= 0 && made[at] < (double)s->config.n_experts;
    if (fine) memcpy(x, made, n * sizeof *x);
    free(made);
    return true;
}

// The numbers of a tensor as they are moved, in binary64.
static bool move_elements(const suspect_engine *suspect, const supposed_engine *s, size_t layer,
                          sinkproof_tensor *tensor, uint8_t **bytes) {
    const sinkproof_moving *m = &s->input.moving;
    size_t n = sinkproof_tensor_elements(tensor);
    double *x = calloc(2 * n + 1, sizeof *x);
    int32_t *chosen = shown_choices(suspect, layer);
    const sinkproof_tensor *plus = NULL;
    if (m->plus_times != 0 && (m->plus_layer_by >= 0 || layer > 0))
        plus = sinkproof_trace_find(suspect->trace, m->plus,
                                    layer + (size_t)(m->plus_layer_by + 1) - 1);
    if (plus != NULL && sinkproof_tensor_elements(plus) != n) plus = NULL;
    sinkproof_tensor_numbers of = {.config = &s->config,
                                   .n = s->rows,
                                   .chosen_nk = chosen,
                                   .plus = plus,
                                   .shares = sinkproof_trace_find(suspect->trace, TRACE_M4, layer)};
    for (size_t at = 0; x != NULL && at < n; at++) {
        x[n + at] = sinkproof_tensor_value(tensor, at);
        of.largest = fmax(of.largest, fabs(x[n + at]));
    }
    if (x != NULL) of.x = x + n;
    bool fine = x != NULL && (s->input.less == 0 || take_bias(s, layer, n, x + n));
    if (fine && s->input.make != NULL) {
        fine = make_numbers(suspect, s, layer, chosen, n, x + n);
        memcpy(x, x + n, n * sizeof *x);
    } else if (fine)
        fine = sinkproof_moved_numbers(m, &of, 0, n, x);
    for (size_t at = 0; fine && s->input.kept != SINKPROOF_REAL && at < n; at++)
        x[at] = sinkproof_round(s->input.kept, x[at]);
    free(chosen);
    *bytes = (uint8_t *)x;
    tensor->data = *bytes, tensor->dtype = SINKPROOF_DTYPE_F64, tensor->bytes = n * sizeof *x;
    return fine;
}

// The trace that the supposed engine's operation reads. *view NULL: there is none. Returns false if
// memory runs out.
static bool view_of_trace(const suspect_engine *suspect, const supposed_engine *s,
                          const sinkproof_stretch *stretch, sinkproof_tensor *tensor,
                          uint8_t **bytes, sinkproof_trace **view) {
    size_t place = judged_place(stretch, &s->config);
    size_t layer = input_layer(&s->config, &s->input, place);
    size_t last = s->config.n_layers - 1;
    size_t from_layer = (place > last ? last : place) + (size_t)(s->input.layer_by + 1) - 1;
    const sinkproof_tensor *own = NULL, *from = NULL;
    *view = NULL;
    if (layer != SIZE_MAX) own = sinkproof_trace_find(suspect->trace, s->input.input, layer);
    if (s->input.residual) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        sinkproof_trace_inputs(&s->config, TRACE_A1, place > last ? last : place, inputs);
        from = sinkproof_trace_find(suspect->trace, inputs[0].point, inputs[0].layer);
    } else if (from_layer <= last)
        from = sinkproof_trace_find(suspect->trace, s->input.from, from_layer);
    if (own == NULL || from == NULL) return true;
    if (sinkproof_tensor_elements(own) != sinkproof_tensor_elements(from)) return true;
    *tensor = *from;
    tensor->rank = own->rank;
    memcpy(tensor->shape, own->shape, sizeof tensor->shape);
    if (s->input.moving.on && !move_elements(suspect, s, layer, tensor, bytes)) return false;
    *view = sinkproof_trace_view(suspect->trace, s->input.input, layer, tensor);
    return *view != NULL;
}

// ---- a supposition

// *possible: what it reads is in the trace.
static bool judge_supposed(const suspect_engine *suspect, const supposed_engine *s,
                           const sinkproof_judge_options *asked, sinkproof_judgement *judgement,
                           bool *possible, sinkproof_error *error) {
    weight_editing e = {.s = s};
    sinkproof_tensor tensor;
    sinkproof_trace *read = NULL;
    uint8_t *bytes = NULL;
    sinkproof_judge_options how = *asked;
    how.rate = suspect->rate, how.meaning = &s->meaning, how.prefix = suspect->prefix;
    if (!sinkproof_region_is_whole(&s->region)) how.region = &s->region;
    if (s->moving.on) how.moving = &s->moving;
    sinkproof_model *view = sinkproof_model_edited(s->model, &s->config, edit_weight, &e);
    bool fine = view != NULL && !e.failed;
    if (fine && s->input.on) {
        fine = view_of_trace(suspect, s, asked->stretch, &tensor, &bytes, &read);
        *possible = read != NULL;
    }
    if (!fine) sinkproof_fail(error, "no memory for a view of the model");
    fine = fine && (!*possible || sinkproof_judge(view, read != NULL ? read : suspect->trace,
                                                  &s->policy, &how, judgement, error));
    sinkproof_model_close(view);
    sinkproof_trace_view_free(read);
    free(bytes);
    weight_editing_release(&e);
    return fine;
}

// An engine without mistakes.
static supposed_engine engine_without_mistake(const suspect_engine *suspect) {
    return (supposed_engine){.model = suspect->model,
                             .config = *sinkproof_model_config(suspect->model),
                             .meaning = sinkproof_meaning_as_defined,
                             .policy = *suspect->policy,
                             .rows = sinkproof_trace_length(suspect->trace),
                             .call = suspect->call,
                             .pass = suspect->pass,
                             .piece = suspect->piece};
}

bool suspect_can_suppose(const suspect_engine *suspect, const known_mistake *mistake) {
    supposed_engine s = engine_without_mistake(suspect);
    return mistake->suppose(&s, mistake);
}

bool suspect_suppose_all(const suspect_engine *suspect, size_t n,
                         const known_mistake *const *mistakes, const sinkproof_judge_options *how,
                         sinkproof_judgement *judgement, bool *possible, sinkproof_error *error) {
    supposed_engine s = engine_without_mistake(suspect);
    *possible = true;
    for (size_t i = 0; i < n && *possible; i++) *possible = mistakes[i]->suppose(&s, mistakes[i]);
    if (suspect->settled != SINKPROOF_VARIANT_DECLARED)
        sinkproof_policy_settle(&s.policy, suspect->settled == SINKPROOF_VARIANT_ROUNDED);
    return !*possible || judge_supposed(suspect, &s, how, judgement, possible, error);
}

sinkproof_region suspect_region(const suspect_engine *suspect, size_t n,
                                const known_mistake *const *mistakes) {
    supposed_engine s = engine_without_mistake(suspect);
    for (size_t i = 0; i < n; i++)
        if (!mistakes[i]->suppose(&s, mistakes[i])) break;
    return s.region;
}
