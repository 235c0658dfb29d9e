// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs a census: the points of a run or a trace pass in order, and each quantity is measured when
// its inputs have passed. Only a layer's rotated queries and keys and the heads' outputs are kept,
// until the layer ends.
#include "audit/studies/sinks/census.h"

#include "audit/studies/sinks/census_internal.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "ref/stages.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the census itself -------------------------------------------------------------------------

static const sinkproof_massive no_massive = {NAN, 0, 0, NAN, NAN, NAN, NAN};
static const sinkproof_drain no_drain = {NAN, NAN, NAN};
static const census_norm no_norm = {NAN, NAN};

static double *unknown_numbers(size_t count) {
    double *x = malloc(count * sizeof *x);
    for (size_t i = 0; x != NULL && i < count; i++) x[i] = NAN;
    return x;
}

static bool open_layer(census_layer *layer, const sinkproof_config *config, size_t l, size_t n) {
    static const sinkproof_span none = {NAN, NAN, NAN};
    size_t heads = config->n_heads, groups = config->n_kv_heads;
    *layer = (census_layer){.window = config->sliding[l] ? config->window : 0,
                            .middle = no_massive,
                            .end = no_massive,
                            .attention = no_norm,
                            .experts = no_norm};
    layer->heads = calloc(heads, sizeof *layer->heads);
    layer->groups = calloc(groups, sizeof *layer->groups);
    layer->alpha_hk = calloc(heads * n, sizeof(double));
    layer->sink_hi = unknown_numbers(heads * n);
    layer->mass_hi = unknown_numbers(heads * n);
    layer->intensity_i = unknown_numbers(n);
    layer->share_i = unknown_numbers(n);
    layer->norm_i = unknown_numbers(n);
    layer->spike_i = unknown_numbers(n);
    if (layer->heads == NULL || layer->groups == NULL || layer->alpha_hk == NULL ||
        layer->sink_hi == NULL || layer->mass_hi == NULL || layer->intensity_i == NULL ||
        layer->share_i == NULL || layer->norm_i == NULL || layer->spike_i == NULL)
        return false;
    for (size_t h = 0; h < heads; h++)
        layer->heads[h] = (census_head){
            h / (heads / groups), none, none, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, {NAN, NAN}};
    for (size_t g = 0; g < groups; g++) layer->groups[g] = (census_group){no_drain, no_drain};
    return true;
}

static bool open_census(sink_census *census, const sinkproof_config *config, bool windows_known,
                        size_t n, double epsilon) {
    *census =
        (sink_census){.config = config, .n = n, .epsilon = epsilon, .windows_known = windows_known};
    census->embedding = no_massive;
    census->last = no_norm;
    census->layers = calloc(config->n_layers, sizeof *census->layers);
    bool good = census->layers != NULL;
    for (size_t l = 0; good && l < config->n_layers; l++)
        good = open_layer(&census->layers[l], config, l, n);
    return good;
}

void sinkproof_census_free(sink_census *census) {
    for (size_t l = 0; census->layers != NULL && l < census->config->n_layers; l++) {
        census_layer *layer = &census->layers[l];
        free(layer->heads);
        free(layer->groups);
        free(layer->alpha_hk);
        free(layer->sink_hi);
        free(layer->mass_hi);
        free(layer->intensity_i);
        free(layer->share_i);
        free(layer->norm_i);
        free(layer->spike_i);
    }
    free(census->layers);
    census->layers = NULL;
}

// The number that is compared with epsilon.
static double mean_weight(const sink_census *census, const census_layer *layer, size_t h,
                          size_t k) {
    const census_head *head = &layer->heads[h];
    switch (k) {
    case CENSUS_STAR:
        return head->star;
    case CENSUS_STAR_PUBLISHED:
        return head->star_published;
    case CENSUS_FIRST_SEEN:
        return head->first_seen;
    default:
        return layer->alpha_hk[h * census->n + k];
    }
}

