// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the steps between the products, one row of the 20b model at a time on one thread, in
// cache: their roof is the first-level cache or the arithmetic, whichever is lower.
#include "audit/bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 2880, HEADS = 72, HEAD_DIM = 64, CHOSEN = 4, N_EXP = 4096 };

typedef struct stages {
    const sinkproof_kernels *table;
    float x[2 * HIDDEN], out[2 * HIDDEN], scale[HIDDEN], y_kc[CHOSEN][HIDDEN];
    float q[HEADS * HEAD_DIM], cos_d[HEAD_DIM / 2], sin_d[HEAD_DIM / 2];
    float from[N_EXP], to[N_EXP];
} stages;

static void run_rmsnorm(void *of) {
    stages *s = of;
    s->table->rmsnorm(HIDDEN, s->x, s->scale, 1e-5f, s->out);
}

static void run_rope(void *of) { // 64 query heads and 8 key heads
    stages *s = of;
    for (size_t h = 0; h < HEADS; h++)
        s->table->rope(HEAD_DIM, s->cos_d, s->sin_d, s->q + h * HEAD_DIM);
}

static void run_swiglu(void *of) {
    stages *s = of;
    s->table->swiglu(HIDDEN, (sinkproof_swiglu_numbers){1.702, 7, 1}, s->x, s->out);
}

static void run_mixture(void *of) {
    stages *s = of;
    const float weights_k[CHOSEN] = {0.4f, 0.3f, 0.2f, 0.1f};
    const float *y_k[CHOSEN];
    for (size_t k = 0; k < CHOSEN; k++) y_k[k] = s->y_kc[k];
    s->table->mixture(HIDDEN, CHOSEN, weights_k, y_k, s->out);
}

static void run_exp(void *of) {
    stages *s = of;
    s->table->exp(N_EXP, s->from, s->to);
}

// Random numbers of size at most 1; the arguments of the exponentials are from 0 down to -20.
static stages *make_operands(const sinkproof_bench *bench) {
    stages *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (s == NULL) abort();
    memset(s, 0, sizeof *s);
    s->table = bench->table;
    bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)s->x, sizeof s->x);
    bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)s->scale, sizeof s->scale);
    bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)s->y_kc, sizeof s->y_kc);
    bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)s->q, sizeof s->q);
    for (size_t d = 0; d < HEAD_DIM / 2; d++) s->cos_d[d] = 0.8f, s->sin_d[d] = 0.6f;
    for (size_t i = 0; i < N_EXP; i++) s->from[i] = -20.0f * (float)i / (float)N_EXP;
    return s;
}

void sinkproof_bench_stages(sinkproof_bench *bench) {
    // The work of one call: fused operations; other operations (a product or a sum alone takes the
    // unit as long); exponentials; bytes read plus bytes written. For exp see fast/lanes/exp.h.
    const struct {
        const char *id;
        void (*run)(void *of);
        double fused, others, exps, bytes;
    } all[] = {
        {"stage.rmsnorm", run_rmsnorm, HIDDEN, 2 * HIDDEN, 0, 16 * HIDDEN},
        {"stage.rope", run_rope, HEADS * HEAD_DIM, HEADS * HEAD_DIM, 0, 8 * HEADS * HEAD_DIM},
        {"stage.swiglu", run_swiglu, 0, 4 * HIDDEN, HIDDEN, 12 * HIDDEN},
        {"stage.mixture", run_mixture, CHOSEN * HIDDEN, 0, 0, 4 * (CHOSEN + 1) * HIDDEN},
        {"stage.exp", run_exp, 9 * N_EXP, N_EXP, 0, 8 * N_EXP},
    };
    // In portable C only fused operations are slow: each is a call of fmaf.
    double others = strcmp(bench->table->isa, "portable") == 0 ? 0 : 1;
    stages *s = make_operands(bench);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bench_case c = {.run = all[i].run, .of = s, .threads = 1};
        snprintf(c.id, sizeof c.id, "%s", all[i].id);
        c.need[BENCH_CACHE] = all[i].bytes;
        c.need[BENCH_FMA] = 2 * (all[i].fused + others * all[i].others);
        c.need[BENCH_EXP] = all[i].exps;
        if (all[i].run == run_exp) c.amount = 1e-9 * (double)N_EXP, c.unit = "Gexp/s";
        bench_measure(bench, 1, &c);
    }
    free(s);
}
