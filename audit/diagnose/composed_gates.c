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

// ---- sums and products in other places: t (g + p) sigmoid(a r) (u v + q)

typedef struct gate_sum {
    double times, plus, by; // t, p, a
    bool of_up;             // r is up
    double up_times, up_plus;
} gate_sum;

static bool gate_by_sum(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.gating = SINKPROOF_GATED_SUM;
    s->meaning.gate_times = m->numbers[0], s->meaning.gate_plus = m->numbers[1];
    s->meaning.sigmoid_by = m->numbers[2], s->meaning.sigmoid_of_up = m->numbers[3] != 0;
    s->meaning.up_times = m->numbers[4], s->meaning.up_plus = m->numbers[5];
    return s->config.activation == SINKPROOF_SWIGLU;
}

static bool sums_to(const operation *o, const gate_sum *sum) {
    double limit = o->c->s->trials.config->swiglu.limit;
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        const double *x = &o->x[0][2 * o->at[s]];
        double g = fmin(x[0], limit), u = fmin(fmax(x[1], -limit), limit);
        double value = sum->times * (g + sum->plus) / (1 + exp(-sum->by * (sum->of_up ? u : g)));
        far += !value_is_near(o->c, o->at[s], value * (sum->up_times * u + sum->up_plus));
    }
    return 8 * far <= o->n;
}

static void say_sum(composed_mistake *m, const gate_sum *sum, double alpha) {
    const char *read = sum->of_up ? "up" : "gate";
    if (sum->times == alpha && sum->by == 1)
        composed_say(m, "alpha multiplies the gate outside of its sigmoid: ");
    if (sum->plus != 0 && sum->up_plus == 0)
        composed_say(m, "%g is added to the gate, not to up: ", sum->plus);
    else if (sum->plus != 0)
        composed_say(m, "%g is added to the gate: ", sum->plus);
    if (sum->of_up) composed_say(m, "the sigmoid reads up, not the gate: ");
    composed_say(m, "the activation is ");
    if (sum->times != 1) composed_say(m, "%g ", sum->times);
    if (sum->plus != 0)
        composed_say(m, "(gate %+g) ", sum->plus);
    else
        composed_say(m, "gate ");
    if (sum->by == 1)
        composed_say(m, "sigmoid(%s) ", read);
    else
        composed_say(m, "sigmoid(%g %s) ", sum->by, read);
    const char *up = sum->up_times == -1 ? "-up" : "up";
    if (sum->up_plus != 0)
        composed_say(m, "(%s %+g)", up, sum->up_plus);
    else
        composed_say(m, "%s", up);
}

static bool try_sum(composing *c, const gate_sum *sum) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = gate_by_sum, m->region = c->regions[r];
        m->numbers[0] = sum->times, m->numbers[1] = sum->plus, m->numbers[2] = sum->by;
        m->numbers[3] = sum->of_up, m->numbers[4] = sum->up_times, m->numbers[5] = sum->up_plus;
        composed_name(m, "gate-%g-%g-%g%s-up-%g-%g", sum->times, sum->plus, sum->by,
                      sum->of_up ? "-of-up" : "", sum->up_times, sum->up_plus);
        say_sum(m, sum, c->s->trials.config->swiglu.alpha);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_sums(composing *c, const operation *o) {
    double alpha = c->s->trials.config->swiglu.alpha;
    const double by[] = {alpha, 1, -alpha, 1 / alpha, 2 * alpha, alpha / 2, 2, -1};
    const double times[] = {1, alpha, 1 / alpha, -1}, plus[] = {0, 1, -1};
    const double up_plus[] = {1, 0, -1, 2}, up_times[] = {1, -1};
    bool fine = true;
    for (size_t i = 0; i < 8 * 4 * 3 * 4 * 2 * 2 && fine && c->found == NULL; i++) {
        const gate_sum sum = {.up_times = up_times[i % 2],
                              .of_up = i / 2 % 2 != 0,
                              .up_plus = up_plus[i / 4 % 4],
                              .plus = plus[i / 16 % 3],
                              .times = times[i / 48 % 4],
                              .by = by[i / 192]};
        if (sums_to(o, &sum)) fine = try_sum(c, &sum);
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
    if (fine && o.whole && o.n > 0 && c->found == NULL) fine = try_sums(c, &o);
    operation_free(&o);
    return fine;
}
