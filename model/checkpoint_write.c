// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes a model as a checkpoint: config.json and model.safetensors, in the layout of a container.
// Rows are generated or read, and written one at a time: a full-size model is never in memory.
// Nothing is quantized here; MXFP4 experts can be written as bf16, which is exact or refused.
#include "model/container.h"

#include "base/words.h"
#include "model/bf16.h"
#include "model/bytes.h"
#include "model/mxfp4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The arguments and state of one checkpoint being written.
typedef struct job {
    const sinkproof_model *model;
    const sinkproof_container *container;
    const tensor_layout *layout;
    const sinkproof_config *config;
    const sinkproof_writing *how;
    sinkproof_safetensors_writer *writer;
    uint8_t *bytes; // a row, or a whole dequantized expert
    double *row_c;
    sinkproof_error *error;
} job;

// Slots with the same name are one tensor, declared and written with the first of them.
static bool shares_earlier_tensor(const job *out, sinkproof_slot slot) {
    if (slot == SINKPROOF_UNEMBEDDING && out->config->tied) return true;
    for (int s = 0; s < (int)slot; s++)
        if (layout_slots_share(out->layout, (sinkproof_slot)s, slot)) return true;
    return false;
}

// The plain format that holds a weight's numbers if it is not written as MXFP4: bf16 holds those of
// MXFP4 (or they are refused), float32 those of ggml's other blocks.
static sinkproof_dtype plain_dtype(const sinkproof_matrix *w) {
    return w->dtype == SINKPROOF_DTYPE_MXFP4     ? SINKPROOF_DTYPE_BF16
           : sinkproof_dtype_size(w->dtype) == 0 ? SINKPROOF_DTYPE_F32
                                                 : w->dtype;
}

static void declare_mxfp4(const job *out, size_t l, sinkproof_slot slot,
                          const sinkproof_matrix *w) {
    char name[TENSOR_NAME];
    const size_t shape[4] = {w->count, w->rows, w->cols / SINKPROOF_MXFP4_BLOCK,
                             SINKPROOF_MXFP4_BYTES};
    layout_name(out->layout, l, slot, out->layout->blocks, name);
    sinkproof_safetensors_writer_declare(out->writer, name, SINKPROOF_DTYPE_U8, 4, shape);
    layout_name(out->layout, l, slot, out->layout->scales, name);
    sinkproof_safetensors_writer_declare(out->writer, name, SINKPROOF_DTYPE_U8, 3, shape);
}

// Matrices that the layout transposes are [in, out], and so are dequantized experts: [experts, in,
// out].
static bool is_turned(const job *out, sinkproof_slot slot) {
    return layout_is_transposed(out->layout, out->config, slot) ||
           sinkproof_slot_is_expert_matrix(slot, out->config);
}

static void declare_plain(const job *out, size_t l, sinkproof_slot slot,
                          const sinkproof_matrix *w) {
    char name[TENSOR_NAME];
    size_t shape[3], rank = 0, first, whole;
    bool vector = sinkproof_slot_is_vector(slot, out->config), turned = is_turned(out, slot);
    layout_slot_place(out->layout, out->config, slot, &first, &whole);
    if (sinkproof_slot_is_stacked(slot, out->config)) shape[rank++] = w->count;
    if (turned) shape[rank++] = w->cols;
    shape[rank++] = whole;
    if (!turned && !vector) shape[rank++] = w->cols;
    layout_name(out->layout, l, slot, "", name);
    sinkproof_safetensors_writer_declare(out->writer, name, plain_dtype(w), rank, shape);
}

// The even or the odd rows of a weight, or elements of a vector.
static void declare_half(const job *out, size_t l, sinkproof_slot slot, const sinkproof_matrix *w,
                         bool odd) {
    char name[TENSOR_NAME];
    const size_t shape[2] = {w->rows == 1 ? w->cols / 2 : w->rows / 2, w->cols};
    if (odd)
        layout_second_name(out->layout, l, slot, name);
    else
        layout_name(out->layout, l, slot, "", name);
    sinkproof_safetensors_writer_declare(out->writer, name, plain_dtype(w), w->rows == 1 ? 1 : 2,
                                         shape);
}

static bool declare_slot(const job *out, size_t l, sinkproof_slot slot) {
    sinkproof_matrix w = sinkproof_model_slot(out->model, l, slot);
    if (shares_earlier_tensor(out, slot) || w.count == 0) return true;
    bool halves = out->layout->second[slot] != NULL;
    for (int odd = 0; halves && odd < 2; odd++) declare_half(out, l, slot, &w, odd);
    if (halves) return true;
    if (w.dtype == SINKPROOF_DTYPE_MXFP4 && !out->how->dequantize)
        declare_mxfp4(out, l, slot, &w);
    else
        declare_plain(out, l, slot, &w);
    return true;
}

