// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for another exponential, and for another sum of exponentials.
#include "audit/diagnose/attention_words.h"
#include "base/words.h"

#include <math.h>

static void say_weighing(cause_words *w) {
    static const char *const words[][2] = {
        [SINKPROOF_WEIGH_SOFTMAX] = {"", ""},
        [SINKPROOF_WEIGH_UNDIVIDED] =
            {"weights-undivided", "the exponentials are not divided by their sum: the output is "
                                  "not normalised"},
        [SINKPROOF_WEIGH_LINEAR] = {"exp-piecewise-linear",
                                    "exponentials are approximated: 2^t is linear between whole "
                                    "numbers t (Schraudolph's fast exp)"},
        [SINKPROOF_WEIGH_SERIES2] =
            {"exp-series-2", "exponentials are approximated: 1 + z + z^2 / 2 of the score, a "
                             "polynomial"},
        [SINKPROOF_WEIGH_SIGMOID] = {"weights-sigmoid",
                                     "the weights are sigmoids of the scores, without a sum"},
        [SINKPROOF_WEIGH_RELU] = {"weights-relu",
                                  "the weights are the positive scores over their sum, without an "
                                  "exponential"},
        [SINKPROOF_WEIGH_AGAIN] = {"softmax-twice", "the softmax is applied twice: again to the "
                                                    "weights"},
        [SINKPROOF_WEIGH_POLYNOMIAL] =
            {"exp-polynomial", "exponentials are approximated: 2 to the power of a fraction is its "
                               "series, a polynomial"},
        [SINKPROOF_WEIGH_CUBIC] = {"exp-cubic", "exponentials are approximated: 2 to the power of "
                                                "a fraction is the cubic polynomial of "
                                                "FlashAttention-4"},
        [SINKPROOF_WEIGH_POWER] = {"exp-power",
                                   "exponentials are approximated: e^x is (1 + x / n)^n"},
        [SINKPROOF_WEIGH_CLAMPED] = {"exp-clamped",
                                     "exponentials are those of arguments that are not below a "
                                     "limit: scores far below the largest still count"},
        [SINKPROOF_WEIGH_STEPS] = {"exp-table", "exponentials are looked up in a table: the "
                                                "argument is rounded to the nearest entry"},
        [SINKPROOF_WEIGH_STEPS_DOWN] = {"exp-table-down",
                                        "exponentials are looked up in a table: the argument is "
                                        "rounded down to an entry"},
        [SINKPROOF_WEIGH_TWICE] = {"sum-divides-twice",
                                   "the output is divided by the softmax's sum "
                                   "twice"},
        [SINKPROOF_WEIGH_STEPS_TWO] = {"exp2-table-down",
                                       "exponentials are looked up in a table of powers of two: "
                                       "the argument is rounded down to an entry"}};
    double number = w->how->summing.number;
    name_cause(w, "%s", words[w->how->weighing][0]);
    say_cause(w, "%s", words[w->how->weighing][1]);
    switch (w->how->weighing) {
    case SINKPROOF_WEIGH_LINEAR:
        if (number == 0) break;
        name_cause(w, "=%.7g", number);
        say_cause(w, ", of t less %.7g", number);
        break;
    case SINKPROOF_WEIGH_POLYNOMIAL:
        name_cause(w, "=%g", number);
        say_cause(w, " of degree %g", number);
        break;
    case SINKPROOF_WEIGH_POWER:
        name_cause(w, "=%g", number);
        say_cause(w, " with n = %g", number);
        break;
    case SINKPROOF_WEIGH_CLAMPED:
        name_cause(w, "=%g", number);
        say_cause(w, " (%g below it)", number);
        break;
    case SINKPROOF_WEIGH_STEPS:
    case SINKPROOF_WEIGH_STEPS_DOWN:
    case SINKPROOF_WEIGH_STEPS_TWO:
        name_cause(w, "=%g", number);
        say_cause(w, " (%g steps in each unit)", number);
        break;
    default:
        break;
    }
}

