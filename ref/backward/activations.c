// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keeps the points of a forward pass.
#include "ref/backward/activations.h"

#include "base/words.h"

#include <stdlib.h>
#include <string.h>

// The layer and point of a name ("F2", "03.A4.q").
static bool find_point(const char *name, sinkproof_trace_point *point, size_t *layer) {
    char *end;
    *layer = strtoul(name, &end, 10);
    const char *rest = end != name && *end == '.' ? end + 1 : name;
    for (int p = 0; p < TRACE_POINTS; p++)
        if (strcmp(rest, sinkproof_trace_point_name((sinkproof_trace_point)p)) == 0) {
            *point = (sinkproof_trace_point)p;
            return true;
        }
    return false;
}

static void keep(void *context, const char *name, size_t rank, const size_t *shape,
                 const double *values) {
    sinkproof_activations *a = context;
    sinkproof_trace_point point;
    size_t layer, count = 1;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    if (find_point(name, &point, &layer) && layer < a->n_layers) {
        double *room = a->at_lp[layer * TRACE_POINTS + (size_t)point];
        if (room != NULL && count == sinkproof_trace_elements(a->config, point, a->n))
            memcpy(room, values, count * sizeof *room);
    }
    if (a->next != NULL) a->next->see(a->next->context, name, rank, shape, values);
}

// Some points are read by no stage's backward function: queries and keys before their rotation,
// unless a norm reads them.
static bool is_read(const sinkproof_config *config, sinkproof_trace_point point) {
    bool projected = point == TRACE_A2_Q || point == TRACE_A2_K;
    return projected ? config->head_norms
                     : point != TRACE_A3_Q && point != TRACE_A3_K && point != TRACE_A10 &&
                           point != TRACE_M5 && point != TRACE_M9;
}

bool sinkproof_activations_new(const sinkproof_config *config, size_t n, const int32_t *tokens_n,
                               sinkproof_activations **out, sinkproof_error *error) {
    sinkproof_activations *a = calloc(1, sizeof *a);
    if (a == NULL) return sinkproof_fail(error, "no memory for the backward pass");
    *a = (sinkproof_activations){.n = n,
                                 .n_layers = config->n_layers,
                                 .tokens_n = tokens_n,
                                 .config = config,
                                 .observer = {.see = keep, .context = a}};
    a->at_lp = calloc(config->n_layers * TRACE_POINTS, sizeof *a->at_lp);
    bool good = a->at_lp != NULL;
    for (size_t i = 0; good && i < config->n_layers * TRACE_POINTS; i++) {
        sinkproof_trace_point point = (sinkproof_trace_point)(i % TRACE_POINTS);
        if (!is_read(config, point) ||
            !sinkproof_trace_point_exists(config, point, i / TRACE_POINTS))
            continue;
        a->at_lp[i] = calloc(sinkproof_trace_elements(config, point, n), sizeof(double));
        good = a->at_lp[i] != NULL;
    }
    if (good) {
        *out = a;
        return true;
    }
    sinkproof_activations_free(a);
    return sinkproof_fail(error, "no memory for the activations of %s",
                          sinkproof_counted(n, "token").text);
}

void sinkproof_activations_free(sinkproof_activations *a) {
    if (a == NULL) return;
    for (size_t i = 0; a->at_lp != NULL && i < a->n_layers * TRACE_POINTS; i++) free(a->at_lp[i]);
    free(a->at_lp);
    free(a);
}
