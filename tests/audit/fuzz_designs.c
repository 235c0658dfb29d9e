// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes as what an engine of a design computed, and as the words of a design. Whatever
// opens is judged; an outside element is one whose tensor says so.
#include "audit/designs/choices.h"
#include "audit/designs/design_judge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void read_words(const uint8_t *bytes, size_t length) {
    char words[256];
    sinkproof_variant v;
    sinkproof_error error;
    size_t kept = length < sizeof words ? length : sizeof words - 1;
    memcpy(words, bytes, kept);
    words[kept] = '\0';
    if (design_parse(words, &v, &error) && sinkproof_variant_find(v.name) == NULL) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_design_trace trace;
    sinkproof_design_judgement judged;
    sinkproof_policy policy;
    sinkproof_error error;
    read_words(bytes, length);
    if (!sinkproof_policy_known("bf16", &policy)) abort();
    if (!sinkproof_design_trace_parse(bytes, length, "fuzz", &trace, &error)) return 0;
    if (!sinkproof_design_judge(&trace, &policy, &judged, &error)) abort();
    for (size_t k = 0; k < judged.count; k++) {
        const design_verdict *v = &judged.verdicts[k];
        if (v->outside > v->elements || (v->missing[0] != '\0' && v->elements > 0)) abort();
    }
    sinkproof_design_judgement_free(&judged);
    sinkproof_design_trace_close(&trace);
    return 0;
}
