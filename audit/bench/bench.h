// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of `sinkproof bench`: cases, measured in turn with the machine's limits, and the rows
// of the result. A figure is the median of R runs. Its limit is the roof of the case, measured in
// the same minutes: the limits that a case needs are measured again before each of its runs. Runs
// disturbed by other work are dropped if there are enough quiet ones, and otherwise reported as
// disturbed. There is never a verdict on time.
#ifndef SINKPROOF_BENCH_H
#define SINKPROOF_BENCH_H

#include "fast/kernels/kernels.h"
#include "ref/policy.h"

#include <jansson.h>

enum {
    SINKPROOF_BENCH_LIST = 32,    // most numbers in --prompt, --depth, --batch
    SINKPROOF_BENCH_REPEATS = 99, // most repeats
    SINKPROOF_BENCH_TOGETHER = 4, // most alternatives that are measured in turn
    SINKPROOF_BENCH_AGAIN = 3,    // at most this many times the requested runs, to get quiet ones
    // a run is disturbed if its threads worked less than 15/16 of the time
    SINKPROOF_BENCH_BUSY = 16,
};

typedef struct sinkproof_bench_list {
    size_t n, at[SINKPROOF_BENCH_LIST];
} sinkproof_bench_list;

// A resource of the machine. MEMORY and CACHE count bytes per second, FMA and PAIRS floating-point
// operations (a fused multiply-add is two), EXP values.
typedef enum sinkproof_bench_resource {
    SINKPROOF_BENCH_MEMORY, // reading from DRAM
    SINKPROOF_BENCH_CACHE,  // copying within the first-level cache, bytes read plus bytes written
    SINKPROOF_BENCH_FMA,    // float32
    SINKPROOF_BENCH_PAIRS,  // the instruction for pairs of bf16 numbers, if the set has one
    SINKPROOF_BENCH_EXP,
    SINKPROOF_BENCH_RESOURCES
} sinkproof_bench_resource;

typedef struct sinkproof_bench {
    // The command line.
    // table_of_one: for the model's passes of one token
    const sinkproof_kernels *table, *table_of_one;
    const char *model, *only, *scaling; // may be NULL
    bool quick;
    // As in sinkproof_engine_options, for the packing of weights; or NULL.
    void (*progress)(void *context, const char *what, size_t done, size_t total);
    int threads;
    size_t repeat, decode;
    sinkproof_bench_list prompt, depth, batch;
    sinkproof_policy policy;
    // The state of the run.
    uint8_t *arena; // weights and caches under test, in 2 MiB pages if the system has them
    size_t arena_bytes, last_level;            // last_level: bytes of the largest cache, 0: unknown
    uint8_t **scratch_t;                       // [threads] SINKPROOF_SCRATCH bytes each
    size_t memory_part;                        // the part of the arena to read next
    size_t memory_variant;                     // the fastest way of reading
    double rate[2][SINKPROOF_BENCH_RESOURCES]; // for one thread, and for all; 0: unavailable
    bool disturbed[2][SINKPROOF_BENCH_RESOURCES]; // whether `rate` was measured under disturbance
    json_t *rows;
    size_t matched; // cases selected by --only
} sinkproof_bench;

// One way to do a piece of work. Its use of each resource gives its roof: memory, cache and
// arithmetic overlap, but arithmetic and exp share a unit and are added.
typedef struct sinkproof_bench_case {
    char id[96];
    void (*run)(void *of);
    void *of;
    int threads; // 1, or all
    double need[SINKPROOF_BENCH_RESOURCES];
    double amount;    // in a call, in `unit`: tokens
    const char *unit; // "tok/s"; NULL: the rate of the roof's resource
    const char *isa;  // NULL: the table's own
    bool foreign;     // a library with threads of its own: pause so that they come to rest
    json_t *more;     // further members of the row, whose ownership is taken; or NULL
} sinkproof_bench_case;

typedef struct sinkproof_bench_times {
    size_t n;
    double t[SINKPROOF_BENCH_REPEATS];   // seconds, ascending once settled
    bool noisy[SINKPROOF_BENCH_REPEATS]; // in the order of measuring: the run was disturbed
    // After settling: the number of times taken, and whether the n that are kept include disturbed
    // ones.
    size_t taken;
    bool disturbed;
} sinkproof_bench_times;

// ---- times and load: audit/bench/bench_load.c ----

double sinkproof_bench_now(void); // seconds, monotonic
void sinkproof_bench_sort(sinkproof_bench_times *times);
double sinkproof_bench_median(const sinkproof_bench_times *times); // sorted

// A moment, or what lies between two: involuntary switches of the process, processor time of its
// threads (of the calling one where there is one), time of the clock.
typedef struct sinkproof_bench_gauge {
    int threads;
    long switches;
    double worked, seconds;
} sinkproof_bench_gauge;
sinkproof_bench_gauge sinkproof_bench_begin(int threads);
sinkproof_bench_gauge sinkproof_bench_end(const sinkproof_bench_gauge *begin);
// Whether the system took a processor away and the threads worked less than 15/16 of the time.
bool sinkproof_bench_is_disturbed(const sinkproof_bench_gauge *run);

