// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Experts whose slices lie on ranks (bound.parts-mixed). Each rank mixes what its slices give,
// rounds that, and is added to the others in any order, in float32 or in the format; the bias is in
// the first rank's part, or in all in equal shares. All are inside, and some leave the set of one
// rank; with a bias on every rank, or a rank or an expert left out, they leave the set.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261129;
enum { CHOSEN = 4, COLS = 96, MOST = 8 };

typedef struct experts {
    double w[CHOSEN], z[CHOSEN][COLS], d[CHOSEN][COLS], b[CHOSEN];
} experts;

static void draw_experts(uint64_t *state, sinkproof_format format, experts *x) {
    for (size_t e = 0; e < CHOSEN; e++) {
        x->w[e] = fabs(draw_from(state, format, 0.3));
        x->b[e] = draw_from(state, format, 1);
        for (size_t c = 0; c < COLS; c++) {
            x->z[e][c] = draw_from(state, format, 1);
            x->d[e][c] = draw_from(state, format, 0.1);
        }
    }
}

typedef enum slip { NO_SLIP, BIAS_EVERYWHERE, RANK_LEFT_OUT, EXPERT_LEFT_OUT, SLIPS } slip;
static const char *const slip_names[SLIPS] = {"", "a bias on every rank", "a rank left out",
                                              "an expert left out on one rank"};

// What an engine does.
typedef struct engine {
    size_t ranks;
    sinkproof_format part, added, each; // of a part, of the sums before the last, of an output
    bool shared;
    slip slip;
} engine;

static double share_of_bias(const engine *e, size_t rank, double b) {
    if (e->shared) return b / (double)e->ranks;
    return rank == 0 || e->slip == BIAS_EVERYWHERE ? b : 0;
}

// Columns of a rank: [first, first + n).
static size_t columns_of(const engine *e, size_t rank, size_t *first) {
    size_t each = (COLS + e->ranks - 1) / e->ranks;
    *first = rank * each;
    return *first >= COLS ? 0 : COLS - *first < each ? COLS - *first : each;
}

static double mixed(uint64_t *state, const engine *e, const experts *x) {
    double part[MOST];
    for (size_t r = 0; r < e->ranks; r++) {
        float sum = 0;
        for (size_t k = 0; k < CHOSEN; k++) {
            size_t first, n = columns_of(e, r, &first);
            float one = 0;
            for (size_t c = first; c < first + n; c++) one += (float)(x->z[k][c] * x->d[k][c]);
            one += (float)share_of_bias(e, r, x->b[k]);
            one = (float)sinkproof_round(e->each, (double)one);
            if (e->slip != EXPERT_LEFT_OUT || r > 0 || k > 0) sum += (float)x->w[k] * one;
        }
        part[r] = sinkproof_round(e->part, (double)sum);
    }
    size_t left = e->ranks - (e->slip == RANK_LEFT_OUT ? 1 : 0);
    for (; left > 1; left--) {
        size_t i = draw_below(state, left - 1);
        float sum = (float)part[i] + (float)part[left - 1];
        part[i] = left > 2 ? sinkproof_round(e->added, (double)sum) : (double)sum;
    }
    return part[0];
}

static sinkproof_honest slice_of(const sinkproof_setting *s, const experts *x, size_t k,
                                 size_t first, size_t n) {
    sinkproof_honest z_c[COLS], sum = sinkproof_exact_set(0);
    sinkproof_matrix matrix = {.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = COLS};
    matrix.data = (const uint8_t *)x->d[k], matrix.col_stride = 1;
    matrix.row_stride = matrix.stack_stride = COLS;
    for (size_t c = 0; c < COLS; c++) z_c[c] = sinkproof_exact_set(x->z[k][c]);
    sinkproof_planes planes = sinkproof_planes_new(z_c, 1, COLS, COLS);
    const sinkproof_accumulator a = sinkproof_accumulator_at(s->policy, AT_M9_TERM, AT_M9_ACC);
    if (n > 0)
        must(sinkproof_honest_slice(s, &a, &planes, &(sinkproof_weight_rows){&matrix, 0, 1, NULL},
                                    first, n, &sum));
    sinkproof_planes_free(&planes);
    return sum;
}

static sinkproof_policy policy_of(const engine *e, const char *acc) {
    char text[96];
    snprintf(text, sizeof text, "f32,M9=real,M9.acc=%s,M10=%s?,M11=f32,M11.part=ranks(%zu,%s)", acc,
             sinkproof_format_name(e->part), e->ranks, sinkproof_format_name(e->part));
    return policy_named(text);
}

// The set of one rank that has all.
static sinkproof_honest set_of_whole(const sinkproof_policy *policy, const experts *x) {
    sinkproof_setting s = sinkproof_setting_for(policy, 100, STANDARD_RATE);
    sinkproof_honest w[CHOSEN], d[CHOSEN];
    for (size_t k = 0; k < CHOSEN; k++) {
        w[k] = sinkproof_exact_set(x->w[k]);
        d[k] = sinkproof_honest_slice_output(&s, COLS, slice_of(&s, x, k, 0, COLS), x->b[k]);
    }
    return sinkproof_honest_mixture(&s, CHOSEN, w, d);
}

