// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A conversation as the tokens that GPT-OSS was trained on (OpenAI's harmony format): each message
// is <|start|> role, <|channel|> channel where it has one, <|message|> content <|end|>; after the
// last one <|start|>assistant, for the model to go on. Not known here: tools, calls, recipients.
// As in OpenAI's renderer, once the last of the assistant's messages is a final one, the analysis
// before the first final one is left out.
#ifndef SINKPROOF_TEXT_HARMONY_H
#define SINKPROOF_TEXT_HARMONY_H

#include "audit/studies/text/tokenizer.h"

typedef struct sinkproof_message {
    const char *role;      // system, developer, user or assistant
    const char *channel;   // of an assistant: analysis, commentary, final; NULL: none
    const char *content;   // of a system message NULL: the usual one, with the next two
    const char *reasoning; // low, medium, high; NULL: medium
    const char *date;      // "2025-06-28"; NULL: no line of it
} sinkproof_message;

// Appends the conversation. Where it does not begin with a system message the usual one stands
// first; a developer's content stands under "# Instructions". A special token's spelling in the
// content is text like any other.
bool sinkproof_harmony_render(const sinkproof_tokenizer *tokenizer, size_t n,
                              const sinkproof_message *message_n, sinkproof_ids *ids,
                              sinkproof_error *error);

// The same of a JSON array of objects with the members of a message.
bool sinkproof_harmony_parse(const sinkproof_tokenizer *tokenizer, const uint8_t *bytes,
                             size_t length, const char *name, sinkproof_ids *ids,
                             sinkproof_error *error);

#endif
