// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shares of a limit as text: never the limit beside it, whatever the digits; and to nearest
// wherever that does not show the limit.
#include "base/share.h"

#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

typedef struct row {
    double share;
    const char *fixed, *digits, *percent, *percent_digits; // 2, 2, 1 and 3
} row;

static const row rows[] = {
    {0, "0.00", "0", "0.0 %", "0 %"},
    {0.0031, "0.00", "0.0031", "0.3 %", "0.31 %"},
    {0.5, "0.50", "0.5", "50.0 %", "50 %"},
    {0.994, "0.99", "0.99", "99.4 %", "99.4 %"},
    {0.996, "0.99", "0.99", "99.6 %", "99.6 %"},
    {0.9996, "0.99", "0.99", "99.9 %", "99.9 %"},
    {0.99999, "0.99", "0.99", "99.9 %", "99.9 %"},
    {1 - 0x1p-53, "0.99", "0.99", "99.9 %", "99.9 %"},
    {1, "1.00", "1", "100.0 %", "100 %"},
    {1 + 0x1p-52, "1.01", "1.1", "100.1 %", "101 %"},
    {1.0001, "1.01", "1.1", "100.1 %", "101 %"},
    {1.004, "1.01", "1.1", "100.4 %", "101 %"},
    {1.006, "1.01", "1.1", "100.6 %", "101 %"},
    {1.26, "1.26", "1.3", "126.0 %", "126 %"},
    {250, "250.00", "2.5e+02", "25000.0 %", "2.5e+04 %"},
    {1e300, "1e+300", "1e+300", "1e+302 %", "1e+302 %"},
    {NAN, "nan", "nan", "nan %", "nan %"},
    {INFINITY, "inf", "inf", "inf %", "inf %"},
};

static bool same(const char *what, double share, sinkproof_share_text found, const char *wanted) {
    if (strcmp(found.text, wanted) == 0) return true;
    note("%s of %.17g is \"%s\", expected \"%s\"", what, share, found.text, wanted);
    return false;
}

static void table(void) {
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x = rows[i].share;
        wrong += !same("share", x, sinkproof_share_fixed(x, 2), rows[i].fixed);
        wrong += !same("digits", x, sinkproof_share_digits(x, 2), rows[i].digits);
        wrong += !same("percent", x, sinkproof_share_percent(x, 1), rows[i].percent);
        wrong += !same("percent digits", x, sinkproof_share_percent_digits(x, 3),
                       rows[i].percent_digits);
    }
    ok(wrong == 0, "shares of %zu sizes, NaN and infinity worst=%zu bound=0",
       sizeof rows / sizeof *rows, wrong);
}

// The number that is shown is on the share's side of the limit, and within a step of the share.
static bool fits(double share, const char *text, double limit, double step) {
    double shown = strtod(text, NULL) / limit;
    bool side = share < 1 ? shown < 1 : share > 1 ? shown > 1 : shown == 1;
    return side && fabs(shown - share) <= step * (1 + 0x1p-40);
}

static void beside(void) {
    size_t wrong = 0, asked = 0;
    for (int e = -53; e < 1; e++)
        for (int sign = -1; sign <= 1; sign++)
            for (int n = 0; n <= 6; n++) {
                double share = 1 + sign * ldexp(0.75, e), step = pow(10, -n);
                int digits = n < 1 ? 1 : n;
                wrong += !fits(share, sinkproof_share_fixed(share, n).text, 1, step);
                wrong += !fits(share, sinkproof_share_percent(share, n).text, 100, step / 100);
                step = pow(10, 1 - digits);
                wrong += !fits(share, sinkproof_share_digits(share, digits).text, 1, step);
                digits += 2;
                wrong +=
                    !fits(share, sinkproof_share_percent_digits(share, digits).text, 100, step);
                asked += 4;
            }
    ok(wrong == 0, "beside the limit, with every number of digits worst=%zu bound=0 of=%zu", wrong,
       asked);
}

static void counts(void) {
    const size_t many = (size_t)1 << 60;
    bool good = sinkproof_count_share(0, 0) == 0 && sinkproof_count_share(1, 4) == 0.25 &&
                sinkproof_count_share(7, 7) == 1 && sinkproof_count_share(many, many) == 1 &&
                sinkproof_count_share(many - 1, many) < 1 && sinkproof_count_share(0, 9) == 0;
    good = good && strcmp(sinkproof_share_percent(sinkproof_count_share(99999, 100000), 2).text,
                          "99.99 %") == 0;
    ok(good, "counts: all but one of however many is not all");
}

static bool apart(double x, double limit, int digits, int wanted) {
    int found = sinkproof_digits_apart(x, limit, digits);
    if (found != wanted) note("%.17g and %.17g: %d digits, expected %d", x, limit, found, wanted);
    return found == wanted;
}

static void two_numbers(void) {
    bool good = apart(2.96e-8, 2.76e-8, 3, 3) && apart(2.7651e-8, 2.7649e-8, 3, 3) &&
                apart(2.7601e-8, 2.7599e-8, 3, 5) && apart(1 + 0x1p-52, 1, 3, 17) &&
                apart(1, 1, 3, 3) && apart(1.00001, 1, 2, 6) && apart(INFINITY, 1, 3, 3) &&
                apart(NAN, 1, 3, 3) && apart(INFINITY, INFINITY, 3, 3);
    ok(good,
       "a number and its limit differ in the digits that are shown, and no more than it takes");
}

int main(void) {
    table();
    beside();
    counts();
    two_numbers();
    return tap_done();
}
