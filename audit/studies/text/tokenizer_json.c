// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads tokenizer.json of Hugging Face tokenizers, as far as it describes a byte-level BPE; and the
// older pair vocab.json and merges.txt, which shares its vocabulary and merges. Every member that
// would change an id must have the supported value.
#include "audit/studies/text/parts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef listed_reader reader;

// The error "FILE: expected WHERE to be EXPECTED, found ...".
static bool refuse_value(const reader *r, const char *where, const char *expected,
                         const json_t *found) {
    char *text = found == NULL ? NULL : json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);
    sinkproof_fail(r->error, "%.300s: expected \"%s\" to be %s, found %.120s", r->t->name, where,
                   expected, text == NULL ? "nothing" : text);
    free(text);
    return false;
}

static bool is_string(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool is_absent(const json_t *value) {
    return value == NULL || json_is_null(value);
}

// Absent, null, or an empty string.
static bool is_empty(const json_t *value) {
    return is_absent(value) || (json_is_string(value) && json_string_length(value) == 0);
}

static bool is_type(const json_t *object, const char *type) {
    return json_is_object(object) && is_string(json_object_get(object, "type"), type);
}

// ---- vocabulary and merges

static bool add_token(reader *r, const char *spelling, const json_t *id) {
    if (!json_is_integer(id)) return refuse_value(r, spelling, "a token's id, a whole number", id);
    return listed_add_token(r, spelling, strlen(spelling), json_integer_value(id));
}

static bool read_vocabulary(reader *r, json_t *vocab) {
    const char *spelling;
    json_t *id;
    json_object_foreach(vocab, spelling, id) {
        if (!add_token(r, spelling, id)) return false;
    }
    return true;
}

static bool read_merges(reader *r, const json_t *merges) {
    size_t i;
    json_t *merge;
    if (!json_is_array(merges)) return refuse_value(r, "merges", "an array", merges);
    json_array_foreach(merges, i, merge) {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        bool pair = json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right);
        if (!pair && !json_is_string(merge))
            return refuse_value(r, "merges", "pairs of tokens throughout", merge);
        if (pair ? !listed_add_merge(r, json_string_value(left), json_string_length(left),
                                     json_string_value(right), json_string_length(right))
                 : !listed_add_merge_line(r, json_string_value(merge), json_string_length(merge)))
            return false;
    }
    return true;
}

// ---- the other members of tokenizer.json

