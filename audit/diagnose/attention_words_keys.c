// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for keys and values that are read otherwise, and for heads.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

#include <math.h>
#include <string.h>

// "key 3", "keys 3 to 7", of a range that begins at `first`.
static void say_keys(cause_words *w, size_t first, size_t count) {
    if (count == 1)
        say_cause(w, "key %zu", first);
    else
        say_cause(w, "keys %zu to %zu", first, first + count - 1);
}

// Of tiles of keys.
static void say_key_tile(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind == SINKPROOF_CACHE_TILE)
        say_cause(w, "the keys of the last tile of %zu that a query reads%s", c->count,
                  c->first > 0 ? ", but of a first one," : "");
    else if (c->kind == SINKPROOF_CACHE_REMAINDER)
        say_cause(w, "the keys behind the last whole tile of %zu, the remainder,", c->count);
    else
        say_cause(w, "the keys of the tile of %zu in which the window begins", c->count);
    if (c->seen) say_cause(w, " (tiles are counted from the first key of the window)");
}

static void name_key_tile(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    name_cause(w, "%s-tile=%zu%s%s",
               c->kind == SINKPROOF_CACHE_TILE        ? "last"
               : c->kind == SINKPROOF_CACHE_REMAINDER ? "remainder"
                                                      : "window",
               c->count, c->first > 0 ? "-not-first" : "", c->seen ? "-of-window" : "");
}

static void say_cached(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind >= SINKPROOF_CACHE_TILE)
        say_key_tile(w);
    else if (c->kind == SINKPROOF_CACHE_FIXED && c->first == 0 && c->count >= w->n)
        say_cause(w, "every key");
    else if (c->kind == SINKPROOF_CACHE_FIXED)
        say_keys(w, c->first, c->count);
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0 && c->count == 1)
        say_cause(w, "the last key, the query's own");
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
    static const char *const of[] = {
        [SINKPROOF_CACHE_NONE] = "key",        [SINKPROOF_CACHE_FIXED] = "key",
        [SINKPROOF_CACHE_BEFORE] = "last-key", [SINKPROOF_CACHE_SEEN] = "first-key",
        [SINKPROOF_CACHE_BEHIND] = "key",      [SINKPROOF_CACHE_RING] = "key",
        [SINKPROOF_CACHE_TREE] = "key"};
    if (c->kind >= SINKPROOF_CACHE_TILE) {
        name_cause(w, "%s-", what);
        name_key_tile(w);
        return;
    }
    name_cause(w, "%s-%s=%zu", of[c->kind], what, c->first);
    if (c->count > 1) name_cause(w, "-%zu", c->first + c->count - 1);
}

static bool is_own(const sinkproof_cache_read *c) {
    return c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0 && c->count == 1;
}

// Whether all keys but the last are left out, and of those as many are there as the window has.
static bool is_last_window(const cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    return c->first == 0 && !c->spared && c->count + w->config->window == w->n;
}

// One key of every few.
static void say_stripe(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    name_cause(w, "/%zu", c->step);
    bool before = c->kind == SINKPROOF_CACHE_BEFORE;
    if (c->rest) name_cause(w, "-rest");
    if (c->step == 2 && !before)
        say_cause(w, "every key at an %s position", c->first % 2 == 0 ? "even" : "odd");
    else if (before)
        say_cause(w, "%s, counted back from the query from %zu on,",
                  c->rest ? "all but one key of every few" : "one key of every few", c->first);
    else
        say_cause(w, "%s %zu, from key %zu on,",
                  c->rest ? "all but one key of every" : "one key of every", c->step, c->first);
    if (c->step == 2 && !before && c->first >= c->step)
        say_cause(w, " from position %zu on", c->first);
    if (before) say_cause(w, " in steps of %zu,", c->step);
}

