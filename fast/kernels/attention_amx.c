// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A5 to A11 in one pass on AMX tiles, for a bf16 cache. Sixteen rows (one query head of one query
// each) process a span of 256 positions together, in the steps of fast/kernels/attention.inc:
// scores, softmax, values (fast/kernels/span_amx.inc), and the span is merged into the state of
// each row. Then the next sixteen rows process the same span, whose keys and values are in the
// second-level cache by now; the next span follows when all rows are done.
//
// Tiles flush subnormal numbers. They are used for a row in a span only where nothing can be
// subnormal (amx_attends); otherwise the lanes compute the row's span. First the cache's
// data about the span's blocks, hidden keys included, are checked, which is nearly always
// sufficient; otherwise the visible keys are checked one by one, so that the answer depends only on
// the row and its keys.
#include "fast/kernels/attention_amx.h"
#include "fast/kernels/lanes.h"
#include "fast/kernels/least_amx.h"
#include "fast/kernels/tiles_amx.h"
#include "fast/lanes/exp.h"

#include <math.h>

#include "fast/kernels/exp.inc"
#include "fast/kernels/softmax_sink.inc"

#define INLINE static inline __attribute__((always_inline))

#include "fast/kernels/span_amx.inc"

enum {
    LEAST_VALUE = -58, // values from 2^-58 on
    MOST_VALUE = 20,   // and below 2^20
    LEAST_FIELD = 127 + LEAST_VALUE,
    MOST_FIELD = 127 + MOST_VALUE,
};

// Properties of the keys of a span.
typedef struct facts {
    uint16_t least_k; // the smallest exponent field in a key
    bool values;      // all values are in the range of tiles
} facts;

// The progress of a call: the next group of rows of a span, and after the last group the next span.
typedef struct walk {
    size_t row, last;  // rows up to `last`
    size_t start, end; // places of spans
    facts all;         // of the span at `start`
    // Where the results of spans from `first` on go; NULL: into the rows' states.
    sinkproof_span_state *state_sh;
    float *o_shd;
    size_t first;
} walk;

// ---- whether tiles can be used ----------------------------------------------------------------

// The properties of all keys of the span that some query sees, from the sizes of their blocks.
static facts span_facts(const sinkproof_attention *a, size_t start) {
    size_t low = first_visible(a, a->first), high = smaller_size(a->first + a->n, start + SPAN);
    facts found = {NO_NUMBER, true};
    for (size_t b = (low > start ? low : start) / KEYS; b < (high + KEYS - 1) / KEYS; b++) {
        const sinkproof_sizes *sizes = &a->cache.sizes[b % a->cache.ring];
        if (sizes->least_k < found.least_k) found.least_k = sizes->least_k;
        if (sizes->least_v < LEAST_FIELD || sizes->most_v >= MOST_FIELD) found.values = false;
    }
    return found;
}

static uint16_t panel_number(const uint8_t *panel, size_t row, size_t column) {
    uint16_t bits;
    memcpy(&bits, panel + (column / 2 * 32 + row * 2 + column % 2) * sizeof bits, sizeof bits);
    return bits & 0x7fff;
}

// The same for the keys that row i of a group sees, each checked separately.
static facts find_visible_facts(const amx_rows *r, const group *g, size_t i) {
    facts found = {NO_NUMBER, true};
    const size_t d = r->a->cache.head_dim, start = g->of.start;
    for (size_t j = start + row_places(g, i)->first; j < start + row_places(g, i)->last; j++) {
        const uint8_t *k = key_panel_at(r, j / 16), *v = value_block(r, j / KEYS);
        for (size_t c = 0; c < d; c++) {
            uint16_t size = panel_number(k + c / 32 * TILE, j % 16, c % 32);
            if (size != 0 && size >> 7 < found.least_k) found.least_k = size >> 7;
            size = panel_number(v + c / 16 * TILE, c % 16, j % KEYS);
            if (size != 0 && (size >> 7 < LEAST_FIELD || size >> 7 >= MOST_FIELD))
                found.values = false;
        }
    }
    return found;
}

