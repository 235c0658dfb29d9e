// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof merge DIR...`: puts the results that `--out` kept together: the text, the JSON, the
// page and the exit code of one run.
#include "audit/command/batch.h"
#include "audit/command/command.h"
#include "audit/command/kept.h"
#include "base/words.h"
#include "model/bytes.h"

#include <argp.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct options {
    const char *json, *html;
    char **words;
    size_t n;
} options;

static const struct argp_option option_table[] = {
    {"json", 'j', "FILE", 0,
     "write the results as JSON too (- is standard output, instead of the report)", 0},
    {"html", KEPT(options, html), "FILE", 0, "write a page too", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == 'j')
        o->json = argument;
    else if (key == ARGP_KEY_ARG)
        o->words[o->n++] = argument;
    else if (key == ARGP_KEY_END && o->n == 0)
        argp_error(state, "a DIR or a FILE is missing");
    else if (key != ARGP_KEY_END)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp parser = {
    option_table,
    parse_option,
    "DIR|FILE...",
    "Put together what --out kept: the reports, JSON, page and exit code that one run over all of "
    "the inputs gives, to the bit.\vA DIR has run.json, which lists the whole, and a file for each "
    "result; several directories, or single files, may hold parts of one run. A result that is "
    "missing, that is there twice, or that was made with other options or by another version ends "
    "with exit code 3 and a sentence, and nothing is written.\n\n"
    "Exit: as the command that the results are of; 2 usage; 3 also for a run that is not whole.",
    NULL,
    NULL,
    NULL};

// All that was read: one run, and results with the files that they are from.
typedef struct parts {
    json_t *run, *results; // results: [[file, result], ...]
    char *run_path;
} parts;

static bool add_run(parts *all, const char *path, json_t *run, sinkproof_error *error) {
    bool same = all->run == NULL || json_equal(all->run, run);
    if (!same)
        sinkproof_fail(error, "%.400s and %.400s: of two different runs", all->run_path, path);
    if (same && all->run == NULL) {
        all->run = json_incref(run);
        all->run_path = strdup(path);
    }
    json_decref(run);
    return same;
}

static bool is_run(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, "run.json") == 0;
}

static bool add_file(parts *all, const char *path, sinkproof_error *error) {
    uint8_t *bytes;
    size_t length;
    if (!sinkproof_read_file(path, &bytes, &length, error)) return false;
    json_t *read = is_run(path) ? kept_parse_run(bytes, length, path, error)
                                : kept_parse(bytes, length, path, error);
    free(bytes);
    if (read == NULL) return false;
    if (is_run(path)) return add_run(all, path, read, error);
    json_array_append_new(all->results, json_pack("[o, o]", text_json(path), read));
    return true;
}

// A name without .json at its end is what a killed process left of a file.
static bool add_directory(parts *all, const char *path, sinkproof_error *error) {
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    bool good = n >= 0 || sinkproof_fail(error, "%.600s: cannot list", path);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name), room = strlen(path) + length + 2;
        bool json = length > 5 && strcmp(name + length - 5, ".json") == 0;
        char *file = malloc(room);
        if (file == NULL) abort();
        snprintf(file, room, "%s/%s", path, name);
        if (good && json) good = add_file(all, file, error);
        free(file);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return good;
}

static bool add_word(parts *all, const char *word, sinkproof_error *error) {
    struct stat status;
    bool directory = stat(word, &status) == 0 && S_ISDIR(status.st_mode);
    return directory ? add_directory(all, word, error) : add_file(all, word, error);
}

// The results of a unit: its file and itself; `count` of them.
static const json_t *find_result(const parts *all, const json_t *unit, const char *files[2],
                                 size_t *count) {
    const json_t *found = NULL, *pair;
    size_t i;
    *count = 0;
    json_array_foreach(all->results, i, pair) {
        const json_t *whole = json_array_get(pair, 1);
        if (!kept_same_unit(json_object_get(whole, "unit"), unit)) continue;
        if (*count < 2) files[*count] = json_string_value(json_array_get(pair, 0));
        if (found == NULL) found = whole;
        ++*count;
    }
    return found;
}

