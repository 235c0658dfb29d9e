// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted circuit (doc/32-no-universal-mechanism.md): every weight of attention of every
// intervened run within what the model's weights imply, run over the reals and in binary64, on
// random and on repeated tokens, with both readings of EPE; outside where the intervention is left
// out or done wrongly. And what must refuse to derive.
#include "audit/verify/circuit_study.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/circuit.h"
#include "proofs/truth/truth.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { FEW = 4, SOME = 16, MANY = 32 };

static const int32_t *drawn(void) {
    static int32_t tokens_n[MANY];
    for (int i = 0; i < MANY; i++) tokens_n[i] = (i * 197 + 61) % 512;
    return tokens_n;
}

static const int32_t *repeated(void) {
    static int32_t tokens_n[MANY];
    for (int i = 0; i < MANY; i++) tokens_n[i] = 7;
    return tokens_n;
}

static sinkproof_circuit *derived_of(const sinkproof_model *model,
                                     const sinkproof_interventions *changes, bool normed,
                                     size_t n) {
    sinkproof_circuit *derived;
    sinkproof_error error = {""};
    need(circuit_study_derive(model, changes, normed, n, &derived, &error), &error);
    return derived;
}

static circuit_study study_of(const sinkproof_model *model, const sinkproof_circuit *derived,
                              const sinkproof_interventions *run, circuit_options options, size_t n,
                              const int32_t *tokens_n) {
    circuit_study study;
    sinkproof_error error = {""};
    need(circuit_study_run(model, derived, run, &options, n, tokens_n, &study, &error), &error);
    return study;
}

#define MOVE(a, b, only)                                                                           \
    {                                                                                              \
        .n_moves = 1, .move_n[0] = { only, a, b }                                                  \
    }

// What each statement does, what it says of the first two positions' weight in the last of SOME
// rows, and what must not pass for it.
typedef struct intervention {
    const char *id, *model;
    sinkproof_interventions changes;
    bool sink[2];
    const char *mistake_n[2];
    sinkproof_interventions wrong_n[2];
    bool zero_first_position;
} intervention;

static const intervention interventions[] = {
    {"gpt2.circuit", "gpt2-circuit", {0}, {true, false}, {"b_Q = 0"}, {{.zero_bq = true}}, false},
    {"gpt2.bq-zero", "gpt2-circuit", {.zero_bq = true}, {false, false}, {"left out"}, {{0}}, false},
    {"gpt2.epe-swap",
     "gpt2-circuit",
     MOVE(0, 1, true),
     {false, false},
     {"left out", "the other position gets EPE_1"},
     {{0}, MOVE(1, 0, true)},
     false},
    {"gpt2.epe-move",
     "gpt2-circuit",
     MOVE(0, 1, false),
     {false, true},
     {"position 1 alone", "one position farther"},
     {MOVE(0, 1, true), MOVE(0, 2, false)},
     false},
    {"gpt2.bos-zero",
     "gpt2-circuit",
     {.zero_bos = true},
     {true, false},
     {"p_1 = 0 in place of e_1"},
     {{0}},
     true},
    {"gpt2.wk-rows",
     "gpt2-circuit",
     {.massive_rows = true},
     {false, false},
     {"left out", "as many random rows"},
     {{0}, {.n_random = SINKPROOF_AS_MASSIVE}},
     false},
    {"gpt2.wk-random",
     "gpt2-circuit",
     {.n_random = SINKPROOF_AS_MASSIVE},
     {true, false},
     {"the massive rows"},
     {{.massive_rows = true}},
     false},
    {"gpt2.epe-move",
     "gpt2-circuit",
     {.late = true},
     {true, false},
     {"late, and moved"},
     {{.late = true, .n_moves = 1, .move_n[0] = {false, 0, 1}}},
     false},
    {"gpt2.null", "gpt2-null", {0}, {false, false}, {NULL}, {{0}}, false},
};

static const char *what_of(const intervention *v) {
    static intervention_name name;
    name = sinkproof_interventions_describe(&v->changes);
    return name.text[0] != '\0' ? name.text : "as it is";
}

// What an intervention is derived to do, for both readings of EPE; one derivation where it moves
// nothing of EPE and takes no coordinates from it.
typedef struct derivation {
    sinkproof_circuit *of[2]; // [normed]
} derivation;

static derivation derive(const sinkproof_model *model, const sinkproof_interventions *changes,
                         size_t n) {
    bool reads_epe =
        changes->late || changes->n_moves > 0 || changes->massive_rows || changes->n_random > 0;
    sinkproof_circuit *one = derived_of(model, changes, false, n);
    return (derivation){{one, reads_epe ? derived_of(model, changes, true, n) : one}};
}

static void forget(derivation *d) {
    if (d->of[1] != d->of[0]) sinkproof_circuit_free(d->of[1]);
    sinkproof_circuit_free(d->of[0]);
}

