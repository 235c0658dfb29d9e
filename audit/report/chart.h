// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pictures of a page, as SVG inside of it: lines over a logarithmic axis, a histogram of errors in
// ulp, a heat map of attention weights with the sink in a column of its own; numbers of rows and
// columns as a grid, curves over a linear axis, bars. What is not a number is drawn as unknown, by
// no colour that a number has.
#ifndef SINKPROOF_CHART_H
#define SINKPROOF_CHART_H

#include "audit/judge/judge.h"

#include <stdio.h>

enum { SINKPROOF_CHART_LINES = 3, SINKPROOF_CHART_DOTS = 16 };

// One place on the horizontal axis with a value on each line; what is not positive is left out.
typedef struct sinkproof_chart_place {
    char name[40]; // "03.A13"
    double at;     // layer 3 is 3, its second half 3.5
    double value[SINKPROOF_CHART_LINES];
} sinkproof_chart_place;

// Lines over the places, the vertical axis logarithmic; names: of the lines. False when no two
// places have a value: nothing is drawn.
bool sinkproof_chart_lines(FILE *page, const char *const names[SINKPROOF_CHART_LINES], size_t n,
                           const sinkproof_chart_place *places);

// The first value of each place as a dot with its name, both axes logarithmic; `what` names the
// horizontal one. False when fewer than two places have a value; no more
// than SINKPROOF_CHART_DOTS are drawn.
bool sinkproof_chart_scatter(FILE *page, const char *what, size_t n,
                             const sinkproof_chart_place *places);

// Bars an octave wide, the share of all elements each; 0 in a bar of its own.
void sinkproof_chart_histogram(FILE *page, const char *name, const sinkproof_histogram *histogram);

// weight(query, key) in 0 .. 1, keys columns from `first` on; the sink's share to the left of them,
// unless `sink` is NULL.
typedef struct sinkproof_chart_heat {
    size_t queries, keys, first;
    double (*weight)(const void *context, size_t query, size_t key);
    double (*sink)(const void *context, size_t query);
    const void *context;
} sinkproof_chart_heat;

void sinkproof_chart_heat_map(FILE *page, const char *name, const sinkproof_chart_heat *map);
// The same without figure and caption, `pixels` to a cell.
void sinkproof_chart_heat_svg(FILE *page, const sinkproof_chart_heat *map, size_t pixels);

// Several of them in one picture, row by row, each beneath its name. label: what the picture is.
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

// Numbers from 0 on, the more the more colour, up to `most`; each is the title of its cell.
typedef struct sinkproof_chart_grid {
    size_t rows, columns;
    double most;
    double (*value)(const void *context, size_t row, size_t column);
    const void *context;
    const char *down, *across, *what; // "layer", "head"; what the numbers are
} sinkproof_chart_grid;
void sinkproof_chart_grid_svg(FILE *page, const sinkproof_chart_grid *grid);

// Curves from place 0 to places - 1 at `from` to `to`, values between low and high. A value that is
// no number interrupts its curve. A curve's title is its name.
typedef struct sinkproof_chart_curve {
    char name[96];
    const char *class; // one, two, three
    double opacity;
} sinkproof_chart_curve;
typedef struct sinkproof_chart_curves {
    size_t n, places;
    double from, to, low, high;
    double (*value)(const void *context, size_t curve, size_t place);
    const void *context;
    const sinkproof_chart_curve *curve_n;
    const char *across;
    bool legend; // the names beneath, of at most SINKPROOF_CHART_LINES curves, and a mark with its
                 // number as a title at each place
} sinkproof_chart_curves;
void sinkproof_chart_curves_svg(FILE *page, const sinkproof_chart_curves *curves);

// 1, 2 or 5 times a power of ten, the least that is not below x > 0.
double sinkproof_chart_rounded_up(double x);

// A dot for each number, `dots` of them at each of `places` along the axis; those that are `marked`
// in another colour, larger and in front. The vertical axis holds all of them. A dot's title is
// what `name` writes, and its number. label: what the picture is.
typedef struct sinkproof_chart_dots {
    size_t places, dots, first; // first: the number of place 0 on the axis
    double (*value)(const void *context, size_t place, size_t dot);
    bool (*marked)(const void *context, size_t place, size_t dot);
    void (*name)(FILE *page, const void *context, size_t place, size_t dot);
    const void *context;
    double line; // a horizontal line at this value, or NAN
    const char *across, *label;
} sinkproof_chart_dots;
// False: no number is known, and nothing was drawn.
bool sinkproof_chart_dots_svg(FILE *page, const sinkproof_chart_dots *dots);

// Bars from 0 to 1, each with its name beneath and its title; of the last one the other colour.
typedef struct sinkproof_chart_bar {
    char name[24], title[96];
    double share;
} sinkproof_chart_bar;
void sinkproof_chart_bars_svg(FILE *page, size_t n, const sinkproof_chart_bar *bar_n);

#endif
