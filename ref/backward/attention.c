// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Back through the attention sublayer of a layer (A13 to A1), head by head. The query heads of a
// group add to one key and one value (grad.group).
#include "ref/backward/walk.h"

#include <string.h>

static void zero(double *x, size_t n) {
    memset(x, 0, n * sizeof *x);
}

static sinkproof_block head_block(const gradient_walk *w) {
    const sinkproof_config *c = w->config;
    return (sinkproof_block){.rows = w->n,
                             .keys = w->n,
                             .first = 0,
                             .window = c->sliding[w->l] ? c->window : 0,
                             .head_dim = c->head_dim,
                             .q_stride = c->n_heads * c->head_dim,
                             .kv_stride = c->n_kv_heads * c->head_dim};
}

// A11 to A4 of head h.
static void head_backward(gradient_walk *w, const sinkproof_layer *layer, size_t h) {
    const sinkproof_config *c = w->config;
    const sinkproof_loss_gradients *loss = w->loss;
    size_t n = w->n, d = c->head_dim, g = h / (c->n_heads / c->n_kv_heads), l = w->l;
    sinkproof_block block = head_block(w);
    const double *alpha_ij = sinkproof_activations_at(w->kept, l, TRACE_A9) + h * n * (n + 1);
    const double *s_ij = sinkproof_activations_at(w->kept, l, TRACE_A6) + h * n * n;
    const double *q_id = sinkproof_activations_at(w->kept, l, TRACE_A4_Q) + h * d;
    const double *k_jd = sinkproof_activations_at(w->kept, l, TRACE_A4_K) + g * d;
    const double *v_jd = sinkproof_activations_at(w->kept, l, TRACE_A2_V) + g * d;
    const double *o_id = sinkproof_activations_at(w->kept, l, TRACE_A11) + h * d;
    const double *do_id = w->do_nhd + h * d;
    double *dalpha_ij = w->dalpha_hij + h * n * n, *ds_ij = w->ds_hij + h * n * n;
    double *db_i = w->db_hi + h * n;
    sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, layer, h, w->head);

    sinkproof_values_backward(&block, alpha_ij, v_jd, do_id, dalpha_ij, w->dv_ngd + g * d);
    gradient_round(w, TRACE_A10, n * n, dalpha_ij);
    sinkproof_softmax_sink_backward(&block, alpha_ij, o_id, do_id, dalpha_ij, ds_ij, db_i);
    for (int with_sink = 0; with_sink < 2; with_sink++) {
        const double *const *dlse = with_sink ? loss->dlse_lhn : loss->dlse_keys_lhn;
        if (dlse != NULL && dlse[l] != NULL)
            sinkproof_lse_backward(&block, with_sink, s_ij, alpha_ij, dlse[l] + h * n, ds_ij, db_i);
    }
    gradient_round(w, TRACE_A6, n * n, ds_ij);
    sinkproof_scores_backward(&block, q_id, k_jd, ds_ij, w->dq_nhd + h * d, w->dk_ngd + g * d);
    double *dsink_hx = w->dweight[SINKPROOF_SINKS];
    if (dsink_hx != NULL)
        sink_logits_backward(&block, &normaliser, q_id, db_i,
                             dsink_hx + h * (normaliser.key_d != NULL ? d : 1), w->dq_nhd + h * d);
}

// A3 to A2: back through the norm of each head's query or key, in place.
static void heads_backward(gradient_walk *w, const sinkproof_matrix *scale, size_t heads,
                           const double *x_nhd, double *dx_nhd, double *dscale_d) {
    size_t d = w->config->head_dim, count = w->n * heads * d;
    sinkproof_matrix_row(scale, 0, w->row_c);
    zero(w->dhead_nhd, count);
    sinkproof_rmsnorm_backward(w->row_c, w->config->rms_eps, w->n * heads, d, x_nhd, dx_nhd,
                               w->dhead_nhd, dscale_d);
    memcpy(dx_nhd, w->dhead_nhd, count * sizeof *dx_nhd);
}

