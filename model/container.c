// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The list of containers.
#include "model/container.h"

#include <string.h>

extern const sinkproof_container container_synthetic; // synthetic.c
extern const sinkproof_container container_hf;        // hf.c
extern const sinkproof_container container_gpt2;      // gpt2.c
extern const sinkproof_container container_llama;     // llama.c
extern const sinkproof_container container_openai;    // openai.c
extern const sinkproof_container container_gguf;      // gguf_model.c

// The original layout comes last: it accepts whatever no other container recognises, and its errors
// name what is missing.
static const sinkproof_container *const containers[] = {&container_synthetic, &container_gpt2,
                                                        &container_llama,     &container_hf,
                                                        &container_gguf,      &container_openai};

enum { COUNT = sizeof containers / sizeof *containers };

const sinkproof_container *sinkproof_container_at(size_t i) {
    return i < COUNT ? containers[i] : NULL;
}

const sinkproof_container *container_recognise(const char *spec) {
    size_t i = 0;
    while (containers[i]->recognises == NULL || !containers[i]->recognises(spec)) i++;
    return containers[i];
}

const sinkproof_container *sinkproof_container_named(const char *name) {
    for (size_t i = 0; i < COUNT; i++)
        if (containers[i]->name != NULL && strcmp(containers[i]->name, name) == 0)
            return containers[i];
    return NULL;
}
