// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a score is made of, and what a position alone brings (ref/mechanism.h): on small whole
// numbers, whose products and sums are exact in every order, beside an own count of the same; on
// drawn numbers beside long double, within the rounding of so many operations; NaN. 0.1 CPU
// seconds.
#include "model/slots.h"
#include "ref/mechanism.h"
#include "tests/shared/reference.h"

#include <math.h>

enum { D = 6, HIDDEN = 10, HEADS = 3, TRIALS = 200 };

// q k^T of q = a + b_q and k = c + b_k, by one sum.
static void terms_are_the_score(void) {
    uint64_t state = 1;
    bool good = true;
    for (int trial = 0; trial < TRIALS; trial++) {
        double a_d[D + 1], b_q_d[D + 1], c_d[D + 1], b_k_d[D + 1], terms[SINKPROOF_TERMS + 1];
        double want[SINKPROOF_TERMS] = {0}, score = 0;
        double *all[] = {a_d, b_q_d, c_d, b_k_d};
        for (int x = 0; x < 4; x++) fill_integers(&state, 9, D, all[x]), all[x][D] = NAN;
        terms[SINKPROOF_TERMS] = 77;
        for (size_t i = D; i-- > 0;) {
            score += (a_d[i] + b_q_d[i]) * (c_d[i] + b_k_d[i]);
            want[SINKPROOF_TERM_CONTENT] += a_d[i] * c_d[i];
            want[SINKPROOF_TERM_QUERY] += a_d[i] * b_k_d[i];
            want[SINKPROOF_TERM_KEY] += b_q_d[i] * c_d[i];
            want[SINKPROOF_TERM_CONSTANT] += b_q_d[i] * b_k_d[i];
        }
        sinkproof_mechanism_terms(D, a_d, b_q_d, c_d, b_k_d, terms);
        good = good && terms[0] + terms[1] + terms[2] + terms[3] == score && terms[4] == 77;
        for (size_t k = 0; k < SINKPROOF_TERMS; k++) good = good && terms[k] == want[k];
    }
    ok(good, "gpt2.expand four terms of whole numbers, and their sum, trials=%d", TRIALS);
}

// Delta_j = gamma x_j = b_q (W_k x_j), of a head's rows and of all.
static void gamma_is_the_direction(void) {
    uint64_t state = 2;
    bool good = true;
    for (int trial = 0; trial < TRIALS; trial++) {
        double w_rc[HEADS * D * HIDDEN], b_r[HEADS * D + 1], x_c[HIDDEN], gamma_c[HIDDEN + 1];
        double row_c[HIDDEN + 1], whole_c[HIDDEN + 1], delta = 0, sum_c[HIDDEN] = {0};
        fill_integers(&state, 5, HEADS * D * HIDDEN, w_rc);
        fill_integers(&state, 5, HEADS * D, b_r);
        fill_integers(&state, 5, HIDDEN, x_c);
        b_r[HEADS * D] = NAN;
        gamma_c[HIDDEN] = row_c[HIDDEN] = whole_c[HIDDEN] = 77;
        sinkproof_matrix w_k = matrix_of(w_rc, 1, HEADS * D, HIDDEN);
        for (size_t h = 0; h < HEADS; h++) {
            double key = 0;
            sinkproof_mechanism_gamma(&w_k, h * D, D, b_r + h * D, gamma_c, row_c);
            for (size_t r = h * D; r < (h + 1) * D; r++)
                for (size_t c = 0; c < HIDDEN; c++) key += b_r[r] * w_rc[r * HIDDEN + c] * x_c[c];
            good = good && sinkproof_mechanism_dot(HIDDEN, gamma_c, x_c) == key;
            for (size_t c = 0; c < HIDDEN; c++) sum_c[c] += gamma_c[c];
            delta += key;
        }
        sinkproof_mechanism_gamma(&w_k, 0, HEADS * D, b_r, whole_c, row_c);
        good = good && differing(HIDDEN, sum_c, whole_c) == 0 &&
               sinkproof_mechanism_dot(HIDDEN, whole_c, x_c) == delta && gamma_c[HIDDEN] == 77 &&
               row_c[HIDDEN] == 77 && whole_c[HIDDEN] == 77;
    }
    ok(good,
       "gpt2.gamma gpt2.delta of each head, and of all as their sum, "
       "trials=%d",
       TRIALS);
}

