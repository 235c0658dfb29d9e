// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A policy in full: points, functions, forms and choices.
#include "audit/command/info_policy.h"

#include "audit/command/command.h"
#include "ref/policy.h"

#include <stdio.h>

// Prints "M8.form    = sigmoid|tanh"
static void print_forms(const sinkproof_policy *policy, sinkproof_formed stage) {
    const char *name, *between = " = ";
    printf("%-10s", sinkproof_formed_name(stage));
    for (int form = 0; (name = sinkproof_form_name(stage, form)) != NULL; form++) {
        if (!sinkproof_policy_admits(policy, stage, form)) continue;
        printf("%s%s", between, name);
        between = "|";
    }
    printf("\n");
}

static void print_unrounded(const sinkproof_policy *policy) {
    const char *between = "";
    printf("%-10s = %s", "unrounded", sinkproof_policy_reads_unrounded(policy) ? "" : "none");
    for (int p = 0; p < AT_POINTS; p++) {
        if (!policy->unrounded[p]) continue;
        printf("%s%s", between, sinkproof_point_name((sinkproof_point)p));
        between = "|";
    }
    printf(" # read by a next operation before it is rounded\n");
}

int cmd_info_policy(const char *text) {
    sinkproof_policy policy;
    sinkproof_error error;
    if (!sinkproof_policy_parse(text, &policy, &error)) {
        fprintf(stderr, "sinkproof info: %s\n", error.text);
        return EXIT_USAGE;
    }
    printf("# the policy %s, in full; ? after a format: an engine may be more precise there\n",
           policy.name);
    for (size_t p = 0; p < AT_POINTS; p++) {
        printf("%-10s = %-6s # %s\n", sinkproof_point_name((sinkproof_point)p),
               sinkproof_rounding_say(policy.at[p]).text, sinkproof_point_what((sinkproof_point)p));
    }
    for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) {
        printf("%-10s = %gulp", sinkproof_function_name((sinkproof_function)f), policy.ulp[f]);
        if (f == SINKPROOF_EXP && policy.exp_growth > 0) printf("+%g|x|", policy.exp_growth);
        if (f == SINKPROOF_DIV) printf(" # a quotient of computed numbers");
        if (f == SINKPROOF_RCP) printf(" # a reciprocal, and then a product");
        printf("\n");
    }
    for (int f = 0; f < SINKPROOF_FORMED_COUNT; f++) print_forms(&policy, (sinkproof_formed)f);
    printf("%-10s = %-6s # arithmetic between the points\n", "inside",
           sinkproof_format_name(policy.inside));
    printf("%-10s = %-6s # what an engine keeps its weights in\n", "weights",
           policy.weights == SINKPROOF_REAL ? "stored" : sinkproof_format_name(policy.weights));
    printf("%-10s = %-6s # subnormal numbers read as zero, results flushed\n", "ftz",
           policy.ftz ? "allowed" : "none");
    printf("%-10s = %s\n", "yarn", policy.yarn_truncate ? "truncate" : "config");
    print_unrounded(&policy);
    return EXIT_HOLDS;
}
