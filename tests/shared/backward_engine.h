// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A fused attention kernel that goes back, in float32, with its freedoms drawn and mistakes
// planted, and the trace of one training step that it leaves: q, k, v, dO and the gradients, of two
// layers.
#ifndef SINKPROOF_TESTS_BACKWARD_ENGINE_H
#define SINKPROOF_TESTS_BACKWARD_ENGINE_H

#include "audit/trace/trace.h"
#include "base/splitmix.h"
#include "model/sinks.h"
#include "ref/stages.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum planted_mistake {
    PLANTED_NONE,
    PLANTED_ZERO,
    PLANTED_FROZEN,
    PLANTED_SIGN,
    PLANTED_PER_SPLIT,
    PLANTED_OVER_GROUP,
    PLANTED_LAST_BLOCK,
    PLANTED_SCALED,
    PLANTED_SQRT,
    PLANTED_NO_DLSE,
    PLANTED_RENORMALISED,
    PLANTED_NO_WINDOW,
    PLANTED_NO_MASK,
    PLANTED_ONE_HEAD,
    PLANTED_BIAS_OF_ONES,
    PLANTED_NO_SINK,
    PLANTED_STALE_LSE,
    PLANTED_MISTAKES
} planted_mistake;

// What one draw of an honest kernel does, and the mistake.
typedef struct fused_kernel {
    planted_mistake mistake;
    uint64_t seed;           // of its order of rows
    bool delta_of_output;    // D = <dO, O>, else the sum over the keys
    bool output_stored;      // with O as it was stored
    bool weights_kept;       // else exp(s - LSE)
    bool narrow_operands;    // P and dS rounded before their products
    bool eager;              // every result stored
    sinkproof_format narrow; // F32: none
} fused_kernel;

enum { ENGINE_LAYERS = 2 };

// One training step of the kernel. Arrays are [n, heads, dim] and [n, groups, dim].
typedef struct step {
    size_t n, heads, groups, dim;
    size_t cut; // the row where a second sequence begins; 0: there is one
    float *q[ENGINE_LAYERS], *k[ENGINE_LAYERS], *v[ENGINE_LAYERS], *dout[ENGINE_LAYERS];
    float *out[ENGINE_LAYERS], *dq[ENGINE_LAYERS], *dk[ENGINE_LAYERS], *dv[ENGINE_LAYERS];
    float *dlse[ENGINE_LAYERS], *dsink[ENGINE_LAYERS], *dbias[ENGINE_LAYERS];
} step;

static float as(sinkproof_format format, double x) {
    return (float)sinkproof_round(format, (double)(float)x);
}
static float normal(uint64_t *seed) {
    double u = ((double)(sinkproof_draw(seed) >> 11) + 0.5) * 0x1p-53;
    double w = (double)(sinkproof_draw(seed) >> 11) * 0x1p-53;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * w));
}
static float *drawn(size_t count, uint64_t *seed, sinkproof_format format, float size) {
    float *x = calloc(count + 1, sizeof *x);
    must(x != NULL);
    for (size_t i = 0; i < count; i++) x[i] = as(format, size * normal(seed));
    return x;
}
static float *empty(size_t count) {
    float *x = calloc(count + 1, sizeof *x);
    must(x != NULL);
    return x;
}

static step step_new(const sinkproof_config *c, size_t n, uint64_t seed, sinkproof_format format) {
    step s = {.n = n, .heads = c->n_heads, .groups = c->n_kv_heads, .dim = c->head_dim};
    size_t wide = n * s.heads * s.dim, thin = n * s.groups * s.dim;
    for (size_t l = 0; l < ENGINE_LAYERS; l++) {
        s.q[l] = drawn(wide, &seed, format, 1), s.k[l] = drawn(thin, &seed, format, 1);
        s.v[l] = drawn(thin, &seed, format, 1), s.dout[l] = drawn(wide, &seed, format, 1);
        s.dlse[l] = drawn(s.heads * n, &seed, format, 0.5f);
        s.out[l] = empty(wide), s.dq[l] = empty(wide), s.dk[l] = empty(thin);
        s.dv[l] = empty(thin), s.dsink[l] = empty(s.heads), s.dbias[l] = empty(s.groups * s.dim);
    }
    return s;
}

