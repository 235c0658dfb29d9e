// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scales of MXFP4 that are found by another stride, at an offset, or for blocks and rows of another
// size.
#include "audit/diagnose/composed_values.h"
#include "audit/diagnose/places.h"
#include "base/words.h"

#include <stdio.h>

enum { BLOCK = 32 };

typedef struct scaling {
    composing *c;
    operation o;
    size_t rows, blocks, count;
} scaling;

static bool try_scales(scaling *s, mistake_weight_edit *edit, const char *id, const char *text) {
    composing *c = s->c;
    bool fine = true;
    edit->slots = 1u << s->o.slots[0], edit->rewritten = edit->other_scales = true;
    const operation_change change = {.edit = edit};
    if (c->found != NULL || !operation_is_near(&s->o, &change)) return true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->edit = *edit, m->region = c->regions[r];
        composed_name(m, "%s-scales-%s", sinkproof_slot_name(s->o.slots[0]), id);
        composed_say(m, "%s are read with other scales: %s", composed_slot_words(s->o.slots[0]),
                     text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static sinkproof_from by_rule(size_t (*rule)(size_t i, size_t size, size_t by), size_t by) {
    return (sinkproof_from){.source = SINKPROOF_FROM_RULE, .by = (long)by, .rule = rule};
}

static bool try_stride(scaling *s, size_t stride) {
    size_t by = packed_strides(s->blocks, stride, s->rows * s->blocks);
    char id[48], text[320];
    snprintf(id, sizeof id, "stride-%zu", stride);
    snprintf(text, sizeof text,
             "scale rows of %s are read with the stride %zu: that of row r and block b is "
             "number %zu r + b",
             sinkproof_counted(s->blocks, "block").text, stride, stride);
    mistake_weight_edit edit = {.scale_stack_from = by_rule(read_from_strided, by)};
    if (!try_scales(s, &edit, id, text)) return false;
    edit = (mistake_weight_edit){.scale_stack_from = by_rule(read_from_strided_within, by)};
    return try_scales(s, &edit, id, text);
}

static bool try_offsets(scaling *s) {
    enum { MOST = 8 };
    bool fine = true;
    for (long by = 1; by <= MOST && fine; by++)
        for (int sign = -1; sign <= 1 && fine; sign += 2) {
            char id[48], text[160];
            mistake_weight_edit edit = {
                .scale_stack_from = {.source = SINKPROOF_FROM_ROLLED, .by = sign * by}};
            snprintf(id, sizeof id, "offset%+ld", sign * by);
            snprintf(text, sizeof text, "each is the one %ld %s in memory, of all rows and experts",
                     by, sign < 0 ? "before" : "on");
            fine = try_scales(s, &edit, id, text);
        }
    return fine;
}

// Of each block or row.
static bool try_units(scaling *s, bool rows) {
    static const size_t sizes[] = {2, 4, 8, 16, 32, 64, 128};
    const char *unit = rows ? "row" : "block";
    size_t all = rows ? s->rows : s->blocks;
    bool fine = true;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && sizes[k] < all && fine; k++) {
        const struct {
            size_t (*rule)(size_t i, size_t size, size_t by);
            const char *id, *text;
        } rules[] = {{read_from_first_of, "first-of", "that of the first %s of each %zu"},
                     {read_from_quotient, "over", "that of the %s with its number over %zu, cut"},
                     {read_from_modulo, "modulo", "that of the %s with its number modulo %zu"}};
        for (size_t i = 0; i < 3 && fine; i++) {
            char id[48], text[160];
            mistake_weight_edit edit = {.slots = 0};
            *(rows ? &edit.scale_row_from : &edit.scale_block_from) =
                by_rule(rules[i].rule, sizes[k]);
            snprintf(id, sizeof id, "%ss-%s-%zu", unit, rules[i].id, sizes[k]);
            snprintf(text, sizeof text, rules[i].text, unit, sizes[k]);
            fine = try_scales(s, &edit, id, text);
        }
    }
    return fine;
}

bool compose_scales(composing *c) {
    scaling s = {.c = c};
    if ((c->point != TRACE_M5 && c->point != TRACE_M9) || c->chosen_nk == NULL) return true;
    bool fine = operation_read(c, &s.o);
    const sinkproof_matrix *w = &s.o.weights[0];
    bool scaled =
        fine && s.o.whole && s.o.kind == SINKPROOF_MULTIPLY && w->dtype == SINKPROOF_DTYPE_MXFP4;
    s.rows = w->rows, s.blocks = w->cols / BLOCK, s.count = w->count;
    for (size_t stride = 1; scaled && stride <= 2 * s.blocks + 8 && stride < 4096 && fine; stride++)
        if (stride != s.blocks) fine = try_stride(&s, stride);
    for (size_t power = 16; scaled && power <= 1024 && s.blocks < power && fine; power *= 2)
        if (power > 2 * s.blocks + 8) fine = try_stride(&s, power);
    if (scaled && fine) fine = try_offsets(&s) && try_units(&s, false) && try_units(&s, true);
    operation_free(&s.o);
    return fine;
}
