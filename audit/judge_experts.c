// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's walk through one layer's mixture of experts, M1 to M12.
#include "audit/judge_internal.h"

#include <math.h>
#include <stdlib.h>

// The rows of one expert: slot q[r] = token * n_chosen + slot, for r < count.
typedef struct expert_rows {
    size_t expert, count;
    size_t *q;
} expert_rows;

static double where_of(const sinkproof_walk *walk, size_t q) {
    return (double)(q / walk->config->n_chosen) / (double)walk->n;
}

// Where the rounding before the bias is optional, the bias may be a term of the sum instead.
static sinkproof_honest bias_set(const sinkproof_setting *s, sinkproof_rounding at, size_t terms,
                                 double b) {
    sinkproof_honest known = sinkproof_known(b);
    return at.optional ? sinkproof_honest_roundings(s, known, (double)terms) : known;
}

// One expert's linear map on its rows: x -> round(W x), settle, round(+ b), settle.
static sinkproof_honest *expert_linear(sinkproof_walk *walk, size_t l, const expert_rows *rows,
                                       const sinkproof_honest *x, const sinkproof_matrix *w_stack,
                                       const sinkproof_matrix *b_stack, bool up) {
    sinkproof_matrix w = sinkproof_matrix_at(w_stack, rows->expert);
    sinkproof_matrix b = sinkproof_matrix_at(b_stack, rows->expert);
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * walk->config->n_chosen * w.rows);
    sinkproof_honest *y = sinkproof_grab(rows->count * w.rows, sizeof *y);
    double *bias = sinkproof_decoded(&b);
    sinkproof_planes planes = sinkproof_planes_of(x, rows->count, w.cols, w.cols, s.mid_only);
    sinkproof_point before = up ? SINKPROOF_AT_M5 : SINKPROOF_AT_M9;
    sinkproof_point after = up ? SINKPROOF_AT_M6 : SINKPROOF_AT_M10;
    // Where nothing need be rounded before the bias, it may be one more term of the sum.
    sinkproof_rounding at = s.policy->at[before];
    bool fused = at.format == SINKPROOF_REAL;
    sinkproof_honest_linear(&s, &planes, &w, 0, w.rows, fused ? bias : NULL, y, w.rows);
    for (size_t r = 0; r < rows->count; r++) {
        sinkproof_honest *row = &y[r * w.rows];
        size_t offset = rows->q[r] * w.rows;
        double where = where_of(walk, rows->q[r]);
        for (size_t i = 0; i < w.rows; i++)
            row[i] = sinkproof_honest_at(&s, before, sinkproof_honest_inside(&s, row[i]));
        if (!fused)
            sinkproof_settle(walk, up ? SINKPROOF_TRACE_M5 : SINKPROOF_TRACE_M9, l, offset, w.rows,
                             row, 0, where);
        for (size_t i = 0; i < w.rows; i++) {
            if (!fused) row[i] = sinkproof_honest_add(row[i], bias_set(&s, at, w.cols, bias[i]));
            row[i] = sinkproof_honest_at(&s, after, sinkproof_honest_inside(&s, row[i]));
        }
        sinkproof_settle(walk, up ? SINKPROOF_TRACE_M6 : SINKPROOF_TRACE_M10, l, offset, w.rows,
                         row, 0, where);
    }
    sinkproof_planes_free(&planes);
    free(bias);
    return y;
}

// M5 to M10 for one expert; d_qh [n, n_chosen, hidden] receives its rows.
static void one_expert(sinkproof_walk *walk, size_t l, const sinkproof_layer *layer,
                       const expert_rows *rows, const sinkproof_honest *t_nd,
                       sinkproof_honest *d_qh) {
    const sinkproof_config *c = walk->config;
    sinkproof_honest *x = sinkproof_grab(rows->count * c->hidden, sizeof *x);
    for (size_t r = 0; r < rows->count; r++)
        for (size_t k = 0; k < c->hidden; k++)
            x[r * c->hidden + k] = t_nd[rows->q[r] / c->n_chosen * c->hidden + k];
    sinkproof_honest *up = expert_linear(walk, l, rows, x, &layer->w_up, &layer->b_up, true);
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->n_chosen * c->inter);
    sinkproof_honest *z = sinkproof_grab(rows->count * c->inter, sizeof *z);
    for (size_t r = 0; r < rows->count; r++) {
        for (size_t i = 0; i < c->inter; i++) {
            const sinkproof_honest *pair = &up[r * 2 * c->inter + 2 * i];
            z[r * c->inter + i] = sinkproof_honest_swiglu(&s, c, pair[0], pair[1]);
        }
        sinkproof_settle(walk, SINKPROOF_TRACE_M8, l, rows->q[r] * c->inter, c->inter,
                         &z[r * c->inter], 0, where_of(walk, rows->q[r]));
    }
    sinkproof_honest *down = expert_linear(walk, l, rows, z, &layer->w_down, &layer->b_down, false);
    for (size_t r = 0; r < rows->count; r++)
        for (size_t k = 0; k < c->hidden; k++)
            d_qh[rows->q[r] * c->hidden + k] = down[r * c->hidden + k];
    free(x), free(up), free(z), free(down);
}

