// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tensors in several files, read as one file: an index (NAME.index.json, as checkpoints have it) or
// a series NAME-00001-of-00004.safetensors.
#include "model/safetensors_file.h"

#include "base/words.h"
#include "model/bytes.h"
#include "model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- one of several --------------------------------------------------------------------------

// The tokens and their positions may be in every part.
static bool is_shared(const char *name) {
    return strcmp(name, "tokens") == 0 || strcmp(name, "positions") == 0;
}

static bool is_same(const sinkproof_tensor *a, const sinkproof_tensor *b) {
    return a->dtype == b->dtype && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

// Adds the tensors of a part.
static bool join_part(sinkproof_safetensors *all, size_t part, char *const *names,
                      sinkproof_error *error) {
    const sinkproof_safetensors *own = all->parts[part];
    for (size_t i = 0; i < own->count; i++) {
        const sinkproof_tensor *tensor = &own->tensors[i], *other = NULL;
        size_t before = 0;
        for (size_t p = 0; p < part && other == NULL; p++) {
            other = sinkproof_safetensors_find(all->parts[p], tensor->name);
            before = p;
        }
        if (other == NULL)
            all->tensors[all->count++] = *tensor;
        else if (!is_shared(tensor->name))
            return sinkproof_fail(error, "%.300s: tensor %.100s: it is in %.300s too", names[part],
                                  tensor->name, names[before]);
        else if (!is_same(tensor, other))
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: expected what %.300s has, found another",
                                  names[part], tensor->name, names[before]);
    }
    return true;
}

static bool join_metadata(json_t *all, const json_t *own, const char *name,
                          sinkproof_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)own, key, value) {
        const json_t *other = json_object_get(all, key);
        if (other != NULL && !json_equal(other, value))
            return sinkproof_fail(error,
                                  "%.300s: metadata %.60s: expected \"%.100s\", as the parts "
                                  "before it have, found \"%.100s\"",
                                  name, key, json_string_value(other), json_string_value(value));
        if (other == NULL && json_object_set(all, key, value) != 0) return false;
    }
    return true;
}

bool safetensors_join(size_t n, sinkproof_safetensors **files, char *const *names,
                      sinkproof_safetensors **joined, sinkproof_error *error) {
    sinkproof_safetensors *all = calloc(1, sizeof *all);
    size_t count = 1;
    *joined = NULL;
    for (size_t i = 0; i < n; i++) count += files[i]->count;
    if (all == NULL) {
        for (size_t i = 0; i < n; i++) sinkproof_safetensors_close(files[i]);
        free(files);
        return sinkproof_fail(error, "%.300s: no memory", names[0]);
    }
    all->parts = files, all->n_parts = n;
    all->tensors = calloc(count, sizeof *all->tensors);
    all->header = json_pack("{s:{}}", "__metadata__");
    bool good = (all->tensors != NULL && all->header != NULL) ||
                sinkproof_fail(error, "%.300s: no memory", names[0]);
    json_t *metadata = json_object_get(all->header, "__metadata__");
    for (size_t i = 0; good && i < n; i++)
        good = join_part(all, i, names, error) &&
               join_metadata(metadata, json_object_get(files[i]->header, "__metadata__"), names[i],
                             error);
    good = good && (safetensors_index_names(all) || sinkproof_fail(error, "no memory"));
    if (good)
        *joined = all;
    else
        sinkproof_safetensors_close(all);
    return good;
}

// ---- their names -----------------------------------------------------------------------------

static char *spell_path(const char *path, size_t folder, const char *name) {
    char *made = malloc(folder + strlen(name) + 1);
    if (made != NULL) sprintf(made, "%.*s%s", (int)folder, path, name);
    return made;
}

static bool add_name(char ***names, size_t *n, char *name) {
    char **larger = name != NULL ? realloc(*names, (*n + 1) * sizeof *larger) : NULL;
    if (larger == NULL) {
        free(name);
        return false;
    }
    *names = larger;
    larger[(*n)++] = name;
    return true;
}

void sinkproof_safetensors_free_names(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static bool names_of_index(const char *path, const json_t *index, char ***names, size_t *n) {
    const char *slash = strrchr(path, '/'), *tensor;
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    json_t *file;
    json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
        bool known = false;
        for (size_t i = 0; i < *n; i++)
            known = known || strcmp((*names)[i] + folder, json_string_value(file)) == 0;
        if (!known && !add_name(names, n, spell_path(path, folder, json_string_value(file))))
            return false;
    }
    return true;
}

