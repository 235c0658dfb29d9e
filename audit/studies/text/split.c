// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The pattern is checked before it is passed to PCRE2: syntax on which engines of regular
// expressions disagree is refused, and \s is written out, since PCRE2's own contains U+180E, which
// is not in White_Space since Unicode 6.3.
#include "audit/studies/text/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

const char split_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char split_o200k[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const char split_llama3[] = LLAMA3("\\p{N}{1,3}");
const char split_qwen2[] = LLAMA3("\\p{N}");
// White space before a digit ends a part of the text, as white space at the end does.
const char split_digits[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?![^\\s\\p{N}])|\\s+";

static const char white_space[] = "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}"
                                  "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

// Limits: steps of one match, its memory in KiB, bytes of a pattern, and of PCRE2's stack.
enum { STEPS = 10000000, KIBIBYTES = 1 << 18, MAX_PATTERN = 4096, STACK = 1 << 26 };

struct text_splitter {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *found;
    pcre2_jit_stack *stack;
    bool compiled; // to machine code
    char name[256];
};

// ---- reading the pattern

typedef struct reading {
    const char *at, *name;
    char *out;
    size_t used;
    bool in_class;
    sinkproof_error *error;
} reading;

static bool refuse_pattern(const reading *r, const char *what) {
    return sinkproof_fail(r->error, "%.300s: the pattern has %s at '%.40s': %s", r->name, what,
                          r->at,
                          "engines of regular expressions differ on it, it is not supported");
}

static void copy_pattern_text(reading *r, const char *text, size_t length) {
    memcpy(r->out + r->used, text, length);
    r->used += length;
}

// Writes out \s and \S.
static bool read_space(reading *r) {
    bool not = r->at[1] == 'S';
    if (not &&r->in_class) return refuse_pattern(r, "\\S in a class");
    if (!r->in_class) copy_pattern_text(r, not ? "[^" : "[", not ? 2 : 1);
    copy_pattern_text(r, white_space, sizeof white_space - 1);
    if (!r->in_class) copy_pattern_text(r, "]", 1);
    r->at += 2;
    return true;
}

// A general category: \p{L}, \p{Lu}, \P{N}, \pL.
static bool read_category(reading *r) {
    const char *name = r->at + 2;
    size_t length = name[0] == '{' ? strcspn(name, "}") + 1 : 1;
    size_t letters = name[0] == '{' ? length - 2 : 1;
    const char *first = name[0] == '{' ? name + 1 : name;
    bool good = first[0] != '\0' && strchr("CLMNPSZ", first[0]) != NULL &&
                (letters == 1 || (letters == 2 && first[1] >= 'a' && first[1] <= 'z')) &&
                (name[0] != '{' || name[length - 1] == '}');
    if (!good) return refuse_pattern(r, "a property that is no general category");
    copy_pattern_text(r, r->at, 2 + length);
    r->at += 2 + length;
    return true;
}

static bool read_escape(reading *r) {
    char c = r->at[1];
    if (c == 's' || c == 'S') return read_space(r);
    if (c == 'p' || c == 'P') return read_category(r);
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (c == '\0' || (uint8_t)c >= 0x80 || (letter && strchr("rntfdD", c) == NULL))
        return refuse_pattern(r, "an escape");
    copy_pattern_text(r, r->at, 2);
    r->at += 2;
    return true;
}

static bool read_in_class(reading *r) {
    if (r->at[0] == '[') return refuse_pattern(r, "a class in a class");
    if (r->at[0] == '&' && r->at[1] == '&') return refuse_pattern(r, "an intersection");
    r->in_class = r->at[0] != ']';
    copy_pattern_text(r, r->at++, 1);
    return true;
}

// "[" or "[^"; a "]" directly after it is a member for some engines and the end for others.
static bool read_class(reading *r) {
    size_t length = r->at[1] == '^' ? 2 : 1;
    if (r->at[length] == ']') return refuse_pattern(r, "an empty class");
    copy_pattern_text(r, r->at, length);
    r->at += length;
    r->in_class = true;
    return true;
}

// A (?i: group may contain only plain words: engines disagree on \p{Lu} under (?i).
static bool read_group(reading *r) {
    static const char *const known[] = {"(?:", "(?i:", "(?=", "(?!", "(?>"};
    if (r->at[1] == '*') return refuse_pattern(r, "a verb");
    size_t length = r->at[1] == '?' ? 0 : 1;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (strncmp(r->at, known[k], strlen(known[k])) == 0) length = strlen(known[k]);
    if (length == 0) return refuse_pattern(r, "a group");
    size_t plain = length == 4 ? strcspn(r->at + 4, "()[\\.") : 0;
    if (length == 4 && r->at[4 + plain] != ')') return refuse_pattern(r, "more than words in (?i:");
    copy_pattern_text(r, r->at, length);
    r->at += length;
    return true;
}

// Reads one element of the pattern.
static bool read_element(reading *r) {
    char c = r->at[0];
    if (c == '\\') return read_escape(r);
    if (r->in_class) return read_in_class(r);
    if (c == '[') return read_class(r);
    if (c == '(') return read_group(r);
    if (c == '^' || c == '$') return refuse_pattern(r, "an anchor");
    if (c == '}' && r->at[1] == '+') return refuse_pattern(r, "a possessive count");
    copy_pattern_text(r, r->at++, 1);
    return true;
}

// The pattern for PCRE2; the caller frees it.
static char *translate_pattern(const char *pattern, const char *name, sinkproof_error *error) {
    size_t length = strlen(pattern);
    if (length == 0 || length > MAX_PATTERN) {
        sinkproof_fail(error, "%.300s: expected a pattern of 1 to %d bytes, found %zu", name,
                       MAX_PATTERN, length);
        return NULL;
    }
    reading r = {.at = pattern, .name = name, .error = error};
    r.out = malloc(length * sizeof white_space + 4);
    bool good = r.out != NULL || sinkproof_fail(error, "%.300s: no memory for the pattern", name);
    while (good && *r.at != '\0') good = read_element(&r);
    if (good) {
        r.out[r.used] = '\0';
        return r.out;
    }
    free(r.out);
    return NULL;
}

// ---- PCRE2

static bool tell_pcre_error(const char *name, const char *what, int code, sinkproof_error *error) {
    PCRE2_UCHAR text[200];
    if (pcre2_get_error_message(code, text, sizeof text) < 0) text[0] = '\0';
    return sinkproof_fail(error, "%.300s: the pattern %s: %s", name, what, (const char *)text);
}

static bool compile_pattern(text_splitter *s, const char *pattern, sinkproof_error *error) {
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) return sinkproof_fail(error, "no memory for the pattern");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 50);
    s->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
    pcre2_compile_context_free(context);
    if (s->code == NULL) return tell_pcre_error(s->name, "is refused", code, error);
    uint32_t empty = 1;
    pcre2_pattern_info(s->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty)
        return sinkproof_fail(error, "%.255s: expected a pattern that matches no empty string",
                              s->name);
    return true;
}

