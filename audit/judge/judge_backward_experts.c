// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients through the experts, or through one perceptron: the mixture, the down-projection,
// SwiGLU, the up-projection and the router. Slots are [n, chosen], of a dense model [n].
#include "audit/judge/judge_backward_internal.h"

#include <stdlib.h>

typedef struct expert_slots {
    size_t count, each; // each: of a token
    int32_t *expert;    // of each slot; 0 in a dense model
} expert_slots;

static bool find_slots(backward_pass *pass, size_t layer, expert_slots *slots) {
    const sinkproof_config *c = pass->config;
    size_t each = c->dense ? 1 : c->n_chosen;
    *slots = (expert_slots){.count = pass->n * each, .each = each};
    near_set *chosen = c->dense ? NULL : backward_read_point(pass, TRACE_M3, layer);
    if (!c->dense && chosen == NULL) return false;
    slots->expert = backward_allocate(pass, slots->count, sizeof *slots->expert);
    for (size_t s = 0; chosen != NULL && slots->expert != NULL && s < slots->count; s++)
        slots->expert[s] = (int32_t)chosen[s].mid;
    free(chosen);
    return slots->expert != NULL;
}

// The gradient of what the down-projection gives, of each slot.
static near_set *down_gradient(backward_pass *pass, size_t layer) {
    if (backward_has_gradient(pass, TRACE_M10, layer) || !pass->config->dense)
        return backward_read_gradient(pass, TRACE_M10, layer);
    return backward_read_passed(pass, TRACE_M11, TRACE_M12, layer);
}

// Rows of x [n, width] as its slots read them: slot s is of token s / each.
static const near_set *slot_row(const near_set *x, size_t slot, size_t each, size_t width) {
    return x + slot / each * width;
}

// ---- the mixture -----------------------------------------------------------------------------

static near_set *mixed(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    size_t k = pass->config->n_chosen, hidden = pass->config->hidden, n = pass->n;
    bool of_outputs = point == TRACE_M10;
    near_set *dout = backward_read_passed(pass, TRACE_M11, TRACE_M12, layer), *x = NULL;
    near_set *other = backward_read_point(pass, of_outputs ? TRACE_M4 : TRACE_M10, layer);
    if (dout != NULL && other != NULL)
        x = backward_allocate(pass, n * k * (of_outputs ? hidden : 1), sizeof *x);
    for (size_t s = 0; x != NULL && s < n * k; s++) {
        const near_set *d_c = dout + s / k * hidden;
        if (!of_outputs)
            x[s] = sinkproof_gradient_dot(&pass->arithmetic, hidden, d_c, 1, other + s * hidden, 1,
                                          1, 1);
        for (size_t c = 0; of_outputs && c < hidden; c++)
            x[s * hidden + c] =
                sinkproof_gradient_dot(&pass->arithmetic, 1, d_c + c, 1, other + s, 1, 1, 1);
    }
    free(dout);
    free(other);
    return x;
}

// ---- the router ------------------------------------------------------------------------------

// w (dw - sum w dw), which is 0 for the experts that were not chosen.
static near_set *routed(backward_pass *pass, size_t layer) {
    const sinkproof_config *c = pass->config;
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    size_t k = c->n_chosen, experts = c->n_experts;
    expert_slots slots = {0};
    near_set *w = backward_read_point(pass, TRACE_M4, layer), *x = NULL;
    near_set *dw = backward_read_gradient(pass, TRACE_M4, layer);
    if (w != NULL && dw != NULL && find_slots(pass, layer, &slots))
        x = backward_allocate(pass, pass->n * experts, sizeof *x);
    for (size_t t = 0; x != NULL && t < pass->n; t++) {
        const near_set *w_k = w + t * k, *dw_k = dw + t * k;
        near_set mean = sinkproof_gradient_dot(a, k, w_k, 1, dw_k, 1, 1, 2);
        for (size_t m = 0; m < k; m++) {
            near_set difference = {dw_k[m].mid - mean.mid, dw_k[m].off + mean.off};
            double size = sinkproof_near_size(dw_k[m]) + sinkproof_near_size(mean);
            gradient_terms sum = {w_k[m].mid * difference.mid, sinkproof_near_size(w_k[m]) * size,
                                  w_k[m].off * size + fabs(w_k[m].mid) * difference.off};
            int32_t e = slots.expert[t * k + m];
            x[t * experts + (size_t)e] = sinkproof_gradient_sum(a, &sum, 2, 3, 3);
        }
    }
    free(w);
    free(dw);
    free(slots.expert);
    return x;
}

// ---- SwiGLU ----------------------------------------------------------------------------------

static near_set product(near_set x, near_set y) {
    double mid = x.mid * y.mid;
    double off = x.off * sinkproof_near_size(y) + fabs(x.mid) * y.off + 0x1p-52 * fabs(mid);
    return (near_set){mid, off * (1 + 0x1p-48)};
}