static sinkproof_honest set_of(const sinkproof_policy *policy, const engine *e, const experts *x) {
    sinkproof_setting s = sinkproof_setting_for(policy, 100, STANDARD_RATE);
    sinkproof_honest w[CHOSEN], d[MOST * CHOSEN];
    for (size_t k = 0; k < CHOSEN; k++) w[k] = sinkproof_exact_set(x->w[k]);
    for (size_t r = 0; r < e->ranks; r++)
        for (size_t k = 0; k < CHOSEN; k++) {
            size_t first, n = columns_of(e, r, &first);
            double b = e->shared ? x->b[k] / (double)e->ranks : r == 0 ? x->b[k] : 0;
            d[r * CHOSEN + k] =
                sinkproof_honest_slice_output(&s, n, slice_of(&s, x, k, first, n), b);
        }
    return sinkproof_honest_mixed_parts(&s, e->ranks, CHOSEN, w, d, set_of_whole(policy, x));
}

static engine draw_engine(uint64_t *state, sinkproof_format format, size_t i) {
    static const size_t counts[] = {2, 4, 8, 3};
    engine e = {.ranks = counts[draw_below(state, 4)], .part = format, .slip = NO_SLIP};
    e.added = i % 2 == 0 ? format : SINKPROOF_F32, e.each = i % 3 == 0 ? format : SINKPROOF_F32;
    e.shared = i % 5 < 2 && e.ranks != 3; // a third is no number of the format inside
    return e;
}

static bool is_inside(const sinkproof_honest *set, double y) {
    return y >= set->lo && y <= set->hi;
}

static void slices_are_inside(sinkproof_format format) {
    uint64_t state = SEED + (uint64_t)format;
    tally t = {0};
    const size_t drawn = 400;
    size_t without = 0, slipped[SLIPS] = {0};
    const char *name = sinkproof_format_name(format);
    for (size_t i = 0; i < drawn; i++) {
        experts x;
        draw_experts(&state, format, &x);
        engine e = draw_engine(&state, format, i);
        sinkproof_policy policy = policy_of(&e, i % 4 == 0 ? "ranks(2,bf16)?" : "real");
        sinkproof_honest set = set_of(&policy, &e, &x), whole = set_of_whole(&policy, &x);
        double y = mixed(&state, &e, &x);
        meet(&t, &set, y);
        without += !is_inside(&whole, y);
        e.shared = false, set = set_of(&policy, &e, &x);
        for (e.slip = BIAS_EVERYWHERE; e.slip < SLIPS; e.slip++)
            slipped[e.slip] += !is_inside(&set, mixed(&state, &e, &x));
    }
    char what[64];
    snprintf(what, sizeof what, "ranks that mix, parts in %s", name);
    inside_ok(&t, "bound.parts-mixed", what);
    ok(without > drawn / 4, "bound.parts-mixed %s: outside the set of one rank %zu of=%zu", name,
       without, drawn);
    for (slip k = BIAS_EVERYWHERE; k < SLIPS; k++)
        ok(slipped[k] > drawn * 9 / 10, "bound.parts-mixed %s, %s: outside %zu of=%zu", name,
           slip_names[k], slipped[k], drawn);
}

// Sums in a known order or in blocks, of one rank: such a sum is inside the set of any order.
static void narrow_sums_are_inside(void) {
    static const char *const sums[] = {"bf16", "blocks(16,bf16)", "bf16?"};
    uint64_t state = SEED + 77;
    for (size_t a = 0; a < sizeof sums / sizeof sums[0]; a++) {
        size_t outside = 0, exact = 0, block = a == 1 ? 16 : 1;
        const size_t drawn = 200;
        for (size_t i = 0; i < drawn; i++) {
            experts x;
            draw_experts(&state, SINKPROOF_BF16, &x);
            engine e = {.ranks = 2, .part = SINKPROOF_BF16};
            sinkproof_policy policy = policy_of(&e, sums[a]);
            sinkproof_setting s = sinkproof_setting_for(&policy, 100, STANDARD_RATE);
            sinkproof_honest set = slice_of(&s, &x, 0, COLS / 2, COLS / 2);
            float sum = 0, part = 0;
            for (size_t c = COLS / 2; c < COLS; c++) {
                part += (float)(x.z[0][c] * x.d[0][c]);
                if ((c + 1) % block != 0) continue;
                sum += block > 1 ? (float)sinkproof_round(SINKPROOF_BF16, (double)part) : part;
                if (block == 1) sum = (float)sinkproof_round(SINKPROOF_BF16, (double)sum);
                part = 0;
            }
            outside += !is_inside(&set, (double)sum);
            exact += set.hi - set.lo < 0x1p-20;
        }
        ok(outside == 0 && exact == 0, "bound.parts-mixed M9.acc=%s of a slice: outside=%zu of=%zu",
           sums[a], outside, drawn);
    }
}

// Two ranks whose mixtures are just above ties of the format: each is wrong by half a step.
static void bound_is_reached(void) {
    experts x = {.w = {0.25, 0.25, 0.25, 0.25}};
    uint64_t state = SEED;
    for (size_t e = 0; e < CHOSEN; e++)
        for (size_t c = 0; c < COLS; c += COLS / 2) x.z[e][c] = 0x1.0102p0, x.d[e][c] = 1;
    engine e = {.ranks = 2, .part = SINKPROOF_BF16, .added = SINKPROOF_F32, .each = SINKPROOF_F32};
    sinkproof_policy policy = policy_of(&e, "real");
    sinkproof_honest set = set_of(&policy, &e, &x);
    double y = mixed(&state, &e, &x), real = 2 * 0x1.0102p0, share = (y - real) / (set.hi - real);
    ok(share > 0.9 && share <= 1, "bound.parts-mixed ties reach its floor reached=%.3g floor=0.9",
       share);
}

int main(void) {
    slices_are_inside(SINKPROOF_BF16);
    slices_are_inside(SINKPROOF_F16);
    narrow_sums_are_inside();
    bound_is_reached();
    return tap_done();
}
