// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/trace/trace_sequences.h"

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

static bool read_ends(const ends *of_rows, const ends *of_keys, trace_sequences *s,
                      sinkproof_error *error) {
    if (!check_ends(of_rows, error) || (of_keys->tensor != NULL && !check_ends(of_keys, error)))
        return false;
    for (size_t i = 1; i < of_rows->count; i++) {
        int64_t at = trace_index_at(of_rows->tensor, i);
        if (at == trace_index_at(of_rows->tensor, i - 1)) continue;
        const ends *keys = of_keys->tensor != NULL ? of_keys : of_rows;
        int64_t first = trace_index_at(keys->tensor, i - 1);
        s->key[s->count] = (size_t)first;
        s->keys[s->count] = (size_t)(trace_index_at(keys->tensor, i) - first);
        s->begins[++s->count] = (size_t)at;
    }
    return true;
}

bool sequences_read(const char *name, const sinkproof_safetensors *file, size_t n,
                    const int32_t *positions_n, trace_sequences *s, sinkproof_error *error) {
    const sinkproof_tensor *cu = sinkproof_safetensors_find(file, "cu_seqlens");
    const sinkproof_tensor *cu_k = sinkproof_safetensors_find(file, "cu_seqlens_k");
    *s = (trace_sequences){.begins = calloc(n + 1, sizeof *s->begins),
                           .of_row = calloc(n, sizeof *s->of_row),
                           .key = calloc(n, sizeof *s->key),
                           .keys = calloc(n, sizeof *s->keys),
                           .columns = n};
    if (s->begins == NULL || s->of_row == NULL || s->key == NULL || s->keys == NULL)
        return sinkproof_fail(error, "%.300s: no memory for its sequences", name);
    if (cu == NULL && cu_k != NULL)
        return sinkproof_fail(error, "%.300s: tensor cu_seqlens_k: expected cu_seqlens too", name);
    size_t count = cu != NULL && cu->rank == 1 && cu->shape[0] <= n + 1 ? cu->shape[0] : 0;
    const ends of_rows = {name, "cu_seqlens", cu, count, (int64_t)n};
    ends of_keys = {name, "cu_seqlens_k", cu_k, count, INT32_MAX};
    if (cu_k != NULL && cu_k->rank == 1 && cu_k->shape[0] > 0 &&
        (cu_k->dtype == SINKPROOF_DTYPE_I32 || cu_k->dtype == SINKPROOF_DTYPE_I64) &&
        trace_index_at(cu_k, cu_k->shape[0] - 1) < INT32_MAX)
        of_keys.last = trace_index_at(cu_k, cu_k->shape[0] - 1);
    if (cu != NULL && !read_ends(&of_rows, &of_keys, s, error)) return false;
    if (cu == NULL) s->begins[++s->count] = n;
    if (cu_k != NULL && !check_keys(name, positions_n, s, error)) return false;
    s->apart = cu_k != NULL && s->count > 1;
    if (s->apart) s->columns = (size_t)of_keys.last;
    if (s->count == 1) {
        s->columns = (size_t)positions_n[0] + n;
        s->key[0] = 0, s->keys[0] = s->columns;
    }
    for (size_t i = 0; i < s->count; i++)
        for (size_t t = s->begins[i]; t < s->begins[i + 1]; t++) s->of_row[t] = (uint32_t)i;
    return true;
}

void sequences_free(trace_sequences *s) {
    free(s->begins);
    free(s->of_row);
    free(s->key);
    free(s->keys);
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
