// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear layers on AMX tiles (TDPBF16PS): sixteen tokens times sixteen outputs times 32 columns at
// once. It refuses everything but bf16 operands: float32 operands and the formats F32 and Q8_0 go
// to the lanes.
//
// The mode "amx". Per output, from total = 0, over blocks of 32 columns in ascending order (Intel
// SDM vol. 2, TDPBF16PS; scalar code: ref/lanes/amx.c):
//   even = odd = 0
//   over the block's pairs, ascending: even = fma(w_0, x_0, even), odd = fma(w_1, x_1, odd)
//   total = total + (even + odd)
// and at the end + b_r. No order depends on a tile, a slice, a range of panels or on n. MXFP4
// weights enter with their scale: code 2^(s - 127) is a bf16 number for 2 <= s <= 252.
//
// The tiles take subnormal inputs for zeros and flush subnormal results, whatever MXCSR says. Here
// that never shows: tiles serve a token in a panel only where every product of a nonzero weight of
// the panel and a nonzero number of the token is at least 2^-111. Then each is a multiple of 2^-126
// (a product of two bf16 numbers has 16 bits), so is every partial sum, and none is subnormal but
// zero; products are exact, and what is left open is the order of the sum alone, which the judge's
// bound covers. Where that fails (a subnormal weight, a scale below 2 or above 252, a token that
// underflowed) the lanes compute the panel's outputs of that token. The choice looks at the panel
// and at the token alone.
//
// Up to SINKPROOF_AMX_FEW tokens vectors do the same (fast/kernels/few_amx.c): memory is their
// limit, and a tile would be mostly empty.
//
// What is where: weights come as B tiles (a block of a BF16 panel is one as it stands; MXFP4 is
// decoded into one, once for a group of tokens), tokens are gathered into A tiles. Eight tiles:
// four of sums, so that each tile loaded serves two or more products.
#include "fast/kernels/linear_amx.h"

#include <immintrin.h>
#include <string.h>

enum {
    TILE = 1024,        // bytes: 16 rows of 64
    ROW = 64,           // bytes
    GROUP = 128,        // tokens gathered together, at most
    RANGE = 1024,       // panels whose least exponents are remembered, at most
    A_TILES = 384,      // room for gathered tokens
    B_TILES = 96,       // room for decoded weights
    NEAR_BLOCKS = 8,    // decoded at once when the sums stay in tiles: of 4 panels 32 KiB
    NO_NUMBER = 256,    // the least exponent of zeros alone
    LEAST_PRODUCT = 143 // sum of two exponent fields, 127 each for 1: 2^-111
};
_Static_assert((A_TILES + B_TILES + 4) * TILE <= SINKPROOF_SCRATCH, "the scratch holds the tiles");

// What LDTILECFG reads (SDM vol. 1, 18.2): palette 1 has eight tiles of 16 rows of 64 bytes.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "LDTILECFG reads 64 bytes");

// The instructions by name: any compiler that assembles them builds this, and the operand of
// LDTILECFG is the whole structure. (GCC 12's intrinsic names eight bytes of it, so that -O3 drops
// the other stores.)
#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory")
#define TILE_RELEASE()         __asm__ volatile("tilerelease" : : : "memory")
#define TILE_ZERO(t)           __asm__ volatile("tilezero %%tmm" #t : : : "memory")
#define TILE_LOAD(t, from)                                                                         \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((size_t)ROW) : "memory")
#define TILE_STORE(t, to)                                                                          \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((size_t)ROW) : "memory")
// Sums in tile c += A tile a times B tile b.
#define TILE_PRODUCT(c, a, b)                                                                      \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : : "memory")

