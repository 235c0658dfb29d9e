// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads an engine's attention from an untrusted file. Shapes are patterns of letters: a size is
// learned from the first tensors that have it, and must be the same in every tensor of the layer.
#include "audit/designs/design_trace.h"

#include "audit/designs/choices.h"
#include "base/words.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// n h v d e p: sizes. H: 1 or h. b: 1 or n. c: n, or n + 1 with a star. g: 1 or e. B: 32.
static const struct {
    const char *name, *shape;
} tensors[DESIGN_TENSORS] = {
    {"q", "nhd"},          {"k", "nvd"},         {"v", "nve"},        {"f.q", "nhd"},
    {"f.k", "nvd"},        {"bias", "hbn"},      {"s", "hnc"},        {"alpha", "hnc"},
    {"o", "nhe"},          {"g", "nhg"},         {"gate", "nhg"},     {"gated", "nhe"},
    {"star.key", "Hd"},    {"star.value", "He"}, {"star.logit", "H"}, {"slope", "H"},
    {"buckets", "HB"},     {"mlp.1", "Hdd"},     {"mlp.2", "Hdd"},    {"unturned.q", "nhd"},
    {"unturned.k", "nvd"}, {"cos", "np"},        {"sin", "np"},       {"rotary.base", "1"},
    {"documents", "n"},
};

const char *design_tensor_name(design_tensor t) {
    return tensors[t].name;
}

bool design_has_rows_first(design_tensor t) {
    return tensors[t].shape[0] == 'n';
}

static bool parse_tensor_name(const char *name, size_t *layer, design_tensor *t) {
    size_t digits = strspn(name, "0123456789");
    if (digits < 2 || digits > 4 || name[digits] != '.' || (digits > 2 && name[0] == '0'))
        return false;
    *layer = (size_t)strtoul(name, NULL, 10);
    for (int k = 0; k < DESIGN_TENSORS; k++) {
        *t = (design_tensor)k;
        if (strcmp(name + digits + 1, tensors[k].name) == 0) return true;
    }
    return false;
}

static design_layer *layer_find_or_add(sinkproof_design_trace *trace, size_t layer) {
    size_t at = 0;
    while (at < trace->count && trace->layers[at].layer < layer) at++;
    if (at < trace->count && trace->layers[at].layer == layer) return &trace->layers[at];
    design_layer *grown = realloc(trace->layers, (trace->count + 1) * sizeof *trace->layers);
    if (grown == NULL) return NULL;
    trace->layers = grown;
    memmove(grown + at + 1, grown + at, (trace->count - at) * sizeof *grown);
    trace->count++;
    grown[at] = (design_layer){.layer = layer};
    return &grown[at];
}

static bool collect_tensors(sinkproof_design_trace *trace, sinkproof_error *error) {
    for (size_t i = 0; i < sinkproof_safetensors_count(trace->file); i++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(trace->file, i);
        design_tensor t;
        size_t layer;
        if (!parse_tensor_name(tensor->name, &layer, &t)) {
            char known[256] = "";
            for (int k = 0; k < DESIGN_TENSORS; k++)
                snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                         k > 0 ? ", " : "", tensors[k].name);
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: expected a layer of two digits or more, "
                                  "a dot and one of %s",
                                  trace->path, tensor->name, known);
        }
        design_layer *l = layer_find_or_add(trace, layer);
        if (l == NULL) return sinkproof_fail(error, "%.300s: no memory for a layer", trace->path);
        l->at[t] = tensor;
    }
    if (trace->count == 0)
        return sinkproof_fail(error, "%.300s: expected tensors, found none", trace->path);
    return true;
}

// The size that a letter stands for, if it is to be learned; NULL for other letters.
static size_t *dimension_length(design_layer *l, char letter) {
    switch (letter) {
    case 'n':
        return &l->rows;
    case 'h':
        return &l->heads;
    case 'v':
        return &l->kv_heads;
    case 'd':
        return &l->dim;
    case 'e':
        return &l->value_dim;
    case 'p':
        return &l->pairs;
    default:
        return NULL;
    }
}

// The size that a dimension may have, or *one as an alternative; 0: no tensor tells.
static size_t dimension_allowed(design_layer *l, char letter, size_t *one) {
    *one = 0;
    switch (letter) {
    case 'H':
        *one = 1;
        return l->heads;
    case 'b':
        *one = 1;
        return l->rows;
    case 'g':
        *one = 1;
        return l->value_dim;
    case 'c':
        *one = l->rows;
        return l->rows + sinkproof_variant_has_column(&l->variant);
    case 'B':
        return SINKPROOF_BUCKETS;
    case '1':
        return 1;
    default:
        return *dimension_length(l, letter);
    }
}

