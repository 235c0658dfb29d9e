// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mass of the keys, 1 - alpha_s, formed in three ways, and the relative error of each.
// u is the unit roundoff of the last operation, other operations have their own; infinite where
// nothing can be said. What underflows at the last operation is to be added.
#ifndef SINKPROOF_ONE_MINUS_H
#define SINKPROOF_ONE_MINUS_H

// fl(1 - a'), a' the sink's weight with relative error e; odds = alpha_s / (1 - alpha_s).
double sinkproof_mass_subtracted(double u, double e, double odds);

// fl(S' / D'), the sum of the numerators with relative error p, the denominator with q.
double sinkproof_mass_quotient(double u, double p, double q);

// fl(1 / fl'(1 + exp(-y))), y within delta of LSE - b, exp with relative error e_x, fl' with v.
double sinkproof_mass_sigmoid(double u, double v, double e_x, double delta);

#endif
