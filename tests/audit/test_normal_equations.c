// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Least squares of known numbers: the solution, unknowns that the equations do not tell, and the
// variances, beside those of two unknowns in closed form.
#include "audit/diagnose/normal_equations.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { UNKNOWNS = 5, ROWS = 12 };

// The upper triangle of the normal equations whose solution is k - 1 for unknown k. With `twice`
// unknown 3 stands in each equation as unknown 1 does.
static void draw(bool twice, double *a, double *b) {
    unsigned state = 7;
    memset(a, 0, UNKNOWNS * UNKNOWNS * sizeof *a);
    memset(b, 0, UNKNOWNS * sizeof *b);
    for (int e = 0; e < ROWS; e++) {
        double x[UNKNOWNS], y = 0;
        for (int k = 0; k < UNKNOWNS; k++) {
            state = state * 1664525 + 1013904223;
            x[k] = (double)(state >> 16) / 65536 - 0.5;
        }
        if (twice) x[3] = x[1];
        for (int k = 0; k < UNKNOWNS; k++) y += x[k] * (k - 1);
        for (int i = 0; i < UNKNOWNS; i++) {
            b[i] += x[i] * y;
            for (int j = i; j < UNKNOWNS; j++) a[i * UNKNOWNS + j] += x[i] * x[j];
        }
    }
}

static void solutions(void) {
    double a[UNKNOWNS * UNKNOWNS], b[UNKNOWNS], far = 0;
    draw(false, a, b);
    size_t dependent = solve_normal(UNKNOWNS, a, b, NORMAL_DEPENDENT);
    for (int k = 0; k < UNKNOWNS; k++) far = fmax(far, fabs(b[k] - (k - 1)));
    ok(dependent == 0 && far < 1e-9, "five unknowns are solved for: off by %.1e", far);
    draw(true, a, b);
    dependent = solve_normal(UNKNOWNS, a, b, NORMAL_DEPENDENT);
    far = fmax(fmax(fabs(b[0] + 1), fabs(b[1] - 2)), fmax(fabs(b[2] - 1), fabs(b[4] - 3)));
    bool marked = !(a[3 * UNKNOWNS + 3] > 0) && !(fabs(b[3]) > 0);
    ok(dependent == 1 && marked && far < 1e-9,
       "an unknown that stands beside another one always is 0, and the other one is both: off by "
       "%.1e",
       far);
}

static void variances(void) {
    double a[4] = {4, 2, 0, 5}, b[2] = {8, 12}, variance[2], room[2]; // determinant 16
    size_t dependent = solve_normal(2, a, b, 0);
    normal_variances(2, a, variance, room);
    ok(dependent == 0 && fabs(b[0] - 1) < 1e-14 && fabs(b[1] - 2) < 1e-14,
       "two unknowns are solved for");
    ok(fabs(variance[0] - 5.0 / 16) < 1e-14 && fabs(variance[1] - 4.0 / 16) < 1e-14,
       "their variances are the diagonal of the inverse");
}

int main(void) {
    solutions();
    variances();
    return tap_done();
}
