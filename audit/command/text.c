// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads the text of a command line and finds its tokenizer.
#include "audit/command/text.h"

#include "audit/command/command.h"
#include "audit/studies/text/harmony.h"
#include "base/words.h"
#include "model/bytes.h"
#include "model/gguf.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool read_input(uint8_t **bytes, size_t *length, sinkproof_error *error) {
    void *all = NULL;
    size_t n = 0, room = 0;
    bool good = true;
    do {
        good = n <= SINKPROOF_MAX_JSON ? sinkproof_make_room(&all, &room, n, 1, error)
                                       : sinkproof_fail(error, "standard input: more than %d bytes",
                                                        SINKPROOF_MAX_JSON);
        if (good) n += fread((uint8_t *)all + n, 1, room - n, stdin);
    } while (good && !feof(stdin) && !ferror(stdin));
    if (good && ferror(stdin)) good = sinkproof_fail(error, "standard input: cannot be read");
    if (!good) {
        free(all);
        return false;
    }
    *bytes = all;
    *length = n;
    return true;
}

bool words_read_file(const char *path, uint8_t **bytes, size_t *length, sinkproof_error *error) {
    return strcmp(path, "-") == 0 ? read_input(bytes, length, error)
                                  : sinkproof_read_file(path, bytes, length, error);
}

// The advice when the tokenizer is elsewhere, or another one is meant.
#define REMEDY "\"sinkproof tokens PATH\" gives the ids by another, \"run\" takes --tokenizer PATH"

// A GGUF file has a tokenizer in it, or else it stands for its directory, as a checkpoint's file.
static bool open_tokenizer_beside(const char *model, sinkproof_tokenizer **tokenizer,
                                  sinkproof_error *error) {
    struct stat about;
    const char *slash = strrchr(model, '/');
    bool there = stat(model, &about) == 0;
    if (!there) return sinkproof_fail(error, "%.300s: has no tokenizer beside it: " REMEDY, model);
    if (S_ISDIR(about.st_mode)) {
        sinkproof_error why;
        return sinkproof_tokenizer_open(model, tokenizer, &why) ||
               sinkproof_fail(error, "%.700s: " REMEDY, why.text);
    }
    if (sinkproof_tokenizer_open(model, tokenizer, error)) return true;
    sinkproof_error inside = *error;
    char *folder = slash != NULL ? strndup(model, (size_t)(slash - model) + 1) : strdup(".");
    if (folder == NULL) return sinkproof_fail(error, "no memory for a path");
    bool good = sinkproof_tokenizer_open(folder, tokenizer, error);
    if (!good) sinkproof_fail(error, "%.700s: " REMEDY, inside.text);
    free(folder);
    return good;
}

bool words_open_tokenizer(const char *path, const char *model, sinkproof_tokenizer **tokenizer,
                          sinkproof_error *error) {
    *tokenizer = NULL;
    return path != NULL ? sinkproof_tokenizer_open(path, tokenizer, error)
                        : open_tokenizer_beside(model, tokenizer, error);
}

static bool encode_prompt(const sinkproof_tokenizer *t, const char *prompt, sinkproof_ids *ids,
                          sinkproof_error *error) {
    const sinkproof_message user = {.role = "user", .content = prompt};
    return sinkproof_harmony_render(t, 1, &user, ids, error);
}

// Encodes words of the command line, or standard input, which may contain no zero byte in a prompt.
static bool encode_words(const text_words *w, const sinkproof_tokenizer *t, const char *words,
                         sinkproof_ids *ids, sinkproof_error *error) {
    uint8_t *bytes = NULL;
    size_t length = strlen(words);
    if (strcmp(words, "-") == 0 && !read_input(&bytes, &length, error)) return false;
    const char *text = bytes != NULL ? (const char *)bytes : words;
    char *prompt = w->text == NULL ? strndup(text, length) : NULL;
    bool good;
    if (w->text != NULL)
        good = sinkproof_text_encode(t, text, length, true, ids, error);
    else if (prompt == NULL || strlen(prompt) < length)
        good = sinkproof_fail(error, prompt == NULL ? "no memory for a prompt"
                                                    : "a prompt: expected text, found a zero byte");
    else
        good = encode_prompt(t, prompt, ids, error);
    free(prompt);
    free(bytes);
    return good;
}

