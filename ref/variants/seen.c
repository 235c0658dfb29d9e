// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees (doc/24-variants.md). A star is not a key of the text and is never an
// argument here.
#include "ref/variants/variant.h"

bool sinkproof_variant_sees(const sinkproof_variant *variant, const int *document_n, size_t i,
                            size_t j) {
    bool recent = j <= i && i - j < variant->window;
    switch (variant->seen) {
    case SINKPROOF_SEEN_WINDOW:
        return recent;
    //> mask.prefix
    case SINKPROOF_SEEN_PREFIX:
        return j <= i || j < variant->prefix;
    //< mask.prefix
    //> mask.packed
    case SINKPROOF_SEEN_PACKED:
        return j <= i && document_n[i] == document_n[j];
    //< mask.packed
    case SINKPROOF_SEEN_FIRST_RECENT:
        return recent || (j <= i && j < variant->prefix);
    case SINKPROOF_SEEN_CAUSAL:
        break;
    }
    return j <= i;
}
