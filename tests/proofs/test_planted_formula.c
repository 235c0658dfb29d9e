// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted models, computed again: every weight of both models, the written ones by their place
// and the others as they are drawn. On a small model each weight is changed in turn: which
// coordinates are found to be reserved, massive, and part of the step, which premise fails, and
// both ends of what the step writes.
#include "model/held.h"
#include "model/synthetic.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/circuit_internal.h"
#include "tests/shared/tap.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef long double real;

// ---- the planted models

static int massive_at(size_t c) {
    return c == 17 ? 2 : c == 47 || c == 56 ? -1 : 0;
}

static int trigger_at(size_t c) {
    return c == 8 ? 1 : c == 80 ? -1 : 0;
}

// What the first perceptron's first neurons hold, and their inputs.
static bool step_holds(sinkproof_slot slot, size_t r, size_t c, double *value) {
    if (slot == SINKPROOF_W_UP) *value = 4 * trigger_at(c);
    if (slot == SINKPROOF_B_UP) *value = c == 0 ? -8 : -24;
    if (slot == SINKPROOF_W_DOWN) *value = (c == 0 ? 128 : -128) * massive_at(r);
    return slot == SINKPROOF_W_UP ? r < 2
                                  : (slot == SINKPROOF_B_UP || slot == SINKPROOF_W_DOWN) && c < 2;
}

static bool head_holds(sinkproof_slot slot, size_t r, size_t c, bool null, double *value) {
    *value = 0;
    if (slot == SINKPROOF_W_Q) return r % 16 == 0;
    if (slot == SINKPROOF_B_Q) {
        if (c % 16 == 0 && c < 80 && !null) *value = 1 + (double)c / 128;
        return true;
    }
    *value = massive_at(c);
    return slot == SINKPROOF_W_K && r % 16 == 0 && massive_at(c) != 0;
}

// Whether element (r, c) is written, and what.
static bool holds(sinkproof_slot slot, size_t l, size_t r, size_t c, bool null, double *value) {
    bool column = massive_at(c) != 0 || trigger_at(c) != 0;
    bool row = massive_at(r) != 0 || trigger_at(r) != 0;
    if (l == 0 && step_holds(slot, r, c, value)) return true;
    if (head_holds(slot, r, c, null, value)) return true;
    *value = 0;
    switch (slot) {
    case SINKPROOF_ATTN_NORM:
    case SINKPROOF_MLP_NORM:
    case SINKPROOF_FINAL_NORM:
        *value = 1;
        return true;
    case SINKPROOF_ATTN_NORM_B:
    case SINKPROOF_MLP_NORM_B:
    case SINKPROOF_FINAL_NORM_B:
        return true;
    case SINKPROOF_POSITIONS:
        *value = r == 0 ? 32 * trigger_at(c) : 0;
        return column;
    case SINKPROOF_EMBEDDING:
    case SINKPROOF_B_O:
    case SINKPROOF_B_DOWN:
        return column;
    case SINKPROOF_W_O:
    case SINKPROOF_W_DOWN:
        return row;
    default:
        return false;
    }
}

typedef struct tally {
    size_t written, drawn, wrong;
} tally;

static void compare_weight(const sinkproof_model *model, sinkproof_slot slot, size_t l, bool null,
                           tally *t) {
    sinkproof_matrix made = sinkproof_model_slot(model, l, slot), drawn = made;
    double has_c[384], drawn_c[384], value;
    if (made.rows * made.cols == 0) return;
    synthetic_model bare = *made.synthetic;
    bare.planted = NULL;
    drawn.synthetic = &bare;
    for (size_t r = 0; r < made.rows; r++) {
        sinkproof_matrix_row(&made, r, has_c);
        sinkproof_matrix_row(&drawn, r, drawn_c);
        for (size_t c = 0; c < made.cols; c++) {
            bool written = holds(slot, l, r, c, null, &value);
            if (!written) value = drawn_c[c];
            t->written += written, t->drawn += !written;
            t->wrong += !(has_c[c] == value);
        }
    }
}