static void step_free(step *s) {
    for (size_t l = 0; l < ENGINE_LAYERS; l++) {
        float *all[] = {s->q[l],  s->k[l],  s->v[l],  s->dout[l],  s->dlse[l], s->out[l],
                        s->dq[l], s->dk[l], s->dv[l], s->dsink[l], s->dbias[l]};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    }
}

// The keys of a row, [first, end).
static void engine_sees(const fused_kernel *e, const step *s, size_t window, size_t i,
                        size_t *first, size_t *end) {
    *first = sinkproof_mask_first(e->mistake == PLANTED_NO_WINDOW ? 0 : window, i);
    *end = e->mistake == PLANTED_NO_MASK ? s->n : i + 1;
}

static float score(const step *s, size_t l, size_t h, size_t i, size_t j, const fused_kernel *e) {
    const float *q = s->q[l] + (i * s->heads + h) * s->dim;
    const float *k = s->k[l] + (j * s->groups + h / (s->heads / s->groups)) * s->dim;
    float sum = 0, scale = 1 / sqrtf((float)s->dim);
    for (size_t d = 0; d < s->dim; d++) sum += q[d] * k[d];
    if (e->eager) return as(e->narrow, as(e->narrow, sum) * scale);
    return sum * scale;
}

static float log_sum_exp(const step *s, size_t l, size_t h, size_t i, size_t window, float sink,
                         const fused_kernel *e) {
    size_t first = sinkproof_mask_first(window, i);
    float most = sink, sum = 0;
    for (size_t j = first; j <= i; j++) most = fmaxf(most, score(s, l, h, i, j, e));
    for (size_t j = first; j <= i; j++) sum += expf(score(s, l, h, i, j, e) - most);
    return most + logf(sum + expf(sink - most));
}

static void shuffle(size_t n, size_t *order, uint64_t seed) {
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t at = (size_t)(sinkproof_draw(&seed) >> 33) % i, kept = order[at];
        order[at] = order[i - 1], order[i - 1] = kept;
    }
}

// What one row gives.
typedef struct row_gradients {
    float p[256], ds[256], out[64], sink_weight, db;
    size_t first, end;
} row_gradients;

static void row_forward(const fused_kernel *e, const step *s, size_t l, size_t h, size_t i,
                        size_t window, float sink, row_gradients *r) {
    size_t from = e->mistake == PLANTED_STALE_LSE && i > 0 ? i - 1 : i;
    float lse =
        log_sum_exp(s, l, h, from, window, e->mistake == PLANTED_NO_SINK ? -INFINITY : sink, e);
    float most = -INFINITY, sum = 0;
    engine_sees(e, s, window, i, &r->first, &r->end);
    bool kept = e->weights_kept && e->mistake == PLANTED_NONE;
    for (size_t j = r->first; kept && j < r->end; j++) most = fmaxf(most, score(s, l, h, i, j, e));
    most = fmaxf(most, sink);
    for (size_t j = r->first; kept && j < r->end; j++)
        sum += r->p[j] = expf((e->eager ? as(e->narrow, score(s, l, h, i, j, e) - most)
                                        : score(s, l, h, i, j, e) - most));
    float of_sink = expf(e->eager ? as(e->narrow, sink - most) : sink - most);
    for (size_t j = r->first; j < r->end; j++)
        r->p[j] = kept ? r->p[j] / (sum + of_sink) : expf(score(s, l, h, i, j, e) - lse);
    r->sink_weight = kept ? of_sink / (sum + of_sink) : expf(sink - lse);
    if (e->eager)
        for (size_t j = r->first; j < r->end; j++) r->p[j] = as(e->narrow, r->p[j]);
    if (e->eager) r->sink_weight = as(e->narrow, r->sink_weight);
}

