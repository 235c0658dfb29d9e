// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights from a counter: element i of tensor t under seed s is a function of (s, t, i) alone,
// computed with integer operations, so that every machine makes the same bits, any row can be made
// on demand, and a full-size model needs no disk.
//
// The scales are chosen so that every part of the model matters: residuals of size 1 to 10 through
// 36 layers, attention scores spread over several units, sinks all over [-10, 10], router logits
// with a visible but not always large margin, gates that sometimes cross the clamp at 7. Values use
// all eight bits of a bf16 significand.
#ifndef SINKPROOF_SYNTHETIC_H
#define SINKPROOF_SYNTHETIC_H

#include "model/config.h"
#include "model/matrix.h"
#include "model/planted.h"
#include "model/slots.h"

enum {
    STREAM_LAYER = 8, // a stream is the slot's number | layer << 8 | expert << 24
    STREAM_EXPERT = 24,
    STREAM_SLOTS = 256,
};

// How the elements of one slot are drawn. With t triangular in (-65536, 65536), a bf16
// element is (offset + gain t) cut to eight significant bits, times 2^exponent; `uniform`
// makes t uniform. MXFP4 codes are uniform, and the scale byte is `scale` minus a geometric
// number (0 with probability 1/2, 1 with 1/4, ...; at most 7) plus 1 with probability
// `boost` / 256.
typedef struct element_recipe {
    bool uniform;
    int32_t offset, gain; // |offset| + |gain| 65536 < 2^24, so that the sum is exact in binary32
    int exponent;
    int scale, boost;
} element_recipe;

typedef struct synthetic_model {
    uint64_t seed;
    element_recipe recipes[STREAM_SLOTS]; // by the slot's number
    const planted_model *planted;         // elements that are set over them, or NULL
} synthetic_model;

// The recipes of a configuration, which depend only on its widths.
void synthetic_recipes_init(synthetic_model *synthetic, const sinkproof_config *config,
                            uint64_t seed);
// The same for a planted model.
void synthetic_recipes_plant(synthetic_model *synthetic, const sinkproof_config *config,
                             const planted_model *planted);

// The weight of a slot: experts' matrices in MXFP4, everything else in bf16. `name` must outlive
// it.
sinkproof_matrix synthetic_matrix(const synthetic_model *synthetic, const sinkproof_config *config,
                                  size_t l, sinkproof_slot slot, const char *name);

// Row r of a plain synthetic matrix, as numbers.
void synthetic_row(const sinkproof_matrix *matrix, size_t r, double *out_c);
// Row r of a plain synthetic MXFP4 matrix, as bytes: codes [cols / 2] (NULL: only the scales),
// scales [cols / 32].
void synthetic_codes(const sinkproof_matrix *matrix, size_t r, uint8_t *codes, uint8_t *scales);

#endif