size_t census_known_heads(const sink_census *census, size_t k) {
    size_t known = 0;
    for (size_t l = 0; l < census->config->n_layers; l++) {
        const census_layer *layer = &census->layers[l];
        for (size_t h = 0; h < census->config->n_heads; h++)
            known += layer->source != WEIGHTS_UNKNOWN && !isnan(mean_weight(census, layer, h, k));
    }
    return known;
}

size_t census_passing_heads(const sink_census *census, size_t k) {
    size_t passing = 0;
    for (size_t l = 0; l < census->config->n_layers; l++) {
        const census_layer *layer = &census->layers[l];
        if (layer->source == WEIGHTS_UNKNOWN) continue;
        for (size_t h = 0; h < census->config->n_heads; h++) {
            double alpha = mean_weight(census, layer, h, k);
            passing += sinkproof_metric_sinks(1, &alpha, census->epsilon);
        }
    }
    return passing;
}

// ---- collecting --------------------------------------------------------------------------------

// The points that a census keeps. It measures scores and norm outputs as they pass.
static const sinkproof_trace_point wanted[] = {TRACE_T0,   TRACE_A1,  TRACE_A2_V, TRACE_A4_Q,
                                               TRACE_A4_K, TRACE_A9,  TRACE_A11,  TRACE_A13,
                                               TRACE_M1,   TRACE_M12, TRACE_F1};
enum { WANTED = sizeof wanted / sizeof *wanted };

static bool is_wanted(sinkproof_trace_point point) {
    size_t w = 0;
    while (w < WANTED && wanted[w] != point) w++;
    return w < WANTED;
}

// Queries and keys as they are multiplied: where nothing rotates them, they are those of A2.
static sinkproof_trace_point as_multiplied(const census_collector *c, sinkproof_trace_point point) {
    bool rotates = c->config->rotation.kind != SINKPROOF_NO_ROTATION;
    if (!rotates && point == TRACE_A2_Q) return TRACE_A4_Q;
    if (!rotates && point == TRACE_A2_K) return TRACE_A4_K;
    return point;
}

// Whether these are weights of a trace alone that does not show A9.
static bool is_bare(const census_collector *c, sinkproof_trace_point point) {
    return point == TRACE_A10 && c->model == NULL && !c->seen[TRACE_A9];
}

// Whether the census or the caller takes the point.
static bool point_is_taken(const census_collector *c, sinkproof_trace_point point) {
    return is_wanted(as_multiplied(c, point)) || is_bare(c, point) || c->options->also[point];
}

static bool collector_new(census_collector *c, const sinkproof_model *model,
                          const sinkproof_config *config, size_t n,
                          const sinkproof_census_options *options, sink_census *census,
                          sinkproof_error *error) {
    size_t d = config->head_dim;
    *c = (census_collector){.model = model,
                            .config = config,
                            .options = options,
                            .census = census,
                            .file = "the run",
                            .good = true,
                            .error = error};
    c->q_nhd = malloc(n * config->n_heads * d * sizeof(double));
    c->o_nhd = malloc(n * config->n_heads * d * sizeof(double));
    c->k_ngd = malloc(n * config->n_kv_heads * d * sizeof(double));
    bool good = open_census(census, config, model != NULL, n, options->epsilon);
    if (good && c->q_nhd != NULL && c->o_nhd != NULL && c->k_ngd != NULL) return true;
    return sinkproof_fail(error, "no memory for a census of %s",
                          sinkproof_counted(n, "token").text);
}

static void collector_free(census_collector *c) {
    free(c->q_nhd);
    free(c->o_nhd);
    free(c->k_ngd);
}

static void fail_for_memory(census_collector *c, const char *what) {
    if (c->good)
        sinkproof_fail(c->error, "no memory for %s of %s", what,
                       sinkproof_counted(c->census->n, "token").text);
    c->good = false;
}

// Whether an element belongs to a masked key, where an engine may hold anything.
static bool is_hidden(const census_collector *c, sinkproof_trace_point point, size_t layer,
                      size_t at) {
    size_t n = c->census->n, query = at / n % n, key = at % n;
    return sinkproof_trace_point_is_before_mask(point) &&
           (key > query || key < sinkproof_mask_first(c->census->layers[layer].window, query));
}

