// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads one JSON object of config.json, key by key; the layouts share it. Private to model/: the
// keys of each layout are in its container.
#ifndef SINKPROOF_CONFIG_READER_H
#define SINKPROOF_CONFIG_READER_H

#include "model/config.h"

#include <jansson.h>

// The first failure stops all further reading.
typedef struct config_reader {
    const json_t *object;
    const char *name;         // of the file
    sinkproof_config *config; // its `unstated` lists the keys that have the default
    bool failed;
    sinkproof_error *error;
} config_reader;

// NULL if absent; null means absent in transformers.
const json_t *config_get(const config_reader *in, const char *key);

// Sets the error "config.json: expected KEY to be ..., found ...".
void config_fail(config_reader *in, const char *key, const char *expected);

// Notes that a key is absent and its published default is used.
void config_note(config_reader *in, const char *format, ...) SINKPROOF_PRINTF(2, 3);

void config_read_size(config_reader *in, const char *key, size_t *value);
// The next two keep *value when the key is absent; `read_positive` also notes it.
bool config_read_stated(config_reader *in, const char *key, double *value);
void config_read_positive(config_reader *in, const char *key, double *value);
void config_read_bool(config_reader *in, const char *key, bool *value);

// A key that, if present, must have one value.
void config_require_string(config_reader *in, const char *key, const char *only);
void config_require_number(config_reader *in, const char *key, double only, const char *expected);
void config_require_bool(config_reader *in, const char *key, bool only);

// Refuses "quantization_config": what it says of weights and operands is read for GPT-OSS alone.
void config_require_unquantized(config_reader *in);

// A key of an object and the number that it holds. A list ends with NULL.
typedef struct config_key {
    const char *key;
    size_t offset; // CONFIG_KEY(member)
} config_key;
#define CONFIG_KEY(member) offsetof(sinkproof_config, member)

// The keys that have the same name in every layout.
extern const config_key config_common_keys[];
// Reads each: sizes are required, real numbers and booleans keep the value in *config as a default.
void config_read_keys(config_reader *in, const config_key *keys);
// The JSON value of a field.
struct sinkproof_field; // model/fields.h
json_t *sinkproof_config_make_value(const struct sinkproof_field *field,
                                    const sinkproof_config *config);
// Sets each in `object`, and returns it.
json_t *config_make_keys(const sinkproof_config *config, const config_key *keys, json_t *object);

// factor * original context, the context for which YaRN was made.
size_t config_extended_context(const sinkproof_config *config);

// Whether a directory has a config.json with an object for which `knows` is true.
bool config_file_matches(const char *directory, bool (*knows)(const json_t *object));

// A reader for an inner object of the same file, with a configuration of its own; it has failed
// where the key's value is no object.
config_reader config_inner_reader(const config_reader *in, const char *key,
                                  sinkproof_config *config);

#endif
