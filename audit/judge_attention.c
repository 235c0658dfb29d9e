// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's walk through one layer's attention, A1 to A13.
#include "audit/judge_internal.h"

#include <math.h>
#include <stdlib.h>

size_t sinkproof_first_key(const sinkproof_config *config, size_t layer, size_t i) {
    return config->sliding[layer] && i + 1 > config->window ? i + 1 - config->window : 0;
}

double *sinkproof_decoded(const sinkproof_matrix *matrix) {
    double *v = sinkproof_grab(matrix->cols, sizeof *v);
    sinkproof_matrix_row(matrix, 0, v);
    return v;
}

// y = round(W x + b) at a point, settled row by row.
static sinkproof_honest *projected(sinkproof_walk *walk, size_t l, sinkproof_point at,
                                   sinkproof_trace_point point, const sinkproof_planes *x,
                                   const sinkproof_matrix *w, const sinkproof_matrix *b) {
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * w->rows);
    sinkproof_honest *y = sinkproof_grab(walk->n * w->rows, sizeof *y);
    double *bias = sinkproof_decoded(b);
    sinkproof_honest_linear(&s, x, w, 0, w->rows, bias, y, w->rows);
    for (size_t i = 0; i < walk->n; i++) {
        sinkproof_honest *row = &y[i * w->rows];
        for (size_t r = 0; r < w->rows; r++)
            row[r] = sinkproof_honest_at(&s, at, sinkproof_honest_inside(&s, row[r]));
        sinkproof_settle(walk, point, l, i * w->rows, w->rows, row, 0, (double)i / (double)walk->n);
    }
    free(bias);
    return y;
}

static void rotated(sinkproof_walk *walk, size_t l, sinkproof_trace_point point, size_t heads,
                    sinkproof_honest *x) {
    size_t d = walk->config->head_dim, half = d / 2;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * heads * d);
    sinkproof_honest *y = sinkproof_grab(d, sizeof *y);
    for (size_t i = 0; i < walk->n; i++) {
        for (size_t h = 0; h < heads; h++) {
            sinkproof_honest *head = &x[(i * heads + h) * d];
            sinkproof_honest_rotate(&s, d, head, &walk->c_ip[i * half], &walk->s_ip[i * half], y);
            for (size_t k = 0; k < d; k++) head[k] = y[k];
            sinkproof_settle(walk, point, l, (i * heads + h) * d, d, head, 0,
                             (double)i / (double)walk->n);
        }
    }
    free(y);
}

// Row i of head h: scores z_j [n keys] become weights, masked keys and all, in p_j [n + 1].
// Returns the relative variance that the row's weights still share (0 once they are settled).
static double weights_row(sinkproof_walk *walk, const sinkproof_setting *s, size_t l, size_t h,
                          size_t i, sinkproof_honest *z_j, sinkproof_honest sink,
                          sinkproof_honest *p_j) {
    size_t n = walk->n, first = sinkproof_first_key(walk->config, l, i), seen = i + 1 - first;
    double where = (double)i / (double)n, common = 0;
    for (size_t j = first; j <= i; j++)
        z_j[j] = sinkproof_honest_score(s, walk->config->head_dim, z_j[j]);
    sinkproof_settle(walk, SINKPROOF_TRACE_A6, l, (h * n + i) * n + first, seen, &z_j[first], 0,
                     where);
    sinkproof_honest *a_j = sinkproof_grab(seen + 1, sizeof *a_j);
    sinkproof_honest_softmax(s, SINKPROOF_AT_A9, seen, &z_j[first], sink, a_j, &common);
    for (size_t j = 0; j < n; j++)
        p_j[j] = j >= first && j <= i ? a_j[j - first] : sinkproof_known(0);
    p_j[n] = a_j[seen];
    free(a_j);
    bool whole = sinkproof_settle(walk, SINKPROOF_TRACE_A9, l, (h * n + i) * (n + 1), n + 1, p_j,
                                  common, where);
    bool keys = sinkproof_settle(walk, SINKPROOF_TRACE_A10, l, (h * n + i) * n, n, p_j,
                                 whole ? 0 : common, where);
    return whole || keys ? 0 : common;
}

