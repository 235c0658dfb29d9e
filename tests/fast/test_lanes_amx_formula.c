// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mode amx as its headers state it, a second time and on any machine: a fused multiply-add is
// MPFR's at 24 bits with float32's exponents, a sum of two is binary64's rounded once, a part of a
// weight is a quotient's floor, and a condition on magnitudes compares whole exponents. Attention
// is told span by span, with tiles or with lanes as the numbers that a query sees decide: each
// reason for the lanes is planted alone, in the query, a key or a value, in sight and out of it.
#include "fast/lanes/amx.h"
#include "tests/shared/lanes.h"

#include <mpfr.h>

enum { SIDE = 16, BLOCK = 32, SPAN = 256, BEYOND = 4096 };

static float fused(float a, float b, float c) {
    static mpfr_t x, y, z;
    static bool made;
    if (!made) {
        mpfr_set_emin(-148), mpfr_set_emax(128);
        mpfr_inits2(24, x, y, z, (mpfr_ptr)NULL);
        made = true;
    }
    mpfr_set_flt(x, a, MPFR_RNDN), mpfr_set_flt(y, b, MPFR_RNDN), mpfr_set_flt(z, c, MPFR_RNDN);
    int side = mpfr_fma(z, x, y, z, MPFR_RNDN);
    mpfr_subnormalize(z, side, MPFR_RNDN);
    return mpfr_get_flt(z, MPFR_RNDN);
}

static float plus(double a, double b) {
    return (float)(a + b);
}

static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

// ---- sums -----------------------------------------------------------------------------------

// Columns 0, 2, ... 30 and columns 1, 3, ... 31; `first` and `last` bound those that are not zero.
static float told_block(size_t first, size_t last, const float *w_c, const float *x_c) {
    float side[2] = {0, 0};
    for (size_t parity = 0; parity < 2; parity++)
        for (size_t i = 0; i < SIDE; i++) {
            size_t c = 2 * i + parity;
            if (c >= first && c < last) side[parity] = fused(x_c[c], w_c[c], side[parity]);
        }
    return plus(side[0], side[1]);
}

static float told_tiles(size_t n, const float *w_c, const float *x_c) {
    float total = 0;
    for (size_t b = 0; b < (n + BLOCK - 1) / BLOCK; b++)
        total = plus(total, told_block(0, n - b * BLOCK, w_c + b * BLOCK, x_c + b * BLOCK));
    return total;
}

// The largest bf16 number that is at most p >= 0.
static double told_upper(double p) {
    double unit = p > 0 ? fmax(ldexp(1, ilogb(p) - 7), 0x1p-133) : 1;
    return floor(p / unit) * unit;
}

static void told_parts(double p, float *part) {
    double high = told_upper(p), middle = told_upper(p - high);
    part[0] = (float)high, part[1] = (float)middle, part[2] = (float)(p - high - middle);
}

// Places first ... last - 1 of a span; a block without any adds nothing.
static float told_weighted(size_t first, size_t last, const float *v_j, const float *p_j) {
    float total = 0, part[3], part_kj[3][BLOCK];
    for (size_t b = 0; b < SPAN; b += BLOCK) {
        size_t from = first > b ? first - b : 0, to = last > b ? last - b : 0;
        if (from >= BLOCK || to == 0) continue;
        for (size_t j = 0; j < BLOCK; j++) {
            told_parts((double)p_j[b + j] * 0x1p96, part);
            for (size_t k = 0; k < 3; k++) part_kj[k][j] = part[k];
        }
        for (size_t k = 0; k < 3; k++)
            total = plus(total, told_block(from, to, v_j + b, part_kj[k]));
    }
    return (float)((double)total * 0x1p-96);
}

// ---- draws ----------------------------------------------------------------------------------

// +-m 2^e with a significand of `bits` bits and e in [least, most].
static float draw_float(uint64_t *state, int bits, int least, int most) {
    int e = least + (int)sinkproof_draw_from_to(state, 0, (size_t)(most - least));
    double top = ldexp(1, bits - 1),
           m = top + floor(ldexp((double)(next_bits(state) >> 32), -32) * top);
    return (float)(ldexp(m, e - bits + 1) * (next_bits(state) % 2 ? -1 : 1));
}

