// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws the figures of a census. Means over heads are those of the JSON; an unknown number is drawn
// as unknown or left out.
#include "audit/studies/sinks/figures.h"

#include "audit/report/chart.h"
#include "audit/report/page.h"
#include "base/words.h"

#include <math.h>

enum { KEYS = 10, PLACES = 128 }; // bars; positions of a curve's points

static const census_head *head_at(const sink_census *c, size_t l, size_t h) {
    return &c->layers[l].heads[h];
}

// ---- grids: layers down, heads across ----------------------------------------------------------

static double sink_at(const void *census, size_t l, size_t h) {
    return head_at(census, l, h)->sink.mean;
}
static double first_at(const void *census, size_t l, size_t h) {
    return head_at(census, l, h)->first;
}
static double intensity_at(const void *census, size_t l, size_t h) {
    return head_at(census, l, h)->intensity;
}
// The smallest and the largest known number with their places; false: none is known.
typedef struct extremes {
    double least, most;
    size_t least_at[2], most_at[2];
} extremes;

static bool grid_extremes(const sinks_grid *grid, extremes *e) {
    *e = (extremes){.least = INFINITY, .most = -INFINITY};
    for (size_t l = 0; l < grid->config->n_layers; l++)
        for (size_t h = 0; h < grid->config->n_heads; h++) {
            double x = grid->value(grid->context, l, h);
            if (x < e->least) e->least = x, e->least_at[0] = l, e->least_at[1] = h;
            if (x > e->most) e->most = x, e->most_at[0] = l, e->most_at[1] = h;
        }
    return e->least <= e->most;
}

bool sinks_grid_draw(FILE *out, const sinks_grid *of) {
    extremes e;
    if (!grid_extremes(of, &e)) return false;
    sinkproof_chart_grid grid = {.rows = of->config->n_layers,
                                 .columns = of->config->n_heads,
                                 .most = isfinite(of->most) ? of->most
                                         : e.most > 0       ? e.most
                                                            : 1,
                                 .value = of->value,
                                 .context = of->context,
                                 .down = "layer",
                                 .across = "head",
                                 .what = of->what};
    sinkproof_chart_grid_svg(out, &grid);
    return true;
}

void sinks_grid_describe(FILE *out, const sinks_grid *grid) {
    extremes e;
    if (!grid_extremes(grid, &e)) return;
    sinkproof_page_say(out, " From %.4g in head %zu.%zu (layer, head) to %.4g in %zu.%zu.", e.least,
                       e.least_at[0], e.least_at[1], e.most, e.most_at[0], e.most_at[1]);
}

static sinks_grid sink_grid(const sink_census *c) {
    return (sinks_grid){c->config, sink_at, c, 1, "the sink's mean weight"};
}
static bool draw_sink(FILE *out, const sink_census *c) {
    sinks_grid grid = sink_grid(c);
    return sinks_grid_draw(out, &grid);
}
static void say_sink(FILE *out, const sink_census *c) {
    sinkproof_page_say(out, "The weight that each head gives its sink, the mean over %s.",
                       sinkproof_counted(c->n, "query").text);
    sinks_grid grid = sink_grid(c);
    sinks_grid_describe(out, &grid);
}

static bool grid_is_zero(const sinks_grid *grid) {
    extremes e;
    return grid_extremes(grid, &e) && e.least == 0 && e.most == 0;
}
static bool sinks_are_zero(const sink_census *c) {
    sinks_grid grid = sink_grid(c);
    return grid_is_zero(&grid);
}

static sinks_grid first_grid(const sink_census *c) {
    return (sinks_grid){c->config, first_at, c, NAN,
                        "the mean weight, and the largest of all heads"};
}
static bool draw_first(FILE *out, const sink_census *c) {
    sinks_grid grid = first_grid(c);
    return sinks_grid_draw(out, &grid);
}
static void say_first(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "The weight that each head gives the first token, the mean over all %s; "
                       "where a window has left it behind it is 0. All keys alike would "
                       "give it %.4g.",
                       sinkproof_counted(c->n, "query").text, sinkproof_metric_uniform(c->n));
    sinks_grid grid = first_grid(c);
    sinks_grid_describe(out, &grid);
}

