// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of the chosen experts' weights (router.softmax-after, bound.form-router)
// and of the mixture sum_e w_e d_e (moe.sum, bound.dot with a handful of terms), also where each of
// several ranks mixes what its slices of the experts give (bound.parts-mixed).
#include "proofs/bounds/bounds.h"

// The running sum of the products in the given order, rounded after each addition, including the
// one to 0.
static sinkproof_honest running_sum(const sinkproof_setting *s, sinkproof_rounding each, size_t k,
                                    const sinkproof_honest *p_e) {
    sinkproof_honest sum = p_e[0];
    sinkproof_honest_round_at(s, each, &sum);
    for (size_t e = 1; e < k; e++) {
        sum = sinkproof_honest_inside(s, sinkproof_honest_add(sum, p_e[e]));
        sinkproof_honest_round_at(s, each, &sum);
    }
    return sum;
}

static sinkproof_honest sum_in_either_way(const sinkproof_setting *s, sinkproof_rounding each,
                                          size_t k, const sinkproof_honest *p_e) {
    return sinkproof_honest_hull(honest_sum_in_any_order(s, k, p_e), running_sum(s, each, k, p_e));
}

// The sum of the experts of each rank, in one of these ways, rounded before all are added. The
// chosen experts ascend, so those of a rank are neighbours; which these are is open.
static sinkproof_honest sum_over_ranks(const sinkproof_setting *s, sinkproof_rounding ranks,
                                       size_t k, const sinkproof_honest *p_e) {
    const sinkproof_rounding each = {.format = ranks.part};
    sinkproof_honest hull = sum_in_either_way(s, each, k, p_e); // all on one rank
    for (unsigned ends = 1; ends < 1u << (k - 1); ends++) {     // bit e: a rank's experts end at e
        sinkproof_honest part_p[SINKPROOF_MAX_CHOSEN];
        size_t parts = 0;
        for (size_t e = 0, begin = 0; e < k; e++) {
            if (e + 1 < k && (ends >> e & 1) == 0) continue;
            part_p[parts++] = sum_in_either_way(s, each, e + 1 - begin, p_e + begin);
            begin = e + 1;
        }
        if (parts <= ranks.parts)
            hull = sinkproof_honest_hull(hull, honest_sum_of_parts(s, ranks, parts, part_p));
    }
    return hull;
}

//> bound.form-router
// Softmax over all experts, then division by the sum of the chosen weights. A chosen p_k = e_k / S
// rounds once, and S is the same in all of them. So this equals the softmax over the chosen logits
// with exponentials that err by one rounding more and by the distance between the largest logit and
// the largest chosen one. S <= E, so p_k may be flushed where e_k is below E times the smallest
// normal number.
static bool weights_renormalised(const sinkproof_setting *s, size_t n_experts,
                                 const sinkproof_honest *g_e, size_t k, const sinkproof_honest *z_k,
                                 sinkproof_honest *w_k, double *common) {
    double top = -INFINITY, chosen = -INFINITY;
    for (size_t e = 0; e < n_experts; e++) top = fmax(top, g_e[e].hi);
    for (size_t i = 0; i < k; i++) chosen = fmax(chosen, z_k[i].lo);
    sinkproof_policy coarser = *s->policy;
    double declared = coarser.ulp[SINKPROOF_EXP] * 2 * s->u,
           more = fmax(s->u, declared_quotient(s)) + s->u * fmax(top - chosen, 0);
    coarser.ulp[SINKPROOF_EXP] += more * (1 + declared) * (1 + more) / (2 * s->u);
    sinkproof_setting t = *s;
    t.policy = &coarser;
    if (!sinkproof_honest_softmax(&t, AT_M4, k, z_k, sinkproof_exact_set(-INFINITY), w_k, common))
        return false;
    double flush = s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    for (size_t i = 0; i < k; i++)
        w_k[i] = sinkproof_honest_declared(w_k[i], 0, (double)n_experts * flush);
    return true;
}
//< bound.form-router

bool sinkproof_honest_expert_weights(const sinkproof_setting *s, size_t n_experts,
                                     const sinkproof_honest *g_e, size_t k, const int32_t *chosen_k,
                                     sinkproof_honest *w_k, double *common) {
    sinkproof_honest z_k[SINKPROOF_MAX_CHOSEN], after_k[SINKPROOF_MAX_CHOSEN + 1];
    sinkproof_honest all_k[SINKPROOF_MAX_CHOSEN + 1], none = sinkproof_exact_set(-INFINITY);
    bool renormalises =
        sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_M4, SINKPROOF_M4_ALL_RENORMALISED);
    bool after = !renormalises || sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_M4,
                                                          SINKPROOF_FORM_DEFINITION);
    for (size_t i = 0; i < k; i++) z_k[i] = g_e[chosen_k[i]];
    if (renormalises && !weights_renormalised(s, n_experts, g_e, k, z_k, all_k, common))
        return false;
    if (after && !sinkproof_honest_softmax(s, AT_M4, k, z_k, none, after_k, common)) return false;
    for (size_t i = 0; i < k; i++)
        w_k[i] = !renormalises ? after_k[i]
                 : after       ? sinkproof_honest_hull(after_k[i], all_k[i])
                               : all_k[i];
    return true;
}