// As draw_float, with a zero in eight.
static float draw_some(uint64_t *state, int bits, int least, int most) {
    return next_bits(state) % 8 == 0 ? 0 : draw_float(state, bits, least, most);
}

// n zeros and those up to a multiple of 32, between numbers that no sum may meet.
enum { BEFORE = 2, ROOM = BEFORE + SPAN + BLOCK };
static float *cleared(float *room, size_t n) {
    size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    for (size_t i = 0; i < ROOM; i++) room[i] = i < BEFORE || i >= BEFORE + padded ? NAN : 0;
    return room + BEFORE;
}

// ---- the functions of amx.h -----------------------------------------------------------------

static void sums(void) {
    enum { CASES = 400 };
    uint64_t state = 31;
    size_t blocks = 0, dots = 0, lanes = 0;
    float w_room[ROOM], x_room[ROOM];
    for (size_t i = 0; i < CASES; i++) {
        size_t n = sinkproof_draw_from_to(&state, 0, 3 * BLOCK);
        int bits = i % 4 == 0 ? 24 : 8;
        float *w = cleared(w_room, n), *x = cleared(x_room, n);
        for (size_t c = 0; c < n; c++)
            w[c] = draw_some(&state, bits, -9, 9), x[c] = draw_some(&state, bits, -9, 9);
        dots += !same(amx_dot(n, w, x), told_tiles(n, w, x));
        if (n == 0) continue;
        float sum = amx_block_sum(w, x);
        blocks += !same(sum, told_block(0, BLOCK, w, x));
        lanes += !same(sum, lanes_block_sum(w, x));
    }
    ok(blocks == 0 && lanes > 0,
       "lanes.attention amx, a block's even and odd columns apart worst=%zu bound=0 of %d, the "
       "lanes differ in %zu seed=31",
       blocks, CASES, lanes);
    ok(dots == 0, "lanes.attention amx, block after block worst=%zu bound=0 of %d seed=31", dots,
       CASES);
}

// Adds to *wide the parts that are no bf16 numbers.
static size_t wrong_parts(float p, float *part, size_t *wide) {
    float told[3];
    told_parts(p, told);
    amx_split_weight(p, part);
    for (size_t k = 0; k < 3; k++) *wide += (double)part[k] != told_upper(part[k]);
    return !(same(part[0], told[0]) && same(part[1], told[1]) && same(part[2], told[2]));
}

static void parts(void) {
    uint64_t state = 32;
    size_t wrong = 0, wide = 0, inexact = 0, cases = 0, finer = 0;
    for (int e = -149; e < 128; e++)
        for (size_t i = 0; i < 40; i++, cases++) {
            float part[3], p = fabsf(draw_float(&state, e < -126 ? 150 + e : 24, e, e));
            if (i == 0) p = ldexpf(1, e); // one part, and nothing left
            wrong += wrong_parts(p, part, e < -110 ? &finer : &wide);
            inexact += (double)part[0] + part[1] + part[2] != (double)p;
        }
    float none[3];
    wrong += wrong_parts(0, none, &wide);
    ok(wrong + wide + inexact == 0 && finer > 0,
       "lanes.attention amx, a weight's parts, eight bits each and exact worst=%zu bound=0 of %zu, "
       "parts finer than bf16, of weights below 2^-110, %zu seed=32",
       wrong + wide + inexact, cases, finer);
}

static void weighted(void) {
    enum { CASES = 120 };
    uint64_t state = 33;
    size_t wrong = 0, lanes = 0;
    float v_room[ROOM], p_room[ROOM];
    for (size_t i = 0; i < CASES; i++) {
        size_t n = sinkproof_draw_from_to(&state, 0, i % 4 == 0 ? SPAN : BLOCK + 8);
        int deep = i % 3 == 0 ? -149 : -20;
        float *v = cleared(v_room, n), *p = cleared(p_room, n);
        for (size_t j = 0; j < n; j++) {
            v[j] = i % 2 ? draw_some(&state, 8, -58, 19) : draw_some(&state, 8, -3, 3);
            p[j] = fabsf(draw_some(&state, 24, deep, -1)); // rounded where it is subnormal
            if (next_bits(&state) % 16 == 0) p[j] = 1;
        }
        float sum = amx_weighted_sum(n, v, p);
        wrong += !same(sum, told_weighted(0, n, v, p));
        lanes += !same(sum, lanes_dot(n, v, NULL, p));
    }
    ok(wrong == 0 && lanes > 0,
       "lanes.attention amx, values weighted in three parts worst=%zu bound=0 of %d, the lanes "
       "differ in %zu seed=33",
       wrong, CASES, lanes);
}

