// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The stages of the lane arithmetic, but for attention: every order bit for bit against a second
// telling, on integers (a column missed or met twice shows, whatever the order), on inputs that
// only the right order sums to what they sum to, and at the edges of blocks and scales.
#include "model/synthetic.h"
#include "tests/shared/lanes.h"
#include "tests/shared/opened.h"

static const size_t widths[] = {1, 2, 31, 32, 33, 63, 64, 65, 96, 2880};
enum { WIDTHS = sizeof widths / sizeof widths[0], WIDEST = 2880, ROWS = 5, TOKENS = 9 };

static double weights[ROWS * WIDEST], inputs[TOKENS * WIDEST], bias[ROWS];
static double got[TOKENS * ROWS], told[TOKENS * ROWS];

// lanes_linear in exactly the work that it is promised, a guard behind it.
static bool linear(const sinkproof_matrix *weight, const sinkproof_matrix *bias_r, size_t n) {
    sinkproof_policy policy = policy_of("f32");
    size_t size = sinkproof_linear_work(n, weight->rows, weight->cols);
    double *work = calloc(size + 1, sizeof *work);
    work[size] = 12345;
    lanes_linear(&policy, AT_A12, n, weight, bias_r, inputs, got, work);
    bool kept = work[size] == 12345;
    free(work);
    return kept;
}

// dot and linear, plain weights. Integers: every sum is exact, so also the plain sum must come out.
static void test_plain(bool integers) {
    size_t wrong = 0, sums = 0;
    bool kept = true;
    uint64_t state = 5;
    for (size_t k = 0; k < WIDTHS; k++) {
        size_t cols = widths[k];
        if (integers) {
            fill_integers(&state, 9, ROWS * cols, weights);
            fill_integers(&state, 9, TOKENS * cols, inputs);
        } else {
            fill_floats(&state, 3, ROWS * cols, weights);
            fill_floats(&state, 3, TOKENS * cols, inputs);
        }
        fill_floats(&state, 1, ROWS, bias);
        sinkproof_matrix w = matrix_of(weights, 1, ROWS, cols), b = matrix_of(bias, 1, 1, ROWS);
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            kept = linear(&w, with_bias ? &b : NULL, TOKENS) && kept;
            for (size_t t = 0; t < TOKENS; t++)
                for (size_t r = 0; r < ROWS; r++, sums++) {
                    const double *w_c = weights + r * cols, *x_c = inputs + t * cols;
                    double sum = 0;
                    for (size_t c = 0; c < cols; c++) sum += w_c[c] * x_c[c];
                    float y = integers ? (float)sum : told_dot(cols, w_c, NULL, x_c);
                    told[t * ROWS + r] = with_bias ? y + (float)bias[r] : y;
                }
            wrong += differing(TOKENS * ROWS, got, told);
        }
    }
    ok(wrong == 0 && kept,
       "lanes.linear scalar, %s, 1 to %d columns worst=%zu bound=0 of %zu sums seed=5",
       integers ? "integers" : "float32", (int)WIDEST, wrong, sums);
}

// lanes_dot itself, with scales that are no powers of two (Q8_0 has such).
static void test_dot(void) {
    size_t wrong = 0;
    uint64_t state = 6;
    for (size_t k = 0; k < WIDTHS; k++)
        for (int scaled = 0; scaled < 2; scaled++) {
            size_t n = widths[k], blocks = (n + 31) / 32;
            static float w[WIDEST + 32], x[WIDEST + 32], s[WIDEST / 32 + 1];
            double scale_b[WIDEST / 32 + 1];
            fill_floats(&state, 3, n, weights), fill_floats(&state, 3, n, inputs);
            fill_floats(&state, 3, blocks, scale_b);
            for (size_t c = 0; c < 32 * blocks; c++) {
                w[c] = c < n ? (float)weights[c] : 0, x[c] = c < n ? (float)inputs[c] : 0;
                s[c / 32] = (float)scale_b[c / 32];
            }
            float a = lanes_dot(n, w, scaled ? s : NULL, x);
            float b = told_dot(n, weights, scaled ? scale_b : NULL, inputs);
            wrong += memcmp(&a, &b, sizeof a) != 0;
        }
    ok(wrong == 0 && lanes_dot(0, NULL, NULL, NULL) == 0,
       "lanes.linear dot with and without scales worst=%zu bound=0 of %d seed=6", wrong,
       2 * WIDTHS);
}

