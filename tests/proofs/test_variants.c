// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every design of attention. Inside the honest sets: what the reference computes under several
// policies, and what a float32 head computes that sums from the last key to the first. The sets
// contain the truth. Outside: what another design computes.
#include "proofs/bounds/variants.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { N = SINKPROOF_EDGE_N, DIM = SINKPROOF_EDGE_DIM, MOST = N + 2, BITS = 128, SHORT = 5 };

static double largest_of(const sinkproof_honest *x, double off) { // in half-widths of the set
    double half = sinkproof_radius(x);
    return half > 0 && half < INFINITY ? off / half : 0;
}

typedef struct counts {
    size_t elements, outside, untrue; // not inside its set; whose truth is not
    double worst;
} counts;

// Whether some number of the ball is inside the set.
static bool surrounds(const sinkproof_honest *x, const arb_t truth) {
    arf_t low, high;
    arf_init(low);
    arf_init(high);
    arb_get_lbound_arf(low, truth, BITS);
    arb_get_ubound_arf(high, truth, BITS);
    bool inside = arf_cmp_d(high, x->lo) >= 0 && arf_cmp_d(low, x->hi) <= 0;
    arf_clear(low);
    arf_clear(high);
    return inside;
}

static void count(counts *c, double v, const sinkproof_honest *x, const arb_t truth) {
    c->elements++;
    c->outside += !(v >= x->lo && v <= x->hi && x->hi - x->lo < INFINITY); // no set is without ends
    c->untrue += !surrounds(x, truth);
    c->worst = sinkproof_keep_worst(c->worst, largest_of(x, fabs(v - x->mid)));
}

static void exact(arb_ptr out, const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) arb_set_d(out + i, x[i]);
}

// The scores, weights and results of `r` against the sets of `variant`, each from what the step
// before holds.
static counts judge(const sinkproof_policy *policy, const sinkproof_variant *variant,
                    const sinkproof_variant_head *head, const sinkproof_variant_result *r) {
    counts out = {0, 0, 0, 0};
    sinkproof_setting s = sinkproof_setting_for(policy, r->rows * r->keys, 1e-9);
    size_t columns = r->keys + 1;
    sinkproof_honest set[MOST], known[MOST];
    bool seen[MOST];
    arb_ptr truth = _arb_vec_init(MOST), q = _arb_vec_init(DIM), in = _arb_vec_init(MOST);
    arb_ptr k = _arb_vec_init(MOST * DIM), v = _arb_vec_init(MOST * DIM);
    exact(k, r->k_jd, r->keys * DIM);
    exact(v, r->v_jd, r->keys * DIM);
    for (size_t i = 0; i < r->rows; i++) {
        const double *s_j = r->s_ij + i * columns, *alpha_j = r->alpha_ij + i * columns;
        const double *q_d = r->q_id + i * DIM;
        sinkproof_truth_variant_seen(variant, head, i, r->keys, seen);
        exact(q, q_d, DIM);
        must(sinkproof_honest_variant_scores(&s, variant, head, i, r->keys, seen, q_d, r->k_jd,
                                             set));
        truth_variant_scores(truth, variant, head, i, r->keys, seen, q, k, BITS);
        for (size_t j = 0; j < columns; j++) count(&out, s_j[j], set + j, truth + j);

        for (size_t j = 0; j < columns; j++) known[j] = sinkproof_exact_set(s_j[j]);
        must(sinkproof_honest_variant_weights(&s, variant, columns, seen, known, set));
        exact(in, s_j, columns);
        sinkproof_truth_variant_weights(truth, variant, columns, seen, in, BITS);
        for (size_t j = 0; j < columns; j++) count(&out, alpha_j[j], set + j, truth + j);

        must(sinkproof_honest_variant_values(&s, variant, head, r->keys, alpha_j, r->v_jd, set));
        exact(in, alpha_j, columns);
        sinkproof_truth_variant_values(truth, variant, head, r->keys, in, v, BITS);
        for (size_t d = 0; d < DIM; d++) count(&out, r->o_id[i * DIM + d], set + d, truth + d);
    }
    _arb_vec_clear(truth, MOST);
    _arb_vec_clear(q, DIM);
    _arb_vec_clear(in, MOST);
    _arb_vec_clear(k, MOST * DIM);
    _arb_vec_clear(v, MOST * DIM);
    return out;
}

