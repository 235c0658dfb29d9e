// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Several sequences in one trace, end to end: each is judged as its own, its errors are those of
// its own trace, and what crosses a boundary is convicted, with the sequence named.
#include "audit/judge/judge_report.h"
#include "tests/shared/cut.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { SEQUENCES = 3 };
static const size_t lengths[SEQUENCES] = {5, 12, 9};
static judged_stages reference = {&sinkproof_reference_stages, 0};

static sinkproof_trace *trace_of(const sinkproof_model *model, const char *policy,
                                 const char *points, size_t n, uint64_t seed) {
    int32_t tokens[32];
    some_tokens(n, sinkproof_model_config(model)->vocab, seed, tokens);
    return whole_trace(model, run_stages, &reference, policy, points, n, tokens);
}

static sinkproof_trace *packed_of(const sinkproof_model *model, const char *policy,
                                  const char *points) {
    sinkproof_trace *of[SEQUENCES];
    for (size_t s = 0; s < SEQUENCES; s++)
        of[s] = trace_of(model, policy, points, lengths[s], 7 + s);
    sinkproof_trace *packed = packed_trace(model, SEQUENCES, (const sinkproof_trace *const *)of);
    for (size_t s = 0; s < SEQUENCES; s++) sinkproof_trace_close(of[s]);
    return packed;
}

// The errors against the truth are those of the sequences, added up.
static void test_honest(const char *spec, const char *policy, const char *points) {
    sinkproof_model *model = open_model(spec);
    sinkproof_trace *packed = packed_of(model, policy, points);
    sinkproof_judgement j = judged_trace(model, packed, policy);
    double apart = 0;
    double *error = calloc(j.n_reports, sizeof *error);
    must(error != NULL);
    for (size_t s = 0; s < SEQUENCES; s++) {
        sinkproof_trace *one = trace_of(model, policy, points, lengths[s], 7 + s);
        sinkproof_judgement alone = judged_trace(model, one, policy);
        for (size_t i = 0; i < j.n_reports; i++) error[i] += alone.reports[i].errors.error;
        sinkproof_judgement_free(&alone), sinkproof_trace_close(one);
    }
    for (size_t i = 0; i < j.n_reports; i++) {
        double off = fabs(error[i] - j.reports[i].errors.error);
        apart = fmax(apart, off / fmax(error[i], 1e-300));
    }
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && j.n_sequences == SEQUENCES && j.n_reports > 3,
       "%s, %s, %s: three honest sequences in one trace are %s", spec, policy,
       points != NULL ? points : "all points", sinkproof_verdict_name(j.verdict));
    ok(apart < 0x1p-20, "their errors against the truth are those of each alone worst=%.3g", apart);
    free(error);
    sinkproof_judgement_free(&j), sinkproof_trace_close(packed), sinkproof_model_close(model);
}

// The engine that forgets the boundaries runs all tokens as one sequence.
static void test_one_sequence(const char *points, const char *at) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_trace *packed = packed_of(model, "f32", points), *wrong;
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *b = NULL;
    size_t n = sinkproof_trace_length(packed);
    sinkproof_trace *joined = whole_trace(model, run_stages, &reference, "f32", points, n,
                                          sinkproof_trace_tokens(packed));
    need(sinkproof_trace_builder_new(model, "joined", NULL, n, sinkproof_trace_tokens(packed), &b,
                                     &error) &&
             sinkproof_trace_builder_place(b, SEQUENCES, lengths, NULL, &error),
         &error);
    const cut all = {0};
    for (size_t l = 0; l < config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            if (l == 0 || sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                add_cut_point(b, config, joined, (sinkproof_trace_point)p, l, &all);
    need(sinkproof_trace_builder_finish(b, &wrong, &error), &error);
    sinkproof_judgement j = judged_trace(model, wrong, "f32");
    static char text[REPORT_ROOM];
    report_as_text(config, &j, text);
    ok(j.verdict == SINKPROOF_VERDICT_BUG && strcmp(j.first->name, at) == 0 &&
           j.first->sequence > 0 && strstr(text, ", sequence ") != NULL &&
           strstr(text, "The trace holds 3 sequences, counted from 0.") != NULL,
       "%s of sequences that were run as one are convicted at %s, sequence %zu, position %zu",
       points != NULL ? points : "all points", at, j.first != NULL ? j.first->sequence : 0,
       j.first != NULL ? j.first->position : 0);
    sinkproof_judgement_free(&j);
    sinkproof_trace_builder_free(b);
    sinkproof_trace_close(wrong), sinkproof_trace_close(joined), sinkproof_trace_close(packed);
    sinkproof_model_close(model);
}

// A weight on a key of the sequence before.
static void test_leak(void) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    sinkproof_trace *packed = packed_of(model, "f32", NULL);
    size_t n = sinkproof_trace_length(packed), row = 6, key = 4; // row 1 of sequence 1
    const sinkproof_tensor *a10 = sinkproof_trace_find(packed, TRACE_A10, 1);
    float leak = 0x1p-30f;
    memcpy((uint8_t *)(uintptr_t)a10->data + (row * n + key) * sizeof leak, &leak, sizeof leak);
    sinkproof_judgement j = judged_trace(model, packed, "f32");
    ok(j.verdict == SINKPROOF_VERDICT_BUG && strcmp(j.first->name, "01.A10") == 0 &&
           j.first->outside == 1 && j.first->sequence == 1 && j.first->position == 1,
       "the least weight on a key of another sequence is convicted there");
    sinkproof_judgement_free(&j), sinkproof_trace_close(packed), sinkproof_model_close(model);
}

