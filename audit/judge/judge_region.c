// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where an element of a point is, and which element stands in its place.
#include "audit/judge/judge_region.h"

#include "audit/judge/judge_internal.h"

static bool has_slots(const sinkproof_config *c, sinkproof_trace_point point) {
    return !c->dense &&
           (point == TRACE_M3 || point == TRACE_M4 || (point >= TRACE_M5 && point <= TRACE_M10));
}

// The dimensions of a point's shape, in its order; returns their number.
static size_t point_dimensions(const sinkproof_config *c, sinkproof_trace_point point,
                               sinkproof_dimension *along) {
    size_t shape[SINKPROOF_MAX_RANK], rank = sinkproof_trace_shape(c, point, 1, shape);
    bool groups = point == TRACE_A2_K || point == TRACE_A2_V || point == TRACE_A4_K;
    if (sinkproof_trace_point_is_by_head(point)) {
        along[0] = ALONG_HEADS, along[1] = ALONG_ROWS, along[2] = ALONG_KEYS;
        return 3;
    }
    along[0] = ALONG_ROWS;
    along[rank - 1] = ALONG_COORDINATES;
    if (has_slots(c, point))
        along[1] = ALONG_SLOTS;
    else if (rank == 3)
        along[1] = groups ? ALONG_GROUPS : ALONG_HEADS;
    return rank;
}

sinkproof_place sinkproof_place_of(const sinkproof_config *c, sinkproof_trace_point point, size_t n,
                                   const int32_t *chosen_nk, size_t at) {
    sinkproof_place place;
    sinkproof_dimension along[SINKPROOF_MAX_RANK];
    size_t shape[SINKPROOF_MAX_RANK], rank = sinkproof_trace_shape(c, point, n, shape);
    point_dimensions(c, point, along);
    for (int d = 0; d < SINKPROOF_DIMENSIONS; d++) place.along[d] = SIZE_MAX;
    for (size_t d = rank; d-- > 0; at /= shape[d]) place.along[along[d]] = at % shape[d];
    if (place.along[ALONG_HEADS] != SIZE_MAX)
        place.along[ALONG_GROUPS] = place.along[ALONG_HEADS] / (c->n_heads / c->n_kv_heads);
    if (point == TRACE_M2) place.along[ALONG_EXPERTS] = place.along[ALONG_COORDINATES];
    if (has_slots(c, point) && chosen_nk != NULL) {
        int32_t e = chosen_nk[place.along[ALONG_ROWS] * c->n_chosen + place.along[ALONG_SLOTS]];
        if (e >= 0) place.along[ALONG_EXPERTS] = (size_t)e;
    }
    return place;
}

size_t sinkproof_region_size(const sinkproof_config *c, sinkproof_trace_point point, size_t n,
                             sinkproof_dimension asked) {
    sinkproof_dimension along[SINKPROOF_MAX_RANK];
    size_t shape[SINKPROOF_MAX_RANK], rank = sinkproof_trace_shape(c, point, n, shape), size = 0;
    point_dimensions(c, point, along);
    for (size_t d = 0; d < rank; d++)
        if (along[d] == asked) size = shape[d];
    bool heads = sinkproof_trace_point_is_by_head(point) || (rank == 3 && !has_slots(c, point));
    if (asked == ALONG_GROUPS && heads) size = c->n_kv_heads;
    if (asked == ALONG_EXPERTS && (point == TRACE_M2 || has_slots(c, point))) size = c->n_experts;
    return size;
}

bool sinkproof_region_is_whole(const sinkproof_region *region) {
    bool whole = true;
    for (int d = 0; d < SINKPROOF_DIMENSIONS; d++) whole = whole && region->along[d].end == 0;
    return whole;
}

bool sinkproof_indices_hold(const sinkproof_indices *in, size_t i) {
    if (in->end == 0) return true;
    return i != SIZE_MAX && i >= in->first && i < in->end &&
           (in->step < 2 || (i - in->first) % in->step == 0) &&
           (in->some_i == NULL || in->some_i[i]);
}

bool sinkproof_region_holds(const sinkproof_region *region, const sinkproof_place *place) {
    bool holds = true;
    for (int d = 0; d < SINKPROOF_DIMENSIONS; d++)
        holds = holds && sinkproof_indices_hold(&region->along[d], place->along[d]);
    return holds;
}

// ---- moved elements

size_t sinkproof_from_index(const sinkproof_from *m, size_t i, size_t size) {
    long at = (long)i, all = (long)size;
    if (m->source == SINKPROOF_FROM_NOWHERE) return SIZE_MAX;
    if (m->source == SINKPROOF_FROM_SHIFTED) at += m->by;
    if (m->source == SINKPROOF_FROM_ROLLED) {
        long first = (long)m->first, circle = m->size > 0 ? (long)m->size : all;
        at = first + ((at - first + m->by) % circle + circle) % circle;
    }
    if (m->source == SINKPROOF_FROM_FIXED) at = m->by;
    if (m->source == SINKPROOF_FROM_MIRRORED) at = m->by - at;
    if (m->source == SINKPROOF_FROM_RULE) at = (long)m->rule(i, size, (size_t)m->by);
    return at >= 0 && at < all ? (size_t)at : SIZE_MAX;
}