// 2^exponent, or the number of binary64 below it. BEYOND is infinity, and -BEYOND zero.
typedef struct magnitude {
    int exponent;
    bool below;
} magnitude;

static double value_of(magnitude x) {
    return ldexp(x.below ? 1 - 0x1p-53 : 1, x.exponent);
}

static bool at_least(int exponent, magnitude x) {
    return x.exponent - x.below >= exponent;
}

// Where one of the two is just below its power, the product is below the product of the powers.
static bool told_serves(magnitude w, magnitude x) {
    magnitude product = {w.exponent + x.exponent, w.below || x.below};
    return at_least(-126, w) && at_least(-126, x) && at_least(-111, product);
}

static bool told_attends(magnitude k, magnitude q, magnitude least_v, magnitude most_v) {
    return told_serves(k, q) && at_least(-58, least_v) && !at_least(20, most_v);
}

static void report_answers(const char *what, size_t wrong, size_t yes, size_t cases) {
    ok(wrong == 0 && yes > 0 && yes < cases,
       "lanes.attention amx, %s tiles serve worst=%zu bound=0 of %zu, yes %zu", what, wrong, cases,
       yes);
}

static void serves(void) {
    size_t wrong = 0, yes = 0, cases = 0;
    for (int w = -150; w <= 128; w++)
        for (int x = -150; x <= 128; x++)
            for (int below = 0; below < 4; below++, cases++) {
                magnitude a = {w, below % 2}, b = {x, below / 2};
                bool told = told_serves(a, b);
                wrong += amx_can_multiply(value_of(a), value_of(b)) != told;
                yes += told;
            }
    report_answers("which products", wrong, yes, cases);
}

static void attends(void) {
    enum { OPERANDS = 28, VALUES = 22 }; // twice what stands here: each, and just below it
    static const int operand[OPERANDS / 2] = {-BEYOND, -127, -126, -125, -111, -60, -52,
                                              -51,     -50,  0,    15,   16,   127, BEYOND};
    static const int value[VALUES / 2] = {-BEYOND, -127, -59, -58, -57, 0, 19, 20, 21, 127, BEYOND};
    size_t wrong = 0, yes = 0, cases = 0;
    for (size_t i = 0; i < OPERANDS * OPERANDS; i++)
        for (size_t j = 0; j < VALUES * VALUES; j++, cases++) {
            size_t a = i / OPERANDS, b = i % OPERANDS, c = j / VALUES, d = j % VALUES;
            magnitude k = {operand[a / 2], a % 2}, q = {operand[b / 2], b % 2},
                      least = {value[c / 2], c % 2}, most = {value[d / 2], d % 2};
            bool told = told_attends(k, q, least, most);
            wrong +=
                amx_can_attend(value_of(k), value_of(q), value_of(least), value_of(most)) != told;
            yes += told;
        }
    report_answers("which queries", wrong, yes, cases);
}

// ---- attention ------------------------------------------------------------------------------

enum { ROWS = 2, WIDEST = 40, KEYS = 330, STRIDE = WIDEST + 5, ELSEWHERE = 7 };

static double q_id[ROWS * STRIDE], k_jd[KEYS * STRIDE], v_jd[KEYS * STRIDE], o_id[ROWS * STRIDE];

// What decides of some numbers: the powers of two at or below the smallest, zeros left out, and the
// largest; whether all are bf16 numbers.
typedef struct extent {
    magnitude least, most;
    bool bf16;
} extent;

static const extent nothing = {{BEYOND, false}, {-BEYOND, false}, true};

