// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of a sink's gradient: engines that go back in float32 in many orders, with O as it
// is or as bfloat16 stores it, are inside; mistakes of kernels are outside; and how wide the set is
// beside the gradient, by length.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/gradients.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <stdlib.h>

enum { DIM = 16, MOST = 4096 };

// A head: every query's scores are drawn; what backward reads of a row is alpha_s, O and dO.
typedef struct head {
    size_t n;
    double *alpha_s_i, *o_id, *do_id; // exact inputs of the backward pass
} head;

static double uniform(uint64_t *state) { // [-1, 1), 24 bits
    return (double)(draw_below(state, 1u << 24)) * 0x1p-23 - 1;
}

// `above`: the sink's logit over the typical score, so that its weight is small or large.
static head draw_head(uint64_t seed, size_t n, double above) {
    uint64_t state = seed;
    head h = {n, calloc(n, sizeof(double)), calloc(n * DIM, sizeof(double)),
              calloc(n * DIM, sizeof(double))};
    must(h.alpha_s_i != NULL && h.o_id != NULL && h.do_id != NULL);
    for (size_t i = 0; i < n; i++) {
        double seen = (double)(i + 1), e = exp(above + uniform(&state));
        h.alpha_s_i[i] = (double)(float)(e / (e + seen));
        for (size_t d = 0; d < DIM; d++) {
            h.o_id[i * DIM + d] = (double)(float)(uniform(&state) * (1 - h.alpha_s_i[i]));
            h.do_id[i * DIM + d] = sinkproof_round(SINKPROOF_BF16, uniform(&state));
        }
    }
    return h;
}
static void head_free(head *h) {
    free(h->alpha_s_i), free(h->o_id), free(h->do_id);
}

// O may be read as it is, or as bfloat16 stores it.
static sinkproof_honest honest_set(const head *h, bool stored) {
    sinkproof_honest *a = calloc(h->n, sizeof *a), *d = calloc(h->n, sizeof *d), o[DIM], given[DIM];
    must(a != NULL && d != NULL);
    for (size_t i = 0; i < h->n; i++) {
        for (size_t k = 0; k < DIM; k++) {
            double x = h->o_id[i * DIM + k], off = fabs(x) * 0x1p-8;
            o[k] = stored ? sinkproof_set_around(x, off, off, 0, 0) : sinkproof_exact_set(x);
        }
        a[i] = sinkproof_exact_set(h->alpha_s_i[i]);
        for (size_t k = 0; k < DIM; k++) given[k] = sinkproof_exact_set(h->do_id[i * DIM + k]);
        d[i] = sinkproof_honest_gradient_sum(DIM, given, 1, o, 1, 0x1p-24);
    }
    sinkproof_honest set = sinkproof_honest_sink_gradient(h->n, a, d, 0x1p-24);
    free(a), free(d);
    return set;
}

// ---- engines in float32 ----------------------------------------------------------------------

typedef struct engine {
    size_t block;       // queries whose terms are added before the block's sum is
    bool stored, fused; // O from bfloat16; products inside the sum
    uint64_t order;     // of the blocks, as atomics come
} engine;

static float row_delta(const head *h, size_t i, engine e) {
    float sum = 0;
    for (size_t d = 0; d < DIM; d++) {
        size_t k = (d * 7 + (size_t)e.order) % DIM;
        double o = h->o_id[i * DIM + k];
        float a = (float)h->do_id[i * DIM + k];
        float b = (float)(e.stored ? sinkproof_round(SINKPROOF_BF16, o) : o);
        sum = e.fused ? fmaf(a, b, sum) : sum + a * b;
    }
    return sum;
}

