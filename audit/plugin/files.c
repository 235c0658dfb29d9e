// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Calls through files: the inputs of each call are written as a safetensors file, with a manifest
// of all calls, and the outputs are read back from files beside them. Those are untrusted: every
// name, dtype and shape is checked.
#include "audit/plugin/drill.h"
#include "base/words.h"
#include "model/bf16.h"
#include "model/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

static void case_file_path(const char *directory, size_t i, const char *what,
                           char path[PATH_ROOM]) {
    snprintf(path, PATH_ROOM, "%.3900s/%05zu%s.safetensors", directory, i, what);
}

static void manifest_path(const char *directory, char path[PATH_ROOM]) {
    snprintf(path, PATH_ROOM, "%.3900s/manifest.json", directory);
}

// ---- writing ---------------------------------------------------------------------------------

typedef struct output {
    char name[ARRAY_NAME];
    sinkproof_dtype dtype;
    size_t rank, shape[SINKPROOF_RANK], count;
    const float *values;
} output;

static output output_of(const char *name, sinkproof_dtype dtype, const float *values) {
    output o = {.dtype = dtype, .values = values, .count = 1};
    snprintf(o.name, sizeof o.name, "%s", name);
    return o;
}

static void count_elements(output *o) {
    for (size_t d = 0; d < o->rank; d++) o->count *= o->shape[d];
}

static output array_output(const call_arrays *a, array_id id, const sinkproof_policy *policy) {
    char name[ARRAY_NAME];
    output o = output_of(array_name(id, name), array_dtype(policy, id), a->at[id]);
    o.rank = array_shape(&a->config, id, a->n, o.shape);
    count_elements(&o);
    return o;
}

// The inputs of a case; returns their number.
static size_t list_inputs(const stage_case *c, const call_arrays *a, const sinkproof_policy *policy,
                          output outputs[STAGE_ARRAYS + 2]) {
    const stage_row *s = c->stage;
    size_t n = 0;
    for (size_t i = 0; i < s->n_from; i++) outputs[n++] = array_output(a, s->from[i], policy);
    for (size_t i = 0; i < s->n_weights; i++) {
        output *o = &outputs[n++];
        *o = output_of(sinkproof_slot_name(s->weights[i]), weight_dtype(policy, s),
                       a->weight[s->weights[i]]);
        o->rank = weight_shape(&a->config, s->weights[i], o->shape);
        count_elements(o);
    }
    return n;
}

static void encode_element(sinkproof_dtype dtype, float x, uint8_t *bytes) {
    if (dtype != SINKPROOF_DTYPE_I32) {
        sinkproof_element_encode(dtype, x, bytes);
        return;
    }
    uint32_t whole = (uint32_t)x; // the number of an expert
    for (size_t i = 0; i < sizeof whole; i++) bytes[i] = (uint8_t)(whole >> 8 * i);
}

static bool write_output(sinkproof_safetensors_writer *w, const output *o, sinkproof_error *error) {
    uint8_t bytes[4096];
    size_t size = sinkproof_dtype_size(o->dtype), used = 0;
    for (size_t i = 0; i < o->count; i++) {
        encode_element(o->dtype, o->values[i], bytes + used);
        used += size;
        if (used < sizeof bytes && i + 1 < o->count) continue;
        if (!sinkproof_safetensors_writer_bytes(w, bytes, used, error)) return false;
        used = 0;
    }
    return true;
}

static bool write_inputs(const char *path, const stage_case *c, const call_arrays *a,
                         const sinkproof_policy *policy, sinkproof_error *error) {
    output outputs[STAGE_ARRAYS + 2];
    char text[CASE_TEXT];
    size_t n = list_inputs(c, a, policy, outputs);
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    if (w == NULL) return sinkproof_fail(error, "%s: no memory", path);
    case_print(c, text);
    sinkproof_safetensors_writer_metadata(w, "case", text);
    for (size_t i = 0; i < n; i++)
        sinkproof_safetensors_writer_declare(w, outputs[i].name, outputs[i].dtype, outputs[i].rank,
                                             outputs[i].shape);
    bool good = sinkproof_safetensors_writer_begin(w, path, error);
    for (size_t i = 0; good && i < n; i++) good = write_output(w, &outputs[i], error);
    good = good && sinkproof_safetensors_writer_finish(w, error);
    sinkproof_safetensors_writer_free(w);
    return good;
}

// Headers of at most nine tensors, entries of the manifest, what the manifest explains: less.
enum { HEADER_BYTES = 1 << 11, ENTRY_BYTES = 1 << 11, MEANING_BYTES = 1 << 14 };

double cases_bytes(const case_plan *plan, const sinkproof_config *base,
                   const sinkproof_policy *policy) {
    double bytes = MEANING_BYTES;
    for (size_t i = 0; i < plan->count; i++) {
        const stage_case *c = &plan->cases[i];
        const call_arrays a = {.config = case_config(c, base), .n = c->n};
        output outputs[STAGE_ARRAYS + 2];
        size_t n = list_inputs(c, &a, policy, outputs);
        bytes += HEADER_BYTES + ENTRY_BYTES;
        for (size_t t = 0; t < n; t++)
            bytes += (double)outputs[t].count * (double)sinkproof_dtype_size(outputs[t].dtype);
    }
    return bytes;
}

