// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The forms of the attention weights (bound.form-base2, bound.form-running-max, bound.form-lse):
// float32 kernels as they are shipped, with scores of 175 and more, sinks of 30 and more and near
// the log of the sum, and 1 to 4096 keys. Each is inside the worst-case set and the likely set of
// its form, and does not drift. Most are outside the set of the definition. Mistakes that resemble
// these forms are outside every set.
#include "tests/shared/forms_engine.h"

#include <stdlib.h>

static const uint64_t SEED = 20260211;
enum { ELEMENTS = 1 << 18 };

// ---- rows ---------------------------------------------------------------------------------------

// Most elements are in the longest rows: they are drawn a third as often as each other length.
static const size_t lengths[] = {1,   2,   5, 33, 128, 700, 1,   2,   5,   33,
                                 128, 700, 1, 2,  5,   33,  128, 700, 4096};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static double lse_of(const row *r) {
    double m = -INFINITY, sum = 0;
    for (size_t j = 0; j < r->n; j++) m = fmax(m, r->z[j]);
    for (size_t j = 0; j < r->n; j++) sum += exp(r->z[j] - m);
    return m + log(sum);
}

// Scores about a level: small, large of both signs, all near 175, rising; sinks as they come.
static void draw_row(uint64_t *state, size_t number, row *r) {
    static const double levels[] = {0, 0, 175, -175, 40, 300}, spreads[] = {2, 175, 3, 5, 12, 1};
    static const float sinks[] = {0, 30, -30, 100, -300};
    size_t kind = number % 6;
    r->n = lengths[draw_below(state, LENGTHS)];
    r->scale = number % 3 == 0 ? (float)(1 / sqrt(80.0)) : 0.125f;
    for (size_t j = 0; j < r->n; j++) {
        double place = kind == 4 ? 20 * (double)j / (double)r->n : 0;
        double to = kind == 1 ? 2 * draw_unit(state) - 1 : draw_gauss(state);
        r->raw[j] = (float)((levels[kind] + place + spreads[kind] * to) / r->scale);
        r->z[j] = r->raw[j] * r->scale;
    }
    size_t sink = draw_below(state, 8);
    r->b = sink < 5 ? sinks[sink] : (float)(lse_of(r) + 2 * draw_gauss(state));
}

// 29 keys with scores of 175 and a sink near the log of their sum: the kernels' hardest rows.
static void draw_hard_row(uint64_t *state, row *r) {
    r->n = 29, r->scale = 0.125f;
    for (size_t j = 0; j < r->n; j++) {
        r->raw[j] = (float)((175 + 2 * draw_gauss(state)) / r->scale);
        r->z[j] = r->raw[j] * r->scale;
    }
    r->b = (float)(lse_of(r) + draw_gauss(state));
}

// ---- slips that resemble a form -----------------------------------------------------------------

static void log2_e_in_bf16(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float c = (float)sinkproof_round(SINKPROOF_BF16, log2_e), m = top_of(r->n + 1, z) * c;
    for (size_t j = 0; j <= r->n; j++) e_j[j] = exp2_of(f, fmaf(z[j], c, -m));
    divide(f, r->n, e_j, alpha);
}

static void lse_in_bf16(const machine *f, const row *r, float *alpha) {
    float lse = lse_float(f, r->n, r->z);
    gate_with(f, r, (float)sinkproof_round(SINKPROOF_BF16, lse), alpha);
}

static float in_bf16(float x) {
    return (float)sinkproof_round(SINKPROOF_BF16, (double)x);
}

// Tensors of bfloat16 from LSE on: LSE with the sink by torch's logsumexp, e^(LSE - LSE').
static void gate_in_bf16(const machine *f, const row *r, float *alpha) {
    float lse = in_bf16(lse_float(f, r->n, r->z)), most = fmaxf(lse, r->b), m = top_of(r->n, r->z);
    float e = in_bf16(exp_of(f, in_bf16(lse - most))),
          e_b = in_bf16(exp_of(f, in_bf16(r->b - most)));
    float all = in_bf16(in_bf16(log_of(f, in_bf16(e + e_b))) + most);
    float gate = in_bf16(exp_of(f, in_bf16(lse - all)));
    for (size_t j = 0; j < r->n; j++) e_j[j] = exp_of(f, r->z[j] - m);
    float sum = engine_sum(f->state, f->order, r->n, e_j);
    for (size_t j = 0; j < r->n; j++) alpha[j] = e_j[j] / sum * gate;
    alpha[r->n] = 1 - gate;
}