// Refuses a number that is not finite: it would spoil a mean.
static bool check_finite(census_collector *c, sinkproof_trace_point point, size_t layer,
                         size_t head, size_t rank, const size_t *shape, const double *values) {
    size_t count = 1;
    char name[SINKPROOF_TRACE_NAME];
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    size_t at = 0, whole[SINKPROOF_MAX_RANK];
    while (at < count && (isfinite(values[at]) || is_hidden(c, point, layer, at))) at++;
    if (at == count) return true;
    if (head != SIZE_MAX) at += head * count; // its index in the whole tensor
    memcpy(whole, shape, rank * sizeof *whole);
    if (head != SIZE_MAX) whole[0] = c->config->n_heads;
    sinkproof_trace_name(point, layer, name);
    c->good = sinkproof_fail(
        c->error, "%.300s: tensor %s: expected finite numbers, found %f at (%s)", c->file, name,
        values[at % count], sinkproof_trace_index_text(rank, whole, at).text);
    return false;
}

static void group_norms(census_collector *c, const double *x_ngd, bool keys) {
    size_t groups = c->config->n_kv_heads, d = c->config->head_dim;
    for (size_t g = 0; g < groups; g++) {
        census_group *group = &c->census->layers[c->layer].groups[g];
        if (!sinkproof_metric_drain(c->census->n, d, groups * d, x_ngd + g * d,
                                    keys ? &group->keys : &group->values))
            fail_for_memory(c, "the norms");
    }
}

// Measures a state of the residual stream that is the input of norm number `norm` in the pass: two
// in each layer, and the last.
static void measure_state(census_collector *c, size_t norm, const double *x_nc,
                          sinkproof_massive *out) {
    size_t width = c->config->hidden;
    if (!sinkproof_metric_massive(c->census->n, width, x_nc, out)) {
        fail_for_memory(c, "the states");
        return;
    }
    c->spike_norm = norm;
    c->spike_position = out->position;
    c->spikes = sinkproof_metric_spikes(width, x_nc + out->position * width);
}

static void take_positions(const census_collector *c, census_layer *layer, const double *x_nc) {
    size_t width = c->config->hidden;
    for (size_t i = 0; i < c->census->n; i++) {
        double square = 0;
        for (size_t k = 0; k < width; k++) square += x_nc[i * width + k] * x_nc[i * width + k];
        layer->norm_i[i] = sqrt(square);
        layer->spike_i[i] = fabs(x_nc[i * width + layer->end.coordinate]);
    }
}

static void measure_norm(census_collector *c, size_t norm, const double *y_nc, census_norm *out) {
    size_t width = c->config->hidden;
    if (c->spikes.n == 0 || c->spike_norm != norm) return; // its state was not shown
    out->before = c->spikes.share;
    out->after = sinkproof_metric_spike_share(&c->spikes, width, y_nc + c->spike_position * width);
}

// Measures what was kept of the current layer.
static void close_layer(census_collector *c) {
    census_layer *layer = &c->census->layers[c->layer];
    bool directions = c->seen[TRACE_A4_Q] && c->seen[TRACE_A4_K], alone = c->model == NULL;
    if (directions && layer->source == WEIGHTS_UNKNOWN && !alone && !collector_compute_weights(c))
        fail_for_memory(c, "the weights");
    if (directions && !collector_take_cosines(c)) fail_for_memory(c, "the directions");
    if (layer->source != WEIGHTS_UNKNOWN && !alone && !collector_take_outputs(c))
        fail_for_memory(c, "the outputs");
    if (c->good && c->options->layer_end != NULL)
        c->good = c->options->layer_end(c->options->also_context, c->layer, c->error);
    memset(c->seen, 0, sizeof c->seen);
    if (c->options->progress != NULL)
        c->options->progress(c->options->progress_context,
                             (double)(c->layer + 1) / (double)c->config->n_layers);
}

// Closes the layers up to `layer`, also those that a trace does not contain.
static void close_layers_before(census_collector *c, size_t layer) {
    while (c->good && c->layer < layer) {
        close_layer(c);
        c->layer++;
    }
}

