// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keeps the guesses of a family that are nearest to the failing queries, and fits numbers to them.
#include "audit/diagnose/attention_hunt.h"
#include "audit/diagnose/roundings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LN2   0.6931471805599453
#define LOG2E 1.4426950408889634

// What the screen may spend, of which a family is left out once it is gone: seconds of a processor.
#define MOST_SPENT 2e9

// ---- a family

size_t hunt_next_size(size_t size) {
    size_t unit = 1;
    while (size >= 64 * unit) unit *= 2;
    return unit < 16 && size >= 64 ? (size + 16) / 16 * 16 : (size + unit) / unit * unit;
}

// The misfit to the failing queries; ends once it is beyond `worst`, or where the two, the four or
// the six queries that are farthest from the definition are not nearer: a cause, and each of two,
// makes them so.
static double misfit_failing(hunt *h, const sinkproof_attending *how, double worst) {
    enum { ASKED_LAST = 6 };
    double sum = 0, defined_sum = 0;
    for (size_t s = 0; s < h->view->n_failing && sum < worst; s++) {
        bool asked = s > 0 && s % 2 == 0 && s <= ASKED_LAST;
        if (asked && !(sum < defined_sum)) return INFINITY;
        defined_sum += h->view->samples[s].misfit;
        sum += attention_misfit(h->view, how, s);
        h->spent += (double)(h->view->columns * (h->view->dim + 24));
    }
    return sum;
}

// Whether the trace shows another point at which the mistake acts first: there it would be seen.
static bool is_shown_elsewhere(const attention_view *v, const sinkproof_attending *how) {
    sinkproof_attending once = *how;
    once.apart = false;
    unsigned points = attending_points(&once);
    // other weights than those that are shown: from the scores that are
    if (how->apart) return points == AT(A11) || (v->scores != NULL && (points & AT(A6)) != 0);
    sinkproof_trace_point first = (sinkproof_trace_point)__builtin_ctz(points);
    return first < v->of->point && sinkproof_trace_find(v->of->trace, first, v->of->layer) != NULL;
}

enum { SAME = 6 }; // guesses of a family that the queries do not tell apart

static bool leaves_out_weights(const sinkproof_attending *how) {
    return how->weight_low > 0 || how->weights_kept > 0;
}

// Whether there are so many; or one that leaves out no weights where this one would.
static bool is_kept_as_near(const hunt *h, const sinkproof_attending *how, double misfit) {
    size_t n = 0;
    bool simpler = false;
    for (size_t i = 0; i < h->n_kept; i++) {
        if (fabs(h->kept[i].misfit - misfit) > 1e-9 * (1 + misfit)) continue;
        n++;
        simpler = simpler || (leaves_out_weights(how) && !leaves_out_weights(&h->kept[i].how));
    }
    return simpler || n >= SAME;
}

void hunt_offer(hunt *h, const sinkproof_attending *offered) {
    sinkproof_attending one = *offered, *how = &one;
    one.apart = h->apart;
    if (is_shown_elsewhere(h->view, how)) return;
    double worst = h->n_kept == KEPT ? h->kept[KEPT - 1].misfit : h->definition;
    if (h->spent > MOST_SPENT) return;
    for (size_t i = 0; i < h->n_kept; i++) { // a fitted number may be one that was offered
        sinkproof_attending same = *how;
        same.times_error = h->kept[i].how.times_error;
        if (memcmp(&h->kept[i].how, &same, sizeof same) == 0) return;
    }
    double misfit = misfit_failing(h, how, worst);
    if (!(misfit < worst) || is_kept_as_near(h, how, misfit)) return;
    size_t at = h->n_kept < KEPT ? h->n_kept++ : KEPT - 1;
    for (; at > 0 && h->kept[at - 1].misfit > misfit; at--) h->kept[at] = h->kept[at - 1];
    h->kept[at] =
        (attention_guess){.how = *how, .misfit = misfit, .family = h->family, .joined = h->joining};
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
    attention_view *v = h->view;
    double along = 0, square = 0, residual = 0, count = 0, at = *number,
           by = 1e-4 * fmax(fabs(at), 1e-3);
    for (size_t s = 0; s < v->n_failing && s < FITTED; s++) {
        double *before = room, *after = room + v->width;
        attention_residual(v, how, s, before);
        *number = at + by;
        attention_residual(v, how, s, after);
        *number = at;
        for (size_t k = 0; k < v->width; k++) {
            double slope = (before[k] - after[k]) / by;
            along += slope * before[k], square += slope * slope;
            residual += before[k] * before[k], count++;
        }
        h->spent += 2 * (double)(v->columns * (v->dim + 24));
    }
    // the emulation leaves out roundings between: its residual says by how much
    *error = square > 0 ? sqrt(fmax(residual / count, 1) / square) : INFINITY;
    return square > 0 ? along / square : 0;
}

