// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof tokens`: converts text to token ids and back, with the tokenizer at a path.
#include "audit/command/command.h"
#include "audit/command/text.h"
#include "audit/studies/text/split.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    text_words words; // `tokens`: ids to decode
    const char *path, *lines, *json;
    bool pieces, plain, print;
} arguments;

static const struct argp_option argp_options[] = {
    {"text", KEPT(arguments, words.text), "TEXT|-", 0, "The ids of a text; - is standard input", 0},
    {"plain", KEPT(arguments, plain), 0, 0,
     "A special token's spelling in the text is text like any other", 0},
    {"prompt", KEPT(arguments, words.prompt), "TEXT|-", 0,
     "The ids of a user's message in the harmony format, or by the chat template of SmolLM2", 0},
    {"chat", KEPT(arguments, words.chat), "FILE|-", 0,
     "The ids of a conversation in the harmony format: a JSON array of {\"role\": ..., "
     "\"content\": ...}, an assistant's with \"channel\"; a system message may have \"reasoning\" "
     "and \"date\" in place of content",
     0},
    {"lines", KEPT(arguments, lines), "FILE|-", 0,
     "Many texts, each a JSON string on a line of its own: a line of ids each", 0},
    {"decode", KEPT(arguments, words.tokens), "IDS", 0,
     "The text of ids, or of @FILE, as a JSON string", 0},
    {"pieces", KEPT(arguments, pieces), 0, 0, "A line for each token: its id and its text", 0},
    {"json", KEPT(arguments, json), "FILE", 0, "The result as JSON; - is standard output", 0},
    {0}};

static void check_tokens_options(const arguments *in, struct argp_state *state) {
    const text_words *w = &in->words;
    int asked = (w->text != NULL) + (w->prompt != NULL) + (w->chat != NULL) + (in->lines != NULL) +
                (w->tokens != NULL);
    if (in->path == NULL) argp_error(state, "expected a PATH");
    if (asked > 1)
        argp_error(state, "expected one of --text, --prompt, --chat, --lines and --decode");
    if (in->plain && w->text == NULL && in->lines == NULL)
        argp_error(state, "--plain needs --text or --lines");
}