void sinkproof_bench_add(sinkproof_bench_times *times, double t, bool disturbed);
size_t sinkproof_bench_quiet(const sinkproof_bench_times *times);
// The largest number of runs in search of `repeats` quiet ones.
size_t sinkproof_bench_rounds(size_t repeats);
// Sorts, and keeps only the quiet times if there are at least three. Otherwise keeps all, and marks
// them as disturbed if one is.
void sinkproof_bench_settle(sinkproof_bench_times *times);

// ---- limits: audit/bench/bench_limits.c ----

// The limits of a case, measured beside it.
typedef struct sinkproof_bench_seen {
    sinkproof_bench_times of[SINKPROOF_BENCH_RESOURCES]; // rates
    double rate[SINKPROOF_BENCH_RESOURCES];              // after settling
    bool disturbed; // a limit that the case needs was disturbed
} sinkproof_bench_seen;
// One run of a limit, or of all limits that are needed.
void sinkproof_bench_see_limit(sinkproof_bench *bench, sinkproof_bench_resource resource,
                               int threads, sinkproof_bench_times *rates);
void sinkproof_bench_see_limits(sinkproof_bench *bench, const double *need, int threads,
                                sinkproof_bench_seen *seen);
void sinkproof_bench_settle_limits(const sinkproof_bench *bench, const double *need, int threads,
                                   sinkproof_bench_seen *seen);
// A resource's rate: the median of what was measured meanwhile, but not less than the median of the
// beginning: what disturbs the measurement of a limit must not flatter the case. Settles.
double sinkproof_bench_limit(double first, sinkproof_bench_times *rates);

// One run of a resource's measurement, as a rate.
double sinkproof_bench_probe(sinkproof_bench *bench, sinkproof_bench_resource resource,
                             int threads);
// Measures all for one thread and for all threads: rows limit.*, bench->rate.
void sinkproof_bench_limits(sinkproof_bench *bench);

// ---- measuring: audit/bench/bench.c ----

// Whether --only lets `id` through.
bool sinkproof_bench_wants(const sinkproof_bench *bench, const char *id);
// Runs `work` for pieces 0 .. pieces - 1, each by the next free one of `threads` workers.
void sinkproof_bench_share(int threads, size_t pieces,
                           void (*work)(void *of, size_t piece, int worker), void *of);

// Measures alternatives in turn and appends a row for each, except for cases that --only excludes.
void sinkproof_bench_measure(sinkproof_bench *bench, size_t n, sinkproof_bench_case *cases);

// ---- what is told: audit/bench/bench_row.c ----

// "bench: WHAT" on stderr when that is a terminal; NULL clears the line.
void sinkproof_bench_say(const char *what);
// A row's member "disturbed": what of "case", "limit" and "share" (above 1) holds.
json_t *sinkproof_bench_disturbances(bool of_case, bool of_limit, double share);
// The median of settled times as a row, against the roof: the limits measured meanwhile, settled.
json_t *sinkproof_bench_row(sinkproof_bench *bench, const sinkproof_bench_case *c,
                            const sinkproof_bench_times *times, const sinkproof_bench_seen *seen);

// What `scores` scores and their shares of the outputs need of arithmetic, added to need: either is
// 2 head_dim operations. Scores against a bf16 cache are made of pairs where the table has them; on
// tiles so are the shares, with each weight as three bf16 numbers: 6 head_dim operations.
void sinkproof_bench_scores(const sinkproof_kernels *table, sinkproof_panel_format cache,
                            size_t head_dim, double scores, double *need);

// ---- peaks: audit/bench/bench_peaks.c ----

// A loop that only computes, and its floating-point operations; `turns` turns run on the calling
// thread.
typedef struct sinkproof_bench_peak {
    const char *name; // "vfmadd231ps zmm"
    double flops;     // of one turn
    void (*run)(size_t turns);
} sinkproof_bench_peak;
// The table's peak of float32 products and sums, or of pairs of bf16 numbers; NULL where it has
// none.
const sinkproof_bench_peak *sinkproof_bench_peak_of(const sinkproof_kernels *table, bool pairs);

// Fills with random numbers of the format: of size at most 1 (BF16, F32), or any code (MXFP4,
// Q8_0).
void sinkproof_bench_fill(sinkproof_panel_format format, uint8_t *data, size_t bytes);

void sinkproof_bench_products(sinkproof_bench *bench);  // audit/bench/bench_products.c
void sinkproof_bench_stages(sinkproof_bench *bench);    // audit/bench/bench_stages.c
void sinkproof_bench_attention(sinkproof_bench *bench); // audit/bench/bench_attention.c
// One query against each number of `keys`, as series of a figure.
void sinkproof_bench_attention_scaling(sinkproof_bench *bench, const sinkproof_bench_list *keys);
bool sinkproof_bench_model(sinkproof_bench *bench,
                           sinkproof_error *error); // audit/bench/bench_model.c
bool sinkproof_bench_scaling(sinkproof_bench *bench, sinkproof_error *error);

// Prints the result: a table, or with --scaling columns for gnuplot.
void sinkproof_bench_print(const sinkproof_bench *bench); // audit/bench/bench_print.c

#endif
