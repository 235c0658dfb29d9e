// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of the identities' instances, each against its own statement in long double: the
// layer's output, learned keys, a score's four terms, the model's stages, the rounded masses. Also
// what the values do not show: the sizes to which radii are relative, the radius of MPFR's sides,
// infinite sinks, rows far from 0, arrays that end where memory ends. 0.2 CPU seconds.
#include "tests/shared/sides.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t SEED = 20261127;
enum { INSTANCES = 63, DIM = SINKPROOF_BALL_DIM };

// ---- the layer's output and the rounded masses --------------------------------------------------

static void output_of_layer(real *out, instance m) {
    for (size_t c = 0; c < m->hidden; c++) out[c] = m->bo_c[c];
    for (size_t h = 0; h < m->heads; h++) {
        real w[MOST_KEYS + 1] = {0};
        size_t g = h * m->kv_heads / m->heads;
        shares_of_head(w, m, h, m->b_h[h]);
        for (size_t d = 0; d < m->dim; d++) {
            real o = weighted(m, g, w, d) + sum_of(w, m->n) * m->bv_gd[g * m->dim + d];
            for (size_t c = 0; c < m->hidden; c++)
                out[c] += o * m->wo_hdc[(h * m->dim + d) * m->hidden + c];
        }
    }
}

// 8 significant bits, ties to even; no weight here is below 2^-126.
static real bf16(real x) {
    int exponent = 0;
    real significand = frexpl(x, &exponent);
    return ldexpl(rintl(ldexpl(significand, 8)), exponent - 8);
}
static void bf16_gap(real *out, instance m) {
    real w[MOST_KEYS + 1] = {0}, sum = -1;
    shares_of_head(w, m, 0, m->b_h[0]);
    for (size_t j = 0; j <= m->n; j++) sum += bf16(w[j]);
    *out = fabsl(sum);
}
static void bf16_bound(real *out, instance m) {
    *out = 0x1p-8L + (m->n + 1) * 0x1p-134L;
}

// ---- learned keys and values --------------------------------------------------------------------

// Of the keys and of k*, of which the first `rank` coordinates count.
static void key_shares(real *w, instance m, size_t rank) {
    real z[MOST_KEYS + 1] = {0};
    for (size_t j = 0; j <= m->n; j++) {
        for (size_t d = 0; d < (j < m->n ? m->dim : rank); d++)
            z[j] += (real)m->q_d[d] * (j < m->n ? m->k_jd[j * m->dim + d] : m->k_star_d[d]);
        z[j] /= sqrtl(m->dim);
    }
    shares(w, z, m->n, z[m->n]);
}
static void attended(real *out, instance m, size_t rank, real scale, bool bias) {
    real w[MOST_KEYS + 1] = {0};
    key_shares(w, m, rank);
    for (size_t d = 0; d < m->dim; d++) {
        out[d] = weighted(m, 0, w, d) + scale * w[m->n] * m->star_d[d];
        if (bias) out[d] += m->bv_gd[d];
    }
}
static void key_of_no_value(real *out, instance m) {
    attended(out, m, m->dim, 0, false);
}
static void key_of_zeros(real *out, instance m) {
    key_shares(out, m, 0);
}
static void key_and_value(real *out, instance m) {
    attended(out, m, m->dim, 1, false);
}
static void token(real *out, instance m) {
    attended(out, m, m->dim, 1, true);
}
static void short_key(real *out, instance m) {
    attended(out, m, m->low_rank, 0, false);
}
static void scaled_value(real *out, instance m) {
    attended(out, m, m->dim, m->scale, false);
}

// ---- the four terms of a score ------------------------------------------------------------------

// Element r of x_j times W_K of head 0, or of x_t times W_Q: W_K backwards.
static real projected(instance m, size_t j, size_t r, bool query) {
    size_t column = query ? m->dim - 1 - r : r;
    real sum = 0;
    for (size_t c = 0; c < m->hidden; c++)
        sum += (real)m->k_jd[j * m->dim + c % m->dim] / 24 * m->wo_hdc[column * m->hidden + c] / 16;
    return sum;
}
static void products(real *out, instance m) {
    for (size_t e = 0; e < m->hidden; e++) {
        out[e] = 0;
        for (size_t r = 0; r < m->dim; r++)
            out[e] += (projected(m, (e + 1) % m->n, r, true) + m->star_d[r] / 32.0L) *
                      (projected(m, e % m->n, r, false) + m->bv_gd[r] / 8.0L);
    }
}

