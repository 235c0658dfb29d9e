// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the paper on GPT-2 prints, against a list that was typed apart from it; what is said of it;
// and each reading of its tables on directions made so that it gives back every row.
#include "audit/studies/mechanism/comparison.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { HIDDEN = 768, LAYERS = 12, N = 5, ROWS = SINKPROOF_PUBLISHED_ROWS };

// By column, layers 1 to 12.
static const double means[] = {4.47, 2.8,   1.717, 1.657, 1.561, 0.86,
                               1.12, 1.404, 1.23,  1.313, 1.403, 1.145};
static const double spreads[] = {22.226, 6.62,  5.826, 5.02,  4.618, 1.59,
                                 2.701,  3.546, 3.225, 3.618, 4.002, 2.65};
static const double at_138[] = {12.116, 8.065,  10.178, 18.199, 3.072,  5.644,
                                12.453, 19.806, 17.846, 23.131, 27.547, 4.5};
static const double at_447[] = {11.064, 24.468, 23.047, 17.149, 23.854, 6.142,
                                18.17,  28.01,  26.014, 28.42,  27.691, 13.59};
static const double in_text[] = {100, -140, 0.7, -0.1, 0.828, 0.997, 15};

static void hold_tables(void) {
    const double *const columns[] = {means, spreads, at_138, at_447};
    size_t wrong = 0, digits = 0;
    for (size_t l = 0; l < ROWS; l++) {
        const published_row *row = &published_rows[l];
        wrong += row->layer != l + 1;
        wrong += row->table != (l == 6 || l == 8 || l == 10 ? 1 : 2);
        for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++) {
            printed_figure printed = printed_parse(row->text_k[k]);
            char again[32];
            snprintf(again, sizeof again, "%g", columns[k][l]);
            wrong += printed.value != columns[k][l] || strcmp(again, row->text_k[k]) != 0;
            // Value, unit and quotient are rounded once each.
            double units = printed.value / printed.unit, within = 4 * 0x1p-53 * units;
            digits += !(fabs(units - nearbyint(units)) <= within && printed.unit >= 0.001);
        }
    }
    ok(wrong == 0 && digits == 0, "published: 48 numbers of tables 1 and 2, each with its digits");
    wrong = 0;
    for (size_t k = 0; k < PUBLISHED_VALUES; k++) wrong += published_values[k].value != in_text[k];
    ok(wrong == 0, "published: %d numbers of the text", PUBLISHED_VALUES);
    ok(published_massive[0] == 138 && published_massive[1] == 378 && published_massive[2] == 447,
       "published: the massive coordinates");
}

// The note `exceed` counts what is in print.
static void hold_exceed(void) {
    size_t above_mean = 0, inside = 0, named = 0;
    for (size_t l = 0; l < ROWS; l++)
        for (size_t k = 0; k < 2; k++) {
            double x = k == 0 ? at_138[l] : at_447[l];
            above_mean += x > means[l];
            if (x > means[l] + spreads[l]) continue;
            inside++;
            named += l == 0 || (k == 0 && (l == 1 || l == 4));
        }
    ok(above_mean == 24 && inside == 4 && named == 4,
       "published: %zu of 24 above the mean, %zu not above the mean and the spread", above_mean,
       inside);
}

// The note `fifteen`: n numbers whose mean is 0 and whose squares sum to n, three of them a, b and
// c; the others' squares sum to (a + b + c)^2 / (n - 3) at least.
static double least_squares(double a, double b, double c) {
    return a * a + b * b + c * c + (a + b + c) * (a + b + c) / (HIDDEN - 3);
}

static void hold_fifteen(void) {
    // No term of the sum, all of them positive, meets more than 16 roundings.
    double most = sqrt(255), within = 17 * 0x1p-53 * HIDDEN;
    char text[16];
    snprintf(text, sizeof text, "%.2f", most);
    ok(fabs(least_squares(most, most, most) - HIDDEN) <= within && strcmp(text, "15.97") == 0 &&
           least_squares(17.75, 15, 15) > HIDDEN && least_squares(17.74, 15, 15) < HIDDEN,
       "published: three of %d numbers are at most %.4f deviations out, one of them 17.75", HIDDEN,
       most);
}

