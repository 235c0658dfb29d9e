// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums the weights of each cell. A row of a head changes only that head's cells, so that heads may
// come concurrently.
#include "audit/studies/sinks/maps.h"

#include "base/words.h"

#include <math.h>
#include <stdlib.h>

typedef struct place {
    size_t layer, head;
} place;

struct sinkproof_sinks_maps {
    size_t n, side, cell, n_heads, kept; // kept: heads with cells
    place *chosen;                       // [kept], or NULL: all
    double *sum, *sink;                  // [kept, side, side], [kept, side]
    size_t *rows;                        // [kept, side] rows so far
};

// Parses "L.H" from *text on, up to a comma or the end.
static bool read_place(const char **text, const sinkproof_config *config, place *out,
                       sinkproof_error *error) {
    char *end = NULL;
    const char *from = *text;
    bool good = *from >= '0' && *from <= '9';
    out->layer = good ? strtoul(from, &end, 10) : 0;
    good = good && *end == '.' && end[1] >= '0' && end[1] <= '9';
    out->head = good ? strtoul(end + 1, &end, 10) : 0;
    good = good && (*end == ',' || *end == '\0');
    if (!good || out->layer >= config->n_layers || out->head >= config->n_heads)
        return sinkproof_fail(error, "maps: expected LAYER.HEAD below %zu.%zu, found \"%.40s\"",
                              config->n_layers, config->n_heads, from);
    *text = *end == ',' ? end + 1 : end;
    return true;
}

static bool read_chosen(sinkproof_sinks_maps *m, const sinkproof_config *config, const char *text,
                        sinkproof_error *error) {
    size_t count = 1;
    for (const char *c = text; *c != '\0'; c++) count += *c == ',';
    m->chosen = calloc(count, sizeof *m->chosen);
    if (m->chosen == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(count, "map").text);
    for (m->kept = 0; m->kept < count; m->kept++)
        if (!read_place(&text, config, &m->chosen[m->kept], error)) return false;
    return true;
}

bool sinkproof_sinks_maps_new(const sinkproof_config *config, size_t n, const char *chosen,
                              sinkproof_sinks_maps **out, sinkproof_error *error) {
    sinkproof_sinks_maps *m = calloc(1, sizeof *m);
    *out = m;
    if (m == NULL) return sinkproof_fail(error, "no memory for maps");
    m->n = n, m->n_heads = config->n_heads, m->kept = config->n_layers * config->n_heads;
    m->cell = (n + SINKS_MAP_CELLS - 1) / SINKS_MAP_CELLS;
    m->side = (n + m->cell - 1) / m->cell;
    bool good = chosen == NULL || read_chosen(m, config, chosen, error);
    if (good) {
        m->sum = calloc(m->kept * m->side * m->side, sizeof *m->sum);
        m->sink = calloc(m->kept * m->side, sizeof *m->sink);
        m->rows = calloc(m->kept * m->side, sizeof *m->rows);
        good = m->sum != NULL && m->sink != NULL && m->rows != NULL;
        if (!good)
            sinkproof_fail(error, "no memory for %s", sinkproof_counted(m->kept, "map").text);
    }
    if (good) return true;
    sinkproof_sinks_maps_free(m);
    *out = NULL;
    return false;
}

void sinkproof_sinks_maps_free(sinkproof_sinks_maps *m) {
    if (m == NULL) return;
    free(m->chosen);
    free(m->sum);
    free(m->sink);
    free(m->rows);
    free(m);
}

static void add_rows(sinkproof_sinks_maps *m, size_t at, const sinkproof_map_rows *r) {
    for (size_t i = 0; i < r->rows; i++) {
        size_t query = r->first + i, row = at * m->side + query / m->cell;
        m->rows[row]++;
        m->sink[row] += r->sink_i[i];
        for (size_t j = 0; j < r->keys && r->from + j <= query; j++)
            m->sum[row * m->side + (r->from + j) / m->cell] += r->alpha_ij[i * r->stride + j];
    }
}

void sinkproof_sinks_maps_add(void *maps, const sinkproof_map_rows *r) {
    sinkproof_sinks_maps *m = maps;
    if (m->chosen == NULL) add_rows(m, r->layer * m->n_heads + r->head, r);
    for (size_t i = 0; m->chosen != NULL && i < m->kept; i++)
        if (m->chosen[i].layer == r->layer && m->chosen[i].head == r->head) add_rows(m, i, r);
}

size_t sinkproof_sinks_maps_side(const sinkproof_sinks_maps *m) {
    return m->side;
}
size_t sinkproof_sinks_maps_cell(const sinkproof_sinks_maps *m) {
    return m->cell;
}
size_t sinks_maps_chosen_count(const sinkproof_sinks_maps *m) {
    return m->chosen == NULL ? 0 : m->kept;
}
sinkproof_sinks_map sinks_maps_at(const sinkproof_sinks_maps *m, size_t i) {
    return (sinkproof_sinks_map){m, m->chosen[i].layer, m->chosen[i].head, i};
}
sinkproof_sinks_map sinkproof_sinks_maps_find(const sinkproof_sinks_maps *m, size_t layer,
                                              size_t head) {
    return (sinkproof_sinks_map){m, layer, head, layer * m->n_heads + head};
}

// The number of queries in a row of cells; the last row has fewer.
static size_t cell_row_queries(const sinkproof_sinks_maps *m, size_t row) {
    size_t left = m->n - row * m->cell;
    return left < m->cell ? left : m->cell;
}

double sinkproof_sinks_map_weight(const void *map, size_t row, size_t column) {
    const sinkproof_sinks_map *one = map;
    const sinkproof_sinks_maps *m = one->maps;
    size_t at = one->at * m->side + row, queries = cell_row_queries(m, row);
    if (column > row) return 0; // above the diagonal there are no pairs
    if (m->rows[at] != queries) return NAN;
    double pairs = column < row ? (double)(queries * m->cell)
                                : (double)(queries * (queries + 1)) / 2; // a triangle
    return m->sum[at * m->side + column] / pairs;
}

double sinks_map_sink_weight(const void *map, size_t row) {
    const sinkproof_sinks_map *one = map;
    const sinkproof_sinks_maps *m = one->maps;
    size_t at = one->at * m->side + row, queries = cell_row_queries(m, row);
    return m->rows[at] == queries ? m->sink[at] / (double)queries : NAN;
}
