// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a layout says: the names of the tensors of a slot, which slots share a tensor, and where
// each begins in it.
#include "model/container.h"

#include <stdio.h>
#include <string.h>

void sinkproof_layout_name(const sinkproof_layout *layout, size_t l, sinkproof_slot slot,
                           const char *suffix, char name[SINKPROOF_TENSOR_NAME]) {
    const char *base = layout->names[slot];
    if (slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(name, SINKPROOF_TENSOR_NAME, "%s%s", base, suffix);
    else
        snprintf(name, SINKPROOF_TENSOR_NAME, "%s%zu.%s%s", layout->layers, l, base, suffix);
}

void sinkproof_layout_second(const sinkproof_layout *layout, size_t l, sinkproof_slot slot,
                             char name[SINKPROOF_TENSOR_NAME]) {
    snprintf(name, SINKPROOF_TENSOR_NAME, "%s%zu.%s", layout->layers, l, layout->second[slot]);
}

bool sinkproof_layout_shares(const sinkproof_layout *layout, sinkproof_slot a, sinkproof_slot b) {
    const char *const *names = layout->names;
    return names[a] != NULL && names[b] != NULL && strcmp(names[a], names[b]) == 0;
}

bool sinkproof_layout_has(const sinkproof_container *container, sinkproof_slot slot,
                          const char *path, sinkproof_error *error) {
    return container->layout->names[slot] != NULL ||
           sinkproof_fail(error, "%s: %s has no name for the weight %s, which this model has", path,
                          container->title, sinkproof_slot_name(slot));
}

bool sinkproof_layout_holds(const sinkproof_container *container, const sinkproof_model *model,
                            const char *path, sinkproof_error *error) {
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        if (sinkproof_model_slot(model, 0, slot).count > 0 &&
            !sinkproof_layout_has(container, slot, path, error))
            return false;
    }
    return true;
}

void sinkproof_layout_place(const sinkproof_layout *layout, const sinkproof_config *config,
                            sinkproof_slot slot, size_t *first, size_t *whole) {
    *first = *whole = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        size_t count, rows, cols;
        if (!sinkproof_layout_shares(layout, (sinkproof_slot)s, slot)) continue;
        if (s == (int)slot) *first = *whole;
        sinkproof_slot_shape((sinkproof_slot)s, config, &count, &rows, &cols);
        *whole += sinkproof_slot_is_vector(slot, config) ? cols : rows;
    }
}

bool sinkproof_layout_turns(const sinkproof_layout *layout, const sinkproof_config *config,
                            sinkproof_slot slot) {
    return layout->transposed && slot < SINKPROOF_LAYER_SLOTS &&
           !sinkproof_slot_is_vector(slot, config);
}
