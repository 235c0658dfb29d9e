// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Builds a trace in memory from the caller's arrays: each is checked when it is added, and all are
// checked again, like an untrusted file, when the trace is finished.
#include "audit/sinkproof.h"
#include "audit/trace/gradients.h"
#include "audit/trace/trace_points.h"
#include "audit/trace/trace_write.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One tensor that was added; `data` is NULL if it was not.
typedef struct added {
    sinkproof_dtype dtype;
    uint8_t *data;
    size_t bytes, rank, shape[SINKPROOF_MAX_RANK];
} added;

typedef struct added_gradient {
    char name[SINKPROOF_TRACE_NAME];
    added tensor;
} added_gradient;

struct sinkproof_trace_builder {
    const sinkproof_model *model;
    char engine[256], policy[SINKPROOF_POLICY_NAME],
        of[256];                  // `of`: "" stands for this model's fingerprint
    char lse[16], lse_layout[16]; // metadata; "": not said
    char loss[2048], *calls;
    size_t n, columns, n_layers; // columns: of keys
    size_t sequences;
    bool apart; // with columns of keys of their own
    int32_t *tokens_n, *positions_n, *cu_seqlens, *cu_seqlens_k; // [sequences + 1]; k: or NULL
    int32_t *prefix, *cu_seqlens_prefix; // [n_prefix], [sequences + 1], or NULL
    size_t n_prefix;
    added *at_lp; // [n_layers, TRACE_POINTS]
    added_gradient *gradients;
    size_t n_gradients;
};

static bool fill_builder(sinkproof_trace_builder *b, const sinkproof_model *model,
                         const char *engine, const char *policy, const int32_t *tokens_n,
                         sinkproof_error *error) {
    b->model = model;
    b->n_layers = sinkproof_model_config(model)->n_layers;
    snprintf(b->engine, sizeof b->engine, "%s", engine);
    if (policy != NULL && strlen(policy) >= sizeof b->policy)
        return sinkproof_fail(error, "a policy of %s: at most %zu are kept",
                              sinkproof_counted(strlen(policy), "character").text,
                              sizeof b->policy - 1);
    strcpy(b->policy, policy != NULL ? policy : "");
    b->tokens_n = calloc(b->n, sizeof *b->tokens_n);
    b->positions_n = calloc(b->n, sizeof *b->positions_n);
    b->at_lp = calloc(b->n_layers * TRACE_POINTS, sizeof *b->at_lp);
    if (b->tokens_n == NULL || b->positions_n == NULL || b->at_lp == NULL)
        return sinkproof_fail(error, "no memory for a trace of %s",
                              sinkproof_counted(b->n, "token").text);
    memcpy(b->tokens_n, tokens_n, b->n * sizeof *tokens_n);
    for (size_t t = 0; t < b->n; t++) b->positions_n[t] = (int32_t)t;
    return true;
}

bool sinkproof_trace_builder_new(const sinkproof_model *model, const char *engine,
                                 const char *policy, size_t n, const int32_t *tokens_n,
                                 sinkproof_trace_builder **builder, sinkproof_error *error) {
    if (builder == NULL) return sinkproof_fail(error, "expected a place for a builder, found NULL");
    *builder = NULL;
    if (model == NULL || engine == NULL || tokens_n == NULL || n == 0)
        return sinkproof_fail(error, "expected a model, an engine's name and one token or more");
    sinkproof_trace_builder *b = calloc(1, sizeof *b);
    if (b == NULL) return sinkproof_fail(error, "no memory for a trace");
    b->n = b->columns = n;
    bool good = fill_builder(b, model, engine, policy, tokens_n, error);
    if (good)
        *builder = b;
    else
        sinkproof_trace_builder_free(b);
    return good;
}

bool sinkproof_trace_builder_of(sinkproof_trace_builder *b, const char *fingerprint,
                                sinkproof_error *error) {
    if (b == NULL || fingerprint == NULL)
        return sinkproof_fail(error, "expected a builder and a fingerprint, found NULL");
    if (strlen(fingerprint) >= sizeof b->of)
        return sinkproof_fail(error, "expected a fingerprint of at most %s, found %zu",
                              sinkproof_counted(sizeof b->of - 1, "character").text,
                              strlen(fingerprint));
    strcpy(b->of, fingerprint);
    return true;
}

