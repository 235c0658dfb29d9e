// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/weight_edits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 1 << 24, BLOCK = 32 };

// ---- rows that are rewritten

bool weight_edit_needs_largest(const mistake_weight_edit *edit) {
    return edit->rewritten && edit->change.kind == SINKPROOF_CHANGE_ROUND &&
           edit->change.scale == SINKPROOF_SCALED_BY_TENSOR;
}

bool weight_largest_sizes(const sinkproof_matrix *stack, size_t most, double *largest_e) {
    double *row = malloc((stack->cols + 1) * sizeof *row);
    bool fine = row != NULL && stack->cols > 0 && stack->rows <= most / stack->cols / stack->count;
    for (size_t e = 0; fine && e < stack->count; e++) {
        sinkproof_matrix one = sinkproof_matrix_at(stack, e);
        largest_e[e] = 0;
        for (size_t r = 0; r < one.rows; r++) {
            sinkproof_matrix_row(&one, r, row);
            for (size_t c = 0; c < one.cols; c++) largest_e[e] = fmax(largest_e[e], fabs(row[c]));
        }
    }
    free(row);
    return fine;
}

// scale_b: the scales of MXFP4 of a row, wherever its numbers are read from.
static bool read_scales(const sinkproof_matrix *stack, size_t e, size_t r, float *scale_b) {
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    one.reading = NULL;
    return one.dtype == SINKPROOF_DTYPE_MXFP4 && sinkproof_matrix_scales(&one, r, scale_b);
}

static size_t index_from(const sinkproof_from *from, size_t i, size_t size) {
    size_t at = sinkproof_from_index(from, i, size);
    return at == SIZE_MAX ? i : at;
}

// The scale of block b of row r, as it is read: of another place, times a factor.
static bool scale_read(const mistake_weight_edit *edit, const sinkproof_matrix *stack, size_t e,
                       size_t r, size_t b, float *room_b, size_t *in_room, double *scale) {
    size_t blocks = stack->cols / BLOCK, flat = r * blocks + b;
    flat = index_from(&edit->scale_from, flat, stack->rows * blocks);
    size_t each = stack->rows * blocks;
    size_t at = index_from(&edit->scale_stack_from, e * each + flat, stack->count * each);
    flat = at % each;
    size_t from_e = index_from(&edit->scale_expert_from, at / each, stack->count);
    size_t from_r = index_from(&edit->scale_row_from, flat / blocks, stack->rows);
    if (*in_room != from_e * stack->rows + from_r)
        if (!read_scales(stack, from_e, from_r, room_b)) return false;
    *in_room = from_e * stack->rows + from_r;
    *scale = room_b[index_from(&edit->scale_block_from, flat % blocks, blocks)];
    int exponent = *scale > 0 ? ilogb(*scale) : -127;
    if (edit->scale_factors != NULL && exponent >= -127 && exponent <= 127)
        *scale *= edit->scale_factors[exponent + 127];
    return true;
}

// Divides by the scales of row r, changes, and multiplies by those that are read.
static bool rescale_row(const mistake_weight_edit *edit, const sinkproof_matrix *stack, size_t e,
                        size_t r, double *row_c) {
    size_t blocks = stack->cols / BLOCK;
    float *own = calloc(2 * blocks + 1, sizeof *own), *other = own + blocks;
    bool fine = own != NULL && read_scales(stack, e, r, own);
    double scale = 1;
    size_t in_room = SIZE_MAX;
    for (size_t c = 0; fine && c < stack->cols; c++) {
        size_t b = c / BLOCK;
        row_c[c] /= own[b];
        if (edit->of_codes) sinkproof_change_row(&edit->change, 0, 1, &row_c[c], &row_c[c]);
        if (!edit->other_scales)
            scale = own[b];
        else if (c % BLOCK == 0)
            fine = scale_read(edit, stack, e, r, b, other, &in_room, &scale);
        row_c[c] *= scale;
    }
    free(own);
    return fine;
}

// row_c: the mean of the rows at the same place in all units; of a vector, of its numbers.
static bool average_units(const mistake_weight_edit *edit, const sinkproof_matrix *stack, size_t e,
                          size_t r, double *row_c) {
    size_t cols = stack->cols, unit = edit->averaged;
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    double *other = malloc((cols + 1) * sizeof *other);
    if (other == NULL) return false;
    for (size_t c = 0; c < cols; c++) other[c] = row_c[c], row_c[c] = 0;
    if (stack->rows == 1 && cols % unit == 0)
        for (size_t c = 0; c < cols; c++)
            for (size_t from = c % unit; from < cols; from += unit)
                row_c[c] += other[from] / (double)(cols / unit);
    for (size_t from = r % unit; stack->rows > 1 && from < stack->rows; from += unit) {
        sinkproof_matrix_row(&one, from, other);
        for (size_t c = 0; c < cols; c++) row_c[c] += other[c] / (double)(stack->rows / unit);
    }
    free(other);
    return true;
}

