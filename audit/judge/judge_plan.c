// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a judgement reads and keeps, from the shapes of the trace alone.
#include "audit/judge/judge_internal.h"

#include "audit/trace/trace_points.h"

// The sets that are alive along the walk, as judge_walk.c allocates and releases them.
typedef struct alive {
    judge_pass pass;
    size_t bytes[TRACE_POINTS], sum, most;
} alive;

static void release(alive *a, sinkproof_trace_point point) {
    a->sum -= a->bytes[point];
    a->bytes[point] = 0;
}

static bool keep(void *context, const sinkproof_walk_step *step) {
    alive *a = context;
    if (!judge_walk_keeps(&a->pass, step)) return true;
    size_t own =
        sizeof(sinkproof_honest) * sinkproof_trace_elements(a->pass.config, step->point, a->pass.n);
    if (a->sum + own > a->most) a->most = a->sum + own;
    for (int p = judge_first_with(step->point); p <= (int)step->point; p++) {
        sinkproof_walk_step one =
            sinkproof_walk_step_at(a->pass.model, (sinkproof_trace_point)p, step->layer);
        for (size_t i = 0; i < one.n_inputs; i++)
            if (one.last[i]) release(a, one.inputs[i].point);
    }
    release(a, step->point);
    a->bytes[step->point] = own;
    a->sum += own;
    return true;
}

static size_t bytes_at(const sinkproof_trace *trace, sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(trace, point, layer);
    return tensor != NULL ? tensor->bytes : 0;
}

// Adds the traced points of a layer, or those outside the layers of `outside`.
static size_t add_layer(const sinkproof_trace *trace, size_t layer, size_t *points) {
    size_t bytes = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        if (!sinkproof_trace_point_is_layered(point)) continue;
        *points += sinkproof_trace_find(trace, point, layer) != NULL;
        bytes += bytes_at(trace, point, layer);
    }
    return bytes;
}

static void add_ends(const sinkproof_trace *trace, sinkproof_layer_range layers, size_t n_layers,
                     sinkproof_judge_size *size) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        bool here = point == TRACE_T0 ? layers.first == 0 : layers.end == n_layers;
        if (sinkproof_trace_point_is_layered(point) || !here) continue;
        size_t bytes = bytes_at(trace, point, 0);
        size->points += sinkproof_trace_find(trace, point, 0) != NULL;
        size->bytes += bytes;
        if (bytes > size->at_once) size->at_once = bytes;
    }
}

void sinkproof_judge_measure(const sinkproof_model *model, const sinkproof_trace *trace,
                             sinkproof_layer_range layers, sinkproof_judge_size *size) {
    const sinkproof_config *c = sinkproof_model_config(model);
    alive a = {.pass = {.model = model,
                        .config = c,
                        .trace = trace,
                        .options = &(sinkproof_judge_options){.rate = 0},
                        .n = sinkproof_trace_length(trace)}};
    *size = (sinkproof_judge_size){0};
    if (layers.end == 0) layers.end = c->n_layers;
    size_t before = layers.first > 0 ? bytes_at(trace, TRACE_M12, layers.first - 1) : 0;
    size->bytes = before;
    for (size_t l = layers.first; l < layers.end; l++) {
        size_t own = add_layer(trace, l, &size->points);
        size->bytes += own;
        if (own + before > size->at_once) size->at_once = own + before;
        before = bytes_at(trace, TRACE_M12, l);
    }
    add_ends(trace, layers, c->n_layers, size);
    sinkproof_walk(model, keep, &a);
    size->sets = a.most;
    size->layer = judge_layer_work(&a.pass);
    size->work = (double)(layers.end - layers.first) * size->layer;
    if (layers.end == c->n_layers)
        size->work += judge_all_work(&a.pass) - (double)c->n_layers * size->layer;
    if (sinkproof_trace_prefix(trace) == NULL) return;
    a.pass.n = sinkproof_trace_prefix_length(trace);
    size->prefix_layer = judge_layer_work(&a.pass);
    size->prefix_sets =
        2 * c->n_layers * a.pass.n * c->n_kv_heads * c->head_dim * sizeof(sinkproof_honest);
}
