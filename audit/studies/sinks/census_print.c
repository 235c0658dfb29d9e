// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the census as text of 100 columns: a line for each input, then for each input its layers,
// with the heads summarised or one by one. A dash stands for an unknown number.
#include "audit/studies/sinks/census_json.h"
#include "audit/studies/sinks/figures.h"
#include "audit/studies/sinks/part_shared.h"
#include "base/share.h"
#include "base/words.h"

#include <math.h>
#include <string.h>

enum { SHOWN = 60 }; // characters of an input's text

// A quotient of two integers in percent, or a dash.
static part_cell percent_cell(size_t part, size_t whole) {
    part_cell c = {"-"};
    if (whole > 0)
        snprintf(c.text, sizeof c.text, "%.23s",
                 sinkproof_share_percent(sinkproof_metric_share(part, whole), 2).text);
    return c;
}

// ---- inputs ------------------------------------------------------------------------------------

static void print_share(FILE *out, const char *name, size_t n, const size_t *known,
                        const size_t *passing, size_t sequences) {
    part_cell shares[CENSUS_SHARES];
    for (size_t s = 0; s < CENSUS_SHARES; s++) shares[s] = percent_cell(passing[s], known[s]);
    fprintf(out, "%-34.34s %6zu %6zu %9s %9s %9s %19s\n", name, n, sequences, shares[0].text,
            shares[1].text, shares[2].text, shares[3].text);
}

static void print_inputs(FILE *out, const sinkproof_sinks_job *job) {
    fprintf(out, "%-34s %6s %6s %9s %9s %9s %19s\n", "input", "T", "runs", "Sink_1", "seen",
            "Sink_*", "Sink_* as published");
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sink_census *c = &job->inputs[i].census;
        size_t known[CENSUS_SHARES], passing[CENSUS_SHARES];
        for (size_t s = 0; s < CENSUS_SHARES; s++)
            known[s] = census_known_heads(c, census_shares[s]),
            passing[s] = census_passing_heads(c, census_shares[s]);
        print_share(out, job->inputs[i].text, c->n, known, passing, 1);
    }
    for (size_t i = 0; i < job->n_inputs; i++) {
        census_kind kind = census_input_kind(job, i);
        if (kind.first != i || kind.sequences < 2) continue;
        char name[64];
        snprintf(name, sizeof name, "all of %s", kind.name);
        print_share(out, name, kind.n, kind.known, kind.passing, kind.sequences);
    }
}

static void print_head_line(FILE *out, const sinkproof_sinks_job *job) {
    const sinkproof_config *config = job->config;
    fprintf(out, "%.90s: %s of %s on %s\n", job->model_name,
            sinkproof_counted(config->n_layers, "layer").text,
            sinkproof_counted(config->n_heads, "head").text,
            sinkproof_counted(config->n_kv_heads, "key/value head").text);
    if (job->trace != NULL)
        fprintf(out, "A trace; ");
    else
        fprintf(out, "Engine %s, policy %s; ", job->how.engine, job->policy->name);
    fprintf(out, "every number is estimated, in binary64, from what the points hold.\n");
    if (job->model == NULL)
        fprintf(
            out,
            "No model: layers and heads by the shapes; weights as the trace has them (A9, or A10 "
            "without\nthe sink's). What needs weights of a model, or its windows, is a dash.\n");
    else if (strcmp(sinkproof_model_layout(job->model), "synthetic") == 0)
        fprintf(out,
                "Its weights are drawn, not trained: what training makes of a first token is not "
                "in them.\n");
    if (job->hidden.first > 0)
        fprintf(out, "Rows from %zu on do not see the first %s.\n", job->hidden.from,
                job->hidden.first == 1 ? "key" : sinkproof_counted(job->hidden.first, "key").text);
    if (job->hidden.first > 0 && job->hidden.from == job->hidden.first)
        fprintf(out, "No other row sees them: the next token is the first of a text.\n");
    fprintf(out, "\n");
}

