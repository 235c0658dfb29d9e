// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Three ways to bound what an error at one layer is at the end of the next, in bits a layer, on a
// small model: balls, as the truth has them; 2-norms of all tokens together, with the norms of the
// matrices and of the other operations (estimated in binary64); and the derivative of a logit, of
// which a mean-value form encloses the one at every point between. The table of doc/12-truth.md.
#include "proofs/truth/forward.h"
#include "ref/backward/backward.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = 4, LAYERS = 8, BITS = 512, STEPS = 60, MOST = 1 << 16 };

// ---- balls: the largest radius at the end of each layer

static void see_ball(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    double *log2_l = context;
    size_t count = 1;
    if (strcmp(place->point, "M12") != 0) return;
    for (size_t d = 0; d < place->rank; d++) count *= place->shape[d];
    for (size_t i = 0; i < count; i++)
        log2_l[place->layer] = fmax(log2_l[place->layer], sinkproof_truth_radius_log2(values + i));
}

static double bits_of_balls(const sinkproof_model *model, const int32_t *tokens_n) {
    double log2_l[LAYERS];
    sinkproof_truth_result result;
    sinkproof_error error;
    for (size_t l = 0; l < LAYERS; l++) log2_l[l] = -INFINITY;
    sinkproof_truth_hooks hooks = {.see = see_ball, .context = log2_l};
    sinkproof_truth_request request = {
        .model = model, .n = N, .tokens_n = tokens_n, .bits = BITS, .hooks = &hooks};
    need(sinkproof_truth_forward(&request, &result, &error), &error);
    sinkproof_truth_result_clear(&result);
    return (log2_l[LAYERS - 1] - log2_l[0]) / (LAYERS - 1);
}

// ---- 2-norms

// The largest singular value of a [rows, cols], by powers of A^T A; a lower estimate.
static double largest_singular(size_t rows, size_t cols, const double *a_rc) {
    double *x = malloc(cols * sizeof *x), *y = malloc(rows * sizeof *y), size = 0;
    must(x != NULL && y != NULL);
    for (size_t c = 0; c < cols; c++) x[c] = 1 + 0.5 * sin((double)c);
    for (int step = 0; step < STEPS; step++) {
        double norm = 0;
        for (size_t r = 0; r < rows; r++) {
            y[r] = 0;
            for (size_t c = 0; c < cols; c++) y[r] += a_rc[r * cols + c] * x[c];
        }
        for (size_t c = 0; c < cols; c++) {
            x[c] = 0;
            for (size_t r = 0; r < rows; r++) x[c] += a_rc[r * cols + c] * y[r];
            norm += x[c] * x[c];
        }
        size = sqrt(sqrt(norm));
        for (size_t c = 0; c < cols; c++) x[c] /= sqrt(norm);
    }
    free(x);
    free(y);
    return size;
}

static double norm_of(const sinkproof_matrix *w) {
    double *a_rc = malloc(w->rows * w->cols * sizeof *a_rc);
    must(a_rc != NULL);
    for (size_t r = 0; r < w->rows; r++) sinkproof_matrix_row(w, r, a_rc + r * w->cols);
    double size = largest_singular(w->rows, w->cols, a_rc);
    free(a_rc);
    return size;
}

// Of the rows of a head: [N, dim], `stride` apart.
static double norm_of_head(const double *x, size_t stride, size_t dim) {
    double rows[MOST];
    for (size_t i = 0; i < N; i++) memcpy(rows + i * dim, x + i * stride, dim * sizeof *x);
    return largest_singular(N, dim, rows);
}

// |d norm(x)| <= max scale / rms |dx|: without its scale and over its rms it is a projection.
static double norm_of_norm(const sinkproof_config *c, const sinkproof_matrix *w, const double *x) {
    double scale_c[MOST], most = 0, factor = 0;
    sinkproof_matrix_row(w, 0, scale_c);
    for (size_t k = 0; k < c->hidden; k++) most = fmax(most, fabs(scale_c[k]));
    for (size_t i = 0; i < N; i++) {
        double mean = 0;
        for (size_t k = 0; k < c->hidden; k++)
            mean += x[i * c->hidden + k] * x[i * c->hidden + k] / (double)c->hidden;
        factor = fmax(factor, most / sqrt(mean + c->rms_eps));
    }
    return factor;
}

