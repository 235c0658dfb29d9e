// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Roundings one at a time: a policy that rounds at a single point, and the stage's formula written
// out a second time with that one rounding in its place, bit for bit. A rounding that is dropped,
// or done in another point's name, shows at the first number that it would have moved. 0.1 CPU
// seconds.
#include "ref/mechanism.h"
#include "ref/variants/variant.h"
#include "tests/shared/reference.h"

#include <math.h>

static const uint64_t SEED = 20261123;

// To 8 bits of significand, nearest, ties to even: bfloat16 where nothing is subnormal.
static double to_8_bits(double x) {
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

static sinkproof_policy rounding_only(sinkproof_point point) {
    sinkproof_policy policy = policy_of("real-f64");
    for (int p = 0; p < AT_POINTS; p++)
        policy.at[p] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    policy.at[point].format = SINKPROOF_BF16;
    return policy;
}

// x, rounded where the step's point is the one that rounds.
static double step(sinkproof_point point, sinkproof_point here, double x) {
    return point == here ? to_8_bits(x) : x;
}

static void say(const char *ids, const char *what, size_t apart, size_t moved, size_t values) {
    ok(apart == 0 && moved > 0,
       "%s %s, bit for bit: worst=%zu bound=0 values=%zu seed=%llu, %zu of them moved by the point",
       ids, what, apart, values, (unsigned long long)SEED, moved);
}

// ---- GELU ---------------------------------------------------------------------------------------

static double gelu(sinkproof_point p, double x) {
    double square = step(p, AT_M8_SQUARE, x * x);
    double cubic = step(p, AT_M8_CUBIC, 0.044715 * step(p, AT_M8_CUBE, square * x));
    double sum = step(p, AT_M8_SUM, x + cubic);
    double inner = step(p, AT_M8_INNER, sqrt(2 / acos(-1)) * sum);
    double one = step(p, AT_M8_ONE, 1 + step(p, AT_M8_TANH, tanh(inner)));
    return step(p, AT_M8, 0.5 * x * one);
}

static void gelu_points(void) {
    static const sinkproof_point points[] = {AT_M8_SQUARE, AT_M8_CUBE, AT_M8_CUBIC, AT_M8_SUM,
                                             AT_M8_INNER,  AT_M8_TANH, AT_M8_ONE,   AT_M8};
    for (size_t p = 0; p < sizeof points / sizeof *points; p++) {
        uint64_t state = SEED;
        sinkproof_policy policy = rounding_only(points[p]);
        size_t apart = 0, moved = 0;
        for (int i = 0; i < 200; i++) {
            double x = next_real(&state, 3), y = sinkproof_gelu_one(&policy, x);
            double want = gelu(points[p], x), unrounded = gelu(AT_POINTS, x);
            apart += differing(1, &y, &want), moved += differing(1, &want, &unrounded);
        }
        char what[80];
        snprintf(what, sizeof what, "rounded at %s alone", sinkproof_point_name(points[p]));
        say("gelu.tanh", what, apart, moved, 200);
    }
}

// ---- LayerNorm ----------------------------------------------------------------------------------

enum { HIDDEN = 7 };

static void norm(sinkproof_point p, sinkproof_point before, sinkproof_point after,
                 const double *x_c, const double *scale_c, const double *shift_c, double *y_c) {
    double sum = 0, squares = 0;
    for (size_t c = 0; c < HIDDEN; c++) sum += x_c[c];
    double mean = sum / HIDDEN;
    for (size_t c = 0; c < HIDDEN; c++) squares += (x_c[c] - mean) * (x_c[c] - mean);
    double inverse = 1 / sqrt(squares / HIDDEN + 1e-5);
    for (size_t c = 0; c < HIDDEN; c++) {
        double normed = step(p, before, (x_c[c] - mean) * inverse);
        y_c[c] = step(p, after, normed * scale_c[c] + shift_c[c]);
    }
}

static void norm_points(void) {
    static const struct {
        sinkproof_point before, after;
    } norms[] = {{AT_A1_NORM, AT_A1}, {AT_M1_NORM, AT_M1}, {AT_F1_NORM, AT_F1}};
    enum { N = 20 };
    for (size_t k = 0; k < 3; k++)
        for (int which = 0; which < 2; which++) {
            sinkproof_point point = which == 0 ? norms[k].before : norms[k].after;
            uint64_t state = SEED + k;
            double x_nc[N * HIDDEN], y_nc[N * HIDDEN + 1], scale_c[HIDDEN], shift_c[HIDDEN];
            double work[2 * HIDDEN], want_c[HIDDEN], unrounded_c[HIDDEN];
            size_t apart = 0, moved = 0;
            fill_reals(&state, 2, N * HIDDEN, x_nc);
            fill_reals(&state, 2, HIDDEN, scale_c);
            fill_reals(&state, 2, HIDDEN, shift_c);
            y_nc[N * HIDDEN] = 77;
            sinkproof_matrix scale = matrix_of(scale_c, 1, 1, HIDDEN);
            sinkproof_matrix shift = matrix_of(shift_c, 1, 1, HIDDEN);
            sinkproof_policy policy = rounding_only(point);
            sinkproof_layernorm(&policy, norms[k].after, &scale, &shift, 1e-5, N, x_nc, y_nc, work);
            for (size_t i = 0; i < N; i++) {
                const double *x_c = x_nc + i * HIDDEN;
                norm(point, norms[k].before, norms[k].after, x_c, scale_c, shift_c, want_c);
                norm(AT_POINTS, norms[k].before, norms[k].after, x_c, scale_c, shift_c,
                     unrounded_c);
                apart += differing(HIDDEN, y_nc + i * HIDDEN, want_c);
                moved += differing(HIDDEN, want_c, unrounded_c);
            }
            char what[80];
            snprintf(what, sizeof what, "rounded at %s alone", sinkproof_point_name(point));
            say("layernorm.forward", what, apart + (y_nc[N * HIDDEN] != 77), moved, N * HIDDEN);
        }
}

// ---- what a position brings ---------------------------------------------------------------------

static void row_of(const sinkproof_matrix *w, size_t r, double *row_c) {
    must(w->cols <= 512);
    sinkproof_matrix_row(w, r, row_c);
}

static void product(sinkproof_point p, sinkproof_point here, const sinkproof_matrix *w,
                    const sinkproof_matrix *b, const double *x_c, double *y_r) {
    double row_c[512], b_r[512];
    row_of(b, 0, b_r);
    for (size_t r = 0; r < w->rows; r++) {
        double sum = 0;
        row_of(w, r, row_c);
        for (size_t c = 0; c < w->cols; c++) sum += row_c[c] * x_c[c];
        y_r[r] = step(p, here, sum + b_r[r]);
    }
}

static void brought(sinkproof_point p, const sinkproof_model *model, const double *x_c,
                    double *y_c) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    size_t n = config->hidden;
    double t_c[512] = {0}, up_f[512] = {0}, scale_c[512], shift_c[512], sum = 0, squares = 0;
    row_of(&layer.mlp_norm, 0, scale_c);
    row_of(&layer.mlp_norm_b, 0, shift_c);
    for (size_t c = 0; c < n; c++) sum += x_c[c];
    double mean = sum / (double)n;
    for (size_t c = 0; c < n; c++) squares += (x_c[c] - mean) * (x_c[c] - mean);
    double inverse = 1 / sqrt(squares / (double)n + config->rms_eps);
    for (size_t c = 0; c < n; c++)
        t_c[c] = step(p, AT_M1, (x_c[c] - mean) * inverse * scale_c[c] + shift_c[c]);
    product(p, AT_M6, &layer.w_up, &layer.b_up, t_c, up_f);
    for (size_t f = 0; f < config->inter; f++) up_f[f] = gelu(p, up_f[f]);
    product(p, AT_M10, &layer.w_down, &layer.b_down, up_f, y_c);
    for (size_t c = 0; c < n; c++) y_c[c] = step(p, AT_M12, x_c[c] + y_c[c]);
}

