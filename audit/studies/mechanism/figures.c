// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws numbers by position, layer and coordinate as dots, and attention of panels and layers as
// maps.
#include "audit/studies/mechanism/figures.h"

#include "audit/report/chart.h"
#include "audit/report/page.h"
#include "audit/studies/mechanism/published.h"
#include "base/words.h"

#include <math.h>

typedef mechanism_view view;
typedef mechanism_figure figure;

// The layer, from 0, of figures 1 to 3: the paper's tenth, or the last where there are fewer.
static size_t figure_layer(const view *v) {
    size_t n = v->mechanism->config->n_layers;
    return n < SINKPROOF_PUBLISHED_LAYER ? n - 1 : SINKPROOF_PUBLISHED_LAYER - 1;
}

// ---- numbers by position -----------------------------------------------------------------------

typedef const double *(*numbers)(const sinkproof_mechanism *m, size_t l); // [n]
static const double *layer_deltas(const sinkproof_mechanism *m, size_t l) {
    return m->layers[l].delta_j;
}
static const double *layer_aligns(const sinkproof_mechanism *m, size_t l) {
    return m->layers[l].align_j;
}
static const double *epe_checks(const sinkproof_mechanism *m, size_t l) {
    (void)l;
    return m->epe_check_i;
}

typedef struct series {
    const sinkproof_mechanism *m;
    numbers of;
    size_t l; // for one layer
} series;

static double by_position(const void *context, size_t place, size_t dot) {
    const series *s = context;
    (void)dot;
    return s->of(s->m, s->l)[place];
}
static bool is_first_place(const void *context, size_t place, size_t dot) {
    (void)context, (void)dot;
    return place == 0;
}
static void name_position(FILE *page, const void *context, size_t place, size_t dot) {
    (void)context, (void)dot;
    fprintf(page, "position %zu", place + 1);
}

static bool draw_positions(FILE *out, const view *v, numbers of, const char *label) {
    series s = {v->mechanism, of, figure_layer(v)};
    sinkproof_chart_dots dots = {.places = v->mechanism->n,
                                 .dots = 1,
                                 .first = 1,
                                 .value = by_position,
                                 .marked = is_first_place,
                                 .name = name_position,
                                 .context = &s,
                                 .line = NAN,
                                 .across = "position",
                                 .label = label};
    return sinkproof_chart_dots_svg(out, &dots);
}

// The positions of each layer are drawn in one column.
static double value_in_layer(const void *context, size_t place, size_t dot) {
    const series *s = context;
    return s->of(s->m, place)[dot];
}
static bool is_first_dot(const void *context, size_t place, size_t dot) {
    (void)context, (void)place;
    return dot == 0;
}
static void name_layer(FILE *page, const void *context, size_t place, size_t dot) {
    (void)context;
    fprintf(page, "layer %zu, position %zu", place + 1, dot + 1);
}

static bool draw_layers(FILE *out, const view *v, numbers of, const char *label) {
    series s = {v->mechanism, of, 0};
    sinkproof_chart_dots dots = {.places = v->mechanism->config->n_layers,
                                 .dots = v->mechanism->n,
                                 .first = 1,
                                 .value = value_in_layer,
                                 .marked = is_first_dot,
                                 .name = name_layer,
                                 .context = &s,
                                 .line = NAN,
                                 .across = "layer",
                                 .label = label};
    return sinkproof_chart_dots_svg(out, &dots);
}

// Prints a range such as "-140.2 to -120, -131 on the mean"; one NaN makes all of it NaN.
static void print_range(FILE *out, size_t n, const double *x_j) {
    double least = x_j[0], most = x_j[0], sum = 0;
    for (size_t j = 0; j < n; j++) {
        least = x_j[j] < least ? x_j[j] : least, most = x_j[j] > most ? x_j[j] : most;
        sum += x_j[j];
    }
    if (!isfinite(sum))
        sinkproof_page_say(out, "not all known");
    else if (n == 1)
        sinkproof_page_say(out, "%.4g", sum);
    else
        sinkproof_page_say(out, "%.4g to %.4g, %.4g on the mean", least, most, sum / (double)n);
}

static void say_first_and_others(FILE *out, size_t n, const double *x_j) {
    sinkproof_page_say(out, "Position 1 (red): ");
    print_range(out, 1, x_j);
    if (n == 1) {
        fputs("; there is no other.", out);
        return;
    }
    sinkproof_page_say(out, "; %zu other%s: ", n - 1, n == 2 ? "" : "s");
    print_range(out, n - 1, x_j + 1);
    fputs(".", out);
}

