// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of every design of attention (ref/variants/variant.h), from the results of the
// previous step. Where a design is softmax, its sets are those of GPT-OSS's own attention.
#ifndef SINKPROOF_BOUNDS_VARIANTS_H
#define SINKPROOF_BOUNDS_VARIANTS_H

#include "proofs/bounds/bounds.h"
#include "ref/variants/variant.h"

// s_j of one row, [keys + 1], from exact queries and keys; 0 for keys that it does not see.
MUST_CHECK bool sinkproof_honest_variant_scores(const sinkproof_setting *s,
                                                const sinkproof_variant *variant,
                                                const sinkproof_variant_head *head, size_t i,
                                                size_t keys, const bool *seen_j, const double *q_d,
                                                const double *k_jd, sinkproof_honest *s_j);

// The star's own score, which is the last of these. q_d may be NULL if the star has no key.
MUST_CHECK bool sinkproof_honest_variant_star(const sinkproof_setting *s,
                                              const sinkproof_variant *variant,
                                              const sinkproof_variant_head *head, const double *q_d,
                                              sinkproof_honest *out);

// A score of `dim` products, with the bias that an engine adds to it.
sinkproof_honest sinkproof_honest_variant_biased(const sinkproof_setting *s, size_t dim,
                                                 sinkproof_honest score, double bias);

// f(x_d) for an exact row.
MUST_CHECK bool sinkproof_honest_variant_feature(const sinkproof_setting *s,
                                                 const sinkproof_variant *variant,
                                                 const sinkproof_variant_head *head,
                                                 const double *x_d, sinkproof_honest *f_d);

// alpha_j of a row of `count` scores (bound.similarity). If a divisor may be 0, the weights are
// unbounded.
MUST_CHECK bool sinkproof_honest_variant_weights(const sinkproof_setting *s,
                                                 const sinkproof_variant *variant, size_t count,
                                                 const bool *seen_j, const sinkproof_honest *s_j,
                                                 sinkproof_honest *alpha_j);

// o_d from exact weights and values, before the gate.
MUST_CHECK bool sinkproof_honest_variant_values(const sinkproof_setting *s,
                                                const sinkproof_variant *variant,
                                                const sinkproof_variant_head *head, size_t keys,
                                                const double *alpha_j, const double *v_jd,
                                                sinkproof_honest *o_d);

// The gate sigmoid(g), and a result through it.
sinkproof_honest sinkproof_honest_variant_gate(const sinkproof_setting *s, double g);
sinkproof_honest sinkproof_honest_variant_gated(const sinkproof_setting *s, double o,
                                                sinkproof_honest gate);

#endif