// The number of parts that the name of a file tells: 4 of NAME-00001-of-00004.safetensors; *digits
// is where its own number stands. 0: it is no part.
static size_t parts_by_name(const char *path, size_t *digits) {
    static const char form[] = "-#####-of-#####.safetensors";
    size_t length = strlen(path), tail = strlen(form);
    if (length <= tail) return 0;
    const char *at = path + length - tail;
    for (size_t i = 0; i < tail; i++)
        if (form[i] == '#' ? at[i] < '0' || at[i] > '9' : at[i] != form[i]) return 0;
    *digits = length - tail + 1;
    size_t own = strtoul(at + 1, NULL, 10), parts = strtoul(at + 10, NULL, 10);
    return own >= 1 && own <= parts ? parts : 0;
}

static bool names_of_series(const char *path, size_t parts, size_t digits, char ***names,
                            size_t *n) {
    for (size_t i = 1; i <= parts; i++) {
        char *name = strdup(path), number[24];
        snprintf(number, sizeof number, "%05zu", i);
        if (name != NULL) memcpy(name + digits, number, 5);
        if (!add_name(names, n, name)) return false;
    }
    return true;
}

static bool is_index(const char *path) {
    size_t length = strlen(path), tail = strlen(".index.json");
    return length > tail && strcmp(path + length - tail, ".index.json") == 0;
}

bool sinkproof_safetensors_names(const char *path, char ***names, size_t *n,
                                 sinkproof_error *error) {
    size_t digits = 0, parts = parts_by_name(path, &digits);
    json_t *index = is_index(path) ? checkpoint_load_index(path, error) : NULL;
    bool good = index != NULL || !is_index(path), memory = true;
    *names = NULL;
    *n = 0;
    if (index != NULL)
        memory = names_of_index(path, index, names, n);
    else if (good && parts > 0)
        memory = names_of_series(path, parts, digits, names, n);
    else if (good)
        memory = add_name(names, n, strdup(path));
    json_decref(index);
    if (!memory) good = sinkproof_fail(error, "%.300s: no memory for the names of parts", path);
    if (good) return true;
    sinkproof_safetensors_free_names(*names, *n);
    *names = NULL;
    *n = 0;
    return false;
}

// ---- opening ---------------------------------------------------------------------------------

// Whether every tensor is in the file that the index names, and every one of the files in the
// index.
static bool check_index(const char *path, const sinkproof_safetensors *all, char *const *names,
                        sinkproof_error *error) {
    json_t *index = checkpoint_load_index(path, error), *file;
    const char *tensor;
    if (index == NULL) return false;
    json_t *map = json_object_get(index, "weight_map");
    bool good = true;
    json_object_foreach(map, tensor, file) {
        const char *base = json_string_value(file);
        for (size_t i = 0; good && i < all->n_parts; i++) {
            const char *slash = strrchr(names[i], '/');
            bool its = strcmp(slash != NULL ? slash + 1 : names[i], base) == 0;
            if (its && sinkproof_safetensors_find(all->parts[i], tensor) == NULL)
                good =
                    sinkproof_fail(error, "%.300s: tensor %.100s: expected in %.200s, found none",
                                   path, tensor, base);
        }
    }
    for (size_t i = 0; good && i < all->count; i++)
        if (json_object_get(map, all->tensors[i].name) == NULL && !is_shared(all->tensors[i].name))
            good = sinkproof_fail(error, "%.300s: tensor %.100s: in a file, but not in the index",
                                  path, all->tensors[i].name);
    json_decref(index);
    return good;
}

bool sinkproof_safetensors_open_parts(const char *path, sinkproof_safetensors **file,
                                      sinkproof_error *error) {
    char **names;
    size_t n, opened = 0;
    *file = NULL;
    if (!sinkproof_safetensors_names(path, &names, &n, error)) return false;
    sinkproof_safetensors **files = calloc(n + 1, sizeof *files);
    bool good = files != NULL || sinkproof_fail(error, "%.300s: no memory", path);
    for (; good && opened < n; opened += good)
        good = sinkproof_safetensors_open(names[opened], &files[opened], error);
    if (good && n == 1 && !is_index(path)) {
        *file = files[0];
        free(files);
    } else if (good) {
        good = safetensors_join(n, files, names, file, error);
        if (good && is_index(path) && !check_index(path, *file, names, error)) {
            sinkproof_safetensors_close(*file);
            *file = NULL;
            good = false;
        }
    } else {
        for (size_t i = 0; i < opened; i++) sinkproof_safetensors_close(files[i]);
        free(files);
    }
    sinkproof_safetensors_free_names(names, n);
    return good;
}
