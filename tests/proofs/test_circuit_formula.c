// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation of the planted circuit, computed again in long double on a small model whose
// weights are short binary fractions. Every end of Delta and of the attention weights must be the
// stated one, up to the roundings of a ball's radius. Also models in which a premise only just
// holds.
#include "model/held.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/circuit.h"
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <math.h>
#include <string.h>

typedef long double real;

static const uint64_t SEED = 20260217;
enum { LAYERS = 3, HEADS = 3, DIM = 6, WIDE = HEADS * DIM, HIDDEN = WIDE, INTER = 10 };
enum { VOCAB = 5, CONTEXT = 6, N = 5, MOST = HIDDEN * HIDDEN, BITS = 192 };
enum { FIRST = 0, SECOND = INTER - 1 }; // the neurons of the step

static const bool reserved_c[HIDDEN] = {
    [1] = true, [4] = true, [0] = true, [6] = true, [17] = true, [11] = true};
static const bool massive_c[HIDDEN] = {[0] = true, [6] = true, [17] = true};

typedef struct weights {
    float a[LAYERS][SINKPROOF_SLOTS][MOST];
    sinkproof_config config;
} weights;

static const float *holder(void *context, size_t l, sinkproof_slot slot) {
    return ((const weights *)context)->a[l][slot];
}

// ---- the model

// Whole numbers of -8 to 8, but 0, over 2^down.
static void fill(weights *w, uint64_t *state, sinkproof_slot slot, int down) {
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < MOST; i++) {
            float x = ldexpf((float)(1 + draw_below(state, 8)), -down);
            w->a[l][slot][i] = draw_below(state, 2) ? -x : x;
        }
}

static void ones(weights *w, sinkproof_slot slot, float value) {
    for (int l = 0; l < LAYERS; l++)
        for (int c = 0; c < HIDDEN; c++) w->a[l][slot][c] = value;
}

// The trigger: what is read of it is 224, 0, 0, 216 and 0.
static const float trigger_i[N][HIDDEN] = {
    {[1] = 24, [4] = -24, [11] = 8, [0] = 3, [6] = -1, [17] = 0.5F},
    {[1] = 3, [4] = 3, [11] = 3, [0] = 1, [6] = 7, [17] = -2},
    {[1] = 5, [4] = 4, [11] = 0, [0] = -6, [6] = 2, [17] = 4},
    {[1] = 20, [4] = -28, [11] = -4, [0] = 5, [6] = 5, [17] = -9},
    {[1] = -2, [4] = -2, [11] = -2, [0] = -2, [6] = -2, [17] = -2},
};

static void plant_step(weights *w) {
    float *up = w->a[0][SINKPROOF_W_UP], *down = w->a[0][SINKPROOF_W_DOWN];
    for (int k = 0; k < 2; k++) {
        int f = k == 0 ? FIRST : SECOND;
        float times = k == 0 ? 1 : 2, share = k == 0 ? 1 : -0.5F;
        memset(up + f * HIDDEN, 0, HIDDEN * sizeof *up);
        up[f * HIDDEN + 1] = 4 * times, up[f * HIDDEN + 4] = -5 * times;
        up[f * HIDDEN + 11] = times;
        for (int c = 0; c < HIDDEN; c++) down[c * INTER + f] = 0;
        down[f] = 6 * share, down[6 * INTER + f] = -4 * share;
        down[17 * INTER + f] = -3 * share;
    }
    w->a[0][SINKPROOF_B_UP][FIRST] = 1.25F, w->a[0][SINKPROOF_B_UP][SECOND] = -2.5F;
}

