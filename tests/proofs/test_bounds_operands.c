// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Operands rounded when they are read (bound.operands), and activations in blocks of integers
// (bound.q8). Inside their sets: the three quantisers of ggml, whole kernels over them in several
// orders, and a product that is rounded before its bias. Outside: the neighbours of these results,
// slightly wrong quantisers, and engines that skip a rounding.
#include "tests/shared/bounds_engine.h"

#include "model/q8_0.h"
#include "ref/operands.h"

#include <stdlib.h>

static const uint64_t SEED = 20261122;

enum { BLOCK = SINKPROOF_Q8_0_BLOCK, MOST = 2880, ROWS = 3 };

// ---- quantisers of 32 float32 numbers: whole numbers q_c and the scale that is kept
// --------------

typedef void quantiser(const float *x_c, float *q_c, double *kept);

static float most_of(const float *x_c) {
    float most = 0;
    for (size_t c = 0; c < BLOCK; c++) most = fmaxf(most, fabsf(x_c[c]));
    return most;
}
static double f16_of(float d) {
    return sinkproof_round(SINKPROOF_F16, (double)d);
}
static void scalar(const float *x_c, float *q_c, double *kept) { // ties away from zero
    float d = most_of(x_c) / 127, per_d = d != 0 ? 1 / d : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = roundf(x_c[c] * per_d);
    *kept = f16_of(d);
}
static void neon(const float *x_c, float *q_c, double *kept) { // ties to even
    float d = most_of(x_c) / 127, per_d = d != 0 ? 1 / d : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = rintf(x_c[c] * per_d);
    *kept = f16_of(d);
}
static void avx2(const float *x_c, float *q_c, double *kept) { // the quotient the other way round
    float most = most_of(x_c), per_d = most != 0 ? 127 / most : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = rintf(x_c[c] * per_d);
    *kept = f16_of(most / 127);
}
// Mistakes.
static void truncating(const float *x_c, float *q_c, double *kept) {
    avx2(x_c, q_c, kept);
    float per_d = most_of(x_c) != 0 ? 127 / most_of(x_c) : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = truncf(x_c[c] * per_d);
}
static void by_128(const float *x_c, float *q_c, double *kept) {
    float d = most_of(x_c) / 128, per_d = d != 0 ? 1 / d : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = rintf(x_c[c] * per_d);
    *kept = f16_of(d);
}
static void by_kept(const float *x_c, float *q_c,
                    double *kept) { // only what is near a half differs
    *kept = f16_of(most_of(x_c) / 127);
    float per_d = *kept != 0 ? (float)(1 / *kept) : 0;
    for (size_t c = 0; c < BLOCK; c++) q_c[c] = rintf(x_c[c] * per_d);
}
static void scale_f32(const float *x_c, float *q_c, double *kept) {
    scalar(x_c, q_c, kept);
    *kept = (double)(most_of(x_c) / 127);
}

static const struct named_quantiser {
    const char *name;
    quantiser *run;
} honest[] = {{"scalar", scalar}, {"NEON", neon}, {"AVX2", avx2}},
  wrong[] = {{"truncates", truncating},
             {"has a scale of amax / 128", by_128},
             {"divides by the kept scale", by_kept},
             {"keeps its scale in float32", scale_f32}};
enum { HONEST = sizeof honest / sizeof honest[0], WRONG = sizeof wrong / sizeof wrong[0] };

// ---- blocks
// --------------------------------------------------------------------------------------

typedef enum block_kind {
    GAUSS_BLOCK,
    TIES,
    ZEROS,
    ONE_LARGE,
    EQUAL,
    SMALL,
    BLOCK_KINDS
} block_kind;

static void draw_block(uint64_t *state, block_kind kind, float *x_c) {
    float step = (float)ldexp(1, (int)draw_below(state, 12) - 6);
    for (size_t c = 0; c < BLOCK; c++) {
        x_c[c] = (float)draw_from(state, SINKPROOF_F32, kind == SMALL ? 1e-9 : 2);
        if (kind == TIES) x_c[c] = step * ((float)draw_below(state, 126) - 62.5f);
        if (kind == ZEROS) x_c[c] = 0;
        if (kind == EQUAL && c > 0) x_c[c] = x_c[0];
    }
    if (kind == TIES) x_c[draw_below(state, BLOCK)] = 127 * step;
    if (kind == ONE_LARGE) x_c[draw_below(state, BLOCK)] *= 1000;
}

static sinkproof_matrix mxfp4_of(uint8_t *codes, uint8_t *scales, size_t rows, size_t cols) {
    return (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_MXFP4,
                              .count = 1,
                              .rows = rows,
                              .cols = cols,
                              .data = codes,
                              .scales = scales,
                              .stack_stride = rows * cols,
                              .row_stride = cols,
                              .col_stride = 1,
                              .name = "w"};
}

