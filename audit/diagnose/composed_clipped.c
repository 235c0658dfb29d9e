// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights of a product that are clipped, at a size or at a share of the largest of each group, as
// quantisers do before they round; and codes with a zero point that is off by one.
#include "audit/diagnose/composed_product.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum clip_kind {
    AT_SIZE,  // t
    OF_GROUP, // t times the largest of each group
    CODED     // whole codes from the smallest to the largest of each group
} clip_kind;

enum { KIND, GROUP, T, LEVELS, ZERO, KEPT }; // the numbers; ZERO: how far the zero point is off

// What a row of weights becomes.
static void clip_row(const double *numbers, size_t cols, double *w_c) {
    size_t group = (size_t)numbers[GROUP];
    for (size_t first = 0; first < cols; first += group) {
        double most = 0, high = 0, low = 0;
        size_t end = first + group < cols ? first + group : cols;
        for (size_t c = first; c < end; c++) {
            most = fmax(most, fabs(w_c[c]));
            high = c == first ? w_c[c] : fmax(high, w_c[c]);
            low = c == first ? w_c[c] : fmin(low, w_c[c]);
        }
        double limit = numbers[KIND] == AT_SIZE ? numbers[T] : (float)(most * numbers[T]);
        double step = (float)((high - low) / numbers[LEVELS]);
        double zero = nearbyint((float)(-low / step));
        for (size_t c = first; c < end; c++) {
            if (numbers[KIND] != CODED)
                w_c[c] = fmax(fmin(w_c[c], limit), -limit);
            else if (step > 0) {
                double code = nearbyint((float)(w_c[c] / step)) + zero;
                code = fmax(fmin(code, numbers[LEVELS]), 0);
                w_c[c] = (float)((code - zero - numbers[ZERO]) * step);
            }
            if (numbers[KEPT] != 0) w_c[c] = sinkproof_round(SINKPROOF_BF16, w_c[c]);
        }
    }
}

static bool make_clipped(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    bool known, fine = dense_product_read(of, &p, &known) && known;
    double *w_c = malloc((p.ins + 1) * sizeof *w_c);
    size_t each = p.outs * p.ins, count = 1;
    for (size_t i = 0; fine && p.expert_n != NULL && i < p.n; i++)
        if ((size_t)p.expert_n[i] >= count) count = (size_t)p.expert_n[i] + 1;
    fine = fine && w_c != NULL;
    for (size_t er = 0; fine && er < count * p.outs; er++) {
        memcpy(w_c, p.w_rc + er * p.ins, p.ins * sizeof *w_c);
        clip_row(of->numbers, p.ins, w_c);
        for (size_t i = 0; i < p.n; i++)
            if (dense_matrix(&p, i) == p.w_rc + er / p.outs * each)
                y[i * p.outs + er % p.outs] =
                    p.b_r[er % p.outs] + dense_dot(p.x_nc + i * p.ins, w_c, p.ins);
    }
    if (fine) dense_widths(of, &p, y, width);
    free(w_c);
    dense_product_free(&p);
    return fine;
}

// ---- trials

// How far the sample is, as a share of what the definition is; *near: as in other trials.
static double misfit(const operation *o, const dense_product *p, const double *numbers, double *w_c,
                     bool *near) {
    double apart = 0, own = 0;
    size_t far = 0;
    for (size_t s = 0; s < o->n; s++) {
        size_t at = o->at[s], i = at / p->outs, r = at % p->outs;
        memcpy(w_c, dense_matrix(p, i) + r * p->ins, p->ins * sizeof *w_c);
        clip_row(numbers, p->ins, w_c);
        double y = p->b_r[r] + dense_dot(p->x_nc + i * p->ins, w_c, p->ins);
        apart += (y - o->c->v[at]) * (y - o->c->v[at]);
        own += (o->c->mid[at] - o->c->v[at]) * (o->c->mid[at] - o->c->v[at]);
        far += !value_is_near(o->c, at, y);
    }
    *near = o->n > 0 && 8 * far <= o->n;
    return own > 0 ? apart / own : 1;
}