// Rows [first, first + rows) of one head: out[i, h, :] from rotated queries, keys and values.
static void head_rows(sinkproof_walk *walk, size_t l, size_t h, double sink_logit, size_t first,
                      size_t rows, const sinkproof_honest *q, const sinkproof_planes *keys,
                      const sinkproof_planes *values, sinkproof_honest *out) {
    const sinkproof_config *c = walk->config;
    size_t n = walk->n, d = c->head_dim, width = c->n_heads * d;
    sinkproof_setting s = sinkproof_walk_setting(walk, c->n_heads * n * (n + 1));
    sinkproof_honest *z = sinkproof_grab(rows * n, sizeof *z),
                     *p = sinkproof_grab(rows * (n + 1), sizeof *p);
    double *terms_i = sinkproof_grab(rows, sizeof *terms_i),
           *common_i = sinkproof_grab(rows, sizeof *common_i);
    sinkproof_planes query =
        sinkproof_planes_of(q + first * width + h * d, rows, d, width, s.mid_only);
    sinkproof_honest_products(&s, &query, keys, NULL, NULL, z, n);
    sinkproof_honest sink = sinkproof_honest_at(&s, SINKPROOF_AT_A8, sinkproof_known(sink_logit));
    for (size_t r = 0; r < rows; r++) {
        size_t i = first + r;
        common_i[r] = weights_row(walk, &s, l, h, i, &z[r * n], sink, &p[r * (n + 1)]);
        terms_i[r] = (double)(i + 1 - sinkproof_first_key(c, l, i));
    }
    sinkproof_planes weights = sinkproof_planes_of(p, rows, n, n + 1, s.mid_only);
    sinkproof_setting t = sinkproof_walk_setting(walk, n * width);
    sinkproof_honest_products(&t, &weights, values, terms_i, NULL, out + first * width + h * d,
                              width);
    for (size_t i = first; i < first + rows; i++) {
        sinkproof_honest *o = &out[i * width + h * d];
        for (size_t k = 0; k < d; k++)
            o[k] = sinkproof_honest_at(&t, SINKPROOF_AT_A11, sinkproof_honest_inside(&t, o[k]));
        sinkproof_settle(walk, SINKPROOF_TRACE_A11, l, i * width + h * d, d, o, common_i[i - first],
                         (double)i / (double)n);
    }
    sinkproof_planes_free(&query), sinkproof_planes_free(&weights);
    free(z), free(p), free(terms_i), free(common_i);
}

// One head, so many rows at a time that a long sequence needs no n^2 memory.
static void one_head(sinkproof_walk *walk, size_t l, size_t h, double sink_logit,
                     const sinkproof_honest *q, const sinkproof_planes *keys,
                     const sinkproof_planes *values, sinkproof_honest *out) {
    enum { AT_ONCE = 1 << 18 }; // scores: some 70 MiB with all that is made of them
    size_t n = walk->n, block = AT_ONCE / n > 0 ? AT_ONCE / n : 1;
    for (size_t first = 0; first < n; first += block)
        head_rows(walk, l, h, sink_logit, first, n - first < block ? n - first : block, q, keys,
                  values, out);
}

// [n, kv_heads, d] -> [d, n] of one key/value head, so that a weighted sum is a product of rows.
static sinkproof_planes transposed_values(const sinkproof_walk *walk, const sinkproof_honest *v,
                                          size_t g) {
    size_t n = walk->n, d = walk->config->head_dim, width = walk->config->n_kv_heads * d;
    sinkproof_honest *t = sinkproof_grab(n * d, sizeof *t);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < d; k++) t[k * n + j] = v[j * width + g * d + k];
    sinkproof_planes planes = sinkproof_planes_of(t, d, n, n, walk->end_to_end);
    free(t);
    return planes;
}

