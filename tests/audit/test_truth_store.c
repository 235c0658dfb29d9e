// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bytes of a work file: what is written is read back, to the bit; a walk goes on from any layer
// to the same logits, accounts and routing; damaged and hostile bytes are refused or harmless.
#include "audit/verify/truth_store.h"
#include "base/fnv.h"
#include "base/splitmix.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3, SEED = 7, BITS = 128, LAYERS = 4 };
static const char identity[] = "sinkproof-truth-work-1\nbits 128\n";
static const int32_t tokens_n[N] = {5, 0, 12};

static sinkproof_model *model;
static struct kept {
    uint8_t *bytes;
    size_t length;
} kept_l[LAYERS + 1];

static bool keep(void *context, const sinkproof_truth_state *state, sinkproof_error *error) {
    const truth_study *study = context;
    truth_store store = {.bits = BITS, .repeats = 2, .points = 11, .points_sum = 13};
    (void)error;
    store.state = *state;
    struct kept *k = &kept_l[state->layers];
    free(k->bytes);
    k->bytes = store_bytes(identity, &store, study, &k->length);
    return k->bytes != NULL;
}

static void new_study(truth_study *study) {
    sinkproof_study_init(study, sinkproof_model_config(model), NULL, N, false, false);
    study->layer = keep;
    study->context = study;
}

static bool walk(truth_study *study, const sinkproof_truth_state *start,
                 sinkproof_truth_result *result, sinkproof_error *error) {
    sinkproof_truth_hooks hooks = sinkproof_study_hooks(study);
    sinkproof_truth_request request = {.model = model,
                                       .n = N,
                                       .tokens_n = tokens_n,
                                       .bits = BITS,
                                       .check_rows = 2,
                                       .hooks = &hooks,
                                       .start = start};
    return sinkproof_truth_forward(&request, result, error);
}

static bool parse(const uint8_t *bytes, size_t length, truth_store *store, truth_study *study,
                  sinkproof_error *error) {
    new_study(study);
    return store_parse(bytes, length, "work", identity, store, study, error);
}

static bool same_summaries(const truth_study *a, const truth_study *b) {
    bool same = memcmp(a->layers, b->layers, LAYERS * sizeof *a->layers) == 0;
    for (size_t p = 0; p < TRACE_POINTS; p++) {
        const truth_summary *x = &a->points[p], *y = &b->points[p];
        same = same && x->elements == y->elements && x->radius_log2 == y->radius_log2 &&
               x->relative_log2 == y->relative_log2 && x->relative_layer == y->relative_layer &&
               x->relative_at == y->relative_at && x->rank == y->rank &&
               memcmp(x->shape, y->shape, sizeof x->shape) == 0;
    }
    return same;
}

// From the state after each layer to the end, which is that of the walk from the tokens.
static void resume(void) {
    truth_study whole, rest;
    truth_store store;
    sinkproof_truth_result a, b;
    sinkproof_error error = {""};
    new_study(&whole);
    if (!ok(walk(&whole, NULL, &a, &error), "model.forward walked from the tokens %s", error.text))
        return;
    for (size_t l = 1; l <= LAYERS; l++) {
        struct kept from = kept_l[l];
        kept_l[l] = (struct kept){NULL, 0};
        bool read = parse(from.bytes, from.length, &store, &rest, &error);
        bool told = read && store.bits == BITS && store.repeats == 2 && store.points == 11 &&
                    store.points_sum == 13 && store.state.layers == l;
        bool done = told && walk(&rest, &store.state, &b, &error);
        size_t unequal = 0;
        for (size_t i = 0; done && i < N * a.vocab; i++)
            unequal += !arb_equal(a.logits_nv + i, b.logits_nv + i);
        ok(done && unequal == 0,
           "model.forward behind layer %zu: unequal logits worst=%zu bound=0 %s", l - 1, unequal,
           error.text);
        ok(done && a.routing.choices == b.routing.choices && a.routing.layer == b.routing.layer &&
               a.routing.token == b.routing.token &&
               arb_equal(a.routing.margin, b.routing.margin) &&
               memcmp(&a.checks, &b.checks, sizeof a.checks) == 0 && same_summaries(&whole, &rest),
           "model.forward behind layer %zu: the same accounts", l - 1);
        if (done) sinkproof_truth_result_clear(&b);
        if (read) sinkproof_store_clear(&store, &rest);
        sinkproof_study_clear(&rest);
        if (kept_l[l].bytes == NULL)
            kept_l[l] = from; // the state that was read is not written again
    }
    sinkproof_truth_state beyond = {.layers = LAYERS + 1};
    new_study(&rest);
    ok(!walk(&rest, &beyond, &b, &error) &&
           strcmp(error.text, "truth cannot begin behind 5 layers of 4") == 0,
       "model.forward refuses: %s", error.text);
    sinkproof_study_clear(&rest);
    sinkproof_truth_result_clear(&a);
    sinkproof_study_clear(&whole);
}

