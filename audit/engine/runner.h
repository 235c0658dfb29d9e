// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The common interface of this project's engines: ref (the reference), lanes (the scalar emulation
// of the fast path's arithmetic) and fast. `engine` is the name of one of them.
#ifndef SINKPROOF_RUNNER_H
#define SINKPROOF_RUNNER_H

#include "ref/forward.h"

struct sinkproof_kernels; // fast/kernels/kernels.h

typedef struct sinkproof_runner_options {
    const char *engine;
    int threads;        // tuned engines: 0, as many as processors or as OMP_NUM_THREADS says
    bool streamed;      // tuned engines: one layer's weights at a time
    const char *packed; // tuned engines: the file that keeps packed weights, or NULL
    size_t max_tokens;  // most tokens that will be processed
    // Tuned engines: the instruction sets for passes of several tokens and of one. NULL: the
    // default.
    const struct sinkproof_kernels *kernels, *kernels_of_one;
    void (*progress)(void *context, const char *what, size_t done, size_t total); // or NULL
} sinkproof_runner_options;

typedef struct sinkproof_runner sinkproof_runner;

// The known names, NULL-terminated.
const char *const *sinkproof_runner_names(void);
// The names as a phrase, such as "ref, lanes and fast"; optionally only the tuned engines.
typedef struct sinkproof_runner_list {
    char text[256];
} sinkproof_runner_list;
sinkproof_runner_list sinkproof_runner_list_names(bool tuned_only, const char *conjunction);
bool sinkproof_runner_is_known(const char *engine);
const char *
sinkproof_runner_about(const char *engine);         // "fast's arithmetic in scalar code", or NULL
bool sinkproof_runner_is_tuned(const char *engine); // uses threads, streamed and packed
const char *sinkproof_runner_policy(const char *engine); // its default

// Whether the engine can follow the policy and the requested instruction set runs here; if not, the
// error says what it can do.
bool sinkproof_runner_serves(const char *engine, const sinkproof_policy *policy,
                             sinkproof_error *error);

// The points of a whole trace as a list ("T0,A1,A2"): for lanes and fast the points that the fast
// path holds; for ref NULL, which means all.
const char *sinkproof_runner_points(const char *engine, sinkproof_runner_list *list);
// Whether the engine can show every point of a list ("A9,03.M8"); if not, the error says why.
bool sinkproof_runner_shows(const char *engine, const char *points, sinkproof_error *error);

bool sinkproof_runner_new(const sinkproof_model *model, const sinkproof_policy *policy,
                          const sinkproof_runner_options *options, sinkproof_runner **runner,
                          sinkproof_error *error);
void sinkproof_runner_free(sinkproof_runner *runner);

// Runs n further tokens; logits_v receives the last one's logits, or is NULL.
bool sinkproof_runner_forward(sinkproof_runner *runner, size_t n, const int32_t *tokens_n,
                              double *logits_v, const sinkproof_observer *observer,
                              sinkproof_error *error);
size_t sinkproof_runner_length(const sinkproof_runner *runner);
void sinkproof_runner_reset(sinkproof_runner *runner); // back to no tokens

// Whether the engine continues from the values that an observer's `replace` writes: it shows the
// point before it uses it.
bool sinkproof_runner_replaces(const char *engine, const sinkproof_policy *policy,
                               sinkproof_trace_point point);

// The instruction set in use (NULL: scalar code), the threads, and the bytes of weights as stored.
const char *sinkproof_runner_isa(const sinkproof_runner *runner);
int sinkproof_runner_threads(const sinkproof_runner *runner);
size_t sinkproof_runner_weight_bytes(const sinkproof_runner *runner);

#endif
