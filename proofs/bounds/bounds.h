// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of every stage: one file per stage, with the same stems as in ref/. Inputs are
// honest sets too, so that a point that a trace lacks is bridged: its set becomes the input of the
// next operation. Indices: i query row, j key, h head, n tokens, k terms of a sum, L the odds of
// the setting.
//
// A function that returns bool returns false when memory runs out; its results are then undefined.
// No function prints, ends the program or keeps state between calls, except sinkproof_times_begin.
#ifndef SINKPROOF_BOUNDS_H
#define SINKPROOF_BOUNDS_H

#include "model/config.h"
#include "model/matrix.h"
#include "proofs/bounds/factors.h"
#include "proofs/bounds/honest.h"
#include "ref/normaliser.h"

// For a result that tells whether memory ran out: the caller must check it.
#define MUST_CHECK __attribute__((warn_unused_result))

// ---- linear.c: sums of products in any order, with or without FMA (bound.dot, bound.linear)

// Rows of honest sets split into planes, one matrix for each member, for dgemm.
typedef struct sinkproof_planes {
    size_t rows, cols;
    int bits;        // the most significant bits of any element: short products are exact
    bool known;      // all elements are known exactly: only the first plane is filled
    size_t whole;    // number of neighbouring products whose sum is exact; 0 or 1: none (bound.q8)
    size_t scalings; // roundings of such a sum's product with its scales
    size_t sums;     // the last columns: sums of others, which meet minima (bound.q8-minima)
    double *mid, *worst, *likely, *var, *bias; // [rows, cols]
    binary_factors f;                          // if many known rows have long sums
} sinkproof_planes;

// Copies x[rows, cols] (row stride `stride` elements). If memory runs out, `mid` is NULL, and sums
// of these planes fail.
sinkproof_planes sinkproof_planes_new(const sinkproof_honest *x, size_t rows, size_t cols,
                                      size_t stride);
// Rows [first, first + count), which x still owns: do not free them.
sinkproof_planes sinkproof_planes_rows(const sinkproof_planes *x, size_t first, size_t count);
void sinkproof_planes_free(sinkproof_planes *planes);

// out[i, r] = sum_k x_ik y_rk + b_r before any rounding point, i < x.rows, r < y.rows, written
// with row stride out_stride. terms_i: how many products of row i are not identically zero
// (NULL: all of them). b_r may be NULL. Each sum is any summation tree in the inside format.
MUST_CHECK bool sinkproof_honest_products(const sinkproof_setting *s, const sinkproof_planes *x,
                                          const sinkproof_planes *y, const double *terms_i,
                                          const double *b_r, sinkproof_honest *out,
                                          size_t out_stride);

// Rows [first, first + rows) of a stored weight, and their biases: b_r may be NULL.
typedef struct sinkproof_weight_rows {
    const sinkproof_matrix *w;
    size_t first, rows;
    const double *b_r;
} sinkproof_weight_rows;

// The same with y = rows of a stored weight.
MUST_CHECK bool sinkproof_honest_linear(const sinkproof_setting *s, const sinkproof_planes *x,
                                        const sinkproof_weight_rows *w, sinkproof_honest *out,
                                        size_t out_stride);

// The same in two steps: first all sums, then the sets of one row of x after the other, so that the
// next operation finds them in the cache. The setting and b_r must live until the end. NULL if
// memory runs out.
typedef struct sinkproof_linear_sums sinkproof_linear_sums;
sinkproof_linear_sums *linear_sums_new(const sinkproof_setting *s, const sinkproof_planes *x,
                                       const sinkproof_weight_rows *w);
// The sets of row i whose bias is in the first of several parts; NULL if the accumulator has none.
const sinkproof_honest *sinkproof_linear_sums_biased_row(const sinkproof_linear_sums *linear,
                                                         size_t i);
void sinkproof_linear_sums_row(const sinkproof_linear_sums *linear, size_t i,
                               sinkproof_honest *y_r);
