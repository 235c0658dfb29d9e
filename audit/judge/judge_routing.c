// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which experts did the engine choose? Where the trace has the selection (M3), it is checked and
// replayed. Where it has not, the judge keeps the set of choices that the logits' sets admit and
// that the traced values of the slots (M4 to M8) do not refute. If one choice is left, it is known.
// If a few are left, the values after it are the hull over them. If more are left, nothing is known
// of the token until its residual stream is traced again. The judge never guesses.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// choices that are followed; rows of the up-projection that can refute an expert
enum { CHOICES = 16, SPOT = 32 };

typedef struct router {
    const sinkproof_honest *g_ne, *t_nd;
    token_routing *routing_n;
    double *margin_n;
} router;

// The search for one token's choices.
typedef struct search {
    const judge_pass *pass;
    size_t experts, k;
    const sinkproof_honest *g_e;
    bool *may_e, *must_e; // may be among the chosen; is among them for all logits of the sets
    bool *fits_se;        // [k, experts]: slot s may hold expert e
    token_choice at;      // under construction
    token_choice found[CHOICES];
    size_t n_found; // CHOICES + 1: too many
} search;

static bool is_among(const int32_t *expert_k, size_t k, size_t e) {
    bool among = false;
    for (size_t slot = 0; slot < k; slot++) among = among || expert_k[slot] == (int32_t)e;
    return among;
}

// Finds the experts that are among the k largest for some logits of the sets, and those that are
// for all.
static void find_possible_experts(search *s) {
    size_t musts = 0;
    for (size_t e = 0; e < s->experts; e++) {
        size_t above = 0, rivals = 0;
        for (size_t o = 0; o < s->experts; o++) {
            above += s->g_e[o].lo > s->g_e[e].hi;
            rivals += o != e && !(s->g_e[o].hi < s->g_e[e].lo);
        }
        s->may_e[e] = above < s->k;
        s->must_e[e] = rivals < s->k;
        musts += s->must_e[e];
    }
    if (musts > s->k) memset(s->must_e, 0, s->experts * sizeof *s->must_e); // some logits are NaN
}

static size_t admitted_count(const search *s) {
    size_t count = 0;
    for (size_t e = 0; e < s->experts; e++) count += s->may_e[e];
    return count;
}

static void keep_choice(search *s) {
    for (size_t e = 0; e < s->experts; e++)
        if (s->must_e[e] && !is_among(s->at.expert, s->k, e)) return;
    if (s->n_found < CHOICES) s->found[s->n_found] = s->at;
    s->n_found++;
}

// Lists every choice of distinct experts, slot by slot. With `ordered` the trace shows which slot
// holds which expert. Otherwise the order of the slots says nothing, and each set of experts is
// listed once, in ascending order.
static void list_choices(search *s, bool ordered, size_t slot) {
    if (slot == s->k) {
        keep_choice(s);
        return;
    }
    size_t first = !ordered && slot > 0 ? (size_t)s->at.expert[slot - 1] + 1 : 0;
    for (size_t e = first; e < s->experts && s->n_found <= CHOICES; e++) {
        if (is_among(s->at.expert, slot, e) || !s->fits_se[slot * s->experts + e]) continue;
        s->at.expert[slot] = (int32_t)e;
        list_choices(s, ordered, slot + 1);
    }
}

// ---- what the slots' values refute

// Whether the first rows of expert e's up-projection of one token fit the traced values: M5, M6 or
// M8, which combines two rows.
static bool expert_fits_slot(judge_part *part, const sinkproof_layer *layer,
                             const sinkproof_planes *t, size_t q, size_t e) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t up = 2 * c->inter, rows = up < SPOT ? up : SPOT, l = part->layer;
    sinkproof_honest y[SPOT], z[SPOT / 2];
    expert_rows one = {.expert = e, .first = 0, .rows = rows, .up = true};
    bool fits =
        judge_expert_map(part, layer, &one, t, y, rows) &&
        piece_outside(part, &(trace_piece){.point = TRACE_M6, .offset = q * up, .count = rows},
                      y) == 0;
    if (!fits || point_is_traced(pass, TRACE_M6, l)) return fits;
    sinkproof_setting s = pass_setting(pass, pass->n * c->n_chosen * c->inter);
    for (size_t f = 0; f < rows / 2; f++)
        z[f] = sinkproof_honest_swiglu(&s, c->swiglu, y[2 * f], y[2 * f + 1]);
    return piece_outside(
               part, &(trace_piece){.point = TRACE_M8, .offset = q * c->inter, .count = rows / 2},
               z) == 0;
}

