// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at what is wrong in attention: at its sinks, scores, weights, and merged
// parts; and the list of all. A family is one kind of mistake, with all of its numbers.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>

#define LN2   0.6931471805599453
#define LOG2E 1.4426950408889634

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// ---- sinks

static void guess_sink_count(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (int count = 0; count <= 16; count++)
        if (m.sink_count = count, count != 1) hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.sink_count, true, 64);
}

static void guess_sink_parts(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    m.sink_per_part = true;
    for (m.part = 1; m.part < h->view->keys; m.part = hunt_next_size(m.part)) {
        m.parting = SINKPROOF_PARTS_OF, hunt_offer(h, &m);
        m.parting = SINKPROOF_PARTS_AT, hunt_offer(h, &m);
        if (m.part < 2 || m.part > 64) continue;
        m.parting = SINKPROOF_PARTS_EQUAL, hunt_offer(h, &m);
        m.parting = SINKPROOF_PARTS_OF_ALL, hunt_offer(h, &m);
    }
}

static void guess_sink_heads(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c <= SINKPROOF_HEAD_ROW; c++) {
        bool by = c == SINKPROOF_HEAD_SHIFTED || c >= SINKPROOF_HEAD_ONE;
        m.sink.choice = (sinkproof_head_choice)c;
        for (m.sink.by = c == SINKPROOF_HEAD_SHIFTED; m.sink.by < (by ? h->view->heads : 1);
             m.sink.by++)
            hunt_offer(h, &m);
    }
}

static void guess_sink_times(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    const double root = sqrt((double)h->view->dim),
                 times[] = {LOG2E, LN2, root, 1 / root, -1, 2, 0};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        m.sink_times = times[i], hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.sink_times, false, 8);
}

static void guess_sink_plus(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    hunt_offer_fitted(h, &m, &m.sink_plus, false, 1e3);
}

// Clamped on one side, at a whole number or between two.
static void guess_sink_limits(hunt *h, const family_arguments *of) {
    (void)of;
    for (int half = -32; half <= 32; half++) {
        sinkproof_attending m = defined;
        m.sink_low = half / 2.0, hunt_offer(h, &m);
        m = defined, m.sink_high = half / 2.0, hunt_offer(h, &m);
    }
}

// Those of another layer.
static void guess_sink_layers(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    int layers = (int)h->view->config->n_layers;
    (void)of;
    for (m.sink_layer = -layers + 1; m.sink_layer < layers; m.sink_layer++) {
        long from = (long)h->view->of->layer + m.sink_layer;
        if (m.sink_layer != 0 && from >= 0 && from < layers) hunt_offer(h, &m);
    }
}

static void guess_sink_made(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (int made = SINKPROOF_SINK_ABSOLUTE; made <= SINKPROOF_SINK_CUT; made++)
        m.sink_made = (sinkproof_sink_made)made, hunt_offer(h, &m);
    m = defined, m.sink_on_key = true, hunt_offer(h, &m);
    // the sink's weight meets key 0's value; the others their own, or the next one's
    m = defined, m.sink_value = true, hunt_offer(h, &m);
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .by = 1};
    m.cache.count = h->view->keys, m.cache.moved = SINKPROOF_CACHE_VALUES, hunt_offer(h, &m);
    m = defined, m.gates = 1, hunt_offer(h, &m);
}

static void guess_renormalised(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    m.renormalised = true;
    hunt_offer(h, &m);
}

// The gate of the sink from a log-sum-exp in another base. Off by a number, it counts the sink more
// often or less.
static void guess_gate(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    const double exponents[] = {LN2, LOG2E};
    m.merging.on = m.merging.sink_beside = true;
    for (size_t i = 0; i < 2; i++) m.merging.exponent = exponents[i], hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.merging.exponent, true, 4);
}

// ---- scores