bool cases_have_room(const char *directory, size_t calls, double bytes, sinkproof_error *error) {
    struct statvfs disk;
    if (statvfs(directory, &disk) != 0) { // not there yet: its parent's
        char parent[PATH_ROOM];
        snprintf(parent, sizeof parent, "%.3900s", directory);
        char *slash = strrchr(parent, '/');
        if (slash != NULL && slash != parent)
            *slash = '\0';
        else
            snprintf(parent, sizeof parent, slash != NULL ? "/" : ".");
        if (statvfs(parent, &disk) != 0) return true;
    }
    double room = (double)disk.f_bavail * (double)disk.f_frsize;
    return bytes <= room ||
           sinkproof_fail(error,
                          "%.3000s: %s of at most %.0f bytes, and %.0f are free there: --limit N "
                          "writes fewer calls of each stage",
                          directory, sinkproof_counted(calls, "call").text, bytes, room);
}

static bool write_manifest(const char *directory, json_t *cases, const case_plan *plan,
                           const sinkproof_policy *policy, const char *model,
                           sinkproof_error *error) {
    char path[PATH_ROOM];
    manifest_path(directory, path);
    json_t *whole = manifest_whole(cases, plan, policy, model);
    bool good = whole != NULL && json_dump_file(whole, path, JSON_INDENT(1)) == 0;
    json_decref(whole);
    return good || sinkproof_fail(error, "%s: cannot be written", path);
}

static bool make_directory(const char *directory, sinkproof_error *error) {
    char path[PATH_ROOM];
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return sinkproof_fail(error, "%.3900s: %s", directory, strerror(errno));
    manifest_path(directory, path);
    if (access(path, F_OK) == 0)
        return sinkproof_fail(error, "%s: expected a directory without a manifest", path);
    return true;
}

bool cases_write_inputs(const char *directory, const case_plan *plan, const sinkproof_config *base,
                        const sinkproof_policy *policy, const char *model, sinkproof_error *error) {
    char path[PATH_ROOM];
    size_t done = 0;
    bool good = make_directory(directory, error);
    json_t *cases = json_array();
    for (; good && done < plan->count; done++) {
        call_arrays a;
        good = arrays_make(&plan->cases[done], base, policy, &a, error);
        if (!good) break;
        case_file_path(directory, done, "", path);
        good = write_inputs(path, &plan->cases[done], &a, policy, error) &&
               json_array_append_new(cases, manifest_case(done, &plan->cases[done], &a)) == 0;
        arrays_free(&a);
    }
    good = good && write_manifest(directory, cases, plan, policy, model, error);
    json_decref(cases);
    for (size_t i = 0; !good && i < done; i++) { // leave nothing half-written
        case_file_path(directory, i, "", path);
        unlink(path);
    }
    return good;
}

// ---- reading ---------------------------------------------------------------------------------

