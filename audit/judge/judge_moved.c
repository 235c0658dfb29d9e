// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a point whose elements stand elsewhere, or are scaled. It is compared once all its sets
// are known: until then they are kept.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_ROUNDINGS = 8 }; // of numbers that are made

bool judge_moved_begin(judge_pass *pass, sinkproof_trace_point first, sinkproof_trace_point last,
                       size_t place) {
    const sinkproof_moving *m = pass->options->moving;
    if (m == NULL || m->point < first || m->point > last || !judge_moves(pass, m->point, place))
        return true;
    pass->unmoved =
        calloc(sinkproof_trace_elements(pass->config, m->point, pass->n), sizeof *pass->unmoved);
    return pass->unmoved != NULL;
}

// The numbers of a row: of a head or a slot, or of a token.
static size_t row_width(const sinkproof_moving *m, size_t rank, const size_t *shape) {
    bool wide = m->change.wide && rank == 3 && !sinkproof_trace_point_is_by_head(m->point);
    return wide ? shape[1] * shape[2] : shape[rank - 1];
}

// ---- numbers

static double plus_of(const sinkproof_moving *m, const sinkproof_tensor *plus, size_t at) {
    return plus != NULL ? m->plus_times * sinkproof_tensor_value(plus, at) : 0;
}

// The share of the slot that holds the element.
static double share_at(const sinkproof_config *config, const sinkproof_moving *m,
                       const sinkproof_tensor *shares, size_t n, size_t at) {
    if (!m->by_shares || shares == NULL) return 1;
    size_t slots = n * config->n_chosen;
    return sinkproof_tensor_value(shares,
                                  at / (sinkproof_trace_elements(config, m->point, n) / slots));
}

// Whether the element is in the region, and picked.
static bool is_moved(const sinkproof_moving *m, const sinkproof_config *config, size_t n,
                     const int32_t *chosen_nk, size_t at) {
    if (m->pick == SINKPROOF_PICK_ALL && sinkproof_region_is_whole(&m->region)) return true;
    sinkproof_place place = sinkproof_place_of(config, m->point, n, chosen_nk, at);
    return sinkproof_region_holds(&m->region, &place) &&
           moving_picks(m, config, n, chosen_nk, &place);
}

bool sinkproof_moved_numbers(const sinkproof_moving *m, const sinkproof_tensor_numbers *of,
                             size_t first, size_t end, double *y) {
    size_t shape[SINKPROOF_MAX_RANK],
        rank = sinkproof_trace_shape(of->config, m->point, of->n, shape);
    size_t width = row_width(m, rank, shape);
    double *row = malloc(width * sizeof *row);
    for (; row != NULL && first < end; first += width) {
        for (size_t i = 0; i < width; i++) {
            size_t from = moved_from(m, of->config, of->n, of->chosen_nk, first + i);
            row[i] = (from == SIZE_MAX ? 0 : m->factor * of->x[from]) *
                         share_at(of->config, m, of->shares, of->n, first + i) +
                     m->addend + plus_of(m, of->plus, first + i);
        }
        sinkproof_change_row(&m->change, of->largest, width, row, row);
        for (size_t i = 0; i < width; i++) {
            bool here = is_moved(m, of->config, of->n, of->chosen_nk, first + i);
            y[first + i] = here ? row[i] : of->x[first + i];
        }
        sinkproof_change_row(&m->then, of->largest, width, &y[first], &y[first]);
    }
    free(row);
    return row != NULL;
}

// ---- sets

// What the trace adds: NULL: nothing, or it lacks it.
static const sinkproof_tensor *plus_tensor(const judge_pass *pass, size_t layer) {
    const sinkproof_moving *m = pass->options->moving;
    size_t last = pass->config->n_layers - 1, of = layer > last ? last : layer;
    if (m->plus_times == 0 || (m->plus_layer_by < 0 && of == 0)) return NULL;
    const sinkproof_tensor *plus =
        sinkproof_trace_find(pass->trace, m->plus, of + (size_t)(m->plus_layer_by + 1) - 1);
    size_t all = sinkproof_trace_elements(pass->config, m->point, pass->n);
    return plus != NULL && sinkproof_tensor_elements(plus) == all ? plus : NULL;
}

