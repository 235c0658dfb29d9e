// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The table of a configuration's numbers.
#include "model/fields.h"

#include <math.h>
#include <string.h>

enum { COUNT = 21 };

// Which models have a number.
enum { ALL, ROUTED, GATED, ROTATED, OF_YARN };

static const sinkproof_field fields[COUNT] = {
#define OF(member)   .name = #member, .offset = offsetof(sinkproof_config, member)
#define SIZE(member) OF(member), .type = FIELD_SIZE, .required = true
#define REAL(member) OF(member), .type = FIELD_REAL
#define INNER(called, member)                                                                      \
    .name = called, .shown = called, .offset = offsetof(sinkproof_config, member)
    {SIZE(n_layers), .shown = "layers", .said = "num_hidden_layers", .released = 24},
    {SIZE(n_experts), .shown = "experts", .said = "number of experts", .released = 32,
     .of = ROUTED},
    {SIZE(n_chosen), .shown = "experts_per_token", .said = "experts per token", .released = 4,
     .of = ROUTED},
    {SIZE(vocab), .shown = "vocab", .said = "vocab_size", .released = 201088},
    {SIZE(hidden), .shown = "hidden", .said = "hidden_size", .released = 2880},
    {SIZE(inter), .shown = "inter", .said = "intermediate_size", .released = 2880},
    {SIZE(n_heads), .shown = "heads", .said = "num_attention_heads", .released = 64},
    {SIZE(n_kv_heads), .shown = "kv_heads", .said = "num_key_value_heads", .released = 8},
    {SIZE(head_dim), .shown = "head_dim", .said = "head_dim", .released = 64},
    {OF(window), .shown = "window", .said = "sliding_window", .released = 128, .of = ROTATED},
    {.name = "yarn_original_context",
     .offset = offsetof(sinkproof_config, rotation.original_context),
     .shown = "original_context",
     .said = "original context",
     .released = 4096,
     .line = "positions",
     .of = OF_YARN},
    {SIZE(max_context), .shown = "max_context", .said = "max_position_embeddings",
     .released = 131072, .mark = MARK_NEVER},
    {INNER("yarn_truncate", rotation.truncate), .said = "YaRN range", .released = 0,
     .type = FIELD_BOOL, .of = OF_YARN},
    {INNER("swiglu_alpha", swiglu.alpha), .type = FIELD_REAL, .said = "SwiGLU alpha",
     .released = 1.702, .line = "experts", .of = GATED},
    {INNER("swiglu_limit", swiglu.limit), .type = FIELD_REAL, .said = "SwiGLU limit", .released = 7,
     .line = "experts", .endless = true, .of = GATED},
    {INNER("swiglu_offset", swiglu.offset), .type = FIELD_REAL, .said = "SwiGLU offset",
     .released = 1, .above = -INFINITY, .mark = MARK_OTHER, .line = "experts", .of = GATED},
    {REAL(rms_eps), .shown = "rms_eps", .said = "RMSNorm epsilon", .released = 1e-5,
     .line = "widths"},
    {INNER("rope_theta", rotation.theta), .type = FIELD_REAL, .said = "rope_theta",
     .released = 150000, .above = 1, .line = "positions", .of = ROTATED},
    {INNER("yarn_factor", rotation.factor), .type = FIELD_REAL, .said = "YaRN factor",
     .released = 32, .line = "positions", .of = OF_YARN},
    {INNER("yarn_beta_fast", rotation.beta_fast), .type = FIELD_REAL, .said = "YaRN beta_fast",
     .released = 32, .line = "positions", .of = OF_YARN},
    {INNER("yarn_beta_slow", rotation.beta_slow), .type = FIELD_REAL, .said = "YaRN beta_slow",
     .released = 1, .line = "positions", .of = OF_YARN},
};

const sinkproof_field *sinkproof_field_at(size_t i) {
    return i < COUNT ? &fields[i] : NULL;
}

bool sinkproof_field_exists(const sinkproof_field *field, const sinkproof_config *config) {
    double value = sinkproof_field_value(field, config);
    if (field->mark == MARK_OTHER && value == field->released) return false;
    if (isinf(value)) return false;
    switch (field->of) {
    case ROUTED:
        return !config->dense;
    case GATED:
        return config->activation == SINKPROOF_SWIGLU;
    case ROTATED:
        return config->rotation.kind != SINKPROOF_NO_ROTATION;
    case OF_YARN:
        return config->rotation.kind == SINKPROOF_YARN ||
               config->rotation.kind == SINKPROOF_LLAMA3_ROTATION;
    default:
        return true;
    }
}

const sinkproof_field *sinkproof_field_find(size_t offset) {
    size_t i = 0;
    while (fields[i].offset != offset) i++;
    return &fields[i];
}

double sinkproof_field_value(const sinkproof_field *field, const sinkproof_config *config) {
    const void *at = (const char *)config + field->offset;
    if (field->type == FIELD_SIZE) return (double)*(const size_t *)at;
    if (field->type == FIELD_BOOL) return *(const bool *)at;
    return *(const double *)at;
}

void field_set(const sinkproof_field *field, sinkproof_config *config, double value) {
    void *at = (char *)config + field->offset;
    if (field->type == FIELD_SIZE)
        *(size_t *)at = (size_t)value;
    else if (field->type == FIELD_BOOL)
        *(bool *)at = value != 0;
    else
        *(double *)at = value;
}

void fields_default(sinkproof_config *config) {
    *config = (sinkproof_config){.n_layers = 0};
    for (size_t i = 0; i < COUNT; i++)
        if (!fields[i].required) field_set(&fields[i], config, fields[i].released);
    config_alternate_windows(config);
}

void fields_set_released(sinkproof_config *config) {
    fields_default(config);
    for (size_t i = 0; i < COUNT; i++) field_set(&fields[i], config, fields[i].released);
}

bool fields_equal(const sinkproof_config *a, const sinkproof_config *b) {
    bool equal = true;
    for (size_t i = 0; i < COUNT; i++)
        equal =
            equal && sinkproof_field_value(&fields[i], a) == sinkproof_field_value(&fields[i], b);
    return equal;
}

bool fields_check(const sinkproof_config *config, const char *name, field_type type,
                  sinkproof_error *error) {
    for (size_t i = 0; i < COUNT; i++) {
        double value = sinkproof_field_value(&fields[i], config);
        if (fields[i].type != type) continue;
        if (type == FIELD_SIZE && !(value >= 1 && value <= 1 << 30))
            return sinkproof_fail(error, "%s: expected %s from 1 to 2^30, found %.0f", name,
                                  fields[i].said, value);
        if (type == FIELD_REAL &&
            !(value > fields[i].above && (value < INFINITY || fields[i].endless)))
            return sinkproof_fail(error, "%s: expected %s above %g, found %g", name, fields[i].said,
                                  fields[i].above, value);
    }
    return true;
}
