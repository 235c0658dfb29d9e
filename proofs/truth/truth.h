// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The truth of every stage: the real meaning of the model, in which weights are the exact
// dyadic numbers that are stored and every operation is over the reals.
//
// Each stage has two functions. `sinkproof_truth_STAGE` takes balls and returns balls that contain
// the real result for every choice of reals inside the input balls: *enclosed*, at `bits` of
// working precision. Inputs of radius 0 (exact numbers, as an engine's trace holds them) give
// the local truth of that operation. `sinkproof_mpfr_STAGE` computes the same by one correctly
// rounded MPFR operation after another at a stated precision: it is written for readability, is
// slow, and has no error bound of its own; tests compare it with the ball.
//
// Constants. The configuration holds binary64 numbers that came from decimal text (eps 1e-5,
// alpha 1.702, theta 150000). The model's constant is that decimal: the one of 15 significant
// digits, or failing that 16 or 17, that reads back as the same binary64 number.
//
// Index letters: n tokens (i queries, j keys), h heads, d elements of a head, c columns (inputs),
// r rows (outputs), e experts, k chosen experts. out_nr is an array of shape [n][r]. Infinities
// and NaN in a weight or an input give balls of infinite radius, never a wrong enclosure.
#ifndef SINKPROOF_TRUTH_H
#define SINKPROOF_TRUTH_H

#include "model/config.h"
#include "model/matrix.h"
#include "proofs/truth/flint.h"
#include "ref/normaliser.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- numbers (number.c) -----------------------------------------------------------------

// The decimal text of a constant of the configuration.
void truth_decimal_text(double value, char text[40]);
void sinkproof_truth_decimal(arb_t out, double value, slong bits); // the same, enclosed

// Row r of a plain matrix, exactly (radius 0). scratch_c: [cols].
void sinkproof_truth_row(arb_ptr out_c, const sinkproof_matrix *matrix, size_t r,
                         double *scratch_c);

// log2 of the radius, rounded up; -INFINITY when it is 0, INFINITY when the ball is not finite.
double sinkproof_truth_radius_log2(const arb_t ball);

// An upper bound of the radius relative to |midpoint|, as a power of two: rad <= 2^result |mid|.
// -INFINITY for radius 0, INFINITY when the ball is infinite or its midpoint is 0.
double sinkproof_truth_relative_log2(const arb_t ball);

// An upper bound of |y - x| over the reals y in the ball, rounded up to binary64.
double sinkproof_truth_distance(const arb_t ball, double x);

// Vectors of MPFR numbers of the given precision, all 0.
mpfr_ptr truth_mpfr_vector(size_t n, mpfr_prec_t bits);
void truth_mpfr_vector_free(mpfr_ptr vector, size_t n);

// An enclosed upper bound on |A x| / |x| for a matrix [rows, cols] (operator_norm.c).
void truth_operator_norm(arb_t norm, arb_srcptr a_rc, size_t rows, size_t cols, slong bits);

// --- the stages: enclosures ------------------------------------------------------------

// out_nr = x_nc W^T + b; b may be NULL. (A2, A12, M2, F2)
void sinkproof_truth_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_rc,
                            const sinkproof_matrix *b_r, slong bits);

// out_c = w_c x_c / sqrt(mean_c(x_c^2) + eps) for each of n tokens. (A1, M1, F1)
void sinkproof_truth_rmsnorm(arb_ptr out_nc, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_c,
                             double eps, slong bits);

// LayerNorm: a norm that subtracts the mean and adds a shift. GELU with a tanh in place of Phi.
void sinkproof_truth_layernorm(arb_ptr out_nc, arb_srcptr x_nc, size_t n,
                               const sinkproof_matrix *w_c, const sinkproof_matrix *b_c, double eps,
                               slong bits);
void sinkproof_truth_gelu_tanh(arb_ptr y_n, arb_srcptr x_n, size_t n, slong bits);