// ---- routing

// Ranks that expert e may have among the logits: experts certainly above, certainly below.
static bool may_have_rank(const sinkproof_honest *g, size_t experts, size_t e, size_t rank) {
    size_t above = 0, below = 0;
    for (size_t o = 0; o < experts; o++) {
        above += g[o].lo > g[e].hi;
        below += g[o].hi < g[e].lo;
    }
    return above <= rank && rank + below < experts;
}

// How badly expert e explains the traced up-projection of one slot; 0 when there is none.
static double misfit_of(sinkproof_walk *walk, size_t l, size_t q, size_t e,
                        const sinkproof_honest *t_d) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(walk->trace, SINKPROOF_TRACE_M6, l);
    if (tensor == NULL) return 0;
    sinkproof_layer layer = sinkproof_model_layer(walk->model, l);
    sinkproof_matrix w = sinkproof_matrix_at(&layer.w_up, e),
                     b = sinkproof_matrix_at(&layer.b_up, e);
    sinkproof_setting s = sinkproof_walk_setting(walk, w.rows);
    s.mid_only = true;
    double *bias = sinkproof_decoded(&b), sum = 0;
    sinkproof_honest *y = sinkproof_grab(w.rows, sizeof *y);
    sinkproof_planes planes = sinkproof_planes_of(t_d, 1, w.cols, w.cols, true);
    sinkproof_honest_linear(&s, &planes, &w, 0, w.rows, bias, y, w.rows);
    for (size_t i = 0; i < w.rows; i++)
        sum += fabs(sinkproof_tensor_value(tensor, q * w.rows + i) - y[i].mid);
    sinkproof_planes_free(&planes);
    free(bias), free(y);
    return sum;
}

// No selection in the trace: each slot takes the expert of that rank; where the logits do not
// say which one it is (a tie, or sets that overlap), the one that explains what follows best.
static void infer_selection(sinkproof_walk *walk, size_t l, size_t token, const sinkproof_honest *g,
                            const sinkproof_honest *t_d, int32_t *chosen) {
    const sinkproof_config *c = walk->config;
    bool ambiguous = false,
         traced = sinkproof_trace_find(walk->trace, SINKPROOF_TRACE_M6, l) != NULL;
    for (size_t slot = 0; slot < c->n_chosen; slot++) {
        size_t best = c->n_experts, candidates = 0;
        double best_misfit = INFINITY;
        for (size_t e = 0; e < c->n_experts; e++) {
            bool taken = false;
            for (size_t o = 0; o < slot; o++) taken = taken || chosen[o] == (int32_t)e;
            if (!taken && may_have_rank(g, c->n_experts, e, slot)) candidates++, best = e;
        }
        for (size_t e = 0; candidates > 1 && e < c->n_experts; e++) {
            bool taken = false;
            for (size_t o = 0; o < slot; o++) taken = taken || chosen[o] == (int32_t)e;
            if (taken || !may_have_rank(g, c->n_experts, e, slot)) continue;
            double misfit =
                traced ? misfit_of(walk, l, token * c->n_chosen + slot, e, t_d) : -g[e].mid;
            if (misfit < best_misfit) best_misfit = misfit, best = e;
        }
        ambiguous = ambiguous || (candidates > 1 && !traced);
        chosen[slot] = (int32_t)(best < c->n_experts ? best : 0);
    }
    walk->judgement->ambiguous += ambiguous;
}

// The engine's selection is honest when no rejected expert certainly beats a chosen one.
static void check_selection(sinkproof_walk *walk, size_t l, size_t token, const sinkproof_honest *g,
                            const int32_t *chosen) {
    const sinkproof_config *c = walk->config;
    for (size_t slot = 0; slot < c->n_chosen; slot++) {
        const sinkproof_honest *mine = &g[chosen[slot]];
        double best_other = -INFINITY;
        for (size_t e = 0; e < c->n_experts; e++) {
            bool taken = false;
            for (size_t o = 0; o < c->n_chosen; o++) taken = taken || chosen[o] == (int32_t)e;
            if (!taken) best_other = fmax(best_other, g[e].lo);
        }
        // As a set: the chosen expert itself, or a better one where the engine passed it over.
        sinkproof_honest set = sinkproof_known(chosen[slot]);
        if (!(mine->hi >= best_other)) set = sinkproof_known(-1);
        sinkproof_settle(walk, SINKPROOF_TRACE_M3, l, token * c->n_chosen + slot, 1, &set, 0, 0);
    }
}

