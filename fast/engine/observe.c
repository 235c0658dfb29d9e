// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shows the points of the trace as they are computed: one thread converts the rows to doubles while
// the others wait, and converts the observer's replacements back into rows.
#include "fast/engine/internal.h"

#include <stdio.h>

void pass_show_point(engine_pass *pass, const engine_worker *worker, const char *name, size_t rank,
                     const size_t *shape, float *rows, size_t width, size_t stride) {
    const sinkproof_observer *observer = pass->observer;
    if (observer == NULL) return;
    team_barrier();
    if (worker->id == 0) {
        char full[48];
        size_t n = 1;
        for (size_t r = 0; r < rank; r++) n *= shape[r];
        n /= width;
        double *seen = pass->engine->b.seen;
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < width; c++) seen[i * width + c] = rows[i * stride + c];
        if (pass->l < pass->engine->config->n_layers && name[0] != 'T')
            snprintf(full, sizeof full, "%02zu.%s", pass->l, name);
        else
            snprintf(full, sizeof full, "%s", name);
        if (observer->replace != NULL) {
            observer->replace(observer->context, full, rank, shape, seen);
            for (size_t i = 0; i < n; i++)
                for (size_t c = 0; c < width; c++)
                    rows[i * stride + c] = (float)seen[i * width + c];
        }
        observer->see(observer->context, full, rank, shape, seen);
    }
    team_barrier();
}