bool sinkproof_trace_builder_lse(sinkproof_trace_builder *b, const char *lse, const char *layout,
                                 sinkproof_error *error) {
    if (b == NULL) return sinkproof_fail(error, "expected a builder, found NULL");
    if ((lse != NULL && strlen(lse) >= sizeof b->lse) ||
        (layout != NULL && strlen(layout) >= sizeof b->lse_layout))
        return sinkproof_fail(error, "expected words on A9.lse of at most %s",
                              sinkproof_counted(sizeof b->lse - 1, "character").text);
    if (lse != NULL) strcpy(b->lse, lse);
    if (layout != NULL) strcpy(b->lse_layout, layout);
    return true;
}

bool sinkproof_trace_builder_loss(sinkproof_trace_builder *b, const char *loss,
                                  sinkproof_error *error) {
    if (b == NULL || loss == NULL)
        return sinkproof_fail(error, "expected a builder and a loss, found NULL");
    if (strlen(loss) >= sizeof b->loss)
        return sinkproof_fail(error, "expected a loss of at most %s, found %zu",
                              sinkproof_counted(sizeof b->loss - 1, "character").text,
                              strlen(loss));
    strcpy(b->loss, loss);
    return true;
}

bool sinkproof_trace_builder_calls(sinkproof_trace_builder *b, const char *calls,
                                   sinkproof_error *error) {
    if (b == NULL || calls == NULL)
        return sinkproof_fail(error, "expected a builder and calls, found NULL");
    if (b->calls != NULL) return sinkproof_fail(error, "expected calls that are named once");
    b->calls = strdup(calls);
    return b->calls != NULL || sinkproof_fail(error, "no memory for the calls");
}

// Says that the rows [row, row + rows) are at the positions from `first` on.
static bool place_rows(sinkproof_trace_builder *b, size_t row, size_t rows, size_t first,
                       sinkproof_error *error) {
    size_t context = sinkproof_model_config(b->model)->max_context;
    if (context > INT32_MAX) context = INT32_MAX;
    if (first >= context || rows > context - first)
        return sinkproof_fail(error, "expected positions below %zu, found %s from %zu on", context,
                              sinkproof_counted(rows, "token").text, first);
    for (size_t t = 0; t < rows; t++) b->positions_n[row + t] = (int32_t)(first + t);
    return true;
}

static bool holds_no_point(const sinkproof_trace_builder *b, sinkproof_error *error) {
    for (size_t i = 0; i < b->n_layers * TRACE_POINTS; i++)
        if (b->at_lp[i].data != NULL)
            return sinkproof_fail(error, "expected positions and sequences before any point");
    if (b->n_gradients > 0)
        return sinkproof_fail(error, "expected positions and sequences before any gradient");
    return true;
}

bool sinkproof_trace_builder_place(sinkproof_trace_builder *b, size_t sequences, const size_t *rows,
                                   const size_t *firsts, sinkproof_error *error) {
    if (b == NULL || rows == NULL)
        return sinkproof_fail(error, "expected a builder and rows, found NULL");
    if (b->cu_seqlens != NULL)
        return sinkproof_fail(error, "expected sequences that are named once");
    size_t row = 0;
    bool fits = sequences > 0 && sequences <= b->n;
    for (size_t s = 0; fits && s < sequences; s++) {
        fits = rows[s] > 0 && rows[s] <= b->n - row;
        row += fits ? rows[s] : 0;
    }
    if (!fits || row != b->n)
        return sinkproof_fail(error, "expected sequences of one token or more, %zu together", b->n);
    if (!holds_no_point(b, error)) return false;
    b->cu_seqlens = calloc(sequences + 1, sizeof *b->cu_seqlens);
    if (b->cu_seqlens == NULL) return sinkproof_fail(error, "no memory for the sequences");
    b->sequences = sequences;
    row = 0;
    for (size_t s = 0; s < sequences; s++) {
        if (!place_rows(b, row, rows[s], firsts != NULL ? firsts[s] : 0, error)) return false;
        row += rows[s];
        b->cu_seqlens[s + 1] = (int32_t)row;
    }
    b->columns = b->n + (sequences == 1 ? (size_t)b->positions_n[0] : 0);
    return true;
}

