// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// LayerNorm (layernorm.forward, bound.layernorm). The reference against long double. Inside the
// set: float32 engines that compute the moments in every way for which the bound is claimed, in
// every order, and write the result in every way. Outside: the mistakes of such a norm.
#include "tests/shared/bounds_engine.h"

#include "proofs/truth/truth.h"
#include "ref/stages.h"

static const uint64_t SEED = 20260118;
enum { MOST = 768 };
static const double EPS = 1e-5;

typedef enum input_kind {
    GAUSS,
    ZERO,
    ONE_LARGE,
    MEAN_LARGE,
    EQUAL,
    SPREAD,
    TINY,
    DRIFTING, // a running sum rounds most of them the same way
    INPUTS
} input_kind;

typedef struct row {
    size_t d;
    double x[MOST], scale[MOST], shift[MOST];
} row;

static void fill(uint64_t *state, input_kind kind, sinkproof_format format, size_t d, row *r) {
    double level = kind == TINY ? 1e-6 : 1;
    r->d = d;
    for (size_t i = 0; i < d; i++) {
        double x = level * draw_gauss(state);
        if (kind == ZERO) x = 0;
        if (kind == MEAN_LARGE) x += 64;
        if (kind == SPREAD) x = ldexp(x, (int)(i % 41) - 20);
        if (kind == EQUAL && i > 0) x = r->x[0];
        if (kind == DRIFTING) x = i % 12 == 0 ? 1 + x : 1 + 0x1p-15 - 0x1p-22;
        r->x[i] = sinkproof_round(format, x);
        r->scale[i] = sinkproof_round(SINKPROOF_BF16, 1 + 0.5 * draw_gauss(state));
        r->shift[i] = sinkproof_round(SINKPROOF_BF16, 0.5 * draw_gauss(state));
    }
    if (kind == ONE_LARGE) r->x[draw_below(state, d)] *= 4096;
}

// ---- the reference

static sinkproof_matrix vector_of(const double *values, size_t d) {
    return (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = 1,
                              .cols = d,
                              .data = (const uint8_t *)values,
                              .row_stride = d,
                              .stack_stride = d,
                              .col_stride = 1,
                              .name = "test"};
}

// In binary64: against a ball, inside the set whose unit roundoff is that of binary64.
static void test_reference(void) {
    static row r;
    static double y[MOST], work[2 * MOST];
    static sinkproof_honest x_k[MOST], y_k[MOST];
    sinkproof_policy policy = policy_named("real-f64");
    uint64_t state = SEED;
    tally t = {0}, truth_in = {0};
    for (int round = 0; round < 20 * INPUTS; round++) {
        input_kind kind = (input_kind)(round % INPUTS);
        size_t d = round % 3 == 0 ? 1 + (size_t)draw_below(&state, 8) : 96;
        fill(&state, kind, SINKPROOF_F32, d, &r);
        sinkproof_matrix scale = vector_of(r.scale, d), shift = vector_of(r.shift, d);
        sinkproof_setting s = sinkproof_setting_for(&policy, d, STANDARD_RATE);
        arb_ptr in = _arb_vec_init((slong)d), truth = _arb_vec_init((slong)d);
        for (size_t k = 0; k < d; k++) {
            arb_set_d(in + k, r.x[k]);
            x_k[k] = sinkproof_exact_set(r.x[k]);
        }
        sinkproof_layernorm(&policy, AT_A1, &scale, &shift, EPS, 1, r.x, y, work);
        sinkproof_truth_layernorm(truth, in, 1, &scale, &shift, EPS, 256);
        sinkproof_honest_layernorm(&s, AT_A1, &(sinkproof_norm){d, r.scale, EPS}, r.shift, x_k,
                                   y_k);
        for (size_t k = 0; k < d; k++) {
            meet(&t, &y_k[k], y[k]);
            meet(&truth_in, &y_k[k], arf_get_d(arb_midref(truth + k), ARF_RND_NEAR));
        }
        _arb_vec_clear(in, (slong)d);
        _arb_vec_clear(truth, (slong)d);
    }
    inside_ok(&t, "layernorm.forward bound.layernorm", "ref in binary64");
    inside_ok(&truth_in, "layernorm.forward bound.layernorm", "the enclosed value");
}

// ---- engines

typedef enum moments_by { TWO_PASS, WELFORD, MERGED, SQUARES, WAYS } moments_by;
static const char *const way_names[WAYS] = {"two passes", "Welford", "merged parts",
                                            "mean square less squared mean"};

