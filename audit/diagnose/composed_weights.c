// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights that are read otherwise: a matrix or a bias times a number that is fitted, the weights of
// another layer or expert, a part of the columns that is left out of the sum.
#include "audit/diagnose/composed_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *composed_slot_words(sinkproof_slot slot) {
    static const char *const words[SINKPROOF_SLOTS] = {
        [SINKPROOF_ATTN_NORM] = "the scales of the norm before attention",
        [SINKPROOF_W_Q] = "the weights of the queries",
        [SINKPROOF_B_Q] = "the biases of the queries",
        [SINKPROOF_W_K] = "the weights of the keys",
        [SINKPROOF_B_K] = "the biases of the keys",
        [SINKPROOF_W_V] = "the weights of the values",
        [SINKPROOF_B_V] = "the biases of the values",
        [SINKPROOF_W_O] = "the weights of the output projection",
        [SINKPROOF_B_O] = "the bias of the output projection",
        [SINKPROOF_MLP_NORM] = "the scales of the norm before the experts",
        [SINKPROOF_W_ROUTER] = "the weights of the router",
        [SINKPROOF_B_ROUTER] = "the bias of the router",
        [SINKPROOF_W_UP] = "the weights of the up-projection",
        [SINKPROOF_B_UP] = "the biases of the up-projection",
        [SINKPROOF_W_DOWN] = "the weights of the down-projection",
        [SINKPROOF_B_DOWN] = "the biases of the down-projection",
        [SINKPROOF_EMBEDDING] = "the embedding",
        [SINKPROOF_FINAL_NORM] = "the scales of the last norm",
        [SINKPROOF_UNEMBEDDING] = "the unembedding",
    };
    return words[slot];
}

// ---- the operations. numbers: a factor; the columns first, end, step; the format of the product.

enum { FACTOR, FIRST, END, STEP, KEPT };

static bool scale_slots(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_format kept = (sinkproof_format)m->numbers[KEPT];
    if (kept != SINKPROOF_REAL) { // before and after
        mistake_weight_edit *stored = add_weight_edit(s, k->slots);
        if (stored == NULL) return false;
        stored->reading.product = kept, stored->reading.then = 1;
    }
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->reading.factor = m->numbers[FACTOR], e->reading.then = 1;
    if (kept == SINKPROOF_REAL) return true;
    e->reading.product = SINKPROOF_F32; // as an engine multiplies; it decides ties
    e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->reading.product = kept, e->reading.then = 1;
    return true;
}

static bool scale_columns(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->reading.some_first = (size_t)m->numbers[FIRST],
    e->reading.some_end = (size_t)m->numbers[END];
    e->reading.some_step = (size_t)m->numbers[STEP], e->reading.some_times = m->numbers[FACTOR];
    return true;
}

// numbers: layers on.
static bool borrow_other_layer(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL || s->config.n_layers < 2) return false;
    e->borrowed = true, e->from = SINKPROOF_SLOTS, e->layer_by = (int)m->numbers[0];
    return true;
}

// numbers: experts on.
static bool borrow_other_expert(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL || s->config.n_experts < 2) return false;
    e->reading.expert_by = (size_t)m->numbers[0];
    return true;
}

// ---- the weights that the point reads

typedef struct read_weight {
    sinkproof_slot slot;
    sinkproof_trace_point point; // that it enters
} read_weight;

enum { MOST_WEIGHTS = 12 };

static size_t weights_read(const composing *c, read_weight of[MOST_WEIGHTS]) {
    const sinkproof_config *config = c->s->trials.config;
    size_t n = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        if (!composing_reaches(c, point)) continue;
        size_t count = sinkproof_trace_weights(config, point, slots);
        for (size_t i = 0; i < count && n < MOST_WEIGHTS; i++)
            if (composed_slot_words(slots[i]) != NULL) of[n++] = (read_weight){slots[i], point};
    }
    return n;
}

static composed_mistake *weight_new(composing *c, const read_weight *w, mistake_suppose *operate,
                                    const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = operate, m->region = *region;
    m->mistake.slots = 1u << w->slot, m->mistake.points = point_bit(w->point);
    return m;
}

// ---- times a number

