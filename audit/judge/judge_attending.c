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
           (m->row_step == 0 || (row - m->first_row) % m->row_step == 0) &&
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
    size_t begin = tile_begin(t, row);
    if (t->anew) {
        *end = *end > begin ? *end - begin : 1;
        *first = *first > begin ? *first - begin : 0;
        return;
    }
    size_t behind = begin < t->first ? t->first : begin + t->rows;
    if (t->later && *end < behind) *end = behind < n ? behind : n;
    if (t->later) return;
    for (size_t k = 0; k < t->before && begin > 0; k++) begin = tile_begin(t, begin - 1);
    if (*first < begin) *first = begin;
}

// The first key of a window, and the end behind the query's own.
static void see_defined(const sinkproof_sight *sight, size_t row, size_t *first, size_t *end) {
    size_t window = sight->layer_window;
    *end = row + 1;
    *first = window > 0 && row + 1 > window ? row + 1 - window : 0;
}

bool sinkproof_attending_leaks(const sinkproof_attending *m, const sinkproof_sight *sight,
                               size_t row, size_t key) {
    size_t first, end;
    see_defined(sight, row, &first, &end);
    return m->leak != SINKPROOF_LEAK_NONE && (key < first || key >= end);
}

static void see_access(const sinkproof_attending *m, const sinkproof_sight *sight, size_t row,
                       size_t *first, size_t *end) {
    size_t begin, stop;
    if (m->cache.kind == SINKPROOF_CACHE_DOCUMENTS) {
        begin = access_document(&m->access, row);
        if (*first < begin) *first = begin;
    }
    if (m->cache.kind != SINKPROOF_CACHE_STRETCHES ||
        !access_stretch(&m->access, row, &begin, &stop))
        return;
    if (*end < stop) *end = stop < sight->n ? stop : sight->n;
    if (m->access.earlier && *first > begin) *first = begin;
}

void sinkproof_attending_seen(const sinkproof_attending *m, const sinkproof_sight *sight,
                              size_t row, size_t *first, size_t *end) {
    if (m->leak != SINKPROOF_LEAK_NONE) {
        see_defined(sight, row, first, end);
        if (m->leaks & SINKPROOF_LEAK_LATER) *end = sight->n;
        if (m->leaks & SINKPROOF_LEAK_EARLIER) *first = 0;
        return;
    }
    size_t window = m->window == SINKPROOF_WINDOW_OFF  ? 0
                    : m->window == SINKPROOF_WINDOW_ON ? sight->window
                                                       : sight->layer_window;
    bool narrower = m->window_by < 0 && window <= (size_t)-m->window_by;
    if (window > 0) window = narrower ? 1 : window + (size_t)m->window_by;
    *end = sight->n - row > m->later ? row + 1 + m->later : sight->n;
    size_t of = row; // the row whose window it is
    if (m->row_tile > 0) of -= row % m->row_tile;
    if (m->row_tile > 0 && m->row_tile_end) of += m->row_tile - 1;
    *first = window > 0 && of + 1 > window ? of + 1 - window : 0;
    if (*first > row) *first = row;
    if (m->window_unit > 0) *first -= *first % m->window_unit;
    if (m->row_unit > 0) *end += (m->row_unit - *end % m->row_unit) % m->row_unit;
    if (*end > sight->n) *end = sight->n;
    if (m->cache.kind == SINKPROOF_CACHE_TREE && m->cache.by > 0 && row >= m->cache.first)
        *first = 0;
    if (m->block > 0 && !m->block_window && *first < row - row % m->block)
        *first = row - row % m->block;
    if (m->block_window && sight->layer_window > 0) *first = row - row % m->block;
    if (m->tiling.rows > 0) see_tiles(&m->tiling, sight->n, row, first, end);
    if (row < m->prefix && *end < m->prefix) *end = m->prefix;
    if (*end > sight->n) *end = sight->n;
    if (*first < m->from) *first = m->from < row ? m->from : row;
    see_access(m, sight, row, first, end);
    if (m->cache.kind == SINKPROOF_CACHE_PASSES &&
        (m->passes.cached != SINKPROOF_SIGHT_DEFINED || m->passes.own != SINKPROOF_SIGHT_DEFINED)) {
        *first = 0, *end = row_pass_end(&m->passes.of, row);
        if (*end > sight->n) *end = sight->n;
    }
}