// The rows for which tiles can be used in the span, a bit each.
static unsigned rows_that_tiles_serve(const amx_rows *r, const group *g, const facts *all) {
    const uint16_t *least_i = r->least_i + (g->row - r->first);
    unsigned rows = 0;
    for (size_t i = 0; i < g->n; i++) {
        facts seen = *all;
        if (least_i[i] != 0 && !(all->values && tiles_serve(all->least_k, least_i[i])))
            seen = find_visible_facts(r, g, i);
        if (seen.values && tiles_serve(seen.least_k, least_i[i])) rows |= 1u << i;
    }
    return rows;
}

// ---- groups of rows --------------------------------------------------------------------------

// Sets the range of keys that a group computes in the span at `start`, and which of them each row
// sees; false: none is visible to any row.
static bool set_span_keys(const amx_rows *r, group *g, size_t start) {
    const sinkproof_attention *a = r->a;
    const size_t first = row_query(r, g, 0), last = row_query(r, g, g->n - 1);
    size_t low = first_visible(a, a->first + first), high = a->first + last + 1;
    low = low > start ? low : start;
    high = smaller_size(high, start + SPAN);
    if (low >= high) return false;
    g->of = (reach){start, low / KEYS, (high + KEYS - 1) / KEYS};
    g->panel = 2 * g->of.first;
    g->largest = g->begun = g->slot = 0;
    for (size_t i = 0; i < ROWS; i++) g->max[i] = -INFINITY, g->sum[i] = 0;
    g->in[0] = visible_places(a, first, start, g->of.first, g->of.last);
    g->in[g->n - 1] = visible_places(a, last, start, g->of.first, g->of.last);
    g->whole = g->in[0].last == g->in[0].to && g->in[g->n - 1].first <= g->in[0].from;
    for (size_t i = 1, query = first, head = row_head(r, g, 0); !g->whole && i < g->n; i++) {
        if (++head == a->group) head = 0, query++;
        g->in[i] =
            head > 0 ? g->in[i - 1] : visible_places(a, query, start, g->of.first, g->of.last);
    }
    return true;
}

// The next group that sees its span; false: there is none.
static bool next_group(const amx_rows *r, walk *at, group *g) {
    for (; at->start < at->end; at->start += SPAN, at->row = r->first) {
        if (at->row == r->first) at->all = span_facts(r->a, at->start);
        while (at->row < at->last) {
            g->row = at->row;
            g->n = smaller_size(at->last - at->row, ROWS);
            at->row += g->n;
            if (!set_span_keys(r, g, at->start)) continue;
            g->served = rows_that_tiles_serve(r, g, &at->all);
            return true;
        }
    }
    return false;
}

// Computes row i alone by the lanes, whose scratch follows that of the rows.
static void attend_by_lanes(const amx_rows *r, group *g, size_t i) {
    sinkproof_attention one = *r->a;
    size_t query = row_query(r, g, i), head = row_head(r, g, i), d = one.cache.head_dim;
    one.group = one.n = 1;
    one.first += query;
    one.sink_h += head;
    one.q += query * one.q_stride + head * d;
    if (one.score != NULL) one.score += head * one.score_head + query * one.score_row;
    size_t span = g->of.start / SPAN;
    sinkproof_span_state state;
    kernels_avx512.attend_spans(&one, span, span + 1, &state, r->span + i * 16 * r->panels,
                                r->lanes_scratch);
    g->max[i] = state.max, g->sum[i] = state.sum;
}

