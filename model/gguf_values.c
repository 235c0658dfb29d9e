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
} types[SINKPROOF_GGUF_TYPES] = {
    [SINKPROOF_GGUF_U8] = {"uint8", 1, SINKPROOF_DTYPE_U8},
    [SINKPROOF_GGUF_I8] = {"int8", 1, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_U16] = {"uint16", 2, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_I16] = {"int16", 2, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_U32] = {"uint32", 4, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_I32] = {"int32", 4, SINKPROOF_DTYPE_I32},
    [SINKPROOF_GGUF_F32] = {"float32", 4, SINKPROOF_DTYPE_F32},
    [SINKPROOF_GGUF_BOOL] = {"bool", 1, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_STRING] = {"string", 0, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_ARRAY] = {"array", 0, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_U64] = {"uint64", 8, SINKPROOF_DTYPES},
    [SINKPROOF_GGUF_I64] = {"int64", 8, SINKPROOF_DTYPE_I64},
    [SINKPROOF_GGUF_F64] = {"float64", 8, SINKPROOF_DTYPE_F64},
};

const char *sinkproof_gguf_type_name(sinkproof_gguf_type type) {
    return (unsigned)type < SINKPROOF_GGUF_TYPES ? types[type].name : "unknown";
}

static bool take_type(sinkproof_cursor *in, const char *key, sinkproof_gguf_type *type) {
    uint64_t found = sinkproof_cursor_number(in, 4, "the type of a value");
    *type = (sinkproof_gguf_type)found;
    return found < SINKPROOF_GGUF_TYPES
               ? !in->failed
               : sinkproof_cursor_fail(in, "key %s: expected a type below %d, found %llu", key,
                                       SINKPROOF_GGUF_TYPES, (unsigned long long)found);
}

// Skips `count` elements. Strings and arrays are skipped one by one; each takes at least eight
// bytes, so that a false count ends at the end of the file.
static bool skip_elements(sinkproof_cursor *in, const char *key, sinkproof_gguf_type type,
                          uint64_t count, int depth) {
    size_t size = types[type].size, bytes;
    if (size > 0) {
        bool fits = !__builtin_mul_overflow(count, size, &bytes);
        return sinkproof_cursor_take(in, fits ? bytes : UINT64_MAX, "a value") != NULL;
    }
    if (depth > SINKPROOF_GGUF_NESTED)
        return sinkproof_cursor_fail(in, "key %s: expected at most %d arrays in one another", key,
                                     SINKPROOF_GGUF_NESTED);
    for (uint64_t i = 0; !in->failed && i < count; i++) {
        sinkproof_gguf_type inner = SINKPROOF_GGUF_U8;
        if (type == SINKPROOF_GGUF_ARRAY && !take_type(in, key, &inner)) return false;
        uint64_t length = sinkproof_cursor_number(in, 8, "a length");
        if (type == SINKPROOF_GGUF_STRING)
            sinkproof_cursor_take(in, length, "a string");
        else if (!in->failed)
            skip_elements(in, key, inner, length, depth + 1);
    }
    return !in->failed;
}

bool sinkproof_gguf_take_pair(sinkproof_cursor *in, sinkproof_gguf_pair *pair) {
    *pair = (sinkproof_gguf_pair){.key = sinkproof_cursor_name(in, "a key"), .count = 1};
    if (pair->key == NULL || !take_type(in, pair->key, &pair->type)) return false;
    bool array = pair->type == SINKPROOF_GGUF_ARRAY, text = pair->type == SINKPROOF_GGUF_STRING;
    if (array && !take_type(in, pair->key, &pair->element)) return false;
    if (array || text) pair->count = sinkproof_cursor_number(in, 8, "a length");
    pair->at = in->at;
    if (text) return sinkproof_cursor_take(in, pair->count, "a string") != NULL;
    return skip_elements(in, pair->key, array ? pair->element : pair->type, pair->count, 1);
}

bool sinkproof_gguf_number(const sinkproof_gguf_pair *pair, double *value) {
    uint64_t bits =
        types[pair->type].size > 0 ? sinkproof_little_endian(pair->at, types[pair->type].size) : 0;
    switch (pair->type) {
    case SINKPROOF_GGUF_F32:
    case SINKPROOF_GGUF_F64:
        *value = sinkproof_decode(types[pair->type].dtype, pair->at);
        return true;
    case SINKPROOF_GGUF_I8:
        *value = (int8_t)bits;
        return true;
    case SINKPROOF_GGUF_I16:
        *value = (int16_t)bits;
        return true;
    case SINKPROOF_GGUF_I32:
        *value = (int32_t)bits;
        return true;
    case SINKPROOF_GGUF_I64:
        *value = (double)(int64_t)bits;
        return true;
    case SINKPROOF_GGUF_U8:
    case SINKPROOF_GGUF_U16:
    case SINKPROOF_GGUF_U32:
    case SINKPROOF_GGUF_U64:
        *value = (double)bits;
        return true;
    default:
        return false;
    }
}

bool sinkproof_gguf_is_text(const sinkproof_gguf_pair *pair, const char *text) {
    return pair->type == SINKPROOF_GGUF_STRING && pair->count == strlen(text) &&
           memcmp(pair->at, text, pair->count) == 0;
}

const char *sinkproof_gguf_shown(const sinkproof_gguf_pair *pair, char *text, size_t size) {
    double value;
    size_t used = 0;
    if (sinkproof_gguf_number(pair, &value)) {
        snprintf(text, size, "%.9g", value);
    } else if (pair->type == SINKPROOF_GGUF_BOOL) {
        snprintf(text, size, "%s", pair->at[0] != 0 ? "true" : "false");
    } else if (pair->type == SINKPROOF_GGUF_ARRAY) {
        snprintf(text, size, "array of %zu %s", pair->count, types[pair->element].name);
    } else {
        text[used++] = '"';
        for (size_t i = 0; i < pair->count && used + 2 < size; i++)
            text[used++] = (char)(pair->at[i] >= 32 && pair->at[i] < 127 ? pair->at[i] : '?');
        snprintf(text + used, size - used, "\"");
    }
    return text;
}
