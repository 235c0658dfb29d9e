// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Products of weights whose blocks have a minimum, or 256 elements, with activations in blocks of
// whole numbers (bound.q8-minima, bound.q8). Inside: kernels in several orders over the quantisers
// of ggml. Outside: rounding twice as coarse or none, minima left out, sums of the numbers
// themselves, the scale of the next block. The reference's own product is compared
// with these kernels' exact sum, and a sum in a given order is unknown.
#include "tests/shared/bounds_engine.h"

#include "model/ggml_blocks.h"
#include "ref/operands.h"
#include "ref/stages.h"

#include <string.h>

static const uint64_t SEED = 20261127;
enum { N = 768, DRAWS = 200, PART = 32, BYTES = N / PART * 40 };

// ---- activations, quantised by code of this file's own

typedef enum manner {
    AWAY,     // ties away from zero, times 1 / (amax / 127)
    EVEN,     // ties to even, times 127 / amax
    COARSE,   // amax / 63
    UNROUNDED // x itself
} manner;

typedef struct quantised {
    double q[N], d[N / PART]; // a number is q d of its part
    double sum[N / PART];     // what meets a minimum
} quantised;

// Parts of a block of 256 share its scale, which stays in float32.
static void quantise(manner how, bool of_256, const float *x, quantised *out) {
    size_t block = of_256 ? 256 : PART;
    for (size_t c = 0; c < N; c += block) {
        float most = 0, largest = 0;
        for (size_t i = c; i < c + block; i++)
            if (fabsf(x[i]) > most) most = fabsf(x[i]), largest = x[i];
        float levels = how == COARSE ? 63 : 127, d = most / levels, per_d = levels / most;
        if (of_256) per_d = -levels / largest, d = 1 / per_d;
        for (size_t p = c / PART; p < (c + block) / PART; p++) {
            double whole = 0;
            out->d[p] = of_256 ? (double)d : sinkproof_round(SINKPROOF_F16, (double)d);
            for (size_t i = PART * p; i < PART * (p + 1); i++) {
                float t = x[i] * (how == AWAY && !of_256 ? 1 / d : per_d);
                out->q[i] = how == UNROUNDED ? (double)x[i] / out->d[p]
                            : how == AWAY    ? (double)roundf(t)
                                             : (double)rintf(t);
                whole += out->q[i];
            }
            float sum = d * (float)whole;
            out->sum[p] = of_256 ? (double)d * whole : sinkproof_round(SINKPROOF_F16, (double)sum);
        }
    }
}

// ---- weights

typedef struct weight {
    uint8_t bytes[BYTES];
    sinkproof_matrix matrix;
    double split[N + N / PART]; // without minima, and these
} weight;

static void draw_weight(uint64_t *state, sinkproof_dtype dtype, weight *w) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    size_t size = sinkproof_dtype_bytes_for(dtype, N);
    must(size <= BYTES);
    for (size_t i = 0; i < size; i++) w->bytes[i] = (uint8_t)draw_below(state, 256);
    for (size_t b = 0; b < N / format->elements; b++)
        for (size_t k = 0; k < format->n_scales; k++) { // a scale from 2^-7 to 2^-5, of any sign
            uint8_t *at = w->bytes + b * format->bytes + format->scale_at[k];
            at[1] = (uint8_t)((at[1] & 0x83) | (8 + draw_below(state, 2)) << 2);
        }
    w->matrix = (sinkproof_matrix){.dtype = dtype,
                                   .count = 1,
                                   .rows = 1,
                                   .cols = N,
                                   .data = w->bytes,
                                   .stack_stride = N,
                                   .row_stride = N,
                                   .col_stride = 1,
                                   .name = "w"};
    memset(w->split, 0, sizeof w->split);
    sinkproof_matrix_split_row(&w->matrix, 0, w->split);
}

// ---- kernels: exact sums of `each` products, times their scale, in `lanes` float32 sums; minima
// into the first lane, or apart

typedef struct kernel {
    size_t each, lanes;
    bool apart;
} kernel;

static float run_kernel(const kernel *k, const weight *w, const quantised *x, size_t scale_of) {
    float lane[8] = {0}, minima = 0;
    for (size_t c = 0; c < N; c += k->each) {
        size_t p = (c / PART + scale_of) % (N / PART);
        double part = 0;
        for (size_t i = c; i < c + k->each; i++) part += w->split[i] * x->q[i];
        lane[c / k->each % k->lanes] += (float)part * (float)x->d[p];
    }
    for (size_t p = 0; p < sinkproof_matrix_minima(&w->matrix); p++) {
        float *to = k->apart ? &minima : &lane[0];
        *to = fmaf((float)w->split[N + p], (float)x->sum[p], *to);
    }
    float sum = minima;
    for (size_t l = 0; l < k->lanes; l++) sum += lane[l];
    return sum;
}

static sinkproof_honest set_of(const sinkproof_setting *s, const weight *w, const float *x) {
    static sinkproof_honest x_c[N];
    sinkproof_honest y;
    for (size_t c = 0; c < N; c++) x_c[c] = sinkproof_exact_set((double)x[c]);
    sinkproof_planes planes = sinkproof_operand_planes(s, AT_M5_IN, &w->matrix, x_c, 1);
    sinkproof_accumulator a = sinkproof_accumulator_at(s->policy, AT_M5_TERM, AT_M5_ACC);
    sinkproof_linear_sums *sums = sinkproof_linear_sums_with(
        s, &a, &planes, &(sinkproof_weight_rows){&w->matrix, 0, 1, NULL});
    must(planes.mid != NULL && sums != NULL);
    sinkproof_linear_sums_row(sums, 0, &y);
    sinkproof_linear_sums_free(sums);
    sinkproof_planes_free(&planes);
    return y;
}