// 1 + (2^24 - 2^24): the columns 0, 2, 3 hold 1, -2^24, 2^24. Odd first: 1 + 2^24 = 2^24 (a tie, to
// even), then 0. Even first it would be 1 - 2^24, exact, then 1. Between two blocks: 2^24 of the
// first, then the second's 1 + 1 as one 2; column by column each 1 would be lost.
static void test_order(void) {
    float w[64] = {1, 0, -0x1p24f, 0x1p24f}, x[64];
    for (size_t c = 0; c < 64; c++) x[c] = 1;
    float odd_first = lanes_dot(4, w, NULL, x);
    ok(odd_first == 0, "lanes.linear dot: the odd column of a pair first: %g, not 1",
       (double)odd_first);
    float apart[64] = {0x1p24f};
    apart[32] = apart[35] = 1;
    float blocks = lanes_dot(64, apart, NULL, x);
    ok(blocks == 0x1p24f + 2, "lanes.linear dot: a block sums from 0: %.1f", (double)blocks);
    float fused[32] = {1 + 0x1p-13f, -1}, with[32] = {1 - 0x1p-13f, 1};
    float rest = lanes_dot(2, fused, NULL, with);
    ok(rest == -0x1p-26f, "lanes.linear dot: products are fused, not rounded: %a", (double)rest);
}

// MXFP4 in memory: the scale meets the block's sum once, from 2^-127 (subnormal) to 2^127.
static void test_mxfp4(void) {
    static const double e2m1[16] = {0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                                    -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};
    static const uint8_t edges[] = {0, 1, 22, 120, 127, 128, 201, 253, 254};
    static uint8_t codes[ROWS * WIDEST / 2], scales[ROWS * WIDEST / 32];
    static const size_t cols_of[] = {32, 64, 96, WIDEST};
    size_t wrong = 0, infinite = 0, subnormal = 0, sums = 0;
    uint64_t state = 7;
    for (size_t k = 0; k < 4; k++) {
        size_t cols = cols_of[k], blocks = cols / 32;
        for (size_t i = 0; i < ROWS * cols / 2; i++) codes[i] = (uint8_t)next_bits(&state);
        for (size_t i = 0; i < ROWS * blocks; i++)
            scales[i] = k == 3 ? (uint8_t)(110 + next_bits(&state) % 30)
                               : edges[next_bits(&state) % sizeof edges];
        fill_floats(&state, 2, TOKENS * cols, inputs);
        sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_MXFP4, .count = 1, .rows = ROWS};
        w.cols = w.row_stride = cols, w.col_stride = 1, w.data = codes, w.scales = scales;
        linear(&w, NULL, TOKENS);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t r = 0; r < ROWS; r++, sums++) {
                static double value[WIDEST], scale[WIDEST / 32];
                for (size_t c = 0; c < cols; c++) {
                    uint8_t byte = codes[(r * cols + c) / 2];
                    value[c] = e2m1[c % 2 == 0 ? byte & 15 : byte >> 4];
                    scale[c / 32] = ldexp(1, scales[r * blocks + c / 32] - 127);
                }
                float y = told_dot(cols, value, scale, inputs + t * cols);
                told[t * ROWS + r] = y;
                infinite += isinf(y) != 0, subnormal += y != 0 && fabsf(y) < 0x1p-126f;
            }
        wrong += differing(TOKENS * ROWS, got, told);
    }
    ok(wrong == 0 && infinite > 0 && subnormal > 0,
       "mxfp4.decode lanes.linear lanes worst=%zu bound=0 of %zu sums (%zu infinite, %zu "
       "subnormal) "
       "seed=7",
       wrong, sums, infinite, subnormal);
}

