// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The state of a walk back through the model, private to it.
#ifndef SINKPROOF_BACKWARD_WALK_H
#define SINKPROOF_BACKWARD_WALK_H

#include "ref/backward/backward.h"

typedef struct gradient_walk {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const sinkproof_activations *kept;
    const sinkproof_loss_gradients *loss;
    const sinkproof_gradient_observer *observer;
    sinkproof_policy policy; // what is stored is rounded by it
    size_t n, l;             // tokens; the current layer
    double *dx_nc;           // of the residual stream
    double *dt_nc;           // of a sublayer's normed input
    double *do_nhd, *dq_nhd, *dk_ngd, *dv_ngd;
    double *dhead_nhd; // before a norm of each head
    double *dalpha_hij, *ds_hij, *db_hi;
    double *freq_d, *cos_nd, *sin_nd;
    double *dlogits_ne, *dweights_nk, *ddown_nkc, *dact_nkf, *dup_nkr;
    double *t_mc, *up_mr, *act_mf, *ddown_mc, *dt_mc, *dup_mr, *dact_mf; // of one expert
    double *dweight[SINKPROOF_SLOTS]; // of a layer's weights, and of those outside; NULL: none
    double *row_c;                    // a row of a matrix, or a scale
    double *head;                     // sinkproof_normaliser_work doubles
} gradient_walk;

// Room for everything above, zeroed; or nothing.
bool gradient_rooms_new(gradient_walk *w, sinkproof_error *error);
void gradient_rooms_free(gradient_walk *w);

// Points of a layer ("dA11" is shown as "03.dA11"), and a point outside.
// Rounded as it is stored: the policy's format of the point.
void gradient_round(const gradient_walk *w, sinkproof_trace_point point, size_t count,
                    double *values);
void gradient_show_point(const gradient_walk *w, sinkproof_trace_point point, double *values);
// F2's, which are the loss's own.
void gradient_show_logits(const gradient_walk *w);
void gradient_show_weight(const gradient_walk *w, sinkproof_slot slot);

// A layer's sublayers: dx_nc is the gradient of their result when called, and of their input after.
void gradient_of_experts(gradient_walk *w, const sinkproof_layer *layer);
void gradient_of_attention(gradient_walk *w, const sinkproof_layer *layer);

// Adds to dx_nc what reaches the residual stream through the norm, from dt_nc.
void gradient_of_norm(gradient_walk *w, const sinkproof_matrix *scale, const double *x_nc,
                      double *dscale_c);

#endif
