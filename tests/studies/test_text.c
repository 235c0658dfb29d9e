// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Text and ids: answers worked out by hand from the merges of tests/vectors/text/make.py, in each
// format; merging against a search of all pairs, step by step; a million equal bytes; and files
// that mean harm, each refused with its own sentence.
#include "audit/studies/text/harmony.h"
#include "audit/studies/text/split.h"
#include "base/splitmix.h"
#include "model/bytes.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <string.h>

#define FOLDER "tests/vectors/text/"
enum { MOST = 64, END = 276 }; // END: <|endoftext|>

static const char *const formats[] = {FOLDER "tokenizer.json", FOLDER "vocab.json",
                                      FOLDER "ranks.tiktoken,pattern=gpt2"};

static sinkproof_tokenizer *opened(const char *path) {
    sinkproof_tokenizer *t;
    sinkproof_error error = {{0}};
    need(sinkproof_tokenizer_open(path, &t, &error), &error);
    return t;
}

// ---- answers by hand

typedef struct answer {
    const char *text;
    int32_t id_n[MOST]; // -1 ends them
} answer;

static const answer answers[] = {{"hello world", {259, 268, -1}},
                                 {"abc", {64, 260, -1}},        // bc comes before ab
                                 {"aaaaa", {263, 64, -1}},      // the leftmost pair first
                                 {"it's", {72, 83, 269, -1}},   // the contraction is a piece
                                 {"IT'S", {40, 51, 6, 50, -1}}, // of lower case only
                                 {"   a", {270, 220, 64, -1}},  // two spaces, then " a"
                                 {"   ", {270, 220, -1}},       // none follows
                                 {"     ", {271, 220, -1}},     // two pairs, and the pair of them
                                 {"\n\n\n", {272, 198, -1}},    //
                                 {"\xc3\xa9", {273, -1}},       // one character, two bytes
                                 {"1234", {275, 19, -1}},       // any number of digits
                                 {"\xe1\xa0\x8e"
                                  "a",
                                  {157, 254, 236, 64, -1}}, // U+180E is no white space
                                 {" \xc2\x85"
                                  "a",
                                  {220, 126, 227, 64, -1}},                        // U+0085 is
                                 {"hello<|endoftext|>hello", {259, END, 259, -1}}, //
                                 {"<|endoftext", {27, 91, 68, 77, 67, 78, 69, 83, 68, 87, 83, -1}},
                                 {"", {-1}}};

static bool equal(const sinkproof_ids *ids, const int32_t *id_n) {
    size_t n = 0;
    while (id_n[n] >= 0 && n < ids->n && ids->id_t[n] == id_n[n]) n++;
    return n == ids->n && id_n[n] == -1;
}

// The ids of a text, and the text of the ids.
static bool goes_and_comes(const sinkproof_tokenizer *t, const answer *a, bool special) {
    sinkproof_error error = {{0}};
    sinkproof_ids ids = {NULL, 0, 0};
    char *back = NULL;
    size_t length = strlen(a->text), found = 0;
    bool good = sinkproof_text_encode(t, a->text, length, special, &ids, &error) &&
                equal(&ids, a->id_n) && text_decode(t, ids.n, ids.id_t, &back, &found, &error) &&
                found == length && memcmp(back, a->text, length) == 0;
    if (!good) note("%s: %s", a->text, error.text);
    for (size_t i = 0; !good && i < ids.n; i++) note("%d", (int)ids.id_t[i]);
    free(back);
    free(ids.id_t);
    return good;
}

static void test_answers(void) {
    for (size_t f = 0; f < 3; f++) {
        sinkproof_tokenizer *t = opened(formats[f]);
        size_t wrong = 0, n = sizeof answers / sizeof answers[0];
        for (size_t i = 0; i < n; i++) wrong += !goes_and_comes(t, &answers[i], true);
        ok(wrong == 0, "%s: %zu texts give the ids worked out by hand, and come back", formats[f],
           n);
        sinkproof_tokenizer_free(t);
    }
}

