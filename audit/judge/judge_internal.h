// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the files of the judge: its pass through the layers, the parts of that pass, and the
// comparison of a point.
#ifndef SINKPROOF_JUDGE_INTERNAL_H
#define SINKPROOF_JUDGE_INTERNAL_H

#include "audit/judge/judge.h"
#include "ref/walk.h"

typedef struct judge_prefix judge_prefix; // judge_prefix.h

typedef struct judge_pass {
    const sinkproof_model *model; // with its weights as the policy stores them
    sinkproof_model *kept;        // the same model, which the pass closes
    const sinkproof_config *config;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    sinkproof_policy before; // without the roundings before which the next operation may read
    const sinkproof_judge_options *options;
    const sinkproof_meaning *meaning;
    size_t n;           // tokens
    size_t first, keys; // position of the first token; first + n
    sinkproof_judgement *judgement;
    sinkproof_point_report **report_of; // [layers + 1][points]; NULL: not yet compared
    int32_t *chosen;                    // [layers][n][k]: the judgement's choices
    sinkproof_honest *at[TRACE_POINTS]; // the latest sets of each point, until none reads them
    sinkproof_honest *turns_ip[4]; // rotation tables [n, head_dim / 2]; NULL: a form without them
    sinkproof_honest *key_turns_ip[4]; // the same for keys, if they are meant to turn differently
    sinkproof_honest *unmoved;   // sets of the moved point that is being computed; NULL: none is
    double *made;                // what is made of them, and its widths; NULL: nothing
    const sinkproof_rows *alone; // the rows that are computed; NULL: all
    bool serial; // a stretch that costs less than the threads' waiting for each other
    const judge_prefix *prefix; // keys and values before the trace, as sets; NULL: none
    judge_prefix *kept_prefix;  // where those of this pass are kept; NULL: nowhere
    double done, all;           // work, for the progress display
} judge_pass;

// ---- parts: what one thread does alone, with reports of its own. Reports are merged in the order
// of the parts, which depends on the problem and not on the number of threads.

typedef struct judge_part {
    const judge_pass *pass;
    size_t layer;
    sinkproof_point_report *reports[TRACE_POINTS]; // allocated on first use
    bool failed;                                   // out of memory
} judge_part;

typedef void part_work(judge_part *part, size_t index, void *of);

// Runs the parts 0 .. count - 1 on all processors. Returns false if memory runs out.
bool judge_in_parts(judge_pass *pass, size_t layer, size_t count, part_work *work, void *of);

// The same token by token: a part has `each` tokens, and `work` gets the token's index.
bool judge_each_token(judge_pass *pass, size_t layer, size_t each, part_work *work, void *of);

// Frees a report and all that it owns. NULL is allowed.
void report_free(sinkproof_point_report *report);
// Returns `count` zeroed elements; on failure NULL, and the part is marked as failed.
void *part_allocate(judge_part *part, size_t count, size_t size);

// ---- comparing

// Elements [offset, offset + count) of a point, all of one token's row.
typedef struct trace_piece {
    sinkproof_trace_point point;
    size_t offset, count, token;
    size_t apart;          // index of the last element if it does not follow the others, else 0
    double common;         // relative variance that these elements share
    const double *skipped; // the values without the operation; NULL: zeros
    const size_t *at_i;    // the indices of the elements; NULL: as above
    bool moved;            // the sets of a moved point, which are compared as they are
} trace_piece;

// Compares x[count] with the trace and replaces it by the engine's values. Returns false and keeps
// x when the trace lacks the point. Where the next operation may read the point before its
// rounding, x holds the unrounded sets, and the replacement covers both the stored and the
// unrounded values (judge_unrounded.c).
bool piece_compare(judge_part *part, const trace_piece *piece, sinkproof_honest *x);

// Compares elements that are 0 in every honest engine: weights of masked keys.
void piece_compare_zeros(judge_part *part, sinkproof_trace_point point, size_t offset,
                         size_t count);

// How many of the engine's values are outside their sets; reports nothing. 0 when the trace lacks
// the point.
size_t piece_outside(const judge_part *part, const trace_piece *piece, const sinkproof_honest *x);

