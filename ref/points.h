// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The points of the forward pass, the vocabulary of all rooms. A rounding point is a place where an
// engine may round (policy.c says how); a traced point is a tensor that an engine can show. Five
// computations of these points are independent (ref/, fast/lanes/, fast/, proofs/truth/,
// proofs/bounds/), so that a mistake in one is seen by the others: they share no formula.
#ifndef SINKPROOF_POINTS_H
#define SINKPROOF_POINTS_H

#include "model/config.h"
#include "model/slots.h"

#include <stdbool.h>
#include <stddef.h>

// Which models have a point. SCALED is a SwiGLU that scales its gate, SHIFTED one that adds to up.
// K(word, whether the model c is of the kind)
// clang-format off
#define SINKPROOF_MODEL_KINDS(K)                                           \
    K(EVERY,   true)                                                       \
    K(ROTATED, c->rotation.kind != SINKPROOF_NO_ROTATION)                  \
    K(HEADED,  c->head_norms)                                              \
    K(ROUTED,  !c->dense)                                                  \
    K(DENSE,   c->dense)                                                   \
    K(SWIGLU,  c->activation == SINKPROOF_SWIGLU)                          \
    K(SCALED,  c->activation == SINKPROOF_SWIGLU && c->swiglu.alpha != 1)  \
    K(SHIFTED, c->activation == SINKPROOF_SWIGLU && c->swiglu.offset != 0) \
    K(GELU,    c->activation != SINKPROOF_SWIGLU)                          \
    K(NO,      false)

// ---- rounding points -------------------------------------------------------------------------