// The scale of another width than head_dim: of a padded head, of all heads, of part of one.
static void guess_score_scale(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t d = h->view->dim, all = d * h->view->heads;
    (void)of;
    for (size_t width = 2; width <= 4 * all; width++) {
        bool power = (width & (width - 1)) == 0, part = all % width == 0 || width % d == 0;
        bool usual = width <= 512 && width % 8 == 0;
        m.score_times = sqrt((double)d / (double)width);
        bool plain = nearbyint(m.score_times * 12) == m.score_times * 12; // told by any number
        if (width != d && !plain && (power || part || usual || width <= d)) hunt_offer(h, &m);
    }
}

static void guess_score_times(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.score_times, false, 1e6);
}

static void guess_output_times(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.output_times, false, 1e6);
}

static void guess_logits_times(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.logits_times, true, 1e6);
}

// The scores and the sink are multiplied by the same number where there is none of it, and the
// scores are clamped or capped.
static void guess_score_limit(hunt *h, const family_arguments *of) {
    (void)of;
    for (int soft = 0; soft < 2; soft++) {
        sinkproof_attending m = defined;
        m.limit_soft = soft != 0;
        for (int half = 1; half <= 120; half++) m.score_limit = half / 2.0, hunt_offer(h, &m);
        if (soft) hunt_offer_fitted(h, &m, &m.score_limit, true, 1e4);
    }
}

// A number added to the scores, which is the same as one taken from the sink once they are summed;
// or one for each key of distance, in all heads alike or by their number.
static void guess_score_bias(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    if (h->view->of->point == TRACE_A6) hunt_offer_fitted(h, &m, &m.score_plus, false, 1e6);
    m = defined;
    hunt_offer_fitted(h, &m, &m.score_slope, false, 1e4);
    size_t heads = h->view->heads;
    for (int s = SINKPROOF_SLOPES_BY_HEAD; s <= SINKPROOF_SLOPES_OF_POWER; s++) {
        m.slopes = (sinkproof_slopes)s;
        if (s == SINKPROOF_SLOPES_OF_POWER && (heads & (heads - 1)) == 0) continue;
        m.score_slope = 1, hunt_offer(h, &m);
        hunt_offer_fitted(h, &m, &m.score_slope, false, 1e4);
    }
}

// A part of the coordinates.
static void guess_score_terms(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t d = h->view->dim;
    (void)of;
    for (size_t at = 1; at < d; at++) {
        m.first_term = 0, m.end_term = at, hunt_offer(h, &m);
        m.first_term = at, m.end_term = d, hunt_offer(h, &m);
    }
}

// The query of another row.
static void guess_queries(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (m.query_by = -8; m.query_by <= 8; m.query_by++)
        if (m.query_by != 0) hunt_offer(h, &m);
    m = defined, m.transposed = true;
    if (h->view->plain && h->view->begin == 0) hunt_offer(h, &m);
}

static void guess_heads(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c <= SINKPROOF_HEAD_ONE; c++)
        for (size_t by = c == SINKPROOF_HEAD_SHIFTED;
             by < (c == SINKPROOF_HEAD_SHIFTED || c == SINKPROOF_HEAD_ONE ? h->view->heads : 1);
             by++)
            m.head = (sinkproof_head_from){(sinkproof_head_choice)c, by}, hunt_offer(h, &m);
}

// ---- weights

// Weights that are left out: the small ones, or all but some.
static void guess_weights_kept(hunt *h, const family_arguments *of) {
    static const double of_ten[] = {1, 2, 5};
    sinkproof_attending m = defined;
    (void)of;
    m.weights_over = true;
    hunt_offer(h, &m);
    for (int over = 0; over < 2; over++) {
        m = defined, m.weights_over = over != 0;
        for (double unit = 1e-8; unit < 1; unit *= 10)
            for (size_t i = 0; i < 3; i++) m.weight_low = unit * of_ten[i], hunt_offer(h, &m);
        for (int power = 1; power < 24; power++) m.weight_low = exp2(-power), hunt_offer(h, &m);
        m.weight_low = 0;
        for (m.weights_kept = 1; m.weights_kept < h->view->keys;
             m.weights_kept = hunt_next_size(m.weights_kept))
            hunt_offer(h, &m);
        m.weights_kept = 0;
    }
    for (int part = 1; part < 20; part++)
        m = defined, m.weight_high = part / 20.0, hunt_offer(h, &m);
}

