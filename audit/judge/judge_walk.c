// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's walk by the table of points: T0, the operations of the table, and the sets of each
// point from the operation that computes them to the last that reads them.
#include "audit/judge/judge_internal.h"
#include "audit/judge/judge_prefix.h"

#include <stdlib.h>

enum { TOKENS = 16 }; // of a part

// ---- T0

typedef struct embedding_work {
    const sinkproof_matrix *table, *positions; // count 0: the model has none
    sinkproof_honest *x_nd;
} embedding_work;

static void embed_token(judge_part *part, size_t i, void *of) {
    const embedding_work *w = of;
    const judge_pass *pass = part->pass;
    size_t d = pass->config->hidden;
    sinkproof_setting s = pass_setting(pass, pass->n * d);
    sinkproof_honest *x_d = &w->x_nd[i * d];
    double *row = part_allocate(part, d, sizeof *row);
    if (row == NULL) return;
    sinkproof_matrix_row(w->table, (size_t)sinkproof_trace_tokens(pass->trace)[i], row);
    for (size_t k = 0; k < d; k++) x_d[k] = sinkproof_exact_set(row[k]);
    if (w->positions->count > 0) {
        sinkproof_matrix_row(w->positions, (size_t)sinkproof_trace_positions(pass->trace)[i], row);
        for (size_t k = 0; k < d; k++)
            x_d[k] = sinkproof_honest_inside(
                &s, sinkproof_honest_add(x_d[k], sinkproof_exact_set(row[k])));
    }
    for (size_t k = 0; k < d; k++) x_d[k] = sinkproof_honest_at(&s, AT_T0, x_d[k]);
    free(row);
    const trace_piece piece = {.point = TRACE_T0, .offset = i * d, .count = d, .token = i};
    piece_compare(part, &piece, x_d);
}

bool judge_embedding(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nd) {
    embedding_work w = {&step->weights[0], &step->weights[1], y_nd};
    return judge_each_token(pass, step_place(pass, step), TOKENS, embed_token, &w);
}

// ---- A3

// Makes the cosine and sine tables of one form of the rotation.
static bool make_form_tables(judge_pass *pass, const sinkproof_turning *turning, int form,
                             sinkproof_honest *turns_ip[4]) {
    size_t half = pass->config->head_dim / 2;
    bool scaled = form == SINKPROOF_FORM_DEFINITION;
    const int32_t *positions = sinkproof_trace_positions(pass->trace);
    sinkproof_honest *c_ip = malloc(pass->n * half * sizeof *c_ip);
    sinkproof_honest *s_ip = malloc(pass->n * half * sizeof *s_ip);
    turns_ip[scaled ? 0 : 2] = c_ip, turns_ip[scaled ? 1 : 3] = s_ip;
    if (c_ip == NULL || s_ip == NULL) return false;
#pragma omp parallel for schedule(dynamic, 16) if (pass->n > 16 && !pass->serial)
    for (size_t i = 0; i < pass->n; i++)
        meant_table(pass, turning, scaled, positions[i], &c_ip[i * half], &s_ip[i * half]);
    return true;
}

static bool make_turn_tables(judge_pass *pass, const sinkproof_turning *turning,
                             sinkproof_honest *turns_ip[4]) {
    bool fine = true;
    for (int form = 0; sinkproof_form_name(SINKPROOF_FORM_OF_A4, form) != NULL; form++)
        if (sinkproof_policy_admits(pass->policy, SINKPROOF_FORM_OF_A4, form))
            fine = fine && make_form_tables(pass, turning, form, turns_ip);
    return fine;
}

// By the definition queries and keys turn alike, so that one table serves both. A model without a
// rotation needs no table.
static bool rotation_tables(judge_pass *pass) {
    const sinkproof_meaning *m = pass->meaning;
    if (pass->config->rotation.kind == SINKPROOF_NO_ROTATION ||
        !any_layer_judged(pass, TRACE_A4_Q, TRACE_A4_K))
        return true;
    return make_turn_tables(pass, &m->query, pass->turns_ip) &&
           (m == &sinkproof_meaning_as_defined ||
            make_turn_tables(pass, &m->key, pass->key_turns_ip));
}

static void rotation_tables_free(judge_pass *pass) {
    for (int t = 0; t < 4; t++) free(pass->turns_ip[t]);
    for (int t = 0; t < 4; t++) free(pass->key_turns_ip[t]);
}

// ---- progress

// Multiply-adds of a layer and of the head; only the progress display uses them.
double judge_layer_work(const judge_pass *pass) {
    const sinkproof_config *c = pass->config;
    double attention = 2 * (double)(c->n_heads + c->n_kv_heads) * (double)c->head_dim;
    double experts = 3 * (double)c->n_chosen * (double)c->inter;
    double pairs = 8 * (double)c->n_heads * ((double)c->head_dim + 64) * (double)pass->n / 4;
    return (double)pass->n * (((attention + experts) * (double)c->hidden) + pairs);
}

