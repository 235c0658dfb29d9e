// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The whole model: chunks and one pass give the same bits at every split around the window under
// every policy; watched and unwatched runs too; and the two published policies part only at their
// points.
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

// What a run shows.
typedef struct seen {
    size_t shown, nans;
    double last[512]; // F1 of the last token
    double *alpha;    // [heads, n, n + 1] of layer 0 assembled by position, or NULL
    size_t rows, total;
} seen;

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    seen *s = context;
    size_t count = 1;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    for (size_t i = 0; i < count; i++) s->nans += values[i] != values[i];
    s->shown++;
    if (strcmp(name, "F1") == 0)
        memcpy(s->last, values + (shape[0] - 1) * shape[1], shape[1] * sizeof *values);
    if (strcmp(name, "00.A9") != 0 || s->alpha == NULL) return;
    size_t m = shape[1], keys = shape[2] - 1, n = s->total;
    for (size_t h = 0; h < shape[0]; h++)
        for (size_t i = 0; i < m; i++) {
            double *to = s->alpha + (h * n + s->rows + i) * (n + 1);
            const double *from = values + (h * m + i) * (keys + 1);
            memcpy(to, from, keys * sizeof *to);
            to[n] = from[keys];
        }
    s->rows += m;
}

static sinkproof_model *model;
static const sinkproof_config *config;
static int32_t tokens[512];

// n tokens in the given pieces (a zero ends the list; the rest is one piece).
static void run(const char *policy_name, size_t n, const size_t *pieces, double *logits_nv,
                seen *watch) {
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    sinkproof_observer observer = {.see = see, .context = watch};
    sinkproof_error error;
    size_t done = 0;
    if (watch != NULL) watch->total = n;
    while (done < n) {
        size_t m = *pieces > 0 ? *pieces++ : n - done;
        need(sinkproof_forward(session, m, tokens + done, logits_nv + done * config->vocab,
                               watch != NULL ? &observer : NULL, &error),
             &error);
        done += m;
    }
    sinkproof_session_free(session);
}

static void test_chunks(const char *policy) {
    static const size_t whole[] = {0};
    size_t n = 2 * config->window + 3, vocab = config->vocab, wrong = 0, splits = 0;
    double *one = calloc(n * vocab, sizeof *one), *two = calloc(n * vocab, sizeof *two);
    double *alpha = calloc(2 * config->n_heads * n * (n + 1), sizeof *alpha);
    double *beta = alpha + config->n_heads * n * (n + 1);
    seen watch = {.alpha = alpha};
    run(policy, n, whole, one, &watch);
    for (size_t split = 1; split < n; split++, splits++) {
        seen chunked = {.alpha = beta};
        run(policy, n, (size_t[]){split, 0}, two, &chunked);
        wrong += differing(n * vocab, one, two) + differing(512, watch.last, chunked.last);
        wrong += differing(config->n_heads * n * (n + 1), alpha, beta);
    }
    size_t w = config->window;
    const size_t lists[][6] = {{w - 1, 1, 1, 0}, {w, w, 0}, {w + 1, 1, w, 0}, {1, 1, 1, 1, w, 0}};
    for (size_t i = 0; i < 4; i++, splits++) {
        run(policy, n, lists[i], two, NULL); // unwatched besides
        wrong += differing(n * vocab, one, two);
    }
    ok(wrong == 0 && watch.nans == 0, "model.forward %s chunked worst=%zu bound=0 of %zu splits",
       policy, wrong, splits);
    free(one);
    free(two);
    free(alpha);
}

// Longer than one internal chunk, watched in one piece.
static void test_long(void) {
    static const size_t whole[] = {0};
    size_t n = 300;
    double *one = calloc(n * config->vocab, sizeof *one),
           *two = calloc(n * config->vocab, sizeof *two);
    seen watch = {.shown = 0};
    run("openai-bf16", n, whole, one, &watch);
    run("openai-bf16", n, whole, two, NULL);
    size_t apart = differing(n * config->vocab, one, two);
    ok(apart == 0 && watch.shown == 3 + 23 * config->n_layers,
       "model.forward 300 tokens watched or not worst=%zu bound=0", apart);
    free(one);
    free(two);
}

// hf-bf16 is openai-bf16 with three overrides, in every bit; without any one of them it is not.
static void test_published(void) {
    static const size_t whole[] = {0};
    size_t n = 30, size = n * config->vocab;
    double *a = calloc(size, sizeof *a), *b = calloc(size, sizeof *b);
    run("hf-bf16", n, whole, a, NULL);
    run("openai-bf16,A9.max=bf16,M11.prod=bf16,M11.sum=bf16", n, whole, b, NULL);
    size_t apart = differing(size, a, b);
    ok(apart == 0,
       "model.forward hf-bf16 = openai-bf16 with A9.max, M11.prod, M11.sum worst=%zu bound=0",
       apart);
    const char *const without[] = {"openai-bf16,M11.prod=bf16,M11.sum=bf16",
                                   "openai-bf16,A9.max=bf16,M11.sum=bf16",
                                   "openai-bf16,A9.max=bf16,M11.prod=bf16"};
    for (size_t i = 0; i < 3; i++) {
        run(without[i], n, whole, b, NULL);
        ok(differing(size, a, b) > 0, "model.forward %s is another engine", without[i]);
    }
    free(a);
    free(b);
}

static void test_refusals(void) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    sinkproof_error error = {{0}};
    const int32_t beyond[] = {1, (int32_t)config->vocab}, negative[] = {-1};
    double *logits = calloc(2 * config->vocab, sizeof *logits);
    ok(!sinkproof_forward(session, 2, beyond, logits, NULL, &error) &&
           sinkproof_session_length(session) == 0,
       "a token beyond the vocabulary is refused: %s", error.text);
    ok(!sinkproof_forward(session, 1, negative, logits, NULL, &error),
       "a negative token is refused: %s", error.text);
    // The length is checked before any token is read: the array is shorter.
    ok(!sinkproof_forward(session, config->max_context + 1, tokens, NULL, NULL, &error) &&
           strstr(error.text, "context") != NULL,
       "a context too long is refused: %s", error.text);
    ok(sinkproof_forward(session, 2, tokens, logits, NULL, &error) &&
           sinkproof_session_length(session) == 2,
       "the session goes on after a refusal");
    free(logits);
    sinkproof_session_free(session);
}

int main(void) {
    sinkproof_error error;
    uint64_t state = 47;
    // Two layers: one slides, one does not.
    need(sinkproof_model_open("synthetic:tiny,layers=2", &model, &error), &error);
    config = sinkproof_model_config(model);
    for (size_t t = 0; t < 512; t++) tokens[t] = (int32_t)(next_bits(&state) % config->vocab);
    const char *const *names = sinkproof_policy_names();
    for (size_t i = 0; names[i] != NULL; i++) test_chunks(names[i]);
    test_long();
    test_published();
    test_refusals();
    sinkproof_model_close(model);
    return tap_done();
}