static void hold_sentences(void) {
    static const char *const begin[] = {"It was",      "My name", "He who",
                                        "After hours", "I need",  "Please"};
    static const char *const end[] = {"wisdom.",        "despair!", "past.",
                                      "documentation.", "tonight.", "afternoon."};
    static const size_t n[] = {21, 23, 18, 24, 19, 19};
    size_t wrong = 0;
    for (size_t i = 0; i < SINKPROOF_SENTENCES; i++) {
        const sinkproof_sentence *s = sinkproof_sentence_at(i);
        size_t length = strlen(s->text), tail = strlen(end[i]);
        wrong += s->n != n[i] || strncmp(s->text, begin[i], strlen(begin[i])) != 0;
        wrong += length < tail || strcmp(s->text + length - tail, end[i]) != 0;
        for (size_t t = 0; t < SINKPROOF_SENTENCE_TOKENS; t++)
            wrong +=
                s->token_n[t] < 0 || s->token_n[t] >= 50256 || (t >= s->n && s->token_n[t] != 0);
    }
    ok(wrong == 0 && sinkproof_sentence_at(SINKPROOF_SENTENCES) == NULL, "published: %d sentences",
       SINKPROOF_SENTENCES);
    // By C.1 to C.5: the analogues of figures 1 to 4.
    static const size_t figures[5][4] = {
        {16, 17, 15, 30}, {19, 20, 18, 31}, {22, 23, 21, 32}, {25, 26, 24, 33}, {28, 29, 27, 34}};
    wrong = 0;
    for (size_t s = 1; s <= 5; s++)
        for (size_t f = 1; f <= 4; f++) wrong += published_figure(s, f) != figures[s - 1][f - 1];
    for (size_t f = 0; f < 15; f++) wrong += published_figure(0, f) != f;
    wrong += published_figure(1, 5) + published_figure(6, 1);
    ok(wrong == 0, "published: the figures of each sentence");
}

static void hold_shape(void) {
    sinkproof_config config;
    sinkproof_error error;
    must(sinkproof_config_named("gpt2", &config));
    bool same = sinkproof_published_shape(&config, &error);
    config.n_layers = 11;
    bool other = sinkproof_published_shape(&config, &error);
    ok(same && !other && strstr(error.text, "this one has 11 layers of 12 heads") != NULL,
       "published: %s", error.text);
    must(sinkproof_config_named("tiny", &config));
    ok(!sinkproof_published_shape(&config, &error), "published: %s", error.text);
}

// ---- readings

typedef struct made {
    sinkproof_mechanism m;
    mechanism_layer layers[LAYERS];
    sinkproof_config config;
    double gamma[LAYERS][HIDDEN], delta[LAYERS][N], align[LAYERS][N], epe[HIDDEN], check[N];
    size_t massive[4];
} made;

static bool is_massive(size_t c) {
    return c == 138 || c == 378 || c == 447;
}

// A layer's direction such that the reading gives back the printed row: the coordinates that are
// not massive take two numbers, `few` of them the larger one, of which mean and spread follow.
static void make_row(table_reading r, size_t l, double *gamma_c) {
    const double massive[] = {at_138[l], means[l], at_447[l]};
    double n = r.others ? HIDDEN - 3 : HIDDEN, deviation = spreads[l] / (r.single ? 1 : 2);
    double squares = deviation * deviation * (r.sample ? n - 1 : n) + n * means[l] * means[l];
    double sum = n * means[l], few = r.with_sign ? 300 : 10, free = HIDDEN - 3;
    for (size_t k = 0; k < 3 && !r.others; k++)
        sum -= massive[k], squares -= massive[k] * massive[k];
    double mean = sum / free, apart = sqrt(squares / free - mean * mean);
    double high = mean + apart * sqrt((free - few) / few);
    double low = mean - apart * sqrt(few / (free - few));
    size_t at = 0;
    for (size_t c = 0; c < HIDDEN; c++)
        if (!is_massive(c)) gamma_c[c] = (double)at++ < few ? high : low;
    gamma_c[138] = massive[0], gamma_c[378] = massive[1], gamma_c[447] = massive[2];
    // A sign that only |gamma| leaves out.
    for (size_t c = 0; c < HIDDEN && !r.with_sign; c += 3) gamma_c[c] = -gamma_c[c];
}