// Slots without a key, which fill something.
static void say_empty(cause_words *w) {
    static const char *const ids[] = {"", "tail", "opened", "next", "room"};
    const sinkproof_summing *s = &w->how->summing;
    name_cause(w, "empty-slots-%s=%zu%s", ids[s->empty], s->unit, s->from_seen ? "-of-window" : "");
    const word_phrase slots = sinkproof_counted(s->unit, "slot");
    say_cause(w, "empty slots are read as keys with the score 0 and no value: the sum counts ");
    if (s->empty == SINKPROOF_EMPTY_TAIL)
        say_cause(w, "those that fill the last tile of %s", slots.text);
    else if (s->empty == SINKPROOF_EMPTY_OPENED)
        say_cause(w, "those that fill the last tile of %s, and a whole tile where it is full",
                  slots.text);
    else if (s->empty == SINKPROOF_EMPTY_NEXT)
        say_cause(w, "the next tile of %s where the last one is full", slots.text);
    else
        say_cause(w, "those that fill a cache of %s", slots.text);
    if (s->from_seen) say_cause(w, ", counted from the first key of the window");
}

static void say_sink_top(cause_words *w) {
    static const char *const ids[] = {"", "own", "first-tile", "last-tile"};
    const sinkproof_summing *s = &w->how->summing;
    name_cause(w, "sink-under-%s", ids[s->sink_top]);
    if (s->sink_top == SINKPROOF_TOP_OWN) {
        say_cause(w, "the sink is not rescaled to the row's maximum: it counts as much as the "
                     "largest score, e^0");
    } else {
        name_cause(w, "=%zu", s->tile);
        say_cause(w,
                  "the sink is not rescaled: the maximum that is subtracted from it is that of "
                  "the %s tile of %s, not that of the row",
                  s->sink_top == SINKPROOF_TOP_FIRST ? "first" : "last",
                  sinkproof_counted(s->tile, "key").text);
    }
    if (s->top_of_keys) name_cause(w, "-keys");
    if (s->top_of_keys) say_cause(w, ", and the sink is in no maximum");
}

static void say_rounded_sum(cause_words *w) {
    const sinkproof_summing *s = &w->how->summing;
    name_cause(w, "sum-%s", sinkproof_format_name(s->format));
    say_cause(w, "the softmax's sum is accumulated in %s: ", sinkproof_format_name(s->format));
    if (s->lanes > 0) {
        name_cause(w, "-lanes=%zu", s->lanes);
        say_cause(w, "rounded behind each key of one lane of %zu", s->lanes);
    } else if (s->tile > 0) {
        name_cause(w, "-tiles=%zu", s->tile);
        say_cause(w, "rounded behind each tile of %s", sinkproof_counted(s->tile, "key").text);
    } else {
        say_cause(w, "rounded behind each key");
    }
    if (s->backwards) name_cause(w, "-backwards");
    if (s->backwards) say_cause(w, ", from the last to the first");
    if (s->sink_first) name_cause(w, "-from-sink");
    say_cause(w, s->sink_first ? ", the sink first" : ", the sink last");
    if (s->terms_rounded) name_cause(w, "-terms");
    if (s->terms_rounded) say_cause(w, "; each exponential is rounded before it is added");
}

static void say_sum(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->zero_keys != 0) {
        name_cause(w, "zero-keys=%.7g", m->zero_keys);
        if (fabs(m->zero_keys - 1) <= m->times_error)
            say_cause(w,
                      "one key too many is read, an empty slot: a key of zeros with the score 0 "
                      "and no value, 1 more in the denominator before the maximum is subtracted");
        else
            say_cause(w,
                      "%s empty slots too many are read: keys of zeros with the score 0 and no "
                      "value",
                      number_words(w, m->zero_keys).text);
        return;
    }
    name_cause(w, "sum-plus=%.7g", m->sum_plus);
    say_cause(w, "%s is added to the sum of the exponentials, behind the maximum's subtraction",
              number_words(w, m->sum_plus).text);
}

bool say_sums(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (m->weighing != SINKPROOF_WEIGH_SOFTMAX)
        say_weighing(w);
    else if (m->summing.sink_top != SINKPROOF_TOP_ALL)
        say_sink_top(w);
    else if (m->summing.format != SINKPROOF_REAL)
        say_rounded_sum(w);
    else if (m->summing.empty != SINKPROOF_EMPTY_COUNTED)
        say_empty(w);
    else if (m->sum_plus != 0 || m->zero_keys != 0)
        say_sum(w);
    else
        return false;
    return true;
}
