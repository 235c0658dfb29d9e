// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The layout of Hugging Face's transformers: one tensor for each weight; experts in MXFP4, or
// dequantized as [experts, in, out]; config.json with `rope_scaling` (transformers 4) or
// `rope_parameters` (5). Source: doc/99-bibliography.md#transformers.
#include "model/container.h"
#include "model/fields.h"
#include "model/sinks.h"

#include <math.h>
#include <string.h>

extern const sinkproof_container container_gpt2;  // gpt2.c
extern const sinkproof_container container_llama; // llama.c

static const tensor_layout layout = {
    .shown = "hf-mxfp4",
    .dequantized = "hf-bf16",
    .indexed = true,
    .layers = "model.layers.",
    .blocks = "_blocks",
    .scales = "_scales",
    .names =
        {
            [SINKPROOF_ATTN_NORM] = "input_layernorm.weight",
            [SINKPROOF_W_Q] = "self_attn.q_proj.weight",
            [SINKPROOF_B_Q] = "self_attn.q_proj.bias",
            [SINKPROOF_W_K] = "self_attn.k_proj.weight",
            [SINKPROOF_B_K] = "self_attn.k_proj.bias",
            [SINKPROOF_W_V] = "self_attn.v_proj.weight",
            [SINKPROOF_B_V] = "self_attn.v_proj.bias",
            [SINKPROOF_SINKS] = "self_attn.sinks",
            [SINKPROOF_W_O] = "self_attn.o_proj.weight",
            [SINKPROOF_B_O] = "self_attn.o_proj.bias",
            [SINKPROOF_MLP_NORM] = "post_attention_layernorm.weight",
            [SINKPROOF_W_ROUTER] = "mlp.router.weight",
            [SINKPROOF_B_ROUTER] = "mlp.router.bias",
            [SINKPROOF_W_UP] = "mlp.experts.gate_up_proj",
            [SINKPROOF_B_UP] = "mlp.experts.gate_up_proj_bias",
            [SINKPROOF_W_DOWN] = "mlp.experts.down_proj",
            [SINKPROOF_B_DOWN] = "mlp.experts.down_proj_bias",
            [SINKPROOF_EMBEDDING] = "model.embed_tokens.weight",
            [SINKPROOF_FINAL_NORM] = "model.norm.weight",
            [SINKPROOF_UNEMBEDDING] = "lm_head.weight",
        },
};

static bool knows_config(const json_t *object) {
    return json_object_get(object, "model_type") != NULL ||
           json_object_get(object, "num_local_experts") != NULL;
}

static bool recognises_hf(const char *spec) {
    return config_file_matches(spec, knows_config);
}

static void read_layer_types(config_reader *in) {
    sinkproof_config *config = in->config;
    const json_t *types = config_get(in, "layer_types");
    if (types == NULL) config_note(in, "layer_types alternating, sliding first");
    if (types == NULL || in->failed) return;
    if (!json_is_array(types) || json_array_size(types) != config->n_layers)
        config_fail(in, "layer_types", "a list of num_hidden_layers names");
    for (size_t l = 0; l < config->n_layers && l < SINKPROOF_MAX_LAYERS; l++) {
        const char *type = json_string_value(json_array_get(types, l));
        config->sliding[l] = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (type == NULL || (!config->sliding[l] && strcmp(type, "full_attention") != 0))
            config_fail(in, "layer_types", "made of sliding_attention and full_attention");
    }
}

// In transformers, factor and original context must be stated; truncate defaults to true, the betas
// to 32 and 1; the concentration defaults to 0.1 ln(factor) + 1, and a stated one must equal it.
// Returns whether the object holds a rope_theta.
static bool read_rope(config_reader *rope) {
    sinkproof_config *config = rope->config;
    if (rope->failed) return false;
    const char *kind = config_get(rope, "rope_type") != NULL ? "rope_type" : "type";
    if (config_get(rope, kind) == NULL) config_fail(rope, "rope_type", "\"yarn\"");
    config_require_string(rope, kind, "yarn");
    if (!config_read_stated(rope, "factor", &config->rotation.factor))
        config_fail(rope, "factor", "a positive number");
    config_read_size(rope, "original_max_position_embeddings", &config->rotation.original_context);
    config->rotation.truncate = true;
    config_read_bool(rope, "truncate", &config->rotation.truncate);
    config_read_positive(rope, "beta_fast", &config->rotation.beta_fast);
    config_read_positive(rope, "beta_slow", &config->rotation.beta_slow);
    config_require_number(rope, "partial_rotary_factor", 1, "absent or 1");
    config_require_number(rope, "attention_factor", 0.1 * log(config->rotation.factor) + 1,
                          "absent or 0.1 ln(factor) + 1");
    if (config_get(rope, "mscale") != NULL) config_fail(rope, "mscale", "absent");
    if (config_get(rope, "mscale_all_dim") != NULL) config_fail(rope, "mscale_all_dim", "absent");
    return config_read_stated(rope, "rope_theta", &config->rotation.theta);
}

