// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One attention made of choices (doc/24-variants.md). Published designs differ in the similarity,
// the divisor, the star beside a row's keys, the keys that a row sees, the positions, and the gate
// on the result: six choices, each in a file of its own, and every design is a row of a table
// (ref/variants/designs.c). GPT-OSS's own attention is one of them; ref/forward.c has it with all
// roundings.
//
//   x_i -> x_i + p_i                              places.c      absolute or learned positions
//   q_i, k_j, v_j = x W                           attend.c
//   q_i, k_j -> rotated                           places.c      rotary positions
//   f(q_i), f(k_j)                                similarity.c  features
//   s_ij = f(q_i) f(k_j) / sqrt(d) + bias(i - j)  attend.c, places.c
//   s_i* : the star's score in the row            star.c
//   a_ij = sim(s_ij) / Z_i                        similarity.c, divisor.c, seen.c
//   o_i = sum_j a_ij v_j + a_i* v*                attend.c, star.c
//   o_i -> gate_i * o_i                           gate.c
//
// Names carry index sets as in ref/stages.h: i a query, j a key, c a coordinate of the layer's
// input, d of a head. Everything belongs to one head: heads of these designs are independent before
// the output projection.
#ifndef SINKPROOF_VARIANT_H
#define SINKPROOF_VARIANT_H

#include "base/error.h"
#include "ref/policy.h"

#include <stdbool.h>
#include <stddef.h>

// f: the feature of a query and of a key.
typedef enum sinkproof_feature {
    SINKPROOF_FEATURE_SELF,         // nothing
    SINKPROOF_FEATURE_ELU_PLUS_ONE, // elu(x) + 1, each coordinate: positive
    SINKPROOF_FEATURE_MLP,          // W2 relu(W1 x)
} sinkproof_feature;

// sim: the similarity as a function of the score.
typedef enum sinkproof_similarity {
    SINKPROOF_SIMILARITY_EXP,
    SINKPROOF_SIMILARITY_SIGMOID,
    SINKPROOF_SIMILARITY_ELU_PLUS_ONE,
    SINKPROOF_SIMILARITY_SCORE, // the score itself: it may be negative
} sinkproof_similarity;

// Z: the divisor of a row. Sums run over the keys that the row sees and over the star.
typedef enum sinkproof_divisor {
    SINKPROOF_DIVISOR_SUM,
    SINKPROOF_DIVISOR_ONE,        // nothing is normalised
    SINKPROOF_DIVISOR_SCALED,     // sum / a: the weights sum to a
    SINKPROOF_DIVISOR_POWER,      // (sum sim^p)^(1/p)
    SINKPROOF_DIVISOR_AT_LEAST_1, // max(|sum|, 1)
} sinkproof_divisor;

// The star of a row. It is not a token of the text: no mask hides it.
typedef enum sinkproof_star {
    SINKPROOF_STAR_NONE,
    SINKPROOF_STAR_TOKEN, // a learned input x*: it has a key, a value, and the first position
    SINKPROOF_STAR_KEY,   // a learned key k*, which no position rotates
    SINKPROOF_STAR_SCORE, // a learned score b, the same in every row: GPT-OSS
    SINKPROOF_STAR_ZERO,  // the score 0: softmax off by one
} sinkproof_star;

// The star's value, if it is not a token.
typedef enum sinkproof_star_value {
    SINKPROOF_STAR_VALUE_NONE,    // 0: its weight is lost to the row
    SINKPROOF_STAR_VALUE_LEARNED, // v*
    SINKPROOF_STAR_VALUE_FIRST,   // m (1, 0, ..., 0)
    SINKPROOF_STAR_VALUE_EVEN,    // m (1, 1, ..., 1) / sqrt(d)
} sinkproof_star_value;

