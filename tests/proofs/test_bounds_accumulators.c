// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums in a narrow format (bound.accumulator). In a known order: engines with float32 or FMA inside
// each step, with products rounded or not, over whole rows or blocks, are inside sets of a few
// numbers; the neighbours of their results, other orders and wider accumulators are outside. In any
// order: every order that we know is inside a set of the stated width, also if the sum is rescaled
// on the way. Where n u reaches 1, or a partial sum may overflow, the set is unbounded.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

#include "ref/operands.h"
#include "ref/stages.h"

#include <stdlib.h>

static const uint64_t SEED = 20261123;
enum { MOST = 2880 };

// ---- one narrow machine
// --------------------------------------------------------------------------

typedef struct narrow {
    sinkproof_format acc, term; // term REAL: not rounded, but for what float32 does
    bool fused;                 // a b + c in one float32 rounding, else two; then rounded to acc
} narrow;

static float to(sinkproof_format format, float x) {
    return (float)sinkproof_round(format, (double)x);
}

static float add(const narrow *m, float sum, float a, float b) {
    if (m->fused && m->term == SINKPROOF_REAL) return to(m->acc, fmaf(a, b, sum));
    return to(m->acc, sum + to(m->term, a * b));
}

static float in_order(const narrow *m, size_t n, size_t block, const float *a, const float *b) {
    float sum = 0;
    for (size_t k = 0; k < n; k += block) {
        float part = 0;
        for (size_t i = k; i < n && i < k + block; i++) part = add(m, part, a[i], b[i]);
        sum = k == 0 ? part : to(m->acc, sum + part);
    }
    return sum;
}

static void reverse(size_t n, float *x) {
    for (size_t k = 0; k < n / 2; k++) {
        float swap = x[k];
        x[k] = x[n - 1 - k], x[n - 1 - k] = swap;
    }
}

// Any two partial sums, until one is left.
static float any_tree(const narrow *m, uint64_t *state, size_t n, const float *a, const float *b) {
    static float p[MOST];
    for (size_t k = 0; k < n; k++) p[k] = to(m->acc, a[k] * b[k]);
    for (; n > 1; n--) {
        size_t i = draw_below(state, n), j = draw_below(state, n - 1);
        if (j >= i) j++;
        p[i] = to(m->acc, p[i] + p[j]), p[j] = p[n - 1];
    }
    return p[0];
}

static float by_lanes(const narrow *m, size_t n, size_t lanes, const float *a, const float *b) {
    float sum_l[32] = {0};
    for (size_t k = 0; k < n; k++) sum_l[k % lanes] = add(m, sum_l[k % lanes], a[k], b[k]);
    for (; lanes > 1; lanes /= 2)
        for (size_t l = 0; l < lanes / 2; l++)
            sum_l[l] = to(m->acc, sum_l[l] + sum_l[l + lanes / 2]);
    return sum_l[0];
}

// ---- a weight of one row: in binary64, or in blocks whose codes are small
// ------------------------

typedef struct row {
    size_t n;
    float x[MOST], w[MOST];
    double w_c[MOST];
    uint8_t codes[MOST / 2], scales[MOST / 32];
    sinkproof_matrix matrix;
} row;

static void draw_row(uint64_t *state, size_t n, bool blocks, bool positive, row *r) {
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    r->n = n;
    for (size_t k = 0; k < n; k++) {
        r->x[k] = (float)draw_from(state, SINKPROOF_BF16, 1);
        r->w_c[k] = draw_from(state, SINKPROOF_BF16, 0.1);
        if (positive) r->x[k] = fabsf(r->x[k]), r->w_c[k] = fabs(r->w_c[k]);
        r->w[k] = (float)r->w_c[k];
    }
    r->matrix = (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = n};
    r->matrix.data = (const uint8_t *)r->w_c, r->matrix.row_stride = r->matrix.stack_stride = n;
    r->matrix.col_stride = 1;
    if (!blocks) return;
    for (size_t k = 0; k < n; k++) {
        unsigned code = (unsigned)draw_below(state, positive ? 8 : 16);
        if (k % 32 == 0) r->scales[k / 32] = (uint8_t)(120 + draw_below(state, 6));
        r->codes[k / 2] = (uint8_t)(k % 2 ? r->codes[k / 2] | code << 4 : code);
        float size = values[code % 8] * (float)ldexp(1, r->scales[k / 32] - 127);
        r->w[k] = code < 8 ? size : -size;
    }
    r->matrix.dtype = SINKPROOF_DTYPE_MXFP4;
    r->matrix.data = r->codes, r->matrix.scales = r->scales;
}

