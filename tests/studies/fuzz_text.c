// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes as a tokenizer, in each format that they may be, and as a conversation. Whatever
// opens encodes a text, and decodes what it encoded to that text again; bytes without a token are
// left out.
#include "audit/studies/text/harmony.h"
#include "audit/studies/text/parts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const char text[] = "hello there, it's   ABC 12345\n\n\xc3\xa9\xe2\x82\xac<|end|><|start|>";

// Whether `part` is the text without some of its bytes.
static bool is_within_text(const char *part, size_t length) {
    size_t found = 0;
    for (size_t i = 0; i < sizeof text - 1 && found < length; i++) found += text[i] == part[found];
    return found == length;
}

static void use(sinkproof_tokenizer *t) {
    sinkproof_error error;
    sinkproof_ids ids = {NULL, 0, 0};
    char *back = NULL;
    size_t length;
    if (sinkproof_text_encode(t, text, sizeof text - 1, true, &ids, &error)) {
        if (!text_decode(t, ids.n, ids.id_t, &back, &length, &error)) abort();
        if (!is_within_text(back, length)) abort();
        if (!t->bpe.drops && length != sizeof text - 1) abort();
    }
    const sinkproof_message user = {.role = "user", .content = text};
    ids.n = 0;
    (void)!sinkproof_harmony_render(t, 1, &user, &ids, &error);
    free(back);
    free(ids.id_t);
    sinkproof_tokenizer_free(t);
}

// The lists are two files: cut where an object ends, or in the middle.
static bool parse_lists(const uint8_t *bytes, size_t length, sinkproof_tokenizer **t,
                        sinkproof_error *error) {
    const uint8_t *end = length > 0 ? memchr(bytes, '}', length) : NULL;
    size_t cut = end != NULL ? (size_t)(end - bytes) + 1 : length / 2;
    return tokenizer_parse_lists(bytes, cut, bytes + cut, length - cut, "fuzz", t, error);
}

static void converse(const uint8_t *bytes, size_t length) {
    static sinkproof_tokenizer *known;
    sinkproof_error error;
    sinkproof_ids ids = {NULL, 0, 0};
    if (known == NULL &&
        !sinkproof_tokenizer_open("tests/vectors/text/tokenizer.json", &known, &error))
        abort();
    (void)!sinkproof_harmony_parse(known, bytes, length, "fuzz", &ids, &error);
    ids.n = 0;
    (void)!sinkproof_text_encode(known, (const char *)bytes, length, true, &ids, &error);
    free(ids.id_t);
}

static void read_gguf(const uint8_t *bytes, size_t length) {
    sinkproof_tokenizer *t;
    sinkproof_error error;
    gguf_file *file;
    if (!gguf_parse(bytes, length, "fuzz", &file, &error)) return;
    if (tokenizer_read_gguf(file, "fuzz", &t, &error)) use(t);
    sinkproof_gguf_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_tokenizer *t;
    sinkproof_error error;
    if (tokenizer_parse_json(bytes, length, "fuzz", &t, &error)) use(t);
    if (parse_lists(bytes, length, &t, &error)) use(t);
    if (tokenizer_parse_ranks(bytes, length, "fuzz", "gpt2", &t, &error)) use(t);
    if (tokenizer_parse_ranks(bytes, length, "fuzz", "o200k", &t, &error)) use(t);
    read_gguf(bytes, length);
    converse(bytes, length);
    return 0;
}
