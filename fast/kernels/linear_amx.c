// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear layers on AMX tiles (TDPBF16PS): sixteen tokens times sixteen outputs times 32 columns at
// once. Only bf16 operands are supported: float32 operands and the formats F32 and Q8_0 use the
// lanes.
//
// The mode "amx". Per output, from total = 0, over blocks of 32 columns in ascending order (Intel
// SDM vol. 2, TDPBF16PS; scalar code: fast/lanes/amx.c):
//   even = odd = 0
//   over the block's pairs, ascending: even = fma(w_0, x_0, even), odd = fma(w_1, x_1, odd)
//   total = total + (even + odd)
// and at the end + b_r. No order depends on a tile, a slice, a range of panels or on n. MXFP4
// weights include their scale: code 2^(s - 127) is a bf16 number for 2 <= s <= 252.
//
// The tiles treat subnormal inputs as zeros and flush subnormal results, whatever MXCSR says. Here
// that has no effect: tiles are used for a token in a panel only where every product of a nonzero
// weight of the panel and a nonzero number of the token is at least 2^-111. Then each is a multiple
// of 2^-126 (a product of two bf16 numbers has 16 bits), so is every partial sum, and none is
// subnormal but zero; products are exact, and only the order of the sum differs, which the judge's
// bound covers. Where that fails (a subnormal weight, a scale below 2 or above 252, a token that
// underflowed) the lanes compute the panel's outputs for that token. The choice depends on the
// panel and the token alone.
//
// Up to AMX_FEW tokens vectors compute the same (fast/kernels/few_amx.c): memory is their
// limit, and a tile would be mostly empty.
//
// Data flow. Tokens are gathered into A tiles, which stay in the second-level cache while the
// panels are processed, two at a time (four for a single tile of tokens). A block of a BF16 panel
// is a B tile as stored. MXFP4 is decoded into one while the tiles multiply the blocks before it:
// the tile unit works independently, so that part of the vector work is hidden behind it, and a
// decoded block never leaves the first-level cache. It is decoded again for each two or three tiles
// of tokens, which costs less than reading a decoded panel back. Sums leave their tiles at the end
// of a panel and are written to y while the next panel is multiplied.
//
// Eight tiles. For two tiles of tokens and two panels four hold sums and four operands, loaded a
// product or more before they are used; for three tiles of tokens six hold sums, and two loads of B
// and five of A serve six products (fast/kernels/block_amx.inc).
#include "fast/kernels/linear_amx.h"
#include "fast/kernels/least_amx.h"
#include "fast/kernels/tiles_amx.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    GROUP = 192,     // most tokens gathered together
    RANGE = 1024,    // most panels whose smallest exponents are kept
    A_TILES = 1080,  // capacity for gathered tokens
    AHEAD = 2,       // blocks decoded in advance
    RING = 4,        // decoded blocks in the ring, more than AHEAD
    MOST_PANELS = 4, // most panels at a time
};
_Static_assert((A_TILES + MOST_PANELS * RING + 12) * TILE <= SINKPROOF_SCRATCH,
               "the scratch holds the tiles");

#include "fast/kernels/block_amx.inc"

// The neighbours of a product: the panels that are decoded at its end, and those that are
// prefetched while it runs, a share of them.
typedef struct future {
    const streams *next, *later;
    size_t panel; // first panel of `next`
    size_t share, shares;
} future;

// Stored sums that are copied to y row by row while the next product runs: y's lines are far away
// in memory, and copying all at once would wait for them.
typedef struct outputs {
    size_t token, panel; // first token and panel
    size_t row, rows;    // the next row, and the number of rows; equal: done
    int T, P;
    const float *bias_r; // for the first panel, or NULL
} outputs;

// One group of tokens and one chunk of blocks.
typedef struct job {
    const sinkproof_product *product;
    uint8_t *a, *ring; // A: [tiles][blocks] tiles; decoded: [RING][panels] tiles
    float *c;          // sums in transit: [6][16][16] to y, followed by those from y
    outputs out;
    size_t token, tokens, tiles; // the group's first token, number of tokens, ceil(tokens / 16)
    size_t block, blocks;        // the chunk's first block, number of blocks
    size_t configured;           // current configuration of the tiles; 0: none
    size_t slot;                 // place of the next block in the ring
    size_t decoded;              // panel + 1 whose first AHEAD blocks are in the ring; 0: none
    uint16_t *least_p;           // [RANGE], from panel `first` on
    size_t first, last;
    uint16_t least_i[GROUP];
} job;

