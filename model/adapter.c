// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads the tensors of an adapter of PEFT.
#include "model/adapter.h"

#include "model/adapter_config.h"
#include "model/container.h"
#include "model/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The parts of one weight, and which of their matrices are there.
typedef struct adapted_weight {
    sinkproof_adapter_part parts[SINKPROOF_ADAPTER_PARTS];
    size_t n;
} adapted_weight;

struct sinkproof_adapter {
    const sinkproof_config *config;
    char *path; // of the tensors
    sinkproof_safetensors *file;
    adapter_config says;
    adapted_weight *at; // [n_layers + 1][SINKPROOF_SLOTS]; weights outside the layers are last
};

// ---- the tensors

static adapted_weight *weight_at(const sinkproof_adapter *a, size_t layer, sinkproof_slot slot) {
    size_t place = slot < SINKPROOF_LAYER_SLOTS ? layer : a->config->n_layers;
    return &a->at[place * SINKPROOF_SLOTS + slot];
}

// Which weight a module is, and which of its rows.
typedef struct adapted_module {
    const char *name;
    sinkproof_slot slot;
    size_t first, step;
    bool dense; // of a dense model with gate and up
} adapted_module;
static const adapted_module modules[] = {
    {"self_attn.q_proj", SINKPROOF_W_Q, 0, 1, false},
    {"self_attn.k_proj", SINKPROOF_W_K, 0, 1, false},
    {"self_attn.v_proj", SINKPROOF_W_V, 0, 1, false},
    {"self_attn.o_proj", SINKPROOF_W_O, 0, 1, false},
    {"mlp.gate_proj", SINKPROOF_W_UP, 0, 2, true},
    {"mlp.up_proj", SINKPROOF_W_UP, 1, 2, true},
    {"mlp.down_proj", SINKPROOF_W_DOWN, 0, 1, true},
    {"lm_head", SINKPROOF_UNEMBEDDING, 0, 1, false},
};

// Parses base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight. Returns NULL for any other
// name.
static const adapted_module *parse_name(const sinkproof_config *c, const char *name, size_t *layer,
                                        bool *is_b) {
    static const char head[] = "base_model.model.", stack[] = "model.layers.";
    if (strncmp(name, head, strlen(head)) != 0) return NULL;
    name += strlen(head);
    bool layered = strncmp(name, stack, strlen(stack)) == 0;
    *layer = 0;
    if (layered) {
        int used = 0;
        name += strlen(stack);
        if (*name < '0' || *name > '9' || (name[0] == '0' && name[1] != '.') ||
            sscanf(name, "%6zu.%n", layer, &used) != 1 || used == 0 || *layer >= c->n_layers)
            return NULL;
        name += used;
    }
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const adapted_module *m = &modules[i];
        size_t length = strlen(m->name), count, rows, cols;
        if (layered != (m->slot < SINKPROOF_LAYER_SLOTS) || strncmp(name, m->name, length) != 0)
            continue;
        sinkproof_slot_shape(SINKPROOF_W_UP, c, &count, &rows, &cols);
        if (m->dense && (!c->dense || rows != 2 * c->inter)) continue;
        *is_b = strcmp(name + length, ".lora_B.weight") == 0;
        if (*is_b || strcmp(name + length, ".lora_A.weight") == 0) return m;
    }
    return NULL;
}

static bool check_tensor(const char *path, const sinkproof_tensor *t, size_t rows, size_t cols,
                         sinkproof_error *error) {
    if (t->dtype != SINKPROOF_DTYPE_BF16 && t->dtype != SINKPROOF_DTYPE_F16 &&
        t->dtype != SINKPROOF_DTYPE_F32)
        return sinkproof_fail(error, "%.300s: tensor %.150s: expected BF16, F16 or F32, found %s",
                              path, t->name, sinkproof_dtype_name(t->dtype));
    // rows or cols 0: the rank, which is any
    if (t->rank != 2 || t->shape[0] == 0 || t->shape[1] == 0 ||
        (rows != 0 && t->shape[0] != rows) || (cols != 0 && t->shape[1] != cols))
        return sinkproof_fail(
            error, "%.300s: tensor %.150s: expected a matrix of %zu %s beside the rank", path,
            t->name, rows != 0 ? rows : cols, rows != 0 ? "rows" : "columns");
    for (size_t i = 0; i < sinkproof_tensor_elements(t); i++)
        if (!isfinite(sinkproof_tensor_value(t, i)))
            return sinkproof_fail(error,
                                  "%.300s: tensor %.150s: expected finite numbers, found %g at %zu",
                                  path, t->name, sinkproof_tensor_value(t, i), i);
    return true;
}