static bool try_scaled_and_kept(composing *c, const read_weight *w, const sinkproof_region *region,
                                const chosen_number *by, sinkproof_format kept) {
    composed_mistake *m = weight_new(c, w, scale_slots, region);
    if (m == NULL) return false;
    m->numbers[FACTOR] = by->value, m->numbers[KEPT] = kept;
    if (kept == SINKPROOF_REAL)
        m->by = m->fitted = &m->numbers[FACTOR];
    else
        m->numbers[FACTOR] = sinkproof_round(SINKPROOF_F32, by->value);
    composed_name(m, "%s-times-%s", sinkproof_slot_name(w->slot), by->text);
    bool one = strstr(composed_slot_words(w->slot), "the bias of") != NULL ||
               strstr(composed_slot_words(w->slot), "embedding") != NULL;
    if (by->value == 0)
        composed_say(m, "%s %s left out", composed_slot_words(w->slot), one ? "is" : "are");
    else if (by->value == -1)
        composed_say(m, "%s %s the opposite sign", composed_slot_words(w->slot),
                     one ? "has" : "have");
    else
        composed_say(m, "%s %s multiplied by %s", composed_slot_words(w->slot), one ? "is" : "are",
                     by->text);
    if (kept != SINKPROOF_REAL) composed_say(m, " and rounded to bfloat16");
    composed_say_region(c, m);
    return composing_try(c, m);
}

// A product that is no power of two times the weight may be rounded as the weights are.
static bool try_scaled(composing *c, const read_weight *w, const sinkproof_region *region,
                       const chosen_number *by) {
    bool rounded = frexp(fabs(by->value), &(int){0}) != 0.5 && by->value != 0;
    bool fine = try_scaled_and_kept(c, w, region, by, SINKPROOF_REAL);
    if (!fine || !rounded || c->found != NULL || c->step < 0x1p-12) return fine;
    return try_scaled_and_kept(c, w, region, by, SINKPROOF_BF16);
}

// The weight without it, and its factor by least squares in each region.
static bool try_factors_of(composing *c, const read_weight *w) {
    const sinkproof_region whole = {0};
    composed_mistake *without = weight_new(c, w, scale_slots, &whole);
    bool fine = without != NULL;
    double *base = fine ? composing_see(c, &without->mistake, &fine) : NULL;
    for (size_t r = 0; fine && base != NULL && r < c->n_regions && c->found == NULL; r++) {
        fitted_range t;
        if (!fit_number(c, &c->regions[r], base, c->mid, &t) || !t.good) continue;
        without->numbers[FACTOR] = t.best;
        fine = fit_refine(c, &without->mistake, &c->regions[r], base, c->mid, &t);
        if (!fine) continue;
        chosen_number by[FIT_CHOICES];
        size_t n = fit_choose(c, &t, by);
        for (size_t i = 0; i < n && fine && c->found == NULL; i++)
            fine = by[i].value == 1 || try_scaled(c, w, &c->regions[r], &by[i]);
    }
    free(base);
    return fine;
}

bool compose_weight_factors(composing *c) {
    read_weight of[MOST_WEIGHTS];
    size_t n = weights_read(c, of);
    bool fine = true;
    for (size_t i = n; fine && i-- > 0 && c->found == NULL;) fine = try_factors_of(c, &of[i]);
    return fine;
}

// ---- of another layer or expert

static unsigned slots_together(const read_weight *of, size_t n, unsigned *points) {
    unsigned slots = 0;
    for (size_t i = 0; i < n; i++) slots |= 1u << of[i].slot, *points |= point_bit(of[i].point);
    return slots;
}

