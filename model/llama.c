// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Llama in the layout of Hugging Face's transformers: RMSNorm, rotation, grouped heads without
// sinks, one perceptron of gate and up for all tokens. And its relatives: Qwen2 with biases on
// queries, keys and values; Qwen3 with a norm of each head's query and key; Mistral with a window
// in every layer. Whoever writes such a model in the layout "hf" writes one of these.
// Source: doc/99-bibliography.md#transformers.
#include "model/container.h"
#include "model/llama_rotation.h"

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
            [SINKPROOF_Q_NORM] = "self_attn.q_norm.weight",
            [SINKPROOF_K_NORM] = "self_attn.k_norm.weight",
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

// What tells them apart beside Llama's keys.
typedef struct llama_kind {
    const char *type, *class;
    bool head_norms, windows, biases; // a window in every layer, unless it is null; biases stated
} llama_kind;
static const llama_kind kinds[] = {{"llama", "LlamaForCausalLM", false, false, true},
                                   {"qwen2", "Qwen2ForCausalLM", false, false, false},
                                   {"qwen3", "Qwen3ForCausalLM", true, false, true},
                                   {"mistral", "MistralForCausalLM", false, true, false}};
enum { LLAMA, QWEN2, QWEN3, MISTRAL, KINDS };

// The kind of a configuration; NULL: none of these.
static const llama_kind *kind_of(const json_t *object) {
    const char *found = json_string_value(json_object_get(object, "model_type"));
    for (size_t k = 0; found != NULL && k < KINDS; k++)
        if (strcmp(found, kinds[k].type) == 0) return &kinds[k];
    return NULL;
}