// One group of tokens and one chunk of blocks.
typedef struct job {
    const sinkproof_product *product;
    uint8_t *a, *b;              // A: [tiles][blocks] tiles; B: [panels][slice] tiles
    float *c;                    // [4][16][16]
    size_t token, tokens, tiles; // the group's first, how many, ceil(tokens / 16)
    size_t block, blocks, slice; // the chunk's first, how many, how many at a time
    size_t configured; // what the tiles are configured for: 10000 T + 100 r0 + r1; 0: nothing
    bool look;         // note the panels' least exponents
    uint16_t *least_p; // [RANGE], panel `first` on
    size_t first;
    uint16_t least_i[GROUP];
} job;

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// ---- the least exponent ----------------------------------------------------------------------

// 2 |w| - 1 as unsigned words: zeros become the largest, so that a minimum passes them over.
static inline __m512i least_words(__m512i least, __m512i w) {
    __m512i twice = _mm512_add_epi16(w, w);
    return _mm512_min_epu16(least, _mm512_sub_epi16(twice, _mm512_set1_epi16(1)));
}

// The exponent field of the smallest nonzero number, 0 where that is subnormal.
static uint16_t least_exponent(__m512i least) {
    __m256i a =
        _mm256_min_epu16(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
    __m128i m = _mm_min_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    unsigned word = (unsigned)_mm_extract_epi16(_mm_minpos_epu16(m), 0);
    return (uint16_t)((word + 1) >> 8);
}

static bool served(unsigned least_w, unsigned least_x) {
    return least_w > 0 && least_x > 0 && least_w + least_x >= LEAST_PRODUCT;
}

// The least exponent field of an MXFP4 panel by its scales: the least nonzero code is 1/2. Block
// rows of zeros do not count; 0 where another's scale does not fit bf16.
static uint16_t least_scale(const sinkproof_panels *w, size_t p) {
    unsigned least = NO_NUMBER;
    size_t rows = smaller(SINKPROOF_PANEL_ROWS, w->rows - p * SINKPROOF_PANEL_ROWS);
    for (size_t b = 0; b < w->blocks; b++) {
        const uint8_t *block = w->data + p * w->panel_stride + b * w->block_stride;
        const uint8_t *scale_r = w->scales + (p * w->blocks + b) * SINKPROOF_PANEL_ROWS;
        for (size_t r = 0; r < rows; r++) {
            uint32_t quarter, codes = 0;
            for (size_t q = 0; q < 4; q++) {
                memcpy(&quarter, block + q * ROW + r * sizeof quarter, sizeof quarter);
                codes |= quarter & 0x77777777u;
            }
            if (codes == 0) continue;
            if (scale_r[r] < 2 || scale_r[r] > 252) return 0;
            if (scale_r[r] - 1u < least) least = scale_r[r] - 1u;
        }
    }
    return (uint16_t)least;
}

// A quick look at the scales alone: no more than least_scale, and nearly always the same.
static uint16_t least_scale_seen(const sinkproof_panels *w, size_t p) {
    const uint8_t *scale = w->scales + p * w->blocks * SINKPROOF_PANEL_ROWS;
    __m128i low = _mm_set1_epi8(-1), high = _mm_setzero_si128();
    for (size_t b = 0; b < w->blocks; b++) {
        __m128i s = _mm_loadu_si128((const __m128i *)(scale + b * SINKPROOF_PANEL_ROWS));
        low = _mm_min_epu8(low, s), high = _mm_max_epu8(high, s);
    }
    uint8_t lows[16], highs[16];
    _mm_storeu_si128((__m128i *)lows, low), _mm_storeu_si128((__m128i *)highs, high);
    unsigned least = 255, most = 0;
    for (int r = 0; r < 16; r++) {
        if (lows[r] < least) least = lows[r];
        if (highs[r] > most) most = highs[r];
    }
    return least < 2 || most > 252 ? 0 : (uint16_t)(least - 1);
}

// ---- operands --------------------------------------------------------------------------------

// The chunk's columns of the group's tokens, into A tiles: tile t of block b at a + (t blocks + b)
// TILE.
static void gather(job *j) {
    for (size_t i = 0; i < j->tokens; i++) {
        const uint16_t *x = j->product->x16_n[j->token + i] + j->block * SINKPROOF_PANEL_COLS;
        uint8_t *to = j->a + i / 16 * j->blocks * TILE + i % 16 * ROW;
        __m512i least = _mm512_set1_epi16(-1);
        for (size_t b = 0; b < j->blocks; b++) {
            __m512i w = _mm512_loadu_si512(x + b * SINKPROOF_PANEL_COLS);
            _mm512_store_si512(to + b * TILE, w);
            least = least_words(least, w);
        }
        uint16_t exponent = least_exponent(least);
        if (j->block == 0 || exponent < j->least_i[i]) j->least_i[i] = exponent;
    }
}

// Blocks `block` .. + count - 1 of an MXFP4 panel as B tiles. vpermw reads the low five bits of
// each word: the code and one bit of its neighbour, so the sixteen codes stand in the table twice.
// The scale is added to the exponent, but not to a zero's.
static void decode(const sinkproof_panels *w, size_t p, size_t block, size_t count, uint8_t *to) {
    static const uint16_t code[16] = {0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
                                      0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0,
                                      0xc000, 0xc040, 0xc080, 0xc0c0};
    const __m256i half = _mm256_loadu_si256((const __m256i *)code);
    const __m512i table = _mm512_broadcast_i64x4(half);
    const uint8_t *from = w->data + p * w->panel_stride + block * w->block_stride;
    const uint8_t *scale = w->scales + (p * w->blocks + block) * SINKPROOF_PANEL_ROWS;
    for (size_t b = 0; b < count; b++, from += w->block_stride, scale += SINKPROOF_PANEL_ROWS) {
        __m512i s = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)scale));
        s = _mm512_slli_epi32(_mm512_sub_epi32(s, _mm512_set1_epi32(127)), 23); // in the high word
        s = _mm512_or_si512(s, _mm512_srli_epi32(s, 16));                       // and in the low
        for (int q = 0; q < 4; q++) {
            __m512i codes = _mm512_loadu_si512(from + q * ROW);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++, to += ROW) {
                __m512i number =
                    _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, (unsigned)(4 * k)), table);
                __mmask32 nonzero =
                    _mm512_test_epi16_mask(codes, _mm512_set1_epi16((short)(7 << 4 * k)));
                _mm512_store_si512(to, _mm512_mask_add_epi16(number, nonzero, number, s));
            }
        }
    }
}

