// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engine in the mode "amx": judged like a stranger's, and the same bits for every number of
// threads, chunk, batch and neighbour. On the processor's tiles, or under amx_trap.h.
#include "tests/shared/ran_on.h" // before what checks: each of its lines has the mark

#include "fast/kernels/isa.h"
#include "fast/lanes/lanes.h"
#include "tests/shared/amx_trap.h"
#include "tests/shared/judged_engine.h"
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

#include <string.h>

#if defined(__x86_64__)

enum { LONG = 50 };

static sinkproof_model *model;
static sinkproof_kernels
    tiles; // products and attention on tiles, all else of a table that runs here
static size_t vocab;
static int32_t tokens[256];

static sinkproof_engine *engine_of(const sinkproof_kernels *kernels, int threads, size_t chunk) {
    sinkproof_policy policy = policy_of("bf16-operands");
    sinkproof_engine_options options = {.kernels = kernels, .threads = threads, .chunk = chunk};
    sinkproof_engine *engine;
    sinkproof_error error;
    need(sinkproof_engine_new(model, &policy, &options, &engine, &error), &error);
    return engine;
}

static sinkproof_sequence *sequence_of(const sinkproof_engine *engine) {
    sinkproof_error error;
    sinkproof_sequence *s = sinkproof_sequence_new(engine, 256, &error);
    need(s != NULL, &error);
    return s;
}

static void run(sinkproof_engine *engine, size_t n_parts, const sinkproof_part *parts,
                const sinkproof_observer *observer) {
    sinkproof_error error;
    need(sinkproof_engine_forward(engine, n_parts, parts, observer, &error), &error);
}

static float *logits_of(size_t n) {
    float *logits = calloc(n * vocab, sizeof *logits);
    if (logits == NULL) exit(1);
    return logits;
}

static size_t apart(size_t n, const float *a, const float *b) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += memcmp(&a[i], &b[i], sizeof *a) != 0;
    return count;
}

// The logits of LONG tokens, `at_once` a pass.
static float *logits_by(const sinkproof_kernels *kernels, int threads, size_t chunk,
                        size_t at_once) {
    sinkproof_engine *engine = engine_of(kernels, threads, chunk);
    sinkproof_sequence *s = sequence_of(engine);
    float *logits = logits_of(LONG);
    for (size_t i = 0; i < LONG; i += at_once) {
        size_t n = LONG - i < at_once ? LONG - i : at_once;
        run(engine, 1, &(sinkproof_part){s, n, tokens + i, logits + i * vocab, true}, NULL);
    }
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
    return logits;
}

// ---- judged --------------------------------------------------------------------------------

static void test_judged(void) {
    judged_engine of = {{.kernels = &tiles, .threads = 1}, LONG};
    sinkproof_judgement j = judged_run(model, run_engine, &of, "bf16-operands", "bf16-operands",
                                       LONG, 11, one_pass_points);
    ok(j.n_reports > 60, "a trace of %zu points", j.n_reports);
    ok_within(&j, "bound.linear amx bf16-operands", LONG);
}

// ---- the same bits -------------------------------------------------------------------------

static void test_ways(const float *expected) {
    static const struct way {
        int threads;
        size_t chunk, at_once;
    } ways[] = {{2, 0, LONG}, {3, 21, LONG}, {1, 7, 30}, {1, 0, 1}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct way *w = &ways[i];
        float *found = logits_by(&tiles, w->threads, w->chunk, w->at_once);
        size_t wrong = apart(LONG * vocab, expected, found);
        ok(wrong == 0,
           "model.forward amx %d threads, chunk %zu, %zu tokens at once worst=%zu bound=0",
           w->threads, w->chunk, w->at_once, wrong);
        free(found);
    }
}

