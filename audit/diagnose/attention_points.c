// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// At which points a meaning of attention shows.
#include "audit/diagnose/attention_screen.h"
#include "audit/diagnose/roundings.h"

// Whether a meaning changes the values alone, so that scores and weights are as defined.
static bool is_of_values(const sinkproof_attending *m) {
    bool group = m->group != SINKPROOF_GROUP_OWN && m->group_of == SINKPROOF_CACHE_VALUES;
    return m->output_times != 1 || m->apart || group || m->cache.moved == SINKPROOF_CACHE_VALUES ||
           m->read.of == SINKPROOF_CACHE_VALUES;
}

static bool is_of_scores(const sinkproof_attending *m) {
    const unsigned read = SINKPROOF_READ_QUERIES | SINKPROOF_CACHE_KEYS;
    return m->score_times != 1 || m->score_limit > 0 || m->score_plus != 0 || m->score_slope != 0 ||
           m->end_term > 0 || m->query_by != 0 || m->head.choice != SINKPROOF_HEAD_OWN ||
           m->group != SINKPROOF_GROUP_OWN || m->cache.moved != 0 || (m->read.of & read) != 0;
}

unsigned attending_points(const sinkproof_attending *how) {
    bool kept = how->weight_low > 0 || how->weight_high < 1 || how->weights_kept > 0 ||
                how->weights_over || how->read.of == SINKPROOF_READ_WEIGHTS;
    if (is_of_values(how)) return AT(A11);
    if (is_of_scores(how)) return AT(A6) | WEIGHTS;
    return kept ? AT(A10) | AT(A11) : WEIGHTS;
}
