// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One pass: the rows of all segments through all layers (T0 ... F2), in the lane arithmetic of
// fast/lanes/lanes.h. With few rows a layer has six barriers: every thread computes the norms for
// itself, and the thread that computes a column also adds it to the residual.
#include "fast/engine/internal.h"
#include "model/model.h"

#include <math.h>
#include <omp.h>
#include <string.h>

void round_to_bf16(const sinkproof_kernels *kernels, size_t n, float *x, uint16_t *bits) {
    size_t whole = n / 16 * 16, rest = n - whole;
    if (whole > 0) kernels->round_bf16(whole, x, bits);
    if (rest == 0) return;
    float tail[16] = {0};
    uint16_t tail_bits[16];
    memcpy(tail, x + whole, rest * sizeof *tail);
    kernels->round_bf16(16, tail, tail_bits);
    memcpy(x + whole, tail, rest * sizeof *tail);
    if (bits != NULL) memcpy(bits + whole, tail_bits, rest * sizeof *tail_bits);
}

pass_norm_step layer_norm(const engine_pass *pass, const float *scale_c, bool attention) {
    const sinkproof_engine *e = pass->engine;
    pass_norm_step norm = {.scale_c = scale_c, .point = attention ? AT_A1 : AT_M1};
    if (e->config->norm != SINKPROOF_LAYERNORM) return norm;
    norm.scale = sinkproof_model_slot(e->model, pass->l,
                                      attention ? SINKPROOF_ATTN_NORM : SINKPROOF_MLP_NORM);
    norm.shift = sinkproof_model_slot(e->model, pass->l,
                                      attention ? SINKPROOF_ATTN_NORM_B : SINKPROOF_MLP_NORM_B);
    return norm;
}

static void layernorm_row(const sinkproof_engine *e, const engine_worker *w,
                          const pass_norm_step *norm, const float *x_c, float *t_c) {
    size_t hidden = e->config->hidden;
    double *from_c = w->work, *to_c = from_c + hidden, *rest = to_c + hidden;
    for (size_t c = 0; c < hidden; c++) from_c[c] = x_c[c];
    sinkproof_layernorm(&e->policy, norm->point, &norm->scale, &norm->shift, e->config->rms_eps, 1,
                        from_c, to_c, rest);
    for (size_t c = 0; c < hidden; c++) t_c[c] = (float)to_c[c];
}

// One row of a norm into t, with the bits in t16.
static void norm_row(const sinkproof_engine *e, const engine_worker *w, const pass_norm_step *norm,
                     const float *x_c, float *t_c, uint16_t *t16_c) {
    if (norm->shift.count > 0)
        layernorm_row(e, w, norm, x_c, t_c);
    else
        e->kernels->rmsnorm(e->config->hidden, x_c, norm->scale_c, (float)e->config->rms_eps, t_c);
    if (e->bf16_operands) e->kernels->round_bf16(e->width.hidden, t_c, t16_c);
}

// Normalises the rows of x in `row_n` (NULL: all n) into t. Few rows: each thread does all of them;
// otherwise the threads share them, and a barrier follows.
static void norm_rows(engine_pass *pass, engine_worker *w, size_t n, const wanted_rows *row_n,
                      const pass_norm_step *norm) {
    sinkproof_engine *e = pass->engine;
    size_t hidden = e->width.hidden, team = (size_t)w->team, id = (size_t)w->id;
    bool own = n <= ENGINE_OWN_ROWS && pass->observer == NULL;
    float *t_nc = own ? w->t_nc : e->b.t_nc;
    uint16_t *t16_nc = own ? w->t16_nc : e->b.t16_nc;
    size_t first = own ? 0 : n * id / team, last = own ? n : n * (id + 1) / team;
    for (size_t i = first; i < last; i++) {
        size_t row = row_n != NULL ? row_n[i].row : i;
        norm_row(e, w, norm, pass_row_at(e->b.x_nc, hidden, row), t_nc + i * hidden,
                 t16_nc + i * hidden);
    }
    if (!own) team_barrier();
    for (size_t i = 0; i < n; i++) {
        w->x_n[i] = t_nc + i * hidden;
        w->x16_n[i] = t16_nc + i * hidden;
    }
}

void pass_norm(engine_pass *pass, engine_worker *w, const pass_norm_step *norm) {
    norm_rows(pass, w, pass->n, NULL, norm);
}

static void show_rows(engine_pass *pass, const engine_worker *w, const char *name, size_t width,
                      float *rows, size_t stride) {
    pass_show_point(pass, w, name, 2, (size_t[]){pass->n, width}, rows, width, stride);
}

// ---- A1 to A13 -------------------------------------------------------------------------------