static void gate_of_another_lse(const machine *f, const row *r, float *alpha) { // with the sink
    gate_with(f, r, lse_float(f, r->n + 1, joined(r)), alpha);
}

// ---- met with the sets --------------------------------------------------------------------------

static const kernel slips[] = {
    {"log2(e) in bf16", "bound.form-base2", "any", log2_e_in_bf16},
    {"the gate's LSE in bf16", "bound.form-lse", "any", lse_in_bf16},
    {"the gate's LSE with the sink", "bound.form-lse", "any", gate_of_another_lse},
    {"each step of the gate in bf16", "bound.lse-rounded", "any", gate_in_bf16},
};
enum { ROWS = 420, HARD_ROWS = 200, CHECKED = 6000 }; // under FEW=1 a part of the rows

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void set_of(const char *forms, const row *r, sinkproof_honest *a_j, double *common) {
    static sinkproof_honest z_j[MOST];
    char text[80];
    snprintf(text, sizeof text, "f32,A9.form=%s", forms);
    sinkproof_policy policy = policy_named(text);
    sinkproof_setting s = sinkproof_setting_for(&policy, CHECKED, STANDARD_RATE);
    for (size_t j = 0; j < r->n; j++) z_j[j] = sinkproof_exact_set(r->z[j]);
    must(sinkproof_honest_softmax(&s, AT_A9, r->n, z_j, sinkproof_exact_set(r->b), a_j, common));
}

typedef struct found {
    tally definition, own, any;
    sinkproof_drift drift;
    double wider[ELEMENTS];
    size_t n_wider;
} found;

enum { DEFINITION = 1, OWN = 2, ANY = 4 }; // the sets that are asked for

static void met(const kernel *k, bool hard, unsigned sets, found *t) {
    static row r;
    static float alpha[MOST + 1];
    static double values[MOST + 1];
    static sinkproof_honest narrow[MOST + 1], own[MOST + 1], any[MOST + 1];
    uint64_t state = SEED;
    *t = (found){.own.floor = 0x1p-120, .any.floor = 0x1p-120};
    const size_t rows = hard ? HARD_ROWS : ROWS;
    for (size_t i = 0; i < rows; i++) {
        double common, own_common;
        if (hard)
            draw_hard_row(&state, &r);
        else
            draw_row(&state, i, &r);
        machine f = draw_machine(&state);
        k->run(&f, &r, alpha);
        if (sets & DEFINITION) set_of("definition", &r, narrow, &common);
        if (sets & OWN) set_of(k->forms, &r, own, &own_common);
        if (sets & ANY) set_of("any", &r, any, &common);
        for (size_t j = 0; j <= r.n; j++) {
            values[j] = alpha[j];
            if (sets & DEFINITION) meet(&t->definition, &narrow[j], alpha[j]);
            if (sets & OWN) meet(&t->own, &own[j], alpha[j]);
            if (sets & ANY) meet(&t->any, &any[j], alpha[j]);
            bool both = (sets & DEFINITION) && (sets & OWN);
            if (both && narrow[j].mid > 0x1p-120 && t->n_wider < ELEMENTS)
                t->wider[t->n_wider++] = (own[j].hi - own[j].lo) / (narrow[j].hi - narrow[j].lo);
        }
        if (sets & OWN)
            sinkproof_drift_row(&t->drift, r.n + 1, values, own, own_common,
                                (double)i / (double)rows);
    }
    qsort(t->wider, t->n_wider, sizeof *t->wider, ascending);
}

static void honest(const kernel *k) {
    static found t;
    met(k, false, DEFINITION | OWN | ANY, &t);
    sinkproof_drift_result drift;
    must(sinkproof_drift_judge(&t.drift, STANDARD_RATE, &drift));
    sinkproof_drift_free(&t.drift);
    ok(t.own.outside == 0 && t.any.outside == 0,
       "%s %s worst=%.3g bound=1 outside=%zu of=%zu, in the definition's set outside=%zu, "
       "wider=%.3g in the median and %.3g at most",
       k->id, k->name, t.own.worst, t.own.outside, t.own.checked, t.definition.outside,
       t.wider[t.n_wider / 2], t.wider[t.n_wider - 1]);
    ok(t.own.unlikely == 0 && t.any.unlikely == 0 && fabs(drift.gain) <= drift.limit,
       "%s %s is likely: unlikely=%zu, and does not drift worst=%.3g bound=%.3g (%s)", k->id,
       k->name, t.own.unlikely, fabs(drift.gain), drift.limit, sinkproof_drift_bin_name(drift.bin));
}

