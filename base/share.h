// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shares of a limit as text. One that is below its limit is never shown as the limit, nor is one
// above it: where rounding to nearest would show the limit, it goes down below and up above.
#ifndef SINKPROOF_SHARE_H
#define SINKPROOF_SHARE_H

#include <stddef.h>

typedef struct sinkproof_share_text {
    char text[32];
} sinkproof_share_text;

// The limit is 1. So many places behind the point: "0.99", "1.00", "1.01".
sinkproof_share_text sinkproof_share(double share, int places);
// So many significant digits: "0.0031", "0.99", "1", "1.1".
sinkproof_share_text sinkproof_share_digits(double share, int digits);
// Of a hundred: "99.9 %", "100.0 %", "100.1 %".
sinkproof_share_text sinkproof_share_percent(double share, int places);
// The same in significant digits: "0.0031 %", "99.9 %", "101 %".
sinkproof_share_text sinkproof_share_percent_digits(double share, int digits);

// A count over another, as a share: below 1 for all but one, however many; 0 of nothing.
double sinkproof_count_share(size_t part, size_t whole);

// The fewest significant digits, `digits` or more, that show x other than its limit where it is.
int sinkproof_digits_apart(double x, double limit, int digits);

#endif
