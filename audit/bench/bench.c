// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures a case: in turn with its alternatives and just after its limits, so that a drift of the
// machine's speed affects all of them. Disturbed runs are repeated; the result is the median, with
// the smallest and the largest time.
#include "audit/bench/bench.h"

#include "fast/kernels/isa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name, *unit;
    double scale; // factor of the unit
} resources[SINKPROOF_BENCH_RESOURCES] = {
    [SINKPROOF_BENCH_MEMORY] = {"memory", "GB/s", 1e9},
    [SINKPROOF_BENCH_CACHE] = {"cache", "GB/s", 1e9},
    [SINKPROOF_BENCH_FMA] = {"arithmetic", "GFLOP/s", 1e9},
    [SINKPROOF_BENCH_PAIRS] = {"arithmetic", "GFLOP/s", 1e9},
    [SINKPROOF_BENCH_EXP] = {"arithmetic", "Gexp/s", 1e9},
};

double sinkproof_bench_now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sinkproof_bench_sort(sinkproof_bench_times *times) {
    qsort(times->t, times->n, sizeof times->t[0], ascending);
}

double sinkproof_bench_median(const sinkproof_bench_times *times) {
    return 0.5 * (times->t[(times->n - 1) / 2] + times->t[times->n / 2]);
}

bool sinkproof_bench_wants(const sinkproof_bench *bench, const char *id) {
    return bench->only == NULL || strstr(id, bench->only) != NULL;
}

void sinkproof_bench_say(const char *what) {
    if (!isatty(STDERR_FILENO)) return;
    if (what == NULL)
        fprintf(stderr, "\r\033[K");
    else
        fprintf(stderr, "\r\033[Kbench: %s", what);
    fflush(stderr);
}

