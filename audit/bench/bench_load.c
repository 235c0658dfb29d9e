// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decides whether a measured time was disturbed by other work on the machine. The threads of a run
// either work or wait for each other, and only work takes processor time. If the system took a
// processor away (an involuntary context switch) and the threads had less processor time than the
// wall clock, other work ran in between. Time taken by a hypervisor and memory traffic of
// neighbours leave no such trace; that is why the limits are measured together with the case.
#include "audit/bench/bench.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds_on(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

// One thread: the calling one; several: all threads of the process.
static clockid_t clock_of(int threads) {
    return threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
}

sinkproof_bench_gauge sinkproof_bench_begin(int threads) {
    return (sinkproof_bench_gauge){.threads = threads,
                                   .switches = switches(),
                                   .worked = seconds_on(clock_of(threads)),
                                   .seconds = sinkproof_bench_now()};
}

sinkproof_bench_gauge sinkproof_bench_end(const sinkproof_bench_gauge *begin) {
    double seconds = sinkproof_bench_now() - begin->seconds;
    return (sinkproof_bench_gauge){.threads = begin->threads,
                                   .switches = switches() - begin->switches,
                                   .worked = seconds_on(clock_of(begin->threads)) - begin->worked,
                                   .seconds = seconds};
}

bool sinkproof_bench_is_disturbed(const sinkproof_bench_gauge *run) {
    double whole = run->seconds * (double)run->threads;
    bool at_work = run->worked * SINKPROOF_BENCH_BUSY >= whole * (SINKPROOF_BENCH_BUSY - 1);
    return run->switches > 0 && !at_work;
}

void sinkproof_bench_add(sinkproof_bench_times *times, double t, bool disturbed) {
    times->t[times->n] = t;
    times->noisy[times->n++] = disturbed;
}

size_t sinkproof_bench_quiet(const sinkproof_bench_times *times) {
    size_t quiet = 0;
    for (size_t i = 0; i < times->n; i++) quiet += times->noisy[i] ? 0 : 1;
    return quiet;
}

size_t sinkproof_bench_rounds(size_t repeats) {
    size_t most = repeats * SINKPROOF_BENCH_AGAIN;
    return most < SINKPROOF_BENCH_REPEATS ? most : SINKPROOF_BENCH_REPEATS;
}

void sinkproof_bench_settle(sinkproof_bench_times *times) {
    enum { ENOUGH = 3 };
    size_t quiet = sinkproof_bench_quiet(times), kept = 0;
    bool all = quiet == times->n, enough = quiet >= ENOUGH;
    times->taken = times->n;
    times->disturbed = !all && !enough;
    if (!all && enough) {
        for (size_t i = 0; i < times->n; i++)
            if (!times->noisy[i]) times->t[kept++] = times->t[i];
        times->n = kept;
    }
    sinkproof_bench_sort(times);
}

// ---- limits -------------------------------------------------------------------------------------

void sinkproof_bench_see_limit(sinkproof_bench *bench, sinkproof_bench_resource resource,
                               int threads, sinkproof_bench_times *rates) {
    if (rates->n == SINKPROOF_BENCH_REPEATS) return;
    sinkproof_bench_gauge begin = sinkproof_bench_begin(threads);
    double rate = sinkproof_bench_probe(bench, resource, threads);
    sinkproof_bench_gauge run = sinkproof_bench_end(&begin);
    sinkproof_bench_add(rates, rate, sinkproof_bench_is_disturbed(&run));
}

// With --quick the limits of the beginning are kept, if they exist.
void sinkproof_bench_see_limits(sinkproof_bench *bench, const double *need, int threads,
                                sinkproof_bench_seen *seen) {
    bool known = threads == bench->threads || threads == 1;
    for (int r = 0; r < SINKPROOF_BENCH_RESOURCES; r++)
        if (need[r] > 0 && !(bench->quick && (known || seen->of[r].n > 0)))
            sinkproof_bench_see_limit(bench, (sinkproof_bench_resource)r, threads, &seen->of[r]);
}

double sinkproof_bench_limit(double first, sinkproof_bench_times *rates) {
    if (rates->n == 0) return first;
    sinkproof_bench_settle(rates);
    double meanwhile = sinkproof_bench_median(rates);
    return meanwhile > first ? meanwhile : first;
}

void sinkproof_bench_settle_limits(const sinkproof_bench *bench, const double *need, int threads,
                                   sinkproof_bench_seen *seen) {
    // The limits of the beginning are for one thread and for all threads, not for a number in
    // between.
    int all = threads == bench->threads;
    bool known = all || threads == 1;
    seen->disturbed = false;
    for (int r = 0; r < SINKPROOF_BENCH_RESOURCES; r++) {
        bool again = seen->of[r].n > 0;
        seen->rate[r] = sinkproof_bench_limit(known ? bench->rate[all][r] : 0, &seen->of[r]);
        if (need[r] > 0 && (again ? seen->of[r].disturbed : known && bench->disturbed[all][r]))
            seen->disturbed = true;
    }
}

json_t *sinkproof_bench_disturbances(bool of_case, bool of_limit, double share) {
    json_t *found = json_array();
    if (of_case) json_array_append_new(found, json_string("case"));
    if (of_limit) json_array_append_new(found, json_string("limit"));
    if (share > 1) json_array_append_new(found, json_string("share"));
    return found;
}
