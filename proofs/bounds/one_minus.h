// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mass of the keys, 1 - alpha_s, computed in three ways, and a bound on the relative error of
// each; infinite where nothing can be said. u is the unit roundoff of the last operation; the other
// operations have their own. An underflow of the last operation must be added.
#ifndef SINKPROOF_ONE_MINUS_H
#define SINKPROOF_ONE_MINUS_H

// fl(1 - a'), where the sink's weight a' has the relative error e; odds = alpha_s / (1 - alpha_s).
double sinkproof_mass_subtracted(double u, double e, double odds);

// fl(S' / D'), where the sum of the numerators has the relative error p and the denominator q.
double sinkproof_mass_quotient(double u, double p, double q);

// fl(1 / fl'(1 + exp(-y))), where y is within delta of LSE - b, exp has the relative error e_x, and
// fl' has v.
double sinkproof_mass_sigmoid(double u, double v, double e_x, double delta);

#endif
