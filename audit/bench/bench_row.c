// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How a case is told: its row, against the roof that it stands under, and the line on the terminal
// meanwhile.
#include "audit/bench/bench.h"

#include "fast/kernels/isa.h"

#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *unit;
    double scale; // of the unit
} resources[BENCH_RESOURCES] = {
    [BENCH_MEMORY] = {"memory", "GB/s", 1e9},     [BENCH_CACHE] = {"cache", "GB/s", 1e9},
    [BENCH_FMA] = {"arithmetic", "GFLOP/s", 1e9}, [BENCH_PAIRS] = {"arithmetic", "GFLOP/s", 1e9},
    [BENCH_EXP] = {"arithmetic", "Gexp/s", 1e9},
};

void sinkproof_bench_say(const char *what) {
    if (!isatty(STDERR_FILENO)) return;
    if (what == NULL)
        fprintf(stderr, "\r\033[K");
    else
        fprintf(stderr, "\r\033[Kbench: %s", what);
    fflush(stderr);
}

typedef struct roof {
    double seconds; // the least that a call takes
    bench_resource of;
} roof;

static double least_seconds(const bench_case *c, const double *rate, bench_resource r) {
    return c->need[r] > 0 && rate[r] > 0 ? c->need[r] / rate[r] : 0;
}

static roof find_roof(const bench_case *c, const double *rate) {
    double pairs = least_seconds(c, rate, BENCH_PAIRS);
    double fma = least_seconds(c, rate, BENCH_FMA);
    double exps = least_seconds(c, rate, BENCH_EXP);
    roof best = {pairs + fma + exps, pairs > 0                ? BENCH_PAIRS
                                     : c->need[BENCH_FMA] > 0 ? BENCH_FMA
                                                              : BENCH_EXP};
    double memory = least_seconds(c, rate, BENCH_MEMORY);
    double cache = least_seconds(c, rate, BENCH_CACHE);
    if (memory > best.seconds) best = (roof){memory, BENCH_MEMORY};
    if (cache > best.seconds) best = (roof){cache, BENCH_CACHE};
    return best;
}

void bench_count_score_work(const sinkproof_kernels *table, sinkproof_panel_format cache,
                            size_t head_dim, double scores, double *need) {
    const bool pairs = table->pairs && cache == SINKPROOF_PANEL_BF16;
    const bool tiles = pairs && strcmp(table->mode, "amx") == 0;
    const double product = scores * 2 * (double)head_dim;
    need[pairs ? BENCH_PAIRS : BENCH_FMA] += product;
    need[tiles ? BENCH_PAIRS : BENCH_FMA] += tiles ? 3 * product : product;
    need[BENCH_EXP] += scores;
}

static void describe_run(const sinkproof_bench *bench, json_t *row, const bench_case *c) {
    json_object_set_new(row, "isa", json_string(c->isa != NULL ? c->isa : bench->table->isa));
    json_object_set_new(row, "mode", json_string(bench->table->mode));
    json_object_set_new(row, "threads", json_integer(c->threads));
    json_object_set_new(row, "processor", json_string(sinkproof_isa_processor()));
}

json_t *bench_row_json(sinkproof_bench *bench, const bench_case *c, const bench_times *times,
                       const bench_watched *seen) {
    json_t *row = json_object();
    double median = bench_median(times);
    roof top = find_roof(c, seen->rate);
    double amount = c->amount;
    const char *unit = c->unit;
    if (unit == NULL) {
        bool pairs = top.of == BENCH_PAIRS;
        amount = (c->need[top.of] + (pairs ? c->need[BENCH_FMA] : 0)) / resources[top.of].scale;
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
        bench_disturbances(times->disturbed, seen->disturbed, top.seconds / median));
    describe_run(bench, row, c);
    if (c->more != NULL) json_object_update(row, c->more);
    return row;
}

json_t *bench_disturbances(bool of_case, bool of_limit, double share) {
    json_t *found = json_array();
    if (of_case) json_array_append_new(found, json_string("case"));
    if (of_limit) json_array_append_new(found, json_string("limit"));
    if (share > 1) json_array_append_new(found, json_string("share"));
    return found;
}

void bench_add_row(sinkproof_bench *bench, json_t *row) {
    json_array_append_new(bench->rows, row);
    if (!bench->shows) return;
    sinkproof_bench_say(NULL);
    bench_print_newest(bench);
}