// ---- operands --------------------------------------------------------------------------------

// Gathers the chunk's columns of the group's tokens into A tiles: tile t of block b at a + (t
// blocks + b) TILE. Rows of the last tile without a token are zeros.
static void gather_tokens(job *j) {
    for (size_t i = 0; i < 16 * j->tiles; i++) {
        uint8_t *to = j->a + i / 16 * j->blocks * TILE + i % 16 * ROW;
        if (i >= j->tokens) {
            for (size_t b = 0; b < j->blocks; b++) memset(to + b * TILE, 0, ROW);
            continue;
        }
        const uint16_t *x = j->product->x16_n[j->token + i] + j->block * SINKPROOF_PANEL_COLS;
        __m512i least = _mm512_set1_epi16(-1);
        for (size_t b = 0; b < j->blocks; b++) {
            __m512i w = _mm512_loadu_si512(x + b * SINKPROOF_PANEL_COLS);
            _mm512_store_si512(to + b * TILE, w);
            least = least_magnitudes(least, w);
        }
        uint16_t exponent = least_exponent(least);
        if (j->block == 0 || exponent < j->least_i[i]) j->least_i[i] = exponent;
    }
}

// ---- products --------------------------------------------------------------------------------

// Decodes the first blocks of the panels, if the previous panels have not done so.
INLINE void decode_first_blocks(kind of, job *j, const streams *w) {
    decoding first;
    for (size_t k = 0; k < AHEAD && k < j->blocks; k++) {
        begin_decoding(of, &first, w, k, j->ring + (j->slot + k) % RING * (size_t)of.P * TILE);
        decode_quarters(&first, 0, 4 * of.P);
    }
}

// Prefetches one block of each panel.
INLINE void prefetch_block(kind of, const streams *w, size_t block) {
    const size_t lines = of.coded ? 4 : 16;
    for (int p = 0; p < of.P; p++) {
        for (size_t i = 0; i < lines; i++)
            _mm_prefetch((const char *)w->data_p[p] + block * w->stride + i * ROW, _MM_HINT_T1);
        if (of.coded)
            _mm_prefetch((const char *)w->scales_p[p] + block * SINKPROOF_PANEL_ROWS, _MM_HINT_T1);
    }
}

// Copies up to `rows` rows of the stored sums.
INLINE void store_sums(job *j, size_t rows) {
    outputs *out = &j->out;
    for (size_t last = smaller_size(out->row + rows, out->rows); out->row < last; out->row++) {
        float *y = j->product->y_n[out->token + out->row] + 16 * out->panel;
        for (int p = 0; p < out->P; p++) {
            const float *c = j->c + 256 * sum_tile_number(out->T, (int)(out->row / 16), p);
            __m512 sum = _mm512_load_ps(c + out->row % 16 * 16);
            if (out->bias_r != NULL)
                sum = _mm512_add_ps(sum, _mm512_loadu_ps(out->bias_r + 16 * p));
            _mm512_storeu_ps(y + 16 * p, sum);
        }
    }
}

// B tiles of block k: decoded ones in the ring, or as stored in the panels.
INLINE void load_operands(kind of, const job *j, const streams *w, size_t k, const uint8_t **b) {
    UNROLL(4)
    for (int p = 0; p < of.P; p++)
        b[p] = of.coded ? j->ring + ((j->slot + k) % RING * (size_t)of.P + (size_t)p) * TILE
                        : w->data_p[p] + k * w->stride;
}

