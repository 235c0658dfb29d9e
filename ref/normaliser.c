// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kinds of normalisers, and the logit that joins the scores of each row (before A8).
#include "ref/normaliser.h"

#include "ref/stages.h"

#include <stdio.h>
#include <string.h>

// What a layer stores for each head.
typedef enum stored { NOTHING, A_NUMBER, A_KEY } stored;

static const struct {
    const char *name; // in config.json, as "attention_sink"
    stored of_head;
} kinds[] = {
    {"logit", A_NUMBER},     // GPT-OSS
    {"off-by-one", NOTHING}, // b = 0
    {"key", A_KEY},          // b_i = q_i . k* / sqrt(head_dim)
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
    stored of_head = kinds[config->sink].of_head;
    *count = of_head == NOTHING ? 0 : 1;
    *rows = of_head == A_KEY ? config->n_heads : *count;
    *cols = of_head == A_KEY ? config->head_dim : *count * config->n_heads;
}

size_t sinkproof_normaliser_work(const sinkproof_config *config) {
    return config->n_heads > config->head_dim ? config->n_heads : config->head_dim;
}

sinkproof_normaliser sinkproof_normaliser_of(const sinkproof_config *config,
                                             const sinkproof_layer *layer, size_t h, double *work) {
    //> sink.softmax1
    if (kinds[config->sink].of_head == NOTHING) return (sinkproof_normaliser){.logit = 0};
    //< sink.softmax1
    if (kinds[config->sink].of_head == A_KEY) {
        sinkproof_matrix_row(&layer->sinks, h, work);
        return (sinkproof_normaliser){.key_d = work};
    }
    sinkproof_matrix_row(&layer->sinks, 0, work);
    return (sinkproof_normaliser){.logit = work[h]};
}

void sinkproof_sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id,
                           double *b_i) {
    if (normaliser->key_d == NULL) {
        for (size_t i = 0; i < block->rows; i++) b_i[i] = normaliser->logit;
        return;
    }
    //> sink.key-bias
    sinkproof_block star = *block; // one more key, that no rotation turned: A5 and A6 as for others
    star.keys = 1;
    sinkproof_scores(policy, &star, q_id, normaliser->key_d, b_i);
    //< sink.key-bias
}
