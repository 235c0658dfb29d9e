// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How far is the engine from the truth, and how much of that did each operation add? The real model
// is run in binary64 on two tracks at once: from the tokens (the truth), and with every traced
// value replaced by the engine's own before the next operation (local). Over the reals
//   engine - truth = (engine - operation(engine's inputs)) + (operation(engine's inputs) - truth),
// so error = local + inherited, element by element. The engine's routing is replayed; where it is
// unknown, each track chooses by its own logits.
#include "audit/judge/judge_internal.h"
#include "audit/judge/judge_truth_maps.h"
#include "audit/trace/trace_points.h"
#include "model/slots.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Arrays are [2][n][width]: the truth's rows, then the local ones.
typedef struct tracks {
    judge_pass *pass;
    sinkproof_policy real;
    size_t n;
    double *cos_nd, *sin_nd;
    double *x; // residual
} tracks;

// ---- comparing

static void errors_add(sinkproof_errors *sum, const sinkproof_errors *more) {
    sum->truth += more->truth, sum->error += more->error;
    sum->local += more->local, sum->inherited += more->inherited;
}

// Measures one run of elements and replaces the local track's values by the engine's.
static sinkproof_errors measure_run_errors(const sinkproof_tensor *tensor, size_t offset,
                                           size_t count, const double *truth, double *local) {
    sinkproof_errors e = {0};
    for (size_t i = 0; i < count; i++) {
        double v = sinkproof_tensor_value(tensor, offset + i), here = v - local[i];
        double whole = v - truth[i], before = local[i] - truth[i];
        e.truth += truth[i] * truth[i], e.error += whole * whole;
        e.local += here * here, e.inherited += before * before;
        local[i] = v;
    }
    return e;
}

static sinkproof_errors *point_errors(const tracks *t, sinkproof_trace_point point, size_t layer) {
    const sinkproof_judgement *j = t->pass->judgement;
    bool layered = sinkproof_trace_point_is_layered(point);
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].point == point && (!layered || j->reports[i].layer == layer))
            return &j->reports[i].errors;
    return NULL;
}

// Compares a whole point, x[2][n][width]. skip_n: tokens whose rows are not comparable, or NULL.
static bool compare_point(const tracks *t, sinkproof_trace_point point, size_t layer, size_t width,
                          const bool *skip_n, double *x) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(t->pass->trace, point, layer);
    sinkproof_errors *sum = point_errors(t, point, layer);
    if (tensor == NULL || sum == NULL) return true;
    sinkproof_errors *row_n = calloc(t->n, sizeof *row_n);
    if (row_n == NULL) return false;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < t->n; i++)
        if (skip_n == NULL || !skip_n[i])
            row_n[i] =
                measure_run_errors(tensor, i * width, width, &x[i * width], &x[(t->n + i) * width]);
    for (size_t i = 0; i < t->n; i++) errors_add(sum, &row_n[i]); // in order, for any threads
    free(row_n);
    return true;
}

// ---- attention

typedef struct head {
    size_t layer, h, window;
    const double *q, *k, *v; // [2][n][...]
    sinkproof_normaliser normaliser;
    double *out;
} head;

// One row on one of the tracks: query i, keys [first, i] of key/value head g.
typedef struct query {
    size_t track, i, first, seen, g;
} query;

static void score_row(const tracks *t, const head *x, const query *r, double *s_j) {
    const sinkproof_config *c = t->pass->config;
    size_t d = c->head_dim, from = r->track * t->n;
    const double *q_d = &x->q[((from + r->i) * c->n_heads + x->h) * d];
    for (size_t j = 0; j < r->seen; j++) {
        const double *k_d = &x->k[((from + r->first + j) * c->n_kv_heads + r->g) * d];
        double dot = 0;
        for (size_t at = 0; at < d; at++) dot += q_d[at] * k_d[at];
        s_j[j] = dot / sqrt((double)d);
    }
}

