// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Converts text to token ids and back, by the byte-level BPE of GPT-2 and GPT-OSS. It reads
// tokenizer.json (Hugging Face), vocab.json with merges.txt beside it, a tiktoken file of ranks,
// and the tokenizer inside a GGUF file; a file that requires an unsupported feature is refused.
#ifndef SINKPROOF_TEXT_TOKENIZER_H
#define SINKPROOF_TEXT_TOKENIZER_H

#include "audit/studies/text/bpe.h"

typedef struct sinkproof_tokenizer sinkproof_tokenizer;

// Opens a directory that holds one of the first three, or a file, whose kind its content tells. A
// file of ranks does not name the pattern that splits its text: 50256 ranks are GPT-2's, 199998
// those of o200k_harmony; for others, add the pattern to the path: "FILE,pattern=gpt2" or
// "FILE,pattern=o200k".
bool sinkproof_tokenizer_open(const char *path, sinkproof_tokenizer **tokenizer,
                              sinkproof_error *error);
void sinkproof_tokenizer_free(sinkproof_tokenizer *tokenizer);

// The same from memory; `name` is used in errors. `merges` is NULL if vocab is a tokenizer.json.
bool tokenizer_parse_json(const uint8_t *bytes, size_t length, const char *name,
                          sinkproof_tokenizer **tokenizer, sinkproof_error *error);
bool tokenizer_parse_lists(const uint8_t *vocab, size_t vocab_length, const uint8_t *merges,
                           size_t merges_length, const char *name, sinkproof_tokenizer **tokenizer,
                           sinkproof_error *error);
// pattern: "gpt2", "o200k", or NULL: chosen by the number of ranks.
bool tokenizer_parse_ranks(const uint8_t *bytes, size_t length, const char *name,
                           const char *pattern, sinkproof_tokenizer **tokenizer,
                           sinkproof_error *error);

// Appends the ids of a text, which must be UTF-8. `special`: a special token's spelling in the text
// is that token (the longest of several at one place), as in Hugging Face tokenizers; otherwise it
// is ordinary text.
bool sinkproof_text_encode(const sinkproof_tokenizer *tokenizer, const char *text, size_t length,
                           bool special, sinkproof_ids *ids, sinkproof_error *error);

// The bytes of the ids with a zero byte after them, which the caller frees. They need not be valid
// UTF-8, since a character may be split between two tokens.
bool text_decode(const sinkproof_tokenizer *tokenizer, size_t n, const int32_t *id_n, char **text,
                 size_t *length, sinkproof_error *error);
// The same with U+FFFD in place of invalid UTF-8.
bool sinkproof_text_printable(const sinkproof_tokenizer *tokenizer, size_t n, const int32_t *id_n,
                              char **text, size_t *length, sinkproof_error *error);

// The id of a special token, or -1.
int32_t special_token_id(const sinkproof_tokenizer *tokenizer, const char *spelling);

typedef struct sinkproof_tokenizer_facts {
    // "tokenizer.json", "vocab and merges", "tiktoken ranks", "GGUF"
    const char *format;
    const char *path;                    // of the file
    size_t tokens, merges, special, ids; // ids: the largest id plus 1
} sinkproof_tokenizer_facts;
sinkproof_tokenizer_facts sinkproof_tokenizer_about(const sinkproof_tokenizer *tokenizer);

#endif
