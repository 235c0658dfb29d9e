// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Queries, keys and values as a guess reads them, for all queries that are looked at.
#include "audit/diagnose/attention_screen.h"
#include "audit/judge/judge_read_source.h"
#include "ref/scaled.h"

#include <stdlib.h>
#include <string.h>

// Numbers as they are read otherwise; NULL if memory runs out.
static double *read_otherwise(const attention_view *view, const sinkproof_read_as *read,
                              unsigned of, const double *x, size_t rows, size_t heads) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    size_t count = rows * heads * view->dim;
    double *y = malloc((count + 1) * sizeof *y);
    if (y == NULL) return NULL;
    memcpy(y, x, count * sizeof *y);
    const sinkproof_tensor *tensor = NULL;
    if (read->layer_by != 0 || read->not_turned)
        tensor = sinkproof_read_source(read, view->config, view->of->trace, of, view->of->layer);
    for (size_t i = 0; tensor != NULL && i < count; i++) y[i] = sinkproof_tensor_value(tensor, i);
    sinkproof_scaled_read(how, rows, heads, view->dim, y);
    for (size_t i = 0; i < count; i++) y[i] *= read->times;
    return y;
}

void attention_view_forget(attention_view *view) {
    attention_reads *r = &view->read;
    free(r->q);
    free(r->k);
    free(r->v);
    *r = (attention_reads){.as = {.of = 0}};
}

bool attention_view_reads(attention_view *view, const sinkproof_read_as *read) {
    attention_reads *r = &view->read;
    size_t keys = view->columns - view->from;
    if (read->of == 0) return true;
    bool same = r->as.of == read->of && r->as.format == read->format &&
                r->as.scale == read->scale && r->as.times == read->times &&
                r->as.layer_by == read->layer_by && r->as.not_turned == read->not_turned;
    if (same) return true;
    attention_view_forget(view);
    if (read->of & SINKPROOF_READ_QUERIES)
        r->q =
            read_otherwise(view, read, SINKPROOF_READ_QUERIES, view->q_nhd, view->n, view->heads);
    if (read->of & SINKPROOF_CACHE_KEYS)
        r->k = read_otherwise(view, read, SINKPROOF_CACHE_KEYS, view->k_cgd, keys, view->groups);
    if (read->of & SINKPROOF_CACHE_VALUES)
        r->v = read_otherwise(view, read, SINKPROOF_CACHE_VALUES, view->v_cgd, keys, view->groups);
    bool fine = (r->q != NULL || (read->of & SINKPROOF_READ_QUERIES) == 0) &&
                (r->k != NULL || (read->of & SINKPROOF_CACHE_KEYS) == 0) &&
                (r->v != NULL || (read->of & SINKPROOF_CACHE_VALUES) == 0);
    if (fine) r->as = *read;
    return fine;
}