// The set of what a product with blocks reads where x is one number each.
static void read_of(const sinkproof_setting *s, size_t n, const float *x_c,
                    sinkproof_honest *read) {
    static uint8_t codes[MOST / 2], scales[MOST / BLOCK];
    static sinkproof_honest x[MOST];
    sinkproof_matrix w = mxfp4_of(codes, scales, 1, n);
    for (size_t c = 0; c < n; c++) x[c] = sinkproof_exact_set((double)x_c[c]);
    sinkproof_planes p = sinkproof_operand_planes(s, AT_M5_IN, &w, x, 1);
    must(p.mid != NULL);
    for (size_t c = 0; c < n; c++) {
        double off = p.known ? 0 : p.worst[c];
        read[c] = (sinkproof_honest){.lo = p.mid[c] - off, .hi = p.mid[c] + off, .mid = p.mid[c]};
    }
    sinkproof_planes_free(&p);
}

// Every quantiser on every kind of block; the neighbours q - 1 and q + 1 of what one makes.
static void quantisers_inside(void) {
    sinkproof_policy policy = policy_named("f32,M5.in=q8_0");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    uint64_t state = SEED;
    for (int kind = 0; kind < BLOCK_KINDS; kind++) {
        size_t checked = 0, outside = 0, single = 0, neighbours = 0, admitted = 0,
               caught[WRONG] = {0};
        for (int round = 0; round < 400; round++) {
            float x_c[BLOCK], q_c[BLOCK];
            double kept;
            sinkproof_honest set[BLOCK];
            draw_block(&state, (block_kind)kind, x_c);
            read_of(&s, BLOCK, x_c, set);
            for (size_t e = 0; e < HONEST; e++) {
                honest[e].run(x_c, q_c, &kept);
                for (size_t c = 0; c < BLOCK; c++) {
                    double v = (double)q_c[c] * kept;
                    checked++, outside += !(v >= set[c].lo && v <= set[c].hi);
                    if (e > 0 || kept == 0) continue;
                    single += set[c].lo == set[c].hi, neighbours += 2;
                    admitted += (v - kept >= set[c].lo) + (v + kept <= set[c].hi);
                }
            }
            for (size_t e = 0; e < WRONG; e++) {
                wrong[e].run(x_c, q_c, &kept);
                bool seen = false;
                for (size_t c = 0; c < BLOCK; c++) {
                    double v = (double)q_c[c] * kept;
                    seen = seen || !(v >= set[c].lo && v <= set[c].hi);
                }
                caught[e] += seen;
            }
        }
        bool ties = kind == TIES, empty = kind == ZEROS;
        ok(checked > 0 && outside == 0,
           "bound.q8 q8.encode quantisers on blocks %d worst=%zu bound=0 outside of=%zu", kind,
           outside, checked);
        ok(ties || admitted * 1000 <= neighbours,
           "bound.q8 blocks %d: %zu of %zu sets single worst=%zu bound=%zu neighbours inside", kind,
           single, neighbours / 2, admitted, ties ? neighbours : neighbours / 1000);
        if (kind == GAUSS_BLOCK)
            for (size_t e = 0; e < WRONG; e++)
                ok(caught[e] >= (e == 2 ? 40 : 390),
                   "bound.q8 a quantiser that %s is seen in %zu of 400 blocks", wrong[e].name,
                   caught[e]);
        if (empty) ok(neighbours == 0, "bound.q8 a block of zeros is zero");
    }
}

// ---- kernels
// -------------------------------------------------------------------------------------

// Sums of `part` neighbours as integers, each times its scale into one of `lanes` float32 sums.
static float kernel(size_t n, size_t part, size_t lanes, bool fused, const float *q,
                    const double *d, const double *w, const double *scale) {
    float sum_l[32] = {0};
    for (size_t k = 0, at = 0; k < n; k += part, at++) {
        double whole = 0;
        for (size_t i = k; i < k + part; i++) whole += (double)q[i] * w[i];
        float by = (float)(d[k / BLOCK] * scale[k / BLOCK]), *sum = &sum_l[at % lanes];
        *sum = fused ? fmaf(by, (float)whole, *sum) : *sum + by * (float)whole;
    }
    for (; lanes > 1; lanes /= 2)
        for (size_t l = 0; l < lanes / 2; l++) sum_l[l] += sum_l[l + lanes / 2];
    return sum_l[0];
}

