// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sets of many elements in vectors have the bits of the functions for one element, on each
// instruction set that this processor runs: numbers and sets, around each edge, under policies that
// round at other places. Few elements are odd, and only those that the vectors leave out.
#include "proofs/bounds/abreast.h"
#include "tests/shared/bounds_engine.h"

enum { ROWS = 400 };

static const char *const POLICIES[] = {"f32",
                                       "f32,M8.form=sigmoid",
                                       "f32,M8.form=tanh",
                                       "f32,ftz=none",
                                       "f32,exp=4ulp",
                                       "bf16-operands",
                                       "openai-bf16",
                                       "hf-bf16",
                                       "mlx",
                                       "bf16",
                                       "llama-cpp",
                                       "vllm-bf16"};

static double draw_member(uint64_t *state) {
    static const double edges[] = {-100,     -60,      -7,   -1,      -0x1p-20, 0,
                                   0x1p-100, 0x1p-126, 1,    2.5,     7 - 1e-6, 7 + 1e-6,
                                   7,        100,      -0.0, 0x1p101, -0x1p127};
    uint64_t kind = draw(state) % 64;
    if (kind == 0) return edges[draw_below(state, sizeof edges / sizeof *edges)];
    if (kind == 1) return ldexp(draw_gauss(state), -(int)(draw(state) % 140));
    return (double)(float)(2 * draw_gauss(state));
}

// A number, a set around it, or what is left of one after a rounding.
static sinkproof_honest draw_set(uint64_t *state, int kind) {
    double x = draw_member(state), width = fabs(x) * ldexp(1 + draw_unit(state), -8 - kind * 3);
    if (kind == 0) return sinkproof_exact_set(x);
    if (draw(state) % 200 == 0) return sinkproof_unknown_set(x);
    sinkproof_honest set =
        sinkproof_set_around(x, width, width * draw_unit(state), width * width * 1e-3, width / 64);
    set.order = draw(state) % 4 == 0 ? INFINITY : width * width * 1e-4;
    return kind % 2 == 0 ? sinkproof_honest_rounded(SINKPROOF_F32, set) : set;
}

// Whether every member has the same bits.
static bool same(const sinkproof_honest *x, const sinkproof_honest *y) {
    return memcmp(x, y, sizeof *x) == 0;
}

static sinkproof_honest finished(const sinkproof_setting *s, sinkproof_point point,
                                 sinkproof_honest x) {
    sinkproof_honest_finish(s, point, 1, &x); // one alone is not in vectors
    return x;
}

typedef struct tallies {
    size_t checked, odd, apart, ordinary_odd;
} tallies;

static void count(tallies *t, bool odd, bool ordinary, bool equal) {
    t->checked++, t->odd += odd, t->apart += !odd && !equal, t->ordinary_odd += odd && ordinary;
}

static bool is_ordinary(const sinkproof_honest *x) {
    double least = x->lo > 0 ? x->lo : -x->hi, most = fmax(-x->lo, x->hi);
    return least >= 0x1p-20 && most <= 4;
}