void sinkproof_linear_sums_free(sinkproof_linear_sums *linear);

// ---- operands.c (bound.operands, bound.q8, bound.q8-minima): rows as a matrix product reads them

// The planes of x[rows, w.cols] as a product with w reads them at the point `in`, with a column
// more for each minimum that it meets apart from the numbers.
sinkproof_planes sinkproof_operand_planes(const sinkproof_setting *s, sinkproof_point in,
                                          const sinkproof_matrix *w, const sinkproof_honest *x,
                                          size_t rows);

// The bias of a sum of `terms` products. If the rounding before it is optional, the bias may be a
// term of the sum instead.
sinkproof_honest sinkproof_honest_bias(const sinkproof_setting *s, sinkproof_rounding before,
                                       size_t terms, double b);

// ---- accumulators.c (bound.accumulator): sums that round to a format of their own

// Fixed: the sum runs in ascending order, a block that shares a scale is summed separately first,
// and each step is rounded. Optional: any order, and any of its operations is rounded. All members
// zero: nothing is rounded.
typedef struct sinkproof_accumulator {
    sinkproof_rounding term, acc;
    size_t together; // terms in a block; 0: all
    const double
        *b_r; // of ranks: biases that the first part may take before it is rounded; or NULL
} sinkproof_accumulator;

sinkproof_accumulator sinkproof_accumulator_at(const sinkproof_policy *policy, sinkproof_point term,
                                               sinkproof_point acc);
bool sinkproof_is_running(const sinkproof_accumulator *a);

// The setting whose inner format is the accumulator's, if that is optional and narrower; its policy
// is *narrow, which the caller owns. Where a matrix unit adds up, s with that unit. Otherwise s.
sinkproof_setting setting_narrowed(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                   sinkproof_policy *narrow);

// out[i, r]: the running sums of x's rows with rows of a stored weight, without the bias.
MUST_CHECK bool honest_running(const sinkproof_setting *s, const sinkproof_accumulator *a,
                               const sinkproof_planes *x, const sinkproof_weight_rows *w,
                               sinkproof_honest *out);

// sinkproof_honest_products with such sums. rescaled: each term may multiply the sum by a factor,
// with a rounding (a running maximum).
MUST_CHECK bool sinkproof_honest_accumulated(const sinkproof_setting *s,
                                             const sinkproof_accumulator *a,
                                             const sinkproof_planes *x, const sinkproof_planes *y,
                                             const double *terms_i, bool rescaled,
                                             sinkproof_honest *out, size_t out_stride);

// flash.c: weighted values under a running maximum, with such a sum in a known order. n visible
// keys have the scores z_j and the values v_jd [n, dim], whose rows are v_stride apart; b is the
// sink's logit. The result is o_d [dim].
typedef struct sinkproof_flash {
    size_t n, dim, v_stride;
    const sinkproof_honest *z_j, *v_jd;
    sinkproof_honest b;
} sinkproof_flash;
MUST_CHECK bool sinkproof_honest_flash(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                       const sinkproof_flash *f, sinkproof_honest *o_d);

// ---- merged.c (bound.parts-merged): outputs of parts of the keys that are merged by the
// log-sum-exp of each part, where the policy says that parts may be rounded (A11.part)
bool sinkproof_honest_merges_parts(const sinkproof_policy *policy);
// The relative error that merging adds to each weight of a row with n > 0 visible keys, whose
// scores are z_j and whose sink has the logit b (-inf: none).
double sinkproof_honest_merge_error(const sinkproof_setting *s, size_t n,
                                    const sinkproof_honest *z_j, sinkproof_honest b);
// Widens out[i, d], the weighted values of all keys before A11, to those of any parts of the keys.
// weights [rows, keys], values [dim, keys]; terms_i: visible keys; error_i as above.
MUST_CHECK bool sinkproof_honest_merged(const sinkproof_setting *s, const sinkproof_planes *weights,
                                        const sinkproof_planes *values, const double *terms_i,
                                        const double *error_i, sinkproof_honest *out,
                                        size_t out_stride);

