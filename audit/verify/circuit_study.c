// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs the planted circuit under interventions: over the reals the states are changed in balls, in
// a run of the reference as `sinkproof gpt2` does.
#include "audit/verify/circuit_study.h"
#include "audit/verify/truth_bits.h"

#include "base/words.h"
#include "model/slots.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/circuit.h"
#include "proofs/truth/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// One run: the model, its interventions, and the data that the observers gather.
typedef struct study {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const circuit_options *options;
    const sinkproof_interventions *changes; // of the run
    sinkproof_intervened *intervened;       // of the run
    size_t n;
    const int32_t *tokens_n;
    bool *counts_h; // heads with a query bias; all heads if none has one
    arb_ptr epe_ic, joins_nc;
    const sinkproof_circuit *derived;
    circuit_study *out;
} study;

// The terms added to the first layer's output: -EPE_a + EPE_b for each exchange, or all of EPE.
static void join_epe_changes(arb_ptr joins_nc, arb_srcptr epe_ic,
                             const sinkproof_interventions *changes, size_t n, size_t hidden) {
    _arb_vec_zero(joins_nc, (slong)(n * hidden));
    if (changes->late) _arb_vec_set(joins_nc, epe_ic, (slong)(n * hidden));
    for (size_t m = 0; m < changes->n_moves; m++) {
        size_t from = changes->move_n[m].from, to = changes->move_n[m].to;
        for (size_t c = 0; c < hidden; c++) {
            arb_srcptr a = epe_ic + from * hidden + c, b = epe_ic + to * hidden + c;
            arb_ptr at = joins_nc + from * hidden + c, other = joins_nc + to * hidden + c;
            arb_sub(at, at, a, CIRCUIT_STUDY_BITS);
            arb_add(at, at, b, CIRCUIT_STUDY_BITS);
            if (changes->move_n[m].swap) continue;
            arb_sub(other, other, b, CIRCUIT_STUDY_BITS);
            arb_add(other, other, a, CIRCUIT_STUDY_BITS);
        }
    }
}

static bool make_intervened(const study *s, const sinkproof_interventions *changes,
                            sinkproof_intervened **intervened, sinkproof_error *error) {
    size_t hidden = s->config->hidden, *at = malloc(hidden * sizeof *at);
    double *epe_ic = malloc(s->n * hidden * sizeof *epe_ic);
    sinkproof_policy policy;
    if (at == NULL || epe_ic == NULL) abort();
    for (size_t i = 0; i < s->n * hidden; i++)
        epe_ic[i] = arf_get_d(arb_midref(s->epe_ic + i), ARF_RND_NEAR);
    sinkproof_policy_known("real-f64", &policy);
    sinkproof_massive_rule rule = sinkproof_mechanism_massive(hidden, epe_ic, 3, at);
    bool good = sinkproof_intervened_new(s->model, changes, &policy, s->n, epe_ic, rule.n, at,
                                         intervened, error);
    free(at);
    free(epe_ic);
    return good;
}

static void study_begin(study *s, const sinkproof_model *model, bool normed, size_t n) {
    s->model = model;
    s->config = sinkproof_model_config(model);
    s->n = n;
    slong size = (slong)(n * s->config->hidden);
    s->epe_ic = _arb_vec_init(size), s->joins_nc = _arb_vec_init(size);
    sinkproof_truth_epe(s->epe_ic, model, normed, n, CIRCUIT_STUDY_BITS);
}

static void study_end(study *s) {
    slong size = (slong)(s->n * s->config->hidden);
    _arb_vec_clear(s->epe_ic, size);
    _arb_vec_clear(s->joins_nc, size);
    sinkproof_intervened_free(s->intervened);
    free(s->counts_h);
}

bool circuit_study_derive(const sinkproof_model *model, const sinkproof_interventions *changes,
                          bool normed, size_t n, sinkproof_circuit **circuit,
                          sinkproof_error *error) {
    study s = {0};
    *circuit = NULL;
    study_begin(&s, model, normed, n);
    bool good = make_intervened(&s, changes, &s.intervened, error);
    join_epe_changes(s.joins_nc, s.epe_ic, changes, n, s.config->hidden);
    sinkproof_circuit_run run = {good ? sinkproof_intervened_model(s.intervened) : NULL, n,
                                 changes->late, s.joins_nc};
    good = good && sinkproof_circuit_derive(&run, CIRCUIT_STUDY_BITS, circuit, error);
    study_end(&s);
    return good;
}

