// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a policy says of one point: a format, or of a running sum the unit that adds it up.
#include "ref/policy_rounding.h"

#include "base/words.h"
#include "ref/scaled.h"
#include "ref/tensor_core.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append_word(char *list, size_t size, const char *word) {
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

bool parse_format(const char *word, int known, sinkproof_format *format) {
    for (int f = 0; f < known; f++) {
        if (strcmp(word, sinkproof_format_name((sinkproof_format)f)) != 0) continue;
        *format = (sinkproof_format)f;
        return true;
    }
    return false;
}

// "tensor-core(25,16)", "tensor-core(25,16,1)" or "hopper".
static bool parse_core(const char *value, sinkproof_rounding *rounding) {
    int bits = 0, block = 0, parts = 0, end = 0, read = 0;
    for (const sinkproof_core_name *core = core_names; core->name != NULL; core++)
        if (strcmp(value, core->name) == 0) bits = core->bits, block = core->block;
    if (bits == 0) {
        read = sscanf(value, "tensor-core(%3d,%3d%n,%3d%n", &bits, &block, &end, &parts, &end);
        if (read < 2 || strcmp(value + end, ")") != 0) return false;
    }
    if (bits < 1 || bits > SINKPROOF_CORE_BITS || block < 1 || block > SINKPROOF_CORE_BLOCK ||
        parts < (read == 3 ? 1 : 0) || parts > UCHAR_MAX)
        return false;
    *rounding = (sinkproof_rounding){.format = SINKPROOF_TENSOR_CORE,
                                     .bits = (unsigned char)bits,
                                     .block = (unsigned short)block,
                                     .parts = (unsigned char)parts};
    return true;
}

// "ranks(2,bf16)" and "blocks(8,bf16)", which stay in brackets of their own: a part is rounded to a
// format of a number.
static bool parse_parts(const char *value, sinkproof_rounding *rounding) {
    int ranks = 0, block = 0, end = 0;
    char format[8] = "";
    if (sscanf(value, "ranks(%3d,%7[a-z0-9])%n", &ranks, format, &end) != 2 || end == 0) ranks = 0;
    if (ranks == 0 &&
        (sscanf(value, "blocks(%4d,%7[a-z0-9])%n", &block, format, &end) != 2 || end == 0))
        return false;
    bool optional = strcmp(value + end, "?") == 0;
    sinkproof_rounding read = {.format = ranks > 0 ? SINKPROOF_RANKS : SINKPROOF_BLOCKS,
                               .optional = optional,
                               .parts = (unsigned char)ranks,
                               .block = (unsigned short)block};
    if (!parse_format(format, SINKPROOF_FORMATS, &read.part) || read.part == SINKPROOF_REAL ||
        (!optional && value[end] != '\0') ||
        (ranks > 0 ? ranks < 2 || ranks > SINKPROOF_MAX_RANKS : block < 1))
        return false;
    *rounding = read;
    return true;
}

// "levels(3,bf16)": so many outputs of parts of the keys are rounded, one after the other.
static bool parse_levels(const char *value, sinkproof_rounding *rounding) {
    int levels = 0, end = 0;
    char format[8] = "";
    sinkproof_rounding read = {.format = SINKPROOF_REAL};
    if (sscanf(value, "levels(%3d,%7[a-z0-9])%n", &levels, format, &end) != 2 || end == 0)
        return false;
    read.parts = (unsigned char)levels, read.optional = strcmp(value + end, "?") == 0;
    if (!parse_format(format, SINKPROOF_FORMATS, &read.format) || read.format == SINKPROOF_REAL ||
        (!read.optional && value[end] != '\0') || levels < 2 || levels > SINKPROOF_MAX_LEVELS)
        return false;
    *rounding = read;
    return true;
}

// A mixture has ranks, and no blocks.
static bool point_mixes(sinkproof_point point) {
    return point == AT_M11_SUM || point == AT_M11_PART;
}

