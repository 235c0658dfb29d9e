// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The keys of a GGUF file as a configuration, and which configurations they can state.
#include "model/gguf_names.h"

#include "model/cursor.h"
#include "model/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The kind of a file; NULL: none of the list.
const gguf_kind *gguf_kind_of_file(const gguf_file *file) {
    const gguf_pair *pair = sinkproof_gguf_find(file, "general.architecture");
    const gguf_kind *kind = gguf_kinds;
    while (kind->name != NULL && (pair == NULL || !sinkproof_gguf_is_text(pair, kind->name)))
        kind++;
    return kind->name != NULL ? kind : NULL;
}

// Checked before the tensors, which in a file of another architecture may have other types and need
// no conversion.
bool gguf_check_architecture(file_cursor *in, const gguf_file *file) {
    static const char key[] = "general.architecture";
    const gguf_pair *pair = sinkproof_gguf_find(file, key);
    char found[64];
    if (pair == NULL || gguf_kind_of_file(file) != NULL) return true;
    return cursor_fail(in,
                       "key %s: expected \"gpt-oss\", \"llama\", \"qwen2\" or \"qwen3\", which "
                       "are all that is read, found %s",
                       key, sinkproof_gguf_value_text(pair, found, sizeof found));
}

// Llama with biases on queries, keys and values alone is Qwen2, with head norms Qwen3. What is of
// neither is held against GPT-OSS's names, and refused.
const gguf_kind *gguf_kind_for_config(const sinkproof_config *c) {
    const char *name = c->architecture != SINKPROOF_LLAMA       ? "gpt-oss"
                       : c->head_norms                          ? "qwen3"
                       : !c->unbiased.qkv && c->unbiased.output ? "qwen2"
                                                                : "llama";
    const gguf_kind *kind = gguf_kinds;
    while (strcmp(kind->name, name) != 0) kind++;
    return kind;
}

// The state of reading one file's keys.
typedef struct reader {
    const gguf_file *file;
    const gguf_kind *kind;
    const weight_files *checkpoint;
    const char *path;
    sinkproof_config *config;
    sinkproof_error *error;
} reader;

typedef struct key_text {
    char text[96];
} key_text;

// "gpt-oss.block_count".
static key_text prefixed_key(const reader *in, const char *name) {
    key_text key;
    snprintf(key.text, sizeof key.text, "%s%s", in->kind->prefix, name);
    return key;
}

static const gguf_pair *find_prefixed_pair(const reader *in, const char *name) {
    return sinkproof_gguf_find(in->file, prefixed_key(in, name).text);
}

static bool refuse_value(const reader *in, const char *key, const char *expected) {
    char found[80] = "nothing";
    const gguf_pair *pair = sinkproof_gguf_find(in->file, key);
    if (pair != NULL) sinkproof_gguf_value_text(pair, found, sizeof found);
    return sinkproof_fail(in->error, "%s: expected %s to be %s, found %s", in->path, key, expected,
                          found);
}

static bool read_field(const reader *in, const gguf_name *name) {
    double value = 0;
    const sinkproof_field *field = sinkproof_field_find(name->offset);
    bool size = field->type == FIELD_SIZE;
    const gguf_pair *pair = find_prefixed_pair(in, name->key);
    if (pair == NULL && !name->required) return true;
    bool good = pair != NULL && gguf_number(pair, &value);
    if (size && !(good && value >= 1 && value <= 1 << 30 && value == floor(value)))
        return refuse_value(in, prefixed_key(in, name->key).text, "a whole number from 1 to 2^30");
    if (!size && !(good && value > 0 && value < INFINITY))
        return refuse_value(in, prefixed_key(in, name->key).text, "a positive number");
    field_set(field, in->config, value);
    return true;
}

// Checks keys that must have one value; ignores keys that change nothing.
static bool check_fixed_keys(const reader *in) {
    static const char *const head_dims[] = {"attention.value_length", "rope.dimension_count"};
    bool yarn = in->config->rotation.kind == SINKPROOF_YARN;
    const gguf_pair *pair;
    char expected[96];
    double value;
    snprintf(expected, sizeof expected, "equal to %sattention.key_length", in->kind->prefix);
    for (size_t i = 0; i < 2; i++) {
        pair = find_prefixed_pair(in, head_dims[i]);
        bool same =
            pair == NULL || (gguf_number(pair, &value) && value == (double)in->config->head_dim);
        if (!same) return refuse_value(in, prefixed_key(in, head_dims[i]).text, expected);
    }
    pair = find_prefixed_pair(in, "rope.scaling.type");
    if (yarn && (pair == NULL || !sinkproof_gguf_is_text(pair, "yarn")))
        return refuse_value(in, prefixed_key(in, "rope.scaling.type").text, "\"yarn\"");
    pair = sinkproof_gguf_find(in->file, "split.count");
    if (pair != NULL && !(gguf_number(pair, &value) && value <= 1))
        return refuse_value(in, "split.count", "1: a model in one file (llama-gguf-split --merge)");
    return yarn || checkpoint_find(in->checkpoint, "rope_freqs.weight") == NULL ||
           sinkproof_fail(in->error,
                          "%s: expected no tensor rope_freqs.weight, which scales the rotation "
                          "in a way that is not known here, found one",
                          in->path);
}

