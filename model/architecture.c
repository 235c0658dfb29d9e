// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of architectures.
#include "model/architecture.h"

static const char *const names[SINKPROOF_ARCHITECTURES] = {
    [SINKPROOF_GPT_OSS] = "GPT-OSS",
    [SINKPROOF_GPT2] = "GPT-2",
    [SINKPROOF_LLAMA] = "Llama",
};

const char *sinkproof_architecture_name(sinkproof_architecture architecture) {
    return names[architecture];
}
