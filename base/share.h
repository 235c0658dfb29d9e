// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shares of a limit as text. A share below its limit is never shown as the limit, nor is one above
// it: where rounding to nearest would show the limit, the text is rounded down or up instead.
#ifndef SINKPROOF_SHARE_H
#define SINKPROOF_SHARE_H

#include <stddef.h>

typedef struct sinkproof_share_text {
    char text[32];
} sinkproof_share_text;

// The limit is 1; `places` digits after the point: "0.99", "1.00", "1.01".
sinkproof_share_text sinkproof_share_fixed(double share, int places);
// `digits` significant digits: "0.0031", "0.99", "1", "1.1".
sinkproof_share_text sinkproof_share_digits(double share, int digits);
// In percent: "99.9 %", "100.0 %", "100.1 %".
sinkproof_share_text sinkproof_share_percent(double share, int places);
// The same in significant digits: "0.0031 %", "99.9 %", "101 %".
sinkproof_share_text sinkproof_share_percent_digits(double share, int digits);

// A count over another as a share: below 1 unless all are counted, however many; 0 for 0 of 0.
double sinkproof_count_share(size_t part, size_t whole);

// The fewest significant digits, at least `digits`, with which x looks different from a limit that
// it differs from.
int sinkproof_digits_apart(double x, double limit, int digits);

#endif
