// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// model.safetensors.index.json: {"metadata": ..., "weight_map": {tensor: file}}. A file is a
// plain name in the same directory: anything with a slash in it is refused.
#include "model/checkpoint.h"

#include "model/bytes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void index_path(const char *directory, char *path, size_t size) {
    snprintf(path, size, "%s/model.safetensors.index.json", directory);
}

json_t *checkpoint_load_index(const char *path, sinkproof_error *error) {
    uint8_t *text;
    size_t length;
    if (!sinkproof_read_file(path, &text, &length, error)) return NULL;
    json_error_t where;
    json_t *root = json_loadb((char *)text, length, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (root == NULL) {
        sinkproof_fail(error, "%s: expected JSON, found an error in line %d: %s", path, where.line,
                       where.text);
        return NULL;
    }
    const json_t *map = json_object_get(root, "weight_map");
    bool good = json_is_object(map) && json_object_size(map) > 0;
    if (!good) sinkproof_fail(error, "%s: expected a weight_map of tensors and files", path);
    const char *name;
    json_t *file;
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        const char *text_of = json_string_value(file);
        if (!good || (text_of != NULL && strchr(text_of, '/') == NULL && text_of[0] != '.' &&
                      text_of[0] != '\0'))
            continue;
        good = sinkproof_fail(error,
                              "%s: tensor %.200s: expected the name of a file in the same "
                              "directory, found %.200s",
                              path, name, text_of == NULL ? "no string" : text_of);
    }
    if (good) return root;
    json_decref(root);
    return NULL;
}

static bool already_open(const weight_files *checkpoint, const char *directory, const char *file) {
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (strcmp(checkpoint->paths[i] + strlen(directory) + 1, file) == 0) return true;
    return false;
}

bool checkpoint_shards(weight_files *checkpoint, const char *directory, sinkproof_error *error) {
    char path[4096];
    index_path(directory, path, sizeof path);
    json_t *root = checkpoint_load_index(path, error);
    if (root == NULL) return false;
    const char *name;
    json_t *file;
    bool good = true;
    json_object_foreach(json_object_get(root, "weight_map"), name, file) {
        const char *text = json_string_value(file);
        if (!good || already_open(checkpoint, directory, text)) continue;
        good = checkpoint_add(checkpoint, directory, text, error);
    }
    json_decref(root);
    return good;
}

// Each tensor must be in the shard that the map names; a tensor that is not in the map is noted as
// odd.
bool checkpoint_check_map(weight_files *checkpoint, const char *directory, sinkproof_error *error) {
    char path[4096];
    index_path(directory, path, sizeof path);
    json_t *root = checkpoint_load_index(path, error);
    if (root == NULL) return false;
    const json_t *map = json_object_get(root, "weight_map");
    const char *name;
    json_t *file;
    bool good = true;
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        const checkpoint_entry *entry = checkpoint_find(checkpoint, name);
        const char *text = json_string_value(file);
        if (!good || (entry != NULL && strcmp(entry->path + strlen(directory) + 1, text) == 0))
            continue;
        good = sinkproof_fail(error, "%s: tensor %.200s: expected in %s, found %s", path, name,
                              text, entry == NULL ? "nowhere" : entry->path);
    }
    for (size_t i = 0; good && i < checkpoint->n_entries; i++)
        if (json_object_get(map, checkpoint->entries[i].tensor->name) == NULL)
            checkpoint_note_odd(checkpoint, "%s: in %s but not in the index",
                                checkpoint->entries[i].tensor->name, checkpoint->entries[i].path);
    json_decref(root);
    return good;
}
