// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_rotated.h"

#include <math.h>
#include <stdio.h>

enum { TURNED, REST, STEP }; // the numbers: coordinates that are turned, the factor of the others

const sinkproof_tensor *turned_from(const sinkproof_making *of) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (of->layer >= of->config->n_layers) return NULL;
    size_t n = sinkproof_trace_inputs(of->config, of->point, of->layer, inputs);
    const sinkproof_tensor *x =
        n > 0 ? sinkproof_trace_find(of->trace, inputs[0].point, inputs[0].layer) : NULL;
    return x != NULL && sinkproof_tensor_elements(x) == of->all ? x : NULL;
}

static bool make_rotated(const sinkproof_making *of, double *y, double *width) {
    size_t d = of->config->head_dim, turned = (size_t)of->numbers[TURNED], half = turned / 2;
    const sinkproof_tensor *x = turned_from(of);
    if (x == NULL || of->table == NULL) return false;
    for (size_t at = 0; at < of->all; at++) {
        size_t k = at % d, i = at / (of->all / of->n);
        double own = sinkproof_tensor_value(x, at);
        width[at] = of->radius != NULL ? 2 * of->radius[at] : 0;
        if (k >= turned) {
            y[at] = of->numbers[REST] * own;
            width[at] += of->numbers[STEP] * fabs(y[at]);
            continue;
        }
        bool second = k >= half;
        size_t partner = second ? at - half : at + half;
        const double *e = of->table + ENTRY * (i * half + k % half);
        double other = sinkproof_tensor_value(x, partner);
        y[at] = e[COSINE] * own + (second ? e[SINE] : -e[SINE]) * other;
        width[at] += of->numbers[STEP] * (fabs(e[COSINE] * own) + fabs(e[SINE] * other));
        if (of->radius != NULL) width[at] += 2 * of->radius[partner];
    }
    return true;
}

// How far the rule's table is from the one that was used, as a share of its square.
static double rule_misfit(const turns *t) {
    double apart = 0, size = 0;
    for (size_t at = 0; at < ENTRY * t->n * t->half; at++) {
        double off = t->used[at] - t->rule[at];
        apart += off * off, size += t->used[at] * t->used[at];
    }
    return size > 0 ? apart / size : INFINITY;
}

bool turns_are_near(const turns *t) {
    double most = 4 * t->c->step + 1e-5;
    return rule_misfit(t) < most * most * 4;
}

bool turns_try(turns *t, const char *id, const char *text) {
    made_kind made = {.make = make_rotated};
    made.numbers[TURNED] = 2 * (double)t->half, made.numbers[REST] = 1;
    made.numbers[STEP] = t->c->step > 0x1p-12 ? 2 * t->c->step : 4 * t->c->step;
    made.table = composing_keep_numbers(t->c, ENTRY * t->n * t->half, t->rule);
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    return made.table != NULL && composing_try_made(t->o, &made);
}
