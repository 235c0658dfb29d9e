// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Takes the padding out of a batch: every tensor [b, n, ...] becomes [N, ...] with a row for each
// of the N tokens that are none, sequence by sequence; A6, A9 and A10, [b, heads, n, keys], become
// [heads, N, keys of all], with zeros between the sequences.
#include "audit/trace/trace_batch.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

typedef struct batch {
    const char *name;
    const sinkproof_safetensors *file;
    const sinkproof_config *config;
    size_t b, n, kept;         // rows of the batch, columns, tokens that are no padding
    size_t *place;             // [kept]: row * n + column
    size_t sequences, *begins; // [sequences + 1], in `place`
} batch;

static const sinkproof_tensor *find_indices(const sinkproof_safetensors *file, const char *name) {
    const sinkproof_tensor *t = sinkproof_safetensors_find(file, name);
    bool good = t != NULL && t->rank == 2 &&
                (t->dtype == SINKPROOF_DTYPE_I32 || t->dtype == SINKPROOF_DTYPE_I64);
    return good ? t : NULL;
}

bool holds_batch(const sinkproof_safetensors *file) {
    return find_indices(file, "tokens") != NULL &&
           sinkproof_safetensors_find(file, "attention_mask") != NULL;
}

static bool has_shape(const batch *x, const sinkproof_tensor *t, size_t rank, const size_t *shape,
                      sinkproof_error *error) {
    bool same = t != NULL && t->rank == rank;
    for (size_t d = 0; same && d < rank; d++) same = t->shape[d] == shape[d];
    return same || sinkproof_fail(error,
                                  "%.300s: tensor %.100s: expected the shape of its point in a "
                                  "batch [%zu, %zu]",
                                  x->name, t != NULL ? t->name : "attention_mask", x->b, x->n);
}

// Finds the tokens that are no padding.
static bool find_tokens(batch *x, sinkproof_error *error) {
    const sinkproof_tensor *tokens = find_indices(x->file, "tokens");
    x->b = tokens->shape[0], x->n = tokens->shape[1];
    const size_t shape[2] = {x->b, x->n};
    const sinkproof_tensor *mask = find_indices(x->file, "attention_mask");
    if (!has_shape(x, mask, 2, shape, error)) return false;
    size_t all = sinkproof_tensor_elements(tokens);
    x->place = calloc(all + 1, sizeof *x->place);
    x->begins = calloc(x->b + 1, sizeof *x->begins);
    if (x->place == NULL || x->begins == NULL)
        return sinkproof_fail(error, "%.300s: no memory for a batch", x->name);
    for (size_t row = 0; row < x->b; row++) {
        for (size_t i = row * x->n; i < (row + 1) * x->n; i++)
            if (sinkproof_tensor_value(mask, i) != 0) x->place[x->kept++] = i;
        if (x->kept > x->begins[x->sequences]) x->begins[++x->sequences] = x->kept;
    }
    return x->kept > 0 ||
           sinkproof_fail(error,
                          "%.300s: tensor attention_mask: expected a token that is no padding",
                          x->name);
}

// One tensor of the result.
typedef struct packed_tensor {
    const sinkproof_tensor *from;
    sinkproof_trace_point point;
    size_t rank, shape[SINKPROOF_MAX_RANK];
    bool heads_first, by_head; // [b, heads, n]; and with keys
} packed_tensor;

static bool lay_out_lse(const batch *x, packed_tensor *t, sinkproof_error *error) {
    const char *said = sinkproof_safetensors_metadata(x->file, "lse_layout");
    size_t heads = x->config->n_heads;
    if (said == NULL && heads == x->n)
        return sinkproof_fail(
            error,
            "%.300s: tensor %.100s: its shape says not which is the head: expected "
            "metadata lse_layout heads,tokens or tokens,heads",
            x->name, t->from->name);
    t->heads_first = said != NULL ? strcmp(said, "tokens,heads") != 0
                                  : t->from->rank == 3 && t->from->shape[1] == heads;
    return true;
}

