// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees (doc/06-softmax-sink.md). The sink is not a key: nothing ever masks it.
//
// Three other places state the mask independently, so that they do not share a mistake made here:
// the fast path (fast/kernels/softmax_sink.inc), the truth (proofs/truth/forward.c) and the judge's
// sets (audit/judge/judge_attention.c). All other code calls this function.
#include "ref/stages.h"

size_t sinkproof_mask_first(size_t window, size_t i) {
    //> mask.causal first.token
    size_t first = 0; // keys 0 ... i: the query sees itself, and nothing after it
    //< mask.causal first.token
    //> mask.window sink.absolute
    // Exactly `window` keys, itself included: i - window + 1 ... i.
    if (window > 0 && i + 1 > window) first = i + 1 - window;
    //< mask.window sink.absolute
    return first;
}
