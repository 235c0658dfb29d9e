// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks the backward functions of ref/ on random inputs against the enclosed gradient. The bound
// is grad.rounded: the roundings on the way of a term, times the sum of the sizes of the terms.
#include "audit/verify/verify_draw.h"

#include "proofs/bounds/gradients.h"
#include "proofs/truth/backward.h"
#include "ref/backward/backward.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 8 };

// A drawn array: its numbers, and as balls the same (v) and their sizes (s).
typedef struct drawn {
    size_t n;
    double *x;
    arb_ptr v, s;
} drawn;

static drawn drawn_new(size_t n) {
    drawn d = {n, calloc(n + 1, sizeof(double)), _arb_vec_init((slong)n), _arb_vec_init((slong)n)};
    must(d.x != NULL);
    return d;
}
static void drawn_known(drawn d) {
    for (size_t i = 0; i < d.n; i++) {
        arb_set_d(d.v + i, d.x[i]);
        arb_abs(d.s + i, d.v + i);
    }
}
static drawn draw(uint64_t *seed, size_t n, double size) {
    drawn d = drawn_new(n);
    for (size_t i = 0; i < n; i++) d.x[i] = between(seed, -size, size);
    drawn_known(d);
    return d;
}
static void drawn_free(drawn d) {
    free(d.x);
    _arb_vec_clear(d.v, (slong)d.n), _arb_vec_clear(d.s, (slong)d.n);
}
static arb_ptr side(drawn d, bool sizes) {
    return sizes ? d.s : d.v;
}

// The numbers of ref in d.x against the balls, each within so many roundings of its size.
static void measure(verify_measure *result, drawn d, double roundings) {
    for (size_t i = 0; i < d.n; i++) {
        double size = sinkproof_truth_distance(d.s + i, 0);
        sinkproof_honest set = sinkproof_honest_gradient(0, size, 0, roundings, 0x1p-53);
        verify_add_enclosed(result, sinkproof_truth_distance(d.v + i, d.x[i]), set.hi);
    }
}

// grad.linear
void verify_gradient_linear(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 5), rows = sinkproof_draw_from_to(&seed, 1, 40),
               cols = sinkproof_draw_from_to(&seed, 1, 20);
        drawn w = draw(&seed, rows * cols, 2), x = draw(&seed, n * cols, 4);
        drawn dy = draw(&seed, n * rows, 1), dx = drawn_new(n * cols), dw = drawn_new(rows * cols),
              db = drawn_new(rows);
        double *w_c = calloc(cols, sizeof *w_c);
        must(w_c != NULL);
        sinkproof_matrix m = doubles_matrix(w.x, rows, cols);
        sinkproof_linear_backward(n, &m, x.x, dy.x, dx.x, dw.x, db.x, w_c);
        for (int sizes = 0; sizes < 2; sizes++)
            sinkproof_truth_linear_backward(side(dx, sizes), side(dw, sizes), side(db, sizes), &m,
                                            side(x, sizes), side(dy, sizes), n, sizes, VERIFY_BITS);
        measure(result, dx, (double)rows + 1);
        measure(result, dw, (double)n + 1);
        measure(result, db, (double)n);
        free(w_c);
        drawn_free(w), drawn_free(x), drawn_free(dy);
        drawn_free(dx), drawn_free(dw), drawn_free(db);
    }
}

// grad.rmsnorm: a sum of squares, eps as a decimal, a root and a quotient; a sum along x; three
// products, a difference and the sum that dx adds to. A positive sum's relative error is that of
// its longest path, and a root halves it.
void verify_gradient_rmsnorm(verify_measure *result, uint64_t seed) {
    const double eps = 1e-5;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 3),
               hidden = sinkproof_draw_from_to(&seed, 1, 60);
        drawn scale = draw(&seed, hidden, 2), x = draw(&seed, n * hidden, round % 2 ? 4 : 0.01);
        drawn dy = draw(&seed, n * hidden, 1), dx = drawn_new(n * hidden), dw = drawn_new(hidden);
        sinkproof_rmsnorm_backward(scale.x, eps, n, hidden, x.x, dy.x, dx.x, dw.x);
        for (size_t t = 0; t < n; t++)
            for (int sizes = 0; sizes < 2; sizes++)
                sinkproof_truth_rmsnorm_backward(
                    side(dx, sizes) + t * hidden, side(dw, sizes), side(scale, sizes), eps,
                    side(x, sizes) + t * hidden, side(dy, sizes) + t * hidden, hidden, sizes,
                    VERIFY_BITS);
        measure(result, dx, 4 * (double)hidden + 28);
        measure(result, dw, (double)(hidden + n) + 8);
        drawn_free(scale), drawn_free(x), drawn_free(dy), drawn_free(dx), drawn_free(dw);
    }
}

