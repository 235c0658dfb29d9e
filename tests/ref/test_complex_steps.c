// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The backward functions against complex steps: a stage's formula is evaluated at x + i h, with h
// so small that h^2 vanishes, and the imaginary part over h is the derivative along x; nothing is
// subtracted. Every element of every gradient is asked, also where the sink's weight is 0 or 1 to
// rounding, at the limits of the clamps, with a loss that reads either log-sum-exp, and for a tied
// embedding. Each side is within as many roundings as it makes (grad.rounded).
#include "proofs/bounds/honest.h"
#include "proofs/bounds/worst.h"
#include "ref/backward/backward.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <complex.h>

typedef double complex number;
static const double step = 0x1p-120; // times e^-600 it is no subnormal number

typedef struct tally {
    size_t elements, outside;
    double worst;
} tally;

// found, by the reference, and wanted, by a step: both within so many roundings of terms of `size`.
static void compare(tally *t, double found, double wanted, double size, double roundings) {
    double bound = 2 * sinkproof_gamma(roundings, 0x1p-53) * size + 0x1p-1000;
    double share = fabs(found - wanted) / bound;
    t->elements++, t->outside += !(share <= 1);
    t->worst = sinkproof_keep_worst(t->worst, share);
}
static void say(const tally *t, const char *ids, const char *what) {
    ok(t->outside == 0 && t->worst <= 1 && t->elements > 0,
       "%s complex steps, %s: elements=%zu outside=%zu worst=%.3g bound=1", ids, what, t->elements,
       t->outside, t->worst);
}

static double between(uint64_t *state, double size) {
    return size * ((double)draw_below(state, 1u << 24) * 0x1p-23 - 1);
}
static void fill(uint64_t *state, size_t n, double size, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = between(state, size);
}

// ---- attention: two query heads of one group -------------------------------------------------

enum { N = 6, D = 4, HEADS = 2 };

// Inputs, and the gradients of the loss with respect to the outputs and log-sum-exps.
typedef struct head_inputs {
    double q[HEADS][N][D], k[N][D], v[N][D], b[HEADS], key[HEADS][D];
} head_inputs;
typedef struct head_case {
    head_inputs in;
    double dout[HEADS][N][D], dlse[HEADS][N], dlse_keys[HEADS][N];
    size_t window;
    bool keyed; // b of a row is the score of one more key
} head_case;
typedef struct head_numbers {
    number q[HEADS][N][D], k[N][D], v[N][D], b[HEADS], key[HEADS][D];
} head_numbers;

static size_t first_key(const head_case *c, size_t i) {
    return sinkproof_mask_first(c->window, i);
}

static number dot(const number *x, const number *y) {
    number sum = 0;
    for (size_t d = 0; d < D; d++) sum += x[d] * y[d];
    return sum;
}

// log(sum_j e^z_j) of the n numbers.
static number log_sum(size_t n, const number *z) {
    double m = creal(z[0]);
    number sum = 0;
    for (size_t j = 1; j < n; j++) m = fmax(m, creal(z[j]));
    for (size_t j = 0; j < n; j++) sum += cexp(z[j] - m);
    return m + clog(sum);
}

static number row_loss(const head_case *c, const head_numbers *x, size_t h, size_t i) {
    size_t first = first_key(c, i), seen = i + 1 - first;
    number z[N + 1], loss = 0;
    for (size_t j = 0; j < seen; j++) z[j] = dot(x->q[h][i], x->k[first + j]) / sqrt(D);
    z[seen] = c->keyed ? dot(x->q[h][i], x->key[h]) / sqrt(D) : x->b[h];
    number lse = log_sum(seen + 1, z);
    for (size_t j = 0; j < seen; j++)
        for (size_t d = 0; d < D; d++)
            loss += cexp(z[j] - lse) * x->v[first + j][d] * c->dout[h][i][d];
    return loss + c->dlse[h][i] * lse + c->dlse_keys[h][i] * log_sum(seen, z);
}

