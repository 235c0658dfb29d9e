// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of an engine that has a low-rank adapter beside its weights.
#ifndef SINKPROOF_ADAPTER_MISTAKES_H
#define SINKPROOF_ADAPTER_MISTAKES_H

#include "audit/diagnose/mistakes.h"

size_t adapter_mistake_count(void);
const known_mistake *adapter_mistake_at(size_t i);

#endif
