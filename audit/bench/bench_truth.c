// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the truth's products (proofs/truth/sliced.h) in turn with three libraries' ways to the
// same balls: arb_mat_mul, arb_dot and mpfr_fma. One thread each. A rate is of multiply-adds of a
// weight and an activation, whatever a way makes of it; so a slow way takes fewer rows.
#include "audit/bench/bench.h"
#include "base/splitmix.h"
#include "model/model.h"
#include "proofs/truth/sliced.h"
#include "proofs/truth/truth.h"

#include <stdlib.h>

typedef struct exact {
    sinkproof_matrix w;
    size_t n;
    slong bits;
    arb_ptr x_nc, y_nr;
    arb_mat_t a, b, c; // of arb_mat_mul
    mpfr_ptr x_c, sum; // of mpfr_fma
} exact;

static void run_sliced(void *of) {
    exact *p = of;
    sinkproof_sliced_linear(p->y_nr, p->x_nc, p->n, &p->w, NULL, p->bits, 1, NULL);
}

// Decodes the weights, too.
static void set_rows(arb_ptr w_rc, const sinkproof_matrix *w) {
    double *scratch_c = malloc(w->cols * sizeof *scratch_c);
    if (scratch_c == NULL) abort();
    for (size_t r = 0; r < w->rows; r++) sinkproof_truth_row(w_rc + r * w->cols, w, r, scratch_c);
    free(scratch_c);
}

static void run_mat_mul(void *of) {
    exact *p = of;
    set_rows(p->a->entries, &p->w);
    arb_mat_mul(p->c, p->a, p->b, p->bits);
}

static void run_dot(void *of) {
    exact *p = of;
    set_rows(p->a->entries, &p->w);
    for (size_t r = 0; r < p->w.rows; r++)
        for (size_t i = 0; i < p->n; i++)
            arb_dot(p->y_nr + i * p->w.rows + r, NULL, 0, p->a->rows[r], 1, p->x_nc + i * p->w.cols,
                    1, (slong)p->w.cols, p->bits);
}

// Midpoints alone: MPFR has no radii.
static void run_fma(void *of) {
    exact *p = of;
    double *w_c = malloc(p->w.cols * sizeof *w_c);
    mpfr_t weight;
    if (w_c == NULL) abort();
    mpfr_init2(weight, 53);
    for (size_t r = 0; r < p->w.rows; r++) {
        sinkproof_matrix_row(&p->w, r, w_c);
        for (size_t i = 0; i < p->n; i++) {
            mpfr_set_zero(p->sum, 1);
            for (size_t c = 0; c < p->w.cols; c++) {
                mpfr_set_d(weight, w_c[c], MPFR_RNDN);
                mpfr_fma(p->sum, weight, p->x_c + i * p->w.cols + c, p->sum, MPFR_RNDN);
            }
        }
    }
    mpfr_clear(weight);
    free(w_c);
}

// Numbers near 1 with all bits of the precision, and radii of 2^(10 - bits).
static void exact_init(exact *p, const sinkproof_matrix *w, size_t rows, size_t n, slong bits) {
    uint64_t state = 1;
    *p = (exact){.w = *w, .n = n, .bits = bits};
    if (rows < w->rows) p->w.rows = rows;
    p->x_nc = ball_vector(n * w->cols);
    p->y_nr = ball_vector(n * p->w.rows);
    p->x_c = malloc(n * w->cols * sizeof *p->x_c);
    p->sum = malloc(sizeof *p->sum);
    if (p->x_c == NULL || p->sum == NULL) abort();
    mpfr_init2(p->sum, bits);
    arb_mat_init(p->a, (slong)p->w.rows, (slong)w->cols);
    arb_mat_init(p->b, (slong)w->cols, (slong)n);
    arb_mat_init(p->c, (slong)p->w.rows, (slong)n);
    for (size_t k = 0; k < n * w->cols; k++) {
        arb_ptr x = p->x_nc + k;
        arb_set_ui(x, sinkproof_draw(&state) >> 1 | UINT64_C(1) << 61);
        arb_sqrt(x, x, bits);
        arb_mul_2exp_si(x, x, -31);
        mag_set_ui_2exp_si(arb_radref(x), 1, 10 - bits);
        if (sinkproof_draw(&state) % 2) arb_neg(x, x);
        arb_set(arb_mat_entry(p->b, (slong)(k % w->cols), (slong)(k / w->cols)), x);
        mpfr_init2(p->x_c + k, bits);
        arf_get_mpfr(p->x_c + k, arb_midref(x), MPFR_RNDN);
    }
}

static void exact_clear(exact *p) {
    for (size_t k = 0; k < p->n * p->w.cols; k++) mpfr_clear(p->x_c + k);
    mpfr_clear(p->sum);
    free(p->x_c);
    free(p->sum);
    arb_mat_clear(p->a);
    arb_mat_clear(p->b);
    arb_mat_clear(p->c);
    ball_vector_release(p->x_nc, p->n * p->w.cols);
    ball_vector_release(p->y_nr, p->n * p->w.rows);
}

static const struct way {
    const char *name;
    void (*run)(void *of);
    size_t rows;
} ways[] = {{"sliced", run_sliced, 2048},
            {"arb_mat_mul", run_mat_mul, 128},
            {"arb_dot", run_dot, 32},
            {"mpfr_fma", run_fma, 16}};
enum { WAYS = sizeof ways / sizeof *ways };

// Filling the numbers takes time: of what --only leaves out none are made.
static void measure_batch(sinkproof_bench *bench, const char *name, const sinkproof_matrix *w,
                          size_t n, slong bits) {
    bench_case cases[WAYS];
    exact of[WAYS];
    size_t count = 0;
    for (size_t k = 0; k < WAYS; k++) {
        size_t rows = bench->quick ? ways[k].rows / 16 : ways[k].rows;
        bench_case *one = &cases[count];
        *one =
            (bench_case){.run = ways[k].run, .of = &of[count], .threads = 1, .unit = "Mmul-add/s"};
        snprintf(one->id, sizeof one->id, "truth.%s.b%ld.n%zu.%s", name, (long)bits, n,
                 ways[k].name);
        if (!bench_is_wanted(bench, one->id)) continue;
        exact_init(&of[count], w, bench->looks ? 1 : rows, bench->looks ? 1 : n, bits);
        one->amount = (double)of[count++].w.rows * (double)w->cols * (double)n / 1e6;
    }
    if (count > 0) bench_measure(bench, count, cases);
    for (size_t k = 0; k < count; k++) exact_clear(&of[k]);
}

// The attention's output and an expert of the 20b shape: a layer's shares of bf16 and MXFP4.
bool sinkproof_bench_truth(sinkproof_bench *bench, sinkproof_error *error) {
    static const size_t batches[] = {1, 4, 64};
    static const slong precisions[] = {128, 256, 704};
    sinkproof_model *model;
    if (!sinkproof_model_open("synthetic:gpt-oss-20b,layers=1", &model, error)) return false;
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    sinkproof_matrix expert = sinkproof_matrix_at(&layer.w_up, 0);
    for (size_t b = 0; b < sizeof precisions / sizeof *precisions; b++)
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            measure_batch(bench, "output.bf16", &layer.w_o, batches[k], precisions[b]);
            measure_batch(bench, "experts-up.mxfp4", &expert, batches[k], precisions[b]);
        }
    sinkproof_model_close(model);
    flint_cleanup();
    mpfr_free_cache();
    return true;
}
