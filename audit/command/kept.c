// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/kept.h"

#include "audit/command/command.h"
#include "base/fnv.h"
#include "model/bytes.h"
#include "model/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// ---- what a result depends on ----------------------------------------------------------------

// A policy in a file may change under its name.
static json_t *policy_json(const char *policy) {
    sinkproof_error error;
    uint8_t *bytes;
    size_t length;
    if (policy[0] != '@' || !sinkproof_read_file(policy + 1, &bytes, &length, &error))
        return text_json(policy);
    char *text = strndup((const char *)bytes, length);
    if (text == NULL) abort();
    json_t *both = json_pack("[o, o]", text_json(policy), text_json(text));
    free(text);
    free(bytes);
    return both;
}

json_t *kept_how(const char *command, const char *spec, const sinkproof_model *model,
                 const char *policy, json_t *options, sinkproof_error *error) {
    uint64_t fingerprint;
    char text[24];
    if (!sinkproof_model_fingerprint(model, &fingerprint, error)) {
        json_decref(options);
        return NULL;
    }
    snprintf(text, sizeof text, "%016" PRIx64, fingerprint);
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o}", "command", command, "version",
                     SINKPROOF_VERSION, "model", text_json(spec), "fingerprint", text, "policy",
                     policy_json(policy), "options", options);
}

// ---- what identifies a unit ------------------------------------------------------------------

json_t *kept_stamp(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return json_null();
    return json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)status.st_size, "modified",
                     (json_int_t)status.st_mtim.tv_sec, "nanoseconds",
                     (json_int_t)status.st_mtim.tv_nsec);
}

json_t *kept_adapter(const char *directory) {
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
    json_t *kept = json_pack("[o]", text_json(directory));
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%.4000s/%s", directory, names[i]);
        json_array_append_new(kept, kept_stamp(path));
    }
    return kept;
}

static json_t *layers_json(const batch_unit *unit) {
    if (unit->end_layer == 0) return json_null();
    return json_pack("[I, I]", (json_int_t)unit->first_layer, (json_int_t)unit->end_layer - 1);
}

// The same of each part of a trace in parts.
static json_t *stamp_parts(const char *path) {
    sinkproof_error error;
    char **names;
    size_t n;
    if (!sinkproof_safetensors_names(path, &names, &n, &error)) return json_null();
    json_t *stamps = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(stamps, kept_stamp(names[i]));
    if (n == 0 || strcmp(names[0], path) != 0) json_array_append_new(stamps, kept_stamp(path));
    sinkproof_safetensors_free_names(names, n);
    return stamps;
}

json_t *kept_unit(const batch_unit *unit) {
    const char *said = unit->input->said != NULL ? unit->input->said : "";
    return json_pack("{s:o, s:o, s:o, s:o}", "name", text_json(unit->input->name), "said",
                     text_json(said), "layers", layers_json(unit), "file",
                     stamp_parts(said[0] == '@' ? said + 1 : said));
}

// FNV-1a of what identifies a unit among others: the name of its file.
static char *unit_path(const char *directory, const json_t *unit) {
    json_t *own =
        json_pack("[O, O]", json_object_get(unit, "name"), json_object_get(unit, "layers"));
    char *text = json_dumps(own, JSON_COMPACT), *path = NULL;
    if (text == NULL) abort();
    uint64_t hash = sinkproof_fnv(SINKPROOF_FNV_NOTHING, text, strlen(text));
    size_t room = strlen(directory) + 32;
    path = malloc(room);
    if (path == NULL) abort();
    snprintf(path, room, "%s/%016" PRIx64 ".json", directory, hash);
    free(text);
    json_decref(own);
    return path;
}

json_t *kept_run(const batch *b) {
    json_t *units = json_array();
    for (size_t i = 0; i < b->n; i++)
        json_array_append_new(units,
                              json_pack("{s:o, s:o}", "name", text_json(b->units[i].input->name),
                                        "layers", layers_json(&b->units[i])));
    return json_pack("{s:i, s:O, s:s, s:s, s:o}", "kept", 1, "how", b->how, "of", b->of, "title",
                     b->title, "units", units);
}

// ---- writing ---------------------------------------------------------------------------------

static bool write_json(const char *path, const json_t *json, sinkproof_error *error) {
    sinkproof_output output;
    if (!sinkproof_output_open(&output, path, error)) return false;
    if (json_dumpf(json, output.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0)
        return sinkproof_output_finish(&output, error);
    sinkproof_output_drop(&output);
    return sinkproof_fail(error, "%.600s: cannot write: %s", path, strerror(errno));
}

bool kept_begin(const char *directory, const json_t *run, sinkproof_error *error) {
    struct stat status;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return sinkproof_fail(error, "%.600s: cannot make: %s", directory, strerror(errno));
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode))
        return sinkproof_fail(error, "%.600s: expected a directory for results, found a file",
                              directory);
    char *path = malloc(strlen(directory) + sizeof "/run.json");
    if (path == NULL) abort();
    sprintf(path, "%s/run.json", directory);
    bool good = write_json(path, run, error);
    free(path);
    return good;
}

bool kept_write(const batch *b, const json_t *unit, json_t *result, sinkproof_error *error) {
    char *path = unit_path(b->out, unit);
    json_t *whole =
        json_pack("{s:i, s:O, s:O, s:O}", "kept", 1, "how", b->how, "unit", unit, "result", result);
    bool good = whole != NULL ? write_json(path, whole, error)
                              : sinkproof_fail(error, "%.600s: no memory", path);
    json_decref(whole);
    free(path);
    return good;
}

// ---- results that a directory has ------------------------------------------------------------

json_t *kept_find(const batch *b, const json_t *unit) {
    sinkproof_error error;
    uint8_t *bytes;
    size_t length;
    char *path = unit_path(b->out, unit);
    json_t *whole = NULL, *result = NULL;
    if (sinkproof_read_file(path, &bytes, &length, &error)) {
        whole = kept_parse(bytes, length, path, &error);
        free(bytes);
    }
    // What had no result is tried again.
    json_t *kept = json_object_get(whole, "result");
    if (whole != NULL && json_equal(json_object_get(whole, "how"), b->how) &&
        json_equal(json_object_get(whole, "unit"), unit) &&
        json_integer_value(json_object_get(kept, "exit")) != EXIT_BAD_INPUT)
        result = json_incref(kept);
    json_decref(whole);
    free(path);
    return result;
}