typedef enum sinkproof_places {
    SINKPROOF_PLACES_NONE,
    SINKPROOF_PLACES_ABSOLUTE, // sines and cosines added to the input
    SINKPROOF_PLACES_LEARNED,  // a learned vector added to the input
    SINKPROOF_PLACES_RELATIVE, // a learned score for each bucket of distances, added
    SINKPROOF_PLACES_BUCKET,   // the bucket's number itself, as in one published code
    SINKPROOF_PLACES_ALIBI,    // -slope (i - j), added to the score
    SINKPROOF_PLACES_ROTARY,   // queries and keys turned
} sinkproof_places;

typedef enum sinkproof_keys_seen {
    SINKPROOF_SEEN_CAUSAL,       // j <= i
    SINKPROOF_SEEN_WINDOW,       // i - window < j <= i
    SINKPROOF_SEEN_PREFIX,       // j <= i or j < prefix
    SINKPROOF_SEEN_PACKED,       // j <= i of the same document
    SINKPROOF_SEEN_FIRST_RECENT, // j < prefix, or i - window < j <= i
} sinkproof_keys_seen;

typedef enum sinkproof_gate {
    SINKPROOF_GATE_NONE,
    SINKPROOF_GATE_HEAD,    // sigmoid(x_i . g): one number a head
    SINKPROOF_GATE_ELEMENT, // sigmoid(x_i G): one number a coordinate
} sinkproof_gate;

// A design; members without a meaning under its choices are 0.
typedef struct sinkproof_variant {
    const char *name;  // "kv-bias"
    const char *what;  // "a learned key with a learned value"
    const char *where; // its family
    const char *id;    // the statement of the book that defines it
    sinkproof_feature feature;
    sinkproof_similarity similarity;
    sinkproof_divisor divisor;
    double divisor_by; // a of SCALED, p of POWER
    sinkproof_star star;
    sinkproof_star_value star_value;
    double star_times; // m of FIRST and EVEN
    size_t star_dims;  // learned coordinates of k*, the others are 0; 0: all are learned
    bool shared_star;  // one star for all heads of a layer
    bool value_bias;   // v* is added to every row's result, whatever its weights
    bool unscaled;     // scores are plain products, not divided by sqrt(d)
    sinkproof_places places;
    sinkproof_keys_seen seen;
    size_t window, prefix; // for WINDOW, PREFIX and FIRST_RECENT
    sinkproof_gate gate;
} sinkproof_variant;

// The choices by name: the words of their kinds, in the order above, separated by blanks.
typedef enum sinkproof_choice {
    SINKPROOF_CHOICE_FEATURE,
    SINKPROOF_CHOICE_SIMILARITY,
    SINKPROOF_CHOICE_DIVISOR,
    SINKPROOF_CHOICE_STAR,
    SINKPROOF_CHOICE_STAR_VALUE,
    SINKPROOF_CHOICE_PLACES,
    SINKPROOF_CHOICE_SEEN,
    SINKPROOF_CHOICE_GATE,
    SINKPROOF_CHOICES
} sinkproof_choice;
const char *sinkproof_choice_kinds(sinkproof_choice choice); // "self elu mlp"

// The table of designs; NULL: k is too large.
const sinkproof_variant *sinkproof_variant_at(size_t k);
const sinkproof_variant *sinkproof_variant_find(const char *name);

enum { SINKPROOF_BUCKETS = 32 };

// One head: its input, and its learned parameters. Those that the design does not use may be NULL.
typedef struct sinkproof_variant_head {
    size_t n, hidden, dim; // tokens; widths of the input and of a head
    const double *x_nc;    // the layer's input after its norm
    const double *wq_cd, *wk_cd, *wv_cd;
    const double *star_c;              // x*
    const double *key_d, *value_d;     // k*, v*
    double logit;                      // b
    const double *mlp_1_dd, *mlp_2_dd; // rows are outputs
    const double *place_nc;            // learned positions
    const double *bucket_b;            // a learned score for each bucket
    double slope;                      // ALiBi's
    double rotary_base;                // 10000; 0 elsewhere
    const int *document_n;             // PACKED: the number of each token's document
    const double *gate_cd;             // g [hidden] or G [hidden, dim]
} sinkproof_variant_head;

