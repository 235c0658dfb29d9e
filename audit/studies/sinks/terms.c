// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Computes every head's four terms, row by row. Heads are independent, so the number of threads
// changes no bit.
#include "audit/studies/sinks/terms.h"

#include "base/words.h"
#include "model/architecture.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const sinkproof_trace_point terms_points[TERMS_POINTS] = {TRACE_A2_Q, TRACE_A2_K, TRACE_A4_Q,
                                                          TRACE_A4_K, TRACE_A6};

// ---- memory -------------------------------------------------------------------------------------

static bool make_tables(score_terms_study *t, const sinkproof_policy *policy) {
    const sinkproof_config *config = t->config;
    size_t half = config->head_dim / 2;
    double *freq_d = malloc(half * sizeof *freq_d);
    t->cos_nd = malloc(t->n * half * sizeof(double));
    t->sin_nd = malloc(t->n * half * sizeof(double));
    bool good = freq_d != NULL && t->cos_nd != NULL && t->sin_nd != NULL;
    if (good) {
        sinkproof_yarn_frequencies(policy, config, freq_d);
        sinkproof_rope_table(policy, config, freq_d, 0, t->n, t->cos_nd, t->sin_nd);
    }
    free(freq_d);
    return good;
}

static bool make_layers(score_terms_study *t) {
    const sinkproof_config *config = t->config;
    t->layers = calloc(config->n_layers, sizeof *t->layers);
    for (size_t l = 0; t->layers != NULL && l < config->n_layers; l++) {
        t->layers[l].window = config->sliding[l] ? config->window : 0;
        t->layers[l].apart = t->layers[l].score = NAN;
        t->layers[l].heads = calloc(config->n_heads, sizeof *t->layers[l].heads);
        if (t->layers[l].heads == NULL) return false;
    }
    return t->layers != NULL;
}

bool terms_new(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
               score_terms_study *t, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    bool rotates = config->rotation.kind != SINKPROOF_NO_ROTATION;
    sinkproof_policy real;
    if (config->head_norms)
        return sinkproof_fail(error,
                              "%s: expected a model whose scores are products of projections, "
                              "found norms of each query and key between (A3)",
                              sinkproof_model_spec(model));
    if (!sinkproof_policy_known("real-f64", &real)) return false;
    if (policy == NULL) policy = &real;
    *t = (score_terms_study){.config = config, .n = n};
    t->kept = sinkproof_model_kept(model, policy->weights);
    bool good = t->kept != NULL && make_layers(t) && (!rotates || make_tables(t, policy));
    return good || sinkproof_fail(error, "no memory for the terms of %s",
                                  sinkproof_counted(n, "token").text);
}

// Allocates the buffers of a layer, at the first point.
static bool terms_allocate_layer(score_terms_study *t) {
    const sinkproof_config *config = t->config;
    size_t queries = t->n * config->n_heads * config->head_dim;
    size_t keys = t->n * config->n_kv_heads * config->head_dim;
    if (t->q_nhd != NULL) return true;
    t->q_nhd = malloc(queries * sizeof(double));
    t->k_ngd = malloc(keys * sizeof(double));
    t->rotated_q_nhd = malloc(queries * sizeof(double));
    t->rotated_k_ngd = malloc(keys * sizeof(double));
    return t->q_nhd != NULL && t->k_ngd != NULL && t->rotated_q_nhd != NULL &&
           t->rotated_k_ngd != NULL;
}

static void free_layer(score_terms_study *t) {
    free(t->q_nhd);
    free(t->k_ngd);
    free(t->rotated_q_nhd);
    free(t->rotated_k_ngd);
    t->q_nhd = t->k_ngd = t->rotated_q_nhd = t->rotated_k_ngd = NULL;
}

void terms_free(score_terms_study *t) {
    for (size_t l = 0; t->layers != NULL && l < t->config->n_layers; l++) free(t->layers[l].heads);
    free(t->layers);
    sinkproof_model_close(t->kept);
    free(t->cos_nd);
    free(t->sin_nd);
    free_layer(t);
    *t = (score_terms_study){0};
}