// A synthetic expert's rows are the rows that its codes and scales say.
static void test_synthetic(void) {
    sinkproof_model *model = open_model("synthetic:tiny");
    sinkproof_layer layer = sinkproof_model_layer(model, 1);
    sinkproof_matrix made = sinkproof_matrix_at(&layer.w_up, 2), held = made;
    size_t rows = made.rows, cols = made.cols, n = 3, size = sinkproof_linear_work(n, rows, cols);
    uint8_t *codes = malloc(rows * cols / 2), *scales = malloc(rows * cols / 32);
    double *a = malloc((2 * n * rows + size) * sizeof *a), *b = a + n * rows, *work = b + n * rows;
    sinkproof_policy policy = policy_of("f32");
    uint64_t state = 8;
    for (size_t r = 0; r < rows; r++)
        synthetic_codes(&made, r, codes + r * cols / 2, scales + r * cols / 32);
    held.data = codes, held.scales = scales, held.row_stride = cols;
    fill_floats(&state, 2, n * cols, inputs);
    lanes_linear(&policy, AT_M5, n, &made, NULL, inputs, a, work);
    lanes_linear(&policy, AT_M5, n, &held, NULL, inputs, b, work);
    size_t wrong = differing(n * rows, a, b);
    ok(wrong == 0, "mxfp4.decode lanes.linear lanes, rows made or held worst=%zu bound=0", wrong);
    free(codes), free(scales), free(a);
    sinkproof_model_close(model);
}

static void test_sum16(void) {
    static const size_t lengths[] = {0, 1, 15, 16, 17, 31, 32, 33, 255, 256};
    static float terms[256];
    size_t wrong = 0, count = sizeof lengths / sizeof lengths[0];
    uint64_t state = 9;
    for (size_t k = 0; k < count; k++)
        for (int integers = 0; integers < 2; integers++) {
            float plain = 0;
            for (size_t i = 0; i < lengths[k]; i++) {
                double term = integers ? next_integer(&state, 99) : next_float(&state, 9);
                terms[i] = (float)term, plain += terms[i];
            }
            float a = lanes_sum16(lengths[k], terms), b = told_sum16(lengths[k], terms);
            wrong += memcmp(&a, &b, sizeof a) != 0 || (integers && a != plain);
        }
    ok(wrong == 0, "lanes sum16 of 0 to 256 terms worst=%zu bound=0 of %zu seed=9", wrong,
       2 * count);
    float tree[16] = {0x1p24f, 1, 0, 0, 0, 0, 0, 0, -0x1p24f, 1}; // lane 8 meets lane 0 first
    ok(lanes_sum16(16, tree) == 2, "lanes sum16: lane l meets lane l + 8 first");
}

// The norm of +-2 is exact: 1 / sqrt(4) = 1/2. Otherwise the squares in lanes.
static void test_rmsnorm(void) {
    sinkproof_policy policy = policy_of("f32");
    static double scale[WIDEST], x[WIDEST], out[WIDEST], expected[WIDEST], work[WIDEST];
    size_t wrong = 0;
    uint64_t state = 10;
    const double eps = 1e-5;
    for (size_t k = 0; k < WIDTHS; k++)
        for (int exact = 0; exact < 2; exact++) {
            size_t cols = widths[k];
            float lane[16] = {0};
            fill_floats(&state, 2, cols, scale);
            for (size_t c = 0; c < cols; c++) {
                x[c] = exact ? (next_bits(&state) & 1 ? 2 : -2) : next_float(&state, 5);
                lane[c & 15] = fmaf((float)x[c], (float)x[c], lane[c & 15]);
            }
            float one[16];
            memcpy(one, lane, sizeof one);
            float mean = told_sum16(16, one) / (float)cols;
            float r = exact ? 0.5f : 1.0f / sqrtf(mean + (float)eps);
            for (size_t c = 0; c < cols; c++) {
                float normed = (float)x[c] * r;
                expected[c] = normed * (float)scale[c];
            }
            sinkproof_matrix weight = matrix_of(scale, 1, 1, cols);
            lanes_rmsnorm(&policy, AT_A1, &weight, exact ? 0 : eps, 1, x, out, work);
            wrong += differing(cols, out, expected);
        }
    ok(wrong == 0, "rmsnorm.forward lanes worst=%zu bound=0 seed=10", wrong);
}

