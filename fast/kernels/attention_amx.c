// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A5 to A11 in one pass on AMX tiles, for a bf16 cache. Sixteen rows (one query head of one query
// each) go over the keys together, span by span of 256 positions, as fast/kernels/attention.inc
// goes: scores, softmax, values, and the state of each row takes the span in.
//
// A panel of sixteen keys is a B tile as it lies in the cache, block of columns by block; so are 32
// positions of sixteen coordinates of the values. The queries are A tiles as they stand. A weight
// p_j has 24 bits: it is cut into three bf16 numbers of eight (2^96 p_j, so that none is too
// small), and three products add what they weigh (sinkproof_amx_weighted in ref/lanes/amx.h).
//
// Tiles flush subnormal numbers. They serve a row in a span only where nothing can be one
// (sinkproof_amx_attends); elsewhere the lanes compute the row's span. What the cache knows of a
// span's blocks, hidden keys included, is asked first, and nearly always that is enough; where it
// is not, the visible keys are looked at one by one, so that the answer knows nothing but the row
// and its keys.
#include "fast/kernels/attention_amx.h"
#include "fast/kernels/lanes.h"
#include "fast/kernels/least_amx.h"
#include "fast/kernels/tiles_amx.h"
#include "ref/lanes/exp.h"

#include <math.h>

#include "fast/kernels/exp.inc"
#include "fast/kernels/softmax_sink.inc"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS = 16,
    PARTS = 3,         // bf16 numbers of a weight
    SCALE = 96,        // weights are taken 2^SCALE times larger
    LEAST_VALUE = -58, // values from 2^-58 on
    MOST_VALUE = 20,   // and below 2^20
    BLOCKS = SPAN / KEYS,
};

// What keys of a span say.
typedef struct facts {
    uint16_t least_k; // the least exponent field of a key's number
    bool values;      // are all values within what tiles serve?
} facts;

// The scratch: what the lanes need when they compute a row, and behind it the rows' own arrays.
enum {
    LANES_BYTES = 512 << 10,
    SCORE_BYTES = ROWS * SPAN * sizeof(float),
    PART_BYTES = BLOCKS * PARTS * TILE,
    WIDE_BYTES = ROWS * SINKPROOF_WIDEST_HEAD * sizeof(float),
};
_Static_assert(LANES_BYTES + SCORE_BYTES + PART_BYTES + 3 * WIDE_BYTES <= SINKPROOF_SCRATCH,
               "the scratch holds the rows of the widest head");

// The rows at hand and their arrays in the scratch.
typedef struct amx_rows {
    const sinkproof_attention *a;
    size_t row, n;         // first row, query (row / group) and head (row % group); how many
    size_t blocks, panels; // of 32 coordinates of a key; of 16 of a value
    float *s, *span, *o;   // [ROWS][SPAN]; o', o: [ROWS][16 panels]
    uint16_t *q16;         // [ROWS][32 blocks]
    uint8_t *parts;        // [BLOCKS][PARTS] tiles
    size_t configured;     // rows of the tiles; 0: nothing
    const uint8_t *k_b[BLOCKS], *v_b[BLOCKS]; // blocks that memory is asked for
    size_t asked, line, lines;                // how many; lines of each that were, and will be
    void *lanes_scratch;
    uint16_t least_i[ROWS]; // of q; 0 where it is not bf16
    sinkproof_span_state state[ROWS];
} amx_rows;

INLINE size_t query_of(const amx_rows *r, size_t i) {
    return (r->row + i) / r->a->group;
}

INLINE size_t head_of(const amx_rows *r, size_t i) {
    return (r->row + i) % r->a->group;
}

// What the rows at hand compute of a span: the keys from `first_block` to `last_block`.
typedef struct reach {
    size_t start, first_block, last_block;
} reach;

static const uint8_t *keys_at(const amx_rows *r, size_t block) {
    return r->a->cache.k + sinkproof_place_of(&r->a->cache, block);
}

static const uint8_t *values_at(const amx_rows *r, size_t block) {
    return r->a->cache.v + sinkproof_place_of(&r->a->cache, block);
}

// ---- ahead of the products -------------------------------------------------------------------

