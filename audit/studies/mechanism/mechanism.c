// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the mechanism of GPT-2's sink on one run: an observer of the reference measures each
// layer as its points pass. Gamma and alignment follow from the weights of the running model; EPE
// follows from the original model.
#include "audit/studies/mechanism/mechanism.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/slots.h"
#include "proofs/bounds/worst.h"
#include "ref/metrics.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DEVIATIONS = 3; // gpt2.massive

// One run, and the buffers of the current layer.
typedef struct measuring {
    // the running model: changed, with weights as the policy stores them
    const sinkproof_model *model;
    sinkproof_intervened *intervened;      // or NULL
    const sinkproof_policy *policy, *real; // of the run; and one without roundings
    const sinkproof_mechanism_options *options;
    sinkproof_mechanism *out;
    double *q_r, *k_r;   // b_Q and b_K of the layer
    double *a_nr, *c_nr; // W_q x_t and W_k x_j, for all heads
    double *q_nr;        // A2.q
    double *row_c, *work;
    bool good;
    sinkproof_error *error;
} measuring;

// ---- the results -------------------------------------------------------------------------------

static bool open_layer(mechanism_layer *layer, const sinkproof_config *config, size_t n,
                       bool maps) {
    size_t heads = config->n_heads, hidden = config->hidden;
    layer->gamma_c = calloc(hidden, sizeof(double));
    layer->delta_j = calloc(n, sizeof(double));
    layer->align_j = calloc(n, sizeof(double));
    layer->gamma_hc = calloc(heads * hidden, sizeof(double));
    layer->delta_hj = calloc(heads * n, sizeof(double));
    layer->align_hj = calloc(heads * n, sizeof(double));
    layer->lead_hk = calloc(heads * SINKPROOF_TERMS, sizeof(double));
    layer->apart_h = calloc(heads, sizeof(double));
    layer->alpha_hj = calloc(heads * n, sizeof(double));
    layer->weight_hij = maps ? calloc(heads * n * n, sizeof(double)) : NULL;
    return layer->gamma_c != NULL && layer->delta_j != NULL && layer->align_j != NULL &&
           layer->gamma_hc != NULL && layer->delta_hj != NULL && layer->align_hj != NULL &&
           layer->lead_hk != NULL && layer->apart_h != NULL && layer->alpha_hj != NULL &&
           (!maps || layer->weight_hij != NULL);
}

static bool open_results(sinkproof_mechanism *out, const sinkproof_config *config, size_t n,
                         const sinkproof_mechanism_options *options) {
    *out = (sinkproof_mechanism){.config = config, .n = n};
    if (options->changes != NULL) out->did = *options->changes;
    out->epe_ic = calloc(n * config->hidden, sizeof *out->epe_ic);
    out->epe_check_i = calloc(n, sizeof *out->epe_check_i);
    out->massive_at = calloc(config->hidden, sizeof *out->massive_at);
    out->row_at = calloc(config->hidden, sizeof *out->row_at);
    out->layers = calloc(config->n_layers, sizeof *out->layers);
    bool good = out->epe_ic != NULL && out->epe_check_i != NULL && out->massive_at != NULL &&
                out->row_at != NULL && out->layers != NULL;
    for (size_t l = 0; good && l < config->n_layers; l++)
        good = open_layer(&out->layers[l], config, n, !options->no_maps);
    return good;
}

void sinkproof_mechanism_free(sinkproof_mechanism *mechanism) {
    for (size_t l = 0; mechanism->layers != NULL && l < mechanism->config->n_layers; l++) {
        mechanism_layer *layer = &mechanism->layers[l];
        double *all[] = {layer->gamma_c,  layer->delta_j,   layer->align_j, layer->gamma_hc,
                         layer->delta_hj, layer->align_hj,  layer->lead_hk, layer->apart_h,
                         layer->alpha_hj, layer->weight_hij};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    }
    free(mechanism->layers);
    free(mechanism->epe_ic);
    free(mechanism->epe_check_i);
    free(mechanism->massive_at);
    free(mechanism->row_at);
    *mechanism = (sinkproof_mechanism){0};
}