// Sequences that begin later: what reads their prefix is undecided, the others are decided.
static void test_later(void) {
    enum { N = 20 };
    const size_t rows[2] = {4, 6}, firsts[2] = {0, 14};
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_trace *whole = trace_of(model, "f32", "T0,A1,A2,A4,A11,A12,A13,M12", N, 3), *trace;
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *b = NULL;
    int32_t tokens[10];
    memcpy(tokens, sinkproof_trace_tokens(whole), 4 * sizeof *tokens);
    memcpy(tokens + 4, sinkproof_trace_tokens(whole) + 14, 6 * sizeof *tokens);
    need(sinkproof_trace_builder_new(model, "later", NULL, 10, tokens, &b, &error) &&
             sinkproof_trace_builder_place(b, 2, rows, firsts, &error),
         &error);
    for (size_t i = 0; i < sinkproof_trace_count(whole); i++) {
        sinkproof_view v = {.size = sizeof v};
        must(sinkproof_trace_at(whole, i, &v));
        if (strcmp(v.name, "tokens") == 0 || strcmp(v.name, "positions") == 0) continue;
        size_t each = v.bytes / N;
        uint8_t *data = malloc(10 * each);
        must(data != NULL);
        memcpy(data, v.data, 4 * each);
        memcpy(data + 4 * each, (const uint8_t *)v.data + 14 * each, 6 * each);
        v.shape[0] = 10;
        need(sinkproof_trace_builder_add(b, v.name, v.dtype, v.rank, v.shape, data, &error),
             &error);
        free(data);
    }
    need(sinkproof_trace_builder_finish(b, &trace, &error), &error);
    sinkproof_judgement j = judged_trace(model, trace, "f32");
    size_t width = config->n_heads * config->head_dim, undecided = 0, others = 0;
    for (size_t i = 0; i < j.n_reports; i++) {
        bool values = strcmp(j.reports[i].name, "01.A11") == 0;
        undecided += values ? j.reports[i].undecided : 0;
        others += j.reports[i].point != TRACE_A11 ? j.reports[i].undecided : 0;
    }
    static char text[REPORT_ROOM];
    report_as_text(config, &j, text);
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && undecided == 6 * width && others == 0 &&
           strstr(text, "trace a sequence that begins later alone") != NULL &&
           strstr(text, "one or more begin after position 0") != NULL,
       "of a sequence that begins later %zu weighted values are undecided, and nothing else",
       undecided);
    sinkproof_judgement_free(&j);
    sinkproof_trace_builder_free(b);
    sinkproof_trace_close(trace), sinkproof_trace_close(whole), sinkproof_model_close(model);
}

int main(void) {
    test_honest("synthetic:tiny,layers=2", "f32", NULL);
    test_honest("synthetic:tiny-gpt2", "bf16", NULL);
    test_honest("synthetic:tiny-llama", "f32", "T0,A4,A6,A11,F2");
    test_honest("synthetic:tiny,layers=2", "openai-bf16", "T0,A11,M12,F2");
    test_honest("synthetic:tiny,layers=2", "bf16", "A13,M3,M12");
    test_one_sequence(NULL, "00.A4.q");
    test_one_sequence("A4,A9,A11,A13", "00.A4.q");
    test_one_sequence("A6,A9", "00.A9");
    test_leak();
    test_later();
    return tap_done();
}
