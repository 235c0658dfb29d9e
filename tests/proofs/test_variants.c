// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every design of attention: the reference under several policies inside the honest sets, these
// around the truth, and no two designs taken for each other unless they are equal.
#include "proofs/bounds/variants.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/variants.h"
#include "ref/splitmix.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { N = 21, HIDDEN = 12, DIM = 8, BITS = 128, MOST = N + 2 };

typedef struct drawn {
    double x[N * HIDDEN], wq[HIDDEN * DIM], wk[HIDDEN * DIM], wv[HIDDEN * DIM], star[HIDDEN];
    double key[DIM], value[DIM], mlp_1[DIM * DIM], mlp_2[DIM * DIM], place[(N + 1) * HIDDEN];
    double bucket[SINKPROOF_BUCKETS], gate[HIDDEN * DIM];
    int document[N];
    sinkproof_variant_head head;
} drawn;

static double uniform(uint64_t *seed, double size) { // 11 bits, in [-size, size)
    return size * ((double)(sinkproof_draw(seed) >> 53) / 1024 - 1);
}

static void fill(uint64_t *seed, size_t n, double *x, double size) {
    for (size_t i = 0; i < n; i++) x[i] = sinkproof_round(SINKPROOF_BF16, uniform(seed, size));
}

static void draw_head(drawn *d, uint64_t seed) {
    fill(&seed, N * HIDDEN, d->x, 2), fill(&seed, HIDDEN, d->star, 2);
    fill(&seed, HIDDEN * DIM, d->wq, 1), fill(&seed, HIDDEN * DIM, d->wk, 1);
    fill(&seed, HIDDEN * DIM, d->wv, 1), fill(&seed, HIDDEN * DIM, d->gate, 1);
    fill(&seed, DIM, d->key, 2), fill(&seed, DIM, d->value, 1);
    fill(&seed, DIM * DIM, d->mlp_1, 1), fill(&seed, DIM * DIM, d->mlp_2, 1);
    fill(&seed, (N + 1) * HIDDEN, d->place, 1), fill(&seed, SINKPROOF_BUCKETS, d->bucket, 2);
    for (int i = 0; i < N; i++) d->document[i] = i / 6;
    d->head = (sinkproof_variant_head){.n = N,
                                       .hidden = HIDDEN,
                                       .dim = DIM,
                                       .x_nc = d->x,
                                       .wq_cd = d->wq,
                                       .wk_cd = d->wk,
                                       .wv_cd = d->wv,
                                       .star_c = d->star,
                                       .key_d = d->key,
                                       .value_d = d->value,
                                       .logit = 0.75,
                                       .mlp_1_dd = d->mlp_1,
                                       .mlp_2_dd = d->mlp_2,
                                       .place_nc = d->place,
                                       .bucket_b = d->bucket,
                                       .slope = 0.25,
                                       .rotary_base = 10000,
                                       .document_n = d->document,
                                       .gate_cd = d->gate};
}

typedef struct counts {
    size_t elements, outside, untrue; // not inside its set; whose truth is not
    double worst;                     // the farthest inside, in half-widths
} counts;

static void count(counts *c, double v, const sinkproof_honest *x, arb_srcptr truth) {
    c->elements++;
    if (!(v >= x->lo && v <= x->hi)) c->outside++;
    double half = sinkproof_radius(x), off = fabs(v - x->mid);
    if (half > 0 && half < INFINITY) c->worst = sinkproof_worst(c->worst, off / half);
    if (truth == NULL) return;
    arb_t set;
    arb_init(set);
    arf_t end;
    arf_init(end);
    if (x->lo > -INFINITY && x->hi < INFINITY) {
        arf_set_d(end, x->lo);
        arb_set_arf(set, end);
        arf_set_d(end, x->hi);
        arb_t high;
        arb_init(high);
        arb_set_arf(high, end);
        arb_union(set, set, high, BITS);
        arb_clear(high);
        if (!arb_overlaps(set, truth)) c->untrue++;
    }
    arf_clear(end);
    arb_clear(set);
}

static void exact(arb_ptr out, const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) arb_set_d(out + i, x[i]);
}

typedef struct judged {
    counts scores, weights, values, features;
} judged;

