// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What operations make of single sets, to the bit or up to the roundings of a formula: flushed
// numbers and sums (bound.ftz), roundings on the way (bound.dot-likely), the logits of a stored key
// (sink.key-bias), and a cache of few bits (bound.quantized-cache). Cases: ends at zero and just at
// the smallest normal number. Nothing is read or written behind the last element.
#include "proofs/bounds/mixing.h"
#include "ref/normaliser.h"
#include "tests/shared/sets.h"

static const uint64_t SEED = 20261123;
static const double TINY = 0x1p-126;

static sinkproof_policy flushing(void) {
    sinkproof_policy policy = real_policy("definition");
    policy.inside = SINKPROOF_F32, policy.ftz = true;
    return policy;
}

// ---- bound.ftz ---------------------------------------------------------------------------------

// Ends in units of 2^-130, the smallest normal number 16 of them.
static sinkproof_honest in_units(double lo, double hi, double likely_lo, double likely_hi,
                                 double mid) {
    const double unit = 0x1p-130;
    return (sinkproof_honest){lo * unit, hi * unit, likely_lo * unit, likely_hi * unit, mid * unit,
                              0x1p-270,  0x1p-271,  0x1p-140,         0x1p-272};
}

// The set and 0, where the set reaches below 16 units and is not 0 alone; what is lost is mid,
// where mid itself is below.
static sinkproof_honest hulled(sinkproof_honest x) {
    bool below = x.lo < TINY && x.hi > -TINY;
    if (!below || (x.lo == 0 && x.hi == 0)) return x;
    if (x.lo > 0) x.lo = 0;
    if (x.hi < 0) x.hi = 0;
    if (x.likely_lo > 0) x.likely_lo = 0;
    if (x.likely_hi < 0) x.likely_hi = 0;
    if (!(x.mid < TINY && x.mid > -TINY)) return x;
    x.bias = x.bias + (x.mid < 0 ? -x.mid : x.mid);
    x.spread = x.var = x.var + x.mid * x.mid;
    return x;
}

static void flushed(void) {
    static const double sets[][5] = {{1, 3, 1.5, 2.5, 2},
                                     {-3, -1, -2.5, -1.5, -2},
                                     {-2, 3, -1, 1, 0.5},
                                     {15, 17, 15.5, 16.5, 16},
                                     {15, 18, 15.5, 17, 16.5},
                                     {16, 18, 16.5, 17, 17},
                                     {-17, -15, -16, -15, -16},
                                     {-18, -16, -17, -16.5, -17},
                                     {0, 3, 1, 2, 1.5},
                                     {-3, 0, -2, -1, -1.5},
                                     {0, 0, 0, 0, 0},
                                     {-1e9, 2, -1e8, 1, -1e8},
                                     {-2, 1e9, -1, 1e8, 1e8},
                                     {0, 0x1p130, 1, 2, 0x1p129},
                                     {14, 20, 15, 16, 15.9},
                                     {-1e9, -1, -9, -2, -1e8},
                                     {-0x1p130, 0, -9, -2, -17},
                                     {1e9, 2e9, 1.1e9, 1.2e9, 1.1e9}};
    sinkproof_policy policy = flushing();
    sinkproof_setting s = setting(&policy);
    policy.at[AT_A1].format = SINKPROOF_F32; // which holds the first eight sets
    size_t wrong = 0, count = sizeof sets / sizeof sets[0];
    for (size_t i = 0; i < count; i++) {
        const double *e = sets[i];
        sinkproof_honest x = in_units(e[0], e[1], e[2], e[3], e[4]);
        sinkproof_honest y = honest_flushed(&s, x), want = hulled(x);
        wrong += !same(&y, &want);
        y = sinkproof_honest_at(&s, AT_A1, x), wrong += i < 8 && !same(&y, &want);
        policy.ftz = false;
        y = honest_flushed(&s, x), wrong += !same(&y, &x);
        policy.ftz = true;
    }
    ok(wrong == 0, "bound.ftz sets about the smallest normal number worst=%zu bound=0 of=%zu",
       wrong, count);
}