bool sinkproof_trace_builder_cached(sinkproof_trace_builder *b, const size_t *keys,
                                    sinkproof_error *error) {
    if (b == NULL || keys == NULL)
        return sinkproof_fail(error, "expected a builder and keys, found NULL");
    if (b->cu_seqlens == NULL || b->cu_seqlens_k != NULL)
        return sinkproof_fail(error, "expected sequences, and their keys once");
    if (!holds_no_point(b, error)) return false;
    b->cu_seqlens_k = calloc(b->sequences + 1, sizeof *b->cu_seqlens_k);
    if (b->cu_seqlens_k == NULL) return sinkproof_fail(error, "no memory for the sequences");
    size_t columns = 0;
    for (size_t s = 0; s < b->sequences; s++) {
        size_t row = (size_t)b->cu_seqlens[s], rows = (size_t)b->cu_seqlens[s + 1] - row;
        size_t most = (size_t)b->positions_n[row] + rows;
        if (keys[s] < rows || keys[s] > most || keys[s] > (size_t)INT32_MAX - 1 - columns)
            return sinkproof_fail(error, "expected %zu to %s of sequence %zu, found %zu", rows,
                                  sinkproof_counted(most, "key").text, s, keys[s]);
        columns += keys[s];
        b->cu_seqlens_k[s + 1] = (int32_t)columns;
    }
    b->columns = columns, b->apart = true;
    return true;
}

bool sinkproof_trace_builder_prefixes(sinkproof_trace_builder *b, const size_t *named, size_t n,
                                      const int32_t *tokens_n, sinkproof_error *error) {
    size_t at = 0, columns = 0, sequences;
    if (b == NULL || tokens_n == NULL)
        return sinkproof_fail(error, "expected a builder and tokens, found NULL");
    if (b->prefix != NULL) return sinkproof_fail(error, "expected prefixes that are named once");
    if (!holds_no_point(b, error)) return false;
    sequences = b->cu_seqlens != NULL ? b->sequences : 1;
    int32_t *ends = calloc(sequences + 1, sizeof *ends);
    b->prefix = calloc(n + 1, sizeof *b->prefix);
    b->cu_seqlens_prefix = ends;
    if (b->prefix == NULL || ends == NULL) return sinkproof_fail(error, "no memory for a prefix");
    for (size_t s = 0; s < sequences; s++) {
        size_t row = b->cu_seqlens != NULL ? (size_t)b->cu_seqlens[s] : 0;
        size_t end = b->cu_seqlens != NULL ? (size_t)b->cu_seqlens[s + 1] : b->n;
        size_t first = (size_t)b->positions_n[row], here = named != NULL ? named[s] : first;
        if ((here != 0 && here != first) || here > (size_t)INT32_MAX - 1 - at)
            return sinkproof_fail(error,
                                  "expected all %s before sequence %zu or none, "
                                  "found %zu",
                                  sinkproof_counted(first, "token").text, s, here);
        at += here, columns += end - row + here;
        ends[s + 1] = (int32_t)at;
    }
    if (at == 0 || at != n)
        return sinkproof_fail(error,
                              "expected the tokens before sequences that begin after position 0, "
                              "%zu of them, found %zu",
                              at, n);
    memcpy(b->prefix, tokens_n, n * sizeof *tokens_n);
    b->n_prefix = n;
    if (sequences > 1 && b->cu_seqlens_k == NULL) b->columns = columns, b->apart = true;
    return true;
}

static void drop_tensors(sinkproof_trace_builder *b) {
    for (size_t i = 0; b->at_lp != NULL && i < b->n_layers * TRACE_POINTS; i++) {
        free(b->at_lp[i].data);
        b->at_lp[i].data = NULL;
    }
    for (size_t i = 0; i < b->n_gradients; i++) free(b->gradients[i].tensor.data);
    b->n_gradients = 0;
}

