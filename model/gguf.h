// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GGUF, the file format of ggml and llama.cpp: metadata of typed values, descriptions of tensors,
// and their bytes. The reader maps the file and trusts nothing in it: it checks counts, lengths,
// nested arrays, alignment, overlaps, gaps, duplicate names, and shapes that contradict the bytes.
// Source: doc/99-bibliography.md#llama-cpp.
#ifndef SINKPROOF_GGUF_H
#define SINKPROOF_GGUF_H

#include "base/error.h"
#include "model/safetensors.h"

enum {
    SINKPROOF_GGUF_ALIGNMENT = 32, // default alignment of tensors
    SINKPROOF_GGUF_NESTED = 8,     // most levels of nested arrays
};

typedef enum sinkproof_gguf_type {
    SINKPROOF_GGUF_U8,
    SINKPROOF_GGUF_I8,
    SINKPROOF_GGUF_U16,
    SINKPROOF_GGUF_I16,
    SINKPROOF_GGUF_U32,
    SINKPROOF_GGUF_I32,
    SINKPROOF_GGUF_F32,
    SINKPROOF_GGUF_BOOL,
    SINKPROOF_GGUF_STRING,
    SINKPROOF_GGUF_ARRAY,
    SINKPROOF_GGUF_U64,
    SINKPROOF_GGUF_I64,
    SINKPROOF_GGUF_F64,
    SINKPROOF_GGUF_TYPES
} sinkproof_gguf_type;

const char *sinkproof_gguf_type_name(sinkproof_gguf_type type); // "uint32", "array"

// One value of the metadata.
typedef struct sinkproof_gguf_pair {
    const char *key;
    sinkproof_gguf_type type;
    const uint8_t *at;           // its bytes; for a string or an array those after the count
    size_t count;                // bytes of a string, elements of an array, else 1
    sinkproof_gguf_type element; // of an array
} sinkproof_gguf_pair;

typedef struct sinkproof_gguf sinkproof_gguf;

// The next key and its value (private to model/, like its cursor).
struct sinkproof_cursor;
bool sinkproof_gguf_take_pair(struct sinkproof_cursor *in, sinkproof_gguf_pair *pair);

bool sinkproof_gguf_open(const char *path, sinkproof_gguf **file, sinkproof_error *error);
// The same from memory, which must outlive the result (for tests and fuzzing); `name` is used in
// errors.
bool sinkproof_gguf_parse(const uint8_t *bytes, size_t length, const char *name,
                          sinkproof_gguf **file, sinkproof_error *error);
void sinkproof_gguf_close(sinkproof_gguf *file);

size_t sinkproof_gguf_pairs(const sinkproof_gguf *file);
const sinkproof_gguf_pair *sinkproof_gguf_pair_at(const sinkproof_gguf *file, size_t i);
const sinkproof_gguf_pair *sinkproof_gguf_find(const sinkproof_gguf *file,
                                               const char *key); // NULL if absent
// A number of any type, as binary64, exact except for integers beyond 2^53; false for other types.
bool sinkproof_gguf_number(const sinkproof_gguf_pair *pair, double *number);
bool sinkproof_gguf_is_text(const sinkproof_gguf_pair *pair, const char *text);
// A value for an error: "4096", "\"yarn\"", "array of 211 string".
const char *sinkproof_gguf_shown(const sinkproof_gguf_pair *pair, char *text, size_t size);

// In the order of the file; shapes have the slowest dimension first, as everywhere in this project.
size_t sinkproof_gguf_count(const sinkproof_gguf *file);
const sinkproof_tensor *sinkproof_gguf_at(const sinkproof_gguf *file, size_t i);

// ggml's number for a dtype, and the reverse; false: there is none.
bool sinkproof_gguf_code(sinkproof_dtype dtype, uint32_t *code);
bool sinkproof_gguf_dtype(uint32_t code, sinkproof_dtype *dtype);

#endif
