// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Hugging Face's layout of GPT-2. Its matrices are stored as [in, out] (Conv1D); c_attn holds
// query, key and value side by side. Names may begin with "transformer.": transformers writes it,
// the released files do not have it. Writing a GPT-2 in the layout "hf" writes this layout. Source:
// doc/99-bibliography.md#transformers.
#include "model/container.h"
#include "model/fields.h"

#include <string.h>

// The causal mask, which old checkpoints hold as buffers.
static const char *const masks[] = {".attn.bias", ".attn.masked_bias", NULL};

static const tensor_layout layout = {
    .shown = "hf-gpt2",
    .shared = "q, k and v",
    .indexed = true,
    .transposed = true,
    .layers = "h.",
    .prefix = "transformer.",
    .unread = masks,
    .names =
        {
            [SINKPROOF_ATTN_NORM] = "ln_1.weight",      [SINKPROOF_ATTN_NORM_B] = "ln_1.bias",
            [SINKPROOF_W_Q] = "attn.c_attn.weight",     [SINKPROOF_B_Q] = "attn.c_attn.bias",
            [SINKPROOF_W_K] = "attn.c_attn.weight",     [SINKPROOF_B_K] = "attn.c_attn.bias",
            [SINKPROOF_W_V] = "attn.c_attn.weight",     [SINKPROOF_B_V] = "attn.c_attn.bias",
            [SINKPROOF_W_O] = "attn.c_proj.weight",     [SINKPROOF_B_O] = "attn.c_proj.bias",
            [SINKPROOF_MLP_NORM] = "ln_2.weight",       [SINKPROOF_MLP_NORM_B] = "ln_2.bias",
            [SINKPROOF_W_UP] = "mlp.c_fc.weight",       [SINKPROOF_B_UP] = "mlp.c_fc.bias",
            [SINKPROOF_W_DOWN] = "mlp.c_proj.weight",   [SINKPROOF_B_DOWN] = "mlp.c_proj.bias",
            [SINKPROOF_EMBEDDING] = "wte.weight",       [SINKPROOF_POSITIONS] = "wpe.weight",
            [SINKPROOF_FINAL_NORM] = "ln_f.weight",     [SINKPROOF_FINAL_NORM_B] = "ln_f.bias",
            [SINKPROOF_UNEMBEDDING] = "lm_head.weight",
        },
};

static bool knows_config(const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "model_type"));
    return type != NULL && strcmp(type, "gpt2") == 0;
}

static bool recognises_gpt2(const char *spec) {
    return config_file_matches(spec, knows_config);
}

static const config_key keys[] = {
    {"n_layer", CONFIG_KEY(n_layers)},
    {"vocab_size", CONFIG_KEY(vocab)},
    {"n_embd", CONFIG_KEY(hidden)},
    {"n_head", CONFIG_KEY(n_heads)},
    {"n_positions", CONFIG_KEY(max_context)},
    {"layer_norm_epsilon", CONFIG_KEY(rms_eps)},
    {NULL, 0},
};

// Absent keys have transformers' defaults: tied, scaled by 1 / sqrt(head_dim) only, a perceptron of
// four times the width.
static void read_config(config_reader *in) {
    sinkproof_config *c = in->config;
    config_require_unquantized(in);
    config_require_string(in, "activation_function", "gelu_new");
    config_require_bool(in, "scale_attn_weights", true);
    config_require_bool(in, "scale_attn_by_inverse_layer_idx", false);
    config_require_bool(in, "reorder_and_upcast_attn", false);
    config_require_bool(in, "add_cross_attention", false);
    config_read_keys(in, keys);
    config_make_gpt2(c);
    config_read_bool(in, "tie_word_embeddings", &c->tied);
    c->inter = 4 * c->hidden;
    if (config_get(in, "n_inner") != NULL) config_read_size(in, "n_inner", &c->inter);
    config_require_number(in, "n_ctx", (double)c->max_context, "absent or \"n_positions\"");
    if (in->failed) return;
    c->head_dim = c->hidden / c->n_heads;
}

static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    (void)mxfp4; // no weight is MXFP4
    (void)path;  // it can express everything
    (void)error;
    json_t *out = json_pack("{s:[s], s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:f, s:f, s:f, s:b}",
                            "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "dtype",
                            "bfloat16", "activation_function", "gelu_new", "scale_attn_weights", 1,
                            "scale_attn_by_inverse_layer_idx", 0, "reorder_and_upcast_attn", 0,
                            "tie_word_embeddings", c->tied, "attn_pdrop", 0.0, "embd_pdrop", 0.0,
                            "resid_pdrop", 0.0, "use_cache", 1);
    config_make_keys(c, keys, out);
    json_object_set_new(out, "n_inner", json_integer((json_int_t)c->inter));
    return out;
}

const sinkproof_container container_gpt2 = {
    .title = "the Hugging Face layout of GPT-2",
    .holds = "Hugging Face's tensors of GPT-2",
    .dequantizes = true, // nothing in it is MXFP4
    .recognises = recognises_gpt2,
    .open = checkpoint_open,
    .find = checkpoint_view,
    .complete = checkpoint_check_all_used,
    .knows_config = knows_config,
    .read_config = read_config,
    .make_config = make_config,
    .layout = &layout,
};
