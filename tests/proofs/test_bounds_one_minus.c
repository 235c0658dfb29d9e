// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// 1 - alpha_s in float32, computed in three ways over rows of every mass, against its bounds. In
// some rows subtraction must fail: the sink is up to e^40 times stronger than all keys. The truth
// is computed in binary64, and its own error is added to each bound.
#include "proofs/bounds/honest.h"
#include "proofs/bounds/one_minus.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/reference.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { KEYS = 300, ROUNDS = 4000 };

static const double u = 0x1p-24, ulp = 0x1p-23; // declared error of expf and logf: 1 ulp

typedef struct row {
    size_t n;
    float s[KEYS], b;
    double mass, odds, far, lse; // exact but for `here`
    double here;
} row;

static row draw(uint64_t *state, double gap) {
    row r = {.n = 1 + next_bits(state) % KEYS};
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < r.n; j++) {
        r.s[j] = (float)next_real(state, 10);
        top = fmax(top, r.s[j]);
    }
    for (size_t j = 0; j < r.n; j++) sum += exp(r.s[j] - top);
    r.b = (float)(top + log(sum) + gap);
    r.lse = top + log(sum);
    r.odds = exp((r.b - top) - log(sum));
    r.mass = 1 / (1 + r.odds);
    r.far = fmax(20, fabs(gap)) + 20;
    r.here = (2 * r.far + (double)r.n + 16) * 0x1p-52;
    return r;
}

typedef struct worst {
    double share, error, bound, bits; // bits: what was lost beyond u
} worst;

static void take(worst *w, const row *r, double mass, double bound) {
    double error = fabs(mass - r->mass) / r->mass;
    bound += 2 * r->here;
    double share = error / bound;
    if (sinkproof_is_worse(w->share, share)) w->share = share, w->error = error, w->bound = bound;
    w->bits = sinkproof_worst(w->bits, log2(error / u));
}

int main(void) {
    uint64_t state = 7;
    worst w[5] = {{0}};
    double gone = 0; // largest alpha_s for which the difference was still not zero
    for (size_t round = 0; round < ROUNDS; round++) {
        row r = draw(&state, 10 + next_real(&state, 30));
        float m = r.b, sum = 0, top = -INFINITY, alone = 0;
        for (size_t j = 0; j < r.n; j++) top = fmaxf(top, r.s[j]), m = fmaxf(m, r.s[j]);
        for (size_t j = 0; j < r.n; j++) sum += expf(r.s[j] - m), alone += expf(r.s[j] - top);
        float sink = expf(r.b - m), den = sum + sink;
        double eta = expm1(r.far * u) * (1 + ulp) + ulp;
        double p = (1 + eta) * (1 + sinkproof_gamma((double)r.n, u)) - 1;
        take(&w[0], &r, 1 - sink / den,
             sinkproof_mass_subtracted(u, (1 + eta) * (1 + u) / (1 - p) - 1, r.odds));
        take(&w[1], &r, sum / den, sinkproof_mass_quotient(u, p, p));
        // the same sums, divided in binary64: what the quotient adds is u of that format
        take(&w[3], &r, (double)sum / (double)den, sinkproof_mass_quotient(0x1p-53, p, p));
        // y = fl(fl(top + log S') - b): the logarithm, its declared error, two roundings.
        float lse = top + logf(alone), y = lse - r.b;
        double delta = -log1p(-p) + ulp * (fabs(r.lse - top) + p) + u * (fabs(r.lse) + 1e-3 + p);
        delta = (delta + u * fabs((double)y)) * (1 + 4 * u);
        take(&w[2], &r, 1 / (1 + expf(-y)), sinkproof_mass_sigmoid(u, u, ulp, delta));
        take(&w[4], &r, 1 / (double)(1 + expf(-y)), sinkproof_mass_sigmoid(0x1p-53, u, ulp, delta));
        if (1 - sink / den > 0) gone = sinkproof_worst(gone, r.odds);
    }
    const char *names[] = {"by subtraction", "as a quotient of sums", "as a sigmoid",
                           "as a quotient in binary64", "as a sigmoid divided in binary64"};
    for (int k = 0; k < 5; k++)
        ok(w[k].share <= 1,
           "bound.one-minus %s worst=%.4g bound=1 (error %.3g of %.3g), lost %.1f bits", names[k],
           w[k].share, w[k].error, w[k].bound, w[k].bits);
    ok(w[0].bits > 20 && w[1].bits < 12 && w[2].bits < 12,
       "bound.one-minus only subtraction loses the number: %.1f bits, %.1f, %.1f", w[0].bits,
       w[1].bits, w[2].bits);
    ok(log2(gone) < 25,
       "bound.one-minus the difference is 0 beyond odds of 2^%.1f, 1 - alpha_s is not", log2(gone));
    return tap_done();
}