static bool refute_by_slots(judge_part *part, search *s, const sinkproof_layer *layer,
                            const sinkproof_honest *t_d, size_t token) {
    sinkproof_setting setting = pass_setting(part->pass, 1);
    sinkproof_planes t = sinkproof_operand_planes(&setting, AT_M5_IN, &layer->w_up, t_d, 1);
    for (size_t slot = 0; slot < s->k; slot++)
        for (size_t e = 0; e < s->experts; e++)
            if (s->fits_se[slot * s->experts + e])
                s->fits_se[slot * s->experts + e] =
                    expert_fits_slot(part, layer, &t, token * s->k + slot, e);
    sinkproof_planes_free(&t);
    return !part->failed;
}

// Where the set of experts is certain, so are their weights: M4 tells the slots apart.
static void refute_by_weights(judge_part *part, search *s, size_t token) {
    token_choice all = {{0}};
    sinkproof_honest w[SINKPROOF_MAX_CHOSEN];
    double common;
    for (size_t e = 0, slot = 0; e < s->experts; e++)
        if (s->may_e[e]) all.expert[slot++] = (int32_t)e;
    if (!judge_expert_weights(part, s->g_e, &all, w, &common)) return;
    for (size_t slot = 0; slot < s->k; slot++)
        for (size_t a = 0; a < s->k; a++)
            s->fits_se[slot * s->experts + (size_t)all.expert[a]] =
                s->fits_se[slot * s->experts + (size_t)all.expert[a]] &&
                piece_outside(
                    part,
                    &(trace_piece){.point = TRACE_M4, .offset = token * s->k + slot, .count = 1},
                    &w[a]) == 0;
}

// No choice explains the slots: the judge takes one that the logits admit, and its slots are then
// called a bug.
static void keep_likeliest_choice(search *s) {
    for (size_t slot = 0; slot < s->k; slot++) {
        size_t best = s->experts;
        for (size_t e = 0; e < s->experts; e++) {
            bool left = s->may_e[e] && !is_among(s->found[0].expert, slot, e);
            if (left && (best == s->experts || s->g_e[e].mid > s->g_e[best].mid)) best = e;
        }
        s->found[0].expert[slot] = (int32_t)(best < s->experts ? best : slot);
    }
    s->n_found = 1;
}

static bool any_point_is_traced(const judge_pass *pass, size_t l,
                                const sinkproof_trace_point *points, size_t count) {
    bool any = false;
    for (size_t p = 0; p < count; p++) any = any || point_is_traced(pass, points[p], l);
    return any;
}

static void find_choices(judge_part *part, search *s, const sinkproof_layer *layer,
                         const sinkproof_honest *t_d, size_t token) {
    static const sinkproof_trace_point slots[] = {TRACE_M4, TRACE_M5, TRACE_M6,
                                                  TRACE_M8, TRACE_M9, TRACE_M10};
    const judge_pass *pass = part->pass;
    size_t l = part->layer;
    bool ordered = any_point_is_traced(pass, l, slots, 6),
         told = any_point_is_traced(pass, l, slots + 2, 2);
    find_possible_experts(s);
    for (size_t slot = 0; slot < s->k; slot++)
        memcpy(&s->fits_se[slot * s->experts], s->may_e, s->experts * sizeof *s->may_e);
    if (told) refute_by_slots(part, s, layer, t_d, token);
    if (ordered && admitted_count(s) == s->k) refute_by_weights(part, s, token);
    list_choices(s, ordered, 0);
    if (s->n_found == 0) keep_likeliest_choice(s);
}

// ---- a selection that the trace holds

// The rank of expert e by the emulation: largest logit first, or the order that is meant.
static size_t expert_rank(const search *s, size_t e) {
    sinkproof_selection selection = s->pass->meaning->selection;
    size_t rank = 0;
    for (size_t o = 0; o < s->experts; o++) {
        double a = s->g_e[o].mid, b = s->g_e[e].mid;
        if (selection == SINKPROOF_SELECT_ABSOLUTE) a = fabs(a), b = fabs(b);
        if (selection == SINKPROOF_SELECT_SMALLEST) a = -a, b = -b;
        rank += a > b || (a == b && o < e);
    }
    return rank;
}

// Whether an engine with the meant selection would choose expert e.
static bool expert_is_meant(const search *s, size_t e) {
    size_t rank = expert_rank(s, e), k = s->k;
    if (s->pass->meaning->selection == SINKPROOF_SELECT_SHIFTED) return rank >= 1 && rank <= k;
    if (s->pass->meaning->selection == SINKPROOF_SELECT_RUNNER_UP) return rank + 1 < k || rank == k;
    return rank < k;
}

