// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Parts of the parser of policies.
#ifndef SINKPROOF_POLICY_ROUNDING_H
#define SINKPROOF_POLICY_ROUNDING_H

#include "ref/policy.h"

// Appends ", WORD" (or WORD alone at the start) to a list that stays inside its buffer.
void append_word(char *list, size_t size, const char *word);

// Parses one of the first `known` formats.
bool parse_format(const char *word, int known, sinkproof_format *format);

// "bf16", "bf16?", "real" (absent); for an operand of a product also "tf32", "e4m3(head)" and their
// like, of a stored weight "q8_0" and "weight"; for a running sum "tensor-core(25,16)" and
// "hopper". `value` is changed.
bool parse_rounding(sinkproof_point point, char *value, sinkproof_rounding *rounding,
                    sinkproof_error *error);

// The value of "acc=hopper": every running sum.
bool parse_every_sum(const char *value, sinkproof_policy *policy, sinkproof_error *error);

// The value of "ranks=2": what each rank computes of a layer's outputs may be rounded before all
// are added.
bool parse_ranks(const char *value, sinkproof_policy *policy, sinkproof_error *error);

// The value of "slices=2": the same of tensor parallelism that mixes the experts before it adds the
// ranks.
bool parse_slices(const char *value, sinkproof_policy *policy, sinkproof_error *error);

#endif
