// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Identities and inequalities in ball arithmetic: both sides of a statement are enclosed, from
// exact inputs, at a stated precision. An identity holds if the balls of each entry overlap and no
// radius is above what the precision allows; an inequality, if the balls are disjoint in the right
// order.
//
// What the precision allows. Let v = 2^(1-p). One Arb operation at p bits moves a midpoint by at
// most v times its size; exp and log by at most 2 v (Arb's documentation: within one or two units).
// Let T bound the size of every argument t of an exponential and of every logarithm. Each part of a
// side then has at most this relative error:
//   a numerator e^t            (T + 2) v     t was rounded, then exp
//   a sum of n + 1 of them     + n v         one addition each
//   their quotient             + v
//   a sum of n weighted values + (n + 1) v   one product and the additions
//   log of a sum, minus b      (T + 2) v     absolute, and so relative for its exponential
//   one step of a recurrence   8 v           two rescaling exps, two products, two additions
// So no side needs more than K units of v, relative to the sum A of the sizes of its terms (1 for
// weights): K = 4 T + 3 n + 32, and 4 T + 8 n + 32 for a recurrence. The second order and the
// rounding of radii add less than 1 %:
//   radius <= 1.01 K v A.
#ifndef SINKPROOF_TRUTH_IDENTITIES_H
#define SINKPROOF_TRUTH_IDENTITIES_H

#include "proofs/truth/truth.h"

enum { SINKPROOF_BALL_DIM = 4, SINKPROOF_BALL_HEADS = 4, SINKPROOF_BALL_CHOSEN = 4 };

// One query over n keys. All inputs are exact doubles; values have 8 significant bits.
typedef struct sinkproof_ball_instance {
    uint64_t seed, number;
    size_t n, heads, kv_heads, dim, hidden; // keys, H, G, d', d; head h reads group h / (H / G)
    double *s_hj;                           // [H, n] scores
    double b_h[SINKPROOF_BALL_HEADS];       // sink logits, -infinity allowed
    double *x_gjd;                          // [G, n, d'] x_j W^V_g
    double bv_gd[SINKPROOF_BALL_HEADS * SINKPROOF_BALL_DIM];
    double wo_hdc[SINKPROOF_BALL_HEADS * SINKPROOF_BALL_DIM * SINKPROOF_BALL_DIM];
    double bo_c[SINKPROOF_BALL_DIM], star_d[SINKPROOF_BALL_DIM];
    double q_d[SINKPROOF_BALL_DIM], *k_jd, k_star_d[SINKPROOF_BALL_DIM]; // low-rank and key biases
    size_t low_rank;
    double scale; // of v' (sink.fixed-value)
    size_t *part_j;
} sinkproof_ball_instance;

// The spread of the scores, and the sink logit of every head (NAN: random).
typedef struct sinkproof_ball_ranges {
    size_t n, heads; // 0: random
    double spread, b;
} sinkproof_ball_ranges;

sinkproof_ball_instance sinkproof_ball_draw(sinkproof_ball_ranges ranges, uint64_t seed,
                                            uint64_t number);
void sinkproof_ball_clear(sinkproof_ball_instance *m);

// Fills `out`, with as many entries as the identity's size.
typedef void (*ball_side_fn)(arb_ptr out, const sinkproof_ball_instance *m, slong bits);

typedef enum ball_relation {
    SINKPROOF_BALL_EQUAL, // left = right
    SINKPROOF_BALL_LESS,  // left < right, with more bits if the gap needs them
    // a difference quotient with step 2^(-bits/4) lies in the range of the derivative
    SINKPROOF_BALL_DERIVATIVE,
} ball_relation;

typedef enum ball_size {
    BALL_ONE,    // one entry
    BALL_FOUR,   // four
    BALL_KEYS,   // one per key and one for the sink
    BALL_HEAD,   // one per element of a head
    BALL_HIDDEN, // one per element of the layer's output
} ball_size;

// FINITE: only for finite sink logits. RECURRENT: one step per key. KEYED: scores are q k /
// sqrt(d').
typedef enum ball_trait { PLAIN = 0, FINITE = 1, RECURRENT = 2, KEYED = 4 } ball_trait;

typedef struct sinkproof_identity {
    const char *id;
    ball_relation relation;
    ball_size size;
    const char *left_text, *right_text;
    ball_side_fn left, right;
    unsigned traits; // any of ball_trait
} sinkproof_identity;

// Identity k, NULL after the last; an id may have several.
const sinkproof_identity *sinkproof_identity_at(size_t k);

typedef struct sinkproof_identity_outcome {
    // broken: entries that do not hold, or whose radius is too large
    size_t instances, entries, broken;
    slong bits;          // largest precision of an instance
    double radius_log2;  // the largest radius relative to A
    double allowed_log2; // the radius that the precision allowed there
    double share;        // the largest radius / allowed: at most 1
    uint64_t first_broken;
} sinkproof_identity_outcome;

// Checks the first `count` instances of a seed to which the identity applies.
sinkproof_identity_outcome sinkproof_identity_check(const sinkproof_identity *identity,
                                                    uint64_t seed, size_t count, slong bits);
// log2 of the allowed radius relative to A, and A.
double identity_allowed_log2(const sinkproof_identity *identity, const sinkproof_ball_instance *m,
                             slong bits);
double identity_allowance_unit(const sinkproof_identity *identity,
                               const sinkproof_ball_instance *m);

// The instance's shape and the first entries of both sides, as lines; the caller frees them.
char *sinkproof_identity_describe(const sinkproof_identity *identity, uint64_t seed,
                                  uint64_t number, slong bits);

// The value-bias identity (sink.attn-mass) and the gate (sink.gate) of one head over the first n_k
// of the given scores, for each n_k and each sink logit; the exponentials are shared.
typedef struct sinkproof_grid_outcome {
    size_t cases, broken;
    double mass_share, gate_share;             // the largest radius / allowed
    double mass_radius_log2, gate_radius_log2; // the largest radius, relative to A
} sinkproof_grid_outcome;
sinkproof_grid_outcome sinkproof_identity_grid(size_t counts, const size_t *n_k, size_t sinks,
                                               const double *b_k, double spread, uint64_t seed,
                                               slong bits);

// The left sides of both again, by one correctly rounded MPFR operation after another, for
// readability. out [2]: sum_j alpha_j and sigmoid(LSE - b) of head 0.
void truth_mpfr_mass_and_gate(mpfr_ptr out, const sinkproof_ball_instance *m, mpfr_prec_t bits);

#endif
