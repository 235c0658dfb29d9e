// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients of attention from a GPU (tests/vectors/gpu/backward.safetensors): torch's eager
// attention in float32 and bfloat16, and fla's Triton kernel in bfloat16. Honest sets are made from
// the same inputs, with what each engine rounds. Eager attention subtracts the row's maximum as a
// stored number, through which autograd goes back too: what the rounded gradients of a row do not
// add up to is given to the largest score.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/gradients.h"
#include "ref/stages.h"
#include "tests/shared/backward_file.h"

enum { GROUP = HEADS / GROUPS };

typedef sinkproof_honest set;

// What an engine keeps of a case: rounded to `stored` after each operation, sums in float32.
typedef struct kept {
    set *alpha, *dalpha, *ds; // [heads, n, n]
    set *db;                  // [heads, n]: of each row's sink logit
} kept;

// EAGER: every result is stored in the format. FUSED: float32 inside, and what enters a product may
// be rounded to the format or not.
typedef enum kind { EAGER, FUSED } kind;

static set *sets_new(size_t n) {
    set *x = calloc(n + 1, sizeof *x);
    must(x != NULL);
    return x;
}

// A result as the engine stores it: the ends, rounded.
static set stored(sinkproof_format format, set x) {
    return (set){sinkproof_round(format, x.lo),
                 sinkproof_round(format, x.hi),
                 sinkproof_round(format, x.lo),
                 sinkproof_round(format, x.hi),
                 sinkproof_round(format, x.mid),
                 0,
                 0,
                 0,
                 0};
}

static set unrounded_or(sinkproof_format format, set x) {
    return sinkproof_honest_hull(x, stored(format, x));
}

typedef struct one_case {
    const char *name;
    size_t window;
    sinkproof_format format;
    kind how;
    bool no_maximum;
    set *q, *k, *v, *dout, s_h[HEADS]; // exact
    sinkproof_setting setting;
} one_case;

static set *exact_sets(const sinkproof_safetensors *file, const char *name, const char *of) {
    size_t n;
    double *x = backward_numbers(file, name, "in", of, &n);
    set *s = sets_new(n);
    for (size_t i = 0; i < n; i++) s[i] = sinkproof_exact_set(x[i]);
    free(x);
    return s;
}

static size_t first_key(const one_case *c, size_t i) {
    return sinkproof_mask_first(c->window, i);
}

// A result between two operations, and one that a product reads.
static set between(const one_case *c, set x) {
    return c->how == EAGER ? stored(c->format, x) : x;
}
static set operand(const one_case *c, set x) {
    return c->how == EAGER ? stored(c->format, x) : unrounded_or(c->format, x);
}
static set over_8(set s) { // 1 / sqrt(64), exact
    return (set){s.lo / 8, s.hi / 8, s.likely_lo / 8, s.likely_hi / 8, s.mid / 8, 0, 0, 0, 0};
}
static set minus(set s) {
    return (set){-s.hi, -s.lo, -s.likely_hi, -s.likely_lo, -s.mid, 0, 0, 0, 0};
}

// z_j less the largest, as it is stored; returns which may be the largest: every z_j that reaches
// the greatest lower end.
static void subtract_largest(const one_case *c, size_t n, set *z, bool *may_be) {
    set most = z[0];
    double least = z[0].lo;
    for (size_t j = 1; j < n; j++) {
        if (z[j].hi > most.hi) most.hi = most.likely_hi = z[j].hi;
        least = fmax(least, z[j].lo);
        most.mid = fmax(most.mid, z[j].mid);
    }
    most.lo = most.likely_lo = least;
    for (size_t j = 0; j < n; j++) {
        may_be[j] = z[j].hi >= least;
        z[j] = stored(c->format, sinkproof_honest_sub(z[j], most));
        z[j].hi = z[j].likely_hi = fmin(z[j].hi, 0);
    }
}

