// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Text in place of tokens: uses the tokenizer beside the model, or the one that the user names.
#ifndef SINKPROOF_COMMAND_TEXT_H
#define SINKPROOF_COMMAND_TEXT_H

#include "audit/studies/text/tokenizer.h"

// The tokens of a command line: one of the first four members is set. `tokens` may also be
// text:TEXT, prompt:TEXT or chat:FILE, and may begin with ids and a plus, as in bos+repeat:64 or
// 5,3+text:TEXT: bos is the token that the model's own files name (bos_token_id). "-" in place of
// TEXT or FILE is standard input.
typedef struct text_words {
    const char *tokens;    // ids, as for command_parse_tokens
    const char *text;      // raw text; a special token's spelling is that token
    const char *prompt;    // a user's message, in the harmony format
    const char *chat;      // a file of messages, in the harmony format
    const char *tokenizer; // its path; NULL: beside the model
} text_words;

// Fills a malloc'ed array of ids below vocab. *tokenizer is opened if there is text, and otherwise
// NULL.
bool words_parse_tokens(const text_words *words, const char *model, size_t vocab,
                        sinkproof_tokenizer **tokenizer, int32_t **tokens_n, size_t *n,
                        sinkproof_error *error);

// The same for the argument of --tokens alone, with the tokenizer beside the model.
bool command_tokens_from_text(const char *said, const char *model, size_t vocab, int32_t **tokens_n,
                              size_t *n, sinkproof_error *error);

// Opens the tokenizer at `path`, or, if that is NULL, the one beside the model.
bool words_open_tokenizer(const char *path, const char *model, sinkproof_tokenizer **tokenizer,
                          sinkproof_error *error);

// Appends the ids of text, prompt or chat.
bool words_encode_ids(const text_words *words, const sinkproof_tokenizer *tokenizer,
                      sinkproof_ids *ids, sinkproof_error *error);

// Reads standard input or a file completely; the caller frees it.
bool words_read_file(const char *path, uint8_t **bytes, size_t *length, sinkproof_error *error);

// The text of the ids as a quoted JSON string on one line, which the caller frees.
char *words_quote_ids(const sinkproof_tokenizer *tokenizer, size_t n, const int32_t *id_n,
                      sinkproof_error *error);

#endif
