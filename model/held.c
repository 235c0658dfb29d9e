// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Views of arrays in memory, in place of a container's.
#include "model/held.h"

#include "model/container.h"

#include <stdlib.h>
#include <string.h>

static const sinkproof_container held = {.title = "arrays in memory"};

// One zero serves every row of every weight: all strides are 0.
static const uint8_t zero[sizeof(float)];

static sinkproof_matrix held_weight_view(const sinkproof_config *config, sinkproof_slot slot,
                                         const float *values) {
    sinkproof_matrix m = {.dtype = SINKPROOF_DTYPE_F32, .name = sinkproof_slot_name(slot)};
    sinkproof_slot_shape(slot, config, &m.count, &m.rows, &m.cols);
    if (values == NULL) {
        m.data = zero;
        return m;
    }
    m.data = (const uint8_t *)values;
    m.stack_stride = m.rows * m.cols;
    m.row_stride = m.cols;
    m.col_stride = 1;
    return m;
}

bool sinkproof_model_held(const char *spec, const sinkproof_config *config, weight_holder *holder,
                          void *context, sinkproof_model **model, sinkproof_error *error) {
    *model = NULL;
    if (!sinkproof_config_check(config, spec, error)) return false;
    sinkproof_model *made = calloc(1, sizeof *made);
    if (made == NULL) return sinkproof_fail(error, "%s: out of memory", spec);
    made->container = &held;
    made->layout = "held";
    made->config = *config;
    made->spec = strdup(spec);
    made->layers = calloc(config->n_layers, sizeof *made->layers);
    if (made->spec == NULL || made->layers == NULL) {
        sinkproof_model_close(made);
        return sinkproof_fail(error, "%s: out of memory", spec);
    }
    for (size_t l = 0; l < config->n_layers; l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++)
            *layer_slot(&made->layers[l], (sinkproof_slot)s) =
                held_weight_view(config, (sinkproof_slot)s, holder(context, l, (sinkproof_slot)s));
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++)
        made->outside[s - SINKPROOF_LAYER_SLOTS] =
            held_weight_view(config, (sinkproof_slot)s, holder(context, 0, (sinkproof_slot)s));
    *model = made;
    return true;
}
