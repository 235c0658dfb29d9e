// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The counter-based generator: an element is a function of the seed, its stream and its index. And
// the container "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]" of the generated models.
#include "model/synthetic.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "model/container.h"
#include "model/mxfp4.h"
#include "model/sinks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t matrix_key(const sinkproof_matrix *matrix) {
    return sinkproof_mix(sinkproof_mix(matrix->synthetic->seed + sinkproof_golden) +
                         matrix->stream * sinkproof_golden);
}

static const element_recipe *matrix_recipe(const sinkproof_matrix *matrix) {
    return &matrix->synthetic->recipes[matrix->stream % STREAM_SLOTS];
}

// 2^e as binary32, for -126 <= e <= 127.
static float power_of_two(int e) {
    uint32_t bits = (uint32_t)(e + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Each element has 32 random bits. The integer is below 2^24, hence exact in binary32; clearing the
// lower half of its bits leaves eight significant bits; the power of two is exact.
static double recipe_element(const element_recipe *recipe, float unit, uint32_t random) {
    int32_t low = (int32_t)(random & 65535), high = (int32_t)(random >> 16);
    int32_t t = low - 65535 + (recipe->uniform ? low : high);
    float exact = (float)(recipe->offset + recipe->gain * t);
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&exact, &bits, sizeof exact);
    return exact * unit;
}

// Two elements from each hash; element c of row r has the index r cols + c.
static void draw_bf16_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    const element_recipe *recipe = matrix_recipe(matrix);
    const float unit = power_of_two(recipe->exponent);
    const uint64_t key = matrix_key(matrix);
    uint64_t i = (uint64_t)r * matrix->cols, end = i + matrix->cols;
    if (i & 1)
        *out_c++ = recipe_element(
            recipe, unit, (uint32_t)(sinkproof_mix(key + (i++ >> 1) * sinkproof_golden) >> 32));
    for (; i + 2 <= end; i += 2) {
        uint64_t random = sinkproof_mix(key + (i >> 1) * sinkproof_golden);
        *out_c++ = recipe_element(recipe, unit, (uint32_t)random);
        *out_c++ = recipe_element(recipe, unit, (uint32_t)(random >> 32));
    }
    if (i < end)
        *out_c = recipe_element(recipe, unit,
                                (uint32_t)sinkproof_mix(key + (i >> 1) * sinkproof_golden));
}

// Two hashes give the 32 codes of a block.
static void block_codes(uint64_t key, uint64_t block, uint8_t *codes) {
    for (unsigned half = 0; half < 2; half++) {
        uint64_t random = sinkproof_mix(key + (2 * block + half) * sinkproof_golden);
        if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
            memcpy(codes, &random, 8);
        else
            for (unsigned b = 0; b < 8; b++) codes[b] = (uint8_t)(random >> 8 * b);
        codes += 8;
    }
}

// 16 bits of a hash from a separate stream, shared by four blocks, give the scale.
static uint8_t block_scale(const element_recipe *recipe, uint64_t key, uint64_t block) {
    unsigned random =
        (unsigned)(sinkproof_mix(~key + (block >> 2) * sinkproof_golden) >> 16 * (block & 3)) &
        65535;
    int down = __builtin_ctz(random >> 8 | 128), up = (int)(random & 255) < recipe->boost;
    return (uint8_t)(recipe->scale - down + up);
}

void synthetic_codes(const sinkproof_matrix *matrix, size_t r, uint8_t *codes, uint8_t *scales) {
    size_t blocks = matrix->cols / SINKPROOF_MXFP4_BLOCK;
    uint64_t key = matrix_key(matrix), first = (uint64_t)r * blocks;
    for (size_t b = 0; b < blocks; b++) {
        scales[b] = block_scale(matrix_recipe(matrix), key, first + b);
        if (codes != NULL) block_codes(key, first + b, codes + b * SINKPROOF_MXFP4_BYTES);
    }
}

