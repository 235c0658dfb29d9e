// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The loss of a run and its gradients: the cross-entropy of the next tokens, or gradients from a
// file, which says what a loss of its reader's has at the logits (dF2), at the output of attention
// (03.dA11) and at a head's log-sum-exp (03.dA9.lse, with the sink, or 03.dA9.lse-keys).
#include "audit/command/backward.h"

#include "audit/trace/gradients.h"
#include "base/words.h"
#include "ref/backward/backward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool backward_allows(const char *engine, sinkproof_error *error) {
    return strcmp(engine, "ref") == 0 ||
           sinkproof_fail(error, "--backward: engine %s has no backward pass: expected ref",
                          engine);
}

// The gradients of a file, in binary64.
typedef struct given {
    double *dlogits_nv, **do_lnhd, **dlse_lhn, **dlse_keys_lhn;
    size_t n_layers;
} given;

static bool given_new(size_t n_layers, given *g, sinkproof_error *error) {
    *g = (given){.n_layers = n_layers};
    g->do_lnhd = calloc(n_layers, sizeof *g->do_lnhd);
    g->dlse_lhn = calloc(n_layers, sizeof *g->dlse_lhn);
    g->dlse_keys_lhn = calloc(n_layers, sizeof *g->dlse_keys_lhn);
    return (g->do_lnhd != NULL && g->dlse_lhn != NULL && g->dlse_keys_lhn != NULL) ||
           sinkproof_fail(error, "no memory for gradients");
}

static void given_free(given *g) {
    for (size_t l = 0; l < g->n_layers; l++) {
        if (g->do_lnhd != NULL) free(g->do_lnhd[l]);
        if (g->dlse_lhn != NULL) free(g->dlse_lhn[l]);
        if (g->dlse_keys_lhn != NULL) free(g->dlse_keys_lhn[l]);
    }
    free(g->do_lnhd);
    free(g->dlse_lhn);
    free(g->dlse_keys_lhn);
    free(g->dlogits_nv);
}

// Where a loss may have a gradient of its own; NULL: nowhere.
static double **place_of(given *g, const sinkproof_gradient *gradient) {
    if (gradient->of_weight || gradient->layer >= g->n_layers) return NULL;
    switch (gradient->point) {
    case TRACE_F2:
        return &g->dlogits_nv;
    case TRACE_A11:
        return &g->do_lnhd[gradient->layer];
    case TRACE_LSE:
        return &g->dlse_lhn[gradient->layer];
    case TRACE_LSE_KEYS:
        return &g->dlse_keys_lhn[gradient->layer];
    default:
        return NULL;
    }
}

static bool same_shape(const sinkproof_tensor *tensor, size_t rank, const size_t *shape) {
    bool same = tensor->rank == rank;
    for (size_t r = 0; same && r < rank; r++) same = tensor->shape[r] == shape[r];
    return same;
}

static bool read_given(const char *path, const sinkproof_config *config, size_t n,
                       const sinkproof_tensor *tensor, given *g, sinkproof_error *error) {
    sinkproof_gradient gradient;
    size_t shape[SINKPROOF_MAX_RANK], rank;
    double **place =
        sinkproof_gradient_parse(tensor->name, &gradient) ? place_of(g, &gradient) : NULL;
    if (place == NULL)
        return sinkproof_fail(error,
                              "%.300s: tensor %.100s: expected dF2, or of a layer below %zu dA11, "
                              "dA9.lse or dA9.lse-keys, as 00.dA11",
                              path, tensor->name, config->n_layers);
    rank = sinkproof_gradient_shape_in(config, &gradient, 0, n, shape);
    if (!same_shape(tensor, rank, shape))
        return sinkproof_fail(error, "%.300s: tensor %.100s: expected the shape of its point in %s",
                              path, tensor->name, sinkproof_counted(n, "token").text);
    size_t count = sinkproof_tensor_elements(tensor);
    *place = calloc(count, sizeof **place);
    if (*place == NULL) return sinkproof_fail(error, "no memory for gradients");
    for (size_t i = 0; i < count; i++) {
        (*place)[i] = sinkproof_tensor_value(tensor, i);
        if (!isfinite((*place)[i]))
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: element %zu: expected a number, found %g",
                                  path, tensor->name, i, (*place)[i]);
    }
    return true;
}

static bool is_float(sinkproof_dtype dtype) {
    return dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16 ||
           dtype == SINKPROOF_DTYPE_F32 || dtype == SINKPROOF_DTYPE_F64;
}

