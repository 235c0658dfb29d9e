// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Calls through files: the inputs of each call are written as a safetensors file, with a manifest
// of all calls, and the outputs are read back from files beside them. Those are untrusted: every
// name, dtype and shape is checked.
#include "audit/plugin/drill.h"
#include "audit/version.h"
#include "model/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    const char *name;
    sinkproof_dtype dtype;
    size_t rank, shape[SINKPROOF_RANK], count;
    const float *values;
} output;

static output point_output(const call_arrays *a, sinkproof_trace_point point) {
    output o = {.name = sinkproof_trace_point_name(point), .values = a->point[point]};
    o.dtype = sinkproof_trace_point_is_index(point) ? SINKPROOF_DTYPE_I32 : SINKPROOF_DTYPE_F32;
    o.rank = sinkproof_trace_shape(&a->config, point, a->n, o.shape);
    o.count = point_elements(a, point);
    return o;
}

static output weight_output(const call_arrays *a, sinkproof_slot slot) {
    output o = {.name = sinkproof_slot_name(slot), .values = a->weight[slot], .count = 1};
    o.dtype = SINKPROOF_DTYPE_F32;
    o.rank = weight_shape(&a->config, slot, o.shape);
    for (size_t d = 0; d < o.rank; d++) o.count *= o.shape[d];
    return o;
}

static bool write_output(sinkproof_safetensors_writer *w, const output *o, sinkproof_error *error) {
    if (o->dtype == SINKPROOF_DTYPE_F32)
        return sinkproof_safetensors_writer_bytes(w, o->values, o->count * sizeof(float), error);
    for (size_t i = 0; i < o->count; i++) {
        int32_t whole = (int32_t)o->values[i];
        if (!sinkproof_safetensors_writer_bytes(w, &whole, sizeof whole, error)) return false;
    }
    return true;
}

static bool write_inputs(const char *path, const stage_case *c, const call_arrays *a,
                         sinkproof_error *error) {
    const stage_row *s = c->stage;
    output outputs[STAGE_ARRAYS + 2];
    char text[CASE_TEXT];
    size_t n = 0;
    for (size_t i = 0; i < s->n_from; i++) outputs[n++] = point_output(a, s->from[i]);
    for (size_t i = 0; i < s->n_weights; i++) outputs[n++] = weight_output(a, s->weights[i]);
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

static json_t *output_shapes_json(const stage_case *c, const call_arrays *a) {
    json_t *outputs = json_object();
    for (size_t i = 0; i < c->stage->n_to; i++) {
        output o = point_output(a, c->stage->to[i]);
        json_t *shape = json_array();
        for (size_t d = 0; d < o.rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)o.shape[d]));
        json_object_set_new(outputs, o.name, shape);
    }
    return outputs;
}

static json_t *describe_case_json(size_t i, const stage_case *c, const call_arrays *a) {
    const sinkproof_config *f = &a->config;
    char text[CASE_TEXT], in[48], out[48];
    case_print(c, text);
    snprintf(in, sizeof in, "%05zu.safetensors", i);
    snprintf(out, sizeof out, "%05zu.out.safetensors", i);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, "
        "s:f, "
        "s:f, s:f, s:f, s:f, s:I, s:b}",
        "stage", c->stage->name, "case", text, "inputs", in, "outputs", out, "expected",
        output_shapes_json(c, a), "n", (json_int_t)a->n, "chunk", (json_int_t)c->chunk, "window",
        (json_int_t)c->window, "heads", (json_int_t)f->n_heads, "kv_heads",
        (json_int_t)f->n_kv_heads, "head_dim", (json_int_t)f->head_dim, "hidden",
        (json_int_t)f->hidden, "inter", (json_int_t)f->inter, "experts", (json_int_t)f->n_experts,
        "chosen", (json_int_t)f->n_chosen, "rms_eps", f->rms_eps, "swiglu_alpha", f->swiglu.alpha,
        "swiglu_limit", f->swiglu.limit, "rope_theta", f->rotation.theta, "yarn_factor",
        f->rotation.factor, "yarn_beta_fast", f->rotation.beta_fast, "yarn_beta_slow",
        f->rotation.beta_slow, "yarn_original_context", (json_int_t)f->rotation.original_context,
        "yarn_truncate", (int)f->rotation.truncate);
}

static bool write_manifest(const char *directory, json_t *cases, const sinkproof_policy *policy,
                           const char *model, sinkproof_error *error) {
    char path[PATH_ROOM];
    manifest_path(directory, path);
    json_t *whole =
        json_pack("{s:s, s:s, s:s, s:s?, s:O}", "format", "sinkproof-drills-1", "version",
                  SINKPROOF_VERSION, "policy", policy->name, "model", model, "cases", cases);
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
        good = write_inputs(path, &plan->cases[done], &a, error) &&
               json_array_append_new(cases, describe_case_json(done, &plan->cases[done], &a)) == 0;
        arrays_free(&a);
    }
    good = good && write_manifest(directory, cases, policy, model, error);
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

static bool read_point(const char *path, const sinkproof_safetensors *file, call_arrays *a,
                       sinkproof_trace_point point, sinkproof_error *error) {
    output o = point_output(a, point);
    const sinkproof_tensor *t = sinkproof_safetensors_find(file, o.name);
    if (t == NULL)
        return sinkproof_fail(error, "%s: expected a tensor %s, found none", path, o.name);
    bool same = t->rank == o.rank && t->dtype != SINKPROOF_DTYPE_MXFP4;
    for (size_t d = 0; same && d < o.rank; d++) same = t->shape[d] == o.shape[d];
    if (!same)
        return sinkproof_fail(error, "%s: %s has not the shape of the manifest", path, o.name);
    for (size_t i = 0; i < o.count; i++) a->point[point][i] = (float)sinkproof_tensor_value(t, i);
    return true;
}

bool case_read_outputs(const char *directory, const stage_case *c, call_arrays *a, bool *there,
                       sinkproof_error *error) {
    char path[PATH_ROOM];
    sinkproof_safetensors *file;
    case_file_path(directory, c->number, ".out", path);
    *there = access(path, F_OK) == 0;
    if (!*there) return true;
    if (!sinkproof_safetensors_open(path, &file, error)) return false;
    bool good = true;
    for (size_t t = 0; good && t < c->stage->n_to; t++)
        good = read_point(path, file, a, c->stage->to[t], error);
    sinkproof_safetensors_close(file);
    return good;
}