static void test_weights(const char *spec, bool null) {
    sinkproof_model *model;
    sinkproof_error error;
    tally t = {0};
    must(sinkproof_model_inspect(spec, &model, &error));
    for (size_t l = 0; l < 12; l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) {
            bool none = s == SINKPROOF_SINKS || s == SINKPROOF_W_ROUTER || s == SINKPROOF_B_ROUTER;
            if (!none) compare_weight(model, (sinkproof_slot)s, l, null, &t);
        }
    for (int s = SINKPROOF_EMBEDDING; s < SINKPROOF_SLOTS; s++)
        if (s != SINKPROOF_UNEMBEDDING) compare_weight(model, (sinkproof_slot)s, 0, null, &t);
    ok(t.wrong == 0 && t.written > 0 && t.drawn > 0,
       "gpt2.circuit gpt2.null %s: %zu written, %zu drawn, worst=%zu others bound=0", spec,
       t.written, t.drawn, t.wrong);
    sinkproof_model_close(model);
}

// ---- a small model

enum { LAYERS = 2, HIDDEN = 8, INTER = 5, VOCAB = 3, CONTEXT = 4, MOST = HIDDEN * HIDDEN };
enum { BITS = 128 };

typedef struct weights {
    float a[LAYERS][SINKPROOF_SLOTS][MOST];
    sinkproof_config config;
} weights;

static const float *holder(void *context, size_t l, sinkproof_slot slot) {
    return ((const weights *)context)->a[l][slot];
}

// Reserved 0, 1, 4, 5: the trigger 1 and 5, the massive 0 and 4. Neurons `first` and 3 are the
// step.
static bool small_reserved(int c) {
    return c % 4 == 0 || c % 4 == 1;
}

static void plant_small(weights *w, int first) {
    for (int l = 0; l < LAYERS; l++)
        for (int s = 0; s < SINKPROOF_SLOTS; s++)
            for (int i = 0; i < MOST; i++) {
                int c = i % HIDDEN, r_o = i / HIDDEN, r_down = i / INTER;
                bool scale = s == SINKPROOF_ATTN_NORM || s == SINKPROOF_MLP_NORM;
                bool shift = s == SINKPROOF_ATTN_NORM_B || s == SINKPROOF_MLP_NORM_B;
                bool bias = s == SINKPROOF_B_O || s == SINKPROOF_B_DOWN || s == SINKPROOF_EMBEDDING;
                bool row = (s == SINKPROOF_W_O && small_reserved(r_o)) ||
                           (s == SINKPROOF_W_DOWN && small_reserved(r_down));
                bool zero = shift || row || (bias && small_reserved(c));
                w->a[l][s][i] = scale ? 1 : zero ? 0 : (float)(1 + (i * 7 + s + l) % 11) / 4;
            }
    float *up = w->a[0][SINKPROOF_W_UP], *down = w->a[0][SINKPROOF_W_DOWN];
    for (int f = first; f < 4; f += 3 - first) {
        for (int c = 0; c < HIDDEN; c++) up[f * HIDDEN + c] = down[c * INTER + f] = 0;
        up[f * HIDDEN + 1] = 4, up[f * HIDDEN + 5] = -4;
        down[f] = f == first ? 3 : -3, down[4 * INTER + f] = f == first ? -2 : 2;
    }
    w->a[0][SINKPROOF_B_UP][first] = -3, w->a[0][SINKPROOF_B_UP][3] = -4;
    // Columns 2 and 3 of the embedding have one element that is not 0.
    for (int v = 0; v < VOCAB; v++)
        for (int c = 2; c < 4; c++)
            if (v != (c == 2 ? 0 : VOCAB - 1)) w->a[0][SINKPROOF_EMBEDDING][v * HIDDEN + c] = 0;
}

static weights *small(int first) {
    weights *w = calloc(1, sizeof *w);
    must(w != NULL && sinkproof_config_named("tiny-gpt2", &w->config));
    w->config.n_layers = LAYERS, w->config.hidden = HIDDEN, w->config.inter = INTER;
    w->config.n_heads = w->config.n_kv_heads = 2, w->config.head_dim = 4;
    w->config.vocab = VOCAB, w->config.max_context = CONTEXT;
    plant_small(w, first);
    return w;
}

// ---- what is found

typedef struct found {
    bool reserved_c[HIDDEN], massive_c[HIDDEN], step_f[INTER];
    size_t n_reserved, layer;
    real longest;
    const char *said; // NULL: every premise holds
} found;