static void note_margin(sinkproof_walk *walk, size_t l, size_t token, const sinkproof_honest *g,
                        const int32_t *chosen) {
    const sinkproof_config *c = walk->config;
    double worst_in = INFINITY, best_out = -INFINITY;
    for (size_t e = 0; e < c->n_experts; e++) {
        bool in = false;
        for (size_t o = 0; o < c->n_chosen; o++) in = in || chosen[o] == (int32_t)e;
        if (in)
            worst_in = fmin(worst_in, g[e].mid);
        else
            best_out = fmax(best_out, g[e].mid);
    }
    sinkproof_judgement *j = walk->judgement;
    if (worst_in - best_out < j->thinnest_margin) {
        j->thinnest_margin = worst_in - best_out;
        j->margin_layer = l, j->margin_token = token;
    }
}

void sinkproof_walk_routing(sinkproof_walk *walk, size_t l, const sinkproof_honest *logits_ne,
                            const sinkproof_honest *t_nd) {
    const sinkproof_config *c = walk->config;
    const sinkproof_tensor *m3 = sinkproof_trace_find(walk->trace, SINKPROOF_TRACE_M3, l);
    for (size_t i = 0; i < walk->n; i++) {
        int32_t *chosen = &walk->chosen[(l * walk->n + i) * c->n_chosen];
        const sinkproof_honest *g = &logits_ne[i * c->n_experts];
        if (m3 != NULL) {
            for (size_t slot = 0; slot < c->n_chosen; slot++)
                chosen[slot] = (int32_t)sinkproof_tensor_value(m3, i * c->n_chosen + slot);
            check_selection(walk, l, i, g, chosen);
        } else {
            infer_selection(walk, l, i, g, &t_nd[i * c->hidden], chosen);
        }
        note_margin(walk, l, i, g, chosen);
    }
}

// ---- the layer

static void mix_row(sinkproof_walk *walk, const sinkproof_setting *s, const int32_t *chosen,
                    const sinkproof_honest *w_k, const sinkproof_honest *d_kh,
                    sinkproof_honest *out_h) {
    const sinkproof_config *c = walk->config;
    size_t order[SINKPROOF_MAX_CHOSEN];
    for (size_t a = 0; a < c->n_chosen; a++) { // ascending expert: insertion sort of a handful
        size_t b = a;
        for (; b > 0 && chosen[order[b - 1]] > chosen[a]; b--) order[b] = order[b - 1];
        order[b] = a;
    }
    for (size_t k = 0; k < c->hidden; k++) {
        sinkproof_honest w[SINKPROOF_MAX_CHOSEN], d[SINKPROOF_MAX_CHOSEN];
        for (size_t a = 0; a < c->n_chosen; a++)
            w[a] = w_k[order[a]], d[a] = d_kh[order[a] * c->hidden + k];
        out_h[k] = sinkproof_honest_mixture(s, c->n_chosen, w, d);
    }
}

// M4: the softmax over the chosen logits alone, one row per token.
static sinkproof_honest *expert_weights(sinkproof_walk *walk, size_t l,
                                        const sinkproof_honest *g_ne) {
    const sinkproof_config *c = walk->config;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->n_chosen);
    sinkproof_honest *w = sinkproof_grab(walk->n * c->n_chosen + 1, sizeof *w),
                     none = sinkproof_known(-INFINITY);
    sinkproof_honest z[SINKPROOF_MAX_CHOSEN], a[SINKPROOF_MAX_CHOSEN + 1];
    for (size_t i = 0; i < walk->n; i++) {
        const int32_t *chosen = &walk->chosen[(l * walk->n + i) * c->n_chosen];
        double common;
        for (size_t k = 0; k < c->n_chosen; k++) z[k] = g_ne[i * c->n_experts + (size_t)chosen[k]];
        sinkproof_honest_softmax(&s, SINKPROOF_AT_M4, c->n_chosen, z, none, a, &common);
        for (size_t k = 0; k < c->n_chosen; k++) w[i * c->n_chosen + k] = a[k];
        sinkproof_settle(walk, SINKPROOF_TRACE_M4, l, i * c->n_chosen, c->n_chosen,
                         &w[i * c->n_chosen], common, (double)i / (double)walk->n);
    }
    return w;
}