bool words_encode_ids(const text_words *w, const sinkproof_tokenizer *t, sinkproof_ids *ids,
                      sinkproof_error *error) {
    uint8_t *bytes;
    size_t length;
    if (w->chat == NULL)
        return encode_words(w, t, w->text != NULL ? w->text : w->prompt, ids, error);
    if (!words_read_file(w->chat, &bytes, &length, error)) return false;
    bool good = sinkproof_harmony_parse(t, bytes, length, w->chat, ids, error);
    free(bytes);
    return good;
}

// Turns text:TEXT, prompt:TEXT and chat:FILE into the options of these names.
static text_words split_text_prefix(const text_words *words) {
    text_words w = *words;
    const char *tokens = w.tokens;
    if (tokens == NULL) return w;
    if (strncmp(tokens, "text:", 5) == 0) w.text = tokens + 5;
    if (strncmp(tokens, "prompt:", 7) == 0) w.prompt = tokens + 7;
    if (strncmp(tokens, "chat:", 5) == 0) w.chat = tokens + 5;
    return w;
}

// Checks that the ids are inside the model's vocabulary.
static bool check_ids(const sinkproof_ids *ids, const sinkproof_tokenizer *t, size_t vocab,
                      sinkproof_error *error) {
    const char *path = sinkproof_tokenizer_about(t).path;
    if (ids->n == 0) return sinkproof_fail(error, "expected text, found none: a run needs a token");
    for (size_t i = 0; i < ids->n; i++)
        if ((size_t)ids->id_t[i] >= vocab)
            return sinkproof_fail(error,
                                  "%.300s: the text has token %d: the model's vocabulary has 0 to "
                                  "%zu: the tokenizer is another model's",
                                  path, (int)ids->id_t[i], vocab - 1);
    return true;
}

// ---- a beginning -------------------------------------------------------------------------------

// The number in "bos_token_id" of a directory's config.json, or -1.
static long long config_beginning(const char *folder) {
    char *path = NULL;
    long long id = -1;
    if (asprintf(&path, "%s/config.json", folder) < 0) return id;
    json_t *config = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *said = json_object_get(config, "bos_token_id");
    if (json_is_integer(said)) id = (long long)json_integer_value(said);
    json_decref(config);
    free(path);
    return id;
}

// The number in a GGUF file's metadata, or -1.
static long long gguf_beginning(const char *path) {
    gguf_file *file;
    sinkproof_error why;
    char text[32], *end = text;
    long long id = -1;
    if (!sinkproof_gguf_open(path, &file, &why)) return id;
    const gguf_pair *pair = sinkproof_gguf_find(file, "tokenizer.ggml.bos_token_id");
    if (pair != NULL) id = strtoll(sinkproof_gguf_value_text(pair, text, sizeof text), &end, 10);
    sinkproof_gguf_close(file);
    return end != text && *end == '\0' ? id : -1;
}

// The token with which the model's texts begin, as its files say.
static bool find_beginning(const char *model, size_t vocab, int32_t *id, sinkproof_error *error) {
    struct stat about;
    bool there = stat(model, &about) == 0;
    long long said = !there                   ? -1
                     : S_ISDIR(about.st_mode) ? config_beginning(model)
                                              : gguf_beginning(model);
    if (said < 0 || (size_t)said >= vocab || said > INT32_MAX)
        return sinkproof_fail(error,
                              "%.300s: expected a bos_token_id below %zu for bos+, found none: say "
                              "the id itself, as in 1+repeat:64",
                              model, vocab);
    *id = (int32_t)said;
    return true;
}

// The length of a beginning such as "bos" or "5,3" before a '+', or 0: there is none.
static size_t beginning_length(const char *tokens) {
    size_t ids = strspn(tokens, "0123456789,");
    size_t length = strncmp(tokens, "bos", 3) == 0 ? 3 : ids;
    return tokens[length] == '+' ? length : 0;
}

