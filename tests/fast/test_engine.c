// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engine against the scalar emulation of its arithmetic: every point of the trace and every
// logit equal, bit for bit, under each policy that it serves and on each instruction set that runs
// here; and the same bits for every number of threads, chunking, batch and history of a sequence.
#include "fast/engine/engine.h"
#include "fast/kernels/isa.h"
#include "fast/lanes/lanes.h"
#include "tests/shared/few.h"
#include "tests/shared/opened.h"
#include "tests/shared/ran_on.h"
#include "tests/shared/reference.h"
#include "tests/shared/resident.h"

#include <stdio.h>
#include <unistd.h>

enum { LONG = 330 }; // tokens: the ring of a window layer (8 + 128 positions) wraps twice

enum { MANY = 1000 }; // sequences in turn

static const char *const policies[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands"};
enum { POLICIES = sizeof policies / sizeof policies[0] };

static sinkproof_model *model;
static const char *name_of;
static const sinkproof_config *config;
static int32_t tokens[4096];

static sinkproof_engine *engine_of(const char *policy, sinkproof_engine_options options) {
    sinkproof_policy p = policy_of(policy);
    sinkproof_engine *engine;
    sinkproof_error error;
    need(sinkproof_engine_new(model, &p, &options, &engine, &error), &error);
    return engine;
}

static sinkproof_sequence *sequence_of(const sinkproof_engine *engine, size_t max_tokens) {
    sinkproof_error error;
    sinkproof_sequence *s = sinkproof_sequence_new(engine, max_tokens, &error);
    need(s != NULL, &error);
    return s;
}

// n tokens from `from` on into a sequence; logits_nv: all rows.
static void feed(sinkproof_engine *engine, sinkproof_sequence *s, const int32_t *from, size_t n,
                 float *logits_nv) {
    sinkproof_part part = {s, n, from, logits_nv, true};
    sinkproof_error error;
    need(sinkproof_engine_forward(engine, 1, &part, NULL, &error), &error);
}

static float *logits_of(size_t n) {
    float *logits = calloc(n * config->vocab, sizeof *logits);
    if (logits == NULL) exit(1);
    return logits;
}

// How many floats differ in their bits.
static size_t apart(size_t n, const float *a, const float *b) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += memcmp(&a[i], &b[i], sizeof *a) != 0;
    return count;
}

// ---- against the scalar emulation ------------------------------------------------------------

// All that an observer is shown, in order.
typedef struct shown {
    size_t count;
    struct point {
        char name[32];
        size_t rank, shape[4], count;
        double *values;
    } points[512];
} shown;

static void keep(void *context, const char *name, size_t rank, const size_t *shape,
                 const double *values) {
    shown *to = context;
    struct point *p = &to->points[to->count++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->rank = rank;
    p->count = 1;
    for (size_t r = 0; r < rank; r++) p->count *= p->shape[r] = shape[r];
    p->values = malloc(p->count * sizeof *p->values);
    memcpy(p->values, values, p->count * sizeof *p->values);
}

static void forget(shown *what) {
    for (size_t i = 0; i < what->count; i++) free(what->points[i].values);
    what->count = 0;
}

static const struct point *point_named(const shown *all, const char *name) {
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->points[i].name, name) == 0) return &all->points[i];
    return NULL;
}

// Elements that differ; of A6 the visible ones: a chunk of n queries after `first` keys.
static size_t apart_at(const struct point *a, const struct point *b, size_t first) {
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return SIZE_MAX / 2;
    if (strcmp(a->name + 2, ".A6") != 0) return differing(a->count, a->values, b->values);
    size_t n = a->shape[1], keys = a->shape[2], count = 0, layer = (size_t)atoi(a->name);
    size_t window = config->sliding[layer] ? config->window : 0;
    for (size_t row = 0; row < a->shape[0] * n; row++) {
        size_t i = first + row % n, from = sinkproof_mask_first(window, i);
        count +=
            differing(i + 1 - from, a->values + row * keys + from, b->values + row * keys + from);
    }
    return count;
}

// The points of the emulation that the engine holds: all but M5 and M9.
static bool held(const char *name) {
    return strcmp(name + 2, ".M5") != 0 && strcmp(name + 2, ".M9") != 0;
}

