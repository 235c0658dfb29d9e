// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the clamped SwiGLU (bound.swiglu):
// (clamp(u) + 1) clamp(g) sigmoid(alpha clamp(g)), rounded where the policy says.
//
// sigmoid(t) = 1 / (1 + E), E = exp(-t): an error eps of E moves it by E / (1 + E) eps, and
// the sum and the quotient round once each.
#include "proofs/bounds/bounds.h"

static double sigmoid(double t) {
    return t >= 0 ? 1 / (1 + exp(-t)) : exp(t) / (1 + exp(t));
}

static sinkproof_honest sigmoid_set(const sinkproof_setting *s, sinkproof_honest t) {
    const double libm = 0x1p-50;
    sinkproof_honest y = {sigmoid(t.lo) * (1 - libm),
                          sigmoid(t.hi) * (1 + libm),
                          sigmoid(t.likely_lo) * (1 - libm),
                          sigmoid(t.likely_hi) * (1 + libm),
                          sigmoid(t.mid),
                          0,
                          0,
                          0};
    if (s->mid_only) return y;
    double slope = y.mid * (1 - y.mid);
    y.var = y.spread = t.var * slope * slope;
    y.bias = t.bias * slope;
    double tail = 1 - sigmoid(t.lo); // E / (1 + E), largest at the lower end
    double flush = s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    y = sinkproof_honest_declared(y, s->policy->ulp[SINKPROOF_EXP] * 2 * s->u * tail * (1 + libm),
                                  flush);
    return sinkproof_honest_roundings(s, y, 2);
}

static sinkproof_honest at(const sinkproof_setting *s, sinkproof_point point, sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

//> bound.swiglu
sinkproof_honest sinkproof_honest_swiglu(const sinkproof_setting *s, const sinkproof_config *config,
                                         sinkproof_honest gate, sinkproof_honest up) {
    double limit = config->swiglu_limit;
    sinkproof_honest g = sinkproof_honest_clamp(gate, -INFINITY, limit); // clamped above only
    sinkproof_honest l = sinkproof_honest_clamp(up, -limit, limit);
    sinkproof_honest alpha = sinkproof_known(config->swiglu_alpha);
    alpha = sinkproof_honest_at(s, SINKPROOF_AT_M8_ALPHA, alpha);
    sinkproof_honest t = at(s, SINKPROOF_AT_M8_SCALED, sinkproof_honest_mul(alpha, g));
    sinkproof_honest gated = at(s, SINKPROOF_AT_M8_SIGMOID, sigmoid_set(s, t));
    sinkproof_honest swish = at(s, SINKPROOF_AT_M8_SWISH, sinkproof_honest_mul(g, gated));
    sinkproof_honest one_up =
        at(s, SINKPROOF_AT_M8_UP, sinkproof_honest_add(l, sinkproof_known(1)));
    return at(s, SINKPROOF_AT_M8, sinkproof_honest_mul(swish, one_up));
}
//< bound.swiglu
