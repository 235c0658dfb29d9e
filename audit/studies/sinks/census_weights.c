// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The census of a layer's heads: their weights, shown or computed a block of rows at a time; the
// effect of the value bias after W^O; directions of queries and keys. Heads are independent, so the
// number of threads changes no bit.
#include "audit/studies/sinks/census_internal.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; // rows of a map at a time

// ---- weights -----------------------------------------------------------------------------------

// Sums over the processed rows of a head.
typedef struct head_sums {
    double *sum_k;           // [n] of each column
    double seen;             // sum of column 0 over the rows that see it
    size_t rows_seen;        // number of those rows
    double *sink_i, *mass_i; // [n] in the census
} head_sums;

static census_layer *collector_layer(const census_collector *c) {
    return &c->census->layers[c->layer];
}

static head_sums head_row_sums(const census_collector *c, size_t h) {
    census_layer *layer = collector_layer(c);
    size_t at = h * c->census->n;
    return (head_sums){.sum_k = layer->alpha_hk + at,
                       .sink_i = layer->sink_hi + at,
                       .mass_i = layer->mass_hi + at};
}

static bool hides_first(const census_collector *c, size_t row) {
    return c->options->hidden.first > 0 && row >= c->options->hidden.from;
}

static void add_rows(const census_collector *c, head_sums *sums, const sinkproof_map_rows *block) {
    size_t window = collector_layer(c)->window;
    for (size_t r = 0; r < block->rows; r++) {
        size_t i = block->first + r, keys = i + 1 - block->from;
        const double *alpha_j = block->alpha_ij + r * block->stride;
        double mass = 0;
        for (size_t j = 0; j < keys; j++) mass += alpha_j[j];
        sinkproof_metric_add_row(block->from, keys, alpha_j, sums->sum_k);
        sums->mass_i[i] = mass;
        sums->sink_i[i] = block->sink_i[r];
        if (sinkproof_mask_first(window, i) > 0 || hides_first(c, i)) continue;
        sums->seen += alpha_j[0]; // the row sees key 0: `from` is 0
        sums->rows_seen++;
    }
    if (c->options->map != NULL) c->options->map(c->options->map_context, block);
}

// Call it after all rows of head h.
static void close_head(const census_collector *c, size_t h, const head_sums *sums) {
    size_t n = c->census->n;
    census_head *head = &collector_layer(c)->heads[h];
    for (size_t k = 0; k < n; k++) sums->sum_k[k] = sinkproof_metric_alpha(n, k, sums->sum_k[k]);
    head->first = sums->sum_k[0];
    // A trace alone does not say which rows see it.
    head->first_seen = c->model != NULL ? sums->seen / (double)sums->rows_seen : NAN;
    head->sink = sinkproof_metric_span(n, sums->sink_i);
    head->mass = sinkproof_metric_span(n, sums->mass_i);
    head->star = sinkproof_metric_star(n, sums->sink_i);
    head->star_published = sinkproof_metric_star_published(n, sums->sink_i);
}

void collector_take_weights(census_collector *c, size_t h, bool bare, const double *alpha_ij) {
    size_t n = c->census->n, stride = bare ? n : n + 1;
    head_sums sums = head_row_sums(c, h);
    double sink_i[ROWS];
    for (size_t i = 0; i < n; i += ROWS) {
        size_t rows = n - i < ROWS ? n - i : ROWS;
        for (size_t r = 0; r < rows; r++) sink_i[r] = bare ? NAN : alpha_ij[(i + r) * stride + n];
        add_rows(c, &sums,
                 &(sinkproof_map_rows){.layer = c->layer,
                                       .head = h,
                                       .first = i,
                                       .rows = rows,
                                       .keys = i + rows,
                                       .stride = stride,
                                       .alpha_ij = alpha_ij + i * stride,
                                       .sink_i = sink_i});
    }
    close_head(c, h, &sums);
    collector_layer(c)->source = bare ? WEIGHTS_BARE : WEIGHTS_SHOWN;
}

