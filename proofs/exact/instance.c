// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws an instance, and prints it. The same seed and number give the same instance on every
// machine. Small fractions keep the numbers readable; occasionally one is huge or tiny.
#include "base/splitmix.h"
#include "base/words.h"
#include "proofs/exact/exact.h"

#include <stdarg.h>
#include <stdlib.h>

static rational draw_positive(uint64_t *state) {
    unsigned long power = sinkproof_draw(state) % 16 == 0 ? 1000000 : 1;
    rational q = q_frac((long)sinkproof_draw_from_to(state, 1, 9),
                        sinkproof_draw_from_to(state, 1, 9) * power);
    return sinkproof_draw(state) % 2 == 0 ? q : q_div(q_int(1), q);
}

static rational draw_rational(uint64_t *state) {
    uint64_t sign = sinkproof_draw(state) % 8;
    if (sign == 0) return q_int(0);
    rational q =
        q_frac((long)sinkproof_draw_from_to(state, 1, 9), sinkproof_draw_from_to(state, 1, 4));
    return sign < 4 ? q_neg(q) : q;
}

static row draw_row(uint64_t *state, size_t n, rational (*one)(uint64_t *)) {
    row r = row_zero(n);
    for (size_t k = 0; k < n; k++) r.at[k] = one(state);
    return r;
}

static matrix draw_matrix(uint64_t *state, size_t rows, size_t cols, rational (*one)(uint64_t *)) {
    row r = draw_row(state, rows * cols, one);
    return (matrix){rows, cols, r.at};
}

static void shuffle(uint64_t *state, size_t n, size_t *order) {
    for (size_t k = 0; k < n; k++) order[k] = k;
    for (size_t k = n; k > 1; k--) {
        size_t other = sinkproof_draw_from_to(state, 0, k - 1), held = order[k - 1];
        order[k - 1] = order[other], order[other] = held;
    }
}

static void draw_shape(exact_instance *m, uint64_t *state, bool seed_notation) {
    size_t size = 1 + (size_t)(m->number / 4); // the first instances are tiny
    size_t small = size < 3 ? size : 3;
    m->tokens = sinkproof_draw_from_to(state, 1, 1 + size < EXACT_TOKENS ? 1 + size : EXACT_TOKENS);
    m->head_dim = sinkproof_draw_from_to(state, 1, small);
    m->kv_heads = sinkproof_draw_from_to(state, 1, small);
    m->heads =
        m->kv_heads * (seed_notation ? 1 : sinkproof_draw_from_to(state, 1, small < 2 ? small : 2));
    m->hidden =
        seed_notation ? m->heads * m->head_dim : sinkproof_draw_from_to(state, 1, small + 1);
}

// J(i): all keys up to i, a window that ends at i, or any set with at least one key.
static void draw_keys(exact_instance *m, uint64_t *state, bool causal) {
    size_t way = causal ? 0 : m->number % 3, window = sinkproof_draw_from_to(state, 1, m->tokens);
    m->query = sinkproof_draw_from_to(state, 0, m->tokens - 1);
    for (size_t j = 0; j < m->tokens; j++) {
        if (way == 2)
            m->sees[j] = sinkproof_draw(state) % 2 == 0;
        else
            m->sees[j] = j <= m->query && (way == 0 || j + window > m->query);
        m->part[j] = sinkproof_draw_from_to(state, 0, 2);
    }
    m->sees[m->query] = true;
    shuffle(state, m->tokens, m->order);
}

static void draw_router(exact_instance *m, uint64_t *state) {
    size_t size = 2 + (size_t)(m->number / 4);
    m->experts = sinkproof_draw_from_to(state, 2, size < EXACT_EXPERTS ? size : EXACT_EXPERTS);
    m->chosen = sinkproof_draw_from_to(state, 1, m->experts - 1);
    m->e_router = draw_row(state, m->experts, draw_positive);
    if (sinkproof_draw(state) % 4 == 0) m->e_router.at[m->experts - 1] = m->e_router.at[0]; // a tie
    size_t inter = m->head_dim;
    m->down_x = draw_matrix(state, m->chosen, inter, draw_rational);
    m->w2 = draw_matrix(state, m->chosen * inter, m->hidden, draw_rational);
    m->b2 = draw_matrix(state, m->chosen, m->hidden, draw_rational);
    shuffle(state, m->chosen, m->expert_order);
}