static const char *text_value(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

// The number in "00017.out.safetensors", the name of the file with the outputs. Nothing else is a
// name that --emit wrote, and a path from a stranger's file is not opened.
static bool read_case_number(const char *name, size_t *number) {
    char again[48];
    if (sscanf(name, "%5zu", number) != 1) return false;
    snprintf(again, sizeof again, "%05zu.out.safetensors", *number);
    return strcmp(name, again) == 0;
}

static bool read_cases(const char *path, const json_t *root, const stage_case *base,
                       case_plan *plan, sinkproof_error *error) {
    const json_t *list = json_object_get(root, "cases"), *one;
    size_t i, count = json_array_size(list);
    if (strcmp(text_value(root, "format"), "sinkproof-drills-1") != 0 || count == 0)
        return sinkproof_fail(error, "%s: expected cases of format sinkproof-drills-1", path);
    plan->cases = calloc(count, sizeof *plan->cases);
    if (plan->cases == NULL) return sinkproof_fail(error, "%s: no memory", path);
    plan->room = count;
    json_array_foreach(list, i, one) {
        sinkproof_error said;
        if (!case_parse(text_value(one, "case"), base, &plan->cases[i], &said))
            return sinkproof_fail(error, "%s: case %zu: %.500s", path, i, said.text);
        if (!read_case_number(text_value(one, "outputs"), &plan->cases[i].number))
            return sinkproof_fail(error,
                                  "%s: case %zu: outputs: expected a name of the form "
                                  "00000.out.safetensors, found '%.100s'",
                                  path, i, text_value(one, "outputs"));
        plan->count++;
    }
    return true;
}

bool cases_read_manifest(const char *directory, const stage_case *base, case_plan *plan,
                         char policy[SINKPROOF_POLICY_NAME], char model[1024],
                         sinkproof_error *error) {
    char path[PATH_ROOM];
    json_error_t at;
    manifest_path(directory, path);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    if (root == NULL)
        return sinkproof_fail(error, "%s: expected the manifest that --emit wrote: %.200s", path,
                              at.text);
    const char *told = text_value(root, "policy");
    bool good = strlen(told) < SINKPROOF_POLICY_NAME ||
                sinkproof_fail(error, "%s: policy: expected at most %d characters, found %zu", path,
                               SINKPROOF_POLICY_NAME - 1, strlen(told));
    snprintf(policy, SINKPROOF_POLICY_NAME, "%s", told);
    snprintf(model, 1024, "%s", text_value(root, "model"));
    good = good && read_cases(path, root, base, plan, error);
    json_decref(root);
    return good;
}

// What the metadata say of A9.lse.
static bool read_kind(const char *path, const sinkproof_safetensors *file, lse_kinds *lse,
                      sinkproof_error *error) {
    const char *said = sinkproof_safetensors_metadata(file, "lse");
    sinkproof_error why;
    return lse_parse(said != NULL ? said : "either", lse, &why) ||
           sinkproof_fail(error, "%s: metadata lse: %.200s", path, why.text);
}

// Reads A9.lse, [heads, n] or [n, heads], and what the metadata say of it.
static bool read_lse(const char *path, const sinkproof_safetensors *file, call_arrays *a,
                     lse_kinds *lse, sinkproof_error *error) {
    const sinkproof_tensor *t = sinkproof_safetensors_find(file, "A9.lse");
    const char *layout = sinkproof_safetensors_metadata(file, "lse_layout");
    size_t heads = a->config.n_heads, n = a->n;
    if (!read_kind(path, file, lse, error)) return false;
    bool by_head = t->rank == 2 && t->shape[0] == heads && t->shape[1] == n;
    bool by_token = t->rank == 2 && t->shape[0] == n && t->shape[1] == heads;
    if ((!by_head && !by_token) || t->dtype == SINKPROOF_DTYPE_MXFP4)
        return sinkproof_fail(error, "%s: A9.lse: expected shape [%zu, %zu] or [%zu, %zu]", path,
                              heads, n, n, heads);
    if (by_head && by_token && heads > 1 && layout == NULL)
        return sinkproof_fail(error,
                              "%s: A9.lse has the shape of both layouts: expected metadata "
                              "lse_layout, heads,tokens or tokens,heads",
                              path);
    if (layout != NULL && strcmp(layout, "heads,tokens") != 0 &&
        strcmp(layout, "tokens,heads") != 0)
        return sinkproof_fail(error,
                              "%s: metadata lse_layout: expected heads,tokens or tokens,heads, "
                              "found %.100s",
                              path, layout);
    bool tokens_first = layout != NULL ? layout[0] == 't' : by_token && !by_head;
    if (tokens_first ? !by_token : !by_head)
        return sinkproof_fail(error, "%s: A9.lse has not the layout %s of its metadata", path,
                              layout);
    for (size_t i = 0; i < heads * n; i++)
        a->at[TRACE_LSE][i] =
            (float)sinkproof_tensor_value(t, tokens_first ? i % n * heads + i / n : i);
    return true;
}

static bool read_array(const char *path, const sinkproof_safetensors *file, call_arrays *a,
                       array_id id, sinkproof_error *error) {
    size_t shape[SINKPROOF_RANK], rank = array_shape(&a->config, id, a->n, shape);
    char name[ARRAY_NAME];
    array_name(id, name);
    const sinkproof_tensor *t = sinkproof_safetensors_find(file, name);
    if (t == NULL) return sinkproof_fail(error, "%s: expected a tensor %s, found none", path, name);
    bool same = t->rank == rank && t->dtype != SINKPROOF_DTYPE_MXFP4;
    for (size_t d = 0; same && d < rank; d++) same = t->shape[d] == shape[d];
    if (!same) return sinkproof_fail(error, "%s: %s has not the shape of the manifest", path, name);
    size_t count = array_count(a, id);
    for (size_t i = 0; i < count; i++) a->at[id][i] = (float)sinkproof_tensor_value(t, i);
    return true;
}

bool case_read_outputs(const char *directory, stage_case *c, call_arrays *a, bool *there,
                       lse_kinds *lse, sinkproof_error *error) {
    char path[PATH_ROOM];
    sinkproof_safetensors *file;
    case_file_path(directory, c->number, ".out", path);
    *there = access(path, F_OK) == 0;
    if (!*there) return true;
    if (!sinkproof_safetensors_open(path, &file, error)) return false;
    bool good = true;
    c->lse = stage_offered(c->stage) > 0 && sinkproof_safetensors_find(file, "A9.lse") != NULL;
    *lse = lse_of_kind(false, LSE_WITH_SINK);
    if (c->dlse) good = read_kind(path, file, lse, error);
    if (good && c->lse && a->at[TRACE_LSE] == NULL && !array_make(a, TRACE_LSE))
        good = sinkproof_fail(error, "%s: no memory", path);
    if (good && c->lse) good = read_lse(path, file, a, lse, error);
    for (size_t t = 0; good && t < case_outputs(c); t++)
        if (c->stage->to[t] != TRACE_LSE) good = read_array(path, file, a, c->stage->to[t], error);
    sinkproof_safetensors_close(file);
    return good;
}
