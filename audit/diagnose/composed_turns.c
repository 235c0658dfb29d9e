// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation of some pairs of coordinates alone, by the frequencies of other pairs, twice, with
// cosine and sine exchanged.
#include "audit/diagnose/composed_changes.h"
#include "audit/diagnose/composed_fit.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>

static composed_mistake *turn_new(composing *c, mistake_suppose *operate,
                                  const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = operate, m->region = *region;
    m->mistake.points = composing_rotated_points(c);
    return m;
}

static const char *whose_rotation(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? "queries and keys"
           : c->point == TRACE_A4_Q                           ? "queries"
                                                              : "keys";
}

static const char *suffix(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? ""
           : c->point == TRACE_A4_Q                           ? "-q"
                                                              : "-k";
}

// ---- the first pairs

static bool turn_some_pairs(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.query.pairs = s->meaning.key.pairs = (size_t)m->numbers[0];
    return true;
}

static bool try_pairs(composing *c, size_t pairs, size_t half) {
    composed_mistake *m = turn_new(c, turn_some_pairs, &c->regions[0]);
    if (m == NULL) return false;
    m->numbers[0] = (double)pairs;
    composed_name(m, "rope-pairs%s-%zu", suffix(c), pairs);
    composed_say(m, "of %s of coordinates only the first %zu %s rotated, in %s",
                 sinkproof_counted(half, "pair").text, pairs, sinkproof_is_or_are(pairs),
                 whose_rotation(c));
    return composing_try(c, m);
}

// ---- some pairs, by positions of their own

// numbers: the first pair, the end, what multiplies the position, what is added.
static bool turn_pairs_elsewhere(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_turning *of[2] = {&s->meaning.query, &s->meaning.key};
    for (int i = 0; i < 2; i++) {
        of[i]->some_pairs =
            (sinkproof_indices){.first = (size_t)m->numbers[0], .end = (size_t)m->numbers[1]};
        of[i]->some_times = m->numbers[2], of[i]->some_by = m->numbers[3];
    }
    return true;
}

static bool try_elsewhere(composing *c, size_t first, size_t end, double times, double by,
                          const char *id, const char *text) {
    composed_mistake *m = turn_new(c, turn_pairs_elsewhere, &c->regions[0]);
    if (m == NULL) return false;
    m->numbers[0] = (double)first, m->numbers[1] = (double)end;
    m->numbers[2] = times, m->numbers[3] = by;
    composed_name(m, "rope-pairs%s-%zu-%zu-%s", suffix(c), first, end - 1, id);
    composed_say(m, "pairs %zu-%zu of coordinates are rotated by %s, in %s", first, end - 1, text,
                 whose_rotation(c));
    return composing_try(c, m);
}

// The pairs with an element outside: from the first to the last.
static bool try_pairs_elsewhere(composing *c) {
    static const struct {
        double times, by;
        const char *id, *text;
    } kinds[] = {{0, 0, "at-0", "position 0"},
                 {0.5, 0, "half", "half of their position"},
                 {2, 0, "double", "twice their position"},
                 {-1, 0, "backwards", "the negative position: the angle has the other sign"},
                 {1, 1, "late", "positions that are one too large"},
                 {1, -1, "early", "positions that are one too small"}};
    size_t d = c->s->trials.config->head_dim, half = d / 2, first = half, end = 0;
    bool fine = true;
    for (size_t at = 0; at < c->elements; at++) {
        size_t p = at % d % half;
        if (!c->marks[at]) continue;
        if (p < first) first = p;
        if (p >= end) end = p + 1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && fine && c->found == NULL; i++)
        if (first < end && (first > 0 || end < half))
            fine = try_elsewhere(c, first, end, kinds[i].times, kinds[i].by, kinds[i].id,
                                 kinds[i].text);
    return fine;
}

// ---- all pairs

enum { TWICE, EXCHANGED };

static bool turn_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_turning *of[2] = {&s->meaning.query, &s->meaning.key};
    for (int i = 0; i < 2; i++) {
        of[i]->twice = m->numbers[0] == TWICE;
        of[i]->exchanged = m->numbers[0] == EXCHANGED;
    }
    return true;
}

static bool turn_by_other_pairs(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.query.pair_from = s->meaning.key.pair_from = m->from;
    return true;
}

static bool try_kinds(composing *c, const sinkproof_region *region) {
    static const char *const ids[] = {[TWICE] = "rope-twice", [EXCHANGED] = "rope-cos-sin"};
    bool fine = true;
    for (int kind = TWICE; kind <= EXCHANGED && fine && c->found == NULL; kind++) {
        composed_mistake *m = turn_new(c, turn_otherwise, region);
        if (m == NULL) return false;
        m->numbers[0] = kind;
        composed_name(m, "%s%s", ids[kind], suffix(c));
        if (kind == TWICE)
            composed_say(m, "%s are rotated twice", whose_rotation(c));
        else
            composed_say(m, "cosine and sine are exchanged in the rotation of %s",
                         whose_rotation(c));
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_other_pairs(composing *c, const sinkproof_region *region) {
    rule_list *list = malloc(sizeof *list);
    if (list == NULL) return fail_for_memory(c->s);
    list_rules(list, c->s->trials.config->head_dim / 2, 1, "pair", "");
    bool fine = true;
    for (size_t i = 0; i < list->n && fine && c->found == NULL; i++) {
        composed_mistake *m = turn_new(c, turn_by_other_pairs, region);
        fine = m != NULL;
        if (!fine) break;
        m->from = list->of[i].from;
        composed_name(m, "frequencies%s-%s", suffix(c), list->of[i].id);
        composed_say(m, "the frequencies of the pairs stand %s, in %s", list->of[i].text,
                     whose_rotation(c));
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    free(list);
    return fine;
}

bool compose_turns(composing *c) {
    size_t d = c->s->trials.config->head_dim, first = d;
    bool fine = true;
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    for (size_t at = 0; at < c->elements; at++)
        if (c->marks[at] && at % d < first) first = at % d;
    if (first > 0 && first < d / 2) fine = try_pairs(c, first, d / 2);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fine = try_kinds(c, &c->regions[r]);
        if (fine && c->found == NULL) fine = try_other_pairs(c, &c->regions[r]);
    }
    return fine && (c->found != NULL || try_pairs_elsewhere(c));
}