// 2 of the smallest normal numbers are lost on either side, below 2^26 of them. All numbers here
// are binary32's, which the rounding inside leaves alone.
static void flushed_sums(void) {
    const double limit = 0x1p-100, last = limit * (1 - 0x1p-24);
    const double sets[][2] = {
        {TINY, 8 * TINY}, {-8 * TINY, -TINY}, {0, 8 * TINY},        {-8 * TINY, 0},    {0, 0},
        {-1, 1},          {limit, 2 * limit}, {-2 * limit, -limit}, {last, 2 * limit}, {-1, -last},
        {-1, -limit}};
    sinkproof_policy policy = flushing();
    sinkproof_setting s = setting(&policy);
    size_t wrong = 0, count = sizeof sets / sizeof sets[0];
    for (size_t i = 0; i < count; i++) {
        double lo = sets[i][0], hi = sets[i][1], lost = 2 * TINY, mid = hi > 0 ? hi : lo;
        double quarter = ldexp(hi, -2) - ldexp(lo, -2);
        double l = sinkproof_round(SINKPROOF_F32, lo + quarter);
        double h = sinkproof_round(SINKPROOF_F32, hi - quarter);
        sinkproof_honest x = {lo, hi, l, h, mid, 0x1p-240, 0x1p-240, 0x1p-120, 0x1p-250};
        bool reaches = lo < limit && hi > -limit && !(lo == 0 && hi == 0);
        double ulp = sinkproof_ulp(SINKPROOF_F32, mid);
        sinkproof_honest y = sinkproof_honest_inside(&s, x), want = x;
        want.var = want.spread = x.var + ulp * ulp / 12;
        if (reaches) {
            want.lo = add_down(lo, -lost), want.hi = sinkproof_add_up(hi, lost);
            want.likely_lo = add_down(l, -lost);
            want.likely_hi = sinkproof_add_up(h, lost);
            want.bias = x.bias + lost, want.var = want.spread = want.var + lost * lost;
        }
        wrong += !same(&y, &want);
    }
    ok(wrong == 0, "bound.ftz sums about 2^26 of them worst=%zu bound=0 of=%zu", wrong, count);
}

static void underflows(void) {
    sinkproof_policy policy = flushing();
    sinkproof_setting s = setting(&policy);
    size_t wrong = flushed_below(&s) != TINY;
    wrong += setting_underflow(&s) != TINY;
    wrong += underflow_bound(&s, 3, 0.5) != 4.5 * TINY;
    wrong += underflow_bound(&s, 3, INFINITY) != INFINITY;
    wrong += underflow_bound(&s, 0, INFINITY) != 0 || underflow_bound(&s, 0, 0.5) != 0;
    policy.ftz = false;
    wrong += flushed_below(&s) != 0 || setting_underflow(&s) != 0x1p-150;
    wrong += underflow_bound(&s, 2, 1) != 0x1p-148;
    policy.inside = SINKPROOF_REAL; // nothing underflows, however much may grow
    wrong += underflow_bound(&s, 3, INFINITY) != 0 || underflow_bound(&s, 3, 1) != 0;
    policy.inside = SINKPROOF_F64, policy.ftz = true;
    wrong += flushed_below(&s) != 0x1p-1022;
    wrong += setting_underflow(&s) != 0x1p-1022;
    policy.inside = SINKPROOF_BF16;
    wrong += flushed_below(&s) != TINY;
    ok(wrong == 0, "bound.ftz what roundings lose, none of them nothing worst=%zu bound=0", wrong);
}

// ---- bound.dot-likely --------------------------------------------------------------------------

