// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// By how much numbers are nearer to the engine's than others: the mean of the differences of
// log(1 + r^2), over its standard error. Squares would be those of the few elements whose sets are
// narrowest.
#ifndef SINKPROOF_GAINS_H
#define SINKPROOF_GAINS_H

#include <math.h>

enum { GAIN_SURE = 6 }; // chance gives less

typedef struct gains {
    double n, sum, square; // of the elements that differ
} gains;

// r of an element by what is simpler, and by what is asked.
static inline void gains_add(gains *g, double before, double after) {
    double by = log1p(before * before) - log1p(after * after);
    if (by != 0 && isfinite(by)) g->n++, g->sum += by, g->square += by * by;
}

static inline double gain_of(const gains *g) {
    double spread = g->square - g->sum * g->sum / fmax(g->n, 1);
    return g->sum == 0 ? 0 : spread > 0 ? g->sum / sqrt(spread) : copysign(INFINITY, g->sum);
}

#endif
