// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof bench` is made of: cases, measured in turn with the machine's limits, and rows of
// the result. A figure is the median of R runs; its limit is the roof that the case stands under,
// measured in the same minutes: before each run of a case the limits that it needs are measured
// again. A run that the machine's other work disturbed is left out where there are quiet ones, and
// said where there are not. Never a verdict on time.
#ifndef SINKPROOF_BENCH_H
#define SINKPROOF_BENCH_H

#include "fast/kernels/kernels.h"
#include "ref/policy.h"

#include <jansson.h>

enum {
    SINKPROOF_BENCH_LIST = 32,    // numbers in --prompt, --depth, --batch
    SINKPROOF_BENCH_REPEATS = 99, // at most
    SINKPROOF_BENCH_TOGETHER = 4, // alternatives that are measured in turn
    SINKPROOF_BENCH_AGAIN = 3,    // times as many runs as were asked for, at most, for quiet ones
    SINKPROOF_BENCH_BUSY = 16,    // threads at work less than 15/16 of the time were disturbed
};

typedef struct sinkproof_bench_list {
    size_t n, at[SINKPROOF_BENCH_LIST];
} sinkproof_bench_list;

// A resource of the machine. MEMORY and CACHE in bytes per second, FMA and PAIRS in floating-point
// operations (a fused product and sum is two), EXP in values.
typedef enum sinkproof_bench_resource {
    SINKPROOF_BENCH_MEMORY, // reading from DRAM
    SINKPROOF_BENCH_CACHE,  // copying within the first-level cache, bytes read plus bytes written
    SINKPROOF_BENCH_FMA,    // float32
    SINKPROOF_BENCH_PAIRS,  // the set's instruction for pairs of bf16 numbers, where it has one
    SINKPROOF_BENCH_EXP,
    SINKPROOF_BENCH_RESOURCES
} sinkproof_bench_resource;

typedef struct sinkproof_bench {
    // The command line.
    const sinkproof_kernels *table, *table_of_one; // the model's passes of one token: the second
    const char *model, *only, *scaling;            // or NULL
    bool quick;
    // As in sinkproof_engine_options, of the packing of weights; or NULL.
    void (*progress)(void *context, const char *what, size_t done, size_t total);
    int threads;
    size_t repeat, decode;
    sinkproof_bench_list prompt, depth, batch;
    sinkproof_policy policy;
    // The run.
    uint8_t *arena; // weights and caches under test, in 2 MiB pages where the system gives them
    size_t arena_bytes, last_level;            // last_level: bytes of the largest cache, 0 unknown
    uint8_t **scratch_t;                       // [threads] SINKPROOF_SCRATCH bytes each
    size_t memory_part;                        // of the arena, read next
    size_t memory_variant;                     // of reading: the best found
    double rate[2][SINKPROOF_BENCH_RESOURCES]; // for one thread, for all; 0: there is none
    bool disturbed[2][SINKPROOF_BENCH_RESOURCES]; // what `rate` was measured under
    json_t *rows;
    size_t matched; // cases that --only let through
} sinkproof_bench;

// One way of doing a piece of work. What a call needs of each resource is its roof: memory, cache
// and arithmetic go on side by side, but arithmetic and exp share their unit and are added.
typedef struct sinkproof_bench_case {
    char id[96];
    void (*run)(void *of);
    void *of;
    int threads; // 1 or all
    double need[SINKPROOF_BENCH_RESOURCES];
    double amount;    // of `unit` in a call: tokens
    const char *unit; // "tok/s"; NULL: the rate at which the roof's resource is used
    const char *isa;  // NULL: the table's
    bool foreign;     // a library with threads of its own: a pause lets them come to rest
    json_t *more;     // further members of the row, stolen; or NULL
} sinkproof_bench_case;

typedef struct sinkproof_bench_times {
    size_t n;
    double t[SINKPROOF_BENCH_REPEATS];   // seconds, ascending once settled
    bool noisy[SINKPROOF_BENCH_REPEATS]; // in the order of measuring: the run was disturbed
    // Once settled: how many there were, and whether the n that are left are disturbed ones too.
    size_t taken;
    bool disturbed;
} sinkproof_bench_times;

double sinkproof_bench_now(void); // seconds, monotonic
void sinkproof_bench_sort(sinkproof_bench_times *times);
double sinkproof_bench_median(const sinkproof_bench_times *times); // sorted

// ---- load: audit/bench/bench_load.c ----

// A moment, or what lies between two: involuntary switches of the process, processor time of its
// threads (of the calling one where there is one), time of the clock.
typedef struct sinkproof_bench_gauge {
    int threads;
    long switches;
    double worked, seconds;
} sinkproof_bench_gauge;
sinkproof_bench_gauge sinkproof_bench_begin(int threads);
sinkproof_bench_gauge sinkproof_bench_end(const sinkproof_bench_gauge *begin);
// The system took a processor away, and the threads were at work for less than 15/16 of the time.
bool sinkproof_bench_is_disturbed(const sinkproof_bench_gauge *run);