static bool knows_config(const json_t *object) {
    return kind_of(object) != NULL;
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

// Qwen2 has its biases without a key, Mistral none.
static void read_biases(config_reader *in, const llama_kind *kind) {
    sinkproof_unbiased *without = &in->config->unbiased;
    bool attention = false, perceptron = false;
    without->qkv = kind != &kinds[QWEN2];
    if (!kind->biases) return;
    config_read_bool(in, "attention_bias", &attention);
    if (kind == &kinds[LLAMA]) config_read_bool(in, "mlp_bias", &perceptron);
    without->qkv = without->output = !attention;
    without->perceptron = !perceptron;
}

// The kind of a layer by its name.
static void read_layer_types(config_reader *in, bool may_slide) {
    const json_t *types = config_get(in, "layer_types");
    bool *slides = in->config->sliding;
    if (types == NULL) return;
    if (!json_is_array(types) || json_array_size(types) != in->config->n_layers) {
        config_fail(in, "layer_types", "a list of num_hidden_layers names");
        return;
    }
    for (size_t l = 0; l < in->config->n_layers && l < SINKPROOF_MAX_LAYERS; l++) {
        const char *type = json_string_value(json_array_get(types, l));
        slides[l] = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (type == NULL || (slides[l] ? !may_slide : strcmp(type, "full_attention") != 0))
            config_fail(in, "layer_types",
                        may_slide ? "made of sliding_attention and full_attention"
                                  : "full_attention in every layer");
    }
}

// Mistral's window is in every layer, and null says that there is none; Qwen's is in the layers
// from max_window_layers on, unless each is named, where use_sliding_window says so.
static void read_windows(config_reader *in, const llama_kind *kind) {
    sinkproof_config *c = in->config;
    bool qwen = kind == &kinds[QWEN2] || kind == &kinds[QWEN3], used = kind->windows;
    size_t window = 4096, first = 28;
    if (qwen) config_read_bool(in, "use_sliding_window", &used);
    if (json_is_null(json_object_get(in->object, "sliding_window"))) used = false;
    if (used && config_get(in, "sliding_window") != NULL)
        config_read_size(in, "sliding_window", &window);
    else if (used)
        config_note(in, "sliding_window %zu", window);
    if (used && qwen && config_get(in, "layer_types") == NULL) {
        if (config_get(in, "max_window_layers") == NULL)
            config_note(in, "max_window_layers %zu", first);
        else if (json_is_integer(config_get(in, "max_window_layers")) &&
                 json_integer_value(config_get(in, "max_window_layers")) == 0)
            first = 0;
        else
            config_read_size(in, "max_window_layers", &first);
    }
    for (size_t l = 0; used && l < SINKPROOF_MAX_LAYERS; l++)
        c->sliding[l] = kind->windows || l >= first;
    if (used) c->window = window;
    if (!kind->windows) read_layer_types(in, used);
}

static void read_config(config_reader *in) {
    sinkproof_config *c = in->config;
    const llama_kind *kind = kind_of(in->object);
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
    if (kind == &kinds[QWEN3]) c->head_dim = 128;
    if (config_get(in, "head_dim") != NULL) config_read_size(in, "head_dim", &c->head_dim);
    config_make_llama(c);
    c->head_norms = kind->head_norms;
    read_biases(in, kind);
    llama_read_rotation(in);
    read_windows(in, kind);
    config_read_bool(in, "tie_word_embeddings", &c->tied);
}

// The kind that can state a configuration, or NULL with an error.
static const llama_kind *kind_for(const sinkproof_config *c, const char *path,
                                  sinkproof_error *error) {
    const sinkproof_unbiased *without = &c->unbiased;
    size_t sliding = 0;
    const char *expected = NULL;
    for (size_t l = 0; l < c->n_layers; l++) sliding += c->sliding[l];
    const llama_kind *kind = &kinds[c->head_norms                           ? QWEN3
                                    : !without->qkv && without->output      ? QWEN2
                                    : sliding > 0 && sliding == c->n_layers ? MISTRAL
                                                                            : LLAMA];
    if (kind != &kinds[QWEN2] && without->qkv != without->output)
        expected = "the output projection to have a bias where queries have one, and else none";
    else if (kind != &kinds[LLAMA] && !without->perceptron)
        expected = "the perceptron to have no bias, as in Qwen and Mistral";
    else if (kind == &kinds[MISTRAL] && !without->qkv)
        expected = "no biases beside a window in every layer, as in Mistral";
    else if (kind == &kinds[LLAMA] && sliding > 0)
        expected = "a window in every layer or in none, as in Mistral and Llama";
    if (expected == NULL) return kind;
    sinkproof_fail(error, "%s: expected %s", path, expected);
    return NULL;
}

static void make_windows(const sinkproof_config *c, const llama_kind *kind, json_t *out) {
    json_t *types = json_array();
    bool any = false;
    for (size_t l = 0; l < c->n_layers; l++) {
        any = any || c->sliding[l];
        json_array_append_new(types,
                              json_string(c->sliding[l] ? "sliding_attention" : "full_attention"));
    }
    bool qwen = kind == &kinds[QWEN2] || kind == &kinds[QWEN3];
    if (qwen) json_object_set_new(out, "use_sliding_window", json_boolean(any));
    if (qwen && any) json_object_set(out, "layer_types", types);
    if (any) json_object_set_new(out, "sliding_window", json_integer((json_int_t)c->window));
    json_decref(types);
}

static json_t *make_config(const sinkproof_config *c, bool mxfp4, const char *path,
                           sinkproof_error *error) {
    static const config_key more[] = {{"num_key_value_heads", CONFIG_KEY(n_kv_heads)},
                                      {"head_dim", CONFIG_KEY(head_dim)},
                                      {"rope_theta", CONFIG_KEY(rotation.theta)},
                                      {NULL, 0}};
    const llama_kind *kind = kind_for(c, path, error);
    (void)mxfp4; // no weight is
    if (kind == NULL) return NULL;
    json_t *out =
        json_pack("{s:[s], s:s, s:s, s:s, s:b, s:f, s:b}", "architectures", kind->class,
                  "model_type", kind->type, "dtype", "bfloat16", "hidden_act", "silu",
                  "tie_word_embeddings", c->tied, "attention_dropout", 0.0, "use_cache", 1);
    config_make_keys(c, keys, out);
    config_make_keys(c, more, out);
    make_windows(c, kind, out);
    llama_make_rotation(c, out);
    if (kind->biases) json_object_set_new(out, "attention_bias", json_boolean(!c->unbiased.qkv));
    if (kind == &kinds[LLAMA])
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
    size_t bytes = sinkproof_dtype_bytes_for(embedding->dtype, embedding->rows * embedding->cols);
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
