// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of the exact statements on number formats, each side against bits and integers computed
// here; the terms that are drawn; the four terms of scores; and the arithmetic of rationals, rows
// and matrices, which refuses sizes that do not match. 0.1 CPU seconds.
#include "proofs/exact/attention.h"
#include "tests/shared/tap.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t SEED = 20261127;

// Statement `which` of an id, or the first wrong form of it.
static const sinkproof_exact_statement *found(const char *id, int which, bool holds) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0;
         (s = holds ? sinkproof_exact_statement_at(k) : sinkproof_exact_wrong_form_at(k)) != NULL;
         k++)
        if (strcmp(s->id, id) == 0 && which-- == 0) return s;
    printf("Bail out! no statement %s\n", id);
    exit(1);
}
static const sinkproof_exact_statement *statement(const char *id, int which) {
    return found(id, which, true);
}
static const sinkproof_exact_statement *wrong_form(const char *id) {
    return found(id, 0, false);
}

// Entry k of a row is the binary64 number x.
static bool is(row a, size_t k, double x) {
    mpq_t q;
    mpq_init(q);
    mpq_set_d(q, x);
    bool equal = k < a.n && mpq_equal(a.at[k], q);
    mpq_clear(q);
    return equal;
}

// Entries 2k and 2k + 1: a number and 0, or 0 and what kind of infinity it is, 2 for NaN.
static bool is_number(row a, size_t k, double x) {
    double kind = isnan(x) ? 2 : isinf(x) ? copysign(1, x) : 0;
    return is(a, 2 * k, kind != 0 ? 0 : x) && is(a, 2 * k + 1, kind);
}

// ---- formats ------------------------------------------------------------------------------------

static double f16(unsigned bits) {
    int e = bits >> 10 & 31, f = bits & 1023;
    double x = e == 0 ? ldexp(f, -24) : ldexp(1024 + f, e - 25);
    if (e == 31) x = f == 0 ? INFINITY : NAN;
    return bits >> 15 ? -x : x;
}

static void halves(void) {
    const sinkproof_exact_statement *s = statement("f16.decode", 0);
    size_t wrong = 0, asked = 0;
    for (uint64_t bits = 0; bits < s->codes; bits++) {
        if (bits % 1024 > 3 && bits % 1024 < 1020 && bits % 43 != 0) continue;
        asked++;
        instance m = {.number = bits};
        row left = s->left(&m), right = s->right(&m);
        wrong += left.n != 2 || right.n != 2 || !is_number(left, 0, f16((unsigned)bits)) ||
                 !is_number(right, 0, f16((unsigned)bits));
        q_forget();
    }
    ok(wrong == 0 && asked > 1000, "f16.decode both sides of %zu codes: worst=%zu bound=0", asked,
       wrong);
}

static double e2m1(unsigned code, unsigned scale) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (scale == 255) return NAN;
    return ldexp(code & 8 ? -magnitude[code & 7] : magnitude[code & 7], (int)scale - 127);
}

static void nibbles(void) {
    const sinkproof_exact_statement *s = statement("mxfp4.decode", 0);
    size_t wrong = 0;
    for (uint64_t number = 0; number < s->codes; number++) {
        instance m = {.number = number};
        unsigned code = (unsigned)number % 16, scale = (unsigned)number / 16;
        row sides[2] = {s->left(&m), s->right(&m)};
        for (size_t k = 0; k < 2; k++)
            wrong += sides[k].n != 6 || !is_number(sides[k], 0, e2m1(code, scale)) ||
                     !is_number(sides[k], 1, e2m1(code, scale)) ||
                     !is_number(sides[k], 2, e2m1(15 - code, scale));
        q_forget();
    }
    ok(wrong == 0, "mxfp4.decode mxfp4.exact both sides of %zu codes: worst=%zu bound=0", s->codes,
       wrong);
}

