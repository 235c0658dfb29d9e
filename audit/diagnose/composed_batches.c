// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tokens of an expert in another order: each place in an expert's batch has the row of another
// place. The experts' batches are in the order of tokens, or of slots.
#include "audit/diagnose/composed_made.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum batch_rule {
    REVERSED,
    AT_MOST,  // place a for later ones
    MODULO,   // a
    FIRST_OF, // the first of each a
    ROLLED,   // the place a on, in a circle
    RULES
} batch_rule;

enum { RULE, A, BY_SLOT, MOST_EXPERTS = 1024 }; // the numbers

static size_t place_from(batch_rule rule, size_t place, size_t size, long a) {
    switch (rule) {
    case REVERSED:
        return size - 1 - place;
    case AT_MOST:
        return place < (size_t)a ? place : (size_t)a;
    case MODULO:
        return place % (size_t)a;
    case FIRST_OF:
        return place / (size_t)a * (size_t)a;
    default:
        return (size_t)((((long)place + a) % (long)size + (long)size) % (long)size);
    }
}

// batch_q: the slots, expert by expert; first_e: where each expert's begin.
static bool sort_batches(const sinkproof_making *of, size_t *batch_q, size_t *first_e) {
    size_t k = of->config->n_chosen, pairs = of->n * k, experts = of->config->n_experts;
    for (size_t e = 0; e <= experts; e++) first_e[e] = 0;
    for (size_t q = 0; q < pairs; q++) {
        if (of->chosen_nk[q] < 0) return false;
        first_e[of->chosen_nk[q] + 1]++;
    }
    for (size_t e = 0; e < experts; e++) first_e[e + 1] += first_e[e];
    for (size_t i = 0; i < pairs; i++) {
        size_t q = of->numbers[BY_SLOT] != 0 ? i % of->n * k + i / of->n : i;
        batch_q[first_e[of->chosen_nk[q]]++] = q;
    }
    for (size_t e = experts; e > 0; e--) first_e[e] = first_e[e - 1];
    first_e[0] = 0;
    return true;
}

static bool make_batches(const sinkproof_making *of, double *y, double *width) {
    size_t pairs = of->n * of->config->n_chosen, each = of->all / pairs, first_e[MOST_EXPERTS + 1];
    size_t *batch_q = malloc((pairs + 1) * sizeof *batch_q);
    bool fine = batch_q != NULL && of->chosen_nk != NULL && of->config->n_experts <= MOST_EXPERTS &&
                sort_batches(of, batch_q, first_e);
    for (size_t e = 0; fine && e < of->config->n_experts; e++)
        for (size_t p = first_e[e]; p < first_e[e + 1]; p++) {
            size_t from =
                first_e[e] + place_from((batch_rule)of->numbers[RULE], p - first_e[e],
                                        first_e[e + 1] - first_e[e], (long)of->numbers[A]);
            for (size_t i = 0; i < each; i++) {
                y[batch_q[p] * each + i] = of->x[batch_q[from] * each + i];
                if (of->radius != NULL)
                    width[batch_q[p] * each + i] = of->radius[batch_q[from] * each + i];
            }
        }
    free(batch_q);
    return fine;
}

static bool try_batch(const operation *o, batch_rule rule, long a, const char *text) {
    bool fine = true;
    for (int by_slot = 0; by_slot < 2 && fine && o->c->found == NULL; by_slot++) {
        made_kind kind = {.make = make_batches, .numbers = {rule, (double)a, by_slot}};
        snprintf(kind.id, sizeof kind.id, "batch-%d%+ld%s", (int)rule, a,
                 by_slot ? "-by-slot" : "");
        snprintf(kind.text, sizeof kind.text,
                 "has the rows of an expert's tokens in other places of its batch: %s%s", text,
                 by_slot ? " (first choices before second ones)" : "");
        fine = composing_try_made(o, &kind);
    }
    return fine;
}

bool compose_batches(composing *c) {
    enum { MOST = 128, MOST_ELEMENTS = 1 << 20 };
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    bool slotted = c->point >= TRACE_M5 && c->point <= TRACE_M10;
    if (!slotted || c->chosen_nk == NULL || config->dense || c->elements > MOST_ELEMENTS)
        return true;
    bool fine = operation_read(c, &o);
    char text[160];
    if (fine) fine = try_batch(&o, REVERSED, 0, "in reverse order");
    for (long a = 1; a <= MOST && a < (long)c->n && fine && c->found == NULL; a++) {
        bool usual = (a & (a - 1)) == 0 || a <= 8;
        snprintf(text, sizeof text, "all after place %ld have that of place %ld (a tile of %ld)", a,
                 a, a + 1);
        fine = try_batch(&o, AT_MOST, a, text);
        snprintf(text, sizeof text, "that of the place with its number modulo %ld", a);
        if (fine && usual) fine = try_batch(&o, MODULO, a, text);
        snprintf(text, sizeof text, "that of the first place of its tile of %ld", a);
        if (fine && usual && a > 1) fine = try_batch(&o, FIRST_OF, a, text);
    }
    operation_free(&o);
    return fine;
}