// The weights of the point together, or one of them.
static bool try_borrowed(composing *c, const read_weight *of, size_t n, mistake_suppose *operate,
                         const sinkproof_region *region, size_t by, const char *whose) {
    composed_mistake *m = weight_new(c, of, operate, region);
    if (m == NULL) return false;
    m->mistake.points = 0;
    m->mistake.slots = slots_together(of, n, &m->mistake.points);
    m->numbers[0] = (double)(long)by;
    composed_name(m, "%s", sinkproof_slot_name(of[0].slot));
    composed_say(m, "%s", composed_slot_words(of[0].slot));
    for (size_t i = 1; i < n; i++) {
        composed_name(m, "+%s", sinkproof_slot_name(of[i].slot));
        composed_say(m, "%s %s", i + 1 < n ? "," : " and", composed_slot_words(of[i].slot));
    }
    composed_name(m, "-of-%s", whose);
    composed_say(m, " are those of %s", whose);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_other(composing *c, const read_weight *of, size_t n, mistake_suppose *operate,
                      const sinkproof_region *region, size_t by, const char *whose) {
    bool fine = try_borrowed(c, of, n, operate, region, by, whose);
    for (size_t i = 0; n > 1 && fine && i < n && c->found == NULL; i++)
        fine = try_borrowed(c, &of[i], 1, operate, region, by, whose);
    return fine;
}

static bool try_other_layers(composing *c, const read_weight *of, size_t n) {
    long layers = (long)c->s->trials.config->n_layers;
    bool fine = true;
    char whose[48];
    for (long away = 1; fine && away < layers && c->found == NULL; away++)
        for (long sign = -1; fine && sign <= 1 && c->found == NULL; sign += 2) {
            long by = sign * away;
            if ((long)c->place + by < 0 || (long)c->place + by >= layers) continue;
            if (away == 1)
                snprintf(whose, sizeof whose, "%s", by > 0 ? "the next layer" : "the layer before");
            else
                snprintf(whose, sizeof whose, "the layer %ld %s", away, by > 0 ? "on" : "before");
            for (size_t r = 0; fine && r < c->n_regions && c->found == NULL; r++)
                fine = try_other(c, of, n, borrow_other_layer, &c->regions[r], (size_t)by, whose);
        }
    return fine;
}

static bool try_other_experts(composing *c, const read_weight *of, size_t n) {
    size_t experts = c->s->trials.config->n_experts;
    bool fine = true;
    char whose[48];
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        const sinkproof_indices *in = &c->regions[r].along[ALONG_EXPERTS];
        if (in->end == 0) continue;
        for (size_t by = 1; fine && by < experts && c->found == NULL; by++) {
            if (in->end == in->first + 1)
                snprintf(whose, sizeof whose, "expert %zu", (in->first + by) % experts);
            else
                snprintf(whose, sizeof whose, "the expert %zu further on", by);
            fine = try_other(c, of, n, borrow_other_expert, &c->regions[r], by, whose);
        }
    }
    return fine;
}

// Queries, keys and values that are split otherwise from one fused weight.
static bool split_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e != NULL) e->fused = m->numbers[0] == 0 ? FUSED_BY_GROUP : FUSED_BY_KIND;
    return e != NULL && s->config.n_heads % s->config.n_kv_heads == 0;
}

static bool try_splits(composing *c) {
    const unsigned points = 1u << TRACE_A2_Q | 1u << TRACE_A2_K | 1u << TRACE_A2_V;
    bool fine = true;
    if ((point_bit(c->point) & points) == 0) return true;
    for (int kind = 0; kind < 2 && fine && c->found == NULL; kind++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = split_otherwise, m->numbers[0] = kind, m->mistake.points = points;
        m->mistake.slots = 1u << SINKPROOF_W_Q | 1u << SINKPROOF_W_K | 1u << SINKPROOF_W_V |
                           1u << SINKPROOF_B_Q | 1u << SINKPROOF_B_K | 1u << SINKPROOF_B_V;
        composed_name(m, "qkv-split-by-%s", kind == 0 ? "group" : "kind");
        composed_say(m,
                     "the fused weights of queries, keys and values are split %s, where they are "
                     "stored %s",
                     kind == 0
                         ? "group by group (the queries' heads of a group, its key, its value)"
                         : "by kind (all queries, all keys, all values)",
                     kind == 0 ? "by kind" : "group by group");
        fine = composing_try(c, m);
    }
    return fine;
}

bool compose_borrowed(composing *c) {
    read_weight of[MOST_WEIGHTS];
    size_t n = weights_read(c, of);
    bool experts =
        n > 0 && !c->s->trials.config->dense && of[0].point >= TRACE_M5 && of[0].point <= TRACE_M10;
    if (n == 0) return true;
    if (!try_splits(c)) return false;
    if (c->found != NULL) return true;
    bool fine = !experts || try_other_experts(c, of, n);
    if (fine && c->found == NULL && c->place < c->s->trials.config->n_layers)
        fine = try_other_layers(c, of, n);
    return fine;
}

// ---- a part of the sum

static bool try_columns_times(composing *c, const read_weight *w, const double *columns,
                              const chosen_number *by, const char *which) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = weight_new(c, w, scale_columns, &c->regions[r]);
        if (m == NULL) return false;
        memcpy(m->numbers, columns, sizeof m->numbers);
        m->numbers[FACTOR] = by->value;
        composed_name(m, "%s-columns-%g-%g", sinkproof_slot_name(w->slot), columns[FIRST],
                      columns[END] - 1);
        if (columns[STEP] > 1) composed_name(m, "/%g", columns[STEP]);
        composed_name(m, "-times-%s", by->text);
        if (by->value == 0)
            composed_say(m, "%s of the sum are left out: %s", which, composed_slot_words(w->slot));
        else if (by->value == 2)
            composed_say(m, "%s of the sum are added twice: %s", which,
                         composed_slot_words(w->slot));
        else
            composed_say(m, "%s of the sum are multiplied by %s: %s", which, by->text,
                         composed_slot_words(w->slot));
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

