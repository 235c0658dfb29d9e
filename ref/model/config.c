// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading config.json (model.config). Every key that changes the mathematics is read or
// refused; nothing that would is passed over in silence. Both layouts:
// doc/99-bibliography.md#openai-source, doc/99-bibliography.md#transformers.
#include "ref/model/config.h"

#include "ref/model/bytes.h"
#include "ref/model/config_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMENSION = 1 << 30 };

void sinkproof_config_alternate(sinkproof_config *config) {
    for (size_t l = 0; l < SINKPROOF_MAX_LAYERS; l++) config->sliding[l] = l % 2 == 0;
}

// What both layouts take from the released models when they do not say.
static void set_defaults(sinkproof_config *config) {
    *config = (sinkproof_config){.swiglu_alpha = 1.702,
                                 .swiglu_limit = 7,
                                 .rms_eps = 1e-5,
                                 .rope_theta = 150000,
                                 .yarn_factor = 32,
                                 .yarn_beta_fast = 32,
                                 .yarn_beta_slow = 1,
                                 .yarn_original_context = 4096,
                                 .window = 128};
    sinkproof_config_alternate(config);
}

static void read_common(sinkproof_config_reader *in) {
    sinkproof_config *config = in->config;
    sinkproof_config_read_size(in, "num_hidden_layers", &config->n_layers);
    sinkproof_config_read_size(in, "vocab_size", &config->vocab);
    sinkproof_config_read_size(in, "hidden_size", &config->hidden);
    sinkproof_config_read_size(in, "intermediate_size", &config->inter);
    sinkproof_config_read_size(in, "head_dim", &config->head_dim);
    sinkproof_config_read_size(in, "num_attention_heads", &config->n_heads);
    sinkproof_config_read_size(in, "num_key_value_heads", &config->n_kv_heads);
    sinkproof_config_read_size(in, "sliding_window", &config->window);
    sinkproof_config_read_positive(in, "swiglu_limit", &config->swiglu_limit);
}

// factor * original context, the positions that YaRN was made for.
static size_t extended_context(const sinkproof_config *config) {
    double context = config->yarn_factor * (double)config->yarn_original_context;
    return context < (double)MAX_DIMENSION ? (size_t)context : MAX_DIMENSION;
}

static void read_openai(sinkproof_config_reader *in) {
    sinkproof_config *config = in->config;
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
    read_common(in);
    sinkproof_config_read_size(in, "num_experts", &config->n_experts);
    sinkproof_config_read_size(in, "experts_per_token", &config->n_chosen);
    sinkproof_config_read_size(in, "initial_context_length", &config->yarn_original_context);
    sinkproof_config_read_positive(in, "rope_theta", &config->rope_theta);
    sinkproof_config_read_positive(in, "rope_scaling_factor", &config->yarn_factor);
    sinkproof_config_read_positive(in, "rope_ntk_alpha", &config->yarn_beta_slow);
    sinkproof_config_read_positive(in, "rope_ntk_beta", &config->yarn_beta_fast);
    config->max_context = extended_context(config);
}

static void read_layer_types(sinkproof_config_reader *in) {
    sinkproof_config *config = in->config;
    const json_t *types = sinkproof_config_get(in, "layer_types");
    if (types == NULL) sinkproof_config_note(in, "layer_types alternating, sliding first");
    if (types == NULL || in->failed) return;
    if (!json_is_array(types) || json_array_size(types) != config->n_layers)
        sinkproof_config_fail(in, "layer_types", "a list of num_hidden_layers names");
    for (size_t l = 0; l < config->n_layers && l < SINKPROOF_MAX_LAYERS; l++) {
        const char *type = json_string_value(json_array_get(types, l));
        config->sliding[l] = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (type == NULL || (!config->sliding[l] && strcmp(type, "full_attention") != 0))
            sinkproof_config_fail(in, "layer_types",
                                  "made of sliding_attention and full_attention");
    }
}

