// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The name and the sentence of a cause in attention: what is meant otherwise, with its numbers, and
// at which place.
#include "audit/diagnose/attention_screen.h"
#include "base/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct cause_words {
    const sinkproof_attending *how;
    const sinkproof_config *config;
    size_t n;
    char *id, *text;
    size_t id_size, text_size;
} cause_words;

static void append(char *to, size_t size, const char *format, va_list arguments) {
    size_t length = strlen(to);
    if (length < size) vsnprintf(to + length, size - length, format, arguments);
}

static void SINKPROOF_PRINTF(2, 3) name(cause_words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(w->id, w->id_size, format, arguments);
    va_end(arguments);
}

static void SINKPROOF_PRINTF(2, 3) say(cause_words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(w->text, w->text_size, format, arguments);
    va_end(arguments);
}

// Names numbers that have a name.
typedef struct number_text {
    char text[48];
} number_text;

static number_text number_words(const cause_words *w, double x) {
    double root = sqrt((double)w->config->head_dim);
    number_text t;
    if (x == log(2))
        snprintf(t.text, sizeof t.text, "ln(2)");
    else if (x == 1.4426950408889634)
        snprintf(t.text, sizeof t.text, "log2(e)");
    else if (x == 1 / root)
        snprintf(t.text, sizeof t.text, "1/sqrt(head_dim), %.7g", x);
    else if (x == root)
        snprintf(t.text, sizeof t.text, "sqrt(head_dim), %.7g", x);
    else
        snprintf(t.text, sizeof t.text, "%.7g", x);
    return t;
}

// "key 3", "keys 3 to 7", of a range that begins at `first`.
static void say_keys(cause_words *w, size_t first, size_t count) {
    if (count == 1)
        say(w, "key %zu", first);
    else
        say(w, "keys %zu to %zu", first, first + count - 1);
}

static void say_cached(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    if (c->kind == SINKPROOF_CACHE_FIXED && c->first == 0 && c->count >= w->n)
        say(w, "every key");
    else if (c->kind == SINKPROOF_CACHE_FIXED)
        say_keys(w, c->first, c->count);
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0 && c->count == 1)
        say(w, "the last key, the query's own,");
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->first == 0)
        say(w, "the last %s", sinkproof_counted(c->count, "key").text);
    else if (c->kind == SINKPROOF_CACHE_BEFORE && c->count == 1)
        say(w, "the key %zu before the query", c->first);
    else if (c->kind == SINKPROOF_CACHE_BEFORE)
        say(w, "the keys %zu to %zu before the query", c->first, c->first + c->count - 1);
    else if (c->first == 0 && c->count == 1)
        say(w, "the first key that a query sees");
    else if (c->first == 0)
        say(w, "the first %s that a query sees", sinkproof_counted(c->count, "key").text);
    else
        say(w, "of the keys that a query sees, counted from 0, %zu to %zu", c->first,
            c->first + c->count - 1);
}

static void name_cached(cause_words *w, const char *what) {
    const sinkproof_cache_read *c = &w->how->cache;
    static const char *const of[] = {[SINKPROOF_CACHE_NONE] = "key",
                                     [SINKPROOF_CACHE_FIXED] = "key",
                                     [SINKPROOF_CACHE_BEFORE] = "last-key",
                                     [SINKPROOF_CACHE_SEEN] = "first-key",
                                     [SINKPROOF_CACHE_BEHIND] = "key"};
    name(w, "%s-%s=%zu", of[c->kind], what, c->first);
    if (c->count > 1) name(w, "-%zu", c->first + c->count - 1);
}

