// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where a stage begins and ends: behind every input stands a NaN that nothing may read, behind
// every output a number that nothing may write, outputs hold another number before the call, and
// what is computed is the formula written out a second time. Statistics of numbers that have much
// in common; the shapes and streams of the weights; runs that nobody watches, and watched ones
// without logits. 0.1 CPU seconds.
#include "fast/lanes/stages.h"
#include "model/q8_0.h"
#include "model/slots.h"
#include "ref/mechanism.h"
#include "ref/terms.h"
#include "ref/variants/variant.h"
#include "tests/shared/reference.h"

#include <math.h>

static const uint64_t SEED = 20261123;
enum { KEPT = 77 };

static void say(const char *ids, const char *what, size_t apart, size_t values) {
    ok(apart == 0 && values > 0, "%s %s, bit for bit: worst=%zu bound=0 values=%zu seed=%llu", ids,
       what, apart, values, (unsigned long long)SEED);
}

static size_t touched(double spare) {
    return spare != KEPT;
}

// ---- masks and values ---------------------------------------------------------------------------

static void masks(void) {
    size_t apart = 0, values = 0;
    for (size_t window = 0; window < 6; window++)
        for (size_t i = 0; i < 20; i++, values++) {
            size_t first = 0, seen = i + 1;
            while (window > 0 && seen > window) first++, seen--;
            apart += sinkproof_mask_first(window, i) != first;
        }
    say("mask.window sink.absolute", "the first key that a window leaves", apart, values);
}

enum { ROWS = 5, FIRST = 3, KEYS = ROWS + FIRST, DIM = 4, STRIDE = 9 };

static void weighted_values(void) {
    static const size_t windows[] = {0, 1, 4};
    uint64_t state = SEED;
    sinkproof_policy real = policy_of("real-f64");
    size_t apart = 0, values = 0;
    for (size_t w = 0; w < 3; w++) {
        double alpha_ij[ROWS * (KEYS + 1)], v_jd[KEYS * STRIDE], o_id[ROWS * STRIDE];
        for (size_t i = 0; i < ROWS * STRIDE; i++) o_id[i] = KEPT;
        for (size_t j = 0; j < KEYS * STRIDE; j++)
            v_jd[j] = j % STRIDE < DIM ? next_real(&state, 2) : NAN;
        for (size_t i = 0; i < ROWS * (KEYS + 1); i++) {
            size_t row = i / (KEYS + 1), j = i % (KEYS + 1), last = FIRST + row;
            bool seen = j <= last && (windows[w] == 0 || j + windows[w] > last);
            alpha_ij[i] = seen ? next_real(&state, 1) : NAN;
        }
        sinkproof_block block = {ROWS, KEYS, FIRST, windows[w], DIM, STRIDE, STRIDE};
        sinkproof_values(&real, &block, alpha_ij, v_jd, o_id);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t d = 0; d < STRIDE; d++, values++) {
                double sum = 0;
                for (size_t j = 0; d < DIM && j <= FIRST + i; j++)
                    if (windows[w] == 0 || j + windows[w] > FIRST + i)
                        sum += alpha_ij[i * (KEYS + 1) + j] * v_jd[j * STRIDE + d];
                if (d >= DIM) sum = KEPT;
                apart += differing(1, &o_id[i * STRIDE + d], &sum);
            }
    }
    say("sink.attn-values law.constant-value", "weighted values of the keys that a row sees", apart,
        values);
}

