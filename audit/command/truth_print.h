// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tables of `sinkproof truth`.
#ifndef SINKPROOF_COMMAND_TRUTH_PRINT_H
#define SINKPROOF_COMMAND_TRUTH_PRINT_H

#include "audit/verify/truth_study.h"

#include <stdio.h>

void truth_power_of_two(char text[32], double log2_value);
void truth_print_points(FILE *out, const truth_study *study);
void truth_print_distances(FILE *out, const truth_study *study);
void truth_print_logits(FILE *out, arb_srcptr logit_v, size_t vocab, slong bits);
void truth_print_ball(FILE *out, const char *what, arb_srcptr ball);
void truth_print_routing(FILE *out, const sinkproof_truth_routing *routing);

#endif