// A sum of weights times activations, or of experts.
static bool point_sums_parts(sinkproof_point point) {
    return point_mixes(point) ||
           (sinkproof_point_is_running_sum(point) && point != AT_A5_ACC && point != AT_A11_ACC);
}

static const char *const scale_names[SINKPROOF_SCALES] = {
    [SINKPROOF_SCALE_OF_TENSOR] = "tensor",
    [SINKPROOF_SCALE_OF_HEAD] = "head",
    [SINKPROOF_SCALE_OF_TOKEN] = "token",
    [SINKPROOF_SCALE_OF_TOKEN_HEAD] = "token-head",
};

static bool point_has_heads(sinkproof_point point) {
    return point == AT_A5_Q || point == AT_A5_K || point == AT_A11_V;
}

// Whether a product reads an operand there.
static bool point_reads_operand(sinkproof_point point) {
    return sinkproof_point_is_operand(point) || point_has_heads(point) || point == AT_A11_WEIGHTS ||
           point == AT_A9_UNNORM;
}

// An expert's product sees some tokens of a tensor; a weight that meets a value is alone.
static bool point_takes_scale(sinkproof_point point, sinkproof_scale scale) {
    bool whole = point_has_heads(point) ||
                 (sinkproof_point_is_operand(point) && point != AT_M5_IN && point != AT_M9_IN);
    switch (scale) {
    case SINKPROOF_SCALE_STATED:
        return point != AT_A9_UNNORM;
    case SINKPROOF_SCALE_OF_TENSOR:
        return whole;
    case SINKPROOF_SCALE_OF_TOKEN:
        return point_has_heads(point) || sinkproof_point_is_operand(point);
    default:
        return point_has_heads(point);
    }
}

// Whether a format may stand at the point with such a scale, or with none.
static bool format_is_read(sinkproof_point point, sinkproof_format format, sinkproof_scale scale) {
    bool of_number = format >= SINKPROOF_FORMATS && format < SINKPROOF_NUMBER_FORMATS;
    bool blocks = point_has_heads(point) || sinkproof_point_is_operand(point);
    if (!point_reads_operand(point)) return false;
    if (sinkproof_scaled_by_power(format)) return blocks && scale == SINKPROOF_SCALE_NONE;
    if (scale == SINKPROOF_SCALE_NONE) return of_number || (format == SINKPROOF_NVFP4 && blocks);
    return format >= SINKPROOF_E4M3 && format < SINKPROOF_READ_FORMATS &&
           (format != SINKPROOF_NVFP4 || blocks) && point_takes_scale(point, scale);
}

// "head", or a positive float32 number.
static bool parse_scale(const char *word, sinkproof_rounding *rounding) {
    for (int k = 0; k < SINKPROOF_SCALES; k++) {
        if (scale_names[k] == NULL || strcmp(word, scale_names[k]) != 0) continue;
        rounding->scale = (sinkproof_scale)k;
        return true;
    }
    char *end = NULL;
    double stated = (double)strtof(word, &end);
    rounding->scale = SINKPROOF_SCALE_STATED, rounding->stated = stated;
    return end != word && *end == '\0' && stated >= 0x1p-126 && stated <= 0x1p100;
}

// "e4m3", "e4m3(0.5)?", "int8(token-head)": formats that only an operand of a product has.
static bool parse_read(sinkproof_point point, const char *value, sinkproof_rounding *rounding) {
    char name[16] = "", scale[24] = "";
    int end = 0;
    sinkproof_rounding read = {.format = SINKPROOF_REAL};
    if (sscanf(value, "%15[a-z0-9-]%n(%23[^()])%n", name, &end, scale, &end) < 1) return false;
    if (!parse_format(name, SINKPROOF_READ_FORMATS, &read.format)) return false;
    if (scale[0] != '\0' && (value[end - 1] != ')' || !parse_scale(scale, &read))) return false;
    read.optional = strcmp(value + end, "?") == 0;
    if (!read.optional && value[end] != '\0') return false;
    if (!format_is_read(point, read.format, read.scale)) return false;
    *rounding = read;
    return true;
}

