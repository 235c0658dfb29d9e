// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How far is the engine from the truth, and how much of that did each operation add? The real model
// is run in binary64 on two tracks at once: from the tokens (the truth), and with every traced
// value replaced by the engine's own before the next operation (local). Over the reals
//   engine - truth = (engine - operation(engine's inputs)) + (operation(engine's inputs) - truth),
// so error = local + inherited, element by element. The engine's routing is replayed; where it is
// unknown, each track chooses by its own logits. Beside certified truth there is a third track: its
// values are replaced by the engine's at the points of the truth's file alone (judge_certified.h).
#include "audit/judge/judge_tracks.h"
#include "audit/judge/judge_truth_maps.h"
#include "audit/trace/trace_points.h"
#include "ref/stages.h"
#include "ref/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- attention

typedef struct head {
    size_t layer, h, window;
    const double *q, *k, *v; // [count][n][...]
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

// What is measured of a head's row: A6, A9, A10.
typedef struct row_sums {
    sinkproof_errors errors[3];
    certified_row certified[3];
} row_sums;
static const sinkproof_trace_point weight_points[] = {TRACE_A6, TRACE_A9, TRACE_A10};

// Measures some elements of one of them, x[count][stride].
static void measure_some(const tracks *t, const head *x, size_t p, size_t offset, size_t count,
                         double *values, row_sums *sums) {
    const sinkproof_tensor *tensor =
        sinkproof_trace_find(t->pass->trace, weight_points[p], x->layer);
    size_t stride = t->n + 1;
    truth_balls balls;
    if (tensor == NULL) return;
    sinkproof_errors more = tracks_measure(tensor, offset, count, values, values + stride);
    tracks_add(&sums->errors[p], &more);
    if (tracks_balls(t, weight_points[p], x->layer, &balls))
        certified_measure(&sums->certified[p], tensor, &balls, offset, count, values + 2 * stride);
}

// Measures A9 and A10 of row i of the head.
static void measure_weights(const tracks *t, const head *x, const query *r, double *values,
                            row_sums *sums) {
    size_t n = t->n, row = x->h * n + r->i;
    measure_some(t, x, 1, row * (n + 1) + r->first, r->seen, values, sums);
    measure_some(t, x, 1, row * (n + 1) + n, 1, values + r->seen, sums); // the sink's
    measure_some(t, x, 2, row * n + r->first, r->seen, values, sums);
}

// Computes scores, weights and values of row i on all tracks; s and a are [count][n + 1].
static void attend_row(const tracks *t, const head *x, size_t i, double *s, double *a,
                       row_sums *sums) {
    const sinkproof_config *c = t->pass->config;
    sinkproof_sequence of = sinkproof_trace_sequence_of(t->pass->trace, i);
    size_t n = t->n, first = of.row + sinkproof_mask_first(x->window, i - of.row);
    query r = {0, i, first, i + 1 - first, x->h / (c->n_heads / c->n_kv_heads)};
    for (r.track = 0; r.track < t->count; r.track++) score_row(t, x, &r, &s[r.track * (n + 1)]);
    measure_some(t, x, 0, (x->h * n + i) * n + first, r.seen, s, sums);
    for (r.track = 0; r.track < t->count; r.track++)
        weigh_row(t, x, &r, &s[r.track * (n + 1)], &a[r.track * (n + 1)]);
    measure_weights(t, x, &r, a, sums);
    for (r.track = 0; r.track < t->count; r.track++) sum_row(t, x, &r, &a[r.track * (n + 1)]);
}

// Adds up what the rows [heads, n] of a layer's A6, A9 and A10 measured.
static bool conclude_weights(const tracks *t, size_t layer, const row_sums *sums, size_t rows) {
    certified_row *row_r = calloc(rows, sizeof *row_r);
    for (size_t p = 0; row_r != NULL && p < 3; p++) {
        sinkproof_errors *sum = tracks_errors(t, weight_points[p], layer);
        truth_balls balls;
        for (size_t r = 0; sum != NULL && r < rows; r++) tracks_add(sum, &sums[r].errors[p]);
        if (sum == NULL || !tracks_balls(t, weight_points[p], layer, &balls)) continue;
        for (size_t r = 0; r < rows; r++) row_r[r] = sums[r].certified[p];
        tracks_conclude(t, sinkproof_trace_find(t->pass->trace, weight_points[p], layer),
                        weight_points[p], layer, row_r, rows, 0);
    }
    free(row_r);
    return row_r != NULL;
}

// A11, and on the way to it A6, A9 and A10, row by row: their arrays would grow with n squared.
static bool attend(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                   double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t rows = c->n_heads * t->n, l = step->layer;
    sinkproof_walk_step weights = sinkproof_walk_step_at(t->pass->model, TRACE_A9, l);
    sinkproof_walk_step scores = sinkproof_walk_step_at(t->pass->model, TRACE_A6, l);
    sinkproof_layer stored = {.sinks = weights.weights[0]};
    size_t all = t->count * (t->n + 1); // scores, then weights, of all tracks
    row_sums *sums = calloc(rows, sizeof *sums);
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
        double *work = judge_truth_array(2 * all + sinkproof_normaliser_work(c));
        fine = fine && work != NULL;
        if (work != NULL) {
            x.normaliser = sinkproof_head_normaliser(c, &stored, x.h, work + 2 * all);
            attend_row(t, &x, r % t->n, work, work + all, &sums[r]);
        }
        free(work);
    }
    fine = fine && conclude_weights(t, l, sums, rows);
    free(sums);
    return fine;
}