static void compare_shown(const char *isa, const char *policy, const shown *lanes,
                          const shown *fast, size_t first) {
    size_t worst = 0, points = 0;
    const char *where = "nowhere";
    for (size_t i = 0; i < lanes->count; i++) {
        const struct point *p = point_named(fast, lanes->points[i].name);
        if (!held(lanes->points[i].name)) continue;
        size_t wrong = p == NULL ? SIZE_MAX / 2 : apart_at(&lanes->points[i], p, first);
        if (wrong > 0 && worst == 0) where = lanes->points[i].name;
        worst += wrong;
        points++;
    }
    size_t each = config->architecture == SINKPROOF_GPT_OSS ? 19 : 13;
    ok(worst == 0 && points == 3 + each * config->n_layers && fast->count == points,
       "engine %s, %s %s after %zu tokens: %zu points as the emulation computes them, worst=%zu at "
       "%s bound=0",
       name_of, isa, policy, first, points, worst, where);
}

// 61 tokens and then 9 more: a prompt and a continuation, both watched.
static void test_points(const sinkproof_kernels *kernels, const char *name) {
    static shown lanes, fast;
    const size_t pieces[] = {61, 9};
    sinkproof_policy policy = policy_of(name);
    sinkproof_session *session = sinkproof_session_with(model, &policy, &sinkproof_lanes_stages);
    sinkproof_engine *engine = engine_of(name, (sinkproof_engine_options){kernels, .threads = 2});
    sinkproof_sequence *s = sequence_of(engine, 100);
    sinkproof_error error;
    size_t vocab = config->vocab, done = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t n = pieces[i], wrong = 0;
        sinkproof_observer see_lanes = {.see = keep, .context = &lanes};
        sinkproof_observer see_fast = {.see = keep, .context = &fast};
        double *want = calloc(n * vocab, sizeof *want);
        float *found = logits_of(n);
        sinkproof_part part = {s, n, tokens + done, found, true};
        need(sinkproof_forward(session, n, tokens + done, want, &see_lanes, &error) &&
                 sinkproof_engine_forward(engine, 1, &part, &see_fast, &error),
             &error);
        compare_shown(kernels->isa, name, &lanes, &fast, done);
        for (size_t v = 0; v < n * vocab; v++) wrong += !(want[v] == (double)found[v]);
        ok(wrong == 0, "model.forward engine %s %s %zu rows of logits worst=%zu bound=0",
           kernels->isa, name, n, wrong);
        forget(&lanes);
        forget(&fast);
        free(want);
        free(found);
        done += n;
    }
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
    sinkproof_session_free(session);
}

// ---- the same bits, however it is run --------------------------------------------------------

// What all below is compared with: LONG tokens at once, one thread, the fastest kernels.
static float *expected;

static size_t run_apart(const char *policy, sinkproof_engine_options options, size_t n,
                        size_t feed_at_once) {
    sinkproof_engine *engine = engine_of(policy, options);
    sinkproof_sequence *s = sequence_of(engine, LONG);
    float *found = logits_of(n);
    for (size_t i = 0; i < n; i += feed_at_once) {
        size_t m = n - i < feed_at_once ? n - i : feed_at_once;
        feed(engine, s, tokens + i, m, found + i * config->vocab);
    }
    size_t wrong = apart(n * config->vocab, expected, found);
    free(found);
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
    return wrong;
}

static void test_expected(const char *policy) {
    sinkproof_policy p = policy_of(policy);
    sinkproof_session *session = sinkproof_session_with(model, &p, &sinkproof_lanes_stages);
    sinkproof_error error;
    size_t wrong = 0, count = LONG * config->vocab;
    double *want = calloc(count, sizeof *want);
    need(sinkproof_forward(session, LONG, tokens, want, NULL, &error), &error);
    memset(expected, 0, count * sizeof *expected);
    sinkproof_engine *engine = engine_of(policy, (sinkproof_engine_options){.threads = 1});
    sinkproof_sequence *s = sequence_of(engine, 0);
    feed(engine, s, tokens, LONG, expected);
    for (size_t i = 0; i < count; i++) wrong += !(want[i] == (double)expected[i]);
    ok(wrong == 0, "model.forward engine %s: %d tokens, a window wrapped, worst=%zu bound=0",
       policy, LONG, wrong);
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
    sinkproof_session_free(session);
    free(want);
}