// What may be said of a point: formats, and of a running sum the units that add it up.
static void list_formats(sinkproof_point point, char *list, size_t size) {
    snprintf(list, size, "real, f64, f32, f16, bf16");
    for (int f = SINKPROOF_FORMATS; f < SINKPROOF_READ_FORMATS; f++)
        if (format_is_read(point, (sinkproof_format)f, SINKPROOF_SCALE_NONE) ||
            format_is_read(point, (sinkproof_format)f, SINKPROOF_SCALE_STATED))
            append_word(list, size, sinkproof_format_name((sinkproof_format)f));
    for (int k = SINKPROOF_SCALE_STATED; k < SINKPROOF_SCALES; k++) {
        char word[24];
        snprintf(word, sizeof word, "e4m3(%s)", scale_names[k] != NULL ? scale_names[k] : "SCALE");
        if (format_is_read(point, SINKPROOF_E4M3, (sinkproof_scale)k))
            append_word(list, size, word);
    }
    if (sinkproof_point_is_operand(point)) append_word(list, size, "q8_0, q8_1, q8_k, weight");
    if (point == AT_A11_PART) append_word(list, size, "levels(L,FORMAT)");
    if (!sinkproof_point_is_running_sum(point)) return;
    if (point_sums_parts(point)) append_word(list, size, "ranks(R,FORMAT), blocks(N,FORMAT)");
    append_word(list, size, "tensor-core(BITS,BLOCK[,PARTS])");
    for (const sinkproof_core_name *core = core_names; core->name != NULL; core++)
        append_word(list, size, core->name);
}

bool parse_rounding(sinkproof_point point, char *value, sinkproof_rounding *rounding,
                    sinkproof_error *error) {
    bool unit = sinkproof_point_is_running_sum(point);
    if (unit && parse_core(value, rounding)) return true;
    if (point_sums_parts(point) && parse_parts(value, rounding))
        return !point_mixes(point) || rounding->format == SINKPROOF_RANKS ||
               sinkproof_fail(error, "'%s' for %s: a mixture has ranks, and no blocks", value,
                              sinkproof_point_name(point));
    if (unit && strncmp(value, "tensor-core", strlen("tensor-core")) == 0)
        return sinkproof_fail(error,
                              "'%s' for %s is not tensor-core(BITS,BLOCK[,PARTS]) with 1 to %d "
                              "bits, blocks of 1 to %d products, 1 to %d partial sums",
                              value, sinkproof_point_name(point), SINKPROOF_CORE_BITS,
                              SINKPROOF_CORE_BLOCK, UCHAR_MAX);
    if (parse_read(point, value, rounding)) return true;
    if (point == AT_A11_PART && parse_levels(value, rounding)) return true;
    size_t length = strlen(value);
    bool optional = length > 0 && value[length - 1] == '?';
    if (optional) value[length - 1] = '\0';
    *rounding = (sinkproof_rounding){.format = SINKPROOF_REAL};
    bool known = parse_format(value, SINKPROOF_OPERAND_FORMATS, &rounding->format);
    bool of_weight =
        rounding->format >= SINKPROOF_READ_FORMATS && sinkproof_point_is_operand(point);
    if (!known || (rounding->format >= SINKPROOF_FORMATS && !of_weight)) {
        char list[400] = "";
        list_formats(point, list, sizeof list);
        return sinkproof_fail(error,
                              "unknown format '%s' for %s: %sknown are %s; ? after a format: an "
                              "engine may be more precise there",
                              value, sinkproof_point_name(point),
                              sinkproof_guess_in_list(value, list).text, list);
    }
    rounding->optional = optional && rounding->format != SINKPROOF_REAL;
    return true;
}