// ---- merged parts

// Parts merged by wrong log-sum-exps.
static void offer_merges(hunt *h, sinkproof_attending *m) {
    const double exponents[] = {1, LN2, LOG2E, 0};
    sinkproof_merging *how = &m->merging;
    *how = (sinkproof_merging){.on = true};
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
                    hunt_offer(h, m);
                how->sink_too = how->sink_beside && i % 4 != 0 && in_lse == 0 && divides == 0;
                if (how->sink_too) hunt_offer(h, m);
                how->sink_too = false;
            }
}

// Parts that are averaged: those without keys too; the sink in each of them, or gating the mean.
static void offer_means(hunt *h, sinkproof_attending *m) {
    sinkproof_merging *how = &m->merging;
    for (int i = 0; i < 12; i++) {
        *how = (sinkproof_merging){
            .on = true, .mean = (sinkproof_in_mean)(i % 4), .gated = i / 4 == 2};
        how->sink_divides = i / 4 == 1 ? SINKPROOF_IN_ALL : SINKPROOF_IN_NONE;
        if (i % 4 != 0 || how->gated) hunt_offer(h, m); // else it was offered
    }
}

// Parts whose merge the sink gates afterwards, or that have each other's log-sum-exps.
static void offer_gated(hunt *h, sinkproof_attending *m) {
    sinkproof_merging *how = &m->merging;
    *how = (sinkproof_merging){.on = true, .exponent = LOG2E, .gated = true};
    hunt_offer(h, m);
    how->exponent = LN2, hunt_offer(h, m);
    how->exponent = 1, how->reversed = true, hunt_offer(h, m);
    how->gated = false, how->sink_divides = how->sink_in_lse = SINKPROOF_IN_ALL;
    hunt_offer(h, m);
    how->sink_divides = how->sink_in_lse = SINKPROOF_IN_LAST, hunt_offer(h, m);
}

// Parts whose sums or outputs stay relative to their own maximum.
static void offer_unscaled(hunt *h, sinkproof_attending *m) {
    sinkproof_merging *how = &m->merging;
    for (int running = 0; running < 2; running++)
        for (unsigned of = 1; of <= 3; of++) {
            *how = (sinkproof_merging){
                .on = true, .exponent = 1, .unscaled = of, .running = running != 0};
            hunt_offer(h, m);
            how->begun = true;
            if (running) hunt_offer(h, m);
        }
}

static void guess_merges(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.parting = of->parting;
    for (m.part = of->least; m.part < h->view->keys && m.part <= of->most;
         m.part = hunt_next_size(m.part)) {
        offer_merges(h, &m);
        offer_means(h, &m);
        offer_unscaled(h, &m);
        offer_gated(h, &m);
    }
}

// The keys of earlier passes and those of the query's own: passes of one length, or from the first
// row that fails on.
static void guess_merged_passes(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.parting = SINKPROOF_PARTS_OF_PASS;
    (void)of;
    for (m.part = 1; m.part < h->view->keys && h->view->plain; m.part = hunt_next_size(m.part))
        for (int first = 0; first < 2; first++) {
            m.part_begin = first ? attention_first_failing(h->view) : m.part;
            if (m.part_begin == 0 || (first && m.part_begin == m.part)) continue;
            offer_merges(h, &m);
            offer_means(h, &m);
            offer_unscaled(h, &m);
            offer_gated(h, &m);
        }
}

// ---- all of them