// ---- the compared heads

// The last layer represents all layers.
static void find_biased(study *s) {
    size_t heads = s->config->n_heads, dim = s->config->head_dim;
    sinkproof_layer layer = sinkproof_model_layer(s->model, s->config->n_layers - 1);
    double *b_q = malloc(heads * dim * sizeof *b_q);
    s->counts_h = calloc(heads, sizeof *s->counts_h);
    if (b_q == NULL || s->counts_h == NULL) abort();
    sinkproof_matrix_row(&layer.b_q, 0, b_q);
    bool any = false;
    for (size_t r = 0; r < heads * dim; r++)
        if (b_q[r] != 0) any = s->counts_h[r / dim] = true;
    for (size_t h = 0; h < heads && !any; h++) s->counts_h[h] = true;
    free(b_q);
}

static void study_put_weight(study *s, size_t l, size_t h, size_t t, size_t j, double low,
                             double high) {
    sinkproof_circuit_weight d = sinkproof_circuit_alpha(s->derived, l, h, t, j);
    circuit_study *out = s->out;
    double half = (d.hi - d.lo) / 2, mid = d.lo + half;
    double off = sinkproof_keep_worst(high - mid, mid - low);
    out->weights++;
    out->outside += !(d.lo <= low && high <= d.hi);
    out->share = sinkproof_keep_worst(out->share, off / half);
    if (t + 1 != s->n || j > 1 || l == 0 || !s->counts_h[h]) return;
    out->least[j] = sinkproof_keep_least(out->least[j], low);
    out->most[j] = sinkproof_keep_worst(out->most[j], high);
    out->derived_least[j] = sinkproof_keep_least(out->derived_least[j], d.lo);
    out->derived_most[j] = sinkproof_keep_worst(out->derived_most[j], d.hi);
}

static double *alpha_at(study *s, size_t l, size_t h, size_t t, size_t j) {
    return s->out->alpha_lhtj + ((l * s->config->n_heads + h) * s->n + t) * s->n + j;
}

static bool is_weights_point(const char *name, size_t *l) {
    const char *point = strchr(name, '.');
    *l = (size_t)strtoul(name, NULL, 10);
    return point != NULL && strcmp(point, ".A10") == 0;
}

// ---- in binary64

static void study_see_point(void *context, const char *name, size_t rank, const size_t *shape,
                            const double *values) {
    study *s = context;
    size_t l; // the first row has the weight 1
    if (!is_weights_point(name, &l) || rank != 3) return;
    for (size_t h = 0; h < shape[0]; h++)
        for (size_t t = 1; t < s->n; t++)
            for (size_t j = 0; j <= t; j++) {
                double alpha = values[(h * s->n + t) * s->n + j];
                *alpha_at(s, l, h, t, j) = alpha;
                study_put_weight(s, l, h, t, j, alpha, alpha);
            }
}

static void study_replace_point(void *context, const char *name, size_t rank, const size_t *shape,
                                double *values) {
    study *s = context;
    sinkproof_intervention_replace(s->intervened, name, rank, shape, values);
    if (!s->options->zero_first_position || strcmp(name, "T0") != 0) return;
    sinkproof_matrix embedding = sinkproof_model_embedding(s->model);
    sinkproof_matrix_row(&embedding, (size_t)s->tokens_n[0], values);
}

static bool run_reference(study *s, const sinkproof_model *model, sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    sinkproof_observer observer = {
        .see = study_see_point, .replace = study_replace_point, .context = s, .no_logits = true};
    bool good = session != NULL || sinkproof_fail(error, "no memory for a session");
    good = good && sinkproof_forward(session, s->n, s->tokens_n, NULL, &observer, error);
    sinkproof_session_free(session);
    return good;
}

// ---- over the reals