// Roundings before which the next operation may read (bound.unrounded). In this order: the policy
// without them; whether the point has one; x rounded; and the sets that the next operation may
// read, from the engine's values v, from the trace alone, or from x where the trace lacks the
// point.
sinkproof_policy policy_without_optional(const sinkproof_policy *policy);
bool point_may_be_unrounded(const judge_pass *pass, sinkproof_trace_point point);
sinkproof_honest set_after_rounding(const judge_pass *pass, sinkproof_trace_point point,
                                    sinkproof_honest x);
sinkproof_honest set_read_value(const judge_pass *pass, sinkproof_trace_point point, double v,
                                sinkproof_honest unrounded);
void set_read_given(const judge_pass *pass, sinkproof_trace_point point,
                    const sinkproof_tensor *tensor, size_t from, size_t count, sinkproof_honest *x);
void set_read_untraced(const judge_pass *pass, sinkproof_trace_point point, size_t count,
                       sinkproof_honest *x);

bool point_is_traced(const judge_pass *pass, sinkproof_trace_point point, size_t layer);

// Whether the pass has met the element that ends it: nothing more is computed.
bool pass_has_ended(const judge_pass *pass);

// The rotation tables of token i, for queries or for keys.
sinkproof_turns token_turns(const judge_pass *pass, bool keys, size_t i);

// ---- a stretch of the model (judge_stretch.c)

point_doing_kind point_doing(const judge_pass *pass, sinkproof_trace_point point, size_t layer);
// The stretch over all traced points of some layers, which the caller frees; the judgement learns
// what the trace holds of the others. NULL, with an error: none is traced, or no memory.
sinkproof_stretch *judge_stretch_over(const sinkproof_config *config,
                                      const sinkproof_policy *policy, const sinkproof_trace *trace,
                                      sinkproof_layer_range layers, sinkproof_judgement *judgement,
                                      sinkproof_error *error);
// The rows that are compared, if no row that is computed reads another computed one; NULL: all.
const sinkproof_rows *judge_rows_alone(const judge_pass *pass);
static inline bool pass_leaves_out_row(const judge_pass *pass, size_t row) {
    const sinkproof_rows *alone = pass->alone;
    return alone != NULL && (row < alone->first || row >= alone->end);
}
bool judge_attention_is_last(const judge_pass *pass, size_t layer); // nothing reads its output
// Whether a stretch is too small for several threads.
bool judge_stretch_is_small(const judge_pass *pass);
// Whether the rows that are compared cost less than all.
bool judge_rows_are_few(const judge_pass *pass);
// Whether no point of a layer is needed.
bool layer_is_left_out(const judge_pass *pass, size_t layer);
// Whether one of the points [first, last] of a layer is judged.
bool any_point_judged(const judge_pass *pass, size_t layer, sinkproof_trace_point first,
                      sinkproof_trace_point last);
// The same over all layers.
bool any_layer_judged(const judge_pass *pass, sinkproof_trace_point first,
                      sinkproof_trace_point last);
bool part_leaves_out_point(const judge_part *part, sinkproof_trace_point point);
// Whether the point need not be computed. If it is given, x receives the trace's values.
bool judge_skips_or_reads(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                          sinkproof_honest *x);

// ---- a part of a point (judge_region.c), and moved points (judge_moved.c)

// The experts in the slots of a layer; NULL: it has none that are known.
const int32_t *judge_layer_choices(const judge_pass *pass, size_t layer);

// Whether the element is in the region that is compared.
bool judge_region_holds(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                        size_t at);
// Whether the point's elements are moved. Then its sets are kept in `unmoved` from the beginning of
// the operation that computes it to its end, when they are compared. Both return false if memory
// runs out.
bool judge_moves(const judge_pass *pass, sinkproof_trace_point point, size_t place);
bool judge_moved_begin(judge_pass *pass, sinkproof_trace_point first, sinkproof_trace_point last,
                       size_t place);
bool judge_moved_end(judge_pass *pass, size_t place);

// Changes a row of sets: its ends and its middle with what is taken over the row of middles; what
// that itself may be off by widens them. room: for 2 n numbers and n sets.
void change_sets(const sinkproof_setting *s, const sinkproof_change *c, double amax, size_t n,
                 sinkproof_honest *x, double *room);

