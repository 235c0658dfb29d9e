// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_changes.h"

#include "audit/diagnose/places.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- numbers

static named_change *add_change(change_list *list, sinkproof_change_kind kind) {
    named_change *made = &list->of[list->n < MOST_CHANGES ? list->n++ : MOST_CHANGES - 1];
    *made = (named_change){.change = {.kind = kind, .a = -INFINITY, .b = INFINITY}};
    return made;
}

typedef struct code {
    const char *name;
    sinkproof_format format;
    double levels; // of whole numbers
} code;

static void add_rounding_by(change_list *list, const code *of, sinkproof_change_scale scale,
                            size_t block, bool wide, sinkproof_ties ties) {
    static const char *const ties_texts[] = {[SINKPROOF_TIES_AWAY] = ", ties away from zero",
                                             [SINKPROOF_TIES_DOWN] = ", ties toward zero",
                                             [SINKPROOF_CUT] = ", toward zero: cut, truncated"};
    static const char *const scale_ids[] = {[SINKPROOF_UNSCALED] = "",
                                            [SINKPROOF_SCALED_BY_TENSOR] = "-by-tensor",
                                            [SINKPROOF_SCALED_BY_ROW] = "-by-row",
                                            [SINKPROOF_SCALED_BY_BLOCK] = "-by-block",
                                            [SINKPROOF_SCALED_BY_POWER] = "-by-power",
                                            [SINKPROOF_SCALED_BY_POWER_UP] = "-by-power-up",
                                            [SINKPROOF_SCALED_BY_POWER_NEAREST] = "-by-nearest",
                                            [SINKPROOF_SCALED_BY_POWER_DOWN] = "-by-power-down"};
    static const char *const powers[] = {
        [SINKPROOF_SCALED_BY_POWER] = "a power of two for each block of %zu",
        [SINKPROOF_SCALED_BY_POWER_UP] = "a power of two for each block of %zu, rounded up",
        [SINKPROOF_SCALED_BY_POWER_NEAREST] = "the nearest power of two for each block of %zu",
        [SINKPROOF_SCALED_BY_POWER_DOWN] =
            "a power of two for each block of %zu, rounded down: the largest saturate"};
    named_change *made = add_change(list, SINKPROOF_CHANGE_ROUND);
    made->change.format = of->format, made->change.levels = of->levels, made->change.ties = ties;
    made->change.scale = scale, made->change.block = block, made->change.wide = wide;
    char in[96] = "", size[24] = "";
    if (scale == SINKPROOF_SCALED_BY_TENSOR) snprintf(in, sizeof in, " with one scale");
    if (scale == SINKPROOF_SCALED_BY_ROW) snprintf(in, sizeof in, " with a scale for each row");
    if (scale == SINKPROOF_SCALED_BY_BLOCK)
        snprintf(in, sizeof in, " with a scale for each block of %zu", block);
    if (scale >= SINKPROOF_SCALED_BY_POWER) {
        snprintf(in, sizeof in, " with ");
        snprintf(in + 6, sizeof in - 6, powers[scale], block);
    }
    snprintf(made->text, sizeof made->text, "rounded to %s%s%s", of->name, in,
             ties == SINKPROOF_TIES_TO_EVEN ? "" : ties_texts[ties]);
    if (block > 0) snprintf(size, sizeof size, "-%zu", block);
    snprintf(made->id, sizeof made->id, "%.8s%s%s%s%s", of->name, scale_ids[scale], wide ? "s" : "",
             size,
             ties == SINKPROOF_TIES_AWAY   ? "-away"
             : ties == SINKPROOF_TIES_DOWN ? "-down"
             : ties == SINKPROOF_CUT       ? "-cut"
                                           : "");
}

