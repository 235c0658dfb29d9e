// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The activation as a product of a function of the gate and a function of up: where gate and up
// stand in the row, how each is clamped, what the sigmoid is. Each choice of parts that is near the
// engine's values in a sample is tried, those with fewer parts that differ first.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the parts

typedef struct clamp_part {
    double low, high; // infinite: none
} clamp_part;

typedef struct gate_part {
    sinkproof_gating gating;
    double by, plus;
    clamp_part clamp;
    bool late; // the sigmoid reads the gate before the clamp
} gate_part;

typedef struct up_part {
    bool size, plus_first;
    double times, plus;
    clamp_part clamp;
} up_part;

typedef struct pair_part {
    sinkproof_pair_rule *at; // NULL: as defined
    size_t by;
    char text[120];
} pair_part;

enum { MOST_GATES = 400, MOST_UPS = 400, MOST_PAIRINGS = 40, MOST_ACTIVATIONS_TRIED = 12 };

// The first of each is the definition.
typedef struct activation_parts {
    size_t n_gates, n_ups, n_pairings, tried;
    gate_part gates[MOST_GATES];
    up_part ups[MOST_UPS];
    pair_part pairings[MOST_PAIRINGS];
    double g[MOST_GATES][SAMPLES], u[MOST_UPS][SAMPLES]; // of the sample, in one pairing
} activation_parts;

// ---- places of gate and up

static size_t pair_halves(size_t f, size_t inter, size_t which, size_t by) {
    (void)by;
    return f + which * inter;
}

// Blocks of `by` gates and `by` ups.
static size_t pair_blocks(size_t f, size_t inter, size_t which, size_t by) {
    (void)inter;
    return f / by * 2 * by + which * by + f % by;
}

// Up of the coordinate `by` on, in a circle.
static size_t pair_rolled(size_t f, size_t inter, size_t which, size_t by) {
    return 2 * ((f + which * by) % inter) + which;
}

static size_t swapped_halves(size_t f, size_t inter, size_t which, size_t by) {
    return pair_halves(f, inter, 1 - which, by);
}

static size_t swapped_blocks(size_t f, size_t inter, size_t which, size_t by) {
    return pair_blocks(f, inter, 1 - which, by);
}

static size_t swapped_neighbours(size_t f, size_t inter, size_t which, size_t by) {
    (void)inter, (void)by;
    return 2 * f + 1 - which;
}

static pair_part *add_pairing(activation_parts *p, sinkproof_pair_rule *at, size_t by) {
    pair_part *made = &p->pairings[p->n_pairings < MOST_PAIRINGS ? p->n_pairings++ : 0];
    *made = (pair_part){.at = at, .by = by};
    return made;
}

static void list_pairings(activation_parts *p, size_t inter) {
    add_pairing(p, NULL, 0);
    pair_part *made = add_pairing(p, swapped_neighbours, 0);
    snprintf(made->text, sizeof made->text, "gate and up are exchanged");
    made = add_pairing(p, pair_halves, 0);
    snprintf(made->text, sizeof made->text,
             "gate and up are the halves of the row, not neighbours");
    made = add_pairing(p, swapped_halves, 0);
    snprintf(made->text, sizeof made->text,
             "up and gate are the halves of the row, not neighbours");
    for (size_t by = 2; by < inter; by++) {
        if (inter % by != 0) continue;
        made = add_pairing(p, pair_blocks, by);
        snprintf(made->text, sizeof made->text,
                 "gate and up alternate in blocks of %zu, not one by one", by);
        made = add_pairing(p, swapped_blocks, by);
        snprintf(made->text, sizeof made->text,
                 "up and gate alternate in blocks of %zu, not one by one", by);
    }
    for (size_t parts = 1; parts <= 4 && inter % parts == 0; parts *= 2)
        for (int before = 0; before < 2; before++) {
            size_t by = parts == 1 ? 1 : inter / parts;
            if (by == 0 || (parts == 2 && before)) continue;
            made = add_pairing(p, pair_rolled, before ? inter - by : by);
            snprintf(made->text, sizeof made->text,
                     "the gate is multiplied by up of the coordinate %zu %s, in a circle", by,
                     before ? "before" : "on");
        }
}

// ---- functions

static const double limits[] = {0.5, 1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 16, 20};
enum { LIMITS = sizeof limits / sizeof limits[0] };

static void add_gate(activation_parts *p, gate_part part) {
    if (p->n_gates < MOST_GATES) p->gates[p->n_gates++] = part;
}