bool say_cache(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind == SINKPROOF_CACHE_NONE || w->how->sink_value) return false;
    // say_passes says these
    if (c->kind >= SINKPROOF_CACHE_PASSES && c->kind <= SINKPROOF_CACHE_STRETCHES) return false;
    if (sinkproof_attending_reads_range(w->how)) return false; // say_reads says it
    bool keys = (c->moved & SINKPROOF_CACHE_KEYS) != 0, all = c->count >= w->n;
    bool values = (c->moved & SINKPROOF_CACHE_VALUES) != 0;
    const char *of = !values ? "the keys" : keys ? "the keys and values" : "the values";
    bool several = c->count > 1 && !all;
    if (c->kind == SINKPROOF_CACHE_TREE) {
        name_cause(w, "tree-of-drafts=%zu-from-%zu", c->count, c->first);
        if (c->by > 0) name_cause(w, "-beyond-window");
        say_cause(
            w,
            "rows from %zu on see, of the keys from there on, their ancestors alone in a tree "
            "of drafts, %zu wide",
            c->first, c->count);
    } else if (c->unsummed) {
        name_cached(w, "unsummed");
        say_cause(w, "the denominator leaves out ");
        if (c->step > 1)
            say_stripe(w);
        else
            say_cached(w);
        if (c->spared) name_cause(w, "-but-own");
        if (c->spared) say_cause(w, " but the query's own");
        say_cause(w, ": the sum lacks what the values get");
    } else if (c->kind == SINKPROOF_CACHE_BEHIND) {
        name_cause(w, "first-keys-kept=%zu", c->first);
        if (c->count != w->config->window) name_cause(w, "-window=%zu", c->count);
        say_cause(w, "queries see a window of %s and also the first %s, no other key",
                  sinkproof_counted(c->count, "key").text,
                  c->first == 1 ? "key" : sinkproof_counted(c->first, "key").text);
    } else if (c->times == 0) {
        name_cached(w, "left-out");
        if (c->step > 1)
            say_stripe(w);
        else
            say_cached(w);
        say_cause(w, "%s", is_own(c) ? "," : "");
        say_cause(w, several && c->step < 2 ? " are not seen" : " is not seen");
        if (c->kind == SINKPROOF_CACHE_FIXED && c->step < 2 && is_last_window(w))
            say_cause(w, ": only the last %s of the sequence are kept, as many as the window has",
                      sinkproof_counted(w->config->window, "key").text);
        if (c->spared)
            say_cause(w, " but by %s own quer%s", several && c->step < 2 ? "their" : "its",
                      several && c->step < 2 ? "ies" : "y");
        if (c->spared && c->step > 1) name_cause(w, "-but-own");
    } else if (c->times != 1 && c->times != 2) {
        name_cached(w, "counted");
        name_cause(w, "-times=%.7g", c->times);
        say_cached(w);
        say_cause(w, "%s counted %s times, as a number added to %s does, about %.4g",
                  several ? " are" : " is", number_words(w, c->times).text,
                  several ? "their scores" : "its score", log(c->times));
    } else if (c->times != 1) {
        name_cached(w, "twice");
        say_cached(w);
        say_cause(w, "%s counted twice", several ? " are" : " is");
    } else if (c->zeros) {
        name_cached(w, keys ? (values ? "zero" : "key-zero") : "value-zero");
        if (!keys || !values)
            say_cause(w, "the %s%s of ", keys ? "score" : "value", several ? "s" : "");
        if (c->step > 1)
            say_stripe(w);
        else
            say_cached(w);
        say_cause(w, "%s read as zeros%s", several && c->step < 2 ? " are" : " is",
                  !keys    ? ": the weight has no effect"
                  : values ? ", key and value"
                           : ": the key is not written");
        if (c->spared) name_cause(w, "-but-own");
        if (c->spared) say_cause(w, ", but by its own query");
    } else if (c->kind == SINKPROOF_CACHE_RING) {
        name_cause(w, "%s-ring=%zu", !values ? "keys" : keys ? "kv" : "values", c->count);
        say_cause(w,
                  "%s stand in a ring of %s: those that are older have been overwritten by later "
                  "ones, which are read in their place",
                  of, sinkproof_counted(c->count, "slot").text);
    } else if (c->exchanged && c->by > 0) {
        size_t to = c->first + (size_t)c->by;
        name_cause(w, "%s-exchanged=%zu-%zu/%zu-%zu",
                   !values ? "keys"
                   : keys  ? "kv"
                           : "values",
                   c->first, c->first + c->count - 1, to, to + c->count - 1);
        say_cause(w, "%s %zu to %zu and %zu to %zu are exchanged", of, c->first,
                  c->first + c->count - 1, to, to + c->count - 1);
    } else if (c->exchanged) {
        name_cause(w, "%s-exchanged=%zu-%zu",
                   !values ? "keys"
                   : keys  ? "kv"
                           : "values",
                   c->first, c->first + 2 * c->count - 1);
        say_cause(w, "%s %zu to %zu and %zu to %zu are exchanged", of, c->first,
                  c->first + c->count - 1, c->first + c->count, c->first + 2 * c->count - 1);
    } else if (c->kind == SINKPROOF_CACHE_ORDER) {
        static const char *const ids[] = {"reversed", "halves", "spread", "gathered"};
        static const char *const orders[] = {"in reverse order", "with the two halves exchanged",
                                             "with the two halves taken in turn",
                                             "with the even ones first, then the odd ones"};
        name_cause(w, "%s-tiles=%zu-%s",
                   !values ? "keys"
                   : keys  ? "kv"
                           : "values",
                   c->count, ids[c->by]);
        say_cause(w, "%s of each tile of %zu are read %s", of, c->count, orders[c->by]);
    } else if (c->kind >= SINKPROOF_CACHE_TILE) {
        size_t tiles = (size_t)-c->by / c->count;
        name_cause(w, "%s-stale-%zu-", !values ? "keys" : keys ? "kv" : "values", tiles);
        name_key_tile(w);
        say_cause(w, "%s of the %s before are read in the place of ", of,
                  tiles == 1 ? "tile" : sinkproof_counted(tiles, "tile").text);
        say_cached(w);
        say_cause(w, ": a buffer that was not written again");
    } else {
        size_t by = (size_t)(c->by < 0 ? -c->by : c->by);
        name_cause(w, "%s%s-from=%zu", c->kind == SINKPROOF_CACHE_BEFORE ? "last-" : "",
                   !values ? "key"
                   : keys  ? "kv"
                           : "value",
                   c->first);
        if (c->count > 1) name_cause(w, "-%zu", c->first + c->count - 1);
        name_cause(w, "%+td%s", c->by, c->circle ? "-circle" : "");
        say_cause(w, values ? "%s of " : "in the scores ", of);
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
        if (c->edge) name_cause(w, "-clamped");
        if (c->edge)
            say_cause(w, ", and the %s one again where there is none",
                      c->by < 0 ? "first" : "last");
        if (c->steps > 0) name_cause(w, "-steps-from-%zu", c->steps);
        if (c->steps > 0)
            say_cause(w, "; rows from %zu on come one by one, and %s", c->steps,
                      c->edge ? "each has the last one then" : "what is behind them is zeros");
    }
    return true;
}

// ---- heads

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

// Whether the heads of the place are of one key/value head and read another one.
static bool reads_one_group(const cause_words *w, size_t *own, size_t *read) {
    const sinkproof_attending *m = w->how;
    const sinkproof_head_counts n = {w->config->n_heads, w->config->n_kv_heads};
    unsigned of = m->group_of != 0 ? m->group_of : SINKPROOF_CACHE_KEYS;
    bool any = false;
    for (size_t h = 0; h < n.heads; h++) {
        if (!sinkproof_attending_is_at(m, h, m->first_row)) continue;
        size_t at = h / (n.heads / n.groups), to = sinkproof_attending_group(m, n, h, of);
        if (any && (at != *own || to != *read)) return false;
        any = true, *own = at, *read = to;
    }
    return any && *own != *read;
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
    size_t own = 0, read = 0;
    if (reads_one_group(w, &own, &read)) {
        name_cause(w, "%s%skv-head=%zu", cached, id, read);
        say_cause(w, "the %s of key/value head %zu are read, not those of key/value head %zu%s", of,
                  read, own, but);
        return;
    }
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
