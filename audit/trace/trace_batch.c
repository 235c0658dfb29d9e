// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Takes the padding out of a batch: every tensor [b, n, ...] becomes [N, ...] with a row for each
// of the N tokens that are none, sequence by sequence; A6, A9 and A10, [b, heads, n, keys], become
// [heads, N, keys of all], with zeros between the sequences. Keys of earlier positions are those of
// a mask with more columns than tokens, or end to end as cu_seqlens_k says.
#include "audit/trace/trace_batch.h"

#include "audit/trace/gradients.h"
#include "audit/trace/trace_checks.h"
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
    // Keys of earlier positions too. m: columns of the mask, of which the last n are the tokens'.
    size_t m, keys, *key_place, *key_begins; // [keys]: row * m + column; [sequences + 1]
    const sinkproof_tensor *cu_k;            // cu_seqlens_k, where it says the keys; else NULL
    bool apart;                              // the result says which keys each sequence has
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

// Whether the file has something of the keys of earlier positions.
static bool has_keys(const batch *x) {
    if (x->cu_k != NULL) return true;
    bool any = x->m > x->n && sinkproof_safetensors_find(x->file, "prefix") != NULL;
    for (size_t i = 0; x->m > x->n && !any && i < sinkproof_safetensors_count(x->file); i++) {
        const sinkproof_tensor *t = sinkproof_safetensors_at(x->file, i);
        sinkproof_trace_point point;
        size_t layer;
        if (!sinkproof_trace_name_parse(t->name, &point, &layer)) continue;
        any = sinkproof_trace_point_is_by_head(point) ||
              (sinkproof_trace_is_cached(x->config, point) && t->rank > 1 && t->shape[1] == x->m);
    }
    return any;
}

// Where the keys of each row of the batch begin, as cu_seqlens_k says. A row of padding alone has
// none.
static bool read_key_ends(batch *x, size_t row, bool padding, sinkproof_error *error) {
    int64_t from = trace_index_at(x->cu_k, row), to = trace_index_at(x->cu_k, row + 1);
    if (from != (int64_t)x->keys || to < from || to >= INT32_MAX || (padding && to > from))
        return sinkproof_fail(
            error,
            "%.300s: tensor cu_seqlens_k: expected %s %zu in row %zu of the batch, "
            "found %lld",
            x->name, padding ? "no key from" : "ascending numbers from", x->keys, row,
            (long long)(from != (int64_t)x->keys ? from : to));
    x->keys = (size_t)to;
    return true;
}

// Finds the tokens that are no padding, and the keys.
static bool find_tokens(batch *x, sinkproof_error *error) {
    const sinkproof_tensor *tokens = find_indices(x->file, "tokens");
    const sinkproof_tensor *mask = find_indices(x->file, "attention_mask");
    x->b = tokens->shape[0], x->n = x->m = tokens->shape[1];
    x->cu_k = sinkproof_safetensors_find(x->file, "cu_seqlens_k");
    if (x->cu_k == NULL && mask != NULL && mask->shape[1] > x->n) x->m = mask->shape[1];
    const size_t shape[2] = {x->b, x->m}, ends = x->b + 1;
    if (!has_shape(x, mask, 2, shape, error)) return false;
    if (x->cu_k != NULL && (!trace_check_shape(x->name, x->cu_k, 1, &ends, error) ||
                            !trace_check_dtype(x->name, x->cu_k, true, error)))
        return false;
    x->apart = has_keys(x);
    x->place = calloc(sinkproof_tensor_elements(tokens) + 1, sizeof *x->place);
    x->key_place = calloc(sinkproof_tensor_elements(mask) + 1, sizeof *x->key_place);
    x->begins = calloc(x->b + 1, sizeof *x->begins);
    x->key_begins = calloc(x->b + 1, sizeof *x->key_begins);
    if (x->place == NULL || x->begins == NULL || x->key_place == NULL || x->key_begins == NULL)
        return sinkproof_fail(error, "%.300s: no memory for a batch", x->name);
    for (size_t row = 0; row < x->b; row++) {
        size_t earlier = x->m - x->n, before = x->keys;
        for (size_t j = 0; j < x->m; j++) {
            if (sinkproof_tensor_value(mask, row * x->m + j) == 0) continue;
            if (x->cu_k == NULL) x->key_place[x->keys++] = row * x->m + j;
            if (j >= earlier) x->place[x->kept++] = row * x->n + j - earlier;
        }
        bool padding = x->kept == x->begins[x->sequences];
        if (x->cu_k != NULL && !read_key_ends(x, row, padding, error)) return false;
        if (padding && x->cu_k == NULL) x->keys = before;
        if (!padding) x->begins[++x->sequences] = x->kept;
        x->key_begins[x->sequences] = x->keys;
    }
    return x->kept > 0 ||
           sinkproof_fail(error,
                          "%.300s: tensor attention_mask: expected a token that is no padding",
                          x->name);
}