size_t terms_known_layers(const score_terms_study *t) {
    size_t known = 0;
    for (size_t l = 0; l < t->config->n_layers; l++) known += t->layers[l].known;
    return known;
}

// ---- one head ----------------------------------------------------------------------------------

// Numbers of rows: all; with at least two keys; that see key 1; both.
typedef struct rows_seen {
    size_t all, paired, first, ahead;
} rows_seen;

// The work on one head. Its arrays cover all n tokens, except those of the current row.
typedef struct desk {
    const score_terms_study *t;
    sinkproof_policy real;
    sinkproof_normaliser normaliser;
    const double *score_ij;                     // A6 of the head, or NULL
    const double *q_nd, *k_nd;                  // rotated rows, all heads separate; or NULL
    double *a_nd, *b_q_nd, *c_nd, *b_k_nd;      // terms.split, rotated
    double *u_mj, *s_j, *alpha_j, *other_j, *d; // of a row; d: a query's width
    terms_head sum;
    rows_seen rows;
} desk;

static size_t head_work_doubles(const score_terms_study *t) {
    size_t d = t->config->head_dim;
    return 4 * t->n * d + (SINKPROOF_TERMS + 3) * (t->n + 1) + d +
           sinkproof_normaliser_work(t->config) + t->config->n_heads * d;
}

// A head's part of a bias [1, heads d], zeros where the model has none. work: receives the whole
// bias.
static const double *head_bias(const sinkproof_matrix *bias, size_t head, size_t d, double *work) {
    if (bias->count > 0)
        sinkproof_matrix_row(bias, 0, work);
    else
        memset(work + head * d, 0, d * sizeof *work);
    return work + head * d;
}

static void split_work(desk *k, double *work) {
    size_t all = k->t->n * k->t->config->head_dim, keys = k->t->n + 1;
    k->a_nd = work, k->b_q_nd = k->a_nd + all, k->c_nd = k->b_q_nd + all;
    k->b_k_nd = k->c_nd + all, k->u_mj = k->b_k_nd + all;
    k->s_j = k->u_mj + SINKPROOF_TERMS * keys, k->alpha_j = k->s_j + keys;
    k->other_j = k->alpha_j + keys, k->d = k->other_j + keys;
}

static void begin_head(desk *k, size_t layer, size_t h, const double *score_ij, double *work) {
    const score_terms_study *t = k->t;
    const sinkproof_config *config = t->config;
    size_t n = t->n, d = config->head_dim, g = h / (config->n_heads / config->n_kv_heads);
    size_t q_stride = config->n_heads * d, k_stride = config->n_kv_heads * d;
    sinkproof_layer weights = sinkproof_model_layer(t->kept, layer);
    split_work(k, work);
    double *sink = k->d + d, *bias = sink + sinkproof_normaliser_work(config);
    k->normaliser = sinkproof_head_normaliser(config, &weights, h, sink);
    sinkproof_terms_split(n, d, q_stride, t->q_nhd + h * d, head_bias(&weights.b_q, h, d, bias),
                          t->cos_nd, t->sin_nd, k->a_nd, k->b_q_nd);
    sinkproof_terms_split(n, d, k_stride, t->k_ngd + g * d, head_bias(&weights.b_k, g, d, bias),
                          t->cos_nd, t->sin_nd, k->c_nd, k->b_k_nd);
    bool rotated = t->held[TRACE_A4_Q] && t->held[TRACE_A4_K];
    k->score_ij = score_ij;
    if (t->cos_nd == NULL || rotated) { // without a rotation the scores use A2
        k->q_nd = (t->cos_nd == NULL ? t->q_nhd : t->rotated_q_nhd) + h * d;
        k->k_nd = (t->cos_nd == NULL ? t->k_ngd : t->rotated_k_ngd) + g * d;
    }
    k->sum.apart = score_ij != NULL || k->q_nd != NULL ? 0 : NAN;
    k->sum.score = k->sum.apart;
}

