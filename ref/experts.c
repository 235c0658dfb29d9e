// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mixture of experts (M5 to M11, doc/09-swiglu-experts.md). Only the chosen experts run; the tokens
// that chose the same expert go through it together, so that its rows are decoded once per call.
#include "ref/stages.h"

#include <string.h>

// The scratch of one expert, cut from `work`. m <= n tokens chose it.
typedef struct scratch {
    double *t_mc, *raw_mr, *up_m2f, *act_mf, *down_mc, *linear;
} scratch;

static size_t max2(size_t a, size_t b) {
    return a > b ? a : b;
}

size_t stage_experts_work(const sinkproof_config *config, size_t n) {
    size_t hidden = config->hidden, inter = config->inter;
    size_t linear =
        max2(sinkproof_linear_work(n, 2 * inter, hidden), sinkproof_linear_work(n, hidden, inter));
    size_t raw = max2(2 * inter, hidden);
    return n + n * (hidden + raw + 2 * inter + inter + hidden) + linear;
}

static scratch split_work(const sinkproof_config *config, size_t n, double *work) {
    size_t hidden = config->hidden, inter = config->inter;
    scratch s;
    s.t_mc = work;
    s.raw_mr = s.t_mc + n * hidden;
    s.up_m2f = s.raw_mr + n * max2(2 * inter, hidden);
    s.act_mf = s.up_m2f + n * 2 * inter;
    s.down_mc = s.act_mf + n * inter;
    s.linear = s.down_mc + n * hidden;
    return s;
}

// y = round(round(W x) + b): an expert's bias is added by an operation of its own.
static void linear_then_bias(const sinkproof_policy *policy, sinkproof_point before,
                             sinkproof_point after, size_t m, const sinkproof_matrix *weight,
                             const sinkproof_matrix *bias, const double *x, double *raw, double *y,
                             double *work) {
    size_t rows = weight->rows;
    sinkproof_linear(policy, before, m, weight, NULL, x, raw, work);
    double *b_r = work;
    sinkproof_matrix_row(bias, 0, b_r);
    for (size_t t = 0; t < m; t++)
        for (size_t r = 0; r < rows; r++)
            y[t * rows + r] = round_at(policy, after, raw[t * rows + r] + b_r[r]);
}

// to_n[slot_m] = from_m, for rows of `width` numbers; nothing when `to` is NULL.
static void scatter_rows(size_t m, const size_t *slot_m, size_t width, const double *from,
                         double *to) {
    if (to == NULL) return;
    for (size_t t = 0; t < m; t++)
        memcpy(to + slot_m[t] * width, from + t * width, width * sizeof *to);
}

// One expert e over the m tokens gathered in s->t_mc; slot_m = n k + k' identifies token and slot.
static void run_expert(const sinkproof_policy *policy, const sinkproof_config *config,
                       const sinkproof_layer *layer, size_t e, size_t m, const size_t *slot_m,
                       const scratch *s, const sinkproof_expert_outputs *out) {
    size_t hidden = config->hidden, inter = config->inter;
    sinkproof_matrix w_up = sinkproof_matrix_at(&layer->w_up, e);
    sinkproof_matrix b_up = sinkproof_matrix_at(&layer->b_up, e);
    sinkproof_matrix w_down = sinkproof_matrix_at(&layer->w_down, e);
    sinkproof_matrix b_down = sinkproof_matrix_at(&layer->b_down, e);

    linear_then_bias(policy, AT_M5, AT_M6, m, &w_up, &b_up, s->t_mc, s->raw_mr, s->up_m2f,
                     s->linear);
    scatter_rows(m, slot_m, 2 * inter, s->raw_mr, out->up_raw);
    scatter_rows(m, slot_m, 2 * inter, s->up_m2f, out->up);
    sinkproof_swiglu(policy, config->swiglu, m * inter, s->up_m2f, s->act_mf);
    scatter_rows(m, slot_m, inter, s->act_mf, out->act);
    linear_then_bias(policy, AT_M9, AT_M10, m, &w_down, &b_down, s->act_mf, s->raw_mr, s->down_mc,
                     s->linear);
    scatter_rows(m, slot_m, hidden, s->raw_mr, out->down_raw);
    scatter_rows(m, slot_m, hidden, s->down_mc, out->down);
}

void stage_experts(const sinkproof_policy *policy, const sinkproof_config *config,
                   const sinkproof_layer *layer, size_t n, const double *t_nc,
                   const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work) {
    size_t hidden = config->hidden, n_chosen = config->n_chosen;
    size_t *slot_m = (size_t *)(void *)work; // [n], ahead of the numbers
    scratch s = split_work(config, n, work + n);
    for (size_t e = 0; e < config->n_experts; e++) {
        size_t m = 0; // tokens that chose e, in ascending order; a token chooses e at most once
        for (size_t slot = 0; slot < n * n_chosen; slot++) {
            if (chosen_nk[slot] != (int32_t)e) continue;
            memcpy(s.t_mc + m * hidden, t_nc + slot / n_chosen * hidden, hidden * sizeof *t_nc);
            slot_m[m++] = slot;
        }
        if (m > 0) run_expert(policy, config, layer, e, m, slot_m, &s, out);
    }
}

// The chosen slot with the next expert index after `previous` (-1 at the start).
static size_t next_slot_by_expert(size_t n_chosen, const int32_t *chosen_k, int32_t previous) {
    size_t next = n_chosen;
    for (size_t k = 0; k < n_chosen; k++)
        if (chosen_k[k] > previous && (next == n_chosen || chosen_k[k] < chosen_k[next])) next = k;
    return next;
}

// The real sum does not depend on the order of the experts; a rounded running sum (M11.sum) does,
// and is in ascending order of the expert's index. The down-projection's bias is part of down_nkc,
// hence weighted by w_nk.
void sinkproof_mixture(const sinkproof_policy *policy, size_t n, size_t n_chosen, size_t hidden,
                       const int32_t *chosen_nk, const double *weights_nk, const double *down_nkc,
                       double *out_nc) {
    for (size_t t = 0; t < n; t++) {
        double *out_c = out_nc + t * hidden;
        memset(out_c, 0, hidden * sizeof *out_c);
        int32_t e = -1;
        for (size_t step = 0; step < n_chosen; step++) {
            size_t k = next_slot_by_expert(n_chosen, chosen_nk + t * n_chosen, e);
            e = chosen_nk[t * n_chosen + k];
            double w = weights_nk[t * n_chosen + k];
            const double *down_c = down_nkc + (t * n_chosen + k) * hidden;
            //> moe.sum
            for (size_t c = 0; c < hidden; c++) {
                double product = round_at(policy, AT_M11_PROD, w * down_c[c]);
                out_c[c] = round_at(policy, AT_M11_SUM, out_c[c] + product);
            }
            //< moe.sum
        }
        for (size_t c = 0; c < hidden; c++) // one rank has all
            out_c[c] = round_at(policy, AT_M11, round_at(policy, AT_M11_PART, out_c[c]));
    }
}
