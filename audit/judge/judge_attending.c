// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention as it may be meant: which head, which keys, which parts. Whole numbers alone; the sets
// are made in judge_merging.c and judge_attention.c.
#include "audit/judge/judge_attending.h"

const sinkproof_attending sinkproof_attending_as_defined = SINKPROOF_ATTENDING;

bool sinkproof_attending_is_at(const sinkproof_attending *m, size_t head, size_t row) {
    return row >= m->first_row && (m->end_row == 0 || row < m->end_row) && head >= m->first_head &&
           (m->end_head == 0 || head < m->end_head) &&
           (m->heads == 0 || (head < 64 && (m->heads >> head & 1) != 0));
}

size_t sinkproof_attending_head(sinkproof_head_from from, sinkproof_head_counts n, size_t h,
                                size_t row) {
    size_t each = n.heads / n.groups;
    switch (from.choice) {
    case SINKPROOF_HEAD_SHIFTED:
        return (h + from.by) % n.heads;
    case SINKPROOF_HEAD_REVERSED:
        return n.heads - 1 - h;
    case SINKPROOF_HEAD_GROUP:
        return h / each;
    case SINKPROOF_HEAD_FIRST:
        return h / each * each;
    case SINKPROOF_HEAD_EXCHANGED:
        return h % n.groups * each + h / n.groups;
    case SINKPROOF_HEAD_PAIRS:
        return (h ^ 1) < n.heads ? h ^ 1 : h;
    case SINKPROOF_HEAD_ONE:
        return from.by % n.heads;
    case SINKPROOF_HEAD_ROW:
        return (row + from.by) % n.heads;
    case SINKPROOF_HEAD_OWN:
        break;
    }
    return h;
}

size_t sinkproof_attending_group(const sinkproof_attending *m, sinkproof_head_counts n, size_t h,
                                 unsigned of) {
    size_t own = h / (n.heads / n.groups);
    if (m->group_of != 0 && (m->group_of & of) == 0) return own;
    switch (m->group) {
    case SINKPROOF_GROUP_SHIFTED:
        return (own + m->group_by) % n.groups;
    case SINKPROOF_GROUP_MODULUS:
        return h % n.groups;
    case SINKPROOF_GROUP_UNEVEN:
        return (h + m->group_by) % n.heads / (n.heads / n.groups);
    case SINKPROOF_GROUP_ONE:
        return m->group_by % n.groups;
    case SINKPROOF_GROUP_OWN:
        break;
    }
    return own;
}

// The first row of the tile of row i.
static size_t tile_begin(const sinkproof_tiling *t, size_t i) {
    return i < t->first ? 0 : i - (i - t->first) % t->rows;
}

static void see_tiles(const sinkproof_tiling *t, size_t n, size_t row, size_t *first, size_t *end) {
    size_t begin = tile_begin(t, row), behind = begin < t->first ? t->first : begin + t->rows;
    if (t->later && *end < behind) *end = behind < n ? behind : n;
    if (t->later) return;
    for (size_t k = 0; k < t->before && begin > 0; k++) begin = tile_begin(t, begin - 1);
    if (*first < begin) *first = begin;
}

void sinkproof_attending_seen(const sinkproof_attending *m, const sinkproof_sight *sight,
                              size_t row, size_t *first, size_t *end) {
    size_t window = m->window == SINKPROOF_WINDOW_OFF  ? 0
                    : m->window == SINKPROOF_WINDOW_ON ? sight->window
                                                       : sight->layer_window;
    bool narrower = m->window_by < 0 && window <= (size_t)-m->window_by;
    if (window > 0) window = narrower ? 1 : window + (size_t)m->window_by;
    *end = sight->n - row > m->later ? row + 1 + m->later : sight->n;
    *first = window > 0 && row + 1 > window ? row + 1 - window : 0;
    if (m->window_unit > 0) *first -= *first % m->window_unit;
    if (m->row_unit > 0) *end += (m->row_unit - *end % m->row_unit) % m->row_unit;
    if (*end > sight->n) *end = sight->n;
    if (m->block > 0 && *first < row - row % m->block) *first = row - row % m->block;
    if (m->tiling.rows > 0) see_tiles(&m->tiling, sight->n, row, first, end);
    if (row < m->prefix && *end < m->prefix) *end = m->prefix;
    if (*end > sight->n) *end = sight->n;
    if (*first < m->from) *first = m->from < row ? m->from : row;
}