void sinkproof_trace_builder_free(sinkproof_trace_builder *builder) {
    if (builder == NULL) return;
    drop_tensors(builder);
    free(builder->at_lp);
    free(builder->gradients);
    free(builder->tokens_n);
    free(builder->positions_n);
    free(builder->cu_seqlens);
    free(builder->cu_seqlens_k);
    free(builder->prefix);
    free(builder->cu_seqlens_prefix);
    free(builder->calls);
    free(builder);
}

static bool parse_dtype(const char *name, const char *text, bool integer, sinkproof_dtype *dtype,
                        sinkproof_error *error) {
    static const sinkproof_dtype known[] = {SINKPROOF_DTYPE_BF16, SINKPROOF_DTYPE_F16,
                                            SINKPROOF_DTYPE_F32,  SINKPROOF_DTYPE_F64,
                                            SINKPROOF_DTYPE_I32,  SINKPROOF_DTYPE_I64};
    for (size_t i = integer ? 4 : 0; i < (integer ? 6 : 4); i++) {
        *dtype = known[i];
        if (text != NULL && strcmp(text, sinkproof_dtype_name(known[i])) == 0) return true;
    }
    return sinkproof_fail(error, "%.40s: expected dtype %s, found %.40s", name,
                          integer ? "I32 or I64" : "BF16, F16, F32 or F64",
                          text != NULL ? text : "NULL");
}

// Finds the point of a name, its layer and its shape in this trace.
static bool locate_point(const sinkproof_trace_builder *b, const char *name,
                         sinkproof_trace_point *point, size_t *layer, sinkproof_error *error) {
    if (sinkproof_trace_name_parse(name, point, layer) &&
        trace_may_hold(sinkproof_model_config(b->model), *point, *layer))
        return true;
    char nearest[SINKPROOF_TRACE_NAME];
    sinkproof_trace_nearest(name, b->n_layers, nearest);
    return sinkproof_fail(error, "unknown point '%.100s': the nearest known name is %s", name,
                          nearest);
}

// Counts the bytes of an array of the point's shape.
static bool count_bytes(const char *name, size_t rank, const size_t *shape, size_t expected_rank,
                        const size_t *expected, size_t size, size_t *bytes,
                        sinkproof_error *error) {
    bool same = rank == expected_rank, fits = true;
    *bytes = size;
    for (size_t d = 0; d < expected_rank; d++) {
        same = same && shape[d] == expected[d];
        fits = fits && !__builtin_mul_overflow(*bytes, expected[d], bytes);
    }
    if (!fits) return sinkproof_fail(error, "%s: too large", name);
    if (same) return true;
    char text[128] = "";
    for (size_t d = 0, used = 0; d < expected_rank; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu", d > 0 ? ", " : "",
                                 expected[d]);
    return sinkproof_fail(error, "%s: expected shape [%s], found another%s", name, text,
                          shape_has_batch(rank, shape, expected_rank, expected) ? SHAPE_OF_A_BATCH
                                                                                : "");
}

static bool copy_data(const char *name, sinkproof_dtype dtype, size_t bytes, size_t rank,
                      const size_t *shape, const void *data, added *a, sinkproof_error *error) {
    *a = (added){.dtype = dtype, .data = malloc(bytes), .bytes = bytes, .rank = rank};
    if (a->data == NULL)
        return sinkproof_fail(error, "%s: no memory for %s", name,
                              sinkproof_counted(bytes, "byte").text);
    memcpy(a->data, data, bytes);
    memcpy(a->shape, shape, rank * sizeof *shape);
    return true;
}

// Room for one more gradient, which is not counted yet.
static added_gradient *next_gradient(sinkproof_trace_builder *b, const char *name,
                                     sinkproof_error *error) {
    for (size_t i = 0; i < b->n_gradients; i++)
        if (strcmp(b->gradients[i].name, name) == 0)
            return sinkproof_fail(error, "%s: it is already there", name), NULL;
    added_gradient *more = realloc(b->gradients, (b->n_gradients + 1) * sizeof *more);
    if (more == NULL) return sinkproof_fail(error, "%s: no memory for a gradient", name), NULL;
    b->gradients = more;
    snprintf(more[b->n_gradients].name, sizeof more->name, "%s", name);
    return &more[b->n_gradients];
}