static sinks_grid intensity_grid(const sink_census *c) {
    return (sinks_grid){c->config, intensity_at, c, NAN,
                        "the mean norm, and the largest of all heads"};
}
static bool draw_intensity(FILE *out, const sink_census *c) {
    sinks_grid grid = intensity_grid(c);
    return sinks_grid_draw(out, &grid);
}
static bool intensities_are_zero(const sink_census *c) {
    sinks_grid grid = intensity_grid(c);
    return grid_is_zero(&grid);
}
static void say_intensity(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "What is left of each head's value bias: its norm behind the output matrix, "
                       "times one less the sink's weight, the mean over %s.",
                       sinkproof_counted(c->n, "query").text);
    sinks_grid grid = intensity_grid(c);
    sinks_grid_describe(out, &grid);
}

// ---- mass against position ---------------------------------------------------------------------

typedef struct by_place {
    const sink_census *census;
    size_t places;
} by_place;

// The mean over the heads at one position, summed in the same order as in the JSON.
static double mean_sink_mass(const sink_census *c, size_t l, size_t i) {
    double sum = 0;
    for (size_t h = 0; h < c->config->n_heads; h++) sum += c->layers[l].mass_hi[h * c->n + i];
    return sum / (double)c->config->n_heads;
}

// The mean over the positions that belong to a place.
static double mass_at(const void *context, size_t l, size_t place) {
    const by_place *by = context;
    size_t from = place * by->census->n / by->places, to = (place + 1) * by->census->n / by->places;
    double sum = 0;
    for (size_t i = from; i < to; i++) sum += mean_sink_mass(by->census, l, i);
    return sum / (double)(to - from);
}

// Layers with a window have one colour, the others another; deeper layers are drawn stronger.
static sinkproof_chart_curve layer_curve(const sink_census *c, size_t l) {
    sinkproof_chart_curve curve = {.class = c->layers[l].window > 0 ? "one" : "two"};
    curve.opacity = 0.3 + 0.7 * (double)(l + 1) / (double)c->config->n_layers;
    double first = mean_sink_mass(c, l, 0), last = mean_sink_mass(c, l, c->n - 1);
    char range[40] = "not known";
    if (isfinite(first) && isfinite(last))
        snprintf(range, sizeof range, "%.4g to %.4g", first, last);
    snprintf(curve.name, sizeof curve.name, "layer %zu%s: %s", l,
             c->layers[l].window > 0 ? ", window" : "", range);
    return curve;
}

static bool draw_mass(FILE *out, const sink_census *c) {
    sinkproof_chart_curve curves[SINKPROOF_MAX_LAYERS];
    size_t known = 0;
    for (size_t l = 0; l < c->config->n_layers; l++) {
        curves[l] = layer_curve(c, l);
        known += isfinite(mean_sink_mass(c, l, 0));
    }
    by_place by = {c, c->n < PLACES ? c->n : PLACES};
    sinkproof_chart_curves chart = {.n = c->config->n_layers,
                                    .places = by.places,
                                    .from = 1,
                                    .to = (double)c->n,
                                    .high = 1,
                                    .value = mass_at,
                                    .context = &by,
                                    .curve_n = curves,
                                    .across = "query"};
    if (known > 0) sinkproof_chart_curves_svg(out, &chart);
    return known > 0;
}

static void say_mass(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "What the sink leaves to the keys, against the query's position: a curve "
                       "for each layer, the mean over its heads; blue with a window, red without, "
                       "the deeper the fuller. ");
    if (c->n > PLACES)
        sinkproof_page_say(out, "%s are drawn as means over %d places.",
                           sinkproof_counted(c->n, "position").text, PLACES);
}

// ---- Sink_k ------------------------------------------------------------------------------------

static sinkproof_chart_bar threshold_bar(const sink_census *c, size_t k, const char *name) {
    size_t known = census_known_heads(c, k), passing = census_passing_heads(c, k);
    sinkproof_chart_bar bar = {.share = known > 0 ? (double)passing / (double)known : NAN};
    snprintf(bar.name, sizeof bar.name, "%s", name);
    snprintf(bar.title, sizeof bar.title, "Sink_%s: %zu of %.40s", name, passing,
             sinkproof_counted(known, "head").text);
    return bar;
}

static bool draw_bars(FILE *out, const sink_census *c) {
    sinkproof_chart_bar bars[KEYS + 1];
    size_t n = c->n < KEYS ? c->n : KEYS;
    bool star = census_known_heads(c, CENSUS_STAR) > 0;
    if (census_known_heads(c, 0) == 0) return false;
    for (size_t k = 0; k < n; k++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", k + 1);
        bars[k] = threshold_bar(c, k, name);
    }
    if (star) bars[n] = threshold_bar(c, CENSUS_STAR, "*");
    sinkproof_chart_bars_svg(out, star ? n + 1 : n, bars);
    return true;
}

