// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engine judged like a stranger: its trace, written as it runs with three threads, in one piece
// or several, lies inside the honest set of its policy at every point, and nothing is suspicious.
// Under another policy than it ran with the same trace is convicted.
#include "tests/judged.h"
#include "tests/tap.h"

#include "fast/engine.h"

#include <math.h>
#include <string.h>

// Every point that the engine holds.
static const char *const held = "T0,A1,A2,A4,A6,A11,A12,A13,M1,M2,M3,M4,M6,M8,M10,M11,M12,F1,F2";

static const char *const policies[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands"};

// n tokens in pieces of `piece` under `runs`; the judge reads the trace under `declared`.
static sinkproof_judgement judged_engine(const sinkproof_model *model, const char *runs,
                                         const char *declared, size_t n, size_t piece,
                                         const char *points) {
    sinkproof_error error = {{0}};
    sinkproof_policy policy, other;
    sinkproof_engine *engine = NULL;
    sinkproof_sequence *sequence = NULL;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement judgement = {0};
    sinkproof_engine_options options = {.threads = 3};
    char path[64];
    snprintf(path, sizeof path, "/tmp/sinkproof-engine-%ld.safetensors", (long)getpid());
    int32_t *tokens = malloc(n * sizeof *tokens);
    some_tokens(n, sinkproof_model_config(model)->vocab, 11 + n, tokens);
    bool fine =
        tokens != NULL && sinkproof_policy_parse(runs, &policy, &error) &&
        sinkproof_policy_parse(declared, &other, &error) &&
        sinkproof_trace_writer_new(path, model, &policy, "engine", points, n, &writer, &error) &&
        sinkproof_engine_new(model, &policy, &options, &engine, &error) &&
        (sequence = sinkproof_sequence_new(engine, n, &error)) != NULL;
    for (size_t i = 0; fine && i < n; i += piece) {
        sinkproof_part part = {sequence, n - i < piece ? n - i : piece, tokens + i, NULL, false};
        fine = sinkproof_engine_forward(engine, 1, &part, sinkproof_trace_writer_observer(writer),
                                        &error);
    }
    fine = fine && sinkproof_trace_writer_finish(writer, tokens, &error) &&
           sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) &&
           sinkproof_judge(model, trace, &other, 1e-9, false, false, &judgement, &error);
    if (!fine) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    sinkproof_sequence_free(sequence);
    sinkproof_engine_free(engine);
    free(tokens);
    unlink(path);
    return judgement;
}

static void test(const sinkproof_model *model, const char *policy, size_t n, size_t piece,
                 const char *points) {
    sinkproof_judgement j = judged_engine(model, policy, policy, n, piece, points);
    size_t outside = 0, unlikely = 0;
    double share = 0, drift = 0;
    for (size_t i = 0; i < j.n_reports; i++) {
        const sinkproof_point_report *r = &j.reports[i];
        outside += r->outside, unlikely += r->unlikely;
        share = fmax(share, r->share_worst);
        if (r->drift.bin >= 0) drift = fmax(drift, fabs(r->drift.gain) / r->drift.limit);
        if (r->verdict > SINKPROOF_VERDICT_WITHIN)
            note("%s: %s, share %.3g", r->name, sinkproof_verdict_name(r->verdict), r->share_worst);
    }
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && outside == 0 && unlikely == 0,
       "bound.linear bound.rmsnorm bound.rope bound.softmax-sink bound.swiglu engine %s, %zu "
       "tokens in pieces of %zu: %zu points, %zu outside, %zu unlikely worst=%.3g bound=1 (drift "
       "%.3g of 1)",
       policy, n, piece, j.n_reports, outside, unlikely, share, drift);
    sinkproof_judgement_free(&j);
}

static void test_convicted(const sinkproof_model *model) {
    sinkproof_judgement j = judged_engine(model, "f32", "bf16-operands", 40, 40, held);
    ok(j.verdict == SINKPROOF_VERDICT_BUG && j.first != NULL && strcmp(j.first->name, "00.A1") == 0,
       "an engine that keeps its operands in float32 does not round them to bf16: first outside at "
       "%s",
       j.first != NULL ? j.first->name : "no point");
    sinkproof_judgement_free(&j);
}

int main(void) {
    sinkproof_error error;
    sinkproof_model *model, *shallow; // two layers: one slides, one does not
    if (!sinkproof_model_open("synthetic:tiny", &model, &error) ||
        !sinkproof_model_open("synthetic:tiny,layers=2", &shallow, &error)) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        test(model, policies[p], 40, 40, held);
        test(model, policies[p], 40, 7, "T0,A13,M2,M3,M12,F1,F2");
        test(shallow, policies[p], 300, 150, held);
    }
    test_convicted(model);
    sinkproof_model_close(model), sinkproof_model_close(shallow);
    return tap_done();
}
