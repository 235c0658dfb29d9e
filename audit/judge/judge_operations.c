// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the sublayers of the judge's pass share: projections, residual sums, the rows of the
// rotation's tables, and progress.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// size of a part: tokens of a projection, tokens of a sum, rows of a weight
enum { TOKENS = 256, ADDED = 16, ROWS = 512 };

double *vector_decode(const sinkproof_matrix *matrix) {
    double *v = malloc(matrix->cols * sizeof *v);
    if (v != NULL) sinkproof_matrix_row(matrix, 0, v);
    return v;
}

static size_t parts_needed(size_t whole, size_t each) {
    return (whole + each - 1) / each;
}

static size_t smaller_size(size_t left, size_t limit) {
    return left < limit ? left : limit;
}

void judge_progress(judge_pass *pass, double work) {
    pass->done += work;
    if (pass->options->progress != NULL)
        pass->options->progress(pass->options->context, fmin(pass->done / pass->all, 1));
}

typedef struct projection_work {
    sinkproof_trace_point point;
    sinkproof_point at;
    const sinkproof_matrix *w;
    const double *bias_r;   // or NULL
    sinkproof_honest *y_nr; // NULL: not kept
    sinkproof_product_points through;
    bool fused; // the engine may sum the bias as one more term
    sinkproof_accumulator sum;
    sinkproof_planes x;
    size_t blocks;               // blocks of rows of W
    const sinkproof_honest *x_c; // of an adapted weight: what it reads; else NULL
} projection_work;

// Finishes rows [r0, r0 + rows) of W for one token: adds the bias that is not part of the sum, and
// what an adapter adds (u_r, or NULL), then rounds.
static void finish_projection(const sinkproof_setting *s, const projection_work *w, size_t r0,
                              size_t rows, const sinkproof_honest *u_r, sinkproof_honest *row) {
    if (!w->fused) {
        sinkproof_honest_finish(s, w->through.product, rows, row);
        sinkproof_rounding at = s->policy->at[w->through.product];
        for (size_t r = 0; r < rows; r++)
            row[r] = sinkproof_honest_add(
                row[r], sinkproof_honest_bias(s, at, w->w->cols, w->bias_r[r0 + r]));
    }
    if (u_r != NULL)
        judge_adapter_join(s, w->at, rows, w->bias_r != NULL ? w->bias_r + r0 : NULL, u_r, row);
    sinkproof_honest_finish(s, w->at, rows, row);
}

// The hull with the sets whose bias was added to one rank's part.
static void hull_with_biased(const sinkproof_setting *s, const projection_work *w,
                             const sinkproof_honest *biased, size_t rows, sinkproof_honest *row) {
    for (size_t r = 0; r < rows; r++) {
        sinkproof_honest x = biased[r];
        sinkproof_honest_finish(s, w->at, 1, &x);
        row[r] = sinkproof_honest_hull(row[r], x);
    }
}

// Projects one block: some tokens by some rows of W.
static void project_block(judge_part *part, size_t index, void *of) {
    const projection_work *w = of;
    const judge_pass *pass = part->pass;
    size_t i0 = index / w->blocks * TOKENS, r0 = index % w->blocks * ROWS, width = w->w->rows;
    size_t i1 = i0 + smaller_size(pass->n - i0, TOKENS), rows = smaller_size(width - r0, ROWS);
    if (pass->alone != NULL && pass->alone->first > i0) i0 = pass->alone->first;
    if (pass->alone != NULL) i1 = smaller_size(i1, pass->alone->end);
    if (i0 >= i1) return;
    size_t tokens = i1 - i0;
    sinkproof_setting s = pass_setting(pass, pass->n * width);
    sinkproof_planes x = sinkproof_planes_rows(&w->x, i0, tokens);
    size_t added = w->x_c != NULL ? tokens : 0;
    sinkproof_honest *passing = part_allocate(part, (added + 1) * rows, sizeof *passing);
    if (passing == NULL) return;
    sinkproof_honest *u_ir = passing + rows;
    const adapter_block adapter = {
        w->point, part->layer,   r0,     rows,
        w->at,    w->through.in, w->sum, &w->x_c[added > 0 ? i0 * w->w->cols : 0],
        tokens,   w->w->cols};
    part->failed = part->failed || (added > 0 && !judge_adapter_adds(pass, &s, &adapter, u_ir));
    const double *bias = w->bias_r != NULL && w->fused ? w->bias_r + r0 : NULL;
    sinkproof_accumulator sum = w->sum;
    if (sum.acc.format == SINKPROOF_RANKS && w->bias_r != NULL) sum.b_r = w->bias_r + r0;
    sinkproof_linear_sums *sums =
        sinkproof_linear_sums_with(&s, &sum, &x, &(sinkproof_weight_rows){w->w, r0, rows, bias});
    part->failed = part->failed || sums == NULL;
    for (size_t i = i0; sums != NULL && i < i1; i++) {
        sinkproof_honest *row = w->y_nr != NULL ? &w->y_nr[i * width + r0] : passing;
        const trace_piece piece = {
            .point = w->point, .offset = i * width + r0, .count = rows, .token = i};
        sinkproof_linear_sums_row(sums, i - i0, row);
        finish_projection(&s, w, r0, rows, added > 0 ? u_ir + (i - i0) * rows : NULL, row);
        const sinkproof_honest *biased = sinkproof_linear_sums_biased_row(sums, i - i0);
        if (biased != NULL) hull_with_biased(&s, w, biased, rows, row);
        piece_compare(part, &piece, row);
    }
    sinkproof_linear_sums_free(sums);
    free(passing);
}