// A selection is honest when no rejected expert certainly beats a chosen one. When every expert may
// be among the largest, the check is undecided.
static void check_selection(judge_part *part, const search *s, size_t token,
                            const int32_t *chosen_k) {
    bool open = admitted_count(s) == s->experts && s->experts > s->k;
    for (size_t slot = 0; slot < s->k; slot++) {
        double best_other = -INFINITY;
        for (size_t e = 0; e < s->experts; e++)
            if (!is_among(chosen_k, s->k, e)) best_other = fmax(best_other, s->g_e[e].lo);
        // The honest set: the chosen expert itself, or no expert where a better one was passed
        // over.
        sinkproof_honest set = sinkproof_exact_set(chosen_k[slot]);
        bool defined = s->pass->meaning->selection == SINKPROOF_SELECT_LARGEST;
        bool allowed = defined ? s->g_e[chosen_k[slot]].hi >= best_other
                               : expert_is_meant(s, (size_t)chosen_k[slot]);
        if (!allowed) set = sinkproof_exact_set(-1);
        if (open) set = sinkproof_unknown_set(chosen_k[slot]);
        piece_compare(
            part,
            &(trace_piece){
                .point = TRACE_M3, .offset = token * s->k + slot, .count = 1, .token = token},
            &set);
    }
}

// The gap between the last chosen and the best rejected expert.
static double choice_margin(const search *s, const int32_t *chosen_k) {
    double worst_in = INFINITY, best_out = -INFINITY;
    for (size_t e = 0; e < s->experts; e++) {
        if (sinkproof_is_unknown(&s->g_e[e])) return INFINITY;
        if (is_among(chosen_k, s->k, e))
            worst_in = fmin(worst_in, s->g_e[e].mid);
        else
            best_out = fmax(best_out, s->g_e[e].mid);
    }
    return worst_in - best_out;
}

// ---- all tokens

static bool keep_choices(judge_part *part, token_routing *r, const search *s) {
    r->choices = s->n_found <= CHOICES ? s->n_found : 0;
    if (r->choices < 2) return true;
    r->choice = part_allocate(part, r->choices, sizeof *r->choice);
    if (r->choice == NULL) return false;
    memcpy(r->choice, s->found, r->choices * sizeof *r->choice);
    return true;
}

static void route_token(judge_part *part, size_t i, void *of) {
    const router *r = of;
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t l = part->layer, k = c->n_chosen;
    const sinkproof_tensor *m3 = sinkproof_trace_find(pass->trace, TRACE_M3, l);
    sinkproof_layer layer = sinkproof_model_layer(pass->model, l);
    int32_t *chosen_k = &pass->chosen[(l * pass->n + i) * k];
    if (pass_leaves_out_row(pass, i)) {
        for (size_t slot = 0; slot < k; slot++) chosen_k[slot] = -1;
        r->margin_n[i] = INFINITY;
        return;
    }
    bool *memory = part_allocate(part, (2 + k) * c->n_experts, sizeof *memory);
    if (memory == NULL) return;
    search s = {.pass = pass, .experts = c->n_experts, .k = k, .g_e = &r->g_ne[i * c->n_experts]};
    s.may_e = memory, s.must_e = memory + s.experts, s.fits_se = memory + 2 * s.experts;
    if (m3 != NULL) {
        for (size_t slot = 0; slot < k; slot++)
            chosen_k[slot] = (int32_t)sinkproof_tensor_value(m3, i * k + slot);
        find_possible_experts(&s);
        check_selection(part, &s, i, chosen_k);
        r->routing_n[i].choices = 1;
    } else {
        find_choices(part, &s, &layer, &r->t_nd[i * c->hidden], i);
        keep_choices(part, &r->routing_n[i], &s);
        for (size_t slot = 0; slot < k; slot++)
            chosen_k[slot] = s.n_found == 1 ? s.found[0].expert[slot] : -1;
    }
    bool told = m3 != NULL || point_is_traced(pass, TRACE_M2, l);
    bool known = told && r->routing_n[i].choices == 1;
    r->margin_n[i] = known ? choice_margin(&s, chosen_k) : INFINITY;
    free(memory);
}

bool judge_routing(judge_pass *pass, size_t l, const sinkproof_honest *logits_ne,
                   const sinkproof_honest *t_nd, token_routing *routing_n) {
    sinkproof_judgement *j = pass->judgement;
    router r = {logits_ne, t_nd, routing_n, malloc(pass->n * sizeof *r.margin_n)};
    bool fine = r.margin_n != NULL && judge_in_parts(pass, l, pass->n, route_token, &r);
    for (size_t i = 0; fine && !pass_has_ended(pass) && i < pass->n; i++) {
        j->open[l] += routing_n[i].choices != 1;
        if (!(r.margin_n[i] < j->thinnest_margin)) continue;
        j->thinnest_margin = r.margin_n[i];
        j->margin_layer = l, j->margin_token = i;
    }
    free(r.margin_n);
    return fine;
}

void routing_free(token_routing *routing_n, size_t n) {
    for (size_t i = 0; routing_n != NULL && i < n; i++) free(routing_n[i].choice);
    free(routing_n);
}