static void weigh_row(const tracks *t, const head *x, const query *r, const double *s_j,
                      double *a_j) {
    const sinkproof_config *c = t->pass->config;
    const sinkproof_block row = {.rows = 1, .head_dim = c->head_dim};
    size_t seen = r->seen, at = (r->track * t->n + r->i) * c->n_heads + x->h;
    double b, z;
    sinkproof_sink_logits(&t->real, &row, &x->normaliser, &x->q[at * c->head_dim], &b);
    double m = b;
    for (size_t j = 0; j < seen; j++) m = fmax(m, s_j[j]);
    z = a_j[seen] = exp(b - m);
    for (size_t j = 0; j < seen; j++) z += a_j[j] = exp(s_j[j] - m);
    for (size_t j = 0; j <= seen; j++) a_j[j] /= z;
}

static void sum_row(const tracks *t, const head *x, const query *r, const double *a_j) {
    const sinkproof_config *c = t->pass->config;
    size_t d = c->head_dim, from = r->track * t->n;
    double *o_d = &x->out[((from + r->i) * c->n_heads + x->h) * d];
    memset(o_d, 0, d * sizeof *o_d);
    for (size_t j = 0; j < r->seen; j++) {
        const double *v_d = &x->v[((from + r->first + j) * c->n_kv_heads + r->g) * d];
        for (size_t at = 0; at < d; at++) o_d[at] += a_j[j] * v_d[at];
    }
}

// Measures A9 and A10 of row i of the head.
static void measure_weights(const tracks *t, const head *x, const query *r, const double *truth,
                            double *local, sinkproof_errors sums[3]) {
    const sinkproof_trace *trace = t->pass->trace;
    const sinkproof_tensor *a9 = sinkproof_trace_find(trace, TRACE_A9, x->layer);
    const sinkproof_tensor *a10 = sinkproof_trace_find(trace, TRACE_A10, x->layer);
    size_t n = t->n, row = x->h * n + r->i, seen = r->seen;
    if (a9 != NULL) {
        sums[1] = measure_run_errors(a9, row * (n + 1) + r->first, seen, truth, local);
        sinkproof_errors sink =
            measure_run_errors(a9, row * (n + 1) + n, 1, &truth[seen], &local[seen]);
        errors_add(&sums[1], &sink);
    }
    if (a10 != NULL) sums[2] = measure_run_errors(a10, row * n + r->first, seen, truth, local);
}

// Computes scores, weights and values of row i on both tracks; s and a are [2][n + 1].
static void attend_row(const tracks *t, const head *x, size_t i, double *s, double *a,
                       sinkproof_errors sums[3]) {
    const sinkproof_config *c = t->pass->config;
    size_t n = t->n, first = sinkproof_mask_first(x->window, i);
    query r = {0, i, first, i + 1 - first, x->h / (c->n_heads / c->n_kv_heads)};
    const sinkproof_tensor *a6 = sinkproof_trace_find(t->pass->trace, TRACE_A6, x->layer);
    for (r.track = 0; r.track < 2; r.track++) score_row(t, x, &r, &s[r.track * (n + 1)]);
    if (a6 != NULL)
        sums[0] = measure_run_errors(a6, (x->h * n + i) * n + first, r.seen, s, &s[n + 1]);
    for (r.track = 0; r.track < 2; r.track++)
        weigh_row(t, x, &r, &s[r.track * (n + 1)], &a[r.track * (n + 1)]);
    measure_weights(t, x, &r, a, &a[n + 1], sums);
    for (r.track = 0; r.track < 2; r.track++) sum_row(t, x, &r, &a[r.track * (n + 1)]);
}

