// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads a trace from an untrusted file: every name, shape, dtype and index is checked before it is
// used. Values are not: the judge decides about NaN.
#include "audit/trace/trace.h"

#include "audit/trace/gradients.h"
#include "audit/trace/trace_batch.h"
#include "audit/trace/trace_checks.h"
#include "audit/trace/trace_model.h"
#include "audit/trace/trace_points.h"
#include "audit/trace/trace_sequences.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Keys or values of a layer that the trace has of earlier positions too, in two views: the rows
// before the first token, and those of the tokens. `rows` is set where there are earlier ones.
typedef struct cached {
    sinkproof_tensor before, rows;
    uint8_t *gathered; // their bytes, where they do not lie so in the file
} cached;
enum { OF_KEYS, OF_VALUES, CACHED };

struct sinkproof_trace {
    char *path;
    char *owned;    // the file's bytes, if it is not mapped
    char *unpadded; // those of the file, if it was a padded batch
    sinkproof_safetensors *file;
    size_t n, n_layers;
    int32_t *tokens_n, *positions_n;
    trace_sequences sequences;
    sinkproof_lse lse;              // what the metadata say of A9.lse
    int lse_by;                     // A9.lse: 1 [heads, n], 2 [n, heads], of all layers; 0: none
    const sinkproof_tensor **at_lp; // [n_layers, TRACE_POINTS]; NULL where absent
    cached *cached_lc;              // [n_layers, CACHED]
    size_t gradients;               // tensors that are gradients
};

// The number of tokens sets n.
static bool refuse_rank(const char *file, const sinkproof_tensor *tensor, sinkproof_error *error) {
    char found[192];
    trace_print_shape(tensor->rank, tensor->shape, found, sizeof found);
    return sinkproof_fail(error, "%.300s: tensor %.100s: expected shape [n], found %s%s", file,
                          tensor->name, found, tensor->rank == 2 ? SHAPE_OF_A_BATCH : "");
}

// Reads `tokens` or `positions` as [n]; the first one read sets n (*n == 0).
static bool read_indices(const char *file, sinkproof_trace *trace, const char *name, size_t limit,
                         int32_t **out_n, sinkproof_error *error) {
    const sinkproof_tensor *tensor = sinkproof_safetensors_find(trace->file, name);
    if (tensor == NULL)
        return sinkproof_fail(error, "%.300s: expected a tensor %s, found none", file, name);
    if (trace->n == 0 && tensor->rank != 1) return refuse_rank(file, tensor, error);
    if (trace->n == 0) trace->n = tensor->shape[0];
    if (!trace_check_shape(file, tensor, 1, &trace->n, error)) return false;
    if (trace->n == 0)
        return sinkproof_fail(error, "%.300s: tensor %s: expected one token or more, found none",
                              file, name);
    if (!trace_check_dtype(file, tensor, true, error)) return false;
    if (!trace_check_range(file, tensor, limit, error)) return false;
    *out_n = calloc(trace->n, sizeof **out_n);
    if (*out_n == NULL) return sinkproof_fail(error, "%.300s: no memory for %s", file, name);
    for (size_t t = 0; t < trace->n; t++) (*out_n)[t] = (int32_t)trace_index_at(tensor, t);
    return true;
}

static bool read_sequence(const char *file, const sinkproof_config *config, sinkproof_trace *trace,
                          sinkproof_error *error) {
    size_t context = config->max_context < INT32_MAX ? config->max_context : INT32_MAX;
    if (!read_indices(file, trace, "tokens", config->vocab, &trace->tokens_n, error)) return false;
    if (!read_indices(file, trace, "positions", context, &trace->positions_n, error)) return false;
    if (!sequences_read(file, trace->file, trace->n, config->vocab, trace->positions_n,
                        &trace->sequences, error))
        return false;
    const uint32_t *of_row = trace->sequences.of_row;
    for (size_t t = 1; t < trace->n; t++)
        if (of_row[t] == of_row[t - 1] && trace->positions_n[t] != trace->positions_n[t - 1] + 1)
            return sinkproof_fail(
                error,
                "%.300s: tensor positions: expected positions that follow each other in %s, found "
                "%d after %d",
                file, trace->sequences.count > 1 ? "each sequence" : "one sequence (no cu_seqlens)",
                (int)trace->positions_n[t], (int)trace->positions_n[t - 1]);
    return true;
}