static void epe_points(void) {
    static const sinkproof_point points[] = {AT_M1, AT_M6, AT_M8, AT_M10, AT_M12};
    sinkproof_model *model;
    must(sinkproof_model_open("synthetic:tiny-gpt2", &model, NULL));
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t n = config->hidden;
    must(n <= 512 && config->inter <= 512);
    double x_c[512], y_c[512], want_c[512], unrounded_c[512];
    double *work = calloc(sinkproof_mechanism_epe_work(config, 1), sizeof *work);
    must(work != NULL);
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        uint64_t state = SEED + k;
        sinkproof_policy policy = rounding_only(points[k]);
        fill_reals(&state, 1, n, x_c);
        sinkproof_mechanism_epe(model, &policy, true, 1, x_c, y_c, work);
        brought(points[k], model, x_c, want_c);
        brought(AT_POINTS, model, x_c, unrounded_c);
        char what[80];
        snprintf(what, sizeof what, "rounded at %s alone", sinkproof_point_name(points[k]));
        say("gpt2.epe", what, differing(n, y_c, want_c), differing(n, want_c, unrounded_c), n);
    }
    free(work);
    sinkproof_model_close(model);
}

// ---- YaRN's ramp, every step rounded ------------------------------------------------------------

static double frequency(const sinkproof_config *config, double low, double high, size_t d) {
    double exponent = to_8_bits(2 * (double)d / (double)config->head_dim);
    double period = to_8_bits(pow(to_8_bits(config->rotation.theta), exponent));
    double slowed = to_8_bits(to_8_bits(config->rotation.factor) * period);
    double interpolated = to_8_bits(1 / slowed), extrapolated = to_8_bits(1 / period);
    double along = to_8_bits((double)d - to_8_bits(low)), span = to_8_bits(high - low);
    double ramp = fmin(fmax(to_8_bits(along / span), 0), 1), keep = to_8_bits(1 - ramp);
    double slow = to_8_bits(interpolated * to_8_bits(1 - keep));
    return to_8_bits(slow + to_8_bits(extrapolated * keep));
}

