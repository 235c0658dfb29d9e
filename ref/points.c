// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tables of points.h, and the functions that read them.
#include "ref/points.h"

#include "model/sinks.h"

// The length of a dimension in a trace of n tokens of the model c.
#define DIMENSIONS(D)                                                                              \
    D(N, n)                                                                                        \
    D(KEYS, n)                                                                                     \
    D(ALL_KEYS, n)                                                                                 \
    D(SINK_KEYS, n + 1)                                                                            \
    D(HIDDEN, c->hidden)                                                                           \
    D(HEADS, c->n_heads)                                                                           \
    D(KV, c->n_kv_heads)                                                                           \
    D(DIM, c->head_dim)                                                                            \
    D(EXPERTS, c->n_experts)                                                                       \
    D(CHOSEN, c->n_chosen)                                                                         \
    D(UP, (c->activation == SINKPROOF_SWIGLU ? 2 : 1) * c->inter)                                  \
    D(INTER, c->inter)                                                                             \
    D(VOCAB, c->vocab)

// The words of the tables.
#define WORD(word, ...) word,
typedef enum model_kind { SINKPROOF_MODEL_KINDS(WORD) } model_kind;
typedef enum dimension { END, DIMENSIONS(WORD) } dimension;
#undef WORD

static bool is_of_kind(const sinkproof_config *c, model_kind kind) {
    switch (kind) {
#define KIND_CASE(word, condition)                                                                 \
    case word:                                                                                     \
        return condition;
        SINKPROOF_MODEL_KINDS(KIND_CASE)
#undef KIND_CASE
    }
    return false;
}

// ---- rounding points -------------------------------------------------------------------------

static const struct rounding_row {
    const char *name, *what;
    model_kind models;
} rounding_rows[AT_POINTS] = {
#define ROUNDING_ROW(id, name, models, what) {name, what, models},
    SINKPROOF_POINTS(ROUNDING_ROW)
#undef ROUNDING_ROW
};

const char *sinkproof_point_name(sinkproof_point point) {
    return rounding_rows[point].name;
}

const char *sinkproof_point_what(sinkproof_point point) {
    return rounding_rows[point].what;
}

bool sinkproof_point_exists(const sinkproof_config *config, sinkproof_point point) {
    return is_of_kind(config, rounding_rows[point].models);
}

sinkproof_point sinkproof_point_before_weight(sinkproof_point norm) {
    return norm - 1;
}

#define AT(id) AT_##id
static const struct product_row {
    sinkproof_point result;
    sinkproof_product_points at;
} product_rows[] = {
    {AT(A2), {AT(A2_IN), AT(A2_TERM), AT(A2_ACC), AT(A2_PRODUCT)}},
    {AT(A12), {AT(A12_IN), AT(A12_TERM), AT(A12_ACC), AT(A12_PRODUCT)}},
    {AT(M2), {AT(M2_IN), AT(M2_TERM), AT(M2_ACC), AT(M2_PRODUCT)}},
    {AT(M5), {AT(M5_IN), AT(M5_TERM), AT(M5_ACC), AT(M5)}},
    {AT(M9), {AT(M9_IN), AT(M9_TERM), AT(M9_ACC), AT(M9)}},
    {AT(M6), {AT(M5_IN), AT(M5_TERM), AT(M5_ACC), AT(M6_PRODUCT)}},
    {AT(M10), {AT(M9_IN), AT(M9_TERM), AT(M9_ACC), AT(M10_PRODUCT)}},
    {AT(F2), {AT(F2_IN), AT(F2_TERM), AT(F2_ACC), AT(F2)}},
};
enum { PRODUCTS = sizeof product_rows / sizeof product_rows[0] };

sinkproof_product_points sinkproof_product_points_at(sinkproof_point result) {
    size_t row = 0;
    while (row + 1 < PRODUCTS && product_rows[row].result != result) row++;
    return product_rows[row].at;
}

#undef AT

bool sinkproof_point_is_operand(sinkproof_point point) {
    bool is = false;
    for (size_t row = 0; row < PRODUCTS; row++) is = is || product_rows[row].at.in == point;
    return is;
}