// What a row's stored gradients do not add up to, added to the one of the largest score.
static void return_to_largest(const one_case *c, size_t n, set *ds, const bool *may_be) {
    set *one = sets_new(n);
    size_t candidates = 0;
    for (size_t j = 0; j < n; j++) one[j] = sinkproof_exact_set(1), candidates += may_be[j];
    set rest = stored(c->format, minus(sinkproof_honest_gradient_sum(n, ds, 1, one, 1, 0x1p-24)));
    for (size_t j = 0; j < n; j++) {
        set with = stored(c->format, sinkproof_honest_add(ds[j], rest));
        if (may_be[j]) ds[j] = candidates == 1 ? with : sinkproof_honest_hull(ds[j], with);
    }
    free(one);
}

// torch's softmax goes back on a GPU by two kernels: alpha dalpha, stored; then each less alpha
// times the sum of all.
static set product_with(const one_case *c, set alpha, set dalpha) {
    return stored(c->format, sinkproof_honest_gradient_sum(1, &alpha, 1, &dalpha, 1, 0x1p-24));
}
static void products_less_mean(const one_case *c, size_t n, const set *w, set *t) {
    set *one = sets_new(n), pair[2], sign[2] = {sinkproof_exact_set(1), sinkproof_exact_set(-1)};
    for (size_t j = 0; j < n; j++) one[j] = sinkproof_exact_set(1);
    set sum = sinkproof_honest_gradient_sum(n, t, 1, one, 1, 0x1p-24);
    for (size_t j = 0; j < n; j++) {
        pair[0] = t[j];
        pair[1] = sinkproof_honest_gradient_sum(1, &w[j], 1, &sum, 1, 0x1p-24);
        t[j] = stored(c->format, sinkproof_honest_gradient_sum(2, pair, 1, sign, 1, 0x1p-24));
    }
    free(one);
}

// Row i of head h: scores, weights, dalpha, D, ds and db.
static void row_sets(const one_case *c, size_t h, size_t i, kept *k) {
    size_t first = first_key(c, i), seen = i + 1 - first, g = h / GROUP, stride = GROUPS * DIM;
    const set *q_d = c->q + (i * HEADS + h) * DIM, *do_d = c->dout + (i * HEADS + h) * DIM;
    set *alpha = k->alpha + (h * N + i) * N + first, *dalpha = k->dalpha + (h * N + i) * N + first;
    set *z = sets_new(seen + 1), *w = sets_new(seen + 1), *o = sets_new(DIM),
        *ds = sets_new(seen + 1);
    bool *may_be = calloc(seen + 1, sizeof *may_be);
    double common;
    must(may_be != NULL);
    for (size_t j = 0; j < seen; j++) {
        const set *k_d = c->k + (first + j) * stride + g * DIM;
        z[j] = over_8(between(c, sinkproof_honest_gradient_sum(DIM, q_d, 1, k_d, 1, 0x1p-24)));
    }
    z[seen] = c->s_h[h];
    if (c->how == EAGER) subtract_largest(c, seen + 1, z, may_be);
    must(sinkproof_honest_softmax(&c->setting, AT_A9, seen, z, z[seen], w, &common));
    for (size_t j = 0; j <= seen; j++) w[j] = between(c, w[j]);
    for (size_t j = 0; j < seen; j++) {
        const set *v_d = c->v + (first + j) * stride + g * DIM;
        alpha[j] = w[j];
        dalpha[j] = between(c, sinkproof_honest_gradient_sum(DIM, do_d, 1, v_d, 1, 0x1p-24));
    }
    set delta = sinkproof_honest_gradient_sum(seen, alpha, 1, dalpha, 1, 0x1p-24);
    for (size_t d = 0; d < DIM; d++) {
        const set *v_j = c->v + first * stride + g * DIM + d;
        set read = sinkproof_honest_gradient_sum(seen, alpha, 1, v_j, stride, 0x1p-24);
        o[d] = unrounded_or(c->format, read);
    }
    if (c->how == FUSED) // of the output, as it is or as it is stored
        delta = sinkproof_honest_hull(delta,
                                      sinkproof_honest_gradient_sum(DIM, do_d, 1, o, 1, 0x1p-24));
    set nothing = sinkproof_exact_set(0);
    for (size_t j = 0; j <= seen; j++) {
        set of = j < seen ? dalpha[j] : nothing;
        ds[j] = c->how == FUSED ? honest_score_gradient(w[j], of, delta, 0x1p-24)
                                : product_with(c, w[j], of);
    }
    if (c->how == EAGER) products_less_mean(c, seen + 1, w, ds);
    if (c->how == EAGER && !c->no_maximum) return_to_largest(c, seen + 1, ds, may_be);
    for (size_t j = 0; j < seen; j++) k->ds[(h * N + i) * N + first + j] = operand(c, ds[j]);
    for (size_t j = 0; j < seen; j++) alpha[j] = operand(c, alpha[j]);
    k->db[h * N + i] = ds[seen];
    free(z), free(w), free(o), free(ds), free(may_be);
}