// Every place where an engine may round, in the order of the forward pass. Where a norm X may be
// rounded before its weight multiplies (X.norm) stands right before X.
// P(identifier, printed name, which models have it, what is rounded)
#define SINKPROOF_POINTS(P) \
    P(T0,          "T0",          EVERY,   "embedding row")                                                 \
    P(A1_NORM,     "A1.norm",     EVERY,   "RMSNorm before attention, without its weight")                  \
    P(A1,          "A1",          EVERY,   "RMSNorm before attention")                                      \
    P(A2_IN,       "A2.in",       EVERY,   "normed input as the projections read it")                       \
    P(A2_TERM,     "A2.term",     EVERY,   "each product of a projection")                                  \
    P(A2_ACC,      "A2.acc",      EVERY,   "running sum of a projection")                                   \
    P(A2_PRODUCT,  "A2.product",  EVERY,   "projection before its bias")                                    \
    P(A2,          "A2",          EVERY,   "query, key and value projections with bias")                    \
    P(A3_NORM,     "A3.norm",     HEADED,  "norm of a head's query or key, without its weight")              \
    P(A3,          "A3",          HEADED,  "norm of each head's query and key")                             \
    P(A4_FREQ,     "A4.freq",     ROTATED, "YaRN inverse frequency, each step")                             \
    P(A4_ANGLE,    "A4.angle",    ROTATED, "position times inverse frequency")                              \
    P(A4_CONC,     "A4.conc",     ROTATED, "the concentration itself")                                      \
    P(A4_COS,      "A4.cos",      ROTATED, "cosine and sine times the concentration")                       \
    P(A4_SCALED,   "A4.scaled",   ROTATED, "vector times the concentration, where that comes first")        \
    P(A4_PROD,     "A4.prod",     ROTATED, "each product of the rotation")                                  \
    P(A4,          "A4",          ROTATED, "rotated query and key")                                         \
    P(A5_Q,        "A5.q",        EVERY,   "rotated query as the score reads it")                           \
    P(A5_K,        "A5.k",        EVERY,   "rotated key as it is cached")                                   \
    P(A5_TERM,     "A5.term",     EVERY,   "each product of a score")                                       \
    P(A5_ACC,      "A5.acc",      EVERY,   "running sum of a score")                                        \
    P(A5,          "A5",          EVERY,   "score before scaling")                                          \
    P(A6,          "A6",          EVERY,   "score after scaling by 1/sqrt(head_dim)")                       \
    P(A8,          "A8",          EVERY,   "sink logit")                                                    \
    P(A9_MAX,      "A9.max",      EVERY,   "logits with the row's maximum subtracted")                      \
    P(A9_UNNORM,   "A9.unnorm",   EVERY,   "exponentials that meet the values before their division")       \
    P(A9_LSE,      "A9.lse",      EVERY,   "log-sum-exp of the keys as the sink's gate reads it")           \
    P(A9_GATE,     "A9.gate",     EVERY,   "each step of LSE with the sink, and of the gate that follows")  \
    P(A9,          "A9",          EVERY,   "attention weights")                                             \
    P(A11_WEIGHTS, "A11.weights", EVERY,   "attention weights as the sum over values reads them")           \
    P(A11_V,       "A11.v",       EVERY,   "value as it is cached")                                         \
    P(A11_TERM,    "A11.term",    EVERY,   "each weighted value")                                           \
    P(A11_ACC,     "A11.acc",     EVERY,   "running sum over keys")                                         \
    P(A11_PART,    "A11.part",    EVERY,   "weighted values of a part of the keys, before parts are merged") \
    P(A11,         "A11",         EVERY,   "weighted values")                                               \
    P(A12_IN,      "A12.in",      EVERY,   "weighted values as the output projection reads them")           \
    P(A12_TERM,    "A12.term",    EVERY,   "each product of the output projection")                         \
    P(A12_ACC,     "A12.acc",     EVERY,   "running sum of the output projection")                          \
    P(A12_PRODUCT, "A12.product", EVERY,   "output projection before its bias")                             \
    P(A12,         "A12",         EVERY,   "output projection with bias")                                   \
    P(A13,         "A13",         EVERY,   "residual after attention")                                      \
    P(M1_NORM,     "M1.norm",     EVERY,   "RMSNorm before the experts, without its weight")                \
    P(M1,          "M1",          EVERY,   "RMSNorm before the experts")                                    \
    P(M2_IN,       "M2.in",       ROUTED,  "normed input as the router reads it")                           \
    P(M2_TERM,     "M2.term",     ROUTED,  "each product of the router")                                    \
    P(M2_ACC,      "M2.acc",      ROUTED,  "running sum of the router")                                     \
    P(M2_PRODUCT,  "M2.product",  ROUTED,  "router logits before their bias")                               \
    P(M2,          "M2",          ROUTED,  "router logits")                                                 \
    P(M4,          "M4",          ROUTED,  "weights of the chosen experts")                                 \
    P(M5_IN,       "M5.in",       EVERY,   "normed input as the up-projection reads it")                    \
    P(M5_TERM,     "M5.term",     EVERY,   "each product of the up-projection")                             \
    P(M5_ACC,      "M5.acc",      EVERY,   "running sum of the up-projection")                              \
    P(M5,          "M5",          ROUTED,  "up-projection before bias")                                     \
    P(M6_PRODUCT,  "M6.product",  DENSE,   "up-projection before its bias, where one operation makes both") \
    P(M6,          "M6",          EVERY,   "up-projection with bias")                                       \
    P(M8_ALPHA,    "M8.alpha",    SCALED,  "the constant 1.702 of the activation")                          \
    P(M8_SCALED,   "M8.scaled",   SCALED,  "alpha times gate")                                              \
    P(M8_EXP,      "M8.exp",      SWIGLU,  "exponential of its size, where the sigmoid is made of that")    \
    P(M8_SIGMOID,  "M8.sigmoid",  SWIGLU,  "sigmoid of alpha times gate")                                   \
    P(M8_SWISH,    "M8.swish",    SWIGLU,  "gate times sigmoid")                                            \
    P(M8_UP,       "M8.up",       SHIFTED, "up plus one")                                                   \
    P(M8_SQUARE,   "M8.square",   GELU,    "square of GELU's argument")                                     \
    P(M8_CUBE,     "M8.cube",     GELU,    "its cube")                                                      \
    P(M8_CUBIC,    "M8.cubic",    GELU,    "0.044715 times its cube")                                       \
    P(M8_SUM,      "M8.sum",      GELU,    "GELU's argument plus that")                                     \
    P(M8_INNER,    "M8.inner",    GELU,    "argument of GELU's tanh")                                       \
    P(M8_TANH,     "M8.tanh",     GELU,    "tanh of GELU")                                                  \
    P(M8_ONE,      "M8.one",      GELU,    "one plus the tanh")                                             \
    P(M8,          "M8",          EVERY,   "activation of the experts")                                     \
    P(M9_IN,       "M9.in",       EVERY,   "activation as the down-projection reads it")                    \
    P(M9_TERM,     "M9.term",     EVERY,   "each product of the down-projection")                           \
    P(M9_ACC,      "M9.acc",      EVERY,   "running sum of the down-projection")                            \
    P(M9,          "M9",          ROUTED,  "down-projection before bias")                                   \
    P(M10_PRODUCT, "M10.product", DENSE,   "down-projection before its bias, where one makes both")         \
    P(M10,         "M10",         EVERY,   "down-projection with bias")                                     \
    P(M11_PROD,    "M11.prod",    ROUTED,  "expert output times its weight")                                \
    P(M11_SUM,     "M11.sum",     ROUTED,  "running sum over experts, in ascending expert order")           \
    P(M11_PART,    "M11.part",    ROUTED,  "mixture of what a rank has, before ranks are added")            \
    P(M11,         "M11",         ROUTED,  "mixture of the chosen experts")                                 \
    P(M12,         "M12",         EVERY,   "residual after the layer")                                      \
    P(F1_NORM,     "F1.norm",     EVERY,   "final RMSNorm, without its weight")                             \
    P(F1,          "F1",          EVERY,   "final RMSNorm")                                                 \
    P(F2_IN,       "F2.in",       EVERY,   "final norm as the logits read it")                              \
    P(F2_TERM,     "F2.term",     EVERY,   "each product of a logit")                                       \
    P(F2_ACC,      "F2.acc",      EVERY,   "running sum of a logit")                                        \
    P(F2,          "F2",          EVERY,   "logits")