// The slot of the token `by` places on among those that chose the same expert, as row * k + slot;
// SIZE_MAX: the expert is unknown. The tokens of an expert stand by row, or by slot and row.
static size_t slot_in_batch(const int32_t *chosen_nk, size_t n, size_t k, bool by_slot, size_t slot,
                            long by) {
    size_t before = 0, count = 0, found = SIZE_MAX;
    if (chosen_nk == NULL || chosen_nk[slot] < 0) return SIZE_MAX;
    size_t own = by_slot ? slot % k * n + slot / k : slot;
    for (size_t a = 0; a < n * k; a++) {
        size_t q = by_slot ? a % n * k + a / n : a;
        before += a < own && chosen_nk[q] == chosen_nk[slot];
        count += chosen_nk[q] == chosen_nk[slot];
    }
    long size = (long)count, at = (((long)before + by) % size + size) % size;
    for (size_t a = 0; a < n * k && found == SIZE_MAX; a++) {
        size_t q = by_slot ? a % n * k + a / n : a;
        if (chosen_nk[q] == chosen_nk[slot] && at-- == 0) found = q;
    }
    return found;
}

size_t moved_from(const sinkproof_moving *m, const sinkproof_config *c, size_t n,
                  const int32_t *chosen_nk, size_t at) {
    if (m->from.source == SINKPROOF_FROM_OWN) return at;
    if (m->from.source == SINKPROOF_FROM_NOWHERE) return SIZE_MAX;
    sinkproof_dimension along[SINKPROOF_MAX_RANK];
    size_t shape[SINKPROOF_MAX_RANK], rank = sinkproof_trace_shape(c, m->point, n, shape);
    size_t stride = 1;
    point_dimensions(c, m->point, along);
    if (m->from.source == SINKPROOF_FROM_LAYOUT) {
        const sinkproof_layout layout = sinkproof_layout_at((size_t)m->from.by);
        return rank == 3 ? layout_from(&layout, shape, at) : at;
    }
    if (m->from.source >= SINKPROOF_FROM_BATCH) {
        size_t each = rank == 3 ? shape[2] : 1;
        bool by_slot = m->from.source == SINKPROOF_FROM_BATCH_BY_SLOT;
        size_t from = slot_in_batch(chosen_nk, n, c->n_chosen, by_slot, at / each, m->from.by);
        return from == SIZE_MAX ? at : from * each + at % each;
    }
    for (size_t d = rank; d-- > 0; stride *= shape[d]) {
        if (along[d] != m->along) continue;
        size_t i = at / stride % shape[d], from = sinkproof_from_index(&m->from, i, shape[d]);
        return from == SIZE_MAX ? SIZE_MAX : at - i * stride + from * stride;
    }
    return at;
}

bool moving_picks(const sinkproof_moving *m, const sinkproof_config *c, size_t n,
                  const int32_t *chosen_nk, const sinkproof_place *place) {
    size_t row = place->along[ALONG_ROWS], slot = place->along[ALONG_SLOTS], k = c->n_chosen;
    if (m->pick == SINKPROOF_PICK_ALL) return true;
    if (chosen_nk == NULL || slot == SIZE_MAX) return false;
    int32_t own = chosen_nk[row * k + slot];
    bool highest = true, lowest = true;
    size_t before = 0, after = 0;
    for (size_t s = 0; s < k; s++) {
        highest = highest && chosen_nk[row * k + s] <= own;
        lowest = lowest && chosen_nk[row * k + s] >= own;
    }
    for (size_t q = 0; q < n * k; q++) {
        before += chosen_nk[q] == own && q / k < row;
        after += chosen_nk[q] == own && q / k > row;
    }
    return m->pick == SINKPROOF_PICK_NOT_HIGHEST  ? !highest
           : m->pick == SINKPROOF_PICK_NOT_LOWEST ? !lowest
           : m->pick == SINKPROOF_PICK_BEYOND     ? before >= m->picked
                                                  : after >= m->picked;
}

const int32_t *judge_layer_choices(const judge_pass *pass, size_t layer) {
    return pass->chosen != NULL && layer < pass->config->n_layers
               ? &pass->chosen[layer * pass->n * pass->config->n_chosen]
               : NULL;
}

bool judge_region_holds(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                        size_t at) {
    const sinkproof_region *region = pass->options->region;
    if (region == NULL) return true;
    sinkproof_place place =
        sinkproof_place_of(pass->config, point, pass->n, judge_layer_choices(pass, layer), at);
    return sinkproof_region_holds(region, &place);
}

bool judge_moves(const judge_pass *pass, sinkproof_trace_point point, size_t place) {
    const sinkproof_moving *m = pass->options->moving;
    return m != NULL && m->on && m->point == point &&
           point_doing(pass, point, place) == DOING_JUDGED &&
           sinkproof_trace_find(pass->trace, point, place) != NULL;
}