// ---- operations as they are meant (judge_meaning.c)

// The norm's epsilon for the row x_d of d numbers; changes x_d if the norm is meant to subtract the
// mean.
double meant_norm(const judge_pass *pass, const sinkproof_setting *s, size_t d,
                  sinkproof_honest *x_d);
// scaled: the table includes the concentration.
void meant_table(const judge_pass *pass, const sinkproof_turning *turning, bool scaled,
                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p);
// work_d has room for 4 head_dim elements.
void meant_turn(const judge_pass *pass, const sinkproof_setting *s,
                const sinkproof_turning *turning, const sinkproof_turns *turns,
                const sinkproof_honest *x_d, sinkproof_honest *work_d, sinkproof_honest *y_d);
// The score of a product of a query and a key, and where they are.
typedef struct score_place {
    size_t layer, head, row, key;
} score_place;
sinkproof_honest meant_score(const judge_pass *pass, const sinkproof_setting *s,
                             const sinkproof_attending *m, const score_place *at,
                             sinkproof_honest product);
bool meant_shares(const judge_pass *pass, const sinkproof_setting *s, const sinkproof_honest *g_e,
                  size_t k, const int32_t *chosen_k, sinkproof_honest *w_k, double *common);
// The activations M8 of a row of 2 inter values.
void meant_activations(const judge_pass *pass, const sinkproof_setting *s,
                       const sinkproof_honest *up, sinkproof_honest *z_f);

// A copy of the setting whose policy does not round at `point`.
typedef struct open_setting {
    sinkproof_policy policy;
    sinkproof_setting s;
} open_setting;
void open_rounding(open_setting *open, const sinkproof_setting *s, sinkproof_point point);
sinkproof_honest set_inverse(sinkproof_honest x); // 1 / x of a set of positive numbers

// ---- the weights of attention as they are meant (judge_weights.c)

// The keys that a query reads, of those [first, end) that it sees. part_j: the part of each, in
// ascending order, counted from 0; parts: their number. times_e: how often each counts; NULL: once,
// or as its score z_j says.
typedef struct keys_read {
    size_t first, end, n, parts, all; // all: the keys of the sequence
    const size_t *part_j;
    const sinkproof_honest *z_j;
    const double *times_e, *sums_e; // sums_e: how often in the sum that divides
} keys_read;
// a_j: the weights of the n keys and of the sink; see sinkproof_honest_softmax.
bool meant_weights(const judge_pass *pass, const sinkproof_attending *m, const sinkproof_setting *s,
                   const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                   double *common);
sinkproof_honest set_times(const sinkproof_attending *m, sinkproof_honest x, double times);
// judge_weighing.c: the same by another function than the softmax, or over another sum.
bool weights_otherwise(const sinkproof_attending *m, const sinkproof_setting *s,
                       const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                       double *common);
// Marks as left out (times_j 0) keys of the n that are seen, by their scores.
void leave_out_scores(const sinkproof_attending *m, size_t n, const sinkproof_honest *z_j,
                      const size_t *part_j, double *times_j);
// judge_merging.c: the same in parts that are merged otherwise.
bool weights_merged(const sinkproof_attending *m, const sinkproof_setting *s, const keys_read *keys,
                    sinkproof_honest b, sinkproof_honest *a_j, double *common);
// The weights of n keys, of which some are left out, cut, or divided again. Returns false if memory
// runs out.
bool meant_kept_weights(const sinkproof_attending *m, const sinkproof_setting *s, size_t n,
                        sinkproof_honest *a_j);
// Multiplies the weights of n keys by what the sink's weight, behind them, leaves.
void gate_once_more(const sinkproof_setting *s, size_t n, sinkproof_honest *a_j);
// The logit of a key that is read `times` times, from its score.
sinkproof_honest score_counted(const sinkproof_setting *s, const sinkproof_attending *m,
                               double times, sinkproof_honest z);

// The setting for a tensor of `elements` elements.
sinkproof_setting pass_setting(const judge_pass *pass, size_t elements);

// ---- sets

