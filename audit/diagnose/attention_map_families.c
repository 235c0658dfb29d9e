// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at what is made of queries, keys and values when they are read: they
// stand elsewhere, are rotated, less a mean, or changed.
#include "audit/diagnose/attention_hunt.h"
#include "audit/diagnose/composed_changes.h"

#include <math.h>
#include <stdlib.h>

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

static sinkproof_attending read_new(const family_arguments *of) {
    sinkproof_attending m = defined;
    m.read.of = of->moved, m.read.spared = of->spared;
    return m;
}

void guess_orders(hunt *h, const family_arguments *of) {
    rule_list *list = malloc(sizeof *list);
    sinkproof_attending m = read_new(of);
    if (list == NULL) return;
    list_rules(list, h->view->dim, 1, "coordinate", "");
    m.read.map = SINKPROOF_MAP_ORDER;
    for (size_t i = 0; i < list->n; i++) m.read.order = list->of[i].from, hunt_offer_cached(h, &m);
    free(list);
}

// The buffer of all rows, or each whole page of some.
void guess_layouts(hunt *h, const family_arguments *of) {
    sinkproof_attending m = read_new(of);
    if (!h->view->plain || h->view->from > 0) return;
    m.read.map = SINKPROOF_MAP_LAYOUT;
    for (m.read.unit = of->spared ? 2 : 0; m.read.unit < h->view->keys;
         m.read.unit = m.read.unit == 0 ? 2 : 2 * m.read.unit)
        for (m.read.layout = 0; m.read.layout < SINKPROOF_LAYOUTS; m.read.layout++)
            hunt_offer_cached(h, &m);
}

// Rotated by a number of positions more; or once more, or back, by their own position.
void guess_turns(hunt *h, const family_arguments *of) {
    sinkproof_attending m = read_new(of);
    bool values = of->moved == SINKPROOF_CACHE_VALUES;
    if (!h->view->plain || h->view->config->rotation.kind == SINKPROOF_NO_ROTATION) return;
    m.read.map = SINKPROOF_MAP_TURNED;
    for (int by = -32; by <= 32 && !values; by++)
        if (m.read.turn_by = by, by != 0) hunt_offer_cached(h, &m);
    m.read.turn_by = 0;
    for (int scaled = 0; scaled < 2; scaled++)
        for (int times = -1; times <= 1; times += 2) {
            m.read.turn_scaled = scaled != 0, m.read.turn_times = times;
            hunt_offer_cached(h, &m);
        }
}

static double largest_read(const attention_view *v, unsigned of) {
    return of & SINKPROOF_READ_QUERIES ? v->largest_q
           : of & SINKPROOF_CACHE_KEYS ? v->largest_k
                                       : v->largest_v;
}

// Less the mean of all rows, the mean of the heads, clamped, normalised, without a sign.
void guess_changes(hunt *h, const family_arguments *of) {
    change_list *list = malloc(sizeof *list);
    sinkproof_attending m = read_new(of);
    if (list == NULL) return;
    m.read.map = SINKPROOF_MAP_CENTRED, hunt_offer(h, &m);
    m.read.map = SINKPROOF_MAP_HEADS;
    if (h->view->groups > 1) hunt_offer(h, &m);
    m.read.map = SINKPROOF_MAP_NONE;
    list->n = 0;
    list_clamps(list, largest_read(h->view, of->moved));
    list_functions(list, false, 0);
    list_roundings(list, false);
    if ((of->moved & SINKPROOF_READ_QUERIES) == 0) list_codes(list);
    for (size_t i = 0; i < list->n; i++)
        m.read.change = list->of[i].change, hunt_offer_cached(h, &m);
    free(list);
}
