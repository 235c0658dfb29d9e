// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lane arithmetic judged like a stranger's engine, under every policy that it serves: nothing
// outside its honest set, nothing suspicious, at lengths within one span of keys and beyond it. Its
// trace has no A9: the judge bridges from the scores to the weighted values.
#include "tests/judged.h"
#include "tests/tap.h"

#include "ref/lanes/lanes.h"

#include <math.h>

// Every point of a trace but A9 and A10.
static const char *const shown = "T0,A1,A2,A4,A6,A11,A12,A13,M1,M2,M3,M4,M6,M8,M10,M11,M12,F1,F2";

static const char *const policies[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands"};

static void test(const sinkproof_model *model, const char *policy, size_t n, size_t chunk,
                 const char *points) {
    sinkproof_judgement j =
        judged(model, &sinkproof_lanes_stages, policy, policy, n, chunk, 7 + n, points);
    size_t outside = 0, unlikely = 0;
    double share = 0, drift = 0;
    for (size_t i = 0; i < j.n_reports; i++) {
        const sinkproof_point_report *r = &j.reports[i];
        outside += r->outside, unlikely += r->unlikely;
        share = fmax(share, r->share_worst);
        if (r->drift.bin >= 0) drift = fmax(drift, fabs(r->drift.gain) / r->drift.limit);
        if (r->verdict > SINKPROOF_VERDICT_WITHIN)
            note("%s: %s, share %.3g", r->name, sinkproof_verdict_name(r->verdict), r->share_worst);
    }
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && outside == 0 && unlikely == 0,
       "bound.linear bound.rmsnorm bound.rope bound.softmax-sink bound.swiglu %s, %zu tokens: %zu "
       "points, %zu outside, %zu unlikely "
       "worst=%.3g bound=1 (drift %.3g of 1)",
       policy, n, j.n_reports, outside, unlikely, share, drift);
    sinkproof_judgement_free(&j);
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
        test(model, policies[p], 40, 0, shown);
        test(model, policies[p], 40, 7, "T0,A13,M2,M3,M12,F1,F2");
        test(shallow, policies[p], 300, 0, shown);
    }
    sinkproof_model_close(model), sinkproof_model_close(shallow);
    return tap_done();
}