static void list_gates(activation_parts *p, sinkproof_swiglu_numbers own) {
    const clamp_part usual = {-INFINITY, own.limit};
    const gate_part defined = {.gating = SINKPROOF_GATED_SUM, .by = own.alpha, .clamp = usual};
    const double by[] = {own.alpha, 1};
    add_gate(p, defined);
    for (int kind = SINKPROOF_GATED_BY_SIXTH; kind <= SINKPROOF_GATED_BY_POWER; kind++)
        for (int i = 0; i < 2; i++) {
            gate_part part = defined;
            part.gating = (sinkproof_gating)kind, part.by = by[i];
            add_gate(p, part);
        }
    gate_part plus = defined;
    plus.plus = 1;
    add_gate(p, plus);
    for (int late = 0; late < 2; late++)
        for (size_t i = 0; i <= LIMITS; i++) {
            double c = i == 0 ? own.limit : limits[i - 1];
            const clamp_part clamps[] = {{-c, c}, {-INFINITY, c}, {-c, own.limit}, {-c, INFINITY}};
            for (int k = 0; k < 4; k++) {
                gate_part part = defined;
                part.clamp = clamps[k], part.late = late != 0;
                add_gate(p, part);
            }
        }
    gate_part open = defined;
    open.clamp.high = INFINITY;
    add_gate(p, open);
}

static void add_up(activation_parts *p, up_part part) {
    if (p->n_ups < MOST_UPS) p->ups[p->n_ups++] = part;
}

static void list_ups(activation_parts *p, sinkproof_swiglu_numbers own) {
    const up_part defined = {.times = 1, .plus = 1, .clamp = {-own.limit, own.limit}};
    const double plus[] = {1, 0, -1};
    add_up(p, defined);
    for (int size = 0; size < 2; size++)
        for (double times = 1; times >= -1; times -= 2)
            for (int k = 0; k < 3; k++)
                for (int open = 0; open < 2; open++) {
                    up_part part = {.times = times, .plus = plus[k], .size = size != 0};
                    double limit = open ? INFINITY : own.limit;
                    part.clamp = (clamp_part){-limit, limit};
                    add_up(p, part);
                }
    for (int first = 0; first < 2; first++)
        for (size_t i = 0; i <= LIMITS; i++) {
            double c = i == 0 ? own.limit : limits[i - 1];
            const clamp_part clamps[] = {{-c, c},         {-INFINITY, c},  {-c, INFINITY},
                                         {-own.limit, c}, {-c, own.limit}, {0, c}};
            for (int k = 0; k < 6; k++) {
                up_part part = defined;
                part.clamp = clamps[k], part.plus_first = first != 0;
                add_up(p, part);
            }
        }
}

static double clamped(clamp_part clamp, double x) {
    return fmin(fmax(x, clamp.low), clamp.high);
}

static double gate_value(const gate_part *part, double gate) {
    double g = clamped(part->clamp, gate);
    return g * sinkproof_sigmoid_by(part->gating, part->by * (part->late ? gate : g)) + part->plus;
}

static double up_value(const up_part *part, double up) {
    double u = clamped(part->clamp, part->plus_first ? up + part->plus : up);
    if (part->plus_first) return u;
    return part->times * (part->size ? fabs(u) : u) + part->plus;
}

// ---- what the judge asks

static bool activate_by_parts(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    const activation_choice *a = &m->activation;
    double limit = s->config.swiglu.limit;
    sinkproof_meaning *to = &s->meaning;
    to->pair_at = a->pair_at, to->pair_by = a->pair_by;
    to->gating = (sinkproof_gating)a->gating;
    to->sigmoid_by = a->sigmoid_by, to->swish_plus = a->swish_plus;
    to->gate_low = a->gate_low / limit, to->gate_high = a->gate_high / limit;
    to->up_low = a->up_low / limit, to->up_high = a->up_high / limit;
    to->up_size = a->up_size, to->up_plus_first = a->up_plus_first;
    to->up_times = a->up_times, to->up_plus = a->up_plus;
    return s->config.activation == SINKPROOF_SWIGLU && limit > 0 && isfinite(limit);
}

// What stands before the next part.
static const char *between(const composed_mistake *m) {
    return strcmp(m->text, "in the activation") == 0 ? " " : "; ";
}

static void say_clamp(composed_mistake *m, const char *what, clamp_part clamp) {
    if (isinf(clamp.low) && isinf(clamp.high))
        composed_say(m, "%s%s is not clamped", between(m), what);
    else if (isinf(clamp.low))
        composed_say(m, "%s%s is clamped to at most %g", between(m), what, clamp.high);
    else if (isinf(clamp.high))
        composed_say(m, "%s%s is clamped to at least %g", between(m), what, clamp.low);
    else
        composed_say(m, "%s%s is clamped to %g and %g", between(m), what, clamp.low, clamp.high);
}

static bool same_clamp(clamp_part a, clamp_part b) {
    return !(a.low < b.low) && !(a.low > b.low) && !(a.high < b.high) && !(a.high > b.high);
}