// ---- products --------------------------------------------------------------------------------

// T = 1: sums of panel p in tile p (0 .. 3), the tokens in tile 4, weights in 5 to 7.
// T = 2: sums of tokens t and panel p in tile 2 t + p, the tokens in 4 and 5, weights in 6 and 7.
static void configure(job *j, int T, size_t r0, size_t r1) {
    size_t wanted = 10000 * (size_t)T + 100 * r0 + r1;
    if (j->configured == wanted) return;
    tile_config config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        bool second = T == 2 && (t == 2 || t == 3 || t == 5), weights = t > (T == 2 ? 5 : 4);
        config.row_bytes[t] = ROW;
        config.rows[t] = weights ? 16 : (uint8_t)(second ? r1 : r0);
    }
    TILE_CONFIGURE(config);
    j->configured = wanted;
}

static inline __attribute__((always_inline)) void look_at(const uint8_t *block, __m512i *least) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) *least = least_words(*least, _mm512_loadu_si512(block + i * ROW));
}

// The sums += over `blocks` blocks, T token tiles at a[t], P panels at b[p], b_stride bytes from
// block to block; with `look` also the least words of the weights. T, P and look are constants
// where it is inlined.
static inline __attribute__((always_inline)) void multiply(int T, int P, bool look, size_t blocks,
                                                           const uint8_t *const *a,
                                                           const uint8_t *const *b, size_t b_stride,
                                                           __m512i *least) {
    const uint8_t *a0 = a[0], *a1 = a[1], *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    for (size_t k = 0; k < blocks; k++) {
        TILE_LOAD(4, a0);
        if (T == 2) {
            TILE_LOAD(6, b0);
            TILE_PRODUCT(0, 4, 6);
            TILE_LOAD(5, a1);
            TILE_PRODUCT(2, 5, 6);
            if (P > 1) {
                TILE_LOAD(7, b1);
                TILE_PRODUCT(1, 4, 7);
                TILE_PRODUCT(3, 5, 7);
            }
        } else {
            TILE_LOAD(5, b0);
            TILE_PRODUCT(0, 4, 5);
            if (P > 1) {
                TILE_LOAD(6, b1);
                TILE_PRODUCT(1, 4, 6);
            }
            if (P > 2) {
                TILE_LOAD(7, b2);
                TILE_PRODUCT(2, 4, 7);
            }
            if (P > 3) {
                TILE_LOAD(5, b3);
                TILE_PRODUCT(3, 4, 5);
            }
        }
        if (look) {
            look_at(b0, &least[0]);
            if (P > 1) look_at(b1, &least[1]);
            if (P > 2) look_at(b2, &least[2]);
            if (P > 3) look_at(b3, &least[3]);
        }
        a0 += TILE, b0 += b_stride;
        if (T > 1) a1 += TILE;
        if (P > 1) b1 += b_stride;
        if (P > 2) b2 += b_stride;
        if (P > 3) b3 += b_stride;
    }
}

