// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of the operations as they are meant: those of the definition, or of an engine
// that is supposed to compute something else. Both are made of the same primitives, so the answer
// is as strict: every element of such an engine is inside.
#include "audit/judge/judge_internal.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURNING                                                                                    \
    { .turned = true, .position_times = 1, .concentration = 1 }
const sinkproof_meaning sinkproof_meaning_as_defined = {.query = TURNING,
                                                        .key = TURNING,
                                                        .attending = SINKPROOF_ATTENDING,
                                                        .after_values = {1, 1},
                                                        .gate_low = -INFINITY,
                                                        .gate_high = 1,
                                                        .up_low = -1,
                                                        .up_high = 1,
                                                        .up_plus = 1,
                                                        .up_times = 1,
                                                        .mixture_times = 1,
                                                        .after_experts = {1, 1}};

void open_rounding(open_setting *open, const sinkproof_setting *s, sinkproof_point point) {
    open->policy = *s->policy;
    open->policy.at[point] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    open->s = *s;
    open->s.policy = &open->policy;
}

sinkproof_honest set_inverse(sinkproof_honest x) {
    double mid = 1 / x.mid;
    return (sinkproof_honest){.lo = 1 / x.hi * (1 - 0x1p-52),
                              .hi = x.lo > 0 ? 1 / x.lo * (1 + 0x1p-52) : INFINITY,
                              .likely_lo = 1 / x.likely_hi * (1 - 0x1p-52),
                              .likely_hi =
                                  x.likely_lo > 0 ? 1 / x.likely_lo * (1 + 0x1p-52) : INFINITY,
                              .mid = mid,
                              .var = x.var * mid * mid * mid * mid,
                              .spread = x.spread * mid * mid * mid * mid,
                              .bias = x.bias * mid * mid};
}

// ---- norms

double meant_norm(const judge_pass *pass, const sinkproof_setting *s, size_t d,
                  sinkproof_honest *x_d) {
    double eps = pass->config->rms_eps, mean = 0, size = 0, square = 0;
    for (size_t i = 0; pass->meaning->centred && i < d; i++)
        mean += x_d[i].mid / (double)d, size += fabs(x_d[i].mid) / (double)d;
    double worst = sinkproof_gamma((double)d + 1, s->u) * size;
    for (size_t i = 0; pass->meaning->centred && i < d; i++)
        x_d[i] = sinkproof_honest_inside(
            s, sinkproof_honest_sub(x_d[i], sinkproof_set_around(mean, worst, worst, 0, worst)));
    if (!pass->meaning->eps_outside) return eps;
    for (size_t i = 0; i < d; i++) square += x_d[i].mid * x_d[i].mid / (double)d;
    return 2 * eps * sqrt(square) + eps * eps; // (rms + eps)^2 - rms^2
}

// ---- rotation

static double meant_position(const sinkproof_turning *turning, double position) {
    if (turning->position_plus != NULL && position < (double)turning->positions)
        position += turning->position_plus[(size_t)position];
    if (turning->position_modulo > 0) position = fmod(position, turning->position_modulo);
    if (turning->quotient > 0) position = floor(position / (double)turning->quotient);
    return position * turning->position_times + turning->position_by;
}

// Pairs with positions of their own, or with the frequency of another pair; cosine and sine
// exchanged. Each table is of one position.
static void rearrange_table(const judge_pass *pass, const sinkproof_turning *turning,
                            const sinkproof_setting *s, bool scaled, double position,
                            sinkproof_honest *c_p, sinkproof_honest *s_p) {
    size_t half = pass->config->head_dim / 2;
    sinkproof_honest *other = malloc(2 * half * sizeof *other);
    if (other == NULL) return; // the definition's table explains nothing that is wrong
    if (turning->some_pairs.end > 0) {
        (scaled ? sinkproof_honest_rope_table : sinkproof_honest_rope_plain)(
            s, pass->config, position * turning->some_times + turning->some_by, other,
            other + half);
        for (size_t p = 0; p < half; p++)
            if (sinkproof_indices_hold(&turning->some_pairs, p))
                c_p[p] = other[p], s_p[p] = other[half + p];
    }
    memcpy(other, c_p, half * sizeof *other);
    memcpy(other + half, s_p, half * sizeof *other);
    for (size_t p = 0; p < half; p++) {
        size_t from = sinkproof_from_index(&turning->pair_from, p, half);
        if (from == SIZE_MAX) from = p;
        c_p[p] = other[turning->exchanged ? half + from : from];
        s_p[p] = other[turning->exchanged ? from : half + from];
    }
    free(other);
}

