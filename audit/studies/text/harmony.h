// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A conversation as the tokens that GPT-OSS was trained on (OpenAI's harmony format): each message
// is <|start|> role, <|channel|> channel if it has one, <|message|> content <|end|>; after the last
// message <|start|>assistant, which the model continues. Not supported: tools, calls, recipients.
// As in OpenAI's renderer, if the assistant's last message is final, the analysis before the first
// final message is left out.
#ifndef SINKPROOF_TEXT_HARMONY_H
#define SINKPROOF_TEXT_HARMONY_H

#include "audit/studies/text/tokenizer.h"

typedef struct sinkproof_message {
    const char *role;      // system, developer, user or assistant
    const char *channel;   // of the assistant: analysis, commentary, final; NULL: none
    const char *content;   // NULL in a system message: the default text, with the next two members
    const char *reasoning; // low, medium, high; NULL: medium
    const char *date;      // "2025-06-28"; NULL: no date line
} sinkproof_message;

// Appends the conversation. If it does not begin with a system message, the default one is added
// first; a developer's content follows "# Instructions". A special token's spelling in the content
// is ordinary text. A tokenizer with a chat template of its own (chatml.h) renders by that.
bool sinkproof_harmony_render(const sinkproof_tokenizer *tokenizer, size_t n,
                              const sinkproof_message *message_n, sinkproof_ids *ids,
                              sinkproof_error *error);

// The same from a JSON array of objects with the members of a message.
bool sinkproof_harmony_parse(const sinkproof_tokenizer *tokenizer, const uint8_t *bytes,
                             size_t length, const char *name, sinkproof_ids *ids,
                             sinkproof_error *error);

#endif