static void test_threads_and_chunks(const char *policy) {
    static const int threads[] = {1, 2, 3, 5};
    static const size_t chunks[] = {7, 64, LONG};
    size_t wrong = 0;
    for (size_t t = or_few(0, 2); t < 4; t++)
        wrong += run_apart(policy, (sinkproof_engine_options){.threads = threads[t]}, LONG, LONG);
    ok(wrong == 0, "model.forward engine %s: threads %s3, 5 worst=%zu bound=0", policy,
       asks_few() ? "" : "1, 2, ", wrong);
    wrong = 0;
    for (size_t c = 0; c < 3; c += or_few(1, 2)) {
        sinkproof_engine_options options = {.threads = 2, .chunk = chunks[c]};
        wrong += run_apart(policy, options, LONG, LONG);
        wrong += run_apart(policy, (sinkproof_engine_options){.threads = 2}, LONG, chunks[c]);
    }
    wrong += run_apart(policy, (sinkproof_engine_options){.threads = 2}, 40, 1);
    wrong += run_apart(policy, (sinkproof_engine_options){.threads = 2, .chunk = 1}, 40, 40);
    ok(wrong == 0, "model.forward engine %s: chunks 1, 7, %sall, worst=%zu bound=0", policy,
       asks_few() ? "" : "64, ", wrong);
    sinkproof_engine_options streamed = {.threads = 2, .streamed = true, .chunk = 100};
    wrong = run_apart(policy, streamed, LONG, 200);
    ok(wrong == 0, "model.forward engine %s: weights streamed worst=%zu bound=0", policy, wrong);
}

// A prompt, then token by token.
static void test_decode(const char *policy) {
    sinkproof_engine *engine = engine_of(policy, (sinkproof_engine_options){.threads = 2});
    sinkproof_sequence *s = sequence_of(engine, 0);
    float *found = logits_of(LONG);
    size_t vocab = config->vocab;
    feed(engine, s, tokens, 290, found);
    for (size_t i = 290; i < LONG; i++) feed(engine, s, tokens + i, 1, found + i * vocab);
    size_t wrong = apart(LONG * vocab, expected, found);
    ok(wrong == 0 && sinkproof_sequence_length(s) == LONG,
       "model.forward engine %s: decode after prefill worst=%zu bound=0", policy, wrong);
    free(found);
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
}

// Alone and among others of other lengths, that come and go.
static void test_batch(const char *policy) {
    enum { OTHERS = 6 };
    static const size_t lengths[OTHERS] = {1, 0, 45, 300, 2, 130};
    sinkproof_engine *engine =
        engine_of(policy, (sinkproof_engine_options){.threads = 2, .chunk = 96});
    sinkproof_sequence *all[OTHERS + 1];
    float *found = logits_of(LONG), *others = logits_of(300);
    size_t done = 0, vocab = config->vocab, wrong = 0;
    for (size_t i = 0; i <= OTHERS; i++) all[i] = sequence_of(engine, 2 * LONG);
    for (size_t step = 0; done < LONG; step++) {
        size_t m = step % 3 == 0 ? 1 : 50;
        if (m > LONG - done) m = LONG - done;
        sinkproof_part parts[OTHERS + 1];
        sinkproof_error error;
        for (size_t i = 0; i < OTHERS; i++) {
            size_t n = step % 2 == 0 ? lengths[i] : 1;
            if (sinkproof_sequence_length(all[i]) + n > 2 * LONG) sinkproof_sequence_reset(all[i]);
            parts[i] = (sinkproof_part){all[i], n, tokens + 7 * step + 31 * i, others, i == 3};
            if (i != 3) parts[i].logits = NULL;
        }
        parts[OTHERS] = parts[2]; // the one that counts stands in the middle
        parts[2] = (sinkproof_part){all[OTHERS], m, tokens + done, found + done * vocab, true};
        need(sinkproof_engine_forward(engine, OTHERS + 1, parts, NULL, &error), &error);
        done += m;
    }
    wrong = apart(LONG * vocab, expected, found);
    ok(wrong == 0, "model.forward engine %s: alone and in a batch of %d worst=%zu bound=0", policy,
       OTHERS + 1, wrong);
    // Many single tokens: the experts' products go by expert.
    sinkproof_sequence *many[40];
    sinkproof_part parts[40];
    float *rows = logits_of(40);
    sinkproof_error error;
    wrong = 0;
    for (size_t i = 0; i < 40; i++) many[i] = sequence_of(engine, 4);
    for (size_t t = 0; t < 3; t++) {
        for (size_t i = 0; i < 40; i++)
            parts[i] = (sinkproof_part){many[i], 1, tokens + t, rows + i * vocab, false};
        need(sinkproof_engine_forward(engine, 40, parts, NULL, &error), &error);
        for (size_t i = 0; i < 40; i++)
            wrong += apart(vocab, expected + t * vocab, rows + i * vocab);
    }
    ok(wrong == 0, "model.forward engine %s: 40 single tokens at once worst=%zu bound=0", policy,
       wrong);
    for (size_t i = 0; i < 40; i++) sinkproof_sequence_free(many[i]);
    for (size_t i = 0; i <= OTHERS; i++) sinkproof_sequence_free(all[i]);
    free(rows);
    free(found);
    free(others);
    sinkproof_engine_free(engine);
}