// The longest special token that begins at a place; a late one only in what the others leave.
static void test_special(void) {
    static const answer found[] = {{"<|end|><|start|>", {282, -1}},
                                   {"<|end|><|start|", {278, 27, 91, 82, 83, 64, 81, 83, 91, -1}},
                                   {"<|end|><|end|><|start|>", {278, 282, -1}},
                                   {"<<|end|>", {27, 278, -1}},
                                   {"ahello there", {64, 283, -1}},
                                   {"hello the<|end|>re", {259, 220, 83, 256, 278, 81, 68, -1}}};
    static const answer plain[] = {{"<|end|>", {27, 91, 68, 77, 67, 91, 29, -1}}};
    sinkproof_tokenizer *t = opened(formats[0]);
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        wrong += !goes_and_comes(t, &found[i], true);
    ok(wrong == 0, "special tokens: the longest at a place, late ones last");
    ok(goes_and_comes(t, &plain[0], false), "special tokens are text where they are not asked for");
    ok(special_token_id(t, "<|end|>") == 278 && special_token_id(t, "hello") == -1,
       "special tokens have their ids, others none");
    sinkproof_tokenizer_free(t);
}

// o200k's pattern: digits by threes, upper case before lower, contractions of either case.
static void test_o200k(void) {
    static const answer found[] = {
        {"1234", {275, 19, -1}},
        {"12 12", {274, 220, 274, -1}},
        {"IT'S'x", {40, 51, 6, 50, 6, 87, -1}},
        {"hello's", {259, 269, -1}},
        {"?/\n\n\n", {30, 14, 272, 198, -1}},
        {"<|endofprompt|>", {276 + 20, -1}},
        {"<|start|><|end|>", {276 + 8, 276 + 9, -1}},
        {"<|reserved_199998|>x",
         {27, 91, 81, 68, 82, 68, 81, 85, 68, 67, 62, 16, 24, 24, 24, 24, 23, 91, 29, 87, -1}},
        {"<|reserved_200000|>", {278, -1}}};
    sinkproof_tokenizer *t = opened(FOLDER "ranks.tiktoken,pattern=o200k");
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        wrong += !goes_and_comes(t, &found[i], true);
    ok(wrong == 0, "o200k's pattern and special tokens: %zu texts", sizeof found / sizeof found[0]);
    sinkproof_tokenizer_free(t);
}

// ---- merging against a search of all pairs

// Each step looks at all neighbours; the lowest rank, the leftmost.
static size_t merge_slowly(const token_vocabulary *v, const uint8_t *piece, size_t n,
                           int32_t *id_n) {
    size_t end_p[MOST], parts = n;
    for (size_t i = 0; i < n; i++) end_p[i] = i + 1;
    for (;;) {
        int32_t best = -1;
        size_t where = 0;
        for (size_t p = 0; p + 1 < parts; p++) {
            size_t from = p == 0 ? 0 : end_p[p - 1];
            int32_t id = vocabulary_find(v, piece + from, end_p[p + 1] - from);
            if (id >= 0 && (best < 0 || id < best)) {
                best = id;
                where = p;
            }
        }
        if (best < 0) break;
        memmove(end_p + where, end_p + where + 1, (parts - where - 1) * sizeof *end_p);
        parts--;
    }
    for (size_t p = 0, from = 0; p < parts; from = end_p[p++])
        id_n[p] = vocabulary_find(v, piece + from, end_p[p] - from);
    return parts;
}

// A vocabulary of every byte and of drawn words over few letters.
static void draw_words(bpe_merges *bpe, uint64_t *state) {
    sinkproof_error error;
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        must(vocabulary_add(&bpe->vocabulary, &byte, 1, b, true, "drawn", &error));
    }
    for (int32_t id = 256; id < 400; id++) {
        uint8_t word[8];
        size_t length = sinkproof_draw_from_to(state, 2, 7);
        for (size_t i = 0; i < length; i++)
            word[i] = (uint8_t)('a' + sinkproof_draw_from_to(state, 0, 2));
        if (vocabulary_find(&bpe->vocabulary, word, length) < 0)
            must(vocabulary_add(&bpe->vocabulary, word, length, id, true, "drawn", &error));
    }
    must(bpe_finish(bpe, "drawn", &error));
}

