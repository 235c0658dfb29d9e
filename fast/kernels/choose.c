// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures instruction sets to choose one. The time is the thread's own processor time, which
// excludes most other work on the machine. The smallest of several times counts, since a
// disturbance only adds, and the sets take turns, so that a change of the clock affects all of
// them.
#include "fast/kernels/choose.h"

#include "base/splitmix.h"
#include "fast/kernels/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS = 512,
    COLS = 1024,
    TOKENS = SINKPROOF_ISA_TOKENS,
    FORMATS = 2,
    FIRST = 3,  // times of one token before a slow set is dropped
    ROUNDS = 9, // at most
    LEAST = 3,  // rounds even if they take longer than SPENT, but not longer than LONG
    FAR = 4,    // a set that is this many times slower is dropped
    SPENT = 60, // milliseconds after which no further round begins
    LONG = 600, // milliseconds after which none begins at all: an emulated processor
};

static const sinkproof_panel_format formats[FORMATS] = {SINKPROOF_PANEL_BF16,
                                                        SINKPROOF_PANEL_MXFP4};

// The operands, in one allocation.
typedef struct operands {
    uint8_t *memory, *scratch;
    sinkproof_panels weight[FORMATS];
    const float *x_n[TOKENS];
    const uint16_t *x16_n[TOKENS];
    float *y_n[TOKENS];
} operands;

// Random bits, or bf16 numbers with a size from 1/2 up to 1.
static void fill_random(uint8_t *data, size_t bytes, bool bf16) {
    const uint64_t keep = bf16 ? 0x807f807f807f807fu : ~UINT64_C(0);
    const uint64_t set = bf16 ? 0x3f003f003f003f00u : 0;
    uint64_t state = 1;
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word = (sinkproof_draw(&state) & keep) | set;
        memcpy(data + at, &word, sizeof word);
    }
}

static void make_weights(sinkproof_panels *w, sinkproof_panel_format format, uint8_t *memory) {
    enum { ONE = 127, HALF = 126 }; // the scale 1; the exponent field of numbers from 1/2
    bool bf16 = format == SINKPROOF_PANEL_BF16;
    *w = sinkproof_panels_at(format, ROWS, COLS, memory);
    fill_random(memory, w->panels * w->panel_stride, bf16);
    if (bf16)
        memset((uint8_t *)w->least_p, HALF, w->panels);
    else
        memset((uint8_t *)w->scales, ONE,
               w->panels * w->blocks * sinkproof_panel_scale_bytes(format));
}

static bool make_operands(operands *o, sinkproof_error *error) {
    const size_t weight = sinkproof_panels_bytes(formats[0], ROWS, COLS);
    const size_t codes = sinkproof_panels_bytes(formats[1], ROWS, COLS);
    const size_t x = (size_t)TOKENS * COLS * sizeof(float);
    const size_t x16 = (size_t)TOKENS * COLS * sizeof(uint16_t);
    const size_t y = (size_t)TOKENS * ROWS * sizeof(float);
    o->memory = aligned_alloc(64, SINKPROOF_SCRATCH + weight + codes + x + x16 + y);
    if (o->memory == NULL)
        return sinkproof_fail(error, "no memory to measure the instruction sets");
    uint8_t *at = o->scratch = o->memory;
    at += SINKPROOF_SCRATCH;
    make_weights(&o->weight[0], formats[0], at);
    make_weights(&o->weight[1], formats[1], at += weight);
    float *x_nc = (float *)(void *)(at += codes);
    uint16_t *x16_nc = (uint16_t *)(void *)(at += x);
    float *y_nr = (float *)(void *)(at += x16);
    fill_random((uint8_t *)x16_nc, x16, true);
    for (size_t i = 0; i < (size_t)TOKENS * COLS; i++) {
        uint32_t bits = (uint32_t)x16_nc[i] << 16;
        memcpy(&x_nc[i], &bits, sizeof bits);
    }
    for (size_t i = 0; i < TOKENS; i++) {
        o->x_n[i] = x_nc + i * COLS;
        o->x16_n[i] = x16_nc + i * COLS;
        o->y_n[i] = y_nr + i * ROWS;
    }
    return true;
}

static double thread_seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

// The smallest times so far; 0: none.
typedef struct least {
    double t[SINKPROOF_ISA_USES][FORMATS];
} least;

