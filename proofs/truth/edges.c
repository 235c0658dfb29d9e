// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The edges of the lattice (lattice.edges) as data, each with a function that makes its condition
// hold.
#include "proofs/truth/lattice.h"

#include <math.h>
#include <string.h>

enum { HIDDEN = SINKPROOF_EDGE_HIDDEN, DIM = SINKPROOF_EDGE_DIM };

typedef edge_side side;

static void zero_doubles(double *x, size_t n) {
    memset(x, 0, n * sizeof *x);
}
static void set_both_sides(side *from, side *to, void (*set)(side *)) {
    set(from);
    set(to);
}
static void remove_places(side *s) {
    s->variant.places = SINKPROOF_PLACES_NONE;
}
// Queries, keys and values of positive numbers: scores and their sums are positive.
static void set_positive_inputs(side *s) {
    remove_places(s);
    for (size_t c = 0; c < sizeof s->head.x_nc / sizeof(double); c++)
        s->head.x_nc[c] = fabs(s->head.x_nc[c]);
    for (size_t w = 0; w < HIDDEN * DIM; w++) {
        s->head.wq_cd[w] = fabs(s->head.wq_cd[w]);
        s->head.wk_cd[w] = fabs(s->head.wk_cd[w]);
    }
}

//> lattice.edges
static void zero_sink_logit(side *from, side *to) {
    (void)to;
    from->head.logit = 0;
}
static void remove_sink_logit(side *from, side *to) {
    (void)to;
    from->head.logit = -INFINITY;
}
static void zero_star_key(side *from, side *to) {
    (void)to;
    zero_doubles(from->head.key_d, DIM);
}
static void zero_star_value(side *from, side *to) {
    (void)to;
    zero_doubles(from->head.value_d, DIM);
}
static void zero_star_key_and_value(side *from, side *to) {
    zero_star_key(from, to);
    zero_star_value(from, to);
}
static void shorten_star_key(side *from, side *to) {
    zero_doubles(to->head.key_d + from->variant.star_dims, DIM - from->variant.star_dims);
}
static void zero_star_factor(side *from, side *to) {
    (void)to;
    from->variant.star_times = 0;
}
static void set_first_star_value(side *from, side *to) {
    zero_doubles(to->head.value_d, DIM);
    to->head.value_d[0] = from->variant.star_times;
}
static void set_even_star_value(side *from, side *to) { // sqrt(d) is 4
    for (size_t d = 0; d < DIM; d++) to->head.value_d[d] = from->variant.star_times / 4;
}
static void set_a_to_one(side *from, side *to) {
    (void)to;
    from->variant.divisor_by = 1;
}
static void scale_values_by_a(side *from, side *to) {
    for (size_t w = 0; w < HIDDEN * DIM; w++) to->head.wv_cd[w] *= from->variant.divisor_by;
}
static void scale_queries_by_p(side *from, side *to) {
    for (size_t w = 0; w < HIDDEN * DIM; w++) to->head.wq_cd[w] *= from->variant.divisor_by;
}
static void zero_slope(side *from, side *to) {
    (void)to;
    from->head.slope = 0;
}
static void set_equal_buckets(side *from, side *to) {
    (void)to;
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) from->head.bucket_b[b] = 1.25;
}
static void number_buckets(side *from, side *to) {
    (void)to;
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) from->head.bucket_b[b] = (double)b;
}
static void set_alibi_buckets(side *from, side *to) {
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++)
        from->head.bucket_b[b] = -to->head.slope * (double)b;
}
static void zero_places(side *from, side *to) {
    (void)to;
    zero_doubles(from->head.place_nc, sizeof from->head.place_nc / sizeof(double));
}
static void widen_window(side *from, side *to) {
    (void)to;
    from->variant.window = SINKPROOF_EDGE_N;
}
static void set_prefix_of_one(side *from, side *to) {
    (void)to;
    from->variant.prefix = 1;
}
static void set_empty_prefix(side *from, side *to) {
    (void)to;
    from->variant.prefix = 0;
}
static void set_one_document(side *from, side *to) {
    (void)to;
    memset(from->head.document_n, 0, sizeof from->head.document_n);
}
static void set_equal_columns(side *from, side *to) {
    for (size_t c = 0; c < HIDDEN; c++) {
        for (size_t d = 0; d < DIM; d++) from->head.gate_cd[c * DIM + d] = to->head.gate_cd[c];
    }
}
static void open_gate_half(side *from, side *to) {
    zero_doubles(from->head.gate_cd, HIDDEN * DIM);
    to->variant.divisor_by = 0.5;
}
static void set_negative_scores(side *from, side *to) {
    set_both_sides(from, to, set_positive_inputs);
    for (size_t w = 0; w < HIDDEN * DIM; w++)
        from->head.wk_cd[w] = to->head.wk_cd[w] = -from->head.wk_cd[w];
}
static void set_small_sums(side *from, side *to) {
    for (size_t w = 0; w < HIDDEN * DIM; w++)
        from->head.wq_cd[w] = to->head.wq_cd[w] = from->head.wq_cd[w] / 1048576;
}
static void set_identity_features(side *from, side *to) {
    set_both_sides(from, to, set_positive_inputs);
    zero_doubles(from->head.mlp_1_dd, DIM * DIM);
    zero_doubles(from->head.mlp_2_dd, DIM * DIM);
    for (size_t d = 0; d < DIM; d++)
        from->head.mlp_1_dd[d * DIM + d] = from->head.mlp_2_dd[d * DIM + d] = 1;
}
static void keep_one_key(side *from, side *to) {
    from->variant.seen = to->variant.seen = SINKPROOF_SEEN_WINDOW;
    from->variant.window = to->variant.window = 1;
}
static void project_star(side *from, side *to) {
    zero_doubles(to->head.key_d, DIM);
    zero_doubles(to->head.value_d, DIM);
    for (size_t c = 0; c < HIDDEN; c++) {
        for (size_t d = 0; d < DIM; d++) {
            to->head.key_d[d] += from->head.star_c[c] * to->head.wk_cd[c * DIM + d];
            to->head.value_d[d] += from->head.star_c[c] * to->head.wv_cd[c * DIM + d];
        }
    }
}
static void project_star_without_places(side *from, side *to) {
    project_star(from, to);
    set_both_sides(from, to, remove_places);
}
static void shift_scores_by_b(side *from, side *to) {
    remove_places(from);
    to->variant.places = SINKPROOF_PLACES_RELATIVE;
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) to->head.bucket_b[b] = -from->head.logit;
}
//< lattice.edges