// Adds the chunk's blocks to the sums. For MXFP4 the first AHEAD blocks are already decoded; at the
// end those of the next panels are.
INLINE void multiply_blocks(kind of, job *j, const uint8_t *a, const streams *w,
                            const future *to_come) {
    const bool loaded = of.T == 2 && of.P == 2;
    const size_t a_stride = j->blocks * TILE;
    const uint8_t *b[MOST_PANELS];
    decoding ahead;
    load_operands(of, j, w, 0, b);
    if (loaded) {
        TILE_LOAD(4, a, ROW);
        TILE_LOAD(5, a + a_stride, ROW);
        TILE_LOAD(6, b[0], ROW);
        TILE_LOAD(7, b[1], ROW);
    }
    for (size_t k = 0, turn = 0; k < j->blocks; k++) {
        const size_t then = k + AHEAD, next = k + 1 < j->blocks ? k + 1 : k;
        if (turn == 0)
            prefetch_block(of, to_come->later, (to_come->share * j->blocks + k) / to_come->shares);
        turn = turn + 1 < to_come->shares ? turn + 1 : 0;
        if (of.coded) {
            uint8_t *to = j->ring + (j->slot + then) % RING * (size_t)of.P * TILE;
            if (then < j->blocks)
                begin_decoding(of, &ahead, w, then, to);
            else
                begin_decoding(of, &ahead, to_come->next,
                               smaller_size(then - j->blocks, j->blocks - 1), to);
        }
        load_operands(of, j, w, loaded ? next : k, b);
        if (loaded)
            add_block_2_2(of.coded, k, a + next * TILE, a_stride, b, &ahead);
        else
            add_block(of, a + k * TILE, a_stride, b, &ahead);
        store_sums(j, 1);
    }
    if (of.coded) j->slot += j->blocks;
}

// The initial sums: zeros, or those of an earlier chunk in y.
static void begin_sums(job *j, int T, int P, size_t t, size_t p) {
    float *c = j->c + 6 * 256;
    if (j->block == 0) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        if (T < 3) return;
        TILE_ZERO(4);
        TILE_ZERO(5);
        return;
    }
    for (size_t i = 16 * t; i < smaller_size(j->tokens, 16 * (t + (size_t)T)); i++)
        for (int k = 0; k < P; k++)
            _mm512_store_ps(c + 256 * sum_tile_number(T, (int)(i / 16 - t), k) + i % 16 * 16,
                            _mm512_loadu_ps(j->product->y_n[j->token + i] + 16 * (p + (size_t)k)));
    TILE_LOAD(0, c, ROW);
    TILE_LOAD(1, c + 256, ROW);
    TILE_LOAD(2, c + 512, ROW);
    TILE_LOAD(3, c + 768, ROW);
    if (T < 3) return;
    TILE_LOAD(4, c + 1024, ROW);
    TILE_LOAD(5, c + 1280, ROW);
}

// Starts copying sums to y, with the bias after the last chunk.
static void end_sums(job *j, int T, int P, size_t t, size_t p) {
    const bool last = j->block + j->blocks == j->product->weight->blocks;
    store_sums(j, j->out.rows);
    TILE_STORE(0, j->c, ROW);
    TILE_STORE(1, j->c + 256, ROW);
    TILE_STORE(2, j->c + 512, ROW);
    TILE_STORE(3, j->c + 768, ROW);
    if (T == 3) {
        TILE_STORE(4, j->c + 1024, ROW);
        TILE_STORE(5, j->c + 1280, ROW);
    }
    j->out = (outputs){.token = j->token + 16 * t,
                       .panel = p,
                       .rows = smaller_size(j->tokens - 16 * t, 16 * (size_t)T),
                       .T = T,
                       .P = P};
    if (last && j->product->bias_r != NULL) j->out.bias_r = j->product->bias_r + 16 * p;
}

// T = 1: sums of panel p in tile p (0 .. 3), the tokens in tile 4, weights in 5 to 7.
// T = 2: sums of tokens t and panel p in tile 2 t + p, the tokens in 4 and 5, weights in 6 and 7.
// T = 3: the same in tile t + 3 p, weights in 6, the tokens in 7, in turn.
// The last tile has r < 16 tokens, unless it is the third of three.
static void configure_tiles(job *j, int T, size_t r) {
    size_t wanted = T == 3 ? 300 : 100 * (size_t)T + r;
    if (j->configured == wanted) return;
    tile_config config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        bool last = T == 1 ? t < 5 : T == 2 && (t == 2 || t == 3 || t == 5);
        config.row_bytes[t] = ROW;
        config.rows[t] = last ? (uint8_t)r : 16;
    }
    TILE_CONFIGURE(config);
    j->configured = wanted;
}

