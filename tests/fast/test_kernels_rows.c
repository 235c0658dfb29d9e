// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kernels that work on one row, on every instruction set: exp, norm, rotation, activation,
// mixture, residual and rounding give the bits of the lane arithmetic told in scalar code.
#include "tests/shared/kernels.h"

static const float specials[] = {
    0.0f,  -0.0f, 1.0f,   -1.0f,  INFINITY, -INFINITY, NAN,   0x1p-149f, -0x1p-149f, 0x1p-126f,
    88.7f, 88.8f, -87.3f, -87.4f, -103.9f,  -104.1f,   1e30f, -1e30f,    0.3466f,    -0.3466f};
enum { SPECIALS = sizeof specials / sizeof *specials, WIDTH = 131 };

// The lengths of a row, around every lane and block.
static const size_t lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 96, WIDTH};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static float any(size_t i) {
    return i < SPECIALS ? specials[i] : 30 * random_float();
}

// Of the sixteen floats from `word` on, `step` words apart.
static size_t wrong_exponentials(const sinkproof_kernels *kernels, uint32_t word, uint32_t step) {
    float x[16], y[16];
    size_t bad = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t bits = word + i * step;
        memcpy(x + i, &bits, sizeof bits);
    }
    kernels->exp(16, x, y);
    for (int i = 0; i < 16; i++) bad += !same(y[i], sinkproof_lanes_exp(x[i]));
    return bad;
}

static void exponentials(const sinkproof_kernels *kernels) {
    size_t bad = 0, count = 0;
    for (size_t l = 0; l < LENGTHS; l++) {
        size_t n = lengths[l];
        float *x = guarded(n), *y = guarded(n);
        for (size_t i = 0; i < n; i++) x[i] = any(i);
        kernels->exp(n, x, y);
        for (size_t i = 0; i < n; i++) bad += !same(y[i], sinkproof_lanes_exp(x[i]));
        bad += !guards_hold(x, n) || !guards_hold(y, n);
        free_guarded(x);
        free_guarded(y);
    }
    for (uint64_t word = 0; word <= UINT32_MAX; word += 16 * 1021, count += 16) // across all floats
        bad += wrong_exponentials(kernels, (uint32_t)word, 1021);
    ok(bad == 0, "exp %s: equal to the scalar code at %zu floats and the edges", kernels->isa,
       count);
    bad = count = 0;
    for (uint32_t word = bits_of(-87.0f); word < bits_of(-105.0f); word += 16, count += 16)
        bad += wrong_exponentials(kernels, word, 1);
    for (uint32_t word = bits_of(88.5f); word < bits_of(90.0f); word += 16, count += 16)
        bad += wrong_exponentials(kernels, word, 1);
    ok(bad == 0, "exp %s: also where it underflows and overflows, %zu floats", kernels->isa, count);
}

static void norms(const sinkproof_kernels *kernels) {
    size_t bad = 0;
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    for (size_t l = 0; l < LENGTHS; l++) {
        size_t n = lengths[l], padded = (n + 31) / 32 * 32;
        float *x = calloc(padded, 4), *scale = calloc(padded, 4), *out = guarded(padded);
        double *xd = calloc(n, 8), *outd = calloc(n, 8), *work = calloc(n, 8);
        for (size_t i = 0; i < n; i++) {
            xd[i] = x[i] = 3 * random_float();
            scale[i] = random_float();
        }
        sinkproof_matrix matrix = {.dtype = SINKPROOF_DTYPE_F32,
                                   .count = 1,
                                   .rows = 1,
                                   .cols = n,
                                   .data = (const uint8_t *)scale,
                                   .row_stride = n,
                                   .col_stride = 1};
        lanes_rmsnorm(&policy, AT_A1, &matrix, 1e-5, 1, xd, outd, work);
        kernels->rmsnorm(n, x, scale, 1e-5f, out);
        for (size_t i = 0; i < padded; i++) bad += !same(out[i], i < n ? (float)outd[i] : 0.0f);
        bad += !guards_hold(out, padded);
        free(x);
        free(scale);
        free_guarded(out);
        free(xd);
        free(outd);
        free(work);
    }
    ok(bad == 0, "rmsnorm %s: equal to the scalar code, zeros beyond the row", kernels->isa);
}

