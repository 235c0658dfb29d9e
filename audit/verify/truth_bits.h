// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Estimates, before the run, how many bits a run over the reals loses from the tokens to the
// logits. With p bits of working precision the largest radius of a logit is about 2^(lost - p). The
// estimate follows from the shape: doc/12-truth.md compares it with measurements.
#ifndef SINKPROOF_TRUTH_BITS_H
#define SINKPROOF_TRUTH_BITS_H

#include "model/config.h"

enum { TRUTH_BITS_LEAST = 256, TRUTH_BITS_LEFT = 64 };

// Of so many layers with the unembedding behind them.
double sinkproof_truth_loss(const sinkproof_config *config, size_t layers);

// The precision, a multiple of 64 and at least TRUTH_BITS_LEAST, that leaves TRUTH_BITS_LEFT bits
// of a logit.
long sinkproof_truth_bits_for(double lost);

// The first of `layers` layers at whose end `bits` bits are lost; `layers` if there is none.
size_t sinkproof_truth_last_layer(const sinkproof_config *config, size_t layers, double bits);

#endif
