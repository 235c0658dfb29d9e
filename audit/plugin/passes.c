// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs a case as calls: all tokens at once, or pass by pass over a growing cache.
#include "audit/plugin/drill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Tokens [first, first + n) of a case.
typedef struct pass {
    const call_arrays *a;
    const sinkproof_policy *policy;
    size_t first, n;
    const float *k_largest, *v_largest; // [kv_heads], or NULL
} pass;

// Keys and values stay in the cache: a pass sees those of all tokens so far.
static bool is_cached(const stage_row *s, sinkproof_trace_point point) {
    return (s->knows & STAGE_KNOWS_KEYS) != 0 && (point == TRACE_A4_K || point == TRACE_A2_V);
}

static bool is_whole(const pass *p) {
    return p->first == 0 && p->n == p->a->n;
}

// The shape of an array in a pass; `whole` is its shape over all tokens.
static size_t pass_array_shape(const pass *p, const stage_row *s, array_id id, size_t *shape,
                               size_t *whole) {
    size_t keys = p->first + p->n;
    size_t rank = array_shape(&p->a->config, id, p->a->n, whole);
    memcpy(shape, whole, rank * sizeof *shape);
    if (is_whole(p)) return rank;
    sinkproof_trace_point point = (sinkproof_trace_point)id; // of a stage that goes in passes
    if (point == TRACE_LSE) {
        shape[1] = p->n;
    } else if (sinkproof_trace_point_is_by_head(point)) {
        shape[1] = p->n;
        shape[2] = keys + (whole[2] - p->a->n); // and the sink's column, if any
    } else {
        shape[0] = is_cached(s, point) ? keys : p->n;
    }
    return rank;
}

// Copies [heads, n] of a pass back.
static void copy_lse_back(const pass *p, const float *part) {
    float *all_hn = p->a->at[TRACE_LSE];
    for (size_t h = 0; h < p->a->config.n_heads; h++)
        memcpy(all_hn + h * p->a->n + p->first, part + h * p->n, p->n * sizeof *part);
}

// Copies the pass's part of an array into `part`, or back. In [heads, n, keys + 1] the last column
// is the sink's.
static void copy_part(const pass *p, const stage_row *s, array_id id, float *part, bool back) {
    size_t shape[SINKPROOF_RANK], whole[SINKPROOF_RANK], keys = p->first + p->n, row = 1;
    size_t rank = pass_array_shape(p, s, id, shape, whole);
    sinkproof_trace_point point = (sinkproof_trace_point)id;
    float *all = p->a->at[id];
    if (is_whole(p)) {
        memcpy(back ? all : part, back ? part : all, array_count(p->a, id) * sizeof *all);
        return;
    }
    if (!sinkproof_trace_point_is_by_head(point)) {
        for (size_t d = 1; d < rank; d++) row *= shape[d];
        float *rows = all + (is_cached(s, point) ? 0 : p->first * row);
        memcpy(back ? rows : part, back ? part : rows, shape[0] * row * sizeof *all);
        return;
    }
    for (size_t r = 0; r < shape[0] * p->n; r++) {
        float *to = part + r * shape[2];
        float *from = all + (r / p->n * p->a->n + p->first + r % p->n) * whole[2];
        memcpy(back ? from : to, back ? to : from, keys * sizeof *to);
        // later keys are not in the cache yet
        for (size_t j = keys; back && j < whole[2]; j++) from[j] = 0;
        if (shape[2] == keys) continue;
        if (back)
            from[whole[2] - 1] = to[keys];
        else
            to[keys] = from[whole[2] - 1];
    }
}

static bool pass_array(const pass *p, const stage_row *s, array_id id, char name[ARRAY_NAME],
                       sinkproof_array *array, bool input) {
    size_t whole[SINKPROOF_RANK], count = 1;
    *array = (sinkproof_array){.name = array_name(id, name)};
    array->rank = pass_array_shape(p, s, id, array->shape, whole);
    for (size_t d = 0; d < array->rank; d++) count *= array->shape[d];
    array->values = malloc(count * sizeof *array->values);
    if (array->values != NULL && input) copy_part(p, s, id, array->values, false);
    return array->values != NULL;
}

static sinkproof_drill pass_drill(const stage_case *c, const pass *p) {
    const sinkproof_config *f = &p->a->config;
    return (sinkproof_drill){.size = sizeof(sinkproof_drill),
                             .stage = c->stage->name,
                             .n_inputs = c->stage->n_from + c->stage->n_weights,
                             .n_outputs = case_outputs(c),
                             .n = p->n,
                             .first = p->first,
                             .window = c->window,
                             .heads = f->n_heads,
                             .kv_heads = f->n_kv_heads,
                             .head_dim = f->head_dim,
                             .hidden = f->hidden,
                             .inter = f->inter,
                             .experts = f->n_experts,
                             .chosen = f->n_chosen,
                             .rms_eps = f->rms_eps,
                             .swiglu_alpha = f->swiglu.alpha,
                             .swiglu_limit = f->swiglu.limit,
                             .rope_theta = f->rotation.theta,
                             .yarn_factor = f->rotation.factor,
                             .yarn_beta_fast = f->rotation.beta_fast,
                             .yarn_beta_slow = f->rotation.beta_slow,
                             .yarn_original_context = f->rotation.original_context,
                             .yarn_truncate = f->rotation.truncate,
                             .dtype =
                                 sinkproof_dtype_name(array_dtype(p->policy, c->stage->from[0])),
                             .k_largest = p->k_largest,
                             .v_largest = p->v_largest};
}

