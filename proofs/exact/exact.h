// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exact checks: a statement is two functions of a random instance, its left and its right side,
// both computed in rational numbers without any rounding. It holds when they are equal on every
// instance; a wrong form, of which the book warns, must differ on some instance, which is printed.
//
// An exponential e^s never appears: only its value does, a free positive rational, so that an
// identity that holds here uses only that e^s is positive (and, where a statement shifts scores,
// that e^(s+t) = e^s e^t).
#ifndef SINKPROOF_EXACT_H
#define SINKPROOF_EXACT_H

#include "proofs/exact/rational.h"

#include <stdint.h>
#include <stdio.h>

enum {
    EXACT_TOKENS = 6, // most tokens of an instance
    EXACT_HEADS = 6,
    EXACT_EXPERTS = 8,
};

// One query i of one attention layer as built, with the further variables of some statements. Query
// head h reads the key/value head g(h) = h / (H / G). The size grows with the number: the first are
// tiny.
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
    matrix e;                      // e^(s_ijh) [H, n], free and positive
    row e_sink;                    // e^(b_h) [H], free and positive
    rational shift, a, b;          // e^t > 0, two scalars
    matrix u;                      // other values [n, d']
    row gate;                      // e^G [d'], free and positive
    row u_star, x_star;            // v* [d'], x* [d]
    rational base;                 // e^(1/sqrt(d')) > 0, so e^s = base^(q k)
    long q[4], k[EXACT_TOKENS][4]; // whole numbers, so that powers are rational
    long k_star[4];
    size_t qk_dim, low_rank;            // of q and k; d_a <= it
    size_t experts, chosen;             // E, K
    row e_router;                       // e^(g_e), free and positive, may tie
    matrix down_x, w2, b2;              // of the chosen experts: [K, f], [K f, c], [K, c]
    size_t expert_order[EXACT_EXPERTS]; // a permutation of 0 ... K - 1
    double float_scores[EXACT_TOKENS];  // whole numbers, spread 2000 (overflow)
    double float_sink;
} exact_instance;

typedef row (*exact_side_fn)(const exact_instance *m);

// The variables that a statement uses: they decide how an instance is drawn and printed.
typedef enum sinkproof_exact_kind {
    SINKPROOF_EXACT_LAYER,  // the whole of attention
    SINKPROOF_EXACT_SEED,   // the same in the seed's notation: G = H, d' = d / H, causal
    SINKPROOF_EXACT_ROW,    // head 0 of one query: weights and values
    SINKPROOF_EXACT_QK,     // head 0 with scores from whole q and k
    SINKPROOF_EXACT_ROUTER, // router weights and experts
    SINKPROOF_EXACT_FLOAT,  // scores that binary64 must survive
    SINKPROOF_EXACT_CODES,  // instance number t stands for code t of a format
} sinkproof_exact_kind;

typedef struct sinkproof_exact_statement {
    const char *id;
    sinkproof_exact_kind kind;
    const char *left_text, *right_text; // the two sides, as one would type them
    exact_side_fn left, right;
    size_t codes; // CODES: the number of codes
} sinkproof_exact_statement;

// Statement k of all, NULL after the last. An id may have several statements.
const sinkproof_exact_statement *sinkproof_exact_statement_at(size_t k);
// Wrong form k, NULL after the last: `left` is the claim, `right` the truth.
const sinkproof_exact_statement *sinkproof_exact_wrong_form_at(size_t k);

typedef struct sinkproof_exact_outcome {
    size_t instances, unequal; // tried instances, and those on which the sides differ
    uint64_t first_unequal;    // the number of the first
} sinkproof_exact_outcome;

// Tries the instances 0 ... count - 1 of a seed (for CODES all codes, regardless of count).
sinkproof_exact_outcome sinkproof_exact_check(const sinkproof_exact_statement *statement,
                                              uint64_t seed, size_t count);

// The same for a wrong form, up to its first counterexample. A form that is sometimes right (a
// literal 1 where the largest exponential happens to be 1) is still wrong.
sinkproof_exact_outcome sinkproof_exact_refute(const sinkproof_exact_statement *wrong,
                                               uint64_t seed, size_t count);

// Lines "name = values" of the instance and of both sides, enough to recompute it by hand; the
// caller frees them.
char *sinkproof_exact_describe(const sinkproof_exact_statement *statement, uint64_t seed,
                               uint64_t number);

// Instance `number` of a seed, in the store of rational.h.
exact_instance exact_draw(sinkproof_exact_kind kind, uint64_t seed, uint64_t number);

#endif
