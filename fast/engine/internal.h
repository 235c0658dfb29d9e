// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the files of the engine. A pass takes some rows (tokens of one or several sequences)
// through all layers. All threads execute the same code, in one parallel region for the whole pass.
// A stage is a row of work that they take from a shared counter, and a barrier separates dependent
// stages. The distribution of the work changes no bit: every number is computed completely by one
// thread, in an order that depends only on columns and positions.
#ifndef SINKPROOF_ENGINE_INTERNAL_H
#define SINKPROOF_ENGINE_INTERNAL_H

#include "fast/engine/cache.h"
#include "fast/engine/engine.h"
#include "fast/engine/memory.h"
#include "fast/engine/weights.h"
#include "ref/stages.h"

enum {
    // up to this many rows every thread normalises the rows for itself: no barrier
    ENGINE_OWN_ROWS = 4,
    ENGINE_FEW_ROWS = 16, // up to this many rows the experts' second product is split by columns
    ENGINE_STAGES = 10,   // most counters of a layer
    ENGINE_SPAN = SINKPROOF_SPAN_BLOCKS * CACHE_BLOCK, // keys of a span
    ENGINE_PIECE = 4,                                  // spans of a piece of a long context
    ENGINE_MOST_EXPERTS = 1 << 24,                     // an observer gets their indices as floats
};

// A counter from which threads take pieces of a stage.
typedef struct team_counter {
    size_t next;
    char apart[56]; // one cache line for each
} team_counter;

// The private data of one thread.
typedef struct engine_worker {
    int id, team;
    size_t stage;           // counters used so far; equal in all threads between two barriers
    uint8_t *scratch;       // SINKPROOF_SCRATCH
    double *work;           // for packing, and for a row of a norm that subtracts the mean
    float *t_nc;            // [OWN_ROWS, hidden]
    uint16_t *t16_nc;       // the same as bf16
    const float **x_n;      // rows of a product: n x n_chosen
    const uint16_t **x16_n; //
    float **y_n;
    double *router_e;
    int32_t *chosen_nk; // [n, n_chosen], computed identically by every thread
    float *weights_nk;
    size_t *slots;   // n k + k', sorted by expert
    size_t *first_e; // [experts + 1]: where an expert's slots begin
    size_t *active;  // experts that have slots
    size_t n_active;
} engine_worker;

// A part's share of a pass.
typedef struct pass_segment {
    sinkproof_sequence *sequence;
    size_t row, n, first; // first row of the pass, tokens, position of the first
    const int32_t *tokens_n;
    size_t steps;  // steps, which end at multiples of CACHE_STEP positions
    size_t pieces; // pieces of a single token's long context; 0: not split
    size_t state;  // spans of the earlier segments that are split
} pass_segment;

// A row whose logits are requested.
typedef struct wanted_rows {
    size_t row;
    float *to; // [vocab], or NULL: only an observer requests them
} wanted_rows;

// Widths of the rows below in elements, multiples of 32: elements beyond a row's end are zero.
typedef struct engine_widths {
    size_t hidden, q, kv, experts, up, act, vocab;
} engine_widths;

typedef struct fast_buffers {
    size_t rows, logit_rows, keys, spans; // capacities
    float *x_nc, *t_nc, *q_nd, *k_nd, *v_nd, *o_nd, *out_nc, *router_ne;
    uint16_t *t16_nc, *o16_nd, *act16_sf;
    float *up_s2f, *act_sf, *down_sc; // s = n n_chosen + k
    float *cos_nd, *sin_nd, *logits_nv;
    float *score_hij;               // observed: [heads, n, keys]
    sinkproof_span_state *state_sh; // of long contexts that are split
    float *span_shd;
    double *seen; // observed: room for the largest point, as doubles
    pass_segment *segments;
    wanted_rows *wanted;
    sinkproof_pages pages;
} fast_buffers;

struct sinkproof_engine {
    const sinkproof_model *model;
    const sinkproof_config *config;
    sinkproof_policy policy;
    sinkproof_engine_options options;
    const sinkproof_kernels *kernels;                          // of the current pass: one of
    const sinkproof_kernels *kernels_of_one, *kernels_of_many; // these two
    int threads;
    size_t chunk;
    // Which points are rounded to bf16: the operands A1, A11, M1, M8, F1; and the cache, A2 and A4.
    bool bf16_operands, bf16_cache;
    engine_widths width;
    sinkproof_pages weights;
    size_t layer_bytes, token_bytes, weight_bytes;
    packed_layer *layers; // [n_layers], one when streamed
    pack_list list;       // of one layer, for a streamed pass
    const float *final_norm_c;
    packed_matrix unembed;
    double *freq_d;
    double *row; // an embedding row and a position's row, or the angles of a position
    engine_worker *workers;
    sinkproof_pages worker_pages;
    fast_buffers b;
    size_t worker_rows; // capacity of the workers' lists
    team_counter *counters;
};

