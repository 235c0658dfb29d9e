// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// OpenAI's original layout: q, k and v are one tensor, attn.qkv (heads * head_dim rows of q, then
// kv_heads * head_dim of k, then as many of v; in a bias, columns); experts are MXFP4; config.json
// has sixteen keys and takes the rest for granted. Source:
// doc/99-bibliography.md#openai-source.
#include "ref/model/container.h"
#include "ref/model/sinks.h"

#include <string.h>

static const sinkproof_layout layout = {
    .shown = "openai",
    .layers = "block.",
    .blocks = ".blocks",
    .scales = ".scales",
    .shared = "q, k and v",
    .names =
        {
            [SINKPROOF_ATTN_NORM] = "attn.norm.scale",
            [SINKPROOF_W_Q] = "attn.qkv.weight",
            [SINKPROOF_B_Q] = "attn.qkv.bias",
            [SINKPROOF_W_K] = "attn.qkv.weight",
            [SINKPROOF_B_K] = "attn.qkv.bias",
            [SINKPROOF_W_V] = "attn.qkv.weight",
            [SINKPROOF_B_V] = "attn.qkv.bias",
            [SINKPROOF_SINKS] = "attn.sinks",
            [SINKPROOF_W_O] = "attn.out.weight",
            [SINKPROOF_B_O] = "attn.out.bias",
            [SINKPROOF_MLP_NORM] = "mlp.norm.scale",
            [SINKPROOF_W_ROUTER] = "mlp.gate.weight",
            [SINKPROOF_B_ROUTER] = "mlp.gate.bias",
            [SINKPROOF_W_UP] = "mlp.mlp1_weight",
            [SINKPROOF_B_UP] = "mlp.mlp1_bias",
            [SINKPROOF_W_DOWN] = "mlp.mlp2_weight",
            [SINKPROOF_B_DOWN] = "mlp.mlp2_bias",
            [SINKPROOF_EMBEDDING] = "embedding.weight",
            [SINKPROOF_FINAL_NORM] = "norm.scale",
            [SINKPROOF_UNEMBEDDING] = "unembedding.weight",
        },
};

static bool recognises(const char *spec) {
    (void)spec; // the last of the list
    return true;
}

// Every object that no other layout knows: its keys are held against the sixteen.
static bool knows_config(const json_t *object) {
    (void)object;
    return true;
}

static void refuse_unknown_keys(sinkproof_config_reader *in) {
    static const char *const known[] = {
        "num_hidden_layers",   "num_experts",         "experts_per_token", "vocab_size",
        "hidden_size",         "intermediate_size",   "swiglu_limit",      "head_dim",
        "num_attention_heads", "num_key_value_heads", "sliding_window",    "initial_context_length",
        "rope_theta",          "rope_scaling_factor", "rope_ntk_alpha",    "rope_ntk_beta"};
    void *step;
    for (step = json_object_iter((json_t *)in->object); step != NULL;
         step = json_object_iter_next((json_t *)in->object, step)) {
        size_t i = 0;
        while (i < 16 && strcmp(known[i], json_object_iter_key(step)) != 0) i++;
        if (i == 16)
            sinkproof_config_fail(in, json_object_iter_key(step),
                                  "absent from the original layout");
    }
}

static void read_config(sinkproof_config_reader *in) {
    sinkproof_config *config = in->config;
    refuse_unknown_keys(in);
    sinkproof_config_read_common(in);
    sinkproof_config_read_size(in, "num_experts", &config->n_experts);
    sinkproof_config_read_size(in, "experts_per_token", &config->n_chosen);
    sinkproof_config_read_size(in, "initial_context_length", &config->yarn_original_context);
    sinkproof_config_read_positive(in, "rope_theta", &config->rope_theta);
    sinkproof_config_read_positive(in, "rope_scaling_factor", &config->yarn_factor);
    sinkproof_config_read_positive(in, "rope_ntk_alpha", &config->yarn_beta_slow);
    sinkproof_config_read_positive(in, "rope_ntk_beta", &config->yarn_beta_fast);
    config->max_context = sinkproof_config_extended_context(config);
}

static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    (void)mxfp4; // taken for granted
    if (c->sink != 0) {
        sinkproof_fail(error,
                       "%s: expected a learned logit for each head, which the original "
                       "layout takes for granted, found the attention sink \"%s\"",
                       path, sinkproof_sinks_name(c->sink));
        return NULL;
    }
    bool released = c->swiglu_alpha == 1.702 && c->rms_eps == 1e-5 && !c->yarn_truncate;
    for (size_t l = 0; l < c->n_layers; l++) released = released && c->sliding[l] == (l % 2 == 0);
    if (!released) {
        sinkproof_fail(error,
                       "%s: expected alpha 1.702, epsilon 1e-5, alternating layers "
                       "and an untruncated ramp, which the original layout takes for "
                       "granted, found another configuration",
                       path);
        return NULL;
    }
    json_t *out = sinkproof_config_make_common(c);
    json_object_set_new(out, "num_experts", json_integer((json_int_t)c->n_experts));
    json_object_set_new(out, "experts_per_token", json_integer((json_int_t)c->n_chosen));
    json_object_set_new(out, "rope_scaling_factor", json_real(c->yarn_factor));
    json_object_set_new(out, "rope_ntk_alpha", json_real(c->yarn_beta_slow));
    json_object_set_new(out, "rope_ntk_beta", json_real(c->yarn_beta_fast));
    return out;
}

const sinkproof_container sinkproof_container_openai = {
    .name = "openai",
    .title = "the original layout",
    .holds = "OpenAI's original ones",
    .recognises = recognises,
    .open = sinkproof_checkpoint_open,
    .find = sinkproof_checkpoint_view,
    .complete = sinkproof_checkpoint_complete,
    .write = sinkproof_checkpoint_write,
    .knows_config = knows_config,
    .read_config = read_config,
    .make_config = make_config,
    .layout = &layout,
};
