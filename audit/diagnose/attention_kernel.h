// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention in one kernel, in binary64, from the queries, keys and values of the trace: what the
// searches share that suppose other keys, values, weights or sums.
#ifndef SINKPROOF_ATTENTION_KERNEL_H
#define SINKPROOF_ATTENTION_KERNEL_H

#include "audit/judge/judge_region.h"
#include "audit/trace/trace.h"

// By how much the policy may round what a kernel computes on its way: at the beginning of every
// table of numbers that are made here.
enum {
    KERNEL_SCORES,  // of the size of a score
    KERNEL_TERMS,   // of the sum of the sizes of its products
    KERNEL_WEIGHTS, // of a weight
    KERNEL_VALUES,  // of a value
    KERNEL_HEADER
};

typedef struct kernel {
    const sinkproof_making *of;
    size_t n, heads, groups, each, d; // each: heads of a group
    size_t window;                    // 0: the layer has none
    double *q, *k, *v, *sink_h;       // [n, heads, d], [n, groups, d] twice, [heads]
    const sinkproof_tensor *weights;  // A10 or A9 of the trace; NULL: it shows neither
    size_t columns;                   // of the weights
    // of a row: scores, the sums of the sizes of their products, weights, values
    double *z, *terms, *a;
    const double **v_at;
    double *y_c; // room for an output
} kernel;

// Returns false where the trace has not what is read, or memory runs out; nothing is kept then.
bool kernel_open(const sinkproof_making *of, kernel *x);
void kernel_close(kernel *x);

// The first key that row i sees.
size_t kernel_first(const kernel *x, size_t i);
// Score j of a row with the key of `k`, in x->z, and in x->v_at the value of `v`.
void kernel_read(kernel *x, const double *k, const double *v, size_t h, size_t i, size_t j);
// The same of all keys that row i sees; returns the first.
size_t kernel_read_all(kernel *x, const double *k, const double *v, size_t h, size_t i);
// The weights of the keys [first, i] in x->a: those that the trace shows, or of the scores x->z.
void kernel_weigh(kernel *x, size_t h, size_t i, size_t first);
// The sum of the values times the weights of the keys [first, i], and, if asked for, its widths:
// the sets of other weights are about as wide as those of the point, for their size, and wider by
// the roundings of scores, weights and values. step: of the format of the trace.
void kernel_sum(const kernel *x, size_t i, size_t first, double *y_c);
void kernel_widths(const kernel *x, double step, size_t h, size_t i, size_t first,
                   const double *y_c, double *width_c);

// Adds to the output of a row what the sets of the definition have beside the definition in
// binary64: numbers that the mistake does not move are as defined. Reads the row anew.
void kernel_onto(kernel *x, size_t h, size_t i, double *y_c);

#endif
