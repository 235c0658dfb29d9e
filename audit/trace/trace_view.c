// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The public functions that view a trace's tensors, write a trace to a file and read its bytes.
#include "audit/sinkproof.h"
#include "audit/trace/trace.h"
#include "model/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t sinkproof_trace_count(const sinkproof_trace *trace) {
    return trace != NULL ? sinkproof_safetensors_count(sinkproof_trace_file(trace)) : 0;
}

static bool view_tensor(const sinkproof_tensor *tensor, sinkproof_view *view) {
    if (tensor == NULL || view == NULL || view->size < sizeof view->size) return false;
    sinkproof_view v = {.size = view->size < sizeof v ? view->size : sizeof v,
                        .name = tensor->name,
                        .dtype = sinkproof_dtype_name(tensor->dtype),
                        .rank = tensor->rank,
                        .data = tensor->data,
                        .bytes = tensor->bytes};
    memcpy(v.shape, tensor->shape, sizeof v.shape);
    memcpy(view, &v, v.size);
    return true;
}

bool sinkproof_trace_at(const sinkproof_trace *trace, size_t i, sinkproof_view *view) {
    if (i >= sinkproof_trace_count(trace)) return false;
    return view_tensor(sinkproof_safetensors_at(sinkproof_trace_file(trace), i), view);
}

bool sinkproof_trace_named(const sinkproof_trace *trace, const char *name, sinkproof_view *view) {
    if (trace == NULL || name == NULL) return false;
    return view_tensor(sinkproof_safetensors_find(sinkproof_trace_file(trace), name), view);
}

bool sinkproof_trace_from_bytes(const void *bytes, size_t length, const sinkproof_model *model,
                                sinkproof_trace **trace, sinkproof_error *error) {
    if (trace == NULL) return sinkproof_fail(error, "expected a place for the trace, found NULL");
    *trace = NULL;
    if (bytes == NULL || model == NULL)
        return sinkproof_fail(error, "expected bytes and a model, found NULL");
    char *copy = malloc(length + 1);
    if (copy == NULL) return sinkproof_fail(error, "(memory): no memory for a trace");
    memcpy(copy, bytes, length);
    return trace_adopt(copy, length, "(memory)", sinkproof_model_config(model), trace, error);
}

bool sinkproof_trace_write(const sinkproof_trace *trace, const char *path, sinkproof_error *error) {
    sinkproof_output output;
    size_t length;
    if (trace == NULL || path == NULL)
        return sinkproof_fail(error, "expected a trace and a path, found NULL");
    if (sinkproof_safetensors_parts(sinkproof_trace_file(trace)) > 1)
        return sinkproof_fail(error, "%.300s: a trace in several files is not written as one",
                              sinkproof_trace_path(trace));
    const uint8_t *bytes = sinkproof_safetensors_bytes(sinkproof_trace_file(trace), 0, &length);
    if (!sinkproof_output_open(&output, path, error)) return false;
    if (fwrite(bytes, 1, length, output.stream) == length)
        return sinkproof_output_finish(&output, error);
    sinkproof_output_drop(&output);
    return sinkproof_fail(error, "%.900s: cannot write: %s", path, strerror(errno));
}