static void describe_shape(design_layer *l, const char *shape, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t r = 0; shape[r] != '\0' && used < size; r++) {
        size_t one, other = dimension_allowed(l, shape[r], &one);
        const char *comma = r > 0 ? ", " : "";
        if (other == 0)
            used += (size_t)snprintf(text + used, size - used, "%sany", comma);
        else if (one > 0 && one != other)
            used += (size_t)snprintf(text + used, size - used, "%s%zu or %zu", comma, one, other);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%zu", comma, other);
    }
    if (used < size) snprintf(text + used, size - used, "]");
}

static bool fail_shape(const sinkproof_design_trace *trace, design_layer *l,
                       const sinkproof_tensor *tensor, const char *shape, sinkproof_error *error) {
    char expected[256], found[256] = "[";
    describe_shape(l, shape, expected, sizeof expected);
    for (size_t r = 0; r < tensor->rank; r++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%zu", r > 0 ? ", " : "",
                 tensor->shape[r]);
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected shape %s, found %s]", trace->path,
                          tensor->name, expected, found);
}

static bool check_dtype(const sinkproof_design_trace *trace, const sinkproof_tensor *tensor,
                        bool integer, sinkproof_error *error) {
    sinkproof_dtype d = tensor->dtype;
    bool whole = d == SINKPROOF_DTYPE_I32 || d == SINKPROOF_DTYPE_I64;
    bool real = d == SINKPROOF_DTYPE_BF16 || d == SINKPROOF_DTYPE_F16 || d == SINKPROOF_DTYPE_F32 ||
                d == SINKPROOF_DTYPE_F64;
    if (integer ? whole : real) return true;
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected dtype %s, found %s", trace->path,
                          tensor->name, integer ? "I32 or I64" : "BF16, F16, F32 or F64",
                          sinkproof_dtype_name(d));
}

// learn: sets the sizes that are still unknown; letters that stand for several sizes are skipped.
static bool check_tensor(const sinkproof_design_trace *trace, design_layer *l, int t, bool learn,
                         sinkproof_error *error) {
    const sinkproof_tensor *tensor = l->at[t];
    const char *shape = tensors[t].shape;
    if (!check_dtype(trace, tensor, t == DESIGN_DOCUMENTS, error)) return false;
    bool fits = tensor->rank == strlen(shape);
    for (size_t r = 0; fits && r < tensor->rank; r++) {
        size_t *size = dimension_length(l, shape[r]), found = tensor->shape[r], one;
        if (size != NULL && *size == 0) *size = found;
        if (learn && size == NULL) continue;
        size_t other = dimension_allowed(l, shape[r], &one);
        fits = found > 0 && (found == other || (one > 0 && found == one) || other == 0);
    }
    return fits || fail_shape(trace, l, tensor, shape, error);
}

static bool read_documents(const sinkproof_design_trace *trace, design_layer *l,
                           sinkproof_error *error) {
    const sinkproof_tensor *tensor = l->at[DESIGN_DOCUMENTS];
    if (tensor == NULL) return true;
    l->document_n = calloc(l->rows, sizeof *l->document_n);
    if (l->document_n == NULL)
        return sinkproof_fail(error, "%.300s: no memory for documents", trace->path);
    for (size_t i = 0; i < l->rows; i++) {
        double x = sinkproof_tensor_value(tensor, i);
        if (!(x >= 0 && x <= INT_MAX))
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: element %zu is %.17g, expected 0 "
                                  "to %d",
                                  trace->path, tensor->name, i, x, INT_MAX);
        l->document_n[i] = (int)x;
    }
    return true;
}

// Refuses a tensor of a step that the design does not have.
static bool check_steps(const sinkproof_design_trace *trace, const design_layer *l,
                        sinkproof_error *error) {
    const sinkproof_variant *v = &l->variant;
    bool biased = v->places == SINKPROOF_PLACES_RELATIVE || v->places == SINKPROOF_PLACES_BUCKET ||
                  v->places == SINKPROOF_PLACES_ALIBI;
    for (int t = 0; t < DESIGN_TENSORS; t++) {
        const char *lacks = NULL;
        if (l->at[t] == NULL) continue;
        if ((t == DESIGN_FQ || t == DESIGN_FK) && v->feature == SINKPROOF_FEATURE_SELF)
            lacks = "features";
        if ((t == DESIGN_G || t == DESIGN_GATE || t == DESIGN_GATED) &&
            v->gate == SINKPROOF_GATE_NONE)
            lacks = "gate";
        if (t >= DESIGN_UNTURNED_Q && t <= DESIGN_BASE && v->places != SINKPROOF_PLACES_ROTARY)
            lacks = "rotation";
        if (t == DESIGN_BIAS && !biased) lacks = "bias of positions";
        if (lacks != NULL)
            return sinkproof_fail(error,
                                  "%.300s: tensor %.100s: expected none, since the design "
                                  "%.200s has no %s",
                                  trace->path, l->at[t]->name, l->design, lacks);
    }
    return true;
}