static double along(const head_case *c, size_t element) {
    head_numbers x;
    number *to = (number *)(void *)&x, sum = 0;
    for (size_t i = 0; i < sizeof c->in / sizeof(double); i++)
        to[i] = ((const double *)(const void *)&c->in)[i];
    to[element] += I * step;
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) sum += row_loss(c, &x, h, i);
    return cimag(sum) / step;
}

// What the reference makes of a case: gradients in the places of the inputs, and their sizes.
typedef struct head_results {
    head_inputs d, size;
    double roundings;
} head_results;

typedef struct head_rows {
    double s[N * N], alpha[N * (N + 1)], o[N * D], dalpha[N * N], ds[N * N], db[N];
} head_rows;

static void add_sizes(const head_case *c, size_t h, const head_rows *r, head_results *to) {
    for (size_t i = 0; i < N; i++) {
        size_t first = first_key(c, i);
        double a[N] = {0}, mean = 0, sum = 0, dlse = fabs(c->dlse[h][i]);
        const double *alpha = r->alpha + i * (N + 1), *s = r->s + i * N;
        for (size_t j = first; j <= i; j++) {
            for (size_t d = 0; d < D; d++) a[j] += fabs(c->dout[h][i][d] * c->in.v[j][d]);
            mean += alpha[j] * a[j], sum += exp(s[j] - s[first]);
        }
        double db = alpha[N] * (mean + dlse);
        for (size_t j = first; j <= i; j++) {
            double p = exp(s[j] - s[first]) / sum;
            double ds = alpha[j] * (a[j] + mean + dlse) + p * fabs(c->dlse_keys[h][i]);
            for (size_t d = 0; d < D; d++) {
                to->size.q[h][i][d] += ds * fabs(c->in.k[j][d]) / sqrt(D);
                to->size.k[j][d] += ds * fabs(c->in.q[h][i][d]) / sqrt(D);
                to->size.v[j][d] += alpha[j] * fabs(c->dout[h][i][d]);
            }
        }
        if (!c->keyed) to->size.b[h] += db;
        for (size_t d = 0; d < D && c->keyed; d++) {
            to->size.key[h][d] += db * fabs(c->in.q[h][i][d]) / sqrt(D);
            to->size.q[h][i][d] += db * fabs(c->in.key[h][d]) / sqrt(D);
        }
    }
}

// A score is a sum of D products, a root, a quotient and a product; each of their roundings, and
// that of z - m, is |score| roundings of the exponential, which has 2 of its own. A weight has N +
// 4 more. A term has at most two weights, and what O, dalpha, D, ds and the sums over queries add.
static double roundings_of(const head_case *c, const head_rows *r) {
    double most = 0;
    for (size_t i = 0; i < N * N; i++)
        if (isfinite(r->s[i])) most = fmax(most, fabs(r->s[i]));
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = first_key(c, i); j <= i; j++) {
                double size = 0, of_key = fabs(c->in.b[h]);
                for (size_t d = 0; d < D; d++) size += fabs(c->in.q[h][i][d] * c->in.k[j][d]);
                for (size_t d = 0; d < D && c->keyed; d++)
                    of_key += fabs(c->in.q[h][i][d] * c->in.key[h][d]);
                most = fmax(most, fmax(size, of_key));
            }
    double weight = 2 * (D + 5) * most + 2 + N + 4;
    return 2 * weight + 2 * D + 3 * N + 12;
}

