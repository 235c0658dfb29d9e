// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The size of a model, counted from the table of its weights.
#include "proofs/exact/parameters.h"

#include "model/slots.h"

//> model.parameters
// All parameters, and the active ones among them: those that multiply or shift one token. Only the
// chosen experts are active. The embedding and the positions are not, because their rows are looked
// up.
sinkproof_parameters sinkproof_parameters_count(const sinkproof_config *config) {
    sinkproof_parameters n = {0, 0, 0};
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        size_t count, rows, cols, layers = s < SINKPROOF_LAYER_SLOTS ? config->n_layers : 1;
        sinkproof_slot_shape(slot, config, &count, &rows, &cols);
        if (slot == SINKPROOF_UNEMBEDDING && config->tied) { // shares the embedding's numbers
            n.active += rows * cols;
            continue;
        }
        size_t met = sinkproof_slot_is_stacked(slot, config) ? config->n_chosen : count;
        n.total += layers * count * rows * cols;
        bool looked_up = slot == SINKPROOF_EMBEDDING || slot == SINKPROOF_POSITIONS;
        if (!looked_up) n.active += layers * met * rows * cols;
        if (sinkproof_slot_is_expert_matrix(slot, config)) n.mxfp4 += layers * count * rows * cols;
    }
    return n;
}

// Bytes of the released containers: 17 for 32 numbers in MXFP4, 2 for every other one.
size_t parameters_bytes(sinkproof_parameters n) {
    return n.mxfp4 / 32 * 17 + (n.total - n.mxfp4) * 2;
}
//< model.parameters