static bool is_inside(const sinkproof_honest *set, double y) {
    return y >= set->lo && y <= set->hi;
}

// What a mistaken engine gives, by its number; NAN: the format has no such mistake.
enum { MISTAKES = 5 };
static const char *const mistakes[MISTAKES] = {"rounds twice as coarsely", "rounds nothing",
                                               "leaves the minima out", "adds up x itself",
                                               "takes the next block's scale"};
static const size_t fewest[MISTAKES] = {180, 180, 190, 60, 190};

static double mistaken(size_t m, bool of_256, const weight *w, const float *x) {
    static const kernel plain = {4, 8, true};
    static quantised read;
    bool minima = sinkproof_matrix_minima(&w->matrix) > 0;
    if ((m == 2 || m == 3) && !minima) return (double)NAN;
    quantise(m == 0 ? COARSE : m == 1 ? UNROUNDED : EVEN, of_256, x, &read);
    for (size_t p = 0; (m == 2 || m == 3) && p < N / PART; p++) {
        double real = 0;
        for (size_t i = PART * p; i < PART * (p + 1); i++) real += (double)x[i];
        read.sum[p] = m == 2 ? 0 : sinkproof_round(SINKPROOF_F16, real);
    }
    return (double)run_kernel(&plain, w, &read, m == 4 ? (of_256 ? 8 : 1) : 0);
}

static void products_of(sinkproof_dtype dtype, uint64_t *state) {
    static const kernel kernels[] = {{32, 1, false}, {4, 8, true}, {8, 4, false}, {16, 2, true}};
    static weight w;
    static float x[N];
    static double x_c[N], work[N * 20];
    static quantised read;
    bool of_256 = sinkproof_dtype_block(dtype) == 256;
    sinkproof_policy policy = policy_named("f32,M5.in=weight"), real = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
    tally t = {0};
    size_t seen[MISTAKES] = {0}, asked[MISTAKES] = {0}, apart = 0;
    real.at[AT_M5_IN] = policy.at[AT_M5_IN];
    for (size_t round = 0; round < DRAWS; round++) {
        draw_weight(state, dtype, &w);
        for (size_t c = 0; c < N; c++) x_c[c] = draw_from(state, SINKPROOF_F32, 2);
        for (size_t c = 0; c < N; c++) x[c] = (float)x_c[c];
        sinkproof_honest set = set_of(&s, &w, x);
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
            quantise(k % 2 ? EVEN : AWAY, of_256, x, &read);
            meet(&t, &set, (double)run_kernel(&kernels[k], &w, &read, 0));
        }
        double y;
        sinkproof_linear(&real, AT_M5, 1, &w.matrix, NULL, x_c, &y, work);
        apart += !is_inside(&set, y);
        for (size_t m = 0; m < MISTAKES; m++) {
            double wrong = mistaken(m, of_256, &w, x);
            asked[m] += !isnan(wrong), seen[m] += !isnan(wrong) && !is_inside(&set, wrong);
        }
    }
    char what[80];
    snprintf(what, sizeof what, "kernels on %s", sinkproof_dtype_name(dtype));
    inside_ok(&t, "bound.q8 bound.q8-minima", what);
    ok(apart == 0, "bound.q8-minima the reference's product of %s worst=%zu bound=0",
       sinkproof_dtype_name(dtype), apart);
    for (size_t m = 0; m < MISTAKES; m++)
        if (asked[m] > 0)
            ok(seen[m] >= fewest[m],
               "bound.q8-minima %s: an engine that %s is outside in %zu of %d",
               sinkproof_dtype_name(dtype), mistakes[m], seen[m], DRAWS);
}

// An order of the sum is not described beside minima: nothing is known of it, and nothing is
// outside.
static void unknown(uint64_t *state) {
    static const char *const policies[] = {"f32,M5.in=weight,M5.acc=f32", "f32,M5.in=weight?",
                                           "f32,M5.in=weight,M5.acc=ranks(2,bf16)?"};
    static weight w;
    static float x[N];
    size_t narrow = 0;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        sinkproof_policy policy = policy_named(policies[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
        draw_weight(state, SINKPROOF_DTYPE_Q4_1, &w);
        for (size_t c = 0; c < N; c++) x[c] = (float)draw_from(state, SINKPROOF_F32, 2);
        sinkproof_honest set = set_of(&s, &w, x);
        narrow += set.lo > -INFINITY || set.hi < INFINITY;
    }
    ok(narrow == 0, "bound.q8-minima an order, or rounding that may be left out: worst=%zu bound=0",
       narrow);
}

int main(void) {
    static const sinkproof_dtype dtypes[] = {
        SINKPROOF_DTYPE_Q4_0, SINKPROOF_DTYPE_Q4_1, SINKPROOF_DTYPE_Q5_0, SINKPROOF_DTYPE_Q5_1,
        SINKPROOF_DTYPE_Q8_0, SINKPROOF_DTYPE_Q4_K, SINKPROOF_DTYPE_Q5_K, SINKPROOF_DTYPE_Q6_K};
    uint64_t state = SEED;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) products_of(dtypes[d], &state);
    unknown(&state);
    return tap_done();
}
