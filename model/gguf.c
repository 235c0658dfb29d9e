// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads GGUF. The file is "GGUF", a version, the numbers of tensors and of pairs; the pairs (a key,
// a type, a value); the name, dimensions, type and offset of each tensor; then, from the next
// multiple of the alignment on, the tensors one after the other, each padded to the alignment.
#include "model/gguf.h"

#include "model/gguf_names.h"

#include "base/words.h"
#include "model/bytes.h"
#include "model/cursor.h"
#include "model/sniff.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_PAIR = 13,   // smallest size of a pair: the length of its key, a type, a byte
    LEAST_TENSOR = 24, // of a tensor's entry: the length of its name, dimensions, type, offset
    MOST_RANK = 4,
};

struct gguf_file {
    gguf_pair *pairs;
    sinkproof_tensor *tensors;
    size_t n_pairs, n_tensors;
    char *names; // of keys and tensors, each with its 0
    const uint8_t *bytes;
    size_t length, alignment;
    bool mapped;
};

static const struct {
    uint32_t code; // of enum ggml_type
    sinkproof_dtype dtype;
} codes[] = {
    {0, SINKPROOF_DTYPE_F32},   {1, SINKPROOF_DTYPE_F16},   {2, SINKPROOF_DTYPE_Q4_0},
    {3, SINKPROOF_DTYPE_Q4_1},  {6, SINKPROOF_DTYPE_Q5_0},  {7, SINKPROOF_DTYPE_Q5_1},
    {8, SINKPROOF_DTYPE_Q8_0},  {12, SINKPROOF_DTYPE_Q4_K}, {13, SINKPROOF_DTYPE_Q5_K},
    {14, SINKPROOF_DTYPE_Q6_K}, {26, SINKPROOF_DTYPE_I32},  {27, SINKPROOF_DTYPE_I64},
    {28, SINKPROOF_DTYPE_F64},  {30, SINKPROOF_DTYPE_BF16}, {39, SINKPROOF_DTYPE_MXFP4},
};

bool gguf_type_code(sinkproof_dtype dtype, uint32_t *code) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        *code = codes[i].code;
        if (codes[i].dtype == dtype) return true;
    }
    return false;
}

bool gguf_dtype(uint32_t code, sinkproof_dtype *dtype) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        *dtype = codes[i].dtype;
        if (codes[i].code == code) return true;
    }
    return false;
}

// Reads the dimensions, fastest first in the file; *bytes: the size of the tensor.
static bool parse_shape(file_cursor *in, sinkproof_tensor *tensor, size_t *bytes) {
    uint64_t rank = cursor_number(in, 4, "the number of dimensions");
    if (in->failed) return false;
    if (rank > MOST_RANK)
        return cursor_fail(in, "tensor %s: expected at most %d dimensions, found %llu",
                           tensor->name, MOST_RANK, (unsigned long long)rank);
    size_t elements = 1;
    bool fits = true;
    tensor->rank = rank;
    for (size_t i = rank; i-- > 0;) {
        tensor->shape[i] = cursor_number(in, 8, "a dimension");
        fits = fits && !__builtin_mul_overflow(elements, tensor->shape[i], &elements);
    }
    uint64_t code = cursor_number(in, 4, "the type of a tensor");
    if (in->failed) return false;
    if (!gguf_dtype((uint32_t)code, &tensor->dtype))
        return cursor_fail(in,
                           "tensor %s: expected the type F32 (0), F16 (1), Q4_0 (2), Q4_1 (3), "
                           "Q5_0 (6), Q5_1 (7), Q8_0 (8), Q4_K (12), Q5_K (13), Q6_K (14), BF16 "
                           "(30) or MXFP4 (39), found ggml's type %llu",
                           tensor->name, (unsigned long long)code);
    size_t fastest = rank > 0 ? tensor->shape[rank - 1] : 1;
    if (fastest % sinkproof_dtype_block(tensor->dtype) != 0)
        return cursor_fail(in,
                           "tensor %s: expected a row of blocks of %zu for its type %s, found "
                           "%s",
                           tensor->name, sinkproof_dtype_block(tensor->dtype),
                           sinkproof_dtype_name(tensor->dtype),
                           sinkproof_counted(fastest, "number").text);
    if (!fits || elements > (size_t)1 << 58)
        return cursor_fail(in, "tensor %s: expected dimensions whose product is below 2^58",
                           tensor->name);
    *bytes = sinkproof_dtype_bytes_for(tensor->dtype, elements);
    return true;
}

