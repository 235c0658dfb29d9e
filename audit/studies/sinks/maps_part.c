// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The part of `sinkproof sinks` that shows maps of attention: those of the chosen heads, or of the
// heads whose sinks have the most and the least weight.
#include "audit/report/chart.h"
#include "audit/report/page.h"
#include "audit/studies/sinks/maps.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>

struct maps_state {
    size_t n_inputs;
    sinkproof_sinks_maps *maps[]; // [n_inputs]
};

static bool maps_prepare(const sinkproof_sinks_job *job, const char *asked, void **state,
                         sinkproof_error *error) {
    struct maps_state *s = calloc(1, sizeof *s + job->n_inputs * sizeof *s->maps);
    *state = s;
    if (s == NULL) return sinkproof_fail(error, "no memory for maps");
    s->n_inputs = job->n_inputs;
    for (size_t i = 0; i < job->n_inputs; i++)
        if (!sinkproof_sinks_maps_new(job->config, job->inputs[i].n, asked, &s->maps[i], error))
            return false;
    return true;
}

static void maps_add_rows(void *state, size_t input, const sinkproof_map_rows *rows) {
    struct maps_state *s = state;
    sinkproof_sinks_maps_add(s->maps[input], rows);
}

static void maps_release(void *state) {
    struct maps_state *s = state;
    for (size_t i = 0; s != NULL && i < s->n_inputs; i++) sinkproof_sinks_maps_free(s->maps[i]);
    free(s);
}

static bool has_sinks(const sink_census *c) {
    for (size_t l = 0; l < c->config->n_layers; l++)
        for (size_t h = 0; h < c->config->n_heads; h++)
            if (c->layers[l].heads[h].sink.mean > 0) return true;
    return false;
}

// The head whose sink has the largest or the smallest mean weight, or, where no head has a sink,
// the first token; false: none is known.
static bool extreme_sink_head(const sink_census *c, bool most, size_t *layer, size_t *head) {
    double best = most ? -INFINITY : INFINITY;
    bool sinks = has_sinks(c);
    for (size_t l = 0; l < c->config->n_layers; l++)
        for (size_t h = 0; h < c->config->n_heads; h++) {
            const census_head *head_at = &c->layers[l].heads[h];
            double x = sinks ? head_at->sink.mean : head_at->first;
            if (most ? !(x > best) : !(x < best)) continue;
            best = x;
            *layer = l;
            *head = h;
        }
    return isfinite(best);
}

// The i-th map to show for an input; false after the last.
static bool maps_pick(const void *state, const sinkproof_sinks_job *job, size_t input, size_t i,
                      sinkproof_sinks_map *out) {
    const struct maps_state *s = state;
    const sinkproof_sinks_maps *maps = s->maps[input];
    size_t layer = 0, head = 0, chosen = sinks_maps_chosen_count(maps);
    if (chosen > 0) {
        if (i < chosen) *out = sinks_maps_at(maps, i);
        return i < chosen;
    }
    if (i >= 2 || !extreme_sink_head(&job->inputs[input].census, i == 0, &layer, &head))
        return false;
    *out = sinkproof_sinks_maps_find(maps, layer, head);
    return true;
}

// A map, and the input whose words stand beside it.
typedef struct worded_map {
    sinkproof_sinks_map map;
    const sinkproof_sinks_input *input;
} worded_map;

static bool draw_map(FILE *out, const void *context) {
    const worded_map *one = context;
    size_t side = sinkproof_sinks_maps_side(one->map.maps);
    size_t cell = sinkproof_sinks_maps_cell(one->map.maps);
    sinkproof_chart_heat heat = {.queries = side,
                                 .keys = side,
                                 .weight = sinkproof_sinks_map_weight,
                                 .sink =
                                     has_sinks(&one->input->census) ? sinks_map_sink_weight : NULL,
                                 .context = &one->map};
    sinkproof_chart_worded worded = {.map = &heat,
                                     .word_n = cell == 1 ? one->input->word_n : NULL,
                                     .cell = cell,
                                     .label = "attention weights"};
    sinkproof_chart_words_svg(out, &worded);
    return true;
}

