// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's rotation of queries and keys, A4.
#include "audit/judge/judge_internal.h"

#include <stdlib.h>
#include <string.h>

enum { TURNED = 32 }; // tokens of a part

typedef struct rotation {
    sinkproof_trace_point point;
    size_t heads;
    const sinkproof_turning *turning;
    sinkproof_honest *x_nhd;
} rotation;

static void rotate_token(judge_part *part, size_t i, void *of) {
    const rotation *r = of;
    const judge_pass *pass = part->pass;
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * r->heads * d);
    sinkproof_turns turns = token_turns(pass, r->point == TRACE_A4_K, i);
    sinkproof_honest *y_d = part_allocate(part, 5 * d, sizeof *y_d);
    for (size_t h = 0; y_d != NULL && h < r->heads; h++) {
        size_t offset = (i * r->heads + h) * d;
        const trace_piece piece = {.point = r->point, .offset = offset, .count = d, .token = i};
        sinkproof_honest *head = &r->x_nhd[offset];
        meant_turn(pass, &s, r->turning, &turns, head, y_d + d, y_d);
        for (size_t k = 0; k < d; k++) head[k] = y_d[k];
        piece_compare(part, &piece, head);
    }
    free(y_d);
}

bool judge_rotated(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nhd) {
    const sinkproof_config *c = pass->config;
    bool query = step->point == TRACE_A4_Q;
    size_t heads = query ? c->n_heads : c->n_kv_heads;
    rotation r = {step->point, heads, query ? &pass->meaning->query : &pass->meaning->key, y_nhd};
    memcpy(y_nhd, step_input(pass, step, 0), pass->n * heads * c->head_dim * sizeof *y_nhd);
    return judge_each_token(pass, step->layer, TURNED, rotate_token, &r);
}
