// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The small parts of the bounds, computed again: which operands are read as zero; which sums of
// products are exact; planes that are missing or have no rows; sizes from factors in binary32, down
// to the last digit of their margin; exponentials whose error exceeds 2^40, and what is flushed
// beside them; rows of logits that may be anything; and blocks of integers, with their variance and
// likely ends, and with a scale that may be infinite or zero. 0.01 CPU seconds.
#include "tests/shared/formulas.h"

#include "model/q8_0.h"

#include <sys/mman.h>
#include <unistd.h>

static const uint64_t SEED = 20270203;

static sinkproof_planes plane(const double *x, size_t rows, size_t cols) {
    sinkproof_honest set[64];
    for (size_t i = 0; i < rows * cols; i++) set[i] = sinkproof_exact_set(x[i]);
    sinkproof_planes p = sinkproof_planes_new(set, rows, cols, cols);
    must(p.mid != NULL);
    return p;
}

// ---- operands that are read as zero -------------------------------------------------------------

// The lean of x y and of 2 y, where y is 1, or infinite. What is read as zero is lost with all of
// its product. Of a product with infinity nothing is known.
static size_t wrongly_lost(const sinkproof_policy *policy, double u, double tiny, double v) {
    sinkproof_setting s = {.policy = policy, .u = u, .odds = 30};
    const double x[2] = {v, 2}, one = 1, infinite = INFINITY;
    sinkproof_planes p = plane(x, 2, 1), by_one = plane(&one, 1, 1), by = plane(&infinite, 1, 1);
    bool small = 0 < fabs(v) && fabs(v) < tiny;
    sinkproof_honest out[2], far[2];
    must(sinkproof_honest_products(&s, &p, &by_one, NULL, NULL, out, 1));
    must(sinkproof_honest_products(&s, &p, &by, NULL, NULL, far, 1));
    size_t wrong = !(out[0].bias == (small ? fabs(v) : 0)) + !(out[1].bias == 0);
    wrong += !(sinkproof_is_unknown(&far[1]) && far[1].bias == INFINITY);
    if (wrong > 0) note("%a: %a, %a, %a", v, out[0].bias, out[1].bias, far[1].bias);
    sinkproof_planes_free(&p), sinkproof_planes_free(&by_one), sinkproof_planes_free(&by);
    return wrong;
}

static void read_as_zero(void) {
    size_t wrong = 0, asked = 0;
    sinkproof_policy narrow = policy_named("f32"), wide = real_policy("definition");
    wide.ftz = true;
    for (int w = 0; w < 2; w++) {
        double tiny = w == 0 ? 0x1p-126 : 0x1p-1022;
        const double all[] = {0,    0x1p-1074, tiny / 2, nextafter(tiny, 0),
                              tiny, 2 * tiny,  tiny * 8, nextafter(tiny, 1)};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            for (int sign = -1; sign <= 1; sign += 2, asked++)
                wrong += wrongly_lost(w == 0 ? &narrow : &wide, w == 0 ? 0x1p-24 : 0x1p-53, tiny,
                                      sign * all[i]);
    }
    ok(wrong == 0, "bound.ftz bound.linear operands read as zero: worst=%zu bound=0 of=%zu", wrong,
       asked);
}

// ---- products that are exact --------------------------------------------------------------------

// 1 + 2^-(bits - 1), of so many significant bits.
static double with_bits(int bits) {
    return 1 + ldexp(1, 1 - bits);
}

// x y - x y: the radius is the set's end, but for what a fused sum has left of mid. A product
// rounds where its factors have more bits than the format, then the sum. Gamma is rounded up thrice
// and has 10 roundings of its own size at the most; the end has 4 more.
static void exact_products(void) {
    static const sinkproof_format formats[] = {SINKPROOF_F32, SINKPROOF_F64, SINKPROOF_REAL};
    static const int most[] = {24, 53, 53};
    distance d = {0};
    for (int f = 0; f < 3; f++)
        for (int more = -2; more <= 2; more++)
            for (int first = 9; first <= 12; first++) {
                int bits = most[f] + more;
                double a = with_bits(first), b = with_bits(bits - first);
                sinkproof_policy policy = real_policy("definition");
                policy.inside = formats[f];
                sinkproof_setting s = setting(&policy);
                sinkproof_planes x = plane((const double[]){a, a}, 1, 2),
                                 y = plane((const double[]){b, -b}, 1, 2);
                sinkproof_honest out;
                must(sinkproof_honest_products(&s, &x, &y, NULL, NULL, &out, 1));
                real sizes = 2 * (real)a * b, here = gamma_of(12, 0x1p-53L);
                real gamma = gamma_of(more > 0 ? 2 : 1, 0x1p-24L);
                real end = gamma * sizes * (1 + 2 * here) + here * sizes;
                if (f == 0) end += 2 * 0x1p-150L * (1 + gamma);
                near(&d, out.hi, out.mid + end, end, 14), near(&d, out.lo, out.mid - end, end, 14);
                sinkproof_planes_free(&x), sinkproof_planes_free(&y);
            }
    report(&d, "bound.linear", "products of as many bits as the format has", SEED);
}