static bool attend_tracks(const tracks *t, size_t l, const sinkproof_layer *layer, const double *q,
                          const double *k, const double *v, double *out) {
    static const sinkproof_trace_point points[] = {TRACE_A6, TRACE_A9, TRACE_A10};
    const sinkproof_config *c = t->pass->config;
    size_t rows = c->n_heads * t->n;
    size_t pair = 2 * (t->n + 1); // scores, then weights, of both tracks
    sinkproof_errors(*sums)[3] = calloc(rows, sizeof *sums);
    bool fine = sums != NULL;
    size_t count = fine ? rows : 0; // inside the loop each thread has a `fine` of its own
#pragma omp parallel for schedule(dynamic, 16) reduction(&& : fine)
    for (size_t r = 0; r < count; r++) {
        head x = {.layer = l,
                  .h = r / t->n,
                  .window = c->sliding[l] ? c->window : 0,
                  .q = q,
                  .k = k,
                  .v = v,
                  .out = out};
        double *work = judge_truth_array(2 * pair + sinkproof_normaliser_work(c));
        fine = fine && work != NULL;
        if (work != NULL) {
            x.normaliser = sinkproof_head_normaliser(c, layer, x.h, work + 2 * pair);
            attend_row(t, &x, r % t->n, work, work + pair, sums[r]);
        }
        free(work);
    }
    for (size_t p = 0; fine && p < 3; p++) {
        sinkproof_errors *sum = point_errors(t, points[p], l);
        for (size_t r = 0; sum != NULL && r < rows; r++) errors_add(sum, &sums[r][p]);
    }
    free(sums);
    return fine;
}

static bool norm_tracks(const tracks *t, sinkproof_trace_point point, size_t l, double *out) {
    const sinkproof_config *c = t->pass->config;
    double *work = judge_truth_array(2 * c->hidden);
    sinkproof_matrix scale, shift;
    sinkproof_point at;
    if (work == NULL || !sinkproof_trace_rounding(point, &at)) return false;
    layer_norm_weights(t->pass, l, point, &scale, &shift);
    if (c->norm == SINKPROOF_LAYERNORM)
        sinkproof_layernorm(&t->real, at, &scale, &shift, c->rms_eps, 2 * t->n, t->x, out, work);
    else
        sinkproof_rmsnorm(&t->real, at, &scale, c->rms_eps, 2 * t->n, t->x, out, work);
    free(work);
    return compare_point(t, point, l, c->hidden, NULL, out);
}

static bool add_residual(const tracks *t, sinkproof_trace_point point, size_t l,
                         const double *out) {
    for (size_t i = 0; i < 2 * t->n * t->pass->config->hidden; i++) t->x[i] += out[i];
    return compare_point(t, point, l, t->pass->config->hidden, NULL, t->x);
}

static void rotate_tracks(const tracks *t, size_t heads, double *x) {
    size_t d = t->pass->config->head_dim;
    for (size_t track = 0; track < 2; track++)
        sinkproof_rope(&t->real, t->n, heads, d, t->cos_nd, t->sin_nd,
                       x + track * t->n * heads * d);
}

static bool attention_tracks(const tracks *t, size_t l, const sinkproof_layer *layer) {
    const sinkproof_config *c = t->pass->config;
    size_t m = 2 * t->n, wide = c->n_heads * c->head_dim, narrow = c->n_kv_heads * c->head_dim;
    double *out = judge_truth_array(m * c->hidden), *q = judge_truth_array(m * wide),
           *k = judge_truth_array(m * narrow);
    double *v = judge_truth_array(m * narrow), *o = judge_truth_array(m * wide);
    bool fine = out != NULL && q != NULL && k != NULL && v != NULL && o != NULL &&
                norm_tracks(t, TRACE_A1, l, out) &&
                judge_truth_project(2 * t->n, &layer->w_q, &layer->b_q, out, q) &&
                judge_truth_project(2 * t->n, &layer->w_k, &layer->b_k, out, k) &&
                judge_truth_project(2 * t->n, &layer->w_v, &layer->b_v, out, v) &&
                compare_point(t, TRACE_A2_Q, l, wide, NULL, q) &&
                compare_point(t, TRACE_A2_K, l, narrow, NULL, k) &&
                compare_point(t, TRACE_A2_V, l, narrow, NULL, v);
    if (fine && c->rotation.kind != SINKPROOF_NO_ROTATION)
        rotate_tracks(t, c->n_heads, q), rotate_tracks(t, c->n_kv_heads, k);
    fine =
        fine && compare_point(t, TRACE_A4_Q, l, wide, NULL, q) &&
        compare_point(t, TRACE_A4_K, l, narrow, NULL, k) &&
        attend_tracks(t, l, layer, q, k, v, o) && compare_point(t, TRACE_A11, l, wide, NULL, o) &&
        judge_truth_project(2 * t->n, &layer->w_o, &layer->b_o, o, out) &&
        compare_point(t, TRACE_A12, l, c->hidden, NULL, out) && add_residual(t, TRACE_A13, l, out);
    free(out);
    free(q);
    free(k);
    free(v);
    free(o);
    return fine;
}