// The YaRN table: half = head_dim / 2 frequencies, concentration, ends of the ramp.
typedef struct sinkproof_truth_yarn {
    size_t half;
    arb_ptr inv_freq_d; // [half]
    arb_t concentration, low, high;
} sinkproof_truth_yarn;
void sinkproof_truth_yarn_init(sinkproof_truth_yarn *yarn, const sinkproof_config *config,
                               slong bits);
void sinkproof_truth_yarn_clear(sinkproof_truth_yarn *yarn);

// Rotates n x heads vectors of 2 half elements by their positions. (A4)
void sinkproof_truth_rope(arb_ptr out_nhd, arb_srcptr x_nhd, size_t n, size_t heads,
                          const int32_t *positions_n, const sinkproof_truth_yarn *yarn, slong bits);

// z_j = q . k_j / sqrt(head_dim), key j at k_jd + j stride. (A6)
void sinkproof_truth_scores(arb_ptr z_j, arb_srcptr q_d, arb_srcptr k_jd, size_t n_keys,
                            size_t stride, size_t head_dim, slong bits);

// b: the sink's logit of the row with the rotated query q_d.
void truth_sink_logit(arb_t b, const sinkproof_normaliser *normaliser, arb_srcptr q_d,
                      size_t head_dim, slong bits);

// alpha_j = e^z_j / (e^b + sum e^z) and alpha_sink = e^b / (same). b may be -infinity: ordinary
// softmax, exactly. Over the visible keys only. (A9)
void sinkproof_truth_softmax_sink(arb_ptr alpha_j, arb_t alpha_sink, arb_srcptr z_j, size_t n_keys,
                                  const arb_t sink, slong bits);

// out_d = sum_j alpha_j v_jd, key j at v_jd + j stride. (A11)
void sinkproof_truth_values(arb_ptr out_d, arb_srcptr alpha_j, arb_srcptr v_jd, size_t n_keys,
                            size_t stride, size_t head_dim, slong bits);

typedef enum truth_choice {
    CHOICE_CERTIFIED, // every chosen logit is above every other
    CHOICE_TIE,       // exactly equal (radius 0): the lower index wins, by definition
    CHOICE_AMBIGUOUS, // the balls overlap: no proof which experts the truth chooses
} truth_choice;

// The n_chosen largest of the logits, descending by midpoint, lower index first among equals.
// margin: (least chosen) - (largest other), enclosed; +infinity when all are chosen. (M3)
truth_choice sinkproof_truth_topk(size_t *chosen_k, arb_t margin, arb_srcptr logit_e,
                                  size_t n_experts, size_t n_chosen, slong bits);
// The margin of a given selection: negative when another expert's logit is larger.
truth_choice truth_margin(arb_t margin, const size_t *chosen_k, arb_srcptr logit_e,
                          size_t n_experts, size_t n_chosen, slong bits);
// The index of the largest midpoint. *certified: whether its ball lies above every other, so that
// it is the argmax of the truth. gap: this logit minus the largest other, enclosed (may be NULL).
size_t sinkproof_truth_argmax(arb_srcptr logit_v, size_t vocab, bool *certified, arb_ptr gap,
                              slong bits);
// Softmax over the chosen logits only. (M4)
void sinkproof_truth_router_weights(arb_ptr w_k, const size_t *chosen_k, arb_srcptr logit_e,
                                    size_t n_chosen, slong bits);

// out_i = (clamp(u_2i+1) + 1) g sigmoid(alpha g), g = min(u_2i, limit). (M8)
void sinkproof_truth_swiglu(arb_ptr out_i, arb_srcptr u_2i, size_t inter,
                            sinkproof_swiglu_numbers numbers, slong bits);

