// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tensors of safetensors files become weights: each slot finds its tensor by name, its shape and
// dtype are held against the configuration, and a view with the right strides is made. Slots that
// share a tensor are views of its parts. Dequantized experts are stored as [experts, in, out]: the
// view exchanges strides.
#include "model/container.h"

#include "base/words.h"
#include "model/ggml_blocks.h"
#include "model/mxfp4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static checkpoint_entry *find_entry(const wanted_weight *wanted, const char *suffix) {
    char name[TENSOR_NAME];
    const tensor_layout *layout = wanted->model->tensors;
    layout_name(layout, wanted->l, wanted->slot, suffix, name);
    checkpoint_entry *entry = checkpoint_find(&wanted->model->checkpoint, name);
    if (entry != NULL || layout->prefix == NULL) return entry;
    char longer[2 * TENSOR_NAME];
    snprintf(longer, sizeof longer, "%s%s", layout->prefix, name);
    return checkpoint_find(&wanted->model->checkpoint, longer);
}

static checkpoint_entry *find_or_fail(const wanted_weight *wanted, const char *suffix) {
    checkpoint_entry *entry = find_entry(wanted, suffix);
    char name[TENSOR_NAME];
    layout_name(wanted->model->tensors, wanted->l, wanted->slot, suffix, name);
    if (entry == NULL)
        sinkproof_fail(wanted->error, "%s: expected a tensor %s, found none", wanted->model->spec,
                       name);
    return entry;
}

// "[5, 64]"; shapes have at most 8 dimensions of 20 digits.
static const char *shape_text(size_t rank, const size_t *shape, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", i == 0 ? "" : ", ", shape[i]);
    snprintf(text + used, size - used, "]");
    return text;
}

static bool check_shape(const wanted_weight *wanted, const checkpoint_entry *entry, size_t rank,
                        const size_t *shape) {
    const sinkproof_tensor *tensor = entry->tensor;
    if (tensor->rank == rank && memcmp(tensor->shape, shape, rank * sizeof *shape) == 0)
        return true;
    char expected[256], found[256];
    return sinkproof_fail(
        wanted->error, "%s: tensor %s: expected shape %s from the configuration, found %s",
        entry->path, tensor->name, shape_text(rank, shape, expected, sizeof expected),
        shape_text(tensor->rank, tensor->shape, found, sizeof found));
}

static bool check_bytes(const wanted_weight *wanted, const checkpoint_entry *entry) {
    if (entry->tensor->dtype == SINKPROOF_DTYPE_U8) return true;
    return sinkproof_fail(wanted->error, "%s: tensor %s: expected dtype U8, found %s", entry->path,
                          entry->tensor->name, sinkproof_dtype_name(entry->tensor->dtype));
}

static bool is_vector(const wanted_weight *wanted) {
    return sinkproof_slot_is_vector(wanted->slot, &wanted->model->config);
}

// Numbers: of matrices in GGUF also in blocks, of experts also MXFP4.
static bool check_float(const wanted_weight *wanted, const checkpoint_entry *entry) {
    sinkproof_dtype dtype = entry->tensor->dtype;
    bool blocks = wanted->model->tensors->plain_experts && !is_vector(wanted),
         codes = blocks && sinkproof_slot_is_expert_matrix(wanted->slot, &wanted->model->config);
    if (dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16 ||
        dtype == SINKPROOF_DTYPE_F32 || (sinkproof_ggml_blocks_of(dtype) != NULL && blocks) ||
        (dtype == SINKPROOF_DTYPE_MXFP4 && codes))
        return true;
    return sinkproof_fail(wanted->error, "%s: tensor %s: expected dtype %s, found %s", entry->path,
                          entry->tensor->name,
                          codes    ? "MXFP4, Q4_0 to Q8_0, BF16, F16 or F32"
                          : blocks ? "Q4_0 to Q8_0, BF16, F16 or F32"
                                   : "BF16, F16 or F32",
                          sinkproof_dtype_name(dtype));
}