// linear_sums_new with such sums.
sinkproof_linear_sums *sinkproof_linear_sums_with(const sinkproof_setting *s,
                                                  const sinkproof_accumulator *a,
                                                  const sinkproof_planes *x,
                                                  const sinkproof_weight_rows *w);

// ---- parts.c (bound.parts): sums of parts. The accumulator says how each part is rounded.
bool honest_is_in_parts(const sinkproof_accumulator *a);
// out[i, r]: the sums of x, which has the columns of the weight from `first` on, without a bias.
typedef bool sums_of_columns(const sinkproof_setting *s, const sinkproof_accumulator *a,
                             const sinkproof_planes *x, const sinkproof_weight_rows *w,
                             size_t first, sinkproof_honest *out);
MUST_CHECK sums_of_columns honest_sum_columns; // linear.c
// out[i, r]: such sums of x's rows with rows of a stored weight, without the bias; `biased`, unless
// NULL: those whose first part has taken a->b_r. `sum` computes a part.
MUST_CHECK bool honest_parts(const sinkproof_setting *s, const sinkproof_accumulator *a,
                             const sinkproof_planes *x, const sinkproof_weight_rows *w,
                             sums_of_columns *sum, sinkproof_honest *out, sinkproof_honest *biased);
// The columns [first, first + n) of x; `mid` is NULL if memory runs out.
sinkproof_planes planes_columns(const sinkproof_planes *x, size_t first, size_t n);
// The sum of n > 0 parts, given as sets that are not rounded yet; they are rounded in place.
sinkproof_honest honest_sum_of_parts(const sinkproof_setting *s, sinkproof_rounding acc, size_t n,
                                     sinkproof_honest *part_p);
// The sum of n > 0 sets in any order.
sinkproof_honest honest_sum_in_any_order(const sinkproof_setting *s, size_t n,
                                         const sinkproof_honest *p_e);

// c[m, r] = x[m, k] y[r, k]^T in binary64, where c has row stride `stride`: the matrix product
// behind all sets. Dimensions are at most INT_MAX.
void sinkproof_matrix_times(size_t m, size_t r, size_t k, const double *x, const double *y,
                            double *c, size_t stride);
// Between the two calls, the thread that calls sinkproof_matrix_times computes the product alone
// (times.c).
void sinkproof_times_begin(void);
void sinkproof_times_end(void);
// The processor for which OpenBLAS multiplies, by the library's own name of it.
const char *sinkproof_times_core(void);

// ---- rmsnorm.c (bound.rmsnorm): y = x / sqrt(mean(x^2) + eps) * scale, rounded at `point`.
// *common receives the relative variance that all elements of the row share.
typedef struct sinkproof_norm {
    size_t d; // elements of a row
    const double *scale_d;
    double eps;
} sinkproof_norm;

void sinkproof_honest_rmsnorm(const sinkproof_setting *s, sinkproof_point point,
                              const sinkproof_norm *norm, const sinkproof_honest *x_d,
                              sinkproof_honest *y_d, double *common);

// ---- layernorm.c (bound.layernorm): y = (x - m) / sqrt(mean((x - m)^2) + eps) * scale + shift
// with m = mean(x), rounded at `point`.
void sinkproof_honest_layernorm(const sinkproof_setting *s, sinkproof_point point,
                                const sinkproof_norm *norm, const double *shift_d,
                                const sinkproof_honest *x_d, sinkproof_honest *y_d);

// ---- quotient.c (bound.quotient): quotients whose errors a policy declares.
// The relative error of one; 0: it is correctly rounded, or a rounded reciprocal and a product.
double declared_quotient(const sinkproof_setting *s);
// The relative error of `rest` roundings and `quotients` quotients, which are `roundings` together
// where no error is declared.
double quotients_error(const sinkproof_setting *s, double roundings, double rest, double quotients);
// The largest of an engine's quotients where the real one is at most 1.
double most_of_quotient(const sinkproof_setting *s);

