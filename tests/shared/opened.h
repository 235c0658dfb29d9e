// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A model that a test stands on: where it does not open, the test ends.
#ifndef SINKPROOF_TESTS_OPENED_H
#define SINKPROOF_TESTS_OPENED_H

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((unused)) static sinkproof_model *open_model(const char *spec) {
    sinkproof_error error;
    sinkproof_model *model;
    if (sinkproof_model_open(spec, &model, &error)) return model;
    printf("Bail out! %s\n", error.text);
    exit(1);
}

#endif
