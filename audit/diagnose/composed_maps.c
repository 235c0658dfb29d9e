// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The expert whose weights a slot reads, by a rule over slots, tokens and places in a batch. A
// sample decides which rules are tried.
#include "audit/diagnose/composed_made.h"

#include <stdio.h>
#include <string.h>

typedef enum map_kind {
    AS_SLOT,       // the number of the slot
    AS_TOKEN,      // of the token, modulo the experts
    AS_BATCH,      // of the place in the expert's batch, modulo the experts
    OF_SLOT,       // the expert of slot a
    OF_SLOT_BY,    // of the slot a places on, in a circle
    OF_ROW_BY,     // of the token a places on
    SHIFTED,       // a experts on, in a circle, where the place in the batch is b or more
    SHIFTED_BELOW, // the same, below b
    SHIFTED_FROM,  // the same, for experts from b on
    MODULO,        // the number modulo a
    QUOTIENT,      // the number over a, cut
    MIRRORED,      // a - the number
    FIXED,         // a, where the place in the batch is b or more
    SORTED,        // the experts of a token in the order of their numbers
    SHIFTED_TAIL,  // SHIFTED in the last, partial block of b of the expert's batch
    IN_CHUNK       // of the token whose number is this one's modulo a
} map_kind;

enum { KIND, A, B, BY_SLOT };

// The place of a slot among those of its expert: token by token, or all first choices before the
// second.
static size_t place_in_batch(const sinkproof_making *of, size_t q) {
    size_t before = 0, k = of->config->n_chosen;
    bool by_slot = of->numbers[BY_SLOT] != 0;
    for (size_t other = 0; other < of->all; other++) {
        bool earlier = by_slot && other % k != q % k ? other % k < q % k : other < q;
        before += earlier && of->chosen_nk[other] == of->chosen_nk[q];
    }
    return before;
}

// Whether the slot is in the last block of b of its expert's, which is not full.
static bool is_in_tail(const sinkproof_making *of, size_t q, long place, long b) {
    long size = 0;
    for (size_t other = 0; other < of->all; other++)
        size += of->chosen_nk[other] == of->chosen_nk[q];
    return place >= size / b * b;
}

static long expert_sorted(const int32_t *chosen_k, size_t k, size_t slot) {
    for (size_t s = 0; s < k; s++) {
        size_t below = 0;
        for (size_t o = 0; o < k; o++) below += chosen_k[o] < chosen_k[s];
        if (below == slot) return chosen_k[s];
    }
    return -1;
}

static bool is_of_batches(map_kind kind) {
    return kind == AS_BATCH || kind == SHIFTED || kind == SHIFTED_BELOW || kind == FIXED ||
           kind == SHIFTED_TAIL;
}

static long expert_of(const sinkproof_making *of, size_t q) {
    long experts = (long)of->config->n_experts, own = of->chosen_nk[q];
    size_t k = of->config->n_chosen, slot = q % k, i = q / k;
    long a = (long)of->numbers[A], b = (long)of->numbers[B], other = (long)i + a;
    const map_kind kind = (map_kind)of->numbers[KIND];
    bool batch = is_of_batches(kind);
    long place = batch && (b > 0 || kind == AS_BATCH) ? (long)place_in_batch(of, q) : 0;
    long shifted = ((own + a) % experts + experts) % experts;
    switch (kind) {
    case AS_SLOT:
        return (long)slot;
    case AS_TOKEN:
        return (long)i % experts;
    case AS_BATCH:
        return place % experts;
    case OF_SLOT:
        return of->chosen_nk[i * k + (size_t)a];
    case OF_SLOT_BY:
        return of->chosen_nk[i * k + (slot + (size_t)a) % k];
    case OF_ROW_BY:
        return other >= 0 && other < (long)of->n ? of->chosen_nk[(size_t)other * k + slot] : own;
    case SHIFTED:
        return place >= b ? shifted : own;
    case SHIFTED_BELOW:
        return place < b ? shifted : own;
    case SHIFTED_TAIL:
        return is_in_tail(of, q, place, b) ? shifted : own;
    case SHIFTED_FROM:
        return own >= b ? shifted : own;
    case MODULO:
        return own % a;
    case QUOTIENT:
        return own / a;
    case MIRRORED:
        return a - own;
    case FIXED:
        return place >= b ? a : own;
    case SORTED:
        return expert_sorted(&of->chosen_nk[i * k], k, slot);
    case IN_CHUNK:
        return of->chosen_nk[i % (size_t)a * k + slot];
    }
    return own;
}