// The context that every share needs: epsilon and T.
static void print_trap(FILE *out, const sinkproof_sinks_job *job) {
    size_t least = job->inputs[0].n, most = least;
    for (size_t i = 1; i < job->n_inputs; i++) {
        least = job->inputs[i].n < least ? job->inputs[i].n : least;
        most = job->inputs[i].n > most ? job->inputs[i].n : most;
    }
    fprintf(out,
            "Sink_k: the share of the heads whose mean weight of key k, over rows k to T, is above "
            "%g;\nseen: over the rows that see key 1, in a window its first ones; Sink_*: of the "
            "sink's "
            "column.\n",
            job->epsilon);
    double uniform = sinkproof_metric_uniform(least);
    fprintf(out, "At T = %zu equal weights alone have alpha_1 = %.4f%s\n", least, uniform,
            sinkproof_metric_is_sink(uniform, job->epsilon)
                ? ":\na head that attends to nothing in "
                  "particular counts as a sink there."
                : ".");
    if (most > least) fprintf(out, "Shares at different T do not compare.\n");
}

// ---- layers ------------------------------------------------------------------------------------

// The mean over a layer's heads of the member at `offset`.
static double over_heads(const sink_census *c, const census_layer *layer, size_t offset) {
    double sum = 0;
    for (size_t h = 0; h < c->config->n_heads; h++)
        sum += *(const double *)(const void *)((const char *)&layer->heads[h] + offset);
    return sum / (double)c->config->n_heads;
}
#define OVER(c, layer, member) over_heads(c, layer, offsetof(census_head, member))

// The smallest (sign -1) or the largest (1) of the heads' numbers; NaN if one is NaN.
static double heads_extreme(const sink_census *c, const census_layer *layer, double sign,
                            size_t offset) {
    double end = -INFINITY;
    for (size_t h = 0; h < c->config->n_heads; h++) {
        double x = *(const double *)(const void *)((const char *)&layer->heads[h] + offset);
        if (!(sign * x <= end)) end = sign * x;
        if (isnan(x)) return NAN;
    }
    return sign * end;
}
#define END_OF(c, layer, sign, member) heads_extreme(c, layer, sign, offsetof(census_head, member))

static void print_weight_row(FILE *out, const char *name, const char *keys, const double *x) {
    fprintf(
        out, "%-7s %6s %7s %7s %7s %8s %8s %8s %8s %9s %9s\n", name, keys,
        part_text("%.4f", x[0]).text, part_text("%.4f", x[1]).text, part_text("%.4f", x[2]).text,
        part_text("%.4f", x[3]).text, part_text("%.4f", x[4]).text, part_text("%.4f", x[5]).text,
        part_text("%.4f", x[6]).text, part_text("%.3g", x[7]).text, part_text("%.3g", x[8]).text);
}

static void print_head(FILE *out, const census_head *head, size_t h) {
    char name[24];
    snprintf(name, sizeof name, "  .%zu", h);
    print_weight_row(out, name, "",
                     (double[]){head->sink.mean, head->sink.least, head->sink.most, head->mass.mean,
                                head->first, head->first, head->first_seen, head->intensity,
                                head->share});
}

static void print_weights(FILE *out, const sink_census *c, bool every_head) {
    fprintf(out, "\n%-7s %6s %23s %8s %26s %19s\n%-7s %6s %7s %7s %7s %8s %8s %8s %8s %9s %9s\n",
            "weights", "", "alpha_s of the sink", "mass of", "alpha_1 of the first key",
            "value bias behind W_O", "layer", "keys", "mean", "least", "most", "keys", "mean",
            "most", "seen", "length", "share");
    for (size_t l = 0; l < c->config->n_layers; l++) {
        const census_layer *layer = &c->layers[l];
        char name[24], keys[24] = "all";
        snprintf(name, sizeof name, "%zu", l);
        if (!c->windows_known) snprintf(keys, sizeof keys, "-");
        if (layer->window > 0) snprintf(keys, sizeof keys, "%zu", layer->window);
        print_weight_row(out, name, keys,
                         (double[]){OVER(c, layer, sink.mean), END_OF(c, layer, -1, sink.least),
                                    END_OF(c, layer, 1, sink.most), OVER(c, layer, mass.mean),
                                    OVER(c, layer, first), END_OF(c, layer, 1, first),
                                    OVER(c, layer, first_seen), OVER(c, layer, intensity),
                                    OVER(c, layer, share)});
        for (size_t h = 0; every_head && h < c->config->n_heads; h++)
            print_head(out, &layer->heads[h], h);
    }
}

