// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The entries of the table of cosines and sines that each coordinate of a head meets: another
// layout of the table, and, where no layout is known, those that fit the trace best.
#include "audit/diagnose/composed_fit.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>

typedef struct entry_fit {
    const sinkproof_config *config;
    size_t d, half;
    double *frequency_p;
    sinkproof_turn_entry *entry_k; // cosines of the coordinates, then sines
} entry_fit;

static bool turn_by_entries(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_turning *of[2] = {&s->meaning.query, &s->meaning.key};
    for (int i = 0; i < 2; i++) of[i]->entry_k = m->entry_k, of[i]->neighbours = m->numbers[0] != 0;
    return s->config.rotation.kind != SINKPROOF_NO_ROTATION;
}

static composed_mistake *entries_new(composing *c, const entry_fit *fit, bool neighbours) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->entry_k = (const sinkproof_turn_entry *)(const void *)composing_keep_marks(
        c, 2 * fit->d * sizeof *fit->entry_k, (const uint8_t *)(const void *)fit->entry_k);
    if (m->entry_k == NULL) return NULL;
    m->operate = turn_by_entries, m->mistake.points = composing_rotated_points(c);
    m->numbers[0] = neighbours;
    return m;
}

static const char *whose(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? "queries and keys"
           : c->point == TRACE_A4_Q                           ? "queries"
                                                              : "keys";
}

// ---- layouts

typedef enum layout {
    HALVES_AS_PAIRS,
    PAIRS_AS_HALVES,
    REPEATED_AS_HALVES,
    HALVES_AS_REPEATED,
    SINE_FIRST_AS_PAIRS,
    COSINES_ALONE,
    SINES_ALONE,
    LAYOUTS
} layout;

// Entry j of the table [all cosines, all sines], or of pairs of cosine and sine.
static sinkproof_turn_entry of_halves(size_t half, size_t j) {
    return (sinkproof_turn_entry){j < half ? SINKPROOF_TURN_COS : SINKPROOF_TURN_SIN, j % half};
}

static sinkproof_turn_entry of_pairs(size_t j) {
    return (sinkproof_turn_entry){j % 2 == 0 ? SINKPROOF_TURN_COS : SINKPROOF_TURN_SIN, j / 2};
}

static void lay_out(const entry_fit *fit, layout how) {
    size_t d = fit->d, half = fit->half;
    for (size_t k = 0; k < d; k++) {
        size_t p = k % half, pair = p;
        bool second = k >= half;
        sinkproof_turn_entry *cosine = &fit->entry_k[k], *sine = &fit->entry_k[d + k];
        if (how == REPEATED_AS_HALVES) pair = k / 2;
        if (how == HALVES_AS_REPEATED) pair = (2 * p + second) % half;
        *cosine = (sinkproof_turn_entry){SINKPROOF_TURN_COS, pair};
        *sine = (sinkproof_turn_entry){SINKPROOF_TURN_SIN, pair};
        if (how == HALVES_AS_PAIRS)
            *cosine = of_halves(half, 2 * p), *sine = of_halves(half, 2 * p + 1);
        if (how == SINE_FIRST_AS_PAIRS)
            *cosine = of_halves(half, 2 * p + 1), *sine = of_halves(half, 2 * p);
        if (how == PAIRS_AS_HALVES) *cosine = of_pairs(p), *sine = of_pairs(half + p);
        if (how == COSINES_ALONE) sine->kind = SINKPROOF_TURN_ZERO;
        if (how == SINES_ALONE) cosine->kind = SINKPROOF_TURN_ZERO;
    }
}

