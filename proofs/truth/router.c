// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router over the reals: the largest logits choose the experts, and a softmax over the chosen
// ones gives their weights. The choice is a discontinuity: it is certified when every chosen ball
// is above every other; when balls overlap, later precision cannot decide it, and the caller gets
// the margin.
#include "proofs/truth/truth.h"

#include <stdlib.h>

static bool is_among_chosen(const size_t *chosen_k, size_t n_chosen, size_t e) {
    for (size_t k = 0; k < n_chosen; k++)
        if (chosen_k[k] == e) return true;
    return false;
}

static truth_choice compare_choice(const arb_t chosen, const arb_t other, bool lower_index) {
    if (arb_gt(chosen, other)) return CHOICE_CERTIFIED;
    if (arb_is_exact(chosen) && arb_is_exact(other) && arb_eq(chosen, other) && lower_index)
        return CHOICE_TIE;
    return CHOICE_AMBIGUOUS;
}

truth_choice truth_margin(arb_t margin, const size_t *chosen_k, arb_srcptr logit_e,
                          size_t n_experts, size_t n_chosen, slong bits) {
    truth_choice worst = CHOICE_CERTIFIED;
    arb_t least;
    arb_init(least);
    arb_pos_inf(least);
    arb_neg_inf(margin); // the largest of the others
    for (size_t k = 0; k < n_chosen; k++) arb_min(least, least, logit_e + chosen_k[k], bits);
    for (size_t e = 0; e < n_experts; e++) {
        if (is_among_chosen(chosen_k, n_chosen, e)) continue;
        arb_max(margin, margin, logit_e + e, bits);
        for (size_t k = 0; k < n_chosen; k++) {
            truth_choice pair = compare_choice(logit_e + chosen_k[k], logit_e + e, chosen_k[k] < e);
            if (pair > worst) worst = pair;
        }
    }
    arb_sub(margin, least, margin, bits);
    if (n_chosen == n_experts) arb_pos_inf(margin);
    arb_clear(least);
    return worst;
}

//> router.topk
truth_choice sinkproof_truth_topk(size_t *chosen_k, arb_t margin, arb_srcptr logit_e,
                                  size_t n_experts, size_t n_chosen, slong bits) {
    for (size_t k = 0; k < n_chosen; k++) {
        size_t best = n_experts;
        for (size_t e = 0; e < n_experts; e++) {
            if (is_among_chosen(chosen_k, k, e)) continue;
            if (best == n_experts ||
                arf_cmp(arb_midref(logit_e + e), arb_midref(logit_e + best)) > 0)
                best = e;
        }
        chosen_k[k] = best;
    }
    return truth_margin(margin, chosen_k, logit_e, n_experts, n_chosen, bits);
}
//< router.topk

//> router.softmax-after
void sinkproof_truth_router_weights(arb_ptr w_k, const size_t *chosen_k, arb_srcptr logit_e,
                                    size_t n_chosen, slong bits) {
    arb_t none, rest;
    arb_ptr z_k = _arb_vec_init((slong)n_chosen);
    balls_init(none, rest);
    arb_neg_inf(none); // without a sink: softmax is the case b = -infinity
    for (size_t k = 0; k < n_chosen; k++) arb_set(z_k + k, logit_e + chosen_k[k]);
    sinkproof_truth_softmax_sink(w_k, rest, z_k, n_chosen, none, bits);
    _arb_vec_clear(z_k, (slong)n_chosen);
    balls_clear(none, rest);
}
//< router.softmax-after

void truth_mpfr_router(size_t *chosen_k, mpfr_ptr w_k, mpfr_srcptr logit_e, size_t n_experts,
                       size_t n_chosen, mpfr_prec_t bits) {
    mpfr_t sum, shifted;
    mpfr_inits2(bits, sum, shifted, (mpfr_ptr)0);
    for (size_t k = 0; k < n_chosen; k++) {
        size_t best = n_experts;
        for (size_t e = 0; e < n_experts; e++)
            if (!is_among_chosen(chosen_k, k, e) &&
                (best == n_experts || mpfr_cmp(logit_e + e, logit_e + best) > 0))
                best = e;
        chosen_k[k] = best;
    }
    mpfr_set_zero(sum, 1);
    for (size_t k = 0; k < n_chosen; k++) { // the first chosen logit is the largest
        mpfr_sub(shifted, logit_e + chosen_k[k], logit_e + chosen_k[0], MPFR_RNDN);
        mpfr_exp(w_k + k, shifted, MPFR_RNDN);
        mpfr_add(sum, sum, w_k + k, MPFR_RNDN);
    }
    for (size_t k = 0; k < n_chosen; k++) mpfr_div(w_k + k, w_k + k, sum, MPFR_RNDN);
    mpfr_clears(sum, shifted, (mpfr_ptr)0);
}

size_t sinkproof_truth_argmax(arb_srcptr logit_v, size_t vocab, bool *certified, arb_ptr gap,
                              slong bits) {
    size_t best;
    arb_t margin;
    arb_init(margin);
    truth_choice choice = sinkproof_truth_topk(&best, margin, logit_v, vocab, 1, bits);
    *certified = choice == CHOICE_CERTIFIED;
    if (gap != NULL) arb_set(gap, margin);
    arb_clear(margin);
    return best;
}