typedef struct parts {
    double products, scores, activation; // bits that each adds, of a layer
    double all;
} parts;

static double attention_norm(const sinkproof_config *c, const sinkproof_layer *w,
                             const sinkproof_activations *a, size_t l, parts *p) {
    size_t d = c->head_dim, heads = c->n_heads, kv = c->n_kv_heads;
    double group = sqrt((double)(heads / kv)), q = 0, k = 0, v = 0, alpha = 0;
    double turn = sinkproof_yarn_concentration(c);
    for (size_t h = 0; h < heads; h++) {
        size_t g = h / (heads / kv);
        double rows[MOST];
        q = fmax(q, norm_of_head(sinkproof_activations_at(a, l, TRACE_A4_Q) + h * d, heads * d, d));
        k = fmax(k, norm_of_head(sinkproof_activations_at(a, l, TRACE_A4_K) + g * d, kv * d, d));
        v = fmax(v, norm_of_head(sinkproof_activations_at(a, l, TRACE_A2_V) + g * d, kv * d, d));
        const double *alpha_ij = sinkproof_activations_at(a, l, TRACE_A9) + h * N * (N + 1);
        for (size_t i = 0; i < N; i++)
            memcpy(rows + i * N, alpha_ij + i * (N + 1), N * sizeof *rows);
        alpha = fmax(alpha, largest_singular(N, N, rows));
    }
    double score =
        (norm_of(&w->w_q) * turn * k + norm_of(&w->w_k) * turn * group * q) / sqrt((double)d);
    double values = v * score / 2 + alpha * group * norm_of(&w->w_v); // a softmax halves at least
    p->scores += log2(score * v / 2) / LAYERS;
    p->products += log2(norm_of(&w->w_v) * norm_of(&w->w_o)) / LAYERS;
    return norm_of(&w->w_o) * values;
}

static double experts_norm(const sinkproof_config *c, const sinkproof_layer *w,
                           const sinkproof_activations *a, size_t l, parts *p) {
    const double *chosen = sinkproof_activations_at(a, l, TRACE_M3);
    const double *up = sinkproof_activations_at(a, l, TRACE_M6);
    const double *down = sinkproof_activations_at(a, l, TRACE_M10);
    double through = 0, most = 0;
    for (size_t s = 0; s < N * c->n_chosen; s++) {
        sinkproof_matrix w_up = sinkproof_matrix_at(&w->w_up, (size_t)chosen[s]);
        sinkproof_matrix w_down = sinkproof_matrix_at(&w->w_down, (size_t)chosen[s]);
        double slope = 0, size = 0;
        for (size_t f = 0; f < c->inter; f++) {
            const double *gate = up + (s * c->inter + f) * 2;
            double dgate, dup;
            sinkproof_swiglu_backward(c->swiglu, gate[0], gate[1], 1, &dgate, &dup);
            slope = fmax(slope, hypot(dgate, dup));
        }
        for (size_t k = 0; k < c->hidden; k++)
            size += down[s * c->hidden + k] * down[s * c->hidden + k];
        through = fmax(through, norm_of(&w_up) * slope * norm_of(&w_down));
        most = fmax(most, sqrt((double)c->n_chosen * size)); // of all experts' results
        p->activation += log2(slope) / LAYERS / (double)(N * c->n_chosen);
    }
    return through + most * norm_of(&w->w_router) / 2;
}

