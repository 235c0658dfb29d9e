// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks MODEL --quantise` and `--window`: outliers and eight bits, with and without
// sinks; the weight that the window excludes and the weight of the sink. As tables and as JSON.
#include "audit/studies/sinks/outliers.h"
#include "audit/studies/sinks/part.h"
#include "audit/studies/sinks/part_shared.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_synthetic(const sinkproof_sinks_job *job) {
    return strcmp(sinkproof_model_layout(job->model), "synthetic") == 0;
}

// A warning about what random weights cannot show.
static void print_synthetic(const sinkproof_sinks_job *job, FILE *out) {
    if (is_synthetic(job))
        fprintf(out, "These weights are drawn, not trained: what training makes of a sink, they "
                     "cannot show.\n");
}

// ---- outliers ----------------------------------------------------------------------------------

static void free_outliers(void *state) {
    outlier_study *all = state;
    for (outlier_study *s = all; s != NULL && s->of != NULL; s++) outlier_free(s);
    free(all);
}

static bool run_outliers(const sinkproof_sinks_job *job, const char *asked, void **state,
                         sinkproof_error *error) {
    bool without = sinkproof_runner_replaces(job->how.engine, job->policy, TRACE_A11);
    outlier_study *all = calloc(job->n_inputs + 1, sizeof *all);
    (void)asked;
    *state = all;
    if (all == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted(job->n_inputs, "input").text);
    for (size_t i = 0; i < job->n_inputs; i++) {
        part_share share = {job, i};
        if (!outlier_measure(job->model, job->runner, without, job->inputs[i].n,
                             job->inputs[i].tokens_n, part_report_share, &share, &all[i], error))
            return false;
    }
    return true;
}

// The maximum of each number over a point's layers.
static outlier_measures worst_over_layers(const outlier_study *s, size_t point, bool sinks) {
    outlier_measures out = {0};
    for (size_t l = 0; l < s->n_layers; l++) {
        const outlier_measures *o = outlier_at(s, l, point, sinks);
        out.most = o->most > out.most ? o->most : out.most;
        out.mean = o->mean > out.mean ? o->mean : out.mean;
        out.per_tensor = o->per_tensor > out.per_tensor ? o->per_tensor : out.per_tensor;
        out.per_token = o->per_token > out.per_token ? o->per_token : out.per_token;
        out.rest_per_tensor = fmax(out.rest_per_tensor, o->rest_per_tensor);
        out.rest_per_token = fmax(out.rest_per_token, o->rest_per_token);
    }
    if (s->n == 1) out.rest_per_tensor = out.rest_per_token = NAN;
    return out;
}

static const char *outlier_row_name(const outlier_study *s, bool first) {
    if (s->hidden) return first ? "as it is" : "hidden";
    return first ? "sinks" : "without";
}

// What the second row of each point is, or why there is none.
static void print_second(FILE *out, const outlier_study *s) {
    if (s->hidden)
        fprintf(out, "No head of this model has a sink of its own: it is measured once.\n");
    if (s->hidden && s->without)
        fprintf(out, "hidden: rows from %d on do not see the first key.\n", OUTLIER_FROM);
    else if (s->hidden && s->n <= OUTLIER_FROM)
        fprintf(out, "hidden: not measured, no row is left from which the first key could be.\n");
    else if (!s->without)
        fprintf(out, "%s: not measured, the engine does not go on from A11 under this policy.\n",
                s->hidden ? "hidden" : "Without sinks");
}

static void print_outliers(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const outlier_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        fprintf(out, "\n%s: outliers, and eight bits with one scale; the largest over the layers\n",
                job->inputs[i].text);
        fprintf(out, "%-6s %-8s %9s %9s %12s %12s %12s %12s\n", "", "", "max/rms", "mean of",
                "off,", "rows after", "off,", "rows after");
        fprintf(out, "%-6s %-8s %9s %9s %12s %12s %12s %12s\n", "point", "", "", "rows", "a tensor",
                "the first", "a token", "the first");
        for (size_t k = 0; k < 2 * OUTLIER_POINTS; k++) {
            bool sinks = k % 2 == 0;
            outlier_measures o = worst_over_layers(&all[i], k / 2, sinks);
            if (!sinks && !all[i].without) continue;
            fprintf(out, "%-6s %-8s %9.2f %9.2f %12.3e %12s %12.3e %12s\n",
                    sinkproof_trace_point_name(outlier_points[k / 2]),
                    outlier_row_name(&all[i], sinks), o.most, o.mean, o.per_tensor,
                    part_text("%.3e", o.rest_per_tensor).text, o.per_token,
                    part_text("%.3e", o.rest_per_token).text);
        }
        print_second(out, &all[i]);
    }
    fprintf(
        out,
        "max/rms: a row's largest number over its root mean square. off: root of the sum of "
        "squares of\nthe error, relative, of whole numbers from -127 to 127 times one scale: over "
        "all rows, and over\nthe rows after the first with the same scales, since a first row "
        "that is massive hides them in the sum.\nEstimated in binary64.\n");
    print_synthetic(job, out);
}

