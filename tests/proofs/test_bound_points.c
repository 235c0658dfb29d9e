// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sets of the rotation and of the activation are rounded where the policy says, and are as wide
// as their roundings. The three bounds of 1 - alpha_sink are the stated ones.
#include "proofs/bounds/one_minus.h"
#include "tests/shared/bounds_engine.h"
#include "tests/shared/points.h"

enum { DIM = 8, DRAWS = 60 };

// A setting without any freedom: what is left is the emulation.
static sinkproof_setting closed(sinkproof_policy *p) {
    *p = policy;
    for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) p->ulp[f] = 0;
    return (sinkproof_setting){.policy = p, .odds = 30};
}

// bound.rope: of known coordinates the set is one number, the rotation rounded at A4.prod and A4.
static void rotate(double *out, double *formula) {
    sinkproof_policy p;
    sinkproof_setting s = closed(&p);
    for (int t = 0; t < DRAWS; t++, out += DIM, formula += DIM) {
        sinkproof_honest x[DIM], c[DIM / 2], sine[DIM / 2], y[DIM];
        for (size_t d = 0; d < DIM; d++) x[d] = sinkproof_exact_set(next_integer(&state, 999) / 16);
        for (size_t d = 0; d < DIM / 2; d++) {
            c[d] = sinkproof_exact_set(next_integer(&state, 999) / 512);
            sine[d] = sinkproof_exact_set(next_integer(&state, 999) / 512);
        }
        sinkproof_honest_rotate(&s, DIM, x, c, sine, y);
        for (size_t d = 0; d < DIM; d++) {
            size_t pair = d % (DIM / 2), other = (d + DIM / 2) % DIM;
            double a = at(AT_A4_PROD, x[d].mid * c[pair].mid);
            double b = at(AT_A4_PROD, x[other].mid * sine[pair].mid);
            out[d] = y[d].lo == y[d].hi ? y[d].mid : NAN;
            formula[d] = at(AT_A4, d < DIM / 2 ? a - b : a + b);
        }
    }
}

// bound.swiglu: the emulation of the activation, each of its points where it stands.
static void activation(double *out, double *formula) {
    sinkproof_policy p;
    sinkproof_setting s = closed(&p);
    sinkproof_config config;
    sinkproof_config_named("gpt-oss-20b", &config);
    for (int t = 0; t < DRAWS; t++) {
        double gate = next_real(&state, 9), up = next_real(&state, 9);
        out[t] = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(gate),
                                         sinkproof_exact_set(up))
                     .mid;
        double g = fmin(gate, 7), u = fmax(fmin(up, 7), -7);
        double x = at(AT_M8_SCALED, at(AT_M8_ALPHA, 1.702) * g);
        double sigmoid = x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
        double part = 1 / (1 + at(AT_M8_EXP, exp(fabs(x))));
        if (policy.at[AT_M8_EXP].format == SINKPROOF_BF16) sigmoid = x < 0 ? part : 1 - part;
        double swish = at(AT_M8_SWISH, g * at(AT_M8_SIGMOID, sigmoid));
        formula[t] = at(AT_M8, swish * at(AT_M8_UP, u + 1));
    }
}

// Roundings that the set counts, in u of the inside format: 2 of the sigmoid; and 2 of the products
// where nothing is fixed between them. Everything else is below 2^-46 of the value.
static void width(void) {
    size_t wrong = 0, cases = 0;
    for (int i = 0; i < 3; i++) { // swish absent, fixed, optional (in binary64: no step of its own)
        sinkproof_policy p = policy_of("real-f64");
        p.at[AT_M8_SWISH] =
            (sinkproof_rounding){.format = i ? SINKPROOF_F64 : SINKPROOF_REAL, .optional = i == 2};
        for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) p.ulp[f] = 0;
        sinkproof_setting s = {.policy = &p, .u = 0x1p-24, .odds = 30};
        sinkproof_config config;
        sinkproof_config_named("gpt-oss-20b", &config);
        for (int t = 0; t < DRAWS; t++, cases++) {
            double gate = 1 + t / 16.0, up = t / 32.0;
            sinkproof_honest y = sinkproof_honest_swiglu(
                &s, config.swiglu, sinkproof_exact_set(gate), sinkproof_exact_set(up));
            double roundings = (y.hi - y.lo) / (2 * y.mid) / s.u;
            wrong += !(fabs(roundings - (i == 1 ? 2 : 4)) < 0x1p-20);
        }
    }
    ok(wrong == 0, "bound.swiglu roundings counted worst=%zu bound=0 of=%zu", wrong, cases);
}

// bound.one-minus: [u + (1 + u) e odds], [(1 + u)(1 + p) / (1 - q) - 1] and
// [e^delta (1 + u) / ((1 - v)(1 - e_x)) - 1], to gamma_8 of the larger side of the difference.
static void one_minus(void) {
    double worst = 0;
    const double small[] = {0, 0x1p-53, 0x1p-24, 1e-3, 0.3, 0.75};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++)
            for (size_t l = 0; l < 6; l++) {
                long double u = small[i], e = small[k], v = small[l], d = 3 * v;
                long double a = u + (1 + u) * e * d, b = (1 + u) * (1 + e) / (1 - v) - 1;
                long double c = expl(d) * (1 + u) / ((1 - v) * (1 - e)) - 1;
                double found[3] = {
                    sinkproof_mass_subtracted((double)u, (double)e, (double)d),
                    sinkproof_mass_quotient((double)u, (double)e, (double)v),
                    sinkproof_mass_sigmoid((double)u, (double)v, (double)e, (double)d)};
                keep_worst(&worst, a == 0 ? fabs(found[0])
                                          : (double)(fabsl(found[0] - a) / (gamma53(8) * a)));
                keep_worst(&worst, (double)(fabsl(found[1] - b) / (gamma53(8) * (1 + b))));
                keep_worst(&worst, (double)(fabsl(found[2] - c) / (gamma53(8) * (1 + c))));
            }
    ok(worst <= 1, "bound.one-minus the three forms as stated worst=%.3g bound=1", worst);
    ok(sinkproof_mass_quotient(0x1p-24, 0, 1) == INFINITY &&
           sinkproof_mass_quotient(0x1p-24, 1, 0) == INFINITY &&
           sinkproof_mass_quotient(0x1p-24, 0, 1.5) == INFINITY &&
           sinkproof_mass_sigmoid(0, 1, 0, 0) == INFINITY &&
           sinkproof_mass_sigmoid(0x1p-24, 0x1p-24, 2, 0) == INFINITY,
       "bound.one-minus without a bound there is none");
}

int main(void) {
    check("bound.rope", rotate, 2);
    check("bound.swiglu bound.sigmoid-exp", activation, 7);
    width();
    one_minus();
    return tap_done();
}