static set sink_set(const one_case *c, size_t h, const kept *k) {
    set one[N];
    for (size_t i = 0; i < N; i++) one[i] = sinkproof_exact_set(1);
    return stored(c->format, sinkproof_honest_gradient_sum(N, k->db + h * N, 1, one, 1, 0x1p-24));
}

// Elements outside their sets, and how many sets are of one number.
typedef struct count {
    size_t elements, outside, single;
} count;
static void count_outside(count *to, const double *x, const set *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        to->elements++;
        to->outside += !(s[i].lo <= x[i] && x[i] <= s[i].hi);
        to->single += s[i].lo == s[i].hi;
    }
}

static set scaled_sum(size_t n, const set *x, size_t x_stride, const set *y, size_t y_stride) {
    return over_8(sinkproof_honest_gradient_sum(n, x, x_stride, y, y_stride, 0x1p-24));
}

// dq, and dk and dv, which the heads of a group add up, each as the engine stores it.
static void matrices(const one_case *c, const kept *k, set *dq, set *dk, set *dv) {
    size_t stride = GROUPS * DIM;
    for (size_t i = 0; i < N; i++)
        for (size_t h = 0; h < HEADS; h++)
            for (size_t d = 0; d < DIM; d++)
                dq[(i * HEADS + h) * DIM + d] =
                    stored(c->format, scaled_sum(N, k->ds + (h * N + i) * N, 1,
                                                 c->k + h / GROUP * DIM + d, stride));
    for (size_t j = 0; j < N; j++)
        for (size_t g = 0; g < GROUPS; g++)
            for (size_t d = 0; d < DIM; d++) {
                set of_k[GROUP], of_v[GROUP], one[GROUP];
                for (size_t m = 0; m < GROUP; m++) {
                    size_t h = g * GROUP + m;
                    set of_key =
                        scaled_sum(N, k->ds + h * N * N + j, N, c->q + h * DIM + d, HEADS * DIM);
                    set of_value =
                        sinkproof_honest_gradient_sum(N, k->alpha + h * N * N + j, N,
                                                      c->dout + h * DIM + d, HEADS * DIM, 0x1p-24);
                    of_k[m] = operand(c, of_key), of_v[m] = operand(c, of_value);
                    one[m] = sinkproof_exact_set(1);
                }
                size_t at = (j * GROUPS + g) * DIM + d;
                dk[at] = stored(c->format,
                                sinkproof_honest_gradient_sum(GROUP, of_k, 1, one, 1, 0x1p-24));
                dv[at] = stored(c->format,
                                sinkproof_honest_gradient_sum(GROUP, of_v, 1, one, 1, 0x1p-24));
            }
}

// What a case is judged by, beside its inputs.
typedef struct judged_by {
    const char *engine;
    sinkproof_format format;
    kind how;
    bool no_maximum; // eager, without what goes back through the maximum
    bool log2_sink;  // the sink's logit times log2(e), rounded to the format
} judged_by;

// A logit that a kernel holds in base 2, as the format rounds it, in base e again.
static set rounded_in_base_2(sinkproof_format format, set b) {
    double log2_e = 1.4426950408889634, held = sinkproof_round(format, b.mid * log2_e) / log2_e;
    double off = fabs(held) * 0x1p-23;
    return sinkproof_set_around(held, off, off, 0, 0);
}

