// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engines behind one face. The reference and the emulation are sessions that differ in their
// table of stages; the fast path is an engine with one sequence.
#include "audit/engine/runner.h"

#include "fast/engine.h"
#include "fast/isa.h"
#include "ref/lanes/lanes.h"

#include <stdlib.h>
#include <string.h>

enum { TAIL = 16 }; // rows of logits that a session makes in one pass, when one would do

struct sinkproof_runner {
    size_t vocab;
    sinkproof_session *session; // ref, lanes
    sinkproof_engine *engine;   // fast
    sinkproof_sequence *sequence;
    float *logits_v;
};

const char *const *sinkproof_runner_names(void) {
    static const char *const names[] = {"ref", "lanes", "fast", NULL};
    return names;
}

const char *sinkproof_runner_policy(const char *engine) {
    return strcmp(engine, "ref") == 0 ? "real-f64" : "f32";
}

bool sinkproof_runner_serves(const char *engine, const sinkproof_policy *policy,
                             sinkproof_error *error) {
    if (strcmp(engine, "ref") == 0)
        return sinkproof_policy_admits_all(policy, sinkproof_definitions, error);
    if (strcmp(engine, "lanes") == 0) return sinkproof_lanes_serves(policy, error);
    const sinkproof_kernels *kernels = sinkproof_isa_choose(NULL, error);
    return kernels != NULL && sinkproof_engine_serves(kernels, policy, error);
}

const char *sinkproof_runner_points(const char *engine) {
    return strcmp(engine, "ref") == 0
               ? NULL
               : "T0,A1,A2,A4,A6,A11,A12,A13,M1,M2,M3,M4,M6,M8,M10,M11,M12,F1,F2";
}

// A pass over the keys in pieces never holds weights that are normalised, and the bias is added
// before a product leaves its registers.
bool sinkproof_runner_shows(const char *engine, const char *points, sinkproof_error *error) {
    static const char *const unseen[] = {"A9", "A10", "M5", "M9"};
    bool ref = strcmp(engine, "ref") == 0;
    size_t count = strcmp(engine, "fast") == 0 ? 4 : 2; // lanes holds M5 and M9
    for (const char *word = points; !ref && *word != '\0';) {
        size_t length = strcspn(word, ","), layer = strspn(word, "0123456789");
        if (layer > 0 && word[layer] == '.') layer++;
        for (size_t i = 0; i < count; i++)
            if (length - layer == strlen(unseen[i]) &&
                strncmp(word + layer, unseen[i], length - layer) == 0)
                return sinkproof_fail(error, "engine %s never holds %s: known are %s", engine,
                                      unseen[i], sinkproof_runner_points(engine));
        word += length + (word[length] == ',');
    }
    return true;
}

static bool new_fast(sinkproof_runner *r, const sinkproof_model *model,
                     const sinkproof_policy *policy, const sinkproof_runner_options *options,
                     sinkproof_error *error) {
    sinkproof_engine_options fast = {.threads = options->threads,
                                     .streamed = options->streamed,
                                     .packed = options->packed,
                                     .progress = options->progress};
    r->logits_v = malloc(r->vocab * sizeof *r->logits_v);
    if (r->logits_v == NULL) return sinkproof_fail(error, "no memory for the logits");
    if (!sinkproof_engine_new(model, policy, &fast, &r->engine, error)) return false;
    r->sequence = sinkproof_sequence_new(r->engine, options->max_tokens, error);
    return r->sequence != NULL;
}

bool sinkproof_runner_new(const sinkproof_model *model, const sinkproof_policy *policy,
                          const sinkproof_runner_options *options, sinkproof_runner **runner,
                          sinkproof_error *error) {
    sinkproof_runner *r = *runner = calloc(1, sizeof *r);
    if (r == NULL) return sinkproof_fail(error, "no memory for a session");
    r->vocab = sinkproof_model_config(model)->vocab;
    if (!sinkproof_model_fits(model, policy->weights, error)) return false;
    if (strcmp(options->engine, "fast") == 0) return new_fast(r, model, policy, options, error);
    bool lanes = strcmp(options->engine, "lanes") == 0;
    r->session = sinkproof_session_with(
        model, policy, lanes ? &sinkproof_lanes_stages : &sinkproof_reference_stages);
    return r->session != NULL || sinkproof_fail(error, "no memory for a session");
}

void sinkproof_runner_free(sinkproof_runner *r) {
    if (r == NULL) return;
    sinkproof_session_free(r->session);
    sinkproof_sequence_free(r->sequence);
    sinkproof_engine_free(r->engine);
    free(r->logits_v);
    free(r);
}

// A session gives logits for all tokens of a call or for none: the last few are a call of their
// own. Under an observer every token has logits anyway.
static bool forward_session(sinkproof_runner *r, size_t n, const int32_t *tokens_n,
                            double *logits_v, const sinkproof_observer *observer,
                            sinkproof_error *error) {
    if (logits_v == NULL) return sinkproof_forward(r->session, n, tokens_n, NULL, observer, error);
    size_t rows = observer == NULL && n > TAIL ? TAIL : n, body = n - rows;
    double *logits_nv = calloc(rows, r->vocab * sizeof *logits_nv);
    if (logits_nv == NULL) return sinkproof_fail(error, "no memory for the logits");
    bool good = (body == 0 || sinkproof_forward(r->session, body, tokens_n, NULL, NULL, error)) &&
                sinkproof_forward(r->session, rows, tokens_n + body, logits_nv, observer, error);
    if (good) memcpy(logits_v, logits_nv + (rows - 1) * r->vocab, r->vocab * sizeof *logits_v);
    free(logits_nv);
    return good;
}

bool sinkproof_runner_forward(sinkproof_runner *r, size_t n, const int32_t *tokens_n,
                              double *logits_v, const sinkproof_observer *observer,
                              sinkproof_error *error) {
    if (r->session != NULL) return forward_session(r, n, tokens_n, logits_v, observer, error);
    sinkproof_part part = {r->sequence, n, tokens_n, logits_v != NULL ? r->logits_v : NULL, false};
    if (!sinkproof_engine_forward(r->engine, 1, &part, observer, error)) return false;
    for (size_t v = 0; logits_v != NULL && v < r->vocab; v++) logits_v[v] = r->logits_v[v];
    return true;
}

size_t sinkproof_runner_length(const sinkproof_runner *r) {
    return r->session != NULL ? sinkproof_session_length(r->session)
                              : sinkproof_sequence_length(r->sequence);
}

const char *sinkproof_runner_isa(const sinkproof_runner *r) {
    return r->engine != NULL ? sinkproof_engine_kernels(r->engine)->isa : NULL;
}

int sinkproof_runner_threads(const sinkproof_runner *r) {
    return r->engine != NULL ? sinkproof_engine_threads(r->engine) : 1;
}

size_t sinkproof_runner_weight_bytes(const sinkproof_runner *r) {
    return r->engine != NULL ? sinkproof_engine_weight_bytes(r->engine) : 0;
}
