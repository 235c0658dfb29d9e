// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which design of attention is equivalent to which other, and when (lattice.edges): each edge is a
// pair of designs, a condition on their parameters, and the two heads on which both are enclosed.
// An edge holds when all balls of the two sides overlap, at several precisions. A false edge, which
// a package or a paper assumes, is refuted when two balls are disjoint.
#ifndef SINKPROOF_LATTICE_H
#define SINKPROOF_LATTICE_H

#include "proofs/truth/variants.h"

enum { SINKPROOF_EDGE_N = 15, SINKPROOF_EDGE_HIDDEN = 12, SINKPROOF_EDGE_DIM = 16 };

// A random head of small numbers with few bits, with every parameter of the designs.
typedef struct sinkproof_drawn_head {
    double x_nc[SINKPROOF_EDGE_N * SINKPROOF_EDGE_HIDDEN];
    double wq_cd[SINKPROOF_EDGE_HIDDEN * SINKPROOF_EDGE_DIM];
    double wk_cd[SINKPROOF_EDGE_HIDDEN * SINKPROOF_EDGE_DIM];
    double wv_cd[SINKPROOF_EDGE_HIDDEN * SINKPROOF_EDGE_DIM];
    double gate_cd[SINKPROOF_EDGE_HIDDEN * SINKPROOF_EDGE_DIM];
    double star_c[SINKPROOF_EDGE_HIDDEN], key_d[SINKPROOF_EDGE_DIM], value_d[SINKPROOF_EDGE_DIM];
    double mlp_1_dd[SINKPROOF_EDGE_DIM * SINKPROOF_EDGE_DIM];
    double mlp_2_dd[SINKPROOF_EDGE_DIM * SINKPROOF_EDGE_DIM];
    double place_nc[(SINKPROOF_EDGE_N + 1) * SINKPROOF_EDGE_HIDDEN];
    double bucket_b[SINKPROOF_BUCKETS];
    double logit, slope;
    int document_n[SINKPROOF_EDGE_N];
} sinkproof_drawn_head;

void sinkproof_head_draw(sinkproof_drawn_head *drawn, uint64_t seed);
// The head of these numbers; it points into `drawn`.
sinkproof_variant_head sinkproof_edge_head_view(const sinkproof_drawn_head *drawn);

// One side of an edge: a design and its head.
typedef struct edge_side {
    sinkproof_variant variant;
    sinkproof_drawn_head head;
} edge_side;

typedef struct sinkproof_edge {
    const char *from, *to; // designs by name
    const char *when;      // the condition under which `from` is `to`: "b = 0"
    const char *id;        // the statement that proves it; for a false edge, the true statement
    bool holds;
    double power; // the weights of `from` to this power are those of `to`; 0: compare by `values`
    bool values;  // the results are compared, not the weights of the keys
    // sets the condition; NULL: none
    void (*set)(edge_side *from, edge_side *to);
} sinkproof_edge;

const sinkproof_edge *sinkproof_edge_at(size_t k); // NULL: k is too large

typedef struct sinkproof_edge_outcome {
    size_t entries, apart; // entries compared, and those with disjoint balls
    double radius_log2;    // the largest radius
    // An instance: among the disjoint entries, the one with the most distant midpoints.
    bool is_weight;     // of a key; else of the result
    size_t row, column; // the query; the key, or the coordinate of the result
    double from, to;    // midpoints of the two balls, which are narrower than their last digit
} sinkproof_edge_outcome;

// Encloses both sides of an edge on the head of `seed`. set: whether to make the condition hold.
// Returns false if memory runs out.
bool sinkproof_edge_check(const sinkproof_edge *edge, uint64_t seed, bool set, slong bits,
                          sinkproof_edge_outcome *out);

#endif
