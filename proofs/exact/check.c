// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Computes both sides of a statement on random instances, and compares them exactly.
#include "proofs/exact/attention.h"

static const sinkproof_exact_statement *const tables[] = {
    exact_attention, exact_softmax_sink, exact_merges, exact_key_bias, exact_formats,
    exact_router,    exact_laws,         exact_repeat, exact_terms,    exact_gradients};
static const sinkproof_exact_statement *const wrong_tables[] = {
    exact_attention_wrong, exact_softmax_sink_wrong, exact_merges_wrong, exact_key_bias_wrong,
    exact_formats_wrong,   exact_router_wrong,       exact_laws_wrong,   exact_repeat_wrong,
    exact_terms_wrong,     exact_gradients_wrong};

static const sinkproof_exact_statement *statement_at(const sinkproof_exact_statement *const *list,
                                                     size_t n, size_t k) {
    for (size_t t = 0; t < n; t++)
        for (const sinkproof_exact_statement *s = list[t]; s->id != NULL; s++)
            if (k-- == 0) return s;
    return NULL;
}

const sinkproof_exact_statement *sinkproof_exact_statement_at(size_t k) {
    return statement_at(tables, sizeof tables / sizeof *tables, k);
}

const sinkproof_exact_statement *sinkproof_exact_wrong_form_at(size_t k) {
    return statement_at(wrong_tables, sizeof wrong_tables / sizeof *wrong_tables, k);
}

static bool sides_equal(const sinkproof_exact_statement *statement, uint64_t seed,
                        uint64_t number) {
    exact_instance m = exact_draw(statement->kind, seed, number);
    row left = statement->left(&m), right = statement->right(&m);
    bool equal = row_equal(left, right);
    q_forget();
    return equal;
}

sinkproof_exact_outcome sinkproof_exact_check(const sinkproof_exact_statement *statement,
                                              uint64_t seed, size_t count) {
    sinkproof_exact_outcome outcome = {0, 0, 0};
    if (statement->kind == SINKPROOF_EXACT_CODES) count = statement->codes;
    for (uint64_t number = 0; number < count; number++) {
        outcome.instances++;
        if (sides_equal(statement, seed, number)) continue;
        if (outcome.unequal == 0) outcome.first_unequal = number;
        outcome.unequal++;
    }
    return outcome;
}

sinkproof_exact_outcome sinkproof_exact_refute(const sinkproof_exact_statement *wrong,
                                               uint64_t seed, size_t count) {
    sinkproof_exact_outcome outcome = {0, 0, 0};
    for (uint64_t number = 0; number < count && outcome.unequal == 0; number++) {
        outcome.instances++;
        if (sides_equal(wrong, seed, number)) continue;
        outcome.unequal = 1;
        outcome.first_unequal = number;
    }
    return outcome;
}
