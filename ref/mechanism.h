// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of a score if queries and keys have biases (doc/31-score-terms.md): its four terms, the
// direction that the query's bias gives to keys, and the contribution of a position alone through
// the first perceptron. All are functions of arrays; sums run over ascending indices in binary64. A
// NaN in an argument gives a NaN in the result.
#ifndef SINKPROOF_MECHANISM_H
#define SINKPROOF_MECHANISM_H

#include "model/model.h"
#include "ref/policy.h"

// The four terms of q_t k_j^T (gpt2.expand), before any scale: q_t = a_t + b_Q with a_t = x_t W_q,
// k_j = c_j + b_K with c_j = x_j W_k.
typedef enum sinkproof_term {
    SINKPROOF_TERM_CONTENT,  // a_t c_j^T: depends on both tokens
    SINKPROOF_TERM_QUERY,    // a_t b_K^T: depends only on the query's token
    SINKPROOF_TERM_KEY,      // b_Q c_j^T = Delta_j: depends only on the key's token
    SINKPROOF_TERM_CONSTANT, // b_Q b_K^T: depends on neither
    SINKPROOF_TERMS
} sinkproof_term;

// For one query and one key over d coordinates: a head's, or all of them (the paper's form, before
// the split into heads). If positions rotate, all four vectors must be rotated, the biases by the
// position of their side, so that no term is constant.
void sinkproof_mechanism_terms(size_t d, const double *a_d, const double *b_q_d, const double *c_d,
                               const double *b_k_d, double terms[SINKPROOF_TERMS]);

// gpt2.gamma: gamma_c = sum_r b_r W_rc over `rows` rows of W_k [rows, hidden] from `first` on; b_r
// is the bias of the first of these rows. row_c: hidden doubles of scratch.
void sinkproof_mechanism_gamma(const sinkproof_matrix *w_k, size_t first, size_t rows,
                               const double *b_r, double *gamma_c, double *row_c);
// sum_i x_i y_i: gpt2.delta is that of gamma and the normed state x_j.
double sinkproof_mechanism_dot(size_t n, const double *x_i, const double *y_i);
// gpt2.align, gpt2.epe-check: NAN where one of them has length 0.
double sinkproof_mechanism_cosine(size_t n, const double *x_i, const double *y_i);

// gpt2.epe: MLP^(1)(p_i) + p_i for n rows p_ic [n, hidden], with the first layer's perceptron under
// the policy. `normed`: after its LayerNorm, as in the layer; else on the raw row, as in the paper.
// With e_i + p_i or e_i in place of p_i it is R_i or O_i. work: sinkproof_mechanism_epe_work
// doubles. The perceptron must have no gate and no router.
void sinkproof_mechanism_epe(const sinkproof_model *model, const sinkproof_policy *policy,
                             bool normed, size_t n, const double *p_ic, double *epe_ic,
                             double *work);
size_t sinkproof_mechanism_epe_work(const sinkproof_config *config, size_t n);
// gpt2.epe-check: cos(EPE_i, R_i - O_i) of one position, n coordinates; r_c becomes R_i - O_i.
double sinkproof_mechanism_epe_check(size_t n, const double *epe_c, const double *o_c, double *r_c);

// gpt2.table1, gpt2.table2: mean and standard deviation of all |x_c| (the sum of squares over their
// number).
typedef struct sinkproof_massive_rule {
    double mean, deviation;
    size_t n;
} sinkproof_massive_rule;
sinkproof_massive_rule sinkproof_mechanism_spread(size_t n, const double *x_c); // n: 0
// gpt2.massive: the coordinates whose |x_c| exceeds the mean + `deviations` standard deviations, in
// ascending order. at: room for n.
sinkproof_massive_rule sinkproof_mechanism_massive(size_t n, const double *x_c, double deviations,
                                                   size_t *at);

#endif
