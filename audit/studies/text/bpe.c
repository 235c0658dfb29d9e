// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Merges with a heap of candidate pairs. A pair is identified by its first byte and its end: parts
// only grow, so a pair of other parts has another end, and a heap entry whose ends no longer match
// two neighbours is stale.
#include "audit/studies/text/bpe.h"

#include "base/splitmix.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

// Two neighbouring parts: bytes [at, end) of the piece.
typedef struct pair {
    uint32_t rank, at, end;
    int32_t whole; // the token of the merged pair
} pair;

// The parts of a piece, indexed by their first byte.
typedef struct part {
    uint32_t end;    // first byte of the next part
    uint32_t before; // first byte of the previous part
    int32_t id;      // -1: no part begins here
} part;

struct bpe_room {
    part *part_b;
    size_t parts_room;
    pair *heap;
    size_t n_heap, heap_room;
};

bpe_room *bpe_room_new(void) {
    return calloc(1, sizeof(bpe_room));
}

void bpe_room_free(bpe_room *room) {
    if (room == NULL) return;
    free(room->part_b);
    free(room->heap);
    free(room);
}

bool ids_append(sinkproof_ids *ids, int32_t id, sinkproof_error *error) {
    void *array = ids->id_t;
    bool good = sinkproof_make_room(&array, &ids->room, ids->n, sizeof *ids->id_t, error);
    ids->id_t = array;
    if (good) ids->id_t[ids->n++] = id;
    return good;
}

// ---- the list of merges

static size_t pair_slot(const bpe_merges *bpe, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t mask = bpe->n_slots - 1, s = (size_t)sinkproof_mix(key + sinkproof_golden) & mask;
    while (bpe->slots[s].rank != 0 && (bpe->slots[s].left != left || bpe->slots[s].right != right))
        s = (s + 1) & mask;
    return s;
}

static bool grow_slots(bpe_merges *bpe, sinkproof_error *error) {
    if (2 * (bpe->n_merges + 1) < bpe->n_slots) return true;
    size_t n_old = bpe->n_slots, n_slots = n_old == 0 ? 1024 : 2 * n_old;
    bpe_merge *old = bpe->slots, *slots = calloc(n_slots, sizeof *slots);
    if (slots == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted(bpe->n_merges, "merge").text);
    bpe->slots = slots;
    bpe->n_slots = n_slots;
    for (size_t s = 0; s < n_old; s++)
        if (old[s].rank != 0) slots[pair_slot(bpe, old[s].left, old[s].right)] = old[s];
    free(old);
    return true;
}

// Finds the token whose bytes are those of the two.
static bool join_tokens(const bpe_merges *bpe, int32_t left, int32_t right, const char *name,
                        int32_t *whole, sinkproof_error *error) {
    const token_vocabulary *v = &bpe->vocabulary;
    const vocabulary_token *l = vocabulary_token_at(v, left), *r = vocabulary_token_at(v, right);
    size_t length = (size_t)l->length + r->length;
    uint8_t *both = malloc(length);
    if (both == NULL)
        return sinkproof_fail(error, "no memory for a merge of %s",
                              sinkproof_counted(length, "byte").text);
    memcpy(both, v->bytes + l->at, l->length);
    memcpy(both + l->length, v->bytes + r->at, r->length);
    *whole = vocabulary_find(v, both, length);
    free(both);
    if (*whole >= 0) return true;
    return sinkproof_fail(
        error, "%.300s: merge %zu: '%.*s' and '%.*s' together are no token of the vocabulary", name,
        bpe->n_merges, (int)(l->length < 60 ? l->length : 60), (const char *)v->bytes + l->at,
        (int)(r->length < 60 ? r->length : 60), (const char *)v->bytes + r->at);
}

bool bpe_add_merge(bpe_merges *bpe, int32_t left, int32_t right, const char *name,
                   sinkproof_error *error) {
    bpe_merge merge = {left, right, -1, (uint32_t)bpe->n_merges + 1};
    if (!join_tokens(bpe, left, right, name, &merge.whole, error) || !grow_slots(bpe, error))
        return false;
    size_t s = pair_slot(bpe, left, right);
    if (bpe->slots[s].rank != 0)
        return sinkproof_fail(error, "%.300s: merge %zu is merge %u again", name, bpe->n_merges,
                              (unsigned)bpe->slots[s].rank - 1);
    bpe->slots[s] = merge;
    bpe->n_merges++;
    return true;
}

bool bpe_finish(bpe_merges *bpe, const char *name, sinkproof_error *error) {
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        bpe->byte_id[b] = vocabulary_find(&bpe->vocabulary, &byte, 1);
        if (bpe->byte_id[b] < 0 && !bpe->drops)
            return sinkproof_fail(
                error, "%.300s: expected a token for each of the 256 bytes, found none for 0x%02x",
                name, (unsigned)b);
    }
    return true;
}

// ---- a piece

