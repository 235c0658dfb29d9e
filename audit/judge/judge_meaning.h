// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The meaning of each operation to the judge. Each known mistake of engines that is neither in the
// configuration nor in a weight nor in the policy is a member here: the judge reads it where it
// computes the honest set, and a diagnosis supposes another value.
#ifndef SINKPROOF_JUDGE_MEANING_H
#define SINKPROOF_JUDGE_MEANING_H

#include "audit/judge/judge_attending.h"
#include "audit/judge/judge_region.h"
#include "model/adapter.h"

#include <stdbool.h>
#include <stddef.h>

// How the sink's exponential enters the denominator of a row's weights.
typedef enum sinkproof_sink_share {
    SINKPROOF_SINK_ONCE,          // as defined
    SINKPROOF_SINK_LEFT_OUT,      // only in the maximum: the weights of the keys sum to 1
    SINKPROOF_SINK_RENORMALISED,  // the same, but the sink's own weight is as defined
    SINKPROOF_SINK_UNSHIFTED,     // e^b beside e^(s - m), where m is the maximum of scores and sink
    SINKPROOF_SINK_UNSHIFTED_KEYS // the same, where m is the maximum of the scores
} sinkproof_sink_share;

// How the weights of the chosen experts follow from the router's logits.
typedef enum sinkproof_expert_share {
    SINKPROOF_SHARE_AFTER,     // softmax over the chosen, as defined
    SINKPROOF_SHARE_BEFORE,    // softmax over all experts, not renormalised
    SINKPROOF_SHARE_SIGMOID,   // sigmoid of each logit
    SINKPROOF_SHARE_SIGMOIDS,  // the same, divided by their sum
    SINKPROOF_SHARE_EVEN,      // 1 / k
    SINKPROOF_SHARE_ONE,       // 1
    SINKPROOF_SHARE_LOGIT,     // the logit itself
    SINKPROOF_SHARE_BACKWARDS, // as defined, the slots in reverse
    SINKPROOF_SHARE_PLUS_ONE,  // as defined, with a 1 in the denominator
    SINKPROOF_SHARE_TWICE,     // the softmax over the chosen, and again of that
    SINKPROOF_SHARE_OF_BF16,   // as defined, of logits that are rounded first
    SINKPROOF_SHARE_OF_F16
} sinkproof_expert_share;

// The weights that the sum over the chosen experts uses.
typedef enum sinkproof_mixing {
    SINKPROOF_MIXED_BY_WEIGHTS, // as defined
    SINKPROOF_MIXED_EVENLY,     // 1 / k
    SINKPROOF_MIXED_BY_ONES,
    SINKPROOF_MIXED_BACKWARDS // the slots' weights in reverse
} sinkproof_mixing;

// Which experts are chosen from the logits in descending order.
typedef enum sinkproof_selection {
    SINKPROOF_SELECT_LARGEST,   // as defined
    SINKPROOF_SELECT_SMALLEST,  // the last k
    SINKPROOF_SELECT_SHIFTED,   // ranks 2 to k + 1
    SINKPROOF_SELECT_RUNNER_UP, // ranks 1 to k - 1 and k + 1
    SINKPROOF_SELECT_ABSOLUTE   // the largest absolute values
} sinkproof_selection;

// The places of gate and up of coordinate f in a row of the up-projection.
typedef enum sinkproof_pairing {
    SINKPROOF_PAIR_NEIGHBOURS, // 2 f and 2 f + 1, as defined
    SINKPROOF_PAIR_SWAPPED,    // 2 f + 1 and 2 f
    SINKPROOF_PAIR_HALVES,     // f and inter + f
    SINKPROOF_PAIR_HALVES_SWAPPED
} sinkproof_pairing;

// What stands in the place of a cosine or sine: one of a pair, with its sign, or a number.
typedef enum sinkproof_turn_kind {
    SINKPROOF_TURN_COS,
    SINKPROOF_TURN_SIN,
    SINKPROOF_TURN_MINUS_COS,
    SINKPROOF_TURN_MINUS_SIN,
    SINKPROOF_TURN_ZERO,
    SINKPROOF_TURN_ONE
} sinkproof_turn_kind;
typedef struct sinkproof_turn_entry {
    sinkproof_turn_kind kind;
    size_t pair;
} sinkproof_turn_entry;

