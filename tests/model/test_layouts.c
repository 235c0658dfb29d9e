// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Layouts that have no place for a weight of the model.
#include "model/container.h"
#include "tests/shared/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A layout without a name for sinks: legal for a model that has none; for others one sentence, when
// it is written and when it is read, and nothing is made.
int main(void) {
    char root[] = "/tmp/sinkproof-layouts-XXXXXX", path[64], config[96], tensors[96];
    tensor_layout layout = *sinkproof_container_named("hf")->layout;
    sinkproof_container container = *sinkproof_container_named("hf");
    const sinkproof_writing how = {.dequantize = false};
    const char told[] = "has no name for the weight sinks, which this model has";
    sinkproof_model *with = NULL, *without = NULL;
    sinkproof_error error = {""};
    struct stat status;
    sinkproof_matrix view;
    if (mkdtemp(root) == NULL) abort();
    snprintf(path, sizeof path, "%s/model", root);
    layout.names[SINKPROOF_SINKS] = NULL;
    container.layout = &layout;
    if (!sinkproof_model_open("synthetic:tiny", &with, &error) ||
        !sinkproof_model_open("synthetic:tiny,sink=off-by-one", &without, &error))
        abort();
    ok(!container.write(&container, with, path, &how, &error) && strstr(error.text, told) != NULL &&
           stat(path, &status) != 0,
       "model.config not written: %s", error.text);
    error.text[0] = '\0';
    ok(container.write(&container, without, path, &how, &error),
       "model.config written, since the model has none %s", error.text);
    snprintf(config, sizeof config, "%s/config.json", path);
    snprintf(tensors, sizeof tensors, "%s/model.safetensors", path);
    if (unlink(config) != 0 || unlink(tensors) != 0 || rmdir(path) != 0 || rmdir(root) != 0)
        abort();
    sinkproof_model reading = *with;
    reading.container = &container;
    reading.tensors = &layout;
    const wanted_weight wanted = {
        .model = &reading, .slot = SINKPROOF_SINKS, .count = 1, .error = &error};
    ok(!checkpoint_view(&wanted, &view) && strstr(error.text, told) != NULL,
       "model.config not read: %s", error.text);
    sinkproof_model_close(with);
    sinkproof_model_close(without);
    return tap_done();
}