static bool make_map(const sinkproof_making *of, double *y, double *width) {
    (void)width;
    for (size_t q = 0; of->chosen_nk != NULL && q < of->all; q++) y[q] = (double)expert_of(of, q);
    return of->chosen_nk != NULL;
}

static bool try_map(const operation *o, map_kind kind, long a, long b, const char *text) {
    const char *words = composed_slot_words(o->slots[0]);
    bool batch = is_of_batches(kind);
    bool fine = words != NULL;
    for (int by_slot = 0; by_slot < (batch && b > 0 ? 2 : 1) && fine; by_slot++) {
        made_kind made = {
            .make = make_map,
            .numbers = {[KIND] = kind, [A] = (double)a, [B] = (double)b, [BY_SLOT] = by_slot}};
        if (o->c->found != NULL) break;
        snprintf(made.id, sizeof made.id, "expert-%d%+ld%+ld%s", (int)kind, a, b,
                 by_slot ? "-by-slot" : "");
        snprintf(made.text, sizeof made.text, "%s are %s%s", words, text,
                 by_slot ? ", in the order of the slots" : "");
        fine = composing_try_made_experts(o, &made);
    }
    return fine || words == NULL;
}

enum { FEW_EXPERTS = 32 };

// The next expert's, or another's, for a part of the batch.
static bool try_tiles(const operation *o, size_t most) {
    long experts = (long)o->c->s->trials.config->n_experts;
    bool fine = true, few = experts <= FEW_EXPERTS; // of many, the neighbours alone
    char text[160];
    for (size_t b = 1; b < most && fine && o->c->found == NULL; b++)
        for (long away = 1; away < experts && fine && o->c->found == NULL; away++) {
            if (!few && away > 1 && away + 1 < experts) continue;
            const char *whose = away == 1             ? "the next expert"
                                : away == experts - 1 ? "the expert before"
                                                      : "another expert";
            long by = 2 * away > experts ? away - experts : away;
            snprintf(text, sizeof text,
                     "those of %s (%+ld) for an expert's tokens after its first %zu (a later tile)",
                     whose, by, b);
            fine = try_map(o, SHIFTED, away, (long)b, text);
            snprintf(text, sizeof text,
                     "those of %s (%+ld) for the first %zu of an expert's tokens (a tile)", whose,
                     by, b);
            if (fine) fine = try_map(o, SHIFTED_BELOW, away, (long)b, text);
            snprintf(text, sizeof text,
                     "those of %s (%+ld) for the last, partial block of %zu of an expert's tokens",
                     whose, by, b);
            bool usual = b > 1 && (b <= 8 || (b & (b - 1)) == 0);
            if (fine && usual) fine = try_map(o, SHIFTED_TAIL, away, (long)b, text);
        }
    for (size_t b = 0; b < (few ? most : 1) && fine && o->c->found == NULL; b++)
        for (long e = 0; e < experts && fine && o->c->found == NULL; e++) {
            snprintf(
                text, sizeof text,
                "those of expert %ld for an expert's tokens after its first %zu (a later tile)", e,
                b);
            if (b == 0) snprintf(text, sizeof text, "those of expert %ld for all experts", e);
            fine = try_map(o, FIXED, e, (long)b, text);
        }
    return fine;
}

