// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the optimized path finds on this machine: processor, instruction sets and why one does not
// run, the set chosen, threads, pages, caches.
#ifndef SINKPROOF_CPU_H
#define SINKPROOF_CPU_H

#include "audit/command/command.h"

// `sinkproof info --cpu`: prints it, or writes it to `json` (NULL: no JSON, "-": JSON alone).
// SINKPROOF_USAGE when SINKPROOF_ISA names no table that runs here.
int sinkproof_info_cpu(const char *json);

#endif