static bool check_layer(const sinkproof_design_trace *trace, design_layer *l,
                        sinkproof_error *error) {
    for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < DESIGN_TENSORS; t++)
            if (l->at[t] != NULL && !check_tensor(trace, l, t, pass == 0, error)) return false;
    if (l->kv_heads > 0 && l->heads % l->kv_heads != 0)
        return sinkproof_fail(error,
                              "%.300s: layer %zu: expected a number of heads that is a multiple of "
                              "that of keys, found %zu and %zu",
                              trace->path, l->layer, l->heads, l->kv_heads);
    if (l->heads == 0) l->heads = l->kv_heads;
    if (l->dim > 0 && l->pairs > l->dim / 2)
        return sinkproof_fail(error, "%.300s: layer %zu: expected tables of %s or less, found %zu",
                              trace->path, l->layer, sinkproof_counted(l->dim / 2, "pair").text,
                              l->pairs);
    return check_steps(trace, l, error) && read_documents(trace, l, error);
}

static bool read_design(const sinkproof_design_trace *trace, design_layer *l,
                        sinkproof_error *error) {
    char key[32];
    sinkproof_error why;
    snprintf(key, sizeof key, "%02zu.design", l->layer);
    l->design = sinkproof_safetensors_metadata(trace->file, key);
    if (l->design == NULL) l->design = sinkproof_safetensors_metadata(trace->file, "design");
    if (l->design == NULL)
        return sinkproof_fail(error, "%.300s: expected metadata design or %s, found neither",
                              trace->path, key);
    if (design_parse(l->design, &l->variant, &why)) return true;
    return sinkproof_fail(error, "%.300s: metadata design of layer %zu: %.600s", trace->path,
                          l->layer, why.text);
}

static bool adopt_file(sinkproof_design_trace *trace, sinkproof_error *error) {
    const char *format = sinkproof_safetensors_metadata(trace->file, "format");
    if (format == NULL || strcmp(format, DESIGN_FORMAT) != 0)
        return sinkproof_fail(error, "%.300s: expected metadata format %s, found %.100s",
                              trace->path, DESIGN_FORMAT, format != NULL ? format : "none");
    trace->policy = sinkproof_safetensors_metadata(trace->file, "policy");
    bool good = collect_tensors(trace, error);
    for (size_t i = 0; good && i < trace->count; i++)
        good = read_design(trace, &trace->layers[i], error) &&
               check_layer(trace, &trace->layers[i], error);
    return good;
}

static bool trace_begin(const char *path, sinkproof_design_trace *trace, sinkproof_error *error) {
    *trace = (sinkproof_design_trace){.path = strdup(path)};
    return trace->path != NULL || sinkproof_fail(error, "%.300s: no memory", path);
}

static bool trace_finish_open(bool good, sinkproof_design_trace *trace, sinkproof_error *error) {
    good = good && adopt_file(trace, error);
    if (!good) sinkproof_design_trace_close(trace);
    return good;
}

bool sinkproof_design_trace_open(const char *path, sinkproof_design_trace *trace,
                                 sinkproof_error *error) {
    bool good =
        trace_begin(path, trace, error) && sinkproof_safetensors_open(path, &trace->file, error);
    return trace_finish_open(good, trace, error);
}

bool sinkproof_design_trace_parse(const uint8_t *bytes, size_t length, const char *name,
                                  sinkproof_design_trace *trace, sinkproof_error *error) {
    bool good = trace_begin(name, trace, error) &&
                sinkproof_safetensors_parse(bytes, length, name, &trace->file, error);
    return trace_finish_open(good, trace, error);
}

void sinkproof_design_trace_close(sinkproof_design_trace *trace) {
    for (size_t i = 0; i < trace->count; i++) free(trace->layers[i].document_n);
    if (trace->file != NULL) sinkproof_safetensors_close(trace->file);
    free(trace->layers);
    free(trace->path);
    *trace = (sinkproof_design_trace){0};
}
