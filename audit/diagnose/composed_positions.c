// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The positions that a rotation used: for each row the one whose table fits best. A rule over the
// rows is then tried: shifted, begun anew, ended, multiplied.
#include "audit/diagnose/composed_fit.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>

enum { BY, TIMES, MODULO, QUOTIENT, PLUS };

static bool turn_by_position(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_turning *of[2] = {&s->meaning.query, &s->meaning.key};
    for (int i = 0; i < 2; i++) {
        of[i]->position_by = m->numbers[BY];
        of[i]->position_times = m->numbers[TIMES];
        of[i]->position_modulo = m->numbers[MODULO];
        of[i]->quotient = (size_t)m->numbers[QUOTIENT];
        of[i]->position_plus = m->position_plus, of[i]->positions = (size_t)m->numbers[PLUS];
    }
    return s->config.rotation.kind != SINKPROOF_NO_ROTATION;
}

unsigned composing_rotated_points(const composing *c) {
    const unsigned both = 1u << TRACE_A4_Q | 1u << TRACE_A4_K;
    return (c->left & both) == both ? both : point_bit(c->point);
}

static const char *whose_positions(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? "positions"
           : c->point == TRACE_A4_Q                           ? "positions of the queries"
                                                              : "positions of the keys";
}

static const char *suffix(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? ""
           : c->point == TRACE_A4_Q                           ? "-q"
                                                              : "-k";
}

static composed_mistake *turned_new(composing *c, double by, double times, double modulo) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = turn_by_position, m->mistake.points = composing_rotated_points(c);
    m->numbers[BY] = by, m->numbers[TIMES] = times, m->numbers[MODULO] = modulo;
    return m;
}

// How far a row is from `mid`, over its size.
static double row_distance(const composing *c, const double *mid, size_t i) {
    size_t each = c->elements / c->n;
    double apart = 0, size = 0;
    for (size_t k = i * each; k < (i + 1) * each; k++) {
        apart += (c->v[k] - mid[k]) * (c->v[k] - mid[k]);
        size += c->v[k] * c->v[k];
    }
    return size > 0 ? sqrt(apart / size) : 1;
}

// by_i: what a row's position is off by; NAN: no position fits.
static bool find_positions(composing *c, double *by_i, double *distance_i) {
    long most = c->n < 64 ? (long)c->n : 64;
    bool fine = true;
    for (size_t i = 0; i < c->n; i++) by_i[i] = NAN, distance_i[i] = 0.02;
    for (long by = -most; by <= most && fine; by++) {
        composed_mistake *probe = turned_new(c, (double)by, 1, 0);
        double *mid = probe != NULL ? composing_see(c, &probe->mistake, &fine) : NULL;
        if (probe == NULL) return false;
        for (size_t i = 0; mid != NULL && i < c->n; i++) {
            double distance = row_distance(c, mid, i);
            if (distance < distance_i[i]) by_i[i] = (double)by, distance_i[i] = distance;
        }
        free(mid);
    }
    return fine;
}