// Sums over d of [a_d], [b_Q] times c_d; c = NULL: times b_K.
static real product(instance m, bool a, bool b_q, const double *c_d) {
    real sum = 0;
    for (size_t d = 0; d < m->dim; d++) {
        real a_d = m->q_d[d] / 8.0L, b_d = m->star_d[d] < 0 ? -fabsl(a_d) : fabsl(a_d);
        sum += ((a ? a_d : 0) + (b_q ? b_d : 0)) * (c_d != NULL ? c_d[d] : m->k_star_d[d]);
    }
    return sum;
}
static void weights(real *w, instance m, bool b_q, bool sink) {
    real z[MOST_KEYS + 1] = {0};
    for (size_t j = 0; j < m->n; j++)
        z[j] = (product(m, true, b_q, m->k_jd + j * m->dim) + product(m, true, b_q, NULL)) /
               sqrtl(m->dim);
    shares(w, z, m->n, sink ? product(m, true, false, NULL) : -INFINITY);
}
static void without_sink(real *out, instance m) {
    weights(out, m, true, false);
}
static void beside_sink(real *out, instance m) {
    weights(out, m, true, true);
}
static void zeroed_without_sink(real *out, instance m) {
    weights(out, m, false, false);
}
static void zeroed_beside_sink(real *out, instance m) {
    weights(out, m, false, true);
}

// ---- the model's stages -------------------------------------------------------------------------

static void normed(real *out, instance m) { // in units of 64
    real squares = 0;
    for (size_t j = 0; j < m->n; j++) squares += (real)m->s_hj[j] * m->s_hj[j];
    for (size_t j = 0; j < m->n; j++)
        out[j] = m->s_hj[j] * (real)m->k_jd[j] / sqrtl(squares / m->n + 1e-5L) / 64;
    out[m->n] = 0;
}
static real activation(real g, real u) {
    g = fminl(g, 7), u = fmaxl(-7, fminl(u, 7));
    return (u + 1) * g / (1 + expl(-1.702L * g)) / 64;
}
static void activations(real *out, instance m) {
    out[0] = activation(m->s_hj[0], m->q_d[0]);
    out[1] = activation(m->k_star_d[0], m->s_hj[m->n - 1]);
    out[2] = out[3] = 0;
}

static const real TAU = 6.283185307179586476925286766559L;
static const real CONCENTRATION = 1.3465735902799726547086160607291L; // 1 + ln(32) / 10

static real frequency(instance m, size_t d) { // of 32 pairs, a context of 4096
    real theta = logl(150000), low = 32 * logl(4096 / (TAU * 32)) / theta,
         high = 32 * logl(4096 / TAU) / theta;
    if (m->number % 2 == 1) low = floorl(low), high = ceill(high);
    real r = fmaxl(0, fminl(1, (d - low) / (high - low)));
    return (r / 32 + 1 - r) * expl(-theta * d / 32);
}
static void frequencies(real *out, instance m) {
    for (size_t k = 0; k < 3; k++) out[k] = frequency(m, (m->number + 9 * k) % 32);
    out[3] = CONCENTRATION;
}
static void rotated(real *out, instance m) {
    int32_t position = (int32_t[]){0, 1, 127, 4095, 4096, 131071}[m->number % 6];
    for (size_t k = 0; k < 4; k++) { // the head repeats four numbers: a pair's are equal
        size_t at = (m->number + 16 * k) % 64;
        real angle = position * frequency(m, at % 32);
        real turn = at < 32 ? cosl(angle) - sinl(angle) : cosl(angle) + sinl(angle);
        out[k] = CONCENTRATION * m->q_d[at % DIM] * turn / (64 * ((real)position + 1));
    }
}

static const stated_sides cases[] = {
    {"sink.attn-mass", 0, output_of_layer, output_of_layer},
    {"sink.attn-final", 0, output_of_layer, output_of_layer},
    {"sink.general", 0, output_of_layer, output_of_layer},
    {"sink.bf16-mass", 0, bf16_gap, bf16_bound},
    {"sink.key-bias", 0, key_of_no_value, key_of_no_value},
    {"sink.key-bias", 1, key_of_zeros, key_of_zeros},
    {"sink.kv-bias", 0, key_and_value, key_and_value},
    {"sink.sink-token", 0, token, token},
    {"sink.low-rank-key", 0, short_key, short_key},
    {"sink.fixed-value", 0, scaled_value, scaled_value},
    {"gpt2.expand", 0, products, products},
    {"gpt2.irrelevant", 0, without_sink, without_sink},
    {"terms.sink", 0, beside_sink, beside_sink},
    {"terms.zeroed", 0, zeroed_without_sink, zeroed_without_sink},
    {"terms.zeroed", 1, zeroed_beside_sink, zeroed_beside_sink},
    {"rmsnorm.forward", 0, normed, normed},
    {"swiglu.clamped", 0, activations, activations},
    {"yarn.ramp", 0, frequencies, frequencies},
    {"yarn.concentration", 0, frequencies, frequencies},
    {"yarn.truncate", 0, frequencies, frequencies},
    {"rope.rotate", 0, rotated, rotated},
};

