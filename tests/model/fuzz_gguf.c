// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: any bytes as a GGUF file. What is accepted is read whole: every value of the metadata
// and every byte of every tensor lies in the file. Then it is opened as a model, and of one that
// opens every row is read.
#include "model/gguf.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile double kept; // so that no read is optimised away

static void read_weight(const sinkproof_matrix *stack) {
    static double row_c[1 << 17]; // no row of an input is longer than half of it
    if (stack->cols > sizeof row_c / sizeof *row_c / 2) abort();
    for (size_t e = 0; e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; r < w.rows; r++) {
            sinkproof_matrix_row(&w, r, row_c);
            kept = row_c[w.cols - 1];
            if (!sinkproof_matrix_is_whole(&w)) continue;
            sinkproof_matrix_split_row(&w, r, row_c);
            kept = row_c[w.cols + sinkproof_matrix_minima(&w) - 1];
        }
    }
}

static void read_model(const sinkproof_model *model) {
    size_t n_layers = sinkproof_model_config(model)->n_layers;
    for (size_t l = 0; l < n_layers; l++)
        for (int s = 0; s < SINKPROOF_SLOTS; s++) {
            sinkproof_matrix w = sinkproof_model_slot(model, l, (sinkproof_slot)s);
            read_weight(&w);
        }
}

static char path[] = "/tmp/sinkproof-fuzz-XXXXXX.gguf";
static void forget(void) {
    unlink(path);
}

// The container knows files by their name.
static void open_as_model(const uint8_t *bytes, size_t length) {
    static int descriptor = -1;
    sinkproof_model *model;
    sinkproof_error error = {""};
    if (descriptor < 0) {
        descriptor = mkstemps(path, 5);
        atexit(forget);
    }
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, bytes, length, 0) != (ssize_t)length)
        abort();
    if (sinkproof_model_open(path, &model, &error))
        read_model(model);
    else if (error.text[0] == '\0' || model != NULL)
        abort();
    sinkproof_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    gguf_file *file;
    sinkproof_error error = {""};
    if (!gguf_parse(bytes, length, "fuzz", &file, &error)) {
        if (error.text[0] == '\0' || file != NULL) abort(); // refused without a reason
        return 0;
    }
    for (size_t i = 0; i < gguf_pairs(file); i++) {
        const gguf_pair *pair = gguf_pair_at(file, i);
        char shown[80];
        double value;
        if (sinkproof_gguf_find(file, pair->key) != pair) abort();
        if (strlen(sinkproof_gguf_value_text(pair, shown, sizeof shown)) >= sizeof shown) abort();
        if (gguf_number(pair, &value)) kept = value;
        sinkproof_gguf_is_text(pair, "yarn");
    }
    size_t total = 0;
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const sinkproof_tensor *tensor = gguf_tensor_at(file, i);
        for (size_t j = 0; j < tensor->bytes; j++) kept = tensor->data[j];
        total += tensor->bytes;
    }
    if (total > length) abort(); // tensors never overlap
    sinkproof_gguf_close(file);
    open_as_model(bytes, length);
    return 0;
}
