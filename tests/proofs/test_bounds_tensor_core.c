// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums of matrix units (bound.tensor-core). Emulated units of seven kinds, with one running sum or
// several, over operands of two formats, are inside; operands that are made to lose as much as
// possible come near the bound; a unit that keeps too few bits, one that cuts after each product,
// and one with more sums than its policy says are seen. Drift accuses no unit under its own policy
// and does under float32's; how small a common factor it still sees is measured against float32.
#include "proofs/bounds/tensor_core.h"

#include "proofs/bounds/worst.h"
#include "ref/tensor_core.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261127;
enum { MOST = 4096 };

// ---- a unit, in whole numbers: a second writing of ref/tensor_core.c
// -------------------------------

typedef struct unit {
    int bits, block;
    int lowest; // exponent that a subnormal operand counts with
} unit;

static int counted_exponent(const unit *m, double x) {
    int e = ilogb(x);
    return e < m->lowest ? m->lowest : e;
}

static double block_step(const unit *m, double sum, size_t n, const double *a, const double *b) {
    int e = -4000, fraction = m->bits < 23 ? m->bits : 23;
    if (sum != 0) e = ilogb(sum);
    for (size_t k = 0; k < n; k++) {
        if (a[k] == 0 || b[k] == 0) continue;
        int own = counted_exponent(m, a[k]) + counted_exponent(m, b[k]);
        e = own > e ? own : e;
    }
    if (e == -4000) return 0;
    double place = ldexp(1, e - m->bits);
    int64_t total = (int64_t)(sum / place); // a conversion to a whole number cuts
    for (size_t k = 0; k < n; k++) total += (int64_t)(a[k] * b[k] / place);
    int used = 0;
    while ((total < 0 ? -total : total) >> used != 0) used++;
    int beyond = used - (fraction + 1);
    if (beyond > 0) total = total / ((int64_t)1 << beyond) * ((int64_t)1 << beyond);
    return (double)total * place;
}

// Blocks go to `parts` sums in turn or in stretches, which float32 then adds.
static double unit_dot(const unit *m, size_t parts, bool in_turn, size_t n, const double *a,
                       const double *b) {
    double sum[16] = {0};
    size_t block = (size_t)m->block, blocks = (n + block - 1) / block;
    for (size_t t = 0; t < blocks; t++) {
        size_t part = in_turn ? t % parts : t * parts / blocks, k = t * block;
        sum[part] = block_step(m, sum[part], n - k < block ? n - k : block, a + k, b + k);
    }
    for (size_t p = 1; p < parts; p++) sum[0] = (double)(float)(sum[0] + sum[p]);
    return sum[0];
}

// ---- operands
// ---------------------------------------------------------------------------------------------

typedef enum operands { PLAIN, POSITIVE, WIDE, CANCELLING, TINY, KINDS } operands;
static const char *const kind_names[KINDS] = {"plain", "positive", "wide", "cancelling", "tiny"};

static double drawn_operand(uint64_t *state, operands kind, sinkproof_format format) {
    double x = draw_gauss(state);
    if (kind == POSITIVE) x = fabs(x);
    if (kind == WIDE) x *= ldexp(1, (int)draw_below(state, 13) - 6);
    if (kind == TINY) x *= format == SINKPROOF_F16 ? 0x1p-18 : 0x1p-30;
    return sinkproof_round(format, x);
}

static void draw_operands(uint64_t *state, operands kind, sinkproof_format format, size_t n,
                          double *a, double *b) {
    for (size_t k = 0; k < n; k++) {
        a[k] = drawn_operand(state, kind, format);
        b[k] = kind == CANCELLING && k % 2 == 1 ? -b[k - 1] : drawn_operand(state, kind, format);
        if (kind == CANCELLING && k % 2 == 1) a[k] = sinkproof_round(format, a[k - 1] * 1.01);
    }
}

static sinkproof_honest set_of_sum(const sinkproof_policy *policy, size_t n, const double *a,
                                   const double *b) {
    static sinkproof_honest x[MOST], y[MOST];
    sinkproof_setting s = sinkproof_setting_for(policy, 1000, STANDARD_RATE);
    s.core = policy->at[AT_A2_ACC];
    for (size_t k = 0; k < n; k++)
        x[k] = sinkproof_exact_set(a[k]), y[k] = sinkproof_exact_set(b[k]);
    sinkproof_planes p = sinkproof_planes_new(x, 1, n, n), q = sinkproof_planes_new(y, 1, n, n);
    sinkproof_honest out;
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &out, 1));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    return out;
}

static sinkproof_policy policy_of(const char *base, const unit *m) {
    char text[64];
    snprintf(text, sizeof text, "%s,acc=tensor-core(%d,%d)", base, m->bits, m->block);
    return policy_named(text);
}

