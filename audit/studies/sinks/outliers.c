// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures outliers, the error of eight bits, and the handover from the first token to the sink.
#include "audit/studies/sinks/outliers.h"

#include "audit/studies/sinks/heads.h"
#include "base/words.h"
#include "proofs/bounds/mixing.h"
#include "proofs/bounds/worst.h"

#include <math.h>
#include <stdlib.h>

// ---- outliers ----------------------------------------------------------------------------------

const sinkproof_trace_point outlier_points[OUTLIER_POINTS] = {
    TRACE_T0, TRACE_A1, TRACE_A11, TRACE_A13, TRACE_M1, TRACE_M12, TRACE_F1};

static double relative_error(size_t count, const double *x, const double *kept) {
    sinkproof_moved moved = sinkproof_row_distance(count, x, kept);
    return moved.off == 0 ? 0 : moved.off / moved.size;
}

// work: n width doubles.
static outlier_measures measure_outliers(size_t n, size_t width, const double *x_nc, double *work) {
    outlier_measures out = {0};
    for (size_t i = 0; i < n; i++) {
        double most = 0, square = 0;
        const double *x_c = x_nc + i * width;
        for (size_t c = 0; c < width; c++) {
            most = sinkproof_keep_worst(most, fabs(x_c[c]));
            square += x_c[c] * x_c[c];
        }
        double ratio = most == 0 ? 1 : most / sqrt(square / (double)width);
        out.most = sinkproof_keep_worst(out.most, ratio);
        out.mean += ratio / (double)n;
        sinkproof_quantise(8, width, x_c, work + i * width);
    }
    size_t rest = (n - 1) * width;
    out.per_token = relative_error(n * width, x_nc, work);
    out.rest_per_token = n > 1 ? relative_error(rest, x_nc + width, work + width) : NAN;
    sinkproof_quantise(8, n * width, x_nc, work);
    out.per_tensor = relative_error(n * width, x_nc, work);
    out.rest_per_tensor = n > 1 ? relative_error(rest, x_nc + width, work + width) : NAN;
    return out;
}

typedef struct outlier_run {
    outlier_study *out;
    bool without;
    double *alpha_j, *work;
    void (*progress)(void *context, double share);
    void *progress_context;
} outlier_run;

static size_t outlier_index(const outlier_study *study, size_t layer, size_t point, bool sinks) {
    bool layered = sinkproof_trace_point_is_layered(outlier_points[point]);
    return ((layered ? layer : study->n_layers) * OUTLIER_POINTS + point) * 2 + (sinks ? 0 : 1);
}

static void outlier_look_at_point(void *context, sinkproof_trace_point point, size_t layer,
                                  size_t count, const double *values) {
    outlier_run *r = context;
    for (size_t p = 0; p < OUTLIER_POINTS; p++)
        if (outlier_points[p] == point)
            r->out->of[outlier_index(r->out, layer, p, !r->without)] =
                measure_outliers(r->out->n, count / r->out->n, values, r->work);
    if (point != TRACE_M12 || r->progress == NULL) return;
    double half = (double)(layer + 1) / (double)r->out->n_layers;
    r->progress(r->progress_context, !r->out->without ? half : (half + r->without) / 2);
}

static void outlier_attend(void *context, const layer_heads *heads) {
    outlier_run *r = context;
    layer_heads seen = *heads;
    if (r->out->hidden) seen.hidden = (heads_hidden){1, OUTLIER_FROM};
    if (r->without) heads_attend(&seen, r->out->hidden ? 0 : -INFINITY, heads->o_nhd, r->alpha_j);
}

