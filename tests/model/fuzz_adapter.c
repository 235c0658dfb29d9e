// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes, cut in two, as the two files of a low-rank adapter beside a model with experts
// and beside a dense one. Whatever is accepted has two finite matrices of one rank for each part,
// within the rows and columns of its weight.
#include "model/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char folder[] = "/tmp/sinkproof-fuzz-XXXXXX";
static char config[sizeof folder + 32], tensors[sizeof folder + 32];
static sinkproof_model *models[2];

static void forget(void) {
    for (size_t i = 0; i < 2; i++) sinkproof_model_close(models[i]);
    unlink(config);
    unlink(tensors);
    rmdir(folder);
}

static void make_folder(void) {
    sinkproof_error error;
    if (config[0] != '\0') return;
    if (mkdtemp(folder) == NULL) abort();
    snprintf(config, sizeof config, "%s/adapter_config.json", folder);
    snprintf(tensors, sizeof tensors, "%s/adapter_model.safetensors", folder);
    if (!sinkproof_model_open("synthetic:tiny", &models[0], &error) ||
        !sinkproof_model_open("synthetic:tiny-llama", &models[1], &error))
        abort();
    atexit(forget);
}

static void write_file(const char *path, const uint8_t *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) abort();
}

static void check_matrix(const sinkproof_matrix *m) {
    double row_c[1 << 13];
    if (m->rows == 0 || m->cols == 0 || m->cols > sizeof row_c / sizeof *row_c) abort();
    for (size_t r = 0; r < m->rows; r++) {
        sinkproof_matrix_row(m, r, row_c);
        for (size_t c = 0; c < m->cols; c++)
            if (!isfinite(row_c[c])) abort();
    }
}

static size_t check_weight(const sinkproof_adapter *adapter, const sinkproof_config *c,
                           size_t layer, sinkproof_slot slot) {
    const sinkproof_adapter_part *parts;
    size_t count, rows, cols, n = sinkproof_adapter_parts(adapter, layer, slot, &parts);
    if (n > SINKPROOF_ADAPTER_PARTS) abort();
    for (size_t i = 0; i < n; i++) {
        const sinkproof_adapter_part *p = &parts[i];
        sinkproof_slot_shape(slot, c, &count, &rows, &cols);
        check_matrix(&p->a);
        check_matrix(&p->b);
        if (p->a.cols != cols || p->a.rows != p->b.cols || !isfinite(p->scale)) abort();
        if (p->first + (p->b.rows - 1) * p->step >= rows || p->b.rows * p->step != rows) abort();
    }
    return n;
}

static void check_adapter(const sinkproof_adapter *adapter, const sinkproof_model *model) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t n = 0, least, largest;
    for (size_t slot = 0; slot < SINKPROOF_SLOTS; slot++) {
        size_t layers = slot < SINKPROOF_LAYER_SLOTS ? c->n_layers : 1;
        for (size_t l = 0; l < layers; l++) n += check_weight(adapter, c, l, (sinkproof_slot)slot);
    }
    if (n == 0 || n != sinkproof_adapter_count(adapter, &least, &largest) || least > largest)
        abort();
    sinkproof_model *view = sinkproof_model_adapted(model, adapter);
    if (view == NULL || sinkproof_model_adapter(view) != adapter) abort();
    sinkproof_model_close(view);
}

// The first two bytes say where the tensors begin.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    make_folder();
    if (length < 2) return 0;
    size_t cut = 2 + (bytes[0] | (size_t)bytes[1] << 8);
    cut = cut < length ? cut : length;
    write_file(config, bytes + 2, cut - 2);
    write_file(tensors, bytes + cut, length - cut);
    for (size_t i = 0; i < 2; i++) {
        sinkproof_adapter *adapter;
        sinkproof_error error = {""};
        if (sinkproof_adapter_open(folder, models[i], &adapter, &error)) {
            check_adapter(adapter, models[i]);
            sinkproof_adapter_close(adapter);
        } else if (error.text[0] == '\0' || adapter != NULL)
            abort(); // refused without a reason
    }
    return 0;
}
