// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's activation, M8: as defined, or as a diagnosis supposes it.
#include "audit/judge/judge_internal.h"

#include <math.h>

// The index of gate (0) or up (1) of coordinate f in the row.
static size_t place_in_row(const sinkproof_meaning *m, size_t inter, size_t f, size_t which) {
    const sinkproof_pairing pairing = m->pairing;
    if (m->pair_at != NULL) return m->pair_at(f, inter, which, m->pair_by) % (2 * inter);
    bool swapped = pairing == SINKPROOF_PAIR_SWAPPED || pairing == SINKPROOF_PAIR_HALVES_SWAPPED;
    bool halves = pairing == SINKPROOF_PAIR_HALVES || pairing == SINKPROOF_PAIR_HALVES_SWAPPED;
    if (swapped) which = 1 - which;
    return halves ? f + which * inter : 2 * f + which;
}

static sinkproof_honest set_clamped(sinkproof_honest x, double low, double high, double limit) {
    return sinkproof_honest_clamp(x, isinf(low) ? low : low * limit,
                                  isinf(high) ? high : high * limit);
}

static sinkproof_honest set_size(sinkproof_honest x) {
    sinkproof_honest other = sinkproof_honest_mul(x, sinkproof_exact_set(-1));
    return x.lo >= 0 ? x : x.hi <= 0 ? other : sinkproof_honest_hull(x, other);
}

// ---- gates

static double plain_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

double sinkproof_sigmoid_by(sinkproof_gating gating, double x) {
    double h = x / 2, t = h * (27 + h * h) / (27 + 9 * h * h);
    switch (gating) {
    case SINKPROOF_GATED_BY_SIXTH:
        return fmin(fmax(x / 6 + 0.5, 0), 1);
    case SINKPROOF_GATED_BY_FIFTH:
        return fmin(fmax(x / 5 + 0.5, 0), 1);
    case SINKPROOF_GATED_BY_QUARTER:
        return fmin(fmax(x / 4 + 0.5, 0), 1);
    case SINKPROOF_GATED_BY_SOFTSIGN:
        return (1 + x / (1 + fabs(x))) / 2;
    case SINKPROOF_GATED_BY_ROOT:
        return (1 + x / sqrt(1 + x * x)) / 2;
    case SINKPROOF_GATED_BY_PADE:
        return (1 + fmin(fmax(t, -1), 1)) / 2;
    case SINKPROOF_GATED_BY_POWER:
        return 1 / (1 + pow(fmax(1 - x / 256, 0), 256));
    default:
        return plain_sigmoid(x);
    }
}

double sinkproof_gate_by(sinkproof_gating gating, double g) {
    const double root = 0.7978845608028654; // sqrt(2 / pi)
    switch (gating) {
    case SINKPROOF_GATED_BY_GELU:
        return g * erfc(-g * 0.7071067811865476) / 2;
    case SINKPROOF_GATED_BY_GELU_TANH:
        return g * (1 + tanh(root * (g + 0.044715 * g * g * g))) / 2;
    case SINKPROOF_GATED_BY_RELU:
        return fmax(g, 0);
    case SINKPROOF_GATED_BY_SQUARED_RELU:
        return g > 0 ? g * g : 0;
    case SINKPROOF_GATED_BY_TANH:
        return tanh(g);
    case SINKPROOF_GATED_BY_SILU:
        return g * plain_sigmoid(g);
    case SINKPROOF_GATED_BY_SIGMOID:
        return plain_sigmoid(g);
    case SINKPROOF_GATED_BY_ONE:
        return 1;
    default:
        return g;
    }
}