// ---- figures 1, 2, 4 ---------------------------------------------------------------------------

static bool draw_delta(FILE *out, const view *v, const figure *f) {
    return draw_positions(out, v, layer_deltas, f->title);
}
static void say_delta(FILE *out, const view *v, const figure *f) {
    size_t l = figure_layer(v);
    (void)f;
    sinkproof_page_say(out,
                       "gamma x_j: what layer %zu's query bias gives to every score of position j "
                       "through that position's state, whatever the query; before any scale, "
                       "summed over the heads. ",
                       l + 1);
    say_first_and_others(out, v->mechanism->n, layer_deltas(v->mechanism, l));
}

static bool draw_align(FILE *out, const view *v, const figure *f) {
    return draw_positions(out, v, layer_aligns, f->title);
}
static void say_align(FILE *out, const view *v, const figure *f) {
    size_t l = figure_layer(v);
    (void)f;
    sinkproof_page_say(out,
                       "The cosine of layer %zu's query bias b_Q and EPE_j W_k, what that layer's "
                       "key matrix makes of position j's effective encoding. ",
                       l + 1);
    say_first_and_others(out, v->mechanism->n, layer_aligns(v->mechanism, l));
}

static bool draw_check(FILE *out, const view *v, const figure *f) {
    return draw_positions(out, v, epe_checks, f->title);
}
static void say_check(FILE *out, const view *v, const figure *f) {
    (void)f;
    sinkproof_page_say(out, "The cosine of what the first perceptron makes of a position alone and "
                            "of what the position changes in what it makes of the token: ");
    print_range(out, v->mechanism->n, v->mechanism->epe_check_i);
    fputs(". The first position is red.", out);
}

// ---- figures 6, 7 ------------------------------------------------------------------------------

// The number of layers in which position 1 is above all others.
static size_t count_layers_above(const sinkproof_mechanism *m, numbers of) {
    size_t above = 0;
    for (size_t l = 0; l < m->config->n_layers; l++) {
        const double *x_j = of(m, l);
        bool is = m->n > 1;
        for (size_t j = 1; j < m->n; j++) is = is && x_j[0] > x_j[j];
        above += is;
    }
    return above;
}

static void say_layers(FILE *out, const view *v, numbers of) {
    const sinkproof_mechanism *m = v->mechanism;
    if (m->n == 1)
        sinkproof_page_say(out, "There is one position in each of the %s.",
                           sinkproof_counted(m->config->n_layers, "layer").text);
    else
        sinkproof_page_say(out, "In %zu of %s position 1 (red) is above all other positions.",
                           count_layers_above(m, of),
                           sinkproof_counted(m->config->n_layers, "layer").text);
}

static bool draw_all_deltas(FILE *out, const view *v, const figure *f) {
    return draw_layers(out, v, layer_deltas, f->title);
}
static void say_all_deltas(FILE *out, const view *v, const figure *f) {
    (void)f;
    say_layers(out, v, layer_deltas);
}
static bool draw_all_aligns(FILE *out, const view *v, const figure *f) {
    return draw_layers(out, v, layer_aligns, f->title);
}
static void say_all_aligns(FILE *out, const view *v, const figure *f) {
    (void)f;
    say_layers(out, v, layer_aligns);
}

// ---- figure 5 ----------------------------------------------------------------------------------

static double size_of_coordinate(const void *context, size_t place, size_t dot) {
    const sinkproof_mechanism *m = context;
    (void)dot;
    return fabs(m->epe_ic[place]);
}
static bool is_massive(const void *context, size_t place, size_t dot) {
    const sinkproof_mechanism *m = context;
    (void)dot;
    for (size_t k = 0; k < m->rule.n; k++)
        if (m->massive_at[k] == place) return true;
    return false;
}
static void name_coordinate(FILE *page, const void *context, size_t place, size_t dot) {
    (void)context, (void)dot;
    fprintf(page, "coordinate %zu", place);
}

static bool draw_massive(FILE *out, const view *v, const figure *f) {
    const sinkproof_mechanism *m = v->mechanism;
    sinkproof_chart_dots dots = {.places = m->config->hidden,
                                 .dots = 1,
                                 .value = size_of_coordinate,
                                 .marked = is_massive,
                                 .name = name_coordinate,
                                 .context = m,
                                 .line = m->rule.mean + 3 * m->rule.deviation,
                                 .across = "coordinate",
                                 .label = f->title};
    return sinkproof_chart_dots_svg(out, &dots);
}

