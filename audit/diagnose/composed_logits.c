// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Logits, F2, as a sampler changes them (penalties of tokens that were seen, all but the largest
// masked), or as shards of the vocabulary are joined with their padding.
#include "audit/diagnose/composed_made.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum logit_kind {
    REPETITION, // of tokens that were seen: divided by a if positive, multiplied if negative
    PRESENCE,   // less a
    FREQUENCY,  // less a for each time
    MASKED,     // a but for the b largest of each row
    PADDED      // shards of a with padding up to b, which holds c
} logit_kind;

enum { KIND, A, B, C, ALL }; // the numbers; ALL: tokens of all positions are seen

// How often each token was seen at row i. count_v holds the numbers for the row before.
static void see_tokens(const sinkproof_making *of, size_t i, uint32_t *count_v) {
    const int32_t *tokens = sinkproof_trace_tokens(of->trace);
    size_t end = of->numbers[ALL] != 0 ? of->n : i + 1, first = i;
    if (of->numbers[ALL] != 0 && i == 0) first = 0;
    if (of->numbers[ALL] != 0 && i > 0) return;
    for (size_t p = first; p < end; p++) count_v[tokens[p]]++;
}

static double penalised(const sinkproof_making *of, double x, uint32_t count) {
    double a = of->numbers[A];
    if (count == 0) return x;
    if (of->numbers[KIND] == REPETITION) return x > 0 ? x / a : x * a;
    return x - a * (of->numbers[KIND] == FREQUENCY ? count : 1);
}