// The rotation of queries or of keys. A comment below begins with the definition's values.
typedef struct sinkproof_turning {
    // true, false, false: pairs 2 p and 2 p + 1; by the negative angle
    bool turned, neighbours, backwards;
    double position_by, position_times; // 0, 1: the angle is that of position * times + by
    const double *position_plus;        // NULL: and what is added to each of the first `positions`
    size_t positions;
    double position_modulo;   // 0: positions begin anew after so many; 0: they do not
    bool twice;               // turned once more
    size_t pairs;             // 0: only the first pairs are turned; 0: all
    double concentration;     // 1: a further factor
    size_t quotient;          // 0: the position is divided by it and cut; 0: it is not
    bool exchanged;           // cosine and sine
    sinkproof_from pair_from; // own: the pair whose frequency a pair has
    // none: pairs with a position of their own, position * times + by
    sinkproof_indices some_pairs;
    double some_times, some_by;
    const double *frequency_p; // NULL: other frequencies of the pairs, and their relative error
    double frequency_error;
    // 0; 1: divided by the definition's concentration, -1: multiplied by it once more
    int without_concentration;
    // NULL: coordinate k of a head has the cosine k and the sine head_dim + k of these: coordinates
    // p and head_dim / 2 + p have those of pair p
    const sinkproof_turn_entry *entry_k;
} sinkproof_turning;

// What a norm divides the elements of a row by, in the place of the root of its mean square: the
// least and the largest square of it, epsilon included.
typedef struct sinkproof_norm_question {
    const sinkproof_trace *trace;
    const sinkproof_config *config;
    sinkproof_trace_point point;
    size_t layer, n, d, token;
    const double *x_nd, *scale_d;
    double eps;
    const double *numbers;
    const double *table; // one for each token, or NULL
} sinkproof_norm_question;
// Returns false where the trace does not tell.
typedef bool sinkproof_norm_squares(const sinkproof_norm_question *q, double *lo_d, double *hi_d);
enum { SINKPROOF_NORM_NUMBERS = 6 };

// What the gate of an activation becomes before up multiplies it.
typedef enum sinkproof_gating {
    SINKPROOF_GATED,           // g sigmoid(alpha g), as defined
    SINKPROOF_GATED_UNCLAMPED, // the same; the sigmoid reads the gate before its clamp
    SINKPROOF_GATED_LATE,      // and its product is clamped, not the gate
    SINKPROOF_GATED_SUM,       // t (g + p) sigmoid(a r): of the meaning's gate_times and so on
    SINKPROOF_GATED_BY_GELU,
    SINKPROOF_GATED_BY_GELU_TANH,
    SINKPROOF_GATED_BY_RELU,
    SINKPROOF_GATED_BY_SQUARED_RELU,
    SINKPROOF_GATED_BY_TANH,
    SINKPROOF_GATED_BY_SILU,    // in one step: alpha is 1
    SINKPROOF_GATED_BY_SIGMOID, // without g
    SINKPROOF_GATED_BY_ITSELF,  // without the sigmoid
    SINKPROOF_GATED_BY_ONE,     // up alone
    // g times an approximation of sigmoid(x), where x is the meaning's sigmoid_by times g
    SINKPROOF_GATED_BY_SIXTH,    // x / 6 + 1/2 in [0, 1]
    SINKPROOF_GATED_BY_FIFTH,    // x / 5 + 1/2 in [0, 1]
    SINKPROOF_GATED_BY_QUARTER,  // x / 4 + 1/2 in [0, 1]
    SINKPROOF_GATED_BY_SOFTSIGN, // (1 + x / (1 + |x|)) / 2
    SINKPROOF_GATED_BY_ROOT,     // (1 + x / sqrt(1 + x^2)) / 2
    SINKPROOF_GATED_BY_PADE,     // (1 + t) / 2: t = h (27 + h^2) / (27 + 9 h^2), h = x / 2
    SINKPROOF_GATED_BY_POWER     // 1 / (1 + (1 - x / 256)^256)
} sinkproof_gating;

