// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Lists which measurement supports which statement, and which letter of its heading. Exact
// instances and identities name their statement themselves (proofs/exact, proofs/truth).
#include "audit/verify/verify.h"
#include "audit/verify/verify_near.h"

#include <string.h>

static const verify_check checks[] = {
    {"attn.qkv", 'B', "bound.linear", verify_linear, 0},
    {"attn.score", 'B', "bound.linear", verify_scores, 0},
    {"sink.alpha", 'B', "bound.softmax-sink", verify_softmax, 0},
    {"sink.alpha-sink", 'B', "bound.softmax-sink", verify_softmax, 0},
    {"sink.stable", 'B', "bound.softmax-sink", verify_softmax, 0},
    {"sink.limit", 'B', "bound.softmax-sink", verify_softmax, 0},
    {"sink.mass", 'B', "bound.softmax-sink", verify_mass, 0},
    {"sink.attn-concat", 'B', "bound.linear", verify_linear, 0},
    {"sink.attn-values", 'B', "bound.value", verify_values, 0},
    {"rmsnorm.forward", 'B', "bound.rmsnorm", verify_rmsnorm, 0},
    {"layernorm.forward", 'B', "bound.layernorm", verify_layernorm, 0},
    {"rope.rotate", 'B', "bound.rope", verify_rotate, 0},
    {"rope.orthogonal", 'B', "bound.rope", verify_rotate, 0},
    {"yarn.ramp", 'B', "bound.rope", verify_yarn, 0},
    {"yarn.concentration", 'B', "bound.rope", verify_yarn, 0},
    {"rope.llama3", 'B', "bound.rope", verify_llama3, 0},
    {"yarn.truncate", 'B', "bound.rope", verify_yarn, 0},
    {"router.softmax-after", 'B', "bound.softmax-sink", verify_router, 0},
    {"swiglu.clamped", 'B', "bound.swiglu", verify_swiglu, 0},
    {"gelu.tanh", 'B', "bound.gelu", verify_gelu, 0},
    {"swiglu.gelu-fit", 'B', "swiglu.gelu-fit", verify_gelu_fit, 0},
    {"moe.sum", 'B', "bound.dot", verify_mixture, 0},
    {"model.forward", 'B', "every bound.*", verify_forward, 0},
    {"gpt2.forward", 'B', "every bound.*", verify_gpt2, 0},
    {"grad.linear", 'B', "grad.rounded", verify_gradient_linear, 0},
    {"grad.rmsnorm", 'B', "grad.rounded", verify_gradient_rmsnorm, 0},
    {"grad.rotation", 'B', "grad.rounded", verify_gradient_rotation, 0},
    {"grad.values", 'B', "grad.rounded", verify_gradient_values, 0},
    {"grad.group", 'B', "grad.rounded", verify_gradient_values, 0},
    {"grad.softmax", 'B', "grad.rounded", verify_gradient_softmax, 0},
    {"grad.sink", 'B', "grad.rounded", verify_gradient_softmax, 0},
    {"grad.qkv", 'B', "grad.rounded", verify_gradient_scores, 0},
    {"grad.swiglu", 'B', "grad.rounded", verify_gradient_swiglu, 0},
    {"grad.router", 'B', "grad.rounded", verify_gradient_router, 0},
    {"grad.mixture", 'B', "grad.rounded", verify_gradient_mixture, 0},
    {"grad.cross-entropy", 'B', "grad.rounded", verify_gradient_cross_entropy, 0},
    {"grad.rounded", 'B', "grad.rounded", verify_gradient_rounded, 0},
    {"grad.rounded", 'B', "grad.rounded", verify_near_gradient, 0.9},
    {"gpt2.circuit", 'B', "gpt2.circuit", verify_circuit_enclosed, 0},
    {"gpt2.circuit", 'E', "gpt2.circuit", verify_circuit_run, 0},
    {"gpt2.bq-zero", 'B', "gpt2.circuit", verify_bq_zero_enclosed, 0},
    {"gpt2.bq-zero", 'E', "gpt2.circuit", verify_bq_zero_run, 0},
    {"gpt2.epe-swap", 'B', "gpt2.circuit", verify_epe_swap_enclosed, 0},
    {"gpt2.epe-swap", 'E', "gpt2.circuit", verify_epe_swap_run, 0},
    {"gpt2.epe-move", 'B', "gpt2.circuit", verify_epe_move_enclosed, 0},
    {"gpt2.epe-move", 'E', "gpt2.circuit", verify_epe_move_run, 0},
    {"gpt2.bos-zero", 'B', "gpt2.circuit", verify_bos_zero_enclosed, 0},
    {"gpt2.bos-zero", 'E', "gpt2.circuit", verify_bos_zero_run, 0},
    {"gpt2.wk-rows", 'B', "gpt2.circuit", verify_wk_rows_enclosed, 0},
    {"gpt2.wk-rows", 'E', "gpt2.circuit", verify_wk_rows_run, 0},
    {"gpt2.wk-random", 'B', "gpt2.circuit", verify_wk_random_enclosed, 0},
    {"gpt2.wk-random", 'E', "gpt2.circuit", verify_wk_random_run, 0},
    {"gpt2.null", 'B', "gpt2.circuit", verify_null_enclosed, 0},
    {"gpt2.null", 'E', "gpt2.circuit", verify_null_run, 0},
    {"model.biases", 'E', "equality", verify_biases, 0},
    {"model.parameters", 'E', "equality", verify_parameters, 0},
    {"train.tokens", 'E', "the ends of its ball", verify_tokens, 0},
    {"bound.dot", 'B', "bound.dot", verify_dot, 0},
    {"bound.dot-likely", 'B', "bound.dot-likely", verify_dot_likely, 0},
    {"bound.exp", 'B', "bound.exp", verify_exp, 0},
    {"bound.one-minus", 'B', "bound.one-minus", verify_one_minus, 0},
    {"bound.linear", 'B', "bound.linear", verify_linear, 0},
    {"bound.softmax-sink", 'B', "bound.softmax-sink", verify_softmax, 0},
    {"bound.value", 'B', "bound.value", verify_values, 0},
    {"bound.rmsnorm", 'B', "bound.rmsnorm", verify_rmsnorm, 0},
    {"bound.layernorm", 'B', "bound.layernorm", verify_layernorm, 0},
    {"bound.rope", 'B', "bound.rope", verify_rotate, 0},
    {"bound.swiglu", 'B', "bound.swiglu", verify_swiglu, 0},
    {"bound.gelu", 'B', "bound.gelu", verify_gelu, 0},
    {"bound.dot-exact", 'B', "bound.dot-exact", verify_dot_exact, 0},
    {"bound.form-base2", 'B', "bound.form-base2", verify_form_base2, 0},
    {"bound.form-running-max", 'B', "bound.form-running-max", verify_form_running_max, 0},
    {"bound.form-lse", 'B', "bound.form-lse", verify_form_lse, 0},
    {"bound.form-router", 'B', "bound.form-router", verify_form_router, 0},
    {"bound.form-tanh", 'B', "bound.form-tanh", verify_form_tanh, 0},
    {"bound.sigmoid-exp", 'B', "bound.sigmoid-exp", verify_sigmoid_exp, 0.9},
    {"bound.form-running-angle", 'B', "bound.form-running-angle", verify_running_angle, 0},
    {"bound.form-scaled-first", 'B', "bound.form-scaled-first", verify_scaled_first, 0},
    {"bound.norm-rounded", 'B', "bound.norm-rounded", verify_norm_rounded, 0.9},
    {"bound.unnormalised", 'B', "bound.unnormalised", verify_unnormalised, 0.9},
    {"bound.lse-rounded", 'B', "bound.lse-rounded", verify_lse_rounded, 0},
    {"bound.unrounded", 'B', "bound.unrounded", verify_unrounded, 0.9},
    {"bound.exp-growing", 'B', "bound.exp-growing", verify_exp_growing, 0},
    {"bound.quotient", 'B', "bound.quotient", verify_quotient, 0},
    {"bound.ftz", 'B', "bound.ftz", verify_ftz, 0},
    {"bound.overflow", 'B', "bound.overflow", verify_overflow, 0},
    {"bound.operands", 'B', "bound.operands", verify_operands, 0},
    {"bound.q8", 'B', "bound.q8", verify_q8, 0},
    {"bound.q8-minima", 'B', "bound.q8-minima", verify_q8_minima, 0},
    {"bound.scaled", 'B', "bound.scaled", verify_scaled, 0},
    {"bound.accumulator", 'B', "bound.accumulator", verify_accumulator, 0},
    {"bound.tensor-core", 'B', "bound.tensor-core", verify_tensor_core, 0},
    {"bound.parts", 'B', "bound.parts", verify_parts, 0},
    {"bound.parts-mixed", 'B', "bound.parts-mixed", verify_parts_mixed, 0},
    {"bound.parts-merged", 'B', "bound.parts-merged", verify_parts_merged, 0},
    {"attn.softmax", 'B', "bound.similarity", verify_plain, 0},
    {"kernel.sigmoid", 'B', "bound.similarity", verify_sigmoid, 0},
    {"kernel.sigmoid-norm", 'B', "bound.similarity", verify_sigmoid_norm, 0},
    {"kernel.elu", 'B', "bound.similarity", verify_elu, 0},
    {"kernel.elu-norm", 'B', "bound.similarity", verify_elu_norm, 0},
    {"kernel.elu-linear", 'B', "bound.similarity", verify_elu_linear, 0},
    {"kernel.elu-linear-raw", 'B', "bound.similarity", verify_elu_linear_raw, 0},
    {"kernel.identity", 'B', "bound.similarity", verify_identity, 0},
    {"kernel.identity-max", 'B', "bound.similarity", verify_identity_max, 0},
    {"kernel.mlp", 'B', "bound.similarity", verify_mlp, 0},
    {"kernel.mlp-max", 'B', "bound.similarity", verify_mlp_max, 0},
    {"norm.max-one", 'B', "bound.similarity", verify_identity_max, 0},
    {"bound.similarity", 'B', "bound.similarity", verify_similarities, 0},
    {"lattice.edges", 'B', "overlapping balls", verify_edges, 0},
    {"mix.perturb", 'E', "equality", verify_perturbed, 0},
    {"train.sinks", 'E', "recorded runs", verify_sinks_learned, 0},
    {"train.star", 'E', "recorded runs", verify_star_learned, 0},
    {"stat.drift", 'B', "stat.drift", verify_drift, 0},
    {"stat.drift", 'E', "stat.drift", verify_drift_found, 0},
    {"stat.drift-pooled", 'B', "stat.drift-pooled", verify_drift_pooled, 0},
    {"stat.drift-pooled", 'E', "stat.drift-pooled", verify_drift_pooled_found, 0},
    {"stat.equal-rows", 'B', "stat.equal-rows", verify_equal_rows, 0.5},
    {"stat.equal-rows", 'E', "stat.equal-rows", verify_equal_rows_found, 0},
    {"stat.spread", 'B', "stat.spread", verify_spread, 0},
    {"stat.spread", 'B', "stat.spread", verify_near_spread, 0.3},
    {"stat.spread", 'E', "stat.spread", verify_spread_found, 0},
    {"bound.dot", 'B', "bound.dot", verify_near_dot, 0.9},
    {"bound.dot-likely", 'B', "bound.dot-likely", verify_near_dot_likely, 0.2},
    {"bound.dot-exact", 'B', "bound.dot-exact", verify_near_dot_exact, 0.9},
    {"bound.linear", 'B', "bound.linear", verify_near_linear, 0.9},
    {"bound.value", 'B', "bound.value", verify_near_value, 0.9},
    {"bound.ftz", 'B', "bound.ftz", verify_near_ftz, 0.9},
    {"bound.overflow", 'B', "bound.overflow", verify_near_overflow, 0.9},
    {"bound.rmsnorm", 'B', "bound.rmsnorm", verify_near_rmsnorm, 0.9},
    {"bound.layernorm", 'B', "bound.layernorm", verify_near_layernorm, 0.7},
    {"bound.operands", 'B', "bound.operands", verify_near_operands, 0.8},
    {"bound.q8", 'B', "bound.q8", verify_near_q8, 0.8},
    {"bound.q8", 'B', "bound.q8", verify_near_q8_ties, 0.8},
    {"bound.q8-minima", 'B', "bound.q8-minima", verify_near_q8_minima, 0.8},
    {"bound.scaled", 'B', "bound.scaled", verify_near_scaled, 0.8},
    {"bound.accumulator", 'B', "bound.accumulator", verify_near_accumulator, 0.8},
    {"bound.tensor-core", 'B', "bound.tensor-core", verify_near_tensor_core, 0.6},
    {"bound.parts", 'B', "bound.parts", verify_near_parts, 0.9},
    {"bound.parts-mixed", 'B', "bound.parts-mixed", verify_near_parts_mixed, 0.9},
    {"bound.parts-merged", 'B', "bound.parts-merged", verify_near_parts_merged, 0.9},
    {"bound.exp", 'B', "bound.exp", verify_near_exp, 0.8},
    {"bound.exp", 'B', "bound.exp", verify_near_exp_declared, 0.9},
    {"bound.exp", 'B', "bound.exp", verify_near_exp_lanes, 0.9},
    {"bound.exp-growing", 'B', "bound.exp-growing", verify_near_exp_growing, 0.6},
    {"bound.quotient", 'B', "bound.quotient", verify_near_quotient, 0.9},
    {"bound.softmax-sink", 'B', "bound.softmax-sink", verify_near_softmax, 0.9},
    {"bound.form-base2", 'B', "bound.form-base2", verify_near_base2_sum, 0.9},
    {"bound.form-base2", 'B', "bound.form-base2", verify_near_base2, 0.3},
    {"bound.form-running-max", 'B', "bound.form-running-max", verify_near_running_max, 0.4},
    {"bound.form-lse", 'B', "bound.form-lse", verify_near_lse_subtracted, 0.4},
    {"bound.form-lse", 'B', "bound.form-lse", verify_near_lse_gated, 0.3},
    {"bound.form-router", 'B', "bound.form-router", verify_near_router, 0.3},
    {"bound.one-minus", 'B', "bound.one-minus", verify_near_subtracted_mass, 0.9},
    {"bound.one-minus", 'B', "bound.one-minus", verify_near_mass_quotient, 0.4},
    {"bound.one-minus", 'B', "bound.one-minus", verify_near_mass_sigmoid, 0.5},
    {"bound.similarity", 'B', "bound.similarity", verify_near_similarity, 0.8},
    {"bound.swiglu", 'B', "bound.swiglu", verify_near_swiglu, 0.4},
    {"bound.swiglu", 'B', "bound.swiglu", verify_near_swiglu_declared, 0.8},
    {"bound.form-tanh", 'B', "bound.form-tanh", verify_near_tanh, 0.8},
    {"bound.sigmoid-exp", 'B', "bound.sigmoid-exp", verify_near_sigmoid_exp, 0.8},
    {"bound.norm-rounded", 'B', "bound.norm-rounded", verify_near_norm_rounded, 0.9},
    {"bound.unrounded", 'B', "bound.unrounded", verify_near_unrounded, 0.9},
    {"bound.unnormalised", 'B', "bound.unnormalised", verify_near_unnormalised, 0.9},
    {"bound.lse-rounded", 'B', "bound.lse-rounded", verify_near_lse_rounded, 0.9},
    {"bound.gelu", 'B', "bound.gelu", verify_near_gelu, 0.8},
    {"bound.rope", 'B', "bound.rope", verify_near_rope, 0.8},
    {"bound.form-running-angle", 'B', "bound.form-running-angle", verify_near_running_angle, 0.4},
    {"bound.form-scaled-first", 'B', "bound.form-scaled-first", verify_near_scaled_first, 0.8},
    {"bound.evict", 'B', "bound.evict", verify_near_evict, 0.9},
    {"bound.quantized-cache", 'B', "bound.quantized-cache", verify_near_quantized_cache, 0.9},
    {"bound.quantized-cache", 'B', "bound.quantized-cache", verify_near_quantise, 0.9},
};

const verify_check *verify_check_at(size_t k) {
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

verify_measure verify_measure_check(const char *id, char letter, uint64_t seed) {
    verify_measure result = {.bound = NULL};
    const verify_check *check;
    for (size_t k = 0; (check = verify_check_at(k)) != NULL; k++) {
        if (strcmp(check->id, id) != 0 || check->letter != letter) continue;
        verify_measure one = {.bound = check->bound};
        check->run(&one, seed);
        result.bound = check->bound;
        result.values += one.values, result.wrong += one.wrong;
        result.exact += one.exact, result.enclosed += one.enclosed;
        result.worst = sinkproof_keep_worst(result.worst, one.worst);
        lower_floor(&result, &one, check->floor);
    }
    return result;
}
