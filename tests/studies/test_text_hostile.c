// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tokenizers that mean harm: each is refused with the file, what was expected and what was found.
#include "audit/studies/text/split.h"
#include "audit/studies/text/tokenizer.h"
#include "tests/shared/tap.h"

#include <string.h>

#define BYTE_LEVEL "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}"
#define MODEL(vocab, merges)                                                                       \
    "{" BYTE_LEVEL ", \"model\": {\"type\": \"BPE\", \"vocab\": " vocab ", \"merges\": " merges "}}"
static const struct {
    const char *file, *sentence;
} hostile[] = {
    {"", "expected a JSON object"},
    {"[]", "expected a JSON object"},
    {"{\"model\": {\"vocab\": {\"a\": 1, \"a\": 2}}}", "duplicate object key"},
    {"{" BYTE_LEVEL ", \"model\": 3}", "\"model\" to be an object, found 3"},
    {"{" BYTE_LEVEL "}", "\"model\" to be an object, found nothing"},
    {"{\"model\": {\"vocab\": {}, \"merges\": []}}", "\"pre_tokenizer\" to be ByteLevel"},
    {"{" BYTE_LEVEL ", \"normalizer\": {\"type\": \"NFC\"}}", "\"normalizer\" to be null"},
    {"{" BYTE_LEVEL ", \"truncation\": {}}", "\"truncation\" to be null"},
    {"{" BYTE_LEVEL ", \"post_processor\": {\"type\": \"Bert\"}}", "\"post_processor\" to be"},
    {"{" BYTE_LEVEL ", \"decoder\": []}", "\"decoder\" to be"},
    {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}}", "prefix space"},
    {"{" BYTE_LEVEL ", \"model\": {\"type\": \"WordPiece\"}}", "\"model.type\" to be \"BPE\""},
    {"{" BYTE_LEVEL ", \"model\": {\"vocab\": {}, \"dropout\": 0.1}}", "\"model.dropout\""},
    {"{" BYTE_LEVEL ", \"model\": {\"vocab\": {}, \"end_of_word_suffix\": \"</w>\"}}",
     "\"end_of_word_suffix\" to be empty"},
    {MODEL("[]", "[]"), "\"model.vocab\" to be an object"},
    {MODEL("{\"a\": -1}", "[]"), "an id below 4194304, found -1"},
    {MODEL("{\"a\": 4194304}", "[]"), "an id below 4194304, found 4194304"},
    {MODEL("{\"a\": 99999999999999999999}", "[]"), "too big integer"},
    {MODEL("{\"a\": 2147483648}", "[]"), "an id below 4194304, found 2147483648"},
    {MODEL("{\"a\": \"1\"}", "[]"), "a whole number, found \"1\""},
    {MODEL("{\"a\": 1.5}", "[]"), "a whole number, found 1.5"},
    {MODEL("{\"a\": null}", "[]"), "a whole number, found null"},
    {MODEL("{\"a\": 1, \"b\": 1}", "[]"), "its id 1 is another token's"},
    {MODEL("{\"\": 1}", "[]"), "expected bytes, found none"},
    {MODEL("{\"a\\u0000b\": 1}", "[]"), "NUL"},
    {MODEL("{\"a\": 1}", "{}"), "\"merges\" to be an array"},
    {MODEL("{\"a\": 1}", "[1]"), "pairs of tokens throughout, found 1"},
    {MODEL("{\"a\": 1}", "[[\"a\"]]"), "pairs of tokens throughout"},
    {MODEL("{\"a\": 1}", "[[\"a\", 2]]"), "pairs of tokens throughout"},
    {MODEL("{\"a\": 1}", "[\"a\"]"), "expected two tokens and a space, found 'a'"},
    {MODEL("{\"a\": 1}", "[\"a a a\"]"), "expected two tokens and a space"},
    {MODEL("{\"a\": 1}", "[\"a b\"]"), "merge 0: 'b' is no token of the vocabulary"},
    {MODEL("{\"a\": 1, \"b\": 2}", "[\"a b\"]"), "'a' and 'b' together are no token"},
    {MODEL("{\"a\": 1, \"b\": 2, \"ab\": 3}", "[\"a b\", [\"a\", \"b\"]]"),
     "merge 1 is merge 0 again"},
    {"{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": 1}, \"merges\": [], \"unk_token\": \"a\"}}",
     "none for 0x00"},
    {"{" BYTE_LEVEL ", \"added_tokens\": {}, \"model\": {\"vocab\": {}, \"merges\": []}}",
     "\"added_tokens\" to be an array"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [7], \"model\": {\"vocab\": {}, \"merges\": []}}",
     "\"added_tokens.content\" to be a string"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\"}], \"model\": {\"vocab\": {}, "
     "\"merges\": []}}",
     "\"added_tokens.id\" to be a whole number"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\", \"id\": 1, \"lstrip\": true}], "
     "\"model\": {\"vocab\": {}, \"merges\": []}}",
     "\"lstrip\" to be false"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\", \"id\": 1}], "
     "\"model\": {\"vocab\": {\"x\": 2}, \"merges\": []}}",
     "special token 'x' has id 1, in the vocabulary 2"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\", \"id\": 2}], "
     "\"model\": {\"vocab\": {\"y\": 2}, \"merges\": []}}",
     "its id 2 is another token's"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\", \"id\": 1}, {\"content\": \"x\", "
     "\"id\": 1}], \"model\": {\"vocab\": {}, \"merges\": []}}",
     "special token 'x' is there twice"},
    {"{" BYTE_LEVEL ", \"added_tokens\": [{\"content\": \"x\", \"id\": 1}, {\"content\": \"y\", "
     "\"id\": 1}], \"model\": {\"vocab\": {}, \"merges\": []}}",
     "special token 'y': its id 1 is another token's"},
};