// clang-format on

typedef enum sinkproof_point {
#define AT_ENUM(id, ...) AT_##id,
    SINKPROOF_POINTS(AT_ENUM)
#undef AT_ENUM
        AT_POINTS
} sinkproof_point;

const char *sinkproof_point_name(sinkproof_point point); // "A4.freq"
const char *sinkproof_point_what(sinkproof_point point); // "YaRN inverse frequency, each step"

// Whether an engine of the model can round there.
bool sinkproof_point_exists(const sinkproof_config *config, sinkproof_point point);

// Where the norm A1, A3, M1 or F1 may be rounded before its weight multiplies.
sinkproof_point sinkproof_point_before_weight(sinkproof_point norm);

// The rounding points of a matrix product besides its result: operands when they are read, each
// product, the running sum, and the sum before the bias, which is the result itself without a bias.
typedef struct sinkproof_product_points {
    sinkproof_point in, term, acc, product;
} sinkproof_product_points;

// The points of a linear layer, by its result: A2, A12, M2, M5, M9 or F2; in GPT-2 also M6 and M10.
sinkproof_product_points sinkproof_product_points_at(sinkproof_point result);

// Whether it is the rounding of an operand of a stored weight (A2.in, ..., F2.in).
bool sinkproof_point_is_operand(sinkproof_point point);
bool sinkproof_point_is_running_sum(sinkproof_point point); // A2.acc, A5.acc, ...
// ---- traced points ---------------------------------------------------------------------------

