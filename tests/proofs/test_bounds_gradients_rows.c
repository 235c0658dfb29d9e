// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The backward pass of one key head and its two query heads: honest kernels, each drawn with its
// own order of sums, splits of the keys, order of the blocks of queries, kept or recomputed
// weights, stored or unstored output, and operands rounded to bfloat16 or not, are inside the sets
// of dq, dk, dv, the sinks' gradients and the value bias's. Kernels with a mistake are outside.
//
//   test_bounds_gradients_rows [KERNELS]     200 drawn kernels
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/gradients.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <stdlib.h>

enum { N = 40, HEADS = 2, DIM = 16, WINDOW = 24, RESULTS = 5 };
static const double unit = 0x1p-24, narrow = 0x1p-8; // of float32 and of bfloat16

typedef sinkproof_honest set;
typedef double tensor[HEADS][N][DIM], weights[HEADS][N][N], row_numbers[HEADS][N];

// Exact inputs of the backward pass, but for `sink`, the logits. Weights are float32 numbers.
typedef struct problem {
    tensor q, dout, o;
    double k[N][DIM], v[N][DIM];
    weights alpha;
    row_numbers alpha_s;
    size_t window;
} problem;

// dq, dk, dv, dsink, and the gradient of a bias of the values.
typedef struct results {
    tensor dq;
    double dk[N][DIM], dv[N][DIM], dsink[HEADS], dbias[DIM];
} results;
typedef struct result_sets {
    set dq[HEADS][N][DIM], dk[N][DIM], dv[N][DIM], dsink[HEADS], dbias[DIM];
} result_sets;

static double uniform(uint64_t *state) { // [-1, 1), 8 bits: bfloat16 has them
    return (double)draw_below(state, 256) * 0x1p-7 - 1;
}

static size_t first_key(const problem *p, size_t i) {
    return sinkproof_mask_first(p->window, i);
}

// b: the sinks' logits. The output is that of the weights over the reals, and then float32.
static void draw_problem(problem *p, uint64_t *state, double b) {
    p->window = draw_below(state, 2) ? WINDOW : 0;
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < DIM; d++) p->k[i][d] = uniform(state), p->v[i][d] = uniform(state);
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) {
            double z = exp(b + uniform(state)), sum = z;
            for (size_t d = 0; d < DIM; d++)
                p->q[h][i][d] = uniform(state), p->dout[h][i][d] = uniform(state);
            for (size_t j = 0; j < N; j++) p->alpha[h][i][j] = 0;
            for (size_t j = first_key(p, i); j <= i; j++) {
                double s = 0;
                for (size_t d = 0; d < DIM; d++) s += p->q[h][i][d] * p->k[j][d];
                sum += p->alpha[h][i][j] = exp(s / 4);
            }
            p->alpha_s[h][i] = (double)(float)(z / sum);
            for (size_t j = first_key(p, i); j <= i; j++)
                p->alpha[h][i][j] = (double)(float)(p->alpha[h][i][j] / sum);
            for (size_t d = 0; d < DIM; d++) {
                double o = 0;
                for (size_t j = first_key(p, i); j <= i; j++) o += p->alpha[h][i][j] * p->v[j][d];
                p->o[h][i][d] = (double)(float)o;
            }
        }
}

// ---- the sets --------------------------------------------------------------------------------

// What every kernel may do: the weights are within `again` of the kept ones, in relation; O may be
// stored in bfloat16; and what a product reads may be rounded to it.
static const double again = 0x1p-20;

static set near(double x, double relative) {
    double off = fabs(x) * relative;
    return sinkproof_set_around(x, off, off, 0, 0);
}
static set exact(double x) {
    return sinkproof_exact_set(x);
}
static set rounded_or_not(set x) {
    double most = fmax(fabs(x.lo), fabs(x.hi)) * narrow;
    return sinkproof_set_around(x.mid, x.mid - x.lo + most, x.hi - x.mid + most, 0, 0);
}

typedef struct row_sets {
    set alpha[N], ds[N], delta, alpha_s;
} row_sets;

