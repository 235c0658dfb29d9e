// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Encoding: special tokens are cut out, the text between them is split by the pattern, and each
// piece is merged. Decoding: the bytes of the ids are concatenated.
#include "audit/studies/text/parts.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- building

sinkproof_tokenizer *tokenizer_new(const char *name, const char *format, sinkproof_error *error) {
    sinkproof_tokenizer *t = calloc(1, sizeof *t);
    if (t != NULL) t->name = strdup(name);
    if (t == NULL || t->name == NULL) {
        free(t);
        sinkproof_fail(error, "%.300s: no memory for a tokenizer", name);
        return NULL;
    }
    t->format = format;
    return t;
}

void sinkproof_tokenizer_free(sinkproof_tokenizer *t) {
    if (t == NULL) return;
    for (size_t s = 0; s < t->n_special; s++) free(t->special_n[s].spelling);
    free(t->special_n);
    bpe_free(&t->bpe);
    splitter_free(t->splitter);
    free(t->chat_system);
    free(t->name);
    free(t);
}

// A spelling with an id of the vocabulary must be that token's; an id may have two spellings among
// the special tokens, and is decoded as the first.
static bool check_id(sinkproof_tokenizer *t, const char *spelling, size_t length, int64_t id,
                     sinkproof_error *error) {
    const token_vocabulary *v = &t->bpe.vocabulary;
    const vocabulary_token *there = vocabulary_token_at(v, id);
    int32_t found = vocabulary_find(v, (const uint8_t *)spelling, length);
    if (found >= 0 && found != id)
        return sinkproof_fail(error,
                              "%.300s: special token '%.60s' has id %lld, in the vocabulary %d",
                              t->name, spelling, (long long)id, (int)found);
    if (there == NULL)
        return vocabulary_add(&t->bpe.vocabulary, (const uint8_t *)spelling, length, id, false,
                              t->name, error);
    if (there->length == length && memcmp(v->bytes + there->at, spelling, length) == 0) return true;
    for (size_t s = 0; t->bpe.by_bytes && s < t->n_special; s++)
        if (t->special_n[s].id == id) return true;
    return sinkproof_fail(error, "%.300s: special token '%.60s': its id %lld is another token's",
                          t->name, spelling, (long long)id);
}

bool tokenizer_add_special(sinkproof_tokenizer *t, const char *spelling, size_t length, int64_t id,
                           bool late, sinkproof_error *error) {
    void *specials = t->special_n;
    bool good =
        sinkproof_make_room(&specials, &t->special_room, t->n_special, sizeof *t->special_n, error);
    t->special_n = specials;
    if (!good || !check_id(t, spelling, length, id, error)) return false;
    char *copy = malloc(length + 1);
    if (copy == NULL) return sinkproof_fail(error, "%.300s: no memory for a token", t->name);
    memcpy(copy, spelling, length);
    copy[length] = '\0';
    t->special_n[t->n_special++] = (special_token){copy, length, (int32_t)id, late};
    return true;
}

