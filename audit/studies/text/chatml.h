// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A conversation as SmolLM2 was trained on it, by the template in its GGUF file: each message is
// <|im_start|> role, a new line, content, <|im_end|> and a new line; then <|im_start|>assistant and
// a new line, behind which the model continues.
#ifndef SINKPROOF_TEXT_CHATML_H
#define SINKPROOF_TEXT_CHATML_H

#include "audit/studies/text/harmony.h"

// Keeps what a file's tokenizer.chat_template says, if it is that template; any other is left
// aside. Returns false if memory runs out.
bool chatml_take_template(sinkproof_tokenizer *tokenizer, const char *text, size_t length,
                          sinkproof_error *error);
bool chatml_is_known(const sinkproof_tokenizer *tokenizer);

// Appends the conversation; without a system message in front, the template's own comes first.
bool chatml_render(const sinkproof_tokenizer *tokenizer, size_t n,
                   const sinkproof_message *message_n, sinkproof_ids *ids, sinkproof_error *error);

#endif