static void say_bars(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "The share of the %s whose mean weight at a key is above %g, T = %zu. At "
                       "the first key: %zu.",
                       sinkproof_counted(census_known_heads(c, 0), "head").text, c->epsilon, c->n,
                       census_passing_heads(c, 0));
    if (census_known_heads(c, CENSUS_STAR) > 0)
        sinkproof_page_say(out, " * is the sink's own column: %s.",
                           sinkproof_counted(census_passing_heads(c, CENSUS_STAR), "head").text);
}

// ---- states ------------------------------------------------------------------------------------

static void massive_place(sinkproof_chart_place *place, const sinkproof_massive *m) {
    place->value[0] = m->largest, place->value[1] = m->median, place->value[2] = m->first;
}

static bool draw_massive(FILE *out, const sink_census *c) {
    static const char *const names[] = {"largest", "median", "norm of token 1"};
    sinkproof_chart_place places[2 * SINKPROOF_MAX_LAYERS + 1] = {{.name = "T0"}};
    size_t n = 0;
    massive_place(&places[n++], &c->embedding);
    for (size_t l = 0; l < c->config->n_layers; l++) {
        snprintf(places[n].name, sizeof places[n].name, "%02zu.A13", l);
        places[n].at = (double)l + 0.5;
        massive_place(&places[n++], &c->layers[l].middle);
        snprintf(places[n].name, sizeof places[n].name, "%02zu.M12", l);
        places[n].at = (double)l + 1;
        massive_place(&places[n++], &c->layers[l].end);
    }
    return sinkproof_chart_lines(out, names, n, places);
}

static void say_massive(FILE *out, const sink_census *c) {
    const sinkproof_massive *most = NULL;
    size_t at = 0;
    for (size_t l = 0; l < c->config->n_layers; l++) {
        const sinkproof_massive *end = &c->layers[l].end;
        if (!isfinite(end->ratio) || (most != NULL && end->ratio <= most->ratio)) continue;
        most = end;
        at = l;
    }
    sinkproof_page_say(out, "The residual stream through the layers: its largest activation, the "
                            "median of all, and the norm of the first token's state.");
    if (most != NULL)
        sinkproof_page_say(out,
                           " The largest of layer %zu's end is %.4g, %.4g times the median, at "
                           "token %zu, coordinate %zu (from 0).",
                           at, most->largest, most->ratio, most->position, most->coordinate);
}

static double spike_at(const void *census, size_t curve, size_t place) {
    const sink_census *c = census;
    const census_layer *layer = &c->layers[place / 2];
    const census_norm *norm = place % 2 == 0 ? &layer->attention : &layer->experts;
    return curve == 0 ? norm->before : norm->after;
}

static bool draw_spikes(FILE *out, const sink_census *c) {
    static const sinkproof_chart_curve curves[] = {{"before the norm", "one", 1},
                                                   {"after the norm", "two", 1}};
    sinkproof_chart_curves chart = {.n = 2,
                                    .places = 2 * c->config->n_layers,
                                    .to = (double)c->config->n_layers - 0.5,
                                    .high = 1,
                                    .value = spike_at,
                                    .context = c,
                                    .curve_n = curves,
                                    .across = "layer",
                                    .legend = true};
    bool known = false;
    for (size_t p = 0; p < chart.places; p++) known = known || isfinite(spike_at(c, 0, p));
    if (known) sinkproof_chart_curves_svg(out, &chart);
    return known;
}

static void say_spikes(FILE *out, const sink_census *c) {
    (void)c;
    sinkproof_page_say(out,
                       "How much of a state's squared norm its %d largest coordinates hold, at the "
                       "token of the largest activation: before the norms of attention (l) and of "
                       "the experts (l + 1/2), and the same coordinates after them.",
                       SINKPROOF_SPIKES);
}

// ---- values and keys ---------------------------------------------------------------------------

typedef const sinkproof_drain *(*drain)(const census_group *group);
static const sinkproof_drain *group_values(const census_group *group) {
    return &group->values;
}
static const sinkproof_drain *group_keys(const census_group *group) {
    return &group->keys;
}

typedef struct drains {
    const sink_census *census;
    drain of;
} drains;

static double drain_at(const void *context, size_t curve, size_t l) {
    const drains *all = context;
    const sinkproof_config *config = all->census->config;
    double sum = 0;
    for (size_t g = 0; g < config->n_kv_heads; g++) {
        const sinkproof_drain *d = all->of(&all->census->layers[l].groups[g]);
        sum += curve == 0 ? d->first : curve == 1 ? d->mean : d->median;
    }
    return sum / (double)config->n_kv_heads;
}

