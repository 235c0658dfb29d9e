// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of a score in their row: on whole numbers, whose sums are exact, so that equality
// is asked for; their sum beside the score within the bound of its roundings, rotated and not; what
// is alike moves nothing; NaN. 0.1 CPU seconds.
#include "ref/terms.h"
#include "tests/shared/reference.h"

#include <math.h>

enum { N = 24, D = 16, STRIDE = 3 * D, KEYS = 5 };

// ---- taken apart -------------------------------------------------------------------------------

static void apart(void) {
    const double x_nd[] = {5, 7, NAN, -1, 4, NAN}, b_d[] = {2, -3};
    const double cos_nd[] = {0, 2}, sin_nd[] = {1, 0}; // a quarter turn; none, twice as long
    double rest_nd[4], bias_nd[4];
    sinkproof_terms_split(2, 2, 3, x_nd, b_d, NULL, NULL, rest_nd, bias_nd);
    ok(rest_nd[0] == 3 && rest_nd[1] == 10 && rest_nd[2] == -3 && rest_nd[3] == 7 &&
           bias_nd[0] == 2 && bias_nd[1] == -3 && bias_nd[2] == 2 && bias_nd[3] == -3,
       "terms.split rows without their bias, and the bias for each");
    sinkproof_terms_split(2, 2, 3, x_nd, b_d, cos_nd, sin_nd, rest_nd, bias_nd);
    ok(rest_nd[0] == -10 && rest_nd[1] == 3 && rest_nd[2] == -6 && rest_nd[3] == 14 &&
           bias_nd[0] == 3 && bias_nd[1] == 2 && bias_nd[2] == 4 && bias_nd[3] == -6,
       "terms.split both turn by the position of their row");
}

// a_i in whole numbers, d = 4: the scale is 1/2.
static void products(void) {
    const double a_d[] = {1, 2, 3, 4}, b_q_d[] = {10, 0, -10, 20};
    const double c_jd[] = {1, 0, 0, 0, 0, 1, 1, 0}, b_k_jd[] = {2, 0, 0, 2, 0, 0, 4, 0};
    const double want_mj[] = {0.5, 2.5, 5, 6, 5, -5, 30, -20};
    double u_mj[8], s_j[2];
    bool good = true;
    sinkproof_terms_row(4, 2, a_d, b_q_d, c_jd, b_k_jd, u_mj);
    for (size_t i = 0; i < 8; i++) good = good && u_mj[i] == want_mj[i];
    ok(good, "terms.split the four products of a query with two keys, over sqrt(d)");
    for (size_t m = 0; m <= SINKPROOF_TERMS; m++) {
        sinkproof_terms_scores(2, u_mj, m, s_j);
        for (size_t j = 0; j < 2; j++) {
            double want = 0;
            for (size_t o = SINKPROOF_TERMS; o-- > 0;) want += o == m ? 0 : want_mj[o * 2 + j];
            good = good && s_j[j] == want;
        }
    }
    ok(good && s_j[0] == 40.5 && s_j[1] == -16.5,
       "terms.removed all terms but one, and all of them");
}

// ---- the sum is the score ----------------------------------------------------------------------

typedef struct side {
    double x_nd[N * STRIDE], b_d[D], rest_nd[N * D], bias_nd[N * D], turned_nd[N * D],
        size_nd[N * D];
} side;

// Rows at `stride` with a bias in them, and the largest that any order of the split can meet:
// |R| (|x| + |b| + |b|).
static void draw(side *s, uint64_t *state, const double *cos_nd, const double *sin_nd) {
    sinkproof_policy real = policy_of("real-f64");
    size_t half = D / 2;
    for (size_t e = 0; e < D; e++) s->b_d[e] = next_real(state, 3);
    for (size_t i = 0; i < N; i++)
        for (size_t e = 0; e < D; e++)
            s->turned_nd[i * D + e] = s->x_nd[i * STRIDE + e] = next_real(state, 2) + s->b_d[e];
    sinkproof_terms_split(N, D, STRIDE, s->x_nd, s->b_d, cos_nd, sin_nd, s->rest_nd, s->bias_nd);
    if (cos_nd != NULL) sinkproof_rope(&real, N, 1, D, cos_nd, sin_nd, s->turned_nd);
    for (size_t i = 0; i < N * D; i++) {
        size_t row = i / D, e = i % D, pair = e % half, other = row * STRIDE + (e + half) % D;
        double own = fabs(s->x_nd[row * STRIDE + e]) + 2 * fabs(s->b_d[e]);
        double beside = fabs(s->x_nd[other]) + 2 * fabs(s->b_d[(e + half) % D]);
        double c = cos_nd != NULL ? fabs(cos_nd[row * half + pair]) : 1;
        double t = cos_nd != NULL ? fabs(sin_nd[row * half + pair]) : 0;
        s->size_nd[i] = own * c + beside * t;
    }
}

