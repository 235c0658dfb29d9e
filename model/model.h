// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A checkpoint of GPT-OSS or GPT-2, opened but not copied: Hugging Face layout (MXFP4 or
// dequantized bf16/f32, one file or sharded with an index), OpenAI's original layout, GGUF, or
// synthetic.
#ifndef SINKPROOF_MODEL_H
#define SINKPROOF_MODEL_H

#include "base/error.h"
#include "model/config.h"
#include "model/matrix.h"
#include "model/slots.h"

typedef struct sinkproof_model sinkproof_model;

// Opens a directory, a file NAME.gguf, or "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]" where
// NAME is tiny, gpt-oss-20b, gpt-oss-120b, tiny-gpt2, gpt2, gpt2-circuit or gpt2-null
// (model/planted.h) or the path of a config.json. Every tensor's presence, shape and dtype is
// checked against the configuration before this returns true, and every weight's value: each is
// finite, but for sinks of -infinity, and no MXFP4 scale byte is 255. For that the files are read
// once, except for MXFP4's codes, which are always numbers (but lie among their scales in GGUF).
bool sinkproof_model_open(const char *spec, sinkproof_model **model, sinkproof_error *error);

// The same without the check of values, to describe a checkpoint that open refuses.
bool sinkproof_model_inspect(const char *spec, sinkproof_model **model, sinkproof_error *error);

// Reports every tensor whose values open refuses, one sentence each: the file, the tensor, the
// first bad element, their number. `tell` returns false to stop.
typedef bool model_tell(void *context, const char *sentence);
void sinkproof_model_not_finite(const sinkproof_model *model, model_tell *tell, void *context);

void sinkproof_model_close(sinkproof_model *model);

const char *sinkproof_model_spec(const sinkproof_model *model); // as it was opened

// The same weights as an engine stores them, each rounded to `kept`: a view, which shares
// everything else with `model` and must be closed before it; NULL if memory runs out.
sinkproof_model *sinkproof_model_kept(const sinkproof_model *model, sinkproof_format kept);
// Whether every finite weight is also finite in `kept` (REAL: always): reads all of them. The error
// names the tensor and the number.
bool sinkproof_model_fits(const sinkproof_model *model, sinkproof_format kept,
                          sinkproof_error *error);

// A view of a model with another configuration of the same shapes, and weights that `edit` changes
// one after the other. It shares everything else with `model` and must be closed before it; NULL if
// memory runs out.
typedef void weight_edit(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight);
sinkproof_model *sinkproof_model_edited(const sinkproof_model *model,
                                        const sinkproof_config *config, weight_edit *edit,
                                        void *context);

const sinkproof_config *sinkproof_model_config(const sinkproof_model *model);
sinkproof_layer sinkproof_model_layer(const sinkproof_model *model, size_t l);
// The weight of any slot; l is ignored outside the layers.
sinkproof_matrix sinkproof_model_slot(const sinkproof_model *model, size_t l, sinkproof_slot slot);
sinkproof_matrix sinkproof_model_embedding(const sinkproof_model *model);   // [vocab, hidden]
sinkproof_matrix sinkproof_model_final_norm(const sinkproof_model *model);  // [1, hidden]
sinkproof_matrix sinkproof_model_unembedding(const sinkproof_model *model); // [vocab, hidden]

// "hf-mxfp4", "hf-bf16" (dequantized experts), "hf-gpt2", "openai", "gguf", "synthetic".
const char *sinkproof_model_layout(const sinkproof_model *model);

// Oddities that are not errors, a sentence each: an unknown tensor, an index that is not used.
size_t sinkproof_model_odd_count(const sinkproof_model *model);
const char *sinkproof_model_odd(const sinkproof_model *model, size_t i);

// A 64-bit fingerprint of the configuration and of each weight's part, shape and a sample of its
// values: the same for the same numbers in every run, container and format; printed as 16 hex
// digits. Returns false if memory runs out.
bool sinkproof_model_fingerprint(const sinkproof_model *model, uint64_t *fingerprint,
                                 sinkproof_error *error);
// The fingerprint of older traces, which also depends on the formats of the weights.
bool sinkproof_model_fingerprint_before(const sinkproof_model *model, uint64_t *fingerprint,
                                        sinkproof_error *error);

#endif
