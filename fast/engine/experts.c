// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// M1 to M12 of a pass. Each chosen expert is one product over all tokens that chose it, so that its
// weights are read once. The thread that computes gates and ups also computes the activation, panel
// by panel. For few rows the second product is split by columns: the thread that computes a column
// of all experts' outputs also mixes it and adds it to the residual, without a barrier in between.
#include "fast/engine/internal.h"

#include <string.h>

enum { UNIT = 4 }; // panels: 32 activations, a multiple of swiglu's width

// The logits of all rows.
static void router_logits(engine_pass *pass, engine_worker *w, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    const packed_matrix *router = &layer->matrix[SINKPROOF_W_ROUTER];
    size_t first, last;
    team_counter *counter = team_next_stage(pass, w);
    for (size_t i = 0; i < pass->n; i++) w->y_n[i] = e->b.router_ne + i * e->width.experts;
    sinkproof_product product = {.weight = &router->weight,
                                 .bias_r = router->bias_r,
                                 .n = pass->n,
                                 .x_n = w->x_n,
                                 .x16_n = e->bf16_operands ? w->x16_n : NULL,
                                 .y_n = w->y_n};
    while (counter_take_piece(counter, w, router->weight.panels, 1, &first, &last))
        e->kernels->linear(&product, first, last, w->scratch);
    team_barrier();
}

// M3, M4 of one row.
static void choose_row_experts(const sinkproof_engine *e, const engine_worker *w, size_t row) {
    size_t chosen = e->config->n_chosen;
    const float *logits_e = e->b.router_ne + row * e->width.experts;
    int32_t *chosen_k = w->chosen_nk + row * chosen;
    float *weights_k = w->weights_nk + row * chosen, sum = 0;
    for (size_t x = 0; x < e->config->n_experts; x++) w->router_e[x] = logits_e[x];
    sinkproof_router_choose(e->config->n_experts, chosen, w->router_e, chosen_k);
    float largest = logits_e[chosen_k[0]];
    for (size_t k = 0; k < chosen; k++) weights_k[k] = logits_e[chosen_k[k]] - largest;
    e->kernels->exp(chosen, weights_k, weights_k);
    for (size_t k = 0; k < chosen; k++) sum += weights_k[k];
    for (size_t k = 0; k < chosen; k++) weights_k[k] /= sum;
}

// Sorts the slots n k + k' by their experts, ascending within an expert.
static void group_by_expert(const sinkproof_engine *e, engine_worker *w, size_t slots) {
    size_t experts = e->config->n_experts;
    memset(w->first_e, 0, (experts + 1) * sizeof *w->first_e);
    for (size_t s = 0; s < slots; s++) w->first_e[w->chosen_nk[s] + 1]++;
    w->n_active = 0;
    for (size_t x = 0; x < experts; x++) {
        if (w->first_e[x + 1] > 0) w->active[w->n_active++] = x;
        w->first_e[x + 1] += w->first_e[x];
    }
    for (size_t s = 0; s < slots; s++) w->slots[w->first_e[w->chosen_nk[s]]++] = s;
    for (size_t x = experts; x > 0; x--) w->first_e[x] = w->first_e[x - 1];
    w->first_e[0] = 0;
}

// The slots of expert x: [*n] of them.
static const size_t *expert_slots(const engine_worker *w, size_t x, size_t *n) {
    *n = w->first_e[x + 1] - w->first_e[x];
    return w->slots + w->first_e[x];
}

// Panels first .. last - 1 of expert x's matrix.
typedef struct expert_part {
    size_t x, first, last;
} expert_part;

// The matrices of all active experts, one after the other, are split into units of UNIT panels.
static size_t count_panel_units(size_t panels) {
    return (panels + UNIT - 1) / UNIT;
}

// The part of units at .. last - 1 that belongs to the first expert among them; returns the unit of
// the next one.
static size_t next_part(const engine_worker *w, size_t panels, size_t at, size_t last,
                        expert_part *part) {
    size_t units = count_panel_units(panels), unit = at % units;
    size_t end = last - at < units - unit ? unit + last - at : units;
    *part = (expert_part){w->active[at / units], unit * UNIT,
                          end * UNIT < panels ? end * UNIT : panels};
    return at + end - unit;
}