static void say_cache(cause_words *w) {
    const sinkproof_cache_read *c = &w->how->cache;
    bool keys = (c->moved & SINKPROOF_CACHE_KEYS) != 0, all = c->count >= w->n;
    bool values = (c->moved & SINKPROOF_CACHE_VALUES) != 0;
    const char *of = !values ? "the keys" : keys ? "the keys and values" : "the values";
    bool several = c->count > 1 && !all;
    if (c->kind == SINKPROOF_CACHE_BEHIND) {
        name(w, "first-keys-kept=%zu", c->first);
        say(w, "queries see the window of %s and also see the first key%s",
            sinkproof_counted(c->count, "key").text, c->first == 1 ? "" : "s");
        if (c->first > 1) say(w, ", %zu of them", c->first);
    } else if (c->times == 0) {
        name_cached(w, "left-out");
        say_cached(w);
        say(w, several ? " are not seen" : " is not seen");
        if (c->spared)
            say(w, " but by %s own quer%s", several ? "their" : "its", several ? "ies" : "y");
    } else if (c->times != 1) {
        name_cached(w, "twice");
        say_cached(w);
        say(w, "%s counted twice", several ? " are" : " is");
    } else if (c->zeros) {
        name_cached(w, keys ? "zero" : "value-zero");
        if (!keys) say(w, "the value%s of ", several ? "s" : "");
        say_cached(w);
        say(w, "%s read as zeros%s", several ? " are" : " is",
            keys ? ", key and value" : ": the weight has no effect");
    } else if (c->exchanged) {
        name(w, "%s-exchanged=%zu-%zu",
             !values ? "keys"
             : keys  ? "kv"
                     : "values",
             c->first, c->first + 2 * c->count - 1);
        say(w, "%s %zu to %zu and %zu to %zu are exchanged", of, c->first, c->first + c->count - 1,
            c->first + c->count, c->first + 2 * c->count - 1);
    } else {
        size_t by = (size_t)(c->by < 0 ? -c->by : c->by);
        name(w, "%s%s-from=%zu", c->kind == SINKPROOF_CACHE_BEFORE ? "last-" : "",
             !values ? "key"
             : keys  ? "kv"
                     : "value",
             c->first);
        if (c->count > 1) name(w, "-%zu", c->first + c->count - 1);
        name(w, "%+td%s", c->by, c->circle ? "-circle" : "");
        say(w, "%s of ", of);
        if (c->kind != SINKPROOF_CACHE_FIXED || all)
            say(w, "the key %zu %s it%s", by, c->by < 0 ? "before" : "after",
                c->circle ? ", in a circle," : "");
        else if (c->by < 0 && by > c->first)
            say(w, "%s before, and zeros before key 0,", sinkproof_counted(by, "key").text);
        else
            say_keys(w, (size_t)((ptrdiff_t)c->first + c->by), c->count);
        say(w, " are read in the place of ");
        say_cached(w);
    }
}

static void say_head(cause_words *w, sinkproof_head_from from, const char *id, const char *of) {
    switch (from.choice) {
    case SINKPROOF_HEAD_SHIFTED:
        name(w, "%s-shifted=%zu", id, from.by);
        say(w, "each head has %s of the head %zu after it, in a circle", of, from.by);
        break;
    case SINKPROOF_HEAD_REVERSED:
        name(w, "%s-reversed", id);
        say(w, "the heads have %s in reverse order", of);
        break;
    case SINKPROOF_HEAD_GROUP:
        name(w, "%s-by-group", id);
        say(w, "each head has %s whose number is that of its key/value head", of);
        break;
    case SINKPROOF_HEAD_FIRST:
        name(w, "%s-of-first-in-group", id);
        say(w, "each head has %s of the first head of its group", of);
        break;
    case SINKPROOF_HEAD_EXCHANGED:
        name(w, "%s-transposed", id);
        say(w, "each head has %s with groups and heads exchanged", of);
        break;
    case SINKPROOF_HEAD_ROW:
        name(w, "%s-by-row=%zu", id, from.by);
        say(w, "%s is taken by the query's position%s, modulo the number of heads, not by head", of,
            from.by == 0 ? "" : sinkproof_counted(from.by, "place").text);
        break;
    case SINKPROOF_HEAD_OWN:
        break;
    }
}

static void say_group(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->group == SINKPROOF_GROUP_MODULUS) {
        name(w, "heads-by-modulus");
        say(w, "query head h has the keys and values of head h mod groups");
    } else if (m->group == SINKPROOF_GROUP_ONE) {
        name(w, "kv-head=%zu", m->group_by);
        say(w, "query heads read the keys and values of key/value head %zu", m->group_by);
    } else if (m->group == SINKPROOF_GROUP_UNEVEN) {
        name(w, "group-of-head+%zu", m->group_by);
        say(w,
            "query head h reads the keys and values of the group of head h + %zu: the boundaries "
            "of the groups are %s off",
            m->group_by, sinkproof_counted(m->group_by, "head").text);
    } else {
        name(w, "kv-head-shifted=%zu", m->group_by);
        say(w,
            "query heads read the keys and values of the key/value head %zu after their own, in a "
            "circle",
            m->group_by);
    }
}

static void say_parts(cause_words *w) {
    size_t part = w->how->part;
    switch (w->how->parting) {
    case SINKPROOF_PARTS_AT:
        say(w, "the keys before key %zu and the others", part);
        break;
    case SINKPROOF_PARTS_OF:
        say(w, "the parts of %s", sinkproof_counted(part, "key").text);
        break;
    case SINKPROOF_PARTS_EQUAL:
        say(w, "the %zu equal parts of the keys that a query sees", part);
        break;
    case SINKPROOF_PARTS_OF_ALL:
        say(w, "the %zu equal parts of all keys up to the query", part);
        break;
    case SINKPROOF_PARTS_ONE:
        break;
    }
}

