// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys that are rotated by another position than their own: that of their slot in a ring, of their
// page, in their pass.
#include "audit/diagnose/composed_read.h"
#include "base/words.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum rule { RING, AT_MOST, PAGES, ANEW, BACKWARDS, RULES } rule;

static size_t position_of(rule r, size_t number, size_t n, size_t p) {
    switch (r) {
    case RING:
        return p % number;
    case AT_MOST:
        return p < number ? p : number;
    case PAGES:
        return p / number * number;
    case ANEW:
        return p < number ? p : p - number;
    case BACKWARDS:
        return n - 1 - p;
    case RULES:
        break;
    }
    return p;
}

static void say(rule r, size_t number, char *text, size_t size) {
    static const char *const words[RULES] = {
        [RING] = "keys that are rotated by their position modulo %s (their slot in a ring)",
        [AT_MOST] = "keys that are rotated by their position, but at most %s",
        [PAGES] = "keys that are rotated by the first position of their page of %s",
        [ANEW] = "keys that are rotated by positions that begin anew at token %s",
        [BACKWARDS] = "keys that are rotated by their positions from the end on"};
    char plain[24];
    snprintf(plain, sizeof plain, "%zu", number);
    snprintf(text, size, words[r], r == PAGES ? sinkproof_counted(number, "token").text : plain);
}

// y: key j rotated on from its position to that of the rule.
static void turn_keys(const kernel *x, rule r, size_t number, const double *frequency_p,
                      double *y) {
    size_t half = x->d / 2;
    for (size_t j = 0; j < x->n; j++) {
        double by = (double)position_of(r, number, x->n, j) - (double)j;
        for (size_t p = 0; p < half; p++) {
            double c = cos(by * frequency_p[p]), s = sin(by * frequency_p[p]);
            for (size_t g = 0; g < x->groups; g++) {
                size_t at = (j * x->groups + g) * x->d + p;
                y[at] = x->k[at] * c - x->k[at + half] * s;
                y[at + half] = x->k[at + half] * c + x->k[at] * s;
            }
        }
    }
}

bool reading_try_turns(const reading *r) {
    const composing *c = r->o->c;
    const sinkproof_config *config = c->s->trials.config;
    const kernel *x = r->x;
    size_t half = x->d / 2, all = x->n * x->groups * x->d;
    if (config->rotation.kind == SINKPROOF_NO_ROTATION || x->d % 2 != 0) return true;
    double *room = malloc((all + half + 1) * sizeof *room), *frequency_p = room + all;
    bool fine = room != NULL || fail_for_memory(c->s);
    if (fine) sinkproof_yarn_frequencies(c->s->trials.suspect.policy, config, frequency_p);
    for (int kind = 0; kind < RULES && fine; kind++)
        for (size_t number = 2; number < x->n && fine && c->found == NULL; number++) {
            char id[64], text[160];
            if (kind == BACKWARDS && number > 2) break;
            turn_keys(x, (rule)kind, number, frequency_p, room);
            snprintf(id, sizeof id, "keys-turned-%d-%zu", kind, number);
            say((rule)kind, number, text, sizeof text);
            fine = reading_try_passes(r, room, id, text);
        }
    free(room);
    return fine;
}

// ---- vectors in the place of others

typedef enum place { AHEAD, BEHIND, FIRST_HALF, SECOND_HALF, PLACES } place;

static size_t source_of(place r, size_t number, size_t n, size_t j) {
    size_t half = number / 2, in = j % number, to = j;
    switch (r) {
    case AHEAD:
        to = j + j / number;
        break;
    case BEHIND:
        to = j - j / number;
        break;
    case FIRST_HALF:
        to = in < half ? j : j - half;
        break;
    case SECOND_HALF:
        to = in < half ? j + half : j;
        break;
    case PLACES:
        break;
    }
    return to < n ? to : n - 1;
}

bool reading_try_places(const reading *r) {
    static const char *const words[PLACES] = {
        [AHEAD] = "%s whose place runs ahead by one token more with each %s (at most the last)",
        [BEHIND] = "%s whose place falls behind by one token more with each %s",
        [FIRST_HALF] = "%s of the first half of each tile of %s in the place of the second too",
        [SECOND_HALF] = "%s of the second half of each tile of %s in the place of the first too"};
    const kernel *x = r->x;
    size_t width = x->groups * x->d;
    const double *own = r->of_keys ? x->k : x->v;
    double *made = malloc((x->n * width + 1) * sizeof *made);
    bool fine = made != NULL || fail_for_memory(r->o->c->s);
    for (int kind = 0; kind < PLACES && fine; kind++)
        for (size_t number = 2; number < x->n && fine && r->o->c->found == NULL; number++) {
            char id[64], text[160], plain[24];
            if (kind >= FIRST_HALF && number % 2 != 0) continue;
            for (size_t j = 0; j < x->n; j++)
                memcpy(made + j * width, own + source_of((place)kind, number, x->n, j) * width,
                       width * sizeof *made);
            snprintf(plain, sizeof plain, "%zu", number);
            snprintf(id, sizeof id, "%s-places-%d-%zu", r->of_keys ? "keys" : "values", kind,
                     number);
            snprintf(text, sizeof text, words[kind], r->of_keys ? "keys" : "values",
                     kind >= FIRST_HALF ? sinkproof_counted(number, "token").text : plain);
            fine = reading_try_passes(r, made, id, text);
        }
    free(made);
    return fine;
}