bool weight_row_rewrite(const mistake_weight_edit *edit, const sinkproof_matrix *stack,
                        const double *largest_e, size_t e, size_t r, double *row_c) {
    bool vector = stack->rows == 1;
    size_t cols = stack->cols;
    if (!sinkproof_indices_hold(&edit->experts, e) ||
        (!vector && !sinkproof_indices_hold(&edit->rows, r)))
        return false;
    size_t from_e = index_from(&edit->expert_from, e, stack->count);
    size_t from_r = index_from(&edit->row_from, r, stack->rows);
    double *read = malloc((2 * cols + 1) * sizeof *read), *changed = read + cols;
    bool fine = read != NULL;
    if (fine && from_e == e && from_r == r)
        memcpy(read, row_c, cols * sizeof *read);
    else if (fine) {
        sinkproof_matrix one = sinkproof_matrix_at(stack, from_e);
        sinkproof_matrix_row(&one, from_r, read);
    }
    if (fine && edit->blocks.mistake != BLOCKS_AS_STORED)
        fine = blocks_misread(&edit->blocks, stack, from_e, from_r, read);
    if (fine && edit->averaged > 0) fine = average_units(edit, stack, from_e, from_r, read);
    if (fine && (edit->other_scales || edit->of_codes))
        fine = rescale_row(edit, stack, from_e, from_r, read);
    for (size_t c = 0; fine && c < cols; c++)
        changed[c] = read[index_from(&edit->column_from, c, cols)];
    if (fine && !edit->of_codes)
        sinkproof_change_row(&edit->change, largest_e != NULL ? largest_e[from_e] : 0, cols,
                             changed, changed);
    for (size_t c = 0; fine && c < cols; c++)
        if (sinkproof_indices_hold(&edit->columns, c))
            row_c[c] = sinkproof_round(edit->kept, changed[c]);
    free(read);
    return fine;
}

// ---- the readings of a view

// Readings, and vectors that were copied.
typedef struct owned_reading {
    struct owned_reading *next;
    sinkproof_reading reading;
    // of rows that are rewritten
    mistake_weight_edit edit;
    sinkproof_matrix stack;
    double values[];
} owned_reading;
typedef owned_reading owned;

static owned *editing_own_values(weight_editing *e, size_t values) {
    owned *made = malloc(sizeof *made + values * sizeof *made->values);
    e->failed = e->failed || made == NULL;
    if (made == NULL) return NULL;
    made->next = e->all;
    e->all = made;
    return made;
}

void weight_editing_release(weight_editing *e) {
    for (owned *one = e->all, *next; one != NULL; one = next) {
        next = one->next;
        free(one);
    }
}

// Copies the vectors of a stack, with each element from the place that the reading gives.
static void reread_vectors(weight_editing *e, const sinkproof_reading *reading,
                           sinkproof_matrix *vector) {
    size_t count = vector->count, cols = vector->cols;
    owned *made = editing_own_values(e, (count + 1) * cols);
    if (made == NULL) return;
    double *row = made->values + count * cols;
    for (size_t k = 0; k < count; k++) {
        sinkproof_matrix one = sinkproof_matrix_at(vector, k);
        sinkproof_matrix_row(&one, 0, row);
        for (size_t c = 0; c < cols; c++)
            made->values[k * cols + c] = row[reading->column(c, cols, reading->column_by)];
    }
    vector->dtype = SINKPROOF_DTYPE_F64;
    vector->data = (const uint8_t *)made->values;
    vector->odd = NULL, vector->synthetic = NULL, vector->reading = NULL;
    vector->stack_stride = vector->row_stride = cols, vector->col_stride = 1;
}

static void reread_weight(weight_editing *e, const sinkproof_reading *reading,
                          sinkproof_matrix *weight) {
    owned *made = editing_own_values(e, 0);
    if (made == NULL) return;
    made->reading = *reading;
    made->reading.below = weight->reading;
    weight->reading = &made->reading;
}

static void borrow_weight(const supposed_engine *s, const mistake_weight_edit *edit, size_t l,
                          sinkproof_slot slot, sinkproof_matrix *weight) {
    size_t layers = s->config.n_layers;
    size_t own = l < layers ? l : 0; // what is of no layer counts from the first
    size_t from_layer = (own + layers + (size_t)(edit->layer_by + 1) - 1) % layers;
    sinkproof_slot from = edit->from == SINKPROOF_SLOTS ? slot : edit->from;
    sinkproof_matrix other = sinkproof_model_slot(s->model, from_layer, from);
    if (other.rows == weight->rows && other.cols == weight->cols && other.count == weight->count)
        *weight = other;
}

// The slots of queries, keys and values, of the weights or of the biases.
static void fused_slots(sinkproof_slot slot, sinkproof_slot *of) {
    bool bias = slot == SINKPROOF_B_Q || slot == SINKPROOF_B_K || slot == SINKPROOF_B_V;
    of[0] = bias ? SINKPROOF_B_Q : SINKPROOF_W_Q;
    of[1] = bias ? SINKPROOF_B_K : SINKPROOF_W_K;
    of[2] = bias ? SINKPROOF_B_V : SINKPROOF_W_V;
}