// ---- what the radii are relative to -------------------------------------------------------------

static double largest(const double *x, size_t n) {
    double most = 0;
    for (size_t k = 0; k < n; k++)
        if (x[k] > most || -x[k] > most) most = x[k] < 0 ? -x[k] : x[k];
    return most;
}
static void refill(double *x, size_t n, size_t all) { // behind the n that count
    for (size_t k = n; k < all; k++) x[k] = 0x1p20;
}

// A: of a head's value, of a layer's output, and 1 elsewhere. All are sums and products of numbers
// of 8 bits, which binary64 holds.
static void sizes(void) {
    size_t equal = 0, asked = 0;
    for (uint64_t number = 0; number < 4 * INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        size_t head = m.heads * m.dim;
        refill(m.bv_gd, m.kv_heads * m.dim, sizeof m.bv_gd / sizeof *m.bv_gd);
        refill(m.wo_hdc, head * m.hidden, sizeof m.wo_hdc / sizeof *m.wo_hdc);
        refill(m.bo_c, m.hidden, DIM);
        refill(m.star_d, m.dim, DIM);
        double value = largest(m.x_gjd, m.kv_heads * m.n * m.dim) +
                       largest(m.bv_gd, m.kv_heads * m.dim) + largest(m.star_d, m.dim) +
                       m.scale * largest(m.star_d, m.dim);
        double output = value * (double)(3 * head) * largest(m.wo_hdc, head * m.hidden) +
                        largest(m.bo_c, m.hidden);
        const double stated[] = {[BALL_ONE] = 1,
                                 [BALL_FOUR] = 1,
                                 [BALL_KEYS] = 1,
                                 [BALL_HEAD] = value,
                                 [BALL_HIDDEN] = output};
        for (size_t k = 0; k < sizeof stated / sizeof *stated; k++, asked++) {
            sinkproof_identity identity = {.size = (ball_size)k};
            equal += identity_allowance_unit(&identity, &m) == stated[k];
        }
        sinkproof_ball_clear(&m);
    }
    ok(equal == asked, "sink.bias-limits radii relative to the sizes as stated: %zu of %zu", equal,
       asked);
}

// MPFR's numbers of 128 bits for balls of 64 are widened by 2^-96, in the side's own units,
// whatever stood there before.
static void widened(const char *id, size_t has, int units) {
    const sinkproof_identity *identity = identity_of(id, 0);
    size_t as_stated = 0, entries = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        size_t n = has > 0 ? has : m.n;
        arb_ptr out = filled(MOST_ENTRIES);
        for (size_t k = 0; k < MOST_ENTRIES; k++) mag_one(arb_radref(out + k));
        identity->right(out, &m, SIDE_BITS);
        for (size_t k = 0; k < n; k++)
            as_stated += mag_cmp_2exp_si(arb_radref(out + k), -96 - units) == 0;
        entries += n;
        _arb_vec_clear(out, MOST_ENTRIES);
        sinkproof_ball_clear(&m);
    }
    ok(as_stated == entries, "%s MPFR's numbers widened by 2^%d: %zu of %zu", id, -96 - units,
       as_stated, entries);
}

// ---- sinks at infinity, rows far from 0 ---------------------------------------------------------

// Beside a sink logit of +infinity no weight is a number: the last entry has no finite enclosure.
static void infinite_sink(const char *id, int which, bool right) {
    const sinkproof_identity *identity = identity_of(id, which);
    size_t lost = 0, count = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        size_t last = entries_of(identity, &m) - 1;
        arb_ptr out = filled(last + 1);
        m.b_h[0] = INFINITY;
        (right ? identity->right : identity->left)(out, &m, SIDE_BITS);
        lost += !arb_is_finite(out + last), count++;
        _arb_vec_clear(out, (slong)last + 1);
        sinkproof_ball_clear(&m);
    }
    ok(lost == count, "%s %d: a sink logit of +infinity has no finite entry: %zu of %zu", id, which,
       lost, count);
}