// An inner object of the same file, its keys into a configuration of its own.
static sinkproof_config_reader inner_of(const sinkproof_config_reader *in, const char *key,
                                        sinkproof_config *config) {
    sinkproof_config_reader inner = {json_object_get(in->object, key), in->name, config, in->failed,
                                     in->error};
    sinkproof_config_reader outer = *in;
    if (!json_is_object(inner.object)) {
        sinkproof_config_fail(&outer, key, "an object");
        inner.failed = true;
    }
    return inner;
}

// Transformers: factor and original context must be stated; truncate defaults to true, the betas to
// 32 and 1; the concentration, unless stated, is 0.1 ln(factor) + 1, and a stated one must be that.
// Returns whether the object holds a rope_theta.
static bool read_rope(sinkproof_config_reader *rope) {
    sinkproof_config *config = rope->config;
    if (rope->failed) return false;
    const char *kind = sinkproof_config_get(rope, "rope_type") != NULL ? "rope_type" : "type";
    if (sinkproof_config_get(rope, kind) == NULL)
        sinkproof_config_fail(rope, "rope_type", "\"yarn\"");
    sinkproof_config_require_string(rope, kind, "yarn");
    if (!sinkproof_config_read_stated(rope, "factor", &config->yarn_factor))
        sinkproof_config_fail(rope, "factor", "a positive number");
    sinkproof_config_read_size(rope, "original_max_position_embeddings",
                               &config->yarn_original_context);
    config->yarn_truncate = true;
    sinkproof_config_read_bool(rope, "truncate", &config->yarn_truncate);
    sinkproof_config_read_positive(rope, "beta_fast", &config->yarn_beta_fast);
    sinkproof_config_read_positive(rope, "beta_slow", &config->yarn_beta_slow);
    sinkproof_config_require_number(rope, "partial_rotary_factor", 1, "absent or 1");
    sinkproof_config_require_number(rope, "attention_factor", 0.1 * log(config->yarn_factor) + 1,
                                    "absent or 0.1 ln(factor) + 1");
    if (sinkproof_config_get(rope, "mscale") != NULL)
        sinkproof_config_fail(rope, "mscale", "absent");
    if (sinkproof_config_get(rope, "mscale_all_dim") != NULL)
        sinkproof_config_fail(rope, "mscale_all_dim", "absent");
    return sinkproof_config_read_stated(rope, "rope_theta", &config->rope_theta);
}

static bool same_rope(const sinkproof_config *a, const sinkproof_config *b) {
    return a->rope_theta == b->rope_theta && a->yarn_factor == b->yarn_factor &&
           a->yarn_beta_fast == b->yarn_beta_fast && a->yarn_beta_slow == b->yarn_beta_slow &&
           a->yarn_original_context == b->yarn_original_context &&
           a->yarn_truncate == b->yarn_truncate;
}

// `rope_scaling` (transformers 4), `rope_parameters` (5), or both when they agree; rope_theta
// beside them or inside.
static void read_ropes(sinkproof_config_reader *in) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    sinkproof_config *config = in->config, found[2];
    bool present[2], stated = sinkproof_config_read_stated(in, "rope_theta", &config->rope_theta);
    double outside = config->rope_theta;
    bool beside = stated;
    // null is no scaling at all in transformers 4 and the released scaling in 5
    if (sinkproof_config_get(in, keys[1]) == NULL &&
        json_is_null(json_object_get(in->object, keys[0])))
        sinkproof_config_fail(in, keys[0], "an object or absent");
    for (int i = 0; i < 2; i++) {
        found[i] = *config;
        present[i] = sinkproof_config_get(in, keys[i]) != NULL;
        if (!present[i] || in->failed) continue;
        sinkproof_config_reader rope = inner_of(in, keys[i], &found[i]);
        stated = read_rope(&rope) || stated;
        in->failed = rope.failed;
    }
    if (in->failed) return;
    if (present[0] && present[1] && !same_rope(&found[0], &found[1]))
        sinkproof_config_fail(in, "rope_scaling", "equal to \"rope_parameters\", which differs");
    if (present[0] || present[1])
        *config = found[present[1]];
    else
        sinkproof_config_note(in, "rope_scaling yarn of factor 32 on 4096 positions");
    if (beside && config->rope_theta != outside)
        sinkproof_config_fail(in, "rope_theta", "equal to the one inside \"rope_parameters\"");
    if (!stated) sinkproof_config_note(in, "rope_theta %g", config->rope_theta);
}