void sinkproof_bench_share(int threads, size_t pieces,
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

// ---- the roof -----------------------------------------------------------------------------------

typedef struct roof {
    double seconds; // shortest possible time of a call
    sinkproof_bench_resource of;
} roof;

static double seconds_of(const sinkproof_bench_case *c, const double *rate,
                         sinkproof_bench_resource r) {
    return c->need[r] > 0 && rate[r] > 0 ? c->need[r] / rate[r] : 0;
}

static roof roof_of(const sinkproof_bench_case *c, const double *rate) {
    double pairs = seconds_of(c, rate, SINKPROOF_BENCH_PAIRS);
    double fma = seconds_of(c, rate, SINKPROOF_BENCH_FMA);
    double exps = seconds_of(c, rate, SINKPROOF_BENCH_EXP);
    roof best = {pairs + fma + exps, pairs > 0                          ? SINKPROOF_BENCH_PAIRS
                                     : c->need[SINKPROOF_BENCH_FMA] > 0 ? SINKPROOF_BENCH_FMA
                                                                        : SINKPROOF_BENCH_EXP};
    double memory = seconds_of(c, rate, SINKPROOF_BENCH_MEMORY);
    double cache = seconds_of(c, rate, SINKPROOF_BENCH_CACHE);
    if (memory > best.seconds) best = (roof){memory, SINKPROOF_BENCH_MEMORY};
    if (cache > best.seconds) best = (roof){cache, SINKPROOF_BENCH_CACHE};
    return best;
}

void sinkproof_bench_scores(const sinkproof_kernels *table, sinkproof_panel_format cache,
                            size_t head_dim, double scores, double *need) {
    const bool pairs = table->pairs && cache == SINKPROOF_PANEL_BF16;
    const bool tiles = pairs && strcmp(table->mode, "amx") == 0;
    const double product = scores * 2 * (double)head_dim;
    need[pairs ? SINKPROOF_BENCH_PAIRS : SINKPROOF_BENCH_FMA] += product;
    need[tiles ? SINKPROOF_BENCH_PAIRS : SINKPROOF_BENCH_FMA] += tiles ? 3 * product : product;
    need[SINKPROOF_BENCH_EXP] += scores;
}

static void describe_run(const sinkproof_bench *bench, json_t *row, const sinkproof_bench_case *c) {
    json_object_set_new(row, "isa", json_string(c->isa != NULL ? c->isa : bench->table->isa));
    json_object_set_new(row, "mode", json_string(bench->table->mode));
    json_object_set_new(row, "threads", json_integer(c->threads));
    json_object_set_new(row, "processor", json_string(sinkproof_isa_processor()));
}

json_t *sinkproof_bench_row(sinkproof_bench *bench, const sinkproof_bench_case *c,
                            const sinkproof_bench_times *times, const sinkproof_bench_seen *seen) {
    json_t *row = json_object();
    double median = sinkproof_bench_median(times);
    roof top = roof_of(c, seen->rate);
    double amount = c->amount;
    const char *unit = c->unit;
    if (unit == NULL) {
        bool pairs = top.of == SINKPROOF_BENCH_PAIRS;
        amount = (c->need[top.of] + (pairs ? c->need[SINKPROOF_BENCH_FMA] : 0)) /
                 resources[top.of].scale;
        unit = resources[top.of].unit;
    }
    json_object_set_new(row, "id", json_string(c->id));
    json_object_set_new(row, "ok", json_true());
    json_object_set_new(row, "label", json_string("measured"));
    json_object_set_new(row, "value", json_real(amount / median));
    json_object_set_new(row, "unit", json_string(unit));
    json_object_set_new(row, "limit",
                        top.seconds > 0 ? json_real(amount / top.seconds) : json_null());
    json_object_set_new(row, "share",
                        top.seconds > 0 ? json_real(top.seconds / median) : json_null());
    json_object_set_new(row, "roof",
                        top.seconds > 0 ? json_string(resources[top.of].name) : json_null());
    json_object_set_new(row, "median", json_real(median));
    json_object_set_new(row, "spread", json_pack("[ff]", times->t[0], times->t[times->n - 1]));
    json_object_set_new(row, "repeats", json_integer((json_int_t)times->n));
    json_object_set_new(row, "taken", json_integer((json_int_t)times->taken));
    json_object_set_new(
        row, "disturbed",
        sinkproof_bench_disturbances(times->disturbed, seen->disturbed, top.seconds / median));
    describe_run(bench, row, c);
    if (c->more != NULL) json_object_update(row, c->more);
    return row;
}

// ---- measuring ----------------------------------------------------------------------------------

// Seconds per call, and whether the run was disturbed.
static double run_calls(const sinkproof_bench_case *c, size_t calls, bool *disturbed) {
    sinkproof_bench_gauge begin = sinkproof_bench_begin(c->threads);
    for (size_t i = 0; i < calls; i++) c->run(c->of);
    sinkproof_bench_gauge run = sinkproof_bench_end(&begin);
    *disturbed = sinkproof_bench_is_disturbed(&run);
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

static plan plan_of(const sinkproof_bench *bench, size_t n, const sinkproof_bench_case *cases) {
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
static size_t select_cases(const sinkproof_bench *bench, size_t n, const sinkproof_bench_case *all,
                           sinkproof_bench_case *cases) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (sinkproof_bench_wants(bench, all[i].id))
            cases[kept++] = all[i];
        else
            json_decref(all[i].more);
    }
    return kept;
}

// Takes rounds over all cases, each just after the limits that it needs, so that a drift of the
// machine's speed affects them alike. Stops when every case has the planned number of undisturbed
// times, or after three times as many rounds.
static void take_times(sinkproof_bench *bench, size_t n, const sinkproof_bench_case *cases,
                       sinkproof_bench_seen *seen, sinkproof_bench_times *times) {
    plan p = plan_of(bench, n, cases);
    size_t quiet = 0;
    for (size_t round = 0; quiet < p.repeats && round < sinkproof_bench_rounds(p.repeats);
         round++) {
        bool any = false;
        for (size_t k = 0; k < n; k++) { // each case comes first in its turn
            size_t i = (k + round) % n;
            bool disturbed;
            sinkproof_bench_see_limits(bench, cases[i].need, cases[i].threads, &seen[i]);
            double t = run_calls(&cases[i], p.calls[i], &disturbed);
            sinkproof_bench_add(&times[i], t, disturbed);
            any = any || disturbed;
            if (cases[i].foreign) let_threads_sleep();
        }
        quiet += any ? 0 : 1;
    }
}

static void add_rows(sinkproof_bench *bench, size_t n, const sinkproof_bench_case *cases,
                     sinkproof_bench_seen *seen, sinkproof_bench_times *times) {
    for (size_t i = 0; i < n; i++) {
        sinkproof_bench_settle(&times[i]);
        sinkproof_bench_settle_limits(bench, cases[i].need, cases[i].threads, &seen[i]);
        json_array_append_new(bench->rows,
                              sinkproof_bench_row(bench, &cases[i], &times[i], &seen[i]));
        json_decref(cases[i].more);
    }
}

void sinkproof_bench_measure(sinkproof_bench *bench, size_t n, sinkproof_bench_case *all) {
    sinkproof_bench_case cases[SINKPROOF_BENCH_TOGETHER];
    size_t kept = select_cases(bench, n, all, cases);
    if (kept == 0) return;
    bench->matched += kept;
    sinkproof_bench_say(cases[0].id);
    sinkproof_bench_seen *seen = calloc(kept, sizeof *seen);
    sinkproof_bench_times *times = calloc(kept, sizeof *times);
    if (seen == NULL || times == NULL) abort();
    take_times(bench, kept, cases, seen, times);
    add_rows(bench, kept, cases, seen, times);
    free(times);
    free(seen);
    sinkproof_bench_say(NULL);
}
