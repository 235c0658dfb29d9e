// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the machine's limits. Memory is read in several ways, and the fastest way counts: a
// processor reads faster from several places at once, and prefetching may help or hinder.
#include "audit/bench/bench.h"

#include <stdlib.h>
#include <string.h>

typedef uint64_t line __attribute__((vector_size(64)));

enum { UNROLL = 4, AHEAD = 16 }; // lines; 1 KiB ahead

// ORs `lines` lines, read as `streams` equal parts side by side. It is inlined with constants into
// functions for each instruction set, since wider loads keep more data in flight.
static inline __attribute__((always_inline)) uint64_t read_streams(const line *p, size_t lines,
                                                                   int streams, int ahead) {
    line sum = {0};
    size_t part = lines / (size_t)streams;
    for (size_t i = 0; i + UNROLL <= part; i += UNROLL)
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++)
#pragma GCC unroll 4
            for (size_t k = 0; k < UNROLL; k++) {
                const line *at = p + (size_t)s * part + i + k;
                if (ahead > 0) __builtin_prefetch(at + ahead, 0, 3);
                sum |= *at;
            }
    uint64_t any = 0;
    for (int w = 0; w < 8; w++) any |= sum[w];
    return any;
}

static inline __attribute__((always_inline)) uint64_t read_variant(const line *p, size_t lines,
                                                                   size_t variant) {
    switch (variant) {
    case 0:
        return read_streams(p, lines, 1, 0);
    case 1:
        return read_streams(p, lines, 2, 0);
    case 2:
        return read_streams(p, lines, 4, 0);
    case 3:
        return read_streams(p, lines, 8, 0);
    case 4:
        return read_streams(p, lines, 1, AHEAD);
    case 5:
        return read_streams(p, lines, 2, AHEAD);
    case 6:
        return read_streams(p, lines, 4, AHEAD);
    default:
        return read_streams(p, lines, 8, AHEAD);
    }
}
enum { VARIANTS = 8 };
static const char *const variant_names[VARIANTS] = {
    "1 stream",           "2 streams",           "4 streams",           "8 streams",
    "1 stream, prefetch", "2 streams, prefetch", "4 streams, prefetch", "8 streams, prefetch"};

typedef uint64_t reader(const void *p, size_t lines, size_t variant);

static uint64_t read_plain(const void *p, size_t lines, size_t variant) {
    return read_variant(p, lines, variant);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t read_avx2(const void *p, size_t lines,
                                                          size_t variant) {
    return read_variant(p, lines, variant);
}
__attribute__((target("avx512f"))) static uint64_t read_avx512(const void *p, size_t lines,
                                                               size_t variant) {
    return read_variant(p, lines, variant);
}
#endif

// The widest loads of the chosen set, which its kernels could use.
static reader *widest_reader(const sinkproof_kernels *table) {
#if defined(__x86_64__)
    if (strncmp(table->isa, "avx512", 6) == 0 || strcmp(table->isa, "amx") == 0) return read_avx512;
    if (strcmp(table->isa, "avx2") == 0) return read_avx2;
#endif
    (void)table;
    return read_plain;
}

// A part of the arena, the next one each time: by then the caches have lost it.
static double read_rate(sinkproof_bench *bench, size_t variant, int threads) {
    reader *read = widest_reader(bench->table);
    size_t bytes = (bench->quick ? 16u : 64u) << 20, parts = bench->arena_bytes / bytes;
    const uint8_t *from = bench->arena + bench->memory_part++ % parts * bytes;
    size_t lines = bytes / 64 / (size_t)threads;
    uint64_t any = 0;
    double start = bench_clock_seconds();
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(| : any)
    for (int t = 0; t < threads; t++) any |= read(from + (size_t)t * lines * 64, lines, variant);
    double seconds = bench_clock_seconds() - start;
    __asm__ volatile("" : : "r"(any));
    return (double)(lines * 64 * (size_t)threads) / seconds;
}

// Copies of 8 KiB, within the first-level cache; read and written bytes both count.
static double cache_rate(sinkproof_bench *bench, int threads) {
    enum { BYTES = 8192 };
    size_t turns = bench->quick ? 2000 : 10000;
    double start = bench_clock_seconds();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        uint8_t *from = bench->scratch_t[t], *to = from + BYTES;
        for (size_t i = 0; i < turns; i++) {
            memcpy(to, from, BYTES);
            __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
        }
    }
    return 2.0 * (double)BYTES * (double)turns * threads / (bench_clock_seconds() - start);
}

