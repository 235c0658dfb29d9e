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
#include "ref/stages.h"
#include "ref/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Arrays are [2][n][width]: the truth's rows, then the local ones.
typedef struct tracks {
    judge_pass *pass;
    sinkproof_policy real;
    size_t n;
    double *cos_nd, *sin_nd;
    double *at[TRACE_POINTS]; // the latest values of every point
    int32_t *chosen;          // [2][n][k]
    bool *open_n;             // the engine's choice of experts is unknown
    double work;              // of a layer, for the progress display
} tracks;

// Numbers of a point that belong to a token.
static size_t row_width(const tracks *t, sinkproof_trace_point point) {
    return sinkproof_trace_elements(t->pass->config, point, 1);
}

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
    sinkproof_sequence of = sinkproof_trace_sequence_of(t->pass->trace, i);
    size_t n = t->n, first = of.row + sinkproof_mask_first(x->window, i - of.row);
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

// A11, and on the way to it A6, A9 and A10, row by row: their arrays would grow with n squared.
static bool attend(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                   double *out) {
    static const sinkproof_trace_point points[] = {TRACE_A6, TRACE_A9, TRACE_A10};
    const sinkproof_config *c = t->pass->config;
    size_t rows = c->n_heads * t->n, l = step->layer;
    sinkproof_walk_step weights = sinkproof_walk_step_at(t->pass->model, TRACE_A9, l);
    sinkproof_walk_step scores = sinkproof_walk_step_at(t->pass->model, TRACE_A6, l);
    sinkproof_layer stored = {.sinks = weights.weights[0]};
    size_t pair = 2 * (t->n + 1); // scores, then weights, of both tracks
    sinkproof_errors(*sums)[3] = calloc(rows, sizeof *sums);
    bool fine = sums != NULL;
    size_t count = fine ? rows : 0; // inside the loop each thread has a `fine` of its own
#pragma omp parallel for schedule(dynamic, 16) reduction(&& : fine)
    for (size_t r = 0; r < count; r++) {
        head x = {.layer = l,
                  .h = r / t->n,
                  .window = c->sliding[l] ? c->window : 0,
                  .q = t->at[scores.inputs[0].point],
                  .k = t->at[scores.inputs[1].point],
                  .v = in[1],
                  .out = out};
        double *work = judge_truth_array(2 * pair + sinkproof_normaliser_work(c));
        fine = fine && work != NULL;
        if (work != NULL) {
            x.normaliser = sinkproof_head_normaliser(c, &stored, x.h, work + 2 * pair);
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

// ---- experts

// M4, from a choice that both tracks have in common where the engine's is known.
static bool choose_and_share(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                             double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t n = t->n, k = c->n_chosen;
    for (size_t r = 0; r < 2 * n; r++) {
        const double *g_e = &in[0][r * c->n_experts];
        int32_t *chosen_k = &t->chosen[r * k];
        memcpy(chosen_k, &t->pass->chosen[(step->layer * n + r % n) * k], k * sizeof *chosen_k);
        t->open_n[r % n] = chosen_k[0] < 0;
        if (chosen_k[0] < 0) sinkproof_router_choose(c->n_experts, k, g_e, chosen_k);
        double m = -INFINITY, z = 0, *w_k = &out[r * k];
        for (size_t s = 0; s < k; s++) m = fmax(m, g_e[chosen_k[s]]);
        for (size_t s = 0; s < k; s++) z += w_k[s] = exp(g_e[chosen_k[s]] - m);
        for (size_t s = 0; s < k; s++) w_k[s] /= z;
    }
    return true;
}

// M6 and M10 with the products before them: out[q] = W_e x[row of q] + b_e for each slot q of both
// tracks; the slots of a token share its row of M1.
static bool multiply_experts(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                             double *out) {
    sinkproof_walk_step product =
        sinkproof_walk_step_at(t->pass->model, step->inputs[0].point, step->layer);
    const sinkproof_matrix *w = &product.weights[0], *b = &step->weights[0];
    const double *x = t->at[product.inputs[0].point];
    size_t k = t->pass->config->n_chosen, slots = 2 * t->n * k;
    size_t share = product.inputs[0].point == TRACE_M1 ? k : 1;
    (void)in;
    bool fine = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
    for (size_t e = 0; e < t->pass->config->n_experts; e++) {
        size_t *q = malloc(slots * sizeof *q), count = 0;
        for (size_t s = 0; q != NULL && s < slots; s++)
            if (t->chosen[s] == (int32_t)e) q[count++] = s;
        double *from = judge_truth_array(count * w->cols), *to = judge_truth_array(count * w->rows);
        sinkproof_matrix w_e = sinkproof_matrix_at(w, e), b_e = sinkproof_matrix_at(b, e);
        bool good = q != NULL && from != NULL && to != NULL;
        for (size_t s = 0; good && s < count; s++)
            memcpy(&from[s * w->cols], &x[q[s] / share * w->cols], w->cols * sizeof *from);
        if (count > 0) good = good && judge_truth_apply(count, &w_e, &b_e, from, to);
        for (size_t s = 0; good && s < count; s++)
            memcpy(&out[q[s] * w->rows], &to[s * w->rows], w->rows * sizeof *to);
        fine = fine && good;
        free(q);
        free(from);
        free(to);
    }
    return fine;
}

// Computes F2 in pieces of the vocabulary, so that the full-size head needs bounded memory.
static bool logits(const tracks *t, const sinkproof_matrix *w, const double *normed) {
    const sinkproof_tensor *f2 = sinkproof_trace_find(t->pass->trace, TRACE_F2, 0);
    sinkproof_errors *sum = point_errors(t, TRACE_F2, 0);
    size_t blocks = (w->rows + JUDGE_TRUTH_ROWS - 1) / JUDGE_TRUTH_ROWS, n = t->n;
    if (f2 == NULL || sum == NULL) return true;
    sinkproof_errors *block_b = calloc(blocks, sizeof *block_b);
    bool fine = block_b != NULL;
    size_t count = fine ? blocks : 0; // inside the loop each thread has a `fine` of its own
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
    for (size_t b = 0; b < count; b++) {
        judge_truth_rows some = judge_truth_decoded(w, b * JUDGE_TRUTH_ROWS, NULL);
        size_t rows = some.rows;
        double *y = judge_truth_array(2 * n * rows);
        bool good = y != NULL && judge_truth_multiply(2 * n, &some, normed, y, rows);
        for (size_t i = 0; good && i < n; i++) {
            sinkproof_errors e = measure_run_errors(f2, i * w->rows + b * JUDGE_TRUTH_ROWS, rows,
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

// ---- the other operations

// Both tracks begin alike.
static bool embed(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                  double *out) {
    const sinkproof_matrix *w = step->weights;
    const int32_t *tokens = sinkproof_trace_tokens(t->pass->trace);
    size_t half = t->n * w[0].cols;
    (void)in;
    size_t sequences = w[1].count > 0 ? sinkproof_trace_sequences(t->pass->trace) : 0;
    for (size_t s = 0; s < sequences; s++) { // the other half has room for a row
        sinkproof_sequence of = sinkproof_trace_sequence(t->pass->trace, s);
        sinkproof_embed_placed(&t->real, &w[0], &w[1], 0, of.rows, tokens + of.row,
                               out + of.row * w[0].cols, out + half);
    }
    if (sequences == 0) sinkproof_embed(&t->real, &w[0], t->n, tokens, out);
    memcpy(out + half, out, half * sizeof *out);
    return true;
}

static bool normalise(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                      double *out) {
    const sinkproof_matrix *w = step->weights;
    size_t rows =
        2 * t->n * row_width(t, step->point) / w[0].cols; // one of a token, or one of each head
    double *work = judge_truth_array(2 * w[0].cols), eps = t->pass->config->rms_eps;
    sinkproof_point at;
    if (work == NULL || !sinkproof_trace_rounding(step->point, &at)) return false;
    if (w[1].count > 0)
        sinkproof_layernorm(&t->real, at, &w[0], &w[1], eps, rows, in[0], out, work);
    else
        sinkproof_rmsnorm(&t->real, at, &w[0], eps, rows, in[0], out, work);
    free(work);
    return true;
}

static bool project(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                    double *out) {
    return judge_truth_project(2 * t->n, &step->weights[0], &step->weights[1], in[0], out);
}

static bool rotate(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                   double *out) {
    size_t width = row_width(t, step->point), d = t->pass->config->head_dim;
    memcpy(out, in[0], 2 * t->n * width * sizeof *out);
    for (size_t track = 0; track < 2; track++)
        sinkproof_rope(&t->real, t->n, width / d, d, t->cos_nd, t->sin_nd,
                       out + track * t->n * width);
    return true;
}

static bool add(tracks *t, const sinkproof_walk_step *step, const double *const *in, double *out) {
    size_t count = 2 * t->n * row_width(t, step->point);
    for (size_t i = 0; i < count; i++) out[i] = in[1][i] + in[0][i];
    return true;
}

static bool activate(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                     double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t width = row_width(t, step->point), wide = row_width(t, TRACE_M6);
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < 2 * t->n; r++)
        if (c->activation == SINKPROOF_SWIGLU)
            sinkproof_swiglu(&t->real, c->swiglu, width, &in[0][r * wide], &out[r * width]);
        else
            sinkproof_gelu(&t->real, width, &in[0][r * wide], &out[r * width]);
    return true;
}

static bool mix(tracks *t, const sinkproof_walk_step *step, const double *const *in, double *out) {
    const sinkproof_config *c = t->pass->config;
    (void)step;
    sinkproof_mixture(&t->real, 2 * t->n, c->n_chosen, c->hidden, t->chosen, in[1], in[0], out);
    return true;
}

// ---- the walk

typedef bool operation(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                       double *out);

// NULL: made on the way to a later point.
static operation *const operations[] = {
    [SINKPROOF_EMBED] = embed,
    [SINKPROOF_NORM] = normalise,
    [SINKPROOF_LINEAR] = project,
    [SINKPROOF_ROTATE] = rotate,
    [SINKPROOF_SCORE] = NULL,
    [SINKPROOF_SOFTMAX] = NULL,
    [SINKPROOF_DROP_SINK] = NULL,
    [SINKPROOF_SUM_VALUES] = attend,
    [SINKPROOF_ADD] = add,
    [SINKPROOF_CHOOSE] = NULL,
    [SINKPROOF_SHARE] = choose_and_share,
    [SINKPROOF_MULTIPLY] = NULL,
    [SINKPROOF_ADD_BIAS] = multiply_experts,
    [SINKPROOF_ACTIVATE] = activate,
    [SINKPROOF_MIX] = mix,
};

static void release_point(tracks *t, sinkproof_trace_point point) {
    free(t->at[point]);
    t->at[point] = NULL;
}

static bool walk_point(void *context, const sinkproof_walk_step *step) {
    tracks *t = context;
    operation *work = operations[step->operation];
    const double *in[SINKPROOF_MAX_INPUTS] = {NULL};
    size_t width = row_width(t, step->point);
    bool of_slots = step->point >= TRACE_M4 && step->point <= TRACE_M10;
    for (size_t i = 0; i < step->n_inputs; i++) in[i] = t->at[step->inputs[i].point];
    if (step->point == TRACE_F2) return logits(t, &step->weights[0], in[0]);
    if (work == NULL) return true;
    double *out = judge_truth_array(2 * t->n * width);
    bool fine = out != NULL && work(t, step, in, out) &&
                compare_point(t, step->point, step->layer, width, of_slots ? t->open_n : NULL, out);
    for (size_t i = 0; i < step->n_inputs; i++)
        if (step->last[i]) release_point(t, step->inputs[i].point);
    release_point(t, step->point); // of the layer before, if nothing reads it
    t->at[step->point] = out;
    if (step->point == TRACE_M12) {
        sinkproof_trace_forget_layer(t->pass->trace, step->layer);
        judge_progress(t->pass, t->work);
    }
    return fine;
}

static bool begin_tracks(tracks *t) {
    const sinkproof_config *c = t->pass->config;
    size_t half = c->head_dim / 2;
    double *freq_d = judge_truth_array(half);
    t->cos_nd = judge_truth_array(t->n * half), t->sin_nd = judge_truth_array(t->n * half);
    t->chosen = malloc((2 * t->n * c->n_chosen + 1) * sizeof *t->chosen);
    t->open_n = calloc(t->n, sizeof *t->open_n);
    bool fine = freq_d != NULL && t->cos_nd != NULL && t->sin_nd != NULL && t->chosen != NULL &&
                t->open_n != NULL;
    if (fine) {
        sinkproof_yarn_frequencies(&t->real, c, freq_d);
        for (size_t s = 0; s < sinkproof_trace_sequences(t->pass->trace); s++) {
            sinkproof_sequence of = sinkproof_trace_sequence(t->pass->trace, s);
            sinkproof_rope_table(&t->real, c, freq_d, 0, of.rows, t->cos_nd + of.row * half,
                                 t->sin_nd + of.row * half);
        }
    }
    free(freq_d);
    return fine;
}

// Nothing is measured where the tokens before a sequence are not known.
bool judge_truth(judge_pass *pass) {
    for (size_t s = 0; s < sinkproof_trace_sequences(pass->trace); s++)
        if (sinkproof_trace_sequence(pass->trace, s).first > 0) return true;
    tracks t = {.pass = pass,
                .n = pass->n,
                .work = (pass->all - pass->done) / (double)(pass->config->n_layers + 1)};
    bool fine = sinkproof_policy_known("real-f64", &t.real) && begin_tracks(&t) &&
                sinkproof_walk(pass->model, walk_point, &t);
    judge_progress(pass, t.work);
    for (int p = 0; p < TRACE_POINTS; p++) release_point(&t, (sinkproof_trace_point)p);
    free(t.cos_nd);
    free(t.sin_nd);
    free(t.chosen);
    free(t.open_n);
    return fine;
}