bool judge_projection(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nr) {
    const sinkproof_matrix *w = &step->weights[0], *b = &step->weights[1];
    double *bias = b->count > 0 ? vector_decode(b) : NULL;
    if (b->count > 0 && bias == NULL) return false;
    sinkproof_setting s = pass_setting(pass, pass->n * w->rows);
    sinkproof_point at = AT_A2;
    sinkproof_trace_rounding(step->point, &at);
    sinkproof_product_points through = sinkproof_product_points_at(at);
    projection_work work = {
        step->point,
        at,
        w,
        bias,
        y_nr,
        through,
        bias == NULL || pass->policy->at[through.product].format == SINKPROOF_REAL,
        sinkproof_accumulator_at(pass->policy, through.term, through.acc),
        sinkproof_operand_planes(&s, through.in, w, step_input(pass, step, 0), pass->n),
        parts_needed(w->rows, ROWS),
        judge_is_adapted(pass, step) ? step_input(pass, step, 0) : NULL};
    size_t parts = work.blocks * parts_needed(pass->n, TOKENS);
    bool fine = work.x.mid != NULL &&
                judge_in_parts(pass, step_place(pass, step), parts, project_block, &work);
    sinkproof_planes_free(&work.x);
    free(bias);
    return fine;
}

typedef struct residual_work {
    sinkproof_point at;
    sinkproof_trace_point point;
    sinkproof_joining joining;
    const sinkproof_honest *t_nd;
    sinkproof_honest *x_nd;
} residual_work;

// A term times a number, which may be rounded before the sum, or not.
static sinkproof_honest residual_term(const sinkproof_setting *s, sinkproof_point at, double times,
                                      sinkproof_honest x) {
    x = sinkproof_honest_mul(x, sinkproof_exact_set(times));
    if (times == 0 || frexp(fabs(times), &(int){0}) == 0.5) return x;
    return set_hull(sinkproof_honest_inside(s, x), sinkproof_honest_at(s, at, x));
}

// The residual sum: kept x + added t, which is x + t by the definition.
static sinkproof_honest join_residual(const sinkproof_setting *s, sinkproof_point at,
                                      sinkproof_joining how, sinkproof_honest x,
                                      sinkproof_honest t) {
    if (how.kept != 1) x = residual_term(s, at, how.kept, x);
    if (how.added != 1) t = residual_term(s, at, how.added, t);
    return sinkproof_honest_add(x, t);
}

static void add_token_residual(judge_part *part, size_t i, void *of) {
    const residual_work *w = of;
    const judge_pass *pass = part->pass;
    size_t d = pass->config->hidden;
    sinkproof_setting s = pass_setting(pass, pass->n * d);
    sinkproof_honest *x_d = &w->x_nd[i * d];
    const sinkproof_honest *t_d = &w->t_nd[i * d];
    double *before = part_allocate(part, d, sizeof *before);
    if (before == NULL) return;
    for (size_t k = 0; k < d; k++) {
        before[k] = x_d[k].mid;
        x_d[k] = join_residual(&s, w->at, w->joining, x_d[k], t_d[k]);
    }
    sinkproof_honest_finish(&s, w->at, d, x_d);
    const trace_piece piece = {
        .point = w->point, .offset = i * d, .count = d, .token = i, .skipped = before};
    piece_compare(part, &piece, x_d);
    free(before);
}

bool judge_residual(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nd) {
    const sinkproof_meaning *m = pass->meaning;
    residual_work w = {AT_A13, step->point,
                       step->point == TRACE_A13 ? m->after_values : m->after_experts,
                       step_input(pass, step, 0), y_nd};
    sinkproof_trace_rounding(step->point, &w.at);
    memcpy(y_nd, step_input(pass, step, 1), pass->n * pass->config->hidden * sizeof *y_nd);
    return judge_each_token(pass, step->layer, ADDED, add_token_residual, &w);
}

sinkproof_turns token_turns(const judge_pass *pass, bool keys, size_t i) {
    bool own = keys && pass->meaning != &sinkproof_meaning_as_defined;
    const sinkproof_honest *row[4];
    for (int t = 0; t < 4; t++) {
        const sinkproof_honest *table = own ? pass->key_turns_ip[t] : pass->turns_ip[t];
        row[t] = table != NULL ? table + i * (pass->config->head_dim / 2) : NULL;
    }
    return (sinkproof_turns){row[0], row[1], row[2], row[3]};
}
