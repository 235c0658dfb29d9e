// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures a case: in turn with its alternatives and just after its limits, so that a drift of the
// machine's speed affects all of them. Disturbed runs are repeated; the result is the median, with
// the smallest and the largest time.
#include "audit/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool bench_is_wanted(const sinkproof_bench *bench, const char *id) {
    return bench->only == NULL || strstr(id, bench->only) != NULL;
}

void bench_share_pieces(int threads, size_t pieces,
                        void (*work)(void *of, size_t piece, int worker), void *of) {
    size_t next = 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int worker = 0; worker < threads; worker++)
        for (;;) {
            size_t piece;
#pragma omp atomic capture
            piece = next++;
            if (piece >= pieces) break;
            work(of, piece, worker);
        }
}

// Seconds of a call, and what the run of all of them was like.
static double run_calls(const bench_case *c, size_t calls, bool *disturbed) {
    bench_gauge begin = bench_begin(c->threads);
    for (size_t i = 0; i < calls; i++) c->run(c->of);
    bench_gauge run = bench_end(&begin);
    *disturbed = bench_is_disturbed(&run);
    return run.seconds / (double)calls;
}

// Waits until another library's threads stop spinning after their work.
static void let_threads_sleep(void) {
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
}

// How many calls make one timing, and how many timings are taken: a timing is long enough for the
// clock's resolution, and all of them stay inside a budget.
typedef struct plan {
    size_t calls[SINKPROOF_BENCH_TOGETHER], repeats;
} plan;

static plan measuring_plan(const sinkproof_bench *bench, size_t n, const bench_case *cases) {
    const double least = bench->quick ? 2e-4 : 2e-3, budget = bench->quick ? 0.03 : 1.2;
    plan p;
    double once = 0;
    for (size_t i = 0; i < n; i++) {
        bool any;
        double first = run_calls(&cases[i], 1, &any); // also loads code and pages
        p.calls[i] = first < least ? (size_t)ceil(least / fmax(first, 1e-8)) : 1;
        once += first * (double)p.calls[i];
    }
    size_t fit = (size_t)fmin(budget / once, SINKPROOF_BENCH_REPEATS);
    p.repeats = bench->repeat < fit ? bench->repeat : fit;
    if (p.repeats < 3) p.repeats = once < budget * 2 ? 3 : 1;
    return p;
}

// Selects the cases that were requested; the rows' extra members of the others are freed.
static size_t select_cases(const sinkproof_bench *bench, size_t n, const bench_case *all,
                           bench_case *cases) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (bench_is_wanted(bench, all[i].id))
            cases[kept++] = all[i];
        else
            json_decref(all[i].more);
    }
    return kept;
}

// Takes rounds over all cases, each just after the limits that it needs, so that a drift of the
// machine's speed affects them alike. Stops when every case has the planned number of undisturbed
// times, or after three times as many rounds.
static void take_times(sinkproof_bench *bench, size_t n, const bench_case *cases,
                       bench_watched *seen, bench_times *times) {
    plan p = measuring_plan(bench, n, cases);
    size_t quiet = 0;
    for (size_t round = 0; quiet < p.repeats && round < bench_rounds(p.repeats); round++) {
        bool any = false;
        for (size_t k = 0; k < n; k++) { // each case comes first in its turn
            size_t i = (k + round) % n;
            bool disturbed;
            bench_watch_limits(bench, cases[i].need, cases[i].threads, &seen[i]);
            double t = run_calls(&cases[i], p.calls[i], &disturbed);
            bench_times_add(&times[i], t, disturbed);
            any = any || disturbed;
            if (cases[i].foreign) let_threads_sleep();
        }
        quiet += any ? 0 : 1;
    }
}

static void add_rows(sinkproof_bench *bench, size_t n, const bench_case *cases, bench_watched *seen,
                     bench_times *times) {
    for (size_t i = 0; i < n; i++) {
        bench_times_settle(&times[i]);
        bench_settle_limits(bench, cases[i].need, cases[i].threads, &seen[i]);
        bench_add_row(bench, bench_row_json(bench, &cases[i], &times[i], &seen[i]));
        json_decref(cases[i].more);
    }
}

void bench_measure(sinkproof_bench *bench, size_t n, bench_case *all) {
    bench_case cases[SINKPROOF_BENCH_TOGETHER];
    size_t kept = select_cases(bench, n, all, cases);
    if (kept == 0) return;
    bench->matched += kept;
    if (bench->looks) {
        for (size_t i = 0; i < kept; i++) json_decref(cases[i].more);
        return;
    }
    sinkproof_bench_say(cases[0].id);
    bench_watched *seen = calloc(kept, sizeof *seen);
    bench_times *times = calloc(kept, sizeof *times);
    if (seen == NULL || times == NULL) abort();
    take_times(bench, kept, cases, seen, times);
    add_rows(bench, kept, cases, seen, times);
    free(times);
    free(seen);
    sinkproof_bench_say(NULL);
}