static void heads(sinkproof_walk *walk, size_t l, const sinkproof_layer *layer,
                  const sinkproof_honest *q, const sinkproof_honest *k, const sinkproof_honest *v,
                  sinkproof_honest *out) {
    const sinkproof_config *c = walk->config;
    size_t d = c->head_dim, group = c->n_heads / c->n_kv_heads;
    double *sinks = sinkproof_decoded(&layer->sinks);
    for (size_t g = 0; g < c->n_kv_heads; g++) {
        sinkproof_planes keys =
            sinkproof_planes_of(k + g * d, walk->n, d, c->n_kv_heads * d, walk->end_to_end);
        sinkproof_planes values = transposed_values(walk, v, g);
        for (size_t h = g * group; h < (g + 1) * group; h++)
            one_head(walk, l, h, sinks[h], q, &keys, &values, out);
        sinkproof_planes_free(&keys), sinkproof_planes_free(&values);
    }
    free(sinks);
}

// x = x + t at a residual point.
static void residual(sinkproof_walk *walk, size_t l, sinkproof_honest *x,
                     const sinkproof_honest *t) {
    size_t h = walk->config->hidden;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * h);
    for (size_t i = 0; i < walk->n; i++) {
        for (size_t k = i * h; k < (i + 1) * h; k++)
            x[k] =
                sinkproof_honest_at(&s, SINKPROOF_AT_A13,
                                    sinkproof_honest_inside(&s, sinkproof_honest_add(x[k], t[k])));
        sinkproof_settle(walk, SINKPROOF_TRACE_A13, l, i * h, h, &x[i * h], 0,
                         (double)i / (double)walk->n);
    }
}

void sinkproof_walk_attention(sinkproof_walk *walk, size_t l, sinkproof_honest *x_nd) {
    const sinkproof_config *c = walk->config;
    size_t n = walk->n, hidden = c->hidden, width = c->n_heads * c->head_dim;
    sinkproof_layer layer = sinkproof_model_layer(walk->model, l);
    sinkproof_setting s = sinkproof_walk_setting(walk, n * hidden);
    sinkproof_honest *t = sinkproof_grab(n * hidden, sizeof *t);
    double *scale = sinkproof_decoded(&layer.attn_norm), common;
    for (size_t i = 0; i < n; i++) {
        sinkproof_honest_rmsnorm(&s, SINKPROOF_AT_A1, hidden, &x_nd[i * hidden], scale, c->rms_eps,
                                 &t[i * hidden], &common);
        sinkproof_settle(walk, SINKPROOF_TRACE_A1, l, i * hidden, hidden, &t[i * hidden], common,
                         (double)i / (double)n);
    }
    sinkproof_planes planes = sinkproof_planes_of(t, n, hidden, hidden, s.mid_only);
    sinkproof_honest *q =
        projected(walk, l, SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_Q, &planes, &layer.w_q, &layer.b_q);
    sinkproof_honest *k =
        projected(walk, l, SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_K, &planes, &layer.w_k, &layer.b_k);
    sinkproof_honest *v =
        projected(walk, l, SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_V, &planes, &layer.w_v, &layer.b_v);
    sinkproof_planes_free(&planes);
    rotated(walk, l, SINKPROOF_TRACE_A4_Q, c->n_heads, q);
    rotated(walk, l, SINKPROOF_TRACE_A4_K, c->n_kv_heads, k);
    sinkproof_honest *out = sinkproof_grab(n * width, sizeof *out);
    heads(walk, l, &layer, q, k, v, out);
    free(q), free(k), free(v), free(t);
    planes = sinkproof_planes_of(out, n, width, width, s.mid_only);
    t = projected(walk, l, SINKPROOF_AT_A12, SINKPROOF_TRACE_A12, &planes, &layer.w_o, &layer.b_o);
    residual(walk, l, x_nd, t);
    sinkproof_planes_free(&planes);
    free(out), free(scale), free(t);
}