// A context of more than 2048 keys and more threads than heads: spans are shared out and merged.
static void test_cut_context(const char *policy) {
    enum { CONTEXT = 2400, MORE = 3 };
    float *one = logits_of(MORE), *cut = logits_of(MORE);
    size_t vocab = config->vocab;
    static const int threads[] = {1, 3, 5};
    size_t wrong = 0;
    for (size_t t = 0; t < 3; t += or_few(1, 2)) {
        sinkproof_engine *engine =
            engine_of(policy, (sinkproof_engine_options){.threads = threads[t]});
        sinkproof_sequence *s = sequence_of(engine, 0);
        sinkproof_part prompt = {s, CONTEXT, tokens, NULL, false};
        sinkproof_error error;
        need(sinkproof_engine_forward(engine, 1, &prompt, NULL, &error), &error);
        float *to = t == 0 ? one : cut;
        for (size_t i = 0; i < MORE; i++) feed(engine, s, tokens + CONTEXT + i, 1, to + i * vocab);
        if (t > 0) wrong += apart(MORE * vocab, one, cut);
        sinkproof_sequence_free(s);
        sinkproof_engine_free(engine);
    }
    ok(wrong == 0, "model.forward engine %s: a long context cut into spans worst=%zu bound=0",
       policy, wrong);
    free(one);
    free(cut);
}

static void test_reset(const char *policy) {
    sinkproof_engine *engine = engine_of(policy, (sinkproof_engine_options){.threads = 2});
    sinkproof_sequence *s = sequence_of(engine, LONG);
    float *found = logits_of(LONG);
    size_t vocab = config->vocab, wrong = 0;
    feed(engine, s, tokens + 900, 250, found); // another text first
    sinkproof_sequence_reset(s);
    size_t empty = sinkproof_sequence_bytes(s);
    feed(engine, s, tokens, 100, found);
    size_t hundred = sinkproof_sequence_bytes(s);
    feed(engine, s, tokens + 100, LONG - 100, found + 100 * vocab);
    wrong = apart(LONG * vocab, expected, found);
    ok(wrong == 0, "model.forward engine %s: a sequence used again worst=%zu bound=0", policy,
       wrong);
    size_t block = sinkproof_sequence_bytes(s) / ((LONG + 31) / 32 + 6); // a layer of each kind
    ok(empty == 0 && hundred == 2 * 4 * block,
       "a sequence of 100 tokens needs %zu bytes, 8 blocks of %zu; empty %zu", hundred, block,
       empty);
    free(found);
    sinkproof_sequence_free(s);
    sinkproof_engine_free(engine);
}

static void test_refusals(void) {
    sinkproof_engine *engine = engine_of("f32", (sinkproof_engine_options){.threads = 2});
    sinkproof_sequence *s = sequence_of(engine, 20), *other = sequence_of(engine, 20);
    sinkproof_error error = {{0}};
    float *found = logits_of(20);
    size_t vocab = config->vocab;
    int32_t bad[] = {1, 2, (int32_t)vocab}, negative[] = {-1};
    feed(engine, s, tokens, 10, found);
    sinkproof_part beyond[] = {{other, 2, tokens, NULL, false}, {s, 3, bad, NULL, false}};
    ok(!sinkproof_engine_forward(engine, 2, beyond, NULL, &error) &&
           sinkproof_sequence_length(s) == 10 && sinkproof_sequence_length(other) == 0,
       "a token beyond the vocabulary: %s", error.text);
    sinkproof_part below = {s, 1, negative, NULL, false};
    ok(!sinkproof_engine_forward(engine, 1, &below, NULL, &error), "a negative token: %s",
       error.text);
    sinkproof_part room = {s, 11, tokens, NULL, false};
    ok(!sinkproof_engine_forward(engine, 1, &room, NULL, &error) &&
           strstr(error.text, "context of 20") != NULL,
       "beyond the sequence's room: %s", error.text);
    sinkproof_part twice[] = {{s, 1, tokens, NULL, false}, {s, 1, tokens, NULL, false}};
    ok(!sinkproof_engine_forward(engine, 2, twice, NULL, &error), "one sequence twice: %s",
       error.text);
    sinkproof_part none[] = {{s, 0, NULL, NULL, false}, {other, 0, NULL, NULL, true}};
    ok(sinkproof_engine_forward(engine, 2, none, NULL, &error) &&
           sinkproof_engine_forward(engine, 0, NULL, NULL, &error) &&
           sinkproof_sequence_length(s) == 10,
       "parts without tokens, and no parts, are nothing");
    feed(engine, s, tokens + 10, 10, found + 10 * vocab);
    feed(engine, other, tokens, 1, found);
    size_t wrong = apart(20 * vocab, expected, found);
    ok(wrong == 0, "model.forward engine: after refusals the sequences go on worst=%zu bound=0",
       wrong);
    sinkproof_sequence_free(s);
    sinkproof_sequence_free(other);
    sinkproof_engine *amiss = NULL;
    sinkproof_policy published = policy_of("openai-bf16");
    ok(!sinkproof_engine_new(model, &published, NULL, &amiss, &error) && amiss == NULL,
       "another policy is refused: %s", error.text);
    free(found);
    sinkproof_engine_free(engine);
}

