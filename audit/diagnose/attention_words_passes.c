// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for a cache that is filled pass by pass, and for masks that know of passes.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

void say_which_passes(cause_words *w) {
    const sinkproof_row_passes *p = &w->how->passes.of;
    bool singles = p->single<w->n, more = p->single> p->first;
    if (p->first == 0) return;
    name_cause(w, "@passes=%zu", p->first);
    if (p->first >= w->n) {
        say_cause(w, " (all rows are one pass)");
        return;
    }
    if (more && p->rows != p->first) name_cause(w, "+%zu", p->rows);
    if (singles) name_cause(w, "+1-from-%zu", p->single);
    if (!more)
        say_cause(w, " (passes: the rows before position %zu, then single tokens)", p->first);
    else if (p->rows == p->first && !singles)
        say_cause(w, " (passes of %s)", sinkproof_counted(p->rows, "row").text);
    else if (p->rows == p->first)
        say_cause(w, " (passes of %s, then single tokens from position %zu on)",
                  sinkproof_counted(p->rows, "row").text, p->single);
    else if (singles)
        say_cause(w,
                  " (passes: the rows before position %zu, then %zu at a time, then single tokens "
                  "from position %zu on)",
                  p->first, p->rows, p->single);
    else
        say_cause(w, " (passes: the rows before position %zu, then %zu at a time)", p->first,
                  p->rows);
}

// ---- masks

static const char *cached_words(sinkproof_pass_sight sight) {
    static const char *const words[] = {
        [SINKPROOF_SIGHT_DEFINED] = "",
        [SINKPROOF_SIGHT_NONE] = "the cached keys of earlier passes are not seen: a query sees "
                                 "keys of its own pass alone",
        [SINKPROOF_SIGHT_ALL] = "all cached keys of earlier passes are seen, those before the "
                                "window too",
        [SINKPROOF_SIGHT_EARLIER] = "all cached keys of earlier passes are seen, those before the "
                                    "window too",
        [SINKPROOF_SIGHT_FIRST] = "the cached keys of earlier passes are masked for the first "
                                  "query of a pass alone, and its window serves all queries of "
                                  "the pass: later ones see cached keys before their window",
        [SINKPROOF_SIGHT_LAST] = "the cached keys of earlier passes are masked for the last query "
                                 "of a pass, and its window serves all queries of the pass: "
                                 "earlier ones lose cached keys",
        [SINKPROOF_SIGHT_LOCAL] = "the cached keys of earlier passes are masked by the query's "
                                  "number in its own pass, not by its position",
        [SINKPROOF_SIGHT_BUT_ONE] = "the keys of the pass before the query's own are not seen: "
                                    "the cache lags by a pass",
        [SINKPROOF_SIGHT_LOCAL_WINDOW] = "the window of cached keys is counted in the query's own "
                                         "pass, from 0 on: keys before the window are seen"};
    return sight < sizeof words / sizeof words[0] && words[sight] != NULL ? words[sight] : "";
}

static const char *own_words(sinkproof_pass_sight sight) {
    static const char *const words[] = {
        [SINKPROOF_SIGHT_DEFINED] = "",
        [SINKPROOF_SIGHT_NONE] = "a query does not see the keys of its own pass, nor its own key",
        [SINKPROOF_SIGHT_ALL] = "all keys of the query's own pass are seen, later ones and those "
                                "before the window too: nothing is masked within a pass",
        [SINKPROOF_SIGHT_EARLIER] = "within a pass no window is applied",
        [SINKPROOF_SIGHT_FIRST] = "within a pass the window is that of the pass's first query: "
                                  "later queries see keys before their window",
        [SINKPROOF_SIGHT_LAST] = "within a pass the window is that of the pass's last query: "
                                 "earlier queries lose keys",
        [SINKPROOF_SIGHT_OWN] = "of the keys of its own pass a query sees its own key alone",
        [SINKPROOF_SIGHT_BUT_OWN] = "a query does not see its own key",
        [SINKPROOF_SIGHT_LATER] = "later keys of the query's own pass are seen: within a pass the "
                                  "mask is not causal"};
    return sight < sizeof words / sizeof words[0] && words[sight] != NULL ? words[sight] : "";
}

