// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/trace/trace_sequences.h"

#include "audit/trace/trace_calls.h"
#include "audit/trace/trace_checks.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

typedef struct ends {
    const char *file, *name;
    const sinkproof_tensor *tensor;
    size_t count;
    int64_t last;
} ends;

// Whether the numbers ascend from 0 to the last one.
static bool check_ends(const ends *e, sinkproof_error *error) {
    if (!trace_check_dtype(e->file, e->tensor, true, error)) return false;
    if (e->tensor->rank != 1 || e->tensor->shape[0] != e->count || e->count < 2 ||
        trace_index_at(e->tensor, 0) != 0 || trace_index_at(e->tensor, e->count - 1) != e->last)
        return sinkproof_fail(error, "%.300s: tensor %s: expected [sequences + 1] from 0 to %lld",
                              e->file, e->name, (long long)e->last);
    for (size_t i = 1; i < e->count; i++) {
        int64_t before = trace_index_at(e->tensor, i - 1), at = trace_index_at(e->tensor, i);
        if (at < before || at > e->last)
            return sinkproof_fail(error,
                                  "%.300s: tensor %s: expected ascending numbers to %lld, found "
                                  "%lld after %lld",
                                  e->file, e->name, (long long)e->last, (long long)at,
                                  (long long)before);
    }
    return true;
}

// A sequence has at least the keys of its own rows, and at most one for each position.
static bool check_keys(const char *file, const int32_t *positions_n, const trace_sequences *s,
                       sinkproof_error *error) {
    for (size_t i = 0; i < s->count; i++) {
        size_t rows = s->begins[i + 1] - s->begins[i], first = (size_t)positions_n[s->begins[i]];
        if (s->keys[i] < rows || s->keys[i] > first + rows)
            return sinkproof_fail(error,
                                  "%.300s: tensor cu_seqlens_k: expected %zu to %s of sequence "
                                  "%zu, found %zu",
                                  file, rows, sinkproof_counted(first + rows, "key").text, i,
                                  s->keys[i]);
    }
    return true;
}

// The difference of two neighbours.
static size_t part_of(const sinkproof_tensor *cu, size_t i) {
    return (size_t)(trace_index_at(cu, i + 1) - trace_index_at(cu, i));
}

static bool read_ends(const ends *of_rows, const ends *of_keys, trace_sequences *s,
                      sinkproof_error *error) {
    if (!check_ends(of_rows, error) || (of_keys->tensor != NULL && !check_ends(of_keys, error)))
        return false;
    const sinkproof_tensor *keys = of_keys->tensor != NULL ? of_keys->tensor : of_rows->tensor;
    for (size_t i = 0; i + 1 < of_rows->count; i++) {
        size_t rows = part_of(of_rows->tensor, i);
        if (rows == 0 && part_of(keys, i) > 0)
            return sinkproof_fail(error,
                                  "%.300s: tensor cu_seqlens_k: expected no key of sequence %zu, "
                                  "which has no row, found %zu",
                                  of_rows->file, i, part_of(keys, i));
        if (rows == 0) continue;
        s->key[s->count] = (size_t)trace_index_at(keys, i);
        s->keys[s->count] = part_of(keys, i);
        s->begins[++s->count] = (size_t)trace_index_at(of_rows->tensor, i + 1);
    }
    return true;
}

// ---- the tokens before the sequences

// Of each sequence with rows: all tokens before it, or, as cu_seqlens_prefix may say, none.
static bool count_named(const char *file, const sinkproof_tensor *cu, const sinkproof_tensor *cu_p,
                        size_t n_prefix, const int32_t *positions_n, trace_sequences *s,
                        sinkproof_error *error) {
    size_t kept = 0, all = 0;
    for (size_t i = 0; cu_p != NULL && i + 1 < cu->shape[0]; i++) {
        bool empty = part_of(cu, i) == 0;
        size_t named = part_of(cu_p, i), first = empty ? 0 : (size_t)positions_n[s->begins[kept]];
        if (named != 0 && named != first)
            return sinkproof_fail(error,
                                  "%.300s: tensor cu_seqlens_prefix: expected all %s before "
                                  "sequence %zu or none, found %zu",
                                  file, sinkproof_counted(first, "token").text, i, named);
        if (!empty) s->named_at[kept + 1] = s->named_at[kept] + named, kept++;
    }
    if (cu_p != NULL) return true;
    for (size_t i = 0; i < s->count; i++) {
        all += (size_t)positions_n[s->begins[i]];
        s->named_at[i + 1] = all;
    }
    return all == n_prefix ||
           sinkproof_fail(error,
                          "%.300s: tensor prefix: expected %s, all before %s, "
                          "found %zu",
                          file, sinkproof_counted(all, "token").text,
                          sinkproof_counted(s->count, "sequence").text, n_prefix);
}

// Without cu_seqlens_k: a column for each position of a sequence whose prefix is named.
static void place_columns(trace_sequences *s) {
    s->columns = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->key[i] = s->columns;
        s->keys[i] = s->begins[i + 1] - s->begins[i] + s->named_at[i + 1] - s->named_at[i];
        s->columns += s->keys[i];
    }
}