static void go_back(const head_case *c, head_results *to) {
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    *to = (head_results){.roundings = 0};
    for (size_t h = 0; h < HEADS; h++) {
        head_rows r;
        sinkproof_block block = {.rows = N,
                                 .keys = N,
                                 .window = c->window,
                                 .head_dim = D,
                                 .q_stride = D,
                                 .kv_stride = D};
        sinkproof_normaliser of = {c->in.b[h], c->keyed ? c->in.key[h] : NULL};
        const double *q = c->in.q[h][0], *k = c->in.k[0], *v = c->in.v[0], *dout = c->dout[h][0];
        double b[N];
        sinkproof_scores(&policy, &block, q, k, r.s);
        sinkproof_sink_logits(&policy, &block, &of, q, b);
        sinkproof_softmax_sink(&policy, &block, b, r.s, r.alpha);
        sinkproof_values(&policy, &block, r.alpha, v, r.o);
        sinkproof_values_backward(&block, r.alpha, v, dout, r.dalpha, to->d.v[0]);
        sinkproof_softmax_sink_backward(&block, r.alpha, r.o, dout, r.dalpha, r.ds, r.db);
        sinkproof_lse_backward(&block, true, r.s, r.alpha, c->dlse[h], r.ds, r.db);
        sinkproof_lse_backward(&block, false, r.s, r.alpha, c->dlse_keys[h], r.ds, r.db);
        sinkproof_scores_backward(&block, q, k, r.ds, to->d.q[h][0], to->d.k[0]);
        sink_logits_backward(&block, &of, q, r.db, c->keyed ? to->d.key[h] : &to->d.b[h],
                             to->d.q[h][0]);
        add_sizes(c, h, &r, to);
        to->roundings = fmax(to->roundings, roundings_of(c, &r));
    }
}

static void ask_head(const head_case *c, const char *ids, const char *what) {
    head_results r;
    tally t = {0, 0, 0};
    go_back(c, &r);
    for (size_t i = 0; i < sizeof c->in / sizeof(double); i++)
        compare(&t, ((const double *)(const void *)&r.d)[i], along(c, i),
                ((const double *)(const void *)&r.size)[i], r.roundings);
    say(&t, ids, what);
}

static head_case draw_head(uint64_t seed, double b) {
    head_case c = {.window = 0};
    uint64_t state = seed;
    fill(&state, sizeof c.in / sizeof(double), 1.5, (double *)(void *)&c.in);
    fill(&state, HEADS * N * D, 1, c.dout[0][0]);
    for (size_t h = 0; h < HEADS; h++) c.in.b[h] = b + (double)h / 4;
    return c;
}

static void attention(void) {
    static const char ids[] = "grad.softmax grad.sink grad.values grad.qkv grad.group grad.delta";
    uint64_t state = 3;
    head_case c = draw_head(1, 0.5);
    ask_head(&c, ids, "attention");
    c.window = 3;
    ask_head(&c, ids, "attention with a window");
    c.keyed = true;
    ask_head(&c, ids, "attention whose sinks are keys");
    for (int kind = 0; kind < 2; kind++) {
        c = draw_head(2, 0.5);
        c.window = kind ? 3 : 0, c.keyed = kind;
        fill(&state, HEADS * N, 1, c.dlse[0]);
        ask_head(&c, "grad.lse", kind ? "LSE with a key for a sink" : "LSE with the sink");
        memset(c.dlse, 0, sizeof c.dlse);
        fill(&state, HEADS * N, 1, c.dlse_keys[0]);
        ask_head(&c, "grad.lse", kind ? "LSE of the keys, with a window" : "LSE of the keys");
        fill(&state, HEADS * N, 1, c.dlse[0]);
        ask_head(&c, "grad.lse", kind ? "both, with a key for a sink" : "both");
    }
    for (double b = -900; b <= 900; b += 300) {
        char what[64];
        c = draw_head(4, b == 0 ? 40 : b);
        fill(&state, HEADS * N, 1, c.dlse[0]);
        fill(&state, HEADS * N, 1, c.dlse_keys[0]);
        snprintf(what, sizeof what, "a sink's logit of %g", b == 0 ? 40 : b);
        ask_head(&c, "grad.vanishing grad.lse", what);
    }
}

// ---- the other stages ------------------------------------------------------------------------

enum { WIDE = 9, VOCAB = 5, TOKENS = 4, EXPERTS = 5, CHOSEN = 3 };

static const double eps = 1e-5;

static void norm_of(const number *scale, const number *x, number *y) {
    number sum = 0;
    for (size_t c = 0; c < WIDE; c++) sum += x[c] * x[c];
    for (size_t c = 0; c < WIDE; c++) y[c] = scale[c] * x[c] / csqrt(sum / WIDE + eps);
}

