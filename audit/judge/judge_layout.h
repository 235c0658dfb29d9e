// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A buffer of three axes that is written in one order of them and read in another.
#ifndef SINKPROOF_JUDGE_LAYOUT_H
#define SINKPROOF_JUDGE_LAYOUT_H

#include <stddef.h>

// The axes from the slowest to the fastest.
typedef struct sinkproof_layout {
    unsigned char written[3], read[3];
} sinkproof_layout;

enum { SINKPROOF_LAYOUTS = 30 };
sinkproof_layout sinkproof_layout_at(size_t i); // two orders that differ

// Where the number was written that is read at `at`; both count in the order 0, 1, 2.
size_t layout_from(const sinkproof_layout *layout, const size_t shape[3], size_t at);

#endif
