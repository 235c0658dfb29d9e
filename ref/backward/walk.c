// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk back through the model: the logits, the last norm, the layers from the last to the
// first, the embedding. A residual sum passes its gradient to both of its terms, so dx_nc flows
// through every layer unchanged, and each sublayer adds what comes through it.
#include "ref/backward/walk.h"

#include <string.h>

// F2 to the residual stream after the last layer.
static void ends_backward(gradient_walk *w) {
    const sinkproof_config *c = w->config;
    sinkproof_matrix unembedding = sinkproof_model_unembedding(w->model);
    sinkproof_matrix scale = sinkproof_model_final_norm(w->model);
    // The unembedding of a tied model is its embedding, whose gradient has both shares.
    double *dunembedding = w->dweight[c->tied ? SINKPROOF_EMBEDDING : SINKPROOF_UNEMBEDDING];
    if (w->loss->dlogits_nv != NULL) {
        gradient_show_logits(w);
        sinkproof_linear_backward(w->n, &unembedding,
                                  sinkproof_activations_at(w->kept, 0, TRACE_F1),
                                  w->loss->dlogits_nv, w->dt_nc, dunembedding, NULL, w->row_c);
    }
    gradient_show_point(w, TRACE_F1, w->dt_nc);
    gradient_of_norm(w, &scale, sinkproof_activations_at(w->kept, c->n_layers - 1, TRACE_M12),
                     w->dweight[SINKPROOF_FINAL_NORM]);
}

static size_t slot_size(const sinkproof_config *config, sinkproof_slot slot) {
    size_t count, rows, cols;
    sinkproof_slot_shape(slot, config, &count, &rows, &cols);
    return count * rows * cols;
}

static void layer_backward(gradient_walk *w) {
    sinkproof_layer layer = sinkproof_model_layer(w->model, w->l);
    for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++)
        if (w->dweight[s] != NULL)
            memset(w->dweight[s], 0,
                   slot_size(w->config, (sinkproof_slot)s) * sizeof *w->dweight[s]);
    //> grad.chain
    gradient_show_point(w, TRACE_M12, w->dx_nc);
    gradient_of_experts(w, &layer);
    gradient_show_point(w, TRACE_A13, w->dx_nc);
    gradient_of_attention(w, &layer);
    //< grad.chain
    for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) gradient_show_weight(w, (sinkproof_slot)s);
}

bool sinkproof_backward_serves(const sinkproof_config *config, sinkproof_error *error) {
    bool serves = config->norm == SINKPROOF_RMSNORM && config->activation == SINKPROOF_SWIGLU &&
                  config->rotation.kind != SINKPROOF_NO_ROTATION;
    return serves ||
           sinkproof_fail(error, "no backward pass of LayerNorm, GELU and learned positions: "
                                 "expected a model with RMSNorm, SwiGLU and rotary positions");
}

static gradient_walk start(const sinkproof_model *model, const sinkproof_activations *kept,
                           const sinkproof_loss_gradients *loss,
                           const sinkproof_gradient_observer *observer) {
    gradient_walk w = {.model = model,
                       .config = sinkproof_model_config(model),
                       .kept = kept,
                       .loss = loss,
                       .observer = observer,
                       .n = kept->n};
    if (loss->policy != NULL)
        w.policy = *loss->policy;
    else
        sinkproof_policy_known("real-f64", &w.policy); // it rounds nothing
    return w;
}

// The angles of the forward pass.
static void fill_angles(gradient_walk *w) {
    sinkproof_yarn_frequencies(&w->policy, w->config, w->freq_d);
    sinkproof_rope_table(&w->policy, w->config, w->freq_d, 0, w->n, w->cos_nd, w->sin_nd);
}

bool sinkproof_backward(const sinkproof_model *model, const sinkproof_activations *activations,
                        const sinkproof_loss_gradients *loss,
                        const sinkproof_gradient_observer *observer, sinkproof_error *error) {
    gradient_walk w = start(model, activations, loss, observer);
    if (!sinkproof_backward_serves(w.config, error) || !gradient_rooms_new(&w, error)) return false;
    fill_angles(&w);
    //> grad.chain
    ends_backward(&w);
    for (w.l = w.config->n_layers; w.l-- > 0;) layer_backward(&w);
    gradient_show_point(&w, TRACE_T0, w.dx_nc);
    embed_backward(w.n, w.config->hidden, activations->tokens_n, w.dx_nc,
                   w.dweight[SINKPROOF_EMBEDDING]);
    //< grad.chain
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++)
        gradient_show_weight(&w, (sinkproof_slot)s);
    gradient_rooms_free(&w);
    return true;
}
