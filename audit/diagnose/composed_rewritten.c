// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights that are rewritten: rounded, with other scales, in another order, those of others.
#include "audit/diagnose/composed_changes.h"
#include "audit/diagnose/composed_values.h"
#include "audit/diagnose/places.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 1 << 24 };

typedef struct rewriting {
    composing *c;
    operation o;
    size_t which;      // of the weights
    double *largest_e; // NULL: not known
} rewriting;

static const sinkproof_matrix *stack_of(const rewriting *w) {
    return &w->o.weights[w->which];
}

static bool rewrites_to(const rewriting *w, const mistake_weight_edit *edit) {
    const operation_change change = {.edit = edit, .largest_e = w->largest_e, .edited = w->which};
    bool known = !weight_edit_needs_largest(edit) || w->largest_e != NULL;
    return known && operation_is_near(&w->o, &change);
}

static const char *are_or_is(const char *words) {
    const char *of = words;
    for (; *of != '\0' && *of != ' '; of++) continue;
    // "the bias of ...", "the embedding"
    bool one = of[0] == ' ' && (of[1] == 'e' || of[1] == 'u' || (of[1] == 'b' && of[5] == ' '));
    return one ? "is" : "are";
}

// `where`: of the weight, in words; or "".
static bool try_edit_kept(rewriting *w, const mistake_weight_edit *edit, sinkproof_format kept,
                          const sinkproof_region *region, const char *id, const char *text,
                          const char *where) {
    composing *c = w->c;
    const char *words = composed_slot_words(w->o.slots[w->which]);
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->edit = *edit, m->edit.kept = kept, m->region = *region;
    composed_name(m, "%s-%s", sinkproof_slot_name(w->o.slots[w->which]), id);
    composed_say(m, "%s %s %s%s", words, are_or_is(words), text, where);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_edit(rewriting *w, mistake_weight_edit *edit, const char *id, const char *text,
                     const char *where) {
    composing *c = w->c;
    bool fine = true, narrow = stack_of(w)->kept == SINKPROOF_BF16 ||
                               stack_of(w)->dtype == SINKPROOF_DTYPE_BF16 ||
                               stack_of(w)->dtype == SINKPROOF_DTYPE_MXFP4;
    edit->slots = 1u << w->o.slots[w->which], edit->rewritten = true;
    if (composed_slot_words(w->o.slots[w->which]) == NULL || !rewrites_to(w, edit)) return true;
    bool scaled =
        edit->change.kind == SINKPROOF_CHANGE_ROUND && edit->change.scale != SINKPROOF_UNSCALED;
    bool rounds = narrow && (scaled || edit->change.kind == SINKPROOF_CHANGE_SQUARE ||
                             edit->change.kind == SINKPROOF_CHANGE_SHIFTED);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fine = try_edit_kept(w, edit, SINKPROOF_REAL, &c->regions[r], id, text, where);
        if (fine && rounds && c->found == NULL)
            fine = try_edit_kept(w, edit, SINKPROOF_BF16, &c->regions[r], id, text, where);
    }
    return fine;
}

// ---- numbers

typedef struct part_of_columns {
    sinkproof_indices in;
    const char *id, *text;
} part_of_columns;

static bool try_changes(rewriting *w, const change_list *list, bool of_codes) {
    size_t cols = stack_of(w)->cols;
    const part_of_columns parts[] = {
        {{0}, "", ""},
        {{.first = 1, .end = cols, .step = 2}, "-odd", ", in odd columns"},
        {{.first = 0, .end = cols, .step = 2}, "-even", ", in even columns"}};
    bool fine = true;
    for (size_t i = 0; i < list->n && fine && w->c->found == NULL; i++)
        for (size_t p = 0; p < 3 && fine && w->c->found == NULL; p++) {
            char id[80], text[192];
            mistake_weight_edit edit = {
                .columns = parts[p].in, .change = list->of[i].change, .of_codes = of_codes};
            if (p > 0 && list->of[i].change.kind >= SINKPROOF_CHANGE_ROUND) break;
            snprintf(id, sizeof id, "%s%s%s", of_codes ? "codes-" : "", list->of[i].id,
                     parts[p].id);
            snprintf(text, sizeof text, "%s%s", of_codes ? "read with codes " : "",
                     list->of[i].text);
            fine = try_edit(w, &edit, id, text, parts[p].text);
        }
    return fine;
}

static bool try_numbers(rewriting *w) {
    bool codes = stack_of(w)->dtype == SINKPROOF_DTYPE_MXFP4;
    change_list *list = malloc(sizeof *list);
    bool fine = list != NULL || fail_for_memory(w->c->s);
    for (int kind = 0; kind < (codes ? 3 : 2) && fine && w->c->found == NULL; kind++) {
        list->n = 0;
        if (kind == 0) list_roundings(list, false);
        if (kind == 1) list_signs(list);
        if (kind == 2) list_clamps(list, 6);
        fine = try_changes(w, list, kind == 2);
    }
    free(list);
    return fine;
}

