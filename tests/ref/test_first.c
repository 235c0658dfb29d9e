// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The first token in the reference: whatever follows, each of its points has the same bits, and its
// heads' outputs are its values, faded. And a window that has left it behind: its weight is exactly
// 0, what it was does not matter, and the sink keeps a share on every row.
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

#include <math.h>

enum { TOKENS = 20, WIDEST = 512, POINTS = 256 };

// Row 0 of every point of a run, by name; the weights and head outputs of every row and layer.
typedef struct seen {
    size_t points;
    char name[POINTS][24];
    size_t width[POINTS];
    double row[POINTS][WIDEST];
    double alpha[8][10][TOKENS][TOKENS + 1], o[8][TOKENS][WIDEST], v[8][TOKENS][WIDEST];
} seen;

static sinkproof_model *model;
static const sinkproof_config *config;

static void keep_layer(seen *s, const char *name, const size_t *shape, const double *values) {
    size_t l = (size_t)strtoul(name, NULL, 10), n = shape[0], width = shape[1] * shape[2];
    if (strcmp(name + 2, ".A9") == 0)
        for (size_t h = 0; h < shape[0]; h++)
            for (size_t i = 0; i < shape[1]; i++)
                memcpy(s->alpha[l][h][i], values + (h * shape[1] + i) * shape[2],
                       shape[2] * sizeof *values);
    bool o = strcmp(name + 2, ".A11") == 0, v = strcmp(name + 2, ".A2.v") == 0;
    for (size_t i = 0; (o || v) && i < n; i++)
        memcpy(o ? s->o[l][i] : s->v[l][i], values + i * width, width * sizeof *values);
}

// [n, ...] holds row 0 at its start. Of [heads, n, keys] row 0 of each head, its own key and, in
// the last column of A9, the sink.
static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    seen *s = context;
    size_t at = s->points++, width = 0;
    bool by_head =
        strstr(name, ".A6") != NULL || strstr(name, ".A9") != NULL || strstr(name, ".A10") != NULL;
    snprintf(s->name[at], sizeof s->name[at], "%.23s", name);
    if (by_head)
        for (size_t h = 0; h < shape[0]; h++) {
            const double *row = values + h * shape[1] * shape[2];
            s->row[at][width++] = row[0];
            s->row[at][width++] = row[strstr(name, ".A9") != NULL ? shape[2] - 1 : 0];
        }
    else {
        width = 1;
        for (size_t r = 1; r < rank; r++) width *= shape[r];
        memcpy(s->row[at], values, width * sizeof *values);
    }
    s->width[at] = width;
    if (rank == 3) keep_layer(s, name, shape, values);
}

static seen *run(const char *policy_text, size_t n, const int32_t *tokens) {
    sinkproof_policy policy = policy_of(policy_text);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    seen *s = calloc(1, sizeof *s);
    sinkproof_observer observer = {.see = see, .context = s};
    sinkproof_error error;
    need(sinkproof_forward(session, n, tokens, NULL, &observer, &error), &error);
    sinkproof_session_free(session);
    return s;
}

// Elements of row 0 that differ, over all points.
static size_t apart(const seen *a, const seen *b) {
    size_t count = a->points == b->points ? 0 : SIZE_MAX / 2;
    for (size_t p = 0; p < a->points && p < b->points; p++)
        count += strcmp(a->name[p], b->name[p]) != 0 || a->width[p] != b->width[p] ||
                 differing(a->width[p], a->row[p], b->row[p]) > 0;
    return count;
}

static void first_alone(const char *policy, const int32_t *tokens) {
    int32_t others[TOKENS], moved[TOKENS];
    for (size_t t = 0; t < TOKENS; t++) {
        others[t] = t == 0 ? tokens[0] : (tokens[t] + 1) % (int32_t)config->vocab;
        moved[t] = t == 0 ? (tokens[0] + 1) % (int32_t)config->vocab : tokens[t];
    }
    seen *all = run(policy, TOKENS, tokens), *one = run(policy, 1, tokens);
    seen *changed = run(policy, TOKENS, others), *other = run(policy, TOKENS, moved);
    ok(apart(all, one) == 0 && apart(all, changed) == 0 && all->points > 0,
       "first.token %s: alone or before 19 others of two kinds, points that differ worst=%zu "
       "bound=0 of %zu",
       policy, apart(all, one) + apart(all, changed), all->points);
    ok(apart(all, other) > all->points / 2, "first.token %s: another first token moves %zu of them",
       policy, apart(all, other));
    free(all);
    free(one);
    free(changed);
    free(other);
}