// Keys of a sequence that are before its rows.
static size_t named_before(const batch *x, size_t s) {
    return x->key_begins[s + 1] - x->key_begins[s] - (x->begins[s + 1] - x->begins[s]);
}

// One tensor of the result.
typedef struct packed_tensor {
    const sinkproof_tensor *from;
    sinkproof_trace_point point;
    size_t rank, shape[SINKPROOF_MAX_RANK];
    bool heads_first, by_head; // [b, heads, n]; and with keys
    bool keys, as_it_is;       // a row for each key, in the batch's columns; end to end
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

// ---- gradients

// Whether the gradient is 0 where a token is padding: what it has there is in the gradients of
// weights, and of no sequence.
static bool check_padding(const batch *x, const packed_tensor *t, sinkproof_error *error) {
    const sinkproof_tensor *from = t->from;
    size_t heads = t->heads_first ? from->shape[1] : 1, each, at = 0;
    uint8_t *kept = calloc(x->b * x->n, 1);
    if (kept == NULL) return sinkproof_fail(error, "%.300s: no memory for a batch", x->name);
    for (size_t i = 0; i < x->kept; i++) kept[x->place[i]] = 1;
    each = sinkproof_tensor_elements(from) / (x->b * heads * x->n);
    bool zero = true;
    for (; zero && at < x->b * heads * x->n; at++) {
        if (kept[at / (heads * x->n) * x->n + at % x->n]) continue;
        for (size_t k = 0; zero && k < each; k++)
            zero = sinkproof_tensor_value(from, at * each + k) == 0;
    }
    free(kept);
    return zero || sinkproof_fail(error,
                                  "%.300s: tensor %.100s: expected 0 in the padding, found another "
                                  "gradient at row %zu of the batch, column %zu: the gradients of "
                                  "weights would have it, and no sequence does",
                                  x->name, from->name, (at - 1) / (heads * x->n), (at - 1) % x->n);
}

// A gradient of a weight stays as it is; one of a point is laid out as the point.
static bool lay_out_gradient(const batch *x, const sinkproof_gradient *g, packed_tensor *t,
                             sinkproof_error *error) {
    size_t shape[SINKPROOF_MAX_RANK + 1] = {x->b};
    t->rank = sinkproof_gradient_shape_in(x->config, g, 0, x->n, shape + 1);
    if (t->rank == 0 || t->rank >= SINKPROOF_MAX_RANK)
        return sinkproof_fail(error, "%.300s: unknown tensor '%.100s'", x->name, t->from->name);
    if (x->keys > x->kept)
        return sinkproof_fail(error,
                              "%.300s: tensor %.100s: expected no gradient in a batch behind "
                              "caches: those of earlier keys have no place",
                              x->name, t->from->name);
    memcpy(t->shape, shape + 1, t->rank * sizeof *t->shape);
    t->as_it_is = g->of_weight;
    if (g->of_weight) return trace_check_shape(x->name, t->from, t->rank, t->shape, error);
    t->point = g->point;
    t->by_head = sinkproof_trace_point_is_by_head(g->point);
    t->heads_first = t->by_head || sinkproof_trace_point_is_offered(g->point);
    if (!has_shape(x, t->from, t->rank + 1, shape, error)) return false;
    t->shape[t->heads_first] = x->kept;
    if (t->by_head) t->shape[2] += x->kept - x->n;
    return check_padding(x, t, error) && (!t->by_head || fits_packed(x, t, error));
}

static bool lay_out_tensor(const batch *x, const sinkproof_tensor *from, packed_tensor *t,
                           sinkproof_error *error) {
    size_t layer, shape[SINKPROOF_MAX_RANK + 1] = {x->b};
    sinkproof_gradient gradient;
    *t = (packed_tensor){.from = from};
    if (sinkproof_gradient_parse(from->name, &gradient))
        return lay_out_gradient(x, &gradient, t, error);
    if (!sinkproof_trace_name_parse(from->name, &t->point, &layer))
        return sinkproof_fail(error, "%.300s: unknown tensor '%.100s'", x->name, from->name);
    t->by_head = t->heads_first = sinkproof_trace_point_is_by_head(t->point);
    t->rank = sinkproof_trace_shape(x->config, t->point, x->n, shape + 1);
    bool lse = sinkproof_trace_point_is_offered(t->point);
    if (lse && !lay_out_lse(x, t, error)) return false;
    if (lse && !t->heads_first) shape[1] = x->n, shape[2] = x->config->n_heads;
    bool cached = sinkproof_trace_is_cached(x->config, t->point);
    t->as_it_is = cached && x->cu_k != NULL && from->rank == t->rank;
    t->keys = cached && x->m > x->n && from->rank == t->rank + 1 && from->shape[1] == x->m;
    size_t columns = x->cu_k != NULL ? x->keys : x->m;
    if (t->keys) shape[1] = x->m;
    if (t->by_head) shape[3] += columns - x->n;
    if (t->as_it_is) shape[1] = x->keys;
    if (t->as_it_is ? !trace_check_shape(x->name, from, t->rank, shape + 1, error)
                    : !has_shape(x, from, t->rank + 1, shape, error))
        return false;
    memcpy(t->shape, shape + 1, t->rank * sizeof *t->shape);
    if (!t->as_it_is) t->shape[t->heads_first] = t->keys ? x->keys : x->kept;
    if (t->by_head) t->shape[2] += x->keys - columns;
    return !t->by_head || fits_packed(x, t, error);
}

// Writes the rows of a tensor whose tokens, or keys, come first.
static bool write_rows(const batch *x, const packed_tensor *t, sinkproof_safetensors_writer *out,
                       sinkproof_error *error) {
    const sinkproof_tensor *from = t->from;
    if (t->as_it_is) return sinkproof_safetensors_writer_bytes(out, from->data, from->bytes, error);
    size_t each = from->bytes / (x->b * (t->keys ? x->m : x->n));
    size_t count = t->keys ? x->keys : x->kept, *place = t->keys ? x->key_place : x->place;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = sinkproof_safetensors_writer_bytes(out, from->data + place[i] * each, each, error);
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
                size_t keys = x->cu_k != NULL ? x->keys : x->m;
                memset(row, 0, columns * size);
                for (size_t j = x->key_begins[s]; t->by_head && j < x->key_begins[s + 1]; j++) {
                    size_t column = x->cu_k != NULL ? j : x->key_place[j] % x->m;
                    memcpy(row + j * size, source + column * size, size);
                }
                if (t->by_head && wide > keys)
                    memcpy(row + x->keys * size, source + keys * size, size);
                if (!t->by_head) memcpy(row, source, size);
                good = sinkproof_safetensors_writer_bytes(out, row, columns * size, error);
            }
    free(row);
    return good;
}

