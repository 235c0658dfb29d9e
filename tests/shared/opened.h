// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a test stands on, a model above all: where it is not to be had, the test ends.
#ifndef SINKPROOF_TESTS_OPENED_H
#define SINKPROOF_TESTS_OPENED_H

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

// A synthetic model of the configuration.
__attribute__((unused)) static sinkproof_model *open_config(const char *json) {
    char path[64], spec[80];
    snprintf(path, sizeof path, "/tmp/sinkproof-config-%ld.json", (long)getpid());
    snprintf(spec, sizeof spec, "synthetic:%s", path);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(json, file) < 0 || fclose(file) != 0) abort();
    sinkproof_model *model = open_model(spec);
    unlink(path);
    return model;
}

#endif
