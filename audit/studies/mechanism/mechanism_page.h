// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The graphical output of `sinkproof gpt2`: one HTML file, or a folder of SVG files. Neither has
// scripts or external references; both follow the reader's setting of light and dark.
#ifndef SINKPROOF_MECHANISM_PAGE_H
#define SINKPROOF_MECHANISM_PAGE_H

#include "audit/studies/mechanism/comparison.h"
#include "audit/studies/mechanism/figures.h"
#include "audit/studies/mechanism/mechanism_show.h"

typedef struct sinkproof_mechanism_input {
    const char *text;           // as the user gave it: "It was the best ...", "1,2,3"
    size_t sentence;            // SINKPROOF_SENTENCES: not one of the paper's
    sinkproof_mechanism before; // the unchanged model
    sinkproof_mechanism after;  // with the requested interventions; all zero if there are none
    // maps for the pages: those of `after`, if it exists, else of `before`
    attended_map attention;
    paper_panels *panels;         // or NULL
    table_comparison *comparison; // or NULL
} sinkproof_mechanism_input;

typedef struct sinkproof_mechanism_job {
    sinkproof_mechanism_about about; // without its input
    int head;                        // for the maps: from 0, or SINKPROOF_ALL_HEADS
    size_t n_inputs;
    const sinkproof_mechanism_input *inputs;
} sinkproof_mechanism_job;
sinkproof_mechanism_about sinkproof_mechanism_about_input(const sinkproof_mechanism_job *job,
                                                          size_t input);

bool sinkproof_mechanism_page(const char *path, const sinkproof_mechanism_job *job,
                              sinkproof_error *error);
// Writes DIRECTORY/NAME.svg for each figure; with several inputs NAME begins with the sentence's
// number, or else the input's. Creates the directory; no file gets its name before all are written.
bool sinkproof_mechanism_svg(const char *directory, const sinkproof_mechanism_job *job,
                             sinkproof_error *error);

#endif