// Reads `rope_scaling` (transformers 4), `rope_parameters` (5), or both if they agree; rope_theta
// is beside them or inside.
static void read_ropes(config_reader *in) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    sinkproof_config *config = in->config, found[2];
    bool present[2], stated = config_read_stated(in, "rope_theta", &config->rotation.theta);
    double outside = config->rotation.theta;
    bool beside = stated;
    // null means no scaling in transformers 4 and the released scaling in 5
    if (config_get(in, keys[1]) == NULL && json_is_null(json_object_get(in->object, keys[0])))
        config_fail(in, keys[0], "an object or absent");
    for (int i = 0; i < 2; i++) {
        found[i] = *config;
        present[i] = config_get(in, keys[i]) != NULL;
        if (!present[i] || in->failed) continue;
        config_reader rope = config_inner_reader(in, keys[i], &found[i]);
        stated = read_rope(&rope) || stated;
        in->failed = rope.failed;
    }
    if (in->failed) return;
    if (present[0] && present[1] && !fields_equal(&found[0], &found[1]))
        config_fail(in, "rope_scaling", "equal to \"rope_parameters\", which differs");
    if (present[0] || present[1])
        *config = found[present[1]];
    else
        config_note(in, "rope_scaling yarn of factor 32 on 4096 positions");
    if (beside && config->rotation.theta != outside)
        config_fail(in, "rope_theta", "equal to the one inside \"rope_parameters\"");
    if (!stated) config_note(in, "rope_theta %g", config->rotation.theta);
}

// Experts are stored in MXFP4, or, without the key, in a floating-point format.
static void read_quantization(config_reader *in) {
    const char key[] = "quantization_config";
    if (config_get(in, key) == NULL) return;
    config_reader inner = config_inner_reader(in, key, in->config);
    if (!inner.failed && config_get(&inner, "quant_method") == NULL)
        config_fail(&inner, "quant_method", "\"mxfp4\"");
    if (!inner.failed) config_require_string(&inner, "quant_method", "mxfp4");
    in->failed = inner.failed;
}

// This project's own key: without it the sink is GPT-OSS's.
static void read_sink(config_reader *in) {
    const json_t *found = config_get(in, "attention_sink");
    const char *name = found != NULL ? json_string_value(found) : sinkproof_sinks_name(0);
    char names[200];
    if (name == NULL || !sink_kind_find(name, &in->config->sink))
        config_fail(in, "attention_sink", sink_kind_names(names, sizeof names));
}

// Another key of this project's; 0 is Llama's.
static void read_offset(config_reader *in) {
    const json_t *found = config_get(in, "swiglu_offset");
    if (found != NULL && !json_is_number(found))
        config_fail(in, "swiglu_offset", "a number");
    else if (found != NULL)
        in->config->swiglu.offset = json_number_value(found);
}

static const config_key own_keys[] = {
    {"num_local_experts", CONFIG_KEY(n_experts)},
    {"num_experts_per_tok", CONFIG_KEY(n_chosen)},
    {"swiglu_alpha", CONFIG_KEY(swiglu.alpha)},
    {"rms_norm_eps", CONFIG_KEY(rms_eps)},
    {NULL, 0},
};

static void read_config(config_reader *in) {
    sinkproof_config *config = in->config;
    const char *type = json_string_value(config_get(in, "model_type"));
    if (type != NULL && strcmp(type, "gpt_oss") != 0)
        config_fail(in, "model_type",
                    "\"gpt_oss\", \"gpt2\", \"llama\", \"qwen2\", \"qwen3\" or \"mistral\"");
    config_require_string(in, "model_type", "gpt_oss");
    config_require_string(in, "hidden_act", "silu");
    config_require_bool(in, "attention_bias", true);
    config_require_bool(in, "tie_word_embeddings", false);
    config_require_number(in, "partial_rotary_factor", 1, "absent or 1");
    config_read_keys(in, config_common_keys);
    config_read_keys(in, own_keys);
    config_require_number(in, "experts_per_token", (double)config->n_chosen,
                          "equal to \"num_experts_per_tok\"");
    config_require_number(in, "num_experts", (double)config->n_experts,
                          "equal to \"num_local_experts\"");
    read_layer_types(in);
    read_sink(in);
    read_offset(in);
    read_quantization(in);
    read_ropes(in);
    config_require_number(in, "initial_context_length", (double)config->rotation.original_context,
                          "absent or \"original_max_position_embeddings\"");
    config->max_context = config_extended_context(config);
    if (config_get(in, "max_position_embeddings") != NULL)
        config_read_size(in, "max_position_embeddings", &config->max_context);
    else
        config_note(in, "max_position_embeddings %zu", config->max_context);
}