// A4 to A1, and the weights of A2.
static void project_backward(gradient_walk *w, const sinkproof_layer *layer) {
    const sinkproof_config *c = w->config;
    size_t n = w->n;
    const double *t_nc = sinkproof_activations_at(w->kept, w->l, TRACE_A1);
    double **dw = w->dweight;
    sinkproof_rope_backward(n, c->n_heads, c->head_dim, w->cos_nd, w->sin_nd, w->dq_nhd);
    sinkproof_rope_backward(n, c->n_kv_heads, c->head_dim, w->cos_nd, w->sin_nd, w->dk_ngd);
    if (c->head_norms) {
        gradient_show_point(w, TRACE_A3_Q, w->dq_nhd);
        gradient_show_point(w, TRACE_A3_K, w->dk_ngd);
        heads_backward(w, &layer->q_norm, c->n_heads,
                       sinkproof_activations_at(w->kept, w->l, TRACE_A2_Q), w->dq_nhd,
                       dw[SINKPROOF_Q_NORM]);
        heads_backward(w, &layer->k_norm, c->n_kv_heads,
                       sinkproof_activations_at(w->kept, w->l, TRACE_A2_K), w->dk_ngd,
                       dw[SINKPROOF_K_NORM]);
    }
    gradient_show_point(w, TRACE_A2_Q, w->dq_nhd);
    gradient_show_point(w, TRACE_A2_K, w->dk_ngd);
    zero(w->dt_nc, n * c->hidden);
    //> grad.chain
    sinkproof_linear_backward(n, &layer->w_q, t_nc, w->dq_nhd, w->dt_nc, dw[SINKPROOF_W_Q],
                              dw[SINKPROOF_B_Q], w->row_c);
    sinkproof_linear_backward(n, &layer->w_k, t_nc, w->dk_ngd, w->dt_nc, dw[SINKPROOF_W_K],
                              dw[SINKPROOF_B_K], w->row_c);
    sinkproof_linear_backward(n, &layer->w_v, t_nc, w->dv_ngd, w->dt_nc, dw[SINKPROOF_W_V],
                              dw[SINKPROOF_B_V], w->row_c);
    //< grad.chain
    gradient_show_point(w, TRACE_A1, w->dt_nc);
}

// What the loss reads of A11 itself.
static void add_given(gradient_walk *w) {
    const double *const *given = w->loss->do_lnhd;
    size_t count = w->n * w->config->n_heads * w->config->head_dim;
    if (given == NULL || given[w->l] == NULL) return;
    for (size_t i = 0; i < count; i++) w->do_nhd[i] += given[w->l][i];
}

void gradient_of_attention(gradient_walk *w, const sinkproof_layer *layer) {
    const sinkproof_config *c = w->config;
    size_t n = w->n, heads = c->n_heads, width = c->n_kv_heads * c->head_dim;
    const double *o_nhd = sinkproof_activations_at(w->kept, w->l, TRACE_A11);
    zero(w->do_nhd, n * heads * c->head_dim);
    zero(w->dq_nhd, n * heads * c->head_dim);
    zero(w->dk_ngd, n * width);
    zero(w->dv_ngd, n * width);
    sinkproof_linear_backward(n, &layer->w_o, o_nhd, w->dx_nc, w->do_nhd, w->dweight[SINKPROOF_W_O],
                              w->dweight[SINKPROOF_B_O], w->row_c);
    add_given(w);
    gradient_show_point(w, TRACE_A11, w->do_nhd);
    for (size_t h = 0; h < heads; h++) head_backward(w, layer, h);
    gradient_show_point(w, TRACE_A10, w->dalpha_hij);
    gradient_show_point(w, TRACE_A6, w->ds_hij);
    gradient_show_point(w, TRACE_A4_Q, w->dq_nhd);
    gradient_show_point(w, TRACE_A4_K, w->dk_ngd);
    gradient_show_point(w, TRACE_A2_V, w->dv_ngd);
    project_backward(w, layer);
    size_t before = w->l == 0 ? 0 : w->l - 1;
    gradient_of_norm(w, &layer->attn_norm,
                     sinkproof_activations_at(w->kept, before, w->l == 0 ? TRACE_T0 : TRACE_M12),
                     w->dweight[SINKPROOF_ATTN_NORM]);
}