static void cosines(void) {
    uint64_t state = 3;
    // A sum of D products, its own root and a quotient: so many roundings.
    double worst = 0, bound = 2 * gamma53(D) + gamma53(4);
    for (int trial = 0; trial < TRIALS; trial++) {
        double x_i[D], y_i[D];
        long double xy = 0, xx = 0, yy = 0, size = 0;
        fill_reals(&state, 3, D, x_i);
        fill_reals(&state, 3, D, y_i);
        for (size_t i = 0; i < D; i++) {
            long double x = x_i[i], y = y_i[i];
            xy += x * y, xx += x * x, yy += y * y, size += fabsl(x * y);
        }
        long double want = xy / sqrtl(xx * yy), allowed = size / sqrtl(xx * yy);
        keep_worst(
            &worst,
            (double)(fabsl(want - (long double)sinkproof_mechanism_cosine(D, x_i, y_i)) / allowed));
    }
    double none[2] = {0, 0}, some[2] = {3, 4}, less[2] = {-6, -8}, off[2] = {1, NAN};
    ok(worst <= bound && sinkproof_mechanism_cosine(2, some, less) == -1 &&
           sinkproof_mechanism_cosine(2, some, (double[]){4, -3}) == 0 &&
           isnan(sinkproof_mechanism_cosine(2, some, none)) &&
           isnan(sinkproof_mechanism_cosine(2, off, some)),
       "gpt2.align cosines; of no direction, and of a NaN, none: worst=%.3g bound=%.3g", worst,
       bound);
}

static void checks(void) {
    uint64_t state = 4;
    double epe_c[HIDDEN], o_c[HIDDEN], r_c[HIDDEN], difference_c[HIDDEN];
    bool good = true;
    for (int trial = 0; trial < TRIALS; trial++) {
        fill_integers(&state, 9, HIDDEN, epe_c);
        fill_integers(&state, 9, HIDDEN, o_c);
        fill_integers(&state, 9, HIDDEN, r_c);
        double dot = 0, own = 0, length = 0;
        for (size_t c = 0; c < HIDDEN; c++) {
            difference_c[c] = r_c[c] - o_c[c];
            dot += epe_c[c] * difference_c[c];
            own += epe_c[c] * epe_c[c], length += difference_c[c] * difference_c[c];
        }
        double cosine = sinkproof_mechanism_epe_check(HIDDEN, epe_c, o_c, r_c);
        good = good && cosine == dot / (sqrt(own) * sqrt(length)) &&
               differing(HIDDEN, r_c, difference_c) == 0;
    }
    ok(good,
       "gpt2.epe-check the cosine of EPE and R - O of whole numbers, "
       "trials=%d",
       TRIALS);
}

// ---- the first layer's perceptron, by its formulas: every sum in ascending order

static double row_times(const sinkproof_matrix *w, size_t r, const double *x_c) {
    double row_c[512], sum = 0;
    must(w->cols <= sizeof row_c / sizeof *row_c);
    sinkproof_matrix_row(w, r, row_c);
    for (size_t c = 0; c < w->cols; c++) sum += row_c[c] * x_c[c];
    return sum;
}

static double entry(const sinkproof_matrix *vector, size_t c) {
    double row_c[512];
    must(vector->cols <= sizeof row_c / sizeof *row_c);
    sinkproof_matrix_row(vector, 0, row_c);
    return row_c[c];
}

static double gelu_new(double x) {
    double inner = sqrt(2 / acos(-1)) * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (1 + tanh(inner));
}

static void norm_row(const sinkproof_layer *layer, double eps, size_t hidden, const double *x_c,
                     double *out_c) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < hidden; c++) mean += x_c[c];
    mean /= (double)hidden;
    for (size_t c = 0; c < hidden; c++) variance += (x_c[c] - mean) * (x_c[c] - mean);
    double inverse = 1 / sqrt(variance / (double)hidden + eps);
    for (size_t c = 0; c < hidden; c++)
        out_c[c] =
            (x_c[c] - mean) * inverse * entry(&layer->mlp_norm, c) + entry(&layer->mlp_norm_b, c);
}

