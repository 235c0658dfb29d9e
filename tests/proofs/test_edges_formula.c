// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The functions that make the condition of an edge hold (lattice.edges). Each is compared with the
// words of its condition, on two sides whose numbers are all known, and may change nothing that its
// condition does not name.
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

typedef edge_side side;
enum { N = SINKPROOF_EDGE_N, HIDDEN = SINKPROOF_EDGE_HIDDEN, DIM = SINKPROOF_EDGE_DIM };
enum { WEIGHTS = HIDDEN * DIM };

// Numbers of both signs, each another one: element k of array a is (-1)^k (a + k / 1024).
static void number(double *x, size_t n, int a) {
    for (size_t k = 0; k < n; k++) x[k] = (k % 2 == 0 ? 1 : -1) * (a + (double)k / 1024);
}
#define NUMBER(array, a) number(array, sizeof(array) / sizeof(double), a)

static void known(side *s, int a) {
    memset(s, 0, sizeof *s);
    NUMBER(s->head.x_nc, a);
    NUMBER(s->head.wq_cd, a + 1);
    NUMBER(s->head.wk_cd, a + 2);
    NUMBER(s->head.wv_cd, a + 3);
    NUMBER(s->head.gate_cd, a + 4);
    NUMBER(s->head.star_c, a + 5);
    NUMBER(s->head.key_d, a + 6);
    NUMBER(s->head.value_d, a + 7);
    NUMBER(s->head.mlp_1_dd, a + 8);
    NUMBER(s->head.mlp_2_dd, a + 9);
    NUMBER(s->head.place_nc, a + 10);
    NUMBER(s->head.bucket_b, a + 11);
    s->head.logit = a + 12, s->head.slope = a + 13;
    for (int i = 0; i < N; i++) s->head.document_n[i] = a + i;
    s->variant.places = SINKPROOF_PLACES_RELATIVE;
    s->variant.star_dims = 4;
    s->variant.window = 7, s->variant.prefix = 5;
}

// ---- the words, one function each ---------------------------------------------------------------

static void key_of_few(side *from, side *to) { // k* is 0 beyond its 4 coordinates
    (void)from;
    for (size_t d = 4; d < DIM; d++) to->head.key_d[d] = 0;
}
static void one_score(side *from, side *to) { // all buckets have one score: 5/4
    (void)to;
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) from->head.bucket_b[b] = 1.25;
}
static void prefix_of_one(side *from, side *to) {
    (void)to;
    from->variant.prefix = 1;
}
static void one_document(side *from, side *to) { // the first one
    (void)to;
    for (size_t i = 0; i < N; i++) from->head.document_n[i] = 0;
}
static void columns_of_g(side *from, side *to) { // all columns of G are g
    for (size_t k = 0; k < WEIGHTS; k++) from->head.gate_cd[k] = to->head.gate_cd[k / DIM];
}
static void small_sums(side *from, side *to) { // queries 2^-20 times as large, the same on both
    for (size_t k = 0; k < WEIGHTS; k++)
        to->head.wq_cd[k] = from->head.wq_cd[k] = ldexp(from->head.wq_cd[k], -20);
}
static void below_zero(side *from, side *to) { // no score is above 0: keys -|w|, the rest |w|
    side *const both[] = {from, to};
    for (size_t s = 0; s < 2; s++) {
        both[s]->variant.places = SINKPROOF_PLACES_NONE;
        for (size_t k = 0; k < (size_t)N * HIDDEN; k++)
            both[s]->head.x_nc[k] = fabs(both[s]->head.x_nc[k]);
        for (size_t k = 0; k < WEIGHTS; k++) both[s]->head.wq_cd[k] = fabs(both[s]->head.wq_cd[k]);
    }
    for (size_t k = 0; k < WEIGHTS; k++) // the same on both
        to->head.wk_cd[k] = from->head.wk_cd[k] = -fabs(from->head.wk_cd[k]);
}
static void window_of_one(side *from, side *to) { // a row of one key
    from->variant.seen = to->variant.seen = SINKPROOF_SEEN_WINDOW;
    from->variant.window = to->variant.window = 1;
}

static const struct {
    const char *from, *when;
    void (*set)(side *from, side *to);
} words[] = {
    {"key-dims-4", "k* is 0 beyond its 4 coordinates", key_of_few},
    {"relative", "all buckets have one score", one_score},
    {"prefix-5", "a prefix of one token", prefix_of_one},
    {"packed", "one document", one_document},
    {"gated", "all columns of G are g", columns_of_g},
    {"identity-max", "|sum of scores| <= 1", small_sums},
    {"mlp-max", "|sum of scores| <= 1", small_sums},
    {"elu-norm", "no score is above 0", below_zero},
    {"off-by-one", "a row of one key", window_of_one},
};

static const sinkproof_edge *edge_of(const char *from, const char *when) {
    const sinkproof_edge *e;
    for (size_t k = 0; (e = sinkproof_edge_at(k)) != NULL; k++)
        if (strcmp(e->from, from) == 0 && strcmp(e->when, when) == 0) return e;
    return NULL;
}

int main(void) {
    static side from, to, own_from, own_to;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const sinkproof_edge *edge = edge_of(words[k].from, words[k].when);
        known(&from, 1), known(&to, 100);
        known(&own_from, 1), known(&own_to, 100);
        words[k].set(&own_from, &own_to);
        if (edge != NULL) edge->set(&from, &to);
        ok(edge != NULL && memcmp(&from, &own_from, sizeof from) == 0 &&
               memcmp(&to, &own_to, sizeof to) == 0,
           "lattice.edges %s: %s, and nothing else", words[k].from, words[k].when);
    }
    return tap_done();
}