static void meet(extent *e, size_t n, const double *x) {
    for (size_t c = 0; c < n; c++) {
        if (x[c] == 0) continue;
        int exponent;
        frexp(x[c], &exponent);
        exponent--;
        double units = ldexp(x[c], 7 - (exponent < -126 ? -126 : exponent));
        e->bf16 = e->bf16 && units == floor(units);
        if (exponent < e->least.exponent) e->least.exponent = exponent;
        if (exponent > e->most.exponent) e->most.exponent = exponent;
    }
}

// Of the keys first ... last.
static bool told_served(size_t head_dim, const double *q_d, size_t first, size_t last) {
    extent q = nothing, k = nothing, v = nothing;
    meet(&q, head_dim, q_d);
    for (size_t j = first; j <= last; j++) {
        meet(&k, head_dim, &k_jd[j * STRIDE]);
        meet(&v, head_dim, &v_jd[j * STRIDE]);
    }
    return q.bf16 && k.bf16 && v.bf16 && told_attends(k.least, q.least, v.least, v.most);
}

// m, l and the values, not divided yet.
typedef struct online {
    float m, l, o_d[WIDEST];
} online;

// The keys first ... last, all of one span, as they stand alone.
static online told_span(size_t head_dim, const double *q_d, size_t first, size_t last, bool tiles) {
    online s = {.m = -INFINITY};
    double scale = (float)(1 / sqrt((double)head_dim)), p_d[SPAN] = {0}, v_d[SPAN] = {0};
    float p[SPAN] = {0}, v[SPAN] = {0}, x_c[2 * BLOCK], y_c[2 * BLOCK];
    size_t start = first / SPAN * SPAN;
    for (size_t j = first; j <= last; j++) {
        const double *k_d = &k_jd[j * STRIDE];
        for (size_t d = 0; d < head_dim; d++) x_c[d] = (float)q_d[d], y_c[d] = (float)k_d[d];
        float dot = tiles ? told_tiles(head_dim, y_c, x_c) : told_dot(head_dim, k_d, NULL, q_d);
        p[j - start] = (float)((double)dot * scale);
        s.m = fmaxf(s.m, p[j - start]);
    }
    for (size_t j = first - start; j <= last - start; j++)
        p_d[j] = p[j] = sinkproof_lanes_exp(plus(p[j], -(double)s.m));
    s.l = told_sum16(SPAN, p);
    for (size_t d = 0; d < head_dim; d++) {
        for (size_t j = first - start; j <= last - start; j++)
            v[j] = (float)(v_d[j] = v_jd[(start + j) * STRIDE + d]);
        s.o_d[d] = tiles ? told_weighted(first - start, last - start + 1, v, p)
                         : told_dot(SPAN, v_d, NULL, p_d);
    }
    return s;
}

// Of two states, the one with the larger maximum stays as it is.
static void told_join(size_t head_dim, online *a, const online *b) {
    online high = b->m > a->m ? *b : *a, low = b->m > a->m ? *a : *b;
    float r = sinkproof_lanes_exp(plus(low.m, -(double)high.m));
    a->m = high.m, a->l = fused(low.l, r, high.l);
    for (size_t d = 0; d < head_dim; d++) a->o_d[d] = fused(low.o_d[d], r, high.o_d[d]);
}

typedef struct seen {
    size_t spans, served, wrong, outputs, unlike;
} seen;

// Outputs of one query that are not as told.
static size_t wrong_row(const sinkproof_block *b, size_t i, bool amx, double sink, bool bf16,
                        seen *all) {
    size_t last = b->first + i, wrong = 0;
    size_t first = b->window > 0 && last >= b->window ? last - b->window + 1 : 0;
    const double *q_d = &q_id[i * STRIDE];
    online told = {.m = (float)sink, .l = 1};
    for (size_t s = first / SPAN; s <= last / SPAN; s++) {
        size_t from = s * SPAN > first ? s * SPAN : first,
               to = (s + 1) * SPAN - 1 < last ? (s + 1) * SPAN - 1 : last;
        bool tiles = amx && told_served(b->head_dim, q_d, from, to);
        online span = told_span(b->head_dim, q_d, from, to, tiles);
        told_join(b->head_dim, &told, &span);
        if (amx) all->spans++, all->served += tiles;
    }
    for (size_t d = 0; d < STRIDE; d++) {
        double o = ELSEWHERE; // behind the head's coordinates nothing is written
        if (d < b->head_dim) o = (float)((double)told.o_d[d] / told.l);
        if (d < b->head_dim && bf16) o = sinkproof_round(SINKPROOF_BF16, o);
        wrong += differing(1, &o, &o_id[i * STRIDE + d]);
    }
    return wrong;
}

