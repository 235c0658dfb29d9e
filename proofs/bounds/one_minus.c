// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The relative error of 1 - alpha_s in its three forms (bound.one-minus).
#include "proofs/bounds/one_minus.h"

#include <math.h>

//> bound.one-minus
// The sink's relative error applies to a remainder that may be far smaller than the sink: it grows
// by e^(b - LSE).
double sinkproof_mass_subtracted(double u, double e, double odds) {
    return u + (1 + u) * e * odds;
}

// Numerator and denominator are sums of positive terms; the quotient rounds once.
double sinkproof_mass_quotient(double u, double p, double q) {
    return p < 1 && q < 1 ? (1 + u) * (1 + p) / (1 - q) - 1 : INFINITY;
}

// The error of the argument bounds the error that it causes in the result; 1 + E and the division
// round once each.
double sinkproof_mass_sigmoid(double u, double v, double e_x, double delta) {
    return v < 1 && e_x < 1 ? exp(delta) * (1 + u) / ((1 - v) * (1 - e_x)) - 1 : INFINITY;
}
//< bound.one-minus
