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

// The weights of one layer. Shapes in the order [count][rows, cols].
typedef struct sinkproof_layer {
    sinkproof_matrix attn_norm;     // [1, hidden]
    sinkproof_matrix w_q, w_k, w_v; // [heads head_dim, hidden], [kv_heads head_dim, hidden]
    sinkproof_matrix b_q, b_k, b_v; // [1, heads head_dim], [1, kv_heads head_dim]
    sinkproof_matrix sinks;         // [1, heads]; other kinds of model/sinks.h have other shapes
    sinkproof_matrix w_o, b_o;      // [hidden, heads head_dim], [1, hidden]
    sinkproof_matrix mlp_norm;      // [1, hidden]
    sinkproof_matrix w_router, b_router; // [experts, hidden], [1, experts]
    sinkproof_matrix w_up, b_up;         // experts x [2 inter, hidden], experts x [1, 2 inter]:
                                         // even rows are the gate, odd rows are up
    sinkproof_matrix w_down, b_down;     // experts x [hidden, inter], experts x [1, hidden]
    sinkproof_matrix attn_norm_b, mlp_norm_b; // [1, hidden]: the shifts of LayerNorms
} sinkproof_layer;

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

const sinkproof_config *sinkproof_model_config(const sinkproof_model *model);
sinkproof_layer sinkproof_model_layer(const sinkproof_model *model, size_t l);
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
