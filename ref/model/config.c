// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading config.json (model.config). Every key that changes the mathematics is read or
// refused; nothing that would is passed over in silence. Source: SPEC section 1.
#include "ref/model/config.h"

#include "ref/model/bytes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMENSION = 1 << 30 };

// A JSON object that is being read; the first failure stops all further reading.
typedef struct reader {
    const json_t *object;
    const char *name; // of the file
    bool failed;
    sinkproof_error *error;
} reader;

static const json_t *get(const reader *in, const char *key) {
    const json_t *value = json_object_get(in->object, key);
    return json_is_null(value) ? NULL : value; // null means absent in transformers
}

static void fail(reader *in, const char *key, const char *expected) {
    if (in->failed) return; // the first failure is the one that is told
    in->failed = true;
    const json_t *value = json_object_get(in->object, key);
    char *found = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    sinkproof_fail(in->error, "%s: expected \"%s\" to be %s, found %.200s", in->name, key, expected,
                   found == NULL ? "nothing" : found);
    free(found);
}

static void read_size(reader *in, const char *key, size_t *value) {
    const json_t *found = get(in, key);
    json_int_t n = json_integer_value(found);
    if (!json_is_integer(found) || n < 1 || n > MAX_DIMENSION)
        fail(in, key, "a whole number from 1 to 2^30");
    else
        *value = (size_t)n;
}

// Keeps *value when the key is absent. A rope_theta is written 150000 as often as 150000.0.
static void read_positive(reader *in, const char *key, double *value) {
    const json_t *found = get(in, key);
    if (found == NULL) return;
    double x = json_number_value(found);
    if (!json_is_number(found) || !(x > 0 && x < INFINITY))
        fail(in, key, "a positive number");
    else
        *value = x;
}

static void read_bool(reader *in, const char *key, bool *value) {
    const json_t *found = get(in, key);
    if (found == NULL) return;
    if (!json_is_boolean(found))
        fail(in, key, "true or false");
    else
        *value = json_is_true(found);
}

// A key that may be absent but, when present, can only have one value here.
static void require_string(reader *in, const char *key, const char *only, const char *expected) {
    const json_t *found = get(in, key);
    if (found == NULL) return;
    if (!json_is_string(found) || strcmp(json_string_value(found), only) != 0)
        fail(in, key, expected);
}

static void require_number(reader *in, const char *key, double only, const char *expected) {
    const json_t *found = get(in, key);
    if (found != NULL && !(json_is_number(found) && json_number_value(found) == only))
        fail(in, key, expected);
}

static void require_bool(reader *in, const char *key, bool only) {
    const json_t *found = get(in, key);
    if (found != NULL && !(json_is_boolean(found) && json_is_true(found) == only))
        fail(in, key, only ? "true" : "false");
}

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

static void read_common(reader *in, sinkproof_config *config) {
    read_size(in, "num_hidden_layers", &config->n_layers);
    read_size(in, "vocab_size", &config->vocab);
    read_size(in, "hidden_size", &config->hidden);
    read_size(in, "intermediate_size", &config->inter);
    read_size(in, "head_dim", &config->head_dim);
    read_size(in, "num_attention_heads", &config->n_heads);
    read_size(in, "num_key_value_heads", &config->n_kv_heads);
    read_size(in, "sliding_window", &config->window);
    read_positive(in, "swiglu_limit", &config->swiglu_limit);
}

// factor * original context, the positions that YaRN was made for.
static size_t extended_context(const sinkproof_config *config) {
    double context = config->yarn_factor * (double)config->yarn_original_context;
    return context < (double)MAX_DIMENSION ? (size_t)context : MAX_DIMENSION;
}

static void read_openai(reader *in, sinkproof_config *config) {
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
        if (i == 16) fail(in, json_object_iter_key(step), "absent from the original layout");
    }
    read_common(in, config);
    read_size(in, "num_experts", &config->n_experts);
    read_size(in, "experts_per_token", &config->n_chosen);
    read_size(in, "initial_context_length", &config->yarn_original_context);
    read_positive(in, "rope_theta", &config->rope_theta);
    read_positive(in, "rope_scaling_factor", &config->yarn_factor);
    read_positive(in, "rope_ntk_alpha", &config->yarn_beta_slow);
    read_positive(in, "rope_ntk_beta", &config->yarn_beta_fast);
    config->max_context = extended_context(config);
}

static void read_layer_types(reader *in, sinkproof_config *config) {
    const json_t *types = get(in, "layer_types");
    if (types == NULL || in->failed) return;
    if (!json_is_array(types) || json_array_size(types) != config->n_layers)
        fail(in, "layer_types", "a list of num_hidden_layers names");
    for (size_t l = 0; l < config->n_layers && l < SINKPROOF_MAX_LAYERS; l++) {
        const char *type = json_string_value(json_array_get(types, l));
        config->sliding[l] = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (type == NULL || (!config->sliding[l] && strcmp(type, "full_attention") != 0))
            fail(in, "layer_types", "made of sliding_attention and full_attention");
    }
}