// ---- M5 to M8 --------------------------------------------------------------------------------

// The rows of the norm: shared, or the thread's own.
typedef struct normed {
    const float *t_nc;
    const uint16_t *t16_nc;
} normed;

// A part of an expert's first product, and its activations.
static void multiply_up_part(const sinkproof_engine *e, const engine_worker *w, normed from,
                             const packed_matrix *up, expert_part part) {
    size_t n, first = part.first, last = part.last, hidden = e->width.hidden;
    size_t chosen = e->config->n_chosen, inter = e->config->inter;
    const size_t *slot_n = expert_slots(w, part.x, &n);
    for (size_t i = 0; i < n; i++) {
        w->x_n[i] = from.t_nc + slot_n[i] / chosen * hidden;
        w->x16_n[i] = from.t16_nc + slot_n[i] / chosen * hidden;
        w->y_n[i] = e->b.up_s2f + slot_n[i] * e->width.up;
    }
    sinkproof_product product = {.weight = &up->weight,
                                 .bias_r = up->bias_r,
                                 .n = n,
                                 .x_n = w->x_n,
                                 .x16_n = e->bf16_operands ? w->x16_n : NULL,
                                 .y_n = w->y_n};
    e->kernels->linear(&product, first, last, w->scratch);
    size_t f = 8 * first, count = 8 * last < inter ? 8 * last - f : inter - f;
    for (size_t i = 0; i < n; i++) {
        float *act = e->b.act_sf + slot_n[i] * e->width.act + f;
        e->kernels->swiglu(count, e->config->swiglu, w->y_n[i] + 16 * first, act);
        if (e->bf16_operands)
            e->kernels->round_bf16((count + 31) / 32 * 32, act,
                                   e->b.act16_sf + slot_n[i] * e->width.act + f);
    }
}

static void multiply_up(engine_pass *pass, engine_worker *w, normed from,
                        const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    size_t panels = layer->up_e[0].weight.panels, total = w->n_active * count_panel_units(panels),
           at, last;
    team_counter *counter = team_next_stage(pass, w);
    expert_part part;
    while (counter_take_piece(counter, w, total, 1, &at, &last))
        while (at < last) {
            at = next_part(w, panels, at, last, &part);
            multiply_up_part(e, w, from, &layer->up_e[part.x], part);
        }
    team_barrier();
}

// ---- M9 to M12 -------------------------------------------------------------------------------

static void multiply_down_part(const sinkproof_engine *e, const engine_worker *w,
                               const packed_matrix *down, expert_part part) {
    size_t n;
    const size_t *slot_n = expert_slots(w, part.x, &n);
    for (size_t i = 0; i < n; i++) {
        w->x_n[i] = e->b.act_sf + slot_n[i] * e->width.act;
        w->x16_n[i] = e->b.act16_sf + slot_n[i] * e->width.act;
        w->y_n[i] = e->b.down_sc + slot_n[i] * e->width.hidden;
    }
    sinkproof_product product = {.weight = &down->weight,
                                 .bias_r = down->bias_r,
                                 .n = n,
                                 .x_n = w->x_n,
                                 .x16_n = e->bf16_operands ? w->x16_n : NULL,
                                 .y_n = w->y_n};
    e->kernels->linear(&product, part.first, part.last, w->scratch);
}

// M11 and M12 of `count` columns of one row, from column c on.
static void mix_row_columns(const sinkproof_engine *e, const engine_worker *w, size_t row, size_t c,
                            size_t count) {
    size_t chosen = e->config->n_chosen, hidden = e->width.hidden;
    float *out = e->b.out_nc + row * hidden + c;
    for (size_t k = 0; k < chosen; k++) w->x_n[k] = e->b.down_sc + (row * chosen + k) * hidden + c;
    e->kernels->mixture(count, chosen, w->weights_nk + row * chosen, w->x_n, out);
    e->kernels->add(count, out, e->b.x_nc + row * hidden + c);
}

