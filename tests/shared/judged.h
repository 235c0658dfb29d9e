// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs an engine on a model, writes its trace and judges it: the same path as for a user's trace.
#ifndef SINKPROOF_TESTS_JUDGED_H
#define SINKPROOF_TESTS_JUDGED_H

#include "audit/judge/judge_report.h"
#include "audit/trace/trace_write.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Pseudo-random token ids below vocab from a seed, the same everywhere. It has a congruential
// generator of its own instead of base/splitmix.h, since the book's results about planted mistakes
// were measured on these tokens.
static inline void some_tokens(size_t n, size_t vocab, uint64_t seed, int32_t *tokens_n) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tokens_n[i] = (int32_t)((seed >> 33) % vocab);
    }
}

// Every point of a trace except A9 and A10, which one-pass attention never stores.
static const char *const one_pass_points =
    "T0,A1,A2,A4,A6,A11,A12,A13,M1,M2,M3,M4,M6,M8,M10,M11,M12,F1,F2";

// The engine under judgement: runs the tokens under the policy and shows its points to the
// observer.
typedef bool judged_runner(void *of, const sinkproof_model *model, const sinkproof_policy *policy,
                           size_t n, const int32_t *tokens_n, const sinkproof_observer *observer,
                           sinkproof_error *error);

// Runs `run` under the policy `runs` on the tokens, keeping `points` (NULL: all), and judges the
// trace under `declared`. Aborts with the sentence of any error.
static inline sinkproof_judgement judged_tokens(const sinkproof_model *model, judged_runner *run,
                                                void *of, const char *runs, const char *declared,
                                                size_t n, const int32_t *tokens,
                                                const char *points) {
    sinkproof_error error = {{0}};
    sinkproof_policy policy, other;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement judgement = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/sinkproof-judged-%ld.safetensors", (long)getpid());
    bool fine =
        sinkproof_policy_parse(runs, &policy, &error) &&
        sinkproof_policy_parse(declared, &other, &error) &&
        sinkproof_trace_writer_new(path, model, &policy, "judged", points, n, &writer, &error) &&
        run(of, model, &policy, n, tokens, sinkproof_trace_writer_observer(writer), &error) &&
        sinkproof_trace_writer_finish(writer, tokens, &error) &&
        sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) &&
        sinkproof_judge(model, trace, &other, &(sinkproof_judge_options){.rate = 1e-9}, &judgement,
                        &error);
    need(fine, &error);
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    unlink(path);
    return judgement;
}

// The same on pseudo-random tokens.
static inline sinkproof_judgement judged_run(const sinkproof_model *model, judged_runner *run,
                                             void *of, const char *runs, const char *declared,
                                             size_t n, uint64_t seed, const char *points) {
    int32_t *tokens = malloc(n * sizeof *tokens);
    if (tokens == NULL) abort();
    some_tokens(n, sinkproof_model_config(model)->vocab, seed, tokens);
    sinkproof_judgement judgement =
        judged_tokens(model, run, of, runs, declared, n, tokens, points);
    free(tokens);
    return judgement;
}

// The printed report, and all of its numbers as JSON, into text[REPORT_ROOM].
enum { REPORT_ROOM = 1 << 18 };
static inline void report_as_text(const sinkproof_config *config, const sinkproof_judgement *j,
                                  char *text) {
    FILE *out = fmemopen(text, REPORT_ROOM, "w");
    json_t *results = json_array();
    must(out != NULL && results != NULL);
    sinkproof_judgement_print(out, config, j, true);
    judgement_print_undecided(out, config, j);
    sinkproof_judgement_json(results, "trace", config, j, NULL, 0);
    json_dumpf(results, out, JSON_INDENT(1));
    json_decref(results);
    must(fclose(out) == 0);
}

// The reference, or stages with a planted mistake, in chunks of `chunk` tokens (0: one).
typedef struct judged_stages {
    const sinkproof_stages *stages;
    size_t chunk;
} judged_stages;

static inline bool run_stages(void *of, const sinkproof_model *model,
                              const sinkproof_policy *policy, size_t n, const int32_t *tokens_n,
                              const sinkproof_observer *observer, sinkproof_error *error) {
    const judged_stages *s = of;
    sinkproof_session *session = sinkproof_session_with(model, policy, s->stages);
    bool fine = true;
    for (size_t i = 0; fine && i < n; i += s->chunk == 0 ? n : s->chunk) {
        size_t count = s->chunk == 0 || n - i < s->chunk ? n - i : s->chunk;
        fine = sinkproof_forward(session, count, tokens_n + i, NULL, observer, error);
    }
    sinkproof_session_free(session);
    return fine;
}

// The reference on another model, `of`, than the one that is judged.
static inline bool run_other_model(void *of, const sinkproof_model *model,
                                   const sinkproof_policy *policy, size_t n,
                                   const int32_t *tokens_n, const sinkproof_observer *observer,
                                   sinkproof_error *error) {
    (void)model;
    judged_stages reference = {&sinkproof_reference_stages, 0};
    return run_stages(&reference, of, policy, n, tokens_n, observer, error);
}

// Planted stages: sinks that are gone, and sinks of logit 0.
static inline void logits_gone(const sinkproof_policy *p, const sinkproof_block *block,
                               const sinkproof_normaliser *normaliser, const double *q_id,
                               double *b_i) {
    sinkproof_reference_stages.sink_logits(p, block, normaliser, q_id, b_i);
    for (size_t i = 0; i < block->rows; i++) b_i[i] = -INFINITY;
}
static inline void logits_zero(const sinkproof_policy *p, const sinkproof_block *block,
                               const sinkproof_normaliser *normaliser, const double *q_id,
                               double *b_i) {
    sinkproof_reference_stages.sink_logits(p, block, normaliser, q_id, b_i);
    for (size_t i = 0; i < block->rows; i++) b_i[i] = 0;
}

static inline sinkproof_judgement judged(const sinkproof_model *model,
                                         const sinkproof_stages *stages, const char *runs,
                                         const char *declared, size_t n, size_t chunk,
                                         uint64_t seed, const char *points) {
    judged_stages of = {stages, chunk};
    return judged_run(model, run_stages, &of, runs, declared, n, seed, points);
}

// Checks that nothing is outside its honest set and nothing suspicious; `what` names the run and
// the ids of its bounds. Frees the judgement.
static inline void ok_within(sinkproof_judgement *j, const char *what, size_t n) {
    size_t outside = 0, unlikely = 0;
    double share = 0, drift = 0;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        outside += r->outside, unlikely += r->unlikely;
        share = sinkproof_keep_worst(share, r->share_worst);
        if (r->drift.bin >= 0)
            drift = sinkproof_keep_worst(drift, fabs(r->drift.gain) / r->drift.limit);
        if (r->verdict > SINKPROOF_VERDICT_WITHIN)
            note("%s: %s, share %.3g", r->name, sinkproof_verdict_name(r->verdict), r->share_worst);
    }
    ok(j->verdict <= SINKPROOF_VERDICT_WITHIN && outside == 0 && unlikely == 0 && j->n_reports > 0,
       "%s, %zu tokens: %zu points, %zu outside, %zu unlikely worst=%.3g bound=1 (drift %.3g of 1)",
       what, n, j->n_reports, outside, unlikely, share, drift);
    sinkproof_judgement_free(j);
}

#endif
