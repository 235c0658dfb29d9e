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

static bool is_gguf(const char *spec) {
    size_t length = strlen(spec), tail = strlen(GGUF_SUFFIX);
    return length > tail && strcmp(spec + length - tail, GGUF_SUFFIX) == 0;
}

// ---- the configuration -------------------------------------------------------------------------

// What an open file keeps.
typedef struct opened {
    gguf_file *file;
    const gguf_kind *kind;
    sinkproof_reading rows, elements; // of queries and keys, where the file turns them
} opened;

static bool open_file(sinkproof_model *model, sinkproof_error *error) {
    opened *o = model->state = calloc(1, sizeof *o);
    model->layout = "gguf";
    if (o == NULL) return sinkproof_fail(error, "%s: out of memory", model->spec);
    if (!sinkproof_gguf_open(model->spec, &o->file, error)) return false;
    o->kind = gguf_kind_of_file(o->file);
    if (o->kind != NULL) model->tensors = o->kind->layout;
    if (!checkpoint_index(&model->checkpoint, model->spec, gguf_tensor_count(o->file),
                          gguf_tensor_at(o->file, 0), error) ||
        !gguf_read_config(o->file, o->kind, model, error))
        return false;
    gguf_reorder_rows(gguf_row_side_by_side, model->config.head_dim, false, &o->rows);
    gguf_reorder_rows(gguf_row_side_by_side, model->config.head_dim, true, &o->elements);
    return true;
}

static void close_file(sinkproof_model *model) {
    opened *o = model->state;
    if (o != NULL) sinkproof_gguf_close(o->file);
    free(o);
}

// ---- the weights -------------------------------------------------------------------------------

// Gate and up in one tensor: all gates, then all ups.
static bool view_fused(const wanted_weight *wanted, sinkproof_matrix *out) {
    const sinkproof_config *c = &wanted->model->config;
    bool vector = wanted->rows == 1;
    if (!checkpoint_tensor(wanted, gguf_fused_name(wanted->slot), out)) return false;
    out->odd =
        out->data + sinkproof_dtype_bytes_for(out->dtype, c->inter * (vector ? 1 : wanted->cols));
    return true;
}

static bool find_gguf_weight(const wanted_weight *wanted, sinkproof_matrix *out) {
    const opened *o = wanted->model->state;
    const char *shared =
        o->kind->architecture == SINKPROOF_GPT_OSS ? gguf_fused_name(wanted->slot) : NULL;
    char name[TENSOR_NAME];
    if (shared != NULL) gguf_tensor_name(wanted->l, shared, name);
    if (shared != NULL && checkpoint_find(&wanted->model->checkpoint, name) != NULL)
        return view_fused(wanted, out);
    if (!checkpoint_view(wanted, out)) return false;
    if (o->kind->turned && gguf_reorders_slot(wanted->slot))
        out->reading = wanted->rows == 1 ? &o->elements : &o->rows;
    return true;
}

// ---- differences from the published model ------------------------------------------------------

// Names the weights of a type that GPT-OSS has in another.
static void note_departed_type(sinkproof_model *model, sinkproof_dtype dtype, const char *why) {
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
        checkpoint_note_odd(&model->checkpoint, "%s: %s, %s", names, sinkproof_dtype_name(dtype),
                            why);
}

static void note_departed_types(sinkproof_model *model) {
    weight_files *odd = &model->checkpoint;
    const sinkproof_config *c = &model->config;
    const gguf_pair *tokenizer =
        sinkproof_gguf_find(((const opened *)model->state)->file, "tokenizer.ggml.model");
    checkpoint_note_odd(odd, "no key of GGUF says that YaRN's range is not truncated, as it is "
                             "in GPT-OSS and here; llama.cpp rounds it to whole dimensions: "
                             "judge that engine with yarn=truncate");
    note_departed_type(
        model, SINKPROOF_DTYPE_Q8_0,
        "another set of weights than GPT-OSS's: 32 numbers share a float16 scale, and each "
        "was rounded to a multiple of it");
    note_departed_type(
        model, SINKPROOF_DTYPE_F16,
        "which holds GPT-OSS's bf16 and MXFP4 numbers from 2^-14 to 65504, and below only "
        "multiples of 2^-24");
    if (sinkproof_model_slot(model, 0, SINKPROOF_W_UP).dtype != SINKPROOF_DTYPE_MXFP4)
        checkpoint_note_odd(odd, "the experts are %s, GPT-OSS's are MXFP4",
                            sinkproof_dtype_name(model->layers[0].w_up.dtype));
    if (c->rms_eps != 1e-5 && (float)c->rms_eps == 1e-5f)
        checkpoint_note_odd(odd,
                            "RMSNorm epsilon is %.12g, the float32 number beside 1e-05: "
                            "GGUF has it in float32, as engines do",
                            c->rms_eps);
    if (c->rotation.beta_fast != 32 || c->rotation.beta_slow != 1)
        checkpoint_note_odd(odd,
                            "YaRN's betas are %g and %g; llama.cpp does not read their "
                            "keys for gpt-oss and takes 32 and 1",
                            c->rotation.beta_fast, c->rotation.beta_slow);
    if (tokenizer == NULL || sinkproof_gguf_is_text(tokenizer, "none") ||
        sinkproof_gguf_is_text(tokenizer, "no_vocab"))
        checkpoint_note_odd(odd, "no tokenizer: engines take token numbers, and no text");
}

static bool complete_gguf(sinkproof_model *model, sinkproof_error *error) {
    if (!checkpoint_check_all_used(model, error)) return false;
    if (model->config.architecture == SINKPROOF_GPT_OSS) note_departed_types(model);
    return true;
}

const sinkproof_container container_gguf = {
    .name = "gguf",
    .title = "GGUF",
    .holds = "a GGUF file of llama.cpp's",
    .suffix = GGUF_SUFFIX,
    .dequantizes = true,
    .converts = true,
    .recognises = is_gguf,
    .open = open_file,
    .find = find_gguf_weight,
    .complete = complete_gguf,
    .close = close_file,
    .write = gguf_write,
    .layout = &gguf_layout,
};