static void test_many_sequences(void) {
    enum { WARM = 100 };
    sinkproof_engine *engine = engine_of("f32", (sinkproof_engine_options){.threads = 1});
    float *found = logits_of(1);
    size_t after_warm = 0, wrong = 0;
    for (size_t i = 0; i < MANY; i++) {
        sinkproof_sequence *s = sequence_of(engine, 0);
        sinkproof_part part = {s, 1 + i % 2, tokens, found, false};
        sinkproof_error error;
        need(sinkproof_engine_forward(engine, 1, &part, NULL, &error), &error);
        wrong += apart(config->vocab, expected + i % 2 * config->vocab, found);
        sinkproof_sequence_free(s);
        if (i == WARM) after_warm = resident();
    }
    size_t grown = resident() > after_warm ? resident() - after_warm : 0;
    ok(wrong == 0, "model.forward engine: %d sequences in turn worst=%zu bound=0", MANY, wrong);
    // A page that each sequence left behind would count MANY - WARM.
    ok(after_warm > 0 && grown < (MANY - WARM) / 2,
       "%d sequences in turn leave %zu pages behind, fewer than half a page each", MANY, grown);
    free(found);
    sinkproof_engine_free(engine);
}

// Widths that fill no panel, and a context that is cut.
static void write_gpt2(char spec[64]) {
    static const char text[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_head\": 6, "
                               "\"n_embd\": 84, \"n_inner\": 100, \"n_positions\": 3000, "
                               "\"vocab_size\": 211, \"layer_norm_epsilon\": 1e-05, "
                               "\"activation_function\": \"gelu_new\"}";
    snprintf(spec, 64, "synthetic:/tmp/sinkproof-engine-%d.XXXXXX", (int)getpid());
    int file = mkstemp(strchr(spec, '/'));
    if (file < 0 || write(file, text, sizeof text - 1) != sizeof text - 1) exit(1);
    close(file);
}

static void open_for_test(const char *name, const char *spec) {
    uint64_t state = 83;
    sinkproof_error error;
    need(sinkproof_model_open(spec, &model, &error), &error);
    name_of = name;
    config = sinkproof_model_config(model);
    for (size_t t = 0; t < 4096; t++) tokens[t] = (int32_t)(next_bits(&state) % config->vocab);
    expected = logits_of(LONG);
}

static void close_after_test(void) {
    free(expected);
    sinkproof_model_close(model);
}

// Under FEW=1 each instruction set by one policy.
static void test_all_points(void) {
    size_t sets = 0;
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++) {
        const char *why;
        if (strcmp((*k)->mode, "lanes") != 0) continue;
        if (!sinkproof_isa_runs(*k, &why)) {
            note("%s does not run here: %s", (*k)->isa, why);
            continue;
        }
        tap_ran_on((*k)->isa, true);
        for (size_t p = or_few(0, sets % POLICIES); p < POLICIES; p += or_few(1, POLICIES))
            test_points(*k, policies[p]);
        sets++;
        tap_ran_on(NULL, false);
    }
}

static void test_same_bits(const char *policy) {
    test_expected(policy);
    test_threads_and_chunks(policy);
    test_decode(policy);
    test_batch(policy);
    test_cut_context(policy);
}

int main(void) {
    char gpt2[64];
    open_for_test("GPT-OSS", "synthetic:tiny,layers=2"); // one slides, one does not
    test_all_points();
    for (size_t p = 0; p < or_few(POLICIES, 1); p++) {
        test_same_bits(policies[p]);
        test_reset(policies[p]);
        if (p > 0) continue;
        test_refusals();
        test_many_sequences();
    }
    close_after_test();
    write_gpt2(gpt2);
    open_for_test("GPT-2", gpt2);
    test_all_points();
    test_same_bits("f32");
    close_after_test();
    unlink(strchr(gpt2, '/'));
    return tap_done();
}