static void observe_balls(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    study *s = context;
    if (strcmp(place->point, "A10") != 0) return;
    for (size_t h = 0; h < place->shape[0]; h++)
        for (size_t t = 1; t < s->n; t++)
            for (size_t j = 0; j <= t; j++) {
                arb_srcptr alpha = values + (h * s->n + t) * s->n + j;
                arf_t low, high;
                arf_init(low), arf_init(high);
                arb_get_lbound_arf(low, alpha, CIRCUIT_STUDY_BITS);
                arb_get_ubound_arf(high, alpha, CIRCUIT_STUDY_BITS);
                *alpha_at(s, place->layer, h, t, j) = arf_get_d(arb_midref(alpha), ARF_RND_NEAR);
                study_put_weight(s, place->layer, h, t, j, arf_get_d(low, ARF_RND_FLOOR),
                                 arf_get_d(high, ARF_RND_CEIL));
                arf_clear(low), arf_clear(high);
            }
}

// T0 of row i minus its embedding, or minus its position.
static void study_take_row(const study *s, arb_ptr x_c, size_t i, bool position) {
    size_t hidden = s->config->hidden;
    sinkproof_matrix matrix = position ? sinkproof_model_slot(s->model, 0, SINKPROOF_POSITIONS)
                                       : sinkproof_model_embedding(s->model);
    double *scratch = malloc(hidden * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr row = _arb_vec_init((slong)hidden);
    sinkproof_truth_row(row, &matrix, position ? i : (size_t)s->tokens_n[i], scratch);
    _arb_vec_sub(x_c, x_c, row, (slong)hidden, CIRCUIT_STUDY_BITS);
    _arb_vec_clear(row, (slong)hidden);
    free(scratch);
}

static void replace_balls(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    study *s = context;
    size_t hidden = s->config->hidden;
    if (strcmp(place->name, "T0") == 0) {
        if (s->changes->zero_bos) study_take_row(s, values, 0, false);
        for (size_t i = 0; i < s->n; i++)
            if (s->changes->late || (s->options->zero_first_position && i == 0))
                study_take_row(s, values + i * hidden, i, true);
    }
    if (strcmp(place->name, "00.M12") == 0)
        _arb_vec_add(values, values, s->joins_nc, (slong)(s->n * hidden), CIRCUIT_STUDY_BITS);
}

static bool run_balls(study *s, const sinkproof_model *model, sinkproof_error *error) {
    sinkproof_truth_hooks hooks = {.see = observe_balls, .replay = replace_balls, .context = s};
    long bits = sinkproof_truth_bits_for(sinkproof_truth_loss(s->config, s->config->n_layers));
    sinkproof_truth_request request = {.model = model,
                                       .n = s->n,
                                       .tokens_n = s->tokens_n,
                                       .bits = bits,
                                       .last_logits = true,
                                       .hooks = &hooks};
    sinkproof_truth_result result;
    join_epe_changes(s->joins_nc, s->epe_ic, s->changes, s->n, s->config->hidden);
    if (!sinkproof_truth_forward(&request, &result, error)) return false;
    sinkproof_truth_result_clear(&result);
    return true;
}

bool circuit_study_run(const sinkproof_model *model, const sinkproof_circuit *derived,
                       const sinkproof_interventions *run, const circuit_options *options, size_t n,
                       const int32_t *tokens_n, circuit_study *out, sinkproof_error *error) {
    study s = {.options = options, .changes = run, .tokens_n = tokens_n, .derived = derived};
    const sinkproof_config *config = sinkproof_model_config(model);
    *out = (circuit_study){.least = {INFINITY, INFINITY}};
    out->derived_least[0] = out->derived_least[1] = INFINITY;
    out->alphas = config->n_layers * config->n_heads * n * n;
    out->alpha_lhtj = calloc(out->alphas, sizeof *out->alpha_lhtj);
    if (out->alpha_lhtj == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(n, "weight").text);
    s.out = out;
    study_begin(&s, model, options->normed, n);
    find_biased(&s);
    bool good = make_intervened(&s, run, &s.intervened, error);
    const sinkproof_model *view = good ? sinkproof_intervened_model(s.intervened) : NULL;
    good = good && (options->balls ? run_balls(&s, view, error) : run_reference(&s, view, error));
    study_end(&s);
    return good;
}

void circuit_study_free(circuit_study *study_) {
    free(study_->alpha_lhtj);
    *study_ = (circuit_study){0};
}