typedef struct engine {
    moments_by way;
    summation order;
    bool fused, backward, sample, reciprocal;
    int written; // of the result: which of its forms
    leaning lean;
} engine;

static engine draw_engine(uint64_t *state, moments_by way) {
    uint64_t w = draw(state);
    return (engine){.way = way,
                    .order = (summation)(w % ORDERS),
                    .fused = w >> 8 & 1,
                    .backward = w >> 9 & 1,
                    .reciprocal = w >> 10 & 1,
                    .written = (int)(w >> 12) % 4,
                    .lean = (leaning)((w >> 16) % LEANS)};
}

// Mean and sum of squared deviations of x[0, n), a running mean.
static void welford(const engine *e, size_t n, const float *x, float *mean, float *squares) {
    *mean = *squares = 0;
    for (size_t k = 1; k <= n; k++) {
        float v = x[e->backward ? n - k : k - 1], apart = v - *mean;
        *mean += e->reciprocal ? apart * (1.0f / (float)k) : apart / (float)k;
        *squares = e->fused ? fmaf(apart, v - *mean, *squares) : *squares + apart * (v - *mean);
    }
}

// Parts of 16, merged in pairs.
static void merged(const engine *e, size_t n, const float *x, float *mean, float *squares) {
    if (n <= 16) {
        welford(e, n, x, mean, squares);
        return;
    }
    size_t half = (n / 2 + 15) / 16 * 16;
    float m_a, q_a, m_b, q_b;
    merged(e, half, x, &m_a, &q_a);
    merged(e, n - half, x + half, &m_b, &q_b);
    float apart = m_b - m_a, share = (float)(n - half) / (float)n;
    *mean = m_a + apart * share;
    *squares = q_a + q_b + apart * apart * share * (float)half;
}

static void moments_of(uint64_t *state, const engine *e, size_t n, const float *x, float *mean,
                       float *variance) {
    static float c[MOST];
    float squares;
    float count = (float)(e->sample ? n - 1 : n);
    if (e->way == WELFORD || e->way == MERGED) {
        (e->way == WELFORD ? welford : merged)(e, n, x, mean, &squares);
        *variance = squares / count;
        return;
    }
    *mean = engine_sum(state, e->order, n, x);
    *mean = e->reciprocal ? *mean * (1.0f / (float)n) : *mean / (float)n;
    for (size_t i = 0; i < n; i++) c[i] = e->way == SQUARES ? x[i] : x[i] - *mean;
    squares = engine_dot(state, e->order, e->fused, n, c, c, NULL, false);
    *variance = squares / count - (e->way == SQUARES ? *mean * *mean : 0);
}

typedef enum mistake { NONE, NO_SHIFT, EPS_OUTSIDE, SAMPLE, NO_MEAN, NO_SCALE, MISTAKES } mistake;
static const char *const mistake_names[MISTAKES] = {"",
                                                    "no shift",
                                                    "epsilon outside the root",
                                                    "the variance of a sample",
                                                    "no mean subtracted",
                                                    "no scale"};

static void run(uint64_t *state, engine e, mistake wrong, double declared, const row *r, float *y) {
    static float x[MOST];
    float m, v;
    for (size_t i = 0; i < r->d; i++) x[i] = (float)r->x[i];
    e.sample = wrong == SAMPLE;
    moments_of(state, &e, r->d, x, &m, &v);
    double under = (double)(v + (float)EPS);
    float root = (float)within_ulps(state, 1 / sqrt(under), declared, e.lean);
    if (wrong == EPS_OUTSIDE) root = 1 / (sqrtf(v) + (float)EPS);
    if (wrong == NO_MEAN) m = 0;
    for (size_t i = 0; i < r->d; i++) {
        float w = wrong == NO_SCALE ? 1 : (float)r->scale[i];
        float b = wrong == NO_SHIFT ? 0 : (float)r->shift[i];
        y[i] = e.written == 0   ? (x[i] - m) * root * w + b
               : e.written == 1 ? (x[i] * root + -m * root) * w + b // torch on a processor
               : e.written == 2 ? fmaf(x[i] - m, root * w, b)
                                : fmaf(x[i], root * w, b - m * (root * w));
    }
}

static void set_of(const sinkproof_setting *s, const row *r, sinkproof_honest *y_k) {
    static sinkproof_honest x_k[MOST];
    for (size_t k = 0; k < r->d; k++) x_k[k] = sinkproof_exact_set(r->x[k]);
    sinkproof_honest_layernorm(s, AT_A1, &(sinkproof_norm){r->d, r->scale, EPS}, r->shift, x_k,
                               y_k);
}

