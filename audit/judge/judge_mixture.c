// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's mixtures, M11.
//
// Each of several ranks may have a slice of every expert, and mix what its slices give before the
// ranks are added (M11.part, bound.parts-mixed). No rank has a whole M9 or M10: such a mixture is
// computed from M8, even if the trace shows what lies between them. A trace that shows M10 and not
// M8 is of an engine that has it.
#include "audit/judge/judge_internal.h"
#include "ref/operands.h"

#include <stdlib.h>

size_t judge_slices(const judge_pass *pass, size_t layer) {
    sinkproof_rounding at = pass->policy->at[AT_M11_PART];
    bool mixed = at.format == SINKPROOF_RANKS &&
                 any_point_judged(pass, layer, TRACE_M11, TRACE_M11) &&
                 point_doing(pass, TRACE_M8, layer) != DOING_LEFT_OUT;
    bool whole = point_is_traced(pass, TRACE_M10, layer) && !point_is_traced(pass, TRACE_M8, layer);
    return mixed && !whole ? at.parts : 0;
}

bool judge_slice_sums(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                      const sinkproof_honest *z, sinkproof_honest *sum_rqh) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t ranks = judge_slices(pass, part->layer), n = c->inter, all = count * c->hidden;
    size_t each = sinkproof_sum_part_products(pass->policy->at[AT_M11_PART], n);
    sinkproof_matrix w = sinkproof_matrix_at(&layer->w_down, e);
    sinkproof_setting s = pass_setting(pass, pass->n * c->n_chosen * w.rows);
    sinkproof_product_points through = sinkproof_product_points_at(AT_M9);
    sinkproof_accumulator sum = sinkproof_accumulator_at(pass->policy, through.term, through.acc);
    sinkproof_planes planes = sinkproof_operand_planes(&s, AT_M9_IN, &layer->w_down, z, count);
    const sinkproof_weight_rows rows = {&w, 0, c->hidden, NULL};
    bool fine = planes.mid != NULL;
    for (size_t r = 0; fine && r < ranks; r++) {
        size_t first = r * each, left = first < n ? n - first : 0;
        sinkproof_honest *sum_qh = &sum_rqh[r * all];
        for (size_t i = 0; left == 0 && i < all; i++) sum_qh[i] = sinkproof_exact_set(0);
        if (left > 0)
            fine = sinkproof_honest_slice(&s, &sum, &planes, &rows, first,
                                          left < each ? left : each, sum_qh);
    }
    sinkproof_planes_free(&planes);
    part->failed = part->failed || !fine;
    return fine;
}

// Where the bias is: in the first rank's part, or in all of them, in equal shares that have the
// format inside, or that of a part.
enum { BIAS_FIRST, BIAS_SHARED, BIAS_SHARED_STORED, BIAS_WAYS };

static double bias_share(const sinkproof_setting *s, int way, size_t r, double b) {
    sinkproof_rounding at = s->policy->at[AT_M11_PART];
    if (way == BIAS_FIRST) return r == 0 ? b : 0;
    return sinkproof_round(way == BIAS_SHARED ? s->policy->inside : at.part, b / at.parts);
}

// One element of a mixture of k experts: their weights and biases, what the slices of the ranks
// give, and room for as many numbers.
typedef struct sliced_element {
    size_t k;
    const sinkproof_honest *w_k;
    const double *b_k;
    sinkproof_honest *sum_rk, *d_rk;
} sliced_element;

// The set of such an element, and of `whole`, the mixture of one rank, which the policy holds too.
static sinkproof_honest with_slices(const judge_pass *pass, const sinkproof_setting *s,
                                    const sliced_element *m, sinkproof_honest whole) {
    sinkproof_rounding at = s->policy->at[AT_M11_PART];
    size_t ranks = at.parts, terms = sinkproof_sum_part_products(at, pass->config->inter);
    sinkproof_honest mixed = whole;
    bool even = (ranks & (ranks - 1)) == 0; // both formats have the same shares
    for (int way = 0; way < BIAS_WAYS; way++) {
        if (way == BIAS_SHARED_STORED && even) continue;
        for (size_t r = 0; r < ranks; r++)
            for (size_t a = r * m->k; a < (r + 1) * m->k; a++)
                m->d_rk[a] = sinkproof_honest_slice_output(
                    s, terms, m->sum_rk[a], bias_share(s, way, r, m->b_k[a - r * m->k]));
        sinkproof_honest x = sinkproof_honest_mixed_parts(s, ranks, m->k, m->w_k, m->d_rk, whole);
        mixed = way == BIAS_FIRST ? x : sinkproof_honest_hull(mixed, x);
    }
    return mixed;
}

// ---- a token

static sinkproof_honest mixing_weight(sinkproof_mixing mixed, size_t k, const sinkproof_honest *w_k,
                                      size_t slot) {
    if (mixed == SINKPROOF_MIXED_EVENLY) return sinkproof_exact_set(1 / (double)k);
    if (mixed == SINKPROOF_MIXED_BY_ONES) return sinkproof_exact_set(1);
    return w_k[mixed == SINKPROOF_MIXED_BACKWARDS ? k - 1 - slot : slot];
}