static void multiply_any(int T, int P, bool look, size_t blocks, const uint8_t *const *a,
                         const uint8_t *const *b, size_t b_stride, __m512i *least) {
    switch ((T == 2 ? 8 : 0) + 2 * (P - 1) + (look ? 1 : 0)) {
    case 0:
        multiply(1, 1, false, blocks, a, b, b_stride, least);
        break;
    case 1:
        multiply(1, 1, true, blocks, a, b, b_stride, least);
        break;
    case 2:
        multiply(1, 2, false, blocks, a, b, b_stride, least);
        break;
    case 3:
        multiply(1, 2, true, blocks, a, b, b_stride, least);
        break;
    case 4:
        multiply(1, 3, false, blocks, a, b, b_stride, least);
        break;
    case 5:
        multiply(1, 3, true, blocks, a, b, b_stride, least);
        break;
    case 6:
        multiply(1, 4, false, blocks, a, b, b_stride, least);
        break;
    case 7:
        multiply(1, 4, true, blocks, a, b, b_stride, least);
        break;
    case 8:
        multiply(2, 1, false, blocks, a, b, b_stride, least);
        break;
    case 9:
        multiply(2, 1, true, blocks, a, b, b_stride, least);
        break;
    case 10:
        multiply(2, 2, false, blocks, a, b, b_stride, least);
        break;
    default:
        multiply(2, 2, true, blocks, a, b, b_stride, least);
    }
}

// The sums of T token tiles from t and P panels from p, between c and y; the bias at the very end.
static void sums_from_y(const job *j, int T, size_t t, size_t p, size_t P) {
    for (size_t i = 16 * t; i < smaller(j->tokens, 16 * (t + (size_t)T)); i++) {
        const float *y = j->product->y_n[j->token + i] + p * SINKPROOF_PANEL_ROWS;
        float *c = j->c + (i / 16 - t) * 512 + i % 16 * 16;
        for (size_t k = 0; k < P; k++) _mm512_store_ps(c + 256 * k, _mm512_loadu_ps(y + 16 * k));
    }
}

static void sums_to_y(const job *j, int T, size_t t, size_t p, size_t P, bool last) {
    const float *bias = last ? j->product->bias_r : NULL;
    for (size_t i = 16 * t; i < smaller(j->tokens, 16 * (t + (size_t)T)); i++) {
        float *y = j->product->y_n[j->token + i] + p * SINKPROOF_PANEL_ROWS;
        const float *c = j->c + (i / 16 - t) * 512 + i % 16 * 16;
        for (size_t k = 0; k < P; k++) {
            __m512 sum = _mm512_load_ps(c + 256 * k);
            if (bias != NULL) sum = _mm512_add_ps(sum, _mm512_loadu_ps(bias + 16 * (p + k)));
            _mm512_storeu_ps(y + 16 * k, sum);
        }
    }
}

