// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for sets of keys, for documents, and for stretches that are seen both ways.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

enum { RUNS_SAID = 6 };

// A set as runs of keys, or as one key of every few.
typedef struct set_runs {
    size_t n, keys, first, last, step; // step: 0: the keys are no such row
    size_t begin[RUNS_SAID], end[RUNS_SAID];
} set_runs;

static set_runs runs_of(const sinkproof_key_set *set) {
    set_runs r = {.n = 0};
    bool even = true;
    for (size_t j = 0; j < ACCESS_KEYS; j++) {
        if (!sinkproof_key_set_has(set, j)) continue;
        bool again = r.keys > 0 && r.last + 1 == j;
        if (r.keys == 1) r.step = j - r.last;
        even = even && (r.keys < 2 || j - r.last == r.step);
        if (!again && r.n < RUNS_SAID) r.begin[r.n] = j;
        if (!again) r.n++;
        if (r.n <= RUNS_SAID) r.end[r.n - 1] = j;
        if (r.keys++ == 0) r.first = j;
        r.last = j;
    }
    if (!even || r.step < 2 || r.keys < 3) r.step = 0;
    return r;
}

static void name_set(cause_words *w, const set_runs *r) {
    if (r->step > 0) {
        name_cause(w, "%zu-%zu/%zu", r->first, r->last, r->step);
        return;
    }
    for (size_t i = 0; i < r->n && i < RUNS_SAID; i++) {
        name_cause(w, "%s%zu", i > 0 ? "+" : "", r->begin[i]);
        if (r->end[i] > r->begin[i]) name_cause(w, "-%zu", r->end[i]);
    }
    if (r->n > RUNS_SAID) name_cause(w, "+more-of-%zu", r->keys);
}

// "keys 0 to 3, 8 and 12": of a set of distances they stand before "before the query".
static void say_set(cause_words *w, const set_runs *r) {
    if (r->step > 0) {
        say_cause(w, "one key of every %zu from key %zu to key %zu", r->step, r->first, r->last);
        return;
    }
    say_cause(w, r->keys == 1 ? "key " : "keys ");
    bool more = r->n > RUNS_SAID;
    for (size_t i = 0; i < r->n && i < RUNS_SAID; i++) {
        say_cause(w, "%s%zu", i == 0 ? "" : i + 1 == r->n ? " and " : ", ", r->begin[i]);
        if (r->end[i] > r->begin[i]) say_cause(w, " to %zu", r->end[i]);
    }
    if (more) say_cause(w, " and others up to key %zu, %zu in all,", r->last, r->keys);
}

static void say_listed(cause_words *w) {
    const sinkproof_access *a = &w->how->access;
    set_runs lost = runs_of(&a->lost), again = runs_of(&a->again);
    const char *of = a->by_distance ? " before the query" : "";
    const char *what = a->zeros ? "zero" : "left-out";
    name_cause(w, "%s", a->by_distance ? "last-keys" : "keys");
    if (lost.keys > 0) {
        bool one = lost.keys == 1 || lost.step > 0;
        name_cause(w, "-%s=", what);
        name_set(w, &lost), say_set(w, &lost);
        say_cause(w, "%s %s %s", of, one ? "is" : "are",
                  a->zeros ? "read as zeros, key and value" : "not seen");
    }
    if (again.keys == 0) return;
    bool one = again.keys == 1 || again.step > 0;
    name_cause(w, "%stwice=", lost.keys > 0 ? "+" : "-");
    if (lost.keys > 0) say_cause(w, ", and ");
    name_set(w, &again), say_set(w, &again);
    say_cause(w, "%s %s read twice", of, one ? "is" : "are");
    if (lost.keys == again.keys && !a->zeros) say_cause(w, ", in their place");
}

static void say_cuts(cause_words *w, size_t step) {
    const sinkproof_access *a = &w->how->access;
    for (size_t i = 0; i < a->cuts; i += step) {
        bool last = i + step >= a->cuts;
        name_cause(w, "%s%zu", i == 0 ? "=" : "+", a->at[i]);
        say_cause(w, "%s%zu", i == 0 ? " " : last ? " and " : ", ", a->at[i]);
        if (step == 2) name_cause(w, "-%zu", a->at[i + 1] - 1);
        if (step == 2) say_cause(w, " to %zu", a->at[i + 1] - 1);
    }
}

bool say_access(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->cache.kind == SINKPROOF_CACHE_LISTED) {
        say_listed(w);
    } else if (m->cache.kind == SINKPROOF_CACHE_DOCUMENTS) {
        name_cause(w, "documents-from");
        say_cause(w, "the sequence is cut into documents, which begin at key 0 and at %s",
                  m->access.cuts == 1 ? "key" : "keys");
        say_cuts(w, 1);
        say_cause(w, ": queries see no key of an earlier document");
    } else if (m->cache.kind == SINKPROOF_CACHE_STRETCHES) {
        name_cause(w, "two-way%s", m->access.earlier ? "-no-window" : "");
        say_cause(w, "tokens");
        say_cuts(w, 2);
        say_cause(w, " see each other both ways, later ones too: nothing that comes later is "
                     "masked among them");
        if (m->access.earlier) say_cause(w, ", and no window is applied there");
    } else
        return false;
    return true;
}