// ---- another computation: float32, sums from the last key to the first, no shift but where
// exponentials would overflow

static float similar(const sinkproof_variant *variant, float s, float shift) {
    switch (variant->similarity) {
    case SINKPROOF_SIMILARITY_EXP:
        return expf(s - shift);
    case SINKPROOF_SIMILARITY_SIGMOID:
        return 1 / (1 + expf(-s));
    case SINKPROOF_SIMILARITY_ELU_PLUS_ONE:
        return s > 0 ? s + 1 : expm1f(s) + 1;
    case SINKPROOF_SIMILARITY_SCORE:
        break;
    }
    return s;
}

static float divided_by(const sinkproof_variant *variant, const float *sim_j, size_t columns) {
    float sum = 0, by = (float)variant->divisor_by;
    bool power = variant->divisor == SINKPROOF_DIVISOR_POWER;
    for (size_t j = columns; j-- > 0;) sum += power && sim_j[j] > 0 ? powf(sim_j[j], by) : sim_j[j];
    if (variant->divisor == SINKPROOF_DIVISOR_ONE) return 1;
    if (variant->divisor == SINKPROOF_DIVISOR_SCALED) return sum / by;
    if (power) return powf(sum, 1 / by);
    if (variant->divisor == SINKPROOF_DIVISOR_AT_LEAST_1) return fmaxf(fabsf(sum), 1);
    return sum;
}

// Replaces the weights and results of r, from its scores.
static void in_float32(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                       sinkproof_variant_result *r) {
    size_t columns = r->keys + 1;
    double star[DIM];
    variant_star_value(variant, head, star);
    for (size_t i = 0; i < r->rows; i++) {
        bool seen[MOST];
        float sim[MOST], shift = 0;
        double *s_j = r->s_ij + i * columns, *alpha_j = r->alpha_ij + i * columns;
        sinkproof_truth_variant_seen(variant, head, i, r->keys, seen);
        for (size_t j = 0; j < columns; j++)
            if (seen[j] && (float)s_j[j] > shift) shift = (float)s_j[j];
        for (size_t j = 0; j < columns; j++)
            sim[j] = seen[j] ? similar(variant, (float)s_j[j], shift) : 0;
        float z = divided_by(variant, sim, columns);
        for (size_t j = 0; j < columns; j++) alpha_j[j] = sim[j] / z;
        for (size_t d = 0; d < DIM; d++) {
            float sum = variant->value_bias ? (float)head->value_d[d] : 0;
            sum += (float)alpha_j[r->keys] * (float)star[d];
            for (size_t j = r->keys; j-- > 0;)
                sum += (float)alpha_j[j] * (float)r->v_jd[j * DIM + d];
            r->o_id[i * DIM + d] = sum;
        }
    }
}

static void compute(const sinkproof_policy *policy, const sinkproof_variant *variant,
                    const sinkproof_variant_head *head, sinkproof_variant_result *r) {
    sinkproof_error error = {{0}};
    must(sinkproof_variant_attend(policy, variant, head, r, &error));
}

// rounded: the policy fixes roundings, so that the truth, which has none, may be outside.
static void report(const char *who, const sinkproof_variant *variant, const counts *c,
                   bool rounded) {
    ok(c->elements > 0 && c->outside == 0 && (rounded || c->untrue == 0) && c->worst <= 1,
       "%s%s bound.similarity %s of %s: elements=%zu outside=%zu%s worst=%.3g bound=1", variant->id,
       variant->divisor == SINKPROOF_DIVISOR_AT_LEAST_1 ? " norm.max-one" : "", who, variant->name,
       c->elements, c->outside, rounded ? "" : " around the truth", c->worst);
}