void sinkproof_bench_add(sinkproof_bench_times *times, double t, bool disturbed);
size_t sinkproof_bench_quiet(const sinkproof_bench_times *times);
// Runs at most, for `repeats` quiet ones.
size_t sinkproof_bench_rounds(size_t repeats);
// Three quiet times or more: the others are left out. Otherwise all stay, and are called disturbed
// if one of them is. Sorts.
void sinkproof_bench_settle(sinkproof_bench_times *times);

// The limits of a case, measured beside it.
typedef struct sinkproof_bench_seen {
    sinkproof_bench_times of[SINKPROOF_BENCH_RESOURCES]; // rates
    double rate[SINKPROOF_BENCH_RESOURCES];              // once settled
    bool disturbed;                                      // one that the case needs
} sinkproof_bench_seen;
// One run of a limit, or of all that are needed.
void sinkproof_bench_see_limit(sinkproof_bench *bench, sinkproof_bench_resource resource,
                               int threads, sinkproof_bench_times *rates);
void sinkproof_bench_see_limits(sinkproof_bench *bench, const double *need, int threads,
                                sinkproof_bench_seen *seen);
void sinkproof_bench_settle_limits(const sinkproof_bench *bench, const double *need, int threads,
                                   sinkproof_bench_seen *seen);
// A row's member "disturbed": what of "case", "limit" and "share" (above 1) holds.
json_t *sinkproof_bench_disturbances(bool of_case, bool of_limit, double share);

// A resource's rate: the median of what was measured meanwhile, but not less than the median of the
// beginning: what disturbs the measurement of a limit must not flatter the case. Settles.
double sinkproof_bench_limit(double first, sinkproof_bench_times *rates);

// Whether --only lets `id` through.
bool sinkproof_bench_wants(const sinkproof_bench *bench, const char *id);
// "bench: WHAT" on stderr when that is a terminal; NULL clears the line.
void sinkproof_bench_say(const char *what);

// Runs `work` for pieces 0 .. pieces - 1, each by the next free one of `threads` workers.
void sinkproof_bench_share(int threads, size_t pieces,
                           void (*work)(void *of, size_t piece, int worker), void *of);

// Measures alternatives in turn and appends a row for each. Cases that --only excludes are left
// out.
void sinkproof_bench_measure(sinkproof_bench *bench, size_t n, sinkproof_bench_case *cases);

// The median of settled times as a row, against the roof: the limits measured meanwhile, settled.
json_t *sinkproof_bench_row(sinkproof_bench *bench, const sinkproof_bench_case *c,
                            const sinkproof_bench_times *times, const sinkproof_bench_seen *seen);

// The limits. One run of a resource's measurement, as a rate.
double sinkproof_bench_probe(sinkproof_bench *bench, sinkproof_bench_resource resource,
                             int threads);
// Measures all for one thread and for all threads: rows limit.*, bench->rate.
void sinkproof_bench_limits(sinkproof_bench *bench);

// Floating-point operations of `turns` turns of a loop that does nothing else, on the calling
// thread.
typedef struct sinkproof_bench_peak {
    const char *name; // "vfmadd231ps zmm"
    double flops;     // of one turn
    void (*run)(size_t turns);
} sinkproof_bench_peak;
// What `scores` scores and their shares of the outputs need of arithmetic, added to need: either is
// 2 head_dim operations. Scores against a bf16 cache are made of pairs where the table has them; on
// tiles so are the shares, with each weight as three bf16 numbers: 6 head_dim operations.
void sinkproof_bench_scores(const sinkproof_kernels *table, sinkproof_panel_format cache,
                            size_t head_dim, double scores, double *need);

// The table's peak of float32 products and sums, or of pairs of bf16 numbers; NULL where it has
// none.
const sinkproof_bench_peak *sinkproof_bench_peak_of(const sinkproof_kernels *table, bool pairs);

// Random bits that are numbers of the format: size at most 1 (BF16, F32), any code (MXFP4, Q8_0).
void sinkproof_bench_fill(sinkproof_panel_format format, uint8_t *data, size_t bytes);

void sinkproof_bench_products(sinkproof_bench *bench);  // audit/bench/bench_products.c
void sinkproof_bench_stages(sinkproof_bench *bench);    // audit/bench/bench_stages.c
void sinkproof_bench_attention(sinkproof_bench *bench); // audit/bench/bench_attention.c
// One query against each of `keys`, as series of a figure.
void sinkproof_bench_attention_scaling(sinkproof_bench *bench, const sinkproof_bench_list *keys);
bool sinkproof_bench_model(sinkproof_bench *bench,
                           sinkproof_error *error); // audit/bench/bench_model.c
bool sinkproof_bench_scaling(sinkproof_bench *bench, sinkproof_error *error);

// The result for people: a table, or with --scaling columns that gnuplot reads.
void sinkproof_bench_print(const sinkproof_bench *bench); // audit/bench/bench_print.c

#endif
