// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Known configurations, their conditions, and writing config.json.
#include "base/words.h"
#include "model/bytes.h"
#include "model/container.h"
#include "model/fields.h"
#include "model/planted.h"
#include "model/sinks.h"

#include <math.h>
#include <string.h>

// No two widths are equal (96, 128, 256, 160, 32), there are 5 heads for each of 2 key heads, and
// nothing is square: a transposed, swapped or wrongly shared view cannot go unnoticed.
static void set_tiny_sizes(sinkproof_config *config) {
    config->n_layers = 4;
    config->n_experts = 7;
    config->n_chosen = 3;
    config->vocab = 211;
    config->hidden = 96;
    config->inter = 128;
    config->n_heads = 10;
    config->n_kv_heads = 2;
    config->head_dim = 16;
    config->window = 8;
}

// One perceptron for all tokens, full attention, no sink.
static void set_dense(sinkproof_config *config) {
    size_t none;
    config->dense = true;
    config->n_experts = config->n_chosen = 1;
    if (sink_kind_find("none", &none)) config->sink = none;
    memset(config->sliding, 0, sizeof config->sliding);
}

void config_make_gpt2(sinkproof_config *config) {
    config->architecture = SINKPROOF_GPT2;
    config->norm = SINKPROOF_LAYERNORM;
    config->activation = SINKPROOF_GELU;
    config->rotation.kind = SINKPROOF_NO_ROTATION;
    config->tied = true;
    config->n_kv_heads = config->n_heads;
    set_dense(config);
}

void config_make_llama(sinkproof_config *config) {
    config->architecture = SINKPROOF_LLAMA;
    config->rotation.kind = SINKPROOF_PLAIN_ROTATION;
    config->rotation.factor = 1;
    config->swiglu = (sinkproof_swiglu_numbers){.alpha = 1, .limit = INFINITY, .offset = 0};
    config->unbiased = (sinkproof_unbiased){true, true, true};
    config->window = config->max_context;
    set_dense(config);
}

// The one of 124 million parameters.
static void set_gpt2_sizes(sinkproof_config *config) {
    config->n_layers = config->n_heads = 12;
    config->vocab = 50257;
    config->hidden = 768;
    config->inter = 3072;
    config->head_dim = 64;
    config->max_context = 1024;
}

// An eighth of the width of gpt2; all its layers.
static void size_planted(sinkproof_config *config) {
    config->n_layers = 12;
    config->vocab = 512;
    config->inter = 4 * config->hidden;
    config->max_context = 128;
}

bool sinkproof_config_named(const char *name, sinkproof_config *config) {
    fields_set_released(config);
    if (strcmp(name, "gpt-oss-20b") == 0) return true;
    if (strcmp(name, "gpt-oss-120b") == 0) {
        config->n_layers = 36;
        config->n_experts = 128;
        return true;
    }
    set_tiny_sizes(config);
    if (strcmp(name, "tiny") == 0) return true;
    config->max_context = 64;
    config->head_norms = strcmp(name, "tiny-qwen3") == 0;
    if (config->head_norms || strcmp(name, "tiny-llama") == 0) {
        config->n_heads = 12; // transformers takes none that does not divide the width
        config->rotation.theta = 10000;
        config->tied = true;
        config_make_llama(config);
        return true;
    }
    config->n_heads = 6;
    if (strcmp(name, "gpt2") == 0) set_gpt2_sizes(config);
    bool planted = planted_find(name) != NULL;
    if (planted) size_planted(config);
    config_make_gpt2(config);
    return planted || strcmp(name, "gpt2") == 0 || strcmp(name, "tiny-gpt2") == 0;
}

// Whether a * b * c elements of 8 bytes fit a signed 64-bit offset.
static bool product_fits_offset(size_t a, size_t b, size_t c) {
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) &&
           !__builtin_mul_overflow(product, c, &product) && product < (size_t)1 << 58;
}

