// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the paper prints beside what is measured (doc/32-no-universal-mechanism.md, `Published
// against measured`). Where the paper can be read in several ways each reading is tried, and which
// one gives back the most of what is printed is counted, never assumed.
#ifndef SINKPROOF_COMPARISON_H
#define SINKPROOF_COMPARISON_H

#include "audit/studies/mechanism/mechanism.h"
#include "audit/studies/mechanism/published.h"

#include <jansson.h>

// One way to read the tables. The first, all false, is the one that the captions and A.5 word.
typedef struct sinkproof_table_reading {
    bool with_sign; // gamma, else |gamma|
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

// A measured number beside a printed one. NAN: not measured.
typedef struct sinkproof_compared {
    double measured, off; // off: measured - printed
    bool rounds;          // it is, to the printed one's last digit, that; or it is above the bound
} sinkproof_compared;

typedef struct sinkproof_table_reading_count {
    size_t rows, numbers; // rows of which all four numbers round to the printed ones; of 12, of 48
} sinkproof_table_reading_count;

enum { SINKPROOF_EPE_READINGS = 2 }; // raw, normed
typedef struct sinkproof_epe_compared {
    sinkproof_compared value_k[SINKPROOF_PUBLISHED_VALUES];
    bool massive_same;              // the massive coordinates are the three
    size_t n_massive, massive_n[8]; // the first of them
} sinkproof_epe_compared;

typedef struct sinkproof_comparison {
    size_t sentence;     // SINKPROOF_SENTENCES: another input, for which nothing is printed
    const char *weights; // whether these are the released ones
    sinkproof_table_reading_count count_r[SINKPROOF_READINGS];
    size_t best; // the reading with the most rows, then numbers; the first of equal ones
    sinkproof_compared row_lk[SINKPROOF_PUBLISHED_ROWS][SINKPROOF_PUBLISHED_COLUMNS]; // the best's
    double at_378_l[SINKPROOF_PUBLISHED_ROWS]; // gamma[378] as the best reads it
    sinkproof_epe_compared epe_e[SINKPROOF_EPE_READINGS];
} sinkproof_comparison;

// raw, normed: two measurements of one input without interventions, of a model of the released
// shape.
void sinkproof_compare_published(const sinkproof_model *model, size_t sentence,
                                 const sinkproof_mechanism *raw, const sinkproof_mechanism *normed,
                                 sinkproof_comparison *out);

void sinkproof_comparison_print(const sinkproof_comparison *comparison, FILE *out);
json_t *sinkproof_comparison_json(const sinkproof_comparison *comparison);
void sinkproof_comparison_html(const sinkproof_comparison *comparison, FILE *page);

#endif