static void ramp(void) {
    uint64_t state = SEED;
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    sinkproof_policy rounded = rounding_only(AT_A4_FREQ);
    sinkproof_policy real = policy_of("real-f64");
    size_t apart = 0, moved = 0, values = 0;
    for (int trial = 0; trial < 300; trial++) {
        double low, high, freq_d[32], real_d[32], want_d[32];
        config.rotation.theta = 5000 + 150000 * (double)(next_bits(&state) % 1000) / 1000;
        config.rotation.factor = 1.1 + 40 * (double)(next_bits(&state) % 1000) / 1000;
        config.rotation.beta_fast = 8 + (double)(next_bits(&state) % 40);
        config.rotation.original_context = 1000 + next_bits(&state) % 8000;
        sinkproof_yarn_range(&config, config.rotation.truncate, &low, &high);
        sinkproof_yarn_frequencies(&rounded, &config, freq_d);
        sinkproof_yarn_frequencies(&real, &config, real_d);
        for (size_t d = 0; d < 32; d++) want_d[d] = frequency(&config, low, high, d);
        apart += differing(32, freq_d, want_d), moved += differing(32, want_d, real_d);
        values += 32;
    }
    say("yarn.ramp", "every step rounded to bfloat16", apart, moved, values);
}

// ---- one head of a design -----------------------------------------------------------------------

enum { ROWS = 6, WIDTH = 5, DIM = 4 };

