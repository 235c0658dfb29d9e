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
#include <unistd.h>

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

// ---- a padded batch

// Writes tokens, attention_mask and the points of the sequences as a batch of 12 columns, padded on
// the left or on the right; in its padding tokens are 0 and other numbers NaN.
static void write_padded(const char *path, const sinkproof_config *config,
                         sinkproof_trace *const *of, bool left) {
    enum { COLUMNS = 12 };
    sinkproof_error error = {{0}};
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    int32_t tokens[SEQUENCES][COLUMNS] = {{0}}, mask[SEQUENCES][COLUMNS] = {{0}};
    const size_t both[2] = {SEQUENCES, COLUMNS};
    sinkproof_safetensors_writer_metadata(w, "format", "sinkproof-trace-1");
    sinkproof_safetensors_writer_declare(w, "tokens", SINKPROOF_DTYPE_I32, 2, both);
    sinkproof_safetensors_writer_declare(w, "attention_mask", SINKPROOF_DTYPE_I32, 2, both);
    for (size_t s = 0; s < SEQUENCES; s++)
        for (size_t i = 0; i < lengths[s]; i++) {
            size_t at = left ? COLUMNS - lengths[s] + i : i;
            tokens[s][at] = sinkproof_trace_tokens(of[s])[i], mask[s][at] = 1;
        }
    for (int fill = 0; fill < 2; fill++) {
        if (fill == 1)
            need(sinkproof_safetensors_writer_begin(w, path, &error) &&
                     sinkproof_safetensors_writer_bytes(w, tokens, sizeof tokens, &error) &&
                     sinkproof_safetensors_writer_bytes(w, mask, sizeof mask, &error),
                 &error);
        for (size_t l = 0; l < config->n_layers; l++)
            for (int p = 0; p < TRACE_POINTS; p++) {
                sinkproof_trace_point point = (sinkproof_trace_point)p;
                const sinkproof_tensor *t = sinkproof_trace_find(of[0], point, l);
                size_t shape[SINKPROOF_MAX_RANK] = {SEQUENCES};
                if (t == NULL || (l > 0 && !sinkproof_trace_point_is_layered(point))) continue;
                bool by_head = sinkproof_trace_point_is_by_head(point);
                size_t rank = sinkproof_trace_shape(config, point, COLUMNS, shape + 1);
                if (fill == 0) {
                    sinkproof_safetensors_writer_declare(w, t->name, t->dtype, rank + 1, shape);
                    continue;
                }
                size_t each = sinkproof_dtype_size(t->dtype), all = each;
                for (size_t d = 0; d < rank; d++) all *= shape[d + 1];
                uint8_t *out = malloc(all);
                must(out != NULL);
                for (size_t s = 0; s < SEQUENCES; s++) {
                    const sinkproof_tensor *own = sinkproof_trace_find(of[s], point, l);
                    size_t pad = left ? COLUMNS - lengths[s] : 0, heads = by_head ? shape[1] : 1;
                    size_t row = all / heads / COLUMNS, own_row = own->bytes / heads / lengths[s];
                    memset(out, 0xff, all);
                    for (size_t r = 0; r < heads * lengths[s]; r++) {
                        size_t h = r / lengths[s], i = r % lengths[s];
                        uint8_t *to = out + (h * COLUMNS + pad + i) * row;
                        const uint8_t *from = own->data + r * own_row;
                        if (!by_head) {
                            memcpy(to, from, row);
                            continue;
                        }
                        memcpy(to + pad * each, from, lengths[s] * each);
                        if (own->shape[2] > lengths[s])
                            memcpy(to + COLUMNS * each, from + lengths[s] * each, each);
                    }
                    need(sinkproof_safetensors_writer_bytes(w, out, all, &error), &error);
                }
                free(out);
            }
    }
    need(sinkproof_safetensors_writer_finish(w, &error), &error);
    sinkproof_safetensors_writer_free(w);
}

// A batch with padding is the trace of its sequences end to end.
static void test_padded(const char *policy, bool left) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2");
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_error error = {{0}};
    sinkproof_trace *of[SEQUENCES], *padded = NULL, *packed = packed_of(model, policy, NULL);
    char path[64];
    size_t other = 0, tensors = sinkproof_trace_count(packed);
    snprintf(path, sizeof path, "/tmp/sinkproof-padded-%ld.safetensors", (long)getpid());
    for (size_t s = 0; s < SEQUENCES; s++) of[s] = trace_of(model, policy, NULL, lengths[s], 7 + s);
    write_padded(path, config, of, left);
    need(sinkproof_trace_open_of(path, model, false, &padded, &error), &error);
    for (size_t l = 0; l < config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            const sinkproof_tensor *a = sinkproof_trace_find(packed, (sinkproof_trace_point)p, l);
            const sinkproof_tensor *b = sinkproof_trace_find(padded, (sinkproof_trace_point)p, l);
            other += (a == NULL) != (b == NULL);
            // scores of other sequences may be anything
            if (a != NULL && b != NULL && p != TRACE_A6)
                other += a->bytes != b->bytes || memcmp(a->data, b->data, a->bytes) != 0;
        }
    sinkproof_judgement j = judged_trace(model, padded, policy);
    ok(other == 0 && sinkproof_trace_sequences(padded) == SEQUENCES &&
           memcmp(sinkproof_trace_positions(padded), sinkproof_trace_positions(packed),
                  sinkproof_trace_length(packed) * sizeof(int32_t)) == 0 &&
           j.verdict <= SINKPROOF_VERDICT_WITHIN,
       "%s: a batch with padding on the %s is its sequences end to end (%zu tensors, %zu differ): "
       "%s",
       policy, left ? "left" : "right", tensors, other, sinkproof_verdict_name(j.verdict));
    for (size_t s = 0; s < SEQUENCES; s++) sinkproof_trace_close(of[s]);
    unlink(path);
    sinkproof_judgement_free(&j), sinkproof_trace_close(padded), sinkproof_trace_close(packed);
    sinkproof_model_close(model);
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
           strstr(text,
                  "give cu_seqlens_k, with A4.k and A2.v rows for the positions before each") !=
               NULL &&
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
    test_honest("synthetic:tiny,layers=2", "bf16", "A13,M3,M12");
    test_one_sequence(NULL, "00.A4.q");
    test_one_sequence("A4,A9,A11,A13", "00.A4.q");
    test_one_sequence("A6,A9", "00.A9");
    test_leak();
    test_padded("f32", true);
    test_padded("hf-bf16", false);
    test_later();
    return tap_done();
}