static void multiply_down_by_column(engine_pass *pass, engine_worker *w,
                                    const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    size_t panels = layer->down_e[0].weight.panels, first, last;
    team_counter *counter = team_next_stage(pass, w);
    while (counter_take_piece(counter, w, panels, UNIT, &first, &last)) {
        for (size_t a = 0; a < w->n_active; a++) {
            expert_part part = {w->active[a], first, last};
            multiply_down_part(e, w, &layer->down_e[part.x], part);
        }
        for (size_t i = 0; i < pass->n; i++)
            mix_row_columns(e, w, i, 16 * first, 16 * (last - first));
    }
    team_barrier();
}

static void multiply_down_by_expert(engine_pass *pass, engine_worker *w,
                                    const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    size_t panels = layer->down_e[0].weight.panels, total = w->n_active * count_panel_units(panels);
    size_t at, last, team = (size_t)w->team, id = (size_t)w->id;
    team_counter *counter = team_next_stage(pass, w);
    expert_part part;
    while (counter_take_piece(counter, w, total, 1, &at, &last))
        while (at < last) {
            at = next_part(w, panels, at, last, &part);
            multiply_down_part(e, w, &layer->down_e[part.x], part);
        }
    team_barrier();
    for (size_t i = pass->n * id / team; i < pass->n * (id + 1) / team; i++)
        mix_row_columns(e, w, i, 0, 16 * panels);
    team_barrier();
}

// ---- an observer's points --------------------------------------------------------------------

static void show_rows(engine_pass *pass, const engine_worker *w, const char *name, size_t width,
                      float *rows, size_t stride) {
    pass_show_point(pass, w, name, 2, (size_t[]){pass->n, width}, rows, width, stride);
}

static void show_slots(engine_pass *pass, const engine_worker *w, const char *name, size_t width,
                       float *rows, size_t stride) {
    size_t shape[] = {pass->n, pass->engine->config->n_chosen, width};
    pass_show_point(pass, w, name, 3, shape, rows, width, stride);
}

static void show_router_points(engine_pass *pass, const engine_worker *w) {
    const sinkproof_engine *e = pass->engine;
    size_t chosen = e->config->n_chosen;
    if (pass->observer == NULL) return;
    show_rows(pass, w, "M2", e->config->n_experts, e->b.router_ne, e->width.experts);
    float *chosen_nk = e->b.down_sc; // unused at this time
    for (size_t i = 0; w->id == 0 && i < pass->n * chosen; i++)
        chosen_nk[i] = (float)w->chosen_nk[i];
    show_rows(pass, w, "M3", chosen, chosen_nk, chosen);
    show_rows(pass, w, "M4", chosen, w->weights_nk, chosen);
}

void pass_experts(engine_pass *pass, engine_worker *w, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    const sinkproof_config *c = e->config;
    pass_norm_step norm = layer_norm(pass, layer->vector_c[SINKPROOF_MLP_NORM], false);
    pass_norm(pass, w, &norm);
    normed from = {w->x_n[0], w->x16_n[0]};
    show_rows(pass, w, "M1", c->hidden, e->b.t_nc, e->width.hidden);
    router_logits(pass, w, layer);
    for (size_t i = 0; i < pass->n; i++) choose_row_experts(e, w, i);
    group_by_expert(e, w, pass->n * c->n_chosen);
    show_router_points(pass, w);
    multiply_up(pass, w, from, layer);
    show_slots(pass, w, "M6", 2 * c->inter, e->b.up_s2f, e->width.up);
    show_slots(pass, w, "M8", c->inter, e->b.act_sf, e->width.act);
    if (pass->n <= ENGINE_FEW_ROWS)
        multiply_down_by_column(pass, w, layer);
    else
        multiply_down_by_expert(pass, w, layer);
    show_slots(pass, w, "M10", c->hidden, e->b.down_sc, e->width.hidden);
    show_rows(pass, w, "M11", c->hidden, e->b.out_nc, e->width.hidden);
    show_rows(pass, w, "M12", c->hidden, e->b.x_nc, e->width.hidden);
}