static int compare_spellings(const void *left, const void *right) {
    const special_token *a = left, *b = right;
    int order = memcmp(a->spelling, b->spelling, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : a->length < b->length ? -1 : a->length > b->length;
}

bool tokenizer_finish(sinkproof_tokenizer *t, const char *pattern, sinkproof_error *error) {
    if (t->n_special > 0)
        qsort(t->special_n, t->n_special, sizeof *t->special_n, compare_spellings);
    for (size_t s = 1; s < t->n_special; s++)
        if (compare_spellings(&t->special_n[s - 1], &t->special_n[s]) == 0)
            return sinkproof_fail(error, "%.300s: special token '%.60s' is there twice", t->name,
                                  t->special_n[s].spelling);
    return bpe_finish(&t->bpe, t->name, error) &&
           splitter_new(pattern, t->name, &t->splitter, error);
}

// ---- special tokens in a text

// The special tokens in [from, to) agree in their first `depth` bytes. Returns the first token
// whose next byte is at least c.
static size_t first_special_with(const sinkproof_tokenizer *t, size_t from, size_t to, size_t depth,
                                 int c) {
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const special_token *s = &t->special_n[middle];
        int here = depth < s->length ? (uint8_t)s->spelling[depth] : -1;
        if (here < c)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// The longest special token, late or not, at the start of the text; NULL: none.
static const special_token *special_at(const sinkproof_tokenizer *t, const uint8_t *text,
                                       size_t length, bool late) {
    const special_token *longest = NULL;
    size_t from = 0, to = t->n_special;
    for (size_t depth = 0; from < to && depth < length; depth++) {
        from = first_special_with(t, from, to, depth, text[depth]);
        to = first_special_with(t, from, to, depth, text[depth] + 1);
        const special_token *s = &t->special_n[from];
        if (from < to && s->length == depth + 1 && s->late == late) longest = s;
    }
    return longest;
}

// The arguments of encoding a text.
typedef struct encoding {
    const sinkproof_tokenizer *t;
    bpe_room *room;
    sinkproof_ids *ids;
    sinkproof_error *error;
} encoding;

static bool encode_plain(const encoding *e, const uint8_t *text, size_t length) {
    for (size_t at = 0, end; at < length; at = end)
        if (!splitter_next_end(e->t->splitter, text, length, at, &end, e->error) ||
            !bpe_encode_piece(&e->t->bpe, text + at, end - at, e->room, e->ids, e->error))
            return false;
    return true;
}

// Encodes around the special tokens that are not late, then, between them, around the late ones.
static bool encode_around(const encoding *e, const uint8_t *text, size_t length, bool late) {
    size_t plain = 0;
    for (size_t at = 0; at <= length; at++) {
        const special_token *s =
            at < length ? special_at(e->t, text + at, length - at, late) : NULL;
        if (s == NULL && at < length) continue;
        bool good = late ? encode_plain(e, text + plain, at - plain)
                         : encode_around(e, text + plain, at - plain, true);
        if (!good || (s != NULL && !ids_append(e->ids, s->id, e->error))) return false;
        if (s == NULL) break;
        plain = at + s->length;
        at = plain - 1;
    }
    return true;
}

bool sinkproof_text_encode(const sinkproof_tokenizer *t, const char *text, size_t length,
                           bool special, sinkproof_ids *ids, sinkproof_error *error) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t valid = utf8_valid(bytes, length);
    if (valid < length)
        return sinkproof_fail(error,
                              "the text: expected UTF-8, found the byte 0x%02x at offset %zu",
                              (unsigned)bytes[valid], valid);
    encoding e = {t, bpe_room_new(), ids, error};
    if (e.room == NULL)
        return sinkproof_fail(error, "no memory for a text of %s",
                              sinkproof_counted(length, "byte").text);
    bool good = special ? encode_around(&e, bytes, length, false) : encode_plain(&e, bytes, length);
    bpe_room_free(e.room);
    return good;
}

// ---- decoding

bool text_decode(const sinkproof_tokenizer *t, size_t n, const int32_t *id_n, char **text,
                 size_t *length, sinkproof_error *error) {
    const token_vocabulary *v = &t->bpe.vocabulary;
    *text = NULL;
    *length = 0;
    for (size_t i = 0; i < n; i++) {
        const vocabulary_token *token = vocabulary_token_at(v, id_n[i]);
        if (token == NULL)
            return sinkproof_fail(error, "%.300s: id %d is no token of it", t->name, (int)id_n[i]);
        *length += token->length;
    }
    char *at = *text = malloc(*length + 1);
    if (at == NULL)
        return sinkproof_fail(error, "no memory for %s of text",
                              sinkproof_counted(*length, "byte").text);
    for (size_t i = 0; i < n; i++) {
        const vocabulary_token *token = vocabulary_token_at(v, id_n[i]);
        memcpy(at, v->bytes + token->at, token->length);
        at += token->length;
    }
    *at = '\0';
    return true;
}

bool sinkproof_text_printable(const sinkproof_tokenizer *t, size_t n, const int32_t *id_n,
                              char **text, size_t *length, sinkproof_error *error) {
    static const char replacement[] = "\xef\xbf\xbd";
    char *raw;
    size_t raw_length, used = 0;
    if (!text_decode(t, n, id_n, &raw, &raw_length, error)) return false;
    char *out = malloc(3 * raw_length + 1);
    for (size_t at = 0; out != NULL && at < raw_length;) {
        size_t valid = utf8_valid((const uint8_t *)raw + at, raw_length - at);
        memcpy(out + used, raw + at, valid);
        used += valid;
        at += valid;
        if (at == raw_length) break;
        memcpy(out + used, replacement, 3);
        used += 3;
        at += utf8_fault_length((const uint8_t *)raw + at, raw_length - at);
    }
    free(raw);
    if (out == NULL)
        return sinkproof_fail(error, "no memory for %s of text",
                              sinkproof_counted(raw_length, "byte").text);
    out[used] = '\0';
    *text = out;
    *length = used;
    return true;
}

int32_t special_token_id(const sinkproof_tokenizer *t, const char *spelling) {
    for (size_t s = 0; s < t->n_special; s++)
        if (strcmp(t->special_n[s].spelling, spelling) == 0) return t->special_n[s].id;
    return -1;
}

sinkproof_tokenizer_facts sinkproof_tokenizer_about(const sinkproof_tokenizer *t) {
    size_t merges = t->bpe.n_merges;
    return (sinkproof_tokenizer_facts){t->format, t->name,      t->bpe.vocabulary.n,
                                       merges,    t->n_special, t->bpe.vocabulary.n_ids};
}
