// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads safetensors. The header is a JSON object of at most 100 MB; each tensor has a dtype, a
// shape and an interval of bytes; in order of their starts, the intervals must tile the rest of the
// file: no overlap, no gap, nothing after the last one.
#include "model/safetensors_file.h"

#include "base/words.h"
#include "model/bf16.h"
#include "model/bytes.h"
#include "model/sniff.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// A file under check: `name` and `error` for errors, `data` after the header.
typedef struct source {
    const char *name;
    sinkproof_error *error;
    const uint8_t *data;
    size_t data_length;
} source;

static bool parse_dtype(const json_t *value, sinkproof_dtype *dtype) {
    const char *text = json_string_value(value);
    for (int d = 0; text != NULL && d < SINKPROOF_DTYPES; d++) {
        *dtype = (sinkproof_dtype)d; // MXFP4 is not a dtype of this format: it has no size
        if (sinkproof_dtype_size(*dtype) > 0 && strcmp(text, sinkproof_dtype_name(*dtype)) == 0)
            return true;
    }
    return false;
}

static bool is_size(const json_t *value, size_t *size) {
    json_int_t n = json_integer_value(value);
    *size = (size_t)n;
    return json_is_integer(value) && n >= 0;
}

// Reads shape and dtype; *bytes is their product, or an overflow is the error.
static bool parse_shape(const source *in, const json_t *entry, sinkproof_tensor *tensor,
                        size_t *bytes) {
    const json_t *shape = json_object_get(entry, "shape");
    if (!parse_dtype(json_object_get(entry, "dtype"), &tensor->dtype))
        return sinkproof_fail(in->error,
                              "%s: tensor %s: expected dtype BF16, F16, F32, F64, U8, "
                              "I32 or I64, found %.40s",
                              in->name, tensor->name,
                              json_is_string(json_object_get(entry, "dtype"))
                                  ? json_string_value(json_object_get(entry, "dtype"))
                                  : "none");
    if (!json_is_array(shape) || json_array_size(shape) > SINKPROOF_MAX_RANK)
        return sinkproof_fail(in->error, "%s: tensor %s: expected a shape of at most %d dimensions",
                              in->name, tensor->name, SINKPROOF_MAX_RANK);
    tensor->rank = json_array_size(shape);
    *bytes = sinkproof_dtype_size(tensor->dtype);
    for (size_t i = 0; i < tensor->rank; i++) {
        if (!is_size(json_array_get(shape, i), &tensor->shape[i]) ||
            __builtin_mul_overflow(*bytes, tensor->shape[i], bytes))
            return sinkproof_fail(in->error,
                                  "%s: tensor %s: expected whole dimensions whose "
                                  "product fits in 64 bits",
                                  in->name, tensor->name);
    }
    return true;
}

static bool parse_tensor(const source *in, const char *name, const json_t *entry,
                         sinkproof_tensor *tensor) {
    *tensor = (sinkproof_tensor){.name = name};
    for (const char *c = name; *c != '\0'; c++) // the name may be printed on a terminal
        if ((unsigned char)*c < 32 || *c == 127)
            return sinkproof_fail(in->error,
                                  "%s: expected printable tensor names, found a control "
                                  "character",
                                  in->name);
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return sinkproof_fail(in->error,
                              "%s: tensor %.200s: expected dtype, shape and "
                              "data_offsets, found something else",
                              in->name, name);
    size_t bytes = 0, begin, end;
    if (!parse_shape(in, entry, tensor, &bytes)) return false;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (json_array_size(offsets) != 2 || !is_size(json_array_get(offsets, 0), &begin) ||
        !is_size(json_array_get(offsets, 1), &end))
        return sinkproof_fail(in->error, "%s: tensor %.200s: expected two data_offsets", in->name,
                              name);
    if (begin > end || end > in->data_length)
        return sinkproof_fail(in->error,
                              "%s: tensor %.200s: expected bytes within the %zu of the "
                              "file's data, found %zu to %zu%s",
                              in->name, name, in->data_length, begin, end,
                              begin <= end && end - begin == bytes ? ": the file is cut short"
                                                                   : "");
    if (end - begin != bytes)
        return sinkproof_fail(in->error,
                              "%s: tensor %.200s: expected %s for its dtype %s "
                              "and shape, found %zu",
                              in->name, name, sinkproof_counted(bytes, "byte").text,
                              sinkproof_dtype_name(tensor->dtype), end - begin);
    tensor->data = in->data + begin;
    tensor->bytes = bytes;
    return true;
}

static int by_position(const void *left, const void *right) {
    const sinkproof_tensor *a = left, *b = right;
    if (a->data != b->data) return a->data < b->data ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; // empty ones come first
    return strcmp(a->name, b->name);
}

static bool check_tiling(const source *in, const sinkproof_safetensors *file) {
    const uint8_t *end = in->data;
    for (size_t i = 0; i < file->count; i++) {
        const sinkproof_tensor *tensor = &file->tensors[i];
        if (tensor->data != end)
            return sinkproof_fail(in->error,
                                  "%s: tensor %.200s: expected to begin at byte %zu of "
                                  "the data, where the one before ends, found %zu (%s)",
                                  in->name, tensor->name, (size_t)(end - in->data),
                                  (size_t)(tensor->data - in->data),
                                  tensor->data < end ? "an overlap" : "a gap");
        end += tensor->bytes;
    }
    if ((size_t)(end - in->data) == in->data_length) return true;
    return sinkproof_fail(
        in->error, "%s: expected the data to end with its last tensor after %s, found %zu",
        in->name, sinkproof_counted((size_t)(end - in->data), "byte").text, in->data_length);
}