// o_0 = fl(alpha_00 v_0) with alpha_00 = 1 - alpha_s: exp, sum and quotient of each weight err by
// |t| + 4 roundings at most, |t| the score less the sink; the sum of both is 1 within as much.
static void faded(const int32_t *tokens) {
    seen *s = run("real-f64", TOKENS, tokens);
    size_t group = config->n_heads / config->n_kv_heads, wrong = 0, rows = 0;
    double worst = 0;
    for (size_t l = 0; l < config->n_layers; l++)
        for (size_t h = 0; h < config->n_heads; h++, rows++) {
            double a = s->alpha[l][h][0][0], sink = s->alpha[l][h][0][TOKENS];
            double t = fabs(log(a / sink)), gone = fabs(a - (1 - sink)) / gamma53(t + 6);
            keep_worst(&worst, gone);
            for (size_t d = 0; d < config->head_dim; d++) {
                double v = s->v[l][0][h / group * config->head_dim + d];
                wrong += !(s->o[l][0][h * config->head_dim + d] == a * v);
            }
        }
    ok(worst <= 1 && rows > 0,
       "first.token alpha_00 is 1 - alpha_s in %zu rows worst=%.3g bound=1 seed=47", rows, worst);
    ok(wrong == 0, "first.token o_0 is alpha_00 v_0, to the bit worst=%zu bound=0", wrong);
    free(s);
}

static void left_behind(const char *policy, const int32_t *tokens) {
    int32_t moved[TOKENS];
    memcpy(moved, tokens, sizeof moved);
    moved[0] = (tokens[0] + 1) % (int32_t)config->vocab;
    seen *a = run(policy, TOKENS, tokens), *b = run(policy, TOKENS, moved);
    size_t hidden = 0, weightless = 0, shares = 0, rows = 0, moves = 0, still = 0;
    double least = 1;
    for (size_t l = 0; l < config->n_layers; l++)
        for (size_t h = 0; h < config->n_heads; h++)
            for (size_t i = 0; i < TOKENS; i++, rows++) {
                bool behind = config->sliding[l] && i >= config->window;
                double first = a->alpha[l][h][i][0], sink = a->alpha[l][h][i][TOKENS];
                hidden += behind;
                weightless += behind ? first == 0 : !(first > 0);
                shares += sink > 0;
                least = sink < least ? sink : least;
            }
    // Layer 0 slides and its inputs are embeddings: rows that do not see token 0 do not know it.
    for (size_t i = 0; i < TOKENS; i++) {
        size_t width = config->n_heads * config->head_dim;
        size_t differ = differing(width, a->o[0][i], b->o[0][i]);
        for (size_t h = 0; h < config->n_heads; h++)
            differ += differing(TOKENS + 1, a->alpha[0][h][i], b->alpha[0][h][i]);
        if (i < config->window) still += differ == 0;
        if (i >= config->window) moves += differ;
    }
    ok(config->sliding[0] && hidden > 0 && weightless == hidden,
       "sink.absolute %s: rows in which the first key weighs 0 are those whose window has left it: "
       "%zu of %zu",
       policy, weightless, hidden);
    ok(shares == rows,
       "sink.absolute %s: the sink has a share on every row: %zu of %zu, least %.3g", policy,
       shares, rows, least);
    ok(moves == 0 && still == 0,
       "sink.absolute %s: another first token, behind the window worst=%zu bound=0, and every row "
       "that sees it moves",
       policy, moves);
    free(a);
    free(b);
}

int main(void) {
    uint64_t state = 47;
    int32_t tokens[TOKENS];
    model = open_model("synthetic:tiny");
    config = sinkproof_model_config(model);
    for (size_t t = 0; t < TOKENS; t++) tokens[t] = (int32_t)(next_bits(&state) % config->vocab);
    first_alone("real-f64", tokens);
    first_alone("openai-bf16", tokens);
    faded(tokens);
    left_behind("real-f64", tokens);
    left_behind("openai-bf16", tokens);
    sinkproof_model_close(model);
    return tap_done();
}