static void draw_mxfp4_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    size_t blocks = matrix->cols / SINKPROOF_MXFP4_BLOCK;
    uint64_t key = matrix_key(matrix), first = (uint64_t)r * blocks;
    for (size_t b = 0; b < blocks; b++) {
        uint8_t codes[SINKPROOF_MXFP4_BYTES];
        uint8_t scale = block_scale(matrix_recipe(matrix), key, first + b);
        block_codes(key, first + b, codes);
        sinkproof_mxfp4_decode(codes, &scale, 1, out_c + b * SINKPROOF_MXFP4_BLOCK);
    }
}

// No planted model has experts: the stream holds only slot and layer.
static sinkproof_slot matrix_slot(const sinkproof_matrix *matrix) {
    unsigned number = matrix->stream % STREAM_SLOTS;
    int slot = 0;
    while (slot_stream((sinkproof_slot)slot) != number) slot++;
    return (sinkproof_slot)slot;
}

void synthetic_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    if (matrix->dtype == SINKPROOF_DTYPE_MXFP4)
        draw_mxfp4_row(matrix, r, out_c);
    else
        draw_bf16_row(matrix, r, out_c);
    const planted_model *planted = matrix->synthetic->planted;
    if (planted == NULL) return;
    size_t layer = matrix->stream >> STREAM_LAYER;
    planted_row_write(planted, layer, matrix_slot(matrix), r, matrix->cols, out_c);
}

sinkproof_matrix synthetic_matrix(const synthetic_model *synthetic, const sinkproof_config *config,
                                  size_t l, sinkproof_slot slot, const char *name) {
    sinkproof_matrix matrix = {
        .dtype = sinkproof_slot_is_expert_matrix(slot, config) ? SINKPROOF_DTYPE_MXFP4
                                                               : SINKPROOF_DTYPE_BF16,
        .col_stride = 1,
        .synthetic = synthetic,
        .stream = slot_stream(slot) | (uint64_t)l << STREAM_LAYER,
        .name = name,
    };
    sinkproof_slot_shape(slot, config, &matrix.count, &matrix.rows, &matrix.cols);
    matrix.row_stride = matrix.cols;
    matrix.stack_stride = matrix.rows * matrix.cols;
    return matrix;
}

static const char prefix[] = "synthetic:";

// The data of a synthetic model: the recipes of its weights, and their names.
typedef struct made {
    synthetic_model synthetic;
    char **names;
    size_t n_names;
} made;

static bool recognises_synthetic(const char *spec) {
    return strncmp(spec, prefix, strlen(prefix)) == 0;
}

// "seed" or "layers" of a synthetic model: decimal digits only.
static bool parse_number(const char *text, const char *spec, uint64_t *number,
                         sinkproof_error *error) {
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0) return true;
    return sinkproof_fail(error, "%s: expected a whole number, found \"%s\"", spec, text);
}

// The option "sink" of a synthetic model.
static bool parse_sink(const char *text, const char *spec, size_t *kind, sinkproof_error *error) {
    char names[200];
    return sink_kind_find(text, kind) ||
           sinkproof_fail(error, "%s: %sexpected %s, found \"%s\"", spec,
                          sinkproof_guess_in_list(text, sink_kind_names(names, sizeof names)).text,
                          names, text);
}

// The options after NAME; a sink of SIZE_MAX and layers of UINT64_MAX mean NAME's own.
typedef struct synthetic_options {
    uint64_t seed, layers;
    size_t sink;
} synthetic_options;