// Balls that no layer makes: signs, ends, many limbs, exponents near the largest that is stored.
static void balls(void) {
    truth_study study, read;
    truth_store store = {.bits = 64}, back;
    sinkproof_error error = {""};
    new_study(&study);
    size_t n = N * study.config->hidden, length, unequal = 0;
    uint64_t state = SEED;
    arb_ptr x = store.state.values = ball_vector(n);
    store.state.layers = 1;
    store.state.routing.margin = ball_vector(1);
    store.state.routing.first_margin = ball_vector(1);
    arb_neg_inf(store.state.routing.margin);
    arb_indeterminate(store.state.routing.first_margin);
    for (size_t i = 0; i < n; i++) {
        uint64_t draw = sinkproof_draw(&state);
        arb_set_ui(x + i, draw | 1);
        for (size_t k = 0; k < draw % 5; k++) arb_mul_ui(x + i, x + i, draw | 1, 1000);
        if (draw & 64) arb_neg(x + i, x + i);
        arb_mul_2exp_si(x + i, x + i, (slong)(draw >> 7) % 5000 - 2500);
        if (draw & 128) mag_set_ui_2exp_si(arb_radref(x + i), draw >> 40 | 1, (slong)draw % 3000);
    }
    arb_zero(x), arb_pos_inf(x + 1), arb_neg_inf(x + 2), arb_indeterminate(x + 3);
    arb_zero_pm_inf(x + 4), arb_zero_pm_one(x + 5), arb_one(x + 6);
    arb_mul_2exp_si(x + 6, x + 6, (WORD(1) << 60) - 1);
    uint8_t *bytes = store_bytes(identity, &store, &study, &length);
    bool good = bytes != NULL && parse(bytes, length, &back, &read, &error);
    for (size_t i = 0; good && i < n; i++)
        unequal +=
            !arb_equal(x + i, back.state.values + i) &&
            !(arf_is_nan(arb_midref(x + i)) && arf_is_nan(arb_midref(back.state.values + i)) &&
              mag_equal(arb_radref(x + i), arb_radref(back.state.values + i)));
    ok(good && unequal == 0,
       "%zu balls are read as they were written, unequal worst=%zu bound=0 %s", n, unequal,
       error.text);
    if (good) sinkproof_store_clear(&back, &read);
    if (bytes != NULL) sinkproof_study_clear(&read);
    free(bytes);
    arb_mul_2exp_si(x + 6, x + 6, 1);
    bytes = store_bytes(identity, &store, &study, &length);
    ok(bytes == NULL, "a ball beyond 2^(2^60) is not stored");
    free(bytes);
    sinkproof_store_clear(&store, &study);
    sinkproof_study_clear(&study);
}

static void write_sum(uint8_t *bytes, size_t length) {
    uint64_t sum = sinkproof_fnv(SINKPROOF_FNV_NOTHING, bytes, length - 8);
    for (int i = 0; i < 8; i++) bytes[length - 8 + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

// Every single changed byte and every cut is refused by the sum. With the sum made right again the
// numbers may be others, but nothing is read that is not there.
static void damage(void) {
    const struct kept *k = &kept_l[2];
    truth_store store;
    truth_study study;
    sinkproof_error error = {""};
    uint8_t *bytes = malloc(k->length);
    uint64_t state = SEED;
    size_t accepted = 0, tried = 0, refused = 0, silent = 0;
    if (bytes == NULL) abort();
    for (size_t cut = 0; cut < k->length; cut += cut < 400 ? 1 : 97, tried++) {
        bool read = parse(k->bytes, cut, &store, &study, &error);
        accepted += read;
        silent += error.text[0] == '\0';
        if (read) sinkproof_store_clear(&store, &study);
        sinkproof_study_clear(&study);
    }
    for (size_t at = 0; at < k->length; at += 61, tried++) {
        memcpy(bytes, k->bytes, k->length);
        bytes[at] ^= (uint8_t)(1 << sinkproof_draw(&state) % 8);
        bool read = parse(bytes, k->length, &store, &study, &error);
        accepted += read;
        if (read) sinkproof_store_clear(&store, &study);
        sinkproof_study_clear(&study);
    }
    ok(accepted == 0 && silent == 0, "of %zu damaged files accepted worst=%zu bound=0, seed=%d",
       tried, accepted, SEED);
    for (tried = 0; tried < 3000; tried++) {
        size_t length = tried % 3 ? k->length : k->length - 8 * (sinkproof_draw(&state) % 200);
        memcpy(bytes, k->bytes, k->length);
        for (size_t c = 0; c <= tried % 4; c++) {
            size_t words =
                (length - sizeof identity) / 8; // most of the words that count come first
            size_t at = sizeof identity + 8 * (sinkproof_draw(&state) % (tried % 2 ? words : 320)) +
                        sinkproof_draw(&state) % 8;
            bytes[at] = (uint8_t)sinkproof_draw(&state);
        }
        write_sum(bytes, length);
        bool read = parse(bytes, length, &store, &study, &error);
        refused += !read;
        if (read) sinkproof_store_clear(&store, &study);
        sinkproof_study_clear(&study);
    }
    ok(refused > 500, "of %zu hostile files with a right sum %zu are refused, seed=%d", tried,
       refused, SEED);
    free(bytes);
}

int main(void) {
    sinkproof_error error = {""};
    if (!sinkproof_model_open("synthetic:tiny", &model, &error)) return 1;
    resume();
    balls();
    damage();
    for (size_t l = 0; l <= LAYERS; l++) free(kept_l[l].bytes);
    sinkproof_model_close(model);
    flint_cleanup();
    return tap_done();
}