// ---- gelu.c (bound.gelu): one activation of a perceptron without a gate.
sinkproof_honest sinkproof_honest_gelu(const sinkproof_setting *s, sinkproof_honest x);

// ---- rope.c (bound.rope): cos and sin times the concentration for one position,
// c_p and s_p with p < head_dim / 2, and the rotation by halves of one head.
void sinkproof_honest_rope_table(const sinkproof_setting *s, const sinkproof_config *config,
                                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p);
void sinkproof_honest_rotate(const sinkproof_setting *s, size_t head_dim,
                             const sinkproof_honest *x_d, const sinkproof_honest *c_p,
                             const sinkproof_honest *s_p, sinkproof_honest *y_d);

// The table without the concentration, and the rotation in all forms that a policy admits
// (rope_forms.c): tables of one position, NULL for a form that is not admitted. work_d has room for
// 2 head_dim elements.
void sinkproof_honest_rope_plain(const sinkproof_setting *s, const sinkproof_config *config,
                                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p);
typedef struct sinkproof_turns {
    const sinkproof_honest *c_p, *s_p, *plain_c_p, *plain_s_p; // [head_dim / 2]
} sinkproof_turns;
void sinkproof_honest_turn(const sinkproof_setting *s, const sinkproof_config *config,
                           const sinkproof_turns *turns, const sinkproof_honest *x_d,
                           sinkproof_honest *work_d, sinkproof_honest *y_d);

// ---- unrounded.c (bound.unrounded): the values that an operation may read where v is stored,
// rounded to `format`, and the unrounded number may still be available.
sinkproof_honest sinkproof_honest_read(sinkproof_format format, double v,
                                       sinkproof_honest unrounded);

// ---- scores.c
// The number of terms for which the n products of a score count: if the query may be scaled before
// its sum by a scale that is not a power of two, each has two more roundings, of the scaled number
// and of the scale.
double sinkproof_score_terms(const sinkproof_setting *s, size_t n, size_t head_dim);
// A5 and A6: rounds a sum of products, scales it by 1/sqrt(head_dim), and rounds again.
sinkproof_honest sinkproof_honest_score(const sinkproof_setting *s, size_t head_dim,
                                        sinkproof_honest product);
// b_i: the sink's logit for the rows of one head with the rotated queries `query`, after A8.
MUST_CHECK bool sinkproof_honest_sink_logits(const sinkproof_setting *s,
                                             const sinkproof_normaliser *normaliser,
                                             const sinkproof_planes *query, sinkproof_honest *b_i);

// ---- softmax_sink.c (bound.softmax-sink): scores to weights.
// alpha_j = exp(z_j) / (exp(b) + sum exp(z)), j < n visible keys, and alpha_n for the sink,
// rounded at `point`. b = -inf: no sink. Where a logit, b too, may be off by 2^9 or more the
// weights are any numbers up to the largest: no exponential overflows.
MUST_CHECK bool sinkproof_honest_softmax(const sinkproof_setting *s, sinkproof_point point,
                                         size_t n, const sinkproof_honest *z_j, sinkproof_honest b,
                                         sinkproof_honest *alpha_j, double *common);

// ---- lse.c (bound.lse-rounded): the log-sum-exp of the n visible keys, or of the keys and the
// sink, rounded at A9.lse. Unknown where every step after that of the keys is rounded (A9.gate).
MUST_CHECK bool sinkproof_honest_lse(const sinkproof_setting *s, size_t n,
                                     const sinkproof_honest *z_j, sinkproof_honest b,
                                     bool with_sink, sinkproof_honest *lse);

// ---- swiglu.c (bound.swiglu): one activation from gate and up.
sinkproof_honest sinkproof_honest_swiglu(const sinkproof_setting *s,
                                         sinkproof_swiglu_numbers numbers, sinkproof_honest gate,
                                         sinkproof_honest up);