enum { TWO_WIDTH = 3 };

// One step of least squares in two numbers; returns false if they are not told apart.
static bool fit_two_step(hunt *h, sinkproof_attending *how, double *const number[2], double *room,
                         double step[2], double off[2]) {
    attention_view *v = h->view;
    double square[2] = {0, 0}, along[2] = {0, 0}, both = 0, residual = 0, count = 0;
    for (size_t s = 0; s < v->n_failing && s < FITTED; s++) {
        double *before = room;
        attention_residual(v, how, s, before);
        for (int a = 0; a < 2; a++) {
            double at = *number[a], by = 1e-4 * fmax(fabs(at), 1e-3),
                   *after = room + (size_t)(a + 1) * v->width;
            *number[a] = at + by;
            attention_residual(v, how, s, after);
            *number[a] = at;
            for (size_t k = 0; k < v->width; k++) after[k] = (before[k] - after[k]) / by;
        }
        const double *x = room + v->width, *y = room + 2 * v->width;
        for (size_t k = 0; k < v->width; k++) {
            square[0] += x[k] * x[k], square[1] += y[k] * y[k], both += x[k] * y[k];
            along[0] += x[k] * before[k], along[1] += y[k] * before[k];
            residual += before[k] * before[k], count++;
        }
        h->spent += 3 * (double)(v->columns * (v->dim + 24));
    }
    double area = square[0] * square[1] - both * both;
    if (!(area > 1e-9 * square[0] * square[1])) return false;
    step[0] = (along[0] * square[1] - along[1] * both) / area;
    step[1] = (along[1] * square[0] - along[0] * both) / area;
    double scale = fmax(residual / count, 1);
    off[0] = sqrt(scale * square[1] / area), off[1] = sqrt(scale * square[0] / area);
    return true;
}

void hunt_offer_fitted_two(hunt *h, sinkproof_attending *how, double *one, double *other,
                           bool from_there) {
    static const double starts[][2] = {{2, 0.5}, {0.5, 2}, {3, 3}, {0.3, 0.3}};
    double *const number[2] = {one, other}, best[2] = {0, 0}, error[2] = {0, 0}, least = INFINITY;
    double *room = malloc(TWO_WIDTH * h->view->width * sizeof *room);
    how->apart = h->apart;
    for (size_t i = 0; room != NULL && i < (from_there ? 1 : 4); i++) {
        double step[2] = {0, 0}, off[2] = {INFINITY, INFINITY};
        for (int a = 0; a < 2 && !from_there; a++) *number[a] = starts[i][a];
        for (int t = 0; t < 25; t++) {
            if (!fit_two_step(h, how, number, room, step, off)) break;
            for (int a = 0; a < 2; a++) {
                double limit = fmax(fabs(*number[a]) / 2, 0.1);
                *number[a] += fmax(-limit, fmin(limit, step[a]));
            }
            bool ended = fabs(step[0]) <= 1e-3 * off[0] && fabs(step[1]) <= 1e-3 * off[1];
            if (ended || !(fabs(*one) < 1e6) || !(fabs(*other) < 1e6)) break;
        }
        double misfit = misfit_failing(h, how, least);
        if (misfit < least)
            least = misfit, best[0] = *one, best[1] = *other, error[0] = off[0], error[1] = off[1];
    }
    free(room);
    how->times_error = 0;
    for (int a = 0; a < 2 && least < INFINITY; a++) {
        *number[a] = simplest_number(best[a], 3 * error[a], sqrt((double)h->view->dim));
        how->times_error =
            fmax(how->times_error, (fabs(*number[a] - best[a]) + 4 * error[a]) / fabs(*number[a]));
    }
    if (least < INFINITY && how->times_error < 1) hunt_offer(h, how);
    how->times_error = 0;
    // what is rounded on the way misleads the fit: whole numbers and their inverses nearby
    for (int a = 0; a < 2 && least < INFINITY; a++)
        *number[a] = fabs(best[a]) >= 1 ? nearbyint(best[a]) : 1 / nearbyint(1 / best[a]);
    bool nearby =
        least < INFINITY && fabs(*one / best[0] - 1) < 0.07 && fabs(*other / best[1] - 1) < 0.07;
    if (nearby) hunt_offer(h, how);
}

