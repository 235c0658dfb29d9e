// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The additions of `sinkproof gpt2` to its measurement: the paper's sentences as inputs, the panels
// of its figure 3, its published values, and figures.
#ifndef SINKPROOF_GPT2_PAPER_H
#define SINKPROOF_GPT2_PAPER_H

#include "audit/studies/mechanism/mechanism_page.h"

#include <argp.h>

typedef struct gpt2_shown {
    const char *sentence; // "0" to "5", or "all"; NULL: the tokens come from elsewhere
    bool list;            // only list the sentences
    bool published, panel;
    size_t head; // of the maps and panels, from 1; 0: the mean over the heads
    const char *html, *svg;
} gpt2_shown;

// --sentence, --sentences, --published, --panel, --head, --html, --svg. Its input is a
// gpt2_shown. The parser that adds tokens or interventions refuses combinations with
// these.
extern const struct argp gpt2_shown_parser;

void gpt2_list_sentences(bool print, json_t *results);
// The range [from, to) of the requested sentences.
void gpt2_sentence_range(const gpt2_shown *shown, size_t *from, size_t *to);

// The measured inputs; all members but the first four start as zero.
typedef struct gpt2_study {
    const gpt2_shown *shown;
    sinkproof_mechanism_job job;            // its `about`
    const sinkproof_interventions *changes; // requested ones; if none, each input is run once
    void (*progress)(const char *what, double share); // or NULL
    const char *running;                              // the name of the current run
    sinkproof_mechanism_input input_i[SINKPROOF_SENTENCES];
} gpt2_study;

// Call it before the first input: checks that the model has what the options ask for.
bool gpt2_study_begin(gpt2_study *study, sinkproof_error *error);
// Measures one more input. `text` is stored; sentence: SINKPROOF_SENTENCES if it is not one of the
// paper's.
bool gpt2_study_add(gpt2_study *study, const char *text, size_t sentence, size_t n,
                    const int32_t *tokens_n, sinkproof_error *error);
bool gpt2_study_draw(gpt2_study *study, sinkproof_error *error);
void gpt2_study_free(gpt2_study *study);

// Prints one input's measurement before and after, its panels and the comparison, as requested.
void gpt2_input_print(const gpt2_study *study, size_t input, FILE *out);
void gpt2_input_json(const gpt2_study *study, size_t input, json_t *results);

#endif
