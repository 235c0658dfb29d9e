// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores (bound.linear, sink.key-bias) at every width of a head: float32 kernels that multiply a
// sum by a rounded 1 / sqrt(d) or by one over a rounded root, that divide by the root, or that
// scale the query first. All are inside their sets. Drift accuses none of them, although the error
// of a constant is the same in every score.
#include "tests/shared/bounds_engine.h"

#include <stdlib.h>

static const uint64_t SEED = 20261126;
enum { WIDEST = 256, KEYS = 400 };

typedef enum scaling { ROUNDED, RECIPROCAL, DIVIDED, QUERY, SCALINGS } scaling;
static const char *const names[] = {"a rounded constant", "one over a rounded root",
                                    "divided by a rounded root", "the query first"};

static float scale_of(scaling how, size_t d) {
    return how == ROUNDED ? (float)(1 / sqrt((double)d)) : 1 / sqrtf((float)d);
}

static float score(scaling how, size_t d, const float *q, const float *k) {
    float sum = 0, scale = scale_of(how, d);
    for (size_t i = 0; i < d; i++) sum += (how == QUERY ? q[i] * scale : q[i]) * k[i];
    return how == QUERY ? sum : how == DIVIDED ? sum / sqrtf((float)d) : sum * scale;
}

// Short numbers, so that all but the scaling is exact; the same where products undo each other; or
// floats where they do, but for a little.
typedef enum operands { SHORT, UNDONE, FLOATS, OPERANDS } operands;

static void draw_key(size_t d, operands of, float *q, float *k, uint64_t *state) {
    for (size_t i = 0; i < d; i++) {
        q[i] = of == FLOATS ? (float)draw_gauss(state) : (float)draw_below(state, 255) - 127;
        k[i] = of == FLOATS ? (float)draw_gauss(state) : 3 * ((float)draw_below(state, 31) - 15);
        if (of == SHORT || i % 2 == 0) continue;
        q[i] = 3 * q[i - 1], k[i] = -k[i - 1] / 3; // other bits
        if (of == FLOATS) k[i] += (float)draw_below(state, 3) * 0x1p-20f;
    }
    if (of == UNDONE) q[0] += 1;
}

static const char *policy_of(scaling how, operands of) {
    return how != QUERY   ? "llama-cpp"
           : of == FLOATS ? "f32"
                          : "bf16-operands"; // the first fixes A5
}

// A row of scores and their sets.
static void draw_scores(const sinkproof_setting *s, scaling how, size_t d, operands of, double *v,
                        sinkproof_honest *set, uint64_t *state) {
    double terms = sinkproof_score_terms(s, d, d);
    for (size_t j = 0; j < KEYS; j++) {
        float q[WIDEST] = {0}, k[WIDEST] = {0};
        sinkproof_honest q_d[WIDEST], k_d[WIDEST];
        draw_key(d, of, q, k, state);
        for (size_t i = 0; i < d; i++)
            q_d[i] = sinkproof_exact_set((double)q[i]), k_d[i] = sinkproof_exact_set((double)k[i]);
        sinkproof_planes x = sinkproof_planes_new(q_d, 1, d, d);
        sinkproof_planes y = sinkproof_planes_new(k_d, 1, d, d);
        must(sinkproof_honest_products(s, &x, &y, &terms, NULL, &set[j], 1));
        sinkproof_planes_free(&x), sinkproof_planes_free(&y);
        set[j] = sinkproof_honest_score(s, d, set[j]);
        v[j] = (double)score(how, d, q, k);
    }
}

static void inside(scaling how) {
    uint64_t state = SEED + (uint64_t)how;
    size_t outside = 0, values = 0;
    for (size_t d = 2; d <= WIDEST; d += d < 16 ? 2 : 10)
        for (operands of = 0; of < OPERANDS; of++) {
            sinkproof_policy policy = policy_named(policy_of(how, of));
            sinkproof_setting s = sinkproof_setting_for(&policy, KEYS, STANDARD_RATE);
            sinkproof_honest set[KEYS];
            double v[KEYS];
            draw_scores(&s, how, d, of, v, set, &state);
            for (size_t j = 0; j < KEYS; j++)
                outside += !(v[j] >= set[j].lo && v[j] <= set[j].hi), values++;
        }
    ok(outside == 0, "bound.linear sink.key-bias scores, %s: outside=%zu bound=0 of=%zu",
       names[how], outside, values);
}

// Sums that are exact, at widths whose constant is far off.
static void lean(scaling how) {
    static const size_t widths[] = {18, 72, 112, 136, 242, 254};
    uint64_t state = SEED + 10 + (uint64_t)how;
    const size_t n_widths = sizeof widths / sizeof *widths;
    size_t wrong = 0;
    for (size_t w = 0; w < n_widths; w++) {
        sinkproof_policy policy = policy_named(policy_of(how, SHORT));
        sinkproof_setting s = sinkproof_setting_for(&policy, KEYS, STANDARD_RATE);
        sinkproof_drift drift = {0};
        sinkproof_drift_result said;
        for (size_t r = 0; r < 20; r++) {
            sinkproof_honest set[KEYS];
            double v[KEYS];
            draw_scores(&s, how, widths[w], SHORT, v, set, &state);
            sinkproof_drift_row(&drift, KEYS, v, set, 0, (double)r / 20);
        }
        must(sinkproof_drift_judge(&drift, STANDARD_RATE, &said));
        wrong += sinkproof_drift_leans(&said);
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0, "stat.drift scores, %s: leaning=%zu bound=0 of=%zu widths", names[how], wrong,
       n_widths);
}

int main(void) {
    for (scaling how = 0; how < SCALINGS; how++) inside(how), lean(how);
    return tap_done();
}