// ---- scales of MXFP4

static bool try_scales(rewriting *w) {
    static const struct {
        sinkproof_from expert, row, block;
        const char *id, *text;
    } others[] = {
#define ON(places) {.source = SINKPROOF_FROM_ROLLED, .by = places}
        {ON(0), ON(0), ON(1), "scales-of-next-block", "read with the scales of the next block"},
        {ON(0), ON(0), ON(-1), "scales-of-block-before",
         "read with the scales of the block before"},
        {ON(0), ON(1), ON(0), "scales-of-next-row", "read with the scales of the next row"},
        {ON(0), ON(-1), ON(0), "scales-of-row-before", "read with the scales of the row before"},
        {ON(1), ON(0), ON(0), "scales-of-next-expert", "read with the scales of the next expert"},
        {ON(-1), ON(0), ON(0), "scales-of-expert-before",
         "read with the scales of the expert before"},
        {ON(0),
         ON(0),
         {.source = SINKPROOF_FROM_FIXED, .by = 0},
         "scales-of-first-block",
         "read with the scale of the first block in each row"},
        {{.source = SINKPROOF_FROM_FIXED, .by = 0},
         ON(0),
         ON(0),
         "scales-of-expert-0",
         "read with the scales of expert 0"},
#undef ON
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && fine && w->c->found == NULL; i++) {
        mistake_weight_edit edit = {.other_scales = true,
                                    .scale_expert_from = others[i].expert,
                                    .scale_row_from = others[i].row,
                                    .scale_block_from = others[i].block};
        fine = try_edit(w, &edit, others[i].id, others[i].text, "");
    }
    return fine;
}

static bool try_scale_order(rewriting *w, int which, sinkproof_from from, const char *id,
                            const char *text) {
    mistake_weight_edit edit = {.other_scales = true};
    *(which == 0   ? &edit.scale_row_from
      : which == 1 ? &edit.scale_block_from
                   : &edit.scale_from) = from;
    return w->c->found != NULL || try_edit(w, &edit, id, text, "");
}

// Scales in another order: rows, blocks, or all of a matrix, transposed (in tiles); those of a
// tensor core's layout.
static bool try_scale_orders(rewriting *w) {
    static const char *const words[] = {"rows", "blocks", "scales"};
    size_t rows = stack_of(w)->rows, blocks = stack_of(w)->cols / 32;
    bool fine = true;
    char id[64], text[160];
    for (int which = 0; which < 3; which++) {
        size_t size = which == 0 ? rows : which == 1 ? blocks : rows * blocks;
        for (size_t a = 2; a < size && a <= 4096 && fine && w->c->found == NULL; a++) {
            if (size % a != 0) continue;
            snprintf(id, sizeof id, "scales-%s-transposed-%zu", words[which], a);
            snprintf(text, sizeof text,
                     "read with the scales of other rows: their %s in another order, transposed "
                     "(%zu by %zu), as a swizzle leaves them",
                     words[which], size / a, a);
            fine = try_scale_order(w, which,
                                   (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                                                    .by = (long)a,
                                                    .rule = read_from_transposed},
                                   id, text);
            for (size_t in = 2; in < a && fine && w->c->found == NULL && a >= 8; in *= 2) {
                if (a % in != 0) continue;
                snprintf(id, sizeof id, "scales-%s-in-%zu-transposed-%zu", words[which], a, in);
                snprintf(text, sizeof text,
                         "read with the scales of other rows: their %s transposed (%zu by %zu) in "
                         "tiles of %zu, a swizzle",
                         words[which], a / in, in, a);
                fine = try_scale_order(w, which,
                                       (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                                                        .by = (long)(a | in << 32),
                                                        .rule = read_from_tiles},
                                       id, text);
            }
        }
        if (size < 2 || !fine || w->c->found != NULL) continue;
        snprintf(id, sizeof id, "scales-%s-in-pairs", words[which]);
        snprintf(text, sizeof text, "read with their scales' %s exchanged in pairs of neighbours",
                 words[which]);
        fine = try_scale_order(
            w, which, (sinkproof_from){.source = SINKPROOF_FROM_RULE, .rule = read_from_pairs}, id,
            text);
        snprintf(id, sizeof id, "scales-%s-halves", words[which]);
        snprintf(text, sizeof text, "read with their scales' %s exchanged by halves", words[which]);
        if (fine && size % 2 == 0)
            fine = try_scale_order(w, which,
                                   (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                                                    .by = (long)size,
                                                    .rule = read_from_half_turned},
                                   id, text);
        if (!fine || w->c->found != NULL) continue;
        snprintf(id, sizeof id, "scales-%s-reversed", words[which]);
        snprintf(text, sizeof text, "read with their scales' %s in reverse order", words[which]);
        fine = try_scale_order(
            w, which, (sinkproof_from){.source = SINKPROOF_FROM_MIRRORED, .by = (long)size - 1}, id,
            text);
    }
    return fine && try_scale_order(w, 2,
                                   (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                                                    .by = (long)blocks,
                                                    .rule = read_from_swizzled},
                                   "scales-swizzled",
                                   "read with scales in the swizzled order of tensor cores (128 "
                                   "rows by 4 blocks)");
}