// A number put in the place of another: into the query, a key or a value.
typedef struct plant {
    char where; // q, k, v; 0: nowhere
    double x;
} plant;

typedef struct situation {
    const char *what;
    int scale; // of queries, as a power of two; of keys, the inverse
    plant one, two;
    bool served; // with what is planted in sight
} situation;

static const situation situations[] = {
    {"bf16 numbers", 0, {0}, {0}, true},
    {"a query's ninth bit", 0, {'q', 0x1.01p0}, {0}, false},
    {"a query's eighth bit", 0, {'q', 0x1.02p0}, {0}, true},
    {"a key's ninth bit", 0, {'k', -0x1.01p0}, {0}, false},
    {"a value's ninth bit", 0, {'v', 0x1.01p0}, {0}, false},
    {"values of 2^-58", 0, {'v', -0x1p-58}, {0}, true},
    {"values below 2^-58", 0, {'v', -0x1.fep-59}, {0}, false},
    {"values below 2^20", 0, {'v', -0x1.fep19}, {0}, true},
    {"values of 2^20", 0, {'v', -0x1p20}, {0}, false},
    {"products of 2^-111", 0, {'k', -0x1p-60}, {'q', -0x1p-51}, true},
    {"products of 2^-112", 0, {'k', 0x1p-60}, {'q', 0x1p-52}, false},
    {"a key's and a query's power of two", 0, {'k', -0x1.8p-60}, {'q', -0x1.8p-52}, false},
    {"a key of 2^-126", 24, {'k', -0x1p-126}, {0}, true},
    {"a subnormal key", 24, {'k', 0x1.8p-127}, {0}, false},
    {"a query of 2^-126", -24, {'q', -0x1p-126}, {0}, true},
    {"a subnormal query", -24, {'q', 0x1.8p-127}, {0}, false},
};
enum { SITUATIONS = sizeof situations / sizeof *situations };

static void put(uint64_t *draws, const sinkproof_block *b, const plant *p, bool in_sight) {
    size_t d = sinkproof_draw_from_to(draws, 0, b->head_dim - 1), last = b->first;
    size_t back = sinkproof_draw_from_to(draws, 0, in_sight ? 0 : 60);
    size_t j = back > last ? 0 : last - back;
    if (p->where == 'q')
        for (size_t i = 0; i < ROWS; i++) q_id[i * STRIDE + d] = p->x;
    if (p->where == 'k') k_jd[j * STRIDE + d] = p->x;
    if (p->where == 'v') v_jd[j * STRIDE + d] = p->x;
}

// Queries and keys whose products are from 2^-10 to 2^5; NaN where no query of the block may look.
static void fill(uint64_t *draws, const sinkproof_block *b, int scale) {
    size_t first = sinkproof_mask_first(b->window, b->first);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t d = 0; d < STRIDE; d++) {
            o_id[i * STRIDE + d] = ELSEWHERE;
            q_id[i * STRIDE + d] =
                d < b->head_dim ? draw_some(draws, 8, scale - 5, scale + 2) : NAN;
        }
    for (size_t j = 0; j < KEYS; j++)
        for (size_t d = 0; d < STRIDE; d++) {
            bool known = j >= first && j < b->first + ROWS && d < b->head_dim;
            k_jd[j * STRIDE + d] = known ? draw_some(draws, 8, -scale - 5, 1 - scale) : NAN;
            v_jd[j * STRIDE + d] = known ? draw_some(draws, 8, -8, 8) : NAN;
        }
}

