// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the log-sum-exp of an attention kernel is: with the sink, or of the keys alone.
#include "audit/plugin/drill.h"

#include <string.h>

static const char *const words[LSE_KINDS] = {"with-sink", "without-sink"};

const char *lse_word(size_t kind) {
    return words[kind];
}

lse_kinds lse_of_kind(bool has, size_t kind) {
    return (lse_kinds){.has = has, .as = {kind == LSE_WITH_SINK, kind == LSE_OF_KEYS}};
}

bool lse_parse(const char *word, lse_kinds *kinds, sinkproof_error *error) {
    *kinds = lse_of_kind(word != NULL, LSE_WITH_SINK);
    if (word == NULL || strcmp(word, words[LSE_WITH_SINK]) == 0) return true;
    kinds->as[LSE_OF_KEYS] = true;
    if (strcmp(word, "either") == 0) return true;
    kinds->as[LSE_WITH_SINK] = false;
    return strcmp(word, words[LSE_OF_KEYS]) == 0 ||
           sinkproof_fail(
               error, "A9.lse: expected with-sink, without-sink or either, found '%.40s'", word);
}
