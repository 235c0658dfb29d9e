// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: any bytes as the words of a work file of `sinkproof truth`, with the sum that they
// have. What is accepted is written again in as many bytes.
#include "audit/verify/truth_store.h"
#include "base/fnv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static const char identity[] = "sinkproof-truth-work-1\n";
    static sinkproof_model *model;
    sinkproof_error error = {""};
    truth_store store;
    truth_study study;
    size_t lines = strlen(identity) + 1, whole = lines + length + 8, again;
    if (model == NULL && !sinkproof_model_open("synthetic:tiny,layers=1", &model, &error)) abort();
    uint8_t *file = malloc(whole);
    if (file == NULL) abort();
    memcpy(file, identity, lines);
    file[lines - 1] = '\n';
    memcpy(file + lines, bytes, length);
    uint64_t sum = sinkproof_fnv(SINKPROOF_FNV_NOTHING, file, whole - 8);
    for (int i = 0; i < 8; i++) file[whole - 8 + (size_t)i] = (uint8_t)(sum >> 8 * i);
    sinkproof_study_init(&study, sinkproof_model_config(model), NULL, 1, false, false);
    if (store_parse(file, whole, "fuzz", identity, &store, &study, &error)) {
        uint8_t *made = store_bytes(identity, &store, &study, &again);
        if (made == NULL || again != whole) abort();
        free(made);
        sinkproof_store_clear(&store, &study);
    } else if (error.text[0] == '\0') {
        abort(); // refused without a reason
    }
    sinkproof_study_clear(&study);
    free(file);
    return 0;
}