// The keys of all sequences in each row: a file of many short rows would become much larger.
static bool fits_packed(const batch *x, const packed_tensor *t, sinkproof_error *error) {
    size_t bytes = sinkproof_dtype_size(t->from->dtype), most = (size_t)1 << 26;
    bool fits = true;
    for (size_t d = 0; d < t->rank; d++)
        fits = fits && !__builtin_mul_overflow(bytes, t->shape[d], &bytes);
    fits = fits && (bytes <= most || bytes / 64 <= t->from->bytes);
    return fits || sinkproof_fail(error,
                                  "%.300s: tensor %.100s: too large for %s end to end: give "
                                  "fewer rows of the batch",
                                  x->name, t->from->name, sinkproof_counted(x->kept, "token").text);
}

static bool lay_out_tensor(const batch *x, const sinkproof_tensor *from, packed_tensor *t,
                           sinkproof_error *error) {
    size_t layer, shape[SINKPROOF_MAX_RANK + 1] = {x->b};
    *t = (packed_tensor){.from = from};
    if (!sinkproof_trace_name_parse(from->name, &t->point, &layer))
        return sinkproof_fail(error, "%.300s: unknown tensor '%.100s'", x->name, from->name);
    t->by_head = t->heads_first = sinkproof_trace_point_is_by_head(t->point);
    t->rank = sinkproof_trace_shape(x->config, t->point, x->n, shape + 1);
    bool lse = sinkproof_trace_point_is_offered(t->point);
    if (lse && !lay_out_lse(x, t, error)) return false;
    if (lse && !t->heads_first) shape[1] = x->n, shape[2] = x->config->n_heads;
    if (!has_shape(x, from, t->rank + 1, shape, error)) return false;
    memcpy(t->shape, shape + 1, t->rank * sizeof *t->shape);
    t->shape[t->heads_first] = x->kept;
    if (t->by_head) t->shape[2] += x->kept - x->n;
    return !t->by_head || fits_packed(x, t, error);
}

// Writes the rows of a tensor whose tokens come first.
static bool write_rows(const batch *x, const sinkproof_tensor *from,
                       sinkproof_safetensors_writer *out, sinkproof_error *error) {
    size_t each = from->bytes / (x->b * x->n);
    bool good = true;
    for (size_t i = 0; good && i < x->kept; i++)
        good =
            sinkproof_safetensors_writer_bytes(out, from->data + x->place[i] * each, each, error);
    return good;
}

// Writes what a head has of each token: a number, or a row of keys and perhaps the sink's column.
static bool write_heads(const batch *x, const packed_tensor *t, sinkproof_safetensors_writer *out,
                        sinkproof_error *error) {
    const sinkproof_tensor *from = t->from;
    size_t heads = t->shape[0], size = sinkproof_dtype_size(from->dtype);
    size_t wide = t->by_head ? from->shape[3] : 1, columns = t->by_head ? t->shape[2] : 1;
    uint8_t *row = calloc(columns, size);
    bool good = row != NULL || sinkproof_fail(error, "%.300s: no memory for a batch", x->name);
    for (size_t h = 0; good && h < heads; h++)
        for (size_t s = 0; good && s < x->sequences; s++)
            for (size_t i = x->begins[s]; good && i < x->begins[s + 1]; i++) {
                size_t line = x->place[i] / x->n, at = x->place[i] % x->n;
                const uint8_t *source = from->data + ((line * heads + h) * x->n + at) * wide * size;
                memset(row, 0, columns * size);
                for (size_t j = x->begins[s]; t->by_head && j < x->begins[s + 1]; j++)
                    memcpy(row + j * size, source + x->place[j] % x->n * size, size);
                if (t->by_head && wide > x->n)
                    memcpy(row + x->kept * size, source + x->n * size, size);
                if (!t->by_head) memcpy(row, source, size);
                good = sinkproof_safetensors_writer_bytes(out, row, columns * size, error);
            }
    free(row);
    return good;
}

