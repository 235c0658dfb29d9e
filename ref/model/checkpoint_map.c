// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tensors of a container become weights: each slot finds its tensor by name, its shape and
// dtype are held against the configuration, and a view with the right strides is made. The
// original layout's fused qkv is three views of one tensor (rows q, then k, then v). Hugging
// Face's dequantized experts are stored as [experts, in, out]: the view exchanges strides.
#include "ref/model/checkpoint.h"

#include "ref/model/mxfp4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What one slot is matched against.
typedef struct target {
    sinkproof_model *model;
    bool hf;
    sinkproof_slot slot;
    size_t l, count, rows, cols;
    sinkproof_error *error;
} target;

// "model.layers.3.self_attn.sinks" or "block.3.attn.sinks", then `suffix`.
static void name_of(const target *to, const char *suffix, char *name, size_t size) {
    const char *base = to->hf ? sinkproof_slot_hf(to->slot) : sinkproof_slot_openai(to->slot);
    if (to->slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(name, size, "%s%s", base, suffix);
    else
        snprintf(name, size, "%s.%zu.%s%s", to->hf ? "model.layers" : "block", to->l, base, suffix);
}

static sinkproof_entry *find(const target *to, const char *suffix) {
    char name[128];
    name_of(to, suffix, name, sizeof name);
    return sinkproof_checkpoint_find(&to->model->checkpoint, name);
}

static sinkproof_entry *find_or_fail(const target *to, const char *suffix) {
    sinkproof_entry *entry = find(to, suffix);
    char name[128];
    name_of(to, suffix, name, sizeof name);
    if (entry == NULL)
        sinkproof_fail(to->error, "%s: expected a tensor %s, found none", to->model->spec, name);
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

static bool check_shape(const target *to, const sinkproof_entry *entry, size_t rank,
                        const size_t *shape) {
    const sinkproof_tensor *tensor = entry->tensor;
    if (tensor->rank == rank && memcmp(tensor->shape, shape, rank * sizeof *shape) == 0)
        return true;
    char expected[256], found[256];
    return sinkproof_fail(to->error, "%s: tensor %s: expected shape %s from config.json, found %s",
                          entry->path, tensor->name,
                          shape_text(rank, shape, expected, sizeof expected),
                          shape_text(tensor->rank, tensor->shape, found, sizeof found));
}

static bool check_bytes(const target *to, const sinkproof_entry *entry) {
    if (entry->tensor->dtype == SINKPROOF_DTYPE_U8) return true;
    return sinkproof_fail(to->error, "%s: tensor %s: expected dtype U8, found %s", entry->path,
                          entry->tensor->name, sinkproof_dtype_name(entry->tensor->dtype));
}

static bool check_float(const target *to, const sinkproof_entry *entry) {
    sinkproof_dtype dtype = entry->tensor->dtype;
    if (dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16 ||
        dtype == SINKPROOF_DTYPE_F32)
        return true;
    return sinkproof_fail(to->error, "%s: tensor %s: expected dtype BF16, F16 or F32, found %s",
                          entry->path, entry->tensor->name, sinkproof_dtype_name(dtype));
}

// A row-major view of the whole tensor.
static sinkproof_matrix view_of(const target *to, sinkproof_entry *entry) {
    entry->used = true;
    if (entry->tensor->dtype != SINKPROOF_DTYPE_U8)
        entry->role = to->slot == SINKPROOF_SINKS ? SINKPROOF_ROLE_SINKS : SINKPROOF_ROLE_NUMBERS;
    return (sinkproof_matrix){.dtype = entry->tensor->dtype,
                              .count = to->count,
                              .rows = to->rows,
                              .cols = to->cols,
                              .data = entry->tensor->data,
                              .col_stride = 1,
                              .row_stride = to->cols,
                              .stack_stride = to->rows * to->cols,
                              .name = entry->tensor->name};
}

static bool map_plain(const target *to, sinkproof_matrix *out) {
    sinkproof_entry *entry = find_or_fail(to, "");
    size_t shape[3], rank = 0;
    if (to->count > 1 || sinkproof_slot_is_stacked(to->slot)) shape[rank++] = to->count;
    if (!sinkproof_slot_is_vector(to->slot)) shape[rank++] = to->rows;
    shape[rank++] = to->cols;
    if (entry == NULL || !check_shape(to, entry, rank, shape) || !check_float(to, entry))
        return false;
    *out = view_of(to, entry);
    return true;
}

// attn.qkv of the original layout: heads * head_dim rows of q, then kv_heads * head_dim of k,
// then as many of v; in a bias, columns. Source:
// doc/99-bibliography.md#openai-source.
static bool map_fused(const target *to, sinkproof_matrix *out) {
    const sinkproof_config *config = &to->model->config;
    sinkproof_entry *entry = find_or_fail(to, "");
    bool bias = sinkproof_slot_is_vector(to->slot);
    size_t q = config->n_heads * config->head_dim, kv = config->n_kv_heads * config->head_dim;
    size_t shape[2] = {q + 2 * kv, config->hidden}, first = 0;
    if (entry == NULL || !check_shape(to, entry, bias ? 1 : 2, shape) || !check_float(to, entry))
        return false;
    if (to->slot == SINKPROOF_W_K || to->slot == SINKPROOF_B_K) first = q;
    if (to->slot == SINKPROOF_W_V || to->slot == SINKPROOF_B_V) first = q + kv;
    *out = view_of(to, entry);
    out->data += first * (bias ? 1 : to->cols) * sinkproof_dtype_size(out->dtype);
    return true;
}

static bool map_mxfp4(const target *to, sinkproof_matrix *out) {
    sinkproof_entry *codes = find_or_fail(to, to->hf ? "_blocks" : ".blocks");
    sinkproof_entry *scales =
        codes == NULL ? NULL : find_or_fail(to, to->hf ? "_scales" : ".scales");
    if (scales == NULL) return false;
    if (to->cols % SINKPROOF_MXFP4_BLOCK != 0)
        return sinkproof_fail(to->error,
                              "%s: tensor %s: expected an input width that is a multiple "
                              "of 32 for MXFP4, found %zu in config.json",
                              codes->path, codes->tensor->name, to->cols);
    const size_t shape[4] = {to->count, to->rows, to->cols / SINKPROOF_MXFP4_BLOCK,
                             SINKPROOF_MXFP4_BYTES};
    if (!check_shape(to, codes, 4, shape) || !check_bytes(to, codes) ||
        !check_shape(to, scales, 3, shape) || !check_bytes(to, scales))
        return false;
    *out = view_of(to, codes);
    out->dtype = SINKPROOF_DTYPE_MXFP4;
    out->scales = scales->tensor->data;
    scales->used = true;
    scales->role = SINKPROOF_ROLE_SCALES;
    return true;
}

// [experts, in, out]: rows (outputs) are 1 apart, columns (inputs) `rows` apart.
static bool map_transposed(const target *to, sinkproof_matrix *out) {
    sinkproof_entry *entry = find_or_fail(to, "");
    const size_t shape[3] = {to->count, to->cols, to->rows};
    if (entry == NULL || !check_shape(to, entry, 3, shape) || !check_float(to, entry)) return false;
    *out = view_of(to, entry);
    out->row_stride = 1;
    out->col_stride = to->rows;
    return true;
}

static bool is_fused(const target *to) {
    return !to->hf && to->slot >= SINKPROOF_W_Q && to->slot <= SINKPROOF_B_V;
}

static bool map_slot(const target *to, sinkproof_matrix *out) {
    if (is_fused(to)) return map_fused(to, out);
    if (!sinkproof_slot_is_expert_matrix(to->slot)) return map_plain(to, out);
    if (to->hf && find(to, "_blocks") == NULL && find(to, "") != NULL) {
        to->model->layout = "hf-bf16";
        return map_transposed(to, out);
    }
    return map_mxfp4(to, out);
}

// A tensor of layer n_layers or beyond: config.json does not describe this checkpoint.
static bool refuse_more_layers(const target *to) {
    const sinkproof_checkpoint *checkpoint = &to->model->checkpoint;
    const char *prefix = to->hf ? "model.layers." : "block.";
    for (size_t i = 0; i < checkpoint->n_entries; i++) {
        const sinkproof_entry *entry = &checkpoint->entries[i];
        const char *name = entry->tensor->name, *digits = name + strlen(prefix);
        if (strncmp(name, prefix, strlen(prefix)) != 0 || *digits < '0' || *digits > '9') continue;
        if (strtoull(digits, NULL, 10) >= to->model->config.n_layers)
            return sinkproof_fail(to->error,
                                  "%s: tensor %.200s: expected %zu layers from "
                                  "config.json, found one beyond them",
                                  entry->path, name, to->model->config.n_layers);
    }
    return true;
}

static bool note_strangers(sinkproof_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->n_entries; i++)
        if (!checkpoint->entries[i].used)
            sinkproof_checkpoint_odd(checkpoint, "tensor %.300s: no part of this model",
                                     checkpoint->entries[i].tensor->name);
    return true;
}

bool sinkproof_checkpoint_map(sinkproof_model *model, bool hf, sinkproof_error *error) {
    model->layout = hf ? "hf-mxfp4" : "openai";
    target to = {.model = model, .hf = hf, .error = error};
    for (to.l = 0; to.l < model->config.n_layers; to.l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) {
            to.slot = (sinkproof_slot)s;
            sinkproof_slot_shape(to.slot, &model->config, &to.count, &to.rows, &to.cols);
            if (!map_slot(&to, sinkproof_slot_of(&model->layers[to.l], to.slot))) return false;
        }
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++) {
        to.slot = (sinkproof_slot)s;
        sinkproof_slot_shape(to.slot, &model->config, &to.count, &to.rows, &to.cols);
        if (!map_slot(&to, &model->outside[s - SINKPROOF_LAYER_SLOTS])) return false;
    }
    return refuse_more_layers(&to) && note_strangers(&model->checkpoint);
}