// n activations, whose gates and ups lie `stride` apart: the same bits, in vectors where the
// processor has them (abreast.h).
void sinkproof_honest_swiglu_row(const sinkproof_setting *s, sinkproof_swiglu_numbers numbers,
                                 size_t n, const sinkproof_honest *gate_n,
                                 const sinkproof_honest *up_n, size_t stride,
                                 sinkproof_honest *y_n);

// ---- experts.c: the weights w_k of the chosen experts from all router logits of a token, rounded
// at M4; *common as above.
MUST_CHECK bool sinkproof_honest_expert_weights(const sinkproof_setting *s, size_t n_experts,
                                                const sinkproof_honest *g_e, size_t k,
                                                const int32_t *chosen_k, sinkproof_honest *w_k,
                                                double *common);

// One element of the mixture sum_e w_e d_e of k chosen experts, in ascending
// order of expert where the policy fixes the order.
enum { SINKPROOF_MAX_CHOSEN = 64 };
sinkproof_honest sinkproof_honest_mixture(const sinkproof_setting *s, size_t k,
                                          const sinkproof_honest *w_e, const sinkproof_honest *d_e);

// out[i, r]: what the columns [first, first + n) of x and of a stored weight give, without the bias
// and not rounded. A sum in a known order, or in blocks, counts as one in any order that may round
// at each addition.
MUST_CHECK bool sinkproof_honest_slice(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                       const sinkproof_planes *x, const sinkproof_weight_rows *w,
                                       size_t first, size_t n, sinkproof_honest *out);
// What the slice of one rank gives of one expert's output (M10): `sum`, of so many terms, and that
// rank's share b of the bias.
sinkproof_honest sinkproof_honest_slice_output(const sinkproof_setting *s, size_t terms,
                                               sinkproof_honest sum, double b);
// The same element of the mixture where 0 < ranks <= SINKPROOF_MAX_RANKS each mix what their slices
// give, d_re [ranks, k], round it as M11.part says, and add, or where one rank has all: `whole`
// (bound.parts-mixed).
sinkproof_honest sinkproof_honest_mixed_parts(const sinkproof_setting *s, size_t ranks, size_t k,
                                              const sinkproof_honest *w_e,
                                              const sinkproof_honest *d_re, sinkproof_honest whole);

// ---- alike.c (stat.equal-rows): rows that are equal except for a few honest steps share their
// errors, and are one unit.
typedef struct sinkproof_row {
    uint64_t key;              // equal for rows that are alike
    float model, seen, weight; // norms of the row's contributions to the bin of all elements
} sinkproof_row;

// The largest class, and the factors by which classes raise the totals of independent rows; all are
// 1 when no two rows are alike.
typedef struct sinkproof_alike {
    double largest, model, seen, weight;
} sinkproof_alike;

uint64_t alike_row_key(size_t n, const sinkproof_honest *x_i);
MUST_CHECK bool sinkproof_rows_alike(size_t n, const sinkproof_row *rows, sinkproof_alike *alike);

// ---- spread.c (stat.spread): are the squared errors as small as rounding to nearest makes them?
enum { SPREAD_QUARTERS = 4 }; // quarters of a tensor's rows

typedef struct quarter_spread {
    double sum, mean;   // sum of the squared errors over their variances, and its largest mean
    double bias, steps; // the same for errors that may lean, and for one float32 ulp
    double most;        // the largest possible square
} quarter_spread;

typedef struct sinkproof_spread_result {
    double mean, limit; // mean squared error in variances; !(mean <= limit) is suspicious
    // the part with the largest mean / limit: 0 the whole tensor, then its quarters; -1: no freedom
    int part;
    double noise; // standard deviation, in float32 ulp, of the smallest detected noise
} sinkproof_spread_result;

// shares: the elements of a row share a factor.
void spread_add_row(quarter_spread *spread, size_t n, const double *v_i,
                    const sinkproof_honest *x_i, bool shares);
