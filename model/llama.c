// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Llama in the layout of Hugging Face's transformers, and Qwen2, which is Llama with biases on
// queries, keys and values: RMSNorm, plain rotation, grouped heads without sinks, one perceptron of
// gate and up for all tokens. Whoever writes such a model in the layout "hf" writes this one.
// Source: doc/99-bibliography.md#transformers.
#include "model/container.h"

#include <math.h>
#include <string.h>

static const tensor_layout layout = {
    .shown = "hf-llama",
    .indexed = true,
    .layers = "model.layers.",
    .names =
        {
            [SINKPROOF_ATTN_NORM] = "input_layernorm.weight",
            [SINKPROOF_W_Q] = "self_attn.q_proj.weight",
            [SINKPROOF_B_Q] = "self_attn.q_proj.bias",
            [SINKPROOF_W_K] = "self_attn.k_proj.weight",
            [SINKPROOF_B_K] = "self_attn.k_proj.bias",
            [SINKPROOF_W_V] = "self_attn.v_proj.weight",
            [SINKPROOF_B_V] = "self_attn.v_proj.bias",
            [SINKPROOF_W_O] = "self_attn.o_proj.weight",
            [SINKPROOF_B_O] = "self_attn.o_proj.bias",
            [SINKPROOF_MLP_NORM] = "post_attention_layernorm.weight",
            [SINKPROOF_W_UP] = "mlp.gate_proj.weight",
            [SINKPROOF_B_UP] = "mlp.gate_proj.bias",
            [SINKPROOF_W_DOWN] = "mlp.down_proj.weight",
            [SINKPROOF_B_DOWN] = "mlp.down_proj.bias",
            [SINKPROOF_EMBEDDING] = "model.embed_tokens.weight",
            [SINKPROOF_FINAL_NORM] = "model.norm.weight",
            [SINKPROOF_UNEMBEDDING] = "lm_head.weight",
        },
    .second = {[SINKPROOF_W_UP] = "mlp.up_proj.weight", [SINKPROOF_B_UP] = "mlp.up_proj.bias"},
};

static bool has_model_type(const json_t *object, const char *type) {
    const char *found = json_string_value(json_object_get(object, "model_type"));
    return found != NULL && strcmp(found, type) == 0;
}

static bool knows_config(const json_t *object) {
    return has_model_type(object, "llama") || has_model_type(object, "qwen2");
}

static bool recognises_llama(const char *spec) {
    return config_file_matches(spec, knows_config);
}

static const config_key keys[] = {
    {"num_hidden_layers", CONFIG_KEY(n_layers)},
    {"vocab_size", CONFIG_KEY(vocab)},
    {"hidden_size", CONFIG_KEY(hidden)},
    {"intermediate_size", CONFIG_KEY(inter)},
    {"num_attention_heads", CONFIG_KEY(n_heads)},
    {"max_position_embeddings", CONFIG_KEY(max_context)},
    {"rms_norm_eps", CONFIG_KEY(rms_eps)},
    {NULL, 0},
};

// rope_theta beside the other keys (transformers 4) or in `rope_parameters` (5). A rotation that is
// scaled in any way is refused.
static void read_rotation(config_reader *in) {
    static const char *const inner_keys[] = {"rope_scaling", "rope_parameters"};
    double *theta = &in->config->rotation.theta, beside;
    bool stated = config_read_stated(in, "rope_theta", theta);
    beside = *theta;
    for (int i = 0; i < 2; i++) {
        if (config_get(in, inner_keys[i]) == NULL || in->failed) continue;
        config_reader inner = config_inner_reader(in, inner_keys[i], in->config);
        in->failed = inner.failed;
        if (in->failed) return;
        const char *kind = config_get(&inner, "rope_type") != NULL ? "rope_type" : "type";
        if (config_get(&inner, kind) != NULL) config_require_string(&inner, kind, "default");
        config_require_number(&inner, "partial_rotary_factor", 1, "absent or 1");
        stated = config_read_stated(&inner, "rope_theta", theta) || stated;
        in->failed = inner.failed;
        if (beside != *theta && config_get(in, "rope_theta") != NULL)
            config_fail(in, "rope_theta", "equal to the one inside \"rope_parameters\"");
    }
    if (!stated) config_note(in, "rope_theta %g", *theta);
}

// Qwen2 has its biases without a key.
static void read_biases(config_reader *in) {
    sinkproof_unbiased *without = &in->config->unbiased;
    bool attention = false, perceptron = false;
    if (has_model_type(in->object, "qwen2")) {
        without->qkv = false;
        return;
    }
    config_read_bool(in, "attention_bias", &attention);
    config_read_bool(in, "mlp_bias", &perceptron);
    without->qkv = without->output = !attention;
    without->perceptron = !perceptron;
}