//> moe.sum
static void weigh_outputs(const sinkproof_setting *s, size_t k, const sinkproof_honest *w_e,
                          const sinkproof_honest *d_e, sinkproof_honest *p_e) {
    for (size_t e = 0; e < k; e++) {
        sinkproof_honest w = honest_flushed(s, w_e[e]);
        sinkproof_honest d = honest_flushed(s, d_e[e]);
        sinkproof_honest p = sinkproof_honest_inside(s, sinkproof_honest_mul(w, d));
        p_e[e] = sinkproof_honest_at(s, AT_M11_PROD, p);
    }
}

static sinkproof_honest sum_on_one_rank(const sinkproof_setting *s, sinkproof_rounding running,
                                        size_t k, const sinkproof_honest *p_e) {
    if (running.format == SINKPROOF_REAL) return honest_sum_in_any_order(s, k, p_e);
    return (running.optional ? sum_in_either_way : running_sum)(s, running, k, p_e);
}

sinkproof_honest sinkproof_honest_mixture(const sinkproof_setting *s, size_t k,
                                          const sinkproof_honest *w_e,
                                          const sinkproof_honest *d_e) {
    sinkproof_honest p_e[SINKPROOF_MAX_CHOSEN];
    sinkproof_rounding running = s->policy->at[AT_M11_SUM];
    weigh_outputs(s, k, w_e, d_e, p_e);
    sinkproof_honest sum = running.format == SINKPROOF_RANKS ? sum_over_ranks(s, running, k, p_e)
                                                             : sum_on_one_rank(s, running, k, p_e);
    sum = sinkproof_honest_inside(s, sum);
    if (s->policy->at[AT_M11_PART].format != SINKPROOF_RANKS)
        sum = sinkproof_honest_at(s, AT_M11_PART, sum);
    return sinkproof_honest_at(s, AT_M11, sum);
}
//< moe.sum

//> bound.parts-mixed
bool sinkproof_honest_slice(const sinkproof_setting *s, const sinkproof_accumulator *a,
                            const sinkproof_planes *x, const sinkproof_weight_rows *w, size_t first,
                            size_t n, sinkproof_honest *out) {
    sinkproof_accumulator own = *a; // of one rank
    own.b_r = NULL, own.acc.optional = true;
    if (own.acc.format == SINKPROOF_RANKS) own.acc = (sinkproof_rounding){.format = SINKPROOF_REAL};
    if (own.acc.format == SINKPROOF_BLOCKS) own.acc.format = own.acc.part;
    sinkproof_planes slice = planes_columns(x, first, n);
    bool fine = slice.mid != NULL && honest_sum_columns(s, &own, &slice, w, first, out);
    sinkproof_planes_free(&slice);
    return fine;
}

sinkproof_honest sinkproof_honest_slice_output(const sinkproof_setting *s, size_t terms,
                                               sinkproof_honest sum, double b) {
    sinkproof_rounding at = s->policy->at[AT_M9];
    if (at.format != SINKPROOF_REAL) sinkproof_honest_finish(s, AT_M9, 1, &sum);
    at.optional = at.optional || at.format == SINKPROOF_REAL; // the bias may be one more term
    if (b != 0) sum = sinkproof_honest_add(sum, sinkproof_honest_bias(s, at, terms, b));
    sinkproof_honest_finish(s, AT_M10, 1, &sum);
    return sum;
}

sinkproof_honest sinkproof_honest_mixed_parts(const sinkproof_setting *s, size_t ranks, size_t k,
                                              const sinkproof_honest *w_e,
                                              const sinkproof_honest *d_re,
                                              sinkproof_honest whole) {
    sinkproof_honest p_e[SINKPROOF_MAX_CHOSEN], part_r[SINKPROOF_MAX_RANKS];
    sinkproof_rounding running = s->policy->at[AT_M11_SUM];
    if (running.format == SINKPROOF_RANKS)
        running = (sinkproof_rounding){.format = running.part, .optional = true};
    for (size_t r = 0; r < ranks; r++) {
        weigh_outputs(s, k, w_e, d_re + r * k, p_e);
        part_r[r] = sum_on_one_rank(s, running, k, p_e);
    }
    sinkproof_rounding at = s->policy->at[AT_M11_PART];
    sinkproof_honest sum = honest_sum_of_parts(s, at, ranks, part_r);
    sum = sinkproof_honest_at(s, AT_M11, sinkproof_honest_inside(s, sum));
    return at.optional ? sinkproof_honest_hull(whole, sum) : sinkproof_honest_hull(sum, whole);
}
//< bound.parts-mixed
