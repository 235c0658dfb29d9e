// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift (stat.drift): small errors that all lean one way.
//
// Honest errors d_i = value - emulation are centred; a wrong eps, a truncating accumulator or a
// constant rounded once too often is not. The sharpest question about a common factor 1 + g is
// the weighted mean g = sum d c / v over sum c^2 / v, with c the emulation and v the variance
// that the open parts allow. Its variance is 1 / sum c^2 / v, plus what the row shares.
//
// Threshold: independent symmetric errors satisfy |sum X| <= sqrt(2 L sum X^2) but for odds
// 2 exp(-L), whatever their sizes and however rare a whole step of a coarse format is: given the
// sizes, only the signs are random (the self-normalised bound). The larger of sum X^2 and of the
// model's variance V stands in it. Errors that a row shares make the row one unit, and a few rows
// can never outrun their own sum X^2; there V alone serves (Azuma-Hoeffding) as long as no error
// is a rare step. Declared function errors may lean one way: their whole weight is allowed for.
//
// Power: a factor 1 + g adds g W to the sum, W the weight, but also g^2 W_2 to what is seen, W_2
// the sum of squared weights of the units; so it is caught when g^2 (W^2 - 2 L W_2) > 2 L V, and
// with fewer than 2 L units never.
#include "proofs/bounds/bounds.h"

#include <stdlib.h>

enum { ALL, OFFSET, SIZES, PLACES = SIZES + 8 }; // the bins' order

const char *sinkproof_drift_bin_name(int bin) {
    static const char *const names[SINKPROOF_DRIFT_BINS] = {
        "common factor",         "common offset",         "negative, large",
        "negative, middle",      "negative, small",       "negative, tiny",
        "positive, large",       "positive, middle",      "positive, small",
        "positive, tiny",        "first quarter of rows", "second quarter of rows",
        "third quarter of rows", "last quarter of rows"};
    return bin >= 0 && bin < SINKPROOF_DRIFT_BINS ? names[bin] : "none";
}

static int size_bin(double c, double largest) {
    int below = ilogb(largest) - ilogb(c);
    return SIZES + (c > 0 ? 4 : 0) + (below < 2 ? 0 : below < 4 ? 1 : below < 7 ? 2 : 3);
}

// One element's share of a bin: direction g (c, or 1 for an offset).
static void put(sinkproof_drift_bin *bin, double d, double g, const sinkproof_honest *x, bool own,
                bool jumps) {
    double contribution = d * g / x->spread;
    bin->sum += contribution;
    bin->weight += g * g / x->spread;
    bin->model += g * g / x->spread;
    if (own) {
        double weight = g * g / x->spread;
        bin->seen += contribution * contribution, bin->squares += weight * weight;
    }
    bin->bias += x->bias * fabs(g) / x->spread;
    bin->jumps = bin->jumps || jumps;
    bin->elements++;
}

//> stat.drift
void sinkproof_drift_row(sinkproof_drift *drift, size_t n, const double *v_i,
                         const sinkproof_honest *x_i, double common, double where) {
    double before[SINKPROOF_DRIFT_BINS], weights[SINKPROOF_DRIFT_BINS];
    double shared[SINKPROOF_DRIFT_BINS] = {0}, largest = 0;
    for (int b = 0; b < SINKPROOF_DRIFT_BINS; b++)
        before[b] = drift->bins[b].sum, weights[b] = drift->bins[b].weight;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x_i[i].mid)) largest = fmax(largest, fabs(x_i[i].mid));
    int place = PLACES + (int)(fmin(fmax(where, 0), 0.999) * 4);
    for (size_t i = 0; i < n; i++) {
        const sinkproof_honest *x = &x_i[i];
        double c = x->mid, d = v_i[i] - c;
        if (!(x->spread > 0) || c == 0 || !isfinite(c) || !isfinite(d) || !isfinite(x->bias))
            continue;
        double likely = sinkproof_likely_radius(x);
        bool jumps = common == 0 || likely * likely > 64 * (x->spread + common * c * c);
        const int gains[3] = {ALL, size_bin(c, largest), place};
        for (int b = 0; b < 3; b++) {
            put(&drift->bins[gains[b]], d, c, x, common == 0, jumps);
            shared[gains[b]] += c * c / x->spread;
        }
        put(&drift->bins[OFFSET], d, 1, x, common == 0, jumps);
        shared[OFFSET] += c / x->spread;
    }
    if (common == 0) return;
    for (int b = 0; b < SINKPROOF_DRIFT_BINS; b++) { // the row is one unit
        double row = drift->bins[b].sum - before[b], weight = drift->bins[b].weight - weights[b];
        drift->bins[b].model += common * shared[b] * shared[b];
        drift->bins[b].seen += row * row, drift->bins[b].squares += weight * weight;
    }
}

sinkproof_drift_result sinkproof_drift_judge(const sinkproof_drift *drift, double rate) {
    double odds = log(2 * SINKPROOF_DRIFT_BINS / rate);
    sinkproof_drift_result r = {0, INFINITY, -1, INFINITY};
    double worst = -1;
    for (int b = 0; b < SINKPROOF_DRIFT_BINS; b++) {
        const sinkproof_drift_bin *bin = &drift->bins[b];
        if (bin->elements == 0 || !(bin->weight > 0)) continue;
        double v = bin->jumps ? fmax(bin->model, bin->seen) : bin->model;
        double limit = (sqrt(2 * odds * v) + bin->bias) / bin->weight;
        double gain = bin->sum / bin->weight;
        if (b == ALL) {
            double rest =
                bin->jumps ? 1 - 2 * odds * bin->squares / (bin->weight * bin->weight) : 1;
            r.smallest = rest > 0 ? limit / sqrt(rest) : INFINITY;
        }
        if (!(fabs(gain) / limit <= worst)) {
            worst = fabs(gain) / limit;
            r.gain = gain, r.limit = limit, r.bin = b;
        }
    }
    return r;
}
//< stat.drift