typedef struct problem {
    size_t n;
    float x[MOST], q[MOST];
    double d[MOST / BLOCK], codes[MOST], scale[MOST / BLOCK];
    uint8_t packed[MOST / 2], scales[MOST / BLOCK];
} problem;

static void draw_problem(uint64_t *state, size_t n, problem *p) {
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
    p->n = n;
    for (size_t k = 0; k < n; k += BLOCK) {
        draw_block(state, draw_below(state, 8) == 0 ? ONE_LARGE : GAUSS_BLOCK, &p->x[k]);
        p->scales[k / BLOCK] = (uint8_t)(118 + draw_below(state, 6));
        p->scale[k / BLOCK] = ldexp(1, p->scales[k / BLOCK] - 127);
        for (size_t i = k; i < k + BLOCK; i += 2) {
            unsigned low = (unsigned)draw_below(state, 16), high = (unsigned)draw_below(state, 16);
            p->packed[i / 2] = (uint8_t)(low | high << 4);
            p->codes[i] = values[low], p->codes[i + 1] = values[high];
        }
    }
}

static void quantise(problem *p, quantiser *run) {
    for (size_t k = 0; k < p->n; k += BLOCK) run(&p->x[k], &p->q[k], &p->d[k / BLOCK]);
}

static sinkproof_honest set_of(const sinkproof_setting *s, problem *p) {
    static sinkproof_honest x[MOST];
    sinkproof_honest y;
    sinkproof_matrix w = mxfp4_of(p->packed, p->scales, 1, p->n);
    for (size_t c = 0; c < p->n; c++) x[c] = sinkproof_exact_set((double)p->x[c]);
    sinkproof_planes planes = sinkproof_operand_planes(s, AT_M5_IN, &w, x, 1);
    must(sinkproof_honest_linear(s, &planes, &(sinkproof_weight_rows){&w, 0, 1, NULL}, &y, 1));
    sinkproof_planes_free(&planes);
    return y;
}

static void kernels_inside(void) {
    static const size_t lengths[] = {32, 64, 512, 2880};
    static const struct shape {
        size_t part, lanes;
    } shapes[] = {{32, 1}, {4, 8}, {8, 4}, {16, 2}, {4, 32}};
    static problem p;
    sinkproof_policy blocks = policy_named("f32,M5.in=q8_0"), plain = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&blocks, 100, STANDARD_RATE);
    sinkproof_setting without = sinkproof_setting_for(&plain, 100, STANDARD_RATE);
    uint64_t state = SEED + 1;
    for (size_t l = 0; l < 4; l++) {
        tally t = {0};
        size_t convicted = 0, runs = 0;
        double narrower = 0;
        for (int round = 0; round < 60; round++) {
            draw_problem(&state, lengths[l], &p);
            sinkproof_honest set = set_of(&s, &p), unread = set_of(&without, &p);
            for (size_t e = 0; e < HONEST; e++) {
                quantise(&p, honest[e].run);
                for (size_t k = 0; k < 10; k++) {
                    float y = kernel(p.n, shapes[k / 2].part, shapes[k / 2].lanes, k % 2, p.q, p.d,
                                     p.codes, p.scale);
                    meet(&t, &set, (double)y);
                    runs++, convicted += !((double)y >= unread.lo && (double)y <= unread.hi);
                }
            }
            narrower += (set.hi - set.lo) / (unread.hi - unread.lo) / 60;
        }
        char what[80];
        snprintf(what, sizeof what, "kernels over %zu products", lengths[l]);
        inside_ok(&t, "bound.q8", what);
        ok(convicted * 10 >= runs * 9,
           "bound.q8 without the blocks %zu of %zu sums over %zu are outside", convicted, runs,
           lengths[l]);
        note("over %zu products the set is %.3g times as wide as that of float32 sums", lengths[l],
             narrower);
    }
}

// ---- operands in a number's format, and the product before its bias
// ------------------------------