static void outliers_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const outlier_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++)
        for (size_t l = 0; l <= all[i].n_layers; l++)
            for (size_t k = 0; k < 2 * OUTLIER_POINTS; k++) {
                sinkproof_trace_point point = outlier_points[k / 2];
                const outlier_measures *o = outlier_at(&all[i], l, k / 2, k % 2 == 0);
                bool layered = sinkproof_trace_point_is_layered(point);
                if (layered != (l < all[i].n_layers) || isnan(o->most)) continue;
                json_array_append_new(
                    results,
                    json_pack("{s:s, s:s, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
                              "outliers", job->inputs[i].text, "label", "estimated", "layer",
                              layered ? part_count(l) : json_null(), "point",
                              sinkproof_trace_point_name(point), "sinks",
                              (int)(k % 2 == 0 && !all[i].hidden), "hidden",
                              (int)(k % 2 == 1 && all[i].hidden), "most",
                              sinkproof_number_json(o->most), "mean",
                              sinkproof_number_json(o->mean), "per_tensor",
                              sinkproof_number_json(o->per_tensor), "per_token",
                              sinkproof_number_json(o->per_token), "rest_per_tensor",
                              sinkproof_number_json(o->rest_per_tensor), "rest_per_token",
                              sinkproof_number_json(o->rest_per_token)));
            }
}

const sinkproof_sinks_part sinkproof_part_quantise = {
    .name = "quantise",
    .help =
        "outliers of states and of what meets weights, and what eight bits lose of them, of all "
        "rows and of those after the first, with sinks and without, or with the first key hidden "
        "where there are none",
    .needs_run = true,
    .run = run_outliers,
    .print = print_outliers,
    .json = outliers_json,
    .free = free_outliers,
};

// ---- the window --------------------------------------------------------------------------------

static bool run_window(const sinkproof_sinks_job *job, const char *asked, void **state,
                       sinkproof_error *error) {
    size_t n_layers = sinkproof_model_config(job->model)->n_layers;
    sink_handover *all = calloc(job->n_inputs * n_layers, sizeof *all);
    (void)asked;
    *state = all;
    if (all == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(n_layers, "layer").text);
    for (size_t i = 0; i < job->n_inputs; i++) {
        part_share share = {job, i};
        if (!handover_measure(job->model, job->runner, job->inputs[i].n, job->inputs[i].tokens_n,
                              part_report_share, &share, all + i * n_layers, error))
            return false;
    }
    return true;
}

static const char *number_cell(double x, char text[16]) {
    snprintf(text, 16, isnan(x) ? "-" : "%.5f", x);
    return text;
}

// "true" only if every layer agrees, "false" if none does.
static const char *layers_verdict(size_t says, size_t layers) {
    if (layers == 0) return "undecided";
    return says == layers ? "true" : says == 0 ? "false" : "undecided";
}

static void print_answer(FILE *out, const handover_answer *a) {
    if (a->layers == 0) {
        fprintf(out,
                "Whether the sink replaces the first token: undecided, no row of a window has left "
                "it behind.\n");
        return;
    }
    fprintf(out,
            "Of %s with a window the sink has, after, what the first token had before, or "
            "more, in %zu:\nthat it stands in for it is %s. Its own weight grew by as much in %zu: "
            "that "
            "it takes over is %s.\n",
            sinkproof_counted(a->layers, "layer").text, a->holds,
            layers_verdict(a->holds, a->layers), a->takes, layers_verdict(a->takes, a->layers));
}

static void print_window(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const sinkproof_config *c = sinkproof_model_config(job->model);
    const sink_handover *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sink_handover *layers = all + i * c->n_layers;
        handover_answer a = handover_decide(c->n_layers, layers);
        fprintf(out,
                "\n%s: mean weights before row %zu and from it on, where a window of %zu has left "
                "the first\ntoken behind\n%-6s %-7s %13s %13s %13s %13s\n",
                job->inputs[i].text, c->window, c->window, "layer", "window", "first before",
                "first after", "sink before", "sink after");
        for (size_t l = 0; l < c->n_layers; l++) {
            const sink_handover *h = &layers[l];
            char text[4][16];
            fprintf(out, "%-6zu %-7s %13s %13s %13s %13s\n", l, h->window > 0 ? "yes" : "no",
                    number_cell(h->first_before, text[0]), number_cell(h->first_after, text[1]),
                    number_cell(h->sink_before, text[2]), number_cell(h->sink_after, text[3]));
        }
        print_answer(out, &a);
    }
    fprintf(out, "Estimated in binary64 from the engine's queries and keys; rows from 1 on.\n");
    print_synthetic(job, out);
}

static void window_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const sinkproof_config *c = sinkproof_model_config(job->model);
    const sink_handover *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        handover_answer a = handover_decide(c->n_layers, all + i * c->n_layers);
        json_t *layers = json_array();
        for (size_t l = 0; l < c->n_layers; l++) {
            const sink_handover *h = &all[i * c->n_layers + l];
            json_array_append_new(
                layers, json_pack("{s:o, s:o, s:o, s:o, s:o}", "window", part_count(h->window),
                                  "first_before", sinkproof_number_json(h->first_before),
                                  "first_after", sinkproof_number_json(h->first_after),
                                  "sink_before", sinkproof_number_json(h->sink_before),
                                  "sink_after", sinkproof_number_json(h->sink_after)));
        }
        json_array_append_new(
            results,
            json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "handover",
                      job->inputs[i].text, "label", "estimated", "tokens",
                      part_count(job->inputs[i].n), "window", part_count(c->window), "stands_in",
                      layers_verdict(a.holds, a.layers), "takes_over",
                      layers_verdict(a.takes, a.layers), "decided", part_count(a.layers), "holds",
                      part_count(a.holds), "takes", part_count(a.takes), "layers", layers));
    }
}

const sinkproof_sinks_part sinkproof_part_window = {
    .name = "window",
    .help = "whether the sink stands where the first token was, on rows whose window has left that "
            "token behind",
    .needs_run = true,
    .run = run_window,
    .print = print_window,
    .json = window_json,
    .free = free,
};
