// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drawn rows computed on this machine, for tests/doc/explore_numbers.py:
//   explore-native POLICY FORM COUNT      the results of rows 0 ... COUNT - 1, as bytes
//   explore-native roundings              what the page's policies round between A2 and A11
#include "doc/explore/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_roundings(void) {
    for (double p = 0; p < ROW_POLICIES; p++) {
        sinkproof_policy policy = row_policy(&(row_given){.policy = p});
        printf("%s", policy.name);
        for (int at = AT_A2; at <= AT_A11; at++)
            if (policy.at[at].format != SINKPROOF_REAL)
                printf(" %s=%s", sinkproof_point_name((sinkproof_point)at),
                       sinkproof_rounding_say(policy.at[at]).text);
        printf(" once=%d\n", sinkproof_policy_rounds_weights_once(&policy));
    }
}

int main(int words, char **word) {
    if (words == 2 && strcmp(word[1], "roundings") == 0) return say_roundings(), 0;
    if (words != 4) return 2;
    row_given given;
    row_result result;
    for (double number = 0; number < atof(word[3]); number++) {
        row_draw(atof(word[1]), atof(word[2]), number, &given);
        row_compute(&given, &result);
        fwrite(&result, sizeof result, 1, stdout);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