static void draw_qk(exact_instance *m, uint64_t *state) {
    m->base = draw_positive(state);
    m->qk_dim = sinkproof_draw_from_to(state, 1, 4);
    m->low_rank = sinkproof_draw_from_to(state, 1, m->qk_dim);
    for (size_t d = 0; d < m->qk_dim; d++) {
        m->q[d] = (long)sinkproof_draw_from_to(state, 0, 6) - 3;
        m->k_star[d] = (long)sinkproof_draw_from_to(state, 0, 6) - 3;
        for (size_t j = 0; j < m->tokens; j++)
            m->k[j][d] = (long)sinkproof_draw_from_to(state, 0, 6) - 3;
    }
}

exact_instance exact_draw(exact_kind kind, uint64_t seed, uint64_t number) {
    exact_instance m = {.seed = seed, .number = number};
    if (kind == SINKPROOF_EXACT_CODES) return m;
    uint64_t state = seed * UINT64_C(0xd1342543de82ef95) + number;
    draw_shape(&m, &state, kind == SINKPROOF_EXACT_SEED);
    draw_keys(&m, &state, kind == SINKPROOF_EXACT_SEED);
    m.x = draw_matrix(&state, m.tokens, m.hidden, draw_rational);
    for (size_t g = 0; g < m.kv_heads; g++) {
        m.wv[g] = draw_matrix(&state, m.hidden, m.head_dim, draw_rational);
        m.bv[g] = draw_row(&state, m.head_dim, draw_rational);
    }
    // Further heads do not exist: a wrong index gets rows of another size, and the program aborts.
    for (size_t g = m.kv_heads; g < EXACT_HEADS; g++) m.bv[g] = row_zero(m.head_dim + 1);
    m.wo = draw_matrix(&state, m.heads * m.head_dim, m.hidden, draw_rational);
    m.bo = draw_row(&state, m.hidden, draw_rational);
    m.e = draw_matrix(&state, m.heads, m.tokens, draw_positive);
    m.e_sink = draw_row(&state, m.heads, draw_positive);
    m.shift = draw_positive(&state), m.a = draw_rational(&state), m.b = draw_rational(&state);
    m.u = draw_matrix(&state, m.tokens, m.head_dim, draw_rational);
    m.gate = draw_row(&state, m.head_dim, draw_positive);
    m.u_star = draw_row(&state, m.head_dim, draw_rational);
    m.x_star = draw_row(&state, m.hidden, draw_rational);
    draw_qk(&m, &state);
    draw_router(&m, &state);
    for (size_t j = 0; j < m.tokens; j++)
        m.float_scores[j] = (double)sinkproof_draw_from_to(&state, 0, 2000) - 1000;
    m.float_sink = (double)sinkproof_draw_from_to(&state, 0, 4000) - 2000;
    return m;
}

// ---- printing -----------------------------------------------------------------------------

static void print_entries(FILE *out, const char *name, row r) {
    fprintf(out, "%s =", name);
    for (size_t k = 0; k < r.n; k++) {
        char *text = mpq_get_str(NULL, 10, r.at[k]);
        fprintf(out, " %s", text);
        free(text);
    }
    fprintf(out, "\n");
}

static void print_matrix(FILE *out, const char *name, matrix w) {
    fprintf(out, "%s =", name);
    for (size_t k = 0; k < w.rows * w.cols; k++) {
        char *text = mpq_get_str(NULL, 10, w.at[k]);
        fprintf(out, "%s%s", k > 0 && k % w.cols == 0 ? "; " : " ", text);
        free(text);
    }
    fprintf(out, "\n");
}

static void print_longs(FILE *out, const char *name, const long *at, size_t n) {
    fprintf(out, "%s =", name);
    for (size_t k = 0; k < n; k++) fprintf(out, " %ld", at[k]);
    fprintf(out, "\n");
}

static void print_keys(FILE *out, const exact_instance *m) {
    fprintf(out, "keys n = %zu, query i = %zu, J(i) =", m->tokens, m->query);
    for (size_t j = 0; j < m->tokens; j++)
        if (m->sees[j]) fprintf(out, " %zu", j);
    fprintf(out, "\n");
}

