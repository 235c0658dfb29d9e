// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is told of fitted numbers in attention. A number is one that the sets accept, with its
// range. Where they accept none alone, but each element some number within the error of the fit,
// the engine rounds more often than the sets suppose: the number is estimated, and is no cause if
// it may be as defined. Of two causes one alone is told where it is accepted without the other.
#include "audit/diagnose/attention_ranges.h"

#include "audit/diagnose/composed_ranges.h"

#include <math.h>

size_t attention_numbers_of(sinkproof_attending *m, fitted_member of[ATTENTION_NUMBERS]) {
    const fitted_member all[ATTENTION_NUMBERS] = {
        {&m->sink_count, 1, true},        {&m->sink_times, 1, true},
        {&m->sink_plus, 0, true},         {&m->score_times, 1, true},
        {&m->output_times, 1, true},      {&m->logits_times, 1, true},
        {&m->score_slope, 0, true},       {&m->sum_plus, 0, true},
        {&m->zero_keys, 0, true},         {&m->read.times, 1, true},
        {&m->leak_number, 0, true},       {&m->score_plus, 0, true},
        {&m->score_limit, 0, false},      {&m->merging.exponent, 1, false},
        {&m->read.value_times, 0, false}, {&m->cache.times, 1, false},
        {&m->summing.number, 0, false}};
    size_t n = 0;
    for (size_t i = 0; i < ATTENTION_NUMBERS; i++)
        if (*all[i].number != all[i].defined) of[n++] = all[i];
    return n;
}

// The meaning without the number.
static void leave_out(sinkproof_attending *m, const fitted_member *of) {
    bool reads = of->number == &m->read.times && m->read.format == SINKPROOF_REAL;
    *of->number = of->defined;
    if (!reads) return;
    m->read = sinkproof_attending_as_defined.read;
    if (m->cache.kind != SINKPROOF_CACHE_PASSES) m->passes = sinkproof_attending_as_defined.passes;
}

// Whether a number is told apart from the one of the definition.
static bool is_told_apart(const composed_mistake *m, const fitted_member *of) {
    bool value = of->number == &m->attending.read.value_times; // 0 as defined: as of the keys
    double x = *of->number, by = fabs(x - (value ? 1 : of->defined));
    return !of->plain || by > m->attending.times_error * fabs(x);
}

// Tells the number with its range, from one that is accepted. One that was not fitted is the number
// of a rule, as the scale of another width, and is told as it is.
static bool tell_range(composing *c, composed_mistake *m, exact_guess *g, double *number) {
    bool fine = true, fitted = m->attending.times_error > 0;
    exact_range r = exact_range_of(g, m->attending.times_error, &fine);
    if (fitted) *number = range_number(c, &r, *number);
    double error = range_error(&r, *number);
    m->attending.estimated = !(error < RANGE_MOST);
    m->attending.times_error = fmin(error, RANGE_MOST);
    return fine;
}

// The number is not needed where the sets accept what is left without it.
static bool settle_one(composing *c, composed_mistake *m, const fitted_member *of, bool *accepted) {
    exact_guess g = exact_guess_of(c, m, of->number), without = g;
    double fitted = *of->number, error = m->attending.times_error;
    bool fine = true;
    *accepted = true;
    if (error == 0)
        return !exact_has_neighbours(&g, &fine) ? fine : tell_range(c, m, &g, of->number);
    const fitted_member same = {exact_number(&without), of->defined, of->plain};
    if (of->plain) leave_out(&without.mistake.attending, &same);
    if (of->plain && exact_accepts(&without, of->defined, &fine)) {
        m->attending = without.mistake.attending;
        return fine;
    }
    bool one = exact_accepts(&g, fitted, &fine) || exact_find(&g, error * fabs(fitted), &fine);
    if (fine && one) {
        fine = tell_range(c, m, &g, of->number);
        *accepted = *of->number != of->defined; // that is no cause: nothing is multiplied by 1
        return fine;
    }
    *accepted = is_told_apart(m, of);
    m->attending.estimated = true;
    return fine;
}

// ---- several numbers

// What is left of a cause of two numbers without the first or the second of them.
static bool is_left_alone(const composed_mistake *m, size_t without, composed_mistake *alone,
                          fitted_member *number) {
    fitted_member of[ATTENTION_NUMBERS];
    *alone = *m;
    if (attention_numbers_of(&alone->attending, of) != 2) return false;
    if (!of[without].plain) return false;
    leave_out(&alone->attending, &of[without]);
    *number = of[1 - without];
    return true;
}

static bool settle_several(composing *c, composed_mistake *m, bool *accepted) {
    fitted_member of[ATTENTION_NUMBERS], number;
    composed_mistake alone;
    for (size_t i = 0; i < 4; i++) {
        // a kernel's roundings were supposed for both
        if (!is_left_alone(m, i % 2, &alone, &number) || (i >= 2 && !m->attending.kernel)) continue;
        if (i >= 2) alone.attending.kernel = false;
        if (!settle_one(c, &alone, &number, accepted)) return false;
        if (!*accepted || alone.attending.estimated) continue;
        m->attending = alone.attending;
        return true;
    }
    // one that may be as defined explains nothing beside the others
    size_t n = attention_numbers_of(&m->attending, of);
    *accepted = m->attending.estimated = true;
    for (size_t i = 0; i < n; i++) *accepted = *accepted && is_told_apart(m, &of[i]);
    return true;
}

bool attention_settle(composing *c, composed_mistake *m, bool *accepted) {
    fitted_member of[ATTENTION_NUMBERS];
    size_t n = attention_numbers_of(&m->attending, of);
    bool exact = m->attending.times_error == 0;
    *accepted = true;
    if (n == 0 || (exact && (n > 1 || *of[0].number == 0)) || composing_is_spent(c)) return true;
    // what the sets refuse with the error of the fit has no number
    mistake_trial t = {.what = {1, {&m->mistake}}};
    bool possible = suspect_can_suppose(&c->s->trials.suspect, &m->mistake);
    if (possible &&
        !trial_try_points(&c->s->trials, c->place, point_bit(c->point), 0, &t, &possible))
        return false;
    *accepted = possible && !t.refused;
    if (!*accepted) return true;
    return n > 1 ? settle_several(c, m, accepted) : settle_one(c, m, &of[0], accepted);
}