static void want_epe(const sinkproof_model *model, bool normed, const double *p_c, double *out_c) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    double in_c[512], act_f[512];
    must(config->hidden <= 512 && config->inter <= 512);
    if (normed)
        norm_row(&layer, config->rms_eps, config->hidden, p_c, in_c);
    else
        memcpy(in_c, p_c, config->hidden * sizeof *in_c);
    for (size_t f = 0; f < config->inter; f++)
        act_f[f] = gelu_new(row_times(&layer.w_up, f, in_c) + entry(&layer.b_up, f));
    for (size_t c = 0; c < config->hidden; c++)
        out_c[c] = row_times(&layer.w_down, c, act_f) + entry(&layer.b_down, c) + p_c[c];
}

static void positions(void) {
    enum { ROWS = 9 };
    sinkproof_model *model;
    must(sinkproof_model_open("synthetic:tiny-gpt2", &model, NULL));
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_policy real = policy_of("real-f64"), bf16 = policy_of("bf16");
    sinkproof_matrix p = sinkproof_model_slot(model, 0, SINKPROOF_POSITIONS);
    size_t hidden = config->hidden, work = sinkproof_mechanism_epe_work(config, ROWS), apart = 0;
    double *p_ic = calloc(ROWS * hidden, sizeof *p_ic),
           *epe_ic = calloc(ROWS * hidden, sizeof *p_ic);
    double *want_c = calloc(hidden, sizeof *want_c), *scratch = calloc(work + 1, sizeof *scratch);
    must(p_ic != NULL && epe_ic != NULL && want_c != NULL && scratch != NULL);
    scratch[work] = 77;
    for (size_t i = 0; i < ROWS; i++) sinkproof_matrix_row(&p, i, p_ic + i * hidden);
    for (int normed = 0; normed < 2; normed++) {
        sinkproof_mechanism_epe(model, &real, normed, ROWS, p_ic, epe_ic, scratch);
        for (size_t i = 0; i < ROWS; i++) {
            want_epe(model, normed, p_ic + i * hidden, want_c);
            apart += differing(hidden, epe_ic + i * hidden, want_c);
        }
    }
    ok(apart == 0 && scratch[work] == 77,
       "gpt2.epe of %d positions, raw and normed, bit for bit: worst=%zu bound=0", ROWS, apart);
    double raw = epe_ic[0];
    sinkproof_mechanism_epe(model, &bf16, true, ROWS, p_ic, epe_ic, scratch);
    bool rounded = epe_ic[0] != raw;
    for (size_t c = 0; c < ROWS * hidden; c++)
        rounded = rounded && epe_ic[c] == sinkproof_round(SINKPROOF_BF16, epe_ic[c]);
    p_ic[hidden + 3] = NAN;
    sinkproof_mechanism_epe(model, &real, false, ROWS, p_ic, epe_ic, scratch);
    ok(rounded && isnan(epe_ic[hidden + 3]) && !isnan(epe_ic[3]) && !isnan(epe_ic[2 * hidden + 3]),
       "gpt2.epe is rounded as the policy says; a NaN stays in its row");
    free(p_ic);
    free(epe_ic);
    free(want_c);
    free(scratch);
    sinkproof_model_close(model);
}

// ---- the rule of three deviations