// Computes the rows from i on, with the keys from the first that any of them sees to the last row's
// own.
static void compute_rows(const census_collector *c, const sinkproof_policy *policy, size_t h,
                         const sinkproof_normaliser *normaliser, size_t i, double *work,
                         head_sums *sums) {
    const sinkproof_config *config = c->config;
    size_t n = c->census->n, d = config->head_dim, rows = n - i < ROWS ? n - i : ROWS;
    size_t window = collector_layer(c)->window, from = sinkproof_mask_first(window, i);
    size_t g = h / (config->n_heads / config->n_kv_heads);
    sinkproof_block block = {.rows = rows,
                             .keys = i + rows - from,
                             .first = i - from,
                             .window = window,
                             .head_dim = d,
                             .q_stride = config->n_heads * d,
                             .kv_stride = config->n_kv_heads * d};
    double *s_ij = work, *alpha_ij = s_ij + rows * block.keys, b_i[ROWS], sink_i[ROWS];
    const double *q_id = c->q_nhd + i * block.q_stride + h * d;
    sinkproof_scores(policy, &block, q_id, c->k_ngd + from * block.kv_stride + g * d, s_ij);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = from; hides_first(c, i + r) && j < c->options->hidden.first; j++)
            s_ij[r * block.keys + j - from] = -INFINITY;
    sinkproof_sink_logits(policy, &block, normaliser, q_id, b_i);
    sinkproof_softmax_sink(policy, &block, b_i, s_ij, alpha_ij);
    for (size_t r = 0; r < rows; r++) sink_i[r] = alpha_ij[r * (block.keys + 1) + block.keys];
    add_rows(c, sums,
             &(sinkproof_map_rows){.layer = c->layer,
                                   .head = h,
                                   .first = i,
                                   .rows = rows,
                                   .from = from,
                                   .keys = block.keys,
                                   .stride = block.keys + 1,
                                   .alpha_ij = alpha_ij,
                                   .sink_i = sink_i});
}

bool collector_compute_weights(census_collector *c) {
    const sinkproof_config *config = c->config;
    sinkproof_layer layer = sinkproof_model_layer(c->model, c->layer);
    sinkproof_policy policy;
    size_t n = c->census->n;
    bool good = sinkproof_policy_known("real-f64", &policy);
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : good)
    for (size_t h = 0; h < config->n_heads; h++) {
        double *sink = malloc(sinkproof_normaliser_work(config) * sizeof *sink);
        double *work = malloc(ROWS * (2 * n + 1) * sizeof *work);
        good = good && sink != NULL && work != NULL;
        if (sink != NULL && work != NULL) {
            sinkproof_normaliser normaliser = sinkproof_head_normaliser(config, &layer, h, sink);
            head_sums sums = head_row_sums(c, h);
            for (size_t i = 0; i < n; i += ROWS)
                compute_rows(c, &policy, h, &normaliser, i, work, &sums);
            close_head(c, h, &sums);
        }
        free(sink);
        free(work);
    }
    collector_layer(c)->source = WEIGHTS_COMPUTED;
    return good;
}

// ---- the output of W^O --------------------------------------------------------------------------

// g_dd += w_d^T w_d over some rows, `stride` apart, of a head's part of W^O.
static void add_products(size_t rows, size_t d, size_t stride, const double *w_rd, double *g_dd) {
    for (size_t r = 0; r < rows; r++)
        for (size_t a = 0; a < d; a++)
            for (size_t b = 0; b < d; b++)
                g_dd[a * d + b] += w_rd[r * stride + a] * w_rd[r * stride + b];
}

