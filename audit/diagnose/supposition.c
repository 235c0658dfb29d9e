// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a supposition: a view of the model with another configuration and other readings of its
// weights, another meaning, and another policy.
#include "audit/diagnose/supposition.h"

#include <stdlib.h>
#include <string.h>

// The memory of a view: readings, and vectors that were copied.
typedef struct owned {
    struct owned *next;
    sinkproof_reading reading;
    double values[];
} owned;

typedef struct editing {
    const supposed_engine *s;
    owned *all;
    bool failed;
} editing;

static owned *editing_own_values(editing *e, size_t values) {
    owned *made = malloc(sizeof *made + values * sizeof *made->values);
    e->failed = e->failed || made == NULL;
    if (made == NULL) return NULL;
    made->next = e->all;
    e->all = made;
    return made;
}

static void editing_release(editing *e) {
    for (owned *one = e->all, *next; one != NULL; one = next) {
        next = one->next;
        free(one);
    }
}

// Copies the vectors of a stack, with each element from the place that the reading gives.
static void reread_vectors(editing *e, const sinkproof_reading *reading, sinkproof_matrix *vector) {
    size_t count = vector->count, cols = vector->cols;
    owned *made = editing_own_values(e, (count + 1) * cols);
    if (made == NULL) return;
    double *row = made->values + count * cols;
    for (size_t k = 0; k < count; k++) {
        sinkproof_matrix one = sinkproof_matrix_at(vector, k);
        sinkproof_matrix_row(&one, 0, row);
        for (size_t c = 0; c < cols; c++)
            made->values[k * cols + c] = row[reading->column(c, cols, reading->column_by)];
    }
    vector->dtype = SINKPROOF_DTYPE_F64;
    vector->data = (const uint8_t *)made->values;
    vector->odd = NULL, vector->synthetic = NULL, vector->reading = NULL;
    vector->stack_stride = vector->row_stride = cols, vector->col_stride = 1;
}

static void reread_weight(editing *e, const sinkproof_reading *reading, sinkproof_matrix *weight) {
    owned *made = editing_own_values(e, 0);
    if (made == NULL) return;
    made->reading = *reading;
    made->reading.below = weight->reading;
    weight->reading = &made->reading;
}

static void borrow_weight(const supposed_engine *s, const mistake_weight_edit *edit, size_t l,
                          sinkproof_slot slot, sinkproof_matrix *weight) {
    size_t layers = s->config.n_layers;
    size_t from_layer = l < layers ? (l + layers + (size_t)(edit->layer_by + 1) - 1) % layers : 0;
    sinkproof_slot from = edit->from == SINKPROOF_SLOTS ? slot : edit->from;
    sinkproof_matrix other = sinkproof_model_slot(s->model, from_layer, from);
    if (other.rows == weight->rows && other.cols == weight->cols && other.count == weight->count)
        *weight = other;
}

static void edit_weight(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    editing *e = context;
    for (size_t i = 0; i < e->s->n_edits && weight->count > 0; i++) {
        const mistake_weight_edit *edit = &e->s->edits[i];
        bool vector = sinkproof_slot_is_vector(slot, &e->s->config);
        if ((edit->slots >> slot & 1) == 0) continue;
        if (edit->borrowed)
            borrow_weight(e->s, edit, l, slot, weight);
        else if (vector && edit->reading.column != NULL)
            reread_vectors(e, &edit->reading, weight);
        else
            reread_weight(e, &edit->reading, weight);
    }
}

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
    return SIZE_MAX;
}

// Copies the elements of a tensor to where they stand; 0 where there is none.
static bool move_elements(const supposed_engine *s, sinkproof_tensor *tensor, uint8_t **bytes) {
    const sinkproof_moving *m = &s->input.moving;
    size_t size = sinkproof_dtype_size(tensor->dtype), n = sinkproof_tensor_elements(tensor);
    *bytes = calloc(n, size);
    for (size_t at = 0; *bytes != NULL && at < n; at++) {
        sinkproof_place place = sinkproof_place_of(&s->config, m->point, s->rows, NULL, at);
        bool moves = sinkproof_region_holds(&m->region, &place);
        size_t from = moves ? sinkproof_moved_from(m, &s->config, s->rows, at) : at;
        if (from != SIZE_MAX) memcpy(*bytes + at * size, tensor->data + from * size, size);
    }
    tensor->data = *bytes;
    return *bytes != NULL;
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
    if (s->input.moving.on && !move_elements(s, tensor, bytes)) return false;
    *view = sinkproof_trace_view(suspect->trace, s->input.input, layer, tensor);
    return *view != NULL;
}

// ---- a supposition

// *possible: what it reads is in the trace.
static bool judge_supposed(const suspect_engine *suspect, const supposed_engine *s,
                           const sinkproof_judge_options *asked, sinkproof_judgement *judgement,
                           bool *possible, sinkproof_error *error) {
    editing e = {.s = s};
    sinkproof_tensor tensor;
    sinkproof_trace *read = NULL;
    uint8_t *bytes = NULL;
    sinkproof_judge_options how = *asked;
    how.rate = suspect->rate, how.meaning = &s->meaning;
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
    editing_release(&e);
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