// Every tensor of a trace, in the order of the forward pass: the rounding point whose result it
// holds, its shape, its role, how engines hold it (sinkproof_held below), and its inputs without
// weights and tokens.
//
// Inputs. EACH: an element of the point needs its own element of the input, or a row whose elements
// share a known factor. SHARED: an element of the input affects many of the point, which share its
// error. RESIDUAL is the residual stream before the sublayer. In the place of a point that a model
// lacks, its inputs are used. Shapes. KEYS is n, and so is ALL_KEYS, before the mask; SINK_KEYS is
// one more (the sink's column, the last); UP is 2 inter if gate and up are side by side, else
// inter; CHOSEN is not a dimension in a model without a router. Roles. A sum of the STREAM of
// residuals; an OPERAND of a product with a weight, a key or a value; or neither (VALUE).
//
// The operation and the weights say how a point is computed, in every architecture. Weights that a
// model lacks are left out. So is the operation of a point that a model lacks, except the product
// before a bias: a dense model's M6 and M10 are linear layers, which multiply and add. A9.lse is
// the log-sum-exp with the sink, A9.lse-keys that of the keys alone. P(identifier, name, rounding
// point, of a LAYER or of its ENDS, which models have it, role, held,
//   operation, weights, shape, inputs)
// clang-format off
#define SINKPROOF_TRACED_POINTS(P) \
    P(T0,   "T0",   T0,      ENDS,  EVERY,   STREAM,  HELD,     EMBED,      WEIGHTS(EMBEDDING, POSITIONS),     SHAPE(N, HIDDEN),           NONE)                               \
    P(A1,   "A1",   A1,      LAYER, EVERY,   OPERAND, HELD,     NORM,       WEIGHTS(ATTN_NORM, ATTN_NORM_B),   SHAPE(N, HIDDEN),           SHARED(RESIDUAL))                   \
    P(A2_Q, "A2.q", A2,      LAYER, EVERY,   VALUE,   HELD,     LINEAR,     WEIGHTS(W_Q, B_Q),                 SHAPE(N, HEADS, DIM),       SHARED(A1))                         \
    P(A2_K, "A2.k", A2,      LAYER, EVERY,   VALUE,   HELD,     LINEAR,     WEIGHTS(W_K, B_K),                 SHAPE(N, KV, DIM),          SHARED(A1))                         \
    P(A2_V, "A2.v", A2,      LAYER, EVERY,   VALUE,   HELD,     LINEAR,     WEIGHTS(W_V, B_V),                 SHAPE(N, KV, DIM),          SHARED(A1))                         \
    P(A3_Q, "A3.q", A3,      LAYER, HEADED,  VALUE,   HELD,     NORM,       WEIGHTS(Q_NORM),                   SHAPE(N, HEADS, DIM),       SHARED(A2_Q))                       \
    P(A3_K, "A3.k", A3,      LAYER, HEADED,  VALUE,   HELD,     NORM,       WEIGHTS(K_NORM),                   SHAPE(N, KV, DIM),          SHARED(A2_K))                       \
    P(A4_Q, "A4.q", A4,      LAYER, ROTATED, OPERAND, HELD,     ROTATE,     NO_WEIGHTS,                        SHAPE(N, HEADS, DIM),       SHARED(A3_Q))                       \
    P(A4_K, "A4.k", A4,      LAYER, ROTATED, OPERAND, HELD,     ROTATE,     NO_WEIGHTS,                        SHAPE(N, KV, DIM),          SHARED(A3_K))                       \
    P(A6,   "A6",   A6,      LAYER, EVERY,   VALUE,   ASKED,    SCORE,      NO_WEIGHTS,                        SHAPE(HEADS, N, ALL_KEYS),  SHARED(A4_Q), SHARED(A4_K))         \
    P(LSE,  "A9.lse", A9_LSE, LAYER, NO,     VALUE,   OFFERED,  SOFTMAX,    WEIGHTS(SINKS),                    SHAPE(HEADS, N),            EACH(A6))                           \
    P(LSE_KEYS, "A9.lse-keys", A9_LSE, LAYER, NO, VALUE, OFFERED, SOFTMAX,  WEIGHTS(SINKS),                    SHAPE(HEADS, N),            EACH(A6))                           \
    P(A9,   "A9",   A9,      LAYER, EVERY,   VALUE,   PASSING,  SOFTMAX,    WEIGHTS(SINKS),                    SHAPE(HEADS, N, SINK_KEYS), EACH(A6))                           \
    P(A10,  "A10",  A9,      LAYER, EVERY,   VALUE,   PASSING,  DROP_SINK,  NO_WEIGHTS,                        SHAPE(HEADS, N, KEYS),      EACH(A9))                           \
    P(A11,  "A11",  A11,     LAYER, EVERY,   OPERAND, HELD,     SUM_VALUES, NO_WEIGHTS,                        SHAPE(N, HEADS, DIM),       EACH(A9), SHARED(A2_V))             \
    P(A12,  "A12",  A12,     LAYER, EVERY,   VALUE,   HELD,     LINEAR,     WEIGHTS(W_O, B_O),                 SHAPE(N, HIDDEN),           SHARED(A11))                        \
    P(A13,  "A13",  A13,     LAYER, EVERY,   STREAM,  HELD,     ADD,        NO_WEIGHTS,                        SHAPE(N, HIDDEN),           EACH(A12), EACH(RESIDUAL))          \
    P(M1,   "M1",   M1,      LAYER, EVERY,   OPERAND, HELD,     NORM,       WEIGHTS(MLP_NORM, MLP_NORM_B),     SHAPE(N, HIDDEN),           SHARED(A13))                        \
    P(M2,   "M2",   M2,      LAYER, ROUTED,  VALUE,   HELD,     LINEAR,     WEIGHTS(W_ROUTER, B_ROUTER),       SHAPE(N, EXPERTS),          SHARED(M1))                         \
    P(M3,   "M3",   NOTHING, LAYER, ROUTED,  VALUE,   HELD,     CHOOSE,     NO_WEIGHTS,                        SHAPE(N, CHOSEN),           EACH(M2))                           \
    P(M4,   "M4",   M4,      LAYER, ROUTED,  VALUE,   HELD,     SHARE,      NO_WEIGHTS,                        SHAPE(N, CHOSEN),           SHARED(M2), SHARED(M3))             \
    P(M5,   "M5",   M5,      LAYER, ROUTED,  VALUE,   UNBIASED, MULTIPLY,   WEIGHTS(W_UP),                     SHAPE(N, CHOSEN, UP),       SHARED(M1), SHARED(M3))             \
    P(M6,   "M6",   M6,      LAYER, EVERY,   VALUE,   INSIDE,   ADD_BIAS,   WEIGHTS(B_UP),                     SHAPE(N, CHOSEN, UP),       EACH(M5))                           \
    P(M8,   "M8",   M8,      LAYER, EVERY,   OPERAND, INSIDE,   ACTIVATE,   NO_WEIGHTS,                        SHAPE(N, CHOSEN, INTER),    EACH(M6))                           \
    P(M9,   "M9",   M9,      LAYER, ROUTED,  VALUE,   UNBIASED, MULTIPLY,   WEIGHTS(W_DOWN),                   SHAPE(N, CHOSEN, HIDDEN),   SHARED(M8), SHARED(M3))             \
    P(M10,  "M10",  M10,     LAYER, EVERY,   VALUE,   HELD,     ADD_BIAS,   WEIGHTS(B_DOWN),                   SHAPE(N, CHOSEN, HIDDEN),   EACH(M9))                           \
    P(M11,  "M11",  M11,     LAYER, ROUTED,  VALUE,   HELD,     MIX,        NO_WEIGHTS,                        SHAPE(N, HIDDEN),           EACH(M10), SHARED(M4), SHARED(M3))  \
    P(M12,  "M12",  M12,     LAYER, EVERY,   STREAM,  HELD,     ADD,        NO_WEIGHTS,                        SHAPE(N, HIDDEN),           EACH(M11), EACH(A13))               \
    P(F1,   "F1",   F1,      ENDS,  EVERY,   OPERAND, HELD,     NORM,       WEIGHTS(FINAL_NORM, FINAL_NORM_B), SHAPE(N, HIDDEN),           SHARED(RESIDUAL))                   \
    P(F2,   "F2",   F2,      ENDS,  EVERY,   VALUE,   HELD,     LINEAR,     WEIGHTS(UNEMBEDDING),              SHAPE(N, VOCAB),            SHARED(F1))