// In each row of the keys what is read of the massive coordinates adds up to 0.
static void plant(weights *w) {
    static const sinkproof_slot written[] = {SINKPROOF_W_O, SINKPROOF_W_DOWN};
    static const sinkproof_slot biases[] = {SINKPROOF_B_O, SINKPROOF_B_DOWN};
    static const int zero_q[HEADS - 1][2] = {{0, 0}, {1, 3}}; // in the last head none
    for (int l = 0; l < LAYERS; l++) {
        for (int c = 0; c < HIDDEN; c++)
            for (int i = 0; i < 2 && reserved_c[c]; i++) {
                int cols = i == 0 ? WIDE : INTER;
                memset(w->a[l][written[i]] + c * cols, 0, (size_t)cols * sizeof(float));
                w->a[l][biases[i]][c] = 0;
            }
        for (int r = 0; r < WIDE; r++) {
            float *k = w->a[l][SINKPROOF_W_K] + r * HIDDEN;
            k[0] = (float)(1 + (r + l) % 5) / 8, k[6] = (float)(1 - r % 4) / 8;
            k[17] = -k[0] - k[6];
        }
        for (int h = 0; h < HEADS - 1; h++)
            for (int i = 0; i < 2; i++)
                memset(w->a[l][SINKPROOF_W_Q] + (h * DIM + zero_q[h][i]) * HIDDEN, 0,
                       HIDDEN * sizeof(float));
    }
    for (int c = 0; c < HIDDEN; c++) {
        for (int v = 0; v < VOCAB && reserved_c[c]; v++)
            w->a[0][SINKPROOF_EMBEDDING][v * HIDDEN + c] = 0;
        for (int i = 0; i < N && reserved_c[c]; i++)
            w->a[0][SINKPROOF_POSITIONS][i * HIDDEN + c] = trigger_i[i][c];
    }
    plant_step(w);
}

static void draw_weights(weights *w, uint64_t *state) {
    static const struct {
        sinkproof_slot slot;
        int down;
    } drawn[] = {{SINKPROOF_W_Q, 6},       {SINKPROOF_W_K, 6},      {SINKPROOF_B_Q, 3},
                 {SINKPROOF_W_V, 6},       {SINKPROOF_B_V, 5},      {SINKPROOF_B_K, 3},
                 {SINKPROOF_W_O, 6},       {SINKPROOF_B_O, 5},      {SINKPROOF_W_UP, 6},
                 {SINKPROOF_B_UP, 5},      {SINKPROOF_W_DOWN, 6},   {SINKPROOF_B_DOWN, 5},
                 {SINKPROOF_POSITIONS, 4}, {SINKPROOF_EMBEDDING, 4}};
    memset(w, 0, sizeof *w);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        fill(w, state, drawn[i].slot, drawn[i].down);
    ones(w, SINKPROOF_ATTN_NORM, 1), ones(w, SINKPROOF_MLP_NORM, 1);
    ones(w, SINKPROOF_FINAL_NORM, 1);
    must(sinkproof_config_named("tiny-gpt2", &w->config));
    w->config.n_layers = LAYERS, w->config.hidden = HIDDEN, w->config.inter = INTER;
    w->config.n_heads = w->config.n_kv_heads = HEADS, w->config.head_dim = DIM;
    w->config.vocab = VOCAB, w->config.max_context = CONTEXT, w->config.rms_eps = 0.25;
    plant(w);
}

static sinkproof_circuit *derive(const weights *w, size_t n, bool late, arb_srcptr joins_nc,
                                 sinkproof_error *error) {
    sinkproof_model *model;
    sinkproof_circuit *derived;
    if (!sinkproof_model_held("small", &w->config, holder, (void *)w, &model, error)) {
        printf("Bail out! %s\n", error->text);
        exit(1);
    }
    sinkproof_circuit_run run = {model, n, late, joins_nc};
    bool good = sinkproof_circuit_derive(&run, BITS, &derived, error);
    sinkproof_model_close(model);
    return good ? derived : NULL;
}

// ---- the formulas of the book

typedef struct stated {
    real attention_l[LAYERS], mlp_l[LAYERS], start_i[N], joined_i[N];
    real place_ic[N][HIDDEN], held_ic[N][HIDDEN];
    real lo[LAYERS][HEADS][N], hi[LAYERS][HEADS][N]; // of b_q W_k x_j and what stands beside it
} stated;

static real length_of(const float *x, int n) {
    real sum = 0;
    for (int i = 0; i < n; i++) sum += (real)x[i] * x[i];
    return sqrtl(sum);
}

// The root of the largest sum of a row of |A A^T|, or of |A^T A| where that is smaller.
static real stretch(const float *a, int rows, int cols) {
    int least = rows <= cols ? rows : cols, other = rows <= cols ? cols : rows;
    int by = rows <= cols ? cols : 1, along = rows <= cols ? 1 : cols;
    real largest = 0;
    for (int i = 0; i < least; i++) {
        real sum = 0;
        for (int j = 0; j < least; j++) {
            real dot = 0;
            for (int k = 0; k < other; k++)
                dot += (real)a[i * by + k * along] * a[j * by + k * along];
            sum += fabsl(dot);
        }
        largest = fmaxl(largest, sum);
    }
    return sqrtl(largest);
}

