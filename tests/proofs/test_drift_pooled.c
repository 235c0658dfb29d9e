// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The layers of one point judged together (stat.drift-pooled): the formula, computed again; layers
// that are equal; how often honest layers are accused, at a rate that is high enough to count; and
// a lean that no single layer shows.
#include "tests/shared/bounds_engine.h"
#include "tests/shared/stated.h"

static const uint64_t SEED = 20260714;

enum { LAYERS = 4, ROWS = 20, COLS = 20 };

typedef struct layer {
    double scale;    // standard deviation that the set allows an element, relative
    double used;     // how much of it the errors have
    double lean;     // what each element is off by, relative
    double declared; // what may lean, relative
} layer;

// One sum of stat.drift over the bin of all elements, in long double.
typedef struct sums {
    real sum, weight, seen, bias;
} sums;

// An honest tensor but for its lean: c in [1, 2), errors uniform.
static sinkproof_drift tensor(uint64_t *state, const layer *l, sums *s) {
    sinkproof_drift drift = {0};
    for (size_t r = 0; r < ROWS; r++) {
        sinkproof_honest x[COLS];
        double v[COLS];
        for (size_t i = 0; i < COLS; i++) {
            double c = 1 + draw_unit(state), sigma = l->scale * c;
            x[i] = sinkproof_set_around(c, 40 * sigma, 12 * sigma, sigma * sigma, l->declared * c);
            v[i] = c + l->used * sigma * sqrt(3) * (2 * draw_unit(state) - 1) + l->lean * c;
            real d = (real)v[i] - c, w = (real)x[i].spread;
            s->sum += d * c / w, s->weight += (real)c * c / w;
            s->seen += (d * c / w) * (d * c / w), s->bias += (real)x[i].bias * c / w;
        }
        sinkproof_drift_row(&drift, COLS, v, x, 0, (double)r / ROWS);
    }
    return drift;
}

static sinkproof_drift_result pooled(sinkproof_drift *drift, size_t n, double rate) {
    const sinkproof_drift *layers[LAYERS];
    sinkproof_drift_result r;
    for (size_t l = 0; l < n; l++) layers[l] = &drift[l];
    must(sinkproof_drift_pooled(n, layers, rate, &r));
    return r;
}

static void free_all(sinkproof_drift *drift) {
    for (size_t l = 0; l < LAYERS; l++) sinkproof_drift_free(&drift[l]);
}

// Layers of other scales and leans: numerators, variances, leans and weights add up. A lean that is
// the elements' own factor is largest in the bin of all.
static void formula(void) {
    uint64_t state = SEED;
    distance d = {0};
    size_t other = 0;
    for (int i = 0; i < 40; i++) {
        sinkproof_drift drift[LAYERS];
        sums s = {0};
        double rate = i % 2 ? 1e-9 : 0.5;
        for (size_t l = 0; l < LAYERS; l++) {
            double scale = ldexp(1, -20 - (int)draw_below(&state, 4));
            layer of = {scale, 1, (i % 4 < 2 ? 3 : -3) * 0x1p-20, i % 3 ? 0x1p-24 : 0};
            drift[l] = tensor(&state, &of, &s);
        }
        sinkproof_drift_result r = pooled(drift, LAYERS, rate);
        real v = s.weight > s.seen ? s.weight : s.seen;
        real limit = (sqrtl(2 * logl(28 / (real)rate) * v) + s.bias) / s.weight;
        near(&d, r.limit, limit, limit, 8 * LAYERS * ROWS * COLS);
        near(&d, r.gain, s.sum / s.weight, limit, 8 * LAYERS * ROWS * COLS);
        other += r.bin != 0 || r.alike != 1;
        for (size_t l = 0; l < LAYERS; l++) {
            const drift_bin *all = &drift[l].bins[0];
            other += sinkproof_drift_gain(&drift[l], 0) != all->sum / all->weight;
        }
        other += sinkproof_drift_gain(&drift[0], -1) != 0;
        free_all(drift);
    }
    report(&d, "stat.drift-pooled", "gain and limit of four layers", SEED);
    ok(other == 0, "stat.drift-pooled the bin of all, and each layer's gain worst=%zu bound=0",
       other);
    sinkproof_drift none = {0};
    ok(sinkproof_drift_gain(&none, 0) == 0, "stat.drift-pooled nothing free leans nowhere");
}

// The same rows in each layer are one draw, not four: the limit is one layer's.
static void equal_layers(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    for (int i = 0; i < 10; i++) {
        sinkproof_drift drift[LAYERS];
        sinkproof_drift_result alone;
        sums s = {0};
        uint64_t again = state;
        for (size_t l = 0; l < LAYERS; l++)
            state = again, drift[l] = tensor(&state, &(layer){0x1p-20, 1, 0x1p-20, 0}, &s);
        must(sinkproof_drift_judge(&drift[0], 1e-9, &alone));
        sinkproof_drift_result r = pooled(drift, LAYERS, 1e-9);
        near(&d, r.limit, alone.limit, alone.limit, 0x1p31); // a row's norm is kept as a float
        near(&d, r.alike, LAYERS, LAYERS, 1);
        free_all(drift);
    }
    report(&d, "stat.drift-pooled", "equal layers have the limit of one", SEED + 1);
}

static void false_alarms(double declared) {
    enum { DRAWS = 3000 };
    const double rate = 1e-2;
    uint64_t state = SEED + 2;
    size_t alarms = 0, bound = most_alarms(DRAWS, rate);
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_drift drift[LAYERS];
        sums s = {0};
        for (size_t l = 0; l < LAYERS; l++) {
            layer of = {ldexp(1, -20 - (int)l), 1, declared, declared};
            drift[l] = tensor(&state, &of, &s);
        }
        sinkproof_drift_result r = pooled(drift, LAYERS, rate);
        alarms += sinkproof_drift_leans(&r);
        free_all(drift);
    }
    ok(alarms<bound, "stat.drift-pooled false alarms, %s worst=%zu bound=%zu of=%d at rate %g",
              declared> 0
           ? "every layer leaning as declared"
           : "centred errors",
       alarms, bound, DRAWS, rate);
}

// 0.7 of a layer's limit in each of four: none alone leans too far, and 1.4 together.
static void lean_is_seen(void) {
    enum { DRAWS = 100 };
    uint64_t state = SEED + 3;
    size_t alone = 0, missed = 0;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_drift drift[LAYERS];
        sums s = {0};
        double limit = sqrt(2 * log(28e9) / (ROWS * COLS)) * 0x1p-20;
        for (size_t l = 0; l < LAYERS; l++) {
            sinkproof_drift_result own;
            drift[l] = tensor(&state, &(layer){0x1p-20, 0.25, -0.7 * limit, 0}, &s);
            must(sinkproof_drift_judge(&drift[l], 1e-9, &own));
            alone += sinkproof_drift_leans(&own);
        }
        sinkproof_drift_result r = pooled(drift, LAYERS, 1e-9);
        missed += !sinkproof_drift_leans(&r) || !(r.gain < 0);
        free_all(drift);
    }
    ok(alone == 0 && missed == 0,
       "stat.drift-pooled 0.7 of the limit in each of %d layers is seen together worst=%zu bound=0 "
       "of=%d, in a layer alone %zu times",
       LAYERS, missed, DRAWS, alone);
}

int main(void) {
    formula();
    equal_layers();
    false_alarms(0);
    false_alarms(0x1p-22);
    lean_is_seen();
    return tap_done();
}