// Both are one polynomial of the same numbers, one of d + 11 roundings and one of d + 6.
static void identity(const char *what, const double *cos_nd, const double *sin_nd) {
    static side q, k;
    uint64_t state = 14;
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_block block = {.rows = N, .keys = N, .head_dim = D, .q_stride = D, .kv_stride = D};
    double score_ij[N * N], u_mj[SINKPROOF_TERMS * N], s_j[N], worst = 0;
    size_t apart = 0;
    draw(&q, &state, cos_nd, sin_nd);
    draw(&k, &state, cos_nd, sin_nd);
    sinkproof_scores(&real, &block, q.turned_nd, k.turned_nd, score_ij);
    for (size_t i = 0; i < N; i++) {
        sinkproof_terms_row(D, N, q.rest_nd + i * D, q.bias_nd + i * D, k.rest_nd, k.bias_nd, u_mj);
        sinkproof_terms_scores(N, u_mj, SINKPROOF_TERMS, s_j);
        for (size_t j = 0; j < N; j++) {
            double sizes = 0, off = fabs(s_j[j] - score_ij[i * N + j]);
            for (size_t e = 0; e < D; e++) sizes += q.size_nd[i * D + e] * k.size_nd[j * D + e];
            double share = off / (gamma53(2 * D + 17) * sizes / sqrt(D));
            apart += off > 0;
            worst = sinkproof_keep_worst(worst, share);
        }
    }
    ok(worst <= 1 && apart > 0,
       "terms.split %s, the sum of the terms is the score: worst=%.3g bound=1", what, worst);
}

static void identities(void) {
    double cos_nd[N * D / 2], sin_nd[N * D / 2];
    for (size_t i = 0; i < N * D / 2; i++) {
        double angle = (double)(i / (D / 2)) * exp(-(double)(i % (D / 2)));
        cos_nd[i] = 1.3 * cos(angle);
        sin_nd[i] = 1.3 * sin(angle);
    }
    identity("as it stands", NULL, NULL);
    identity("rotated", cos_nd, sin_nd);
}

// ---- what a term does --------------------------------------------------------------------------

static void spreads(void) {
    const double x_j[] = {2, 4, 4, 4, 5, 5, 7, 9}, bad_j[] = {1, NAN, 3};
    double alike_j[KEYS];
    for (size_t j = 0; j < KEYS; j++) alike_j[j] = 0.1;
    double mean = sinkproof_terms_level(KEYS, alike_j);
    ok(sinkproof_terms_level(8, x_j) == 5 && sinkproof_terms_spread(8, x_j) == 2 &&
           sinkproof_terms_spread(2, (double[]){-1, 3}) == 2 &&
           sinkproof_terms_level(1, x_j) == 2 && isnan(sinkproof_terms_spread(1, x_j)),
       "terms.spread the mean over the keys and the deviation from it; one key has none");
    bool naive = false; // from their mean numbers that are alike deviate
    for (size_t n = 2; n < 50; n++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) sum += 0.1;
        naive = naive || sum / (double)n != 0.1;
    }
    ok(mean != 0 && naive && sinkproof_terms_spread(KEYS, alike_j) == 0 &&
           sinkproof_terms_lead(KEYS, alike_j) == 0,
       "terms.spread terms.lead a term that is the same at every key is 0, exactly");
    ok(sinkproof_terms_lead(8, x_j) == -24.0 / 7 &&
           sinkproof_terms_lead(3, (double[]){6, 1, 2}) == 4.5 &&
           isnan(sinkproof_terms_lead(1, x_j)),
       "terms.lead the first key's term less the mean of the others'; alone it leads nothing");
    ok(isnan(sinkproof_terms_level(3, bad_j)) && isnan(sinkproof_terms_spread(3, bad_j)) &&
           isnan(sinkproof_terms_lead(3, bad_j)) && isnan(sinkproof_terms_lead(2, bad_j)),
       "terms.spread terms.lead a NaN stays one");
}

static void changes(void) {
    const double with_j[] = {0.5, 0.125, 0, 0.375}, without_j[] = {0.25, 0.5, 0.125, 0.125};
    sinkproof_terms_change c = sinkproof_terms_changed(3, with_j, without_j);
    sinkproof_terms_change none = sinkproof_terms_changed(3, with_j, with_j);
    sinkproof_terms_change bad = sinkproof_terms_changed(1, with_j, (double[]){0.5, NAN});
    ok(c.sink == -0.25 && c.first == -0.25 && c.variation == 0.5 && none.sink == 0 &&
           none.first == 0 && none.variation == 0 && isnan(bad.sink) && isnan(bad.variation),
       "terms.removed the weights without a term less those with it: %g, %g, %g", c.sink, c.first,
       c.variation);
}

int main(void) {
    apart();
    products();
    identities();
    spreads();
    changes();
    return tap_done();
}