static void say_gate(composed_mistake *m, const gate_part *part, const gate_part *own) {
    static const char *const words[] = {"x/6 + 1/2, clamped to 0 and 1 (a hard sigmoid)",
                                        "x/5 + 1/2, clamped to 0 and 1 (a hard sigmoid)",
                                        "x/4 + 1/2, clamped to 0 and 1 (a hard sigmoid)",
                                        "(1 + x/(1 + |x|))/2",
                                        "(1 + x/sqrt(1 + x^2))/2",
                                        "one by a fraction in the place of tanh",
                                        "one by a power in the place of exp"};
    if (part->gating >= SINKPROOF_GATED_BY_SIXTH)
        composed_say(m, "%sthe sigmoid is approximated: %s, of x = %g gate", between(m),
                     words[part->gating - SINKPROOF_GATED_BY_SIXTH], part->by);
    if (part->plus > 0)
        composed_say(m, "%s%g is added to the gate times its sigmoid", between(m), part->plus);
    if (!same_clamp(part->clamp, own->clamp)) say_clamp(m, "the gate", part->clamp);
    if (part->late) composed_say(m, "%sthe sigmoid reads the gate before its clamp", between(m));
}

static void say_up(composed_mistake *m, const up_part *part, const up_part *own) {
    const char *up = part->size ? "|up|" : "up", *sign = part->times < 0 ? "-" : "";
    if (!same_clamp(part->clamp, own->clamp)) say_clamp(m, "up", part->clamp);
    if (part->plus_first) composed_say(m, "%s1 is added to up before its clamp", between(m));
    if (part->size == own->size && !(part->times < own->times) && !(part->plus < own->plus)) return;
    if (part->plus > 0 || part->plus < 0)
        composed_say(m, "%sthe factor beside it is %s%s %+g, not up + 1", between(m), sign, up,
                     part->plus);
    else
        composed_say(m, "%sthe factor beside it is %s%s, not up + 1", between(m), sign, up);
}

static bool try_parts(composing *c, activation_parts *p, size_t pairing, size_t gate, size_t up) {
    const pair_part *places = &p->pairings[pairing];
    const gate_part *g = &p->gates[gate];
    const up_part *u = &p->ups[up];
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = activate_by_parts, m->region = c->regions[r];
        bool late = g->late && g->gating == SINKPROOF_GATED_SUM;
        m->activation =
            (activation_choice){.pair_at = places->at,
                                .pair_by = places->by,
                                .gating = g->gating == SINKPROOF_GATED_SUM
                                              ? (late ? SINKPROOF_GATED_UNCLAMPED : SINKPROOF_GATED)
                                              : g->gating,
                                .sigmoid_by = g->by,
                                .swish_plus = g->plus,
                                .gate_low = g->clamp.low,
                                .gate_high = g->clamp.high,
                                .up_low = u->clamp.low,
                                .up_high = u->clamp.high,
                                .up_size = u->size,
                                .up_plus_first = u->plus_first,
                                .up_times = u->times,
                                .up_plus = u->plus};
        composed_name(m, "M8-parts-%zu-%zu-%zu", pairing, gate, up);
        composed_say(m, "in the activation");
        if (pairing > 0) composed_say(m, " %s", places->text);
        if (gate > 0) say_gate(m, g, &p->gates[0]);
        if (up > 0) say_up(m, u, &p->ups[0]);
        composed_say_region(c, m);
        p->tried++;
        fine = composing_try(c, m);
    }
    return fine;
}

// ---- the search

static bool parts_are_near(const operation *o, const activation_parts *p, size_t gate, size_t up) {
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++)
        far += !value_is_near(o->c, o->at[s], p->g[gate][s] * p->u[up][s]);
    return 8 * far <= o->n;
}

static void fill_samples(const operation *o, activation_parts *p, const pair_part *pairing) {
    size_t inter = o->c->s->trials.config->inter;
    for (size_t s = 0; s < o->n; s++) {
        size_t f = o->at[s] % inter, row = o->at[s] / inter * 2 * inter;
        bool own = pairing->at == NULL;
        double g = o->x[0][row + (own ? 2 * f : pairing->at(f, inter, 0, pairing->by))];
        double u = o->x[0][row + (own ? 2 * f + 1 : pairing->at(f, inter, 1, pairing->by))];
        for (size_t i = 0; i < p->n_gates; i++) p->g[i][s] = gate_value(&p->gates[i], g);
        for (size_t i = 0; i < p->n_ups; i++) p->u[i][s] = up_value(&p->ups[i], u);
    }
}

