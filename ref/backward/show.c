// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names and shapes of gradients, and what shows them; and back through a norm, which both
// sublayers and the end of the model have.
#include "ref/backward/walk.h"

#include <stdio.h>
#include <string.h>

static void show(const gradient_walk *w, bool layered, const char *name, size_t rank,
                 const size_t *shape, const double *values) {
    char full[64];
    if (layered)
        snprintf(full, sizeof full, "%02zu.%s", w->l, name);
    else
        snprintf(full, sizeof full, "%s", name);
    w->observer->see(w->observer->context, full, rank, shape, values);
}

void gradient_round(const gradient_walk *w, sinkproof_trace_point point, size_t count,
                    double *values) {
    sinkproof_point at;
    if (!sinkproof_trace_rounding(point, &at) || w->policy.at[at].format == SINKPROOF_REAL) return;
    for (size_t i = 0; i < count; i++) values[i] = round_at(&w->policy, at, values[i]);
}

void gradient_show_point(const gradient_walk *w, sinkproof_trace_point point, double *values) {
    char name[32];
    size_t shape[3], rank = sinkproof_trace_shape(w->config, point, w->n, shape);
    gradient_round(w, point, sinkproof_trace_elements(w->config, point, w->n), values);
    snprintf(name, sizeof name, "d%s", sinkproof_trace_point_name(point));
    show(w, sinkproof_trace_point_is_layered(point), name, rank, shape, values);
}

void gradient_show_logits(const gradient_walk *w) {
    size_t shape[3], rank = sinkproof_trace_shape(w->config, TRACE_F2, w->n, shape);
    show(w, false, "dF2", rank, shape, w->loss->dlogits_nv);
}

void sinkproof_gradient_name(sinkproof_slot slot, char name[32]) {
    const char *stored = sinkproof_slot_name(slot); // "w_q", "b_q", "attn_norm"
    if (slot == SINKPROOF_SINKS)
        snprintf(name, 32, "dsink");
    else if (strncmp(stored, "w_", 2) == 0 || strncmp(stored, "b_", 2) == 0)
        snprintf(name, 32, "d%c.%s", stored[0] == 'w' ? 'W' : 'b', stored + 2);
    else
        snprintf(name, 32, "dW.%s", stored);
}

size_t sinkproof_gradient_shape(const sinkproof_config *config, sinkproof_slot slot,
                                size_t shape[3]) {
    size_t count, rows, cols, rank = 0;
    sinkproof_slot_shape(slot, config, &count, &rows, &cols);
    if (count == 0) return 0;
    if (sinkproof_slot_is_stacked(slot, config)) shape[rank++] = count;
    if (!sinkproof_slot_is_vector(slot, config)) shape[rank++] = rows;
    shape[rank++] = cols;
    return rank;
}

void gradient_show_weight(const gradient_walk *w, sinkproof_slot slot) {
    char name[32];
    size_t shape[3], rank = sinkproof_gradient_shape(w->config, slot, shape);
    if (w->dweight[slot] == NULL) return;
    sinkproof_gradient_name(slot, name);
    show(w, slot < SINKPROOF_LAYER_SLOTS, name, rank, shape, w->dweight[slot]);
}

void gradient_of_norm(gradient_walk *w, const sinkproof_matrix *scale, const double *x_nc,
                      double *dscale_c) {
    sinkproof_matrix_row(scale, 0, w->row_c);
    sinkproof_rmsnorm_backward(w->row_c, w->config->rms_eps, w->n, w->config->hidden, x_nc,
                               w->dt_nc, w->dx_nc, dscale_c);
}