// Transformers: truncate defaults to true, the betas to 32 and 1; the concentration, unless
// stated, is 0.1 ln(factor) + 1, and a stated one must be that.
static void read_rope(const reader *in, const char *key, sinkproof_config *config, reader *rope) {
    *rope = (reader){json_object_get(in->object, key), in->name, in->failed, in->error};
    if (rope->failed) return;
    if (!json_is_object(rope->object)) {
        reader outer = *in;
        fail(&outer, key, "an object");
        rope->failed = true;
        return;
    }
    const char *kind = get(rope, "rope_type") != NULL ? "rope_type" : "type";
    if (get(rope, kind) == NULL) fail(rope, "rope_type", "\"yarn\"");
    require_string(rope, kind, "yarn", "\"yarn\"");
    config->yarn_truncate = true;
    read_bool(rope, "truncate", &config->yarn_truncate);
    read_positive(rope, "factor", &config->yarn_factor);
    read_positive(rope, "beta_fast", &config->yarn_beta_fast);
    read_positive(rope, "beta_slow", &config->yarn_beta_slow);
    if (get(rope, "original_max_position_embeddings") != NULL)
        read_size(rope, "original_max_position_embeddings", &config->yarn_original_context);
    read_positive(rope, "rope_theta", &config->rope_theta);
    require_number(rope, "partial_rotary_factor", 1, "absent or 1");
    require_number(rope, "attention_factor", 0.1 * log(config->yarn_factor) + 1,
                   "absent or 0.1 ln(factor) + 1");
    if (get(rope, "mscale") != NULL) fail(rope, "mscale", "absent");
    if (get(rope, "mscale_all_dim") != NULL) fail(rope, "mscale_all_dim", "absent");
}

static bool same_rope(const sinkproof_config *a, const sinkproof_config *b) {
    return a->rope_theta == b->rope_theta && a->yarn_factor == b->yarn_factor &&
           a->yarn_beta_fast == b->yarn_beta_fast && a->yarn_beta_slow == b->yarn_beta_slow &&
           a->yarn_original_context == b->yarn_original_context &&
           a->yarn_truncate == b->yarn_truncate;
}

// `rope_scaling` (transformers 4), `rope_parameters` (5), or both when they agree.
static void read_ropes(reader *in, sinkproof_config *config) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    sinkproof_config found[2] = {*config, *config};
    bool present[2] = {get(in, keys[0]) != NULL, get(in, keys[1]) != NULL};
    // null is no scaling at all in transformers 4 and the released scaling in 5
    if (!present[1] && json_is_null(json_object_get(in->object, keys[0])))
        fail(in, keys[0], "an object or absent");
    for (int i = 0; i < 2 && !in->failed; i++) {
        if (!present[i]) continue;
        reader rope;
        read_rope(in, keys[i], &found[i], &rope);
        in->failed = rope.failed;
    }
    if (in->failed) return;
    if (present[0] && present[1] && !same_rope(&found[0], &found[1]))
        fail(in, "rope_scaling", "equal to \"rope_parameters\", which differs");
    double outside = config->rope_theta;
    bool stated = get(in, "rope_theta") != NULL;
    if (present[0] || present[1]) *config = found[present[1]];
    if (stated && config->rope_theta != outside)
        fail(in, "rope_theta", "equal to the one inside \"rope_parameters\"");
}

static void read_hf(reader *in, sinkproof_config *config) {
    require_string(in, "model_type", "gpt_oss", "\"gpt_oss\"");
    require_string(in, "hidden_act", "silu", "\"silu\"");
    require_bool(in, "attention_bias", true);
    require_bool(in, "tie_word_embeddings", false);
    read_common(in, config);
    read_size(in, "num_local_experts", &config->n_experts);
    read_size(in, "num_experts_per_tok", &config->n_chosen);
    require_number(in, "experts_per_token", (double)config->n_chosen,
                   "equal to \"num_experts_per_tok\"");
    require_number(in, "num_experts", (double)config->n_experts, "equal to \"num_local_experts\"");
    read_positive(in, "swiglu_alpha", &config->swiglu_alpha);
    read_positive(in, "rms_norm_eps", &config->rms_eps);
    read_positive(in, "rope_theta", &config->rope_theta);
    if (get(in, "initial_context_length") != NULL)
        read_size(in, "initial_context_length", &config->yarn_original_context);
    read_layer_types(in, config);
    read_ropes(in, config);
    config->max_context = extended_context(config);
    if (get(in, "max_position_embeddings") != NULL)
        read_size(in, "max_position_embeddings", &config->max_context);
}

bool sinkproof_config_parse_layout(const char *text, size_t length, const char *name,
                                   sinkproof_config *config, bool *hf, sinkproof_error *error) {
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return sinkproof_fail(error, "%s: expected JSON, found an error in line %d: %s", name,
                              where.line, where.text);
    reader in = {root, name, false, error};
    set_defaults(config);
    *hf = json_object_get(root, "model_type") != NULL ||
          json_object_get(root, "num_local_experts") != NULL;
    if (!json_is_object(root)) {
        in.failed = true;
        sinkproof_fail(error, "%s: expected a JSON object, found another value", name);
    } else if (*hf)
        read_hf(&in, config);
    else
        read_openai(&in, config);
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
