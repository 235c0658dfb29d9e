// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The manifest of calls in files: each call with its sizes and constants, the layout and dtype of
// every array, and what its words mean.
#include "audit/plugin/drill.h"
#include "audit/version.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- a case ----------------------------------------------------------------------------------

// The outputs that a call must have, or those that it may have besides.
static json_t *output_shapes_json(const stage_case *c, const call_arrays *a, bool offered) {
    json_t *outputs = json_object();
    size_t must = c->stage->n_to - stage_offered(c->stage);
    for (size_t i = offered ? must : 0; i < (offered ? c->stage->n_to : must); i++) {
        size_t sizes[SINKPROOF_RANK];
        char name[ARRAY_NAME];
        size_t rank = array_shape(&a->config, c->stage->to[i], a->n, sizes);
        json_t *shape = json_array();
        for (size_t d = 0; d < rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)sizes[d]));
        json_object_set_new(outputs, array_name(c->stage->to[i], name), shape);
    }
    return outputs;
}

json_t *manifest_case(size_t number, const stage_case *c, const call_arrays *a) {
    const sinkproof_config *f = &a->config;
    char text[CASE_TEXT], in[48], out[48];
    case_print(c, text);
    snprintf(in, sizeof in, "%05zu.safetensors", number);
    snprintf(out, sizeof out, "%05zu.out.safetensors", number);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o*, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, "
        "s:f, "
        "s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:b}",
        "stage", c->stage->name, "case", text, "inputs", in, "outputs", out, "expected",
        output_shapes_json(c, a, false), "offered",
        stage_offered(c->stage) > 0 ? output_shapes_json(c, a, true) : NULL, "n", (json_int_t)a->n,
        "chunk", (json_int_t)c->chunk, "window", (json_int_t)c->window, "heads",
        (json_int_t)f->n_heads, "kv_heads", (json_int_t)f->n_kv_heads, "head_dim",
        (json_int_t)f->head_dim, "scale", 1 / sqrt((double)f->head_dim), "hidden",
        (json_int_t)f->hidden, "inter", (json_int_t)f->inter, "experts", (json_int_t)f->n_experts,
        "chosen", (json_int_t)f->n_chosen, "rms_eps", f->rms_eps, "swiglu_alpha", f->swiglu.alpha,
        "swiglu_limit", f->swiglu.limit, "rope_theta", f->rotation.theta, "yarn_factor",
        f->rotation.factor, "yarn_beta_fast", f->rotation.beta_fast, "yarn_beta_slow",
        f->rotation.beta_slow, "yarn_original_context", (json_int_t)f->rotation.original_context,
        "yarn_truncate", (int)f->rotation.truncate);
}

// ---- layouts ---------------------------------------------------------------------------------

// Sizes of which no two are equal, nor a product or a sum of two that some shape has.
static const stage_case distinct = {.n = 101,
                                    .heads = 3,
                                    .kv = 5,
                                    .dim = 7,
                                    .hidden = 11,
                                    .inter = 13,
                                    .experts = 17,
                                    .chosen = 19,
                                    .vocab = 23};

static const char *word_of_size(size_t size) {
    static const struct {
        size_t size;
        const char *word;
    } words[] = {{101, "n"},
                 {102, "n + 1"},
                 {3, "heads"},
                 {5, "kv_heads"},
                 {7, "head_dim"},
                 {21, "heads head_dim"},
                 {35, "kv_heads head_dim"},
                 {11, "hidden"},
                 {13, "inter"},
                 {26, "2 inter"},
                 {17, "experts"},
                 {19, "chosen"},
                 {23, "vocab"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].size == size) return words[i].word;
    return "?";
}