// Multiplies tokens of T tiles from t on by panels p .. p + P - 1; the next product begins at panel
// `after`.
INLINE void multiply_tiles(kind of, job *j, size_t t, size_t p, const streams *w,
                           const future *to_come) {
    configure_tiles(j, of.T, smaller_size(j->tokens - 16 * (t + (size_t)of.T - 1), 16));
    begin_sums(j, of.T, of.P, t, p);
    if (of.coded && j->decoded != p + 1) decode_first_blocks(of, j, w);
    multiply_blocks(of, j, j->a + t * j->blocks * TILE, w, to_come);
    j->decoded = j->blocks < AHEAD ? 0 : to_come->panel + 1;
    end_sums(j, of.T, of.P, t, p);
}

#define PRODUCT(name, ...)                                                                         \
    static __attribute__((noinline)) void name(job *j, size_t t, size_t p, const streams *w,       \
                                               const future *to_come) {                            \
        multiply_tiles((kind){__VA_ARGS__}, j, t, p, w, to_come);                                  \
    }
PRODUCT(bf16_1_1, false, 1, 1)
PRODUCT(bf16_1_4, false, 1, 4)
PRODUCT(bf16_2_1, false, 2, 1)
PRODUCT(bf16_2_2, false, 2, 2)
PRODUCT(bf16_3_1, false, 3, 1)
PRODUCT(bf16_3_2, false, 3, 2)
PRODUCT(mxfp4_1_1, true, 1, 1)
PRODUCT(mxfp4_1_4, true, 1, 4)
PRODUCT(mxfp4_2_1, true, 2, 1)
PRODUCT(mxfp4_2_2, true, 2, 2)
PRODUCT(mxfp4_3_1, true, 3, 1)
PRODUCT(mxfp4_3_2, true, 3, 2)

// Panels p .. p + P - 1 from the chunk's first block on.
static streams panel_streams(const job *j, size_t p, size_t P) {
    const sinkproof_panels *w = j->product->weight;
    streams at = {.stride = w->block_stride};
    for (size_t k = 0; k < P; k++) {
        at.data_p[k] = w->data + (p + k) * w->panel_stride + j->block * w->block_stride;
        if (w->format == SINKPROOF_PANEL_MXFP4)
            at.scales_p[k] = w->scales + ((p + k) * w->blocks + j->block) * SINKPROOF_PANEL_ROWS;
    }
    return at;
}

// The chunk's part of the sums of panels p .. p + P - 1, for all tokens of the group: tiles in
// threes, or in twos where threes would leave one.
static void multiply_panels(job *j, size_t p, size_t P) {
    typedef void product(job * j, size_t t, size_t p, const streams *w, const future *to_come);
    static product *const products[2][3][2] = {
        {{bf16_1_1, bf16_1_4}, {bf16_2_1, bf16_2_2}, {bf16_3_1, bf16_3_2}},
        {{mxfp4_1_1, mxfp4_1_4}, {mxfp4_2_1, mxfp4_2_2}, {mxfp4_3_1, mxfp4_3_2}}};
    const bool coded = j->product->weight->format == SINKPROOF_PANEL_MXFP4;
    // The panels after these, if there are as many.
    const size_t after = p + 2 * P <= j->last ? p + P : p;
    const streams w = panel_streams(j, p, P), later = panel_streams(j, after, P);
    const size_t shares = j->tiles == 4 ? 2 : (j->tiles + 2) / 3;
    future to_come = {.next = &w, .later = &later, .panel = p, .shares = shares};
    for (size_t t = 0, T; t < j->tiles; t += T, to_come.share++) {
        size_t left = j->tiles - t;
        T = left == 4 || left < 3 ? smaller_size(left, 2) : 3;
        if (t + T == j->tiles) to_come.next = &later, to_come.panel = after;
        products[coded][T - 1][P > 1](j, t, p, &w, &to_come);
    }
}

