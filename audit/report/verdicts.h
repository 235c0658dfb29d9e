// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How a page colours a verdict.
#ifndef SINKPROOF_REPORT_VERDICTS_H
#define SINKPROOF_REPORT_VERDICTS_H

#include "audit/sinkproof.h"

static inline const char *verdict_css_class(sinkproof_verdict verdict) {
    return verdict == SINKPROOF_VERDICT_BUG          ? "bad"
           : verdict == SINKPROOF_VERDICT_SUSPICIOUS ? "odd"
           : verdict == SINKPROOF_VERDICT_UNDECIDED  ? "faint"
                                                     : "good";
}

#endif