static void sets_of_row(const problem *p, size_t h, size_t i, row_sets *r) {
    set given[DIM], output[DIM], values[DIM];
    for (size_t d = 0; d < DIM; d++) {
        given[d] = exact(p->dout[h][i][d]);
        output[d] = near(p->o[h][i][d], narrow);
    }
    r->delta = sinkproof_honest_gradient_sum(DIM, given, 1, output, 1, unit);
    r->alpha_s = near(p->alpha_s[h][i], again);
    for (size_t j = first_key(p, i); j <= i; j++) {
        for (size_t d = 0; d < DIM; d++) values[d] = exact(p->v[j][d]);
        set dalpha = sinkproof_honest_gradient_sum(DIM, given, 1, values, 1, unit);
        r->alpha[j] = near(p->alpha[h][i][j], again);
        r->ds[j] = rounded_or_not(honest_score_gradient(r->alpha[j], dalpha, r->delta, unit));
        r->alpha[j] = rounded_or_not(r->alpha[j]);
    }
}

static set quarter(set x) { // 1 / sqrt(16), exact
    return (set){x.lo / 4, x.hi / 4, x.likely_lo / 4, x.likely_hi / 4, x.mid / 4, 0, 0, 0, 0};
}

// A column of what two query heads and the queries that see key j give: x times y.
typedef struct column {
    set x[HEADS * N], y[HEADS * N];
    size_t n;
} column;

static set sum_of(const column *c) {
    return sinkproof_honest_gradient_sum(c->n, c->x, 1, c->y, 1, unit);
}

static void sets_of(const problem *p, result_sets *to) {
    row_sets(*row)[N] = calloc(HEADS, sizeof *row);
    column *c = malloc(sizeof *c);
    must(row != NULL && c != NULL);
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) sets_of_row(p, h, i, &row[h][i]);
    for (size_t d = 0; d < DIM; d++) {
        for (size_t j = 0; j < N; j++)
            for (int of_v = 0; of_v < 2; of_v++) {
                c->n = 0;
                for (size_t h = 0; h < HEADS; h++)
                    for (size_t i = j; i < N; i++) {
                        if (first_key(p, i) > j) continue;
                        c->x[c->n] = of_v ? row[h][i].alpha[j] : row[h][i].ds[j];
                        c->y[c->n++] = exact(of_v ? p->dout[h][i][d] : p->q[h][i][d]);
                    }
                *(of_v ? &to->dv[j][d] : &to->dk[j][d]) = of_v ? sum_of(c) : quarter(sum_of(c));
            }
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = 0; i < N; i++) {
                size_t first = first_key(p, i);
                for (size_t j = first; j <= i; j++)
                    c->x[j - first] = row[h][i].ds[j], c->y[j - first] = exact(p->k[j][d]);
                c->n = i + 1 - first;
                to->dq[h][i][d] = quarter(sum_of(c));
            }
        c->n = 0;
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = 0; i < N; i++) {
                double mass = 1 - p->alpha_s[h][i], off = again + unit;
                c->x[c->n] = sinkproof_set_around(mass, off, off, 0, 0);
                c->y[c->n++] = exact(p->dout[h][i][d]);
            }
        to->dbias[d] = sum_of(c);
    }
    for (size_t h = 0; h < HEADS; h++) {
        set weight[N], delta[N];
        for (size_t i = 0; i < N; i++) weight[i] = row[h][i].alpha_s, delta[i] = row[h][i].delta;
        to->dsink[h] = sinkproof_honest_sink_gradient(N, weight, delta, unit);
    }
    free(row), free(c);
}

// ---- kernels ---------------------------------------------------------------------------------

typedef enum mistake {
    NONE,
    ONE_HEAD,     // of the group's, in dk
    NO_WINDOW,    // the mask is lost in dv: hidden keys are given the window's first weight
    RENORMALISED, // weights that add up to 1 in D
    PER_SPLIT,    // the sink's gradient once for each of two splits
    FULL_MASS,    // 1 in place of 1 - alpha_s
    STALE,        // weights of other scores: an eighth more
    MISTAKES
} mistake;

typedef struct kernel {
    uint64_t order;
    size_t block; // queries, or keys, whose terms are added before the block's sum is
    bool fused, stored, recomputed, narrow_weights, narrow_ds, products_first, atomics;
    mistake wrong;
} kernel;

static kernel draw_kernel(uint64_t *state, mistake wrong) {
    return (kernel){.order = draw_below(state, 1u << 30),
                    .block = (size_t)1 << draw_below(state, 6),
                    .fused = draw_below(state, 2),
                    .stored = draw_below(state, 2),
                    .recomputed = draw_below(state, 2),
                    .narrow_weights = draw_below(state, 2),
                    .narrow_ds = draw_below(state, 2),
                    .products_first = draw_below(state, 2),
                    .atomics = draw_below(state, 2),
                    .wrong = wrong};
}