static bool try_made(const operation *o, const double *numbers, const char *how) {
    made_kind made = {.make = make_clipped, .measured = true};
    memcpy(made.numbers, numbers, sizeof made.numbers);
    snprintf(made.id, sizeof made.id, "weights-clipped-%d-%zu-%.6g-%g%+g%s", (int)numbers[KIND],
             (size_t)numbers[GROUP], numbers[T], numbers[LEVELS], numbers[ZERO],
             numbers[KEPT] != 0 ? "-bf16" : "");
    snprintf(made.text, sizeof made.text, "is computed with %s %s",
             composed_slot_words(o->slots[0]), how);
    return composing_try_made(o, &made);
}

static void say_group(const dense_product *p, size_t group, char *text, size_t size) {
    if (group == p->ins)
        snprintf(text, size, "row");
    else
        snprintf(text, size, "row and group of %.40s", sinkproof_counted(group, "column").text);
}

// The limit that fits best; the shortest number beside it that is as near.
static bool try_limit(const operation *o, const dense_product *p, clip_kind kind, size_t group,
                      double most, double *w_c) {
    enum { STEPS = 64 };
    double numbers[SINKPROOF_MAKING_NUMBERS] = {kind, (double)group, 0, 1, 0, 0};
    double low = 0, high = most, least = 1;
    bool near = false;
    for (int zoom = 0; zoom < 5; zoom++) {
        double step = (high - low) / STEPS, best = low;
        least = INFINITY;
        for (int k = 1; k <= STEPS; k++) {
            numbers[T] = low + step * k;
            double one = misfit(o, p, numbers, w_c, &near);
            if (one < least) least = one, best = numbers[T];
        }
        if (zoom == 0 && !(least < 0.1)) return true;
        low = fmax(best - step, 0), high = best + step;
    }
    double best = (low + high) / 2;
    char text[160], where[64];
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, best);
        numbers[T] = strtod(text, NULL);
        misfit(o, p, numbers, w_c, &near);
        if (near) break;
    }
    if (!near) return true;
    say_group(p, group, where, sizeof where);
    if (kind == AT_SIZE)
        snprintf(text, sizeof text, "clipped: none is larger than %.6g on either side", numbers[T]);
    else
        snprintf(text, sizeof text, "clipped to %.6g times the largest of each %s", numbers[T],
                 where);
    return try_made(o, numbers, text);
}

static bool try_coded(const operation *o, const dense_product *p, size_t group, double *w_c) {
    static const double levels[] = {15, 255, 7};
    bool fine = true, near;
    for (size_t k = 0; k < 3; k++)
        for (int zero = -1; zero <= 1; zero++)
            for (int kept = 0; kept < 2 && fine && o->c->found == NULL; kept++) {
                const double numbers[SINKPROOF_MAKING_NUMBERS] = {CODED,     (double)group, 0,
                                                                  levels[k], zero,          kept};
                char text[200], where[64];
                misfit(o, p, numbers, w_c, &near);
                if (!near) continue;
                say_group(p, group, where, sizeof where);
                snprintf(text, sizeof text,
                         "rounded to codes of 0 to %g with a scale and a zero point for each %s%s",
                         levels[k], where,
                         zero == 0  ? ""
                         : zero > 0 ? ", which are read with a zero point that is 1 too large"
                                    : ", which are read with a zero point that is 1 too small");
                fine = try_made(o, numbers, text);
            }
    return fine;
}

static bool search_clipped(const operation *o, const dense_product *p) {
    double most = 0, *w_c = malloc((p->ins + 1) * sizeof *w_c);
    bool fine = w_c != NULL || fail_for_memory(o->c->s);
    for (size_t s = 0; s < o->n && fine; s++) {
        const double *row = dense_matrix(p, o->at[s] / p->outs) + o->at[s] % p->outs * p->ins;
        for (size_t c = 0; c < p->ins; c++) most = fmax(most, fabs(row[c]));
    }
    if (fine) fine = try_limit(o, p, AT_SIZE, p->ins, most, w_c);
    for (size_t group = p->ins; group >= 16 && fine && o->c->found == NULL;) {
        fine = try_limit(o, p, OF_GROUP, group, 1, w_c) &&
               (o->c->found != NULL || try_coded(o, p, group, w_c));
        size_t next = 128; // powers of two from there on
        while (next >= group) next /= 2;
        group = next;
    }
    free(w_c);
    return fine;
}

bool compose_clipped(composing *c) {
    dense_search *const searches[] = {search_clipped};
    return compose_products(c, 1, searches);
}
