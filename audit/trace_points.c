// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Names and shapes of the trace format "sinkproof-trace-1".
#include "audit/trace_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the dimensions of a shape mean.
typedef enum dimension {
    END,
    N,
    KEYS,
    SINK_KEYS,
    HIDDEN,
    HEADS,
    KV,
    DIM,
    EXPERTS,
    CHOSEN,
    UP,
    INTER,
    VOCAB
} dimension;

enum { NO_ROUNDING = -1 };

// An input within the layer, or the residual stream as the sublayer finds it.
enum { NONE, EACH = 1 << 8, SHARED = 1 << 9, RESIDUAL = 1 << 10, KIND = EACH - 1 };
#define FROM(id) (SINKPROOF_TRACE_##id)

static const struct point_row {
    const char *name;
    dimension shape[3];
    int rounding; // sinkproof_point
    bool layered;
    int inputs[SINKPROOF_MAX_INPUTS];
} rows[SINKPROOF_TRACE_POINTS] = {
    [SINKPROOF_TRACE_T0] = {"T0", {N, HIDDEN}, SINKPROOF_AT_T0, false, {NONE}},
    [SINKPROOF_TRACE_A1] = {"A1", {N, HIDDEN}, SINKPROOF_AT_A1, true, {RESIDUAL | SHARED}},
    [SINKPROOF_TRACE_A2_Q] = {"A2.q", {N, HEADS, DIM}, SINKPROOF_AT_A2, true, {FROM(A1) | SHARED}},
    [SINKPROOF_TRACE_A2_K] = {"A2.k", {N, KV, DIM}, SINKPROOF_AT_A2, true, {FROM(A1) | SHARED}},
    [SINKPROOF_TRACE_A2_V] = {"A2.v", {N, KV, DIM}, SINKPROOF_AT_A2, true, {FROM(A1) | SHARED}},
    [SINKPROOF_TRACE_A4_Q] =
        {"A4.q", {N, HEADS, DIM}, SINKPROOF_AT_A4, true, {FROM(A2_Q) | SHARED}},
    [SINKPROOF_TRACE_A4_K] = {"A4.k", {N, KV, DIM}, SINKPROOF_AT_A4, true, {FROM(A2_K) | SHARED}},
    [SINKPROOF_TRACE_A6] =
        {"A6", {HEADS, N, KEYS}, SINKPROOF_AT_A6, true, {FROM(A4_Q) | SHARED, FROM(A4_K) | SHARED}},
    [SINKPROOF_TRACE_A9] = {"A9", {HEADS, N, SINK_KEYS}, SINKPROOF_AT_A9, true, {FROM(A6) | EACH}},
    [SINKPROOF_TRACE_A10] = {"A10", {HEADS, N, KEYS}, SINKPROOF_AT_A9, true, {FROM(A9) | EACH}},
    [SINKPROOF_TRACE_A11] =
        {"A11", {N, HEADS, DIM}, SINKPROOF_AT_A11, true, {FROM(A9) | EACH, FROM(A2_V) | SHARED}},
    [SINKPROOF_TRACE_A12] = {"A12", {N, HIDDEN}, SINKPROOF_AT_A12, true, {FROM(A11) | SHARED}},
    [SINKPROOF_TRACE_A13] =
        {"A13", {N, HIDDEN}, SINKPROOF_AT_A13, true, {FROM(A12) | EACH, RESIDUAL | EACH}},
    [SINKPROOF_TRACE_M1] = {"M1", {N, HIDDEN}, SINKPROOF_AT_M1, true, {FROM(A13) | SHARED}},
    [SINKPROOF_TRACE_M2] = {"M2", {N, EXPERTS}, SINKPROOF_AT_M2, true, {FROM(M1) | SHARED}},
    [SINKPROOF_TRACE_M3] = {"M3", {N, CHOSEN}, NO_ROUNDING, true, {FROM(M2) | EACH}},
    [SINKPROOF_TRACE_M4] =
        {"M4", {N, CHOSEN}, SINKPROOF_AT_M4, true, {FROM(M2) | SHARED, FROM(M3) | SHARED}},
    [SINKPROOF_TRACE_M5] =
        {"M5", {N, CHOSEN, UP}, SINKPROOF_AT_M5, true, {FROM(M1) | SHARED, FROM(M3) | SHARED}},
    [SINKPROOF_TRACE_M6] = {"M6", {N, CHOSEN, UP}, SINKPROOF_AT_M6, true, {FROM(M5) | EACH}},
    [SINKPROOF_TRACE_M8] = {"M8", {N, CHOSEN, INTER}, SINKPROOF_AT_M8, true, {FROM(M6) | EACH}},
    [SINKPROOF_TRACE_M9] =
        {"M9", {N, CHOSEN, HIDDEN}, SINKPROOF_AT_M9, true, {FROM(M8) | SHARED, FROM(M3) | SHARED}},
    [SINKPROOF_TRACE_M10] = {"M10", {N, CHOSEN, HIDDEN}, SINKPROOF_AT_M10, true, {FROM(M9) | EACH}},
    [SINKPROOF_TRACE_M11] = {"M11",
                             {N, HIDDEN},
                             SINKPROOF_AT_M11,
                             true,
                             {FROM(M10) | EACH, FROM(M4) | SHARED, FROM(M3) | SHARED}},
    [SINKPROOF_TRACE_M12] =
        {"M12", {N, HIDDEN}, SINKPROOF_AT_M12, true, {FROM(M11) | EACH, FROM(A13) | EACH}},
    [SINKPROOF_TRACE_F1] = {"F1", {N, HIDDEN}, SINKPROOF_AT_F1, false, {RESIDUAL | SHARED}},
    [SINKPROOF_TRACE_F2] = {"F2", {N, VOCAB}, SINKPROOF_AT_F2, false, {FROM(F1) | SHARED}},
};

