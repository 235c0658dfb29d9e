// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the benchmark calls disturbed, from planted runs, and the operations that attention needs:
// no time is measured here but one, of which only that it is a time is asked.
#include "audit/bench/bench.h"

#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static const struct run {
    const char *what;
    bench_gauge run; // threads, switches, worked, seconds
    bool expected;
} runs[] = {
    {"at work all the time", {1, 0, 1, 1}, false},
    {"switched, and at work all the time", {1, 3, 1, 1}, false},
    {"at work for just 15/16 of the time", {1, 1, 0.9375, 1}, false},
    {"at work for less", {1, 1, 0.9374, 1}, true},
    {"waiting for each other, never switched", {4, 0, 1, 1}, false},
    {"one of two threads switched away half the time", {2, 2, 1.5, 1}, true},
    {"two threads at work", {2, 2, 1.99, 1}, false},
    {"a slice of time lost in a run of a millisecond", {2, 1, 2e-3, 9e-3}, true},
    {"a time that is no number", {1, 1, NAN, 1}, true},
};

// Repeats with those at the given places disturbed.
static bench_times times_of(size_t n, uint32_t noisy) {
    bench_times times = {0};
    for (size_t i = 0; i < n; i++) {
        bool disturbed = (noisy >> i & 1) != 0;
        bench_times_add(&times, disturbed ? 100.0 + (double)i : (double)(n - i), disturbed);
    }
    return times;
}

static void test_settled(void) {
    static const struct {
        size_t n;
        uint32_t noisy;
        size_t left;
        bool disturbed;
        double median;
    } all[] = {
        {5, 0, 5, false, 3},          // all quiet
        {5, 1 << 1, 4, false, 2.5},   // 5 3 2 1
        {5, 0x3, 3, false, 2},        // 3 2 1
        {5, 0x7, 5, true, 100},       // two quiet ones are too few: 1 2 100 101 102
        {3, 0x4, 3, true, 3},         // 2 3 102
        {1, 0, 1, false, 1},          // one alone
        {1, 1, 1, true, 100},         // one alone, disturbed
        {9, 0x1ff, 9, true, 104},     // nothing else
        {27, 0x7fffff8, 3, false, 26} // three at the beginning
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bench_times t = times_of(all[i].n, all[i].noisy);
        size_t quiet = bench_quiet_count(&t);
        bench_times_settle(&t);
        bool sorted = true;
        for (size_t k = 1; k < t.n; k++) sorted = sorted && t.t[k - 1] <= t.t[k];
        ok(t.n == all[i].left && t.taken == all[i].n && t.disturbed == all[i].disturbed && sorted &&
               bench_median(&t) == all[i].median,
           "%zu runs, %zu quiet: %zu are left%s", all[i].n, quiet, t.n,
           t.disturbed ? ", disturbed" : "");
    }
    ok(bench_rounds(1) == 3 && bench_rounds(9) == 27 && bench_rounds(98) == SINKPROOF_BENCH_REPEATS,
       "three times the repeats at most, and as many as there is room for");
}

static bool says(bool of_case, bool of_limit, double share, const char *expected) {
    json_t *found = bench_disturbances(of_case, of_limit, share);
    char *text = json_dumps(found, JSON_COMPACT);
    bool good = text != NULL && strcmp(text, expected) == 0;
    free(text);
    json_decref(found);
    return good;
}

// A row made of planted times under a planted limit.
static json_t *row_of(double share, bool of_case, bool of_limit) {
    sinkproof_bench bench = {.threads = 1, .table = &kernels_portable};
    bench_case c = {.id = "planted", .threads = 1};
    bench_watched *seen = calloc(1, sizeof *seen);
    must(seen != NULL);
    bench_times times = times_of(3, of_case ? 7 : 0);
    c.need[BENCH_MEMORY] = 1;
    bench_times_settle(&times);
    double median = bench_median(&times);
    for (int i = 0; i < 3; i++)
        bench_times_add(&seen->of[BENCH_MEMORY], 1 / (median * share), of_limit);
    bench_settle_limits(&bench, c.need, 1, seen);
    json_t *row = bench_row_json(&bench, &c, &times, seen);
    free(seen);
    return row;
}

static void test_rows(void) {
    ok(says(false, false, 1, "[]") && says(true, false, 0.5, "[\"case\"]") &&
           says(false, true, 0.5, "[\"limit\"]") && says(false, false, 1.01, "[\"share\"]") &&
           says(true, true, 43.1, "[\"case\",\"limit\",\"share\"]"),
       "a row says what of case, limit and share is disturbed");
    size_t wrong = 0, rows = 0;
    for (int of_case = 0; of_case < 2; of_case++)
        for (int of_limit = 0; of_limit < 2; of_limit++)
            for (int above = 0; above < 2; above++, rows++) {
                json_t *row = row_of(above ? 43.1 : 0.9, of_case, of_limit);
                char *said = json_dumps(json_object_get(row, "disturbed"), JSON_COMPACT);
                must(said != NULL);
                wrong += (strstr(said, "case") != NULL) != of_case ||
                         (strstr(said, "limit") != NULL) != of_limit ||
                         (strstr(said, "share") != NULL) != above;
                wrong += (json_real_value(json_object_get(row, "share")) > 1) != above;
                free(said);
                json_decref(row);
            }
    ok(wrong == 0, "of %zu planted rows none has a share above 1 without saying so: %zu wrong",
       rows, wrong);
}

// Operations of 10 scores of heads of 64, in thousands: a score and its share of the output are 128
// each, and on tiles a share is three products.
static void test_scores(void) {
    static const struct {
        sinkproof_kernels table;
        sinkproof_panel_format cache;
        double fma, pairs;
    } sets[] = {{{.mode = "lanes"}, SINKPROOF_PANEL_BF16, 2.56, 0},
                {{.mode = "lanes", .pairs = true}, SINKPROOF_PANEL_BF16, 1.28, 1.28},
                {{.mode = "lanes", .pairs = true}, SINKPROOF_PANEL_F32, 2.56, 0},
                {{.mode = "amx", .pairs = true}, SINKPROOF_PANEL_BF16, 0, 5.12},
                {{.mode = "amx", .pairs = true}, SINKPROOF_PANEL_F32, 2.56, 0}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        double need[BENCH_RESOURCES] = {0};
        bench_count_score_work(&sets[i].table, sets[i].cache, 64, 10, need);
        ok(need[BENCH_FMA] == 1000 * sets[i].fma && need[BENCH_PAIRS] == 1000 * sets[i].pairs &&
               need[BENCH_EXP] == 10,
           "%s, %s, a cache in %s: %g operations of float32, %g of pairs", sets[i].table.mode,
           sets[i].table.pairs ? "with pairs" : "without",
           sets[i].cache == SINKPROOF_PANEL_F32 ? "float32" : "bf16", need[BENCH_FMA],
           need[BENCH_PAIRS]);
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        ok(bench_is_disturbed(&runs[i].run) == runs[i].expected, "%s: %s", runs[i].what,
           runs[i].expected ? "disturbed" : "not disturbed");
    test_settled();
    test_rows();
    test_scores();
    bench_gauge begin = bench_begin(1), run = bench_end(&begin);
    ok(run.threads == 1 && run.switches >= 0 && run.worked >= 0 && run.seconds >= 0,
       "a gauge measures what lies between its two ends");
    return tap_done();
}
