// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The matrix product behind the sets, and its number of threads.
//
// OpenBLAS has one number of threads for the whole process, and no call can ask for another. The
// judge's parts already run in threads, and a product that is split among threads may round
// differently. So the number is 1 while any judge runs: the first to begin stores the previous
// number, the last to end restores it, and concurrent judges do not disturb each other. Any other
// user of OpenBLAS in the process has one thread per product until then; if it sets the number
// meanwhile, the judge's products may be split.
#include "proofs/bounds/bounds.h"

#include <cblas.h>
#include <pthread.h>

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static size_t inside; // calls of begin without an end
static int before;    // the number of threads before the first

void sinkproof_times_begin(void) {
    pthread_mutex_lock(&door);
    if (inside++ == 0) {
        before = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    pthread_mutex_unlock(&door);
}

void sinkproof_times_end(void) {
    pthread_mutex_lock(&door);
    if (--inside == 0) openblas_set_num_threads(before);
    pthread_mutex_unlock(&door);
}

const char *sinkproof_times_core(void) {
    return openblas_get_corename();
}

void sinkproof_matrix_times(size_t m, size_t r, size_t k, const double *x, const double *y,
                            double *c, size_t stride) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)r, (int)k, 1.0, x, (int)k, y,
                (int)k, 0.0, c, (int)stride);
}