// Whether key j is the query's own, one before the tree, or above the query in it.
static bool is_ancestor(const sinkproof_cache_read *s, size_t row, size_t j) {
    if (j < s->first || row < s->first) return true;
    size_t node = row - s->first, of = j - s->first;
    while (node > of) node = (node - 1) / s->count;
    return node == of;
}

// Tiles of keys: whether the key is in the last one, behind the last whole one, or in a part of
// one.
static bool is_in_tile(const sinkproof_cache_read *s, size_t row, size_t first, size_t j) {
    size_t base = s->seen ? first : 0, own = row - base, begin = own - own % s->count;
    if (s->kind == SINKPROOF_CACHE_EDGE)
        return first % s->count != 0 && j < first - first % s->count + s->count;
    if (s->kind == SINKPROOF_CACHE_REMAINDER) begin = own + 1 - (own + 1) % s->count;
    bool only = s->kind == SINKPROOF_CACHE_TILE && s->first > 0 && begin == 0;
    return !only && j >= base + begin;
}

bool sinkproof_attending_is_own(const sinkproof_attending *m, size_t row, size_t j) {
    return j >= sinkproof_row_pass_begin(&m->passes.of, row) && j <= row;
}

static bool key_is_meant(const sinkproof_attending *m, size_t row, size_t first, size_t j) {
    const sinkproof_cache_read *s = &m->cache;
    size_t at = j;
    if (s->kind == SINKPROOF_CACHE_DOCUMENTS || s->kind == SINKPROOF_CACHE_STRETCHES) return false;
    if (s->kind == SINKPROOF_CACHE_NONE || (s->spared && sinkproof_attending_is_own(m, row, j)))
        return false;
    if (s->kind == SINKPROOF_CACHE_TREE)
        return !is_ancestor(s, row, j) || (s->by > 0 && j < s->first && j + (size_t)s->by <= row);
    if (s->kind == SINKPROOF_CACHE_BEHIND) return j >= s->first && j + s->count <= row;
    if (s->kind == SINKPROOF_CACHE_LISTED) return access_times(&m->access, row, j) != 1;
    if (s->kind == SINKPROOF_CACHE_ORDER) return true;
    if (s->kind >= SINKPROOF_CACHE_TILE) return is_in_tile(s, row, first, j);
    if (s->kind == SINKPROOF_CACHE_RING) return j + s->count <= row;
    if (s->exchanged && s->by > 0)
        return (j >= s->first && j < s->first + s->count) ||
               (j >= s->first + (size_t)s->by && j < s->first + (size_t)s->by + s->count);
    if (s->kind == SINKPROOF_CACHE_BEFORE && j > row) return false;
    if (s->kind == SINKPROOF_CACHE_BEFORE) at = row - j;
    if (s->kind == SINKPROOF_CACHE_SEEN) at = j - first;
    return at >= s->first && at - s->first < s->count * (s->exchanged ? 2 : 1) &&
           (s->step < 2 || ((at - s->first) % s->step == 0) != s->rest);
}

bool sinkproof_attending_reads(const sinkproof_attending *m, unsigned of, size_t row, size_t first,
                               size_t j) {
    if ((m->read.of & of) == 0 || (m->read.spared && sinkproof_attending_is_own(m, row, j)))
        return false;
    size_t unit = m->read.unit, cached = sinkproof_row_pass_begin(&m->passes.of, row);
    if (m->read.spared && unit > 0 && j - j % unit + unit > cached) return false; // an open page
    return m->cache.kind == SINKPROOF_CACHE_NONE || m->cache.kind == SINKPROOF_CACHE_PASSES ||
           key_is_meant(m, row, first, j);
}

bool sinkproof_attending_reads_range(const sinkproof_attending *m) {
    const sinkproof_cache_read *s = &m->cache;
    return (m->read.of & (SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES)) != 0 &&
           s->kind == SINKPROOF_CACHE_FIXED && s->moved == 0 && s->times == 1 && !s->unsummed;
}

size_t sinkproof_scale_source(const sinkproof_read_as *read, size_t heads, size_t count, size_t g) {
    bool both = read->scale == SINKPROOF_SCALE_OF_TOKEN_HEAD;
    size_t step = both ? heads : 1;
    switch (read->scale_from) {
    case SINKPROOF_SCALE_FROM_FIRST:
        return both ? g % heads : 0;
    case SINKPROOF_SCALE_FROM_HEAD:
        return both ? g - g % heads : g;
    case SINKPROOF_SCALE_FROM_LAST:
        return count - step + g % step;
    case SINKPROOF_SCALE_FROM_BEFORE:
        return g < step ? g : g - step;
    case SINKPROOF_SCALE_FROM_AFTER:
        return g + step < count ? g + step : g;
    case SINKPROOF_SCALE_FROM_OWN:
        break;
    }
    return g;
}

