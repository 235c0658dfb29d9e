// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exponentials that are rounded before their division (A9.unnorm): the sets hold every order of
// tiles and every maximum, and so each small error of another kind. So an engine is emulated with
// each maximum that a kernel may subtract. One of them has to be nearer to the trace than the
// definition is, at most of the elements outside.
#include "audit/diagnose/unnormalised.h"
#include "audit/diagnose/attention_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct maxima {
    size_t tile; // keys of a tile, whose maximum is that of the keys so far; 0: of all keys
    bool sink;   // and of the sink
} maxima;

// The output with exponentials rounded to the format where they meet the values.
static void output_of(const kernel *x, sinkproof_format format, maxima m, size_t h, size_t i,
                      size_t first, double *y_c) {
    double all = x->sink_h[h], top = m.sink ? x->sink_h[h] : -INFINITY, sum;
    for (size_t j = first; j <= i; j++) all = fmax(all, x->z[j]);
    sum = exp(x->sink_h[h] - all);
    for (size_t j = first; j <= i; j++) sum += exp(x->z[j] - all);
    for (size_t j = first, end = 0; j <= i; j++) {
        if (j >= end || j == first) { // a tile begins
            end = m.tile > 0 ? (j / m.tile + 1) * m.tile : i + 1;
            for (size_t e = j; e < end && e <= i; e++) top = fmax(top, x->z[e]);
        }
        x->a[j] = sinkproof_round(format, exp(x->z[j] - top)) * exp(top - all) / sum;
    }
    kernel_sum(x, i, first, y_c);
}

// How many of the elements outside each of the maxima explains better than the definition.
static bool most_are_nearer(kernel *x, sinkproof_format format, const uint8_t *marks,
                            const sinkproof_tensor *v, double *y_c) {
    enum { ROWS = 32, MAXIMA = 14 };
    size_t nearer[MAXIMA] = {0}, asked = 0, best = 0, step = (x->n + ROWS - 1) / ROWS;
    for (size_t at = 0; at < x->n * x->heads; at++) {
        size_t i = at / x->heads, h = at % x->heads;
        const uint8_t *marks_c = marks + at * x->d;
        if (i % step != 0 || memchr(marks_c, 1, x->d) == NULL) continue;
        size_t first = kernel_read_all(x, x->k, x->v, h, i);
        kernel_weigh(x, h, i, first);
        kernel_sum(x, i, first, y_c);
        for (size_t m = 0; m < MAXIMA; m++) {
            const maxima of = {m < 2 ? 0 : (size_t)4 << (m / 2), m % 2 == 0};
            output_of(x, format, of, h, i, first, y_c + x->d);
            for (size_t c = 0; c < x->d; c++) {
                double is = sinkproof_tensor_value(v, at * x->d + c);
                if (marks_c[c]) nearer[m] += fabs(is - y_c[x->d + c]) < fabs(is - y_c[c]);
            }
        }
        for (size_t c = 0; c < x->d; c++) asked += marks_c[c];
    }
    for (size_t m = 0; m < MAXIMA; m++) best = nearer[m] > best ? nearer[m] : best;
    return 2 * best > asked;
}

bool unnormalised_follows(const sinkproof_making *of, sinkproof_format format,
                          const uint8_t *marks) {
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, TRACE_A11, of->layer);
    size_t all = of->n * of->config->n_heads * of->config->head_dim;
    kernel x;
    if (v == NULL || sinkproof_tensor_elements(v) != all || !kernel_open(of, &x)) return true;
    x.weights = NULL;
    double *y_c = malloc((2 * x.d + 1) * sizeof *y_c);
    bool follows = y_c == NULL || most_are_nearer(&x, format, marks, v, y_c);
    free(y_c);
    kernel_close(&x);
    return follows;
}