static int compare_falling(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

// The b-th largest of a row; room_v: room for it.
static double largest_but(const double *x_v, size_t v, size_t b, double *room_v) {
    memcpy(room_v, x_v, v * sizeof *room_v);
    qsort(room_v, v, sizeof *room_v, compare_falling);
    return room_v[b - 1];
}

static bool make_logits(const sinkproof_making *of, double *y, double *width) {
    size_t v = of->config->vocab, a = (size_t)fmax(of->numbers[A], 0);
    size_t b = (size_t)fmax(of->numbers[B], 0);
    logit_kind kind = (logit_kind)of->numbers[KIND];
    uint32_t *count_v = calloc(v + 1, sizeof *count_v);
    double *room_v = malloc((v + 1) * sizeof *room_v);
    bool fine = count_v != NULL && room_v != NULL && of->all == of->n * v;
    for (size_t i = 0; fine && i < of->n; i++) {
        const double *x_v = &of->x[i * v];
        double least = kind == MASKED ? largest_but(x_v, v, b, room_v) : 0;
        if (kind <= FREQUENCY) see_tokens(of, i, count_v);
        for (size_t t = 0; t < v; t++) {
            size_t from = kind != PADDED ? t : t % b < a ? t / b * a + t % b : SIZE_MAX;
            bool moved = kind != PADDED || from < v;
            double radius = of->radius != NULL && moved ? of->radius[i * v + from] : 0;
            bool masked = kind == MASKED && x_v[t] < least;
            y[i * v + t] = masked           ? of->numbers[A]
                           : kind == PADDED ? (moved ? x_v[from] : of->numbers[C])
                                            : penalised(of, x_v[t], count_v[t]);
            width[i * v + t] = masked               ? 0
                               : kind == REPETITION ? radius * fmax(of->numbers[A], 1)
                                                    : radius;
        }
    }
    free(count_v);
    free(room_v);
    return fine;
}

// ---- penalties

// What a penalty is, from the elements outside; false: others than those of tokens seen are
// outside.
static bool fit_penalty(const composing *c, logit_kind kind, bool all, fitted_range *t) {
    sinkproof_making of = composing_making(c);
    const double numbers[SINKPROOF_MAKING_NUMBERS] = {[ALL] = all};
    size_t v = c->elements / c->n;
    uint32_t *count_v = calloc(v + 1, sizeof *count_v);
    double sum = 0, weights = 0, outside = 0;
    bool seen = count_v != NULL;
    of.numbers = numbers;
    for (size_t i = 0; seen && i < c->n; i++) {
        see_tokens(&of, i, count_v);
        for (size_t k = 0; k < v && seen; k++) {
            double x = c->mid[i * v + k], y = c->v[i * v + k], count = count_v[k];
            if (!c->marks[i * v + k]) continue;
            seen = count > 0, outside++;
            double one = kind == REPETITION ? (x > 0 ? x / y : y / x) * fabs(x)
                         : kind == PRESENCE ? x - y
                                            : (x - y) * count;
            double weight = kind == REPETITION ? fabs(x) : kind == PRESENCE ? 1 : count * count;
            if (isfinite(one)) sum += one, weights += weight;
        }
    }
    free(count_v);
    t->best = sum / weights;
    double apart = fmax(c->step, 1e-6) * fmax(fabs(t->best), 1) / 4;
    t->lo = t->best - apart, t->hi = t->best + apart;
    return seen && outside > 0 && isfinite(t->best) && t->best != 0;
}

static bool try_penalties(const operation *o) {
    static const char *const words[] = {
        [REPETITION] = "is divided by %s where it is positive and multiplied by it where it is "
                       "negative, at the tokens %s: a repetition penalty",
        [PRESENCE] = "is less by %s at the tokens %s: a presence penalty",
        [FREQUENCY] = "is less by %s for each time that its token stands among the tokens %s: a "
                      "frequency penalty"};
    bool fine = true;
    for (int k = 0; k < 6 && fine && o->c->found == NULL; k++) {
        fitted_range t;
        chosen_number by[FIT_CHOICES];
        logit_kind kind = (logit_kind)(k % 3);
        bool all = k >= 3;
        if (!fit_penalty(o->c, kind, all, &t)) continue;
        size_t n = fit_choose(o->c, &t, by);
        for (size_t i = 0; i < n && fine && o->c->found == NULL; i++) {
            made_kind made = {.make = make_logits,
                              .numbers = {[KIND] = kind, [A] = by[i].value, [ALL] = all}};
            if (by[i].value == 0 || (kind == REPETITION && by[i].value < 0)) continue;
            snprintf(made.id, sizeof made.id, "penalty-%d-%.20s%s", k % 3, by[i].text,
                     all ? "-all" : "");
            snprintf(made.text, sizeof made.text, words[kind], by[i].text,
                     all ? "of all positions" : "seen so far");
            fine = composing_try_made(o, &made);
        }
    }
    return fine;
}

// ---- all but the largest

static bool try_masked(const operation *o) {
    const composing *c = o->c;
    size_t v = c->elements / c->n, kept = SIZE_MAX;
    double mask = NAN;
    for (size_t at = 0; at < c->elements; at++) {
        if (!c->marks[at]) continue;
        if (isnan(mask)) mask = c->v[at];
        if (c->v[at] != mask) return true;
    }
    for (size_t i = 0; i < c->n; i++) {
        size_t here = 0;
        for (size_t k = 0; k < v; k++) here += c->v[i * v + k] != mask;
        if (kept != SIZE_MAX && here != kept) return true;
        kept = here;
    }
    if (kept == 0 || kept >= v) return true;
    made_kind made = {.make = make_logits, .numbers = {MASKED, mask, (double)kept}};
    snprintf(made.id, sizeof made.id, "largest-%zu", kept);
    snprintf(made.text, sizeof made.text,
             "is %g but for the %zu largest of each row: the others are masked (top-k)", mask,
             kept);
    return composing_try_made(o, &made);
}

// ---- shards with padding

// Whether the logits of a row from `from` on stand `by` places later.
static bool stands_later(const composing *c, size_t v, size_t from, size_t by) {
    size_t far = 0, all = 0;
    for (size_t i = 0; i < c->n; i += c->n / 4 + 1)
        for (size_t k = from; k + by < v && k < from + 16; k++) {
            size_t at = i * v + k;
            double near =
                4 * fmax(fmax(c->hi[at] - c->lo[at], fabs(c->mid[at]) * c->step), c->least);
            all++, far += !(fabs(c->v[at + by] - c->mid[at]) <= near);
        }
    return all > 0 && 8 * far <= all;
}

static bool try_padded(const operation *o) {
    enum { MOST_PADDING = 1024 };
    const composing *c = o->c;
    size_t v = c->elements / c->n, first = v;
    bool fine = true;
    for (size_t at = 0; at < c->elements; at++)
        if (c->marks[at] && at % v < first) first = at % v;
    for (size_t by = 1; by <= MOST_PADDING && first + by < v && fine && c->found == NULL; by++) {
        if (first == 0 || !stands_later(c, v, first, by)) continue;
        made_kind made = {.make = make_logits,
                          .numbers = {PADDED, (double)first, (double)(first + by), c->v[first]}};
        snprintf(made.id, sizeof made.id, "padded-%zu-%zu", first, first + by);
        snprintf(made.text, sizeof made.text,
                 "is joined from shards of %s with %zu of padding behind each: from %zu on "
                 "a logit is that of a token %zu earlier",
                 sinkproof_counted(first, "logit").text, by, first + by, by);
        fine = composing_try_made(o, &made);
    }
    return fine;
}

bool compose_logits(composing *c) {
    operation o;
    if (c->point != TRACE_F2 || sinkproof_trace_sequences(c->s->trials.suspect.trace) > 1 ||
        sinkproof_trace_first(c->s->trials.suspect.trace) > 0)
        return true;
    bool fine = operation_read(c, &o) && try_penalties(&o);
    if (fine && c->found == NULL) fine = try_masked(&o);
    if (fine && c->found == NULL) fine = try_padded(&o);
    operation_free(&o);
    return fine;
}