static bool is_simple(double x, double error) {
    return fabs(nearbyint(4 * x) / 4 - x) <= error && nearbyint(4 * x) != 0;
}

// A sink that is counted c times is one to which log(c) is added: the simpler number is said.
static bool is_told_by_plus(const sinkproof_attending *how, const double *number, double error) {
    double x = *number;
    if (number == &how->sink_count)
        return x > 0 && !is_simple(x, error) && is_simple(log(x), error / x);
    if (number != &how->sink_plus || is_simple(x, error)) return false;
    return is_simple(exp(x), error * exp(x)) || is_simple(exp(-x), error * exp(-x));
}

// Fits *number, a member of *how, from each of `n` starts; returns the misfit of the nearest.
static double fit_number(hunt *h, sinkproof_attending *how, double *number, bool positive,
                         const double *starts, size_t n, double *best, double *error) {
    enum { STEPS = 40, STEPS_NEAR = 8 };
    double *room = malloc(2 * h->view->width * sizeof *room), least = INFINITY;
    for (size_t i = 0; room != NULL && i < n; i++) {
        double off, step;
        *number = starts[i];
        for (int t = 0; t < (n > 1 ? STEPS : STEPS_NEAR); t++) {
            step = fit_step(h, how, number, room, &off);
            double limit = positive ? *number / 2 : fmax(fabs(*number), 1);
            *number += fmax(-limit, fmin(limit, step));
            if (fabs(step) <= 1e-3 * off || !(fabs(*number) < 1e6)) break;
        }
        double misfit = misfit_failing(h, how, least);
        if (misfit < least) least = misfit, *best = *number, *error = off;
    }
    free(room);
    return least;
}

// Offers the simplest number within the error of a fit.
static void offer_number(hunt *h, sinkproof_attending *how, double *number, double best,
                         double error) {
    *number = simplest_number(best, 3 * error, sqrt((double)h->view->dim));
    if (is_told_by_plus(how, number, 3 * error)) return;
    how->times_error = (fabs(*number - best) + 4 * error) / fabs(*number);
    if (how->times_error < 1) hunt_offer(h, how); // else not even its sign is known
    how->times_error = 0;
}

void hunt_offer_fitted(hunt *h, sinkproof_attending *how, double *number, bool positive,
                       double most) {
    const double starts[] = {0.3, 1.1, 3, -0.7, -2};
    double best = 0, error = 0;
    how->apart = h->apart;
    *number = starts[0]; // not as defined
    if (is_shown_elsewhere(h->view, how)) return;
    double least = fit_number(h, how, number, positive, starts, positive ? 3 : 5, &best, &error);
    if (!(least < INFINITY) || !(fabs(best) <= most) || (positive && best < 1 / most)) return;
    offer_number(h, how, number, best, error);
}

double hunt_fit(hunt *h, sinkproof_attending *how, double *number) {
    const double starts[] = {0.3, 1.1, 3, -0.7, -2};
    double best = 0, error = 0;
    how->apart = h->apart;
    *number = starts[0];
    if (is_shown_elsewhere(h->view, how)) return INFINITY;
    double least = fit_number(h, how, number, false, starts, 5, &best, &error);
    *number = best;
    return least;
}

void hunt_offer_fitted_from(hunt *h, sinkproof_attending *how, double *number, double start,
                            double below) {
    double best = 0, error = 0;
    how->apart = h->apart;
    if (is_shown_elsewhere(h->view, how)) return;
    if (fit_number(h, how, number, false, &start, 1, &best, &error) < below)
        offer_number(h, how, number, best, error);
}
