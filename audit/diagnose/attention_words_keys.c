// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for keys and values that are read otherwise, and for heads.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

#include <string.h>

// "key 3", "keys 3 to 7", of a range that begins at `first`.
static void say_keys(cause_words *w, size_t first, size_t count) {
    if (count == 1)
        say_cause(w, "key %zu", first);
    else
        say_cause(w, "keys %zu to %zu", first, first + count - 1);
}

static void say_cached(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind == SINKPROOF_CACHE_FIXED && c->first == 0 && c->count >= w->n)
        say_cause(w, "every key");
    else if (c->kind == SINKPROOF_CACHE_FIXED)
        say_keys(w, c->first, c->count);
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0 && c->count == 1)
        say_cause(w, "the last key, the query's own,");
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0)
        say_cause(w, "the last %s", sinkproof_counted(c->count, "key").text);
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->count == 1)
        say_cause(w, "the key %zu before the query", c->first);
    else if (c->kind == SINKPROOF_CACHE_BEFORE)
        say_cause(w, "the keys %zu to %zu before the query", c->first, c->first + c->count - 1);
    else if (c->first == 0 && c->count == 1)
        say_cause(w, "the first key that a query sees");
    else if (c->first == 0)
        say_cause(w, "the first %s that a query sees", sinkproof_counted(c->count, "key").text);
    else
        say_cause(w, "of the keys that a query sees, counted from 0, %zu to %zu", c->first,
                  c->first + c->count - 1);
}

static void name_cached(cause_words *w, const char *what) {
    const sinkproof_cache_read *c = &w->how->cache;
    static const char *const of[] = {[SINKPROOF_CACHE_NONE] = "key",
                                     [SINKPROOF_CACHE_FIXED] = "key",
                                     [SINKPROOF_CACHE_BEFORE] = "last-key",
                                     [SINKPROOF_CACHE_SEEN] = "first-key",
                                     [SINKPROOF_CACHE_BEHIND] = "key"};
    name_cause(w, "%s-%s=%zu", of[c->kind], what, c->first);
    if (c->count > 1) name_cause(w, "-%zu", c->first + c->count - 1);
}

// One key of every few.
static void say_stripe(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    name_cause(w, "/%zu", c->step);
    if (c->step == 2)
        say_cause(w, "every key at an %s position", c->first % 2 == 0 ? "even" : "odd");
    else
        say_cause(w, "one key of every %zu, from key %zu on,", c->step, c->first);
}

bool say_cache(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind == SINKPROOF_CACHE_NONE) return false;
    bool keys = (c->moved & SINKPROOF_CACHE_KEYS) != 0, all = c->count >= w->n;
    bool values = (c->moved & SINKPROOF_CACHE_VALUES) != 0;
    const char *of = !values ? "the keys" : keys ? "the keys and values" : "the values";
    bool several = c->count > 1 && !all;
    if (c->kind == SINKPROOF_CACHE_BEHIND) {
        name_cause(w, "first-keys-kept=%zu", c->first);
        say_cause(w, "queries see the window of %s and also see the first key%s",
                  sinkproof_counted(c->count, "key").text, c->first == 1 ? "" : "s");
        if (c->first > 1) say_cause(w, ", %zu of them", c->first);
    } else if (c->times == 0) {
        name_cached(w, "left-out");
        if (c->step > 1)
            say_stripe(w);
        else
            say_cached(w);
        say_cause(w, several && c->step < 2 ? " are not seen" : " is not seen");
        if (c->spared)
            say_cause(w, " but by %s own quer%s", several && c->step < 2 ? "their" : "its",
                      several && c->step < 2 ? "ies" : "y");
        if (c->spared && c->step > 1) name_cause(w, "-but-own");
    } else if (c->times != 1) {
        name_cached(w, "twice");
        say_cached(w);
        say_cause(w, "%s counted twice", several ? " are" : " is");
    } else if (c->zeros) {
        name_cached(w, keys ? "zero" : "value-zero");
        if (!keys) say_cause(w, "the value%s of ", several ? "s" : "");
        say_cached(w);
        say_cause(w, "%s read as zeros%s", several ? " are" : " is",
                  keys ? ", key and value" : ": the weight has no effect");
    } else if (c->exchanged) {
        name_cause(w, "%s-exchanged=%zu-%zu",
                   !values ? "keys"
                   : keys  ? "kv"
                           : "values",
                   c->first, c->first + 2 * c->count - 1);
        say_cause(w, "%s %zu to %zu and %zu to %zu are exchanged", of, c->first,
                  c->first + c->count - 1, c->first + c->count, c->first + 2 * c->count - 1);
    } else {
        size_t by = (size_t)(c->by < 0 ? -c->by : c->by);
        name_cause(w, "%s%s-from=%zu", c->kind == SINKPROOF_CACHE_BEFORE ? "last-" : "",
                   !values ? "key"
                   : keys  ? "kv"
                           : "value",
                   c->first);
        if (c->count > 1) name_cause(w, "-%zu", c->first + c->count - 1);
        name_cause(w, "%+td%s", c->by, c->circle ? "-circle" : "");
        say_cause(w, "%s of ", of);
        if (c->kind != SINKPROOF_CACHE_FIXED || all)
            say_cause(w, "the key %zu %s it%s", by, c->by < 0 ? "before" : "after",
                      c->circle ? ", in a circle," : "");
        else if (c->by < 0 && by > c->first)
            say_cause(w, "%s before, and zeros before key 0,", sinkproof_counted(by, "key").text);
        else
            say_keys(w, (size_t)((ptrdiff_t)c->first + c->by), c->count);
        say_cause(w, " are read in the place of ");
        say_cached(w);
        if (c->spared) name_cause(w, "-but-own");
        if (c->spared) say_cause(w, " but the query's own");
    }
    return true;
}