static void ask(uint64_t *draws, const sinkproof_block *b, bool bf16, seen *all) {
    sinkproof_policy policy = policy_of(bf16 ? "bf16-operands" : "f32");
    double b_i[ROWS], amx_id[ROWS * STRIDE];
    for (size_t i = 0; i < ROWS; i++) b_i[i] = next_real(draws, 3);
    if (next_bits(draws) % 8 == 0) b_i[0] = -INFINITY;
    amx_attention(&policy, b, b_i, q_id, k_jd, v_jd, o_id);
    for (size_t i = 0; i < ROWS; i++) all->wrong += wrong_row(b, i, true, b_i[i], bf16, all);
    memcpy(amx_id, o_id, sizeof o_id);
    lanes_attention(&policy, b, b_i, q_id, k_jd, v_jd, o_id);
    for (size_t i = 0; i < ROWS; i++) all->wrong += wrong_row(b, i, false, b_i[i], bf16, all);
    all->unlike += differing(ROWS * STRIDE, amx_id, o_id);
    all->outputs += 2 * ROWS * b->head_dim;
}

static sinkproof_block block_at(size_t first, size_t window, size_t head_dim) {
    return (sinkproof_block){ROWS, first + ROWS, first, window, head_dim, STRIDE, STRIDE};
}

static void report_seen(const char *what, bool holds, const seen *all, uint64_t seed) {
    ok(holds && all->wrong == 0,
       "lanes.attention amx, %s worst=%zu bound=0 of %zu, tiles serve %zu of %zu spans seed=%llu",
       what, all->wrong, all->outputs, all->served, all->spans, (unsigned long long)seed);
}

// Once in sight of all queries, in the key of the first; three times up to 60 keys before it.
static void planted(const situation *s, uint64_t seed) {
    static const size_t first[] = {254, 5, 256, 290}, window[] = {20, 0, 40, 33},
                        head_dim[] = {34, 7, 32, 2};
    seen all = {0};
    bool holds = true;
    uint64_t draws = seed;
    for (size_t i = 0; i < 4; i++) {
        sinkproof_block b = block_at(first[i], window[i], head_dim[(i + seed) % 4]);
        fill(&draws, &b, s->scale);
        put(&draws, &b, &s->one, i == 0), put(&draws, &b, &s->two, i == 0);
        ask(&draws, &b, false, &all);
        if (i == 0) holds = all.served == (s->served ? all.spans : 0);
        if (i == 0) holds = holds && (all.unlike > 0) == s->served;
    }
    report_seen(s->what, holds, &all, seed);
}

// Queries, keys and values that are zeros, each of them and together.
static void zeros(uint64_t seed) {
    seen all = {0};
    uint64_t draws = seed;
    for (size_t i = 0; i < 16; i++) {
        sinkproof_block b = block_at(280, 30, 34);
        fill(&draws, &b, 0);
        for (size_t d = 0; d < b.head_dim; d++) {
            for (size_t r = 0; r < ROWS && i & 1; r++) q_id[r * STRIDE + d] = 0;
            for (size_t j = 251; j < 282 && i & 2; j++) k_jd[j * STRIDE + d] = 0;
            for (size_t j = 251; j < 282 && i & 4; j++) v_jd[j * STRIDE + d] = 0;
        }
        ask(&draws, &b, i < 8, &all);
    }
    report_seen("zeros, and outputs in bf16", all.served == all.spans && all.unlike > 0, &all,
                seed);
}

// Two spans, of which the first, or for one query the second, has a key that is no bf16 number; and
// windows of two keys, where the spans before them must not be taken in: the sink outweighs them.
static void spans(uint64_t seed) {
    seen all = {0};
    uint64_t draws = seed;
    for (size_t i = 0; i < 15; i++) {
        sinkproof_block b = block_at(300, i < 3 ? 0 : 2, 5);
        fill(&draws, &b, 0);
        if (i == 1 || i == 2) k_jd[(i == 1 ? 10 : 301) * STRIDE + 3] = 0x1.01p0;
        ask(&draws, &b, false, &all);
    }
    report_seen("two spans or one", all.served + 3 == all.spans && all.unlike > 0, &all, seed);
}

int main(void) {
    sums();
    parts();
    weighted();
    serves();
    attends();
    for (size_t i = 0; i < SITUATIONS; i++) planted(&situations[i], 34 + i);
    zeros(60);
    spans(61);
    mpfr_free_cache();
    return tap_done();
}
