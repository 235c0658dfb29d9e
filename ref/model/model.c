// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Opening a model: a directory is read through checkpoint.h, "synthetic:..." is made.
#include "ref/model/model.h"

#include "ref/model/checkpoint.h"
#include "ref/model/mxfp4.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// "seed" or "layers" of a synthetic model: decimal digits only.
static bool parse_number(const char *text, const char *spec, uint64_t *number,
                         sinkproof_error *error) {
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0) return true;
    return sinkproof_fail(error, "%s: expected a whole number, found \"%s\"", spec, text);
}

static bool parse_options(char *options, const char *spec, uint64_t *seed, uint64_t *layers,
                          sinkproof_error *error) {
    char *rest = NULL;
    for (char *word = strtok_r(options, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        bool known = true, good = true;
        if (strncmp(word, "seed=", 5) == 0)
            good = parse_number(word + 5, spec, seed, error);
        else if (strncmp(word, "layers=", 7) == 0)
            good = parse_number(word + 7, spec, layers, error);
        else
            known = false;
        if (!known)
            return sinkproof_fail(error, "%s: expected seed=N or layers=N, found \"%s\"", spec,
                                  word);
        if (!good) return false;
    }
    return true;
}

// NAME[,seed=N][,layers=N] into config and seed. More layers than NAME has alternate on.
static bool parse_synthetic(const char *spec, sinkproof_config *config, uint64_t *seed,
                            sinkproof_error *error) {
    char *text = strdup(spec + strlen("synthetic:"));
    if (text == NULL) return sinkproof_fail(error, "%s: out of memory", spec);
    char *comma = strchr(text, ',');
    uint64_t layers = UINT64_MAX; // as many as NAME has
    *seed = 0;
    if (comma != NULL) *comma = '\0';
    bool good = comma == NULL || parse_options(comma + 1, spec, seed, &layers, error);
    if (good && !sinkproof_config_named(text, config)) {
        struct stat status;
        good = stat(text, &status) == 0;
        if (!good)
            sinkproof_fail(error,
                           "%s: expected tiny, gpt-oss-20b, gpt-oss-120b or the path of a "
                           "config.json, found \"%s\"",
                           spec, text);
        good = good && sinkproof_config_read(text, config, error);
    }
    free(text);
    if (!good) return false;
    for (size_t l = config->n_layers; l < SINKPROOF_MAX_LAYERS; l++)
        config->sliding[l] = l % 2 == 0;
    if (layers != UINT64_MAX) config->n_layers = (size_t)layers;
    if (!sinkproof_config_check(config, spec, error)) return false;
    if (config->hidden % SINKPROOF_MXFP4_BLOCK == 0 && config->inter % SINKPROOF_MXFP4_BLOCK == 0)
        return true;
    return sinkproof_fail(error,
                          "%s: expected widths that are multiples of 32 for MXFP4, found "
                          "hidden %zu and experts' %zu",
                          spec, config->hidden, config->inter);
}

static bool add_name(sinkproof_model *model, size_t l, sinkproof_slot slot) {
    char text[64];
    if (slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(text, sizeof text, "%s", sinkproof_slot_name(slot));
    else
        snprintf(text, sizeof text, "layer.%zu.%s", l, sinkproof_slot_name(slot));
    model->names[model->n_names] = strdup(text);
    return model->names[model->n_names++] != NULL;
}

static bool make_synthetic(sinkproof_model *model, sinkproof_error *error) {
    size_t n_layers = model->config.n_layers;
    model->names = calloc(n_layers * SINKPROOF_LAYER_SLOTS + 3, sizeof *model->names);
    bool good = model->names != NULL;
    for (size_t l = 0; good && l <= n_layers; l++) // the last round: what is outside the layers
        for (int s = l < n_layers ? 0 : SINKPROOF_LAYER_SLOTS;
             good && s < (l < n_layers ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS); s++) {
            sinkproof_slot slot = (sinkproof_slot)s;
            sinkproof_matrix *out = l < n_layers ? sinkproof_slot_of(&model->layers[l], slot)
                                                 : &model->outside[s - SINKPROOF_LAYER_SLOTS];
            good = add_name(model, l, slot);
            // the layer of an outside stream is 0, whatever the number of layers
            *out =
                sinkproof_synthetic_matrix(&model->synthetic, &model->config, l < n_layers ? l : 0,
                                           slot, good ? model->names[model->n_names - 1] : "");
        }
    return good || sinkproof_fail(error, "%s: out of memory", model->spec);
}

static bool open_directory(sinkproof_model *model, bool *hf, sinkproof_error *error) {
    size_t length = strlen(model->spec) + sizeof "/config.json";
    char *path = malloc(length);
    if (path == NULL) return sinkproof_fail(error, "%s: out of memory", model->spec);
    snprintf(path, length, "%s/config.json", model->spec);
    bool good = sinkproof_config_read_layout(path, &model->config, hf, error);
    free(path);
    return good && sinkproof_checkpoint_open(model->spec, *hf, &model->checkpoint, error);
}

bool sinkproof_model_inspect(const char *spec, sinkproof_model **model, sinkproof_error *error) {
    bool synthetic = strncmp(spec, "synthetic:", strlen("synthetic:")) == 0, hf = false;
    uint64_t seed = 0;
    *model = NULL;
    sinkproof_model *made = calloc(1, sizeof *made);
    if (made == NULL) return sinkproof_fail(error, "%s: out of memory", spec);
    made->spec = strdup(spec);
    made->layout = "synthetic";
    bool good = made->spec != NULL || sinkproof_fail(error, "%s: out of memory", spec);
    good = good && (synthetic ? parse_synthetic(spec, &made->config, &seed, error)
                              : open_directory(made, &hf, error));
    if (good) made->layers = calloc(made->config.n_layers, sizeof *made->layers);
    if (good && made->layers == NULL) good = sinkproof_fail(error, "%s: out of memory", spec);
    if (good && synthetic) {
        sinkproof_synthetic_init(&made->synthetic, &made->config, seed);
        good = make_synthetic(made, error);
    } else if (good)
        good = sinkproof_checkpoint_map(made, hf, error);
    if (good)
        *model = made;
    else
        sinkproof_model_close(made);
    return good;
}

// The first sentence is the error.
static bool refuse(void *context, const char *sentence) {
    sinkproof_error **error = context;
    sinkproof_fail(*error, "%s", sentence);
    *error = NULL; // heard
    return false;
}

bool sinkproof_model_open(const char *spec, sinkproof_model **model, sinkproof_error *error) {
    sinkproof_error unused, *told = error != NULL ? error : &unused;
    if (!sinkproof_model_inspect(spec, model, error)) return false;
    sinkproof_model_not_finite(*model, refuse, &told);
    if (told != NULL) return true;
    sinkproof_model_close(*model);
    *model = NULL;
    return false;
}

void sinkproof_model_close(sinkproof_model *model) {
    if (model == NULL) return;
    if (!model->view) {
        sinkproof_checkpoint_close(&model->checkpoint);
        for (size_t i = 0; i < model->n_names; i++) free(model->names[i]);
        free(model->names);
        free(model->spec);
    }
    free(model->layers);
    free(model);
}

const char *sinkproof_model_spec(const sinkproof_model *model) {
    return model->spec;
}

const sinkproof_config *sinkproof_model_config(const sinkproof_model *model) {
    return &model->config;
}

sinkproof_layer sinkproof_model_layer(const sinkproof_model *model, size_t l) {
    return model->layers[l];
}

sinkproof_matrix sinkproof_model_embedding(const sinkproof_model *model) {
    return model->outside[0];
}

sinkproof_matrix sinkproof_model_final_norm(const sinkproof_model *model) {
    return model->outside[1];
}

sinkproof_matrix sinkproof_model_unembedding(const sinkproof_model *model) {
    return model->outside[2];
}

const char *sinkproof_model_layout(const sinkproof_model *model) {
    return model->layout;
}

size_t sinkproof_model_odd_count(const sinkproof_model *model) {
    return model->checkpoint.n_odd;
}

const char *sinkproof_model_odd(const sinkproof_model *model, size_t i) {
    return model->checkpoint.odd[i];
}