static void check_policy(const sets_abreast *abreast, const char *set, const char *name) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    sinkproof_policy policy = policy_named(name);
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000, STANDARD_RATE);
    swiglu_terms terms;
    tallies swiglu = {0}, finish = {0};
    bool many = swiglu_terms_of(&s, config.swiglu, &terms);
    uint64_t state = 20261128;
    for (int row = 0; row < ROWS; row++) {
        size_t n = 1 + draw_below(&state, ABREAST), stride = 1 + row % 2;
        sinkproof_honest gate_n[2 * ABREAST], up_n[2 * ABREAST], y_n[ABREAST], x_n[ABREAST];
        bool odd_n[ABREAST];
        for (size_t l = 0; l < n * stride; l++) {
            gate_n[l] = draw_set(&state, row % 5), up_n[l] = draw_set(&state, row / 5 % 5);
            if (row % 10 == 0) up_n[l] = sinkproof_exact_set(draw_member(&state));
        }
        for (size_t l = 0; l < n; l++) x_n[l] = gate_n[l];
        if (many) abreast->swiglu(&terms, n, gate_n, up_n, stride, y_n, odd_n);
        for (size_t l = 0; many && l < n; l++) {
            const sinkproof_honest *g = &gate_n[l * stride], *u = &up_n[l * stride];
            sinkproof_honest one = sinkproof_honest_swiglu(&s, config.swiglu, *g, *u);
            count(&swiglu, odd_n[l], is_ordinary(g) && is_ordinary(u) && u->lo > 0,
                  same(&one, &y_n[l]));
        }
        for (sinkproof_point p = AT_A1; p <= AT_M10; p += AT_M10 - AT_A1) {
            sinkproof_honest z_n[ABREAST];
            if (!rounds_abreast(policy.at[p]) || policy.inside != SINKPROOF_F32) continue;
            memcpy(z_n, x_n, sizeof z_n);
            abreast->finish(policy.at[p], n, z_n, odd_n);
            for (size_t l = 0; l < n; l++) {
                sinkproof_honest one = finished(&s, p, x_n[l]);
                count(&finish, odd_n[l], is_ordinary(&x_n[l]),
                      odd_n[l] ? same(&x_n[l], &z_n[l]) : same(&one, &z_n[l]));
            }
        }
    }
    if (many)
        ok(swiglu.apart == 0 && swiglu.ordinary_odd == 0 && swiglu.odd < swiglu.checked / 2,
           "bound.swiglu %s, %s: of %zu sets %zu have other bits, %zu are odd, %zu without reason",
           set, name, swiglu.checked, swiglu.apart, swiglu.odd, swiglu.ordinary_odd);
    if (finish.checked > 0)
        ok(finish.apart == 0 && finish.ordinary_odd == 0 && finish.odd < finish.checked / 4,
           "rounded %s, %s: of %zu sets %zu have other bits, %zu are odd, %zu without reason", set,
           name, finish.checked, finish.apart, finish.odd, finish.ordinary_odd);
}

// Rows of any length, with odd elements among the others.
static void check_rows(void) {
    enum { LONGEST = 3 * ABREAST + 5 };
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000, STANDARD_RATE);
    uint64_t state = 7;
    size_t apart = 0;
    sinkproof_honest x[2 * LONGEST], y[LONGEST], z[LONGEST];
    for (size_t n = 0; n <= LONGEST; n++) {
        for (size_t i = 0; i < 2 * n; i++) x[i] = draw_set(&state, (int)(n % 5));
        sinkproof_honest_swiglu_row(&s, config.swiglu, n, &x[0], &x[1], 2, y);
        for (size_t i = 0; i < n; i++) {
            z[i] = sinkproof_honest_swiglu(&s, config.swiglu, x[2 * i], x[2 * i + 1]);
            apart += !same(&z[i], &y[i]);
        }
        memcpy(y, z, sizeof y);
        sinkproof_honest_finish(&s, AT_M10, n, y);
        for (size_t i = 0; i < n; i++) {
            z[i] = finished(&s, AT_M10, z[i]);
            apart += !same(&z[i], &y[i]);
        }
    }
    ok(apart == 0, "bound.swiglu rows of up to %d elements: %zu have other bits", (int)LONGEST,
       apart);
}

int main(void) {
    const sets_abreast *of[SETS_ABREAST_MOST];
    size_t all = sets_abreast_all(of);
    static const char *const names[SETS_ABREAST_MOST] = {"avx2", "avx512"};
    for (size_t k = 0; k < all; k++)
        for (size_t p = 0; p < sizeof POLICIES / sizeof *POLICIES; p++)
            check_policy(of[k], names[k], POLICIES[p]);
    check_rows();
    return tap_done();
}
