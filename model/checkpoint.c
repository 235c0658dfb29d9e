// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The files of a checkpoint and the index of all their tensors.
#include "model/container.h"
#include "model/sniff.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Appends to a malloc'ed array of pointers.
static bool list_append(char ***list, size_t *count, char *item) {
    char **larger = item == NULL ? NULL : realloc(*list, (*count + 1) * sizeof *larger);
    if (larger == NULL) {
        free(item);
        return false;
    }
    *list = larger;
    larger[(*count)++] = item;
    return true;
}

void checkpoint_note_odd(weight_files *checkpoint, const char *format, ...) {
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    list_append(&checkpoint->odd, &checkpoint->n_odd, strdup(sentence));
}

bool checkpoint_add(weight_files *checkpoint, const char *directory, const char *file,
                    sinkproof_error *error) {
    size_t length = strlen(directory) + strlen(file) + 2;
    char *path = malloc(length);
    sinkproof_safetensors **files =
        realloc(checkpoint->files, (checkpoint->n_files + 1) * sizeof *files);
    if (files != NULL) checkpoint->files = files;
    if (path == NULL || files == NULL) {
        free(path);
        return sinkproof_fail(error, "%s: out of memory", directory);
    }
    snprintf(path, length, "%s/%s", directory, file);
    sinkproof_safetensors *opened;
    if (!sinkproof_safetensors_open(path, &opened, error)) {
        free(path);
        return false;
    }
    size_t n_paths = checkpoint->n_files;
    if (!list_append(&checkpoint->paths, &n_paths, path)) {
        sinkproof_safetensors_close(opened);
        return sinkproof_fail(error, "%s: out of memory", directory);
    }
    files[checkpoint->n_files++] = opened;
    return true;
}

static int by_text(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

// Every *.safetensors, in the order of their names.
static bool add_directory_files(weight_files *checkpoint, const char *directory,
                                sinkproof_error *error) {
    static const char suffix[] = ".safetensors";
    DIR *listing = opendir(directory);
    if (listing == NULL)
        return sinkproof_fail(error, "%s: cannot list: %s", directory, strerror(errno));
    char **names = NULL;
    size_t n = 0;
    for (struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
        size_t length = strlen(item->d_name), tail = sizeof suffix - 1;
        if (length > tail && strcmp(item->d_name + length - tail, suffix) == 0)
            list_append(&names, &n, strdup(item->d_name));
    }
    closedir(listing);
    if (n > 0) qsort(names, n, sizeof *names, by_text);
    bool good = n > 0 || sinkproof_fail(error, "%s: expected *.safetensors, found none", directory);
    for (size_t i = 0; i < n; i++) {
        good = good && checkpoint_add(checkpoint, directory, names[i], error);
        free(names[i]);
    }
    free(names);
    return good;
}

static int by_name(const void *left, const void *right) {
    const checkpoint_entry *a = left, *b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

bool checkpoint_index(weight_files *checkpoint, const char *path, size_t n,
                      const sinkproof_tensor *tensors, sinkproof_error *error) {
    size_t before = checkpoint->n_entries;
    checkpoint_entry *entries =
        realloc(checkpoint->entries, (before + n + 1) * sizeof *checkpoint->entries);
    if (entries == NULL) return sinkproof_fail(error, "%s: out of memory", path);
    checkpoint->entries = entries;
    for (size_t i = 0; i < n; i++)
        entries[before + i] = (checkpoint_entry){&tensors[i], path, false, ROLE_NONE};
    checkpoint->n_entries += n;
    qsort(entries, before + n, sizeof *entries, by_name);
    return true;
}

static bool index_entries(weight_files *checkpoint, sinkproof_error *error) {
    for (size_t f = 0; f < checkpoint->n_files; f++) {
        const sinkproof_safetensors *file = checkpoint->files[f];
        size_t n = sinkproof_safetensors_count(file);
        const sinkproof_tensor *first = n > 0 ? sinkproof_safetensors_at(file, 0) : NULL;
        if (!checkpoint_index(checkpoint, checkpoint->paths[f], n, first, error)) return false;
    }
    for (size_t i = 1; i < checkpoint->n_entries; i++) {
        const checkpoint_entry *a = &checkpoint->entries[i - 1], *b = a + 1;
        if (strcmp(a->tensor->name, b->tensor->name) == 0)
            return sinkproof_fail(error,
                                  "%s: tensor %.200s: expected a name used once, found it "
                                  "in %s too",
                                  b->path, b->tensor->name, a->path);
    }
    return true;
}

static bool file_exists(const char *directory, const char *file) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, file);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

// A single model.safetensors is the whole checkpoint in every layout, whatever lies beside it.
static bool open_files(const char *directory, bool indexed, weight_files *checkpoint,
                       sinkproof_error *error) {
    static const char index[] = "model.safetensors.index.json", single[] = "model.safetensors";
    bool one = file_exists(directory, single), sharded = indexed && file_exists(directory, index);
    if (one && sharded)
        checkpoint_note_odd(checkpoint, "%s: not read, because %s is there too", index, single);
    if (one)
        return checkpoint_add(checkpoint, directory, single, error) &&
               index_entries(checkpoint, error);
    if (!indexed)
        return add_directory_files(checkpoint, directory, error) &&
               index_entries(checkpoint, error);
    if (!sharded)
        return sinkproof_fail(error, "%s: expected %s or %s, found neither", directory, single,
                              index);
    return checkpoint_shards(checkpoint, directory, error) && index_entries(checkpoint, error) &&
           checkpoint_check_map(checkpoint, directory, error);
}

bool checkpoint_open(sinkproof_model *model, sinkproof_error *error) {
    const tensor_layout *layout = model->tensors;
    size_t length = strlen(model->spec) + sizeof "/config.json";
    char *path = malloc(length);
    if (path == NULL) return sinkproof_fail(error, "%s: out of memory", model->spec);
    snprintf(path, length, "%s/config.json", model->spec);
    bool good = sniff_directory(model->spec, error) && config_read(path, &model->config, error);
    free(path);
    model->layout = layout->shown;
    return good && open_files(model->spec, layout->indexed, &model->checkpoint, error);
}

checkpoint_entry *checkpoint_find(const weight_files *checkpoint, const char *name) {
    const sinkproof_tensor wanted = {.name = name};
    const checkpoint_entry key = {.tensor = &wanted};
    if (checkpoint->n_entries == 0) return NULL;
    return bsearch(&key, checkpoint->entries, checkpoint->n_entries, sizeof key, by_name);
}

void checkpoint_close(weight_files *checkpoint) {
    for (size_t f = 0; f < checkpoint->n_files; f++) {
        sinkproof_safetensors_close(checkpoint->files[f]);
        free(checkpoint->paths[f]);
    }
    for (size_t i = 0; i < checkpoint->n_odd; i++) free(checkpoint->odd[i]);
    free(checkpoint->files);
    free(checkpoint->paths);
    free(checkpoint->odd);
    free(checkpoint->entries);
    *checkpoint = (weight_files){0};
}