// The sets of M5 under a policy, and what the reference computes.
static sinkproof_honest set_of(const char *policy_text, const row *r, double *computed) {
    static sinkproof_honest x[MOST];
    static double x_c[MOST], work[16 * MOST];
    sinkproof_policy policy = policy_named(policy_text);
    sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
    sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_M5_TERM, AT_M5_ACC);
    sinkproof_honest y;
    for (size_t c = 0; c < r->n; c++) x[c] = sinkproof_exact_set(x_c[c] = (double)r->x[c]);
    sinkproof_planes p = sinkproof_planes_new(x, 1, r->n, r->n);
    sinkproof_linear_sums *sums =
        sinkproof_linear_sums_with(&s, &a, &p, &(sinkproof_weight_rows){&r->matrix, 0, 1, NULL});
    must(sums != NULL);
    sinkproof_linear_sums_row(sums, 0, &y);
    sinkproof_linear_sums_free(sums);
    sinkproof_planes_free(&p);
    if (computed != NULL)
        sinkproof_linear(&policy, AT_M5, 1, &r->matrix, NULL, x_c, computed, work);
    return y;
}

// ---- the known order
// -----------------------------------------------------------------------------

static const struct known_order {
    const char *policy;
    narrow machine;
    bool blocks;
} orders[] = {
    {"bf16,M5=real,M5.term=bf16,M5.acc=bf16", {SINKPROOF_BF16, SINKPROOF_BF16, false}, false},
    {"bf16,M5=real,M5.term=bf16,M5.acc=bf16", {SINKPROOF_BF16, SINKPROOF_BF16, false}, true},
    {"bf16,M5=real,M5.acc=bf16", {SINKPROOF_BF16, SINKPROOF_REAL, true}, false},
    {"f32,M5=real,M5.acc=f16", {SINKPROOF_F16, SINKPROOF_REAL, true}, false},
    {"f32,M5=real,M5.acc=f16", {SINKPROOF_F16, SINKPROOF_REAL, false}, false},
    {"f32,M5=real,M5.acc=f32", {SINKPROOF_F32, SINKPROOF_REAL, false}, false},
};

static void known_orders(void) {
    static const size_t lengths[] = {1, 32, 96, 576, 2880};
    static row r;
    uint64_t state = SEED;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        const narrow *m = &orders[k].machine;
        tally t = {0};
        size_t single = 0, wide = 0, convicted = 0, admitted = 0, backward = 0, wider = 0, rows = 0,
               references = 0;
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            for (int round = 0; round < 60; round++) {
                double reference;
                draw_row(&state, lengths[l], orders[k].blocks && lengths[l] % 32 == 0,
                         round % 3 == 0, &r);
                size_t block = r.matrix.dtype == SINKPROOF_DTYPE_MXFP4 ? 32 : r.n;
                sinkproof_honest set = set_of(orders[k].policy, &r, &reference);
                double y = (double)in_order(m, r.n, block, r.x, r.w);
                meet(&t, &set, y);
                references += reference >= set.lo && reference <= set.hi && reference == set.mid;
                double ulp = sinkproof_ulp(m->acc, y);
                single += set.lo == set.hi, wide += set.hi - set.lo > 4 * ulp, rows++;
                admitted += (y + ulp <= set.hi) + (y - ulp >= set.lo);
                if (r.n < 96) continue;
                convicted++;
                float exact = engine_dot(&state, FORWARD, true, r.n, r.x, r.w, NULL, false);
                wider += !((double)exact >= set.lo && (double)exact <= set.hi);
                reverse(r.n, r.x), reverse(r.n, r.w);
                y = (double)in_order(m, r.n, block, r.x, r.w);
                backward += !(y >= set.lo && y <= set.hi);
            }
        char what[96];
        snprintf(what, sizeof what, "%s %s%s", orders[k].policy, m->fused ? "fused" : "in steps",
                 orders[k].blocks ? ", blocks" : "");
        inside_ok(&t, "bound.accumulator", what);
        ok(references == rows, "bound.accumulator %s: the reference is the emulation in %zu of %zu",
           what, references, rows);
        bool narrow_acc = m->acc != SINKPROOF_F32;
        ok(!narrow_acc || (single * 10 >= rows * 9 && admitted * 10 <= rows),
           "bound.accumulator %s: %zu of %zu sets single, %zu wider than four steps worst=%zu "
           "bound=%zu neighbours inside",
           what, single, rows, wide, admitted, narrow_acc ? rows / 10 : 2 * rows);
        ok(!narrow_acc || (backward * 2 > convicted && wider * 2 > convicted),
           "bound.accumulator %s: of %zu long sums %zu in the opposite order are outside, %zu in "
           "float32",
           what, convicted, backward, wider);
    }
}

