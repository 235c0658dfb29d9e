// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of the embedding and of the logits that no catalogue lists, planted in complete engines:
// rows of other tokens, penalties, masks, shards that are joined with their padding. Mistakes that
// look like one are not called by its name.
#include "tests/shared/planted.h"

// ---- the logits

static size_t times_seen(const shown *s, size_t i, size_t token) {
    size_t count = 0;
    for (size_t p = 0; p <= i; p++) count += (size_t)s->tokens[p] == token;
    return count;
}
static void repetition(shown *s, double by) {
    size_t v = s->c->vocab;
    for (size_t at = 0; at < s->count; at++)
        if (times_seen(s, at / v, at % v) > 0)
            s->v[at] = rounded(s, s->v[at] > 0 ? s->v[at] / by : s->v[at] * by);
}
static void presence(shown *s, double by) {
    size_t v = s->c->vocab;
    for (size_t at = 0; at < s->count; at++)
        if (times_seen(s, at / v, at % v) > 0) s->v[at] = rounded(s, s->v[at] - by);
}
static void frequency(shown *s, double by) {
    size_t v = s->c->vocab;
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, s->v[at] - by * (double)times_seen(s, at / v, at % v));
}
static void others_divided(shown *s, double by) { // of tokens that were not seen
    size_t v = s->c->vocab;
    for (size_t at = 0; at < s->count; at++)
        if (at % v * 7 % 11 == 0) s->v[at] = rounded(s, s->v[at] > 0 ? s->v[at] / by : s->v[at]);
}
static void largest_alone(shown *s, double by) {
    size_t v = s->c->vocab;
    double *kept = malloc(v * sizeof *kept);
    must(kept != NULL);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(kept, &s->v[i * v], v * sizeof *kept);
        for (size_t t = 0; t < v; t++) {
            size_t above = 0;
            for (size_t o = 0; o < v; o++) above += kept[o] > kept[t];
            if (above >= (size_t)by) s->v[i * v + t] = -10000;
        }
    }
    free(kept);
}
static void padded_shards(shown *s, double by) {
    size_t v = s->c->vocab, shard = v / 2, wide = shard + (size_t)by;
    double *kept = malloc(v * sizeof *kept);
    must(kept != NULL);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(kept, &s->v[i * v], v * sizeof *kept);
        for (size_t t = 0; t < v; t++)
            s->v[i * v + t] = t % wide < shard ? kept[t / wide * shard + t % wide] : 0;
    }
    free(kept);
}

// ---- the embedding

static void look_up(shown *s, size_t i, size_t token, bool adds) {
    size_t d = s->c->hidden;
    sinkproof_matrix e = sinkproof_model_slot(s->model, 0, SINKPROOF_EMBEDDING);
    double *row = malloc(d * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(&e, token, row);
    for (size_t k = 0; k < d; k++)
        s->v[i * d + k] = rounded(s, row[k] + (adds ? s->v[i * d + k] : 0));
    free(row);
}
static void first_row_of_shard(shown *s, double by) {
    size_t shard = (size_t)by;
    for (size_t i = 0; i < s->n; i++) look_up(s, i, (size_t)s->tokens[i] < shard ? shard : 0, true);
}
static void scattered_rows(shown *s, double by) {
    for (size_t i = 0; i < s->n; i++)
        look_up(s, i, ((size_t)s->tokens[i] * (size_t)by + 3) % s->c->vocab, false);
}
static void noise(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] + by * (double)(i * 7 % 13));
}

static const plant plants[] = {
    {AT("F2"), .change = repetition, .by = 1.25, .f32 = true,
     .says = "is divided by 1.25 where it is positive and multiplied by it where it is negative, "
             "at the tokens seen so far: a repetition penalty"},
    {AT("F2"), .change = repetition, .by = 1.25, .says = "a repetition penalty"},
    {AT("F2"), .change = presence, .by = 2, .f32 = true,
     .says = "is less by 2 at the tokens seen so far: a presence penalty"},
    {AT("F2"), .change = frequency, .by = 2, .says = "2 for each time that its token stands"},
    {AT("F2"), .change = others_divided, .by = 1.25, .not = "penalty"},
    {AT("F2"), .change = largest_alone, .by = 20, .f32 = true,
     .says = "is -10000 but for the 20 largest of each row"},
    {AT("F2"), .change = padded_shards, .by = 5, .f32 = true, .says = "with 5 of padding behind"},
    {AT("T0"), .change = first_row_of_shard, .by = 100,
     .says = "has the row of another token of the vocabulary added to a token's own: token "},
    {AT("T0"), .change = scattered_rows, .by = 5,
     .says = "holds the row of another token of the vocabulary in the place of a token's own"},
    {AT("T0"), .change = noise, .by = 0.01, .not = "another token"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