// grad.rotation
void verify_gradient_rotation(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t heads = sinkproof_draw_from_to(&seed, 1, 4),
               half = sinkproof_draw_from_to(&seed, 1, 16);
        drawn cosine = draw(&seed, half, 1.3), sine = draw(&seed, half, 1.3);
        drawn dy = draw(&seed, heads * 2 * half, 8), dx = drawn_new(heads * 2 * half);
        memcpy(dx.x, dy.x, dx.n * sizeof *dx.x);
        sinkproof_rope_backward(1, heads, 2 * half, cosine.x, sine.x, dx.x);
        for (size_t h = 0; h < heads; h++)
            for (int sizes = 0; sizes < 2; sizes++)
                sinkproof_truth_rope_backward(side(dx, sizes) + h * 2 * half,
                                              side(dy, sizes) + h * 2 * half, side(cosine, sizes),
                                              side(sine, sizes), half, sizes, VERIFY_BITS);
        measure(result, dx, 2);
        drawn_free(cosine), drawn_free(sine), drawn_free(dy), drawn_free(dx);
    }
}

// A head over a few tokens: weights that need not be a softmax's, since each stage is asked alone.
typedef struct row_block {
    sinkproof_block block;
    size_t n, d;
    drawn alpha, q, k, v, o, dout;
} row_block;

static row_block draw_block(uint64_t *seed) {
    size_t n = sinkproof_draw_from_to(seed, 1, 12), d = sinkproof_draw_from_to(seed, 1, 8);
    row_block b = {.block = {.rows = n,
                             .keys = n,
                             .window = sinkproof_draw_from_to(seed, 0, 4),
                             .head_dim = d,
                             .q_stride = d,
                             .kv_stride = d},
                   .n = n,
                   .d = d,
                   .alpha = draw(seed, n * (n + 1), 1),
                   .q = draw(seed, n * d, 4),
                   .k = draw(seed, n * d, 4),
                   .v = draw(seed, n * d, 4),
                   .o = draw(seed, n * d, 4),
                   .dout = draw(seed, n * d, 1)};
    for (size_t i = 0; i < n; i++) // hidden keys have no weight
        for (size_t j = 0; j < n; j++)
            if (j > i || (b.block.window > 0 && j + b.block.window <= i))
                b.alpha.x[i * (n + 1) + j] = 0;
    drawn_known(b.alpha);
    return b;
}
static void block_free(row_block *b) {
    drawn_free(b->alpha), drawn_free(b->q), drawn_free(b->k);
    drawn_free(b->v), drawn_free(b->o), drawn_free(b->dout);
}
static size_t first_seen(const row_block *b, size_t i) {
    size_t window = b->block.window;
    return window > 0 && i + 1 > window ? i + 1 - window : 0;
}

// grad.values, grad.group: two heads of a group add to one dv.
void verify_gradient_values(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        row_block b = draw_block(&seed);
        size_t n = b.n, d = b.d;
        drawn dalpha = drawn_new(n * n), dv = drawn_new(n * d);
        for (int head = 0; head < 2; head++)
            sinkproof_values_backward(&b.block, b.alpha.x, b.v.x, b.dout.x, dalpha.x, dv.x);
        for (size_t i = 0; i < n; i++)
            for (int sizes = 0; sizes < 2; sizes++)
                for (int head = 0; head < 2; head++) {
                    size_t first = first_seen(&b, i);
                    sinkproof_truth_values_backward(
                        side(dalpha, sizes) + i * n + first, side(dv, sizes) + first * d,
                        side(b.alpha, sizes) + i * (n + 1) + first, side(b.v, sizes) + first * d,
                        side(b.dout, sizes) + i * d, i + 1 - first, d, d, VERIFY_BITS);
                }
        measure(result, dalpha, (double)d + 1);
        measure(result, dv, 2 * (double)n + 1);
        drawn_free(dalpha), drawn_free(dv);
        block_free(&b);
    }
}

