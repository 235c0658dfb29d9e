// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/blas_core.h"

#include "base/splitmix.h"
#include "fast/kernels/isa.h"
#include "proofs/bounds/bounds.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CORE  "OPENBLAS_CORETYPE"
#define OWN   "SINKPROOF_BLAS_OWN"   // of a second start: the core that the library chose
#define WRONG "SINKPROOF_BLAS_WRONG" // of a third: a wider core's products were not exact

static bool is_one_of(const char *core, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcasecmp(core, names[i]) == 0) return true;
    return false;
}

const char *blas_core_better(const char *core, bool avx2, bool avx512) {
    // OpenBLAS's names of the cores whose products use the set.
    static const char *const with_avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
    static const char *const with_avx2[] = {"Haswell", "Zen", "Excavator", NULL};
    if (is_one_of(core, with_avx512)) return NULL;
    if (avx512) return "SkylakeX";
    return avx2 && !is_one_of(core, with_avx2) ? "Haswell" : NULL;
}

static bool runs_here(const char *isa) {
    const char *why;
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++)
        if (strcmp((*k)->isa, isa) == 0) return sinkproof_isa_runs(*k, &why);
    return false;
}

// A whole number of 20 bits, of either sign.
static int32_t draw_whole(uint64_t *seed) {
    return (int32_t)(sinkproof_draw(seed) >> 44) - (1 << 19);
}

bool blas_core_exact(blas_times *times) {
    enum { M = 67, R = 53, K = 259 }; // none is a multiple of a tile
    static const size_t shapes[][3] = {{M, R, K}, {1, R, 64}, {M, 1, K}, {16, 24, 128}, {5, 3, 1}};
    int32_t *x = malloc(sizeof *x * M * K), *y = malloc(sizeof *y * R * K);
    double *xs = malloc(sizeof *xs * M * K), *ys = malloc(sizeof *ys * R * K);
    double *c = malloc(sizeof *c * M * R);
    if (x == NULL || y == NULL || xs == NULL || ys == NULL || c == NULL) abort();
    uint64_t seed = 1;
    for (size_t i = 0; i < (size_t)M * K; i++) xs[i] = x[i] = draw_whole(&seed);
    for (size_t i = 0; i < (size_t)R * K; i++) ys[i] = y[i] = draw_whole(&seed);
    bool exact = true;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        size_t m = shapes[s][0], r = shapes[s][1], k = shapes[s][2];
        times(m, r, k, xs, ys, c, r);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < r; j++) {
                int64_t sum = 0; // below 259 * 2^38 < 2^53
                for (size_t l = 0; l < k; l++) sum += (int64_t)x[i * k + l] * y[j * k + l];
                exact = exact && c[i * r + j] == (double)sum;
            }
    }
    free(x);
    free(y);
    free(xs);
    free(ys);
    free(c);
    return exact;
}

// A second start with the core `core`; returns where the system refuses it.
static void start_again(char **argv, const char *core, const char *mark, const char *value) {
    if (setenv(CORE, core, 1) != 0 || setenv(mark, value, 1) != 0) return;
    execv("/proc/self/exe", argv);
    unsetenv(CORE);
    unsetenv(mark);
}

void blas_core_choose(char **argv) {
    const char *own = getenv(OWN), *core = sinkproof_times_core();
    if (own != NULL) {
        if (getenv(WRONG) == NULL && !blas_core_exact(sinkproof_matrix_times))
            start_again(argv, own, WRONG, "1");
        return;
    }
    if (getenv(CORE) != NULL) return;
    const char *better = blas_core_better(core, runs_here("avx2"), runs_here("avx512"));
    if (better != NULL) start_again(argv, better, OWN, core);
}

blas_core blas_core_known(void) {
    const char *core = sinkproof_times_core(), *own = getenv(OWN);
    if (getenv(WRONG) != NULL)
        return (blas_core){.core = core,
                           .why = "the library's own: products of a wider one are not exact here"};
    if (own == NULL)
        return (blas_core){.core = core,
                           .why = getenv(CORE) != NULL ? CORE " names it" : "the library's own"};
    if (strcasecmp(own, core) == 0)
        return (blas_core){.core = core, .why = "the library's own: it refused a wider one"};
    return (blas_core){.core = core, .own = own, .why = "wider than the library's own choice"};
}
