// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Lists which measurement supports which statement, and which letter of its heading. Exact
// instances and identities name their statement themselves (proofs/exact, proofs/truth).
#include "audit/verify/verify.h"
#include "audit/verify/verify_near.h"

#include <string.h>

static const verify_check checks[] = {
    {"attn.qkv", 'B', "bound.linear", sinkproof_verify_linear, 0},
    {"attn.score", 'B', "bound.linear", sinkproof_verify_scores, 0},
    {"sink.alpha", 'B', "bound.softmax-sink", sinkproof_verify_softmax, 0},
    {"sink.alpha-sink", 'B', "bound.softmax-sink", sinkproof_verify_softmax, 0},
    {"sink.stable", 'B', "bound.softmax-sink", sinkproof_verify_softmax, 0},
    {"sink.limit", 'B', "bound.softmax-sink", sinkproof_verify_softmax, 0},
    {"sink.mass", 'B', "bound.softmax-sink", sinkproof_verify_mass, 0},
    {"sink.attn-concat", 'B', "bound.linear", sinkproof_verify_linear, 0},
    {"sink.attn-values", 'B', "bound.value", sinkproof_verify_values, 0},
    {"rmsnorm.forward", 'B', "bound.rmsnorm", sinkproof_verify_rmsnorm, 0},
    {"layernorm.forward", 'B', "bound.layernorm", sinkproof_verify_layernorm, 0},
    {"rope.rotate", 'B', "bound.rope", sinkproof_verify_rotate, 0},
    {"rope.orthogonal", 'B', "bound.rope", sinkproof_verify_rotate, 0},
    {"yarn.ramp", 'B', "bound.rope", sinkproof_verify_yarn, 0},
    {"yarn.concentration", 'B', "bound.rope", sinkproof_verify_yarn, 0},
    {"yarn.truncate", 'B', "bound.rope", sinkproof_verify_yarn, 0},
    {"router.softmax-after", 'B', "bound.softmax-sink", sinkproof_verify_router, 0},
    {"swiglu.clamped", 'B', "bound.swiglu", sinkproof_verify_swiglu, 0},
    {"gelu.tanh", 'B', "bound.gelu", sinkproof_verify_gelu, 0},
    {"swiglu.gelu-fit", 'B', "swiglu.gelu-fit", sinkproof_verify_gelu_fit, 0},
    {"moe.sum", 'B', "bound.dot", sinkproof_verify_mixture, 0},
    {"model.forward", 'B', "every bound.*", sinkproof_verify_forward, 0},
    {"gpt2.forward", 'B', "every bound.*", sinkproof_verify_gpt2, 0},
    {"gpt2.circuit", 'B', "gpt2.circuit", sinkproof_verify_circuit_enclosed, 0},
    {"gpt2.circuit", 'E', "gpt2.circuit", sinkproof_verify_circuit_run, 0},
    {"gpt2.bq-zero", 'B', "gpt2.circuit", sinkproof_verify_bq_zero_enclosed, 0},
    {"gpt2.bq-zero", 'E', "gpt2.circuit", sinkproof_verify_bq_zero_run, 0},
    {"gpt2.epe-swap", 'B', "gpt2.circuit", sinkproof_verify_epe_swap_enclosed, 0},
    {"gpt2.epe-swap", 'E', "gpt2.circuit", sinkproof_verify_epe_swap_run, 0},
    {"gpt2.epe-move", 'B', "gpt2.circuit", sinkproof_verify_epe_move_enclosed, 0},
    {"gpt2.epe-move", 'E', "gpt2.circuit", sinkproof_verify_epe_move_run, 0},
    {"gpt2.bos-zero", 'B', "gpt2.circuit", sinkproof_verify_bos_zero_enclosed, 0},
    {"gpt2.bos-zero", 'E', "gpt2.circuit", sinkproof_verify_bos_zero_run, 0},
    {"gpt2.wk-rows", 'B', "gpt2.circuit", sinkproof_verify_wk_rows_enclosed, 0},
    {"gpt2.wk-rows", 'E', "gpt2.circuit", sinkproof_verify_wk_rows_run, 0},
    {"gpt2.wk-random", 'B', "gpt2.circuit", sinkproof_verify_wk_random_enclosed, 0},
    {"gpt2.wk-random", 'E', "gpt2.circuit", sinkproof_verify_wk_random_run, 0},
    {"gpt2.null", 'B', "gpt2.circuit", sinkproof_verify_null_enclosed, 0},
    {"gpt2.null", 'E', "gpt2.circuit", sinkproof_verify_null_run, 0},
    {"model.biases", 'E', "equality", sinkproof_verify_biases, 0},
    {"model.parameters", 'E', "equality", sinkproof_verify_parameters, 0},
    {"train.tokens", 'E', "the ends of its ball", sinkproof_verify_tokens, 0},
    {"bound.dot", 'B', "bound.dot", sinkproof_verify_dot, 0},
    {"bound.dot-likely", 'B', "bound.dot-likely", sinkproof_verify_dot_likely, 0},
    {"bound.exp", 'B', "bound.exp", sinkproof_verify_exp, 0},
    {"bound.one-minus", 'B', "bound.one-minus", sinkproof_verify_one_minus, 0},
    {"bound.linear", 'B', "bound.linear", sinkproof_verify_linear, 0},
    {"bound.softmax-sink", 'B', "bound.softmax-sink", sinkproof_verify_softmax, 0},
    {"bound.value", 'B', "bound.value", sinkproof_verify_values, 0},
    {"bound.rmsnorm", 'B', "bound.rmsnorm", sinkproof_verify_rmsnorm, 0},
    {"bound.layernorm", 'B', "bound.layernorm", sinkproof_verify_layernorm, 0},
    {"bound.rope", 'B', "bound.rope", sinkproof_verify_rotate, 0},
    {"bound.swiglu", 'B', "bound.swiglu", sinkproof_verify_swiglu, 0},
    {"bound.gelu", 'B', "bound.gelu", sinkproof_verify_gelu, 0},
    {"bound.dot-exact", 'B', "bound.dot-exact", sinkproof_verify_dot_exact, 0},
    {"bound.form-base2", 'B', "bound.form-base2", sinkproof_verify_form_base2, 0},
    {"bound.form-running-max", 'B', "bound.form-running-max", sinkproof_verify_form_running_max, 0},
    {"bound.form-lse", 'B', "bound.form-lse", sinkproof_verify_form_lse, 0},
    {"bound.form-router", 'B', "bound.form-router", sinkproof_verify_form_router, 0},
    {"bound.form-tanh", 'B', "bound.form-tanh", sinkproof_verify_form_tanh, 0},
    {"bound.sigmoid-exp", 'B', "bound.sigmoid-exp", sinkproof_verify_sigmoid_exp, 0.9},
    {"bound.form-running-angle", 'B', "bound.form-running-angle", sinkproof_verify_running_angle,
     0},
    {"bound.form-scaled-first", 'B', "bound.form-scaled-first", sinkproof_verify_scaled_first, 0},
    {"bound.norm-rounded", 'B', "bound.norm-rounded", sinkproof_verify_norm_rounded, 0.9},
    {"bound.unnormalised", 'B', "bound.unnormalised", sinkproof_verify_unnormalised, 0.9},
    {"bound.unrounded", 'B', "bound.unrounded", sinkproof_verify_unrounded, 0.9},
    {"bound.exp-growing", 'B', "bound.exp-growing", sinkproof_verify_exp_growing, 0},
    {"bound.ftz", 'B', "bound.ftz", sinkproof_verify_ftz, 0},
    {"bound.overflow", 'B', "bound.overflow", sinkproof_verify_overflow, 0},
    {"bound.operands", 'B', "bound.operands", sinkproof_verify_operands, 0},
    {"bound.q8", 'B', "bound.q8", sinkproof_verify_q8, 0},
    {"bound.accumulator", 'B', "bound.accumulator", sinkproof_verify_accumulator, 0},
    {"attn.softmax", 'B', "bound.similarity", sinkproof_verify_plain, 0},
    {"kernel.sigmoid", 'B', "bound.similarity", sinkproof_verify_sigmoid, 0},
    {"kernel.sigmoid-norm", 'B', "bound.similarity", sinkproof_verify_sigmoid_norm, 0},
    {"kernel.elu", 'B', "bound.similarity", sinkproof_verify_elu, 0},
    {"kernel.elu-norm", 'B', "bound.similarity", sinkproof_verify_elu_norm, 0},
    {"kernel.elu-linear", 'B', "bound.similarity", sinkproof_verify_elu_linear, 0},
    {"kernel.elu-linear-raw", 'B', "bound.similarity", sinkproof_verify_elu_linear_raw, 0},
    {"kernel.identity", 'B', "bound.similarity", sinkproof_verify_identity, 0},
    {"kernel.identity-max", 'B', "bound.similarity", sinkproof_verify_identity_max, 0},
    {"kernel.mlp", 'B', "bound.similarity", sinkproof_verify_mlp, 0},
    {"kernel.mlp-max", 'B', "bound.similarity", sinkproof_verify_mlp_max, 0},
    {"norm.max-one", 'B', "bound.similarity", sinkproof_verify_identity_max, 0},
    {"bound.similarity", 'B', "bound.similarity", sinkproof_verify_similarities, 0},
    {"lattice.edges", 'B', "overlapping balls", sinkproof_verify_edges, 0},
    {"mix.perturb", 'E', "equality", sinkproof_verify_perturbed, 0},
    {"train.sinks", 'E', "recorded runs", sinkproof_verify_sinks_learned, 0},
    {"train.star", 'E', "recorded runs", sinkproof_verify_star_learned, 0},
    {"stat.drift", 'B', "stat.drift", sinkproof_verify_drift, 0},
    {"stat.drift", 'E', "stat.drift", sinkproof_verify_drift_found, 0},
    {"stat.drift-pooled", 'B', "stat.drift-pooled", sinkproof_verify_drift_pooled, 0},
    {"stat.drift-pooled", 'E', "stat.drift-pooled", sinkproof_verify_drift_pooled_found, 0},
    {"stat.equal-rows", 'B', "stat.equal-rows", sinkproof_verify_equal_rows, 0.5},
    {"stat.equal-rows", 'E', "stat.equal-rows", sinkproof_verify_equal_rows_found, 0},
    {"stat.spread", 'B', "stat.spread", sinkproof_verify_spread, 0},
    {"stat.spread", 'B', "stat.spread", sinkproof_verify_near_spread, 0.3},
    {"stat.spread", 'E', "stat.spread", sinkproof_verify_spread_found, 0},
    {"bound.dot", 'B', "bound.dot", sinkproof_verify_near_dot, 0.9},
    {"bound.dot-likely", 'B', "bound.dot-likely", sinkproof_verify_near_dot_likely, 0.2},
    {"bound.dot-exact", 'B', "bound.dot-exact", sinkproof_verify_near_dot_exact, 0.9},
    {"bound.linear", 'B', "bound.linear", sinkproof_verify_near_linear, 0.9},
    {"bound.value", 'B', "bound.value", sinkproof_verify_near_value, 0.9},
    {"bound.ftz", 'B', "bound.ftz", sinkproof_verify_near_ftz, 0.9},
    {"bound.overflow", 'B', "bound.overflow", sinkproof_verify_near_overflow, 0.9},
    {"bound.rmsnorm", 'B', "bound.rmsnorm", sinkproof_verify_near_rmsnorm, 0.9},
    {"bound.layernorm", 'B', "bound.layernorm", sinkproof_verify_near_layernorm, 0.7},
    {"bound.operands", 'B', "bound.operands", sinkproof_verify_near_operands, 0.8},
    {"bound.q8", 'B', "bound.q8", sinkproof_verify_near_q8, 0.8},
    {"bound.q8", 'B', "bound.q8", sinkproof_verify_near_q8_ties, 0.8},
    {"bound.accumulator", 'B', "bound.accumulator", sinkproof_verify_near_accumulator, 0.8},
    {"bound.exp", 'B', "bound.exp", sinkproof_verify_near_exp, 0.8},
    {"bound.exp", 'B', "bound.exp", sinkproof_verify_near_exp_declared, 0.9},
    {"bound.exp", 'B', "bound.exp", sinkproof_verify_near_exp_lanes, 0.9},
    {"bound.exp-growing", 'B', "bound.exp-growing", sinkproof_verify_near_exp_growing, 0.6},
    {"bound.softmax-sink", 'B', "bound.softmax-sink", sinkproof_verify_near_softmax, 0.9},
    {"bound.form-base2", 'B', "bound.form-base2", sinkproof_verify_near_base2_sum, 0.9},
    {"bound.form-base2", 'B', "bound.form-base2", sinkproof_verify_near_base2, 0.3},
    {"bound.form-running-max", 'B', "bound.form-running-max", sinkproof_verify_near_running_max,
     0.4},
    {"bound.form-lse", 'B', "bound.form-lse", sinkproof_verify_near_lse_subtracted, 0.4},
    {"bound.form-lse", 'B', "bound.form-lse", sinkproof_verify_near_lse_gated, 0.3},
    {"bound.form-router", 'B', "bound.form-router", sinkproof_verify_near_router, 0.3},
    {"bound.one-minus", 'B', "bound.one-minus", sinkproof_verify_near_subtracted_mass, 0.9},
    {"bound.one-minus", 'B', "bound.one-minus", sinkproof_verify_near_mass_quotient, 0.4},
    {"bound.one-minus", 'B', "bound.one-minus", sinkproof_verify_near_mass_sigmoid, 0.5},
    {"bound.similarity", 'B', "bound.similarity", sinkproof_verify_near_similarity, 0.8},
    {"bound.swiglu", 'B', "bound.swiglu", sinkproof_verify_near_swiglu, 0.4},
    {"bound.swiglu", 'B', "bound.swiglu", sinkproof_verify_near_swiglu_declared, 0.8},
    {"bound.form-tanh", 'B', "bound.form-tanh", sinkproof_verify_near_tanh, 0.8},
    {"bound.sigmoid-exp", 'B', "bound.sigmoid-exp", sinkproof_verify_near_sigmoid_exp, 0.8},
    {"bound.norm-rounded", 'B', "bound.norm-rounded", sinkproof_verify_near_norm_rounded, 0.9},
    {"bound.unrounded", 'B', "bound.unrounded", sinkproof_verify_near_unrounded, 0.9},
    {"bound.unnormalised", 'B', "bound.unnormalised", sinkproof_verify_near_unnormalised, 0.9},
    {"bound.gelu", 'B', "bound.gelu", sinkproof_verify_near_gelu, 0.8},
    {"bound.rope", 'B', "bound.rope", sinkproof_verify_near_rope, 0.8},
    {"bound.form-running-angle", 'B', "bound.form-running-angle",
     sinkproof_verify_near_running_angle, 0.4},
    {"bound.form-scaled-first", 'B', "bound.form-scaled-first", sinkproof_verify_near_scaled_first,
     0.8},
    {"bound.evict", 'B', "bound.evict", sinkproof_verify_near_evict, 0.9},
    {"bound.quantized-cache", 'B', "bound.quantized-cache", sinkproof_verify_near_quantized_cache,
     0.9},
    {"bound.quantized-cache", 'B', "bound.quantized-cache", sinkproof_verify_near_quantise, 0.9},
};