// The sums of tiles are 2^96 times too large. The span is merged into the states of the group's
// rows, sixteen lanes at once as take_in does for one; o follows row by row.
static void merge_group(amx_rows *r, const group *g) {
    joining *b = &r->before;
    b->row = g->row, b->n = g->n, b->at = 0;
    const __mmask16 there = (__mmask16)((1u << g->n) - 1);
    float *max = r->max + (g->row - r->first), *sum = r->sum + (g->row - r->first);
    v16 m = _mm512_maskz_loadu_ps(there, max), l = _mm512_maskz_loadu_ps(there, sum);
    v16 span_m = v16_load(g->max), span_l = v16_load(g->sum);
    __mmask16 seen = _mm512_mask_cmp_ps_mask(there, span_m, v16_set1(-INFINITY), _CMP_NEQ_UQ);
    __mmask16 larger = v16_lt(m, span_m);
    v16 by = v16_exp(v16_select(larger, v16_sub(m, span_m), v16_sub(span_m, m)));
    l = v16_select(larger, v16_fma(l, by, span_l), v16_fma(span_l, by, l));
    _mm512_mask_storeu_ps(sum, seen, l);
    _mm512_mask_storeu_ps(max, larger, span_m);
    v16_store(b->ratio, by);
    v16_store(b->unit, v16_select((__mmask16)g->served, v16_set1(0x1p-96f), v16_set1(1)));
    b->seen = seen, b->larger = larger;
}

// Writes the group's result for its span to its destination.
static void store_group_result(amx_rows *r, const walk *at, const group *g) {
    if (at->state_sh == NULL) {
        merge_group(r, g);
        return;
    }
    const size_t width = 16 * r->panels;
    size_t to = (g->of.start / SPAN - at->first) * r->a->group + g->row;
    for (size_t i = 0; i < g->n; i++, to++) {
        at->state_sh[to] = (sinkproof_span_state){g->max[i], g->sum[i]};
        for (size_t d = 0; d < width; d += 16)
            v16_store(at->o_shd + to * width + d,
                      v16_mul(v16_load(r->span + i * width + d),
                              v16_set1(g->served >> i & 1 ? 0x1p-96f : 1)));
    }
}

// All spans of a walk. While a group is computed, tiles compute the scores of the next group.
static void attend_walk(amx_rows *r, walk at) {
    group *now = &r->groups[0], *next = &r->groups[1];
    bool more = next_group(r, &at, now);
    while (more) {
        more = next_group(r, &at, next);
        bool beside = more && next->served != 0 && next->n == now->n;
        if (now->served != 0) attend_on_tiles(r, now, beside ? next : NULL);
        merge_remaining_rows(r);
        for (size_t i = 0; i < now->n; i++)
            if (!(now->served >> i & 1)) attend_by_lanes(r, now, i);
        store_group_result(r, &at, now);
        group *done = now;
        now = next, next = done;
    }
    merge_remaining_rows(r);
}

// ---- a call ----------------------------------------------------------------------------------

static amx_rows begin_rows(const sinkproof_attention *a, void *scratch) {
    const size_t d = a->cache.head_dim;
    amx_rows r = {.a = a, .blocks = (d + 31) / 32, .panels = (d + 15) / 16};
    const size_t each = ROW + 16 * r.panels * sizeof *r.o + 32 * r.blocks * sizeof *r.q16;
    uint8_t *at = r.lanes_scratch = scratch;
    r.groups[0].s = (float *)(void *)(at += LANES_BYTES);
    r.groups[1].s = (float *)(void *)(at += SCORE_BYTES);
    r.groups[0].sums = (float *)(void *)(at += SCORE_BYTES);
    r.groups[1].sums = (float *)(void *)(at += SUM_BYTES);
    r.parts = at += SUM_BYTES;
    r.span = (float *)(void *)(at += PART_BYTES);
    r.many = (SINKPROOF_SCRATCH - HAND_BYTES) / each / ROWS * ROWS;
    r.o = (float *)(void *)(at += WIDE_BYTES);
    r.q16 = (uint16_t *)(void *)(at += r.many * 16 * r.panels * sizeof *r.o);
    r.max = (float *)(void *)(at += r.many * 32 * r.blocks * sizeof *r.q16);
    r.sum = r.max + r.many;
    r.least_i = (uint16_t *)(void *)(r.sum + r.many);
    return r;
}