static bool parse_options(char *options, const char *spec, synthetic_options *out,
                          sinkproof_error *error) {
    char *rest = NULL;
    for (char *word = strtok_r(options, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        bool key = true, good = true;
        if (strncmp(word, "seed=", 5) == 0)
            good = parse_number(word + 5, spec, &out->seed, error);
        else if (strncmp(word, "layers=", 7) == 0)
            good = parse_number(word + 7, spec, &out->layers, error);
        else if (strncmp(word, "sink=", 5) == 0)
            good = parse_sink(word + 5, spec, &out->sink, error);
        else
            key = false;
        if (!key)
            return sinkproof_fail(
                error, "%s: %sexpected seed=N, layers=N or sink=KIND, found \"%s\"", spec,
                sinkproof_guess_in_list(word, "seed=N, layers=N, sink=KIND").text, word);
        if (!good) return false;
    }
    return true;
}

static const char known[] = "tiny, gpt-oss-20b, gpt-oss-120b, tiny-gpt2, gpt2, tiny-llama, "
                            "tiny-qwen3, gpt2-circuit, gpt2-null";

// Parses NAME[,seed=N][,layers=N][,sink=KIND] into config and seed. Layers beyond NAME's continue
// to alternate.
static bool parse_synthetic(const char *spec, sinkproof_config *config, uint64_t *seed,
                            const planted_model **planted, sinkproof_error *error) {
    char *text = strdup(spec + strlen(prefix));
    if (text == NULL) return sinkproof_fail(error, "%s: out of memory", spec);
    char *comma = strchr(text, ',');
    synthetic_options out = {0, UINT64_MAX, SIZE_MAX};
    if (comma != NULL) *comma = '\0';
    bool good = comma == NULL || parse_options(comma + 1, spec, &out, error);
    if (good && !sinkproof_config_named(text, config)) {
        struct stat status;
        good = stat(text, &status) == 0;
        if (!good)
            sinkproof_fail(error, "%s: %sexpected %s or the path of a config.json, found \"%s\"",
                           spec, sinkproof_guess_in_list(text, known).text, known, text);
        good = good && config_read(text, config, error);
    }
    *planted = planted_find(text);
    free(text);
    if (!good) return false;
    bool slides = config->architecture == SINKPROOF_GPT_OSS;
    for (size_t l = config->n_layers; slides && l < SINKPROOF_MAX_LAYERS; l++)
        config->sliding[l] = l % 2 == 0;
    *seed = out.seed;
    if (out.layers != UINT64_MAX) config->n_layers = (size_t)out.layers;
    if (out.sink != SIZE_MAX) config->sink = out.sink;
    if (!sinkproof_config_check(config, spec, error)) return false;
    if (config->dense) return true; // nothing is MXFP4
    if (config->hidden % SINKPROOF_MXFP4_BLOCK == 0 && config->inter % SINKPROOF_MXFP4_BLOCK == 0)
        return true;
    return sinkproof_fail(error,
                          "%s: expected widths that are multiples of 32 for MXFP4, found "
                          "hidden %zu and experts' %zu",
                          spec, config->hidden, config->inter);
}

static bool open_synthetic(sinkproof_model *model, sinkproof_error *error) {
    uint64_t seed = 0;
    const planted_model *planted = NULL;
    model->layout = "synthetic";
    if (!parse_synthetic(model->spec, &model->config, &seed, &planted, error)) return false;
    size_t weights = model->config.n_layers * SINKPROOF_LAYER_SLOTS + SINKPROOF_OUTSIDE_SLOTS;
    made *state = model->state = calloc(1, sizeof *state);
    if (state != NULL) state->names = calloc(weights, sizeof *state->names);
    if (state == NULL || state->names == NULL)
        return sinkproof_fail(error, "%s: out of memory", model->spec);
    synthetic_recipes_init(&state->synthetic, &model->config, seed);
    if (planted != NULL) synthetic_recipes_plant(&state->synthetic, &model->config, planted);
    return true;
}

// The layer of an outside stream is 0, whatever the number of layers.
static bool find_synthetic_weight(const wanted_weight *wanted, sinkproof_matrix *out) {
    made *state = wanted->model->state;
    char name[64];
    if (wanted->slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(name, sizeof name, "%s", sinkproof_slot_name(wanted->slot));
    else
        snprintf(name, sizeof name, "layer.%zu.%s", wanted->l, sinkproof_slot_name(wanted->slot));
    char *kept = state->names[state->n_names] = strdup(name);
    if (kept == NULL)
        return sinkproof_fail(wanted->error, "%s: out of memory", wanted->model->spec);
    state->n_names++;
    *out =
        synthetic_matrix(&state->synthetic, &wanted->model->config, wanted->l, wanted->slot, kept);
    return true;
}

static void close_synthetic(sinkproof_model *model) {
    made *state = model->state;
    if (state == NULL) return;
    for (size_t i = 0; i < state->n_names; i++) free(state->names[i]);
    free(state->names);
    free(state);
}

const sinkproof_container container_synthetic = {
    .recognises = recognises_synthetic,
    .open = open_synthetic,
    .find = find_synthetic_weight,
    .close = close_synthetic,
};