// A single query meets each key and value once. While it computes a span, memory is asked for the
// next one, a line of each of its blocks at a time: the processor follows each of these streams by
// itself, where a block asked for at once would wait, and the products with it.
INLINE void ask_for(amx_rows *r, size_t lines) {
    for (; lines > 0 && r->line < r->lines; lines--, r->line++)
        for (size_t b = 0; b < r->asked; b++) {
            _mm_prefetch((const char *)r->k_b[b] + r->line * ROW, _MM_HINT_T0);
            _mm_prefetch((const char *)r->v_b[b] + r->line * ROW, _MM_HINT_T0);
        }
}

// The lines of a block's keys.
INLINE size_t lines_of(const amx_rows *r) {
    return 2 * r->blocks * TILE / ROW;
}

// The span behind the one at `start`, as far as a single query sees it.
static void ask_behind(amx_rows *r, size_t start) {
    size_t first = (start + SPAN) / KEYS, last = r->a->first / KEYS + 1;
    r->line = r->asked = r->lines = 0;
    if (r->a->n != 1 || r->row != 0) return;
    for (size_t b = first; b < last && b < first + BLOCKS; b++) {
        r->k_b[r->asked] = keys_at(r, b);
        r->v_b[r->asked++] = values_at(r, b);
    }
    r->lines = lines_of(r);
}

// ---- whether tiles serve ---------------------------------------------------------------------

enum { LEAST_FIELD = 127 + LEAST_VALUE, MOST_FIELD = 127 + MOST_VALUE };

// What all keys of the span say that any query sees, by the sizes of their blocks.
static facts facts_of(const amx_rows *r, size_t start) {
    const sinkproof_attention *a = r->a;
    size_t low = first_visible(a, a->first), high = smaller(a->first + a->n, start + SPAN);
    facts found = {NO_NUMBER, true};
    for (size_t b = (low > start ? low : start) / KEYS; b < (high + KEYS - 1) / KEYS; b++) {
        const sinkproof_sizes *sizes = &a->cache.sizes[b % a->cache.ring];
        if (sizes->least_k < found.least_k) found.least_k = sizes->least_k;
        if (sizes->least_v < LEAST_FIELD || sizes->most_v >= MOST_FIELD) found.values = false;
    }
    return found;
}

static uint16_t number_at(const uint8_t *panel, size_t row, size_t column) {
    uint16_t bits;
    memcpy(&bits, panel + (column / 2 * 32 + row * 2 + column % 2) * sizeof bits, sizeof bits);
    return bits & 0x7fff;
}

// The same of the keys that row i sees, each asked alone.
static facts look_at_visible(const amx_rows *r, size_t i, size_t start) {
    facts found = {NO_NUMBER, true};
    const size_t d = r->a->cache.head_dim;
    const places in = places_of(r->a, query_of(r, i), start, start / KEYS, (start + SPAN) / KEYS);
    for (size_t j = start + in.first; j < start + in.last; j++) {
        const uint8_t *k = keys_at(r, j / KEYS) + j % KEYS / 16 * r->blocks * TILE;
        const uint8_t *v = values_at(r, j / KEYS);
        for (size_t c = 0; c < d; c++) {
            uint16_t size = number_at(k + c / 32 * TILE, j % 16, c % 32);
            if (size != 0 && size >> 7 < found.least_k) found.least_k = size >> 7;
            size = number_at(v + c / 16 * TILE, c % 16, j % KEYS);
            if (size != 0 && (size >> 7 < LEAST_FIELD || size >> 7 >= MOST_FIELD))
                found.values = false;
        }
    }
    return found;
}

// Which rows tiles serve in the span, a bit each.
static unsigned served_rows(const amx_rows *r, size_t start) {
    facts all = facts_of(r, start);
    unsigned rows = 0;
    for (size_t i = 0; i < r->n; i++) {
        facts seen = all;
        if (r->least_i[i] != 0 && !(all.values && served(all.least_k, r->least_i[i])))
            seen = look_at_visible(r, i, start);
        if (seen.values && served(seen.least_k, r->least_i[i])) rows |= 1u << i;
    }
    return rows;
}

// ---- on tiles --------------------------------------------------------------------------------