bool sinkproof_point_is_running_sum(sinkproof_point point) {
    bool is = point == AT_A5_ACC || point == AT_A11_ACC; // of two activations, not of a weight
    for (size_t row = 0; row < PRODUCTS; row++) is = is || product_rows[row].at.acc == point;
    return is;
}

// ---- traced points ---------------------------------------------------------------------------

enum { ENDS, LAYER };
enum { VALUE, STREAM, OPERAND };
enum { AT_NOTHING = -1 };
enum { IS_EACH = 1 << 8, IS_SHARED = 1 << 9, INPUT = IS_EACH - 1 };
enum { TRACE_RESIDUAL = TRACE_POINTS };
enum { NO_SLOT = -1 };
#define WEIGHT_1(a)                                                                                \
    { SINKPROOF_##a, NO_SLOT }
#define WEIGHT_2(a, b)                                                                             \
    { SINKPROOF_##a, SINKPROOF_##b }
#define WEIGHT_OF(a, b, which, ...) which
#define WEIGHTS(...)                WEIGHT_OF(__VA_ARGS__, WEIGHT_2, WEIGHT_1, 0)(__VA_ARGS__)
#define NO_WEIGHTS                                                                                 \
    { NO_SLOT, NO_SLOT }
#define SHAPE(...)                                                                                 \
    { __VA_ARGS__ }
#define EACH(id)   (TRACE_##id | IS_EACH)
#define SHARED(id) (TRACE_##id | IS_SHARED)
#define NONE       0

static const struct traced {
    const char *name;
    int rounding; // sinkproof_point
    int where;
    model_kind models;
    int role;
    sinkproof_held held;
    point_operation operation;
    int weights[SINKPROOF_MAX_WEIGHTS]; // sinkproof_slot
    dimension shape[3];
    int inputs[SINKPROOF_MAX_INPUTS]; // until the first NONE
} rows[TRACE_POINTS] = {
#define TRACED_ROW(id, name, at, where, models, role, held, operation, weights, shape, ...)        \
    {name,    AT_##at, where,        models, role, SINKPROOF_##held, SINKPROOF_##operation,        \
     weights, shape,   {__VA_ARGS__}},
    SINKPROOF_TRACED_POINTS(TRACED_ROW)
#undef TRACED_ROW
};

const char *sinkproof_trace_point_name(sinkproof_trace_point point) {
    return rows[point].name;
}

bool sinkproof_trace_point_is_layered(sinkproof_trace_point point) {
    return rows[point].where != ENDS;
}

bool sinkproof_trace_point_is_index(sinkproof_trace_point point) {
    return rows[point].rounding == AT_NOTHING;
}

// Whether a model has the point, in its layers or outside them.
static bool model_has_point(const sinkproof_config *config, sinkproof_trace_point point) {
    return is_of_kind(config, rows[point].models);
}

bool sinkproof_trace_point_exists(const sinkproof_config *config, sinkproof_trace_point point,
                                  size_t layer) {
    return model_has_point(config, point) &&
           layer < (rows[point].where != ENDS ? config->n_layers : 1);
}

bool sinkproof_trace_point_is_norm(sinkproof_trace_point point) {
    return rows[point].operation == SINKPROOF_NORM;
}

bool sinkproof_trace_point_is_stream(sinkproof_trace_point point) {
    return rows[point].role == STREAM;
}

bool sinkproof_trace_point_is_operand(sinkproof_trace_point point) {
    return rows[point].role == OPERAND;
}

sinkproof_held sinkproof_trace_point_held(sinkproof_trace_point point) {
    return rows[point].held;
}

bool sinkproof_trace_point_is_by_head(sinkproof_trace_point point) {
    return rows[point].shape[0] == HEADS && rows[point].shape[2] != END;
}

bool sinkproof_trace_point_is_before_mask(sinkproof_trace_point point) {
    return rows[point].shape[2] == ALL_KEYS;
}

// The residual stream before a sublayer: T0, or M12 of the layer before; before F1 the last one.
static sinkproof_input residual_before(const sinkproof_config *config, sinkproof_trace_point point,
                                       size_t layer) {
    size_t through = point == TRACE_F1 ? config->n_layers : layer; // layers before it
    return through == 0 ? (sinkproof_input){TRACE_T0, 0, SINKPROOF_INPUT_EACH}
                        : (sinkproof_input){TRACE_M12, through - 1, SINKPROOF_INPUT_EACH};
}

// In the place of a point that the model lacks is that point's first input.
static sinkproof_input input_from(const sinkproof_config *config, sinkproof_trace_point point,
                                  size_t layer, int from) {
    sinkproof_input in = {(sinkproof_trace_point)(from & INPUT), layer, SINKPROOF_INPUT_EACH};
    if ((from & INPUT) == TRACE_RESIDUAL) in = residual_before(config, point, layer);
    for (; !model_has_point(config, in.point); in.point = (sinkproof_trace_point)(from & INPUT))
        from = rows[in.point].inputs[0] | (from & IS_SHARED);
    in.kind = (from & IS_SHARED) != 0 ? SINKPROOF_INPUT_SHARED : SINKPROOF_INPUT_EACH;
    return in;
}

size_t sinkproof_trace_inputs(const sinkproof_config *config, sinkproof_trace_point point,
                              size_t layer, sinkproof_input inputs[SINKPROOF_MAX_INPUTS]) {
    size_t n = 0;
    for (; n < SINKPROOF_MAX_INPUTS && rows[point].inputs[n] != NONE; n++)
        inputs[n] = input_from(config, point, layer, rows[point].inputs[n]);
    if (point == TRACE_A9 && !sinkproof_sinks_are_constant(config)) // its sink's logit
        inputs[n++] = input_from(config, point, layer, SHARED(A4_Q));
    return n;
}

point_operation sinkproof_trace_operation(const sinkproof_config *config,
                                          sinkproof_trace_point point) {
    bool linear = rows[point].operation == SINKPROOF_ADD_BIAS && config->dense;
    return linear ? SINKPROOF_LINEAR : rows[point].operation;
}

size_t sinkproof_trace_weights(const sinkproof_config *config, sinkproof_trace_point point,
                               sinkproof_slot weights[SINKPROOF_MAX_WEIGHTS]) {
    size_t n = 0, count, width, cols;
    sinkproof_trace_point product = point - 1; // before a bias; a dense model has no such point
    if (rows[point].operation == SINKPROOF_ADD_BIAS && !model_has_point(config, product))
        weights[n++] = (sinkproof_slot)rows[product].weights[0];
    for (size_t i = 0; i < SINKPROOF_MAX_WEIGHTS && rows[point].weights[i] != NO_SLOT; i++) {
        sinkproof_slot slot = (sinkproof_slot)rows[point].weights[i];
        sinkproof_slot_shape(slot, config, &count, &width, &cols);
        if (count > 0) weights[n++] = slot;
    }
    return n;
}

bool sinkproof_trace_rounding(sinkproof_trace_point point, sinkproof_point *rounding) {
    if (sinkproof_trace_point_is_index(point)) return false;
    *rounding = (sinkproof_point)rows[point].rounding;
    return true;
}

static size_t dimension_size(const sinkproof_config *c, dimension d, size_t n) {
    switch (d) {
#define DIMENSION_CASE(word, length)                                                               \
    case word:                                                                                     \
        return length;
        DIMENSIONS(DIMENSION_CASE)
#undef DIMENSION_CASE
    case END:
        break;
    }
    return 0;
}

size_t sinkproof_trace_shape(const sinkproof_config *config, sinkproof_trace_point point, size_t n,
                             size_t *shape) {
    const dimension *of = rows[point].shape;
    size_t rank = 0;
    for (size_t i = 0; i < 3 && of[i] != END; i++)
        if (of[i] != CHOSEN || !config->dense) shape[rank++] = dimension_size(config, of[i], n);
    return rank;
}

size_t sinkproof_trace_elements(const sinkproof_config *config, sinkproof_trace_point point,
                                size_t n) {
    size_t shape[3], count = 1, rank = sinkproof_trace_shape(config, point, n, shape);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    return count;
}