// grad.softmax, grad.sink: given weights, output and dalpha
void verify_gradient_softmax(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        row_block b = draw_block(&seed);
        size_t n = b.n, d = b.d;
        drawn dalpha = draw(&seed, n * n, 2), ds = drawn_new(n * n), db = drawn_new(n);
        sinkproof_softmax_sink_backward(&b.block, b.alpha.x, b.o.x, b.dout.x, dalpha.x, ds.x, db.x);
        arb_t delta;
        arb_init(delta);
        for (size_t i = 0; i < n; i++)
            for (int sizes = 0; sizes < 2; sizes++) {
                arb_ptr alpha_j = side(b.alpha, sizes) + i * (n + 1);
                arb_dot(delta, NULL, 0, side(b.dout, sizes) + i * d, 1, side(b.o, sizes) + i * d, 1,
                        (slong)d, VERIFY_BITS);
                sinkproof_truth_softmax_sink_backward(
                    side(ds, sizes) + i * n, side(db, sizes) + i, alpha_j, alpha_j + n,
                    side(dalpha, sizes) + i * n, delta, n, sizes, VERIFY_BITS);
            }
        measure(result, ds, (double)d + 3);
        measure(result, db, (double)d + 2);
        arb_clear(delta);
        drawn_free(dalpha), drawn_free(ds), drawn_free(db);
        block_free(&b);
    }
}

// grad.qkv
void verify_gradient_scores(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        row_block b = draw_block(&seed);
        size_t n = b.n, d = b.d;
        drawn ds = draw(&seed, n * n, 1), dq = drawn_new(n * d), dk = drawn_new(n * d);
        sinkproof_scores_backward(&b.block, b.q.x, b.k.x, ds.x, dq.x, dk.x);
        for (size_t i = 0; i < n; i++)
            for (int sizes = 0; sizes < 2; sizes++) {
                size_t first = first_seen(&b, i);
                sinkproof_truth_scores_backward(
                    side(dq, sizes) + i * d, side(dk, sizes) + first * d, side(b.q, sizes) + i * d,
                    side(b.k, sizes) + first * d, side(ds, sizes) + i * n + first, i + 1 - first, d,
                    d, VERIFY_BITS);
            }
        measure(result, dq, (double)n + 4); // a root, a quotient, two products, sums
        measure(result, dk, (double)n + 4);
        drawn_free(ds), drawn_free(dq), drawn_free(dk);
        block_free(&b);
    }
}

// grad.swiglu: gates and ups inside their limits, on them, beyond them, and where e^|t| is large.
// The exponential of t = alpha g errs by 2 |t| roundings, those of alpha and of the product, and by
// 2 of its own.
void verify_gradient_swiglu(verify_measure *result, uint64_t seed) {
    static const sinkproof_swiglu_numbers kinds[] = {{1.702, 7, 1}, {1, INFINITY, 0}};
    static const double at[] = {7, -7, 0, 7.0000000001, -30, 6.9999999999, -400, 12, -7.5, 1e-9};
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < 200; i++) {
            drawn in = draw(&seed, 3, 8), out = drawn_new(2);
            if (i < 100) in.x[0] = at[i % 10], in.x[1] = at[i / 10];
            drawn_known(in);
            sinkproof_swiglu_backward(kinds[kind], in.x[0], in.x[1], in.x[2], &out.x[0], &out.x[1]);
            for (int sizes = 0; sizes < 2; sizes++)
                sinkproof_truth_swiglu_backward(side(out, sizes), side(out, sizes) + 1, kinds[kind],
                                                in.v, in.v + 1, side(in, sizes) + 2, sizes,
                                                VERIFY_BITS);
            double t = kinds[kind].alpha * fabs(fmin(in.x[0], kinds[kind].limit));
            measure(result, out, 4 * t + 20);
            drawn_free(in), drawn_free(out);
        }
}

