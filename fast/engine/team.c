// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The threads of a pass: their private data, the sharing of a stage's work, and the barrier.
#include "fast/engine/internal.h"

#include "base/words.h"

#include <omp.h>
#include <stdlib.h>

void team_barrier(void){
#pragma omp barrier
}

team_counter *team_next_stage(engine_pass *pass, engine_worker *worker) {
    return &pass->engine->counters[worker->stage++];
}

// Half of the remaining work, divided by the number of threads: long streams at first, and at the
// end no long wait for a thread that the system delays.
bool counter_take_piece(team_counter *counter, const engine_worker *worker, size_t total,
                        size_t unit, size_t *first, size_t *last) {
    size_t at = __atomic_load_n(&counter->next, __ATOMIC_RELAXED), piece;
    do {
        if (at >= total) return false;
        piece = (total - at) / (2 * (size_t)worker->team) / unit * unit;
        if (worker->team == 1) piece = total - at;
        if (piece < unit) piece = unit;
        if (piece > total - at) piece = total - at;
    } while (!__atomic_compare_exchange_n(&counter->next, &at, at + piece, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    *first = at;
    *last = at + piece;
    return true;
}

bool counter_take_one(team_counter *counter, size_t total, size_t *at) {
    *at = __atomic_fetch_add(&counter->next, 1, __ATOMIC_RELAXED);
    return *at < total;
}

// ---- a thread's private data ------------------------------------------------------------------

static size_t whole_cache_lines(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

bool workers_new(sinkproof_engine *e, sinkproof_error *error) {
    size_t hidden = e->width.hidden, experts = e->config->n_experts;
    size_t work = pack_work_doubles(e->config);
    if (work < 4 * hidden) work = 4 * hidden; // a row, its norm, and the norm's scratch
    size_t head = e->config->head_dim + 32;   // a head behind which are zeros
    if (work < head) work = head;
    size_t sizes[] = {SINKPROOF_SCRATCH,
                      whole_cache_lines(work * sizeof(double)),
                      whole_cache_lines(ENGINE_OWN_ROWS * hidden * sizeof(float)),
                      whole_cache_lines(ENGINE_OWN_ROWS * hidden * sizeof(uint16_t)),
                      whole_cache_lines(experts * sizeof(double)),
                      whole_cache_lines((experts + 1) * sizeof(size_t)),
                      whole_cache_lines(experts * sizeof(size_t))};
    size_t each = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) each += sizes[i];
    e->workers = calloc((size_t)e->threads, sizeof *e->workers);
    e->counters = calloc(e->config->n_layers + 1, ENGINE_STAGES * sizeof *e->counters);
    if (e->workers == NULL || e->counters == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted((size_t)e->threads, "thread").text);
    if (!sinkproof_pages_new((size_t)e->threads * each, SINKPROOF_LARGE_PAGES, "threads",
                             &e->worker_pages, error))
        return false;
    for (int t = 0; t < e->threads; t++) {
        engine_worker *w = &e->workers[t];
        uint8_t *at = e->worker_pages.data + (size_t)t * each;
        w->id = t;
        w->scratch = at;
        w->work = (double *)(void *)(at += sizes[0]);
        w->t_nc = (float *)(void *)(at += sizes[1]);
        w->t16_nc = (uint16_t *)(void *)(at += sizes[2]);
        w->router_e = (double *)(void *)(at += sizes[3]);
        w->first_e = (size_t *)(void *)(at += sizes[4]);
        w->active = (size_t *)(void *)(at += sizes[5]);
    }
    return true;
}

static void free_lists(engine_worker *w) {
    free(w->x_n);
    free(w->x16_n);
    free(w->y_n);
    free(w->chosen_nk);
    free(w->weights_nk);
    free(w->slots);
    w->x_n = NULL;
    w->x16_n = NULL;
    w->y_n = NULL;
    w->chosen_nk = NULL;
    w->weights_nk = NULL;
    w->slots = NULL;
}

bool workers_reserve(sinkproof_engine *e, size_t rows, sinkproof_error *error) {
    size_t slots = rows * e->config->n_chosen;
    if (rows <= e->worker_rows) return true;
    e->worker_rows = 0;
    for (int t = 0; t < e->threads; t++) {
        engine_worker *w = &e->workers[t];
        free_lists(w);
        w->x_n = calloc(slots, sizeof *w->x_n);
        w->x16_n = calloc(slots, sizeof *w->x16_n);
        w->y_n = calloc(slots, sizeof *w->y_n);
        w->chosen_nk = calloc(slots, sizeof *w->chosen_nk);
        w->weights_nk = calloc(slots, sizeof *w->weights_nk);
        w->slots = calloc(slots, sizeof *w->slots);
        if (w->x_n == NULL || w->x16_n == NULL || w->y_n == NULL || w->chosen_nk == NULL ||
            w->weights_nk == NULL || w->slots == NULL)
            return sinkproof_fail(error, "no memory for %s", sinkproof_counted(rows, "token").text);
    }
    e->worker_rows = rows;
    return true;
}

void workers_free(sinkproof_engine *e) {
    for (int t = 0; e->workers != NULL && t < e->threads; t++) free_lists(&e->workers[t]);
    free(e->workers);
    free(e->counters);
    sinkproof_pages_free(&e->worker_pages);
}