static void test_rope(void) {
    sinkproof_policy policy = policy_of("f32");
    enum { D = 64, HEADS = 3, N = 4 };
    static double cosine[N * D / 2], sine[N * D / 2], x[N * HEADS * D], expected[N * HEADS * D];
    uint64_t state = 11;
    fill_floats(&state, 1, N * D / 2, cosine), fill_floats(&state, 1, N * D / 2, sine);
    cosine[0] = 0, sine[0] = 1; // a quarter turn: (a, b) to (-b, a)
    fill_floats(&state, 4, N * HEADS * D, x);
    for (size_t i = 0; i < N * HEADS * D; i++) {
        size_t t = i / (HEADS * D), d = i % D, p = t * D / 2 + d % (D / 2);
        float c = (float)cosine[p], s = (float)sine[p], own = (float)x[i] * c;
        expected[i] =
            d < D / 2 ? fmaf(-(float)x[i + D / 2], s, own) : fmaf((float)x[i - D / 2], s, own);
    }
    bool quarter = expected[0] == -x[D / 2] && expected[D / 2] == x[0];
    lanes_rope(&policy, N, HEADS, D, cosine, sine, x);
    size_t wrong = differing(N * HEADS * D, x, expected);
    ok(wrong == 0 && quarter, "rope.rotate lanes worst=%zu bound=0 seed=11", wrong);
}

static void test_swiglu(void) {
    size_t wrong = 0, other = 0;
    uint64_t state = 12;
    const float alpha = 1.702f, limit = 7;
    for (size_t i = 0; i < 5000; i++) {
        float gate = (float)next_float(&state, 12), up = (float)next_float(&state, 12);
        float g = fminf(gate, limit), u = fmaxf(-limit, fminf(up, limit)), t = alpha * g;
        float e = 1 + sinkproof_lanes_exp(-t), expected = g / e;
        float product = expected * (u + 1), inverse = g * (1 / e) * (u + 1);
        float act = lanes_swiglu((sinkproof_swiglu_numbers){alpha, limit, 1}, gate, up);
        wrong += memcmp(&act, &product, sizeof act) != 0;
        other += act != inverse;
    }
    ok(wrong == 0 && other > 0,
       "swiglu.clamped lanes worst=%zu bound=0 of 5000 seed=12 (%zu differ from a product with the "
       "reciprocal)",
       wrong, other);
    float low = lanes_swiglu((sinkproof_swiglu_numbers){alpha, limit, 1}, -1e30f, 3);
    float high = lanes_swiglu((sinkproof_swiglu_numbers){alpha, limit, 1}, INFINITY, INFINITY);
    float nan = lanes_swiglu((sinkproof_swiglu_numbers){alpha, limit, 1}, NAN, 1);
    ok(low == 0 && signbit(low) &&
           high == lanes_swiglu((sinkproof_swiglu_numbers){alpha, limit, 1}, 7, 7) && nan != nan,
       "swiglu.clamped lanes: far below -0, above the limit the limit's, NaN stays");
}

