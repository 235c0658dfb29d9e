// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention over parts of the keys. Each part has a running maximum that changes only when a score
// exceeds it by eight binary orders; the parts are merged in a chain, in pairs or all at once
// (bound.form-running-max, bound.unnormalised). The sets of a running maximum contain this engine;
// with exponentials rounded as the matrix unit takes them, those of vllm-bf16 do. Two mistakes of
// such kernels are outside.
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261123;
enum { KEYS = 300, PARTS = 16, ROWS = 900, WAYS = 3 };

// What a kernel does, and the mistakes that it makes.
typedef struct kernel {
    float patience; // how far a score may exceed the shift
    size_t parts, block;
    int way; // of merging: a chain, pairs, all at once
    leaning lean;
    sinkproof_format kept; // the exponentials as they meet the values
    bool sink_in_each, part_not_rescaled;
} kernel;

// A part: its shift, the sum of its exponentials, and what meets the values.
typedef struct part {
    size_t first, last;
    float shift, sum;
} part;

static float kept_j[KEYS]; // numerators as they meet the values, rescaled with their part

static float exp_of(uint64_t *state, const kernel *k, float x) {
    return fmaxf(within_ulps(state, exp((double)x), x == 0 ? 0 : 2, k->lean), 0);
}

static void rescale(uint64_t *state, const kernel *k, part *p, float shift) {
    float factor = p->shift == shift ? 1 : exp_of(state, k, p->shift - shift);
    p->shift = shift;
    p->sum *= factor;
    for (size_t j = p->first; j < p->last && !k->part_not_rescaled; j++) kept_j[j] *= factor;
}

static float top_of(const float *z, size_t first, size_t last) {
    float m = -INFINITY;
    for (size_t j = first; j < last; j++) m = fmaxf(m, z[j]);
    return m;
}

static part run_part(uint64_t *state, const kernel *k, const float *z, size_t first, size_t last) {
    part p = {first, first, -INFINITY, 0};
    for (size_t start = first; start < last; start = p.last) {
        size_t end = start + k->block < last ? start + k->block : last;
        float top = top_of(z, start, end), block = 0;
        if (start == first)
            p.shift = top;
        else if (top > p.shift + k->patience)
            rescale(state, k, &p, top);
        for (size_t j = start; j < end; j++) {
            float e = exp_of(state, k, z[j] - p.shift);
            block += e;
            kept_j[j] = (float)sinkproof_round(k->kept, e);
        }
        p.sum += block, p.last = end;
    }
    return p;
}

// Neighbours: the one with the smaller shift is rescaled.
static part merged(uint64_t *state, const kernel *k, part x, part y) {
    float shift = fmaxf(x.shift, y.shift);
    rescale(state, k, &x, shift), rescale(state, k, &y, shift);
    return (part){x.first, y.last, shift, x.sum + y.sum};
}

static part merge_all(uint64_t *state, const kernel *k, part *p, size_t n) {
    if (k->way == 2) { // to one maximum at once
        float shift = -INFINITY, sum = 0;
        for (size_t i = 0; i < n; i++) shift = fmaxf(shift, p[i].shift);
        for (size_t i = 0; i < n; i++) rescale(state, k, &p[i], shift), sum += p[i].sum;
        return (part){p[0].first, p[n - 1].last, shift, sum};
    }
    size_t left = k->way == 1 ? n / 2 : n - 1;
    if (n == 1) return p[0];
    part x = merge_all(state, k, p, left), y = merge_all(state, k, p + left, n - left);
    return merged(state, k, x, y);
}

// alpha_j as they meet the values, j < n, and that of the sink.
static void attend(uint64_t *state, const kernel *k, size_t n, const float *z, float b,
                   float *alpha) {
    part p[PARTS];
    size_t parts = 0, each = (n + k->parts - 1) / k->parts;
    for (size_t first = 0; first < n; first += each, parts++) {
        p[parts] = run_part(state, k, z, first, first + each < n ? first + each : n);
        if (k->sink_in_each) p[parts].sum += exp_of(state, k, b - p[parts].shift);
    }
    part all = merge_all(state, k, p, parts);
    if (!k->sink_in_each) { // it enters once, at the end
        rescale(state, k, &all, fmaxf(all.shift, b));
        all.sum += exp_of(state, k, b - all.shift);
    }
    for (size_t j = 0; j < n; j++) alpha[j] = kept_j[j] / all.sum;
}