// Splits keys or values of more positions than the tokens' into the views of `c`; *rows: those of
// the tokens, which are the last.
static bool split_cached(const trace_sequences *s, const sinkproof_tensor *tensor, size_t n,
                         cached *c) {
    if (s->apart) return (c->gathered = sequences_split(s, tensor, &c->before, &c->rows)) != NULL;
    size_t before = tensor->shape[0] - n, each = tensor->bytes / tensor->shape[0];
    c->before = c->rows = *tensor;
    c->before.shape[0] = before, c->before.bytes = before * each;
    c->rows.shape[0] = n, c->rows.bytes = n * each, c->rows.data += before * each;
    return true;
}

static bool unknown_name(const char *file, const char *name, size_t n_layers,
                         sinkproof_error *error) {
    char nearest[SINKPROOF_TRACE_NAME];
    sinkproof_trace_nearest(name, n_layers, nearest);
    return sinkproof_fail(error, "%.300s: unknown tensor '%.100s': the nearest known name is %s",
                          file, name, nearest);
}

// [heads, n], or [n, heads], one layout in all layers.
static bool turn_lse(const char *file, sinkproof_trace *trace, const sinkproof_tensor *tensor,
                     size_t *shape, sinkproof_error *error) {
    const char *said = sinkproof_safetensors_metadata(trace->file, "lse_layout");
    size_t heads = shape[0], n = shape[1];
    bool turned = tensor->rank == 2 && tensor->shape[0] == n && tensor->shape[1] == heads;
    if (said != NULL && strcmp(said, "heads,tokens") != 0 && strcmp(said, "tokens,heads") != 0)
        return sinkproof_fail(error,
                              "%.300s: metadata lse_layout: expected heads,tokens or "
                              "tokens,heads, found %.100s",
                              file, said);
    if (said == NULL && turned && heads == n)
        return sinkproof_fail(error,
                              "%.300s: tensor %.100s: its shape [%zu, %zu] says not which is the "
                              "head: expected metadata lse_layout heads,tokens or tokens,heads",
                              file, tensor->name, n, n);
    if (trace->lse_by == 0) trace->lse_by = 1 + (said != NULL ? said[0] == 't' : turned);
    if (trace->lse_by == 2) shape[0] = n, shape[1] = heads;
    return true;
}

// With the sink, without it, or, where nothing says which, as both.
static void keep_lse(sinkproof_trace *trace, const sinkproof_tensor *tensor,
                     sinkproof_trace_point point, const sinkproof_tensor **at) {
    if (point == TRACE_LSE && trace->lse != SINKPROOF_LSE_KEYS) at[TRACE_LSE] = tensor;
    if (point == TRACE_LSE_KEYS || trace->lse != SINKPROOF_LSE_WITH_SINK)
        at[TRACE_LSE_KEYS] = tensor;
}

static bool read_lse_convention(const char *file, sinkproof_trace *trace, sinkproof_error *error) {
    const char *said = sinkproof_safetensors_metadata(trace->file, "lse");
    if (said == NULL) return true;
    trace->lse = strcmp(said, "with-sink") == 0      ? SINKPROOF_LSE_WITH_SINK
                 : strcmp(said, "without-sink") == 0 ? SINKPROOF_LSE_KEYS
                                                     : SINKPROOF_LSE_UNSAID;
    return trace->lse != SINKPROOF_LSE_UNSAID ||
           sinkproof_fail(error,
                          "%.300s: metadata lse: expected with-sink or without-sink, found %.100s",
                          file, said);
}

