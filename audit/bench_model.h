// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A packed model under measurement, for audit/bench_model.c and audit/bench_scaling.c.
#ifndef SINKPROOF_BENCH_MODEL_H
#define SINKPROOF_BENCH_MODEL_H

#include "audit/bench.h"
#include "fast/engine.h"

typedef struct sinkproof_bench_engine {
    sinkproof_model *model;
    sinkproof_engine *engine;
    int threads;
    double seconds_to_pack;
    bool bf16_operands; // the policy rounds the operands of products to bf16
    sinkproof_panel_format cache_format;
    size_t sliding;                       // window layers
    double expert_bytes;                  // of one expert in every layer
    double layer_products, head_products; // products per token; per row of logits
} sinkproof_bench_engine;

bool sinkproof_bench_engine_open(const sinkproof_bench *bench, const char *spec, int threads,
                                 sinkproof_bench_engine *e, sinkproof_error *error);
void sinkproof_bench_engine_close(sinkproof_bench_engine *e);

// need[SINKPROOF_BENCH_RESOURCES] of n tokens at positions first .. for each of `sequences`.
void sinkproof_bench_need(const sinkproof_bench *bench, const sinkproof_bench_engine *e,
                          size_t sequences, size_t first, size_t n, double *need);

// Decodes --decode tokens of `count` sequences that hold `depth` tokens; a row `id`. With a
// `series` the row belongs to a figure, at `at`.
bool sinkproof_bench_decode(sinkproof_bench *bench, const sinkproof_bench_engine *e, const char *id,
                            size_t count, size_t depth, const char *series, size_t at,
                            sinkproof_error *error);
bool sinkproof_bench_prefill(sinkproof_bench *bench, const sinkproof_bench_engine *e,
                             const char *id, size_t n, const char *series, size_t at,
                             sinkproof_error *error);

#endif