static void say_massive(FILE *out, const view *v, const figure *f) {
    enum { TOLD = 8 };
    const sinkproof_mechanism *m = v->mechanism;
    (void)f;
    sinkproof_page_say(out,
                       "%zu of %s (red) %s above the mean and three standard "
                       "deviations, the green line at %.4g",
                       m->rule.n, sinkproof_counted(m->config->hidden, "coordinate").text,
                       sinkproof_is_or_are(m->rule.n), m->rule.mean + 3 * m->rule.deviation);
    for (size_t k = 0; k < m->rule.n && k < TOLD; k++)
        sinkproof_page_say(out, "%s %zu by %.4g deviations from the mean", k == 0 ? ":" : ",",
                           m->massive_at[k],
                           (fabs(m->epe_ic[m->massive_at[k]]) - m->rule.mean) / m->rule.deviation);
    fputs(m->rule.n > TOLD ? " and others." : ".", out);
}

// ---- maps --------------------------------------------------------------------------------------

// One map of a picture: a run, a layer, and a head or all heads.
typedef struct one_map {
    const attended_map *attention;
    size_t layer;
    int head;
} one_map;

static double map_cell(const void *context, size_t row, size_t column) {
    const one_map *map = context;
    return attended_map_cell(map->attention, map->layer, map->head, row, column);
}

static sinkproof_chart_heat map_heat(const one_map *map) {
    size_t side = sinkproof_sinks_maps_side(map->attention->maps);
    return (sinkproof_chart_heat){
        .queries = side, .keys = side, .weight = map_cell, .context = map};
}

static void say_maps(FILE *out, const view *v) {
    size_t cell = sinkproof_sinks_maps_cell(v->attention->maps);
    if (v->head == SINKPROOF_ALL_HEADS)
        sinkproof_page_say(out, "The mean over %s",
                           sinkproof_counted(v->attention->n_heads, "head").text);
    else
        sinkproof_page_say(out, "Head %d of %zu", v->head + 1, v->attention->n_heads);
    sinkproof_page_say(out, "; a row for each query, a column for each key. A shade is a power of "
                            "two of the weight, and what is less than 2^-11 is not drawn.");
    if (cell > 1)
        sinkproof_page_say(out, " A cell is the mean over %s and %s.",
                           sinkproof_counted(cell, "query").text,
                           sinkproof_counted(cell, "key").text);
}

// Figure 3: a map for each of the seven runs that was made.
static bool draw_panels(FILE *out, const view *v, const figure *f) {
    one_map map_p[PAPER_PANELS];
    sinkproof_chart_heat heat_p[PAPER_PANELS];
    sinkproof_chart_named name_p[PAPER_PANELS];
    size_t n = 0;
    for (size_t p = 0; p < PAPER_PANELS; p++) {
        const paper_panel *panel = &v->panels->panel_p[p];
        if (panel->missing != NULL) continue;
        map_p[n] = (one_map){&panel->attention, figure_layer(v), v->head};
        heat_p[n] = map_heat(&map_p[n]);
        snprintf(name_p[n].text, sizeof name_p[n].text, "(%c) %s", (char)('a' + p), panel->name);
        n++;
    }
    sinkproof_chart_maps_svg(out, &(sinkproof_chart_maps){n, 4, heat_p, name_p, f->title});
    return true;
}

static void say_panels(FILE *out, const view *v, const figure *f) {
    size_t l = figure_layer(v);
    (void)f;
    sinkproof_page_say(out, "Layer %zu. Weight of position 1, the mean over the queries:", l + 1);
    for (size_t p = 0; p < PAPER_PANELS; p++) {
        const paper_panel *panel = &v->panels->panel_p[p];
        sinkproof_page_say(out, "%s (%c) %s: ", p == 0 ? "" : ";", (char)('a' + p), panel->what);
        if (panel->missing != NULL)
            sinkproof_page_say(out, "not run, since %s", panel->missing);
        else
            sinkproof_page_say(out, "%.4g", attended_mean_alpha(&panel->attention, l, v->head, 0));
    }
    fputs(". ", out);
    say_maps(out, v);
}

