// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's activations in a model without a router: M8.
#include "audit/judge/judge_internal.h"

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

bool judge_activations(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y) {
    activation_work w = {step_input(pass, step, 0), y};
    return judge_each_token(pass, step->layer, TOKENS, activate_token, &w);
}
