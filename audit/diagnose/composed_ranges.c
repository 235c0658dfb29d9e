// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_ranges.h"

#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what the sets accept

exact_guess exact_guess_of(composing *c, const composed_mistake *m, const double *number) {
    size_t at = (size_t)((const char *)number - (const char *)m);
    exact_guess g = {.c = c, .mistake = *m, .at = at};
    g.mistake.attending.times_error = 0;
    return g;
}

double *exact_number(exact_guess *g) {
    return (double *)(void *)((char *)&g->mistake + g->at);
}

// How many elements are outside; with `whether`, 0 or 1. SIZE_MAX: it cannot occur.
static size_t count_outside(exact_guess *g, bool whether, bool *fine) {
    composing *c = g->c;
    // a copy has its own address
    g->mistake.mistake.id = g->mistake.id, g->mistake.mistake.text = g->mistake.text;
    mistake_trial t = {.what = {1, {&g->mistake.mistake}}};
    bool possible = suspect_can_suppose(&c->s->trials.suspect, &g->mistake.mistake);
    if (!*fine || !possible) return SIZE_MAX;
    *fine = trial_try_points(&c->s->trials, c->place, point_bit(c->point), whether ? 0 : INFINITY,
                             &t, &possible);
    if (!*fine || !possible) return SIZE_MAX;
    return whether ? t.refused : t.refused ? SIZE_MAX : t.outside[c->point];
}

bool exact_accepts(exact_guess *g, double x, bool *fine) {
    *exact_number(g) = x;
    return count_outside(g, true, fine) == 0;
}

bool exact_find(exact_guess *g, double reach, bool *fine) {
    enum { ROUNDS = 6, SIDE = 3 };
    double *number = exact_number(g);
    double best = *number;
    size_t least = count_outside(g, false, fine);
    for (int round = 0; round < ROUNDS && *fine && least > 0; round++) {
        const double from = best;
        for (int k = -SIDE; k <= SIDE && *fine && least > 0; k++) {
            *number = from + reach * k / SIDE;
            size_t outside = k != 0 ? count_outside(g, false, fine) : SIZE_MAX;
            if (outside < least) least = outside, best = *number;
        }
        reach /= SIDE - 0.5;
    }
    *number = best;
    return *fine && least == 0;
}

// The last number that is accepted, and the first beyond it that is not, on one side of `in`.
typedef struct range_end {
    double in, out;
} range_end;

static range_end find_end(exact_guess *g, double in, double reach, bool *fine) {
    enum { DOUBLINGS = 12, HALVINGS = 2, BEYOND = 2 };
    range_end end = {in, in + reach};
    // a gap that one probe falls into is no end
    for (int k = 0, refused = 0; k < DOUBLINGS && *fine && refused < BEYOND; k++) {
        double x = in + reach;
        bool accepted = exact_accepts(g, x, fine);
        if (accepted) end.in = x, refused = 0;
        if (!accepted && refused++ == 0) end.out = x;
        reach *= 2;
        if (accepted) end.out = in + reach;
    }
    for (int k = 0; k < HALVINGS && *fine; k++) {
        double middle = (end.in + end.out) / 2;
        *(exact_accepts(g, middle, fine) ? &end.in : &end.out) = middle;
    }
    return end;
}

// ---- the number that is told

static double as_printed(double x, int digits) {
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, x);
    return strtod(text, NULL);
}

// A unit in that digit of a number, counted from 1.
static double digit_of(double x, int digit) {
    return pow(10, floor(log10(fabs(x))) + 1 - digit);
}

enum { NAMED = 6 };

static void named_numbers(const composing *c, double named[NAMED]) {
    const double d = (double)c->s->trials.config->head_dim;
    const double all[NAMED] = {log(2), 1.4426950408889634, sqrt(d), 1 / sqrt(d), d, 1 / d};
    memcpy(named, all, sizeof all);
}

