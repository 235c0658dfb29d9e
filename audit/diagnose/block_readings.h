// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of programs that read ggml's blocks: a part of a block that is lost, taken from another
// block or read in another order.
#ifndef SINKPROOF_BLOCK_READINGS_H
#define SINKPROOF_BLOCK_READINGS_H

#include "model/matrix.h"

typedef enum block_mistake {
    BLOCKS_AS_STORED,
    BLOCKS_WITHOUT_MINIMA,
    BLOCKS_MINIMA_NEGATED,
    BLOCKS_EXCHANGED,     // the scale is read for the minimum, and the minimum for the scale
    BLOCKS_OTHER_SCALES,  // the float16 scale is another block's
    BLOCKS_OTHER_MINIMA,  // the same of the minimum
    BLOCKS_OTHER_NUMBERS, // the same of both
    BLOCKS_OTHER_PARTS,   // the scales of a block's parts are another block's
    BLOCKS_IN_TURN,       // of a byte's two codes the lower one is followed by the upper one
    BLOCKS_UPPER_FIRST,   // the upper one is taken for the lower one
    BLOCKS_WITHOUT_HIGH,  // the bits above the fourth
    BLOCKS_UNSHIFTED      // codes are not moved below 0
} block_mistake;

typedef struct block_reading {
    block_mistake mistake;
    long by;     // the other block is so many places on
    bool across; // rows follow one another; else each row is a circle
    bool first;  // or it is the first of the row
} block_reading;

// Whether the format has what the mistake is about.
bool blocks_have(sinkproof_dtype dtype, block_mistake mistake);

// Row r of matrix e of a stack of blocks, as it is read with the mistake: out_c[cols]. Returns
// false if the stack has no such blocks, or memory runs out.
bool blocks_misread(const block_reading *reading, const sinkproof_matrix *stack, size_t e, size_t r,
                    double *out_c);

#endif