// Code t: the bf16 t / 6, and below it 0, 1, the middle less one, the middle, one more, all.
static void roundings(void) {
    static const uint32_t below[6] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    const sinkproof_exact_statement *s = statement("bf16.round", 0);
    size_t wrong = 0, asked = 0;
    for (uint64_t number = 0; number < s->codes; number += number % 1536 < 24 ? 1 : 77, asked++) {
        instance m = {.number = number};
        uint32_t image = (uint32_t)(number / 6) * 65536 + below[number % 6];
        bool none = (image & 0x7fffffff) > 0x7f800000;
        uint32_t upper = (image + 0x7fff + (image >> 16 & 1)) >> 16 << 16; // the even one in a tie
        float x;
        memcpy(&x, &upper, sizeof x);
        row left = s->left(&m), right = s->right(&m);
        double stated = none ? NAN : (double)x;
        wrong += left.n != 2 || right.n != 2 || !is_number(left, 0, stated) ||
                 !is_number(right, 0, stated);
        q_forget();
    }
    ok(wrong == 0 && asked > 5000, "bf16.round both sides of %zu floats: worst=%zu bound=0", asked,
       wrong);
}

// ---- drawn terms --------------------------------------------------------------------------------

enum { TERMS = 24 };
typedef struct drawn {
    int a, a_by, b, b_by; // a 2^a_by and b 2^-b_by
} drawn;

static void draw_terms(uint64_t number, int spread, drawn t_k[TERMS]) {
    uint64_t z = 1 + number * UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t k = 0; k < TERMS; k++) {
        z = k + UINT64_C(0x94d049bb133111eb) * (z ^ z >> 27);
        t_k[k] = (drawn){(int)(z / (UINT64_C(1) << 56)) - 128, (int)(z / 1048576 % 64) % spread,
                         (int)(z / (UINT64_C(1) << 48) % 256) - 128,
                         (int)(z / 1073741824 % 64) % spread};
    }
}

static double term(drawn t) {
    return ldexp(t.a * t.b, t.a_by - t.b_by);
}

static void sums(void) {
    const sinkproof_exact_statement *s = statement("bound.dot-exact", 0);
    const sinkproof_exact_statement *without = wrong_form("bound.dot-exact");
    size_t exact = 0, apart = 0, differ = 0;
    for (uint64_t number = 0; number < 200; number++) {
        instance m = {.number = number};
        drawn t_k[TERMS];
        draw_terms(number, 8, t_k);
        int64_t sum = 0; // in units of 2^-8
        for (size_t k = 0; k < TERMS; k++)
            sum += (int64_t)t_k[k].a * t_k[k].b * (1 << (8 + t_k[k].a_by - t_k[k].b_by));
        double whole = (double)sum / 256;
        row left = s->left(&m), right = s->right(&m);
        exact += left.n != 4 || right.n != 4;
        for (size_t k = 0; k < 2; k++)
            exact += !is_number(left, k, whole) || !is_number(right, k, whole);
        draw_terms(number, 60, t_k);
        double up = 0, down = 0;
        for (size_t k = 0; k < TERMS; k++) {
            up += term(t_k[k]);
            down = term(t_k[TERMS - 1 - k]) + down; // the product is exact, as in an FMA
        }
        row ascending = without->left(&m), descending = without->right(&m);
        apart += ascending.n != 2 || !is_number(ascending, 0, up);
        apart += descending.n != 2 || !is_number(descending, 0, down);
        differ += up != down;
        q_forget();
    }
    ok(exact == 0, "bound.dot-exact the drawn sums in whole numbers: worst=%zu bound=0", exact);
    ok(apart == 0 && differ > 0,
       "bound.dot-exact without the certificate, %zu sums that differ: worst=%zu bound=0", differ,
       apart);
}

// ---- arithmetic ---------------------------------------------------------------------------------

static row row_of(size_t n, const long *x) {
    row r = row_zero(n);
    for (size_t k = 0; k < n; k++) r.at[k] = q_int(x[k]);
    return r;
}

static bool has(row r, size_t n, const long *x) {
    size_t equal = 0;
    for (size_t k = 0; k < n && k < r.n; k++) equal += mpq_cmp_si(r.at[k], x[k], 1) == 0;
    return r.n == n && equal == n;
}