// The table of frequencies that are given.
static void given_table(const judge_pass *pass, const sinkproof_turning *turning,
                        const sinkproof_setting *s, bool scaled, double position,
                        sinkproof_honest *c_p, sinkproof_honest *s_p) {
    const sinkproof_rounding at = s->policy->at[AT_A4_ANGLE];
    double u = at.format == SINKPROOF_REAL ? 0x1p-52 : sinkproof_unit_roundoff(at.format);
    sinkproof_honest by =
        sinkproof_exact_set(scaled ? sinkproof_yarn_concentration(pass->config) : 1);
    for (size_t p = 0; p < pass->config->head_dim / 2; p++) {
        double angle = position * turning->frequency_p[p];
        double off = fabs(angle) * (turning->frequency_error + 2 * u);
        double c = off * (fabs(sin(angle)) + off) + 4 * s->u,
               t = off * (fabs(cos(angle)) + off) + 4 * s->u;
        c_p[p] = sinkproof_set_around(cos(angle), c, c, 0, c);
        s_p[p] = sinkproof_set_around(sin(angle), t, t, 0, t);
        c_p[p] = sinkproof_honest_roundings(s, sinkproof_honest_mul(c_p[p], by), 2);
        s_p[p] = sinkproof_honest_roundings(s, sinkproof_honest_mul(s_p[p], by), 2);
        c_p[p] = sinkproof_honest_at(s, AT_A4_COS, c_p[p]);
        s_p[p] = sinkproof_honest_at(s, AT_A4_COS, s_p[p]);
    }
}

void meant_table(const judge_pass *pass, const sinkproof_turning *turning, bool scaled,
                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p) {
    size_t half = pass->config->head_dim / 2;
    sinkproof_setting s = pass_setting(pass, pass->n * half);
    open_setting open;
    double by = pow(sinkproof_yarn_concentration(pass->config), -turning->without_concentration) *
                turning->concentration;
    bool rearranged = turning->exchanged || turning->some_pairs.end > 0 ||
                      turning->pair_from.source != SINKPROOF_FROM_OWN;
    if (by != 1) open_rounding(&open, &s, AT_A4_COS);
    const sinkproof_setting *used = by != 1 ? &open.s : &s;
    (scaled ? sinkproof_honest_rope_table : sinkproof_honest_rope_plain)(
        used, pass->config, meant_position(turning, position), c_p, s_p);
    if (turning->frequency_p != NULL)
        given_table(pass, turning, used, scaled, meant_position(turning, position), c_p, s_p);
    if (rearranged) rearrange_table(pass, turning, used, scaled, position, c_p, s_p);
    for (size_t p = 0; by != 1 && p < half; p++) {
        c_p[p] = sinkproof_honest_at(&s, AT_A4_COS,
                                     sinkproof_honest_mul(c_p[p], sinkproof_exact_set(by)));
        s_p[p] = sinkproof_honest_at(&s, AT_A4_COS,
                                     sinkproof_honest_mul(s_p[p], sinkproof_exact_set(by)));
    }
    for (size_t p = 0; turning->backwards && p < half; p++)
        s_p[p] = sinkproof_honest_mul(s_p[p], sinkproof_exact_set(-1));
}

// An entry of tables of all pairs.
static sinkproof_honest entry_of(const sinkproof_turn_entry *e, const sinkproof_honest *c_p,
                                 const sinkproof_honest *s_p) {
    const sinkproof_honest minus = sinkproof_exact_set(-1);
    switch (e->kind) {
    case SINKPROOF_TURN_SIN:
        return s_p[e->pair];
    case SINKPROOF_TURN_MINUS_COS:
        return sinkproof_honest_mul(c_p[e->pair], minus);
    case SINKPROOF_TURN_MINUS_SIN:
        return sinkproof_honest_mul(s_p[e->pair], minus);
    case SINKPROOF_TURN_ZERO:
        return sinkproof_exact_set(0);
    case SINKPROOF_TURN_ONE:
        return sinkproof_exact_set(1);
    case SINKPROOF_TURN_COS:
        break;
    }
    return c_p[e->pair];
}

