// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the rows of a run as a table, and as columns for gnuplot. It reads the rows of the JSON,
// so that both agree.
#include "audit/bench/bench.h"

#include "base/share.h"
#include "base/words.h"
#include "fast/kernels/isa.h"

#include <string.h>

static double row_number(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

static const char *row_text(const json_t *row, const char *key) {
    const char *value = json_string_value(json_object_get(row, key));
    return value != NULL ? value : "";
}

// Four significant digits, without an exponent.
static void show_number(char *to, size_t room, double x) {
    int digits = x >= 1000 ? 0 : x >= 100 ? 1 : x >= 10 ? 2 : x >= 0.1 ? 3 : 5;
    snprintf(to, room, "%.*f", digits, x);
}

static void show_time(char *to, size_t room, double seconds) {
    char digits[24];
    const char *unit = seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    show_number(digits, sizeof digits, seconds * (seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1));
    snprintf(to, room, "%s %s", digits, unit);
}

static bool has_more(const json_t *row, const char *key) {
    return json_object_get(row, key) != NULL;
}

static long long row_count(const json_t *row, const char *key) {
    return (long long)json_integer_value(json_object_get(row, key));
}

// Prints "  DISTURBED: limit, share", the disturbances of a row's figures.
static void print_disturbances(const json_t *row) {
    const json_t *found;
    size_t i;
    json_array_foreach(json_object_get(row, "disturbed"), i, found)
        printf("%s%s", i == 0 ? "  DISTURBED: " : ", ", json_string_value(found));
}

static void print_row(const json_t *row) {
    char value[32], limit[32] = "", time[32], least[32], most[32];
    show_number(value, sizeof value, row_number(row, "value"));
    sinkproof_share_text share = {""};
    if (!json_is_null(json_object_get(row, "limit"))) {
        show_number(limit, sizeof limit, row_number(row, "limit"));
        share = sinkproof_share_percent(row_number(row, "share"), 1);
    }
    const json_t *spread = json_object_get(row, "spread");
    show_time(time, sizeof time, row_number(row, "median"));
    show_time(least, sizeof least, json_number_value(json_array_get(spread, 0)));
    show_time(most, sizeof most, json_number_value(json_array_get(spread, 1)));
    printf("%-40s %9s %-13s %9s %8s  %-10s %10s  %s .. %s (%lld", row_text(row, "id"), value,
           row_text(row, "unit"), limit, share.text, row_text(row, "roof"), time, least, most,
           row_count(row, "repeats"));
    if (row_count(row, "taken") != row_count(row, "repeats"))
        printf(" of %lld", row_count(row, "taken"));
    printf(")");
    print_disturbances(row);
    if (has_more(row, "how")) printf("  %s", row_text(row, "how"));
    if (has_more(row, "bytes_per_token"))
        printf("  %.4g MB/token", row_number(row, "bytes_per_token") / 1e6);
    if (has_more(row, "cache_bytes"))
        printf(", cache %.1f MB", row_number(row, "cache_bytes") / 1e6);
    if (has_more(row, "weight_bytes"))
        printf("  weights %.2f GB, memory at most %.2f GB", row_number(row, "weight_bytes") / 1e9,
               row_number(row, "peak_memory_bytes") / 1e9);
    printf("\n");
}

static void print_head(const sinkproof_bench *bench, const char *prefix) {
    printf("%sprocessor: %s; instruction set %s, numeric mode %s; %s\n", prefix,
           sinkproof_isa_processor(), bench->table->isa, bench->table->mode,
           sinkproof_counted((size_t)bench->threads, "thread").text);
    if (bench->model != NULL)
        printf("%smodel: %s; policy %s\n", prefix, bench->model, bench->policy.name);
    if (bench->scaling == NULL)
        printf("every number is measured: the median of the repeats in brackets, after the least "
               "and the\nlargest time; limits are measured first, and again before each repeat. A "
               "run is disturbed when\na processor was taken away and its threads were at work for "
               "less than %d/%d of the time:\nup to %d times as many runs are made for quiet ones, "
               "and the others left out where three are quiet.\nDISTURBED says what stayed so: the "
               "case, its limit; share: it is above 100 %%, so that one of the\ntwo was, or the "
               "limit is not the roof (as where weights stay in a cache)\n",
               SINKPROOF_BENCH_BUSY - 1, SINKPROOF_BENCH_BUSY, SINKPROOF_BENCH_AGAIN);
    if (bench->quick)
        printf("%s--quick: small shapes that fit in caches; no figure to quote\n", prefix);
}

void bench_print_newest(const sinkproof_bench *bench) {
    size_t rows = json_array_size(bench->rows);
    if (rows == 1) {
        print_head(bench, "");
        printf("\n%-40s %9s %-13s %9s %8s  %-10s %10s  %s\n", "", "value", "", "limit", "share",
               "roof", "time", "spread");
    }
    print_row(json_array_get(bench->rows, rows - 1));
    fflush(stdout);
}

static void print_column(const json_t *row) {
    const json_t *spread = json_object_get(row, "spread");
    double tokens = row_number(row, "tokens");
    if (json_array_size(json_object_get(row, "disturbed")) > 0) {
        printf("# at %lld:", row_count(row, "at"));
        print_disturbances(row);
        printf("\n");
    }
    printf("%lld %.9g %.9g %.9g %.9g\n", row_count(row, "at"), row_number(row, "median") / tokens,
           json_number_value(json_array_get(spread, 0)) / tokens,
           json_number_value(json_array_get(spread, 1)) / tokens,
           row_number(row, "median") * row_number(row, "share") / tokens);
}

// The first row of `series` from `to` on; NULL if there is none.
static const json_t *next_row_in_series(const sinkproof_bench *bench, const char *series,
                                        size_t *to) {
    for (; *to < json_array_size(bench->rows); ++*to) {
        const json_t *row = json_array_get(bench->rows, *to);
        if (has_more(row, "series") && strcmp(row_text(row, "series"), series) == 0) return row;
    }
    return NULL;
}

// Prints "# series" and lines of "at seconds least most roof", in seconds per token, with two empty
// lines between series, which come in the order of their first rows.
void sinkproof_bench_print_columns(const sinkproof_bench *bench) {
    printf("# sinkproof bench --scaling %s: seconds per token, measured: median, least, most, and "
           "the roof\n",
           bench->scaling);
    print_head(bench, "# ");
    const char *between = "";
    for (size_t first = 0; first < json_array_size(bench->rows); first++) {
        const json_t *row = json_array_get(bench->rows, first);
        size_t r = 0;
        if (!has_more(row, "series")) continue;
        const char *series = row_text(row, "series");
        next_row_in_series(bench, series, &r);
        if (r < first) continue;
        printf("%s# %s\n# at seconds least most roof\n", between, series);
        between = "\n\n";
        for (; (row = next_row_in_series(bench, series, &r)) != NULL; r++) print_column(row);
    }
}