static bool add_gradient(sinkproof_trace_builder *b, const char *name,
                         const sinkproof_gradient *gradient, const char *dtype, size_t rank,
                         const size_t *shape, const void *data, sinkproof_error *error) {
    sinkproof_dtype kept = SINKPROOF_DTYPE_F64;
    size_t bytes, expected[SINKPROOF_MAX_RANK];
    size_t expected_rank = sinkproof_gradient_shape_in(sinkproof_model_config(b->model), gradient,
                                                       b->columns - b->n, b->n, expected);
    if (expected_rank == 0)
        return sinkproof_fail(error, "%s: the model has no such point or weight", name);
    if (!parse_dtype(name, dtype, false, &kept, error) ||
        !count_bytes(name, rank, shape, expected_rank, expected, sinkproof_dtype_size(kept), &bytes,
                     error))
        return false;
    added_gradient *g = next_gradient(b, name, error);
    if (g == NULL || !copy_data(name, kept, bytes, rank, expected, data, &g->tensor, error))
        return false;
    b->n_gradients++;
    return true;
}

bool sinkproof_trace_builder_add(sinkproof_trace_builder *b, const char *name, const char *dtype,
                                 size_t rank, const size_t *shape, const void *data,
                                 sinkproof_error *error) {
    sinkproof_trace_point point;
    sinkproof_dtype kept = SINKPROOF_DTYPE_F64;
    size_t layer, bytes, expected[SINKPROOF_MAX_RANK];
    if (b == NULL || name == NULL || shape == NULL || data == NULL)
        return sinkproof_fail(error, "expected a builder, a name, a shape and data, found NULL");
    sinkproof_gradient gradient;
    if (sinkproof_gradient_parse(name, &gradient))
        return add_gradient(b, name, &gradient, dtype, rank, shape, data, error);
    if (!locate_point(b, name, &point, &layer, error)) return false;
    if (!parse_dtype(name, dtype, sinkproof_trace_point_is_index(point), &kept, error))
        return false;
    const sinkproof_config *config = sinkproof_model_config(b->model);
    size_t expected_rank = trace_shape_from(config, point, b->columns - b->n, b->n, expected);
    if (sinkproof_trace_point_is_offered(point) && rank == 2 && shape[0] == b->n)
        expected[0] = shape[0], expected[1] = config->n_heads; // tokens first
    if (rank == expected_rank && sinkproof_trace_is_cached(config, point)) {
        if (b->apart && shape[0] != b->n)
            expected[0] = b->columns;
        else if (b->sequences <= 1 && shape[0] > b->n && shape[0] <= b->columns)
            expected[0] = shape[0];
    }
    if (!count_bytes(name, rank, shape, expected_rank, expected, sinkproof_dtype_size(kept), &bytes,
                     error))
        return false;
    added *a = &b->at_lp[layer * TRACE_POINTS + (size_t)point];
    if (a->data != NULL) return sinkproof_fail(error, "%s: it is already there", name);
    return copy_data(name, kept, bytes, rank, expected, data, a, error);
}

// ---- making the trace ------------------------------------------------------------------------

static bool names_sequences(const sinkproof_trace_builder *b) {
    return b->sequences > 1 || b->cu_seqlens_k != NULL;
}