// Whether the sample is near when those columns are multiplied by the number that fits it best;
// true where the sample cannot tell.
static bool columns_are_near(const operation *o, const read_weight *w, size_t first, size_t end,
                             size_t step) {
    const composing *c = o->c;
    const mistake_weight_edit gone = {.rewritten = true,
                                      .columns = {.first = first, .end = end, .step = step},
                                      .change = {.kind = SINKPROOF_CHANGE_CLAMP}};
    const operation_change without = {.edit = &gone}, none = {.edit = NULL};
    double base[SAMPLES], part[SAMPLES], pp = 0, pv = 0;
    size_t far = 0;
    if (!o->whole || o->n_weights == 0 || o->slots[0] != w->slot || o->n == 0) return true;
    for (size_t s = 0; s < o->n; s++) {
        base[s] = operation_value(o, &without, o->at[s]);
        part[s] = operation_value(o, &none, o->at[s]) - base[s];
        pp += part[s] * part[s], pv += part[s] * (c->v[o->at[s]] - base[s]);
    }
    double t = pp > 0 ? pv / pp : 0;
    for (size_t s = 0; s < o->n; s++) far += !value_is_near(c, o->at[s], base[s] + t * part[s]);
    return 4 * far <= o->n;
}

// Columns of a product: a head's, a rank's, every other one.
static bool try_columns(composing *c, const operation *o, const read_weight *w, size_t first,
                        size_t end, size_t step, const char *which) {
    const sinkproof_region whole = {0};
    fitted_range t;
    if (!columns_are_near(o, w, first, end, step)) return true;
    composed_mistake *without = weight_new(c, w, scale_columns, &whole);
    if (without == NULL) return false;
    bool fine = true;
    without->numbers[FIRST] = (double)first, without->numbers[END] = (double)end;
    without->numbers[STEP] = (double)step;
    double *base = composing_see(c, &without->mistake, &fine);
    bool fits = fine && base != NULL && fit_number(c, &c->regions[0], base, c->mid, &t) && t.good;
    without->numbers[FACTOR] = fits ? t.best : 0;
    if (fits) fine = fit_refine(c, &without->mistake, &c->regions[0], base, c->mid, &t);
    free(base);
    if (!fine || !fits) return fine;
    chosen_number by[FIT_CHOICES];
    size_t n = fit_choose(c, &t, by);
    for (size_t i = 0; i < n && fine && c->found == NULL; i++)
        fine = by[i].value == 1 || try_columns_times(c, w, without->numbers, &by[i], which);
    return fine;
}

static bool try_heads_of_sum(composing *c, const operation *o, const read_weight *w) {
    const sinkproof_config *config = c->s->trials.config;
    char which[64];
    bool fine = true;
    for (size_t h = 0; h < config->n_heads && fine && c->found == NULL; h++) {
        snprintf(which, sizeof which, "the terms of head %zu", h);
        fine = try_columns(c, o, w, h * config->head_dim, (h + 1) * config->head_dim, 1, which);
    }
    return fine;
}

static bool try_sums(composing *c, const operation *o, const read_weight *w) {
    enum { MOST_PARTS = 8 };
    size_t cols = sinkproof_model_slot(c->s->trials.suspect.model, 0, w->slot).cols;
    bool fine = true;
    char which[80];
    for (size_t parts = 2; parts <= MOST_PARTS; parts++)
        for (size_t p = 0; p < parts && cols % parts == 0 && fine && c->found == NULL; p++) {
            size_t first = p * (cols / parts), end = first + cols / parts;
            bool power = (parts & (parts - 1)) == 0;
            if (!power && (!o->whole || o->n == 0)) continue;
            snprintf(which, sizeof which, "columns %zu-%zu (part %zu of %zu)", first, end - 1,
                     p + 1, parts);
            fine = try_columns(c, o, w, first, end, 1, which);
        }
    for (size_t odd = 0; odd < 2 && fine && c->found == NULL; odd++) {
        snprintf(which, sizeof which, "%s columns", odd ? "the odd" : "the even");
        fine = try_columns(c, o, w, odd, cols, 2, which);
    }
    if (fine && c->found == NULL && w->slot == SINKPROOF_W_O) fine = try_heads_of_sum(c, o, w);
    return fine;
}

