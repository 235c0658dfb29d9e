// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums in parts that are rounded (bound.parts). Ranks that round what they send, and add in any
// order, in float32 or in the format, with the bias in the first part or after the sum; split
// products whose partial sums are rounded; experts on several ranks. All are inside, and outside
// the set of the same policy without parts; with a part too many or one rounded to another format
// they are outside.
#include "proofs/bounds/worst.h"
#include "ref/operands.h"
#include "ref/stages.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261127;
enum { MOST = 512, PARTS = 64 };

typedef struct drawn_sum {
    size_t n;
    double x[MOST], w[MOST], b;
    sinkproof_matrix matrix;
} drawn_sum;

static void draw_sum(uint64_t *state, sinkproof_format format, drawn_sum *d) {
    d->n = 16 * (1 + draw_below(state, MOST / 16));
    for (size_t k = 0; k < d->n; k++) {
        d->x[k] = draw_from(state, format, 1);
        d->w[k] = draw_from(state, format, 0.1);
    }
    d->b = draw_from(state, format, 1);
    d->matrix =
        (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = d->n};
    d->matrix.data = (const uint8_t *)d->w, d->matrix.col_stride = 1;
    d->matrix.row_stride = d->matrix.stack_stride = d->n;
}

// What an engine does with its parts.
typedef struct split {
    size_t each;
    sinkproof_format part, added; // F32: additions as float32 makes them
    bool bias_first;
} split;

// Parts in float32, rounded, added in a drawn order.
static double split_sum(uint64_t *state, const split *e, const drawn_sum *d, double *part_p) {
    size_t parts = 0;
    for (size_t first = 0; first < d->n; first += e->each, parts++) {
        float sum = 0;
        for (size_t k = first; k < d->n && k < first + e->each; k++)
            sum += (float)(d->x[k] * d->w[k]);
        if (first == 0 && e->bias_first) sum += (float)d->b;
        part_p[parts] = sinkproof_round(e->part, (double)sum);
    }
    for (size_t left = parts; left > 1; left--) {
        size_t i = draw_below(state, left - 1);
        float sum = (float)part_p[i] + (float)part_p[left - 1];
        part_p[i] = left > 2 ? sinkproof_round(e->added, (double)sum) : (double)sum;
    }
    return part_p[0];
}