static void require_full_attention(config_reader *in) {
    const json_t *types = config_get(in, "layer_types");
    if (has_model_type(in->object, "qwen2")) config_require_bool(in, "use_sliding_window", false);
    for (size_t l = 0; types != NULL && l < json_array_size(types); l++) {
        const char *type = json_string_value(json_array_get(types, l));
        if (type == NULL || strcmp(type, "full_attention") != 0)
            config_fail(in, "layer_types", "full_attention in every layer");
    }
}

static void read_config(config_reader *in) {
    sinkproof_config *c = in->config;
    config_require_unquantized(in);
    c->rms_eps = 1e-6;
    c->rotation.theta = 10000;
    config_require_string(in, "hidden_act", "silu");
    config_require_number(in, "pretraining_tp", 1, "absent or 1");
    config_require_number(in, "partial_rotary_factor", 1, "absent or 1");
    config_read_keys(in, keys);
    if (in->failed) return;
    c->n_kv_heads = c->n_heads;
    c->head_dim = c->hidden / c->n_heads;
    if (config_get(in, "num_key_value_heads") != NULL)
        config_read_size(in, "num_key_value_heads", &c->n_kv_heads);
    if (config_get(in, "head_dim") != NULL) config_read_size(in, "head_dim", &c->head_dim);
    config_make_llama(c);
    read_biases(in);
    read_rotation(in);
    require_full_attention(in);
    config_read_bool(in, "tie_word_embeddings", &c->tied);
}

// Biases on queries, keys and values alone are Qwen2's.
static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    static const config_key more[] = {{"num_key_value_heads", CONFIG_KEY(n_kv_heads)},
                                      {"head_dim", CONFIG_KEY(head_dim)},
                                      {"rope_theta", CONFIG_KEY(rotation.theta)},
                                      {NULL, 0}};
    bool qwen2 = !c->unbiased.qkv && c->unbiased.output;
    (void)mxfp4; // no weight is
    if (c->unbiased.qkv && !c->unbiased.output) {
        sinkproof_fail(error,
                       "%s: expected the output projection to have no bias where queries "
                       "have none",
                       path);
        return NULL;
    }
    json_t *out =
        json_pack("{s:[s], s:s, s:s, s:s, s:b, s:f, s:b}", "architectures",
                  qwen2 ? "Qwen2ForCausalLM" : "LlamaForCausalLM", "model_type",
                  qwen2 ? "qwen2" : "llama", "dtype", "bfloat16", "hidden_act", "silu",
                  "tie_word_embeddings", c->tied, "attention_dropout", 0.0, "use_cache", 1);
    config_make_keys(c, keys, out);
    config_make_keys(c, more, out);
    if (qwen2) {
        json_object_set_new(out, "use_sliding_window", json_false());
        return out;
    }
    json_object_set_new(out, "attention_bias", json_boolean(!c->unbiased.qkv));
    json_object_set_new(out, "mlp_bias", json_boolean(!c->unbiased.perceptron));
    return out;
}

// transformers takes the unembedding that is stored, whatever the key says of a tied one: both must
// hold the same numbers.
static bool check_tied(const sinkproof_model *model, sinkproof_error *error) {
    checkpoint_entry *head = checkpoint_find(&model->checkpoint, "lm_head.weight");
    const sinkproof_matrix *embedding =
        &model->outside[SINKPROOF_EMBEDDING - SINKPROOF_LAYER_SLOTS];
    if (!model->config.tied || head == NULL) return true;
    const sinkproof_tensor *tensor = head->tensor;
    size_t bytes = dtype_bytes_for(embedding->dtype, embedding->rows * embedding->cols);
    head->used = true;
    bool same = tensor->dtype == embedding->dtype && tensor->rank == 2 &&
                tensor->shape[0] == embedding->rows && tensor->shape[1] == embedding->cols &&
                memcmp(tensor->data, embedding->data, bytes) == 0;
    return same || sinkproof_fail(error,
                                  "%s: tensor %s: expected the numbers of %s, to which "
                                  "\"tie_word_embeddings\" ties it, found others",
                                  head->path, tensor->name, embedding->name);
}

static bool complete_llama(sinkproof_model *model, sinkproof_error *error) {
    return check_tied(model, error) && checkpoint_check_all_used(model, error);
}

const sinkproof_container container_llama = {
    .title = "the Hugging Face layout of Llama",
    .holds = "Hugging Face's tensors of Llama",
    .dequantizes = true, // nothing in it is MXFP4
    .recognises = recognises_llama,
    .open = checkpoint_open,
    .find = checkpoint_view,
    .complete = complete_llama,
    .knows_config = knows_config,
    .read_config = read_config,
    .make_config = make_config,
    .layout = &layout,
};