// ---- orders

static size_t unit_of_rows(const rewriting *w) {
    const sinkproof_config *config = w->c->s->trials.config;
    sinkproof_slot slot = w->o.slots[w->which];
    bool heads = slot == SINKPROOF_W_Q || slot == SINKPROOF_B_Q || slot == SINKPROOF_W_K ||
                 slot == SINKPROOF_B_K || slot == SINKPROOF_W_V || slot == SINKPROOF_B_V;
    return heads ? config->head_dim : 1;
}

static size_t unit_of_columns(const rewriting *w) {
    const sinkproof_config *config = w->c->s->trials.config;
    return w->o.slots[w->which] == SINKPROOF_W_O         ? config->head_dim
           : stack_of(w)->dtype == SINKPROOF_DTYPE_MXFP4 ? 32
                                                         : 1;
}

static bool try_order(rewriting *w, bool rows, size_t size, size_t unit, const char *units) {
    bool fine = true, vector = stack_of(w)->rows == 1;
    rule_list *list = malloc(sizeof *list);
    if (list == NULL) return fail_for_memory(w->c->s);
    const char *word = vector ? "element" : rows ? "row" : "column";
    for (int more = 0; more < 2; more++) {
        if (more)
            list_more_rules(list, size, word);
        else
            list_rules(list, size, unit, word, units);
        for (size_t i = 0; i < list->n && fine && w->c->found == NULL; i++) {
            char id[64], text[240];
            mistake_weight_edit edit = {.slots = 0};
            *(rows && !vector ? &edit.row_from : &edit.column_from) = list->of[i].from;
            snprintf(id, sizeof id, "%ss-%s", word, list->of[i].id);
            snprintf(text, sizeof text, "read with the %ss %s", word, list->of[i].text);
            fine = try_edit(w, &edit, id, text, "");
        }
    }
    free(list);
    return fine;
}

static bool try_orders(rewriting *w) {
    const sinkproof_matrix *stack = stack_of(w);
    bool fine = true;
    if (stack->rows == 1) return try_order(w, true, stack->cols, unit_of_rows(w), "head");
    if (w->o.kind != SINKPROOF_EMBED)
        fine = try_order(w, true, stack->rows, unit_of_rows(w), "head");
    if (!fine || w->c->found != NULL) return fine;
    return try_order(w, false, stack->cols, unit_of_columns(w),
                     w->o.slots[w->which] == SINKPROOF_W_O ? "head" : "block");
}

// The columns, or the rows, of one head from those of another.
static bool try_other_heads(rewriting *w) {
    const sinkproof_config *config = w->c->s->trials.config;
    bool columns = w->o.slots[w->which] == SINKPROOF_W_O, vector = stack_of(w)->rows == 1;
    size_t d = config->head_dim, size = columns || vector ? stack_of(w)->cols : stack_of(w)->rows;
    if (!columns && unit_of_rows(w) == 1) return true;
    bool fine = true;
    for (size_t h = 0; h < size / d && size / d <= 16; h++)
        for (size_t from = 0; from < size / d && fine && w->c->found == NULL; from++) {
            char id[64], text[96];
            mistake_weight_edit edit = {.slots = 0};
            const sinkproof_indices head = {.first = h * d, .end = (h + 1) * d};
            const sinkproof_from other = {.source = SINKPROOF_FROM_ROLLED,
                                          .by = (long)(from * d) - (long)(h * d)};
            if (from == h) continue;
            if (columns || vector)
                edit.columns = head, edit.column_from = other;
            else
                edit.rows = head, edit.row_from = other;
            snprintf(id, sizeof id, "head-%zu-is-%zu", h, from);
            snprintf(text, sizeof text, "those of head %zu for head %zu, which reads head %zu's",
                     from, h, from);
            fine = try_edit(w, &edit, id, text, "");
        }
    return fine;
}

