// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The choice of an instruction set from measured times: a function of the times, asked with planted
// ones; that the measurement fills in what runs here; and that an engine with one set for passes of
// one token and another for the rest gives the bits of either.
#include "fast/engine/engine.h"
#include "fast/kernels/choose.h"
#include "fast/kernels/isa.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <float.h>
#include <math.h>
#include <string.h>

// ---- planted times -----------------------------------------------------------------------------

enum { PLANTED = 5 };
static const sinkproof_kernels table[PLANTED] = {{.isa = "slow", .mode = "lanes"},
                                                 {.isa = "wide", .mode = "lanes"},
                                                 {.isa = "wider", .mode = "lanes"},
                                                 {.isa = "pairs", .mode = "lanes"},
                                                 {.isa = "tiles", .mode = "tiles"}};
static const sinkproof_kernels *const planted[] = {&table[0], &table[1], &table[2],
                                                   &table[3], &table[4], NULL};

static const struct choice {
    const char *what;
    double seconds[PLANTED];
    int expected; // -1: none
} choices[] = {
    {"the last where all take as long", {1, 1, 1, 1, 1}, 3},
    {"the fastest", {4, 3, 1, 2, 9}, 2},
    {"the first, if it is the fastest by far", {1, 3, 3, 2, 9}, 0},
    {"the last, if another is faster by less than 1/16", {9, 9, 16.0 / 17, 1, 9}, 3},
    {"another that is faster by more", {9, 9, 16.0 / 17 - DBL_EPSILON, 1, 9}, 2},
    {"no table of another mode, however fast", {9, 9, 9, 2, 1e-9}, 3},
    {"no table that was not measured", {3, 2, 1, 0, 1}, 2},
    {"no time that is no number", {3, 2, 1, NAN, 1}, 2},
    {"no time below zero", {3, 2, 1, -1, 1}, 2},
    {"none where none was measured", {0, 0, 0, 0, 1}, -1},
    {"the only one", {5, 0, 0, 0, 1}, 0},
};

static void test_planted(void) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *c = &choices[i];
        size_t wrong = 0;
        for (int use = 0; use < SINKPROOF_ISA_USES; use++) {
            sinkproof_isa_times times = {0};
            for (int k = 0; k < PLANTED; k++) { // the other use has other times
                times.seconds[k][use] = c->seconds[k];
                times.seconds[k][1 - use] = k == 1 ? 1e-6 : 1;
            }
            const sinkproof_kernels *found =
                sinkproof_isa_fastest(planted, "lanes", (sinkproof_isa_use)use, &times);
            wrong += found != (c->expected < 0 ? NULL : &table[c->expected]);
        }
        ok(wrong == 0, "of planted times %s", c->what);
    }
    char text[SINKPROOF_ISA_NAMES];
    ok(strcmp(sinkproof_isa_names(&table[3], &table[3], text), "pairs") == 0 &&
           strcmp(sinkproof_isa_names(&table[3], &table[2], text), "pairs+wider") == 0,
       "one name where one set runs, two where two do");
}

// ---- what runs here ----------------------------------------------------------------------------

static void test_measured(void) {
    sinkproof_isa_times times;
    sinkproof_error error;
    const sinkproof_kernels *const *all = sinkproof_isa_all();
    size_t wrong = 0, asked = 0, n = 0;
    bool measured = sinkproof_isa_measure(all, &times, &error);
    for (; measured && all[n] != NULL; n++) {
        bool runs = sinkproof_isa_runs(all[n], NULL);
        const double *t = times.seconds[n];
        wrong += runs != (t[SINKPROOF_ISA_ONE] > 0) || (!runs && t[SINKPROOF_ISA_MANY] != 0);
        asked += t[SINKPROOF_ISA_MANY] > 0;
    }
    ok(measured && n <= SINKPROOF_ISA_SETS && wrong == 0,
       "of %zu sets those that run have a time for one token, and no others: %zu wrong", n, wrong);
    const sinkproof_kernels *one = sinkproof_isa_fastest(all, "lanes", SINKPROOF_ISA_ONE, &times);
    const sinkproof_kernels *many = sinkproof_isa_fastest(all, "lanes", SINKPROOF_ISA_MANY, &times);
    ok(asked > 0 && one != NULL && many != NULL && sinkproof_isa_runs(one, NULL) &&
           sinkproof_isa_runs(many, NULL),
       "the fastest of mode lanes run here: %s for one token, %s for many (%zu sets asked)",
       one != NULL ? one->isa : "none", many != NULL ? many->isa : "none", asked);
}