static bool read_file(const char *path, const sinkproof_config *config, size_t n, given *g,
                      sinkproof_error *error) {
    sinkproof_safetensors *file;
    if (!sinkproof_safetensors_open(path, &file, error)) return false;
    size_t count = sinkproof_safetensors_count(file);
    bool good = count > 0 || sinkproof_fail(error, "%.300s: expected gradients, found none", path);
    for (size_t i = 0; good && i < count; i++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(file, i);
        good = is_float(tensor->dtype)
                   ? read_given(path, config, n, tensor, g, error)
                   : sinkproof_fail(error,
                                    "%.300s: tensor %.100s: expected dtype BF16, F16, F32 or F64, "
                                    "found %s",
                                    path, tensor->name, sinkproof_dtype_name(tensor->dtype));
    }
    sinkproof_safetensors_close(file);
    return good;
}

// Every token's target is the next one; the last has none.
static bool next_token_loss(const sinkproof_activations *a, size_t vocab, given *g,
                            backward_loss *loss, sinkproof_error *error) {
    int32_t *targets_n = calloc(a->n, sizeof *targets_n);
    g->dlogits_nv = calloc(a->n * vocab, sizeof *g->dlogits_nv);
    bool good = targets_n != NULL && g->dlogits_nv != NULL;
    if (!good) sinkproof_fail(error, "no memory for the loss");
    if (a->n < 2)
        good = sinkproof_fail(error, "--backward: expected two tokens or more: the loss is of the "
                                     "next token, and the last has none");
    for (size_t t = 0; good && t < a->n; t++) targets_n[t] = t + 1 < a->n ? a->tokens_n[t + 1] : -1;
    if (good)
        *loss = (backward_loss){
            .value = sinkproof_cross_entropy(a->n, vocab, sinkproof_activations_at(a, 0, TRACE_F2),
                                             targets_n, g->dlogits_nv),
            .tokens = a->n - 1};
    free(targets_n);
    return good;
}

static void add_to_trace(void *context, const char *name, size_t rank, const size_t *shape,
                         const double *values) {
    if (context != NULL) sinkproof_trace_writer_add(context, name, rank, shape, values);
}

// The points that the loss of a file reads, "F2,03.A9.lse"; where they have no room, all points of
// which a file may have a gradient.
static void say_loss(const char *file, const given *g, sinkproof_trace_writer *writer) {
    char said[2048] = "";
    size_t used = 0;
    const struct {
        const char *name;
        double *const *at_l;
    } of[] = {{"A11", g->do_lnhd}, {"A9.lse", g->dlse_lhn}, {"A9.lse-keys", g->dlse_keys_lhn}};
    if (writer == NULL) return;
    if (file == NULL) {
        sinkproof_trace_writer_loss(writer, "cross-entropy");
        return;
    }
    if (g->dlogits_nv != NULL) used += (size_t)snprintf(said, sizeof said, "F2,");
    for (size_t i = 0; i < 3; i++)
        for (size_t l = 0; l < g->n_layers && used < sizeof said; l++)
            if (of[i].at_l[l] != NULL)
                used +=
                    (size_t)snprintf(said + used, sizeof said - used, "%02zu.%s,", l, of[i].name);
    if (used >= sizeof said)
        used = (size_t)snprintf(said, sizeof said, "F2,A11,A9.lse,A9.lse-keys,");
    said[used - 1] = '\0';
    sinkproof_trace_writer_loss(writer, said);
}

bool backward_run(const sinkproof_model *model, const sinkproof_policy *policy,
                  const sinkproof_activations *activations, const char *file,
                  sinkproof_trace_writer *writer, backward_loss *loss, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_gradient_observer observer = {.see = add_to_trace, .context = writer};
    given g;
    *loss = (backward_loss){.value = NAN};
    bool good = given_new(config->n_layers, &g, error) &&
                (file != NULL ? read_file(file, config, activations->n, &g, error)
                              : next_token_loss(activations, config->vocab, &g, loss, error));
    sinkproof_loss_gradients gradients = {
        .dlogits_nv = g.dlogits_nv,
        .do_lnhd = (const double *const *)g.do_lnhd,
        .dlse_lhn = (const double *const *)g.dlse_lhn,
        .dlse_keys_lhn = (const double *const *)g.dlse_keys_lhn,
        .policy = policy,
    };
    if (good) say_loss(file, &g, writer);
    good = good && sinkproof_backward(model, activations, &gradients, &observer, error);
    given_free(&g);
    return good;
}
