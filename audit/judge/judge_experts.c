// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's mixture of experts, M3 to M11.
//
// Tokens with known experts are computed expert by expert. A token with a few possible choices gets
// the hull over them. Nothing is known of the other tokens.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

typedef struct mixture {
    sinkproof_layer layer;
    const sinkproof_honest *t_nd, *g_ne;
    const token_routing *routing_n;
    sinkproof_honest *w_nk, *d_qh; // weights; outputs of the experts [n, chosen, hidden]
    size_t ranks;                  // that mix their slices of the experts (judge_mixture.c)
    sinkproof_honest *sum_qrh;     // what the slices give [n, chosen, ranks, hidden]; NULL: 0 ranks
    sinkproof_honest *m_nd;        // M11
} mixture;

// ---- one expert

// Computes and compares M8 of `count` rows.
static void activate_rows(judge_part *part, size_t count, const size_t *q,
                          const sinkproof_honest *up, sinkproof_honest *z) {
    const sinkproof_config *c = part->pass->config;
    size_t inter = c->inter;
    sinkproof_setting s = pass_setting(part->pass, part->pass->n * c->n_chosen * inter);
    for (size_t r = 0; r < count; r++) {
        meant_activations(part->pass, &s, &up[r * 2 * inter], &z[r * inter]);
        const expert_rows rows = {.rows = inter, .q = q};
        judge_compare_slot(part, &rows, r, TRACE_M8, &z[r * inter]);
    }
}

// Rows that need not be computed: the trace's values, or zeros that nothing reads.
static void read_or_clear_slots(const judge_part *part, sinkproof_trace_point point, size_t count,
                                const size_t *q, size_t width, sinkproof_honest *y) {
    const judge_pass *pass = part->pass;
    bool given = point_doing(pass, point, part->layer) == DOING_GIVEN;
    const sinkproof_tensor *tensor =
        given ? sinkproof_trace_find(pass->trace, point, part->layer) : NULL;
    for (size_t r = 0; r < count; r++)
        set_read_given(pass, point, tensor, q[r] * width, width, &y[r * width]);
}

static bool project_up(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                       const size_t *q, const sinkproof_honest *x, sinkproof_honest *up) {
    const sinkproof_config *c = part->pass->config;
    const expert_rows rows = {e, 0, 2 * c->inter, true, q};
    if (q != NULL && !any_point_judged(part->pass, part->layer, TRACE_M5, TRACE_M6)) {
        read_or_clear_slots(part, TRACE_M6, count, q, 2 * c->inter, up);
        return true;
    }
    sinkproof_setting s = pass_setting(part->pass, part->pass->n * c->n_chosen);
    sinkproof_planes planes = sinkproof_operand_planes(&s, AT_M5_IN, &layer->w_up, x, count);
    bool fine = judge_expert_map(part, layer, &rows, &planes, up, 2 * c->inter);
    sinkproof_planes_free(&planes);
    return fine;
}

static bool project_down(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                         const size_t *q, const sinkproof_honest *z, sinkproof_honest *d) {
    const sinkproof_config *c = part->pass->config;
    const expert_rows rows = {e, 0, c->hidden, false, q};
    if (q != NULL && !any_point_judged(part->pass, part->layer, TRACE_M9, TRACE_M10)) {
        read_or_clear_slots(part, TRACE_M10, count, q, c->hidden, d);
        return true;
    }
    sinkproof_setting s = pass_setting(part->pass, part->pass->n * c->n_chosen);
    sinkproof_planes planes = sinkproof_operand_planes(&s, AT_M9_IN, &layer->w_down, z, count);
    bool fine = judge_expert_map(part, layer, &rows, &planes, d, c->hidden);
    sinkproof_planes_free(&planes);
    return fine;
}

