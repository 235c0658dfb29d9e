// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The truth of every design of attention (ref/variants/variant.h): each step over the reals, from
// the results of the previous step. The keys that a row sees, the star and the divisor are stated
// here independently, so that a mistake of ref/variants/ is not also one of the truth.
#ifndef SINKPROOF_TRUTH_VARIANTS_H
#define SINKPROOF_TRUTH_VARIANTS_H

#include "proofs/truth/truth.h"
#include "ref/variants/variant.h"

// The keys that row i of `keys` sees, the star's column last: [keys + 1].
void sinkproof_truth_variant_seen(const sinkproof_variant *variant,
                                  const sinkproof_variant_head *head, size_t i, size_t keys,
                                  bool *seen_j);

// f of a row.
void truth_variant_feature(arb_ptr out_d, const sinkproof_variant *variant,
                           const sinkproof_variant_head *head, arb_srcptr x_d, slong bits);

// The scores of row i, [keys + 1]; 0 for keys that it does not see.
void truth_variant_scores(arb_ptr s_j, const sinkproof_variant *variant,
                          const sinkproof_variant_head *head, size_t i, size_t keys,
                          const bool *seen_j, arb_srcptr q_d, arb_srcptr k_jd, slong bits);

// The weights of a row of `count` scores.
void sinkproof_truth_variant_weights(arb_ptr alpha_j, const sinkproof_variant *variant,
                                     size_t count, const bool *seen_j, arb_srcptr s_j, slong bits);

// o_d from keys + 1 weights and the values of the keys; before the gate.
void sinkproof_truth_variant_values(arb_ptr o_d, const sinkproof_variant *variant,
                                    const sinkproof_variant_head *head, size_t keys,
                                    arb_srcptr alpha_j, arb_srcptr v_jd, slong bits);

// A whole head, from its input: weights [rows, keys + 1] and gated results [rows, dim], where rows
// and keys are one more than the head's tokens when the star is a token.
void truth_variant_head(arb_ptr alpha_ij, arb_ptr gated_id, const sinkproof_variant *variant,
                        const sinkproof_variant_head *head, slong bits);

#endif
