// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What tells one architecture from another: the kinds of its norms, activation and rotation with
// their numbers, and the biases that it leaves out. A configuration holds them; every computation
// asks for the kind or the number that it depends on, never for the architecture's name. Zero means
// GPT-OSS in every kind.
#ifndef SINKPROOF_ARCHITECTURE_H
#define SINKPROOF_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

// The published models that containers know. The number is part of a model's fingerprint.
typedef enum sinkproof_architecture {
    SINKPROOF_GPT_OSS,
    SINKPROOF_GPT2,
    SINKPROOF_LLAMA, // and what differs from it by biases, head norms or windows: Qwen, Mistral
    SINKPROOF_ARCHITECTURES
} sinkproof_architecture;

const char *sinkproof_architecture_name(sinkproof_architecture architecture); // "GPT-OSS"

typedef enum sinkproof_norm_kind {
    SINKPROOF_RMSNORM,
    SINKPROOF_LAYERNORM, // subtracts the mean and adds a shift
} sinkproof_norm_kind;

// Of a perceptron: SwiGLU takes pairs, gate and up; GELU activates each number alone.
typedef enum sinkproof_activation {
    SINKPROOF_SWIGLU,
    SINKPROOF_GELU,
} sinkproof_activation;

// SwiGLU: g sigmoid(alpha g) (u + offset), g <= limit, |u| <= limit.
typedef struct sinkproof_swiglu_numbers {
    double alpha, limit, offset; // limit: infinity for no clamp
} sinkproof_swiglu_numbers;

// How queries and keys learn their positions.
typedef enum sinkproof_rotation_kind {
    SINKPROOF_YARN,
    SINKPROOF_PLAIN_ROTATION,  // the frequencies theta^(-2 d / head_dim), no concentration
    SINKPROOF_LLAMA3_ROTATION, // slow ones divided by the factor, between two numbers of turns
    SINKPROOF_NO_ROTATION,     // a learned row of each position joins the embedding instead
} sinkproof_rotation_kind;

typedef struct sinkproof_rotation {
    sinkproof_rotation_kind kind;
    double theta; // base of the frequencies
    // YaRN's, and Llama 3's: a pair that turns more often than beta_fast within the original
    // context keeps its frequency, one that turns less often than beta_slow has it divided by the
    // factor
    double factor, beta_fast, beta_slow;
    size_t original_context; // positions that the frequencies were trained on
    bool truncate;           // floor and ceil the ends of the ramp
} sinkproof_rotation;

// The linear layers that have no bias.
typedef struct sinkproof_unbiased {
    bool qkv, output, perceptron; // perceptron: of a dense model
} sinkproof_unbiased;

#endif