// ---- the contribution of a position -------------------------------------------------------------

// Reads the positions' rows into p_ic and the tokens' rows into e_ic.
static void read_rows(const sinkproof_model *model, size_t n, const int32_t *tokens_n, double *p_ic,
                      double *e_ic) {
    sinkproof_matrix positions = sinkproof_model_slot(model, 0, SINKPROOF_POSITIONS);
    sinkproof_matrix embedding = sinkproof_model_embedding(model);
    for (size_t i = 0; i < n; i++) {
        sinkproof_matrix_row(&positions, i, p_ic + i * positions.cols);
        sinkproof_matrix_row(&embedding, (size_t)tokens_n[i], e_ic + i * embedding.cols);
    }
}

// "nan", "inf" or "-inf".
static const char *not_finite_word(double x) {
    return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

static bool epe_is_finite(const sinkproof_mechanism *out, sinkproof_error *error) {
    size_t hidden = out->config->hidden;
    for (size_t at = 0; at < out->n * hidden; at++)
        if (!isfinite(out->epe_ic[at]))
            return sinkproof_fail(error,
                                  "EPE_%zu: expected finite numbers, found %s at coordinate %zu",
                                  at / hidden + 1, not_finite_word(out->epe_ic[at]), at % hidden);
    return true;
}

// EPE_i, R_i and O_i, their cosines, and the massive coordinates of EPE_1. `model`: without
// changes.
static bool measure_epe(const sinkproof_model *model, const sinkproof_policy *policy, bool normed,
                        const int32_t *tokens_n, sinkproof_mechanism *out, sinkproof_error *error) {
    const sinkproof_config *config = out->config;
    size_t n = out->n, hidden = config->hidden, count = n * hidden;
    size_t room = sinkproof_mechanism_epe_work(config, n);
    double *p_ic = malloc((5 * count + room) * sizeof *p_ic);
    if (p_ic == NULL)
        return sinkproof_fail(error, "no memory for the EPE of %s",
                              sinkproof_counted(n, "position").text);
    double *e_ic = p_ic + count, *x_ic = e_ic + count, *o_ic = x_ic + count, *r_ic = o_ic + count;
    double *work = r_ic + count;
    read_rows(model, n, tokens_n, p_ic, e_ic);
    memcpy(x_ic, e_ic, count * sizeof *x_ic); // x_i^(0) = e_i + p_i, rounded like T0
    sinkproof_residual(policy, AT_T0, count, p_ic, x_ic);
    sinkproof_mechanism_epe(model, policy, normed, n, p_ic, out->epe_ic, work);
    sinkproof_mechanism_epe(model, policy, normed, n, x_ic, r_ic, work);
    sinkproof_mechanism_epe(model, policy, normed, n, e_ic, o_ic, work);
    for (size_t i = 0; i < n; i++)
        out->epe_check_i[i] = sinkproof_mechanism_epe_check(hidden, out->epe_ic + i * hidden,
                                                            o_ic + i * hidden, r_ic + i * hidden);
    out->rule = sinkproof_mechanism_massive(hidden, out->epe_ic, DEVIATIONS, out->massive_at);
    free(p_ic);
    return epe_is_finite(out, error);
}

// ---- a layer during the pass --------------------------------------------------------------------

// gamma and the cosines of b_Q with EPE_j W_k, for each head and for all together. c_nr is used as
// scratch.
static void measure_weights(measuring *m, mechanism_layer *to, const sinkproof_layer *layer) {
    const sinkproof_config *config = m->out->config;
    size_t n = m->out->n, hidden = config->hidden, d = config->head_dim, width = layer->w_k.rows;
    sinkproof_mechanism_gamma(&layer->w_k, 0, width, m->q_r, to->gamma_c, m->row_c);
    for (size_t h = 0; h < config->n_heads; h++)
        sinkproof_mechanism_gamma(&layer->w_k, h * d, d, m->q_r + h * d, to->gamma_hc + h * hidden,
                                  m->row_c);
    sinkproof_linear(m->real, AT_A2, n, &layer->w_k, NULL, m->out->epe_ic, m->c_nr, m->work);
    for (size_t j = 0; j < n; j++) {
        const double *key_r = m->c_nr + j * width;
        to->align_j[j] = sinkproof_mechanism_cosine(width, m->q_r, key_r);
        for (size_t h = 0; h < config->n_heads; h++)
            to->align_hj[h * n + j] = sinkproof_mechanism_cosine(d, m->q_r + h * d, key_r + h * d);
    }
}

// A1: a_t = W_q x_t, c_j = W_k x_j, and Delta_j.
static void measure_projections(measuring *m, size_t l, const double *x_nc) {
    const sinkproof_config *config = m->out->config;
    sinkproof_layer layer = sinkproof_model_layer(m->model, l);
    mechanism_layer *to = &m->out->layers[l];
    size_t n = m->out->n, hidden = config->hidden;
    sinkproof_matrix_row(&layer.b_q, 0, m->q_r);
    sinkproof_matrix_row(&layer.b_k, 0, m->k_r);
    measure_weights(m, to, &layer);
    sinkproof_linear(m->real, AT_A2, n, &layer.w_q, NULL, x_nc, m->a_nr, m->work);
    sinkproof_linear(m->real, AT_A2, n, &layer.w_k, NULL, x_nc, m->c_nr, m->work);
    for (size_t j = 0; j < n; j++) {
        const double *x_c = x_nc + j * hidden;
        to->delta_j[j] = sinkproof_mechanism_dot(hidden, to->gamma_c, x_c);
        for (size_t h = 0; h < config->n_heads; h++)
            to->delta_hj[h * n + j] =
                sinkproof_mechanism_dot(hidden, to->gamma_hc + h * hidden, x_c);
    }
}

// The distance of the sum of the four terms from the run's score q k^T, for one pair.
static double terms_apart_from_score(const double terms[SINKPROOF_TERMS], double score) {
    double sum = 0, size = 0;
    for (size_t k = 0; k < SINKPROOF_TERMS; k++) sum += terms[k], size += fabs(terms[k]);
    return size == 0 && score == 0 ? 0 : fabs(score - sum) / size;
}

// At A2.k, which follows A2.q: the four terms of a head over all pairs.
static void measure_terms(measuring *m, mechanism_layer *to, size_t h, const double *k_nr) {
    const sinkproof_config *config = m->out->config;
    size_t n = m->out->n, d = config->head_dim, width = config->n_heads * d, at = h * d;
    double scale = 1.0 / sqrt((double)d), *lead_k = to->lead_hk + h * SINKPROOF_TERMS, worst = 0;
    for (size_t t = 0; t < n; t++) {
        double first[SINKPROOF_TERMS] = {0}, others[SINKPROOF_TERMS] = {0}, terms[SINKPROOF_TERMS];
        for (size_t j = 0; j <= t; j++) {
            const double *q_d = m->q_nr + t * width + at, *k_d = k_nr + j * width + at;
            sinkproof_mechanism_terms(d, m->a_nr + t * width + at, m->q_r + at,
                                      m->c_nr + j * width + at, m->k_r + at, terms);
            worst = sinkproof_keep_worst(
                worst, terms_apart_from_score(terms, sinkproof_mechanism_dot(d, q_d, k_d)));
            for (size_t k = 0; k < SINKPROOF_TERMS; k++)
                *(j == 0 ? &first[k] : &others[k]) += terms[k];
        }
        for (size_t k = 0; t > 0 && k < SINKPROOF_TERMS; k++)
            lead_k[k] += scale * (first[k] - others[k] / (double)t);
    }
    for (size_t k = 0; k < SINKPROOF_TERMS; k++) lead_k[k] /= (double)(n - 1); // for one token: NaN
    to->apart_h[h] = worst;
}

// At A10: the maps of attention.
static void measure_maps(measuring *m, mechanism_layer *to, const double *weight_hij) {
    size_t n = m->out->n, heads = m->out->config->n_heads;
    for (size_t h = 0; h < heads; h++) {
        double *alpha_j = to->alpha_hj + h * n;
        for (size_t i = 0; i < n; i++)
            sinkproof_metric_add_row(0, i + 1, weight_hij + (h * n + i) * n, alpha_j);
        for (size_t j = 0; j < n; j++) alpha_j[j] = sinkproof_metric_alpha(n, j, alpha_j[j]);
    }
    if (to->weight_hij != NULL) memcpy(to->weight_hij, weight_hij, heads * n * n * sizeof(double));
}

static bool is_finite(measuring *m, const char *name, size_t rank, const size_t *shape,
                      const double *values) {
    size_t count = 1, at = 0;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    while (at < count && isfinite(values[at])) at++;
    if (at < count)
        m->good = sinkproof_fail(
            m->error, "the run: tensor %s: expected finite numbers, found %s at (%s)", name,
            not_finite_word(values[at]), sinkproof_trace_index_text(rank, shape, at).text);
    return m->good;
}

static void take_point(void *context, const char *name, size_t rank, const size_t *shape,
                       const double *values) {
    measuring *m = context;
    const sinkproof_config *config = m->out->config;
    sinkproof_trace_point point;
    size_t l, width = config->n_heads * config->head_dim;
    if (!m->good || !sinkproof_trace_name_parse(name, &point, &l)) return;
    mechanism_layer *to = &m->out->layers[l];
    bool looked =
        point == TRACE_A1 || point == TRACE_A2_Q || point == TRACE_A2_K || point == TRACE_A10;
    if (!looked || !is_finite(m, name, rank, shape, values)) return;
    if (point == TRACE_A1) measure_projections(m, l, values);
    if (point == TRACE_A2_Q) memcpy(m->q_nr, values, m->out->n * width * sizeof *values);
    for (size_t h = 0; point == TRACE_A2_K && h < config->n_heads; h++)
        measure_terms(m, to, h, values);
    if (point != TRACE_A10) return;
    measure_maps(m, to, values);
    if (m->options->progress != NULL)
        m->options->progress(m->options->progress_context,
                             (double)(l + 1) / (double)config->n_layers);
}

static void replace_point(void *context, const char *name, size_t rank, const size_t *shape,
                          double *values) {
    measuring *m = context;
    sinkproof_intervention_replace(m->intervened, name, rank, shape, values);
}

// ---- the run -----------------------------------------------------------------------------------

static bool observe_run(measuring *m, const int32_t *tokens_n) {
    sinkproof_observer observer = {.see = take_point, .context = m, .no_logits = true};
    if (m->intervened != NULL) observer.replace = replace_point;
    sinkproof_session *session = sinkproof_session_new(m->model, m->policy);
    if (session == NULL) return sinkproof_fail(m->error, "no memory for a session");
    bool good = sinkproof_forward(session, m->out->n, tokens_n, NULL, &observer, m->error);
    sinkproof_session_free(session);
    return good && m->good;
}

// Allocates room for a layer, then runs the model.
static bool measure_run(measuring *m, const int32_t *tokens_n) {
    const sinkproof_config *config = m->out->config;
    size_t n = m->out->n, width = config->n_heads * config->head_dim, hidden = config->hidden;
    size_t count = 2 * width + 3 * n * width + hidden + sinkproof_linear_work(n, width, hidden);
    m->q_r = malloc(count * sizeof *m->q_r);
    if (m->q_r == NULL)
        return sinkproof_fail(m->error, "no memory to measure %s",
                              sinkproof_counted(n, "token").text);
    m->k_r = m->q_r + width;
    m->a_nr = m->k_r + width;
    m->c_nr = m->a_nr + n * width;
    m->q_nr = m->c_nr + n * width;
    m->row_c = m->q_nr + n * width;
    m->work = m->row_c + hidden;
    bool good = observe_run(m, tokens_n);
    free(m->q_r);
    return good;
}

// Checks that the model has position rows, and a perceptron without a router.
static bool check_model(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                        sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    bool rotates = config->rotation.kind != SINKPROOF_NO_ROTATION;
    bool gated = config->activation == SINKPROOF_SWIGLU;
    if (rotates || !config->dense || gated)
        return sinkproof_fail(
            error,
            "%.300s: expected a model with learned positions and one perceptron without a gate, as "
            "GPT-2 is, found %s: %s, %s, its perceptrons have %s",
            sinkproof_model_spec(model), sinkproof_architecture_name(config->architecture),
            rotates ? "its queries and keys are rotated" : "its positions are learned",
            !config->dense ? "a router chooses experts" : "there is no router",
            gated ? "gates" : "no gates");
    if (n == 0) return sinkproof_fail(error, "expected tokens, found none");
    if (n > config->max_context)
        return sinkproof_fail(error, "%s exceed the model's context of %zu",
                              sinkproof_counted(n, "token").text, config->max_context);
    for (size_t t = 0; t < n; t++)
        if (tokens_n[t] < 0 || (size_t)tokens_n[t] >= config->vocab)
            return sinkproof_fail(error,
                                  "token %zu is %d: expected an id from 0 to %zu (the vocabulary)",
                                  t, (int)tokens_n[t], config->vocab - 1);
    return true;
}

// `kept`: the unchanged model with its weights as the policy stores them.
static bool measure_kept(const sinkproof_model *kept, const sinkproof_policy *policy,
                         const int32_t *tokens_n, const sinkproof_mechanism_options *options,
                         sinkproof_mechanism *out, sinkproof_error *error) {
    sinkproof_policy real;
    if (!measure_epe(kept, policy, options->normed, tokens_n, out, error)) return false;
    if (!sinkproof_policy_known("real-f64", &real))
        return sinkproof_fail(error, "the policy real-f64 is not known");
    measuring m = {.model = kept,
                   .policy = policy,
                   .real = &real,
                   .options = options,
                   .out = out,
                   .good = true,
                   .error = error};
    if (sinkproof_interventions_any(&out->did)) {
        if (!sinkproof_intervened_new(kept, &out->did, policy, out->n, out->epe_ic, out->rule.n,
                                      out->massive_at, &m.intervened, error))
            return false;
        m.model = sinkproof_intervened_model(m.intervened);
        const size_t *row_at = sinkproof_intervened_zero_rows(m.intervened, &out->n_rows);
        memcpy(out->row_at, row_at, out->n_rows * sizeof *row_at);
    }
    bool good = measure_run(&m, tokens_n);
    sinkproof_intervened_free(m.intervened);
    return good;
}

bool sinkproof_mechanism_run(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                             const int32_t *tokens_n, const sinkproof_mechanism_options *options,
                             sinkproof_mechanism *out, sinkproof_error *error) {
    *out = (sinkproof_mechanism){.config = sinkproof_model_config(model)};
    if (!check_model(model, n, tokens_n, error)) return false;
    if (!sinkproof_model_fits(model, policy->weights, error)) return false;
    if (!open_results(out, sinkproof_model_config(model), n, options))
        return sinkproof_fail(error, "no memory for the mechanism of %s",
                              sinkproof_counted(n, "token").text);
    sinkproof_model *view = NULL;
    if (policy->weights != SINKPROOF_REAL) {
        view = sinkproof_model_kept(model, policy->weights);
        if (view == NULL) return sinkproof_fail(error, "no memory for a view of the model");
    }
    bool good = measure_kept(view != NULL ? view : model, policy, tokens_n, options, out, error);
    sinkproof_model_close(view);
    return good;
}