static made *make(table_reading r) {
    made *x = calloc(1, sizeof *x);
    must(x != NULL && sinkproof_config_named("gpt2", &x->config));
    x->m = (sinkproof_mechanism){.config = &x->config,
                                 .n = N,
                                 .epe_ic = x->epe,
                                 .epe_check_i = x->check,
                                 .massive_at = x->massive,
                                 .layers = x->layers};
    for (size_t l = 0; l < LAYERS; l++) {
        make_row(r, l, x->gamma[l]);
        x->layers[l] = (mechanism_layer){
            .gamma_c = x->gamma[l], .delta_j = x->delta[l], .align_j = x->align[l]};
    }
    const double delta[N] = {95.1, -144.9, -135.1, -140, -140};
    const double align[N] = {0.749, -0.2, -0.1, -0.05, -0.05},
                 check[N] = {0.8284, 0.9966, 0.9, 0.9, 0.9};
    memcpy(x->delta[9], delta, sizeof delta);
    memcpy(x->align[9], align, sizeof align);
    memcpy(x->check, check, sizeof check);
    x->m.rule = (sinkproof_massive_rule){.mean = 1, .deviation = 2, .n = 3};
    x->massive[0] = 138, x->massive[1] = 378, x->massive[2] = 447;
    x->epe[138] = -40, x->epe[378] = 31.5, x->epe[447] = 60;
    return x;
}

static void hold_readings(const sinkproof_model *model) {
    table_comparison c;
    for (size_t r = 0; r < TABLE_READINGS; r++) {
        table_reading reading = table_reading_at(r);
        made *x = make(reading);
        sinkproof_compare_published(model, 0, &x->m, &x->m, &c);
        size_t full = 0;
        for (size_t i = 0; i < TABLE_READINGS; i++) full += c.count_r[i].rows == ROWS;
        ok(c.best == r && full == 1 && c.count_r[r].numbers == 4 * ROWS,
           "published: read as %s: %zu rows", table_reading_named(reading).text,
           c.count_r[c.best].rows);
        free(x);
    }
}

static void hold_values(const sinkproof_model *model) {
    made *x = make((table_reading){0});
    table_comparison c;
    sinkproof_compare_published(model, 0, &x->m, &x->m, &c);
    size_t rounding = 0;
    for (size_t k = 0; k < PUBLISHED_VALUES; k++)
        rounding += c.epe_e[0].value_k[k].rounds && c.epe_e[1].value_k[k].rounds;
    ok(rounding == PUBLISHED_VALUES && c.epe_e[0].massive_same &&
           c.epe_e[0].value_k[MASSIVE_LEAST].measured == 15.25,
       "published: %zu numbers of the text are met", rounding);
    // Each a little beyond the last digit, one unknown, one coordinate another.
    x->delta[9][0] = 94.9, x->delta[9][1] = -175, x->align[9][0] = 0.751, x->align[9][1] = -0.6;
    x->check[0] = 0.8286, x->check[3] = NAN, x->epe[378] = 30.9, x->massive[1] = 379;
    sinkproof_compare_published(model, 0, &x->m, &x->m, &c);
    for (size_t k = rounding = 0; k < PUBLISHED_VALUES; k++)
        rounding += c.epe_e[0].value_k[k].rounds;
    ok(rounding == 0 && !c.epe_e[0].massive_same && isnan(c.epe_e[0].value_k[CHECK_MOST].measured),
       "published: none is met when each is beyond its last digit");
    sinkproof_compare_published(model, 3, &x->m, &x->m, &c);
    ok(isnan(c.epe_e[0].value_k[DELTA_FIRST].measured) &&
           isfinite(c.epe_e[0].value_k[MASSIVE_LEAST].measured),
       "published: of another sentence nothing is printed that needs the first");
    free(x);
}

static void hold_off(const sinkproof_model *model) {
    made *x = make((table_reading){0});
    table_comparison c;
    x->gamma[6][138] -=
        0.002; // it is negative; the spread goes with it, by less than its last digit
    sinkproof_compare_published(model, 0, &x->m, &x->m, &c);
    const figure_compared *row_k = c.row_lk[6];
    ok(c.count_r[0].rows == 11 && row_k[0].rounds && !row_k[2].rounds && row_k[3].rounds &&
           fabs(row_k[2].off - 0.002) < 0x1p-40,
       "published: one number of one row off: off=%g", row_k[2].off);
    x->gamma[6][447] = NAN;
    sinkproof_compare_published(model, 0, &x->m, &x->m, &c);
    ok(!c.row_lk[6][0].rounds && !c.row_lk[6][1].rounds && !c.row_lk[6][3].rounds,
       "published: what is no number meets nothing");
    free(x);
}

int main(void) {
    hold_tables();
    hold_exceed();
    hold_fifteen();
    hold_sentences();
    hold_shape();
    sinkproof_model *model = open_model("synthetic:tiny-gpt2");
    hold_readings(model);
    hold_values(model);
    hold_off(model);
    sinkproof_model_close(model);
    return tap_done();
}
