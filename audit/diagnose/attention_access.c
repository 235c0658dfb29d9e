// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rules that are read off the counts of the keys (attention_tables.h), where no family has them:
// documents that are packed in one row, stretches that are seen both ways, sets of keys that are
// not read, or twice.
#include "audit/diagnose/attention_tables.h"

#include <string.h>

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

static const short *counts_of(const key_table *t, size_t r) {
    return t->of_rk + r * (t->n + 1);
}

// The first key that row r sees by definition.
static size_t first_by_definition(const key_table *t, size_t row) {
    size_t window = t->view->layer_window;
    return window > 0 && row + 1 > window ? row + 1 - window : 0;
}

// The positions of rows that fail, in their order: the table has them so.
static size_t failing_row(const key_table *t, size_t r) {
    return t->view->begin + t->rows[r].row;
}

// ---- cuts of the sequence

typedef struct key_range {
    size_t low, high;
} key_range;

// Where the first key that a row reads may be: behind the last that is not read before it.
static bool begin_of_row(const key_table *t, size_t r, key_range *at) {
    const short *count = counts_of(t, r);
    size_t row = failing_row(t, r), first = first_by_definition(t, row), j = first;
    at->low = first;
    for (; j < row && count[j] < 1; j++)
        if (count[j] == 0) at->low = j + 1;
    at->high = j;
    return at->low > first; // it loses some
}

static void add_cut(sinkproof_access *a, size_t cut) {
    if (a->cuts < ACCESS_CUTS) a->at[a->cuts] = cut;
    a->cuts++;
}

// The begin of the documents of the rows that fail: one for all rows whose ranges meet. It is the
// first row of them, where their ranges have it.
static void find_documents(const key_table *t, sinkproof_access *a) {
    key_range all = {1, 0};
    size_t first = 0;
    for (size_t r = 0; r <= t->n_failing; r++) {
        key_range at = {0, 0};
        bool more = r < t->n_failing;
        if (more && !begin_of_row(t, r, &at)) continue;
        bool meets = more && all.low <= all.high && at.low <= all.high && at.high >= all.low;
        if (!meets && all.low <= all.high)
            add_cut(a, first >= all.low && first <= all.high ? first : all.high);
        if (!meets) all = at, first = more ? failing_row(t, r) : 0;
        if (meets && at.low > all.low) all.low = at.low;
        if (meets && at.high < all.high) all.high = at.high;
    }
}

// Documents of one length, and single tokens, are passes: other rules tell these.
static bool is_of_passes(const sinkproof_access *a, size_t n) {
    bool regular = n >= a->at[a->cuts - 1] && n - a->at[a->cuts - 1] <= a->at[0], singles = false;
    for (size_t i = 0; i < a->cuts; i++) {
        regular = regular && a->at[i] == (i + 1) * a->at[0];
        singles = singles || (i > 0 && a->at[i] == a->at[i - 1] + 1);
    }
    return regular || singles;
}

static bool take_documents(const key_table *t, sinkproof_attending *m) {
    *m = defined;
    m->cache.kind = SINKPROOF_CACHE_DOCUMENTS;
    find_documents(t, &m->access);
    // one cut alone is told by another family
    return m->access.cuts > 1 && m->access.cuts <= ACCESS_CUTS && !is_of_passes(&m->access, t->n);
}

// The end of what a row sees behind itself: 0: nothing.
static size_t end_of_row(const key_table *t, size_t r) {
    const short *count = counts_of(t, r);
    size_t end = 0;
    for (size_t j = failing_row(t, r) + 1; j < t->n; j++)
        if (count[j] > 0) end = j + 1;
    return end;
}

// Stretches: from the first row that sees up to an end, to that end.
static bool take_stretches(const key_table *t, bool earlier, sinkproof_attending *m) {
    *m = defined;
    m->cache.kind = SINKPROOF_CACHE_STRETCHES, m->access.earlier = earlier;
    sinkproof_access *a = &m->access;
    for (size_t r = 0; r < t->n_failing; r++) {
        size_t end = end_of_row(t, r);
        if (end == 0 || (a->cuts > 0 && a->cuts <= ACCESS_CUTS && a->at[a->cuts - 1] == end))
            continue;
        add_cut(a, failing_row(t, r)), add_cut(a, end);
    }
    // one that begins at key 0 is a prefix; one that has all keys is no mask
    return a->cuts > 1 && a->cuts <= ACCESS_CUTS && a->at[0] > 0 &&
           !(a->cuts == 2 && a->at[1] == t->n);
}

// ---- sets of keys

// Adds what the counts of a row say of its keys; false: they contradict an earlier row.
static bool add_row(const key_table *t, size_t r, sinkproof_access *a, short *of_k, bool *zeros) {
    const short *count = counts_of(t, r);
    size_t row = failing_row(t, r);
    short lost = 0;
    for (size_t j = first_by_definition(t, row); j <= row; j++) {
        size_t of = a->by_distance ? row - j : j;
        if (count[j] == COUNT_OPEN) continue;
        if (of_k[of] != COUNT_OPEN && of_k[of] != count[j]) return false;
        of_k[of] = count[j];
        lost = (short)(lost + (count[j] == 0));
    }
    // zeros stand for all that are not read, or for none
    if (lost > 0 && count[t->n] == lost) *zeros = true;
    return count[t->n] == COUNT_OPEN || count[t->n] == 0 || count[t->n] == lost;
}

static bool take_set(const key_table *t, bool by_distance, sinkproof_attending *m) {
    short of_k[TABLE_KEYS];
    size_t lost = 0, again = 0, ends = 0, told = 0;
    for (size_t j = 0; j < TABLE_KEYS; j++) of_k[j] = COUNT_OPEN;
    *m = defined;
    m->cache.kind = SINKPROOF_CACHE_LISTED, m->access.by_distance = by_distance;
    for (size_t r = 0; r < t->n_failing; r++)
        if (!add_row(t, r, &m->access, of_k, &m->access.zeros)) return false;
    for (size_t j = 0; j < t->n; j++) {
        if (of_k[j] == 0) sinkproof_key_set_add(&m->access.lost, j), lost++;
        if (of_k[j] == 2) sinkproof_key_set_add(&m->access.again, j), again++;
        if (of_k[j] > 2) return false;
        told += of_k[j] != COUNT_OPEN;
        ends += of_k[j] == 0 && (j == 0 || of_k[j - 1] != 0);
    }
    // most keys twice are the sink counted less often
    if (2 * again > told) return false;
    // one range alone is told by another family
    return lost + again > 0 && (ends > 1 || again > 0) && (t->n_failing > 1 || !by_distance);
}

size_t access_rules(const key_table *t, sinkproof_attending rules[ACCESS_RULES]) {
    size_t n = 0;
    if (t->of_tokens || t->n_failing == 0) return 0;
    n += take_documents(t, &rules[n]);
    n += take_stretches(t, false, &rules[n]);
    if (t->view->layer_window > 0) n += take_stretches(t, true, &rules[n]);
    return n;
}

size_t access_sets(const key_table *t, sinkproof_attending rules[ACCESS_RULES]) {
    size_t n = 0;
    if (t->of_tokens || t->n_failing == 0) return 0;
    n += take_set(t, false, &rules[n]);
    n += take_set(t, true, &rules[n]);
    return n;
}
