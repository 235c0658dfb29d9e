// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/judge/judge_layout.h"

#include <string.h>

static const unsigned char orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

sinkproof_layout sinkproof_layout_at(size_t i) {
    sinkproof_layout layout;
    size_t written = i / 5, read = i % 5 + (i % 5 >= written);
    memcpy(layout.written, orders[written], sizeof layout.written);
    memcpy(layout.read, orders[read], sizeof layout.read);
    return layout;
}

size_t layout_from(const sinkproof_layout *layout, const size_t shape[3], size_t at) {
    size_t index[3], offset = 0, from = 0;
    for (int a = 3; a-- > 0; at /= shape[a]) index[a] = at % shape[a];
    for (int a = 0; a < 3; a++) offset = offset * shape[layout->read[a]] + index[layout->read[a]];
    for (int a = 3; a-- > 0; offset /= shape[layout->written[a]])
        index[layout->written[a]] = offset % shape[layout->written[a]];
    for (int a = 0; a < 3; a++) from = from * shape[a] + index[a];
    return from;
}