// The chunk's part of the sums of panels p .. p + P - 1, all tokens of the group. With one or two
// token tiles the sums stay in tiles from slice to slice; with more they wait in y.
static void panels_of(job *j, size_t p, size_t P) {
    const sinkproof_panels *w = j->product->weight;
    const bool coded = w->format == SINKPROOF_PANEL_MXFP4, stay = j->tiles <= 2;
    __m512i least[4] = {_mm512_set1_epi16(-1), _mm512_set1_epi16(-1), _mm512_set1_epi16(-1),
                        _mm512_set1_epi16(-1)};
    for (size_t b = 0; b < j->blocks; b += j->slice) {
        size_t count = smaller(j->slice, j->blocks - b), at = j->block + b;
        const uint8_t *weight[4] = {NULL};
        for (size_t k = 0; k < P; k++) {
            uint8_t *decoded = j->b + k * j->slice * TILE;
            if (coded) decode(w, p + k, at, count, decoded);
            weight[k] =
                coded ? decoded : w->data + (p + k) * w->panel_stride + at * w->block_stride;
        }
        for (size_t t = 0; t < j->tiles; t += 2) {
            int T = j->tiles - t > 1 ? 2 : 1;
            size_t rows = j->tokens - 16 * t;
            configure(j, T, smaller(rows, 16), T == 2 ? smaller(rows - 16, 16) : 0);
            if (at == 0) {
                TILE_ZERO(0);
                TILE_ZERO(1);
                TILE_ZERO(2);
                TILE_ZERO(3);
            } else if (b == 0 || !stay) {
                sums_from_y(j, T, t, p, P);
                TILE_LOAD(0, j->c);
                TILE_LOAD(1, j->c + 256);
                TILE_LOAD(2, j->c + 512);
                TILE_LOAD(3, j->c + 768);
            }
            const uint8_t *tokens[2] = {j->a + (t * j->blocks + b) * TILE,
                                        j->a + ((t + 1) * j->blocks + b) * TILE};
            multiply_any(T, (int)P, j->look && !coded && t == 0, count, tokens, weight,
                         coded ? (size_t)TILE : w->block_stride, least);
            if (stay && b + count < j->blocks) continue;
            TILE_STORE(0, j->c);
            TILE_STORE(1, j->c + 256);
            TILE_STORE(2, j->c + 512);
            TILE_STORE(3, j->c + 768);
            sums_to_y(j, T, t, p, P, at + count == w->blocks);
        }
    }
    for (size_t k = 0; k < P && j->look && !coded; k++) {
        uint16_t *known = &j->least_p[p + k - j->first], exponent = least_exponent(least[k]);
        if (exponent < *known) *known = exponent;
    }
}

// What the tiles do not serve, by the lanes, without a flush: they read the operands as float32.
static void mend(const job *j, size_t last, void *scratch) {
    const sinkproof_product *whole = j->product;
    const float *x[GROUP];
    const uint16_t *x16[GROUP];
    float *y[GROUP];
    unsigned least = NO_NUMBER;
    for (size_t i = 0; i < j->tokens; i++)
        if (j->least_i[i] < least) least = j->least_i[i];
    for (size_t p = j->first; p < last; p++) {
        unsigned least_w = j->least_p[p - j->first];
        if (served(least_w, least)) continue;
        if (whole->weight->format == SINKPROOF_PANEL_MXFP4)
            j->least_p[p - j->first] = (uint16_t)(least_w = least_scale(whole->weight, p));
        sinkproof_product part = {whole->weight, whole->bias_r, 0, x, x16, y};
        for (size_t i = 0; i < j->tokens; i++) {
            if (served(least_w, j->least_i[i])) continue;
            x[part.n] = whole->x_n[j->token + i];
            x16[part.n] = whole->x16_n[j->token + i];
            y[part.n++] = whole->y_n[j->token + i];
        }
        if (part.n > 0) sinkproof_kernels_avx512.linear(&part, p, p + 1, scratch);
    }
}

