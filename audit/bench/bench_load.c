// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decides whether a measured time was disturbed by other work on the machine. The threads of a run
// either work or wait for each other, and only work takes processor time. If the system took a
// processor away (an involuntary context switch) and the threads had less processor time than the
// wall clock, other work ran in between. Time taken by a hypervisor and memory traffic of
// neighbours leave no such trace; that is why the limits are measured together with the case.
#include "audit/bench/bench.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double read_clock(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

double bench_clock_seconds(void) {
    return read_clock(CLOCK_MONOTONIC);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_times_sort(bench_times *times) {
    qsort(times->t, times->n, sizeof times->t[0], compare_doubles);
}

double bench_median(const bench_times *times) {
    return 0.5 * (times->t[(times->n - 1) / 2] + times->t[times->n / 2]);
}

static long involuntary_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

// One thread: the calling one; several: all threads of the process.
static clockid_t threads_clock(int threads) {
    return threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
}

bench_gauge bench_begin(int threads) {
    return (bench_gauge){.threads = threads,
                         .switches = involuntary_switches(),
                         .worked = read_clock(threads_clock(threads)),
                         .seconds = bench_clock_seconds()};
}

bench_gauge bench_end(const bench_gauge *begin) {
    double seconds = bench_clock_seconds() - begin->seconds;
    return (bench_gauge){.threads = begin->threads,
                         .switches = involuntary_switches() - begin->switches,
                         .worked = read_clock(threads_clock(begin->threads)) - begin->worked,
                         .seconds = seconds};
}

bool bench_is_disturbed(const bench_gauge *run) {
    double whole = run->seconds * (double)run->threads;
    bool at_work = run->worked * SINKPROOF_BENCH_BUSY >= whole * (SINKPROOF_BENCH_BUSY - 1);
    return run->switches > 0 && !at_work;
}

void bench_times_add(bench_times *times, double t, bool disturbed) {
    times->t[times->n] = t;
    times->noisy[times->n++] = disturbed;
}

size_t bench_quiet_count(const bench_times *times) {
    size_t quiet = 0;
    for (size_t i = 0; i < times->n; i++) quiet += times->noisy[i] ? 0 : 1;
    return quiet;
}

size_t bench_rounds(size_t repeats) {
    size_t most = repeats * SINKPROOF_BENCH_AGAIN;
    return most < SINKPROOF_BENCH_REPEATS ? most : SINKPROOF_BENCH_REPEATS;
}

void bench_times_settle(bench_times *times) {
    enum { ENOUGH = 3 };
    size_t quiet = bench_quiet_count(times), kept = 0;
    bool all = quiet == times->n, enough = quiet >= ENOUGH;
    times->taken = times->n;
    times->disturbed = !all && !enough;
    if (!all && enough) {
        for (size_t i = 0; i < times->n; i++)
            if (!times->noisy[i]) times->t[kept++] = times->t[i];
        times->n = kept;
    }
    bench_times_sort(times);
}
