// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Is ThreadSanitizer watching? `tsan_race race` adds to one number from several threads without
// order; `tsan_race reduction` and `tsan_race barrier` do the same work in order. The first must be
// reported, the others must not: OpenMP's own order is seen only with the tool Archer.
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { N = 4096 };

static long racing(void) {
    long sum = 0;
#pragma omp parallel for num_threads(4) schedule(static, 1)
    for (int i = 0; i < N; i++) sum += i;
    return sum;
}

static long reduced(void) {
    long sum = 0;
#pragma omp parallel for num_threads(4) schedule(static, 1) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += i;
    return sum;
}

// Each thread reads what its neighbour wrote before the barrier; then the work is shared out anew.
static long behind_barriers(void) {
    static long part[N];
    long sum = 0;
    for (int round = 0; round < 50; round++) {
#pragma omp parallel num_threads(4)
        {
            int me = omp_get_thread_num(), threads = omp_get_num_threads();
            for (int i = me; i < N; i += threads) part[i] = i;
#pragma omp barrier
            for (int i = me; i < N; i += threads) {
                long next = part[(i + 1) % N];
#pragma omp atomic
                sum += next;
            }
        }
    }
    return sum / 50;
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    if (strcmp(which, "race") == 0) return racing() < 0;
    if (strcmp(which, "reduction") == 0) return reduced() != (long)N * (N - 1) / 2;
    if (strcmp(which, "barrier") == 0) return behind_barriers() != (long)N * (N - 1) / 2;
    fprintf(stderr, "tsan_race: expected race, reduction or barrier, found \"%s\"\n", which);
    return 2;
}