static void design_points(void) {
    static const sinkproof_variant designs[] = {
        {.name = "softmax", .places = SINKPROOF_PLACES_ALIBI},
        {.name = "identity",
         .places = SINKPROOF_PLACES_ALIBI,
         .similarity = SINKPROOF_SIMILARITY_SCORE,
         .divisor = SINKPROOF_DIVISOR_AT_LEAST_1}};
    static const char *const ids[] = {"attn.softmax", "kernel.identity kernel.identity-max"};
    static const sinkproof_point points[] = {AT_A5, AT_A6};
    for (size_t v = 0; v < 2; v++)
        for (size_t k = 0; k < 2; k++) {
            uint64_t state = SEED + v;
            double x_nc[ROWS * WIDTH], wq_cd[WIDTH * DIM], wk_cd[WIDTH * DIM], wv_cd[WIDTH * DIM];
            fill_reals(&state, 2, ROWS * WIDTH, x_nc);
            fill_reals(&state, 2, WIDTH * DIM, wq_cd);
            fill_reals(&state, 2, WIDTH * DIM, wk_cd);
            fill_reals(&state, 2, WIDTH * DIM, wv_cd);
            sinkproof_variant_head head = {.n = ROWS,
                                           .hidden = WIDTH,
                                           .dim = DIM,
                                           .x_nc = x_nc,
                                           .wq_cd = wq_cd,
                                           .wk_cd = wk_cd,
                                           .wv_cd = wv_cd,
                                           .slope = 0x1.8cp-3};
            sinkproof_variant_result out;
            sinkproof_policy policy = rounding_only(points[k]);
            must(sinkproof_variant_attend(&policy, &designs[v], &head, &out, NULL));
            size_t apart = 0, moved = 0, values = 0;
            for (size_t i = 0; i < ROWS; i++)
                for (size_t j = 0; j <= i; j++, values++) {
                    double dot = 0, bias = -head.slope * (double)(i - j);
                    for (size_t d = 0; d < DIM; d++)
                        dot += out.q_id[i * DIM + d] * out.k_jd[j * DIM + d];
                    double scale = 1 / sqrt(DIM), unrounded = dot * scale + bias;
                    double s = step(points[k], AT_A5, dot) * scale;
                    s = step(points[k], AT_A6, s) + bias;
                    s = step(points[k], AT_A6, s);
                    apart += differing(1, &out.s_ij[i * (ROWS + 1) + j], &s);
                    moved += s != unrounded;
                }
            char what[80];
            snprintf(what, sizeof what, "scores rounded at %s alone",
                     sinkproof_point_name(points[k]));
            say(ids[v], what, apart, moved, values);
            sinkproof_variant_result_free(&out);
        }
}

// The row's exponents less its maximum, rounded before the exponential; keys that are not seen.
static void divided(void) {
    enum { KEYS = 9 };
    uint64_t state = SEED;
    sinkproof_variant softmax = {.name = "softmax"};
    sinkproof_policy policy = rounding_only(AT_A9_MAX);
    size_t apart = 0, moved = 0, values = 0, touched = 0;
    for (int trial = 0; trial < 100; trial++) {
        double s_j[KEYS + 1], sim_j[KEYS + 1], alpha_j[KEYS + 1], z = 0, m = -INFINITY, sum = 0;
        bool seen_j[KEYS + 1];
        fill_reals(&state, 4, KEYS + 1, s_j);
        for (size_t j = 0; j <= KEYS; j++) {
            seen_j[j] = j == 3 || next_bits(&state) % 4 != 0;
            sim_j[j] = alpha_j[j] = 77;
            if (j < KEYS && seen_j[j]) m = fmax(m, s_j[j]);
        }
        variant_divide(&policy, &softmax, KEYS, seen_j, s_j, sim_j, &z, alpha_j);
        double e_j[KEYS];
        for (size_t j = 0; j < KEYS; j++) {
            e_j[j] = seen_j[j] ? exp(to_8_bits(s_j[j] - m)) : 0;
            moved += seen_j[j] && to_8_bits(s_j[j] - m) != s_j[j] - m;
            if (seen_j[j]) sum += e_j[j];
        }
        apart += differing(KEYS, sim_j, e_j) + differing(1, &z, &sum), values += KEYS;
        for (size_t j = 0; j < KEYS; j++) e_j[j] = seen_j[j] ? e_j[j] / sum : 0;
        apart += differing(KEYS, alpha_j, e_j);
        touched += sim_j[KEYS] != 77 || alpha_j[KEYS] != 77;
    }
    say("attn.softmax", "s - m rounded alone, and nothing of a key that is not seen",
        apart + touched, moved, values);
}

int main(void) {
    gelu_points();
    norm_points();
    epe_points();
    ramp();
    design_points();
    divided();
    return tap_done();
}
