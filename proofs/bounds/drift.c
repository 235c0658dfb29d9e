// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift (stat.drift): small errors that all lean one way.
//
// Honest errors d_i = value - emulation are centred; those of a wrong eps, a truncating accumulator
// or a constant rounded once too often are not. The most powerful estimate of a common factor 1 + g
// is the weighted mean g = sum d c / v over sum c^2 / v, with c the emulation and v the variance
// that the open parts allow. Its variance is 1 / sum c^2 / v, plus what the row shares.
//
// Threshold: independent symmetric errors satisfy |sum X| <= sqrt(2 L sum X^2) except with odds
// 2 exp(-L), whatever their sizes and however rare a whole step of a coarse format is: given the
// sizes, only the signs are random (the self-normalised bound). The formula uses the larger of sum
// X^2 and the model's variance V. Errors that a row shares make the row one unit, and a few rows
// can never exceed their own sum X^2; for these V alone is used, for errors uniform within their
// half step, as long as none is a rare step. Alike rows are one unit too (stat.equal-rows).
// Declared function errors may lean one way: their whole weight is added to the limit.
//
// Layers (stat.drift-pooled): a mistake of the operation leans alike in every layer, and honest
// errors do not. The units of all layers are treated as those of one tensor, each with its own
// variance and its own lean, so that no more is assumed than for the rows of one tensor.
//
// Power: a factor 1 + g adds g W to the sum, W the weight, but also g^2 W_2 to sum X^2, W_2 the sum
// of the units' squared weights; so it is detected when g^2 (W^2 - 2 L W_2) > 2 L V, and never with
// fewer than 2 L units.
#include "proofs/bounds/bounds.h"

#include <stdlib.h>

enum { ALL, OFFSET, SIZES, PLACES = SIZES + 8 }; // the order of the bins

const char *sinkproof_drift_bin_name(int bin) {
    static const char *const names[DRIFT_BINS] = {
        "common factor",         "common offset",         "negative, large",
        "negative, middle",      "negative, small",       "negative, tiny",
        "positive, large",       "positive, middle",      "positive, small",
        "positive, tiny",        "first quarter of rows", "second quarter of rows",
        "third quarter of rows", "last quarter of rows"};
    return bin >= 0 && bin < DRIFT_BINS ? names[bin] : "none";
}

static bool make_room(sinkproof_drift *drift, size_t rows) {
    if (drift->failed || drift->room - drift->n_rows >= rows) return !drift->failed;
    size_t room = drift->room + rows < 64 ? 64 : 2 * (drift->room + rows);
    sinkproof_row *larger = realloc(drift->rows, room * sizeof *larger);
    drift->failed = larger == NULL;
    if (larger != NULL) drift->rows = larger, drift->room = room;
    return !drift->failed;
}

// The size bin of an element in a row whose largest element has the exponent `top`.
static int size_bin(double c, int top) {
    int below = top - ilogb(c);
    return SIZES + (c > 0 ? 4 : 0) + (below < 2 ? 0 : below < 4 ? 1 : below < 7 ? 2 : 3);
}

// One element's contribution to a bin.
typedef struct share {
    double sum, weight, bias, shared;
    bool alone, jumps; // alone: a unit by itself, not a part of its row
} share;

// In direction g, which is c, or 1 for an offset; scaled is g over the variance.
static share direction_share(double d, double g, double scaled, const sinkproof_honest *x,
                             bool alone, bool jumps) {
    return (share){.sum = d * scaled,
                   .weight = g * scaled,
                   .bias = x->bias * fabs(scaled),
                   .shared = x->mid * scaled,
                   .alone = alone,
                   .jumps = jumps};
}

static void add_share(drift_bin *bin, const share *e, double *shared) {
    bin->sum += e->sum, bin->weight += e->weight, bin->model += e->weight;
    if (e->alone) bin->seen += e->sum * e->sum, bin->squares += e->weight * e->weight;
    bin->bias += e->bias;
    bin->jumps = bin->jumps || e->jumps;
    bin->elements++;
    *shared += e->shared;
}

static void add_bin(drift_bin *into, const drift_bin *from) {
    into->sum += from->sum, into->weight += from->weight, into->model += from->model;
    into->seen += from->seen, into->bias += from->bias, into->squares += from->squares;
    into->elements += from->elements;
    into->jumps = into->jumps || from->jumps;
}

static void store_row(sinkproof_drift *drift, const drift_bin *row, size_t n,
                      const sinkproof_honest *x_i) {
    if (row->elements == 0 || !make_room(drift, 1)) return;
    drift->rows[drift->n_rows++] = (sinkproof_row){.key = alike_row_key(n, x_i),
                                                   .model = (float)sqrt(row->model),
                                                   .seen = (float)sqrt(row->seen),
                                                   .weight = (float)sqrt(row->squares)};
}