static parts bits_of_norms(const sinkproof_model *model, const sinkproof_activations *a) {
    const sinkproof_config *c = sinkproof_model_config(model);
    parts p = {.all = 0};
    for (size_t l = 0; l < LAYERS; l++) {
        sinkproof_layer w = sinkproof_model_layer(model, l);
        const double *x = l == 0 ? sinkproof_activations_at(a, 0, TRACE_T0)
                                 : sinkproof_activations_at(a, l - 1, TRACE_M12);
        double of_x = norm_of_norm(c, &w.attn_norm, x);
        double of_y = norm_of_norm(c, &w.mlp_norm, sinkproof_activations_at(a, l, TRACE_A13));
        p.all += log2(1 + of_x * attention_norm(c, &w, a, l, &p)) / LAYERS;
        p.all += log2(1 + of_y * experts_norm(c, &w, a, l, &p)) / LAYERS;
    }
    return p;
}

// ---- derivatives: sizes of the derivatives of the last token's first logit, at each layer's end

static void see_derivative(void *context, const char *name, size_t rank, const size_t *shape,
                           const double *values) {
    double *sum_l = context;
    size_t count = 1, layer = strtoul(name, NULL, 10);
    const char *dot = strchr(name, '.');
    if (dot == NULL || strcmp(dot + 1, "dM12") != 0 || layer >= LAYERS) return;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    sum_l[layer] = 0;
    for (size_t i = 0; i < count; i++) sum_l[layer] += fabs(values[i]);
}

static double bits_of_derivatives(const sinkproof_model *model, const sinkproof_activations *a) {
    size_t vocab = sinkproof_model_config(model)->vocab;
    double *dlogits = calloc(N * vocab, sizeof *dlogits), sum_l[LAYERS] = {0}, bits = 0;
    const sinkproof_loss_gradients loss = {.dlogits_nv = dlogits};
    const sinkproof_gradient_observer observer = {see_derivative, sum_l};
    sinkproof_error error;
    must(dlogits != NULL);
    for (size_t v = 0; v < 16; v++) { // of some logits, the most that any grows
        dlogits[(N - 1) * vocab + v] = 1;
        need(sinkproof_backward(model, a, &loss, &observer, &error), &error);
        dlogits[(N - 1) * vocab + v] = 0;
        bits = fmax(bits, log2(sum_l[0] / sum_l[LAYERS - 1]) / (LAYERS - 1));
    }
    free(dlogits);
    return bits;
}

// The row of the table, as the chapter has it.
static bool is_printed(const char *way, double bits) {
    char row[128], text[1 << 17];
    FILE *chapter = fopen("doc/12-truth.md", "r");
    if (chapter == NULL) return false;
    text[fread(text, 1, sizeof text - 1, chapter)] = '\0';
    fclose(chapter);
    snprintf(row, sizeof row, "| %s | %.1f |", way, bits);
    return strstr(text, row) != NULL;
}

int main(void) {
    static const int32_t tokens[N] = {186, 91, 5, 204};
    sinkproof_model *model = open_model("synthetic:tiny,layers=8");
    sinkproof_policy real;
    sinkproof_error error;
    sinkproof_activations *a;
    need(sinkproof_policy_parse("real-f64", &real, &error), &error);
    need(sinkproof_activations_new(sinkproof_model_config(model), N, tokens, &a, &error), &error);
    sinkproof_session *session = sinkproof_session_new(model, &real);
    must(session != NULL);
    need(sinkproof_forward(session, N, tokens, NULL, &a->observer, &error), &error);
    double balls = bits_of_balls(model, tokens), slopes = bits_of_derivatives(model, a);
    parts norms = bits_of_norms(model, a);
    ok(slopes < norms.all && norms.all < balls,
       "bits a layer: %.1f by balls, %.1f by 2-norms, %.1f by derivatives", balls, norms.all,
       slopes);
    ok(is_printed("balls, as here", balls) &&
           is_printed("2-norms of all tokens together", norms.all) &&
           is_printed("derivatives of a logit", slopes) && fabs(norms.scores - 6.4) < 0.05,
       "the table of the chapter has these numbers");
    note("of 2-norms: scores %.1f, values and output %.1f, activation %.1f", norms.scores,
         norms.products, norms.activation);
    sinkproof_session_free(session);
    sinkproof_activations_free(a);
    sinkproof_model_close(model);
    flint_cleanup();
    return tap_done();
}
