// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads the sizes of a model from the names and shapes of a trace's tensors.
#include "audit/studies/sinks/trace_shapes.h"

#include "audit/trace/trace_points.h"
#include "model/safetensors.h"

#include <stdio.h>

enum { MOST = 1 << 30 }; // that a configuration may have of anything

// Sizes that were seen; 0: not yet.
typedef struct shapes {
    size_t layers, heads, groups, head_dim, hidden, inter, experts, chosen, vocab;
    bool rotated, plain, normed; // A4 of some layer; A2.q or A2.k; A3
} shapes;

// Takes a size that must be the same wherever it is seen.
static bool take_size(const char *path, const sinkproof_tensor *tensor, size_t dimension,
                      size_t divisor, size_t *size, sinkproof_error *error) {
    size_t found = tensor->shape[dimension];
    if (found % divisor == 0 && found > 0 && (*size == 0 || *size == found / divisor)) {
        *size = found / divisor;
        return true;
    }
    return sinkproof_fail(error,
                          "%.300s: tensor %s: expected %zu in dimension %zu, as other tensors have "
                          "it, found %zu",
                          path, tensor->name, *size * divisor, dimension, found);
}

static bool take_tensor(const char *path, const sinkproof_tensor *tensor, shapes *s,
                        sinkproof_error *error) {
    sinkproof_trace_point point;
    size_t layer, rank = tensor->rank;
    if (!sinkproof_trace_name_parse(tensor->name, &point, &layer)) return true;
    if (sinkproof_trace_point_is_layered(point) && layer < SINKPROOF_MAX_LAYERS &&
        layer >= s->layers)
        s->layers = layer + 1;
    switch (point) {
    case TRACE_T0:
    case TRACE_A1:
    case TRACE_A13:
    case TRACE_M1:
    case TRACE_M12:
    case TRACE_F1:
        return rank != 2 || take_size(path, tensor, 1, 1, &s->hidden, error);
    case TRACE_A9:
    case TRACE_A10:
        return rank != 3 || take_size(path, tensor, 0, 1, &s->heads, error);
    case TRACE_A2_Q:
    case TRACE_A3_Q:
    case TRACE_A4_Q:
    case TRACE_A11:
        s->rotated = s->rotated || point == TRACE_A4_Q;
        s->normed = s->normed || point == TRACE_A3_Q;
        s->plain = s->plain || point == TRACE_A2_Q;
        return rank != 3 || (take_size(path, tensor, 1, 1, &s->heads, error) &&
                             take_size(path, tensor, 2, 1, &s->head_dim, error));
    case TRACE_A2_K:
    case TRACE_A3_K:
    case TRACE_A4_K:
    case TRACE_A2_V:
        s->rotated = s->rotated || point == TRACE_A4_K;
        s->normed = s->normed || point == TRACE_A3_K;
        s->plain = s->plain || point == TRACE_A2_K;
        return rank != 3 || (take_size(path, tensor, 1, 1, &s->groups, error) &&
                             take_size(path, tensor, 2, 1, &s->head_dim, error));
    case TRACE_M2:
        return rank != 2 || take_size(path, tensor, 1, 1, &s->experts, error);
    case TRACE_M3:
    case TRACE_M4:
        return rank != 2 || take_size(path, tensor, 1, 1, &s->chosen, error);
    case TRACE_F2:
        return rank != 2 || take_size(path, tensor, 1, 1, &s->vocab, error);
    case TRACE_M6:
    case TRACE_M8:
    case TRACE_M10: // of chosen experts, one beside the other, or of one perceptron
        if (rank == 3 && !take_size(path, tensor, 1, 1, &s->chosen, error)) return false;
        if (rank == 3 && point == TRACE_M6) return take_size(path, tensor, 2, 2, &s->inter, error);
        return rank < 2 || point != TRACE_M8 ||
               take_size(path, tensor, rank - 1, 1, &s->inter, error);
    default:
        return true;
    }
}

static size_t or_else(size_t size, size_t other) {
    return size > 0 ? size : other;
}

bool sinkproof_trace_shapes(const char *path, sinkproof_config *config, sinkproof_error *error) {
    sinkproof_safetensors *file;
    shapes s = {0};
    if (!sinkproof_safetensors_open_parts(path, &file, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < sinkproof_safetensors_count(file); i++)
        good = take_tensor(path, sinkproof_safetensors_at(file, i), &s, error);
    sinkproof_safetensors_close(file);
    if (!good) return false;
    if (s.layers == 0)
        return sinkproof_fail(error, "%.300s: expected points of a layer, found none", path);
    bool experts = s.experts > 0 || s.chosen > 0;
    bool rotates = s.rotated || s.normed || !s.plain;
    sinkproof_config_named(experts ? "tiny" : rotates ? "tiny-llama" : "tiny-gpt2", config);
    config->head_norms = s.normed;
    config->n_layers = s.layers;
    config->n_heads = or_else(s.heads, or_else(s.groups, 1));
    config->n_kv_heads = or_else(s.groups, config->n_heads);
    config->head_dim = or_else(s.head_dim, 2);
    config->hidden = or_else(s.hidden, 1);
    if (s.inter > 0) config->inter = s.inter;
    if (experts) config->n_experts = or_else(s.experts, s.chosen);
    if (experts) config->n_chosen = or_else(s.chosen, 1);
    config->vocab = or_else(s.vocab, MOST);
    config->max_context = config->window = MOST;
    for (size_t l = 0; l < SINKPROOF_MAX_LAYERS; l++) config->sliding[l] = false;
    config->sink = 0;
    return sinkproof_config_check(config, path, error);
}