// grad.router, grad.mixture
void verify_gradient_router(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t experts = sinkproof_draw_from_to(&seed, 2, 12),
               k = sinkproof_draw_from_to(&seed, 1, experts - 1);
        drawn w = draw(&seed, k, 1), dw = draw(&seed, k, 4), dz = drawn_new(experts);
        double *chosen_k = calloc(k, sizeof *chosen_k);
        must(chosen_k != NULL);
        for (size_t i = 0; i < k; i++) chosen_k[i] = (double)(experts - 1 - i);
        sinkproof_router_backward(experts, k, chosen_k, w.x, dw.x, dz.x);
        arb_t delta, none;
        balls_init(delta, none);
        for (int sizes = 0; sizes < 2; sizes++) {
            drawn chosen = drawn_new(k);
            sinkproof_truth_delta(delta, side(w, sizes), side(dw, sizes), k, VERIFY_BITS);
            sinkproof_truth_softmax_sink_backward(chosen.v, none, side(w, sizes), none,
                                                  side(dw, sizes), delta, k, sizes, VERIFY_BITS);
            for (size_t i = 0; i < k; i++) arb_set(side(dz, sizes) + experts - 1 - i, chosen.v + i);
            drawn_free(chosen);
        }
        measure(result, dz, (double)k + 3);
        balls_clear(delta, none);
        free(chosen_k);
        drawn_free(w), drawn_free(dw), drawn_free(dz);
    }
}

void verify_gradient_mixture(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t k = sinkproof_draw_from_to(&seed, 1, 4),
               hidden = sinkproof_draw_from_to(&seed, 1, 30);
        drawn w = draw(&seed, k, 1), down = draw(&seed, k * hidden, 4);
        drawn dout = draw(&seed, hidden, 1), dw = drawn_new(k), ddown = drawn_new(k * hidden);
        sinkproof_mixture_backward(k, hidden, w.x, down.x, dout.x, dw.x, ddown.x);
        for (int sizes = 0; sizes < 2; sizes++)
            sinkproof_truth_mixture_backward(side(dw, sizes), side(ddown, sizes), side(w, sizes),
                                             side(down, sizes), side(dout, sizes), k, hidden,
                                             VERIFY_BITS);
        measure(result, dw, (double)hidden + 1);
        measure(result, ddown, 1);
        drawn_free(w), drawn_free(down), drawn_free(dout), drawn_free(dw), drawn_free(ddown);
    }
}

// grad.cross-entropy: a logit less the largest is rounded, which is |z - m| roundings of its
// exponential; with the exponential's own 2, the sum, a quotient, a difference and a quotient, for
// numerator and denominator.
void verify_gradient_cross_entropy(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 2, 5),
               vocab = sinkproof_draw_from_to(&seed, 2, 40);
        drawn z = draw(&seed, n * vocab, 20), dz = drawn_new(n * vocab);
        int32_t target_n[5] = {0};
        for (size_t t = 0; t < n; t++)
            target_n[t] = t + 1 < n ? (int32_t)sinkproof_draw_from_to(&seed, 0, vocab - 1) : -1;
        sinkproof_cross_entropy(n, vocab, z.x, target_n, dz.x);
        for (size_t t = 0; t + 1 < n; t++)
            for (int sizes = 0; sizes < 2; sizes++)
                sinkproof_truth_cross_entropy_backward(side(dz, sizes) + t * vocab, z.v + t * vocab,
                                                       vocab, (size_t)target_n[t], n - 1, sizes,
                                                       VERIFY_BITS);
        measure(result, dz, 2 * 40 + (double)vocab + 8);
        drawn_free(z), drawn_free(dz);
    }
}

// grad.rounded: a sum of products in float32, in a drawn order, against its set.
void verify_gradient_rounded(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 8 * ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, 400);
        drawn a = draw(&seed, n, 1), b = draw(&seed, n, 1);
        arb_t sum;
        arb_init(sum);
        double value = 0, size = 0;
        float engine = 0;
        for (size_t i = 0; i < n; i++) {
            a.x[i] = (double)(float)a.x[i], b.x[i] = (double)(float)b.x[i];
            value += a.x[i] * b.x[i], size += fabs(a.x[i] * b.x[i]);
        }
        drawn_known(a), drawn_known(b);
        arb_dot(sum, NULL, 0, a.v, 1, b.v, 1, (slong)n, VERIFY_BITS);
        for (size_t i = n, left = n; left > 0; left--) { // another order each time
            i = sinkproof_draw_from_to(&seed, 0, left - 1);
            engine += (float)a.x[i] * (float)b.x[i];
            a.x[i] = a.x[left - 1], b.x[i] = b.x[left - 1];
        }
        sinkproof_honest set =
            sinkproof_honest_gradient(value, size, (double)n + 1, (double)n + 1, 0x1p-24);
        verify_add_enclosed(result, fabs((double)engine - set.mid), sinkproof_radius(&set));
        verify_add_enclosed(result, sinkproof_truth_distance(sum, set.mid), sinkproof_radius(&set));
        arb_clear(sum);
        drawn_free(a), drawn_free(b);
    }
}
