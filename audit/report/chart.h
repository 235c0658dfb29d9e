// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pictures of a page, as inline SVG: lines over a logarithmic axis, a histogram of errors in ulp, a
// heat map of attention weights with the sink in a column of its own, a grid of numbers by rows and
// columns, curves over a linear axis, bars. NaN has a colour of its own.
#ifndef SINKPROOF_CHART_H
#define SINKPROOF_CHART_H

#include "audit/judge/judge.h"

#include <stdio.h>

enum { CHART_LINES = 3, CHART_DOTS = 16 };

// One place on the horizontal axis with a value for each line; values that are not positive are
// left out.
typedef struct sinkproof_chart_place {
    char name[40]; // "03.A13"
    double at;     // layer 3 is 3, the middle of the layer 3.5
    double value[CHART_LINES];
} sinkproof_chart_place;

// Draws lines over the places, with a logarithmic vertical axis; `names` are those of the lines.
// Returns false and draws nothing when fewer than two places have a value.
bool sinkproof_chart_lines(FILE *page, const char *const names[CHART_LINES], size_t n,
                           const sinkproof_chart_place *places);

// Draws the first value of each place as a labelled dot, at most CHART_DOTS, both axes
// logarithmic; `what` names the horizontal axis. Returns false when fewer than two places have a
// value.
bool sinkproof_chart_scatter(FILE *page, const char *what, size_t n,
                             const sinkproof_chart_place *places);

// Draws bars one octave wide, each with its share of all elements; 0 has a bar of its own.
void chart_histogram(FILE *page, const char *name, const sinkproof_histogram *histogram);

// weight(query, key) is in 0 .. 1; columns are keys from `first` on, and the sink's share is to
// their left unless `sink` is NULL.
typedef struct sinkproof_chart_heat {
    size_t queries, keys, first;
    double (*weight)(const void *context, size_t query, size_t key);
    double (*sink)(const void *context, size_t query);
    const void *context;
} sinkproof_chart_heat;

void chart_heat_map(FILE *page, const char *name, const sinkproof_chart_heat *map);

// chart_words.c: the same with a word at every row and column. Private to audit/report/: the cells
// alone, one unit wide each, and the column of the first key.
void chart_draw_heat(FILE *page, const sinkproof_chart_heat *map);
size_t chart_key_column(const sinkproof_chart_heat *map);
typedef struct sinkproof_chart_worded {
    const sinkproof_chart_heat *map; // as many keys as queries
    char *const *word_n;             // NULL: positions
    size_t cell;                     // tokens of a row or column
    const char *label;               // describes the picture
} sinkproof_chart_worded;
void sinkproof_chart_words_svg(FILE *page, const sinkproof_chart_worded *worded);

// Draws several heat maps in one picture, row by row, each below its name. label: describes the
// picture.
typedef struct sinkproof_chart_named {
    char text[48];
} sinkproof_chart_named;
typedef struct sinkproof_chart_maps {
    size_t n, columns;
    const sinkproof_chart_heat *map_n;
    const sinkproof_chart_named *name_n;
    const char *label;
} sinkproof_chart_maps;
void sinkproof_chart_maps_svg(FILE *page, const sinkproof_chart_maps *maps);

// A grid of numbers from 0 to `most`, drawn in a deeper colour the larger they are; each number is
// the title of its cell.
typedef struct sinkproof_chart_grid {
    size_t rows, columns;
    double most;
    double (*value)(const void *context, size_t row, size_t column);
    const void *context;
    const char *down, *across, *what; // "layer", "head"; the meaning of the numbers
} sinkproof_chart_grid;
void sinkproof_chart_grid_svg(FILE *page, const sinkproof_chart_grid *grid);

// Curves over the places 0 to places - 1, which are `from` to `to` on the axis, with values between
// low and high. NaN interrupts a curve. A curve's title is its name.
typedef struct sinkproof_chart_curve {
    char name[96];
    const char *class; // CSS class: one, two, three
    double opacity;
} sinkproof_chart_curve;
typedef struct sinkproof_chart_curves {
    size_t n, places;
    double from, to, low, high;
    double (*value)(const void *context, size_t curve, size_t place);
    const void *context;
    const sinkproof_chart_curve *curve_n;
    const char *across;
    // names below the picture, for at most CHART_LINES curves, and a titled mark at each
    // place
    bool legend;
} sinkproof_chart_curves;
void sinkproof_chart_curves_svg(FILE *page, const sinkproof_chart_curves *curves);

// The smallest number not below x > 0 that is 1, 2 or 5 times a power of ten.
double sinkproof_chart_rounded_up(double x);

// `dots` numbers at each of `places` along the axis; those that are `marked` are larger, in front
// and in another colour. The vertical axis covers them all. A dot's title is the text that `name`
// writes, and its number. label: describes the picture.
typedef struct sinkproof_chart_dots {
    size_t places, dots, first; // first: the axis's number for place 0
    double (*value)(const void *context, size_t place, size_t dot);
    bool (*marked)(const void *context, size_t place, size_t dot);
    void (*name)(FILE *page, const void *context, size_t place, size_t dot);
    const void *context;
    double line; // a horizontal line at this value, or NAN
    const char *across, *label;
} sinkproof_chart_dots;
// Returns false and draws nothing if every number is NaN.
bool sinkproof_chart_dots_svg(FILE *page, const sinkproof_chart_dots *dots);

// Bars from 0 to 1, each with a name below and a title; the last one has the second colour.
typedef struct sinkproof_chart_bar {
    char name[24], title[96];
    double share;
} sinkproof_chart_bar;
void sinkproof_chart_bars_svg(FILE *page, size_t n, const sinkproof_chart_bar *bar_n);

#endif
