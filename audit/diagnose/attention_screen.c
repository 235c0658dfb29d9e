// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The nearest guesses of all families. The queries that do not fail tell whether the mistake is
// everywhere or at some place.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>
#include <string.h>

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