// clang-format on

// Names of LAYER points carry the layer in a trace: "03.A9".
typedef enum sinkproof_trace_point {
#define TRACE_ENUM(id, ...) TRACE_##id,
    SINKPROOF_TRACED_POINTS(TRACE_ENUM)
#undef TRACE_ENUM
        TRACE_POINTS
} sinkproof_trace_point;

const char *sinkproof_trace_point_name(sinkproof_trace_point point); // "A2.q"
bool sinkproof_trace_point_is_layered(sinkproof_trace_point point);  // false for T0, F1, F2
bool sinkproof_trace_point_is_index(sinkproof_trace_point point);    // whole numbers: M3
// Whether a model has the point in that layer; points outside the layers are in layer 0.
bool sinkproof_trace_point_exists(const sinkproof_config *config, sinkproof_trace_point point,
                                  size_t layer);
// Whether it is a norm's result, which may also be rounded before its weight.
bool sinkproof_trace_point_is_norm(sinkproof_trace_point point);
// Its role in the model: a sum of the residual stream; an operand of a weight, a key or a value.
bool sinkproof_trace_point_is_stream(sinkproof_trace_point point);
bool sinkproof_trace_point_is_operand(sinkproof_trace_point point);

// How an engine holds a point, from points that every engine has to points that some never compute.
// From INSIDE on, a stage of the reference computes it before another point, and shows both
// together. From ASKED on, not every engine has it: its inputs are used in its place.
typedef enum sinkproof_held {
    SINKPROOF_HELD,     // whole, before the engine continues from it
    SINKPROOF_INSIDE,   // whole, when its stage is done
    SINKPROOF_ASKED,    // a pass over the keys stores it only on request
    SINKPROOF_UNBIASED, // the engine may add the bias before it stores the product
    SINKPROOF_PASSING,  // a pass over the keys never stores it
    SINKPROOF_HELD_COUNT,
    SINKPROOF_OFFERED // a trace may have it; no model has the point
} sinkproof_held;
sinkproof_held sinkproof_trace_point_held(sinkproof_trace_point point);

