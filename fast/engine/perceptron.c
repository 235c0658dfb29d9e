// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// M1 to M12 of a pass where one perceptron takes all tokens. A thread activates the columns that it
// made: SwiGLU by the kernel, from gate and up side by side; GELU is the reference's stage, number
// by number.
#include "fast/engine/internal.h"

enum { UNIT = 4 }; // panels: 64 columns, 32 pairs: multiples of what swiglu and round_bf16 take

static void activate_columns(const sinkproof_engine *e, size_t n, size_t first, size_t last) {
    bool gated = e->config->activation == SINKPROOF_SWIGLU;
    size_t each = gated ? 8 : 16, inter = e->config->inter; // activations of a panel
    size_t from = each * first, to = each * last < inter ? each * last : inter;
    for (size_t i = 0; i < n; i++) {
        const float *up_f = e->b.up_s2f + i * e->width.up;
        float *act_f = e->b.act_sf + i * e->width.act;
        if (gated) e->kernels->swiglu(to - from, e->config->swiglu, up_f + 2 * from, act_f + from);
        for (size_t f = from; !gated && f < to; f++)
            act_f[f] = (float)sinkproof_gelu_one(&e->policy, up_f[f]);
        if (e->bf16_operands)
            e->kernels->round_bf16((to - from + 31) / 32 * 32, act_f + from,
                                   e->b.act16_sf + i * e->width.act + from);
    }
}

static void multiply_up(engine_pass *pass, engine_worker *w, const packed_matrix *packed) {
    const sinkproof_engine *e = pass->engine;
    size_t first, last;
    team_counter *counter = team_next_stage(pass, w);
    while (counter_take_piece(counter, w, packed->weight.panels, UNIT, &first, &last)) {
        pass_multiply(e, w, packed, first, last, e->b.up_s2f, e->width.up, pass->n);
        activate_columns(e, pass->n, first, last);
    }
    team_barrier();
}

static void show_rows(engine_pass *pass, const engine_worker *w, const char *name, size_t width,
                      float *rows, size_t stride) {
    pass_show_point(pass, w, name, 2, (size_t[]){pass->n, width}, rows, width, stride);
}

void pass_perceptron(engine_pass *pass, engine_worker *w, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    const sinkproof_config *c = e->config;
    pass_norm_step norm = layer_norm(pass, layer->vector_c[SINKPROOF_MLP_NORM], false);
    pass_norm(pass, w, &norm);
    show_rows(pass, w, "M1", c->hidden, e->b.t_nc, e->width.hidden);
    multiply_up(pass, w, &layer->up_e[0]);
    show_rows(pass, w, "M6", layer->up_e[0].weight.rows, e->b.up_s2f, e->width.up);
    show_rows(pass, w, "M8", c->inter, e->b.act_sf, e->width.act);
    pass_add_to_residual(pass, w, &layer->down_e[0], e->b.act_sf, e->b.act16_sf, e->width.act);
    show_rows(pass, w, "M10", c->hidden, e->b.out_nc, e->width.hidden);
    show_rows(pass, w, "M12", c->hidden, e->b.x_nc, e->width.hidden);
}
