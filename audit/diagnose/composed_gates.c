// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The activation by another function, or with its clamps and sums in another order.
#include "audit/diagnose/composed_values.h"

#include <math.h>

// numbers: the gating; whether 1 is added to up before its clamp; what multiplies up, and what is
// added to it.
static bool gate_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.gating = (sinkproof_gating)m->numbers[0];
    s->meaning.up_plus_first = m->numbers[1] != 0;
    s->meaning.up_times = m->numbers[2], s->meaning.up_plus = m->numbers[3];
    return s->config.activation == SINKPROOF_SWIGLU;
}

typedef struct gate_kind {
    sinkproof_gating gating;
    bool plus_first;
    double up_times, up_plus;
    const char *id, *text;
} gate_kind;

static double gated_value(const sinkproof_config *config, const gate_kind *kind, double gate,
                          double up) {
    sinkproof_swiglu_numbers of = config->swiglu;
    double g = fmin(gate, of.limit), plus = kind->up_plus;
    double late = gate / (1 + exp(-of.alpha * gate));
    double u = fmin(fmax(kind->plus_first ? up + plus : up, -of.limit), of.limit);
    double swish = kind->gating == SINKPROOF_GATED             ? g / (1 + exp(-of.alpha * g))
                   : kind->gating == SINKPROOF_GATED_UNCLAMPED ? g / (1 + exp(-of.alpha * gate))
                   : kind->gating == SINKPROOF_GATED_LATE      ? fmin(late, of.limit)
                                                               : sinkproof_gate_by(kind->gating, g);
    return swish * (kind->plus_first ? u : kind->up_times * u + plus);
}

static bool gates_to(const operation *o, const gate_kind *kind) {
    const sinkproof_config *config = o->c->s->trials.config;
    size_t far = 0;
    for (size_t s = 0; s < o->n && o->whole; s++) {
        const double *x = &o->x[0][2 * o->at[s]]; // a gate and its up belong to each element
        far += !value_is_near(o->c, o->at[s], gated_value(config, kind, x[0], x[1]));
    }
    return o->whole && o->n > 0 && 8 * far <= o->n;
}

static bool try_gate(composing *c, const gate_kind *kind) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = gate_otherwise, m->region = c->regions[r];
        m->numbers[0] = kind->gating, m->numbers[1] = kind->plus_first;
        m->numbers[2] = kind->up_times, m->numbers[3] = kind->up_plus;
        composed_name(m, "%s", kind->id);
        composed_say(m, "%s", kind->text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

bool compose_gates(composing *c) {
    static const gate_kind kinds[] = {
        {SINKPROOF_GATED_UNCLAMPED, false, 1, 1, "gate-unclamped-in-sigmoid",
         "the sigmoid of the activation reads the gate before its clamp"},
        {SINKPROOF_GATED_LATE, false, 1, 1, "gate-clamped-behind-its-sigmoid",
         "the gate is clamped behind its product with the sigmoid, not before"},
        {SINKPROOF_GATED, true, 1, 1, "up-plus-one-before-clamp",
         "1 is added to up before up is clamped, not after"},
        {SINKPROOF_GATED_BY_GELU, false, 1, 1, "gate-gelu",
         "the gate passes GELU (with erf) in the place of SiLU"},
        {SINKPROOF_GATED_BY_GELU_TANH, false, 1, 1, "gate-gelu-tanh",
         "the gate passes GELU by tanh in the place of SiLU"},
        {SINKPROOF_GATED_BY_RELU, false, 1, 1, "gate-relu",
         "the gate passes ReLU in the place of SiLU"},
        {SINKPROOF_GATED_BY_SQUARED_RELU, false, 1, 1, "gate-squared-relu",
         "the gate passes the square of ReLU in the place of SiLU"},
        {SINKPROOF_GATED_BY_TANH, false, 1, 1, "gate-tanh",
         "the gate passes tanh in the place of SiLU"},
        {SINKPROOF_GATED_BY_SILU, false, 1, 1, "gate-silu",
         "the gate passes SiLU in one step: alpha is left out (1)"},
        {SINKPROOF_GATED_BY_SIGMOID, false, 1, 1, "gate-sigmoid-alone",
         "the sigmoid of the gate is not multiplied by the gate, and alpha is left out"},
        {SINKPROOF_GATED_BY_ITSELF, false, 1, 1, "gate-without-sigmoid",
         "the gate is not multiplied by its sigmoid: the activation is linear in it"},
        {SINKPROOF_GATED_BY_ONE, false, 1, 1, "gate-missing",
         "the gate is left out: the activation is up + 1 alone"},
        {SINKPROOF_GATED, false, 0, 1, "up-missing",
         "up is left out: the activation is the gate times its sigmoid alone"},
        {SINKPROOF_GATED, false, -1, 1, "up-negated", "1 - up stands for up + 1"}};
    operation o;
    bool fine = true;
    if (c->point != TRACE_M8 || c->s->trials.config->activation != SINKPROOF_SWIGLU) return true;
    fine = operation_read(c, &o);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && fine && c->found == NULL; i++)
        if (gates_to(&o, &kinds[i])) fine = try_gate(c, &kinds[i]);
    operation_free(&o);
    return fine;
}
