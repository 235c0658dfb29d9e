// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The seven panels of the paper's figure 3: the model run on one input unchanged, with each of the
// five interventions, and with the control; and the data of a run for maps and tables of attention.
#ifndef SINKPROOF_PANEL_H
#define SINKPROOF_PANEL_H

#include "audit/studies/mechanism/mechanism.h"
#include "audit/studies/sinks/maps.h"

#include <jansson.h>

enum { PAPER_PANELS = 7 };

// The attention of one run: small maps of every head (audit/studies/sinks/maps.h), and weights of
// keys.
typedef struct attended_map {
    sinkproof_sinks_maps *maps;
    size_t n, n_layers, n_heads;
    double *alpha_lhj; // [layers, heads, n] metric.sink of key j
} attended_map;
// The mechanism must have its maps.
bool sinkproof_attended_take(const sinkproof_mechanism *mechanism, attended_map *out,
                             sinkproof_error *error);
void sinkproof_attended_free(attended_map *attention);

enum { SINKPROOF_ALL_HEADS = -1 };
// alpha_j of a head, or its mean over the heads; NaN if one is NaN.
double attended_mean_alpha(const attended_map *attention, size_t layer, int head, size_t j);
// The value of a map's cell, for a head or the mean over the heads.
double attended_map_cell(const attended_map *attention, size_t layer, int head, size_t row,
                         size_t column);

typedef struct paper_panel {
    const char *name, *what; // as in intervention_panel
    const char *missing;     // the reason why it was not run, or NULL
    size_t n_rows, *row_at;  // the rows of W_k that are 0 in it
    attended_map attention;
} paper_panel;
typedef struct paper_panels {
    paper_panel panel_p[PAPER_PANELS];
} paper_panels;

// `baseline`: the unchanged model's measurement with these tokens. Each panel has its own
// interventions; options->changes is ignored. Free *out also after a failure.
bool sinkproof_paper_panels_run(const sinkproof_model *model, const sinkproof_policy *policy,
                                size_t n, const int32_t *tokens_n,
                                const sinkproof_mechanism_options *options,
                                const sinkproof_mechanism *baseline, paper_panels *out,
                                sinkproof_error *error);
void sinkproof_paper_panels_free(paper_panels *panels);

// The weights of keys 1 and 2 by layer, for one head or the mean over the heads; metric.sink: over
// the rows that see the key.
void sinkproof_paper_panels_print(const paper_panels *panels, int head, FILE *out);
void paper_panels_html(const paper_panels *panels, int head, FILE *page);
json_t *sinkproof_paper_panels_json(const paper_panels *panels);

#endif
