// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Traces that do not say which expert a slot holds. What is computed on the way to a point that
// they do hold may be read before it is rounded, where the policy leaves that open
// (bound.unrounded), and may be read rounded all the same: honest engines stay inside. A point
// judged by itself, as a diagnosis does it, has the set that it has among all.
#include "audit/diagnose/trial.h"
#include "tests/shared/judged.h"

enum { TOKENS = 9, MOST = 64 };

// Without M3; numbers of the slots, or none from here on.
static const char *const subsets[] = {
    "M1,M2,M5,M6,M9,M10", "A13,M2,M9,M10", "M1,M2,M10",
    "A13,M2,M6,M10",      "M2,M8",         "M1,M2,M4,M11",
    "M1,M2,M9,M10",       "A13,M2,M11",    "A13,M12",
    "M1,M2,M11",          "M1,M11",        "A1,A12,A13,M1,M11,M12"};
enum { SUBSETS = sizeof subsets / sizeof *subsets, WITHOUT_SLOTS = 7 };

static sinkproof_model *model_of(int seed) {
    sinkproof_model *model;
    sinkproof_error error;
    char spec[64];
    snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,seed=%d", seed);
    must(sinkproof_model_open(spec, &model, &error));
    return model;
}

// The subsets from `first` on; the models from `from` to `to`; n tokens.
static void honest(const char *runs, const char *declared, size_t first, int from, int to,
                   size_t n) {
    size_t outside = 0, suspicious = 0, elements = 0, open = 0;
    for (int m = from; m < to; m++) {
        sinkproof_model *model = model_of(m);
        for (size_t k = first; k < SUBSETS; k++) {
            sinkproof_judgement j = judged(model, &sinkproof_reference_stages, runs, declared, n, 0,
                                           100 + (uint64_t)m, subsets[k]);
            for (size_t i = 0; i < j.n_reports; i++) {
                outside += j.reports[i].outside, elements += j.reports[i].elements;
                suspicious += j.reports[i].verdict == SINKPROOF_VERDICT_SUSPICIOUS;
            }
            for (size_t l = 0; l < 2; l++) open += j.open[l];
            sinkproof_judgement_free(&j);
        }
        sinkproof_model_close(model);
    }
    ok(outside == 0 && suspicious == 0 && open > 0 && elements > 10000,
       "bound.unrounded of slots whose expert is not known, %s under %s: worst=%zu bound=0 of "
       "%zu elements, %zu tokens with several choices",
       runs, declared, outside, elements, open);
}

// Elements of the point outside its set, when it is judged alone.
static size_t outside_alone(const sinkproof_model *model, const sinkproof_trace *trace,
                            const sinkproof_policy *policy, const sinkproof_point_report *r) {
    static sinkproof_stretch stretch;
    sinkproof_error error;
    const place_trials trials = {
        .suspect = {.model = model, .trace = trace, .policy = policy, .rate = 1e-9},
        .config = sinkproof_model_config(model),
        .stretch = &stretch,
        .error = &error};
    size_t elements = 1, marked = 0;
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    uint8_t *marks = mark_outside_elements(&trials, r);
    must(marks != NULL);
    for (size_t i = 0; i < elements; i++) marked += marks[i];
    free(marks);
    return marked;
}

// An engine under `runs` judged as if it had run under `declared`, by every second subset.
static void alone_as_among_all(const char *runs, const char *declared, size_t odd) {
    sinkproof_model *model = model_of(1);
    sinkproof_policy policy, ran;
    sinkproof_error error;
    int32_t tokens[TOKENS];
    char path[64];
    size_t other = 0, points = 0, outside = 0;
    some_tokens(TOKENS, sinkproof_model_config(model)->vocab, 7, tokens);
    snprintf(path, sizeof path, "/tmp/sinkproof-experts-%ld.safetensors", (long)getpid());
    must(sinkproof_policy_parse(runs, &ran, &error) &&
         sinkproof_policy_parse(declared, &policy, &error));
    for (size_t k = odd; k < SUBSETS; k += 2) {
        judged_stages of = {&sinkproof_reference_stages, 0};
        sinkproof_trace_writer *writer;
        sinkproof_trace *trace;
        sinkproof_judgement j;
        must(sinkproof_trace_writer_new(path, model, &ran, "judged", subsets[k], TOKENS, &writer,
                                        &error) &&
             run_stages(&of, model, &ran, TOKENS, tokens, sinkproof_trace_writer_observer(writer),
                        &error) &&
             sinkproof_trace_writer_finish(writer, tokens, &error) &&
             sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) &&
             sinkproof_judge(model, trace, &policy, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error));
        for (size_t i = 0; i < j.n_reports; i++, points++) {
            size_t alone = outside_alone(model, trace, &policy, &j.reports[i]);
            if (alone != j.reports[i].outside && other++ < 5)
                note("%s of %s: %zu outside, alone %zu", j.reports[i].name, subsets[k],
                     j.reports[i].outside, alone);
            outside += alone;
        }
        sinkproof_judgement_free(&j);
        sinkproof_trace_close(trace);
        sinkproof_trace_writer_free(writer);
        unlink(path);
    }
    sinkproof_model_close(model);
    ok(other == 0 && points > 10,
       "%s under %s: of %zu points alone as many elements are outside as among all (%zu)", runs,
       declared, points, outside);
}

int main(void) {
    honest("openai-bf16", "openai-bf16,unrounded=any", 0, 0, 1, TOKENS);
    honest("openai-bf16", "openai-bf16,unrounded=M6|M8|M10", 0, 1, 2, TOKENS);
    honest("openai-bf16", "openai-bf16,unrounded=M4", WITHOUT_SLOTS, 5, 7, MOST);
    honest("bf16", "bf16,unrounded=any", 0, 0, 1, TOKENS);
    honest("openai-bf16", "openai-bf16", 0, 1, 2, TOKENS);
    alone_as_among_all("openai-bf16", "openai-bf16", 1);
    alone_as_among_all("f32,M8.alpha=bf16", "f32", 0);
    alone_as_among_all("f32,M6=bf16,M8.alpha=bf16", "f32,M5=real,M9=real", 1);
    alone_as_among_all("f16,A1=real,M1=real", "f16,unrounded=A13|M12", 0);
    alone_as_among_all("openai-bf16,A1=real,M1=real", "openai-bf16,unrounded=any", 1);
    alone_as_among_all("openai-bf16,M10=real", "openai-bf16", 0);
    alone_as_among_all("bf16,M9=f32,M8.alpha=f16", "openai-bf16,unrounded=any", 1);
    return tap_done();
}