static json_t *layer_types_json(const sinkproof_config *c) {
    json_t *types = json_array();
    for (size_t l = 0; l < c->n_layers; l++)
        json_array_append_new(types,
                              json_string(c->sliding[l] ? "sliding_attention" : "full_attention"));
    return types;
}

// Keys for writing; read_ropes and read_rope read them with more checks.
static const config_key more_keys[] = {
    {"experts_per_token", CONFIG_KEY(n_chosen)},
    {"max_position_embeddings", CONFIG_KEY(max_context)},
    {"rope_theta", CONFIG_KEY(rotation.theta)},
    {"initial_context_length", CONFIG_KEY(rotation.original_context)},
    {NULL, 0},
};
static const config_key rope_keys[] = {
    {"factor", CONFIG_KEY(rotation.factor)},
    {"beta_fast", CONFIG_KEY(rotation.beta_fast)},
    {"beta_slow", CONFIG_KEY(rotation.beta_slow)},
    {"original_max_position_embeddings", CONFIG_KEY(rotation.original_context)},
    {"truncate", CONFIG_KEY(rotation.truncate)},
    {NULL, 0},
};

static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    (void)path; // it can express everything
    (void)error;
    json_t *out = json_pack("{s:[s], s:s, s:s, s:b, s:f, s:s, s:b, s:b, s:b}", "architectures",
                            "GptOssForCausalLM", "model_type", "gpt_oss", "dtype", "bfloat16",
                            "attention_bias", 1, "attention_dropout", 0.0, "hidden_act", "silu",
                            "tie_word_embeddings", 0, "output_router_logits", 0, "use_cache", 1);
    json_t *rope = json_pack("{s:s}", "rope_type", "yarn");
    config_make_keys(c, config_common_keys, out);
    config_make_keys(c, own_keys, out);
    config_make_keys(c, more_keys, out);
    config_make_keys(c, rope_keys, rope);
    json_object_set_new(out, "rope_scaling", rope);
    json_object_set_new(out, "layer_types", layer_types_json(c));
    if (c->swiglu.offset != 1)
        json_object_set_new(out, "swiglu_offset", json_real(c->swiglu.offset));
    if (c->sink != 0) // omitted for the default, so that other engines need not know the key
        json_object_set_new(out, "attention_sink", json_string(sinkproof_sinks_name(c->sink)));
    if (mxfp4)
        json_object_set_new(out, "quantization_config",
                            json_pack("{s:s, s:[s, s, s, s]}", "quant_method", "mxfp4",
                                      "modules_to_not_convert", "model.layers.*.self_attn",
                                      "model.layers.*.mlp.router", "model.embed_tokens",
                                      "lm_head"));
    return out;
}

// Of other architectures transformers has layouts of their own.
static bool write_model(const sinkproof_container *container, const sinkproof_model *model,
                        const char *directory, const sinkproof_writing *how,
                        sinkproof_error *error) {
    const sinkproof_container *const own[SINKPROOF_ARCHITECTURES] = {
        [SINKPROOF_GPT_OSS] = container,
        [SINKPROOF_GPT2] = &container_gpt2,
        [SINKPROOF_LLAMA] = &container_llama};
    return checkpoint_write(own[sinkproof_model_config(model)->architecture], model, directory, how,
                            error);
}

const sinkproof_container container_hf = {
    .name = "hf",
    .title = "the Hugging Face layout",
    .holds = "Hugging Face's tensors",
    .dequantizes = true,
    .recognises = recognises_hf,
    .open = checkpoint_open,
    .find = checkpoint_view,
    .complete = checkpoint_check_all_used,
    .write = write_model,
    .knows_config = knows_config,
    .read_config = read_config,
    .make_config = make_config,
    .layout = &layout,
};
