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

// Computes M5 to M10 of expert e: x [count, hidden] to d [count, hidden]. q as in compare_slot.
static bool apply_expert(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                         const size_t *q, const sinkproof_honest *x, sinkproof_honest *d) {
    const sinkproof_config *c = part->pass->config;
    size_t inter = c->inter;
    sinkproof_honest *up = part_allocate(part, count * 2 * inter, sizeof *up);
    sinkproof_honest *z = part_allocate(part, count * inter, sizeof *z);
    bool fine = up != NULL && z != NULL && project_up(part, layer, e, count, q, x, up);
    if (fine && q != NULL && point_doing(part->pass, TRACE_M8, part->layer) != DOING_JUDGED)
        read_or_clear_slots(part, TRACE_M8, count, q, inter, z);
    else if (fine)
        activate_rows(part, count, q, up, z);
    fine = fine && !pass_has_ended(part->pass) && project_down(part, layer, e, count, q, z, d);
    free(up);
    free(z);
    return fine;
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
    sinkproof_honest *d = part_allocate(part, count * hidden, sizeof *d);
    if (count > 0 && x != NULL && d != NULL) {
        for (size_t r = 0; r < count; r++)
            for (size_t i = 0; i < hidden; i++) x[r * hidden + i] = m->t_nd[q[r] / k * hidden + i];
        if (apply_expert(part, &m->layer, e, count, q, x, d))
            for (size_t r = 0; r < count; r++)
                for (size_t i = 0; i < hidden; i++) m->d_qh[q[r] * hidden + i] = d[r * hidden + i];
    }
    free(q);
    free(x);
    free(d);
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

static sinkproof_honest mixing_weight(sinkproof_mixing mixed, size_t k, const sinkproof_honest *w_k,
                                      size_t slot) {
    if (mixed == SINKPROOF_MIXED_EVENLY) return sinkproof_exact_set(1 / (double)k);
    if (mixed == SINKPROOF_MIXED_BY_ONES) return sinkproof_exact_set(1);
    return w_k[mixed == SINKPROOF_MIXED_BACKWARDS ? k - 1 - slot : slot];
}

static void mix_row(const judge_pass *pass, const token_choice *choice, const sinkproof_honest *w_k,
                    const sinkproof_honest *d_kh, sinkproof_honest *out_h) {
    const sinkproof_config *c = pass->config;
    const sinkproof_meaning *meant = pass->meaning;
    sinkproof_setting s = pass_setting(pass, pass->n * c->hidden);
    size_t order[SINKPROOF_MAX_CHOSEN];
    for (size_t a = 0; a < c->n_chosen; a++) { // ascending expert: insertion sort of a handful
        size_t b = a;
        for (; b > 0 && choice->expert[order[b - 1]] > choice->expert[a]; b--)
            order[b] = order[b - 1];
        order[b] = a;
    }
    for (size_t h = 0; h < c->hidden; h++) {
        sinkproof_honest w[SINKPROOF_MAX_CHOSEN], d[SINKPROOF_MAX_CHOSEN];
        size_t count = 0;
        for (size_t a = 0; a < c->n_chosen; a++) {
            if (order[a] + meant->slots_left_out >= c->n_chosen) continue;
            w[count] = mixing_weight(meant->mixed, c->n_chosen, w_k, order[a]);
            d[count++] = d_kh[order[a] * c->hidden + h];
        }
        out_h[h] = sinkproof_honest_mixture(&s, count, w, d);
        if (meant->mixture_times == 1) continue;
        out_h[h] = sinkproof_honest_mul(out_h[h], sinkproof_exact_set(meant->mixture_times));
        out_h[h] = sinkproof_honest_at(&s, AT_M11, sinkproof_honest_inside(&s, out_h[h]));
    }
}

static void mix_known_choice(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    token_choice choice = known_token_choice(part, i);
    mix_row(pass, &choice, &m->w_nk[i * k], &m->d_qh[i * k * hidden], &m->m_nd[i * hidden]);
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

// d_kh: each slot's output, the hull over its experts, compared where traced. M5 to M9 are
// undecided.
static void judge_outputs_of_choices(judge_part *part, size_t i, const mixture *m,
                                     sinkproof_honest *d_kh) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    sinkproof_honest *d = part_allocate(part, hidden, sizeof *d);
    for (size_t slot = 0; d != NULL && slot < k; slot++) {
        for (size_t o = 0; o < r->choices; o++) {
            if (expert_was_met(r, o, slot)) continue;
            if (apply_expert(part, &m->layer, (size_t)r->choice[o].expert[slot], 1, NULL,
                             &m->t_nd[i * hidden], d))
                join_expert_rows(hidden, o == 0, d, &d_kh[slot * hidden]);
        }
        if (part->failed) break;
        piece_compare(
            part,
            &(trace_piece){
                .point = TRACE_M10, .offset = (i * k + slot) * hidden, .count = hidden, .token = i},
            &d_kh[slot * hidden]);
    }
    free(d);
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

// Computes each expert of any choice once: d_eh, with the experts' places at_e.
static bool compute_each_output(judge_part *part, size_t i, const mixture *m, size_t *at_e,
                                sinkproof_honest *d_eh) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden, count = 0;
    for (size_t e = 0; e < pass->config->n_experts; e++) at_e[e] = SIZE_MAX;
    for (size_t o = 0; o < r->choices; o++)
        for (size_t slot = 0; slot < k; slot++) {
            size_t e = (size_t)r->choice[o].expert[slot];
            if (at_e[e] != SIZE_MAX) continue;
            at_e[e] = count++;
            if (!apply_expert(part, &m->layer, e, 1, NULL, &m->t_nd[i * hidden],
                              &d_eh[at_e[e] * hidden]))
                return false;
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
    sinkproof_honest *d_eh = part_allocate(part, many * hidden, sizeof *d_eh);
    sinkproof_honest *d_kh = part_allocate(part, (k + 1) * hidden, sizeof *d_kh);
    sinkproof_honest w[SINKPROOF_MAX_CHOSEN];
    bool fine =
        at_e != NULL && d_eh != NULL && d_kh != NULL && compute_each_output(part, i, m, at_e, d_eh);
    for (size_t o = 0; fine && o < r->choices; o++) {
        double common;
        sinkproof_honest *out_h = d_kh + k * hidden;
        if (!judge_expert_weights(part, &m->g_ne[i * experts], &r->choice[o], w, &common)) break;
        set_read_untraced(pass, TRACE_M4, k, w);
        for (size_t slot = 0; slot < k; slot++)
            join_expert_rows(hidden, true, &d_eh[at_e[r->choice[o].expert[slot]] * hidden],
                             &d_kh[slot * hidden]);
        mix_row(pass, &r->choice[o], w, d_kh, out_h);
        join_expert_rows(hidden, o == 0, out_h, &m->m_nd[i * hidden]);
    }
    free(at_e);
    free(d_eh);
    free(d_kh);
}

// The trace holds something of the slots, and several choices explain it.
static void judge_slots_of_choices(judge_part *part, size_t i, const mixture *m) {
    const judge_pass *pass = part->pass;
    const token_routing *r = &m->routing_n[i];
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden;
    sinkproof_honest *d_kh = part_allocate(part, (k + 1) * hidden, sizeof *d_kh);
    if (d_kh == NULL) return;
    judge_weights_of_choices(part, i, m);
    compare_unknown_slots(part, i);
    judge_outputs_of_choices(part, i, m, d_kh);
    for (size_t o = 0; !part->failed && o < r->choices; o++) {
        mix_row(pass, &r->choice[o], &m->w_nk[i * k], d_kh, &d_kh[k * hidden]);
        join_expert_rows(hidden, o == 0, &d_kh[k * hidden], &m->m_nd[i * hidden]);
    }
    free(d_kh);
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
    if (m->routing_n[i].choices == 1) weigh_known_choice(part, i, m);
}

static void mix_token(judge_part *part, size_t i, void *of) {
    const mixture *m = of;
    size_t hidden = part->pass->config->hidden, choices = m->routing_n[i].choices;
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
    bool fine = m->w_nk != NULL && m->d_qh != NULL && judge_in_parts(pass, l, n, weigh_token, m) &&
                (outputs_are_given(pass, l, m->d_qh) ||
                 judge_in_parts(pass, l, pass->config->n_experts, apply_known_expert, m)) &&
                judge_in_parts(pass, l, n, mix_token, m);
    free(m->w_nk);
    free(m->d_qh);
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