static float run_engine(const head *h, engine e) {
    size_t blocks = (h->n + e.block - 1) / e.block;
    uint64_t state = e.order;
    float total = 0, *part = calloc(blocks, sizeof *part);
    must(part != NULL);
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = b * e.block; i < h->n && i < (b + 1) * e.block; i++)
            part[b] -= (float)h->alpha_s_i[i] * row_delta(h, i, e);
    for (size_t b = blocks; b > 0; b--) { // the order in which blocks come
        size_t at = draw_below(&state, b);
        total += part[at];
        part[at] = part[b - 1];
    }
    free(part);
    return total;
}

static void honest_engines(void) {
    size_t runs = 0, outside = 0;
    double worst = 0;
    for (uint64_t seed = 1; seed <= 25; seed++)
        for (int stored = 0; stored < 2; stored++)
            for (size_t block = 1; block <= 64; block *= 4) {
                head h = draw_head(seed, 40 + 17 * (size_t)seed, (double)(seed % 9) - 2);
                sinkproof_honest set = honest_set(&h, stored);
                double g = (double)run_engine(
                    &h, (engine){block, stored, seed % 2 == 0, seed * 31 + block});
                runs++, outside += !(set.lo <= g && g <= set.hi);
                worst = sinkproof_keep_worst(worst, fabs(g - set.mid) / sinkproof_radius(&set));
                head_free(&h);
            }
    ok(outside == 0 && worst <= 1,
       "grad.rounded engines in float32: runs=%zu outside=%zu worst=%.3g bound=1", runs, outside,
       worst);
}

// ---- mistakes --------------------------------------------------------------------------------

typedef double made(const head *h);

static double sum_of_rows(const head *h, size_t first, double scale) {
    double sum = 0;
    for (size_t i = first; i < h->n; i++)
        for (size_t d = 0; d < DIM; d++)
            sum -= h->alpha_s_i[i] * h->do_id[i * DIM + d] * h->o_id[i * DIM + d];
    return sum * scale;
}
static double without_sign(const head *h) {
    return sum_of_rows(h, 0, -1);
}
static double missing(const head *h) {
    (void)h;
    return 0;
}
static double last_block(const head *h) {
    return sum_of_rows(h, h->n - h->n % 64 - (h->n % 64 == 0 ? 64 : 0), 1);
}
static double scaled(const head *h) { // by 1 / sqrt(d_h), as the scores are
    return sum_of_rows(h, 0, 0.25);
}
static double per_split(const head *h) { // once for each of two splits
    return sum_of_rows(h, 0, 2);
}
static double base_two(const head *h) { // without the logarithm of 2
    return sum_of_rows(h, 0, 1.4426950408889634);
}
static double renormalised(const head *h) { // D of weights that sum to 1
    double sum = 0;
    for (size_t i = 0; i < h->n; i++)
        for (size_t d = 0; d < DIM; d++)
            sum -= h->alpha_s_i[i] / (1 - h->alpha_s_i[i]) * h->do_id[i * DIM + d] *
                   h->o_id[i * DIM + d];
    return sum;
}

static void mistakes(void) {
    static const struct {
        const char *what;
        made *make;
    } made_of[] = {{"without its sign", without_sign},
                   {"missing", missing},
                   {"of the last block of queries", last_block},
                   {"over sqrt(head_dim)", scaled},
                   {"once per split", per_split},
                   {"over log 2", base_two},
                   {"of renormalised weights", renormalised}};
    for (size_t m = 0; m < sizeof made_of / sizeof *made_of; m++) {
        size_t outside = 0, drawn = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            head h = draw_head(seed, 100 + 37 * (size_t)seed, 3);
            sinkproof_honest set = honest_set(&h, false);
            double g = made_of[m].make(&h);
            drawn++, outside += g < set.lo || g > set.hi;
            head_free(&h);
        }
        ok(outside == drawn, "grad.sink a float32 gradient %s is outside: %zu of %zu",
           made_of[m].what, outside, drawn);
    }
}

// ---- how wide --------------------------------------------------------------------------------