// Sums in tiles 0 to 3, one for each panel; the rows in tile 4, keys or values in 5 to 7.
static void configure(amx_rows *r) {
    if (r->configured == r->n) return;
    tile_config config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        config.row_bytes[t] = ROW;
        config.rows[t] = t < 5 ? (uint8_t)r->n : 16;
    }
    TILE_CONFIGURE(config);
    r->configured = r->n;
}

INLINE void zero_sums(void) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

// The rows at x times B tiles at b[0 .. P - 1], into sums 0 .. P - 1.
INLINE void multiply(int P, const void *x, size_t x_stride, const uint8_t *const *b) {
    TILE_LOAD(4, x, x_stride);
    TILE_LOAD(5, b[0], ROW);
    TILE_PRODUCT(0, 4, 5);
    if (P < 2) return;
    TILE_LOAD(6, b[1], ROW);
    TILE_PRODUCT(1, 4, 6);
    if (P < 3) return;
    TILE_LOAD(7, b[2], ROW);
    TILE_PRODUCT(2, 4, 7);
    if (P < 4) return;
    TILE_LOAD(5, b[3], ROW);
    TILE_PRODUCT(3, 4, 5);
}

// Sums to y, sixteen columns for each panel, rows `stride` floats apart.
INLINE void store_sums(int P, float *y, size_t stride) {
    TILE_STORE(0, y, stride * sizeof *y);
    if (P < 2) return;
    TILE_STORE(1, y + 16, stride * sizeof *y);
    if (P < 3) return;
    TILE_STORE(2, y + 32, stride * sizeof *y);
    if (P < 4) return;
    TILE_STORE(3, y + 48, stride * sizeof *y);
}

// Scores before scaling of P panels of keys: two for each block from b on.
INLINE void scores_of(amx_rows *r, int P, const reach *of, size_t b) {
    const uint8_t *k[4];
    const size_t next = b + 1 < of->last_block ? b + 1 : b;
    k[0] = keys_at(r, b), k[1] = k[0] + r->blocks * TILE;
    k[2] = keys_at(r, next), k[3] = k[2] + r->blocks * TILE;
    zero_sums();
    for (size_t c = 0; c < r->blocks; c++) {
        multiply(P, r->q16 + 32 * c, 64 * r->blocks, k);
        for (int p = 0; p < 4; p++) k[p] += TILE;
    }
    ask_for(r, lines_of(r) / 16);
    store_sums(P, r->s + b * KEYS - of->start, SPAN);
}

static void span_scores(amx_rows *r, const reach *of) {
    size_t b = of->first_block;
    for (; b + 2 <= of->last_block; b += 2) scores_of(r, 4, of, b);
    if (b < of->last_block) scores_of(r, 2, of, b);
}

// The bf16 numbers whose bits are the upper halves of 32 dwords, in order.
INLINE __m512i upper_halves(__m512 low, __m512 high) {
    const __m512i odd_words =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16(_mm512_castps_si512(low), odd_words,
                                     _mm512_castps_si512(high));
}

// What is left of a number without its upper half: exact.
INLINE __m512 rest_of(__m512 x) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper)));
}

// The weights of a block's 32 keys, all rows, as three A tiles.
INLINE void split_block(const amx_rows *r, size_t place, uint8_t *to) {
    const __m512 larger = _mm512_set1_ps(0x1p96f);
    for (size_t i = 0; i < r->n; i++, to += ROW) {
        __m512 low = _mm512_mul_ps(_mm512_loadu_ps(r->s + i * SPAN + place), larger);
        __m512 high = _mm512_mul_ps(_mm512_loadu_ps(r->s + i * SPAN + place + 16), larger);
        for (int part = 0; part < PARTS; part++) {
            _mm512_store_si512(to + part * TILE, upper_halves(low, high));
            low = rest_of(low), high = rest_of(high);
        }
    }
}