// Refuses an unknown key of the architecture, since it may change the mathematics.
static bool refuse_unknown_keys(const reader *in) {
    size_t prefix = strlen(in->kind->prefix);
    for (size_t i = 0; i < gguf_pairs(in->file); i++) {
        const char *key = gguf_pair_at(in->file, i)->key;
        bool known = strncmp(key, in->kind->prefix, prefix) != 0;
        for (const char *const *more = in->kind->more; *more != NULL; more++)
            known = known || strcmp(key + prefix, *more) == 0;
        for (const gguf_name *n = in->kind->numbers; n->key != NULL; n++)
            known = known || strcmp(key + prefix, n->key) == 0;
        if (!known) return refuse_value(in, key, "absent, since what it changes is not known");
    }
    return true;
}

// Without the key, the vocabulary is the number of rows of the embedding.
static bool read_vocab(const reader *in) {
    const checkpoint_entry *entry = checkpoint_find(in->checkpoint, "token_embd.weight");
    if (in->config->vocab > 0) return true;
    if (entry == NULL || entry->tensor->rank != 2)
        return refuse_value(in, prefixed_key(in, "vocab_size").text,
                            "a whole number from 1 to 2^30");
    in->config->vocab = entry->tensor->shape[0];
    return true;
}

// Notes properties of the published model that no key states.
static void note_unstated_properties(const reader *in) {
    config_reader note = {.config = in->config};
    if (find_prefixed_pair(in, "rope.scaling.yarn_beta_fast") == NULL)
        config_note(&note, "beta_fast 32, beta_slow 1");
    config_note(&note, "truncate false, swiglu_alpha 1.702, swiglu_limit 7, layers "
                       "alternating, sliding first");
}

static bool has_tensor(const reader *in, const char *name) {
    return checkpoint_find(in->checkpoint, name) != NULL;
}

// Which biases there are, and whether the unembedding is the embedding, the tensors say.
static void read_llama(const reader *in) {
    sinkproof_config *c = in->config;
    if (find_prefixed_pair(in, "attention.head_count_kv") == NULL) c->n_kv_heads = c->n_heads;
    if (find_prefixed_pair(in, "attention.key_length") == NULL)
        c->head_dim = c->hidden / c->n_heads;
    if (find_prefixed_pair(in, "rope.freq_base") == NULL) c->rotation.theta = 10000;
    config_make_llama(c);
    c->unbiased = (sinkproof_unbiased){.qkv = !has_tensor(in, "blk.0.attn_q.bias"),
                                       .output = !has_tensor(in, "blk.0.attn_output.bias"),
                                       .perceptron = !has_tensor(in, "blk.0.ffn_down.bias")};
    c->head_norms = strcmp(in->kind->name, "qwen3") == 0;
    c->tied = !has_tensor(in, "output.weight");
}

bool gguf_read_config(const gguf_file *file, const gguf_kind *kind, sinkproof_model *model,
                      sinkproof_error *error) {
    const reader in = {file, kind, &model->checkpoint, model->spec, &model->config, error};
    fields_default(in.config);
    if (kind == NULL)
        return refuse_value(&in, "general.architecture",
                            "\"gpt-oss\", \"llama\", \"qwen2\" or \"qwen3\"");
    for (const gguf_name *name = kind->numbers; name->key != NULL; name++)
        if (!read_field(&in, name)) return false;
    if (kind->architecture == SINKPROOF_LLAMA)
        read_llama(&in);
    else
        note_unstated_properties(&in);
    return check_fixed_keys(&in) && refuse_unknown_keys(&in) && read_vocab(&in) &&
           sinkproof_config_check(in.config, in.path, error);
}

// Refuses values without a key; and float32 must hold every real number except epsilon, which every
// engine rounds.
bool gguf_can_state_config(const sinkproof_config *c, const char *path, sinkproof_error *error) {
    const sinkproof_field *field;
    if (c->architecture == SINKPROOF_GPT2)
        return sinkproof_fail(error,
                              "%s: expected GPT-OSS, Llama or Qwen, whose weights alone are "
                              "written as GGUF, found %s",
                              path, sinkproof_architecture_name(c->architecture));
    bool slides = false;
    for (size_t l = 0; l < c->n_layers; l++) slides = slides || c->sliding[l];
    if (c->architecture == SINKPROOF_LLAMA && slides)
        return sinkproof_fail(error,
                              "%s: expected full attention in every layer, since no key of a GGUF "
                              "file of Llama says that a layer has a window, found one",
                              path);
    if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        return sinkproof_fail(
            error,
            "%s: expected a rotation that is not scaled, found Llama 3's, which a "
            "GGUF file holds in a tensor that is not written here",
            path);
    bool published = c->architecture == SINKPROOF_GPT_OSS; // much of it stands in no key
    if (published && c->sink != 0)
        return sinkproof_fail(error,
                              "%s: expected a learned logit for each head, which GGUF takes for "
                              "granted, found the attention sink of another kind",
                              path);
    bool released = c->swiglu.alpha == 1.702 && c->swiglu.limit == 7 && !c->rotation.truncate;
    for (size_t l = 0; l < c->n_layers; l++) released = released && c->sliding[l] == (l % 2 == 0);
    if (published && !released)
        return sinkproof_fail(error,
                              "%s: expected alpha 1.702, limit 7, alternating layers and an "
                              "untruncated range, for which GGUF has no key, found another "
                              "configuration",
                              path);
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++) {
        double value = sinkproof_field_value(field, c);
        bool kept = field->type != FIELD_REAL || !sinkproof_field_exists(field, c) ||
                    (float)value == value || field->offset == CONFIG_KEY(rms_eps) ||
                    field->offset == CONFIG_KEY(swiglu.alpha);
        if (!kept)
            return sinkproof_fail(error, "%s: expected %s in float32, which GGUF has, found %.17g",
                                  path, field->said, value);
    }
    return true;
}