static bool try_shifted(composing *c, double by, const sinkproof_region *region) {
    composed_mistake *m = turned_new(c, by, 1, 0);
    if (m == NULL) return false;
    m->region = *region;
    composed_name(m, "positions%s%+g", suffix(c), by);
    composed_say(m, "%s are %g too %s", whose_positions(c), fabs(by), by > 0 ? "large" : "small");
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_fixed(composing *c, double at, const sinkproof_region *region) {
    composed_mistake *m = turned_new(c, at, 0, 0);
    if (m == NULL) return false;
    m->region = *region;
    composed_name(m, "positions%s-end-at-%g", suffix(c), at);
    composed_say(m, "%s are all taken as %g", whose_positions(c), at);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_anew(composing *c, size_t every) {
    composed_mistake *m = turned_new(c, 0, 1, (double)every);
    if (m == NULL) return false;
    composed_name(m, "positions%s-anew-every-%zu", suffix(c), every);
    composed_say(m, "%s begin anew every %zu", whose_positions(c), every);
    return composing_try(c, m);
}

static bool try_times(composing *c, double times, const sinkproof_region *region) {
    fitted_range t = {.lo = times, .hi = times, .best = times};
    chosen_number by[FIT_CHOICES];
    if (fit_choose(c, &t, by) == 0) return true;
    composed_mistake *m = turned_new(c, 0, by[0].value, 0);
    if (m == NULL) return false;
    m->region = *region;
    composed_name(m, "positions%s-times-%s", suffix(c), by[0].text);
    composed_say(m, "%s are multiplied by %s", whose_positions(c), by[0].text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_quotient(composing *c, size_t of, const sinkproof_region *region) {
    composed_mistake *m = turned_new(c, 0, 1, 0);
    if (m == NULL) return false;
    m->numbers[QUOTIENT] = (double)of, m->region = *region;
    composed_name(m, "positions%s-over-%zu", suffix(c), of);
    composed_say(m, "%s are divided by %zu and cut: %s share one", whose_positions(c), of,
                 sinkproof_counted(of, "token").text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_backwards(composing *c, const sinkproof_region *region) {
    composed_mistake *m = turned_new(c, (double)c->n - 1, -1, 0);
    if (m == NULL) return false;
    m->region = *region;
    composed_name(m, "positions%s-backwards", suffix(c));
    composed_say(m, "%s are counted from the end", whose_positions(c));
    composed_say_region(c, m);
    return composing_try(c, m);
}

// Positions that share a number, or that are counted from the end.
static bool try_counts(composing *c, const double *by_i) {
    bool fine = true, backwards = true;
    for (size_t i = 0; i < c->n; i++)
        backwards = backwards && (isnan(by_i[i]) || (double)i + by_i[i] == (double)(c->n - 1 - i));
    for (size_t of = 2; of <= 16 && fine && c->found == NULL; of++) {
        bool shared = true;
        for (size_t i = 0; i < c->n; i++)
            shared = shared && (isnan(by_i[i]) || (double)i + by_i[i] == (double)(i / of));
        if (shared) fine = try_quotient(c, of, &c->regions[0]);
    }
    return fine && (c->found != NULL || !backwards || try_backwards(c, &c->regions[0]));
}

enum { STRETCHES = 8 };

// The multiple that each stretch but the first begins at, where there is one: passes that are
// counted with their padding.
static size_t padded_to(const size_t *begins, size_t count, const double *by_i) {
    size_t unit = 256;
    for (size_t k = 1; k < count; k++) {
        double at = (double)begins[k] + by_i[begins[k]],
               more = by_i[begins[k]] - by_i[begins[k] - 1];
        while (unit > 1 && (fmod(at, (double)unit) != 0 || more >= (double)unit)) unit /= 2;
        if (!(more > 0)) return 1;
    }
    return unit;
}

// Stretches of rows, each off by a number of its own.
static bool try_stretches(composing *c, const double *by_i) {
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    size_t begins[STRETCHES] = {0}, count = 1, off = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (isnan(by_i[i])) return true;
        if (i == 0 || by_i[i] == by_i[i - 1]) continue;
        if (count == STRETCHES) return true;
        begins[count++] = i;
    }
    for (size_t k = 0; k < count; k++) off += by_i[begins[k]] != 0;
    if (count < 3 && off < 2) return true; // one stretch is told by its place
    if (sinkproof_trace_first(trace) > 0 || sinkproof_trace_sequences(trace) > 1) return true;
    composed_mistake *m = turned_new(c, 0, 1, 0);
    if (m == NULL) return false;
    m->position_plus = (const double *)(const void *)composing_keep_marks(
        c, c->n * sizeof *by_i, (const uint8_t *)(const void *)by_i);
    m->numbers[PLUS] = (double)c->n;
    if (m->position_plus == NULL) return false;
    size_t unit = padded_to(begins, count, by_i);
    composed_name(m, "positions%s-in-stretches", suffix(c));
    composed_say(m, "%s are ", whose_positions(c));
    for (size_t k = 0; k < count; k++) {
        double by = by_i[begins[k]];
        if (by == 0 && k == 0) continue;
        composed_name(m, "%c%zu%+g", k <= 1 ? '=' : ',', begins[k], by);
        composed_say(m, "%s", k > 1 || (k == 1 && by_i[0] != 0) ? ", " : "");
        if (by == 0)
            composed_say(m, "right from position %zu on", begins[k]);
        else
            composed_say(m, "%g too %s from position %zu on", fabs(by), by > 0 ? "large" : "small",
                         begins[k]);
    }
    if (unit > 1)
        composed_say(m, ": passes are counted with their padding, each begins at a multiple of %zu",
                     unit);
    return composing_try(c, m);
}

// The rules that hold for every row that is off.
static bool try_rules(composing *c, const double *by_i) {
    size_t first = c->n, last = 0, every = 0;
    bool shifted = true, fixed = true, scaled = true, fine = true;
    for (size_t i = 0; i < c->n; i++) {
        if (isnan(by_i[i]) || by_i[i] == 0) continue;
        if (first == c->n) first = i, every = (size_t)fmax(-by_i[i], 0);
        shifted = shifted && by_i[i] == by_i[first];
        fixed = fixed && (double)i + by_i[i] == (double)first + by_i[first];
        scaled = scaled && by_i[i] * (double)first == by_i[first] * (double)i;
        last = i;
    }
    if (first == c->n) return true;
    double by = by_i[first];
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        const sinkproof_region *region = &c->regions[r];
        if (shifted) fine = try_shifted(c, by, region);
        if (fine && c->found == NULL && fixed && last > first)
            fine = try_fixed(c, (double)first + by, region);
        if (fine && c->found == NULL && scaled && last > first)
            fine = try_times(c, 1 + by / (double)first, region);
    }
    if (fine && c->found == NULL && every > 0) fine = try_anew(c, every);
    if (fine && c->found == NULL) fine = try_counts(c, by_i);
    return fine && (c->found != NULL || try_stretches(c, by_i));
}

bool compose_positions(composing *c) {
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    double *by_i = calloc(2 * c->n, sizeof *by_i);
    if (by_i == NULL) return fail_for_memory(c->s);
    bool fine = find_positions(c, by_i, by_i + c->n) && try_rules(c, by_i);
    free(by_i);
    return fine;
}