// Ties to even first. Numbers of a few bits tie often; long codes, whole numbers and those without
// a scale are also cut.
static void add_rounding(change_list *list, const code *of, sinkproof_change_scale scale,
                         size_t block, bool wide) {
    bool tied = of->levels > 0 || of->format == SINKPROOF_E2M1;
    add_rounding_by(list, of, scale, block, wide, SINKPROOF_TIES_TO_EVEN);
    if (tied) add_rounding_by(list, of, scale, block, wide, SINKPROOF_TIES_AWAY);
    if (tied) add_rounding_by(list, of, scale, block, wide, SINKPROOF_TIES_DOWN);
    if (of->levels > 0 || scale == SINKPROOF_UNSCALED)
        add_rounding_by(list, of, scale, block, wide, SINKPROOF_CUT);
}

void list_roundings(change_list *list, bool wide) {
    static const code codes[] = {{"e4m3", SINKPROOF_E4M3, 0},   {"e5m2", SINKPROOF_E5M2, 0},
                                 {"int8", SINKPROOF_REAL, 127}, {"int4", SINKPROOF_REAL, 7},
                                 {"e2m1", SINKPROOF_E2M1, 0},   {"bf16", SINKPROOF_BF16, 0},
                                 {"f16", SINKPROOF_F16, 0}};
    static const size_t blocks[] = {16, 32, 64, 128};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        bool whole = codes[i].levels > 0, long_codes = i >= 5;
        if (!whole && !wide) add_rounding(list, &codes[i], SINKPROOF_UNSCALED, 0, false);
        if (long_codes) continue;
        if (!wide) add_rounding(list, &codes[i], SINKPROOF_SCALED_BY_TENSOR, 0, false);
        add_rounding(list, &codes[i], SINKPROOF_SCALED_BY_ROW, 0, wide);
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0] && !wide; b++) {
            add_rounding(list, &codes[i], SINKPROOF_SCALED_BY_BLOCK, blocks[b], false);
            if (!whole && blocks[b] <= 32)
                add_rounding(list, &codes[i], SINKPROOF_SCALED_BY_POWER, blocks[b], false);
            for (int scale = SINKPROOF_SCALED_BY_POWER_UP;
                 !whole && blocks[b] % 96 == 32 && scale <= SINKPROOF_SCALED_BY_POWER_DOWN; scale++)
                add_rounding(list, &codes[i], (sinkproof_change_scale)scale, blocks[b], false);
        }
    }
}

static void add_clamp(change_list *list, double low, double high) {
    named_change *made = add_change(list, SINKPROOF_CHANGE_CLAMP);
    made->change.a = low, made->change.b = high;
    snprintf(made->id, sizeof made->id, "clamp%+g%+g", low, high);
    if (low == -high)
        snprintf(made->text, sizeof made->text, "clamped to %g on both sides", high);
    else if (isinf(low))
        snprintf(made->text, sizeof made->text, "clamped to at most %g", high);
    else
        snprintf(made->text, sizeof made->text, "clamped to at least %g", low);
}

void list_clamps(change_list *list, double largest) {
    static const double limits[] = {0,  0.5, 1,  1.5, 2,  2.5, 3,  3.5, 4,   4.5,
                                    5,  6,   7,  8,   10, 12,  15, 16,  20,  24,
                                    25, 30,  32, 40,  50, 60,  64, 100, 240, 448};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        double at = limits[i];
        if (at >= 8 * largest) break; // a cap changes smaller numbers too
        if (at < largest) {
            if (at > 0) add_clamp(list, -at, at);
            add_clamp(list, -INFINITY, at);
            add_clamp(list, -at + 0, INFINITY);
        }
        if (at < 1) continue;
        named_change *cap = add_change(list, SINKPROOF_CHANGE_CAP);
        cap->change.a = at;
        snprintf(cap->id, sizeof cap->id, "cap-%g", at);
        snprintf(cap->text, sizeof cap->text, "capped: %g tanh(x/%g)", at, at);
    }
}

