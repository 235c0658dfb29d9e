// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes as the words of interventions, a line each, and as what EPE are. Whatever is
// read can be named, and is carried out or refused; no row is 0 twice.
#include "audit/intervene/interventions.h"

#include <stdlib.h>
#include <string.h>

enum { N = 4, HIDDEN = 96 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

// "OPTION ARGUMENT" or "OPTION".
static void read_line(char *line, sinkproof_interventions *changes) {
    sinkproof_error error = {""};
    sinkproof_interventions kept = *changes;
    char *space = strchr(line, ' ');
    if (space != NULL) *space = '\0';
    bool good =
        sinkproof_intervention_read(line, space != NULL ? space + 1 : NULL, changes, &error);
    if (!good && (error.text[0] == '\0' || memcmp(&kept, changes, sizeof kept) != 0)) abort();
}

static void carry_out(const sinkproof_interventions *changes, const double *epe_ic) {
    static sinkproof_model *model;
    static double values[N * HIDDEN];
    static const size_t massive[] = {1, 5}, shape[] = {N, HIDDEN};
    sinkproof_intervened *made;
    sinkproof_policy policy;
    sinkproof_error error;
    size_t rows;
    if (model == NULL && !sinkproof_model_open("synthetic:tiny-gpt2,layers=1", &model, &error))
        abort();
    if (!sinkproof_policy_known("f32", &policy)) abort();
    if (!sinkproof_intervened_new(model, changes, &policy, N, epe_ic, 2, massive, &made, &error)) {
        if (made != NULL || error.text[0] == '\0') abort();
        return;
    }
    const size_t *row_n = sinkproof_intervened_zero_rows(made, &rows);
    for (size_t i = 0; i < rows; i++)
        if (row_n[i] >= HIDDEN || (i > 0 && row_n[i] <= row_n[i - 1])) abort();
    sinkproof_intervention_replace(made, "T0", 2, shape, values);
    sinkproof_intervention_replace(made, "00.M12", 2, shape, values);
    sinkproof_intervened_free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static double epe_ic[N * HIDDEN];
    char text[1024], *line = text;
    sinkproof_interventions changes = {0};
    size_t kept = length < sizeof text ? length : sizeof text - 1;
    memcpy(text, bytes, kept);
    text[kept] = '\0';
    memcpy(epe_ic, bytes, length < sizeof epe_ic ? length : sizeof epe_ic);
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        read_line(line, &changes);
    }
    read_line(line, &changes);
    intervention_name name = sinkproof_interventions_describe(&changes);
    if (name.text[0] == '\0' || strlen(name.text) + 1 >= sizeof name.text) abort();
    if (!sinkproof_interventions_any(&changes) && strcmp(name.text, "none") != 0) abort();
    carry_out(&changes, epe_ic);
    return 0;
}
