// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The figures of a census, each an SVG with a sentence on its content and the statement of the book
// that defines it. The numbers are those of the JSON.
#ifndef SINKPROOF_SINKS_FIGURES_H
#define SINKPROOF_SINKS_FIGURES_H

#include "audit/studies/sinks/part.h"

typedef struct sinks_figure {
    const char *name;  // of the file: "sink-weight"
    const char *id;    // the statement that defines the numbers
    const char *title; // its heading
    // Returns false and draws nothing if the points for it are unknown.
    bool (*draw)(FILE *out, const sink_census *census);
    void (*say)(FILE *out, const sink_census *census); // the sentence, as text
    bool (*zero)(const sink_census *census); // every number is 0: a page does not draw it; or NULL
} sinks_figure;

const sinks_figure *sinks_figure_at(size_t i); // NULL: i is too large

// figures_stream.c
bool sinks_draw_coordinate(FILE *out, const sink_census *census);
void sinks_say_coordinate(FILE *out, const sink_census *census);
bool sinks_draw_norms(FILE *out, const sink_census *census);
void sinks_say_norms(FILE *out, const sink_census *census);

// A number for every layer and head; NAN: unknown. `most` has the full colour; NAN: the largest
// number.
typedef struct sinks_grid {
    const sinkproof_config *config;
    double (*value)(const void *context, size_t layer, size_t head);
    const void *context;
    double most;
    const char *what;
} sinks_grid;
// Returns false and draws nothing if no number is known.
bool sinks_grid_draw(FILE *out, const sinks_grid *grid);
// Prints a sentence: the smallest and the largest number, and their places.
void sinks_grid_describe(FILE *out, const sinks_grid *grid);

// Writes all figures of every input: the census's part of a page.
void census_html(const void *state, const sinkproof_sinks_job *job, FILE *page);
// Writes the figures of one input as files: sinkproof_sinks_part.draw.
bool census_draw(const void *state, const sinkproof_sinks_job *job, size_t input,
                 const char *number, sinkproof_pictures *pictures, sinkproof_error *error);

#endif
