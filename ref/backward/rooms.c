// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The memory of a walk back: sizes checked for overflow, all arrays or none.
#include "base/words.h"
#include "ref/backward/walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct room {
    double **to;
    size_t count[3];
} room;

enum { ARRAYS = 27, ROOMS = ARRAYS + SINKPROOF_SLOTS };

// The arrays of a walk and their sizes, without those of the weights.
static void list_arrays(gradient_walk *w, room rooms[ARRAYS]) {
    const sinkproof_config *c = w->config;
    size_t n = w->n, k = c->dense ? 1 : c->n_chosen, half = c->head_dim / 2;
    size_t widest = c->hidden > c->inter ? c->hidden : c->inter, heads = c->n_heads * c->head_dim;
    const room all[ARRAYS] = {
        {&w->dx_nc, {n, c->hidden, 1}},
        {&w->dt_nc, {n, c->hidden, 1}},
        {&w->do_nhd, {n, heads, 1}},
        {&w->dq_nhd, {n, heads, 1}},
        {&w->dk_ngd, {n, c->n_kv_heads, c->head_dim}},
        {&w->dv_ngd, {n, c->n_kv_heads, c->head_dim}},
        {&w->dhead_nhd, {n, c->head_norms ? heads : 0, 1}},
        {&w->dalpha_hij, {c->n_heads, n, n}},
        {&w->ds_hij, {c->n_heads, n, n}},
        {&w->db_hi, {c->n_heads, n, 1}},
        {&w->freq_d, {half, 1, 1}},
        {&w->cos_nd, {n, half, 1}},
        {&w->sin_nd, {n, half, 1}},
        {&w->dlogits_ne, {n, c->n_experts, 1}},
        {&w->dweights_nk, {n, k, 1}},
        {&w->ddown_nkc, {n, k, c->hidden}},
        {&w->dact_nkf, {n, k, c->inter}},
        {&w->dup_nkr, {n, k, 2 * c->inter}},
        {&w->t_mc, {n, c->hidden, 1}},
        {&w->up_mr, {n, 2 * c->inter, 1}},
        {&w->act_mf, {n, c->inter, 1}},
        {&w->ddown_mc, {n, c->hidden, 1}},
        {&w->dt_mc, {n, c->hidden, 1}},
        {&w->dup_mr, {n, 2 * c->inter, 1}},
        {&w->dact_mf, {n, c->inter, 1}},
        {&w->row_c, {widest > heads ? widest : heads, 1, 1}},
        {&w->head, {sinkproof_normaliser_work(c), 1, 1}},
    };
    memcpy(rooms, all, sizeof all);
}

// Whether the slot has a gradient of its own: a tied unembedding adds to the embedding's.
static bool has_own(const sinkproof_config *config, sinkproof_slot slot) {
    return slot != SINKPROOF_UNEMBEDDING || !config->tied;
}

static size_t list_rooms(gradient_walk *w, room rooms[ROOMS]) {
    size_t n = ARRAYS;
    list_arrays(w, rooms);
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        room of = {&w->dweight[s], {0}};
        sinkproof_slot_shape((sinkproof_slot)s, w->config, &of.count[0], &of.count[1],
                             &of.count[2]);
        if (of.count[0] > 0 && has_own(w->config, (sinkproof_slot)s)) rooms[n++] = of;
    }
    return n;
}

bool gradient_rooms_new(gradient_walk *w, sinkproof_error *error) {
    room rooms[ROOMS];
    size_t n = list_rooms(w, rooms);
    for (size_t i = 0; i < n; i++) {
        size_t count, all;
        bool fits = !__builtin_mul_overflow(rooms[i].count[0], rooms[i].count[1], &count) &&
                    !__builtin_mul_overflow(count, rooms[i].count[2], &all);
        *rooms[i].to = fits ? calloc(all > 0 ? all : 1, sizeof(double)) : NULL;
        if (*rooms[i].to != NULL) continue;
        gradient_rooms_free(w);
        return sinkproof_fail(error, "no memory for the gradients of %s",
                              sinkproof_counted(w->n, "token").text);
    }
    return true;
}

void gradient_rooms_free(gradient_walk *w) {
    room rooms[ROOMS];
    size_t n = list_rooms(w, rooms);
    for (size_t i = 0; i < n; i++) {
        free(*rooms[i].to);
        *rooms[i].to = NULL;
    }
}