sinkproof_honest set_hull(sinkproof_honest x, sinkproof_honest y); // hull of two sets
// The worst case of a set: nothing is known of how its errors are spread, and no lean is
// suspicious.
static inline sinkproof_honest set_without_lean(sinkproof_honest x) {
    double radius = sinkproof_radius(&x);
    x.likely_lo = x.lo, x.likely_hi = x.hi;
    x.var = x.spread = x.var > radius * radius ? x.var : radius * radius;
    return x;
}

// ---- the model

// The first key that row i of the layer sees (mask.causal, mask.window); the last is i.
size_t first_seen_key(const sinkproof_config *config, size_t layer, size_t i);

// a whole vector [1, cols], which the caller frees, or NULL
double *vector_decode(const sinkproof_matrix *matrix);

// An operation of the walk (judge_walk.c): computes the sets of a step's point from those of its
// inputs, and compares them; y holds what the next operation reads. Returns false if memory runs
// out.
typedef bool judge_operation(judge_pass *pass, const sinkproof_walk_step *step,
                             sinkproof_honest *y);
judge_operation judge_embedding, judge_norm, judge_rotated, judge_residual;
judge_operation judge_projection;  // y NULL: not kept
judge_operation judge_attention;   // A6 to A11
judge_operation judge_experts;     // M3 to M11
judge_operation judge_activations; // of a model without a router
bool judge_all_points(judge_pass *pass);
double judge_all_work(const judge_pass *pass); // multiply-adds, for progress and plan alone
double judge_layer_work(const judge_pass *pass);
// Whether the walk keeps the sets of a step's point, and the first point that is judged with it.
bool judge_walk_keeps(const judge_pass *pass, const sinkproof_walk_step *step);
sinkproof_trace_point judge_first_with(sinkproof_trace_point point);

// ---- an adapter beside a weight (judge_adapter.c): y = W x + s B (A x)
typedef struct adapter_block {
    sinkproof_trace_point point; // of the linear layer
    size_t layer, first_row, rows;
    sinkproof_point at, in;
    sinkproof_accumulator sum;
    const sinkproof_honest *x_c; // what the layer reads, [tokens, cols]
    size_t tokens, cols;
} adapter_block;
// Whether the weight of a linear layer has one.
bool judge_is_adapted(const judge_pass *pass, const sinkproof_walk_step *step);
// u_ir: what the adapter adds to rows of the weight, one row of sets for each token; 0 where it
// adds nothing. Returns false if memory runs out.
bool judge_adapter_adds(const judge_pass *pass, const sinkproof_setting *s,
                        const adapter_block *block, sinkproof_honest *u_ir);
// y_r: W x and its bias b_r (or NULL), not yet rounded at `at`. Adds u_r.
void judge_adapter_join(const sinkproof_setting *s, sinkproof_point at, size_t rows,
                        const double *b_r, const sinkproof_honest *u_r, sinkproof_honest *y_r);

static inline sinkproof_honest *step_input(const judge_pass *pass, const sinkproof_walk_step *step,
                                           size_t i) {
    return pass->at[step->inputs[i].point];
}

// Points outside the layers are stored behind the layers.
static inline size_t step_place(const judge_pass *pass, const sinkproof_walk_step *step) {
    return sinkproof_trace_point_is_layered(step->point) ? step->layer : pass->config->n_layers;
}

// ---- the log-sum-exp (judge_lse.c)

// Row i of head h: its scores z_j [seen], NULL if they are unknown, and the sink's logit.
typedef struct lse_row {
    size_t h, i, seen;
    const sinkproof_honest *z_j;
    sinkproof_honest b;
} lse_row;

// Compares a row's log-sum-exp, if it is traced. Returns false if memory runs out.
bool judge_lse(judge_part *part, const sinkproof_setting *s, const lse_row *row);
// Once all layers are compared: with the sink or without it?
void judge_settle_lse(judge_pass *pass);

// ---- keys and values that later tokens read (judge_cache.c)

// Those of a layer from position `from` on, [keys - from, kv_heads, head_dim]: the earlier ones are
// unknown.
// Of sequences with caches of their own they are by column, and `unknown` says of each sequence
// whether those of earlier positions are.
typedef struct cached_rows {
    sinkproof_honest *x;
    size_t from, width;
    bool owned, *unknown; // NULL: no sequence has a cache of its own
} cached_rows;

