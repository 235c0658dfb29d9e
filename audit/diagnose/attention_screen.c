// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The nearest guesses of all families. The queries that do not fail tell whether the mistake is
// everywhere or at some place.
#include "audit/diagnose/attention_hunt.h"
#include "audit/diagnose/gains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Guesses that an honest query's misfit does not tell apart: the one that supposes less comes
// first, and of these the one of the family of fewer.
static bool is_before(const attention_guess *a, const attention_guess *b) {
    bool alike = (a->misfit < 1 && b->misfit < 1) ||
                 fabs(a->misfit - b->misfit) <= 1e-9 * (1 + fabs(b->misfit));
    if (alike && a->cost != b->cost) return a->cost < b->cost;
    if (alike && a->family != b->family) return a->family < b->family;
    return a->misfit < b->misfit;
}

static void keep_guess(attention_guesses *out, const attention_guess *guess) {
    size_t at = out->n;
    if (out->n == ATTENTION_GUESSES && !is_before(guess, &out->of[out->n - 1])) return;
    for (size_t i = 0; i < out->n; i++)
        if (memcmp(&out->of[i].how, &guess->how, sizeof guess->how) == 0) return;
    if (out->n < ATTENTION_GUESSES)
        out->n++;
    else
        at--;
    for (; at > 0 && is_before(guess, &out->of[at - 1]); at--) out->of[at] = out->of[at - 1];
    out->of[at] = *guess;
}

static double misfit_passing(const hunt *h, const sinkproof_attending *how) {
    double sum = 0;
    for (size_t s = 0; s < h->view->n_samples; s++)
        if (!h->view->samples[s].fails) sum += attention_misfit(h->view, how, s);
    return sum;
}

// The place that holds the heads that fail: everywhere, from the first of them to the last, or
// those alone. Returns whether it is narrower than the one before it.
static bool place_heads(const attention_view *v, int how, sinkproof_attending *m) {
    size_t most = v->end_head - v->first_head;
    bool range = v->first_head > 0 || v->end_head < v->heads;
    bool some = v->heads <= 64 && (size_t)__builtin_popcountll(v->heads_failing) < most;
    if (how == 1 && range) {
        m->first_head = v->first_head;
        m->end_head = v->end_head < v->heads ? v->end_head : 0;
    }
    if (how == 2) m->heads = v->heads_failing;
    return how == 0 || (how == 1 && range) || (how == 2 && some);
}

// Everywhere; from the first row that fails on; in the rows that fail, or every second of them, or
// third; in the heads that fail; in both. A narrower place counts where it makes the misfit
// smaller.
static void place_guess(hunt *h, const attention_guess *found) {
    const attention_view *v = h->view;
    bool rows = v->first_row > 0 || v->end_row < v->n;
    double least = INFINITY;
    for (int p = 0; p < 12; p++) {
        attention_guess at = *found;
        bool in_rows = p % 4 != 0, open = p % 4 == 1, stepped = p % 4 == 3;
        if (!place_heads(v, p / 4, &at.how) || (in_rows && !rows)) continue;
        // from the first row that fails on, or up to the last one too
        if (in_rows && open && (v->first_row == 0 || v->end_row == v->n)) continue;
        if (stepped && v->row_step == 0) continue;
        if (in_rows && (at.how.first_row > 0 || at.how.end_row > 0)) continue;
        // rules over rows and stripes fit a few rows by chance
        if (in_rows && (at.how.row_tile > 0 || at.how.cache.rest)) continue;
        // so many parts from a row on are told by the sink's count there
        if (in_rows && at.how.sink_per_part &&
            (at.how.parting == SINKPROOF_PARTS_AT || at.how.part == 2))
            continue;
        if (in_rows) at.how.first_row = v->first_row;
        if (in_rows && !open) at.how.end_row = v->end_row < v->n ? v->end_row : 0;
        if (stepped) at.how.row_step = v->row_step;
        at.misfit += misfit_passing(h, &at.how);
        if (!(at.misfit < least)) continue;
        least = at.misfit, at.cost = attention_cost(&at.how, v->n);
        keep_guess(h->out, &at);
    }
}