// in: scale and x. Loss: <dy, y>.
static void rmsnorm(double size) {
    double in[2 * WIDE], dy[WIDE], d[2 * WIDE] = {0}, along_x = 0, squares = 0;
    uint64_t state = 11;
    tally t = {0, 0, 0};
    fill(&state, WIDE, 2, in), fill(&state, WIDE, size, in + WIDE), fill(&state, WIDE, 1, dy);
    sinkproof_rmsnorm_backward(in, eps, 1, WIDE, in + WIDE, dy, d + WIDE, d);
    for (size_t c = 0; c < WIDE; c++) {
        squares += in[WIDE + c] * in[WIDE + c];
        along_x += fabs(in[WIDE + c] * in[c] * dy[c]);
    }
    double r = 1 / sqrt(squares / WIDE + eps);
    for (size_t e = 0; e < (size_t)2 * WIDE; e++) {
        number x[2 * WIDE], y[WIDE], loss = 0;
        for (size_t c = 0; c < (size_t)2 * WIDE; c++) x[c] = in[c];
        x[e] += I * step;
        norm_of(x, x + WIDE, y);
        for (size_t c = 0; c < WIDE; c++) loss += dy[c] * y[c];
        double of =
            e < WIDE
                ? fabs(dy[e] * in[WIDE + e]) * r
                : r * (fabs(in[e - WIDE] * dy[e - WIDE]) + fabs(in[e]) * r * r * along_x / WIDE);
        compare(&t, d[e], cimag(loss) / step, of, 4 * WIDE + 28);
    }
    say(&t, "grad.rmsnorm", size < 1 ? "RMSNorm of small numbers" : "RMSNorm");
}

// One pair of coordinates at a drawn angle and concentration.
static void rotation(void) {
    tally t = {0, 0, 0};
    uint64_t state = 12;
    for (int round = 0; round < 50; round++) {
        double c = between(&state, 1.3), s = between(&state, 1.3), x[2], dy[2], d[2];
        fill(&state, 2, 4, x), fill(&state, 2, 1, dy);
        memcpy(d, dy, sizeof d);
        sinkproof_rope_backward(1, 1, 2, &c, &s, d);
        for (int e = 0; e < 2; e++) {
            number x1 = x[0] + (e == 0 ? I * step : 0), x2 = x[1] + (e == 1 ? I * step : 0);
            number loss = dy[0] * (x1 * c - x2 * s) + dy[1] * (x2 * c + x1 * s);
            double of =
                e == 0 ? fabs(dy[0] * c) + fabs(dy[1] * s) : fabs(dy[1] * c) + fabs(dy[0] * s);
            compare(&t, d[e], cimag(loss) / step, of, 4);
        }
    }
    say(&t, "grad.rotation", "rotation");
}

// The clamps as torch.clamp: what is at a limit is not beyond it, and passes.
static number swiglu_of(sinkproof_swiglu_numbers of, number gate, number up) {
    number g = creal(gate) > of.limit ? of.limit : gate;
    number u = creal(up) > of.limit ? of.limit : creal(up) < -of.limit ? -of.limit : up;
    return g / (1 + cexp(-of.alpha * g)) * (u + of.offset);
}