static inline const sinkproof_honest *cached_at(const cached_rows *c, size_t position) {
    return c->x + (position - c->from) * c->width;
}

// Rounds queries as the scores read them, and keys and values as the cache stores them.
bool read_heads(const judge_pass *pass, sinkproof_point at, size_t rows, size_t heads,
                sinkproof_honest *x);
// The keys or values of the trace's tokens, behind those that it has of earlier positions. Freed by
// the function below.
bool read_cached(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                 sinkproof_point at, sinkproof_honest *x_ngd, cached_rows *c);
void cached_free(cached_rows *c);

// ---- routing (judge_routing.c)

// A choice of experts, slot by slot.
typedef struct token_choice {
    int32_t expert[SINKPROOF_MAX_CHOSEN];
} token_choice;

// The knowledge of one token's experts.
typedef struct token_routing {
    size_t choices; // 1: known, and stored in pass->chosen; 0: too many to follow
    token_choice *choice;
} token_routing;

// routing_n[n] is freed by the function below. t_nd: the normed input of the experts.
bool judge_routing(judge_pass *pass, size_t l, const sinkproof_honest *logits_ne,
                   const sinkproof_honest *t_nd, token_routing *routing_n);
void routing_free(token_routing *routing_n, size_t n);

// ---- experts (judge_expert_maps.c)

// Rows [first, first + rows) of one expert's up- or down-projection.
typedef struct expert_rows {
    size_t expert, first, rows;
    bool up;
    // token * n_chosen + slot of each row of x, where it is compared. NULL: not compared
    const size_t *q;
} expert_rows;

// Compares row r of an expert's map at its slot; without a slot it counts as untraced.
void judge_compare_slot(judge_part *part, const expert_rows *rows, size_t r,
                        sinkproof_trace_point point, sinkproof_honest *y);

// y[x.rows, rows] = round(round(W x) + b) (M5 and M6, or M9 and M10). Returns false if memory runs
// out.
bool judge_expert_map(judge_part *part, const sinkproof_layer *layer, const expert_rows *rows,
                      const sinkproof_planes *x, sinkproof_honest *y, size_t stride);

// w_k: the weights of the chosen experts of one token (M4), from its logits. Returns false if
// memory runs out.
bool judge_expert_weights(judge_part *part, const sinkproof_honest *g_e, const token_choice *choice,
                          sinkproof_honest *w_k, double *common);

// ---- mixtures (judge_mixture.c)

// The ranks that mix their slices of the experts before they are added; 0: the policy has none, or
// the pass does not compute M11.
size_t judge_slices(const judge_pass *pass, size_t layer);
// sum_rqh[ranks, count, hidden]: what each rank's slice of expert e's down-projection gives of
// z[count, inter] (M8), before the bias. Returns false if memory runs out.
bool judge_slice_sums(judge_part *part, const sinkproof_layer *layer, size_t e, size_t count,
                      const sinkproof_honest *z, sinkproof_honest *sum_rqh);
// What the experts in the slots of a token give: M10 [chosen, hidden], and the slices of them
// [chosen, ranks, hidden], or NULL.
typedef struct slot_outputs {
    sinkproof_honest *d_kh, *sum_krh;
} slot_outputs;
// out_h: M11 of a token whose experts have the weights w_k.
void judge_mix_row(judge_part *part, const sinkproof_layer *layer, const token_choice *choice,
                   const sinkproof_honest *w_k, const slot_outputs *of, sinkproof_honest *out_h);

// ---- the layers of a point together (judge_layers.c), once each has a verdict. Returns false if
// memory runs out.
bool judge_layers_together(sinkproof_judgement *judgement);

// ---- end to end (judge_truth.c), and words (judge_describe.c)

// Fills the errors of the judgement's reports: runs the real model from the tokens, and each
// unrounded operation on the engine's own inputs, with the engine's routing.
bool judge_truth(judge_pass *pass);

// Fills worst_inputs of a report from the trace. Returns false if memory runs out.
bool judge_describe_inputs(const judge_pass *pass, sinkproof_point_report *report);

// Adds to the work done and reports the progress.
void judge_progress(judge_pass *pass, double work);

#endif