static error_t parse_tokens_option(int key, char *argument, struct argp_state *state) {
    arguments *in = state->input;
    if (option_keep(in, key, argument)) return 0;
    if (key == ARGP_KEY_ARG && in->path != NULL)
        argp_error(state, "one PATH, not also '%s'", argument);
    else if (key == ARGP_KEY_ARG)
        in->path = argument;
    else if (key == ARGP_KEY_END)
        check_tokens_options(in, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

// ---- printing

static void print_ids(const sinkproof_ids *ids) {
    for (size_t i = 0; i < ids->n; i++) printf("%s%d", i > 0 ? "," : "", (int)ids->id_t[i]);
    printf("\n");
}

static bool print_pieces(const sinkproof_tokenizer *t, const sinkproof_ids *ids,
                         sinkproof_error *error) {
    for (size_t i = 0; i < ids->n; i++) {
        char *piece = words_quote_ids(t, 1, &ids->id_t[i], error);
        if (piece == NULL) return false;
        printf("%8d  %s\n", (int)ids->id_t[i], piece);
        free(piece);
    }
    return true;
}

// {"ids": [...], "text": the decoded ids, "pieces": each token's text}.
static json_t *ids_json(const sinkproof_tokenizer *t, const sinkproof_ids *ids, bool pieces,
                        sinkproof_error *error) {
    json_t *result = json_object(), *array = json_array(), *texts_n = json_array();
    bool good = true;
    for (size_t i = 0; good && i < ids->n; i++) {
        char *piece;
        size_t length;
        json_array_append_new(array, json_integer(ids->id_t[i]));
        if (!pieces) continue;
        good = sinkproof_text_printable(t, 1, &ids->id_t[i], &piece, &length, error);
        if (good) json_array_append_new(texts_n, json_stringn(piece, length));
        if (good) free(piece);
    }
    json_object_set_new(result, "ids", array);
    if (pieces)
        json_object_set_new(result, "pieces", texts_n);
    else
        json_decref(texts_n);
    if (good) return result;
    json_decref(result);
    return NULL;
}

static bool show_ids(const arguments *in, const sinkproof_tokenizer *t, const sinkproof_ids *ids,
                     json_t *results, sinkproof_error *error) {
    if (in->json != NULL) {
        json_t *result = ids_json(t, ids, in->pieces, error);
        if (result == NULL) return false;
        json_array_append_new(results, result);
    }
    if (!in->print) return true;
    if (in->pieces) return print_pieces(t, ids, error);
    print_ids(ids);
    return true;
}

// ---- the requests

static bool encode_words(const arguments *in, const sinkproof_tokenizer *t, json_t *results,
                         sinkproof_error *error) {
    sinkproof_ids ids = {NULL, 0, 0};
    uint8_t *bytes = NULL;
    size_t length = 0;
    const char *text = in->words.text;
    bool good = true;
    if (in->plain && strcmp(text, "-") == 0) good = words_read_file(text, &bytes, &length, error);
    if (in->plain)
        good = good &&
               sinkproof_text_encode(t, bytes != NULL ? (const char *)bytes : text,
                                     bytes != NULL ? length : strlen(text), false, &ids, error);
    else
        good = words_encode_ids(&in->words, t, &ids, error);
    good = good && show_ids(in, t, &ids, results, error);
    free(bytes);
    free(ids.id_t);
    return good;
}

static bool encode_line(const arguments *in, const sinkproof_tokenizer *t, const char *line,
                        size_t length, size_t number, json_t *results, sinkproof_error *error) {
    sinkproof_ids ids = {NULL, 0, 0};
    json_t *text = json_loadb(line, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool good = json_is_string(text) ||
                sinkproof_fail(error, "%.300s: line %zu: expected a JSON string, found '%.*s'",
                               in->lines, number, (int)(length < 60 ? length : 60), line);
    good = good &&
           sinkproof_text_encode(t, json_string_value(text), json_string_length(text), !in->plain,
                                 &ids, error) &&
           show_ids(in, t, &ids, results, error);
    json_decref(text);
    free(ids.id_t);
    return good;
}

static bool encode_lines(const arguments *in, const sinkproof_tokenizer *t, json_t *results,
                         sinkproof_error *error) {
    uint8_t *bytes;
    size_t length, number = 1;
    if (!words_read_file(in->lines, &bytes, &length, error)) return false;
    bool good = true;
    for (size_t at = 0; good && at < length; number++) {
        const uint8_t *newline = memchr(bytes + at, '\n', length - at);
        size_t end = newline != NULL ? (size_t)(newline - bytes) : length;
        good = encode_line(in, t, (const char *)bytes + at, end - at, number, results, error);
        at = end + 1;
    }
    free(bytes);
    return good;
}

static bool decode_ids(const arguments *in, const sinkproof_tokenizer *t, json_t *results,
                       sinkproof_error *error) {
    int32_t *id_n;
    size_t n, vocab = sinkproof_tokenizer_about(t).ids, length;
    char *text;
    if (!command_parse_tokens(in->words.tokens, vocab, &id_n, &n, error)) return false;
    bool good = sinkproof_text_printable(t, n, id_n, &text, &length, error);
    if (good) {
        json_array_append_new(results, json_pack("{s:o}", "text", json_stringn(text, length)));
        free(text);
    }
    char *quoted = good ? words_quote_ids(t, n, id_n, error) : NULL;
    if (quoted != NULL && in->print) printf("%s\n", quoted);
    good = quoted != NULL;
    free(quoted);
    free(id_n);
    return good;
}

static void describe_tokenizer(const arguments *in, const sinkproof_tokenizer *t, json_t *results) {
    const sinkproof_tokenizer_facts f = sinkproof_tokenizer_about(t);
    char unicode[24];
    sinkproof_unicode_version(unicode);
    json_array_append_new(results,
                          json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "file", f.path, "format",
                                    f.format, "tokens", (json_int_t)f.tokens, "ids",
                                    (json_int_t)f.ids, "merges", (json_int_t)f.merges, "special",
                                    (json_int_t)f.special, "unicode", unicode));
    if (!in->print) return;
    printf("%s\nformat      %s\ntokens      %zu, %zu of them special; ids below %zu\n", f.path,
           f.format, f.tokens, f.special, f.ids);
    if (f.merges > 0) printf("merges      %zu\n", f.merges);
    printf("classes     of Unicode %s, PCRE2's\n", unicode);
}

static bool answer_tokens(const arguments *in, const sinkproof_tokenizer *t, json_t *results,
                          sinkproof_error *error) {
    const text_words *w = &in->words;
    if (in->lines != NULL) return encode_lines(in, t, results, error);
    if (w->tokens != NULL) return decode_ids(in, t, results, error);
    if (w->text != NULL || w->prompt != NULL || w->chat != NULL)
        return encode_words(in, t, results, error);
    describe_tokenizer(in, t, results);
    return true;
}

int cmd_tokens(int argc, char **argv) {
    static const char document[] =
        "Text to token ids and back. Without an option: what the tokenizer is. The ids of --text "
        "are "
        "what --tokens of other commands takes, also from @FILE.\vPATH is a model's directory with "
        "a tokenizer in it, a tokenizer.json, a vocab.json with merges.txt beside it, or a "
        "tiktoken "
        "file of ranks: GPT-2's (50256), o200k_base's (199998, whose special tokens are "
        "o200k_harmony's), or any other as FILE,pattern=gpt2 or FILE,pattern=o200k.";
    const struct argp argp = {argp_options, parse_tokens_option, "PATH", document, NULL, NULL,
                              NULL};
    arguments in = {.path = NULL};
    sinkproof_error error = {{0}};
    sinkproof_tokenizer *t = NULL;
    command_parse_line(&argp, argc, argv, &in);
    in.print = in.json == NULL || strcmp(in.json, "-") != 0;
    json_t *results = json_array();
    bool good = words_open_tokenizer(in.path, in.path, &t, &error) &&
                answer_tokens(&in, t, results, &error);
    sinkproof_tokenizer_free(t);
    if (good) return exit_with_results(in.json, "tokens", EXIT_HOLDS, results);
    json_decref(results);
    return exit_bad_input("tokens", &error);
}