static void massive(void) {
    size_t at[100];
    // Nine 0 and one 10: mean 1, deviation 3, so that 10 is exactly three deviations above.
    double ten_c[10] = {0, 0, 0, -10}, hundred_c[100] = {0};
    sinkproof_massive_rule at_three = sinkproof_mechanism_massive(10, ten_c, 3, at);
    sinkproof_massive_rule below = sinkproof_mechanism_massive(10, ten_c, 2.75, at);
    ok(at_three.mean == 1 && at_three.deviation == 3 && at_three.n == 0 && below.n == 1 &&
           at[0] == 3,
       "gpt2.massive gpt2.table1 gpt2.table2 exceeds: exactly three deviations above the mean is "
       "not massive");
    for (size_t c = 0; c < 100; c++) hundred_c[c] = c % 2 == 0 ? 1 : -1;
    hundred_c[17] = -50, hundred_c[63] = 50;
    sinkproof_massive_rule two = sinkproof_mechanism_massive(100, hundred_c, 3, at);
    // |x|: 98 of 1 and two of 50; mean 1.98, squares 98 0.98^2 + 2 48.02^2 = 4705.96.
    double want = sqrt(4705.96 / 100);
    ok(two.n == 2 && at[0] == 17 && at[1] == 63 && two.mean == 1.98 &&
           fabs(two.deviation - want) <= want * gamma53(100 + 6),
       "gpt2.massive of both signs, the least coordinate first: worst=%.3g bound=%.3g",
       fabs(two.deviation - want) / want, gamma53(100 + 6));
    for (size_t c = 0; c < 100; c++) hundred_c[c] = 5;
    sinkproof_massive_rule none = sinkproof_mechanism_massive(100, hundred_c, 3, at);
    hundred_c[99] = NAN;
    sinkproof_massive_rule nan = sinkproof_mechanism_massive(100, hundred_c, 3, at);
    ok(none.n == 0 && none.deviation == 0 && nan.n == 0 && isnan(nan.mean) && isnan(nan.deviation),
       "gpt2.massive where all are alike there is none; a NaN is in the mean and the deviation");
}

// k of d numbers are together at most sqrt((d - k) / k) deviations above the mean: reached by k
// equal ones beside zeros, and by no drawn ones.
static void farthest(void) {
    enum { MOST = 768 };
    uint64_t state = 6;
    double x_c[MOST], worst = 0, bound = gamma53(2 * MOST + 8);
    size_t beyond = 0;
    for (size_t k = 1; k <= 40; k++) {
        double most = sqrt((double)(MOST - k) / (double)k);
        for (size_t c = 0; c < MOST; c++) x_c[c] = c < k ? -4096 : 0;
        sinkproof_massive_rule rule = sinkproof_mechanism_spread(MOST, x_c);
        keep_worst(&worst, fabs((4096 - rule.mean) / rule.deviation - most) / most);
        for (size_t c = 0; c < MOST; c++) x_c[c] = next_real(&state, c < k ? 900 : 1);
        rule = sinkproof_mechanism_spread(MOST, x_c);
        double least = INFINITY;
        for (size_t c = 0; c < k; c++) least = fmin(least, fabs(x_c[c]));
        beyond += !((least - rule.mean) / rule.deviation <= most * (1 + bound));
    }
    ok(worst <= bound && beyond == 0,
       "gpt2.massive no k of %d are more than sqrt((d - k) / k) deviations out, %.2f for 3: "
       "worst=%.3g bound=%.3g",
       MOST, sqrt((MOST - 3) / 3.0), worst, bound);
}

static void not_a_number(void) {
    double a_d[2] = {1, NAN}, b_d[2] = {1, 1}, row_c[2], gamma_c[2], terms[SINKPROOF_TERMS];
    double w_rc[4] = {1, 2, 3, 4};
    sinkproof_matrix w_k = matrix_of(w_rc, 1, 2, 2);
    sinkproof_mechanism_terms(2, a_d, b_d, b_d, b_d, terms);
    sinkproof_mechanism_gamma(&w_k, 0, 2, a_d, gamma_c, row_c);
    ok(isnan(terms[SINKPROOF_TERM_CONTENT]) && isnan(terms[SINKPROOF_TERM_QUERY]) &&
           terms[SINKPROOF_TERM_KEY] == 2 && terms[SINKPROOF_TERM_CONSTANT] == 2 &&
           isnan(gamma_c[0]) && isnan(gamma_c[1]) && isnan(sinkproof_mechanism_dot(2, a_d, b_d)),
       "gpt2.expand gpt2.gamma gpt2.delta a NaN stays in what it enters");
}

int main(void) {
    terms_are_the_score();
    gamma_is_the_direction();
    cosines();
    checks();
    positions();
    massive();
    farthest();
    not_a_number();
    return tap_done();
}
