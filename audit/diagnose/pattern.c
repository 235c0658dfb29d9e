// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Describes where the elements outside are: which positions, heads, coordinates, keys. The words
// are counted, not guessed: each is true of all of them.
#include "audit/diagnose/diagnose.h"

#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *out;
    size_t size, length;
} text;

static void SINKPROOF_PRINTF(2, 3) pattern_append(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(t->out + t->length, t->size - t->length, format, arguments);
    va_end(arguments);
    if (wrote > 0) t->length += (size_t)wrote;
    if (t->length >= t->size) t->length = t->size - 1;
}

// The name of the indices of a dimension.
static const char *dimension_name(const sinkproof_point_report *r, size_t d) {
    bool by_head = sinkproof_trace_point_is_by_head(r->point);
    bool lse = r->point == TRACE_LSE || r->point == TRACE_LSE_KEYS;
    const char *row = r->n_sequences > 1 ? "row" : "position";
    if (lse) return (d == 0) == r->rows_first ? row : "head";
    if (by_head) return d == 0 ? "head" : d == 1 ? row : "key";
    if (d == 0) return row;
    if (r->rank == 2)
        return r->point == TRACE_F2                           ? "logit"
               : r->point == TRACE_M2                         ? "expert"
               : r->point == TRACE_M3 || r->point == TRACE_M4 ? "slot"
                                                              : "coordinate";
    bool slots = r->point >= TRACE_M5 && r->point <= TRACE_M10;
    if (d == 1) return slots ? "slot" : "head";
    return "coordinate";
}

// The indices of one dimension that have an element outside.
typedef struct indices {
    size_t size, count, first, last, step;
    size_t from; // the number of the first index
    const uint8_t *has;
} indices;

static indices dimension_indices(size_t size, size_t from, const uint8_t *has) {
    indices x = {.size = size, .from = from, .has = has, .first = size};
    for (size_t i = 0; i < size; i++) {
        if (!has[i]) continue;
        if (x.count == 1) x.step = i - x.first;
        if (x.count > 1 && i - x.last != x.step) x.step = 0; // not equally spaced
        if (x.count == 0) x.first = i;
        x.last = i, x.count++;
    }
    return x;
}

static void say_indices(text *t, const char *name, const indices *x) {
    size_t first = x->from + x->first, last = x->from + x->last;
    if (x->count == x->size && x->size > 1) {
        pattern_append(t, "every %s", name);
    } else if (x->count == 1) {
        pattern_append(t, "%s %zu", name, first);
    } else if (x->step == 1 && x->last + 1 == x->size) {
        pattern_append(t, "%ss from %zu on", name, first);
    } else if (x->step == 1) {
        pattern_append(t, "%ss %zu-%zu", name, first, last);
    } else if (x->step == 2 && x->first < 2 && x->last + 2 >= x->size) {
        pattern_append(t, "%s %ss", first % 2 == 0 ? "even" : "odd", name);
    } else if (x->step > 1) {
        pattern_append(t, "%ss %zu to %zu in steps of %zu", name, first, last, x->step);
    } else {
        pattern_append(t, "%zu of %zu %ss, the first %zu, the last %zu", x->count, x->size, name,
                       first, last);
    }
}

// For scores and weights: the distances from the queries back to their keys.
static void say_distances(text *t, const sinkproof_point_report *r, const uint8_t *marks) {
    size_t rows = r->shape[0] * r->shape[1], keys = r->shape[2], nearest = SIZE_MAX, farthest = 0;
    size_t later = 0, sinks = 0, others = 0;
    for (size_t row = 0; row < rows; row++)
        for (size_t j = 0; j < keys; j++) {
            size_t i = row % r->shape[1];
            if (!marks[row * keys + j]) continue;
            bool sink = r->point == TRACE_A9 && j + 1 == keys;
            i += r->begins;
            sinks += sink, later += !sink && j > i, others += !sink && j <= i;
            if (sink || j > i) continue;
            nearest = i - j < nearest ? i - j : nearest;
            farthest = i - j > farthest ? i - j : farthest;
        }
    if (later > 0) pattern_append(t, "; %zu of keys after their query", later);
    if (sinks > 0) pattern_append(t, "; %zu of the sink", sinks);
    if (others > 0 && nearest == farthest)
        pattern_append(t, "; %zu of keys %zu before their query", others, nearest);
    else if (others > 0)
        pattern_append(t, "; %zu of keys %zu to %zu before their query", others, nearest, farthest);
}

bool pattern_describe(const sinkproof_point_report *r, const uint8_t *marks, char *out,
                      size_t size) {
    text t = {out, size, 0};
    size_t elements = 1, count = 0, box = 1, widest = 0, stride[SINKPROOF_MAX_RANK];
    for (size_t d = r->rank; d-- > 0; elements *= r->shape[d]) stride[d] = elements;
    for (size_t d = 0; d < r->rank; d++) widest = r->shape[d] > widest ? r->shape[d] : widest;
    for (size_t i = 0; i < elements; i++) count += marks[i];
    uint8_t *has = malloc(widest);
    if (has == NULL) return false;
    pattern_append(&t, "%zu of %s", count, sinkproof_counted(elements, "element").text);
    for (size_t d = 0; d < r->rank && count > 0; d++) {
        memset(has, 0, widest);
        for (size_t i = 0; i < elements; i++)
            if (marks[i]) has[i / stride[d] % r->shape[d]] = 1;
        const char *name = dimension_name(r, d);
        size_t from = strcmp(name, "position") == 0 ? r->begins : 0;
        indices x = dimension_indices(r->shape[d], from, has);
        pattern_append(&t, d == 0 ? ": " : ", ");
        say_indices(&t, name, &x);
        box *= x.count;
    }
    free(has);
    if (count > 0 && box == count && count < elements) pattern_append(&t, ", all of these");
    bool one = r->n_sequences <= 1; // a key of another sequence is at no distance
    if (count > 0 && one && sinkproof_trace_point_is_by_head(r->point)) say_distances(&t, r, marks);
    return true;
}