static void operands_inside(void) {
    static const struct read {
        const char *policy;
        sinkproof_format format;
    } reads[] = {{"f32,A2.in=bf16", SINKPROOF_BF16}, {"f32,A2.in=f16", SINKPROOF_F16}};
    enum { N = 320 };
    static float w_f[N], x_f[N];
    static double w_c[N];
    static sinkproof_honest x[N];
    uint64_t state = SEED + 2;
    for (size_t k = 0; k < 2; k++) {
        sinkproof_policy policy = policy_named(reads[k].policy), plain = policy_named("f32");
        sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
        sinkproof_setting without = sinkproof_setting_for(&plain, 100, STANDARD_RATE);
        tally t = {0};
        size_t convicted = 0, skipped = 0, runs = 0;
        for (int round = 0; round < 100; round++) {
            sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = N};
            w.data = (const uint8_t *)w_c, w.row_stride = N, w.col_stride = 1, w.stack_stride = N;
            for (size_t c = 0; c < N; c++) {
                x[c] = sinkproof_exact_set(draw_from(&state, SINKPROOF_F32, 1));
                w_c[c] = draw_from(&state, SINKPROOF_BF16, 0.05), w_f[c] = (float)w_c[c];
                x_f[c] = (float)sinkproof_round(reads[k].format, x[c].mid);
            }
            sinkproof_honest sets[2];
            for (int own = 0; own < 2; own++) {
                const sinkproof_setting *of = own ? &s : &without;
                sinkproof_planes p = sinkproof_operand_planes(of, AT_A2_IN, &w, x, 1);
                must(sinkproof_honest_linear(of, &p, &(sinkproof_weight_rows){&w, 0, 1, NULL},
                                             &sets[own], 1));
                sinkproof_planes_free(&p);
            }
            for (summation o = 0; o < ORDERS; o++) {
                double y = (double)engine_dot(&state, o, o % 2, N, x_f, w_f, NULL, false);
                meet(&t, &sets[1], y);
                runs++, convicted += !(y >= sets[0].lo && y <= sets[0].hi);
            }
            for (size_t c = 0; c < N; c++)
                x_f[c] = (float)x[c].mid; // an engine that does not round
            double y = (double)engine_dot(&state, FORWARD, true, N, x_f, w_f, NULL, false);
            skipped += !(y >= sets[1].lo && y <= sets[1].hi);
        }
        inside_ok(&t, "bound.operands", reads[k].policy);
        ok(convicted * 5 > runs && skipped > 20,
           "bound.operands %s: of sums that round %zu of %zu are outside float32's set, of sums "
           "that do not %zu of 100 "
           "outside its own",
           reads[k].policy, convicted, runs, skipped);
    }
}

// y = round(round(s) + b) for a sum within float32 orders of s.
static void products_inside(void) {
    sinkproof_policy policy = policy_named("openai-bf16,A2.product=bf16"),
                     plain = policy_named("openai-bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
    sinkproof_setting without = sinkproof_setting_for(&plain, 100, STANDARD_RATE);
    uint64_t state = SEED + 3;
    size_t outside = 0, single = 0, convicted = 0, fused = 0, runs = 4000;
    for (size_t r = 0; r < runs; r++) {
        double sum = draw_from(&state, SINKPROOF_F32, 2), b = draw_from(&state, SINKPROOF_BF16, 1);
        double y = sinkproof_round(SINKPROOF_BF16, sinkproof_round(SINKPROOF_BF16, sum) + b);
        double at_once = sinkproof_round(SINKPROOF_BF16, sum + b);
        sinkproof_rounding before = policy.at[AT_A2_PRODUCT];
        sinkproof_honest set = sinkproof_exact_set(sum), direct = sinkproof_exact_set(sum + b);
        sinkproof_honest_finish(&s, AT_A2_PRODUCT, 1, &set);
        set = sinkproof_honest_add(set, sinkproof_honest_bias(&s, before, 64, b));
        sinkproof_honest_finish(&s, AT_A2, 1, &set);
        sinkproof_honest_finish(&without, AT_A2, 1, &direct);
        outside += !(y >= set.lo && y <= set.hi), single += set.lo == set.hi;
        convicted += !(y >= direct.lo && y <= direct.hi);
        fused += !(at_once >= set.lo && at_once <= set.hi);
    }
    ok(outside == 0 && single == runs,
       "bound.operands product rounded before its bias worst=%zu bound=0 outside of=%zu, %zu "
       "single",
       outside, runs, single);
    ok(convicted > runs / 20 && fused == convicted,
       "bound.operands %zu of %zu are outside where the policy rounds once, as many the other way",
       convicted, runs);
    sinkproof_rounding optional = {.format = SINKPROOF_BF16, .optional = true};
    sinkproof_honest open = sinkproof_honest_bias(&s, optional, 64, 1),
                     fixed = sinkproof_honest_bias(&s, policy.at[AT_A2_PRODUCT], 64, 1);
    double reach = sinkproof_gamma(64, 0x1p-24);
    ok(fixed.lo == 1 && fixed.hi == 1 && open.hi - 1 >= reach &&
           open.hi - 1 <= reach * 1.001 + 0x1p-120,
       "bound.operands a bias that may be a term of the sum has its roundings worst=%.3g "
       "bound=%.3g",
       open.hi - 1, reach);
}

int main(void) {
    quantisers_inside();
    kernels_inside();
    operands_inside();
    products_inside();
    return tap_done();
}