static bool keeps_values(const sinkproof_moving *m) {
    return m->factor == 1 && m->addend == 0 && m->plus_times == 0 && !m->by_shares &&
           m->make == NULL && m->change.kind == SINKPROOF_UNCHANGED &&
           m->then.kind == SINKPROOF_UNCHANGED;
}

static bool stays_in_format(const sinkproof_moving *m) {
    bool clamps =
        m->change.kind == SINKPROOF_UNCHANGED || m->change.kind == SINKPROOF_CHANGE_CLAMP ||
        m->change.kind == SINKPROOF_CHANGE_SIZE ||
        (m->change.kind == SINKPROOF_CHANGE_ROUND && m->change.scale == SINKPROOF_UNSCALED);
    return clamps && m->addend == 0 && m->plus_times == 0 && !m->by_shares &&
           frexp(fabs(m->factor), &(int){0}) == 0.5;
}

// What is made of an element: near a number, with what the maker knows of its distance, and some
// roundings.
static sinkproof_honest made_set(const judge_pass *pass, const sinkproof_setting *s, size_t at) {
    const sinkproof_moving *m = pass->options->moving;
    size_t all = sinkproof_trace_elements(pass->config, m->point, pass->n);
    if (isnan(pass->made[at])) return sinkproof_unknown_set(pass->unmoved[at].mid);
    sinkproof_honest x =
        sinkproof_honest_declared(sinkproof_exact_set(pass->made[at]), 0, pass->made[all + at]);
    x = sinkproof_honest_roundings(s, x, MADE_ROUNDINGS);
    return set_without_lean(m->adds ? sinkproof_honest_add(pass->unmoved[at], x) : x);
}

// Makes them, if something is made. Returns false if memory runs out. What cannot be made is
// unknown.
static bool make_numbers(judge_pass *pass, size_t place) {
    const sinkproof_moving *m = pass->options->moving;
    size_t all = sinkproof_trace_elements(pass->config, m->point, pass->n);
    double *x = calloc(2 * all + 1, sizeof *x), *radius = x + all;
    pass->made = calloc(2 * all + 1, sizeof *pass->made);
    bool fine = x != NULL && pass->made != NULL;
    for (size_t at = 0; fine && at < all; at++) {
        x[at] = pass->unmoved[at].mid, radius[at] = sinkproof_radius(&pass->unmoved[at]);
        if (!m->adds) pass->made[at] = x[at];
    }
    const sinkproof_making of = {.config = pass->config,
                                 .model = pass->model,
                                 .trace = pass->trace,
                                 .point = m->point,
                                 .layer = place,
                                 .n = pass->n,
                                 .all = all,
                                 .chosen_nk = judge_layer_choices(pass, place),
                                 .x = x,
                                 .radius = radius,
                                 .numbers = m->numbers,
                                 .table = m->table};
    if (fine && !m->make(&of, pass->made, pass->made + all))
        for (size_t at = 0; at < all; at++) pass->made[at] = NAN;
    free(x);
    return fine;
}

