// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Figures of the residual stream by token: the massive coordinate through the layers, and the norms
// of all tokens' states.
#include "audit/report/chart.h"
#include "audit/report/page.h"
#include "audit/studies/sinks/figures.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of all but one of n numbers; NAN: there is no other, or no memory.
static double median_of_others(size_t n, const double *x_i, size_t but) {
    double *sorted = malloc(n * sizeof *sorted);
    size_t kept = 0;
    if (sorted == NULL) return NAN;
    for (size_t i = 0; i < n; i++)
        if (i != but) sorted[kept++] = x_i[i];
    qsort(sorted, kept, sizeof *sorted, compare_numbers);
    double middle = kept == 0       ? NAN
                    : kept % 2 == 1 ? sorted[kept / 2]
                                    : (sorted[kept / 2 - 1] + sorted[kept / 2]) / 2;
    free(sorted);
    return middle;
}

bool sinks_draw_coordinate(FILE *out, const sink_census *c) {
    static const char *const names[] = {"the massive token", "median token", "median of all"};
    sinkproof_chart_place places[SINKPROOF_MAX_LAYERS];
    for (size_t l = 0; l < c->config->n_layers; l++) {
        const census_layer *layer = &c->layers[l];
        places[l] = (sinkproof_chart_place){.at = (double)l};
        snprintf(places[l].name, sizeof places[l].name, "%02zu.M12, token %zu, coordinate %zu", l,
                 layer->end.position, layer->end.coordinate);
        places[l].value[0] = layer->end.largest;
        places[l].value[1] = median_of_others(c->n, layer->spike_i, layer->end.position);
        places[l].value[2] = layer->end.median;
    }
    return sinkproof_chart_lines(out, names, c->config->n_layers, places);
}

// The coordinate that is the largest of most layers; how many.
static size_t commonest_coordinate(const sink_census *c, size_t *layers) {
    size_t best = 0;
    *layers = 0;
    for (size_t l = 0; l < c->config->n_layers; l++) {
        size_t same = 0, coordinate = c->layers[l].end.coordinate;
        for (size_t k = 0; k < c->config->n_layers; k++)
            same += isfinite(c->layers[k].end.largest) && c->layers[k].end.coordinate == coordinate;
        if (same > *layers) *layers = same, best = coordinate;
    }
    return best;
}

void sinks_say_coordinate(FILE *out, const sink_census *c) {
    size_t layers, coordinate = commonest_coordinate(c, &layers);
    sinkproof_page_say(out,
                       "The coordinate of each layer's largest activation: its size at that token, "
                       "the median of the other tokens in the same coordinate, and the median of "
                       "all activations; the axis is logarithmic. Coordinate %zu is the largest "
                       "after %zu of %s.",
                       coordinate, layers, sinkproof_counted(c->config->n_layers, "layer").text);
}

enum { PLACES = 128 }; // positions of a curve's points

static size_t norm_places(const sink_census *c) {
    return c->n < PLACES ? c->n : PLACES;
}

// Of the positions that belong to a place, the largest norm's power of ten.
static double norm_decade(const void *census, size_t curve, size_t place) {
    const sink_census *c = census;
    size_t places = norm_places(c);
    double norm = 0;
    for (size_t i = place * c->n / places; i < (place + 1) * c->n / places; i++)
        norm = fmax(norm, c->layers[curve].norm_i[i]);
    return norm > 0 ? log10(norm) : NAN;
}

bool sinks_draw_norms(FILE *out, const sink_census *c) {
    sinkproof_chart_curve curves[SINKPROOF_MAX_LAYERS];
    double low = INFINITY, high = -INFINITY;
    for (size_t l = 0; l < c->config->n_layers; l++) {
        const double *norm_i = c->layers[l].norm_i;
        curves[l] = (sinkproof_chart_curve){
            .class = "one", .opacity = 0.3 + 0.7 * (double)(l + 1) / (double)c->config->n_layers};
        int used = snprintf(curves[l].name, sizeof curves[l].name, "layer %zu: ", l);
        snprintf(curves[l].name + used, sizeof curves[l].name - (size_t)used,
                 isnan(norm_i[0]) ? "not known" : "%.4g at the first token, %.4g at the last",
                 norm_i[0], norm_i[c->n - 1]);
        for (size_t i = 0; i < norm_places(c); i++) {
            double decade = norm_decade(c, l, i);
            low = fmin(low, decade), high = fmax(high, decade);
        }
    }
    sinkproof_chart_curves chart = {.n = c->config->n_layers,
                                    .places = norm_places(c),
                                    .from = 1,
                                    .to = (double)c->n,
                                    .low = floor(low),
                                    .high = ceil(high) > floor(low) ? ceil(high) : floor(low) + 1,
                                    .value = norm_decade,
                                    .context = c,
                                    .curve_n = curves,
                                    .across = "token"};
    if (!(low <= high)) return false;
    sinkproof_chart_curves_svg(out, &chart);
    return true;
}

void sinks_say_norms(FILE *out, const sink_census *c) {
    sinkproof_page_say(out, "The norm of every token's state after each layer, against its "
                            "position: a curve for each layer, the deeper the fuller. The axis is "
                            "the norm's power of ten.");
    if (c->n > PLACES)
        sinkproof_page_say(out, " %s are drawn as the largest of %d places.",
                           sinkproof_counted(c->n, "position").text, PLACES);
}