// One group of tokens, panels first .. last - 1.
static void group_of(job *j, size_t last) {
    const sinkproof_panels *w = j->product->weight;
    const bool coded = w->format == SINKPROOF_PANEL_MXFP4;
    const size_t at_once = j->tiles == 1 ? 4 : 2, room = A_TILES / j->tiles;
    const size_t chunks = (w->blocks + room - 1) / room;
    const size_t chunk = (w->blocks + chunks - 1) / chunks;
    const size_t near = j->tiles <= 2 ? NEAR_BLOCKS : B_TILES / at_once;
    for (j->block = 0; j->block < w->blocks; j->block += chunk) {
        j->blocks = smaller(chunk, w->blocks - j->block);
        j->slice = coded ? smaller(j->blocks, near) : j->blocks;
        gather(j);
        for (size_t p = j->first; p < last; p += at_once)
            panels_of(j, p, smaller(at_once, last - p));
    }
}

// A few tokens, by vectors, which read the least exponents where packing left them.
static void few_of(job *j, size_t last) {
    const sinkproof_panels *w = j->product->weight;
    j->tokens = j->product->n;
    for (size_t i = 0; i < j->tokens; i++) {
        __m512i least = _mm512_set1_epi16(-1);
        for (size_t b = 0; b < w->blocks; b++)
            least = least_words(least, _mm512_loadu_si512(j->product->x16_n[i] + 32 * b));
        j->least_i[i] = least_exponent(least);
    }
    for (size_t p = j->first; p < last && w->format == SINKPROOF_PANEL_BF16; p++)
        j->least_p[p - j->first] = w->least_p[p] == 255 ? NO_NUMBER : w->least_p[p];
    sinkproof_amx_few(j->product, j->first, last);
}

static void range_of(job *j, size_t first, size_t last, void *scratch) {
    const sinkproof_panels *w = j->product->weight;
    const size_t n = j->product->n, tiles = (n + 15) / 16;
    const size_t groups = (tiles + GROUP / 16 - 1) / (GROUP / 16);
    const size_t group = 16 * ((tiles + groups - 1) / groups);
    j->first = first;
    for (size_t p = first; p < last; p++)
        j->least_p[p - first] =
            w->format == SINKPROOF_PANEL_MXFP4 ? least_scale_seen(w, p) : NO_NUMBER;
    if (n <= SINKPROOF_AMX_FEW && (w->format == SINKPROOF_PANEL_MXFP4 || w->least_p != NULL)) {
        few_of(j, last);
        mend(j, last, scratch);
        return;
    }
    for (j->token = 0; j->token < n; j->token += group) {
        j->tokens = smaller(group, n - j->token);
        j->tiles = (j->tokens + 15) / 16;
        j->look = j->token == 0;
        group_of(j, last);
        mend(j, last, scratch);
    }
}

void sinkproof_amx_linear(const sinkproof_product *product, size_t first, size_t last,
                          void *scratch) {
    const sinkproof_panels *w = product->weight;
    if (product->x16_n == NULL ||
        (w->format != SINKPROOF_PANEL_BF16 && w->format != SINKPROOF_PANEL_MXFP4)) {
        sinkproof_kernels_avx512.linear(product, first, last, scratch);
        return;
    }
    if (product->n == 0) return;
    uint16_t least_p[RANGE];
    uint8_t *room = scratch;
    job j = {.product = product, .a = room, .b = room + A_TILES * TILE, .least_p = least_p};
    j.c = (float *)(room + (A_TILES + B_TILES) * TILE);
    for (; first < last; first += smaller(RANGE, last - first))
        range_of(&j, first, first + smaller(RANGE, last - first), scratch);
    if (j.configured != 0) TILE_RELEASE();
}
