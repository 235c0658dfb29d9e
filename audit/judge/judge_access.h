// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query reads, where no range of keys tells it: sets of keys, documents that are
// packed in one row, stretches that are seen both ways.
#ifndef SINKPROOF_JUDGE_ACCESS_H
#define SINKPROOF_JUDGE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

enum { ACCESS_WORDS = 5, ACCESS_KEYS = 64 * ACCESS_WORDS, ACCESS_CUTS = 8 };

// A set of keys below ACCESS_KEYS, as bits.
typedef struct sinkproof_key_set {
    unsigned long long bits[ACCESS_WORDS];
} sinkproof_key_set;
bool sinkproof_key_set_has(const sinkproof_key_set *set, size_t key);
void sinkproof_key_set_add(sinkproof_key_set *set, size_t key);

typedef struct sinkproof_access {
    sinkproof_key_set lost, again; // keys that are not read, and keys that are read twice
    bool by_distance;              // false: of a set: how far keys are before the query
    bool zeros;                    // false: keys that are not read are read as zeros
    // of documents the rows where each but the first begins; of stretches the begin and the end
    size_t cuts, at[ACCESS_CUTS];
    bool earlier; // false: of a stretch: its keys before the window are seen too
} sinkproof_access;

// The first key of the row's document.
size_t access_document(const sinkproof_access *a, size_t row);
// Whether the row is in a stretch, and which.
bool access_stretch(const sinkproof_access *a, size_t row, size_t *begin, size_t *end);
// How often a query of a row reads key j, which it sees.
size_t access_times(const sinkproof_access *a, size_t row, size_t j);

#endif
