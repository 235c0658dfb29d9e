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

enum { SINKPROOF_PANELS = 7 };

// The attention of one run: small maps of every head (audit/studies/sinks/maps.h), and weights of
// keys.
typedef struct sinkproof_attended {
    sinkproof_sinks_maps *maps;
    size_t n, n_layers, n_heads;
    double *alpha_lhj; // [layers, heads, n] metric.sink of key j
} sinkproof_attended;
// The mechanism must have its maps.
bool sinkproof_attended_take(const sinkproof_mechanism *mechanism, sinkproof_attended *out,
                             sinkproof_error *error);
void sinkproof_attended_free(sinkproof_attended *attention);

enum { SINKPROOF_ALL_HEADS = -1 };
// alpha_j of a head, or its mean over the heads; NaN if one is NaN.
double sinkproof_attended_alpha(const sinkproof_attended *attention, size_t layer, int head,
                                size_t j);
// The value of a map's cell, for a head or the mean over the heads.
double sinkproof_attended_cell(const sinkproof_attended *attention, size_t layer, int head,
                               size_t row, size_t column);

typedef struct sinkproof_paper_panel {
    const char *name, *what; // as in sinkproof_intervention_panel
    const char *missing;     // the reason why it was not run, or NULL
    size_t n_rows, *row_at;  // the rows of W_k that are 0 in it
    sinkproof_attended attention;
} sinkproof_paper_panel;
typedef struct sinkproof_paper_panels {
    sinkproof_paper_panel panel_p[SINKPROOF_PANELS];
} sinkproof_paper_panels;

// `baseline`: the unchanged model's measurement with these tokens. Each panel has its own
// interventions; options->changes is ignored. Free *out also after a failure.
bool sinkproof_paper_panels_run(const sinkproof_model *model, const sinkproof_policy *policy,
                                size_t n, const int32_t *tokens_n,
                                const sinkproof_mechanism_options *options,
                                const sinkproof_mechanism *baseline, sinkproof_paper_panels *out,
                                sinkproof_error *error);
void sinkproof_paper_panels_free(sinkproof_paper_panels *panels);

// The weights of keys 1 and 2 by layer, for one head or the mean over the heads; metric.sink: over
// the rows that see the key.
void sinkproof_paper_panels_print(const sinkproof_paper_panels *panels, int head, FILE *out);
void sinkproof_paper_panels_html(const sinkproof_paper_panels *panels, int head, FILE *page);
json_t *sinkproof_paper_panels_json(const sinkproof_paper_panels *panels);

#endif