// Compares the sum of row i's terms with its scores, over the keys from `first` on.
static void compare_terms_to_scores(desk *k, size_t i, size_t first, size_t keys) {
    const sinkproof_config *config = k->t->config;
    size_t d = config->head_dim;
    sinkproof_block block = {.rows = 1,
                             .keys = keys,
                             .head_dim = d,
                             .q_stride = config->n_heads * d,
                             .kv_stride = config->n_kv_heads * d};
    const double *score_j = k->other_j;
    if (k->score_ij != NULL)
        score_j = k->score_ij + i * k->t->n + first;
    else if (k->q_nd != NULL)
        sinkproof_scores(&k->real, &block, k->q_nd + i * block.q_stride,
                         k->k_nd + first * block.kv_stride, k->other_j);
    else
        return;
    for (size_t j = 0; j < keys; j++) {
        k->sum.apart = sinkproof_keep_worst(k->sum.apart, fabs(k->s_j[j] - score_j[j]));
        k->sum.score = sinkproof_keep_worst(k->sum.score, fabs(score_j[j]));
    }
}

static void weigh_scores(desk *k, size_t keys, double b, double *alpha_j) {
    sinkproof_block row = {.rows = 1, .keys = keys, .first = keys - 1};
    sinkproof_softmax_sink(&k->real, &row, &b, k->s_j, alpha_j);
}

// Measures term m in the current row, whose weights with all terms are alpha_j.
static void add_term(desk *k, size_t m, size_t keys, double b, bool sees_first) {
    term_measure *sum = &k->sum.term[m];
    const double *u_j = k->u_mj + m * keys;
    sinkproof_terms_scores(keys, k->u_mj, m, k->s_j);
    weigh_scores(k, keys, b, k->other_j);
    sinkproof_terms_change change = sinkproof_terms_changed(keys, k->alpha_j, k->other_j);
    sum->level += sinkproof_terms_level(keys, u_j);
    if (keys > 1) sum->spread += sinkproof_terms_spread(keys, u_j);
    if (keys > 1 && sees_first) sum->lead += sinkproof_terms_lead(keys, u_j);
    sum->sink += change.sink;
    if (sees_first) sum->first += change.first;
    sum->variation += change.variation;
}

static void add_row(desk *k, size_t i, size_t window) {
    size_t d = k->t->config->head_dim, first = sinkproof_mask_first(window, i);
    size_t keys = i + 1 - first;
    double b;
    sinkproof_block query = {.rows = 1, .head_dim = d, .q_stride = d, .kv_stride = d};
    for (size_t c = 0; c < d; c++) k->d[c] = k->a_nd[i * d + c] + k->b_q_nd[i * d + c];
    sinkproof_sink_logits(&k->real, &query, &k->normaliser, k->d, &b);
    sinkproof_terms_row(d, keys, k->a_nd + i * d, k->b_q_nd + i * d, k->c_nd + first * d,
                        k->b_k_nd + first * d, k->u_mj);
    sinkproof_terms_scores(keys, k->u_mj, SINKPROOF_TERMS, k->s_j);
    compare_terms_to_scores(k, i, first, keys);
    weigh_scores(k, keys, b, k->alpha_j);
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) add_term(k, m, keys, b, first == 0);
    k->sum.logit += b;
    k->rows.all++;
    k->rows.paired += keys > 1;
    k->rows.first += first == 0;
    k->rows.ahead += keys > 1 && first == 0;
}

// 0 / 0 is NAN, the mean of nothing.
static terms_head mean_of_rows(const desk *k) {
    terms_head head = k->sum;
    const rows_seen *rows = &k->rows;
    head.logit /= (double)rows->all;
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) {
        head.term[m].level /= (double)rows->all;
        head.term[m].spread /= (double)rows->paired;
        head.term[m].lead /= (double)rows->ahead;
        head.term[m].sink /= (double)rows->all;
        head.term[m].first /= (double)rows->first;
        head.term[m].variation /= (double)rows->all;
    }
    return head;
}

