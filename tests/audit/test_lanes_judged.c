// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lane arithmetic judged like a stranger's engine, under every policy that it serves: nothing
// outside its honest set, nothing suspicious, at lengths within one span of keys and beyond it. Its
// trace has no A9: the judge bridges from the scores to the weighted values.
#include "ref/lanes/lanes.h"
#include "tests/shared/judged.h"

static const char *const policies[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands"};

static void test(const sinkproof_model *model, const char *policy, size_t n, size_t chunk,
                 const char *points) {
    sinkproof_judgement j =
        judged(model, &sinkproof_lanes_stages, policy, policy, n, chunk, 7 + n, points);
    char what[128];
    snprintf(what, sizeof what,
             "bound.linear bound.rmsnorm bound.rope bound.softmax-sink bound.swiglu %s", policy);
    ok_within(&j, what, n);
}

int main(void) {
    sinkproof_error error;
    sinkproof_model *model, *shallow; // two layers: one slides, one does not
    if (!sinkproof_model_open("synthetic:tiny", &model, &error) ||
        !sinkproof_model_open("synthetic:tiny,layers=2", &shallow, &error)) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        test(model, policies[p], 40, 0, one_pass_points);
        test(model, policies[p], 40, 7, "T0,A13,M2,M3,M12,F1,F2");
        test(shallow, policies[p], 300, 0, one_pass_points);
    }
    sinkproof_model_close(model), sinkproof_model_close(shallow);
    return tap_done();
}
