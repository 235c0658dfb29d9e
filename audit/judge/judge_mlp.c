// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's pass through one layer's perceptron in a model without a router: M1 to M12.
#include "audit/judge/judge_internal.h"

#include <stdlib.h>

enum { TOKENS = 16 }; // tokens of a part

typedef struct activation_work {
    const sinkproof_honest *u_nr; // M6: pairs of gate and up, or one number to each activation
    sinkproof_honest *z_nf;
} activation_work;

// M8 of a token.
static void activate_token(judge_part *part, size_t i, void *of) {
    const activation_work *w = of;
    const sinkproof_config *c = part->pass->config;
    size_t f = c->inter;
    sinkproof_setting s = pass_setting(part->pass, part->pass->n * f);
    sinkproof_honest *z_f = &w->z_nf[i * f];
    if (c->activation == SINKPROOF_SWIGLU)
        meant_activations(part->pass, &s, &w->u_nr[i * 2 * f], z_f);
    else
        for (size_t k = 0; k < f; k++) z_f[k] = sinkproof_honest_gelu(&s, w->u_nr[i * f + k]);
    const trace_piece piece = {.point = TRACE_M8, .offset = i * f, .count = f, .token = i};
    piece_compare(part, &piece, z_f);
}

bool judge_mlp(judge_pass *pass, size_t l, sinkproof_honest *x_nd) {
    const sinkproof_config *c = pass->config;
    if (!any_point_judged(pass, l, TRACE_M1, TRACE_M12)) {
        judge_skips_or_reads(pass, TRACE_M12, l, x_nd);
        return true;
    }
    sinkproof_layer w = sinkproof_model_layer(pass->model, l);
    sinkproof_honest *t = malloc(pass->n * c->hidden * sizeof *t);
    sinkproof_honest *u = malloc(pass->n * w.w_up.rows * sizeof *u);
    sinkproof_honest *z = malloc(pass->n * c->inter * sizeof *z);
    activation_work activation = {u, z};
    const judge_projected m6 = {AT_M6, TRACE_M6, &w.w_up, &w.b_up, t, u},
                          m10 = {AT_M10, TRACE_M10, &w.w_down, &w.b_down, z, t};
    bool fine = t != NULL && u != NULL && z != NULL && judge_norm(pass, l, TRACE_M1, x_nd, t) &&
                judge_projection(pass, l, &m6) &&
                (judge_skips_or_reads(pass, TRACE_M8, l, z) ||
                 judge_each_token(pass, l, TOKENS, activate_token, &activation)) &&
                judge_projection(pass, l, &m10) &&
                judge_residual(pass, l, AT_M12, TRACE_M12, t, x_nd);
    free(t);
    free(u);
    free(z);
    return fine;
}
