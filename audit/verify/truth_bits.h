// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How many bits a run over the reals loses from the tokens to the logits, before it is run. With
// p bits of working precision the largest radius of a logit is about 2^(lost - p). The number is
// estimated from the shape: doc/12-truth.md has it beside what was measured.
#ifndef SINKPROOF_TRUTH_BITS_H
#define SINKPROOF_TRUTH_BITS_H

#include "model/config.h"

enum { TRUTH_BITS_LEAST = 256, TRUTH_BITS_LEFT = 64 };

// Of so many layers with the unembedding behind them.
double sinkproof_truth_loss(const sinkproof_config *config, size_t layers);

// A multiple of 64 that leaves TRUTH_BITS_LEFT bits of a logit, TRUTH_BITS_LEAST at least.
long sinkproof_truth_bits_for(double lost);

// The first of `layers` layers at whose end that many bits are lost; `layers` where none is.
size_t sinkproof_truth_last_layer(const sinkproof_config *config, size_t layers, double bits);

#endif