// Computes M5 to M10 of expert e: x [count, hidden] to d [count, hidden], and what the slices of
// ranks give, sum_rqh [ranks, count, hidden], unless it is NULL. q as in compare_slot.
static bool apply_expert(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                         const size_t *q, const sinkproof_honest *x, sinkproof_honest *d,
                         sinkproof_honest *sum_rqh) {
    const sinkproof_config *c = part->pass->config;
    size_t inter = c->inter;
    sinkproof_honest *up = part_allocate(part, count * 2 * inter, sizeof *up);
    sinkproof_honest *z = part_allocate(part, count * inter, sizeof *z);
    bool fine = up != NULL && z != NULL && project_up(part, layer, e, count, q, x, up);
    if (fine && q != NULL && point_doing(part->pass, TRACE_M8, part->layer) != DOING_JUDGED)
        read_or_clear_slots(part, TRACE_M8, count, q, inter, z);
    else if (fine)
        activate_rows(part, count, q, up, z);
    fine = fine && !pass_has_ended(part->pass) && project_down(part, layer, e, count, q, z, d) &&
           (sum_rqh == NULL || judge_slice_sums(part, layer, e, count, z, sum_rqh));
    free(up);
    free(z);
    return fine;
}

static void copy_sets(size_t n, const sinkproof_honest *from, sinkproof_honest *to) {
    for (size_t i = 0; i < n; i++) to[i] = from[i];
}

// Applies expert `e` to all tokens that are known to have chosen it.
static void apply_known_expert(judge_part *part, size_t e, void *of) {
    const mixture *m = of;
    const judge_pass *pass = part->pass;
    size_t hidden = pass->config->hidden, k = pass->config->n_chosen, slots = pass->n * k;
    const int32_t *chosen = &pass->chosen[part->layer * slots];
    size_t *q = part_allocate(part, slots, sizeof *q), count = 0;
    for (size_t at = 0; q != NULL && at < slots; at++)
        if (chosen[at] == (int32_t)e) q[count++] = at;
    sinkproof_honest *x = part_allocate(part, count * hidden, sizeof *x);
    sinkproof_honest *d = part_allocate(part, count * hidden, sizeof *d), *sum = NULL;
    if (m->ranks > 0) sum = part_allocate(part, m->ranks * count * hidden, sizeof *sum);
    if (count > 0 && !part->failed) {
        for (size_t r = 0; r < count; r++)
            copy_sets(hidden, &m->t_nd[q[r] / k * hidden], &x[r * hidden]);
        if (apply_expert(part, &m->layer, e, count, q, x, d, sum))
            for (size_t r = 0; r < count; r++) {
                copy_sets(hidden, &d[r * hidden], &m->d_qh[q[r] * hidden]);
                for (size_t p = 0; p < m->ranks; p++)
                    copy_sets(hidden, &sum[(p * count + r) * hidden],
                              &m->sum_qrh[(q[r] * m->ranks + p) * hidden]);
            }
    }
    free(q);
    free(x);
    free(d);
    free(sum);
}

// ---- M4

static void compare_weights(judge_part *part, size_t i, double common, sinkproof_honest *w_k) {
    size_t k = part->pass->config->n_chosen;
    const trace_piece piece = {
        .point = TRACE_M4, .offset = i * k, .count = k, .token = i, .common = common};
    piece_compare(part, &piece, w_k);
}

// The experts of a token whose choice is known.
static token_choice known_token_choice(const judge_part *part, size_t i) {
    const judge_pass *pass = part->pass;
    size_t k = pass->config->n_chosen;
    token_choice choice;
    for (size_t slot = 0; slot < k; slot++)
        choice.expert[slot] = pass->chosen[(part->layer * pass->n + i) * k + slot];
    return choice;
}

static void weigh_known_choice(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    size_t k = pass->config->n_chosen;
    token_choice choice = known_token_choice(part, i);
    double common;
    if (judge_expert_weights(part, &m->g_ne[i * pass->config->n_experts], &choice, &m->w_nk[i * k],
                             &common))
        compare_weights(part, i, common, &m->w_nk[i * k]);
}

// ---- M11