//> stat.drift
void sinkproof_drift_row(sinkproof_drift *drift, size_t n, const double *v_i,
                         const sinkproof_honest *x_i, double common, double place) {
    drift_bin row[PLACES] = {0}; // what this row adds
    double shared[PLACES] = {0}, largest = 0;
    if (!isfinite(common)) return; // the inputs contain infinities
    for (size_t i = 0; i < n; i++)
        if (isfinite(x_i[i].mid)) largest = fmax(largest, fabs(x_i[i].mid));
    int top = ilogb(largest);
    for (size_t i = 0; i < n; i++) {
        const sinkproof_honest *x = &x_i[i];
        double c = x->mid, d = v_i[i] - c, precision = 1 / x->spread;
        bool open = precision > 0 && precision < INFINITY;
        if (!open || c == 0 || !isfinite(c) || !isfinite(d) || !isfinite(x->bias)) continue;
        double likely = sinkproof_likely_distance(x);
        bool jumps = common == 0 || likely * likely > 64 * (x->spread + common * c * c);
        share gain = direction_share(d, c, c * precision, x, common == 0, jumps);
        share offset = direction_share(d, 1, precision, x, common == 0, jumps);
        int size = size_bin(c, top);
        add_share(&row[ALL], &gain, &shared[ALL]);
        add_share(&row[size], &gain, &shared[size]);
        add_share(&row[OFFSET], &offset, &shared[OFFSET]);
    }
    for (int b = 0; common != 0 && b < PLACES; b++) { // the row is one unit
        row[b].model += common * shared[b] * shared[b];
        row[b].seen = row[b].sum * row[b].sum, row[b].squares = row[b].weight * row[b].weight;
    }
    int quarter = (int)(fmin(fmax(place, 0), 0.999) * SPREAD_QUARTERS);
    for (int b = 0; b < PLACES; b++) add_bin(&drift->bins[b], &row[b]);
    add_bin(&drift->bins[PLACES + quarter], &row[ALL]);
    store_row(drift, &row[ALL], n, x_i);
    spread_add_row(&drift->spread[quarter], n, v_i, x_i, common != 0);
}

bool sinkproof_drift_judge(const sinkproof_drift *drift, double rate, sinkproof_drift_result *r) {
    double odds = log(2 * DRIFT_BINS / rate), worst = -1;
    sinkproof_alike alike;
    *r = (sinkproof_drift_result){.limit = INFINITY, .bin = -1, .smallest = INFINITY};
    if (drift->failed || !sinkproof_rows_alike(drift->n_rows, drift->rows, &alike)) return false;
    r->alike = alike.largest;
    spread_judge(drift->spread, alike.largest, rate, &r->spread);
    for (int b = 0; b < DRIFT_BINS; b++) {
        const drift_bin *bin = &drift->bins[b];
        if (bin->elements == 0 || !(bin->weight > 0)) continue;
        double model = bin->model * (b == ALL ? alike.model : alike.largest);
        double seen = bin->seen * (b == ALL ? alike.seen : alike.largest);
        double v = bin->jumps ? fmax(model, seen) : model;
        double limit = (sqrt(2 * odds * v) + bin->bias) / bin->weight;
        double gain = bin->sum / bin->weight;
        if (b == ALL) {
            double squares = bin->squares * alike.weight;
            double rest = bin->jumps ? 1 - 2 * odds * squares / (bin->weight * bin->weight) : 1;
            r->smallest = rest > 0 ? limit / sqrt(rest) : INFINITY;
        }
        if (!(fabs(gain) / limit <= worst)) {
            worst = fabs(gain) / limit;
            r->gain = gain, r->limit = limit, r->bin = b;
        }
    }
    return true;
}
//< stat.drift

//> stat.drift-pooled
bool sinkproof_drift_pooled(size_t n, const sinkproof_drift *const *layers, double rate,
                            sinkproof_drift_result *r) {
    sinkproof_drift all = {0};
    for (size_t l = 0; l < n; l++) sinkproof_drift_merge(&all, layers[l]);
    // rows that are alike may belong to two layers
    bool fine = sinkproof_drift_judge(&all, rate, r);
    sinkproof_drift_free(&all);
    return fine;
}

double sinkproof_drift_gain(const sinkproof_drift *drift, int bin) {
    if (bin < 0 || !(drift->bins[bin].weight > 0)) return 0;
    return drift->bins[bin].sum / drift->bins[bin].weight;
}
//< stat.drift-pooled

bool sinkproof_drift_leans(const sinkproof_drift_result *r) {
    return r->bin >= 0 && !(fabs(r->gain) <= r->limit);
}

bool sinkproof_drift_spreads(const sinkproof_drift_result *r) {
    return r->spread.part >= 0 && !(r->spread.mean <= r->spread.limit);
}

void sinkproof_drift_merge(sinkproof_drift *into, const sinkproof_drift *from) {
    for (int b = 0; b < DRIFT_BINS; b++) add_bin(&into->bins[b], &from->bins[b]);
    for (int q = 0; q < SPREAD_QUARTERS; q++) spread_merge(&into->spread[q], &from->spread[q]);
    into->failed = into->failed || from->failed;
    if (!make_room(into, from->n_rows)) return;
    for (size_t i = 0; i < from->n_rows; i++) into->rows[into->n_rows++] = from->rows[i];
}

void sinkproof_drift_free(sinkproof_drift *drift) {
    free(drift->rows);
    *drift = (sinkproof_drift){0};
}
