// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which measurement is evidence for which statement, and for which letter of its heading. Exact
// instances and identities name their statement themselves (proofs/exact, proofs/truth).
#include "audit/verify/verify.h"

#include <string.h>

static const verify_check checks[] = {
    {"attn.qkv", 'B', "bound.linear", sinkproof_verify_linear},
    {"attn.score", 'B', "bound.linear", sinkproof_verify_scores},
    {"sink.alpha", 'B', "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.alpha-sink", 'B', "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.stable", 'B', "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.limit", 'B', "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.mass", 'B', "bound.softmax-sink", sinkproof_verify_mass},
    {"sink.attn-concat", 'B', "bound.linear", sinkproof_verify_linear},
    {"sink.attn-values", 'B', "bound.value", sinkproof_verify_values},
    {"rmsnorm.forward", 'B', "bound.rmsnorm", sinkproof_verify_rmsnorm},
    {"layernorm.forward", 'B', "bound.layernorm", sinkproof_verify_layernorm},
    {"rope.rotate", 'B', "bound.rope", sinkproof_verify_rotate},
    {"rope.orthogonal", 'B', "bound.rope", sinkproof_verify_rotate},
    {"yarn.ramp", 'B', "bound.rope", sinkproof_verify_yarn},
    {"yarn.concentration", 'B', "bound.rope", sinkproof_verify_yarn},
    {"yarn.truncate", 'B', "bound.rope", sinkproof_verify_yarn},
    {"router.softmax-after", 'B', "bound.softmax-sink", sinkproof_verify_router},
    {"swiglu.clamped", 'B', "bound.swiglu", sinkproof_verify_swiglu},
    {"gelu.tanh", 'B', "bound.gelu", sinkproof_verify_gelu},
    {"swiglu.gelu-fit", 'B', "swiglu.gelu-fit", sinkproof_verify_gelu_fit},
    {"moe.sum", 'B', "bound.dot", sinkproof_verify_mixture},
    {"model.forward", 'B', "every bound.*", sinkproof_verify_forward},
    {"gpt2.forward", 'B', "every bound.*", sinkproof_verify_gpt2},
    {"gpt2.circuit", 'B', "gpt2.circuit", sinkproof_verify_circuit_enclosed},
    {"gpt2.circuit", 'E', "gpt2.circuit", sinkproof_verify_circuit_run},
    {"gpt2.bq-zero", 'B', "gpt2.circuit", sinkproof_verify_bq_zero_enclosed},
    {"gpt2.bq-zero", 'E', "gpt2.circuit", sinkproof_verify_bq_zero_run},
    {"gpt2.epe-swap", 'B', "gpt2.circuit", sinkproof_verify_epe_swap_enclosed},
    {"gpt2.epe-swap", 'E', "gpt2.circuit", sinkproof_verify_epe_swap_run},
    {"gpt2.epe-move", 'B', "gpt2.circuit", sinkproof_verify_epe_move_enclosed},
    {"gpt2.epe-move", 'E', "gpt2.circuit", sinkproof_verify_epe_move_run},
    {"gpt2.bos-zero", 'B', "gpt2.circuit", sinkproof_verify_bos_zero_enclosed},
    {"gpt2.bos-zero", 'E', "gpt2.circuit", sinkproof_verify_bos_zero_run},
    {"gpt2.wk-rows", 'B', "gpt2.circuit", sinkproof_verify_wk_rows_enclosed},
    {"gpt2.wk-rows", 'E', "gpt2.circuit", sinkproof_verify_wk_rows_run},
    {"gpt2.wk-random", 'B', "gpt2.circuit", sinkproof_verify_wk_random_enclosed},
    {"gpt2.wk-random", 'E', "gpt2.circuit", sinkproof_verify_wk_random_run},
    {"gpt2.null", 'B', "gpt2.circuit", sinkproof_verify_null_enclosed},
    {"gpt2.null", 'E', "gpt2.circuit", sinkproof_verify_null_run},
    {"model.biases", 'E', "equality", sinkproof_verify_biases},
    {"model.parameters", 'E', "equality", sinkproof_verify_parameters},
    {"train.tokens", 'E', "the ends of its ball", sinkproof_verify_tokens},
    {"bound.dot", 'B', "bound.dot", sinkproof_verify_dot},
    {"bound.dot-likely", 'B', "bound.dot-likely", sinkproof_verify_dot_likely},
    {"bound.exp", 'B', "bound.exp", sinkproof_verify_exp},
    {"bound.one-minus", 'B', "bound.one-minus", sinkproof_verify_one_minus},
    {"bound.linear", 'B', "bound.linear", sinkproof_verify_linear},
    {"bound.softmax-sink", 'B', "bound.softmax-sink", sinkproof_verify_softmax},
    {"bound.value", 'B', "bound.value", sinkproof_verify_values},
    {"bound.rmsnorm", 'B', "bound.rmsnorm", sinkproof_verify_rmsnorm},
    {"bound.layernorm", 'B', "bound.layernorm", sinkproof_verify_layernorm},
    {"bound.rope", 'B', "bound.rope", sinkproof_verify_rotate},
    {"bound.swiglu", 'B', "bound.swiglu", sinkproof_verify_swiglu},
    {"bound.gelu", 'B', "bound.gelu", sinkproof_verify_gelu},
    {"bound.dot-exact", 'B', "bound.dot-exact", sinkproof_verify_dot_exact},
    {"bound.form-base2", 'B', "bound.form-base2", sinkproof_verify_form_base2},
    {"bound.form-running-max", 'B', "bound.form-running-max", sinkproof_verify_form_running_max},
    {"bound.form-lse", 'B', "bound.form-lse", sinkproof_verify_form_lse},
    {"bound.form-router", 'B', "bound.form-router", sinkproof_verify_form_router},
    {"bound.form-tanh", 'B', "bound.form-tanh", sinkproof_verify_form_tanh},
    {"bound.sigmoid-exp", 'B', "bound.sigmoid-exp", sinkproof_verify_sigmoid_exp},
    {"bound.form-running-angle", 'B', "bound.form-running-angle", sinkproof_verify_running_angle},
    {"bound.form-scaled-first", 'B', "bound.form-scaled-first", sinkproof_verify_scaled_first},
    {"bound.norm-rounded", 'B', "bound.norm-rounded", sinkproof_verify_norm_rounded},
    {"bound.unnormalised", 'B', "bound.unnormalised", sinkproof_verify_unnormalised},
    {"bound.unrounded", 'B', "bound.unrounded", sinkproof_verify_unrounded},
    {"bound.exp-growing", 'B', "bound.exp-growing", sinkproof_verify_exp_growing},
    {"bound.ftz", 'B', "bound.ftz", sinkproof_verify_ftz},
    {"bound.overflow", 'B', "bound.overflow", sinkproof_verify_overflow},
    {"bound.operands", 'B', "bound.operands", sinkproof_verify_operands},
    {"bound.q8", 'B', "bound.q8", sinkproof_verify_q8},
    {"bound.accumulator", 'B', "bound.accumulator", sinkproof_verify_accumulator},
    {"attn.softmax", 'B', "bound.similarity", sinkproof_verify_plain},
    {"kernel.sigmoid", 'B', "bound.similarity", sinkproof_verify_sigmoid},
    {"kernel.sigmoid-norm", 'B', "bound.similarity", sinkproof_verify_sigmoid_norm},
    {"kernel.elu", 'B', "bound.similarity", sinkproof_verify_elu},
    {"kernel.elu-norm", 'B', "bound.similarity", sinkproof_verify_elu_norm},
    {"kernel.elu-linear", 'B', "bound.similarity", sinkproof_verify_elu_linear},
    {"kernel.elu-linear-raw", 'B', "bound.similarity", sinkproof_verify_elu_linear_raw},
    {"kernel.identity", 'B', "bound.similarity", sinkproof_verify_identity},
    {"kernel.identity-max", 'B', "bound.similarity", sinkproof_verify_identity_max},
    {"kernel.mlp", 'B', "bound.similarity", sinkproof_verify_mlp},
    {"kernel.mlp-max", 'B', "bound.similarity", sinkproof_verify_mlp_max},
    {"norm.max-one", 'B', "bound.similarity", sinkproof_verify_identity_max},
    {"bound.similarity", 'B', "bound.similarity", sinkproof_verify_similarities},
    {"lattice.edges", 'B', "overlapping balls", sinkproof_verify_edges},
    {"mix.perturb", 'E', "equality", sinkproof_verify_perturbed},
    {"train.sinks", 'E', "recorded runs", sinkproof_verify_sinks_learned},
    {"train.star", 'E', "recorded runs", sinkproof_verify_star_learned},
    {"stat.drift", 'B', "stat.drift", sinkproof_verify_drift},
    {"stat.drift", 'E', "stat.drift", sinkproof_verify_drift_found},
    {"stat.drift-pooled", 'B', "stat.drift-pooled", sinkproof_verify_drift_pooled},
    {"stat.drift-pooled", 'E', "stat.drift-pooled", sinkproof_verify_drift_pooled_found},
    {"stat.equal-rows", 'B', "stat.equal-rows", sinkproof_verify_equal_rows},
    {"stat.equal-rows", 'E', "stat.equal-rows", sinkproof_verify_equal_rows_found},
    {"stat.spread", 'B', "stat.spread", sinkproof_verify_spread},
    {"stat.spread", 'E', "stat.spread", sinkproof_verify_spread_found},
};

const verify_check *sinkproof_verify_check_at(size_t k) {
    return k < sizeof checks / sizeof *checks ? &checks[k] : NULL;
}

verify_measure sinkproof_verify_measure(const char *id, char letter, uint64_t seed) {
    verify_measure result = {NULL, 0, 0, 0};
    const verify_check *check;
    for (size_t k = 0; (check = sinkproof_verify_check_at(k)) != NULL; k++) {
        if (strcmp(check->id, id) != 0 || check->letter != letter) continue;
        result.bound = check->bound;
        check->run(&result, seed);
    }
    return result;
}
