// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "proofs/truth/share_work.h"

#include "proofs/truth/flint.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct shared {
    pthread_mutex_t door;
    size_t next, n;
    truth_piece *work;
    void *context;
} shared;

typedef struct worker {
    shared *all;
    size_t number;
    pthread_t thread;
} worker;

static size_t next_piece(shared *all) {
    pthread_mutex_lock(&all->door);
    size_t piece = all->next++;
    pthread_mutex_unlock(&all->door);
    return piece;
}

static void take_pieces(shared *all, size_t number) {
    for (size_t piece; (piece = next_piece(all)) < all->n;) all->work(all->context, piece, number);
}

static void *begin_worker(void *argument) {
    const worker *self = argument;
    take_pieces(self->all, self->number);
    flint_cleanup(); // the thread's own
    mpfr_free_cache();
    return NULL;
}

void truth_share(size_t threads, size_t n, truth_piece *work, void *context) {
    shared all = {.door = PTHREAD_MUTEX_INITIALIZER, .n = n, .work = work, .context = context};
    if (threads > n) threads = n;
    worker *started = malloc((threads + 1) * sizeof *started);
    if (started == NULL) abort();
    size_t running = 1; // without another thread the caller does it all
    while (running < threads) {
        started[running] = (worker){.all = &all, .number = running};
        if (pthread_create(&started[running].thread, NULL, begin_worker, &started[running]) != 0)
            break;
        running++;
    }
    take_pieces(&all, 0);
    for (size_t k = 1; k < running; k++) pthread_join(started[k].thread, NULL);
    pthread_mutex_destroy(&all.door);
    free(started);
}
