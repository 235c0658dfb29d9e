// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A cache that is filled pass by pass: which keys a query sees in it, and which tokens its slots
// hold. Whole numbers alone. "Cached" are the keys of the passes before the query's own.
#ifndef SINKPROOF_JUDGE_PASSES_H
#define SINKPROOF_JUDGE_PASSES_H

#include <stdbool.h>
#include <stddef.h>

// The passes in which rows came: row `first` begins the second one, each later one has `rows` rows,
// and from row `single` on each row is a pass. first 0: every row is one.
typedef struct sinkproof_row_passes {
    size_t first, rows, single;
} sinkproof_row_passes;
size_t sinkproof_row_pass_begin(const sinkproof_row_passes *p, size_t row);
size_t row_pass_end(const sinkproof_row_passes *p, size_t row);

// Which of the cached keys, or of the keys of its own pass, a query sees.
typedef enum sinkproof_pass_sight {
    SINKPROOF_SIGHT_DEFINED,
    SINKPROOF_SIGHT_NONE,
    SINKPROOF_SIGHT_ALL,     // no window; of its own pass later ones too
    SINKPROOF_SIGHT_EARLIER, // no window; none that comes later
    SINKPROOF_SIGHT_FIRST,   // those that the first row of the pass sees by its window
    SINKPROOF_SIGHT_LAST,    // those that the last row of the pass sees by its window
    SINKPROOF_SIGHT_LOCAL,   // those of the row whose number is the query's number in its pass
    SINKPROOF_SIGHT_BUT_ONE, // but for the pass before its own
    SINKPROOF_SIGHT_OWN,     // its own key alone
    SINKPROOF_SIGHT_BUT_OWN, // but for its own key
    SINKPROOF_SIGHT_LATER,   // and later ones: the window alone masks
    SINKPROOF_SIGHT_OF_ROW,  // those of row `number`
    SINKPROOF_SIGHT_BEFORE,  // those of the row `number` before it
    // none that comes later, and the window begins as that of the query's number in its pass does
    SINKPROOF_SIGHT_LOCAL_WINDOW
} sinkproof_pass_sight;

// What stands in the slots of the cache.
typedef enum sinkproof_slots {
    SINKPROOF_SLOTS_OWN,        // each token has its own
    SINKPROOF_SLOTS_RING,       // `number` slots: a pass is written whole, then read
    SINKPROOF_SLOTS_RING_FIRST, // the same, and of the first pass the first tokens stay
    SINKPROOF_SLOTS_ONE,        // all tokens from `number` on are written to that slot
    SINKPROOF_SLOTS_EXTRA,      // the newest token is also written to slot `number`
    SINKPROOF_SLOTS_LATER,      // tokens of later passes are written `number` slots further on
    SINKPROOF_SLOTS_EARLIER,    // or before
    SINKPROOF_SLOTS_ANEW,       // each pass is written from slot 0 on
    SINKPROOF_SLOTS_BUT_LAST,   // the last token of each pass is not written
    SINKPROOF_SLOTS_BUT_FIRST,  // the first token of each pass is not written
    SINKPROOF_SLOTS_FIRST_PASS, // only the first pass is written
    SINKPROOF_SLOTS_LAG,        // the pass before is not yet written
    SINKPROOF_SLOTS_WHOLE_PAGES // of a pass only whole pages of `number` tokens are written
} sinkproof_slots;
enum { SINKPROOF_SLOT_KINDS = SINKPROOF_SLOTS_WHOLE_PAGES + 1 };

typedef struct sinkproof_pass_read {
    sinkproof_row_passes of;
    sinkproof_pass_sight cached, own;
    sinkproof_slots slots;
    size_t number;
    bool own_direct;   // the keys of the query's own pass are not read from the cache
    bool first_direct; // nor those of the first pass, by its own queries
    bool left_out;     // a slot that is not written is not read; false: it holds zeros
} sinkproof_pass_read;

// Where a query is: its row, of n, and the window of its layer (0: none).
typedef struct sinkproof_pass_place {
    size_t row, n, window;
} sinkproof_pass_place;

// Whether a query sees key j.
bool pass_sees(const sinkproof_pass_read *p, const sinkproof_pass_place *at, size_t j);
// The token whose key and value stand in the slot of token j; SIZE_MAX: none was written.
size_t pass_slot(const sinkproof_pass_read *p, const sinkproof_pass_place *at, size_t j);

#endif