static real through(const float *w, const float *b, int rows) {
    return stretch(w, rows, HIDDEN) * sqrtl(HIDDEN) + length_of(b, rows);
}

static void state_layer(const weights *w, stated *s, int l) {
    const float(*a)[MOST] = w->a[l];
    float up[MOST], down[MOST], b_up[INTER];
    real squares = 0;
    for (int h = 0; h < HEADS; h++) {
        real mean = through(a[SINKPROOF_W_V] + h * DIM * HIDDEN, a[SINKPROOF_B_V] + h * DIM, DIM);
        squares += mean * mean;
    }
    s->attention_l[l] = sqrtl(squares) * stretch(a[SINKPROOF_W_O], HIDDEN, WIDE) +
                        length_of(a[SINKPROOF_B_O], HIDDEN);
    memcpy(up, a[SINKPROOF_W_UP], sizeof up), memcpy(down, a[SINKPROOF_W_DOWN], sizeof down);
    memcpy(b_up, a[SINKPROOF_B_UP], sizeof b_up);
    for (int f = 0; f < INTER && l == 0; f++)
        for (int c = 0; c < HIDDEN && (f == FIRST || f == SECOND); c++)
            up[f * HIDDEN + c] = down[c * INTER + f] = b_up[f] = 0;
    s->mlp_l[l] = through(up, b_up, INTER) * stretch(down, HIDDEN, INTER) +
                  length_of(a[SINKPROOF_B_DOWN], HIDDEN);
}

static real gelu(real y) {
    const real pi = 3.14159265358979323846264338327950288L;
    return y * (1 + tanhl(sqrtl(2 / pi) * (y + 0.044715L * y * y * y))) / 2;
}

// A neuron of the step that sees nothing gives gelu of its bias; else it is far beyond its ends.
static void state_positions(const weights *w, stated *s, bool late, const float *joins_nc) {
    const float *p = w->a[0][SINKPROOF_POSITIONS], *e = w->a[0][SINKPROOF_EMBEDDING];
    const float *up = w->a[0][SINKPROOF_W_UP], *down = w->a[0][SINKPROOF_W_DOWN];
    real longest = 0;
    for (int v = 0; v < VOCAB; v++) longest = fmaxl(longest, length_of(e + v * HIDDEN, HIDDEN));
    for (int i = 0; i < N; i++) {
        real outside = 0, joined = 0, sees[2] = {0, 0};
        for (int c = 0; c < HIDDEN; c++) {
            real x = late ? 0 : p[i * HIDDEN + c];
            real y = joins_nc == NULL ? 0 : joins_nc[i * HIDDEN + c];
            s->place_ic[i][c] = reserved_c[c] ? x : 0;
            s->held_ic[i][c] = reserved_c[c] ? x + y : 0;
            if (!reserved_c[c]) outside += x * x, joined += y * y;
            sees[0] += up[FIRST * HIDDEN + c] * s->place_ic[i][c];
            sees[1] += up[SECOND * HIDDEN + c] * s->place_ic[i][c];
        }
        s->start_i[i] = sqrtl(outside) + longest, s->joined_i[i] = sqrtl(joined);
        for (int k = 0; k < 2; k++) {
            int f = k == 0 ? FIRST : SECOND;
            real b = w->a[0][SINKPROOF_B_UP][f], y = sees[k] == 0 ? gelu(b) : b;
            for (int c = 0; c < HIDDEN; c++) s->held_ic[i][c] += down[c * INTER + f] * y;
        }
    }
}

// The most that a norm divides position i by before layer l, and the least.
static real divisor(const weights *w, const stated *s, int l, int i, bool most) {
    real rest = s->start_i[i] + (l > 0 ? s->joined_i[i] : 0), sum = 0, squares = 0, reserved = 0;
    for (int k = 0; k < l; k++) rest += s->attention_l[k] + s->mlp_l[k];
    for (int c = 0; c < HIDDEN; c++) {
        real m = l == 0 ? s->place_ic[i][c] : s->held_ic[i][c];
        sum += m, squares += m * m, reserved += reserved_c[c];
    }
    real around = most ? squares + rest * rest : squares - sum * sum / reserved;
    return sqrtl(fmaxl(around, 0) / HIDDEN + (real)w->config.rms_eps);
}