// ---- experts

typedef struct choice {
    int32_t *chosen; // [2][n][k]
    double *weight;  // [2][n][k]
    bool *open_n;    // the engine's choice is unknown
} choice;

// Computes M3 and M4 of both tracks.
static void choose_experts(const tracks *t, size_t l, const double *logits, const choice *x) {
    const sinkproof_config *c = t->pass->config;
    size_t n = t->n, k = c->n_chosen;
    for (size_t r = 0; r < 2 * n; r++) {
        const double *g_e = &logits[r * c->n_experts];
        int32_t *chosen_k = &x->chosen[r * k];
        memcpy(chosen_k, &t->pass->chosen[(l * n + r % n) * k], k * sizeof *chosen_k);
        x->open_n[r % n] = chosen_k[0] < 0;
        if (chosen_k[0] < 0) sinkproof_router_choose(c->n_experts, k, g_e, chosen_k);
        double m = -INFINITY, z = 0, *w_k = &x->weight[r * k];
        for (size_t s = 0; s < k; s++) m = fmax(m, g_e[chosen_k[s]]);
        for (size_t s = 0; s < k; s++) z += w_k[s] = exp(g_e[chosen_k[s]] - m);
        for (size_t s = 0; s < k; s++) w_k[s] /= z;
    }
}

// y[q] = W_e x[row of q] + b_e for each slot q of both tracks; `share` slots share a row of x.
static bool map_experts(const tracks *t, const choice *x_k, const sinkproof_matrix *w,
                        const sinkproof_matrix *b, size_t share, const double *x, double *y) {
    size_t slots = 2 * t->n * t->pass->config->n_chosen,
           experts_tracks = t->pass->config->n_experts;
    bool fine = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
    for (size_t e = 0; e < experts_tracks; e++) {
        size_t *q = malloc(slots * sizeof *q), count = 0;
        for (size_t s = 0; q != NULL && s < slots; s++)
            if (x_k->chosen[s] == (int32_t)e) q[count++] = s;
        double *in = judge_truth_array(count * w->cols), *out = judge_truth_array(count * w->rows);
        sinkproof_matrix w_e = sinkproof_matrix_at(w, e), b_e = sinkproof_matrix_at(b, e);
        bool good = q != NULL && in != NULL && out != NULL;
        for (size_t s = 0; good && s < count; s++)
            memcpy(&in[s * w->cols], &x[q[s] / share * w->cols], w->cols * sizeof *in);
        if (count > 0) good = good && judge_truth_apply(count, &w_e, &b_e, in, out);
        for (size_t s = 0; good && s < count; s++)
            memcpy(&y[q[s] * w->rows], &out[s * w->rows], w->rows * sizeof *out);
        fine = fine && good;
        free(q);
        free(in);
        free(out);
    }
    return fine;
}