size_t sinkproof_read_place(const sinkproof_read_as *read, size_t rows, size_t heads, size_t dim,
                            size_t at) {
    size_t shape[3] = {read->unit > 0 ? read->unit : rows, heads, dim};
    size_t page = shape[0] * heads * dim, begin = at - at % page;
    const sinkproof_layout layout = sinkproof_layout_at(read->layout);
    if (read->map == SINKPROOF_MAP_ORDER) {
        size_t from = sinkproof_from_index(&read->order, at % dim, dim);
        return from == SIZE_MAX ? at : at - at % dim + from;
    }
    if (read->map != SINKPROOF_MAP_LAYOUT || begin + page > rows * heads * dim) return at;
    return begin + layout_from(&layout, shape, at - begin);
}

static double slope_of_head(sinkproof_slopes slopes, size_t heads, size_t head) {
    size_t power = 1;
    while (2 * power <= heads) power *= 2;
    if (slopes == SINKPROOF_SLOPES_BY_HEAD) return exp2(-8 * (double)(head + 1) / (double)heads);
    return head < power ? exp2(-8 * (double)(head + 1) / (double)power)
                        : exp2(-4 * (double)(2 * (head - power) + 1) / (double)power);
}

double sinkproof_attending_slope(const sinkproof_attending *m, size_t heads, size_t head,
                                 size_t row, size_t key) {
    double slope = m->score_slope, distance = (double)row - (double)key;
    if (m->slopes != SINKPROOF_SLOPES_ALIKE) slope *= slope_of_head(m->slopes, heads, head);
    return slope * distance;
}

// How many keys of the n of a sequence are there for a row, where rows from `steps` on come one by
// one.
static size_t keys_there(size_t steps, size_t n, size_t row) {
    size_t there = row < steps ? steps : row + 1;
    return steps > 0 && there < n ? there : n;
}

size_t sinkproof_attending_column(const sinkproof_attending *m, size_t n, size_t row, size_t j) {
    if (m->columns == SINKPROOF_COLUMNS_WITHOUT_LAST) return j == n ? 0 : j + 1;
    return j == n ? keys_there(m->steps, n, row) - 1 : j > 0 ? j - 1 : n;
}

// The key that stands at j, of tiles in another order.
static size_t ordered_key(const sinkproof_cache_read *s, size_t j) {
    size_t size = s->count, at = j % size, half = size / 2, begin = j - at;
    switch (s->by) {
    case SINKPROOF_TILE_REVERSED:
        return begin + size - 1 - at;
    case SINKPROOF_TILE_HALVES:
        return begin + (at + half) % size;
    case SINKPROOF_TILE_SPREAD:
        return begin + at / 2 + at % 2 * half;
    default:
        return begin + (at < half ? 2 * at : 2 * (at - half) + 1);
    }
}

// What a cache that is filled pass by pass holds for key j.
static sinkproof_key_read pass_key(const sinkproof_attending *m, const sinkproof_sight *sight,
                                   size_t row, size_t j) {
    const sinkproof_pass_place at = {row, sight->n, sight->layer_window};
    sinkproof_key_read read = {.key = j, .value = j, .times = 1, .sums = 1};
    size_t token = pass_slot(&m->passes, &at, j);
    bool none = token >= sight->n;
    if (!pass_sees(&m->passes, &at, j) || (none && m->passes.left_out)) read.times = read.sums = 0;
    if (none)
        read.zero_key = read.zero_value = true;
    else
        read.key = read.value = token;
    return read;
}