static count judge(const sinkproof_safetensors *file, const char *name, size_t window,
                   judged_by by) {
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    one_case c = {.name = name,
                  .window = window,
                  .format = by.format,
                  .how = by.how,
                  .no_maximum = by.no_maximum,
                  .q = exact_sets(file, name, "q"),
                  .k = exact_sets(file, name, "k"),
                  .v = exact_sets(file, name, "v"),
                  .dout = exact_sets(file, name, "do"),
                  .setting = sinkproof_setting_for(&policy, N * N, 1e-9)};
    set *sinks = exact_sets(file, name, "s");
    for (size_t h = 0; h < HEADS; h++)
        c.s_h[h] = by.log2_sink ? rounded_in_base_2(by.format, sinks[h]) : sinks[h];
    kept k = {sets_new(HEADS * N * N), sets_new(HEADS * N * N), sets_new(HEADS * N * N),
              sets_new(HEADS * N)};
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) row_sets(&c, h, i, &k);
    set *dq = sets_new(N * HEADS * DIM), *dk = sets_new(N * GROUPS * DIM),
        *dv = sets_new(N * GROUPS * DIM), ds[HEADS];
    matrices(&c, &k, dq, dk, dv);
    for (size_t h = 0; h < HEADS; h++) ds[h] = sink_set(&c, h, &k);
    const struct {
        const char *of;
        const set *s;
    } parts[] = {{"dq", dq}, {"dk", dk}, {"dv", dv}, {"ds", ds}};
    count all = {0, 0, 0};
    for (size_t p = 0; p < 4; p++) {
        size_t n;
        double *x = backward_numbers(file, name, by.engine, parts[p].of, &n);
        count_outside(&all, x, parts[p].s, n);
        free(x);
    }
    free(dq), free(dk), free(dv), free(sinks);
    free(c.q), free(c.k), free(c.v), free(c.dout);
    free(k.alpha), free(k.dalpha), free(k.ds), free(k.db);
    return all;
}

static const struct {
    const char *name, *what;
    size_t window;
} cases[] = {{"n33-h4-g2-d64-w0-around", "sinks around the scores", 0},
             {"n33-h4-g2-d64-w8-around", "sinks around the scores, window 8", 8},
             {"n33-h4-g2-d64-w0-above", "sinks above the scores", 0},
             {"n33-h4-g2-d64-w0-far-below", "sinks far below the scores", 0}};

static void inside(const sinkproof_safetensors *file, size_t at, const char *what, judged_by by) {
    count c = judge(file, cases[at].name, cases[at].window, by);
    ok(c.elements == 16900 && c.outside == 0,
       "grad.rounded %s, %s: elements=%zu outside=%zu, sets of one number=%zu", what,
       cases[at].what, c.elements, c.outside, c.single);
}

static void beyond(const sinkproof_safetensors *file, size_t at, const char *what, judged_by by) {
    count c = judge(file, cases[at].name, cases[at].window, by);
    ok(c.outside > 0, "grad.rounded %s, %s: %zu of %zu outside", what, cases[at].what, c.outside,
       c.elements);
}

int main(void) {
    sinkproof_safetensors *file;
    sinkproof_error error;
    if (!sinkproof_safetensors_open(FILE_NAME, &file, &error)) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    judged_by eager = {"eager-f32", SINKPROOF_F32, EAGER, false, false};
    judged_by eager_bf16 = {"eager-bf16", SINKPROOF_BF16, EAGER, false, false};
    judged_by fused = {"fla-bf16", SINKPROOF_BF16, FUSED, false, false};
    judged_by no_maximum = eager_bf16, log2_sink = fused;
    no_maximum.no_maximum = true, log2_sink.log2_sink = true;
    for (size_t at = 0; at < 4; at++) {
        inside(file, at, "torch's eager attention in float32", eager);
        inside(file, at, "torch's eager attention in bfloat16", eager_bf16);
        inside(file, at, "fla's kernel, its sink rounded in base 2", log2_sink);
        if (at != 2) // with sinks above the scores no element tells
            beyond(file, at, "eager, if nothing went back through the maximum", no_maximum);
    }
    for (size_t at = 0; at < 2; at++) inside(file, at, "fla's kernel, its sink as it is", fused);
    for (size_t at = 2; at < 4; at++)
        beyond(file, at, "fla's kernel, if its sink were as it is", fused);
    sinkproof_safetensors_close(file);
    return tap_done();
}
