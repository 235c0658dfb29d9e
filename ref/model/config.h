// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers that define a GPT-OSS model (model.config), read from config.json in
// either layout: OpenAI's original, or Hugging Face's with `rope_scaling` or
// `rope_parameters`.
#ifndef SINKPROOF_CONFIG_H
#define SINKPROOF_CONFIG_H

#include "ref/error.h"

#include <stddef.h>
#include <stdint.h>

enum { SINKPROOF_MAX_LAYERS = 512 };

typedef struct sinkproof_config {
    size_t n_layers, n_experts, n_chosen; // n_chosen: experts per token
    size_t vocab, hidden, inter;          // inter: width of one expert
    size_t n_heads, n_kv_heads, head_dim, window;
    double swiglu_alpha, swiglu_limit, rms_eps;
    double rope_theta, yarn_factor, yarn_beta_fast, yarn_beta_slow;
    size_t yarn_original_context, max_context;
    bool yarn_truncate;                    // floor and ceil the ends of the ramp
    bool sliding[SINKPROOF_MAX_LAYERS];    // layer l sees only the last `window` keys
} sinkproof_config;

// Reads `path`. Every dimension is positive, products fit in memory's address range,
// head_dim is even, n_kv_heads divides n_heads, n_chosen <= n_experts: or an error.
bool sinkproof_config_read(const char *path, sinkproof_config *config, sinkproof_error *error);

// The same from text of `length` bytes; `name` stands in error sentences.
bool sinkproof_config_parse(const char *text, size_t length, const char *name,
                            sinkproof_config *config, sinkproof_error *error);

// Writes config.json in the Hugging Face layout (hf) or OpenAI's.
bool sinkproof_config_write(const char *path, const sinkproof_config *config, bool hf,
                            sinkproof_error *error);

// "tiny", "gpt-oss-20b", "gpt-oss-120b"; false for any other name.
bool sinkproof_config_named(const char *name, sinkproof_config *config);

#endif