static void look_at_head(census_collector *c, sinkproof_trace_point point, size_t head,
                         const double *values) {
    census_layer *layer = &c->census->layers[c->layer];
    size_t n = c->census->n, heads = c->config->n_heads;
    size_t bytes_d = n * c->config->head_dim * sizeof(double);
    switch (point) {
    case TRACE_T0:
        measure_state(c, 0, values, &c->census->embedding);
        break;
    case TRACE_A1:
        measure_norm(c, 2 * c->layer, values, &layer->attention);
        break;
    case TRACE_A2_V:
        group_norms(c, values, false);
        break;
    case TRACE_A4_Q:
        memcpy(c->q_nhd, values, heads * bytes_d);
        break;
    case TRACE_A4_K:
        memcpy(c->k_ngd, values, c->config->n_kv_heads * bytes_d);
        group_norms(c, values, true);
        break;
    case TRACE_A9:
    case TRACE_A10: {
        bool bare = point == TRACE_A10;
        for (size_t h = 0; head == SIZE_MAX && h < heads; h++)
            collector_take_weights(c, h, bare, values + h * n * (n + !bare));
        if (head != SIZE_MAX) collector_take_weights(c, head, bare, values);
        break;
    }
    case TRACE_A11:
        memcpy(c->o_nhd, values, heads * bytes_d);
        break;
    case TRACE_A13:
        measure_state(c, 2 * c->layer + 1, values, &layer->middle);
        break;
    case TRACE_M1:
        measure_norm(c, 2 * c->layer + 1, values, &layer->experts);
        break;
    case TRACE_M12:
        measure_state(c, 2 * c->layer + 2, values, &layer->end);
        take_positions(c, layer, values);
        break;
    default:
        measure_norm(c, 2 * c->config->n_layers, values, &c->census->last);
        break;
    }
}

// A whole point of all n tokens, or one head of a point of heads by queries (head SIZE_MAX: all of
// them).
static void collect_point(census_collector *c, sinkproof_trace_point point, size_t layer,
                          size_t head, const double *values) {
    const sinkproof_census_options *options = c->options;
    size_t shape[SINKPROOF_MAX_RANK];
    if (!c->good || !point_is_taken(c, point)) return;
    size_t rank = sinkproof_trace_shape(c->config, point, c->census->n, shape);
    if (head != SIZE_MAX) shape[0] = 1;
    if (!check_finite(c, point, layer, head, rank, shape, values)) return;
    if (sinkproof_trace_point_is_layered(point)) close_layers_before(c, layer);
    if (point == TRACE_F1) close_layers_before(c, c->config->n_layers - 1);
    sinkproof_trace_point as = as_multiplied(c, point);
    c->seen[as] = c->ever[as] = true;
    if (c->good && (is_wanted(as) || is_bare(c, point))) look_at_head(c, as, head, values);
    if (c->good && options->also[point])
        c->good = options->point(options->also_context, point, layer, head, values, c->error);
}

// All points are through: what waits is measured, what nobody showed is named.
static bool finish_census(census_collector *c) {
    size_t used = 0;
    char *missing = c->census->missing;
    close_layers_before(c, c->config->n_layers - 1);
    if (c->good) close_layer(c);
    for (size_t w = 0; w < WANTED; w++) {
        // Weights that are not shown are computed: A9 is missing only if A4 is too.
        bool computed = c->ever[TRACE_A4_Q] && c->ever[TRACE_A4_K] && c->model != NULL;
        if (c->ever[wanted[w]] || (wanted[w] == TRACE_A9 && computed)) continue;
        used += (size_t)snprintf(missing + used, sizeof c->census->missing - used, "%s%s",
                                 used > 0 ? ", " : "", sinkproof_trace_point_name(wanted[w]));
    }
    return c->good;
}

// ---- a run, a trace ----------------------------------------------------------------------------

static void see_point(void *context, const char *name, size_t rank, const size_t *shape,
                      const double *values) {
    sinkproof_trace_point point;
    size_t layer;
    (void)rank;
    (void)shape;
    if (sinkproof_trace_name_parse(name, &point, &layer))
        collect_point(context, point, layer, SIZE_MAX, values);
}

