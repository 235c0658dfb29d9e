// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks of one tensor of a trace.
#include "audit/trace/trace_checks.h"

#include "audit/trace/trace_points.h"

#include <stdio.h>
#include <string.h>

bool trace_is_radius(const sinkproof_safetensors *file, const sinkproof_tensor *tensor) {
    static const char ending[] = ".radius";
    char of[SINKPROOF_TRACE_NAME];
    size_t length = strlen(tensor->name), end = sizeof ending - 1;
    if (length <= end || length - end >= sizeof of) return false;
    snprintf(of, sizeof of, "%.*s", (int)(length - end), tensor->name);
    return strcmp(tensor->name + length - end, ending) == 0 &&
           sinkproof_safetensors_find(file, of) != NULL;
}

void trace_print_shape(size_t rank, const size_t *shape, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t r = 0; r < rank && used < size; r++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", r > 0 ? ", " : "", shape[r]);
    if (used < size) snprintf(text + used, size - used, "]");
}

bool trace_check_shape(const char *file, const sinkproof_tensor *tensor, size_t rank,
                       const size_t *shape, sinkproof_error *error) {
    bool same = tensor->rank == rank;
    for (size_t r = 0; same && r < rank; r++) same = tensor->shape[r] == shape[r];
    if (same) return true;
    char expected[128], found[192];
    bool batch = shape_has_batch(tensor->rank, tensor->shape, rank, shape);
    trace_print_shape(rank, shape, expected, sizeof expected);
    trace_print_shape(tensor->rank, tensor->shape, found, sizeof found);
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected shape %s, found %s%s", file,
                          tensor->name, expected, found, batch ? SHAPE_OF_A_BATCH : "");
}

static bool is_integer(sinkproof_dtype dtype) {
    return dtype == SINKPROOF_DTYPE_I32 || dtype == SINKPROOF_DTYPE_I64;
}

static bool is_float(sinkproof_dtype dtype) {
    return dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16 ||
           dtype == SINKPROOF_DTYPE_F32 || dtype == SINKPROOF_DTYPE_F64;
}

bool trace_check_dtype(const char *file, const sinkproof_tensor *tensor, bool integer,
                       sinkproof_error *error) {
    if (integer ? is_integer(tensor->dtype) : is_float(tensor->dtype)) return true;
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected dtype %s, found %s", file,
                          tensor->name, integer ? "I32 or I64" : "BF16, F16, F32 or F64",
                          sinkproof_dtype_name(tensor->dtype));
}

int64_t trace_index_at(const sinkproof_tensor *tensor, size_t i) {
    int64_t wide;
    int32_t narrow;
    if (tensor->dtype == SINKPROOF_DTYPE_I64) {
        memcpy(&wide, tensor->data + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, tensor->data + i * sizeof narrow, sizeof narrow);
    return narrow;
}

bool trace_check_range(const char *file, const sinkproof_tensor *tensor, size_t limit,
                       sinkproof_error *error) {
    for (size_t i = 0; i < sinkproof_tensor_elements(tensor); i++) {
        int64_t x = trace_index_at(tensor, i);
        if (x < 0 || (uint64_t)x >= limit)
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: element %zu is %lld, expected 0 to %zu",
                                  file, tensor->name, i, (long long)x, limit - 1);
    }
    return true;
}

bool trace_check_chosen(const char *file, const sinkproof_config *config,
                        const sinkproof_tensor *tensor, sinkproof_error *error) {
    size_t k = config->n_chosen;
    if (!trace_check_range(file, tensor, config->n_experts, error)) return false;
    for (size_t i = 0; i < sinkproof_tensor_elements(tensor); i++)
        for (size_t before = i - i % k; before < i; before++)
            if (trace_index_at(tensor, i) == trace_index_at(tensor, before))
                return sinkproof_fail(
                    error, "%.300s: tensor %.100s: token %zu chose expert %lld twice", file,
                    tensor->name, i / k, (long long)trace_index_at(tensor, i));
    return true;
}