static void row_backward(const fused_kernel *e, const step *s, size_t l, size_t h, size_t i,
                         row_gradients *r) {
    size_t g = h / (s->heads / s->groups), stride = s->groups * s->dim;
    const float *d_o = s->dout[l] + (i * s->heads + h) * s->dim;
    float delta = 0, dp[256], dlse = e->mistake == PLANTED_NO_DLSE ? 0 : s->dlse[l][h * s->n + i];
    if (e->eager) dlse = 0;
    for (size_t d = 0; d < s->dim; d++) {
        r->out[d] = 0;
        for (size_t j = r->first; j < r->end && j <= i; j++)
            r->out[d] += r->p[j] * s->v[l][j * stride + g * s->dim + d];
    }
    for (size_t j = r->first; j < r->end; j++) {
        dp[j] = 0;
        for (size_t d = 0; d < s->dim; d++) dp[j] += d_o[d] * s->v[l][j * stride + g * s->dim + d];
        if (e->eager) dp[j] = as(e->narrow, dp[j]);
    }
    for (size_t d = 0; e->delta_of_output && !e->eager && d < s->dim; d++)
        delta += d_o[d] * (e->output_stored ? as(e->narrow, r->out[d]) : r->out[d]);
    for (size_t j = r->first; (!e->delta_of_output || e->eager) && j < r->end; j++)
        delta += e->eager ? as(e->narrow, r->p[j] * dp[j]) : r->p[j] * dp[j];
    if (e->mistake == PLANTED_RENORMALISED) delta /= 1 - r->sink_weight;
    for (size_t j = r->first; j < r->end; j++)
        r->ds[j] = e->eager ? as(e->narrow, as(e->narrow, r->p[j] * dp[j]) - r->p[j] * delta)
                            : r->p[j] * (dp[j] - delta) + r->p[j] * dlse;
    r->db = r->sink_weight * (dlse - delta);
    if (e->eager) r->db = as(e->narrow, -(r->sink_weight * delta));
    for (size_t j = r->first; e->narrow_operands && j < r->end; j++)
        r->ds[j] = as(e->narrow, r->ds[j]), r->p[j] = as(e->narrow, r->p[j]);
}

static void add_row(const step *s, size_t l, size_t h, size_t i, const row_gradients *r, float *dk,
                    float *dv) {
    size_t g = h / (s->heads / s->groups);
    float scale = 1 / sqrtf((float)s->dim);
    float *dq = s->dq[l] + (i * s->heads + h) * s->dim;
    const float *q = s->q[l] + (i * s->heads + h) * s->dim;
    const float *d_o = s->dout[l] + (i * s->heads + h) * s->dim;
    for (size_t j = r->first; j < r->end; j++)
        for (size_t d = 0; d < s->dim; d++) {
            size_t at = (j * s->groups + g) * s->dim + d;
            dq[d] += r->ds[j] * s->k[l][at];
            dk[at] += r->ds[j] * q[d] * scale;
            dv[at] += r->p[j] * d_o[d];
        }
    for (size_t d = 0; d < s->dim; d++) dq[d] *= scale;
}

static void add_bias(const fused_kernel *e, const step *s, size_t l) {
    size_t each = s->heads / s->groups, width = s->groups * s->dim;
    for (size_t i = 0; i < s->n; i++)
        for (size_t c = 0; e->mistake != PLANTED_BIAS_OF_ONES && c < width; c++)
            s->dbias[l][c] += s->dv[l][i * width + c];
    for (size_t i = 0; e->mistake == PLANTED_BIAS_OF_ONES && i < s->n; i++)
        for (size_t h = 0; h < s->heads; h++)
            for (size_t d = 0; d < s->dim; d++)
                s->dbias[l][h / each * s->dim + d] += s->dout[l][(i * s->heads + h) * s->dim + d];
}

static void spoil_sinks(const fused_kernel *e, const step *s, size_t l) {
    size_t each = s->heads / s->groups;
    float sum[64] = {0};
    for (size_t h = 0; h < s->heads; h++) sum[h / each] += s->dsink[l][h];
    for (size_t h = 0; h < s->heads; h++) {
        float *x = &s->dsink[l][h];
        if (e->mistake == PLANTED_ZERO) *x = 0;
        if (e->mistake == PLANTED_SIGN) *x = -*x;
        if (e->mistake == PLANTED_PER_SPLIT) *x *= 3;
        if (e->mistake == PLANTED_SCALED) *x *= 0.37f;
        if (e->mistake == PLANTED_SQRT) *x /= sqrtf((float)s->dim);
        if (e->mistake == PLANTED_OVER_GROUP) *x = sum[h / each];
        if (e->mistake == PLANTED_FROZEN && l == 1) *x = s->dsink[0][h];
    }
}