// The mixture goes in the router's order: 2^24, 1, -2^24 of experts 2, 0, 1 is 0; in the order of
// the index it would be 1 - 2^24 + 2^24 = 1.
static void test_mixture(void) {
    sinkproof_policy policy = policy_of("f32");
    const int32_t chosen[] = {2, 0, 1};
    const double w[] = {1, 1, 1}, down[] = {0x1p24, 1, -0x1p24};
    double out = 5;
    lanes_mixture(&policy, 1, 3, 1, chosen, w, down, &out);
    ok(out == 0, "moe.sum lanes: in the order of the weights: %g", out);
    const double near_one[] = {1, 1 + 0x1p-13, 0}, other[] = {-1, 1 - 0x1p-13, 1};
    lanes_mixture(&policy, 1, 3, 1, chosen, near_one, other, &out);
    ok(out == -0x1p-26, "moe.sum lanes: products are fused, not rounded: %a", out);
}

// Two equal logits: the lower index first, half each; and a far third.
static void test_router(void) {
    sinkproof_policy policy = policy_of("f32");
    double w[5 * 2] = {-1, 0, 1, 2, 0, 0, 1, 2, -900, 0}, b[5] = {0}, t[2] = {1, 1};
    double logits[5], k[3], work[64];
    int32_t chosen[3];
    sinkproof_layer layer = {.w_router = matrix_of(w, 1, 5, 2), .b_router = matrix_of(b, 1, 1, 5)};
    lanes_router(&policy, &layer, 1, 2, t, logits, chosen, k, work);
    bool tie = chosen[0] == 1 && chosen[1] == 3 && k[0] == 0.5 && k[1] == 0.5;
    t[0] = 0.25, t[1] = 0.5;
    b[1] = 0.75;
    lanes_router(&policy, &layer, 1, 3, t, logits, chosen, k, work);
    float e_1 = sinkproof_lanes_exp(1.25f - 2), e_2 = sinkproof_lanes_exp(0.0f - 2);
    float sum = (1 + e_1) + e_2;
    ok(tie && chosen[0] == 1 && chosen[1] == 3 && chosen[2] == 2 && (float)k[0] == 1 / sum &&
           (float)k[1] == e_1 / sum && (float)k[2] == e_2 / sum,
       "router.topk router.softmax-after lanes: ties, and weights %a %a %a", k[0], k[1], k[2]);
}

static void test_serves(void) {
    static const char *const yes[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands", "f32,exp=4ulp",
                                      "f32,yarn=truncate"};
    static const struct {
        const char *policy, *says;
    } no[] = {
        {"real-f64", "inside=f64"},
        {"bf16", "bf16 at T0"},
        {"f32,A2=bf16", "bf16 at A2"},
        {"f32,A2=bf16?,A4=bf16", "bf16? at A2"},
        {"f32,A4.prod=f32", "f32 at A4.prod"},
        {"bf16-operands,A9=bf16", "at A1"},
        {"bf16-operands,M8=f32", "at A1"},
        {"f32,exp=0.5ulp", "exp errs by at most 0.5 ulp"},
    };
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        sinkproof_policy policy = policy_of(yes[i]);
        sinkproof_error error = {{0}};
        ok(sinkproof_lanes_serves(&policy, &error), "lanes serve %s%s", yes[i], error.text);
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        sinkproof_policy policy = policy_of(no[i].policy);
        sinkproof_error error = {{0}};
        bool served = sinkproof_lanes_serves(&policy, &error);
        ok(!served && strstr(error.text, no[i].says) != NULL, "lanes refuse %s: %s", no[i].policy,
           error.text);
    }
}

int main(void) {
    test_plain(true);
    test_plain(false);
    test_dot();
    test_order();
    test_mxfp4();
    test_synthetic();
    test_sum16();
    test_rmsnorm();
    test_rope();
    test_swiglu();
    test_mixture();
    test_router();
    test_serves();
    return tap_done();
}