// Puts the results in the order of the run; NULL with an error: the run is not whole.
static json_t *order_results(const parts *all, sinkproof_error *error) {
    const json_t *units = json_object_get(all->run, "units"), *unit, *missing = NULL;
    json_t *ordered = json_array();
    size_t i, lacking = 0, count;
    bool good = true;
    json_array_foreach(units, i, unit) {
        const char *files[2] = {NULL, NULL}, *name;
        const json_t *whole = good ? find_result(all, unit, files, &count) : NULL;
        if (!good) continue;
        name = json_string_value(json_object_get(unit, "name"));
        if (count > 1)
            good = sinkproof_fail(error, "%.300s: two results of it, %.300s and %.300s", name,
                                  files[0], files[1]);
        else if (whole == NULL && lacking++ == 0)
            missing = unit;
        else if (whole != NULL &&
                 !json_equal(json_object_get(whole, "how"), json_object_get(all->run, "how")))
            good = sinkproof_fail(error,
                                  "%.300s: made with other options, of another model or by another "
                                  "version than %.300s says: run its shard again",
                                  files[0], all->run_path);
        else if (whole != NULL)
            json_array_append(ordered, json_object_get(whole, "result"));
    }
    if (good && lacking > 0)
        good = sinkproof_fail(
            error,
            "%.300s: %zu of %s %s missing, the first of %.300s: run again the "
            "shard that lacks it; a result that is in DIR is taken, not made again",
            all->run_path, lacking, sinkproof_counted(json_array_size(units), "result").text,
            sinkproof_is_or_are(lacking), json_string_value(json_object_get(missing, "name")));
    if (good) return ordered;
    json_decref(ordered);
    return NULL;
}

static size_t layer_at(const json_t *unit, size_t i) {
    return (size_t)json_integer_value(json_array_get(json_object_get(unit, "layers"), i));
}

static int finish(const options *o, const parts *all, const json_t *results) {
    const json_t *units = json_object_get(all->run, "units"), *unit;
    size_t n = json_array_size(units), i;
    command_input *inputs = calloc(n, sizeof *inputs);
    batch_unit *own = calloc(n, sizeof *own);
    if (inputs == NULL || own == NULL) abort();
    json_array_foreach(units, i, unit) {
        bool some = json_is_array(json_object_get(unit, "layers"));
        inputs[i].name = (char *)(uintptr_t)json_string_value(json_object_get(unit, "name"));
        own[i] = (batch_unit){&inputs[i], some ? layer_at(unit, 0) : 0,
                              some ? layer_at(unit, 1) + 1 : 0};
    }
    const json_t *how = json_object_get(all->run, "how");
    int code = batch_finish(&(batch){.command = json_string_value(json_object_get(how, "command")),
                                     .title = json_string_value(json_object_get(all->run, "title")),
                                     .of = json_string_value(json_object_get(all->run, "of")),
                                     .n = n,
                                     .units = own,
                                     .json = o->json,
                                     .html = o->html},
                            results);
    free(inputs);
    free(own);
    return code;
}

int cmd_merge(int argc, char **argv) {
    options o = {.words = calloc((size_t)argc, sizeof *o.words)};
    parts all = {.results = json_array()};
    sinkproof_error error;
    if (o.words == NULL || all.results == NULL) abort();
    command_parse_line(&parser, argc, argv, &o);
    bool good = true;
    for (size_t i = 0; good && i < o.n; i++) good = add_word(&all, o.words[i], &error);
    if (good && all.run == NULL)
        good = sinkproof_fail(
            &error, "%.600s: expected run.json, which lists the whole, found none", o.words[0]);
    json_t *results = good ? order_results(&all, &error) : NULL;
    int code = results != NULL ? finish(&o, &all, results) : exit_bad_input("merge", &error);
    json_decref(results);
    json_decref(all.results);
    json_decref(all.run);
    free(all.run_path);
    free(o.words);
    return code;
}