static void layer_back(const fused_kernel *e, const sinkproof_model *model, const step *s,
                       size_t l) {
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_layer weights = sinkproof_model_layer(model, l);
    size_t window = c->sliding[l] ? c->window : 0, each = s->heads / s->groups, order[256];
    double work[1024];
    static row_gradients r; // one at a time
    must(sinkproof_normaliser_work(c) <= 1024 && s->n <= 256 && s->dim <= 64);
    for (size_t h = 0; h < s->heads; h++) {
        float sink = as(e->narrow, sinkproof_head_normaliser(c, &weights, h, work).logit);
        bool counts = e->mistake != PLANTED_ONE_HEAD || h % each == 0;
        float *unused = empty(s->n * s->groups * s->dim);
        shuffle(s->n, order, e->seed + h);
        for (size_t at = 0; at < s->n; at++) {
            size_t i = order[at];
            row_forward(e, s, l, h, i, window, sink, &r);
            row_backward(e, s, l, h, i, &r);
            for (size_t d = 0; d < s->dim; d++)
                s->out[l][(i * s->heads + h) * s->dim + d] = as(e->narrow, r.out[d]);
            add_row(s, l, h, i, &r, counts ? s->dk[l] : unused, counts ? s->dv[l] : unused);
            if (e->mistake != PLANTED_LAST_BLOCK || i >= (s->n - 1) / 16 * 16)
                s->dsink[l][h] += r.db;
        }
        free(unused);
    }
    add_bias(e, s, l);
    spoil_sinks(e, s, l);
}

static void run_step(const fused_kernel *e, const sinkproof_model *model, step *s) {
    for (size_t l = 0; l < ENGINE_LAYERS; l++) layer_back(e, model, s, l);
}

// ---- two sequences end to end ----------------------------------------------------------------

static void behind(float *to, const float *x, size_t nx, const float *y, size_t ny, size_t width) {
    memcpy(to, x, nx * width * sizeof *to);
    memcpy(to + nx * width, y, ny * width * sizeof *to);
}

__attribute__((unused)) static step joined(const sinkproof_config *c, const step *x,
                                           const step *y) {
    step s = step_new(c, x->n + y->n, 1, SINKPROOF_F32);
    size_t wide = s.heads * s.dim, thin = s.groups * s.dim;
    s.cut = x->n;
    for (size_t l = 0; l < ENGINE_LAYERS; l++) {
        behind(s.q[l], x->q[l], x->n, y->q[l], y->n, wide);
        behind(s.k[l], x->k[l], x->n, y->k[l], y->n, thin);
        behind(s.v[l], x->v[l], x->n, y->v[l], y->n, thin);
        behind(s.out[l], x->out[l], x->n, y->out[l], y->n, wide);
        behind(s.dout[l], x->dout[l], x->n, y->dout[l], y->n, wide);
        behind(s.dq[l], x->dq[l], x->n, y->dq[l], y->n, wide);
        behind(s.dk[l], x->dk[l], x->n, y->dk[l], y->n, thin);
        behind(s.dv[l], x->dv[l], x->n, y->dv[l], y->n, thin);
        for (size_t h = 0; h < s.heads; h++) {
            behind(s.dlse[l] + h * s.n, x->dlse[l] + h * x->n, x->n, y->dlse[l] + h * y->n, y->n,
                   1);
            s.dsink[l][h] = x->dsink[l][h] + y->dsink[l][h];
        }
        for (size_t i = 0; i < thin; i++) s.dbias[l][i] = x->dbias[l][i] + y->dbias[l][i];
    }
    return s;
}

// ---- its trace -------------------------------------------------------------------------------

typedef struct trace_text {
    char header[8192];
    char *data;
    size_t used, bytes;
} trace_text;

static void put(trace_text *t, const char *name, const char *dtype, const char *shape,
                const void *x, size_t bytes) {
    t->used +=
        (size_t)snprintf(t->header + t->used, sizeof t->header - t->used,
                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                         t->used > 1 ? "," : "", name, dtype, shape, t->bytes, t->bytes + bytes);
    must(t->used < sizeof t->header);
    t->data = realloc(t->data, t->bytes + bytes);
    must(t->data != NULL);
    memcpy(t->data + t->bytes, x, bytes);
    t->bytes += bytes;
}