// The head's coordinates, and not one more: the next head's stand behind them.
static void lanes_values(void) {
    enum { ALL = LANES_SPAN + 40 };
    uint64_t state = SEED;
    sinkproof_policy real = policy_of("real-f64");
    static double q_id[STRIDE], k_jd[ALL * STRIDE], v_jd[ALL * STRIDE], o_id[STRIDE], e_j[ALL];
    // In roundings of float32, 2^29 of binary64's: a score of 4 products within 16 and its distance
    // from the maximum err by 75 with exp, two sums by ALL + 10 each, quotient and product by 2.
    double b = 0.5, worst = 0, bound = gamma53(0x1p29 * (2 * 75 + 2 * (ALL + 10) + 4));
    size_t spare = 0;
    for (size_t i = 0; i < STRIDE; i++)
        q_id[i] = i < DIM ? (float)next_real(&state, 2) : NAN, o_id[i] = KEPT;
    for (size_t j = 0; j < ALL * STRIDE; j++) {
        k_jd[j] = j % STRIDE < DIM ? (float)next_real(&state, 2) : NAN;
        v_jd[j] = j % STRIDE < DIM ? (float)(1 + next_real(&state, 0.5)) : NAN;
    }
    sinkproof_block block = {1, ALL, ALL - 1, 0, DIM, STRIDE, STRIDE};
    lanes_attention(&real, &block, &b, q_id, k_jd, v_jd, o_id);
    double z = exp(b);
    for (size_t j = 0; j < ALL; j++) {
        double dot = 0;
        for (size_t d = 0; d < DIM; d++) dot += q_id[d] * k_jd[j * STRIDE + d];
        e_j[j] = exp(dot / sqrt(DIM)), z += e_j[j];
    }
    for (size_t d = 0; d < STRIDE; d++) {
        double sum = 0;
        for (size_t j = 0; d < DIM && j < ALL; j++) sum += e_j[j] / z * v_jd[j * STRIDE + d];
        if (d < DIM) keep_worst(&worst, fabs(o_id[d] - sum) / sum);
        if (d >= DIM) spare += touched(o_id[d]);
    }
    ok(worst <= bound && spare == 0,
       "lanes.attention one query over %d keys, and no coordinate behind the head's: worst=%.3g "
       "bound=%.3g seed=%llu",
       ALL, worst, bound, (unsigned long long)SEED);
}

// ---- products and norms -------------------------------------------------------------------------

static void products(void) {
    enum { N = 3, R = 4, C = 10 };
    uint64_t state = SEED;
    double w_rc[R * C], x_nc[N * C + 1], y_nr[N * R + 1], work[300];
    must(sinkproof_linear_work(N, R, C) <= sizeof work / sizeof *work);
    for (size_t i = 0; i < R * C; i++) w_rc[i] = next_integer(&state, 9);
    for (size_t i = 0; i < N * C; i++) x_nc[i] = next_integer(&state, 9);
    x_nc[N * C] = NAN;
    sinkproof_matrix w = matrix_of(w_rc, 1, R, C);
    const char *const policies[] = {"real-f64", "real-f64,A2.acc=f32", "real-f64,A2.term=f32"};
    size_t apart = 0, values = 0;
    for (size_t p = 0; p < 3; p++) {
        sinkproof_policy policy = policy_of(policies[p]);
        for (size_t i = 0; i < sizeof work / sizeof *work; i++) work[i] = NAN;
        y_nr[N * R] = KEPT;
        sinkproof_linear(&policy, AT_A2, N, &w, NULL, x_nc, y_nr, work);
        apart += touched(y_nr[N * R]);
        for (size_t t = 0; t < N; t++)
            for (size_t r = 0; r < R; r++, values++) {
                double sum = 0;
                for (size_t c = C; c-- > 0;) sum += w_rc[r * C + c] * x_nc[t * C + c];
                apart += y_nr[t * R + r] != sum;
            }
    }
    say("bound.operands bound.accumulator", "products of whole numbers, no bias", apart, values);
}

// ---- designs ------------------------------------------------------------------------------------

static void design_inputs(void) {
    enum { PLACES = 4 };
    uint64_t state = SEED;
    double place_nc[PLACES * DIM + 1], x_c[DIM + 1], was_c[DIM];
    fill_reals(&state, 2, PLACES * DIM, place_nc);
    place_nc[PLACES * DIM] = NAN;
    sinkproof_variant_head head = {.n = PLACES, .hidden = DIM, .dim = DIM, .place_nc = place_nc};
    size_t apart = 0, values = 0;
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < PLACES; i++) {
            sinkproof_variant learned = {.places = SINKPROOF_PLACES_LEARNED};
            sinkproof_variant waves = {.places = SINKPROOF_PLACES_ABSOLUTE};
            fill_reals(&state, 2, DIM, was_c);
            memcpy(x_c, was_c, sizeof was_c);
            x_c[DIM] = KEPT;
            variant_place_input(kind == 0 ? &learned : &waves, &head, i, x_c);
            apart += touched(x_c[DIM]);
            for (size_t c = 0; c < DIM; c++, values++) {
                double angle = (double)i * pow(10000, -2.0 * (double)(c / 2) / DIM);
                double added = kind == 0 ? place_nc[i * DIM + c] : c % 2 ? cos(angle) : sin(angle);
                apart += x_c[c] != was_c[c] + added;
            }
        }
    say("place.added", "learned and absolute positions", apart, values);
}