struct sinkproof_sequence {
    const sinkproof_engine *engine;
    size_t length, max_tokens;
    kv_cache cache;
    size_t marked; // how often the parts of a pass name it: at most once
};

// A norm: its packed weights; and, if it subtracts the mean, the model's weights for the
// reference's stage on one row.
typedef struct pass_norm_step {
    const float *scale_c;
    sinkproof_point point;
    sinkproof_matrix scale, shift; // set only if it subtracts the mean
} pass_norm_step;

typedef struct engine_pass {
    sinkproof_engine *engine;
    size_t n, n_segments, n_wanted;
    const sinkproof_observer *observer; // or NULL
    size_t l;                           // layer, for the observer
} engine_pass;

// Rows of [width] numbers from `base`.
static inline float *pass_row_at(float *base, size_t width, size_t row) {
    return base + row * width;
}

// ---- team.c: threads ------------------------------------------------------------------

void team_barrier(void);
// The next stage of all threads. After it, counter_take_piece hands out its `total` units, large
// pieces first, in multiples of `unit`, and counter_take_one one by one: false when none is left.
team_counter *team_next_stage(engine_pass *pass, engine_worker *worker);
bool counter_take_piece(team_counter *counter, const engine_worker *worker, size_t total,
                        size_t unit, size_t *first, size_t *last);
bool counter_take_one(team_counter *counter, size_t total, size_t *at);
bool workers_new(sinkproof_engine *engine, sinkproof_error *error);
bool workers_reserve(sinkproof_engine *engine, size_t rows, sinkproof_error *error);
void workers_free(sinkproof_engine *engine);

// ---- buffers.c ------------------------------------------------------------------------

// Makes room for rows, rows of logits, and (observed) keys; spans: of split contexts.
bool fast_buffers_reserve(sinkproof_engine *engine, size_t rows, size_t logit_rows, size_t keys,
                          size_t spans, sinkproof_error *error);
void fast_buffers_free(fast_buffers *buffers);

// ---- pass.c, attention.c, experts.c, perceptron.c --------------------------------------

void pass_run(engine_pass *pass);
// A1 to A4 read their inputs in t; afterwards A11 is in o. Ends with a barrier.
void pass_attention(engine_pass *pass, engine_worker *worker, const packed_layer *layer);
void pass_experts(engine_pass *pass, engine_worker *worker, const packed_layer *layer);
// M1 to M12 with one perceptron for all tokens.
void pass_perceptron(engine_pass *pass, engine_worker *worker, const packed_layer *layer);
// The norm before attention, or before the experts, of the current layer.
pass_norm_step layer_norm(const engine_pass *pass, const float *scale_c, bool attention);
// t = norm(x), rounded; afterwards worker->x_n and x16_n are its rows.
void pass_norm(engine_pass *pass, engine_worker *worker, const pass_norm_step *norm);
// Panels first .. last - 1 of a product with worker->x_n and x16_n: y_nr, rows `width` apart.
void pass_multiply(const sinkproof_engine *engine, const engine_worker *worker,
                   const packed_matrix *packed, size_t first, size_t last, float *y_nr,
                   size_t width, size_t n);
// The whole product, with rows `stride` apart, into out, and out added to x, by all threads; ends
// with a barrier.
void pass_add_to_residual(engine_pass *pass, engine_worker *worker, const packed_matrix *packed,
                          const float *rows, const uint16_t *bits, size_t stride);
// Rounds x to bf16 in place, and writes its bits unless `bits` is NULL; any n.
void round_to_bf16(const sinkproof_kernels *kernels, size_t n, float *x, uint16_t *bits);

// ---- observe.c ------------------------------------------------------------------------

// Shows rows of `width` floats, `stride` apart, as a tensor of that shape. All threads call it; one
// shows, between two barriers. Without an observer it does nothing.
void pass_show_point(engine_pass *pass, const engine_worker *worker, const char *name, size_t rank,
                     const size_t *shape, float *rows, size_t width, size_t stride);

#endif