// o' of P panels of coordinates from `panel` on. With the first of them the weights are split, a
// block ahead of its products.
INLINE void values_of(amx_rows *r, int P, const reach *of, size_t panel) {
    zero_sums();
    for (size_t b = of->first_block; b < of->last_block; b++) {
        const uint8_t *parts = r->parts + (b - of->first_block) * PARTS * TILE, *v[4];
        v[0] = values_at(r, b) + panel * TILE;
        for (int p = 1; p < 4; p++) v[p] = v[0] + (p < P ? p * TILE : 0);
        if (panel == 0 && b + 1 < of->last_block)
            split_block(r, (b + 1) * KEYS - of->start,
                        r->parts + (b + 1 - of->first_block) * PARTS * TILE);
        for (int part = 0; part < PARTS; part++) multiply(P, parts + part * TILE, ROW, v);
        ask_for(r, lines_of(r) / 16);
    }
    store_sums(P, r->span + 16 * panel, 16 * r->panels);
}

static void span_values(amx_rows *r, const reach *of) {
    size_t panel = 0;
    split_block(r, of->first_block * KEYS - of->start, r->parts);
    for (; panel + 4 <= r->panels; panel += 4) values_of(r, 4, of, panel);
    for (; panel < r->panels; panel++) values_of(r, 1, of, panel);
    for (size_t i = 0; i < 16 * r->n * r->panels; i += 16)
        v16_store(r->span + i, v16_mul(v16_load(r->span + i), v16_set1(0x1p-96f)));
}

static void show_scores(const amx_rows *r, size_t i, size_t start, size_t first, size_t last) {
    const sinkproof_attention *a = r->a;
    if (a->score == NULL) return;
    float *to = a->score + head_of(r, i) * a->score_head + query_of(r, i) * a->score_row + start;
    for (size_t j = first; j < last; j++) to[j] = r->s[i * SPAN + j] * a->scale;
}

static void attend_on_tiles(amx_rows *r, const reach *of, unsigned rows) {
    configure(r);
    ask_behind(r, of->start);
    span_scores(r, of);
    places in[ROWS];
    for (size_t i = 0; i < r->n; i++) {
        in[i] = places_of(r->a, query_of(r, i), of->start, of->first_block, of->last_block);
        if (rows >> i & 1) show_scores(r, i, of->start, in[i].first, in[i].last);
        r->state[i].max = span_largest(r->a->scale, &in[i], r->s + i * SPAN);
    }
    for (size_t i = 0; i < r->n; i++) {
        ask_for(r, lines_of(r) / (4 * r->n) + 1);
        r->state[i].sum = span_weights(r->state[i].max, &in[i], r->s + i * SPAN);
    }
    span_values(r, of);
}

// ---- by the lanes ----------------------------------------------------------------------------

// Row i alone. The scratch behind what the rows use is the lanes'.
static void attend_by_lanes(amx_rows *r, const reach *of, size_t i) {
    sinkproof_attention one = *r->a;
    size_t query = query_of(r, i), head = head_of(r, i), d = one.cache.head_dim;
    one.group = one.n = 1;
    one.first += query;
    one.sink_h += head;
    one.q += query * one.q_stride + head * d;
    if (one.score != NULL) one.score += head * one.score_head + query * one.score_row;
    sinkproof_kernels_avx512.attend_spans(&one, of->start / SPAN, of->start / SPAN + 1,
                                          &r->state[i], r->span + i * 16 * r->panels,
                                          r->lanes_scratch);
}

// ---- spans and rows --------------------------------------------------------------------------

// The span that starts at `start`, for all rows: state and o'.
static void attend_span(amx_rows *r, size_t start) {
    const sinkproof_attention *a = r->a;
    size_t low = first_visible(a, a->first + query_of(r, 0));
    size_t high = a->first + query_of(r, r->n - 1) + 1;
    low = low > start ? low : start;
    high = smaller(high, start + SPAN);
    reach of = {start, low / KEYS, (high + KEYS - 1) / KEYS};
    unsigned rows = served_rows(r, start), all = (1u << r->n) - 1;
    if (rows != 0) attend_on_tiles(r, &of, rows);
    for (size_t i = 0; rows != all && i < r->n; i++)
        if (!(rows >> i & 1)) attend_by_lanes(r, &of, i);
}

