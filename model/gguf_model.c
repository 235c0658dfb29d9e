// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The container of GGUF files, with llama.cpp's names for the architecture gpt-oss: its keys become
// the configuration, its tensors the weights. Gate and up are two tensors, or one with the gate
// first, and never interleaved as in every other container. Source:
// doc/99-bibliography.md#llama-cpp.
#include "model/gguf.h"

#include "model/container.h"
#include "model/fields.h"
#include "model/gguf_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool recognises(const char *spec) {
    size_t length = strlen(spec), tail = strlen(SINKPROOF_GGUF_SUFFIX);
    return length > tail && strcmp(spec + length - tail, SINKPROOF_GGUF_SUFFIX) == 0;
}

// ---- the configuration -------------------------------------------------------------------------

// The state of reading one file's keys.
typedef struct reader {
    const sinkproof_gguf *file;
    const char *path;
    sinkproof_config *config;
    sinkproof_error *error;
} reader;

static bool refuse(const reader *in, const char *key, const char *expected) {
    char found[80] = "nothing";
    const sinkproof_gguf_pair *pair = sinkproof_gguf_find(in->file, key);
    if (pair != NULL) sinkproof_gguf_shown(pair, found, sizeof found);
    return sinkproof_fail(in->error, "%s: expected %s to be %s, found %s", in->path, key, expected,
                          found);
}

static bool read_field(const reader *in, const sinkproof_gguf_name *name) {
    char key[96];
    double value = 0;
    const sinkproof_field *field = sinkproof_field_of(name->offset);
    bool size = field->type == SINKPROOF_FIELD_SIZE;
    snprintf(key, sizeof key, SINKPROOF_GGUF_PREFIX "%s", name->key);
    const sinkproof_gguf_pair *pair = sinkproof_gguf_find(in->file, key);
    if (pair == NULL && !name->required) return true;
    bool good = pair != NULL && sinkproof_gguf_number(pair, &value);
    if (size && !(good && value >= 1 && value <= 1 << 30 && value == floor(value)))
        return refuse(in, key, "a whole number from 1 to 2^30");
    if (!size && !(good && value > 0 && value < INFINITY))
        return refuse(in, key, "a positive number");
    sinkproof_field_set(field, in->config, value);
    return true;
}

// Checks keys that must have one value; ignores keys that change nothing.
static bool check_only(const reader *in) {
    static const char *const head_dims[] = {"attention.value_length", "rope.dimension_count"};
    const sinkproof_gguf_pair *pair;
    char key[96];
    double value;
    for (size_t i = 0; i < 2; i++) {
        snprintf(key, sizeof key, SINKPROOF_GGUF_PREFIX "%s", head_dims[i]);
        pair = sinkproof_gguf_find(in->file, key);
        bool same = pair == NULL ||
                    (sinkproof_gguf_number(pair, &value) && value == (double)in->config->head_dim);
        if (!same) return refuse(in, key, "equal to " SINKPROOF_GGUF_PREFIX "attention.key_length");
    }
    pair = sinkproof_gguf_find(in->file, SINKPROOF_GGUF_PREFIX "rope.scaling.type");
    if (pair == NULL || !sinkproof_gguf_is_text(pair, "yarn"))
        return refuse(in, SINKPROOF_GGUF_PREFIX "rope.scaling.type", "\"yarn\"");
    pair = sinkproof_gguf_find(in->file, "split.count");
    if (pair != NULL && !(sinkproof_gguf_number(pair, &value) && value <= 1))
        return refuse(in, "split.count", "1: a model in one file (llama-gguf-split --merge)");
    return true;
}

