// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Running sums in float16 over MXFP4 weights (bound.accumulator). Small scales make products
// subnormal, so the result shows whether the scale multiplies each product or the sum of its block.
// Both are inside the set; a float32 sum, and blocks in the opposite order, are not.
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261124;
enum { MOST = 256, BLOCK = 32, ROWS = 300 };

typedef struct row {
    size_t n;
    float x[MOST], code[MOST], scale[MOST / BLOCK]; // w = code scale
    uint8_t codes[MOST / 2], scales[MOST / BLOCK];
    sinkproof_matrix matrix;
} row;

static void draw_row(uint64_t *state, row *r) {
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    r->n = BLOCK * (2 + draw_below(state, MOST / BLOCK - 1));
    for (size_t k = 0; k < r->n; k++) {
        unsigned code = (unsigned)draw_below(state, 16);
        if (k % BLOCK == 0) {
            r->scales[k / BLOCK] = (uint8_t)(112 + draw_below(state, 8));
            r->scale[k / BLOCK] = ldexpf(1, r->scales[k / BLOCK] - 127);
        }
        r->codes[k / 2] = (uint8_t)(k % 2 ? r->codes[k / 2] | code << 4 : code);
        r->code[k] = code < 8 ? values[code] : -values[code % 8];
        r->x[k] = (float)draw_from(state, SINKPROOF_F16, 1);
    }
    r->matrix = (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_MXFP4, .count = 1, .rows = 1};
    r->matrix.cols = r->matrix.row_stride = r->matrix.stack_stride = r->n;
    r->matrix.col_stride = 1, r->matrix.data = r->codes, r->matrix.scales = r->scales;
}

typedef enum way { SCALED_PRODUCTS, SCALED_SUMS, BLOCKS_BACKWARD, IN_F32, WAYS } way;

static float to(way how, float x) {
    return how == IN_F32 ? x : (float)sinkproof_round(SINKPROOF_F16, x);
}

static float summed(const row *r, way how) {
    float sum = 0;
    size_t blocks = r->n / BLOCK;
    for (size_t i = 0; i < blocks; i++) {
        size_t b = how == BLOCKS_BACKWARD ? blocks - 1 - i : i;
        float part = 0, scale = how == SCALED_PRODUCTS ? 1 : r->scale[b];
        for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
            float w = how == SCALED_PRODUCTS ? r->code[k] * r->scale[b] : r->code[k];
            part = to(how, part + to(how, w * r->x[k]));
        }
        sum = to(how, sum + to(how, scale * part));
    }
    return (float)sinkproof_round(SINKPROOF_F16, sum);
}

static sinkproof_honest set_of(const char *policy_text, const row *r) {
    sinkproof_honest x[MOST], y;
    sinkproof_policy policy = policy_named(policy_text);
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_M9_TERM, AT_M9_ACC);
    for (size_t c = 0; c < r->n; c++) x[c] = sinkproof_exact_set((double)r->x[c]);
    sinkproof_planes p = sinkproof_planes_new(x, 1, r->n, r->n);
    must(honest_running(&s, &a, &p, &(sinkproof_weight_rows){&r->matrix, 0, 1, NULL}, &y));
    sinkproof_planes_free(&p);
    return sinkproof_honest_rounded(SINKPROOF_F16, y);
}

int main(void) {
    uint64_t state = SEED;
    tally t[WAYS];
    memset(t, 0, sizeof t);
    size_t differ = 0, opened = 0;
    for (size_t i = 0; i < ROWS; i++) {
        row r;
        float y[WAYS];
        draw_row(&state, &r);
        sinkproof_honest z = set_of("f16,M9.term=f16,M9.acc=f16", &r);
        sinkproof_honest wide = set_of("bf16,M9.term=bf16,M9.acc=bf16", &r);
        for (int how = 0; how < WAYS; how++) meet(&t[how], &z, y[how] = summed(&r, (way)how));
        differ += y[SCALED_PRODUCTS] != y[SCALED_SUMS];
        opened += wide.lo != wide.hi;
    }
    inside_ok(&t[SCALED_PRODUCTS], "bound.accumulator", "products with their scale in float16");
    inside_ok(&t[SCALED_SUMS], "bound.accumulator", "sums of blocks scaled in float16");
    ok(differ > 0 && opened == 0,
       "bound.accumulator it shows in float16: %zu of %d sums differ, in bfloat16 %zu sets are "
       "open",
       differ, (int)ROWS, opened);
    for (int how = BLOCKS_BACKWARD; how < WAYS; how++)
        ok(t[how].outside > 0, "bound.accumulator %s outside=%zu of=%zu",
           how == BLOCKS_BACKWARD ? "blocks backward" : "a float32 sum", t[how].outside,
           t[how].checked);
    return tap_done();
}