void sinkproof_truth_gelu(arb_t out, const arb_t x, slong bits); // x Phi(x)
// The suprema over x >= 0 of x^w (Phi(x) - sigmoid(alpha x)) and of its opposite, Phi the normal
// distribution function: w = 1 for GELU, 0 for Phi itself. alpha > 1. (gelu_fit.c)
void sinkproof_truth_gelu_fit(arb_t above, arb_t below, const arb_t alpha, int w, slong bits);
// The alpha in [1.5, 2] at which the larger of the two is smallest, and that smallest error.
void truth_gelu_fit_best(arb_t alpha, arb_t error, int w, slong bits);

// One projection of the chosen experts without bias: out_nkr = W_e x. x is [n][c], one row for
// every chosen expert (M5), or [n][k][c] when per_slot (M9). Each expert's rows are read once.
void truth_expert_linear(arb_ptr out_nkr, arb_srcptr x, bool per_slot, size_t n,
                         const size_t *chosen_nk, size_t n_chosen, const sinkproof_matrix *w_erc,
                         slong bits, size_t threads);
// u_nkr += b_e: the experts' biases. (M6, M10)
void truth_expert_bias(arb_ptr u_nkr, size_t n, const size_t *chosen_nk, size_t n_chosen,
                       const sinkproof_matrix *b_er, slong bits);
// out_d = sum_k w_k y_kd. (M11)
void sinkproof_truth_mixture(arb_ptr out_d, arb_srcptr w_k, arb_srcptr y_kd, size_t n_chosen,
                             size_t hidden, slong bits);

// --- the cost of a model (training.c) ---------------------------------------------------

// Tokens from accelerator hours, the peak rate in operations per second, and the used share of it.
void sinkproof_truth_training_tokens(arb_t tokens, const sinkproof_config *config,
                                     const arb_t hours, const arb_t peak, const arb_t used,
                                     slong bits);

// --- the stages: MPFR, one token (or one query and head) at a time -----------------------

void truth_mpfr_linear(mpfr_ptr out_r, mpfr_srcptr x_c, const sinkproof_matrix *w_rc,
                       const sinkproof_matrix *b_r, mpfr_prec_t bits);
void truth_mpfr_rmsnorm(mpfr_ptr out_c, mpfr_srcptr x_c, const sinkproof_matrix *w_c, double eps,
                        mpfr_prec_t bits);
void truth_mpfr_yarn(mpfr_ptr inv_freq_d, mpfr_ptr concentration, const sinkproof_config *config,
                     mpfr_prec_t bits);
void truth_mpfr_rope(mpfr_ptr out_d, mpfr_srcptr x_d, size_t half, int32_t position,
                     mpfr_srcptr inv_freq_d, mpfr_srcptr concentration, mpfr_prec_t bits);
void truth_mpfr_scores(mpfr_ptr z_j, mpfr_srcptr q_d, mpfr_srcptr k_jd, size_t n_keys,
                       size_t stride, size_t head_dim, mpfr_prec_t bits);
void truth_mpfr_softmax_sink(mpfr_ptr alpha_j, mpfr_ptr alpha_sink, mpfr_srcptr z_j, size_t n_keys,
                             mpfr_srcptr sink, mpfr_prec_t bits);
void truth_mpfr_values(mpfr_ptr out_d, mpfr_srcptr alpha_j, mpfr_srcptr v_jd, size_t n_keys,
                       size_t stride, size_t head_dim, mpfr_prec_t bits);
void truth_mpfr_router(size_t *chosen_k, mpfr_ptr w_k, mpfr_srcptr logit_e, size_t n_experts,
                       size_t n_chosen, mpfr_prec_t bits);
void truth_mpfr_swiglu(mpfr_ptr out_i, mpfr_srcptr u_2i, size_t inter,
                       sinkproof_swiglu_numbers numbers, mpfr_prec_t bits);
void truth_mpfr_mixture(mpfr_ptr out_d, mpfr_srcptr w_k, mpfr_srcptr y_kd, size_t n_chosen,
                        size_t hidden, mpfr_prec_t bits);

#endif