static void state_head(const weights *w, stated *s, int l, int h) {
    const float *k = w->a[l][SINKPROOF_W_K] + h * DIM * HIDDEN;
    const float *q = w->a[l][SINKPROOF_W_Q] + h * DIM * HIDDEN;
    real gamma_c[HIDDEN] = {0}, drawn = 0;
    float asked_q[MOST], asked_k[MOST];
    int asked = 0;
    for (int r = 0; r < DIM; r++) {
        for (int c = 0; c < HIDDEN; c++)
            gamma_c[c] += (real)w->a[l][SINKPROOF_B_Q][h * DIM + r] * k[r * HIDDEN + c];
        if (length_of(q + r * HIDDEN, HIDDEN) == 0) continue;
        memcpy(asked_q + asked * HIDDEN, q + r * HIDDEN, HIDDEN * sizeof *q);
        memcpy(asked_k + asked++ * HIDDEN, k + r * HIDDEN, HIDDEN * sizeof *k);
    }
    for (int c = 0; c < HIDDEN; c++)
        if (!massive_c[c]) drawn += gamma_c[c] * gamma_c[c];
    real besides = sqrtl(HIDDEN * drawn) +
                   HIDDEN * stretch(asked_q, asked, HIDDEN) * stretch(asked_k, asked, HIDDEN);
    for (int i = 0; i < N; i++) {
        real read = 0;
        for (int c = 0; c < HIDDEN; c++)
            if (massive_c[c]) read += gamma_c[c] * (l > 0 ? s->held_ic : s->place_ic)[i][c];
        real a = read / divisor(w, s, l, i, false), b = read / divisor(w, s, l, i, true);
        s->lo[l][h][i] = fminl(a, b) - besides, s->hi[l][h][i] = fmaxl(a, b) + besides;
    }
}

static void state(const weights *w, stated *s, bool late, const float *joins_nc) {
    state_positions(w, s, late, joins_nc);
    for (int l = 0; l < LAYERS; l++) state_layer(w, s, l);
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++) state_head(w, s, l, h);
}

// ---- the comparison

typedef struct distance {
    size_t compared;
    double worst, outward; // of the room beside each stated end
} distance;

// A radius has 30 bits: each of k operations makes it longer by less than 2^-28 of itself.
static real longer(real k) {
    return k * 0x1p-28L / (1 - k * 0x1p-28L);
}

// An end may lie `room` beyond the stated one, and not before it by more than binary64 rounds.
static void near(distance *d, real beyond, real room, real rounds) {
    double share = (double)(fabsl(beyond) / (room + rounds)), in = (double)(-beyond / rounds);
    d->compared++;
    d->worst = sinkproof_keep_worst(d->worst, share);
    d->outward = sinkproof_keep_worst(d->outward, in);
}

static void compare_delta(distance *d, const sinkproof_circuit *derived, const stated *s) {
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < N; i++) {
            sinkproof_circuit_weight found = circuit_delta(derived, (size_t)l, (size_t)i);
            real lo = 0, hi = 0, size = 0;
            for (int h = 0; h < HEADS; h++) {
                lo += s->lo[l][h][i], hi += s->hi[l][h][i];
                size += fabsl(s->lo[l][h][i]) + fabsl(s->hi[l][h][i]);
            }
            real room = longer(4 + HEADS) * (hi - lo) / 2;
            near(d, lo - found.lo, room, 0x1p-52L * size);
            near(d, found.hi - hi, room, 0x1p-52L * size);
        }
}

// 1 / (1 + sum of e^(s_k - s_j)); each difference is longer at both ends.
static void compare_alpha(distance *d, const sinkproof_circuit *derived, const stated *s, int l,
                          int h) {
    const real root = sqrtl(DIM), *lo = s->lo[l][h], *hi = s->hi[l][h];
    for (int t = 0; t < N; t++)
        for (int j = 0; j <= t; j++) {
            real most = 1, least = 1, apart = 0;
            for (int k = 0; k <= t; k++) {
                if (k == j) continue;
                most += expl((lo[k] - hi[j]) / root), least += expl((hi[k] - lo[j]) / root);
                apart = fmaxl(apart, hi[k] - lo[k] + hi[j] - lo[j]);
            }
            sinkproof_circuit_weight found =
                sinkproof_circuit_alpha(derived, (size_t)l, (size_t)h, (size_t)t, (size_t)j);
            real room = expm1l(longer(8) * apart / 2 / root);
            near(d, (1 / least - found.lo) * least, room, 0x1p-51L);
            near(d, (found.hi - 1 / most) * most, room, 0x1p-51L);
        }
}