void list_functions(change_list *list, bool wide, double eps) {
    static const struct {
        sinkproof_change_kind kind;
        const char *id, *text;
    } functions[] = {
        {SINKPROOF_CHANGE_SIZE, "absolute", "taken without the sign: absolute values"},
        {SINKPROOF_CHANGE_SQUARE, "squared", "squared: applied twice"},
        {SINKPROOF_CHANGE_SIGMOID, "sigmoid", "replaced by its sigmoid"},
        {SINKPROOF_CHANGE_OVER_SUM, "over-sum", "renormalised: divided by the sum of the row"},
        {SINKPROOF_CHANGE_OVER_LARGEST, "over-largest", "divided by the largest size in the row"},
        {SINKPROOF_CHANGE_OVER_LENGTH, "over-length", "divided by the length of the row"},
        {SINKPROOF_CHANGE_OVER_RMS, "over-rms",
         "normalised once more: divided by the root mean square of the row"},
        {SINKPROOF_CHANGE_SOFTMAX, "softmax", "replaced by the softmax of the row"},
        {SINKPROOF_CHANGE_LOG_SOFTMAX, "log-softmax",
         "replaced by log-probabilities, the log-softmax of the row"},
        {SINKPROOF_CHANGE_CENTRED, "centred", "less the mean of the row"}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        sinkproof_change asked = {.kind = functions[i].kind};
        if (wide && !sinkproof_change_is_of_rows(&asked)) continue;
        named_change *made = add_change(list, functions[i].kind);
        made->change.wide = wide;
        snprintf(made->id, sizeof made->id, "%s%s", functions[i].id, wide ? "s" : "");
        snprintf(made->text, sizeof made->text, "%s", functions[i].text);
        if (functions[i].kind != SINKPROOF_CHANGE_OVER_RMS || eps <= 0) continue;
        named_change *with = add_change(list, functions[i].kind);
        *with = *made, with->change.a = eps;
        snprintf(with->id, sizeof with->id, "over-rms-eps%s", wide ? "s" : "");
        snprintf(with->text, sizeof with->text,
                 "normalised: divided by the root mean square of the row, with epsilon");
    }
}

void list_codes(change_list *list) {
    static const struct {
        double a;
        bool signed_codes;
        const char *id, *text;
    } kinds[] = {
        {1, false, "", ""},
        {0, false, "-zero-point-lost", ", and the zero point is not added back"},
        {2, false, "-zero-point-twice", ", and the zero point is added twice"},
        {-1, false, "-zero-point-negated", ", and the zero point has the opposite sign"},
        {1, true, "-signed", ", and the codes are read as signed: half of their number too small"},
        {0, true, "-signed-zero-point-lost",
         ", and the codes are read as signed, without the zero point"}};
    static const struct {
        double levels;
        int bits;
    } widths[] = {{255, 8}, {15, 4}, {3, 2}};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            named_change *made = add_change(list, SINKPROOF_CHANGE_CODED);
            made->change.levels = widths[w].levels, made->change.a = kinds[i].a;
            made->change.b = kinds[i].signed_codes ? (widths[w].levels + 1) / 2 : 0;
            snprintf(made->id, sizeof made->id, "uint%d%s", widths[w].bits, kinds[i].id);
            snprintf(
                made->text, sizeof made->text,
                "rounded to unsigned %d-bit codes with a scale and a zero point (the minimum) of "
                "each row%s",
                widths[w].bits, kinds[i].text);
        }
    static const code codes[] = {{"e4m3", SINKPROOF_E4M3, 0},
                                 {"e5m2", SINKPROOF_E5M2, 0},
                                 {"int8", SINKPROOF_REAL, 127},
                                 {"int4", SINKPROOF_REAL, 7}};
    static const struct {
        double power;
        const char *id, *text;
    } powers[] = {{0, "scale-lost", "is not multiplied back: the codes are read alone"},
                  {2, "scale-twice", "is multiplied back twice"},
                  {-1, "scale-divided", "is divided by once more, not multiplied back"}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        for (size_t p = 0; p < sizeof powers / sizeof powers[0]; p++) {
            named_change *made = add_change(list, SINKPROOF_CHANGE_OVERSCALED);
            made->change.format = codes[i].format, made->change.levels = codes[i].levels;
            made->change.a = powers[p].power;
            snprintf(made->id, sizeof made->id, "%s-%s", codes[i].name, powers[p].id);
            snprintf(made->text, sizeof made->text,
                     "rounded to %s with a scale for each row, which %s", codes[i].name,
                     powers[p].text);
        }
}