static double peak_rate(sinkproof_bench *bench, bool pairs, int threads) {
    const bench_peak *peak = bench_peak_find(bench->table, pairs);
    if (peak == NULL) return 0;
    size_t turns =
        peak->flops > 32 ? (bench->quick ? 20000 : 100000) : (bench->quick ? 2000 : 20000);
    double start = bench_clock_seconds();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) peak->run(turns);
    return peak->flops * (double)turns * threads / (bench_clock_seconds() - start);
}

static double exp_rate(sinkproof_bench *bench, int threads) {
    enum { N = 1024 };
    size_t turns = bench->quick ? 20 : 400;
    for (int t = 0; t < threads; t++)
        for (size_t i = 0; i < N; i++)
            ((float *)bench->scratch_t[t])[i] = -20.0f * (float)i / (float)N;
    double start = bench_clock_seconds();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        float *x = (float *)bench->scratch_t[t];
        for (size_t i = 0; i < turns; i++) bench->table->exp(N, x, x + N);
    }
    return (double)N * (double)turns * threads / (bench_clock_seconds() - start);
}

double bench_probe(sinkproof_bench *bench, bench_resource resource, int threads) {
    switch (resource) {
    case BENCH_MEMORY:
        return read_rate(bench, bench->memory_variant, threads);
    case BENCH_CACHE:
        return cache_rate(bench, threads);
    case BENCH_FMA:
        return peak_rate(bench, false, threads);
    case BENCH_PAIRS:
        return peak_rate(bench, true, threads);
    default:
        return exp_rate(bench, threads);
    }
}

void bench_watch_limit(sinkproof_bench *bench, bench_resource resource, int threads,
                       bench_times *rates) {
    if (rates->n == SINKPROOF_BENCH_REPEATS) return;
    bench_gauge begin = bench_begin(threads);
    double rate = bench_probe(bench, resource, threads);
    bench_gauge run = bench_end(&begin);
    bench_times_add(rates, rate, bench_is_disturbed(&run));
}

// With --quick the limits of the beginning stand, where there are any.
void bench_watch_limits(sinkproof_bench *bench, const double *need, int threads,
                        bench_watched *seen) {
    bool known = threads == bench->threads || threads == 1;
    for (int r = 0; r < BENCH_RESOURCES; r++)
        if (need[r] > 0 && !(bench->quick && (known || seen->of[r].n > 0)))
            bench_watch_limit(bench, (bench_resource)r, threads, &seen->of[r]);
}

double bench_limit(double first, bench_times *rates) {
    if (rates->n == 0) return first;
    bench_times_settle(rates);
    double meanwhile = bench_median(rates);
    return meanwhile > first ? meanwhile : first;
}

void bench_settle_limits(const sinkproof_bench *bench, const double *need, int threads,
                         bench_watched *seen) {
    // The limits of the beginning are those of one thread and of all: not of a number between.
    int all = threads == bench->threads;
    bool known = all || threads == 1;
    seen->disturbed = false;
    for (int r = 0; r < BENCH_RESOURCES; r++) {
        bool again = seen->of[r].n > 0;
        seen->rate[r] = bench_limit(known ? bench->rate[all][r] : 0, &seen->of[r]);
        if (need[r] > 0 && (again ? seen->of[r].disturbed : known && bench->disturbed[all][r]))
            seen->disturbed = true;
    }
}

