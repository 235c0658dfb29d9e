// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds the files that a path means.
#include "audit/studies/text/parts.h"

#include "model/bytes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 4096 };

// Names of a vocabulary and its merges in transformers and at OpenAI.
static const char *const pairs[][2] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

static bool is_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && !S_ISDIR(about.st_mode);
}

static bool file_beside(const char *path, const char *name, char out[PATH]) {
    const char *slash = strrchr(path, '/');
    int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    int length = snprintf(out, PATH, "%.*s%s", folder, path, name);
    return length < PATH && is_file(out);
}

static bool find_file_inside(const char *directory, const char *name, char out[PATH]) {
    return snprintf(out, PATH, "%s/%s", directory, name) < PATH && is_file(out);
}

// The only file in a directory that ends in .tiktoken.
static bool find_ranks_inside(const char *directory, char out[PATH]) {
    size_t found = 0;
    DIR *folder = opendir(directory);
    if (folder == NULL) return false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length <= 9 || strcmp(entry->d_name + length - 9, ".tiktoken") != 0) continue;
        found += found < 2 && find_file_inside(directory, entry->d_name, out);
    }
    closedir(folder);
    return found == 1;
}

// Whether it is a tokenizer.json: an object with a "model" in braces. A vocabulary maps tokens, of
// which one may be "model" and another "merges", to numbers.
static bool is_tokenizer_json(const uint8_t *bytes, size_t length) {
    const uint8_t *at = bytes, *end = bytes + length;
    if (memmem(bytes, length, "\"merges\"", 8) == NULL) return false;
    while ((at = memmem(at, (size_t)(end - at), "\"model\"", 7)) != NULL) {
        for (at += 7; at < end && strchr(" \t\r\n:", *at) != NULL && *at != '\0';) at++;
        if (at < end && *at == '{') return true;
    }
    return false;
}

static bool open_lists(const char *path, const uint8_t *vocab, size_t length,
                       sinkproof_tokenizer **tokenizer, sinkproof_error *error) {
    char merges_path[PATH];
    uint8_t *merges = NULL;
    size_t merges_length;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        if (!file_beside(path, pairs[p][1], merges_path)) continue;
        bool good =
            sinkproof_read_file(merges_path, &merges, &merges_length, error) &&
            tokenizer_parse_lists(vocab, length, merges, merges_length, path, tokenizer, error);
        free(merges);
        return good;
    }
    return sinkproof_fail(error,
                          "%.300s: expected \"model\" with \"merges\" in it (a tokenizer.json), or "
                          "merges.txt beside it, found neither",
                          path);
}

// Whether the file begins as GGUF does: it may be larger than memory, and is mapped.
static bool is_gguf(const char *path) {
    char magic[4] = "";
    FILE *file = fopen(path, "rb");
    bool found = file != NULL && fread(magic, 1, 4, file) == 4 && memcmp(magic, "GGUF", 4) == 0;
    if (file != NULL) fclose(file);
    return found;
}

static bool open_gguf(const char *path, sinkproof_tokenizer **tokenizer, sinkproof_error *error) {
    gguf_file *file;
    if (!sinkproof_gguf_open(path, &file, error)) return false;
    bool good = tokenizer_read_gguf(file, path, tokenizer, error);
    sinkproof_gguf_close(file);
    return good;
}

static bool open_file(const char *path, const char *pattern, sinkproof_tokenizer **tokenizer,
                      sinkproof_error *error) {
    uint8_t *bytes;
    size_t length, at = 0;
    if (pattern == NULL && is_gguf(path)) return open_gguf(path, tokenizer, error);
    if (!sinkproof_read_file(path, &bytes, &length, error)) return false;
    while (at < length && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != 0) at++;
    bool json = at < length && bytes[at] == '{', good;
    if (json && pattern != NULL)
        good = sinkproof_fail(
            error, "%.300s: a JSON file, whose pattern is known: found ,pattern=%s", path, pattern);
    else if (!json)
        good = tokenizer_parse_ranks(bytes, length, path, pattern, tokenizer, error);
    else if (is_tokenizer_json(bytes, length))
        good = tokenizer_parse_json(bytes, length, path, tokenizer, error);
    else
        good = open_lists(path, bytes, length, tokenizer, error);
    free(bytes);
    return good;
}

static bool open_directory(const char *path, sinkproof_tokenizer **tokenizer,
                           sinkproof_error *error) {
    char file[PATH], merges[PATH];
    if (find_file_inside(path, "tokenizer.json", file))
        return open_file(file, NULL, tokenizer, error);
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        if (find_file_inside(path, pairs[p][0], file) &&
            find_file_inside(path, pairs[p][1], merges))
            return open_file(file, NULL, tokenizer, error);
    if (find_ranks_inside(path, file)) return open_file(file, NULL, tokenizer, error);
    return sinkproof_fail(error,
                          "%.300s: expected a tokenizer (tokenizer.json, vocab.json with "
                          "merges.txt, or one *.tiktoken), found none",
                          path);
}

bool sinkproof_tokenizer_open(const char *path, sinkproof_tokenizer **tokenizer,
                              sinkproof_error *error) {
    struct stat about;
    char file[PATH];
    static const char tail[] = ",pattern=";
    const char *pattern = strstr(path, tail);
    *tokenizer = NULL;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return open_directory(path, tokenizer, error);
    if (pattern == NULL) return open_file(path, NULL, tokenizer, error);
    if (snprintf(file, PATH, "%.*s", (int)(pattern - path), path) >= PATH)
        return sinkproof_fail(error, "%.300s: a path of more than %d bytes", path, PATH - 1);
    return open_file(file, pattern + sizeof tail - 1, tokenizer, error);
}