// A gradient is checked, and kept for who asks for it by its name.
static bool read_gradient(const char *file, const sinkproof_config *config, sinkproof_trace *trace,
                          const sinkproof_tensor *tensor, sinkproof_error *error) {
    sinkproof_gradient gradient;
    size_t shape[SINKPROOF_MAX_RANK], rank = 0;
    if (sinkproof_gradient_parse(tensor->name, &gradient))
        rank = sinkproof_gradient_shape_in(config, &gradient, trace->sequences.columns - trace->n,
                                           trace->n, shape);
    if (rank == 0) return unknown_name(file, tensor->name, config->n_layers, error);
    trace->gradients++;
    return trace_check_shape(file, tensor, rank, shape, error) &&
           trace_check_dtype(file, tensor, false, error);
}

static bool read_point(const char *file, const sinkproof_config *config, sinkproof_trace *trace,
                       const sinkproof_tensor *tensor, sinkproof_error *error) {
    static const char *const rows[] = {"tokens",       "positions", "cu_seqlens",
                                       "cu_seqlens_k", "prefix",    "cu_seqlens_prefix"};
    sinkproof_trace_point point;
    size_t layer, shape[SINKPROOF_MAX_RANK];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(tensor->name, rows[i]) == 0) return true;
    if (!sinkproof_trace_name_parse(tensor->name, &point, &layer))
        return read_gradient(file, config, trace, tensor, error);
    if (!trace_may_hold(config, point, layer))
        return sinkproof_fail(error, "%.300s: tensor %.100s: expected a layer below %zu", file,
                              tensor->name, config->n_layers);
    const trace_sequences *s = &trace->sequences;
    size_t rank = trace_shape_from(config, point, s->columns - trace->n, trace->n, shape);
    bool indices = sinkproof_trace_point_is_index(point);
    bool some =
        tensor->rank == rank && tensor->shape[0] > trace->n && tensor->shape[0] <= s->columns;
    bool own = tensor->rank == rank && tensor->shape[0] == trace->n; // without earlier ones
    bool longer = sinkproof_trace_is_cached(config, point) && !own &&
                  (s->apart || s->said || (s->count == 1 && some));
    if (longer) shape[0] = s->apart || s->said ? s->columns : tensor->shape[0];
    if (sinkproof_trace_point_is_offered(point) && !turn_lse(file, trace, tensor, shape, error))
        return false;
    if (!trace_check_shape(file, tensor, rank, shape, error)) return false;
    if (!trace_check_dtype(file, tensor, indices, error)) return false;
    if (indices && !trace_check_chosen(file, config, tensor, error)) return false;
    if (longer) {
        size_t kind = point == TRACE_A2_V ? OF_VALUES : OF_KEYS;
        cached *c = &trace->cached_lc[layer * CACHED + kind];
        if (!split_cached(s, tensor, trace->n, c))
            return sinkproof_fail(error, "%.300s: tensor %.100s: no memory", file, tensor->name);
        tensor = &c->rows;
    }
    const sinkproof_tensor **at = &trace->at_lp[layer * TRACE_POINTS];
    if (!sinkproof_trace_point_is_offered(point))
        at[point] = tensor;
    else if (at[TRACE_LSE] != NULL || at[TRACE_LSE_KEYS] != NULL)
        return sinkproof_fail(error, "%.300s: tensor %.100s: expected one log-sum-exp of a layer",
                              file, tensor->name);
    else
        keep_lse(trace, tensor, point, at);
    return true;
}

// What cu_seqlens_k says is in the file, or its tokens are: nothing is made for keys that nobody
// has.
static bool check_caches(const char *file, const sinkproof_trace *trace, sinkproof_error *error) {
    const trace_sequences *s = &trace->sequences;
    size_t known = trace->n + (s->named_at != NULL ? s->named_at[s->count] : 0);
    bool there = !s->apart || s->columns <= known;
    for (size_t l = 0; !there && l < trace->n_layers; l++) {
        const sinkproof_tensor **at = &trace->at_lp[l * TRACE_POINTS];
        there = trace->cached_lc[l * CACHED + OF_KEYS].gathered != NULL ||
                trace->cached_lc[l * CACHED + OF_VALUES].gathered != NULL || at[TRACE_A6] != NULL ||
                at[TRACE_A9] != NULL || at[TRACE_A10] != NULL;
    }
    return there || sinkproof_fail(error,
                                   "%.300s: tensor cu_seqlens_k: expected keys or values of %s, "
                                   "found none of any layer",
                                   file, sinkproof_counted(trace->sequences.columns, "row").text);
}

