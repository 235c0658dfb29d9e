// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// OpenAI's original layout: q, k and v are one tensor, attn.qkv (heads * head_dim rows of q, then
// kv_heads * head_dim of k, then as many of v; in a bias, columns); experts are MXFP4; config.json
// has sixteen keys, and its reader knows the other numbers. Source:
// doc/99-bibliography.md#openai-source.
#include "model/container.h"
#include "model/sinks.h"

#include <string.h>

static const tensor_layout layout = {
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

static bool recognises_openai(const char *spec) {
    (void)spec; // the last in the list
    return true;
}

// Any object that no other layout recognises: its keys are compared with the sixteen.
static bool knows_config(const json_t *object) {
    (void)object;
    return true;
}

// With the common ones sixteen in all.
static const config_key own_keys[] = {
    {"num_experts", CONFIG_KEY(n_experts)},
    {"experts_per_token", CONFIG_KEY(n_chosen)},
    {"initial_context_length", CONFIG_KEY(rotation.original_context)},
    {"rope_theta", CONFIG_KEY(rotation.theta)},
    {"rope_scaling_factor", CONFIG_KEY(rotation.factor)},
    {"rope_ntk_alpha", CONFIG_KEY(rotation.beta_slow)},
    {"rope_ntk_beta", CONFIG_KEY(rotation.beta_fast)},
    {NULL, 0},
};

static bool is_among(const config_key *keys, const char *key) {
    while (keys->key != NULL && strcmp(keys->key, key) != 0) keys++;
    return keys->key != NULL;
}

static void refuse_unknown_keys(config_reader *in) {
    json_t *object = (json_t *)in->object;
    for (void *step = json_object_iter(object); step != NULL;
         step = json_object_iter_next(object, step)) {
        const char *key = json_object_iter_key(step);
        if (!is_among(config_common_keys, key) && !is_among(own_keys, key))
            config_fail(in, key, "absent from the original layout");
    }
}

static void read_config(config_reader *in) {
    refuse_unknown_keys(in);
    config_read_keys(in, config_common_keys);
    config_read_keys(in, own_keys);
    in->config->max_context = config_extended_context(in->config);
}

static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    (void)mxfp4; // implied
    if (c->sink != 0) {
        sinkproof_fail(error,
                       "%s: expected a learned logit for each head, which the original "
                       "layout takes for granted, found the attention sink \"%s\"",
                       path, sinkproof_sinks_name(c->sink));
        return NULL;
    }
    bool released = c->swiglu.alpha == 1.702 && c->rms_eps == 1e-5 && !c->rotation.truncate;
    for (size_t l = 0; l < c->n_layers; l++) released = released && c->sliding[l] == (l % 2 == 0);
    if (!released) {
        sinkproof_fail(error,
                       "%s: expected alpha 1.702, epsilon 1e-5, alternating layers "
                       "and an untruncated ramp, which the original layout takes for "
                       "granted, found another configuration",
                       path);
        return NULL;
    }
    json_t *out = config_make_keys(c, config_common_keys, json_object());
    return config_make_keys(c, own_keys, out);
}

static bool write_openai(const sinkproof_container *container, const sinkproof_model *model,
                         const char *path, const sinkproof_writing *how, sinkproof_error *error) {
    sinkproof_architecture found = sinkproof_model_config(model)->architecture;
    if (found == SINKPROOF_GPT_OSS) return checkpoint_write(container, model, path, how, error);
    return sinkproof_fail(error, "%s: expected GPT-OSS, whose weights alone %s holds, found %s",
                          path, container->title, sinkproof_architecture_name(found));
}

const sinkproof_container container_openai = {
    .name = "openai",
    .title = "the original layout",
    .holds = "OpenAI's original ones",
    .recognises = recognises_openai,
    .open = checkpoint_open,
    .find = checkpoint_view,
    .complete = checkpoint_check_all_used,
    .write = write_openai,
    .knows_config = knows_config,
    .read_config = read_config,
    .make_config = make_config,
    .layout = &layout,
};
