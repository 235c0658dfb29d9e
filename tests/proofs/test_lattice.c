// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every edge of the lattice. A true edge: the enclosures of both sides overlap at every precision,
// and this is no accident, because without the edge's condition they are apart. A false edge: the
// sides are apart, on an instance that is printed.
#include "proofs/bounds/worst.h"
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { SEEDS = 2 };

// The largest radius that the precision allows: no entry is above 2^16, each is made of less than
// 2^16 operations, and no operation multiplies an error by more than the size of its operands.
static double allowed(slong bits) {
    return 64 - (double)bits;
}

static void holds(const sinkproof_edge *edge) {
    size_t entries = 0, apart = 0, parted = 0;
    double worst = -INFINITY;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (slong bits = 128; bits <= 512; bits *= 4) {
            sinkproof_edge_outcome o;
            must(sinkproof_edge_check(edge, seed, true, bits, &o));
            entries += o.entries, apart += o.apart;
            worst = sinkproof_keep_worst(worst, o.radius_log2 - allowed(bits));
        }
        sinkproof_edge_outcome free;
        must(sinkproof_edge_check(edge, seed, false, 128, &free));
        parted += free.apart;
    }
    ok(apart == 0 && worst <= 0 && (edge->set == NULL || parted > 0),
       "%s lattice.edges %s is %s: %s; entries=%zu apart=%zu, without it apart=%zu", edge->id,
       edge->from, edge->to, edge->when, entries, apart, parted);
}

static void refuted(const sinkproof_edge *edge) {
    sinkproof_edge_outcome o;
    must(sinkproof_edge_check(edge, 1, true, 256, &o));
    ok(o.apart > 0, "%s lattice.edges refuted: %s, %s: %s; entries=%zu apart=%zu seed=1", edge->id,
       edge->from, edge->to, edge->when, o.entries, o.apart);
}

int main(void) {
    size_t holding = 0, false_ones = 0;
    for (size_t k = 0; sinkproof_edge_at(k) != NULL; k++) {
        const sinkproof_edge *edge = sinkproof_edge_at(k);
        bool known = sinkproof_variant_find(edge->from) && sinkproof_variant_find(edge->to);
        if (!ok(known, "%s and %s are designs", edge->from, edge->to)) continue;
        edge->holds ? holds(edge) : refuted(edge);
        edge->holds ? holding++ : false_ones++;
    }
    ok(holding >= 24 && false_ones >= 8, "edges=%zu false=%zu", holding, false_ones);
    return tap_done();
}