// Terms x y as a kernel adds them: blocks in the order in which they come, or as they stand.
static float add_up(const kernel *e, size_t n, const float *x, const float *y) {
    float part[HEADS * N] = {0}, total = 0;
    size_t blocks = (n + e->block - 1) / e->block;
    uint64_t state = e->order;
    for (size_t t = 0; t < n; t++) {
        float *sum = &part[t / e->block];
        *sum = e->fused ? fmaf(x[t], y[t], *sum) : *sum + x[t] * y[t];
    }
    for (size_t b = blocks; b > 0; b--) {
        size_t at = e->atomics ? draw_below(&state, b) : b - 1;
        total += part[at];
        part[at] = part[b - 1];
    }
    return total;
}

static float bf16(bool rounds, float x) {
    return rounds ? (float)sinkproof_round(SINKPROOF_BF16, (double)x) : x;
}

// A weight that is recomputed from scores and a log-sum-exp errs by some units of the last place.
static float weight_of(const kernel *e, double alpha, size_t at) {
    double units = e->recomputed ? (double)(at % 13) - 6 : 0;
    double scores = e->wrong == STALE ? 1.125 : 1;
    return (float)(alpha * scores * (1 + units * 0x1p-23));
}

static float delta_of(const kernel *e, const problem *p, size_t h, size_t i) {
    float x[DIM], y[DIM];
    double mass = e->wrong == RENORMALISED ? 1 - p->alpha_s[h][i] : 1;
    for (size_t d = 0; d < DIM; d++) {
        x[d] = (float)p->dout[h][i][d];
        y[d] = bf16(e->stored, (float)(p->o[h][i][d] / mass));
    }
    return add_up(e, DIM, x, y);
}

typedef struct rows {
    float alpha[HEADS][N][N], ds[HEADS][N][N], delta[HEADS][N], alpha_s[HEADS][N];
} rows;

static void run_rows(const kernel *e, const problem *p, rows *r) {
    float x[DIM], y[DIM];
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) {
            float delta = r->delta[h][i] = delta_of(e, p, h, i);
            r->alpha_s[h][i] = weight_of(e, p->alpha_s[h][i], i);
            for (size_t j = 0; j < N; j++) r->alpha[h][i][j] = r->ds[h][i][j] = 0;
            for (size_t j = first_key(p, i); j <= i; j++) {
                for (size_t d = 0; d < DIM; d++)
                    x[d] = (float)p->dout[h][i][d], y[d] = (float)p->v[j][d];
                float a = weight_of(e, p->alpha[h][i][j], i + j), da = add_up(e, DIM, x, y);
                float ds = e->products_first ? a * da - a * delta : a * (da - delta);
                r->ds[h][i][j] = bf16(e->narrow_ds, ds);
                r->alpha[h][i][j] = bf16(e->narrow_weights, a);
            }
            if (e->wrong == NO_WINDOW && p->window > 0)
                for (size_t j = 0; j < first_key(p, i); j++)
                    r->alpha[h][i][j] = r->alpha[h][i][first_key(p, i)];
        }
}

static void run_columns(const kernel *e, const problem *p, const rows *r, size_t d, results *to) {
    float x[HEADS * N], y[HEADS * N];
    for (size_t j = 0; j < N; j++)
        for (int of_v = 0; of_v < 2; of_v++) {
            size_t n = 0;
            for (size_t h = 0; h < (e->wrong == ONE_HEAD ? 1 : HEADS); h++)
                for (size_t i = j; i < N; i++, n++) {
                    x[n] = of_v ? r->alpha[h][i][j] : r->ds[h][i][j];
                    y[n] = (float)(of_v ? p->dout[h][i][d] : p->q[h][i][d]);
                }
            *(of_v ? &to->dv[j][d] : &to->dk[j][d]) =
                (double)(add_up(e, n, x, y) * (of_v ? 1 : 0.25F));
        }
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) {
            size_t first = first_key(p, i);
            for (size_t j = first; j <= i; j++)
                x[j - first] = r->ds[h][i][j], y[j - first] = (float)p->k[j][d];
            to->dq[h][i][d] = (double)(add_up(e, i + 1 - first, x, y) * 0.25F);
        }
    for (size_t h = 0, n = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++, n++) {
            x[n] = e->wrong == FULL_MASS ? 1 : 1 - r->alpha_s[h][i];
            y[n] = (float)p->dout[h][i][d];
        }
    to->dbias[d] = (double)add_up(e, HEADS * N, x, y);
}

