// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Composed mistakes: what they are made of, what they are called, and a trial of one.
#include "audit/diagnose/composed_ranges.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool suppose_composed(supposed_engine *s, const known_mistake *mistake) {
    const composed_mistake *m = (const composed_mistake *)(const void *)mistake;
    if (m->operate != NULL && !m->operate(s, mistake)) return false;
    if (m->what != NULL && !m->what->suppose(s, m->what)) return false;
    s->region = m->region;
    if (m->moving.on) s->moving = m->moving;
    if (m->input.on) s->input = m->input;
    if (m->edit.slots == 0) return true;
    mistake_weight_edit *edit = add_weight_edit(s, m->edit.slots);
    if (edit != NULL) *edit = m->edit;
    if (edit != NULL) edit->reading.factor = 1;
    if (edit == NULL) return false;
    return true;
}

composed_mistake *composing_new(composing *c) {
    composed_mistake *m = calloc(1, sizeof *m);
    if (m == NULL) {
        fail_for_memory(c->s);
        return NULL;
    }
    m->mistake = (known_mistake){
        .id = m->id, .text = m->text, .points = point_bit(c->point), .suppose = suppose_composed};
    m->next = c->s->out->composed;
    c->s->out->composed = m;
    return m;
}

void composed_free(sinkproof_diagnosis *d) {
    while (d->marks != NULL) {
        composed_marks *next = d->marks->next;
        free(d->marks);
        d->marks = next;
    }
    while (d->composed != NULL) {
        composed_mistake *next = d->composed->next;
        free(d->composed);
        d->composed = next;
    }
}

// ---- names

static void append(char *text, size_t size, const char *format, va_list arguments) {
    size_t length = strlen(text);
    vsnprintf(text + length, size - length, format, arguments);
}

void composed_name(composed_mistake *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(m->id, sizeof m->id, format, arguments);
    va_end(arguments);
    for (char *at = m->id; *at != '\0'; at++)
        if (*at == ' ') *at = '-';
}

void composed_say(composed_mistake *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(m->text, sizeof m->text, format, arguments);
    va_end(arguments);
}

// What an index along a dimension counts.
static const char *dimension_word(const composing *c, sinkproof_trace_point point,
                                  sinkproof_dimension along) {
    static const char *const words[] = {
        [ALONG_ROWS] = "position", [ALONG_HEADS] = "head",     [ALONG_GROUPS] = "key/value head",
        [ALONG_SLOTS] = "slot",    [ALONG_EXPERTS] = "expert", [ALONG_COORDINATES] = "coordinate",
        [ALONG_KEYS] = "key"};
    bool packed = sinkproof_trace_sequences(c->s->trials.suspect.trace) > 1;
    if (along == ALONG_COORDINATES && point == TRACE_F2) return "token";
    if (along == ALONG_ROWS && packed) return "row";
    return words[along];
}

// What is added to an index that is said: rows of one sequence are said by their positions; those
// of several have none in common.
static size_t index_offset(const composing *c, int along) {
    return along == ALONG_ROWS ? sinkproof_trace_first(c->s->trials.suspect.trace) : 0;
}

// "heads 1, 4 and 7", or "9 positions from 3 to 40".
static void say_some(composed_mistake *m, const char *word, const sinkproof_indices *in,
                     size_t by) {
    enum { LISTED = 8 };
    size_t count = 0, seen = 0;
    for (size_t i = in->first; i < in->end; i++) count += in->some_i[i];
    if (count > LISTED) {
        composed_say(m, "%zu %ss from %zu to %zu", count, word, in->first + by, in->end - 1 + by);
        return;
    }
    composed_say(m, "%ss", word);
    for (size_t i = in->first; i < in->end; i++) {
        if (!in->some_i[i]) continue;
        seen++;
        composed_say(m, "%s%zu", seen == 1 ? " " : seen < count ? ", " : " and ", i + by);
    }
}

// Writes the places of a point, from " in " or " of " on; returns whether there are any.
static bool say_places(const composing *c, composed_mistake *m, sinkproof_trace_point point,
                       const sinkproof_region *region, const char *before) {
    bool any = false;
    for (int d = 0; d < SINKPROOF_DIMENSIONS; d++) {
        const sinkproof_indices *in = &region->along[d];
        const char *word = dimension_word(c, point, (sinkproof_dimension)d);
        size_t size =
            sinkproof_region_size(c->s->trials.config, point, c->n, (sinkproof_dimension)d);
        size_t by = index_offset(c, d), from = in->first + by, last = in->end - 1 + by;
        if (in->end == 0) continue;
        composed_say(m, "%s", any ? " of " : before);
        if (in->some_i != NULL)
            say_some(m, word, in, by);
        else if (in->step == 2 && in->first < 2 && in->end + 1 >= size)
            composed_say(m, "%s %ss", in->first == 0 ? "even" : "odd", word);
        else if (in->step > 1)
            composed_say(m, "%ss %zu to %zu in steps of %zu", word, from, last, in->step);
        else if (in->end == in->first + 1)
            composed_say(m, "%s %zu", word, from);
        else if (in->end >= size)
            composed_say(m, "%ss from %zu on", word, from);
        else
            composed_say(m, "%ss %zu-%zu", word, from, last);
        composed_name(m, "@%s=%zu", word, from);
        if (last > from) composed_name(m, "-%zu", last);
        if (in->step > 1) composed_name(m, "/%zu", in->step);
        if (in->some_i != NULL) composed_name(m, "some");
        any = true;
    }
    return any;
}

void composed_say_region(const composing *c, composed_mistake *m) {
    if (say_places(c, m, c->point, &m->region, ", in ")) composed_say(m, " alone");
}

void composed_say_part(const composing *c, composed_mistake *m, sinkproof_trace_point point,
                       const sinkproof_region *part, const char *before) {
    say_places(c, m, point, part, before);
}

// ---- a trial

// Of one point; and with what is fitted, of one that is computed across a sublayer, where each
// costs as much as that sublayer.
enum { MOST_TRIED = 600, MOST_ACROSS = 100 };

bool composing_is_spent(const composing *c) {
    const unsigned core = 1u << TRACE_A6 | 1u << TRACE_A9 | 1u << TRACE_A10 | 1u << TRACE_A11;
    bool across = c->report->bridged && (core & point_bit(c->point)) == 0;
    if (budget_is_spent(c->s) || c->tried >= MOST_TRIED) return true;
    return across && c->tried + c->fitted >= MOST_ACROSS;
}

bool composing_try(composing *c, composed_mistake *m) {
    mistake_trial t = {.what = {1, {&m->mistake}}};
    bool possible;
    if (composing_is_spent(c)) return true;
    if (!suspect_can_suppose(&c->s->trials.suspect, &m->mistake)) return true;
    c->tried++;
    if (!trial_try_whether(&c->s->trials, c->place, &t, &possible)) return false;
    if (!possible || !trial_explains(&t, point_bit(c->point))) return true;
    if (!composed_say_range(c, m)) return false;
    if (c->found == NULL) {
        unsigned others = findings_give(c->s, c->place, t.inside & ~c->left);
        c->found = add_finding(c->s, c->place, (t.inside & c->left) | others);
        if (c->found == NULL) return false;
    }
    // a cause of more points than those that were found takes their place
    unsigned explained = t.inside & c->left;
    if ((c->found->points & ~explained) == 0 && c->found->points != explained)
        c->found->points = explained, c->found->n_alike = 0, c->found->more_alike = 0;
    if (trial_explains(&t, c->found->points)) finding_add_alike(c->found, &t.what);
    return true;
}