// The bf16 numbers whose bits are the upper halves of 32 dwords, in order.
INLINE __m512i bf16_upper_halves(__m512 low, __m512 high) {
    const __m512i odd_words =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16(_mm512_castps_si512(low), odd_words,
                                     _mm512_castps_si512(high));
}

// Loads row `row` of the call: the query as bf16 numbers, zeros beyond head_dim, and their smallest
// exponent; the state begins with the sink.
static void load_query(amx_rows *r, size_t row) {
    const sinkproof_attention *a = r->a;
    const size_t d = a->cache.head_dim, i = row - r->first;
    const float *q = a->q + row / a->group * a->q_stride + row % a->group * d;
    uint16_t *to = r->q16 + i * 32 * r->blocks;
    __m512i least = _mm512_set1_epi16(-1), lower = _mm512_setzero_si512();
    for (size_t c = 0; c < d; c += 32) {
        uint32_t there = d - c < 32 ? (1u << (d - c)) - 1 : 0xffffffffu;
        __m512 low = _mm512_maskz_loadu_ps((__mmask16)there, q + c);
        __m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), q + c + 16);
        __m512i words = bf16_upper_halves(low, high);
        lower = _mm512_or_si512(lower, _mm512_castps_si512(low));
        lower = _mm512_or_si512(lower, _mm512_castps_si512(high));
        least = least_magnitudes(least, words);
        _mm512_storeu_si512(to + c, words);
    }
    bool bf16 = _mm512_test_epi32_mask(lower, _mm512_set1_epi32(0xffff)) == 0;
    r->least_i[i] = bf16 ? least_exponent(least) : 0;
    r->max[i] = a->sink_h[row % a->group], r->sum[i] = 1;
    memset(r->o + i * 16 * r->panels, 0, 16 * r->panels * sizeof *r->o);
}

// Loads rows from r->first on, as many as fit; returns the row after them.
static size_t load_queries(amx_rows *r, size_t rows) {
    size_t last = smaller_size(rows, r->first + r->many);
    for (size_t row = r->first; row < last; row++) load_query(r, row);
    return last;
}

void amx_attend(const sinkproof_attention *a, void *scratch) {
    if (a->cache.sizes == NULL) {
        kernels_avx512.attend(a, scratch);
        return;
    }
    amx_rows r = begin_rows(a, scratch);
    const size_t width = 16 * r.panels, rows = a->n * a->group, d = a->cache.head_dim;
    for (size_t last; r.first < rows; r.first = last) {
        last = load_queries(&r, rows);
        size_t start = first_visible(a, a->first + r.first / a->group) / SPAN * SPAN;
        attend_walk(&r, (walk){.row = r.first,
                               .last = last,
                               .start = start,
                               .end = a->first + (last - 1) / a->group + 1});
        for (size_t row = r.first; row < last; row++)
            divide_by_sum(d, r.sum[row - r.first], r.o + (row - r.first) * width,
                          a->o + row / a->group * a->o_stride + row % a->group * d);
    }
    if (r.configured != 0) TILE_RELEASE();
}

void amx_attend_spans(const sinkproof_attention *a, size_t first, size_t last,
                      sinkproof_span_state *state_sh, float *o_shd, void *scratch) {
    if (a->cache.sizes == NULL) {
        kernels_avx512.attend_spans(a, first, last, state_sh, o_shd, scratch);
        return;
    }
    amx_rows r = begin_rows(a, scratch);
    for (size_t i = 0; i < (last - first) * a->group; i++)
        state_sh[i] = (sinkproof_span_state){-INFINITY, 0};
    for (size_t end; r.first < a->group; r.first = end) {
        end = load_queries(&r, a->group);
        attend_walk(&r, (walk){.row = r.first,
                               .last = end,
                               .start = first * SPAN,
                               .end = last * SPAN,
                               .state_sh = state_sh,
                               .o_shd = o_shd,
                               .first = first});
    }
    if (r.configured != 0) TILE_RELEASE();
}
