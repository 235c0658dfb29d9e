// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace whose metadata name another model, by audit/sinkproof.h: the sentence instead of a
// ruling, or a ruling that says so; its text and its JSON as `sinkproof judge` has them. And which
// points of a model a caller's function may replace.
#include "audit/sinkproof.h"
#include "tests/shared/tap.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int32_t tokens[] = {3, 1, 4};
static sinkproof_error error;

// T0 alone, of a trace that is said to be of the model of that fingerprint.
static sinkproof_trace *made(const sinkproof_model *model, const char *fingerprint) {
    sinkproof_run *run;
    sinkproof_trace *whole, *trace;
    sinkproof_trace_builder *b;
    sinkproof_view v = {.size = sizeof v};
    must(sinkproof_run_new(model, "ref", "f32", NULL, &run, &error));
    must(sinkproof_run_trace(run, 3, tokens, "T0", NULL, &whole, &error));
    must(sinkproof_trace_named(whole, "T0", &v));
    must(sinkproof_trace_builder_new(model, "mine", "f32", 3, tokens, &b, &error));
    must(sinkproof_trace_builder_add(b, v.name, v.dtype, v.rank, v.shape, v.data, &error));
    must(sinkproof_trace_builder_of(b, fingerprint, &error));
    must(sinkproof_trace_builder_finish(b, &trace, &error));
    sinkproof_trace_builder_free(b);
    sinkproof_trace_close(whole);
    sinkproof_run_free(run);
    return trace;
}

static bool refuses(const sinkproof_model *model, const sinkproof_trace *trace,
                    const sinkproof_trial_options *how) {
    sinkproof_ruling *ruling;
    static const char said[] =
        "is a trace of another model: its metadata name the fingerprint 0123456789abcdef, MODEL ";
    return !sinkproof_judge_trace(model, trace, how, &ruling, &error) && ruling == NULL &&
           strstr(error.text, said) != NULL;
}

static void check_arrays(const sinkproof_model *model) {
    sinkproof_trace *trace = made(model, "0123456789abcdef");
    sinkproof_ruling *ruling;
    sinkproof_trial_options how = {.size = sizeof how, .policy = "f32", .local = true};
    ok(refuses(model, trace, &how) && refuses(model, trace, NULL), "refused: %s", error.text);
    how.any_model = 1;
    must(sinkproof_judge_trace(model, trace, &how, &ruling, &error));
    ok(strncmp(sinkproof_ruling_text(ruling), "Another model: ", 15) == 0 &&
           strstr(sinkproof_ruling_json(ruling), "\"Another model: ") != NULL &&
           sinkproof_ruling_exit(ruling) == 0,
       "and judged, if any will do: %.80s", sinkproof_ruling_text(ruling));
    sinkproof_ruling_free(ruling);
    how.size = offsetof(sinkproof_trial_options, any_model);
    ok(refuses(model, trace, &how), "a caller's struct that ends before any_model does not ask it");
    sinkproof_trace_close(trace);
}

// A file of truth that no trace of this model could have, and options that contradict it.
static void check_truth(const sinkproof_model *model) {
    sinkproof_trace *trace = made(model, "none");
    sinkproof_ruling *ruling;
    sinkproof_trial_options how = {.size = sizeof how, .policy = "f32", .truth = "/nonexistent"};
    bool good = sinkproof_judge_trace(model, trace, &how, &ruling, &error);
    ok(!good && ruling == NULL && strstr(error.text, "/nonexistent") != NULL,
       "a file of truth that is missing: %.60s", error.text);
    how.local = true;
    good = sinkproof_judge_trace(model, trace, &how, &ruling, &error);
    ok(!good && strstr(error.text, "compared end to end") != NULL, "beside local: %s", error.text);
    how = (sinkproof_trial_options){.size = sizeof how, .truth_alone = true};
    good = sinkproof_judge_trace(model, trace, &how, &ruling, &error);
    ok(!good && strstr(error.text, "expected a file of truth, found none") != NULL,
       "truth_alone without one: %s", error.text);
    how = (sinkproof_trial_options){.size = offsetof(sinkproof_trial_options, truth),
                                    .policy = "f32",
                                    .local = true,
                                    .truth = "/nonexistent"};
    good = sinkproof_judge_trace(model, trace, &how, &ruling, &error);
    ok(good, "a caller's struct that ends before it does not ask it");
    sinkproof_ruling_free(ruling);
    sinkproof_trace_close(trace);
}

