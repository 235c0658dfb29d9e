// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of an engine that has a low-rank adapter beside its weights: what it adds is left out or
// scaled otherwise, in all layers of a kind, or in all that it adapts.
#include "audit/diagnose/adapter_mistakes.h"

#include "audit/diagnose/roundings.h"

// Whether the change changes any product.
static bool adapt_otherwise(supposed_engine *s, const known_mistake *m) {
    const sinkproof_adapter *adapter = sinkproof_model_adapter(s->model);
    const sinkproof_adapter_part *parts;
    bool changes = false;
    s->meaning.adapting = (sinkproof_adapting)m->by, s->meaning.adapting_slots = m->slots;
    for (size_t l = 0; adapter != NULL && l < s->config.n_layers; l++)
        for (int slot = 0; slot < SINKPROOF_SLOTS; slot++) {
            size_t n = (m->slots >> slot & 1) == 0
                           ? 0
                           : sinkproof_adapter_parts(adapter, l, (sinkproof_slot)slot, &parts);
            for (size_t i = 0; i < n; i++)
                changes = changes ||
                          sinkproof_adapter_times(&parts[i], s->meaning.adapting) != parts[i].scale;
        }
    return changes;
}

#define OF(slot) (1u << SINKPROOF_##slot)
#define ALL      (OF(W_Q) | OF(W_K) | OF(W_V) | OF(W_O) | OF(W_UP) | OF(W_DOWN) | OF(UNEMBEDDING))

// A change of all adapted layers, and of each kind alone.
#define EACH(id, text, change)                                                                     \
    {"adapter-" id, "the adapter " text, PRODUCTS | BIASED, adapt_otherwise, change, ALL, NULL},   \
        {"adapter-" id "-q",                                                                       \
         "the adapter of the queries " text,                                                       \
         AT(A2_Q),                                                                                 \
         adapt_otherwise,                                                                          \
         change,                                                                                   \
         OF(W_Q),                                                                                  \
         NULL},                                                                                    \
        {"adapter-" id "-k",                                                                       \
         "the adapter of the keys " text,                                                          \
         AT(A2_K),                                                                                 \
         adapt_otherwise,                                                                          \
         change,                                                                                   \
         OF(W_K),                                                                                  \
         NULL},                                                                                    \
        {"adapter-" id "-v",                                                                       \
         "the adapter of the values " text,                                                        \
         AT(A2_V),                                                                                 \
         adapt_otherwise,                                                                          \
         change,                                                                                   \
         OF(W_V),                                                                                  \
         NULL},                                                                                    \
        {"adapter-" id "-o",                                                                       \
         "the adapter of the output projection " text,                                             \
         AT(A12),                                                                                  \
         adapt_otherwise,                                                                          \
         change,                                                                                   \
         OF(W_O),                                                                                  \
         NULL},                                                                                    \
        {"adapter-" id "-up",                                                                      \
         "the adapter of gate and up " text,                                                       \
         AT(M6),                                                                                   \
         adapt_otherwise,                                                                          \
         change,                                                                                   \
         OF(W_UP),                                                                                 \
         NULL},                                                                                    \
    {                                                                                              \
        "adapter-" id "-down", "the adapter of the down-projection " text, AT(M10),                \
            adapt_otherwise, change, OF(W_DOWN), NULL                                              \
    }

static const known_mistake changes[] = {
    EACH("left-out", "is left out", SINKPROOF_ADAPTED_NOT),
    EACH("unscaled", "is not scaled: its scale, of alpha and the rank, is left out",
         SINKPROOF_ADAPTED_UNSCALED),
    EACH("by-alpha", "is scaled by alpha, which is not divided", SINKPROOF_ADAPTED_BY_ALPHA),
    EACH("scaled-twice", "is scaled twice", SINKPROOF_ADAPTED_SQUARED),
    EACH("twice", "is added twice", SINKPROOF_ADAPTED_TWICE),
    EACH("by-rank", "is scaled by alpha/rank, not alpha/sqrt(rank)", SINKPROOF_ADAPTED_BY_RANK),
    EACH("by-root", "is scaled by alpha/sqrt(rank), not alpha/rank", SINKPROOF_ADAPTED_BY_ROOT),
    EACH("negated", "is subtracted", SINKPROOF_ADAPTED_NEGATED),
};

size_t adapter_mistake_count(void) {
    return sizeof changes / sizeof changes[0];
}

const known_mistake *adapter_mistake_at(size_t i) {
    return &changes[i];
}
