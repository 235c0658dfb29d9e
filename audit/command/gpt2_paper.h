// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof gpt2` has beside its measurement: the paper's sentences as inputs, the panels of
// its figure 3, what it prints beside what is measured, and figures.
#ifndef SINKPROOF_GPT2_PAPER_H
#define SINKPROOF_GPT2_PAPER_H

#include "audit/studies/mechanism/mechanism_page.h"

#include <argp.h>

typedef struct sinkproof_gpt2_shown {
    const char *sentence; // "0" to "5", or "all"; NULL: the tokens come otherwise
    bool list;            // the sentences, and nothing else
    bool published, panel;
    size_t head; // of the maps and panels, from 1; 0: the mean over the heads
    const char *html, *svg;
} sinkproof_gpt2_shown;

// --sentence, --sentences, --published, --panel, --head, --html, --svg. Its input is a
// sinkproof_gpt2_shown. Whoever adds tokens or interventions of its own says which exclude these.
extern const struct argp sinkproof_gpt2_shown_parser;

void sinkproof_gpt2_list(bool print, json_t *results);
// The first sentence that is asked for, and one more than the last.
void sinkproof_gpt2_sentences(const sinkproof_gpt2_shown *shown, size_t *from, size_t *to);

// The inputs, measured; all zero but for the first four.
typedef struct sinkproof_gpt2_study {
    const sinkproof_gpt2_shown *shown;
    sinkproof_mechanism_job job;            // `about` of it
    const sinkproof_interventions *changes; // asked for; none of them: one run of each input
    void (*progress)(const char *what, double share); // or NULL
    const char *running;                              // what the progress is of
    sinkproof_mechanism_input input_i[SINKPROOF_SENTENCES];
} sinkproof_gpt2_study;

// Before the first input: whether the model has what is asked for.
bool sinkproof_gpt2_study_begin(sinkproof_gpt2_study *study, sinkproof_error *error);
// Measures one more. `text` is kept; sentence: SINKPROOF_SENTENCES where it is none of the paper's.
bool sinkproof_gpt2_study_add(sinkproof_gpt2_study *study, const char *text, size_t sentence,
                              size_t n, const int32_t *tokens_n, sinkproof_error *error);
bool sinkproof_gpt2_study_draw(sinkproof_gpt2_study *study, sinkproof_error *error);
void sinkproof_gpt2_study_free(sinkproof_gpt2_study *study);

// One input's measurement, before and after, its panels and the comparison: what was asked for.
void sinkproof_gpt2_input_print(const sinkproof_gpt2_study *study, size_t input, FILE *out);
void sinkproof_gpt2_input_json(const sinkproof_gpt2_study *study, size_t input, json_t *results);

#endif