// ---- any order
// -----------------------------------------------------------------------------------

static double sizes_of(const row *r) {
    double sizes = 0;
    for (size_t k = 0; k < r->n; k++) sizes += fabs((double)r->x[k] * (double)r->w[k]);
    return sizes;
}

static void any_order(void) {
    static const size_t lengths[] = {1, 8, 64, 200};
    static const struct any {
        const char *policy;
        sinkproof_format acc;
    } kinds[] = {{"bf16,M5=real,M5.acc=bf16?", SINKPROOF_BF16},
                 {"f32,M5=real,M5.acc=f16?", SINKPROOF_F16}};
    static row r;
    uint64_t state = SEED + 1;
    for (size_t k = 0; k < 2; k++) {
        tally t = {0};
        double worst_width = 0, u = sinkproof_unit_roundoff(kinds[k].acc), inside = 0x1p-24;
        size_t outside_f32 = 0, sums = 0;
        u = u * (1 + inside) + inside;
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            for (int round = 0; round < 40; round++) {
                draw_row(&state, lengths[l], false, round % 3 == 0, &r);
                sinkproof_honest set = set_of(kinds[k].policy, &r, NULL),
                                 plain = set_of("f32,M5=real", &r, NULL);
                for (int fused = 0; fused < 2; fused++) {
                    narrow m = {kinds[k].acc, fused ? SINKPROOF_REAL : kinds[k].acc, fused};
                    double y_e[] = {(double)in_order(&m, r.n, r.n, r.x, r.w),
                                    (double)in_order(&m, r.n, 32, r.x, r.w),
                                    (double)any_tree(&m, &state, r.n, r.x, r.w),
                                    (double)by_lanes(&m, r.n, 8, r.x, r.w),
                                    (double)by_lanes(&m, r.n, 32, r.x, r.w)};
                    for (size_t e = 0; e < 5; e++) {
                        meet(&t, &set, y_e[e]);
                        sums++, outside_f32 += !(y_e[e] >= plain.lo && y_e[e] <= plain.hi);
                    }
                }
                double gamma = sinkproof_gamma((double)r.n + 1, u);
                double once = fmax(sinkproof_format_underflow(kinds[k].acc), 0x1p-126);
                double under = (2 * (double)r.n + 4) * (1 + gamma) * once;
                double room = (gamma * sizes_of(&r) + under) * (1 + 0x1p-30);
                worst_width = sinkproof_keep_worst(worst_width, (set.hi - set.lo) / 2 / room);
            }
        inside_ok(&t, "bound.accumulator", kinds[k].policy);
        ok(worst_width <= 1 && t.unlikely == 0,
           "bound.accumulator %s is as wide as stated worst=%.6g bound=1", kinds[k].policy,
           worst_width);
        ok(outside_f32 * 2 > sums, "bound.accumulator %s: %zu of %zu are outside float32's set",
           kinds[k].policy, outside_f32, sums);
    }
    draw_row(&state, 2880, false, false, &r);
    sinkproof_honest set = set_of("bf16,M5=real,M5.acc=bf16?", &r, NULL);
    ok(!(set.hi < INFINITY) && !(set.lo > -INFINITY),
       "bound.accumulator over 2880 terms in bfloat16 nothing is claimed");
}