// The set of the sum under A12.acc=..., with the bias in the first part or without a bias.
static sinkproof_honest set_of_split(const char *acc, const drawn_sum *d, bool bias_first) {
    char text[64];
    static sinkproof_honest x_k[MOST];
    snprintf(text, sizeof text, "f32,A12.acc=%s", acc);
    sinkproof_policy policy = policy_named(text);
    sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
    sinkproof_accumulator a = sinkproof_accumulator_at(&policy, AT_A12_TERM, AT_A12_ACC);
    a.b_r = bias_first ? &d->b : NULL;
    for (size_t k = 0; k < d->n; k++) x_k[k] = sinkproof_exact_set(d->x[k]);
    sinkproof_planes p = sinkproof_planes_new(x_k, 1, d->n, d->n);
    const sinkproof_weight_rows w = {&d->matrix, 0, 1, NULL};
    sinkproof_linear_sums *sums = sinkproof_linear_sums_with(&s, &a, &p, &w);
    sinkproof_honest y;
    must(sums != NULL);
    sinkproof_linear_sums_row(sums, 0, &y);
    if (bias_first) y = *sinkproof_linear_sums_biased_row(sums, 0);
    sinkproof_linear_sums_free(sums);
    sinkproof_planes_free(&p);
    return y;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// ranks: of so many ranks, else blocks of 8 to 128 products.
static void splits_are_inside(bool ranks, sinkproof_format format) {
    uint64_t state = SEED + (uint64_t)format + (ranks ? 100 : 0);
    tally t = {0};
    size_t without = 0, other = 0, unlike = 0, drawn = 300;
    for (size_t i = 0; i < drawn; i++) {
        drawn_sum d;
        double part_p[PARTS], work[17 * MOST], y;
        draw_sum(&state, format, &d);
        size_t count = 2 + draw_below(&state, 7), each = smaller((size_t)8 << (i % 5), d.n);
        split e = {ranks ? (d.n + count - 1) / count : each, format,
                   ranks && i % 2 ? format : SINKPROOF_F32, ranks && i % 3 == 0};
        char acc[32];
        if (ranks)
            snprintf(acc, sizeof acc, "ranks(%zu,%s)%s", count, sinkproof_format_name(format),
                     i % 5 == 0 ? "?" : "");
        else
            snprintf(acc, sizeof acc, "blocks(%zu,%s)", each, sinkproof_format_name(format));
        sinkproof_honest set = set_of_split(acc, &d, e.bias_first), whole = {0};
        meet(&t, &set, y = split_sum(&state, &e, &d, part_p));
        whole = set_of_split("real", &d, false);
        double unbiased = y - (e.bias_first ? d.b : 0);
        without += !(unbiased >= whole.lo && unbiased <= whole.hi);
        split wrong = e;
        wrong.part = format == SINKPROOF_BF16 ? SINKPROOF_F16 : SINKPROOF_BF16;
        y = split_sum(&state, &wrong, &d, part_p);
        other += !(y >= set.lo && y <= set.hi);
        if (e.bias_first) continue;
        char text[64];
        snprintf(text, sizeof text, "real-f64,A12.acc=%s", acc);
        sinkproof_policy policy = policy_named(text);
        sinkproof_linear(&policy, AT_A12, 1, &d.matrix, NULL, d.x, &y, work);
        unlike += !(y >= set.lo && y <= set.hi);
    }
    const char *kind = ranks ? "ranks" : "blocks", *name = sinkproof_format_name(format);
    char what[64];
    snprintf(what, sizeof what, "%s that round to %s", kind, name);
    inside_ok(&t, "bound.parts", what);
    ok(without > drawn / 3, "bound.parts %s, %s: outside without parts worst=%zu of=%zu", kind,
       name, without, drawn);
    ok(other > drawn / 20, "bound.parts %s, %s: parts in another format outside=%zu of=%zu", kind,
       name, other, drawn);
    ok(unlike == 0, "bound.parts %s, %s: the reference is inside worst=%zu bound=0", kind, name,
       unlike);
}

// Experts in runs on ranks.
static void experts_on_ranks(void) {
    uint64_t state = SEED + 7;
    tally t = {0};
    size_t without = 0, drawn = 400;
    sinkproof_policy on = policy_named("bf16,M11.prod=real,M11.sum=ranks(2,bf16)"),
                     off = policy_named("bf16,M11.prod=real,M11.sum=real");
    sinkproof_setting s_on = sinkproof_setting_for(&on, 100, STANDARD_RATE),
                      s_off = sinkproof_setting_for(&off, 100, STANDARD_RATE);
    for (size_t i = 0; i < drawn; i++) {
        enum { CHOSEN = 4 };
        sinkproof_honest w[CHOSEN], d[CHOSEN];
        float part[2] = {0, 0};
        size_t first = draw_below(&state, CHOSEN + 1); // experts on the first rank
        for (size_t e = 0; e < CHOSEN; e++) {
            double a = fabs(draw_from(&state, SINKPROOF_BF16, 0.3)),
                   b = draw_from(&state, SINKPROOF_BF16, 1);
            w[e] = sinkproof_exact_set(a), d[e] = sinkproof_exact_set(b);
            float sum = part[e >= first] + (float)(a * b); // each addition is rounded, or none
            part[e >= first] = i % 2 ? sum : (float)sinkproof_round(SINKPROOF_BF16, (double)sum);
        }
        for (int p = 0; p < 2; p++)
            part[p] = (float)sinkproof_round(SINKPROOF_BF16, (double)part[p]);
        double y = sinkproof_round(SINKPROOF_BF16, (double)(part[0] + part[1]));
        sinkproof_honest set = sinkproof_honest_mixture(&s_on, CHOSEN, w, d),
                         whole = sinkproof_honest_mixture(&s_off, CHOSEN, w, d);
        meet(&t, &set, y);
        without += !(y >= whole.lo && y <= whole.hi);
    }
    inside_ok(&t, "bound.parts", "experts on two ranks");
    ok(without > drawn / 10, "bound.parts experts on two ranks: outside without ranks %zu of=%zu",
       without, drawn);
}

// Sums whose parts are ties of the format: each is wrong by half a step, all one way.
static void bound_is_reached(void) {
    drawn_sum d = {.n = 128};
    double part_p[PARTS];
    uint64_t state = SEED;
    for (size_t k = 0; k < d.n; k++)
        d.x[k] = 1, d.w[k] = k % 64 == 0 ? 1 : k % 64 == 1 ? 0x1.02p-8 : 0;
    d.matrix = (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = 128};
    d.matrix.data = (const uint8_t *)d.w, d.matrix.col_stride = 1;
    d.matrix.row_stride = d.matrix.stack_stride = d.n;
    sinkproof_honest set = set_of_split("ranks(2,bf16)?", &d, false);
    split e = {64, SINKPROOF_BF16, SINKPROOF_F32, false};
    double y = split_sum(&state, &e, &d, part_p), real = 2 * (1 + 0x1.02p-8);
    double share = (y - real) / (set.hi - real);
    ok(share > 0.9 && share <= 1, "bound.parts ties reach its floor reached=%.3g floor=0.9", share);
}

int main(void) {
    splits_are_inside(true, SINKPROOF_BF16);
    splits_are_inside(true, SINKPROOF_F16);
    splits_are_inside(false, SINKPROOF_BF16);
    splits_are_inside(false, SINKPROOF_F16);
    experts_on_ranks();
    bound_is_reached();
    return tap_done();
}
