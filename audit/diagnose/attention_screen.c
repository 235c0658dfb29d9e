// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Guesses at what is wrong in attention, in families that differ in their numbers. Of a family the
// nearest to the failing queries are kept; then the queries that do not fail tell whether the
// mistake is everywhere or at some place.
#include "audit/diagnose/attention_screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LN2   0.6931471805599453
#define LOG2E 1.4426950408889634

enum { KEPT = 3 }; // of a family
typedef struct hunt {
    const attention_view *view;
    attention_guesses *out;
    unsigned family;
    size_t n_kept;
    attention_guess kept[KEPT];
    double spent; // multiplications, as of emulations
} hunt;

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

static void offer(hunt *h, const sinkproof_attending *how) {
    double worst = h->n_kept == KEPT ? h->kept[KEPT - 1].misfit : INFINITY;
    if (h->spent > MOST_SPENT) return;
    double misfit = misfit_failing(h, how, worst);
    if (!(misfit < worst)) return;
    size_t at = h->n_kept < KEPT ? h->n_kept++ : KEPT - 1;
    for (; at > 0 && h->kept[at - 1].misfit > misfit; at--) h->kept[at] = h->kept[at - 1];
    h->kept[at] = (attention_guess){*how, misfit, h->family};
}

static void keep_guess(attention_guesses *out, const attention_guess *guess) {
    size_t at = out->n;
    if (out->n == ATTENTION_GUESSES && !(guess->misfit < out->of[out->n - 1].misfit)) return;
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
static void offer_fitted(hunt *h, sinkproof_attending *how, double *number, bool positive,
                         double most) {
    const double starts[] = {0.3, 1.1, 3, -0.7, -2};
    double *room = malloc(2 * h->view->width * sizeof *room), best = 0, least = INFINITY, error = 0;
    for (size_t i = 0; room != NULL && i < (positive ? 3 : 5); i++) {
        double off, step;
        *number = starts[i];
        for (int t = 0; t < 40; t++) {
            step = fit_step(h, how, number, room, &off);
            double most = positive ? *number / 2 : fmax(fabs(*number), 1);
            *number += fmax(-most, fmin(most, step));
            if (fabs(step) <= 1e-3 * off || !(fabs(*number) < 1e6)) break;
        }
        double misfit = misfit_failing(h, how, least);
        if (misfit < least) least = misfit, best = *number, error = off;
    }
    free(room);
    if (!(least < INFINITY) || !(fabs(best) <= most) || (positive && best < 1 / most)) return;
    *number = simplest_number(best, 4 * error, sqrt((double)h->view->dim));
    offer(h, how);
}

// ---- sizes and positions

// Each up to 64 or so; of many keys multiples of 16, then of larger powers of two.
static size_t next_size(size_t size) {
    size_t unit = 1;
    while (size >= 64 * unit) unit *= 2;
    return unit < 16 && size >= 64 ? (size + 16) / 16 * 16 : (size + unit) / unit * unit;
}

// ---- the families

typedef void guess_family(hunt *h);
static const sinkproof_attending defined = SINKPROOF_ATTENDING;

static void guess_sink_count(hunt *h) {
    sinkproof_attending m = defined;
    for (int count = 0; count <= 16; count++)
        if (m.sink_count = count, count != 1) offer(h, &m);
    offer_fitted(h, &m, &m.sink_count, true, 64);
}

static void guess_sink_parts(hunt *h) {
    sinkproof_attending m = defined;
    m.sink_per_part = true;
    for (m.part = 1; m.part < h->view->n; m.part = next_size(m.part)) {
        m.parting = SINKPROOF_PARTS_OF, offer(h, &m);
        m.parting = SINKPROOF_PARTS_AT, offer(h, &m);
        if (m.part < 2 || m.part > 64) continue;
        m.parting = SINKPROOF_PARTS_EQUAL, offer(h, &m);
        m.parting = SINKPROOF_PARTS_OF_ALL, offer(h, &m);
    }
}

static void guess_sink_heads(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c <= SINKPROOF_HEAD_ROW; c++) {
        bool by = c == SINKPROOF_HEAD_SHIFTED || c == SINKPROOF_HEAD_ROW;
        m.sink.choice = (sinkproof_head_choice)c;
        for (m.sink.by = c == SINKPROOF_HEAD_SHIFTED; m.sink.by < (by ? h->view->heads : 1);
             m.sink.by++)
            offer(h, &m);
    }
}

static void guess_sink_times(hunt *h) {
    sinkproof_attending m = defined;
    const double root = sqrt((double)h->view->dim),
                 times[] = {LOG2E, LN2, root, 1 / root, -1, 2, 0};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        m.sink_times = times[i], offer(h, &m);
    offer_fitted(h, &m, &m.sink_times, false, 8);
}