static const char *const sight_ids[] = {[SINKPROOF_SIGHT_DEFINED] = "",
                                        [SINKPROOF_SIGHT_NONE] = "none",
                                        [SINKPROOF_SIGHT_ALL] = "all",
                                        [SINKPROOF_SIGHT_EARLIER] = "no-window",
                                        [SINKPROOF_SIGHT_FIRST] = "of-first",
                                        [SINKPROOF_SIGHT_LAST] = "of-last",
                                        [SINKPROOF_SIGHT_LOCAL] = "local",
                                        [SINKPROOF_SIGHT_BUT_ONE] = "lag",
                                        [SINKPROOF_SIGHT_OWN] = "own-key",
                                        [SINKPROOF_SIGHT_BUT_OWN] = "but-own-key",
                                        [SINKPROOF_SIGHT_LATER] = "two-way",
                                        [SINKPROOF_SIGHT_OF_ROW] = "as-row",
                                        [SINKPROOF_SIGHT_BEFORE] = "as-row-before",
                                        [SINKPROOF_SIGHT_LOCAL_WINDOW] = "local-window"};

static void say_elsewhere(cause_words *w) {
    const sinkproof_pass_read *p = &w->how->passes;
    bool before = p->cached == SINKPROOF_SIGHT_BEFORE, one = p->of.rows == 1;
    name_cause(w, "-%s-%zu", sight_ids[p->cached], p->number);
    say_cause(w, "%s behind the first pass see", one ? "single tokens" : "queries");
    if (before)
        say_cause(w, " the cached keys as if they stood %s earlier: the length is %zu too small",
                  sinkproof_counted(p->number, "position").text, p->number);
    else
        say_cause(w,
                  " the first %s alone, as if they were token %zu: the length of another sequence "
                  "or an old length",
                  sinkproof_counted(p->number + 1, "key").text, p->number);
    if (p->own == SINKPROOF_SIGHT_DEFINED) return;
    name_cause(w, "-own-%s", sight_ids[p->own]);
    say_cause(w,
              p->own == SINKPROOF_SIGHT_NONE ? ", and not their own keys" : ", and their own key");
}

static void say_sights(cause_words *w) {
    const sinkproof_pass_read *p = &w->how->passes;
    name_cause(w, "pass-mask");
    if (p->cached == SINKPROOF_SIGHT_OF_ROW || p->cached == SINKPROOF_SIGHT_BEFORE) {
        say_elsewhere(w);
        return;
    }
    if (p->cached == SINKPROOF_SIGHT_LOCAL_WINDOW && p->own == p->cached) {
        name_cause(w, "-local-window");
        say_cause(w, "the begin of the window is counted from the beginning of the query's own "
                     "pass, from 0 on: queries of later passes see keys before their window");
        return;
    }
    if (p->cached != SINKPROOF_SIGHT_DEFINED) {
        name_cause(w, "-cached-%s", sight_ids[p->cached]);
        say_cause(w, "%s", cached_words(p->cached));
    }
    if (p->own == SINKPROOF_SIGHT_DEFINED) return;
    name_cause(w, "-own-%s", sight_ids[p->own]);
    say_cause(w, "%s%s", p->cached != SINKPROOF_SIGHT_DEFINED ? "; and " : "", own_words(p->own));
}

// ---- slots

