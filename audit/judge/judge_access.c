// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query reads, by a set of keys or by cuts of the sequence.
#include "audit/judge/judge_access.h"

bool sinkproof_key_set_has(const sinkproof_key_set *set, size_t key) {
    return key < ACCESS_KEYS && (set->bits[key / 64] >> key % 64 & 1) != 0;
}

void sinkproof_key_set_add(sinkproof_key_set *set, size_t key) {
    if (key < ACCESS_KEYS) set->bits[key / 64] |= 1ull << key % 64;
}

size_t access_document(const sinkproof_access *a, size_t row) {
    size_t begin = 0;
    for (size_t i = 0; i < a->cuts; i++)
        if (a->at[i] <= row) begin = a->at[i];
    return begin;
}

bool access_stretch(const sinkproof_access *a, size_t row, size_t *begin, size_t *end) {
    for (size_t i = 0; i + 1 < a->cuts; i += 2)
        if (row >= a->at[i] && row < a->at[i + 1]) {
            *begin = a->at[i], *end = a->at[i + 1];
            return true;
        }
    return false;
}

size_t access_times(const sinkproof_access *a, size_t row, size_t j) {
    size_t of = a->by_distance ? row - j : j;
    if (a->by_distance && j > row) return 1;
    return sinkproof_key_set_has(&a->lost, of) ? 0 : sinkproof_key_set_has(&a->again, of) ? 2 : 1;
}
