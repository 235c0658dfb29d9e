// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The architectures that a configuration may be of, a row of properties each. What depends on the
// architecture asks for the property that it depends on, never for the name.
#ifndef SINKPROOF_ARCHITECTURE_H
#define SINKPROOF_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sinkproof_architecture {
    SINKPROOF_GPT_OSS,
    SINKPROOF_GPT2,
    SINKPROOF_ARCHITECTURES
} sinkproof_architecture;

typedef struct sinkproof_traits {
    const char *name; // "GPT-OSS"
    bool rotates;     // queries and keys by their position; else a learned row joins the embedding
    bool routes;      // each token to some of many experts; else one perceptron takes all tokens
    bool gated;       // the perceptron's rows are pairs, gate and up; else each is activated alone
    bool centres;     // norms subtract the mean and add a shift (LayerNorm); else neither (RMSNorm)
} sinkproof_traits;

struct sinkproof_config; // model/config.h
const sinkproof_traits *sinkproof_traits_of(const struct sinkproof_config *config);

#endif
