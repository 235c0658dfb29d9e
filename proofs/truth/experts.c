// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mixture of experts over the reals: y = sum_k w_k (W2 swiglu(W1 t + b1) + b2) over the chosen
// experts. Tokens are gathered by expert, so that each expert's rows are decoded once.
#include "proofs/truth/sliced.h"
#include "proofs/truth/truth.h"

#include <stdlib.h>
#include <string.h>

void truth_expert_linear(arb_ptr out_nkr, arb_srcptr x, bool per_slot, size_t n,
                         const size_t *chosen_nk, size_t n_chosen, const sinkproof_matrix *w_erc,
                         slong bits, size_t threads) {
    size_t rows = w_erc->rows, cols = w_erc->cols, slots = n * n_chosen;
    // Shallow copies of the inputs that go to one expert: read, never cleared.
    arb_ptr gathered = malloc((slots * cols + 1) * sizeof *gathered);
    size_t *slot_of = malloc((slots + 1) * sizeof *slot_of);
    if (gathered == NULL || slot_of == NULL) abort();
    for (size_t e = 0; e < w_erc->count; e++) {
        size_t found = 0;
        for (size_t s = 0; s < slots; s++) {
            if (chosen_nk[s] != e) continue;
            memcpy(gathered + found * cols, x + (per_slot ? s : s / n_chosen) * cols,
                   cols * sizeof *gathered);
            slot_of[found++] = s;
        }
        if (found == 0) continue;
        sinkproof_matrix w_rc = sinkproof_matrix_at(w_erc, e);
        arb_ptr y = _arb_vec_init((slong)(found * rows));
        sinkproof_sliced_linear(y, gathered, found, &w_rc, NULL, bits, threads, NULL);
        for (size_t f = 0; f < found; f++)
            for (size_t r = 0; r < rows; r++)
                arb_swap(out_nkr + slot_of[f] * rows + r, y + f * rows + r);
        _arb_vec_clear(y, (slong)(found * rows));
    }
    free(gathered);
    free(slot_of);
}

void truth_expert_bias(arb_ptr u_nkr, size_t n, const size_t *chosen_nk, size_t n_chosen,
                       const sinkproof_matrix *b_er, slong bits) {
    size_t rows = b_er->cols;
    double *scratch = malloc(rows * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr bias_r = _arb_vec_init((slong)rows);
    for (size_t s = 0; s < n * n_chosen; s++) {
        sinkproof_matrix b_r = sinkproof_matrix_at(b_er, chosen_nk[s]);
        sinkproof_truth_row(bias_r, &b_r, 0, scratch);
        for (size_t r = 0; r < rows; r++)
            arb_add(u_nkr + s * rows + r, u_nkr + s * rows + r, bias_r + r, bits);
    }
    _arb_vec_clear(bias_r, (slong)rows);
    free(scratch);
}

//> moe.sum
void sinkproof_truth_mixture(arb_ptr out_d, arb_srcptr w_k, arb_srcptr y_kd, size_t n_chosen,
                             size_t hidden, slong bits) {
    for (size_t d = 0; d < hidden; d++)
        arb_dot(out_d + d, NULL, 0, w_k, 1, y_kd + d, (slong)hidden, (slong)n_chosen, bits);
}
//< moe.sum

void truth_mpfr_mixture(mpfr_ptr out_d, mpfr_srcptr w_k, mpfr_srcptr y_kd, size_t n_chosen,
                        size_t hidden, mpfr_prec_t bits) {
    mpfr_t sum;
    mpfr_init2(sum, bits);
    for (size_t d = 0; d < hidden; d++) {
        mpfr_set_zero(sum, 1);
        for (size_t k = 0; k < n_chosen; k++)
            mpfr_fma(sum, w_k + k, y_kd + k * hidden + d, sum, MPFR_RNDN);
        mpfr_set(out_d + d, sum, MPFR_RNDN);
    }
    mpfr_clear(sum);
}