static bool draw_drain(FILE *out, const sink_census *c, drain of) {
    static const sinkproof_chart_curve curves[] = {{"the first", "one", 1},
                                                   {"mean of the others", "two", 1},
                                                   {"median of the others", "three", 1}};
    drains all = {c, of};
    double most = 0;
    for (size_t l = 0; l < c->config->n_layers; l++)
        for (size_t k = 0; k < 3; k++) most = fmax(most, drain_at(&all, k, l)); // a NaN is skipped
    sinkproof_chart_curves chart = {.n = 3,
                                    .places = c->config->n_layers,
                                    .to = (double)c->config->n_layers - 1,
                                    .high = most > 0 ? sinkproof_chart_rounded_up(most) : 1,
                                    .value = drain_at,
                                    .context = &all,
                                    .curve_n = curves,
                                    .across = "layer",
                                    .legend = true};
    if (most > 0) sinkproof_chart_curves_svg(out, &chart);
    return most > 0;
}

static bool draw_values(FILE *out, const sink_census *c) {
    return draw_drain(out, c, group_values);
}
static void say_values(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "The norm of the first token's value beside those of the others, by layer, "
                       "the mean over %s. A drain is a first value that is small.",
                       sinkproof_counted(c->config->n_kv_heads, "key/value head").text);
}
static bool draw_keys(FILE *out, const sink_census *c) {
    return draw_drain(out, c, group_keys);
}
static void say_keys(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "The norm of the first token's key, as it is cached, beside those of the "
                       "others, by layer, the mean over %s.",
                       sinkproof_counted(c->config->n_kv_heads, "key/value head").text);
}

static double mean_head_cosine(const void *census, size_t curve, size_t l) {
    const sink_census *c = census;
    double sum = 0;
    for (size_t h = 0; h < c->config->n_heads; h++) {
        const sinkproof_geometry *g = &head_at(c, l, h)->cosines;
        sum += curve == 0 ? g->first : g->others;
    }
    return sum / (double)c->config->n_heads;
}

static bool draw_cosines(FILE *out, const sink_census *c) {
    static const sinkproof_chart_curve curves[] = {{"with the first key", "one", 1},
                                                   {"with the others", "two", 1}};
    sinkproof_chart_curves chart = {.n = 2,
                                    .places = c->config->n_layers,
                                    .to = (double)c->config->n_layers - 1,
                                    .low = -1,
                                    .high = 1,
                                    .value = mean_head_cosine,
                                    .context = c,
                                    .curve_n = curves,
                                    .across = "layer",
                                    .legend = true};
    bool known = false;
    for (size_t l = 0; l < c->config->n_layers; l++)
        known = known || isfinite(mean_head_cosine(c, 0, l)) || isfinite(mean_head_cosine(c, 1, l));
    if (known) sinkproof_chart_curves_svg(out, &chart);
    return known;
}

static void say_cosines(FILE *out, const sink_census *c) {
    sinkproof_page_say(out,
                       "The mean cosine of a query with the first key and with the other keys that "
                       "it sees, by layer, the mean over %s.",
                       sinkproof_counted(c->config->n_heads, "head").text);
}

static const sinks_figure figures[] = {
    {"sink-weight", "metric.sink-star", "Sink weight by layer and head", draw_sink, say_sink,
     sinks_are_zero},
    {"first-key", "metric.sink", "Weight of the first token", draw_first, say_first, NULL},
    {"sink-bars", "metric.sink", "Heads with a sink", draw_bars, say_bars, NULL},
    {"mass", "sink.mass", "Mass of the keys against position", draw_mass, say_mass, NULL},
    {"intensity", "metric.value-bias", "Value-bias intensity", draw_intensity, say_intensity,
     intensities_are_zero},
    {"massive", "metric.massive", "Massive activations", draw_massive, say_massive, NULL},
    {"coordinate", "metric.massive", "The massive coordinate along the stream",
     sinks_draw_coordinate, sinks_say_coordinate, NULL},
    {"norms", "metric.massive", "Norms of the states by position", sinks_draw_norms,
     sinks_say_norms, NULL},
    {"spikes", "metric.massive", "Spikes through the norms", draw_spikes, say_spikes, NULL},
    {"values", "metric.value-drain", "Value drains", draw_values, say_values, NULL},
    {"keys", "metric.value-drain", "Norms of the keys", draw_keys, say_keys, NULL},
    {"cosines", "metric.key-geometry", "Key geometry", draw_cosines, say_cosines, NULL},
};

const sinks_figure *sinks_figure_at(size_t i) {
    return i < sizeof figures / sizeof *figures ? &figures[i] : NULL;
}