// M11 and M12, row by row.
static void mixture(sinkproof_walk *walk, size_t l, const sinkproof_honest *w_q,
                    const sinkproof_honest *d_qh, sinkproof_honest *x_nd) {
    const sinkproof_config *c = walk->config;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->hidden);
    sinkproof_honest *t = sinkproof_grab(c->hidden, sizeof *t);
    for (size_t i = 0; i < walk->n; i++) {
        double where = (double)i / (double)walk->n;
        mix_row(walk, &s, &walk->chosen[(l * walk->n + i) * c->n_chosen], &w_q[i * c->n_chosen],
                &d_qh[i * c->n_chosen * c->hidden], t);
        sinkproof_settle(walk, SINKPROOF_TRACE_M11, l, i * c->hidden, c->hidden, t, 0, where);
        sinkproof_honest *x = &x_nd[i * c->hidden];
        for (size_t k = 0; k < c->hidden; k++)
            x[k] =
                sinkproof_honest_at(&s, SINKPROOF_AT_M12,
                                    sinkproof_honest_inside(&s, sinkproof_honest_add(x[k], t[k])));
        sinkproof_settle(walk, SINKPROOF_TRACE_M12, l, i * c->hidden, c->hidden, x, 0, where);
    }
    free(t);
}

// M1 and M2.
static sinkproof_honest *router(sinkproof_walk *walk, size_t l, const sinkproof_layer *layer,
                                const sinkproof_honest *x_nd, sinkproof_honest *t_nd) {
    const sinkproof_config *c = walk->config;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * c->hidden);
    double *scale = sinkproof_decoded(&layer->mlp_norm),
           *bias = sinkproof_decoded(&layer->b_router), common;
    for (size_t i = 0; i < walk->n; i++) {
        sinkproof_honest_rmsnorm(&s, SINKPROOF_AT_M1, c->hidden, &x_nd[i * c->hidden], scale,
                                 c->rms_eps, &t_nd[i * c->hidden], &common);
        sinkproof_settle(walk, SINKPROOF_TRACE_M1, l, i * c->hidden, c->hidden,
                         &t_nd[i * c->hidden], common, (double)i / (double)walk->n);
    }
    sinkproof_honest *g = sinkproof_grab(walk->n * c->n_experts, sizeof *g);
    sinkproof_planes planes = sinkproof_planes_of(t_nd, walk->n, c->hidden, c->hidden, s.mid_only);
    s = sinkproof_walk_setting(walk, walk->n * c->n_experts);
    sinkproof_honest_linear(&s, &planes, &layer->w_router, 0, c->n_experts, bias, g, c->n_experts);
    for (size_t i = 0; i < walk->n; i++) {
        sinkproof_honest *row = &g[i * c->n_experts];
        for (size_t e = 0; e < c->n_experts; e++)
            row[e] = sinkproof_honest_at(&s, SINKPROOF_AT_M2, sinkproof_honest_inside(&s, row[e]));
        sinkproof_settle(walk, SINKPROOF_TRACE_M2, l, i * c->n_experts, c->n_experts, row, 0,
                         (double)i / (double)walk->n);
    }
    sinkproof_planes_free(&planes);
    free(scale), free(bias);
    return g;
}

void sinkproof_walk_experts(sinkproof_walk *walk, size_t l, sinkproof_honest *x_nd) {
    const sinkproof_config *c = walk->config;
    size_t slots = walk->n * c->n_chosen;
    sinkproof_layer layer = sinkproof_model_layer(walk->model, l);
    sinkproof_honest *t = sinkproof_grab(walk->n * c->hidden, sizeof *t);
    sinkproof_honest *g = router(walk, l, &layer, x_nd, t);
    if (!walk->end_to_end) sinkproof_walk_routing(walk, l, g, t); // else the same is replayed
    sinkproof_honest *w = expert_weights(walk, l, g);
    sinkproof_honest *d = sinkproof_grab(slots * c->hidden, sizeof *d);
    expert_rows rows = {.q = sinkproof_grab(slots, sizeof *rows.q)};
    for (rows.expert = 0; rows.expert < c->n_experts; rows.expert++) {
        rows.count = 0;
        for (size_t q = 0; q < slots; q++)
            if (walk->chosen[l * slots + q] == (int32_t)rows.expert) rows.q[rows.count++] = q;
        if (rows.count > 0) one_expert(walk, l, &layer, &rows, t, d);
    }
    mixture(walk, l, w, d, x_nd);
    free(t), free(g), free(w), free(d), free(rows.q);
}