// ---- experts

// M4, from a choice that all tracks have in common where the engine's is known.
static bool choose_and_share(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                             double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t n = t->n, k = c->n_chosen;
    for (size_t r = 0; r < t->rows; r++) {
        const double *g_e = &in[0][r * c->n_experts];
        int32_t *chosen_k = &t->chosen[r * k];
        memcpy(chosen_k, &t->pass->chosen[(step->layer * n + r % n) * k], k * sizeof *chosen_k);
        t->open_n[r % n] = chosen_k[0] < 0;
        if (t->truth != NULL && r < n) tracks_compare_choice(t, step->layer, r, chosen_k);
        if (chosen_k[0] < 0) sinkproof_router_choose(c->n_experts, k, g_e, chosen_k);
        double m = -INFINITY, z = 0, *w_k = &out[r * k];
        for (size_t s = 0; s < k; s++) m = fmax(m, g_e[chosen_k[s]]);
        for (size_t s = 0; s < k; s++) z += w_k[s] = exp(g_e[chosen_k[s]] - m);
        for (size_t s = 0; s < k; s++) w_k[s] /= z;
    }
    return true;
}

// M6 and M10 with the products before them: out[q] = W_e x[row of q] + b_e for each slot q of all
// tracks; the slots of a token share its row of M1.
static bool multiply_experts(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                             double *out) {
    sinkproof_walk_step product =
        sinkproof_walk_step_at(t->pass->model, step->inputs[0].point, step->layer);
    const sinkproof_matrix *w = &product.weights[0], *b = &step->weights[0];
    const double *x = t->at[product.inputs[0].point];
    size_t k = t->pass->config->n_chosen, slots = t->rows * k;
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

// Measures rows [block's] of F2 for all tokens; row_n: what is measured beside certified truth.
static bool logits_block(const tracks *t, const sinkproof_matrix *w, const double *normed, size_t b,
                         sinkproof_errors *errors, certified_row *row_n) {
    const sinkproof_tensor *f2 = sinkproof_trace_find(t->pass->trace, TRACE_F2, 0);
    judge_truth_rows some = judge_truth_decoded(w, b * JUDGE_TRUTH_ROWS, NULL);
    size_t rows = some.rows, n = t->n;
    double *y = judge_truth_array(t->rows * rows);
    truth_balls balls;
    bool good = y != NULL && judge_truth_multiply(t->rows, &some, normed, y, rows);
    bool certified = tracks_balls(t, TRACE_F2, 0, &balls);
    for (size_t i = 0; good && i < n; i++) {
        size_t at = i * w->rows + b * JUDGE_TRUTH_ROWS;
        sinkproof_errors e = tracks_measure(f2, at, rows, &y[i * rows], &y[(n + i) * rows]);
        tracks_add(errors, &e);
        if (certified) certified_measure(&row_n[i], f2, &balls, at, rows, &y[(2 * n + i) * rows]);
    }
    free(some.w_rc);
    free(y);
    return good;
}

// Computes F2 in pieces of the vocabulary, AT_ONCE of them, so that the full-size head needs
// bounded memory. Pieces are added in their order, for any number of threads.
static bool logits(const tracks *t, const sinkproof_matrix *w, const double *normed) {
    enum { AT_ONCE = 64 };
    const sinkproof_tensor *f2 = sinkproof_trace_find(t->pass->trace, TRACE_F2, 0);
    sinkproof_errors *sum = tracks_errors(t, TRACE_F2, 0);
    size_t blocks = (w->rows + JUDGE_TRUTH_ROWS - 1) / JUDGE_TRUTH_ROWS, n = t->n;
    if (f2 == NULL || sum == NULL) return true;
    certified_row *row_n = calloc(n, sizeof *row_n), *row_bn = NULL;
    bool fine = row_n != NULL;
    for (size_t b0 = 0; fine && b0 < blocks; b0 += AT_ONCE) {
        size_t count = blocks - b0 < AT_ONCE ? blocks - b0 : AT_ONCE;
        sinkproof_errors error_b[AT_ONCE] = {{0}};
        free(row_bn);
        row_bn = calloc(count * n, sizeof *row_bn);
        fine = row_bn != NULL;
        if (!fine) break;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
        for (size_t b = 0; b < count; b++)
            fine = logits_block(t, w, normed, b0 + b, &error_b[b], &row_bn[b * n]) && fine;
        for (size_t b = 0; b < count; b++) tracks_add(sum, &error_b[b]);
        for (size_t r = 0; r < count * n; r++) certified_add(&row_n[r % n], &row_bn[r]);
    }
    truth_balls balls;
    if (fine && tracks_balls(t, TRACE_F2, 0, &balls)) {
        tracks_conclude(t, f2, TRACE_F2, 0, row_n, n, 0);
        t->pass->judgement->certified->argmax = certified_argmaxes(f2, &balls, n, w->rows);
    }
    free(row_n);
    free(row_bn);
    return fine;
}

// ---- the other operations

// All tracks begin alike.
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
    for (size_t track = 1; track < t->count; track++)
        memcpy(out + track * half, out, half * sizeof *out);
    return true;
}

