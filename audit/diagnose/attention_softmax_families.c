// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at another softmax, at factors that follow a rule, and at masks.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// ---- the softmax

void guess_weighing(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (int w = SINKPROOF_WEIGH_UNDIVIDED; w <= SINKPROOF_WEIGH_AGAIN; w++)
        m.weighing = (sinkproof_weighing)w, hunt_offer(h, &m);
}

// More in the sum than the keys and the sink: a number, or keys of zeros.
void guess_sum(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    m.sum_plus = 1, hunt_offer(h, &m);
    for (double unit = 1e-8; unit < 1; unit *= 10) m.sum_plus = unit, hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.sum_plus, true, 1e6);
    m = defined;
    // the sink's weight may hold theirs, where it is shown
    for (int in = 0; in < (h->view->of->point == TRACE_A9 ? 2 : 1); in++) {
        m.zeros_in_sink = in != 0;
        for (int more = 1; more <= 16; more++) m.zero_keys = more, hunt_offer(h, &m);
        hunt_offer_fitted(h, &m, &m.zero_keys, true, 1e6);
    }
}

void guess_scores_kept(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (m.scores_kept = 1; m.scores_kept < h->view->keys;
         m.scores_kept = hunt_next_size(m.scores_kept))
        hunt_offer(h, &m);
    m.scores_kept = 0;
    for (int half = 1; half <= 60; half++) m.score_within = half / 2.0, hunt_offer(h, &m);
}

void guess_parts_kept(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    // Other families ask for the first tile and the last one, and for rows before the second.
    bool tiles = of->parting == SINKPROOF_PARTS_OF;
    size_t most = tiles ? h->view->keys : 64;
    int last = tiles ? SINKPROOF_KEPT_LAST : SINKPROOF_KEPT_BUT_LAST;
    m.parting = of->parting;
    for (m.part = 2; m.part < h->view->keys && m.part <= most; m.part = hunt_next_size(m.part))
        for (int kept = SINKPROOF_KEPT_HIGHEST; kept <= last; kept++) {
            m.parts_kept = (sinkproof_parts_kept)kept;
            if (!tiles || kept != SINKPROOF_KEPT_LAST || 2 * m.part < h->view->keys)
                hunt_offer(h, &m);
        }
}

// ---- factors that follow a rule

static void offer_rule(hunt *h, bool scores, sinkproof_rule rule, size_t number) {
    sinkproof_attending m = defined;
    if (scores)
        m.score_rule = rule;
    else
        m.output_rule = rule;
    m.rule_number = number;
    hunt_offer(h, &m);
}

void guess_rules(hunt *h, const family_arguments *of) {
    static const size_t lengths[] = {128, 256, 512, 1024, 2048, 4096, 8192};
    (void)of;
    for (int scores = 0; scores < 2; scores++)
        for (int r = SINKPROOF_RULE_LOG_FROM; r < SINKPROOF_RULES; r++) {
            sinkproof_rule rule = (sinkproof_rule)r;
            bool layers = rule >= SINKPROOF_RULE_OVER_LAYER && rule <= SINKPROOF_RULE_UP_LAYER;
            if (layers && h->view->config->n_layers < 3) continue; // a number tells one layer
            bool logs = rule <= SINKPROOF_RULE_LOG;
            bool rows = logs || rule == SINKPROOF_RULE_ROOT_ROW || rule == SINKPROOF_RULE_OVER_ROW;
            for (size_t n = 2; logs && n <= h->view->keys; n = hunt_next_size(n))
                offer_rule(h, scores, rule, n);
            for (size_t i = 0; rule == SINKPROOF_RULE_LOG && i < 7; i++)
                offer_rule(h, scores, rule, lengths[i]);
            if (!logs) offer_rule(h, scores, rule, 1);
            if (!rows && rule != SINKPROOF_RULE_SLOPE_HEAD) offer_rule(h, scores, rule, 2);
        }
}

// ---- the mask

// What is masked is seen, with a score that is not minus infinity.
void guess_leaks(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (m.leaks = 1; m.leaks <= (h->view->layer_window > 0 ? 3u : 1u); m.leaks++)
        for (int leak = SINKPROOF_LEAK_ADDED; leak <= SINKPROOF_LEAK_REPLACED; leak++) {
            m.leak = (sinkproof_leak)leak, m.leak_number = 0;
            if (leak == SINKPROOF_LEAK_REPLACED) hunt_offer(h, &m);
            for (m.leak_number = -1; m.leak_number >= -16; m.leak_number--) hunt_offer(h, &m);
            hunt_offer_fitted(h, &m, &m.leak_number, false, 1e4);
        }
}

// The window of the first or of the last row of a tile.
void guess_row_tiles(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (m.row_tile = 2; m.row_tile < h->view->keys && h->view->layer_window > 0;
         m.row_tile = hunt_next_size(m.row_tile))
        for (int end = 0; end < 2; end++) m.row_tile_end = end != 0, hunt_offer(h, &m);
}

// A tree of drafts that begins at some row.
void guess_trees(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    m.cache.kind = SINKPROOF_CACHE_TREE, m.cache.times = 0;
    for (m.cache.first = 1;
         m.cache.first + 2 < h->view->keys && m.cache.first <= attention_first_failing(h->view);
         m.cache.first++)
        for (m.cache.count = 2; m.cache.count <= 4 && h->view->plain; m.cache.count++) {
            m.cache.by = 0, hunt_offer(h, &m);
            m.cache.by = (ptrdiff_t)h->view->layer_window;
            if (m.cache.by > 0) hunt_offer(h, &m);
        }
}