static bool read_tensor(sinkproof_adapter *a, const sinkproof_tensor *t, sinkproof_error *error) {
    size_t layer, count, rows, cols;
    bool is_b;
    const adapted_module *m = parse_name(a->config, t->name, &layer, &is_b);
    if (m == NULL)
        return sinkproof_fail(
            error,
            "%.300s: unknown tensor '%.150s': expected lora_A or lora_B of self_attn's q_proj, "
            "k_proj, v_proj or o_proj, of lm_head, or of a dense mlp: merge the adapter into its "
            "model (merge_and_unload), and judge against that",
            a->path, t->name);
    sinkproof_slot_shape(m->slot, a->config, &count, &rows, &cols);
    if (!check_tensor(a->path, t, is_b ? rows / m->step : 0, is_b ? 0 : cols, error)) return false;
    adapted_weight *w = weight_at(a, layer, m->slot);
    size_t i = 0;
    while (i < w->n && w->parts[i].first != m->first) i++;
    if (i == w->n) w->parts[w->n++] = (sinkproof_adapter_part){.first = m->first, .step = m->step};
    *(is_b ? &w->parts[i].b : &w->parts[i].a) = (sinkproof_matrix){.dtype = t->dtype,
                                                                   .count = 1,
                                                                   .rows = t->shape[0],
                                                                   .cols = t->shape[1],
                                                                   .data = t->data,
                                                                   .stack_stride = t->bytes,
                                                                   .row_stride = t->shape[1],
                                                                   .col_stride = 1,
                                                                   .name = t->name};
    return true;
}

// Both matrices of each part are there, of one rank; sets the scales.
static bool complete_part(const sinkproof_adapter *a, sinkproof_adapter_part *p,
                          sinkproof_error *error) {
    const sinkproof_matrix *one = p->a.rows > 0 ? &p->a : &p->b;
    if (p->a.rows == 0 || p->b.rows == 0)
        return sinkproof_fail(error, "%.300s: tensor %.150s: expected %s beside it, found none",
                              a->path, one->name, p->a.rows == 0 ? "lora_A" : "lora_B");
    if (p->a.rows != p->b.cols)
        return sinkproof_fail(error,
                              "%.300s: tensor %.150s: rank %zu, expected that of lora_B, %zu",
                              a->path, one->name, p->a.rows, p->b.cols);
    double rank = (double)p->a.rows;
    if (!a->says.ranks_differ && rank != a->says.rank)
        return sinkproof_fail(error,
                              "%.300s: tensor %.150s: rank %zu, expected %g as \"r\" of "
                              "adapter_config.json says",
                              a->path, one->name, p->a.rows, a->says.rank);
    p->alpha = a->says.alpha, p->by_root = a->says.by_root;
    p->scale = a->says.alpha / (a->says.by_root ? sqrt(rank) : rank);
    return true;
}

static bool read_tensors(sinkproof_adapter *a, sinkproof_error *error) {
    size_t n = sinkproof_safetensors_count(a->file);
    size_t weights = (a->config->n_layers + 1) * SINKPROOF_SLOTS;
    a->at = calloc(weights, sizeof *a->at);
    if (a->at == NULL) return sinkproof_fail(error, "%.300s: no memory for an adapter", a->path);
    bool good = n > 0 || sinkproof_fail(error, "%.300s: expected tensors, found none", a->path);
    for (size_t i = 0; good && i < n; i++)
        good = read_tensor(a, sinkproof_safetensors_at(a->file, i), error);
    for (size_t w = 0; good && w < weights; w++)
        for (size_t i = 0; good && i < a->at[w].n; i++)
            good = complete_part(a, &a->at[w].parts[i], error);
    return good;
}

bool sinkproof_adapter_open(const char *directory, const sinkproof_model *model,
                            sinkproof_adapter **adapter, sinkproof_error *error) {
    static const char name[] = "/adapter_model.safetensors";
    size_t size = strlen(directory) + sizeof name;
    sinkproof_adapter *a = calloc(1, sizeof *a);
    if (a != NULL) a->config = &model->config, a->path = malloc(size);
    bool good = a != NULL && a->path != NULL;
    if (!good) sinkproof_fail(error, "%.300s: no memory for an adapter", directory);
    if (good) snprintf(a->path, size, "%s%s", directory, name);
    good = good && adapter_config_read(directory, &a->says, error) &&
           sinkproof_safetensors_open(a->path, &a->file, error) && read_tensors(a, error);
    *adapter = good ? a : NULL;
    if (!good) sinkproof_adapter_close(a);
    return good;
}

void sinkproof_adapter_close(sinkproof_adapter *adapter) {
    if (adapter == NULL) return;
    if (adapter->file != NULL) sinkproof_safetensors_close(adapter->file);
    free(adapter->path);
    free(adapter->at);
    free(adapter);
}

size_t sinkproof_adapter_parts(const sinkproof_adapter *adapter, size_t layer, sinkproof_slot slot,
                               const sinkproof_adapter_part **parts) {
    if (adapter == NULL) return 0;
    adapted_weight *w = weight_at(adapter, layer, slot);
    *parts = w->parts;
    return w->n;
}

size_t sinkproof_adapter_count(const sinkproof_adapter *adapter, size_t *least, size_t *largest) {
    size_t all = 0, weights = (adapter->config->n_layers + 1) * SINKPROOF_SLOTS;
    *least = SIZE_MAX, *largest = 0;
    for (size_t w = 0; w < weights; w++)
        for (size_t i = 0; i < adapter->at[w].n; i++, all++) {
            size_t rank = adapter->at[w].parts[i].a.rows;
            *least = rank < *least ? rank : *least;
            *largest = rank > *largest ? rank : *largest;
        }
    return all;
}