// A row-major view of the whole tensor.
static sinkproof_matrix whole_tensor_view(const wanted_weight *wanted, checkpoint_entry *entry) {
    entry->used = true;
    if (entry->tensor->dtype != SINKPROOF_DTYPE_U8)
        entry->role =
            wanted->slot == SINKPROOF_SINKS && is_vector(wanted) ? ROLE_SINKS : ROLE_NUMBERS;
    return (sinkproof_matrix){.dtype = entry->tensor->dtype,
                              .count = wanted->count,
                              .rows = wanted->rows,
                              .cols = wanted->cols,
                              .data = entry->tensor->data,
                              .col_stride = 1,
                              .row_stride = wanted->cols,
                              .stack_stride = wanted->rows * wanted->cols,
                              .name = entry->tensor->name};
}

// Whether the file has a matrix as [in, out].
static bool is_turned(const wanted_weight *wanted) {
    return layout_is_transposed(wanted->model->tensors, &wanted->model->config, wanted->slot);
}

// The shape of a weight whose tensor has `whole` rows, or columns where it is a vector.
static bool check_plain(const wanted_weight *wanted, const checkpoint_entry *entry, size_t whole) {
    size_t shape[3], rank = 0;
    bool turned = is_turned(wanted);
    if (sinkproof_slot_is_stacked(wanted->slot, &wanted->model->config))
        shape[rank++] = wanted->count;
    if (turned) shape[rank++] = wanted->cols;
    shape[rank++] = whole;
    if (!turned && !is_vector(wanted)) shape[rank++] = wanted->cols;
    return check_shape(wanted, entry, rank, shape) && check_float(wanted, entry);
}

// The whole of a tensor, or the part of it that the slot shares with others.
static bool view_plain(const wanted_weight *wanted, sinkproof_matrix *out) {
    checkpoint_entry *entry = find_or_fail(wanted, "");
    size_t first, whole;
    layout_slot_place(wanted->model->tensors, &wanted->model->config, wanted->slot, &first, &whole);
    if (entry == NULL || !check_plain(wanted, entry, whole)) return false;
    *out = whole_tensor_view(wanted, entry);
    bool turned = is_turned(wanted);
    if (turned) out->row_stride = 1, out->col_stride = whole;
    size_t apart = turned || is_vector(wanted) ? 1 : wanted->cols; // numbers from row to row
    out->data += sinkproof_dtype_bytes_for(out->dtype, first * apart);
    return true;
}

bool checkpoint_tensor(const wanted_weight *wanted, const char *name, sinkproof_matrix *out) {
    char full[TENSOR_NAME];
    snprintf(full, sizeof full, "%s%zu.%s", wanted->model->tensors->layers, wanted->l, name);
    checkpoint_entry *entry = checkpoint_find(&wanted->model->checkpoint, full);
    if (entry == NULL)
        return sinkproof_fail(wanted->error, "%s: expected a tensor %s, found none",
                              wanted->model->spec, full);
    if (!check_plain(wanted, entry, is_vector(wanted) ? wanted->cols : wanted->rows)) return false;
    *out = whole_tensor_view(wanted, entry);
    return true;
}

static bool view_mxfp4(const wanted_weight *wanted, sinkproof_matrix *out) {
    const tensor_layout *layout = wanted->model->tensors;
    checkpoint_entry *codes = find_or_fail(wanted, layout->blocks);
    checkpoint_entry *scales = codes == NULL ? NULL : find_or_fail(wanted, layout->scales);
    if (scales == NULL) return false;
    if (wanted->cols % SINKPROOF_MXFP4_BLOCK != 0)
        return sinkproof_fail(wanted->error,
                              "%s: tensor %s: expected an input width that is a multiple "
                              "of 32 for MXFP4, found %zu in config.json",
                              codes->path, codes->tensor->name, wanted->cols);
    const size_t shape[4] = {wanted->count, wanted->rows, wanted->cols / SINKPROOF_MXFP4_BLOCK,
                             SINKPROOF_MXFP4_BYTES};
    if (!check_shape(wanted, codes, 4, shape) || !check_bytes(wanted, codes) ||
        !check_shape(wanted, scales, 3, shape) || !check_bytes(wanted, scales))
        return false;
    *out = whole_tensor_view(wanted, codes);
    out->dtype = SINKPROOF_DTYPE_MXFP4;
    out->scales = scales->tensor->data;
    scales->used = true;
    scales->role = ROLE_SCALES;
    return true;
}

