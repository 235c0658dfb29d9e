// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What planted mistakes of the router read and choose.
#ifndef SINKPROOF_TESTS_ROUTED_H
#define SINKPROOF_TESTS_ROUTED_H

#include "tests/shared/planted.h"

static inline const double *of(const shown *s, sinkproof_trace_point point) {
    return s->latest[point];
}
static inline size_t expert_at(const shown *s, size_t q) {
    return (size_t)of(s, TRACE_M3)[q];
}
static inline double logit_at(const shown *s, size_t q) {
    return of(s, TRACE_M2)[q / s->c->n_chosen * s->c->n_experts + expert_at(s, q)];
}

// The largest of other logits; `value` gives that of expert e at token i.
typedef double other_logit(const shown *s, size_t i, size_t e, double by);
static inline void choose(shown *s, other_logit *value, double by) {
    size_t k = s->c->n_chosen, experts = s->c->n_experts;
    for (size_t i = 0; i < s->n; i++) {
        size_t slot = 0;
        for (size_t rank = 0; rank < experts && slot < k; rank++)
            for (size_t e = 0; e < experts && slot < k; e++) {
                size_t above = 0;
                for (size_t o = 0; o < experts; o++) {
                    double own = value(s, i, e, by), other = value(s, i, o, by);
                    above += other > own || (other == own && o < e);
                }
                if (above == rank) s->v[i * k + slot++] = (double)e;
            }
    }
}
static inline double logit_of(const shown *s, size_t i, size_t e) {
    return of(s, TRACE_M2)[i * s->c->n_experts + e];
}

#endif