static void say_map(FILE *page, const sink_census *c, const sinkproof_sinks_map *one) {
    const census_head *head = &c->layers[one->layer].heads[one->head];
    const sinkproof_span *sink = &head->sink;
    sinkproof_page_say(page, "Layer %zu, head %zu", one->layer, one->head);
    if (c->layers[one->layer].window > 0)
        sinkproof_page_say(page, ", window of %zu", c->layers[one->layer].window);
    if (isfinite(sink->mean) && !has_sinks(c))
        sinkproof_page_say(page, ": the first token has %.4g on the mean", head->first);
    else if (isfinite(sink->mean))
        sinkproof_page_say(page, ": the sink takes %.4g on the mean, %.4g to %.4g", sink->mean,
                           sink->least, sink->most);
    else
        sinkproof_page_say(page, ": its weights are not known");
}

static void maps_html(const void *state, const sinkproof_sinks_job *job, FILE *page) {
    const struct maps_state *s = state;
    fputs("<h2>Maps of attention</h2>\n", page);
    for (size_t input = 0; input < job->n_inputs; input++) {
        const sinkproof_sinks_maps *maps = s->maps[input];
        size_t cell = sinkproof_sinks_maps_cell(maps);
        sinkproof_sinks_map one;
        fputs("<p>", page);
        sinkproof_page_say(page,
                           "%.200s: a row for each query, a column for each key%s. A shade is a "
                           "power of two of the "
                           "weight, and what is less than 2^-11 is not drawn; what is not known "
                           "has the colour of a warning.",
                           job->inputs[input].text,
                           has_sinks(&job->inputs[input].census)
                               ? ", the sink in the column apart on the left"
                               : "");
        if (cell > 1)
            sinkproof_page_say(page,
                               " A cell is the mean over %s and %s, of the "
                               "pairs whose key is not after the query.",
                               sinkproof_counted(cell, "query").text,
                               sinkproof_counted(cell, "key").text);
        if (sinks_maps_chosen_count(maps) == 0)
            sinkproof_page_say(
                page, " The head that gives %s most, and the one that gives it least.",
                has_sinks(&job->inputs[input].census) ? "its sink" : "the first token");
        fputs(" Defined by <code>sink.alpha</code>.</p>\n<div class=\"many maps\">", page);
        for (size_t i = 0; maps_pick(state, job, input, i, &one); i++) {
            fputs("<figure>", page);
            draw_map(page, &(worded_map){one, &job->inputs[input]});
            fputs("<figcaption>", page);
            say_map(page, &job->inputs[input].census, &one);
            fputs(".</figcaption></figure>\n", page);
        }
        fputs("</div>\n", page);
    }
}

// Its title is its name.
static void title_map(FILE *out, const void *context) {
    const worded_map *one = context;
    sinkproof_page_say(out, "Attention of layer %zu, head %zu (sink.alpha)", one->map.layer,
                       one->map.head);
}

static bool maps_draw(const void *state, const sinkproof_sinks_job *job, size_t input,
                      const char *number, sinkproof_pictures *pictures, sinkproof_error *error) {
    sinkproof_sinks_map map;
    char name[96];
    for (size_t i = 0; maps_pick(state, job, input, i, &map); i++) {
        worded_map worded = {map, &job->inputs[input]};
        sinkproof_picture picture = {&worded, draw_map, title_map, NULL};
        snprintf(name, sizeof name, "%smap-%zu.%zu", number, map.layer, map.head);
        if (!sinkproof_pictures_add(pictures, name, &picture, error)) return false;
    }
    return true;
}

const sinkproof_sinks_part sinkproof_part_maps = {
    .name = "maps",
    .takes = "L.H,...",
    .help = "The heads whose maps of attention the page shows, layer and head from 0 (those with "
            "the strongest and the weakest sink)",
    .prepare = maps_prepare,
    .map = maps_add_rows,
    .html = maps_html,
    .draw = maps_draw,
    .free = maps_release};