// Positions count the tokens of a sequence where the file has none.
static bool write_indices(const batch *x, sinkproof_safetensors_writer *out,
                          sinkproof_error *error) {
    const sinkproof_tensor *said = sinkproof_safetensors_find(x->file, "positions");
    const size_t shape[2] = {x->b, x->n};
    if (said != NULL && !has_shape(x, said, 2, shape, error)) return false;
    bool good = true;
    for (size_t s = 0; good && s <= x->sequences; s++) {
        int64_t at = (int64_t)x->begins[s];
        good = sinkproof_safetensors_writer_bytes(out, &at, sizeof at, error);
    }
    for (size_t s = 0; good && s < x->sequences; s++)
        for (size_t i = x->begins[s]; good && i < x->begins[s + 1]; i++) {
            int64_t at = said != NULL ? (int64_t)sinkproof_tensor_value(said, x->place[i])
                                      : (int64_t)(i - x->begins[s]);
            good = sinkproof_safetensors_writer_bytes(out, &at, sizeof at, error);
        }
    return good && write_rows(x, sinkproof_safetensors_find(x->file, "tokens"), out, error);
}

static bool is_beside(const char *name) {
    return strcmp(name, "tokens") == 0 || strcmp(name, "positions") == 0 ||
           strcmp(name, "attention_mask") == 0;
}

// Declares the file: what its metadata say, indices, then the points in their order.
static bool declare_batch(const batch *x, sinkproof_safetensors_writer *out, packed_tensor *tensors,
                          size_t *count, sinkproof_error *error) {
    static const char *const kept[] = {"format", "engine", "version", "policy",
                                       "model",  "ranks",  "lse"};
    const sinkproof_tensor *tokens = sinkproof_safetensors_find(x->file, "tokens");
    const size_t ends = x->sequences + 1;
    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
        const char *said = sinkproof_safetensors_metadata(x->file, kept[k]);
        if (said != NULL) sinkproof_safetensors_writer_metadata(out, kept[k], said);
    }
    sinkproof_safetensors_writer_declare(out, "cu_seqlens", SINKPROOF_DTYPE_I64, 1, &ends);
    sinkproof_safetensors_writer_declare(out, "positions", SINKPROOF_DTYPE_I64, 1, &x->kept);
    sinkproof_safetensors_writer_declare(out, "tokens", tokens->dtype, 1, &x->kept);
    const char *layout = NULL;
    for (size_t i = 0; i < sinkproof_safetensors_count(x->file); i++) {
        const sinkproof_tensor *from = sinkproof_safetensors_at(x->file, i);
        packed_tensor *t = &tensors[*count];
        if (is_beside(from->name)) continue;
        if (!lay_out_tensor(x, from, t, error)) return false;
        if (sinkproof_trace_point_is_offered(t->point))
            layout = t->heads_first ? "heads,tokens" : "tokens,heads";
        sinkproof_safetensors_writer_declare(out, from->name, from->dtype, t->rank, t->shape);
        (*count)++;
    }
    if (layout != NULL) sinkproof_safetensors_writer_metadata(out, "lse_layout", layout);
    return true;
}

bool batch_pack(const char *name, const sinkproof_safetensors *file, const sinkproof_config *config,
                char **bytes, size_t *length, sinkproof_error *error) {
    batch x = {.name = name, .file = file, .config = config};
    size_t count = 0;
    packed_tensor *tensors = calloc(sinkproof_safetensors_count(file), sizeof *tensors);
    sinkproof_safetensors_writer *out = sinkproof_safetensors_writer_new();
    *bytes = NULL;
    bool good = tensors != NULL || sinkproof_fail(error, "%.300s: no memory for a batch", name);
    good = good && find_tokens(&x, error) && declare_batch(&x, out, tensors, &count, error) &&
           sinkproof_safetensors_writer_begin_memory(out, bytes, length, error) &&
           write_indices(&x, out, error);
    for (size_t i = 0; good && i < count; i++)
        good = tensors[i].heads_first ? write_heads(&x, &tensors[i], out, error)
                                      : write_rows(&x, tensors[i].from, out, error);
    good = good && sinkproof_safetensors_writer_finish(out, error);
    sinkproof_safetensors_writer_free(out);
    free(tensors);
    free(x.place);
    free(x.begins);
    if (!good) free(*bytes);
    if (!good) *bytes = NULL;
    return good;
}