static void swiglu(void) {
    static const sinkproof_swiglu_numbers kinds[] = {
        {1.702, 7, 1}, {1, INFINITY, 0}, {1.702, 3, 0}};
    static const double at[] = {7,    -7,   0, 7.0000000001, -30, 6.9999999999, -300, 12,
                                -7.5, 1e-9, 3, -3,           0.5};
    enum { AT = sizeof at / sizeof *at };
    tally t = {0, 0, 0};
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < (size_t)AT * AT; i++) {
            double gate = at[i % AT], up = at[i / AT], dact = 0.75, d[2];
            sinkproof_swiglu_numbers of = kinds[kind];
            sinkproof_swiglu_backward(of, gate, up, dact, &d[0], &d[1]);
            double x = of.alpha * fmin(gate, of.limit), sigma = 1 / (1 + exp(-x));
            double u = fabs(fmax(fmin(up, of.limit), -of.limit)) + of.offset;
            // in the derivative of the forward form 1 stands beside x e^-x / (1 + e^-x)
            double size[2] = {dact * u * sigma * (1 + fabs(x) / (1 + exp(x))),
                              dact * fabs(fmin(gate, of.limit)) * sigma};
            double roundings = 4 * fabs(x) + 24;
            number loss[2] = {dact * swiglu_of(of, gate + I * step, up),
                              dact * swiglu_of(of, gate, up + I * step)};
            for (int e = 0; e < 2; e++)
                compare(&t, d[e], cimag(loss[e]) / step, size[e], roundings);
        }
    say(&t, "grad.swiglu", "SwiGLU, inside its limits, at them and beyond");
}

// Logits of all experts, then the softmax over the chosen, then the mixture of their outputs.
static void experts(void) {
    static const double chosen[CHOSEN] = {4, 0, 2};
    double in[EXPERTS + CHOSEN * WIDE], dout[WIDE], w[CHOSEN], dw[CHOSEN], sum = 0, mean = 0;
    double d[EXPERTS + CHOSEN * WIDE], *ddown = d + EXPERTS, *down = in + EXPERTS, sizes[CHOSEN];
    uint64_t state = 13;
    tally t = {0, 0, 0};
    fill(&state, EXPERTS + CHOSEN * WIDE, 2, in), fill(&state, WIDE, 1, dout);
    for (size_t k = 0; k < CHOSEN; k++) sum += w[k] = exp(in[(size_t)chosen[k]]);
    for (size_t k = 0; k < CHOSEN; k++) w[k] /= sum, sizes[k] = 0;
    sinkproof_mixture_backward(CHOSEN, WIDE, w, down, dout, dw, ddown);
    sinkproof_router_backward(EXPERTS, CHOSEN, chosen, w, dw, d);
    for (size_t k = 0; k < CHOSEN; k++) {
        for (size_t c = 0; c < WIDE; c++) sizes[k] += fabs(dout[c] * down[k * WIDE + c]);
        mean += w[k] * sizes[k];
    }
    for (size_t e = 0; e < EXPERTS + CHOSEN * WIDE; e++) {
        number x[EXPERTS + CHOSEN * WIDE], z = 0, loss = 0;
        double size = 0;
        for (size_t i = 0; i < EXPERTS + CHOSEN * WIDE; i++) x[i] = in[i];
        x[e] += I * step;
        for (size_t k = 0; k < CHOSEN; k++) z += cexp(x[(size_t)chosen[k]]);
        for (size_t k = 0; k < CHOSEN; k++) {
            number weight = cexp(x[(size_t)chosen[k]]) / z;
            for (size_t c = 0; c < WIDE; c++) loss += dout[c] * weight * x[EXPERTS + k * WIDE + c];
            if (e == (size_t)chosen[k]) size = w[k] * (sizes[k] + mean);
            if (e >= EXPERTS && (e - EXPERTS) / WIDE == k)
                size = w[k] * fabs(dout[(e - EXPERTS) % WIDE]);
        }
        // two weights of an exponential each, a sum, a quotient; dw; the differences
        compare(&t, d[e], cimag(loss) / step, size, 2 * (2 + CHOSEN + 3) + WIDE + CHOSEN + 8);
    }
    say(&t, "grad.router grad.mixture", "router and mixture, chosen and not");
}

// Words of an embedding, normed, times the same embedding: the cross-entropy of the next ones.
static const int32_t words[TOKENS] = {3, 1, 3, 0}, next[TOKENS] = {1, 3, 0, -1};

static number tied_loss(const number *e, const number *scale) {
    number loss = 0;
    for (size_t n = 0; n + 1 < TOKENS; n++) {
        number y[WIDE], z[VOCAB] = {0};
        norm_of(scale, e + words[n] * WIDE, y);
        for (size_t v = 0; v < VOCAB; v++)
            for (size_t c = 0; c < WIDE; c++) z[v] += e[v * WIDE + c] * y[c];
        loss += (log_sum(VOCAB, z) - z[next[n]]) / (TOKENS - 1);
    }
    return loss;
}

