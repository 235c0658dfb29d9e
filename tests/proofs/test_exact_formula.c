// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exact statements whose two sides share a part: each side against its own formula, in rationals. A
// side must leave the instance unchanged.
#include "proofs/exact/attention.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static const uint64_t SEED = 20261126;
enum { INSTANCES = 48 };

static const sinkproof_exact_statement *statement_of(const char *id, int which) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0; (s = sinkproof_exact_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0 && which-- == 0) return s;
    return NULL;
}

static bool same(row a, row b) {
    return a.n == b.n && row_equal(a, b);
}

typedef row (*formula)(const instance *m);

// Both sides of statement `which` of an id (from 0) against one formula.
static void both_sides(const char *id, int which, formula stated) {
    const sinkproof_exact_statement *s = statement_of(id, which);
    size_t left = 0, right = 0;
    for (uint64_t number = 0; s != NULL && number < INSTANCES; number++) {
        instance m = exact_draw(s->kind, SEED, number);
        row own = stated(&m);
        left += same(s->left(&m), own);
        right += same(s->right(&m), own);
        q_forget();
    }
    ok(left == INSTANCES && right == INSTANCES,
       "%s %d: both sides as stated left=%zu right=%zu of %d seed=%llu", id, which, left, right,
       INSTANCES, (unsigned long long)SEED);
}

// ---- rotations ----------------------------------------------------------------------------------

typedef struct point { // of the plane, as a complex number
    rational x, y;
} point;

static point product(point a, point b) {
    return (point){q_sub(q_mul(a.x, b.x), q_mul(a.y, b.y)),
                   q_add(q_mul(a.x, b.y), q_mul(a.y, b.x))};
}

// The unit of pair d, (1 + t i)^2 / (1 + t^2), to the power n.
static point turn(const instance *m, size_t d, long n) {
    rational t = d == 0 ? m->base : q_neg(m->shift);
    point one = {q_int(1), n < 0 ? q_neg(t) : t}, unit = product(one, one);
    rational length = q_add(q_int(1), q_mul(t, t));
    point all = {q_int(1), q_int(0)};
    for (long k = 0; k != n; k += n < 0 ? -1 : 1) {
        all = product(all, unit);
        all.x = q_div(all.x, length), all.y = q_div(all.y, length);
    }
    return all;
}

// c^2 sum_d Re(q_d conj(k_d) u_d^(i - j)), and c^2 |q|^2
static row rotated(const instance *m) {
    rational sum = q_int(0), length = q_int(0), c2 = q_mul(m->shift, m->shift);
    for (size_t d = 0; d < 2; d++) {
        point q = {q_int(m->q[d]), q_int(m->q[d + 2])};
        point k = {q_int(m->k[0][d]), q_int(-m->k[0][d + 2])};
        point all = product(product(q, k), turn(m, d, (long)m->query - (long)m->order[0]));
        sum = q_add(sum, all.x);
        length = q_add(length, q_add(q_mul(q.x, q.x), q_mul(q.y, q.y)));
    }
    return row_join(row_one(q_mul(c2, sum)), row_one(q_mul(c2, length)));
}

// ---- one token in every row ---------------------------------------------------------------------

// Row i of the layer with sinks: x + b^O + sum_h mass_h (x W^V_h + b^V_h) W^O_h, x the first token.
// Key j <= i counts if j = i or the instance sees it, with e_(j + i) e^(t (i - j)).
static row equal_tokens_with_sinks(const instance *m) {
    row all = row_zero(0);
    for (size_t i = 0; i < m->tokens; i++) {
        row next = row_add(x_of(m, 0), m->bo);
        for (size_t h = 0; h < m->heads; h++) {
            rational keys = q_int(0);
            for (size_t j = 0; j <= i; j++) {
                if (j < i && !m->sees[j]) continue;
                rational e = m->e.at[h * m->tokens + (i + j) % m->tokens];
                keys = q_add(keys, q_mul(e, q_power(m->shift, (long)(i - j))));
            }
            rational mass = q_div(keys, q_add(keys, m->e_sink.at[h]));
            row v = row_add(row_times(x_of(m, 0), w_value(m, h)), b_value(m, h));
            next = row_add(next, row_times(row_scale(mass, v), w_output(m, h)));
        }
        all = row_join(all, next);
    }
    return all;
}

