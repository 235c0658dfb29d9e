// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Quotients of numbers that the engine computed (bound.quotient): the weights over their sum, the
// output of a kernel that divides once at its end, the sigmoid, the mean of the squares in RMSNorm.
// A processor rounds them correctly; a GPU has faster ways, whose errors a policy declares: of a
// quotient (div), and of a reciprocal (rcp), by which the numerator is then multiplied. The scales
// of codes and all constants (the width of a head, the frequencies of the rotation) are none of
// them.
#include "proofs/bounds/bounds.h"

//> bound.quotient
// The relative error of a quotient, if the policy declares one; otherwise 0, and the bounds count
// roundings. N ulp of a normal number are at most 2 N u of it.
double declared_quotient(const sinkproof_setting *s) {
    double div = s->policy->ulp[SINKPROOF_DIV], rcp = s->policy->ulp[SINKPROOF_RCP], u = s->u;
    if (div <= 0.5 && rcp <= 0.5) return 0;
    double divided = 2 * div * u, inverse = 2 * rcp * u;
    return fmax(divided, inverse + u + inverse * u) * (1 + 0x1p-50);
}

// The relative error of `rest` roundings and `quotients` quotients. `roundings` is how many they
// are together where nothing is declared: a quotient rounds twice, as a reciprocal and a product,
// and the reciprocal of a sigmoid once.
double quotients_error(const sinkproof_setting *s, double roundings, double rest,
                       double quotients) {
    double declared = declared_quotient(s);
    if (!(declared > 0)) return sinkproof_gamma(roundings, s->u);
    double growth = log1p(sinkproof_gamma(rest, s->u)) + quotients * log1p(declared);
    return expm1(growth) * (1 + 0x1p-50);
}

// An engine's quotient where the real one is at most 1.
double most_of_quotient(const sinkproof_setting *s) {
    return 1 + fmax(2 * s->u, declared_quotient(s));
}
//< bound.quotient
