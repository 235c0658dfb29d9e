// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tables of `sinkproof truth`.
#ifndef SINKPROOF_COMMAND_TRUTH_PRINT_H
#define SINKPROOF_COMMAND_TRUTH_PRINT_H

#include "audit/verify/truth_study.h"

#include <jansson.h>
#include <stdio.h>

void truth_power_of_two(char text[32], double log2_value);
void truth_print_points(FILE *out, const truth_study *study);
json_t *truth_points_json(const truth_study *study);
void truth_print_distances(FILE *out, const truth_study *study);
void truth_print_logits(FILE *out, arb_srcptr logit_v, size_t vocab, slong bits);
void truth_print_ball(FILE *out, const char *what, arb_srcptr ball);
// The argmax of every token: how many are certified, and the thinnest gap to another logit.
typedef struct truth_argmaxes {
    size_t n, certified;
    size_t first_open, thinnest; // tokens; first_open is n if all are certified
    double gap;                  // a lower bound of the thinnest gap, rounded down; below 0: open
} truth_argmaxes;
truth_argmaxes truth_count_argmaxes(const sinkproof_truth_result *result, slong bits);
void truth_print_argmaxes(FILE *out, const truth_argmaxes *all);
json_t *truth_argmaxes_json(const truth_argmaxes *all);
// The results of products that were checked with GMP.
void truth_print_checks(FILE *out, const sinkproof_truth_checks *checks);
json_t *truth_checks_json(const sinkproof_truth_checks *checks);
json_t *truth_enclosed_json(arb_srcptr ball);
json_t *truth_routing_json(const sinkproof_truth_routing *routing);
void truth_print_routing(FILE *out, const sinkproof_truth_routing *routing);

#endif
