// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of GGUF files.
#include "model/gguf_names.h"

#include <stdio.h>

static const gguf_name gpt_oss_names[] = {
    {"block_count", CONFIG_KEY(n_layers), true},
    {"context_length", CONFIG_KEY(max_context), true},
    {"vocab_size", CONFIG_KEY(vocab), false},
    {"embedding_length", CONFIG_KEY(hidden), true},
    {"expert_feed_forward_length", CONFIG_KEY(inter), true},
    {"expert_count", CONFIG_KEY(n_experts), true},
    {"expert_used_count", CONFIG_KEY(n_chosen), true},
    {"attention.head_count", CONFIG_KEY(n_heads), true},
    {"attention.head_count_kv", CONFIG_KEY(n_kv_heads), true},
    {"attention.key_length", CONFIG_KEY(head_dim), true},
    {"attention.sliding_window", CONFIG_KEY(window), true},
    {"attention.layer_norm_rms_epsilon", CONFIG_KEY(rms_eps), true},
    {"rope.freq_base", CONFIG_KEY(rotation.theta), true},
    {"rope.scaling.factor", CONFIG_KEY(rotation.factor), true},
    {"rope.scaling.original_context_length", CONFIG_KEY(rotation.original_context), true},
    {"rope.scaling.yarn_beta_fast", CONFIG_KEY(rotation.beta_fast), false},
    {"rope.scaling.yarn_beta_slow", CONFIG_KEY(rotation.beta_slow), false},
    {NULL, 0, false},
};

static const gguf_name llama_names[] = {
    {"block_count", CONFIG_KEY(n_layers), true},
    {"context_length", CONFIG_KEY(max_context), true},
    {"vocab_size", CONFIG_KEY(vocab), false},
    {"embedding_length", CONFIG_KEY(hidden), true},
    {"feed_forward_length", CONFIG_KEY(inter), true},
    {"attention.head_count", CONFIG_KEY(n_heads), true},
    {"attention.head_count_kv", CONFIG_KEY(n_kv_heads), false},
    {"attention.key_length", CONFIG_KEY(head_dim), false},
    {"attention.layer_norm_rms_epsilon", CONFIG_KEY(rms_eps), true},
    {"rope.freq_base", CONFIG_KEY(rotation.theta), false},
    {NULL, 0, false},
};

static const char *const gpt_oss_more[] = {"attention.value_length", "rope.dimension_count",
                                           "rope.scaling.type",      "rope.scaling.finetuned",
                                           "feed_forward_length",    NULL};
static const char *const llama_more[] = {"attention.value_length", "rope.dimension_count", NULL};

const tensor_layout gguf_layout = {
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
            [SINKPROOF_Q_NORM] = "attn_q_norm.weight",
            [SINKPROOF_K_NORM] = "attn_k_norm.weight",
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

const tensor_layout gguf_llama_layout = {
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
            [SINKPROOF_Q_NORM] = "attn_q_norm.weight",
            [SINKPROOF_K_NORM] = "attn_k_norm.weight",
            [SINKPROOF_W_O] = "attn_output.weight",
            [SINKPROOF_B_O] = "attn_output.bias",
            [SINKPROOF_MLP_NORM] = "ffn_norm.weight",
            [SINKPROOF_W_UP] = "ffn_gate.weight",
            [SINKPROOF_B_UP] = "ffn_gate.bias",
            [SINKPROOF_W_DOWN] = "ffn_down.weight",
            [SINKPROOF_B_DOWN] = "ffn_down.bias",
            [SINKPROOF_EMBEDDING] = "token_embd.weight",
            [SINKPROOF_FINAL_NORM] = "output_norm.weight",
            [SINKPROOF_UNEMBEDDING] = "output.weight",
        },
    .second = {[SINKPROOF_W_UP] = "ffn_up.weight", [SINKPROOF_B_UP] = "ffn_up.bias"},
};

const gguf_kind gguf_kinds[] = {
    {"gpt-oss", "gpt-oss.", SINKPROOF_GPT_OSS, &gguf_layout, gpt_oss_names, gpt_oss_more, false},
    {"llama", "llama.", SINKPROOF_LLAMA, &gguf_llama_layout, llama_names, llama_more, true},
    {"qwen2", "qwen2.", SINKPROOF_LLAMA, &gguf_llama_layout, llama_names, llama_more, false},
    {"qwen3", "qwen3.", SINKPROOF_LLAMA, &gguf_llama_layout, llama_names, llama_more, false},
    {NULL, NULL, SINKPROOF_GPT_OSS, NULL, NULL, NULL, false},
};

const char *gguf_fused_name(sinkproof_slot slot) {
    return slot == SINKPROOF_W_UP   ? "ffn_gate_up_exps.weight"
           : slot == SINKPROOF_B_UP ? "ffn_gate_up_exps.bias"
                                    : NULL;
}

void gguf_tensor_name(size_t l, const char *name, char out[TENSOR_NAME]) {
    snprintf(out, TENSOR_NAME, "%s%zu.%s", gguf_layout.layers, l, name);
}

// Row r = (head, half, i) of queries or keys is row (head, i, half) of a file that keeps the two
// coordinates of a pair side by side; and the other way round.
size_t gguf_row_side_by_side(size_t r, size_t rows, size_t head_dim) {
    size_t in_head = r % head_dim, half = head_dim / 2;
    (void)rows;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

size_t gguf_row_in_halves(size_t r, size_t rows, size_t head_dim) {
    size_t in_head = r % head_dim, half = head_dim / 2;
    (void)rows;
    return r - in_head + in_head % 2 * half + in_head / 2;
}

bool gguf_reorders_slot(sinkproof_slot slot) {
    return slot == SINKPROOF_W_Q || slot == SINKPROOF_B_Q || slot == SINKPROOF_W_K ||
           slot == SINKPROOF_B_K;
}

void gguf_reorder_rows(sinkproof_read_from *from, size_t head_dim, bool vector,
                       sinkproof_reading *reading) {
    *reading = (sinkproof_reading){.factor = 1};
    if (vector)
        reading->column = from, reading->column_by = head_dim;
    else
        reading->row = from, reading->row_by = head_dim;
}