// ---- a layer, and a mixture ---------------------------------------------------------------------

// b^O + sum_h sum_j (e_jh / Z_h) (x_j W^V_g + b^V_g) W^O_h, Z_h over the keys that are seen and the
// sink, g = h / (H / G).
static row whole_layer(const instance *m) {
    row all = m->bo;
    for (size_t h = 0; h < m->heads; h++) {
        size_t g = h / (m->heads / m->kv_heads);
        matrix w_o = {m->head_dim, m->wo.cols, m->wo.at + h * m->head_dim * m->wo.cols};
        rational z = m->e_sink.at[h];
        for (size_t j = 0; j < m->tokens; j++)
            if (m->sees[j]) z = q_add(z, m->e.at[h * m->tokens + j]);
        for (size_t j = 0; j < m->tokens; j++) {
            if (!m->sees[j]) continue;
            row v = row_times((row){m->x.cols, m->x.at + j * m->x.cols}, m->wv[g]);
            rational a = q_div(m->e.at[h * m->tokens + j], z);
            all = row_add(all, row_times(row_scale(a, row_add(v, m->bv[g])), w_o));
        }
    }
    return all;
}

// sum_k e_k / (e_1 + ... + e_K) (z_k W2_k + b2_k) over the K largest, written out by entries: row
// k f + i of W2 belongs to entry i of z_k. Of equal ones the lower index is chosen.
static row mixed(const instance *m) {
    size_t f = m->down_x.cols, c = m->w2.cols;
    rational large[EXACT_EXPERTS], z = q_int(0);
    for (size_t e = 0; e < m->experts; e++) {
        size_t before = 0;
        for (size_t o = 0; o < m->experts; o++) {
            int order = mpq_cmp(m->e_router.at[o], m->e_router.at[e]);
            before += order > 0 || (order == 0 && o < e);
        }
        if (before < m->chosen) large[before] = m->e_router.at[e];
    }
    for (size_t k = 0; k < m->chosen; k++) z = q_add(z, large[k]);
    row all = row_zero(c);
    for (size_t k = 0; k < m->chosen; k++)
        for (size_t o = 0; o < c; o++) {
            rational y = m->b2.at[k * c + o];
            for (size_t i = 0; i < f; i++)
                y = q_add(y, q_mul(m->down_x.at[k * f + i], m->w2.at[(k * f + i) * c + o]));
            all.at[o] = q_add(all.at[o], q_mul(q_div(large[k], z), y));
        }
    return all;
}

// ---- a scaled normaliser ------------------------------------------------------------------------

// a / Z (sum_j e_j x_j) W^V W^O of head 0, twice
static row scaled_head(const instance *m) {
    row x = row_zero(m->hidden);
    rational z = q_int(0);
    for (size_t j = 0; j < m->tokens; j++) {
        if (!m->sees[j]) continue;
        z = q_add(z, m->e.at[j]);
        x = row_add(x, row_scale(m->e.at[j], x_of(m, j)));
    }
    row y = row_times(row_times(row_scale(q_div(m->shift, z), x), m->wv[0]), w_output(m, 0));
    return row_join(y, y);
}

// ---- twelve layers ------------------------------------------------------------------------------

// The mass of two keys beside the sink; 1 in the layers 0, 5 and 11.
static row twelve_masses(const instance *m) {
    row all = row_zero(12);
    for (size_t layer = 0; layer < 12; layer++) {
        rational keys = q_int(0);
        long sink = 0;
        for (size_t j = m->query > 0 ? m->query - 1 : 0; j <= m->query; j++) {
            long s = 0;
            for (size_t d = 0; d < m->qk_dim; d++) s += m->q[d] * m->k[j][d];
            keys = q_add(keys, q_power(m->base, s));
        }
        for (size_t d = 0; d < m->qk_dim; d++) sink += m->q[d] * m->k_star[d];
        bool full = layer == 0 || layer == 5 || layer == 11;
        all.at[layer] = full ? q_int(1) : q_div(keys, q_add(keys, q_power(m->base, sink)));
    }
    return all;
}