static bool key_is_meant(const sinkproof_cache_read *s, size_t row, size_t first, size_t j) {
    size_t at = j;
    if (s->kind == SINKPROOF_CACHE_NONE || (s->spared && j == row)) return false;
    if (s->kind == SINKPROOF_CACHE_BEHIND) return j >= s->first && j + s->count <= row;
    if (s->kind == SINKPROOF_CACHE_BEFORE && j > row) return false;
    if (s->kind == SINKPROOF_CACHE_BEFORE) at = row - j;
    if (s->kind == SINKPROOF_CACHE_SEEN) at = j - first;
    return at >= s->first && at - s->first < s->count * (s->exchanged ? 2 : 1) &&
           (s->step < 2 || (at - s->first) % s->step == 0);
}

bool sinkproof_attending_reads(const sinkproof_attending *m, unsigned of, size_t row, size_t first,
                               size_t j) {
    if ((m->read.of & of) == 0 || (m->read.spared && j == row)) return false;
    return m->cache.kind == SINKPROOF_CACHE_NONE || key_is_meant(&m->cache, row, first, j);
}

double sinkproof_attending_slope(const sinkproof_attending *m, size_t heads, size_t head,
                                 size_t row, size_t key) {
    double slope = m->score_slope, distance = (double)row - (double)key;
    if (m->slope_by_head) slope *= exp2(-8 * (double)(head + 1) / (double)heads);
    return slope * distance;
}

sinkproof_key_read sinkproof_attending_key(const sinkproof_attending *m, size_t n, size_t row,
                                           size_t first, size_t j) {
    const sinkproof_cache_read *s = &m->cache;
    sinkproof_key_read read = {.key = j, .value = j, .times = 1};
    if (!key_is_meant(s, row, first, j)) return read;
    ptrdiff_t by = s->by, page = (ptrdiff_t)s->count;
    if (s->exchanged) by = j < s->first + s->count ? page : -page;
    ptrdiff_t from = (ptrdiff_t)j + by;
    if (s->circle) from = (from % (ptrdiff_t)n + (ptrdiff_t)n) % (ptrdiff_t)n;
    bool before = from < 0, after = from >= (ptrdiff_t)n;
    bool none = s->zeros || before || after, keys = (s->moved & SINKPROOF_CACHE_KEYS) != 0;
    bool values = (s->moved & SINKPROOF_CACHE_VALUES) != 0;
    read.times = s->times;
    read.zero_key = none && keys, read.zero_value = none && values;
    if (!none && keys) read.key = (size_t)from;
    if (!none && values) read.value = (size_t)from;
    return read;
}

size_t sinkproof_attending_part(const sinkproof_attending *m, size_t first, size_t end, size_t j) {
    size_t whole = m->parting == SINKPROOF_PARTS_OF_ALL ? end : end - first;
    size_t begin = m->parting == SINKPROOF_PARTS_OF_ALL ? 0 : first;
    size_t each = m->part > 0 ? (whole + m->part - 1) / m->part : whole;
    switch (m->parting) {
    case SINKPROOF_PARTS_AT:
        return j >= m->part && first < m->part;
    case SINKPROOF_PARTS_OF:
        return j / m->part - first / m->part;
    case SINKPROOF_PARTS_EQUAL:
    case SINKPROOF_PARTS_OF_ALL:
        return (j - begin) / each - (first - begin) / each;
    case SINKPROOF_PARTS_ONE:
        break;
    }
    return 0;
}

size_t sinkproof_attending_parts(const sinkproof_attending *m, size_t parts, size_t end,
                                 size_t all) {
    size_t keys = m->merging.mean == SINKPROOF_MEAN_BEGUN ? end : all;
    if (m->merging.mean == SINKPROOF_MEAN_SEEN || m->part == 0) return parts;
    if (m->parting == SINKPROOF_PARTS_OF) return (keys + m->part - 1) / m->part;
    if (m->parting == SINKPROOF_PARTS_AT) return keys > m->part ? 2 : 1;
    return m->part;
}

bool sinkproof_in_part(sinkproof_in_parts in, size_t part, size_t parts) {
    return in == SINKPROOF_IN_ALL || (in == SINKPROOF_IN_FIRST && part == 0) ||
           (in == SINKPROOF_IN_LAST && part + 1 == parts);
}
