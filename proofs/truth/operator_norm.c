// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The operator norm of a matrix: |A x| <= |A| |x| in the Euclidean norm.
#include "proofs/truth/truth.h"

//> gpt2.circuit
// |A|^2 is the largest eigenvalue of A A^T and of A^T A, and no eigenvalue exceeds a row's sum of
// sizes. The smaller of the two products is computed.
void truth_operator_norm(arb_t norm, arb_srcptr a_rc, size_t rows, size_t cols, slong bits) {
    if (bits > 64) bits = 64; // enough for a bound
    slong n = (slong)rows, m = (slong)cols, least = n < m ? n : m;
    arb_mat_t a, transposed, product;
    arb_t sum;
    arb_mat_init(a, n, m), arb_mat_init(transposed, m, n), arb_mat_init(product, least, least);
    arb_init(sum);
    for (slong r = 0; r < n; r++)
        for (slong c = 0; c < m; c++) arb_set(arb_mat_entry(a, r, c), a_rc + r * m + c);
    arb_mat_transpose(transposed, a);
    if (n <= m)
        arb_mat_mul(product, a, transposed, bits);
    else
        arb_mat_mul(product, transposed, a, bits);
    arb_zero(norm);
    for (slong r = 0; r < least; r++) {
        arb_zero(sum);
        for (slong c = 0; c < least; c++) {
            arb_ptr entry = arb_mat_entry(product, r, c);
            arb_abs(entry, entry);
            arb_add(sum, sum, entry, bits);
        }
        arb_max(norm, norm, sum, bits);
    }
    arb_sqrt(norm, norm, bits);
    arb_mat_clear(a), arb_mat_clear(transposed), arb_mat_clear(product);
    arb_clear(sum);
}
//< gpt2.circuit