void list_signs(change_list *list) {
    named_change *made = add_change(list, SINKPROOF_CHANGE_SIZE);
    snprintf(made->id, sizeof made->id, "absolute");
    snprintf(made->text, sizeof made->text, "taken without the sign: absolute values");
    made = add_change(list, SINKPROOF_CHANGE_SQUARE);
    snprintf(made->id, sizeof made->id, "squared");
    snprintf(made->text, sizeof made->text, "squared: applied twice");
    made = add_change(list, SINKPROOF_CHANGE_CLAMP);
    made->change.a = made->change.b = 0;
    snprintf(made->id, sizeof made->id, "zero");
    snprintf(made->text, sizeof made->text, "left out: zeros");
    made = add_change(list, SINKPROOF_CHANGE_CLAMP);
    made->change.a = made->change.b = 1;
    snprintf(made->id, sizeof made->id, "ones");
    snprintf(made->text, sizeof made->text, "left out: ones");
    static const double steps[] = {7, 8, 15, 16, 127, 128, 255, 256};
    for (size_t i = 0; i < 4 * (sizeof steps / sizeof steps[0]); i++) {
        double sign = i % 2 == 0 ? 1 : -1, step = steps[i / 4];
        bool rounded = i / 2 % 2 == 1; // the step is kept in the format of the weights
        made = add_change(list, SINKPROOF_CHANGE_SHIFTED);
        made->change.a = sign / step;
        if (rounded) made->change.format = SINKPROOF_BF16;
        snprintf(made->id, sizeof made->id, "zero-point%+g%s", sign * step, rounded ? "-bf16" : "");
        snprintf(made->text, sizeof made->text,
                 "shifted by a constant in each row: %s1/%g of its largest size (a zero point)",
                 sign < 0 ? "-" : "", step);
    }
    add_clamp(list, -INFINITY, 0);
    add_clamp(list, 0, INFINITY);
}

// ---- places

static void add_rule(rule_list *list, sinkproof_from from, const char *id, const char *text) {
    if (list->n == MOST_RULES) return;
    named_rule *made = &list->of[list->n++];
    made->from = from;
    snprintf(made->id, sizeof made->id, "%s", id);
    snprintf(made->text, sizeof made->text, "%s", text);
}

// An order by a rule, with its first places.
static void add_order(rule_list *list, sinkproof_from from, size_t size, const char *id,
                      const char *text) {
    char with[208];
    size_t at[4];
    for (size_t i = 0; i < 4; i++)
        at[i] = i < size ? sinkproof_from_index(&from, i, size) : SIZE_MAX;
    if (at[3] != SIZE_MAX && size > 4)
        snprintf(with, sizeof with, "%s (in the order %zu, %zu, %zu, %zu, ...)", text, at[0], at[1],
                 at[2], at[3]);
    else
        snprintf(with, sizeof with, "%s", text);
    add_rule(list, from, id, with);
}

static void add_shift(rule_list *list, long by, const char *word, const char *one) {
    char id[40], text[112];
    snprintf(id, sizeof id, "rolled%+ld", by);
    snprintf(text, sizeof text, "shifted: each %s is the %s one, in a circle", word, one);
    add_rule(list, (sinkproof_from){.source = SINKPROOF_FROM_ROLLED, .by = by}, id, text);
}

