// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of a trace's points ("sinkproof-trace-1").
#include "audit/trace/trace_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool point_named(const char *name, bool layered, sinkproof_trace_point *point) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p) != layered ||
            strcmp(sinkproof_trace_point_name((sinkproof_trace_point)p), name) != 0)
            continue;
        *point = (sinkproof_trace_point)p;
        return true;
    }
    return false;
}

bool sinkproof_trace_name_parse(const char *name, sinkproof_trace_point *point, size_t *layer) {
    *layer = 0;
    if (point_named(name, false, point)) return true;
    size_t digits = strspn(name, "0123456789");
    bool padded = digits == 2 || (digits > 2 && digits < 9 && name[0] != '0');
    if (!padded || name[digits] != '.') return false;
    *layer = (size_t)strtoul(name, NULL, 10);
    return point_named(name + digits + 1, true, point);
}

void sinkproof_trace_name(sinkproof_trace_point point, size_t layer, char *name) {
    if (sinkproof_trace_point_is_layered(point))
        snprintf(name, SINKPROOF_TRACE_NAME, "%02zu.%s", layer, sinkproof_trace_point_name(point));
    else
        snprintf(name, SINKPROOF_TRACE_NAME, "%s", sinkproof_trace_point_name(point));
}

size_t trace_shape_from(const sinkproof_config *config, sinkproof_trace_point point, size_t first,
                        size_t n, size_t *shape) {
    size_t rank = sinkproof_trace_shape(config, point, n, shape);
    if (sinkproof_trace_point_is_by_head(point)) shape[rank - 1] += first;
    return rank;
}

bool sinkproof_trace_point_is_offered(sinkproof_trace_point point) {
    return sinkproof_trace_point_held(point) == SINKPROOF_OFFERED;
}

bool trace_may_hold(const sinkproof_config *config, sinkproof_trace_point point, size_t layer) {
    return sinkproof_trace_point_exists(config, point, layer) ||
           (sinkproof_trace_point_is_offered(point) && layer < config->n_layers);
}

bool sinkproof_trace_is_cached(const sinkproof_config *config, sinkproof_trace_point point) {
    return point == sinkproof_trace_keys(config) || point == TRACE_A2_V;
}

sinkproof_trace_point sinkproof_trace_keys(const sinkproof_config *config) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    sinkproof_trace_inputs(config, TRACE_A6, 0, inputs);
    return inputs[1].point;
}

void sinkproof_trace_index(size_t rank, const size_t *shape, size_t at, size_t *index) {
    for (size_t d = rank; d-- > 0; at /= shape[d]) index[d] = at % shape[d];
}

sinkproof_index_text sinkproof_trace_index_text(size_t rank, const size_t *shape, size_t at) {
    sinkproof_index_text is = {""};
    size_t index[SINKPROOF_MAX_RANK], used = 0;
    sinkproof_trace_index(rank, shape, at, index);
    for (size_t d = 0; d < rank; d++)
        used += (size_t)snprintf(is.text + used, sizeof is.text - used, "%s%zu", d > 0 ? ", " : "",
                                 index[d]);
    return is;
}

bool shape_has_batch(size_t rank, const size_t *shape, size_t expected_rank,
                     const size_t *expected) {
    bool same = rank == expected_rank + 1;
    for (size_t d = 0; same && d < expected_rank; d++) same = shape[d + 1] == expected[d];
    return same;
}

void sinkproof_trace_nearest(const char *name, size_t n_layers, char *nearest) {
    char start[SINKPROOF_TRACE_NAME], candidate[SINKPROOF_TRACE_NAME];
    snprintf(start, sizeof start, "%s", name); // cut: the start of a long name is enough
    size_t digits = strspn(start, "0123456789"), best = SIZE_MAX;
    size_t layer = digits > 0 && digits < 9 ? (size_t)strtoul(start, NULL, 10) : 0;
    if (layer >= n_layers) layer = n_layers - 1;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_name((sinkproof_trace_point)p, layer, candidate);
        size_t distance = sinkproof_edit_distance(start, candidate);
        if (distance >= best) continue;
        best = distance;
        strcpy(nearest, candidate);
    }
}

sinkproof_format sinkproof_trace_format(sinkproof_dtype dtype) {
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
        return SINKPROOF_BF16;
    case SINKPROOF_DTYPE_F16:
        return SINKPROOF_F16;
    case SINKPROOF_DTYPE_F32:
        return SINKPROOF_F32;
    default:
        return SINKPROOF_F64;
    }
}

bool sinkproof_trace_word_names(const char *word, size_t length, sinkproof_trace_point point,
                                size_t layer) {
    char full[SINKPROOF_TRACE_NAME];
    const char *name = sinkproof_trace_point_name(point);
    sinkproof_trace_name(point, layer, full);
    if (length == 0) return false;
    if (strlen(full) == length && strncmp(word, full, length) == 0) return true;
    return strncmp(word, name, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

bool sinkproof_trace_list_names(const char *list, sinkproof_trace_point point, size_t layer) {
    for (const char *word = list; word != NULL && !sinkproof_trace_point_is_offered(point);) {
        size_t length = strcspn(word, ",");
        if (sinkproof_trace_word_names(word, length, point, layer)) return true;
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return list == NULL;
}

// The nearest name of a word with a layer has a layer too.
static bool refuse_unknown_point(const char *word, size_t length, size_t n_layers,
                                 sinkproof_error *error) {
    char given[64], nearest[SINKPROOF_TRACE_NAME];
    snprintf(given, sizeof given, "%.*s", (int)(length < sizeof given ? length : sizeof given),
             word);
    sinkproof_guess guess = {.given = given};
    for (int p = 0; p < TRACE_POINTS; p++)
        sinkproof_guess_try(&guess, sinkproof_trace_point_name((sinkproof_trace_point)p));
    sinkproof_trace_nearest(given, n_layers, nearest);
    if (strspn(given, "0123456789") == 0 && guess.nearest[0] != '\0')
        snprintf(nearest, sizeof nearest, "%.39s", guess.nearest);
    return sinkproof_fail(error, "no point of a trace is named '%s' (%s): the nearest known is %s",
                          given, sinkproof_counted(n_layers, "layer").text, nearest);
}

bool sinkproof_trace_list_check(const char *list, size_t n_layers, sinkproof_error *error) {
    for (const char *word = list; word != NULL;) {
        size_t length = strcspn(word, ","), named = 0;
        for (size_t l = 0; l < n_layers && named == 0; l++)
            for (int p = 0; p < TRACE_POINTS && named == 0; p++)
                named += !sinkproof_trace_point_is_offered((sinkproof_trace_point)p) &&
                         sinkproof_trace_word_names(word, length, (sinkproof_trace_point)p, l);
        if (named == 0) return refuse_unknown_point(word, length, n_layers, error);
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return true;
}
