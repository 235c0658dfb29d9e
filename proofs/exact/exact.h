// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exact checks. A statement has a left and a right side: two functions of a random instance, both
// computed in rational numbers without rounding. It holds if the sides are equal on every instance.
// The book also warns of wrong forms; the sides of a wrong form must differ on some instance, which
// is printed.
//
// No exponential is computed. Each e^s is replaced by any positive rational. So an identity that
// holds here uses only that e^s is positive and, if the statement shifts scores, that
// e^(s+t) = e^s e^t.
#ifndef SINKPROOF_EXACT_H
#define SINKPROOF_EXACT_H

#include "proofs/exact/rational.h"

#include <stdint.h>
#include <stdio.h>

enum {
    EXACT_TOKENS = 6, // the most tokens of an instance
    EXACT_HEADS = 6,
    EXACT_EXPERTS = 8,
};

// One query i of one attention layer as built, and the variables that only some statements use.
// Query head h reads the key/value head g(h) = h / (H / G). The sizes grow with `number`: the first
// instances are tiny.
typedef struct exact_instance {
    uint64_t seed, number;
    size_t tokens, hidden, heads, kv_heads, head_dim; // n, d, H, G, d'
    size_t query;                                     // i
    bool sees[EXACT_TOKENS];                          // j in J(i): any set with at least one key
    size_t part[EXACT_TOKENS];     // which of 3 parts holds key j (sink.split-kv)
    size_t order[EXACT_TOKENS];    // a permutation of the keys
    matrix x;                      // X [n, d]
    matrix wv[EXACT_HEADS];        // W^V_g [d, d']
    row bv[EXACT_HEADS];           // b^V_g [d']
    matrix wo;                     // W^O [H d', d]
    row bo;                        // b^O [d]
    matrix e;                      // e^(s_ijh) [H, n], any positive numbers
    row e_sink;                    // e^(b_h) [H], any positive numbers
    rational shift, a, b;          // e^t > 0, two scalars
    matrix u;                      // other values [n, d']
    row gate;                      // e^G [d'], any positive numbers
    row u_star, x_star;            // v* [d'], x* [d]
    rational base;                 // e^(1/sqrt(d')) > 0, so e^s = base^(q k)
    long q[4], k[EXACT_TOKENS][4]; // integers, so that powers are rational
    long k_star[4];
    size_t qk_dim, low_rank;            // the width of q and k; d_a, at most that
    size_t experts, chosen;             // E, K
    row e_router;                       // e^(g_e), any positive numbers, ties included
    matrix down_x, w2, b2;              // of the chosen experts: [K, f], [K f, c], [K, c]
    size_t expert_order[EXACT_EXPERTS]; // a permutation of 0 ... K - 1
    double float_scores[EXACT_TOKENS];  // integers with a spread of 2000: their exps overflow
    double float_sink;
} exact_instance;

typedef row (*exact_side_fn)(const exact_instance *m);

// The variables that a statement uses: they decide how an instance is drawn and printed.
typedef enum exact_kind {
    SINKPROOF_EXACT_LAYER,  // the whole of attention
    SINKPROOF_EXACT_SEED,   // the same in the derivation's notation: G = H, d' = d / H, causal
    SINKPROOF_EXACT_ROW,    // head 0 of one query: weights and values
    SINKPROOF_EXACT_QK,     // head 0 with scores from integer q and k
    SINKPROOF_EXACT_ROUTER, // router weights and experts
    SINKPROOF_EXACT_FLOAT,  // scores that binary64 must survive
    SINKPROOF_EXACT_CODES,  // instance number t stands for code t of a format
} exact_kind;

typedef struct sinkproof_exact_statement {
    const char *id;
    exact_kind kind;
    const char *left_text, *right_text; // the two sides as text
    exact_side_fn left, right;
    size_t codes; // for the kind CODES: the number of codes
} sinkproof_exact_statement;

// Statement k of all, NULL after the last. An id may have several statements.
const sinkproof_exact_statement *sinkproof_exact_statement_at(size_t k);
// Wrong form k, NULL after the last: `left` is the wrong claim, `right` the true value.
const sinkproof_exact_statement *sinkproof_exact_wrong_form_at(size_t k);

typedef struct sinkproof_exact_outcome {
    size_t instances, unequal; // tried instances, and those of them on which the sides differ
    uint64_t first_unequal;    // the number of the first such instance
} sinkproof_exact_outcome;

// Tries the instances 0 ... count - 1 of a seed; for the kind CODES all codes, whatever count is.
sinkproof_exact_outcome sinkproof_exact_check(const sinkproof_exact_statement *statement,
                                              uint64_t seed, size_t count);

// The same for a wrong form, up to its first counterexample. A form that is right on some instances
// is still wrong (for example a literal 1 where the largest exponential happens to be 1).
sinkproof_exact_outcome sinkproof_exact_refute(const sinkproof_exact_statement *wrong,
                                               uint64_t seed, size_t count);

// Lines "name = values" of the instance and of both sides, which suffice to check it by hand. The
// caller frees the text.
char *sinkproof_exact_describe(const sinkproof_exact_statement *statement, uint64_t seed,
                               uint64_t number);

// Instance `number` of a seed, in the store of rational.h.
exact_instance exact_draw(exact_kind kind, uint64_t seed, uint64_t number);

#endif