// Computes the outputs for which tiles cannot be used by the lanes, without flushing: they read the
// operands as float32.
static void recompute_unserved(const job *j, void *scratch) {
    const sinkproof_product *whole = j->product;
    const float *x[GROUP];
    const uint16_t *x16[GROUP];
    float *y[GROUP];
    unsigned least = NO_NUMBER;
    for (size_t i = 0; i < j->tokens; i++)
        if (j->least_i[i] < least) least = j->least_i[i];
    for (size_t p = j->first; p < j->last; p++) {
        unsigned least_w = j->least_p[p - j->first];
        if (tiles_serve(least_w, least)) continue;
        if (whole->weight->format == SINKPROOF_PANEL_MXFP4)
            j->least_p[p - j->first] = (uint16_t)(least_w = least_scale(whole->weight, p));
        sinkproof_product part = {whole->weight, whole->bias_r, 0, x, x16, y};
        for (size_t i = 0; i < j->tokens; i++) {
            if (tiles_serve(least_w, j->least_i[i])) continue;
            x[part.n] = whole->x_n[j->token + i];
            x16[part.n] = whole->x16_n[j->token + i];
            y[part.n++] = whole->y_n[j->token + i];
        }
        if (part.n > 0) kernels_avx512.linear(&part, p, p + 1, scratch);
    }
}

// One group of tokens.
static void multiply_group(job *j) {
    const sinkproof_panels *w = j->product->weight;
    const size_t at_once = j->tiles == 1 ? 4 : 2, room = A_TILES / j->tiles;
    const size_t chunks = (w->blocks + room - 1) / room;
    const size_t chunk = (w->blocks + chunks - 1) / chunks;
    for (j->block = 0; j->block < w->blocks; j->block += chunk) {
        j->blocks = smaller_size(chunk, w->blocks - j->block);
        j->decoded = 0;
        gather_tokens(j);
        size_t p = j->first;
        for (; p + at_once <= j->last; p += at_once) multiply_panels(j, p, at_once);
        for (j->decoded = 0; p < j->last; p++) multiply_panels(j, p, 1);
        store_sums(j, j->out.rows);
    }
}

// A few tokens, by vectors.
static void multiply_few(job *j) {
    const sinkproof_panels *w = j->product->weight;
    j->tokens = j->product->n;
    for (size_t i = 0; i < j->tokens; i++) {
        __m512i least = _mm512_set1_epi16(-1);
        for (size_t b = 0; b < w->blocks; b++)
            least = least_magnitudes(least, _mm512_loadu_si512(j->product->x16_n[i] + 32 * b));
        j->least_i[i] = least_exponent(least);
    }
    amx_linear_few(j->product, j->first, j->last);
}

static void multiply_range(job *j, void *scratch) {
    const sinkproof_panels *w = j->product->weight;
    const size_t n = j->product->n, tiles = (n + 15) / 16;
    const size_t groups = (tiles + GROUP / 16 - 1) / (GROUP / 16);
    const size_t group = 16 * ((tiles + groups - 1) / groups);
    for (size_t p = j->first; p < j->last; p++)
        j->least_p[p - j->first] =
            w->format == SINKPROOF_PANEL_MXFP4 ? least_scale_seen(w, p) : least_number(w, p);
    if (n <= AMX_FEW) {
        multiply_few(j);
        recompute_unserved(j, scratch);
        return;
    }
    for (j->token = 0; j->token < n; j->token += group) {
        j->tokens = smaller_size(group, n - j->token);
        j->tiles = (j->tokens + 15) / 16;
        multiply_group(j);
        recompute_unserved(j, scratch);
    }
}

void amx_linear(const sinkproof_product *product, size_t first, size_t last, void *scratch) {
    const sinkproof_panels *w = product->weight;
    if (product->x16_n == NULL ||
        (w->format != SINKPROOF_PANEL_BF16 && w->format != SINKPROOF_PANEL_MXFP4)) {
        kernels_avx512.linear(product, first, last, scratch);
        return;
    }
    if (product->n == 0) return;
    uint16_t least_p[RANGE];
    uint8_t *room = scratch;
    job j = {.product = product, .a = room, .ring = room + A_TILES * TILE, .least_p = least_p};
    j.c = (float *)(void *)(j.ring + RING * MOST_PANELS * TILE);
    for (j.first = first; j.first < last; j.first = j.last) {
        j.last = smaller_size(last, j.first + RANGE);
        multiply_range(&j, scratch);
    }
    if (j.configured != 0) TILE_RELEASE();
}
