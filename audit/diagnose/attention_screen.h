// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What may be wrong in attention whose scores and weights the trace does not show. The numbers that
// an engine with a supposed mistake computes are emulated in binary64, for some queries, and
// compared with the trace. Those that are nearest are worth a judgement. Nothing is decided here:
// only the judge's sets accept a cause.
#ifndef SINKPROOF_ATTENTION_SCREEN_H
#define SINKPROOF_ATTENTION_SCREEN_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge_attending.h"
#include "audit/trace/trace.h"
#include "ref/policy.h"

// One failing point of A6 to A11 of a layer: the engine's numbers, and their sets by the
// definition.
typedef struct attention_point {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    sinkproof_trace_point point;
    size_t layer, n; // n: tokens
    const double *v, *lo, *hi;
    // keys and values of the tokens before the trace that it names; NULL: unknown
    const struct judge_prefix *prefix;
} attention_point;

typedef struct attention_guess {
    sinkproof_attending how;
    double misfit; // of the emulation to the queries that are looked at
    unsigned family;
    bool joined;   // two causes
    unsigned cost; // of guesses that are as near, the smaller comes first
    // by how much it is nearer than the definition, and two causes than the nearest that is one,
    // over what chance gives
    double gain, gain_of_two;
} attention_guess;

enum { ATTENTION_GUESSES = 24, ATTENTION_SAMPLES = 40 };

typedef struct attention_guesses {
    size_t n;
    attention_guess of[ATTENTION_GUESSES]; // the nearest first
    double misfit;                         // of the definition
    bool rounded; // the trace or the policy keeps a number in 16 bits or fewer
} attention_guesses;

enum { ATTENTION_FAMILIES = 160 }; // at most

// What the layers before tell of a layer of the same kind: with a window, or without one.
typedef struct attention_memory {
    size_t found; // the family of a cause that explained a layer, counted from 1; 0: none
    // families with no guess that is half as far as the definition, where the same queries fail
    bool hopeless[ATTENTION_FAMILIES];
    size_t first_row, end_row, first_head, end_head;
} attention_memory;

// Finds the nearest guesses; none where the trace lacks queries, keys or values. Families that the
// memory tells of are asked first, or not at all. Returns false if memory runs out.
bool attention_guess_causes(const attention_point *point, attention_memory memory[2],
                            attention_guesses *guesses);

// ---- attention_causes.c
enum { ATTENTION_ID = 96, ATTENTION_TEXT = 384 };
// A guess as a mistake, which points to its own texts: it is not copied.
typedef struct attention_mistake {
    known_mistake mistake;
    sinkproof_attending how;
    char id[ATTENTION_ID], text[ATTENTION_TEXT];
} attention_mistake;
void attention_mistake_make(attention_mistake *m, const sinkproof_attending *how,
                            const sinkproof_config *config, const sinkproof_trace *trace);
// The engine with this meaning; false: it cannot occur under the policy.
bool suppose_attending(supposed_engine *s, const sinkproof_attending *how);
unsigned attending_points(const sinkproof_attending *how); // attention_points.c: as bits
// attention_numbers.c: how many numbers tell the cause, in a trace of so many rows.
size_t attention_cause_numbers(const sinkproof_attending *how, size_t rows);
// Whether one thing alone is not as defined: attention_pairs.c.
bool attention_is_one(const sinkproof_attending *how);
// Whether guess i may be as right as the nearest.
bool attention_guess_is_near(const attention_guesses *guesses, size_t i, size_t samples);

// ---- attention_view.c: some queries of the point, and what an engine computes there

// A query that is looked at.
typedef struct attention_sample {
    size_t head, row;
    bool fails;
    double misfit;           // of the definition
    const double *product_c; // with the keys of its head, over sqrt(head_dim)
} attention_sample;

// x[rows, heads, head_dim] as one guess reads them.
typedef struct attention_numbers {
    const double *x;
    size_t first, rows, heads; // first: the position of row 0
    double *y;                 // NULL: they are read as they are
    bool *made;                // which rows of a head are in y; NULL: all
} attention_numbers;

// What is read otherwise, as one guess has it, but for the numbers that it is multiplied by.
typedef struct attention_reads {
    sinkproof_read_as as; // of 0: nothing
    attention_numbers q, k, v;
} attention_reads;

typedef struct attention_view {
    const attention_point *of;
    const sinkproof_config *config;
    size_t n, heads, groups, dim, width; // width: numbers of the point for each query
    // of the keys, of which those from `from` on are known: a position's in a trace of one
    // sequence, a row's in one of several
    size_t columns, from;
    size_t keys;         // the most of one sequence
    bool plain;          // one sequence: a row's position is its number behind that of row 0
    size_t begin;        // the position of row 0; 0 where rows have none in common
    size_t layer_window; // 0: the layer has none
    double *q_nhd, *k_cgd, *v_cgd, *sink_lh;
    double largest_q, largest_k, largest_v; // sizes
    double *frequency_p;                    // of the rotation
    double roundoff;                        // of the format of the trace
    attention_reads read;
    const sinkproof_tensor *scores, *weights; // of the trace, where the point is behind them
    double *work, *products;
    size_t n_samples, n_failing; // those that fail come first
    bool all_zero;               // those that fail are zeros alone: no attention makes them
    attention_sample samples[ATTENTION_SAMPLES];
    // of the queries with an element outside
    size_t first_row, end_row, first_head, end_head;
    size_t row_step; // of three rows or more that are as far apart, 2 or more; else 0
    unsigned long long heads_failing; // of the first 64, as bits
} attention_view;

// *there: the trace has what is needed, and some query fails. Returns false if memory runs out.
bool attention_view_open(const attention_point *of, attention_view *view, bool *there);
void attention_view_close(attention_view *view);
// The position of the first row that fails, in a plain view.
static inline size_t attention_first_failing(const attention_view *view) {
    return view->begin + view->first_row;
}
// The row at a position, or the first one behind it.
static inline size_t attention_row_from(const attention_view *view, size_t position) {
    return position > view->begin ? position - view->begin : 0;
}
// attention_reads.c: makes view->read; returns false if memory runs out.
bool attention_view_reads(attention_view *view, const sinkproof_read_as *read);
// A row of a head of what view->read reads otherwise: of queries, keys or values.
const double *attention_read_row(const attention_view *view, unsigned of, size_t row, size_t head);
void attention_view_forget(attention_view *view);
// The misfit of an engine with this mistake to sample s: 0 for none, the logarithm of a square.
double attention_misfit(attention_view *view, const sinkproof_attending *how, size_t s);
// The residual (engine - y) / width of the honest set, of each number of sample s.
void attention_residual(attention_view *view, const sinkproof_attending *how, size_t s,
                        double *residual);

// ---- attention_emulate.c. y: what an engine with this mistake computes for a query; view->width
// numbers, NAN where it reads what the trace lacks.
void attention_emulate(attention_view *view, const sinkproof_attending *how,
                       const attention_sample *at, double *y);

// ---- attention_words.c: a name and a sentence. The place is part of both.

// The trace whose rows and keys are counted.
typedef struct attention_site {
    const sinkproof_config *config;
    size_t keys, rows, begin; // begin: the position of the first row
    bool packed;              // rows of several sequences have no common positions
} attention_site;
attention_site attention_site_of(const sinkproof_config *config, const sinkproof_trace *trace);
void attention_cause_say(const sinkproof_attending *how, const attention_site *site, char *id,
                         size_t id_size, char *text, size_t text_size);

#endif
