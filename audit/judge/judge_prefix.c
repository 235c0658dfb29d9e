// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/judge/judge_prefix.h"

#include "audit/sinkproof.h"
#include "audit/trace/trace_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OF_KEYS, OF_VALUES, CACHED };

judge_prefix *prefix_new(size_t n, size_t n_layers) {
    judge_prefix *p = calloc(1, sizeof *p);
    sinkproof_honest **of = calloc(n_layers * CACHED, sizeof *of);
    if (p == NULL || of == NULL) {
        free(p);
        free(of);
        return NULL;
    }
    *p = (judge_prefix){n, n_layers, of};
    return p;
}

void prefix_free(judge_prefix *prefix) {
    if (prefix == NULL) return;
    for (size_t i = 0; i < prefix->n_layers * CACHED; i++) free(prefix->of[i]);
    free(prefix->of);
    free(prefix);
}

static sinkproof_honest **sets_at(const judge_prefix *p, const sinkproof_config *config,
                                  sinkproof_trace_point point, size_t layer) {
    size_t kind = point == TRACE_A2_V ? OF_VALUES : OF_KEYS;
    bool there = layer < p->n_layers && sinkproof_trace_is_cached(config, point);
    return there ? &p->of[layer * CACHED + kind] : NULL;
}

static bool are_bounded(const sinkproof_honest *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i].lo) || !isfinite(x[i].hi)) return false;
    return true;
}

bool prefix_keep(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                 const sinkproof_honest *x) {
    sinkproof_honest **to = sets_at(pass->kept_prefix, pass->config, point, layer);
    size_t count = pass->n * pass->config->n_kv_heads * pass->config->head_dim;
    if (to == NULL || !are_bounded(x, count)) return true;
    *to = malloc(count * sizeof *x);
    if (*to != NULL) memcpy(*to, x, count * sizeof *x);
    return *to != NULL;
}

const sinkproof_honest *sinkproof_prefix_sets(const judge_prefix *prefix,
                                              const sinkproof_config *config,
                                              sinkproof_trace_point point, size_t layer) {
    sinkproof_honest **at = prefix != NULL ? sets_at(prefix, config, point, layer) : NULL;
    return at != NULL ? *at : NULL;
}

sinkproof_trace *prefix_trace(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_policy *policy, sinkproof_stretch *stretch,
                              sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t count = 0, *rows = calloc(sinkproof_trace_sequences(trace), sizeof *rows);
    sinkproof_trace_builder *b = NULL;
    sinkproof_trace *made = NULL;
    for (size_t i = 0; rows != NULL && i < sinkproof_trace_sequences(trace); i++) {
        size_t named = sinkproof_trace_sequence(trace, i).named;
        if (named > 0) rows[count++] = named;
    }
    if (rows == NULL) sinkproof_fail(error, "no memory for a prefix");
    if (rows != NULL &&
        sinkproof_trace_builder_new(model, "prefix", NULL, sinkproof_trace_prefix_length(trace),
                                    sinkproof_trace_prefix(trace), &b, error) &&
        sinkproof_trace_builder_place(b, count, rows, NULL, error) &&
        sinkproof_trace_builder_finish(b, &made, error)) {
        sinkproof_stretch_to(stretch, c, policy, made, sinkproof_trace_keys(c), c->n_layers - 1,
                             true);
        sinkproof_stretch_to(stretch, c, policy, made, TRACE_A2_V, c->n_layers - 1, false);
    }
    sinkproof_trace_builder_free(b);
    free(rows);
    return made;
}