// The shape of a point in a trace of n tokens (and n keys); returns its rank.
size_t sinkproof_trace_shape(const sinkproof_config *config, sinkproof_trace_point point, size_t n,
                             size_t *shape);
// The number of its elements; with n 1, those of a token's row.
size_t sinkproof_trace_elements(const sinkproof_config *config, sinkproof_trace_point point,
                                size_t n);

// Whether its rows are a head's queries, [heads, n, keys]; else its rows are tokens, [n, ...].
bool sinkproof_trace_point_is_by_head(sinkproof_trace_point point);

// Whether it has elements of masked keys, where an engine may hold anything.
bool sinkproof_trace_point_is_before_mask(sinkproof_trace_point point);

// The rounding point whose result the trace holds. M3 (indices) has none: false.
bool sinkproof_trace_rounding(sinkproof_trace_point point, sinkproof_point *rounding);

// An input of a point, and whether an element of it affects many of the point (SHARED).
typedef enum sinkproof_input_kind {
    SINKPROOF_INPUT_EACH,
    SINKPROOF_INPUT_SHARED
} sinkproof_input_kind;
typedef struct sinkproof_input {
    sinkproof_trace_point point;
    size_t layer;
    sinkproof_input_kind kind;
} sinkproof_input;
enum { SINKPROOF_MAX_INPUTS = 3 };

// The inputs of a point, without weights and tokens; returns their number. T0 has none. A9 also
// needs the rotated query if the sink's logit follows it.
size_t sinkproof_trace_inputs(const sinkproof_config *config, sinkproof_trace_point point,
                              size_t layer, sinkproof_input inputs[SINKPROOF_MAX_INPUTS]);

// How a point is computed from its inputs and weights.
typedef enum point_operation {
    SINKPROOF_EMBED,      // the token's row, plus its position's where that is a weight
    SINKPROOF_NORM,       // scale, and shift of a LayerNorm
    SINKPROOF_LINEAR,     // matrix and bias
    SINKPROOF_ROTATE,     // by the position
    SINKPROOF_SCORE,      // queries against keys, over sqrt(head_dim)
    SINKPROOF_SOFTMAX,    // over what the mask shows, and the sink
    SINKPROOF_DROP_SINK,  // without the sink's column
    SINKPROOF_SUM_VALUES, // values times weights
    SINKPROOF_ADD,        // to the residual stream
    SINKPROOF_CHOOSE,     // the experts of the largest logits
    SINKPROOF_SHARE,      // softmax over the chosen
    SINKPROOF_MULTIPLY,   // the chosen experts' matrices
    SINKPROOF_ADD_BIAS,   // their biases
    SINKPROOF_ACTIVATE,
    SINKPROOF_MIX // experts times shares
} point_operation;
point_operation sinkproof_trace_operation(const sinkproof_config *c, sinkproof_trace_point point);

// The weights that enter it beside its inputs, those that the model has; returns how many.
enum { SINKPROOF_MAX_WEIGHTS = 2 };
size_t sinkproof_trace_weights(const sinkproof_config *config, sinkproof_trace_point point,
                               sinkproof_slot weights[SINKPROOF_MAX_WEIGHTS]);

#endif
