// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the operand format of a product costs: one expert's up-projection of the 20b shape (rows of
// 2880 MXFP4 weights), the same inputs as float32 (mode lanes), rounded to bf16 (bf16-operands),
// and as engines with eight-bit activations take them (int8 in blocks of 32, scale = largest / 127,
// the integer sums exact). Against the sum in binary64, whose own error is below gamma_2880 at
// 2^-53.
#include "model/model.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/kernels.h"
#include "tests/shared/opened.h"

enum { COLS = 2880, ROWS = 256, TOKENS = 16, BLOCKS = COLS / 32 };

typedef struct errors {
    double squared, truth, worst; // sums of squares of the error and of the result; largest error
} errors;

static void add_error(errors *e, double got, double truth) {
    e->squared += (got - truth) * (got - truth);
    e->truth += truth * truth;
    e->worst = sinkproof_keep_worst(e->worst, fabs(got - truth));
}

// Over the mean square, and over its root.
static double nmse(const errors *e) {
    return e->squared / e->truth;
}
static double worst(const errors *e) {
    return e->worst / sqrt(e->truth / (ROWS * TOKENS));
}

static void quantize(const float *x_c, float *out_c) {
    for (size_t b = 0; b < COLS; b += 32) {
        float largest = 0;
        for (size_t c = b; c < b + 32; c++) largest = fmaxf(largest, fabsf(x_c[c]));
        double scale = largest / 127.0;
        for (size_t c = b; c < b + 32; c++)
            out_c[c] = (float)(scale > 0 ? rint(x_c[c] / scale) * scale : 0);
    }
}

// Normal-like inputs; `spread`: eight columns thirty times larger, as residual streams have.
static void draw(bool spread, float *x_c) {
    for (size_t c = 0; c < COLS; c++) {
        float sum = 0;
        for (int k = 0; k < 12; k++) sum += (float)(random_word() >> 8) * 0x1p-24f;
        x_c[c] = (sum - 6) * (spread && c % 360 == 17 ? 30 : 1);
    }
}

static double exact(const double *w_c, const float *x_c, double *size) {
    double sum = 0;
    *size = 0;
    for (size_t c = 0; c < COLS; c++) {
        sum += w_c[c] * x_c[c];
        *size += fabs(w_c[c] * x_c[c]);
    }
    return sum;
}

// The row apart into scales and what they scale.
static void part(const double *w_c, float *scale_b, float *unscaled_c) {
    for (size_t b = 0; b < BLOCKS; b++) {
        double largest = 0;
        for (size_t c = 32 * b; c < 32 * b + 32; c++) largest = fmax(largest, fabs(w_c[c]));
        scale_b[b] = largest > 0 ? (float)exp2(floor(log2(largest)) - 2) : 1; // a power of two
        for (size_t c = 32 * b; c < 32 * b + 32; c++) unscaled_c[c] = (float)(w_c[c] / scale_b[b]);
    }
}

// A line of what the book shows.
#define say(...) (printf("# output activation-error| "), printf(__VA_ARGS__), printf("\n"))

static void compare(const sinkproof_matrix *w, bool spread) {
    static float x_nc[TOKENS][COLS], bf16_nc[TOKENS][COLS], int8_nc[TOKENS][COLS];
    static double w_c[COLS];
    static float unscaled_c[COLS], scale_b[BLOCKS];
    const double u = 0x1p-24, gamma = (32 + BLOCKS) * u / (1 - (32 + BLOCKS) * u);
    errors lanes = {0}, bf16 = {0}, int8 = {0};
    double share = 0, size, ignored;
    for (size_t i = 0; i < TOKENS; i++) {
        draw(spread, x_nc[i]);
        for (size_t c = 0; c < COLS; c++) bf16_nc[i][c] = bf16_of(x_nc[i][c]);
        quantize(x_nc[i], int8_nc[i]);
    }
    for (size_t r = 0; r < ROWS; r++) {
        sinkproof_matrix_row(w, r, w_c);
        part(w_c, scale_b, unscaled_c);
        for (size_t i = 0; i < TOKENS; i++) {
            double truth = exact(w_c, x_nc[i], &size);
            float got = lanes_dot(COLS, unscaled_c, scale_b, x_nc[i]);
            share = sinkproof_keep_worst(share, fabs(got - truth) / (gamma * size));
            add_error(&lanes, got, truth);
            add_error(&bf16, lanes_dot(COLS, unscaled_c, scale_b, bf16_nc[i]), truth);
            add_error(&int8, exact(w_c, int8_nc[i], &ignored), truth);
        }
    }
    const char *what = spread ? "normal, eight columns thirty times larger" : "normal";
    ok(share <= 1, "inputs %s: float32 operands worst=%.3g bound=1 of gamma_122", what, share);
    ok(nmse(&lanes) < nmse(&bf16) && nmse(&bf16) < nmse(&int8),
       "inputs %s: float32 operands are nearer than bf16, bf16 nearer than int8 blocks", what);
    say("%s", what);
    say("  %-34s NMSE %.2e   worst / rms %.2e", "float32 operands (f32)", nmse(&lanes),
        worst(&lanes));
    say("  %-34s NMSE %.2e   worst / rms %.2e", "bf16 operands (bf16-operands)", nmse(&bf16),
        worst(&bf16));
    say("  %-34s NMSE %.2e   worst / rms %.2e", "int8 in blocks of 32", nmse(&int8), worst(&int8));
}

int main(void) {
    sinkproof_model *model = open_model("synthetic:gpt-oss-20b,layers=1");
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    sinkproof_matrix w = sinkproof_matrix_at(&layer.w_up, 0);
    compare(&w, false);
    compare(&w, true);
    sinkproof_model_close(model);
    return tap_done();
}
