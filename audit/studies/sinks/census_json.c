// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes the census as JSON: an object for each input with its layers and their heads, and one for
// each kind of input with several inputs. Unknown numbers are null.
#include "audit/studies/sinks/census_json.h"
#include "audit/studies/sinks/part_shared.h"

#include <math.h>
#include <string.h>

enum { FIRST_KEYS = 10 }; // as many as the published code prints

static json_t *share_json(size_t part, size_t whole) {
    return sinkproof_number_json(sinkproof_metric_share(part, whole));
}

const size_t census_shares[CENSUS_SHARES] = {0, CENSUS_FIRST_SEEN, CENSUS_STAR,
                                             CENSUS_STAR_PUBLISHED};

// All shares but the first, which an input lists with its first keys.
static void put_shares(json_t *o, const size_t *passing, const size_t *known) {
    json_object_set_new(o, "sink_1_seen", share_json(passing[1], known[1]));
    json_object_set_new(o, "sink_star", share_json(passing[2], known[2]));
    json_object_set_new(o, "sink_star_published", share_json(passing[3], known[3]));
}

// ---- inputs of a kind --------------------------------------------------------------------------

static const char *kind_name(const sinkproof_sinks_job *job, size_t input) {
    const char *text = job->inputs[input].text;
    const char *rest = text + strspn(text, "0123456789,");
    bool bos = strncmp(text, "bos+", 4) == 0, ids = rest > text && rest[0] == '+';
    if (job->trace != NULL) return "trace";
    if (bos || ids) rest = bos ? text + 4 : rest + 1;
    if (strncmp(rest, "random:", 7) == 0) return bos ? "bos+random" : ids ? "ids+random" : "random";
    if (strncmp(rest, "repeat:", 7) == 0) return bos ? "bos+repeat" : ids ? "ids+repeat" : "repeat";
    return text[0] == '@' ? "files" : "ids";
}

census_kind census_input_kind(const sinkproof_sinks_job *job, size_t input) {
    census_kind kind = {.n = job->inputs[input].n, .first = job->n_inputs};
    snprintf(kind.name, sizeof kind.name, "%s", kind_name(job, input));
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sink_census *c = &job->inputs[i].census;
        if (c->n != kind.n || strcmp(kind_name(job, i), kind.name) != 0) continue;
        if (i < kind.first) kind.first = i;
        kind.sequences++;
        for (size_t s = 0; s < CENSUS_SHARES; s++)
            kind.known[s] += census_known_heads(c, census_shares[s]),
                kind.passing[s] += census_passing_heads(c, census_shares[s]);
    }
    return kind;
}

static json_t *kind_json(const census_kind *kind, double epsilon) {
    json_t *o =
        json_pack("{s:s, s:s, s:I, s:I, s:f, s:I}", "kind", kind->name, "label", "estimated",
                  "tokens", (json_int_t)kind->n, "sequences", (json_int_t)kind->sequences,
                  "epsilon", epsilon, "heads", (json_int_t)kind->known[0]);
    json_object_set_new(o, "sink_1", share_json(kind->passing[0], kind->known[0]));
    put_shares(o, kind->passing, kind->known);
    return o;
}

// ---- a layer -----------------------------------------------------------------------------------

static json_t *span_json(const sinkproof_span *span) {
    json_t *o = json_object();
    part_put_number(o, "mean", span->mean);
    part_put_number(o, "least", span->least);
    part_put_number(o, "most", span->most);
    return o;
}

static json_t *drain_json(const sinkproof_drain *drain) {
    json_t *o = json_object();
    part_put_number(o, "first", drain->first);
    part_put_number(o, "mean", drain->mean);
    part_put_number(o, "median", drain->median);
    return o;
}

static json_t *massive_json(const sinkproof_massive *m) {
    if (isnan(m->largest)) return json_null();
    json_t *o = json_object();
    part_put_number(o, "largest", m->largest);
    json_object_set_new(o, "token", part_count(m->position));
    json_object_set_new(o, "coordinate", part_count(m->coordinate));
    part_put_number(o, "median", m->median);
    part_put_number(o, "ratio", m->ratio);
    part_put_number(o, "first_norm", m->first);
    part_put_number(o, "other_norm", m->others);
    return o;
}

static json_t *norm_json(const census_norm *norm) {
    json_t *o = json_object();
    part_put_number(o, "before", norm->before);
    part_put_number(o, "after", norm->after);
    return o;
}