// Experts as they are stored: in MXFP4, or without the key in a floating-point format.
static void read_quantization(sinkproof_config_reader *in) {
    const char key[] = "quantization_config";
    if (sinkproof_config_get(in, key) == NULL) return;
    sinkproof_config_reader inner = inner_of(in, key, in->config);
    if (!inner.failed && sinkproof_config_get(&inner, "quant_method") == NULL)
        sinkproof_config_fail(&inner, "quant_method", "\"mxfp4\"");
    if (!inner.failed) sinkproof_config_require_string(&inner, "quant_method", "mxfp4");
    in->failed = inner.failed;
}

static void read_hf(sinkproof_config_reader *in) {
    sinkproof_config *config = in->config;
    sinkproof_config_require_string(in, "model_type", "gpt_oss");
    sinkproof_config_require_string(in, "hidden_act", "silu");
    sinkproof_config_require_bool(in, "attention_bias", true);
    sinkproof_config_require_bool(in, "tie_word_embeddings", false);
    sinkproof_config_require_number(in, "partial_rotary_factor", 1, "absent or 1");
    read_common(in);
    sinkproof_config_read_size(in, "num_local_experts", &config->n_experts);
    sinkproof_config_read_size(in, "num_experts_per_tok", &config->n_chosen);
    sinkproof_config_require_number(in, "experts_per_token", (double)config->n_chosen,
                                    "equal to \"num_experts_per_tok\"");
    sinkproof_config_require_number(in, "num_experts", (double)config->n_experts,
                                    "equal to \"num_local_experts\"");
    sinkproof_config_read_positive(in, "swiglu_alpha", &config->swiglu_alpha);
    sinkproof_config_read_positive(in, "rms_norm_eps", &config->rms_eps);
    read_layer_types(in);
    read_quantization(in);
    read_ropes(in);
    sinkproof_config_require_number(in, "initial_context_length",
                                    (double)config->yarn_original_context,
                                    "absent or \"original_max_position_embeddings\"");
    config->max_context = extended_context(config);
    if (sinkproof_config_get(in, "max_position_embeddings") != NULL)
        sinkproof_config_read_size(in, "max_position_embeddings", &config->max_context);
    else
        sinkproof_config_note(in, "max_position_embeddings %zu", config->max_context);
}

bool sinkproof_config_parse_layout(const char *text, size_t length, const char *name,
                                   sinkproof_config *config, bool *hf, sinkproof_error *error) {
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return sinkproof_fail(error, "%s: expected JSON, found an error in line %d: %s", name,
                              where.line, where.text);
    sinkproof_config_reader in = {root, name, config, false, error};
    set_defaults(config);
    *hf = json_object_get(root, "model_type") != NULL ||
          json_object_get(root, "num_local_experts") != NULL;
    if (!json_is_object(root)) {
        in.failed = true;
        sinkproof_fail(error, "%s: expected a JSON object, found another value", name);
    } else if (*hf)
        read_hf(&in);
    else
        read_openai(&in);
    json_decref(root);
    return !in.failed && sinkproof_config_check(config, name, error);
}

bool sinkproof_config_parse(const char *text, size_t length, const char *name,
                            sinkproof_config *config, sinkproof_error *error) {
    bool hf;
    return sinkproof_config_parse_layout(text, length, name, config, &hf, error);
}

bool sinkproof_config_read_layout(const char *path, sinkproof_config *config, bool *hf,
                                  sinkproof_error *error) {
    uint8_t *text;
    size_t length;
    if (!sinkproof_read_file(path, &text, &length, error)) return false;
    bool good = sinkproof_config_parse_layout((char *)text, length, path, config, hf, error);
    free(text);
    return good;
}

bool sinkproof_config_read(const char *path, sinkproof_config *config, sinkproof_error *error) {
    bool hf;
    return sinkproof_config_read_layout(path, config, &hf, error);
}
