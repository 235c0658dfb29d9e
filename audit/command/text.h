// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Text where a command takes tokens: by the tokenizer that lies beside the model, or that is named.
#ifndef SINKPROOF_COMMAND_TEXT_H
#define SINKPROOF_COMMAND_TEXT_H

#include "audit/studies/text/tokenizer.h"

// What a command line says of the tokens: one of the first four. `tokens` may also say
// text:TEXT, prompt:TEXT or chat:FILE. "-" in place of TEXT or FILE is standard input.
typedef struct sinkproof_words {
    const char *tokens;    // ids, as sinkproof_parse_tokens knows them
    const char *text;      // as it stands; a special token's spelling is that token
    const char *prompt;    // a user's message, in the harmony format
    const char *chat;      // a file of messages, in the harmony format
    const char *tokenizer; // its path; NULL: beside the model
} sinkproof_words;

// Fills a malloc'ed array; ids are below vocab. *tokenizer is opened where there is text (else
// NULL).
bool sinkproof_words_tokens(const sinkproof_words *words, const char *model, size_t vocab,
                            sinkproof_tokenizer **tokenizer, int32_t **tokens_n, size_t *n,
                            sinkproof_error *error);

// The same of a word after --tokens alone, with the tokenizer beside the model.
bool sinkproof_said_tokens(const char *said, const char *model, size_t vocab, int32_t **tokens_n,
                           size_t *n, sinkproof_error *error);

// The tokenizer of a model: the one at `path`, or, where that is NULL, beside it.
bool sinkproof_words_open(const char *path, const char *model, sinkproof_tokenizer **tokenizer,
                          sinkproof_error *error);

// Appends the ids of text, prompt or chat.
bool sinkproof_words_encode(const sinkproof_words *words, const sinkproof_tokenizer *tokenizer,
                            sinkproof_ids *ids, sinkproof_error *error);

// Standard input or a file, whole, to be freed.
bool sinkproof_words_read(const char *path, uint8_t **bytes, size_t *length,
                          sinkproof_error *error);

// The text of the ids as a JSON string, quotes and all, to be freed: one line, whatever is in it.
char *sinkproof_words_quoted(const sinkproof_tokenizer *tokenizer, size_t n, const int32_t *id_n,
                             sinkproof_error *error);

#endif