bool parse_every_sum(const char *value, sinkproof_policy *policy, sinkproof_error *error) {
    for (int p = 0; p < AT_POINTS; p++) {
        char copy[64];
        snprintf(copy, sizeof copy, "%s", value);
        if (sinkproof_point_is_running_sum((sinkproof_point)p) &&
            !parse_rounding((sinkproof_point)p, copy, &policy->at[p], error))
            return false;
    }
    return true;
}

// Ranks of `count` of n sums, in the format in which the output projection is stored.
static bool parse_ranks_of(const char *word, const char *count, const sinkproof_point *sums,
                           size_t n, sinkproof_policy *policy, sinkproof_error *error) {
    sinkproof_format stored = policy->at[AT_A12].format;
    if (stored == SINKPROOF_REAL) stored = policy->inside;
    for (size_t k = 0; k < n; k++) {
        char text[64];
        snprintf(text, sizeof text, "ranks(%.20s,%s)?", count, sinkproof_format_name(stored));
        sinkproof_rounding before = policy->at[sums[k]];
        if (!parse_rounding(sums[k], text, &policy->at[sums[k]], error)) {
            policy->at[sums[k]] = before;
            return sinkproof_fail(error, "'%s=%.100s' is not a number of ranks from 2 to 64", word,
                                  count);
        }
    }
    return true;
}

bool parse_ranks(const char *value, sinkproof_policy *policy, sinkproof_error *error) {
    static const sinkproof_point sums[] = {AT_A12_ACC, AT_M9_ACC, AT_M11_SUM, AT_M11_PART};
    return parse_ranks_of("ranks", value, sums, sizeof sums / sizeof sums[0], policy, error);
}

bool parse_slices(const char *value, sinkproof_policy *policy, sinkproof_error *error) {
    static const sinkproof_point sums[] = {AT_A12_ACC, AT_M11_PART};
    return parse_ranks_of("slices", value, sums, sizeof sums / sizeof sums[0], policy, error);
}

sinkproof_rounding_text sinkproof_rounding_say(sinkproof_rounding rounding) {
    sinkproof_rounding_text said;
    const char *name = sinkproof_format_name(rounding.format);
    if (rounding.format == SINKPROOF_RANKS || rounding.format == SINKPROOF_BLOCKS)
        snprintf(said.text, sizeof said.text, "%s(%d,%s)%s", name,
                 rounding.format == SINKPROOF_RANKS ? rounding.parts : rounding.block,
                 sinkproof_format_name(rounding.part), rounding.optional ? "?" : "");
    else if (rounding.format < SINKPROOF_FORMATS && rounding.parts > 0)
        snprintf(said.text, sizeof said.text, "levels(%d,%s)%s", rounding.parts, name,
                 rounding.optional ? "?" : "");
    else if (rounding.format == SINKPROOF_TENSOR_CORE && rounding.parts > 0)
        snprintf(said.text, sizeof said.text, "%s(%d,%d,%d)", name, rounding.bits, rounding.block,
                 rounding.parts);
    else if (rounding.format == SINKPROOF_TENSOR_CORE)
        snprintf(said.text, sizeof said.text, "%s(%d,%d)", name, rounding.bits, rounding.block);
    else if (rounding.scale == SINKPROOF_SCALE_STATED)
        snprintf(said.text, sizeof said.text, "%s(%.9g)%s", name, rounding.stated,
                 rounding.optional ? "?" : "");
    else if (rounding.scale != SINKPROOF_SCALE_NONE)
        snprintf(said.text, sizeof said.text, "%s(%s)%s", name, scale_names[rounding.scale],
                 rounding.optional ? "?" : "");
    else
        snprintf(said.text, sizeof said.text, "%s%s", name, rounding.optional ? "?" : "");
    return said;
}

bool sinkproof_rounding_same(sinkproof_rounding a, sinkproof_rounding b) {
    return a.format == b.format && a.optional == b.optional && a.bits == b.bits &&
           a.block == b.block && a.parts == b.parts && a.part == b.part && a.scale == b.scale &&
           !(a.stated < b.stated) && !(b.stated < a.stated);
}
