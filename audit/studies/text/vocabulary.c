// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds tokens by their bytes (a hash table with open addressing) and by their ids (an array).
#include "audit/studies/text/vocabulary.h"

#include "base/splitmix.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(const uint8_t *bytes, size_t length) {
    uint64_t hash = length, word;
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = sinkproof_mix(hash + sinkproof_golden) ^ word;
    }
    word = 0;
    memcpy(&word, bytes, length);
    return sinkproof_mix(sinkproof_mix(hash + sinkproof_golden) ^ word);
}

bool sinkproof_make_room(void **array, size_t *room, size_t n, size_t size,
                         sinkproof_error *error) {
    if (n < *room) return true;
    size_t larger = *room == 0 ? 64 : *room;
    while (larger <= n && larger < SIZE_MAX / 2 / size) larger *= 2;
    void *moved = larger > n ? realloc(*array, larger * size) : NULL;
    if (moved == NULL)
        return sinkproof_fail(error, "no memory for %s of text",
                              sinkproof_counted(n * size, "byte").text);
    *array = moved;
    *room = larger;
    return true;
}

// The slot of these bytes, or the empty one where they belong.
static size_t bytes_slot(const token_vocabulary *v, const uint8_t *bytes, size_t length) {
    size_t mask = v->n_slots - 1, s = (size_t)hash_bytes(bytes, length) & mask;
    for (; v->slots[s] != 0; s = (s + 1) & mask) {
        const vocabulary_token *t = &v->token_n[v->slots[s] - 1];
        if (t->length == length && memcmp(v->bytes + t->at, bytes, length) == 0) break;
    }
    return s;
}

static bool grow_slots(token_vocabulary *v, sinkproof_error *error) {
    if (2 * (v->n + 1) < v->n_slots) return true;
    size_t n_old = v->n_slots, n_slots = n_old == 0 ? 1024 : 2 * n_old;
    uint32_t *old = v->slots, *slots = calloc(n_slots, sizeof *slots);
    if (slots == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(v->n, "token").text);
    v->slots = slots;
    v->n_slots = n_slots;
    for (size_t s = 0; s < n_old; s++) {
        if (old[s] == 0) continue;
        const vocabulary_token *t = &v->token_n[old[s] - 1];
        slots[bytes_slot(v, v->bytes + t->at, t->length)] = old[s];
    }
    free(old);
    return true;
}

// Makes room for the id; new ids have no token.
static bool grow_ids(token_vocabulary *v, size_t id, sinkproof_error *error) {
    if (id < v->n_ids) return true;
    void *ids = v->by_id;
    bool good = sinkproof_make_room(&ids, &v->ids_room, id, sizeof *v->by_id, error);
    v->by_id = ids;
    if (!good) return false;
    memset(v->by_id + v->n_ids, 0, (id + 1 - v->n_ids) * sizeof *v->by_id);
    v->n_ids = id + 1;
    return true;
}

static bool keep_bytes(token_vocabulary *v, const uint8_t *bytes, size_t length,
                       sinkproof_error *error) {
    void *kept = v->bytes;
    bool good = sinkproof_make_room(&kept, &v->bytes_room, v->bytes_used + length, 1, error);
    v->bytes = kept;
    if (!good) return false;
    memcpy(v->bytes + v->bytes_used, bytes, length);
    v->bytes_used += length;
    return true;
}

static bool make_all_room(token_vocabulary *v, size_t id, sinkproof_error *error) {
    void *tokens = v->token_n;
    bool good = sinkproof_make_room(&tokens, &v->room, v->n, sizeof *v->token_n, error);
    v->token_n = tokens;
    return good && grow_slots(v, error) && grow_ids(v, id, error);
}

bool vocabulary_add(token_vocabulary *v, const uint8_t *bytes, size_t length, int64_t id,
                    bool found, const char *name, sinkproof_error *error) {
    int shown = (int)(length < 60 ? length : 60);
    if (id < 0 || id >= TOKEN_MAX_ID)
        return sinkproof_fail(error, "%.300s: token '%.*s': expected an id below %d, found %lld",
                              name, shown, (const char *)bytes, TOKEN_MAX_ID, (long long)id);
    if (length == 0 || length >= UINT32_MAX)
        return sinkproof_fail(error, "%.300s: token %lld: expected bytes, found none", name,
                              (long long)id);
    if (vocabulary_token_at(v, id) != NULL)
        return sinkproof_fail(error, "%.300s: token '%.*s': its id %lld is another token's", name,
                              shown, (const char *)bytes, (long long)id);
    if (!make_all_room(v, (size_t)id, error)) return false;
    size_t slot = bytes_slot(v, bytes, length);
    if (found && v->slots[slot] != 0)
        return sinkproof_fail(error, "%.300s: token '%.*s' is there twice, as %d and as %lld", name,
                              shown, (const char *)bytes, (int)v->token_n[v->slots[slot] - 1].id,
                              (long long)id);
    size_t at = v->bytes_used;
    if (!keep_bytes(v, bytes, length, error)) return false;
    v->token_n[v->n++] = (vocabulary_token){at, (uint32_t)length, (int32_t)id};
    v->by_id[id] = (uint32_t)v->n;
    if (!found) return true;
    v->slots[slot] = (uint32_t)v->n;
    if (length > v->longest) v->longest = length;
    return true;
}

int32_t vocabulary_find(const token_vocabulary *v, const uint8_t *bytes, size_t length) {
    if (v->n_slots == 0 || length == 0 || length > v->longest) return -1;
    uint32_t place = v->slots[bytes_slot(v, bytes, length)];
    return place == 0 ? -1 : v->token_n[place - 1].id;
}

const vocabulary_token *vocabulary_token_at(const token_vocabulary *v, int64_t id) {
    if (id < 0 || (size_t)id >= v->n_ids || v->by_id[id] == 0) return NULL;
    return &v->token_n[v->by_id[id] - 1];
}

void vocabulary_free(token_vocabulary *v) {
    free(v->bytes);
    free(v->token_n);
    free(v->slots);
    free(v->by_id);
    *v = (token_vocabulary){0};
}
