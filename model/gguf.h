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
    GGUF_ALIGNMENT = 32, // default alignment of tensors
    GGUF_NESTED = 8,     // most levels of nested arrays
};

typedef enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
} gguf_type;

// One value of the metadata.
typedef struct gguf_pair {
    const char *key;
    gguf_type type;
    const uint8_t *at; // its bytes; for a string or an array those after the count
    size_t count;      // bytes of a string, elements of an array, else 1
    gguf_type element; // of an array
} gguf_pair;

typedef struct gguf_file gguf_file;

// The next key and its value (private to model/, like its cursor).
struct file_cursor;
bool gguf_read_pair(struct file_cursor *in, gguf_pair *pair);

bool sinkproof_gguf_open(const char *path, gguf_file **file, sinkproof_error *error);
// The same from memory, which must outlive the result (for tests and fuzzing); `name` is used in
// errors.
bool gguf_parse(const uint8_t *bytes, size_t length, const char *name, gguf_file **file,
                sinkproof_error *error);
void sinkproof_gguf_close(gguf_file *file);

size_t gguf_pairs(const gguf_file *file);
const gguf_pair *gguf_pair_at(const gguf_file *file, size_t i);
const gguf_pair *sinkproof_gguf_find(const gguf_file *file,
                                     const char *key); // NULL if absent
// A number of any type, as binary64, exact except for integers beyond 2^53; false for other types.
bool gguf_number(const gguf_pair *pair, double *number);
bool sinkproof_gguf_is_text(const gguf_pair *pair, const char *text);
// The next string of an array of strings; *at begins as pair->at, and there are pair->count.
void sinkproof_gguf_next_string(const uint8_t **at, const char **text, size_t *length);
// A value for an error: "4096", "\"yarn\"", "array of 211 string".
const char *sinkproof_gguf_value_text(const gguf_pair *pair, char *text, size_t size);

// In the order of the file; shapes have the slowest dimension first, as everywhere in this project.
size_t gguf_tensor_count(const gguf_file *file);
const sinkproof_tensor *gguf_tensor_at(const gguf_file *file, size_t i);

// ggml's number for a dtype, and the reverse; false: there is none.
bool gguf_type_code(sinkproof_dtype dtype, uint32_t *code);
bool gguf_dtype(uint32_t code, sinkproof_dtype *dtype);

#endif
