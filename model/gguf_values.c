// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metadata of GGUF: typed values after their keys.
#include "model/gguf.h"

#include "model/bf16.h"
#include "model/cursor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size; // 0: variable
    sinkproof_dtype dtype;
} types[GGUF_TYPES] = {
    [GGUF_U8] = {"uint8", 1, SINKPROOF_DTYPE_U8},
    [GGUF_I8] = {"int8", 1, SINKPROOF_DTYPES},
    [GGUF_U16] = {"uint16", 2, SINKPROOF_DTYPES},
    [GGUF_I16] = {"int16", 2, SINKPROOF_DTYPES},
    [GGUF_U32] = {"uint32", 4, SINKPROOF_DTYPES},
    [GGUF_I32] = {"int32", 4, SINKPROOF_DTYPE_I32},
    [GGUF_F32] = {"float32", 4, SINKPROOF_DTYPE_F32},
    [GGUF_BOOL] = {"bool", 1, SINKPROOF_DTYPES},
    [GGUF_STRING] = {"string", 0, SINKPROOF_DTYPES},
    [GGUF_ARRAY] = {"array", 0, SINKPROOF_DTYPES},
    [GGUF_U64] = {"uint64", 8, SINKPROOF_DTYPES},
    [GGUF_I64] = {"int64", 8, SINKPROOF_DTYPE_I64},
    [GGUF_F64] = {"float64", 8, SINKPROOF_DTYPE_F64},
};

static bool read_type(file_cursor *in, const char *key, gguf_type *type) {
    uint64_t found = cursor_number(in, 4, "the type of a value");
    *type = (gguf_type)found;
    return found < GGUF_TYPES ? !in->failed
                              : cursor_fail(in, "key %s: expected a type below %d, found %llu", key,
                                            GGUF_TYPES, (unsigned long long)found);
}

// Skips `count` elements. Strings and arrays are skipped one by one; each takes at least eight
// bytes, so that a false count ends at the end of the file.
static bool skip_elements(file_cursor *in, const char *key, gguf_type type, uint64_t count,
                          int depth) {
    size_t size = types[type].size, bytes;
    if (size > 0) {
        bool fits = !__builtin_mul_overflow(count, size, &bytes);
        return cursor_take_bytes(in, fits ? bytes : UINT64_MAX, "a value") != NULL;
    }
    if (depth > GGUF_NESTED)
        return cursor_fail(in, "key %s: expected at most %d arrays in one another", key,
                           GGUF_NESTED);
    for (uint64_t i = 0; !in->failed && i < count; i++) {
        gguf_type inner = GGUF_U8;
        if (type == GGUF_ARRAY && !read_type(in, key, &inner)) return false;
        uint64_t length = cursor_number(in, 8, "a length");
        if (type == GGUF_STRING)
            cursor_take_bytes(in, length, "a string");
        else if (!in->failed)
            skip_elements(in, key, inner, length, depth + 1);
    }
    return !in->failed;
}

bool gguf_read_pair(file_cursor *in, gguf_pair *pair) {
    *pair = (gguf_pair){.key = cursor_name(in, "a key"), .count = 1};
    if (pair->key == NULL || !read_type(in, pair->key, &pair->type)) return false;
    bool array = pair->type == GGUF_ARRAY, text = pair->type == GGUF_STRING;
    if (array && !read_type(in, pair->key, &pair->element)) return false;
    if (array || text) pair->count = cursor_number(in, 8, "a length");
    pair->at = in->at;
    if (text) return cursor_take_bytes(in, pair->count, "a string") != NULL;
    return skip_elements(in, pair->key, array ? pair->element : pair->type, pair->count, 1);
}

bool gguf_number(const gguf_pair *pair, double *value) {
    uint64_t bits =
        types[pair->type].size > 0 ? cursor_little_endian(pair->at, types[pair->type].size) : 0;
    switch (pair->type) {
    case GGUF_F32:
    case GGUF_F64:
        *value = element_decode(types[pair->type].dtype, pair->at);
        return true;
    case GGUF_I8:
        *value = (int8_t)bits;
        return true;
    case GGUF_I16:
        *value = (int16_t)bits;
        return true;
    case GGUF_I32:
        *value = (int32_t)bits;
        return true;
    case GGUF_I64:
        *value = (double)(int64_t)bits;
        return true;
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
        *value = (double)bits;
        return true;
    default:
        return false;
    }
}

bool sinkproof_gguf_is_text(const gguf_pair *pair, const char *text) {
    return pair->type == GGUF_STRING && pair->count == strlen(text) &&
           memcmp(pair->at, text, pair->count) == 0;
}

void sinkproof_gguf_next_string(const uint8_t **at, const char **text, size_t *length) {
    *length = cursor_little_endian(*at, 8);
    *text = (const char *)*at + 8;
    *at += 8 + *length;
}

const char *sinkproof_gguf_value_text(const gguf_pair *pair, char *text, size_t size) {
    double value;
    size_t used = 0;
    if (gguf_number(pair, &value)) {
        snprintf(text, size, "%.9g", value);
    } else if (pair->type == GGUF_BOOL) {
        snprintf(text, size, "%s", pair->at[0] != 0 ? "true" : "false");
    } else if (pair->type == GGUF_ARRAY) {
        snprintf(text, size, "array of %zu %s", pair->count, types[pair->element].name);
    } else {
        text[used++] = '"';
        for (size_t i = 0; i < pair->count && used + 2 < size; i++)
            text[used++] = (char)(pair->at[i] >= 32 && pair->at[i] < 127 ? pair->at[i] : '?');
        snprintf(text + used, size - used, "\"");
    }
    return text;
}
