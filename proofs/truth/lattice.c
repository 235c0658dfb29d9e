// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Encloses both sides of an edge of the lattice in balls; the edges are in edges.c.
#include "proofs/truth/lattice.h"

#include "base/splitmix.h"

#include <math.h>
#include <stdlib.h>

enum { N = SINKPROOF_EDGE_N, HIDDEN = SINKPROOF_EDGE_HIDDEN, DIM = SINKPROOF_EDGE_DIM, SHORT = 5 };

// Multiples of size / 64 in [-size, size).
static void draw_multiples(uint64_t *state, size_t n, double *x, double size) {
    for (size_t i = 0; i < n; i++) x[i] = size * ((double)(sinkproof_draw(state) >> 57) / 64 - 1);
}

void sinkproof_head_draw(sinkproof_drawn_head *drawn, uint64_t seed) {
    draw_multiples(&seed, N * HIDDEN, drawn->x_nc, 2);
    draw_multiples(&seed, HIDDEN * DIM, drawn->wq_cd, 1);
    draw_multiples(&seed, HIDDEN * DIM, drawn->wk_cd, 1);
    draw_multiples(&seed, HIDDEN * DIM, drawn->wv_cd, 1);
    draw_multiples(&seed, HIDDEN * DIM, drawn->gate_cd, 1);
    draw_multiples(&seed, HIDDEN, drawn->star_c, 2);
    draw_multiples(&seed, DIM, drawn->key_d, 2);
    draw_multiples(&seed, DIM, drawn->value_d, 1);
    draw_multiples(&seed, DIM * DIM, drawn->mlp_1_dd, 1);
    draw_multiples(&seed, DIM * DIM, drawn->mlp_2_dd, 1);
    draw_multiples(&seed, (N + 1) * HIDDEN, drawn->place_nc, 1);
    draw_multiples(&seed, SINKPROOF_BUCKETS, drawn->bucket_b, 2);
    drawn->logit = 0.75, drawn->slope = 0.25;
    for (int i = 0; i < N; i++) drawn->document_n[i] = i / 4;
}

sinkproof_variant_head sinkproof_edge_head_view(const sinkproof_drawn_head *d) {
    return (sinkproof_variant_head){
        .n = N,
        .hidden = HIDDEN,
        .dim = DIM,
        .x_nc = d->x_nc,
        .wq_cd = d->wq_cd,
        .wk_cd = d->wk_cd,
        .wv_cd = d->wv_cd,
        .star_c = d->star_c,
        .key_d = d->key_d,
        .value_d = d->value_d,
        .logit = d->logit,
        .mlp_1_dd = d->mlp_1_dd,
        .mlp_2_dd = d->mlp_2_dd,
        .place_nc = d->place_nc,
        .bucket_b = d->bucket_b,
        .slope = d->slope,
        .rotary_base = 10000,
        .document_n = d->document_n,
        .gate_cd = d->gate_cd,
    };
}

typedef struct balls {
    size_t before, columns; // rows before the text; keys + 1
    arb_ptr alpha_ij, o_id, memory;
    slong count;
} balls;

static balls enclose_side(const edge_side *side, slong bits) {
    sinkproof_variant_head head = sinkproof_edge_head_view(&side->head);
    balls b = {.before = side->variant.star == SINKPROOF_STAR_TOKEN};
    size_t rows = N + b.before;
    b.columns = rows + 1;
    b.count = (slong)(rows * (b.columns + DIM));
    b.memory = b.alpha_ij = _arb_vec_init(b.count);
    b.o_id = b.memory + rows * b.columns;
    truth_variant_head(b.alpha_ij, b.o_id, &side->variant, &head, bits);
    return b;
}

static double ball_middle(const arb_t x) {
    return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

// `at` tells which entry of the two sides it is.
static void compare_entry(sinkproof_edge_outcome *out, sinkproof_edge_outcome at, const arb_t x,
                          const arb_t y) {
    out->entries++;
    out->radius_log2 = fmax(out->radius_log2, sinkproof_truth_radius_log2(x));
    out->radius_log2 = fmax(out->radius_log2, sinkproof_truth_radius_log2(y));
    if (arb_overlaps(x, y)) return;
    at.from = ball_middle(x), at.to = ball_middle(y);
    bool farther = out->apart++ == 0 || fabs(at.from - at.to) > fabs(out->from - out->to);
    if (!farther) return;
    out->is_weight = at.is_weight, out->row = at.row, out->column = at.column;
    out->from = at.from, out->to = at.to;
}

bool sinkproof_edge_check(const sinkproof_edge *edge, uint64_t seed, bool set, slong bits,
                          sinkproof_edge_outcome *out) {
    edge_side *side = malloc(2 * sizeof *side);
    if (side == NULL) return false;
    side[0].variant = *sinkproof_variant_find(edge->from);
    side[1].variant = *sinkproof_variant_find(edge->to);
    for (int k = 0; k < 2; k++) // windows that hide keys even in so short a text
        if (side[k].variant.window > SHORT) side[k].variant.window = SHORT;
    sinkproof_head_draw(&side[0].head, seed);
    sinkproof_head_draw(&side[1].head, seed);
    if (set && edge->set != NULL) edge->set(&side[0], &side[1]);
    balls x = enclose_side(&side[0], bits), y = enclose_side(&side[1], bits);
    *out = (sinkproof_edge_outcome){.radius_log2 = -INFINITY};
    for (size_t i = 0; i < N; i++) {
        arb_ptr o_x = x.o_id + (i + x.before) * DIM, o_y = y.o_id + (i + y.before) * DIM;
        arb_ptr a_x = x.alpha_ij + (i + x.before) * x.columns + x.before;
        arb_ptr a_y = y.alpha_ij + (i + y.before) * y.columns + y.before;
        sinkproof_edge_outcome at = {.row = i};
        for (at.column = 0; edge->power == 0 && at.column < DIM; at.column++)
            compare_entry(out, at, o_x + at.column, o_y + at.column);
        at.is_weight = true;
        for (size_t j = 0; !edge->values && j < N; j++) {
            if (edge->power != 0) arb_pow_ui(a_x + j, a_x + j, (ulong)edge->power, bits);
            at.column = j;
            compare_entry(out, at, a_x + j, a_y + j);
        }
    }
    _arb_vec_clear(x.memory, x.count);
    _arb_vec_clear(y.memory, y.count);
    free(side);
    return true;
}