static void name_parts(cause_words *w) {
    static const char *const words[] = {[SINKPROOF_PARTS_ONE] = "",
                                        [SINKPROOF_PARTS_AT] = "-at",
                                        [SINKPROOF_PARTS_OF] = "",
                                        [SINKPROOF_PARTS_EQUAL] = "-of-equal",
                                        [SINKPROOF_PARTS_OF_ALL] = "-of-all"};
    if (w->how->parting != SINKPROOF_PARTS_ONE)
        name(w, "%s-%zu", words[w->how->parting], w->how->part);
}

static const char *in_words(sinkproof_in_parts in) {
    static const char *const words[] = {[SINKPROOF_IN_NONE] = "no part",
                                        [SINKPROOF_IN_FIRST] = "the first part alone",
                                        [SINKPROOF_IN_LAST] = "the last part alone",
                                        [SINKPROOF_IN_ALL] = "every part"};
    return words[in];
}

// Of a log-sum-exp, behind "that" or "and".
static void say_exponent(cause_words *w) {
    double exponent = w->how->merging.exponent;
    name(w, "-lse-times=%.7g", exponent);
    if (exponent == 1.4426950408889634)
        say(w, "in base 2 and is read as natural: log2(e) times too large");
    else if (exponent == log(2))
        say(w, "natural and is read in base 2: multiplied by ln(2)");
    else
        say(w, "multiplied by %s", number_words(w, exponent).text);
}

static void say_merging(cause_words *w) {
    const sinkproof_merging *m = &w->how->merging;
    static const char *const ids[] = {"none", "first", "last", "all"};
    if (w->how->parting == SINKPROOF_PARTS_ONE) {
        name(w, "sink-gate");
        say(w, "the log-sum-exp in the sink's gate is ");
        say_exponent(w);
        return;
    }
    name(w, "merge");
    name_parts(w);
    say(w, "the outputs of ");
    say_parts(w);
    if (m->exponent == 0) {
        name(w, "-averaged");
        say(w, " are averaged, ");
    } else if (m->exponent == 1) {
        say(w, " are merged with the wrong sinks, ");
    } else {
        say(w, " are merged by a log-sum-exp that is ");
        say_exponent(w);
        say(w, ", ");
    }
    name(w, "-sink=%s/%s%s", ids[m->sink_divides], ids[m->sink_in_lse],
         m->sink_beside ? "/beside" : "");
    say(w, "the sink in the divisor of %s", in_words(m->sink_divides));
    if (m->exponent != 0) say(w, " and in the log-sum-exp of %s", in_words(m->sink_in_lse));
    if (m->sink_beside) say(w, ", and merged as a part of its own");
}

static void say_sink_count(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->sink_per_part) {
        name(w, "sink-per-part");
        name_parts(w);
        say(w, "the sink is counted in each of ");
        say_parts(w);
    } else if (m->sink_count == 0) {
        name(w, "sink-dropped");
        say(w, "the sink is left out");
    } else {
        name(w, "sink-counted=%.7g", m->sink_count);
        say(w, "the sink is counted %s times, not once", number_words(w, m->sink_count).text);
        if (m->sink_count == 2 || m->sink_count == 0.5)
            say(w, " (a log-sum-exp off by ln(2) does the same)");
    }
}

static void say_window(cause_words *w) {
    const sinkproof_attending *m = w->how;
    size_t window = w->config->window, is = window + (size_t)m->window_by;
    if (m->window == SINKPROOF_WINDOW_OFF) {
        name(w, "window-off");
        say(w, "there is no window: queries see all keys before them");
    } else if (m->window == SINKPROOF_WINDOW_ON) {
        name(w, "window-on=%zu", is);
        say(w, "a layer that has no window has one of %s", sinkproof_counted(is, "key").text);
    } else {
        name(w, "window=%zu", is);
        say(w, "the window has %s, not %zu", sinkproof_counted(is, "key").text, window);
    }
}

static void say_sink_made(cause_words *w) {
    static const char *const ids[] = {"sink", "sink-absolute", "sink-mean", "sink-e4m3",
                                      "sink-e5m2"};
    static const char *const words[] = {"", "the sinks have lost their sign: absolute values",
                                        "every head has the mean of the sinks",
                                        "the sinks are rounded to e4m3",
                                        "the sinks are rounded to e5m2"};
    const sinkproof_attending *m = w->how;
    if (m->sink_on_key) {
        name(w, "sink-on-key-0");
        say(w, "the sink is added to the score of key 0, and is left out elsewhere");
    } else if (m->gates > 0) {
        name(w, "sink-gate-twice");
        say(w, "the gate of the sink, 1 less its weight, is applied twice");
    } else {
        name(w, "%s", ids[m->sink_made]);
        say(w, "%s", words[m->sink_made]);
    }
}