static void mix_known_choice(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    token_choice choice = known_token_choice(part, i);
    slot_outputs of = {&m->d_qh[i * k * hidden], NULL};
    if (m->ranks > 0) of.sum_krh = &m->sum_qrh[i * k * m->ranks * hidden];
    judge_mix_row(part, &m->layer, &choice, &m->w_nk[i * k], &of, &m->m_nd[i * hidden]);
}

// ---- what cannot be judged

static void compare_unknown(judge_part *part, size_t i, sinkproof_trace_point point, size_t width) {
    sinkproof_honest *x = part_allocate(part, width, sizeof *x);
    for (size_t d = 0; x != NULL && d < width; d++) x[d] = sinkproof_unknown_set(0);
    if (x != NULL)
        piece_compare(
            part, &(trace_piece){.point = point, .offset = i * width, .count = width, .token = i},
            x);
    free(x);
}

// Compares M5 to M9 of a token whose experts are unknown in every slot.
static void compare_unknown_slots(judge_part *part, size_t i) {
    const sinkproof_config *c = part->pass->config;
    compare_unknown(part, i, TRACE_M5, c->n_chosen * 2 * c->inter);
    compare_unknown(part, i, TRACE_M6, c->n_chosen * 2 * c->inter);
    compare_unknown(part, i, TRACE_M8, c->n_chosen * c->inter);
    compare_unknown(part, i, TRACE_M9, c->n_chosen * c->hidden);
}

// ---- a token with a few possible choices

static void join_expert_rows(size_t count, bool first, const sinkproof_honest *y,
                             sinkproof_honest *x) {
    for (size_t i = 0; i < count; i++) x[i] = first ? y[i] : set_hull(x[i], y[i]);
}

// Whether an earlier choice has expert e in `slot`.
static bool expert_was_met(const token_routing *r, size_t choice, size_t slot) {
    for (size_t o = 0; o < choice; o++)
        if (r->choice[o].expert[slot] == r->choice[choice].expert[slot]) return true;
    return false;
}

// Room for what `rows` slots or experts give.
static slot_outputs outputs_allocate(judge_part *part, const mixture *m, size_t rows) {
    size_t hidden = part->pass->config->hidden;
    slot_outputs of = {part_allocate(part, rows * hidden, sizeof *of.d_kh), NULL};
    if (m->ranks > 0)
        of.sum_krh = part_allocate(part, rows * m->ranks * hidden, sizeof *of.sum_krh);
    return of;
}

static void outputs_free(slot_outputs *of) {
    free(of->d_kh);
    free(of->sum_krh);
}

// The output of one row, or of a row of others.
static slot_outputs outputs_at(const slot_outputs *of, const mixture *m, size_t hidden,
                               size_t row) {
    slot_outputs at = {of->d_kh + row * hidden, NULL};
    if (m->ranks > 0) at.sum_krh = of->sum_krh + row * m->ranks * hidden;
    return at;
}

static bool apply_to_token(judge_part *part, size_t i, const mixture *m, size_t e,
                           const slot_outputs *to) {
    return apply_expert(part, &m->layer, e, 1, NULL, &m->t_nd[i * part->pass->config->hidden],
                        to->d_kh, to->sum_krh);
}

static void join_outputs(const mixture *m, size_t hidden, bool first, const slot_outputs *from,
                         const slot_outputs *to) {
    join_expert_rows(hidden, first, from->d_kh, to->d_kh);
    if (m->ranks > 0) join_expert_rows(m->ranks * hidden, first, from->sum_krh, to->sum_krh);
}

// of: each slot's output, the hull over its experts, compared where traced. M5 to M9 are
// undecided.
static void judge_outputs_of_choices(judge_part *part, size_t i, const mixture *m,
                                     const slot_outputs *of) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    slot_outputs one = outputs_allocate(part, m, 1);
    for (size_t slot = 0; !part->failed && slot < k; slot++) {
        slot_outputs here = outputs_at(of, m, hidden, slot);
        for (size_t o = 0; o < r->choices; o++) {
            if (expert_was_met(r, o, slot)) continue;
            if (apply_to_token(part, i, m, (size_t)r->choice[o].expert[slot], &one))
                join_outputs(m, hidden, o == 0, &one, &here);
        }
        if (part->failed) break;
        piece_compare(
            part,
            &(trace_piece){
                .point = TRACE_M10, .offset = (i * k + slot) * hidden, .count = hidden, .token = i},
            here.d_kh);
    }
    outputs_free(&one);
}