static void engines_inside(const char *policy_name, moments_by way) {
    static const size_t dims[] = {2, 3, 96, 768};
    static row r;
    static sinkproof_honest y_k[MOST];
    static float y[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format stored = policy.at[AT_A1].format;
    uint64_t state = SEED + (uint64_t)way;
    tally t = {0};
    for (int round = 0; round < 4 * INPUTS * 4; round++) {
        input_kind kind = (input_kind)(round % INPUTS);
        size_t d = dims[round / INPUTS % 4];
        sinkproof_setting s = sinkproof_setting_for(&policy, d, STANDARD_RATE);
        fill(&state, kind, stored, d, &r);
        set_of(&s, &r, y_k);
        for (int e = 0; e < 6; e++) {
            run(&state, draw_engine(&state, way), NONE, policy.ulp[SINKPROOF_RSQRT], &r, y);
            // What a cancelled variance leaves may be negative: such a set has no bounds.
            for (size_t k = 0; k < d; k++)
                if (y_k[k].hi < INFINITY) meet(&t, &y_k[k], sinkproof_round(stored, y[k]));
        }
    }
    char what[96];
    snprintf(what, sizeof what, "%s, %s", policy_name, way_names[way]);
    inside_ok(&t, "bound.layernorm", what);
}

// Inputs that are sets: the engine's lie anywhere in them.
static void inputs_with_freedom(void) {
    static row r, own;
    static sinkproof_honest x_k[MOST], y_k[MOST];
    static float y[MOST];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 96, STANDARD_RATE);
    uint64_t state = SEED + 9;
    tally t = {0};
    for (int round = 0; round < 120; round++) {
        fill(&state, (input_kind)(round % INPUTS), SINKPROOF_F32, 96, &r);
        own = r;
        for (size_t k = 0; k < 96; k++) {
            double w = ldexp(fabs(r.x[k]) + 1e-6, -8 - round % 12);
            x_k[k] = sinkproof_set_around(r.x[k], w, w, 0, 0);
            own.x[k] = (float)(r.x[k] + (2 * draw_unit(&state) - 1) * w * 0.999);
        }
        sinkproof_honest_layernorm(&s, AT_A1, &(sinkproof_norm){96, r.scale, EPS}, r.shift, x_k,
                                   y_k);
        run(&state, draw_engine(&state, (moments_by)(round % WAYS)), NONE,
            policy.ulp[SINKPROOF_RSQRT], &own, y);
        for (size_t k = 0; k < 96; k++) meet(&t, &y_k[k], (double)y[k]);
    }
    inside_ok(&t, "bound.layernorm", "inputs with freedom");
}

// In every row some element is outside.
static void mistakes_outside(const char *policy_name) {
    static row r;
    static sinkproof_honest y_k[MOST];
    static float y[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format stored = policy.at[AT_A1].format;
    for (int wrong = NO_SHIFT; wrong < MISTAKES; wrong++) {
        uint64_t state = SEED + 20 + (uint64_t)wrong;
        size_t seen = 0, rows = 20;
        for (size_t i = 0; i < rows; i++) {
            sinkproof_setting s = sinkproof_setting_for(&policy, 768, STANDARD_RATE);
            // Small numbers, of which epsilon is no trifle; a mean that matters.
            fill(&state, GAUSS, stored, 768, &r);
            for (size_t k = 0; k < 768; k++) {
                r.x[k] = sinkproof_round(stored, (r.x[k] + 0.5) / 256);
            }
            set_of(&s, &r, y_k);
            run(&state, draw_engine(&state, TWO_PASS), (mistake)wrong, 0, &r, y);
            bool outside = false;
            for (size_t k = 0; k < 768; k++) {
                double v = sinkproof_round(stored, y[k]);
                outside = outside || !(v >= y_k[k].lo && v <= y_k[k].hi);
            }
            seen += outside;
        }
        ok(seen == rows, "bound.layernorm %s, %s: outside in %zu of %zu rows", policy_name,
           mistake_names[wrong], seen, rows);
    }
}

int main(void) {
    test_reference();
    for (int way = 0; way < WAYS; way++) {
        engines_inside("f32", (moments_by)way);
        engines_inside("hf-bf16", (moments_by)way);
    }
    inputs_with_freedom();
    mistakes_outside("f32");
    mistakes_outside("hf-bf16");
    return tap_done();
}
