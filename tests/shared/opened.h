// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a test stands on, a model above all: where it is not to be had, the test ends.
#ifndef SINKPROOF_TESTS_OPENED_H
#define SINKPROOF_TESTS_OPENED_H

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

static void need(bool done, const sinkproof_error *error) {
    if (done) return;
    printf("Bail out! %s\n", error->text);
    exit(1);
}

static inline sinkproof_model *open_model(const char *spec) {
    sinkproof_error error;
    sinkproof_model *model;
    need(sinkproof_model_open(spec, &model, &error), &error);
    return model;
}

#endif
