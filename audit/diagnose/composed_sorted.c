// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Slots and tokens in the order of their experts: what a sort by experts moved and nothing moved
// back, or moved back by the wrong table. And slots in the order of numbers or of sizes.
#include "audit/diagnose/composed_made.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum sort_key {
    BY_EXPERT,         // of the slot; the slots stand token by token
    BY_EXPERT_OF_SLOT, // the same; all first choices come before all second ones
    BY_FIRST,          // tokens by their first expert
    BY_LAST,
    BY_LOWEST, // by the lowest number of an expert
    SORT_KEYS
} sort_key;

enum { KEY, BACK, MOST_PAIRS = 1 << 16 }; // the numbers

typedef struct sorted_unit {
    int32_t key;
    size_t place;
} sorted_unit;

static int compare_units(const void *a, const void *b) {
    const sorted_unit *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int32_t key_of_token(const int32_t *chosen_k, size_t k, sort_key key) {
    int32_t lowest = chosen_k[0];
    for (size_t s = 1; s < k; s++)
        if (chosen_k[s] < lowest) lowest = chosen_k[s];
    return key == BY_FIRST ? chosen_k[0] : key == BY_LAST ? chosen_k[k - 1] : lowest;
}

// from_u: what stands at each of `units` tokens, or slots of tokens.
static bool order_of(const sinkproof_making *of, size_t units, sort_key key, bool back,
                     size_t *from_u) {
    size_t n = of->n, k = of->config->n_chosen;
    sorted_unit *u = malloc((units + 1) * sizeof *u);
    for (size_t i = 0; u != NULL && i < units; i++) {
        size_t q = key == BY_EXPERT_OF_SLOT ? i % n * k + i / n : i;
        u[i].place = q;
        u[i].key = units == n ? key_of_token(&of->chosen_nk[i * k], k, key) : of->chosen_nk[q];
    }
    if (u == NULL) return false;
    // ties stay in the order of `i`
    for (size_t i = 0; i < units; i++)
        if (key == BY_EXPERT_OF_SLOT) u[i].place = i;
    qsort(u, units, sizeof *u, compare_units);
    for (size_t i = 0; i < units; i++) {
        size_t at = u[i].place, here = i;
        if (key == BY_EXPERT_OF_SLOT) at = at % n * k + at / n, here = i % n * k + i / n;
        *(back ? &from_u[at] : &from_u[here]) = back ? here : at;
    }
    free(u);
    return true;
}

static bool make_sorted(const sinkproof_making *of, double *y, double *width) {
    sort_key key = (sort_key)of->numbers[KEY];
    size_t k = of->config->n_chosen;
    size_t units = key <= BY_EXPERT_OF_SLOT ? of->n * k : of->n, each = of->all / units;
    size_t *from_u = malloc((units + 1) * sizeof *from_u);
    bool fine = from_u != NULL && of->chosen_nk != NULL && units <= MOST_PAIRS &&
                order_of(of, units, key, of->numbers[BACK] != 0, from_u);
    for (size_t at = 0; fine && at < of->all; at++) {
        size_t from = from_u[at / each] * each + at % each;
        y[at] = of->x[from];
        if (of->radius != NULL) width[at] = of->radius[from];
    }
    free(from_u);
    return fine;
}

// ---- the slots of a token

typedef enum slot_order { BY_NUMBER, BY_NUMBER_DOWN, BY_SIZE, BY_SIZE_UP, SLOT_ORDERS } slot_order;

// What decides the order of slots: the experts' numbers, or their shares (their logits are in the
// same order).
static double slot_value(const sinkproof_making *of, const sinkproof_tensor *shares, size_t q,
                         slot_order order) {
    double number = of->chosen_nk[q];
    double size = shares != NULL ? sinkproof_tensor_value(shares, q) : of->x[q];
    return order == BY_NUMBER        ? number
           : order == BY_NUMBER_DOWN ? -number
           : order == BY_SIZE        ? -size
                                     : size;
}

// numbers: the order, and whether a slot's number says where it goes or what comes to it.
static bool make_slots_sorted(const sinkproof_making *of, double *y, double *width) {
    slot_order order = (slot_order)of->numbers[KEY];
    size_t k = of->config->n_chosen, pairs = of->n * k, each = of->all / pairs;
    const sinkproof_tensor *m4 = sinkproof_trace_find(of->trace, TRACE_M4, of->layer);
    if (of->chosen_nk == NULL || (each > 1 && order >= BY_SIZE && m4 == NULL)) return false;
    for (size_t q = 0; q < pairs; q++) {
        double own = slot_value(of, each > 1 ? m4 : NULL, q, order);
        size_t rank = 0;
        for (size_t s = q / k * k; s < q / k * k + k; s++) {
            double other = slot_value(of, each > 1 ? m4 : NULL, s, order);
            rank += other < own || (other == own && s < q);
        }
        size_t there = q / k * k + rank;
        size_t to = of->numbers[BACK] != 0 ? q : there, from = of->numbers[BACK] != 0 ? there : q;
        for (size_t i = 0; i < each; i++) {
            y[to * each + i] = of->x[from * each + i];
            if (of->radius != NULL) width[to * each + i] = of->radius[from * each + i];
        }
    }
    return true;
}

// ---- trials

static bool try_kind(const operation *o, int input, const made_kind *kind) {
    if (o->c->found != NULL) return true;
    return input < 0 ? composing_try_made(o, kind)
                     : composing_try_made_input(o, (size_t)input, kind);
}

static bool try_orders(const operation *o, int input, sinkproof_trace_point point) {
    static const char *const keys[SORT_KEYS] = {
        [BY_EXPERT] = "slots sorted by their experts, token by token",
        [BY_EXPERT_OF_SLOT] = "slots sorted by their experts, all first choices before the second",
        [BY_FIRST] = "tokens sorted by their first expert",
        [BY_LAST] = "tokens sorted by their last expert",
        [BY_LOWEST] = "tokens sorted by the lowest of their experts"};
    static const char *const slots[SLOT_ORDERS] = {
        [BY_NUMBER] = "in the order of their experts' numbers",
        [BY_NUMBER_DOWN] = "in the falling order of their experts' numbers",
        [BY_SIZE] = "in the order of their size, the largest first",
        [BY_SIZE_UP] = "in the order of their size, the smallest first"};
    bool slotted = point >= TRACE_M4 && point <= TRACE_M10, fine = true;
    const char *begins = input < 0 ? "stands" : "with its parts";
    const char *slots_begin = input < 0 ? "has the slots of each token" : "with each token's slots";
    for (int i = 0; i < 2 * SORT_KEYS && fine; i++) {
        made_kind kind = {.make = make_sorted, .numbers = {[KEY] = i / 2, [BACK] = i % 2}};
        if (i / 2 <= BY_EXPERT_OF_SLOT && !slotted) continue;
        snprintf(kind.id, sizeof kind.id, "sorted-%d%s", i / 2, i % 2 ? "-back" : "");
        snprintf(kind.text, sizeof kind.text, "%s in the order of %s%s", begins, keys[i / 2],
                 i % 2 ? ", by the inverse table" : ": it is not put back");
        fine = try_kind(o, input, &kind);
    }
    for (int i = 0; i < 2 * SLOT_ORDERS && fine && slotted; i++) {
        made_kind kind = {.make = make_slots_sorted, .numbers = {[KEY] = i / 2, [BACK] = i % 2}};
        if (point != TRACE_M4 && i / 2 >= BY_SIZE) continue;
        snprintf(kind.id, sizeof kind.id, "slots-sorted-%d%s", i / 2, i % 2 ? "-back" : "");
        snprintf(kind.text, sizeof kind.text, "%s %s%s", slots_begin, slots[i / 2],
                 i % 2 ? ", by the inverse table" : "");
        fine = try_kind(o, input, &kind);
    }
    return fine;
}

bool compose_sorted(composing *c) {
    operation o;
    bool after = c->point >= TRACE_M1 && c->point <= TRACE_M12;
    if (!after || c->chosen_nk == NULL || c->s->trials.config->dense || c->point == TRACE_M3)
        return true;
    for (size_t q = 0; q < c->n * c->s->trials.config->n_chosen; q++)
        if (c->chosen_nk[q] < 0) return true;
    bool fine = operation_read(c, &o) && try_orders(&o, -1, c->point);
    for (size_t i = 0; fine && o.whole && i < o.n_inputs && c->found == NULL; i++)
        if (o.inputs[i].point >= TRACE_M1 && o.inputs[i].point != TRACE_M3)
            fine = try_orders(&o, (int)i, o.inputs[i].point);
    operation_free(&o);
    return fine;
}
