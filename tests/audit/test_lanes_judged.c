// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lane arithmetic judged like a stranger's engine, under every policy that it serves: nothing
// outside its honest set, nothing suspicious, at lengths within one span of keys and beyond it. Its
// trace has no A9: the judge bridges from the scores to the weighted values.
#include "fast/lanes/lanes.h"
#include "tests/shared/judged_policies.h"

static void test(const sinkproof_model *model, const char *policy, size_t n, size_t piece,
                 const char *points) {
    sinkproof_judgement j =
        judged(model, &sinkproof_lanes_stages, policy, policy, n, piece, 7 + n, points);
    char what[128];
    snprintf(what, sizeof what,
             "bound.linear bound.rmsnorm bound.rope bound.softmax-sink bound.swiglu %s", policy);
    ok_within(&j, what, n);
}

int main(void) {
    under_all_policies(test);
    return tap_done();
}
