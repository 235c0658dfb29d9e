// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace may begin after position 0, as one does behind a cached prefix. With the keys and values
// of the prefix all of it is decided; without them what reads the prefix is undecided, and nothing
// honest is called a bug. A wrong position, prefix or mask is convicted.
#include "audit/judge/judge_report.h"
#include "base/splitmix.h"
#include "tests/shared/cut.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { N = 20, FIRST = 12 };

static judged_stages reference = {&sinkproof_reference_stages, 0};

static sinkproof_trace *traced(const sinkproof_model *model, const char *policy,
                               const char *points) {
    int32_t tokens[N];
    some_tokens(N, sinkproof_model_config(model)->vocab, 5, tokens);
    return whole_trace(model, run_stages, &reference, policy, points, N, tokens);
}

static const sinkproof_point_report *report_of(const sinkproof_judgement *j, const char *name) {
    for (size_t i = 0; i < j->n_reports; i++)
        if (strcmp(j->reports[i].name, name) == 0) return &j->reports[i];
    printf("Bail out! no report of %s\n", name);
    exit(1);
}

static void test_prefix_given(const char *spec, const char *policy) {
    sinkproof_model *model = open_model(spec);
    sinkproof_trace *whole = traced(model, policy, NULL);
    const cut c = cut_at(FIRST, FIRST);
    sinkproof_trace *trace = cut_trace(model, whole, &c);
    sinkproof_judgement j = judged_trace(model, trace, policy),
                        all = judged_trace(model, whole, policy);
    size_t other = 0;
    for (size_t i = 0; i < all.n_reports && i < j.n_reports; i++)
        other += j.reports[i].verdict > SINKPROOF_VERDICT_WITHIN ||
                 j.reports[i].undecided > all.reports[i].undecided ||
                 strcmp(j.reports[i].name, all.reports[i].name) != 0;
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && j.n_reports == all.n_reports && other == 0,
       "%s, %s: behind a known prefix all %zu points are decided as in the whole trace, %zu not",
       spec, policy, j.n_reports, other);
    sinkproof_judgement_free(&j), sinkproof_judgement_free(&all);
    sinkproof_trace_close(trace), sinkproof_trace_close(whole);
    sinkproof_model_close(model);
}

// Layers 0 and 2 slide with a window of 8: the rows from position 19 on see keys 12 to 19.
static void test_prefix_unknown(void) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=3");
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_trace *whole = traced(model, "hf-bf16", NULL);
    const cut none = cut_at(FIRST, 0), window = cut_at(FIRST, 7), keys = {FIRST, FIRST, 0, FIRST};
    sinkproof_trace *trace = cut_trace(model, whole, &none);
    sinkproof_judgement j = judged_trace(model, trace, "hf-bf16");
    size_t width = config->n_heads * config->head_dim;
    const sinkproof_point_report *slid = report_of(&j, "00.A11"), *full = report_of(&j, "01.A11");
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && full->verdict == SINKPROOF_VERDICT_UNDECIDED &&
           full->undecided == (N - FIRST) * width && slid->undecided == 7 * width,
       "without a prefix A11 is undecided (%zu of %zu) where it is read, and nowhere else (%zu)",
       full->undecided, full->elements, slid->undecided);
    size_t undecided = 0;
    for (size_t i = 0; i < j.n_reports; i++)
        undecided += j.reports[i].undecided > 0 && j.reports[i].point != TRACE_A6 &&
                     j.reports[i].point != TRACE_A11;
    ok(undecided == 0, "A9 from A6, A10 from A9 and all other points are decided: %zu are not",
       undecided);
    static char text[REPORT_ROOM];
    report_as_text(config, &j, text);
    ok(strstr(text, "; give A4.k and A2.v rows for the positions before 12\n") != NULL &&
           strstr(text, "00.A4.k before position 12") != NULL &&
           strstr(text, "The trace begins at position 12.\nIt is not compared with the truth") !=
               NULL,
       "the report names the remedy, and says that the truth is not asked");
    sinkproof_judgement_free(&j), sinkproof_trace_close(trace);
    trace = cut_trace(model, whole, &window);
    j = judged_trace(model, trace, "hf-bf16");
    ok(report_of(&j, "00.A11")->undecided == 0 && report_of(&j, "01.A11")->undecided > 0 &&
           j.verdict <= SINKPROOF_VERDICT_WITHIN,
       "the keys and values of a window decide the layers that slide");
    sinkproof_judgement_free(&j), sinkproof_trace_close(trace);
    trace = cut_trace(model, whole, &keys);
    j = judged_trace(model, trace, "hf-bf16");
    ok(report_of(&j, "01.A6")->undecided == 0 && report_of(&j, "01.A11")->undecided > 0,
       "keys without values decide the scores, and no weighted values");
    sinkproof_judgement_free(&j), sinkproof_trace_close(trace);
    sinkproof_trace_close(whole), sinkproof_model_close(model);
}

