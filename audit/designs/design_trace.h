// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The attention of an engine of any design: one safetensors file in the format "sinkproof-design-1"
// (doc/24-variants.md). Tensor LL.NAME belongs to layer LL (two digits or more); any subset may be
// present. Letters: n rows, which are also the keys; h heads, v heads of keys and values (h is a
// multiple of v); d, e widths of a key and of a value; c columns: n, or n + 1 with the star last.
//
//   q, k         [n, h, d] [n, v, d]  as used in the scores: normed and rotated
//   v            [n, v, e]
//   f.q, f.k     [n, h, d] [n, v, d]  their features, if the design has some: the scores use these
//   bias         [h, 1 or n, n]       added to the scaled products
//   s, alpha     [h, n, c]            scores and weights; scores of keys not seen are not read
//   o            [n, h, e]            weighted values, before the gate
//   g, gate      [n, h, 1 or e]       a gate before and after its sigmoid
//   gated        [n, h, e]
//   star.key, star.value  [1 or h, d or e]     star.logit, slope  [1 or h]
//   buckets      [1 or h, 32]         mlp.1, mlp.2  [1 or h, d, d]
//   documents    [n], whole numbers
//   unturned.q, unturned.k               as q, k before their rotation
//   cos, sin     [n, p]                  of the pairs (d, d + p) of the first 2 p coordinates
//   rotary.base  [1]                     the base of these angles
//
// Metadata: format; design, or LL.design of one layer (audit/designs/choices.h); policy.
#ifndef SINKPROOF_DESIGN_TRACE_H
#define SINKPROOF_DESIGN_TRACE_H

#include "model/safetensors.h"
#include "ref/variants/variant.h"

#define DESIGN_FORMAT "sinkproof-design-1"

typedef enum design_tensor {
    DESIGN_Q,
    DESIGN_K,
    DESIGN_V,
    DESIGN_FQ,
    DESIGN_FK,
    DESIGN_BIAS,
    DESIGN_S,
    DESIGN_ALPHA,
    DESIGN_O,
    DESIGN_G,
    DESIGN_GATE,
    DESIGN_GATED,
    DESIGN_STAR_KEY,
    DESIGN_STAR_VALUE,
    DESIGN_STAR_LOGIT,
    DESIGN_SLOPE,
    DESIGN_BUCKETS,
    DESIGN_MLP_1,
    DESIGN_MLP_2,
    DESIGN_UNTURNED_Q,
    DESIGN_UNTURNED_K,
    DESIGN_COS,
    DESIGN_SIN,
    DESIGN_BASE,
    DESIGN_DOCUMENTS,
    DESIGN_TENSORS
} design_tensor;

const char *design_tensor_name(design_tensor t); // "star.key"
// Whether its first dimension is the rows, and its second the heads.
bool design_has_rows_first(design_tensor t);

typedef struct design_layer {
    size_t layer;
    const char *design; // as text
    sinkproof_variant variant;
    size_t rows, heads, kv_heads, dim, value_dim, pairs; // 0: no tensor tells
    const sinkproof_tensor *at[DESIGN_TENSORS];          // NULL where absent
    int *document_n;                                     // [rows], or NULL
} design_layer;

typedef struct sinkproof_design_trace {
    char *path;
    sinkproof_safetensors *file;
    const char *policy; // from the metadata; NULL: not stated
    size_t count;
    design_layer *layers; // [count], ascending
} sinkproof_design_trace;

// Opens a file and checks every name, shape and dtype; values are left to the judge.
bool sinkproof_design_trace_open(const char *path, sinkproof_design_trace *trace,
                                 sinkproof_error *error);
// The same from memory, which must outlive the trace; `name` is used in errors.
bool sinkproof_design_trace_parse(const uint8_t *bytes, size_t length, const char *name,
                                  sinkproof_design_trace *trace, sinkproof_error *error);
void sinkproof_design_trace_close(sinkproof_design_trace *trace);

#endif