// The set of the element that stands at `at`, before its change. A factor may multiply before the
// policy's rounding or after it: the set that was rounded is wider by that rounding.
static sinkproof_honest moved_set(const judge_pass *pass, const sinkproof_setting *s,
                                  const sinkproof_tensor *plus, size_t layer, size_t at) {
    const sinkproof_moving *m = pass->options->moving;
    sinkproof_point rounding;
    if (m->make != NULL) return made_set(pass, s, at);
    size_t from = moved_from(m, pass->config, pass->n, judge_layer_choices(pass, layer), at);
    sinkproof_honest x = from == SIZE_MAX ? sinkproof_exact_set(0) : pass->unmoved[from];
    if (m->plus_times != 0 && plus == NULL) return x; // the trace lacks what is added
    if (keeps_values(m) || !sinkproof_trace_rounding(m->point, &rounding)) return x;
    sinkproof_format format = s->policy->at[rounding].format;
    if (from != SIZE_MAX && !stays_in_format(m)) {
        double u = format == SINKPROOF_REAL ? 0 : sinkproof_unit_roundoff(format);
        x = sinkproof_honest_roundings(s, sinkproof_honest_declared(x, u, 0), 2);
    }
    const sinkproof_tensor *shares =
        m->by_shares ? sinkproof_trace_find(pass->trace, TRACE_M4, layer) : NULL;
    x = sinkproof_honest_mul(x, sinkproof_exact_set(m->factor));
    x = sinkproof_honest_mul(x,
                             sinkproof_exact_set(share_at(pass->config, m, shares, pass->n, at)));
    x = sinkproof_honest_add(x, sinkproof_exact_set(m->addend));
    if (plus == NULL) return x;
    sinkproof_honest more = sinkproof_exact_set(plus_of(m, plus, at)); // a product, and a sum
    x = sinkproof_honest_add(x, sinkproof_honest_roundings(s, more, 1));
    return sinkproof_honest_roundings(s, x, 1);
}

void change_sets(const sinkproof_setting *s, const sinkproof_change *c, double amax, size_t n,
                 sinkproof_honest *x, double *room) {
    double *mid = room, *at = room + n, largest = 0, radius = 0;
    bool scaled = c->kind == SINKPROOF_CHANGE_ROUND && c->scale != SINKPROOF_UNSCALED;
    bool rows = sinkproof_change_is_of_rows(c),
         folds = c->kind == SINKPROOF_CHANGE_SIZE || c->kind == SINKPROOF_CHANGE_SQUARE;
    bool exact = c->kind == SINKPROOF_CHANGE_CLAMP || c->kind == SINKPROOF_CHANGE_SIZE ||
                 (c->kind == SINKPROOF_CHANGE_ROUND && !scaled);
    for (size_t i = 0; i < n; i++) {
        mid[i] = x[i].mid, largest = fmax(largest, fabs(x[i].mid));
        radius = fmax(radius, sinkproof_radius(&x[i]));
    }
    sinkproof_honest *y = (sinkproof_honest *)(void *)(room + 2 * n);
    for (size_t end = 0; end < 3; end++) {
        for (size_t i = 0; i < n; i++) at[i] = end == 0 ? x[i].mid : end == 1 ? x[i].lo : x[i].hi;
        // near a tie either code may be the nearest
        double near = c->kind >= SINKPROOF_CHANGE_CODED && end > 0 ? 4 * s->u * largest : 0;
        for (size_t i = 0; i < n; i++) at[i] += end == 1 ? -near : near;
        sinkproof_change_row(c, amax, n, mid, at);
        for (size_t i = 0; i < n; i++) {
            sinkproof_honest one = sinkproof_exact_set(at[i]);
            y[i] = end == 0 ? one : sinkproof_honest_hull(y[i], one);
        }
    }
    double share = largest > 0 ? radius / largest : 0;
    for (size_t i = 0; i < n; i++) {
        if (folds && x[i].lo < 0 && x[i].hi > 0)
            y[i] = sinkproof_honest_hull(y[i], sinkproof_exact_set(0));
        if (rows || scaled) y[i] = sinkproof_honest_declared(y[i], 2 * share, 0);
        if (c->kind == SINKPROOF_CHANGE_LOG_SOFTMAX || c->kind == SINKPROOF_CHANGE_CENTRED)
            y[i] = sinkproof_honest_declared(y[i], 0, radius + 16 * s->u * (largest + 1));
        x[i] = exact ? y[i] : sinkproof_honest_roundings(s, y[i], rows ? (double)n + 8 : 8);
    }
}

static bool moves_in_pass(const judge_pass *pass, size_t layer, size_t at) {
    return is_moved(pass->options->moving, pass->config, pass->n, judge_layer_choices(pass, layer),
                    at);
}

