// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kernels of fast/ as a plug-in, "builtin:fast", which is called like any other plug-in. Each
// call packs the weights and fills the caches on one thread, so that its time says nothing about
// the engine's speed.
#include "audit/plugin/drill.h"
#include "fast/kernels/isa.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 64, LANES = SINKPROOF_PANEL_ROWS, BLOCK = SINKPROOF_PANEL_COLS };

static size_t round_up_to(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

// Allocates zeroed memory for a whole number of vectors.
static void *vector_room(size_t count, size_t size) {
    size_t bytes = round_up_to(count * size + ALIGNED, ALIGNED);
    void *p = aligned_alloc(ALIGNED, bytes);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

// ---- products --------------------------------------------------------------------------------

// One weight and its bias, and the rows to which they are applied.
typedef struct product {
    size_t rows, cols, n;
    const float *w_rc, *b_r; // b_r may be NULL
    const float *x_nc;
    float *y_nr;
} product;

static bool apply_product(const sinkproof_kernels *with, const product *p) {
    size_t wide = round_up_to(p->cols, BLOCK), tall = round_up_to(p->rows, LANES),
           panels = tall / LANES;
    sinkproof_matrix m = {.dtype = SINKPROOF_DTYPE_F32, .count = 1, .rows = p->rows};
    m.cols = m.row_stride = p->cols;
    m.col_stride = 1;
    m.data = (const uint8_t *)p->w_rc;
    void *packed = vector_room(sinkproof_panels_bytes(SINKPROOF_PANEL_F32, p->rows, p->cols), 1);
    double *work = vector_room(p->cols + BLOCK, sizeof *work);
    void *scratch = vector_room(SINKPROOF_SCRATCH, 1);
    float *x = vector_room(p->n * wide, sizeof *x), *y = vector_room(p->n * tall, sizeof *y);
    float *b = vector_room(tall, sizeof *b);
    const float **x_n = vector_room(p->n, sizeof *x_n);
    float **y_n = vector_room(p->n, sizeof *y_n);
    bool fine = packed != NULL && work != NULL && scratch != NULL && x != NULL && y != NULL &&
                b != NULL && x_n != NULL && y_n != NULL;
    if (fine) {
        sinkproof_panels_pack(&m, SINKPROOF_PANEL_F32, 0, panels, packed, work);
        sinkproof_panels w = sinkproof_panels_at(SINKPROOF_PANEL_F32, p->rows, p->cols, packed);
        if (p->b_r != NULL) memcpy(b, p->b_r, p->rows * sizeof *b);
        for (size_t i = 0; i < p->n; i++) {
            memcpy(x + i * wide, p->x_nc + i * p->cols, p->cols * sizeof *x);
            x_n[i] = x + i * wide;
            y_n[i] = y + i * tall;
        }
        const sinkproof_product one = {
            .weight = &w, .bias_r = p->b_r != NULL ? b : NULL, .n = p->n, .x_n = x_n, .y_n = y_n};
        with->linear(&one, 0, panels, scratch);
        for (size_t i = 0; i < p->n; i++)
            memcpy(p->y_nr + i * p->rows, y_n[i], p->rows * sizeof *y);
    }
    free(packed);
    free(work);
    free(scratch);
    free(x);
    free(y);
    free(b);
    free(x_n);
    free(y_n);
    return fine;
}

// Applies the weight inputs[at], and the bias after it if `biased`, to x [n, ...], into y.
static bool map_through_weight(const sinkproof_kernels *with, const sinkproof_drill *d, size_t at,
                               bool biased, const sinkproof_array *x, const sinkproof_array *y) {
    const sinkproof_array *w = &d->inputs[at];
    product p = {.rows = w->shape[0], .cols = w->shape[1], .n = d->n, .w_rc = w->values};
    p.b_r = biased ? d->inputs[at + 1].values : NULL;
    p.x_nc = x->values;
    p.y_nr = y->values;
    return apply_product(with, &p);
}

static int qkv(void *context, const sinkproof_drill *d) {
    bool fine = true;
    const sinkproof_kernels *with = context;
    for (size_t i = 0; i < 3; i++)
        fine = fine && map_through_weight(with, d, 1 + 2 * i, true, &d->inputs[0], &d->outputs[i]);
    return fine ? 0 : -1;
}

static int output(void *context, const sinkproof_drill *d) {
    const sinkproof_kernels *with = context;
    return map_through_weight(with, d, 1, true, &d->inputs[0], &d->outputs[0]) ? 0 : -1;
}

static int unembed(void *context, const sinkproof_drill *d) {
    const sinkproof_kernels *with = context;
    return map_through_weight(with, d, 1, false, &d->inputs[0], &d->outputs[0]) ? 0 : -1;
}

// In the engine too, the choice and its weights are scalar code, equal to that of the lanes.
static int router(void *context, const sinkproof_drill *d) {
    double logits_e[1024];
    int32_t chosen_k[64];
    const sinkproof_kernels *with = context;
    if (d->experts > 1024 || d->chosen > 64) return 1;
    if (!map_through_weight(with, d, 1, true, &d->inputs[0], &d->outputs[0])) return -1;
    for (size_t i = 0; i < d->n; i++) {
        const float *g_e = d->outputs[0].values + i * d->experts;
        float *w_k = d->outputs[2].values + i * d->chosen, sum = 0;
        for (size_t e = 0; e < d->experts; e++) logits_e[e] = g_e[e];
        sinkproof_router_choose(d->experts, d->chosen, logits_e, chosen_k);
        for (size_t k = 0; k < d->chosen; k++) {
            d->outputs[1].values[i * d->chosen + k] = (float)chosen_k[k];
            float z = g_e[chosen_k[k]] - g_e[chosen_k[0]];
            with->exp(1, &z, &w_k[k]);
            sum += w_k[k];
        }
        for (size_t k = 0; k < d->chosen; k++) w_k[k] /= sum;
    }
    return 0;
}

// ---- rows ------------------------------------------------------------------------------------

static int rmsnorm(void *context, const sinkproof_drill *d) {
    size_t cols = d->hidden, wide = round_up_to(cols, BLOCK);
    float *x = vector_room(wide, sizeof *x), *y = vector_room(wide, sizeof *y),
          *w = vector_room(wide, sizeof *w);
    bool fine = x != NULL && y != NULL && w != NULL;
    const sinkproof_kernels *with = context;
    if (fine) memcpy(w, d->inputs[1].values, cols * sizeof *w);
    for (size_t i = 0; fine && i < d->n; i++) {
        memcpy(x, d->inputs[0].values + i * cols, cols * sizeof *x);
        with->rmsnorm(cols, x, w, (float)d->rms_eps, y);
        memcpy(d->outputs[0].values + i * cols, y, cols * sizeof *y);
    }
    free(x);
    free(y);
    free(w);
    return fine ? 0 : -1;
}

static sinkproof_swiglu_numbers swiglu_numbers(const sinkproof_drill *d) {
    return (sinkproof_swiglu_numbers){d->swiglu_alpha, d->swiglu_limit, 1};
}

static int swiglu(void *context, const sinkproof_drill *d) {
    size_t inter = d->inter, wide = round_up_to(inter, BLOCK), rows = d->n * d->chosen;
    float *x = vector_room(2 * wide, sizeof *x), *y = vector_room(wide, sizeof *y);
    bool fine = x != NULL && y != NULL;
    const sinkproof_kernels *with = context;
    for (size_t i = 0; fine && i < rows; i++) {
        memcpy(x, d->inputs[0].values + i * 2 * inter, 2 * inter * sizeof *x);
        with->swiglu(inter, swiglu_numbers(d), x, y);
        memcpy(d->outputs[0].values + i * inter, y, inter * sizeof *y);
    }
    free(x);
    free(y);
    return fine ? 0 : -1;
}

static int mixture(void *context, const sinkproof_drill *d) {
    size_t cols = d->hidden, wide = round_up_to(cols, BLOCK);
    const float *y_k[64];
    float *y = vector_room(d->chosen * wide, sizeof *y), *out = vector_room(wide, sizeof *out);
    bool fine = y != NULL && out != NULL;
    const sinkproof_kernels *with = context;
    if (d->chosen > 64) fine = false;
    for (size_t i = 0; fine && i < d->n; i++) {
        for (size_t k = 0; k < d->chosen; k++) {
            y_k[k] = y + k * wide;
            memcpy(y + k * wide, d->inputs[0].values + (i * d->chosen + k) * cols,
                   cols * sizeof *y);
        }
        with->mixture(cols, d->chosen, d->inputs[2].values + i * d->chosen, y_k, out);
        memcpy(d->outputs[0].values + i * cols, out, cols * sizeof *out);
    }
    free(y);
    free(out);
    return fine ? 0 : -1;
}

// One expert for one token: up, activation, down.
static bool one_expert(const sinkproof_kernels *with, const sinkproof_drill *d, size_t e,
                       const float *x_c, float *y_c) {
    size_t hidden = d->hidden, inter = d->inter, wide = round_up_to(inter, BLOCK);
    float *gate_up = vector_room(2 * wide, sizeof *gate_up), *act = vector_room(wide, sizeof *act);
    const product first = {.rows = 2 * inter,
                           .cols = hidden,
                           .n = 1,
                           .w_rc = d->inputs[2].values + e * 2 * inter * hidden,
                           .b_r = d->inputs[3].values + e * 2 * inter,
                           .x_nc = x_c,
                           .y_nr = gate_up};
    const product last = {.rows = hidden,
                          .cols = inter,
                          .n = 1,
                          .w_rc = d->inputs[4].values + e * hidden * inter,
                          .b_r = d->inputs[5].values + e * hidden,
                          .x_nc = act,
                          .y_nr = y_c};
    bool fine = gate_up != NULL && act != NULL && apply_product(with, &first);
    if (fine) with->swiglu(inter, swiglu_numbers(d), gate_up, act);
    fine = fine && apply_product(with, &last);
    free(gate_up);
    free(act);
    return fine;
}

static int experts(void *context, const sinkproof_drill *d) {
    bool fine = true;
    const sinkproof_kernels *with = context;
    for (size_t s = 0; fine && s < d->n * d->chosen; s++)
        fine = one_expert(with, d, (size_t)d->inputs[1].values[s],
                          d->inputs[0].values + s / d->chosen * d->hidden,
                          d->outputs[0].values + s * d->hidden);
    return fine ? 0 : -1;
}

// ---- rotation and attention ------------------------------------------------------------------

static sinkproof_config drill_config(const sinkproof_drill *d) {
    return (sinkproof_config){.head_dim = d->head_dim,
                              .rotation.theta = d->rope_theta,
                              .rotation.factor = d->yarn_factor,
                              .rotation.beta_fast = d->yarn_beta_fast,
                              .rotation.beta_slow = d->yarn_beta_slow,
                              .rotation.original_context = d->yarn_original_context,
                              .rotation.truncate = d->yarn_truncate};
}

// In the engine too, the angles come from the reference's table.
static int rope(void *context, const sinkproof_drill *d) {
    sinkproof_config config = drill_config(d);
    sinkproof_policy policy;
    size_t half = d->head_dim / 2, wide = round_up_to(d->head_dim, BLOCK);
    double *freq = vector_room(half, sizeof *freq), *c = vector_room(half, sizeof *c),
           *s = vector_room(half, sizeof *s);
    float *cos_d = vector_room(wide, sizeof *cos_d), *sin_d = vector_room(wide, sizeof *sin_d);
    float *x = vector_room(wide, sizeof *x);
    bool fine = freq != NULL && c != NULL && s != NULL && cos_d != NULL && sin_d != NULL &&
                x != NULL && sinkproof_policy_known("f32", &policy);
    const sinkproof_kernels *with = context;
    if (fine) sinkproof_yarn_frequencies(&policy, &config, freq);
    for (size_t i = 0; fine && i < d->n; i++) {
        sinkproof_rope_table(&policy, &config, freq, d->first + i, 1, c, s);
        for (size_t k = 0; k < half; k++) {
            cos_d[k] = (float)c[k];
            sin_d[k] = (float)s[k];
        }
        for (size_t t = 0; t < 2; t++)
            for (size_t h = 0; h < d->inputs[t].shape[1]; h++) {
                size_t at = (i * d->inputs[t].shape[1] + h) * d->head_dim;
                memcpy(x, d->inputs[t].values + at, d->head_dim * sizeof *x);
                with->rope(d->head_dim, cos_d, sin_d, x);
                memcpy(d->outputs[t].values + at, x, d->head_dim * sizeof *x);
            }
    }
    free(freq);
    free(c);
    free(s);
    free(cos_d);
    free(sin_d);
    free(x);
    return fine ? 0 : -1;
}

// Writes x in float32 at (row, column) of a panel's block of columns.
static void put_panel_number(uint8_t *block, size_t row, size_t column, float x) {
    memcpy(block + (column * LANES + row) * sizeof x, &x, sizeof x);
}

// The cache of one key/value head, with every block of positions in its place. NULL if memory runs
// out.
static uint8_t *fill_cache(const sinkproof_drill *d, size_t g, sinkproof_cache_view *view) {
    size_t dim = d->head_dim, wide = round_up_to(dim, BLOCK) / BLOCK, keys = d->first + d->n;
    size_t bytes = sinkproof_panel_block_bytes(SINKPROOF_PANEL_F32), of_keys = 2 * wide * bytes;
    *view = (sinkproof_cache_view){.format = SINKPROOF_PANEL_F32, .head_dim = dim};
    view->ring = round_up_to(keys, BLOCK) / BLOCK;
    view->place_stride = of_keys + round_up_to(dim, LANES) / LANES * bytes;
    view->span_stride = SINKPROOF_SPAN_BLOCKS * view->place_stride;
    uint8_t *memory = vector_room(view->ring * view->place_stride, 1);
    view->k = memory;
    view->v = memory + of_keys;
    for (size_t j = 0; memory != NULL && j < keys; j++) {
        uint8_t *k = memory + j / BLOCK * view->place_stride, *v = k + of_keys;
        size_t slot = j % BLOCK, at = (j * d->kv_heads + g) * dim;
        for (size_t c = 0; c < dim; c++) {
            put_panel_number(k + (slot / LANES * wide + c / BLOCK) * bytes, slot % LANES, c % BLOCK,
                             d->inputs[1].values[at + c]);
            put_panel_number(v + c / LANES * bytes, c % LANES, slot, d->inputs[2].values[at + c]);
        }
    }
    return memory;
}

static int attention(void *context, const sinkproof_drill *d) {
    size_t group = d->heads / d->kv_heads, stride = d->heads * d->head_dim;
    void *scratch = vector_room(SINKPROOF_SCRATCH, 1);
    bool fine = scratch != NULL;
    const sinkproof_kernels *with = context;
    if (d->head_dim > SINKPROOF_WIDEST_HEAD) return 1;
    for (size_t g = 0; fine && g < d->kv_heads; g++) {
        sinkproof_cache_view view;
        uint8_t *memory = fill_cache(d, g, &view);
        fine = memory != NULL;
        const sinkproof_attention one = {.cache = view,
                                         .group = group,
                                         .n = d->n,
                                         .first = d->first,
                                         .window = d->window,
                                         .scale = (float)(1 / sqrt((double)d->head_dim)),
                                         .sink_h = d->inputs[3].values + g * group,
                                         .q = d->inputs[0].values + g * group * d->head_dim,
                                         .q_stride = stride,
                                         .o = d->outputs[0].values + g * group * d->head_dim,
                                         .o_stride = stride};
        if (fine) with->attend(&one, scratch);
        free(memory);
    }
    free(scratch);
    return fine ? 0 : -1;
}

static const sinkproof_plugin_entry entries[] = {
    {"rmsnorm", rmsnorm}, {"qkv", qkv},         {"rope", rope},       {"attention", attention},
    {"output", output},   {"router", router},   {"experts", experts}, {"swiglu", swiglu},
    {"mixture", mixture}, {"unembed", unembed},
};

const sinkproof_plugin *plugin_builtin(const char *name) {
    static sinkproof_plugin fast = {.size = sizeof fast,
                                    .name = "the kernels of fast/",
                                    .n_stages = sizeof entries / sizeof *entries,
                                    .stages = entries,
                                    .policy = "f32"};
    const sinkproof_kernels *chosen = sinkproof_isa_choose(NULL, NULL);
    fast.context = (void *)chosen; // `with` of every stage
    return strcmp(name, "fast") == 0 && chosen != NULL ? &fast : NULL;
}