// What the design before in the table computes is outside, unless that design has the same weights
// on every head.
static void told_apart(const sinkproof_policy *policy, const sinkproof_variant *variant,
                       const sinkproof_variant *other, const sinkproof_variant_head *head) {
    bool shared = strncmp(variant->name, other->name, strlen(other->name)) == 0;
    bool dims = variant->star_dims > DIM / 2 && other->star_dims > DIM / 2;
    bool tokens = (variant->star == SINKPROOF_STAR_TOKEN) != (other->star == SINKPROOF_STAR_TOKEN);
    bool same_model = strcmp(variant->name, "mimo-v2-flash") == 0;
    bool before = variant->places != other->places; // the queries and keys differ, not what follows
    bool gates = variant->gate != SINKPROOF_GATE_NONE || other->gate != SINKPROOF_GATE_NONE;
    if ((shared && variant->star_value != SINKPROOF_STAR_VALUE_FIRST) || dims || tokens ||
        same_model || before || gates || variant->feature != other->feature)
        return;
    sinkproof_variant_result r;
    compute(policy, other, head, &r);
    counts c = judge(policy, variant, head, &r);
    ok(c.outside > 0, "%s: %s is not taken for %s: outside=%zu of %zu", variant->id, other->name,
       variant->name, c.outside, c.elements);
    sinkproof_variant_result_free(&r);
}

// ---- features and places, by themselves

// Numbers of few bits: every product and sum of the features is exact in binary64, and what is
// rounded to bfloat16 is rounded where the policy says.
static void features(const sinkproof_policy *policy, const sinkproof_variant *variant,
                     const sinkproof_variant_head *head) {
    const sinkproof_variant elu = *sinkproof_variant_find("elu");
    sinkproof_setting s = sinkproof_setting_for(policy, DIM, 1e-9);
    sinkproof_honest known[DIM], set[DIM];
    double x[DIM], f[DIM], inner[DIM], expected[DIM], work[2 * DIM];
    bool seen[DIM], plain = policy->at[AT_A4].format == SINKPROOF_REAL;
    size_t wrong = 0;
    arb_ptr in = _arb_vec_init(DIM), truth = _arb_vec_init(DIM);
    for (size_t d = 0; d < DIM; d++) {
        x[d] = f[d] = head->key_d[d] * 2;
        known[d] = sinkproof_exact_set(x[d]);
        seen[d] = true;
    }
    exact(in, x, DIM);
    sinkproof_variant_feature(policy, variant, head, f, work);
    truth_variant_feature(truth, variant, head, in, BITS);
    if (variant->feature == SINKPROOF_FEATURE_ELU_PLUS_ONE) { // the weights of the design "elu"
        must(sinkproof_honest_variant_weights(&s, &elu, DIM, seen, known, set));
        for (size_t d = 0; d < DIM; d++) {
            sinkproof_honest y = sinkproof_honest_at(&s, AT_A4, set[d]);
            wrong += !(f[d] >= y.lo && f[d] <= y.hi);
            wrong += plain && !surrounds(&set[d], truth + d);
        }
    } else {
        for (size_t r = 0; r < DIM; r++) {
            inner[r] = 0;
            for (size_t d = DIM; d-- > 0;) inner[r] += head->mlp_1_dd[r * DIM + d] * x[d];
            inner[r] = inner[r] > 0 ? round_at(policy, AT_A4, inner[r]) : 0;
        }
        for (size_t r = 0; r < DIM; r++) {
            expected[r] = 0;
            for (size_t d = DIM; d-- > 0;) expected[r] += head->mlp_2_dd[r * DIM + d] * inner[d];
            expected[r] = round_at(policy, AT_A4, expected[r]);
            wrong += f[r] != expected[r];
            wrong += plain &&
                     !(arb_is_exact(truth + r) && arf_equal_d(arb_midref(truth + r), expected[r]));
        }
    }
    ok(wrong == 0, "%s: the features of %d numbers, %s: wrong=%zu", variant->id, DIM,
       plain ? "exactly" : "rounded to bfloat16", wrong);
    _arb_vec_clear(in, DIM);
    _arb_vec_clear(truth, DIM);
}