// The sequence among four others of other lengths.
static void test_batch(const float *expected) {
    enum { OTHERS = 4 };
    static const size_t lengths[OTHERS] = {1, 33, 0, 16};
    sinkproof_engine *engine = engine_of(&tiles, 1, 24);
    sinkproof_sequence *all[OTHERS + 1];
    float *found = logits_of(LONG);
    size_t done = 0;
    for (size_t i = 0; i <= OTHERS; i++) all[i] = sequence_of(engine);
    for (size_t step = 0; done < LONG; step++) {
        size_t m = step % 2 == 0 ? 1 : 19;
        if (m > LONG - done) m = LONG - done;
        sinkproof_part parts[OTHERS + 1];
        for (size_t i = 0; i < OTHERS; i++)
            parts[i < 2 ? i : i + 1] =
                (sinkproof_part){all[i], step < 3 ? lengths[i] : 1, tokens + 40 + i, NULL, false};
        parts[2] = (sinkproof_part){all[OTHERS], m, tokens + done, found + done * vocab, true};
        run(engine, OTHERS + 1, parts, NULL);
        done += m;
    }
    size_t wrong = apart(LONG * vocab, expected, found);
    ok(wrong == 0, "model.forward amx in a batch of %d worst=%zu bound=0", OTHERS + 1, wrong);
    for (size_t i = 0; i <= OTHERS; i++) sinkproof_sequence_free(all[i]);
    sinkproof_engine_free(engine);
    free(found);
}

static void test_refusal(void) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_engine_options options = {.kernels = &tiles, .threads = 1};
    sinkproof_engine *engine = NULL;
    sinkproof_error error = {{0}};
    ok(!sinkproof_engine_new(model, &policy, &options, &engine, &error) && engine == NULL &&
           strstr(error.text, "bf16") != NULL,
       "float32 operands are refused: %s", error.text);
}

int main(void) {
    const char *why = NULL;
    sinkproof_error error;
    const bool native = sinkproof_isa_runs(&kernels_amx, &why);
    const bool pairs = sinkproof_isa_runs(&kernels_avx512bf16, NULL);
    need(sinkproof_model_open("synthetic:tiny", &model, &error), &error);
    vocab = sinkproof_model_config(model)->vocab;
    some_tokens(sizeof tokens / sizeof *tokens, vocab, 11, tokens);
    tiles = kernels_amx;
    test_refusal();
    if (!native && !sinkproof_isa_runs(&kernels_avx512, NULL)) {
        note("the engine's kernels need AVX-512: %s", why);
        sinkproof_model_close(model);
        return tap_done();
    }
    if (!native) {
        note("tiles in software: %s", why);
        amx_trap_install();
    }
    if (!pairs) { // the lanes' bits are the same
        note("lanes of avx512");
        tiles = kernels_avx512;
        tiles.isa = "amx", tiles.mode = "amx", tiles.pairs = true;
        tiles.linear = kernels_amx.linear;
        tiles.attend = kernels_amx.attend;
        tiles.attend_spans = kernels_amx.attend_spans;
    }
    tap_ran_on("amx", native);
    float *expected = logits_by(&tiles, 1, 0, LONG);
    float *lanes = logits_by(&kernels_avx512, 1, 0, LONG);
    size_t other = apart(LONG * vocab, expected, lanes);
    ok(other > 0, "the mode amx is not the lanes': %zu of %zu logits differ", other, LONG * vocab);
    test_judged();
    test_ways(expected);
    test_batch(expected);
    if (!native)
        ok(amx_trap_fault == NULL && amx_trap_count[AMX_TDPBF16PS] > 0,
           "%lu products of tiles, %lu configurations; a fault: %s", amx_trap_count[AMX_TDPBF16PS],
           amx_trap_count[AMX_LDTILECFG], amx_trap_fault == NULL ? "none" : amx_trap_fault);
    free(expected), free(lanes);
    sinkproof_model_close(model);
    return tap_done();
}

#else

int main(void) {
    size_t found = 0;
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++)
        found += strcmp(sinkproof_isa_all()[i]->mode, "amx") == 0;
    ok(found == 0, "the tiles are x86-64's: %zu tables of the mode amx", found);
    return tap_done();
}

#endif