static const struct {
    const char *pattern, *sentence;
} patterns[] = {{"", "a pattern of 1 to 4096 bytes"},
                {"a*", "matches no empty string"},
                {"(a", "is refused"},
                {"a{2,1}", "is refused"},
                {"\\w+", "an escape"},
                {"\\b", "an escape"},
                {"a\\", "an escape"},
                {"\\p{Greek}", "no general category"},
                {"\\p{Lu", "no general category"},
                {"\\p", "no general category"},
                {"[[:alpha:]]", "a class in a class"},
                {"[a&&b]", "an intersection"},
                {"[^]a]", "an empty class"},
                {"[^\\S]", "\\S in a class"},
                {"(?R)a", "a group"},
                {"(*ACCEPT)a", "a verb"},
                {"(?i:\\p{Lu})", "more than words"},
                {"(?<n>a)", "a group"},
                {"a$", "an anchor"},
                {"^a", "an anchor"},
                {"a{1,3}+", "a possessive count"},
                {"(?i:a", "more than words"}};

static bool refused(const char *file, size_t length, const char *sentence) {
    sinkproof_tokenizer *t;
    sinkproof_error error = {{0}};
    bool good = !tokenizer_parse_json((const uint8_t *)file, length, "harm.json", &t, &error) &&
                t == NULL && strstr(error.text, "harm.json") != NULL &&
                strstr(error.text, sentence) != NULL;
    if (!good) note("%.200s: expected '%s', found '%s'", file, sentence, error.text);
    sinkproof_tokenizer_free(t);
    return good;
}

static void test_hostile(void) {
    size_t wrong = 0, n = sizeof hostile / sizeof hostile[0];
    for (size_t i = 0; i < n; i++)
        wrong += !refused(hostile[i].file, strlen(hostile[i].file), hostile[i].sentence);
    ok(wrong == 0, "%zu files that mean harm, each refused with the file, expected and found", n);
    enum { DEEP = 1 << 20 };
    char *deep = malloc(DEEP);
    must(deep != NULL);
    memset(deep, '[', DEEP);
    memcpy(deep, "{\"model\":", 9);
    ok(refused(deep, DEEP, "expected a JSON object"), "a million brackets are refused");
    free(deep);
    size_t patterns_wrong = 0, n_patterns = sizeof patterns / sizeof patterns[0];
    for (size_t i = 0; i < n_patterns; i++) {
        text_splitter *s;
        sinkproof_error error = {{0}};
        bool good = !splitter_new(patterns[i].pattern, "harm.json", &s, &error) && s == NULL &&
                    strstr(error.text, patterns[i].sentence) != NULL;
        if (!good) note("%s: '%s'", patterns[i].pattern, error.text);
        patterns_wrong += !good;
    }
    ok(patterns_wrong == 0, "%zu patterns that engines read differently are refused", n_patterns);
}

// (?:a|a)+b takes 2^n steps where no b follows n letters: they are counted, and stopped.
static void test_slow_pattern(void) {
    text_splitter *s;
    sinkproof_error error = {{0}};
    char text[64];
    size_t end;
    memset(text, 'a', sizeof text);
    text[sizeof text - 2] = 'x'; // no b follows an a, and there is one
    text[sizeof text - 1] = 'b';
    must(splitter_new("(?:a|a)+b", "harm.json", &s, &error));
    bool good = !splitter_next_end(s, (const uint8_t *)text, sizeof text, 0, &end, &error);
    ok(good && strstr(error.text, "fails on the text: match limit exceeded") != NULL,
       "a pattern without end is stopped: %s", error.text);
    splitter_free(s);
}

static bool ranks_refused(const char *file, const char *pattern, const char *sentence) {
    sinkproof_tokenizer *t;
    sinkproof_error error = {{0}};
    bool good = !tokenizer_parse_ranks((const uint8_t *)file, strlen(file), "harm.tiktoken",
                                       pattern, &t, &error) &&
                t == NULL && strstr(error.text, sentence) != NULL;
    if (!good) note("%s: expected '%s', found '%s'", file, sentence, error.text);
    return good;
}

static void test_hostile_ranks(void) {
    bool good = ranks_refused("", "gpt2", "none for 0x00") &&
                ranks_refused("IQ== 0\n", NULL, "expected 50256 ranks (GPT-2) or 199998") &&
                ranks_refused("IQ== 0\n", "gpt3", "found 1") &&
                ranks_refused("IQ== 0\nIQ== 1\n", "gpt2", "is there twice, as 0 and as 1") &&
                ranks_refused("IQ== 0\nIg== 0\n", "gpt2", "its id 0 is another token's") &&
                ranks_refused("IQ== 1\n", "gpt2", "expected the ranks 0 to 0") &&
                ranks_refused("IQ==0\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("IQ= 0\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("IR== 0\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("I*== 0\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("==== 0\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("IQ== x\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("IQ== 99999999\n", "gpt2", "below 4194304") &&
                ranks_refused("IQ== 9999999999\n", "gpt2", "line 1: expected base64") &&
                ranks_refused("IQ== -1\n", "gpt2", "line 1: expected base64");
    ok(good, "files of ranks that mean harm are refused");
}

int main(void) {
    test_hostile();
    test_slow_pattern();
    test_hostile_ranks();
    return tap_done();
}
