// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts and their mixture in lane arithmetic. As in the reference, the tokens that chose the
// same expert are processed together, so that its rows are read once per call; a token's numbers do
// not depend on the others.
#include "fast/lanes/stages.h"

#include <math.h>
#include <string.h>

// The scratch of one expert, cut from `work`. m <= n tokens chose it.
typedef struct scratch {
    size_t *slot_m; // slot = n k + k' of each row
    double *t_mc, *up_m2f, *act_mf, *down_mc, *linear;
} scratch;

// Fits into stage_experts_work: the reference also stores the products separately from the
// sums.
static scratch split_work(const sinkproof_config *config, size_t n, double *work) {
    scratch s = {.slot_m = (size_t *)(void *)work};
    s.t_mc = work + n;
    s.up_m2f = s.t_mc + n * config->hidden;
    s.act_mf = s.up_m2f + n * 2 * config->inter;
    s.down_mc = s.act_mf + n * config->inter;
    s.linear = s.down_mc + n * config->hidden;
    return s;
}

// to_n[slot_m] = from_m, for rows of `width` numbers; nothing when `to` is NULL.
static void scatter_rows(size_t m, const size_t *slot_m, size_t width, const double *from,
                         double *to) {
    if (to == NULL) return;
    for (size_t t = 0; t < m; t++)
        memcpy(to + slot_m[t] * width, from + t * width, width * sizeof *to);
}

// y_mr = y_mr + b_r, rounded at `point`. b_r: room for a row of the bias.
static void add_bias(const sinkproof_policy *policy, sinkproof_point point, size_t m,
                     const sinkproof_matrix *bias, double *y_mr, double *b_r) {
    size_t rows = bias->cols;
    sinkproof_matrix_row(bias, 0, b_r);
    for (size_t t = 0; t < m; t++)
        for (size_t r = 0; r < rows; r++) {
            float y = (float)y_mr[t * rows + r] + (float)b_r[r];
            y_mr[t * rows + r] = round_at(policy, point, y);
        }
}

// M5 to M10 of expert e over the m tokens gathered in s->t_mc.
static void run_expert(const sinkproof_policy *policy, const sinkproof_config *config,
                       const sinkproof_layer *layer, size_t e, size_t m, const scratch *s,
                       const sinkproof_expert_outputs *out) {
    size_t hidden = config->hidden, inter = config->inter;
    sinkproof_matrix w_up = sinkproof_matrix_at(&layer->w_up, e);
    sinkproof_matrix b_up = sinkproof_matrix_at(&layer->b_up, e);
    sinkproof_matrix w_down = sinkproof_matrix_at(&layer->w_down, e);
    sinkproof_matrix b_down = sinkproof_matrix_at(&layer->b_down, e);

    lanes_linear(policy, AT_M5, m, &w_up, NULL, s->t_mc, s->up_m2f, s->linear);
    scatter_rows(m, s->slot_m, 2 * inter, s->up_m2f, out->up_raw);
    add_bias(policy, AT_M6, m, &b_up, s->up_m2f, s->linear);
    scatter_rows(m, s->slot_m, 2 * inter, s->up_m2f, out->up);
    lanes_activate(policy, config->swiglu, m * inter, s->up_m2f, s->act_mf);
    scatter_rows(m, s->slot_m, inter, s->act_mf, out->act);
    lanes_linear(policy, AT_M9, m, &w_down, NULL, s->act_mf, s->down_mc, s->linear);
    scatter_rows(m, s->slot_m, hidden, s->down_mc, out->down_raw);
    add_bias(policy, AT_M10, m, &b_down, s->down_mc, s->linear);
    scatter_rows(m, s->slot_m, hidden, s->down_mc, out->down);
}

void lanes_experts(const sinkproof_policy *policy, const sinkproof_config *config,
                   const sinkproof_layer *layer, size_t n, const double *t_nc,
                   const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work) {
    size_t hidden = config->hidden, n_chosen = config->n_chosen;
    scratch s = split_work(config, n, work);
    for (size_t e = 0; e < config->n_experts; e++) {
        size_t m = 0; // tokens that chose e; a token chooses e at most once
        for (size_t slot = 0; slot < n * n_chosen; slot++) {
            if (chosen_nk[slot] != (int32_t)e) continue;
            memcpy(s.t_mc + m * hidden, t_nc + slot / n_chosen * hidden, hidden * sizeof *t_nc);
            s.slot_m[m++] = slot;
        }
        if (m > 0) run_expert(policy, config, layer, e, m, &s, out);
    }
}

void lanes_mixture(const sinkproof_policy *policy, size_t n, size_t n_chosen, size_t hidden,
                   const int32_t *chosen_nk, const double *weights_nk, const double *down_nkc,
                   double *out_nc) {
    (void)chosen_nk; // the order is that of the weights, largest first
    for (size_t t = 0; t < n; t++)
        for (size_t c = 0; c < hidden; c++) {
            float out = 0;
            for (size_t k = t * n_chosen; k < (t + 1) * n_chosen; k++)
                out = fmaf((float)weights_nk[k], (float)down_nkc[k * hidden + c], out);
            out_nc[t * hidden + c] = round_at(policy, AT_M11, out);
        }
}