// Refuses an unknown key of the architecture, since it may change the mathematics.
static bool check_known(const reader *in) {
    static const char *const more[] = {"attention.value_length", "rope.dimension_count",
                                       "rope.scaling.type", "rope.scaling.finetuned",
                                       "feed_forward_length"};
    size_t prefix = strlen(SINKPROOF_GGUF_PREFIX);
    for (size_t i = 0; i < sinkproof_gguf_pairs(in->file); i++) {
        const char *key = sinkproof_gguf_pair_at(in->file, i)->key;
        bool known = strncmp(key, SINKPROOF_GGUF_PREFIX, prefix) != 0;
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            known = known || strcmp(key + prefix, more[k]) == 0;
        for (const sinkproof_gguf_name *n = sinkproof_gguf_names; n->key != NULL; n++)
            known = known || strcmp(key + prefix, n->key) == 0;
        if (!known) return refuse(in, key, "absent, since what it changes is not known");
    }
    return true;
}

// Without the key, the vocabulary is the number of rows of the embedding.
static bool read_vocab(const reader *in, const sinkproof_checkpoint *checkpoint) {
    const sinkproof_entry *entry = sinkproof_checkpoint_find(checkpoint, "token_embd.weight");
    if (in->config->vocab > 0) return true;
    if (entry == NULL || entry->tensor->rank != 2)
        return refuse(in, SINKPROOF_GGUF_PREFIX "vocab_size", "a whole number from 1 to 2^30");
    in->config->vocab = entry->tensor->shape[0];
    return true;
}

// Notes properties of the published model that no key states.
static void note_unstated(const reader *in) {
    sinkproof_config_reader note = {.config = in->config};
    const sinkproof_gguf_pair *fast =
        sinkproof_gguf_find(in->file, SINKPROOF_GGUF_PREFIX "rope.scaling.rotation.beta_fast");
    if (fast == NULL) sinkproof_config_note(&note, "beta_fast 32, beta_slow 1");
    sinkproof_config_note(&note, "truncate false, swiglu_alpha 1.702, swiglu_limit 7, layers "
                                 "alternating, sliding first");
}

static bool read_config(const reader *in, const sinkproof_checkpoint *checkpoint) {
    const sinkproof_gguf_pair *kind = sinkproof_gguf_find(in->file, "general.architecture");
    sinkproof_fields_default(in->config);
    if (kind == NULL || !sinkproof_gguf_is_text(kind, "gpt-oss"))
        return refuse(in, "general.architecture", "\"gpt-oss\"");
    for (const sinkproof_gguf_name *name = sinkproof_gguf_names; name->key != NULL; name++)
        if (!read_field(in, name)) return false;
    note_unstated(in);
    return check_only(in) && check_known(in) && read_vocab(in, checkpoint) &&
           sinkproof_config_check(in->config, in->path, in->error);
}

static bool open_file(sinkproof_model *model, sinkproof_error *error) {
    sinkproof_gguf *file;
    model->layout = "gguf";
    if (!sinkproof_gguf_open(model->spec, &file, error)) return false;
    model->state = file;
    const reader in = {file, model->spec, &model->config, error};
    return sinkproof_checkpoint_index(&model->checkpoint, model->spec, sinkproof_gguf_count(file),
                                      sinkproof_gguf_at(file, 0), error) &&
           read_config(&in, &model->checkpoint);
}

static void close_file(sinkproof_model *model) {
    sinkproof_gguf_close(model->state);
}

// ---- the weights -------------------------------------------------------------------------------

// Gate and up in one tensor: all gates, then all ups.
static bool view_fused(const sinkproof_wanted *wanted, sinkproof_matrix *out) {
    const sinkproof_config *c = &wanted->model->config;
    bool vector = wanted->rows == 1;
    if (!sinkproof_checkpoint_tensor(wanted, sinkproof_gguf_fused(wanted->slot), out)) return false;
    out->odd =
        out->data + sinkproof_dtype_bytes(out->dtype, c->inter * (vector ? 1 : wanted->cols));
    return true;
}