static const char *fault_of_layer(const weights *w, const found *s, int l) {
    for (int c = 0; c < HIDDEN; c++)
        if (w->a[l][SINKPROOF_ATTN_NORM][c] != 1 || w->a[l][SINKPROOF_MLP_NORM][c] != 1 ||
            w->a[l][SINKPROOF_ATTN_NORM_B][c] != 0 || w->a[l][SINKPROOF_MLP_NORM_B][c] != 0)
            return "a norm has another scale than 1 or a shift";
    for (int c = 0; c < HIDDEN; c++) {
        bool any = w->a[l][SINKPROOF_B_O][c] != 0 || w->a[l][SINKPROOF_B_DOWN][c] != 0;
        for (int k = 0; k < HIDDEN; k++) any |= w->a[l][SINKPROOF_W_O][c * HIDDEN + k] != 0;
        for (int f = 0; f < INTER; f++)
            any |= l > 0 && w->a[l][SINKPROOF_W_DOWN][c * INTER + f] != 0;
        if (any && s->reserved_c[c]) return "something writes into a reserved coordinate";
    }
    return NULL;
}

static bool step_fails(const weights *w, found *s) {
    bool bad = false;
    for (int f = 0; f < INTER; f++) {
        bool beside = false;
        real sum = 0;
        for (int c = 0; c < HIDDEN; c++) {
            float in = w->a[0][SINKPROOF_W_UP][f * HIDDEN + c];
            float out = w->a[0][SINKPROOF_W_DOWN][c * INTER + f];
            sum += in;
            if (s->reserved_c[c] && out != 0) s->massive_c[c] = s->step_f[f] = true;
            beside |= !s->reserved_c[c] && (in != 0 || out != 0);
        }
        bad |= s->step_f[f] && (beside || sum != 0);
    }
    return bad;
}

static found state(const weights *w) {
    found s = {0};
    real lengths_v[VOCAB] = {0};
    const float *embedding = w->a[0][SINKPROOF_EMBEDDING];
    for (int c = 0; c < HIDDEN; c++) {
        real all = 0;
        for (int v = 0; v < VOCAB; v++) {
            real x = embedding[v * HIDDEN + c];
            all += x * x, lengths_v[v] += x * x;
        }
        s.n_reserved += s.reserved_c[c] = all == 0;
    }
    for (int v = 0; v < VOCAB; v++) s.longest = fmaxl(s.longest, sqrtl(lengths_v[v]));
    for (int l = 0; l < LAYERS && s.said == NULL; l++)
        s.said = fault_of_layer(w, &s, l), s.layer = (size_t)l;
    if (s.said != NULL) return s;
    s.layer = 0;
    if (step_fails(w, &s)) s.said = "a neuron of the step sees or writes what is drawn";
    return s;
}

typedef struct finding {
    sinkproof_circuit_run run;
    circuit_derivation d;
    found has;
    sinkproof_error error;
    arb_t longest;
    bool good;
} finding;

static void find(weights *w, finding *f) {
    sinkproof_model *model;
    memset(f, 0, sizeof *f);
    must(sinkproof_model_held("small", &w->config, holder, w, &model, &f->error));
    f->run = (sinkproof_circuit_run){.model = model, .n = CONTEXT};
    f->d = (circuit_derivation){.run = &f->run,
                                .config = sinkproof_model_config(model),
                                .bits = BITS,
                                .hidden = HIDDEN,
                                .reserved_c = f->has.reserved_c,
                                .massive_c = f->has.massive_c,
                                .step_f = f->has.step_f,
                                .error = &f->error};
    arb_init(f->longest), arb_set_ui(f->longest, 999); // it is written over
    f->good = circuit_find_planted(&f->d, f->longest);
}

static void forget(finding *f) {
    arb_clear(f->longest);
    sinkproof_model_close((sinkproof_model *)f->run.model);
}

// The distance of a ball's middle from x, read as two numbers of binary64.
static real off(const arb_t ball, real x) {
    arf_t rest, high;
    arf_init(rest), arf_init(high);
    arf_set_d(high, arf_get_d(arb_midref(ball), ARF_RND_NEAR));
    arf_sub(rest, arb_midref(ball), high, ARF_PREC_EXACT, ARF_RND_DOWN);
    real mid = (real)arf_get_d(high, ARF_RND_NEAR) + (real)arf_get_d(rest, ARF_RND_NEAR);
    arf_clear(rest), arf_clear(high);
    return fabsl(mid - x);
}

