// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The paper's figures of one measured input, each one SVG with a title, a sentence that says what
// it shows, and the statement that defines it. Numbers are those of the JSON; layers, heads and
// positions count from 1, as in the paper.
#ifndef SINKPROOF_MECHANISM_FIGURES_H
#define SINKPROOF_MECHANISM_FIGURES_H

#include "audit/studies/mechanism/panel.h"

typedef struct sinkproof_mechanism_view {
    const sinkproof_mechanism *mechanism;
    const sinkproof_attended *attention;  // its maps
    const sinkproof_paper_panels *panels; // or NULL: the run alone
    size_t sentence;                      // which of the paper's; SINKPROOF_SENTENCES: none
    int head;                             // of the maps: from 0, or SINKPROOF_ALL_HEADS
} sinkproof_mechanism_view;

typedef struct sinkproof_mechanism_figure {
    const char *name;  // of its file: "figure-1"
    size_t number;     // the paper's; 0: it is none of them
    const char *id;    // the statement that defines what is drawn
    const char *title; // "Delta of each position"
    size_t panel;      // of maps: which of the seven
    bool panels;       // it needs view.panels; or, of the map of a run alone, that there are none
    // False: what it is made of is not known, and nothing was drawn.
    bool (*draw)(FILE *out, const sinkproof_mechanism_view *view,
                 const struct sinkproof_mechanism_figure *figure);
    void (*say)(FILE *out, const sinkproof_mechanism_view *view,
                const struct sinkproof_mechanism_figure *figure);
} sinkproof_mechanism_figure;

// Those that this view has, in order; NULL after the last.
const sinkproof_mechanism_figure *
sinkproof_mechanism_figure_at(const sinkproof_mechanism_view *view, size_t i);

// "Figure 16 (as figure 1): Delta of each position", as text.
void sinkproof_mechanism_figure_title(FILE *out, const sinkproof_mechanism_view *view,
                                      const sinkproof_mechanism_figure *figure);

#endif