// Scores that rise by a little less than the patience and a little more, or as they come.
static void draw_scores(uint64_t *state, size_t row, size_t n, float *z, float patience) {
    float level = (float)(row % 3 == 0 ? 0 : 150 * draw_gauss(state));
    for (size_t j = 0; j < n; j++) {
        float step = patience * (0.97f + 0.06f * (float)draw_unit(state));
        if (row % 4 == 1 && j % 7 == 6) level += step;
        z[j] = row % 4 == 2 && j > 0
                   ? z[0] + (j % 2 ? 1 : 0.98f) * patience * (float)draw_unit(state)
                   : (float)(level + 3 * draw_gauss(state));
    }
}

typedef struct met {
    tally own, bare;
} met;

static met meet_rows(const char *policy_name, const char *bare_name, const kernel *like,
                     size_t rows) {
    static float z[KEYS], alpha[KEYS];
    static sinkproof_honest z_j[KEYS], own_j[KEYS + 1], bare_j[KEYS + 1];
    const float eight_orders = 5.54517744f;
    sinkproof_policy policy = policy_named(policy_name), bare = policy_named(bare_name);
    uint64_t state = SEED;
    met t = {.own.floor = 0x1p-120, .bare.floor = 0x1p-120};
    for (size_t row = 0; row < rows; row++) {
        kernel k = *like;
        size_t n = row % 5 == 0 ? 3 + draw_below(&state, 6) : 1 + draw_below(&state, KEYS);
        k.parts = k.parts > 0 ? k.parts : 1 + draw_below(&state, PARTS);
        k.block = 1 + draw_below(&state, row % 2 ? 1 : 32), k.way = (int)(row % WAYS);
        k.lean = (leaning)(row / 3 % LEANS), k.patience = row % 7 ? eight_orders : 0;
        draw_scores(&state, row, n, z, eight_orders);
        float b = z[draw_below(&state, n)] + (float)draw_gauss(&state);
        attend(&state, &k, n, z, b, alpha);
        sinkproof_setting s = sinkproof_setting_for(&policy, n, STANDARD_RATE), s_bare = s;
        s_bare.policy = &bare;
        double common;
        for (size_t j = 0; j < n; j++) z_j[j] = sinkproof_exact_set(z[j]);
        must(sinkproof_honest_softmax(&s, AT_A9, n, z_j, sinkproof_exact_set(b), own_j, &common));
        must(sinkproof_honest_softmax(&s_bare, AT_A9, n, z_j, sinkproof_exact_set(b), bare_j,
                                      &common));
        for (size_t j = 0; j < n; j++)
            meet(&t.own, &own_j[j], alpha[j]), meet(&t.bare, &bare_j[j], alpha[j]);
    }
    return t;
}

static met honest(const char *id, const char *policy, const char *bare, sinkproof_format kept) {
    const kernel k = {.kept = kept};
    met t = meet_rows(policy, bare, &k, ROWS);
    char what[160];
    snprintf(what, sizeof what, "parts with a lazy maximum under %s", policy);
    inside_ok(&t.own, id, what);
    return t;
}

static void mistake(const char *what, kernel k) {
    static const char *const policies[] = {"f32,A9=real,A9.form=running-max", "vllm-bf16"};
    for (int p = 0; p < 2; p++) {
        k.kept = p == 0 ? SINKPROOF_F32 : SINKPROOF_BF16;
        met t = meet_rows(policies[p], policies[p], &k, 200);
        ok(t.own.outside > 0, "%s %s, under %s: outside=%zu of=%zu",
           p == 0 ? "bound.form-running-max" : "bound.unnormalised", what, policies[p],
           t.own.outside, t.own.checked);
    }
}

int main(void) {
    const char *running = "f32,A9=real,A9.form=running-max", *bare = "vllm-bf16,A9.unnorm=real";
    honest("bound.form-running-max", running, running, SINKPROOF_F32);
    met t = honest("bound.unnormalised", "vllm-bf16", bare, SINKPROOF_BF16);
    ok(t.bare.outside > 0, "bound.unnormalised the same under %s: outside=%zu of=%zu", bare,
       t.bare.outside, t.bare.checked);
    mistake("the sink in each part", (kernel){.sink_in_each = true, .parts = 4});
    mistake("values of a part not rescaled", (kernel){.part_not_rescaled = true});
    return tap_done();
}
