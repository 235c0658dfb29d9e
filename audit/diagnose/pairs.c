// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pairs of mistakes, for points that no single mistake explains.
#include "audit/diagnose/search.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    const candidate *c;
    size_t outside;
} ranked;

static int compare_outside(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->outside != y->outside) return x->outside < y->outside ? -1 : 1;
    return x->c < y->c ? -1 : x->c > y->c;
}

// A point that is computed across a sublayer costs as much as that: then a mistake that leaves an
// element as far outside as the definition does is ranked last, and one row tells so.
static double least_rank_distance(const search *s, size_t place, sinkproof_trace_point point) {
    const unsigned core = 1u << TRACE_A6 | 1u << TRACE_A9 | 1u << TRACE_A10 | 1u << TRACE_A11;
    const sinkproof_point_report *r = place_report(&s->trials, point, place);
    return r->bridged && (core & point_bit(point)) == 0 ? r->farthest : INFINITY;
}

// Ranks the mistakes that reach f's point; those that leave the fewest elements outside come first.
static bool rank_nearest_mistakes(search *s, size_t place, diagnosed_finding *f, ranked *r,
                                  size_t *n) {
    double beyond = least_rank_distance(s, place, f->point);
    bool fine = true, possible;
    *n = 0;
    for (size_t i = 0; fine && i < s->n_candidates && !budget_is_spent(s); i++) {
        const candidate *c = &s->of[i];
        mistake_trial t = {.what = c->what};
        if (!c->tried || c->alone || (c->reached & point_bit(f->point)) == 0) continue;
        fine = trial_try_points(&s->trials, place, point_bit(f->point), beyond, &t, &possible);
        if (!fine || !possible) continue;
        keep_if_nearer(f, &t);
        r[(*n)++] = (ranked){c, t.refused ? SIZE_MAX : t.outside[f->point]};
        trials_show_progress(&s->trials, 1);
    }
    qsort(r, *n, sizeof *r, compare_outside);
    return fine;
}

static bool try_pair(search *s, size_t place, const ranked *a, const ranked *b,
                     diagnosed_finding *f, unsigned left) {
    bool possible;
    mistake_trial t = {.what = {2, {a->c->what.mistakes[0], b->c->what.mistakes[0]}}};
    trials_show_progress(&s->trials, 1);
    if (!trial_try_points(&s->trials, place, f->points, f->next_bounds, &t, &possible))
        return false;
    if (possible) keep_if_nearer(f, &t);
    if (!possible || t.refused || (f->points & ~t.inside) != 0) return true;
    if (!trial_try_all(&s->trials, place, false, &t, &possible)) return false;
    if (!possible || !trial_explains(&t, f->points)) return true;
    if (f->n_alike == 0) f->points = t.inside & left; // takes all points that it can
    finding_add_alike(f, &t.what);
    return true;
}

static bool try_pairs(search *s, size_t place, const ranked *r, size_t n, diagnosed_finding *f,
                      unsigned left) {
    bool fine = true;
    size_t tried = 0;
    // pairs in the order of the sum of their ranks
    for (size_t sum = 1; fine && n > 1 && sum <= 2 * n - 3; sum++)
        for (size_t a = sum >= n ? sum - n + 1 : 0; fine && 2 * a < sum; a++) {
            if (budget_is_spent(s)) f->limit = LIMIT_BUDGET;
            if (tried == s->trials.options->pairs) f->limit = LIMIT_PAIRS;
            if (f->limit == LIMIT_BUDGET || f->limit == LIMIT_PAIRS) return true;
            fine = try_pair(s, place, &r[a], &r[sum - a], f, left);
            f->searched++, tried++;
        }
    return fine;
}

void count_suppositions(const search *s, diagnosed_finding *f, sinkproof_trace_point point) {
    size_t all = 0, pairing = 0;
    for (size_t i = 0; i < s->n_candidates; i++) {
        const candidate *c = &s->of[i];
        if ((c->reached & point_bit(point)) == 0) continue;
        all++, pairing += !c->alone, f->searched += c->tried;
    }
    f->suppositions += all + pairing * (pairing - 1) / 2;
}

bool explain_by_pairs(search *s, size_t place, unsigned *left) {
    unsigned point = *left & -*left;
    bool finite = (point & failing_points_not_finite(&s->trials, place)) == 0;
    diagnosed_finding *f = add_finding(s, place, point);
    ranked *r = malloc(s->n_candidates * sizeof *r + 1);
    size_t n;
    if (f == NULL || r == NULL) {
        free(r);
        return f == NULL ? false : fail_for_memory(s);
    }
    count_suppositions(s, f, f->point);
    bool fine = !finite ||
                (rank_nearest_mistakes(s, place, f, r, &n) && try_pairs(s, place, r, n, f, *left));
    if (f->searched < f->suppositions && f->limit == LIMIT_NONE)
        f->limit = budget_is_spent(s) ? LIMIT_BUDGET : LIMIT_OVERFLOW;
    free(r);
    *left &= ~f->points;
    return fine;
}
