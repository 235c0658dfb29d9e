// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The matrix product that the sets are made of, and how many threads it may take.
//
// OpenBLAS keeps one number of threads for the whole process, and nobody can ask it for another in
// one call. The judge's parts are threads already, and a product that is cut among threads may
// round otherwise. So the number is 1 while anyone judges: the first who begins keeps what it was,
// the last who ends puts it back, and threads that judge at once do not disturb each other. Another
// user of OpenBLAS in the process has one thread a product until then; if he sets the number
// meanwhile, the judge's products may be cut.
#include "proofs/bounds/bounds.h"

#include <cblas.h>
#include <pthread.h>

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static size_t inside; // how many have begun and not ended
static int before;    // the number of threads when the first one began

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

void sinkproof_times(size_t m, size_t r, size_t k, const double *x, const double *y, double *c,
                     size_t stride) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)r, (int)k, 1.0, x, (int)k, y,
                (int)k, 0.0, c, (int)stride);
}