// Computes M5 to M11: out[2][n][hidden].
static bool mix_experts(const tracks *t, size_t l, const sinkproof_layer *layer, const choice *x,
                        const double *normed, double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t k = c->n_chosen, slots = 2 * t->n * k, inter = c->inter;
    double *up = judge_truth_array(slots * 2 * inter), *z = judge_truth_array(slots * inter);
    double *down = judge_truth_array(slots * c->hidden);
    bool fine = up != NULL && z != NULL && down != NULL &&
                map_experts(t, x, &layer->w_up, &layer->b_up, k, normed, up) &&
                compare_point(t, TRACE_M6, l, k * 2 * inter, x->open_n, up);
#pragma omp parallel for schedule(static)
    for (size_t q = 0; q < (fine ? slots : 0); q++)
        sinkproof_swiglu(&t->real, c->swiglu, inter, &up[q * 2 * inter], &z[q * inter]);
    fine = fine && compare_point(t, TRACE_M8, l, k * inter, x->open_n, z) &&
           map_experts(t, x, &layer->w_down, &layer->b_down, 1, z, down) &&
           compare_point(t, TRACE_M10, l, k * c->hidden, x->open_n, down);
    if (fine) sinkproof_mixture(&t->real, 2 * t->n, k, c->hidden, x->chosen, x->weight, down, out);
    free(up);
    free(z);
    free(down);
    return fine && compare_point(t, TRACE_M11, l, c->hidden, NULL, out);
}

static bool mlp_tracks(const tracks *t, size_t l, const sinkproof_layer *layer) {
    const sinkproof_config *c = t->pass->config;
    size_t m = 2 * t->n, width = layer->w_up.rows, inter = c->inter;
    double *x = judge_truth_array(m * c->hidden), *u = judge_truth_array(m * width),
           *z = judge_truth_array(m * inter);
    bool fine = x != NULL && u != NULL && z != NULL && norm_tracks(t, TRACE_M1, l, x) &&
                judge_truth_project(2 * t->n, &layer->w_up, &layer->b_up, x, u) &&
                compare_point(t, TRACE_M6, l, width, NULL, u);
    if (fine && c->activation == SINKPROOF_SWIGLU)
        sinkproof_swiglu(&t->real, c->swiglu, m * inter, u, z);
    else if (fine)
        sinkproof_gelu(&t->real, m * inter, u, z);
    fine = fine && compare_point(t, TRACE_M8, l, inter, NULL, z) &&
           judge_truth_project(2 * t->n, &layer->w_down, &layer->b_down, z, x) &&
           compare_point(t, TRACE_M10, l, c->hidden, NULL, x) && add_residual(t, TRACE_M12, l, x);
    free(x);
    free(u);
    free(z);
    return fine;
}

static bool experts_tracks(const tracks *t, size_t l, const sinkproof_layer *layer) {
    const sinkproof_config *c = t->pass->config;
    if (c->dense) return mlp_tracks(t, l, layer);
    size_t m = 2 * t->n, k = c->n_chosen;
    double *normed = judge_truth_array(m * c->hidden),
           *logits_tracks = judge_truth_array(m * c->n_experts);
    double *out = judge_truth_array(m * c->hidden);
    choice x = {malloc(m * k * sizeof *x.chosen), judge_truth_array(m * k),
                calloc(t->n, sizeof *x.open_n)};
    bool fine =
        normed != NULL && logits_tracks != NULL && out != NULL && x.chosen != NULL &&
        x.weight != NULL && x.open_n != NULL && norm_tracks(t, TRACE_M1, l, normed) &&
        judge_truth_project(2 * t->n, &layer->w_router, &layer->b_router, normed, logits_tracks) &&
        compare_point(t, TRACE_M2, l, c->n_experts, NULL, logits_tracks);
    if (fine) choose_experts(t, l, logits_tracks, &x);
    fine = fine && compare_point(t, TRACE_M4, l, k, x.open_n, x.weight) &&
           mix_experts(t, l, layer, &x, normed, out) && add_residual(t, TRACE_M12, l, out);
    free(normed);
    free(logits_tracks);
    free(out);
    free(x.chosen);
    free(x.weight);
    free(x.open_n);
    return fine;
}

// ---- the pass