// Checks the relations between sizes, and that their products fit.
static bool check_relations(const sinkproof_config *c, const char *name, sinkproof_error *error) {
    if (c->n_layers > SINKPROOF_MAX_LAYERS)
        return sinkproof_fail(error, "%s: expected at most %d layers, found %zu", name,
                              SINKPROOF_MAX_LAYERS, c->n_layers);
    if (c->n_chosen > c->n_experts)
        return sinkproof_fail(error, "%s: expected at most %s per token, found %zu", name,
                              sinkproof_counted(c->n_experts, "expert").text, c->n_chosen);
    if (c->n_heads % c->n_kv_heads != 0)
        return sinkproof_fail(error, "%s: expected num_key_value_heads to divide %s, found %zu",
                              name, sinkproof_counted(c->n_heads, "head").text, c->n_kv_heads);
    if (c->rotation.kind == SINKPROOF_NO_ROTATION && c->n_heads * c->head_dim != c->hidden)
        return sinkproof_fail(error, "%s: expected %s to divide the width %zu", name,
                              sinkproof_counted(c->n_heads, "head").text, c->hidden);
    if (c->head_dim % 2 != 0)
        return sinkproof_fail(error, "%s: expected an even head_dim, found %zu", name, c->head_dim);
    if (c->n_heads * c->head_dim > (size_t)1 << 30 || 2 * c->inter > (size_t)1 << 30)
        return sinkproof_fail(error,
                              "%s: expected at most 2^30 numbers in a row of queries (heads times "
                              "head_dim) and of gates and ups (twice intermediate_size), found %zu "
                              "and %zu",
                              name, c->n_heads * c->head_dim, 2 * c->inter);
    if (!product_fits_offset(c->n_experts, 2 * c->inter, c->hidden) ||
        !product_fits_offset(c->vocab, c->hidden, 1) ||
        !product_fits_offset(c->n_experts, c->hidden, 1) ||
        !product_fits_offset(c->n_heads, c->head_dim, c->hidden))
        return sinkproof_fail(error,
                              "%s: expected weights that fit in memory's address range, "
                              "found dimensions whose product does not",
                              name);
    return true;
}

// Checks the relations between real numbers.
static bool check_yarn(const sinkproof_config *c, const char *name, sinkproof_error *error) {
    if (!(c->rotation.factor >= 1)) // engines differ on the concentration of a smaller one
        return sinkproof_fail(error, "%s: expected a YaRN factor of 1 or more, found %g", name,
                              c->rotation.factor);
    if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION &&
        !(c->rotation.beta_fast > c->rotation.beta_slow))
        return sinkproof_fail(error,
                              "%s: expected high_freq_factor above low_freq_factor %g, found %g",
                              name, c->rotation.beta_slow, c->rotation.beta_fast);
    if (!(c->rotation.beta_fast > c->rotation.beta_slow))
        return sinkproof_fail(error,
                              "%s: expected YaRN's fast beta above the slow one %g, found %g", name,
                              c->rotation.beta_slow, c->rotation.beta_fast);
    return true;
}

bool sinkproof_config_check(const sinkproof_config *c, const char *name, sinkproof_error *error) {
    return fields_check(c, name, FIELD_SIZE, error) && check_relations(c, name, error) &&
           fields_check(c, name, FIELD_REAL, error) && check_yarn(c, name, error);
}

json_t *sinkproof_config_make_value(const sinkproof_field *field, const sinkproof_config *config) {
    double value = sinkproof_field_value(field, config);
    if (field->type == FIELD_SIZE) return json_integer((json_int_t)value);
    return field->type == FIELD_BOOL ? json_boolean(value != 0) : json_real(value);
}

json_t *config_make_keys(const sinkproof_config *config, const config_key *keys, json_t *object) {
    for (; keys->key != NULL; keys++)
        json_object_set_new(
            object, keys->key,
            sinkproof_config_make_value(sinkproof_field_find(keys->offset), config));
    return object;
}

static bool write_object(const char *path, json_t *object, sinkproof_error *error) {
    sinkproof_output output;
    bool good = sinkproof_output_open(&output, path, error);
    if (good) {
        // 17 significant digits preserve every binary64 number
        json_dumpf(object, output.stream, JSON_INDENT(2) | JSON_SORT_KEYS);
        fputc('\n', output.stream);
        good = sinkproof_output_finish(&output, error);
    }
    json_decref(object);
    return good;
}

bool config_write(const char *path, const sinkproof_config *config,
                  const sinkproof_container *container, bool mxfp4, sinkproof_error *error) {
    json_t *object = container->make_config(config, mxfp4, path, error);
    return object != NULL && write_object(path, object, error);
}