static void test_merging(void) {
    uint64_t state = 1;
    size_t wrong = 0, pieces = 0;
    sinkproof_error error;
    bpe_room *room = bpe_room_new();
    must(room != NULL);
    for (int v = 0; v < 20; v++) {
        bpe_merges bpe = {.by_bytes = true};
        draw_words(&bpe, &state);
        for (int i = 0; i < 500; i++, pieces++) {
            uint8_t piece[MOST];
            int32_t id_n[MOST + 1];
            sinkproof_ids ids = {NULL, 0, 0};
            size_t n = sinkproof_draw_from_to(&state, 1, MOST - 1);
            for (size_t b = 0; b < n; b++)
                piece[b] = (uint8_t)('a' + sinkproof_draw_from_to(&state, 0, 2));
            id_n[merge_slowly(&bpe.vocabulary, piece, n, id_n)] = -1;
            must(bpe_encode_piece(&bpe, piece, n, room, &ids, &error));
            wrong += !equal(&ids, id_n);
            free(ids.id_t);
        }
        bpe_free(&bpe);
    }
    bpe_room_free(room);
    ok(wrong == 0, "merging by a heap is merging by search: %zu pieces, %zu differ", pieces, wrong);
}

// A search of all pairs would take 10^11 steps.
static void test_million(void) {
    enum { N = 1000000 };
    char *text = malloc(N);
    must(text != NULL);
    memset(text, 'a', N);
    sinkproof_tokenizer *t = opened(formats[1]);
    sinkproof_error error;
    sinkproof_ids ids = {NULL, 0, 0};
    bool good = sinkproof_text_encode(t, text, N, true, &ids, &error) && ids.n == N / 4;
    for (size_t i = 0; good && i < ids.n; i++) good = ids.id_t[i] == 263;
    ok(good, "a piece of %d equal bytes: %zu tokens of four", N, ids.n);
    free(ids.id_t);
    free(text);
    sinkproof_tokenizer_free(t);
}

// ---- text that is none, and bytes that are no text