// Computes F2 in pieces of the vocabulary, so that the full-size head needs bounded memory.
static bool logits_tracks(const tracks *t, const double *normed) {
    const sinkproof_tensor *f2 = sinkproof_trace_find(t->pass->trace, TRACE_F2, 0);
    sinkproof_errors *sum = point_errors(t, TRACE_F2, 0);
    sinkproof_matrix w = sinkproof_model_unembedding(t->pass->model);
    size_t blocks = (w.rows + JUDGE_TRUTH_ROWS - 1) / JUDGE_TRUTH_ROWS, n = t->n;
    if (f2 == NULL || sum == NULL) return true;
    sinkproof_errors *block_b = calloc(blocks, sizeof *block_b);
    bool fine = block_b != NULL;
    size_t count = fine ? blocks : 0; // inside the loop each thread has a `fine` of its own
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
    for (size_t b = 0; b < count; b++) {
        judge_truth_rows some = judge_truth_decoded(&w, b * JUDGE_TRUTH_ROWS, NULL);
        size_t rows = some.rows;
        double *y = judge_truth_array(2 * n * rows);
        bool good = y != NULL && judge_truth_multiply(2 * n, &some, normed, y, rows);
        for (size_t i = 0; good && i < n; i++) {
            sinkproof_errors e = measure_run_errors(f2, i * w.rows + b * JUDGE_TRUTH_ROWS, rows,
                                                    &y[i * rows], &y[(n + i) * rows]);
            errors_add(&block_b[b], &e);
        }
        fine = fine && good;
        free(some.w_rc);
        free(y);
    }
    for (size_t b = 0; fine && b < blocks; b++) errors_add(sum, &block_b[b]);
    free(block_b);
    return fine;
}

static bool finish_tracks(const tracks *t) {
    double *x = judge_truth_array(2 * t->n * t->pass->config->hidden);
    bool fine = x != NULL && norm_tracks(t, TRACE_F1, 0, x) && logits_tracks(t, x);
    free(x);
    return fine;
}

static bool begin_tracks(tracks *t) {
    const sinkproof_config *c = t->pass->config;
    size_t half = c->head_dim / 2;
    double *freq_d = judge_truth_array(half), *x = t->x = judge_truth_array(2 * t->n * c->hidden);
    t->cos_nd = judge_truth_array(t->n * half), t->sin_nd = judge_truth_array(t->n * half);
    bool fine = freq_d != NULL && t->cos_nd != NULL && t->sin_nd != NULL && x != NULL;
    if (fine) {
        double *second = x + t->n * c->hidden;
        sinkproof_matrix embedding = sinkproof_model_embedding(t->pass->model);
        sinkproof_matrix positions = sinkproof_model_slot(t->pass->model, 0, SINKPROOF_POSITIONS);
        sinkproof_yarn_frequencies(&t->real, c, freq_d);
        sinkproof_rope_table(&t->real, c, freq_d, 0, t->n, t->cos_nd, t->sin_nd);
        const int32_t *tokens = sinkproof_trace_tokens(t->pass->trace);
        sinkproof_embed(&t->real, &embedding, t->n, tokens, x);
        if (c->rotation.kind == SINKPROOF_NO_ROTATION) // there is room for a row in `second`
            sinkproof_embed_placed(&t->real, &embedding, &positions, 0, t->n, tokens, x, second);
        memcpy(second, x, t->n * c->hidden * sizeof *x);
    }
    free(freq_d);
    return fine && compare_point(t, TRACE_T0, 0, c->hidden, NULL, t->x);
}

bool judge_truth(judge_pass *pass) {
    tracks t = {.pass = pass, .n = pass->n};
    double step = (pass->all - pass->done) / (double)(pass->config->n_layers + 1);
    bool fine = sinkproof_policy_known("real-f64", &t.real) && begin_tracks(&t);
    for (size_t l = 0; fine && l < pass->config->n_layers; l++) {
        sinkproof_layer layer = sinkproof_model_layer(pass->model, l);
        fine = attention_tracks(&t, l, &layer) && experts_tracks(&t, l, &layer);
        judge_progress(pass, step);
    }
    fine = fine && finish_tracks(&t);
    judge_progress(pass, step);
    free(t.cos_nd);
    free(t.sin_nd);
    free(t.x);
    return fine;
}
