// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes the ids of a conversation, in whatever format; private to this folder.
#ifndef SINKPROOF_TEXT_CONVERSATION_H
#define SINKPROOF_TEXT_CONVERSATION_H

#include "audit/studies/text/tokenizer.h"

typedef struct conversation_writer {
    const sinkproof_tokenizer *tokenizer;
    sinkproof_ids *ids;
    sinkproof_error *error;
    const char *file;  // that is named where a special token is missing
    const char *found; // what follows the missing token: ", found none"
} conversation_writer;

// One special token.
bool conversation_write_mark(const conversation_writer *w, const char *spelling);
// A text, in which nothing is a special token.
bool conversation_write_text(const conversation_writer *w, const char *words);

#endif