// A flash kernel: exponentials against the running maximum, the sum of values in float16, rescaled
// at each new maximum, divided at the end. weights and values as the judge has them.
static float flash(size_t n, const float *s_j, const float *v_j, sinkproof_format acc) {
    float m = -INFINITY, z = 0, sum = 0;
    for (size_t j = 0; j < n; j++) {
        if (s_j[j] > m) {
            float scale = m == -INFINITY ? 0 : expf(m - s_j[j]);
            z *= scale, sum = to(acc, sum * scale), m = s_j[j];
        }
        float e = expf(s_j[j] - m);
        z += e, sum = to(acc, fmaf(v_j[j], e, sum));
    }
    return sum / z;
}

static void rescaled(void) {
    enum { KEYS = 300 };
    static float s_j[KEYS], v_j[KEYS];
    static sinkproof_honest alpha[KEYS], v[KEYS];
    sinkproof_policy policy = policy_named("f32,A11.acc=f16?"), plain = policy_named("f32");
    uint64_t state = SEED + 2;
    tally t = {0};
    size_t convicted = 0, rows = 200;
    double share = 0;
    for (size_t round = 0; round < rows; round++) {
        size_t n = 1 + draw_below(&state, KEYS);
        double z = 0, top = -INFINITY, slope = (double)draw_below(&state, 3) * 0.05;
        for (size_t j = 0; j < n; j++) {
            s_j[j] = (float)(draw_gauss(&state) + slope * (double)j); // rising: many new maxima
            v_j[j] = (float)draw_from(&state, SINKPROOF_F16, 1),
            v[j] = sinkproof_exact_set((double)v_j[j]);
            top = fmax(top, (double)s_j[j]);
        }
        for (size_t j = 0; j < n; j++) z += exp((double)s_j[j] - top);
        for (size_t j = 0; j < n; j++) { // what the scores and the exponential leave open
            alpha[j] = sinkproof_exact_set(exp((double)s_j[j] - top) / z);
            alpha[j] = sinkproof_honest_declared(alpha[j], 0x1p-18, 0);
        }
        sinkproof_planes p = sinkproof_planes_new(alpha, 1, n, n),
                         q = sinkproof_planes_new(v, 1, n, n);
        sinkproof_honest set, unread;
        sinkproof_setting s = sinkproof_setting_for(&policy, rows, STANDARD_RATE);
        sinkproof_setting without = sinkproof_setting_for(&plain, rows, STANDARD_RATE);
        sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_A11_TERM, AT_A11_ACC);
        must(sinkproof_honest_accumulated(&s, &a, &p, &q, NULL, true, &set, 1));
        must(sinkproof_honest_products(&without, &p, &q, NULL, NULL, &unread, 1));
        double y = (double)flash(n, s_j, v_j, SINKPROOF_F16);
        meet(&t, &set, y);
        convicted += !(y >= unread.lo && y <= unread.hi),
            share += (set.hi - set.lo) / (unread.hi - unread.lo) / (double)rows;
        if (round == 0) { // values so large that a sum before its division may overflow
            for (size_t j = 0; j < n; j++) q.mid[j] = 40000;
            must(sinkproof_honest_accumulated(&s, &a, &p, &q, NULL, true, &set, 1));
            ok(!(set.hi < INFINITY),
               "bound.accumulator a sum of %zu values of 40000 may overflow float16", n);
        }
        sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    }
    inside_ok(&t, "bound.accumulator", "a flash kernel with a float16 sum");
    ok(convicted * 2 > rows,
       "bound.accumulator a flash kernel with a float16 sum: %zu of %zu outside float32's set",
       convicted, rows);
    note("the set is %.3g times as wide as float32's", share);
}