static void judge_weights_of_choices(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen;
    sinkproof_honest w[SINKPROOF_MAX_CHOSEN];
    for (size_t o = 0; o < r->choices; o++) {
        double common;
        if (!judge_expert_weights(part, &m->g_ne[i * pass->config->n_experts], &r->choice[o], w,
                                  &common))
            return;
        join_expert_rows(k, o == 0, w, &m->w_nk[i * k]);
    }
    compare_weights(part, i, 0, &m->w_nk[i * k]);
}

// Computes each expert of any choice once: `of`, with the experts' places at_e.
static bool compute_each_output(judge_part *part, size_t i, const mixture *m, size_t *at_e,
                                const slot_outputs *of) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden, count = 0;
    for (size_t e = 0; e < pass->config->n_experts; e++) at_e[e] = SIZE_MAX;
    for (size_t o = 0; o < r->choices; o++)
        for (size_t slot = 0; slot < k; slot++) {
            size_t e = (size_t)r->choice[o].expert[slot];
            if (at_e[e] != SIZE_MAX) continue;
            at_e[e] = count++;
            slot_outputs here = outputs_at(of, m, hidden, at_e[e]);
            if (!apply_to_token(part, i, m, e, &here)) return false;
        }
    return true;
}

// The trace lacks the slots: M11 is the hull over the choices, each computed separately.
static void judge_mixture_of_choices(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    size_t experts = pass->config->n_experts;
    size_t many = r->choices * k < experts ? r->choices * k : experts;
    size_t *at_e = part_allocate(part, experts, sizeof *at_e);
    sinkproof_honest *out_h = part_allocate(part, hidden, sizeof *out_h);
    slot_outputs of_e = outputs_allocate(part, m, many), of_k = outputs_allocate(part, m, k);
    sinkproof_honest w[SINKPROOF_MAX_CHOSEN];
    bool fine = !part->failed && compute_each_output(part, i, m, at_e, &of_e);
    for (size_t o = 0; fine && o < r->choices; o++) {
        double common;
        if (!judge_expert_weights(part, &m->g_ne[i * experts], &r->choice[o], w, &common)) break;
        set_read_untraced(pass, TRACE_M4, k, w);
        for (size_t slot = 0; slot < k; slot++) {
            slot_outputs from = outputs_at(&of_e, m, hidden, at_e[r->choice[o].expert[slot]]);
            slot_outputs to = outputs_at(&of_k, m, hidden, slot);
            join_outputs(m, hidden, true, &from, &to);
        }
        judge_mix_row(part, &m->layer, &r->choice[o], w, &of_k, out_h);
        join_expert_rows(hidden, o == 0, out_h, &m->m_nd[i * hidden]);
    }
    free(at_e);
    free(out_h);
    outputs_free(&of_e);
    outputs_free(&of_k);
}

// The trace holds something of the slots, and several choices explain it.
static void judge_slots_of_choices(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    sinkproof_honest *out_h = part_allocate(part, hidden, sizeof *out_h);
    slot_outputs of = outputs_allocate(part, m, k);
    if (!part->failed) {
        judge_weights_of_choices(part, i, m);
        compare_unknown_slots(part, i);
        judge_outputs_of_choices(part, i, m, &of);
    }
    for (size_t o = 0; !part->failed && o < r->choices; o++) {
        judge_mix_row(part, &m->layer, &r->choice[o], &m->w_nk[i * k], &of, out_h);
        join_expert_rows(hidden, o == 0, out_h, &m->m_nd[i * hidden]);
    }
    free(out_h);
    outputs_free(&of);
}

// ---- a token with too many

