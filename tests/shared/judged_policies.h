// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges an engine in the fast path's arithmetic like any other, under every policy that it
// supports: in one piece and in pieces, with all points and with few, within one span of keys and
// beyond it (under FEW=1 by one policy alone).
#ifndef SINKPROOF_TESTS_JUDGED_POLICIES_H
#define SINKPROOF_TESTS_JUDGED_POLICIES_H

#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

static const char *const policies[] = {"f32", "f32,A2=bf16,A4=bf16", "bf16-operands"};

// n tokens in pieces of `piece`, keeping `points`.
typedef void judged_case(const sinkproof_model *model, const char *policy, size_t n, size_t piece,
                         const char *points);

static inline void under_all_policies(judged_case *test) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=2"); // one slides, one does not
    size_t n_policies = sizeof policies / sizeof policies[0];
    for (size_t p = 0; p < n_policies; p++) {
        test(model, policies[p], 40, 40, one_pass_points);
        test(model, policies[p], 40, 7, "T0,A13,M2,M3,M12,F1,F2");
        test(model, policies[p], 264, 150, one_pass_points); // a span is 256 keys
    }
    sinkproof_model_close(model);
}

#endif
