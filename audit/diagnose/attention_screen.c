// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Guesses at what is wrong in attention, in families that differ in their numbers. Of a family the
// nearest to the failing queries are kept; then the queries that do not fail tell whether the
// mistake is everywhere or at some place.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LN2   0.6931471805599453
#define LOG2E 1.4426950408889634

// What the screen may spend, of which a family is left out once it is gone: seconds of a processor.
#define MOST_SPENT 2e9

// ---- a family

// The misfit to the failing queries; ends once it is beyond `worst`.
static double misfit_failing(hunt *h, const sinkproof_attending *how, double worst) {
    double sum = 0;
    for (size_t s = 0; s < h->view->n_failing && sum < worst; s++) {
        sum += attention_misfit(h->view, how, s);
        h->spent += (double)(h->view->n * (h->view->dim + 24));
    }
    return sum;
}

void hunt_offer(hunt *h, const sinkproof_attending *how) {
    double worst = h->n_kept == KEPT ? h->kept[KEPT - 1].misfit : INFINITY;
    if (h->spent > MOST_SPENT) return;
    for (size_t i = 0; i < h->n_kept; i++) // a fitted number may be one that was offered
        if (memcmp(&h->kept[i].how, how, sizeof *how) == 0) return;
    double misfit = misfit_failing(h, how, worst);
    if (!(misfit < worst)) return;
    size_t at = h->n_kept < KEPT ? h->n_kept++ : KEPT - 1;
    for (; at > 0 && h->kept[at - 1].misfit > misfit; at--) h->kept[at] = h->kept[at - 1];
    h->kept[at] = (attention_guess){*how, misfit, h->family};
}

static void keep_guess(attention_guesses *out, const attention_guess *guess) {
    size_t at = out->n;
    if (out->n == ATTENTION_GUESSES && !(guess->misfit < out->of[out->n - 1].misfit)) return;
    for (size_t i = 0; i < out->n; i++)
        if (memcmp(&out->of[i].how, &guess->how, sizeof guess->how) == 0) return;
    if (out->n < ATTENTION_GUESSES)
        out->n++;
    else
        at--;
    for (; at > 0 && out->of[at - 1].misfit > guess->misfit; at--) out->of[at] = out->of[at - 1];
    out->of[at] = *guess;
}

static double misfit_passing(const hunt *h, const sinkproof_attending *how) {
    double sum = 0;
    for (size_t s = 0; s < h->view->n_samples; s++)
        if (!h->view->samples[s].fails) sum += attention_misfit(h->view, how, s);
    return sum;
}

// Everywhere; in the rows that fail; in the heads that fail; in both. A narrower place counts where
// it makes the misfit smaller.
static void place_guess(hunt *h, const attention_guess *found) {
    const attention_view *v = h->view;
    bool rows = v->first_row > 0 || v->end_row < v->n;
    bool heads = v->first_head > 0 || v->end_head < v->heads;
    double least = INFINITY;
    for (int p = 0; p < 4; p++) {
        attention_guess at = *found;
        if (((p & 1) != 0 && !rows) || ((p & 2) != 0 && !heads)) continue;
        if ((p & 1) != 0 && (at.how.first_row > 0 || at.how.end_row > 0)) continue;
        // so many parts from a row on are told by the sink's count there
        if ((p & 1) != 0 && at.how.sink_per_part &&
            (at.how.parting == SINKPROOF_PARTS_AT || at.how.part == 2))
            continue;
        if (p & 1)
            at.how.first_row = v->first_row, at.how.end_row = v->end_row < v->n ? v->end_row : 0;
        if (p & 2)
            at.how.first_head = v->first_head,
            at.how.end_head = v->end_head < v->heads ? v->end_head : 0;
        at.misfit += misfit_passing(h, &at.how);
        if (!(at.misfit < least)) continue;
        least = at.misfit;
        keep_guess(h->out, &at);
    }
}