static double drain_ratio(const sink_census *c, const census_layer *layer, bool keys) {
    double sum = 0;
    for (size_t g = 0; g < c->config->n_kv_heads; g++) {
        const sinkproof_drain *drain = keys ? &layer->groups[g].keys : &layer->groups[g].values;
        sum += drain->first / drain->median;
    }
    return sum / (double)c->config->n_kv_heads;
}

static void print_state_row(FILE *out, const char *name, const char *ratios,
                            const sinkproof_massive *m, const census_norm *norm) {
    char at[48] = "-";
    if (!isnan(m->largest)) snprintf(at, sizeof at, "%zu, %zu", m->position, m->coordinate);
    fprintf(out, "%-7s %s %8s %11s %8s %9s %8s %8s\n", name, ratios,
            part_text("%.4g", m->largest).text, at, part_text("%.1f", m->ratio).text,
            part_text("%.3f", m->first / m->others).text, part_text("%.4f", norm->before).text,
            part_text("%.4f", norm->after).text);
}

static void print_states(FILE *out, const sink_census *c) {
    static const char none[] = "                                  ";
    fprintf(out, "\n%-7s %15s %18s %39s %17s\n%-7s %7s %7s %8s %9s %8s %11s %8s %9s %8s %8s\n",
            "states", "first / median", "mean cosine with", "largest activation of the stream",
            "three spikes", "layer", "value", "key", "key 1", "others", "size", "token, dim",
            "/median", "|x_1|/|x|", "before", "in norm");
    print_state_row(out, "T0", none, &c->embedding, &c->layers[0].attention);
    for (size_t l = 0; l < c->config->n_layers; l++) {
        const census_layer *layer = &c->layers[l];
        const census_norm *next =
            l + 1 < c->config->n_layers ? &c->layers[l + 1].attention : &c->last;
        char name[24], ratios[128];
        snprintf(name, sizeof name, "%zu", l);
        snprintf(ratios, sizeof ratios, "%7s %7s %8s %9s",
                 part_text("%.3f", drain_ratio(c, layer, false)).text,
                 part_text("%.3f", drain_ratio(c, layer, true)).text,
                 part_text("%.4f", OVER(c, layer, cosines.first)).text,
                 part_text("%.4f", OVER(c, layer, cosines.others)).text);
        print_state_row(out, name, ratios, &layer->end, next);
    }
}

static void print_notes(FILE *out, const sink_census *c) {
    size_t computed = 0, shown = 0, bare = 0;
    double bias = 0;
    for (size_t l = 0; l < c->config->n_layers; l++) {
        computed += c->layers[l].source == WEIGHTS_COMPUTED;
        shown += c->layers[l].source == WEIGHTS_SHOWN;
        bare += c->layers[l].source == WEIGHTS_BARE;
        for (size_t h = 0; h < c->config->n_heads; h++) bias += c->layers[l].heads[h].bias;
    }
    fprintf(out, "\nWeights: ");
    if (shown > 0) fprintf(out, "of %zu of the layers as the engine holds them (A9)", shown);
    if (bare > 0)
        fprintf(out, "%sof %zu of the layers as the engine holds them without the sink's (A10)",
                shown > 0 ? ", " : "", bare);
    if (computed > 0)
        fprintf(out, "%sof %zu of the layers computed from its rotated queries and keys (A4)",
                shown > 0 ? ", " : "", computed);
    if (shown + bare + computed == 0)
        fprintf(out, "in no layer, for want of A9, and of A4.q and A4.k");
    fprintf(out, ".\n");
    if (bias == 0)
        fprintf(out, "The value biases are 0 in every layer: nothing of them is left.\n");
    if (c->missing[0] != '\0') fprintf(out, "No layer shows %s.\n", c->missing);
}

// ---- the part ----------------------------------------------------------------------------------

static void print_census(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    (void)state;
    print_head_line(out, job);
    print_inputs(out, job);
    print_trap(out, job);
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sink_census *c = &job->inputs[i].census;
        fprintf(out, "\n%.*s, T = %zu\n", SHOWN, job->inputs[i].text, c->n);
        print_weights(out, c, job->every_head);
        print_states(out, c);
        print_notes(out, c);
    }
}

const sinkproof_sinks_part sinkproof_part_census = {.name = "census",
                                                    .print = print_census,
                                                    .json = census_json,
                                                    .html = census_html,
                                                    .draw = census_draw};
