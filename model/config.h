// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers that define a model (model.config), read from config.json in the layout of
// any container that has one.
#ifndef SINKPROOF_CONFIG_H
#define SINKPROOF_CONFIG_H

#include "base/error.h"
#include "model/architecture.h"

#include <stddef.h>
#include <stdint.h>

enum { SINKPROOF_MAX_LAYERS = 512 };

//> model.config
typedef struct sinkproof_config {
    sinkproof_architecture architecture;
    size_t n_layers, n_experts, n_chosen; // n_chosen: experts per token
    size_t vocab, hidden, inter;          // inter: width of one expert
    size_t n_heads, n_kv_heads, head_dim, window;
    size_t max_context;
    sinkproof_norm_kind norm;
    double rms_eps; // of every norm
    sinkproof_rotation rotation;
    sinkproof_activation activation;
    sinkproof_swiglu_numbers swiglu;
    bool dense; // one perceptron takes all tokens; else each goes to n_chosen of n_experts
    sinkproof_unbiased unbiased;
    bool head_norms;                    // of each head's query and key, before they are rotated
    bool tied;                          // the unembedding is the embedding
    size_t sink;                        // which of model/sinks.h's kinds
    bool sliding[SINKPROOF_MAX_LAYERS]; // layer l sees only the last `window` keys
    char unstated[512]; // keys left to the published default: "rope_theta 150000, truncate true"
} sinkproof_config;
//< model.config

// Reads `path`. Every dimension is positive, products fit in memory's address range,
// head_dim is even, n_kv_heads divides n_heads, n_chosen <= n_experts: or an error.
bool config_read(const char *path, sinkproof_config *config, sinkproof_error *error);

// The same from text of `length` bytes; `name` is used in errors.
bool config_parse(const char *text, size_t length, const char *name, sinkproof_config *config,
                  sinkproof_error *error);

// Sets the properties of GPT-2 that follow neither from keys nor from sizes: no sink, full
// attention, as many key/value heads as heads, one perceptron.
void config_make_gpt2(sinkproof_config *config);
// And what makes one Llama's: plain rotation, SwiGLU without a clamp and an offset, one perceptron,
// no sink, full attention, no biases.
void config_make_llama(sinkproof_config *config);

// Checks the conditions above for any configuration; `name` is used in errors.
bool sinkproof_config_check(const sinkproof_config *config, const char *name,
                            sinkproof_error *error);

// As in the released models: layers 0, 2, 4, ... slide.
void config_alternate_windows(sinkproof_config *config);

// Writes a container's config.json, for experts in MXFP4 or not. Values that its layout cannot
// express are an error (in the original layout another pattern of layers, epsilon, alpha or
// truncation than the released ones).
struct sinkproof_container; // model/container.h
bool config_write(const char *path, const sinkproof_config *config,
                  const struct sinkproof_container *container, bool mxfp4, sinkproof_error *error);

// "tiny", "gpt-oss-20b", "gpt-oss-120b", "tiny-gpt2", "gpt2", "tiny-llama", "tiny-qwen3", and the
// planted ones of model/planted.c, "gpt2-circuit" and "gpt2-null"; false for any other name.
bool sinkproof_config_named(const char *name, sinkproof_config *config);

#endif