static void run_kernel(const kernel *e, const problem *p, results *to) {
    rows *r = malloc(sizeof *r);
    must(r != NULL);
    run_rows(e, p, r);
    for (size_t d = 0; d < DIM; d++) run_columns(e, p, r, d, to);
    for (size_t h = 0; h < HEADS; h++) {
        float sum = add_up(e, N, r->alpha_s[h], r->delta[h]);
        to->dsink[h] = -(double)sum * (e->wrong == PER_SPLIT ? 2 : 1);
    }
    free(r);
}

// ---- what is outside -------------------------------------------------------------------------

static const struct {
    size_t at, sets_at, n;
} parts[RESULTS] = {{offsetof(results, dq), offsetof(result_sets, dq), HEADS *N *DIM},
                    {offsetof(results, dk), offsetof(result_sets, dk), N *DIM},
                    {offsetof(results, dv), offsetof(result_sets, dv), N *DIM},
                    {offsetof(results, dsink), offsetof(result_sets, dsink), HEADS},
                    {offsetof(results, dbias), offsetof(result_sets, dbias), DIM}};

typedef struct tally {
    size_t elements, outside[RESULTS], all;
    double worst;
} tally;

static void compare(const results *r, const result_sets *s, tally *t) {
    for (size_t k = 0; k < RESULTS; k++) {
        const double *x = (const double *)(const void *)((const char *)r + parts[k].at);
        const set *of = (const set *)(const void *)((const char *)s + parts[k].sets_at);
        for (size_t i = 0; i < parts[k].n; i++) {
            bool out = !(of[i].lo <= x[i] && x[i] <= of[i].hi);
            t->elements++, t->outside[k] += out, t->all += out;
            double radius = sinkproof_radius(&of[i]);
            if (radius > 0)
                t->worst = sinkproof_keep_worst(t->worst, fabs(x[i] - of[i].mid) / radius);
        }
    }
}

static void run_honest(size_t kernels) {
    tally t = {0};
    size_t convicted = 0;
    uint64_t state = 2026;
    problem *p = malloc(sizeof *p);
    results *r = malloc(sizeof *r);
    result_sets *s = malloc(sizeof *s);
    must(p != NULL && r != NULL && s != NULL);
    for (size_t e = 0; e < kernels; e++) {
        if (e % 4 == 0) { // four kernels a problem
            draw_problem(p, &state, (double)draw_below(&state, 13) - 4);
            sets_of(p, s);
        }
        kernel one = draw_kernel(&state, NONE);
        size_t before = t.all;
        run_kernel(&one, p, r);
        compare(r, s, &t);
        convicted += t.all > before;
    }
    ok(convicted == 0 && t.worst <= 1,
       "grad.rounded drawn kernels of attention's backward pass: kernels=%zu convicted=%zu "
       "elements=%zu worst=%.3g bound=1",
       kernels, convicted, t.elements, t.worst);
    free(p), free(r), free(s);
}

static void run_mistakes(void) {
    static const struct {
        mistake wrong;
        size_t shows; // in which result
        const char *id, *what;
    } list[] = {{ONE_HEAD, 1, "grad.group", "dk of one head of the group"},
                {ONE_HEAD, 2, "grad.group", "dv of one head of the group"},
                {NO_WINDOW, 2, "grad.values", "dv without the window"},
                {RENORMALISED, 0, "grad.delta", "dq with D of weights that add up to 1"},
                {RENORMALISED, 3, "grad.sink", "a sink's gradient with D of such weights"},
                {PER_SPLIT, 3, "grad.sink", "a sink's gradient once for each split"},
                {FULL_MASS, 4, "grad.value-bias", "a value bias with 1 in place of 1 - alpha_s"},
                {STALE, 0, "grad.softmax", "dq of stale weights"}};
    problem *p = malloc(sizeof *p);
    results *r = malloc(sizeof *r);
    result_sets *s = malloc(sizeof *s);
    must(p != NULL && r != NULL && s != NULL);
    for (size_t m = 0; m < sizeof list / sizeof *list; m++) {
        uint64_t state = 7 + m;
        tally t = {0};
        do draw_problem(p, &state, 2);
        while (p->window == 0);
        sets_of(p, s);
        kernel e = draw_kernel(&state, list[m].wrong);
        run_kernel(&e, p, r);
        compare(r, s, &t);
        ok(t.outside[list[m].shows] > 0, "%s %s is outside: %zu of %zu", list[m].id, list[m].what,
           t.outside[list[m].shows], parts[list[m].shows].n);
    }
    free(p), free(r), free(s);
}

int main(int argc, char **argv) {
    run_honest(argc > 1 ? strtoul(argv[1], NULL, 10) : 200);
    run_mistakes();
    return tap_done();
}
