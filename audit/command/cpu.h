// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The optimized path on this machine: processor, instruction sets and why some do not run, the
// chosen set, threads, pages, caches.
#ifndef SINKPROOF_CPU_H
#define SINKPROOF_CPU_H

#include "audit/command/command.h"

// The number of processors that this process may use.
int cpu_processors(void);

// `sinkproof info --cpu`: prints it, or writes it to `json` (NULL: no JSON, "-": only JSON).
// Returns EXIT_USAGE when SINKPROOF_ISA names no table that runs here.
int cmd_info_cpu(const char *json);

#endif
