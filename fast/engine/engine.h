// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The whole model at the machine's speed: weights are packed once, and any number of sequences,
// each with its own key/value cache, run together in one pass over the weights. A token's numbers
// do not depend on threads, on the chunks of its prompt, or on the other sequences of the batch.
#ifndef SINKPROOF_ENGINE_H
#define SINKPROOF_ENGINE_H

#include "fast/kernels/kernels.h"
#include "ref/forward.h"

typedef struct sinkproof_engine sinkproof_engine;
typedef struct sinkproof_sequence sinkproof_sequence;

typedef struct sinkproof_engine_options {
    const sinkproof_kernels *kernels; // NULL: sinkproof_isa_choose(NULL)
    // The kernels for passes of a single token, which stream the weights: of the same mode, so that
    // only the speed differs (fast/kernels/choose.h). NULL: `kernels`.
    const sinkproof_kernels *kernels_of_one;
    int threads; // 0: as many as processors, or OMP_NUM_THREADS if that is smaller
    // pack each layer when a pass reaches it: memory for one layer, but each pass packs again
    bool streamed;
    // The file of the packed weights: mapped if it exists, written if not. NULL: they are packed
    // into memory each time. Not with `streamed`.
    const char *packed;
    size_t chunk; // tokens per pass through the layers; 0: 512
    void (*progress)(void *context, const char *what, size_t done, size_t total); // or NULL
    void *context;
} sinkproof_engine_options;

// Whether an engine with these kernels can follow the policy: one that sinkproof_lanes_serves, and
// for amx one whose operands are bf16. Otherwise a sentence with what it can follow.
bool sinkproof_engine_serves(const sinkproof_kernels *kernels, const sinkproof_policy *policy,
                             sinkproof_error *error);

// Packs the model's weights. The model must outlive the engine. Errors: the policy, no memory, the
// file of packed weights.
bool sinkproof_engine_new(const sinkproof_model *model, const sinkproof_policy *policy,
                          const sinkproof_engine_options *options, sinkproof_engine **engine,
                          sinkproof_error *error);
void sinkproof_engine_free(sinkproof_engine *engine);
const sinkproof_kernels *sinkproof_engine_kernels(const sinkproof_engine *engine);
const sinkproof_kernels *sinkproof_engine_kernels_one_token(const sinkproof_engine *engine);
int sinkproof_engine_threads(const sinkproof_engine *engine);
size_t sinkproof_engine_weight_bytes(const sinkproof_engine *engine); // packed
// The bytes of weights that are read to decode one token.
size_t sinkproof_engine_token_bytes(const sinkproof_engine *engine);

// An empty sequence for up to max_tokens (0: the model's whole context). Its memory is reserved as
// addresses and allocated page by page as tokens come; window layers keep a ring.
sinkproof_sequence *sinkproof_sequence_new(const sinkproof_engine *engine, size_t max_tokens,
                                           sinkproof_error *error);
void sinkproof_sequence_free(sinkproof_sequence *sequence);
void sinkproof_sequence_reset(sinkproof_sequence *sequence); // back to length 0; the memory is kept
size_t sinkproof_sequence_length(const sinkproof_sequence *sequence);
// Bytes of the cache that its tokens use.
size_t sinkproof_sequence_bytes(const sinkproof_sequence *sequence);

// A sequence's share of a pass: n further tokens (0: nothing happens). logits: [n, vocab] if
// all_logits, else [vocab] for the last token, or NULL.
typedef struct sinkproof_part {
    sinkproof_sequence *sequence;
    size_t n;
    const int32_t *tokens_n;
    float *logits;
    bool all_logits;
} sinkproof_part;

// Runs the parts together. With an observer there must be one part in one pass; the observer sees
// the points of the trace under the reference's names, except A9 and A10, since one-pass attention
// never stores normalised weights. Fails, before anything is changed, on a token outside the
// vocabulary, a context beyond the sequence's room, the same sequence twice, or a failed
// allocation.
bool sinkproof_engine_forward(sinkproof_engine *engine, size_t n_parts, const sinkproof_part *parts,
                              const sinkproof_observer *observer, sinkproof_error *error);

// The next token from its logits: temperature 0 takes the largest (the lower id in a tie);
// otherwise it is sampled from softmax(logits / temperature) with a counter-based generator: (seed,
// position) determines it.
int32_t sinkproof_sample_token(size_t vocab, const float *logits_v, double temperature,
                               uint64_t seed, uint64_t position);

#endif
