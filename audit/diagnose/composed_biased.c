// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router's choice, M3, by logits plus a number of each expert: the bias of another layer, or
// one that is fitted, as a correction bias is added for the choice; and choices that no logits
// make, by the number of the token or of the position. Every row must be chosen as shown.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND, STEP }; // the numbers
enum { PLUS_TABLE, BY_TOKEN, BY_POSITION, BY_SLOT, KINDS };
enum { FEWEST_ROWS = 4, ROWS_FOR_EACH = 2, MOST_EXPERTS = 256, MOST_PASSES = 4000 };

static bool make_choice(const sinkproof_making *of, double *y, double *width) {
    size_t experts = of->config->n_experts, k = of->config->n_chosen;
    size_t step = (size_t)of->numbers[STEP];
    const int32_t *tokens = sinkproof_trace_tokens(of->trace);
    const int32_t *positions = sinkproof_trace_positions(of->trace);
    (void)width;
    if (of->all != of->n * experts) return false;
    for (size_t i = 0; i < of->n; i++) {
        double *g = &y[i * experts];
        size_t first = (size_t)(of->numbers[KIND] == BY_TOKEN ? tokens[i] : positions[i]);
        if (of->numbers[KIND] == BY_SLOT) first *= k;
        for (size_t e = 0; e < experts; e++)
            g[e] = of->numbers[KIND] == PLUS_TABLE ? of->x[i * experts + e] + of->table[e] : -1e30;
        for (size_t s = k; of->numbers[KIND] != PLUS_TABLE && s-- > 0;)
            g[(first + s * step) % experts] = (double)(k - s);
    }
    return true;
}

typedef struct biasing {
    composing *c;
    operation o;
    double *y; // the logits as made
    size_t experts, k;
} biasing;

// Whether the logits give the experts that are shown in every row; *changed: rows with an element
// outside.
static bool chooses_as_shown(const biasing *b, size_t *changed) {
    const composing *c = b->c;
    *changed = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double *g = &b->y[i * b->experts];
        bool outside = false;
        for (size_t s = 0; s < b->k; s++) {
            int32_t e = c->chosen_nk[i * b->k + s];
            size_t above = 0;
            if (e < 0) return false;
            for (size_t o = 0; o < b->experts; o++) above += g[o] > g[e];
            if (above > s) return false;
            outside = outside || c->marks[i * b->k + s];
        }
        *changed += outside;
    }
    return true;
}

static bool try_choice(biasing *b, const made_kind *made, size_t fewest) {
    composing *c = b->c;
    sinkproof_making of = composing_making(c);
    size_t changed;
    of.point = TRACE_M2, of.all = c->n * b->experts;
    of.x = b->o.x[0], of.numbers = made->numbers, of.table = made->table;
    if (c->found != NULL || !make_choice(&of, b->y, NULL)) return true;
    if (!chooses_as_shown(b, &changed) || changed < fewest) return true;
    composed_mistake *m = composing_reads(c, &b->o.inputs[0]);
    if (m == NULL) return false;
    m->input.make = make_choice, m->input.table = made->table;
    memcpy(m->input.numbers, made->numbers, sizeof m->input.numbers);
    composed_name(m, "choice-%s", made->id);
    composed_say(m, "the experts are chosen %s", made->text);
    return composing_try(c, m);
}

// ---- rules of tokens and positions

static bool try_rules(biasing *b) {
    static const char *const words[KINDS] = {[BY_TOKEN] = "the number of the token",
                                             [BY_POSITION] = "the position",
                                             [BY_SLOT] =
                                                 "the position times the experts of a token"};
    bool fine = true;
    for (int kind = BY_TOKEN; kind < KINDS && fine; kind++)
        for (size_t step = 1; step < b->experts && fine; step++) {
            made_kind made = {.make = make_choice, .numbers = {kind, (double)step}};
            snprintf(made.id, sizeof made.id, "by-rule-%d-%zu", kind, step);
            snprintf(made.text, sizeof made.text,
                     "without the router: the first is %s modulo %zu, each next one is %zu on (a "
                     "table or a balanced routing in the place of the logits)",
                     words[kind], b->experts, step);
            if (step == 1 || step == b->experts / b->k) fine = try_choice(b, &made, FEWEST_ROWS);
        }
    return fine;
}

// ---- a number of each expert