bool outlier_measure(const sinkproof_model *model, sinkproof_runner *runner, bool without, size_t n,
                     const int32_t *tokens_n, void (*progress)(void *context, double share),
                     void *progress_context, outlier_study *study, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t heads = c->n_heads * c->head_dim, width = heads > c->hidden ? heads : c->hidden;
    size_t places = (c->n_layers + 1) * OUTLIER_POINTS * 2;
    outlier_run r = {.out = study, .progress = progress, .progress_context = progress_context};
    bool hidden = heads_have_no_sinks(c);
    without = without && (!hidden || n > OUTLIER_FROM);
    *study = (outlier_study){.n_layers = c->n_layers, .n = n, .without = without, .hidden = hidden};
    study->of = malloc(places * sizeof *study->of);
    r.alpha_j = malloc(n * sizeof(double));
    r.work = malloc(n * width * sizeof(double));
    bool good =
        (study->of != NULL && r.alpha_j != NULL && r.work != NULL) ||
        sinkproof_fail(error, "no memory for the states of %s", sinkproof_counted(n, "token").text);
    for (size_t k = 0; good && k < places; k++)
        study->of[k] = (outlier_measures){NAN, NAN, NAN, NAN, NAN, NAN};
    for (int run = 0; good && run < (without ? 2 : 1); run++) {
        sinkproof_observer observer;
        heads_observer w = {.context = &r, .heads = outlier_attend, .point = outlier_look_at_point};
        r.without = run == 1;
        sinkproof_runner_reset(runner);
        good = heads_observer_begin(&w, model, n, &observer, error) &&
               sinkproof_runner_forward(runner, n, tokens_n, NULL, &observer, error);
        if (good && r.without && w.incomplete)
            good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
        heads_observer_free(&w);
    }
    free(r.alpha_j);
    free(r.work);
    return good;
}

const outlier_measures *outlier_at(const outlier_study *study, size_t layer, size_t point,
                                   bool sinks) {
    return &study->of[outlier_index(study, layer, point, sinks)];
}

void outlier_free(outlier_study *study) {
    free(study->of);
    study->of = NULL;
}

// ---- the window --------------------------------------------------------------------------------

typedef struct handover_run {
    sink_handover *layers;
    double *alpha_j;
    void (*progress)(void *context, double share);
    void *progress_context;
} handover_run;

static void handover_measure_layer(void *context, const layer_heads *heads) {
    handover_run *r = context;
    const sinkproof_config *c = heads->config;
    double first[2] = {0}, own[2] = {0}; // before, after
    size_t rows[2] = {0};
    for (size_t h = 0; h < c->n_heads; h++)
        for (size_t i = 1; i < heads->n; i++) {
            double sink;
            int after = i >= c->window;
            heads_row_weights(heads, h, i, heads->b_hi[h * heads->n + i], r->alpha_j, &sink);
            first[after] += r->alpha_j[0];
            own[after] += sink;
            rows[after]++;
        }
    r->layers[heads->layer] = (sink_handover){.window = heads->window,
                                              .first_before = first[0] / (double)rows[0],
                                              .first_after = first[1] / (double)rows[1],
                                              .sink_before = own[0] / (double)rows[0],
                                              .sink_after = own[1] / (double)rows[1]};
    if (r->progress != NULL)
        r->progress(r->progress_context, (double)(heads->layer + 1) / (double)c->n_layers);
}

bool handover_measure(const sinkproof_model *model, sinkproof_runner *runner, size_t n,
                      const int32_t *tokens_n, void (*progress)(void *context, double share),
                      void *progress_context, sink_handover *layers, sinkproof_error *error) {
    handover_run r = {.layers = layers,
                      .alpha_j = malloc(n * sizeof(double)),
                      .progress = progress,
                      .progress_context = progress_context};
    sinkproof_observer observer;
    heads_observer w = {.context = &r, .heads = handover_measure_layer};
    if (r.alpha_j == NULL)
        return sinkproof_fail(error, "no memory for a row of %s",
                              sinkproof_counted(n, "weight").text);
    sinkproof_runner_reset(runner);
    bool good = heads_observer_begin(&w, model, n, &observer, error) &&
                sinkproof_runner_forward(runner, n, tokens_n, NULL, &observer, error);
    if (good && w.incomplete)
        good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
    heads_observer_free(&w);
    free(r.alpha_j);
    return good;
}

// NAN does not count: no row is beyond the window.
handover_answer handover_decide(size_t n_layers, const sink_handover *layers) {
    handover_answer out = {0};
    for (size_t l = 0; l < n_layers; l++) {
        if (layers[l].window == 0 || isnan(layers[l].sink_after) || isnan(layers[l].sink_before))
            continue;
        out.layers++;
        out.holds += layers[l].sink_after >= layers[l].first_before;
        out.takes += layers[l].sink_after - layers[l].sink_before >= layers[l].first_before;
    }
    return out;
}