static void rotations(const sinkproof_kernels *kernels) {
    size_t bad = 0;
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    for (size_t head_dim = 2; head_dim <= 130; head_dim += 2) {
        float *x = guarded(head_dim), cosine[65], sine[65];
        double xd[130], cosd[65], sind[65];
        for (size_t i = 0; i < head_dim; i++) xd[i] = x[i] = random_float();
        for (size_t i = 0; i < head_dim / 2; i++) {
            cosd[i] = cosine[i] = random_float();
            sind[i] = sine[i] = random_float();
        }
        lanes_rope(&policy, 1, 1, head_dim, cosd, sind, xd);
        kernels->rope(head_dim, cosine, sine, x);
        for (size_t i = 0; i < head_dim; i++) bad += !same(x[i], (float)xd[i]);
        bad += !guards_hold(x, head_dim);
        free_guarded(x);
    }
    ok(bad == 0, "rope %s: equal to the scalar code, widths 2 to 130", kernels->isa);
}

static void activations(const sinkproof_kernels *kernels) {
    size_t bad = 0;
    for (size_t l = 0; l < LENGTHS; l++) {
        size_t n = lengths[l], padded = (n + 31) / 32 * 32;
        float *both = guarded(2 * n), *act = guarded(padded);
        for (size_t i = 0; i < 2 * n; i++) both[i] = any(i);
        kernels->swiglu(n, (sinkproof_swiglu_numbers){1.702, 7, 1}, both, act);
        for (size_t f = 0; f < padded; f++) {
            float want = 0;
            if (f < n)
                want = lanes_swiglu((sinkproof_swiglu_numbers){1.702, 7, 1}, both[2 * f],
                                    both[2 * f + 1]);
            bad += !same(act[f], want);
        }
        bad += !guards_hold(both, 2 * n) || !guards_hold(act, padded);
        free_guarded(both);
        free_guarded(act);
    }
    ok(bad == 0, "swiglu %s: equal to the scalar code, NaN and infinities too", kernels->isa);
}

static void elements(const sinkproof_kernels *kernels) {
    size_t bad = 0;
    for (size_t cols = 16; cols <= 96; cols += 16) {
        float *y[4], *out = guarded(cols), *x = guarded(cols), weights[4];
        const float *y_k[4];
        double down[4 * 96], weightsd[4], outd[96];
        int32_t chosen[4] = {2, 0, 1, 3};
        for (int k = 0; k < 4; k++) {
            y_k[k] = y[k] = calloc(cols, 4);
            weightsd[k] = weights[k] = random_float();
            for (size_t c = 0; c < cols; c++) down[(size_t)k * cols + c] = y[k][c] = random_float();
        }
        sinkproof_policy policy;
        sinkproof_policy_known("f32", &policy);
        lanes_mixture(&policy, 1, 4, cols, chosen, weightsd, down, outd);
        kernels->mixture(cols, 4, weights, y_k, out);
        for (size_t c = 0; c < cols; c++) bad += !same(out[c], (float)outd[c]);
        for (size_t c = 0; c < cols; c++) x[c] = random_float();
        for (size_t c = 0; c < cols; c++) outd[c] = x[c] + y[0][c];
        kernels->add(cols, y[0], x);
        for (size_t c = 0; c < cols; c++) bad += !same(x[c], (float)outd[c]);
        bad += !guards_hold(out, cols) || !guards_hold(x, cols);
        for (int k = 0; k < 4; k++) free(y[k]);
        free_guarded(out);
        free_guarded(x);
    }
    ok(bad == 0, "mixture and residual %s: equal to the scalar code", kernels->isa);
}

static void roundings(const sinkproof_kernels *kernels) {
    size_t bad = 0, count = 0;
    for (uint64_t word = 0; word <= UINT32_MAX;
         word += 16 * 2039) { // every tail of 16 bits comes by
        float x[16], y[16];
        uint16_t bits[16];
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t w = (uint32_t)word + i * 2039;
            if (i == 7) w = (w & 0xffff0000u) | 0x8000; // a tie
            memcpy(x + i, &w, sizeof w);
        }
        memcpy(y, x, sizeof y);
        kernels->round_bf16(16, y, bits);
        for (int i = 0; i < 16; i++)
            bad += !same(y[i], bf16_of(x[i])) || bits[i] != bits_of(y[i]) >> 16;
        count += 16;
    }
    ok(bad == 0, "rounding to bf16 %s: equal to model/round.c at %zu floats", kernels->isa, count);
}

static void test(const sinkproof_kernels *kernels) {
    random_state = 13;
    exponentials(kernels);
    norms(kernels);
    rotations(kernels);
    activations(kernels);
    elements(kernels);
    roundings(kernels);
}

int main(void) {
    on_every_set(test);
    return tap_done();
}
