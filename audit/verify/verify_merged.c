// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks outputs of parts of the keys that are rounded and merged (bound.parts-merged): float32
// arithmetic as in engines, against the enclosed real value, within the set of a policy that admits
// it. The policy makes the rounding optional, so that the real value is inside.
#include "audit/verify/verify_near.h"

#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"

#include <math.h>

enum { ROUNDS = 60, MOST = 200, DIM = 4, PARTS = 4 };
static const double RATE = 1e-9;

// n keys: scores, their sink last, and values.
typedef struct key_row {
    size_t n;
    double z[MOST + 1], v[MOST * DIM];
} key_row;

typedef struct part_output {
    float o[DIM], lse;
} part_output;

static void store_output(part_output *p) {
    for (size_t d = 0; d < DIM; d++) p->o[d] = (float)sinkproof_round(SINKPROOF_BF16, p->o[d]);
}

static part_output attend_part(const key_row *r, size_t first, size_t end) {
    part_output p = {.o = {0}};
    float m = -INFINITY, sum = 0;
    for (size_t j = first; j < end; j++) m = fmaxf(m, (float)r->z[j]);
    for (size_t j = first; j < end; j++) {
        float e = expf((float)r->z[j] - m);
        sum += e;
        for (size_t d = 0; d < DIM; d++) p.o[d] += e * (float)r->v[j * DIM + d];
    }
    for (size_t d = 0; d < DIM; d++) p.o[d] /= sum;
    p.lse = m + logf(sum);
    store_output(&p);
    return p;
}

static void merge_outputs(size_t n, const part_output *part_p, double *o_d) {
    float m = -INFINITY, sum = 0, w[PARTS + 1], o[DIM] = {0};
    for (size_t p = 0; p < n; p++) m = fmaxf(m, part_p[p].lse);
    for (size_t p = 0; p < n; p++) sum += w[p] = expf(part_p[p].lse - m);
    for (size_t p = 0; p < n; p++)
        for (size_t d = 0; d < DIM; d++) o[d] += w[p] / sum * part_p[p].o[d];
    for (size_t d = 0; d < DIM; d++) o_d[d] = o[d];
}

// What an engine left of a row, beside its set and the enclosed truth.
static void compare_outputs(verify_measure *result, const key_row *r, const double *o_d) {
    sinkproof_policy policy = policy_named("f32,A9=real,A11.part=bf16?,A11=real");
    sinkproof_setting s = sinkproof_setting_for(&policy, DIM, RATE);
    size_t n = r->n;
    sinkproof_honest known[MOST + 1], weight[MOST + 1], value[DIM * MOST], set[DIM];
    double common, terms = (double)n, error;
    for (size_t j = 0; j <= n; j++) known[j] = sinkproof_exact_set(r->z[j]);
    for (size_t j = 0; j < n; j++)
        for (size_t d = 0; d < DIM; d++) value[d * n + j] = sinkproof_exact_set(r->v[j * DIM + d]);
    must(sinkproof_honest_softmax(&s, AT_A9, n, known, known[n], weight, &common));
    sinkproof_planes w = sinkproof_planes_new(weight, 1, n, n),
                     v = sinkproof_planes_new(value, DIM, n, n);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(&policy, AT_A11_TERM, AT_A11_ACC);
    must(sinkproof_honest_accumulated(&s, &sum, &w, &v, &terms, true, set, DIM));
    error = sinkproof_honest_merge_error(&s, n, known, known[n]);
    must(sinkproof_honest_merged(&s, &w, &v, &terms, &error, set, DIM));
    arb_ptr z = balls_from_doubles(r->z, n + 1), x = balls_from_doubles(r->v, n * DIM),
            truth = _arb_vec_init((slong)n + 1), o = _arb_vec_init(DIM);
    sinkproof_truth_softmax_sink(truth, truth + n, z, n, z + n, VERIFY_BITS);
    sinkproof_truth_values(o, truth, x, n, DIM, DIM, VERIFY_BITS);
    verify_add_set_values(result, o, set, o_d, DIM);
    _arb_vec_clear(z, (slong)n + 1), _arb_vec_clear(x, (slong)(n * DIM));
    _arb_vec_clear(truth, (slong)n + 1), _arb_vec_clear(o, DIM);
    sinkproof_planes_free(&w), sinkproof_planes_free(&v);
}

// The sink is a part of its own, whose output is 0.
void verify_parts_merged(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        key_row r = {.n = sinkproof_draw_from_to(&seed, PARTS, MOST)};
        part_output part[PARTS + 1] = {0};
        double o_d[DIM], spread = round % 3 == 0 ? 30 : 4;
        for (size_t j = 0; j <= r.n; j++) r.z[j] = (float)between(&seed, -spread, spread);
        for (size_t k = 0; k < r.n * DIM; k++) r.v[k] = (float)between(&seed, -1, 1);
        for (size_t p = 0; p < PARTS; p++)
            part[p] = attend_part(&r, p * r.n / PARTS, (p + 1) * r.n / PARTS);
        part[PARTS].lse = (float)r.z[r.n];
        merge_outputs(PARTS + 1, part, o_d);
        compare_outputs(result, &r, o_d);
    }
}

// Keys of one value, just above a tie of bfloat16: every part's output is wrong by half a step.
void verify_near_parts_merged(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        key_row r = {.n = sinkproof_draw_from_to(&seed, PARTS, 32)};
        part_output part[PARTS] = {0};
        double o_d[DIM];
        float tie = 0x1.01p0f + ldexpf((float)between(&seed, 1, 2), -14);
        for (size_t j = 0; j < r.n; j++) r.z[j] = (float)between(&seed, -1, 1);
        r.z[r.n] = -INFINITY;
        for (size_t k = 0; k < r.n * DIM; k++) r.v[k] = tie;
        for (size_t p = 0; p < PARTS; p++)
            part[p] = attend_part(&r, p * r.n / PARTS, (p + 1) * r.n / PARTS);
        merge_outputs(PARTS, part, o_d);
        compare_outputs(result, &r, o_d);
    }
}
