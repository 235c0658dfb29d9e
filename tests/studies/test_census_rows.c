// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A census of a run: the rows of each head's map that pass by, once and in order; heads that share
// keys; rows that a window keeps from the first key. 1 CPU second.
#include "audit/studies/sinks/census.h"
#include "tests/shared/reference.h"

#include <math.h>

typedef struct witness {
    size_t rows_hl[10 * 4];
    double first_hl[10 * 4];
    bool good;
} witness;

// Rows ascend, keys end at their own query, and their weights with the sink's sum to 1 as closely
// as binary64 adds them: gamma over the terms.
static void watch(void *context, const sinkproof_map_rows *rows) {
    witness *w = context;
    size_t at = rows->layer * 10 + rows->head;
    w->good = w->good && w->rows_hl[at] == rows->first;
    w->rows_hl[at] += rows->rows;
    for (size_t r = 0; r < rows->rows; r++) {
        const double *alpha_j = rows->alpha_ij + r * rows->stride;
        size_t keys = rows->first + r + 1 - rows->from;
        double sum = rows->sink_i[r];
        for (size_t j = 0; j < keys; j++) sum += alpha_j[j];
        w->good = w->good && keys <= rows->keys && fabs(sum - 1) <= gamma53(2 * (double)keys + 4);
        w->first_hl[at] += rows->from == 0 ? alpha_j[0] : 0;
    }
}

static void census(const char *engine) {
    enum { TOKENS = 150 };
    sinkproof_model *model;
    sinkproof_runner *runner = NULL;
    sinkproof_error error = {{0}};
    sinkproof_policy policy = policy_of("f32");
    sink_census c = {0};
    witness w = {.good = true};
    int32_t tokens_n[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) tokens_n[i] = (int32_t)(i * i % 101);
    sinkproof_census_options options = {.epsilon = 0.3, .map = watch, .map_context = &w};
    sinkproof_runner_options how = {.engine = engine, .threads = 2, .max_tokens = TOKENS};
    bool good = sinkproof_model_open("synthetic:tiny", &model, &error) &&
                sinkproof_runner_new(model, &policy, &how, &runner, &error) &&
                sinkproof_census_run(model, runner, TOKENS, tokens_n, &options, &c, &error);
    ok(good, "census of %s runs %s", engine, error.text);
    if (!good) exit(1);
    bool same = w.good, mine = true;
    for (size_t l = 0; l < 4; l++)
        for (size_t h = 0; h < 10; h++) {
            const census_head *head = &c.layers[l].heads[h];
            same = same && w.rows_hl[l * 10 + h] == TOKENS;
            same = same && head->first == w.first_hl[l * 10 + h] / TOKENS;
            mine = mine && head->group == h / 5 && head->star == head->sink.mean;
            double rows = c.layers[l].window > 0 ? (double)c.layers[l].window : TOKENS;
            mine = mine && head->first_seen == w.first_hl[l * 10 + h] / rows;
        }
    ok(same, "census of %s: a map passes by once, in rows that sum to 1", engine);
    ok(mine, "census of %s: five heads share a key; rows that see key 1 are a window's", engine);
    sinkproof_census_free(&c);
    sinkproof_runner_free(runner);
    sinkproof_model_close(model);
}

int main(void) {
    census("lanes");
    census("fast");
    return tap_done();
}