static bool read_model(reader *r, const json_t *model) {
    const json_t *type = json_object_get(model, "type"), *vocab = json_object_get(model, "vocab");
    static const char *const unused[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (!json_is_object(model)) return refuse_value(r, "model", "an object", model);
    if (!is_absent(type) && !is_string(type, "BPE"))
        return refuse_value(r, "model.type", "\"BPE\"", type);
    if (!json_is_object(vocab)) return refuse_value(r, "model.vocab", "an object", vocab);
    if (!is_absent(json_object_get(model, "dropout")))
        return refuse_value(r, "model.dropout", "null", json_object_get(model, "dropout"));
    for (size_t u = 0; u < 2; u++)
        if (!is_empty(json_object_get(model, unused[u])))
            return refuse_value(r, unused[u], "empty", json_object_get(model, unused[u]));
    r->t->bpe.whole_first = json_is_true(json_object_get(model, "ignore_merges"));
    r->t->bpe.drops = is_absent(json_object_get(model, "unk_token"));
    return read_vocabulary(r, json_object_get(model, "vocab")) &&
           read_merges(r, json_object_get(model, "merges"));
}

// Refuses a token that matches more or less of the text than its spelling.
static bool read_special(reader *r, const json_t *token) {
    static const char *const unused[] = {"single_word", "lstrip", "rstrip"};
    const json_t *content = json_object_get(token, "content"), *id = json_object_get(token, "id");
    if (!json_is_string(content) || json_string_length(content) == 0)
        return refuse_value(r, "added_tokens.content", "a string", token);
    if (!json_is_integer(id)) return refuse_value(r, "added_tokens.id", "a whole number", token);
    for (size_t u = 0; u < 3; u++)
        if (json_is_true(json_object_get(token, unused[u])))
            return refuse_value(r, unused[u], "false", token);
    return tokenizer_add_special(r->t, json_string_value(content), json_string_length(content),
                                 json_integer_value(id),
                                 json_is_true(json_object_get(token, "normalized")), r->error);
}

static bool read_specials(reader *r, const json_t *tokens) {
    size_t i;
    json_t *token;
    if (is_absent(tokens)) return true;
    if (!json_is_array(tokens)) return refuse_value(r, "added_tokens", "an array", tokens);
    json_array_foreach(tokens, i, token) {
        if (!read_special(r, token)) return false;
    }
    return true;
}

// Whether it is a ByteLevel step; its own pattern, if used, is GPT-2's.
static bool is_byte_level(const json_t *step, bool own_pattern) {
    const json_t *uses = json_object_get(step, "use_regex");
    return is_type(step, "ByteLevel") && !json_is_true(json_object_get(step, "add_prefix_space")) &&
           own_pattern == !json_is_false(uses);
}

// For the steps [Split by a pattern, ByteLevel without one]: the pattern, or NULL.
static const char *split_pattern(const json_t *steps) {
    const json_t *split = json_array_get(steps, 0);
    const json_t *pattern = json_object_get(json_object_get(split, "pattern"), "Regex");
    bool good = json_array_size(steps) == 2 && is_type(split, "Split") && json_is_string(pattern) &&
                is_string(json_object_get(split, "behavior"), "Isolated") &&
                !json_is_true(json_object_get(split, "invert")) &&
                is_byte_level(json_array_get(steps, 1), false);
    return good ? json_string_value(pattern) : NULL;
}

// The steps [Digits, each alone; ByteLevel with its own pattern] of SmolLM.
static bool splits_digits(const json_t *steps) {
    const json_t *digits = json_array_get(steps, 0);
    return json_array_size(steps) == 2 && is_type(digits, "Digits") &&
           json_is_true(json_object_get(digits, "individual_digits")) &&
           is_byte_level(json_array_get(steps, 1), true);
}

static bool read_pattern(reader *r, const json_t *pre, const char **pattern) {
    const json_t *steps = is_type(pre, "Sequence") ? json_object_get(pre, "pretokenizers") : NULL;
    *pattern = steps == NULL ? NULL : splits_digits(steps) ? split_digits : split_pattern(steps);
    if (is_byte_level(pre, true)) *pattern = split_gpt2;
    return *pattern != NULL || refuse_value(r, "pre_tokenizer",
                                            "ByteLevel, Digits (individual) and ByteLevel, or "
                                            "Split (Regex, Isolated) and ByteLevel "
                                            "without a pattern of its own, and no prefix space",
                                            pre);
}

// No other step may change an id.
static bool check_others(reader *r, const json_t *root) {
    static const char *const nothing[] = {"normalizer", "truncation", "padding"};
    const json_t *post = json_object_get(root, "post_processor");
    for (size_t m = 0; m < 3; m++)
        if (!is_absent(json_object_get(root, nothing[m])))
            return refuse_value(r, nothing[m], "null", json_object_get(root, nothing[m]));
    if (!is_absent(post) && !is_type(post, "ByteLevel"))
        return refuse_value(r, "post_processor", "ByteLevel or null", post);
    const json_t *decoder = json_object_get(root, "decoder");
    return is_absent(decoder) || is_type(decoder, "ByteLevel") ||
           refuse_value(r, "decoder", "ByteLevel or null", decoder);
}

static bool read_root(reader *r, json_t *root) {
    const char *pattern;
    return check_others(r, root) &&
           read_pattern(r, json_object_get(root, "pre_tokenizer"), &pattern) &&
           read_model(r, json_object_get(root, "model")) &&
           read_specials(r, json_object_get(root, "added_tokens")) &&
           tokenizer_finish(r->t, pattern, r->error);
}

// ---- both formats

static json_t *load_json(const uint8_t *bytes, size_t length, const char *name,
                         sinkproof_error *error) {
    json_error_t found;
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, &found);
    if (json_is_object(root)) return root;
    sinkproof_fail(error, "%.300s: expected a JSON object: line %d: %s", name, found.line,
                   root != NULL ? "found something else" : found.text);
    json_decref(root);
    return NULL;
}

// One merge per line; lines that begin with #version are skipped.
static bool read_merge_lines(reader *r, const char *text, size_t length) {
    static const char version[] = "#version";
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        size_t end = newline != NULL ? (size_t)(newline - text) : length, next = end + 1;
        if (end > at && text[end - 1] == '\r') end--;
        bool comment =
            end - at >= sizeof version - 1 && memcmp(text + at, version, sizeof version - 1) == 0;
        if (!comment && !listed_add_merge_line(r, text + at, end - at)) return false;
        at = next;
    }
    return true;
}

// GPT-2's only special token is in its vocabulary.
static bool read_lists(reader *r, json_t *vocab, const uint8_t *merges, size_t merges_length) {
    static const char end[] = "<|endoftext|>";
    if (!read_vocabulary(r, vocab) || !read_merge_lines(r, (const char *)merges, merges_length))
        return false;
    int32_t id = vocabulary_find(&r->t->bpe.vocabulary, (const uint8_t *)end, sizeof end - 1);
    return (id < 0 || tokenizer_add_special(r->t, end, sizeof end - 1, id, false, r->error)) &&
           tokenizer_finish(r->t, split_gpt2, r->error);
}

bool tokenizer_parse_lists(const uint8_t *vocab, size_t vocab_length, const uint8_t *merges,
                           size_t merges_length, const char *name, sinkproof_tokenizer **tokenizer,
                           sinkproof_error *error) {
    *tokenizer = NULL;
    const char *format = merges != NULL ? "vocab and merges" : "tokenizer.json";
    json_t *root = load_json(vocab, vocab_length, name, error);
    reader r = {.error = error};
    if (root != NULL) r.t = tokenizer_new(name, format, error);
    bool good = r.t != NULL && (merges != NULL ? read_lists(&r, root, merges, merges_length)
                                               : read_root(&r, root));
    free(r.bytes);
    json_decref(root);
    if (good)
        *tokenizer = r.t;
    else
        sinkproof_tokenizer_free(r.t);
    return good;
}

bool tokenizer_parse_json(const uint8_t *bytes, size_t length, const char *name,
                          sinkproof_tokenizer **tokenizer, sinkproof_error *error) {
    return tokenizer_parse_lists(bytes, length, NULL, 0, name, tokenizer, error);
}
