// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A model as an engine keeps it: the weights rounded to a narrower format than the container's, as
// `model.half()` does, MXFP4 experts decoded and rounded too. A view of the opened model: rows are
// rounded when they are read, nothing is copied.
#include "base/words.h"
#include "model/adapter.h"
#include "model/container.h"
#include "model/slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sinkproof_model *sinkproof_model_edited(const sinkproof_model *model,
                                        const sinkproof_config *config, weight_edit *edit,
                                        void *context) {
    size_t n_layers = model->config.n_layers;
    sinkproof_model *view = malloc(sizeof *view);
    sinkproof_layer *layers = malloc(n_layers * sizeof *layers);
    if (view == NULL || layers == NULL) {
        free(view);
        free(layers);
        return NULL;
    }
    memcpy(layers, model->layers, n_layers * sizeof *layers);
    *view = *model;
    view->config = *config;
    view->layers = layers;
    view->view = true;
    for (size_t l = 0; l < n_layers; l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++)
            edit(context, l, (sinkproof_slot)s, layer_slot(&layers[l], (sinkproof_slot)s));
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++)
        edit(context, n_layers, (sinkproof_slot)s, &view->outside[s - SINKPROOF_LAYER_SLOTS]);
    return view;
}

// A format in which products read numbers is that of matrices that multiply a vector.
static bool enters_products(sinkproof_slot slot) {
    switch (slot) {
    case SINKPROOF_W_Q:
    case SINKPROOF_W_K:
    case SINKPROOF_W_V:
    case SINKPROOF_W_O:
    case SINKPROOF_W_ROUTER:
    case SINKPROOF_W_UP:
    case SINKPROOF_W_DOWN:
    case SINKPROOF_UNEMBEDDING:
        return true;
    default:
        return false;
    }
}

static void set_kept_format(void *context, size_t l, sinkproof_slot slot,
                            sinkproof_matrix *weight) {
    const sinkproof_format *kept = context;
    (void)l;
    if (*kept < SINKPROOF_FORMATS || enters_products(slot)) weight->kept = *kept;
}

sinkproof_model *sinkproof_model_kept(const sinkproof_model *model, sinkproof_format kept) {
    return sinkproof_model_edited(model, &model->config, set_kept_format, &kept);
}

static void keep_weight(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    (void)context, (void)l, (void)slot, (void)weight;
}

sinkproof_model *sinkproof_model_adapted(const sinkproof_model *model,
                                         const sinkproof_adapter *adapter) {
    sinkproof_model *view = sinkproof_model_edited(model, &model->config, keep_weight, NULL);
    if (view != NULL) view->adapter = adapter;
    return view;
}

const sinkproof_adapter *sinkproof_model_adapter(const sinkproof_model *model) {
    return model->adapter;
}

// Checks one stored matrix of a stack, row by row.
static bool matrix_fits(const sinkproof_matrix *w, sinkproof_format kept, double *row_c,
                        sinkproof_error *error) {
    for (size_t r = 0; r < w->rows; r++) {
        sinkproof_matrix_row(w, r, row_c);
        for (size_t c = 0; c < w->cols; c++)
            if (isfinite(row_c[c]) && !isfinite(sinkproof_round(kept, row_c[c])))
                return sinkproof_fail(error,
                                      "%s: row %zu holds %g, which is infinite in %s: expected "
                                      "weights that it can keep",
                                      w->name, r, row_c[c], sinkproof_format_name(kept));
    }
    return true;
}

bool sinkproof_model_fits(const sinkproof_model *model, sinkproof_format kept,
                          sinkproof_error *error) {
    const sinkproof_config *c = &model->config;
    if (kept == SINKPROOF_REAL) return true;
    size_t most = c->hidden > c->inter ? c->hidden : c->inter, heads = c->n_heads * c->head_dim;
    most = most > heads ? most : heads;
    most = most > 2 * c->inter ? most : 2 * c->inter;
    most = most > c->n_experts ? most : c->n_experts;
    double *row_c = malloc(most * sizeof *row_c);
    bool good = row_c != NULL || sinkproof_fail(error, "no memory for a row of %s",
                                                sinkproof_counted(most, "weight").text);
    for (size_t l = 0; good && l < c->n_layers; l++)
        for (int s = 0; good && s < SINKPROOF_LAYER_SLOTS; s++) {
            sinkproof_matrix stack = sinkproof_model_slot(model, l, (sinkproof_slot)s);
            for (size_t e = 0; good && e < stack.count; e++) {
                sinkproof_matrix w = sinkproof_matrix_at(&stack, e);
                good = matrix_fits(&w, kept, row_c, error);
            }
        }
    for (size_t s = 0; good && s < SINKPROOF_OUTSIDE_SLOTS; s++)
        good = matrix_fits(&model->outside[s], kept, row_c, error);
    free(row_c);
    return good;
}