static amx_rows rows_in(const sinkproof_attention *a, void *scratch) {
    size_t d = a->cache.head_dim;
    amx_rows r = {.a = a, .blocks = (d + 31) / 32, .panels = (d + 15) / 16};
    uint8_t *at = r.lanes_scratch = scratch;
    r.s = (float *)(void *)(at += LANES_BYTES);
    r.parts = at += SCORE_BYTES;
    r.span = (float *)(void *)(at += PART_BYTES);
    r.o = (float *)(void *)(at += WIDE_BYTES);
    r.q16 = (uint16_t *)(void *)(at += WIDE_BYTES);
    return r;
}

// The queries as bf16 numbers, zeros beyond head_dim, and their least exponents.
static void load_queries(amx_rows *r) {
    const size_t d = r->a->cache.head_dim;
    for (size_t i = 0; i < r->n; i++) {
        const float *q = r->a->q + query_of(r, i) * r->a->q_stride + head_of(r, i) * d;
        uint16_t *to = r->q16 + i * 32 * r->blocks;
        __m512i least = _mm512_set1_epi16(-1), lower = _mm512_setzero_si512();
        for (size_t c = 0; c < d; c += 32) {
            uint32_t there = d - c < 32 ? (1u << (d - c)) - 1 : 0xffffffffu;
            __m512 low = _mm512_maskz_loadu_ps((__mmask16)there, q + c);
            __m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), q + c + 16);
            __m512i words = upper_halves(low, high);
            lower = _mm512_or_si512(lower, _mm512_castps_si512(low));
            lower = _mm512_or_si512(lower, _mm512_castps_si512(high));
            least = least_words(least, words);
            _mm512_storeu_si512(to + c, words);
        }
        bool bf16 = _mm512_test_epi32_mask(lower, _mm512_set1_epi32(0xffff)) == 0;
        r->least_i[i] = bf16 ? least_exponent(least) : 0;
    }
}

void sinkproof_amx_attend(const sinkproof_attention *a, void *scratch) {
    if (a->cache.sizes == NULL) {
        sinkproof_kernels_avx512.attend(a, scratch);
        return;
    }
    amx_rows r = rows_in(a, scratch);
    const size_t width = 16 * r.panels, rows = a->n * a->group;
    sinkproof_span_state state[ROWS];
    for (r.row = 0; r.row < rows; r.row += r.n) {
        r.n = smaller(rows - r.row, ROWS);
        load_queries(&r);
        memset(r.o, 0, r.n * width * sizeof *r.o);
        for (size_t i = 0; i < r.n; i++)
            state[i] = (sinkproof_span_state){a->sink_h[head_of(&r, i)], 1};
        size_t start = first_visible(a, a->first + query_of(&r, 0)) / SPAN * SPAN;
        for (; start <= a->first + query_of(&r, r.n - 1); start += SPAN) {
            attend_span(&r, start);
            for (size_t i = 0; i < r.n; i++)
                take_in(width, r.state[i], r.span + i * width, &state[i], r.o + i * width);
        }
        for (size_t i = 0; i < r.n; i++)
            divide(a->cache.head_dim, state[i].sum, r.o + i * width,
                   a->o + query_of(&r, i) * a->o_stride + head_of(&r, i) * a->cache.head_dim);
    }
    if (r.configured != 0) TILE_RELEASE();
}

void sinkproof_amx_attend_spans(const sinkproof_attention *a, size_t first, size_t last,
                                sinkproof_span_state *state_sh, float *o_shd, void *scratch) {
    if (a->cache.sizes == NULL) {
        sinkproof_kernels_avx512.attend_spans(a, first, last, state_sh, o_shd, scratch);
        return;
    }
    amx_rows r = rows_in(a, scratch);
    const size_t width = 16 * r.panels;
    for (r.row = 0; r.row < a->group; r.row += r.n) {
        r.n = smaller(a->group - r.row, ROWS);
        load_queries(&r);
        for (size_t s = first; s < last; s++) {
            attend_span(&r, s * SPAN);
            size_t at = (s - first) * a->group + r.row;
            memcpy(state_sh + at, r.state, r.n * sizeof *state_sh);
            memcpy(o_shd + at * width, r.span, r.n * width * sizeof *o_shd);
        }
    }
    if (r.configured != 0) TILE_RELEASE();
}
