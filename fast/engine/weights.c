// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Lays out weights and packs them. Every tensor is aligned to 64 bytes; each of an expert's two
// matrices is one stream.
#include "fast/engine/weights.h"

#include "model/sinks.h"
#include "model/slots.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT_PANELS = 16 }; // panels in a unit of work

bool pack_list_new(const sinkproof_config *config, pack_list *list, sinkproof_error *error) {
    // one tensor for each slot, or for each expert of the four stacks
    *list = (pack_list){.room = SINKPROOF_LAYER_SLOTS + 4 * config->n_experts,
                        .sink = (float)sinkproof_sinks_constant(config)};
    list->jobs = calloc(list->room, sizeof *list->jobs);
    return list->jobs != NULL || sinkproof_fail(error, "no memory for a list of weights");
}

void pack_list_free(pack_list *list) {
    free(list->jobs);
    list->jobs = NULL;
}

static size_t max2(size_t a, size_t b) {
    return a > b ? a : b;
}

size_t pack_work_doubles(const sinkproof_config *config) {
    size_t widest = max2(config->n_heads * config->head_dim, 2 * config->inter);
    return max2(max2(widest, config->hidden), config->n_experts) + SINKPROOF_PANEL_COLS;
}

// The region under layout.
typedef struct layout {
    pack_list *list;
    uint8_t *memory; // or NULL
} layout;

static uint8_t *layout_place_matrix(layout *at, const sinkproof_matrix *from, bool vector,
                                    size_t panels, size_t bytes) {
    pack_list *list = at->list;
    uint8_t *to = at->memory != NULL ? at->memory + list->bytes : NULL;
    list->jobs[list->n_jobs++] = (pack_job){.from = *from,
                                            .format = sinkproof_panels_format(from),
                                            .vector = vector,
                                            .to = to,
                                            .panels = panels,
                                            .first_unit = list->units};
    list->units += (panels + UNIT_PANELS - 1) / UNIT_PANELS;
    list->bytes += (bytes + 63) / 64 * 64;
    return to;
}

static size_t vector_length(size_t cols) { // in floats, with padding
    return (cols + SINKPROOF_PANEL_COLS - 1) / SINKPROOF_PANEL_COLS * SINKPROOF_PANEL_COLS;
}

static const float *place_vector(layout *at, const sinkproof_matrix *from) {
    return (const float *)(const void *)layout_place_matrix(
        at, from, true, 1, vector_length(from->cols) * sizeof(float));
}

// A model without stored sinks has one logit for all heads (sink.softmax1: 0); it is repeated for
// every query head.
static const float *place_sinks(layout *at, const sinkproof_config *config,
                                sinkproof_matrix sinks) {
    if (sinks.count == 0) sinks.cols = config->n_heads * config->head_dim;
    const float *sinks_h = place_vector(at, &sinks);
    at->list->jobs[at->list->n_jobs - 1].absent = at->list->sink;
    return sinks_h;
}

static packed_matrix place_matrix(layout *at, const sinkproof_matrix *weight) {
    packed_matrix packed = {.bias_r = NULL};
    sinkproof_panel_format format = sinkproof_panels_format(weight);
    size_t panels = (weight->rows + SINKPROOF_PANEL_ROWS - 1) / SINKPROOF_PANEL_ROWS;
    const uint8_t *to = layout_place_matrix(
        at, weight, false, panels, sinkproof_panels_bytes(format, weight->rows, weight->cols));
    if (to != NULL) packed.weight = sinkproof_panels_at(format, weight->rows, weight->cols, to);
    return packed;
}

static packed_matrix place_expert(layout *at, const sinkproof_matrix *weights_e,
                                  const sinkproof_matrix *biases_e, size_t e) {
    sinkproof_matrix weight = sinkproof_matrix_at(weights_e, e);
    packed_matrix packed = place_matrix(at, &weight);
    sinkproof_matrix bias = sinkproof_matrix_at(biases_e, e);
    if (bias.count > 0) packed.bias_r = place_vector(at, &bias);
    return packed;
}

static void place_slot(layout *at, const sinkproof_model *model, size_t l, sinkproof_slot slot,
                       packed_layer *packed) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_slot_kind kind = sinkproof_slot_kind_of(slot, config);
    sinkproof_matrix weight = sinkproof_model_slot(model, l, slot);
    packed->vector_c[slot] = NULL;
    if (kind == SINKPROOF_SINK)
        packed->vector_c[slot] = place_sinks(at, config, weight);
    else if (kind == SINKPROOF_MATRIX && weight.count > 0)
        packed->matrix[slot] = place_matrix(at, &weight);
    else if (kind != SINKPROOF_SHIFT && weight.count > 0)
        packed->vector_c[slot] = place_vector(at, &weight);
    if (kind == SINKPROOF_BIAS) packed->matrix[slot - 1].bias_r = packed->vector_c[slot];
}

void pack_layer(const sinkproof_model *model, size_t l, uint8_t *memory, pack_list *list,
                packed_layer *packed) {
    layout at = {list, memory};
    list->n_jobs = list->units = list->bytes = 0;
    for (int s = 0; s < SINKPROOF_W_UP; s++) // the experts' are the last slots
        place_slot(&at, model, l, (sinkproof_slot)s, packed);
    sinkproof_layer layer = sinkproof_model_layer(model, l);
    for (size_t e = 0; e < layer.w_up.count; e++) {
        packed->up_e[e] = place_expert(&at, &layer.w_up, &layer.b_up, e);
        packed->down_e[e] = place_expert(&at, &layer.w_down, &layer.b_down, e);
    }
}

void pack_norm_and_unembedding(const sinkproof_matrix *norm, const sinkproof_matrix *unembedding,
                               uint8_t *memory, pack_list *list, const float **norm_c,
                               packed_matrix *unembed) {
    layout at = {list, memory};
    list->n_jobs = list->units = list->bytes = 0;
    *norm_c = place_vector(&at, norm);
    *unembed = place_matrix(&at, unembedding);
}

static void pack_vector(const pack_job *job, double *work) {
    float *to = (float *)(void *)job->to;
    bool stored = job->from.count > 0;
    if (stored) sinkproof_matrix_row(&job->from, 0, work);
    for (size_t c = 0; c < vector_length(job->from.cols); c++)
        to[c] = c >= job->from.cols ? 0 : stored ? (float)work[c] : job->absent;
}

void pack_unit(const pack_list *list, size_t unit, double *work) {
    size_t low = 0, high = list->n_jobs; // the last job that begins at or before the unit
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (list->jobs[middle].first_unit <= unit)
            low = middle;
        else
            high = middle;
    }
    const pack_job *job = &list->jobs[low];
    if (job->vector) {
        pack_vector(job, work);
        return;
    }
    size_t first = (unit - job->first_unit) * UNIT_PANELS, last = first + UNIT_PANELS;
    sinkproof_panels_pack(&job->from, job->format, first, last < job->panels ? last : job->panels,
                          job->to, work);
}