static void no_planes(void) {
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    const double three[3] = {1, 2, 3};
    uint8_t bytes[8];
    memcpy(bytes, three, sizeof bytes);
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64, .count = 1, .rows = 1, .cols = 1};
    w.data = bytes, w.stack_stride = w.row_stride = w.col_stride = 1, w.name = "w";
    sinkproof_weight_rows rows = {&w, 0, 1, NULL};
    sinkproof_planes none = {0}, x = plane(three, 1, 3);
    sinkproof_planes empty = sinkproof_planes_rows(&x, 0, 0);
    sinkproof_honest out[3] = {{0}};
    size_t wrong = sinkproof_honest_products(&s, &none, &x, NULL, NULL, out, 3);
    wrong += sinkproof_honest_products(&s, &x, &none, NULL, NULL, out, 3);
    wrong += sinkproof_honest_linear(&s, &none, &rows, out, 1);
    ok(wrong == 0, "bound.linear planes that were not made leave no sums worst=%zu bound=0", wrong);
    wrong = !sinkproof_honest_products(&s, &empty, &x, NULL, NULL, out, 3);
    wrong += !sinkproof_honest_products(&s, &x, &empty, NULL, NULL, out, 3);
    wrong += out[0].hi != 0;
    ok(wrong == 0, "bound.linear planes without rows leave none worst=%zu bound=0", wrong);
    // No products but a constant, which rounds once.
    distance d = {0};
    sinkproof_planes no_x = plane(three, 1, 0), no_y = plane(three, 2, 0);
    must(sinkproof_honest_products(&s, &no_x, &no_y, NULL, three, out, 3));
    real radius = gamma_of(1, 0x1p-24L) * (1 + 2 * gamma_of(8, 0x1p-53L)) + gamma_of(8, 0x1p-53L);
    for (int o = 0; o < 2; o++) {
        real b = three[o];
        near(&d, out[o].mid, b, b, 0);
        near(&d, out[o].lo, b - b * radius, b, 3), near(&d, out[o].hi, b + b * radius, b, 3);
    }
    report(&d, "bound.linear", "no products", SEED);
    sinkproof_planes_free(&no_x), sinkproof_planes_free(&no_y);
    sinkproof_planes_free(&x);
}

// ---- sizes through factors ----------------------------------------------------------------------

enum { X_ROWS = 2, Y_ROWS = 3, LONGEST = 8 };

// Row i of x holds a_i twice, row j of y b_j and -b_j, so that the sum is 0 and the end is A here.
// Beside them each row has a 1, where the other has a 0: factors are of half the number.
typedef struct pairs {
    size_t k;
    double a_i[X_ROWS], b_j[Y_ROWS];
} pairs;

static void ends_of(const pairs *t, sinkproof_honest *out) {
    double x[X_ROWS * LONGEST] = {0}, y[Y_ROWS * LONGEST] = {0};
    size_t k = t->k;
    for (size_t i = 0; i < X_ROWS; i++) x[i * k] = x[i * k + k - 1] = t->a_i[i], x[i * k + 1] = 1;
    for (size_t j = 0; j < Y_ROWS; j++)
        y[j * k] = t->b_j[j], y[j * k + k - 1] = -t->b_j[j], y[j * k + 2] = 1;
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = {.policy = &policy, .u = 0, .odds = 30};
    sinkproof_planes p = plane(x, X_ROWS, k), q = plane(y, Y_ROWS, k);
    must(factors_allocate(X_ROWS, k, &p.f) && factors_allocate(Y_ROWS, k, &q.f));
    for (size_t i = 0; i < X_ROWS; i++) must(factors_fill_row(&p.f, i, &p.mid[i * k]));
    for (size_t j = 0; j < Y_ROWS; j++) must(factors_fill_row(&q.f, j, &q.mid[j * k]));
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, out, Y_ROWS));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
}