static bool put_bytes(const job *out, const void *bytes, size_t length) {
    return sinkproof_safetensors_writer_bytes(out->writer, bytes, length, out->error);
}

// Codes first (part 0), then scales (part 1).
static bool write_mxfp4(const job *out, const sinkproof_matrix *stack, int part) {
    size_t half = stack->cols / 2, blocks = stack->cols / SINKPROOF_MXFP4_BLOCK;
    uint8_t *codes = out->bytes, *scales = codes + half;
    bool good = true;
    for (size_t e = 0; good && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; good && r < w.rows; r++) {
            sinkproof_matrix_codes(&w, r, part == 0 ? codes : NULL, scales);
            good = part == 0 ? put_bytes(out, codes, half) : put_bytes(out, scales, blocks);
        }
    }
    return good;
}

// x in a plain float format, which must hold it exactly.
static bool encode_plain(const job *out, const sinkproof_matrix *w, sinkproof_dtype dtype, double x,
                         uint8_t *bytes) {
    return sinkproof_element_encode(dtype, x, bytes) == x ||
           sinkproof_fail(out->error, "tensor %s: expected values that %s holds exactly, found %a",
                          w->name, sinkproof_dtype_name(dtype), x);
}

// Writes number by number, row by row; transposed: from column `first` on of [cols, whole], which
// is completed with its last column.
static bool write_numbers(const job *out, const sinkproof_matrix *w, bool transposed, size_t first,
                          size_t whole) {
    sinkproof_dtype dtype = plain_dtype(w);
    size_t size = sinkproof_dtype_size(dtype), next = transposed ? whole : 1;
    bool good = true, last = first + w->rows == whole;
    for (size_t r = 0; good && r < w->rows; r++) {
        uint8_t *to = out->bytes + (transposed ? (first + r) * size : 0);
        sinkproof_matrix_row(w, r, out->row_c);
        for (size_t c = 0; good && c < w->cols; c++)
            good = encode_plain(out, w, dtype, out->row_c[c], to + c * next * size);
        if (!transposed) good = good && put_bytes(out, to, w->cols * size);
    }
    return good && (!transposed || !last || put_bytes(out, out->bytes, whole * w->cols * size));
}

// Whether the stored matrix already has the bytes and the order of the file.
static bool is_stored_as_written(const sinkproof_matrix *w, bool transposed) {
    size_t lines = transposed ? w->cols : w->rows, length = transposed ? w->rows : w->cols;
    size_t next_line = transposed ? w->col_stride : w->row_stride;
    size_t next = transposed ? w->row_stride : w->col_stride;
    bool read = w->reading == NULL && w->kept == SINKPROOF_REAL;
    return read && w->data != NULL && w->odd == NULL && plain_dtype(w) == w->dtype && next == 1 &&
           (next_line == length || lines == 1);
}

static bool write_plain(const job *out, const sinkproof_matrix *stack, bool transposed,
                        size_t first, size_t whole) {
    bool good = true;
    for (size_t e = 0; good && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        if (is_stored_as_written(&w, transposed))
            good = put_bytes(out, w.data, w.rows * w.cols * sinkproof_dtype_size(w.dtype));
        else
            good = write_numbers(out, &w, transposed, first, whole);
    }
    return good;
}

static bool same_dtype(const job *out, size_t l, sinkproof_slot slot, sinkproof_dtype dtype) {
    for (int s = (int)slot + 1; s < SINKPROOF_SLOTS; s++)
        if (layout_slots_share(out->layout, (sinkproof_slot)s, slot) &&
            sinkproof_model_slot(out->model, l, (sinkproof_slot)s).dtype != dtype)
            return sinkproof_fail(out->error, "tensor %s: expected %s of one dtype",
                                  sinkproof_model_slot(out->model, l, slot).name,
                                  out->layout->shared);
    return true;
}

static bool write_parts(const job *out, size_t l, sinkproof_slot slot) {
    bool good = true;
    size_t first, whole;
    for (int s = (int)slot; good && s < SINKPROOF_SLOTS; s++) {
        if (!layout_slots_share(out->layout, (sinkproof_slot)s, slot)) continue;
        sinkproof_matrix w = sinkproof_model_slot(out->model, l, (sinkproof_slot)s);
        layout_slot_place(out->layout, out->config, (sinkproof_slot)s, &first, &whole);
        good = write_plain(out, &w, is_turned(out, slot), first, whole);
    }
    return good;
}

static bool write_half(const job *out, const sinkproof_matrix *w, size_t odd) {
    sinkproof_dtype dtype = plain_dtype(w);
    bool vector = w->rows == 1, good = true;
    size_t size = sinkproof_dtype_size(dtype), step = vector ? 2 : 1, n = w->cols / step;
    for (size_t r = vector ? 0 : odd; good && r < w->rows; r += 2) {
        sinkproof_matrix_row(w, r, out->row_c);
        for (size_t c = 0; good && c < n; c++)
            good = encode_plain(out, w, dtype, out->row_c[c * step + (vector ? odd : 0)],
                                out->bytes + c * size);
        good = good && put_bytes(out, out->bytes, n * size);
    }
    return good;
}

