// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The paper's figures for one measured input, each an SVG with a title, a sentence on its content,
// and the statement that defines it. The numbers are those of the JSON; layers, heads and positions
// count from 1, as in the paper.
#ifndef SINKPROOF_MECHANISM_FIGURES_H
#define SINKPROOF_MECHANISM_FIGURES_H

#include "audit/studies/mechanism/panel.h"

typedef struct mechanism_view {
    const sinkproof_mechanism *mechanism;
    const attended_map *attention; // source of the maps
    const paper_panels *panels;    // NULL: only the run
    size_t sentence;               // the paper's sentence; SINKPROOF_SENTENCES: none
    int head;                      // for the maps: from 0, or SINKPROOF_ALL_HEADS
} mechanism_view;

typedef struct mechanism_figure {
    const char *name;  // of the file: "figure-1"
    size_t number;     // the paper's number; 0: not in the paper
    const char *id;    // the statement that defines the numbers
    const char *title; // "Delta of each position"
    size_t panel;      // for maps: which of the seven
    bool panels;       // needs view.panels; for the map of a single run: needs its absence
    // Returns false and draws nothing if its data are unknown.
    bool (*draw)(FILE *out, const mechanism_view *view, const struct mechanism_figure *figure);
    void (*say)(FILE *out, const mechanism_view *view, const struct mechanism_figure *figure);
} mechanism_figure;

// The figures that this view has, in order; NULL after the last.
const mechanism_figure *mechanism_figure_at(const mechanism_view *view, size_t i);

// Prints a title such as "Figure 16 (as figure 1): Delta of each position".
void mechanism_figure_title(FILE *out, const mechanism_view *view, const mechanism_figure *figure);

#endif
