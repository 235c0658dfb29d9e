// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads a trace of the truth from an untrusted file.
#include "audit/trace/truth_file.h"

#include "audit/trace/trace_checks.h"
#include "audit/trace/trace_model.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *said(const truth_file *file, const char *key) {
    const char *text = sinkproof_trace_metadata(file->trace, key);
    return text != NULL ? text : "none";
}

// "47 of 48"
static bool read_part(const truth_file *file, const char *path, const char *key, size_t *some,
                      size_t *all, sinkproof_error *error) {
    int end = 0;
    const char *text = said(file, key);
    if (sscanf(text, "%9zu of %9zu%n", some, all, &end) == 2 && text[end] == '\0' && *some <= *all)
        return true;
    return sinkproof_fail(error,
                          "%.300s: metadata \"%s\": expected a part of a whole, 47 of 48, "
                          "found %.60s",
                          path, key, text);
}

static bool read_certificate(truth_file *file, const char *path, sinkproof_error *error) {
    const char *label = said(file, "label"), *from = said(file, "truth");
    file->routed = strcmp(from, "end to end, with the experts of a trace") == 0;
    if (strcmp(label, "enclosed") != 0)
        return sinkproof_fail(error,
                              "%.300s: metadata label: expected enclosed, as sinkproof truth "
                              "--trace writes it, found %.60s",
                              path, label);
    if (!file->routed && strcmp(from, "end to end") != 0)
        return sinkproof_fail(error, "%.300s: metadata truth: expected end to end, found %.60s",
                              path, from);
    if (!sinkproof_is_fingerprint(sinkproof_trace_metadata(file->trace, "model")))
        return sinkproof_fail(error,
                              "%.300s: metadata model: expected a fingerprint of 16 digits, found "
                              "%.60s",
                              path, said(file, "model"));
    snprintf(file->bits, sizeof file->bits, "%.20s", said(file, "bits"));
    sinkproof_make_printable(file->bits);
    return read_part(file, path, "argmax certified", &file->argmaxes, &file->tokens, error) &&
           read_part(file, path, "routing certified", &file->certain, &file->choices, error);
}

static bool refuse_number(const char *path, const sinkproof_tensor *tensor, size_t at,
                          const char *expected, sinkproof_error *error) {
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected %s, found %g at (%s)", path,
                          tensor->name, expected, sinkproof_tensor_value(tensor, at),
                          sinkproof_trace_index_text(tensor->rank, tensor->shape, at).text);
}

static bool check_balls(const char *path, const sinkproof_tensor *midpoint,
                        const sinkproof_tensor *radius, sinkproof_error *error) {
    for (size_t i = 0; i < sinkproof_tensor_elements(midpoint); i++) {
        double r = sinkproof_tensor_value(radius, i);
        if (!(r >= 0)) return refuse_number(path, radius, i, "radii from 0 on", error);
        if (isfinite(r) && !isfinite(sinkproof_tensor_value(midpoint, i)))
            return refuse_number(path, midpoint, i, "finite midpoints of finite radii", error);
    }
    return true;
}

static bool read_point(truth_file *file, const char *path, sinkproof_trace_point point,
                       size_t layer, sinkproof_error *error) {
    const sinkproof_tensor *midpoint = sinkproof_trace_find(file->trace, point, layer);
    char name[SINKPROOF_TRACE_NAME + 8];
    if (midpoint == NULL || sinkproof_trace_point_is_index(point)) return true;
    snprintf(name, sizeof name, "%.40s.radius", midpoint->name);
    const sinkproof_tensor *radius =
        sinkproof_safetensors_find(sinkproof_trace_file(file->trace), name);
    if (radius == NULL)
        return sinkproof_fail(error, "%.300s: expected a tensor %s, found none", path, name);
    if (!trace_check_shape(path, radius, midpoint->rank, midpoint->shape, error)) return false;
    const sinkproof_tensor *both[] = {midpoint, radius};
    for (size_t i = 0; i < 2; i++)
        if (both[i]->dtype != SINKPROOF_DTYPE_F64)
            return sinkproof_fail(error, "%.300s: tensor %.100s: expected F64, found %s", path,
                                  both[i]->name, sinkproof_dtype_name(both[i]->dtype));
    file->radius_lp[layer * TRACE_POINTS + (size_t)point] = radius;
    return check_balls(path, midpoint, radius, error);
}

static bool read_points(truth_file *file, const char *path, sinkproof_error *error) {
    bool good = true;
    file->radius_lp = calloc(file->n_layers * TRACE_POINTS, sizeof *file->radius_lp);
    if (file->radius_lp == NULL) return sinkproof_fail(error, "%.300s: no memory", path);
    for (size_t l = 0; good && l < file->n_layers; l++)
        for (int p = 0; good && p < TRACE_POINTS; p++)
            if (l == 0 || sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                good = read_point(file, path, (sinkproof_trace_point)p, l, error);
    return good;
}

bool sinkproof_truth_file_open(const char *path, const sinkproof_model *model, truth_file *file,
                               sinkproof_error *error) {
    *file = (truth_file){.n_layers = sinkproof_model_config(model)->n_layers};
    bool good = sinkproof_trace_open_of(path, model, false, &file->trace, error) &&
                sinkproof_trace_from_start(file->trace, error) &&
                read_certificate(file, path, error) && read_points(file, path, error);
    if (!good) sinkproof_truth_file_close(file);
    return good;
}

void sinkproof_truth_file_close(truth_file *file) {
    sinkproof_trace_close(file->trace);
    free(file->radius_lp);
    *file = (truth_file){.trace = NULL};
}

bool sinkproof_truth_file_encloses(const truth_file *file) {
    return !file->routed && file->certain == file->choices;
}

bool sinkproof_truth_file_fits(const truth_file *file, const sinkproof_trace *trace,
                               sinkproof_error *error) {
    const char *path = sinkproof_trace_path(file->trace);
    size_t n = sinkproof_trace_length(trace), found = sinkproof_trace_length(file->trace);
    const int32_t *own = sinkproof_trace_tokens(trace),
                  *other = sinkproof_trace_tokens(file->trace);
    if (!sinkproof_trace_from_start(trace, error)) return false;
    if (n != found)
        return sinkproof_fail(
            error, "%.300s is the truth of another prompt: expected %s as in %.300s, found %zu",
            path, sinkproof_counted(n, "token").text, sinkproof_trace_path(trace), found);
    for (size_t i = 0; i < n; i++)
        if (own[i] != other[i])
            return sinkproof_fail(error,
                                  "%.300s is the truth of another prompt: token %zu: expected %d "
                                  "as in %.300s, found %d",
                                  path, i, (int)own[i], sinkproof_trace_path(trace), (int)other[i]);
    return true;
}

bool sinkproof_truth_file_find(const truth_file *file, sinkproof_trace_point point, size_t layer,
                               truth_balls *balls) {
    *balls = (truth_balls){sinkproof_trace_find(file->trace, point, layer), NULL};
    if (balls->midpoint == NULL) return false;
    if (!sinkproof_trace_point_is_layered(point)) layer = 0;
    balls->radius = file->radius_lp[layer * TRACE_POINTS + (size_t)point];
    return balls->radius != NULL;
}
