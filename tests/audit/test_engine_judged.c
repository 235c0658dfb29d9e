// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engine judged like a stranger: its trace, written as it runs with three threads, in one piece
// or several, lies inside the honest set of its policy at every point, and nothing is suspicious.
// Under another policy than it ran with the same trace is convicted.
#include "tests/shared/judged_engine.h"
#include "tests/shared/judged_policies.h"

#include <string.h>

// n tokens in pieces of `piece` under `runs`; the judge reads the trace under `declared`.
static sinkproof_judgement judged_in_pieces(const sinkproof_model *model, const char *runs,
                                            const char *declared, size_t n, size_t piece,
                                            const char *points) {
    judged_engine of = {{.threads = 3}, piece};
    return judged_run(model, run_engine, &of, runs, declared, n, 11 + n, points);
}

static void test(const sinkproof_model *model, const char *policy, size_t n, size_t piece,
                 const char *points) {
    sinkproof_judgement j = judged_in_pieces(model, policy, policy, n, piece, points);
    char what[160];
    snprintf(what, sizeof what,
             "bound.linear bound.rmsnorm bound.rope bound.softmax-sink bound.swiglu engine %s, "
             "pieces of %zu",
             policy, piece);
    ok_within(&j, what, n);
}

static void test_convicted(const sinkproof_model *model) {
    sinkproof_judgement j =
        judged_in_pieces(model, "f32", "bf16-operands", 40, 40, one_pass_points);
    ok(j.verdict == SINKPROOF_VERDICT_BUG && j.first != NULL && strcmp(j.first->name, "00.A1") == 0,
       "an engine that keeps its operands in float32 does not round them to bf16: first outside at "
       "%s",
       j.first != NULL ? j.first->name : "no point");
    sinkproof_judgement_free(&j);
}

int main(void) {
    under_all_policies(test);
    sinkproof_model *model = open_model("synthetic:tiny");
    test_convicted(model);
    sinkproof_model_close(model);
    return tap_done();
}