static bool check_format(const char *file, const sinkproof_trace *trace, sinkproof_error *error) {
    const char *format = sinkproof_safetensors_metadata(trace->file, "format");
    if (format != NULL && strcmp(format, "sinkproof-trace-1") == 0) return true;
    bool design = format != NULL && strcmp(format, "sinkproof-design-1") == 0;
    bool weights = sinkproof_safetensors_find(trace->file, "tokens") == NULL;
    return sinkproof_fail(
        error, "%.300s: expected metadata format sinkproof-trace-1, found %.100s%s", file,
        format != NULL ? format : "none",
        design    ? ": `sinkproof sinks --judge` reads it"
        : weights ? ", and no tokens: it is no trace (weights, perhaps: MODEL comes first, as the "
                    "directory that they are in, TRACE after it)"
                  : "");
}

// Puts the sequences of a padded batch in the place of its file.
static bool unpad_batch(const char *name, const sinkproof_config *config, sinkproof_trace *trace,
                        sinkproof_error *error) {
    size_t length;
    if (!batch_pack(name, trace->file, config, &trace->unpadded, &length, error)) return false;
    sinkproof_safetensors_close(trace->file);
    trace->file = NULL;
    return sinkproof_safetensors_parse((const uint8_t *)trace->unpadded, length, name, &trace->file,
                                       error);
}

// Takes ownership of the opened file, also on failure. `model`: the model that the trace must be
// of, or NULL.
static bool read_trace(const char *name, sinkproof_safetensors *file,
                       const sinkproof_config *config, const sinkproof_model *model,
                       sinkproof_trace **result, sinkproof_error *error) {
    sinkproof_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) {
        sinkproof_safetensors_close(file);
        return sinkproof_fail(error, "%.300s: no memory for a trace", name);
    }
    trace->file = file;
    if (holds_batch(file) && !unpad_batch(name, config, trace, error)) {
        sinkproof_trace_close(trace);
        return false;
    }
    file = trace->file;
    trace->path = strdup(name);
    trace->n_layers = config->n_layers;
    trace->at_lp = calloc(config->n_layers * TRACE_POINTS, sizeof *trace->at_lp);
    trace->cached_lc = calloc(config->n_layers * CACHED, sizeof *trace->cached_lc);
    bool good = (trace->path != NULL && trace->at_lp != NULL && trace->cached_lc != NULL) ||
                sinkproof_fail(error, "%.300s: no memory", name);
    good = good && check_format(name, trace, error) &&
           (model == NULL || sinkproof_file_matches_model(name, file, model, error)) &&
           read_lse_convention(name, trace, error) && read_sequence(name, config, trace, error);
    for (size_t i = 0; good && i < sinkproof_safetensors_count(file); i++)
        good = trace_is_radius(file, sinkproof_safetensors_at(file, i)) ||
               read_point(name, config, trace, sinkproof_safetensors_at(file, i), error);
    good = good && check_caches(name, trace, error);
    if (good)
        *result = trace;
    else
        sinkproof_trace_close(trace);
    return good;
}

