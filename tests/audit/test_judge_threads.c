// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Any thread may judge its own trace: four of them at once, each with its own model, trace and
// policy, make the reports that one after the other makes, byte for byte; and OpenBLAS has the
// number of threads that it had.
#include "tests/shared/judged.h"

#include <cblas.h>
#include <pthread.h>
#include <string.h>

enum { JOBS = 4, ROUNDS = 2, TOKENS = 12 };

typedef struct job {
    const char *model, *runs, *declared, *points; // points: NULL, all
    bool end_to_end;
    char path[64], alone[REPORT_ROOM], among[REPORT_ROOM];
} job;

static job jobs[JOBS] = {
    {.model = "synthetic:tiny,layers=2", .runs = "f32", .declared = "f32", .end_to_end = true},
    {.model = "synthetic:tiny,seed=5,layers=2", .runs = "openai-bf16", .declared = "openai-bf16"},
    {.model = "synthetic:tiny,layers=2", .runs = "bf16", .declared = "f32"}, // convicted
    {.model = "synthetic:tiny,seed=7,layers=1",
     .runs = "f16",
     .declared = "f16",
     .points = "T0,A13,M6,M12,F2",
     .end_to_end = true}};
static pthread_barrier_t start;

static void judge_job(const job *w, char *text) {
    sinkproof_error error;
    sinkproof_policy policy;
    sinkproof_model *model;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement j;
    const sinkproof_judge_options options = {.rate = 1e-9, .end_to_end = w->end_to_end};
    must(sinkproof_model_open(w->model, &model, &error) &&
         sinkproof_policy_parse(w->declared, &policy, &error) &&
         sinkproof_trace_open(w->path, sinkproof_model_config(model), &trace, &error) &&
         sinkproof_judge(model, trace, &policy, &options, &j, &error));
    report_as_text(sinkproof_model_config(model), &j, text);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_model_close(model);
}

static void *judge_among(void *of) {
    job *w = of;
    pthread_barrier_wait(&start);
    judge_job(w, w->among);
    return NULL;
}

static void write_trace(job *w) {
    sinkproof_error error;
    sinkproof_policy policy;
    sinkproof_model *model;
    sinkproof_trace_writer *writer = NULL;
    int32_t tokens[TOKENS];
    must(sinkproof_model_open(w->model, &model, &error) &&
         sinkproof_policy_parse(w->runs, &policy, &error) &&
         sinkproof_trace_writer_new(w->path, model, &policy, "ref", w->points, TOKENS, &writer,
                                    &error));
    some_tokens(TOKENS, sinkproof_model_config(model)->vocab, 3, tokens);
    judged_stages reference = {&sinkproof_reference_stages, 0};
    must(run_stages(&reference, model, &policy, TOKENS, tokens,
                    sinkproof_trace_writer_observer(writer), &error) &&
         sinkproof_trace_writer_finish(writer, tokens, &error));
    sinkproof_trace_writer_free(writer);
    sinkproof_model_close(model);
}

static void judge_at_once(size_t round) {
    pthread_t threads[JOBS];
    pthread_barrier_init(&start, NULL, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        must(pthread_create(&threads[i], NULL, judge_among, &jobs[i]) == 0);
    for (size_t i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (size_t i = 0; i < JOBS; i++)
        ok(jobs[i].alone[0] != '\0' && strcmp(jobs[i].alone, jobs[i].among) == 0,
           "round %zu: %s under %s judged among four is judged alike, %zu bytes", round,
           jobs[i].model, jobs[i].declared, strlen(jobs[i].alone));
}

int main(void) {
    for (size_t i = 0; i < JOBS; i++) {
        snprintf(jobs[i].path, sizeof jobs[i].path, "/tmp/sinkproof-threads-%ld-%zu.safetensors",
                 (long)getpid(), i);
        write_trace(&jobs[i]);
    }
    openblas_set_num_threads(2);
    for (size_t i = 0; i < JOBS; i++) judge_job(&jobs[i], jobs[i].alone);
    ok(openblas_get_num_threads() == 2, "a judge leaves OpenBLAS its threads: %d, expected 2",
       openblas_get_num_threads());
    for (size_t r = 0; r < ROUNDS; r++) judge_at_once(r);
    ok(openblas_get_num_threads() == 2, "four judges leave OpenBLAS its threads: %d, expected 2",
       openblas_get_num_threads());
    for (size_t i = 0; i < JOBS; i++) unlink(jobs[i].path);
    return tap_done();
}