// Stored as float32, or as the two upper bytes of what bfloat16 rounds.
static void put_floats(trace_text *t, size_t layer, const char *name, const char *shape,
                       const float *x, size_t count, sinkproof_format format) {
    char full[64];
    snprintf(full, sizeof full, "%02zu.%s", layer, name);
    if (format != SINKPROOF_BF16) {
        put(t, full, "F32", shape, x, count * sizeof *x);
        return;
    }
    uint16_t *narrow = malloc(count * sizeof *narrow);
    must(narrow != NULL);
    for (size_t i = 0; i < count; i++) {
        float rounded = as(format, x[i]);
        uint32_t bits;
        memcpy(&bits, &rounded, sizeof bits);
        narrow[i] = (uint16_t)(bits >> 16);
    }
    put(t, full, "BF16", shape, narrow, count * sizeof *narrow);
    free(narrow);
}

// `kept`: a bit for each of the tensors below, in each layer; all: ~0.
static sinkproof_trace *step_trace(const sinkproof_model *model, const step *s, const char *loss,
                                   uint64_t kept, sinkproof_format format) {
    trace_text t = {.used = 1, .header = "{"};
    int32_t tokens[256], positions[256];
    char n[24], wide[64], thin[64], lse[48], heads[24], width[24];
    sinkproof_error error;
    sinkproof_trace *trace;
    for (size_t i = 0; i < s->n; i++)
        tokens[i] = (int32_t)i % 50, positions[i] = (int32_t)(i - (i >= s->cut ? s->cut : 0));
    snprintf(n, sizeof n, "%zu", s->n);
    snprintf(wide, sizeof wide, "%zu,%zu,%zu", s->n, s->heads, s->dim);
    snprintf(thin, sizeof thin, "%zu,%zu,%zu", s->n, s->groups, s->dim);
    snprintf(lse, sizeof lse, "%zu,%zu", s->heads, s->n);
    snprintf(heads, sizeof heads, "%zu", s->heads);
    snprintf(width, sizeof width, "%zu", s->groups * s->dim);
    t.used += (size_t)snprintf(
        t.header + t.used, sizeof t.header - t.used,
        "\"__metadata__\":{\"format\":\"sinkproof-trace-1\",\"loss\":\"%s\"}", loss);
    put(&t, "tokens", "I32", n, tokens, s->n * sizeof *tokens);
    put(&t, "positions", "I32", n, positions, s->n * sizeof *positions);
    const int32_t ends[3] = {0, (int32_t)s->cut, (int32_t)s->n};
    if (s->cut > 0) put(&t, "cu_seqlens", "I32", "3", ends, sizeof ends);
    size_t w = s->n * s->heads * s->dim, h = s->n * s->groups * s->dim;
    for (size_t l = 0; l < ENGINE_LAYERS; l++) {
        const struct {
            const char *name, *shape;
            const float *x;
            size_t count;
        } all[] = {{"A4.q", wide, s->q[l], w},
                   {"A4.k", thin, s->k[l], h},
                   {"A2.v", thin, s->v[l], h},
                   {"A11", wide, s->out[l], w},
                   {"dA11", wide, s->dout[l], w},
                   {"dA9.lse", lse, s->dlse[l], s->heads * s->n},
                   {"dA4.q", wide, s->dq[l], w},
                   {"dA4.k", thin, s->dk[l], h},
                   {"dA2.v", thin, s->dv[l], h},
                   {"dsink", heads, s->dsink[l], s->heads},
                   {"db.v", width, s->dbias[l], s->groups * s->dim}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            bool reads_lse = strstr(loss, "lse") != NULL || strcmp(all[i].name, "dA9.lse") != 0;
            if (reads_lse && (kept >> (l * 16 + i) & 1) != 0)
                put_floats(&t, l, all[i].name, all[i].shape, all[i].x, all[i].count, format);
        }
    }
    t.header[t.used++] = '}';
    while (t.used % 8 != 0) t.header[t.used++] = ' ';
    uint64_t length = t.used;
    char *bytes = malloc(8 + t.used + t.bytes);
    must(bytes != NULL);
    memcpy(bytes, &length, 8); // little-endian machines
    memcpy(bytes + 8, t.header, t.used);
    memcpy(bytes + 8 + t.used, t.data, t.bytes);
    free(t.data);
    need(trace_adopt(bytes, 8 + t.used + t.bytes, "step", sinkproof_model_config(model), &trace,
                     &error),
         &error);
    return trace;
}

#endif
