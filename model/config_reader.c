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

const json_t *sinkproof_config_get(const sinkproof_config_reader *in, const char *key) {
    const json_t *value = json_object_get(in->object, key);
    return json_is_null(value) ? NULL : value;
}

void sinkproof_config_fail(sinkproof_config_reader *in, const char *key, const char *expected) {
    if (in->failed) return; // only the first failure is reported
    in->failed = true;
    const json_t *value = json_object_get(in->object, key);
    char *found = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    sinkproof_fail(in->error, "%s: expected \"%s\" to be %s, found %.200s", in->name, key, expected,
                   found == NULL ? "nothing" : found);
    free(found);
}

void sinkproof_config_note(sinkproof_config_reader *in, const char *format, ...) {
    char *text = in->config->unstated;
    size_t used = strlen(text), size = sizeof in->config->unstated;
    if (used > 0) used += (size_t)snprintf(text + used, size - used, ", ");
    va_list arguments;
    va_start(arguments, format);
    if (used < size) vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void sinkproof_config_read_size(sinkproof_config_reader *in, const char *key, size_t *value) {
    const json_t *found = sinkproof_config_get(in, key);
    json_int_t n = json_integer_value(found);
    if (!json_is_integer(found) || n < 1 || n > MAX_DIMENSION)
        sinkproof_config_fail(in, key, "a whole number from 1 to 2^30");
    else
        *value = (size_t)n;
}

// A rope_theta may be written 150000 or 150000.0.
bool sinkproof_config_read_stated(sinkproof_config_reader *in, const char *key, double *value) {
    const json_t *found = sinkproof_config_get(in, key);
    if (found == NULL) return false;
    double x = json_number_value(found);
    if (!json_is_number(found) || !(x > 0 && x < INFINITY))
        sinkproof_config_fail(in, key, "a positive number");
    else
        *value = x;
    return true;
}

void sinkproof_config_read_positive(sinkproof_config_reader *in, const char *key, double *value) {
    if (!sinkproof_config_read_stated(in, key, value))
        sinkproof_config_note(in, "%s %g", key, *value);
}

void sinkproof_config_read_bool(sinkproof_config_reader *in, const char *key, bool *value) {
    const json_t *found = sinkproof_config_get(in, key);
    if (found == NULL)
        sinkproof_config_note(in, "%s %s", key, *value ? "true" : "false");
    else if (!json_is_boolean(found))
        sinkproof_config_fail(in, key, "true or false");
    else
        *value = json_is_true(found);
}

void sinkproof_config_read_keys(sinkproof_config_reader *in, const sinkproof_config_key *keys) {
    for (; keys->key != NULL; keys++) {
        void *at = (char *)in->config + keys->offset;
        switch (sinkproof_field_of(keys->offset)->type) {
        case SINKPROOF_FIELD_SIZE:
            sinkproof_config_read_size(in, keys->key, at);
            break;
        case SINKPROOF_FIELD_REAL:
            sinkproof_config_read_positive(in, keys->key, at);
            break;
        case SINKPROOF_FIELD_BOOL:
            sinkproof_config_read_bool(in, keys->key, at);
            break;
        }
    }
}

void sinkproof_config_require_string(sinkproof_config_reader *in, const char *key,
                                     const char *only) {
    const json_t *found = sinkproof_config_get(in, key);
    char expected[32];
    snprintf(expected, sizeof expected, "\"%s\"", only);
    if (found == NULL)
        sinkproof_config_note(in, "%s %s", key, only);
    else if (!json_is_string(found) || strcmp(json_string_value(found), only) != 0)
        sinkproof_config_fail(in, key, expected);
}

void sinkproof_config_require_number(sinkproof_config_reader *in, const char *key, double only,
                                     const char *expected) {
    const json_t *found = sinkproof_config_get(in, key);
    if (found != NULL && !(json_is_number(found) && json_number_value(found) == only))
        sinkproof_config_fail(in, key, expected);
}

void sinkproof_config_require_bool(sinkproof_config_reader *in, const char *key, bool only) {
    bool found = only;
    sinkproof_config_read_bool(in, key, &found);
    if (found != only) sinkproof_config_fail(in, key, only ? "true" : "false");
}