static bool read_prefix(const char *name, const sinkproof_safetensors *file, size_t vocab,
                        const int32_t *positions_n, trace_sequences *s, sinkproof_error *error) {
    const sinkproof_tensor *prefix = sinkproof_safetensors_find(file, "prefix");
    const sinkproof_tensor *cu = sinkproof_safetensors_find(file, "cu_seqlens");
    const sinkproof_tensor *cu_p = sinkproof_safetensors_find(file, "cu_seqlens_prefix");
    if (prefix == NULL && cu_p == NULL) return true;
    if (prefix == NULL || (cu_p != NULL && cu == NULL))
        return sinkproof_fail(error, "%.300s: tensor cu_seqlens_prefix: expected %s too", name,
                              prefix == NULL ? "prefix" : "cu_seqlens");
    size_t n = prefix->shape[0];
    bool good = prefix->rank == 1 && n > 0 && n < INT32_MAX;
    if (!good)
        return sinkproof_fail(error, "%.300s: tensor prefix: expected tokens [n], n from 1 on",
                              name);
    const ends of_prefix = {name, "cu_seqlens_prefix", cu_p, cu != NULL ? cu->shape[0] : 0,
                            (int64_t)n};
    if ((cu_p != NULL && !check_ends(&of_prefix, error)) ||
        !trace_check_dtype(name, prefix, true, error) ||
        !trace_check_range(name, prefix, vocab, error))
        return false;
    s->named_at = calloc(s->count + 1, sizeof *s->named_at);
    s->prefix_n = calloc(n, sizeof *s->prefix_n);
    if (s->named_at == NULL || s->prefix_n == NULL)
        return sinkproof_fail(error, "%.300s: no memory for a prefix", name);
    for (size_t t = 0; t < n; t++) s->prefix_n[t] = (int32_t)trace_index_at(prefix, t);
    if (!count_named(name, cu, cu_p, n, positions_n, s, error)) return false;
    if (s->count > 1 && !s->said) s->apart = true, place_columns(s);
    return true;
}

bool sequences_read(const char *name, const sinkproof_safetensors *file, size_t n, size_t vocab,
                    const int32_t *positions_n, trace_sequences *s, sinkproof_error *error) {
    const sinkproof_tensor *cu = sinkproof_safetensors_find(file, "cu_seqlens");
    const sinkproof_tensor *cu_k = sinkproof_safetensors_find(file, "cu_seqlens_k");
    *s = (trace_sequences){.begins = calloc(n + 1, sizeof *s->begins),
                           .of_row = calloc(n, sizeof *s->of_row),
                           .key = calloc(n, sizeof *s->key),
                           .keys = calloc(n, sizeof *s->keys),
                           .columns = n,
                           .said = cu_k != NULL};
    if (s->begins == NULL || s->of_row == NULL || s->key == NULL || s->keys == NULL)
        return sinkproof_fail(error, "%.300s: no memory for its sequences", name);
    if (cu == NULL && cu_k != NULL)
        return sinkproof_fail(error, "%.300s: tensor cu_seqlens_k: expected cu_seqlens too", name);
    size_t count = cu != NULL && cu->rank == 1 ? cu->shape[0] : 0;
    const ends of_rows = {name, "cu_seqlens", cu, count, (int64_t)n};
    ends of_keys = {name, "cu_seqlens_k", cu_k, count, INT32_MAX};
    if (cu_k != NULL && cu_k->rank == 1 && cu_k->shape[0] > 0 &&
        (cu_k->dtype == SINKPROOF_DTYPE_I32 || cu_k->dtype == SINKPROOF_DTYPE_I64) &&
        trace_index_at(cu_k, cu_k->shape[0] - 1) < INT32_MAX)
        of_keys.last = trace_index_at(cu_k, cu_k->shape[0] - 1);
    if (cu != NULL && !read_ends(&of_rows, &of_keys, s, error)) return false;
    if (cu == NULL) s->begins[++s->count] = n;
    if (cu_k != NULL && !check_keys(name, positions_n, s, error)) return false;
    size_t all = (size_t)positions_n[0] + n; // of one sequence
    s->apart = cu_k != NULL && (s->count > 1 || s->keys[0] != all);
    if (s->apart)
        s->columns = (size_t)of_keys.last;
    else if (s->count == 1)
        s->columns = all, s->key[0] = 0, s->keys[0] = all;
    if (!read_prefix(name, file, vocab, positions_n, s, error)) return false;
    for (size_t i = 0; i < s->count; i++)
        for (size_t t = s->begins[i]; t < s->begins[i + 1]; t++) s->of_row[t] = (uint32_t)i;
    return calls_read(name, sinkproof_safetensors_metadata(file, "calls"), s, error);
}

void sequences_free(trace_sequences *s) {
    free(s->begins);
    free(s->of_row);
    free(s->key);
    free(s->keys);
    free(s->prefix_n);
    free(s->named_at);
    free(s->calls_n);
    *s = (trace_sequences){.count = 0};
}

uint8_t *sequences_split(const trace_sequences *s, const sinkproof_tensor *tensor,
                         sinkproof_tensor *before, sinkproof_tensor *rows) {
    size_t each = tensor->bytes / tensor->shape[0], n = s->begins[s->count], earlier = 0;
    uint8_t *gathered = malloc(tensor->bytes);
    if (gathered == NULL) return NULL;
    *before = *rows = *tensor;
    rows->data = gathered, before->data = gathered + n * each;
    for (size_t i = 0; i < s->count; i++) {
        size_t own = s->begins[i + 1] - s->begins[i], cached = s->keys[i] - own;
        const uint8_t *from = tensor->data + s->key[i] * each;
        memcpy(gathered + (n + earlier) * each, from, cached * each);
        memcpy(gathered + s->begins[i] * each, from + cached * each, own * each);
        earlier += cached;
    }
    rows->shape[0] = n, rows->bytes = n * each;
    before->shape[0] = earlier, before->bytes = earlier * each;
    return gathered;
}
