// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The printed contents of the paper on GPT-2's sink (doc/32-no-universal-mechanism.md, `Published
// against measured`): its six sentences, its tables 1 and 2, the numbers in its text, and the
// places where it leaves open what was measured. Numbers are kept as printed; layers count from 1
// and coordinates from 0, as in the paper.
#ifndef SINKPROOF_PUBLISHED_H
#define SINKPROOF_PUBLISHED_H

#include "model/config.h"

enum {
    SINKPROOF_SENTENCES = 6,
    SINKPROOF_SENTENCE_TOKENS = 24,  // length of the longest
    SINKPROOF_PUBLISHED_ROWS = 12,   // rows of tables 1 and 2 together, by layer
    SINKPROOF_PUBLISHED_COLUMNS = 4, // mean, spread, |gamma[138]|, |gamma[447]|
    SINKPROOF_PUBLISHED_MASSIVE = 3, // 138, 378, 447
    SINKPROOF_PUBLISHED_LAYER = 10   // of its figures 1 and 2
};

// The six sentences: 0 of the main text, 1 to 5 of appendix C, as text and as GPT-2's token ids.
typedef struct sinkproof_sentence {
    const char *place, *text; // "section 3"
    size_t n;
    int32_t token_n[SINKPROOF_SENTENCE_TOKENS];
} sinkproof_sentence;
const sinkproof_sentence *sinkproof_sentence_at(size_t i); // NULL: i is too large

// The number of the paper's figure that corresponds, for this sentence, to figure 1, 2, 3 or 4 for
// the first sentence; 0: none.
size_t published_figure(size_t sentence, size_t figure);

// A printed number: its text, its value, and the unit of its last digit: 0.001 for "12.453".
typedef struct printed_figure {
    const char *text;
    double value, unit;
} printed_figure;
printed_figure printed_parse(const char *text);

// One row of table 1 (layers 7, 9, 11) or 2 (the others).
typedef struct published_row {
    size_t layer, table;
    const char *text_k[SINKPROOF_PUBLISHED_COLUMNS];
} published_row;
extern const published_row published_rows[SINKPROOF_PUBLISHED_ROWS];
extern const size_t published_massive[SINKPROOF_PUBLISHED_MASSIVE];

// A number in the paper's text or under a figure; those that need an input are for the first
// sentence.
typedef enum published_what {
    DELTA_FIRST,  // Delta_1 of layer 10
    DELTA_OTHERS, // Delta_j of the other positions
    ALIGN_FIRST,  // cos(b_Q, EPE_1 W_k) of layer 10
    ALIGN_OTHERS, // cos(b_Q, EPE_j W_k) of the other positions
    CHECK_LEAST,  // smallest cos(EPE_i, R_i - O_i)
    CHECK_MOST,
    // standard deviations of the smallest massive coordinate: a lower bound
    MASSIVE_LEAST,
    PUBLISHED_VALUES
} published_what;
typedef struct published_value {
    const char *name, *what, *place; // "delta-first", "Delta_1, layer 10", "figure 1"
    const char *said;                // "about 100"
    double value, unit;
    bool input, above; // needs the first sentence; is a lower bound
} published_value;
extern const published_value published_values[PUBLISHED_VALUES];

// Whether a model has the released one's shape; if not, the error names the difference.
bool sinkproof_published_shape(const sinkproof_config *config, sinkproof_error *error);

// A place where the paper contradicts itself or leaves something open, and the reading taken here;
// a sentence or two.
typedef struct published_note {
    const char *name, *text;
} published_note;
const published_note *published_note_at(size_t i); // NULL: i is too large

#endif