void pass_multiply(const sinkproof_engine *e, const engine_worker *w, const packed_matrix *packed,
                   size_t first, size_t last, float *y_nr, size_t width, size_t n) {
    for (size_t i = 0; i < n; i++) w->y_n[i] = y_nr + i * width;
    sinkproof_product product = {.weight = &packed->weight,
                                 .bias_r = packed->bias_r,
                                 .n = n,
                                 .x_n = w->x_n,
                                 .x16_n = e->bf16_operands ? w->x16_n : NULL,
                                 .y_n = w->y_n};
    e->kernels->linear(&product, first, last, w->scratch);
}

// The same for one of several consecutive products; `before`: panels of the products before it.
static void multiply_part(const sinkproof_engine *e, const engine_worker *w,
                          const packed_matrix *packed, size_t before, size_t first, size_t last,
                          float *y_nr, size_t width, size_t n) {
    size_t end = before + packed->weight.panels;
    first = first > before ? first : before;
    last = last < end ? last : end;
    if (first < last) pass_multiply(e, w, packed, first - before, last - before, y_nr, width, n);
}

static void project_qkv(engine_pass *pass, engine_worker *w, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    const fast_buffers *b = &e->b;
    const packed_matrix *w_q = &layer->matrix[SINKPROOF_W_Q], *w_k = &layer->matrix[SINKPROOF_W_K],
                        *w_v = &layer->matrix[SINKPROOF_W_V];
    size_t q = w_q->weight.panels, k = q + w_k->weight.panels, total = k + w_v->weight.panels;
    size_t first, last;
    team_counter *counter = team_next_stage(pass, w);
    while (counter_take_piece(counter, w, total, 4, &first, &last)) {
        multiply_part(e, w, w_q, 0, first, last, b->q_nd, e->width.q, pass->n);
        multiply_part(e, w, w_k, q, first, last, b->k_nd, e->width.kv, pass->n);
        multiply_part(e, w, w_v, k, first, last, b->v_nd, e->width.kv, pass->n);
    }
    team_barrier();
}

// A12 and A13, M10 and M12: the thread that computes a column adds it.
void pass_add_to_residual(engine_pass *pass, engine_worker *w, const packed_matrix *packed,
                          const float *rows, const uint16_t *bits, size_t stride) {
    const sinkproof_engine *e = pass->engine;
    const fast_buffers *b = &e->b;
    size_t hidden = e->width.hidden, first, last;
    team_counter *counter = team_next_stage(pass, w);
    for (size_t i = 0; i < pass->n; i++) {
        w->x_n[i] = rows + i * stride;
        w->x16_n[i] = bits + i * stride;
    }
    while (counter_take_piece(counter, w, packed->weight.panels, 4, &first, &last)) {
        pass_multiply(e, w, packed, first, last, b->out_nc, hidden, pass->n);
        for (size_t i = 0; i < pass->n; i++)
            e->kernels->add(16 * (last - first), b->out_nc + i * hidden + 16 * first,
                            b->x_nc + i * hidden + 16 * first);
    }
    team_barrier();
}

static void attention_sublayer(engine_pass *pass, engine_worker *w, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    size_t hidden = e->config->hidden;
    pass_norm_step norm = layer_norm(pass, layer->vector_c[SINKPROOF_ATTN_NORM], true);
    pass_norm(pass, w, &norm);
    show_rows(pass, w, "A1", hidden, e->b.t_nc, e->width.hidden);
    project_qkv(pass, w, layer);
    pass_attention(pass, w, layer);
    pass_add_to_residual(pass, w, &layer->matrix[SINKPROOF_W_O], e->b.o_nd, e->b.o16_nd,
                         e->width.q);
    show_rows(pass, w, "A12", hidden, e->b.out_nc, e->width.hidden);
    show_rows(pass, w, "A13", hidden, e->b.x_nc, e->width.hidden);
}

// ---- F1, F2 ----------------------------------------------------------------------------------

static void finish_logits(engine_pass *pass, engine_worker *w) {
    const sinkproof_engine *e = pass->engine;
    size_t vocab = e->config->vocab, n = pass->n_wanted, first, last;
    const wanted_rows *wanted = e->b.wanted;
    if (n == 0) return;
    pass_norm_step norm = {.scale_c = e->final_norm_c, .point = AT_F1};
    if (e->config->norm == SINKPROOF_LAYERNORM) {
        norm.scale = sinkproof_model_final_norm(e->model);
        norm.shift = sinkproof_model_slot(e->model, 0, SINKPROOF_FINAL_NORM_B);
    }
    norm_rows(pass, w, n, wanted, &norm);
    show_rows(pass, w, "F1", e->config->hidden, e->b.t_nc, e->width.hidden);
    // Directly to the caller, unless panels are wider than the caller's rows.
    bool direct = vocab % SINKPROOF_PANEL_ROWS == 0 && pass->observer == NULL;
    for (size_t i = 0; i < n; i++)
        w->y_n[i] = direct ? wanted[i].to : e->b.logits_nv + i * e->width.vocab;
    sinkproof_product product = {.weight = &e->unembed.weight,
                                 .n = n,
                                 .x_n = w->x_n,
                                 .x16_n = e->bf16_operands ? w->x16_n : NULL,
                                 .y_n = w->y_n};
    team_counter *counter = team_next_stage(pass, w);
    while (counter_take_piece(counter, w, e->unembed.weight.panels, 8, &first, &last))
        e->kernels->linear(&product, first, last, w->scratch);
    team_barrier();
    if (w->id != 0 || direct) return;
    for (size_t i = 0; i < n; i++)
        if (wanted[i].to != NULL) memcpy(wanted[i].to, w->y_n[i], vocab * sizeof(float));
}

