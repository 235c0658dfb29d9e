// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for queries, keys, values and weights whose numbers are read otherwise.
#include "audit/diagnose/attention_words.h"
#include "audit/diagnose/composed_changes.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>

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

static void say_order(cause_words *w, const char *of, const char *cached) {
    const sinkproof_from *order = &w->how->read.order;
    rule_list *list = calloc(1, sizeof *list);
    if (list != NULL) list_rules(list, w->config->head_dim, 1, "coordinate", "");
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        const sinkproof_from *from = &list->of[i].from;
        if (from->source != order->source || from->by != order->by || from->rule != order->rule)
            continue;
        name_cause(w, "-coordinates-%s", list->of[i].id);
        say_cause(w, "%s%s are read with the coordinates of each head %s", cached, of,
                  list->of[i].text);
    }
    free(list);
}

static void say_axes(cause_words *w, const unsigned char *order) {
    static const char *const axes[] = {"keys", "heads", "coordinates"};
    const char *rows = w->how->read.of & SINKPROOF_READ_QUERIES ? "positions" : axes[0];
    for (int a = 0; a < 3; a++)
        say_cause(w, "%s%s", a == 0 ? "[" : ", ", order[a] == 0 ? rows : axes[order[a]]);
    say_cause(w, "]");
}

static void say_layout(cause_words *w, const char *of, const char *cached) {
    const sinkproof_read_as *r = &w->how->read;
    const sinkproof_layout layout = sinkproof_layout_at(r->layout);
    name_cause(w, "-layout=%zu", r->layout);
    if (r->unit > 0) name_cause(w, "-pages-of-%zu", r->unit);
    say_cause(w, "%s%s are written as ", cached, of);
    say_axes(w, layout.written);
    say_cause(w, " and read as ");
    say_axes(w, layout.read);
    if (r->unit > 0) say_cause(w, ", in each whole page of %zu", r->unit);
    say_cause(w, ": another layout");
}

static void say_turn(cause_words *w, const char *of, const char *cached) {
    const sinkproof_read_as *r = &w->how->read;
    bool values = r->of == SINKPROOF_CACHE_VALUES;
    if (r->turn_times != 0) {
        name_cause(w, "-rotated%s%s",
                   r->turn_times < 0 ? "-back"
                   : values          ? ""
                                     : "-again",
                   r->turn_scaled ? "-scaled" : "");
        say_cause(w, "%s%s are rotated %s, by their own positions%s", cached, of,
                  r->turn_times < 0 ? "backwards"
                  : values          ? "too, as queries and keys are"
                                    : "once more",
                  r->turn_scaled ? ", with the concentration" : "");
        return;
    }
    name_cause(w, "-turned%+g", r->turn_by);
    say_cause(w, "%s%s are rotated by %s too %s", cached, of,
              sinkproof_counted((size_t)fabs(r->turn_by), "position").text,
              r->turn_by < 0 ? "few, or back" : "many");
}

static void say_map(cause_words *w, const char *of, const char *cached) {
    switch (w->how->read.map) {
    case SINKPROOF_MAP_ORDER:
        say_order(w, of, cached);
        break;
    case SINKPROOF_MAP_LAYOUT:
        say_layout(w, of, cached);
        break;
    case SINKPROOF_MAP_TURNED:
        say_turn(w, of, cached);
        break;
    case SINKPROOF_MAP_CENTRED:
        name_cause(w, "-less-mean");
        say_cause(w, "from %s%s their mean over all positions is subtracted", cached, of);
        break;
    case SINKPROOF_MAP_HEADS:
        name_cause(w, "-heads-averaged");
        say_cause(w, "%s%s of every head are the mean of all heads", cached, of);
        break;
    case SINKPROOF_MAP_NONE:
        break;
    }
}

