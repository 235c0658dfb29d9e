// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every design by name (doc/24-variants.md): the rows of the lecture's tables and three models. A
// member that a row does not set is the first of its kind: softmax of the scores, causal, no
// positions, no star, no gate.
#include "ref/variants/variant.h"

#include <string.h>

#define ROTARY      .places = SINKPROOF_PLACES_ROTARY
#define KEYED       ROTARY, .star = SINKPROOF_STAR_KEY
#define SIM(s)      ROTARY, .similarity = SINKPROOF_SIMILARITY_##s
#define OF(f)       ROTARY, .similarity = SINKPROOF_SIMILARITY_SCORE, .feature = SINKPROOF_FEATURE_##f
#define DIVIDED(z)  .divisor = SINKPROOF_DIVISOR_##z
#define BY(z, by)   ROTARY, .divisor = SINKPROOF_DIVISOR_##z, .divisor_by = by
#define VALUE(v, m) KEYED, .star_value = SINKPROOF_STAR_VALUE_##v, .star_times = m

// clang-format off
static const sinkproof_variant designs[] = {
    // Biases of attention
    {"softmax", "softmax over the keys", "biases", "attn.softmax", ROTARY},
    {"sink-token", "a learned token before the text", "biases", "sink.sink-token", ROTARY, .star = SINKPROOF_STAR_TOKEN},
    {"kv-bias", "a learned key with a learned value, each head its own", "biases", "sink.kv-bias", VALUE(LEARNED, 0)},
    {"kv-bias-shared", "a learned key with a learned value, one for all heads", "biases", "sink.kv-bias", VALUE(LEARNED, 0), .shared_star = true},
    {"k-bias", "a learned key without a value, each head its own", "biases", "sink.key-bias", KEYED},
    {"k-bias-shared", "a learned key without a value, one for all heads", "biases", "sink.key-bias", KEYED, .shared_star = true},
    {"v-bias", "a learned value added to every row, no key", "biases", "sink.value-bias-only", ROTARY, .value_bias = true},
    {"v-bias-shared", "a learned value added to every row, one for all heads", "biases", "sink.value-bias-only", ROTARY, .value_bias = true, .shared_star = true},
    {"off-by-one", "one is added to the denominator", "biases", "sink.softmax1", ROTARY, .star = SINKPROOF_STAR_ZERO},
    {"score-bias", "a learned score, the same in every row: GPT-OSS", "biases", "sink.alpha", ROTARY, .star = SINKPROOF_STAR_SCORE},
    // A learned key with a given value
    {"value-first-1", "a learned key, value (1, 0, ..., 0)", "fixed values", "sink.fixed-value", VALUE(FIRST, 1)},
    {"value-first-5", "a learned key, value 5 (1, 0, ..., 0)", "fixed values", "sink.fixed-value", VALUE(FIRST, 5)},
    {"value-first-20", "a learned key, value 20 (1, 0, ..., 0)", "fixed values", "sink.fixed-value", VALUE(FIRST, 20)},
    {"value-even-1", "a learned key, value (1, ..., 1) / sqrt(d)", "fixed values", "sink.fixed-value", VALUE(EVEN, 1)},
    {"value-even-5", "a learned key, value 5 (1, ..., 1) / sqrt(d)", "fixed values", "sink.fixed-value", VALUE(EVEN, 5)},
    {"value-even-20", "a learned key, value 20 (1, ..., 1) / sqrt(d)", "fixed values", "sink.fixed-value", VALUE(EVEN, 20)},
    // A learned key of few coordinates
    {"key-dims-1", "a learned key with 1 learned coordinate", "low rank", "sink.low-rank-key", KEYED, .star_dims = 1},
    {"key-dims-2", "a learned key with 2 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 2},
    {"key-dims-4", "a learned key with 4 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 4},
    {"key-dims-8", "a learned key with 8 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 8},
    {"key-dims-16", "a learned key with 16 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 16},
    {"key-dims-32", "a learned key with 32 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 32},
    {"key-dims-64", "a learned key with 64 learned coordinates", "low rank", "sink.low-rank-key", KEYED, .star_dims = 64},
    // Divisors
    {"scaled-2", "weights that sum to 2", "normalisers", "norm.scaled", BY(SCALED, 2)},
    {"scaled-0.2", "weights that sum to 0.2", "normalisers", "norm.scaled", BY(SCALED, 0.2)},
    {"scaled-0.1", "weights that sum to 0.1", "normalisers", "norm.scaled", BY(SCALED, 0.1)},
    {"scaled-0.05", "weights that sum to 0.05", "normalisers", "norm.scaled", BY(SCALED, 0.05)},
    {"power-2", "weights whose squares sum to 1", "normalisers", "norm.power", BY(POWER, 2)},
    {"power-3", "weights whose cubes sum to 1", "normalisers", "norm.power", BY(POWER, 3)},
    {"power-0.5", "weights whose square roots sum to 1", "normalisers", "norm.power", BY(POWER, 0.5)},
    // Other similarities
    {"sigmoid", "sigmoid of the score, nothing divides", "similarities", "kernel.sigmoid", SIM(SIGMOID), DIVIDED(ONE)},
    {"sigmoid-norm", "sigmoid of the score over its sum", "similarities", "kernel.sigmoid-norm", SIM(SIGMOID)},
    {"elu", "elu of the score plus one, nothing divides", "similarities", "kernel.elu", SIM(ELU_PLUS_ONE), DIVIDED(ONE)},
    {"elu-norm", "elu of the score plus one, over its sum", "similarities", "kernel.elu-norm", SIM(ELU_PLUS_ONE)},
    {"elu-linear", "elu of query and of key plus one, their product over its sum", "similarities", "kernel.elu-linear", OF(ELU_PLUS_ONE)},
    {"elu-linear-raw", "elu of query and of key plus one, nothing divides", "similarities", "kernel.elu-linear-raw", OF(ELU_PLUS_ONE), DIVIDED(ONE)},
    {"identity", "the score itself, nothing divides", "similarities", "kernel.identity", OF(SELF), DIVIDED(ONE)},
    {"identity-max", "the score over max(|sum|, 1)", "similarities", "kernel.identity-max", OF(SELF), DIVIDED(AT_LEAST_1)},
    {"mlp", "the score of two-layer features, nothing divides", "similarities", "kernel.mlp", OF(MLP), DIVIDED(ONE)},
    {"mlp-max", "the score of two-layer features over max(|sum|, 1)", "similarities", "kernel.mlp-max", OF(MLP), DIVIDED(AT_LEAST_1)},
    // Positions
    {"nope", "softmax, no positions", "positions", "repeat.nope", .places = SINKPROOF_PLACES_NONE},
    {"absolute", "softmax, sines and cosines added to the input", "positions", "place.added", .places = SINKPROOF_PLACES_ABSOLUTE},
    {"learned", "softmax, learned positions added to the input", "positions", "place.added", .places = SINKPROOF_PLACES_LEARNED},
    {"relative", "softmax, a learned score for each bucket of distances", "positions", "repeat.relative", .places = SINKPROOF_PLACES_RELATIVE},
    {"relative-bucket", "softmax, the number of the bucket added to the score", "positions", "repeat.relative", .places = SINKPROOF_PLACES_BUCKET},
    {"alibi", "softmax, scores that fall with the distance", "positions", "repeat.alibi", .places = SINKPROOF_PLACES_ALIBI},
    // Masks
    {"window", "softmax over the last 128 keys", "masks", "mask.window", ROTARY, .seen = SINKPROOF_SEEN_WINDOW, .window = 128},
    {"window-32", "softmax over the last 32 keys", "masks", "mask.window", ROTARY, .seen = SINKPROOF_SEEN_WINDOW, .window = 32},
    {"prefix-5", "softmax, the first 5 tokens seen by all", "masks", "mask.prefix", ROTARY, .seen = SINKPROOF_SEEN_PREFIX, .prefix = 5},
    {"packed", "softmax over the keys of the same document", "masks", "mask.packed", ROTARY, .seen = SINKPROOF_SEEN_PACKED},
    {"first-recent", "softmax over the first 4 keys and the last 512", "masks", "mask.first-recent", ROTARY, .seen = SINKPROOF_SEEN_FIRST_RECENT, .prefix = 4, .window = 512},
    // Models
    {"gpt-oss-window", "GPT-OSS, layers with a window of 128", "models", "sink.alpha", ROTARY, .star = SINKPROOF_STAR_SCORE, .seen = SINKPROOF_SEEN_WINDOW, .window = 128},
    {"mimo-v2-flash", "MiMo-V2-Flash: a learned score where the window of 128 is, none elsewhere", "models", "sink.hybrid", ROTARY, .star = SINKPROOF_STAR_SCORE, .seen = SINKPROOF_SEEN_WINDOW, .window = 128},
    {"gated", "Qwen3-Next: softmax, and a gate on each coordinate", "models", "sink.gated", ROTARY, .gate = SINKPROOF_GATE_ELEMENT},
    {"gated-head", "softmax, and one gate a head", "models", "sink.gated", ROTARY, .gate = SINKPROOF_GATE_HEAD},
};
// clang-format on

const char *sinkproof_choice_kinds(sinkproof_choice choice) {
    static const char *const kinds[SINKPROOF_CHOICES] = {
        [SINKPROOF_CHOICE_FEATURE] = "self elu mlp",
        [SINKPROOF_CHOICE_SIMILARITY] = "exp sigmoid elu score",
        [SINKPROOF_CHOICE_DIVISOR] = "sum one scaled power at-least-1",
        [SINKPROOF_CHOICE_STAR] = "none token key score zero",
        [SINKPROOF_CHOICE_STAR_VALUE] = "none learned first even",
        [SINKPROOF_CHOICE_PLACES] = "none absolute learned relative bucket alibi rotary",
        [SINKPROOF_CHOICE_SEEN] = "causal window prefix packed first-recent",
        [SINKPROOF_CHOICE_GATE] = "none head element",
    };
    return kinds[choice];
}

const sinkproof_variant *sinkproof_variant_at(size_t k) {
    return k < sizeof designs / sizeof designs[0] ? &designs[k] : NULL;
}

const sinkproof_variant *sinkproof_variant_find(const char *name) {
    for (size_t k = 0; k < sizeof designs / sizeof designs[0]; k++)
        if (strcmp(designs[k].name, name) == 0) return &designs[k];
    return NULL;
}
