// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Opens an adapter for a trial, and says what it is.
#include "audit/face/ruling_adapter.h"

#include "audit/trace/gradients.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

static bool refuse_gradients(const char *directory, const sinkproof_trace *trace,
                             sinkproof_error *error) {
    const sinkproof_safetensors *file = sinkproof_trace_file(trace);
    sinkproof_gradient gradient;
    for (size_t i = 0; i < sinkproof_safetensors_count(file); i++) {
        const char *name = sinkproof_safetensors_at(file, i)->name;
        if (sinkproof_gradient_parse(name, &gradient))
            return sinkproof_fail(error,
                                  "%.200s: tensor %.100s: a gradient through an adapter that is "
                                  "not merged (%.200s) cannot be judged: leave it out",
                                  sinkproof_trace_path(trace), name, directory);
    }
    return true;
}

bool ruled_adapter_open(const char *directory, const sinkproof_model *model,
                        const sinkproof_trace *trace, ruled_adapter *opened,
                        sinkproof_error *error) {
    size_t least, largest;
    char rank[48], name[204];
    *opened = (ruled_adapter){.adapter = NULL};
    if (!refuse_gradients(directory, trace, error) ||
        !sinkproof_adapter_open(directory, model, &opened->adapter, error))
        return false;
    opened->view = sinkproof_model_adapted(model, opened->adapter);
    if (opened->view == NULL) return sinkproof_fail(error, "no memory for a view of the model");
    size_t n = sinkproof_adapter_count(opened->adapter, &least, &largest);
    snprintf(rank, sizeof rank, least == largest ? "%zu" : "%zu to %zu", least, largest);
    snprintf(name, sizeof name, "%.200s", directory);
    sinkproof_make_printable(name);
    snprintf(opened->said, sizeof opened->said,
             "An adapter is beside the weights, not merged: %s, %s of rank %s. There is no "
             "comparison end to end.",
             name, sinkproof_counted(n, "product").text, rank);
    return true;
}

bool ruled_adapter_is_given(const sinkproof_trace *trace, sinkproof_error *error) {
    const char *said = sinkproof_trace_metadata(trace, "adapter");
    return said == NULL || strcmp(said, "beside") != 0 ||
           sinkproof_fail(error,
                          "%.300s: its metadata say that an adapter was beside the weights, not "
                          "merged: expected its directory (--adapter)",
                          sinkproof_trace_path(trace));
}

void ruled_adapter_close(ruled_adapter *opened) {
    if (opened->view != NULL) sinkproof_model_close(opened->view);
    sinkproof_adapter_close(opened->adapter);
}
