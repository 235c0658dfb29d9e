// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The value-bias identity and the gate, enclosed, with no radius above what the precision allows:
// sink logits from -inf to 1e4, scores with a spread of 300, from one key to 131072 at 64 bits and
// to 8192 at 128 to 1024 bits. Every weight is computed and summed.
#include "proofs/truth/identities.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { SEED = 1, MOST = 131072, FINER_MOST = 8192, SINKS = 8 };
static const slong precisions[] = {64, 128, 256, 512, 1024};
static const double sinks[SINKS] = {-INFINITY, -1e4, -300, -1, 0, 0.5, 300, 1e4};

static size_t most_at(slong bits) {
    return bits == 64 ? MOST : FINER_MOST;
}

static void report(slong bits, size_t expected, sinkproof_grid_outcome o) {
    ok(o.cases == expected && o.broken == 0 && o.mass_share <= 1 && o.gate_share <= 1,
       "sink.attn-mass sink.gate bits=%ld cases=%zu n=1..%zu b=-inf..1e4 spread=300 "
       "broken=%zu radius=2^%.1f,2^%.1f worst=%.3g,%.3g bound=1 seed=%d",
       bits, o.cases, most_at(bits), o.broken, o.mass_radius_log2, o.gate_radius_log2, o.mass_share,
       o.gate_share, SEED);
}

int main(void) {
    for (size_t p = 0; p < 5; p++) {
        size_t lengths[64], n = 0;
        for (size_t power = 1; power <= most_at(precisions[p]); power *= 2) {
            lengths[n++] = power;
            if (power <= 1024 && power > 2) lengths[n++] = power - 1, lengths[n++] = power + 1;
        }
        report(precisions[p], SINKS * n,
               sinkproof_identity_grid(n, lengths, SINKS, sinks, 300, SEED, precisions[p]));
    }
    flint_cleanup();
    return tap_done();
}