// Reads name, shape, type, and the offset, which must be `offset`, after the tensors before it.
static bool parse_tensor(file_cursor *in, const gguf_file *file, size_t *offset,
                         sinkproof_tensor *tensor) {
    *tensor = (sinkproof_tensor){.name = cursor_name(in, "a tensor's name")};
    if (tensor->name == NULL || !parse_shape(in, tensor, &tensor->bytes)) return false;
    uint64_t found = cursor_number(in, 8, "the offset of a tensor");
    if (in->failed) return false;
    if (found != *offset)
        return cursor_fail(in,
                           "tensor %s: expected to begin at byte %zu of the data, behind the "
                           "one before and a multiple of %zu, found %llu (%s)",
                           tensor->name, *offset, file->alignment, (unsigned long long)found,
                           found % file->alignment != 0 ? "not aligned"
                           : found < *offset            ? "an overlap"
                                                        : "a gap");
    if (tensor->bytes > file->length || *offset > file->length)
        return cursor_fail(in,
                           "tensor %s: expected %s at byte %zu of the data, found "
                           "a file of %zu: it is cut short",
                           tensor->name, sinkproof_counted(tensor->bytes, "byte").text, *offset,
                           file->length);
    *offset += (tensor->bytes + file->alignment - 1) / file->alignment * file->alignment;
    return true;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// Checks that no name is used twice: n names, `stride` bytes apart.
static bool check_names(file_cursor *in, const char *what, const void *first, size_t n,
                        size_t stride) {
    const char **names = malloc((n + 1) * sizeof *names);
    if (names == NULL) return cursor_fail(in, "out of memory");
    for (size_t i = 0; i < n; i++)
        memcpy(&names[i], (const char *)first + i * stride, sizeof *names);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; i < n && !in->failed; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            cursor_fail(in, "%s %s: expected a name used once, found it twice", what, names[i]);
    free(names);
    return !in->failed;
}

// Reads the alignment of the tensors: a power of two.
static bool parse_alignment(file_cursor *in, gguf_file *file) {
    const gguf_pair *pair = sinkproof_gguf_find(file, "general.alignment");
    double value = GGUF_ALIGNMENT;
    bool good = pair == NULL || gguf_number(pair, &value);
    good = good && value >= 1 && value <= 1 << 30;
    file->alignment = good ? (size_t)value : 1;
    if (good && (double)file->alignment == value && (file->alignment & (file->alignment - 1)) == 0)
        return true;
    char found[64];
    return cursor_fail(in, "key general.alignment: expected a power of two up to 2^30, found %s",
                       sinkproof_gguf_value_text(pair, found, sizeof found));
}

static bool parse_header(file_cursor *in, gguf_file *file) {
    const uint8_t *magic = cursor_take_bytes(in, 4, "the letters GGUF");
    if (magic != NULL && memcmp(magic, "GGUF", 4) != 0) {
        const char *kind = sniff_format(in->begin, file->length);
        return cursor_fail(in, "expected a file that begins with GGUF, found %s",
                           kind != NULL ? kind : "another");
    }
    uint64_t version = cursor_number(in, 4, "a version");
    if (!in->failed && version != 2 && version != 3)
        return cursor_fail(in, "expected GGUF of version 2 or 3, found %llu%s",
                           (unsigned long long)version,
                           version >> 16 != 0 ? " (a file in the other byte order?)" : "");
    size_t n_tensors = cursor_number(in, 8, "the number of tensors");
    size_t n_pairs = cursor_number(in, 8, "the number of keys");
    size_t left = (size_t)(in->end - in->at);
    if (n_tensors > left / LEAST_TENSOR || n_pairs > left / LEAST_PAIR)
        return cursor_fail(in,
                           "expected keys and tensors that fit into the %s left, "
                           "found %zu and %zu: the file is cut short, or damaged there",
                           sinkproof_counted(left, "byte").text, n_pairs, n_tensors);
    file->n_pairs = n_pairs;
    file->n_tensors = n_tensors;
    return !in->failed;
}

// Finds the tensors' bytes: from the next multiple of the alignment to the end of the file; the
// last one's padding may be missing.
static bool parse_data(file_cursor *in, gguf_file *file, size_t padded) {
    if (file->n_tensors == 0) return true;
    size_t at = (size_t)(in->at - in->begin), padding = (0 - at) % file->alignment;
    size_t left = file->length - at > padding ? file->length - at - padding : 0;
    size_t last = file->tensors[file->n_tensors - 1].bytes;
    size_t needed = padded - (0 - last) % file->alignment;
    if (left < needed || left - needed >= 2 * file->alignment)
        return cursor_fail(in,
                           "expected the data to end with its last tensor after %s, found %zu%s",
                           sinkproof_counted(needed, "byte").text, left,
                           left < needed ? ": the file is cut short" : "");
    const uint8_t *data = in->at + padding;
    for (size_t i = 0; i < file->n_tensors; i++) {
        sinkproof_tensor *tensor = &file->tensors[i];
        tensor->data = data;
        data += (tensor->bytes + file->alignment - 1) / file->alignment * file->alignment;
    }
    return true;
}

// Allocates room for every name: no more than the file, and no more than the longest names.
static bool make_room(file_cursor *in, gguf_file *file) {
    size_t names, most;
    bool few = !__builtin_add_overflow(file->n_pairs, file->n_tensors, &names) &&
               !__builtin_mul_overflow(names, CURSOR_NAME, &most) && most < file->length;
    in->names = file->names = malloc((few ? most : file->length) + 1);
    file->pairs = calloc(file->n_pairs + 1, sizeof *file->pairs);
    file->tensors = calloc(file->n_tensors + 1, sizeof *file->tensors);
    return (file->names != NULL && file->pairs != NULL && file->tensors != NULL) ||
           cursor_fail(in, "out of memory");
}

static bool parse_all(file_cursor *in, gguf_file *file) {
    size_t offset = 0;
    if (!parse_header(in, file) || !make_room(in, file)) return false;
    for (size_t i = 0; i < file->n_pairs; i++)
        if (!gguf_read_pair(in, &file->pairs[i])) return false;
    if (!check_names(in, "key", &file->pairs->key, file->n_pairs, sizeof *file->pairs) ||
        !parse_alignment(in, file) || !gguf_check_architecture(in, file))
        return false;
    for (size_t i = 0; i < file->n_tensors; i++)
        if (!parse_tensor(in, file, &offset, &file->tensors[i])) return false;
    return check_names(in, "tensor", &file->tensors->name, file->n_tensors,
                       sizeof *file->tensors) &&
           parse_data(in, file, offset);
}

bool gguf_parse(const uint8_t *bytes, size_t length, const char *name, gguf_file **file,
                sinkproof_error *error) {
    *file = NULL;
    gguf_file *made = calloc(1, sizeof *made);
    if (made == NULL) return sinkproof_fail(error, "%s: out of memory", name);
    made->bytes = bytes;
    made->length = length;
    const uint8_t *end = length > 0 ? bytes + length : bytes; // of an empty file `bytes` is NULL
    file_cursor in = {.name = name, .error = error, .begin = bytes, .at = bytes, .end = end};
    if (parse_all(&in, made)) {
        *file = made;
        return true;
    }
    sinkproof_gguf_close(made);
    return false;
}

bool sinkproof_gguf_open(const char *path, gguf_file **file, sinkproof_error *error) {
    const uint8_t *bytes;
    size_t length;
    *file = NULL;
    if (!map_file(path, &bytes, &length, error)) return false;
    if (!gguf_parse(bytes, length, path, file, error)) {
        unmap_file(bytes, length);
        return false;
    }
    (*file)->mapped = true;
    return true;
}

void sinkproof_gguf_close(gguf_file *file) {
    if (file == NULL) return;
    if (file->mapped) unmap_file(file->bytes, file->length);
    free(file->pairs);
    free(file->tensors);
    free(file->names);
    free(file);
}

size_t gguf_pairs(const gguf_file *file) {
    return file->n_pairs;
}

const gguf_pair *gguf_pair_at(const gguf_file *file, size_t i) {
    return &file->pairs[i];
}

const gguf_pair *sinkproof_gguf_find(const gguf_file *file, const char *key) {
    for (size_t i = 0; i < file->n_pairs; i++)
        if (strcmp(file->pairs[i].key, key) == 0) return &file->pairs[i];
    return NULL;
}

size_t gguf_tensor_count(const gguf_file *file) {
    return file->n_tensors;
}

const sinkproof_tensor *gguf_tensor_at(const gguf_file *file, size_t i) {
    return &file->tensors[i];
}
