// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which design of attention is which other one, and when (lattice.edges): each edge is a pair of
// designs, what has to hold of their parameters, and the two heads on which both are enclosed. An
// edge holds when all balls of the two sides overlap, at several precisions. A false edge, one that
// a package or a paper assumes, is refuted when two balls are disjoint.
#ifndef SINKPROOF_LATTICE_H
#define SINKPROOF_LATTICE_H

#include "proofs/truth/variants.h"

enum { SINKPROOF_EDGE_N = 15, SINKPROOF_EDGE_HIDDEN = 12, SINKPROOF_EDGE_DIM = 16 };

// A head of small numbers of few bits, with everything that a design may ask for.
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
// The head that it is; it points into `drawn`.
sinkproof_variant_head sinkproof_head_of(const sinkproof_drawn_head *drawn);

// One side of an edge: a design and the head that it sees.
typedef struct sinkproof_edge_side {
    sinkproof_variant variant;
    sinkproof_drawn_head head;
} sinkproof_edge_side;

typedef struct sinkproof_edge {
    const char *from, *to; // designs by name
    const char *when;      // what makes `from` be `to`: "b = 0"
    const char *id;        // the statement that proves it; of a false edge, that says what is true
    bool holds;
    double power; // the weights of `from` to this power are those of `to`; 0: see `values`
    bool values;  // the results are compared, not the weights of the keys
    void (*set)(sinkproof_edge_side *from, sinkproof_edge_side *to); // NULL: nothing to be set
} sinkproof_edge;

const sinkproof_edge *sinkproof_edge_at(size_t k); // NULL after the last

typedef struct sinkproof_edge_outcome {
    size_t entries, apart; // compared; whose two balls are disjoint
    double radius_log2;    // the largest radius
    // An instance: of the entries apart the one whose middles are farthest from each other.
    bool is_weight;     // of a key; else of the result
    size_t row, column; // the query; the key, or the coordinate of the result
    double from, to;    // the middles of the two balls, which are narrower than these are rounded
} sinkproof_edge_outcome;

// Both sides of an edge on the head that `seed` draws. set: whether the condition is made to hold.
// False: no memory.
bool sinkproof_edge_check(const sinkproof_edge *edge, uint64_t seed, bool set, slong bits,
                          sinkproof_edge_outcome *out);

#endif