// [experts, in, out]: rows (outputs) are 1 apart, columns (inputs) `rows` apart.
static bool view_transposed(const wanted_weight *wanted, sinkproof_matrix *out) {
    checkpoint_entry *entry = find_or_fail(wanted, "");
    const size_t shape[3] = {wanted->count, wanted->cols, wanted->rows};
    if (entry == NULL || !check_shape(wanted, entry, 3, shape) || !check_float(wanted, entry))
        return false;
    *out = whole_tensor_view(wanted, entry);
    out->row_stride = 1;
    out->col_stride = wanted->rows;
    return true;
}

// Even and odd rows from two tensors of one type; of the view's name there is only the first's.
static bool view_halves(const wanted_weight *wanted, sinkproof_matrix *out) {
    const tensor_layout *layout = wanted->model->tensors;
    wanted_weight half = *wanted;
    sinkproof_matrix odd;
    size_t *both = is_vector(wanted) ? &half.cols : &half.rows;
    *both /= 2;
    if (!checkpoint_tensor(&half, layout->names[wanted->slot], out) ||
        !checkpoint_tensor(&half, layout->second[wanted->slot], &odd))
        return false;
    if (out->dtype != odd.dtype)
        return sinkproof_fail(wanted->error,
                              "%s: tensor %s: expected dtype %s, as %s has, found %s",
                              wanted->model->spec, odd.name, sinkproof_dtype_name(out->dtype),
                              out->name, sinkproof_dtype_name(odd.dtype));
    out->odd = odd.data;
    out->rows = wanted->rows;
    out->cols = wanted->cols;
    return true;
}

bool checkpoint_view(const wanted_weight *wanted, sinkproof_matrix *out) {
    const tensor_layout *layout = wanted->model->tensors;
    if (!layout_check_slot(layout, wanted->model->container->title, wanted->slot,
                           wanted->model->spec, wanted->error))
        return false;
    if (layout->second[wanted->slot] != NULL) return view_halves(wanted, out);
    if (!sinkproof_slot_is_expert_matrix(wanted->slot, &wanted->model->config) ||
        layout->plain_experts)
        return view_plain(wanted, out);
    bool dequantized = layout->dequantized != NULL && find_entry(wanted, layout->blocks) == NULL &&
                       find_entry(wanted, "") != NULL;
    if (!dequantized) return view_mxfp4(wanted, out);
    wanted->model->layout = layout->dequantized;
    return view_transposed(wanted, out);
}

// A tensor of layer n_layers or beyond: config.json does not describe this checkpoint.
static bool refuse_more_layers(const sinkproof_model *model, sinkproof_error *error) {
    const weight_files *checkpoint = &model->checkpoint;
    const char *prefix = model->tensors->layers, *before = model->tensors->prefix;
    size_t skipped = before == NULL ? 0 : strlen(before);
    for (size_t i = 0; i < checkpoint->n_entries; i++) {
        const checkpoint_entry *entry = &checkpoint->entries[i];
        const char *name = entry->tensor->name;
        if (skipped > 0 && strncmp(name, before, skipped) == 0) name += skipped;
        const char *digits = name + strlen(prefix);
        if (strncmp(name, prefix, strlen(prefix)) != 0 || *digits < '0' || *digits > '9') continue;
        if (strtoull(digits, NULL, 10) >= model->config.n_layers)
            return sinkproof_fail(error,
                                  "%s: tensor %.200s: expected %s from "
                                  "the configuration, found one beyond them",
                                  entry->path, name,
                                  sinkproof_counted(model->config.n_layers, "layer").text);
    }
    return true;
}

// Whether the layout knows a tensor as no weight.
static bool is_unread(const sinkproof_model *model, const char *name) {
    const char *const *end = model->tensors->unread;
    for (; end != NULL && *end != NULL; end++) {
        size_t length = strlen(*end), whole = strlen(name);
        if (whole >= length && strcmp(name + whole - length, *end) == 0) return true;
    }
    return false;
}

bool checkpoint_check_all_used(sinkproof_model *model, sinkproof_error *error) {
    weight_files *checkpoint = &model->checkpoint;
    if (!refuse_more_layers(model, error)) return false;
    for (size_t i = 0; i < checkpoint->n_entries; i++)
        if (!checkpoint->entries[i].used && !is_unread(model, checkpoint->entries[i].tensor->name))
            checkpoint_note_odd(checkpoint, "tensor %.300s: no part of this model",
                                checkpoint->entries[i].tensor->name);
    return true;
}