// ---- numbers

static const char *what_is_read(unsigned of) {
    static const char *const words[] = {"",
                                        "keys",
                                        "values",
                                        "keys and values",
                                        "queries",
                                        "queries and keys",
                                        "queries and values",
                                        "queries, keys and values",
                                        "weights"};
    return words[of < sizeof words / sizeof words[0] ? of : 0];
}

bool say_reads(cause_words *w) {
    static const char *const ids[] = {"", "k", "v", "kv", "q", "qk", "qv", "qkv", "a"};
    static const char *const scales[] = {[SINKPROOF_SCALE_NONE] = "",
                                         [SINKPROOF_SCALE_STATED] = "",
                                         [SINKPROOF_SCALE_OF_TENSOR] = ", all by one scale",
                                         [SINKPROOF_SCALE_OF_HEAD] = ", by a scale of each head",
                                         [SINKPROOF_SCALE_OF_TOKEN] = ", by a scale of each token",
                                         [SINKPROOF_SCALE_OF_TOKEN_HEAD] =
                                             ", by a scale of each token and head"};
    static const char *const scale_ids[] = {"", "", "-tensor", "-head", "-token", "-token-head"};
    const sinkproof_read_as *r = &w->how->read;
    if (r->of == 0) return false;
    const char *of = what_is_read(r->of);
    const char *cached = r->spared ? "cached " : "";
    name_cause(w, "%s%s", r->spared ? "cached-" : "", ids[r->of < 9 ? r->of : 0]);
    if (r->layer_by != 0) {
        int by = r->layer_by < 0 ? -r->layer_by : r->layer_by;
        name_cause(w, "-of-layer%+d", r->layer_by);
        say_cause(w, "%s%s are those of the layer ", cached, of);
        if (by > 1) say_cause(w, "%d ", by);
        say_cause(w, r->layer_by < 0 ? "before" : "after");
    } else if (r->not_turned) {
        name_cause(w, "-not-rotated");
        say_cause(w, "%s%s are read as they were before the rotation", cached, of);
    } else if (r->format != SINKPROOF_REAL) {
        name_cause(w, "-%s%s", sinkproof_format_name(r->format), scale_ids[r->scale]);
        say_cause(w, "%s%s are rounded to %s%s", cached, of, sinkproof_format_name(r->format),
                  r->of == SINKPROOF_READ_WEIGHTS && r->scale != SINKPROOF_SCALE_NONE
                      ? ", by a scale of each query"
                      : scales[r->scale]);
    } else {
        name_cause(w, "-times=%.7g", r->times);
        say_cause(w, "%s%s are multiplied by %s", cached, of, number_words(w, r->times).text);
    }
    if (r->spared) say_cause(w, ": those of the keys before the query's own");
    return true;
}

