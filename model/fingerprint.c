// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The fingerprint of a model: FNV-1a over 64-bit words, of the configuration and of a few rows of
// every weight as numbers. Containers with the same numbers have the same fingerprint, however they
// name, fuse or order their tensors, and in every format: a checkpoint that was converted without
// rounding is the same model. Real numbers of the configuration are hashed as float32, in which
// some containers store them. The fingerprint identifies a model; it is no protection against
// forgery.
//
// Traces of before have one that told formats too: by it the same model is recognised as well.
#include "base/fnv.h"
#include "base/words.h"
#include "model/fields.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

static void hash_feed(uint64_t *hash, uint64_t word) {
    uint8_t bytes[8]; // the least first, on any machine
    for (int i = 0; i < 8; i++) bytes[i] = word >> 8 * i & 255;
    *hash = sinkproof_fnv(*hash, bytes, sizeof bytes);
}

static void feed_real(uint64_t *hash, double x) {
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    hash_feed(hash, word);
}

static void feed_config(uint64_t *hash, const sinkproof_config *c, bool formats) {
    const sinkproof_field *field;
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++) {
        double value = sinkproof_field_value(field, c);
        if (field->mark == MARK_NEVER || !sinkproof_field_exists(field, c)) continue;
        if (field->type == FIELD_REAL)
            feed_real(hash, formats ? value : (float)value);
        else
            hash_feed(hash, (uint64_t)value);
    }
    for (size_t l = 0; l < c->n_layers; l++) hash_feed(hash, c->sliding[l]);
    if (c->sink != 0) hash_feed(hash, c->sink); // the original kind leaves no mark
    if (c->architecture != SINKPROOF_GPT_OSS) hash_feed(hash, c->architecture);
    if (c->head_norms) hash_feed(hash, 1);
}

// First, middle and last row of the first, middle and last matrix of the stack.
static void feed_matrix(uint64_t *hash, const sinkproof_matrix *stack, bool formats,
                        double *row_c) {
    if (stack->count == 0) return;
    if (formats) hash_feed(hash, (uint64_t)stack->dtype);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            sinkproof_matrix matrix = sinkproof_matrix_at(stack, (stack->count - 1) * i / 2);
            sinkproof_matrix_row(&matrix, (stack->rows - 1) * j / 2, row_c);
            for (size_t c = 0; c < stack->cols; c++) feed_real(hash, row_c[c]);
        }
}

static bool hash_model(const sinkproof_model *model, bool formats, uint64_t *fingerprint,
                       sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    uint64_t hash = SINKPROOF_FNV_NOTHING;
    feed_config(&hash, config, formats);
    size_t widest = 0, count, rows, cols;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot_shape((sinkproof_slot)s, config, &count, &rows, &cols);
        if (cols > widest) widest = cols;
    }
    double *row_c = malloc(widest * sizeof *row_c);
    if (row_c == NULL)
        return sinkproof_fail(error, "no memory for a row of %s",
                              sinkproof_counted(widest, "weight").text);
    for (size_t l = 0; l < config->n_layers; l++)
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) {
            sinkproof_matrix matrix = sinkproof_model_slot(model, l, (sinkproof_slot)s);
            feed_matrix(&hash, &matrix, formats, row_c);
        }
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++) {
        sinkproof_matrix matrix = sinkproof_model_slot(model, 0, (sinkproof_slot)s);
        feed_matrix(&hash, &matrix, formats, row_c);
    }
    free(row_c);
    *fingerprint = hash;
    return true;
}

bool sinkproof_model_fingerprint(const sinkproof_model *model, uint64_t *fingerprint,
                                 sinkproof_error *error) {
    return hash_model(model, false, fingerprint, error);
}

bool sinkproof_model_fingerprint_before(const sinkproof_model *model, uint64_t *fingerprint,
                                        sinkproof_error *error) {
    return hash_model(model, true, fingerprint, error);
}