static bool row_holds_any(const judge_pass *pass, size_t layer, size_t first, size_t width) {
    bool any = false;
    for (size_t i = first; i < first + width && !any; i++) any = moves_in_pass(pass, layer, i);
    return any;
}

// The sets of a row's elements in the region.
static bool move_row(judge_part *part, const sinkproof_setting *s, double amax, size_t first,
                     size_t width, sinkproof_honest *x) {
    const judge_pass *pass = part->pass;
    const sinkproof_moving *m = pass->options->moving;
    sinkproof_point rounding;
    if (m->then.kind == SINKPROOF_UNCHANGED && !row_holds_any(pass, part->layer, first, width))
        return true;
    sinkproof_honest *moved = part_allocate(part, width, sizeof *moved);
    double *room =
        part_allocate(part, 2 * width + width * (sizeof *x / sizeof *room), sizeof *room);
    const sinkproof_tensor *plus = plus_tensor(pass, part->layer);
    bool fine = moved != NULL && room != NULL, kept = keeps_values(m);
    for (size_t i = 0; fine && i < width; i++)
        moved[i] = moved_set(pass, s, plus, part->layer, first + i);
    if (fine && m->change.kind != SINKPROOF_UNCHANGED)
        change_sets(s, &m->change, amax, width, moved, room);
    bool rounds = fine && !kept && sinkproof_trace_rounding(m->point, &rounding);
    for (size_t i = 0; fine && i < width; i++)
        if (!moves_in_pass(pass, part->layer, first + i)) moved[i] = x[i];
    if (fine && m->then.kind != SINKPROOF_UNCHANGED)
        change_sets(s, &m->then, amax, width, moved, room);
    for (size_t i = 0; fine && i < width; i++) {
        bool here =
            m->then.kind != SINKPROOF_UNCHANGED || moves_in_pass(pass, part->layer, first + i);
        if (here && rounds)
            moved[i] = sinkproof_honest_at(s, rounding, sinkproof_honest_inside(s, moved[i]));
        x[i] = moved[i];
    }
    free(moved);
    free(room);
    return fine;
}

static void compare_moved_row(judge_part *part, size_t row, void *of) {
    const judge_pass *pass = part->pass;
    const double *amax = of;
    sinkproof_trace_point point = pass->options->moving->point;
    size_t shape[SINKPROOF_MAX_RANK];
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    size_t all = sinkproof_trace_elements(pass->config, point, pass->n);
    size_t width = row_width(pass->options->moving, rank, shape), rows = all / width;
    size_t each = rows / shape[0];
    sinkproof_setting s = pass_setting(pass, all);
    sinkproof_honest *x = part_allocate(part, width, sizeof *x);
    bool fine = x != NULL;
    if (fine) memcpy(x, &pass->unmoved[row * width], width * sizeof *x);
    fine = fine && move_row(part, &s, *amax, row * width, width, x);
    bool by_head = sinkproof_trace_point_is_by_head(point);
    const trace_piece piece = {.point = point,
                               .offset = row * width,
                               .count = width,
                               .token = by_head ? row % shape[1] : row / each,
                               .moved = true};
    if (fine) piece_compare(part, &piece, x);
    free(x);
}

bool judge_moved_end(judge_pass *pass, size_t place) {
    if (pass->unmoved == NULL) return true;
    sinkproof_trace_point point = pass->options->moving->point;
    size_t shape[SINKPROOF_MAX_RANK];
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    size_t all = sinkproof_trace_elements(pass->config, point, pass->n);
    double amax = 0;
    for (size_t at = 0; at < all; at++) amax = fmax(amax, fabs(pass->unmoved[at].mid));
    size_t rows = all / row_width(pass->options->moving, rank, shape);
    bool fine = pass->options->moving->make == NULL || make_numbers(pass, place);
    fine = fine && judge_in_parts(pass, place, rows, compare_moved_row, &amax);
    free(pass->made);
    free(pass->unmoved);
    pass->made = NULL;
    pass->unmoved = NULL;
    return fine;
}