static bool try_layouts(composing *c, const entry_fit *fit) {
    static const char *const words[][2] = {
        [HALVES_AS_PAIRS] = {"halves-as-pairs",
                             "the table [all cosines, all sines] is read as pairs "
                             "of cosine and sine: another layout"},
        [PAIRS_AS_HALVES] = {"pairs-as-halves",
                             "the table of pairs of cosine and sine, interleaved, "
                             "is read as [all cosines, all sines]: another "
                             "layout"},
        [REPEATED_AS_HALVES] = {"repeated-as-halves",
                                "each angle is repeated for coordinates 2 p and 2 p + 1, as for "
                                "interleaved pairs, but the rotation pairs the halves of a head: "
                                "the two coordinates of a pair meet other angles"},
        [HALVES_AS_REPEATED] =
            {"halves-as-repeated",
             "the angles are laid out twice end to end, as for halves, but the "
             "rotation pairs coordinates 2 p and 2 p + 1: the two coordinates of "
             "a pair meet other angles"},
        [SINE_FIRST_AS_PAIRS] = {"halves-as-pairs-of-sine-and-cosine",
                                 "the table [all cosines, all sines] is read as pairs of sine and "
                                 "cosine: another layout"},
        [COSINES_ALONE] = {"cosines-alone", "only the product with the cosine is there: the sines "
                                            "are taken as 0"},
        [SINES_ALONE] = {"sines-alone", "only the product with the sine is there: the cosines are "
                                        "taken as 0"}};
    bool fine = true;
    for (int how = 0; how < LAYOUTS && fine && c->found == NULL; how++)
        for (int neighbours = how == HALVES_AS_REPEATED; neighbours < 2 && fine; neighbours++) {
            lay_out(fit, (layout)how);
            composed_mistake *m = entries_new(c, fit, neighbours != 0);
            if (m == NULL) return false;
            composed_name(m, "rope-table-%s%s", words[how][0], neighbours ? "-neighbours" : "");
            composed_say(m, "%s%s (rotation of %s)", words[how][1],
                         neighbours && how != HALVES_AS_REPEATED
                             ? "; and coordinates 2 p and 2 p + 1 are pairs"
                             : "",
                         whose(c));
            fine = composing_try(c, m);
        }
    return fine;
}

// ---- the entries that fit best

// What a coordinate of a row is, of itself and of the other of its pair, over all heads: the
// cosine and the sine, by least squares.
static bool fit_row(const composing *c, const entry_fit *fit, const sinkproof_tensor *x, size_t i,
                    size_t k, double *cosine, double *sine) {
    size_t each = c->elements / c->n, other = k < fit->half ? k + fit->half : k - fit->half;
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, sign = k < fit->half ? -1 : 1;
    for (size_t at = i * each; at < (i + 1) * each; at += fit->d) {
        double a = sinkproof_tensor_value(x, at + k),
               b = sign * sinkproof_tensor_value(x, at + other);
        double y = c->v[at + k];
        aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y;
    }
    double area = aa * bb - ab * ab;
    if (!(area > 0.05 * aa * bb)) return false;
    *cosine = (ay * bb - by * ab) / area, *sine = (by * aa - ay * ab) / area;
    return true;
}

static double value_of(const entry_fit *fit, sinkproof_turn_entry e, double position, double by) {
    double angle = position * fit->frequency_p[e.pair];
    switch (e.kind) {
    case SINKPROOF_TURN_SIN:
        return by * sin(angle);
    case SINKPROOF_TURN_MINUS_COS:
        return -by * cos(angle);
    case SINKPROOF_TURN_MINUS_SIN:
        return -by * sin(angle);
    case SINKPROOF_TURN_ZERO:
        return 0;
    case SINKPROOF_TURN_ONE:
        return 1;
    case SINKPROOF_TURN_COS:
        break;
    }
    return by * cos(angle);
}

static double entry_distance(const composing *c, const entry_fit *fit, const double *of_i,
                             sinkproof_turn_entry e) {
    const int32_t *positions = sinkproof_trace_positions(c->s->trials.suspect.trace);
    double by = sinkproof_yarn_concentration(fit->config), sum = 0, count = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (isnan(of_i[i])) continue;
        double off = of_i[i] - value_of(fit, e, (double)positions[i], by);
        sum += off * off, count++;
    }
    return count >= 3 ? sum / count : INFINITY;
}

