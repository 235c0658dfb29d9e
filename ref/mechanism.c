// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The quantities behind GPT-2's sink, each a few lines of its definition. The perceptron of a
// position's path consists of the layer's own stages, rounded as the policy says; everything else
// has only the roundings of binary64, in the order of the code.
#include "ref/mechanism.h"

#include "ref/stages.h"

#include <math.h>
#include <string.h>

double sinkproof_mechanism_dot(size_t n, const double *x_i, const double *y_i) {
    //> gpt2.delta
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x_i[i] * y_i[i];
    return sum;
    //< gpt2.delta
}

void sinkproof_mechanism_terms(size_t d, const double *a_d, const double *b_q_d, const double *c_d,
                               const double *b_k_d, double terms[SINKPROOF_TERMS]) {
    //> gpt2.expand
    terms[SINKPROOF_TERM_CONTENT] = sinkproof_mechanism_dot(d, a_d, c_d);
    terms[SINKPROOF_TERM_QUERY] = sinkproof_mechanism_dot(d, a_d, b_k_d);
    terms[SINKPROOF_TERM_KEY] = sinkproof_mechanism_dot(d, b_q_d, c_d);
    terms[SINKPROOF_TERM_CONSTANT] = sinkproof_mechanism_dot(d, b_q_d, b_k_d);
    //< gpt2.expand
}

void sinkproof_mechanism_gamma(const sinkproof_matrix *w_k, size_t first, size_t rows,
                               const double *b_r, double *gamma_c, double *row_c) {
    size_t hidden = w_k->cols;
    //> gpt2.gamma
    for (size_t c = 0; c < hidden; c++) gamma_c[c] = 0;
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(w_k, first + r, row_c);
        for (size_t c = 0; c < hidden; c++) gamma_c[c] += b_r[r] * row_c[c];
    }
    //< gpt2.gamma
}

double sinkproof_mechanism_cosine(size_t n, const double *x_i, const double *y_i) {
    //> gpt2.align
    double xy = sinkproof_mechanism_dot(n, x_i, y_i);
    double xx = sinkproof_mechanism_dot(n, x_i, x_i), yy = sinkproof_mechanism_dot(n, y_i, y_i);
    return xy / (sqrt(xx) * sqrt(yy)); // 0 / 0: NaN
    //< gpt2.align
}

// ---- the contribution of a position -----------------------------------------------------------

// The normed rows, the perceptron's wide rows before and after GELU, and the stages' scratch.
size_t sinkproof_mechanism_epe_work(const sinkproof_config *config, size_t n) {
    size_t hidden = config->hidden, inter = config->inter;
    size_t rest = sinkproof_linear_work(n, inter, hidden);
    size_t down = sinkproof_linear_work(n, hidden, inter);
    if (down > rest) rest = down;
    if (2 * hidden > rest) rest = 2 * hidden;
    return n * hidden + 2 * n * inter + rest;
}

void sinkproof_mechanism_epe(const sinkproof_model *model, const sinkproof_policy *policy,
                             bool normed, size_t n, const double *p_ic, double *epe_ic,
                             double *work) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_layer first = sinkproof_model_layer(model, 0);
    size_t hidden = config->hidden, inter = config->inter;
    double *t_ic = work, *up_if = t_ic + n * hidden, *act_if = up_if + n * inter;
    double *rest = act_if + n * inter;
    //> gpt2.epe
    if (normed)
        sinkproof_layernorm(policy, AT_M1, &first.mlp_norm, &first.mlp_norm_b, config->rms_eps, n,
                            p_ic, t_ic, rest);
    else
        memcpy(t_ic, p_ic, n * hidden * sizeof *t_ic);
    sinkproof_linear(policy, AT_M6, n, &first.w_up, &first.b_up, t_ic, up_if, rest);
    sinkproof_gelu(policy, n * inter, up_if, act_if);
    sinkproof_linear(policy, AT_M10, n, &first.w_down, &first.b_down, act_if, epe_ic, rest);
    sinkproof_residual(policy, AT_M12, n * hidden, p_ic, epe_ic);
    //< gpt2.epe
}

double sinkproof_mechanism_epe_check(size_t n, const double *epe_c, const double *o_c,
                                     double *r_c) {
    //> gpt2.epe-check
    for (size_t c = 0; c < n; c++) r_c[c] -= o_c[c];
    return sinkproof_mechanism_cosine(n, epe_c, r_c);
    //< gpt2.epe-check
}

sinkproof_massive_rule sinkproof_mechanism_spread(size_t n, const double *x_c) {
    sinkproof_massive_rule rule = {0, 0, 0};
    double sum = 0, squares = 0;
    //> gpt2.massive gpt2.table1 gpt2.table2
    for (size_t c = 0; c < n; c++) sum += fabs(x_c[c]);
    rule.mean = sum / (double)n;
    for (size_t c = 0; c < n; c++)
        squares += (fabs(x_c[c]) - rule.mean) * (fabs(x_c[c]) - rule.mean);
    rule.deviation = sqrt(squares / (double)n);
    //< gpt2.massive gpt2.table1 gpt2.table2
    return rule;
}

sinkproof_massive_rule sinkproof_mechanism_massive(size_t n, const double *x_c, double deviations,
                                                   size_t *at) {
    sinkproof_massive_rule rule = sinkproof_mechanism_spread(n, x_c);
    //> gpt2.massive
    for (size_t c = 0; c < n; c++)
        if (fabs(x_c[c]) > rule.mean + deviations * rule.deviation) at[rule.n++] = c;
    //< gpt2.massive
    return rule;
}