// The results of one head. Rows and keys are those of the design: a star that is a token is row and
// key 0, followed by the text; otherwise the last column is the star's (0 without a star).
typedef struct sinkproof_variant_result {
    size_t rows, keys;
    double *turned_q_id, *turned_k_jd; // rotated, before their features
    double *q_id, *k_jd, *v_jd;        // as used in the scores
    double *s_ij;                      // [rows, keys + 1], for keys that a row sees; 0 elsewhere
    double *sim_ij;                    // the same
    double *z_i;                       // [rows]
    double *alpha_ij;                  // [rows, keys + 1]
    double *o_id;                      // before the gate
    double *gate_id, *gated_id;        // [rows, dim]; all 1 without a gate
    void *memory;
} sinkproof_variant_result;

// Computes a head, with the roundings of `policy` at the points of GPT-OSS's attention: A2
// projections, A4 positions and features, A5 and A6 scores, A8 the star's logit, A9.max, A9
// weights, A11 values, gate and result.
bool sinkproof_variant_attend(const sinkproof_policy *policy, const sinkproof_variant *variant,
                              const sinkproof_variant_head *head, sinkproof_variant_result *out,
                              sinkproof_error *error);
void sinkproof_variant_result_free(sinkproof_variant_result *out);

// The mean share of a row that one key takes (shares.c): alpha_k for the text's key k, counted from
// 0, over the rows from k on; alpha_* for the star over the rows of the text. Only rows, keys and
// alpha_ij are read.
double variant_alpha(const sinkproof_variant *variant, const sinkproof_variant_result *r, size_t k);
double variant_alpha_star(const sinkproof_variant *variant, const sinkproof_variant_result *r);

// ---- the choices, one file each --------------------------------------------------------------

bool sinkproof_variant_sees(const sinkproof_variant *variant, const int *document_n, size_t i,
                            size_t j);

double feature_elu_plus_one(double x);
double variant_similarity(sinkproof_similarity similarity, double s);
// f of one row, in place. work: 2 dim doubles.
void sinkproof_variant_feature(const sinkproof_policy *policy, const sinkproof_variant *variant,
                               const sinkproof_variant_head *head, double *x_d, double *work);

// Whether a row's maximum is subtracted from its scores: only if that does not change the weights.
bool variant_subtracts_maximum(const sinkproof_variant *variant);
// One row: alpha_j[0 ... count - 1] from its `count` scores (the star's last), for the keys that it
// sees.
void variant_divide(const sinkproof_policy *policy, const sinkproof_variant *variant, size_t count,
                    const bool *seen_j, const double *s_j, double *sim_j, double *z,
                    double *alpha_j);

// T5's bucket for a distance i - j >= 0: exact up to half of the buckets, then logarithmic up to
// 128.
size_t t5_bucket(size_t distance);
double sinkproof_variant_place_bias(const sinkproof_variant *variant,
                                    const sinkproof_variant_head *head, size_t distance);
// x_c of position i as input of the layer.
void variant_place_input(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                         size_t i, double *x_c);
void variant_place_turn(const sinkproof_policy *policy, const sinkproof_variant *variant,
                        const sinkproof_variant_head *head, size_t i, double *x_d);

// Whether the design has a column beside its keys, and its score with the query q_d.
bool sinkproof_variant_has_column(const sinkproof_variant *variant);
double variant_star_score(const sinkproof_policy *policy, const sinkproof_variant *variant,
                          const sinkproof_variant_head *head, const double *q_d, double *work);
// The value of the star's column, and the bias added to every row.
void variant_star_value(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                        double *v_d);

void variant_gate(const sinkproof_policy *policy, const sinkproof_variant *variant,
                  const sinkproof_variant_head *head, const double *x_c, double *gate_d);

#endif