static void say_what(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->merging.on)
        say_merging(w);
    else if (m->sink_per_part || m->sink_count != 1)
        say_sink_count(w);
    else if (m->renormalised) {
        name(w, "sink-renormalised");
        say(w, "the weights of the keys are divided by their sum");
    } else if (m->sink.choice != SINKPROOF_HEAD_OWN)
        say_head(w, m->sink, "sink", "the sink");
    else if (m->sink_times != 1) {
        name(w, "sink-times=%.7g", m->sink_times);
        say(w, "the sink is multiplied by %s", number_words(w, m->sink_times).text);
    } else if (m->sink_made != SINKPROOF_SINK_STORED || m->sink_on_key || m->gates > 0)
        say_sink_made(w);
    else if (m->head.choice != SINKPROOF_HEAD_OWN)
        say_head(w, m->head, "heads", "the output");
    else if (m->group != SINKPROOF_GROUP_OWN)
        say_group(w);
    else if (m->cache.kind != SINKPROOF_CACHE_NONE)
        say_cache(w);
    else if (m->window != SINKPROOF_WINDOW_DEFINED || m->window_by != 0)
        say_window(w);
    else if (m->later > 0) {
        name(w, "later-keys=%zu", m->later);
        say(w, "queries see %s after them", sinkproof_counted(m->later, "key").text);
    } else if (m->from > 0) {
        name(w, "from-key=%zu", m->from);
        if (m->from >= w->n)
            say(w, "queries see no key but their own");
        else if (m->from == 1)
            say(w, "key 0 is read by its own query alone");
        else
            say(w, "a key before key %zu is read by its own query alone", m->from);
    } else if (m->block > 0) {
        name(w, "block=%zu", m->block);
        say(w, "queries see the keys of their own block of %zu alone", m->block);
    } else if (m->row_unit > 0) {
        name(w, "row-unit=%zu", m->row_unit);
        say(w, "queries see all keys up to the end of their block of %zu: nothing is masked in it",
            m->row_unit);
    } else if (m->window_unit > 0) {
        name(w, "window-unit=%zu", m->window_unit);
        say(w, "the first key of the window is rounded down to a multiple of %zu", m->window_unit);
    } else if (m->score_times != 1) {
        name(w, "score-times=%.7g", m->score_times);
        say(w, "the scores are multiplied by %s: queries, keys or the scale",
            number_words(w, m->score_times).text);
    } else if (m->logits_times != 1) {
        name(w, "logits-times=%.7g", m->logits_times);
        say(w, "scores and sink are multiplied by %s before the softmax",
            number_words(w, m->logits_times).text);
    } else if (m->score_limit > 0) {
        name(w, "score-limit=%g", m->score_limit);
        say(w, "the scores are clamped to %g on both sides", m->score_limit);
    } else {
        name(w, "values-times=%.7g", m->output_times);
        say(w, "the values, or what is summed of them, are multiplied by %s",
            number_words(w, m->output_times).text);
    }
}

static void say_place(cause_words *w) {
    const sinkproof_attending *m = w->how;
    bool rows = m->first_row > 0 || m->end_row > 0, heads = m->first_head > 0 || m->end_head > 0;
    size_t each = w->config->n_heads / w->config->n_kv_heads;
    size_t last = m->end_head > 0 ? m->end_head - 1 : w->config->n_heads - 1;
    if (heads) name(w, "@head=%zu", m->first_head);
    if (heads && last > m->first_head) name(w, "-%zu", last);
    if (heads && last == m->first_head)
        say(w, ", in head %zu", last);
    else if (heads && each > 1 && m->first_head % each == 0 && last + 1 == m->first_head + each)
        say(w, ", in heads %zu-%zu, those of key/value head %zu", m->first_head, last, last / each);
    else if (heads)
        say(w, ", in heads %zu-%zu", m->first_head, last);
    if (rows) name(w, "@position=%zu", m->first_row);
    if (rows && m->end_row > m->first_row + 1) name(w, "-%zu", m->end_row - 1);
    if (rows && (m->end_row == 0 || m->end_row >= w->n))
        say(w, ", from position %zu on", m->first_row);
    else if (rows && m->end_row == m->first_row + 1)
        say(w, ", at position %zu", m->first_row);
    else if (rows)
        say(w, ", at positions %zu-%zu", m->first_row, m->end_row - 1);
    if (heads || (rows && m->end_row > 0 && m->end_row < w->n)) say(w, " alone");
}

void attention_cause_say(const sinkproof_attending *how, const sinkproof_config *config, size_t n,
                         char *id, size_t id_size, char *text, size_t text_size) {
    cause_words w = {how, config, n, id, text, id_size, text_size};
    id[0] = text[0] = '\0';
    say_what(&w);
    if (how->times_error > 0x1p-20) say(&w, " (within %.2g %%)", 100 * how->times_error);
    say_place(&w);
}
