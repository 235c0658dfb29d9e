// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/studies/text/conversation.h"

#include <string.h>

bool conversation_write_mark(const conversation_writer *w, const char *spelling) {
    int32_t id = special_token_id(w->tokenizer, spelling);
    if (id >= 0) return ids_append(w->ids, id, w->error);
    return sinkproof_fail(w->error, "%.300s: expected the special token %s%s", w->file, spelling,
                          w->found);
}

bool conversation_write_text(const conversation_writer *w, const char *words) {
    return sinkproof_text_encode(w->tokenizer, words, strlen(words), false, w->ids, w->error);
}
