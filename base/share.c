// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "base/share.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static sinkproof_share_text share_digits_text(double x, int digits, bool fixed) {
    sinkproof_share_text t;
    if (fixed && fabs(x) < 1e15)
        snprintf(t.text, sizeof t.text, "%.*f", digits, x);
    else
        snprintf(t.text, sizeof t.text, "%.*g", fixed ? 3 : digits, x);
    return t;
}

// x is the share times the limit; `below` and `above` are the numbers one step below and above the
// limit.
static sinkproof_share_text share_beside_limit(double share, double x, double limit, int digits,
                                               bool fixed, double below, double above) {
    sinkproof_share_text t = share_digits_text(x, digits, fixed);
    double shown = strtod(t.text, NULL);
    if (share < 1 && shown >= limit) return share_digits_text(limit - below, digits, fixed);
    if (share > 1 && shown <= limit) return share_digits_text(limit + above, digits, fixed);
    return t;
}

sinkproof_share_text sinkproof_share_fixed(double share, int places) {
    double step = pow(10, -places);
    return share_beside_limit(share, share, 1, places, true, step, step);
}

sinkproof_share_text sinkproof_share_digits(double share, int digits) {
    return share_beside_limit(share, share, 1, digits, false, pow(10, -digits),
                              pow(10, 1 - digits));
}

static sinkproof_share_text append_percent_sign(sinkproof_share_text number) {
    sinkproof_share_text t;
    snprintf(t.text, sizeof t.text, "%.29s %%", number.text);
    return t;
}

sinkproof_share_text sinkproof_share_percent(double share, int places) {
    double step = pow(10, -places);
    return append_percent_sign(
        share_beside_limit(share, 100 * share, 100, places, true, step, step));
}

sinkproof_share_text sinkproof_share_percent_digits(double share, int digits) {
    double x = 100 * share;
    return append_percent_sign(
        share_beside_limit(share, x, 100, digits, false, pow(10, 2 - digits), pow(10, 3 - digits)));
}

double sinkproof_count_share(size_t part, size_t whole) {
    double share = whole > 0 ? (double)part / (double)whole : 0;
    return part < whole ? fmin(share, 1 - 0x1p-53) : share; // counts beyond 2^53 are rounded
}

int sinkproof_digits_apart(double x, double limit, int digits) {
    for (; digits < 17; digits++) {
        char a[32], b[32];
        snprintf(a, sizeof a, "%.*g", digits, x);
        snprintf(b, sizeof b, "%.*g", digits, limit);
        if (strtod(a, NULL) != strtod(b, NULL) || x == limit) break;
    }
    return digits;
}