enum {
    K = SINKPROOF_CACHE_KEYS,
    V = SINKPROOF_CACHE_VALUES,
    Q = SINKPROOF_READ_QUERIES,
    W = SINKPROOF_READ_WEIGHTS
};

// From the few guesses to the many.
static const attention_family families[] = {
    {guess_sink_count, {0}},
    {guess_sink_times, {0}},
    {guess_sink_plus, {0}},
    {guess_sink_limits, {0}},
    {guess_sink_heads, {0}},
    {guess_sink_layers, {0}},
    {guess_renormalised, {0}},
    {guess_gate, {0}},
    {guess_score_scale, {0}},
    {guess_score_times, {0}},
    {guess_logits_times, {0}},
    {guess_score_limit, {0}},
    {guess_score_bias, {0}},
    {guess_score_terms, {0}},
    {guess_weighing, {0}},
    {guess_sum, {0}},
    {guess_sink_tops, {0}},
    {guess_empty_slots, {0}},
    {guess_exponentials, {0}},
    {guess_scores_kept, {0}},
    {guess_rules, {0}},
    {guess_leaks, {0}},
    {guess_row_tiles, {0}},
    {guess_queries, {0}},
    {guess_sink_made, {0}},
    {guess_blocks, {0}},
    {guess_prefix, {0}},
    {guess_across, {0}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_FIXED}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_BEFORE}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .unsummed = true}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = K | V, .zeros = true}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = V, .zeros = true}},
    {guess_stripes, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = K, .zeros = true}},
    {guess_first_keys_kept, {0}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = V, .zeros = true}},
    {guess_output_times, {0}},
    {guess_columns, {0}},
    {guess_weights_kept, {0}},
    {guess_groups, {0}},
    {guess_groups, {.moved = K}},
    {guess_groups, {.moved = V}},
    {guess_groups, {.spared = true}},
    {guess_groups, {.moved = K, .spared = true}},
    {guess_groups, {.moved = V, .spared = true}},
    {guess_heads, {0}},
    {guess_window, {0}},
    {guess_later, {0}},
    {guess_first_key, {0}},
    {guess_sink_parts, {0}},
    {guess_keys_shifted, {0}},
    {guess_keys_shifted, {.spared = true}},
    {guess_sources, {0}},
    {guess_sources, {.spared = true}},
    {guess_reads, {.moved = W}},
    {guess_reads, {.moved = K}},
    {guess_reads, {.moved = V}},
    {guess_reads, {.moved = K | V}},
    {guess_reads, {.moved = Q}},
    {guess_reads, {.moved = Q | K}},
    {guess_reads, {.moved = Q | K | V}},
    {guess_reads, {.moved = K, .spared = true}},
    {guess_reads, {.moved = V, .spared = true}},
    {guess_reads, {.moved = K | V, .spared = true}},
    {guess_other_scales, {.moved = Q}},
    {guess_other_scales, {.moved = K}},
    {guess_other_scales, {.moved = V}},
    {guess_other_scales, {.moved = K | V}},
    {guess_other_scales, {.moved = K, .spared = true}},
    {guess_other_scales, {.moved = V, .spared = true}},
    {guess_orders, {.moved = V}},
    {guess_orders, {.moved = K}},
    {guess_orders, {.moved = Q}},
    {guess_orders, {.moved = K | V}},
    {guess_orders, {.moved = K, .spared = true}},
    {guess_orders, {.moved = V, .spared = true}},
    {guess_orders, {.moved = K | V, .spared = true}},
    {guess_turns, {.moved = K}},
    {guess_turns, {.moved = V}},
    {guess_turns, {.moved = K, .spared = true}},
    {guess_turns, {.moved = V, .spared = true}},
    {guess_changes, {.moved = K}},
    {guess_changes, {.moved = V}},
    {guess_changes, {.moved = Q}},
    {guess_changes, {.moved = Q | K}},
    {guess_changes, {.moved = K | V}},
    {guess_changes, {.moved = K, .spared = true}},
    {guess_changes, {.moved = V, .spared = true}},
    {guess_changes, {.moved = K | V, .spared = true}},
    {guess_layouts, {.moved = K}},
    {guess_layouts, {.moved = V}},
    {guess_layouts, {.moved = K | V}},
    {guess_layouts, {.moved = Q}},
    {guess_layouts, {.moved = K, .spared = true}},
    {guess_layouts, {.moved = V, .spared = true}},
    {guess_layouts, {.moved = K | V, .spared = true}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_BEFORE}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_BEFORE, .times = 2}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_SEEN}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_SEEN, .times = 2}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_FIXED}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_FIXED, .times = 2}},
    {guess_keys_counted,
     {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = K | V, .zeros = true}},
    {guess_keys_counted,
     {.kind = SINKPROOF_CACHE_BEFORE, .times = 1, .moved = K | V, .zeros = true}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_FIXED, .times = 1, .unsummed = true}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_BEFORE, .times = 1, .unsummed = true}},
    {guess_keys_counted, {.kind = SINKPROOF_CACHE_SEEN, .times = 1, .unsummed = true}},
    {guess_last_tiles, {.moved = V, .zeros = true, .times = 1}},
    {guess_last_tiles, {.unsummed = true, .times = 1}},
    {guess_last_tiles, {0}},
    {guess_last_tiles, {.moved = K, .zeros = true, .times = 1}},
    {guess_last_tiles, {.moved = K | V, .zeros = true, .times = 1}},
    {guess_last_tiles, {.times = 2}},
    {guess_last_tiles, {.moved = K, .times = 1}},
    {guess_last_tiles, {.moved = V, .times = 1}},
    {guess_last_tiles, {.moved = K | V, .times = 1}},
    {guess_keys_again, {.moved = K}},
    {guess_keys_again, {.moved = V}},
    {guess_keys_again, {.moved = K | V}},
    {guess_keys_late, {.moved = V}},
    {guess_keys_late, {.moved = K}},
    {guess_keys_late, {.moved = K | V}},
    {guess_tile_orders, {.moved = V}},
    {guess_tile_orders, {.moved = K}},
    {guess_half_windows, {0}},
    {guess_keys_favoured, {.kind = SINKPROOF_CACHE_FIXED}},
    {guess_keys_favoured, {.kind = SINKPROOF_CACHE_BEFORE}},
    {guess_tiles, {0}},
    {guess_trees, {0}},
    {guess_pages, {.moved = K | V}},
    {guess_pages, {.moved = V}},
    {guess_pages, {.moved = K}},
    {guess_range_sources, {.moved = K | V}},
    {guess_range_sources, {.moved = V}},
    {guess_range_sources, {.moved = K}},
    {guess_range_reads, {.moved = K | V}},
    {guess_range_reads, {.moved = V}},
    {guess_range_reads, {.moved = K}},
    {guess_passes, {0}},
    {guess_parts_kept, {.parting = SINKPROOF_PARTS_OF}},
    {guess_parts_kept, {.parting = SINKPROOF_PARTS_EQUAL}},
    {guess_parts_kept, {.parting = SINKPROOF_PARTS_OF_ALL}},
    {guess_rounded_sums, {0}},
    {guess_merges, {.parting = SINKPROOF_PARTS_EQUAL, .least = 2, .most = 64}},
    {guess_merges, {.parting = SINKPROOF_PARTS_OF_ALL, .least = 2, .most = 64}},
    {guess_merges, {.parting = SINKPROOF_PARTS_AT, .least = 1, .most = SIZE_MAX}},
    {guess_merges, {.parting = SINKPROOF_PARTS_OF, .least = 1, .most = SIZE_MAX}},
    {guess_merged_passes, {0}},
    {guess_key_for_another, {0}}};

const attention_family *attention_family_at(size_t i) {
    return i < sizeof families / sizeof families[0] ? &families[i] : NULL;
}