static void print_layer(FILE *out, const exact_instance *m) {
    char name[32];
    fprintf(out, "shape: d = %zu, H = %zu, key/value heads %zu, d' = %zu\n", m->hidden, m->heads,
            m->kv_heads, m->head_dim);
    print_matrix(out, "e^s (a row per head)", m->e);
    print_entries(out, "e^b", m->e_sink);
    print_matrix(out, "X", m->x);
    for (size_t g = 0; g < m->kv_heads; g++) {
        snprintf(name, sizeof name, "W^V_%zu", g);
        print_matrix(out, name, m->wv[g]);
        snprintf(name, sizeof name, "b^V_%zu", g);
        print_entries(out, name, m->bv[g]);
    }
    print_matrix(out, "W^O", m->wo);
    print_entries(out, "b^O", m->bo);
    print_entries(out, "v*, e^G", row_join(m->u_star, m->gate));
}

static void print_row(FILE *out, const exact_instance *m) {
    print_entries(out, "e^s", matrix_row(m->e, 0));
    print_entries(out, "e^b", row_one(m->e_sink.at[0]));
    fprintf(out, "part of each key =");
    for (size_t j = 0; j < m->tokens; j++) fprintf(out, " %zu", m->part[j]);
    fprintf(out, "\n");
    print_matrix(out, "values u", m->u);
    print_entries(
        out, "v*, e^t, a, b",
        row_join(m->u_star, row_join(row_one(m->shift), row_join(row_one(m->a), row_one(m->b)))));
}

static void print_qk(FILE *out, const exact_instance *m) {
    print_entries(out, "e^(1/sqrt(d'))", row_one(m->base));
    print_longs(out, "q", m->q, m->qk_dim);
    for (size_t j = 0; j < m->tokens; j++) {
        char name[24];
        snprintf(name, sizeof name, "k_%zu", j);
        print_longs(out, name, m->k[j], m->qk_dim);
    }
    print_longs(out, "k*", m->k_star, m->qk_dim);
    fprintf(out, "d_a = %zu\n", m->low_rank);
    print_matrix(out, "values u", m->u);
    print_entries(out, "v*", m->u_star);
    print_matrix(out, "X", m->x);
    print_entries(out, "x*", m->x_star);
    print_matrix(out, "W^V", m->wv[0]);
    print_entries(out, "b^V, a, e^b",
                  row_join(m->bv[0], row_join(row_one(m->a), row_one(m->e_sink.at[0]))));
}

static void print_router(FILE *out, const exact_instance *m) {
    fprintf(out, "%zu of %s\n", m->chosen, sinkproof_counted(m->experts, "expert").text);
    print_entries(out, "e^g", m->e_router);
    print_matrix(out, "z_e", m->down_x);
    print_matrix(out, "W2_e (one below the other)", m->w2);
    print_matrix(out, "b2_e", m->b2);
}

static void print_float(FILE *out, const exact_instance *m) {
    fprintf(out, "s =");
    for (size_t j = 0; j < m->tokens; j++) fprintf(out, " %g", m->float_scores[j]);
    fprintf(out, "\nb = %g\n", m->float_sink);
}

char *sinkproof_exact_describe(const sinkproof_exact_statement *statement, uint64_t seed,
                               uint64_t number) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) abort();
    exact_instance m = exact_draw(statement->kind, seed, number);
    exact_kind kind = statement->kind;
    if (kind == SINKPROOF_EXACT_CODES)
        fprintf(out, "code %llu\n", (unsigned long long)number);
    else
        fprintf(out, "instance %llu of seed %llu\n", (unsigned long long)number,
                (unsigned long long)seed);
    if (kind <= SINKPROOF_EXACT_QK) print_keys(out, &m);
    if (kind == SINKPROOF_EXACT_LAYER || kind == SINKPROOF_EXACT_SEED) print_layer(out, &m);
    if (kind == SINKPROOF_EXACT_ROW) print_row(out, &m);
    if (kind == SINKPROOF_EXACT_QK) print_qk(out, &m);
    if (kind == SINKPROOF_EXACT_ROUTER) print_router(out, &m);
    if (kind == SINKPROOF_EXACT_FLOAT) print_float(out, &m);
    row left = statement->left(&m), right = statement->right(&m);
    fprintf(out, "left:  %s\n", statement->left_text);
    print_entries(out, "    ", left);
    fprintf(out, "right: %s\n", statement->right_text);
    print_entries(out, "    ", right);
    fclose(out);
    q_forget();
    return text;
}