static bool read_bias(const biasing *b, long layer, double *bias_e) {
    const sinkproof_config *config = b->c->s->trials.config;
    if (layer < 0 || layer >= (long)config->n_layers) return false;
    sinkproof_matrix w =
        sinkproof_model_slot(b->c->s->trials.suspect.model, (size_t)layer, SINKPROOF_B_ROUTER);
    if (w.count == 0 || w.cols != b->experts) return false;
    sinkproof_matrix_row(&w, 0, bias_e);
    return true;
}

static bool try_layers(biasing *b) {
    double own_e[MOST_EXPERTS], other_e[MOST_EXPERTS];
    bool fine = true;
    if (!read_bias(b, (long)b->c->place, own_e)) return true;
    for (int by = -2; by <= 2; by++)
        for (int too = 0; too < 2 && fine; too++) {
            made_kind made = {.make = make_choice, .numbers = {PLUS_TABLE}};
            if (by == 0 || !read_bias(b, (long)b->c->place + by, other_e)) continue;
            for (size_t e = 0; e < b->experts && !too; e++) other_e[e] -= own_e[e];
            made.table = composing_keep_numbers(b->c, b->experts, other_e);
            snprintf(made.id, sizeof made.id, "bias-of-layer%+d%s", by, too ? "-too" : "");
            snprintf(made.text, sizeof made.text,
                     "by logits with the router's bias of the layer %d %s, %s its own", abs(by),
                     by < 0 ? "before" : "on", too ? "and" : "in the place of");
            fine = made.table != NULL && try_choice(b, &made, FEWEST_ROWS);
        }
    return fine;
}

// What expert `above` lacks to be before `below` in row i.
static double lacks(const biasing *b, const double *plus_e, size_t i, size_t above, size_t below) {
    const double *g = &b->o.x[0][i * b->experts];
    return g[below] + plus_e[below] - g[above] - plus_e[above];
}

// plus_e: numbers with which every row is chosen as shown; false: none were found.
static bool fit_numbers(const biasing *b, double *plus_e) {
    const int32_t *chosen_nk = b->c->chosen_nk;
    memset(plus_e, 0, b->experts * sizeof *plus_e);
    for (size_t pass = 0; pass < MOST_PASSES; pass++) {
        size_t wrong = 0;
        for (size_t i = 0; i < b->c->n; i++)
            for (size_t s = 0; s < b->k; s++)
                for (size_t e = 0; e < b->experts; e++) {
                    size_t own = (size_t)chosen_nk[i * b->k + s];
                    bool before = false;
                    for (size_t q = 0; q <= s; q++)
                        before = before || chosen_nk[i * b->k + q] == (int32_t)e;
                    if (before) continue;
                    double need = lacks(b, plus_e, i, own, e);
                    if (need <= 0) continue;
                    need += 1e-4;
                    plus_e[own] += need / 2, plus_e[e] -= need / 2;
                    wrong++;
                }
        if (wrong == 0) return true;
    }
    return false;
}

static bool try_fitted(biasing *b) {
    double plus_e[MOST_EXPERTS], least = INFINITY, most = -INFINITY;
    enum { MOST_WORK = 1 << 15 };
    if (b->c->n * b->k * b->experts > MOST_WORK || !fit_numbers(b, plus_e)) return true;
    for (size_t e = 0; e < b->experts; e++)
        least = fmin(least, plus_e[e]), most = fmax(most, plus_e[e]);
    made_kind made = {.make = make_choice, .numbers = {PLUS_TABLE}};
    made.table = composing_keep_numbers(b->c, b->experts, plus_e);
    snprintf(made.id, sizeof made.id, "plus-numbers");
    snprintf(made.text, sizeof made.text,
             "by logits plus a number of each expert's, as a correction bias: about %.2g to %.2g",
             least, most);
    // a few rows are chosen as shown by some numbers, whatever they are
    size_t fewest = ROWS_FOR_EACH * (b->experts - 1);
    return made.table != NULL && try_choice(b, &made, fewest);
}

bool compose_biased(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    biasing b = {.c = c, .experts = config->n_experts, .k = config->n_chosen};
    if (c->point != TRACE_M3 || c->chosen_nk == NULL || b.experts > MOST_EXPERTS) return true;
    for (size_t q = 0; q < c->n * b.k; q++)
        if (c->chosen_nk[q] < 0) return true;
    bool fine = operation_read(c, &b.o);
    b.y = malloc((c->n * b.experts + 1) * sizeof *b.y);
    if (fine && b.y == NULL) fine = fail_for_memory(c->s);
    if (fine && b.o.x[0] != NULL) fine = try_layers(&b) && try_rules(&b) && try_fitted(&b);
    free(b.y);
    operation_free(&b.o);
    return fine;
}
