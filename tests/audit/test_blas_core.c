// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which core of OpenBLAS suits which instruction sets, and that wrong products are noticed.
#include "audit/command/blas_core.h"
#include "proofs/bounds/bounds.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

// Products that are wrong in one element, where a kernel's edge would be.
static size_t wrong_row, wrong_column, wrong_k;
static double wrong_by;
static void wrong_times(size_t m, size_t r, size_t k, const double *x, const double *y, double *c,
                        size_t stride) {
    sinkproof_matrix_times(m, r, k, x, y, c, stride);
    if (wrong_row < m && wrong_column < r && k > wrong_k)
        c[wrong_row * stride + wrong_column] += wrong_by;
}

static bool same(const char *found, const char *expected) {
    return found == NULL || expected == NULL ? found == expected : strcmp(found, expected) == 0;
}

int main(void) {
    ok(blas_core_exact(sinkproof_matrix_times), "products of integers are exact");
    bool noticed = true;
    for (wrong_row = 0; wrong_row < 67; wrong_row += 33)
        for (wrong_column = 0; wrong_column < 53; wrong_column += 26)
            for (size_t by = 0; by < 3; by++) {
                wrong_by = (double[]){1, -1048576, NAN}[by];
                noticed = noticed && !blas_core_exact(wrong_times);
            }
    ok(noticed, "one wrong element of any shape's corner, edge or middle is noticed, a NaN too");
    wrong_row = 66, wrong_column = 52, wrong_k = 258, wrong_by = 1;
    ok(!blas_core_exact(wrong_times), "and one of the longest sums alone");

    static const struct {
        const char *core;
        bool avx2, avx512;
        const char *better;
    } cases[] = {
        {"Prescott", true, true, "SkylakeX"}, {"Prescott", true, false, "Haswell"},
        {"Prescott", false, false, NULL},     {"Haswell", true, true, "SkylakeX"},
        {"Haswell", true, false, NULL},       {"Zen", true, false, NULL},
        {"ZEN", true, true, "SkylakeX"},      {"SkylakeX", true, true, NULL},
        {"skylakex", true, true, NULL},       {"Cooperlake", true, true, NULL},
        {"SapphireRapids", true, true, NULL}, {"Nehalem", true, false, "Haswell"},
        {"ARMV8", false, false, NULL},        {"unknown", true, true, "SkylakeX"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *better = blas_core_better(cases[i].core, cases[i].avx2, cases[i].avx512);
        ok(same(better, cases[i].better), "%s%s%s: %s", cases[i].core,
           cases[i].avx2 ? ", AVX2" : "", cases[i].avx512 ? ", AVX-512" : "",
           better == NULL ? "stays" : better);
    }
    return tap_done();
}