// Finds the token and the rank of two neighbours; false: they are not a pair.
static bool find_pair(const bpe_merges *bpe, const uint8_t *piece, const part *part_b, pair *p) {
    const part *left = &part_b[p->at], *right = &part_b[left->end];
    p->end = right->end;
    if (bpe->by_bytes) {
        p->whole = vocabulary_find(&bpe->vocabulary, piece + p->at, p->end - p->at);
        p->rank = (uint32_t)p->whole;
        return p->whole >= 0;
    }
    if (bpe->n_slots == 0) return false;
    const bpe_merge *merge = &bpe->slots[pair_slot(bpe, left->id, right->id)];
    p->whole = merge->whole;
    p->rank = merge->rank;
    return merge->rank != 0;
}

// Lower ranks come first; of equal ranks the leftmost.
static bool comes_before(const pair *a, const pair *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool heap_push(bpe_room *room, const pair *p, sinkproof_error *error) {
    void *heap = room->heap;
    bool good =
        sinkproof_make_room(&heap, &room->heap_room, room->n_heap, sizeof *room->heap, error);
    room->heap = heap;
    if (!good) return false;
    size_t i = room->n_heap++;
    for (; i > 0 && comes_before(p, &room->heap[(i - 1) / 2]); i = (i - 1) / 2)
        room->heap[i] = room->heap[(i - 1) / 2];
    room->heap[i] = *p;
    return true;
}

static pair heap_pop(bpe_room *room) {
    pair first = room->heap[0], last = room->heap[--room->n_heap];
    size_t i = 0, n = room->n_heap;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && comes_before(&room->heap[child + 1], &room->heap[child])) child++;
        if (!comes_before(&room->heap[child], &last)) break;
        room->heap[i] = room->heap[child];
    }
    if (n > 0) room->heap[i] = last;
    return first;
}

// Adds the pair that begins at `at`, if it is listed.
static bool consider_pair(const bpe_merges *bpe, const uint8_t *piece, size_t length, uint32_t at,
                          bpe_room *room, sinkproof_error *error) {
    pair p = {.at = at};
    if (room->part_b[at].end >= length || !find_pair(bpe, piece, room->part_b, &p)) return true;
    return heap_push(room, &p, error);
}

static bool is_current(const bpe_room *room, size_t length, const pair *p) {
    const part *left = &room->part_b[p->at];
    return left->id >= 0 && left->end < length && room->part_b[left->end].end == p->end;
}

// Joins the two parts; the pairs with both neighbours are new.
static bool merge_parts(const bpe_merges *bpe, const uint8_t *piece, size_t length, const pair *p,
                        bpe_room *room, sinkproof_error *error) {
    part *left = &room->part_b[p->at];
    room->part_b[left->end].id = -1;
    *left = (part){p->end, left->before, p->whole};
    if (p->end < length) room->part_b[p->end].before = p->at;
    return consider_pair(bpe, piece, length, p->at, room, error) &&
           (p->at == 0 || consider_pair(bpe, piece, length, left->before, room, error));
}

// A part for each byte that is a token; *length becomes their number. All bytes are, where a merge
// is found by its bytes.
static bool begin_piece(const bpe_merges *bpe, const uint8_t *piece, size_t *length, bpe_room *room,
                        sinkproof_error *error) {
    void *parts = room->part_b;
    bool good =
        sinkproof_make_room(&parts, &room->parts_room, *length, sizeof *room->part_b, error);
    uint32_t n = 0;
    room->part_b = parts;
    if (!good) return false;
    room->n_heap = 0;
    for (size_t b = 0; b < *length; b++) {
        int32_t id = bpe->byte_id[piece[b]];
        if (id < 0) continue;
        room->part_b[n] = (part){n + 1, n == 0 ? 0 : n - 1, id};
        n++;
    }
    *length = n;
    for (uint32_t b = 0; b + 1 < n && good; b++)
        good = consider_pair(bpe, piece, n, b, room, error);
    return good;
}

bool bpe_encode_piece(const bpe_merges *bpe, const uint8_t *piece, size_t length, bpe_room *room,
                      sinkproof_ids *ids, sinkproof_error *error) {
    int32_t whole = bpe->whole_first ? vocabulary_find(&bpe->vocabulary, piece, length) : -1;
    if (whole >= 0) return ids_append(ids, whole, error);
    if (length > INT32_MAX)
        return sinkproof_fail(error, "a piece of %s without a place to split it",
                              sinkproof_counted(length, "byte").text);
    if (!begin_piece(bpe, piece, &length, room, error)) return false;
    while (room->n_heap > 0) {
        pair p = heap_pop(room);
        if (is_current(room, length, &p) && !merge_parts(bpe, piece, length, &p, room, error))
            return false;
    }
    for (size_t b = 0; b < length; b = room->part_b[b].end)
        if (!ids_append(ids, room->part_b[b].id, error)) return false;
    return true;
}

void bpe_free(bpe_merges *bpe) {
    vocabulary_free(&bpe->vocabulary);
    free(bpe->slots);
    *bpe = (bpe_merges){0};
}