static void measure_head_terms(const score_terms_study *t, size_t layer, size_t h,
                               const double *score_ij, double *work) {
    desk k = {.t = t};
    sinkproof_policy_known("real-f64", &k.real);
    begin_head(&k, layer, h, score_ij, work);
    for (size_t i = 0; i < t->n; i++) add_row(&k, i, t->layers[layer].window);
    t->layers[layer].heads[h] = mean_of_rows(&k);
}

// ---- points in the pass -------------------------------------------------------------------------

// Measures `heads` heads from `head` on; score_hij: their A6, or NULL.
static bool measure_heads(score_terms_study *t, size_t layer, size_t head, size_t heads,
                          const double *score_hij, sinkproof_error *error) {
    bool good = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : good)
    for (size_t h = 0; h < heads; h++) {
        double *work = malloc(head_work_doubles(t) * sizeof *work);
        good = good && work != NULL;
        if (work != NULL)
            measure_head_terms(t, layer, head + h,
                               score_hij != NULL ? score_hij + h * t->n * t->n : NULL, work);
        free(work);
    }
    return good || sinkproof_fail(error, "no memory for the terms of %s",
                                  sinkproof_counted(t->n, "token").text);
}

bool terms_take_point(score_terms_study *t, sinkproof_trace_point point, size_t layer, size_t head,
                      const double *values, sinkproof_error *error) {
    const sinkproof_config *config = t->config;
    size_t bytes_d = t->n * config->head_dim * sizeof(double);
    size_t queries = config->n_heads * bytes_d, keys = config->n_kv_heads * bytes_d;
    bool ready = t->held[TRACE_A2_Q] && t->held[TRACE_A2_K];
    if (!terms_allocate_layer(t))
        return sinkproof_fail(error, "no memory for the terms of %s",
                              sinkproof_counted(t->n, "token").text);
    if (point == TRACE_A2_Q) memcpy(t->q_nhd, values, queries);
    if (point == TRACE_A2_K) memcpy(t->k_ngd, values, keys);
    if (point == TRACE_A4_Q) memcpy(t->rotated_q_nhd, values, queries);
    if (point == TRACE_A4_K) memcpy(t->rotated_k_ngd, values, keys);
    t->held[point] = true;
    if (point != TRACE_A6 || !ready) return true;
    size_t from = head == SIZE_MAX ? 0 : head, heads = head == SIZE_MAX ? config->n_heads : 1;
    return measure_heads(t, layer, from, heads, values, error);
}

bool terms_end_layer(score_terms_study *t, size_t layer, sinkproof_error *error) {
    terms_layer *at = &t->layers[layer];
    bool shown = t->held[TRACE_A6];
    bool rotated = t->held[TRACE_A4_Q] && t->held[TRACE_A4_K];
    at->known = t->held[TRACE_A2_Q] && t->held[TRACE_A2_K];
    if (at->known && !shown && !measure_heads(t, layer, 0, t->config->n_heads, NULL, error))
        return false;
    memset(t->held, 0, sizeof t->held);
    if (layer + 1 == t->config->n_layers) free_layer(t);
    if (!at->known) return true;
    at->source = shown                          ? SCORES_SHOWN
                 : rotated || t->cos_nd == NULL ? SCORES_COMPUTED
                                                : SCORES_UNKNOWN;
    at->apart = at->heads[0].apart, at->score = at->heads[0].score;
    for (size_t h = 1; h < t->config->n_heads; h++) {
        at->apart = sinkproof_keep_worst(at->apart, at->heads[h].apart);
        at->score = sinkproof_keep_worst(at->score, at->heads[h].score);
    }
    return true;
}