sinkproof_key_read sinkproof_attending_key(const sinkproof_attending *m,
                                           const sinkproof_sight *sight, size_t row, size_t first,
                                           size_t j) {
    const sinkproof_cache_read *s = &m->cache;
    size_t n = sight->n;
    sinkproof_key_read read = {.key = j, .value = j, .times = 1, .sums = 1};
    if (s->kind == SINKPROOF_CACHE_PASSES) return pass_key(m, sight, row, j);
    if (!key_is_meant(m, row, first, j)) return read;
    if (s->kind == SINKPROOF_CACHE_LISTED) {
        size_t times = access_times(&m->access, row, j);
        read.zero_key = read.zero_value = times == 0 && m->access.zeros;
        if (!read.zero_key) read.times = read.sums = (double)times;
        return read;
    }
    ptrdiff_t by = s->kind == SINKPROOF_CACHE_TREE ? 0 : s->by, page = (ptrdiff_t)s->count;
    if (s->exchanged && s->by > 0) page = s->by;
    if (s->exchanged) by = j < s->first + s->count ? page : -page;
    if (s->kind == SINKPROOF_CACHE_RING) by = (ptrdiff_t)((row - j) / s->count * s->count);
    ptrdiff_t from = (ptrdiff_t)j + by, end = (ptrdiff_t)keys_there(s->steps, n, row);
    if (s->kind == SINKPROOF_CACHE_ORDER) from = (ptrdiff_t)ordered_key(s, j);
    if (s->circle) from = (from % end + end) % end;
    if (s->edge) from = from < 0 ? 0 : from < end ? from : end - 1;
    bool before = from < 0, after = from >= end;
    bool none = s->zeros || before || after, keys = (s->moved & SINKPROOF_CACHE_KEYS) != 0;
    bool values = (s->moved & SINKPROOF_CACHE_VALUES) != 0;
    read.times = s->times, read.sums = s->unsummed ? 0 : s->times;
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
    case SINKPROOF_PARTS_OF_PASS: {
        const sinkproof_tiling passes = {.first = m->part_begin, .rows = m->part};
        size_t own = tile_begin(&passes, end - 1);
        return j >= own && first < own;
    }
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
    if (m->merging.mean == SINKPROOF_MEAN_NOT) return 1;
    if (m->merging.mean == SINKPROOF_MEAN_SEEN || m->part == 0) return parts;
    if (m->parting == SINKPROOF_PARTS_OF) return (keys + m->part - 1) / m->part;
    if (m->parting == SINKPROOF_PARTS_OF_PASS) return parts;
    if (m->parting == SINKPROOF_PARTS_AT) return keys > m->part ? 2 : 1;
    return m->part;
}

double sinkproof_rule_factor(sinkproof_rule rule, size_t number, const sinkproof_rule_place *at) {
    double n = (double)number, row = (double)at->row + 1, layer = (double)at->layer;
    double head = (double)at->head;
    switch (rule) {
    case SINKPROOF_RULE_LOG_FROM:
        return row > n ? log(row) / log(n) : 1;
    case SINKPROOF_RULE_LOG:
        return log(row) / log(n);
    case SINKPROOF_RULE_ROOT_ROW:
        return 1 / sqrt(row);
    case SINKPROOF_RULE_OVER_ROW:
        return 1 / row;
    case SINKPROOF_RULE_OVER_LAYER:
        return 1 / (layer + n);
    case SINKPROOF_RULE_ROOT_LAYER:
        return 1 / sqrt(layer + n);
    case SINKPROOF_RULE_TIMES_LAYER:
        return layer + n;
    case SINKPROOF_RULE_UP_LAYER:
        return sqrt(layer + n);
    case SINKPROOF_RULE_OVER_HEAD:
        return 1 / (head + n);
    case SINKPROOF_RULE_TIMES_HEAD:
        return head + n;
    case SINKPROOF_RULE_SLOPE_HEAD:
        return exp2(-8 * (head + 1) / (double)at->heads);
    case SINKPROOF_RULE_NONE:
        break;
    }
    return 1;
}

bool sinkproof_part_is_kept(sinkproof_parts_kept kept, size_t part, size_t top, size_t last) {
    switch (kept) {
    case SINKPROOF_KEPT_HIGHEST:
        return part == top;
    case SINKPROOF_KEPT_FIRST:
        return part == 0;
    case SINKPROOF_KEPT_LAST:
        return part == last;
    case SINKPROOF_KEPT_BUT_FIRST:
        return part != 0;
    case SINKPROOF_KEPT_BUT_LAST:
        return part != last;
    case SINKPROOF_KEPT_ALL:
        break;
    }
    return true;
}

bool sinkproof_in_part(sinkproof_in_parts in, size_t part, size_t parts) {
    return in == SINKPROOF_IN_ALL || (in == SINKPROOF_IN_FIRST && part == 0) ||
           (in == SINKPROOF_IN_LAST && part + 1 == parts);
}