// One part that differs, then two.
static bool try_functions(const operation *o, activation_parts *p, size_t pairing) {
    composing *c = o->c;
    bool fine = true;
    for (int both = 0; both < 2; both++)
        for (size_t g = 0; g < p->n_gates; g++)
            for (size_t u = 0; u < p->n_ups && fine && c->found == NULL; u++) {
                bool two = g > 0 && u > 0, none = g == 0 && u == 0 && pairing == 0;
                if (two != (both != 0) || none || p->tried >= MOST_ACTIVATIONS_TRIED) continue;
                if (parts_are_near(o, p, g, u)) fine = try_parts(c, p, pairing, g, u);
            }
    return fine;
}

// ---- clamps before the bias

// M6 with gate and up clamped before their biases are added. What is clamped may be M6 less its
// bias: two more roundings in binary32.
static bool make_clamped_first(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m5 = sinkproof_trace_find(of->trace, TRACE_M5, of->layer);
    size_t row = 2 * of->config->inter;
    double limit = of->config->swiglu.limit;
    sinkproof_matrix biases = sinkproof_model_slot(of->model, of->layer, SINKPROOF_B_UP);
    bool fine = m5 != NULL && of->chosen_nk != NULL && sinkproof_tensor_elements(m5) == of->all &&
                biases.count == of->config->n_experts && biases.cols == row;
    double *bias = malloc(row * sizeof *bias);
    fine = fine && bias != NULL;
    for (size_t at = 0; fine && at < of->all; at++) {
        int32_t e = of->chosen_nk[at / row];
        double x = sinkproof_tensor_value(m5, at), low = at % 2 == 0 ? -INFINITY : -limit;
        bool inside = x <= limit && x >= low;
        fine = e >= 0 && (size_t)e < biases.count;
        if (fine && at % row == 0) {
            sinkproof_matrix one = sinkproof_matrix_at(&biases, (size_t)e);
            sinkproof_matrix_row(&one, 0, bias);
        }
        double b = fine ? bias[at % row] : 0;
        y[at] = inside ? of->x[at] : fmin(fmax(x, low), limit) + b;
        width[at] = 0x1p-23 * (fabs(y[at]) + fabs(b));
    }
    free(bias);
    return fine;
}

static bool activate_unclamped(supposed_engine *s, const known_mistake *k) {
    (void)k;
    s->meaning.gate_high = s->meaning.up_high = INFINITY, s->meaning.up_low = -INFINITY;
    return true;
}

static bool clamped_first_is_near(const operation *o) {
    const composing *c = o->c;
    const sinkproof_config *config = c->s->trials.config;
    sinkproof_making of = composing_making(c);
    size_t all = o->width[0] * c->n, inter = config->inter, far = 0;
    double *y = calloc(2 * all + 1, sizeof *y);
    of.all = all, of.x = o->x[0];
    bool made = y != NULL && make_clamped_first(&of, y, y + all);
    for (size_t s = 0; s < o->n && made; s++) {
        const double *pair = &y[o->at[s] / inter * 2 * inter + 2 * (o->at[s] % inter)];
        double value = pair[0] / (1 + exp(-config->swiglu.alpha * pair[0])) * (pair[1] + 1);
        far += !value_is_near(c, o->at[s], value);
    }
    free(y);
    return made && 8 * far <= o->n;
}

static bool try_clamps_first(const operation *o) {
    composing *c = o->c;
    if (c->chosen_nk == NULL || !clamped_first_is_near(o)) return true;
    const sinkproof_format kept[] = {SINKPROOF_REAL, SINKPROOF_BF16};
    bool fine = true;
    for (int i = 0; i < (c->step > 0x1p-12 ? 2 : 1) && fine && c->found == NULL; i++) {
        composed_mistake *m = composing_reads(c, &o->inputs[0]);
        if (m == NULL) return false;
        m->operate = activate_unclamped;
        m->input.make = make_clamped_first, m->input.kept = kept[i];
        composed_name(m, "M8-clamps-before-bias");
        composed_say(m, "gate and up are clamped before their biases are added, and not after");
        fine = composing_try(c, m);
    }
    return fine;
}

// ---- the search, of all

bool compose_activations(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    operation o;
    if (c->point != TRACE_M8 || config->activation != SINKPROOF_SWIGLU) return true;
    if (!(config->swiglu.limit > 0) || !isfinite(config->swiglu.limit)) return true;
    activation_parts *p = calloc(1, sizeof *p);
    bool fine = operation_read(c, &o) && (p != NULL || fail_for_memory(c->s));
    if (fine && o.whole && o.n > 0 && c->elements % config->inter == 0) {
        list_pairings(p, config->inter);
        list_gates(p, config->swiglu);
        list_ups(p, config->swiglu);
        for (size_t i = 0; i < p->n_pairings && fine && c->found == NULL; i++) {
            fill_samples(&o, p, &p->pairings[i]);
            fine = try_functions(&o, p, i);
        }
        if (fine && c->found == NULL) fine = try_clamps_first(&o);
    }
    free(p);
    operation_free(&o);
    return fine;
}
