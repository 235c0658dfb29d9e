// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of a point that hold every element outside.
#include "audit/diagnose/composed_fit.h"

#include <stdlib.h>
#include <string.h>

static size_t common_divisor(size_t a, size_t b) {
    while (b != 0) {
        size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

// Which indices of a dimension have elements, and which have an element outside.
typedef struct index_marks {
    size_t size;
    uint8_t *is, *has;
} index_marks;

// The range of the indices with an element outside: from the first to the last, in the largest step
// that they have in common. Returns whether an index is outside the range.
static bool find_range(const index_marks *m, sinkproof_indices *in) {
    size_t count = 0, others = 0, last = 0, step = 0;
    *in = (sinkproof_indices){.first = m->size};
    for (size_t i = 0; i < m->size; i++) {
        others += m->is[i] && !m->has[i];
        if (!m->has[i]) continue;
        if (count++ == 0)
            in->first = i;
        else
            step = common_divisor(i - last, step);
        last = i;
    }
    in->end = last + 1, in->step = count > 2 && step > 1 ? step : 0;
    in->some_i = NULL;
    if (in->step == 0)
        for (size_t i = in->first; i < in->end; i++) others -= m->is[i] && !m->has[i];
    return count > 0 && others > 0;
}

static bool mark_indices(const composing *c, sinkproof_dimension along, index_marks *m) {
    const sinkproof_config *config = c->s->trials.config;
    m->size = sinkproof_region_size(config, c->point, c->n, along);
    m->is = calloc(2 * m->size + 1, 1);
    m->has = m->is + m->size;
    for (size_t at = 0; m->is != NULL && m->size > 0 && at < c->elements; at++) {
        size_t i = sinkproof_place_of(config, c->point, c->n, c->chosen_nk, at).along[along];
        if (i >= m->size) continue;
        m->is[i] = 1;
        m->has[i] |= c->marks[at];
    }
    return m->is != NULL;
}

static void add_region(composing *c, const sinkproof_region *region) {
    if (c->n_regions < sizeof c->regions / sizeof c->regions[0])
        c->regions[c->n_regions++] = *region;
}

const uint8_t *composing_keep_marks(composing *c, size_t n, const uint8_t *marks) {
    sinkproof_diagnosis *d = c->s->out;
    composed_marks *kept = calloc(1, sizeof *kept + n);
    if (kept == NULL) return NULL;
    kept->next = d->marks, d->marks = kept;
    memcpy(kept->of, marks, n);
    return kept->of;
}

// The indices with an element outside, if they are fewer than those of their range.
static bool find_some(composing *c, const index_marks *m, const sinkproof_indices *range,
                      sinkproof_indices *some) {
    size_t count = 0, first = m->size, last = 0, within = 0;
    for (size_t i = 0; i < m->size; i++) {
        if (!m->has[i]) continue;
        if (count++ == 0) first = i;
        last = i;
    }
    const sinkproof_indices all = {
        .first = first, .end = last + 1, .step = range->end > 0 ? range->step : 0};
    for (size_t i = first; i <= last && i < m->size; i++)
        within += m->is[i] && sinkproof_indices_hold(&all, i);
    if (count == 0 || within == count) return true;
    *some = (sinkproof_indices){
        .first = first, .end = last + 1, .some_i = composing_keep_marks(c, m->size, m->has)};
    return some->some_i != NULL;
}

// The whole point; the parts along one dimension, or along all, that hold every element outside: a
// range, and the very indices. An expert is in any row and slot.
bool composing_find_regions(composing *c) {
    static const sinkproof_dimension order[] = {ALONG_EXPERTS, ALONG_GROUPS,      ALONG_HEADS,
                                                ALONG_ROWS,    ALONG_COORDINATES, ALONG_SLOTS};
    enum { ORDERED = sizeof order / sizeof order[0] };
    sinkproof_region all = {0}, very = {0};
    size_t parts = 0, n_very = 0, n_some = 0;
    sinkproof_region some[ORDERED];
    bool expert = false;
    sinkproof_region of_expert = {0};
    size_t in_expert = 0;
    add_region(c, &all);
    for (size_t i = 0; i < ORDERED; i++) {
        sinkproof_region one = {0}, other = {0};
        index_marks m;
        bool same = order[i] == ALONG_GROUPS &&
                    c->s->trials.config->n_kv_heads == c->s->trials.config->n_heads;
        if (!mark_indices(c, order[i], &m)) return fail_for_memory(c->s);
        bool part = !same && m.size > 1 && find_range(&m, &one.along[order[i]]);
        if (!part) one = (sinkproof_region){0};
        bool kept =
            same || m.size < 2 || find_some(c, &m, &one.along[order[i]], &other.along[order[i]]);
        free(m.is);
        if (!kept) return fail_for_memory(c->s);
        bool fewer = other.along[order[i]].end != 0;
        if (fewer) some[n_some++] = other;
        if (part) add_region(c, &one);
        expert = expert || (part && order[i] == ALONG_EXPERTS);
        if (expert && (order[i] == ALONG_ROWS || order[i] == ALONG_SLOTS)) {
            if (part) of_expert.along[order[i]] = one.along[order[i]], in_expert++;
            continue;
        }
        if (part) all.along[order[i]] = one.along[order[i]], parts++;
        very.along[order[i]] = fewer ? other.along[order[i]] : one.along[order[i]];
        n_very += fewer;
    }
    if (all.along[ALONG_HEADS].end != 0) all.along[ALONG_GROUPS].end = 0;
    if (very.along[ALONG_HEADS].end != 0) very.along[ALONG_GROUPS].end = 0;
    if (parts > 1) add_region(c, &all);
    for (int d = 0; d < SINKPROOF_DIMENSIONS; d++)
        if (of_expert.along[d].end == 0) of_expert.along[d] = all.along[d];
    if (in_expert > 0) add_region(c, &of_expert); // of an expert, in some rows or slots
    c->n_ranges = c->n_regions;
    for (size_t i = 0; i < n_some; i++) add_region(c, &some[i]);
    if (n_very > 0 && parts + n_some > 1) add_region(c, &very);
    return true;
}
