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
typedef enum bench_resource {
    BENCH_MEMORY, // reading from DRAM
    BENCH_CACHE,  // copying within the first-level cache, bytes read plus bytes written
    BENCH_FMA,    // float32
    BENCH_PAIRS,  // the instruction for pairs of bf16 numbers, if the set has one
    BENCH_EXP,
    BENCH_RESOURCES
} bench_resource;

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
    size_t arena_bytes, last_level;     // last_level: bytes of the largest cache, 0: unknown
    uint8_t **scratch_t;                // [threads] SINKPROOF_SCRATCH bytes each
    size_t memory_part;                 // the part of the arena to read next
    size_t memory_variant;              // the fastest way of reading
    double rate[2][BENCH_RESOURCES];    // for one thread, and for all; 0: unavailable
    bool disturbed[2][BENCH_RESOURCES]; // whether `rate` was measured under disturbance
    json_t *rows;
    size_t matched; // cases selected by --only
    bool looks;     // only `matched` is counted: nothing is measured
    bool shows;     // rows are printed when they come
} sinkproof_bench;

// One way to do a piece of work. Its use of each resource gives its roof: memory, cache and
// arithmetic overlap, but arithmetic and exp share a unit and are added.
typedef struct bench_case {
    char id[96];
    void (*run)(void *of);
    void *of;
    int threads; // 1, or all
    double need[BENCH_RESOURCES];
    double amount;    // in a call, in `unit`: tokens
    const char *unit; // "tok/s"; NULL: the rate of the roof's resource
    const char *isa;  // NULL: the table's own
    bool foreign;     // a library with threads of its own: pause so that they come to rest
    json_t *more;     // further members of the row, whose ownership is taken; or NULL
} bench_case;

typedef struct bench_times {
    size_t n;
    double t[SINKPROOF_BENCH_REPEATS];   // seconds, ascending once settled
    bool noisy[SINKPROOF_BENCH_REPEATS]; // in the order of measuring: the run was disturbed
    // After settling: the number of times taken, and whether the n that are kept include disturbed
    // ones.
    size_t taken;
    bool disturbed;
} bench_times;

// ---- times and load: audit/bench/bench_load.c ----

double bench_clock_seconds(void); // seconds, monotonic
void bench_times_sort(bench_times *times);
double bench_median(const bench_times *times); // sorted

// A moment, or what lies between two: involuntary switches of the process, processor time of its
// threads (of the calling one where there is one), time of the clock.
typedef struct bench_gauge {
    int threads;
    long switches;
    double worked, seconds;
} bench_gauge;
bench_gauge bench_begin(int threads);
bench_gauge bench_end(const bench_gauge *begin);
// Whether the system took a processor away and the threads worked less than 15/16 of the time.
bool bench_is_disturbed(const bench_gauge *run);

void bench_times_add(bench_times *times, double t, bool disturbed);
size_t bench_quiet_count(const bench_times *times);
// The largest number of runs in search of `repeats` quiet ones.
size_t bench_rounds(size_t repeats);
// Sorts, and keeps only the quiet times if there are at least three. Otherwise keeps all, and marks
// them as disturbed if one is.
void bench_times_settle(bench_times *times);

// ---- limits: audit/bench/bench_limits.c ----

// The limits of a case, measured beside it.
typedef struct bench_watched {
    bench_times of[BENCH_RESOURCES]; // rates
    double rate[BENCH_RESOURCES];    // after settling
    bool disturbed;                  // a limit that the case needs was disturbed
} bench_watched;
// One run of a limit, or of all limits that are needed.
void bench_watch_limit(sinkproof_bench *bench, bench_resource resource, int threads,
                       bench_times *rates);
void bench_watch_limits(sinkproof_bench *bench, const double *need, int threads,
                        bench_watched *seen);
void bench_settle_limits(const sinkproof_bench *bench, const double *need, int threads,
                         bench_watched *seen);
