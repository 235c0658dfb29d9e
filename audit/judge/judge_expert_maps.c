// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One expert's projections with their biases, and the weights of the chosen: what routing and
// mixture both ask.
#include "audit/judge/judge_internal.h"

#include <stdlib.h>

void judge_compare_slot(judge_part *part, const expert_rows *rows, size_t r,
                        sinkproof_trace_point point, sinkproof_honest *y) {
    size_t q = rows->q != NULL ? rows->q[r] : 0, width = rows->rows;
    const trace_piece piece = {.point = point,
                               .offset = q * width,
                               .count = width,
                               .token = q / part->pass->config->n_chosen};
    if (rows->q != NULL)
        piece_compare(part, &piece, y);
    else
        set_read_untraced(part->pass, point, width, y);
}

// The hull with the sets whose bias the first of several ranks added to its part.
static void hull_with_first(const sinkproof_setting *s, sinkproof_point after, size_t n,
                            const sinkproof_honest *biased, sinkproof_honest *row) {
    for (size_t i = 0; biased != NULL && i < n; i++) {
        sinkproof_honest x = biased[i];
        sinkproof_honest_finish(s, after, 1, &x);
        row[i] = sinkproof_honest_hull(row[i], x);
    }
}

bool judge_expert_map(judge_part *part, const sinkproof_layer *layer, const expert_rows *rows,
                      const sinkproof_planes *x, sinkproof_honest *y, size_t stride) {
    const judge_pass *pass = part->pass;
    bool up = rows->up;
    sinkproof_matrix w = sinkproof_matrix_at(up ? &layer->w_up : &layer->w_down, rows->expert);
    sinkproof_matrix b = sinkproof_matrix_at(up ? &layer->b_up : &layer->b_down, rows->expert);
    sinkproof_setting s = pass_setting(pass, pass->n * pass->config->n_chosen * w.rows);
    sinkproof_point before = up ? AT_M5 : AT_M9;
    sinkproof_point after = up ? AT_M6 : AT_M10;
    sinkproof_rounding at = s.policy->at[before]; // none: the bias may be one more term of the sum
    sinkproof_product_points through = sinkproof_product_points_at(before);
    sinkproof_accumulator sum = sinkproof_accumulator_at(pass->policy, through.term, through.acc);
    bool fused = at.format == SINKPROOF_REAL;
    // a whole sum that is shown has no bias
    bool shown = !fused && point_is_traced(pass, up ? TRACE_M5 : TRACE_M9, part->layer);
    double *bias = part_allocate(part, w.rows, sizeof *bias);
    sinkproof_honest *b_set = part_allocate(part, rows->rows, sizeof *b_set);
    if (bias != NULL && b_set != NULL) {
        const double *b_i = bias + rows->first;
        sinkproof_matrix_row(&b, 0, bias);
        for (size_t i = 0; i < rows->rows; i++)
            b_set[i] = sinkproof_honest_bias(&s, at, w.cols, b_i[i]);
        if (sum.acc.format == SINKPROOF_RANKS && !shown) sum.b_r = b_i;
        sinkproof_linear_sums *sums = sinkproof_linear_sums_with(
            &s, &sum, x, &(sinkproof_weight_rows){&w, rows->first, rows->rows, fused ? b_i : NULL});
        part->failed = part->failed || sums == NULL;
        for (size_t r = 0; sums != NULL && r < x->rows; r++) {
            sinkproof_honest *row = &y[r * stride];
            sinkproof_linear_sums_row(sums, r, row);
            sinkproof_honest_finish(&s, before, rows->rows, row);
            if (!fused) judge_compare_slot(part, rows, r, up ? TRACE_M5 : TRACE_M9, row);
            for (size_t i = 0; !fused && i < rows->rows; i++)
                row[i] = sinkproof_honest_add(row[i], b_set[i]);
            sinkproof_honest_finish(&s, after, rows->rows, row);
            hull_with_first(&s, after, rows->rows, sinkproof_linear_sums_biased_row(sums, r), row);
            judge_compare_slot(part, rows, r, up ? TRACE_M6 : TRACE_M10, row);
        }
        sinkproof_linear_sums_free(sums);
    }
    free(bias);
    free(b_set);
    return !part->failed;
}

bool judge_expert_weights(judge_part *part, const sinkproof_honest *g_e, const token_choice *choice,
                          sinkproof_honest *w_k, double *common) {
    const judge_pass *pass = part->pass;
    size_t k = pass->config->n_chosen;
    sinkproof_setting s = pass_setting(pass, pass->n * k);
    if (!meant_shares(pass, &s, g_e, k, choice->expert, w_k, common)) part->failed = true;
    return !part->failed;
}