const char *sinkproof_trace_point_name(sinkproof_trace_point point) {
    return rows[point].name;
}

bool sinkproof_trace_point_is_layered(sinkproof_trace_point point) {
    return rows[point].layered;
}

// The residual stream before a sublayer: T0, or M12 of the layer before; before F1 the last one.
static sinkproof_input residual_before(const sinkproof_config *config, sinkproof_trace_point point,
                                       size_t layer) {
    size_t through = point == SINKPROOF_TRACE_F1 ? config->n_layers : layer; // layers behind it
    return through == 0 ? (sinkproof_input){SINKPROOF_TRACE_T0, 0, SINKPROOF_INPUT_EACH}
                        : (sinkproof_input){SINKPROOF_TRACE_M12, through - 1, SINKPROOF_INPUT_EACH};
}

size_t sinkproof_trace_inputs(const sinkproof_config *config, sinkproof_trace_point point,
                              size_t layer, sinkproof_input inputs[SINKPROOF_MAX_INPUTS]) {
    size_t n = 0;
    for (; n < SINKPROOF_MAX_INPUTS && rows[point].inputs[n] != NONE; n++) {
        int from = rows[point].inputs[n];
        sinkproof_input in = {(sinkproof_trace_point)(from & KIND), layer, SINKPROOF_INPUT_EACH};
        if ((from & RESIDUAL) != 0) in = residual_before(config, point, layer);
        in.kind = (from & SHARED) != 0 ? SINKPROOF_INPUT_SHARED : SINKPROOF_INPUT_EACH;
        inputs[n] = in;
    }
    return n;
}

bool sinkproof_trace_rounding(sinkproof_trace_point point, sinkproof_point *rounding) {
    if (rows[point].rounding == NO_ROUNDING) return false;
    *rounding = (sinkproof_point)rows[point].rounding;
    return true;
}

static size_t dimension_size(const sinkproof_config *config, dimension d, size_t n) {
    switch (d) {
    case N:
    case KEYS:
        return n;
    case SINK_KEYS:
        return n + 1;
    case HIDDEN:
        return config->hidden;
    case HEADS:
        return config->n_heads;
    case KV:
        return config->n_kv_heads;
    case DIM:
        return config->head_dim;
    case EXPERTS:
        return config->n_experts;
    case CHOSEN:
        return config->n_chosen;
    case UP:
        return 2 * config->inter;
    case INTER:
        return config->inter;
    case VOCAB:
        return config->vocab;
    case END:
        break;
    }
    return 0;
}

size_t sinkproof_trace_shape(const sinkproof_config *config, sinkproof_trace_point point, size_t n,
                             size_t *shape) {
    size_t rank = 0;
    while (rank < 3 && rows[point].shape[rank] != END) {
        shape[rank] = dimension_size(config, rows[point].shape[rank], n);
        rank++;
    }
    return rank;
}

static bool point_named(const char *name, bool layered, sinkproof_trace_point *point) {
    for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) {
        if (rows[p].layered != layered || strcmp(rows[p].name, name) != 0) continue;
        *point = (sinkproof_trace_point)p;
        return true;
    }
    return false;
}

bool sinkproof_trace_name_parse(const char *name, sinkproof_trace_point *point, size_t *layer) {
    *layer = 0;
    if (point_named(name, false, point)) return true;
    size_t digits = strspn(name, "0123456789");
    bool padded = digits == 2 || (digits > 2 && digits < 9 && name[0] != '0');
    if (!padded || name[digits] != '.') return false;
    *layer = (size_t)strtoul(name, NULL, 10);
    return point_named(name + digits + 1, true, point);
}

void sinkproof_trace_name(sinkproof_trace_point point, size_t layer, char *name) {
    if (rows[point].layered)
        snprintf(name, SINKPROOF_TRACE_NAME, "%02zu.%s", layer, rows[point].name);
    else
        snprintf(name, SINKPROOF_TRACE_NAME, "%s", rows[point].name);
}

size_t sinkproof_edits(const char *a, const char *b) {
    size_t row[SINKPROOF_TRACE_NAME + 1], length = strlen(b);
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0]; // the entry up and to the left
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t substituted = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            size_t shifted = 1 + (row[j] < diagonal ? row[j] : diagonal);
            row[j + 1] = substituted < shifted ? substituted : shifted;
        }
    }
    return row[length];
}

void sinkproof_trace_nearest(const char *name, size_t n_layers, char *nearest) {
    char start[SINKPROOF_TRACE_NAME], candidate[SINKPROOF_TRACE_NAME];
    snprintf(start, sizeof start, "%s", name); // the beginning of an endless name is enough
    size_t digits = strspn(start, "0123456789"), best = SIZE_MAX;
    size_t layer = digits > 0 && digits < 9 ? (size_t)strtoul(start, NULL, 10) : 0;
    if (layer >= n_layers) layer = n_layers - 1;
    for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++) {
        sinkproof_trace_name((sinkproof_trace_point)p, layer, candidate);
        size_t distance = sinkproof_edits(start, candidate);
        if (distance >= best) continue;
        best = distance;
        strcpy(nearest, candidate);
    }
}

sinkproof_format sinkproof_trace_format(sinkproof_dtype dtype) {
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
        return SINKPROOF_BF16;
    case SINKPROOF_DTYPE_F16:
        return SINKPROOF_F16;
    case SINKPROOF_DTYPE_F32:
        return SINKPROOF_F32;
    default:
        return SINKPROOF_F64;
    }
}
