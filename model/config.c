// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads config.json (model.config). Every key that changes the mathematics is read or refused; none
// is silently ignored. The layouts share this file; the keys of each are in its container.
#include "model/bytes.h"
#include "model/container.h"
#include "model/fields.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_DIMENSION = 1 << 30 };

void config_alternate_windows(sinkproof_config *config) {
    for (size_t l = 0; l < SINKPROOF_MAX_LAYERS; l++) config->sliding[l] = l % 2 == 0;
}

const config_key config_common_keys[] = {
    {"num_hidden_layers", CONFIG_KEY(n_layers)},
    {"vocab_size", CONFIG_KEY(vocab)},
    {"hidden_size", CONFIG_KEY(hidden)},
    {"intermediate_size", CONFIG_KEY(inter)},
    {"head_dim", CONFIG_KEY(head_dim)},
    {"num_attention_heads", CONFIG_KEY(n_heads)},
    {"num_key_value_heads", CONFIG_KEY(n_kv_heads)},
    {"sliding_window", CONFIG_KEY(window)},
    {"swiglu_limit", CONFIG_KEY(swiglu.limit)},
    {NULL, 0},
};

size_t config_extended_context(const sinkproof_config *config) {
    double context = config->rotation.factor * (double)config->rotation.original_context;
    return context < (double)MAX_DIMENSION ? (size_t)context : MAX_DIMENSION;
}

// Reads the configuration with the first container that recognises the object.
static void read_object(config_reader *in) {
    const sinkproof_container *container;
    for (size_t i = 0; (container = sinkproof_container_at(i)) != NULL; i++)
        if (container->knows_config != NULL && container->knows_config(in->object)) {
            container->read_config(in);
            return;
        }
}

bool config_parse(const char *text, size_t length, const char *name, sinkproof_config *config,
                  sinkproof_error *error) {
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return sinkproof_fail(error, "%s: expected JSON, found an error in line %d: %s", name,
                              where.line, where.text);
    config_reader in = {root, name, config, false, error};
    fields_default(config);
    if (json_is_object(root))
        read_object(&in);
    else
        in.failed = !sinkproof_fail(error, "%s: expected a JSON object, found another value", name);
    json_decref(root);
    return !in.failed && sinkproof_config_check(config, name, error);
}

bool config_read(const char *path, sinkproof_config *config, sinkproof_error *error) {
    uint8_t *text;
    size_t length;
    if (!sinkproof_read_file(path, &text, &length, error)) return false;
    bool good = config_parse((char *)text, length, path, config, error);
    free(text);
    return good;
}

bool config_file_matches(const char *directory, bool (*knows)(const json_t *object)) {
    char path[4096];
    uint8_t *text;
    size_t length;
    int used = snprintf(path, sizeof path, "%s/config.json", directory);
    if (used < 0 || (size_t)used >= sizeof path || !sinkproof_read_file(path, &text, &length, NULL))
        return false;
    json_t *root = json_loadb((char *)text, length, JSON_REJECT_DUPLICATES, NULL);
    bool is = json_is_object(root) && knows(root);
    json_decref(root);
    free(text);
    return is;
}