// The kernels that the definition convicts although they are right: that is what the forms are for.
static void leaves_the_definition(const kernel *k) {
    static found t;
    met(k, true, DEFINITION | OWN, &t);
    sinkproof_drift_free(&t.drift);
    ok(t.definition.outside > 0 && t.own.outside == 0,
       "%s %s leaves the definition's set: outside=%zu of=%zu, worst=%.3g of it; in its own "
       "outside=%zu "
       "worst=%.3g, wider=%.3g",
       k->id, k->name, t.definition.outside, t.definition.checked, t.definition.worst,
       t.own.outside, t.own.worst, t.wider[t.n_wider / 2]);
}

static void slip(const kernel *k) {
    static found t;
    met(k, false, ANY, &t);
    sinkproof_drift_free(&t.drift);
    ok(t.any.outside > 0, "%s %s leaves the widest set: outside=%zu of=%zu", k->id, k->name,
       t.any.outside, t.any.checked);
}

// An engine that rounds LSE, under a policy that says so.
static void rounded_lse(const kernel *k) {
    static found t;
    met(k, false, OWN, &t);
    sinkproof_drift_result drift;
    must(sinkproof_drift_judge(&t.drift, STANDARD_RATE, &drift));
    sinkproof_drift_free(&t.drift);
    ok(t.own.outside == 0 && t.own.unlikely == 0 && fabs(drift.gain) <= drift.limit,
       "%s %s under A9.form=%s worst=%.3g bound=1 outside=%zu of=%zu unlikely=%zu drift=%.3g of "
       "%.3g",
       k->id, k->name, k->forms, t.own.worst, t.own.outside, t.own.checked, t.own.unlikely,
       fabs(drift.gain), drift.limit);
}

static const kernel said[] = {
    {"the gate's LSE in bf16", "bound.lse-rounded", "lse-gated,A9.lse=bf16", lse_in_bf16},
    {"the gate's LSE in bf16", "bound.lse-rounded", "definition,A9.lse=bf16", lse_in_bf16},
    {"the gate's LSE in bf16", "bound.lse-rounded", "any,A9.lse=bf16?", lse_in_bf16},
    {"sigmoid(LSE - b)", "bound.lse-rounded", "any,A9.lse=bf16?", lse_gated},
    {"each step of the gate in bf16", "bound.lse-rounded", "lse-gated,A9.lse=bf16,A9.gate=bf16",
     gate_in_bf16},
    {"each step of the gate in bf16", "bound.lse-rounded", "any,A9.lse=bf16?,A9.gate=bf16?",
     gate_in_bf16},
    {"sigmoid(LSE - b)", "bound.lse-rounded", "any,A9.lse=bf16?,A9.gate=bf16?", lse_gated},
};
// And one that does not, under a policy that says it does.
static const kernel unsaid = {"the gate's LSE in float32", "bound.lse-rounded", "any,A9.lse=bf16",
                              lse_gated};

static void leaves_rounded_lse(const kernel *k) {
    static found t;
    met(k, false, OWN, &t);
    sinkproof_drift_free(&t.drift);
    ok(t.own.outside > t.own.checked / 20,
       "%s %s leaves the set of A9.lse=bf16: outside=%zu of=%zu", k->id, k->name, t.own.outside,
       t.own.checked);
}

int main(void) {
    for (size_t k = 0; k < KERNELS; k++) honest(&kernels[k]);
    for (size_t k = 0; k < sizeof said / sizeof *said; k++) rounded_lse(&said[k]);
    leaves_rounded_lse(&unsaid);
    leaves_the_definition(&kernels[1]);
    leaves_the_definition(&kernels[6]);
    leaves_the_definition(&kernels[9]);
    for (size_t k = 0; k < sizeof slips / sizeof *slips; k++) slip(&slips[k]);
    return tap_done();
}
