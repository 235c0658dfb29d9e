// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of one query, from the scores of the keys that it sees.
#include "audit/judge/judge_seen.h"

#include <math.h>

// Whether a key that is read twice can be counted behind the exponential, so that what rounds the
// scores rounds those that are there.
static bool counts_weights(const judge_part *part, const sinkproof_attending *m) {
    bool once = m->sink_count == 1 && !m->sink_per_part && !m->sink_on_key;
    bool plain = m->weighing == SINKPROOF_WEIGH_SOFTMAX && m->sum_plus == 0 && m->zero_keys == 0 &&
                 m->summing.sink_top == SINKPROOF_TOP_ALL && m->summing.format == SINKPROOF_REAL;
    return once && plain && !m->merging.on && !m->renormalised &&
           part->pass->meaning->sink_share == SINKPROOF_SINK_ONCE;
}

// How often each key is read, and its part.
static void read_times(const block *b, const query *q, const sinkproof_honest *z_j,
                       weights_room *room) {
    const sinkproof_attending *m = b->meant;
    size_t parts = 0, last = SIZE_MAX, end = q->position + q->seen;
    for (size_t j = 0; j < q->seen; j++) {
        size_t in = sinkproof_attending_part(m, q->position, end, q->position + j);
        room->times_j[j] = query_key(b, q, q->first_key + j).times;
        if (room->times_j[j] == 0) continue;
        parts += in != last, last = in;
        room->part_j[j] = parts - 1;
    }
    if (m->scores_kept > 0 || m->score_within > 0 || m->parts_kept != SINKPROOF_KEPT_ALL)
        leave_out_scores(m, q->seen, z_j, room->part_j, room->times_j);
}

// The score of a key behind its mask.
static sinkproof_honest masked_score(const judge_part *part, const block *b, const query *q,
                                     const sinkproof_setting *s, size_t key, sinkproof_honest z) {
    const sinkproof_attending *m = b->meant;
    const sinkproof_config *c = part->pass->config;
    const sinkproof_sight sight = {q->all, c->window, c->sliding[part->layer] ? c->window : 0};
    if (!sinkproof_attending_leaks(m, &sight, q->own, key)) return z;
    double error = (m->times_error + 2 * s->u) * fabs(m->leak_number);
    sinkproof_honest by = sinkproof_set_around(m->leak_number, error, error, 0, error);
    return m->leak == SINKPROOF_LEAK_ADDED ? sinkproof_honest_inside(s, sinkproof_honest_add(z, by))
                                           : by;
}

bool query_weights(judge_part *part, const block *b, const query *q, const sinkproof_setting *s,
                   const sinkproof_honest *z_j, sinkproof_honest sink, weights_room *room,
                   double *common) {
    keys_read keys = {.first = q->position,
                      .end = q->position + q->seen,
                      .all = q->all,
                      .part_j = room->part_e,
                      .z_j = room->z_e};
    bool counted = false, leaks = b->meant->leak != SINKPROOF_LEAK_NONE;
    read_times(b, q, z_j, room);
    for (size_t j = 0; j < q->seen; j++) {
        double times = room->times_j[j], sums = query_key(b, q, q->first_key + j).sums;
        if (times == 0) continue;
        keys.parts += keys.n == 0 || room->part_e[keys.n - 1] != room->part_j[j];
        room->part_e[keys.n] = room->part_j[j];
        room->times_e[keys.n] = times, room->sums_e[keys.n] = sums;
        counted = counted || times != 1 || sums != 1;
        sinkproof_honest z = leaks ? masked_score(part, b, q, s, q->position + j, z_j[j]) : z_j[j];
        room->z_e[keys.n++] = score_counted(s, b->meant, times, z);
        if (b->meant->sink_on_key && q->position + j == 0)
            room->z_e[keys.n - 1] = sinkproof_honest_add(room->z_e[keys.n - 1], sink);
    }
    if (b->meant->parts_kept != SINKPROOF_KEPT_ALL)
        for (size_t e = 0; e < keys.n; e++) room->part_e[e] = 0;
    if (b->meant->sink_on_key) sink = sinkproof_exact_set(-INFINITY);
    double count = b->meant->sink_count * (b->meant->sink_per_part ? (double)keys.parts : 1);
    const lse_row row = {b->h, q->i, keys.n, keys.z_j,
                         count == 0
                             ? sinkproof_exact_set(-INFINITY)
                             : score_counted(s, &sinkproof_attending_as_defined, count, sink)};
    if (!judge_lse(part, s, &row)) return false;
    if (counted && counts_weights(part, b->meant)) {
        keys.times_e = room->times_e, keys.sums_e = room->sums_e;
        for (size_t j = 0, e = 0; j < q->seen; j++)
            if (room->times_j[j] != 0) room->z_e[e++] = score_counted(s, b->meant, 1, z_j[j]);
    }
    room->a_e[0] = sinkproof_exact_set(1); // of the sink, where no key is read
    if (keys.n > 0 && !meant_weights(part->pass, b->meant, s, &keys, sink, room->a_e, common))
        return false;
    for (size_t j = 0, e = 0; j < q->seen; j++)
        room->a_j[j] = room->times_j[j] == 0 ? sinkproof_exact_set(0) : room->a_e[e++];
    room->a_j[q->seen] = room->a_e[keys.n];
    if (b->meant->gates > 0) gate_once_more(s, q->seen, room->a_j);
    return true;
}