static void one_end_at_zero(void) {
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    distance d = {0};
    for (int i = 0; i < 8; i++) {
        double far = i & 1 ? -1.5 : 1.5, n = i & 2 ? 9 : 1, near_zero = i & 4 ? far / 4 : 0;
        double lo = fmin(far, near_zero), hi = fmax(far, near_zero);
        sinkproof_honest x = {lo, hi, lo / 2, hi / 2, far / 2, 0.5, 0.25, 0.125, 0};
        sinkproof_honest y = sinkproof_honest_roundings(&s, x, n);
        real u = 0x1p-24L, worst = gamma_of(n, u);
        real likely = fminl(worst, sqrtl(2 * (real)s.odds * n) * u * (1 + worst));
        real under = n * 0x1p-1074L, wide = 1.5L * worst + under, narrow = 0.75L * likely + under;
        near(&d, lo - y.lo, wide, wide + 2, 8), near(&d, y.hi - hi, wide, wide + 2, 8);
        near(&d, y.lo, lo - wide, 2, 8), near(&d, y.hi, hi + wide, 2, 8);
        near(&d, y.likely_lo, lo / 2 - narrow, 1, 8), near(&d, y.likely_hi, hi / 2 + narrow, 1, 8);
        real var = 0.5L + n * u * u * 0.75L * 0.75L / 3;
        near(&d, y.var, var, var, 8), near(&d, y.spread, var, var, 8);
    }
    report(&d, "bound.dot-likely", "sets with an end at zero", 0);
}

// ---- sink.key-bias -----------------------------------------------------------------------------

enum { DIM = 4, QUERIES = 3 };

// b of one query: a sum of exact products of any order, a half of it, rounded to bfloat16.
static sinkproof_honest stated_logit(const sinkproof_setting *s, const double *q,
                                     const double *key) {
    real mid = 0, total = 0, square = 0, u = 0x1p-24L, m = DIM;
    for (size_t d = 0; d < DIM; d++) {
        real product = (real)q[d] * key[d];
        mid += product, total += fabsl(product), square += product * product;
    }
    // No product is rounded: m - 1 additions, and none of m + 1 partial sums weighs a half more.
    real wide = gamma_of(m - 1, u) * total;
    real paths = (m + 1) * (mid * mid / 3 + square / 6);
    real narrow = fminl(sqrtl(2 * (real)s->odds * paths) * u, wide);
    return (sinkproof_honest){
        .lo = sinkproof_round(SINKPROOF_BF16, (double)(mid - wide) / 2),
        .hi = sinkproof_round(SINKPROOF_BF16, (double)(mid + wide) / 2),
        .likely_lo = sinkproof_round(SINKPROOF_BF16, (double)(mid - narrow) / 2),
        .likely_hi = sinkproof_round(SINKPROOF_BF16, (double)(mid + narrow) / 2),
        .mid = sinkproof_round(SINKPROOF_BF16, (double)mid / 2)};
}

static void key_logits(void) {
    uint64_t state = SEED;
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    policy.at[AT_A8].format = SINKPROOF_BF16;
    size_t wrong = 0, several = 0, compared = 0;
    for (int i = 0; i < 200; i++) {
        size_t rows = (size_t)(1 + i % QUERIES);
        double q[QUERIES * DIM], key[DIM + 1] = {0};
        sinkproof_honest sets[QUERIES * DIM], b[QUERIES + 1];
        for (size_t k = 0; k < rows * DIM; k++)
            q[k] = draw_dyadic(&state), sets[k] = sinkproof_exact_set(q[k]);
        for (size_t d = 0; d < DIM; d++) key[d] = draw_dyadic(&state);
        key[DIM] = 999;
        for (size_t r = 0; r <= QUERIES; r++) b[r] = sinkproof_exact_set(-7 - (double)r);
        sinkproof_planes query = sinkproof_planes_new(sets, rows, DIM, DIM);
        sinkproof_normaliser normaliser = {.logit = 5, .key_d = key};
        must(query.mid != NULL);
        must(sinkproof_honest_sink_logits(&s, &normaliser, &query, b));
        for (size_t r = 0; r <= QUERIES; r++) {
            bool row = r < rows;
            sinkproof_honest left = sinkproof_exact_set(-7 - (double)r);
            sinkproof_honest want = row ? stated_logit(&s, &q[r * DIM], key) : left;
            wrong += b[r].lo != want.lo || b[r].hi != want.hi || b[r].mid != want.mid;
            wrong += b[r].likely_lo != want.likely_lo || b[r].likely_hi != want.likely_hi;
            several += row && want.lo != want.hi, compared++;
        }
        normaliser.key_d = NULL; // a number: the same for every row
        must(sinkproof_honest_sink_logits(&s, &normaliser, &query, b));
        for (size_t r = 0; r < rows; r++) wrong += b[r].mid != 5 || b[r].lo != 5 || b[r].hi != 5;
        sinkproof_planes_free(&query);
    }
    ok(wrong == 0 && several > 0,
       "sink.key-bias the logits of a stored key, rounded to bfloat16 worst=%zu bound=0 of=%zu "
       "(several numbers: %zu)",
       wrong, compared, several);
}