static void design_features(void) {
    uint64_t state = SEED;
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_variant mlp = {.feature = SINKPROOF_FEATURE_MLP};
    double one_dd[DIM * DIM], two_dd[DIM * DIM + 1], x_d[DIM + 1], work[2 * DIM + 1], was_d[DIM];
    size_t apart = 0, values = 0;
    for (int trial = 0; trial < 50; trial++) {
        fill_integers(&state, 5, DIM * DIM, one_dd);
        fill_integers(&state, 5, DIM * DIM, two_dd);
        fill_integers(&state, 5, DIM, was_d);
        memcpy(x_d, was_d, sizeof was_d);
        for (size_t i = 0; i < 2 * DIM; i++) work[i] = -KEPT;
        x_d[DIM] = work[2 * DIM] = KEPT, two_dd[DIM * DIM] = NAN;
        sinkproof_variant_head head = {.dim = DIM, .mlp_1_dd = one_dd, .mlp_2_dd = two_dd};
        sinkproof_variant_feature(&real, &mlp, &head, x_d, work);
        apart += touched(x_d[DIM]) + touched(work[2 * DIM]);
        for (size_t i = DIM; i < 2 * DIM; i++) apart += work[i] != -KEPT; // relu makes 0 of it
        for (size_t r = 0; r < DIM; r++, values++) {
            double sum = 0;
            for (size_t f = 0; f < DIM; f++) {
                double inner = 0;
                for (size_t d = 0; d < DIM; d++) inner += one_dd[f * DIM + d] * was_d[d];
                if (inner > 0) sum += two_dd[r * DIM + f] * inner;
            }
            apart += x_d[r] != sum;
        }
    }
    say("kernel.mlp kernel.mlp-max", "features of whole numbers", apart, values);
}

// A divisor that is never less than one, of sums on both sides of it.
static void design_divisors(void) {
    uint64_t state = SEED;
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_variant at_least = {.similarity = SINKPROOF_SIMILARITY_SCORE,
                                  .divisor = SINKPROOF_DIVISOR_AT_LEAST_1};
    size_t apart = 0, below = 0, above = 0;
    for (int trial = 0; trial < 200; trial++) {
        double s_j[KEYS], sim_j[KEYS], alpha_j[KEYS], z = 0, sum = 0;
        bool seen_j[KEYS];
        for (size_t j = 0; j < KEYS; j++) {
            s_j[j] = next_real(&state, trial % 2 ? 0.25 : 4);
            seen_j[j] = j == 0 || next_bits(&state) % 3 > 0;
            if (seen_j[j]) sum += s_j[j];
        }
        variant_divide(&real, &at_least, KEYS, seen_j, s_j, sim_j, &z, alpha_j);
        below += fabs(sum)<1, above += fabs(sum)> 1;
        apart += z != (fabs(sum) > 1 ? fabs(sum) : 1);
    }
    say("norm.max-one kernel.identity-max kernel.mlp-max", "max(|sum|, 1)",
        apart + (below == 0) + (above == 0), below + above);
}

// ---- statistics ---------------------------------------------------------------------------------

