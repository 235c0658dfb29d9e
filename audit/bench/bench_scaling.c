// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The data of the cost figures: seconds per token against context, batch and threads. A row's
// `series` is a line of the figure and `at` its place on the horizontal axis.
#include "audit/bench/bench_model.h"

#include "base/words.h"

#include <string.h>

// Powers of two from 1 up to `last`.
static sinkproof_bench_list powers_of_two_up_to(size_t last) {
    sinkproof_bench_list list = {0};
    for (size_t n = 1; n <= last && list.n < SINKPROOF_BENCH_LIST; n *= 2) list.at[list.n++] = n;
    return list;
}

static bool scale_with_context(sinkproof_bench *bench, sinkproof_error *error) {
    sinkproof_bench_list keys = powers_of_two_up_to(bench->quick ? 512 : 131072);
    bench_attention_scaling(bench, &keys);
    if (bench->model == NULL) return true;
    bench_engine e;
    if (!bench_engine_open(bench, bench->model, bench->threads, &e, error)) return false;
    // One sequence is extended from depth to depth.
    size_t most = 0, context = sinkproof_model_config(e.model)->max_context;
    for (size_t i = 0; i < bench->depth.n; i++)
        if (bench->depth.at[i] > most) most = bench->depth.at[i];
    most += bench_steps_room(bench);
    bench_group group;
    bool opened = bench_group_open(&e, 1, most < context ? most : context, &group, error);
    bool good = opened;
    for (size_t i = 0; good && i < bench->depth.n; i++) {
        bench_label label = {.series = "decode, one sequence", .at = bench->depth.at[i]};
        snprintf(label.id, sizeof label.id, "model.decode.depth%zu", bench->depth.at[i]);
        good = bench_decode(bench, &e, &group, bench->depth.at[i], &label, error);
    }
    if (opened) bench_group_close(&group);
    bench_engine_close(&e);
    return good;
}

static bool scale_with_batch(sinkproof_bench *bench, sinkproof_error *error) {
    sinkproof_bench_list batch = powers_of_two_up_to(bench->quick ? 4 : 64);
    bench_engine e;
    if (!bench_engine_open(bench, bench->model, bench->threads, &e, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < batch.n; i++) {
        bench_label label = {.series = "decode, sequences together", .at = batch.at[i]};
        snprintf(label.id, sizeof label.id, "model.decode.batch%zu", batch.at[i]);
        good = bench_decode_alone(bench, &e, batch.at[i], 0, &label, error);
    }
    bench_engine_close(&e);
    return good;
}

static bool scale_with_threads(sinkproof_bench *bench, sinkproof_error *error) {
    bool good = true;
    for (int t = 1; good && t <= bench->threads;
         t = t < bench->threads && 2 * t > bench->threads ? bench->threads : 2 * t) {
        bench_engine e;
        bench_label label = {.series = "decode, one sequence", .at = (size_t)t};
        if (!bench_engine_open(bench, bench->model, t, &e, error)) return false;
        snprintf(label.id, sizeof label.id, "model.decode.threads%d", t);
        good = bench_decode_alone(bench, &e, 1, 0, &label, error);
        size_t n = bench->prompt.n > 0 ? bench->prompt.at[bench->prompt.n - 1] : 512;
        char series[64];
        snprintf(series, sizeof series, "prefill of %.40s", sinkproof_counted(n, "token").text);
        label.series = series;
        snprintf(label.id, sizeof label.id, "model.prefill.threads%d", t);
        good = good && bench_prefill(bench, &e, n, &label, error);
        bench_engine_close(&e);
    }
    return good;
}

bool sinkproof_bench_scaling(sinkproof_bench *bench, sinkproof_error *error) {
    bool context = strcmp(bench->scaling, "context") == 0;
    if (bench->model == NULL && !context) bench->model = "synthetic:gpt-oss-20b,layers=2";
    if (context) return scale_with_context(bench, error);
    if (strcmp(bench->scaling, "batch") == 0) return scale_with_batch(bench, error);
    return scale_with_threads(bench, error);
}
