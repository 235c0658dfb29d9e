// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees (doc/06-softmax-sink.md). The sink is no key: nothing ever masks it.
//
// Three say it once more, since a mistake here must not be theirs too: the fast path
// (fast/kernels/softmax_sink.inc), the truth (proofs/truth/forward.c) and the judge's sets
// (audit/judge/judge_attention.c). Whatever is no computation of its own asks here.
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
