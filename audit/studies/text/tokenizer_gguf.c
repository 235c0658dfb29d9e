// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The tokenizer inside a GGUF file, as far as it is a byte-level BPE: the tokens in the order of
// their ids, what kind each is, the merges, and the name of the pattern that splits a text.
// Sources: doc/99-bibliography.md#llama-cpp.
#include "audit/studies/text/chatml.h"
#include "audit/studies/text/parts.h"

#include <stdlib.h>
#include <string.h>

// llama.cpp's names of patterns, and whether a piece that is a token stays whole.
static const struct {
    const char *name, *pattern;
    bool whole_first;
} patterns[] = {
    {"gpt-2", split_gpt2, false},      {"gpt-4o", split_o200k, false},
    {"llama-bpe", split_llama3, true}, {"llama3", split_llama3, true},
    {"qwen2", split_qwen2, false},     {"smollm", split_digits, false},
};

// Kinds of tokens that a text can spell out as a whole.
enum { TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_OF_USER = 4 };

#define KEY(name) "tokenizer.ggml." name

static bool refuse_key(const listed_reader *r, const gguf_file *file, const char *key,
                       const char *expected) {
    const gguf_pair *pair = sinkproof_gguf_find(file, key);
    char found[80] = "nothing";
    if (pair != NULL) sinkproof_gguf_value_text(pair, found, sizeof found);
    return sinkproof_fail(r->error, "%.300s: expected %s to be %s, found %s", r->t->name, key,
                          expected, found);
}

static const gguf_pair *find_array(const gguf_file *file, const char *key, gguf_type element) {
    const gguf_pair *pair = sinkproof_gguf_find(file, key);
    bool good = pair != NULL && pair->type == GGUF_ARRAY && pair->element == element;
    return good ? pair : NULL;
}

static bool read_pattern(listed_reader *r, const gguf_file *file, const char **pattern) {
    const gguf_pair *pre = sinkproof_gguf_find(file, KEY("pre"));
    for (size_t p = 0; pre != NULL && p < sizeof patterns / sizeof *patterns; p++) {
        if (!sinkproof_gguf_is_text(pre, patterns[p].name)) continue;
        *pattern = patterns[p].pattern;
        r->t->bpe.whole_first = patterns[p].whole_first;
        return true;
    }
    return refuse_key(r, file, KEY("pre"),
                      "\"gpt-2\", \"gpt-4o\", \"llama-bpe\", \"qwen2\" or \"smollm\"");
}

static int kind_of_token(const gguf_pair *kinds, size_t i) {
    const uint8_t *at = kinds->at + 4 * i;
    return at[0] | at[1] << 8; // kinds are small
}

// Control tokens and those of a user are special; all others are spelt in GPT-2's alphabet.
static bool read_tokens(listed_reader *r, const gguf_pair *tokens, const gguf_pair *kinds) {
    for (int special = 0; special < 2; special++) {
        const uint8_t *at = tokens->at;
        for (size_t i = 0; i < tokens->count; i++) {
            const char *text;
            size_t length;
            sinkproof_gguf_next_string(&at, &text, &length);
            int kind = kinds != NULL ? kind_of_token(kinds, i) : 0;
            bool whole = kind >= TOKEN_UNKNOWN && kind <= TOKEN_OF_USER;
            if (whole != (special == 1)) continue;
            if (whole ? !tokenizer_add_special(r->t, text, length, (int64_t)i, false, r->error)
                      : !listed_add_token(r, text, length, (int64_t)i))
                return false;
        }
    }
    return true;
}

static bool read_merges(listed_reader *r, const gguf_pair *merges) {
    const uint8_t *at = merges->at;
    for (size_t i = 0; i < merges->count; i++) {
        const char *line;
        size_t length;
        sinkproof_gguf_next_string(&at, &line, &length);
        if (!listed_add_merge_line(r, line, length)) return false;
    }
    return true;
}

static bool read_template(listed_reader *r, const gguf_file *file) {
    const gguf_pair *pair = sinkproof_gguf_find(file, "tokenizer.chat_template");
    if (pair == NULL || pair->type != GGUF_STRING) return true;
    return chatml_take_template(r->t, (const char *)pair->at, pair->count, r->error);
}

static bool read_file(listed_reader *r, const gguf_file *file) {
    const gguf_pair *model = sinkproof_gguf_find(file, KEY("model")),
                    *tokens = find_array(file, KEY("tokens"), GGUF_STRING),
                    *kinds = find_array(file, KEY("token_type"), GGUF_I32),
                    *merges = find_array(file, KEY("merges"), GGUF_STRING);
    const char *pattern = NULL;
    r->t->bpe.drops = true;
    if (model == NULL || !sinkproof_gguf_is_text(model, "gpt2"))
        return refuse_key(r, file, KEY("model"), "\"gpt2\": a byte-level BPE");
    if (tokens == NULL) return refuse_key(r, file, KEY("tokens"), "an array of strings");
    if (merges == NULL) return refuse_key(r, file, KEY("merges"), "an array of strings");
    if (kinds == NULL ? sinkproof_gguf_find(file, KEY("token_type")) != NULL
                      : kinds->count != tokens->count)
        return refuse_key(r, file, KEY("token_type"), "an int32 for each token");
    return read_pattern(r, file, &pattern) && read_tokens(r, tokens, kinds) &&
           read_merges(r, merges) && read_template(r, file) &&
           tokenizer_finish(r->t, pattern, r->error);
}

bool tokenizer_read_gguf(const gguf_file *file, const char *name, sinkproof_tokenizer **tokenizer,
                         sinkproof_error *error) {
    listed_reader r = {.t = tokenizer_new(name, "GGUF", error), .error = error};
    bool good = r.t != NULL && read_file(&r, file);
    free(r.bytes);
    *tokenizer = good ? r.t : NULL;
    if (!good) sinkproof_tokenizer_free(r.t);
    return good;
}
