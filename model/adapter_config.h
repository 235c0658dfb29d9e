// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What adapter_config.json says of a low-rank adapter. Private to model/.
#ifndef SINKPROOF_ADAPTER_CONFIG_H
#define SINKPROOF_ADAPTER_CONFIG_H

#include "base/error.h"

#include <stdbool.h>

typedef struct adapter_config {
    double rank, alpha;
    bool by_root;      // the scale is alpha / sqrt(rank)
    bool ranks_differ; // modules may have other ranks
} adapter_config;

bool adapter_config_read(const char *directory, adapter_config *config, sinkproof_error *error);

#endif