static void family_end(hunt *h) {
    double all = 0;
    for (size_t s = 0; s < h->view->n_failing; s++) all += h->view->samples[s].misfit;
    for (size_t i = 0; i < h->n_kept; i++)
        if (h->kept[i].misfit < all) place_guess(h, &h->kept[i]);
    h->family++, h->n_kept = 0;
}

// ---- numbers that are fitted

// The simplest number within `error` of x: a whole number or its inverse, a fraction of small
// numbers, a constant of exponentials, the shortest decimal.
static double simplest_number(double x, double error, double root) {
    const double constants[] = {LN2, LOG2E, 1 / root, root, 1 / (root * root), root * root};
    for (int below = 1; below <= 12; below++) {
        double whole = nearbyint(x * below);
        if (whole != 0 && fabs(whole / below - x) <= error) return whole / below;
    }
    if (x != 0 && fabs(1 / nearbyint(1 / x) - x) <= error) return 1 / nearbyint(1 / x);
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (fabs(constants[i] - x) <= error) return constants[i];
    for (double unit = 0.1; unit > 1e-7; unit /= 10)
        if (fabs(nearbyint(x / unit) * unit - x) <= error)
            return nearbyint(x / unit) / nearbyint(1 / unit);
    return x;
}

enum { FITTED = 12 }; // queries that a number is fitted to

// One step of least squares on the residuals; returns the change, and the error of the number.
static double fit_step(hunt *h, sinkproof_attending *how, double *number, double *room,
                       double *error) {
    const attention_view *v = h->view;
    double along = 0, square = 0, at = *number, by = 1e-4 * fmax(fabs(at), 1e-3);
    for (size_t s = 0; s < v->n_failing && s < FITTED; s++) {
        double *before = room, *after = room + v->width;
        attention_residual(v, how, s, before);
        *number = at + by;
        attention_residual(v, how, s, after);
        *number = at;
        for (size_t k = 0; k < v->width; k++) {
            double slope = (before[k] - after[k]) / by;
            along += slope * before[k], square += slope * slope;
        }
        h->spent += 2 * (double)(v->n * (v->dim + 24));
    }
    *error = square > 0 ? 1 / sqrt(square) : INFINITY;
    return square > 0 ? along / square : 0;
}

// Fits *number, a member of *how, from some starts, and offers the nearest; `positive`: no other. A
// number larger than `most`, or smaller than its inverse, is none: then the sink is left out.
void hunt_offer_fitted(hunt *h, sinkproof_attending *how, double *number, bool positive,
                       double most) {
    const double starts[] = {0.3, 1.1, 3, -0.7, -2};
    double *room = malloc(2 * h->view->width * sizeof *room), best = 0, least = INFINITY, error = 0;
    for (size_t i = 0; room != NULL && i < (positive ? 3 : 5); i++) {
        double off, step;
        *number = starts[i];
        for (int t = 0; t < 40; t++) {
            step = fit_step(h, how, number, room, &off);
            double limit = positive ? *number / 2 : fmax(fabs(*number), 1);
            *number += fmax(-limit, fmin(limit, step));
            if (fabs(step) <= 1e-3 * off || !(fabs(*number) < 1e6)) break;
        }
        double misfit = misfit_failing(h, how, least);
        if (misfit < least) least = misfit, best = *number, error = off;
    }
    free(room);
    if (!(least < INFINITY) || !(fabs(best) <= most) || (positive && best < 1 / most)) return;
    *number = simplest_number(best, 4 * error, sqrt((double)h->view->dim));
    hunt_offer(h, how);
}

bool attention_guess_causes(const attention_point *point, attention_guesses *guesses) {
    attention_view view;
    bool there;
    *guesses = (attention_guesses){.n = 0};
    if (!attention_view_open(point, &view, &there)) return false;
    if (!there) return true;
    hunt h = {.view = &view, .out = guesses};
    for (size_t s = 0; s < view.n_samples; s++) guesses->misfit += view.samples[s].misfit;
    for (size_t i = 0; attention_family(i) != NULL; i++) {
        attention_family(i)(&h);
        family_end(&h);
    }
    attention_view_close(&view);
    return true;
}