// The place of row i of head h of a kind, and back: *kind is 0, 1 or 2 for queries, keys, values.
static size_t fused_place(const sinkproof_config *c, bool by_group, int kind, size_t h, size_t i) {
    size_t heads = c->n_heads, groups = c->n_kv_heads, d = c->head_dim, each = heads / groups;
    size_t group = kind == 0 ? h / each : h,
           member = kind == 0 ? h % each : each + (size_t)kind - 1;
    if (by_group) return (group * (each + 2) + member) * d + i;
    return ((kind > 0 ? heads : 0) + (kind > 1 ? groups : 0) + h) * d + i;
}

static void fused_row(const sinkproof_config *c, bool by_group, size_t place, int *kind,
                      size_t *row) {
    size_t d = c->head_dim, heads = c->n_heads, groups = c->n_kv_heads;
    for (*kind = 0; *kind < 3; (*kind)++)
        for (size_t h = 0; h < (*kind == 0 ? heads : groups); h++)
            if (fused_place(c, by_group, *kind, h, 0) == place / d * d) {
                *row = h * d + place % d;
                return;
            }
}

// Copies a weight with the rows that another split of the fused weights gives it.
static void fuse_weight(weight_editing *e, const mistake_weight_edit *edit, size_t l,
                        sinkproof_slot slot, sinkproof_matrix *weight) {
    const sinkproof_config *c = &e->s->config;
    sinkproof_slot of[3];
    fused_slots(slot, of);
    int own = slot == of[0] ? 0 : slot == of[1] ? 1 : 2, kind = 0;
    bool vector = weight->rows == 1;
    size_t cols = vector ? 1 : weight->cols, rows = vector ? weight->cols : weight->rows;
    owned *made = editing_own_values(e, rows * cols);
    if (made == NULL || rows % c->head_dim != 0) return;
    for (size_t r = 0, row = 0; r < rows; r++) {
        bool by_group = edit->fused == FUSED_BY_GROUP;
        size_t at = fused_place(c, by_group, own, r / c->head_dim, r % c->head_dim);
        fused_row(c, !by_group, at, &kind, &row);
        sinkproof_matrix other = sinkproof_model_slot(e->s->model, l, of[kind]);
        if (other.count == 0 || (!vector && other.cols != cols)) return;
        if (vector) {
            double *whole = malloc((other.cols + 1) * sizeof *whole);
            e->failed = e->failed || whole == NULL;
            if (whole == NULL) return;
            sinkproof_matrix_row(&other, 0, whole);
            made->values[r] = whole[row];
            free(whole);
        } else
            sinkproof_matrix_row(&other, row, made->values + r * cols);
    }
    weight->dtype = SINKPROOF_DTYPE_F64;
    weight->data = (const uint8_t *)made->values;
    weight->odd = NULL, weight->synthetic = NULL, weight->reading = NULL;
    weight->stack_stride = vector ? weight->cols : rows * cols;
    weight->row_stride = weight->cols, weight->col_stride = 1;
}

static void change_row(const void *changing, size_t e, size_t r, size_t cols, double *row_c) {
    const owned *made = changing;
    const double *largest_e = weight_edit_needs_largest(&made->edit) ? made->values : NULL;
    (void)cols;
    weight_row_rewrite(&made->edit, &made->stack, largest_e, e, r, row_c);
}

static void rewrite_weight(weight_editing *e, const mistake_weight_edit *edit,
                           sinkproof_matrix *weight) {
    owned *made = editing_own_values(e, weight->count);
    if (made == NULL) return;
    made->edit = *edit, made->stack = *weight;
    if (weight_edit_needs_largest(edit) &&
        !weight_largest_sizes(weight, MOST_NUMBERS, made->values))
        return;
    made->reading = (sinkproof_reading){
        .factor = 1, .change = change_row, .changing = made, .below = weight->reading};
    weight->reading = &made->reading;
}

void edit_weight(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    weight_editing *e = context;
    for (size_t i = 0; i < e->s->n_edits && weight->count > 0; i++) {
        const mistake_weight_edit *edit = &e->s->edits[i];
        bool vector = sinkproof_slot_is_vector(slot, &e->s->config);
        if ((edit->slots >> slot & 1) == 0) continue;
        if (edit->fused != NOT_FUSED)
            fuse_weight(e, edit, l, slot, weight);
        else if (edit->borrowed)
            borrow_weight(e->s, edit, l, slot, weight);
        else if (edit->rewritten)
            rewrite_weight(e, edit, weight);
        else if (vector && edit->reading.column != NULL)
            reread_vectors(e, &edit->reading, weight);
        else
            reread_weight(e, &edit->reading, weight);
    }
}
