// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A packed model under measurement, for audit/bench/bench_model.c and audit/bench/bench_scaling.c.
#ifndef SINKPROOF_BENCH_MODEL_H
#define SINKPROOF_BENCH_MODEL_H

#include "audit/bench/bench.h"
#include "fast/engine/engine.h"
#include "fast/kernels/choose.h"

typedef struct bench_engine {
    sinkproof_model *model;
    sinkproof_engine *engine;
    int threads;
    char isa[SINKPROOF_ISA_NAMES];
    double seconds_to_pack;
    bool bf16_operands; // the policy rounds the operands of products to bf16
    sinkproof_panel_format cache_format;
    size_t sliding;                       // layers with a window
    double expert_bytes;                  // of one expert in every layer
    double layer_products, head_products; // products per token; per row of logits
} bench_engine;

bool bench_engine_open(const sinkproof_bench *bench, const char *spec, int threads, bench_engine *e,
                       sinkproof_error *error);
void bench_engine_close(bench_engine *e);

// Sequences that run together, and the buffers of their passes.
typedef struct bench_group {
    size_t count;
    sinkproof_sequence **sequences;
    int32_t *tokens;
    sinkproof_part *parts;
    float *logits;
} bench_group;

bool bench_group_open(const bench_engine *e, size_t count, size_t max_tokens, bench_group *group,
                      sinkproof_error *error);
void bench_group_close(bench_group *group);

// Tokens beyond the depth that a measurement of decoding needs.
size_t bench_steps_room(const sinkproof_bench *bench);

// The name of a row; with a series it is a point of a line in a figure, at `at`.
typedef struct bench_label {
    char id[96];
    const char *series;
    size_t at;
} bench_label;

// Decodes --decode tokens of each sequence after its first `depth`, after filling in missing
// earlier ones; near the end of the context it uses the last positions.
bool bench_decode(sinkproof_bench *bench, const bench_engine *e, bench_group *group, size_t depth,
                  const bench_label *label, sinkproof_error *error);
// The same with `count` new sequences.
bool bench_decode_alone(sinkproof_bench *bench, const bench_engine *e, size_t count, size_t depth,
                        const bench_label *label, sinkproof_error *error);
// Measures a prompt of n tokens in an empty sequence, with the logits of the last.
bool bench_prefill(sinkproof_bench *bench, const bench_engine *e, size_t n,
                   const bench_label *label, sinkproof_error *error);

#endif
