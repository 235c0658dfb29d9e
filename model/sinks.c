// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kinds of sinks, a row each.
#include "model/sinks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name; // in config.json, as "attention_sink"
    sinkproof_stored_sink stored;
    double logit; // of every row, if nothing is stored
} kinds[] = {
    {"logit", SINKPROOF_SINK_NUMBER, 0},         // GPT-OSS
    {"off-by-one", SINKPROOF_SINK_NOTHING, 0},   // b = 0
    {"key", SINKPROOF_SINK_KEY, 0},              // b_i = q_i . k* / sqrt(head_dim)
    {"none", SINKPROOF_SINK_NOTHING, -INFINITY}, // e^b = 0: plain attention
};

enum { KINDS = sizeof kinds / sizeof *kinds };

sinkproof_stored_sink sinkproof_sinks_stored(const sinkproof_config *config) {
    return kinds[config->sink].stored;
}

double sinkproof_sinks_constant(const sinkproof_config *config) {
    return kinds[config->sink].logit;
}

const char *sinkproof_sinks_name(size_t kind) {
    return kinds[kind].name;
}

bool sink_kind_find(const char *name, size_t *kind) {
    for (*kind = 0; *kind < KINDS; ++*kind)
        if (strcmp(kinds[*kind].name, name) == 0) return true;
    return false;
}

const char *sink_kind_names(char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < KINDS && used < size; i++) {
        const char *before = i == 0 ? "" : i + 1 == KINDS ? " or " : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, kinds[i].name);
    }
    return text;
}

bool sinkproof_sinks_are_constant(const sinkproof_config *config) {
    return sinkproof_sinks_stored(config) != SINKPROOF_SINK_KEY;
}

void sink_tensor_shape(const sinkproof_config *config, size_t *count, size_t *rows, size_t *cols) {
    sinkproof_stored_sink stored = sinkproof_sinks_stored(config);
    *count = stored == SINKPROOF_SINK_NOTHING ? 0 : 1;
    *rows = stored == SINKPROOF_SINK_KEY ? config->n_heads : *count;
    *cols = stored == SINKPROOF_SINK_KEY ? config->head_dim : *count * config->n_heads;
}