static void arithmetic(void) {
    static const long x[3] = {1, -2, 3}, y[3] = {10, 20, 40},
                      w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    row a = row_of(3, x), b = row_of(3, y);
    ok(mpq_cmp_si(q_frac(-6, 8), -3, 4) == 0 && mpz_cmp_si(mpq_denref(q_frac(-6, 8)), 4) == 0 &&
           mpq_cmp_si(q_frac(5, 1), 5, 1) == 0,
       "mxfp4.decode fractions in lowest terms");
    bool powers = true;
    for (long k = -5; k < 6; k++) {
        rational p = q_power(q_frac(3, 2), k);
        long above = 1, below = 1;
        for (long i = 0; i < labs(k); i++) above *= 3, below *= 2;
        powers = powers && (k < 0 ? mpq_cmp_ui(p, (unsigned long)below, (unsigned long)above)
                                  : mpq_cmp_ui(p, (unsigned long)above, (unsigned long)below)) == 0;
    }
    ok(powers, "mxfp4.decode powers of either sign");
    matrix m = {4, 3, row_of(12, w).at};
    ok(has(row_add(a, b), 3, (const long[]){11, 18, 43}) &&
           has(row_join(a, b), 6, (const long[]){1, -2, 3, 10, 20, 40}) &&
           has(row_join(row_zero(0), b), 3, y) && mpq_cmp_si(row_dot(a, b), 90, 1) == 0,
       "law.gqa-repeat gpt2.expand moe.sum rows added, joined, multiplied");
    ok(has(row_slice(row_join(a, b), 2, 3), 3, (const long[]){3, 10, 20}) &&
           has(row_slice(a, 0, 3), 3, x) && has(row_slice(a, 3, 0), 0, x) &&
           has(row_slice(a, 1, 2), 2, (const long[]){-2, 3}),
       "sink.concat-slice sink.zero-pad parts of rows");
    matrix block = matrix_block(m, 1, 3), none = matrix_block(m, 4, 0);
    ok(block.rows == 3 && block.cols == 3 && none.rows == 0 &&
           has(row_times(a, block), 3, (const long[]){4 - 14 + 30, 5 - 16 + 33, 6 - 18 + 36}),
       "moe.sum parts of matrices, and x W");
    q_forget();
}

// A part that is more than there is: the first and the count.
typedef struct part {
    size_t first, count;
} part;
static void add_others(part p) {
    (void)p;
    row_add(row_of(1, (const long[]){1}), row_of(2, (const long[]){1, 2}));
}
static void dot_others(part p) {
    (void)p;
    row_dot(row_of(1, (const long[]){1}), row_of(2, (const long[]){1, 2}));
}
static void times_others(part p) {
    (void)p;
    row_times(row_of(1, (const long[]){1}), matrix_zero(2, 2));
}
static void slice_beyond(part p) {
    row_slice(row_of(4, (const long[]){1, 2, 3, 4}), p.first, p.count);
}
static void block_beyond(part p) {
    matrix_block(matrix_zero(4, 2), p.first, p.count);
}

// Whether a child of this process aborts.
static bool aborts(void (*mistake)(part), part p) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        mistake(p);
        _exit(0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

static void sizes(void) {
    ok(aborts(add_others, (part){0, 0}) && aborts(dot_others, (part){0, 0}) &&
           aborts(times_others, (part){0, 0}),
       "law.gqa-repeat gpt2.expand moe.sum rows of other lengths end the program");
    static const part beyond[] = {{5, 0}, {0, 5}, {2, 3}, {3, 2}, {5, 5}, {1, SIZE_MAX}};
    size_t wrong = 0;
    for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++)
        wrong += !aborts(slice_beyond, beyond[k]) + !aborts(block_beyond, beyond[k]);
    for (size_t first = 0; first < 5; first++)
        for (size_t count = 0; first + count < 5; count++) {
            part within = {first, count};
            wrong += aborts(slice_beyond, within) + aborts(block_beyond, within);
        }
    ok(wrong == 0,
       "sink.concat-slice sink.zero-pad moe.sum parts that are beyond end the program: worst=%zu "
       "bound=0",
       wrong);
}