// The tokens before the rows, if the file names any: those of the mask's earlier columns, [b, m -
// n], or end to end, [N].
static const sinkproof_tensor *find_prefix(const batch *x) {
    const sinkproof_tensor *t = sinkproof_safetensors_find(x->file, "prefix");
    return t == NULL || t->rank == 1 || x->keys > x->kept ? t : NULL;
}

// Where the named tokens of sequence s begin; of s = sequences, their number.
static int64_t named_at(const batch *x, const sinkproof_tensor *ends, size_t s) {
    size_t row = s < x->sequences ? x->place[x->begins[s]] / x->n : x->b;
    return ends != NULL ? trace_index_at(ends, row) : (int64_t)(x->key_begins[s] - x->begins[s]);
}

static bool write_prefix(const batch *x, const sinkproof_tensor *prefix,
                         sinkproof_safetensors_writer *out, sinkproof_error *error) {
    const sinkproof_tensor *ends = sinkproof_safetensors_find(x->file, "cu_seqlens_prefix");
    size_t size = sinkproof_dtype_size(prefix->dtype), earlier = x->m - x->n;
    bool good = true;
    for (size_t s = 0; good && (ends != NULL || prefix->rank == 2) && s <= x->sequences; s++) {
        int64_t at = named_at(x, ends, s);
        good = sinkproof_safetensors_writer_bytes(out, &at, sizeof at, error);
    }
    if (prefix->rank == 1)
        return good && sinkproof_safetensors_writer_bytes(out, prefix->data, prefix->bytes, error);
    for (size_t j = 0; good && j < x->keys; j++) {
        size_t row = x->key_place[j] / x->m, column = x->key_place[j] % x->m;
        if (column < earlier)
            good = sinkproof_safetensors_writer_bytes(
                out, prefix->data + (row * earlier + column) * size, size, error);
    }
    return good;
}

