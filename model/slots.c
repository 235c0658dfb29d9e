// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the table of weights says of each. Their names in a checkpoint are in its container.
#include "model/slots.h"

#include "model/sinks.h"

static const struct {
    const char *name;
    unsigned stream; // of the synthetic generator
    size_t offset;   // in sinkproof_layer
} slots[SINKPROOF_SLOTS] = {
#define IN_LAYER(id, name, number, ...) {#name, number, offsetof(sinkproof_layer, name)},
#define OUTSIDE(id, name, number, ...)  {#name, number, 0},
    SINKPROOF_LAYER_WEIGHTS(IN_LAYER) SINKPROOF_OUTSIDE_WEIGHTS(OUTSIDE)
#undef IN_LAYER
#undef OUTSIDE
};

const char *sinkproof_slot_name(sinkproof_slot slot) {
    return slots[slot].name;
}

unsigned slot_stream(sinkproof_slot slot) {
    return slots[slot].stream;
}

typedef struct weight_shape {
    bool present;
    sinkproof_slot_kind kind;
    bool stacked; // one for each expert
    size_t rows, cols;
} weight_shape;

// The shapes of the table.
#define SCALE(cols)        SINKPROOF_SCALE, false, 1, cols
#define SHIFT(cols)        SINKPROOF_SHIFT, false, 1, cols
#define SINKS(cols)        SINKPROOF_SINK, false, 1, cols
#define MATRIX(rows, cols) SINKPROOF_MATRIX, false, rows, cols
#define BIAS(cols)         SINKPROOF_BIAS, false, 1, cols
#define STACK(rows, cols)  SINKPROOF_MATRIX, true, rows, cols
#define STACK_BIAS(cols)   SINKPROOF_BIAS, true, 1, cols

static size_t up_rows(const sinkproof_config *c) {
    return (c->activation == SINKPROOF_SWIGLU ? 2 : 1) * c->inter;
}

//> model.biases
static weight_shape shape_of(sinkproof_slot slot, const sinkproof_config *c) {
    switch (slot) {
#define SHAPE_CASE(id, name, number, shape, present)                                               \
    case SINKPROOF_##id:                                                                           \
        return (weight_shape){present, shape};
        SINKPROOF_LAYER_WEIGHTS(SHAPE_CASE)
        SINKPROOF_OUTSIDE_WEIGHTS(SHAPE_CASE)
#undef SHAPE_CASE
    case SINKPROOF_SLOTS:
        break;
    }
    return (weight_shape){.present = false};
}

void sinkproof_slot_shape(sinkproof_slot slot, const sinkproof_config *config, size_t *count,
                          size_t *rows, size_t *cols) {
    weight_shape shape = shape_of(slot, config);
    *count = !shape.present ? 0 : shape.stacked ? config->n_experts : 1;
    *rows = shape.rows;
    *cols = shape.cols;
    if (shape.kind == SINKPROOF_SINK) sink_tensor_shape(config, count, rows, cols);
}
//< model.biases

sinkproof_slot_kind sinkproof_slot_kind_of(sinkproof_slot slot, const sinkproof_config *config) {
    return shape_of(slot, config).kind;
}

bool sinkproof_slot_is_vector(sinkproof_slot slot, const sinkproof_config *config) {
    sinkproof_slot_kind kind = sinkproof_slot_kind_of(slot, config);
    if (kind == SINKPROOF_SINK) return sinkproof_sinks_are_constant(config);
    return kind != SINKPROOF_MATRIX;
}

bool sinkproof_slot_is_stacked(sinkproof_slot slot, const sinkproof_config *config) {
    return shape_of(slot, config).stacked && !config->dense;
}

bool sinkproof_slot_is_expert_matrix(sinkproof_slot slot, const sinkproof_config *config) {
    return sinkproof_slot_is_stacked(slot, config) && !sinkproof_slot_is_vector(slot, config);
}

sinkproof_matrix *layer_slot(sinkproof_layer *layer, sinkproof_slot slot) {
    return (sinkproof_matrix *)(void *)((char *)layer + slots[slot].offset);
}