// ---- scores and weights
// --------------------------------------------------------------------------

enum { INSTANCES = 40 };

// Coordinate d of b_Q of head h: (h + 1) v* + e^G.
static rational bias_of(const instance *m, size_t h, size_t d) {
    rational times = q_mul(q_int((long)h + 1), m->u_star.at[d]);
    return q_add(times, m->gate.at[d]);
}

// x_j W_K of head h at d.
static rational key_of(const instance *m, size_t h, size_t j, size_t d) {
    const matrix *w = &m->wv[h * m->kv_heads / m->heads];
    rational sum = q_int(0);
    for (size_t c = 0; c < m->hidden; c++)
        sum = q_add(sum, q_mul(m->x.at[j * m->hidden + c], w->at[c * m->head_dim + d]));
    return sum;
}

// (x_i W_Q + b_Q) (x_j W_K + b_K), head 0.
static rational product_of(const instance *m, size_t j) {
    rational all = q_int(0);
    for (size_t d = 0; d < m->head_dim; d++) {
        rational q = bias_of(m, 0, d);
        for (size_t c = 0; c < m->hidden; c++)
            q = q_add(q, q_mul(m->x.at[m->query * m->hidden + c], m->wo.at[d * m->hidden + c]));
        all = q_add(all, q_mul(q, q_add(key_of(m, 0, j, d), m->bv[0].at[d])));
    }
    return all;
}

// Delta of all heads, and coordinate c of gamma.
static rational delta_of(const instance *m, size_t j) {
    rational all = q_int(0);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t d = 0; d < m->head_dim; d++)
            all = q_add(all, q_mul(bias_of(m, h, d), key_of(m, h, j, d)));
    return all;
}
static rational gamma_of(const instance *m, size_t c) {
    rational all = q_int(0);
    for (size_t h = 0; h < m->heads; h++)
        for (size_t d = 0; d < m->head_dim; d++) {
            const matrix *w = &m->wv[h * m->kv_heads / m->heads];
            all = q_add(all, q_mul(bias_of(m, h, d), w->at[c * m->head_dim + d]));
        }
    return all;
}

// The score of the whole numbers: (q + k*) (k_j + b_K), or q (k_j + b_K) without b_Q.
static long score_of(const instance *m, size_t j, bool biased) {
    long sum = 0;
    for (size_t d = 0; d < m->qk_dim; d++) {
        long key = m->k[j][d] + m->k[m->order[0]][m->qk_dim - 1 - d];
        sum += (m->q[d] + (biased ? m->k_star[d] : 0)) * key;
    }
    return sum;
}

// Of the keys seen, then of the sink.
static size_t apart_from_weights(const instance *m, row side, bool biased, rational e_b) {
    size_t at = 0, apart = 0;
    rational all = e_b;
    for (size_t j = 0; j < m->tokens; j++)
        if (m->sees[j]) all = q_add(all, q_power(m->base, score_of(m, j, biased)));
    for (size_t j = 0; j < m->tokens; j++)
        if (m->sees[j])
            apart +=
                at >= side.n ||
                !mpq_equal(side.at[at++], q_div(q_power(m->base, score_of(m, j, biased)), all));
    return apart + (side.n != at + 1 || !mpq_equal(side.at[at], q_div(e_b, all)));
}