// The terms of a sample's products: prefix_sc[s][c] is the sum of the first c.
static bool prefixes(const operation *o, size_t cols, double *prefix_sc) {
    const composing *c = o->c;
    double *row_c = malloc((cols + 1) * sizeof *row_c);
    if (row_c == NULL) return fail_for_memory(c->s);
    for (size_t s = 0; s < o->n; s++) {
        sinkproof_place at =
            sinkproof_place_of(c->s->trials.config, c->point, c->n, c->chosen_nk, o->at[s]);
        bool experts = o->kind == SINKPROOF_MULTIPLY;
        size_t e = experts ? at.along[ALONG_EXPERTS] : 0, each = c->elements / c->n;
        size_t r = experts ? at.along[ALONG_COORDINATES] : o->at[s] % each;
        size_t slot = c->point == TRACE_M9 ? at.along[ALONG_SLOTS] : 0;
        const double *x = &o->x[0][at.along[ALONG_ROWS] * o->width[0] + slot * cols];
        double *sum_c = &prefix_sc[s * (cols + 1)];
        sinkproof_matrix one = sinkproof_matrix_at(&o->weights[0], e == SIZE_MAX ? 0 : e);
        sinkproof_matrix_row(&one, r, row_c);
        sum_c[0] = 0;
        for (size_t k = 0; k < cols; k++) sum_c[k + 1] = sum_c[k] + row_c[k] * x[k];
    }
    free(row_c);
    return true;
}

// Whether the sample is near without the terms of these columns, or with them twice (sign 1).
static bool span_is_near(const operation *o, const double *prefix_sc, const double *whole_s,
                         size_t cols, size_t first, size_t end, int sign) {
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        const double *sum_c = &prefix_sc[s * (cols + 1)];
        double part = sum_c[end] - sum_c[first];
        far += !value_is_near(o->c, o->at[s], whole_s[s] + sign * part);
    }
    return 8 * far <= o->n;
}

// Any columns from the first on, or up to the last, or some of equal tiles: left out, or twice.
static bool try_spans(composing *c, const operation *o, const read_weight *w) {
    const operation_change none = {.edit = NULL};
    size_t cols = o->weights[0].cols, tile = cols % 64 == 0   ? cols / 64
                                             : cols % 24 == 0 ? cols / 24
                                                              : 1;
    double whole_s[SAMPLES], *prefix_sc = calloc(o->n * (cols + 1) + 1, sizeof *prefix_sc);
    bool fine = prefix_sc != NULL ? prefixes(o, cols, prefix_sc) : fail_for_memory(c->s);
    char which[80];
    if (cols / tile > 256) tile = cols / 256 + 1;
    for (size_t s = 0; s < o->n; s++) whole_s[s] = operation_value(o, &none, o->at[s]);
    for (size_t first = 0; first < cols && fine && c->found == NULL; first++)
        for (size_t end = first + 1; end <= cols && fine && c->found == NULL; end++) {
            bool edge = (first == 0) != (end == cols), tiled = first % tile == 0 && end % tile == 0;
            if ((!edge && !tiled) || end - first == cols) continue;
            if (!span_is_near(o, prefix_sc, whole_s, cols, first, end, -1) &&
                !span_is_near(o, prefix_sc, whole_s, cols, first, end, 1))
                continue;
            snprintf(which, sizeof which, "columns %zu-%zu%s", first, end - 1,
                     end == cols  ? " (the last)"
                     : first == 0 ? " (the first)"
                                  : "");
            fine = try_columns(c, o, w, first, end, 1, which);
        }
    free(prefix_sc);
    return fine;
}

bool compose_sums(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    read_weight of[MOST_WEIGHTS];
    size_t n = weights_read(c, of);
    operation o;
    bool fine = n == 0 || operation_read(c, &o);
    for (size_t i = 0; i < n && fine && c->found == NULL; i++)
        if (!sinkproof_slot_is_vector(of[i].slot, config)) {
            bool product = o.whole && o.n > 0 && o.n_weights > 0 && o.slots[0] == of[i].slot &&
                           (o.kind == SINKPROOF_MULTIPLY || o.kind == SINKPROOF_LINEAR);
            fine = try_sums(c, &o, &of[i]);
            if (fine && product && c->found == NULL) fine = try_spans(c, &o, &of[i]);
        }
    if (n > 0) operation_free(&o);
    return fine;
}