// G_h = W_h W_h^T for every head's part of W^O [hidden, heads d]: |x W_h|^2 = x G_h x. NULL if
// memory runs out.
static double *output_grams(const sinkproof_config *config, const sinkproof_matrix *w_o) {
    size_t heads = config->n_heads, d = config->head_dim, width = heads * d;
    double *g_hdd = calloc(heads * d * d, sizeof *g_hdd);
    double *w_rw = malloc(ROWS * width * sizeof *w_rw);
    for (size_t row = 0; g_hdd != NULL && w_rw != NULL && row < w_o->rows; row += ROWS) {
        size_t rows = w_o->rows - row < ROWS ? w_o->rows - row : ROWS;
        for (size_t r = 0; r < rows; r++) sinkproof_matrix_row(w_o, row + r, w_rw + r * width);
#pragma omp parallel for
        for (size_t h = 0; h < heads; h++)
            add_products(rows, d, width, w_rw + h * d, g_hdd + h * d * d);
    }
    if (w_rw == NULL) {
        free(g_hdd);
        return NULL;
    }
    free(w_rw);
    return g_hdd;
}

// Measures one head over all rows, and adds each row's numbers to the layer's means over the heads.
static void weigh_bias(census_collector *c, size_t h, const double *g_dd, const double *b_gd) {
    const sinkproof_config *config = c->config;
    census_layer *layer = collector_layer(c);
    census_head *head = &layer->heads[h];
    size_t n = c->census->n, d = config->head_dim, outputs = 0;
    const double *sink_i = layer->sink_hi + h * n;
    double intensity = 0, output = 0, share = 0, heads = (double)config->n_heads;
    head->bias = sinkproof_metric_length(d, g_dd, b_gd + head->group * d);
    for (size_t i = 0; i < n; i++) {
        double left = sinkproof_metric_left(sink_i[i], head->bias);
        intensity += left;
        layer->intensity_i[i] += left / heads;
        if (!c->seen[TRACE_A11]) continue;
        const double *o_d = c->o_nhd + (i * config->n_heads + h) * d;
        double size = sinkproof_metric_length(d, g_dd, o_d);
        output += size;
        share += left / size;
        layer->share_i[i] += left / size / heads;
        outputs++;
    }
    head->intensity = intensity / (double)n;
    head->output = outputs > 0 ? output / (double)outputs : NAN;
    head->share = outputs > 0 ? share / (double)outputs : NAN;
}

bool collector_take_outputs(census_collector *c) {
    const sinkproof_config *config = c->config;
    sinkproof_layer layer = sinkproof_model_layer(c->model, c->layer);
    size_t n = c->census->n, square = config->head_dim * config->head_dim;
    double *g_hdd = output_grams(config, &layer.w_o);
    double *b_gd = malloc(config->n_kv_heads * config->head_dim * sizeof *b_gd);
    bool good = g_hdd != NULL && b_gd != NULL;
    if (good) {
        memset(b_gd, 0, config->n_kv_heads * config->head_dim * sizeof *b_gd);
        if (layer.b_v.count > 0) sinkproof_matrix_row(&layer.b_v, 0, b_gd);
        memset(collector_layer(c)->intensity_i, 0, n * sizeof(double));
        if (c->seen[TRACE_A11]) memset(collector_layer(c)->share_i, 0, n * sizeof(double));
        for (size_t h = 0; h < config->n_heads; h++) weigh_bias(c, h, g_hdd + h * square, b_gd);
    }
    free(g_hdd);
    free(b_gd);
    return good;
}

// ---- directions --------------------------------------------------------------------------------

bool collector_take_cosines(census_collector *c) {
    const sinkproof_config *config = c->config;
    size_t n = c->census->n, d = config->head_dim, heads = config->n_heads;
    census_layer *layer = collector_layer(c);
    bool good = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : good)
    for (size_t h = 0; h < heads; h++) {
        double *work = malloc((n + 1) * (d + 1) * sizeof *work);
        size_t g = layer->heads[h].group;
        good = good && work != NULL;
        if (work != NULL)
            layer->heads[h].cosines =
                sinkproof_metric_geometry(n, d, layer->window, heads * d, c->q_nhd + h * d,
                                          config->n_kv_heads * d, c->k_ngd + g * d, work);
        free(work);
    }
    return good;
}
