// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where the sequences of a trace begin: their rows, the columns of their keys, and the tokens
// before them that are named. Private to audit/trace/.
#ifndef SINKPROOF_TRACE_SEQUENCES_H
#define SINKPROOF_TRACE_SEQUENCES_H

#include "model/safetensors.h"

typedef struct trace_sequences {
    size_t count, *begins; // [count + 1]: first rows, and n
    uint32_t *of_row;      // [n]
    // Columns of keys. One sequence has one for each position from 0 on; several have one for each
    // row, or (apart) one for each key that is in their caches: as many as cu_seqlens_k says, or,
    // without it, those of all positions where the tokens before a sequence are named.
    size_t columns, *key, *keys; // [count]: the first column of each, and their number
    bool apart, said;            // said: by cu_seqlens_k
    int32_t *prefix_n;           // tokens before the sequences, one after the other; NULL: none
    size_t *named_at;            // [count + 1]: where those of each begin in them
    uint8_t *calls_n;            // [n]: 1 where a call begins; NULL: not said (trace_calls.h)
} trace_sequences;

// Reads cu_seqlens, cu_seqlens_k, prefix and cu_seqlens_prefix of a file with n tokens, all below
// vocab; without them there is one sequence. Empty sequences are left out.
bool sequences_read(const char *name, const sinkproof_safetensors *file, size_t n, size_t vocab,
                    const int32_t *positions_n, trace_sequences *s, sinkproof_error *error);
void sequences_free(trace_sequences *s);

// Splits keys or values [columns, ...] of sequences apart: *rows are those of the tokens, *before
// those of earlier positions, sequence by sequence. Their bytes are in *gathered, which the caller
// frees; NULL without memory.
uint8_t *sequences_split(const trace_sequences *s, const sinkproof_tensor *tensor,
                         sinkproof_tensor *before, sinkproof_tensor *rows);

#endif