static bool declare_tensors(const sinkproof_trace_builder *b, sinkproof_safetensors_writer *out,
                            sinkproof_error *error) {
    char name[SINKPROOF_TRACE_NAME];
    const char *policy = b->policy[0] != '\0' ? b->policy : NULL;
    if (!trace_declare_head(out, b->model, b->engine, policy, b->n, error)) return false;
    size_t ends = b->sequences + 1;
    if (b->lse[0] != '\0') sinkproof_safetensors_writer_metadata(out, "lse", b->lse);
    if (b->lse_layout[0] != '\0')
        sinkproof_safetensors_writer_metadata(out, "lse_layout", b->lse_layout);
    if (b->loss[0] != '\0') sinkproof_safetensors_writer_metadata(out, "loss", b->loss);
    if (b->calls != NULL) sinkproof_safetensors_writer_metadata(out, "calls", b->calls);
    if (names_sequences(b))
        sinkproof_safetensors_writer_declare(out, "cu_seqlens", SINKPROOF_DTYPE_I32, 1, &ends);
    if (b->cu_seqlens_k != NULL)
        sinkproof_safetensors_writer_declare(out, "cu_seqlens_k", SINKPROOF_DTYPE_I32, 1, &ends);
    if (b->prefix != NULL)
        sinkproof_safetensors_writer_declare(out, "prefix", SINKPROOF_DTYPE_I32, 1, &b->n_prefix);
    if (b->prefix != NULL && b->sequences > 1)
        sinkproof_safetensors_writer_declare(out, "cu_seqlens_prefix", SINKPROOF_DTYPE_I32, 1,
                                             &ends);
    if (b->of[0] != '\0') sinkproof_safetensors_writer_metadata(out, "model", b->of);
    for (size_t i = 0; i < b->n_layers * TRACE_POINTS; i++) {
        const added *a = &b->at_lp[i];
        if (a->data == NULL) continue;
        sinkproof_trace_name((sinkproof_trace_point)(i % TRACE_POINTS), i / TRACE_POINTS, name);
        sinkproof_safetensors_writer_declare(out, name, a->dtype, a->rank, a->shape);
    }
    for (size_t i = 0; i < b->n_gradients; i++) {
        const added *a = &b->gradients[i].tensor;
        sinkproof_safetensors_writer_declare(out, b->gradients[i].name, a->dtype, a->rank,
                                             a->shape);
    }
    return true;
}

// Writes tokens, positions, sequences, then points and gradients in the
// order of their declaration.
static bool write_bytes(const sinkproof_trace_builder *b, sinkproof_safetensors_writer *out,
                        sinkproof_error *error) {
    size_t indices = b->n * sizeof *b->tokens_n;
    bool good = sinkproof_safetensors_writer_bytes(out, b->tokens_n, indices, error) &&
                sinkproof_safetensors_writer_bytes(out, b->positions_n, indices, error);
    if (good && names_sequences(b))
        good = sinkproof_safetensors_writer_bytes(
            out, b->cu_seqlens, (b->sequences + 1) * sizeof *b->cu_seqlens, error);
    if (good && b->cu_seqlens_k != NULL)
        good = sinkproof_safetensors_writer_bytes(
            out, b->cu_seqlens_k, (b->sequences + 1) * sizeof *b->cu_seqlens_k, error);
    if (good && b->prefix != NULL)
        good = sinkproof_safetensors_writer_bytes(out, b->prefix, b->n_prefix * sizeof *b->prefix,
                                                  error);
    if (good && b->prefix != NULL && b->sequences > 1)
        good = sinkproof_safetensors_writer_bytes(
            out, b->cu_seqlens_prefix, (b->sequences + 1) * sizeof *b->cu_seqlens_prefix, error);
    for (size_t i = 0; good && i < b->n_layers * TRACE_POINTS; i++)
        if (b->at_lp[i].data != NULL)
            good =
                sinkproof_safetensors_writer_bytes(out, b->at_lp[i].data, b->at_lp[i].bytes, error);
    for (size_t i = 0; good && i < b->n_gradients; i++)
        good = sinkproof_safetensors_writer_bytes(out, b->gradients[i].tensor.data,
                                                  b->gradients[i].tensor.bytes, error);
    return good;
}

bool sinkproof_trace_builder_finish(sinkproof_trace_builder *builder, sinkproof_trace **trace,
                                    sinkproof_error *error) {
    char *bytes = NULL;
    size_t length;
    if (trace == NULL) return sinkproof_fail(error, "expected a place for the trace, found NULL");
    *trace = NULL;
    if (builder == NULL) return sinkproof_fail(error, "expected a builder, found NULL");
    sinkproof_safetensors_writer *out = sinkproof_safetensors_writer_new();
    bool good = declare_tensors(builder, out, error) &&
                sinkproof_safetensors_writer_begin_memory(out, &bytes, &length, error) &&
                write_bytes(builder, out, error) && sinkproof_safetensors_writer_finish(out, error);
    sinkproof_safetensors_writer_free(out);
    if (!good) {
        free(bytes);
        return false;
    }
    drop_tensors(builder);
    return trace_adopt(bytes, length, "(memory)", sinkproof_model_config(builder->model), trace,
                       error);
}