// A number that an engine would use: a fraction of small numbers, or one with a name.
static bool is_usual(const composing *c, double x) {
    enum { TWELFTHS = 24, PARTS = 16 };
    double named[NAMED];
    named_numbers(c, named);
    bool usual = fabs(12 * x) <= TWELFTHS && nearbyint(12 * x) == 12 * x;
    usual = usual || (fabs(x) <= 1 && fabs(1 / x) <= PARTS && 1 / nearbyint(1 / x) == x);
    for (size_t i = 0; i < NAMED; i++) usual = usual || x == named[i];
    return usual;
}

bool exact_has_neighbours(exact_guess *g, bool *fine) {
    enum { DIGITS_OF_USUAL = 3, DIGITS = 7 };
    const double x = *exact_number(g);
    int digits = 1, most = is_usual(g->c, x) ? DIGITS_OF_USUAL : DIGITS;
    while (digits < most && as_printed(x, digits) != x) digits++;
    double by = digit_of(x, digits + 1);
    bool any = exact_accepts(g, x + by, fine) || exact_accepts(g, x - by, fine);
    *exact_number(g) = x;
    return any;
}

exact_range exact_range_of(exact_guess *g, double error, bool *fine) {
    const double from = *exact_number(g);
    // of a number that was not fitted, the first step is that of a rounding to ten bits
    double reach = fmax(error * fabs(from) / 8, (error > 0 ? 0x1p-24 : 0x1p-10) * fabs(from));
    range_end low = find_end(g, from, -reach, fine);
    // most are about as wide on both sides
    if (low.in < from) reach = from - low.in;
    range_end high = find_end(g, from, reach, fine);
    *exact_number(g) = from;
    return (exact_range){low.in, low.out, high.in, high.out};
}

double range_number(const composing *c, const exact_range *r, double fitted) {
    enum { FEW_DIGITS = 2, DIGITS = 7, PARTS = 100 };
    const double middle = (r->low + r->high) / 2, width = r->high_out - r->low_out;
    double named[NAMED];
    named_numbers(c, named);
    if (fitted >= r->low && fitted <= r->high && is_usual(c, fitted)) return fitted;
    for (int digits = 1; digits < DIGITS; digits++) {
        double x = as_printed(middle, digits), unit = digit_of(middle, digits);
        bool told = 4 * width < unit || 2 * unit <= width;
        if (told && x >= r->low && x <= r->high) return x;
        // a narrow range holds one with a name by little chance
        for (size_t i = 0; digits == FEW_DIGITS && PARTS * width < fabs(middle) && i < NAMED; i++)
            if (named[i] >= r->low && named[i] <= r->high) return named[i];
    }
    return as_printed(middle, DIGITS);
}

double range_error(const exact_range *r, double number) {
    double printed = as_printed(number, 6), error = 0;
    const double around[] = {number, as_printed(number, 7), printed};
    for (int i = 0; i < 3; i++) {
        double far = fmax(r->high_out - around[i], around[i] - r->low_out);
        error = fmax(error, far / fabs(around[i]));
    }
    return error * (1 + 0x1p-40);
}

void range_text(double error, char text[RANGE_TEXT]) {
    double percent = 100 * error;
    int decimals = (int)fmax(0, 1 - floor(log10(percent)));
    if (error >= RANGE_MOST)
        snprintf(text, RANGE_TEXT, " (estimated)");
    else
        snprintf(text, RANGE_TEXT, " (within %.*f %%)", decimals,
                 ceil(percent * pow(10, decimals)) / pow(10, decimals));
}

bool composed_say_range(composing *c, composed_mistake *m) {
    bool fine = true;
    char text[RANGE_TEXT];
    if (m->fitted == NULL || *m->fitted == 0 || *m->fitted == -1) return true;
    exact_guess g = exact_guess_of(c, m, m->fitted);
    if (!exact_has_neighbours(&g, &fine)) return fine;
    exact_range r = exact_range_of(&g, 0, &fine);
    range_text(range_error(&r, *m->fitted), text);
    size_t length = strlen(m->text);
    snprintf(m->text + length, sizeof m->text - length, "%s", text);
    return fine;
}
