// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares measurements with the paper's numbers: sixteen readings of two tables, two of the
// effective position.
#include "audit/studies/mechanism/comparison.h"

#include <math.h>
#include <string.h>

table_reading table_reading_at(size_t i) {
    return (table_reading){.with_sign = (i & 1) != 0,
                           .sample = (i & 2) != 0,
                           .single = (i & 4) != 0,
                           .others = (i & 8) != 0};
}

table_reading_name table_reading_named(table_reading r) {
    table_reading_name name;
    snprintf(name.text, sizeof name.text, "%s, mean and %s (/ %s) of %s coordinates",
             r.with_sign ? "gamma with its sign" : "|gamma|",
             r.single ? "1 standard deviation" : "2 standard deviations", r.sample ? "n - 1" : "n",
             r.others ? "the other" : "all");
    return name;
}

static double gamma_as_read(table_reading r, double gamma) {
    return r.with_sign ? gamma : fabs(gamma);
}

static bool is_published_massive(size_t c) {
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_MASSIVE; k++)
        if (published_massive[k] == c) return true;
    return false;
}

// Mean and spread of a layer's gamma, in two passes.
static void gamma_baseline(table_reading r, size_t hidden, const double *gamma_c, double *mean,
                           double *spread) {
    double sum = 0, squares = 0, n = 0;
    for (size_t c = 0; c < hidden; c++)
        if (!r.others || !is_published_massive(c)) sum += gamma_as_read(r, gamma_c[c]), n++;
    *mean = sum / n;
    for (size_t c = 0; c < hidden; c++)
        if (!r.others || !is_published_massive(c)) {
            double apart = gamma_as_read(r, gamma_c[c]) - *mean;
            squares += apart * apart;
        }
    *spread = (r.single ? 1 : 2) * sqrt(squares / (r.sample ? n - 1 : n));
}

// `rounds` if the measured number, rounded to the printed one's last digit, equals it.
static figure_compared compare_to_printed(double measured, double printed, double unit) {
    return (figure_compared){measured, measured - printed,
                             nearbyint(measured / unit) == nearbyint(printed / unit)};
}

static void compare_row(table_reading r, const sinkproof_mechanism *m, const published_row *row,
                        figure_compared out_k[SINKPROOF_PUBLISHED_COLUMNS]) {
    const double *gamma_c = m->layers[row->layer - 1].gamma_c;
    double measured[SINKPROOF_PUBLISHED_COLUMNS];
    gamma_baseline(r, m->config->hidden, gamma_c, &measured[0], &measured[1]);
    measured[2] = gamma_as_read(r, gamma_c[published_massive[0]]);
    measured[3] = gamma_as_read(r, gamma_c[published_massive[2]]);
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++) {
        printed_figure printed = printed_parse(row->text_k[k]);
        out_k[k] = compare_to_printed(measured[k], printed.value, printed.unit);
    }
}

static void compare_tables(const sinkproof_mechanism *m, table_comparison *out) {
    for (size_t i = 0; i < TABLE_READINGS; i++) {
        table_reading_count *count = &out->count_r[i], *best = &out->count_r[out->best];
        for (size_t l = 0; l < SINKPROOF_PUBLISHED_ROWS; l++) {
            figure_compared row_k[SINKPROOF_PUBLISHED_COLUMNS];
            size_t rounding = 0;
            compare_row(table_reading_at(i), m, &published_rows[l], row_k);
            for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++) rounding += row_k[k].rounds;
            count->numbers += rounding;
            count->rows += rounding == SINKPROOF_PUBLISHED_COLUMNS;
        }
        if (count->rows > best->rows ||
            (count->rows == best->rows && count->numbers > best->numbers))
            out->best = i;
    }
    table_reading best = table_reading_at(out->best);
    for (size_t l = 0; l < SINKPROOF_PUBLISHED_ROWS; l++) {
        compare_row(best, m, &published_rows[l], out->row_lk[l]);
        out->at_378_l[l] = gamma_as_read(best, m->layers[l].gamma_c[published_massive[1]]);
    }
}

// ---- the numbers in the text -------------------------------------------------------------------

// The mean over all but the first; NAN if there is no other.
static double mean_without_first(size_t n, const double *x_j) {
    double sum = 0;
    for (size_t j = 1; j < n; j++) sum += x_j[j];
    return n > 1 ? sum / (double)(n - 1) : NAN;
}

// The smallest or the largest number; NAN if one is NAN.
static double extreme_number(size_t n, const double *x_i, bool most) {
    double best = x_i[0];
    for (size_t i = 1; i < n && !isnan(best); i++)
        if (isnan(x_i[i]) || (most ? x_i[i] > best : x_i[i] < best)) best = x_i[i];
    return best;
}

// The distance of the smallest massive coordinate from the mean of |EPE_1|, in deviations.
static double least_massive(const sinkproof_mechanism *m) {
    double least = NAN;
    for (size_t k = 0; k < m->rule.n; k++) {
        double off = (fabs(m->epe_ic[m->massive_at[k]]) - m->rule.mean) / m->rule.deviation;
        if (k == 0 || isnan(off) || off < least) least = off;
    }
    return least;
}

static double measured_value(const sinkproof_mechanism *m, published_what what) {
    const mechanism_layer *layer = &m->layers[SINKPROOF_PUBLISHED_LAYER - 1];
    switch (what) {
    case DELTA_FIRST:
        return layer->delta_j[0];
    case DELTA_OTHERS:
        return mean_without_first(m->n, layer->delta_j);
    case ALIGN_FIRST:
        return layer->align_j[0];
    case ALIGN_OTHERS:
        return mean_without_first(m->n, layer->align_j);
    case CHECK_LEAST:
        return extreme_number(m->n, m->epe_check_i, false);
    case CHECK_MOST:
        return extreme_number(m->n, m->epe_check_i, true);
    case MASSIVE_LEAST:
        return least_massive(m);
    case PUBLISHED_VALUES:
        break;
    }
    return NAN;
}

static void compare_epe(const sinkproof_mechanism *m, size_t sentence, epe_figure_compared *out) {
    enum { ROOM = sizeof out->massive_n / sizeof *out->massive_n };
    for (size_t k = 0; k < PUBLISHED_VALUES; k++) {
        const published_value *p = &published_values[k];
        if (p->input && sentence != 0) {
            out->value_k[k] = (figure_compared){NAN, NAN, false};
            continue;
        }
        double measured = measured_value(m, (published_what)k);
        out->value_k[k] = compare_to_printed(measured, p->value, p->unit);
        if (p->above) out->value_k[k].rounds = measured > p->value;
    }
    out->n_massive = m->rule.n;
    for (size_t k = 0; k < m->rule.n && k < ROOM; k++) out->massive_n[k] = m->massive_at[k];
    out->massive_same = m->rule.n == SINKPROOF_PUBLISHED_MASSIVE &&
                        memcmp(m->massive_at, published_massive, sizeof published_massive) == 0;
}

void sinkproof_compare_published(const sinkproof_model *model, size_t sentence,
                                 const sinkproof_mechanism *raw, const sinkproof_mechanism *normed,
                                 table_comparison *out) {
    bool drawn = strcmp(sinkproof_model_layout(model), "synthetic") == 0;
    *out = (table_comparison){
        .sentence = sentence,
        .weights = drawn ? "These weights are drawn or made, not the released ones: the printed "
                           "numbers are not expected."
                         : "The model has the released one's shape. Whether its weights are the "
                           "released ones is not known here."};
    compare_tables(raw, out);
    compare_epe(raw, sentence, &out->epe_e[0]);
    compare_epe(normed, sentence, &out->epe_e[1]);
}
