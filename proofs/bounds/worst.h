// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The largest and the least of what was measured. fmax(worst, seen) forgets a NaN, so that an
// engine that computes nothing but NaN is off "by at most 0"; here a NaN is worse than every
// number, and once met it stays, and fails each comparison that follows.
#ifndef SINKPROOF_WORST_H
#define SINKPROOF_WORST_H

static inline double sinkproof_worst(double worst, double seen) {
    return worst != worst || seen <= worst ? worst : seen;
}

static inline double sinkproof_least(double least, double seen) {
    return least != least || seen >= least ? least : seen;
}

#endif