static bool write_slot(const job *out, size_t l, sinkproof_slot slot) {
    sinkproof_matrix first = sinkproof_model_slot(out->model, l, slot);
    if (shares_earlier_tensor(out, slot) || first.count == 0) return true;
    if (first.dtype == SINKPROOF_DTYPE_MXFP4 && !out->how->dequantize)
        return write_mxfp4(out, &first, 0) && write_mxfp4(out, &first, 1);
    if (out->layout->second[slot] != NULL)
        return write_half(out, &first, 0) && write_half(out, &first, 1);
    return same_dtype(out, l, slot, first.dtype) && write_parts(out, l, slot);
}

// Calls `take` for every slot of layer l; for layer n_layers: of those outside the layers.
static bool visit_slots(const job *out, size_t l,
                        bool (*take)(const job *out, size_t l, sinkproof_slot slot)) {
    bool inside = l < out->config->n_layers, good = true;
    int s = inside ? 0 : SINKPROOF_LAYER_SLOTS,
        end = inside ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS;
    for (; good && s < end; s++) good = take(out, inside ? l : 0, (sinkproof_slot)s);
    return good;
}

// Called once to declare, once to write.
static bool write_tensors(const job *out, const char *path) {
    size_t n_layers = out->config->n_layers;
    sinkproof_safetensors_writer_metadata(out->writer, "format", "pt"); // transformers requires it
    for (size_t l = 0; l <= n_layers; l++) visit_slots(out, l, declare_slot);
    bool good = sinkproof_safetensors_writer_begin(out->writer, path, out->error);
    for (size_t l = 0; good && l <= n_layers; l++) {
        good = visit_slots(out, l, write_slot);
        if (out->how->progress != NULL) out->how->progress(out->how->context, l, n_layers);
    }
    return good && sinkproof_safetensors_writer_finish(out->writer, out->error);
}

// Allocates room for the largest row as numbers and as bytes (or for a whole expert, which may be
// transposed).
static bool allocate_row_buffers(job *out) {
    size_t widest = 0, largest = 0, first, rows;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        sinkproof_matrix w = sinkproof_model_slot(out->model, 0, slot);
        bool whole =
            is_turned(out, slot) && (out->how->dequantize || w.dtype != SINKPROOF_DTYPE_MXFP4);
        layout_slot_place(out->layout, out->config, slot, &first, &rows);
        size_t elements = whole ? rows * w.cols : w.cols;
        if (w.cols > widest) widest = w.cols;
        if (elements > largest) largest = elements;
    }
    out->row_c = malloc(widest * sizeof *out->row_c);
    out->bytes = malloc(sizeof(float) * largest);
    out->writer = sinkproof_safetensors_writer_new();
    return (out->row_c != NULL && out->bytes != NULL && out->writer != NULL) ||
           sinkproof_fail(out->error, "out of memory for a row of %s",
                          sinkproof_counted(widest, "number").text);
}

// config.json first, so that a configuration that it cannot express is refused before any weight is
// written.
static bool write_files(job *out, const char *directory, bool mxfp4) {
    char *config = NULL, *tensors = NULL;
    if (asprintf(&config, "%s/config.json", directory) < 0 ||
        asprintf(&tensors, "%s/model.safetensors", directory) < 0)
        return sinkproof_fail(out->error, "%s: out of memory", directory);
    bool good = config_write(config, out->config, out->container, mxfp4, out->error) &&
                write_tensors(out, tensors);
    if (!good) unlink(config); // no tensor is left
    free(config);
    free(tensors);
    return good;
}

bool checkpoint_write(const sinkproof_container *container, const sinkproof_model *model,
                      const char *directory, const sinkproof_writing *how, sinkproof_error *error) {
    job out = {.model = model,
               .container = container,
               .layout = container->layout,
               .config = sinkproof_model_config(model),
               .how = how,
               .error = error};
    sinkproof_matrix w_up = sinkproof_model_slot(model, 0, SINKPROOF_W_UP);
    bool mxfp4 = w_up.dtype == SINKPROOF_DTYPE_MXFP4 && !how->dequantize, made = false;
    bool good = mxfp4 || container->dequantizes ||
                sinkproof_fail(error, "tensor %s: expected MXFP4, which %s consists of, found %s",
                               w_up.name, container->title, sinkproof_dtype_name(w_up.dtype));
    good = good && layout_check_model(container, model, directory, error) &&
           allocate_row_buffers(&out) && create_directory(directory, &made, error) &&
           write_files(&out, directory, mxfp4);
    sinkproof_safetensors_writer_free(out.writer); // and removes its temporary file
    if (!good && made) rmdir(directory);
    free(out.row_c);
    free(out.bytes);
    return good;
}