// With W_V that copies, a value is the input with its position. The angle has three roundings and
// the power's, at most 4 u of it; sine and cosine err by 2 u then, the sum by u of itself.
static void places(const sinkproof_policy *policy, const sinkproof_variant *variant,
                   sinkproof_drawn_head drawn) {
    enum { HIDDEN = SINKPROOF_EDGE_HIDDEN };
    double worst = 0;
    arb_t angle, p;
    balls_init(angle, p);
    for (size_t w = 0; w < HIDDEN * DIM; w++) drawn.wv_cd[w] = w / DIM == w % DIM;
    sinkproof_variant_head head = sinkproof_edge_head_view(&drawn);
    sinkproof_variant_result r;
    compute(policy, variant, &head, &r);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < HIDDEN; c++) {
            double x = drawn.x_nc[i * HIDDEN + c], v = r.v_jd[i * DIM + c], bound = 0;
            if (variant->places == SINKPROOF_PLACES_LEARNED) {
                arb_set_d(p, drawn.place_nc[i * HIDDEN + c]);
            } else {
                arb_set_si(p, -2 * (slong)(c / 2));
                arb_div_ui(p, p, HIDDEN, BITS);
                arb_set_ui(angle, 10000);
                arb_pow(angle, angle, p, BITS);
                arb_mul_ui(angle, angle, i, BITS);
                if (c % 2 == 0)
                    arb_sin(p, angle, BITS);
                else
                    arb_cos(p, angle, BITS);
                double a = arf_get_d(arb_midref(angle), ARF_RND_UP);
                bound = (4 * a + 2 + fabs(x) + 1) * 0x1p-53 * (1 + 0x1p-40);
            }
            arb_set_d(angle, x);
            arb_add(p, p, angle, BITS);
            double off = arb_is_exact(p) && arf_equal_d(arb_midref(p), v)
                             ? 0
                             : sinkproof_truth_distance(p, v);
            worst = sinkproof_keep_worst(worst,
                                         off <= bound ? (bound > 0 ? off / bound : 0) : INFINITY);
        }
    ok(worst <= 1, "%s: positions of %s added to the input, worst=%.2g bound=1", variant->id,
       variant->name, worst);
    sinkproof_variant_result_free(&r);
    balls_clear(angle, p);
}

int main(void) {
    static sinkproof_drawn_head drawn;
    sinkproof_policy policy[3];
    const char *names[] = {"real-f64", "f32", "openai-bf16"};
    sinkproof_variant before = {0};
    sinkproof_head_draw(&drawn, 7);
    sinkproof_variant_head head = sinkproof_edge_head_view(&drawn);
    for (int p = 0; p < 3; p++) must(sinkproof_policy_known(names[p], &policy[p]));
    for (size_t k = 0; sinkproof_variant_at(k) != NULL; k++) {
        sinkproof_variant variant = *sinkproof_variant_at(k);
        sinkproof_variant_result r;
        if (variant.window > SHORT) variant.window = SHORT + k % 3;
        for (int p = 0; p < 3; p++) {
            compute(&policy[p], &variant, &head, &r);
            counts c = judge(&policy[p], &variant, &head, &r);
            report(names[p], &variant, &c, p == 2);
            if (p == 1) {
                in_float32(&variant, &head, &r);
                c = judge(&policy[p], &variant, &head, &r);
                report("float32, backwards,", &variant, &c, false);
            }
            sinkproof_variant_result_free(&r);
        }
        for (int p = 0; p < 3; p += 2)
            if (variant.feature != SINKPROOF_FEATURE_SELF) features(&policy[p], &variant, &head);
        if (strcmp(variant.id, "place.added") == 0) places(&policy[0], &variant, drawn);
        if (k > 0) told_apart(&policy[1], &variant, &before, &head);
        before = variant;
    }
    return tap_done();
}
