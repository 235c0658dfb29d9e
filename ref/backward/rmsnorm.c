// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of RMSNorm. Every coordinate of a token enters its root mean square, so each dx_c
// has a term of its own and one of the whole token, which is orthogonal to x but for eps.
#include "ref/backward/backward.h"

#include <math.h>

void sinkproof_rmsnorm_backward(const double *scale_c, double eps, size_t n, size_t hidden,
                                const double *x_nc, const double *dy_nc, double *dx_nc,
                                double *dscale_c) {
    for (size_t t = 0; t < n; t++) {
        const double *x_c = x_nc + t * hidden, *dy_c = dy_nc + t * hidden;
        double *dx_c = dx_nc + t * hidden;
        double squares = 0, along = 0;
        //> grad.rmsnorm
        for (size_t c = 0; c < hidden; c++) {
            squares += x_c[c] * x_c[c];
            along += x_c[c] * (scale_c[c] * dy_c[c]);
        }
        double r = 1 / sqrt(squares / (double)hidden + eps);
        double whole = along / (double)hidden * (r * r);
        for (size_t c = 0; c < hidden; c++) {
            dx_c[c] += r * (scale_c[c] * dy_c[c] - x_c[c] * whole);
            dscale_c[c] += dy_c[c] * (x_c[c] * r);
        }
        //< grad.rmsnorm
    }
}