// Positions count the keys of a sequence where the file has none.
static bool write_indices(const batch *x, sinkproof_safetensors_writer *out,
                          sinkproof_error *error) {
    const sinkproof_tensor *said = sinkproof_safetensors_find(x->file, "positions");
    const sinkproof_tensor *prefix = find_prefix(x);
    const packed_tensor tokens = {.from = sinkproof_safetensors_find(x->file, "tokens")};
    bool good = true;
    for (int of = 0; of < 1 + x->apart; of++)
        for (size_t s = 0; good && s <= x->sequences; s++) {
            int64_t at = (int64_t)(of == 0 ? x->begins : x->key_begins)[s];
            good = sinkproof_safetensors_writer_bytes(out, &at, sizeof at, error);
        }
    for (size_t s = 0; good && s < x->sequences; s++)
        for (size_t i = x->begins[s]; good && i < x->begins[s + 1]; i++) {
            int64_t at = said != NULL ? (int64_t)sinkproof_tensor_value(said, x->place[i])
                                      : (int64_t)(i - x->begins[s] + named_before(x, s));
            good = sinkproof_safetensors_writer_bytes(out, &at, sizeof at, error);
        }
    return good && write_rows(x, &tokens, out, error) &&
           (prefix == NULL || write_prefix(x, prefix, out, error));
}