// As many terms as products, two more where the query may be scaled before them by what is no power
// of two.
static void terms(void) {
    static const struct {
        size_t n, dim;
        sinkproof_rounding before;
        double terms;
    } all[] = {{5, 3, {.format = SINKPROOF_REAL}, 7},
               {5, 3, {.format = SINKPROOF_F32, .optional = true}, 7},
               {5, 3, {.format = SINKPROOF_F32}, 5},
               {64, 64, {.format = SINKPROOF_REAL}, 64},
               {64, 64, {.format = SINKPROOF_F32, .optional = true}, 64},
               {64, 64, {.format = SINKPROOF_F32}, 64},
               {32, 32, {.format = SINKPROOF_BF16, .optional = true}, 34},
               {0, 2, {.format = SINKPROOF_REAL}, 2},
               {9, 1, {.format = SINKPROOF_REAL}, 9}};
    size_t wrong = 0, cases = sizeof all / sizeof *all;
    for (size_t k = 0; k < cases; k++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        policy.at[AT_A5] = all[k].before;
        wrong += sinkproof_score_terms(&s, all[k].n, all[k].dim) != all[k].terms;
    }
    ok(wrong == 0,
       "sink.key-bias bound.linear as how many terms a score counts worst=%zu bound=0 of=%zu",
       wrong, cases);
}

// Three coordinates: five terms where the query may be scaled first.
static void scaled_logits(void) {
    enum { THREE = 3 };
    uint64_t state = SEED + 3;
    size_t wrong = 0, compared = 0;
    for (int i = 0; i < 100; i++) {
        sinkproof_policy policy = policy_named(i % 2 ? "f32" : "llama-cpp");
        sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
        double key[THREE], terms_i[2] = {i % 2 ? 5 : 3, i % 2 ? 5 : 3};
        sinkproof_honest q[2 * THREE], k[THREE], b[2], x[2];
        for (size_t d = 0; d < 2 * THREE; d++)
            q[d] = sinkproof_exact_set((double)draw_gauss(&state));
        for (size_t d = 0; d < THREE; d++)
            key[d] = (double)(float)draw_gauss(&state), k[d] = sinkproof_exact_set(key[d]);
        sinkproof_planes query = sinkproof_planes_new(q, 2, THREE, THREE);
        sinkproof_planes one = sinkproof_planes_new(k, 1, THREE, THREE);
        sinkproof_normaliser normaliser = {.key_d = key};
        must(sinkproof_honest_products(&s, &query, &one, terms_i, NULL, x, 1));
        must(sinkproof_honest_sink_logits(&s, &normaliser, &query, b));
        for (size_t r = 0; r < 2; r++, compared++) {
            sinkproof_honest want =
                sinkproof_honest_at(&s, AT_A8, sinkproof_honest_score(&s, THREE, x[r]));
            wrong += memcmp(&want, &b[r], sizeof want) != 0;
        }
        sinkproof_planes_free(&query), sinkproof_planes_free(&one);
    }
    ok(wrong == 0, "sink.key-bias logits of a stored key, scaled worst=%zu bound=0 of=%zu", wrong,
       compared);
}