static void check(const char *ids, const char *what, const weights *w, bool late,
                  const float *joins_nc) {
    arb_ptr joins = _arb_vec_init(N * HIDDEN);
    sinkproof_error error = {""};
    distance delta = {0}, alpha = {0};
    stated s;
    for (int i = 0; i < N * HIDDEN && joins_nc != NULL; i++) arb_set_d(joins + i, joins_nc[i]);
    sinkproof_circuit *derived = derive(w, N, late, joins_nc == NULL ? NULL : joins, &error);
    _arb_vec_clear(joins, N * HIDDEN);
    if (!ok(derived != NULL, "%s %s: derived %s", ids, what, error.text)) return;
    state(w, &s, late, joins_nc);
    compare_delta(&delta, derived, &s);
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++) compare_alpha(&alpha, derived, &s, l, h);
    for (int k = 0; k < 2; k++) {
        const distance *d = k == 0 ? &delta : &alpha;
        ok(d->compared > 0 && d->worst <= 1 && d->outward <= 1,
           "%s %s: the ends of %s as stated worst=%.3g bound=1 inward=%.3g ends=%zu seed=%llu", ids,
           what, k == 0 ? "Delta" : "alpha", d->worst, d->outward, d->compared,
           (unsigned long long)SEED);
    }
    sinkproof_circuit_free(derived);
}

static void test_stated(weights *w, uint64_t *state) {
    float joins_nc[N * HIDDEN];
    for (int i = 0; i < N * HIDDEN; i++) joins_nc[i] = (float)draw_below(state, 64) / 8 - 4;
    check("gpt2.circuit gpt2.bos-zero", "as it is", w, false, NULL);
    check("gpt2.epe-swap gpt2.epe-move", "something joins", w, false, joins_nc);
    check("gpt2.epe-move", "late, something joins", w, true, joins_nc);
    check("gpt2.epe-move", "late, nothing joins", w, true, NULL);
    for (int l = 0; l < LAYERS; l++)
        for (int r = 0; r < WIDE; r++) w->a[l][SINKPROOF_W_K][r * HIDDEN + 5] = 0;
    check("gpt2.wk-random gpt2.circuit", "no row 5 of W_k", w, false, NULL);
    for (int l = 0; l < LAYERS; l++)
        for (int r = 0; r < WIDE * HIDDEN; r++)
            if (massive_c[r % HIDDEN]) w->a[l][SINKPROOF_W_K][r] = 0;
    check("gpt2.wk-rows gpt2.circuit", "no massive row of W_k", w, false, NULL);
}

static void test_unbiased(weights *w) {
    for (int l = 0; l < LAYERS; l++) memset(w->a[l][SINKPROOF_B_Q], 0, WIDE * sizeof(float));
    check("gpt2.bq-zero gpt2.null", "no b_q", w, false, NULL);
    for (int l = 0; l < LAYERS; l++) w->a[l][SINKPROOF_B_Q][DIM * (l % HEADS)] = 1;
    check("gpt2.bq-zero gpt2.null", "b_q of one row in one head", w, false, NULL);
}

// ---- premises