static void leave_undecided(judge_part *part, size_t i, const mixture *m) {
    const sinkproof_config *c = part->pass->config;
    compare_unknown(part, i, TRACE_M4, c->n_chosen);
    compare_unknown_slots(part, i);
    compare_unknown(part, i, TRACE_M10, c->n_chosen * c->hidden);
    for (size_t d = 0; d < c->hidden; d++) m->m_nd[i * c->hidden + d] = sinkproof_unknown_set(0);
}

// ---- the layer

static bool any_slot_is_traced(const judge_pass *pass, size_t l) {
    return point_is_traced(pass, TRACE_M4, l) || point_is_traced(pass, TRACE_M5, l) ||
           point_is_traced(pass, TRACE_M6, l) || point_is_traced(pass, TRACE_M8, l) ||
           point_is_traced(pass, TRACE_M9, l) || point_is_traced(pass, TRACE_M10, l);
}

static void weigh_token(judge_part *part, size_t i, void *of) {
    const mixture *m = of;
    if (pass_leaves_out_row(part->pass, i)) return;
    if (m->routing_n[i].choices == 1) weigh_known_choice(part, i, m);
}

static void mix_token(judge_part *part, size_t i, void *of) {
    const mixture *m = of;
    size_t hidden = part->pass->config->hidden, choices = m->routing_n[i].choices;
    if (pass_leaves_out_row(part->pass, i)) return;
    if (choices == 1 && part_leaves_out_point(part, TRACE_M11)) return;
    if (choices == 1)
        mix_known_choice(part, i, m);
    else if (choices == 0)
        leave_undecided(part, i, m);
    else if (any_slot_is_traced(part->pass, part->layer))
        judge_slots_of_choices(part, i, m);
    else
        judge_mixture_of_choices(part, i, m);
    if (part->failed) return;
    const trace_piece piece = {
        .point = TRACE_M11, .offset = i * hidden, .count = hidden, .token = i};
    piece_compare(part, &piece, &m->m_nd[i * hidden]);
}

// Whether the experts' outputs are given, so that the experts need not be computed.
static bool outputs_are_given(const judge_pass *pass, size_t l, sinkproof_honest *d_qh) {
    return !any_point_judged(pass, l, TRACE_M5, TRACE_M10) &&
           judge_skips_or_reads(pass, TRACE_M10, l, d_qh);
}

// Judges M4 to M11.
static bool judge_mixture(judge_pass *pass, size_t l, mixture *m) {
    size_t n = pass->n, k = pass->config->n_chosen, hidden = pass->config->hidden;
    m->w_nk = malloc(n * k * sizeof *m->w_nk);
    m->d_qh = malloc(n * k * hidden * sizeof *m->d_qh);
    m->ranks = judge_slices(pass, l);
    if (m->ranks > 0) m->sum_qrh = malloc(n * k * m->ranks * hidden * sizeof *m->sum_qrh);
    bool fine = m->w_nk != NULL && m->d_qh != NULL && (m->ranks == 0 || m->sum_qrh != NULL) &&
                judge_in_parts(pass, l, n, weigh_token, m) &&
                ((m->ranks == 0 && outputs_are_given(pass, l, m->d_qh)) ||
                 judge_in_parts(pass, l, pass->config->n_experts, apply_known_expert, m)) &&
                judge_in_parts(pass, l, n, mix_token, m);
    free(m->w_nk);
    free(m->d_qh);
    free(m->sum_qrh);
    return fine;
}

bool judge_experts(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nd) {
    token_routing *routing = calloc(pass->n, sizeof *routing);
    mixture m = {.layer = sinkproof_model_layer(pass->model, step->layer),
                 .t_nd = pass->at[TRACE_M1],
                 .g_ne = pass->at[TRACE_M2],
                 .routing_n = routing,
                 .m_nd = y_nd};
    bool fine = routing != NULL && judge_routing(pass, step->layer, m.g_ne, m.t_nd, routing) &&
                judge_mixture(pass, step->layer, &m);
    routing_free(routing, pass->n);
    return fine;
}
