// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads adapter_config.json of PEFT. Some of its keys change what is computed; one that is unknown,
// or has another value than those that are read here, is refused.
#include "model/adapter_config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Keys that do not change what a loaded adapter computes: names of what it belongs to, how it began
// and how it was trained, and the modules and ranks that its tensors show.
static const char *const idle[] = {"auto_mapping",
                                   "base_model_name_or_path",
                                   "eva_config",
                                   "exclude_modules",
                                   "inference_mode",
                                   "layers_pattern",
                                   "layers_to_transform",
                                   "lora_dropout",
                                   "megatron_config",
                                   "megatron_core",
                                   "peft_version",
                                   "qalora_group_size",
                                   "revision",
                                   "runtime_config",
                                   "target_modules",
                                   "task_type",
                                   "fan_in_fan_out",
                                   "ensure_weight_tying",
                                   "loftq_config",
                                   "corda_config",
                                   "peft_type",
                                   "r",
                                   "lora_alpha",
                                   "use_rslora",
                                   "rank_pattern",
                                   "init_lora_weights",
                                   NULL};

static bool is_one_of(const char *word, const char *const *words) {
    while (*words != NULL && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

static bool is_empty(const json_t *value) {
    bool none = json_is_string(value) && strcmp(json_string_value(value), "none") == 0;
    return none || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

// The initialisations after which the base model keeps its weights.
static bool keeps_base(const json_t *value) {
    static const char *const kept[] = {"gaussian", "eva", "orthogonal", NULL};
    return value == NULL || json_is_null(value) || json_is_boolean(value) ||
           (json_is_string(value) && is_one_of(json_string_value(value), kept));
}

static bool refuse_key(const char *path, const char *key, const char *expected, const json_t *value,
                       sinkproof_error *error) {
    char *found = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    sinkproof_fail(error, "%.300s: expected \"%.60s\" to be %s, found %.100s", path, key, expected,
                   found != NULL ? found : "nothing");
    free(found);
    return false;
}

static bool read_config(adapter_config *a, const char *path, const json_t *object,
                        sinkproof_error *error) {
    const json_t *type = json_object_get(object, "peft_type"), *r = json_object_get(object, "r"),
                 *alpha = json_object_get(object, "lora_alpha"),
                 *root = json_object_get(object, "use_rslora"),
                 *begin = json_object_get(object, "init_lora_weights");
    if (!json_is_string(type) || strcmp(json_string_value(type), "LORA") != 0)
        return refuse_key(path, "peft_type", "\"LORA\"", type, error);
    if (!json_is_integer(r) || json_integer_value(r) < 1 || json_integer_value(r) > 1 << 20)
        return refuse_key(path, "r", "a whole number from 1 to 2^20", r, error);
    a->alpha = json_number_value(alpha);
    if (!json_is_number(alpha) || !(fabs(a->alpha) < 1e30))
        return refuse_key(path, "lora_alpha", "a number", alpha, error);
    if (root != NULL && !json_is_boolean(root) && !json_is_null(root))
        return refuse_key(path, "use_rslora", "true or false", root, error);
    if (!keeps_base(begin))
        return refuse_key(path, "init_lora_weights", "one that keeps the weights of the base model",
                          begin, error);
    a->rank = (double)json_integer_value(r), a->by_root = json_is_true(root);
    a->ranks_differ = !is_empty(json_object_get(object, "rank_pattern")) &&
                      json_object_get(object, "rank_pattern") != NULL;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        if (!is_one_of(key, idle) && !is_empty(value))
            return refuse_key(path, key, "absent, null, false or empty: no set is derived for it",
                              value, error);
    }
    return true;
}

bool adapter_config_read(const char *directory, adapter_config *a, sinkproof_error *error) {
    char path[4096];
    json_error_t wrong;
    int used = snprintf(path, sizeof path, "%s/adapter_config.json", directory);
    if (used < 0 || (size_t)used >= sizeof path)
        return sinkproof_fail(error, "%.300s: the path is too long", directory);
    json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, &wrong);
    bool good = json_is_object(object) ||
                sinkproof_fail(error, "%.300s: %s", path,
                               object == NULL ? wrong.text : "expected an object of JSON");
    good = good && read_config(a, path, object, error);
    json_decref(object);
    return good;
}