// {"dtype": "BF16", "layout": "[n, heads, head_dim]"}
static json_t *array_json(sinkproof_dtype dtype, size_t rank, const size_t *shape) {
    char text[128];
    size_t used = 0;
    for (size_t d = 0; d < rank && used < sizeof text; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", d == 0 ? "[" : ", ",
                                 word_of_size(shape[d]));
    if (used < sizeof text) snprintf(text + used, sizeof text - used, "]");
    return json_pack("{s:s, s:s}", "dtype", sinkproof_dtype_name(dtype), "layout", text);
}

static void add_array(json_t *arrays, const sinkproof_config *config,
                      const sinkproof_policy *policy, array_id id) {
    size_t shape[SINKPROOF_RANK];
    char name[ARRAY_NAME];
    size_t rank = array_shape(config, id, distinct.n, shape);
    json_object_set_new(arrays, array_name(id, name),
                        array_json(array_dtype(policy, id), rank, shape));
}

static json_t *stage_arrays_json(const stage_row *s, const sinkproof_policy *policy) {
    json_t *inputs = json_object(), *outputs = json_object();
    sinkproof_config config;
    sinkproof_config_named("tiny", &config);
    stage_case c = distinct;
    c.stage = s;
    config = case_config(&c, &config);
    for (size_t i = 0; i < s->n_from; i++) add_array(inputs, &config, policy, s->from[i]);
    for (size_t i = 0; i < s->n_weights; i++) {
        size_t shape[SINKPROOF_RANK], rank = weight_shape(&config, s->weights[i], shape);
        json_object_set_new(inputs, sinkproof_slot_name(s->weights[i]),
                            array_json(weight_dtype(policy, s), rank, shape));
    }
    for (size_t i = 0; i < s->n_to; i++) add_array(outputs, &config, policy, s->to[i]);
    return json_pack("{s:o, s:o}", "inputs", inputs, "outputs", outputs);
}

// ---- words -----------------------------------------------------------------------------------

// What a word of a case means, for the stages that know it.
static const struct {
    unsigned known_to;
    const char *word, *meaning;
} meanings[] = {
    {~0u, "n", "rows; row r is at position r"},
    {~0u, "expected", "the shapes of the outputs, in any of BF16, F16, F32 and F64; M3 in I32"},
    {STAGE_KNOWS_SINKS, "offered",
     "outputs that may be left out: A9.lse, the natural log-sum-exp of a row's scores, with the "
     "sink "
     "or without it, as the metadata `lse` of the outputs say (with-sink, without-sink), or else "
     "as it "
     "fits"},
    {STAGE_KNOWS_PASSES, "chunk",
     "rows that come at a time, each time with all earlier keys in the cache; 0: all rows at once"},
    {STAGE_KNOWS_KEYS, "window",
     "keys that a row sees, the key of its own position included; 0: all keys up to that one"},
    {STAGE_KNOWS_HEADS, "kv_heads",
     "heads of keys and values; query head h uses number h / (heads / kv_heads), rounded down"},
    {STAGE_KNOWS_KEYS, "scale",
     "1 / sqrt(head_dim), the factor of a query times a key; A6 has it already"},
    {STAGE_KNOWS_SINKS, "sinks",
     "one logit for each query head, a natural logarithm beside the scaled scores: the scale is "
     "not applied to it; -inf: no sink"},
    {STAGE_KNOWS_KEYS, "n + 1", "a column for each key, the sink's column last"},
    {STAGE_KNOWS_INTER, "2 inter", "gate and up in turn: 0, 2, 4 ... are gates"},
    {STAGE_KNOWS_LOSS, "d...", "the gradient of a loss with respect to what follows the d"},
    {STAGE_KNOWS_LOSS, "dA9.lse",
     "with respect to the log-sum-exp of each row, 0 in the calls whose loss does not read it. The "
     "metadata `lse` of the outputs say which the engine's is, as of A9.lse"},
    {STAGE_KNOWS_LOSS, "A11",
     "what a forward pass in binary64 gives, rounded to its dtype; so is A9.lse, with the sink. An "
     "engine may read its own instead"},
};

static json_t *meanings_json(unsigned knows) {
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if ((meanings[i].known_to & knows) != 0)
            json_object_set_new(all, meanings[i].word, json_string(meanings[i].meaning));
    return all;
}

json_t *manifest_whole(json_t *cases, const case_plan *plan, const sinkproof_policy *policy,
                       const char *model) {
    json_t *stages = json_object();
    unsigned knows = 1u << 31; // what every stage knows
    for (size_t i = 0; i < plan->count; i++) {
        const stage_row *s = plan->cases[i].stage;
        knows |= s->knows;
        if (json_object_get(stages, s->name) == NULL)
            json_object_set_new(stages, s->name, stage_arrays_json(s, policy));
    }
    return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:O}", "format", "sinkproof-drills-1",
                     "version", SINKPROOF_VERSION, "policy", policy->name, "model", model,
                     "meaning", meanings_json(knows), "stages", stages, "cases", cases);
}