// sigmoid(t) and 1 - sigmoid(t), where t was rounded, and the difference may be one of rounded
// numbers: both errors are absolute.
static void sigmoids(const sinkproof_gradient_arithmetic *a, near_set t, near_set *sigma,
                     near_set *rest) {
    double open = t.off + fabs(t.mid) * (8 * a->u + 3 * a->narrow_u);
    double s = 1 / (1 + exp(-t.mid)), r = 1 / (1 + exp(t.mid));
    double moved = open * s * r * exp(fmin(2 * open, 700));
    double each =
        a->narrow_u + (a->exp_ulp + a->exp_growth * fabs(t.mid) + a->quotient_ulp + 4) * 2 * a->u;
    *sigma = (near_set){s, fmin(moved, 1) + each * s + a->least};
    *rest = (near_set){r, fmin(moved, 1) + each + a->least};
}

// x held to [low, high], and whether the gradient passes: at a limit itself, either.
static near_set clamped(near_set x, double low, double high) {
    double mid = fmax(low, fmin(high, x.mid));
    return (near_set){mid, x.off};
}
static near_set where_it_passes(near_set x, double low, double high, near_set gradient) {
    bool may = x.mid + x.off >= low && x.mid - x.off <= high;
    bool must = x.mid - x.off > low && x.mid + x.off < high;
    if (!may) return (near_set){0, 0};
    return must ? gradient : sinkproof_near_hull(gradient, (near_set){0, 0});
}

static void gate_back(const backward_pass *pass, near_set gate, near_set up, near_set dz,
                      near_set *dgate, near_set *dup) {
    const sinkproof_gradient_arithmetic *a = &pass->arithmetic;
    sinkproof_swiglu_numbers numbers = pass->config->swiglu;
    near_set g = clamped(gate, -INFINITY, numbers.limit), sigma, rest;
    near_set u = clamped(up, -numbers.limit, numbers.limit);
    near_set t = sinkproof_near_scaled(g, numbers.alpha);
    near_set shifted = {u.mid + numbers.offset,
                        u.off + a->u * (fabs(u.mid) + fabs(numbers.offset)) +
                            a->narrow_u * (fabs(u.mid) + fabs(numbers.offset))};
    gradient_terms of_gate = {0, 0, 0}, of_up = {0, 0, 0};
    sigmoids(a, t, &sigma, &rest);
    near_set through = product(dz, shifted);
    if (numbers.offset == 0) through = product(dz, u);
    sinkproof_gradient_add(&of_gate, through, sigma);
    sinkproof_gradient_add(&of_gate, through, product(product(t, rest), sigma));
    sinkproof_gradient_add(&of_up, dz, product(g, sigma));
    *dgate = where_it_passes(gate, -INFINITY, numbers.limit,
                             sinkproof_gradient_sum(a, &of_gate, 2, 10, 7));
    *dup = where_it_passes(up, -numbers.limit, numbers.limit,
                           sinkproof_gradient_sum(a, &of_up, 1, 4, 4));
}

static near_set *activated(backward_pass *pass, size_t layer) {
    size_t inter = pass->config->inter, each = pass->config->dense ? 1 : pass->config->n_chosen;
    near_set *up = backward_read_point(pass, TRACE_M6, layer), *x = NULL;
    near_set *dact = backward_read_gradient(pass, TRACE_M8, layer);
    size_t count = pass->n * each * inter;
    if (up != NULL && dact != NULL) x = backward_allocate(pass, 2 * count, sizeof *x);
    for (size_t i = 0; x != NULL && i < count; i++)
        gate_back(pass, up[2 * i], up[2 * i + 1], dact[i], &x[2 * i], &x[2 * i + 1]);
    free(up);
    free(dact);
    return x;
}

// ---- the projections -------------------------------------------------------------------------

// dx of each slot through its expert's matrix, added to the row of the slot, or of its token.
static bool add_through(backward_pass *pass, const sinkproof_matrix *stack,
                        const expert_slots *slots, const near_set *dy, bool of_token,
                        backward_sums *sums) {
    size_t experts = pass->config->dense ? 1 : pass->config->n_experts;
    for (size_t e = 0; e < experts; e++) {
        near_set *w = NULL;
        for (size_t s = 0; s < slots->count; s++) {
            if ((size_t)slots->expert[s] != e) continue;
            if (w == NULL && (w = backward_read_weight(pass, stack, e)) == NULL) return false;
            size_t row = of_token ? s / slots->each : s;
            backward_add_inputs(1, stack->rows, stack->cols, w, dy + s * stack->rows,
                                sums->terms + row * stack->cols);
        }
        free(w);
    }
    return true;
}