// b_kh: the biases of the down-projections of a choice.
static void read_biases(const judge_pass *pass, const sinkproof_layer *layer,
                        const token_choice *choice, double *b_kh) {
    for (size_t slot = 0; slot < pass->config->n_chosen; slot++) {
        sinkproof_matrix b = sinkproof_matrix_at(&layer->b_down, (size_t)choice->expert[slot]);
        sinkproof_matrix_row(&b, 0, b_kh + slot * pass->config->hidden);
    }
}

// The `count` slots that are mixed, in ascending order of expert, and their weights.
typedef struct mixed_order {
    size_t count, slot_a[SINKPROOF_MAX_CHOSEN];
    sinkproof_honest w_a[SINKPROOF_MAX_CHOSEN];
} mixed_order;

static mixed_order order_of_mixture(const judge_pass *pass, const token_choice *choice,
                                    const sinkproof_honest *w_k) {
    const sinkproof_meaning *meant = pass->meaning;
    size_t order[SINKPROOF_MAX_CHOSEN], k = pass->config->n_chosen;
    mixed_order mixed = {.count = 0};
    for (size_t a = 0; a < k; a++) { // ascending expert: insertion sort of a handful
        size_t b = a;
        for (; b > 0 && choice->expert[order[b - 1]] > choice->expert[a]; b--)
            order[b] = order[b - 1];
        order[b] = a;
    }
    for (size_t a = 0; a < k; a++) {
        if (order[a] + meant->slots_left_out >= k) continue;
        mixed.w_a[mixed.count] = mixing_weight(meant->mixed, k, w_k, order[a]);
        size_t e = (size_t)choice->expert[order[a]];
        if (e >= meant->weighed_first && e < meant->weighed_end)
            mixed.w_a[mixed.count] = sinkproof_honest_mul(
                mixed.w_a[mixed.count], sinkproof_exact_set(meant->weighed_times));
        // an engine that is supposed to drop a slot has no term of it
        const sinkproof_honest *w = &mixed.w_a[mixed.count];
        if (meant != &sinkproof_meaning_as_defined && w->lo == 0 && w->hi == 0) continue;
        mixed.slot_a[mixed.count++] = order[a];
    }
    return mixed;
}

// The element h of a mixture with that of slices. `room` is for two sets of each slot and rank.
static sinkproof_honest mix_slices(const judge_pass *pass, const sinkproof_setting *s, size_t ranks,
                                   const mixed_order *o, const slot_outputs *of, const double *b_kh,
                                   sinkproof_honest *room, size_t h, sinkproof_honest whole) {
    size_t hidden = pass->config->hidden, all = ranks * o->count;
    double b_a[SINKPROOF_MAX_CHOSEN];
    for (size_t a = 0; a < o->count; a++) {
        size_t slot = o->slot_a[a];
        b_a[a] = b_kh[slot * hidden + h];
        for (size_t r = 0; r < ranks; r++)
            room[r * o->count + a] = of->sum_krh[(slot * ranks + r) * hidden + h];
    }
    const sliced_element element = {o->count, o->w_a, b_a, room, room + all};
    return with_slices(pass, s, &element, whole);
}

void judge_mix_row(judge_part *part, const sinkproof_layer *layer, const token_choice *choice,
                   const sinkproof_honest *w_k, const slot_outputs *of, sinkproof_honest *out_h) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t ranks = judge_slices(pass, part->layer);
    double times = pass->meaning->mixture_times;
    sinkproof_setting s = pass_setting(pass, pass->n * c->hidden);
    mixed_order o = order_of_mixture(pass, choice, w_k);
    double *b_kh = NULL;
    sinkproof_honest *room = NULL;
    if (ranks > 0) {
        b_kh = part_allocate(part, c->n_chosen * c->hidden, sizeof *b_kh);
        room = part_allocate(part, 2 * ranks * c->n_chosen, sizeof *room);
        if (b_kh != NULL) read_biases(pass, layer, choice, b_kh);
    }
    for (size_t h = 0; !part->failed && h < c->hidden; h++) {
        sinkproof_honest d[SINKPROOF_MAX_CHOSEN];
        for (size_t a = 0; a < o.count; a++) d[a] = of->d_kh[o.slot_a[a] * c->hidden + h];
        out_h[h] =
            o.count > 0 ? sinkproof_honest_mixture(&s, o.count, o.w_a, d) : sinkproof_exact_set(0);
        if (ranks > 0) out_h[h] = mix_slices(pass, &s, ranks, &o, of, b_kh, room, h, out_h[h]);
        if (times == 1) continue;
        out_h[h] = sinkproof_honest_mul(out_h[h], sinkproof_exact_set(times));
        out_h[h] = sinkproof_honest_at(&s, AT_M11, sinkproof_honest_inside(&s, out_h[h]));
    }
    free(b_kh);
    free(room);
}
