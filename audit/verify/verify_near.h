// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks that bounds are not wider than needed: honest engines on operands that make all roundings
// go one way by nearly half a step each, and functions that err by all that a policy declares. The
// share of a bound that they reach has a floor (verify_checks.c). If a bound becomes wider than
// honest engines need, the share falls below the floor; if it becomes narrower, the engines exceed
// it.
#ifndef SINKPROOF_VERIFY_NEAR_H
#define SINKPROOF_VERIFY_NEAR_H

#include "audit/verify/verify_draw.h"
#include "proofs/bounds/bounds.h"

#include <math.h>

// The binary32 number farthest from y on one side (1 above, -1 below) that a function with an error
// of `ulps` ulps of y may return. y is a binary64 result whose error is far less than the rest of
// the last ulp.
static inline float farthest_float(double y, double ulps, int side) {
    double end = y + side * ulps * sinkproof_ulp(SINKPROOF_F32, y) * (1 - 0x1p-20);
    float reached = (float)end;
    if (side > 0 ? (double)reached > end : (double)reached < end)
        reached = nextafterf(reached, side > 0 ? -INFINITY : INFINITY);
    return reached;
}

static inline float exp_at_limit(float x, double ulps, int side) {
    return farthest_float(exp((double)x), ulps, side);
}

// The default declared error of policies, in ulps.
static const double DECLARED = 2;

// verify_near_sums.c: sums whose first term is large and whose later terms are half a step of it or
// a little less, so that all of them are lost.
void verify_near_dot(verify_measure *result, uint64_t seed);
void verify_near_dot_likely(verify_measure *result, uint64_t seed);
void verify_near_dot_exact(verify_measure *result, uint64_t seed);
void verify_near_linear(verify_measure *result, uint64_t seed);
void verify_near_gradient(verify_measure *result, uint64_t seed);
void verify_near_value(verify_measure *result, uint64_t seed);
void verify_near_ftz(verify_measure *result, uint64_t seed);
void verify_near_overflow(verify_measure *result, uint64_t seed);
void verify_near_rmsnorm(verify_measure *result, uint64_t seed);
void verify_near_norm_rounded(verify_measure *result, uint64_t seed);
void verify_near_layernorm(verify_measure *result, uint64_t seed);
// verify_operands.c: the same with operands that are ties of the format in which they are read.
void verify_near_operands(verify_measure *result, uint64_t seed);
void verify_near_q8(verify_measure *result, uint64_t seed);
void verify_near_q8_ties(verify_measure *result, uint64_t seed);
void verify_near_q8_minima(verify_measure *result, uint64_t seed);
void verify_near_scaled(verify_measure *result, uint64_t seed);
void verify_near_accumulator(verify_measure *result, uint64_t seed);
void verify_near_tensor_core(verify_measure *result, uint64_t seed);
void verify_near_parts(verify_measure *result, uint64_t seed);
void verify_near_parts_mixed(verify_measure *result, uint64_t seed);  // verify_mixed.c
void verify_near_parts_merged(verify_measure *result, uint64_t seed); // verify_merged.c
// verify_near_weights.c: rows of weights.
void verify_near_exp(verify_measure *result, uint64_t seed);
void verify_near_exp_declared(verify_measure *result, uint64_t seed);
void verify_near_exp_lanes(verify_measure *result, uint64_t seed);
void verify_near_exp_growing(verify_measure *result, uint64_t seed);
void verify_near_quotient(verify_measure *result, uint64_t seed);
void verify_near_softmax(verify_measure *result, uint64_t seed);
void verify_near_unnormalised(verify_measure *result, uint64_t seed);
void verify_near_base2_sum(verify_measure *result, uint64_t seed);
void verify_near_base2(verify_measure *result, uint64_t seed);
void verify_near_running_max(verify_measure *result, uint64_t seed);
void verify_near_lse_subtracted(verify_measure *result, uint64_t seed);
void verify_near_lse_gated(verify_measure *result, uint64_t seed);
void verify_near_lse_rounded(verify_measure *result, uint64_t seed);
void verify_near_router(verify_measure *result, uint64_t seed);
void verify_near_subtracted_mass(verify_measure *result, uint64_t seed);
void verify_near_mass_quotient(verify_measure *result, uint64_t seed);
void verify_near_mass_sigmoid(verify_measure *result, uint64_t seed);
void verify_near_similarity(verify_measure *result, uint64_t seed);
// verify_near_elements.c: activations, rotations, rows that change (eviction, quantized caches).
void verify_near_swiglu(verify_measure *result, uint64_t seed);
void verify_near_swiglu_declared(verify_measure *result, uint64_t seed);
void verify_near_sigmoid_exp(verify_measure *result, uint64_t seed);
void verify_near_tanh(verify_measure *result, uint64_t seed);
void verify_near_gelu(verify_measure *result, uint64_t seed);
void verify_near_rope(verify_measure *result, uint64_t seed);
void verify_near_running_angle(verify_measure *result, uint64_t seed);
void verify_near_scaled_first(verify_measure *result, uint64_t seed);
void verify_near_evict(verify_measure *result, uint64_t seed);
void verify_near_quantized_cache(verify_measure *result, uint64_t seed);
void verify_near_quantise(verify_measure *result, uint64_t seed);
void verify_near_unrounded(verify_measure *result, uint64_t seed); // verify_freedoms.c
// verify_whole.c: products just above a power of two, whose roundings are relatively largest.
void verify_near_spread(verify_measure *result, uint64_t seed);

// The weights of the chosen experts, value_k, that an engine left of router logits g_e.
void verify_compare_chosen(verify_measure *result, const sinkproof_setting *s, size_t experts,
                           const double *g_e, size_t chosen, const int32_t *chosen_k,
                           const double *value_k);

// x_d [VERIFY_TURNED] turned by float32 angles at a position; the concentration is in the tables,
// or multiplied into the vector first.
enum { VERIFY_TURNED = 64 };
sinkproof_config verify_turned_config(void); // the published YaRN with whole ends
void verify_compare_turned(verify_measure *result, const sinkproof_policy *policy,
                           const sinkproof_config *config, int32_t position, bool first,
                           const float *angle_i, const double *x_d);

#endif