// a (1 - 2^-22), whose factor is a / 2: a float that a product of powers of two does not round.
// Sums of factors up to 2^-100 are made again in binary64. Here, a gamma, has 10 roundings of its
// own size at the most, what it multiplies 4.
static void factors(void) {
    distance d = {0};
    for (int e = -30; e <= -10; e++)
        for (size_t k = 4; k <= LONGEST; k++) {
            const double less = 1 - 0x1p-22;
            pairs t = {.k = k};
            sinkproof_honest out[X_ROWS * Y_ROWS];
            for (int i = 0; i < X_ROWS; i++) t.a_i[i] = ldexp(less, e - 69 + 40 * i);
            for (int j = 0; j < Y_ROWS; j++) t.b_j[j] = ldexp(less, e + 20 - j);
            ends_of(&t, out);
            for (size_t o = 0; o < X_ROWS * Y_ROWS; o++) {
                real sum = 2 * (real)t.a_i[o / Y_ROWS] * t.b_j[o % Y_ROWS];
                real found = sum / 4 / ((real)less * less), terms = (real)k;
                real grown = 1 + 2 * gamma_of(terms + 4, 0x1p-24L) + terms * 0x1p-26L;
                real sizes = found > 0x1p-100L ? 4 * found * grown
                                               : sum * (1 + gamma_of(terms + 4, 0x1p-53L));
                real end = sizes * gamma_of(2 * terms + 8, 0x1p-53L);
                near(&d, out[o].hi, end, end, 14), near(&d, -out[o].lo, end, end, 14);
            }
        }
    report(&d, "bound.linear", "sizes through factors", SEED);
}

// Powers of two: A = S (1 + gamma) is S times the double nearest 1 + gamma, which lies a little
// above (k + 4) 2^-53, so that halves of 2^-52 go up. Only A here is rounded once more.
static void factors_exactly(void) {
    size_t wrong = 0, asked = 0;
    for (size_t k = 4; k <= LONGEST; k++) {
        pairs t = {k, {0x1p-60, 0x1p-61}, {0x1p-60, 0x1p-63, 0x1p-66}};
        sinkproof_honest out[X_ROWS * Y_ROWS];
        ends_of(&t, out);
        double here = sinkproof_gamma(2 * (double)k + 8, 0x1p-53);
        for (size_t o = 0; o < X_ROWS * Y_ROWS; o++, asked++) {
            double sum = 2 * t.a_i[o / Y_ROWS] * t.b_j[o % Y_ROWS];
            double end = sum * (1 + (double)((k + 5) / 2) * 0x1p-52) * here;
            if (out[o].hi == end && out[o].lo == -end) continue;
            wrong++;
            note("k = %zu: [%a, %a], not %a", k, out[o].lo, out[o].hi, end);
        }
    }
    ok(wrong == 0, "bound.linear sizes below the factors' range: worst=%zu bound=0 of=%zu", wrong,
       asked);
}

// ---- exponentials whose error is larger than 2^40 -----------------------------------------------

enum { KEYS = 6 };

// exp errs by d + b |x|: 1 - d - 800 b = 2^-9, so that the exponent grows by half of its size.
static const double DECLARED = 111.0 / 512, GROWING = 0x1p-10, NO_U = 0x1p-80;

static sinkproof_policy exp_policy(double u, double declared, double growing) {
    sinkproof_policy policy = real_policy("definition");
    policy.ulp[SINKPROOF_EXP] = declared / (2 * u), policy.exp_growth = growing / (2 * u);
    return policy;
}

// The largest weight of an exponential that is `most` at the most, beside n - 1 keys of the
// maximum, in a sum that errs by g: the error d + 2^-50 of each of these, and the sum's evaluation.
static real largest_weight(size_t n, real declared, real most, real g) {
    real here = gamma_of(2 * (real)n + 10, 0x1p-53L);
    real others = ((real)n - 1) * (1 - declared - 0x1p-50L) * (1 - here);
    return most / (most + others) / (1 - g - 2 * here);
}

// e^t of an exponent that is off by `error`, in binary64's exp: its error is what 2^-50 is for.
static real beyond(real t, real error) {
    real reach = t + error + (fabsl(t) + error) * 0x1p-50L;
    return (real)exp((double)reach) * (1 + (real)DECLARED) * (1 + 0x1p-50L);
}