// Returns the run in binary64 of drawn tokens.
static circuit_study test_enclosed(const sinkproof_model *model, const intervention *v,
                                   const derivation *d) {
    static const struct {
        const char *how;
        circuit_options options;
        size_t n;
        bool same;
    } runs[] = {
        {"balls", {.balls = true}, FEW, false},
        {"balls, EPE normed", {.balls = true, .normed = true}, FEW, true},
        {"binary64", {0}, SOME, false},
        {"binary64, EPE normed", {.normed = true}, SOME, true},
    };
    circuit_study plain = {0};
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        const int32_t *tokens_n = runs[r].same ? repeated() : drawn();
        circuit_study s = study_of(model, d->of[runs[r].options.normed], &v->changes,
                                   runs[r].options, runs[r].n, tokens_n);
        ok(s.weights > 0 && s.outside == 0 && s.share <= 1,
           "%s %s: %s, %zu %s tokens: weights=%zu outside=%zu worst=%.3g bound=1", v->id,
           what_of(v), runs[r].how, runs[r].n, runs[r].same ? "equal" : "drawn", s.weights,
           s.outside, s.share);
        if (!runs[r].options.balls && !runs[r].same)
            plain = s;
        else
            circuit_study_free(&s);
    }
    return plain;
}

// A sink: more than nine tenths in the last of SOME rows, derived; none: less than a tenth.
static void test_says(const intervention *v, const circuit_study *s) {
    for (int j = 0; j < 2; j++)
        ok(v->sink[j] ? s->derived_least[j] > 0.9 : s->derived_most[j] < 0.1,
           "%s %s: position %d %s: %.4f to %.4f, derived %.4f to %.4f", v->id, what_of(v), j + 1,
           v->sink[j] ? "is a sink" : "is none", s->least[j], s->most[j], s->derived_least[j],
           s->derived_most[j]);
}

static void test_mistakes(const sinkproof_model *model, const intervention *v,
                          const derivation *d) {
    for (int m = 0; m < 2 && v->mistake_n[m] != NULL; m++) {
        circuit_options options = {.zero_first_position = v->zero_first_position};
        circuit_study s = study_of(model, d->of[0], &v->wrong_n[m], options, SOME, drawn());
        ok(s.outside > 0 && s.share > 1, "%s mistaken, %s: %zu of %zu weights are outside", v->id,
           v->mistake_n[m], s.outside, s.weights);
        circuit_study_free(&s);
        if (m > 0) continue;
        options.balls = true;
        s = study_of(model, d->of[0], &v->wrong_n[m], options, FEW, drawn());
        ok(s.outside > 0 && s.share > 1, "%s mistaken in balls, %s: %zu of %zu are outside", v->id,
           v->mistake_n[m], s.outside, s.weights);
        circuit_study_free(&s);
    }
}

// What a change that keeps the sink does to the weights: something, and less than the range allows.
static void test_change(const intervention *v, const circuit_study *as_it_is,
                        const circuit_study *s) {
    double change = 0;
    for (size_t k = 0; k < s->alphas; k++)
        change = sinkproof_keep_worst(change, fabs(as_it_is->alpha_lhtj[k] - s->alpha_lhtj[k]));
    double room = as_it_is->derived_most[0] - s->derived_least[0];
    ok(change > 0 && change <= room,
       "%s %s: no weight changes by more than %.3g worst=%.3g bound=1", v->id, what_of(v), change,
       change / room);
}

// EPE_1 has three massive coordinates, in both readings of it, and what the step writes there.
static void test_epe(const sinkproof_model *model) {
    enum { HIDDEN = 96, BITS = 1024 };
    static const size_t expected[] = {17, 47, 56};
    static const double written[] = {4096, -2048, -2048};
    for (int normed = 0; normed < 2; normed++) {
        arb_ptr epe_ic = _arb_vec_init(2 * HIDDEN);
        double x_c[2 * HIDDEN], off = 0;
        size_t at[HIDDEN];
        sinkproof_truth_epe(epe_ic, model, normed, 2, BITS);
        for (int c = 0; c < 2 * HIDDEN; c++)
            x_c[c] = arf_get_d(arb_midref(epe_ic + c), ARF_RND_NEAR);
        for (int k = 0; k < 3; k++)
            off = sinkproof_keep_worst(off,
                                       sinkproof_truth_distance(epe_ic + expected[k], written[k]));
        sinkproof_massive_rule rule = sinkproof_mechanism_massive(HIDDEN, x_c, 3, at);
        ok(rule.n == 3 && memcmp(at, expected, sizeof expected) == 0,
           "gpt2.circuit the rule finds 17, 47, 56 in EPE_1%s: beyond %.1f",
           normed ? ", normed" : "", rule.mean + 3 * rule.deviation);
        // 256 (y_0 - gelu(y_0) + y_1 - gelu(y_1)), y no less than 18: 1 - tanh is below e^-400.
        ok(off < exp(-400), "gpt2.circuit they are 4096, -2048, -2048%s: off by %.3g at most",
           normed ? ", normed" : "", off);
        _arb_vec_clear(epe_ic, 2 * HIDDEN);
    }
}