static double head_work(const judge_pass *pass) {
    bool traced = point_is_traced(pass, TRACE_F2, 0);
    return traced ? (double)(pass->n * pass->config->hidden) * (double)pass->config->vocab : 0;
}

double judge_all_work(const judge_pass *pass) {
    return (double)pass->config->n_layers * judge_layer_work(pass) + head_work(pass);
}

// ---- the walk

// NULL: judged with the operation that comes behind them, in parts of their own.
static judge_operation *const operations[] = {
    [SINKPROOF_EMBED] = judge_embedding,
    [SINKPROOF_NORM] = judge_norm,
    [SINKPROOF_LINEAR] = judge_projection,
    [SINKPROOF_ROTATE] = judge_rotated,
    [SINKPROOF_SCORE] = NULL,
    [SINKPROOF_SOFTMAX] = NULL,
    [SINKPROOF_DROP_SINK] = NULL,
    [SINKPROOF_SUM_VALUES] = judge_attention,
    [SINKPROOF_ADD] = judge_residual,
    [SINKPROOF_CHOOSE] = NULL,
    [SINKPROOF_SHARE] = NULL,
    [SINKPROOF_MULTIPLY] = NULL,
    [SINKPROOF_ADD_BIAS] = NULL,
    [SINKPROOF_ACTIVATE] = judge_activations,
    [SINKPROOF_MIX] = judge_experts,
};

// The first of the points that are judged with it.
sinkproof_trace_point judge_first_with(sinkproof_trace_point point) {
    return point == TRACE_A11 ? TRACE_A6 : point == TRACE_M11 ? TRACE_M3 : point;
}

// M8 is an expert's in a model with a router: then judged with M11.
static bool is_judged_alone(const judge_pass *pass, const sinkproof_walk_step *step) {
    return operations[step->operation] != NULL && (step->point != TRACE_M8 || pass->config->dense);
}

bool judge_walk_keeps(const judge_pass *pass, const sinkproof_walk_step *step) {
    return is_judged_alone(pass, step) && step->point != TRACE_F2;
}

static void release_point(judge_pass *pass, sinkproof_trace_point point) {
    free(pass->at[point]);
    pass->at[point] = NULL;
}

// Releases what no point behind this one reads.
static void release_inputs(judge_pass *pass, const sinkproof_walk_step *step) {
    for (int p = judge_first_with(step->point); p <= (int)step->point; p++) {
        sinkproof_walk_step one =
            sinkproof_walk_step_at(pass->model, (sinkproof_trace_point)p, step->layer);
        for (size_t i = 0; i < one.n_inputs; i++)
            if (one.last[i]) release_point(pass, one.inputs[i].point);
    }
}

// Points that are left out keep their zeros: what is judged may need them, and then ignores them.
static bool walk_point(void *context, const sinkproof_walk_step *step) {
    judge_pass *pass = context;
    sinkproof_trace_point point = step->point;
    size_t place = step_place(pass, step);
    if (pass_has_ended(pass) || !is_judged_alone(pass, step)) return true;
    if (place < pass->config->n_layers && layer_is_left_out(pass, place)) return true;
    bool judged = any_point_judged(pass, place, judge_first_with(point), point);
    bool fine = true;
    if (point == TRACE_F2) // its sets are not kept
        return !judged || !point_is_traced(pass, point, 0) ||
               (judge_moved_begin(pass, point, point, place) &&
                judge_projection(pass, step, NULL) && judge_moved_end(pass, place));
    sinkproof_honest *y = calloc(sinkproof_trace_elements(pass->config, point, pass->n), sizeof *y);
    if (y == NULL) return false;
    if (judged)
        fine = judge_moved_begin(pass, judge_first_with(point), point, place) &&
               operations[step->operation](pass, step, y) && judge_moved_end(pass, place);
    else if (point_doing(pass, point, place) == DOING_GIVEN)
        judge_skips_or_reads(pass, point, place, y);
    if (pass->kept_prefix != NULL) fine = fine && prefix_keep(pass, point, place, y);
    release_inputs(pass, step);
    release_point(pass, point); // of the layer before, if nothing reads it
    pass->at[point] = y;
    if (point == TRACE_M12) {
        sinkproof_trace_forget_layer(pass->trace, place);
        judge_progress(pass, judge_layer_work(pass));
    }
    return fine;
}

bool judge_all_points(judge_pass *pass) {
    bool fine = rotation_tables(pass) && sinkproof_walk(pass->model, walk_point, pass);
    if (fine) judge_progress(pass, head_work(pass));
    for (int p = 0; p < TRACE_POINTS; p++) release_point(pass, (sinkproof_trace_point)p);
    rotation_tables_free(pass);
    return fine;
}