// A resource's rate: the median of what was measured meanwhile, but not less than the median of the
// beginning: what disturbs the measurement of a limit must not flatter the case. Settles.
double bench_limit(double first, bench_times *rates);

// One run of a resource's measurement, as a rate.
double bench_probe(sinkproof_bench *bench, bench_resource resource, int threads);
// Measures all for one thread and for all threads: rows limit.*, bench->rate.
void sinkproof_bench_limits(sinkproof_bench *bench);

// ---- measuring: audit/bench/bench.c ----

// Whether --only lets `id` through.
bool bench_is_wanted(const sinkproof_bench *bench, const char *id);
// Runs `work` for pieces 0 .. pieces - 1, each by the next free one of `threads` workers.
void bench_share_pieces(int threads, size_t pieces,
                        void (*work)(void *of, size_t piece, int worker), void *of);

// Measures alternatives in turn and appends a row for each, except for cases that --only excludes.
void bench_measure(sinkproof_bench *bench, size_t n, bench_case *cases);

// ---- what is told: audit/bench/bench_row.c ----

// "bench: WHAT" on stderr when that is a terminal; NULL clears the line.
void sinkproof_bench_say(const char *what);
// A row's member "disturbed": what of "case", "limit" and "share" (above 1) holds.
json_t *bench_disturbances(bool of_case, bool of_limit, double share);
// The median of settled times as a row, against the roof: the limits measured meanwhile, settled.
json_t *bench_row_json(sinkproof_bench *bench, const bench_case *c, const bench_times *times,
                       const bench_watched *seen);

// Appends a row, whose ownership is taken, and prints it if the rows are shown.
void bench_add_row(sinkproof_bench *bench, json_t *row);

// What `scores` scores and their shares of the outputs need of arithmetic, added to need: either is
// 2 head_dim operations. Scores against a bf16 cache are made of pairs where the table has them; on
// tiles so are the shares, with each weight as three bf16 numbers: 6 head_dim operations.
void bench_count_score_work(const sinkproof_kernels *table, sinkproof_panel_format cache,
                            size_t head_dim, double scores, double *need);

// ---- peaks: audit/bench/bench_peaks.c ----

// A loop that only computes, and its floating-point operations; `turns` turns run on the calling
// thread.
typedef struct bench_peak {
    const char *name; // "vfmadd231ps zmm"
    double flops;     // of one turn
    void (*run)(size_t turns);
} bench_peak;
// The table's peak of float32 products and sums, or of pairs of bf16 numbers; NULL where it has
// none.
const bench_peak *bench_peak_find(const sinkproof_kernels *table, bool pairs);

// Fills with random numbers of the format: of size at most 1 (BF16, F32), or any code (MXFP4,
// Q8_0).
void bench_fill_panels(sinkproof_panel_format format, uint8_t *data, size_t bytes);

void sinkproof_bench_products(sinkproof_bench *bench);  // audit/bench/bench_products.c
void sinkproof_bench_stages(sinkproof_bench *bench);    // audit/bench/bench_stages.c
void sinkproof_bench_attention(sinkproof_bench *bench); // audit/bench/bench_attention.c
bool sinkproof_bench_truth(sinkproof_bench *bench,
                           sinkproof_error *error); // audit/bench/bench_truth.c
// One query against each number of `keys`, as series of a figure.
void bench_attention_scaling(sinkproof_bench *bench, const sinkproof_bench_list *keys);
bool sinkproof_bench_model(sinkproof_bench *bench,
                           sinkproof_error *error); // audit/bench/bench_model.c
bool sinkproof_bench_scaling(sinkproof_bench *bench, sinkproof_error *error);

// ---- printing: audit/bench/bench_print.c ----

// The newest row of a table; before the first one, the head.
void bench_print_newest(const sinkproof_bench *bench);
// With --scaling: columns for gnuplot.
void sinkproof_bench_print_columns(const sinkproof_bench *bench);

#endif
