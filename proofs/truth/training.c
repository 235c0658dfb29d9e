// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Estimates from a published number of accelerator hours the tokens on which a model was trained. A
// rounded number in a source is a ball of the width of its rounding.
#include "proofs/truth/truth.h"

#include "proofs/exact/parameters.h"

//> train.tokens
// D = u P 3600 h / (6 N): h hours on accelerators of peak rate P, a share u of it used; a token
// costs 6 operations for each of N active parameters, 2 forward and 4 backward.
void sinkproof_truth_training_tokens(arb_t tokens, const sinkproof_config *config,
                                     const arb_t hours, const arb_t peak, const arb_t used,
                                     slong bits) {
    arb_mul(tokens, hours, peak, bits);
    arb_mul(tokens, tokens, used, bits);
    arb_mul_ui(tokens, tokens, 3600, bits);
    arb_div_ui(tokens, tokens, 6, bits);
    arb_div_ui(tokens, tokens, sinkproof_parameters_count(config).active, bits);
}
//< train.tokens