// Compiles to machine code if PCRE2 supports this processor; the matches are the same without.
static bool prepare_match(text_splitter *s, sinkproof_error *error) {
    s->limits = pcre2_match_context_create(NULL);
    s->found = pcre2_match_data_create(1, NULL);
    if (s->limits == NULL || s->found == NULL)
        return sinkproof_fail(error, "no memory for the pattern");
    pcre2_set_match_limit(s->limits, STEPS);
    pcre2_set_heap_limit(s->limits, KIBIBYTES);
    if (pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE) != 0) return true;
    s->stack = pcre2_jit_stack_create(1 << 15, STACK, NULL);
    s->compiled = s->stack != NULL;
    if (s->compiled) pcre2_jit_stack_assign(s->limits, NULL, s->stack);
    return true;
}

bool splitter_new(const char *pattern, const char *name, text_splitter **splitter,
                  sinkproof_error *error) {
    *splitter = NULL;
    char *translated = translate_pattern(pattern, name, error);
    if (translated == NULL) return false;
    text_splitter *s = calloc(1, sizeof *s);
    bool good = s != NULL || sinkproof_fail(error, "%.300s: no memory for the pattern", name);
    if (good) snprintf(s->name, sizeof s->name, "%s", name);
    good = good && compile_pattern(s, translated, error) && prepare_match(s, error);
    free(translated);
    if (good)
        *splitter = s;
    else
        splitter_free(s);
    return good;
}

void splitter_free(text_splitter *s) {
    if (s == NULL) return;
    pcre2_code_free(s->code);
    pcre2_match_context_free(s->limits);
    pcre2_match_data_free(s->found);
    pcre2_jit_stack_free(s->stack);
    free(s);
}

bool splitter_next_end(const text_splitter *s, const uint8_t *text, size_t length, size_t from,
                       size_t *end, sinkproof_error *error) {
    uint32_t how = PCRE2_NO_UTF_CHECK | (s->compiled ? 0 : PCRE2_NO_JIT);
    int n = pcre2_match(s->code, text, length, from, how, s->found, s->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(s->code, text, length, from, how | PCRE2_NO_JIT, s->found, s->limits);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->found);
    *end = length;
    if (n == PCRE2_ERROR_NOMATCH) return true;
    if (n < 0) return tell_pcre_error(s->name, "fails on the text", n, error);
    *end = span[0] > from ? span[0] : span[1];
    return *end > from ||
           sinkproof_fail(error, "%.255s: the pattern matches an empty string", s->name);
}

void sinkproof_unicode_version(char version[24]) {
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) > 24 ||
        pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) < 0)
        strcpy(version, "unknown");
}

// ---- UTF-8

// The length of the character at text[0]. If it is invalid, *whole is false and the result is the
// length of its valid beginning. The range of the second byte depends on the first, which excludes
// overlong forms, surrogates and values beyond U+10FFFF.
static size_t character_length(const uint8_t *text, size_t length, bool *whole) {
    uint8_t c = text[0];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    uint8_t least = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t most = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    size_t i = 1;
    for (; i < n && i < length && text[i] >= least && text[i] <= most; i++) {
        least = 0x80;
        most = 0xbf;
    }
    *whole = n > 0 && i == n;
    return i;
}

size_t utf8_valid(const uint8_t *text, size_t length) {
    bool whole = true;
    size_t at = 0;
    while (at < length) {
        size_t n = character_length(text + at, length - at, &whole);
        if (!whole) break;
        at += n;
    }
    return at;
}

size_t utf8_fault_length(const uint8_t *text, size_t length) {
    bool whole;
    return character_length(text, length, &whole);
}