void say_head_from(cause_words *w, sinkproof_head_from from, const char *id, const char *of) {
    switch (from.choice) {
    case SINKPROOF_HEAD_SHIFTED:
        name_cause(w, "%s-shifted=%zu", id, from.by);
        say_cause(w, "each head has %s of the head %zu after it, in a circle", of, from.by);
        break;
    case SINKPROOF_HEAD_REVERSED:
        name_cause(w, "%s-reversed", id);
        say_cause(w, "the heads have %s in reverse order", of);
        break;
    case SINKPROOF_HEAD_GROUP:
        name_cause(w, "%s-by-group", id);
        say_cause(w, "each head has %s whose number is that of its key/value head", of);
        break;
    case SINKPROOF_HEAD_FIRST:
        name_cause(w, "%s-of-first-in-group", id);
        say_cause(w, "each head has %s of the first head of its group", of);
        break;
    case SINKPROOF_HEAD_EXCHANGED:
        name_cause(w, "%s-transposed", id);
        say_cause(w, "each head has %s with groups and heads exchanged", of);
        break;
    case SINKPROOF_HEAD_PAIRS:
        name_cause(w, "%s-in-pairs", id);
        say_cause(w, "the heads 2 i and 2 i + 1 have each other's %s", of + strlen("the "));
        break;
    case SINKPROOF_HEAD_ONE:
        name_cause(w, "%s-of-head=%zu", id, from.by);
        say_cause(w, "each head has %s of head %zu", of, from.by);
        break;
    case SINKPROOF_HEAD_ROW:
        name_cause(w, "%s-by-row=%zu", id, from.by);
        say_cause(w,
                  "%s is taken by the query's position%s, modulo the number of heads, not by head",
                  of, from.by == 0 ? "" : sinkproof_counted(from.by, "place").text);
        break;
    case SINKPROOF_HEAD_OWN:
        break;
    }
}

static void say_group(cause_words *w) {
    const sinkproof_attending *m = w->how;
    const char *of = m->group_of == SINKPROOF_CACHE_KEYS     ? "keys"
                     : m->group_of == SINKPROOF_CACHE_VALUES ? "values"
                                                             : "keys and values";
    const char *id = m->group_of == SINKPROOF_CACHE_KEYS     ? "k-"
                     : m->group_of == SINKPROOF_CACHE_VALUES ? "v-"
                     : m->group_spared                       ? "kv-"
                                                             : "";
    const char *but = m->group_spared ? ", but for the query's own key" : "";
    const char *cached = m->group_spared ? "cached-" : "";
    if (m->group == SINKPROOF_GROUP_MODULUS) {
        name_cause(w, "%s%sheads-by-modulus", cached, id);
        say_cause(w, "query head h has the %s of head h mod groups%s", of, but);
    } else if (m->group == SINKPROOF_GROUP_ONE) {
        name_cause(w, "%s%skv-head=%zu", cached, id, m->group_by);
        say_cause(w, "query heads read the %s of key/value head %zu%s", of, m->group_by, but);
    } else if (m->group == SINKPROOF_GROUP_UNEVEN) {
        name_cause(w, "%s%sgroup-of-head+%zu", cached, id, m->group_by);
        say_cause(w,
                  "query head h reads the %s of the group of head h + %zu%s: the boundaries of the "
                  "groups are %s off",
                  of, m->group_by, but, sinkproof_counted(m->group_by, "head").text);
    } else if (w->config->n_kv_heads == 2) {
        name_cause(w, "%s%skv-head-shifted=1", cached, id);
        say_cause(w, "the %s of the two key/value heads are exchanged%s", of, but);
    } else {
        name_cause(w, "%s%skv-head-shifted=%zu", cached, id, m->group_by);
        say_cause(
            w, "query heads read the %s of the key/value head %zu after their own, in a circle%s",
            of, m->group_by, but);
    }
}

bool say_heads(cause_words *w) {
    if (w->how->head.choice != SINKPROOF_HEAD_OWN)
        say_head_from(w, w->how->head, "heads", "the output");
    else if (w->how->group != SINKPROOF_GROUP_OWN)
        say_group(w);
    else
        return false;
    return true;
}