static near_set *through_down(backward_pass *pass, size_t layer) {
    sinkproof_layer weights = sinkproof_model_layer(pass->model, layer);
    expert_slots slots = {0};
    backward_sums sums = {0};
    near_set *dy = down_gradient(pass, layer), *x = NULL;
    if (dy != NULL && find_slots(pass, layer, &slots) &&
        backward_sums_new(pass, slots.count * weights.w_down.cols, &sums) &&
        add_through(pass, &weights.w_down, &slots, dy, false, &sums))
        x = backward_sums_finish(pass, &sums, (double)weights.w_down.rows, 1, 0);
    free(sums.terms);
    free(dy);
    free(slots.expert);
    return x;
}

// The normed input of the sublayer, from its experts and its router.
static near_set *normed_input(backward_pass *pass, size_t layer) {
    sinkproof_layer weights = sinkproof_model_layer(pass->model, layer);
    const sinkproof_config *c = pass->config;
    expert_slots slots = {0};
    backward_sums sums = {0};
    near_set *dy = backward_read_gradient(pass, TRACE_M6, layer), *x = NULL, *router = NULL;
    near_set *dlogits = c->dense ? NULL : backward_read_gradient(pass, TRACE_M2, layer);
    bool fine = dy != NULL && (c->dense || dlogits != NULL) && find_slots(pass, layer, &slots) &&
                backward_sums_new(pass, pass->n * c->hidden, &sums) &&
                add_through(pass, &weights.w_up, &slots, dy, true, &sums);
    if (fine && !c->dense && (router = backward_read_weight(pass, &weights.w_router, 0)) != NULL)
        backward_add_inputs(pass->n, c->n_experts, c->hidden, router, dlogits, sums.terms);
    double terms = (double)(slots.each * weights.w_up.rows) + (double)c->n_experts;
    // Each share may be stored, and each sum of shares.
    if (fine && (c->dense || router != NULL))
        x = backward_sums_finish(pass, &sums, terms, 2, c->dense ? 2 : 2 + (double)slots.each);
    free(sums.terms);
    free(dy);
    free(dlogits);
    free(router);
    free(slots.expert);
    return x;
}

near_set *backward_experts_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    switch (point) {
    case TRACE_M10:
        return pass->config->dense ? backward_read_passed(pass, TRACE_M11, TRACE_M12, layer)
                                   : mixed(pass, point, layer);
    case TRACE_M4:
        return mixed(pass, point, layer);
    case TRACE_M2:
        return routed(pass, layer);
    case TRACE_M8:
        return through_down(pass, layer);
    case TRACE_M6:
        return activated(pass, layer);
    case TRACE_M1:
        return normed_input(pass, layer);
    default:
        return NULL;
    }
}

// ---- the experts' weights --------------------------------------------------------------------

// What a slot adds to the rows that are asked for, of its expert's matrix or bias; counts it.
static void add_slot(const backward_pass *pass, size_t expert, size_t rows, size_t cols,
                     const near_set *dy_r, const near_set *x_c, size_t *added, gradient_terms *to) {
    size_t begin = expert * rows, first = begin, end = begin + rows;
    if (first < pass->first_row) first = pass->first_row;
    if (end > pass->end_row) end = pass->end_row;
    if (first >= end) return;
    for (size_t r = first; r < end; r++) added[r - pass->first_row]++;
    backward_add_weights(1, end - first, cols, dy_r + (first - begin), rows, x_c,
                         to + (first - pass->first_row) * cols);
}

near_set *backward_experts_weight(backward_pass *pass, sinkproof_slot slot, size_t layer) {
    sinkproof_layer weights = sinkproof_model_layer(pass->model, layer);
    bool up = slot == SINKPROOF_W_UP || slot == SINKPROOF_B_UP;
    bool bias = slot == SINKPROOF_B_UP || slot == SINKPROOF_B_DOWN;
    const sinkproof_matrix *w = up ? &weights.w_up : &weights.w_down;
    size_t cols = bias ? 1 : w->cols, rows = pass->end_row - pass->first_row;
    expert_slots slots = {0};
    backward_sums sums = {0};
    near_set *dy = up ? backward_read_gradient(pass, TRACE_M6, layer) : down_gradient(pass, layer);
    near_set *x =
        dy == NULL || bias ? NULL : backward_read_point(pass, up ? TRACE_M1 : TRACE_M8, layer);
    near_set *sets = NULL, one = {1, 0};
    size_t *added = backward_allocate(pass, rows, sizeof *added);
    if (dy != NULL && added != NULL && (bias || x != NULL) && find_slots(pass, layer, &slots) &&
        backward_sums_new(pass, rows * cols, &sums)) {
        for (size_t s = 0; s < slots.count; s++)
            add_slot(pass, (size_t)slots.expert[s], w->rows, cols, dy + s * w->rows,
                     bias ? &one : slot_row(x, s, up ? slots.each : 1, w->cols), added, sums.terms);
        sets = backward_sums_gathered(pass, &sums, cols, added, 0); // by its expert's number
    }
    free(sums.terms);
    free(added);
    free(dy);
    free(x);
    free(slots.expert);
    return sets;
}
