// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums of products (bound.dot, bound.linear, bound.dot-likely). Float32 engines in every order that
// we know, over operands chosen to make errors large, must stay in the honest set. A sum in which
// every addition rounds up must come close to the set's end. The likely set must hold at its stated
// odds.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

#include <stdlib.h>

static const uint64_t SEED = 20251104;

// ---- operands ---------------------------------------------------------------------------------

typedef struct operands {
    const char *name;
    sinkproof_format x;
    sinkproof_dtype w;
} operands;

static const operands kinds[] = {
    {"bf16 x bf16", SINKPROOF_BF16, SINKPROOF_DTYPE_BF16},
    {"f32 x bf16", SINKPROOF_F32, SINKPROOF_DTYPE_BF16},
    {"f32 x f32", SINKPROOF_F32, SINKPROOF_DTYPE_F32},
    {"bf16 x mxfp4", SINKPROOF_BF16, SINKPROOF_DTYPE_MXFP4},
    {"f32 x mxfp4", SINKPROOF_F32, SINKPROOF_DTYPE_MXFP4},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

typedef enum pattern_kind {
    GAUSS,
    CANCELLING, // the second half undoes the first but for a little
    POSITIVE,
    OUTLIER, // one term of 2^12
    ASCENDING,
    DESCENDING,
    CONSTANT,
    SUBNORMAL, // products around and below the smallest float
    PATTERNS
} pattern_kind;
static const char *const pattern_names[PATTERNS] = {"gauss",        "cancelling", "positive",
                                                    "outlier 2^12", "ascending",  "descending",
                                                    "constant",     "subnormal"};

static double weight(uint64_t *state, sinkproof_dtype dtype) {
    static const double codes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (dtype == SINKPROOF_DTYPE_MXFP4)
        return (draw(state) % 2 ? -0x1p-6 : 0x1p-6) * codes[draw(state) % 8];
    return draw_from(state, dtype == SINKPROOF_DTYPE_BF16 ? SINKPROOF_BF16 : SINKPROOF_F32, 0.03);
}

static const double *sort_x, *sort_w; // what compare_terms orders by

static int compare_terms(const void *p, const void *q) {
    size_t i = *(const size_t *)p, j = *(const size_t *)q;
    double a = fabs(sort_x[i] * sort_w[i]), b = fabs(sort_x[j] * sort_w[j]);
    return a < b ? -1 : a > b;
}

static void sort_terms(size_t n, double *x, double *w, bool descending) {
    static size_t at[MOST_TERMS];
    static double x_was[MOST_TERMS], w_was[MOST_TERMS];
    for (size_t k = 0; k < n; k++) at[k] = k, x_was[k] = x[k], w_was[k] = w[k];
    sort_x = x_was, sort_w = w_was;
    qsort(at, n, sizeof *at, compare_terms);
    for (size_t k = 0; k < n; k++) {
        size_t to = descending ? n - 1 - k : k;
        x[to] = x_was[at[k]], w[to] = w_was[at[k]];
    }
}

static void fill(uint64_t *state, const operands *kind, pattern_kind pattern, size_t n, double *x,
                 double *w) {
    for (size_t k = 0; k < n; k++) {
        x[k] = draw_from(state, kind->x, 1);
        w[k] = weight(state, kind->w);
        if (pattern == POSITIVE) x[k] = fabs(x[k]), w[k] = fabs(w[k]);
        if (pattern == CONSTANT && k > 0) x[k] = x[0], w[k] = w[0];
        if (pattern == CANCELLING && k >= n / 2 && n > 1) {
            x[k] = -x[k - n / 2], w[k] = w[k - n / 2];
            if (k % 7 == 0) x[k] = sinkproof_round(kind->x, x[k] * 1.01);
        }
        if (pattern == SUBNORMAL) {
            x[k] = sinkproof_round(kind->x, x[k] * 0x1p-110);
            w[k] *= kind->w == SINKPROOF_DTYPE_MXFP4 ? 0x1p-30 : 0x1p-34;
        }
    }
    if (pattern == OUTLIER) x[draw_below(state, n)] *= 4096;
    if (pattern == ASCENDING || pattern == DESCENDING) sort_terms(n, x, w, pattern == DESCENDING);
}

// ---- the honest set of one sum, and of many ----------------------------------------------------

// Known rows of x against rows of w, one row each.
static sinkproof_honest set_of(const sinkproof_setting *s, const sinkproof_honest *x,
                               const sinkproof_honest *w, size_t n, const double *b) {
    sinkproof_honest out;
    sinkproof_planes p = sinkproof_planes_new(x, 1, n, n);
    sinkproof_planes q = sinkproof_planes_new(w, 1, n, n);
    must(sinkproof_honest_products(s, &p, &q, NULL, b, &out, 1));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    return out;
}

static sinkproof_honest set_of_known(const sinkproof_setting *s, const double *x, const double *w,
                                     size_t n, const double *b) {
    static sinkproof_honest x_k[MOST_TERMS], w_k[MOST_TERMS];
    for (size_t k = 0; k < n; k++)
        x_k[k] = sinkproof_exact_set(x[k]), w_k[k] = sinkproof_exact_set(w[k]);
    return set_of(s, x_k, w_k, n, b);
}

static void to_float(size_t n, const double *x, float *y) {
    for (size_t k = 0; k < n; k++) y[k] = (float)x[k];
}

// Every engine on one sum, without bias, and with the bias first and last.
static void engines(uint64_t *state, const sinkproof_honest *plain, const sinkproof_honest *biased,
                    size_t n, const double *x, const double *w, double b, tally *t) {
    static float x_f[MOST_TERMS], w_f[MOST_TERMS];
    to_float(n, x, x_f), to_float(n, w, w_f);
    float bias = (float)b;
    for (summation o = 0; o < ORDERS; o++) {
        for (int fused = 0; fused < 2; fused++) {
            meet(t, plain, engine_dot(state, o, fused, n, x_f, w_f, NULL, false));
            meet(t, biased, engine_dot(state, o, fused, n, x_f, w_f, &bias, false));
            meet(t, biased, engine_dot(state, o, fused, n, x_f, w_f, &bias, true));
        }
    }
}

static void every_engine_inside(pattern_kind pattern) {
    static const size_t terms[] = {1, 2, 3, 31, 64, 2880};
    static double x[MOST_TERMS], w[MOST_TERMS];
    sinkproof_policy policy = policy_named("f32");
    uint64_t state = SEED + (uint64_t)pattern;
    tally t = {0};
    size_t worst_terms = 0;
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t size = 0; size < sizeof terms / sizeof *terms; size++) {
            size_t n = terms[size], repeats = n > 1000 ? 2 : n > 40 ? 20 : 100;
            sinkproof_setting s = sinkproof_setting_for(&policy, repeats, STANDARD_RATE);
            for (size_t r = 0; r < repeats; r++) {
                fill(&state, &kinds[k], pattern, n, x, w);
                double b = r % 4 == 0 ? 0 : draw_from(&state, SINKPROOF_BF16, 1);
                if (pattern == SUBNORMAL) b = sinkproof_round(SINKPROOF_F32, b * 0x1p-140);
                sinkproof_honest plain = set_of_known(&s, x, w, n, NULL);
                sinkproof_honest biased = set_of_known(&s, x, w, n, &b);
                double before = t.worst;
                engines(&state, &plain, &biased, n, x, w, b, &t);
                if (t.worst > before) worst_terms = n;
            }
        }
    }
    char what[80];
    snprintf(what, sizeof what, "%s (worst at K=%zu)", pattern_names[pattern], worst_terms);
    inside_ok(&t, "bound.dot", what);
}

