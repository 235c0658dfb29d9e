// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The figures of the census and the maps as files.
#include "audit/sinks/sinks_page.h"

#include "audit/report/page.h"
#include "audit/report/pictures.h"
#include "audit/sinks/figures.h"
#include "audit/sinks/maps.h"

// A figure of the census.
typedef struct subject {
    const sinkproof_sinks_figure *figure;
    const sinkproof_census *census;
} subject;

static bool draw_figure(FILE *out, const void *context) {
    const subject *what = context;
    return what->figure->draw(out, what->census);
}
static void title_figure(FILE *out, const void *context) {
    const subject *what = context;
    sinkproof_page_say(out, "%s (%s)", what->figure->title, what->figure->id);
}
static void say_figure(FILE *out, const void *context) {
    const subject *what = context;
    what->figure->say(out, what->census);
}

static bool draw_map(FILE *out, const void *map) {
    sinkproof_sinks_map_draw(out, map);
    return true;
}
// Its words are its name.
static void title_map(FILE *out, const void *context) {
    const sinkproof_sinks_map *map = context;
    sinkproof_page_say(out, "Attention of layer %zu, head %zu (sink.alpha)", map->layer, map->head);
}

static bool add_input(sinkproof_pictures *pictures, const sinkproof_sinks_job *job, size_t input,
                      const void *maps, sinkproof_error *error) {
    char name[96], number[24] = "";
    const sinkproof_sinks_figure *figure;
    sinkproof_sinks_map map;
    if (job->n_inputs > 1) snprintf(number, sizeof number, "%zu-", input + 1);
    for (size_t k = 0; (figure = sinkproof_sinks_figure_at(k)) != NULL; k++) {
        subject what = {.figure = figure, .census = &job->inputs[input].census};
        sinkproof_picture picture = {&what, draw_figure, title_figure, say_figure};
        snprintf(name, sizeof name, "%s%s", number, figure->name);
        if (!sinkproof_pictures_add(pictures, name, &picture, error)) return false;
    }
    for (size_t i = 0; sinkproof_sinks_maps_pick(maps, job, input, i, &map); i++) {
        sinkproof_picture picture = {&map, draw_map, title_map, NULL};
        snprintf(name, sizeof name, "%smap-%zu.%zu", number, map.layer, map.head);
        if (!sinkproof_pictures_add(pictures, name, &picture, error)) return false;
    }
    return true;
}

bool sinkproof_sinks_svg(const char *directory, const sinkproof_sinks_job *job, const void *maps,
                         sinkproof_error *error) {
    sinkproof_pictures *pictures;
    if (!sinkproof_pictures_open(directory, &pictures, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < job->n_inputs; i++)
        good = add_input(pictures, job, i, maps, error);
    return sinkproof_pictures_close(pictures, good, error);
}