static bool as_stated(weights *w) {
    found s = state(w);
    finding f;
    char text[sizeof f.error.text] = "";
    find(w, &f);
    if (s.said != NULL)
        snprintf(text, sizeof text, "small, layer %zu: nothing is derived: %s", s.layer, s.said);
    bool same = f.good == (s.said == NULL) && f.d.n_reserved == s.n_reserved &&
                memcmp(f.has.reserved_c, s.reserved_c, sizeof s.reserved_c) == 0 &&
                memcmp(f.has.massive_c, s.massive_c, sizeof s.massive_c) == 0 &&
                memcmp(f.has.step_f, s.step_f, sizeof s.step_f) == 0 &&
                strcmp(f.error.text, text) == 0 &&
                off(f.longest, s.longest) <= (HIDDEN + 2) * LDBL_EPSILON * s.longest &&
                arb_rel_accuracy_bits(f.longest) > BITS - 8;
    forget(&f);
    return same;
}

static size_t most_of(int slot) {
    return slot == SINKPROOF_EMBEDDING                          ? VOCAB * HIDDEN
           : slot == SINKPROOF_W_O                              ? HIDDEN * HIDDEN
           : slot == SINKPROOF_W_UP || slot == SINKPROOF_W_DOWN ? HIDDEN * INTER
           : slot == SINKPROOF_B_UP                             ? INTER
                                                                : HIDDEN;
}

static void test_found(int first) {
    static const sinkproof_slot slots[] = {
        SINKPROOF_ATTN_NORM, SINKPROOF_ATTN_NORM_B, SINKPROOF_MLP_NORM, SINKPROOF_MLP_NORM_B,
        SINKPROOF_W_O,       SINKPROOF_B_O,         SINKPROOF_W_UP,     SINKPROOF_B_UP,
        SINKPROOF_W_DOWN,    SINKPROOF_B_DOWN,      SINKPROOF_EMBEDDING};
    static const float values[] = {0, 1, -1.5F, 9};
    weights *w = small(first);
    ok(state(w).said == NULL && as_stated(w), "gpt2.circuit gpt2.bos-zero the small model");
    size_t asked = 0, wrong = 0, good = 0;
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (int l = 0; l < (slots[s] == SINKPROOF_EMBEDDING ? 1 : LAYERS); l++)
            for (size_t i = 0; i < most_of(slots[s]); i++)
                for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
                    float *x = &w->a[l][slots[s]][i], was = *x;
                    *x = values[k];
                    asked++, good += state(w).said == NULL, wrong += !as_stated(w);
                    *x = was;
                }
    ok(wrong == 0 && good > 0 && good < asked,
       "gpt2.circuit gpt2.bos-zero %zu changes, %zu of them allowed: worst=%zu otherwise bound=0",
       asked, good, wrong);
    free(w);
}

// ---- what the step writes

static real tau(real y) {
    return 1 / (1 + expl(2 * sqrtl(2 / acosl(-1)) * (y + 0.044715L * y * y * y)));
}

// Both ends of the sum over the step's neurons; false: one is not beyond its ends, or what
// 1 / sigma brings does not cancel.
static bool state_step(const weights *w, const found *s, const float *place_c, real deviation,
                       real low_c[HIDDEN], real high_c[HIDDEN]) {
    bool good = true;
    real slope_c[HIDDEN] = {0};
    for (int f = 0; f < INTER; f++) {
        if (!s->step_f[f]) continue;
        const float *up = w->a[0][SINKPROOF_W_UP] + f * HIDDEN;
        real g = 0, square = 0, b = w->a[0][SINKPROOF_B_UP][f];
        for (int c = 0; c < HIDDEN; c++)
            g += (real)up[c] * place_c[c], square += (real)up[c] * up[c];
        real least = b + g / deviation, most = b + sqrtl(HIDDEN * square);
        real high = g == 0 ? b * (1 - tau(b)) : b, low = g == 0 ? high : b - most * tau(least);
        if (g != 0 && least == 0) low = (real)NAN; // gelu(y) / y
        good = good && (g == 0 || least > 0);
        for (int c = 0; c < HIDDEN; c++) {
            real down = w->a[0][SINKPROOF_W_DOWN][c * INTER + f];
            slope_c[c] += down * g;
            low_c[c] += down < 0 ? down * high : down * low;
            high_c[c] += down < 0 ? down * low : down * high;
        }
    }
    for (int c = 0; c < HIDDEN; c++) good = good && slope_c[c] == 0;
    return good;
}

