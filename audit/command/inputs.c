// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/inputs.h"

#include "model/bytes.h"

#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// A printf into memory; a name that cannot be kept ends the program, as everywhere in the command.
__attribute__((format(printf, 1, 2))) static char *spell(const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) abort();
    va_end(arguments);
    return text;
}

// Takes ownership of all three.
static void add(input_list *list, char *name, char *said, char *problem) {
    if (list->n == list->room) {
        list->room = list->room == 0 ? 16 : 2 * list->room;
        list->at = realloc(list->at, list->room * sizeof *list->at);
        if (list->at == NULL) abort();
    }
    list->at[list->n++] = (command_input){name, said, problem};
}

static void add_problem(input_list *list, const char *name, const char *problem) {
    add(list, spell("%s", name), NULL, spell("%s", problem));
}

void inputs_free(input_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        free(list->at[i].name);
        free(list->at[i].said);
        free(list->at[i].problem);
    }
    free(list->at);
    *list = (input_list){0, 0, NULL};
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// ---- lists -----------------------------------------------------------------------------------

// Ids as --tokens takes them: "1,2,3". NULL: the array has something else, or nothing.
static char *spell_tokens(const json_t *tokens) {
    char *text = NULL;
    size_t length, i;
    const json_t *id;
    FILE *out = json_array_size(tokens) > 0 ? open_memstream(&text, &length) : NULL;
    bool good = out != NULL;
    json_array_foreach(tokens, i, id) {
        good = good && json_is_integer(id);
        if (good) fprintf(out, "%s%lld", i > 0 ? "," : "", (long long)json_integer_value(id));
    }
    if (out != NULL && fclose(out) != 0) abort();
    if (good) return text;
    free(text);
    return NULL;
}

// What a line of prompts says, as for --tokens; NULL: nothing that is known.
static char *prompt_said(const json_t *line) {
    const char *text = json_string_value(json_object_get(line, "text"));
    const json_t *tokens = json_object_get(line, "tokens");
    if ((text == NULL) == (tokens == NULL)) return NULL;
    return text != NULL ? spell("text:%s", text) : spell_tokens(tokens);
}

static void add_object(input_list *list, input_kind kind, const char *place, const json_t *line) {
    const char *path = json_string_value(json_object_get(line, "trace"));
    const char *name = json_string_value(json_object_get(line, "name"));
    char *said = kind == INPUT_PROMPT ? prompt_said(line) : path != NULL ? spell("%s", path) : NULL;
    char *problem = NULL;
    if (said == NULL)
        problem = spell("%s: expected %s, found something else", place,
                        kind == INPUT_TRACE ? "{\"trace\": PATH}"
                                            : "{\"tokens\": [ID, ...]} or {\"text\": TEXT}");
    if (kind == INPUT_TRACE) name = path;
    add(list, spell("%s", name != NULL && name[0] != '\0' ? name : place), said, problem);
}

static void add_line(input_list *list, input_kind kind, const char *place, const char *line,
                     size_t length) {
    json_error_t where;
    if (line[0] != '{' && kind == INPUT_TRACE) {
        char *path = strndup(line, length);
        if (path == NULL) abort();
        add(list, path, spell("%s", path), NULL);
        return;
    }
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    if (object == NULL) {
        char *problem = spell("%s: expected a JSON object, found an error: %s", place, where.text);
        add(list, spell("%s", place), NULL, problem);
    } else {
        add_object(list, kind, place, object);
    }
    json_decref(object);
}

void inputs_add_lines(input_list *list, input_kind kind, const char *source, const uint8_t *bytes,
                      size_t length) {
    const char *at = (const char *)bytes, *end = at + length;
    size_t number = 0, before = list->n;
    if (memchr(bytes, '\0', length) != NULL) {
        char *problem = spell("%s: expected lines of text, found a zero byte", source);
        add_problem(list, source, problem);
        free(problem);
        return;
    }
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *last;
        if (stop == NULL) stop = end;
        number++;
        while (at < stop && isspace((unsigned char)*at)) at++;
        for (last = stop; last > at && isspace((unsigned char)last[-1]);) last--;
        char *place = spell("%s:%zu", source, number);
        if (last > at) add_line(list, kind, place, at, (size_t)(last - at));
        free(place);
        at = stop < end ? stop + 1 : end;
    }
    if (list->n > before) return;
    char *problem = spell("%s: expected a line or more, found none", source);
    add_problem(list, source, problem);
    free(problem);
}