// Draws a map for each layer of one run.
static bool draw_run(FILE *out, const attended_map *a, int head, const char *label) {
    one_map map_l[SINKPROOF_MAX_LAYERS];
    sinkproof_chart_heat heat_l[SINKPROOF_MAX_LAYERS];
    sinkproof_chart_named name_l[SINKPROOF_MAX_LAYERS];
    for (size_t l = 0; l < a->n_layers; l++) {
        map_l[l] = (one_map){a, l, head};
        heat_l[l] = map_heat(&map_l[l]);
        snprintf(name_l[l].text, sizeof name_l[l].text, "layer %zu", l + 1);
    }
    sinkproof_chart_maps_svg(out, &(sinkproof_chart_maps){a->n_layers, 4, heat_l, name_l, label});
    return true;
}

static const attended_map *figure_attention(const view *v, const figure *f) {
    return v->panels != NULL ? &v->panels->panel_p[f->panel].attention : v->attention;
}

static bool draw_maps(FILE *out, const view *v, const figure *f) {
    if (v->panels != NULL && v->panels->panel_p[f->panel].missing != NULL) return false;
    return draw_run(out, figure_attention(v, f), v->head, f->title);
}

static void say_run(FILE *out, const view *v, const figure *f) {
    const attended_map *a = figure_attention(v, f);
    double sum = 0;
    for (size_t l = 0; l < a->n_layers; l++) sum += attended_mean_alpha(a, l, v->head, 0);
    if (v->panels == NULL && sinkproof_interventions_any(&v->mechanism->did))
        sinkproof_page_say(out, "With %s. ",
                           sinkproof_interventions_describe(&v->mechanism->did).text);
    sinkproof_page_say(out, "Weight of position 1, the mean over the queries and %s: %.4g. ",
                       sinkproof_counted(a->n_layers, "layer").text, sum / (double)a->n_layers);
    say_maps(out, v);
}

// ---- the list ----------------------------------------------------------------------------------

static const figure figures[] = {
    {"figure-1", 1, "gpt2.delta", "Delta of each position", 0, false, draw_delta, say_delta},
    {"figure-2", 2, "gpt2.align", "Cosine of the query bias and a position's key", 0, false,
     draw_align, say_align},
    {"figure-3", 3, "sink.alpha", "Attention under each intervention", 0, true, draw_panels,
     say_panels},
    {"figure-4", 4, "gpt2.epe-check", "Effective positions against what positions change", 0, false,
     draw_check, say_check},
    {"figure-5", 5, "gpt2.massive", "Coordinates of EPE_1", 0, false, draw_massive, say_massive},
    {"figure-6", 6, "gpt2.delta", "Delta of each position, all layers", 0, false, draw_all_deltas,
     say_all_deltas},
    {"figure-7", 7, "gpt2.align", "Cosines of query biases and positions' keys, all layers", 0,
     false, draw_all_aligns, say_all_aligns},
    {"figure-8", 8, "sink.alpha", "Maps of all layers, no intervention", 0, true, draw_maps,
     say_run},
    {"figure-9", 9, "sink.alpha", "Maps of all layers, no query bias", 1, true, draw_maps, say_run},
    {"figure-10", 10, "sink.alpha", "Maps of all layers, position 1 has EPE_2", 2, true, draw_maps,
     say_run},
    {"figure-11", 11, "sink.alpha", "Maps of all layers, positions 1 and 2 exchange their EPE", 3,
     true, draw_maps, say_run},
    {"figure-12", 12, "sink.alpha", "Maps of all layers, no embedding of the first token", 4, true,
     draw_maps, say_run},
    {"figure-13", 13, "sink.alpha", "Maps of all layers, massive rows of W_k = 0", 5, true,
     draw_maps, say_run},
    {"figure-14", 14, "sink.alpha", "Maps of all layers, as many other rows of W_k = 0", 6, true,
     draw_maps, say_run},
};
static const figure alone = {"maps", 0,     "sink.alpha", "Maps of all layers of this run",
                             0,      false, draw_maps,    say_run};

const figure *mechanism_figure_at(const view *v, size_t i) {
    size_t at = 0;
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        if ((v->panels != NULL || !figures[k].panels) && at++ == i) return &figures[k];
    return v->panels == NULL && at == i ? &alone : NULL;
}

void mechanism_figure_title(FILE *out, const view *v, const figure *f) {
    size_t number = published_figure(v->sentence, f->number);
    if (number > 0 && number != f->number)
        fprintf(out, "Figure %zu, as figure %zu: ", number, f->number);
    else if (number > 0)
        fprintf(out, "Figure %zu: ", number);
    else if (f->number > 0)
        fprintf(out, "As figure %zu: ", f->number);
    sinkproof_page_text(out, f->title);
}