// Key n - 1 is `far` below the others at least, `t` at most, and likely. `k` roundings.
static void far_row(distance *d, size_t n, double m, double far, double t, double likely, real k) {
    sinkproof_policy policy = exp_policy(NO_U, DECLARED, GROWING);
    sinkproof_setting s = {.policy = &policy, .u = NO_U, .odds = 30};
    sinkproof_honest z[KEYS], alpha[KEYS + 1];
    for (size_t j = 0; j < n; j++) z[j] = sinkproof_exact_set(m);
    z[n - 1] = (sinkproof_honest){m - far, m + t, m - far, m + likely, m + likely, 0, 0, 0, 0};
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, n, z, sinkproof_exact_set(-INFINITY), alpha, &common));
    real growth = (real)GROWING * 512 * (1 + 0x1p-50L), off = NO_U + 0x1p-52L;
    real error = far * off + growth * fminl(far * (1 + off), 800);
    real g = gamma_of((real)n, NO_U);
    real worst = largest_weight(n, DECLARED, beyond(t, error), g);
    real probable = largest_weight(n, DECLARED, beyond(likely, error), g);
    near(d, alpha[n - 1].hi, worst, worst, k);
    near(d, alpha[n - 1].likely_hi, probable, probable, k);
    near(d, alpha[n - 1].lo, 0, worst, 0);
}

// Exponents that no step rounds: seven roundings are left, of the exponential's two factors, of
// what the others sum up to, of both together, of their quotient, of the factor that the sum
// leaves, and of their product. Else an exponent's steps round as well: about 28 six of 2^-49 each,
// 96 roundings of 2^-53, of which the margin is 672 at least; about 150 three of 2^-46 and three of
// 2^-47, 576 of 2700.
static void far_exponentials(void) {
    distance exact = {0}, about = {0};
    for (size_t n = 2; n <= KEYS; n++)
        for (int m = -2; m <= 2; m++) {
            for (int t = -64; t <= -48; t += 4) // likely below it
                far_row(&exact, n, 4 * m, 64, t, fmax(t - 4, -64), 7);
            for (int t = -56; t <= -48; t++) {
                far_row(&about, n, m, 56, t, -56, 103); // e^28 1.2 is below 2^41
                far_row(&about, n, m, 300, 4 * t, 4 * t - 1.5, 583);
            }
        }
    report(&exact, "bound.exp bound.exp-growing", "errors above 2^40, to the margin's last", SEED);
    report(&about, "bound.exp bound.exp-growing", "errors about 2^40 and far above", SEED);
}

// An exponential of -2000 is 0: what may be flushed is left, and what exp loses below 2^-1022. Two
// more of the roundings above, of the sum of both and of its second part, which is 2^-13 of the
// first at the most: what e^27 errs by is not seen in it.
static void flushed(void) {
    distance d = {0};
    size_t wrong = 0;
    for (size_t n = 2; n <= KEYS; n++)
        for (int i = 0; i < 40; i++) {
            real growth = (27 - (real)i / 64) / 800, b = growth / (1 + 800 * growth);
            sinkproof_policy policy = exp_policy(NO_U, 0, (double)b);
            sinkproof_setting s = {.policy = &policy, .u = NO_U, .odds = 30};
            sinkproof_honest z[KEYS], alpha[KEYS + 1];
            double common;
            for (size_t j = 0; j < n; j++) z[j] = sinkproof_exact_set(j == 0 ? -2000 : 0);
            must(sinkproof_honest_softmax(&s, AT_A9, n, z, sinkproof_exact_set(-INFINITY), alpha,
                                          &common));
            real most = 0x1p-1022L + 0x1p-1074L * expl(800 * growth);
            real worst = largest_weight(n, 0, most, gamma_of((real)n, NO_U));
            near(&d, alpha[0].hi, worst, worst, 12), near(&d, alpha[0].lo, 0, worst, 0);
        }
    report(&d, "bound.exp", "what is lost below the smallest number", SEED);
    // An error of d: 1 + d times the smallest number is one of it where d < 1/2, two from there on.
    for (int i = 0; i < 32; i++) {
        double declared = (double)i / 32, here = sinkproof_gamma(14, 0x1p-53), common;
        sinkproof_policy policy = exp_policy(NO_U, declared, 0);
        sinkproof_setting s = {.policy = &policy, .u = NO_U, .odds = 30};
        sinkproof_honest z[2] = {sinkproof_exact_set(-2000), sinkproof_exact_set(0)}, alpha[3];
        must(sinkproof_honest_softmax(&s, AT_A9, 2, z, sinkproof_exact_set(-INFINITY), alpha,
                                      &common));
        double most = 0x1p-1022 + (i < 16 ? 1 : 2) * 0x1p-1074;
        double others = (1 - (declared + 0x1p-50)) * (1 - here);
        double end = most / (most + others) * (1 / (1 - 2 * here));
        if (alpha[0].hi == end) continue;
        wrong++;
        note("%g: %a, not %a", declared, alpha[0].hi, end);
    }
    ok(wrong == 0, "bound.exp the smallest numbers that are lost: worst=%zu bound=0", wrong);
}