static void say_change(cause_words *w, const char *of, const char *cached) {
    const sinkproof_change *change = &w->how->read.change;
    change_list *list = calloc(1, sizeof *list);
    if (list == NULL) return;
    list_clamps(list, INFINITY);
    list_functions(list, false, 0);
    list_roundings(list, false);
    list_codes(list);
    for (size_t i = 0; i < list->n; i++) {
        const sinkproof_change *made = &list->of[i].change;
        if (made->kind != change->kind || made->a != change->a || made->b != change->b ||
            made->format != change->format || made->levels != change->levels ||
            made->scale != change->scale || made->block != change->block ||
            made->ties != change->ties)
            continue;
        name_cause(w, "-%s", list->of[i].id);
        say_cause(w, "%s%s are %s", cached, of, list->of[i].text);
        break;
    }
    free(list);
}

// The keys of a range, which are read otherwise.
static void say_range(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    size_t last = c->first + c->count - 1;
    bool open = last + 1 >= w->n;
    if (!sinkproof_attending_reads_range(w->how)) return;
    name_cause(w, "@key=%zu", c->first);
    if (last > c->first) name_cause(w, "-%zu", last < w->n ? last : w->n - 1);
    if (open)
        say_cause(w, ": those of the keys from %zu on", c->first);
    else if (c->count == 1)
        say_cause(w, ": that of key %zu", c->first);
    else
        say_cause(w, ": those of keys %zu to %zu", c->first, last);
}

// Whose scale multiplies a code again.
static void say_scale_from(cause_words *w) {
    static const char *const ids[] = {"", "first", "head-0", "last", "before", "after"};
    const sinkproof_read_as *r = &w->how->read;
    const char *unit = r->scale == SINKPROOF_SCALE_OF_HEAD ? "head" : "token";
    if (r->scale_from == SINKPROOF_SCALE_FROM_OWN) return;
    name_cause(w, "-scale-of-%s", ids[r->scale_from]);
    say_cause(w, ", and multiplied again by the scale of ");
    switch (r->scale_from) {
    case SINKPROOF_SCALE_FROM_FIRST:
        say_cause(w, "%s 0", unit);
        break;
    case SINKPROOF_SCALE_FROM_HEAD:
        say_cause(w, "head 0");
        break;
    case SINKPROOF_SCALE_FROM_LAST:
        say_cause(w, "the last %s", unit);
        break;
    case SINKPROOF_SCALE_FROM_BEFORE:
        say_cause(w, "the %s before", unit);
        break;
    case SINKPROOF_SCALE_FROM_AFTER:
        say_cause(w, "the next %s", unit);
        break;
    case SINKPROOF_SCALE_FROM_OWN:
        break;
    }
    say_cause(w, ", not by their own");
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
    } else if (r->map != SINKPROOF_MAP_NONE) {
        say_map(w, of, cached);
    } else if (r->change.kind != SINKPROOF_UNCHANGED) {
        say_change(w, of, cached);
    } else if (r->format != SINKPROOF_REAL) {
        name_cause(w, "-%s%s", sinkproof_format_name(r->format), scale_ids[r->scale]);
        say_cause(w, "%s%s are rounded to %s%s", cached, of, sinkproof_format_name(r->format),
                  r->of == SINKPROOF_READ_WEIGHTS && r->scale != SINKPROOF_SCALE_NONE
                      ? ", by a scale of each query"
                      : scales[r->scale]);
        say_scale_from(w);
        if (r->times != 1 || r->value_times != 0) say_cause(w, ", and ");
    }
    if (r->value_times != 0 && r->times == 1) {
        name_cause(w, "-value-times=%.7g", r->value_times);
        say_cause(w, "%svalues are multiplied by %s", cached, number_words(w, r->value_times).text);
    } else if (r->value_times != 0) {
        name_cause(w, "-times=%.7g/%.7g", r->times, r->value_times);
        say_cause(w, "%skeys are multiplied by %s, and %svalues are multiplied by %s", cached,
                  number_words(w, r->times).text, cached, number_words(w, r->value_times).text);
    } else if (r->times != 1) {
        name_cause(w, "-times=%.7g", r->times);
        say_cause(w, "%s%s are multiplied by %s", cached, of, number_words(w, r->times).text);
    }
    say_range(w);
    if (!r->spared) return true;
    if (w->how->passes.of.first == 0) say_cause(w, ": those of the keys before the query's own");
    if (w->how->passes.of.first > 0) say_cause(w, ": those of the passes before the query's own");
    say_which_passes(w);
    return true;
}