// A limit is its own roof: the row says how it was found, and has no share.
static void add_limit(sinkproof_bench *bench, const char *name, const char *unit, const char *how,
                      int threads, bench_times *rates) {
    bench_case c = {.threads = threads, .amount = 1, .unit = unit};
    snprintf(c.id, sizeof c.id, "limit.%s.%d", name, threads);
    const bench_watched none = {.disturbed = rates->disturbed};
    // Seconds per 1e9 units of the resource.
    bench_times seconds = {.n = rates->n, .taken = rates->taken};
    for (size_t i = 0; i < rates->n; i++) seconds.t[i] = 1e9 / rates->t[rates->n - 1 - i];
    c.more = json_pack("{ss}", "how", how);
    bench_add_row(bench, bench_row_json(bench, &c, &seconds, &none));
    json_decref(c.more);
}

static double measure_limit(sinkproof_bench *bench, bench_resource resource, int threads,
                            bench_times *rates) {
    size_t repeats = bench->quick ? 3 : bench->repeat;
    bench_probe(bench, resource, threads); // warm-up
    rates->n = 0;
    while (bench_quiet_count(rates) < repeats && rates->n < bench_rounds(repeats))
        bench_watch_limit(bench, resource, threads, rates);
    bench_times_settle(rates);
    return bench_median(rates);
}

// Finds the fastest way of reading for `threads` and keeps it. The result is the median of its
// rates.
static double measure_memory(sinkproof_bench *bench, int threads) {
    bench_times rates, best_rates = {0};
    double fastest = 0, best = 0;
    size_t best_variant = 0;
    for (size_t v = 0; v < VARIANTS; v++) {
        bench->memory_variant = v;
        double rate = measure_limit(bench, BENCH_MEMORY, threads, &rates);
        if (rates.t[rates.n - 1] > fastest) {
            fastest = rates.t[rates.n - 1];
            best = rate, best_variant = v, best_rates = rates;
        }
    }
    bench->memory_variant = best_variant;
    bench->disturbed[threads > 1][BENCH_MEMORY] = best_rates.disturbed;
    add_limit(bench, "memory", "GB/s", variant_names[best_variant], threads, &best_rates);
    return best;
}

void sinkproof_bench_limits(sinkproof_bench *bench) {
    static const struct {
        bench_resource resource;
        const char *name, *unit, *how;
    } rest[] = {
        {BENCH_CACHE, "cache", "GB/s", "memcpy of 8 KiB, read and written"},
        {BENCH_FMA, "fma", "GFLOP/s", NULL},
        {BENCH_PAIRS, "pairs", "GFLOP/s", NULL},
        {BENCH_EXP, "exp", "Gexp/s", "the table's exp, in cache"},
    };
    for (int all = 0; all < (bench->threads > 1 ? 2 : 1); all++) {
        int threads = all == 1 ? bench->threads : 1;
        double *rate = bench->rate[all];
        sinkproof_bench_say("the machine's limits");
        rate[BENCH_MEMORY] = measure_memory(bench, threads);
        for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
            bool pairs = rest[i].resource == BENCH_PAIRS;
            const bench_peak *peak = bench_peak_find(bench->table, pairs);
            if (pairs && (peak == NULL || !bench->table->pairs)) continue;
            bench_times rates;
            rate[rest[i].resource] = measure_limit(bench, rest[i].resource, threads, &rates);
            bench->disturbed[all][rest[i].resource] = rates.disturbed;
            add_limit(bench, rest[i].name, rest[i].unit,
                      rest[i].how != NULL ? rest[i].how : peak->name, threads, &rates);
        }
    }
    if (bench->threads == 1) {
        memcpy(bench->rate[1], bench->rate[0], sizeof bench->rate[0]);
        memcpy(bench->disturbed[1], bench->disturbed[0], sizeof bench->disturbed[0]);
    }
    sinkproof_bench_say(NULL);
}