static void guess_window(hunt *h) {
    sinkproof_attending m = defined;
    size_t n = h->view->n, window = h->view->config->window;
    for (size_t w = 1; w < n && window > 0; w = next_size(w)) {
        m.window_by = (ptrdiff_t)w - (ptrdiff_t)window;
        m.window = SINKPROOF_WINDOW_DEFINED;
        if (h->view->sight.layer_window > 0 && w != window) offer(h, &m);
        m.window = SINKPROOF_WINDOW_ON;
        if (h->view->sight.layer_window == 0) offer(h, &m);
    }
    m = defined, m.window = SINKPROOF_WINDOW_OFF;
    if (h->view->sight.layer_window > 0) offer(h, &m);
}

static void guess_later(hunt *h) {
    sinkproof_attending m = defined;
    for (m.later = 1; m.later < h->view->n; m.later = next_size(m.later)) offer(h, &m);
}

// Rows from a position on see no key before it, or before another one.
static void guess_first_key(hunt *h) {
    sinkproof_attending m = defined;
    for (m.from = 1; m.from < h->view->n; m.from = next_size(m.from)) {
        m.first_row = 0, offer(h, &m);
        m.first_row = m.from, offer(h, &m);
    }
}

// The first keys of all left out, and the last ones of a window, are told by another family; and
// without a window the first keys that are seen are those of the cache.
static bool is_told_otherwise(const hunt *h, const sinkproof_cache_read *c) {
    size_t window = h->view->sight.layer_window;
    if (c->kind == SINKPROOF_CACHE_SEEN) return window == 0;
    if (c->times != 0) return false;
    return c->kind == SINKPROOF_CACHE_FIXED ? c->first == 0 && window == 0
                                            : window > 0 && c->first + c->count >= window;
}

// Keys left out, read twice, or read as zeros.
static void guess_keys_counted(hunt *h, sinkproof_cache_kind kind, double times, bool zeros) {
    sinkproof_attending m = defined;
    size_t n = h->view->n;
    m.cache = (sinkproof_cache_read){.kind = kind, .times = times, .zeros = zeros};
    m.cache.moved = zeros ? SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES : 0;
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = next_size(m.cache.count)) {
        // one key anywhere; pages of short caches anywhere, of long ones at their multiples
        size_t step = n <= 128 || m.cache.count == 1 ? 1 : m.cache.count;
        for (m.cache.first = 0; m.cache.first + m.cache.count <= n; m.cache.first += step)
            if (!is_told_otherwise(h, &m.cache)) offer(h, &m);
    }
}
static void guess_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 0, false);
}
static void guess_last_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 0, false);
}
static void guess_first_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_SEEN, 0, false);
}
static void guess_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 2, false);
}
static void guess_last_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 2, false);
}
static void guess_first_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_SEEN, 2, false);
}
static void guess_keys_zero(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 1, true);
}
static void guess_last_keys_zero(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 1, true);
}

// Pages that hold a neighbour's keys, or those of a window before: a write that was lost.
static void guess_pages(hunt *h, unsigned moved) {
    sinkproof_attending m = defined;
    size_t n = h->view->n, window = h->view->config->window;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved};
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = next_size(m.cache.count)) {
        const ptrdiff_t page = (ptrdiff_t)m.cache.count, by[] = {-page, page, -(ptrdiff_t)window};
        size_t step = n <= 64 ? 1 : m.cache.count;
        for (size_t i = 0; i < (window > 0 ? 3 : 2); i++)
            for (m.cache.first = 0; m.cache.first + m.cache.count <= n; m.cache.first += step)
                m.cache.by = by[i], offer(h, &m);
    }
}
static void guess_pages_of_both(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES);
}
static void guess_pages_of_keys(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_KEYS);
}
static void guess_pages_of_values(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_VALUES);
}

// One key that stands in the place of another.
static void guess_key_for_another(hunt *h) {
    sinkproof_attending m = defined;
    size_t n = h->view->n < 256 ? h->view->n : 0;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .count = 1, .times = 1};
    m.cache.moved = SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES;
    for (m.cache.first = 0; m.cache.first < n; m.cache.first++)
        for (size_t from = 0; from < n; from++)
            if (m.cache.by = (ptrdiff_t)from - (ptrdiff_t)m.cache.first, m.cache.by != 0)
                offer(h, &m);
}

// All keys, all values, or the last key, of some keys before or behind.
static void guess_keys_shifted(hunt *h) {
    sinkproof_attending m = defined;
    for (unsigned moved = SINKPROOF_CACHE_KEYS; moved <= 3; moved++)
        for (ptrdiff_t by = -8; by <= 8; by++) {
            if (by == 0) continue;
            m.cache =
                (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved};
            m.cache.count = h->view->n, m.cache.by = by, offer(h, &m);
            m.cache.kind = SINKPROOF_CACHE_BEFORE, m.cache.count = 1, offer(h, &m);
        }
}

