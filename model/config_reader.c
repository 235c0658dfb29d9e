// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads one key at a time. An absent key with a published default is noted, so that `info` can
// report it; the first wrong value is the error.
#include "model/config_reader.h"

#include "model/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMENSION = 1 << 30 };

const json_t *config_get(const config_reader *in, const char *key) {
    const json_t *value = json_object_get(in->object, key);
    return json_is_null(value) ? NULL : value;
}

void config_fail(config_reader *in, const char *key, const char *expected) {
    if (in->failed) return; // only the first failure is reported
    in->failed = true;
    const json_t *value = json_object_get(in->object, key);
    char *found = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    sinkproof_fail(in->error, "%s: expected \"%s\" to be %s, found %.200s", in->name, key, expected,
                   found == NULL ? "nothing" : found);
    free(found);
}

void config_note(config_reader *in, const char *format, ...) {
    char *text = in->config->unstated;
    size_t used = strlen(text), size = sizeof in->config->unstated;
    if (used > 0) used += (size_t)snprintf(text + used, size - used, ", ");
    va_list arguments;
    va_start(arguments, format);
    if (used < size) vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void config_read_size(config_reader *in, const char *key, size_t *value) {
    const json_t *found = config_get(in, key);
    json_int_t n = json_integer_value(found);
    if (!json_is_integer(found) || n < 1 || n > MAX_DIMENSION)
        config_fail(in, key, "a whole number from 1 to 2^30");
    else
        *value = (size_t)n;
}

// A rope_theta may be written 150000 or 150000.0.
bool config_read_stated(config_reader *in, const char *key, double *value) {
    const json_t *found = config_get(in, key);
    if (found == NULL) return false;
    double x = json_number_value(found);
    if (!json_is_number(found) || !(x > 0 && x < INFINITY))
        config_fail(in, key, "a positive number");
    else
        *value = x;
    return true;
}

void config_read_positive(config_reader *in, const char *key, double *value) {
    if (!config_read_stated(in, key, value)) config_note(in, "%s %g", key, *value);
}

void config_read_bool(config_reader *in, const char *key, bool *value) {
    const json_t *found = config_get(in, key);
    if (found == NULL)
        config_note(in, "%s %s", key, *value ? "true" : "false");
    else if (!json_is_boolean(found))
        config_fail(in, key, "true or false");
    else
        *value = json_is_true(found);
}

void config_read_keys(config_reader *in, const config_key *keys) {
    for (; keys->key != NULL; keys++) {
        void *at = (char *)in->config + keys->offset;
        switch (sinkproof_field_find(keys->offset)->type) {
        case FIELD_SIZE:
            config_read_size(in, keys->key, at);
            break;
        case FIELD_REAL:
            config_read_positive(in, keys->key, at);
            break;
        case FIELD_BOOL:
            config_read_bool(in, keys->key, at);
            break;
        }
    }
}

void config_require_string(config_reader *in, const char *key, const char *only) {
    const json_t *found = config_get(in, key);
    char expected[32];
    snprintf(expected, sizeof expected, "\"%s\"", only);
    if (found == NULL)
        config_note(in, "%s %s", key, only);
    else if (!json_is_string(found) || strcmp(json_string_value(found), only) != 0)
        config_fail(in, key, expected);
}

void config_require_number(config_reader *in, const char *key, double only, const char *expected) {
    const json_t *found = config_get(in, key);
    if (found != NULL && !(json_is_number(found) && json_number_value(found) == only))
        config_fail(in, key, expected);
}

void config_require_bool(config_reader *in, const char *key, bool only) {
    bool found = only;
    config_read_bool(in, key, &found);
    if (found != only) config_fail(in, key, only ? "true" : "false");
}

void config_require_unquantized(config_reader *in) {
    const char key[] = "quantization_config";
    if (config_get(in, key) != NULL)
        config_fail(in, key, "absent, since it is read for GPT-OSS alone");
}

config_reader config_inner_reader(const config_reader *in, const char *key,
                                  sinkproof_config *config) {
    config_reader inner = {json_object_get(in->object, key), in->name, config, in->failed,
                           in->error};
    config_reader outer = *in;
    if (!json_is_object(inner.object)) {
        config_fail(&outer, key, "an object");
        inner.failed = true;
    }
    return inner;
}