// Tokens such as bos+repeat:64: the ids of the beginning, then the others.
static bool parse_with_beginning(const text_words *words, size_t length, const char *model,
                                 size_t vocab, sinkproof_tokenizer **tokenizer, int32_t **tokens_n,
                                 size_t *n, sinkproof_error *error) {
    text_words rest = *words;
    int32_t *first_n = malloc(sizeof *first_n), *joined_n = NULL;
    size_t firsts = 1;
    bool good = first_n != NULL || sinkproof_fail(error, "no memory for a beginning");
    rest.tokens = words->tokens + length + 1;
    if (good && beginning_length(rest.tokens) > 0)
        good = sinkproof_fail(error, "\"%.80s\": expected one beginning, found two", words->tokens);
    if (good && strncmp(words->tokens, "bos", 3) == 0)
        good = find_beginning(model, vocab, first_n, error);
    else if (good) {
        char *ids = strndup(words->tokens, length);
        free(first_n);
        first_n = NULL;
        good = ids != NULL ? command_parse_tokens(ids, vocab, &first_n, &firsts, error)
                           : sinkproof_fail(error, "no memory for a beginning");
        free(ids);
    }
    good = good && words_parse_tokens(&rest, model, vocab, tokenizer, tokens_n, n, error);
    if (good) {
        joined_n = malloc((firsts + *n) * sizeof *joined_n);
        if (joined_n == NULL) good = sinkproof_fail(error, "no memory for the tokens");
        if (joined_n != NULL) memcpy(joined_n, first_n, firsts * sizeof *joined_n);
        if (joined_n != NULL) memcpy(joined_n + firsts, *tokens_n, *n * sizeof *joined_n);
        free(*tokens_n);
        *tokens_n = joined_n;
        *n += firsts;
    }
    free(first_n);
    if (good) return true;
    sinkproof_tokenizer_free(*tokenizer);
    *tokenizer = NULL;
    return false;
}

bool words_parse_tokens(const text_words *words, const char *model, size_t vocab,
                        sinkproof_tokenizer **tokenizer, int32_t **tokens_n, size_t *n,
                        sinkproof_error *error) {
    size_t beginning = words->tokens != NULL ? beginning_length(words->tokens) : 0;
    const text_words w = split_text_prefix(words);
    sinkproof_ids ids = {NULL, 0, 0};
    *tokenizer = NULL;
    if (beginning > 0)
        return parse_with_beginning(words, beginning, model, vocab, tokenizer, tokens_n, n, error);
    if (w.text == NULL && w.prompt == NULL && w.chat == NULL)
        return command_parse_tokens(w.tokens, vocab, tokens_n, n, error);
    if (!words_open_tokenizer(w.tokenizer, model, tokenizer, error)) return false;
    if (!words_encode_ids(&w, *tokenizer, &ids, error) ||
        !check_ids(&ids, *tokenizer, vocab, error)) {
        free(ids.id_t);
        sinkproof_tokenizer_free(*tokenizer);
        *tokenizer = NULL;
        return false;
    }
    *tokens_n = ids.id_t;
    *n = ids.n;
    return true;
}

bool command_tokens_from_text(const char *said, const char *model, size_t vocab, int32_t **tokens_n,
                              size_t *n, sinkproof_error *error) {
    sinkproof_tokenizer *tokenizer;
    const text_words words = {.tokens = said};
    bool good = words_parse_tokens(&words, model, vocab, &tokenizer, tokens_n, n, error);
    sinkproof_tokenizer_free(tokenizer);
    return good;
}

char *words_quote_ids(const sinkproof_tokenizer *t, size_t n, const int32_t *id_n,
                      sinkproof_error *error) {
    char *text;
    size_t length;
    if (!sinkproof_text_printable(t, n, id_n, &text, &length, error)) return NULL;
    json_t *string = json_stringn(text, length);
    char *quoted = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (quoted == NULL)
        sinkproof_fail(error, "no memory for %s of text", sinkproof_counted(length, "byte").text);
    json_decref(string);
    free(text);
    return quoted;
}