static void add_list(input_list *list, input_kind kind, const char *path) {
    sinkproof_error error;
    uint8_t *bytes;
    size_t length;
    if (!sinkproof_read_file(path, &bytes, &length, &error)) {
        add_problem(list, path, error.text);
        return;
    }
    inputs_add_lines(list, kind, path, bytes, length);
    free(bytes);
}

// ---- directories -----------------------------------------------------------------------------

// Whether a name is that of a series NAME-00001-of-00004.safetensors, and not its first.
static bool is_later_part(const char *name) {
    int number, parts, end = 0;
    const char *tail = strstr(name, "-of-");
    if (tail == NULL || tail - name < 6) return false;
    return sscanf(tail - 6, "-%5d-of-%5d.safetensors%n", &number, &parts, &end) == 2 && end > 0 &&
           tail[-6 + end] == '\0' && number > 1;
}

// A directory's traces: its .safetensors files, a series of parts once. Its prompts: its files.
static bool is_input(input_kind kind, const char *path, const char *name) {
    struct stat status;
    if (name[0] == '.' || stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (kind == INPUT_PROMPT) return true;
    return ends_with(name, ".safetensors") && !is_later_part(name);
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

// The index of a directory that is one trace in parts, or NULL.
static char *find_index(size_t n, char *const *names, const char *path) {
    for (size_t i = 0; i < n; i++)
        if (ends_with(names[i], ".index.json")) return spell("%s/%s", path, names[i]);
    return NULL;
}

// All names in the order of strcmp; NULL where the directory cannot be read.
static char **list_names(const char *path, size_t *n) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    size_t room = 0;
    char **names = NULL;
    *n = 0;
    if (directory == NULL) return NULL;
    while ((entry = readdir(directory)) != NULL) {
        if (*n == room) names = realloc(names, (room = 2 * room + 16) * sizeof *names);
        if (names == NULL) abort();
        names[(*n)++] = spell("%s", entry->d_name);
    }
    closedir(directory);
    qsort(names, *n, sizeof *names, compare_names);
    return names;
}

static void add_file(input_list *list, input_kind kind, const char *path) {
    if (kind == INPUT_PROMPT && ends_with(path, ".jsonl"))
        add_list(list, kind, path);
    else if (kind == INPUT_PROMPT)
        add(list, spell("%s", path), spell("@%s", path), NULL);
    else
        add(list, spell("%s", path), spell("%s", path), NULL);
}

static void add_directory(input_list *list, input_kind kind, const char *path) {
    size_t n, before = list->n;
    char **names = list_names(path, &n), *config = spell("%s/config.json", path);
    char *index = kind == INPUT_TRACE ? find_index(n, names, path) : NULL;
    struct stat status;
    bool model = kind == INPUT_TRACE && stat(config, &status) == 0;
    if (model) // the trace's reader says that a MODEL comes first
        add(list, spell("%s", path), spell("%s", path), NULL);
    else if (index != NULL)
        add(list, spell("%s", index), spell("%s", index), NULL);
    for (size_t i = 0; !model && index == NULL && i < n; i++) {
        char *file = spell("%s/%s", path, names[i]);
        if (is_input(kind, file, names[i])) add_file(list, kind, file);
        free(file);
    }
    if (list->n == before) {
        char *problem = spell("%s: expected %s in this directory, found none", path,
                              kind == INPUT_TRACE ? "a .safetensors file" : "a file of tokens");
        add_problem(list, path, problem);
        free(problem);
    }
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
    free(config);
    free(index);
}

void inputs_add_word(input_list *list, input_kind kind, const char *word) {
    if (is_directory(word))
        add_directory(list, kind, word);
    else if (kind == INPUT_TRACE && word[0] == '@')
        add_list(list, kind, word + 1);
    else if (kind == INPUT_TRACE && ends_with(word, ".jsonl"))
        add_list(list, kind, word);
    else
        add_file(list, kind, word);
}