static void say_slots(cause_words *w) {
    const sinkproof_pass_read *p = &w->how->passes;
    static const char *const ids[] = {[SINKPROOF_SLOTS_OWN] = "",
                                      [SINKPROOF_SLOTS_RING] = "ring",
                                      [SINKPROOF_SLOTS_RING_FIRST] = "ring-keeps-first",
                                      [SINKPROOF_SLOTS_ONE] = "same-slot-from",
                                      [SINKPROOF_SLOTS_EXTRA] = "newest-also-in-slot",
                                      [SINKPROOF_SLOTS_LATER] = "written-later-by",
                                      [SINKPROOF_SLOTS_EARLIER] = "written-earlier-by",
                                      [SINKPROOF_SLOTS_ANEW] = "written-anew",
                                      [SINKPROOF_SLOTS_BUT_LAST] = "last-unwritten",
                                      [SINKPROOF_SLOTS_BUT_FIRST] = "first-unwritten",
                                      [SINKPROOF_SLOTS_FIRST_PASS] = "first-pass-alone",
                                      [SINKPROOF_SLOTS_LAG] = "pass-before-unwritten",
                                      [SINKPROOF_SLOTS_WHOLE_PAGES] = "whole-pages-of"};
    size_t n = p->number;
    const char *empty = p->left_out ? "are not read" : "are read as zeros";
    bool numbered = p->slots <= SINKPROOF_SLOTS_EARLIER || p->slots == SINKPROOF_SLOTS_WHOLE_PAGES;
    name_cause(w, "slots-%s", ids[p->slots]);
    if (numbered) name_cause(w, "=%zu", n);
    switch (p->slots) {
    case SINKPROOF_SLOTS_RING:
        say_cause(w,
                  "keys and values stand in a ring of %s, into which a pass is written before its "
                  "queries read: older ones have been overwritten by later ones, which are read "
                  "in their place",
                  sinkproof_counted(n, "slot").text);
        break;
    case SINKPROOF_SLOTS_RING_FIRST:
        say_cause(w,
                  "keys and values stand in a ring of %s, in which of the first pass the first "
                  "tokens stay: later ones of that pass are not written, and the first are read in "
                  "their place",
                  sinkproof_counted(n, "slot").text);
        break;
    case SINKPROOF_SLOTS_ONE:
        say_cause(w,
                  "all tokens from %zu on are written to the same slot %zu of the cache: it holds "
                  "the newest key and value, and the slots of the others, never written, %s",
                  n, n, empty);
        break;
    case SINKPROOF_SLOTS_EXTRA:
        say_cause(w,
                  "the key and value of the newest token are also written to slot %zu of the "
                  "cache, over those of token %zu: they are read in its place",
                  n, n);
        break;
    case SINKPROOF_SLOTS_LATER:
        say_cause(w,
                  "keys and values of passes after the first are written %s too far in the cache: "
                  "those of earlier tokens are read in their place, and slots never written %s",
                  sinkproof_counted(n, "slot").text, empty);
        break;
    case SINKPROOF_SLOTS_EARLIER:
        say_cause(w,
                  "keys and values of passes after the first are written %s too early in the "
                  "cache, over those of earlier tokens, and slots never written %s",
                  sinkproof_counted(n, "slot").text, empty);
        break;
    case SINKPROOF_SLOTS_ANEW:
        say_cause(w,
                  "each pass is written to the cache from slot 0 on, over the passes before it, "
                  "and slots never written %s",
                  empty);
        break;
    case SINKPROOF_SLOTS_BUT_LAST:
        say_cause(w,
                  "the last token of each pass is not written to the cache: its key and value %s",
                  empty);
        break;
    case SINKPROOF_SLOTS_BUT_FIRST:
        say_cause(w,
                  "the first token of each pass is not written to the cache: its key and value %s",
                  empty);
        break;
    case SINKPROOF_SLOTS_FIRST_PASS:
        say_cause(w,
                  "only the first pass is written to the cache: keys and values of later tokens %s",
                  empty);
        break;
    case SINKPROOF_SLOTS_LAG:
        say_cause(w,
                  "the pass before is not yet in the cache when a pass reads it: its keys and "
                  "values %s",
                  empty);
        break;
    case SINKPROOF_SLOTS_WHOLE_PAGES:
        say_cause(w,
                  "of a pass only whole pages of %zu are written to the cache: keys and values of "
                  "the tokens behind them %s",
                  n, empty);
        break;
    case SINKPROOF_SLOTS_OWN:
        break;
    }
    if (p->first_direct) name_cause(w, "-first-direct");
    if (p->first_direct) say_cause(w, "; the first pass reads its own keys beside it");
    if (p->left_out) name_cause(w, "-left-out");
    if (p->own_direct) name_cause(w, "-own-direct");
    if (p->own_direct) say_cause(w, "; the query's own pass is not read from the cache");
}

bool say_passes(cause_words *w) {
    if (say_access(w)) return true;
    if (w->how->cache.kind != SINKPROOF_CACHE_PASSES) return false;
    if (w->how->passes.slots != SINKPROOF_SLOTS_OWN)
        say_slots(w);
    else
        say_sights(w);
    say_which_passes(w);
    return true;
}