// |x_c| = 2^20 + a few: the deviation of the few.
static void spread(void) {
    enum { N = 64 };
    uint64_t state = SEED;
    double worst = 0, bound = gamma53(N + 4);
    for (int trial = 0; trial < 50; trial++) {
        double x_c[N + 1];
        long double sum = 0, squares = 0;
        for (size_t c = 0; c < N; c++) {
            double few = (double)(next_bits(&state) % 4096) / 4096;
            x_c[c] = next_bits(&state) % 2 ? 0x1p20 + few : -0x1p20 - few;
            sum += fabs(x_c[c]);
        }
        x_c[N] = NAN;
        for (size_t c = 0; c < N; c++) // the mean of 64 such is a number of binary64
            squares += (fabs(x_c[c]) - sum / N) * (fabs(x_c[c]) - sum / N);
        sinkproof_massive_rule rule = sinkproof_mechanism_spread(N, x_c);
        long double want = sqrtl(squares / N);
        keep_worst(&worst, (double)(fabsl(rule.deviation - want) / want));
        keep_worst(&worst, fabs(rule.mean - (double)(sum / N)));
    }
    double first_c[11] = {-10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1e9};
    size_t at[11];
    sinkproof_massive_rule rule = sinkproof_mechanism_massive(10, first_c, 2, at);
    ok(worst <= bound && rule.n == 1 && at[0] == 0,
       "gpt2.massive gpt2.table1 gpt2.table2 the deviation beside a mean 2^20 times as large; the "
       "first coordinate counts, one behind the last does not: worst=%.3g bound=%.3g seed=%llu",
       worst, bound, (unsigned long long)SEED);
}

static void removed(void) {
    enum { N = 5 };
    uint64_t state = SEED;
    double u_mj[(SINKPROOF_TERMS + 1) * N], s_j[N + 1], want_j[N];
    size_t apart = 0, values = 0;
    for (size_t without = 0; without <= SINKPROOF_TERMS; without++) {
        fill_integers(&state, 99, SINKPROOF_TERMS * N, u_mj);
        for (size_t j = 0; j < N; j++) u_mj[SINKPROOF_TERMS * N + j] = NAN, want_j[j] = 0;
        for (size_t m = 0; m < SINKPROOF_TERMS; m++)
            for (size_t j = 0; j < N; j++) want_j[j] += m == without ? 0 : u_mj[m * N + j];
        s_j[N] = KEPT;
        sinkproof_terms_scores(N, u_mj, without, s_j);
        apart += differing(N, s_j, want_j) + touched(s_j[N]), values += N;
    }
    say("terms.removed", "scores of whole numbers without one term", apart, values);
}

// ---- Q8_0 ---------------------------------------------------------------------------------------

static void q8(void) {
    enum { BLOCK = SINKPROOF_Q8_0_BLOCK, BYTES = SINKPROOF_Q8_0_BYTES, BLOCKS = 3 };
    uint64_t state = SEED;
    double x[BLOCKS * BLOCK + 1], back[BLOCKS * BLOCK + 1];
    uint8_t blocks[BLOCKS * BYTES + 1];
    size_t apart = 0;
    for (size_t b = 0; b < BLOCKS; b++) // the scale of block b is 2^-b: whole multiples of it
        for (size_t i = 0; i < BLOCK; i++)
            x[b * BLOCK + i] = ldexp(i == 7 ? 127 : next_integer(&state, 126), -(int)b);
    x[BLOCKS * BLOCK] = 1e30, back[BLOCKS * BLOCK] = KEPT, blocks[BLOCKS * BYTES] = KEPT;
    bool good = sinkproof_q8_0_encode(x, BLOCKS, blocks);
    sinkproof_q8_0_decode(blocks, BLOCKS, back);
    apart += differing(BLOCKS * BLOCK, x, back) + touched(back[BLOCKS * BLOCK]);
    apart += blocks[BLOCKS * BYTES] != KEPT || !good;
    say("q8.encode q8.decode", "three blocks there and back", apart, BLOCKS * BLOCK);
}

// ---- the weights' table -------------------------------------------------------------------------