// The same kernel against the set of its own order: scores that are known to about 2^-20, a sink,
// the neighbours, a float32 sum, a kernel that goes through its keys backward, one that divides
// first.
static float flash_with_sink(size_t n, const float *s_j, const float *v_j, float b,
                             sinkproof_format acc) {
    float m = -INFINITY, z = 0, sum = 0;
    for (size_t j = 0; j < n; j++) {
        if (s_j[j] > m) {
            float scale = m == -INFINITY ? 0 : expf(m - s_j[j]);
            z *= scale, sum = to(acc, sum * scale), m = s_j[j];
        }
        float e = s_j[j] == m ? 1 : expf(s_j[j] - m);
        z += e, sum = to(acc, fmaf(v_j[j], e, sum));
    }
    float after = b > m ? expf(m - b) : 1;
    z = b > m ? z * after + 1 : z + expf(b - m);
    return sum * after * (1 / z);
}

static void flash_in_order(void) {
    enum { KEYS = 400, ROWS = 200 };
    static float s_j[KEYS], v_j[KEYS];
    static sinkproof_honest z[KEYS], v[KEYS];
    sinkproof_policy policy = policy_named("f32,A9.form=running-max,A11.acc=f16");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_A11_TERM, AT_A11_ACC);
    uint64_t state = SEED + 3;
    tally t = {0};
    size_t admitted = 0, wide = 0, wider = 0, backward = 0, divided = 0, longer = 0;
    for (size_t round = 0; round < ROWS; round++) {
        size_t n = 1 + draw_below(&state, KEYS);
        double slope = (double)draw_below(&state, 3) * 0.05;
        float b = round % 4 == 0 ? -INFINITY : (float)(draw_gauss(&state) * 4);
        for (size_t j = 0; j < n; j++) {
            double score = draw_gauss(&state) * 2 + slope * (double)j;
            z[j] = sinkproof_set_around(score, 0x1p-20, 0x1p-20, 0, 0);
            s_j[j] = (float)(score + 0x1p-20 * (2 * draw_unit(&state) - 1) * 0.9);
            if (round % 8 == 1 && j > 0) z[j] = z[0], s_j[j] = s_j[0]; // all equal
            v_j[j] = (float)draw_from(&state, SINKPROOF_F16, 1);
            v[j] = sinkproof_exact_set((double)v_j[j]);
        }
        sinkproof_honest set, sink = sinkproof_exact_set((double)b);
        const sinkproof_flash f = {n, 1, 1, z, v, sink};
        must(sinkproof_honest_flash(&s, &a, &f, &set));
        double y = (double)flash_with_sink(n, s_j, v_j, b, SINKPROOF_F16);
        double step = sinkproof_ulp(SINKPROOF_F16, y);
        meet(&t, &set, y);
        admitted += (y + step <= set.hi) + (y - step >= set.lo), wide += set.hi - set.lo > 4 * step;
        if (n < 64) continue;
        longer++;
        y = (double)flash_with_sink(n, s_j, v_j, b, SINKPROOF_F32);
        wider += !(y >= set.lo && y <= set.hi);
        double top = (double)b, sum = 0, whole = 0;
        for (size_t j = 0; j < n; j++) top = fmax(top, (double)s_j[j]);
        for (size_t j = 0; j < n; j++) whole += exp((double)s_j[j] - top);
        whole += exp((double)b - top);
        for (size_t j = 0; j < n; j++)
            sum = sinkproof_round(SINKPROOF_F16,
                                  sum + exp((double)s_j[j] - top) / whole * (double)v_j[j]);
        divided += !(sum >= set.lo && sum <= set.hi);
        reverse(n, s_j), reverse(n, v_j);
        y = (double)flash_with_sink(n, s_j, v_j, b, SINKPROOF_F16);
        backward += !(y >= set.lo && y <= set.hi);
    }
    inside_ok(&t, "bound.accumulator", "a flash kernel in its own order");
    ok(admitted * 4 <= ROWS && wide * 5 <= ROWS,
       "bound.accumulator a flash kernel in its own order: %zu sets wider than four steps "
       "worst=%zu bound=%d neighbours inside of 400",
       wide, admitted, ROWS / 4);
    ok(wider * 5 >= longer * 4 && backward * 2 > longer && divided * 5 >= longer * 4,
       "bound.accumulator of %zu long rows %zu with a float32 sum are outside, %zu backward, %zu "
       "divided first",
       longer, wider, backward, divided);
}

int main(void) {
    known_orders();
    any_order();
    rescaled();
    flash_in_order();
    return tap_done();
}
