// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kinds of normalisers, and the logit that joins the scores of each row (before A8).
#include "ref/normaliser.h"

#include "ref/stages.h"

#include <stdio.h>
#include <string.h>

// What a layer stores for each head.
typedef enum stored { NOTHING, A_NUMBER } stored;

static const struct {
    const char *name; // in config.json, as "attention_sink"
    stored of_head;
} kinds[] = {
    {"logit", A_NUMBER},     // GPT-OSS
    {"off-by-one", NOTHING}, // b = 0
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const char *sinkproof_normaliser_name(size_t kind) {
    return kinds[kind].name;
}

bool sinkproof_normaliser_named(const char *name, size_t *kind) {
    for (*kind = 0; *kind < KINDS; ++*kind)
        if (strcmp(kinds[*kind].name, name) == 0) return true;
    return false;
}

const char *sinkproof_normaliser_names(char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < KINDS && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == KINDS ? " or "
                                                  : ", ",
                                 kinds[i].name);
    return text;
}

bool sinkproof_normaliser_is_constant(const sinkproof_config *config) {
    return kinds[config->sink].of_head <= A_NUMBER;
}

void sinkproof_normaliser_shape(const sinkproof_config *config, size_t *count, size_t *rows,
                                size_t *cols) {
    bool nothing = kinds[config->sink].of_head == NOTHING;
    *count = *rows = nothing ? 0 : 1;
    *cols = nothing ? 0 : config->n_heads;
}

size_t sinkproof_normaliser_work(const sinkproof_config *config) {
    return config->n_heads;
}

sinkproof_normaliser sinkproof_normaliser_of(const sinkproof_config *config,
                                             const sinkproof_layer *layer, size_t h, double *work) {
    //> sink.softmax1
    if (kinds[config->sink].of_head == NOTHING) return (sinkproof_normaliser){.logit = 0};
    //< sink.softmax1
    sinkproof_matrix_row(&layer->sinks, 0, work);
    return (sinkproof_normaliser){.logit = work[h]};
}

void sinkproof_sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id,
                           double *b_i) {
    (void)policy;
    (void)q_id;
    for (size_t i = 0; i < block->rows; i++) b_i[i] = normaliser->logit;
}