// `r` was computed by some design: is it what `variant` may hold? Truth only where nothing rounds.
static judged judge(const sinkproof_policy *policy, const sinkproof_variant *variant,
                    const drawn *d, const sinkproof_variant_result *r, bool truly) {
    judged out = {{0}, {0}, {0}, {0}};
    sinkproof_setting s = sinkproof_setting_for(policy, r->rows * r->keys, 1e-9);
    size_t columns = r->keys + 1;
    sinkproof_honest set[MOST];
    bool seen[MOST];
    arb_ptr t = _arb_vec_init(MOST), q = _arb_vec_init(DIM), k = _arb_vec_init(MOST * DIM),
            v = _arb_vec_init(MOST * DIM), in = _arb_vec_init(MOST);
    exact(k, r->k_jd, r->keys * DIM), exact(v, r->v_jd, r->keys * DIM);
    for (size_t i = 0; i < r->rows; i++) {
        const double *s_j = r->s_ij + i * columns, *alpha_j = r->alpha_ij + i * columns;
        sinkproof_honest known[MOST];
        sinkproof_truth_variant_seen(variant, &d->head, i, r->keys, seen);
        exact(q, r->q_id + i * DIM, DIM);
        must(sinkproof_honest_variant_scores(&s, variant, &d->head, i, r->keys, seen,
                                             r->q_id + i * DIM, r->k_jd, set));
        sinkproof_truth_variant_scores(t, variant, &d->head, i, r->keys, seen, q, k, BITS);
        for (size_t j = 0; j < columns; j++)
            if (seen[j]) count(&out.scores, s_j[j], set + j, truly ? t + j : NULL);
        for (size_t j = 0; j < columns; j++) known[j] = sinkproof_known(s_j[j]);
        must(sinkproof_honest_variant_weights(&s, variant, columns, seen, known, set));
        exact(in, s_j, columns);
        sinkproof_truth_variant_weights(t, variant, columns, seen, in, BITS);
        for (size_t j = 0; j < columns; j++)
            count(&out.weights, alpha_j[j], set + j, truly ? t + j : NULL);
        must(
            sinkproof_honest_variant_values(&s, variant, &d->head, r->keys, alpha_j, r->v_jd, set));
        exact(in, alpha_j, columns);
        sinkproof_truth_variant_values(t, variant, &d->head, r->keys, in, v, BITS);
        for (size_t e = 0; e < DIM; e++)
            count(&out.values, r->o_id[i * DIM + e], set + e, truly ? t + e : NULL);
    }
    _arb_vec_clear(t, MOST), _arb_vec_clear(q, DIM), _arb_vec_clear(k, MOST * DIM);
    _arb_vec_clear(v, MOST * DIM), _arb_vec_clear(in, MOST);
    return out;
}

int main(void) {
    static drawn d;
    sinkproof_error error = {{0}};
    const char *policies[] = {"real-f64", "f32", "openai-bf16"};
    draw_head(&d, 7);
    for (size_t p = 0; p < 3; p++) {
        sinkproof_policy policy;
        if (!sinkproof_policy_known(policies[p], &policy)) return 1;
        for (size_t k = 0; sinkproof_variant_at(k) != NULL; k++) {
            const sinkproof_variant *variant = sinkproof_variant_at(k);
            sinkproof_variant_result r;
            if (!sinkproof_variant_attend(&policy, variant, &d.head, &r, &error)) return 1;
            judged j = judge(&policy, variant, &d, &r, p == 0);
            const counts *c[] = {&j.scores, &j.weights, &j.values};
            size_t outside = 0, untrue = 0;
            for (int x = 0; x < 3; x++) outside += c[x]->outside, untrue += c[x]->untrue;
            ok(outside == 0 && untrue == 0,
               "%s under %s: s %zu/%zu a %zu/%zu o %zu/%zu untrue %zu worst=%.2g,%.2g,%.2g bound=1",
               variant->name, policies[p], j.scores.outside, j.scores.elements, j.weights.outside,
               j.weights.elements, j.values.outside, j.values.elements, untrue, j.scores.worst,
               j.weights.worst, j.values.worst);
            sinkproof_variant_result_free(&r);
        }
    }
    return tap_done();
}