static bool is_beside(const char *name) {
    static const char *const names[] = {"tokens",       "positions", "attention_mask",
                                        "cu_seqlens_k", "prefix",    "cu_seqlens_prefix"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static bool check_prefix(const batch *x, sinkproof_error *error) {
    const sinkproof_tensor *prefix = sinkproof_safetensors_find(x->file, "prefix");
    const sinkproof_tensor *cu_p = sinkproof_safetensors_find(x->file, "cu_seqlens_prefix");
    const size_t earlier[2] = {x->b, x->m - x->n}, ends = x->b + 1;
    if (cu_p != NULL && (prefix == NULL || prefix->rank != 1))
        return sinkproof_fail(error,
                              "%.300s: tensor cu_seqlens_prefix: expected prefix too, with all "
                              "tokens end to end",
                              x->name);
    if (cu_p != NULL && (!trace_check_shape(x->name, cu_p, 1, &ends, error) ||
                         !trace_check_dtype(x->name, cu_p, true, error)))
        return false;
    if (prefix == NULL || prefix->rank == 1) return true;
    if (earlier[1] == 0)
        return sinkproof_fail(error,
                              "%.300s: tensor prefix: expected all tokens end to end, or an "
                              "attention_mask with its columns in front of the tokens'",
                              x->name);
    return trace_check_shape(x->name, prefix, 2, earlier, error) &&
           trace_check_dtype(x->name, prefix, true, error);
}

// Checks what stands beside the points, and declares it.
static bool declare_indices(const batch *x, sinkproof_safetensors_writer *out,
                            sinkproof_error *error) {
    const sinkproof_tensor *tokens = sinkproof_safetensors_find(x->file, "tokens");
    const sinkproof_tensor *said = sinkproof_safetensors_find(x->file, "positions");
    const sinkproof_tensor *prefix = find_prefix(x);
    const size_t ends = x->sequences + 1, shape[2] = {x->b, x->n};
    size_t named = x->keys - x->kept;
    if (said != NULL &&
        (!has_shape(x, said, 2, shape, error) || !trace_check_dtype(x->name, said, true, error)))
        return false;
    if (said == NULL && x->cu_k != NULL)
        return sinkproof_fail(error,
                              "%.300s: tensor cu_seqlens_k: expected positions too, which say how "
                              "many tokens came before each row of the batch",
                              x->name);
    if (!check_prefix(x, error)) return false;
    sinkproof_safetensors_writer_declare(out, "cu_seqlens", SINKPROOF_DTYPE_I64, 1, &ends);
    if (x->apart)
        sinkproof_safetensors_writer_declare(out, "cu_seqlens_k", SINKPROOF_DTYPE_I64, 1, &ends);
    sinkproof_safetensors_writer_declare(out, "positions", SINKPROOF_DTYPE_I64, 1, &x->kept);
    sinkproof_safetensors_writer_declare(out, "tokens", tokens->dtype, 1, &x->kept);
    if (prefix == NULL) return true;
    if (prefix->rank == 2 || sinkproof_safetensors_find(x->file, "cu_seqlens_prefix") != NULL)
        sinkproof_safetensors_writer_declare(out, "cu_seqlens_prefix", SINKPROOF_DTYPE_I64, 1,
                                             &ends);
    sinkproof_safetensors_writer_declare(out, "prefix", prefix->dtype, 1,
                                         prefix->rank == 2 ? &named : prefix->shape);
    return true;
}

// Declares the file: what its metadata say, indices, then the points in their order.
static bool declare_batch(const batch *x, sinkproof_safetensors_writer *out, packed_tensor *tensors,
                          size_t *count, sinkproof_error *error) {
    static const char *const kept[] = {"format", "engine", "version", "policy", "model",
                                       "ranks",  "lse",    "calls",   "loss"};
    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
        const char *said = sinkproof_safetensors_metadata(x->file, kept[k]);
        if (said != NULL) sinkproof_safetensors_writer_metadata(out, kept[k], said);
    }
    if (!declare_indices(x, out, error)) return false;
    const char *layout = NULL;
    for (size_t i = 0; i < sinkproof_safetensors_count(x->file); i++) {
        const sinkproof_tensor *from = sinkproof_safetensors_at(x->file, i);
        packed_tensor *t = &tensors[*count];
        if (is_beside(from->name)) continue;
        if (!lay_out_tensor(x, from, t, error)) return false;
        bool gradient =
            t->as_it_is || sinkproof_gradient_parse(from->name, &(sinkproof_gradient){0});
        if (!gradient && sinkproof_trace_point_is_offered(t->point))
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
                                      : write_rows(&x, &tensors[i], out, error);
    good = good && sinkproof_safetensors_writer_finish(out, error);
    sinkproof_safetensors_writer_free(out);
    free(tensors);
    free(x.place);
    free(x.begins);
    free(x.key_place);
    free(x.key_begins);
    if (!good) free(*bytes);
    if (!good) *bytes = NULL;
    return good;
}
