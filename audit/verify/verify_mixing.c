// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// mix.perturb as an experiment: one token of the embedded model is changed, with its sinks and
// without.
#include "audit/verify/verify.h"
#include "base/splitmix.h"
#include "proofs/bounds/mixing.h"
#include "ref/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 7 };

// The states of a run: T0 and every M12 in order.
typedef struct states {
    size_t count, width;
    double *x_lnc;
} states;

static void keep_state(void *context, const char *name, size_t rank, const size_t *shape,
                       const double *values) {
    states *s = context;
    const char *point = strrchr(name, '.');
    if (rank != 2 || (strcmp(name, "T0") != 0 && (point == NULL || strcmp(point, ".M12") != 0)))
        return;
    memcpy(s->x_lnc + s->count++ * TOKENS * s->width, values, shape[0] * shape[1] * sizeof *values);
}

static bool run_and_keep(const sinkproof_model *model, const int32_t *tokens_n, states *s) {
    sinkproof_policy policy;
    sinkproof_error error;
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_policy_known("real-f64", &policy);
    *s = (states){.width = c->hidden};
    s->x_lnc = malloc((c->n_layers + 1) * TOKENS * c->hidden * sizeof *s->x_lnc);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    sinkproof_observer observer = {.see = keep_state, .context = s, .no_logits = true};
    bool good = session != NULL && s->x_lnc != NULL &&
                sinkproof_forward(session, TOKENS, tokens_n, NULL, &observer, &error);
    sinkproof_session_free(session);
    return good;
}

// Before the first layer only the token at p differs, and earlier tokens never do; at the end it
// and the later ones do.
static void measure_pair(verify_measure *result, const states *x, const states *y, size_t p) {
    for (size_t l = 0; l < x->count; l++)
        for (size_t i = 0; i < TOKENS; i++) {
            size_t at = (l * TOKENS + i) * x->width;
            double off = sinkproof_row_distance(x->width, x->x_lnc + at, y->x_lnc + at).off;
            bool still = i < p || (l == 0 && i > p),
                 moved = (l + 1 == x->count && i >= p) || i == p;
            if (still) verify_add_comparison(result, off, 0);
            if (moved) verify_add_comparison(result, off > 0 ? 0 : 1, 0);
        }
}

static void measure_model(verify_measure *result, const char *spec, uint64_t seed) {
    int32_t tokens_n[TOKENS];
    states x = {0}, y = {0};
    sinkproof_error error;
    sinkproof_model *model = NULL;
    if (!sinkproof_model_open(spec, &model, &error)) return; // nothing is counted
    size_t vocab = sinkproof_model_config(model)->vocab;
    for (size_t i = 0; i < TOKENS; i++) tokens_n[i] = (int32_t)(sinkproof_draw(&seed) % vocab);
    size_t p = (size_t)(sinkproof_draw(&seed) % TOKENS);
    bool good = run_and_keep(model, tokens_n, &x);
    tokens_n[p] = (int32_t)(((size_t)tokens_n[p] + 1) % vocab);
    if (good && run_and_keep(model, tokens_n, &y)) measure_pair(result, &x, &y, p);
    free(x.x_lnc);
    free(y.x_lnc);
    sinkproof_model_close(model);
}

void verify_perturbed(verify_measure *result, uint64_t seed) {
    measure_model(result, "synthetic:tiny", seed);
    measure_model(result, "synthetic:tiny,sink=none", seed);
}