// After the rounding point: the engine's float, stored as bf16, is one of the set's ends at most.
static void rounded_to_bf16(void) {
    enum { K = 2880 };
    const size_t sums = 150;
    static double x[K], w[K];
    static float x_f[K], w_f[K];
    sinkproof_policy policy = policy_named("openai-bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, sums, STANDARD_RATE);
    uint64_t state = SEED + 20;
    tally t = {0};
    for (size_t i = 0; i < sums; i++) {
        fill(&state, &kinds[0], i % 2 ? GAUSS : OUTLIER, K, x, w);
        double b = draw_from(&state, SINKPROOF_BF16, 1);
        sinkproof_honest set = set_of_known(&s, x, w, K, &b);
        set = sinkproof_honest_at(&s, AT_A2, sinkproof_honest_inside(&s, set));
        to_float(K, x, x_f), to_float(K, w, w_f);
        for (summation o = 0; o < ORDERS; o++) {
            float bias = (float)b, y = engine_dot(&state, o, i % 3, K, x_f, w_f, &bias, i % 5 == 0);
            meet(&t, &set, sinkproof_round(SINKPROOF_BF16, y));
        }
    }
    inside_ok(&t, "bound.linear", "stored as bf16");
}

// A point that the trace lacks: the engine's own x is anywhere in its set.
static void operands_with_freedom(void) {
    enum { K = 96 };
    const size_t sums = 1000;
    static double x[K], w[K];
    static float x_f[K], w_f[K];
    static sinkproof_honest x_k[K], w_k[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, sums, STANDARD_RATE);
    uint64_t state = SEED + 21;
    tally t = {0};
    for (size_t i = 0; i < sums; i++) {
        fill(&state, &kinds[2], (pattern_kind)(i % SUBNORMAL), K, x, w);
        for (size_t k = 0; k < K; k++) {
            double dx = fabs(x[k]) * ldexp(1, -12 - (int)(i % 12)),
                   dw = i % 2 ? fabs(w[k]) * 0x1p-16 : 0;
            x_k[k] = sinkproof_set_around(x[k], dx, dx, 0, 0);
            w_k[k] = sinkproof_set_around(w[k], dw, dw, 0, 0);
            double up_x = w[k] > 0 ? dx : -dx, up_w = x[k] > 0 ? dw : -dw; // all push up
            if (i % 3 == 0) up_x *= 2 * draw_unit(&state) - 1;
            x_f[k] = (float)(x[k] + up_x), w_f[k] = (float)(w[k] + up_w);
            if ((double)x_f[k] > x_k[k].hi || (double)x_f[k] < x_k[k].lo) x_f[k] = (float)x[k];
            if ((double)w_f[k] > w_k[k].hi || (double)w_f[k] < w_k[k].lo) w_f[k] = (float)w[k];
        }
        sinkproof_honest set = set_of(&s, x_k, w_k, K, NULL);
        for (summation o = 0; o < ORDERS; o++)
            meet(&t, &set, engine_dot(&state, o, i % 4 == 0, K, x_f, w_f, NULL, false));
    }
    inside_ok(&t, "bound.linear", "operands with freedom of their own");
}

// A stored weight, decoded in blocks of rows, gives the same sets as its rows given directly; the
// products that a mask makes zero are not counted.
static void stored_weights(void) {
    enum { ROWS = 600, K = 64 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    uint64_t state = SEED + 22;
    static sinkproof_honest x[K], w[ROWS * K], direct[ROWS], stored[ROWS];
    static double row[K], b[ROWS];
    size_t differ = 0;
    static const sinkproof_dtype dtypes[] = {SINKPROOF_DTYPE_BF16, SINKPROOF_DTYPE_F32,
                                             SINKPROOF_DTYPE_MXFP4};
    for (size_t d = 0; d < 3; d++) {
        sinkproof_matrix matrix;
        uint8_t *bytes = draw_matrix(&state, dtypes[d], ROWS, K, 3, &matrix);
        for (size_t k = 0; k < K; k++)
            x[k] = sinkproof_exact_set(draw_from(&state, SINKPROOF_F32, 1));
        for (size_t r = 0; r < ROWS; r++) {
            sinkproof_matrix_row(&matrix, r, row);
            for (size_t k = 0; k < K; k++) w[r * K + k] = sinkproof_exact_set(row[k]);
            b[r] = draw_from(&state, SINKPROOF_BF16, 1);
        }
        sinkproof_planes p = sinkproof_planes_new(x, 1, K, K);
        sinkproof_planes q = sinkproof_planes_new(w, ROWS, K, K);
        must(sinkproof_honest_products(&s, &p, &q, NULL, b, direct, ROWS));
        must(sinkproof_honest_linear(&s, &p, &(sinkproof_weight_rows){&matrix, 0, ROWS, b}, stored,
                                     ROWS));
        for (size_t r = 0; r < ROWS; r++) // another product of matrices: its centre may differ
            differ +=
                !(stored[r].lo <= direct[r].mid && direct[r].mid <= stored[r].hi &&
                  fabs(stored[r].hi - direct[r].hi) <= 0x1p-20 * (direct[r].hi - direct[r].lo));
        sinkproof_planes_free(&p), sinkproof_planes_free(&q);
        free(bytes);
    }
    ok(differ == 0, "bound.linear stored weights worst=%zu bound=0 rows=%d", differ, 3 * ROWS);
}

// The set of real-f64 holds the exact sum, whatever cancels.
static void truth_is_inside(void) {
    enum { K = 300, SUMS = 800 };
    static double x[K], w[K];
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, SUMS, STANDARD_RATE);
    uint64_t state = SEED + 23;
    size_t outside = 0;
    double worst = 0;
    mpfr_t exact, a;
    mpfr_init2(exact, 2200), mpfr_init2(a, 53);
    for (int i = 0; i < SUMS; i++) {
        fill(&state, &kinds[2], (pattern_kind)(i % PATTERNS), K, x, w);
        mpfr_set_zero(exact, 1);
        for (size_t k = 0; k < K; k++) {
            mpfr_t p;
            mpfr_init2(p, 106);
            mpfr_set_d(a, x[k], MPFR_RNDN);
            mpfr_mul_d(p, a, w[k], MPFR_RNDN);
            mpfr_add(exact, exact, p, MPFR_RNDN);
            mpfr_clear(p);
        }
        sinkproof_honest set = set_of_known(&s, x, w, K, NULL);
        outside += !(mpfr_cmp_d(exact, set.lo) >= 0 && mpfr_cmp_d(exact, set.hi) <= 0);
        worst = sinkproof_keep_worst(worst, share_of(&set, mpfr_get_d(exact, MPFR_RNDN)));
    }
    mpfr_clear(exact), mpfr_clear(a);
    ok(outside == 0,
       "bound.dot the exact sum in the set of real-f64 worst=%.3g bound=1 outside=%zu", worst,
       outside);
}

// ---- how near an engine can come to the bound --------------------------------------------------

// 1 + sum of terms 2^-24 (1 + 2^-22 ...): every addition rounds up by almost half an ulp, while A
// stays near 1. Then the same with the signs reversed, and with products that round up too.
static void adversary_comes_close(void) {
    static const size_t terms[] = {2, 3, 31, 64, 2880};
    static double x[MOST_TERMS], w[MOST_TERMS];
    static float x_f[MOST_TERMS], w_f[MOST_TERMS];
    sinkproof_policy policy = policy_named("f32");
    uint64_t state = SEED + 24;
    tally t = {0};
    double least = INFINITY;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        size_t n = terms[i];
        sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
        for (int sign = -1; sign <= 1; sign += 2) {
            for (size_t k = 0; k < n; k++) x[k] = k == 0 ? sign : sign * 0x1p-24, w[k] = 1;
            for (size_t k = 1; k < n; k++) w[k] = 1 + 0x1p-7;
            sinkproof_honest set = set_of_known(&s, x, w, n, NULL);
            to_float(n, x, x_f), to_float(n, w, w_f);
            double v = engine_dot(&state, FORWARD, false, n, x_f, w_f, NULL, false);
            meet(&t, &set, v);
            least = sinkproof_keep_least(least, share_of(&set, v));
        }
    }
    ok(t.outside == 0 && least > 0.9,
       "bound.dot each addition rounding up worst=%.4f least=%.4f bound=1 outside=%zu", t.worst,
       least, t.outside);
}