// ---- blocks of bytes ----------------------------------------------------------------------------

static double half(unsigned bits) { // a finite binary16
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

// Code t: its remainder by 31 the exponent of d, its quotient the fraction, its parity the sign; 37
// t and 37 t + 131 are the first and the last byte. What is read is d times a byte. Every third
// code.
static void blocks(void) {
    const sinkproof_exact_statement *s = statement_of("q8.decode", 0);
    size_t left = 0, right = 0, count = 0;
    for (uint64_t t = 0; t < s->codes; t += 3, count++) {
        instance m = exact_draw(s->kind, SEED, t);
        double d = half((unsigned)(t % 31 * 1024 + t / 31 + t % 2 * 32768));
        long first = (long)(37 * t % 256), last = (long)((37 * t + 131) % 256);
        row own = row_zero(6); // each a value, and 0: a number
        own.at[0] = q_double(d * (double)(first < 128 ? first : first - 256));
        own.at[2] = q_double(d * (double)(last < 128 ? last : last - 256));
        own.at[1] = own.at[3] = own.at[4] = own.at[5] = q_int(0);
        left += same(s->left(&m), own);
        right += same(s->right(&m), own);
        q_forget();
    }
    ok(left == count && right == count, "q8.decode: both sides as stated left=%zu right=%zu of %zu",
       left, right, count);
}

// ---- what a side may not do ---------------------------------------------------------------------

enum { MOST_NUMBERS = 1024 };

typedef struct numbers {
    size_t n;
    rational at[MOST_NUMBERS];
} numbers;

static void take(numbers *all, size_t n, const rational *at) {
    must(all->n + n <= MOST_NUMBERS);
    memcpy(all->at + all->n, at, n * sizeof *at);
    all->n += n;
}

static numbers numbers_of(const instance *m) {
    numbers all = {0};
    take(&all, m->x.rows * m->x.cols, m->x.at);
    take(&all, m->e.rows * m->e.cols, m->e.at);
    take(&all, m->u.rows * m->u.cols, m->u.at);
    take(&all, m->e_sink.n, m->e_sink.at);
    take(&all, m->gate.n, m->gate.at);
    take(&all, m->u_star.n, m->u_star.at);
    take(&all, m->x_star.n, m->x_star.at);
    return all;
}

static void unchanged(const char *id) {
    size_t sides = 0, kept = 0;
    const sinkproof_exact_statement *s;
    for (int which = 0; (s = statement_of(id, which)) != NULL; which++)
        for (uint64_t number = 0; number < INSTANCES; number++) {
            instance m = exact_draw(s->kind, SEED, number);
            numbers before = numbers_of(&m);
            for (int side = 0; side < 2; side++) {
                (side == 0 ? s->left : s->right)(&m);
                numbers after = numbers_of(&m);
                kept += memcmp(before.at, after.at, before.n * sizeof *before.at) == 0;
                sides++;
            }
            q_forget();
        }
    ok(sides > 0 && kept == sides, "%s leaves its instance as it is: %zu of %zu", id, kept, sides);
}

int main(void) {
    both_sides("rope.orthogonal", 0, rotated);
    both_sides("repeat.lemma", 1, equal_tokens_with_sinks);
    both_sides("law.gqa-repeat", 0, whole_layer);
    both_sides("moe.sum", 0, mixed);
    both_sides("norm.scaled", 0, scaled_head);
    both_sides("sink.hybrid", 0, twelve_masses);
    blocks();
    unchanged("first.token");
    unchanged("sink.absolute");
    unchanged("sink.gated");
    unchanged("law.permute");
    unchanged("sink.key-bias");
    unchanged("sink.kv-bias");
    unchanged("sink.sink-token");
    return tap_done();
}