// Scores and sink less 2^30 at 24 bits, all multiples of 1/8: their differences from the running
// maximum are the same, and so is every ball, which a maximum that begins at 0 would not leave.
static void far_below_zero(const char *id, int which) {
    const sinkproof_identity *identity = identity_of(id, which);
    size_t equal = 0, entries = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number);
        arb_ptr here = filled(m.dim), there = filled(m.dim);
        for (size_t j = 0; j < m.n; j++) m.s_hj[j] = rint(8 * m.s_hj[j]) / 8;
        identity->left(here, &m, 24);
        for (size_t j = 0; j < m.n; j++) m.s_hj[j] -= 0x1p30;
        m.b_h[0] -= 0x1p30;
        identity->left(there, &m, 24);
        for (size_t d = 0; d < m.dim; d++)
            equal += arb_is_finite(here + d) && arb_equal(here + d, there + d);
        entries += m.dim;
        _arb_vec_clear(here, (slong)m.dim);
        _arb_vec_clear(there, (slong)m.dim);
        sinkproof_ball_clear(&m);
    }
    ok(equal == entries, "%s %d: scores less 2^30 give the same balls: %zu of %zu", id, which,
       equal, entries);
}

// ---- arrays that end where memory ends ----------------------------------------------------------

static void beyond(int signal_number) {
    static const char text[] = "Bail out! memory that is not there was read\n";
    (void)signal_number;
    _exit(write(STDOUT_FILENO, text, sizeof text - 1) > 0 ? 1 : 2);
}

static double *at_the_end(const double *x, size_t n, size_t page) {
    uint8_t *memory =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED && n * sizeof *x <= page);
    must(mprotect(memory + page, page, PROT_NONE) == 0);
    double *end = (double *)(void *)(memory + page) - n;
    memcpy(end, x, n * sizeof *x);
    return end;
}
static void unmap(double *x, size_t n, size_t page) {
    must(munmap((uint8_t *)(void *)(x + n) - page, 2 * page) == 0);
}

// The arrays hold what their declaration says and not a number more.
static void nothing_beyond(const char *id) {
    const sinkproof_identity *identity = identity_of(id, 0);
    size_t finite = 0, count = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint64_t number = 0; number < INSTANCES; number++) {
        sinkproof_ball_instance m = drawn(SEED, number), all = m;
        size_t scores = m.heads * m.n, values = m.kv_heads * m.n * m.dim, keys = m.n * m.dim;
        size_t n = entries_of(identity, &m);
        arb_ptr left = filled(n), right = filled(n);
        m.s_hj = at_the_end(all.s_hj, scores, page);
        m.x_gjd = at_the_end(all.x_gjd, values, page);
        m.k_jd = at_the_end(all.k_jd, keys, page);
        identity->left(left, &m, SIDE_BITS);
        identity->right(right, &m, SIDE_BITS);
        finite += _arb_vec_is_finite(left, (slong)n) && _arb_vec_is_finite(right, (slong)n);
        count++;
        _arb_vec_clear(left, (slong)n);
        _arb_vec_clear(right, (slong)n);
        unmap(m.s_hj, scores, page);
        unmap(m.x_gjd, values, page);
        unmap(m.k_jd, keys, page);
        sinkproof_ball_clear(&all);
    }
    ok(finite == count, "%s reads no number behind its arrays: %zu of %zu", id, finite, count);
}

int main(void) {
    signal(SIGSEGV, beyond);
    signal(SIGBUS, beyond);
    report(cases, sizeof cases / sizeof *cases, SEED, INSTANCES);
    sizes();
    widened("rmsnorm.forward", 0, 6);
    widened("swiglu.clamped", 2, 6);
    widened("yarn.ramp", 4, 0);
    widened("yarn.concentration", 4, 0);
    widened("yarn.truncate", 4, 0);
    widened("rope.rotate", 4, 0);
    infinite_sink("sink.bias-limits", 1, true);
    infinite_sink("form.base2", 0, false);
    infinite_sink("form.lse-subtract", 0, false);
    infinite_sink("form.lse-gate", 0, false);
    infinite_sink("form.running-max", 0, false);
    far_below_zero("sink.online", 0);
    far_below_zero("sink.online", 1);
    far_below_zero("sink.split-kv", 0);
    nothing_beyond("sink.mass");
    nothing_beyond("bound.evict");
    nothing_beyond("bound.quantized-cache");
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