// The rotation with entries of its own for each coordinate: each half by its table.
static void turn_by_entries(const judge_pass *pass, const sinkproof_setting *s,
                            const sinkproof_turning *turning, const sinkproof_turns *turns,
                            const sinkproof_honest *x_d, sinkproof_honest *work_d,
                            sinkproof_honest *y_d) {
    size_t d = pass->config->head_dim, half = d / 2;
    sinkproof_honest *room = malloc(3 * d * sizeof *room), *turned_d = room + 2 * d;
    for (size_t i = 0; room == NULL && i < d; i++) y_d[i] = sinkproof_honest_at(s, AT_A4, x_d[i]);
    for (size_t part = 0; room != NULL && part < 2; part++) {
        const sinkproof_honest *c[] = {turns->c_p, turns->plain_c_p};
        const sinkproof_honest *t[] = {turns->s_p, turns->plain_s_p};
        for (size_t at = 0; at < 2 * d; at++) {
            size_t table = at / d, k = part * half + at % half, sine = at % d / half;
            if (c[table] == NULL) continue;
            room[at] = entry_of(&turning->entry_k[sine * d + k], c[table], t[table]);
        }
        const sinkproof_turns own = {c[0] != NULL ? room : NULL, room + half,
                                     c[1] != NULL ? room + d : NULL,
                                     c[1] != NULL ? room + d + half : NULL};
        sinkproof_honest_turn(s, pass->config, &own, x_d, work_d, turned_d);
        for (size_t k = part * half; k < (part + 1) * half; k++) y_d[k] = turned_d[k];
    }
    free(room);
}

static void turn_as_meant(const judge_pass *pass, const sinkproof_setting *s,
                          const sinkproof_turning *turning, const sinkproof_turns *turns,
                          const sinkproof_honest *x_d, sinkproof_honest *work_d,
                          sinkproof_honest *y_d) {
    if (turning->entry_k != NULL)
        turn_by_entries(pass, s, turning, turns, x_d, work_d, y_d);
    else
        sinkproof_honest_turn(s, pass->config, turns, x_d, work_d, y_d);
}

void meant_turn(const judge_pass *pass, const sinkproof_setting *s,
                const sinkproof_turning *turning, const sinkproof_turns *turns,
                const sinkproof_honest *x_d, sinkproof_honest *work_d, sinkproof_honest *y_d) {
    size_t d = pass->config->head_dim, half = d / 2;
    // neighbours rearranged as halves
    sinkproof_honest *apart_d = work_d + 2 * d, *turned_d = work_d + 3 * d;
    for (size_t i = 0; !turning->turned && i < d; i++)
        y_d[i] = sinkproof_honest_at(s, AT_A4, x_d[i]);
    if (!turning->turned) return;
    if (!turning->neighbours) {
        turn_as_meant(pass, s, turning, turns, x_d, work_d, y_d);
        for (size_t i = 0; turning->twice && i < d; i++) apart_d[i] = y_d[i];
        if (turning->twice) sinkproof_honest_turn(s, pass->config, turns, apart_d, work_d, y_d);
        for (size_t i = 0; turning->pairs > 0 && i < d; i++)
            if (i % half >= turning->pairs) y_d[i] = sinkproof_honest_at(s, AT_A4, x_d[i]);
        return;
    }
    for (size_t i = 0; i < d; i++) apart_d[i % 2 * half + i / 2] = x_d[i];
    turn_as_meant(pass, s, turning, turns, apart_d, work_d, turned_d);
    for (size_t i = 0; i < d; i++) y_d[i] = turned_d[i % 2 * half + i / 2];
}

// ---- experts

static bool shares_over_all_experts(const judge_pass *pass, const sinkproof_setting *s,
                                    const sinkproof_honest *g_e, size_t k, const int32_t *chosen_k,
                                    sinkproof_honest *w_k, double *common) {
    size_t experts = pass->config->n_experts;
    sinkproof_honest *w_e = malloc((experts + 1) * sizeof *w_e);
    bool fine =
        w_e != NULL && sinkproof_honest_softmax(s, AT_M4, experts, g_e,
                                                sinkproof_exact_set(-INFINITY), w_e, common);
    for (size_t i = 0; fine && i < k; i++) w_k[i] = w_e[chosen_k[i]];
    free(w_e);
    return fine;
}

static bool sigmoid_shares(const sinkproof_setting *s, const sinkproof_honest *g_e, size_t k,
                           const int32_t *chosen_k, bool over_sum, sinkproof_honest *w_k) {
    sinkproof_honest sum = sinkproof_exact_set(0), pair[2];
    double unused;
    open_setting open;
    open_rounding(&open, s, AT_M4);
    for (size_t i = 0; i < k; i++) { // e^g / (e^g + e^0)
        if (!sinkproof_honest_softmax(&open.s, AT_M4, 1, &g_e[chosen_k[i]], sinkproof_exact_set(0),
                                      pair, &unused))
            return false;
        w_k[i] = pair[0];
        sum = sinkproof_honest_add(sum, pair[0]);
    }
    sinkproof_honest by = set_inverse(sum);
    for (size_t i = 0; i < k; i++) {
        if (over_sum)
            w_k[i] = sinkproof_honest_roundings(s, sinkproof_honest_mul(w_k[i], by), (double)k + 1);
        w_k[i] = sinkproof_honest_at(s, AT_M4, w_k[i]);
    }
    return true;
}