static void family_end(hunt *h) {
    if (h->n_kept > 0 && h->n_best < ATTENTION_FAMILIES) h->best[h->n_best++] = h->kept[0];
    if (h->n_kept > 0 && !h->joining && h->kept[0].misfit < h->alone.misfit) h->alone = h->kept[0];
    for (size_t i = 0; i < h->n_kept; i++) place_guess(h, &h->kept[i]);
    h->n_kept = 0;
}

static void ask_family(hunt *h, size_t i, size_t begin) {
    h->family = (unsigned)(begin + i);
    attention_family_at(i)->guess(h, &attention_family_at(i)->of);
    bool near = h->n_kept > 0 && h->kept[0].misfit < h->definition / 2;
    if (h->family < ATTENTION_FAMILIES) h->memory->hopeless[h->family] = !near;
    family_end(h);
}

// Whether the nearest guess is as near as an honest query is.
static bool is_explained(const hunt *h) {
    return h->out->n > 0 && h->out->of[0].misfit < (double)h->view->n_samples * log(2);
}

// The families, whose numbers begin at `begin`.
static void hunt_families(hunt *h, size_t begin) {
    size_t found = h->memory->found, n = 0;
    while (attention_family_at(n) != NULL) n++;
    bool first = found > begin && found <= begin + n;
    if (first) ask_family(h, found - 1 - begin, begin);
    if (first && is_explained(h)) return;
    for (size_t i = 0; i < n; i++) {
        bool hopeless = begin + i < ATTENTION_FAMILIES && h->memory->hopeless[begin + i];
        if (!hopeless && !(first && i == found - 1 - begin)) ask_family(h, i, begin);
    }
    h->family = (unsigned)(begin + n);
    h->joining = true;
    hunt_pairs(h);
    family_end(h);
    h->joining = false;
}

// Where other queries fail, no family is without hope.
static void recall(attention_memory *m, const attention_view *v) {
    bool same = m->first_row == v->first_row && m->end_row == v->end_row &&
                m->first_head == v->first_head && m->end_head == v->end_head;
    if (!same) memset(m->hopeless, 0, sizeof m->hopeless);
    m->first_row = v->first_row, m->end_row = v->end_row;
    m->first_head = v->first_head, m->end_head = v->end_head;
}

// Over the elements of the failing queries.
static double gain_over(attention_view *v, const sinkproof_attending *simpler,
                        const sinkproof_attending *how, double *room) {
    double *before = room, *after = room + v->width;
    gains all = {0};
    for (size_t s = 0; s < v->n_failing; s++) {
        attention_residual(v, simpler, s, before);
        attention_residual(v, how, s, after);
        for (size_t k = 0; k < v->width; k++) gains_add(&all, before[k], after[k]);
    }
    return gain_of(&all);
}

static bool measure_gains(hunt *h) {
    attention_guesses *out = h->out;
    double *room = malloc(2 * h->view->width * sizeof *room);
    for (size_t i = 0; room != NULL && i < out->n; i++) {
        attention_guess *g = &out->of[i];
        g->gain = gain_over(h->view, &sinkproof_attending_as_defined, &g->how, room);
        g->gain_of_two = g->joined ? gain_over(h->view, &h->alone.how, &g->how, room) : INFINITY;
    }
    free(room);
    return room != NULL;
}

bool attention_guess_causes(const attention_point *point, attention_memory memory[2],
                            attention_guesses *guesses) {
    attention_view view;
    bool there;
    *guesses = (attention_guesses){.n = 0};
    if (!attention_view_open(point, &view, &there)) return false;
    if (!there) return true;
    hunt h = {.view = &view,
              .out = guesses,
              .memory = &memory[view.layer_window > 0],
              .alone = {.how = sinkproof_attending_as_defined, .misfit = INFINITY}};
    recall(h.memory, &view);
    for (size_t s = 0; s < view.n_samples; s++) guesses->misfit += view.samples[s].misfit;
    for (size_t s = 0; s < view.n_failing; s++) h.definition += view.samples[s].misfit;
    hunt_families(&h, 0);
    h.apart = point->point == TRACE_A11 && view.weights != NULL;
    if (h.apart) hunt_families(&h, h.family + 1);
    bool fine = measure_gains(&h);
    attention_view_close(&view);
    return fine;
}