static bool normalise(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                      double *out) {
    const sinkproof_matrix *w = step->weights;
    size_t rows =
        t->rows * tracks_width(t, step->point) / w[0].cols; // one of a token, or one of each head
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
    return judge_truth_project(t->rows, &step->weights[0], &step->weights[1], in[0], out);
}

static bool rotate(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                   double *out) {
    size_t width = tracks_width(t, step->point), d = t->pass->config->head_dim;
    memcpy(out, in[0], t->rows * width * sizeof *out);
    for (size_t track = 0; track < t->count; track++)
        sinkproof_rope(&t->real, t->n, width / d, d, t->cos_nd, t->sin_nd,
                       out + track * t->n * width);
    return true;
}

static bool add(tracks *t, const sinkproof_walk_step *step, const double *const *in, double *out) {
    size_t count = t->rows * tracks_width(t, step->point);
    for (size_t i = 0; i < count; i++) out[i] = in[1][i] + in[0][i];
    return true;
}

static bool activate(tracks *t, const sinkproof_walk_step *step, const double *const *in,
                     double *out) {
    const sinkproof_config *c = t->pass->config;
    size_t width = tracks_width(t, step->point), wide = tracks_width(t, TRACE_M6);
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < t->rows; r++)
        if (c->activation == SINKPROOF_SWIGLU)
            sinkproof_swiglu(&t->real, c->swiglu, width, &in[0][r * wide], &out[r * width]);
        else
            sinkproof_gelu(&t->real, width, &in[0][r * wide], &out[r * width]);
    return true;
}

static bool mix(tracks *t, const sinkproof_walk_step *step, const double *const *in, double *out) {
    const sinkproof_config *c = t->pass->config;
    (void)step;
    sinkproof_mixture(&t->real, t->rows, c->n_chosen, c->hidden, t->chosen, in[1], in[0], out);
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
    size_t width = tracks_width(t, step->point);
    bool of_slots = step->point >= TRACE_M4 && step->point <= TRACE_M10;
    for (size_t i = 0; i < step->n_inputs; i++) in[i] = t->at[step->inputs[i].point];
    if (step->point == TRACE_F2) return logits(t, &step->weights[0], in[0]);
    if (step->operation == SINKPROOF_MULTIPLY)
        return tracks_certify(t, step->point, step->layer, width, of_slots, NULL);
    if (work == NULL) return true;
    double *out = judge_truth_array(t->rows * width);
    bool fine = out != NULL && work(t, step, in, out) &&
                tracks_compare(t, step->point, step->layer, width, of_slots, out);
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
    t->chosen = malloc((t->rows * c->n_chosen + 1) * sizeof *t->chosen);
    t->open_n = calloc(t->n, sizeof *t->open_n), t->other_n = calloc(t->n, sizeof *t->other_n);
    bool fine = freq_d != NULL && t->cos_nd != NULL && t->sin_nd != NULL && t->chosen != NULL &&
                t->open_n != NULL && t->other_n != NULL;
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
    const truth_file *truth = pass->options->truth;
    size_t count = truth != NULL ? 3 : 2;
    if (truth != NULL) {
        pass->judgement->certified = certified_new(truth, pass->judgement->n_reports);
        if (pass->judgement->certified == NULL) return false;
        pass->judgement->certified->staged = true;
    }
    tracks t = {.pass = pass,
                .truth = truth,
                .n = pass->n,
                .count = count,
                .rows = count * pass->n,
                .work = (pass->all - pass->done) / (double)(pass->config->n_layers + 1)};
    bool fine = sinkproof_policy_known("real-f64", &t.real) && begin_tracks(&t) &&
                sinkproof_walk(pass->model, walk_point, &t);
    judge_progress(pass, t.work);
    for (int p = 0; p < TRACE_POINTS; p++) release_point(&t, (sinkproof_trace_point)p);
    free(t.cos_nd);
    free(t.sin_nd);
    free(t.chosen);
    free(t.open_n);
    free(t.other_n);
    return fine;
}