// Greedy search: each next term is the candidate whose rounding pushes furthest up, per its size.
static void greedy_adversary(bool exact_products) {
    enum { K = 64, CANDIDATES = 200, TRIES = 20 };
    static double x[K], w[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    sinkproof_format format = exact_products ? SINKPROOF_BF16 : SINKPROOF_F32;
    uint64_t state = SEED + 25;
    tally t = {0};
    for (int i = 0; i < TRIES; i++) {
        float sum = 0;
        for (size_t k = 0; k < K; k++) {
            double best = -INFINITY;
            float best_sum = 0;
            for (int c = 0; c < CANDIDATES; c++) {
                double a = sinkproof_round(format, (1 + draw_unit(&state)) * 0x1p-12);
                double b = sinkproof_round(format, (1 + draw_unit(&state)) * 0x1p-12);
                if (k == 0) a = sinkproof_round(format, 1 + 0x1p-6 * draw_unit(&state)), b = 1;
                float next = sum + (float)a * (float)b;
                double gained = (double)next - (double)sum - a * b;
                if (gained > best) best = gained, best_sum = next, x[k] = a, w[k] = b;
            }
            sum = best_sum;
        }
        sinkproof_honest set = set_of_known(&s, x, w, K, NULL);
        meet(&t, &set, sum);
    }
    inside_ok(&t, "bound.dot", exact_products ? "greedy search, exact products" : "greedy search");
}

// ---- the likely set
// ------------------------------------------------------------------------------

typedef struct likely_case {
    const char *name;
    pattern_kind pattern;
    summation order;
    bool outlier_first; // one large channel at the start: every partial sum carries it
} likely_case;

static void likely_set_holds(const likely_case *c) {
    enum { K = 2880 };
    const size_t sums = 600;
    static double x[K], w[K];
    static float x_f[K], w_f[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, sums, STANDARD_RATE);
    uint64_t state = SEED + 30;
    tally t = {0};
    double worst = 0, narrower = INFINITY;
    for (size_t i = 0; i < sums; i++) {
        fill(&state, &kinds[i % 3], c->pattern, K, x, w);
        if (c->outlier_first) x[0] = 1024, w[0] = sinkproof_round(SINKPROOF_BF16, 1 + fabs(w[0]));
        sinkproof_honest set = set_of_known(&s, x, w, K, NULL);
        to_float(K, x, x_f), to_float(K, w, w_f);
        double v = engine_dot(&state, c->order, i % 2, K, x_f, w_f, NULL, false);
        meet(&t, &set, v);
        worst = sinkproof_keep_worst(worst, fabs(v - set.mid) / likely_radius(&set));
        narrower = sinkproof_keep_least(narrower, sinkproof_radius(&set) / likely_radius(&set));
    }
    ok(t.outside == 0 && t.unlikely == 0,
       "bound.dot-likely %s worst=%.3f bound=1 unlikely=%zu of=%zu narrower=%.1f share of worst "
       "case=%.4f",
       c->name, worst, t.unlikely, sums, narrower, t.worst);
}

static void likely_sets(void) {
    static const likely_case cases[] = {
        {"gauss forward", GAUSS, FORWARD, false},
        {"gauss random tree", GAUSS, RANDOM_TREE, false},
        {"gauss 8 lanes", GAUSS, LANES_8, false},
        {"positive forward", POSITIVE, FORWARD, false},
        {"outlier anywhere", OUTLIER, FORWARD, false},
        {"outlier first", GAUSS, FORWARD, true},
        {"cancelling", CANCELLING, FORWARD, false},
        {"ascending", ASCENDING, FORWARD, false},
        {"descending", DESCENDING, FORWARD, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) likely_set_holds(&cases[i]);
}

// What the likely set presumes and a constant sequence breaks: adding one number again and again
// rounds the same way throughout a binade, so its errors add up like n, not like sqrt(n). Inside
// the worst case all the same; counted here so that the chapter can say how often.
static void likely_is_not_for_constants(void) {
    enum { K = 2880, SUMS = 400 };
    static double x[K], w[K];
    static float x_f[K], w_f[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, SUMS, STANDARD_RATE);
    uint64_t state = SEED + 31;
    tally t = {0};
    for (int i = 0; i < SUMS; i++) {
        fill(&state, &kinds[2], CONSTANT, K, x, w);
        sinkproof_honest set = set_of_known(&s, x, w, K, NULL);
        to_float(K, x, x_f), to_float(K, w, w_f);
        meet(&t, &set, engine_dot(&state, FORWARD, false, K, x_f, w_f, NULL, false));
    }
    ok(t.outside == 0,
       "bound.dot one product 2880 times worst=%.4f bound=1 outside=0; %zu of %d beyond "
       "the likely set, which presumes centred errors",
       t.worst, t.unlikely, SUMS);
}

static int compare_signed(const void *p, const void *q) {
    size_t i = *(const size_t *)p, j = *(const size_t *)q;
    double a = sort_x[i] * sort_w[i], b = sort_x[j] * sort_w[j];
    return a < b ? -1 : a > b;
}

// Negative products first: partial sums dip to half of sum |a b|, far below what a mean over all
// orders knows. Sums that add from one end leave the likely set; those over the same terms in an
// order of their own do not. A set for every order, whose partial sums reach (A + |S|) / 2 each,
// holds them all, and is so many times wider.
static void likely_is_not_for_sorted(void) {
    enum { K = 2880, SUMS = 500 };
    static double x[K], w[K], x_was[K], w_was[K];
    static float x_f[K], w_f[K];
    static size_t at[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, SUMS, STANDARD_RATE);
    uint64_t state = SEED + 32;
    tally sorted = {0}, shuffled = {0};
    size_t beyond = 0;
    double wider = INFINITY;
    for (int i = 0; i < SUMS; i++) {
        fill(&state, &kinds[1], GAUSS, K, x_was, w_was);
        sinkproof_honest set = set_of_known(&s, x_was, w_was, K, NULL);
        sort_x = x_was, sort_w = w_was;
        double total = 0;
        for (size_t k = 0; k < K; k++) at[k] = k, total += fabs(x_was[k] * w_was[k]);
        qsort(at, K, sizeof *at, compare_signed);
        for (size_t k = 0; k < K; k++) x[k] = x_was[at[k]], w[k] = w_was[at[k]];
        to_float(K, x, x_f), to_float(K, w, w_f);
        double v = engine_dot(&state, FORWARD, false, K, x_f, w_f, NULL, false);
        meet(&sorted, &set, v);
        meet(&shuffled, &set, engine_dot(&state, RANDOM_ORDER, false, K, x_f, w_f, NULL, false));
        double any = sqrt(2 * s.odds * K) * s.u * (total + fabs(set.mid)) / 2;
        beyond += !(fabs(v - set.mid) <= any);
        wider = sinkproof_keep_least(wider, any / likely_radius(&set));
    }
    ok(sorted.outside == 0 && 4 * sorted.unlikely > SUMS && shuffled.unlikely == 0 && beyond == 0,
       "bound.dot-likely sorted products, from one end: %zu of %d leave the likely set, in orders "
       "of "
       "their own worst=%zu bound=0; of a set for sorted ones, %.0f times wider or more, %zu",
       sorted.unlikely, SUMS, shuffled.unlikely, wider, beyond);
}

int main(void) {
    for (pattern_kind p = 0; p < PATTERNS; p++) every_engine_inside(p);
    rounded_to_bf16();
    operands_with_freedom();
    stored_weights();
    truth_is_inside();
    adversary_comes_close();
    greedy_adversary(true);
    greedy_adversary(false);
    likely_sets();
    likely_is_not_for_constants();
    likely_is_not_for_sorted();
    return tap_done();
}
