// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drawn rows computed on this machine, for tests/doc/explore_numbers.py:
//   explore-native POLICY FORM COUNT      the results of rows 0 ... COUNT - 1, as bytes
//   explore-native lines POLICY COUNT     the lines of the derivation for drawn rows
//   explore-native sum FORMAT COUNT       the results of drawn sums
//   explore-native back FORM COUNT        the gradients of drawn rows
#include "doc/explore/back.h"
#include "doc/explore/lines.h"
#include "doc/explore/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sums(double format, double count) {
    sum_given given;
    sum_result result;
    for (double number = 0; number < count; number++) {
        sum_draw(format, number, &given);
        sum_compute(&given, &result);
        fwrite(&given.mistake, sizeof given.mistake, 1, stdout);
        fwrite(&result, sizeof result, 1, stdout);
    }
}

static void gradients(double form, double count) {
    back_given given;
    back_result result;
    for (double number = 0; number < count; number++) {
        back_draw(form, number, &given);
        back_compute(&given, &result);
        fwrite(&result, sizeof result, 1, stdout);
    }
}

static void lines(double policy, double count) {
    row_given given;
    lines_result result;
    for (double number = 0; number < count; number++) {
        row_draw(policy, FORM_RIGHT, number, &given);
        lines_compute(&given, &result);
        fwrite(&result, sizeof result, 1, stdout);
    }
}

static void rows(double policy, double form, double count) {
    row_given given;
    row_result result;
    for (double number = 0; number < count; number++) {
        row_draw(policy, form, number, &given);
        row_compute(&given, &result);
        fwrite(&result, sizeof result, 1, stdout);
    }
}

int main(int words, char **word) {
    if (words != 4) return 2;
    if (strcmp(word[1], "sum") == 0)
        sums(atof(word[2]), atof(word[3]));
    else if (strcmp(word[1], "back") == 0)
        gradients(atof(word[2]), atof(word[3]));
    else if (strcmp(word[1], "lines") == 0)
        lines(atof(word[2]), atof(word[3]));
    else
        rows(atof(word[1]), atof(word[2]), atof(word[3]));
    return fflush(stdout) == 0 ? 0 : 1;
}
