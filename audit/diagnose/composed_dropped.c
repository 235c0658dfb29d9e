// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Experts' weights, M4, that are zero beyond a capacity: of an expert's tokens the first in some
// order are kept.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum kept_order {
    BY_TOKEN,  // token by token
    BY_SLOT,   // all first choices before all second ones
    FROM_LAST, // the last tokens first
    BY_WEIGHT, // the largest weights of an expert first
    ORDERS
} kept_order;

enum { ORDER, CAPACITY, RENORMALISED }; // the numbers

// The number of slots of the same expert that come before slot q.
static size_t place_of(const int32_t *chosen_nk, size_t pairs, size_t k, const double *share_q,
                       kept_order order, size_t q) {
    size_t before = 0;
    for (size_t o = 0; o < pairs; o++) {
        if (o == q || chosen_nk[o] != chosen_nk[q]) continue;
        bool first = order == BY_TOKEN    ? o < q
                     : order == FROM_LAST ? o > q
                     : order == BY_WEIGHT ? share_q[o] > share_q[q]
                     : o % k != q % k     ? o % k < q % k
                                          : o < q;
        before += first;
    }
    return before;
}

static bool make_dropped(const sinkproof_making *of, double *y, double *width) {
    size_t k = of->config->n_chosen, pairs = of->n * k;
    bool renormalised = of->numbers[RENORMALISED] != 0;
    if (of->chosen_nk == NULL || of->all != pairs) return false;
    for (size_t q = 0; q < pairs; q++) {
        size_t place = place_of(of->chosen_nk, pairs, k, of->x, (kept_order)of->numbers[ORDER], q);
        bool kept = (double)place < of->numbers[CAPACITY];
        y[q] = kept ? of->x[q] : 0;
        width[q] = kept && of->radius != NULL ? of->radius[q] : 0;
    }
    for (size_t i = 0; i < of->n && renormalised; i++) {
        double sum = 0, radius = 0;
        for (size_t q = i * k; q < (i + 1) * k; q++) sum += y[q], radius += width[q];
        for (size_t q = i * k; q < (i + 1) * k && sum > 0; q++) {
            y[q] /= sum;
            width[q] = (width[q] + y[q] * radius) / fmax(sum - radius, sum / 2);
        }
    }
    return true;
}

// The capacity that the zeros of the trace have in an order; 0: none.
static size_t find_capacity(const composing *c, kept_order order) {
    size_t k = c->s->trials.config->n_chosen, pairs = c->n * k, kept = 0, lost = SIZE_MAX;
    for (size_t q = 0; q < pairs; q++) {
        size_t place = place_of(c->chosen_nk, pairs, k, c->mid, order, q);
        if (c->v[q] == 0 && place < lost) lost = place;
        if (c->v[q] != 0 && place + 1 > kept) kept = place + 1;
    }
    return lost != SIZE_MAX && kept <= lost ? lost : 0;
}

// input -1: the point itself, M4.
static bool try_capacity(const operation *o, int input, int order, size_t capacity) {
    static const char *const orders[ORDERS] = {
        [BY_TOKEN] = "its first %zu, token by token",
        [BY_SLOT] = "its first %zu, all first choices before the second ones",
        [FROM_LAST] = "its last %zu",
        [BY_WEIGHT] = "the %zu with the largest weights"};
    made_kind kind = {.make = make_dropped,
                      .numbers = {order % ORDERS, (double)capacity, order / ORDERS}};
    char kept[80];
    if (capacity == 0 || o->c->found != NULL) return true;
    snprintf(kept, sizeof kept, orders[order % ORDERS], capacity);
    snprintf(kind.id, sizeof kind.id, "capacity-%zu-%d", capacity, order);
    snprintf(kind.text, sizeof kind.text,
             "%s zero for the tokens of an expert beyond %s (a capacity of %zu): they are "
             "dropped, and what is left of a token is %srenormalised",
             input < 0 ? "is" : "as", kept, capacity, order < ORDERS ? "not " : "");
    return input < 0 ? composing_try_made(o, &kind)
                     : composing_try_made_input(o, (size_t)input, &kind);
}

// The most slots that one expert is in.
static size_t largest_batch(const composing *c, size_t pairs) {
    size_t most = 0;
    for (size_t e = 0; e < c->s->trials.config->n_experts; e++) {
        size_t count = 0;
        for (size_t q = 0; q < pairs; q++) count += c->chosen_nk[q] == (int32_t)e;
        if (count > most) most = count;
    }
    return most;
}

bool compose_dropped(composing *c) {
    enum { MOST_PAIRS = 1 << 13, MOST_MIXED = 1 << 9 }; // a square of them
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    size_t pairs = c->n * config->n_chosen, zeros = 0;
    bool mixed = c->point == TRACE_M11;
    if ((c->point != TRACE_M4 && !mixed) || c->chosen_nk == NULL || config->dense ||
        pairs > (mixed ? MOST_MIXED : MOST_PAIRS))
        return true;
    for (size_t q = 0; q < pairs; q++)
        if (c->chosen_nk[q] < 0) return true;
    for (size_t q = 0; q < pairs && !mixed; q++) zeros += c->v[q] == 0 && c->marks[q];
    if (zeros == 0 && !mixed) return true;
    bool fine = operation_read(c, &o);
    size_t most = mixed && fine && o.whole ? largest_batch(c, pairs) : 0;
    for (int order = 0; order < 2 * ORDERS && fine && c->found == NULL; order++)
        if (!mixed)
            fine = try_capacity(&o, -1, order, find_capacity(c, (kept_order)(order % ORDERS)));
    for (size_t capacity = most; capacity-- > 1 && fine;)
        for (int order = 0; order < 2 * ORDERS && fine; order++)
            fine = try_capacity(&o, 1, order, capacity);
    operation_free(&o);
    return fine;
}
