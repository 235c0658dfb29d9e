// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Back through the experts' sublayer of a layer (M12 to M1), or through one perceptron. The tokens
// that chose an expert go through it together; an expert that no token chose has gradients of 0.
#include "ref/backward/walk.h"

#include <string.h>

static void zero(double *x, size_t n) {
    memset(x, 0, n * sizeof *x);
}

static bool chose(const gradient_walk *w, size_t slot, size_t e) {
    return w->config->dense || sinkproof_activations_at(w->kept, w->l, TRACE_M3)[slot] == (double)e;
}

// Part e of a stack's gradient, or NULL.
static double *part_of(double *gradient, size_t e, size_t size) {
    return gradient != NULL ? gradient + e * size : NULL;
}

static void copy_row(double *to, const double *from, size_t slot, size_t width) {
    memcpy(to, from + slot * width, width * sizeof *to);
}

// M10 to M6 and M1's share, of expert e over the m slots in w->t_mc, up_mr, act_mf and ddown_mc.
static void expert_backward(gradient_walk *w, const sinkproof_layer *layer, size_t e, size_t m) {
    const sinkproof_config *c = w->config;
    size_t hidden = c->hidden, inter = c->inter;
    sinkproof_matrix w_up = sinkproof_matrix_at(&layer->w_up, e);
    sinkproof_matrix w_down = sinkproof_matrix_at(&layer->w_down, e);
    double **dw = w->dweight;
    zero(w->dact_mf, m * inter);
    zero(w->dt_mc, m * hidden);
    sinkproof_linear_backward(m, &w_down, w->act_mf, w->ddown_mc, w->dact_mf,
                              part_of(dw[SINKPROOF_W_DOWN], e, hidden * inter),
                              part_of(dw[SINKPROOF_B_DOWN], e, hidden), w->row_c);
    gradient_round(w, TRACE_M8, m * inter, w->dact_mf);
    for (size_t i = 0; i < m * inter; i++)
        sinkproof_swiglu_backward(c->swiglu, w->up_mr[2 * i], w->up_mr[2 * i + 1], w->dact_mf[i],
                                  &w->dup_mr[2 * i], &w->dup_mr[2 * i + 1]);
    gradient_round(w, TRACE_M6, 2 * m * inter, w->dup_mr);
    sinkproof_linear_backward(m, &w_up, w->t_mc, w->dup_mr, w->dt_mc,
                              part_of(dw[SINKPROOF_W_UP], e, 2 * inter * hidden),
                              part_of(dw[SINKPROOF_B_UP], e, 2 * inter), w->row_c);
}

// Gathers what the slots of expert e read, and gives each slot and its token what comes back.
static void gather_and_scatter(gradient_walk *w, const sinkproof_layer *layer, size_t e) {
    const sinkproof_config *c = w->config;
    size_t hidden = c->hidden, inter = c->inter, chosen = c->dense ? 1 : c->n_chosen, m = 0;
    for (size_t slot = 0; slot < w->n * chosen; slot++) {
        if (!chose(w, slot, e)) continue;
        copy_row(w->t_mc + m * hidden, sinkproof_activations_at(w->kept, w->l, TRACE_M1),
                 slot / chosen, hidden);
        copy_row(w->up_mr + m * 2 * inter, sinkproof_activations_at(w->kept, w->l, TRACE_M6), slot,
                 2 * inter);
        copy_row(w->act_mf + m * inter, sinkproof_activations_at(w->kept, w->l, TRACE_M8), slot,
                 inter);
        copy_row(w->ddown_mc + m++ * hidden, w->ddown_nkc, slot, hidden);
    }
    if (m == 0) return;
    expert_backward(w, layer, e, m);
    m = 0;
    for (size_t slot = 0; slot < w->n * chosen; slot++) {
        if (!chose(w, slot, e)) continue;
        copy_row(w->dact_nkf + slot * inter, w->dact_mf, m, inter);
        copy_row(w->dup_nkr + slot * 2 * inter, w->dup_mr, m, 2 * inter);
        for (size_t k = 0; k < hidden; k++)
            w->dt_nc[slot / chosen * hidden + k] += w->dt_mc[m * hidden + k];
        m++;
    }
}

// M11 to M10 and M4.
static void mixture_backward(gradient_walk *w) {
    const sinkproof_config *c = w->config;
    size_t k = c->n_chosen, hidden = c->hidden;
    const double *weights_nk = sinkproof_activations_at(w->kept, w->l, TRACE_M4);
    const double *down_nkc = sinkproof_activations_at(w->kept, w->l, TRACE_M10);
    for (size_t t = 0; t < w->n; t++)
        sinkproof_mixture_backward(k, hidden, weights_nk + t * k, down_nkc + t * k * hidden,
                                   w->dx_nc + t * hidden, w->dweights_nk + t * k,
                                   w->ddown_nkc + t * k * hidden);
    gradient_show_point(w, TRACE_M10, w->ddown_nkc);
    gradient_show_point(w, TRACE_M4, w->dweights_nk);
}

// M4 to M2, and M1's share.
static void router_backward(gradient_walk *w, const sinkproof_layer *layer) {
    const sinkproof_config *c = w->config;
    size_t k = c->n_chosen;
    const double *weights_nk = sinkproof_activations_at(w->kept, w->l, TRACE_M4);
    const double *chosen_nk = sinkproof_activations_at(w->kept, w->l, TRACE_M3);
    for (size_t t = 0; t < w->n; t++)
        sinkproof_router_backward(c->n_experts, k, chosen_nk + t * k, weights_nk + t * k,
                                  w->dweights_nk + t * k, w->dlogits_ne + t * c->n_experts);
    gradient_show_point(w, TRACE_M2, w->dlogits_ne);
    sinkproof_linear_backward(
        w->n, &layer->w_router, sinkproof_activations_at(w->kept, w->l, TRACE_M1), w->dlogits_ne,
        w->dt_nc, w->dweight[SINKPROOF_W_ROUTER], w->dweight[SINKPROOF_B_ROUTER], w->row_c);
}

void gradient_of_experts(gradient_walk *w, const sinkproof_layer *layer) {
    const sinkproof_config *c = w->config;
    size_t count = w->n * c->hidden;
    zero(w->dt_nc, count);
    if (c->dense)
        memcpy(w->ddown_nkc, w->dx_nc, count * sizeof *w->dx_nc);
    else
        mixture_backward(w);
    for (size_t e = 0; e < (c->dense ? 1 : c->n_experts); e++) gather_and_scatter(w, layer, e);
    gradient_show_point(w, TRACE_M8, w->dact_nkf);
    gradient_show_point(w, TRACE_M6, w->dup_nkr);
    if (!c->dense) router_backward(w, layer);
    gradient_show_point(w, TRACE_M1, w->dt_nc);
    gradient_of_norm(w, &layer->mlp_norm, sinkproof_activations_at(w->kept, w->l, TRACE_A13),
                     w->dweight[SINKPROOF_MLP_NORM]);
}
