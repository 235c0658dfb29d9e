// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's pass through one layer's perceptron, where no router chooses experts: M1 to M12.
#include "audit/judge/judge_internal.h"

#include <stdlib.h>

enum { TOKENS = 16 }; // of a part

// M8 of a token, in the place of M6.
static void activate_token(sinkproof_part *part, size_t i, void *of) {
    sinkproof_honest *u_nf = of;
    size_t f = part->pass->config->inter;
    sinkproof_setting s = sinkproof_setting_of(part->pass, part->pass->n * f);
    sinkproof_honest *u_f = &u_nf[i * f];
    for (size_t k = 0; k < f; k++) u_f[k] = sinkproof_honest_gelu(&s, u_f[k]);
    const sinkproof_piece piece = {
        .point = SINKPROOF_TRACE_M8, .offset = i * f, .count = f, .token = i};
    sinkproof_compare(part, &piece, u_f);
}

bool sinkproof_judge_mlp(sinkproof_judge_pass *pass, size_t l, sinkproof_honest *x_nd) {
    const sinkproof_config *c = pass->config;
    if (!sinkproof_any_judged(pass, l, SINKPROOF_TRACE_M1, SINKPROOF_TRACE_M12)) {
        sinkproof_need_not(pass, SINKPROOF_TRACE_M12, l, x_nd);
        return true;
    }
    sinkproof_layer w = sinkproof_model_layer(pass->model, l);
    sinkproof_honest *t = malloc(pass->n * c->hidden * sizeof *t);
    sinkproof_honest *u = malloc(pass->n * c->inter * sizeof *u);
    const sinkproof_projection m6 = {SINKPROOF_AT_M6, SINKPROOF_TRACE_M6, &w.w_up, &w.b_up, t, u},
                               m10 = {SINKPROOF_AT_M10,
                                      SINKPROOF_TRACE_M10,
                                      &w.w_down,
                                      &w.b_down,
                                      u,
                                      t};
    bool fine = t != NULL && u != NULL &&
                sinkproof_judge_norm(pass, l, SINKPROOF_TRACE_M1, x_nd, t) &&
                sinkproof_judge_projection(pass, l, &m6) &&
                (sinkproof_need_not(pass, SINKPROOF_TRACE_M8, l, u) ||
                 sinkproof_each_token(pass, l, TOKENS, activate_token, u)) &&
                sinkproof_judge_projection(pass, l, &m10) &&
                sinkproof_judge_residual(pass, l, SINKPROOF_AT_M12, SINKPROOF_TRACE_M12, t, x_nd);
    free(t);
    free(u);
    return fine;
}
