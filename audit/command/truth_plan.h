// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof truth --plan`: what the products of a run at a precision will do, from the weights as
// they are: the spread of their exponents, the slices, the multiply-adds. Nothing is multiplied.
#ifndef SINKPROOF_COMMAND_TRUTH_PLAN_H
#define SINKPROOF_COMMAND_TRUTH_PLAN_H

#include "audit/command/command.h"
#include "model/model.h"

// Prints the plan, or writes it to `json` (NULL: no JSON, "-": only JSON); returns the exit code.
// Of n tokens also the memory; n may be 0.
int truth_plan_print(const sinkproof_model *model, const char *name, size_t n, long bits,
                     const char *json);

// A run that needs more than this machine's memory is refused before it begins.
bool truth_fits_in_memory(const sinkproof_model *model, size_t n, long bits,
                          sinkproof_error *error);

#endif
