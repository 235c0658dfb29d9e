// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An attention kernel of one's own as a plug-in, judged:
//     cc -O2 -shared -fPIC my_plugin.c -o my_plugin.so -lm && sinkproof judge --plugin my_plugin.so
#include <math.h>
#include <sinkproof.h>

enum { PART = 32, WIDEST = 256 };

// What some keys make of a query: the largest score, and the sums of exp(score - top).
typedef struct part {
    float top, sum, o[WIDEST];
} part;

static void join(part *a, const part *b, size_t dim) {
    float top = fmaxf(a->top, b->top), of_a = expf(a->top - top), of_b = expf(b->top - top);
    a->sum = a->sum * of_a + b->sum * of_b;
    for (size_t d = 0; d < dim; d++) a->o[d] = a->o[d] * of_a + b->o[d] * of_b;
    a->top = top;
}

static part one_key(const float *q, const float *k, const float *v, size_t dim) {
    part p = {.sum = 1};
    for (size_t d = 0; d < dim; d++) p.top += q[d] * k[d];
    p.top /= sqrtf((float)dim);
    for (size_t d = 0; d < dim; d++) p.o[d] = v[d];
    return p;
}

// The keys come in parts of 32. The sink is a logit beside the keys, without a value: it enters
// once.
static void attend(const sinkproof_drill *d, const float *q, const float *k, const float *v,
                   size_t first, size_t last, float sink, float *out) {
    size_t step = d->kv_heads * d->head_dim;
    part all = {.top = sink, .sum = sink > -INFINITY ? 1 : 0};
    if (all.sum == 0) all.top = -3e38f; // no sink: nothing yet
    for (size_t j = first; j <= last;) {
        size_t end = (j / PART + 1) * PART <= last ? (j / PART + 1) * PART : last + 1;
        part some = one_key(q, k + j * step, v + j * step, d->head_dim);
        for (j++; j < end; j++) {
            part next = one_key(q, k + j * step, v + j * step, d->head_dim);
            join(&some, &next, d->head_dim);
        }
#ifdef MISTAKE
        if (end % PART == 0 && sink > -INFINITY) some.sum += expf(sink - some.top); // in every part
#endif
        join(&all, &some, d->head_dim);
    }
    for (size_t c = 0; c < d->head_dim; c++) out[c] = all.o[c] / all.sum;
}

static int attention(void *context, const sinkproof_drill *d) {
    const float *q = d->inputs[0].values, *k = d->inputs[1].values, *v = d->inputs[2].values;
    (void)context;
    if (d->head_dim > WIDEST) return 1; // not served
    for (size_t i = 0; i < d->n; i++)
        for (size_t h = 0; h < d->heads; h++) {
            size_t at = (i * d->heads + h) * d->head_dim, last = d->first + i;
            size_t g = h / (d->heads / d->kv_heads) * d->head_dim;
            size_t first = d->window > 0 && last >= d->window ? last + 1 - d->window : 0;
            attend(d, q + at, k + g, v + g, first, last, d->inputs[3].values[h],
                   d->outputs[0].values + at);
        }
    return 0;
}

const sinkproof_plugin *sinkproof_plugin_get(void) {
    static const sinkproof_plugin_entry stages[] = {{"attention", attention}};
    static const sinkproof_plugin mine = {
        .size = sizeof mine, .name = "my kernel", .n_stages = 1, .stages = stages};
    return &mine;
}