static void take_times(const sinkproof_kernels *table, operands *o, sinkproof_isa_use use,
                       least *to) {
    for (int f = 0; f < FORMATS; f++) {
        const sinkproof_panels *w = &o->weight[f];
        sinkproof_product product = {.weight = w,
                                     .n = use == SINKPROOF_ISA_ONE ? 1 : TOKENS,
                                     .x_n = o->x_n,
                                     .x16_n = o->x16_n,
                                     .y_n = o->y_n};
        double start = thread_seconds();
        table->linear(&product, 0, w->panels, o->scratch);
        double t = thread_seconds() - start;
        if (!(t > 0)) t = 1e-9; // a coarse clock
        if (to->t[use][f] == 0 || t < to->t[use][f]) to->t[use][f] = t;
    }
}

static double sum_of_least(const least *l, sinkproof_isa_use use) {
    return l->t[use][0] + l->t[use][1];
}

// Whether a later table of the mode is much faster for one token.
static bool later_table_is_faster(const sinkproof_kernels *const *tables, size_t n, size_t i,
                                  const least *l) {
    bool far = false;
    for (size_t k = i + 1; k < n; k++)
        far = far || (sum_of_least(&l[k], SINKPROOF_ISA_ONE) > 0 &&
                      strcmp(tables[k]->mode, tables[i]->mode) == 0 &&
                      sum_of_least(&l[i], SINKPROOF_ISA_ONE) >
                          FAR * sum_of_least(&l[k], SINKPROOF_ISA_ONE));
    return far;
}

bool sinkproof_isa_measure(const sinkproof_kernels *const *tables, sinkproof_isa_times *times,
                           sinkproof_error *error) {
    operands o;
    least l[SINKPROOF_ISA_SETS] = {0};
    bool asked[SINKPROOF_ISA_SETS] = {false};
    size_t n = 0;
    *times = (sinkproof_isa_times){0};
    if (!make_operands(&o, error)) return false;
    while (n < SINKPROOF_ISA_SETS && tables[n] != NULL) n++;
    for (size_t i = n; i-- > 0;) { // the fastest sets come first
        if (!sinkproof_isa_runs(tables[i], NULL)) continue;
        for (int k = 0; k < FIRST; k++) take_times(tables[i], &o, SINKPROOF_ISA_ONE, &l[i]);
        asked[i] = !later_table_is_faster(tables, n, i, l);
    }
    double start = thread_seconds();
    for (int round = 0; round < ROUNDS && (round == 0 || thread_seconds() - start <
                                                             1e-3 * (round < LEAST ? LONG : SPENT));
         round++)
        for (size_t i = 0; i < n; i++)
            for (int use = 0; asked[i] && use < SINKPROOF_ISA_USES; use++)
                take_times(tables[i], &o, (sinkproof_isa_use)use, &l[i]);
    for (size_t i = 0; i < n; i++)
        for (int use = 0; use < SINKPROOF_ISA_USES; use++)
            times->seconds[i][use] = sum_of_least(&l[i], (sinkproof_isa_use)use);
    free(o.memory);
    return true;
}

const sinkproof_kernels *sinkproof_isa_fastest(const sinkproof_kernels *const *tables,
                                               const char *mode, sinkproof_isa_use use,
                                               const sinkproof_isa_times *times) {
    const sinkproof_kernels *best = NULL;
    double least_time = 0;
    size_t n = 0;
    while (n < SINKPROOF_ISA_SETS && tables[n] != NULL) n++;
    for (size_t i = n; i-- > 0;) {
        double t = times->seconds[i][use];
        if (!(t > 0) || strcmp(tables[i]->mode, mode) != 0) continue;
        if (best != NULL && !(t * (SINKPROOF_ISA_RANK + 1) < least_time * SINKPROOF_ISA_RANK))
            continue;
        best = tables[i];
        least_time = t;
    }
    return best;
}

const char *sinkproof_isa_names(const sinkproof_kernels *of_one, const sinkproof_kernels *of_many,
                                char *text) {
    bool same = of_one == of_many;
    snprintf(text, SINKPROOF_ISA_NAMES, "%s%s%s", of_one->isa, same ? "" : "+",
             same ? "" : of_many->isa);
    return text;
}
