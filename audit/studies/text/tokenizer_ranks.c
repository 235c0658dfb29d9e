// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads a tiktoken file: a line for each token, with its bytes in base64 and its rank, which is its
// id. The file has no special tokens: those of the two supported encodings follow the ranks.
#include "audit/studies/text/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPT2_RANKS = 50256, O200K_RANKS = 199998, HARMONY_SPECIALS = 1090 };

// The value of a base64 digit, or -1.
static int base64_digit(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Decodes padded base64 to `out`; false: it is invalid.
static bool base64_decode(const uint8_t *text, size_t length, uint8_t *out, size_t *n) {
    *n = 0;
    if (length == 0 || length % 4 != 0) return false;
    size_t padding = text[length - 1] != '=' ? 0 : text[length - 2] != '=' ? 1 : 2;
    for (size_t at = 0; at < length; at += 4) {
        size_t digits = at + 4 < length ? 4 : 4 - padding;
        uint32_t bits = 0;
        for (size_t i = 0; i < 4; i++) {
            int value = i < digits ? base64_digit(text[at + i]) : 0;
            if (value < 0) return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t i = 0; i + 1 < digits; i++) out[(*n)++] = (uint8_t)(bits >> (16 - 8 * i));
        if (digits < 4 && (bits & (digits == 3 ? 0xffu : 0xffffu)) != 0) return false;
    }
    return true;
}

// Parses one line without its end: "IQ== 0".
static bool read_line(sinkproof_tokenizer *t, const uint8_t *line, size_t length, size_t number,
                      uint8_t *out, sinkproof_error *error) {
    const uint8_t *space = memchr(line, ' ', length);
    size_t coded = space != NULL ? (size_t)(space - line) : 0, digits = length - coded, n = 0;
    int64_t rank = 0;
    bool good = space != NULL && base64_decode(line, coded, out, &n) && digits > 1 && digits < 10;
    for (size_t i = coded + 1; good && i < length; i++) {
        good = line[i] >= '0' && line[i] <= '9';
        rank = 10 * rank + (line[i] - '0');
    }
    if (!good)
        return sinkproof_fail(
            error, "%.300s: line %zu: expected base64, a space and a rank, found '%.*s'", t->name,
            number, (int)(length < 60 ? length : 60), (const char *)line);
    return vocabulary_add(&t->bpe.vocabulary, out, n, rank, true, t->name, error);
}

static bool read_lines(sinkproof_tokenizer *t, const uint8_t *bytes, size_t length,
                       sinkproof_error *error) {
    uint8_t *out = malloc(length + 4);
    bool good = out != NULL || sinkproof_fail(error, "%.300s: no memory", t->name);
    for (size_t at = 0, number = 1; good && at < length; number++) {
        const uint8_t *newline = memchr(bytes + at, '\n', length - at);
        size_t end = newline != NULL ? (size_t)(newline - bytes) : length;
        size_t next = end < length ? end + 1 : length;
        if (end > at && bytes[end - 1] == '\r') end--;
        if (end > at) good = read_line(t, bytes + at, end - at, number, out, error);
        at = next;
    }
    free(out);
    size_t n = t->bpe.vocabulary.n;
    if (good && t->bpe.vocabulary.n_ids != n)
        return sinkproof_fail(error, "%.300s: expected the ranks 0 to %zu, found %zu as well",
                              t->name, n - 1, t->bpe.vocabulary.n_ids - 1);
    return good;
}

static bool add_special(sinkproof_tokenizer *t, const char *spelling, size_t id,
                        sinkproof_error *error) {
    return tokenizer_add_special(t, spelling, strlen(spelling), (int64_t)id, false, error);
}

// The special tokens of o200k_harmony by their distance from the last rank; all others are reserved
// and spelt with their ids. 200018 has two spellings.
static bool add_harmony(sinkproof_tokenizer *t, size_t ranks, sinkproof_error *error) {
    static const char *const named[21] = {
        [0] = "<|startoftext|>", [1] = "<|endoftext|>",   [4] = "<|return|>", [5] = "<|constrain|>",
        [7] = "<|channel|>",     [8] = "<|start|>",       [9] = "<|end|>",    [10] = "<|message|>",
        [14] = "<|call|>",       [20] = "<|endofprompt|>"};
    bool good = true;
    for (size_t s = 0; good && s < HARMONY_SPECIALS; s++) {
        char reserved[40];
        snprintf(reserved, sizeof reserved, "<|reserved_%zu|>", O200K_RANKS + s);
        const char *name = s < 21 ? named[s] : NULL;
        good = (name == NULL || add_special(t, name, ranks + s, error)) &&
               ((name != NULL && s != 20) || add_special(t, reserved, ranks + s, error));
    }
    return good;
}

bool tokenizer_parse_ranks(const uint8_t *bytes, size_t length, const char *name,
                           const char *pattern, sinkproof_tokenizer **tokenizer,
                           sinkproof_error *error) {
    *tokenizer = NULL;
    sinkproof_tokenizer *t = tokenizer_new(name, "tiktoken ranks", error);
    if (t == NULL) return false;
    bool good = read_lines(t, bytes, length, error);
    size_t ranks = t->bpe.vocabulary.n;
    if (pattern == NULL)
        pattern = ranks == GPT2_RANKS ? "gpt2" : ranks == O200K_RANKS ? "o200k" : "";
    bool gpt2 = strcmp(pattern, "gpt2") == 0, o200k = strcmp(pattern, "o200k") == 0;
    if (good && !gpt2 && !o200k)
        good = sinkproof_fail(error,
                              "%.300s: expected %d ranks (GPT-2) or %d (o200k), found %zu: say "
                              "which pattern splits its text, FILE,pattern=gpt2 or "
                              "FILE,pattern=o200k",
                              name, GPT2_RANKS, O200K_RANKS, ranks);
    t->bpe.by_bytes = t->bpe.whole_first = true;
    good = good &&
           (gpt2 ? add_special(t, "<|endoftext|>", ranks, error) : add_harmony(t, ranks, error)) &&
           tokenizer_finish(t, gpt2 ? split_gpt2 : split_o200k, error);
    if (good)
        *tokenizer = t;
    else
        sinkproof_tokenizer_free(t);
    return good;
}