static bool find(const sinkproof_wanted *wanted, sinkproof_matrix *out) {
    if (sinkproof_gguf_fused(wanted->slot) == NULL) return sinkproof_checkpoint_view(wanted, out);
    char name[SINKPROOF_TENSOR_NAME];
    sinkproof_gguf_tensor(wanted->l, sinkproof_gguf_fused(wanted->slot), name);
    bool fused = sinkproof_checkpoint_find(&wanted->model->checkpoint, name) != NULL;
    return fused ? view_fused(wanted, out) : sinkproof_checkpoint_view(wanted, out);
}

// ---- differences from the published model ------------------------------------------------------

// Names the weights of a type that GPT-OSS has in another.
static void tell_of_type(sinkproof_model *model, sinkproof_dtype dtype, const char *why) {
    char names[200] = "";
    size_t used = 0, n = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        if (sinkproof_slot_is_vector(slot, &model->config)) continue;
        if (sinkproof_model_slot(model, 0, slot).dtype != dtype) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", n++ == 0 ? "" : ", ",
                                 sinkproof_slot_name(slot));
    }
    if (n > 0)
        sinkproof_checkpoint_odd(&model->checkpoint, "%s: %s, %s", names,
                                 sinkproof_dtype_name(dtype), why);
}

static void tell_departures(sinkproof_model *model) {
    sinkproof_checkpoint *odd = &model->checkpoint;
    const sinkproof_config *c = &model->config;
    const sinkproof_gguf_pair *tokenizer =
        sinkproof_gguf_find(model->state, "tokenizer.ggml.model");
    sinkproof_checkpoint_odd(odd,
                             "no key of GGUF says that YaRN's range is not truncated, as it is "
                             "in GPT-OSS and here; llama.cpp rounds it to whole dimensions: "
                             "judge that engine with yarn=truncate");
    tell_of_type(
        model, SINKPROOF_DTYPE_Q8_0,
        "another set of weights than GPT-OSS's: 32 numbers share a float16 scale, and each "
        "was rounded to a multiple of it");
    tell_of_type(model, SINKPROOF_DTYPE_F16,
                 "which holds GPT-OSS's bf16 and MXFP4 numbers from 2^-14 to 65504, and below only "
                 "multiples of 2^-24");
    if (sinkproof_model_slot(model, 0, SINKPROOF_W_UP).dtype != SINKPROOF_DTYPE_MXFP4)
        sinkproof_checkpoint_odd(odd, "the experts are %s, GPT-OSS's are MXFP4",
                                 sinkproof_dtype_name(model->layers[0].w_up.dtype));
    if (c->rms_eps != 1e-5 && (float)c->rms_eps == 1e-5f)
        sinkproof_checkpoint_odd(odd,
                                 "RMSNorm epsilon is %.12g, the float32 number beside 1e-05: "
                                 "GGUF has it in float32, as engines do",
                                 c->rms_eps);
    if (c->rotation.beta_fast != 32 || c->rotation.beta_slow != 1)
        sinkproof_checkpoint_odd(odd,
                                 "YaRN's betas are %g and %g; llama.cpp does not read their "
                                 "keys for gpt-oss and takes 32 and 1",
                                 c->rotation.beta_fast, c->rotation.beta_slow);
    if (tokenizer == NULL || sinkproof_gguf_is_text(tokenizer, "none") ||
        sinkproof_gguf_is_text(tokenizer, "no_vocab"))
        sinkproof_checkpoint_odd(odd, "no tokenizer: engines take token numbers, and no text");
}

static bool complete(sinkproof_model *model, sinkproof_error *error) {
    if (!sinkproof_checkpoint_complete(model, error)) return false;
    tell_departures(model);
    return true;
}

const sinkproof_container sinkproof_container_gguf = {
    .name = "gguf",
    .title = "GGUF",
    .holds = "a GGUF file of llama.cpp's",
    .suffix = SINKPROOF_GGUF_SUFFIX,
    .dequantizes = true,
    .converts = true,
    .recognises = recognises,
    .open = open_file,
    .find = find,
    .complete = complete,
    .close = close_file,
    .write = sinkproof_gguf_write,
    .layout = &sinkproof_gguf_layout,
};