static bool try_ranks(const operation *o) {
    long experts = (long)o->c->s->trials.config->n_experts;
    bool fine = true;
    char text[160];
    for (long a = 1; a < experts && fine && o->c->found == NULL; a++) {
        snprintf(text, sizeof text, "those of the expert with its number modulo %ld (in its rank)",
                 a);
        fine = try_map(o, MODULO, a, 0, text);
        snprintf(text, sizeof text, "those of the expert with its number over %ld, cut", a);
        if (fine && a > 1) fine = try_map(o, QUOTIENT, a, 0, text);
        snprintf(text, sizeof text, "those of the expert %ld further on, in a circle", a);
        if (fine) fine = try_map(o, SHIFTED, a, 0, text);
        for (long b = 1; b < experts && experts <= FEW_EXPERTS && fine; b++) {
            snprintf(text, sizeof text,
                     "those of the expert %ld further on (in a circle), for experts from %ld on", a,
                     b);
            fine = try_map(o, SHIFTED_FROM, a, b, text);
        }
    }
    return fine && try_map(o, MIRRORED, experts - 1, 0,
                           "those of the expert at the same distance from the other end");
}

static bool try_tokens(const operation *o) {
    long k = (long)o->c->s->trials.config->n_chosen, n = (long)o->c->n;
    bool fine = try_map(o, AS_SLOT, 0, 0,
                        "read at the number of the slot (the rank of the choice), not of the "
                        "expert") &&
                try_map(o, AS_TOKEN, 0, 0,
                        "those of the expert with the token's number (modulo the experts)") &&
                try_map(o, AS_BATCH, 0, 0,
                        "those of the expert whose number is the place in the expert's batch") &&
                try_map(o, SORTED, 0, 0,
                        "those of the token's experts in the order of their numbers, not of the "
                        "slots") &&
                try_map(o, OF_ROW_BY, -1, 0, "those of the experts of the token before") &&
                try_map(o, OF_ROW_BY, 1, 0, "those of the experts of the next token");
    char text[160];
    for (long a = 0; a < k && fine && o->c->found == NULL; a++) {
        snprintf(text, sizeof text, "those of the token's expert in slot %ld, in every slot", a);
        fine = try_map(o, OF_SLOT, a, 0, text);
        snprintf(text, sizeof text,
                 "those of the token's expert %ld slot%s on, in a circle: another slot's expert", a,
                 a == 1 ? "" : "s");
        if (fine && a > 0) fine = try_map(o, OF_SLOT_BY, a, 0, text);
    }
    for (long a = 1; a < n && a <= 128 && fine && o->c->found == NULL; a++) {
        snprintf(text, sizeof text,
                 "those of the experts of the token with this one's number modulo %ld: the tables "
                 "begin anew",
                 a);
        fine = try_map(o, IN_CHUNK, a, 0, text);
    }
    return fine;
}

bool compose_maps(composing *c) {
    operation o;
    bool slots = c->point >= TRACE_M5 && c->point <= TRACE_M10 && c->point != TRACE_M8;
    enum { MOST_TILE = 130, MOST_PAIRS = 1 << 12, MOST_TILED = 1 << 9 };
    if (!slots || c->chosen_nk == NULL || c->s->trials.config->dense) return true;
    size_t pairs = c->n * c->s->trials.config->n_chosen;
    for (size_t q = 0; q < pairs; q++)
        if (c->chosen_nk[q] < 0) return true;
    bool fine = operation_read(c, &o);
    bool asked = fine && o.whole && o.n_weights > 0 && pairs <= MOST_PAIRS;
    if (asked) fine = try_tokens(&o) && try_ranks(&o);
    if (asked && fine && pairs <= MOST_TILED)
        fine = try_tiles(&o, c->n < MOST_TILE ? c->n : MOST_TILE);
    operation_free(&o);
    return fine;
}
