// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The whole model in lane arithmetic: a prompt in one piece, in pieces around the window and the
// span of 256 keys, watched or not, has the same bits at every point; an observer is shown A6 and
// neither A9 nor A10.
#include "tests/shared/lanes.h"
#include "tests/shared/opened.h"

enum { TOKENS = 264, NAMES = 256 };

// Everything that a run showed, by name, token after token; of A6 the keys up to the query's own.
typedef struct shown {
    struct {
        char name[16];
        double *values;
        size_t count, room;
    } points[NAMES];
    size_t names;
} shown;

static double *more(shown *s, const char *name, size_t count) {
    size_t p = 0;
    while (p < s->names && strcmp(s->points[p].name, name) != 0) p++;
    if (p == NAMES) exit(1);
    if (p == s->names) snprintf(s->points[s->names++].name, sizeof s->points[p].name, "%s", name);
    size_t before = s->points[p].count, after = before + count;
    if (after > s->points[p].room) { // a row at a time is too little for realloc
        s->points[p].room = 2 * after;
        s->points[p].values = realloc(s->points[p].values, 2 * after * sizeof(double));
        if (s->points[p].values == NULL) exit(1);
    }
    s->points[p].count = after;
    return s->points[p].values + before;
}

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    size_t count = 1;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    if (strcmp(name + 2, ".A6") != 0) {
        memcpy(more(context, name, count), values, count * sizeof *values);
        return;
    }
    size_t heads = shape[0], m = shape[1], keys = shape[2];
    for (size_t i = 0; i < m; i++)
        for (size_t h = 0; h < heads; h++) {
            size_t own = keys - m + i + 1;
            memcpy(more(context, name, own), values + (h * m + i) * keys, own * sizeof *values);
        }
}

static sinkproof_model *model;
static const sinkproof_config *config;
static int32_t tokens[TOKENS];

// In the given pieces; a zero ends the list, the rest is one piece.
static void run(const char *name, const size_t *pieces, double *logits_nv, shown *watch) {
    sinkproof_policy policy = policy_of(name);
    sinkproof_session *session = sinkproof_session_with(model, &policy, &sinkproof_lanes_stages);
    sinkproof_observer observer = {.see = see, .context = watch};
    sinkproof_error error;
    for (size_t done = 0, m; done < TOKENS; done += m) {
        m = *pieces > 0 ? *pieces++ : TOKENS - done;
        if (sinkproof_forward(session, m, tokens + done, logits_nv + done * config->vocab,
                              watch != NULL ? &observer : NULL, &error))
            continue;
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    sinkproof_session_free(session);
}

// How many numbers of a differ from b's.
static size_t apart(const shown *a, const shown *b) {
    size_t wrong = a->names != b->names;
    for (size_t p = 0; p < a->names && p < b->names; p++)
        wrong += strcmp(a->points[p].name, b->points[p].name) != 0 ||
                         a->points[p].count != b->points[p].count
                     ? 1
                     : differing(a->points[p].count, a->points[p].values, b->points[p].values);
    return wrong;
}

static void forget(shown *s) {
    for (size_t p = 0; p < s->names; p++) free(s->points[p].values);
    memset(s, 0, sizeof *s);
}

static void test(const char *policy) {
    static const size_t lists[][4] = {{256, 1, 0}, {7, 1, 1, 0}, {255, 1, 1, 0}, {100, 100, 0}};
    size_t size = TOKENS * config->vocab, wrong = 0, weights = 0, numbers = 0;
    double *one = calloc(size, sizeof *one), *two = calloc(size, sizeof *two);
    static shown whole, pieces;
    run(policy, (size_t[]){0}, one, &whole);
    for (size_t p = 0; p < whole.names; p++) {
        const char *point = whole.points[p].name + 2;
        weights += strcmp(point, ".A9") == 0 || strcmp(point, ".A10") == 0;
        numbers += whole.points[p].count;
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        run(policy, lists[i], two, &pieces);
        wrong += apart(&whole, &pieces) + differing(size, one, two);
        forget(&pieces);
        if (i != 2) continue;
        run(policy, lists[i], two, NULL);
        wrong += differing(size, one, two);
    }
    ok(wrong == 0,
       "model.forward lanes, %s, in pieces or not, watched or not worst=%zu bound=0 of %zu", policy,
       wrong, numbers);
    ok(weights == 0 && whole.names == 3 + 21 * config->n_layers,
       "lanes, %s: an observer sees %zu points, no normalised weights", policy, whole.names);
    forget(&whole);
    free(one), free(two);
}

int main(void) {
    uint64_t state = 31;
    // Two narrow layers: one slides, one does not.
    model = open_config("{\"num_hidden_layers\": 2, \"num_experts\": 8, \"experts_per_token\": 2,"
                        " \"vocab_size\": 97, \"hidden_size\": 64, \"intermediate_size\": 32,"
                        " \"head_dim\": 16, \"num_attention_heads\": 4,"
                        " \"num_key_value_heads\": 2, \"sliding_window\": 8,"
                        " \"initial_context_length\": 4096, \"rope_scaling_factor\": 32}");
    config = sinkproof_model_config(model);
    for (size_t t = 0; t < TOKENS; t++) tokens[t] = (int32_t)(next_bits(&state) % config->vocab);
    test("f32");
    test("bf16-operands");
    sinkproof_model_close(model);
    return tap_done();
}