// With a 1 in the denominator, which is a sink of logit 0; a softmax of the shares; or of rounded
// logits.
static bool shares_otherwise(const sinkproof_setting *s, const sinkproof_honest *g_e, size_t k,
                             const int32_t *chosen_k, sinkproof_expert_share share,
                             sinkproof_honest *w_k, double *common) {
    sinkproof_honest g_k[SINKPROOF_MAX_CHOSEN] = {{0}}, w[SINKPROOF_MAX_CHOSEN + 1];
    sinkproof_honest sink = sinkproof_exact_set(share == SINKPROOF_SHARE_PLUS_ONE ? 0 : -INFINITY);
    bool twice = share == SINKPROOF_SHARE_TWICE;
    open_setting open;
    open_rounding(&open, s, AT_M4);
    for (size_t i = 0; i < k; i++) g_k[i] = g_e[chosen_k[i]];
    if (share == SINKPROOF_SHARE_OF_BF16) sinkproof_honest_store(SINKPROOF_BF16, k, g_k);
    if (share == SINKPROOF_SHARE_OF_F16) sinkproof_honest_store(SINKPROOF_F16, k, g_k);
    if (!sinkproof_honest_softmax(&open.s, AT_M4, k, g_k, sink, w, common)) return false;
    for (size_t i = 0; twice && i < k; i++) // may be rounded between the two
        g_k[i] = set_hull(w[i], sinkproof_honest_at(s, AT_M4, w[i]));
    if (twice && !sinkproof_honest_softmax(&open.s, AT_M4, k, g_k, sink, w, common)) return false;
    *common = 0;
    for (size_t i = 0; i < k; i++) w_k[i] = sinkproof_honest_at(s, AT_M4, w[i]);
    return true;
}

static bool shares_as_defined(const sinkproof_setting *s, size_t experts,
                              const sinkproof_honest *g_e, size_t k, const int32_t *chosen_k,
                              sinkproof_expert_share share, sinkproof_honest *w_k, double *common) {
    if (!sinkproof_honest_expert_weights(s, experts, g_e, k, chosen_k, w_k, common)) return false;
    for (size_t i = 0; share == SINKPROOF_SHARE_BACKWARDS && 2 * i + 1 < k; i++) {
        sinkproof_honest kept = w_k[i];
        w_k[i] = w_k[k - 1 - i], w_k[k - 1 - i] = kept;
    }
    return true;
}

bool meant_shares(const judge_pass *pass, const sinkproof_setting *s, const sinkproof_honest *g_e,
                  size_t k, const int32_t *chosen_k, sinkproof_honest *w_k, double *common) {
    size_t experts = pass->config->n_experts;
    sinkproof_expert_share share = pass->meaning->share;
    *common = 0;
    if (share == SINKPROOF_SHARE_BEFORE)
        return shares_over_all_experts(pass, s, g_e, k, chosen_k, w_k, common);
    if (share == SINKPROOF_SHARE_SIGMOID || share == SINKPROOF_SHARE_SIGMOIDS)
        return sigmoid_shares(s, g_e, k, chosen_k, share == SINKPROOF_SHARE_SIGMOIDS, w_k);
    if (share >= SINKPROOF_SHARE_PLUS_ONE)
        return shares_otherwise(s, g_e, k, chosen_k, share, w_k, common);
    if (share == SINKPROOF_SHARE_AFTER || share == SINKPROOF_SHARE_BACKWARDS)
        return shares_as_defined(s, experts, g_e, k, chosen_k, share, w_k, common);
    for (size_t i = 0; i < k; i++) {
        sinkproof_honest w = share == SINKPROOF_SHARE_EVEN  ? sinkproof_exact_set(1 / (double)k)
                             : share == SINKPROOF_SHARE_ONE ? sinkproof_exact_set(1)
                                                            : g_e[chosen_k[i]];
        w_k[i] = sinkproof_honest_at(s, AT_M4, sinkproof_honest_inside(s, w));
    }
    return true;
}