// Each head's rows of a weight, and its part of the bias, as their mean over all heads.
static bool try_averaged_heads(rewriting *w) {
    composing *c = w->c;
    mistake_weight_edit edit = {.averaged = c->s->trials.config->head_dim, .rewritten = true};
    const operation_change both = {.edit = &edit, .edited = SIZE_MAX};
    bool fine = true;
    if (w->o.slots[w->which] == SINKPROOF_W_O || unit_of_rows(w) == 1) return true;
    if (!operation_is_near(&w->o, &both)) return true;
    const size_t which = w->which;
    for (size_t i = 0; i < w->o.n_weights; i++) edit.slots |= 1u << w->o.slots[i];
    w->which = 0; // the words begin with the weights
    for (size_t r = 0; r < 2 * c->n_regions && fine && c->found == NULL; r++)
        fine =
            try_edit_kept(w, &edit, r % 2 == 0 ? SINKPROOF_REAL : SINKPROOF_BF16,
                          &c->regions[r / 2], "heads-averaged",
                          "averaged: each head has the mean of all heads, and so has the bias", "");
    w->which = which;
    return fine;
}

// ---- those of another slot, which has as many numbers

static bool borrow_slot(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->borrowed = true, e->from = (sinkproof_slot)m->numbers[0];
    e->layer_by = (int)m->numbers[1];
    return true;
}

static bool try_slot(rewriting *w, sinkproof_slot from, int layer_by) {
    composing *c = w->c;
    size_t layer = w->o.layer + (size_t)(layer_by + 1) - 1;
    const sinkproof_matrix *own = stack_of(w);
    sinkproof_matrix other = sinkproof_model_slot(c->s->trials.suspect.model, layer, from);
    if (other.count != own->count || other.rows != own->rows || other.cols != own->cols)
        return true;
    operation as = w->o;
    as.weights[w->which] = other;
    const operation_change change = {.input = 0};
    bool fine = true;
    if (!operation_is_near(&as, &change)) return true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = borrow_slot, m->mistake.slots = 1u << w->o.slots[w->which];
        m->numbers[0] = from, m->numbers[1] = layer_by, m->region = c->regions[r];
        const char *words = composed_slot_words(w->o.slots[w->which]);
        composed_name(m, "%s-is-%s", sinkproof_slot_name(w->o.slots[w->which]),
                      sinkproof_slot_name(from));
        composed_say(m, "%s %s in the place of %s%s", composed_slot_words(from),
                     are_or_is(composed_slot_words(from))[0] == 'i' ? "stands" : "stand", words,
                     layer_by == -1  ? ", of the layer before"
                     : layer_by == 1 ? ", of the next layer"
                                     : "");
        if (!sinkproof_trace_point_is_layered(c->point))
            composed_say(m, " (layer %zu)", layer);
        else if (layer_by < -1 || layer_by > 1)
            composed_say(m, ", of the layer %d %s", layer_by < 0 ? -layer_by : layer_by,
                         layer_by < 0 ? "before" : "on");
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_slots(rewriting *w) {
    long layers = (long)w->c->s->trials.config->n_layers, own = (long)w->o.layer;
    bool fine = true;
    for (long step = 0; step < 2 * layers; step++) {
        long by = step % 2 == 0 ? step / 2 : -(step + 1) / 2; // the nearest layers first
        if (own + by < 0 || own + by >= layers) continue;
        for (int s = 0; s < SINKPROOF_SLOTS && fine && w->c->found == NULL; s++)
            if ((s != (int)w->o.slots[w->which] || by != 0) &&
                composed_slot_words((sinkproof_slot)s) != NULL)
                fine = try_slot(w, (sinkproof_slot)s, (int)by);
    }
    return fine;
}

// ---- all

static bool rewrite(rewriting *w) {
    const composing *c = w->c;
    bool fine;
    w->largest_e = malloc((stack_of(w)->count + 1) * sizeof *w->largest_e);
    if (w->largest_e == NULL) return fail_for_memory(c->s);
    if (!weight_largest_sizes(stack_of(w), MOST_NUMBERS, w->largest_e)) {
        free(w->largest_e);
        w->largest_e = NULL;
    }
    fine = try_slots(w);
    if (fine && c->found == NULL) fine = try_numbers(w);
    if (fine && c->found == NULL && stack_of(w)->dtype == SINKPROOF_DTYPE_MXFP4)
        fine = try_scales(w) && (c->found != NULL || try_scale_orders(w));
    if (fine && c->found == NULL) fine = try_other_heads(w);
    if (fine && c->found == NULL) fine = try_averaged_heads(w);
    if (fine && c->found == NULL) fine = try_orders(w);
    free(w->largest_e);
    return fine;
}

bool compose_rewritten(composing *c) {
    rewriting w = {.c = c};
    bool fine = operation_read(c, &w.o);
    for (size_t i = w.o.n_weights; fine && w.o.whole && i-- > 0 && c->found == NULL;) {
        w.which = i;
        fine = rewrite(&w);
    }
    operation_free(&w.o);
    return fine;
}
