// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of GGUF files.
#include "model/gguf_names.h"

#include <stdio.h>

const sinkproof_gguf_name sinkproof_gguf_names[] = {
    {"block_count", SINKPROOF_KEY(n_layers), true},
    {"context_length", SINKPROOF_KEY(max_context), true},
    {"vocab_size", SINKPROOF_KEY(vocab), false},
    {"embedding_length", SINKPROOF_KEY(hidden), true},
    {"expert_feed_forward_length", SINKPROOF_KEY(inter), true},
    {"expert_count", SINKPROOF_KEY(n_experts), true},
    {"expert_used_count", SINKPROOF_KEY(n_chosen), true},
    {"attention.head_count", SINKPROOF_KEY(n_heads), true},
    {"attention.head_count_kv", SINKPROOF_KEY(n_kv_heads), true},
    {"attention.key_length", SINKPROOF_KEY(head_dim), true},
    {"attention.sliding_window", SINKPROOF_KEY(window), true},
    {"attention.layer_norm_rms_epsilon", SINKPROOF_KEY(rms_eps), true},
    {"rope.freq_base", SINKPROOF_KEY(rotation.theta), true},
    {"rope.scaling.factor", SINKPROOF_KEY(rotation.factor), true},
    {"rope.scaling.original_context_length", SINKPROOF_KEY(rotation.original_context), true},
    {"rope.scaling.rotation.beta_fast", SINKPROOF_KEY(rotation.beta_fast), false},
    {"rope.scaling.rotation.beta_slow", SINKPROOF_KEY(rotation.beta_slow), false},
    {NULL, 0, false},
};

const sinkproof_layout sinkproof_gguf_layout = {
    .shown = "gguf",
    .layers = "blk.",
    .plain_experts = true,
    .names =
        {
            [SINKPROOF_ATTN_NORM] = "attn_norm.weight",
            [SINKPROOF_W_Q] = "attn_q.weight",
            [SINKPROOF_B_Q] = "attn_q.bias",
            [SINKPROOF_W_K] = "attn_k.weight",
            [SINKPROOF_B_K] = "attn_k.bias",
            [SINKPROOF_W_V] = "attn_v.weight",
            [SINKPROOF_B_V] = "attn_v.bias",
            [SINKPROOF_SINKS] = "attn_sinks.weight",
            [SINKPROOF_W_O] = "attn_output.weight",
            [SINKPROOF_B_O] = "attn_output.bias",
            [SINKPROOF_MLP_NORM] = "post_attention_norm.weight",
            [SINKPROOF_W_ROUTER] = "ffn_gate_inp.weight",
            [SINKPROOF_B_ROUTER] = "ffn_gate_inp.bias",
            [SINKPROOF_W_UP] = "ffn_gate_exps.weight",
            [SINKPROOF_B_UP] = "ffn_gate_exps.bias",
            [SINKPROOF_W_DOWN] = "ffn_down_exps.weight",
            [SINKPROOF_B_DOWN] = "ffn_down_exps.bias",
            [SINKPROOF_EMBEDDING] = "token_embd.weight",
            [SINKPROOF_FINAL_NORM] = "output_norm.weight",
            [SINKPROOF_UNEMBEDDING] = "output.weight",
        },
    .second = {[SINKPROOF_W_UP] = "ffn_up_exps.weight", [SINKPROOF_B_UP] = "ffn_up_exps.bias"},
};

const char *sinkproof_gguf_fused(sinkproof_slot slot) {
    return slot == SINKPROOF_W_UP   ? "ffn_gate_up_exps.weight"
           : slot == SINKPROOF_B_UP ? "ffn_gate_up_exps.bias"
                                    : NULL;
}

void sinkproof_gguf_tensor(size_t l, const char *name, char out[SINKPROOF_TENSOR_NAME]) {
    snprintf(out, SINKPROOF_TENSOR_NAME, "%s%zu.%s", sinkproof_gguf_layout.layers, l, name);
}
