// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the kernel tests: numbers from a seed, arrays between guards, comparison of bits, and a
// loop over every instruction set that this machine runs.
#ifndef SINKPROOF_TESTS_KERNELS_H
#define SINKPROOF_TESTS_KERNELS_H

#include "base/splitmix.h"
#include "fast/kernels/isa.h"
#include "fast/lanes/stages.h"
#include "tests/shared/ran_on.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 1;

static inline uint32_t random_word(void) {
    return (uint32_t)(sinkproof_draw(&random_state) >> 32);
}

// In (-1, 1), with all 24 bits random, and small numbers often enough.
static inline float random_float(void) {
    float size = ldexpf((float)(random_word() >> 8), -24 - (int)(random_word() % 8));
    return random_word() % 2 == 0 ? size : -size;
}

static inline float bf16_of(float x) {
    return (float)sinkproof_round(SINKPROOF_BF16, x);
}

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// The same bits, or both NaN.
static inline bool same(float a, float b) {
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

// n floats of a value that nothing computes, with a vector's width of guards on either side.
enum { GUARD = 16 };
static const uint32_t guard_bits = 0x7fedcba9; // a NaN

static inline void paint(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) memcpy(x + i, &guard_bits, sizeof guard_bits);
}

static inline float *guarded(size_t n) {
    float *all = aligned_alloc(64, (n + 2 * GUARD + 15) / 16 * 64);
    paint(all, n + 2 * GUARD);
    return all + GUARD;
}

static inline bool guards_hold(const float *x, size_t n) {
    for (size_t i = 0; i < GUARD; i++)
        if (bits_of(x[-1 - (int)i]) != guard_bits || bits_of(x[n + i]) != guard_bits) return false;
    return true;
}

static inline void free_guarded(float *x) {
    free(x - GUARD);
}

// False under qemu, where the processor itself is emulated.
static inline bool on_hardware(void) {
    return getenv("SINKPROOF_EMULATED") == NULL;
}

// The tables of mode "lanes" that run here, and what each got wrong of the same cases.
enum { MOST_SETS = 8 };
typedef struct asked_sets {
    const sinkproof_kernels *of[MOST_SETS];
    size_t n, wrong[MOST_SETS];
} asked_sets;

static inline asked_sets sets_here(void) {
    asked_sets sets = {.n = 0};
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++) {
        const char *why;
        if (strcmp((*k)->mode, "lanes") != 0) continue;
        if (!sinkproof_isa_runs(*k, &why))
            note("%s: %s", (*k)->isa, why);
        else if (sets.n < MOST_SETS)
            sets.of[sets.n++] = *k;
    }
    return sets;
}

// Tells of each set whether all was right, "lanes.attention SET what, so many cases", and begins
// to count anew.
static inline void tell_sets(asked_sets *sets, const char *what, size_t cases) {
    for (size_t k = 0; k < sets->n; k++) {
        bool lanes = strcmp(sets->of[k]->mode, "lanes") == 0;
        if (lanes) tap_ran_on(sets->of[k]->isa, on_hardware());
        ok(sets->wrong[k] == 0, "lanes.attention %s %s, %zu cases", sets->of[k]->isa, what, cases);
        if (lanes) tap_ran_on(NULL, false);
        sets->wrong[k] = 0;
    }
}

// Calls `test` with each table of mode "lanes" that runs here; its lines name the table.
static inline void on_every_set(void (*test)(const sinkproof_kernels *)) {
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++) {
        const char *why;
        if (strcmp((*k)->mode, "lanes") != 0) continue;
        if (!sinkproof_isa_runs(*k, &why)) {
            note("%s: %s", (*k)->isa, why);
            continue;
        }
        tap_ran_on((*k)->isa, on_hardware());
        test(*k);
        tap_ran_on(NULL, false);
    }
}

#endif