static void terms(void) {
    size_t products = 0, heads = 0, all = 0, without = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        instance m = exact_draw(SINKPROOF_EXACT_LAYER, SEED, number);
        const sinkproof_exact_statement *expand = statement("gpt2.expand", 0);
        const sinkproof_exact_statement *unsplit = statement("gpt2.unsplit", 0);
        row sides[2] = {expand->left(&m), expand->right(&m)};
        row unsplit_sides[2] = {unsplit->left(&m), unsplit->right(&m)};
        for (size_t k = 0; k < 2; k++) {
            products += sides[k].n != m.tokens;
            heads += unsplit_sides[k].n != m.tokens + m.hidden;
            for (size_t j = 0; j < m.tokens; j++) {
                products += !mpq_equal(sides[k].at[j], product_of(&m, j));
                heads += !mpq_equal(unsplit_sides[k].at[j], delta_of(&m, j));
            }
            for (size_t c = 0; c < m.hidden; c++)
                heads += !mpq_equal(unsplit_sides[k].at[m.tokens + c], gamma_of(&m, c));
        }
        instance n = exact_draw(SINKPROOF_EXACT_QK, SEED, number);
        const sinkproof_exact_statement *sink = statement("terms.sink", 0);
        const sinkproof_exact_statement *zeroed = statement("terms.zeroed", 1);
        all += apart_from_weights(&n, sink->left(&n), true, n.e_sink.at[0]);
        all += apart_from_weights(&n, sink->right(&n), true, n.e_sink.at[0]);
        without += apart_from_weights(&n, zeroed->left(&n), false, n.e_sink.at[0]);
        without += apart_from_weights(&n, zeroed->right(&n), false, n.e_sink.at[0]);
        q_forget();
    }
    ok(products == 0, "gpt2.expand both sides as products: worst=%zu bound=0", products);
    ok(heads == 0, "gpt2.unsplit both sides over heads: worst=%zu bound=0", heads);
    ok(all == 0, "terms.sink both sides from whole numbers: worst=%zu bound=0", all);
    ok(without == 0, "terms.zeroed both sides from whole numbers: worst=%zu bound=0", without);
}

// Weights as long as the row that is seen; the literal 1 beside the largest exponential subtracted.
static void weights(void) {
    const sinkproof_exact_statement *stable = statement("sink.stable", 0);
    const sinkproof_exact_statement *limit = statement("sink.limit", 0);
    const sinkproof_exact_statement *softmax_1 = statement("sink.softmax1", 0);
    const sinkproof_exact_statement *literal = wrong_form("sink.stable");
    size_t apart = 0, one = 0, changed = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        instance m = exact_draw(SINKPROOF_EXACT_ROW, SEED, number);
        rational e_sink[EXACT_HEADS], sum = q_int(0), most = q_int(0);
        for (size_t h = 0; h < m.heads; h++) e_sink[h] = m.e_sink.at[h];
        size_t seen = 0;
        for (size_t j = 0; j < m.tokens; j++) {
            if (!m.sees[j]) continue;
            sum = q_add(sum, m.e.at[j]), most = q_max(most, m.e.at[j]), seen++;
        }
        row sides[6] = {stable->left(&m), stable->right(&m),   limit->left(&m),
                        limit->right(&m), softmax_1->left(&m), softmax_1->right(&m)};
        row unshifted = literal->left(&m);
        rational beside[3] = {e_sink[0], q_int(0), q_int(1)};
        size_t at = 0;
        one += unshifted.n != seen;
        for (size_t k = 0; k < 6; k++) apart += sides[k].n != seen + (k < 4);
        for (size_t j = 0; j < m.tokens && apart + one == 0; j++) {
            if (!m.sees[j]) continue;
            for (size_t k = 0; k < 6; k++)
                apart += !mpq_equal(sides[k].at[at], q_div(m.e.at[j], q_add(sum, beside[k / 2])));
            one += !mpq_equal(unshifted.at[at++], q_div(m.e.at[j], q_add(sum, most)));
        }
        for (size_t h = 0; h < m.heads; h++) changed += !mpq_equal(m.e_sink.at[h], e_sink[h]);
        q_forget();
    }
    ok(apart == 0, "sink.stable sink.limit sink.softmax1 the keys' weights: worst=%zu bound=0",
       apart);
    ok(one == 0, "sink.stable the literal 1 kept: worst=%zu bound=0", one);
    ok(changed == 0, "sink.limit sink.softmax1 an instance keeps its sinks: worst=%zu bound=0",
       changed);
}

int main(void) {
    halves();
    nibbles();
    roundings();
    sums();
    arithmetic();
    sizes();
    terms();
    weights();
    return tap_done();
}