// ---- rows of logits that may be anything --------------------------------------------------------

enum { LONG = 1024 };

// The largest weight where each logit is within 256 of 0.
static double anything(const sinkproof_policy *policy, double u, size_t n) {
    static sinkproof_honest z[LONG], alpha[LONG + 1];
    sinkproof_setting s = {.policy = policy, .u = u, .odds = 30};
    double common;
    for (size_t j = 0; j < n; j++) z[j] = sinkproof_set_around(0, 256, 256, 0, 0);
    must(sinkproof_honest_softmax(&s, AT_A9, n, z, sinkproof_exact_set(-INFINITY), alpha, &common));
    return alpha[0].lo == 0 && alpha[n].hi == alpha[0].hi ? alpha[0].hi : (double)NAN;
}

static void whatever(void) {
    sinkproof_policy policy = real_policy("lse-subtracted");
    for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) policy.ulp[f] = 0;
    // An exponent off by 1.02, and a sum that errs by more than itself.
    double both = anything(&policy, 0x1p-10, 600);
    // One off by less, and a sum that errs by itself exactly: 1 - gamma = 0.
    double u = 0x1p-11;
    for (int i = 0; i < 64 && sinkproof_gamma(LONG, u) != 1; i++) u = nextafter(u, 0);
    bool found = sinkproof_gamma(LONG, u) == 1;
    double sum = anything(&policy, u, LONG);
    ok(both == DBL_MAX && found && sum == DBL_MAX,
       "bound.form-lse bound.softmax-sink no bound is left: %g and %g, gamma %a", both, sum,
       sinkproof_gamma(LONG, u));
    // A quotient of exponentials that bfloat16 rounds is larger than e^(z - LSE) may be.
    policy.forms[SINKPROOF_FORM_OF_A9] |= 1u << SINKPROOF_FORM_DEFINITION;
    policy.at[AT_A9_UNNORM] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false};
    distance d = {0};
    near(&d, anything(&policy, 0x1p-53, 4), (1 + 0x1p-52L) * (1 + 0x1p-8L), 1, 4);
    report(&d, "bound.form-lse bound.softmax-sink", "rounded exponentials without bounds", SEED);
}

// Nothing is read behind the last logit: the next page is no memory.
static void last_logit(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 3;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pages != MAP_FAILED);
    must(mprotect(pages + page, page, PROT_NONE) == 0);
    sinkproof_honest *z = (sinkproof_honest *)(void *)(pages + page) - n, alpha[4];
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    double common;
    for (size_t j = 0; j < n; j++) z[j] = sinkproof_exact_set(0);
    must(sinkproof_honest_softmax(&s, AT_A9, n, z, sinkproof_exact_set(0), alpha, &common));
    ok(alpha[0].mid == 0.25 && alpha[n].mid == 0.25,
       "bound.softmax-sink the last of %zu logits worst=%g bound=0", n, alpha[n].mid - 0.25);
    munmap(pages, 2 * page);
}

// ---- blocks of whole numbers --------------------------------------------------------------------

static sinkproof_planes block_of(const sinkproof_honest *x_c, size_t n) {
    static uint8_t codes[SINKPROOF_Q8_0_BLOCK / 2], scales[1];
    sinkproof_policy policy = policy_named("f32,M5.in=q8_0");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_MXFP4, .count = 1, .rows = 1, .cols = n};
    w.data = codes, w.scales = scales, w.stack_stride = w.row_stride = n, w.col_stride = 1;
    w.name = "w";
    sinkproof_planes p = sinkproof_operand_planes(&s, AT_M5_IN, &w, x_c, 1);
    must(p.mid != NULL);
    return p;
}

static double drawn(uint64_t *state) { // a multiple of 1/8, no half
    size_t i = draw_below(state, 1500);
    return ((double)(i % 8 == 4 ? i + 1 : i) - 752) / 8;
}