// A run with hidden keys.
typedef struct hidden_run {
    census_collector *c;
    double *alpha_j;
} hidden_run;

static void hidden_attend(void *context, const layer_heads *heads) {
    hidden_run *run = context;
    layer_heads seen = *heads;
    seen.hidden = run->c->options->hidden;
    heads_attend(&seen, 0, heads->o_nhd, run->alpha_j);
}

static void hidden_see_point(void *context, sinkproof_trace_point point, size_t layer, size_t count,
                             const double *values) {
    hidden_run *run = context;
    (void)count;
    if (point != TRACE_A9 && point != TRACE_A10) // the engine's own weights saw the hidden keys
        collect_point(run->c, point, layer, SIZE_MAX, values);
}

static bool run_with_hidden(census_collector *c, sinkproof_runner *runner, size_t n,
                            const int32_t *tokens_n, sinkproof_error *error) {
    hidden_run run = {.c = c, .alpha_j = malloc(n * sizeof(double))};
    heads_observer w = {.context = &run, .heads = hidden_attend, .point = hidden_see_point};
    sinkproof_observer observer;
    bool good = run.alpha_j != NULL || sinkproof_fail(error, "no memory for a row of weights");
    good = good && heads_observer_begin(&w, c->model, n, &observer, error) &&
           sinkproof_runner_forward(runner, n, tokens_n, NULL, &observer, error);
    if (good && w.incomplete)
        good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
    if (run.alpha_j != NULL) heads_observer_free(&w);
    free(run.alpha_j);
    return good;
}

bool sinkproof_census_run(const sinkproof_model *model, sinkproof_runner *runner, size_t n,
                          const int32_t *tokens_n, const sinkproof_census_options *options,
                          sink_census *census, sinkproof_error *error) {
    census_collector c;
    sinkproof_observer observer = {.see = see_point, .context = &c, .no_logits = true};
    bool good = collector_new(&c, model, sinkproof_model_config(model), n, options, census, error);
    if (good && options->hidden.first > 0)
        good = run_with_hidden(&c, runner, n, tokens_n, error) && finish_census(&c);
    else if (good)
        good = sinkproof_runner_forward(runner, n, tokens_n, NULL, &observer, error) &&
               finish_census(&c);
    collector_free(&c);
    return good;
}

// Collects one point of a trace, or one head of it, in the order of the forward pass.
static bool collect_tensor(census_collector *c, const sinkproof_trace *trace,
                           sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *tensor =
        point_is_taken(c, point) ? sinkproof_trace_find(trace, point, layer) : NULL;
    if (tensor == NULL) return true;
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t pieces = by_head ? tensor->shape[0] : 1;
    size_t count = sinkproof_tensor_elements(tensor) / pieces;
    double *values = malloc(count * sizeof *values);
    if (values == NULL) fail_for_memory(c, sinkproof_trace_point_name(point));
    for (size_t p = 0; c->good && p < pieces; p++) {
        for (size_t i = 0; i < count; i++)
            values[i] = sinkproof_tensor_value(tensor, p * count + i);
        collect_point(c, point, layer, by_head ? p : SIZE_MAX, values);
    }
    free(values);
    return c->good;
}

bool sinkproof_census_trace(const sinkproof_model *model, const sinkproof_config *config,
                            const sinkproof_trace *trace, const sinkproof_census_options *options,
                            sink_census *census, sinkproof_error *error) {
    census_collector c;
    size_t n = sinkproof_trace_length(trace);
    bool good = collector_new(&c, model, config, n, options, census, error);
    c.file = sinkproof_trace_path(trace);
    good = good && collect_tensor(&c, trace, TRACE_T0, 0);
    for (size_t l = 0; good && l < c.config->n_layers; l++)
        for (int p = 0; good && p < TRACE_POINTS; p++)
            if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                good = collect_tensor(&c, trace, (sinkproof_trace_point)p, l);
    good = good && collect_tensor(&c, trace, TRACE_F1, 0) && finish_census(&c);
    collector_free(&c);
    return good;
}