static void tied(void) {
    double e[VOCAB * WIDE], scale[WIDE], x[TOKENS * WIDE], y[TOKENS * WIDE],
        z[TOKENS * VOCAB] = {0};
    double dz[TOKENS * VOCAB], dy[TOKENS * WIDE] = {0}, dx[TOKENS * WIDE] = {0}, row[WIDE];
    double de[VOCAB * WIDE] = {0}, dscale[WIDE] = {0}, size = 0, most = 0;
    uint64_t state = 14;
    tally t = {0, 0, 0};
    fill(&state, VOCAB * WIDE, 1, e), fill(&state, WIDE, 1, scale);
    for (size_t n = 0; n < TOKENS; n++) {
        number of[WIDE], as[WIDE], to[WIDE];
        for (size_t c = 0; c < WIDE; c++) {
            x[n * WIDE + c] = e[words[n] * WIDE + c];
            of[c] = x[n * WIDE + c], as[c] = scale[c];
        }
        norm_of(as, of, to);
        for (size_t c = 0; c < WIDE; c++) y[n * WIDE + c] = creal(to[c]);
        for (size_t v = 0; v < VOCAB; v++) {
            double sum = 0;
            for (size_t c = 0; c < WIDE; c++) {
                z[n * VOCAB + v] += e[v * WIDE + c] * y[n * WIDE + c];
                sum += fabs(e[v * WIDE + c] * y[n * WIDE + c]);
            }
            most = fmax(most, sum);
        }
    }
    sinkproof_matrix m = {.dtype = SINKPROOF_DTYPE_F64,
                          .count = 1,
                          .rows = VOCAB,
                          .cols = WIDE,
                          .data = (const uint8_t *)e,
                          .stack_stride = VOCAB * WIDE,
                          .row_stride = WIDE,
                          .col_stride = 1};
    sinkproof_cross_entropy(TOKENS, VOCAB, z, next, dz);
    sinkproof_linear_backward(TOKENS, &m, y, dz, dy, de, NULL, row);
    sinkproof_rmsnorm_backward(scale, eps, TOKENS, WIDE, x, dy, dx, dscale);
    embed_backward(TOKENS, WIDE, words, dx, de);
    // No term is larger than 2 times a coordinate of the embedding or of a normed word, over the
    // smallest root mean square; VOCAB WIDE of them, for each token, are what an element adds up.
    for (size_t n = 0; n < TOKENS; n++) {
        double squares = 0;
        for (size_t c = 0; c < WIDE; c++) squares += x[n * WIDE + c] * x[n * WIDE + c];
        size += 2 * VOCAB * (double)WIDE * 2 / sqrt(squares / WIDE) + 2 * WIDE;
    }
    for (size_t i = 0; i < VOCAB * WIDE + WIDE; i++) {
        number at[VOCAB * WIDE], as[WIDE];
        for (size_t k = 0; k < VOCAB * WIDE; k++) at[k] = e[k];
        for (size_t k = 0; k < WIDE; k++) as[k] = scale[k];
        *(i < VOCAB * WIDE ? &at[i] : &as[i - VOCAB * WIDE]) += I * step;
        double found = i < VOCAB * WIDE ? de[i] : dscale[i - VOCAB * WIDE];
        double roundings = 2 * (2 * WIDE + 12) * most + VOCAB + 5 * WIDE + 40 + TOKENS;
        compare(&t, found, cimag(tied_loss(at, as)) / step, size, roundings);
    }
    say(&t, "grad.embedding grad.linear grad.cross-entropy grad.rmsnorm grad.chain",
        "a tied embedding, both of its shares");
}

int main(void) {
    attention();
    rmsnorm(2);
    rmsnorm(0.001);
    rotation();
    swiglu();
    experts();
    tied();
    return tap_done();
}