// A function of a set: of its ends and its middle, and some roundings. Between the ends a function
// that is not monotone may leave it: such a set is too small, never too large.
static sinkproof_honest gate_set(const sinkproof_setting *s, sinkproof_gating gating,
                                 sinkproof_honest g) {
    sinkproof_honest y = sinkproof_exact_set(sinkproof_gate_by(gating, g.mid));
    y = sinkproof_honest_hull(y, sinkproof_exact_set(sinkproof_gate_by(gating, g.lo)));
    y = sinkproof_honest_hull(y, sinkproof_exact_set(sinkproof_gate_by(gating, g.hi)));
    bool exact = gating == SINKPROOF_GATED_BY_RELU || gating == SINKPROOF_GATED_BY_ITSELF ||
                 gating == SINKPROOF_GATED_BY_ONE;
    if (!exact) // the error of erf and tanh is about u of 1
        y = sinkproof_honest_roundings(
            s, sinkproof_honest_declared(y, 0, 16 * s->u * fmax(fabs(g.lo), fabs(g.hi))), 6);
    return y;
}

static sinkproof_honest rounded_set(const sinkproof_setting *s, sinkproof_point point,
                                    sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

// An approximation of the sigmoid, which grows with x.
static sinkproof_honest sigmoid_set(const sinkproof_setting *s, sinkproof_gating gating,
                                    sinkproof_honest x) {
    sinkproof_honest y = sinkproof_exact_set(sinkproof_sigmoid_by(gating, x.mid));
    y = sinkproof_honest_hull(y, sinkproof_exact_set(sinkproof_sigmoid_by(gating, x.lo)));
    y = sinkproof_honest_hull(y, sinkproof_exact_set(sinkproof_sigmoid_by(gating, x.hi)));
    // at most 8 operations with numbers of up to 1; of a power each of its 8 squares doubles the
    // error of 1 - x/256
    double errors = gating == SINKPROOF_GATED_BY_POWER ? 512 : 16;
    return sinkproof_honest_declared(y, 0, errors * s->u);
}

// sigmoid(alpha g), rounded where the policy says so.
static sinkproof_honest sigmoid_of_gate(const sinkproof_setting *s, sinkproof_gating gating,
                                        double alpha, sinkproof_honest g) {
    sinkproof_honest a = sinkproof_honest_at(s, AT_M8_ALPHA, sinkproof_exact_set(alpha));
    sinkproof_honest t = rounded_set(s, AT_M8_SCALED, sinkproof_honest_mul(a, g));
    sinkproof_honest y = gating >= SINKPROOF_GATED_BY_SIXTH
                             ? sigmoid_set(s, gating, t)
                             : gate_set(s, SINKPROOF_GATED_BY_SIGMOID, t);
    return rounded_set(s, AT_M8_SIGMOID, y);
}

// t (g + p) sigmoid(a r), rounded like g sigmoid(alpha g); t multiplies before or behind.
static sinkproof_honest gated_sum(const sinkproof_meaning *m, const sinkproof_setting *s,
                                  sinkproof_honest g, sinkproof_honest read) {
    sinkproof_honest t = sinkproof_exact_set(m->gate_times), sigmoid, before, behind;
    if (m->gate_plus != 0)
        g = rounded_set(s, AT_M8_UP, sinkproof_honest_add(g, sinkproof_exact_set(m->gate_plus)));
    sigmoid = sigmoid_of_gate(s, m->gating, m->sigmoid_by, read);
    before = rounded_set(s, AT_M8_SCALED, sinkproof_honest_mul(g, t));
    before = rounded_set(s, AT_M8_SWISH, sinkproof_honest_mul(before, sigmoid));
    behind = rounded_set(s, AT_M8_SWISH, sinkproof_honest_mul(g, sigmoid));
    behind = rounded_set(s, AT_M8_SWISH, sinkproof_honest_mul(behind, t));
    return sinkproof_honest_hull(before, behind);
}

// gate and up are clamped as they are meant to be, but a gate whose clamp is elsewhere.
static sinkproof_honest activated_otherwise(const judge_pass *pass, const sinkproof_setting *s,
                                            sinkproof_honest whole, sinkproof_honest gate,
                                            sinkproof_honest other, sinkproof_honest up) {
    const sinkproof_swiglu_numbers *numbers = &pass->config->swiglu;
    const sinkproof_meaning *m = pass->meaning;
    sinkproof_honest swish;
    if (m->gating == SINKPROOF_GATED_SUM)
        swish = gated_sum(m, s, gate, m->sigmoid_of_up ? other : gate);
    else if (m->gating <= SINKPROOF_GATED_LATE || m->gating >= SINKPROOF_GATED_BY_SIXTH) {
        bool early = m->gating == SINKPROOF_GATED || m->gating >= SINKPROOF_GATED_BY_SIXTH;
        double alpha = m->gating >= SINKPROOF_GATED_BY_SIXTH ? m->sigmoid_by : numbers->alpha;
        sinkproof_honest g = m->gating == SINKPROOF_GATED_LATE ? whole : gate;
        sinkproof_honest read = early ? gate : whole;
        swish = sinkproof_honest_mul(g, sigmoid_of_gate(s, m->gating, alpha, read));
        swish = rounded_set(s, AT_M8_SWISH, swish);
        if (m->gating == SINKPROOF_GATED_LATE)
            swish = sinkproof_honest_clamp(swish, -INFINITY, numbers->limit);
    } else
        swish = rounded_set(s, AT_M8_SWISH, gate_set(s, m->gating, gate));
    if (m->swish_plus != 0) {
        swish = sinkproof_honest_add(swish, sinkproof_exact_set(m->swish_plus));
        swish = rounded_set(s, AT_M8_SWISH, swish);
    }
    sinkproof_honest y = sinkproof_honest_mul(swish, up);
    return rounded_set(s, AT_M8, sinkproof_honest_roundings(s, y, 2));
}

void meant_activations(const judge_pass *pass, const sinkproof_setting *s,
                       const sinkproof_honest *up, sinkproof_honest *z_f) {
    const sinkproof_config *c = pass->config;
    const sinkproof_meaning *m = pass->meaning;
    sinkproof_swiglu_numbers free_of_clamps = c->swiglu;
    bool plain = m->gate_low == -INFINITY && m->gate_high == 1 && m->up_low == -1 &&
                 m->up_high == 1 && m->up_plus == 1 && m->up_times == 1 && !m->up_plus_first &&
                 m->gating == SINKPROOF_GATED && !m->up_size && m->swish_plus == 0;
    free_of_clamps.limit = INFINITY;
    if (plain && m->pair_at == NULL) {
        size_t gate = place_in_row(m, c->inter, 0, 0), other = place_in_row(m, c->inter, 0, 1);
        size_t next = c->inter > 1 ? place_in_row(m, c->inter, 1, 0) - gate : 1;
        sinkproof_honest_swiglu_row(s, c->swiglu, c->inter, &up[gate], &up[other], next, z_f);
        return;
    }
    for (size_t f = 0; f < c->inter; f++) {
        sinkproof_honest gate = up[place_in_row(m, c->inter, f, 0)];
        sinkproof_honest other = up[place_in_row(m, c->inter, f, 1)];
        sinkproof_honest whole = gate;
        sinkproof_honest plus = sinkproof_exact_set(m->up_plus);
        if (!plain) {
            gate = set_clamped(gate, m->gate_low, m->gate_high, c->swiglu.limit);
            if (m->up_plus_first)
                other = rounded_set(s, AT_M8_UP, sinkproof_honest_add(other, plus));
            other = set_clamped(other, m->up_low, m->up_high, c->swiglu.limit);
            if (m->up_size) other = set_size(other);
            other = sinkproof_honest_mul(other, sinkproof_exact_set(m->up_times));
        }
        if (m->gating != SINKPROOF_GATED || m->up_plus_first || m->swish_plus != 0) {
            sinkproof_honest sum = other;
            if (!m->up_plus_first)
                sum = rounded_set(s, AT_M8_UP, sinkproof_honest_add(other, plus));
            z_f[f] = activated_otherwise(pass, s, whole, gate, other, sum);
            continue;
        }
        if (!plain) other = sinkproof_honest_add(other, sinkproof_exact_set(m->up_plus - 1));
        z_f[f] = sinkproof_honest_swiglu(s, plain ? c->swiglu : free_of_clamps, gate, other);
    }
}