// Orders within equal blocks.
static void add_orders(rule_list *list, size_t size, size_t block, const char *id_of,
                       const char *of) {
    static const struct {
        size_t (*rule)(size_t i, size_t size, size_t by);
        const char *id, *text;
    } rules[] = {
        {read_from_half_turned, "half-turned", "exchanged by halves"},
        {read_from_reversed_in, "reversed", "in reverse order"},
        {read_from_halves, "halves", "interleaved: halves where neighbours belong"},
        {read_from_neighbours, "neighbours", "taken apart: neighbours where halves belong"}};
    char id[40], text[112];
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (block % 2 != 0 && rules[i].rule != read_from_reversed_in) continue;
        snprintf(id, sizeof id, "%s%s", rules[i].id, id_of);
        snprintf(text, sizeof text, "%s%s", rules[i].text, of);
        add_order(list,
                  (sinkproof_from){
                      .source = SINKPROOF_FROM_RULE, .by = (long)block, .rule = rules[i].rule},
                  size, id, text);
    }
}

void list_rules(rule_list *list, size_t size, size_t unit, const char *word, const char *units) {
    char of[64], text[112];
    bool parts = unit > 1 && unit < size && size % unit == 0;
    list->n = 0;
    if (size < 2) return;
    snprintf(of, sizeof of, ": each %s has those of the other %s", units, units);
    add_orders(list, size, size, "", parts && size == 2 * unit ? of : "");
    add_shift(list, 1, word, "next");
    add_shift(list, -1, word, "previous");
    snprintf(text, sizeof text, "exchanged in pairs: %ss 2i and 2i + 1", word);
    add_rule(list,
             (sinkproof_from){.source = SINKPROOF_FROM_RULE, .by = 0, .rule = read_from_pairs},
             "pairs", text);
    if (!parts) return;
    snprintf(of, sizeof of, " within each %s", units);
    if (unit > 2) add_orders(list, size, unit, "-in", of);
    if (size / unit < 3) return;
    add_shift(list, (long)unit, units, "next");
    add_shift(list, -(long)unit, units, "previous");
    snprintf(text, sizeof text, "transposed: read %s by %s", word, word);
    add_order(list,
              (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                               .by = (long)(size / unit),
                               .rule = read_from_transposed},
              size, "transposed", text);
}

void list_more_rules(rule_list *list, size_t size, const char *word) {
    char id[40], text[144];
    list->n = 0;
    for (size_t parts = 2; parts <= 8; parts *= 2) {
        size_t each = size / parts;
        if (size % parts != 0 || each < 4) continue;
        snprintf(id, sizeof id, "-in-%zu", each);
        snprintf(text, sizeof text, " within each part of %zu %ss, of %zu", each, word, parts);
        add_orders(list, size, each, id, text);
    }
    // of positions others say it: they begin anew
    bool places = strcmp(word, "position") != 0;
    for (size_t parts = 2; places && parts <= 8 && size / parts >= 4; parts++) {
        size_t each = size / parts;
        if (size % parts != 0) continue;
        snprintf(id, sizeof id, "repeated-%zu", each);
        snprintf(text, sizeof text,
                 "repeated: the first %zu %ss again in each later part of %zu, as a rank that "
                 "holds the first part",
                 each, word, each);
        add_order(list,
                  (sinkproof_from){
                      .source = SINKPROOF_FROM_RULE, .by = (long)each, .rule = read_from_modulo},
                  size, id, text);
    }
    for (size_t each = 4; each < size && each <= 64; each *= 2)
        for (int before = 0; before < 2; before++) {
            snprintf(id, sizeof id, "rolled%s-in-%zu", before ? "-1" : "+1", each);
            snprintf(text, sizeof text, "shifted: each %s is the %s one, in a circle of each %zu",
                     word, before ? "previous" : "next", each);
            add_order(list,
                      (sinkproof_from){.source = SINKPROOF_FROM_RULE,
                                       .by = (long)each,
                                       .rule = before ? read_from_before_in : read_from_next_in},
                      size, id, text);
        }
    for (size_t a = 3; a < size && 3 * a <= size && a <= 512; a++) {
        if (size % a != 0) continue;
        snprintf(id, sizeof id, "transposed-%zu", a);
        snprintf(text, sizeof text, "permuted: transposed, %zu by %zu", size / a, a);
        add_order(list,
                  (sinkproof_from){
                      .source = SINKPROOF_FROM_RULE, .by = (long)a, .rule = read_from_transposed},
                  size, id, text);
    }
}
