// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// At which points a meaning of attention shows.
#include "audit/diagnose/attention_screen.h"
#include "audit/diagnose/roundings.h"

#include <math.h>

// Whether a meaning changes the values alone, so that scores and weights are as defined.
static bool is_of_values(const sinkproof_attending *m) {
    bool group = m->group != SINKPROOF_GROUP_OWN && m->group_of == SINKPROOF_CACHE_VALUES;
    return m->sink_value || m->output_times != 1 || m->output_rule != SINKPROOF_RULE_NONE ||
           m->apart || group || m->cache.moved == SINKPROOF_CACHE_VALUES ||
           m->read.of == SINKPROOF_CACHE_VALUES;
}

// Whether slots of a cache hold other keys.
static bool slots_hold_others(const sinkproof_attending *m) {
    if (m->cache.kind == SINKPROOF_CACHE_LISTED && m->access.zeros) return true;
    sinkproof_slots slots = m->passes.slots;
    if (m->cache.kind != SINKPROOF_CACHE_PASSES || slots == SINKPROOF_SLOTS_OWN) return false;
    return !m->passes.left_out || slots < SINKPROOF_SLOTS_BUT_LAST;
}

static bool is_of_scores(const sinkproof_attending *m) {
    const unsigned read = SINKPROOF_READ_QUERIES | SINKPROOF_CACHE_KEYS;
    return m->score_times != 1 || m->score_rule != SINKPROOF_RULE_NONE || m->score_limit > 0 ||
           m->score_plus != 0 || m->score_slope != 0 || m->end_term > 0 || m->query_by != 0 ||
           m->transposed || m->head.choice != SINKPROOF_HEAD_OWN ||
           m->group != SINKPROOF_GROUP_OWN || m->cache.moved != 0 || (m->read.of & read) != 0 ||
           slots_hold_others(m);
}

// Whether it changes the scores too: what is_of_scores says of values alone is none of them.
static bool scores_beside_values(const sinkproof_attending *m) {
    sinkproof_attending rest = *m;
    bool group = m->group != SINKPROOF_GROUP_OWN && m->group_of == SINKPROOF_CACHE_VALUES;
    if (group) rest.group = SINKPROOF_GROUP_OWN;
    if (m->cache.moved == SINKPROOF_CACHE_VALUES) rest.cache.moved = 0;
    if (m->read.of == SINKPROOF_CACHE_VALUES) rest.read.of = 0;
    return is_of_scores(&rest);
}

// Whether a meaning changes the weights, from the same scores.
static bool is_of_weights(const sinkproof_attending *m) {
    bool sinks = m->sink.choice != SINKPROOF_HEAD_OWN || m->sink_layer != 0 ||
                 m->sink_made != SINKPROOF_SINK_STORED || m->sink_plus != 0 ||
                 m->sink_low > -INFINITY || m->sink_high < INFINITY || m->sink_times != 1 ||
                 m->sink_on_key || m->sink_count != 1 || m->sink_per_part || m->renormalised ||
                 m->gates != 0;
    bool mask = m->window != SINKPROOF_WINDOW_DEFINED || m->window_by != 0 || m->later > 0 ||
                m->from > 0 || m->window_unit > 0 || m->row_unit > 0 || m->row_tile > 0 ||
                m->block > 0 || m->tiling.rows > 0 || m->prefix > 0 || m->across ||
                m->leak != SINKPROOF_LEAK_NONE;
    bool softmax = m->merging.on || m->parts_kept != SINKPROOF_KEPT_ALL || m->logits_times != 1 ||
                   m->weighing != SINKPROOF_WEIGH_SOFTMAX || m->sum_plus != 0 ||
                   m->zero_keys != 0 || m->scores_kept > 0 || m->score_within > 0 ||
                   m->summing.sink_top != SINKPROOF_TOP_ALL || m->summing.format != SINKPROOF_REAL;
    bool cache = m->cache.kind != SINKPROOF_CACHE_NONE && m->cache.moved == 0;
    return sinks || mask || softmax || (cache && !sinkproof_attending_reads_range(m));
}

// Whether it changes the numbers of the scores and nothing else: weights that are judged from the
// scores of the trace are then as defined.
static bool is_of_scores_alone(const sinkproof_attending *m) {
    bool moves = m->cache.kind != SINKPROOF_CACHE_NONE || m->cache.moved != 0 || m->transposed;
    bool values = (m->read.of & SINKPROOF_CACHE_VALUES) != 0 ||
                  (m->group != SINKPROOF_GROUP_OWN && m->group_of != SINKPROOF_CACHE_KEYS);
    return is_of_scores(m) && !is_of_weights(m) && !moves && !values;
}

unsigned attending_points(const sinkproof_attending *how) {
    bool kept = how->weight_low > 0 || how->weight_high < 1 || how->weights_kept > 0 ||
                how->weights_over || how->read.of == SINKPROOF_READ_WEIGHTS ||
                how->columns != SINKPROOF_COLUMNS_DEFINED;
    bool values = is_of_values(how);
    if (how->apart) return AT(A11);
    unsigned points = values ? AT(A11) : 0;
    if (!values && is_of_scores(how)) points |= AT(A6) | (is_of_scores_alone(how) ? 0 : WEIGHTS);
    if (values && scores_beside_values(how)) points |= AT(A6) | WEIGHTS;
    if (is_of_weights(how)) points |= WEIGHTS;
    if (kept) points |= AT(A10) | AT(A11);
    return points != 0 ? points : WEIGHTS;
}