// Refuses a directory: the user gave a MODEL in place of a TRACE.
static bool open_file(const char *path, sinkproof_safetensors **file, sinkproof_error *error) {
    struct stat status;
    *file = NULL;
    bool model = strncmp(path, "synthetic:", 10) == 0;
    if (model || (stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return sinkproof_fail(error,
                              "%.400s: expected a TRACE, found %s: MODEL comes first, TRACE after "
                              "it",
                              path, model ? "the name of a MODEL" : "a directory");
    return sinkproof_safetensors_open_parts(path, file, error);
}

bool sinkproof_trace_open(const char *path, const sinkproof_config *config, sinkproof_trace **trace,
                          sinkproof_error *error) {
    sinkproof_safetensors *file;
    if (trace == NULL) return sinkproof_fail(error, "expected a place for the trace, found NULL");
    *trace = NULL;
    if (path == NULL || config == NULL)
        return sinkproof_fail(error, "expected a path and a configuration, found NULL");
    if (!open_file(path, &file, error)) return false;
    return read_trace(path, file, config, NULL, trace, error);
}

bool sinkproof_trace_open_of(const char *path, const sinkproof_model *model, bool any_model,
                             sinkproof_trace **trace, sinkproof_error *error) {
    sinkproof_safetensors *file;
    if (trace == NULL) return sinkproof_fail(error, "expected a place for the trace, found NULL");
    *trace = NULL;
    if (path == NULL || model == NULL)
        return sinkproof_fail(error, "expected a path and a model, found NULL");
    if (!open_file(path, &file, error)) return false;
    return read_trace(path, file, sinkproof_model_config(model), any_model ? NULL : model, trace,
                      error);
}

bool trace_parse(const uint8_t *bytes, size_t length, const char *name,
                 const sinkproof_config *config, sinkproof_trace **trace, sinkproof_error *error) {
    sinkproof_safetensors *file;
    if (!sinkproof_safetensors_parse(bytes, length, name, &file, error)) return false;
    return read_trace(name, file, config, NULL, trace, error);
}

bool trace_adopt(char *bytes, size_t length, const char *name, const sinkproof_config *config,
                 sinkproof_trace **trace, sinkproof_error *error) {
    const uint8_t *file = (const uint8_t *)bytes;
    bool good = trace_parse(file, length, name, config, trace, error);
    if (good && (*trace)->unpadded == NULL)
        (*trace)->owned = bytes;
    else
        free(bytes);
    return good;
}

void sinkproof_trace_close(sinkproof_trace *trace) {
    if (trace == NULL) return;
    sinkproof_safetensors_close(trace->file);
    free(trace->owned);
    free(trace->unpadded);
    free(trace->path);
    free(trace->tokens_n);
    free(trace->positions_n);
    sequences_free(&trace->sequences);
    for (size_t i = 0; trace->cached_lc != NULL && i < trace->n_layers * CACHED; i++)
        free(trace->cached_lc[i].gathered);
    free(trace->at_lp);
    free(trace->cached_lc);
    free(trace);
}

const sinkproof_safetensors *sinkproof_trace_file(const sinkproof_trace *trace) {
    return trace->file;
}

const char *sinkproof_trace_path(const sinkproof_trace *trace) {
    return trace->path;
}

size_t sinkproof_trace_length(const sinkproof_trace *trace) {
    return trace->n;
}

const int32_t *sinkproof_trace_tokens(const sinkproof_trace *trace) {
    return trace->tokens_n;
}

const int32_t *sinkproof_trace_positions(const sinkproof_trace *trace) {
    return trace->positions_n;
}

size_t sinkproof_trace_first(const sinkproof_trace *trace) {
    return trace->sequences.count == 1 ? (size_t)trace->positions_n[0] : 0;
}

const int32_t *sinkproof_trace_prefix(const sinkproof_trace *trace) {
    return trace->sequences.prefix_n;
}

size_t sinkproof_trace_prefix_length(const sinkproof_trace *trace) {
    const trace_sequences *s = &trace->sequences;
    return s->prefix_n != NULL ? s->named_at[s->count] : 0;
}

sinkproof_lse sinkproof_trace_lse(const sinkproof_trace *trace) {
    return trace->lse;
}

bool sinkproof_trace_lse_by_token(const sinkproof_trace *trace) {
    return trace->lse_by == 2;
}

size_t sinkproof_trace_sequences(const sinkproof_trace *trace) {
    return trace->sequences.count;
}

size_t sinkproof_trace_columns(const sinkproof_trace *trace) {
    return trace->sequences.columns;
}

bool sinkproof_trace_is_apart(const sinkproof_trace *trace) {
    return trace->sequences.apart;
}

sinkproof_sequence sinkproof_trace_sequence(const sinkproof_trace *trace, size_t number) {
    const trace_sequences *s = &trace->sequences;
    size_t row = s->begins[number], named_at = s->named_at != NULL ? s->named_at[number] : 0;
    return (sinkproof_sequence){
        .number = number,
        .row = row,
        .rows = s->begins[number + 1] - row,
        .first = (size_t)trace->positions_n[row],
        .key = s->key[number],
        .keys = s->keys[number],
        .named_at = named_at,
        .named = s->named_at != NULL ? s->named_at[number + 1] - named_at : 0,
    };
}

sinkproof_sequence sinkproof_trace_sequence_of(const sinkproof_trace *trace, size_t row) {
    return sinkproof_trace_sequence(trace, trace->sequences.of_row[row]);
}

bool sinkproof_trace_from_start(const sinkproof_trace *trace, sinkproof_error *error) {
    if (trace->sequences.count > 1)
        return sinkproof_fail(error, "%.300s: expected a trace of one sequence, found %zu",
                              trace->path, trace->sequences.count);
    if (sinkproof_trace_first(trace) == 0) return true;
    return sinkproof_fail(error, "%.300s: expected a trace from position 0 on, found one from %zu",
                          trace->path, sinkproof_trace_first(trace));
}

const sinkproof_tensor *sinkproof_trace_before(const sinkproof_trace *trace,
                                               sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *found = sinkproof_trace_find(trace, point, layer);
    for (size_t kind = 0; found != NULL && kind < CACHED; kind++) {
        const cached *c = &trace->cached_lc[layer * CACHED + kind];
        if (found == &c->rows) return &c->before;
    }
    return NULL;
}

const char *sinkproof_trace_metadata(const sinkproof_trace *trace, const char *key) {
    return sinkproof_safetensors_metadata(trace->file, key);
}

const sinkproof_tensor *sinkproof_trace_find(const sinkproof_trace *trace,
                                             sinkproof_trace_point point, size_t layer) {
    if (!sinkproof_trace_point_is_layered(point)) layer = 0;
    if (layer >= trace->n_layers) return NULL;
    return trace->at_lp[layer * TRACE_POINTS + (size_t)point];
}

sinkproof_trace *sinkproof_trace_view(const sinkproof_trace *trace, sinkproof_trace_point point,
                                      size_t layer, const sinkproof_tensor *tensor) {
    size_t slots = trace->n_layers * TRACE_POINTS;
    sinkproof_trace *view = malloc(sizeof *view);
    const sinkproof_tensor **at_lp = malloc(slots * sizeof *at_lp);
    if (view == NULL || at_lp == NULL) {
        free(view);
        free(at_lp);
        return NULL;
    }
    *view = *trace;
    view->at_lp = at_lp;
    memcpy(at_lp, trace->at_lp, slots * sizeof *at_lp);
    if (!sinkproof_trace_point_is_layered(point)) layer = 0;
    at_lp[layer * TRACE_POINTS + (size_t)point] = tensor;
    return view;
}

void sinkproof_trace_view_free(sinkproof_trace *view) {
    if (view != NULL) free(view->at_lp);
    free(view);
}

void sinkproof_trace_forget_layer(const sinkproof_trace *trace, size_t layer) {
    for (int p = 0; layer < trace->n_layers && p < TRACE_POINTS; p++) {
        const sinkproof_tensor *tensor = trace->at_lp[layer * TRACE_POINTS + (size_t)p];
        if (tensor != NULL && sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
            sinkproof_safetensors_forget(trace->file, tensor);
    }
}

const uint8_t *sinkproof_trace_calls(const sinkproof_trace *trace) {
    return trace->sequences.calls_n;
}

size_t sinkproof_trace_gradients(const sinkproof_trace *trace) {
    return trace->gradients;
}