const verify_check *sinkproof_verify_check_at(size_t k) {
    return k < sizeof checks / sizeof *checks ? &checks[k] : NULL;
}

bool sinkproof_verify_reaches(const verify_measure *measure) {
    return measure->reached >= measure->floor;
}

// Keeps the floor that is reached least in proportion among a statement's checks, and the share
// reached.
static void lower_floor(verify_measure *result, const verify_measure *one, double floor) {
    if (!(floor > 0)) return;
    bool first = !(result->floor > 0);
    if (first || !(one->worst / floor >= result->reached / result->floor))
        result->floor = floor, result->reached = one->worst;
}

verify_measure sinkproof_verify_measure(const char *id, char letter, uint64_t seed) {
    verify_measure result = {.bound = NULL};
    const verify_check *check;
    for (size_t k = 0; (check = sinkproof_verify_check_at(k)) != NULL; k++) {
        if (strcmp(check->id, id) != 0 || check->letter != letter) continue;
        verify_measure one = {.bound = check->bound};
        check->run(&one, seed);
        result.bound = check->bound;
        result.values += one.values, result.wrong += one.wrong;
        result.exact += one.exact, result.enclosed += one.enclosed;
        result.worst = sinkproof_worst(result.worst, one.worst);
        lower_floor(&result, &one, check->floor);
    }
    return result;
}