static const struct operand_format {
    const char *base;
    sinkproof_format format;
} formats[] = {{"bf16", SINKPROOF_BF16}, {"f16", SINKPROOF_F16}};
static const unit units[] = {{23, 4, -4000},  {24, 4, -4000},  {24, 8, -4000},
                             {25, 16, -4000}, {25, 32, -4000}, {13, 32, -4000}};

static void units_are_inside(operands kind) {
    static double a[MOST], b[MOST];
    uint64_t state = SEED + (uint64_t)kind;
    tally t = {0};
    size_t unlike = 0, alone = 0;
    for (size_t i = 0; i < 600; i++) {
        unit m = units[draw_below(&state, sizeof units / sizeof *units)];
        const struct operand_format *f = &formats[draw_below(&state, 2)];
        if (f->format == SINKPROOF_F16) m.lowest = -14;
        sinkproof_policy policy = policy_of(f->base, &m);
        size_t n = 1 + draw_below(&state, i % 2 ? 64 : MOST), parts = 1 + draw_below(&state, 8);
        draw_operands(&state, kind, f->format, n, a, b);
        sinkproof_honest x = set_of_sum(&policy, n, a, b);
        meet(&t, &x, unit_dot(&m, parts, i % 3 == 0, n, a, b));
        unit own = {m.bits, m.block, -4000};
        double sum = 0;
        size_t block = (size_t)m.block;
        for (size_t k = 0; k < n; k += block)
            sum = sinkproof_core_add(policy.at[AT_A2_ACC], sum, n - k < block ? n - k : block,
                                     a + k, b + k, 1);
        unlike += sum != unit_dot(&own, 1, false, n, a, b), alone++;
    }
    char what[64];
    snprintf(what, sizeof what, "units of six kinds, %s operands", kind_names[kind]);
    inside_ok(&t, "bound.tensor-core", what);
    ok(t.unlikely == 0, "bound.tensor-core likely, %s operands worst=%zu bound=0 of=%zu",
       kind_names[kind], t.unlikely, t.checked);
    ok(unlike == 0,
       "bound.tensor-core ref/tensor_core.c against whole numbers, %s worst=%zu "
       "bound=0 of=%zu",
       kind_names[kind], unlike, alone);
}

// One number that is large and others just below a place of the cut, all of one sign.
static void bound_is_reached(void) {
    const unit m = {25, 16, -4000};
    double a[16], b[16], real = 0;
    sinkproof_policy policy = policy_of("bf16", &m);
    for (size_t k = 0; k < 16; k++) {
        a[k] = k == 0 ? 1 : 0x1.fep-26, b[k] = 1;
        real += a[k] * b[k];
    }
    sinkproof_honest x = set_of_sum(&policy, 16, a, b);
    double lost = fabs(unit_dot(&m, 1, false, 16, a, b) - real), room = x.hi - real;
    ok(lost / room >= 0.55 && lost <= room,
       "bound.tensor-core built operands reach its floor reached=%.3g floor=0.55", lost / room);
}

// ---- drift
// ------------------------------------------------------------------------------------------------

enum { N_X = 8, N_W = 128, K = 2880 };

typedef struct products {
    double x[N_X * K], w[N_W * K], v[N_X * N_W];
    sinkproof_honest x_k[N_X * K], w_k[N_W * K], y[N_X * N_W];
} products;

static void draw_products(uint64_t *state, products *p) {
    for (size_t k = 0; k < N_X * K; k++) {
        p->x[k] = draw_from(state, SINKPROOF_BF16, 1);
        p->x_k[k] = sinkproof_exact_set(p->x[k]);
    }
    for (size_t k = 0; k < N_W * K; k++) {
        p->w[k] = draw_from(state, SINKPROOF_BF16, 0.02);
        p->w_k[k] = sinkproof_exact_set(p->w[k]);
    }
}

static void add_up(products *p, const unit *m, size_t parts) {
    for (size_t i = 0; i < N_X; i++)
        for (size_t r = 0; r < N_W; r++)
            p->v[i * N_W + r] = unit_dot(m, parts, false, K, p->x + i * K, p->w + r * K);
}