// A sum of products, rounded inside or not, at A5, scaled by a constant that is itself rounded
// unless it is a power of two, rounded inside or not, and at A6.
static void scores(void) {
    uint64_t state = SEED + 2;
    distance d = {0};
    for (int i = 0; i < 200; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        size_t dim = (size_t)(i % 2 ? 3 : 16);
        if (i & 2) policy.at[AT_A5].format = SINKPROOF_BF16;
        if (i & 4) policy.at[AT_A6].format = SINKPROOF_F16;
        if (i & 8) policy.inside = SINKPROOF_F32;
        double c = draw_dyadic(&state) + 0x1p-9 + (i & 16 ? 0x1p-30 : 0);
        sinkproof_honest x =
            sinkproof_set_around(c, 0x1p-6 + 0x1p-28, 0x1p-7 + 0x1p-29, 0x1p-16, 0x1p-9);
        sinkproof_honest z = sinkproof_honest_inside(&s, x), y;
        if (i & 2) z = sinkproof_honest_rounded(SINKPROOF_BF16, z);
        double scale = i % 2 ? 1 / sqrt(3) : 0.25;
        y = sinkproof_honest_mul(z, sinkproof_exact_set(scale));
        if (i % 2) {
            y = sinkproof_honest_roundings(&s, y, 2);
            y.bias += 2 * s.u * fabs(y.mid);
        }
        y = sinkproof_honest_inside(&s, y);
        if (i & 4) y = sinkproof_honest_rounded(SINKPROOF_F16, y);
        sinkproof_honest found = sinkproof_honest_score(&s, dim, x);
        near(&d, found.lo, y.lo, 1, 1), near(&d, found.hi, y.hi, 1, 1);
        near(&d, found.likely_lo, y.likely_lo, 1, 1), near(&d, found.mid, y.mid, 1, 1);
        near(&d, found.likely_hi, y.likely_hi, 1, 1), near(&d, found.var, y.var, y.var, 1);
        near(&d, found.bias, y.bias, y.bias, 1);
    }
    report(&d, "sink.key-bias", "the steps of a score", SEED + 2);
}

// ---- bound.quantized-cache ---------------------------------------------------------------------

static void few_bits(void) {
    size_t wrong = 0;
    for (int bits = 2; bits <= 16; bits++) {
        // Half a step, and 4 roundings of the largest level.
        int64_t limit = (INT64_C(1) << (bits - 1)) - 1, half = INT64_C(1) << 52;
        for (int e = -40; e <= 40; e += 8)
            wrong += sinkproof_quantise_most(bits, ldexp(1, e)) !=
                     ldexp((double)(half + 4 * limit), e - 53);
        double x[3] = {-(double)limit, 1, 1e30}, out[3] = {0, 0, -3};
        wrong += sinkproof_quantise(bits, 2, x, out) != 1;
        wrong += out[0] != x[0] || out[1] != 1 || out[2] != -3 || x[2] != 1e30;
    }
    double none = -3, behind = 8;
    wrong += sinkproof_quantise(8, 0, &behind, &none) != 0 || none != -3;
    ok(wrong == 0, "bound.quantized-cache half a step to the bit worst=%zu bound=0", wrong);
}

static void cache(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    for (int i = 0; i < 200; i++) {
        enum { KEYS = 6 };
        size_t n = draw_below(&state, KEYS + 1);
        double alpha[KEYS + 1], delta[KEYS + 1], eps[KEYS + 1];
        double sink = draw_unit(&state), most = 4 * draw_unit(&state);
        real values = 0, moved = 0;
        for (size_t j = 0; j <= KEYS; j++) {
            alpha[j] = draw_unit(&state), delta[j] = draw_unit(&state), eps[j] = draw_unit(&state);
            if (j >= n) continue;
            values += (real)alpha[j] * eps[j];
            moved += alpha[j] * (expl(delta[j]) - 1);
        }
        real bound = values + (2 - (real)sink) * most * moved;
        near(&d, sinkproof_cache_bound(n, alpha, delta, eps, sink, most), bound, bound,
             (real)n + 8);
    }
    report(&d, "bound.quantized-cache", "the bound of a cache", SEED + 1);
}

int main(void) {
    flushed();
    flushed_sums();
    underflows();
    one_end_at_zero();
    key_logits();
    terms();
    scaled_logits();
    scores();
    few_bits();
    cache();
    return tap_done();
}