static void check_file(const sinkproof_model *model, const sinkproof_model *other) {
    char path[] = "/tmp/sinkproof-face-model-XXXXXX";
    sinkproof_trace *trace = made(model, "0123456789abcdef"), *read;
    close(mkstemp(path));
    must(sinkproof_trace_write(trace, path, &error));
    sinkproof_trace_close(trace);
    bool refused = !sinkproof_trace_open_of(path, model, false, &read, &error) && read == NULL;
    ok(refused && strstr(error.text, "another model") != NULL, "a file: %.60s", error.text);
    must(sinkproof_trace_open_of(path, model, true, &read, &error));
    ok(strcmp(sinkproof_trace_metadata(read, "model"), "0123456789abcdef") == 0,
       "and is opened, if any will do");
    sinkproof_trace_close(read);
    refused = !sinkproof_trace_open_of(path, other, false, &read, &error);
    ok(refused && strstr(error.text, "another model") != NULL, "before its shapes are looked at");
    unlink(path);
}

// What names no fingerprint contradicts nothing.
static void check_none(const sinkproof_model *model) {
    static const char *const names[] = {"", "openai/gpt-oss-20b", "0123456789abcdeg",
                                        "0123456789abcde", "0123456789abcdef0"};
    size_t judged = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sinkproof_trace *trace = made(model, names[i]);
        sinkproof_ruling *ruling;
        sinkproof_trial_options how = {.size = sizeof how, .policy = "f32", .local = true};
        judged += sinkproof_judge_trace(model, trace, &how, &ruling, &error) &&
                  strstr(sinkproof_ruling_text(ruling), "nother model") == NULL;
        sinkproof_ruling_free(ruling);
        sinkproof_trace_close(trace);
    }
    ok(judged == sizeof names / sizeof *names, "%zu names that are no fingerprint are judged",
       judged);
}

static bool leave(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    (void)context, (void)call, (void)values, (void)e;
    return true;
}

static bool refuses_stage(sinkproof_run *run, const char *point, const char *from,
                          const char *saying) {
    return !sinkproof_run_replace(run, point, from, leave, NULL, &error) &&
           strstr(error.text, saying) != NULL;
}

// GPT-2 has no rotation and no router: their points are not among those that may be replaced.
static void check_replaced(const sinkproof_model *gpt2) {
    sinkproof_run *run;
    must(sinkproof_run_new(gpt2, "ref", "f32", NULL, &run, &error));
    ok(refuses_stage(run, "A9", "A6",
                     "shows before it uses them T0, A1, A2.q, A2.k, A2.v, A11, A12, A13, M1, M10, "
                     "M12, F1, F2"),
       "of GPT-2 only points that it has are listed: %s", error.text);
    ok(refuses_stage(run, "A4.q", "A2.q", "'A4.q' cannot be replaced") &&
           refuses_stage(run, "M4", "M2", "'M4' cannot be replaced"),
       "A4.q and M4 of GPT-2 are refused");
    sinkproof_run_free(run);
}

int main(void) {
    sinkproof_model *model, *other;
    must(sinkproof_model_open("synthetic:tiny,layers=1", &model, &error));
    must(sinkproof_model_open("synthetic:tiny-gpt2", &other, &error));
    check_arrays(model);
    check_truth(model);
    check_file(model, other);
    check_none(model);
    check_replaced(other);
    sinkproof_model_close(model);
    sinkproof_model_close(other);
    return tap_done();
}