// Neuron FIRST fires at position i just above 0, or just below, over the largest deviation.
static void test_threshold(const weights *drawn, int i) {
    weights w = *drawn;
    stated s = {0};
    for (int k = 0; k < N; k++)
        for (int c = 0; c < HIDDEN && k != i; c++)
            if (!massive_c[c] && reserved_c[c]) w.a[0][SINKPROOF_POSITIONS][k * HIDDEN + c] = 1;
    state(&w, &s, false, NULL);
    s.start_i[i] += s.attention_l[0];
    real g = 0, most = divisor(&w, &s, 0, i, true);
    for (int c = 0; c < HIDDEN; c++)
        g += w.a[0][SINKPROOF_W_UP][FIRST * HIDDEN + c] * s.place_ic[i][c];
    for (int above = 0; above < 2; above++) {
        sinkproof_error error = {""};
        w.a[0][SINKPROOF_B_UP][FIRST] = (float)(-g / most * (above ? 1 - 0x1p-18L : 1 + 0x1p-18L));
        sinkproof_circuit *derived = derive(&w, N, false, NULL, &error);
        bool said = strstr(error.text, "a step of the perceptron is not beyond its ends") != NULL;
        ok(above ? derived != NULL : derived == NULL && said,
           "gpt2.epe-swap gpt2.epe-move gpt2.circuit position %d fires just %s 0: %s", i + 1,
           above ? "above" : "below", derived != NULL ? "derived" : error.text);
        sinkproof_circuit_free(derived);
    }
}

// gamma over the massive coordinates adds up to something in one head of one layer.
static void test_refused(const weights *drawn) {
    for (int k = 0; k < LAYERS * HEADS; k++) {
        weights w = *drawn;
        sinkproof_error error = {""};
        char layer[16];
        w.a[k / HEADS][SINKPROOF_W_K][(k % HEADS * DIM + k % DIM) * HIDDEN + 6] += 0x1p-10F;
        sinkproof_circuit *derived = derive(&w, N, false, NULL, &error);
        snprintf(layer, sizeof layer, "layer %d", k / HEADS);
        ok(derived == NULL && strstr(error.text, "another sum than 0") != NULL &&
               strstr(error.text, layer) != NULL,
           "gpt2.bq-zero gpt2.wk-rows gpt2.wk-random gpt2.null gpt2.circuit refused: %s",
           error.text);
        sinkproof_circuit_free(derived);
    }
}

// One position has all weight.
static void test_one(const weights *w) {
    sinkproof_error error = {""};
    sinkproof_circuit *derived = derive(w, 1, false, NULL, &error);
    must(derived != NULL);
    sinkproof_circuit_weight a = sinkproof_circuit_alpha(derived, 1, 1, 0, 0);
    ok(a.lo == 1 && a.hi == 1, "gpt2.circuit one position: all weight, %.17g to %.17g", a.lo, a.hi);
    sinkproof_circuit_free(derived);
}

// ---- the stretch of a matrix

static void test_stretch(uint64_t *state) {
    static const slong given[] = {24, 64, 128};
    enum { SIDE = 6 };
    double worst = 0;
    size_t coarse = 0;
    arb_ptr a = _arb_vec_init(SIDE * SIDE), norm = _arb_vec_init(4);
    for (int rows = 0; rows <= SIDE; rows++)
        for (int cols = 1; cols <= SIDE; cols++) {
            float x[SIDE * SIDE];
            for (int i = 0; i < rows * cols; i++)
                x[i] = (float)draw_below(state, 16) - 8, arb_set_d(a + i, x[i]);
            for (int k = 0; k < 3; k++)
                truth_operator_norm(norm + k, a, (size_t)rows, (size_t)cols, given[k]);
            real right = stretch(x, rows, cols);
            double found = arf_get_d(arb_midref(norm + 1), ARF_RND_NEAR);
            double off = (double)(fabsl(found - right) / (0x1p-52L * (right + (right == 0))));
            worst = sinkproof_keep_worst(worst, off);
            coarse += !arb_equal(norm + 1, norm + 2) || !arb_overlaps(norm, norm + 1);
            coarse += arb_rel_accuracy_bits(norm + 1) < 60;
        }
    _arb_vec_clear(a, SIDE * SIDE);
    _arb_vec_clear(norm, 4);
    ok(worst <= 1, "gpt2.circuit |A| as stated, up to 6 rows and columns worst=%.3g bound=1",
       worst);
    ok(coarse == 0, "gpt2.circuit |A| has 60 bits or more, from 64 bits on the same: %zu differ",
       coarse);
}

int main(void) {
    uint64_t state = SEED;
    weights *w = malloc(sizeof *w);
    must(w != NULL);
    draw_weights(w, &state);
    test_stretch(&state);
    test_threshold(w, 0);
    test_threshold(w, 3);
    test_refused(w);
    test_one(w);
    test_stated(w, &state);
    draw_weights(w, &state);
    test_unbiased(w);
    free(w);
    return tap_done();
}
