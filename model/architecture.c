// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The table of architectures.
#include "model/architecture.h"

#include "model/config.h"

static const sinkproof_traits traits[SINKPROOF_ARCHITECTURES] = {
    [SINKPROOF_GPT_OSS] = {"GPT-OSS", .rotates = true, .routes = true, .gated = true},
    [SINKPROOF_GPT2] = {"GPT-2", .centres = true},
};

const sinkproof_traits *sinkproof_traits_of(const sinkproof_config *config) {
    return &traits[config->architecture];
}