static call_end call_pass(const call_maker *maker, const stage_case *c, const pass *p,
                          sinkproof_error *error) {
    const stage_row *s = c->stage;
    sinkproof_array in[STAGE_ARRAYS] = {{0}}, out[STAGE_ARRAYS] = {{0}};
    char in_name[STAGE_ARRAYS][ARRAY_NAME], out_name[STAGE_ARRAYS][ARRAY_NAME];
    sinkproof_drill drill = pass_drill(c, p);
    bool good = true;
    for (size_t i = 0; i < s->n_from; i++)
        good = pass_array(p, s, s->from[i], in_name[i], &in[i], true) && good;
    for (size_t i = 0; i < case_outputs(c); i++)
        good = pass_array(p, s, s->to[i], out_name[i], &out[i], false) && good;
    for (size_t i = 0; i < s->n_weights; i++) {
        sinkproof_array *w = &in[s->n_from + i];
        w->name = sinkproof_slot_name(s->weights[i]);
        w->rank = weight_shape(&p->a->config, s->weights[i], w->shape);
        w->values = p->a->weight[s->weights[i]];
    }
    drill.inputs = in;
    drill.outputs = out;
    call_end end = CALL_ERROR;
    if (good)
        end = maker->call(maker->context, &drill, error);
    else
        sinkproof_fail(error, "%s: no memory for a call", s->name);
    for (size_t i = 0; end == CALL_DONE && i < case_outputs(c); i++) {
        if (s->to[i] == TRACE_LSE)
            copy_lse_back(p, out[i].values);
        else
            copy_part(p, s, s->to[i], out[i].values, true);
    }
    for (size_t i = 0; i < s->n_from; i++) free(in[i].values);
    for (size_t i = 0; i < case_outputs(c); i++) free(out[i].values);
    return end;
}

// Paint: NaNs with a period that divides no tile.
enum { PAINT = 0x7fc5a000, PERIOD = 251 };
uint32_t output_paint_word(size_t i) {
    return PAINT + (uint32_t)(i % PERIOD);
}

bool output_is_unwritten(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >= PAINT && bits < PAINT + PERIOD;
}

void output_paint(float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t word = output_paint_word(i);
        memcpy(&values[i], &word, sizeof word);
    }
}

// Refuses outputs that were never written, except masked ones.
static call_end check_written(const stage_case *c, const call_arrays *a, sinkproof_error *error) {
    for (size_t t = 0; t < case_outputs(c); t++) {
        array_id id = c->stage->to[t];
        char name[ARRAY_NAME];
        size_t count = array_count(a, id), at = 0;
        while (at < count && !output_is_unwritten(a->at[id][at])) at++;
        bool masked = !array_is_gradient(id) &&
                      sinkproof_trace_point_is_before_mask((sinkproof_trace_point)id);
        if (at == count || masked) continue;
        sinkproof_fail(error, "it left element %zu of %zu of %s unwritten", at, count,
                       array_name(id, name));
        return CALL_FAILED;
    }
    return CALL_DONE;
}

// The largest size in each head of a point [n, kv_heads, dim]; NULL without memory.
static float *largest_of_heads(const call_arrays *a, sinkproof_trace_point point) {
    size_t heads = a->config.n_kv_heads, dim = a->config.head_dim;
    float *largest_h = calloc(heads, sizeof *largest_h);
    for (size_t i = 0; largest_h != NULL && i < a->n * heads * dim; i++)
        largest_h[i / dim % heads] = fmaxf(largest_h[i / dim % heads], fabsf(a->at[point][i]));
    return largest_h;
}

call_end case_call_passes(const call_maker *maker, const stage_case *c,
                          const sinkproof_policy *policy, call_arrays *a, sinkproof_error *error) {
    size_t step = c->chunk > 0 ? c->chunk : c->n;
    call_end end = CALL_DONE;
    bool cached = c->stage->to[0] == TRACE_A11 && c->stage->from[0] == TRACE_A4_Q;
    float *k_largest = cached ? largest_of_heads(a, TRACE_A4_K) : NULL;
    float *v_largest = cached ? largest_of_heads(a, TRACE_A2_V) : NULL;
    if (cached && (k_largest == NULL || v_largest == NULL)) {
        sinkproof_fail(error, "%s: no memory for a call", c->stage->name);
        end = CALL_ERROR;
    }
    for (size_t first = 0; end == CALL_DONE && first < c->n; first += step) {
        size_t rows = c->n - first < step ? c->n - first : step;
        pass p = {a, policy, first, rows, k_largest, v_largest};
        end = call_pass(maker, c, &p, error);
    }
    free(k_largest);
    free(v_largest);
    return end == CALL_DONE ? check_written(c, a, error) : end;
}