// What drift says of the values times `factor`, and how many are no likely values.
static sinkproof_drift_result judged(products *p, const char *policy_text, double factor,
                                     size_t *unlikely) {
    sinkproof_policy policy = policy_named(policy_text);
    sinkproof_setting s = sinkproof_setting_for(&policy, N_X * N_W, STANDARD_RATE);
    s.core = policy.at[AT_A2_ACC];
    sinkproof_planes x = sinkproof_planes_new(p->x_k, N_X, K, K);
    sinkproof_planes w = sinkproof_planes_new(p->w_k, N_W, K, K);
    must(sinkproof_honest_products(&s, &x, &w, NULL, NULL, p->y, N_W));
    sinkproof_planes_free(&x), sinkproof_planes_free(&w);
    sinkproof_drift drift = {0};
    double v[N_W];
    *unlikely = 0;
    for (size_t i = 0; i < N_X; i++) {
        for (size_t r = 0; r < N_W; r++) {
            const sinkproof_honest *y = &p->y[i * N_W + r];
            v[r] = p->v[i * N_W + r] * factor;
            *unlikely += !(v[r] >= y->likely_lo && v[r] <= y->likely_hi);
        }
        sinkproof_drift_row(&drift, N_W, v, &p->y[i * N_W], 0, (double)i / (double)N_X);
    }
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, STANDARD_RATE, &result));
    sinkproof_drift_free(&drift);
    return result;
}

// Units with one sum or several, under the policy that leaves their number open, under the one that
// says one, and as float32 sums.
static void drift_knows_the_unit(void) {
    static products p;
    static const char *const names[] = {"volta", "turing", "ampere", "hopper"};
    uint64_t state = SEED + 40;
    size_t alarms = 0, tensors = 0, lean = 0, unlikely, out = 0;
    double worst = 0, least = INFINITY;
    for (size_t i = 0; i < 16; i++) {
        const unit *m = &units[i % 4];
        size_t parts = i < 8 ? 1 : 1 + draw_below(&state, 6);
        char policy[40];
        draw_products(&state, &p), add_up(&p, m, parts);
        if (i < 4)
            snprintf(policy, sizeof policy, "f32,acc=tensor-core(%d,%d,1)", m->bits, m->block);
        else
            snprintf(policy, sizeof policy, "f32,acc=%s", names[i % 4]);
        sinkproof_drift_result r = judged(&p, policy, 1, &unlikely);
        alarms += sinkproof_drift_leans(&r), out += unlikely, tensors++;
        worst = sinkproof_keep_worst(worst, fabs(r.gain) / r.limit);
        r = judged(&p, "f32", 1, &unlikely);
        if (parts == 1) lean += sinkproof_drift_leans(&r);
        if (parts == 1) least = sinkproof_keep_least(least, fabs(r.gain) / r.limit);
    }
    ok(alarms == 0 && out == 0,
       "bound.tensor-core drift of honest units worst=%.2f bound=1 alarms=%zu unlikely=%zu of=%zu",
       worst, alarms, out, tensors);
    ok(lean >= 6,
       "bound.tensor-core one sum as a float32 sum leans, seen=%zu of=8, least %.3g of the limit",
       lean, least);
}

static void sight(const char *policy, double most) {
    static products p;
    const unit hopper = {25, 16, -4000};
    uint64_t state = SEED + 41;
    size_t unlikely, missed = 0;
    draw_products(&state, &p), add_up(&p, &hopper, 1);
    sinkproof_drift_result r = judged(&p, policy, 1, &unlikely),
                           plain = judged(&p, "f32", 1, &unlikely);
    for (int sign = -1; sign <= 1; sign += 2) {
        sinkproof_drift_result wrong = judged(&p, policy, 1 + sign * 2.5 * r.smallest, &unlikely);
        missed += !sinkproof_drift_leans(&wrong);
    }
    ok(missed == 0, "bound.tensor-core %s: a factor 2.5 times the limit is seen, missed=%zu of=2",
       policy, missed);
    ok(r.smallest < most * plain.smallest,
       "bound.tensor-core %s: smallest factor seen %.3g, of float32 sums %.3g: worst=%.2f "
       "bound=%.1f",
       policy, r.smallest, plain.smallest, r.smallest / plain.smallest, most);
}

// What is no unit of the policy's kind.
static void is_seen(const char *what, unit m, size_t parts, const char *policy) {
    static products p;
    uint64_t state = SEED + 42;
    size_t unlikely;
    draw_products(&state, &p), add_up(&p, &m, parts);
    sinkproof_drift_result r = judged(&p, policy, 1, &unlikely);
    ok(sinkproof_drift_leans(&r) || unlikely > 0,
       "bound.tensor-core %s is not %s: gain/limit %.3g, unlikely %zu", what, policy,
       fabs(r.gain) / r.limit, unlikely);
}

int main(void) {
    for (operands kind = 0; kind < KINDS; kind++) units_are_inside(kind);
    bound_is_reached();
    drift_knows_the_unit();
    sight("f32,acc=hopper", 4);
    sight("f32,acc=tensor-core(25,16,1)", 2);
    is_seen("a unit of 17 bits", (unit){17, 16, -4000}, 1, "f32,acc=hopper");
    is_seen("a cut after each product", (unit){25, 1, -4000}, 1, "f32,acc=hopper");
    is_seen("a unit with eight sums", (unit){25, 16, -4000}, 8, "f32,acc=tensor-core(25,16,1)");
    return tap_done();
}