// Beside 127 the scale is 1: a set's ends are the whole numbers nearest to its own.
static void whole_numbers(void) {
    enum { BLOCK = SINKPROOF_Q8_0_BLOCK };
    uint64_t state = SEED;
    size_t wrong = 0, below = 0, above = 0;
    for (int i = 0; i < 100; i++) {
        sinkproof_honest x[BLOCK];
        for (size_t c = 0; c < BLOCK; c++) {
            double a = drawn(&state), b = drawn(&state), mid = drawn(&state);
            double lo = fmin(fmin(a, b), mid), hi = fmax(fmax(a, b), mid);
            x[c] = (sinkproof_honest){lo, hi, mid, mid, mid, 0, 0, 0, 0};
        }
        x[0] = sinkproof_exact_set(127);
        sinkproof_planes p = block_of(x, BLOCK);
        wrong += p.known;
        for (size_t c = 0; c < BLOCK && !p.known; c++) {
            double lo = rint(x[c].lo), hi = rint(x[c].hi), mid = rint(x[c].mid), width = hi - lo;
            double radius = fmax(hi - mid, mid - lo);
            below += lo + hi<2 * mid, above += lo + hi> 2 * mid;
            wrong += !(p.mid[c] == mid && p.worst[c] == radius && p.likely[c] == radius &&
                       p.var[c] == width * width / 4 && p.bias[c] == width);
        }
        sinkproof_planes_free(&p);
    }
    ok(wrong == 0 && below > 0 && above > 0,
       "bound.q8 bound.operands blocks of scale 1: worst=%zu bound=0 seed=%llu", wrong,
       (unsigned long long)SEED);
}

// A scale beyond 65504, or one that may be: nothing is known of the block.
static void infinite_scales(void) {
    size_t wrong = 0;
    for (int i = 0; i < 2; i++) {
        sinkproof_honest x[3] = {sinkproof_exact_set(127 * 70000.0), sinkproof_exact_set(-3),
                                 sinkproof_exact_set(0)};
        if (i == 1) x[0] = sinkproof_set_around(127 * 65000.0, 127 * 5000.0, 127, 1, 1);
        sinkproof_planes p = block_of(x, 3);
        wrong += p.known;
        for (size_t c = 0; c < 3 && !p.known; c++)
            wrong += !(p.mid[c] == 0 && p.worst[c] == INFINITY && p.likely[c] == INFINITY &&
                       p.var[c] == INFINITY && p.bias[c] == INFINITY);
        sinkproof_planes_free(&p);
    }
    ok(wrong == 0, "bound.q8 bound.operands blocks with an infinite scale: worst=%zu bound=0",
       wrong);
}

// Each set of the block holds zero, of either sign: the largest may be as small as any number, and
// any number of its sign the largest. Beside 127 the scale is 1 at the most.
static void sets_of_zero(void) {
    const struct {
        double lo, hi, mid, least, most;
    } all[] = {{-0.0, 127, 127, 0, 127}, {-3, 2, 1, -127, 127}, {-127, -0.0, -2, -127, 0},
               {0, 0, 0, 0, 0},          {0, 5, 3, 0, 127},     {-2, -0.0, -1, -127, 0}};
    enum { CASES = sizeof all / sizeof *all };
    sinkproof_honest x[CASES];
    size_t wrong = 0;
    for (size_t first = 0; first < CASES; first++) { // each of them comes first
        for (size_t c = 0; c < CASES; c++) {
            size_t i = (first + c) % CASES;
            double lo = all[i].lo, hi = all[i].hi;
            x[c] = (sinkproof_honest){lo, hi, lo, hi, all[i].mid, 0, 0, 0, 0};
        }
        sinkproof_planes p = block_of(x, CASES);
        wrong += p.known;
        for (size_t c = 0; c < CASES && !p.known; c++) {
            size_t i = (first + c) % CASES;
            double width = all[i].most - all[i].least, mid = all[i].mid;
            double radius = fmax(all[i].most - mid, mid - all[i].least);
            wrong += !(p.mid[c] == mid && p.worst[c] == radius && p.likely[c] == radius &&
                       p.var[c] == width * width / 4 && p.bias[c] == width);
        }
        sinkproof_planes_free(&p);
    }
    ok(wrong == 0, "bound.q8 bound.operands blocks of sets that hold zero: worst=%zu bound=0",
       wrong);
}

int main(void) {
    read_as_zero();
    exact_products();
    no_planes();
    factors();
    factors_exactly();
    far_exponentials();
    flushed();
    whatever();
    last_logit();
    whole_numbers();
    infinite_scales();
    sets_of_zero();
    return tap_done();
}