// Points, cuts and policies at random: no honest trace is called a bug or suspicious.
static void test_subsets(void) {
    static const char *const policies[] = {"real-f64", "f32", "openai-bf16", "hf-bf16", "bf16"};
    static const char *const specs[] = {"synthetic:tiny,layers=3", "synthetic:tiny-gpt2",
                                        "synthetic:tiny-llama", "synthetic:tiny,sink=key,layers=2"};
    static const char *const subsets[] = {NULL,
                                          "A2,A11,A12",
                                          "A4.k,A2.v,A11",
                                          "T0,A2,A4,A11,A13,M12",
                                          "A4,A9,A10,A2.v,A11",
                                          "A6,A10,A13,F1,F2",
                                          "T0,F2",
                                          "A2.v,A9,A11",
                                          "A13,M3,M12,F2",
                                          "A2.k,A2.v,A2.q,A11,A6"};
    uint64_t seed = 3;
    size_t runs = 0, wrong = 0, undecided = 0;
    for (size_t s = 0; s < 4; s++) {
        sinkproof_model *model = open_model(specs[s]);
        for (size_t k = 0; k < 10; k++) {
            const char *policy = policies[sinkproof_draw(&seed) % 5];
            if (s == 2 && strchr("A", subsets[k] != NULL ? subsets[k][0] : 'A') == NULL) continue;
            bool dense = s == 1 || s == 2;
            const char *points = dense && subsets[k] != NULL && strstr(subsets[k], "M3") ? "A13,M12"
                                 : s == 1 && k == 2                                      ? "A2,A11"
                                 : s == 1 && k == 3 ? "T0,A2,A11,A13,M12"
                                 : s == 1 && k == 4 ? "A9,A10,A2.v,A11"
                                                    : subsets[k];
            sinkproof_trace *whole = traced(model, policy, points);
            size_t first = 1 + sinkproof_draw(&seed) % (N - 1);
            const cut c = {first, sinkproof_draw(&seed) % (first + 1),
                           sinkproof_draw(&seed) % (first + 1), first};
            sinkproof_trace *trace = cut_trace(model, whole, &c);
            sinkproof_judgement j = judged_trace(model, trace, policy);
            runs++;
            wrong += j.verdict >= SINKPROOF_VERDICT_SUSPICIOUS;
            undecided += j.undecided > 0;
            if (j.verdict >= SINKPROOF_VERDICT_SUSPICIOUS)
                note("%s, %s, %s, from %zu, %zu keys, %zu values: %s at %s", specs[s], policy,
                     points != NULL ? points : "all", first, c.keys, c.values,
                     sinkproof_verdict_name(j.verdict),
                     (j.first != NULL ? j.first : j.first_suspicious)->name);
            sinkproof_judgement_free(&j);
            sinkproof_trace_close(trace), sinkproof_trace_close(whole);
        }
        sinkproof_model_close(model);
    }
    ok(wrong == 0 && runs > 30 && undecided > 10,
       "%zu honest traces that begin later: %zu called a bug or suspicious (%zu with points "
       "undecided)",
       runs, wrong, undecided);
}

// The verdict on a cut whose tensor `name` has one element changed, or whose positions are wrong.
static void convicted(const char *what, const char *points, const char *name, size_t element, cut c,
                      const char *at) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=3");
    sinkproof_trace *whole = traced(model, "f32", points);
    sinkproof_trace *trace = cut_trace(model, whole, &c);
    const sinkproof_tensor *t =
        name != NULL ? sinkproof_safetensors_find(sinkproof_trace_file(trace), name) : NULL;
    float x;
    if (t != NULL) { // the bytes are the trace's own
        uint8_t *place = (uint8_t *)(uintptr_t)t->data + element * sizeof x;
        memcpy(&x, place, sizeof x);
        x += 3;
        memcpy(place, &x, sizeof x);
    }
    sinkproof_judgement j = judged_trace(model, trace, "f32");
    ok(j.verdict == SINKPROOF_VERDICT_BUG && strcmp(j.first->name, at) == 0,
       "%s is convicted at %s: found %s at %s", what, at, sinkproof_verdict_name(j.verdict),
       j.first != NULL ? j.first->name : "no point");
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace), sinkproof_trace_close(whole);
    sinkproof_model_close(model);
}

int main(void) {
    test_prefix_given("synthetic:tiny,layers=3", "hf-bf16");
    test_prefix_given("synthetic:tiny-gpt2", "f32");
    test_prefix_given("synthetic:tiny-llama", "bf16");
    test_prefix_unknown();
    test_subsets();
    convicted("a position that is one too large", "A2,A4,A11", NULL, 0,
              (cut){FIRST, 12, 12, FIRST + 1}, "00.A4.q");
    convicted("another key in the prefix", NULL, "01.A4.k", 5, cut_at(FIRST, FIRST), "01.A6");
    convicted("another value in the prefix", NULL, "01.A2.v", 5, cut_at(FIRST, FIRST), "01.A11");
    convicted("a weight on a key outside the window", NULL, "00.A9", 0, cut_at(FIRST, 0), "00.A9");
    return tap_done();
}
