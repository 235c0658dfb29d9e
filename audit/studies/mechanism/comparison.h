// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares the paper's printed numbers with measurements (doc/32-no-universal-mechanism.md,
// `Published against measured`). Where the paper can be read in several ways, each reading is tried
// and the matches with the printed numbers are counted; none is assumed.
#ifndef SINKPROOF_COMPARISON_H
#define SINKPROOF_COMPARISON_H

#include "audit/studies/mechanism/mechanism.h"
#include "audit/studies/mechanism/published.h"

#include <jansson.h>

// One way to read the tables. The first, all false, follows the wording of the captions and A.5.
typedef struct table_reading {
    bool with_sign; // uses gamma, else |gamma|
    bool sample;    // the sum of squares divided by n - 1, else by n
    bool single;    // the spread is one standard deviation, else two
    bool others;    // the baseline leaves out the massive coordinates
} table_reading;
enum { TABLE_READINGS = 16 };
table_reading table_reading_at(size_t i);
// "|gamma|, mean and 2 standard deviations (/ n) of all coordinates"
typedef struct table_reading_name {
    char text[160];
} table_reading_name;
table_reading_name table_reading_named(table_reading reading);

// A measured number and the printed one. NAN: not measured.
typedef struct figure_compared {
    double measured, off; // off: measured - printed
    // the measured number rounds to the printed one, or is above the printed lower bound
    bool rounds;
} figure_compared;

typedef struct table_reading_count {
    // rows (of 12) whose four numbers all round to the printed ones, and such numbers (of 48)
    size_t rows, numbers;
} table_reading_count;

enum { EPE_READINGS = 2 }; // raw, normed
typedef struct epe_figure_compared {
    figure_compared value_k[PUBLISHED_VALUES];
    bool massive_same;              // the massive coordinates are the paper's three
    size_t n_massive, massive_n[8]; // the first few of them
} epe_figure_compared;

typedef struct table_comparison {
    size_t sentence;     // SINKPROOF_SENTENCES: another input, without printed numbers
    const char *weights; // whether these are the released weights
    table_reading_count count_r[TABLE_READINGS];
    size_t best; // the reading with the most rows, then numbers; the first of several
    // of the best reading
    figure_compared row_lk[SINKPROOF_PUBLISHED_ROWS][SINKPROOF_PUBLISHED_COLUMNS];
    double at_378_l[SINKPROOF_PUBLISHED_ROWS]; // gamma[378] by the best reading
    epe_figure_compared epe_e[EPE_READINGS];
} table_comparison;

// raw, normed: two measurements of one input without interventions, on a model of the released
// shape.
void sinkproof_compare_published(const sinkproof_model *model, size_t sentence,
                                 const sinkproof_mechanism *raw, const sinkproof_mechanism *normed,
                                 table_comparison *out);

void sinkproof_comparison_print(const table_comparison *comparison, FILE *out);
json_t *sinkproof_comparison_json(const table_comparison *comparison);
void comparison_html(const table_comparison *comparison, FILE *page);

#endif