// ---- false edges

static void shift_scores(side *from, side *to) {
    remove_places(to);
    from->variant.places = SINKPROOF_PLACES_RELATIVE;
    set_equal_buckets(from, to);
}
static void negate_buckets(side *from, side *to) {
    (void)from;
    for (size_t b = 0; b < SINKPROOF_BUCKETS; b++) to->head.bucket_b[b] = -(double)b;
}
static void scale_sink_logit(side *from, side *to) { // b is inside the scale
    to->head.logit = from->head.logit / 4;
}

// clang-format off
#define HOLDS(from, to, when, id, set) {from, to, when, id, true, 0, false, set}
#define VALUES(from, to, when, id, set) {from, to, when, id, true, 0, true, set}
#define FALSE(from, to, when, id, set) {from, to, when, id, false, 0, true, set}

static const sinkproof_edge edges[] = {
    HOLDS("score-bias", "off-by-one", "b = 0", "sink.softmax1", zero_sink_logit),
    HOLDS("score-bias", "softmax", "b = -inf", "sink.limit", remove_sink_logit),
    HOLDS("score-bias", "off-by-one", "every score less b", "sink.shifted-softmax1", shift_scores_by_b),
    HOLDS("k-bias", "off-by-one", "k* = 0", "sink.key-bias", zero_star_key),
    HOLDS("kv-bias", "k-bias", "v* = 0", "sink.kv-bias", zero_star_value),
    HOLDS("kv-bias", "off-by-one", "k* = 0 and v* = 0", "sink.kv-bias", zero_star_key_and_value),
    HOLDS("key-dims-4", "k-bias", "k* is 0 beyond its 4 coordinates", "sink.low-rank-key", shorten_star_key),
    HOLDS("key-dims-16", "k-bias", "a head has 16 coordinates", "sink.low-rank-key", NULL),
    HOLDS("value-first-5", "k-bias", "m = 0", "sink.fixed-value", zero_star_factor),
    HOLDS("value-even-5", "k-bias", "m = 0", "sink.fixed-value", zero_star_factor),
    HOLDS("value-first-5", "kv-bias", "v* = m (1, 0, ..., 0)", "sink.fixed-value", set_first_star_value),
    HOLDS("value-even-5", "kv-bias", "v* = m (1, ..., 1) / sqrt(d)", "sink.fixed-value", set_even_star_value),
    HOLDS("kv-bias-shared", "kv-bias", "every head has the same k* and v*", "sink.kv-bias", NULL),
    HOLDS("v-bias", "softmax", "v* = 0", "sink.value-bias-only", zero_star_value),
    HOLDS("sink-token", "kv-bias", "no positions, k* = x* W_K, v* = x* W_V", "sink.sink-token", project_star_without_places),
    HOLDS("scaled-2", "softmax", "a = 1", "lattice.edges", set_a_to_one),
    VALUES("scaled-2", "softmax", "W_V becomes a W_V", "norm.scaled", scale_values_by_a),
    HOLDS("power-2", "softmax", "p = 1", "lattice.edges", set_a_to_one),
    {"power-2", "softmax", "weights to the power p, W_Q becomes p W_Q", "norm.power", true, 2, false, scale_queries_by_p},
    {"power-3", "softmax", "weights to the power p, W_Q becomes p W_Q", "norm.power", true, 3, false, scale_queries_by_p},
    HOLDS("alibi", "nope", "slope 0", "lattice.edges", zero_slope),
    HOLDS("relative", "nope", "all buckets have one score", "lattice.edges", set_equal_buckets),
    HOLDS("relative", "relative-bucket", "the score of bucket g is g", "lattice.edges", number_buckets),
    HOLDS("relative", "alibi", "buckets of one distance, score -slope g", "lattice.edges", set_alibi_buckets),
    HOLDS("learned", "nope", "every p_i = 0", "lattice.edges", zero_places),
    HOLDS("window", "softmax", "no row is longer than the window", "lattice.edges", widen_window),
    HOLDS("gpt-oss-window", "score-bias", "no row is longer than the window", "lattice.edges", widen_window),
    HOLDS("mimo-v2-flash", "gpt-oss-window", "always, in its layers with a window", "sink.hybrid", NULL),
    HOLDS("prefix-5", "softmax", "a prefix of one token", "lattice.edges", set_prefix_of_one),
    HOLDS("packed", "softmax", "one document", "lattice.edges", set_one_document),
    HOLDS("first-recent", "window", "no first keys are kept", "lattice.edges", set_empty_prefix),
    HOLDS("first-recent", "softmax", "no row is longer than the window", "lattice.edges", widen_window),
    HOLDS("gated", "gated-head", "all columns of G are g", "lattice.edges", set_equal_columns),
    VALUES("gated", "scaled-2", "G = 0, a = 1/2", "lattice.edges", open_gate_half),
    HOLDS("elu-norm", "softmax", "no score is above 0", "lattice.edges", set_negative_scores),
    HOLDS("identity-max", "identity", "|sum of scores| <= 1", "lattice.edges", set_small_sums),
    HOLDS("mlp-max", "mlp", "|sum of scores| <= 1", "lattice.edges", set_small_sums),
    HOLDS("mlp", "identity", "W1 = W2 = 1, q and k not negative", "lattice.edges", set_identity_features),
    HOLDS("off-by-one", "sigmoid", "a row of one key", "lattice.edges", keep_one_key),

    FALSE("off-by-one", "off-by-one", "it does not change when all scores are shifted", "sink.stable", shift_scores),
    FALSE("k-bias", "softmax", "a key bias of zero is none", "sink.key-bias", zero_star_key),
    FALSE("v-bias", "kv-bias", "a value bias is a sink", "sink.value-bias-only", NULL),
    FALSE("scaled-2", "softmax", "a scaled divisor is a temperature", "norm.scaled", scale_queries_by_p),
    FALSE("power-2", "softmax", "a power is a temperature", "norm.power", scale_queries_by_p),
    FALSE("sigmoid-norm", "softmax", "normalised sigmoids are softmax", "kernel.sigmoid-norm", NULL),
    FALSE("sink-token", "kv-bias", "k* = x* W_K and v* = x* W_V, with rotary positions too", "sink.sink-token", project_star),
    FALSE("relative-bucket", "relative", "the published code's bias falls with the distance", "repeat.relative", negate_buckets),
    FALSE("first-recent", "window", "a window alone keeps the first keys", "mask.first-recent", NULL),
    FALSE("packed", "softmax", "documents packed into one row do not meet", "mask.packed", NULL),
    FALSE("gated", "gated-head", "a gate a head is a gate a coordinate", "sink.gated", NULL),
    FALSE("score-bias", "score-bias", "b inside of the scale is b outside", "sink.scale-inside", scale_sink_logit),
    FALSE("elu-linear", "elu-norm", "elu of the parts is elu of the score", "kernel.elu-linear", NULL),
    FALSE("identity-max", "identity", "max(|sum|, 1) divides nothing", "norm.max-one", NULL),
};
// clang-format on

const sinkproof_edge *sinkproof_edge_at(size_t k) {
    return k < sizeof edges / sizeof edges[0] ? &edges[k] : NULL;
}