static void widths(void) {
    bool grows = true;
    double before = 0;
    printf("# output sink-gradient-width|queries   O as it is  O in bfloat16  bits that cancel\n");
    for (size_t n = 128; n <= MOST; n *= 2) {
        double share[2] = {0, 0}, condition = 0;
        for (uint64_t seed = 1; seed <= 9; seed++) {
            head h = draw_head(seed + 100, n, 3);
            double size = 0;
            for (size_t k = 0; k < n * DIM; k++)
                size += fabs(h.alpha_s_i[k / DIM] * h.do_id[k] * h.o_id[k]);
            for (int stored = 0; stored < 2; stored++) {
                sinkproof_honest set = honest_set(&h, stored);
                share[stored] += sinkproof_radius(&set) / size / 9;
            }
            condition += log2(size / fabs(sum_of_rows(&h, 0, 1))) / 9;
            head_free(&h);
        }
        printf("# output sink-gradient-width|%7zu %12.1e %14.1e %17.1f\n", n, share[0], share[1],
               condition);
        grows = grows && share[0] > before && share[1] > share[0];
        before = share[0];
    }
    ok(grows, "grad.rounded the set grows with the number of queries, and with a rounded output");
}

// Products below the smallest normal number: an engine may flush each to zero.
static void underflow(void) {
    sinkproof_honest small[3];
    for (int k = 0; k < 3; k++) small[k] = sinkproof_exact_set(0x1p-80);
    sinkproof_honest set = sinkproof_honest_gradient_sum(3, small, 1, small, 1, 0x1p-24);
    ok(set.lo <= 0 && set.hi >= 3 * 0x1p-160 && set.hi <= 0x1p-120,
       "grad.rounded products that underflow: 0 is inside, set=[%.3g, %.3g]", set.lo, set.hi);
}

// alpha (dalpha - D) below the smallest normal number: an engine may flush it, or the difference.
static void score_underflow(void) {
    const double of_m[][3] = {
        {0x1p-100, 0x1p-29, 0}, {1, 0x1.8p-126, 0x1p-126}, {0.5, 0x1p-126, 0}};
    bool zero = true, narrow = true;
    for (size_t m = 0; m < sizeof of_m / sizeof *of_m; m++) {
        sinkproof_honest alpha = sinkproof_exact_set(of_m[m][0]);
        sinkproof_honest dalpha = sinkproof_exact_set(of_m[m][1]);
        sinkproof_honest delta = sinkproof_exact_set(of_m[m][2]);
        sinkproof_honest set = honest_score_gradient(alpha, dalpha, delta, 0x1p-24);
        zero = zero && set.lo <= 0 && set.hi >= of_m[m][0] * (of_m[m][1] - of_m[m][2]);
        narrow = narrow && set.hi <= 0x1p-122;
    }
    ok(zero && narrow, "grad.rounded a score's gradient that underflows: 0 is inside");
}

// A subnormal operand, which an engine may read as 0, times a large one.
static void subnormal_operands(void) {
    sinkproof_honest tiny = sinkproof_exact_set(0x1p-130), large = sinkproof_exact_set(0x1p40);
    sinkproof_honest none = sinkproof_exact_set(0);
    sinkproof_honest sum = sinkproof_honest_gradient_sum(1, &tiny, 1, &large, 1, 0x1p-24);
    sinkproof_honest turned = sinkproof_honest_gradient_sum(1, &large, 1, &tiny, 1, 0x1p-24);
    sinkproof_honest score = honest_score_gradient(tiny, large, none, 0x1p-24);
    ok(sum.lo <= 0 && turned.lo <= 0 && score.lo <= 0 && sum.hi < 0x1p-88,
       "grad.rounded a subnormal operand may be read as 0");
    sum = sinkproof_honest_gradient_sum(1, &tiny, 1, &large, 1, 0x1p-53);
    ok(sum.lo > 0, "grad.rounded in binary64 it is no subnormal number");
}

int main(void) {
    honest_engines();
    mistakes();
    widths();
    underflow();
    score_underflow();
    subnormal_operands();
    return tap_done();
}