// Sums of squares in [0, most] whose means add up to mu exceed the result with odds below
// exp(-odds).
double spread_reach(double mu, double most, double odds);
// spread: one for each quarter; largest: the size of the largest class of alike rows.
void spread_judge(const quarter_spread *spread, double largest, double rate,
                  sinkproof_spread_result *result);
void spread_merge(quarter_spread *into, const quarter_spread *from);
const char *sinkproof_spread_part_name(int part);

// ---- measures.c: how far n <= SINKPROOF_MEASURED values are from the middles of their sets: as a
// share of the set's radius, and in ulp; and the likely distance in ulp. odd, not 0: v is not
// likely, the set is not one of numbers of the format, or its numbers are of unusual size; nothing
// else is said of it then.
enum { SINKPROOF_MEASURED = 32 };
typedef struct sinkproof_measures {
    double share[SINKPROOF_MEASURED], width[SINKPROOF_MEASURED], gap[SINKPROOF_MEASURED];
    uint64_t odd[SINKPROOF_MEASURED];
} sinkproof_measures;
void sinkproof_measure(sinkproof_format format, size_t n, const double *v_n,
                       const sinkproof_honest *x_n, sinkproof_measures *m);

// ---- drift.c (stat.drift): are the signed errors centred, and of the size that the open
// parts can produce? Accumulates, per bin, sum d c / v and its variance.
enum { DRIFT_BINS = 14 };

typedef struct drift_bin {
    double sum, weight, model, seen, bias; // see drift.c
    double squares; // sum of the squared weights of what counts as one unit (element or row)
    bool jumps;     // bounded by the observed values: elements on their own, or rare whole steps
    size_t elements;
} drift_bin;

// All zero at first. Holds 24 bytes for each row that has any freedom: sinkproof_drift_free.
typedef struct sinkproof_drift {
    drift_bin bins[DRIFT_BINS];
    quarter_spread spread[SPREAD_QUARTERS];
    size_t n_rows, room;
    sinkproof_row *rows; // in the order of the calls
    bool failed;         // memory ran out for a row: nothing can be judged
} sinkproof_drift;

// The result of the worst bin: the engine's values are (1 + gain) times the emulation's (in the
// offset bin: all are off by `gain`); |gain| of an honest engine stays below `limit` with the
// stated odds.
typedef struct sinkproof_drift_result {
    double gain, limit; // !(|gain| <= limit) is suspicious
    int bin;            // the bin with the largest |gain| / limit; -1: no freedom
    double smallest;    // the smallest detectable relative error of the whole tensor
    double alike;       // rows in the largest class of alike rows
    sinkproof_spread_result spread;
} sinkproof_drift_result;

// Adds one row of a tensor: values v_i and their honest sets x_i; `common` as above; `place` in [0,
// 1) is the row's place in the tensor.
void sinkproof_drift_row(sinkproof_drift *drift, size_t n, const double *v_i,
                         const sinkproof_honest *x_i, double common, double place);
// Appends the rows of `from` to those of `into`.
void sinkproof_drift_merge(sinkproof_drift *into, const sinkproof_drift *from);
// rate: false alarms per tensor, separately for drift and for spread. Returns false if memory runs
// out, now or when a row was added.
MUST_CHECK bool sinkproof_drift_judge(const sinkproof_drift *drift, double rate,
                                      sinkproof_drift_result *result);
// The same for n layers of one point together (stat.drift-pooled).
MUST_CHECK bool sinkproof_drift_pooled(size_t n, const sinkproof_drift *const *layers, double rate,
                                       sinkproof_drift_result *result);
// The gain in one of the bins; 0 if it has no freedom.
double sinkproof_drift_gain(const sinkproof_drift *drift, int bin);
bool sinkproof_drift_leans(const sinkproof_drift_result *result);   // suspicious: gain
bool sinkproof_drift_spreads(const sinkproof_drift_result *result); // suspicious: spread
const char *sinkproof_drift_bin_name(int bin);
void sinkproof_drift_free(sinkproof_drift *drift);

#endif
