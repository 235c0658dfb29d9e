// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a layout says: the names of the tensors of a slot, which slots share a tensor, and where
// each begins in it.
#include "model/container.h"

#include <stdio.h>
#include <string.h>

void layout_name(const tensor_layout *layout, size_t l, sinkproof_slot slot, const char *suffix,
                 char name[TENSOR_NAME]) {
    const char *base = layout->names[slot];
    if (slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(name, TENSOR_NAME, "%s%s", base, suffix);
    else
        snprintf(name, TENSOR_NAME, "%s%zu.%s%s", layout->layers, l, base, suffix);
}

void layout_second_name(const tensor_layout *layout, size_t l, sinkproof_slot slot,
                        char name[TENSOR_NAME]) {
    snprintf(name, TENSOR_NAME, "%s%zu.%s", layout->layers, l, layout->second[slot]);
}

bool layout_slots_share(const tensor_layout *layout, sinkproof_slot a, sinkproof_slot b) {
    const char *const *names = layout->names;
    return names[a] != NULL && names[b] != NULL && strcmp(names[a], names[b]) == 0;
}

bool layout_check_slot(const tensor_layout *layout, const char *title, sinkproof_slot slot,
                       const char *path, sinkproof_error *error) {
    return layout->names[slot] != NULL ||
           sinkproof_fail(error, "%s: %s has no name for the weight %s, which this model has", path,
                          title, sinkproof_slot_name(slot));
}

bool layout_check_model(const sinkproof_container *container, const sinkproof_model *model,
                        const char *path, sinkproof_error *error) {
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        if (sinkproof_model_slot(model, 0, slot).count > 0 &&
            !layout_check_slot(container->layout, container->title, slot, path, error))
            return false;
    }
    return true;
}

void layout_slot_place(const tensor_layout *layout, const sinkproof_config *config,
                       sinkproof_slot slot, size_t *first, size_t *whole) {
    *first = *whole = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        size_t count, rows, cols;
        if (!layout_slots_share(layout, (sinkproof_slot)s, slot)) continue;
        if (s == (int)slot) *first = *whole;
        sinkproof_slot_shape((sinkproof_slot)s, config, &count, &rows, &cols);
        *whole += sinkproof_slot_is_vector(slot, config) ? cols : rows;
    }
}

bool layout_is_transposed(const tensor_layout *layout, const sinkproof_config *config,
                          sinkproof_slot slot) {
    return layout->transposed && slot < SINKPROOF_LAYER_SLOTS &&
           !sinkproof_slot_is_vector(slot, config);
}