static json_t *head_json(const sink_census *c, const census_layer *layer, size_t h) {
    const census_head *head = &layer->heads[h];
    size_t keys = c->n < FIRST_KEYS ? c->n : FIRST_KEYS;
    bool known = layer->source != WEIGHTS_UNKNOWN;
    json_t *o = json_object();
    json_object_set_new(o, "group", part_count(head->group));
    json_object_set_new(o, "sink", span_json(&head->sink));
    json_object_set_new(o, "mass", span_json(&head->mass));
    json_object_set_new(o, "alpha",
                        known ? part_numbers(keys, layer->alpha_hk + h * c->n) : json_null());
    part_put_number(o, "alpha_1_seen", head->first_seen);
    part_put_number(o, "alpha_star", head->star);
    part_put_number(o, "alpha_star_published", head->star_published);
    part_put_number(o, "bias", head->bias);
    part_put_number(o, "intensity", head->intensity);
    part_put_number(o, "output", head->output);
    part_put_number(o, "share", head->share);
    part_put_number(o, "cosine_1", head->cosines.first);
    part_put_number(o, "cosine_others", head->cosines.others);
    return o;
}

// The means over the heads, for each row.
static json_t *means_by_position(const sink_census *c, const double *x_hi) {
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++) {
        double sum = 0;
        for (size_t h = 0; h < c->config->n_heads; h++) sum += x_hi[h * c->n + i];
        json_array_append_new(list, sinkproof_number_json(sum / (double)c->config->n_heads));
    }
    return list;
}

static json_t *layer_json(const sink_census *c, size_t l) {
    static const char *const sources[] = {"unknown", "A9", "A10", "A4"};
    const census_layer *layer = &c->layers[l];
    json_t *o = json_object(), *heads = json_array(), *values = json_array(), *keys = json_array();
    for (size_t h = 0; h < c->config->n_heads; h++)
        json_array_append_new(heads, head_json(c, layer, h));
    for (size_t g = 0; g < c->config->n_kv_heads; g++) {
        json_array_append_new(values, drain_json(&layer->groups[g].values));
        json_array_append_new(keys, drain_json(&layer->groups[g].keys));
    }
    json_object_set_new(o, "layer", part_count(l));
    json_object_set_new(o, "window", layer->window > 0 ? part_count(layer->window) : json_null());
    json_object_set_new(o, "weights", json_string(sources[layer->source]));
    json_object_set_new(o, "heads", heads);
    json_object_set_new(o, "values", values);
    json_object_set_new(o, "keys", keys);
    json_object_set_new(o, "sink_by_position", means_by_position(c, layer->sink_hi));
    json_object_set_new(o, "mass_by_position", means_by_position(c, layer->mass_hi));
    json_object_set_new(o, "intensity_by_position", part_numbers(c->n, layer->intensity_i));
    json_object_set_new(o, "share_by_position", part_numbers(c->n, layer->share_i));
    json_object_set_new(o, "norm_by_position", part_numbers(c->n, layer->norm_i));
    json_object_set_new(o, "spike_by_position", part_numbers(c->n, layer->spike_i));
    json_object_set_new(o, "A13", massive_json(&layer->middle));
    json_object_set_new(o, "M12", massive_json(&layer->end));
    json_object_set_new(o, "A1", norm_json(&layer->attention));
    json_object_set_new(o, "M1", norm_json(&layer->experts));
    return o;
}

// ---- an input ----------------------------------------------------------------------------------

static json_t *input_json(const sinkproof_sinks_input *input, heads_hidden hidden) {
    const sink_census *c = &input->census;
    size_t known[CENSUS_SHARES], passing[CENSUS_SHARES];
    for (size_t s = 0; s < CENSUS_SHARES; s++)
        known[s] = census_known_heads(c, census_shares[s]),
        passing[s] = census_passing_heads(c, census_shares[s]);
    json_t *o = json_object(), *first = json_array(), *layers = json_array();
    for (size_t k = 0; k < c->n && k < FIRST_KEYS; k++)
        json_array_append_new(first, share_json(census_passing_heads(c, k), known[0]));
    for (size_t l = 0; l < c->config->n_layers; l++)
        json_array_append_new(layers, layer_json(c, l));
    json_object_set_new(o, "input", json_string(input->text));
    json_object_set_new(o, "label", json_string("estimated"));
    json_object_set_new(o, "tokens", part_count(c->n));
    part_put_number(o, "epsilon", c->epsilon);
    part_put_number(o, "uniform", sinkproof_metric_uniform(c->n));
    json_object_set_new(o, "heads", part_count(known[0]));
    json_object_set_new(o, "sink", first);
    put_shares(o, passing, known);
    json_object_set_new(o, "missing", json_string(c->missing));
    json_object_set_new(o, "T0", massive_json(&c->embedding));
    json_object_set_new(o, "F1", norm_json(&c->last));
    json_object_set_new(o, "layers", layers);
    if (hidden.first > 0) json_object_set_new(o, "hidden", part_count(hidden.first));
    if (hidden.first > 0) json_object_set_new(o, "hidden_from", part_count(hidden.from));
    return o;
}

void census_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    (void)state;
    for (size_t i = 0; i < job->n_inputs; i++)
        json_array_append_new(results, input_json(&job->inputs[i], job->hidden));
    for (size_t i = 0; i < job->n_inputs; i++) {
        census_kind kind = census_input_kind(job, i);
        if (kind.first == i && kind.sequences > 1)
            json_array_append_new(results, kind_json(&kind, job->epsilon));
    }
}
