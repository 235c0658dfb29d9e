// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes a measured mechanism as JSON: for each layer the form before the split into heads, and
// each head's. Positions, layers and heads count from 0. NaN is null.
#include "audit/studies/mechanism/mechanism_show.h"
#include "audit/studies/sinks/part_shared.h"
#include "ref/metrics.h"

double mechanism_mean_alpha(const sinkproof_mechanism *m, size_t layer, size_t j) {
    size_t heads = m->config->n_heads;
    double sum = 0;
    for (size_t h = 0; h < heads; h++) sum += m->layers[layer].alpha_hj[h * m->n + j];
    return sum / (double)heads;
}

size_t mechanism_sink_count(const sinkproof_mechanism *m, size_t layer, size_t j, double epsilon) {
    size_t sinks = 0;
    for (size_t h = 0; h < m->config->n_heads; h++)
        sinks += sinkproof_metric_is_sink(m->layers[layer].alpha_hj[h * m->n + j], epsilon);
    return sinks;
}

double mechanism_mean_lead(const sinkproof_mechanism *m, size_t layer, sinkproof_term term) {
    size_t heads = m->config->n_heads;
    double sum = 0;
    for (size_t h = 0; h < heads; h++) sum += m->layers[layer].lead_hk[h * SINKPROOF_TERMS + term];
    return sum / (double)heads;
}

static void put_count(json_t *o, const char *name, size_t n) {
    json_object_set_new(o, name, part_count(n));
}

static json_t *epe_json(const sinkproof_mechanism *m) {
    json_t *o = json_object(), *massive = json_array();
    part_put_number(o, "mean", m->rule.mean);
    part_put_number(o, "deviation", m->rule.deviation);
    for (size_t i = 0; i < m->rule.n; i++) {
        double x = m->epe_ic[m->massive_at[i]];
        json_t *at = json_object();
        put_count(at, "coordinate", m->massive_at[i]);
        part_put_number(at, "value", x);
        part_put_number(at, "deviations", (fabs(x) - m->rule.mean) / m->rule.deviation);
        json_array_append_new(massive, at);
    }
    json_object_set_new(o, "massive", massive);
    json_object_set_new(o, "first", part_numbers(m->config->hidden, m->epe_ic));
    json_object_set_new(o, "check", part_numbers(m->n, m->epe_check_i));
    return o;
}

// Mean and deviation of all |gamma|, and gamma at the massive coordinates of EPE_1.
static json_t *gamma_json(const sinkproof_mechanism *m, const double *gamma_c) {
    sinkproof_massive_rule all = sinkproof_mechanism_spread(m->config->hidden, gamma_c);
    json_t *o = json_object(), *massive = json_array();
    part_put_number(o, "mean", all.mean);
    part_put_number(o, "deviation", all.deviation);
    for (size_t i = 0; i < m->rule.n; i++)
        json_array_append_new(massive, sinkproof_number_json(gamma_c[m->massive_at[i]]));
    json_object_set_new(o, "massive", massive);
    return o;
}

static json_t *lead_json(const double lead_k[SINKPROOF_TERMS]) {
    json_t *o = json_object();
    part_put_number(o, "content", lead_k[SINKPROOF_TERM_CONTENT]);
    part_put_number(o, "query", lead_k[SINKPROOF_TERM_QUERY]);
    part_put_number(o, "key", lead_k[SINKPROOF_TERM_KEY]);
    part_put_number(o, "constant", lead_k[SINKPROOF_TERM_CONSTANT]);
    return o;
}

static json_t *head_json(const sinkproof_mechanism *m, const mechanism_layer *layer, size_t h) {
    json_t *o = json_object();
    json_object_set_new(o, "delta", part_numbers(m->n, layer->delta_hj + h * m->n));
    json_object_set_new(o, "align", part_numbers(m->n, layer->align_hj + h * m->n));
    json_object_set_new(o, "gamma", gamma_json(m, layer->gamma_hc + h * m->config->hidden));
    json_object_set_new(o, "lead", lead_json(layer->lead_hk + h * SINKPROOF_TERMS));
    part_put_number(o, "apart", layer->apart_h[h]);
    json_object_set_new(o, "alpha", part_numbers(m->n, layer->alpha_hj + h * m->n));
    return o;
}

static json_t *layer_json(const sinkproof_mechanism *m, size_t l, double epsilon) {
    const mechanism_layer *layer = &m->layers[l];
    json_t *o = json_object(), *unsplit = json_object(), *alpha = json_array();
    json_t *sinks = json_array(), *heads = json_array();
    for (size_t j = 0; j < m->n; j++) {
        json_array_append_new(alpha, sinkproof_number_json(mechanism_mean_alpha(m, l, j)));
        json_array_append_new(sinks, part_count(mechanism_sink_count(m, l, j, epsilon)));
    }
    for (size_t h = 0; h < m->config->n_heads; h++)
        json_array_append_new(heads, head_json(m, layer, h));
    json_object_set_new(unsplit, "delta", part_numbers(m->n, layer->delta_j));
    json_object_set_new(unsplit, "align", part_numbers(m->n, layer->align_j));
    json_object_set_new(unsplit, "gamma", gamma_json(m, layer->gamma_c));
    put_count(o, "layer", l);
    json_object_set_new(o, "unsplit", unsplit);
    json_object_set_new(o, "alpha", alpha);
    json_object_set_new(o, "sinks", sinks);
    json_object_set_new(o, "heads", heads);
    return o;
}

json_t *sinkproof_mechanism_json(const sinkproof_mechanism *m,
                                 const sinkproof_mechanism_about *about) {
    json_t *o = json_object(), *rows = json_array(), *layers = json_array();
    json_t *input = json_string(about->input); // NULL if it is not UTF-8
    json_object_set_new(o, "input", input != NULL ? input : json_string("(no UTF-8)"));
    json_object_set_new(o, "label", json_string("estimated"));
    json_object_set_new(o, "interventions",
                        json_string(sinkproof_interventions_describe(&m->did).text));
    for (size_t r = 0; r < m->n_rows; r++) json_array_append_new(rows, part_count(m->row_at[r]));
    json_object_set_new(o, "zeroed_rows", rows);
    json_object_set_new(o, "policy", json_string(about->policy->name));
    json_object_set_new(o, "perceptron", json_string(about->normed ? "normed" : "raw"));
    put_count(o, "tokens", m->n);
    part_put_number(o, "epsilon", about->epsilon);
    part_put_number(o, "uniform", sinkproof_metric_uniform(m->n));
    json_object_set_new(o, "epe", epe_json(m));
    for (size_t l = 0; l < m->config->n_layers; l++)
        json_array_append_new(layers, layer_json(m, l, about->epsilon));
    json_object_set_new(o, "layers", layers);
    return o;
}