static const float place_ic[CONTEXT][HIDDEN] = {
    {[1] = 3, [5] = -3, [0] = 7, [4] = 1},
    {0},
    {[1] = 2, [5] = 2, [0] = -1},
    {[1] = 2, [5] = -5, [4] = 0.5F},
};

// Every end of every coordinate, of one position; the others stay as they are. A radius carries 30
// bits: K roundings of 2^-29 of it, and as many of a long double of the largest number.
static void compare_step(weights *w, int i, double deviation, const char *what) {
    finding f;
    arb_t by;
    real worst = 0;
    find(w, &f);
    arb_init(by);
    arb_set_d(by, deviation);
    f.d.place_ic = _arb_vec_init(CONTEXT * HIDDEN), f.d.held_ic = _arb_vec_init(CONTEXT * HIDDEN);
    for (int k = 0; k < CONTEXT * HIDDEN; k++) {
        arb_set_d(f.d.place_ic + k, place_ic[k / HIDDEN][k % HIDDEN]);
        arb_set_si(f.d.held_ic + k, k % 5);
    }
    bool good = circuit_add_step(&f.d, (size_t)i, by);
    bool stated = true;
    for (int k = 0; k < CONTEXT; k++) {
        real low_c[HIDDEN], high_c[HIDDEN];
        for (int c = 0; c < HIDDEN; c++) low_c[c] = high_c[c] = (k * HIDDEN + c) % 5;
        if (k == i) stated = state_step(w, &f.has, place_ic[k], deviation, low_c, high_c);
        for (int c = 0; c < HIDDEN; c++) {
            arb_srcptr has = f.d.held_ic + k * HIDDEN + c;
            real radius = (high_c[c] - low_c[c]) / 2, middle = (high_c[c] + low_c[c]) / 2;
            real room = 16 * (ldexpl(radius, -29) + 64 * LDBL_EPSILON);
            if (isnan(middle)) continue; // 0 / 0 is stated, and is refused
            worst = keep_worst_long(worst, off(has, middle) / room);
            worst = keep_worst_long(worst, fabsl((real)mag_get_d(arb_radref(has)) - radius) / room);
        }
    }
    bool said = strcmp(f.error.text, stated ? ""
                                            : "small, layer 0: nothing is derived: a step of the "
                                              "perceptron is not beyond its ends") == 0;
    ok(worst <= 1 && good == stated && said,
       "gpt2.circuit the step at position %d, deviation %g, %s: %s worst=%.3Lg bound=1", i + 1,
       deviation, what, stated ? "written" : "refused", worst);
    _arb_vec_clear(f.d.place_ic, CONTEXT * HIDDEN), _arb_vec_clear(f.d.held_ic, CONTEXT * HIDDEN);
    arb_clear(by);
    forget(&f);
}

static void test_step(int first) {
    static const double deviations[] = {2, 4, 5.9375, 6, 7, 9};
    weights *w = small(first);
    float *up = w->a[0][SINKPROOF_W_UP], *down = w->a[0][SINKPROOF_W_DOWN];
    for (int i = 0; i < CONTEXT; i++)
        for (size_t k = 0; k < sizeof deviations / sizeof *deviations; k++)
            compare_step(w, i, deviations[k], "as it is");
    for (int c = 0; c < HIDDEN; c++) up[3 * HIDDEN + c] *= 2, down[c * INTER + 3] /= 2;
    for (int i = 0; i < CONTEXT; i++) compare_step(w, i, 4, "one neuron twice as steep");
    down[3] += 1, down[4 * INTER + 3] -= 1; // the sum over coordinates stays 0
    for (int i = 0; i < CONTEXT; i++) compare_step(w, i, 4, "slopes that do not cancel");
    down[3] -= 1;
    for (int i = 0; i < CONTEXT; i++) compare_step(w, i, 4, "a slope at coordinate 5 alone");
    free(w);
}

int main(void) {
    test_weights("synthetic:gpt2-circuit", false);
    test_weights("synthetic:gpt2-null", true);
    for (int first = 0; first < 2; first++) {
        test_found(first);
        test_step(first);
    }
    return tap_done();
}