// Streams are part of what `synthetic:` means: another number is another model.
static void weights(void) {
    static const unsigned streams[SINKPROOF_SLOTS] = {
        [SINKPROOF_ATTN_NORM] = 0,     [SINKPROOF_ATTN_NORM_B] = 20, [SINKPROOF_MLP_NORM_B] = 21,
        [SINKPROOF_Q_NORM] = 24,       [SINKPROOF_K_NORM] = 25,      [SINKPROOF_W_Q] = 1,
        [SINKPROOF_B_Q] = 2,           [SINKPROOF_W_K] = 3,          [SINKPROOF_B_K] = 4,
        [SINKPROOF_W_V] = 5,           [SINKPROOF_B_V] = 6,          [SINKPROOF_SINKS] = 7,
        [SINKPROOF_W_O] = 8,           [SINKPROOF_B_O] = 9,          [SINKPROOF_MLP_NORM] = 10,
        [SINKPROOF_W_ROUTER] = 11,     [SINKPROOF_B_ROUTER] = 12,    [SINKPROOF_W_UP] = 13,
        [SINKPROOF_B_UP] = 14,         [SINKPROOF_W_DOWN] = 15,      [SINKPROOF_B_DOWN] = 16,
        [SINKPROOF_FINAL_NORM_B] = 22, [SINKPROOF_POSITIONS] = 23,   [SINKPROOF_EMBEDDING] = 17,
        [SINKPROOF_FINAL_NORM] = 18,   [SINKPROOF_UNEMBEDDING] = 19};
    size_t apart = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) apart += slot_stream((sinkproof_slot)s) != streams[s];
    say("model.biases", "the stream that each weight is drawn from", apart, SINKPROOF_SLOTS);
    sinkproof_config config;
    must(sinkproof_config_named("tiny", &config));
    static const char *const kinds[] = {"logit", "off-by-one", "key", "none"};
    size_t shapes[][3] = {
        {1, 1, config.n_heads}, {0, 0, 0}, {1, config.n_heads, config.head_dim}, {0, 0, 0}};
    apart = 0;
    for (size_t k = 0; k < 4; k++) {
        size_t count = KEPT, rows = KEPT, cols = KEPT;
        must(sink_kind_find(kinds[k], &config.sink));
        sinkproof_slot_shape(SINKPROOF_SINKS, &config, &count, &rows, &cols);
        apart += count != shapes[k][0] || rows != shapes[k][1] || cols != shapes[k][2];
    }
    say("model.biases", "what a layer stores of each kind of sink", apart, 4);
}

// ---- runs that nobody watches -------------------------------------------------------------------

typedef struct watched {
    size_t f1, f2;
    double logits[1];
} watched;

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    watched *w = context;
    w->f1 += strcmp(name, "F1") == 0, w->f2 += strcmp(name, "F2") == 0;
    if (rank > 0 && shape[0] > 0 && strcmp(name, "F2") == 0) w->logits[0] = values[0];
}

static void unwatched(const char *id, const char *path) {
    enum { N = 3 };
    static const int32_t tokens_n[N] = {5, 2, 9};
    sinkproof_model *model;
    must(sinkproof_model_open(path, &model, NULL));
    size_t count = N * sinkproof_model_config(model)->vocab, apart = 0;
    double *seen_nv = calloc(count, sizeof *seen_nv), *alone_nv = calloc(count, sizeof *alone_nv);
    must(seen_nv != NULL && alone_nv != NULL);
    for (size_t i = 0; i < count; i++) seen_nv[i] = alone_nv[i] = NAN;
    sinkproof_policy real = policy_of("real-f64");
    watched with = {0}, without = {0}, neither = {0};
    sinkproof_observer observers[] = {{.see = see, .context = &with},
                                      {.see = see, .context = &without, .no_logits = true},
                                      {.see = see, .context = &neither}};
    for (int run = 0; run < 4; run++) {
        sinkproof_session *session = sinkproof_session_new(model, &real);
        double *logits_nv = run == 0 ? seen_nv : run == 3 ? alone_nv : NULL;
        must(session != NULL && sinkproof_forward(session, N, tokens_n, logits_nv,
                                                  run < 3 ? &observers[run] : NULL, NULL));
        sinkproof_session_free(session);
    }
    apart += differing(count, seen_nv, alone_nv) + (alone_nv[0] != with.logits[0]);
    apart += neither.logits[0] != with.logits[0];
    apart += with.f1 != 1 || with.f2 != 1 || without.f1 != 1 || without.f2 != 0 || neither.f2 != 1;
    say(id, "logits of a run that nobody watches; F1 without logits, F2 for an observer alone",
        apart, count);
    free(seen_nv);
    free(alone_nv);
    sinkproof_model_close(model);
}

int main(void) {
    masks();
    weighted_values();
    lanes_values();
    products();
    design_inputs();
    design_features();
    design_divisors();
    spread();
    removed();
    q8();
    weights();
    unwatched("model.forward", "synthetic:tiny");
    unwatched("gpt2.forward", "synthetic:tiny-gpt2");
    return tap_done();
}
