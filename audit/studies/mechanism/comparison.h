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
typedef struct sinkproof_table_reading {
    bool with_sign; // uses gamma, else |gamma|
    bool sample;    // the sum of squares divided by n - 1, else by n
    bool single;    // the spread is one standard deviation, else two
    bool others;    // the baseline leaves out the massive coordinates
} sinkproof_table_reading;
enum { SINKPROOF_READINGS = 16 };
sinkproof_table_reading sinkproof_table_reading_at(size_t i);
// "|gamma|, mean and 2 standard deviations (/ n) of all coordinates"
typedef struct sinkproof_table_reading_name {
    char text[160];
} sinkproof_table_reading_name;
sinkproof_table_reading_name sinkproof_table_reading_named(sinkproof_table_reading reading);

// A measured number and the printed one. NAN: not measured.
typedef struct sinkproof_compared {
    double measured, off; // off: measured - printed
    // the measured number rounds to the printed one, or is above the printed lower bound
    bool rounds;
} sinkproof_compared;

typedef struct sinkproof_table_reading_count {
    // rows (of 12) whose four numbers all round to the printed ones, and such numbers (of 48)
    size_t rows, numbers;
} sinkproof_table_reading_count;

enum { SINKPROOF_EPE_READINGS = 2 }; // raw, normed
typedef struct sinkproof_epe_compared {
    sinkproof_compared value_k[SINKPROOF_PUBLISHED_VALUES];
    bool massive_same;              // the massive coordinates are the paper's three
    size_t n_massive, massive_n[8]; // the first few of them
} sinkproof_epe_compared;

typedef struct sinkproof_comparison {
    size_t sentence;     // SINKPROOF_SENTENCES: another input, without printed numbers
    const char *weights; // whether these are the released weights
    sinkproof_table_reading_count count_r[SINKPROOF_READINGS];
    size_t best; // the reading with the most rows, then numbers; the first of several
    // of the best reading
    sinkproof_compared row_lk[SINKPROOF_PUBLISHED_ROWS][SINKPROOF_PUBLISHED_COLUMNS];
    double at_378_l[SINKPROOF_PUBLISHED_ROWS]; // gamma[378] by the best reading
    sinkproof_epe_compared epe_e[SINKPROOF_EPE_READINGS];
} sinkproof_comparison;

// raw, normed: two measurements of one input without interventions, on a model of the released
// shape.
void sinkproof_compare_published(const sinkproof_model *model, size_t sentence,
                                 const sinkproof_mechanism *raw, const sinkproof_mechanism *normed,
                                 sinkproof_comparison *out);

void sinkproof_comparison_print(const sinkproof_comparison *comparison, FILE *out);
json_t *sinkproof_comparison_json(const sinkproof_comparison *comparison);
void sinkproof_comparison_html(const sinkproof_comparison *comparison, FILE *page);

#endif
