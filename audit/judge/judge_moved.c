// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a point whose elements stand elsewhere, or are scaled. It is compared once all its sets
// are known: until then they are kept.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

bool judge_moved_begin(judge_pass *pass, sinkproof_trace_point first, sinkproof_trace_point last,
                       size_t place) {
    const sinkproof_moving *m = pass->options->moving;
    if (m == NULL || m->point < first || m->point > last || !judge_moves(pass, m->point, place))
        return true;
    pass->unmoved =
        calloc(sinkproof_trace_elements(pass->config, m->point, pass->n), sizeof *pass->unmoved);
    return pass->unmoved != NULL;
}

// The set of the element that stands at `at`. A factor may multiply before the policy's rounding or
// after it: the set that was rounded is wider by that rounding.
static sinkproof_honest moved_set(const judge_pass *pass, const sinkproof_setting *s, size_t layer,
                                  size_t at) {
    const sinkproof_moving *m = pass->options->moving;
    sinkproof_place place =
        sinkproof_place_of(pass->config, m->point, pass->n, judge_layer_choices(pass, layer), at);
    sinkproof_point rounding;
    if (!sinkproof_region_holds(&m->region, &place)) return pass->unmoved[at];
    size_t from = sinkproof_moved_from(m, pass->config, pass->n, at);
    if (from == SIZE_MAX) return sinkproof_exact_set(0);
    sinkproof_honest x = pass->unmoved[from];
    bool kept = m->factor == 1 && m->addend == 0;
    if (kept || !sinkproof_trace_rounding(m->point, &rounding)) return x;
    sinkproof_format format = s->policy->at[rounding].format;
    if (m->addend != 0 || frexp(fabs(m->factor), &(int){0}) != 0.5) {
        double u = format == SINKPROOF_REAL ? 0 : sinkproof_unit_roundoff(format);
        x = sinkproof_honest_roundings(s, sinkproof_honest_declared(x, u, 0), 2);
    }
    x = sinkproof_honest_mul(x, sinkproof_exact_set(m->factor));
    x = sinkproof_honest_add(x, sinkproof_exact_set(m->addend));
    return sinkproof_honest_at(s, rounding, sinkproof_honest_inside(s, x));
}

static void compare_moved_row(judge_part *part, size_t row, void *of) {
    const judge_pass *pass = part->pass;
    sinkproof_trace_point point = pass->options->moving->point;
    size_t shape[SINKPROOF_MAX_RANK];
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    size_t all = sinkproof_trace_elements(pass->config, point, pass->n), width = shape[rank - 1];
    size_t rows = all / width, each = rows / shape[0];
    sinkproof_setting s = pass_setting(pass, all);
    sinkproof_honest *x = part_allocate(part, width, sizeof *x);
    (void)of;
    for (size_t i = 0; x != NULL && i < width; i++)
        x[i] = moved_set(pass, &s, part->layer, row * width + i);
    bool by_head = sinkproof_trace_point_is_by_head(point);
    const trace_piece piece = {.point = point,
                               .offset = row * width,
                               .count = width,
                               .token = by_head ? row % shape[1] : row / each,
                               .moved = true};
    if (x != NULL) piece_compare(part, &piece, x);
    free(x);
}

bool judge_moved_end(judge_pass *pass, size_t place) {
    if (pass->unmoved == NULL) return true;
    sinkproof_trace_point point = pass->options->moving->point;
    size_t shape[SINKPROOF_MAX_RANK];
    size_t rank = sinkproof_trace_shape(pass->config, point, pass->n, shape);
    size_t rows = sinkproof_trace_elements(pass->config, point, pass->n) / shape[rank - 1];
    bool fine = judge_in_parts(pass, place, rows, compare_moved_row, NULL);
    free(pass->unmoved);
    pass->unmoved = NULL;
    return fine;
}