// What a gate g is multiplied with or becomes; of the first four and the last seven: g.
double sinkproof_gate_by(sinkproof_gating gating, double g);
// What stands for the sigmoid; of the last seven an approximation.
double sinkproof_sigmoid_by(sinkproof_gating gating, double x);

// The index of gate (0) or up (1) of coordinate f in a row of 2 inter numbers.
typedef size_t sinkproof_pair_rule(size_t f, size_t inter, size_t which, size_t by);

// The sum x + t of a residual.
typedef struct sinkproof_joining {
    double kept, added; // 1, 1: kept x + added t
} sinkproof_joining;

// The passes in which rows reach an engine that keeps keys in a cache: row `first` begins the
// second, and each later one begins `rows` rows after the one before it. rows 0: all rows come in
// one.
typedef struct sinkproof_passes {
    size_t first, rows;
} sinkproof_passes;

// What multiplies B (A x) of an adapter beside a weight; s is the adapter's scale.
typedef enum sinkproof_adapting {
    SINKPROOF_ADAPTED,          // s, as defined
    SINKPROOF_ADAPTED_NOT,      // 0: left out
    SINKPROOF_ADAPTED_UNSCALED, // 1
    SINKPROOF_ADAPTED_BY_ALPHA, // alpha, not divided
    SINKPROOF_ADAPTED_SQUARED,  // s^2: scaled twice
    SINKPROOF_ADAPTED_TWICE,    // 2 s: added twice
    SINKPROOF_ADAPTED_BY_RANK,  // alpha / rank where it is alpha / sqrt(rank)
    SINKPROOF_ADAPTED_BY_ROOT,  // alpha / sqrt(rank) where it is alpha / rank
    SINKPROOF_ADAPTED_NEGATED   // -s
} sinkproof_adapting;

typedef struct sinkproof_meaning {
    bool eps_outside, centred;            // norms: x / (rms + eps); the mean is subtracted
    sinkproof_norm_squares *norm_squares; // NULL: as defined
    double norm_numbers[SINKPROOF_NORM_NUMBERS];
    const double *norm_table;
    sinkproof_turning query, key;    // A4
    sinkproof_attending attending;   // A5 to A11, at one place
    bool sees_all;                   // later keys are not masked
    size_t sees_later;               // 0: a query sees the keys of a later row of its pass
    sinkproof_passes passes;         // for the next two
    bool cache_unread;               // a query sees no key of an earlier pass
    bool positions_anew;             // a query sees the keys of its row within its pass
    sinkproof_sink_share sink_share; // A9
    bool sink_has_value;             // the sink's weight multiplies the value of key 0
    sinkproof_joining after_values;  // A13
    sinkproof_selection selection;   // M3
    sinkproof_expert_share share;    // M4
    sinkproof_pairing pairing;       // M8
    sinkproof_pair_rule *pair_at;    // NULL: as `pairing` says
    size_t pair_by;
    double gate_low, gate_high; // -infinity, 1: the clamps, in limits; infinite: none
    double up_low, up_high;     // -1, 1
    double up_plus;             // 1
    double up_times;            // 1
    bool up_plus_first;         // before the clamp
    bool up_size;               // the size of up stands for up
    double swish_plus;          // 0: added to the gate times its sigmoid
    sinkproof_gating gating;
    // of a gated sum: t, p, a, and whether the sigmoid reads up
    double gate_times, gate_plus, sigmoid_by;
    bool sigmoid_of_up;
    sinkproof_mixing mixed;            // M11
    double mixture_times;              // 1: M11
    size_t weighed_first, weighed_end; // experts whose shares are multiplied; end 0: none
    double weighed_times;
    size_t slots_left_out;           // 0: the last slots are left out of the sum
    sinkproof_joining after_experts; // M12
    sinkproof_adapting adapting;     // of the weights in `adapting_slots`, as bits
    unsigned adapting_slots;
} sinkproof_meaning;

// What multiplies B (A x) then.
double sinkproof_adapter_times(const sinkproof_adapter_part *part, sinkproof_adapting adapting);

extern const sinkproof_meaning sinkproof_meaning_as_defined; // the definition

#endif