static bool parse_metadata(const source *in, const json_t *metadata) {
    const char *key;
    json_t *value;
    bool good = metadata == NULL || json_is_object(metadata);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
        good = good && json_is_string(value);
    }
    return good ||
           sinkproof_fail(in->error, "%s: expected __metadata__ to map names to strings", in->name);
}

static bool parse_header(const source *in, sinkproof_safetensors *file) {
    const char *name;
    json_t *entry;
    if (!json_is_object(file->header))
        return sinkproof_fail(in->error, "%s: expected a JSON object as header", in->name);
    if (!parse_metadata(in, json_object_get(file->header, "__metadata__"))) return false;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    if (file->tensors == NULL) return sinkproof_fail(in->error, "%s: out of memory", in->name);
    json_object_foreach(file->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        if (!parse_tensor(in, name, entry, &file->tensors[file->count++])) return false;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_position);
    if (!safetensors_index_names(file))
        return sinkproof_fail(in->error, "%s: out of memory", in->name);
    return check_tiling(in, file);
}

bool sinkproof_safetensors_parse(const uint8_t *bytes, size_t length, const char *name,
                                 sinkproof_safetensors **file, sinkproof_error *error) {
    *file = NULL;
    if (length < 8) return sniff_header(bytes, length, name, error);
    uint64_t header = 0;
    for (int i = 0; i < 8; i++) header |= (uint64_t)bytes[i] << (8 * i);
    if (header > length - 8 || header > SINKPROOF_MAX_JSON)
        return sniff_header(bytes, length, name, error);
    source in = {name, error, bytes + 8 + header, length - 8 - (size_t)header};
    json_error_t where;
    sinkproof_safetensors *result = calloc(1, sizeof *result);
    if (result == NULL) return sinkproof_fail(error, "%s: out of memory", name);
    result->bytes = bytes;
    result->length = length;
    result->header =
        json_loadb((const char *)bytes + 8, (size_t)header, JSON_REJECT_DUPLICATES, &where);
    bool good = result->header != NULL;
    if (!good && length > 8 && bytes[8] != '{' && sniff_format(bytes, length) != NULL)
        sniff_header(bytes, length, name, error);
    else if (!good)
        sinkproof_fail(error, "%s: expected a JSON header, found an error at byte %d of it: %s",
                       name, where.position, where.text);
    if (good && parse_header(&in, result)) {
        *file = result;
        return true;
    }
    sinkproof_safetensors_close(result);
    return false;
}

bool sinkproof_safetensors_open(const char *path, sinkproof_safetensors **file,
                                sinkproof_error *error) {
    const uint8_t *bytes;
    size_t length;
    *file = NULL;
    if (!map_file(path, &bytes, &length, error)) return false;
    if (!sinkproof_safetensors_parse(bytes, length, path, file, error)) {
        unmap_file(bytes, length);
        return false;
    }
    (*file)->mapped = true;
    return true;
}

void sinkproof_safetensors_close(sinkproof_safetensors *file) {
    if (file == NULL) return;
    for (size_t i = 0; i < file->n_parts; i++) sinkproof_safetensors_close(file->parts[i]);
    free(file->parts);
    if (file->mapped) unmap_file(file->bytes, file->length);
    json_decref(file->header);
    free(file->tensors);
    free(file->by_name);
    free(file);
}

size_t sinkproof_safetensors_parts(const sinkproof_safetensors *file) {
    return file->n_parts > 0 ? file->n_parts : 1;
}

const uint8_t *sinkproof_safetensors_bytes(const sinkproof_safetensors *file, size_t part,
                                           size_t *length) {
    const sinkproof_safetensors *of = file->n_parts > 0 ? file->parts[part] : file;
    *length = of->length;
    return of->bytes;
}

void sinkproof_safetensors_forget(const sinkproof_safetensors *file,
                                  const sinkproof_tensor *tensor) {
    uintptr_t begin = (uintptr_t)file->bytes, at = (uintptr_t)tensor->data;
    for (size_t i = 0; i < file->n_parts; i++) sinkproof_safetensors_forget(file->parts[i], tensor);
    // what was put in a tensor's place is no page of the file, and would be lost
    if (file->mapped && at >= begin && at - begin < file->length)
        forget_mapped(tensor->data, tensor->bytes);
}

size_t sinkproof_safetensors_count(const sinkproof_safetensors *file) {
    return file->count;
}

const sinkproof_tensor *sinkproof_safetensors_at(const sinkproof_safetensors *file, size_t i) {
    return &file->tensors[i];
}

const sinkproof_tensor *sinkproof_safetensors_find(const sinkproof_safetensors *file,
                                                   const char *name) {
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sinkproof_tensor *tensor = &file->tensors[file->by_name[middle]];
        int order = strcmp(name, tensor->name);
        if (order == 0) return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *sinkproof_safetensors_metadata(const sinkproof_safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

size_t sinkproof_tensor_elements(const sinkproof_tensor *tensor) {
    return tensor->bytes / sinkproof_dtype_size(tensor->dtype);
}

double sinkproof_tensor_value(const sinkproof_tensor *tensor, size_t i) {
    return element_decode(tensor->dtype, tensor->data + i * sinkproof_dtype_size(tensor->dtype));
}