// The null model is the circuit without its query bias, to the last bit.
static void test_same(const sinkproof_model *circuit, const sinkproof_model *null,
                      const sinkproof_circuit *derived) {
    const circuit_options plain = {0};
    sinkproof_interventions none = {0}, zero = {.zero_bq = true};
    circuit_study a = study_of(circuit, derived, &zero, plain, SOME, drawn());
    circuit_study b = study_of(null, derived, &none, plain, SOME, drawn());
    ok(memcmp(a.alpha_lhtj, b.alpha_lhtj, a.alphas * sizeof *a.alpha_lhtj) == 0,
       "gpt2.null gpt2.bq-zero the same weights of attention");
    circuit_study_free(&a);
    circuit_study_free(&b);
}

// What the derivation knows of the states: Delta of the first position, layer by layer.
static void show_delta(const sinkproof_circuit *circuit) {
    for (size_t l = 0; l < 12; l++) {
        sinkproof_circuit_weight d = circuit_delta(circuit, l, 0);
        sinkproof_circuit_weight e = circuit_delta(circuit, l, 1);
        ok(l == 0 ? d.lo < 0 && d.hi > 0 : d.lo > 20 * e.hi,
           "gpt2.circuit layer %zu: Delta_1 within %.2f and %.2f, Delta_2 within %.2f and %.2f",
           l + 1, d.lo, d.hi, e.lo, e.hi);
    }
}

static void test_refused(const sinkproof_model *model) {
    static const struct {
        const char *spec, *said;
    } refused[] = {
        {"synthetic:tiny-gpt2", "a norm has another scale than 1 or a shift"},
        {"synthetic:tiny", "expected GPT-2 and positions of its context"},
    };
    sinkproof_error error;
    sinkproof_circuit *circuit;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        sinkproof_model *other = open_model(refused[i].spec);
        sinkproof_circuit_run run = {.model = other, .n = 4};
        bool derived = sinkproof_circuit_derive(&run, 128, &circuit, &error);
        ok(!derived && strstr(error.text, refused[i].said) != NULL, "gpt2.circuit refused: %s",
           error.text);
        sinkproof_model_close(other);
    }
    sinkproof_circuit_run longer = {.model = model, .n = 129};
    ok(!sinkproof_circuit_derive(&longer, 128, &circuit, &error), "gpt2.circuit refused: %s",
       error.text);
    sinkproof_interventions two = {.n_rows = 2, .row_n = {17, 47}}; // one massive row remains
    bool good = circuit_study_derive(model, &two, false, SOME, &circuit, &error);
    ok(!good && strstr(error.text, "another sum than 0") != NULL, "gpt2.wk-rows refused: %s",
       error.text);
}

// The derivation for many positions holds a run of so many.
static void test_many(const sinkproof_model *model, const sinkproof_circuit *derived) {
    sinkproof_interventions none = {0};
    circuit_study s = study_of(model, derived, &none, (circuit_options){0}, MANY, drawn());
    ok(s.weights > 0 && s.outside == 0 && s.share <= 1,
       "gpt2.circuit binary64, %d drawn tokens: weights=%zu outside=%zu worst=%.3g bound=1",
       (int)MANY, s.weights, s.outside, s.share);
    circuit_study_free(&s);
}

int main(void) {
    sinkproof_model *circuit = open_model("synthetic:gpt2-circuit");
    sinkproof_model *null = open_model("synthetic:gpt2-null");
    circuit_study as_it_is = {0};
    test_epe(circuit);
    for (size_t k = 0; k < sizeof interventions / sizeof *interventions; k++) {
        const intervention *v = &interventions[k];
        const sinkproof_model *model = strcmp(v->model, "gpt2-null") == 0 ? null : circuit;
        derivation d = derive(model, &v->changes, k == 0 ? MANY : SOME);
        if (k == 0) show_delta(d.of[0]), test_many(circuit, d.of[0]);
        if (model == null) test_same(circuit, null, d.of[0]);
        circuit_study s = test_enclosed(model, v, &d);
        test_says(v, &s);
        test_mistakes(model, v, &d);
        if (v->changes.zero_bos || v->changes.n_random > 0) test_change(v, &as_it_is, &s);
        if (k == 0)
            as_it_is = s; // the first changes nothing
        else
            circuit_study_free(&s);
        forget(&d);
    }
    circuit_study_free(&as_it_is);
    test_refused(circuit);
    sinkproof_model_close(circuit);
    sinkproof_model_close(null);
    return tap_done();
}