// The entry of a coordinate whose values over the rows are the nearest; the definition's own where
// that is as near.
static bool find_entry(const composing *c, const entry_fit *fit, const double *of_i, size_t at) {
    bool sine = at >= fit->d;
    sinkproof_turn_entry own = {sine ? SINKPROOF_TURN_SIN : SINKPROOF_TURN_COS, at % fit->half};
    double as_own = entry_distance(c, fit, of_i, own), least = as_own;
    fit->entry_k[at] = own;
    for (int kind = SINKPROOF_TURN_COS; kind <= SINKPROOF_TURN_ONE; kind++)
        for (size_t p = 0; p < (kind < SINKPROOF_TURN_ZERO ? fit->half : 1); p++) {
            sinkproof_turn_entry e = {(sinkproof_turn_kind)kind, p};
            double distance = entry_distance(c, fit, of_i, e);
            if (distance < 0.5 * least || (distance < least && least < as_own))
                least = distance, fit->entry_k[at] = e;
        }
    return least < 1e-3;
}

static bool find_entries(const composing *c, const entry_fit *fit, double *room) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(fit->config, c->point, c->place, inputs);
    const sinkproof_tensor *x =
        n > 0 ? sinkproof_trace_find(c->s->trials.suspect.trace, inputs[0].point, inputs[0].layer)
              : NULL;
    bool found = x != NULL && sinkproof_tensor_elements(x) == c->elements;
    for (size_t k = 0; k < fit->d && found; k++) {
        for (size_t i = 0; i < c->n; i++)
            if (!fit_row(c, fit, x, i, k, &room[i], &room[c->n + i]))
                room[i] = room[c->n + i] = NAN;
        found = find_entry(c, fit, room, k) && find_entry(c, fit, room + c->n, fit->d + k);
    }
    return found;
}

static void say_entry(composed_mistake *m, const sinkproof_turn_entry *e) {
    static const char *const kinds[] = {"cos", "sin", "-cos", "-sin", "0", "1"};
    if (e->kind >= SINKPROOF_TURN_ZERO)
        composed_say(m, "%s", kinds[e->kind]);
    else
        composed_say(m, "%s of pair %zu", kinds[e->kind], e->pair);
}

static bool try_found(composing *c, const entry_fit *fit) {
    size_t told = 0;
    composed_mistake *m = entries_new(c, fit, false);
    if (m == NULL) return false;
    composed_name(m, "rope-entries");
    composed_say(m, "coordinates meet other entries of the table: ");
    for (size_t at = 0; at < 2 * fit->d && told < 4; at++) {
        const sinkproof_turn_entry *e = &fit->entry_k[at];
        bool sine = at >= fit->d;
        if (e->kind == (sine ? SINKPROOF_TURN_SIN : SINKPROOF_TURN_COS) &&
            e->pair == at % fit->half)
            continue;
        composed_name(m, "-%zu", at);
        composed_say(m, "%scoordinate %zu has for its %s ", told++ == 0 ? "" : ", ", at % fit->d,
                     sine ? "sine" : "cosine");
        say_entry(m, e);
    }
    composed_say(m, " (rotation of %s)", whose(c));
    return told == 0 || composing_try(c, m);
}

bool compose_entries(composing *c) {
    entry_fit fit = {.config = c->s->trials.config, .d = c->s->trials.config->head_dim};
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    if (fit.config->rotation.kind == SINKPROOF_NO_ROTATION) return true;
    fit.half = fit.d / 2;
    double *room = calloc(fit.half + 2 * c->n + 1, sizeof *room);
    fit.entry_k = calloc(2 * fit.d, sizeof *fit.entry_k);
    fit.frequency_p = room;
    bool fine = room != NULL && fit.entry_k != NULL;
    if (!fine) fail_for_memory(c->s);
    if (fine) sinkproof_yarn_frequencies(c->s->trials.suspect.policy, fit.config, room);
    fine = fine && try_layouts(c, &fit);
    if (fine && c->found == NULL && find_entries(c, &fit, room + fit.half))
        fine = try_found(c, &fit);
    free(room);
    free(fit.entry_k);
    return fine;
}