static void guess_groups(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_GROUP_SHIFTED; c <= SINKPROOF_GROUP_ONE; c++)
        for (size_t by = c == SINKPROOF_GROUP_SHIFTED; by < h->view->groups; by++) {
            m.group = (sinkproof_group_choice)c, m.group_by = by;
            bool again = c == SINKPROOF_GROUP_MODULUS && by > 0;
            // of two, the other one
            again = again || (c == SINKPROOF_GROUP_ONE && h->view->groups == 2 &&
                              (h->view->end_head <= h->view->heads / 2 ||
                               h->view->first_head >= h->view->heads / 2));
            if (h->view->groups > 1 && !again) offer(h, &m);
        }
}

static void guess_heads(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c < SINKPROOF_HEAD_ROW; c++)
        for (size_t by = c == SINKPROOF_HEAD_SHIFTED;
             by < (c == SINKPROOF_HEAD_SHIFTED ? h->view->heads : 1); by++)
            m.head = (sinkproof_head_from){(sinkproof_head_choice)c, by}, offer(h, &m);
}

static void guess_score_times(hunt *h) {
    sinkproof_attending m = defined;
    offer_fitted(h, &m, &m.score_times, true, 1e6);
}

static void guess_output_times(hunt *h) {
    sinkproof_attending m = defined;
    offer_fitted(h, &m, &m.output_times, false, 1e6);
}

static void guess_renormalised(hunt *h) {
    sinkproof_attending m = defined;
    m.renormalised = true;
    offer(h, &m);
}

// The gate of the sink from a log-sum-exp in another base. Off by a number, it counts the sink more
// often or less.
static void guess_gate(hunt *h) {
    sinkproof_attending m = defined;
    const double exponents[] = {LN2, LOG2E};
    m.merging.on = m.merging.sink_beside = true;
    for (size_t i = 0; i < 2; i++) m.merging.exponent = exponents[i], offer(h, &m);
    offer_fitted(h, &m, &m.merging.exponent, true, 4);
}

// Parts merged by wrong log-sum-exps.
static void offer_merges(hunt *h, sinkproof_attending *m) {
    const double exponents[] = {1, LN2, LOG2E, 0};
    sinkproof_merging *how = &m->merging;
    how->on = true;
    for (int divides = SINKPROOF_IN_NONE; divides <= SINKPROOF_IN_ALL; divides++)
        for (int in_lse = SINKPROOF_IN_NONE; in_lse <= SINKPROOF_IN_ALL; in_lse++)
            for (int i = 0; i < 8; i++) {
                how->sink_divides = (sinkproof_in_parts)divides;
                how->sink_in_lse = (sinkproof_in_parts)in_lse;
                how->sink_beside = i >= 4;
                how->exponent = exponents[i % 4];
                bool consistent = divides == in_lse && how->exponent == 1;
                bool same = how->exponent == 0 && in_lse != SINKPROOF_IN_NONE;
                if (!consistent && !same && !(how->sink_beside && (in_lse != 0 || divides != 0)))
                    offer(h, m);
            }
}
static void guess_merges(hunt *h, sinkproof_parting parting, size_t least, size_t most) {
    sinkproof_attending m = defined;
    m.parting = parting;
    for (m.part = least; m.part < h->view->n && m.part <= most; m.part = next_size(m.part))
        offer_merges(h, &m);
}
static void guess_two_parts(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_AT, 1, SIZE_MAX);
}
static void guess_tiles(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_OF, 1, SIZE_MAX);
}
static void guess_equal_parts(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_EQUAL, 2, 64);
}
static void guess_parts_of_all(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_OF_ALL, 2, 64);
}

// From the few guesses to the many.
static guess_family *const families[] = {guess_sink_count,
                                         guess_sink_times,
                                         guess_sink_heads,
                                         guess_renormalised,
                                         guess_gate,
                                         guess_score_times,
                                         guess_output_times,
                                         guess_groups,
                                         guess_heads,
                                         guess_window,
                                         guess_later,
                                         guess_first_key,
                                         guess_sink_parts,
                                         guess_keys_shifted,
                                         guess_last_keys_left_out,
                                         guess_last_keys_twice,
                                         guess_first_keys_left_out,
                                         guess_first_keys_twice,
                                         guess_keys_left_out,
                                         guess_keys_twice,
                                         guess_keys_zero,
                                         guess_last_keys_zero,
                                         guess_pages_of_both,
                                         guess_pages_of_values,
                                         guess_pages_of_keys,
                                         guess_equal_parts,
                                         guess_parts_of_all,
                                         guess_two_parts,
                                         guess_tiles,
                                         guess_key_for_another};

bool attention_guess_causes(const attention_point *point, attention_guesses *guesses) {
    attention_view view;
    bool there;
    *guesses = (attention_guesses){.n = 0};
    if (!attention_view_open(point, &view, &there)) return false;
    if (!there) return true;
    hunt h = {.view = &view, .out = guesses};
    for (size_t s = 0; s < view.n_samples; s++) guesses->misfit += view.samples[s].misfit;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        families[i](&h);
        family_end(&h);
    }
    attention_view_close(&view);
    return true;
}