// ---- two sets in one engine --------------------------------------------------------------------

enum { TOKENS = 9, PROMPT = 5 };

// Logits of a prompt and of the tokens after it, one by one.
static bool run(const sinkproof_model *model, const sinkproof_kernels *of_one,
                const sinkproof_kernels *of_many, float *logits, sinkproof_error *error) {
    const int32_t tokens[TOKENS] = {1, 5, 2, 9, 4, 7, 7, 3, 8};
    size_t vocab = sinkproof_model_config(model)->vocab;
    sinkproof_policy policy;
    sinkproof_engine *engine;
    sinkproof_engine_options options = {.kernels = of_many, .kernels_of_one = of_one, .threads = 2};
    if (!sinkproof_policy_parse("bf16-operands", &policy, error) ||
        !sinkproof_engine_new(model, &policy, &options, &engine, error))
        return false;
    sinkproof_sequence *sequence = sinkproof_sequence_new(engine, TOKENS, error);
    bool good = sequence != NULL && sinkproof_engine_kernels(engine) == of_many &&
                sinkproof_engine_kernels_one_token(engine) == (of_one != NULL ? of_one : of_many);
    for (size_t done = 0; good && done < TOKENS;) {
        size_t n = done == 0 ? PROMPT : 1;
        sinkproof_part part = {sequence, n, tokens + done, logits + done * vocab, true};
        good = sinkproof_engine_forward(engine, 1, &part, NULL, error);
        done += n;
    }
    sinkproof_sequence_free(sequence);
    sinkproof_engine_free(engine);
    return good;
}

static void test_engine(const sinkproof_model *model) {
    size_t numbers = TOKENS * sinkproof_model_config(model)->vocab, wrong = 0, pairs = 0;
    float *expected = calloc(numbers, sizeof *expected), *found = calloc(numbers, sizeof *found);
    sinkproof_error error = {{0}};
    must(expected != NULL && found != NULL);
    bool good = run(model, NULL, &kernels_portable, expected, &error);
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++)
        for (size_t k = 0; sinkproof_isa_all()[k] != NULL; k++) {
            const sinkproof_kernels *one = sinkproof_isa_all()[i], *many = sinkproof_isa_all()[k];
            if (strcmp(one->mode, "lanes") != 0 || strcmp(many->mode, "lanes") != 0 ||
                !sinkproof_isa_runs(one, NULL) || !sinkproof_isa_runs(many, NULL))
                continue;
            good = good && run(model, one, many, found, &error);
            wrong += memcmp(expected, found, numbers * sizeof *found) != 0;
            pairs++;
        }
    ok(good && wrong == 0 && pairs > 0,
       "passes of one token on one set, others on another: %zu pairs, %zu with other bits %s",
       pairs, wrong, error.text);
    free(expected);
    free(found);
}

static void test_modes(const sinkproof_model *model) {
    sinkproof_kernels other = kernels_portable;
    sinkproof_error error = {{0}};
    other.mode = "other";
    ok(!run(model, &other, &kernels_portable, NULL, &error) &&
           strstr(error.text, "expected mode lanes") != NULL,
       "sets of two modes are refused: %s", error.text);
}

int main(void) {
    test_planted();
    test_measured();
    sinkproof_model *model = open_model("synthetic:tiny");
    test_engine(model);
    test_modes(model);
    sinkproof_model_close(model);
    return tap_done();
}
