// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Opens a model: its container finds every weight.
#include "model/container.h"

#include <stdlib.h>
#include <string.h>

static bool find_weight(sinkproof_model *model, size_t l, sinkproof_slot slot,
                        sinkproof_matrix *out, sinkproof_error *error) {
    wanted_weight wanted = {.model = model, .l = l, .slot = slot, .error = error};
    sinkproof_slot_shape(slot, &model->config, &wanted.count, &wanted.rows, &wanted.cols);
    if (slot == SINKPROOF_UNEMBEDDING && model->config.tied) {
        *out = sinkproof_model_embedding(model);
        return true;
    }
    return wanted.count == 0 || model->container->find(&wanted, out);
}

static bool find_weights(sinkproof_model *model, sinkproof_error *error) {
    model->layers = calloc(model->config.n_layers, sizeof *model->layers);
    if (model->layers == NULL) return sinkproof_fail(error, "%s: out of memory", model->spec);
    for (size_t l = 0; l < model->config.n_layers; l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) {
            sinkproof_slot slot = (sinkproof_slot)s;
            sinkproof_matrix *out = layer_slot(&model->layers[l], slot);
            if (!find_weight(model, l, slot, out, error)) return false;
        }
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++) {
        sinkproof_matrix *out = &model->outside[s - SINKPROOF_LAYER_SLOTS];
        if (!find_weight(model, 0, (sinkproof_slot)s, out, error)) return false;
    }
    return true;
}

bool sinkproof_model_inspect(const char *spec, sinkproof_model **model, sinkproof_error *error) {
    *model = NULL;
    sinkproof_model *made = calloc(1, sizeof *made);
    if (made == NULL) return sinkproof_fail(error, "%s: out of memory", spec);
    made->container = container_recognise(spec);
    made->tensors = made->container->layout;
    made->spec = strdup(spec);
    bool good = made->spec != NULL || sinkproof_fail(error, "%s: out of memory", spec);
    good = good && made->container->open(made, error) && find_weights(made, error) &&
           (made->container->complete == NULL || made->container->complete(made, error));
    if (good)
        *model = made;
    else
        sinkproof_model_close(made);
    return good;
}

// The first sentence becomes the error.
static bool keep_first_sentence(void *context, const char *sentence) {
    sinkproof_error **error = context;
    sinkproof_fail(*error, "%s", sentence);
    *error = NULL; // set once
    return false;
}

bool sinkproof_model_open(const char *spec, sinkproof_model **model, sinkproof_error *error) {
    sinkproof_error unused, *told = error != NULL ? error : &unused;
    if (spec == NULL || model == NULL)
        return sinkproof_fail(error, "expected a MODEL and a place for it, found NULL");
    *model = NULL;
    if (!sinkproof_model_inspect(spec, model, error)) return false;
    sinkproof_model_not_finite(*model, keep_first_sentence, &told);
    if (told != NULL) return true;
    sinkproof_model_close(*model);
    *model = NULL;
    return false;
}

void sinkproof_model_close(sinkproof_model *model) {
    if (model == NULL) return;
    if (!model->view) {
        checkpoint_close(&model->checkpoint);
        if (model->container->close != NULL) model->container->close(model);
        free(model->spec);
    }
    free(model->layers);
    free(model);
}

const char *sinkproof_model_spec(const sinkproof_model *model) {
    return model->spec;
}

const sinkproof_config *sinkproof_model_config(const sinkproof_model *model) {
    return &model->config;
}

sinkproof_layer sinkproof_model_layer(const sinkproof_model *model, size_t l) {
    return model->layers[l];
}

sinkproof_matrix sinkproof_model_slot(const sinkproof_model *model, size_t l, sinkproof_slot slot) {
    return slot < SINKPROOF_LAYER_SLOTS ? *layer_slot(&model->layers[l], slot)
                                        : model->outside[slot - SINKPROOF_LAYER_SLOTS];
}

sinkproof_matrix sinkproof_model_embedding(const sinkproof_model *model) {
    return sinkproof_model_slot(model, 0, SINKPROOF_EMBEDDING);
}

sinkproof_matrix sinkproof_model_final_norm(const sinkproof_model *model) {
    return sinkproof_model_slot(model, 0, SINKPROOF_FINAL_NORM);
}

sinkproof_matrix sinkproof_model_unembedding(const sinkproof_model *model) {
    return sinkproof_model_slot(model, 0, SINKPROOF_UNEMBEDDING);
}

const char *sinkproof_model_layout(const sinkproof_model *model) {
    return model->layout;
}

size_t sinkproof_model_odd_count(const sinkproof_model *model) {
    return model->checkpoint.n_odd;
}

const char *sinkproof_model_odd(const sinkproof_model *model, size_t i) {
    return model->checkpoint.odd[i];
}