// ---- the loop --------------------------------------------------------------------------------

// All threads pack a streamed layer when the pass reaches it.
static const packed_layer *reach_layer(engine_pass *pass, engine_worker *w,
                                       packed_layer *streamed) {
    sinkproof_engine *e = pass->engine;
    if (!e->options.streamed) return &e->layers[pass->l];
    if (w->id == 0) {
        pack_layer(e->model, pass->l, e->weights.data, &e->list, streamed);
        if (e->options.progress != NULL)
            e->options.progress(e->options.context, "layer", pass->l, e->config->n_layers);
    }
    team_barrier();
    size_t unit;
    team_counter *counter = team_next_stage(pass, w);
    while (counter_take_one(counter, e->list.units, &unit)) pack_unit(&e->list, unit, w->work);
    team_barrier();
    return streamed;
}

static void run_layers(engine_pass *shared, engine_worker *w) {
    engine_pass pass = *shared; // each thread has its own l
    sinkproof_engine *e = pass.engine;
    w->stage = 0;
    pass.l = 0;
    show_rows(&pass, w, "T0", e->config->hidden, e->b.x_nc, e->width.hidden);
    for (; pass.l < e->config->n_layers; pass.l++) {
        const packed_layer *layer = reach_layer(&pass, w, e->layers);
        attention_sublayer(&pass, w, layer);
        if (e->config->dense)
            pass_perceptron(&pass, w, layer);
        else
            pass_experts(&pass, w, layer);
    }
    finish_logits(&pass, w);
    if (pass.observer != NULL)
        show_rows(&pass, w, "F2", e->config->vocab, e->b.logits_nv, e->width.vocab);
}

// The angles of a row's position.
static void set_angles(sinkproof_engine *e, size_t row, size_t position) {
    size_t half = e->config->head_dim / 2;
    sinkproof_rope_table(&e->policy, e->config, e->freq_d, position, 1, e->row, e->row + half);
    for (size_t d = 0; d < half; d++) {
        e->b.cos_nd[row * half + d] = (float)e->row[d];
        e->b.sin_nd[row * half + d] = (float)e->row[half + d];
    }
}

// T0 of one row: its token's embedding, plus a position's row if the model does not rotate.
static void embed_row(sinkproof_engine *e, size_t row, int32_t token, size_t position) {
    sinkproof_matrix embedding = sinkproof_model_embedding(e->model);
    float *x_c = e->b.x_nc + row * e->width.hidden;
    size_t hidden = e->config->hidden;
    if (e->config->rotation.kind != SINKPROOF_NO_ROTATION) {
        sinkproof_embed(&e->policy, &embedding, 1, &token, e->row);
        for (size_t c = 0; c < hidden; c++) x_c[c] = (float)e->row[c];
        set_angles(e, row, position);
        return;
    }
    sinkproof_matrix positions = sinkproof_model_slot(e->model, 0, SINKPROOF_POSITIONS);
    sinkproof_embed_placed(&e->policy, &embedding, &positions, position, 1, &token, e->row,
                           e->row + hidden);
    for (size_t c = 0; c < hidden; c++) x_c[c] = (float)e->row[c];
}

// T0 of all rows.
static void embed_rows(engine_pass *pass) {
    sinkproof_engine *e = pass->engine;
    for (size_t s = 0; s < pass->n_segments; s++) {
        const pass_segment *segment = &e->b.segments[s];
        for (size_t i = 0; i < segment->n; i++)
            embed_row(e, segment->row + i, segment->tokens_n[i], segment->first + i);
    }
}

void pass_run(engine_pass *pass) {
    sinkproof_engine *e = pass->engine;
    memset(e->counters, 0, (e->config->n_layers + 1) * ENGINE_STAGES * sizeof *e->counters);
    embed_rows(pass);
#pragma omp parallel num_threads(e->threads)
    {
        engine_worker *w = &e->workers[omp_get_thread_num()];
        w->team = omp_get_num_threads();
        team_barrier();
        run_layers(pass, w);
        team_barrier();
    }
}