static void test_utf8(void) {
    static const struct {
        const char *text;
        int offset;
    } wrong[] = {{"ab\xff", 2},        {"\x80", 0},         {"\xc0\x80", 0},
                 {"a\xe0\x9f\xbf", 1}, {"\xed\xa0\x80", 0}, {"abc\xf4\x90\x80\x80", 3},
                 {"\xc3", 0},          {"x\xe2\x82", 1},    {"\xf0\x8f\xbf\xbf", 0}};
    static const char *const right[] = {"\xc2\x80",     "\xe0\xa0\x80",     "\xed\x9f\xbf",
                                        "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    sinkproof_tokenizer *t = opened(formats[0]);
    size_t bad = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sinkproof_error error = {{0}};
        sinkproof_ids ids = {NULL, 0, 0};
        char said[32];
        snprintf(said, sizeof said, "at offset %d", wrong[i].offset);
        bad += sinkproof_text_encode(t, wrong[i].text, strlen(wrong[i].text), true, &ids, &error) ||
               strstr(error.text, said) == NULL || ids.n != 0;
        free(ids.id_t);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        bad += utf8_valid((const uint8_t *)right[i], strlen(right[i])) != strlen(right[i]);
    ok(bad == 0, "what is not UTF-8 is refused with its offset, what just is passes");
    static const int32_t cut[] = {64, 158, 224, 65, 187, -1}; // a, the bytes E2 82, b, FF
    char *text = NULL;
    size_t length = 0;
    sinkproof_error error;
    bool good = sinkproof_text_printable(t, 5, cut, &text, &length, &error) &&
                strcmp(text, "a\xef\xbf\xbd"
                             "b\xef\xbf\xbd") == 0;
    ok(good, "what was cut is one U+FFFD for each character that had begun");
    free(text);
    ok(!text_decode(t, 1, (const int32_t[]){999}, &text, &length, &error) &&
           strstr(error.text, "id 999 is no token") != NULL,
       "an id of no token is refused");
    sinkproof_tokenizer_free(t);
}

// ---- conversations

static const char rendered[] =
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: high\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every "
    "message.<|end|><|start|>developer<|message|># Instructions\n\nBe brief.<|end|>"
    "<|start|>user<|message|>Say <|end|><|end|><|start|>assistant<|channel|>final<|message|>No."
    "<|end|><|start|>assistant";

static void test_harmony(void) {
    static const sinkproof_message chat[] = {
        {.role = "system", .reasoning = "high", .date = "2025-06-28"},
        {.role = "developer", .content = "Be brief."},
        {.role = "user", .content = "Say <|end|>"},
        {.role = "assistant", .channel = "analysis", .content = "Left out."},
        {.role = "assistant", .channel = "final", .content = "No."}};
    sinkproof_tokenizer *t = opened(FOLDER "ranks.tiktoken,pattern=o200k");
    sinkproof_error error = {{0}};
    sinkproof_ids ids = {NULL, 0, 0};
    char *text = NULL;
    size_t length, ends = 0;
    bool good = sinkproof_harmony_render(t, 5, chat, &ids, &error) &&
                text_decode(t, ids.n, ids.id_t, &text, &length, &error) &&
                strcmp(text, rendered) == 0;
    for (size_t i = 0; i < ids.n; i++) ends += ids.id_t[i] == 276 + 9;
    ok(good && ends == 4,
       "a conversation is rendered as published; a spelling in it is no token: %s", error.text);
    ids.n = 0;
    const sinkproof_message open[] = {chat[3], chat[4], chat[3]}; // the last is no final one
    bool kept = sinkproof_harmony_render(t, 3, open, &ids, &error);
    size_t channels = 0;
    for (size_t i = 0; i < ids.n; i++) channels += ids.id_t[i] == 276 + 7;
    ok(kept && channels == 3, "analysis is left out after a final answer alone");
    free(text);
    free(ids.id_t);
    static const struct {
        const char *chat, *sentence;
    } wrong[] = {
        {"{}", "expected a JSON array of messages"},
        {"[]", "found none"},
        {"[1]", "found something else"},
        {"[{\"role\": \"user\"}]", "of role user: expected content"},
        {"[{\"role\": \"tool\", \"content\": \"\"}]", "found 'tool'"},
        {"[{\"role\": \"user\", \"content\": \"\", \"channel\": \"final\"}]", "no channel"},
        {"[{\"role\": \"user\", \"content\": 1}]", "\"content\" of a message to be a string"},
        {"[{\"role\": \"user\", \"content\": \"\", \"to\": \"x\"}]", "found something else"},
        {"[{\"role\": \"system\", \"reasoning\": \"none\"}]", "low, medium or high"},
        {"[{\"role\": \"user\", \"content\": \"\", \"date\": \"x\"}]", "are of a system"}};
    size_t bad = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sinkproof_ids none = {NULL, 0, 0};
        bool refuses =
            !sinkproof_harmony_parse(t, (const uint8_t *)wrong[i].chat, strlen(wrong[i].chat),
                                     "chat.json", &none, &error) &&
            strstr(error.text, wrong[i].sentence) != NULL;
        if (!refuses) note("%s: %s", wrong[i].chat, error.text);
        bad += !refuses;
        free(none.id_t);
    }
    ok(bad == 0, "conversations that are none are refused");
    sinkproof_tokenizer_free(t);
    t = opened(formats[1]);
    sinkproof_ids none = {NULL, 0, 0};
    ok(!sinkproof_harmony_render(t, 5, chat, &none, &error) &&
           strstr(error.text, "expected the special token <|start|>, found none") != NULL,
       "a tokenizer without harmony's tokens is told from one with them");
    free(none.id_t);
    sinkproof_tokenizer_free(t);
}

int main(void) {
    test_answers();
    test_special();
    test_o200k();
    test_merging();
    test_million();
    test_utf8();
    test_harmony();
    return tap_done();
}
